//! Gap locks as tables have them: by the primary key, by unique and by ordinary secondary indexes.

mod common;

use std::future::Future;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use highkey_table::*;
use highkey_types::Value;

const X: LockMode = LockMode::Exclusive;
const WAIT: LockWaitPolicy = LockWaitPolicy::Wait;

/// id primary, u unique and nullable, k ordinary; rows (n, n, n) for these n.
fn given(rows: &[i64]) -> (Arc<Database>, Arc<Table>) {
    let db = database();
    let columns = vec![int("id").not_null(), int("u"), int("k")];
    let table = create(&db, "t", columns, vec![IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1]), IndexSpec::ordinary("k", &[2])]);
    fill(&db, &table, rows.iter().map(|&n| row(n, n, n)).collect());
    (db, table)
}

fn row(id: i64, u: i64, k: i64) -> Vec<Value> {
    vec![i(id), i(u), i(k)]
}

/// The error of an insert that does not wait long, 0 without one. It is rolled back.
fn insert(db: &Arc<Database>, table: &Arc<Table>, row: Vec<Value>) -> u16 {
    block_on(async {
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(Duration::from_millis(5));
        let outcome = table.insert(&mut txn, &[row], OnDuplicate::Error).await;
        txn.rollback().await.unwrap();
        outcome.map_or_else(|e| e.code, |_| 0)
    })
}

/// Which of these rows' inserts have to wait.
fn blocked<const N: usize>(db: &Arc<Database>, table: &Arc<Table>, rows: [(i64, i64, i64); N]) -> Vec<(i64, i64, i64)> {
    rows.into_iter()
        .filter(|&(id, u, k)| match insert(db, table, row(id, u, k)) {
            0 => false,
            1205 => true,
            code => panic!("error {code}"),
        })
        .collect()
}

fn scan(txn: &mut Transaction, table: &Arc<Table>, index: usize, range: KeyRange, direction: Direction, max: usize) -> usize {
    let mut scan = table.scan_locking(txn, index, &range, direction, X, WAIT);
    block_on(scan.collect(txn, max)).unwrap().len()
}

fn between(lower: i64, upper: i64) -> KeyRange {
    KeyRange { lower: Bound::Included(vec![i(lower)]), upper: Bound::Included(vec![i(upper)]) }
}

#[test]
fn ranges_of_the_primary_key() {
    let (db, table) = given(&[10, 20, 30]);
    let mut txn = db.begin(Isolation::RepeatableRead);
    assert_eq!(scan(&mut txn, &table, 0, between(12, 20), Direction::Forward, 9), 1);
    // It ends with a row: what is behind that was not asked for. What is before it is locked up to the row before.
    assert_eq!(blocked(&db, &table, [(9, 9, 9), (11, 11, 11), (19, 19, 19), (21, 21, 21)]), [(11, 11, 11), (19, 19, 19)]);
    let above = KeyRange { lower: Bound::Excluded(vec![i(25)]), upper: Bound::Unbounded };
    assert_eq!(scan(&mut txn, &table, 0, above, Direction::Forward, 9), 1);
    assert_eq!(blocked(&db, &table, [(21, 21, 21), (31, 31, 31), (9999, 5, 5)]).len(), 3);
}

#[test]
fn a_limit_locks_as_far_as_it_reads() {
    // The gap before each row that is read.
    for (direction, expected) in [(Direction::Forward, [5, 15].as_slice()), (Direction::Backward, &[15, 25, 35])] {
        let (db, table) = given(&[10, 20, 30]);
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert_eq!(scan(&mut txn, &table, 0, KeyRange::all(), direction, 2), 2);
        let locked: Vec<i64> = [5, 15, 25, 35].into_iter().filter(|&n| insert(&db, &table, row(n, n, n)) == 1205).collect();
        assert_eq!(locked, expected);
    }
}

#[test]
fn equality_in_an_ordinary_index_locks_the_gaps_around() {
    let (db, table) = given(&[10, 20, 30]);
    let mut txn = db.begin(Isolation::RepeatableRead);
    assert_eq!(scan(&mut txn, &table, 2, KeyRange::prefix(&[i(20)]), Direction::Forward, 9), 1);
    // The primary key has no gap lock.
    let found = blocked(&db, &table, [(1, 1, 9), (2, 2, 11), (3, 3, 20), (4, 4, 29), (5, 5, 31), (15, 15, 99), (25, 25, 1)]);
    assert_eq!(found, [(2, 2, 11), (3, 3, 20), (4, 4, 29)]);
    // Equal keys go by the primary key: before (10, id 10) and behind (30, id 30) is free.
    assert_eq!(blocked(&db, &table, [(1, 1, 10), (11, 11, 10), (29, 29, 30), (31, 31, 30)]), [(11, 11, 10), (29, 29, 30)]);
}

#[test]
fn equality_in_a_unique_index_locks_the_row_or_the_gap() {
    let (db, table) = given(&[10, 20, 30]);
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        for index in [0, 1] {
            assert!(table.lock_get(&mut txn, index, &[i(20)], X, WAIT).await.unwrap().is_some());
        }
        assert_eq!(blocked(&db, &table, [(11, 11, 11), (19, 19, 19), (21, 21, 21)]), []);
        assert!(table.lock_get(&mut txn, 1, &[i(15)], X, WAIT).await.unwrap().is_none());
        assert_eq!(blocked(&db, &table, [(11, 1, 1), (12, 11, 1), (13, 19, 1), (14, 21, 1)]), [(12, 11, 1), (13, 19, 1)]);
        assert!(table.lock_get(&mut txn, 0, &[i(40)], X, WAIT).await.unwrap().is_none());
        assert_eq!(blocked(&db, &table, [(31, 1, 1), (29, 2, 1)]), [(31, 1, 1)]);
    });
}

#[test]
fn read_committed_locks_rows_alone() {
    let (db, table) = given(&[10, 20, 30]);
    let mut txn = db.begin(Isolation::ReadCommitted);
    for index in 0..3 {
        assert_eq!(scan(&mut txn, &table, index, between(5, 25), Direction::Forward, 9), 2);
    }
    assert!(block_on(table.lock_get(&mut txn, 0, &[i(15)], X, WAIT)).unwrap().is_none());
    assert_eq!(blocked(&db, &table, [(11, 11, 11), (15, 15, 15), (21, 21, 21), (40, 40, 40)]), []);
}

#[test]
fn an_update_that_moves_an_entry_waits_for_the_gap() {
    let (db, table) = given(&[10, 20, 30]);
    let mut reader = db.begin(Isolation::RepeatableRead);
    assert_eq!(scan(&mut reader, &table, 2, between(12, 18), Direction::Forward, 9), 0);
    block_on(async {
        let mut txn = db.begin(Isolation::ReadCommitted);
        txn.set_lock_wait_timeout(Duration::from_millis(5));
        let old = table.lock_get(&mut txn, 0, &[i(30)], X, WAIT).await.unwrap().unwrap();
        assert_eq!(table.update(&mut txn, &old, &row(30, 30, 15)).await.unwrap_err().code, 1205);
        txn.rollback().await.unwrap();
        reader.commit().await.unwrap();
        let mut txn = db.begin(Isolation::ReadCommitted);
        let old = table.lock_get(&mut txn, 0, &[i(30)], X, WAIT).await.unwrap().unwrap();
        assert!(table.update(&mut txn, &old, &row(30, 30, 15)).await.unwrap());
        txn.commit().await.unwrap();
    });
    check(&db);
}

#[test]
fn what_an_insert_meets_is_locked() {
    for mode in [OnDuplicate::Error, OnDuplicate::Ignore, OnDuplicate::IgnoreOne, OnDuplicate::Report, OnDuplicate::Replace] {
        let (db, table) = given(&[10, 20, 30]);
        block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            let outcome = table.insert(&mut txn, &[row(25, 20, 25)], mode).await;
            assert_eq!(outcome.is_err(), mode == OnDuplicate::Error);
            // The gap before the entry of u = 20.
            assert_eq!(insert(&db, &table, row(12, 15, 12)), 1205, "{mode:?}");
            let mut other = db.begin(Isolation::ReadCommitted);
            other.set_lock_wait_timeout(Duration::from_millis(5));
            let met = table.lock_get(&mut other, 0, &[i(20)], X, WAIT).await;
            match mode {
                // The entry alone is shared: its row can be locked, but not be deleted.
                OnDuplicate::Error | OnDuplicate::Ignore | OnDuplicate::IgnoreOne => {
                    assert_eq!(table.delete(&mut other, &met.unwrap().unwrap()).await.unwrap_err().code, 1205);
                }
                _ => assert_eq!(met.unwrap_err().code, 1205),
            }
        });
    }
}

/// An INSERT that would fail waits for whoever may be about to delete the row in its way.
#[test]
fn an_insert_waits_for_a_locked_duplicate() {
    let (db, table) = given(&[10]);
    block_on(async {
        let mut holder = db.begin(Isolation::RepeatableRead);
        let old = table.lock_get(&mut holder, 0, &[i(10)], X, WAIT).await.unwrap().unwrap();
        assert_eq!(insert(&db, &table, row(10, 1, 1)), 1205);
        table.delete(&mut holder, &old).await.unwrap();
        holder.commit().await.unwrap();
        assert_eq!(insert(&db, &table, row(10, 1, 1)), 0);
    });
}

/// While a scan waits for a row, the rows and gaps behind it are free: who has the row may go on there.
#[test]
fn a_scan_that_waits_has_locked_no_further() {
    for index in [0, 2] {
        let (db, table) = given(&[10, 20, 30]);
        block_on(async {
            let mut writer = db.begin(Isolation::RepeatableRead);
            writer.set_lock_wait_timeout(Duration::from_millis(5));
            table.lock_get(&mut writer, 0, &[i(20)], X, WAIT).await.unwrap().unwrap();
            let mut reader = db.begin(Isolation::RepeatableRead);
            let mut scan = table.scan_locking(&mut reader, index, &KeyRange::all(), Direction::Forward, X, WAIT);
            assert_eq!(scan.next(&mut reader).await.unwrap().unwrap().value(0), i(10));
            {
                let mut waiting = std::pin::pin!(scan.next(&mut reader));
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                assert!(waiting.as_mut().poll(&mut context).is_pending());
                assert_eq!(blocked(&db, &table, [(1, 1, 1), (15, 15, 15), (25, 25, 25), (35, 35, 35)]), [(1, 1, 1), (15, 15, 15)]);
                table.insert(&mut writer, &[row(25, 25, 25)], OnDuplicate::Error).await.unwrap();
                writer.commit().await.unwrap();
                assert_eq!(waiting.await.unwrap().unwrap().value(0), i(20));
            }
            // What came in between is found.
            let rest = scan.collect(&mut reader, 9).await.unwrap();
            assert_eq!(rest.iter().map(|row| row.value(0)).collect::<Vec<_>>(), [i(25), i(30)]);
            assert_eq!(blocked(&db, &table, [(1, 1, 1), (15, 15, 15), (26, 26, 26), (35, 35, 35)]).len(), 4);
        });
    }
}

#[test]
fn a_shared_range_is_what_a_fresh_snapshot_sees() {
    let (db, table) = given(&[10, 20, 30]);
    block_on(async {
        let mut reader = db.begin(Isolation::Serializable);
        reader.open(&table).await.unwrap();
        assert_eq!(rows_in(&mut reader, &table, 0, &KeyRange::all(), Direction::Forward).len(), 3);
        fill(&db, &table, vec![row(15, 15, 15)]);
        table.share_range(&mut reader, &between(10, 20)).await.unwrap();
        let count = |snapshot: &Snapshot| {
            let mut scan = table.scan_at(snapshot, 0, &between(10, 20), Direction::Forward).unwrap();
            let mut batch = RowBatch::new();
            let mut count = 0;
            while scan.next_batch(&mut batch).unwrap() {
                count += batch.len();
            }
            count
        };
        assert_eq!((count(&reader.snapshot()), count(&reader.fresh_snapshot())), (2, 3));
        assert_eq!(blocked(&db, &table, [(12, 12, 12), (22, 22, 22), (32, 32, 32)]), [(12, 12, 12), (22, 22, 22)]);
        let mut other = db.begin(Isolation::ReadCommitted);
        other.set_lock_wait_timeout(Duration::from_millis(5));
        assert_eq!(table.lock_get(&mut other, 0, &[i(15)], X, WAIT).await.unwrap_err().code, 1205);
        assert!(table.lock_get(&mut other, 0, &[i(15)], LockMode::Shared, WAIT).await.unwrap().is_some());
        assert!(table.lock_get(&mut other, 0, &[i(30)], X, WAIT).await.unwrap().is_some());
    });
}
