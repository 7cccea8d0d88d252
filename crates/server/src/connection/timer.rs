//! Times that are counted anew for each command.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep_until};

/// Ends so long after it was last begun. One timer serves all commands: it is not set back by each of them, but looks when it
/// ends whether there was one meanwhile.
pub struct Timer {
    timer: Pin<Box<Sleep>>,
    until: Instant,
}

impl Timer {
    pub fn new() -> Timer {
        let now = Instant::now();
        Timer { timer: Box::pin(sleep_until(now)), until: now }
    }

    /// To end so long from now.
    pub fn begin(&mut self, length: Duration) {
        self.until = Instant::now() + length;
        if self.until < self.timer.deadline() {
            self.timer.as_mut().reset(self.until);
        }
    }

    /// Waits for its end. Safe to cancel.
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
        let mut idle = Timer::new();
        idle.begin(SHORT);
        idle.ended().await;
        idle.begin(LONG);
        assert!(timeout(3 * SHORT, idle.ended()).await.is_err());
        idle.begin(SHORT);
        idle.ended().await;
        // The sleep ends once, but the time has begun anew.
        idle.begin(SHORT);
        idle.begin(LONG);
        assert!(timeout(3 * SHORT, idle.ended()).await.is_err());
    }
}
