//! Workers for what a statement does beside its session and is no query: taken from those of queries, on the engine's threads, and giving way as
//! queries do.

use std::sync::Arc;

use datafusion::common::DataFusionError;
use highkey_table::Waits;
use highkey_types::MySqlError;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::activity::QueryActivity;
use super::engine::QueryEngine;
use super::error::to_mysql;
use super::give_way::{Pace, Report};
use super::parallel::{ParallelSettings, SerialReason, TakenWorkers};
use super::scan::ROW_COST;

/// Workers that a statement has; dropping it gives them back.
pub struct Crew {
    engine: Arc<QueryEngine>,
    taken: TakenWorkers,
    /// None: a query of the statement is one.
    _report: Option<Report>,
}

impl Crew {
    /// So many rows are work for workers.
    pub fn is_worth(settings: &ParallelSettings, rows: u64) -> bool {
        ROW_COST * rows as f64 >= settings.cost_threshold as f64
    }

    /// Workers for a statement, as the settings allow, at most `most`. None if that is fewer than two, or fewer are free, which is counted.
    pub async fn take(
        engine: &Arc<QueryEngine>,
        settings: &ParallelSettings,
        most: usize,
        activity: &QueryActivity,
        is_killed: impl Fn() -> bool,
    ) -> Option<Crew> {
        let wanted = settings.wanted().ok()?.min(most);
        if wanted < 2 {
            return None;
        }
        let taken = engine.workers().take(wanted, settings.max_workers, settings.queue_timeout, is_killed).await;
        let Some(taken) = taken else {
            engine.workers().stayed_serial(SerialReason::Workers);
            activity.note_degree(Err(SerialReason::Workers));
            return None;
        };
        activity.note_degree(Ok(taken.count));
        let report = engine.give_way().begin(Handle::current());
        Some(Crew { engine: engine.clone(), taken, _report: Some(report) })
    }

    /// Workers for a statement one of whose queries runs, without waiting for them.
    pub fn take_more(engine: &Arc<QueryEngine>, settings: &ParallelSettings, most: usize, activity: &QueryActivity) -> Option<Crew> {
        let taken = engine.workers().take_free(settings.wanted().ok()?.min(most), settings.max_workers, !activity.was_parallel())?;
        activity.note_degree(Ok(taken.count));
        Some(Crew { engine: engine.clone(), taken, _report: None })
    }

    /// So many may be at work.
    pub fn workers(&self) -> usize {
        self.taken.count
    }

    /// Has a worker make what `make` gives until that is None; so much of it may wait as `ahead` says. Between two steps `make` asks its argument
    /// whether to go on: if not, nobody wants more, and it is to give None. It may block.
    pub fn produce<T: Send + 'static>(
        &self,
        ahead: usize,
        mut make: impl FnMut(&mut dyn FnMut() -> bool) -> Result<Option<T>, MySqlError> + Send + 'static,
    ) -> Making<T> {
        let (send, made) = mpsc::channel(ahead);
        let waits = Waits::current();
        let give_way = self.engine.give_way().clone();
        let task = self.engine.handle().spawn_blocking(move || {
            let mut pace = Pace::default();
            loop {
                let mut go_on = || {
                    pace.rest_blocking(&give_way);
                    !send.is_closed()
                };
                let mut step = || make(&mut go_on);
                // The statement's own work, but for the waits until somebody takes it.
                let made = match &waits {
                    Some(waits) => waits.work(step),
                    None => step(),
                };
                let Some(made) = made.transpose() else { return };
                let failed = made.is_err();
                if send.blocking_send(made).is_err() || failed {
                    return;
                }
            }
        });
        Making { made, task }
    }
}

/// What a worker makes. Dropping it ends the worker, which may still be at a step.
pub struct Making<T> {
    made: mpsc::Receiver<Result<T, MySqlError>>,
    task: JoinHandle<()>,
}

impl<T> Making<T> {
    /// The next of it. After None or an error there is nothing more to ask for.
    pub async fn next(&mut self) -> Result<Option<T>, MySqlError> {
        match self.made.recv().await {
            Some(made) => made.map(Some),
            None => match (&mut self.task).await {
                Ok(()) => Ok(None),
                Err(_) => Err(to_mysql(&DataFusionError::Internal("a worker panicked".into()))),
            },
        }
    }

    /// Nobody wants more. Returns when the worker has let go of everything.
    pub async fn end(mut self) {
        self.made.close();
        if !self.task.is_finished() {
            // A worker that has panicked has told so, or is not asked any more.
            let _ = self.task.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{TryRecvError, channel};

    use super::super::engine::EngineOptions;
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn workers_make_until_nobody_wants_more() {
        let dir = tempfile::tempdir().unwrap();
        let spill_dir = dir.path().join("spill");
        let engine = QueryEngine::new(EngineOptions { threads: 2, memory_bytes: 16 << 20, temp_bytes: 1 << 20, column_cache_bytes: 0, spill_dir }).unwrap();
        let settings = ParallelSettings { enabled: true, default_degree: 3, cost_threshold: 10, max_workers: 4, ..ParallelSettings::serial() };
        let activity = QueryActivity::default();
        assert!(!Crew::is_worth(&settings, 50) && Crew::is_worth(&settings, 1000));
        assert!(Crew::take(&engine, &settings, 1, &activity, || false).await.is_none(), "one is no help");
        assert!(!activity.was_parallel());
        let crew = Crew::take(&engine, &settings, 8, &activity, || false).await.unwrap();
        assert_eq!((crew.workers(), engine.workers().running()), (3, 3));
        assert!(Crew::take_more(&engine, &settings, 8, &activity).is_none(), "one is left");

        let mut n = 0;
        let mut counting = crew.produce(2, move |go_on| {
            n += 1;
            Ok((go_on() && n <= 3).then_some(n))
        });
        for expected in [Some(1), Some(2), Some(3), None] {
            assert_eq!(counting.next().await.unwrap(), expected);
        }
        let (held, is_held) = channel::<()>();
        let mut endless = crew.produce(1, move |go_on| {
            let _held = &held;
            Ok(go_on().then_some(7))
        });
        assert_eq!(endless.next().await.unwrap(), Some(7));
        endless.end().await;
        assert_eq!(is_held.try_recv(), Err(TryRecvError::Disconnected), "it has let go");
        let mut failing = crew.produce(1, |_| -> Result<Option<()>, MySqlError> { panic!("for the test") });
        assert!(failing.next().await.is_err(), "a panic is no end");
        failing.end().await;
        drop(crew);
        assert_eq!((engine.workers().running(), engine.workers().statements()), (0, 1));
    }
}
