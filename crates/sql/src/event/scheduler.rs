//! The scheduler: waits for the moments at which events run, and lets each run in a session of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use highkey_table::{EventDef, EventStatus};
use highkey_types::{MySqlError, Str};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::schedule::{Next, next_run};
use crate::execute::DiscardingSink;
use crate::parse::print::quote;
use crate::session::{ClientInfo, Instance, ProcessEntry, Session, clock_micros};
use crate::variables::{self, VarValue};

/// For how long it sleeps at most: the clock may be set meanwhile.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);
/// For how long one event may keep the others waiting while its schema or itself is locked.
const PATIENCE: Duration = Duration::from_millis(100);
/// What could not be noted is tried again after so many seconds.
const RETRY: i64 = 10;
/// A clock that goes back by more seconds has been set: what was to come by the one before is planned again. By fewer, no moment comes twice.
const SET_BACK: i64 = 60;
/// Never: of an event whose last run has begun.
const NEVER: i64 = i64::MAX;

/// Runs events as long as `event_scheduler` is ON, until `stop` becomes true; returns when the last of them has ended.
pub async fn run_events(instance: Arc<Instance>, mut stop: watch::Receiver<bool>) {
    let mut runs = JoinSet::new();
    let mut scheduler: Option<Scheduler> = None;
    loop {
        while runs.try_join_next().is_some() {}
        if instance.global_text("event_scheduler") != "ON" {
            scheduler = None;
        } else if scheduler.is_none() {
            scheduler = Some(Scheduler::new(instance.clone(), stop.clone()));
        }
        let sleep = match &mut scheduler {
            Some(scheduler) => scheduler.turn(&mut runs).await,
            None => LONGEST_SLEEP,
        };
        tokio::select! {
            () = instance.event_changes().notified() => {}
            () = tokio::time::sleep(sleep) => {}
            () = killed(scheduler.as_ref()) => turn_off(&instance),
            () = stopped(&mut stop) => break,
        }
    }
    drop(scheduler);
    while runs.join_next().await.is_some() {}
}

async fn stopped(stop: &mut watch::Receiver<bool>) {
    // Nobody can stop it any more: so it is.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// KILL of the scheduler.
async fn killed(scheduler: Option<&Scheduler>) {
    match scheduler {
        Some(scheduler) => scheduler.process.connection_killed().await,
        None => std::future::pending().await,
    }
}

fn turn_off(instance: &Instance) {
    let id = variables::find("event_scheduler").expect("in the table");
    instance.update_globals(|globals| globals.set(id, VarValue::Text("OFF".into())));
}

fn now() -> i64 {
    clock_micros().div_euclid(1_000_000)
}

/// An event that is to run.
struct Planned {
    def: Arc<EventDef>,
    /// In seconds since 1970, UTC.
    at: i64,
}

impl Planned {
    /// That moment is the definition's: it is the one that has been planned with, or says the same of when it runs.
    fn is_of(&self, def: &Arc<EventDef>) -> bool {
        let said = |def: &EventDef| (def.schedule, def.time_zone.clone(), def.last_executed);
        Arc::ptr_eq(&self.def, def) || (self.at != NEVER && said(&self.def) == said(def))
    }
}

struct Scheduler {
    instance: Arc<Instance>,
    process: Arc<ProcessEntry>,
    stop: watch::Receiver<bool>,
    /// Since when it is there, in seconds since 1970, UTC.
    since: i64,
    /// When it planned last.
    planned: i64,
    /// By schema and name.
    queue: BTreeMap<(Str, Str), Planned>,
}

impl Drop for Scheduler {
    fn drop(&mut self) {
        self.instance.forget_daemon(self.process.id());
    }
}

impl Scheduler {
    fn new(instance: Arc<Instance>, stop: watch::Receiver<bool>) -> Scheduler {
        let process = instance.register_daemon("event_scheduler");
        let now = now();
        Scheduler { instance, process, stop, since: now, planned: now, queue: BTreeMap::new() }
    }

    /// Begins all runs that are due; for how long there is nothing to do then.
    async fn turn(&mut self, runs: &mut JoinSet<()>) -> Duration {
        for (def, next) in self.plan() {
            let stopped = *self.stop.borrow();
            if stopped {
                break;
            }
            match next {
                Next::At(at) => self.begin(runs, def, at).await,
                Next::Over => {
                    self.plan_at(&def, NEVER);
                    if self.may_note() {
                        runs.spawn(end(self.instance.clone(), def));
                    }
                }
            }
        }
        self.process.set_command("Daemon", if self.queue.is_empty() { "Waiting on empty queue" } else { "Waiting for next activation" });
        let next = self.queue.values().map(|planned| planned.at).min().unwrap_or(NEVER);
        let micros = next.saturating_mul(1_000_000).saturating_sub(clock_micros());
        Duration::from_micros(micros.max(0) as u64).min(LONGEST_SLEEP)
    }

    /// Makes the queue anew of the catalog's events: what was in it stays, what runs by another definition is planned again. Returns what is due, the longest first,
    /// and what should not be there any more.
    fn plan(&mut self) -> Vec<(Arc<EventDef>, Next)> {
        let now = now();
        let mut before = std::mem::take(&mut self.queue);
        if now + SET_BACK < self.planned {
            before.retain(|_, planned| planned.at == NEVER);
        }
        self.planned = now;
        let mut due = Vec::new();
        let catalog = self.instance.database().catalog();
        for def in catalog.all_events().filter(|def| def.status == EventStatus::Enabled) {
            let planned = before.remove(&(def.schema.clone(), def.name.clone())).filter(|planned| planned.is_of(def));
            match planned.map_or_else(|| next_run(def, self.seen_from(def, now)), |planned| Next::At(planned.at)) {
                Next::At(at) if at > now => self.plan_at(def, at),
                next => due.push((def.clone(), next)),
            }
        }
        due.sort_by_key(|(_, next)| match next {
            Next::At(at) => *at,
            Next::Over => NEVER,
        });
        due
    }

    /// From when on the moments of an event count that is not planned yet. Of one that was made or altered meanwhile that is then: none is lost until it is seen here.
    fn seen_from(&self, def: &EventDef, now: i64) -> i64 {
        let altered = def.altered_at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
        if altered < self.since { now } else { altered.max(def.last_executed.unwrap_or(altered)).min(now) }
    }

    fn plan_at(&mut self, def: &Arc<EventDef>, at: i64) {
        self.queue.insert((def.schema.clone(), def.name.clone()), Planned { def: def.clone(), at });
    }

    /// What becomes of events may be noted: `super_read_only` is OFF.
    fn may_note(&self) -> bool {
        !self.instance.globals().bool("super_read_only")
    }

    /// The run that was due `at` that moment. That it runs is noted before it does: a server that falls over in it does not run it twice.
    async fn begin(&mut self, runs: &mut JoinSet<()>, def: Arc<EventDef>, at: i64) {
        // The clock may have been set back.
        let now = now().max(at);
        let next = next_run(&EventDef { last_executed: Some(now), ..EventDef::clone(&def) }, now);
        if !self.may_note() {
            self.plan_at(&def, if let Next::At(at) = next { at } else { NEVER });
            runs.spawn(run(self.instance.clone(), def, false, self.stop.clone()));
            return;
        }
        // One that goes after its last run is the more surely gone for being known as such when the server starts again.
        let status = if next == Next::Over && def.preserve { EventStatus::Disabled } else { EventStatus::Enabled };
        match self.instance.database().note_event_run(&def, Some(now), status, PATIENCE).await {
            Ok(Some(noted)) => {
                if status == EventStatus::Enabled {
                    self.plan_at(&noted, if let Next::At(at) = next { at } else { NEVER });
                }
                runs.spawn(run(self.instance.clone(), noted, next == Next::Over, self.stop.clone()));
            }
            // It is another one by now: the next turn sees whether this moment is that one's, too.
            Ok(None) => {
                self.plan_at(&def, at);
                self.instance.event_changes().notify_one();
            }
            Err(e) => {
                tracing::error!("event {}.{} cannot run: {}", def.schema, def.name, e.message);
                self.plan_at(&def, now + RETRY);
            }
        }
    }
}

/// One run. `is_last`: the event ends with it.
async fn run(instance: Arc<Instance>, def: Arc<EventDef>, is_last: bool, stop: watch::Receiver<bool>) {
    let mut session = Session::of_event(instance.clone(), &def);
    // Who stops the server ends what is in the process list then.
    let stopped = *stop.borrow();
    if stopped {
        return;
    }
    if let Err(e) = session.run_event(&def).await {
        tracing::error!("event {}.{} of {}@{}: {}", def.schema, def.name, def.definer.0, def.definer.1, e.message);
    }
    drop(session);
    if is_last && !def.preserve {
        end(instance, def).await;
    }
}

/// What does not run any more goes, or is disabled.
async fn end(instance: Arc<Instance>, def: Arc<EventDef>) {
    let current = instance.database().catalog().event(&def.schema, &def.name);
    let ended = if def.preserve {
        let patience = Duration::from_secs(instance.global_u64("lock_wait_timeout"));
        instance.database().note_event_run(&def, def.last_executed, EventStatus::Disabled, patience).await.map(drop)
    } else if current.is_some_and(|current| Arc::ptr_eq(&current, &def)) {
        drop_event(instance, &def).await
    } else {
        // Somebody has made another one of it.
        Ok(())
    };
    if let Err(e) = ended {
        tracing::error!("event {}.{} has come to its end and stays: {}", def.schema, def.name, e.message);
    }
}

/// As a statement, which replicas are told of.
async fn drop_event(instance: Arc<Instance>, def: &EventDef) -> Result<(), MySqlError> {
    let client = ClientInfo {
        connection_id: instance.next_connection_id(),
        user: "event_scheduler".into(),
        client_address: "localhost".into(),
        unrestricted: true,
        collation: 255,
        ..ClientInfo::default()
    };
    let mut sink = DiscardingSink::default();
    let text = format!("DROP EVENT IF EXISTS {}.{}", quote(&def.schema), quote(&def.name));
    // The sink takes all that may fail.
    let _ = Session::new(instance, client).execute(text.as_bytes(), &mut sink).await;
    sink.error.map_or(Ok(()), Err)
}
