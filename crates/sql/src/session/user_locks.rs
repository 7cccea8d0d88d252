//! GET_LOCK and friends: named locks of sessions, reentrant, released at the session's end.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use highkey_table::Interrupt;
use parking_lot::{Condvar, Mutex};

/// All user-level locks.
#[derive(Default)]
pub struct UserLocks {
    /// Name to (connection id, count).
    held: Mutex<HashMap<String, (u64, u64)>>,
    released: Condvar,
}

impl UserLocks {
    /// False after the timeout or an interrupt.
    pub fn acquire(&self, name: &str, id: u64, timeout: Duration, interrupt: &Interrupt) -> bool {
        let end = Instant::now() + timeout;
        let mut held = self.held.lock();
        loop {
            match held.get_mut(name) {
                None => {
                    held.insert(name.to_owned(), (id, 1));
                    return true;
                }
                Some((owner, count)) if *owner == id => {
                    *count += 1;
                    return true;
                }
                Some(_) => {}
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || interrupt.is_raised() {
                return false;
            }
            // Short waits, so that a KILL is seen.
            self.released.wait_for(&mut held, left.min(Duration::from_millis(20)));
        }
    }

    /// `None`: no such lock; false: another session's.
    pub fn release(&self, name: &str, id: u64) -> Option<bool> {
        let mut held = self.held.lock();
        match held.get_mut(name) {
            None => None,
            Some((owner, _)) if *owner != id => Some(false),
            Some((_, count)) => {
                *count -= 1;
                if *count == 0 {
                    held.remove(name);
                    self.released.notify_all();
                }
                Some(true)
            }
        }
    }

    /// How many were released.
    pub fn release_all(&self, id: u64) -> u64 {
        let mut held = self.held.lock();
        let mut released = 0;
        held.retain(|_, (owner, count)| {
            if *owner == id {
                released += *count;
            }
            *owner != id
        });
        if released > 0 {
            self.released.notify_all();
        }
        released
    }

    pub fn owner(&self, name: &str) -> Option<u64> {
        self.held.lock().get(name).map(|(owner, _)| *owner)
    }
}
