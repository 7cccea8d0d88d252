//! The entries of one index: runs in memory, and those that have been spilled.

use std::path::PathBuf;
use std::thread::Scope;

use highkey_storage::{Engine, Interrupt};
use highkey_types::{MySqlError, errors};

use super::run::{Merge, MergeAhead, Run, SpilledRun};
use super::threads::side_by_side;

/// Less than this is inserted and logged as usual: a bulk load writes its pages to disk at once.
const BULK_BYTES: usize = 1 << 20;

/// The entries of one index so far.
pub(crate) struct Runs {
    pub(crate) memory: Vec<Run>,
    pub(super) spilled: Vec<SpilledRun>,
    /// Where they are spilled to; `None`: where the operating system has temporary files.
    directory: Option<PathBuf>,
}

impl Runs {
    /// No entries. They are spilled beside the database.
    pub(crate) fn new(engine: &Engine) -> Runs {
        Runs { memory: Vec::new(), spilled: Vec::new(), directory: engine.disk().directory().map(PathBuf::from) }
    }

    pub(crate) fn is_small(&self) -> bool {
        self.spilled.is_empty() && self.memory.iter().map(Run::bytes).sum::<usize>() < BULK_BYTES
    }

    pub(crate) fn merge(&self) -> Result<Merge<'_>, MySqlError> {
        Merge::new(&self.memory, &self.spilled).map_err(scratch)
    }

    /// `merge` in a thread of its own.
    pub(crate) fn merge_ahead<'scope, 'env: 'scope>(&'env self, scope: &'scope Scope<'scope, 'env>) -> Result<MergeAhead<'env>, MySqlError> {
        MergeAhead::new(self.merge()?, scope).map_err(scratch)
    }

    pub(crate) fn spill(&mut self) -> Result<(), MySqlError> {
        self.spill_first(self.memory.len(), &|| false)
    }

    /// Spills the first runs, merged into one.
    fn spill_first(&mut self, runs: usize, stop: &dyn Fn() -> bool) -> Result<(), MySqlError> {
        if runs > 0 {
            let run = SpilledRun::write(&self.memory[..runs], self.spilled.last(), self.directory.as_deref(), stop).map_err(scratch)?;
            self.spilled.push(run);
            self.memory.drain(..runs);
        }
        Ok(())
    }

    /// Takes over runs of other rows.
    pub(crate) fn absorb(&mut self, other: Runs) {
        self.memory.extend(other.memory);
        self.spilled.extend(other.spilled);
    }

    /// Spills half of what is in memory: all of it would leave the memory empty for the last merge. Returns the bytes that stay.
    fn spill_half(&mut self, stop: &dyn Fn() -> bool) -> Result<usize, MySqlError> {
        self.spill_first(self.memory.len().div_ceil(2), stop)?;
        Ok(self.memory.iter().map(Run::bytes).sum())
    }
}

/// As `Runs::spill_half`, of all indexes. Error 1317 once KILL asks for it.
pub(super) fn spill_halves(threads: usize, indexes: &mut [Runs], interrupt: &Interrupt) -> Result<usize, MySqlError> {
    let stay = side_by_side(threads, indexes.iter_mut().collect(), |_, runs: &mut Runs, in_vain| {
        runs.spill_half(&|| interrupt.is_raised() || in_vain())
    })?;
    Ok(stay.into_iter().sum())
}

/// Whether the n-th runs of all indexes are of the same rows.
pub(super) fn are_aligned(indexes: &[Runs]) -> bool {
    indexes.iter().all(|runs| runs.spilled.is_empty() && runs.memory.len() == indexes[0].memory.len())
}

/// Rows that a load gives back, as fewer runs than they came in.
pub(super) struct Returned {
    runs: Runs,
    run: Run,
    /// Rows so far: each keeps its place in the statement, where they were in the order of their keys.
    rows: u64,
    memory: usize,
    failed: Option<MySqlError>,
}

impl Returned {
    /// None yet. `memory`: bytes of them that are kept in memory.
    pub(super) fn new(engine: &Engine, memory: usize) -> Returned {
        Returned { runs: Runs::new(engine), run: Run::default(), rows: 0, memory, failed: None }
    }

    pub(super) fn push(&mut self, key: &[u8], value: &[u8]) {
        self.run.add(key, value, self.rows);
        self.rows += 1;
        if self.run.bytes() > self.memory && self.failed.is_none() {
            self.runs.memory.push(std::mem::take(&mut self.run));
            self.failed = self.runs.spill().err();
        }
    }

    pub(super) fn into_runs(mut self) -> Result<Runs, MySqlError> {
        self.runs.memory.push(self.run);
        self.failed.map_or(Ok(self.runs), Err)
    }
}

/// Error 1026 for temporary files, 1317 where KILL has ended their writing.
pub(crate) fn scratch(cause: std::io::Error) -> MySqlError {
    if cause.kind() == std::io::ErrorKind::Interrupted {
        return errors::query_interrupted();
    }
    MySqlError::with_message(1026, format!("Error writing file '(temporary)' (errno: {} - {cause})", cause.raw_os_error().unwrap_or(0)))
}
