//! Scans of secondary indexes that look at no row.

mod common;

use std::sync::Arc;

use common::*;
use highkey_table::*;
use highkey_types::{Collation, ColumnType, TypeKind, Value};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

fn signed(kind: TypeKind) -> ColumnType {
    ColumnType::new(kind)
}

fn unsigned(kind: TypeKind) -> ColumnType {
    ColumnType { unsigned: true, ..ColumnType::new(kind) }
}

fn text(collation: &str) -> ColumnType {
    ColumnType::varchar(20, Collation::by_name(collation).unwrap())
}

/// Types with values, and whether an index has them to the byte.
fn types() -> Vec<(ColumnType, Vec<Value>, bool)> {
    use TypeKind::*;
    let members: Arc<[highkey_types::Str]> = ["red".into(), "green".into(), "blue".into()].into();
    let decimals = |texts: &[&str]| texts.iter().map(|text| Value::Decimal(text.parse::<highkey_types::Decimal>().unwrap())).collect::<Vec<_>>();
    let bytes = |all: &[&[u8]]| all.iter().map(|bytes| Value::Bytes(bytes.to_vec())).collect::<Vec<_>>();
    let texts = |all: &[&str]| all.iter().map(|text| t(text)).collect::<Vec<_>>();
    let moment = |micros: i64| Value::DateTime(highkey_types::DateTime::from_micros(micros).unwrap());
    vec![
        (signed(TinyInt), vec![i(-128), i(-1), i(0), i(127)], true),
        (unsigned(TinyInt), vec![Value::UInt(0), Value::UInt(255)], true),
        (signed(SmallInt), vec![i(-32768), i(5), i(32767)], true),
        (signed(MediumInt), vec![i(-8388608), i(-1), i(8388607)], true),
        (signed(Int), vec![i(i64::from(i32::MIN)), i(0), i(i64::from(i32::MAX))], true),
        (signed(BigInt), vec![i(i64::MIN), i(-1), i(i64::MAX)], true),
        (unsigned(BigInt), vec![Value::UInt(0), Value::UInt(u64::MAX)], true),
        (signed(Year), vec![Value::UInt(0), Value::UInt(1901), Value::UInt(2155)], true),
        (signed(Bit(13)), vec![Value::UInt(0), Value::UInt(8191)], true),
        (ColumnType::decimal(9, 2), decimals(&["-9999999.99", "-0.01", "0.00", "9999999.99"]), true),
        (ColumnType::decimal(18, 0), decimals(&["-999999999999999999", "7", "999999999999999999"]), true),
        (ColumnType::decimal(38, 10), decimals(&["-9999999999999999999999999999.9999999999", "1.0000000000"]), true),
        (ColumnType::decimal(65, 0), decimals(&["-99999999999999999999999999999999999999999999999999999999999999999", "-1", "3"]), true),
        (signed(Date), vec![Value::Date(highkey_types::Date::new(0, 0, 0)), Value::Date(highkey_types::Date::new(2024, 2, 29)), Value::Date(highkey_types::Date::new(9999, 12, 31))], true),
        (signed(DateTime(0)), vec![moment(0), moment(1_700_000_000_000_000)], true),
        (signed(DateTime(6)), vec![moment(1), moment(1_700_000_000_123_456)], true),
        (signed(Timestamp(3)), vec![Value::DateTime(highkey_types::DateTime::default()), moment(1_000_000), moment(2_147_483_647_999_000)], true),
        (signed(Time(6)), vec![-3_020_399_000_000, -1, 0, 3_020_399_000_000].into_iter().map(|micros| Value::Time(highkey_types::Time { micros })).collect(), true),
        (signed(Enum(members.clone())), vec![Value::Enum(0, "".into()), Value::Enum(1, "red".into()), Value::Enum(3, "blue".into())], true),
        (signed(Set(members)), vec![Value::Set(0, "".into()), Value::Set(5, "red,blue".into())], true),
        (signed(VarBinary(20)), bytes(&[b"", b"\0", b"\x01\x00\x02", b"ab ", b"\xff\xff"]), true),
        (signed(Binary(3)), bytes(&[b"\0\0\0", b"a\0\0", b"abc"]), true),
        (text("utf8mb4_0900_bin"), texts(&["", " ", "a", "a ", "A", "\0x", "😀é"]), true),
        // -0 has the key of 0.
        (signed(Float), vec![Value::Float(-0.0), Value::Float(0.0), Value::Float(1.5)], false),
        (ColumnType::double(), vec![Value::Double(-0.0), Value::Double(0.0), Value::Double(-1e300)], false),
        // Texts that are equal are not the same.
        (text("utf8mb4_0900_ai_ci"), texts(&["a", "A", "á", "b "]), false),
        (text("utf8mb4_bin"), texts(&["a", "a ", "A"]), false),
        (text("latin1_swedish_ci"), texts(&["a", "A"]), false),
    ]
}

#[test]
fn every_type_comes_back_from_its_entries() {
    let db = database();
    for (n, (ty, values, exact)) in types().into_iter().enumerate() {
        for (descending, nullable) in [(false, true), (true, true), (false, false), (true, false)] {
            let name = format!("t{n}_{descending}_{nullable}");
            let column = ColumnDef::new("v", ty.clone());
            let column = if nullable { column } else { column.not_null() };
            let mut by_value = IndexSpec::ordinary("by_value", &[1]);
            by_value.parts[0].descending = descending;
            let columns = vec![int("id").not_null(), column, varchar("other", 10)];
            let table = create(&db, &name, columns, vec![IndexSpec::primary(&[0]), by_value]);
            let nulls = if nullable { vec![NULL] } else { Vec::new() };
            let rows: Vec<Vec<Value>> = values.iter().chain(&nulls).enumerate().map(|(id, value)| vec![i(id as i64), value.clone(), t("x")]).collect();
            fill(&db, &table, rows.clone());
            assert_eq!(table.covers(1, &[1, 0]), exact, "{ty}");
            assert!(table.covers(1, &[0]) && table.covers(1, &[]) && !table.covers(1, &[0, 2]) && !table.covers(0, &[0]), "{ty}");
            let mut txn = db.begin(Isolation::RepeatableRead);
            let snapshot = txn.snapshot();
            compare_covering(&table, &snapshot).unwrap();
            let mut scan = table.scan_at(&snapshot, 1, &KeyRange::all(), Direction::Forward).unwrap().of_columns(&[0, 1]);
            let (mut batch, mut found) = (RowBatch::new(), Vec::new());
            while scan.next_batch(&mut batch).unwrap() {
                found.extend((0..batch.len()).map(|row| batch.values(row)));
            }
            // Where the entries were enough, nothing else is there.
            let expected = |row: &Vec<Value>| vec![row[0].clone(), row[1].clone(), if exact { NULL } else { row[2].clone() }];
            found.sort_by_key(|row| row[0].as_i64());
            assert_eq!(found, rows.iter().map(expected).collect::<Vec<_>>(), "{ty}");
        }
    }
}

#[test]
fn parts_of_both_keys_make_the_row() {
    let db = database();
    let mut prefix = IndexSpec::ordinary("prefix", &[3]);
    prefix.parts[0].prefix = Some(2);
    let mut backward = IndexSpec::ordinary("backward", &[3, 2]);
    backward.parts[1].descending = true;
    let columns = vec![varchar("a", 10).not_null(), int("b").not_null(), int("c"), ColumnDef::new("d", ColumnType::new(TypeKind::VarBinary(10))), int("e")];
    let indexes = vec![IndexSpec::primary(&[0, 1]), IndexSpec::unique("e", &[4, 2]), IndexSpec::ordinary("c", &[2]), prefix, backward];
    let table = create(&db, "t", columns, indexes);
    let row = |n: i64| vec![t(&format!("k{}", n / 10)), i(n % 10), if n % 7 == 0 { NULL } else { i(n % 5) }, Value::Bytes(vec![(n % 3) as u8; (n % 4) as usize]), if n % 2 == 0 { NULL } else { i(n) }];
    fill(&db, &table, (0..300).map(row).collect());
    // Behind the text of the primary key, which is not in its key, there is b.
    for (index, columns, covers) in [
        (2, vec![1, 2], true),
        (2, vec![0], false),
        (1, vec![1, 2, 4], true),
        (3, vec![1], true),
        (3, vec![3], false),
        (4, vec![1, 2, 3], true),
        (4, vec![usize::MAX, 3], true),
    ] {
        assert_eq!(table.covers(index, &columns), covers, "{index} {columns:?}");
    }
    let mut txn = db.begin(Isolation::RepeatableRead);
    let snapshot = txn.snapshot();
    compare_covering(&table, &snapshot).unwrap();
    // By a whole unique key.
    let found = table.get_columns(&mut txn, 1, &[i(33), i(3)], &[1, 4]).unwrap().unwrap();
    assert_eq!((found.value(1), found.value(4), found.value(3)), (i(3), i(33), NULL));
    let found = table.get_columns(&mut txn, 1, &[i(33), i(3)], &[0, 4]).unwrap().unwrap();
    assert_eq!(found.values(), row(33));
    assert!(table.get_columns(&mut txn, 1, &[i(34), i(4)], &[4]).unwrap().is_none());
    assert!(table.get_columns(&mut txn, 1, &[NULL, i(4)], &[4]).unwrap().is_none());
}

/// One of few texts, most of which are equal to another.
fn some_text(rng: &mut SmallRng) -> Value {
    t(["a", "A", "b", "B", "c"][rng.random_range(0..5usize)])
}

#[test]
fn every_snapshot_reads_from_entries_what_it_reads_from_rows() {
    for seed in 0..6 {
        let db = database();
        let mut rng = SmallRng::seed_from_u64(seed);
        let keyed = seed % 3 > 0;
        let double = ColumnDef::new("d", ColumnType::double());
        let columns = vec![int("id").not_null(), int("u"), int("k"), varchar("s", 10), double];
        let mut indexes = vec![IndexSpec::ordinary("k", &[2]), IndexSpec::ordinary("ks", &[2, 3]), IndexSpec::ordinary("d", &[4])];
        if keyed {
            indexes.splice(0..0, [IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1])]);
        }
        let mut spec = TableSpec::new("s", "t", columns, indexes);
        if seed % 3 == 2 {
            spec.indexes.remove(1);
            spec.partitioning = Some(by_id(&[("p0", Some(100)), ("p1", Some(200)), ("p2", None)]));
        }
        let table = block_on(db.create_table(&DdlContext::default(), spec)).unwrap();
        let mut readers = Vec::new();
        for round in 0..120 {
            block_on(async {
                let mut txn = db.begin(Isolation::RepeatableRead);
                assert!(txn.open(&table).await.unwrap());
                for _ in 0..rng.random_range(1..12) {
                    txn.begin_statement();
                    let start = txn.statement_savepoint();
                    let u = if rng.random() { NULL } else { i(rng.random_range(0..300)) };
                    let zero = [0.0, -0.0, 1.0][rng.random_range(0..3usize)];
                    let row = vec![i(rng.random_range(0..300)), u, i(rng.random_range(0..10)), some_text(&mut rng), Value::Double(zero)];
                    let k = KeyRange::prefix(&[row[2].clone()]);
                    let by_k = table.indexes().iter().position(|index| *index.name == *"k").unwrap();
                    let found = table.scan_locking(&mut txn, by_k, &k, Direction::Forward, LockMode::Exclusive, LockWaitPolicy::Wait).next(&mut txn).await.unwrap();
                    let done = match (found, rng.random_range(0..4)) {
                        (Some(old), 0) => table.delete(&mut txn, &old).await,
                        (Some(old), 1 | 2) => {
                            let mut new = old.values();
                            // Also a text or number that its key does not tell from the one before.
                            let column = rng.random_range(1..5);
                            new[column] = row[column].clone();
                            table.update(&mut txn, &old, &new).await.map(|_| ())
                        }
                        _ => table.insert(&mut txn, &[row], OnDuplicate::Error).await.map(|_| ()),
                    };
                    match done {
                        Ok(()) => {}
                        Err(error) if error.code == 1062 => txn.rollback_to_statement(&start).unwrap(),
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
                // It reads its own.
                let own = txn.snapshot();
                compare_covering(&table, &own).unwrap();
                drop(own);
                if rng.random_ratio(1, 4) { txn.rollback().await.unwrap() } else { txn.commit().await.unwrap() }
            });
            if rng.random_ratio(1, 3) {
                let mut txn = db.begin(Isolation::RepeatableRead);
                let snapshot = txn.snapshot();
                readers.push((txn, snapshot));
            }
            if readers.len() > 5 {
                // What only it needed may be purged now.
                let oldest = rng.random_range(0..readers.len());
                readers.swap_remove(oldest);
            }
            if round % 5 == 0 {
                readers.iter().for_each(|(_, snapshot)| compare_covering(&table, snapshot).unwrap());
            }
        }
        check(&db);
    }
}

#[test]
fn what_is_not_committed_is_read_with_its_row() {
    let db = database();
    let table = create(&db, "t", vec![int("id").not_null(), int("k"), int("c")], vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("k", &[1])]);
    fill(&db, &table, (0..50).map(|id| vec![i(id), i(id % 5), i(7)]).collect());
    let mut reader = db.begin(Isolation::ReadUncommitted);
    let snapshot = reader.snapshot();
    let mut scan = table.scan_at(&snapshot, 1, &KeyRange::all(), Direction::Forward).unwrap().of_columns(&[0, 1]);
    let mut batch = RowBatch::new();
    assert!(scan.next_batch(&mut batch).unwrap());
    assert_eq!(batch.value(0, 2), i(7));
    compare_covering(&table, &snapshot).unwrap();
    assert_eq!(table.get_columns(&mut reader, 0, &[i(3)], &[0]).unwrap().unwrap().value(2), i(7));
}
