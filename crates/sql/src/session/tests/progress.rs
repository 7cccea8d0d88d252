//! What other sessions see of a long statement.

use async_trait::async_trait;
use bytes::Bytes;
use highkey_types::{MySqlError, Value};

use super::{Client, Column, LocalInfile, ResultSink, Server, table};

/// Loads a file whose reading another session watches.
struct Watched {
    other: Client,
    chunks: Vec<&'static str>,
    /// (SHOW PROCESSLIST's state, rows of `events_stages_current`) before each chunk.
    seen: Vec<(String, Vec<Vec<String>>)>,
    failed: Option<MySqlError>,
}

#[async_trait]
impl LocalInfile for &mut Watched {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, MySqlError> {
        let list = self.other.rows("SHOW PROCESSLIST").await;
        let state = list.iter().find(|row| row[7].starts_with("LOAD")).map_or(String::new(), |row| row[6].clone());
        let stages = "SELECT event_name, work_completed, work_estimated FROM performance_schema.events_stages_current WHERE thread_id <> CONNECTION_ID()";
        let stages = self.other.rows(stages).await;
        self.seen.push((state, stages));
        Ok(if self.chunks.is_empty() { None } else { Some(Bytes::from(self.chunks.remove(0))) })
    }
}

#[async_trait]
impl ResultSink for Watched {
    fn columns(&mut self, _: &[Column]) {}
    fn row(&mut self, _: &[Value]) {}
    fn error(&mut self, error: &MySqlError) {
        self.failed = Some(error.clone());
    }
    async fn local_infile(&mut self, _: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        Ok(Box::new(self))
    }
}

#[tokio::test]
async fn a_load_tells_how_far_it_is() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (a INT PRIMARY KEY)").await;
    let mut sink = Watched { other: server.connect(), chunks: vec!["1\n2\n", "3\n"], seen: Vec::new(), failed: None };
    c.session.execute(b"LOAD DATA LOCAL INFILE 'f' INTO TABLE t", &mut sink).await.unwrap();
    assert_eq!(sink.failed, None);
    let stage = |done: &str| vec![vec!["stage/sql/reading file".to_owned(), done.to_owned(), "NULL".to_owned()]];
    let seen = |state: &str, done: &str| (state.to_owned(), stage(done));
    assert_eq!(sink.seen, [seen("reading file", "NULL"), seen("reading file: 4 bytes", "4"), seen("reading file: 6 bytes", "6")]);
    assert_eq!(c.rows("SELECT a FROM t").await, table("1|2|3"));
    assert_eq!(sink.other.value("SELECT COUNT(*) FROM performance_schema.events_stages_current").await, "1", "only the one who asks");
}

/// The UPDATE meets a lock behind most of the table's rows.
#[tokio::test(flavor = "multi_thread")]
async fn a_change_tells_how_far_it_is() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, v INT)").await;
    let rows: Vec<String> = (1..=2000).map(|n| format!("({n}, 0)")).collect();
    c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    let mut other = server.client().await;
    other.ok("BEGIN").await;
    other.rows("SELECT * FROM t WHERE id = 2000 FOR UPDATE").await;
    let update = tokio::spawn(async move { c.ok("UPDATE t SET v = v + 1").await });
    loop {
        let list = other.rows("SHOW PROCESSLIST").await;
        let state = list.iter().find(|row| row[7].starts_with("UPDATE")).map_or("", |row| row[6].as_str());
        if state.starts_with("changing rows: 1") && state.contains(" of about ") {
            break;
        }
        assert!(!update.is_finished(), "it waits for the lock");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let stages = "SELECT event_name, work_completed > 999, work_estimated > 999 FROM performance_schema.events_stages_current WHERE thread_id <> CONNECTION_ID()";
    assert_eq!(other.rows(stages).await, [["stage/sql/changing rows", "1", "1"]]);
    other.ok("COMMIT").await;
    update.await.unwrap();
    assert_eq!(other.value("SELECT SUM(v) FROM t").await, "2000");
}

/// A client that asks, through another, how far its query is before it takes the rows.
struct Asking {
    other: Client,
    connection: String,
    /// SHOW PROCESSLIST's state, `events_stages_current`, EXPLAIN FOR CONNECTION.
    told: Option<(String, Vec<Vec<String>>, String)>,
}

#[async_trait]
impl ResultSink for Asking {
    fn columns(&mut self, _: &[Column]) {}
    fn row(&mut self, _: &[Value]) {}
    fn error(&mut self, error: &MySqlError) {
        panic!("{error:?}");
    }
    fn wants_flush(&self) -> bool {
        self.told.is_none()
    }
    async fn flush(&mut self) -> std::io::Result<()> {
        let list = self.other.rows("SHOW PROCESSLIST").await;
        let state = list.iter().find(|row| row[0] == self.connection).map_or(String::new(), |row| row[6].clone());
        let stages = "SELECT event_name, work_completed = work_estimated FROM performance_schema.events_stages_current WHERE thread_id";
        let stages = self.other.rows(&format!("{stages} = {}", self.connection)).await;
        let plan = self.other.value(&format!("EXPLAIN FORMAT=TREE FOR CONNECTION {}", self.connection)).await;
        self.told = Some((state, stages, plan));
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_tells_how_far_it_is() {
    let server = Server::new();
    let mut c = server.client().await;
    c.ok("CREATE TABLE t (id INT PRIMARY KEY, k INT NOT NULL, v INT)").await;
    // So few that each leaf is a piece.
    for chunk in 0..3 {
        let rows: Vec<String> = (chunk * 5000..chunk * 5000 + 5000).map(|id| format!("({id}, {}, {id})", id % 10)).collect();
        c.ok(&format!("INSERT INTO t VALUES {}", rows.join(", "))).await;
    }
    let connection = c.value("SELECT CONNECTION_ID()").await;
    c.ok("SET highkey_executor = 'DATAFUSION', parallel_cost_threshold = 0, parallel_default_dop = 3, group_concat_max_len = 1000000").await;
    // Groups come when all rows have been read; those of the second one in order.
    for sql in ["SELECT k, SUM(v) FROM t GROUP BY k", "SELECT k, GROUP_CONCAT(v) FROM t GROUP BY k ORDER BY k"] {
        let mut sink = Asking { other: server.connect(), connection: connection.clone(), told: None };
        sink.other.ok("USE d").await;
        c.session.execute(sql.as_bytes(), &mut sink).await.unwrap();
        let (state, stages, plan) = sink.told.expect("rows came");
        assert!(state.starts_with("reading tables: ") && state.ends_with(" pieces (100%)"), "{state}");
        assert_eq!(stages, [["stage/sql/reading tables", "1"]]);
        let mut lines = plan.lines().skip_while(|line| !line.starts_with("-> Progress: "));
        assert!(lines.next().is_some_and(|line| line.starts_with("-> Progress: 100% (")), "{plan}");
        let scan = lines.next().unwrap();
        let (rows, workers) = scan.split_once(" pieces, ").and_then(|(_, rest)| rest.split_once(" rows (")).expect("rows of workers");
        assert!(scan.contains("on t: ") && rows == "15000", "{scan}");
        let by_worker: Vec<u64> = workers.trim_end_matches(')').split(", ").map(|w| w.split_once(": ").unwrap().1.parse().unwrap()).collect();
        assert_eq!((by_worker.len(), by_worker.iter().sum::<u64>()), (3, 15_000), "{scan}");
    }
}
