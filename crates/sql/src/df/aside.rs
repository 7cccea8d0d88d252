//! What a thread does for a piece of a scan whose turn has not come (`in_order`): its warnings are kept apart until it has, and it ends early
//! when nobody wants the piece any more.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::expr::Raised;

struct Work {
    raised: Raised,
    worker: usize,
    unwanted: Arc<AtomicBool>,
}

thread_local! {
    /// What this thread is at.
    static WORK: RefCell<Option<Work>> = const { RefCell::new(None) };
}

/// The thread's work before, put back whatever happens.
struct Before(Option<Work>);

impl Drop for Before {
    fn drop(&mut self) {
        let before = self.0.take();
        WORK.with_borrow_mut(|work| *work = before);
    }
}

/// Does a part of the work for a piece on this thread, as one of several workers; `unwanted` tells that nobody wants it. Returns the warnings that
/// were raised.
pub(super) fn work<T>(unwanted: &Arc<AtomicBool>, worker: usize, part: impl FnOnce() -> T) -> (T, Raised) {
    let work = Work { raised: Raised::default(), worker, unwanted: unwanted.clone() };
    let _before = Before(WORK.replace(Some(work)));
    let result = part();
    (result, WORK.with_borrow_mut(|work| work.take()).map_or_else(Raised::default, |work| work.raised))
}

/// Keeps warnings for the piece that the thread works on; gives them back if it works on none.
pub(super) fn put(raised: Raised) -> Option<Raised> {
    WORK.with_borrow_mut(|work| match work {
        Some(work) => {
            work.raised.append(raised);
            None
        }
        None => Some(raised),
    })
}

/// True if nobody wants what the thread works on.
pub(super) fn is_unwanted() -> bool {
    WORK.with_borrow(|work| work.as_ref().is_some_and(|work| work.unwanted.load(Ordering::Relaxed)))
}

/// Which worker's work the thread does; `None` if it works on no piece.
pub(super) fn worker() -> Option<usize> {
    WORK.with_borrow(|work| work.as_ref().map(|work| work.worker))
}
