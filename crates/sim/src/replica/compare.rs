//! The comparison.

use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Row, Value};

use super::{CompareOptions, connect_patiently};
use crate::Result;

/// Schemas that are a server's own.
const OWN: &str = "('mysql', 'sys', 'information_schema', 'performance_schema', 'test')";

pub async fn run(options: CompareOptions) -> Result<()> {
    let mut source = connect_patiently(&options.source).await?;
    let mut replica = connect_patiently(&options.replica).await?;
    if !options.at_rest {
        wait(&mut source, &mut replica, Duration::from_secs(options.timeout)).await?;
    }
    let schemas = format!("SELECT schema_name FROM information_schema.schemata WHERE schema_name NOT IN {OWN} ORDER BY 1");
    let (theirs, ours) = (names(&mut source, &schemas).await?, names(&mut replica, &schemas).await?);
    if theirs != ours {
        return Err(format!("the source has the schemas {theirs:?}, the replica {ours:?}").into());
    }
    let (mut tables, mut rows) = (0, 0);
    for schema in &theirs {
        let list = format!("SELECT table_name FROM information_schema.tables WHERE table_schema = '{schema}' ORDER BY 1");
        let (theirs, ours) = (names(&mut source, &list).await?, names(&mut replica, &list).await?);
        if theirs != ours {
            return Err(format!("in {schema} the source has the tables {theirs:?}, the replica {ours:?}").into());
        }
        for table in &theirs {
            tables += 1;
            rows += compare(&mut source, &mut replica, schema, table).await?;
        }
    }
    println!("compare: {tables} tables, {rows} rows are equal");
    Ok(())
}

/// Waits until the replica has a transaction that comes after all that the source has run.
async fn wait(source: &mut Conn, replica: &mut Conn, limit: Duration) -> Result<()> {
    let token = format!("{:?}", std::time::SystemTime::now());
    source.query_drop("CREATE DATABASE IF NOT EXISTS load_marker").await?;
    source.query_drop("CREATE TABLE IF NOT EXISTS load_marker.marker (id INT PRIMARY KEY, token VARCHAR(200))").await?;
    source.exec_drop("REPLACE INTO load_marker.marker VALUES (1, ?)", (&token,)).await?;
    let until = Instant::now() + limit;
    loop {
        let found: Option<String> = replica.query_first("SELECT token FROM load_marker.marker").await.unwrap_or_default();
        if found.as_ref() == Some(&token) {
            return Ok(());
        }
        // Under its old name, which a replica that is MySQL 8.0.12 knows too.
        let status: Option<Row> = replica.query_first("SHOW SLAVE STATUS").await?;
        let status = status.ok_or("the replica has no source")?;
        let cell = |name: &str| status.get::<Value, _>(name).map(|value| value.as_sql(true)).unwrap_or_default();
        if cell("Slave_SQL_Running") != "'Yes'" || cell("Slave_IO_Running") == "'No'" {
            return Err(format!("the replica has stopped: {} {} / {} {}", cell("Last_IO_Errno"), cell("Last_IO_Error"), cell("Last_SQL_Errno"), cell("Last_SQL_Error")).into());
        }
        if Instant::now() > until {
            let (file, position) = (cell("Relay_Master_Log_File"), cell("Exec_Master_Log_Pos"));
            return Err(format!("the replica is at {file}:{position} after {} seconds: {}", limit.as_secs(), cell("Last_IO_Error")).into());
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn names(connection: &mut Conn, query: &str) -> Result<Vec<String>> {
    Ok(connection.query(query).await?)
}

/// Compares the columns and all rows; returns how many rows there are.
async fn compare(source: &mut Conn, replica: &mut Conn, schema: &str, table: &str) -> Result<usize> {
    let columns = format!(
        "SELECT CONCAT_WS(' ', column_name, data_type, is_nullable, IFNULL(collation_name, '')) FROM information_schema.columns
         WHERE table_schema = '{schema}' AND table_name = '{table}' ORDER BY ordinal_position"
    );
    let plain = |columns: Vec<String>| -> Vec<String> { columns.into_iter().map(|c| c.replace("utf8mb3", "utf8").replace(" longtext ", " json ").replace(" json NO utf8mb4_bin", " json NO ").replace(" json YES utf8mb4_bin", " json YES ")).collect() };
    let (theirs_types, ours_types) = (names(source, &columns).await?, names(replica, &columns).await?);
    let (theirs, ours) = (plain(theirs_types.clone()), plain(ours_types.clone()));
    if theirs != ours {
        return Err(format!("{schema}.{table} has the columns {theirs:?} on the source, {ours:?} on the replica").into());
    }
    // MariaDB keeps a document as it was written, the replica in the form that MySQL shows.
    let is_json: Vec<bool> = theirs_types.iter().zip(&ours_types).map(|(theirs, ours)| theirs.contains(" longtext ") && ours.contains(" json ")).collect();
    let (theirs, ours) = (all(source, schema, table).await?, all(replica, schema, table).await?);
    if theirs.len() != ours.len() {
        return Err(format!("{schema}.{table} has {} rows on the source, {} on the replica", theirs.len(), ours.len()).into());
    }
    for (theirs, ours) in theirs.iter().zip(&ours) {
        if let Some(column) = (0..theirs.len()).find(|&column| theirs[column] != ours[column] && !(is_json[column] && same_document(&theirs[column], &ours[column]))) {
            return Err(format!("{schema}.{table}, row {}, column {column}: {} on the source, {} on the replica", shown(&theirs[0]), shown(&theirs[column]), shown(&ours[column])).into());
        }
    }
    Ok(theirs.len())
}

/// The rows as text, sorted by their bytes.
async fn all(connection: &mut Conn, schema: &str, table: &str) -> Result<Vec<Vec<Option<Vec<u8>>>>> {
    let rows: Vec<Row> = connection.query(format!("SELECT * FROM `{schema}`.`{table}`")).await?;
    let cell = |value: Value| match value {
        Value::Bytes(bytes) => Some(bytes),
        _ => None,
    };
    let mut rows: Vec<Vec<_>> = rows.into_iter().map(|row| row.unwrap().into_iter().map(cell).collect()).collect();
    rows.sort();
    Ok(rows)
}

fn same_document(theirs: &Option<Vec<u8>>, ours: &Option<Vec<u8>>) -> bool {
    let document = |cell: &Option<Vec<u8>>| serde_json::from_slice::<serde_json::Value>(cell.as_deref()?).ok();
    document(theirs).is_some_and(|theirs| Some(theirs) == document(ours))
}

fn shown(cell: &Option<Vec<u8>>) -> String {
    match cell {
        None => "NULL".into(),
        Some(bytes) => {
            let text: String = String::from_utf8_lossy(bytes).chars().take(200).collect();
            format!("'{text}' ({} bytes)", bytes.len())
        }
    }
}
