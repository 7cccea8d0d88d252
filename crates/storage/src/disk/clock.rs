//! Time, real or simulated.

use crate::sync::Arc;
use parking_lot::Mutex;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Where the engine reads time.
pub trait Clock: Send + Sync {
    /// Monotonic time since an arbitrary start.
    fn now(&self) -> Duration;
    /// Microseconds since 1970.
    fn wall_micros(&self) -> u64;
}

/// The machine's clocks.
pub struct SystemClock {
    start: Instant,
}

impl SystemClock {
    pub fn new() -> SystemClock {
        SystemClock { start: Instant::now() }
    }
}

impl Default for SystemClock {
    fn default() -> SystemClock {
        SystemClock::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Duration {
        self.start.elapsed()
    }
    fn wall_micros(&self) -> u64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
    }
}

/// Nanoseconds that this thread has spent on a processor; 0 where the system does not say.
pub(crate) fn thread_cpu() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes one `timespec`, which is this function's own.
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut now) };
    if failed == 0 { now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64 } else { 0 }
}

/// A clock that stands still until told to move.
#[derive(Clone, Default)]
pub struct SimClock {
    now: Arc<Mutex<Duration>>,
}

impl SimClock {
    pub fn new() -> SimClock {
        SimClock::default()
    }
    /// Time passes, for tests.
    pub fn advance(&self, by: Duration) {
        *self.now.lock() += by;
    }
}

impl Clock for SimClock {
    fn now(&self) -> Duration {
        *self.now.lock()
    }
    fn wall_micros(&self) -> u64 {
        1_000_000_000_000_000 + self.now.lock().as_micros() as u64
    }
}
