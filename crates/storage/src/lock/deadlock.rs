//! Deadlock detection by the waiter: a depth-first search of the wait-for graph from the one that just queued up.
//!
//! A waiter waits for the holders of its key that conflict with it and for the conflicting waiters ahead. Every transaction waits for at
//! most one key. The last of a cycle to queue up sees the whole cycle, since all others queued before its search began; so no cycle is
//! missed. The graph changes during the search, so a path may join edges that never stood at one time; a cycle counts only if all its
//! members still wait once it is complete. Then every edge still stands, since who waits has not ended and gives up no lock.

use super::owner::Owner;
use super::table::LockTable;
use super::wait::{LockError, Waiter};
use crate::ids::TxnId;
use crate::sync::{Arc, Ordering};

impl LockTable {
    /// Chooses victims until the waiter is in no cycle any more.
    pub(super) fn break_deadlocks(&self, waiter: &Arc<Waiter>) {
        if !self.deadlock_detect() {
            return;
        }
        // One search at a time: two searches of one cycle would choose two victims.
        let _one = self.search().lock();
        while waiter.outcome().is_none() {
            let Some(cycle) = self.find_cycle(waiter) else { return };
            if cycle.iter().any(|w| w.outcome().is_some()) {
                continue;
            }
            // The first among equals: the cycle begins with who has closed it.
            let victim = (0..cycle.len()).min_by_key(|&n| cycle[n].owner.work.load(Ordering::Relaxed)).expect("a cycle has members");
            if let Some(watcher) = self.deadlock_watcher() {
                watcher(&cycle, victim);
            }
            self.cancel(&cycle[victim], LockError::Deadlock);
        }
    }

    /// The waiters of a cycle through `start`, which is the first of them.
    fn find_cycle(&self, start: &Arc<Waiter>) -> Option<Vec<Arc<Waiter>>> {
        let mut visited: ahash::AHashSet<TxnId> = ahash::AHashSet::new();
        let mut path: Vec<(Arc<Waiter>, Vec<Arc<Owner>>)> = vec![(start.clone(), self.blockers(start))];
        while let Some((_, blockers)) = path.last_mut() {
            let Some(next) = blockers.pop() else {
                path.pop();
                continue;
            };
            if next.id == start.owner.id {
                return Some(path.into_iter().map(|(waiter, _)| waiter).collect());
            }
            if visited.insert(next.id) {
                let waiting = next.waiting.lock().clone();
                if let Some(waiter) = waiting {
                    let blockers = self.blockers(&waiter);
                    path.push((waiter, blockers));
                }
            }
        }
        None
    }
}
