//! LOCK TABLES and the global read lock: who waits for whom.

mod common;

use std::cell::Cell;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use common::*;
use highkey_table::*;
use highkey_types::MySqlError;

const LONG: Duration = Duration::from_secs(20);

fn db() -> Arc<Database> {
    let db = database();
    for name in ["t", "u"] {
        create(&db, name, vec![int("id").not_null()], vec![IndexSpec::primary(&[0])]);
    }
    db
}

/// One session.
struct Session {
    db: Arc<Database>,
    locks: Arc<SessionLocks>,
    never: Interrupt,
}

impl Session {
    fn new(db: &Arc<Database>) -> Session {
        Session { db: db.clone(), locks: db.session_locks(), never: Interrupt::default() }
    }

    fn txn(&self) -> Transaction {
        let mut txn = self.db.begin_in(Isolation::RepeatableRead, &self.locks);
        txn.set_metadata_lock_timeout(Duration::ZERO);
        txn
    }

    /// A transaction that has the table open, or the error's number.
    fn opened(&self, name: &str, write: bool) -> Result<Transaction, u16> {
        let (mut txn, table) = (self.txn(), table(&self.db, name));
        let opened = if write { block_on(txn.open_to_write(&table)) } else { block_on(txn.open(&table)) };
        opened.map(|current| assert!(current)).map(|()| txn).map_err(|e| e.code)
    }

    fn lock(&self, tables: &[(&str, bool)], timeout: Duration) -> Result<(), u16> {
        let tables: Vec<_> = tables.iter().map(|(name, write)| (("s".into(), (*name).into()), *write)).collect();
        block_on(self.locks.lock_tables(&tables, timeout, &self.never)).map_err(|e| e.code)
    }

    fn cx(&self) -> DdlContext {
        DdlContext { lock_wait_timeout: Duration::ZERO, session: Some(self.locks.clone()), ..DdlContext::default() }
    }

    /// Gives the table another name.
    fn rename(&self, from: &str, to: &str) -> Result<(), u16> {
        let mut plan = AlterPlan::of(&table(&self.db, from));
        plan.spec.name = to.into();
        block_on(self.db.alter_table(&self.cx(), plan, &mut Ok)).map(drop).map_err(|e| e.code)
    }

    fn change(&self, told: impl FnOnce()) -> impl Future<Output = Result<Passage, MySqlError>> {
        self.locks.begin_change(LONG, &self.never, told)
    }

    fn commit(&self) -> impl Future<Output = Result<Passage, MySqlError>> {
        self.locks.begin_commit(LONG, &self.never, || ())
    }

    fn read_lock(&self) -> impl Future<Output = Result<(), MySqlError>> {
        self.locks.take_read_lock(LONG, &self.never)
    }
}

fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    future.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn locked_tables_wait_for_transactions_and_others_for_them() {
    let db = db();
    let [a, b] = [(); 2].map(|()| Session::new(&db));
    let reader = a.opened("t", false).unwrap();
    assert_eq!(b.lock(&[("u", false), ("t", true)], Duration::from_millis(10)), Err(1205), "somebody reads it");
    assert!(!b.locks.has_tables());
    b.lock(&[("u", true), ("t", false)], Duration::ZERO).unwrap();
    assert_eq!((a.opened("t", true).err(), a.opened("u", false).err()), (Some(1205), Some(1205)));
    // The reader of before may not become a writer.
    let mut reader = reader;
    assert_eq!(block_on(reader.open_to_write(&table(&db, "t"))).unwrap_err().code, 1205);
    drop(reader);
    b.locks.unlock_tables();
    let writer = a.opened("t", true).unwrap();
    assert_eq!(b.lock(&[("t", false)], Duration::ZERO), Err(1205), "somebody writes to it");
    drop(writer);
    b.lock(&[("t", false)], Duration::ZERO).unwrap();
    a.lock(&[("t", false)], Duration::ZERO).unwrap();
    drop(b);
    a.locks.unlock_tables();
    assert!(Session::new(&db).rename("t", "other").is_ok(), "a session that ends leaves nothing");
}

#[test]
fn the_session_itself_goes_through_its_locks() {
    let db = db();
    let [a, b] = [(); 2].map(|()| Session::new(&db));
    a.lock(&[("t", true), ("u", false)], Duration::ZERO).unwrap();
    let mut txn = a.opened("t", true).unwrap();
    block_on(table(&db, "t").insert(&mut txn, &[vec![i(1)]], OnDuplicate::Error)).unwrap();
    block_on(txn.commit()).unwrap();
    drop(a.opened("u", false).unwrap());
    assert_eq!(a.opened("u", true).err(), Some(1099));
    assert_eq!((a.rename("u", "v"), b.rename("t", "v"), b.rename("u", "v")), (Err(1099), Err(1205), Err(1205)));
    assert_eq!(block_on(db.drop_schema(&b.cx(), "s")).unwrap_err().code, 1205);
    let codes = [("t", true), ("u", false), ("u", true), ("x", false)].map(|(name, write)| a.locks.check_table("s", name, write).err().map(|e| e.code));
    assert_eq!(codes, [None, None, Some(1099), Some(1100)]);
    assert_eq!(a.locks.check_all_for_write().unwrap_err().code, 1099);
    // DDL, after which the name is somebody's only if it is locked.
    a.rename("t", "v").unwrap();
    block_on(a.locks.rename_table(&("s".into(), "t".into()), ("s".into(), "v".into()), Duration::ZERO, &a.never)).unwrap();
    assert_eq!((b.opened("v", false).err(), a.opened("v", true).is_ok()), (Some(1205), true));
    create(&db, "t", vec![int("id")], vec![]);
    block_on(db.drop_tables(&a.cx(), &[("s".into(), "v".into())], false)).unwrap();
    a.locks.forget_table("s", "v");
    create(&db, "v", vec![int("id")], vec![]);
    a.locks.forget_table("s", "u");
    assert!(!a.locks.has_tables(), "with the last table LOCK TABLES ends");
    assert!(b.opened("u", true).is_ok() && block_on(b.read_lock()).is_ok());
}

/// A plan that was kept may have a table as it was before an ALTER TABLE.
#[test]
fn a_table_found_to_have_changed_leaves_other_locks_alone() {
    let db = db();
    let [a, b] = [(); 2].map(|()| Session::new(&db));
    let truncate = |name: &str| block_on(db.truncate_table(&b.cx(), "s", name)).map_err(|e| e.code);
    let old = table(&db, "t");
    truncate("t").unwrap();
    let mut txn = a.opened("t", false).unwrap();
    assert!(block_on(txn.open_to_write(&table(&db, "u"))).unwrap());
    assert!(!block_on(txn.open_to_write(&old)).unwrap());
    assert_eq!((truncate("u"), truncate("t")), (Err(1205), Err(1205)));
    b.lock(&[("t", false)], Duration::ZERO).expect("it is only read, as before");
    b.locks.unlock_tables();
    assert!(block_on(txn.open_to_write(&table(&db, "t"))).unwrap());
    drop(txn);
    let mut txn = a.opened("u", true).unwrap();
    assert!(!block_on(txn.open(&old)).unwrap() && !txn.try_open(&old));
    assert_eq!((truncate("u"), truncate("t")), (Err(1205), Ok(())));
    drop(txn);
    truncate("u").unwrap();
}

#[test]
fn the_global_read_lock_waits_for_changes_and_stops_them() {
    let db = db();
    let [a, b, c, d] = [(); 4].map(|()| Session::new(&db));
    let told = Cell::new(0);
    let changing = block_on(a.change(|| told.set(1))).unwrap();
    let mut locked = Box::pin(b.read_lock());
    assert!(poll(&mut locked).is_pending());
    let mut later = Box::pin(c.change(|| told.set(2)));
    assert!(poll(&mut later).is_pending(), "behind the read lock that waits");
    assert_eq!(told.get(), 2, "only who waits is told");
    // Commits go on until all changes have ended: one of those may wait for the rows of another one.
    let committing = block_on(d.commit()).unwrap();
    drop(changing);
    std::thread::sleep(Duration::from_millis(5));
    assert!(poll(&mut locked).is_pending(), "a commit is under way");
    let mut late = Box::pin(a.commit());
    assert!(poll(&mut late).is_pending());
    drop(committing);
    block_on(locked).unwrap();
    assert!(b.locks.has_read_lock());
    block_on(b.read_lock()).unwrap();
    assert_eq!(block_on(b.change(|| ())).err().map(|e| e.code), Some(1223));
    assert_eq!((b.lock(&[("t", true)], Duration::ZERO), b.lock(&[("t", false)], Duration::ZERO)), (Err(1223), Ok(())));
    b.locks.release_read_lock();
    drop((block_on(later).unwrap(), block_on(late).unwrap()));
    // Two beside each other: the gate opens with the last.
    block_on(c.read_lock()).unwrap();
    block_on(d.read_lock()).unwrap();
    let mut last = Box::pin(a.change(|| ()));
    drop(c);
    assert!(poll(&mut last).is_pending());
    drop(d);
    block_on(last).unwrap();
}

#[test]
fn waits_for_the_global_read_lock_end() {
    let db = db();
    let [a, b, c] = [(); 3].map(|()| Session::new(&db));
    let changing = block_on(a.change(|| ())).unwrap();
    let soon = Duration::from_millis(10);
    assert_eq!(block_on(b.locks.take_read_lock(soon, &b.never)).unwrap_err().code, 1205);
    let killed = Interrupt::default();
    killed.raise();
    assert_eq!(block_on(b.locks.take_read_lock(LONG, &killed)).unwrap_err().code, 1317);
    let mut dropped = Box::pin(b.read_lock());
    assert!(poll(&mut dropped).is_pending());
    drop(dropped);
    assert!(!b.locks.has_read_lock());
    drop(block_on(c.change(|| panic!("nobody has it"))).unwrap());
    drop(changing);
    block_on(b.read_lock()).unwrap();
    assert_eq!(block_on(c.locks.begin_change(soon, &c.never, || ())).err().map(|e| e.code), Some(1205));
    assert_eq!(block_on(c.locks.begin_commit(LONG, &killed, || ())).err().map(|e| e.code), Some(1317));
    assert_eq!(c.lock(&[("t", true)], soon), Err(1205), "LOCK TABLES ... WRITE is a change");
    b.locks.release_read_lock();
    // And the other way round, for as long as the tables are locked; what the session changes meanwhile waits for nothing.
    c.lock(&[("t", true)], Duration::ZERO).unwrap();
    let mut locked = Box::pin(b.read_lock());
    assert!(poll(&mut locked).is_pending());
    drop(block_on(c.change(|| panic!("it is inside"))).unwrap());
    c.locks.unlock_tables();
    block_on(locked).unwrap();
}

#[test]
fn a_circle_through_the_read_lock_and_a_table_has_a_victim() {
    let db = db();
    let [a, b] = [(); 2].map(|()| Session::new(&db));
    let open = a.opened("t", true).unwrap();
    block_on(b.read_lock()).unwrap();
    let mut next = Box::pin(a.change(|| ()));
    assert!(poll(&mut next).is_pending());
    assert_eq!(b.lock(&[("t", false)], LONG), Err(1213), "it would wait for a transaction that waits for it");
    drop(open);
    b.lock(&[("t", false)], Duration::ZERO).unwrap();
}

#[test]
fn a_circle_through_ddl_that_waits_has_a_victim() {
    let db = db();
    let [a, b, c] = [(); 3].map(|()| Session::new(&db));
    let mut open = a.opened("t", false).unwrap();
    let ddl = block_on(b.locks.begin_definition(LONG, &b.never, || panic!("nobody has it"))).unwrap();
    let cx = DdlContext { lock_wait_timeout: LONG, ..b.cx() };
    let dropped = [("s".into(), "t".into())];
    let mut changed = Box::pin(db.drop_tables(&cx, &dropped, false));
    let mut locked = Box::pin(c.read_lock());
    assert!(poll(&mut changed).is_pending() && poll(&mut locked).is_pending());
    // The table's next reader waits for the DDL, as does the read lock, and the DDL for the transaction.
    assert_eq!(block_on(a.change(|| ())).err().map(|e| e.code), Some(1213));
    assert!(block_on(open.open_to_write(&table(&db, "t"))).unwrap(), "what it has it keeps");
    drop(open);
    block_on(changed).unwrap();
    drop(ddl);
    block_on(locked).unwrap();
}

#[test]
fn changes_and_read_locks_exclude_each_other_under_load() {
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
    let db = db();
    let (changing, done, stop) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                let session = Session::new(&db);
                while !stop.load(SeqCst) {
                    let passage = block_on(session.change(|| ())).unwrap();
                    changing.fetch_add(1, SeqCst);
                    std::hint::spin_loop();
                    changing.fetch_sub(1, SeqCst);
                    drop(passage);
                    done.fetch_add(1, SeqCst);
                }
            });
        }
        let session = Session::new(&db);
        for _ in 0..50 {
            let before = done.load(SeqCst);
            while done.load(SeqCst) == before {
                std::thread::yield_now();
            }
            block_on(session.read_lock()).unwrap();
            for _ in 0..100 {
                assert_eq!(changing.load(SeqCst), 0);
            }
            session.locks.release_read_lock();
        }
        stop.store(true, SeqCst);
    });
}
