//! The engine's own work on transactions: publishing what nobody waits for, purge, undoing losers.

use std::time::{Duration, Instant};

use super::system::System;
use crate::error::{Error, Result};
use crate::ids::{IndexId, Lsn};
use crate::lock::Owner;
use crate::sync::{Arc, AtomicBool, Ordering};

/// Items per purge step.
const STEP: usize = 2000;
/// A commit whose caller has not asked for it for this long is published by the background.
const ABANDONED_AFTER: Duration = Duration::from_millis(50);

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
        let done = self.purge(STEP)?;
        if self.versions.over_budget() {
            self.versions.spill()?;
        }
        Ok(done)
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

    /// What an open has left to do: unfinished transactions, `dropped` trees (those that were to be freed when it began), old garbage.
    pub fn finish_open(&self, losers: Vec<(Arc<Owner>, Lsn)>, dropped: Vec<IndexId>, stop: &AtomicBool) -> Result<()> {
        // Their rows may be in a tree that was dropped since: nothing of it is freed before they are out of it.
        for (owner, mut last_lsn) in losers {
            if stop.load(Ordering::SeqCst) {
                return Ok(());
            }
            self.roll_back(&owner, &mut last_lsn, None)?;
            self.status.loser_is_undone();
            self.counters.losers_undone.fetch_add(1, Ordering::Relaxed);
        }
        for index in dropped {
            self.drop_tree(index)?;
        }
        self.purge_old_garbage()
    }
}
