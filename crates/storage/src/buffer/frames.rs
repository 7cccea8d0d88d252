//! The frames: one anonymous mapping for the pages' bytes, and what is known of each frame.

use crate::ids::PageId;
use crate::page::PAGE_SIZE;
use crate::page::header::HEADER_SIZE;
use crate::prefetch::{LINE, prefetch_line};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering};
use memmap2::{MmapMut, MmapOptions};

/// Memory that is asked of the system ahead of need, at most: 64 MiB.
const AHEAD_MAX: u32 = (64 << 20) / PAGE_SIZE as u32;
/// The same as a multiple of what was needed since the last time.
const AHEAD: u32 = 4;

/// Bytes of slots that are fetched into the processor's cache ahead: those of a leaf of rows of 100 bytes.
const SLOTS_AHEAD: usize = 1024;

/// No page.
const NONE: u64 = u64::MAX;

/// What a frame holds.
pub(super) struct Frame {
    page: AtomicU64,
    /// The log from here on has changes of the page that are not on disk; 0: clean.
    pub rec_lsn: AtomicU64,
    /// As `rec_lsn`, of a copy that is being written just now; 0: none.
    pub flushing: AtomicU64,
    /// Changed by a mini-transaction that has not committed.
    pub in_scope: AtomicBool,
    /// Made by `fix_new` and never written since.
    pub fresh: AtomicBool,
    /// Never evicted (extent maps, the tree directory).
    pub pinned: AtomicBool,
}

impl Frame {
    pub fn page(&self) -> Option<PageId> {
        match self.page.load(Ordering::Acquire) {
            NONE => None,
            id => Some(PageId(id)),
        }
    }

    pub fn set_page(&self, page: Option<PageId>) {
        self.page.store(page.map_or(NONE, |p| p.0), Ordering::Release);
    }

    pub fn is_clean(&self) -> bool {
        self.rec_lsn.load(Ordering::SeqCst) == 0 && self.flushing.load(Ordering::SeqCst) == 0
    }
}

pub(super) struct Frames {
    /// Keeps the mapping; `base` points into it.
    arena: MmapMut,
    base: *mut u8,
    frames: Box<[Frame]>,
    free: Mutex<Vec<u32>>,
    /// Frames below have been taken before; those from here on are taken in their order.
    taken: AtomicU32,
    /// `taken` when memory was last asked for ahead, and up to where it was.
    ahead: Mutex<(u32, u32)>,
}

// SAFETY: `base` is only used through `bytes`, `bytes_mut` and `pointer`, whose callers hold the latch that each asks for.
unsafe impl Send for Frames {}
// SAFETY: as above.
unsafe impl Sync for Frames {}

impl Frames {
    pub fn new(count: usize) -> std::io::Result<Frames> {
        let mut arena = MmapOptions::new().len(count * PAGE_SIZE).map_anon()?;
        // Fewer misses of the processor's address cache: point reads of random rows. A hint, which an old kernel may refuse.
        #[cfg(target_os = "linux")]
        let _ = arena.advise(memmap2::Advice::HugePage);
        let base = arena.as_mut_ptr();
        let frame = |_| Frame {
            page: AtomicU64::new(NONE),
            rec_lsn: AtomicU64::new(0),
            flushing: AtomicU64::new(0),
            in_scope: AtomicBool::new(false),
            fresh: AtomicBool::new(false),
            pinned: AtomicBool::new(false),
        };
        let frames = (0..count).map(frame).collect();
        let free = Mutex::new((0..count as u32).rev().collect());
        Ok(Frames { arena, base, frames, free, taken: AtomicU32::new(0), ahead: Mutex::default() })
    }

    pub fn len(&self) -> usize {
        self.frames.len()
    }

    pub fn get(&self, frame: u32) -> &Frame {
        &self.frames[frame as usize]
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &Frame)> {
        self.frames.iter().enumerate().map(|(i, f)| (i as u32, f))
    }

    pub fn pop_free(&self) -> Option<u32> {
        let mut free = self.free.lock();
        let frame = free.pop()?;
        if frame >= self.taken.load(Ordering::Relaxed) {
            self.taken.store(frame + 1, Ordering::Relaxed);
        }
        Some(frame)
    }

    /// Has the system back the frames that are taken next, so that who takes one for a new page, latches held, does not wait while the system
    /// clears memory. As much as the pool grows by in a few calls; nothing while it does not grow.
    pub fn populate_ahead(&self) {
        let mut ahead = self.ahead.lock();
        let taken = self.taken.load(Ordering::Relaxed);
        let (seen, done) = *ahead;
        *ahead = (taken, done);
        let from = done.max(taken);
        let until = taken.saturating_add((taken - seen).saturating_mul(AHEAD).min(AHEAD_MAX)).min(self.frames.len() as u32);
        if until > from {
            ahead.1 = until;
            // A hint, which an old kernel refuses.
            #[cfg(target_os = "linux")]
            let _ = self.arena.advise_range(memmap2::Advice::PopulateWrite, from as usize * PAGE_SIZE, (until - from) as usize * PAGE_SIZE);
        }
    }

    pub fn push_free(&self, frame: u32) {
        self.free.lock().push(frame);
    }

    pub fn free_count(&self) -> usize {
        self.free.lock().len()
    }

    /// The frame's first byte; always inside the arena.
    pub fn pointer(&self, frame: u32) -> *mut u8 {
        assert!((frame as usize) < self.frames.len());
        // SAFETY: the arena has `frames.len()` pages, and the frame is one of them.
        unsafe { self.base.add(frame as usize * PAGE_SIZE) }
    }

    /// Lets the processor fetch what a search of the page reads first, its header, fences and slots, while the page is being latched. All at once:
    /// which slots are wanted is known only when the header and the fences are there, one wait for memory later.
    #[inline]
    pub fn prefetch(&self, frame: u32) {
        let page = self.pointer(frame);
        for at in [0, PAGE_SIZE - LINE].into_iter().chain((LINE..HEADER_SIZE + SLOTS_AHEAD).step_by(LINE)) {
            prefetch_line(page.wrapping_add(at));
        }
    }

    /// As `prefetch`, without the slots: of an inner page few are looked at.
    #[inline]
    pub fn prefetch_ends(&self, frame: u32) {
        let page = self.pointer(frame);
        for at in [0, PAGE_SIZE - LINE, LINE] {
            prefetch_line(page.wrapping_add(at));
        }
    }

    /// As `prefetch`, of what is known of the frame: a writer looks at it when it is through with the page.
    #[inline]
    pub fn prefetch_state(&self, frame: u32) {
        prefetch_line(std::ptr::from_ref(self.get(frame)).cast());
    }

    /// # Safety
    /// The caller holds the latch of the page in the frame, shared or exclusive, as long as the slice lives (buffer I1).
    pub unsafe fn bytes(&self, frame: u32) -> &[u8] {
        // SAFETY: in the arena; nobody writes while the latch is held shared or exclusively by this caller.
        unsafe { std::slice::from_raw_parts(self.pointer(frame), PAGE_SIZE) }
    }

    /// # Safety
    /// The caller holds the latch of the page in the frame exclusively, or the frame holds no page and is the caller's
    /// (buffer I1), and makes no second slice meanwhile.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn bytes_mut(&self, frame: u32) -> &mut [u8] {
        // SAFETY: in the arena; nobody else makes a slice of the frame while the caller has it exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.pointer(frame), PAGE_SIZE) }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn memory_is_asked_for_ahead_while_the_pool_grows() {
        let frames = Frames::new(64).expect("a small mapping");
        let populated = || frames.ahead.lock().1;
        frames.populate_ahead();
        assert_eq!(populated(), 0);
        for _ in 0..5 {
            let frame = frames.pop_free().expect("a free frame");
            // SAFETY: the frame was taken and holds no page.
            unsafe { frames.bytes_mut(frame) }.fill(7);
        }
        frames.populate_ahead();
        assert_eq!(populated(), 5 + 5 * AHEAD);
        // Frames that were given back and are taken again have their memory.
        frames.push_free(4);
        assert_eq!(frames.pop_free(), Some(4));
        frames.populate_ahead();
        assert_eq!(populated(), 5 + 5 * AHEAD);
        while frames.pop_free().is_some() {}
        frames.populate_ahead();
        frames.populate_ahead();
        assert_eq!(populated(), 5 + 5 * AHEAD, "there is nothing ahead");
        // SAFETY: as above.
        assert!((0..5).all(|frame| unsafe { frames.bytes(frame) }.iter().all(|byte| *byte == 7)));
    }
}
