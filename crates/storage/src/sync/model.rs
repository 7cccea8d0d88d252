//! The same names as in `real`, on shuttle's primitives: every operation is a place where another thread may run.

pub use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};
pub use std::sync::Arc;
use std::ops::{Deref, DerefMut};
use std::time::Duration;

/// One poll, then park: spinning only makes schedules longer.
pub const SPIN_LIMIT: u32 = 1;

pub fn spin_hint() {
    shuttle::thread::yield_now();
}

pub mod thread {
    pub use shuttle::thread::*;
    pub fn available_parallelism() -> std::io::Result<std::num::NonZeroUsize> {
        Ok(std::num::NonZeroUsize::MIN)
    }
}

/// As `parking_lot::Mutex`.
#[derive(Default, Debug)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

/// As `parking_lot::MutexGuard`. `None` only inside a condition variable's wait.
pub struct MutexGuard<'a, T>(Option<shuttle::sync::MutexGuard<'a, T>>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(shuttle::sync::Mutex::new(value))
    }
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard(Some(self.0.lock().unwrap_or_else(|e| e.into_inner())))
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        self.0.as_ref().expect("held")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.0.as_mut().expect("held")
    }
}

/// As `parking_lot::Condvar`; a timed wait does not time out.
#[derive(Default, Debug)]
pub struct Condvar(shuttle::sync::Condvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let inner = guard.0.take().expect("held");
        guard.0 = Some(self.0.wait(inner).unwrap_or_else(|e| e.into_inner()));
    }
    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, _time: Duration) {
        self.wait(guard);
    }
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
    pub fn notify_all(&self) {
        self.0.notify_all();
    }
}

/// As `parking_lot::RwLock`.
#[derive(Default, Debug)]
pub struct RwLock<T>(shuttle::sync::RwLock<T>);

impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock(shuttle::sync::RwLock::new(value))
    }
    pub fn read(&self) -> shuttle::sync::RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(|e| e.into_inner())
    }
    pub fn write(&self) -> shuttle::sync::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(|e| e.into_inner())
    }
}

pub mod park {
    //! A parking lot of one queue.
    use super::{Arc, AtomicBool, Mutex, Ordering};

    struct Parked {
        address: usize,
        token: usize,
        woken: Arc<AtomicBool>,
        thread: shuttle::thread::Thread,
    }

    shuttle::lazy_static! {
        static ref LOT: Mutex<Vec<Parked>> = Mutex::new(Vec::new());
    }

    #[derive(Clone, Copy, PartialEq, Eq)]
    pub enum Choice {
        Wake,
        Skip,
        Stop,
    }

    pub fn park(address: usize, token: usize, validate: impl FnOnce() -> bool) {
        let woken = Arc::new(AtomicBool::new(false));
        {
            let mut lot = LOT.lock();
            if !validate() {
                return;
            }
            lot.push(Parked { address, token, woken: woken.clone(), thread: shuttle::thread::current() });
        }
        while !woken.load(Ordering::SeqCst) {
            shuttle::thread::park();
        }
    }

    pub fn unpark(address: usize, mut choose: impl FnMut(usize) -> Choice, done: impl FnOnce()) {
        let mut lot = LOT.lock();
        let mut woken = Vec::new();
        let mut at = 0;
        while at < lot.len() {
            if lot[at].address == address {
                match choose(lot[at].token) {
                    Choice::Wake => {
                        woken.push(lot.remove(at));
                        continue;
                    }
                    Choice::Skip => {}
                    Choice::Stop => break,
                }
            }
            at += 1;
        }
        done();
        drop(lot);
        for parked in woken {
            parked.woken.store(true, Ordering::SeqCst);
            parked.thread.unpark();
        }
    }
}
