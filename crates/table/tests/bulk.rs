//! Bulk insert against plain insert: the same rows, counts and errors, whatever the table, the order, the memory and the mode.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::*;
use highkey_table::*;
use highkey_types::{MySqlError, Value};
use rand::{Rng, SeedableRng, rngs::SmallRng, seq::SliceRandom};

fn encoded(table: &Table, rows: &[Vec<Value>]) -> EncodedRows {
    let mut encoded = EncodedRows::new();
    for row in rows {
        encoded.push_with(|out| table.layout().encode(row, out));
    }
    encoded
}

async fn bulk_in(
    txn: &mut Transaction,
    table: &Arc<Table>,
    rows: &[Vec<Value>],
    chunk: usize,
    memory: usize,
    mode: OnDuplicate,
) -> Result<BulkReport, MySqlError> {
    assert!(txn.open(table).await?);
    let mut bulk = table.bulk_insert(txn, mode, memory)?;
    bulk.set_threads(1 + rows.len() % 3);
    for rows in rows.chunks(chunk) {
        bulk.add(txn, table.prepare_rows(encoded(table, rows))).await?;
    }
    bulk.finish(txn).await
}

fn bulk(
    db: &Arc<Database>,
    table: &Arc<Table>,
    rows: &[Vec<Value>],
    chunk: usize,
    memory: usize,
    mode: OnDuplicate,
) -> Result<BulkReport, MySqlError> {
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let report = bulk_in(&mut txn, table, rows, chunk, memory, mode).await?;
        txn.commit().await?;
        Ok(report)
    })
}

fn columns() -> Vec<ColumnDef> {
    vec![int("id").not_null(), int("u"), int("k"), varchar("s", 60)]
}

fn definition(kind: usize) -> Vec<IndexSpec> {
    match kind {
        0 => vec![IndexSpec::primary(&[0])],
        1 => vec![],
        2 => vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("k", &[2, 3])],
        3 => vec![IndexSpec::primary(&[3, 0]), IndexSpec::unique("u", &[1]), IndexSpec::ordinary("k", &[2])],
        4 => vec![IndexSpec::ordinary("k", &[2]), IndexSpec::unique("u", &[1])],
        _ => vec![IndexSpec::primary(&[0]), IndexSpec::new(IndexKind::FullText, Some("words"), &[3])],
    }
}

fn row(id: i64, rng: &mut SmallRng) -> Vec<Value> {
    let u = if id % 5 == 0 { NULL } else { i(id * 3) };
    vec![i(id), u, i(rng.random_range(0..50)), t(&"abcdefghijklmnopqrstuvwxyz abcdefghijklmnopqrstuvwxyz"[..rng.random_range(0..50)])]
}

/// Building an index is long work of one piece: the other tasks of its thread are told to move away.
#[test]
fn long_work_lets_the_thread_go() {
    let db = database();
    let table = create(&db, "t", columns(), definition(2));
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    db.engine().on_blocking(Box::new(move |work: &mut dyn FnMut()| {
        counted.fetch_add(1, Ordering::Relaxed);
        work();
    }));
    let mut rng = SmallRng::seed_from_u64(8);
    let mut rows: Vec<_> = (0..40_000).map(|id| row(id, &mut rng)).collect();
    rows.shuffle(&mut rng);
    bulk(&db, &table, &rows, 10_000, 64 << 20, OnDuplicate::Error).unwrap();
    let calls = calls.load(Ordering::Relaxed);
    assert!(calls >= 1, "{calls}: one for the rows and the index");
    check(&db);
}

#[test]
fn a_bulk_insert_does_what_a_plain_one_does() {
    let mut rng = SmallRng::seed_from_u64(3);
    for round in 0..60 {
        let db = database();
        let [plain, fast] = ["plain", "fast"].map(|name| create(&db, name, columns(), definition(round % 6)));
        // Beyond a mebibyte the empty table is loaded, below it is not.
        let count = [40, 900, 12_000, 15_000][rng.random_range(0..4)];
        let mut rows: Vec<_> = (0..count).map(|id| row(id, &mut rng)).collect();
        if round % 3 == 1 {
            rows.shuffle(&mut rng);
        }
        if round % 4 == 3 {
            // Doubles, far apart, with other values beside the key.
            for _ in 0..3 {
                let id = rng.random_range(0..count);
                let at = rng.random_range(0..rows.len());
                rows.insert(at, row(id, &mut rng));
            }
        }
        let mode = [OnDuplicate::Error, OnDuplicate::Ignore, OnDuplicate::Replace][rng.random_range(0..3)];
        if round % 7 == 6 {
            for table in [&plain, &fast] {
                fill(&db, table, vec![row(3, &mut SmallRng::seed_from_u64(1)), vec![i(count + 9), i(-1), i(1), t("there")]]);
            }
        }
        let memory = [100 << 10, 1 << 20, 64 << 20][rng.random_range(0..3)];
        let chunk = [77, 1000, 100_000][rng.random_range(0..3)];
        let expected = insert(&db, &plain, rows.clone(), mode);
        let found = bulk(&db, &fast, &rows, chunk, memory, mode);
        let context = format!("round {round}: {count} rows, {mode:?}, memory {memory}, chunks of {chunk}");
        match (expected, found) {
            (Ok(expected), Ok(found)) => {
                assert_eq!(found.inserted, expected.inserted, "{context}");
                assert_eq!(found.ignored, expected.ignored.len() as u64, "{context}");
                assert_eq!(found.ignored_errors.len(), expected.ignored.len(), "{context}");
                assert_eq!(found.replaced, expected.replaced, "{context}");
            }
            (Err(expected), Err(found)) => assert_eq!(found, expected, "{context}"),
            (expected, found) => panic!("{context}: {expected:?}, but {found:?}"),
        }
        let sorted = |table| {
            let mut rows: Vec<_> = all(&db, table).iter().map(|r| format!("{r:?}")).collect();
            rows.sort();
            rows
        };
        assert_eq!(sorted(&fast), sorted(&plain), "{context}");
        assert_eq!(fast.row_count_estimate().unwrap(), plain.row_count_estimate().unwrap(), "{context}");
        check(&db);
    }
}

#[test]
fn a_load_that_fails_or_is_rolled_back_leaves_nothing() {
    let db = database();
    let table = create(&db, "t", columns(), definition(3));
    let mut rng = SmallRng::seed_from_u64(8);
    let mut rows: Vec<_> = (0..15_000).map(|id| row(id, &mut rng)).collect();
    let start = |db: &Arc<Database>| db.begin(Isolation::RepeatableRead);
    // Rolled back after it was done, by the statement's savepoint and as a whole.
    block_on(async {
        let mut txn = start(&db);
        let savepoint = txn.statement_savepoint();
        bulk_in(&mut txn, &table, &rows, 4000, 64 << 20, OnDuplicate::Error).await.unwrap();
        txn.rollback_to_statement(&savepoint).unwrap();
        bulk_in(&mut txn, &table, &rows[..200], 4000, 64 << 20, OnDuplicate::Error).await.unwrap();
        txn.rollback().await.unwrap();
    });
    assert_eq!(all(&db, &table).len(), 0);
    check(&db);
    // A duplicate in the unique index, found after the pages of the clustered one were made.
    rows[14_000][1] = i(3);
    let error = bulk(&db, &table, &rows, 4000, 200 << 10, OnDuplicate::Error).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (1062, "Duplicate entry '3' for key 'u'"));
    assert_eq!(all(&db, &table).len(), 0);
    check(&db);
    // KILL.
    let interrupt = Arc::new(Interrupt::default());
    let mut txn = start(&db);
    txn.set_interrupt(interrupt.clone());
    interrupt.raise();
    let killed = block_on(bulk_in(&mut txn, &table, &rows[..14_000], 4000, 64 << 20, OnDuplicate::Error)).unwrap_err();
    assert_eq!(killed.code, 1317);
    drop(txn);
    assert_eq!(all(&db, &table).len(), 0);
    check(&db);
}

/// Their entries come in the order of the primary key, which is not that of the statement, and are more than are merged at a time.
#[test]
fn rows_that_all_have_one_unique_value_are_duplicates() {
    let db = database();
    let table = create(&db, "t", columns(), vec![IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1])]);
    let rows: Vec<_> = (0..70_000).rev().map(|id| vec![i(id), i(5), i(0), t("")]).collect();
    for chunk in [70_000, 10_000] {
        let error = bulk(&db, &table, &rows, chunk, 64 << 20, OnDuplicate::Error).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (1062, "Duplicate entry '5' for key 'u'"));
        assert_eq!(all(&db, &table).len(), 0);
    }
    check(&db);
}

/// Whichever index is built first, and wherever its own first duplicate is.
#[test]
fn the_first_row_that_meets_another_is_told_and_its_first_key() {
    let db = database();
    let indexes = vec![IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1]), IndexSpec::unique("v", &[2])];
    let table = create(&db, "t", columns(), indexes);
    let count = 15_000;
    let named = |key: &str| (1062, key.to_owned());
    for (doubles, key) in [
        // Rows that have the value of the row before them: in which column.
        (vec![(6, 1), (101, 0)], "u"),
        (vec![(6, 0), (101, 1)], "PRIMARY"),
        (vec![(6, 2), (101, 1), (201, 0)], "v"),
        (vec![(6, 1), (5, 2)], "v"),
        (vec![(9_000, 2), (9_000, 1)], "u"),
        (vec![(9_000, 1), (9_000, 0)], "PRIMARY"),
        (vec![(14_999, 2), (14_998, 1)], "u"),
    ] {
        for shuffled in [false, true] {
            let mut rows: Vec<_> = (0..count).map(|id| vec![i(id), i(id + 1), i(id + 2), t("some text that makes rows long")]).collect();
            if shuffled {
                rows.shuffle(&mut SmallRng::seed_from_u64(4));
            }
            for &(row, column) in &doubles {
                let value: Value = rows[row - 1][column].clone();
                rows[row][column] = value;
            }
            for (chunk, memory) in [(100_000, 64 << 20), (1000, 64 << 20), (1000, 200 << 10)] {
                let error = bulk(&db, &table, &rows, chunk, memory, OnDuplicate::Error).unwrap_err();
                let told = error.message.rsplit('\'').nth(1).unwrap().to_owned();
                assert_eq!((error.code, told), named(key), "{doubles:?}, shuffled {shuffled}, chunks of {chunk}, memory {memory}: {}", error.message);
                let row = doubles.iter().map(|(row, _)| *row).min().unwrap();
                let column = ["PRIMARY", "u", "v"].iter().position(|name| *name == key).unwrap();
                assert!(error.message.contains(&format!("'{}'", rows[row][column].as_i64().unwrap())), "{}", error.message);
                assert_eq!(all(&db, &table).len(), 0);
            }
        }
    }
    check(&db);
}

#[test]
fn a_part_that_is_taken_back_does_not_end_the_stage() {
    let db = database();
    let table = create(&db, "t", columns(), definition(2));
    let mut rng = SmallRng::seed_from_u64(9);
    let rows: Vec<_> = (0..50).map(|id| row(id, &mut rng)).collect();
    fill(&db, &table, rows[20..21].to_vec());
    let progress = Arc::new(Progress::default());
    let mut txn = db.begin(Isolation::RepeatableRead);
    txn.set_progress(progress.clone());
    progress.enter(Stage::ReadingFile, 1000);
    progress.add(500);
    let savepoint = txn.statement_savepoint();
    let report = block_on(bulk_in(&mut txn, &table, &rows, 50, 64 << 20, OnDuplicate::Ignore)).unwrap();
    assert_eq!((report.inserted, report.ignored), (49, 1));
    assert_eq!((progress.stage(), progress.done(), progress.total()), (Stage::ReadingFile, 500, Some(1000)));
    let report = block_on(table.insert(&mut txn, &rows[..2], OnDuplicate::Ignore)).unwrap();
    assert_eq!((report.inserted, progress.stage()), (0, Stage::ReadingFile));
    txn.rollback_to_statement(&savepoint).unwrap();
    assert_eq!(progress.stage(), Stage::RollingBack, "the end of a statement");
}

/// Rows of 400 bytes and more: a mebibyte is 2,500 of them.
fn wide(id: i64, rng: &mut SmallRng) -> Vec<Value> {
    let mut row = row(id, rng);
    row.push(t(&"wide row ".repeat(45)));
    row
}

fn wide_columns() -> Vec<ColumnDef> {
    let mut columns = columns();
    columns.push(varchar("w", 500));
    columns
}

#[test]
fn order_ends_in_the_middle_of_a_load() {
    // 8 MiB in order, which is enough to begin the load, then rows before those, and doubles of them.
    let mut rng = SmallRng::seed_from_u64(4);
    let in_order: Vec<_> = (10_000..30_000).map(|id| wide(id, &mut rng)).collect();
    let late: Vec<_> = (0..3_000).map(|id| wide(id, &mut rng)).collect();
    let doubles: Vec<_> = [29_999, 10_000, 12_345].map(|id| wide(id, &mut rng)).into();
    // With little memory what has come by then is left as it is.
    for (kind, memory, mode) in [
        (2, 64 << 20, OnDuplicate::Error),
        (0, 7 << 20, OnDuplicate::Error),
        (2, 64 << 20, OnDuplicate::Replace),
        (2, 7 << 20, OnDuplicate::Replace),
        (0, 64 << 20, OnDuplicate::Ignore),
    ] {
        let context = format!("index {kind}, memory {memory}, {mode:?}");
        let db = database();
        let table = create(&db, "t", wide_columns(), definition(kind));
        let mut rows = in_order.clone();
        rows.extend(late.iter().cloned());
        let report = bulk(&db, &table, &rows, 4_000, memory, OnDuplicate::Error).unwrap();
        assert_eq!(report.inserted, 23_000, "{context}");
        assert_eq!(all(&db, &table).len(), 23_000, "{context}");
        check(&db);
        let table = create(&db, "u", wide_columns(), definition(kind));
        rows.extend(doubles.iter().cloned());
        let report = bulk(&db, &table, &rows, 4_000, memory, mode);
        let found = all(&db, &table);
        match mode {
            OnDuplicate::Error => {
                assert_eq!(report.unwrap_err().message, "Duplicate entry '29999' for key 'PRIMARY'", "{context}");
                assert_eq!(found.len(), 0, "{context}");
            }
            OnDuplicate::Ignore => {
                let report = report.unwrap();
                assert_eq!((report.inserted, report.ignored), (23_000, 3), "{context}");
                assert_eq!(found.last(), in_order.last(), "{context}");
            }
            _ => {
                let report = report.unwrap();
                assert_eq!((report.inserted, report.replaced), (23_003, 3), "{context}");
                assert_eq!(found.last(), doubles.first(), "{context}");
            }
        }
        check(&db);
    }
}

#[test]
fn somebody_is_quicker_than_a_load_that_has_begun() {
    let db = database();
    let table = create(&db, "t", wide_columns(), definition(2));
    let mut rng = SmallRng::seed_from_u64(8);
    let rows: Vec<_> = (0..30_000).map(|id| wide(id, &mut rng)).collect();
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(txn.open(&table).await.unwrap());
        let mut bulk = table.bulk_insert(&mut txn, OnDuplicate::Error, 64 << 20).unwrap();
        for (n, rows) in rows.chunks(5_000).enumerate() {
            if n == 5 {
                fill(&db, &table, vec![wide(-1, &mut rng)]);
            }
            bulk.add(&mut txn, table.prepare_rows(encoded(&table, rows))).await.unwrap();
            // The others are not kept waiting for the end.
            assert_eq!(bulk.report().inserted, if n < 2 { 0 } else { 5_000 * (n as u64 + 1) });
        }
        assert_eq!(bulk.finish(&mut txn).await.unwrap().inserted, 30_000);
        txn.commit().await.unwrap();
    });
    assert_eq!(all(&db, &table).len(), 30_001);
    check(&db);
}

#[test]
fn somebody_is_quicker() {
    let db = database();
    for (memory, name) in [(64 << 20, "sorted"), (100 << 10, "streamed")] {
        let table = create(&db, name, columns(), definition(2));
        let mut rng = SmallRng::seed_from_u64(8);
        let rows: Vec<_> = (0..15_000).map(|id| row(id, &mut rng)).collect();
        block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            assert!(txn.open(&table).await.unwrap());
            let mut bulk = table.bulk_insert(&mut txn, OnDuplicate::Error, memory).unwrap();
            bulk.add(&mut txn, table.prepare_rows(encoded(&table, &rows[..14_000]))).await.unwrap();
            fill(&db, &table, vec![vec![i(-1), NULL, i(0), t("first")]]);
            bulk.add(&mut txn, table.prepare_rows(encoded(&table, &rows[14_000..]))).await.unwrap();
            assert_eq!(bulk.finish(&mut txn).await.unwrap().inserted, 15_000, "{name}");
            txn.commit().await.unwrap();
        });
        assert_eq!(all(&db, &table).len(), 15_001, "{name}");
        check(&db);
    }
}
