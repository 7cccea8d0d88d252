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

    /// Workers for a statement's so many rows, as the settings allow, at most `most`. None if that is not worth them, or fewer than two are free, which is counted.
    pub async fn take(
        engine: &Arc<QueryEngine>,
        settings: &ParallelSettings,
        rows: u64,
        most: usize,
        activity: &QueryActivity,
        is_killed: impl Fn() -> bool,
    ) -> Option<Crew> {
        let wanted = settings.wanted().ok()?.min(most);
        if wanted < 2 || !Crew::is_worth(settings, rows) {
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
