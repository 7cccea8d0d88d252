//! OPTIMIZE TABLE's work: what it leaves, and what others do meanwhile. Crashes in the middle of it are in `stress` and in the storage engine.

mod common;

use std::sync::Arc;

use common::*;
use highkey_table::*;

fn columns() -> Vec<ColumnDef> {
    vec![int("id").not_null(), int("k"), varchar("s", 200)]
}

/// A table of `rows` rows of which every second is deleted, with a secondary index.
fn thinned(db: &Arc<Database>, rows: i64) -> Arc<Table> {
    let table = create(db, "t", columns(), vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("k", &[1])]);
    fill(db, &table, (0..rows).map(|n| vec![i(n), i(n * 7919 % rows), t(&"x".repeat(150))]).collect());
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(txn.open(&table).await.unwrap());
        for n in (0..rows).filter(|n| n.wrapping_mul(2_654_435_761) >> 7 & 1 == 0) {
            txn.begin_statement();
            let row = table.lock_get(&mut txn, 0, &[i(n)], LockMode::Exclusive, LockWaitPolicy::Wait).await.unwrap().unwrap();
            table.delete(&mut txn, &row).await.unwrap();
        }
        txn.commit().await.unwrap();
    });
    table
}

fn compact(db: &Arc<Database>, table: &Arc<Table>, interrupt: Option<Arc<Interrupt>>) -> Result<(), highkey_types::MySqlError> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    if let Some(interrupt) = interrupt {
        txn.set_interrupt(interrupt);
    }
    assert!(block_on(txn.open(table)).unwrap());
    table.compact(&txn)
}

fn fill_of_leaves(table: &Table, index: usize) -> f64 {
    let leaves = &table.index_levels(index, &|| false).unwrap()[0];
    leaves.used_bytes as f64 / (leaves.pages * PAGE_BYTES) as f64
}

#[test]
fn every_index_is_dense_afterwards() {
    let db = database();
    let table = thinned(&db, 20_000);
    let rows = all(&db, &table);
    let size = |index: usize| db.engine().index_size(table.indexes()[index].id).unwrap().pages;
    let before = [size(0), size(1)];
    compact(&db, &table, None).unwrap();
    for index in 0..2 {
        let fill = fill_of_leaves(&table, index);
        assert!(fill >= 0.9, "index {index}: {fill}");
    }
    assert!(size(0) < before[0] * 3 / 4, "{} of {} pages", size(0), before[0]);
    assert_eq!(all(&db, &table), rows);
    check(&db);
}

#[test]
fn an_old_snapshot_sees_its_rows_throughout() {
    let db = database();
    let table = create(&db, "t", columns(), vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("k", &[1])]);
    fill(&db, &table, (0..5000).map(|n| vec![i(n), i(n), t("before")]).collect());
    let mut old = db.begin(Isolation::RepeatableRead);
    assert!(block_on(old.open(&table)).unwrap());
    let snapshot = old.snapshot();
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(txn.open(&table).await.unwrap());
        for n in 0..5000 {
            txn.begin_statement();
            let row = table.lock_get(&mut txn, 0, &[i(n)], LockMode::Exclusive, LockWaitPolicy::Wait).await.unwrap().unwrap();
            if n % 3 == 0 {
                table.update(&mut txn, &row, &[i(n), i(n), t("after")]).await.unwrap();
            } else {
                table.delete(&mut txn, &row).await.unwrap();
            }
        }
        txn.commit().await.unwrap();
    });
    compact(&db, &table, None).unwrap();
    let mut seen = 0;
    let mut scan = table.scan_at(&snapshot, 0, &KeyRange::all(), Direction::Forward).unwrap();
    let mut batch = RowBatch::new();
    while scan.next_batch(&mut batch).unwrap() {
        for row in 0..batch.len() {
            assert_eq!(batch.value(row, 2), t("before"));
            seen += 1;
        }
    }
    assert_eq!(seen, 5000);
    block_on(old.rollback()).unwrap();
    assert_eq!(all(&db, &table).len(), 5000usize.div_ceil(3));
    check(&db);
}

#[test]
fn a_kill_ends_it_and_leaves_the_table_whole() {
    let db = database();
    let table = thinned(&db, 20_000);
    let rows = all(&db, &table);
    let raised = Arc::new(Interrupt::default());
    raised.raise();
    assert_eq!(compact(&db, &table, Some(raised)).unwrap_err().code, 1317);
    // In the middle, at a time of nobody's choice.
    for micros in [100, 1000, 3000] {
        let interrupt = Arc::new(Interrupt::default());
        std::thread::scope(|scope| {
            let flag = interrupt.clone();
            scope.spawn(move || {
                std::thread::sleep(std::time::Duration::from_micros(micros));
                flag.raise();
            });
            if let Err(error) = compact(&db, &table, Some(interrupt)) {
                assert_eq!(error.code, 1317);
            }
        });
        check(&db);
        assert_eq!(all(&db, &table), rows);
    }
}
