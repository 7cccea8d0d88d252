//! The page latches that this thread holds: waiting for log space, an extent or a row lock with any would stop the engine. Debug builds know
//! which pages they are and check the order in which they are taken (btree/README.md, "Latch order").

use super::BufferPool;
use crate::ids::PageId;

pub(crate) use imp::any;
pub(super) use imp::{add, remove};

/// How a latch was taken.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// It may have been waited for.
    Waited,
    /// At once or not at all: cannot be part of a deadlock.
    Tried,
    /// A page that nobody else can reach yet: just allocated, or being redone.
    New,
}

/// Debug builds: `what` is about to be waited for, with no latch held.
pub(crate) fn assert_none(what: &str) {
    #[cfg(all(debug_assertions, not(feature = "shuttle")))]
    assert!(!any(), "{what} while a page latch is held: {}", imp::describe());
    let _ = what;
}

#[cfg(not(all(debug_assertions, not(feature = "shuttle"))))]
mod imp {
    use super::*;
    use std::cell::Cell;

    thread_local! {
        static HELD: Cell<u32> = const { Cell::new(0) };
    }

    pub fn add(_: &BufferPool, _: PageId, _: &[u8], _: How) {
        HELD.with(|h| h.set(h.get() + 1));
    }

    pub fn remove(_: &BufferPool, _: PageId) {
        HELD.with(|h| h.set(h.get().saturating_sub(1)));
    }

    /// True if this thread holds a page latch.
    pub fn any() -> bool {
        HELD.with(|h| h.get() > 0)
    }
}

#[cfg(all(debug_assertions, not(feature = "shuttle")))]
mod imp {
    use super::*;
    use crate::page::{PageType, header, slotted::Node};
    use std::cell::RefCell;

    thread_local! {
        static HELD: RefCell<Vec<Held>> = const { RefCell::new(Vec::new()) };
    }

    #[derive(Debug, Clone)]
    struct Held {
        pool: usize,
        page: PageId,
        place: Place,
    }

    /// Where a page stands in the order, as it was when latched.
    #[derive(Debug, Clone)]
    enum Place {
        New,
        Tree { index: u32, level: u8, low: Vec<u8> },
        Overflow,
        /// Extent maps and the directory of trees.
        Map,
    }

    impl Place {
        fn of(bytes: &[u8]) -> Place {
            let node = Node(bytes);
            match (bytes[header::TYPE], node.low()) {
                (ty, Ok(low)) if ty == PageType::Tree as u8 => {
                    Place::Tree { index: header::index_id(bytes).0, level: node.level(), low: low.to_vec() }
                }
                (ty, _) if ty == PageType::SpaceMap as u8 || ty == PageType::Directory as u8 => Place::Map,
                (ty, _) if ty == PageType::Overflow as u8 => Place::Overflow,
                _ => Place::New,
            }
        }
    }

    /// Whether the second may be waited for by who holds the first.
    fn in_order(held: &Held, next: &Held) -> bool {
        match (&held.place, &next.place) {
            (_, Place::New) => true,
            (Place::Map, Place::Map) | (Place::Overflow, Place::Overflow) => held.page < next.page,
            (_, Place::Map) => true,
            (Place::Map, _) => false,
            (Place::New, _) | (Place::Tree { .. }, Place::Overflow) => true,
            // Trees by their ids; in a tree a parent before its child; on a level from left to right.
            (Place::Tree { index, level, low }, Place::Tree { index: next_index, level: next_level, low: next_low }) => {
                index < next_index || index == next_index && (next_level < level || next_level == level && low < next_low)
            }
            (Place::Overflow, _) => false,
        }
    }

    pub fn add(pool: &BufferPool, page: PageId, bytes: &[u8], how: How) {
        let place = if how == How::New { Place::New } else { Place::of(bytes) };
        let next = Held { pool: std::ptr::from_ref(pool) as usize, page, place };
        HELD.with_borrow_mut(|all| {
            if how == How::Waited {
                for held in all.iter().filter(|held| held.pool == next.pool) {
                    assert!(in_order(held, &next), "latch order: {next:?} is waited for while {held:?} is held");
                }
            }
            all.push(next);
        });
    }

    pub fn remove(pool: &BufferPool, page: PageId) {
        let pool = std::ptr::from_ref(pool) as usize;
        HELD.with_borrow_mut(|all| {
            let at = all.iter().rposition(|held| held.pool == pool && held.page == page);
            assert!(at.is_some() || std::thread::panicking(), "a latch is released by the thread that took it");
            at.map(|at| all.swap_remove(at));
        });
    }

    /// True if this thread holds a page latch.
    pub fn any() -> bool {
        HELD.with_borrow(|all| !all.is_empty())
    }

    pub fn describe() -> String {
        HELD.with_borrow(|all| format!("{all:?}"))
    }
}
