//! How long a client may be silent.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Ends when a client has sent nothing for as long as it may. One timer serves all commands: it is not set back by each of them, but looks when it
/// ends whether there was one meanwhile.
pub struct IdleTimer {
    timer: Pin<Box<Sleep>>,
    until: Instant,
}

impl IdleTimer {
    pub fn new() -> IdleTimer {
        let now = Instant::now();
        IdleTimer { timer: Box::pin(sleep_until(now)), until: now }
    }

    /// The client may be silent for so long from now on.
    pub fn begin(&mut self, timeout: Duration) {
        self.until = Instant::now() + timeout;
        if self.until < self.timer.deadline() {
            self.timer.as_mut().reset(self.until);
        }
    }

    /// Waits for the end of the client's time.
    pub async fn ended(&mut self) {
        loop {
            self.timer.as_mut().await;
            if Instant::now() >= self.until {
                return;
            }
            self.timer.as_mut().reset(self.until);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::timeout;

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn the_last_beginning_counts() {
        let mut idle = IdleTimer::new();
        idle.begin(SHORT);
        idle.ended().await;
        idle.begin(LONG);
        assert!(timeout(3 * SHORT, idle.ended()).await.is_err());
        idle.begin(SHORT);
        idle.ended().await;
        // The timer ends once, but the client's time has begun anew.
        idle.begin(SHORT);
        idle.begin(LONG);
        assert!(timeout(3 * SHORT, idle.ended()).await.is_err());
    }
}
