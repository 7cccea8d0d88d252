//! A disk filled by rows with long values, a crash on it, and the same room again.

use super::*;
use crate::disk::Disk;
use crate::error::Error;

/// Inserts and commits a row of 20 000 bytes; false, and nothing changed, if the disk is full.
fn insert(engine: &Engine, index: IndexId, n: u32) -> bool {
    let mut txn = engine.begin(Isolation::RepeatableRead);
    match txn.insert(index, &n.to_be_bytes(), &[n as u8; 20_000]) {
        Ok(Op::Done(outcome)) => assert_ne!(outcome, Inserted::Duplicate),
        Err(Error::OutOfSpace) => {
            txn.rollback().unwrap();
            return false;
        }
        _ => panic!("neither done nor full"),
    }
    commit(txn);
    true
}

fn count(engine: &Engine, index: IndexId) -> u32 {
    drain(engine.begin(Isolation::ReadCommitted).scan(index, Bounds::all(), Direction::Forward)).len() as u32
}

/// Log files longer than the log's capacity, as small configurations have them: then few are there to be used again.
#[test]
fn the_room_of_deleted_rows_is_used_again_on_a_full_disk() {
    let options = Options { redo_log_capacity: 512 << 10, log_segment_bytes: 1 << 20, ..options() };
    let disk = SimDisk::new(SimConfig { capacity: 16 << 20, ..SimConfig::default() });
    let engine = open_with(&disk, options.clone()).unwrap();
    let t = new_index(&engine);
    let rows = (0..).find(|n| !insert(&engine, t, *n)).unwrap();
    assert!(rows > 200, "{rows} rows fill the disk");
    drop(engine);
    let disk = disk.crash();
    let engine = open_with(&disk, options.clone()).unwrap();
    assert_eq!(count(&engine, t), rows);
    // What is left goes to somebody else.
    let ballast = disk.open("ballast", true).unwrap();
    while ballast.allocate(ballast.len().unwrap() + 4096).is_ok() {}
    let mut txn = engine.begin(Isolation::RepeatableRead);
    for n in 0..rows {
        assert!(done(txn.delete(t, &n.to_be_bytes())));
    }
    commit(txn);
    purge_all(&engine);
    let mut again = 0;
    // A transaction may need the file of the log that it holds itself; the next one does not.
    for _ in 0..10 {
        while again < rows / 2 && insert(&engine, t, again) {
            again += 1;
        }
        purge_all(&engine);
    }
    assert_eq!(again, rows / 2, "of {rows} rows that were there");
    drop(engine);
    let engine = open_with(&disk.crash(), options).unwrap();
    assert_eq!(count(&engine, t), again);
    assert!(engine.check(t).is_ok());
}

/// The records of a rollback are more than what is kept ahead for such as them.
#[test]
fn a_rollback_that_a_full_disk_stops_goes_on_later() {
    let options = Options { redo_log_capacity: 2 << 20, log_segment_bytes: 256 << 10, ..options() };
    let disk = SimDisk::new(SimConfig { capacity: 24 << 20, ..SimConfig::default() });
    let engine = open_with(&disk, options.clone()).unwrap();
    let t = new_index(&engine);
    let mut txn = engine.begin(Isolation::RepeatableRead);
    let mut rows = 0u32;
    while rows < 10_000 {
        match txn.insert(t, &rows.to_be_bytes(), &[rows as u8; 300]) {
            Ok(Op::Done(outcome)) => assert_eq!(outcome, Inserted::Yes),
            Err(Error::OutOfSpace | Error::LogFull) => break,
            _ => panic!("neither done nor full"),
        }
        rows += 1;
    }
    assert!(rows > 1000, "{rows} rows");
    let ballast = disk.open("ballast", true).unwrap();
    while ballast.allocate(ballast.len().unwrap() + 4096).is_ok() {}
    drop(txn);
    assert_eq!(engine.stats().open_transactions, 1, "its rollback needed room");
    // What there is of it finds room.
    engine.flush_log().unwrap();
    assert!(engine.background_step().is_err());
    drop(ballast);
    disk.remove("ballast").unwrap();
    while engine.stats().open_transactions > 0 {
        engine.background_step().unwrap();
    }
    assert_eq!(count(&engine, t), 0);
    assert!(insert(&engine, t, 1));
    drop(engine);
    let engine = open_with(&disk.crash(), options).unwrap();
    assert_eq!(count(&engine, t), 1);
}
