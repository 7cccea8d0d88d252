//! What a statement waited for: one test for each kind, of the kind and not of how long.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;
use crate::buffer::LatchClass;
use crate::disk::thread_cpu;
use crate::waits::{LatchMode, LatchPlace, LatchedPage, TimeSplit, WaitKind, WaitSum, Waits, blocked, for_helpers, waiting};
use Isolation::*;

const LONG_AGO: Duration = Duration::from_secs(1000);

fn split(waits: &Waits) -> TimeSplit {
    waits.split(LONG_AGO)
}

/// Nothing but this was waited for, and the thread was held by it all the time.
#[track_caller]
fn assert_only(waits: &Waits, kind: WaitKind) -> TimeSplit {
    let split = split(waits);
    for other in WaitKind::ALL {
        let sum = split.of(other);
        assert_eq!((sum.count > 0, sum.nanos > 0), (other == kind, other == kind), "{other:?}: {sum:?}");
    }
    split
}

/// Runs a future to its end on this thread.
fn run<F: Future>(future: F) -> F::Output {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(&waker)) {
            Poll::Ready(done) => return done,
            Poll::Pending => std::thread::park(),
        }
    }
}

#[test]
fn who_waits_for_nothing_notes_nothing() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let waits = engine.waits();
    let read = run(waits.clone().attend(async { get(&mut engine.begin(RepeatableRead), t, "a") }));
    assert_eq!(read.as_deref(), Some("1"));
    assert!(!waits.any());
    assert_eq!(split(&waits), TimeSplit { elapsed: LONG_AGO.as_nanos() as u64, cpu: LONG_AGO.as_nanos() as u64, ..TimeSplit::default() });
    assert_eq!(engine.stats().waits, [WaitSum::default(); WaitKind::ALL.len()]);
}

#[test]
fn a_latch_by_index_and_class() {
    let (engine, t) = engine();
    let root = engine.index_size(t).unwrap().root_page;
    let pool = &engine.store().pool;
    let parked = || pool.counters().latch_waits.get();
    let waits = engine.waits();
    let want = |class: Option<LatchClass>| {
        let before = parked();
        let held = pool.fix_exclusive(root, LatchClass::Ordinary).unwrap();
        std::thread::scope(|s| {
            s.spawn(|| {
                waits.work(|| match class {
                    None => drop(pool.fix_shared(root).unwrap()),
                    Some(class) => drop(pool.fix_exclusive(root, class).unwrap()),
                });
            });
            while parked() == before {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(1));
            drop(held);
        });
    };
    let modes = [(None, LatchMode::Shared), (Some(LatchClass::Ordinary), LatchMode::Exclusive), (Some(LatchClass::Smo), LatchMode::Smo)];
    for (class, mode) in modes {
        waits.clear();
        want(class);
        let split = assert_only(&waits, WaitKind::Latch);
        assert_eq!(split.latches.len(), 1);
        let latch = split.latches[0];
        assert_eq!(latch.place, LatchPlace { index: t, page: LatchedPage::Leaf, mode });
        assert_eq!(latch.sum, split.of(WaitKind::Latch));
    }
    let totals = engine.stats();
    assert_eq!(totals.latch_waits.len(), 3);
    assert_eq!(totals.latch_waits.iter().map(|w| w.sum.nanos).sum::<u64>(), totals.waits[WaitKind::Latch as usize].nanos);
    assert_eq!(totals.latch_waits[0].place.to_string().split(' ').next(), Some("leaf"));
    let mut txn = engine.begin(RepeatableRead);
    txn.drop_index(t).unwrap();
    commit(txn);
    purge_all(&engine);
    assert_eq!(engine.stats().latch_waits, [], "the index is gone");
}

#[test]
fn a_row_lock_waited_for_on_a_thread_and_in_a_future() {
    let (engine, t) = engine();
    given(&engine, t, &[("a", "1")]);
    let waits = engine.waits();
    for held in [true, false] {
        waits.clear();
        let mut first = engine.begin(RepeatableRead);
        put(&mut first, t, "a", "2");
        let mut second = engine.begin(RepeatableRead);
        std::thread::scope(|s| {
            let thread = s.spawn(|| {
                run(waits.clone().attend(async {
                    let waiting = wait(second.update(t, b"a", b"3"));
                    if held { waiting.wait() } else { waiting.await }
                }))
            });
            while engine.stats().row_lock_current_waits == 0 {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(1));
            commit(first);
            assert_eq!(thread.join().unwrap(), Ok(()));
        });
        let split = assert_only(&waits, WaitKind::RowLock);
        assert_eq!(split.of(WaitKind::RowLock).count, 1);
        // Waiting is no work, wherever it is done.
        assert!(split.cpu < split.elapsed);
    }
    assert_eq!(engine.stats().waits[WaitKind::RowLock as usize].count, 2);
}

#[test]
fn a_commit_waits_for_the_log() {
    let (engine, t) = engine();
    let waits = engine.waits();
    for level in [1, 2] {
        engine.set_flush_log_at_commit(level);
        waits.clear();
        let mut txn = engine.begin(RepeatableRead);
        put(&mut txn, t, "a", &level.to_string());
        run(waits.clone().attend(txn.commit(b"").unwrap())).unwrap();
        let split = assert_only(&waits, WaitKind::Log);
        assert_eq!(split.of(WaitKind::Log).count, 1);
        waits.clear();
        let mut txn = engine.begin(RepeatableRead);
        put(&mut txn, t, "b", &level.to_string());
        waits.work(|| txn.commit(b"").unwrap().wait()).unwrap();
        assert_only(&waits, WaitKind::Log);
    }
    engine.set_flush_log_at_commit(0);
    waits.clear();
    let mut txn = engine.begin(RepeatableRead);
    put(&mut txn, t, "c", "3");
    run(waits.clone().attend(txn.commit(b"").unwrap())).unwrap();
    assert!(!waits.any(), "level 0 waits for nothing");
}

#[test]
fn a_page_that_is_not_in_memory() {
    let disk = disk(1);
    let t = {
        let engine = open(&disk);
        let t = new_index(&engine);
        given(&engine, t, &[("a", "1")]);
        engine.shutdown().unwrap();
        t
    };
    let engine = open(&disk);
    let waits = engine.waits();
    let mut txn = engine.begin(RepeatableRead);
    assert_eq!(waits.work(|| get(&mut txn, t, "a")).as_deref(), Some("1"));
    assert_only(&waits, WaitKind::PageRead);
    waits.clear();
    assert_eq!(run(waits.clone().attend(async { get(&mut txn, t, "a") })).as_deref(), Some("1"));
    assert!(!waits.any(), "it is in memory now");
}

#[test]
fn pages_that_a_statement_writes_to_get_frames() {
    let disk = disk(1);
    let engine = open_with(&disk, Options { buffer_pool_bytes: 0, redo_log_capacity: 64 << 20, ..options() }).unwrap();
    let t = new_index(&engine);
    let waits = engine.waits();
    let mut txn = engine.begin(RepeatableRead);
    let value = "x".repeat(4000);
    waits.work(|| {
        for n in 0..2000 {
            put(&mut txn, t, &format!("{n:05}"), &value);
        }
    });
    commit(txn);
    let written = split(&waits).of(WaitKind::PageWrite);
    assert!(written.count > 0 && written.nanos > 0);
    assert!(engine.stats().counter("foreground_writes") > 0);
}

#[test]
fn waits_of_others_and_waits_inside_waits() {
    let (engine, _) = engine();
    let waits = engine.waits();
    drop(blocked(WaitKind::Pause));
    assert_eq!(engine.stats().waits, [WaitSum::default(); WaitKind::ALL.len()], "nobody's");
    waits.work(|| {
        let outer = blocked(WaitKind::Log);
        drop(blocked(WaitKind::PageWrite));
        drop(outer);
        drop(blocked(WaitKind::Pause));
    });
    let split = split(&waits);
    assert_eq!(WaitKind::ALL.map(|kind| split.of(kind).count), [0, 0, 0, 1, 0, 0, 1]);
    assert!(Waits::current().is_none());
}

#[test]
fn time_off_a_thread_is_not_work() {
    let (engine, _) = engine();
    let waits = engine.waits();
    let nap = |ready_at: std::time::Instant| {
        std::future::poll_fn(move |cx| {
            if std::time::Instant::now() >= ready_at {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            std::thread::yield_now();
            Poll::Pending
        })
    };
    let soon = || std::time::Instant::now() + Duration::from_millis(2);
    run(waits.clone().attend(waiting(WaitKind::TableLock, nap(soon()))));
    let split = split(&waits);
    assert!(split.of(WaitKind::TableLock).nanos > 0 && split.of(WaitKind::TableLock).count == 1);
    assert!(split.cpu < split.elapsed, "{split:?}");
}

/// Keeps a processor busy for a while; says how long it was.
fn spin() -> u64 {
    let began = thread_cpu();
    loop {
        let spent = thread_cpu() - began;
        if spent >= 3_000_000 {
            return spent;
        }
        std::hint::spin_loop();
    }
}

#[test]
fn processor_time_is_measured_when_asked_for() {
    // What else the threads do, which is counted too, is far less than one spin.
    const LITTLE: u64 = 1_500_000;
    let (engine, _) = engine();
    let waits = engine.waits();
    let mut statement = pin!(waits.clone().attend(async {
        waits.measure_cpu();
        let mut spent = spin();
        // The thread is given up, and does other things before it comes back.
        let mut polled = false;
        std::future::poll_fn(|_| if std::mem::replace(&mut polled, true) { Poll::Ready(()) } else { Poll::Pending }).await;
        spent += spin();
        let helper = std::thread::spawn({
            let waits = waits.clone();
            move || waits.work(spin)
        });
        let helped = helper.join().unwrap();
        spent += helped;
        let before = split(&waits);
        assert!((helped..helped + LITTLE).contains(&before.cpu_helping), "{} of {helped}", before.cpu_helping);
        let before = before.cpu;
        assert!((spent..spent + LITTLE).contains(&before), "{before} of {spent}");
        let wait = blocked(WaitKind::PageWrite);
        spin();
        drop(wait);
        let waited = split(&waits).cpu - before;
        assert!(waited < LITTLE, "what a wait does is the wait's: {waited}");
    }));
    let mut cx = Context::from_waker(Waker::noop());
    assert!(statement.as_mut().poll(&mut cx).is_pending());
    spin();
    assert!(statement.as_mut().poll(&mut cx).is_ready());
    waits.clear();
    assert_eq!(split(&waits).cpu, LONG_AGO.as_nanos() as u64, "not measured any more");
}

#[test]
fn what_helpers_do_counts_once() {
    let (engine, _) = engine();
    let waits = engine.waits();
    let began = std::time::Instant::now();
    let (helped, elapsed) = run(waits.clone().attend(async {
        let helper = std::thread::spawn({
            let waits = waits.clone();
            move || {
                let began = std::time::Instant::now();
                waits.work(|| std::thread::sleep(Duration::from_millis(20)));
                began.elapsed()
            }
        });
        let helped = for_helpers(|| helper.join().unwrap());
        (helped, began.elapsed())
    }));
    let cpu = waits.split(elapsed).cpu;
    // The helper's, and what this thread did before and after it waited for that.
    assert!(cpu < (elapsed + helped / 2).as_nanos() as u64, "{cpu} of {elapsed:?} with {helped:?} helped");
    run(waits.clone().attend(async {
        waits.clear();
        let wait = blocked(WaitKind::PageWrite);
        for_helpers(|| std::thread::sleep(Duration::from_millis(2)));
        drop(wait);
    }));
    let split = waits.split(Duration::from_secs(1));
    assert_eq!(split.cpu + split.of(WaitKind::PageWrite).nanos, 1_000_000_000, "inside a wait it is that wait's");
}

#[test]
fn late_helpers_of_a_statement_add_nothing_to_the_next() {
    let (engine, _) = engine();
    let mut waits = engine.waits();
    let attended = waits.clone();
    run(attended.attend(async {
        drop(blocked(WaitKind::Pause));
        let kept = Arc::as_ptr(&waits);
        waits.next_statement();
        assert!(!waits.any() && Arc::as_ptr(&waits) == kept, "nobody else has it");
        let late = waits.clone();
        drop(blocked(WaitKind::Pause));
        waits.next_statement();
        late.work(|| drop(blocked(WaitKind::PageRead)));
        assert!(!waits.any());
        drop(blocked(WaitKind::Log));
        assert_only(&waits, WaitKind::Log);
    }));
    // Of a session whose statement is not attended.
    let late = waits.clone();
    waits.next_statement();
    late.work(|| drop(blocked(WaitKind::PageRead)));
    assert!(!waits.any() && Waits::current().is_none());
}

#[test]
fn pages_of_a_load_that_are_written_meanwhile_and_at_its_end() {
    // Whether there are threads, how many kilobytes, and how often pages are written: a run of 16 pages at a time by the loader itself, 64 pages by
    // the thread beside it; once more at the end.
    for (background, kilobytes, times) in [(false, 8, 1..=2), (false, 2000, 6..=12), (true, 8, 1..=1), (true, 4000, 3..=6)] {
        let disk = disk(1);
        let engine = open_with(&disk, Options { background, ..options() }).unwrap();
        let t = new_index(&engine);
        let waits = engine.waits();
        let mut txn = engine.begin(RepeatableRead);
        run(waits.clone().attend(async {
            let mut load = txn.load(t).unwrap().unwrap();
            let value = [7; 1000];
            for n in 0..kilobytes {
                load.push(&mut txn, &u64::to_be_bytes(n), &value).unwrap();
            }
            load.finish(&mut txn, |_, _| panic!("nobody else writes")).unwrap();
        }));
        let written = split(&waits).of(WaitKind::PageWrite);
        assert!(times.contains(&written.count) && written.nanos > 0, "{kilobytes} kilobytes, threads: {background}: {written:?}");
        txn.rollback().unwrap();
    }
}

#[test]
fn log_that_is_written_before_the_commit() {
    let (engine, t) = engine();
    let waits = engine.waits();
    let mut txn = engine.begin(RepeatableRead);
    let value = "x".repeat(1000);
    let mut rows = 0;
    let begun = engine.stats().log_end;
    run(waits.clone().attend(async {
        while !waits.any() {
            put(&mut txn, t, &format!("{rows:05}"), &value);
            rows += 1;
        }
    }));
    let split = assert_only(&waits, WaitKind::Log);
    let stats = engine.stats();
    assert_eq!((split.of(WaitKind::Log).count, stats.counter("log_buffer_waits")), (1, 0));
    let kilobytes = (stats.log_end - begun) >> 10;
    assert!((512..600).contains(&kilobytes), "at half of the buffer, before there is want of room or of a file: {kilobytes}");
    commit(txn);
}
