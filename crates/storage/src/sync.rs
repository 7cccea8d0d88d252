//! Every synchronisation primitive the crate uses comes from here: `parking_lot` and `std` normally, shuttle's
//! under the feature `shuttle`, so that the same code runs under randomised schedules.

#[cfg(not(feature = "shuttle"))]
mod real {
    pub use parking_lot::{Condvar, Mutex, RwLock};
    pub use std::sync::Arc;
    pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
    pub use std::thread;

    /// Hint that this thread waits for another one.
    pub fn spin_hint() {
        std::hint::spin_loop();
    }

    /// How many times a latch is polled before its waiter parks (about a microsecond).
    pub const SPIN_LIMIT: u32 = 40;

    pub mod park {
        //! Parking on the address of a word (`parking_lot_core`).
        use parking_lot_core::{DEFAULT_UNPARK_TOKEN, FilterOp, ParkToken};

        /// Sleeps on `address` if `validate` still holds under the queue's lock.
        pub fn park(address: usize, token: usize, validate: impl FnOnce() -> bool) {
            // SAFETY: the closures neither panic nor call into the parking lot; the address is that of a latch word
            // which outlives the pool's users.
            unsafe {
                parking_lot_core::park(address, validate, || {}, |_, _| {}, ParkToken(token), None);
            }
        }

        /// Wakes the waiters that `choose` says; `done` runs under the queue's lock after the choice.
        pub fn unpark(address: usize, mut choose: impl FnMut(usize) -> Choice, done: impl FnOnce()) {
            // SAFETY: as in `park`.
            unsafe {
                parking_lot_core::unpark_filter(
                    address,
                    |token| match choose(token.0) {
                        Choice::Wake => FilterOp::Unpark,
                        Choice::Skip => FilterOp::Skip,
                        Choice::Stop => FilterOp::Stop,
                    },
                    |_| {
                        done();
                        DEFAULT_UNPARK_TOKEN
                    },
                );
            }
        }

        /// What to do with one parked thread.
        #[derive(Clone, Copy, PartialEq, Eq)]
        pub enum Choice {
            Wake,
            Skip,
            Stop,
        }
    }
}

#[cfg(not(feature = "shuttle"))]
pub use real::*;

#[cfg(feature = "shuttle")]
mod model;
#[cfg(feature = "shuttle")]
pub use model::*;
