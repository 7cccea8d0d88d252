//! The engine's own work on transactions: publishing what nobody waits for, purge, undoing losers.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::system::System;
use crate::error::{Error, Result};
use crate::ids::{IndexId, Lsn};
use crate::lock::Owner;
use crate::sync::{Arc, AtomicBool, Ordering};

/// Items per purge step.
const STEP: usize = 2000;
/// Versions per step of a merge.
const MERGE_STEP: usize = if cfg!(test) { 50 } else { 50_000 };
/// A commit whose caller has not asked for it for this long is published by the background.
const ABANDONED_AFTER: Duration = Duration::from_millis(50);

/// Between two attempts to finish an open.
const RETRY: Duration = Duration::from_secs(1);

/// What an open finds unfinished: transactions and where their undo goes on, trees that were to be freed when it began.
pub(crate) struct LeftByCrash {
    pub losers: VecDeque<(Arc<Owner>, Lsn)>,
    pub dropped: Vec<IndexId>,
}

/// When the oldest unpublished commit was first seen.
pub(crate) struct Pace {
    seen: Lsn,
    since: Instant,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { seen: Lsn::NONE, since: Instant::now() }
    }
}

impl System {
    /// One round of background work. Returns how much it did.
    pub fn background_step(&self, pace: &mut Pace) -> Result<usize> {
        match self.commits.oldest_pending() {
            Some(lsn) if lsn == pace.seen => {
                if pace.since.elapsed() >= ABANDONED_AFTER {
                    self.publish_abandoned()?;
                }
            }
            pending => *pace = Pace { seen: pending.unwrap_or(Lsn::NONE), since: Instant::now() },
        }
        self.status.advance_low_water(self.views.oldest(&self.status));
        // What one of them cannot do keeps the others from nothing.
        let undone = self.undo_left();
        let purged = self.purge(STEP);
        self.history.spill();
        let tended = self.tend_versions();
        Ok(undone.and(purged)? + tended? as usize)
    }

    /// Spills a slice of the versions past half of their budget, drops what nobody needs of the spilled ones, merges those that are many. True if there
    /// is more to do.
    fn tend_versions(&self) -> Result<bool> {
        if !self.versions.has_to_spill() && !self.versions.has_levels() {
            return Ok(false);
        }
        let needs = self.horizon();
        self.versions.drop_runs(self.status.low_water(), &needs);
        if self.versions.has_to_spill() {
            self.versions.spill(&needs)?;
        }
        let merging = self.versions.merge(MERGE_STEP, &needs)?;
        Ok(merging || self.versions.has_to_spill())
    }

    /// Before a change that may enter a version, holding no latch.
    pub(super) fn make_room_for_versions(&self) -> Result<()> {
        if !self.versions.is_full() {
            return Ok(());
        }
        let mut spilled = Ok(());
        self.block(&mut || spilled = self.versions.spill(&self.horizon()));
        spilled
    }

    /// Rolls back what could not be rolled back when it ended.
    fn undo_left(&self) -> Result<()> {
        let left = std::mem::take(&mut *self.undo_later.lock());
        let mut outcome = Ok(());
        for (owner, mut last_lsn) in left {
            let undone = self.roll_back(&owner, &mut last_lsn, None);
            if undone.is_ok() {
                self.left_to_undo.fetch_sub(1, Ordering::SeqCst);
            } else {
                self.undo_later.lock().push((owner, last_lsn));
            }
            outcome = outcome.and(undone);
        }
        outcome
    }

    /// The purge thread.
    pub fn purge_until(&self, stop: &AtomicBool) {
        let mut pace = Pace::new();
        while !stop.load(Ordering::SeqCst) {
            match self.background_step(&mut pace) {
                Ok(0) => self.history.sleep(if self.history.len() > 0 { 10 } else { 30 }),
                Ok(_) => {}
                Err(Error::Stopped) => return,
                Err(error) => {
                    // What made it fail meets every writer too; here it is only told and tried again.
                    tracing::error!(%error, "purge failed");
                    self.history.sleep(200);
                }
            }
        }
    }

    /// What an open has left to do. After an error it can be called again, and goes on where it was.
    pub fn finish_open(&self, left: &mut LeftByCrash, stop: &AtomicBool) -> Result<()> {
        // Their rows may be in a tree that was dropped since: nothing of it is freed before they are out of it.
        let mut outcome = Ok(());
        for _ in 0..left.losers.len() {
            if stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            let Some((owner, mut last_lsn)) = left.losers.pop_front() else { break };
            let undone = self.roll_back(&owner, &mut last_lsn, None);
            if undone.is_ok() {
                self.status.loser_is_undone();
                self.counters.losers_undone.fetch_add(1, Ordering::Relaxed);
            } else {
                // Behind the others, which may be undone.
                left.losers.push_back((owner, last_lsn));
            }
            outcome = outcome.and(undone);
        }
        outcome?;
        while let Some(index) = left.dropped.last() {
            self.drop_tree(*index)?;
            left.dropped.pop();
        }
        self.purge_old_garbage()
    }

    /// The undo thread: `finish_open`, until it succeeds.
    pub fn finish_open_until(&self, mut left: LeftByCrash, stop: &AtomicBool) {
        let mut told = String::new();
        while let Err(error) = self.finish_open(&mut left, stop) {
            if matches!(error, Error::Stopped) {
                return;
            }
            let error = error.to_string();
            if error != told {
                // Their rows stay locked meanwhile.
                tracing::error!(error, "undoing unfinished transactions failed, and is tried again");
                told = error;
            }
            for _ in 0..10 {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                std::thread::sleep(RETRY / 10);
            }
        }
    }
}
