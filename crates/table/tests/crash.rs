//! Crashes: what was committed stays, what was not goes, and DDL leaves the old or the new state and no tree behind.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use common::*;
use highkey_storage::{IndexId, SimDisk};
use highkey_table::*;
use highkey_types::{Charset, Collation, IntervalUnit, Value};

fn row(id: i64) -> Vec<Value> {
    vec![i(id), i(id % 5), t(&format!("name{id}"))]
}

fn definition(name: &str) -> TableSpec {
    let columns = vec![int("id").not_null(), int("k"), varchar("s", 300)];
    TableSpec::new("s", name, columns, vec![IndexSpec::primary(&[0]), IndexSpec::ordinary("k", &[1])])
}

/// A disk with schema `s` and table `t` of some rows, closed cleanly.
fn prepared(rows: i64) -> SimDisk {
    let disk = disk(3);
    let db = try_open_still(&disk).unwrap();
    create_schema(&db, "s").unwrap();
    let table = block_on(db.create_table(&DdlContext::default(), definition("t"))).unwrap();
    fill(&db, &table, (0..rows).map(row).collect());
    db.shutdown().unwrap();
    disk
}

#[test]
fn committed_rows_survive_and_others_do_not() {
    let mut disk = prepared(0);
    for round in 0..6 {
        let db = try_open_still(&disk).unwrap();
        let table = table(&db, "t");
        assert_eq!(all(&db, &table).len(), round * 100);
        check(&db);
        let first = round as i64 * 100;
        fill(&db, &table, (first..first + 100).map(row).collect());
        let mut open_txn = db.begin(Isolation::RepeatableRead);
        let lost: Vec<_> = (10_000..10_400).map(row).collect();
        block_on(table.insert(&mut open_txn, &lost, OnDuplicate::Error)).unwrap();
        if round % 2 == 0 {
            db.engine().checkpoint().unwrap();
        }
        let after = disk.crash();
        drop(open_txn);
        disk = after;
    }
}

/// The trees that belong to somebody: the engine's own and those of the catalog's tables.
fn orphans(db: &Arc<Database>, system: &BTreeSet<IndexId>) -> Vec<IndexId> {
    let mut known = system.clone();
    for table in db.catalog().all_tables() {
        known.extend(table.def().trees().into_iter().map(|(tree, ..)| tree));
    }
    db.engine().indexes().into_iter().filter(|id| !known.contains(id)).collect()
}

fn system_trees() -> BTreeSet<IndexId> {
    try_open_still(&disk(1)).unwrap().engine().indexes().into_iter().collect()
}

/// What a client can see of the database: each table with its columns, indexes and rows.
fn picture(db: &Arc<Database>) -> Vec<String> {
    let table = |table: &Arc<Table>| {
        let def = table.def();
        let indexes: Vec<_> = def.indexes.iter().map(|i| i.name.to_string()).collect();
        let histograms: Vec<_> = def.columns.iter().enumerate().filter_map(|(i, c)| Some((&c.name, table.histogram(i)?.buckets().len()))).collect();
        let rows = all(db, table).len();
        let triggers: Vec<_> = def.triggers.iter().map(|trigger| format!("{trigger:?}")).collect();
        let partitions = table.partitions_read(0, &[KeyRange::all()]);
        format!("{}.{} {} columns {indexes:?} {histograms:?} {triggers:?} {partitions:?} {rows} rows", def.schema, def.name, def.columns.len())
    };
    let notes = db.replica_records().unwrap().into_iter().map(|record| format!("{record:?}"));
    let views = db.catalog().schemas().into_iter().flat_map(|schema| db.catalog().views(&schema.name));
    let views = views.map(|view| format!("{:?}", view.def()));
    let routines = db.catalog().schemas().into_iter().flat_map(|schema| db.catalog().routines(&schema.name));
    let routines = routines.map(|routine| format!("{routine:?}"));
    let events: Vec<String> = db.catalog().all_events().map(|event| format!("{event:?}")).collect();
    let granted = db.catalog().users().into_iter().map(|account| format!("{} {:?}", account.user, account.grants.routines));
    db.catalog().all_tables().iter().map(table).chain(views).chain(routines).chain(events).chain(granted).chain(notes).collect()
}

type Statement = fn(&Arc<Database>) -> Result<(), highkey_types::MySqlError>;

/// Crashes after every change of the disk that `statement` makes on a table of some rows.
fn crash_everywhere(what: &str, rows: i64, statement: Statement) {
    crash_everywhere_on(what, &prepared(rows), statement);
}

fn crash_everywhere_on(what: &str, base: &SimDisk, statement: Statement) {
    let system = system_trees();
    // Powered off and on again: an equal copy, for every run.
    let old = picture(&try_open_still(&base.crash()).unwrap());
    let (new, steps) = {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        let before = disk.changes();
        statement(&db).unwrap();
        (picture(&db), disk.changes() - before)
    };
    assert_ne!(old, new);
    let (mut olds, mut news) = (0, 0);
    for step in 1..=steps + 1 {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        disk.power_off_at(disk.changes() + step);
        let outcome = statement(&db);
        let after = disk.crash();
        drop(db);
        let db = try_open_still(&after).unwrap_or_else(|e| panic!("{what}, step {step} of {steps}: {e}"));
        for _ in 0..50 {
            if db.engine().background_step().unwrap() == 0 {
                break;
            }
        }
        let found = picture(&db);
        if found == new {
            news += 1;
        } else {
            assert_eq!(found, old, "{what}, step {step} of {steps}");
            assert!(outcome.is_err(), "{what}, step {step} of {steps}: acknowledged and gone");
            olds += 1;
        }
        assert_eq!(orphans(&db, &system), [], "{what}, step {step} of {steps}: trees of nobody");
        check(&db);
        // The database goes on.
        let t = db.catalog().all_tables().into_iter().next();
        if let Some(t) = t.filter(|t| t.columns().len() == 3) {
            fill(&db, &t, vec![row(1_000_000)]);
        }
    }
    assert!(olds > 0 && news > 0, "{what}: {olds} old, {news} new of {steps} steps");
}

#[test]
fn create_table_is_atomic() {
    crash_everywhere("create table", 10, |db| {
        block_on(db.create_table(&DdlContext::default(), definition("new"))).map(|_| ())
    });
}

/// A table made and filled by one transaction, in bulk; without a primary key, so that its row ids are leased meanwhile.
async fn create_filled(txn: &mut Transaction) -> Result<Arc<Table>, highkey_types::MySqlError> {
    let spec = TableSpec { auto_increment: Some(7), indexes: vec![IndexSpec::ordinary("k", &[1])], ..definition("new") };
    let table = txn.create_table(&DdlContext::default(), spec).await?;
    // More than a mebibyte: loaded bottom-up.
    let mut rows = EncodedRows::new();
    for id in 0..5_000 {
        let row = [i(id), i(id % 5), t(&"filled ".repeat(40))];
        rows.push_with(|out| table.layout().encode(&row, out));
    }
    let mut bulk = table.bulk_insert(txn, OnDuplicate::Error, 64 << 20)?;
    bulk.add(txn, table.prepare_rows(rows)).await?;
    bulk.finish(txn).await?;
    Ok(table)
}

#[test]
fn a_table_that_is_made_and_filled_is_there_with_all_rows_or_not_at_all() {
    crash_everywhere("create table ... select", 10, |db| {
        let mut txn = db.begin(Isolation::RepeatableRead);
        block_on(create_filled(&mut txn))?;
        block_on(txn.commit())
    });
}

#[test]
fn a_table_whose_transaction_is_rolled_back_was_never_there() {
    let db = try_open_still(&prepared(10)).unwrap();
    let system = system_trees();
    let old = picture(&db);
    let catalog = |db: &Arc<Database>| {
        let mut txn = db.engine().begin(highkey_storage::Isolation::ReadCommitted);
        let mut scan = txn.scan(db.engine().root_index(), highkey_storage::Bounds::all(), highkey_storage::Direction::Forward);
        let (mut leaf, mut keys) = (highkey_storage::LeafRows::new(), 0);
        while scan.next_leaf(&mut leaf).unwrap() {
            keys += leaf.len();
        }
        keys
    };
    let records = catalog(&db);
    for way in 0..3 {
        let mut txn = db.begin(Isolation::RepeatableRead);
        let table = block_on(create_filled(&mut txn)).unwrap();
        assert_eq!(picture(&db), old, "nobody else sees it");
        // Its name is taken.
        let impatient = DdlContext { lock_wait_timeout: std::time::Duration::from_millis(20), ..DdlContext::default() };
        assert_eq!(block_on(db.create_table(&impatient, definition("new"))).unwrap_err().code, 1205);
        match way {
            0 => block_on(txn.rollback()).unwrap(),
            _ => drop(txn),
        }
        assert!(!table.is_current());
        while db.engine().background_step().unwrap() > 0 {}
        assert_eq!((picture(&db), catalog(&db)), (old.clone(), records), "way {way}");
        assert_eq!(orphans(&db, &system), []);
    }
    let mut txn = db.begin(Isolation::RepeatableRead);
    let made = block_on(create_filled(&mut txn)).unwrap();
    block_on(txn.commit()).unwrap();
    assert!(!made.is_current());
    let found = table(&db, "new");
    let next = found.auto_increment().next(&found.def().columns[0].ty);
    assert_eq!((all(&db, &found).len(), found.row_count_estimate().unwrap(), next), (5_000, 5_000, 7));
    check(&db);
    block_on(db.drop_tables(&DdlContext::default(), &[("s".into(), "new".into())], false)).unwrap();
    assert_eq!(catalog(&db), records);
}

#[test]
fn drop_table_is_atomic() {
    crash_everywhere("drop table", 300, |db| {
        block_on(db.drop_tables(&DdlContext::default(), &[("s".into(), "t".into())], false)).map(|_| ())
    });
}

/// A disk with the view `v`.
fn with_view() -> SimDisk {
    let disk = prepared(10);
    let db = try_open_still(&disk).unwrap();
    block_on(db.create_view(&DdlContext::default(), view("v", "select 1"), false, false)).unwrap();
    db.shutdown().unwrap();
    disk
}

#[test]
fn views_come_change_and_go_whole() {
    crash_everywhere("create view", 10, |db| block_on(db.create_view(&DdlContext::default(), view("v", "select 1"), false, false)));
    crash_everywhere_on("replace view", &with_view(), |db| block_on(db.create_view(&DdlContext::default(), view("v", "select 2"), true, false)));
    crash_everywhere_on("rename view", &with_view(), |db| {
        block_on(db.rename_tables(&DdlContext::default(), &[(("s".into(), "v".into()), ("s".into(), "w".into()))]))
    });
    crash_everywhere_on("drop view", &with_view(), |db| {
        block_on(db.drop_views(&DdlContext::default(), &[("s".into(), "v".into())], false)).map(|_| ())
    });
    crash_everywhere_on("drop schema with view", &with_view(), |db| block_on(db.drop_schema(&DdlContext::default(), "s")).map(|_| ()));
}

fn routine(name: &str) -> RoutineDef {
    let collation = Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    RoutineDef {
        kind: RoutineKind::Procedure,
        schema: "s".into(),
        name: name.into(),
        parameters: "IN a INT".into(),
        returns: "".into(),
        body: "BEGIN SELECT a; END".into(),
        data_access: DataAccess::ReadsSqlData,
        deterministic: true,
        invoker: true,
        comment: "said of it".into(),
        definer: ("root".into(), "localhost".into()),
        sql_mode: 1 << 22,
        charset: Charset::Latin1,
        collation,
        schema_collation: collation,
        created_at: std::time::UNIX_EPOCH,
        altered_at: std::time::UNIX_EPOCH + std::time::Duration::from_secs(7),
    }
}

fn event(name: &str) -> EventDef {
    let collation = Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    EventDef {
        schema: "s".into(),
        name: name.into(),
        body: "BEGIN SELECT 1; END".into(),
        schedule: EventSchedule::Every { count: 90, unit: IntervalUnit::HourMinute, starts: 1_000, ends: Some(2_000) },
        time_zone: "+01:00".into(),
        status: EventStatus::Enabled,
        preserve: true,
        comment: "said of it".into(),
        definer: ("root".into(), "localhost".into()),
        sql_mode: 1 << 22,
        charset: Charset::Latin1,
        collation,
        schema_collation: collation,
        originator: 7,
        created_at: std::time::UNIX_EPOCH,
        altered_at: std::time::UNIX_EPOCH + std::time::Duration::from_secs(7),
        last_executed: None,
    }
}

/// A disk with the event `E`.
fn with_event() -> SimDisk {
    let disk = prepared(10);
    let db = try_open_still(&disk).unwrap();
    block_on(db.create_event(&DdlContext::default(), event("E"))).unwrap();
    db.shutdown().unwrap();
    disk
}

#[test]
fn events_come_change_and_go_whole() {
    crash_everywhere("create event", 10, |db| block_on(db.create_event(&DdlContext::default(), event("E"))));
    crash_everywhere_on("rename event", &with_event(), |db| {
        block_on(db.alter_event(&DdlContext::default(), ("s", "e"), Some(("s", "f")), |def| def.schedule = EventSchedule::At(5)))
    });
    crash_everywhere_on("run event", &with_event(), |db| {
        let event = db.catalog().event("s", "e").unwrap();
        block_on(db.note_event_run(&event, Some(1_500), EventStatus::Disabled, std::time::Duration::ZERO)).map(drop)
    });
    crash_everywhere_on("drop event", &with_event(), |db| block_on(db.drop_event(&DdlContext::default(), ("s", "e"))));
    crash_everywhere_on("drop schema with event", &with_event(), |db| block_on(db.drop_schema(&DdlContext::default(), "s")).map(|_| ()));

    let db = try_open_still(&with_event()).unwrap();
    let cx = DdlContext::default();
    assert_eq!(format!("{:?}", db.catalog().event("s", "e").unwrap()), format!("{:?}", event("E")));
    assert_eq!(block_on(db.create_event(&cx, event("e"))).unwrap_err().code, 1537);
    assert_eq!(block_on(db.create_event(&cx, EventDef { schema: "none".into(), ..event("e") })).unwrap_err().code, 1049);
    assert_eq!(block_on(db.alter_event(&cx, ("s", "f"), None, |_| ())).unwrap_err().code, 1539);
    let old = db.catalog().event("s", "E").unwrap();
    block_on(db.alter_event(&cx, ("s", "e"), None, |def| def.preserve = false)).unwrap();
    assert!(block_on(db.note_event_run(&old, Some(1), EventStatus::Enabled, std::time::Duration::ZERO)).unwrap().is_none(), "it is another one by now");
    block_on(db.drop_event(&cx, ("s", "e"))).unwrap();
    assert_eq!(block_on(db.drop_event(&cx, ("s", "e"))).unwrap_err().code, 1539);
}

/// A disk with the procedure `P`, which its creator may run.
fn with_routine() -> SimDisk {
    let disk = prepared(10);
    let db = try_open_still(&disk).unwrap();
    block_on(db.create_routine(&DdlContext::default(), routine("P"), Some(("root", "localhost")))).unwrap();
    db.shutdown().unwrap();
    disk
}

#[test]
fn routines_come_change_and_go_whole() {
    let key = (RoutineKind::Procedure, "s", "p");
    crash_everywhere("create procedure", 10, |db| block_on(db.create_routine(&DdlContext::default(), routine("P"), Some(("root", "localhost")))));
    crash_everywhere_on("alter procedure", &with_routine(), |db| {
        block_on(db.alter_routine(&DdlContext::default(), (RoutineKind::Procedure, "s", "p"), |def| def.comment = "other".into()))
    });
    crash_everywhere_on("drop procedure", &with_routine(), |db| block_on(db.drop_routine(&DdlContext::default(), (RoutineKind::Procedure, "s", "p"))));
    crash_everywhere_on("drop schema with procedure", &with_routine(), |db| block_on(db.drop_schema(&DdlContext::default(), "s")).map(|_| ()));

    let disk = with_routine();
    let db = try_open_still(&disk).unwrap();
    assert_eq!(block_on(db.create_routine(&DdlContext::default(), routine("p"), None)).unwrap_err().code, 1304);
    assert_eq!(format!("{:?}", db.catalog().routine("s", key.0, "p").unwrap()), format!("{:?}", routine("P")));
    block_on(db.drop_routine(&DdlContext::default(), key)).unwrap();
    assert_eq!(block_on(db.drop_routine(&DdlContext::default(), key)).unwrap_err().code, 1305);
    assert!(db.catalog().users().iter().all(|account| account.grants.routines.is_empty()));
}

fn trigger(name: &str) -> TriggerDef {
    let routine = RoutineDef { kind: RoutineKind::Trigger, body: "SET @a = NEW.a".into(), ..routine(name) };
    TriggerDef { event: TriggerEvent::Insert, time: TriggerTime::After, routine: Arc::new(routine) }
}

/// A disk with a table that has the trigger `G`.
fn with_trigger() -> SimDisk {
    let disk = prepared(10);
    let db = try_open_still(&disk).unwrap();
    block_on(db.create_trigger(&DdlContext::default(), "t", trigger("G"), &TriggerPlace::Last)).unwrap();
    db.shutdown().unwrap();
    disk
}

#[test]
fn triggers_come_and_go_whole() {
    crash_everywhere("create trigger", 10, |db| block_on(db.create_trigger(&DdlContext::default(), "t", trigger("G"), &TriggerPlace::Last)));
    crash_everywhere_on("drop trigger", &with_trigger(), |db| block_on(db.drop_trigger(&DdlContext::default(), "s", "g")));

    let disk = with_trigger();
    let db = try_open_still(&disk).unwrap();
    let create = |name: &str, place: TriggerPlace| block_on(db.create_trigger(&DdlContext::default(), "t", trigger(name), &place));
    assert_eq!(create("g", TriggerPlace::Last).unwrap_err().code, 1359);
    assert_eq!(create("h", TriggerPlace::Before("x".into())).unwrap_err().code, 3011);
    create("h", TriggerPlace::Before("G".into())).unwrap();
    create("i", TriggerPlace::Behind("h".into())).unwrap();
    let names = |table: &str| -> Vec<String> { db.catalog().table("s", table).unwrap().def().triggers.iter().map(|trigger| trigger.routine.name.to_string()).collect() };
    assert_eq!(names("t"), ["h", "i", "G"]);
    // They go where the table goes, but not out of the schema.
    block_on(db.create_schema(&DdlContext::default(), SchemaDef { name: "other".into(), collation: trigger("x").routine.collation })).unwrap();
    let rename = |schema: &str| block_on(db.rename_tables(&DdlContext::default(), &[(("s".into(), "t".into()), (schema.into(), "u".into()))]));
    assert_eq!(rename("other").unwrap_err().code, 1435);
    rename("s").unwrap();
    block_on(db.truncate_table(&DdlContext::default(), "s", "u")).unwrap();
    block_on(db.create_index(&DdlContext::default(), "s", "u", IndexSpec::ordinary("more", &[1]))).unwrap();
    assert_eq!(names("u"), ["h", "i", "G"]);
    block_on(db.drop_tables(&DdlContext::default(), &[("s".into(), "u".into())], false)).unwrap();
    assert!(db.catalog().trigger("s", "h").is_none());
}

#[test]
fn a_replicas_record_goes_with_what_it_is_about() {
    // A transaction of two statements.
    crash_everywhere("rows of a source", 300, |db| {
        let mut txn = db.begin(Isolation::ReadCommitted);
        let table = block_on(txn.table("s", "t"))?;
        block_on(table.insert(&mut txn, &(1000..1300).map(row).collect::<Vec<_>>(), OnDuplicate::Error))?;
        let first = block_on(table.lock_get(&mut txn, 0, &[i(0)], LockMode::Exclusive, LockWaitPolicy::Wait))?.expect("row 0");
        block_on(table.delete(&mut txn, &first))?;
        txn.put_replica_record(&db.replica_record(b"position", b"binlog.000001:500".to_vec()))?;
        block_on(txn.commit())
    });
    // A definition.
    crash_everywhere("a definition of a source", 10, |db| {
        let cx = DdlContext { replica: Some(db.replica_record(b"position", b"binlog.000001:900".to_vec())), ..DdlContext::default() };
        block_on(db.create_table(&cx, definition("new"))).map(|_| ())
    });
    // Settings and position together.
    let base = prepared(10);
    let db = try_open_still(&base).unwrap();
    db.change_replica_records(&[db.replica_record(b"position", vec![1])], &[]).unwrap();
    db.shutdown().unwrap();
    drop(db);
    crash_everywhere_on("settings of a replica", &base, |db| {
        let put = [db.replica_record(b"channel", vec![7; 100]), db.replica_record(b"position 2", Vec::new())];
        db.change_replica_records(&put, &[b"position", b"nothing"])
    });
}

#[test]
fn a_replicas_record_is_undone_with_its_transaction() {
    let db = try_open_still(&prepared(10)).unwrap();
    db.change_replica_records(&[db.replica_record(b"position", b"old".to_vec())], &[]).unwrap();
    let mut txn = db.begin(Isolation::ReadCommitted);
    txn.put_replica_record(&db.replica_record(b"position", b"new".to_vec())).unwrap();
    assert_eq!(db.replica_records().unwrap(), [(b"position".to_vec(), b"old".to_vec())]);
    block_on(txn.rollback()).unwrap();
    assert_eq!(db.replica_records().unwrap(), [(b"position".to_vec(), b"old".to_vec())]);
}

#[test]
fn truncate_is_atomic() {
    crash_everywhere("truncate", 300, |db| block_on(db.truncate_table(&DdlContext::default(), "s", "t")));
}

#[test]
fn create_index_is_atomic() {
    crash_everywhere("create index", 1000, |db| {
        block_on(db.create_index(&DdlContext::default(), "s", "t", IndexSpec::unique("by_s", &[2])))
    });
}

#[test]
fn create_full_text_index_is_atomic() {
    crash_everywhere("create full-text index", 300, |db| {
        block_on(db.create_index(&DdlContext::default(), "s", "t", IndexSpec::new(IndexKind::FullText, Some("words"), &[2])))
    });
}

/// So long that no index of theirs is logged row by row.
fn with_long_rows() -> SimDisk {
    let disk = disk(3);
    let db = try_open_still(&disk).unwrap();
    create_schema(&db, "s").unwrap();
    let table = block_on(db.create_table(&DdlContext::default(), definition("t"))).unwrap();
    fill(&db, &table, (0..2_000).map(|id| vec![i(id), i(id % 5), t(&format!("{id:0>280}"))]).collect());
    db.shutdown().unwrap();
    disk
}

#[test]
fn several_indexes_come_together_or_not_at_all() {
    crash_everywhere_on("add indexes", &with_long_rows(), |db| {
        let mut plan = AlterPlan::of(&table(db, "t"));
        plan.spec.indexes.extend([IndexSpec::unique("by_s", &[2]), IndexSpec::ordinary("by_s_and_k", &[2, 1])]);
        block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).map(drop)
    });
}

#[test]
fn what_is_committed_beside_an_alter_is_there_with_it_and_without_it() {
    // Whether the writer was told that it had committed, and the alter that it was done.
    let run = |db: &Arc<Database>| {
        let old = table(db, "t");
        let mut plan = AlterPlan::of(&old);
        plan.spec.columns.push(int("added"));
        plan.columns.push(None);
        plan.spec.indexes.push(IndexSpec::unique("by_s", &[2]));
        plan.in_place = true;
        let (mut begun, mut written) = (false, false);
        let mut convert = |mut before: Vec<Value>| {
            if !std::mem::replace(&mut begun, true) {
                let mut txn = db.begin(Isolation::ReadCommitted);
                assert!(block_on(txn.open_to_write(&old))?);
                let rows: Vec<_> = (1000..1010).map(row).collect();
                block_on(old.insert(&mut txn, &rows, OnDuplicate::Error))?;
                block_on(txn.commit())?;
                written = true;
            }
            before.push(NULL);
            Ok(before)
        };
        let altered = block_on(db.alter_table(&DdlContext::default(), plan, &mut convert)).is_ok();
        (written, altered)
    };
    let (base, system) = (prepared(300), system_trees());
    let steps = {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        let before = disk.changes();
        assert_eq!(run(&db), (true, true));
        disk.changes() - before
    };
    let mut seen = BTreeSet::new();
    for step in 1..=steps + 1 {
        let disk = base.crash();
        let db = try_open_still(&disk).unwrap();
        disk.power_off_at(disk.changes() + step);
        let (written, altered) = run(&db);
        let after = disk.crash();
        drop(db);
        let db = try_open_still(&after).unwrap_or_else(|e| panic!("step {step} of {steps}: {e}"));
        for _ in 0..50 {
            if db.engine().background_step().unwrap() == 0 {
                break;
            }
        }
        let table = table(&db, "t");
        let found = (all(&db, &table).len(), table.columns().len());
        assert!([(300, 3), (310, 3), (310, 4)].contains(&found), "step {step} of {steps}: {found:?}");
        assert!(!written || found.0 == 310, "step {step} of {steps}: acknowledged rows are gone");
        assert!(!altered || found.1 == 4, "step {step} of {steps}: acknowledged and gone");
        assert_eq!(orphans(&db, &system), [], "step {step} of {steps}: trees of nobody");
        check(&db);
        seen.insert(found);
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
}

#[test]
fn a_copying_alter_is_atomic() {
    crash_everywhere("alter table", 500, |db| {
        block_on(db.drop_index(&DdlContext::default(), "s", "t", "PRIMARY"))
    });
}

#[test]
fn drop_schema_is_atomic() {
    crash_everywhere("drop schema", 100, |db| {
        block_on(db.drop_schema(&DdlContext::default(), "s")).map(|_| ())
    });
}

/// Histograms of both columns that may have one.
fn update_histograms(db: &Arc<Database>) -> Result<(), highkey_types::MySqlError> {
    let mut txn = db.begin(Isolation::RepeatableRead);
    let table = block_on(txn.table("s", "t"))?;
    let made = table.make_histograms(&mut txn, &[1, 2], 10, 1 << 20)?;
    table.store_histograms([1, 2].into_iter().zip(made.into_iter().map(Some)).collect())
}

/// As `prepared`, with histograms.
fn with_histograms(rows: i64) -> SimDisk {
    let disk = prepared(rows);
    let db = try_open_still(&disk).unwrap();
    update_histograms(&db).unwrap();
    db.shutdown().unwrap();
    disk
}

#[test]
fn statistics_are_stored_when_they_are_made() {
    let disk = prepared(300);
    let db = try_open_still(&disk).unwrap();
    let analyzed = table(&db, "t").analyze(&mut db.begin(Isolation::RepeatableRead)).unwrap();
    let crashed = disk.crash();
    drop(db);
    let db = try_open_still(&crashed).unwrap();
    let kept = table(&db, "t").cached_statistics().expect("the catalog has them");
    assert_eq!((kept.rows, &kept.cardinality), (300, &analyzed.cardinality));
}

#[test]
fn histograms_are_stored_together_or_not_at_all() {
    crash_everywhere("update histogram", 300, update_histograms);
}

#[test]
fn histograms_go_with_what_they_are_of() {
    // An open that finds a histogram without its table or column is refused.
    crash_everywhere_on("drop table", &with_histograms(50), |db| {
        block_on(db.drop_tables(&DdlContext::default(), &[("s".into(), "t".into())], false)).map(|_| ())
    });
    crash_everywhere_on("drop schema", &with_histograms(50), |db| {
        block_on(db.drop_schema(&DdlContext::default(), "s")).map(|_| ())
    });
    crash_everywhere_on("change a column", &with_histograms(50), |db| {
        let mut plan = AlterPlan::of(&*table(db, "t"));
        plan.spec.columns[1].name = "another".into();
        block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).map(|_| ())
    });
    crash_everywhere_on("make a column unique", &with_histograms(50), |db| {
        block_on(db.create_index(&DdlContext::default(), "s", "t", IndexSpec::unique("by_s", &[2])))
    });
    crash_everywhere_on("drop histogram", &with_histograms(50), |db| table(db, "t").store_histograms(vec![(2, None)]));
}

/// Rows below 10, below 20 and above; those of another table belong to the second partition.
fn with_partitions(rows: i64) -> SimDisk {
    let disk = disk(3);
    let db = try_open_still(&disk).unwrap();
    create_schema(&db, "s").unwrap();
    let spec = TableSpec { partitioning: Some(by_id(&[("p0", Some(10)), ("p1", Some(20)), ("pm", None)])), ..definition("t") };
    let table = block_on(db.create_table(&DdlContext::default(), spec)).unwrap();
    fill(&db, &table, (0..rows).map(row).collect());
    let other = block_on(db.create_table(&DdlContext::default(), definition("u"))).unwrap();
    fill(&db, &other, (12..15).map(row).collect());
    db.shutdown().unwrap();
    disk
}

/// Changes the partitions of `t`: what the change leaves its trees stays.
fn repartition(db: &Arc<Database>, keep_rows: bool, change: fn(&mut Vec<PartitionDef>)) -> Result<(), highkey_types::MySqlError> {
    let table = table(db, "t");
    let mut partitioning = table.def().partitioning.clone().unwrap();
    change(&mut partitioning.partitions);
    let plan = RepartitionPlan { table: ("s".into(), "t".into()), version: table.def().version, partitioning, keep_rows };
    block_on(db.change_partitions(&DdlContext::default(), plan)).map(drop)
}

#[test]
fn partitions_change_atomically() {
    let base = with_partitions(30);
    crash_everywhere_on("drop partition", &base, |db| {
        repartition(db, false, |partitions| drop(partitions.remove(0)))
    });
    crash_everywhere_on("truncate partition", &base, |db| repartition(db, false, |partitions| partitions[1].trees.clear()));
    crash_everywhere_on("reorganize partitions", &base, |db| {
        repartition(db, true, |partitions| {
            partitions.remove(0);
            partitions[0] = PartitionDef { name: "first".into(), trees: Vec::new(), ..partitions[0].clone() };
        })
    });
    crash_everywhere_on("exchange partition", &base, |db| {
        let name = |name: &str| ("s".into(), name.into());
        block_on(db.exchange_partition(&DdlContext::default(), &name("t"), "p1", &name("u"), true))
    });
    crash_everywhere_on("remove partitioning", &base, |db| {
        let mut plan = AlterPlan::of(&table(db, "t"));
        plan.spec.partitioning = None;
        block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).map(|_| ())
    });
    crash_everywhere_on("create index on partitions", &base, |db| {
        block_on(db.create_index(&DdlContext::default(), "s", "t", IndexSpec::ordinary("by_s", &[2])))
    });
    crash_everywhere_on("drop partitioned table", &base, |db| {
        block_on(db.drop_tables(&DdlContext::default(), &[("s".into(), "t".into())], false)).map(|_| ())
    });
    crash_everywhere("partition a table", 30, |db| {
        let mut plan = AlterPlan::of(&table(db, "t"));
        plan.spec.partitioning = Some(by_id(&[("p0", Some(10)), ("pm", None)]));
        block_on(db.alter_table(&DdlContext::default(), plan, &mut Ok)).map(|_| ())
    });
}

#[test]
fn a_histogram_reads_back_as_it_was() {
    let disk = prepared(1000);
    let db = try_open_still(&disk).unwrap();
    update_histograms(&db).unwrap();
    let before: Vec<_> = [1, 2].map(|column| table(&db, "t").histogram(column).unwrap()).into();
    assert!(before[0].is_singleton() && !before[1].is_singleton());
    db.shutdown().unwrap();
    drop(db);
    let db = try_open_still(&disk).unwrap();
    for (column, before) in [1, 2].into_iter().zip(before) {
        let after = table(&db, "t").histogram(column).unwrap();
        assert_eq!(format!("{after:?}"), format!("{before:?}"));
    }
}

#[test]
fn a_rolled_back_create_index_leaves_no_tree() {
    let system = system_trees();
    let disk = prepared(200);
    let db = try_open_still(&disk).unwrap();
    let error =
        block_on(db.create_index(&DdlContext::default(), "s", "t", IndexSpec::unique("bad", &[1]))).unwrap_err();
    assert_eq!(error.code, 1062);
    for _ in 0..50 {
        if db.engine().background_step().unwrap() == 0 {
            break;
        }
    }
    assert_eq!(orphans(&db, &system), []);
    check(&db);
}

#[test]
fn a_damaged_catalog_is_refused_not_believed() {
    let disk = prepared(10);
    let db = try_open_still(&disk).unwrap();
    let id = table(&db, "t").id();
    // As a lost write to the catalog's page would: the record is there and is not one.
    let mut txn = db.engine().begin(Isolation::ReadCommitted);
    let key = [&b"T"[..], &id.0.to_be_bytes()].concat();
    assert!(matches!(
        txn.update(db.engine().root_index(), &key, b"{\"id\":").unwrap(),
        highkey_storage::Op::Done(true)
    ));
    txn.commit(&[]).unwrap().wait().unwrap();
    db.engine().shutdown().unwrap();
    drop(db);
    let error = try_open_still(&disk).err().unwrap();
    assert!(matches!(error, OpenError::Catalog(_)), "{error}");
}
