//! Whoever follows the log sees every durable commit with events once, in log order, and the log keeps what it has not let go.

use super::*;
use crate::disk::Disk;
use crate::ids::Lsn;
use crate::wal::LogFollower;

fn held() -> Options {
    Options { hold_log: true, redo_log_capacity: 2 << 20, log_segment_bytes: 128 << 10, log_buffer_bytes: 128 << 10, ..options() }
}

/// A row and a commit with events.
fn step(engine: &Engine, index: IndexId, n: usize, events: &[u8]) {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    put(&mut txn, index, &format!("{n:05}"), &"x".repeat(200));
    txn.commit(events).unwrap().wait().unwrap();
}

fn drain_follower(follower: &mut LogFollower) -> Vec<String> {
    let mut seen = Vec::new();
    while let Some(record) = follower.next().unwrap() {
        seen.push(String::from_utf8(record.events().to_vec()).unwrap());
    }
    seen
}

/// Bytes of the log's files.
pub(super) fn log_bytes(disk: &SimDisk) -> u64 {
    let names = disk.list().unwrap();
    names.iter().filter(|n| n.starts_with("wal.")).map(|n| disk.open(n, false).unwrap().len().unwrap()).sum()
}

#[test]
fn commits_with_events_are_seen_once_and_in_order() {
    let disk = disk(3);
    let engine = open_with(&disk, held()).unwrap();
    let index = new_index(&engine);
    let (start, _) = engine.log_position();
    let mut follower = engine.follow_log(start);
    assert!(drain_follower(&mut follower).is_empty());
    let mut expected = Vec::new();
    for n in 0..300 {
        let events = if n % 3 == 0 { String::new() } else { format!("events {n} {}", "e".repeat(n * 40)) };
        step(&engine, index, n, events.as_bytes());
        if n % 3 != 0 {
            expected.push(events);
        }
        if n % 100 == 50 {
            let seen = drain_follower(&mut follower);
            assert_eq!(seen, expected);
            expected.clear();
        }
    }
    // A transaction that is not committed, and one that is not durable, have no events yet.
    let mut open = engine.begin(Isolation::RepeatableRead);
    put(&mut open, index, "open", "");
    let part = open.log_events(b"part").unwrap();
    let mut other = engine.begin(Isolation::RepeatableRead);
    put(&mut other, index, "other", "");
    drop(other.commit(b"not durable").unwrap());
    assert_eq!(drain_follower(&mut follower), expected);
    engine.flush_log().unwrap();
    assert_eq!(drain_follower(&mut follower), ["not durable"]);
    open.commit(b"with a part").unwrap().wait().unwrap();
    assert_eq!(drain_follower(&mut follower), ["with a part"]);
    assert_eq!(follower.part(part).unwrap().events(), b"part");
    assert!(follower.part(start).is_err(), "no events there");
    // From the beginning again.
    assert_eq!(drain_follower(&mut engine.follow_log(start)).len(), 202);
}

#[test]
fn what_is_not_released_survives_checkpoints_and_crashes() {
    let disk = disk(4);
    let engine = open_with(&disk, held()).unwrap();
    let index = new_index(&engine);
    let (start, _) = engine.log_position();
    let mut follower = engine.follow_log(start);
    let mut large = engine.begin(Isolation::RepeatableRead);
    put(&mut large, index, "large", "");
    let parts: Vec<Lsn> = (0..3u8).map(|n| large.log_events(&vec![n; 12_000]).unwrap()).collect();
    large.commit(b"large").unwrap().wait().unwrap();
    // Several times the capacity.
    for n in 0..100 {
        step(&engine, index, n, &vec![b'e'; 60_000]);
        assert!(follower.next().unwrap().is_some());
        engine.checkpoint().unwrap();
    }
    let kept = log_bytes(&disk);
    assert!(kept > 6_000_000, "{kept}");
    let disk = disk.crash();
    let engine = open_with(&disk, held()).unwrap();
    engine.checkpoint().unwrap();
    let mut follower = engine.follow_log(start);
    assert_eq!(follower.next().unwrap().unwrap().events(), b"large");
    for (n, lsn) in parts.iter().enumerate() {
        assert_eq!(follower.part(*lsn).unwrap().events(), vec![n as u8; 12_000]);
    }
    let late = (0..80).map(|_| follower.next().unwrap().unwrap().lsn).last().unwrap();
    engine.release_log(Some(late));
    engine.checkpoint().unwrap();
    let left = log_bytes(&disk);
    // What is kept, and as much as the capacity to be used again.
    assert!(left < kept * 2 / 3, "{left} of {kept}");
    assert_eq!(drain_follower(&mut engine.follow_log(late)).len(), 21);
    engine.release_log(None);
    engine.checkpoint().unwrap();
    assert!(log_bytes(&disk) <= 4 << 20, "{}", log_bytes(&disk));
}

#[test]
fn a_part_is_kept_though_the_log_behind_it_was_released_before_its_commit() {
    let disk = disk(5);
    let engine = open_with(&disk, held()).unwrap();
    let index = new_index(&engine);
    let (start, _) = engine.log_position();
    let mut follower = engine.follow_log(start);
    let mut large = engine.begin(Isolation::RepeatableRead);
    put(&mut large, index, "large", "");
    let part = large.log_events(b"part").unwrap();
    follower.pause();
    for n in 0..60 {
        step(&engine, index, n, &vec![b'e'; 60_000]);
    }
    while follower.next().unwrap().is_some() {}
    engine.release_log(Some(follower.at()));
    large.commit(b"large").unwrap().wait().unwrap();
    follower.pause();
    for n in 60..120 {
        step(&engine, index, n, &vec![b'e'; 60_000]);
        engine.checkpoint().unwrap();
    }
    assert_eq!(follower.next().unwrap().unwrap().events(), b"large");
    assert_eq!(follower.part(part).unwrap().events(), b"part");
    while follower.next().unwrap().is_some() {}
    engine.release_log(Some(follower.at()));
    engine.checkpoint().unwrap();
    assert!(log_bytes(&disk) <= 4 << 20, "{}", log_bytes(&disk));
}

#[test]
fn writers_wait_for_a_follower_that_is_far_behind() {
    let disk = disk(6);
    let engine = open_with(&disk, Options { background: true, ..held() }).unwrap();
    let index = new_index(&engine);
    let (start, _) = engine.log_position();
    let mut follower = engine.follow_log(start);
    let written = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..100 {
                step(&engine, index, n, &[b'e'; 60_000]);
                written.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
            }
        });
        // The follower reads nothing: the writer stops near the capacity, 2 MiB of log.
        std::thread::sleep(Duration::from_millis(500));
        let before = written.load(std::sync::atomic::Ordering::SeqCst);
        assert!((20..45).contains(&before), "{before} commits of 60 kB");
        let mut seen = 0;
        while seen < 100 {
            seen += usize::from(follower.next().unwrap().is_some());
        }
    });
    assert_eq!(written.load(std::sync::atomic::Ordering::SeqCst), 100);
}
