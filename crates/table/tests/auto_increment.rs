//! AUTO_INCREMENT: values are consecutive, follow explicit ones, and are never given twice.

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use common::*;
use highkey_table::*;
use highkey_types::{ColumnType, TypeKind};

fn counted(db: &std::sync::Arc<Database>, kind: TypeKind, unsigned: bool) -> std::sync::Arc<Table> {
    let ty = ColumnType { unsigned, ..ColumnType::new(kind) };
    create(db, "t", vec![ColumnDef::new("id", ty).auto_increment(), int("v")], vec![IndexSpec::primary(&[0])])
}

#[test]
fn values_are_consecutive_and_follow_explicit_ones() {
    let db = database();
    let table = counted(&db, TypeKind::Int, false);
    let r = table.reserve(3, 1, 1).unwrap();
    assert_eq!((r.first, r.count), (1, 3));
    assert_eq!(table.reserve(1, 1, 1).unwrap().first, 4);
    fill(&db, &table, vec![vec![i(100), NULL], vec![i(-5), NULL]]);
    assert_eq!(table.reserve(1, 1, 1).unwrap().first, 101);
    let r = table.reserve(3, 10, 5).unwrap();
    assert_eq!((r.first, r.count, r.increment), (105, 3, 10));
    assert_eq!(table.next_auto_increment(), Some(126));
}

#[test]
fn the_end_of_the_range_repeats_the_last_value() {
    let db = database();
    let table = counted(&db, TypeKind::TinyInt, false);
    let r = table.reserve(200, 1, 1).unwrap();
    assert_eq!((r.first, r.count), (1, 127));
    assert_eq!(table.reserve(1, 1, 1).unwrap().first, 127);
    assert_eq!(table.next_auto_increment(), Some(127));
    // 133 would be next: 123 is the last one of these.
    let r = table.reserve(1, 10, 3).unwrap();
    assert_eq!((r.first, r.count), (123, 0));

    let db = database();
    let table = counted(&db, TypeKind::BigInt, true);
    table.auto_increment().note_explicit(u64::MAX - 1).unwrap();
    assert_eq!(table.reserve(1, 1, 1).unwrap_err().code, 1467);
}

#[test]
fn no_value_comes_back_after_a_crash() {
    let mut disk = disk(7);
    let mut seen = HashSet::new();
    for round in 0..5 {
        let db = try_open_still(&disk).unwrap();
        if round == 0 {
            create_schema(&db, "s").unwrap();
            counted(&db, TypeKind::BigInt, true);
        }
        let table = table(&db, "t");
        for _ in 0..3000 {
            let r = table.reserve(1, 1, 1).unwrap();
            assert!(seen.insert(r.first), "{} given twice", r.first);
        }
        // No statement committed anything; only the counter's own writes are on disk.
        let after = disk.crash();
        drop((table, db));
        disk = after;
    }
}

/// A small type has few values, and so has the end of a large one: a crash leaves most of them.
#[test]
fn a_crash_does_not_use_up_the_range() {
    for (kind, unsigned, present) in [(TypeKind::TinyInt, false, 3), (TypeKind::SmallInt, true, 200), (TypeKind::Int, false, i32::MAX as u64 - 500), (TypeKind::BigInt, true, u64::MAX - 500)] {
        let mut disk = disk(9);
        let mut last = present;
        for round in 0..3 {
            let db = try_open_still(&disk).unwrap();
            if round == 0 {
                create_schema(&db, "s").unwrap();
                counted(&db, kind.clone(), unsigned).auto_increment().note_explicit(present).unwrap();
            }
            let r = table(&db, "t").reserve(2, 1, 1).unwrap();
            assert!(r.count == 2 && r.first > last && r.first - last < 1500, "{kind:?}, {round}: {r:?} after {last}");
            last = r.first + 1;
            let after = disk.crash();
            drop(db);
            disk = after;
        }
        assert!(last - present < 3000 && largest_of(&kind, unsigned) - last > 60, "{kind:?}: {last}");
    }
}

fn largest_of(kind: &TypeKind, unsigned: bool) -> u64 {
    ColumnType { unsigned, ..ColumnType::new(kind.clone()) }.integer_range().unwrap().1
}

#[test]
fn a_clean_shutdown_leaves_no_gap() {
    let disk = disk(8);
    let db = open(&disk);
    create_schema(&db, "s").unwrap();
    let table_before = counted(&db, TypeKind::Int, false);
    table_before.reserve(10, 1, 1).unwrap();
    fill(&db, &table_before, vec![vec![i(11), i(1)]]);
    db.shutdown().unwrap();
    drop((table_before, db));
    let db = open(&disk);
    let table = table(&db, "t");
    assert_eq!(table.reserve(1, 1, 1).unwrap().first, 12);
    assert_eq!(table.row_count_estimate().unwrap(), 1);
}

/// One that does without the lock has looked, and has no values yet.
#[test]
fn who_takes_the_lock_waits_for_values_on_their_way() {
    let db = database();
    let table = counted(&db, TypeKind::Int, false);
    let numbering = table.numbering().expect("nobody has the lock");
    let taken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let holder = scope.spawn(|| {
            let mut txn = db.begin(Isolation::RepeatableRead);
            let _lock = block_on(table.lock_auto_increment(&mut txn)).unwrap();
            taken.store(true, Ordering::SeqCst);
            assert!(table.numbering().is_none());
        });
        while !table.is_auto_increment_locked() {
            std::thread::yield_now();
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!taken.load(Ordering::SeqCst));
        drop(numbering);
        holder.join().unwrap();
    });
    assert!(table.numbering().is_some(), "it was given back");
}
