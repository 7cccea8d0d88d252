//! The page table: page id -> latch word and frame, dense, allocated a segment (1 GiB of pages) at a time.

use super::latch::EVICTED;
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::sync::{AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

#[cfg(not(feature = "shuttle"))]
const CHUNK_PAGES: u64 = 65536;
#[cfg(feature = "shuttle")]
const CHUNK_PAGES: u64 = 256;
const CHUNKS: usize = 16384;

/// One page's latch word, and its frame while it is in memory.
pub(super) struct Entry {
    pub latch: AtomicU64,
    frame: AtomicU32,
}

impl Entry {
    /// Meaningful while the page is in memory and latched, or until a failed validation.
    pub fn frame(&self) -> u32 {
        self.frame.load(Ordering::Relaxed)
    }

    /// Under X.
    pub fn set_frame(&self, frame: u32) {
        self.frame.store(frame, Ordering::Relaxed);
    }
}

pub(super) struct PageTable {
    chunks: Box<[OnceLock<Box<[Entry]>>]>,
}

impl PageTable {
    pub fn new() -> PageTable {
        PageTable { chunks: (0..CHUNKS).map(|_| OnceLock::new()).collect() }
    }

    /// The page's entry; an id out of range comes from broken bytes.
    pub fn entry(&self, id: PageId) -> Result<&Entry> {
        let chunk = self.chunks.get((id.0 / CHUNK_PAGES) as usize).ok_or_else(|| Error::corrupt(id, "no such page"))?;
        let entries = chunk.get_or_init(|| {
            (0..CHUNK_PAGES).map(|_| Entry { latch: AtomicU64::new(EVICTED), frame: AtomicU32::new(0) }).collect()
        });
        Ok(&entries[(id.0 % CHUNK_PAGES) as usize])
    }
}
