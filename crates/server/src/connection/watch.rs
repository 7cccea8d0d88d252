//! Looks after a running statement whether its client is still there.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use highkey_sql::ProcessEntry;
use tokio::sync::Mutex;

use super::timer::Timer;
use super::wire::{Stream, Wire};

/// How long a statement runs before its client is looked for, and until it is looked for again.
const INTERVAL: Duration = Duration::from_secs(1);

/// One connection's watch. It asks the system about the socket and reads nothing: what the client has sent already, and it may have sent the next
/// commands, stays where it is.
pub struct Watch {
    stream: Arc<Mutex<Box<dyn Stream>>>,
    timer: Timer,
}

impl Watch {
    pub fn new(wire: &Wire) -> Self {
        Self { stream: wire.stream(), timer: Timer::new() }
    }

    /// Runs a statement to its end; if the client leaves before, one that only has rows for it is told to stop.
    pub async fn over<F: Future>(&mut self, process: &ProcessEntry, mut statement: Pin<&mut F>) -> F::Output {
        self.timer.begin(INTERVAL);
        loop {
            tokio::select! {
                biased;
                done = statement.as_mut() => return done,
                () = self.timer.ended() => {
                    // Whoever has the stream reads or writes, and sees for itself.
                    if self.stream.try_lock().is_ok_and(|stream| stream.is_closed_by_peer()) {
                        process.client_left();
                    }
                    self.timer.begin(INTERVAL);
                }
            }
        }
    }
}
