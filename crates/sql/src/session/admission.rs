//! Admission: how many statements work at once (`innodb_thread_concurrency`).
//!
//! The server's threads are as many as processors, so without a limit no statement waits for another one's turn, and that is the default.
//! With one, a SELECT, INSERT, UPDATE, DELETE or LOAD DATA has a turn while a thread runs it, and none while it waits for a lock, the log, the client,
//! threads of its own, SLEEP() or GET_LOCK(). All other statements need none: so nobody who must let others go on, by COMMIT or KILL, is ever kept
//! waiting by those.

use std::cell::RefCell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};
use std::task::Poll;

use parking_lot::Mutex;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};

type Turn = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

thread_local! {
    /// Of the statement that the thread runs.
    static TURN: RefCell<Option<OwnedSemaphorePermit>> = const { RefCell::new(None) };
}

/// What the thread runs is about to wait, and keeps the thread.
pub(super) fn give_up_turn() {
    TURN.take();
}

/// The thread's turn ends with this, however the statement does.
struct Taken;

impl Taken {
    fn take(turn: OwnedSemaphorePermit) -> Taken {
        TURN.set(Some(turn));
        Taken
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        give_up_turn();
    }
}

/// The turns of all sessions.
#[derive(Default)]
pub(crate) struct Admission {
    limited: AtomicBool,
    /// With the limit.
    turns: Mutex<Option<(Arc<Semaphore>, usize)>>,
    queued: AtomicUsize,
}

/// One statement of `Admission::queued`.
struct Queued<'a>(&'a AtomicUsize);

impl<'a> Queued<'a> {
    fn enter(queued: &'a AtomicUsize) -> Queued<'a> {
        queued.fetch_add(1, Ordering::Relaxed);
        Queued(queued)
    }
}

impl Drop for Queued<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    /// From now on at most so many; 0: any number. Statements that wait for a turn get one of the limit before.
    pub fn set_limit(&self, limit: usize) {
        *self.turns.lock() = (limit > 0).then(|| (Arc::new(Semaphore::new(limit)), limit));
        self.limited.store(limit > 0, Ordering::Relaxed);
    }

    /// For statements that are a part of another one: they need no turn of their own.
    pub fn of_parts() -> &'static Admission {
        static ANY_NUMBER: LazyLock<Admission> = LazyLock::new(Admission::default);
        &ANY_NUMBER
    }

    /// Statements that have a turn, and those that wait for one; 0 without a limit.
    pub fn load(&self) -> (usize, usize) {
        let inside = self.turns.lock().as_ref().map_or(0, |(turns, limit)| limit.saturating_sub(turns.available_permits()));
        (inside, self.queued.load(Ordering::Relaxed))
    }

    /// Runs a statement, each piece of it in a turn. (A future by value would have room here twice.)
    pub async fn run<F: Future>(&self, mut statement: Pin<&mut F>) -> F::Output {
        let mut waiting: Option<Turn> = None;
        let mut queued: Option<Queued<'_>> = None;
        poll_fn(|cx| {
            if waiting.is_none() && self.limited.load(Ordering::Relaxed) {
                waiting = self.turns.lock().as_ref().map(|(turns, _)| Box::pin(turns.clone().acquire_owned()) as Turn);
            }
            let turn = match &mut waiting {
                None => None,
                Some(wait) => match wait.as_mut().poll(cx) {
                    Poll::Pending => {
                        queued.get_or_insert_with(|| Queued::enter(&self.queued));
                        return Poll::Pending;
                    }
                    Poll::Ready(turn) => turn.ok(),
                },
            };
            (waiting, queued) = (None, None);
            // What is a part of another statement leaves that one its turn.
            let _taken = turn.map(Taken::take);
            statement.as_mut().poll(cx)
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::*;

    /// Runs `statements` that each work in some pieces with a wait behind each; the most that worked at once.
    async fn most_at_once(admission: &Arc<Admission>, statements: usize) -> usize {
        let (working, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let all = (0..statements).map(|_| {
            let (admission, working, most) = (admission.clone(), working.clone(), most.clone());
            tokio::spawn(async move {
                let statement = async {
                    for _ in 0..5 {
                        most.fetch_max(working.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::sleep(Duration::from_millis(2));
                        working.fetch_sub(1, Ordering::SeqCst);
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                };
                admission.run(pin!(statement)).await;
            })
        });
        for one in all.collect::<Vec<_>>() {
            one.await.unwrap();
        }
        most.load(Ordering::SeqCst)
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn at_most_so_many_work_at_once() {
        let admission = Arc::new(Admission::default());
        assert!(most_at_once(&admission, 8).await > 2);
        for limit in [1, 2] {
            admission.set_limit(limit);
            assert!(most_at_once(&admission, 8).await <= limit);
        }
        admission.set_limit(0);
        assert!(most_at_once(&admission, 8).await > 2);
    }

    #[tokio::test]
    async fn who_waits_keeps_nobody_from_a_turn() {
        let admission = Arc::new(Admission::default());
        admission.set_limit(1);
        let (send, receive) = tokio::sync::oneshot::channel();
        let waits = tokio::spawn({
            let admission = admission.clone();
            async move { admission.run(pin!(receive)).await }
        });
        tokio::task::yield_now().await;
        // One that is given up while it waits for a turn takes none with it.
        let holds = admission.turns.lock().clone().unwrap().0.acquire_owned().await.unwrap();
        let given_up = tokio::time::timeout(Duration::from_millis(5), admission.run(pin!(async {}))).await;
        assert!(given_up.is_err());
        drop(holds);
        admission.run(pin!(async { send.send(7).unwrap() })).await;
        assert_eq!(waits.await.unwrap(), Ok(7));
        let (turns, _) = admission.turns.lock().clone().unwrap();
        admission
            .run(pin!(async {
                assert_eq!(turns.available_permits(), 0);
                give_up_turn();
                assert_eq!(turns.available_permits(), 1);
            }))
            .await;
    }
}
