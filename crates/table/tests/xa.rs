//! Transactions in two phases: what is prepared outlives crashes, the binary log tells exactly what there is, and nobody changes a prepared
//! transaction's tables.

mod common;
#[path = "common/replay.rs"]
mod replay;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use common::*;
use highkey_storage::{SimClock, SimConfig, SimDisk};
use highkey_table::*;
use highkey_types::MySqlError;
use replay::replay;

fn open_on(disk: &SimDisk) -> Arc<Database> {
    let binlog = BinlogOptions { enabled: true, max_size: 2500, ..BinlogOptions::default() };
    Database::open_on(Arc::new(disk.clone()), still_options(), Arc::new(SimClock::new()), binlog).unwrap()
}

fn source() -> EventSource {
    EventSource { server_id: 1, thread_id: 7, timestamp: 1_700_000_000, schema: "s".into(), ..EventSource::default() }
}

fn xid(name: &str) -> Xid {
    Xid { format: 1, gtrid: name.into(), bqual: Vec::new() }
}

fn set_up(db: &Arc<Database>) -> Result<(), MySqlError> {
    create_schema(db, "s")?;
    let table = try_create(db, "t", vec![int("id").not_null(), int("v").not_null()], vec![IndexSpec::primary(&[0]), IndexSpec::unique("u", &[1])])?;
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.open(&table).await?;
        txn.log_statement(source());
        table.insert(&mut txn, &(0..20).map(|id| vec![i(id), i(id)]).collect::<Vec<_>>(), OnDuplicate::Error).await?;
        txn.commit().await
    })
}

/// The rows from `first` on: one changes, one goes, one comes.
async fn work(db: &Arc<Database>, txn: &mut Transaction, first: i64) -> Result<(), MySqlError> {
    let table = db.catalog().table("s", "t")?;
    txn.open_to_write(&table).await?;
    txn.log_statement(source());
    let row = table.lock_get(txn, 0, &[i(first)], LockMode::Exclusive, LockWaitPolicy::Wait).await?.unwrap();
    table.update(txn, &row, &[i(first), i(first + 1000)]).await?;
    let row = table.lock_get(txn, 0, &[i(first + 1)], LockMode::Exclusive, LockWaitPolicy::Wait).await?.unwrap();
    table.delete(txn, &row).await?;
    table.insert(txn, &[vec![i(first + 100), i(first + 100)]], OnDuplicate::Error).await.map(drop)
}

#[derive(Clone, Copy)]
enum Step {
    Prepare(&'static str, i64),
    Commit(&'static str),
    RollBack(&'static str),
    OnePhase(&'static str, i64),
    Plain(i64),
}

const STEPS: &[Step] = &[
    Step::Prepare("a", 0),
    Step::Plain(2),
    Step::Prepare("b", 4),
    Step::Commit("a"),
    Step::OnePhase("c", 6),
    Step::RollBack("b"),
    Step::Plain(4),
    Step::Prepare("d", 8),
];

fn step(db: &Arc<Database>, step: Step) -> Result<(), MySqlError> {
    block_on(async {
        let begin = || db.begin(Isolation::RepeatableRead);
        match step {
            Step::Prepare(name, first) => {
                let mut branch = db.xa_start(xid(name)).unwrap();
                let mut txn = begin();
                txn.set_xid(branch.xid().clone());
                work(db, &mut txn, first).await?;
                // The session goes away.
                branch.prepare(txn, || {}).await
            }
            Step::Commit(name) => db.xa_take(&xid(name)).unwrap().commit(Some(&source()), None).await,
            Step::RollBack(name) => db.xa_take(&xid(name)).unwrap().rollback(Some(&source())).await,
            Step::OnePhase(name, first) => {
                let branch = db.xa_start(xid(name)).unwrap();
                let mut txn = begin();
                txn.set_xid(branch.xid().clone());
                work(db, &mut txn, first).await?;
                txn.commit().await
            }
            Step::Plain(first) => {
                let mut txn = begin();
                work(db, &mut txn, first).await?;
                txn.commit().await
            }
        }
    })
}

fn stored(db: &Arc<Database>) -> BTreeMap<i64, i64> {
    let table = db.catalog().table("s", "t").unwrap();
    all(db, &table).into_iter().map(|row| (row[0].as_i64().unwrap(), row[1].as_i64().unwrap())).collect()
}

fn prepared(db: &Arc<Database>) -> Vec<String> {
    db.xa_prepared().iter().map(|xid| xid.to_string()).collect()
}

/// Power off at every write: what the engine has prepared is what the binary log says, and so are the rows; and all of it can be ended.
#[test]
fn after_a_crash_at_any_write_the_binary_log_says_what_is_prepared() {
    let steps = {
        let disk = disk(61);
        let db = open_on(&disk);
        set_up(&db).unwrap();
        let before = disk.changes();
        STEPS.iter().for_each(|s| step(&db, *s).unwrap());
        assert_eq!((replay(&db).rows, prepared(&db)), (stored(&db), vec![xid("d").to_string()]));
        disk.changes() - before
    };
    assert!(steps > 20, "{steps}");
    for at in 1..=steps {
        let disk = disk(61);
        let db = open_on(&disk);
        set_up(&db).unwrap();
        disk.power_off_at(disk.changes() + at);
        let acknowledged = STEPS.iter().take_while(|s| step(&db, **s).is_ok() && db.binlog().unwrap().step().is_ok()).count();
        let after = disk.crash();
        drop(db);
        let db = open_on(&after);
        let replayed = replay(&db);
        assert_eq!(replayed.rows, stored(&db), "write {at} of {steps}");
        assert_eq!(replayed.prepared.keys().cloned().collect::<Vec<_>>(), prepared(&db), "write {at} of {steps}");
        assert!(replayed.transactions as usize >= acknowledged, "write {at}: {} of {acknowledged} acknowledged", replayed.transactions);
        for (n, xid) in db.xa_prepared().into_iter().enumerate() {
            let mut branch = db.xa_take(&xid).unwrap();
            assert!(db.xa_take(&xid).is_none() && db.xa_start((*xid).clone()).is_none());
            block_on(async {
                match (n as u64 + at) % 2 {
                    0 => branch.commit(Some(&source()), None).await,
                    _ => branch.rollback(Some(&source())).await,
                }
            })
            .unwrap();
        }
        let replayed = replay(&db);
        assert!(replayed.rows == stored(&db) && replayed.prepared.is_empty() && prepared(&db).is_empty(), "write {at} of {steps}");
        check_all(&db);
    }
}

fn check_all(db: &Arc<Database>) {
    let table = db.catalog().table("s", "t").unwrap();
    let found = block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.open(&table).await.unwrap();
        table.check(&mut txn, false)
    });
    assert!(found.unwrap().errors.is_empty());
}

/// Before and after a restart, and the count of rows is right at the end.
#[test]
fn tables_of_what_is_prepared_stay_as_they_are() {
    for restart in [false, true] {
        let disk = disk(62);
        let mut db = open_on(&disk);
        set_up(&db).unwrap();
        step(&db, Step::Prepare("a", 0)).unwrap();
        if restart {
            db.shutdown().unwrap();
            drop(db);
            db = open_on(&disk.crash());
        }
        let impatient = DdlContext { lock_wait_timeout: Duration::from_millis(5), ..DdlContext::default() };
        let dropped = block_on(db.drop_tables(&impatient, &[("s".into(), "t".into())], true)).unwrap_err();
        assert_eq!(dropped.code, 1205, "after a restart: {restart}");
        // The row that it changed is its own, and readers see what was.
        let table = db.catalog().table("s", "t").unwrap();
        assert_eq!(stored(&db), (0..20).map(|id| (id, id)).collect());
        let refused = block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            txn.open_to_write(&table).await.unwrap();
            table.lock_get(&mut txn, 0, &[i(0)], LockMode::Exclusive, LockWaitPolicy::NoWait).await.map(drop)
        });
        assert_eq!(refused.unwrap_err().code, 3572);
        assert_eq!(table.row_count_estimate().unwrap(), 20);
        let mut branch = db.xa_take(&xid("a")).unwrap();
        block_on(branch.commit(None, None)).unwrap();
        drop(branch);
        assert_eq!(table.row_count_estimate().unwrap(), 20, "one came and one went");
        block_on(db.drop_tables(&impatient, &[("s".into(), "t".into())], true)).unwrap();
    }
}

#[test]
fn a_name_is_used_once_and_what_was_only_read_is_let_go() {
    let db = open_on(&disk(63));
    set_up(&db).unwrap();
    let table = db.catalog().table("s", "t").unwrap();
    let named = |format, bqual: &str| Xid { format, bqual: bqual.into(), ..xid("a") };
    let mut branch = db.xa_start(named(1, "")).unwrap();
    assert!(db.xa_start(named(2, "")).is_none(), "the format does not tell them apart");
    drop(db.xa_start(named(1, "other")).unwrap());
    assert!(db.xa_take(&named(1, "")).is_none(), "it is somebody's");
    let locked = |db: &Arc<Database>| {
        block_on(async {
            let mut txn = db.begin(Isolation::RepeatableRead);
            txn.open_to_write(&table).await.unwrap();
            table.lock_get(&mut txn, 0, &[i(0)], LockMode::Exclusive, LockWaitPolicy::NoWait).await.is_err()
        })
    };
    block_on(async {
        let mut txn = db.begin(Isolation::RepeatableRead);
        txn.open(&table).await.unwrap();
        table.lock_get(&mut txn, 0, &[i(0)], LockMode::Shared, LockWaitPolicy::Wait).await.unwrap();
        branch.prepare(txn, || {}).await.unwrap();
    });
    assert!(locked(&db) && !branch.has_changes());
    drop(branch);
    assert_eq!((locked(&db), prepared(&db)), (false, vec![xid("a").to_string()]));
    assert!(db.xa_take(&named(2, "")).is_none());
    let mut branch = db.xa_take(&named(1, "")).unwrap();
    block_on(branch.commit(Some(&source()), None)).unwrap();
    drop(branch);
    assert!(prepared(&db).is_empty() && db.xa_start(named(3, "")).is_some());
}

/// An error behind the decision to roll back: it cannot be committed any more, it is prepared for nobody, and the next try goes on. The same before the
/// decision: everything is as it was, the count of rows too.
#[test]
fn a_rollback_that_meets_an_error_is_tried_again() {
    let mut decided = 0;
    for n in 1.. {
        let disk = disk(64);
        let mut db = open_on(&disk);
        set_up(&db).unwrap();
        step(&db, Step::Prepare("a", 0)).unwrap();
        db.shutdown().unwrap();
        drop(db);
        db = open_on(&disk);
        let mut branch = db.xa_take(&xid("a")).unwrap();
        disk.fail_read_in(Some(n));
        let first = block_on(branch.rollback(Some(&source())));
        let met = !disk.fail_read_in(None);
        if first.is_err() {
            assert!(branch.is_prepared());
            // Its session goes; whoever comes next finds it.
            let is_rolled_back = branch.is_rolled_back();
            drop(branch);
            assert_eq!(prepared(&db), [xid("a").to_string()]);
            let mut branch = db.xa_take(&xid("a")).unwrap();
            if is_rolled_back {
                decided += 1;
                assert_eq!(block_on(branch.commit(Some(&source()), None)).unwrap_err().code, 1402);
                block_on(branch.rollback(Some(&source()))).unwrap();
            } else {
                block_on(branch.commit(Some(&source()), None)).unwrap();
            }
        } else {
            drop(branch);
        }
        let replayed = replay(&db);
        assert!(replayed.rows == stored(&db) && replayed.prepared.is_empty() && prepared(&db).is_empty(), "read {n}");
        let table = db.catalog().table("s", "t").unwrap();
        assert_eq!(table.row_count_estimate().unwrap(), 20);
        check_all(&db);
        if !met {
            break;
        }
    }
    assert!(decided > 0);
}

/// A replica's commit that meets an error leaves nothing of its record, and can be tried again.
#[test]
fn a_commit_that_meets_an_error_leaves_nothing_of_its_record() {
    for again in [true, false] {
        let disk = SimDisk::new(SimConfig { seed: 65, capacity: 48 << 20, ..SimConfig::default() });
        let db = open_on(&disk);
        set_up(&db).unwrap();
        step(&db, Step::Prepare("a", 0)).unwrap();
        let mut branch = db.xa_take(&xid("a")).unwrap();
        // More than the disk takes.
        let long = db.replica_record(b"position", vec![7; 64 << 20]);
        let refused = block_on(branch.commit(Some(&source()), Some(&long))).unwrap_err();
        assert_eq!((refused.code, branch.is_prepared(), branch.is_rolled_back()), (1114, true, false));
        assert!(db.replica_records().unwrap().is_empty());
        if again {
            let record = db.replica_record(b"position", b"5".to_vec());
            block_on(branch.commit(Some(&source()), Some(&record))).unwrap();
            assert_eq!(db.replica_records().unwrap(), [(b"position".to_vec(), b"5".to_vec())]);
        } else {
            block_on(branch.rollback(Some(&source()))).unwrap();
            assert!(db.replica_records().unwrap().is_empty());
            assert_eq!(stored(&db), (0..20).map(|id| (id, id)).collect());
        }
        drop(branch);
        assert_eq!(replay(&db).rows, stored(&db));
    }
}

/// A replica that has prepared a transaction and could not note it is told so when it comes again, and nobody else is.
#[test]
fn what_a_replica_could_not_note_is_known_by_its_name() {
    let disk = disk(66);
    let db = open_on(&disk);
    set_up(&db).unwrap();
    step(&db, Step::Prepare("a", 0)).unwrap();
    assert!(!db.xa_may_be_unnoted(&xid("a")));
    db.xa_is_unnoted(&xid("a"));
    assert!(db.xa_may_be_unnoted(&xid("a")) && db.xa_start(xid("a")).is_none());
    let mut branch = db.xa_take(&xid("a")).unwrap();
    block_on(branch.commit(Some(&source()), None)).unwrap();
    drop(branch);
    assert!(!db.xa_may_be_unnoted(&xid("a")) && db.xa_start(xid("a")).is_some());
}
