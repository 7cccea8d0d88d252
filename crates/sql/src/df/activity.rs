//! What the queries of a running statement are at, for others to see.

use std::sync::atomic::{AtomicU8, Ordering};

use super::parallel::SerialReason;

/// The queries on DataFusion of a connection's running statement.
#[derive(Debug, Default)]
pub struct QueryActivity {
    /// On how many threads they ran: a bit for several, and one for each reason why on one.
    degrees: AtomicU8,
}

const PARALLEL: u8 = 1 << SerialReason::ALL.len();

impl QueryActivity {
    /// Another statement begins.
    pub fn clear(&self) {
        self.degrees.store(0, Ordering::Relaxed);
    }

    /// A query is about to run on so many threads, or on one.
    pub(super) fn note_degree(&self, degree: Result<usize, SerialReason>) {
        let bit = degree.map_or_else(|reason| 1 << reason as u8, |_| PARALLEL);
        self.degrees.fetch_or(bit, Ordering::Relaxed);
    }

    /// A query of the statement ran on several threads.
    pub fn was_parallel(&self) -> bool {
        self.degrees.load(Ordering::Relaxed) & PARALLEL != 0
    }

    /// By [`SerialReason`]: a query of the statement stayed on one thread for it. One that started anew may have run in more ways than one.
    pub fn was_serial(&self) -> [bool; SerialReason::ALL.len()] {
        let degrees = self.degrees.load(Ordering::Relaxed);
        SerialReason::ALL.map(|reason| degrees & (1 << reason as u8) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_is_told_apart() {
        let activity = QueryActivity::default();
        assert!(!activity.was_parallel());
        activity.note_degree(Ok(2));
        assert!(activity.was_parallel());
        assert_eq!(activity.was_serial(), [false; 5]);
        for (n, reason) in SerialReason::ALL.into_iter().enumerate() {
            activity.clear();
            activity.note_degree(Err(reason));
            assert!(!activity.was_parallel());
            assert_eq!(activity.was_serial().iter().position(|serial| *serial), Some(n));
        }
    }
}
