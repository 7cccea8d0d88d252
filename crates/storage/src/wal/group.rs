//! Group commit: the first waiter leads, writes everything appended so far and syncs once for all; the next waiter leads the
//! next round. No thread, no timer.

use super::Wal;
use super::segments::Content;
use crate::error::Result;
use crate::ids::Lsn;
use crate::sync::{Arc, Condvar, Mutex, Ordering};
use crate::waits::{self, FutureWait, WaitKind, Waits};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

/// Log that is written before anybody waits for it: half of what a core's cache holds, as a rule.
const EARLY_BYTES: u64 = 1 << 20;

/// How far a record must have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Need {
    Appended,
    Written,
    Durable,
}

#[derive(Default)]
pub(super) struct Group {
    leading: bool,
    next_id: u64,
    waiters: VecDeque<Waiter>,
}

struct Waiter {
    id: u64,
    lsn: Lsn,
    need: Need,
    waker: Waker,
}

impl Wal {
    fn reached(&self, lsn: Lsn, need: Need) -> bool {
        match need {
            Need::Appended => true,
            Need::Written => lsn.0 < self.written.load(Ordering::Acquire),
            Need::Durable => lsn.0 < self.durable.load(Ordering::Acquire),
        }
    }

    /// Resolves when the record at `lsn` is durable, whatever the flush level. `.wait()` blocks instead.
    #[cfg(test)]
    pub fn wait_durable(self: &Arc<Self>, lsn: Lsn) -> DurableWait {
        DurableWait { wal: self.clone(), lsn, need: Need::Durable, waiting: None, led: false, counted: None }
    }

    /// As `wait_durable`, but as the flush level says unless it is to be `durable` in any case: 1 durable, 2 written to the operating system, 0 at once.
    pub fn wait_commit(self: &Arc<Self>, lsn: Lsn, durable: bool) -> DurableWait {
        self.counters.commit_waits.add(1);
        let need = match self.flush_level() {
            _ if durable => Need::Durable,
            0 => Need::Appended,
            2 => Need::Written,
            _ => Need::Durable,
        };
        DurableWait { wal: self.clone(), lsn, need, waiting: None, led: false, counted: None }
    }

    /// Writes and syncs everything appended so far.
    pub fn flush(&self) -> Result<()> {
        let end = self.end();
        if end <= self.durable() { self.fatal.check() } else { self.wait_blocking(Lsn(end.0 - 1), Need::Durable) }
    }

    /// Blocks until the record at `lsn` is durable.
    pub(crate) fn flush_to(&self, lsn: Lsn) -> Result<()> {
        self.wait_blocking(lsn, Need::Durable)
    }

    pub(super) fn wait_blocking(&self, lsn: Lsn, need: Need) -> Result<()> {
        let mut waiting = None;
        let mut led = false;
        let signal = Arc::new(Signal::default());
        let waker = Waker::from(signal.clone());
        let _counted = (!self.reached(lsn, need)).then(|| waits::blocked(WaitKind::Log));
        loop {
            match self.poll_wait(lsn, need, &mut waiting, &mut led, &waker) {
                Poll::Ready(done) => return done,
                Poll::Pending => signal.wait(),
            }
        }
    }

    /// One look at a wait: done, or lead, or be queued. `waiting` is the queue's id of this waiter.
    fn poll_wait(&self, lsn: Lsn, need: Need, waiting: &mut Option<u64>, led: &mut bool, waker: &Waker) -> Poll<Result<()>> {
        loop {
            if self.reached(lsn, need) {
                self.leave(waiting, *led);
                return Poll::Ready(Ok(()));
            }
            if let Err(e) = self.fatal.check() {
                return Poll::Ready(Err(e));
            }
            let mut group = self.group.lock();
            if self.reached(lsn, need) {
                continue;
            }
            if group.leading {
                match group.waiters.iter_mut().find(|w| Some(w.id) == *waiting) {
                    Some(w) => w.waker.clone_from(waker),
                    None => {
                        let id = group.next_id;
                        group.next_id += 1;
                        *waiting = Some(id);
                        group.waiters.push_back(Waiter { id, lsn, need, waker: waker.clone() });
                    }
                }
                return Poll::Pending;
            }
            group.leading = true;
            if let Some(id) = waiting.take() {
                group.waiters.retain(|w| w.id != id);
            }
            drop(group);
            let result = self.write_out(need == Need::Durable);
            *led = true;
            self.hand_over();
            if let Err(e) = result {
                return Poll::Ready(Err(e));
            }
        }
    }

    /// Writes what has been appended once that is much: while the processor's cache still has it, and so that the disk begins with a large
    /// transaction's log before its commit waits. Called holding no latch.
    pub(super) fn write_early(&self) -> Result<()> {
        let written = self.written.load(Ordering::Relaxed);
        if self.end.load(Ordering::Relaxed).saturating_sub(written) < EARLY_BYTES.min(self.buffer_max() as u64 / 2) {
            return Ok(());
        }
        {
            let mut group = self.group.lock();
            if group.leading {
                return Ok(());
            }
            group.leading = true;
        }
        let _counted = waits::blocked(WaitKind::Log);
        let result = self.write_out(false);
        self.hand_over();
        result
    }

    /// Ends a round: wakes whom it served and one more, who leads the next.
    fn hand_over(&self) {
        let mut served = Vec::new();
        {
            let mut group = self.group.lock();
            group.leading = false;
            let stopped = self.fatal.is_stopped();
            group.waiters.retain_mut(|w| {
                let done = stopped || self.reached(w.lsn, w.need);
                if done {
                    served.push(w.waker.clone());
                }
                !done
            });
            self.counters.group_commits.add(served.len() as u64);
            if let Some(next) = group.waiters.pop_front() {
                served.push(next.waker);
            }
        }
        served.into_iter().for_each(Waker::wake);
    }

    /// Forgets a waiter that will not be polled again. Had it been woken to lead, the next one is.
    fn leave(&self, waiting: &mut Option<u64>, led: bool) {
        let Some(id) = waiting.take() else { return };
        let mut group = self.group.lock();
        let before = group.waiters.len();
        group.waiters.retain(|w| w.id != id);
        let was_woken = before == group.waiters.len();
        if was_woken && !led && !group.leading && let Some(next) = group.waiters.pop_front() {
            drop(group);
            next.waker.wake();
        }
    }

    /// The leader's work: everything appended so far goes to the files, and with `sync` becomes durable.
    fn write_out(&self, sync: bool) -> Result<()> {
        let (base, data, has_events) = {
            let mut tail = self.tail.lock();
            let spare = std::mem::take(&mut tail.spare);
            let data = Arc::new(std::mem::replace(&mut tail.buf, spare));
            self.unsynced_commits.fetch_add(std::mem::take(&mut tail.commits), Ordering::Relaxed);
            let base = tail.base;
            tail.base += data.len() as u64;
            tail.writing = Some((base, data.clone()));
            (base, data, std::mem::take(&mut tail.has_events))
        };
        let end = base + data.len() as u64;
        let result = self.write_and_sync(base, &data, sync);
        if result.is_ok() {
            self.written.fetch_max(end, Ordering::SeqCst);
            self.counters.binlog_groups.add(u64::from(has_events));
            if sync {
                self.durable.fetch_max(end, Ordering::SeqCst);
                self.followed.notify();
            }
        }
        let mut tail = self.tail.lock();
        tail.writing = None;
        if let Ok(mut buf) = Arc::try_unwrap(data)
            && buf.capacity() <= 2 * self.buffer_max()
        {
            buf.clear();
            tail.spare = buf;
        }
        drop(tail);
        result.map_err(|e| self.fatal.stop(&format!("cannot write the log: {e}")))
    }

    fn write_and_sync(&self, base: u64, data: &[u8], sync: bool) -> Result<()> {
        self.fatal.check()?;
        // As a rule they are (I5). Whoever prepares files does it alone: two would fill the same file, one over the other's log.
        self.prepare_to(base, base + data.len() as u64, Content::Blocks)?;
        let mut segments = self.segments.lock();
        if !data.is_empty() {
            let _pending = self.counters.log_writes_pending.enter();
            segments.write(base, data, !sync && data.len() as u64 >= EARLY_BYTES)?;
            self.counters.log_writes.add(1);
        }
        if sync {
            let files = segments.take_unsynced();
            drop(segments);
            let began = Instant::now();
            for file in files {
                let _pending = self.counters.log_fsyncs_pending.enter();
                file.sync()?;
                self.counters.log_fsyncs.add(1);
            }
            let commits = self.unsynced_commits.swap(0, Ordering::Relaxed);
            if commits > 0 {
                self.anatomy.note_sync(commits, began.elapsed());
            }
        }
        Ok(())
    }
}

/// The wait for a record to be durable: a future, or `.wait()`.
pub struct DurableWait {
    wal: Arc<Wal>,
    lsn: Lsn,
    need: Need,
    waiting: Option<u64>,
    led: bool,
    /// From the first look on, unless that one found the record there.
    counted: Option<(FutureWait, Instant)>,
}

impl DurableWait {
    /// Blocks the thread.
    pub fn wait(self) -> Result<()> {
        let began = (!self.wal.reached(self.lsn, self.need)).then(Instant::now);
        self.wal.wait_blocking(self.lsn, self.need)?;
        if let Some(began) = began {
            self.note_wait(began);
        }
        Ok(())
    }

    /// The record is as far as it had to come. The statement is told of the sync that it has waited for.
    fn note_wait(&self, began: Instant) {
        self.wal.anatomy.wait_us.note(began.elapsed().as_micros() as u64);
        if self.need == Need::Durable {
            let (commits, took) = self.wal.anatomy.last_sync();
            if commits > 0 {
                Waits::note_sync(commits, took);
            }
        }
    }
}

impl Future for DurableWait {
    type Output = Result<()>;
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let this = self.get_mut();
        if this.counted.is_none() && this.wal.reached(this.lsn, this.need) {
            return Poll::Ready(Ok(()));
        }
        let (counted, _) = this.counted.get_or_insert_with(|| (FutureWait::begin(WaitKind::Log), Instant::now()));
        let answer = counted.hold(|| this.wal.poll_wait(this.lsn, this.need, &mut this.waiting, &mut this.led, cx.waker()));
        if answer.is_ready()
            && let Some((counted, began)) = this.counted.take()
        {
            counted.end_with_hold();
            this.note_wait(began);
        }
        answer
    }
}

impl Drop for DurableWait {
    fn drop(&mut self) {
        self.wal.leave(&mut self.waiting, self.led);
    }
}

/// Wakes a blocked thread.
#[derive(Default)]
pub(crate) struct Signal {
    set: Mutex<bool>,
    changed: Condvar,
}

impl Signal {
    pub fn wait(&self) {
        let mut set = self.set.lock();
        while !*set {
            self.changed.wait(&mut set);
        }
        *set = false;
    }
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        *self.set.lock() = true;
        self.changed.notify_one();
    }
}
