//! A statement that goes on for long lets the other tasks of its thread have a turn now and then: they may be commits, KILLs, new connections.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// For how long a thread is kept.
const TURN: Duration = Duration::from_millis(1);
/// The most steps of work from one look at the clock to the next; each is a row or so.
const STEPS: usize = 32;

/// Since when a task has kept its thread.
#[derive(Default)]
pub(crate) struct Pace {
    steps: usize,
    /// The next look at the clock is after more steps than these: after one where steps take long, as of rows with heavy functions.
    unwatched: usize,
    since: Option<Instant>,
}

impl Pace {
    /// The thread is the task's anew: what others took of the time is not counted.
    pub fn begin_turn(&mut self) {
        self.since = Some(Instant::now());
    }

    /// To be asked after some steps of work. True now and then: it is time to [`give_way`], and then for another turn.
    pub fn is_due(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_add(steps);
        if self.steps <= self.unwatched {
            return false;
        }
        self.steps = 0;
        let now = Instant::now();
        let due = self.since.is_some_and(|since| now - since >= TURN);
        self.since.get_or_insert(now);
        self.unwatched = if due { 0 } else { (2 * self.unwatched + 1).min(STEPS - 1) };
        due
    }
}

/// Lets the other tasks of the thread run, whatever executes them.
pub(crate) fn give_way() -> GiveWay {
    GiveWay(false)
}

pub(crate) struct GiveWay(bool);

impl Future for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_ends_when_its_time_is_over() {
        let mut pace = Pace::default();
        assert!(!pace.is_due(STEPS), "the first look begins the turn");
        std::thread::sleep(TURN);
        assert!(!pace.is_due(1), "not looked at for every step");
        assert!(pace.is_due(STEPS));
    }

    #[test]
    fn long_steps_are_looked_at_one_by_one() {
        let mut pace = Pace::default();
        assert!(!pace.is_due(1), "the first look begins the turn");
        std::thread::sleep(TURN);
        assert!(!pace.is_due(1) && pace.is_due(1));
        for _ in 0..3 {
            pace.begin_turn();
            std::thread::sleep(TURN);
            assert!(pace.is_due(1));
        }
    }

    #[test]
    fn the_turns_of_others_are_not_counted() {
        let mut pace = Pace::default();
        assert!(!pace.is_due(1), "the first look begins the turn");
        let given_way = Instant::now();
        std::thread::sleep(TURN);
        pace.begin_turn();
        assert!(pace.since.is_some_and(|since| since - given_way >= TURN));
    }
}
