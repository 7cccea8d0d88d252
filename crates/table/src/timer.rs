//! A thread that wakes tasks at a deadline: the timeout of metadata lock waits.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::Waker;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

#[derive(Default)]
struct State {
    /// Ordered by deadline; the number keeps equal deadlines apart.
    sleeping: BTreeMap<(Instant, u64), Waker>,
    next_number: u64,
    stopping: bool,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

pub(crate) struct Timer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl Timer {
    pub(crate) fn new() -> Timer {
        Timer { shared: Arc::default(), thread: Mutex::new(None) }
    }

    /// Wakes `waker` at `deadline`, unless the entry is dropped before.
    pub(crate) fn wake_at(&self, deadline: Instant, waker: Waker) -> Alarm {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            *thread = Some(
                std::thread::Builder::new()
                    .name("hk-timer".into())
                    .spawn(move || run(&shared))
                    .expect("the operating system gives a thread"),
            );
        }
        drop(thread);
        let mut state = self.shared.state.lock();
        state.next_number += 1;
        let key = (deadline, state.next_number);
        state.sleeping.insert(key, waker);
        if state.sleeping.first_key_value().is_some_and(|(first, _)| *first == key) {
            self.shared.changed.notify_one();
        }
        Alarm { shared: self.shared.clone(), key }
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.lock().take()
            && thread.thread().id() != std::thread::current().id()
        {
            let _ = thread.join();
        }
    }
}

/// A pending wake-up; dropping it cancels it.
pub(crate) struct Alarm {
    shared: Arc<Shared>,
    key: (Instant, u64),
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.shared.state.lock().sleeping.remove(&self.key);
    }
}

fn run(shared: &Shared) {
    let mut state = shared.state.lock();
    while !state.stopping {
        let now = Instant::now();
        match state.sleeping.first_key_value() {
            None => shared.changed.wait(&mut state),
            Some((&(deadline, _), _)) if deadline > now => {
                shared.changed.wait_until(&mut state, deadline);
            }
            Some(_) => {
                let (_, waker) = state.sleeping.pop_first().expect("there is a first");
                parking_lot::MutexGuard::unlocked(&mut state, || waker.wake());
            }
        }
    }
}
