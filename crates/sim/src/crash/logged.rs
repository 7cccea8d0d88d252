//! The binary log of a server that is killed again and again: replayed by an independent decoder, its rows events make exactly the rows that the
//! server has. So each transaction is in the engine and in the log, or in neither.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use mysql_common::Value;
use mysql_common::binlog::BinlogFile;
use mysql_common::binlog::consts::BinlogVersion;
use mysql_common::binlog::events::{EventData, TableMapEvent};
use mysql_common::binlog::row::BinlogRow;
use mysql_common::binlog::value::BinlogValue;

use super::Options;
use crate::Result;

/// What is compared of a row: its id (0 where the log does not tell it), its number and the length of its text.
type Row = (i64, i64, i64);
/// Rows with how often they are there: a table may have no key.
type Rows = BTreeMap<Row, i64>;

/// The rows that the binary log tells of.
#[derive(Default)]
pub(super) struct Logged {
    tables: BTreeMap<String, Rows>,
    /// Row events so far.
    pub changes: u64,
}

impl Logged {
    /// Reads the files that there are, compares what they make of the tables with what is there, and purges them.
    /// Nobody else may write. Nothing without a binary log, or if it is for others.
    pub async fn verify(&mut self, connection: &mut Conn, options: &Options) -> Result<()> {
        if options.keep_binlog || connection.query_first("SELECT @@log_bin").await? != Some(1) {
            return Ok(());
        }
        // All that is durable has been written when a file begins.
        connection.query_drop("FLUSH BINARY LOGS").await?;
        let files: Vec<mysql_async::Row> = connection.query("SHOW BINARY LOGS").await?;
        let files: Vec<String> = files.iter().filter_map(|row| row.get(0)).collect();
        let Some((newest, complete)) = files.split_last() else { return Err("no binary log files".into()) };
        for name in complete {
            self.read(&options.datadir.join(name)).map_err(|e| format!("{name}: {e}"))?;
        }
        let tables: Vec<String> = connection.query("SHOW TABLES").await?;
        for table in tables.iter().filter(|table| is_followed(table)) {
            self.compare(connection, table).await?;
        }
        for (table, rows) in &self.tables {
            if !rows.is_empty() && !tables.contains(table) {
                return Err(format!("the binary log has {} rows of {table}, which does not exist", rows.len()).into());
            }
        }
        connection.query_drop(format!("PURGE BINARY LOGS TO '{newest}'")).await?;
        Ok(())
    }

    fn read(&mut self, path: &Path) -> Result<()> {
        let mut maps: HashMap<u64, TableMapEvent<'static>> = HashMap::new();
        let mut file = BinlogFile::new(BinlogVersion::Version4, BufReader::new(File::open(path)?))?;
        while let Some(event) = file.next() {
            match event?.read_data()? {
                Some(EventData::TableMapEvent(map)) => {
                    maps.insert(map.table_id(), map.into_owned());
                }
                Some(EventData::RowsEvent(event)) => {
                    let map = maps.get(&event.table_id()).ok_or("rows of a table without a map")?;
                    let table = map.table_name().into_owned();
                    if map.database_name() != "crash" || !is_followed(&table) {
                        continue;
                    }
                    for row in event.rows(map) {
                        let (before, after) = row?;
                        self.change(&table, before.as_ref(), -1)?;
                        self.change(&table, after.as_ref(), 1)?;
                        self.changes += 1;
                    }
                }
                Some(EventData::QueryEvent(query)) => {
                    // Who is created, dropped or truncated has no rows.
                    let text = query.query().replace('`', "");
                    for words in ["CREATE TABLE ", "DROP TABLE ", "TRUNCATE TABLE "] {
                        if let Some(rest) = text.strip_prefix(words) {
                            let name = rest.strip_prefix("IF EXISTS ").unwrap_or(rest).split([' ', '(']).next().unwrap_or_default();
                            self.tables.remove(name.strip_prefix("crash.").unwrap_or(name));
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn change(&mut self, table: &str, row: Option<&BinlogRow>, by: i64) -> Result<()> {
        let Some(row) = row else { return Ok(()) };
        let count = row.len();
        let column = |at: usize| row.as_ref(at).map(measure).transpose().map(Option::unwrap_or_default);
        let key = match table {
            "accounts" | "numbered" => (column(0)?, column(1)?, 0),
            // It may have been given an id by ALTER TABLE, which is not logged as rows.
            _ if table.starts_with("copied_") => (0, column(count - 2)?, column(count - 1)?),
            _ => (column(0)?, column(1)?, column(2)?),
        };
        let rows = self.tables.entry(table.to_owned()).or_default();
        let found = rows.entry(key).or_default();
        *found += by;
        if *found < 0 {
            return Err(format!("{table}: {key:?} goes, and is not there").into());
        }
        if *found == 0 {
            rows.remove(&key);
        }
        Ok(())
    }

    async fn compare(&self, connection: &mut Conn, table: &str) -> Result<()> {
        let columns = match table {
            "accounts" => "id, balance, 0",
            "numbered" => "id, v, 0",
            _ if table.starts_with("copied_") => "0, v, LENGTH(pad)",
            _ => "id, v, LENGTH(pad)",
        };
        let found: Vec<Row> = connection.query(format!("SELECT {columns} FROM {table}")).await?;
        let mut rows = Rows::new();
        for row in found {
            *rows.entry(row).or_default() += 1;
        }
        let none = Rows::new();
        let logged = self.tables.get(table).unwrap_or(&none);
        if *logged != rows {
            let lacks = rows.iter().find(|(row, count)| logged.get(row) != Some(count));
            let extra = logged.iter().find(|(row, count)| rows.get(row) != Some(count));
            return Err(format!("{table}: the binary log lacks {lacks:?} and has {extra:?}").into());
        }
        Ok(())
    }
}

/// Tables whose columns are as `Logged::change` expects them.
fn is_followed(table: &str) -> bool {
    ["left_rows", "right_rows", "accounts", "numbered"].contains(&table) || table.starts_with("loaded_") || table.starts_with("copied_")
}

/// A number, or the length of a text.
fn measure(value: &BinlogValue) -> Result<i64> {
    match value {
        BinlogValue::Value(Value::Int(v)) => Ok(*v),
        BinlogValue::Value(Value::UInt(v)) => Ok(i64::try_from(*v)?),
        BinlogValue::Value(Value::Bytes(v)) => Ok(v.len() as i64),
        BinlogValue::Value(Value::NULL) => Ok(0),
        other => Err(format!("{other:?} is no value of these tables").into()),
    }
}
