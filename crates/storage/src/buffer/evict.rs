//! Frames for pages to come: a clock with second chance over all frames. A page read by a scan has no second chance.

use super::BufferPool;
use crate::error::{Error, Result};
use crate::sync::{Ordering, thread};
use crate::waits::{self, WaitKind};
use std::time::Duration;

/// Dirty victims written at once when the foreground finds no clean one.
const FOREGROUND_WRITES: usize = 16;

impl BufferPool {
    /// A frame that holds no page.
    pub(super) fn take_frame(&self) -> Result<u32> {
        if let Some(frame) = self.frames.pop_free() {
            return Ok(frame);
        }
        self.counters.frame_waits.add(1);
        for round in 0..2000 {
            if let Some(frame) = self.frames.pop_free() {
                return Ok(frame);
            }
            // Two turns clear every reference; after a write the victims are clean.
            if let Some(frame) = self.sweep(2 * self.frames.len()) {
                return Ok(frame);
            }
            self.cleaner_wanted.store(true, Ordering::Relaxed);
            let _counted = waits::blocked(WaitKind::PageWrite);
            let written = self.write_victims(FOREGROUND_WRITES)?;
            self.counters.foreground_writes.add(written as u64);
            if written == 0 && round > 10 {
                thread::sleep(Duration::from_millis(1));
            }
        }
        Err(Error::Unusable("the buffer pool has no page that could be evicted".to_string()))
    }

    /// Moves the hand over at most `steps` frames until one could be freed.
    fn sweep(&self, steps: usize) -> Option<u32> {
        let count = self.frames.len() as u32;
        for _ in 0..steps {
            let frame = self.hand.fetch_add(1, Ordering::Relaxed) % count;
            if self.try_evict(frame) {
                return Some(frame);
            }
        }
        None
    }

    /// Evicts the frame's page if it is clean, not in use and not recently used; a recent use is forgotten.
    fn try_evict(&self, frame: u32) -> bool {
        let state = self.frames.get(frame);
        let Some(page) = state.page() else { return false };
        if state.pinned.load(Ordering::Relaxed) {
            return false;
        }
        let Ok(entry) = self.table.entry(page) else { return false };
        let latch = self.latch(entry);
        if !latch.try_evict() {
            latch.clear_ref();
            return false;
        }
        // Exclusive now: the frame's page, its cleanness and its pin cannot change.
        if state.page() != Some(page) || entry.frame() != frame || !state.is_clean() || state.pinned.load(Ordering::Relaxed) {
            latch.unlock_unchanged();
            return false;
        }
        state.set_page(None);
        latch.end_evict();
        self.counters.evictions.add(1);
        true
    }

    /// The cleaner's step: keeps `wanted` frames free, writing dirty victims. Returns pages written.
    pub(crate) fn keep_free(&self, wanted: usize) -> Result<usize> {
        let mut written = 0;
        for _ in 0..4 {
            while self.frames.free_count() < wanted {
                let Some(frame) = self.sweep(self.frames.len()) else { break };
                self.frames.push_free(frame);
            }
            if self.frames.free_count() >= wanted {
                break;
            }
            written += self.write_victims(64)?;
        }
        self.cleaner_wanted.store(false, Ordering::Relaxed);
        Ok(written)
    }

    /// True if the foreground had to look for a frame itself since the last `keep_free`.
    pub(crate) fn cleaner_wanted(&self) -> bool {
        self.cleaner_wanted.load(Ordering::Relaxed)
    }

    /// Writes dirty pages that the hand will come to soon.
    fn write_victims(&self, max: usize) -> Result<usize> {
        let count = self.frames.len() as u32;
        let hand = self.hand.load(Ordering::Relaxed);
        let mut victims = Vec::with_capacity(max);
        for i in 0..count {
            let frame = hand.wrapping_add(i) % count;
            let state = self.frames.get(frame);
            if state.rec_lsn.load(Ordering::Relaxed) != 0
                && !state.pinned.load(Ordering::Relaxed)
                && let Some(page) = state.page()
            {
                victims.push((page, frame));
                if victims.len() == max {
                    break;
                }
            }
        }
        self.write_pages(&mut victims)
    }
}
