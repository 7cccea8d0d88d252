//! Rows and indexes: reading and changing them, duplicates, locking reads.

mod common;

use std::ops::Bound;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::*;
use highkey_table::*;
use highkey_types::{MySqlError, Value};

/// id primary, u unique (nullable), (k descending, s) ordinary, s(2) prefix.
fn sample(db: &Arc<Database>) -> Arc<Table> {
    let mut by_k = IndexSpec::ordinary("by_k", &[2, 3]);
    by_k.parts[0].descending = true;
    let mut by_prefix = IndexSpec::ordinary("by_prefix", &[3]);
    by_prefix.parts[0].prefix = Some(2);
    create(
        db,
        "t",
        vec![int("id").not_null(), int("u"), int("k"), varchar("s", 40)],
        vec![IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1]), by_k, by_prefix],
    )
}

fn sample_row(id: i64) -> Vec<Value> {
    vec![i(id), i(id * 10), i(id % 7), t(&format!("name{:03}", id % 50))]
}

#[test]
fn rows_go_in_and_come_out_by_every_index() {
    let db = database();
    let table = sample(&db);
    // Shuffled: multiplication by a number coprime to 1000.
    fill(&db, &table, (0..1000).map(|n| sample_row(n * 387 % 1000)).collect());
    check(&db);
    assert_eq!(all(&db, &table), (0..1000).map(sample_row).collect::<Vec<_>>());
    assert_eq!(table.row_count_estimate().unwrap(), 1000);

    let mut txn = db.begin(Isolation::RepeatableRead);
    assert_eq!(table.get(&mut txn, 0, &[i(77)]).unwrap().unwrap().values(), sample_row(77));
    assert_eq!(table.get(&mut txn, 1, &[i(770)]).unwrap().unwrap().values(), sample_row(77));
    assert!(table.get(&mut txn, 0, &[i(1000)]).unwrap().is_none());
    assert!(table.get(&mut txn, 1, &[NULL]).unwrap().is_none());

    let back = rows_in(&mut txn, &table, 0, &KeyRange::all(), Direction::Backward);
    assert_eq!(back, (0..1000).rev().map(sample_row).collect::<Vec<_>>());
    let range = KeyRange { lower: Bound::Excluded(vec![i(10)]), upper: Bound::Included(vec![i(13)]) };
    let some = rows_in(&mut txn, &table, 0, &range, Direction::Forward);
    assert_eq!(some, [sample_row(11), sample_row(12), sample_row(13)]);

    // k descending: index order is 6, 5, … 0; a prefix of the key stands for all that start with it.
    let by_k = table.def().index("by_k").unwrap();
    let k: Vec<_> =
        rows_in(&mut txn, &table, by_k, &KeyRange::all(), Direction::Forward).iter().map(|r| r[2].clone()).collect();
    assert!(k.windows(2).all(|w| w[0].as_i64() >= w[1].as_i64()));
    let sixes = rows_in(&mut txn, &table, by_k, &KeyRange::prefix(&[i(6)]), Direction::Forward);
    assert_eq!(sixes.len(), (0..1000).filter(|n| n % 7 == 6).count());
    assert!(sixes.windows(2).all(|w| w[0][3].as_str() <= w[1][3].as_str()));
    let from_six = KeyRange { lower: Bound::Excluded(vec![i(6)]), upper: Bound::Unbounded };
    assert_eq!(rows_in(&mut txn, &table, by_k, &from_six, Direction::Backward).len(), 1000 - sixes.len());

    // A prefix index gives a superset.
    let by_prefix = table.def().index("by_prefix").unwrap();
    let found = rows_in(&mut txn, &table, by_prefix, &KeyRange::prefix(&[t("name007")]), Direction::Forward);
    assert_eq!(found.len(), 1000);
}

#[test]
fn updates_and_deletes_keep_all_indexes() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..300).map(sample_row).collect());
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let x = LockMode::Exclusive;
        for id in 0..300 {
            let row = table.lock_get(&mut txn, 0, &[i(id)], x, LockWaitPolicy::Wait).await.unwrap().unwrap();
            match id % 5 {
                0 => table.delete(&mut txn, &row).await.unwrap(),
                1 => {
                    let mut new = row.values();
                    new[0] = i(id + 1000);
                    assert!(table.update(&mut txn, &row, &new).await.unwrap());
                }
                2 => {
                    let mut new = row.values();
                    (new[1], new[2]) = (NULL, i(-id));
                    assert!(table.update(&mut txn, &row, &new).await.unwrap());
                }
                3 => assert!(!table.update(&mut txn, &row, &row.values()).await.unwrap()),
                _ => {}
            }
        }
        // The transaction sees its own changes, nobody else does.
        assert_eq!(rows_in(&mut txn, &table, 0, &KeyRange::all(), Direction::Forward).len(), 240);
        assert_eq!(all(&db, &table).len(), 300);
        txn.commit().await.unwrap();
    });
    check(&db);
    assert_eq!(table.row_count_estimate().unwrap(), 240);
    let mut txn = db.begin(Isolation::ReadCommitted);
    assert!(table.get(&mut txn, 0, &[i(0)]).unwrap().is_none());
    assert_eq!(table.get(&mut txn, 1, &[i(10)]).unwrap().unwrap().value(0), i(1001));
    assert_eq!(rows_in(&mut txn, &table, 1, &KeyRange::prefix(&[NULL]), Direction::Forward).len(), 60);
}

#[test]
fn a_rolled_back_transaction_leaves_nothing() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        table.insert(&mut txn, &(10..500).map(sample_row).collect::<Vec<_>>(), OnDuplicate::Error).await.unwrap();
        txn.savepoint("a");
        table.insert(&mut txn, &[sample_row(600)], OnDuplicate::Error).await.unwrap();
        txn.rollback_to("A").unwrap();
        assert_eq!(rows_in(&mut txn, &table, 0, &KeyRange::all(), Direction::Forward).len(), 500);
        assert_eq!(txn.rollback_to("b").unwrap_err().code, 1305);
        txn.release("a").unwrap();
        assert_eq!(txn.rollback_to("a").unwrap_err().code, 1305);
        txn.rollback().await.unwrap();
    });
    assert_eq!(all(&db, &table).len(), 10);
    assert_eq!(table.row_count_estimate().unwrap(), 10);
    check(&db);
}

#[test]
fn duplicates_are_errors_with_mysqls_text() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    let error = insert(&db, &table, vec![sample_row(3)], OnDuplicate::Error).unwrap_err();
    assert_eq!((error.code, error.message.as_str()), (1062, "Duplicate entry '3' for key 'PRIMARY'"));
    let row = vec![i(20), i(50), NULL, NULL];
    let error = insert(&db, &table, vec![row.clone()], OnDuplicate::Error).unwrap_err();
    assert_eq!(error.message, "Duplicate entry '50' for key 'u'");
    // In a batch: the first in the statement's order, and nothing stays.
    let batch = vec![sample_row(40), sample_row(7), sample_row(2), sample_row(41)];
    let error = insert(&db, &table, batch, OnDuplicate::Error).unwrap_err();
    assert_eq!(error.message, "Duplicate entry '7' for key 'PRIMARY'");
    // Twice in the statement itself.
    let error = insert(&db, &table, vec![sample_row(60), sample_row(60)], OnDuplicate::Error).unwrap_err();
    assert_eq!(error.message, "Duplicate entry '60' for key 'PRIMARY'");
    assert_eq!(all(&db, &table).len(), 10);

    let both = create(
        &db,
        "both",
        vec![int("a").not_null(), varchar("b", 10).not_null()],
        vec![IndexSpec::primary(&[0, 1])],
    );
    fill(&db, &both, vec![vec![i(1), t("abc")]]);
    let error = insert(&db, &both, vec![vec![i(1), t("ABC")]], OnDuplicate::Error).unwrap_err();
    assert_eq!(error.message, "Duplicate entry '1-ABC' for key 'PRIMARY'");
    fill(&db, &both, vec![vec![i(1), t("abd")], vec![i(2), t("abc")]]);
    check(&db);
}

#[test]
fn ignore_leaves_duplicates_out() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    let clash = vec![i(30), i(90), NULL, NULL];
    let report =
        insert(&db, &table, vec![sample_row(20), sample_row(5), clash, sample_row(21)], OnDuplicate::Ignore).unwrap();
    assert_eq!(report.inserted, 2);
    assert_eq!(report.ignored.iter().map(|(row, _)| *row).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(report.ignored[1].1.message, "Duplicate entry '90' for key 'u'");
    assert_eq!(all(&db, &table).len(), 12);
    check(&db);
}

#[test]
fn replace_removes_every_row_in_the_way() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    // Meets row 3 in the primary key and row 7 in u.
    let report = insert(&db, &table, vec![vec![i(3), i(70), i(1), t("new")]], OnDuplicate::Replace).unwrap();
    assert_eq!((report.inserted, report.replaced), (1, 2));
    assert_eq!(all(&db, &table).len(), 9);
    assert_eq!(table.row_count_estimate().unwrap(), 9);
    check(&db);
}

#[test]
fn report_stops_at_the_row_in_the_way() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let new = [sample_row(20), vec![i(30), i(40), NULL, NULL], sample_row(21)];
        let report = table.insert(&mut txn, &new, OnDuplicate::Report).await.unwrap();
        assert_eq!(report.inserted, 1);
        let duplicate = report.duplicate.unwrap();
        assert_eq!((duplicate.row, duplicate.index), (1, 1));
        assert_eq!(duplicate.existing.values(), sample_row(4));
        let mut updated = duplicate.existing.values();
        updated[3] = t("met");
        table.update(&mut txn, &duplicate.existing, &updated).await.unwrap();
        let report = table.insert(&mut txn, &new[2..], OnDuplicate::Report).await.unwrap();
        assert_eq!(report.inserted, 1);
        txn.commit().await.unwrap();
    });
    assert_eq!(all(&db, &table).len(), 12);
    check(&db);
}

#[test]
fn unique_keys_admit_many_nulls_and_come_free_again() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..20).map(|n| vec![i(n), NULL, NULL, NULL]).collect());
    fill(&db, &table, vec![vec![i(100), i(1), NULL, NULL]]);
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let row = table
            .lock_get(&mut txn, 1, &[i(1)], LockMode::Exclusive, LockWaitPolicy::Wait)
            .await
            .unwrap()
            .unwrap();
        table.delete(&mut txn, &row).await.unwrap();
        // The key is free again for this transaction.
        table.insert(&mut txn, &[vec![i(101), i(1), NULL, NULL]], OnDuplicate::Error).await.unwrap();
        txn.commit().await.unwrap();
    });
    fill(&db, &table, vec![vec![i(100), NULL, NULL, NULL]]);
    check(&db);
}

#[test]
fn an_update_that_meets_a_unique_key_changes_nothing() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let row = table
            .lock_get(&mut txn, 0, &[i(4)], LockMode::Exclusive, LockWaitPolicy::Wait)
            .await
            .unwrap()
            .unwrap();
        let mut new = row.values();
        (new[0], new[1]) = (i(44), i(50));
        let error = table.update(&mut txn, &row, &new).await.unwrap_err();
        assert_eq!(error.message, "Duplicate entry '50' for key 'u'");
        new[0] = i(5);
        let error = table.update(&mut txn, &row, &new).await.unwrap_err();
        assert_eq!(error.message, "Duplicate entry '5' for key 'PRIMARY'");
        txn.commit().await.unwrap();
    });
    assert_eq!(all(&db, &table), (0..10).map(sample_row).collect::<Vec<_>>());
    check(&db);
}

#[test]
fn a_table_without_primary_key_keeps_the_order_of_insertion() {
    let db = database();
    let table = create(&db, "h", vec![int("a"), varchar("b", 20)], vec![IndexSpec::ordinary("a", &[0])]);
    assert_eq!(table.indexes()[0].kind, IndexKind::RowId);
    fill(&db, &table, (0..500).map(|n| vec![i(500 - n), t("x")]).collect());
    fill(&db, &table, vec![vec![i(7), NULL], vec![i(7), NULL]]);
    let found = all(&db, &table);
    assert_eq!(found[0][0], i(500));
    assert_eq!(found.len(), 502);
    assert_eq!(rows(&db, &table, 1, &KeyRange::prefix(&[i(7)]), Direction::Forward).len(), 3);
    check(&db);
}

#[test]
fn a_blob_of_five_megabytes_goes_in_and_comes_out() {
    let db = database();
    let table = create(&db, "b", vec![int("id").not_null(), longblob("b")], vec![IndexSpec::primary(&[0])]);
    let blob: Vec<u8> = (0..5_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fill(&db, &table, vec![vec![i(1), Value::Bytes(blob.clone())], vec![i(2), NULL]]);
    assert_eq!(all(&db, &table)[0][1], Value::Bytes(blob.clone()));
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let row = table
            .lock_get(&mut txn, 0, &[i(1)], LockMode::Exclusive, LockWaitPolicy::Wait)
            .await
            .unwrap()
            .unwrap();
        let short = vec![i(1), Value::Bytes(vec![7; 100])];
        table.update(&mut txn, &row, &short).await.unwrap();
        // Others still read the old value.
        assert_eq!(all(&db, &table)[0][1], Value::Bytes(blob));
        txn.commit().await.unwrap();
    });
    assert_eq!(all(&db, &table)[0][1], Value::Bytes(vec![7; 100]));
    check(&db);
}

#[test]
fn a_snapshot_does_not_move() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..100).map(sample_row).collect());
    block_on(async {
        let mut reader = db.begin(Isolation::RepeatableRead);
        let mut fresh = db.begin(Isolation::ReadCommitted);
        assert_eq!(rows_in(&mut reader, &table, 2, &KeyRange::all(), Direction::Forward).len(), 100);
        assert_eq!(rows_in(&mut fresh, &table, 0, &KeyRange::all(), Direction::Forward).len(), 100);
        let mut writer = db.begin(Isolation::RepeatableRead);
        for id in 0..50 {
            let row = table
                .lock_get(&mut writer, 0, &[i(id)], LockMode::Exclusive, LockWaitPolicy::Wait)
                .await
                .unwrap()
                .unwrap();
            let mut new = row.values();
            new[2] = i(99);
            table.update(&mut writer, &row, &new).await.unwrap();
        }
        writer.commit().await.unwrap();
        let by_k = KeyRange::prefix(&[i(99)]);
        assert_eq!(rows_in(&mut reader, &table, 2, &by_k, Direction::Forward).len(), 0);
        assert_eq!(rows_in(&mut reader, &table, 2, &KeyRange::all(), Direction::Forward).len(), 100);
        fresh.begin_statement();
        assert_eq!(rows_in(&mut fresh, &table, 2, &by_k, Direction::Forward).len(), 50);
        reader.commit().await.unwrap();
    });
}

#[test]
fn an_old_snapshot_reads_the_old_owner_of_a_unique_key() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, vec![vec![i(1), i(7), NULL, NULL]]);
    let mut reader = db.begin(Isolation::RepeatableRead);
    assert_eq!(table.get(&mut reader, 1, &[i(7)]).unwrap().unwrap().value(0), i(1));
    let report = insert(&db, &table, vec![vec![i(2), i(7), NULL, NULL]], OnDuplicate::Replace).unwrap();
    assert_eq!(report.replaced, 1);
    assert_eq!(table.get(&mut reader, 1, &[i(7)]).unwrap().unwrap().value(0), i(1));
    let mut fresh = db.begin(Isolation::RepeatableRead);
    assert_eq!(table.get(&mut fresh, 1, &[i(7)]).unwrap().unwrap().value(0), i(2));
    check(&db);
}

#[test]
fn partitions_are_the_range() {
    let db = database();
    let table = sample(&db);
    for chunk in 0..80 {
        fill(&db, &table, (chunk * 1000..chunk * 1000 + 1000).map(sample_row).collect());
    }
    let mut txn = db.begin(Isolation::RepeatableRead);
    let snapshot = txn.snapshot();
    for index in 0..table.indexes().len() {
        let range = KeyRange::all();
        let (large, small) = (table.partitions(index, &range, false).unwrap(), table.partitions(index, &range, true).unwrap());
        let (large, parts) = (large.parts, small.parts);
        assert!(large.len() > 1 && parts.len() > 10 * large.len(), "{} and {}", large.len(), parts.len());
        let together: Vec<Vec<Value>> = std::thread::scope(|s| {
            let scans: Vec<_> = parts
                .iter()
                .map(|part| {
                    let (table, snapshot) = (&table, &snapshot);
                    s.spawn(move || {
                        let mut scan = table.scan_partition(snapshot, index, part, Direction::Forward).unwrap();
                        let mut batch = RowBatch::new();
                        let mut found = Vec::new();
                        while scan.next_batch(&mut batch).unwrap() {
                            found.extend((0..batch.len()).map(|row| batch.values(row)));
                        }
                        found
                    })
                })
                .collect();
            scans.into_iter().flat_map(|scan| scan.join().unwrap()).collect()
        });
        assert_eq!(together, rows_in(&mut txn, &table, index, &range, Direction::Forward));
        assert_eq!(together.len(), 80_000);
    }
    let statistics = table.statistics(&mut txn).unwrap();
    assert_eq!(statistics.rows, 80_000);
    assert_eq!(statistics.cardinality[0], [80_000]);
    let cardinality = &statistics.cardinality;
    assert!((7..=40).contains(&cardinality[2][0]) && (200..=700).contains(&cardinality[2][1]) && cardinality[3][0] == 1, "{cardinality:?}");
}

#[test]
fn values_that_lie_together_are_counted() {
    let db = database();
    let by_part = [IndexSpec::primary(&[0, 1]), IndexSpec::ordinary("orders", &[0]), IndexSpec::ordinary("lines", &[1]), IndexSpec::ordinary("rare", &[2])];
    let table = create(&db, "l", vec![int("o").not_null(), int("n").not_null(), int("r")], by_part.to_vec());
    let row = |id: i64| vec![i(id / 4), i(id % 4), if id % 100 < 90 { NULL } else { i(id) }];
    // An exact count of a table that a sample reads as a whole.
    fill(&db, &table, (0..400).map(row).collect());
    let mut txn = db.begin(Isolation::RepeatableRead);
    assert_eq!(table.statistics(&mut txn).unwrap().cardinality, [vec![100, 400], vec![100], vec![4], vec![41]]);
    for chunk in 0..60 {
        fill(&db, &table, (400 + chunk * 1000..1400 + chunk * 1000).map(row).collect());
    }
    let mut txn = db.begin(Isolation::RepeatableRead);
    let cardinality = table.analyze(&mut txn).unwrap().cardinality.clone();
    let near = |part: u64, exact: u64| part.abs_diff(exact) < exact / 3;
    assert!(near(cardinality[0][0], 15_100) && cardinality[0][1] == 60_400, "{cardinality:?}");
    assert!(near(cardinality[1][0], 15_100) && (4..=8).contains(&cardinality[2][0]) && near(cardinality[3][0], 6041), "{cardinality:?}");
}

#[test]
fn locking_reads_skip_or_refuse_what_others_hold() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    block_on(async {
        let mut one = db.begin(Isolation::RepeatableRead);
        let mut two = db.begin(Isolation::ReadCommitted);
        let x = LockMode::Exclusive;
        table.lock_get(&mut one, 0, &[i(3)], x, LockWaitPolicy::Wait).await.unwrap().unwrap();
        let error = table.lock_get(&mut two, 0, &[i(3)], x, LockWaitPolicy::NoWait).await.unwrap_err();
        assert_eq!(error.code, 3572);
        assert!(table.lock_get(&mut two, 1, &[i(30)], x, LockWaitPolicy::SkipLocked).await.unwrap().is_none());
        let by_k = table.def().index("by_k").unwrap();
        for index in [0, 1, by_k] {
            let mut scan =
                table.scan_locking(&mut two, index, &KeyRange::all(), Direction::Forward, x, LockWaitPolicy::SkipLocked);
            let found = scan.collect(&mut two, usize::MAX).await.unwrap();
            assert_eq!(found.len(), 9);
            assert!(found.iter().all(|row| row.value(0) != i(3)));
        }
        two.set_lock_wait_timeout(Duration::from_millis(30));
        let error = table.lock_get(&mut two, 0, &[i(3)], x, LockWaitPolicy::Wait).await.unwrap_err();
        assert_eq!(error.code, 1205);
        one.rollback().await.unwrap();
        assert!(table.lock_get(&mut two, 0, &[i(3)], x, LockWaitPolicy::Wait).await.unwrap().is_some());
        two.commit().await.unwrap();
    });
}

#[test]
fn a_locking_read_waits_and_then_sees_the_latest() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..10).map(sample_row).collect());
    let adders: Vec<_> = (0..4)
        .map(|_| {
            let (db, table) = (db.clone(), table.clone());
            std::thread::spawn(move || {
                for _ in 0..50 {
                    block_on(async {
                        let mut txn = db.begin(Isolation::RepeatableRead);
                        let mut scan = table.scan_locking(
                            &mut txn,
                            1,
                            &KeyRange::prefix(&[i(50)]),
                            Direction::Forward,
                            LockMode::Exclusive,
                            LockWaitPolicy::Wait,
                        );
                        let row = scan.next(&mut txn).await.unwrap().unwrap();
                        let mut new = row.values();
                        new[2] = i(new[2].as_i64().unwrap() + 1);
                        table.update(&mut txn, &row, &new).await.unwrap();
                        txn.commit().await.unwrap();
                    });
                }
            })
        })
        .collect();
    adders.into_iter().for_each(|adder| adder.join().unwrap());
    let mut txn = db.begin(Isolation::ReadCommitted);
    assert_eq!(table.get(&mut txn, 0, &[i(5)]).unwrap().unwrap().value(2), i(5 + 200));
    check(&db);
}

#[test]
fn two_inserters_of_one_key_wait_for_each_other() {
    let db = database();
    let table = sample(&db);
    let mut one = db.begin(Isolation::RepeatableRead);
    block_on(table.insert(&mut one, &[sample_row(1)], OnDuplicate::Error)).unwrap();
    let other = {
        let (db, table) = (db.clone(), table.clone());
        std::thread::spawn(move || insert(&db, &table, vec![sample_row(1), sample_row(2)], OnDuplicate::Error))
    };
    std::thread::sleep(Duration::from_millis(20));
    block_on(one.commit()).unwrap();
    assert_eq!(other.join().unwrap().unwrap_err().code, 1062);

    let mut one = db.begin(Isolation::RepeatableRead);
    block_on(table.insert(&mut one, &[sample_row(5)], OnDuplicate::Error)).unwrap();
    let other = {
        let (db, table) = (db.clone(), table.clone());
        std::thread::spawn(move || insert(&db, &table, vec![sample_row(5)], OnDuplicate::Error))
    };
    std::thread::sleep(Duration::from_millis(20));
    block_on(one.rollback()).unwrap();
    assert_eq!(other.join().unwrap().unwrap().inserted, 1);
    assert_eq!(all(&db, &table), [sample_row(1), sample_row(5)]);
    check(&db);
}

#[test]
fn concurrent_inserts_end_with_exact_counts() {
    let db = database();
    let mut columns = vec![int("id").auto_increment(), int("k"), varchar("s", 60)];
    let indexed = create(
        &db,
        "indexed",
        columns.clone(),
        vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("k", &[1]), IndexSpec::ordinary("s", &[2])],
    );
    columns[0] = int("id");
    let hidden = create(&db, "hidden", columns, vec![]);
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (db, indexed, hidden) = (db.clone(), indexed.clone(), hidden.clone());
            std::thread::spawn(move || {
                for round in 0..30 {
                    let first = indexed.reserve(50, 1, 1).unwrap().first as i64;
                    let row = |n: i64| vec![i(first + n), i((n * 37 + thread) % 11), t(&format!("{thread}-{round}-{n}"))];
                    let batch: Vec<_> = (0..50).map(row).collect();
                    fill(&db, &indexed, batch.clone());
                    fill(&db, &hidden, batch);
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(all(&db, &indexed).len(), 4 * 30 * 50);
    assert_eq!(all(&db, &hidden).len(), 4 * 30 * 50);
    assert_eq!(indexed.row_count_estimate().unwrap(), 6000);
    check(&db);
}

#[test]
fn indexes_tell_what_they_hold() {
    let db = database();
    let table = sample(&db);
    fill(&db, &table, (0..5000).map(sample_row).collect());
    let mut txn = db.begin(Isolation::ReadCommitted);
    assert!(txn.try_open(&table));
    let mut unkept = || table.statistics_unkept(&mut txn).unwrap();
    assert!(!Arc::ptr_eq(&unkept(), &unkept()), "sampled each time");
    let sampled = unkept();
    let statistics = table.analyze(&mut txn).unwrap();
    assert_eq!(sampled.cardinality, statistics.cardinality);
    assert!(Arc::ptr_eq(&table.statistics_unkept(&mut txn).unwrap(), &statistics));
    for index in 0..table.indexes().len() {
        let summary = table.index_summary(&statistics, index).unwrap();
        let levels = table.index_levels(index, &|| false).unwrap();
        assert_eq!(levels[0].records, 5000);
        assert_eq!(summary.leaf_pages, levels[0].pages);
        assert_eq!(summary.used_pages, levels.iter().map(|l| l.pages).sum::<u64>());
        assert!(levels.len() == 2 && levels[1].records == levels[0].pages, "{levels:?}");
        assert!(levels.iter().all(|l| l.data_bytes < l.used_bytes && l.used_bytes <= l.pages * PAGE_BYTES), "{levels:?}");
    }
    let key_values = |index| table.index_summary(&statistics, index).unwrap().key_values;
    assert_eq!((key_values(0), key_values(1)), (5000, 5000));
    assert_eq!(table.index_levels(0, &|| true).unwrap_err().code, 1317);
}

#[test]
fn a_sample_of_deleted_rows_reads_few_leaves() {
    let options = Options { buffer_pool_bytes: 4 << 20, ..options() };
    let db = Database::open_on(Arc::new(disk(1)), options, Arc::new(highkey_storage::SystemClock::new()), BinlogOptions::default()).unwrap();
    create_schema(&db, "s").unwrap();
    let table = create(&db, "t", vec![int("id").not_null(), varchar("s", 200)], vec![IndexSpec::primary(&[0])]);
    fill(&db, &table, (0..60_000).map(|n| vec![i(n), t(&"x".repeat(150))]).collect());
    // Somebody may still read them, so they stay.
    let mut before = db.begin(Isolation::RepeatableRead);
    let _held = before.snapshot();
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(txn.open(&table).await.unwrap());
        for n in 0..60_000 {
            txn.begin_statement();
            let row = table.lock_get(&mut txn, 0, &[i(n)], LockMode::Exclusive, LockWaitPolicy::Wait).await.unwrap().unwrap();
            table.delete(&mut txn, &row).await.unwrap();
        }
        txn.commit().await.unwrap();
    });
    let read = db.engine().stats().counter("pages_read");
    table.analyze(&mut db.begin(Isolation::RepeatableRead)).unwrap();
    let read = db.engine().stats().counter("pages_read") - read;
    // Of some 650 leaves.
    assert!(read < 200, "{read} pages");
}

/// Runs a future to its end; how often it let others run.
fn turns<T>(future: impl Future<Output = T>) -> (T, usize) {
    let mut future = std::pin::pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    let mut turns = 0;
    loop {
        match future.as_mut().poll(&mut cx) {
            Poll::Ready(done) => return (done, turns),
            Poll::Pending => turns += 1,
        }
    }
}

#[test]
fn what_changes_many_rows_lets_others_run_and_ends_when_it_is_killed() {
    let db = database();
    let table = sample(&db);
    let mut txn = db.begin(Isolation::RepeatableRead);
    let many: Vec<_> = (0..20_000).map(sample_row).collect();
    assert!(turns(table.insert(&mut txn, &many, OnDuplicate::Error)).1 > 0, "INSERT");
    assert!(turns(txn.commit()).0.is_ok());
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut scan = table.scan_locking(&mut txn, 0, &KeyRange::all(), Direction::Forward, LockMode::Exclusive, LockWaitPolicy::Wait);
    let (rows, scanned) = turns(scan.collect(&mut txn, usize::MAX));
    let rows = rows.unwrap();
    assert!(rows.len() == 20_000 && scanned > 0, "locking scan");
    let update = async {
        for row in &rows {
            let mut new = row.values();
            new[2] = i(9);
            table.update(&mut txn, row, &new).await?;
        }
        Ok::<_, MySqlError>(())
    };
    let (updated, updates) = turns(update);
    updated.unwrap();
    assert!(updates > 0, "UPDATE");
    let mut scan = table.scan_locking(&mut txn, 0, &KeyRange::all(), Direction::Forward, LockMode::Exclusive, LockWaitPolicy::Wait);
    let rows = turns(scan.collect(&mut txn, usize::MAX)).0.unwrap();
    let killed = Arc::new(Interrupt::default());
    txn.set_interrupt(killed.clone());
    killed.raise();
    let delete = async {
        for (n, row) in rows.iter().enumerate() {
            if let Err(error) = table.delete(&mut txn, row).await {
                return (n, error.code);
            }
        }
        (rows.len(), 0)
    };
    let ((deleted, code), _) = turns(delete);
    assert!(deleted < rows.len() && code == 1317, "{deleted} deleted, {code}");
}
