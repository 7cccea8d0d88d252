//! The background threads: `hk-cleaner` keeps frames free and the log's tail short, `hk-log` flushes the log once a second.

use super::Store;
use crate::error::Result;
use crate::sync::{Arc, AtomicBool, Condvar, Mutex, Ordering};
use std::sync::Weak;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

/// How often the cleaner looks.
const CLEANER_TICK: Duration = Duration::from_millis(50);
/// How often a log that no commit flushes is made durable.
const LOG_TICK: Duration = Duration::from_secs(1);
/// Ticks between checkpoints of an engine that is not pressed for log space.
const CHECKPOINT_TICKS: u32 = 200;

/// The running threads; joined by `join`.
#[derive(Default)]
pub(super) struct Threads {
    handles: Vec<JoinHandle<()>>,
    stop: Arc<Stop>,
}

#[derive(Default)]
struct Stop {
    asked: AtomicBool,
    mutex: Mutex<()>,
    changed: Condvar,
}

impl Stop {
    /// Sleeps; false when the thread must end.
    fn sleep(&self, time: Duration) -> bool {
        let mut guard = self.mutex.lock();
        if !self.asked.load(Ordering::SeqCst) {
            let _ = self.changed.wait_for(&mut guard, time);
        }
        !self.asked.load(Ordering::SeqCst)
    }
}

impl Threads {
    pub fn start(store: &Arc<Store>) -> Threads {
        let stop = Arc::new(Stop::default());
        let mut handles = Vec::new();
        type Step = fn(&Store, u32) -> Result<()>;
        let loops: [(&str, Duration, Step); 2] =
            [("hk-cleaner", CLEANER_TICK, Store::cleaner_step), ("hk-log", LOG_TICK, |s, _| s.wal.flush())];
        for (name, tick, step) in loops {
            let (store, stop) = (Arc::downgrade(store), stop.clone());
            let spawned = Builder::new().name(name.to_string()).spawn(move || run(&store, &stop, tick, step));
            match spawned {
                Ok(handle) => handles.push(handle),
                // The foreground does the work itself, slower.
                Err(e) => tracing::error!("cannot start the thread {name}: {e}"),
            }
        }
        Threads { handles, stop }
    }

    pub fn join(self) {
        {
            let _guard = self.stop.mutex.lock();
            self.stop.asked.store(true, Ordering::SeqCst);
            self.stop.changed.notify_all();
        }
        let me = std::thread::current().id();
        for handle in self.handles {
            // The last reference to the store may be the thread's own.
            if handle.thread().id() != me {
                let _ = handle.join();
            }
        }
    }
}

fn run(store: &Weak<Store>, stop: &Stop, tick: Duration, step: fn(&Store, u32) -> Result<()>) {
    let mut ticks = 0;
    while stop.sleep(tick) {
        let Some(store) = store.upgrade() else { return };
        ticks += 1;
        if let Err(e) = step(&store, ticks) {
            tracing::warn!("background writing: {e}");
            if store.is_stopped() {
                return;
            }
        }
    }
}

impl Store {
    /// One tick of the cleaner: frames first, then the log's age, then idle writing.
    fn cleaner_step(&self, ticks: u32) -> Result<()> {
        self.wal.prepare_in_background();
        self.pool.populate_ahead();
        let (frames, free, dirty) = self.pool.usage();
        let mut written = 0;
        let low = (frames / 64).clamp(8, 1024);
        if self.pool.cleaner_wanted() || (free < low && dirty > 0) {
            written += self.pool.keep_free(low * 2)?;
        }
        let (age, capacity) = (self.wal.checkpoint_age(), self.wal.capacity());
        if age > capacity / 2 {
            // Half full: write what holds the oldest eighth, and let it go.
            let target = crate::ids::Lsn(self.wal.end().0 - age + capacity / 8);
            self.write_pages_before(target)?;
            return self.checkpoint();
        }
        let per_tick = (u128::from(self.io_capacity.load(Ordering::Relaxed)) * CLEANER_TICK.as_millis() / 1000).max(1) as usize;
        if written < per_tick && (dirty * 2 > frames || ticks % 20 == 0) {
            let pages = if dirty * 2 > frames { per_tick * 4 } else { per_tick };
            self.clean(pages)?;
        }
        if ticks % CHECKPOINT_TICKS == 0 && age > 0 {
            self.checkpoint()?;
        }
        Ok(())
    }
}
