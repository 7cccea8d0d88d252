//! The tasks that DataFusion begins for a query work for its statement: EXPLAIN ANALYZE tells their processor time, and what they wait for. And it is known
//! when the last of them has ended.

use std::any::Any;
use std::sync::Arc;

use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use highkey_table::Waits;
use tokio::task::futures::TaskLocalFuture;

type Answer = Box<dyn Any + Send>;

/// From now on, in all of the process.
pub(super) fn count_helpers() {
    // It fails where another engine has done it.
    let _ = set_join_set_tracer(&OfStatements);
}

tokio::task_local! {
    /// What the task holds until it ends.
    static ALIVE: Arc<()>;
}

/// `work`, which holds `alive` until it ends, as do all tasks that DataFusion begins for it, and those that they begin.
pub(super) fn holding<F: Future>(alive: Arc<()>, work: F) -> TaskLocalFuture<Arc<()>, F> {
    ALIVE.scope(alive, work)
}

/// Lets a task that a thread begins work for the statement that the thread works for, if its time is measured, and hold what the task holds that begins it.
struct OfStatements;

fn measured() -> Option<Arc<Waits>> {
    Waits::current().filter(|waits| waits.measures_cpu())
}

impl JoinSetTracer for OfStatements {
    fn trace_future(&self, task: BoxFuture<'static, Answer>) -> BoxFuture<'static, Answer> {
        let task = match measured() {
            Some(waits) => async move { waits.assist(task).await }.boxed(),
            None => task,
        };
        match ALIVE.try_with(Arc::clone) {
            Ok(alive) => ALIVE.scope(alive, task).boxed(),
            Err(_) => task,
        }
    }

    fn trace_block(&self, task: Box<dyn FnOnce() -> Answer + Send>) -> Box<dyn FnOnce() -> Answer + Send> {
        let task: Box<dyn FnOnce() -> Answer + Send> = match measured() {
            Some(waits) => Box::new(move || waits.work(task)),
            None => task,
        };
        match ALIVE.try_with(Arc::clone) {
            Ok(alive) => Box::new(move || ALIVE.sync_scope(alive, task)),
            Err(_) => task,
        }
    }
}

#[cfg(test)]
mod tests {
    use datafusion::common::runtime::SpawnedTask;

    use super::*;

    #[tokio::test]
    async fn tasks_hold_what_their_beginner_holds_until_they_end() {
        count_helpers();
        let alive = Arc::new(());
        let (end, ended) = tokio::sync::oneshot::channel::<()>();
        let begin = async {
            SpawnedTask::spawn(async move {
                let below = SpawnedTask::spawn(async move { ended.await });
                let beside = SpawnedTask::spawn_blocking(|| 7);
                assert_eq!(beside.join().await.unwrap(), 7);
                below.join().await.unwrap().unwrap();
            })
        };
        let task = holding(alive.clone(), begin).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(Arc::strong_count(&alive) > 1);
        end.send(()).unwrap();
        task.join().await.unwrap();
        assert_eq!(Arc::strong_count(&alive), 1);
        let outside = SpawnedTask::spawn(async { ALIVE.try_with(|_| ()).is_ok() });
        assert!(!outside.join().await.unwrap());
    }
}
