//! One thread for the timeouts of all lock waits.

use std::collections::BTreeMap;
use std::sync::Weak;
use std::time::Duration;

use super::table::LockTable;
use super::wait::{LockError, Waiter};
use crate::disk::Clock;
use crate::sync::{Arc, Condvar, Mutex, thread};

/// Waits sorted by deadline. The thread starts with the first wait, so an engine without conflicts has none.
#[derive(Default)]
pub(super) struct Timer {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    next: u64,
    waits: BTreeMap<(Duration, u64), Arc<Waiter>>,
    thread: Option<thread::JoinHandle<()>>,
    stopped: bool,
}

impl Timer {
    pub fn add(&self, table: &Arc<LockTable>, deadline: Duration, waiter: &Arc<Waiter>) -> u64 {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.waits.insert((deadline, number), waiter.clone());
        if state.thread.is_none() && !state.stopped {
            let table = Arc::downgrade(table);
            let run = move || run(table);
            state.thread = thread::Builder::new().name("lock-timer".into()).spawn(run).ok();
        }
        if state.waits.first_key_value().is_some_and(|(first, _)| *first == (deadline, number)) {
            self.changed.notify_all();
        }
        number
    }

    pub fn remove(&self, deadline: Duration, number: u64) {
        self.state.lock().waits.remove(&(deadline, number));
    }

    pub fn stop(&self) {
        let thread = {
            let mut state = self.state.lock();
            state.stopped = true;
            self.changed.notify_all();
            state.thread.take()
        };
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            thread.join().expect("the lock timer does not panic");
        }
    }

    /// Takes the waits whose deadline has passed; without any, sleeps until the next one or a second. `None` once stopped.
    fn expired(&self, clock: &dyn Clock) -> Option<Vec<Arc<Waiter>>> {
        let mut state = self.state.lock();
        if state.stopped {
            return None;
        }
        let now = clock.now();
        let mut expired = Vec::new();
        while let Some(first) = state.waits.first_entry() {
            if first.key().0 > now {
                break;
            }
            expired.push(first.remove());
        }
        if expired.is_empty() {
            let next = state.waits.first_key_value().map_or(Duration::from_secs(1), |((d, _), _)| *d - now);
            self.changed.wait_for(&mut state, next.min(Duration::from_secs(1)));
        }
        Some(expired)
    }
}

/// The thread holds the table only weakly between rounds: an engine that is dropped without a shutdown ends it too.
fn run(table: Weak<LockTable>) {
    while let Some(table) = table.upgrade() {
        let Some(expired) = table.timer().expired(table.clock()) else { return };
        for waiter in expired {
            table.cancel(&waiter, LockError::Timeout);
        }
    }
}
