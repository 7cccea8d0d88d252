//! Partitioned tables: rows in and out of their partitions, in the order of every index.

mod common;

use std::ops::Bound;
use std::sync::Arc;

use common::*;
use highkey_table::*;
use highkey_types::Value;

fn hash(name: &str, column: &str, count: usize) -> TableSpec {
    let columns = vec![int("id").not_null(), int("u"), int("k"), varchar("s", 40)];
    let partition = |n| PartitionDef { name: format!("p{n}").into(), comment: "".into(), values: PartitionValues::ByPlace, trees: Vec::new() };
    let method = PartitionMethod::Hash { expr: PartitionExpr::Column(column.into()), linear: false };
    let partitioning = Partitioning { method, partitions: (0..count).map(partition).collect(), numbered: true };
    let indexes = vec![IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1, 0]), IndexSpec::ordinary("by_k", &[2])];
    TableSpec { partitioning: Some(partitioning), ..TableSpec::new("s", name, columns, indexes) }
}

fn make(db: &Arc<Database>, spec: TableSpec) -> Arc<Table> {
    block_on(db.create_table(&DdlContext::default(), spec)).unwrap()
}

fn sample_row(id: i64) -> Vec<Value> {
    vec![i(id), i(id * 10), i(id % 7), t(&format!("name{:03}", id % 50))]
}

#[test]
fn rows_come_in_the_order_of_every_index() {
    let db = database();
    let table = make(&db, hash("t", "id", 5));
    fill(&db, &table, (0..1000).map(|n| sample_row(n * 387 % 1000)).collect());
    check(&db);
    let sorted: Vec<_> = (0..1000).map(sample_row).collect();
    assert_eq!(all(&db, &table), sorted);
    assert_eq!(table.row_count_estimate().unwrap(), 1000);
    for part in table.partition_tables() {
        assert_eq!(all(&db, part).len(), 200);
    }
    let mut txn = db.begin(Isolation::RepeatableRead);
    let back = rows_in(&mut txn, &table, 0, &KeyRange::all(), Direction::Backward);
    assert_eq!(back, sorted.iter().rev().cloned().collect::<Vec<_>>());
    let range = KeyRange { lower: Bound::Excluded(vec![i(10)]), upper: Bound::Included(vec![i(13)]) };
    assert_eq!(rows_in(&mut txn, &table, 0, &range, Direction::Forward), [sample_row(11), sample_row(12), sample_row(13)]);
    let by_k = table.def().index("by_k").unwrap();
    let k = rows_in(&mut txn, &table, by_k, &KeyRange::all(), Direction::Forward);
    assert!(k.windows(2).all(|w| (w[0][2].as_i64(), w[0][0].as_i64()) < (w[1][2].as_i64(), w[1][0].as_i64())));
    assert_eq!(rows_in(&mut txn, &table, by_k, &KeyRange::prefix(&[i(6)]), Direction::Forward).len(), (0..1000).filter(|n| n % 7 == 6).count());
    assert_eq!(table.get(&mut txn, 0, &[i(77)]).unwrap().unwrap().values(), sample_row(77));
    assert_eq!(table.get(&mut txn, 1, &[i(770), i(77)]).unwrap().unwrap().values(), sample_row(77));
    assert!(table.get(&mut txn, 0, &[i(1000)]).unwrap().is_none());
}

#[test]
fn pieces_are_the_whole_range() {
    let db = database();
    let table = make(&db, hash("t", "id", 3));
    fill(&db, &table, (0..3000).map(sample_row).collect());
    let mut txn = db.begin(Isolation::RepeatableRead);
    let snapshot = txn.snapshot();
    for index in 0..table.indexes().len() {
        let mut found = Vec::new();
        for piece in &table.partitions(index, &KeyRange::all(), true).unwrap().parts {
            let mut scan = table.scan_partition(&snapshot, index, piece, Direction::Forward).unwrap();
            let mut batch = RowBatch::new();
            while scan.next_batch(&mut batch).unwrap() {
                found.extend((0..batch.len()).map(|row| batch.values(row)));
            }
        }
        assert_eq!(found, rows_in(&mut txn, &table, index, &KeyRange::all(), Direction::Forward));
    }
}

#[test]
fn an_update_moves_a_row_to_its_partition() {
    let db = database();
    let spec = TableSpec { partitioning: Some(by_id(&[("p0", Some(10)), ("p1", Some(20))])), ..hash("t", "id", 1) };
    let table = make(&db, spec);
    fill(&db, &table, (0..15).map(sample_row).collect());
    let change = |from: i64, to: i64| {
        block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            assert!(txn.open(&table).await?);
            let mut scan = table.scan_locking(&mut txn, 0, &KeyRange::prefix(&[i(from)]), Direction::Forward, LockMode::Exclusive, LockWaitPolicy::Wait);
            let row = scan.next(&mut txn).await?.unwrap();
            drop(scan);
            let mut new = row.values();
            new[0] = i(to);
            let changed = table.update(&mut txn, &row, &new).await;
            match changed {
                Ok(_) => txn.commit().await?,
                Err(_) => txn.rollback().await?,
            }
            changed
        })
    };
    assert!(change(3, 17).unwrap());
    check(&db);
    assert_eq!(all(&db, &table.partition_tables()[1]).len(), 6);
    assert_eq!(change(4, 17).unwrap_err().code, 1062);
    assert_eq!(change(4, 20).unwrap_err().code, 1526);
    check(&db);
    assert_eq!(all(&db, &table).len(), 15);
}

#[test]
fn locking_scans_keep_the_order_and_see_every_row_once() {
    let db = database();
    let table = make(&db, hash("t", "id", 4));
    fill(&db, &table, (0..200).map(sample_row).collect());
    for index in [0, 1, 2] {
        for direction in [Direction::Forward, Direction::Backward] {
            let found: Vec<Vec<Value>> = block_on(async {
                let mut txn = db.begin(Isolation::RepeatableRead);
                assert!(txn.open(&table).await?);
                let mut scan = table.scan_locking(&mut txn, index, &KeyRange::all(), direction, LockMode::Exclusive, LockWaitPolicy::Wait);
                let rows = scan.collect(&mut txn, usize::MAX).await?;
                drop(scan);
                txn.rollback().await?;
                Ok::<_, highkey_types::MySqlError>(rows.iter().map(Row::values).collect())
            })
            .unwrap();
            assert_eq!(found, rows(&db, &table, index, &KeyRange::all(), direction));
        }
    }
}

#[test]
fn rows_without_a_partition_are_left_out_or_refused() {
    let db = database();
    let spec = TableSpec { partitioning: Some(by_id(&[("p0", Some(10)), ("p1", Some(20))])), ..hash("t", "id", 1) };
    let table = make(&db, spec);
    let batch = || vec![sample_row(1), sample_row(50), sample_row(11)];
    assert_eq!(insert(&db, &table, batch(), OnDuplicate::Error).unwrap_err().code, 1526);
    let report = insert(&db, &table, batch(), OnDuplicate::Ignore).unwrap();
    assert_eq!((report.inserted, report.ignored.len(), report.ignored[0].0), (2, 1, 1));
    let first = table.with_partitions(&["p0".into()]).unwrap();
    assert_eq!(all(&db, &first), [sample_row(1)]);
    assert_eq!(insert(&db, &first, vec![sample_row(12)], OnDuplicate::Error).unwrap_err().code, 1748);
    assert_eq!(table.with_partitions(&["p7".into()]).unwrap_err().code, 1735);
    assert_eq!(insert(&db, &table, vec![sample_row(2), sample_row(11)], OnDuplicate::Error).unwrap_err().code, 1062);
    assert_eq!(all(&db, &table), [sample_row(1), sample_row(11)]);
}

#[test]
fn what_a_range_leaves_out_is_not_read() {
    let db = database();
    let limits = [("p0", Some(10)), ("p1", Some(20)), ("p2", Some(30)), ("pm", None)];
    let table = make(&db, TableSpec { partitioning: Some(by_id(&limits)), ..hash("t", "id", 1) });
    let read = |lower: Bound<Vec<Value>>, upper: Bound<Vec<Value>>| {
        let names = table.partitions_read(0, &[KeyRange { lower, upper }]).unwrap();
        names.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
    };
    assert_eq!(read(Bound::Unbounded, Bound::Excluded(vec![i(20)])), "p0,p1");
    assert_eq!(read(Bound::Included(vec![i(20)]), Bound::Included(vec![i(20)])), "p2");
    assert_eq!(read(Bound::Excluded(vec![i(29)]), Bound::Unbounded), "pm");
    assert_eq!(read(Bound::Excluded(vec![NULL]), Bound::Included(vec![i(9)])), "p0");
    assert_eq!(read(Bound::Unbounded, Bound::Unbounded), "p0,p1,p2,pm");
}

#[test]
fn a_bulk_insert_puts_rows_into_their_partitions() {
    let db = database();
    let table = make(&db, hash("t", "id", 3));
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let mut encoded = EncodedRows::new();
        for id in 0..5000 {
            encoded.push_with(|out| table.layout().encode(&sample_row(id), out));
        }
        let mut bulk = table.bulk_insert(&mut txn, OnDuplicate::Error, 64 << 20)?;
        bulk.add(&mut txn, table.prepare_rows(encoded)).await?;
        bulk.finish(&mut txn).await?;
        txn.commit().await
    })
    .unwrap();
    check(&db);
    assert_eq!(all(&db, &table).len(), 5000);
}
