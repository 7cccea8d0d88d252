//! How far a long statement is: written by whoever works on it, read by others at any time.

use crate::sync::{AtomicU8, AtomicU64, Ordering};

/// What a statement is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Stage {
    /// Nothing that is counted.
    #[default]
    Executing,
    WaitingForMetadataLock,
    /// Bytes of a file.
    ReadingFile,
    /// Rows of a table.
    CopyingRows,
    /// Rows of a table, to learn something of them.
    ReadingRows,
    /// Rows that an UPDATE or DELETE meets or has found, whether or not they change.
    ChangingRows,
    /// Pages of a tree, of all its levels.
    CheckingPages,
    /// Entries of an index.
    CheckingEntries,
    /// Entries of indexes.
    BuildingIndexes,
    /// Rows that others have changed while their table was read.
    ApplyingChanges,
    /// Leaf pages passed.
    FillingPages,
    /// Pages that lie where the space is to be given back.
    MovingPages,
    /// Bytes of log gone back.
    RollingBack,
    Committing,
    WaitingForReplica,
    /// Pieces of the tables that a query reads.
    ReadingTables,
}

impl Stage {
    /// In the order of their numbers.
    pub const ALL: [Stage; 16] = [
        Stage::Executing,
        Stage::WaitingForMetadataLock,
        Stage::ReadingFile,
        Stage::CopyingRows,
        Stage::ReadingRows,
        Stage::ChangingRows,
        Stage::CheckingPages,
        Stage::CheckingEntries,
        Stage::BuildingIndexes,
        Stage::ApplyingChanges,
        Stage::FillingPages,
        Stage::MovingPages,
        Stage::RollingBack,
        Stage::Committing,
        Stage::WaitingForReplica,
        Stage::ReadingTables,
    ];
}

/// The present stage of one session's statement, and the work done and to do in it, in the stage's unit.
#[derive(Debug, Default)]
pub struct Progress {
    stage: AtomicU8,
    done: AtomicU64,
    total: AtomicU64,
    entered: AtomicU64,
}

impl Progress {
    /// Begins a stage. `total` is an estimate; 0: none is known.
    pub fn enter(&self, stage: Stage, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
        self.stage.store(stage as u8, Ordering::Relaxed);
        self.entered.fetch_add(1, Ordering::Relaxed);
    }

    /// So much more is done, in the unit of the stage.
    pub fn add(&self, work: u64) {
        self.done.fetch_add(work, Ordering::Relaxed);
    }

    /// So much is done, in the unit of the stage.
    pub fn set_done(&self, work: u64) {
        self.done.store(work, Ordering::Relaxed);
    }

    /// What the statement is doing.
    pub fn stage(&self) -> Stage {
        Stage::ALL[self.stage.load(Ordering::Relaxed) as usize]
    }

    /// How much of it is done, in the unit of the stage.
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// None: nobody knows. Never below what is done.
    pub fn total(&self) -> Option<u64> {
        let total = self.total.load(Ordering::Relaxed);
        (total > 0).then(|| total.max(self.done()))
    }

    /// Stages entered so far: tells two stages of the same kind apart.
    pub fn entered(&self) -> u64 {
        self.entered.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stages_read_back() {
        let progress = Progress::default();
        assert_eq!((progress.stage(), progress.total()), (Stage::Executing, None));
        for (n, stage) in Stage::ALL.into_iter().enumerate() {
            progress.enter(stage, 10);
            progress.add(12);
            assert_eq!((progress.stage(), progress.done(), progress.total()), (stage, 12, Some(12)));
            assert_eq!((stage as usize, progress.entered()), (n, n as u64 + 1));
        }
    }
}
