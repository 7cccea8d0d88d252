//! Applies what the receiver has read: gives each transaction to a worker as soon as what it depends on is done, and ends the workers together.
//!
//! Everything of a transaction of the source is one transaction here, and the record of the position is a part of it. Commits are in the source's order
//! (`order.rs`). So whenever the server ends, the transactions up to the recorded position are in, and no others: what is done again starts there.

use std::sync::Arc;
use std::time::Duration;

use highkey_sql::ProcessEntry;
use highkey_sql::replica::{Applier, Event, event_kind as kind};
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinHandle;

use super::channel::{Channel, now_micros};
use super::event::{Part, TransactionStart, transaction_start};
use super::order::{Dependencies, Order};
use super::position::Position;
use super::receiver::{self, Item};
use super::settings::{Settings, Until};
use super::worker::{Start, Work, Worker};

/// Events that a worker has before it.
const WORK_EVENTS: usize = 256;

/// Runs until it is stopped or fails, or until what UNTIL says.
pub async fn run(channel: Arc<Channel>, items: mpsc::Receiver<Item>, mut stop: watch::Receiver<bool>) {
    let order = Arc::new(Order::new());
    let workers = channel.instance().global_u64("slave_parallel_workers").clamp(1, 1024) as usize;
    let workers: Vec<Hand> = (0..workers).map(|number| Hand::new(Worker::new(number, channel.clone(), order.clone()), order.clone())).collect();
    let _end = EndOfAll(order.clone());
    channel.applier_started(workers.iter().map(|worker| worker.process.id()));
    let mut coordinator = Coordinator::new(channel.clone(), order.clone(), workers);
    tokio::select! {
        failed = coordinator.run(items) => {
            if let Some((number, message)) = failed {
                channel.applier_failed(number, message);
            }
        }
        () = order.over() => {}
        () = receiver::stopped(&mut stop) => {}
    }
    // A worker finishes the event that it is at, but does not wait for a lock. Transactions that are not committed by now are undone; they come again.
    order.end();
    for worker in coordinator.workers {
        Applier::interrupt(&worker.process);
        drop(worker.work);
        if let Err(e) = worker.task.await {
            channel.applier_failed(1815, format!("Internal error: {e}"));
        }
    }
}

/// Where it ends, by a panic too, nothing commits any more: nobody waits for it in vain.
struct EndOfAll(Arc<Order>);

impl Drop for EndOfAll {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A worker as the coordinator holds it.
struct Hand {
    process: Arc<ProcessEntry>,
    work: mpsc::Sender<Work>,
    task: JoinHandle<()>,
    /// All below are done: it has nothing to do.
    free_at: u64,
}

impl Hand {
    fn new(worker: Worker, order: Arc<Order>) -> Hand {
        let (work, given) = mpsc::channel(WORK_EVENTS);
        let (process, end) = (worker.process(), EndOfAll(order));
        let task = tokio::spawn(async move {
            let _end = end;
            worker.run(given).await;
        });
        Hand { process, work, task, free_at: 0 }
    }
}

struct Coordinator {
    channel: Arc<Channel>,
    order: Arc<Order>,
    settings: Settings,
    until: Until,
    workers: Vec<Hand>,
    dependencies: Dependencies,
    /// The end of the last event; its GTIDs are those of whole transactions.
    position: Position,
    /// As it was at the end of the last transaction.
    whole: Position,
    /// The ticket of the next transaction.
    next: u64,
    /// The transaction that is being given out, and its worker.
    current: Option<(Option<super::gtid::Gtid>, usize)>,
    /// Events that are still to be passed over (`sql_slave_skip_counter`), and with the last of them what is left of its transaction.
    skip: u64,
    /// The present transaction is one of those.
    skipping: bool,
}

impl Coordinator {
    fn new(channel: Arc<Channel>, order: Arc<Order>, workers: Vec<Hand>) -> Coordinator {
        let position = channel.applied();
        Coordinator {
            settings: channel.settings(),
            until: channel.until(),
            workers,
            dependencies: Dependencies::default(),
            whole: position.clone(),
            position,
            next: 0,
            current: None,
            skip: channel.instance().global_u64("sql_slave_skip_counter"),
            skipping: false,
            order,
            channel,
        }
    }

    /// Ends when UNTIL is reached, or with an error of the log. It may be dropped at any point.
    async fn run(&mut self, mut items: mpsc::Receiver<Item>) -> Option<(u16, String)> {
        // Nothing may come of what has been executed.
        if self.until.reached(&self.whole, None, || self.channel.executed()) {
            return None;
        }
        while let Some(item) = items.recv().await {
            match self.take(item).await {
                Ok(true) => {}
                Ok(false) => break,
                Err(what) => {
                    // What came before is in order.
                    self.order.done_below(self.next).await;
                    return Some((1594, format!("Relay log read failure: {what}")));
                }
            }
        }
        self.order.done_below(self.next).await;
        None
    }

    /// False: UNTIL is reached.
    async fn take(&mut self, item: Item) -> Result<bool, String> {
        let (event, part, room) = match item {
            Item::Restarted => {
                self.abort().await;
                self.position = self.whole.clone();
                self.dependencies.restart();
                return Ok(true);
            }
            Item::Event { event, part, room } => (event, part, room),
        };
        if event.log_pos > 0 {
            self.position.offset = receiver::after(self.position.offset, event.log_pos);
        }
        // A server that was killed left half of a transaction at the end of its file.
        let begins_file = event.kind == kind::FORMAT_DESCRIPTION && event.log_pos > 0;
        if part == Part::Start || begins_file {
            self.abort().await;
        }
        if part == Part::Log {
            self.log(&event)?;
            return Ok(true);
        }
        if self.current.is_none() && !self.start(&event, part).await? {
            return Ok(false);
        }
        self.forward(event, part, room).await;
        Ok(!part.ends() || !self.until.reached(&self.whole, None, || self.channel.executed()))
    }

    /// The transaction that was begun does not go on.
    async fn abort(&mut self) {
        if let Some((_, worker)) = self.current.take() {
            self.give(worker, Work::Abort).await;
            self.next -= 1;
        }
    }

    /// An event about the log.
    fn log(&mut self, event: &Event) -> Result<(), String> {
        match event.kind {
            kind::ROTATE => {
                (self.position.file, self.position.offset) = event.rotate()?;
                self.dependencies.restart();
            }
            kind::GTID_TAGGED => return Err("GTIDs with tags are not supported".into()),
            kind::INCIDENT => return Err("the source lost events of its log (incident)".into()),
            _ => {}
        }
        Ok(())
    }

    /// Gives a transaction, by its first event, to a worker once it may start. False: UNTIL is reached before it.
    async fn start(&mut self, event: &Event, part: Part) -> Result<bool, String> {
        let began = match part {
            Part::Start => transaction_start(event)?,
            _ => TransactionStart::default(),
        };
        let TransactionStart { gtid, clock, committed_micros, server_version, .. } = began;
        if self.until.reached(&self.whole, gtid.as_ref(), || self.channel.executed()) {
            return Ok(false);
        }
        self.delay(event.timestamp).await;
        let ticket = self.next;
        self.order.done_below(self.dependencies.of(clock, ticket)).await;
        // Commits are in order, so the one that has had its work longest is free first.
        let worker = ticket as usize % self.workers.len();
        self.order.done_below(self.workers[worker].free_at).await;
        self.skipping = self.skip > 0;
        let ignored = self.skipping || u64::from(event.server_id) == self.channel.server_id() || self.settings.ignore_server_ids.contains(&u64::from(event.server_id));
        let file = self.position.file.as_str().into();
        let shown = began.shown(now_micros());
        self.channel.note_processing(shown.clone());
        let start = Start { ticket, gtid, server_id: event.server_id, committed_micros, server_version, timestamp: event.timestamp, shown, file, ignored, first: ticket == 0 };
        self.give(worker, Work::Start(start)).await;
        self.current = Some((gtid, worker));
        self.next += 1;
        Ok(true)
    }

    async fn forward(&mut self, event: Event, part: Part, room: OwnedSemaphorePermit) {
        let Some((gtid, worker)) = self.current else { return };
        if self.skipping && (part.ends() || self.skip > 1) {
            self.skip -= 1;
            self.channel.instance().set_skip_counter(self.skip);
        }
        let mut end = None;
        if part.ends() {
            self.current = None;
            self.position.number += 1;
            if let Some(gtid) = gtid {
                self.position.gtids.add(&gtid);
            }
            self.whole = self.position.clone();
            self.workers[worker].free_at = self.next;
            end = Some(self.position.clone());
            self.channel.note_processed();
        }
        self.give(worker, Work::Event { event, part, end, room }).await;
    }

    /// A worker that takes nothing any more has failed, which ends all (`Order::over`).
    async fn give(&self, worker: usize, work: Work) {
        let _ = self.workers[worker].work.send(work).await;
    }

    /// Waits until the source's transaction is as old as SOURCE_DELAY wants it.
    async fn delay(&self, timestamp: u32) {
        if self.settings.delay == 0 {
            return;
        }
        let due = i64::from(timestamp) + self.settings.delay as i64;
        loop {
            let left = due - now_micros() / 1_000_000;
            if left <= 0 {
                break;
            }
            self.channel.note_delay(Some(left as u64));
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        self.channel.note_delay(None);
    }
}

#[cfg(test)]
mod tests {
    use highkey_sql::{Instance, Settings as ServerSettings};
    use highkey_storage::{SimConfig, SimDisk, SystemClock};
    use highkey_sql::replica::StatementContext;
    use highkey_table::{Database, Options, Xid};

    use super::*;
    use crate::replica::channel::POSITION_RECORD;
    use crate::replica::receiver::Queue;

    /// A replica without a receiver, with tables `d.counter` (id INT PRIMARY KEY, n INT) of one row (1, 0) and `d.list`, of the same columns, empty.
    struct Fixture {
        _directory: Option<tempfile::TempDir>,
        instance: Arc<Instance>,
        channel: Arc<Channel>,
    }

    async fn fixture(workers: &str) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), Options { buffer_pool_bytes: 32 << 20, ..Options::default() }).unwrap();
        let mut settings = ServerSettings::default();
        settings.set("slave_parallel_workers", Some(workers)).unwrap();
        let instance = Instance::new(database, &settings).unwrap();
        set_up(&instance).await;
        let channel = Channel::new(instance.clone(), Settings::default(), Position::start());
        Fixture { _directory: Some(directory), instance, channel }
    }

    async fn set_up(instance: &Arc<Instance>) {
        let mut setup = Applier::new(instance.clone());
        let cx = StatementContext { schema: "d".into(), ..StatementContext::default() };
        for sql in ["CREATE DATABASE d", "CREATE TABLE counter (id INT PRIMARY KEY, n INT)", "CREATE TABLE list (id INT PRIMARY KEY, n INT)", "INSERT INTO counter VALUES (1, 0)"] {
            setup.statement(&cx, sql.as_bytes(), None).await.unwrap();
        }
        setup.close().await;
    }

    /// A replica on a simulated disk, with a binary log that has GTIDs. Nothing runs in the background, so that what reads is what is tested.
    fn logging_on(disk: &SimDisk) -> Fixture {
        let mut settings = ServerSettings::default();
        for (name, value) in [("log_bin", "ON"), ("gtid_mode", "ON"), ("enforce_gtid_consistency", "ON")] {
            settings.set(name, Some(value)).unwrap();
        }
        let options = Options { buffer_pool_bytes: 16 << 20, redo_log_capacity: 64 << 20, abort_on_fatal: false, background: false, ..Options::default() };
        let database = Database::open_on(Arc::new(disk.clone()), options, Arc::new(SystemClock::new()), highkey_sql::binlog_options(&settings)).unwrap();
        let instance = Instance::new(database, &settings).unwrap();
        let records = instance.database().replica_records().unwrap();
        let position = crate::replica::positions(&records).unwrap().into_iter().max_by_key(|position| position.number);
        let channel = Channel::new(instance.clone(), Settings::default(), position.unwrap_or_else(Position::start));
        Fixture { _directory: None, instance, channel }
    }

    impl Fixture {
        /// Runs the applier over transactions, then stops it.
        async fn apply(&self, transactions: &[Vec<Event>], until: Until) {
            let (queue, items) = Queue::new();
            self.channel.offer_queue(queue.clone(), until);
            let (stop, stopped) = watch::channel(false);
            let running = tokio::spawn(run(self.channel.clone(), items, stopped));
            let mut grouping = crate::replica::event::Grouping::default();
            for event in transactions.iter().flatten() {
                let part = grouping.part(event).unwrap();
                if queue.push(event.clone(), part).await.is_err() {
                    break;
                }
            }
            let last = transactions.iter().flatten().last().map_or(0, |event| u64::from(event.log_pos));
            for _ in 0..2000 {
                if running.is_finished() || self.channel.applied().offset == last {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            stop.send_replace(true);
            running.await.unwrap();
        }

        fn failure(&self) -> (u16, String) {
            let status = self.channel.status();
            (status.applier_failure.number, status.applier_failure.message)
        }

        /// Rows of a table as numbers.
        fn rows(&self, table: &str) -> Vec<(i64, i64)> {
            let database = self.instance.database();
            let table = database.catalog().table("d", table).unwrap();
            let mut txn = database.begin(highkey_table::Isolation::RepeatableRead);
            let mut scan = table.scan(&mut txn, 0, &highkey_table::KeyRange::all(), highkey_table::Direction::Forward).unwrap();
            let mut batch = highkey_table::RowBatch::new();
            let mut rows = Vec::new();
            while scan.next_batch(&mut batch).unwrap() {
                rows.extend((0..batch.len()).map(|row| (batch.value(row, 0).as_i64().unwrap(), batch.value(row, 1).as_i64().unwrap())));
            }
            rows
        }

        /// The newest position of the catalog.
        fn recorded(&self) -> Position {
            let records = self.instance.database().replica_records().unwrap();
            let positions = records.iter().filter(|(name, _)| name.starts_with(POSITION_RECORD)).map(|(_, value)| Position::decode(value).unwrap());
            positions.max_by_key(|position| position.number).unwrap_or_else(Position::start)
        }
    }

    fn event(kind: u8, number: u64, body: Vec<u8>) -> Event {
        Event { timestamp: 1_700_000_000, kind, server_id: 9, log_pos: (number * 1000) as u32, body }
    }

    /// A transaction of MySQL that sets the counter from one number to the next and adds its own number to the list.
    fn transaction(number: u64, last_committed: u64) -> Vec<Event> {
        let (old, new) = ((number - 1) as i32, number as i32);
        let gtid = [&[1][..], &[0; 16], &[0; 8], &[2], &last_committed.to_le_bytes(), &number.to_le_bytes()].concat();
        let begin = [&[0; 8][..], &[0, 0, 0, 0, 0, 0], b"BEGIN"].concat();
        let map = |id: u8, name: &str| [&[id, 0, 0, 0, 0, 0, 1, 0, 1][..], b"d\0", &[name.len() as u8], name.as_bytes(), &[0, 2, 3, 3, 0, 3]].concat();
        let row = |a: i32, b: i32| [&[0][..], &a.to_le_bytes(), &b.to_le_bytes()].concat();
        let rows = |id: u8, bitmaps: &[u8], images: Vec<u8>| [&[id, 0, 0, 0, 0, 0, 1, 0, 2, 0, 2][..], bitmaps, &images].concat();
        vec![
            event(kind::ANONYMOUS_GTID, number, gtid),
            event(kind::QUERY, number, begin),
            event(kind::TABLE_MAP, number, map(1, "counter")),
            event(kind::UPDATE_ROWS, number, rows(1, &[3, 3], [row(1, old), row(1, new)].concat())),
            event(kind::TABLE_MAP, number, map(2, "list")),
            event(kind::WRITE_ROWS, number, rows(2, &[3], row(new, old))),
            event(kind::XID, number, vec![0; 8]),
        ]
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn transactions_that_meet_come_out_in_the_sources_order() {
        // The source's clock says that they are independent, which they are not: they wait for each other's locks, and make way.
        for (workers, last_committed) in [("1", 0), ("4", 0), ("8", 0)] {
            let fixture = fixture(workers).await;
            let transactions: Vec<_> = (1..=60).map(|number| transaction(number, last_committed)).collect();
            fixture.apply(&transactions, Until::Never).await;
            assert_eq!(fixture.failure(), (0, String::new()));
            assert_eq!(fixture.rows("counter"), [(1, 60)], "{workers} workers");
            assert_eq!(fixture.rows("list"), (1..=60).map(|n| (n, n - 1)).collect::<Vec<_>>());
            assert_eq!((fixture.channel.applied().offset, fixture.recorded().number), (60_000, 60));
            assert_eq!(fixture.recorded(), fixture.channel.applied());
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn after_an_error_nothing_later_is_in() {
        let fixture = fixture("4").await;
        let mut transactions: Vec<_> = (1..=40).map(|number| transaction(number, number - 1)).collect();
        // The 21st inserts what the 5th has inserted; those after it do not depend on it.
        let again = transaction(5, 0).remove(5);
        transactions[20][5] = Event { log_pos: 21_000, ..again };
        for (i, later) in transactions.iter_mut().enumerate().skip(21) {
            later[0].body[26..34].copy_from_slice(&19u64.to_le_bytes());
            later.drain(2..4);
            assert!(i > 20 && later.len() == 5);
        }
        fixture.apply(&transactions, Until::Never).await;
        let (number, message) = fixture.failure();
        assert_eq!(number, 1062);
        assert_eq!(
            message,
            "Could not execute Write_rows event on table d.list; Duplicate entry '5' for key 'PRIMARY', Error_code: 1062; handler error HA_ERR_FOUND_DUPP_KEY; the event's master log , end_log_pos 21000"
        );
        assert_eq!(fixture.rows("list").len(), 20);
        assert_eq!((fixture.recorded().number, fixture.rows("counter")), (20, vec![(1, 20)]));
        // What stood in the way is removed: it goes on where it was.
        let rest: Vec<_> = (21..=30).map(|number| transaction(number, number - 1)).collect();
        fixture.apply(&rest, Until::Never).await;
        assert_eq!((fixture.failure().0, fixture.recorded().number, fixture.rows("counter")), (0, 30, vec![(1, 30)]));
    }

    /// XA ROLLBACK is told in our binary log before it is undone. If that meets an error the applier stops, and goes on with it at its next start.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_rollback_that_met_an_error_is_finished() {
        let gtid = |number: u8| event(kind::GTID, number.into(), [&[1][..], &[9; 16], &[number], &[0; 7], &[2], &[0; 7], &[0, number], &[0; 7]].concat());
        let query = |number, sql: &str| event(kind::QUERY, number, [&[0; 8][..], &[1, 0, 0, 0, 0, b'd', 0], sql.as_bytes()].concat());
        let name = Xid { format: 1, gtrid: b"x".to_vec(), bqual: Vec::new() };
        let mut prepare = vec![gtid(1), query(1, "XA START X'78',X'',1")];
        prepare.extend(transaction(1, 0).drain(2..6));
        prepare.extend([query(1, "XA END X'78',X'',1"), event(kind::XA_PREPARE, 1, [&[0][..], &[1, 0, 0, 0], &[1, 0, 0, 0], &[0; 4], b"x"].concat())]);
        let rollback = [vec![gtid(2), query(2, "XA ROLLBACK X'78',X'',1")]];
        let mut decided = 0;
        for n in 1.. {
            let disk = SimDisk::new(SimConfig { seed: n, ..SimConfig::default() });
            let fixture = logging_on(&disk);
            set_up(&fixture.instance).await;
            fixture.apply(&[prepare.clone()], Until::Never).await;
            assert_eq!((fixture.failure(), fixture.recorded().number), ((0, String::new()), 1));
            fixture.instance.database().shutdown().unwrap();
            drop(fixture);
            let fixture = logging_on(&disk);
            disk.fail_read_in(Some(n));
            fixture.apply(&rollback, Until::Never).await;
            let met = !disk.fail_read_in(None);
            if fixture.failure().0 != 0 {
                assert!(met && fixture.recorded().number == 1, "{:?}", fixture.failure());
                let database = fixture.instance.database();
                decided += u32::from(database.xa_take(&name).is_some_and(|branch| branch.is_rolled_back()));
                database.binlog().unwrap().catch_up().unwrap();
                fixture.apply(&rollback, Until::Never).await;
            }
            assert_eq!((fixture.failure(), fixture.recorded().number), ((0, String::new()), 2), "read {n}");
            assert!(fixture.instance.database().xa_prepared().is_empty(), "read {n}");
            assert_eq!((fixture.rows("counter"), fixture.rows("list").len()), (vec![(1, 0)], 0));
            if !met {
                break;
            }
        }
        assert!(decided > 0);
    }

    /// Five events each: a sixth is the second transaction's, and with it goes all of that.
    #[tokio::test(flavor = "multi_thread")]
    async fn events_are_passed_over_to_the_end_of_a_transaction() {
        for (skip, left_out) in [(1, 1), (5, 1), (6, 2)] {
            let fixture = fixture("4").await;
            fixture.instance.set_skip_counter(skip);
            let mut transactions: Vec<_> = (1..=4).map(|number| transaction(number, number - 1)).collect();
            // The counter is not changed, so that what is left out is not missed.
            transactions.iter_mut().for_each(|events| drop(events.drain(2..4)));
            fixture.apply(&transactions, Until::Never).await;
            assert_eq!(fixture.failure(), (0, String::new()));
            assert_eq!(fixture.rows("list"), (left_out + 1..=4).map(|n| (n, n - 1)).collect::<Vec<_>>(), "{skip}");
            assert_eq!((fixture.recorded().number, fixture.instance.global_u64("sql_slave_skip_counter")), (4, 0));
        }
    }

    fn anonymous(number: u64) -> Event {
        event(kind::ANONYMOUS_GTID, number, [&[1][..], &[0; 16], &[0; 8], &[2], &(number - 1).to_le_bytes(), &number.to_le_bytes()].concat())
    }

    /// A statement in `d` that is a transaction.
    fn definition(number: u64, sql: &str) -> Vec<Event> {
        vec![anonymous(number), event(kind::QUERY, number, [&[0; 8][..], &[1, 0, 0, 0, 0, b'd', 0], sql.as_bytes()].concat())]
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_panic_is_an_error_and_ends_the_applier() {
        let fixture = fixture("3").await;
        let (queue, items) = Queue::new();
        fixture.channel.offer_queue(queue.clone(), Until::Never);
        let (_stop, stopped) = watch::channel(false);
        let running = tokio::spawn(run(fixture.channel.clone(), items, stopped));
        let mut grouping = crate::replica::event::Grouping::default();
        let mut transactions: Vec<_> = (1..=9).map(|number| transaction(number, number - 1)).collect();
        transactions[4].insert(4, event(crate::replica::worker::PANIC, 5, Vec::new()));
        for event in transactions.iter().flatten() {
            let part = if event.kind == crate::replica::worker::PANIC { Part::Inside } else { grouping.part(event).unwrap() };
            if queue.push(event.clone(), part).await.is_err() {
                break;
            }
        }
        // It ends without being asked to.
        tokio::time::timeout(Duration::from_secs(60), running).await.unwrap().unwrap();
        assert_eq!(fixture.failure(), (1815, "Internal error: as a test wants".into()));
        assert_eq!((fixture.rows("counter"), fixture.rows("list").len(), fixture.recorded().number), (vec![(1, 4)], 4, 4));
        // Nothing of it holds a lock.
        let rest: Vec<_> = (5..=9).map(|number| transaction(number, number - 1)).collect();
        fixture.apply(&rest, Until::Never).await;
        assert_eq!((fixture.failure().0, fixture.rows("counter")), (0, vec![(1, 9)]));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn triggers_go_with_their_tables() {
        let Fixture { _directory, instance, .. } = fixture("2").await;
        let mut settings = Settings::default();
        settings.filters.set("REPLICATE_IGNORE_TABLE", &["d.gone".into()], 0);
        let channel = Channel::new(instance.clone(), settings, Position::start());
        let fixture = Fixture { _directory, instance, channel };
        let statements = [
            "CREATE TABLE gone (id INT)",
            "CREATE DEFINER=`root`@`localhost` TRIGGER a BEFORE INSERT ON gone FOR EACH ROW SET @a = 1",
            "CREATE DEFINER=`root`@`localhost` TRIGGER b BEFORE INSERT ON list FOR EACH ROW SET @a = 1",
            "DROP TRIGGER a",
            "DROP TABLE gone",
        ];
        let transactions: Vec<_> = (1..).zip(statements).map(|(number, sql)| definition(number, sql)).collect();
        fixture.apply(&transactions, Until::Never).await;
        assert_eq!((fixture.failure(), fixture.recorded().number), ((0, String::new()), 5));
        let catalog = fixture.instance.database().catalog();
        assert!(catalog.trigger("d", "a").is_none() && catalog.trigger("d", "b").is_some() && catalog.find_table("d", "gone").is_none());
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn until_ends_between_two_transactions() {
        let fixture = fixture("4").await;
        let transactions: Vec<_> = (1..=10).map(|number| transaction(number, 0)).collect();
        fixture.apply(&transactions, Until::Offset { file: String::new(), offset: 6500 }).await;
        assert_eq!((fixture.failure().0, fixture.rows("counter"), fixture.recorded().offset), (0, vec![(1, 7)], 7000));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_new_connection_voids_what_the_old_one_began() {
        let fixture = fixture("4").await;
        let (queue, items) = Queue::new();
        fixture.channel.offer_queue(queue.clone(), Until::Never);
        let (stop, stopped) = watch::channel(false);
        let running = tokio::spawn(run(fixture.channel.clone(), items, stopped));
        let mut grouping = crate::replica::event::Grouping::default();
        // The first transaction breaks off after its first change, and comes again.
        for (number, events) in [(1, 4), (1, 7), (2, 5), (2, 7), (3, 7)] {
            queue.restart().await.unwrap_or_else(|_| panic!("the applier runs"));
            for event in transaction(number, 0).into_iter().take(events) {
                let part = grouping.part(&event).unwrap();
                queue.push(event, part).await.unwrap_or_else(|_| panic!("the applier runs"));
            }
        }
        for _ in 0..1000 {
            if fixture.channel.applied().number == 3 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.send_replace(true);
        running.await.unwrap();
        assert_eq!((fixture.failure().0, fixture.rows("counter"), fixture.rows("list").len(), fixture.recorded().number), (0, vec![(1, 3)], 3, 3));
    }
}
