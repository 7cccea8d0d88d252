//! Appends, waits and reads by many threads.

use super::group::Need;
use super::{Draft, FIRST_LSN, Kind, Urgency, Wal};
use crate::counters::Counters;
use crate::disk::{Disk, FileDisk, Rng, SeededRng, SimConfig, SimDisk};
use crate::error::Error;
use crate::fatal::Fatal;
use crate::ids::{Lsn, TxnId};
use crate::options::Options;
use crate::sync::Arc;
use std::future::Future;
use std::task::{Context, Waker};

fn wal(disk: Arc<dyn Disk>, options: &Options) -> Arc<Wal> {
    let wal = Wal::open(disk, options, Arc::new(Fatal::new(false)), Arc::new(Counters::default())).unwrap();
    wal.start_at(FIRST_LSN).unwrap();
    Arc::new(wal)
}

fn append(wal: &Wal, n: u64, bytes: usize) -> Lsn {
    let undo = vec![n as u8; bytes];
    let draft = Draft { kind: Kind::Data, txn: TxnId(n), prev_lsn: Lsn::NONE, undo: &undo, parts: &[], extra: &[] };
    wal.append(&draft, |_| 0).unwrap().0
}

fn options() -> Options {
    Options { log_segment_bytes: 64 << 10, log_buffer_bytes: 16 << 10, redo_log_capacity: 4 << 20, ..Options::default() }
}

#[test]
fn one_sync_serves_many_commits() {
    let dir = tempfile::tempdir().unwrap();
    let wal = wal(Arc::new(FileDisk::open(dir.path()).unwrap()), &options());
    std::thread::scope(|s| {
        for t in 0..8 {
            let wal = &wal;
            s.spawn(move || {
                for i in 0..40 {
                    wal.reserve(Urgency::Normal).unwrap();
                    let lsn = append(wal, t, 100 + i);
                    if i % 5 == 4 {
                        let mut wait = Box::pin(wal.wait_durable(lsn));
                        let _ = wait.as_mut().poll(&mut Context::from_waker(Waker::noop()));
                    } else {
                        wal.wait_commit(lsn, false).wait().unwrap();
                        assert!(lsn < wal.durable());
                    }
                    let record = wal.read(lsn).unwrap();
                    assert_eq!((record.txn, record.undo().len()), (TxnId(t), 100 + i as usize));
                }
            });
        }
    });
    wal.flush().unwrap();
    assert!(wal.counters.log_fsyncs.get() < 8 * 40, "{} syncs", wal.counters.log_fsyncs.get());
    let mut scan = wal.scan(FIRST_LSN);
    let mut count = 0;
    while scan.next().unwrap().is_some() {
        count += 1;
    }
    assert_eq!((count, scan.at), (8 * 40, wal.end()));
}

#[test]
fn levels_promise_what_they_say() {
    let disk = SimDisk::new(SimConfig::default());
    let wal = wal(Arc::new(disk.clone()), &options());
    wal.set_flush_level(0);
    let before = disk.changes();
    wal.wait_commit(append(&wal, 1, 10), false).wait().unwrap();
    assert_eq!(disk.changes(), before, "level 0 writes nothing");
    wal.set_flush_level(2);
    wal.wait_commit(append(&wal, 1, 10), false).wait().unwrap();
    assert_eq!(disk.changes(), before + 1, "level 2 writes");
    wal.set_flush_level(1);
    wal.wait_commit(append(&wal, 1, 10), false).wait().unwrap();
    assert_eq!(disk.changes(), before + 3, "level 1 writes and syncs");
}

#[test]
fn a_commit_of_an_earlier_level_is_not_taken_for_durable() {
    for level in [0, 2] {
        let wal = wal(Arc::new(SimDisk::new(SimConfig::default())), &options());
        assert!(wal.commits_are_durable());
        append(&wal, 1, 10);
        assert!(wal.commits_are_durable(), "nobody has waited for it");
        wal.set_flush_level(level);
        wal.wait_commit(append(&wal, 1, 10), false).wait().unwrap();
        assert!(!wal.commits_are_durable());
        wal.set_flush_level(1);
        assert!(!wal.commits_are_durable(), "level {level}");
        // Set again before anything is synced.
        append(&wal, 1, 10);
        wal.set_flush_level(1);
        wal.flush().unwrap();
        assert!(wal.commits_are_durable());
        append(&wal, 1, 10);
        assert!(wal.commits_are_durable());
    }
}

#[test]
fn long_records_and_segment_ends() {
    let disk = SimDisk::new(SimConfig::default());
    let wal = wal(Arc::new(disk.clone()), &options());
    let lsns: Vec<_> = [10, 70_000, 5, 200_000, 16_000].map(|n| (append(&wal, 9, n), n)).into();
    for flushed in [false, true] {
        if flushed {
            wal.flush().unwrap();
        }
        for (lsn, n) in &lsns {
            assert_eq!(wal.read(*lsn).unwrap().undo(), vec![9; *n]);
        }
    }
    assert!(matches!(wal.read(Lsn(lsns[1].0.0 + 1)), Err(Error::Corrupt { .. })));
    assert!(matches!(wal.read(Lsn(wal.end().0 + 1000)), Err(Error::Corrupt { .. })));
}

#[test]
fn a_torn_tail_ends_the_log_and_never_comes_back() {
    for seed in 0..40 {
        let disk = SimDisk::new(SimConfig { seed, ..SimConfig::default() });
        let first = wal(Arc::new(disk.clone()), &options());
        let mut ends = vec![FIRST_LSN];
        for i in 0..20 {
            append(&first, i, 300);
            ends.push(first.end());
        }
        first.flush().unwrap();
        for i in 0..30 {
            append(&first, 100 + i, 300);
            ends.push(first.end());
            disk.power_off_at(u64::MAX);
            let _ = first.wait_blocking(Lsn(first.end().0 - 1), Need::Written);
        }
        let disk = disk.crash();
        let again =
            Wal::open(Arc::new(disk.clone()), &options(), Arc::new(Fatal::new(false)), Arc::new(Counters::default())).unwrap();
        let mut scan = again.scan(FIRST_LSN);
        let mut count = 0;
        while scan.next().unwrap().is_some() {
            count += 1;
        }
        assert!(count >= 20 && scan.at == ends[count]);
        let remains = again.resume_at(scan.at, &[]).unwrap();
        again.start(FIRST_LSN, &remains).unwrap();
        // A record of the same length as the lost one: what lay behind it must not be taken for the log's.
        append(&again, 7, 300);
        again.flush().unwrap();
        let mut scan = again.scan(FIRST_LSN);
        let mut now = 0;
        while scan.next().unwrap().is_some() {
            now += 1;
        }
        assert_eq!(now, count + 1);
    }
}

/// Life after life ends in a crash with an unsynced tail of which any sectors are kept: the log never ends before what was durable, and
/// what is kept behind a lost sector is never taken for damage.
#[test]
fn no_torn_tail_looks_like_damage() {
    let options = options();
    let (mut erased, mut torn) = (0, 0);
    for seed in 0..60 {
        let mut disk = SimDisk::new(SimConfig { seed, sector: if seed % 2 == 0 { 512 } else { 4096 }, ..SimConfig::default() });
        let rng = SeededRng::new(seed);
        wal(Arc::new(disk.clone()), &options).flush().unwrap();
        let (mut keep, mut durable) = (FIRST_LSN, FIRST_LSN);
        for life in 0..8 {
            let (fatal, counters) = (Arc::new(Fatal::new(false)), Arc::new(Counters::default()));
            let wal = Wal::open(Arc::new(disk.clone()), &options, fatal, counters).unwrap();
            wal.check_files(keep).unwrap();
            let mut scan = wal.scan(keep);
            while scan.next().unwrap().is_some() {}
            let end = scan.at;
            assert!(end >= durable, "seed {seed}, life {life}: the log ends at {end}, {durable} was durable");
            let remains = wal.resume_at(end, &[]).unwrap_or_else(|e| panic!("seed {seed}, life {life}: {e}"));
            erased += (remains.files() > 1) as u32;
            wal.start(keep, &remains).unwrap();
            for n in 0..rng.below(120) {
                wal.reserve(Urgency::Normal).unwrap();
                let bytes = if rng.below(20) == 0 { 9000 } else { rng.below(500) };
                let last = append(&wal, n, bytes as usize);
                match rng.below(8) {
                    0 => wal.flush().unwrap(),
                    // Given to the disk, but not made durable.
                    1..=4 => wal.wait_blocking(last, Need::Written).unwrap(),
                    _ => {}
                }
                if rng.below(40) == 0 {
                    wal.flush().unwrap();
                    keep = wal.durable();
                    wal.advance(keep, keep).unwrap();
                }
            }
            durable = wal.durable();
            torn += (durable < wal.end()) as u32;
            disk = disk.crash();
        }
    }
    println!("{torn} crashes with an unsynced tail, {erased} left records in later files");
    assert!(torn > 100 && erased > 0, "the tails were torn");
}

/// A process was killed, not the machine: what it wrote and did not sync is read, and durable before anything rests on it.
#[test]
fn what_a_killed_process_wrote_is_made_durable() {
    for seed in 0..10 {
        let disk = SimDisk::new(SimConfig { seed, ..SimConfig::default() });
        let first = wal(Arc::new(disk.clone()), &options());
        for n in 0..30 {
            let last = append(&first, n, 8000);
            first.wait_blocking(last, Need::Written).unwrap();
        }
        assert!(first.end().0 > 3 * options().log_segment_bytes && first.durable() == FIRST_LSN);
        let reopen = |disk: &SimDisk| {
            let (fatal, counters) = (Arc::new(Fatal::new(false)), Arc::new(Counters::default()));
            let wal = Wal::open(Arc::new(disk.clone()), &options(), fatal, counters).unwrap();
            let mut scan = wal.scan(FIRST_LSN);
            while scan.next().unwrap().is_some() {}
            let end = scan.at;
            wal.resume_at(end, &[]).unwrap();
            end
        };
        assert_eq!(reopen(&disk), first.end());
        assert_eq!(reopen(&disk.crash()), first.end());
    }
}
