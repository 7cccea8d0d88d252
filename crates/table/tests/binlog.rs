//! The binary log: its files say exactly what the database holds, also after a crash at any write.

mod common;
#[path = "common/replay.rs"]
mod replay;

use std::collections::BTreeMap;
use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use common::*;
use highkey_binlog::{EventType, Header, event};
use highkey_storage::{Disk, Error, SimClock, SimConfig, SimDisk};
use highkey_table::*;
use highkey_types::MySqlError;
use replay::replay;

/// Small files, so that every few transactions begin another one.
fn small() -> BinlogOptions {
    BinlogOptions { enabled: true, max_size: 2500, ..BinlogOptions::default() }
}

fn open_on(disk: &SimDisk, binlog: BinlogOptions) -> Result<Arc<Database>, OpenError> {
    Database::open_on(Arc::new(disk.clone()), still_options(), Arc::new(SimClock::new()), binlog)
}

fn source(text: &str) -> EventSource {
    EventSource { server_id: 1, thread_id: 7, timestamp: 1_700_000_000, schema: "s".into(), statement: Some(text.into()), ..EventSource::default() }
}

fn logged(text: &str) -> DdlContext {
    DdlContext { log: Some(Arc::new(LoggedStatement { source: source(text), text: text.into(), ..LoggedStatement::default() })), ..DdlContext::default() }
}

/// What a file has behind the events that every file begins with.
fn transactions_of(db: &Arc<Database>, name: &str, size: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    db.binlog().unwrap().read_file(name, 0).ok()??.read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 == size).then_some(())?;
    let head: usize = event::split(&bytes[4..]).take(2).map(<[u8]>::len).sum();
    Some(bytes.split_off(4 + head))
}

fn stored(db: &Arc<Database>) -> BTreeMap<i64, i64> {
    let Ok(table) = db.catalog().table("s", "t") else { return BTreeMap::new() };
    all(db, &table).into_iter().map(|row| (row[0].as_i64().unwrap(), row[1].as_i64().unwrap())).collect()
}

fn create_table(db: &Arc<Database>) -> Result<(), MySqlError> {
    let collation = highkey_types::Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    block_on(db.create_schema(&logged("create database s"), SchemaDef { name: "s".into(), collation }))?;
    let columns = vec![int("id").not_null(), int("v").not_null()];
    let spec = TableSpec::new("s", "t", columns, vec![IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1])]);
    block_on(db.create_table(&logged("create table t (id int primary key, v int not null, unique u (v))"), spec)).map(drop)
}

/// One transaction of statements; each is `insert`, `update` or `delete` of ids, or fails and is undone.
async fn transaction(db: &Arc<Database>, statements: &[(&str, std::ops::Range<i64>)]) -> Result<(), MySqlError> {
    let table = db.catalog().table("s", "t")?;
    let mut txn = db.begin(Isolation::RepeatableRead);
    assert!(txn.open(&table).await?);
    for (what, ids) in statements {
        txn.log_statement(source(what));
        let start = txn.statement_savepoint();
        let done = statement(&table, &mut txn, what, ids.clone()).await;
        match done {
            Err(e) if e.code == 1062 => txn.rollback_to_statement(&start)?,
            other => other?,
        }
    }
    txn.commit().await
}

async fn statement(table: &Arc<Table>, txn: &mut Transaction, what: &str, ids: std::ops::Range<i64>) -> Result<(), MySqlError> {
    match what {
        "insert" => {
            let rows: Vec<_> = ids.map(|id| vec![i(id), i(id * 10)]).collect();
            table.insert(txn, &rows, OnDuplicate::Error).await.map(drop)
        }
        "replace" => {
            let rows: Vec<_> = ids.map(|id| vec![i(id), i(id * 10 + 5)]).collect();
            table.insert(txn, &rows, OnDuplicate::Replace).await.map(drop)
        }
        _ => {
            for id in ids {
                let Some(row) = table.lock_get(txn, 0, &[i(id)], LockMode::Exclusive, LockWaitPolicy::Wait).await? else { continue };
                match what {
                    "update" => drop(table.update(txn, &row, &[i(id), i(id * 10 + 1)]).await?),
                    "move" => drop(table.update(txn, &row, &[i(id + 1000), i(-id)]).await?),
                    "delete" => table.delete(txn, &row).await?,
                    other => panic!("{other}"),
                }
            }
            Ok(())
        }
    }
}

/// Many kinds of transactions; an error ends it (the power is off).
fn workload(db: &Arc<Database>) -> Result<(), MySqlError> {
    create_table(db)?;
    let run = |statements: &[(&str, std::ops::Range<i64>)]| block_on(transaction(db, statements));
    run(&[("insert", 0..30)])?;
    run(&[("update", 3..9), ("delete", 9..12), ("insert", 50..60)])?;
    // Fails in its middle: only what came before it is logged.
    run(&[("insert", 60..61), ("insert", 58..70), ("update", 0..2)])?;
    // Nothing is left of it.
    run(&[("insert", 55..56)])?;
    run(&[("replace", 20..40), ("move", 0..5)])?;
    let columns = vec![int("id")];
    block_on(db.create_table(&logged("create table other (id int)"), TableSpec::new("s", "other", columns, vec![])))?;
    block_on(db.drop_tables(&logged("drop table other"), &[("s".into(), "other".into())], true))?;
    for n in 0..8 {
        run(&[("insert", 100 + n..101 + n)])?;
    }
    run(&[("delete", 100..104)])
}

#[test]
fn the_files_say_what_the_database_holds() {
    let disk = disk(11);
    let db = open_on(&disk, BinlogOptions { enabled: true, ..BinlogOptions::default() }).unwrap();
    workload(&db).unwrap();
    let replayed = replay(&db);
    assert_eq!(replayed.rows, stored(&db));
    assert_eq!(replayed.files, 1);
    assert_eq!(replayed.statements[..2], ["create database s", "create table t (id int primary key, v int not null, unique u (v))"]);
    assert!(replayed.events["Rows_query"] >= 10, "{:?}", replayed.events);
    // Once more from the beginning, and files that are cut after each few transactions say the same.
    db.shutdown().unwrap();
    drop(db);
    let db = open_on(&disk, small()).unwrap();
    for n in 200..260 {
        block_on(transaction(&db, &[("insert", n..n + 1)])).unwrap();
    }
    let again = replay(&db);
    assert_eq!(again.rows, stored(&db));
    assert!(again.files > 4, "{} files", again.files);
    assert_eq!(again.events["Stop"], 1);
    assert_eq!(again.transactions, replayed.transactions + 60);
}

#[test]
fn a_transaction_larger_than_memory_is_logged_in_parts() {
    let disk = disk(12);
    let db = open_on(&disk, small()).unwrap();
    create_table(&db).unwrap();
    block_on(async {
        let table = table(&db, "t");
        let mut txn = db.begin(Isolation::RepeatableRead);
        assert!(txn.open(&table).await.unwrap());
        for (from, keep) in [(0, true), (200_000, false), (400_000, true), (600_000, false)] {
            txn.log_statement(source("insert"));
            let start = txn.statement_savepoint();
            for first in (from..from + 150_000).step_by(10_000) {
                statement(&table, &mut txn, "insert", first..first + 10_000).await.unwrap();
            }
            if !keep {
                txn.rollback_to_statement(&start).unwrap();
            }
        }
        txn.log_statement(source("delete"));
        statement(&table, &mut txn, "delete", 100..110).await.unwrap();
        txn.commit().await.unwrap();
    });
    let replayed = replay(&db);
    assert_eq!(replayed.rows.len(), 299_990);
    assert_eq!(replayed.rows, stored(&db));
    // The parts are in the log alone until then.
    let crashed = disk.crash();
    drop(db);
    let db = open_on(&crashed, small()).unwrap();
    assert_eq!(replay(&db).rows, stored(&db));
}

#[test]
fn a_bulk_load_is_logged_whichever_way_it_goes() {
    let db = open_on(&disk(13), BinlogOptions { enabled: true, ..BinlogOptions::default() }).unwrap();
    create_table(&db).unwrap();
    let table = table(&db, "t");
    let load = |rows: &[(i64, i64)], mode: OnDuplicate, memory: usize| {
        block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            assert!(txn.open(&table).await.unwrap());
            txn.log_statement(source("load"));
            let mut bulk = table.bulk_insert(&mut txn, mode, memory).unwrap();
            for chunk in rows.chunks(20_000) {
                let mut encoded = EncodedRows::new();
                for (id, v) in chunk {
                    encoded.push_with(|out| table.layout().encode(&[i(*id), i(*v)], out));
                }
                bulk.add(&mut txn, table.prepare_rows(encoded)).await.unwrap();
            }
            bulk.finish(&mut txn).await.unwrap();
            txn.commit().await.unwrap();
        });
        assert_eq!(replay(&db).rows, stored(&db));
    };
    let truncate = || {
        block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            assert!(txn.open(&table).await.unwrap());
            txn.log_statement(source("delete"));
            statement(&table, &mut txn, "delete", 0..300_000).await.unwrap();
            txn.commit().await.unwrap();
        });
        while db.engine().background_step().unwrap() > 0 {}
    };
    let shuffled = |n: i64| (0..n).map(move |k| (k * 7919 % n, k)).collect::<Vec<_>>();
    let ordered = |n: i64| (0..n).map(|k| (k, k)).collect::<Vec<_>>();
    load(&ordered(250_000), OnDuplicate::Error, 64 << 20);
    truncate();
    load(&shuffled(100_000), OnDuplicate::Error, 1 << 20);
    // Into a table with rows, with duplicates.
    load(&shuffled(1000).iter().map(|(id, v)| (id * 200, v + 1_000_000)).collect::<Vec<_>>(), OnDuplicate::Ignore, 1 << 20);
    load(&shuffled(1000).iter().map(|(id, v)| (id * 300, v + 2_000_000)).collect::<Vec<_>>(), OnDuplicate::Replace, 1 << 20);
    truncate();
    // Order that breaks while the rows stream.
    let mut broken = ordered(240_000);
    broken.push((-1, -1));
    load(&broken, OnDuplicate::Error, 64 << 20);
}

/// Power off at every change of the disk: the files and the rows agree, and what was acknowledged is in both.
#[test]
fn after_a_crash_at_any_write_files_and_rows_agree() {
    let steps = {
        let disk = disk(14);
        let db = open_on(&disk, small()).unwrap();
        let before = disk.changes();
        workload(&db).unwrap();
        replay(&db);
        disk.changes() - before
    };
    assert!(steps > 60, "{steps}");
    for step in 1..=steps {
        let disk = disk(14);
        let db = open_on(&disk, small()).unwrap();
        disk.power_off_at(disk.changes() + step);
        let acknowledged = work_in_steps(&db);
        let published = db.binlog().unwrap().files();
        // What a replica may have read, as far as a disk without power can tell.
        let read = published.iter().filter_map(|(name, size)| Some((name.clone(), transactions_of(&db, name, *size)?))).collect::<Vec<_>>();
        let after = disk.crash();
        drop(db);
        let db = open_on(&after, small()).unwrap_or_else(|e| panic!("step {step} of {steps}: {e}"));
        for (name, bytes) in &read {
            let size = db.binlog().unwrap().files().iter().find(|(n, _)| n == name).map(|(_, size)| *size);
            let now = transactions_of(&db, name, size.unwrap_or_else(|| panic!("step {step}: {name} is gone"))).unwrap();
            assert!(now.starts_with(bytes), "step {step} of {steps}: {name} says something else than before the crash");
        }
        let replayed = replay(&db);
        assert_eq!(replayed.rows, stored(&db), "step {step} of {steps}");
        assert!(replayed.transactions >= acknowledged, "step {step}: {} of {acknowledged} acknowledged", replayed.transactions);
        // And it goes on.
        if db.catalog().table("s", "t").is_ok() {
            block_on(transaction(&db, &[("insert", 900..905)])).unwrap();
            assert_eq!(replay(&db).rows, stored(&db), "step {step} of {steps}");
        }
    }
}

/// One change of the disk finds it full, whichever it is: no transaction is halved, doubled or lost for it.
#[test]
fn after_a_full_disk_at_any_write_files_and_rows_agree() {
    let open = || {
        let disk = disk(17);
        let db = open_on(&disk, small()).unwrap();
        (disk, db)
    };
    let steps = {
        let (disk, db) = open();
        let before = disk.changes();
        work_in_steps(&db);
        disk.changes() - before
    };
    let mut went_on = 0;
    for step in 1..=steps {
        let (disk, db) = open();
        disk.fail_at(disk.changes() + step, Error::OutOfSpace);
        work_in_steps(&db);
        let binlog = db.binlog().unwrap();
        // The log itself does not survive a failed write; the binary log's files do.
        let again = binlog.catch_up().or_else(|_| binlog.catch_up());
        let (disk, db) = if again.is_ok() { (disk, db) } else { (disk.crash(), db) };
        let db = if again.is_ok() {
            went_on += 1;
            db
        } else {
            drop(db);
            open_on(&disk, small()).unwrap_or_else(|e| panic!("step {step} of {steps}: {e}"))
        };
        assert_eq!(replay(&db).rows, stored(&db), "step {step} of {steps}");
        if db.catalog().table("s", "t").is_ok() {
            block_on(transaction(&db, &[("insert", 900..905)])).unwrap();
        }
        db.binlog().unwrap().rotate().unwrap();
        assert_eq!(replay(&db).rows, stored(&db), "step {step} of {steps}");
    }
    assert!(went_on > steps / 3, "{went_on} of {steps} went on");
}

/// The workload with the writer's steps, rotations, and saved states in between. How many transactions were acknowledged.
fn work_in_steps(db: &Arc<Database>) -> u64 {
    let binlog = db.binlog().unwrap().clone();
    let mut acknowledged = 0;
    let mut note = |done: Result<(), MySqlError>| {
        acknowledged += u64::from(done.is_ok());
        done
    };
    let run = |statements: &[(&str, std::ops::Range<i64>)]| block_on(transaction(db, statements));
    let _ = (|| {
        create_table(db)?;
        binlog.catch_up()?;
        note(run(&[("insert", 0..30)]))?;
        note(run(&[("update", 3..9), ("delete", 9..12)]))?;
        binlog.rotate()?;
        note(run(&[("replace", 20..40), ("move", 0..5)]))?;
        binlog.catch_up()?;
        db.engine().checkpoint().map_err(|_| highkey_types::errors::query_interrupted())?;
        for n in 0..12 {
            note(run(&[("insert", 100 + 20 * n..120 + 20 * n)]))?;
            if n % 3 == 0 {
                binlog.catch_up()?;
            }
        }
        note(run(&[("delete", 100..104)]))
    })();
    acknowledged
}

#[test]
fn purge_and_reset_survive_a_crash_at_any_write() {
    let build = || {
        let disk = disk(15);
        let db = open_on(&disk, small()).unwrap();
        workload(&db).unwrap();
        let files = db.binlog().unwrap().files();
        let executed = {
            db.binlog().unwrap().catch_up().unwrap();
            db.binlog().unwrap().executed()
        };
        assert!(files.len() > 1 || db.binlog().unwrap().files().len() > 2);
        (disk, db, executed)
    };
    for reset in [false, true] {
        let act = |db: &Arc<Database>| {
            let binlog = db.binlog().unwrap();
            if reset {
                return binlog.reset(7);
            }
            let last = binlog.files().last().unwrap().0.clone();
            binlog.purge_to(&last)
        };
        let steps = {
            let (disk, db, _) = build();
            let before = disk.changes();
            act(&db).unwrap();
            assert_eq!(db.binlog().unwrap().files().len(), 1);
            disk.changes() - before
        };
        for step in 1..=steps {
            let (disk, db, executed) = build();
            disk.power_off_at(disk.changes() + step);
            let done = act(&db);
            let after = disk.crash();
            drop(db);
            let db = open_on(&after, small()).unwrap_or_else(|e| panic!("step {step} of {steps}: {e}"));
            let binlog = db.binlog().unwrap();
            let now = binlog.executed();
            if reset {
                assert!(now.is_empty() || now == executed, "step {step}: {now}");
                assert!(done.is_err() || now.is_empty(), "step {step}");
                assert_eq!(binlog.files()[0].0, if now.is_empty() { "binlog.000007" } else { "binlog.000001" }, "step {step}");
            } else {
                assert_eq!(now, executed, "step {step}");
                assert!(binlog.purged().is_subset(&executed));
                // What is left can be read, and begins behind what was purged.
                let mut known = executed.clone();
                known.subtract(&binlog.purged());
                assert!(binlog.find_start(&executed).unwrap().is_some());
                assert!(!known.is_empty() || binlog.files().len() <= 2);
            }
            let listed: Vec<String> = binlog.files().into_iter().map(|(name, _)| name).collect();
            for name in &listed {
                assert!(binlog.read_file(name, 0).unwrap().is_some(), "{name}");
            }
            block_on(transaction(&db, &[("insert", 900..905)])).unwrap();
            binlog.catch_up().unwrap();
            assert_eq!(binlog.executed().count(), now.count() + 1);
        }
    }
}

/// A database with small files of the binary log, and their names.
fn with_many_files(disk: &SimDisk) -> (Arc<Database>, Vec<String>) {
    let db = open_on(disk, small()).unwrap();
    create_table(&db).unwrap();
    for n in 0..80 {
        block_on(transaction(&db, &[("insert", n..n + 1)])).unwrap();
    }
    db.binlog().unwrap().catch_up().unwrap();
    let names: Vec<String> = db.binlog().unwrap().files().into_iter().map(|(name, _)| name).collect();
    assert!(names.len() > 8, "{names:?}");
    (db, names)
}

/// Somebody has removed old files by hand: no purge and no start minds.
#[test]
fn files_that_were_removed_by_hand_are_left_out() {
    let disk = disk(22);
    let (db, names) = with_many_files(&disk);
    let files = |db: &Arc<Database>| db.binlog().unwrap().files().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    disk.remove(&names[1]).unwrap();
    db.binlog().unwrap().purge_to(&names[2]).unwrap();
    assert_eq!(files(&db), names[2..]);
    block_on(transaction(&db, &[("insert", 100..101)])).unwrap();
    db.shutdown().unwrap();
    drop(db);
    disk.remove(&names[2]).unwrap();
    disk.remove(&names[4]).unwrap();
    let db = open_on(&disk, small()).unwrap();
    assert_eq!((&files(&db)[0], &files(&db)[1]), (&names[3], &names[5]));
    disk.remove(&names[6]).unwrap();
    // All files but the newest are of before then.
    db.binlog().unwrap().purge_before(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    assert_eq!(files(&db).len(), 1);
    block_on(transaction(&db, &[("insert", 101..102)])).unwrap();
    db.binlog().unwrap().catch_up().unwrap();
    assert!(stored(&db).contains_key(&101));
}

/// The files' writer may be busy for long with a large transaction: who waits for it lets the other tasks of its thread go on.
#[test]
fn who_waits_for_the_writer_says_so() {
    let disk = disk(25);
    let (db, names) = with_many_files(&disk);
    let waits = Arc::new(AtomicUsize::new(0));
    let counted = waits.clone();
    db.engine().on_blocking(Box::new(move |work: &mut dyn FnMut()| {
        counted.fetch_add(1, Ordering::Relaxed);
        work();
    }));
    let binlog = db.binlog().unwrap();
    binlog.catch_up().unwrap();
    assert_eq!(waits.load(Ordering::Relaxed), 1);
    binlog.purge_to(&names[1]).unwrap();
    assert_eq!((waits.load(Ordering::Relaxed), &binlog.files()[0].0), (2, &names[1]));
}

/// A replica that is behind can go on.
#[test]
fn a_file_that_is_being_sent_is_not_purged() {
    let disk = disk(24);
    let (db, names) = with_many_files(&disk);
    let binlog = db.binlog().unwrap();
    let (one, other) = (binlog.use_file(&names[2]), binlog.use_file(&names[2]));
    binlog.purge_to(&names[5]).unwrap();
    assert_eq!(binlog.files()[0].0, names[2]);
    drop(one);
    let next = binlog.use_file(&names[3]);
    binlog.purge_to(&names[5]).unwrap();
    assert_eq!(binlog.files()[0].0, names[2]);
    drop(other);
    binlog.purge_before(SystemTime::now() + Duration::from_secs(3600)).unwrap();
    assert_eq!(binlog.files()[0].0, names[3]);
    drop(next);
    binlog.purge_to(&names[5]).unwrap();
    assert_eq!(binlog.files()[0].0, names[5]);
    assert!(binlog.use_file(&names[3]).is_none());
}

/// On a disk that the binary log has filled a purge makes room, and what waited for it is written.
#[test]
fn a_purge_makes_room_on_a_full_disk() {
    let disk = SimDisk::new(SimConfig { seed: 23, capacity: 48 << 20, ..SimConfig::default() });
    let (db, names) = with_many_files(&disk);
    let binlog = db.binlog().unwrap().clone();
    let ballast = disk.open("ballast", true).unwrap();
    for bytes in [4096, 1] {
        while ballast.allocate(ballast.len().unwrap() + bytes).is_ok() {}
    }
    let before = binlog.executed();
    block_on(transaction(&db, &[("insert", 200..203)])).unwrap();
    assert_eq!(binlog.catch_up().unwrap_err().code, 1114);
    binlog.purge_to(&names[5]).unwrap();
    assert_eq!(binlog.files()[0].0, names[5]);
    assert!(!disk.exists(&names[4]).unwrap());
    binlog.catch_up().unwrap();
    assert_eq!(binlog.executed().count(), before.count() + 1);
    drop(db);
    let after = disk.crash();
    after.remove("ballast").unwrap();
    let db = open_on(&after, small()).unwrap();
    let binlog = db.binlog().unwrap();
    assert_eq!((&binlog.files()[0].0, binlog.executed().count()), (&names[5], before.count() + 1));
    assert!(stored(&db).contains_key(&202));
}

/// A disk that the binary log has filled keeps no server from starting: how else would anybody purge?
#[test]
fn a_full_disk_is_opened_and_a_purge_makes_room() {
    let disk = SimDisk::new(SimConfig { seed: 27, capacity: 48 << 20, ..SimConfig::default() });
    let (db, names) = with_many_files(&disk);
    let before = db.binlog().unwrap().executed().count();
    let ballast = disk.open("ballast", true).unwrap();
    for bytes in [4096, 1] {
        while ballast.allocate(ballast.len().unwrap() + bytes).is_ok() {}
    }
    ballast.sync().unwrap();
    disk.sync_dir().unwrap();
    block_on(transaction(&db, &[("insert", 200..203)])).unwrap();
    drop(db);
    let after = disk.crash();
    let db = open_on(&after, small()).unwrap();
    let binlog = db.binlog().unwrap();
    assert!(stored(&db).contains_key(&202));
    assert_eq!((&binlog.files()[0].0, binlog.catch_up().unwrap_err().code), (&names[0], 1114));
    binlog.purge_to(&names[5]).unwrap();
    binlog.catch_up().unwrap();
    assert_eq!((&binlog.files()[0].0, binlog.executed().count()), (&names[5], before + 1));
    // The start's new file came with the space.
    let files: Vec<_> = binlog.files().into_iter().map(|(name, _)| name).collect();
    assert!(files.len() > names.len() - 5, "{files:?}");
    drop(db);
    let db = open_on(&after.crash(), small()).unwrap();
    assert_eq!(db.binlog().unwrap().executed().count(), before + 1);
}

#[test]
fn a_server_without_the_binary_log_completes_the_files_and_forgets_them() {
    let disk = disk(16);
    let db = open_on(&disk, small()).unwrap();
    create_table(&db).unwrap();
    block_on(transaction(&db, &[("insert", 0..10)])).unwrap();
    let crashed = disk.crash();
    drop(db);
    let db = open_on(&crashed, BinlogOptions::default()).unwrap();
    assert!(db.binlog().is_none());
    block_on(transaction(&db, &[("insert", 20..30)])).unwrap();
    db.shutdown().unwrap();
    drop(db);
    let db = open_on(&crashed, small()).unwrap();
    let replayed = replay(&db);
    assert_eq!(replayed.transactions, 3, "what was committed without the binary log is not in it");
    assert_eq!(replayed.rows.len(), 10);
    block_on(transaction(&db, &[("insert", 40..41)])).unwrap();
    assert_eq!(replay(&db).transactions, 4);
    assert_eq!(stored(&db).len(), 21);
}

/// A tool may look at the database between a crash and the server's next start.
#[test]
fn a_tool_leaves_the_binary_log_to_the_next_start() {
    let disk = disk(17);
    let db = open_on(&disk, small()).unwrap();
    create_table(&db).unwrap();
    for n in 0..40 {
        block_on(transaction(&db, &[("insert", n..n + 1)])).unwrap();
    }
    let crashed = disk.crash();
    drop(db);
    let files = |disk: &SimDisk| -> Vec<(String, Vec<u8>)> {
        let named = disk.list().unwrap().into_iter().filter(|name| name.starts_with("binlog"));
        named.map(|name| (name.clone(), contents(disk, &name))).collect()
    };
    let before = files(&crashed);
    for _ in 0..2 {
        let db = open_on(&crashed, BinlogOptions { untouched: true, ..BinlogOptions::default() }).unwrap();
        assert!(db.binlog().is_none());
        assert_eq!(stored(&db).len(), 40);
        db.shutdown().unwrap();
    }
    assert!(files(&crashed) == before, "the files are as the crash has left them");
    let db = open_on(&crashed, small()).unwrap();
    let replayed = replay(&db);
    assert_eq!(replayed.rows, stored(&db));
    assert_eq!(replayed.events.get("Stop"), None);
    block_on(transaction(&db, &[("insert", 40..41)])).unwrap();
    assert_eq!(replay(&db).rows, stored(&db));
}

fn contents(disk: &SimDisk, name: &str) -> Vec<u8> {
    let file = disk.open(name, false).unwrap();
    let mut bytes = vec![0; file.len().unwrap() as usize];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Names of a database that an earlier version has made may be too long for the binary log. What it would have to tell of them is refused, and nothing of it is done.
#[test]
fn names_without_room_in_an_event_are_refused() {
    let db = open_on(&disk(73), small()).unwrap();
    create_table(&db).unwrap();
    let long = "\u{1f600}".repeat(64);
    let collation = highkey_types::Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    block_on(db.create_schema(&logged("create database"), SchemaDef { name: long.as_str().into(), collation })).unwrap();
    let spec = |schema: &str, name: &str| TableSpec::new(schema, name, vec![int("id").not_null(), int("v").not_null()], vec![IndexSpec::primary(&[0])]);
    let insert = |table: &Arc<Table>, source: EventSource| {
        block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            txn.open_to_write(table).await.unwrap();
            txn.log_statement(source);
            statement(table, &mut txn, "insert", 1..2).await?;
            txn.commit().await
        })
    };
    for (schema, name) in [(long.as_str(), "t"), ("s", long.as_str())] {
        let table = block_on(db.create_table(&logged("create table"), spec(schema, name))).unwrap();
        assert_eq!(insert(&table, source("insert")).unwrap_err().code, 1059, "{schema}.{name}");
        assert!(all(&db, &table).is_empty());
    }
    // As the default schema such a name matters to what is logged as its text.
    let inside = || EventSource { schema: long.as_str().into(), ..source("inside") };
    let log = LoggedStatement { source: inside(), text: "create table u (id int)".into(), ..LoggedStatement::default() };
    let cx = DdlContext { log: Some(Arc::new(log)), ..DdlContext::default() };
    assert_eq!(block_on(db.create_table(&cx, spec(&long, "u"))).map(drop).unwrap_err().code, 1059);
    assert!(db.catalog().table(&long, "u").is_err());
    insert(&db.catalog().table("s", "t").unwrap(), inside()).unwrap();
    assert_eq!(stored(&db).len(), 1);
    db.binlog().unwrap().catch_up().unwrap();
}

/// GTIDs that are given, not made: they count as executed, also after a crash; and this server's own numbers go around them.
#[test]
fn assigned_and_declared_gtids_are_executed() {
    let disk = disk(71);
    let db = open_on(&disk, BinlogOptions { assigns_gtids: true, ..small() }).unwrap();
    create_table(&db).unwrap();
    let own = db.server_uuid();
    let other: highkey_binlog::Uuid = "11111111-1111-1111-1111-111111111111".parse().unwrap();
    let insert = |db: &Arc<Database>, id: i64, gtid: GtidChoice| {
        block_on(async {
            let table = db.catalog().table("s", "t").unwrap();
            let mut txn = db.begin(Isolation::RepeatableRead);
            txn.open_to_write(&table).await.unwrap();
            txn.log_statement(EventSource { gtid, ..source("insert") });
            statement(&table, &mut txn, "insert", id..id + 1).await.unwrap();
            txn.commit().await.unwrap();
        });
    };
    insert(&db, 1, GtidChoice::Assigned(other, 7));
    insert(&db, 2, GtidChoice::Assigned(own, 4));
    insert(&db, 3, GtidChoice::Automatic);
    // 1 and 2 are the definitions, 4 is taken.
    insert(&db, 4, GtidChoice::Automatic);
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.log_empty(EventSource { gtid: GtidChoice::Assigned(other, 9), ..source("commit") });
        assert!(txn.has_something_to_commit() && !txn.has_writes());
        txn.commit().await.unwrap();
    });
    let binlog = db.binlog().unwrap();
    binlog.catch_up().unwrap();
    let executed: highkey_binlog::GtidSet = format!("{other}:7:9,{own}:1-5").parse().unwrap();
    assert_eq!(binlog.executed(), executed);
    assert!(matches!(binlog.own(other, 9, 1).unwrap(), Owning::Executed));
    let owned = binlog.own(other, 8, 1).unwrap();
    assert!(matches!(owned, Owning::Owned(_)) && matches!(binlog.own(other, 8, 2).unwrap(), Owning::Busy));
    drop(owned);
    assert!(binlog.owned().is_empty());
    let set = |text: &str| text.parse::<highkey_binlog::GtidSet>().unwrap();
    let third = "33333333-1111-1111-1111-111111111111";
    assert_eq!(binlog.declare_purged(true, &set(&format!("{other}:9-10"))).unwrap_err().code, 3546, "one is executed");
    binlog.declare_purged(false, &set(&format!("{third}:1-5"))).unwrap();
    assert_eq!(binlog.declare_purged(false, &set(&format!("{third}:1-3"))).unwrap_err().code, 3546, "not all that is purged");
    binlog.declare_purged(true, &set(&format!("{third}:6"))).unwrap();
    assert_eq!(binlog.find_start(&executed).unwrap(), None, "who lacks what is purged cannot be served");
    let all = set(&format!("{executed},{third}:1-6"));
    for db in [db.clone(), open_on(&disk.crash(), small()).unwrap()] {
        let binlog = db.binlog().unwrap();
        assert_eq!((binlog.executed(), binlog.purged()), (all.clone(), set(&format!("{third}:1-6"))));
        assert!(binlog.find_start(&all).unwrap().is_some());
    }
    binlog.reset(1).unwrap();
    assert!(binlog.executed().is_empty() && binlog.purged().is_empty());
}

/// The numbers of GTIDs in the files, in their order.
fn gtid_numbers(db: &Arc<Database>) -> Vec<u64> {
    let binlog = db.binlog().unwrap();
    binlog.catch_up().unwrap();
    let mut numbers = Vec::new();
    for (name, _) in binlog.files() {
        let mut bytes = Vec::new();
        binlog.read_file(&name, 0).unwrap().unwrap().read_to_end(&mut bytes).unwrap();
        for sealed in event::split(&bytes[4..]) {
            if Header::parse(sealed).unwrap().event_type == EventType::GTID {
                numbers.push(u64::from_le_bytes(sealed[Header::LEN + 17..Header::LEN + 25].try_into().unwrap()));
            }
        }
    }
    numbers
}

/// Sessions own numbers of this server while others commit: nobody else gets them, one that is given up is used, and after a crash at any
/// write the files say the same again.
#[test]
fn a_number_that_a_session_owns_is_nobody_elses() {
    let options = || BinlogOptions { assigns_gtids: true, ..small() };
    // The first numbers are of what makes the table.
    let work = |db: &Arc<Database>| -> Result<(), MySqlError> {
        create_table(db)?;
        let (binlog, own) = (db.binlog().unwrap(), db.server_uuid());
        let run = |id: i64, gtid: GtidChoice| {
            block_on(async {
                let table = db.catalog().table("s", "t")?;
                let mut txn = db.begin(Isolation::RepeatableRead);
                txn.open(&table).await?;
                txn.log_statement(EventSource { gtid, ..source("insert") });
                statement(&table, &mut txn, "insert", id..id + 1).await?;
                txn.commit().await
            })
        };
        let owned = |number| match binlog.own(own, number, 1)? {
            Owning::Owned(gtid) => Ok(gtid),
            _ => panic!("{number} is free"),
        };
        run(3, GtidChoice::Automatic)?;
        let (five, six, nine) = (owned(5)?, owned(6)?, owned(9)?);
        assert!(matches!(binlog.own(own, 6, 2)?, Owning::Busy));
        run(4, GtidChoice::Automatic)?;
        run(7, GtidChoice::Automatic)?;
        binlog.rotate()?;
        run(5, GtidChoice::Assigned(own, 5))?;
        drop(five);
        assert!(matches!(binlog.own(own, 5, 2)?, Owning::Executed));
        drop(six);
        run(6, GtidChoice::Automatic)?;
        run(8, GtidChoice::Automatic)?;
        run(10, GtidChoice::Automatic)?;
        binlog.catch_up()?;
        drop(nine);
        run(9, GtidChoice::Automatic)
    };
    let numbers = [1, 2, 3, 4, 7, 5, 6, 8, 10, 9];
    let steps = {
        let disk = disk(72);
        let db = open_on(&disk, options()).unwrap();
        let before = disk.changes();
        work(&db).unwrap();
        assert_eq!(gtid_numbers(&db), numbers);
        disk.changes() - before
    };
    for step in 1..=steps {
        let disk = disk(72);
        let db = open_on(&disk, options()).unwrap();
        disk.power_off_at(disk.changes() + step);
        let _ = work(&db);
        let published = db.binlog().unwrap().files();
        let read = published.iter().filter_map(|(name, size)| Some((name.clone(), transactions_of(&db, name, *size)?))).collect::<Vec<_>>();
        let after = disk.crash();
        drop(db);
        let db = open_on(&after, options()).unwrap_or_else(|e| panic!("step {step} of {steps}: {e}"));
        for (name, bytes) in &read {
            let size = db.binlog().unwrap().files().iter().find(|(n, _)| n == name).map(|(_, size)| *size);
            let now = transactions_of(&db, name, size.unwrap_or_else(|| panic!("step {step}: {name} is gone"))).unwrap();
            assert!(now.starts_with(bytes), "step {step} of {steps}: {name} says something else than before the crash");
        }
        let found = gtid_numbers(&db);
        assert!(numbers.starts_with(&found), "step {step} of {steps}: {found:?}");
        // Nobody owns a number now: the gaps are filled, each once, and so they are after another crash.
        if db.catalog().table("s", "t").is_err() {
            continue;
        }
        for n in 0..10 {
            block_on(async {
                let table = db.catalog().table("s", "t").unwrap();
                let mut txn = db.begin(Isolation::RepeatableRead);
                txn.open(&table).await.unwrap();
                txn.log_statement(source("insert"));
                statement(&table, &mut txn, "insert", 100 + n..101 + n).await.unwrap();
                txn.commit().await.unwrap();
            });
        }
        let gone_on = gtid_numbers(&db);
        let mut sorted = gone_on.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=found.len() as u64 + 10).collect::<Vec<_>>(), "step {step} of {steps}");
        let again = after.crash();
        drop(db);
        assert_eq!(gtid_numbers(&open_on(&again, options()).unwrap()), gone_on, "step {step} of {steps}");
    }
}
