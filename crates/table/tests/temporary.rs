//! Temporary tables: their rows are transactions', and nothing of them is left when they are dropped, or after a crash.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use highkey_storage::{IndexId, SimDisk};
use highkey_table::*;
use highkey_types::{MySqlError, Value};

fn spec(schema: &str) -> TableSpec {
    let columns = vec![int("id").auto_increment(), varchar("s", 300)];
    TableSpec::new(schema, "own", columns, vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("s", &[1])])
}

fn row(id: i64) -> Vec<Value> {
    vec![i(id), t(&format!("name{id}"))]
}

fn trees(db: &Arc<Database>) -> BTreeSet<IndexId> {
    db.engine().indexes().into_iter().collect()
}

/// A disk with the schema `s`, closed cleanly.
fn prepared() -> SimDisk {
    let disk = disk(7);
    let db = try_open_still(&disk).unwrap();
    create_schema(&db, "s").unwrap();
    db.shutdown().unwrap();
    disk
}

/// Makes, fills, changes, empties and drops one; some rows are rolled back.
fn life(db: &Arc<Database>) -> Result<(), MySqlError> {
    let cx = DdlContext::default();
    let table = db.create_temporary_table(&cx, &spec("s"))?;
    insert(db, &table, (1..200).map(row).collect(), OnDuplicate::Error)?;
    let mut plan = AlterPlan::of(&table);
    plan.spec.indexes.push(IndexSpec::ordinary("both", &[1, 0]));
    let (table, rows) = db.alter_temporary_table(&cx, &table, &plan, &mut |row| Ok(row))?;
    assert_eq!(rows, 199);
    let mut txn = db.begin(Isolation::RepeatableRead);
    block_on(table.insert(&mut txn, &(200..300).map(row).collect::<Vec<_>>(), OnDuplicate::Error))?;
    block_on(txn.rollback())?;
    let table = db.truncate_temporary_table(&cx, &table)?;
    insert(db, &table, vec![row(1)], OnDuplicate::Error)?;
    db.drop_temporary_tables(&[table])
}

#[test]
fn a_crash_leaves_nothing() {
    let base = prepared();
    let clean = trees(&try_open_still(&base.crash()).unwrap());
    let steps = {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        let before = disk.changes();
        life(&db).unwrap();
        disk.changes() - before
    };
    for step in 1..=steps + 1 {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        disk.power_off_at(disk.changes() + step);
        let _ = life(&db);
        let after = disk.crash();
        drop(db);
        let db = try_open_still(&after).unwrap_or_else(|e| panic!("step {step} of {steps}: {e}"));
        for _ in 0..50 {
            if db.engine().background_step().unwrap() == 0 {
                break;
            }
        }
        assert_eq!(trees(&db), clean, "step {step} of {steps}");
        assert!(db.catalog().all_tables().is_empty());
        // The database goes on.
        let table = db.create_temporary_table(&DdlContext::default(), &spec("s")).unwrap();
        fill(&db, &table, vec![row(1)]);
        assert_eq!(all(&db, &table), [row(1)]);
    }
}

#[test]
fn a_clean_end_without_its_session_leaves_nothing_either() {
    let disk = prepared();
    let db = try_open_still(&disk).unwrap();
    let clean = trees(&db);
    let table = db.create_temporary_table(&DdlContext::default(), &spec("s")).unwrap();
    fill(&db, &table, (1..100).map(row).collect());
    assert_eq!(trees(&db).len(), clean.len() + 2);
    db.shutdown().unwrap();
    drop((table, db));
    assert_eq!(trees(&try_open_still(&disk).unwrap()), clean);
}

#[test]
fn rows_are_transactions_and_numbers_the_tables() {
    let db = database();
    let before = db.engine().indexes().len();
    let cx = DdlContext::default();
    let table = db.create_temporary_table(&cx, &spec("s")).unwrap();
    assert!(table.is_temporary() && db.catalog().all_tables().is_empty());
    let mut txn = db.begin(Isolation::RepeatableRead);
    block_on(table.insert(&mut txn, &[row(1)], OnDuplicate::Error)).unwrap();
    txn.savepoint("a");
    block_on(table.insert(&mut txn, &[row(2)], OnDuplicate::Error)).unwrap();
    txn.rollback_to("a").unwrap();
    assert_eq!(rows_in(&mut txn, &table, 0, &KeyRange::all(), Direction::Forward), [row(1)]);
    block_on(txn.rollback()).unwrap();
    assert!(all(&db, &table).is_empty());
    fill(&db, &table, vec![row(9)]);
    let numbers = table.reserve(100_000, 1, 1).unwrap();
    let later = table.reserve(1, 1, 1).unwrap();
    assert_eq!(later.first, numbers.first + 100_000);
    let emptied = db.truncate_temporary_table(&cx, &table).unwrap();
    assert!(!table.is_current() && emptied.is_current() && emptied.id() == table.id());
    assert_eq!(emptied.reserve(1, 1, 1).unwrap().first, 1);
    db.drop_temporary_tables(&[emptied.clone()]).unwrap();
    assert!(!emptied.is_current());
    for _ in 0..1000 {
        if db.engine().indexes().len() == before {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("{:?} trees are left, {before} expected", db.engine().indexes());
}

#[test]
fn what_is_refused() {
    let db = database();
    let cx = DdlContext::default();
    let code = |spec: TableSpec| db.create_temporary_table(&cx, &spec).unwrap_err().code;
    assert_eq!(code(spec("nowhere")), 1049);
    assert_eq!(code(spec("mysql")), 3552);
    let key = ForeignKeyDef {
        name: "k".into(),
        columns: vec![0],
        parent_schema: "s".into(),
        parent_table: "p".into(),
        parent_columns: vec!["id".into()],
        on_delete: ReferenceAction::NoAction,
        on_update: ReferenceAction::NoAction,
    };
    assert_eq!(code(TableSpec { foreign_keys: vec![key], ..spec("s") }), 1215);
}
