//! The statements of a connection that ended last: `performance_schema.events_statements_history`.
//!
//! To note one costs the lock of the connection's own list and keeps the text that the process list had. What can be told from the text, its digest and what kind of
//! statement it is, is found out when somebody asks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use highkey_types::Str;

use super::digests::Execution;

/// A text of so many bytes is kept as it is.
const WHOLE_BYTES: usize = 4096;
/// So many are shown of any, and kept of a longer one (`performance_schema_max_sql_text_length`).
pub(crate) const SHOWN_BYTES: usize = 1024;

/// A statement that has ended. Times in nanoseconds.
#[derive(Clone, Debug)]
pub struct PastStatement {
    /// Statements of the connection that had ended then, this one among them.
    pub number: u64,
    /// It was prepared.
    pub prepared: bool,
    pub ended: Instant,
    pub elapsed: u64,
    /// What it waited for locks of rows and tables.
    pub locked: u64,
    pub text: Str,
    /// Its digest text, if that cannot be had from `text`: it is cut, masked, or no statement.
    pub digest: Option<Box<str>>,
    pub schema: Option<Str>,
    /// The error that it ended with.
    pub error: Option<Box<(u16, String)>>,
    pub failed: bool,
    pub warnings: u64,
    pub rows_affected: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    /// From CREATED_TMP_DISK_TABLES to NO_GOOD_INDEX_USED.
    pub work: [u32; 13],
}

impl PastStatement {
    /// `text` as the process list had it; `whole`: it is the statement's own.
    pub(super) fn new(execution: &Execution<'_>, text: Arc<str>, whole: bool, digest: &str, ended: Instant, locked: u64) -> PastStatement {
        let whole = whole && text.len() <= WHOLE_BYTES;
        let text = if text.len() <= WHOLE_BYTES { text } else { Str::from(&text[..text.floor_char_boundary(SHOWN_BYTES)]) };
        let work = &execution.work;
        let counts = [
            work.created_tmp_disk_tables,
            work.created_tmp_tables,
            work.select_full_join,
            work.select_full_range_join,
            work.select_range,
            0,
            work.select_scan,
            work.sort_merge_passes,
            work.sort_range,
            work.sort_rows,
            work.sort_scan,
            work.no_index_used,
            0,
        ];
        PastStatement {
            number: 0,
            prepared: false,
            ended,
            elapsed: execution.time.elapsed,
            locked,
            text,
            digest: (!whole).then(|| digest.into()),
            schema: None,
            error: None,
            failed: execution.failed,
            warnings: execution.warnings,
            rows_affected: execution.rows_affected,
            rows_sent: execution.rows_sent,
            rows_examined: execution.rows_examined,
            work: counts.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        }
    }
}

/// What a connection has run.
#[derive(Default)]
pub struct History {
    past: VecDeque<PastStatement>,
    ended: u64,
}

impl History {
    /// A statement has ended; of them `size` are kept.
    pub(super) fn add(&mut self, size: usize, statement: PastStatement) {
        self.ended += 1;
        if size == 0 {
            return;
        }
        if self.past.len() == size {
            self.past.pop_front();
        } else if self.past.capacity() == 0 {
            self.past.reserve_exact(size);
        }
        self.past.push_back(PastStatement { number: self.ended, ..statement });
    }

    /// Statements that have ended.
    pub fn ended(&self) -> u64 {
        self.ended
    }

    /// Those that are kept, the oldest first.
    pub fn past(&self) -> impl Iterator<Item = &PastStatement> {
        self.past.iter()
    }

    /// Forgets them; their numbers go on.
    pub fn clear(&mut self) {
        self.past.clear();
    }
}

#[cfg(test)]
mod tests {
    use highkey_table::TimeSplit;

    use super::super::work::Work;
    use super::*;

    fn ended(text: &str, whole: bool) -> PastStatement {
        let execution = Execution {
            session: 1,
            time: &TimeSplit::default(),
            failed: false,
            warnings: 0,
            rows_affected: 0,
            rows_sent: 1,
            rows_examined: 2,
            parallel: false,
            serial: Default::default(),
            work: Work { sort_rows: 1 << 40, ..Work::default() },
            ended_micros: 0,
            text,
        };
        PastStatement::new(&execution, text.into(), whole, "the digest", Instant::now(), 0)
    }

    #[test]
    fn the_last_ones_are_kept() {
        let mut history = History::default();
        for n in 1..=25 {
            history.add(10, ended(&format!("SELECT {n}"), true));
        }
        let kept: Vec<(u64, &str)> = history.past().map(|past| (past.number, &*past.text)).collect();
        assert_eq!((kept.len(), kept[0], kept[9]), (10, (16, "SELECT 16"), (25, "SELECT 25")));
        history.clear();
        history.add(10, ended("SELECT 1", true));
        assert_eq!((history.past().count(), history.past().next().unwrap().number, history.ended()), (1, 26, 26));
        history.add(0, ended("SELECT 2", true));
        assert_eq!(history.ended(), 27);
    }

    #[test]
    fn long_texts_are_cut_and_have_their_digest() {
        let long = format!("SELECT '{}'", "\u{e4}".repeat(3000));
        let cut = ended(&long, true);
        assert!(cut.text.len() <= SHOWN_BYTES && long.starts_with(&*cut.text) && cut.digest.as_deref() == Some("the digest"));
        let short = ended("SELECT 1", true);
        assert_eq!((&*short.text, short.digest.as_deref(), short.work[9]), ("SELECT 1", None, u32::MAX));
        assert_eq!(ended("CREATE USER ... IDENTIFIED BY <secret>", false).digest.as_deref(), Some("the digest"));
    }
}
