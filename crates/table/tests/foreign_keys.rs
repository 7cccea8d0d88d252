//! Foreign keys: no row is ever without parent, whoever writes beside it and wherever the power goes off.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use common::*;
use highkey_storage::{Rng, SeededRng, SimDisk};
use highkey_table::*;
use highkey_types::{MySqlError, Value};

fn key(
    name: &str,
    columns: &[usize],
    parent: &str,
    parent_columns: &[&str],
    on_delete: ReferenceAction,
    on_update: ReferenceAction,
) -> ForeignKeyDef {
    ForeignKeyDef {
        name: name.into(),
        columns: columns.to_vec(),
        parent_schema: "s".into(),
        parent_table: parent.into(),
        parent_columns: parent_columns.iter().map(|c| (*c).into()).collect(),
        on_delete,
        on_update,
    }
}

/// `a`; `b` with two foreign keys to it; `c` with foreign keys to `b`, to `a` and to itself.
fn family(db: &Arc<Database>) {
    use ReferenceAction::{Cascade, NoAction, SetNull};
    create(db, "a", vec![int("id").not_null(), int("k")], vec![IndexSpec::primary(&[0]), IndexSpec::unique("k", &[1])]);
    let columns = vec![int("id").not_null(), int("a"), int("k")];
    let indexes = vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("a", &[1]), IndexSpec::unique("k", &[2])];
    let mut spec = TableSpec::new("s", "b", columns, indexes);
    spec.foreign_keys = vec![key("b1", &[1], "a", &["id"], Cascade, Cascade), key("b2", &[2], "a", &["k"], SetNull, Cascade)];
    block_on(db.create_table(&DdlContext::default(), spec)).unwrap();
    let columns = vec![int("id").not_null(), int("b"), int("k"), int("c"), int("a")];
    let indexes = (1..5).map(|c| IndexSpec::ordinary(&format!("i{c}"), &[c])).chain([IndexSpec::primary(&[0])]).collect();
    let mut spec = TableSpec::new("s", "c", columns, indexes);
    spec.foreign_keys = vec![
        key("c1", &[1], "b", &["id"], SetNull, Cascade),
        key("c2", &[2], "b", &["k"], Cascade, SetNull),
        key("c3", &[3], "c", &["id"], Cascade, NoAction),
        key("c4", &[4], "a", &["id"], NoAction, NoAction),
    ];
    block_on(db.create_table(&DdlContext::default(), spec)).unwrap();
}

/// Every foreign key of every table: each row without NULL in it has a parent. And indexes agree with rows.
fn check_family(db: &Arc<Database>) {
    check(db);
    for child in db.catalog().all_tables() {
        for key in &child.def().foreign_keys {
            let parent = db.catalog().table(&key.parent_schema, &key.parent_table).unwrap();
            let columns: Vec<usize> = key.parent_columns.iter().map(|c| parent.def().column(c).unwrap()).collect();
            let pick = |row: &[Value], columns: &[usize]| columns.iter().map(|c| format!("{:?}", row[*c])).collect::<Vec<_>>();
            let parents: BTreeSet<_> = all(db, &parent).iter().map(|row| pick(row, &columns)).collect();
            for row in all(db, &child) {
                if key.columns.iter().all(|c| !row[*c].is_null()) {
                    assert!(parents.contains(&pick(&row, &key.columns)), "{}: {row:?} has no parent", key.name);
                }
            }
        }
    }
}

fn value(rng: &SeededRng, nulls: bool) -> Value {
    if nulls && rng.below(4) == 0 { NULL } else { i(rng.below(12) as i64) }
}

/// One random change. What cannot be done is an error.
async fn change(txn: &mut Transaction, db: &Arc<Database>, rng: &SeededRng) -> Result<(), MySqlError> {
    let name = ["a", "b", "c"][rng.below(3) as usize];
    let table = loop {
        let table = db.catalog().table("s", name)?;
        if txn.open_to_write(&table).await? {
            break table;
        }
    };
    let random_row = |rng: &SeededRng| (0..table.columns().len()).map(|c| value(rng, c > 0)).collect::<Vec<_>>();
    match rng.below(5) {
        0 | 1 => {
            let rows: Vec<_> = (0..1 + rng.below(3)).map(|_| random_row(rng)).collect();
            let mode = [OnDuplicate::Error, OnDuplicate::Ignore, OnDuplicate::Replace][rng.below(3) as usize];
            table.insert(txn, &rows, mode).await.map(drop)
        }
        kind => {
            let found = table.lock_get(txn, 0, &[value(rng, false)], LockMode::Exclusive, LockWaitPolicy::Wait).await?;
            let Some(row) = found else { return Ok(()) };
            if kind == 2 {
                return table.delete(txn, &row).await;
            }
            let mut new = row.values();
            let column = rng.below(new.len() as u64) as usize;
            new[column] = value(rng, column > 0);
            table.update(txn, &row, &new).await.map(drop)
        }
    }
}

/// Errors after which a statement is undone and the transaction goes on.
const REFUSED: [u16; 5] = [1062, 1205, 1451, 1452, 1761];

#[test]
fn no_orphans_beside_many_writers() {
    let db = database();
    family(&db);
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                let rng = SeededRng::new(100 + thread);
                for _ in 0..400 {
                    let isolation = [Isolation::ReadCommitted, Isolation::RepeatableRead][rng.below(2) as usize];
                    let mut txn = db.begin(isolation);
                    txn.set_lock_wait_timeout(Duration::from_millis(300));
                    let mut ended = false;
                    for _ in 0..1 + rng.below(4) {
                        txn.begin_statement();
                        let savepoint = txn.statement_savepoint();
                        match block_on(change(&mut txn, db, &rng)) {
                            Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                            Err(e) if e.code == 1213 => {
                                ended = true;
                                break;
                            }
                            Err(e) if REFUSED.contains(&e.code) => txn.rollback_to_statement(&savepoint).unwrap(),
                            Err(e) => panic!("{e:?}"),
                        }
                    }
                    if ended || rng.below(5) == 0 { block_on(txn.rollback()).unwrap() } else { block_on(txn.commit()).unwrap() }
                }
            });
        }
    });
    assert!(done.load(Ordering::Relaxed) > 500, "{} changes", done.load(Ordering::Relaxed));
    check_family(&db);
    for table in db.catalog().all_tables() {
        assert_eq!(table.row_count_estimate().unwrap(), all(&db, &table).len() as u64, "{table:?} counts its rows");
    }
}

/// Random changes in one thread, with a power cut now and then: what was committed is there, and nobody is an orphan.
#[test]
fn no_orphans_after_power_cuts() {
    let mut disk = disk(9);
    {
        let db = try_open_still(&disk).unwrap();
        create_schema(&db, "s").unwrap();
        family(&db);
    }
    let rng = SeededRng::new(7);
    for _ in 0..12 {
        let db = try_open_still(&disk).unwrap();
        check_family(&db);
        disk.power_off_at(disk.changes() + 1 + rng.below(60));
        for _ in 0..40 {
            let mut txn = db.begin(Isolation::RepeatableRead);
            let mut broken = false;
            for _ in 0..1 + rng.below(4) {
                let savepoint = txn.statement_savepoint();
                match block_on(change(&mut txn, &db, &rng)) {
                    Ok(()) => {}
                    Err(e) if REFUSED.contains(&e.code) => txn.rollback_to_statement(&savepoint).unwrap(),
                    // The power is off.
                    Err(_) => broken = true,
                }
            }
            if broken || block_on(txn.commit()).is_err() {
                break;
            }
        }
        let after: SimDisk = disk.crash();
        drop(db);
        disk = after;
    }
}

/// What foreign keys and rows there are.
fn picture(db: &Arc<Database>) -> Vec<String> {
    let shown = |table: &Arc<Table>| format!("{} {:?} {}", table.def().name, table.def().foreign_keys, all(db, table).len());
    db.catalog().all_tables().iter().map(shown).collect()
}

/// Turns the power off at every change of the disk that `statement` makes: all of it or nothing is there.
fn crash_everywhere(what: &str, statement: impl Fn(&Arc<Database>) -> Result<(), MySqlError>) {
    let base = disk(4);
    {
        let db = try_open_still(&base).unwrap();
        create_schema(&db, "s").unwrap();
        family(&db);
        fill(&db, &table(&db, "a"), (0..6).map(|n| vec![i(n), i(n)]).collect());
        fill(&db, &table(&db, "b"), (0..6).map(|n| vec![i(n), i(n % 2), i(n)]).collect());
        fill(&db, &table(&db, "c"), (0..6).map(|n| vec![i(n), i(n), i(5 - n), NULL, NULL]).collect());
        db.shutdown().unwrap();
    }
    let old = picture(&try_open_still(&base.crash()).unwrap());
    let (new, steps) = {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        let before = disk.changes();
        statement(&db).unwrap();
        check_family(&db);
        (picture(&db), disk.changes() - before)
    };
    assert_ne!(old, new, "{what}");
    let mut news = 0;
    for step in 1..=steps + 1 {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        disk.power_off_at(disk.changes() + step);
        let outcome = statement(&db);
        let after = disk.crash();
        drop(db);
        let db = try_open_still(&after).unwrap();
        let found = picture(&db);
        assert!(found == new || found == old && outcome.is_err(), "{what}, step {step} of {steps}: {found:?}");
        news += usize::from(found == new);
        check_family(&db);
        // Foreign keys are enforced as before.
        let orphan = insert(&db, &db.catalog().table("s", "b").unwrap(), vec![vec![i(99), i(99), NULL]], OnDuplicate::Error);
        assert_eq!(orphan.unwrap_err().code, 1452);
    }
    assert!(news > 0, "{what}");
}

#[test]
fn cascades_are_all_or_nothing() {
    crash_everywhere("delete", |db| {
        let a = table(db, "a");
        let mut txn = db.begin(Isolation::RepeatableRead);
        block_on(async {
            assert!(txn.open_to_write(&a).await?);
            let row = a.lock_get(&mut txn, 0, &[i(1)], LockMode::Exclusive, LockWaitPolicy::Wait).await?.unwrap();
            a.delete(&mut txn, &row).await?;
            txn.commit().await
        })
    });
}

#[test]
fn definitions_of_parents_and_children_change_together() {
    crash_everywhere("rename", |db| {
        let names = |from: &str, to: &str| (("s".into(), from.into()), ("s".into(), to.into()));
        block_on(db.rename_tables(&DdlContext::default(), &[names("a", "parent"), names("c", "grandchild")]))
    });
    crash_everywhere("rename columns", |db| {
        let mut plan = AlterPlan::of(&table(db, "a"));
        plan.spec.columns[0].name = "number".into();
        plan.spec.columns[1].name = "other".into();
        block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).map(drop)
    });
    crash_everywhere("add a foreign key", |db| {
        let mut plan = AlterPlan::of(&table(db, "c"));
        let added = key("c5", &[2], "a", &["k"], ReferenceAction::NoAction, ReferenceAction::NoAction);
        plan.spec.foreign_keys.push(added);
        plan.added_keys.push("c5".into());
        block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).map(drop)
    });
}

/// DDL locks the tables that foreign keys tie to its own, no others: so it replaces no others.
#[test]
fn tables_tied_at_one_remove_stay_as_they_are() {
    let db = database();
    create(&db, "top", vec![int("id").not_null()], vec![IndexSpec::primary(&[0])]);
    for (name, parent) in [("middle", "top"), ("one", "middle"), ("two", "middle"), ("leaf", "one")] {
        let mut spec = TableSpec::new("s", name, vec![int("id").not_null()], vec![IndexSpec::primary(&[0])]);
        spec.foreign_keys = vec![key(&format!("{name}1"), &[0], parent, &["id"], ReferenceAction::Cascade, ReferenceAction::NoAction)];
        block_on(db.create_table(&DdlContext::default(), spec)).unwrap();
    }
    let before = ["top", "middle", "two"].map(|name| table(&db, name));
    let current = || [0, 1, 2].map(|at: usize| before[at].is_current());
    let mut plan = AlterPlan::of(&table(&db, "one"));
    plan.spec.name = "uno".into();
    block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).unwrap();
    assert_eq!(current(), [true, false, true], "top, middle, two");
    let middle = table(&db, "middle");
    assert!(middle.referencing().any(|(name, _)| &*name.1 == "uno"));
    let unchecked = DdlContext { foreign_key_checks: false, ..DdlContext::default() };
    block_on(db.drop_tables(&unchecked, &[("s".into(), "uno".into())], false)).unwrap();
    assert_eq!((current(), middle.is_current()), ([true, false, true], false));
    assert_eq!(table(&db, "middle").referencing().count(), 1);
}

/// CREATE TABLE … SELECT of a table whose foreign key awaits the new one.
#[test]
fn a_parent_is_made_by_who_reads_its_child() {
    let db = database();
    create(&db, "d", vec![int("a")], vec![]);
    let mut spec = TableSpec::new("s", "c", vec![int("a")], vec![IndexSpec::ordinary("a", &[0])]);
    spec.foreign_keys = vec![key("c1", &[0], "p", &["id"], ReferenceAction::NoAction, ReferenceAction::NoAction)];
    block_on(db.create_table(&DdlContext { foreign_key_checks: false, ..DdlContext::default() }, spec)).unwrap();
    let change_all = || ["d", "c", "p"].map(|name| {
        let found = db.catalog().table("s", name).map_err(|e| e.code)?;
        let cx = DdlContext { lock_wait_timeout: Duration::ZERO, ..DdlContext::default() };
        block_on(db.alter_table(&cx, AlterPlan::of(&found), &mut Ok)).map(drop).map_err(|e| e.code)
    });
    for commits in [false, true] {
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(["d", "c"].iter().all(|name| block_on(txn.open(&table(&db, name))).unwrap()));
        let spec = TableSpec::new("s", "p", vec![int("id").not_null()], vec![IndexSpec::primary(&[0])]);
        block_on(txn.create_table(&DdlContext::default(), spec)).unwrap();
        assert_eq!(change_all(), [Err(1205), Err(1205), Err(1146)]);
        if commits { block_on(txn.commit()).unwrap() } else { block_on(txn.rollback()).unwrap() }
        assert_eq!(change_all(), [Ok(()), Ok(()), if commits { Ok(()) } else { Err(1146) }]);
    }
    assert_eq!(insert(&db, &table(&db, "c"), vec![vec![i(1)]], OnDuplicate::Error).unwrap_err().code, 1452);
}

/// Rows that a crash or a failed rollback left to be undone in the background hold no metadata lock.
#[test]
fn a_foreign_key_is_added_beside_a_row_that_will_be_undone() {
    let db = database();
    for name in ["p", "c"] {
        let made = create(&db, name, vec![int("id").not_null(), int("a")], vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("a", &[1])]);
        fill(&db, &made, vec![vec![i(1), i(1)]]);
    }
    let c = table(&db, "c");
    let mut row = Vec::new();
    c.layout().encode(&[i(0), i(77)], &mut row);
    let mut left = db.engine().begin(Isolation::RepeatableRead);
    assert!(matches!(left.insert(c.indexes()[0].id, b"\x00", &row), Ok(highkey_storage::Op::Done(_))));
    let mut plan = AlterPlan::of(&c);
    plan.spec.foreign_keys.push(key("c1", &[1], "p", &["id"], ReferenceAction::NoAction, ReferenceAction::NoAction));
    plan.added_keys.push("c1".into());
    assert_eq!(block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).unwrap(), 1, "one row is there");
    left.rollback().unwrap();
    check_family(&db);
}

#[test]
fn a_generated_index_gives_way_to_one_that_can_take_its_place() {
    let db = database();
    family(&db);
    let mut plan = AlterPlan::of(&table(&db, "b"));
    plan.spec.indexes.iter_mut().find(|i| i.name.as_deref() == Some("a")).unwrap().generated = true;
    block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).unwrap();
    let names = |db: &Arc<Database>| table(db, "b").indexes().iter().map(|i| i.name.to_string()).collect::<Vec<_>>();
    assert_eq!(names(&db), ["PRIMARY", "k", "a"]);
    block_on(db.create_index(&DdlContext::default(), "s", "b", IndexSpec::ordinary("longer", &[1, 2]))).unwrap();
    assert_eq!(names(&db), ["PRIMARY", "k", "longer"]);
    let dropped = block_on(db.drop_index(&DdlContext::default(), "s", "b", "longer")).unwrap_err();
    assert_eq!((dropped.code, dropped.message.as_str()), (1553, "Cannot drop index 'longer': needed in a foreign key constraint"));
    // A name that is only wanted is locked with those that want it, and missing columns are told.
    let mut spec = TableSpec::new("s", "x", vec![int("a")], vec![IndexSpec::ordinary("a", &[0])]);
    spec.foreign_keys = vec![key("x1", &[0], "later", &["id"], ReferenceAction::Cascade, ReferenceAction::NoAction)];
    assert_eq!(block_on(db.create_table(&DdlContext::default(), spec.clone())).unwrap_err().code, 1824);
    let unchecked = DdlContext { foreign_key_checks: false, ..DdlContext::default() };
    let x = block_on(db.create_table(&unchecked, spec)).unwrap();
    assert_eq!(insert(&db, &x, vec![vec![i(1)]], OnDuplicate::Error).unwrap_err().code, 1452);
    assert_eq!(try_create(&db, "later", vec![int("other")], vec![]).unwrap_err().code, 3734);
    assert_eq!(try_create(&db, "later", vec![int("id")], vec![]).unwrap_err().code, 1822);
    create(&db, "later", vec![int("id").not_null()], vec![IndexSpec::primary(&[0])]);
    assert!(!x.is_current(), "it has a parent now");
    fill(&db, &table(&db, "later"), vec![vec![i(1)]]);
    fill(&db, &table(&db, "x"), vec![vec![i(1)]]);
    let bytes = [i(1), i(2)].map(|value| vec![value]);
    let mut rows = EncodedRows::new();
    bytes.iter().for_each(|row| rows.push_with(|out| table(&db, "x").layout().encode(row, out)));
    let x = table(&db, "x");
    let mut txn = db.begin(Isolation::RepeatableRead);
    let mut bulk = x.bulk_insert(&mut txn, OnDuplicate::Error, 1 << 20).unwrap();
    assert_eq!(block_on(bulk.add(&mut txn, x.prepare_rows(rows))).unwrap_err().code, 1452);
}
