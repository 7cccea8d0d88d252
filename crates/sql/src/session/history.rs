//! The statements of a connection that ended last, and sums of all of them by kind: `performance_schema.events_statements_history` and `_summary_…_by_event_name`.
//!
//! To note one costs the lock of the connection's own list and keeps the text that the process list had. Its digest is found out when somebody asks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use highkey_table::{TimeSplit, WaitKind};
use highkey_types::Str;

use super::digests::{Execution, may_hold_secret};
use super::status::StatusCounter;

/// A text of so many bytes is kept as it is.
const WHOLE_BYTES: usize = 4096;
/// So many are shown of any, and kept of a longer one (`performance_schema_max_sql_text_length`).
pub(crate) const SHOWN_BYTES: usize = 1024;

/// What a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementKind {
    /// By the counter that counts it.
    Text(StatusCounter),
    Prepared(StatusCounter),
    /// Of a text that is none.
    Error,
}

impl StatementKind {
    /// EVENT_NAME.
    pub fn event(self) -> String {
        match self {
            StatementKind::Text(counter) => format!("statement/sql/{}", counter.name().trim_start_matches("Com_")),
            StatementKind::Prepared(_) => "statement/com/Execute".into(),
            StatementKind::Error => "statement/sql/error".into(),
        }
    }

    pub fn is_select(self) -> bool {
        matches!(self, StatementKind::Text(StatusCounter::ComSelect) | StatementKind::Prepared(StatusCounter::ComSelect))
    }
}

/// Statements of one kind, summed up. Times in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KindSums {
    pub count: u64,
    pub wait: u64,
    pub wait_min: u64,
    pub wait_max: u64,
    pub locked: u64,
    pub errors: u64,
    pub warnings: u64,
    pub rows_affected: u64,
    pub rows_sent: u64,
    pub rows_examined: u64,
    /// As `PastStatement::work`.
    pub work: [u64; 13],
}

impl KindSums {
    pub(super) fn of_execution(execution: &Execution<'_>) -> KindSums {
        let time = execution.time;
        KindSums {
            count: 1,
            wait: time.elapsed,
            wait_min: time.elapsed,
            wait_max: time.elapsed,
            locked: locked(time),
            errors: u64::from(execution.failed),
            warnings: execution.warnings,
            rows_affected: execution.rows_affected,
            rows_sent: execution.rows_sent,
            rows_examined: execution.rows_examined,
            work: execution.work.columns(),
        }
    }

    fn of(statement: &PastStatement) -> KindSums {
        KindSums {
            count: 1,
            wait: statement.elapsed,
            wait_min: statement.elapsed,
            wait_max: statement.elapsed,
            locked: statement.locked,
            errors: u64::from(statement.failed),
            warnings: statement.warnings,
            rows_affected: statement.rows_affected,
            rows_sent: statement.rows_sent,
            rows_examined: statement.rows_examined,
            work: statement.work.map(u64::from),
        }
    }

    pub fn add(&mut self, other: &KindSums) {
        self.wait_min = if self.count == 0 { other.wait_min } else { self.wait_min.min(other.wait_min) };
        self.wait_max = self.wait_max.max(other.wait_max);
        self.count += other.count;
        self.wait += other.wait;
        self.locked += other.locked;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.rows_affected += other.rows_affected;
        self.rows_sent += other.rows_sent;
        self.rows_examined += other.rows_examined;
        self.work.iter_mut().zip(&other.work).for_each(|(sum, n)| *sum += n);
    }
}

/// What was waited for locks of rows and tables.
pub(super) fn locked(time: &TimeSplit) -> u64 {
    time.waits[WaitKind::RowLock as usize].nanos + time.waits[WaitKind::TableLock as usize].nanos
}

/// Sums by kind, in no order.
pub type Kinds = Vec<(StatementKind, KindSums)>;

/// Adds to the sums of one kind.
pub fn add_kind(kinds: &mut Kinds, kind: StatementKind, sums: &KindSums) {
    match kinds.iter_mut().find(|(other, _)| *other == kind) {
        Some((_, all)) => all.add(sums),
        None => kinds.push((kind, *sums)),
    }
}

/// A statement that has ended. Times in nanoseconds.
#[derive(Clone, Debug)]
pub struct PastStatement {
    /// Statements of the connection that had ended then, this one among them.
    pub number: u64,
    pub kind: StatementKind,
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
    /// `text` is the digest text, because there may be a password in its own.
    hidden: bool,
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
    pub(super) fn new(execution: &Execution<'_>, text: Arc<str>, whole: bool, digest: &str, kind: StatementKind, ended: Instant, locked: u64) -> PastStatement {
        // Nobody has masked the passwords of a text that is no statement, or only becomes one. What is cut off is asked too: an error's message may repeat it.
        let hidden = matches!(kind, StatementKind::Error | StatementKind::Text(StatusCounter::ComPrepareSql)) && may_hold_secret(&text);
        let whole = whole && text.len() <= WHOLE_BYTES;
        let text = if text.len() <= WHOLE_BYTES { text } else { Str::from(&text[..text.floor_char_boundary(SHOWN_BYTES)]) };
        let (whole, text) = if hidden { (false, Str::from(digest)) } else { (whole, text) };
        PastStatement {
            number: 0,
            kind,
            ended,
            elapsed: execution.time.elapsed,
            locked,
            text,
            digest: (!whole).then(|| digest.into()),
            schema: None,
            error: None,
            hidden,
            failed: execution.failed,
            warnings: execution.warnings,
            rows_affected: execution.rows_affected,
            rows_sent: execution.rows_sent,
            rows_examined: execution.rows_examined,
            work: execution.work.columns().map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
        }
    }

    /// It ended with an error. The message is not kept where it may repeat what is hidden of the text.
    pub(super) fn note_error(&mut self, code: u16, message: &str) {
        let message = if self.hidden { String::new() } else { message.to_owned() };
        self.error = Some(Box::new((code, message)));
    }
}

/// What a connection has run.
#[derive(Default)]
pub struct History {
    past: VecDeque<PastStatement>,
    ended: u64,
    kinds: Kinds,
}

impl History {
    /// A statement has ended; of them `size` are kept.
    pub(super) fn add(&mut self, size: usize, statement: PastStatement) {
        self.ended += 1;
        add_kind(&mut self.kinds, statement.kind, &KindSums::of(&statement));
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

    /// All that have ended, by kind.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// The same, which begin anew.
    pub fn take_kinds(&mut self) -> Kinds {
        std::mem::take(&mut self.kinds)
    }

    /// Forgets them; their numbers go on.
    pub fn clear(&mut self) {
        self.past.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Work;
    use super::*;

    fn ended(text: &str, whole: bool) -> PastStatement {
        ended_as(text, whole, StatementKind::Text(StatusCounter::ComSelect))
    }

    fn ended_as(text: &str, whole: bool, kind: StatementKind) -> PastStatement {
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
        PastStatement::new(&execution, text.into(), whole, "the digest", kind, Instant::now(), 7)
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
        let kinds = history.take_kinds();
        let (kind, sums) = kinds[0];
        assert_eq!((kinds.len(), kind.event().as_str(), kind.is_select()), (1, "statement/sql/select", true));
        assert_eq!((sums.count, sums.rows_examined, sums.locked, sums.work[9]), (27, 54, 27 * 7, 27 * u64::from(u32::MAX)));
        assert!(history.kinds().is_empty());
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

    #[test]
    fn passwords_of_texts_that_are_no_statements_are_hidden() {
        let secret = "CREATE USER u Identified BY 'secret' WITH";
        for kind in [StatementKind::Error, StatementKind::Text(StatusCounter::ComPrepareSql)] {
            let mut past = ended_as(secret, true, kind);
            past.note_error(1064, "near 'secret'");
            assert_eq!((&*past.text, past.digest.as_deref(), past.error), ("the digest", Some("the digest"), Some(Box::new((1064, String::new())))));
            let mut past = ended_as("SELEC 1", true, kind);
            past.note_error(1064, "near 'SELEC 1'");
            assert_eq!((&*past.text, past.error), ("SELEC 1", Some(Box::new((1064, "near 'SELEC 1'".to_owned())))));
        }
        let mut past = ended_as(&format!("SELEC '{}', 'set password = secret'", "x".repeat(WHOLE_BYTES)), true, StatementKind::Error);
        past.note_error(1064, "near 'set password = secret'");
        assert_eq!((&*past.text, past.error), ("the digest", Some(Box::new((1064, String::new())))), "behind what is shown");
        assert_eq!(&*ended("SELECT password FROM t", true).text, "SELECT password FROM t");
    }
}
