//! Commits that wait for replicas: who sees them when, and what ends the wait.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use common::*;
use highkey_storage::{Interrupt, SimDisk, SystemClock};
use highkey_table::*;
use highkey_types::MySqlError;

fn open_logging(disk: &SimDisk, options: Options) -> Arc<Database> {
    let binlog = BinlogOptions { enabled: true, ..BinlogOptions::default() };
    Database::open_on(Arc::new(disk.clone()), options, Arc::new(SystemClock::new()), binlog).unwrap()
}

fn source() -> EventSource {
    EventSource { server_id: 1, thread_id: 7, timestamp: 1_700_000_000, schema: "s".into(), ..EventSource::default() }
}

fn logged(text: &str) -> DdlContext {
    DdlContext { log: Some(Arc::new(LoggedStatement { source: source(), text: text.into(), ..LoggedStatement::default() })), ..DdlContext::default() }
}

fn with_table(disk: &SimDisk) -> Arc<Database> {
    with_table_in(open_logging(disk, options()))
}

fn with_table_in(db: Arc<Database>) -> Arc<Database> {
    let collation = highkey_types::Collation::by_name("utf8mb4_0900_ai_ci").unwrap();
    block_on(db.create_schema(&logged("create database s"), SchemaDef { name: "s".into(), collation })).unwrap();
    create_table(&db, "t").unwrap();
    db
}

fn create_table(db: &Arc<Database>, name: &str) -> Result<(), MySqlError> {
    let spec = TableSpec::new("s", name, vec![int("id").not_null(), int("v")], vec![IndexSpec::primary(&[0])]);
    block_on(db.create_table(&logged("create table"), spec)).map(drop)
}

fn settings(after_sync: bool, timeout_ms: u64) -> SemiSyncSettings {
    SemiSyncSettings { enabled: true, timeout: Duration::from_millis(timeout_ms), after_sync, ..SemiSyncSettings::default() }
}

/// A commit of one row, on a thread of its own.
struct Commit {
    thread: JoinHandle<Result<(), MySqlError>>,
    done: Arc<AtomicBool>,
    interrupt: Arc<Interrupt>,
}

impl Commit {
    fn begin(db: &Arc<Database>, id: i64) -> Commit {
        Commit::of(db, move |table, txn| {
            txn.log_statement(source());
            block_on(table.insert(txn, &[vec![i(id), i(0)]], OnDuplicate::Error)).map(drop)
        })
    }

    /// Not told in the binary log.
    fn untold(db: &Arc<Database>, id: i64) -> Commit {
        Commit::of(db, move |table, txn| block_on(table.insert(txn, &[vec![i(id), i(0)]], OnDuplicate::Error)).map(drop))
    }

    fn of(db: &Arc<Database>, change: impl FnOnce(&Arc<Table>, &mut Transaction) -> Result<(), MySqlError> + Send + 'static) -> Commit {
        let (db, done, interrupt) = (db.clone(), Arc::new(AtomicBool::new(false)), Arc::new(Interrupt::new()));
        let (told, ends) = (done.clone(), interrupt.clone());
        let thread = std::thread::spawn(move || {
            let table = db.catalog().table("s", "t")?;
            let mut txn = db.begin(Isolation::RepeatableRead);
            txn.set_interrupt(ends);
            assert!(block_on(txn.open_to_write(&table))?);
            change(&table, &mut txn)?;
            let committed = block_on(txn.commit());
            told.store(true, Ordering::SeqCst);
            committed
        });
        Commit { thread, done, interrupt }
    }

    fn is_done(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    fn end(self) {
        self.thread.join().unwrap().unwrap();
    }
}

fn rows(db: &Arc<Database>) -> usize {
    all(db, &db.catalog().table("s", "t").unwrap()).len()
}

fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is() {
        assert!(Instant::now() < until, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The place that a replica which has read everything acknowledges.
fn everything(db: &Arc<Database>) -> (u64, u64) {
    let binlog = db.binlog().unwrap();
    binlog.catch_up().unwrap();
    let at = binlog.position();
    (binlog_file_number(&at.file).unwrap(), at.position)
}

fn acknowledge(db: &Arc<Database>, replica: u64) {
    let (file, end) = everything(db);
    db.binlog().unwrap().semi_sync().acknowledge(replica, file, end);
}

fn status(db: &Arc<Database>) -> SemiSyncStatus {
    db.binlog().unwrap().semi_sync().status()
}

/// Turns it on, with replica 7.
fn with_replica(db: &Arc<Database>, settings: SemiSyncSettings) -> Arc<SemiSync> {
    let semi_sync = db.binlog().unwrap().semi_sync().clone();
    semi_sync.set(settings);
    semi_sync.add_replica(7);
    semi_sync
}

/// Until so many commits are durable and wait.
fn wait_for_sessions(db: &Arc<Database>, count: u64) {
    eventually("commits wait", || status(db).wait_sessions == count);
    everything(db);
    std::thread::sleep(Duration::from_millis(30));
}

#[test]
fn nobody_sees_a_commit_before_it_is_acknowledged() {
    let db = with_table(&disk(1));
    let semi_sync = with_replica(&db, settings(true, 60_000));
    let first = Commit::begin(&db, 1);
    wait_for_sessions(&db, 1);
    let second = Commit::begin(&db, 2);
    wait_for_sessions(&db, 2);
    assert!(!first.is_done() && !second.is_done());
    assert_eq!(rows(&db), 0);
    // Nor who would lock the row: it is locked.
    let table = db.catalog().table("s", "t").unwrap();
    let mut other = db.begin(Isolation::ReadCommitted);
    assert!(block_on(other.open(&table)).unwrap());
    assert_eq!(block_on(table.lock_get(&mut other, 0, &[i(1)], LockMode::Exclusive, LockWaitPolicy::NoWait)).unwrap_err().code, 3572);
    drop(other);
    // Both are in the files, for replicas to read.
    let (file, end) = everything(&db);
    assert!(semi_sync.wants_acknowledgement(file, end));
    assert!(!semi_sync.wants_acknowledgement(file, end - 1));
    acknowledge(&db, 7);
    first.end();
    second.end();
    assert_eq!(rows(&db), 2);
    let counted = status(&db);
    assert_eq!((counted.on, counted.yes_tx, counted.no_tx, counted.no_times, counted.wait_sessions, counted.tx_waits), (true, 2, 0, 0, 0, 2));
    assert!(counted.tx_wait_time > 0);
}

#[test]
fn the_first_is_acknowledged_and_the_second_is_not() {
    let db = with_table(&disk(1));
    let semi_sync = with_replica(&db, settings(true, 60_000));
    let first = Commit::begin(&db, 1);
    wait_for_sessions(&db, 1);
    let (file, end) = everything(&db);
    let second = Commit::begin(&db, 2);
    wait_for_sessions(&db, 2);
    // Somebody who does not take part says nothing that counts.
    semi_sync.acknowledge(8, file, end);
    assert_eq!(rows(&db), 0);
    semi_sync.acknowledge(7, file, end);
    first.end();
    assert_eq!((rows(&db), second.is_done()), (1, false));
    acknowledge(&db, 7);
    second.end();
    assert_eq!(rows(&db), 2);
}

#[test]
fn as_many_replicas_as_wanted_acknowledge() {
    let db = with_table(&disk(1));
    let semi_sync = db.binlog().unwrap().semi_sync().clone();
    semi_sync.set(SemiSyncSettings { replicas: 2, ..settings(true, 60_000) });
    for replica in 1..=3 {
        semi_sync.add_replica(replica);
    }
    let commit = Commit::begin(&db, 1);
    wait_for_sessions(&db, 1);
    acknowledge(&db, 1);
    acknowledge(&db, 1);
    assert_eq!(rows(&db), 0);
    acknowledge(&db, 3);
    commit.end();
    assert_eq!(rows(&db), 1);
}

#[test]
fn a_timeout_turns_it_off_and_a_replica_that_has_caught_up_on_again() {
    for after_sync in [true, false] {
        let db = with_table(&disk(1));
        let semi_sync = with_replica(&db, settings(after_sync, 150));
        let began = Instant::now();
        let commit = Commit::begin(&db, 1);
        wait_for_sessions(&db, 1);
        assert_eq!(rows(&db), usize::from(!after_sync));
        commit.end();
        assert!(began.elapsed() >= Duration::from_millis(150));
        let counted = status(&db);
        assert_eq!((counted.on, counted.no_tx, counted.no_times, rows(&db)), (false, 1, 1, 1));
        // Asynchronous from here on.
        Commit::begin(&db, 2).end();
        assert_eq!((status(&db).no_tx, status(&db).no_times), (2, 1));
        // The replica is behind, then it has the last commit.
        let (file, end) = everything(&db);
        assert!(semi_sync.wants_acknowledgement(file, end));
        semi_sync.acknowledge(7, file, end - 1);
        assert!(!status(&db).on);
        semi_sync.acknowledge(7, file, end);
        assert!(status(&db).on);
        semi_sync.set(settings(after_sync, 60_000));
        let commit = Commit::begin(&db, 3);
        wait_for_sessions(&db, 1);
        assert_eq!(rows(&db), 2 + usize::from(!after_sync));
        acknowledge(&db, 7);
        commit.end();
        assert_eq!((status(&db).yes_tx, rows(&db)), (1, 3));
    }
}

#[test]
fn what_ends_the_wait() {
    let db = with_table(&disk(1));
    let semi_sync = db.binlog().unwrap().semi_sync().clone();
    let all_settings = settings(true, 60_000);
    semi_sync.set(all_settings);
    semi_sync.add_replica(7);
    // The last replica goes, where that is to end it.
    semi_sync.set(SemiSyncSettings { wait_no_replica: false, ..all_settings });
    let commit = Commit::begin(&db, 1);
    wait_for_sessions(&db, 1);
    semi_sync.remove_replica(7);
    commit.end();
    assert!(!status(&db).on && rows(&db) == 1);
    // Disabled.
    semi_sync.set(SemiSyncSettings { enabled: false, ..all_settings });
    semi_sync.set(all_settings);
    let commit = Commit::begin(&db, 2);
    wait_for_sessions(&db, 1);
    semi_sync.set(SemiSyncSettings { enabled: false, ..all_settings });
    commit.end();
    assert_eq!(rows(&db), 2);
    // All files are removed.
    semi_sync.set(all_settings);
    let commit = Commit::begin(&db, 3);
    wait_for_sessions(&db, 1);
    db.binlog().unwrap().reset(1).unwrap();
    commit.end();
    assert_eq!(rows(&db), 3);
    // The server ends.
    let commit = Commit::begin(&db, 4);
    wait_for_sessions(&db, 1);
    semi_sync.stop();
    commit.end();
    Commit::begin(&db, 5).end();
    assert_eq!(rows(&db), 5);
    db.shutdown().unwrap();
}

#[test]
fn who_is_killed_goes_and_the_commit_stays_as_it_is() {
    let db = with_table(&disk(1));
    with_replica(&db, settings(true, 60_000));
    let commit = Commit::begin(&db, 1);
    wait_for_sessions(&db, 1);
    commit.interrupt.raise();
    commit.end();
    assert_eq!(rows(&db), 0, "nobody has acknowledged it");
    // The table is still the transaction's: who drops it would miss the row.
    let impatient = DdlContext { lock_wait_timeout: Duration::from_millis(50), ..logged("drop table t") };
    let name: [TableName; 1] = [("s".into(), "t".into())];
    assert_eq!(block_on(db.drop_tables(&impatient, &name, false)).unwrap_err().code, 1205);
    acknowledge(&db, 7);
    assert_eq!(rows(&db), 1);
    let open = std::thread::spawn({
        let db = db.clone();
        move || block_on(db.drop_tables(&logged("drop table t"), &name, false)).map(drop)
    });
    wait_for_sessions(&db, 1);
    acknowledge(&db, 7);
    open.join().unwrap().unwrap();
}

#[test]
fn definitions_wait_too_and_others_go_on_behind_them() {
    let db = with_table(&disk(1));
    with_replica(&db, settings(true, 60_000));
    let definition = std::thread::spawn({
        let db = db.clone();
        move || create_table(&db, "u")
    });
    wait_for_sessions(&db, 1);
    assert!(db.catalog().table("s", "u").is_err());
    // What is not told waits for its turn, but is not acknowledged by itself.
    let untold = Commit::untold(&db, 1);
    eventually("it is in the log", || db.engine().stats().open_transactions >= 2);
    std::thread::sleep(Duration::from_millis(50));
    assert!(!untold.is_done() && rows(&db) == 0);
    acknowledge(&db, 7);
    definition.join().unwrap().unwrap();
    untold.end();
    assert!(db.catalog().table("s", "u").is_ok() && rows(&db) == 1);
    Commit::untold(&db, 2).end();
    assert_eq!(rows(&db), 2);
}

/// What the writer of the files and the counters of tables note goes past what waits: otherwise nothing that is waited for could come.
#[test]
fn files_and_counters_go_on_while_commits_wait() {
    let db = with_table(&disk(1));
    with_replica(&db, settings(true, 60_000));
    let commit = Commit::begin(&db, 1);
    wait_for_sessions(&db, 1);
    // Each saves the state, three times over.
    for _ in 0..3 {
        db.binlog().unwrap().rotate().unwrap();
    }
    let table = db.catalog().table("s", "t").unwrap();
    let column = int("n").ty;
    for _ in 0..3 {
        table.auto_increment().reserve(&column, 100_000, 1, 1).unwrap();
    }
    assert!(!commit.is_done());
    acknowledge(&db, 7);
    commit.end();
    assert_eq!(rows(&db), 1);
}

/// A crash leaves what was durable, acknowledged or not.
#[test]
fn after_a_crash_what_waited_is_there() {
    let disk = disk(1);
    let db = with_table(&disk);
    with_replica(&db, settings(true, 60_000));
    let commit = Commit::begin(&db, 1);
    wait_for_sessions(&db, 1);
    assert_eq!(rows(&db), 0);
    assert_eq!(rows(&open_logging(&disk.crash(), options())), 1);
    acknowledge(&db, 7);
    commit.end();
}

/// Replicas read what is durable: a commit that waits for them is, whatever the flush level.
#[test]
fn what_waits_for_replicas_is_durable() {
    for (level, after_sync) in [(0, true), (2, true), (0, false), (2, false)] {
        // Nobody syncs the log but those who wait.
        let db = with_table_in(open_logging(&disk(9), still_options()));
        with_replica(&db, settings(after_sync, 60_000));
        db.engine().set_flush_log_at_commit(level);
        let before = db.engine().log_position().0;
        let commit = Commit::begin(&db, 1);
        eventually("it is durable", || db.engine().log_position().1 > before);
        eventually("it waits", || status(&db).wait_sessions == 1);
        assert!(!commit.is_done());
        acknowledge(&db, 7);
        commit.end();
        assert_eq!(rows(&db), 1, "level {level}");
    }
}

/// Something that logs one thing, and ends with its acknowledgement.
fn until_acknowledged(db: &Arc<Database>, work: impl FnOnce(&Arc<Database>) -> Result<(), MySqlError> + Send + 'static) {
    let before = db.engine().log_position().0;
    let thread = std::thread::spawn({
        let db = db.clone();
        move || work(&db)
    });
    eventually("it is durable", || db.engine().log_position().1 > before);
    eventually("it waits", || status(db).wait_sessions == 1);
    assert!(!thread.is_finished());
    acknowledge(db, 7);
    thread.join().unwrap().unwrap();
}

/// So is what is prepared, and what is rolled back then.
#[test]
fn both_phases_are_durable_before_they_wait_for_replicas() {
    let xid = || Xid { format: 1, gtrid: b"a".to_vec(), bqual: Vec::new() };
    for level in [0, 2] {
        let db = with_table_in(open_logging(&disk(9), still_options()));
        with_replica(&db, settings(true, 60_000));
        db.engine().set_flush_log_at_commit(level);
        until_acknowledged(&db, move |db| {
            let table = db.catalog().table("s", "t")?;
            let mut branch = db.xa_start(xid()).unwrap();
            let mut txn = db.begin(Isolation::RepeatableRead);
            txn.set_xid(branch.xid().clone());
            assert!(block_on(txn.open_to_write(&table))?);
            txn.log_statement(source());
            block_on(table.insert(&mut txn, &[vec![i(1), i(0)]], OnDuplicate::Error))?;
            block_on(branch.prepare(txn, || {}))
        });
        assert_eq!(db.xa_prepared().len(), 1, "level {level}");
        until_acknowledged(&db, move |db| block_on(db.xa_take(&xid()).unwrap().rollback(Some(&source()))));
        assert_eq!((db.xa_prepared().len(), rows(&db)), (0, 0), "level {level}");
    }
}
