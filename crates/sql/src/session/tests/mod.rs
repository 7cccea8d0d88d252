//! Statements end to end, on a database in a temporary directory.

mod auto_lock;
mod backup;
mod binlog;
mod checks;
mod columns;
mod covering;
mod ddl;
mod depth;
mod event_runs;
mod explain;
mod failures;
mod fast_path;
mod dml;
mod foreign_keys;
mod full_text;
mod histograms;
mod indexes;
mod joins;
mod kept_plans;
mod json;
mod late_columns;
mod lateral;
mod load_data;
mod locks;
mod memory;
mod metadata;
mod optimize;
mod patterns;
mod parallel;
mod parallel_insert;
mod partitions;
mod prepared;
mod privileges;
mod functions;
mod procedures;
mod progress;
mod replay;
mod row_locks;
mod sys;
mod temporary;
mod tpch;
mod transactions;
mod triggers;
mod usage;
mod views;
mod waits;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use highkey_table::{Database, Options};
use highkey_types::{MySqlError, Value};

use super::{ClientFlags, ClientInfo, Column, Instance, Interruption, LocalInfile, OkSummary, ResultSink, Session};
use crate::variables::Settings;

/// One answer of a statement.
#[derive(Debug)]
pub enum Answer {
    Rows { columns: Vec<Column>, rows: Vec<Vec<Value>>, end: OkSummary },
    Ok(OkSummary),
    Error(MySqlError),
}

/// Keeps all answers.
#[derive(Default)]
pub struct Collector {
    pub answers: Vec<Answer>,
    columns: Vec<Column>,
    rows: Vec<Vec<Value>>,
    /// What LOAD DATA LOCAL reads.
    pub file: Vec<u8>,
}

struct File(Vec<u8>);

#[async_trait]
impl LocalInfile for File {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, MySqlError> {
        if self.0.is_empty() {
            return Ok(None);
        }
        let rest = self.0.split_off(self.0.len().min(7));
        Ok(Some(Bytes::from(std::mem::replace(&mut self.0, rest))))
    }
}

#[async_trait]
impl ResultSink for Collector {
    fn columns(&mut self, columns: &[Column]) {
        self.columns = columns.to_vec();
        self.rows.clear();
    }
    fn row(&mut self, row: &[Value]) {
        assert_eq!(row.len(), self.columns.len(), "a row has as many values as there are columns");
        self.rows.push(row.to_vec());
    }
    fn end(&mut self, end: OkSummary) {
        self.answers.push(Answer::Rows { columns: std::mem::take(&mut self.columns), rows: std::mem::take(&mut self.rows), end });
    }
    fn ok(&mut self, summary: OkSummary) {
        self.answers.push(Answer::Ok(summary));
    }
    fn error(&mut self, error: &MySqlError) {
        self.answers.push(Answer::Error(error.clone()));
    }
    async fn local_infile(&mut self, _name: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        Ok(Box::new(File(std::mem::take(&mut self.file))))
    }
}

/// A database that goes with the test.
pub struct Server {
    pub instance: Arc<Instance>,
    dir: tempfile::TempDir,
}

impl Server {
    pub fn new() -> Server {
        Server::with(|_| ())
    }

    /// With settings of its own.
    pub fn with(set: impl FnOnce(&mut Settings)) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = Settings::default();
        settings.set_internal("datadir", dir.path().to_str().unwrap());
        settings.set("secure_file_priv", Some("")).unwrap();
        settings.set("local_infile", Some("ON")).unwrap();
        set(&mut settings);
        let options = Options { buffer_pool_bytes: 32 << 20, ..Options::default() };
        let database = Database::open_with(dir.path(), options, crate::session::binlog_options(&settings)).unwrap();
        Server { instance: Instance::new(database, &settings).unwrap(), dir }
    }

    /// Files of queries that have spilled.
    pub fn spilled_files(&self) -> usize {
        fn files(folder: &std::path::Path) -> usize {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { files(&entry.path()) } else { 1 }).sum()
        }
        files(&self.dir.path().join("#highkey_tmp"))
    }

    pub fn connect(&self) -> Client {
        self.connect_with("root", ClientFlags { multi_statements: true, local_files: true, multi_results: true, ..ClientFlags::default() })
    }

    /// A connection of `user`@localhost, whose client can do nothing special.
    pub fn connect_as(&self, user: &str) -> Client {
        self.connect_with(user, ClientFlags::default())
    }

    pub fn connect_with(&self, user: &str, flags: ClientFlags) -> Client {
        let client = ClientInfo {
            connection_id: self.instance.next_connection_id(),
            user: user.into(),
            client_host: "localhost".into(),
            client_address: "localhost".into(),
            account_user: user.into(),
            account_host: "localhost".into(),
            flags,
            collation: 255,
            ..ClientInfo::default()
        };
        Client { session: Session::new(self.instance.clone(), client) }
    }

    /// A connection with an empty current schema.
    pub async fn client(&self) -> Client {
        let mut client = self.connect();
        client.ok("CREATE DATABASE IF NOT EXISTS d").await;
        client.ok("USE d").await;
        client
    }
}

/// A connection.
pub struct Client {
    pub session: Session,
}

impl Client {
    pub async fn run(&mut self, sql: &str) -> Answer {
        let mut answers = self.run_all(sql).await;
        assert_eq!(answers.len(), 1, "{sql}: {answers:?}");
        answers.remove(0)
    }

    pub async fn run_all(&mut self, sql: &str) -> Vec<Answer> {
        let mut sink = Collector::default();
        self.session.execute(sql.as_bytes(), &mut sink).await.unwrap();
        sink.answers
    }

    pub async fn ok(&mut self, sql: &str) -> OkSummary {
        match self.run(sql).await {
            Answer::Ok(summary) => summary,
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// Rows as text, `NULL` for NULL.
    pub async fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        match self.run(sql).await {
            Answer::Rows { columns, rows, .. } => text(&columns, &rows),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// The only value of a result.
    pub async fn value(&mut self, sql: &str) -> String {
        let rows = self.rows(sql).await;
        assert!(rows.len() == 1 && rows[0].len() == 1, "{sql}: {rows:?}");
        rows[0][0].clone()
    }

    pub async fn error(&mut self, sql: &str) -> (u16, String) {
        match self.run(sql).await {
            Answer::Error(e) => (e.code, e.message),
            other => panic!("{sql}: {other:?}"),
        }
    }

    /// KILL QUERY comes while the statement runs.
    pub async fn error_when_killed(&mut self, sql: &str) -> (u16, String) {
        let process = self.session.process().clone();
        let killer = tokio::spawn(async move {
            while process.snapshot().command != "Query" {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            process.interrupt(Interruption::Query);
        });
        let error = self.error(sql).await;
        killer.await.unwrap();
        error
    }
}

pub fn text(columns: &[Column], rows: &[Vec<Value>]) -> Vec<Vec<String>> {
    rows.iter()
        .map(|row| {
            row.iter()
                .zip(columns)
                .map(|(value, column)| {
                    let mut bytes = Vec::new();
                    if value.to_text(&column.ty, &mut bytes) { String::from_utf8_lossy(&bytes).into_owned() } else { "NULL".to_owned() }
                })
                .collect()
        })
        .collect()
}

/// Compares rows with lines of words: `a b|c d`.
pub fn table(text: &str) -> Vec<Vec<String>> {
    if text.is_empty() {
        return Vec::new();
    }
    text.split('|').map(|line| line.split(' ').map(str::to_owned).collect()).collect()
}
