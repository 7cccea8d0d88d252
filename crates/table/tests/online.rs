//! What others may do with a table while it is altered, and that new indexes have what they did.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use common::*;
use highkey_table::*;
use highkey_types::{MySqlError, Value};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

const KEYS: i64 = 3000;

fn make(db: &Arc<Database>, partitioned: bool, keyed: bool) {
    let columns = vec![int("id").not_null(), int("u"), int("k"), varchar("s", 200)];
    let mut spec = TableSpec::new("s", "t", columns, if keyed { vec![IndexSpec::primary(&[0])] } else { Vec::new() });
    spec.partitioning = partitioned.then(|| by_id(&[("low", Some(1000)), ("middle", Some(2500)), ("high", None)]));
    let table = block_on(db.create_table(&DdlContext::default(), spec)).unwrap();
    fill(db, &table, (0..KEYS).filter(|id| id % 2 == 0).map(|id| row(id, &mut SmallRng::seed_from_u64(id as u64))).collect());
}

/// No two rows have the same `u` ever.
fn row(id: i64, rng: &mut SmallRng) -> Vec<Value> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let u = if rng.random_ratio(1, 5) { NULL } else { i(NEXT.fetch_add(1, Ordering::Relaxed) as i64) };
    let text: String = (0..rng.random_range(0..8)).map(|_| format!("word{} ", rng.random_range(0..40))).collect();
    vec![i(id), u, i(rng.random_range(0..50)), t(&text)]
}

/// Some random changes of rows, committed or rolled back.
async fn change(db: &Arc<Database>, rng: &mut SmallRng) -> Result<(), MySqlError> {
    let mut txn = db.begin(if rng.random() { Isolation::RepeatableRead } else { Isolation::ReadCommitted });
    txn.set_lock_wait_timeout(Duration::from_millis(100));
    let table = table(db, "t");
    if !txn.open_to_write(&table).await? {
        return Ok(());
    }
    for _ in 0..rng.random_range(1..12) {
        txn.begin_statement();
        let id = rng.random_range(0..KEYS);
        let new = row(id, rng);
        let before = txn.statement_savepoint();
        let found = if table.def().primary_key().is_some() {
            table.lock_get(&mut txn, 0, &[i(id)], LockMode::Exclusive, LockWaitPolicy::Wait).await?
        } else if rng.random_ratio(1, 3) {
            None
        } else {
            let direction = if rng.random() { Direction::Forward } else { Direction::Backward };
            let mut scan = table.scan_locking(&mut txn, 0, &KeyRange::all(), direction, LockMode::Exclusive, LockWaitPolicy::Wait);
            for _ in 0..rng.random_range(0..5) {
                scan.next(&mut txn).await?;
            }
            scan.next(&mut txn).await?
        };
        match found {
            None => drop(table.insert(&mut txn, &[new], OnDuplicate::Error).await?),
            Some(old) if rng.random() => drop(table.update(&mut txn, &old, &new).await?),
            Some(old) => drop(table.delete(&mut txn, &old).await?),
        }
        if rng.random_ratio(1, 10) {
            txn.rollback_to_statement(&before)?;
        }
    }
    if rng.random_ratio(1, 6) { txn.rollback().await } else { txn.commit().await.map(drop) }
}

fn with_indexes(db: &Arc<Database>, copied: bool) -> AlterPlan {
    let mut plan = AlterPlan::of(&table(db, "t"));
    (plan.convert_rows, plan.in_place) = (copied, copied);
    plan.spec.indexes.push(IndexSpec::unique("u", &[1]));
    plan.spec.indexes.push(IndexSpec::ordinary("k", &[2, 3]));
    if plan.spec.partitioning.is_none() {
        plan.spec.indexes.push(IndexSpec::new(IndexKind::FullText, Some("words"), &[3]));
    } else {
        plan.spec.indexes[1] = IndexSpec::unique("u", &[1, 0]);
    }
    plan
}

fn alter(db: &Arc<Database>, cx: &DdlContext, plan: AlterPlan) -> Result<u64, MySqlError> {
    block_on(db.alter_table(cx, plan, &mut |row| Ok(row)))
}

/// Adds indexes again and again while others write: to the rows where they are, or to copies of them.
fn alter_beside_writers(partitioned: bool, keyed: bool, copied: bool) {
    let db = database();
    make(&db, partitioned, keyed);
    let (done, changes, beside) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (db, done, changes) = (&db, &done, &changes);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(thread);
                while !done.load(Ordering::Relaxed) {
                    match block_on(change(db, &mut rng)) {
                        Ok(()) => drop(changes.fetch_add(1, Ordering::Relaxed)),
                        // Another one has come with the same row.
                        Err(error) if error.code == 1062 => assert!(error.message.ends_with("'PRIMARY'"), "{error}"),
                        Err(error) => assert!(matches!(error.code, 1213 | 1205), "{error}"),
                    }
                }
            });
        }
        let mut built = 0;
        while built < 6 || beside.load(Ordering::Relaxed) == 0 {
            assert!(built < 500, "nobody has come to write while indexes were built");
            let cx = DdlContext { threads: 2, memory: 1 << 20, ..DdlContext::default() };
            let before = changes.load(Ordering::Relaxed);
            match alter(&db, &cx, with_indexes(&db, copied)) {
                Ok(_) => {}
                // It waited for a transaction that waited for it.
                Err(error) if error.code == 1213 => continue,
                Err(error) => panic!("{error}"),
            }
            // Those that were under way at both ends are not enough.
            beside.fetch_add(u64::from(changes.load(Ordering::Relaxed) > before + 3), Ordering::Relaxed);
            check(&db);
            built += 1;
            let mut plan = AlterPlan::of(&table(&db, "t"));
            plan.spec.indexes.retain(|index| index.kind == IndexKind::Primary);
            while let Err(error) = alter(&db, &cx, plan.clone()) {
                assert_eq!(error.code, 1213);
            }
        }
        done.store(true, Ordering::Relaxed);
    });
    alter(&db, &DdlContext::default(), with_indexes(&db, copied)).unwrap();
    check(&db);
    let table = table(&db, "t");
    let found = all(&db, &table);
    assert_eq!(common::rows(&db, &table, 2, &KeyRange::all(), Direction::Forward).len(), found.len());
    assert_eq!(table.row_count_estimate().unwrap(), found.len() as u64);
}

#[test]
fn indexes_that_were_built_beside_writers_have_every_row() {
    for partitioned in [false, true] {
        alter_beside_writers(partitioned, true, false);
    }
}

#[test]
fn tables_that_were_copied_beside_writers_have_every_row() {
    for (partitioned, keyed) in [(false, true), (true, true), (false, false)] {
        alter_beside_writers(partitioned, keyed, true);
    }
}

/// Columns come and go, and another one becomes the key, while a row is written.
#[test]
fn a_table_has_other_columns_and_another_key_after_it_was_written_beside() {
    let db = database();
    make(&db, false, true);
    let old = table(&db, "t");
    let mut plan = AlterPlan::of(&old);
    // (id, u, k, s) -> (k, id, added), by (id, k).
    plan.spec.columns = vec![int("k").not_null(), int("id").not_null(), int("added")];
    plan.columns = vec![Some(2), Some(0), None];
    plan.spec.indexes = vec![IndexSpec::primary(&[1, 0]), IndexSpec::unique("added", &[2])];
    plan.in_place = true;
    let mut rows = 0;
    let mut writer = None;
    let mut convert = |row: Vec<Value>| {
        rows += 1;
        if rows == 1 {
            // One is over before the copy is made, one goes on until its end.
            for (id, keeps) in [(10, false), (11, true)] {
                let mut txn = db.begin(Isolation::ReadCommitted);
                assert!(block_on(txn.open_to_write(&old))?);
                block_on(old.insert(&mut txn, &[vec![i(1_000_000 + id), NULL, i(7), t("new")]], OnDuplicate::Error))?;
                let first = block_on(old.lock_get(&mut txn, 0, &[i(2 * id)], LockMode::Exclusive, LockWaitPolicy::Wait))?.unwrap();
                block_on(old.update(&mut txn, &first, &[i(2 * id), NULL, i(99), t("changed")]))?;
                let next = block_on(old.lock_get(&mut txn, 0, &[i(2 * id + 100)], LockMode::Exclusive, LockWaitPolicy::Wait))?.unwrap();
                block_on(old.delete(&mut txn, &next))?;
                if keeps {
                    writer = Some(txn);
                } else {
                    block_on(txn.commit())?;
                }
            }
            let writer = writer.take().unwrap();
            std::thread::spawn(move || {
                std::thread::sleep(Duration::from_millis(50));
                block_on(writer.commit()).unwrap();
            });
        }
        let added = i(row[0].as_i64().unwrap() * 2);
        Ok(vec![row[2].clone(), row[0].clone(), added])
    };
    block_on(db.alter_table(&DdlContext::default(), plan, &mut convert)).unwrap();
    check(&db);
    let table = table(&db, "t");
    let found = all(&db, &table);
    assert_eq!((found.len(), table.row_count_estimate().unwrap()), (KEYS as usize / 2, KEYS as u64 / 2));
    let of = |id: i64| found.iter().find(|row| row[1] == i(id)).map(|row| (row[0].clone(), row[2].clone()));
    for id in [10, 11] {
        assert_eq!(of(1_000_000 + id), Some((i(7), i(2 * (1_000_000 + id)))));
        assert_eq!(of(2 * id), Some((i(99), i(4 * id))));
        assert_eq!(of(2 * id + 100), None);
    }
}

#[test]
fn a_table_that_is_copied_can_be_read_and_one_under_lock_exclusive_cannot() {
    let db = database();
    make(&db, false, true);
    for (others, reads) in [(Others::AsFarAsPossible, Ok(true)), (Others::Read, Ok(true)), (Others::Nothing, Err(1205))] {
        let old = table(&db, "t");
        let mut plan = AlterPlan::of(&old);
        plan.convert_rows = true;
        let mut asked = false;
        let mut ask = |row| {
            if !std::mem::replace(&mut asked, true) {
                let mut txn = db.begin(Isolation::RepeatableRead);
                txn.set_metadata_lock_timeout(Duration::ZERO);
                assert_eq!(block_on(txn.open(&old)).map_err(|e| e.code), reads, "{others:?}");
                if reads.is_ok() {
                    assert_eq!(rows_in(&mut txn, &old, 0, &KeyRange::all(), Direction::Forward).len(), KEYS as usize / 2);
                }
                assert_eq!(block_on(txn.open_to_write(&old)).map_err(|e| e.code), Err(1205), "{others:?}");
            }
            Ok(row)
        };
        let cx = DdlContext { others, ..DdlContext::default() };
        block_on(db.alter_table(&cx, plan, &mut ask)).unwrap();
        assert!(asked);
        check(&db);
    }
}

/// Its rows get hidden numbers, which nothing but the copy's order says.
#[test]
fn a_table_that_loses_its_key_can_be_read_only() {
    let db = database();
    make(&db, false, true);
    let old = table(&db, "t");
    let mut plan = AlterPlan::of(&old);
    // (id, u, k, s) -> (u, k, s)
    plan.spec.columns.remove(0);
    plan.columns.remove(0);
    plan.spec.indexes.clear();
    plan.in_place = true;
    let cx = DdlContext { others: Others::Write, ..DdlContext::default() };
    let refused = block_on(db.alter_table(&cx, plan.clone(), &mut |row: Vec<Value>| Ok(row[1..].to_vec()))).unwrap_err();
    assert_eq!(refused.code, 1846);
    let mut asked = false;
    let mut convert = |row: Vec<Value>| {
        if !std::mem::replace(&mut asked, true) {
            let mut txn = db.begin(Isolation::ReadCommitted);
            txn.set_metadata_lock_timeout(Duration::ZERO);
            assert_eq!(block_on(txn.open(&old)).map_err(|e| e.code), Ok(true));
            assert_eq!(block_on(txn.open_to_write(&old)).map_err(|e| e.code), Err(1205));
        }
        Ok(row[1..].to_vec())
    };
    block_on(db.alter_table(&DdlContext::default(), plan, &mut convert)).unwrap();
    assert!(asked);
    check(&db);
    let new = table(&db, "t");
    let added = vec![NULL, i(1), t("")];
    fill(&db, &new, vec![added.clone()]);
    let found = all(&db, &new);
    assert_eq!((found.len(), found.last()), (KEYS as usize / 2 + 1, Some(&added)));
    check(&db);
}

/// Notes that do not fit end it before anybody is waited for.
#[test]
fn too_many_changes_end_an_alteration_without_its_waiting_for_anybody() {
    let db = database();
    make(&db, false, true);
    let old = table(&db, "t");
    let mut plan = AlterPlan::of(&old);
    (plan.convert_rows, plan.in_place) = (true, true);
    let trees = db.engine().indexes().len();
    let mut writer = None;
    let mut convert = |row| {
        if writer.is_none() {
            let mut txn = db.begin(Isolation::ReadCommitted);
            assert!(block_on(txn.open_to_write(&old))?);
            let rows: Vec<_> = (0..20).map(|id| vec![i(1_000_000 + id), NULL, NULL, NULL]).collect();
            block_on(old.insert(&mut txn, &rows, OnDuplicate::Error))?;
            writer = Some(txn);
        }
        Ok(row)
    };
    // With the writer there it would wait for ever.
    let cx = DdlContext { online_log: 100, ..DdlContext::default() };
    assert_eq!(block_on(db.alter_table(&cx, plan.clone(), &mut convert)).unwrap_err().code, 1799);
    assert_eq!(db.engine().indexes().len(), trees, "what was made is gone");
    block_on(writer.unwrap().commit()).unwrap();
    // The table is watched no more, and can be again.
    alter(&db, &DdlContext::default(), plan).unwrap();
    check(&db);
    assert_eq!(all(&db, &table(&db, "t")).len(), KEYS as usize / 2 + 20);
}

/// What a foreign key's action does to a table that is watched is followed too.
#[test]
fn cascades_into_a_table_are_followed() {
    let db = database();
    make(&db, false, true);
    let columns = vec![int("c").not_null(), int("parent")];
    let mut child = TableSpec::new("s", "child", columns, vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("parent", &[1])]);
    child.foreign_keys = vec![ForeignKeyDef {
        name: "k".into(),
        columns: vec![1],
        parent_schema: "s".into(),
        parent_table: "t".into(),
        parent_columns: vec!["id".into()],
        on_delete: ReferenceAction::Cascade,
        on_update: ReferenceAction::NoAction,
    }];
    let old = block_on(db.create_table(&DdlContext::default(), child)).unwrap();
    fill(&db, &old, (0..100).map(|c| vec![i(c), i(2 * c)]).collect());
    for (name, first) in [("other", 40), ("both", 0)] {
        let parent = table(&db, "t");
        let child = table(&db, "child");
        let mut plan = AlterPlan::of(&child);
        (plan.convert_rows, plan.in_place) = (true, true);
        plan.spec.indexes.push(IndexSpec::unique(name, &[1, 0]));
        let mut deleted = false;
        let mut convert = |row| {
            if !std::mem::replace(&mut deleted, true) {
                let mut txn = db.begin(Isolation::ReadCommitted);
                assert!(block_on(txn.open_to_write(&parent))?);
                for id in [first, first + 20] {
                    let row = block_on(parent.lock_get(&mut txn, 0, &[i(id)], LockMode::Exclusive, LockWaitPolicy::Wait))?.unwrap();
                    block_on(parent.delete(&mut txn, &row))?;
                }
                block_on(txn.commit())?;
            }
            Ok(row)
        };
        block_on(db.alter_table(&DdlContext::default(), plan, &mut convert)).unwrap();
        check(&db);
        let found = all(&db, &table(&db, "child"));
        assert!(found.iter().all(|row| row[1] != i(first) && row[1] != i(first + 20)), "what was deleted with its parent came back");
    }
    assert_eq!(all(&db, &table(&db, "child")).len(), 96);
}

#[test]
fn who_uses_a_table_beside_its_alteration_is_waited_for_at_the_end() {
    let db = database();
    make(&db, false, true);
    let old = table(&db, "t");
    let mut plan = AlterPlan::of(&old);
    plan.convert_rows = true;
    let mut reader = None;
    let mut read = |row| {
        if reader.is_none() {
            let mut txn = db.begin(Isolation::RepeatableRead);
            assert!(block_on(txn.open(&old))?);
            reader = Some(txn);
        }
        Ok(row)
    };
    let cx = DdlContext { lock_wait_timeout: Duration::from_millis(20), ..DdlContext::default() };
    let trees = db.engine().indexes().len();
    assert_eq!(block_on(db.alter_table(&cx, plan.clone(), &mut read)).unwrap_err().code, 1205);
    assert_eq!(db.engine().indexes().len(), trees, "what was made is gone");
    drop(reader);
    let version = table(&db, "t").def().version;
    assert_eq!(version, old.def().version);
    alter(&db, &cx, plan).unwrap();
    check(&db);
}
