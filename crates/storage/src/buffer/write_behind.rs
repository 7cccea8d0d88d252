//! Writing pages while whoever makes them goes on.

use super::BufferPool;
use super::doublewrite::BATCH;
use crate::error::{Error, Result};
use crate::space::PageRun;
use crate::sync::{Arc, AtomicBool, Ordering, thread};
use crate::waits::{self, WaitKind, Waits};
use std::sync::mpsc::{Receiver, Sender, channel};

/// Writes runs of pages that are full, in a thread of its own, and lets the disk begin; [`WriteBehind::finish`] makes all of them durable.
/// Without background threads (simulation) the caller writes them itself. Dropped unfinished it stops soon. What is written counts as page writes of
/// the statement that adds the first pages, whichever thread writes them.
pub(crate) struct WriteBehind {
    pool: Arc<BufferPool>,
    /// Full, and not yet enough to be written.
    waiting: Vec<PageRun>,
    writer: Option<Writer>,
}

struct Writer {
    runs: Sender<Vec<PageRun>>,
    stop: Arc<AtomicBool>,
    thread: thread::JoinHandle<Result<()>>,
}

impl WriteBehind {
    pub fn new(pool: Arc<BufferPool>) -> WriteBehind {
        WriteBehind { pool, waiting: Vec::new(), writer: None }
    }

    /// The run's pages will hardly change again.
    pub fn add(&mut self, run: PageRun) -> Result<()> {
        if !self.pool.background {
            let _counted = waits::blocked(WaitKind::PageWrite);
            return self.pool.begin_write_out(&[run]);
        }
        self.waiting.push(run);
        if self.waiting.iter().map(|run| run.pages as usize).sum::<usize>() < BATCH {
            return Ok(());
        }
        let runs = std::mem::take(&mut self.waiting);
        if self.writer.is_none() {
            self.writer = Writer::spawn(&self.pool);
        }
        // What cannot be handed over is written by `finish`; so is what a writer that failed has left, if the engine still runs then.
        if let Some(writer) = &self.writer {
            let _ = writer.runs.send(runs);
        }
        Ok(())
    }

    /// Writes and synchronises all pages of `runs`, those that were added among them.
    pub fn finish(&mut self, runs: &[PageRun]) -> Result<()> {
        if let Some(writer) = self.writer.take() {
            drop(writer.runs);
            waits::for_helpers(|| writer.thread.join()).map_err(|_| Error::Stopped)??;
        }
        let _counted = waits::blocked(WaitKind::PageWrite);
        self.pool.write_out(runs)
    }
}

impl Drop for WriteBehind {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            writer.stop.store(true, Ordering::Relaxed);
            drop(writer.runs);
            let _ = waits::for_helpers(|| writer.thread.join());
        }
    }
}

impl Writer {
    /// None if the system has no thread to give: everything is then written at the end.
    fn spawn(pool: &Arc<BufferPool>) -> Option<Writer> {
        let (runs, received): (_, Receiver<Vec<PageRun>>) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let (pool, stopped) = (pool.clone(), stop.clone());
        let waits = Waits::current();
        let write_one = move |runs: Vec<PageRun>| {
            let write = || {
                let _counted = waits::blocked(WaitKind::PageWrite);
                pool.begin_write_out(&runs)
            };
            match &waits {
                Some(waits) => waits.work(write),
                None => write(),
            }
        };
        let write = move || received.iter().take_while(|_| !stopped.load(Ordering::Relaxed)).try_for_each(write_one);
        let thread = thread::Builder::new().name("write-behind".into()).spawn(write).ok()?;
        Some(Writer { runs, stop, thread })
    }
}
