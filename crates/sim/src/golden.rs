//! Golden answers.
//!
//! A script (`tests/golden/NAME.sql`) is statements, each ended by `;` at the end of a line, and `#` comments. `record` runs it
//! on a real MySQL and writes `NAME.slt`, in sqllogictest's form:
//!
//! ```text
//! statement ok 2            affected rows
//! INSERT INTO t VALUES (1), (2)
//!
//! statement error 1062 23000
//! INSERT INTO t VALUES (1)
//!
//! query                     a line a row, cells separated by tabs
//! SELECT 1/2, NULL
//! ----
//! 0.5000  NULL
//! ```
//!
//! `run` gives every statement to a server and compares. With `--protocol prepared` each statement that can be prepared goes
//! through COM_STMT_PREPARE and the binary protocol, with `--protocol patterns` as text whose values are taken for parameters. `--executor` sets
//! `highkey_executor`, so that both ways to run a query are compared.
//! Queries without ORDER BY are compared as multisets, as their order is nobody's promise.
//!
//! `$DIR` in a statement is a new, empty folder of this machine, each time a script runs: for files that the server writes and reads (`secure_file_priv` must be empty).

use std::fmt::Write as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use clap::{Args, Subcommand, ValueEnum};
use mysql_async::consts::{ColumnFlags, ColumnType};
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Opts, OptsBuilder, Row, Value};

use crate::Result;

/// Of `golden` and of `sessions`.
#[derive(Subcommand)]
pub enum Action {
    /// Run scripts on a real MySQL and write its answers beside them
    Record(Files),
    /// Compare what a server does with what was recorded
    Run {
        #[command(flatten)]
        files: Files,
        /// Wire protocol to use
        #[arg(long, default_value = "text")]
        protocol: Protocol,
        /// What runs queries; a server other than Highkey knows only auto
        #[arg(long, default_value = "auto")]
        executor: Executor,
    },
}

#[derive(Args)]
pub struct Files {
    /// The server: mysql://user@host:port
    #[arg(long)]
    pub url: String,
    /// Scripts (.sql, .sessions) to record, or what was recorded (.slt, .recorded) to compare with
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Protocol {
    Text,
    /// As text, with the values in it taken for parameters (`highkey_statement_patterns`)
    Patterns,
    Prepared,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    Auto,
    Fast,
    #[value(name = "datafusion")]
    DataFusion,
}

/// What a statement answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Ok { affected: u64 },
    Error { code: u16, state: String },
    Rows(Vec<String>),
}

/// A statement and the answer it should give.
struct Case {
    line: usize,
    sql: String,
    answer: Answer,
}

pub async fn run(action: Action) -> Result<()> {
    action.run(record, check).await
}

impl Action {
    /// Does with each file what is asked: `record` takes the server and a script, `check` gives how much of what was recorded the server passes and fails.
    pub async fn run(
        self,
        record: impl AsyncFn(&str, &Path) -> Result<()>,
        check: impl AsyncFn(&str, &Path, Protocol, Executor) -> Result<(usize, usize)>,
    ) -> Result<()> {
        match self {
            Action::Record(files) => {
                for file in &files.files {
                    record(files.url.as_str(), file.as_path()).await?;
                }
                Ok(())
            }
            Action::Run { files, protocol, executor } => {
                let (mut passed, mut failed) = (0, 0);
                for file in &files.files {
                    let (ok, bad) = check(files.url.as_str(), file.as_path(), protocol, executor).await?;
                    passed += ok;
                    failed += bad;
                }
                println!("{passed} passed, {failed} failed");
                if failed > 0 { Err(format!("{failed} differ").into()) } else { Ok(()) }
            }
        }
    }
}

/// A session with a new, empty schema.
pub async fn connect(url: &str, schema: &str) -> Result<Conn> {
    let mut connection = open(url).await?;
    let prepare = [
        format!("DROP DATABASE IF EXISTS {schema}"),
        format!("CREATE DATABASE {schema}"),
        format!("USE {schema}"),
        "SET time_zone = '+00:00'".into(),
    ];
    for sql in prepare {
        connection.query_drop(sql).await?;
    }
    Ok(connection)
}

pub async fn open(url: &str) -> Result<Conn> {
    let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false).client_found_rows(false);
    Ok(Conn::new(opts).await.map_err(|e| format!("{url}: {e}"))?)
}

/// Tells the server how statements are to be run.
pub async fn set_ways(connection: &mut Conn, protocol: Protocol, executor: Executor) -> Result<()> {
    if protocol == Protocol::Patterns {
        connection.query_drop("SET SESSION highkey_statement_patterns = always").await?;
    }
    match executor {
        Executor::Auto => {}
        Executor::Fast => connection.query_drop("SET SESSION highkey_executor = fast").await?,
        Executor::DataFusion => connection.query_drop("SET SESSION highkey_executor = datafusion").await?,
    }
    Ok(())
}

/// What `$DIR` stands for, until this is dropped.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Folder> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let number = MADE.fetch_add(1, Ordering::Relaxed);
        let folder = Folder(std::env::temp_dir().join(format!("highkey-golden-{}-{number}", std::process::id())));
        std::fs::create_dir(&folder.0)?;
        // The server may be somebody else.
        std::fs::set_permissions(&folder.0, std::fs::Permissions::from_mode(0o777))?;
        Ok(folder)
    }

    fn put_into(&self, sql: &str) -> String {
        sql.replace("$DIR", &self.0.to_string_lossy())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn record(url: &str, script: &Path) -> Result<()> {
    let mut connection = connect(url, "golden").await?;
    let folder = Folder::new()?;
    let mut out = format!("# Recorded by `highkey-sim golden record` from {}.\n", version(&mut connection).await?);
    for sql in statements(&std::fs::read_to_string(script)?) {
        let mut answer = ask(&mut connection, &folder.put_into(&sql), Protocol::Text).await?;
        if let Answer::Rows(rows) = &mut answer
            && sql.starts_with("SHOW CREATE TABLE")
        {
            rows.iter_mut().for_each(|row| *row = without_widths(row));
        }
        write_case(&mut out, &sql, &answer);
    }
    let target = script.with_extension("slt");
    std::fs::write(&target, out)?;
    println!("{}", target.display());
    Ok(())
}

/// A row of SHOW CREATE TABLE as MySQL writes it from 8.0.19 on: integers have no display width, but for TINYINT(1) and ZEROFILL.
fn without_widths(row: &str) -> String {
    let Some((name, hex)) = row.split_once("\t0x") else { return row.into() };
    let bytes: Vec<u8> = (0..hex.len()).step_by(2).filter_map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect();
    let text = String::from_utf8_lossy(&bytes);
    let mut parts = text.split("int(");
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let keeps = out.ends_with("tiny") && part.starts_with("1)") || part.split([',', '\n']).next().is_some_and(|rest| rest.contains("zerofill"));
        match part.split_once(')') {
            Some((width, rest)) if !keeps && width.bytes().all(|b| b.is_ascii_digit()) => out.extend(["int", rest]),
            _ => out.extend(["int(", part]),
        }
    }
    let hex: String = out.bytes().map(|b| format!("{b:02X}")).collect();
    format!("{name}\t0x{hex}")
}

pub async fn version(connection: &mut Conn) -> Result<String> {
    let version: Option<String> = connection.query_first("SELECT VERSION()").await?;
    Ok(format!("MySQL {}", version.unwrap_or_default()))
}

/// Statements end with `;` at the end of a line.
fn statements(script: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut current = String::new();
    for line in script.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
        match line.strip_suffix(';') {
            Some(last) => {
                current.push_str(last);
                all.push(std::mem::take(&mut current));
            }
            None => {
                current.push_str(line);
                current.push('\n');
            }
        }
    }
    all
}

fn write_case(out: &mut String, sql: &str, answer: &Answer) {
    out.push('\n');
    match answer {
        Answer::Ok { affected } => {
            let _ = writeln!(out, "statement ok {affected}\n{sql}");
        }
        Answer::Error { code, state } => {
            let _ = writeln!(out, "statement error {code} {state}\n{sql}");
        }
        Answer::Rows(rows) => {
            let _ = writeln!(out, "query\n{sql}\n----");
            rows.iter().for_each(|row| {
                let _ = writeln!(out, "{row}");
            });
        }
    }
}

/// Reads an .slt file back.
fn parse(text: &str) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let words: Vec<&str> = line.split(' ').collect();
        let mut body = Vec::new();
        while let Some((_, next)) = lines.next_if(|(_, next)| !next.is_empty()) {
            body.push(next);
        }
        let bad = || format!("line {}: not a case: {line}", number + 1);
        let (sql, answer) = match words.as_slice() {
            ["statement", "ok", affected] => (body.join("\n"), Answer::Ok { affected: affected.parse().map_err(|_| bad())? }),
            ["statement", "error", code, state] => {
                (body.join("\n"), Answer::Error { code: code.parse().map_err(|_| bad())?, state: state.to_string() })
            }
            ["query"] => {
                let split = body.iter().position(|line| *line == "----").ok_or_else(bad)?;
                let rows = body[split + 1..].iter().map(|row| row.to_string()).collect();
                (body[..split].join("\n"), Answer::Rows(rows))
            }
            _ => return Err(bad().into()),
        };
        cases.push(Case { line: number + 1, sql, answer });
    }
    Ok(cases)
}

async fn check(url: &str, file: &Path, protocol: Protocol, executor: Executor) -> Result<(usize, usize)> {
    let cases = parse(&std::fs::read_to_string(file)?).map_err(|e| format!("{}: {e}", file.display()))?;
    let mut connection = connect(url, "golden").await?;
    set_ways(&mut connection, protocol, executor).await?;
    let folder = Folder::new()?;
    let (mut passed, mut failed) = (0, 0);
    for (at, case) in cases.iter().enumerate() {
        // Hints warn when a statement is prepared: once it has been executed, nobody is told of that any more, by MySQL neither.
        let warned = case.sql.contains("/*+") && cases.get(at + 1).is_some_and(|next| next.sql == "SHOW WARNINGS");
        let protocol = if protocol == Protocol::Prepared && warned { Protocol::Text } else { protocol };
        let mut got = ask(&mut connection, &folder.put_into(&case.sql), protocol).await?;
        let mut want = case.answer.clone();
        if !case.sql.to_ascii_lowercase().contains("order by") {
            for answer in [&mut got, &mut want] {
                if let Answer::Rows(rows) = answer {
                    rows.sort();
                }
            }
        }
        if same(&got, &want) {
            passed += 1;
        } else {
            failed += 1;
            println!("{}:{}: {}\n  want {want:?}\n  got  {got:?}", file.display(), case.line, case.sql);
        }
    }
    Ok((passed, failed))
}

/// The same rows in the same order, or the same outcome.
pub fn same(got: &Answer, want: &Answer) -> bool {
    match (got, want) {
        (Answer::Rows(got), Answer::Rows(want)) => {
            got.len() == want.len() && got.iter().zip(want).all(|(got, want)| same_row(got, want))
        }
        _ => got == want,
    }
}

/// The binary protocol sends FLOAT and DOUBLE as numbers: those cells, and only those, are compared as numbers.
fn same_row(got: &str, want: &str) -> bool {
    let (got, want): (Vec<&str>, Vec<&str>) = (got.split('\t').collect(), want.split('\t').collect());
    got.len() == want.len()
        && got.iter().zip(&want).all(|(got, want)| match got.strip_prefix("float:").or(got.strip_prefix("double:")) {
            Some(number) => {
                let (a, b): (f64, f64) = (number.parse().unwrap_or(f64::NAN), want.parse().unwrap_or(f64::NAN));
                let tolerance = if got.starts_with("float:") { 1e-5 } else { 1e-14 };
                (a - b).abs() <= a.abs().max(b.abs()) * tolerance
            }
            None => got == want,
        })
}

/// What a statement answers; an error only where there is no answer.
pub async fn ask(connection: &mut Conn, sql: &str, protocol: Protocol) -> Result<Answer> {
    let answer = match protocol {
        Protocol::Text | Protocol::Patterns => text(connection, sql).await,
        // It tells of the statement before, which preparing it would be.
        Protocol::Prepared if ["SHOW WARNINGS", "SHOW COUNT(*) WARNINGS"].iter().any(|show| sql.to_ascii_uppercase().starts_with(show)) => text(connection, sql).await,
        Protocol::Prepared => match connection.prep(sql).await {
            Ok(statement) => {
                let answer = prepared(connection, &statement).await;
                connection.close(statement).await?;
                answer
            }
            // "This command is not supported in the prepared statement protocol yet".
            Err(mysql_async::Error::Server(e)) if e.code == 1295 => text(connection, sql).await,
            Err(e) => Err(e),
        },
    };
    match answer {
        Ok(answer) => Ok(answer),
        Err(mysql_async::Error::Server(e)) => Ok(Answer::Error { code: e.code, state: e.state }),
        Err(e) => Err(format!("{e}, in: {sql}").into()),
    }
}

async fn text(connection: &mut Conn, sql: &str) -> mysql_async::Result<Answer> {
    let mut result = connection.query_iter(sql).await?;
    let columns = result.columns();
    let rows: Vec<Row> = result.collect().await?;
    let affected = result.affected_rows();
    result.drop_result().await?;
    Ok(answer(columns.as_deref(), rows, affected))
}

async fn prepared(connection: &mut Conn, statement: &mysql_async::Statement) -> mysql_async::Result<Answer> {
    let mut result = connection.exec_iter(statement, ()).await?;
    let columns = result.columns();
    let rows: Vec<Row> = result.collect().await?;
    let affected = result.affected_rows();
    result.drop_result().await?;
    Ok(answer(columns.as_deref(), rows, affected))
}

fn answer(columns: Option<&[Column]>, rows: Vec<Row>, affected: u64) -> Answer {
    match columns.filter(|columns| !columns.is_empty()) {
        None => Answer::Ok { affected },
        Some(columns) => Answer::Rows(
            rows.into_iter()
                .map(|row| {
                    let cells: Vec<String> = row.unwrap().iter().zip(columns).map(|(value, column)| cell(value, column)).collect();
                    cells.join("\t")
                })
                .collect(),
        ),
    }
}

/// A cell as text: NULL, (empty), hexadecimal for what is not printable.
pub fn cell(value: &Value, column: &Column) -> String {
    let fraction = |micros: u32| match usize::from(column.decimals()) {
        n @ 1..=6 => format!(".{}", &format!("{micros:06}")[..n]),
        _ => String::new(),
    };
    match value {
        Value::NULL => "NULL".into(),
        Value::Bytes(bytes) if bytes.is_empty() => "(empty)".into(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) if !text.chars().any(|c| c.is_control()) => text.into(),
            _ => bytes.iter().fold("0x".into(), |mut out: String, b| {
                let _ = write!(out, "{b:02X}");
                out
            }),
        },
        Value::Int(n) => padded(n.to_string(), column),
        Value::UInt(n) => padded(n.to_string(), column),
        // A column with a fixed number of decimals is text with that many.
        Value::Float(f) if column.decimals() < 31 => format!("{f:.*}", usize::from(column.decimals())),
        Value::Double(f) if column.decimals() < 31 => fixed(*f, usize::from(column.decimals())),
        Value::Float(f) => format!("float:{f}"),
        Value::Double(f) => format!("double:{f}"),
        Value::Date(y, mo, d, h, mi, s, us) => {
            let date = format!("{y:04}-{mo:02}-{d:02}");
            if column.column_type() == ColumnType::MYSQL_TYPE_DATE { date } else { format!("{date} {h:02}:{mi:02}:{s:02}{}", fraction(*us)) }
        }
        Value::Time(negative, days, h, mi, s, us) => {
            let hours = days * 24 + u32::from(*h);
            format!("{}{hours:02}:{mi:02}:{s:02}{}", if *negative { "-" } else { "" }, fraction(*us))
        }
    }
}

/// An integer as clients show it.
fn padded(digits: String, column: &Column) -> String {
    if column.flags().contains(ColumnFlags::ZEROFILL_FLAG) { format!("{digits:0>width$}", width = column.column_length() as usize) } else { digits }
}

/// With so many digits behind the point, of which those that the number does not have are zeros.
fn fixed(number: f64, decimals: usize) -> String {
    let shortest = number.to_string();
    match shortest.split_once('.').unwrap_or((&shortest, "")) {
        (whole, digits) if decimals > 0 && digits.len() <= decimals => format!("{whole}.{digits:0<decimals$}"),
        _ => format!("{number:.decimals$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_has_no_digits_that_it_has_not() {
        assert_eq!(fixed(0.1 + 0.2, 20), "0.30000000000000004000");
        assert_eq!(fixed(1e23, 1), "100000000000000000000000.0");
        assert_eq!((fixed(2.675, 2).as_str(), fixed(-3.0, 1).as_str(), fixed(7.0, 0).as_str()), ("2.67", "-3.0", "7"));
    }

    #[test]
    fn cases_survive_writing_and_reading() {
        let cases = [
            ("SELECT 1,\n NULL", Answer::Rows(vec!["1\tNULL".into(), "2\tx".into()])),
            ("INSERT INTO t VALUES (1)", Answer::Error { code: 1062, state: "23000".into() }),
            ("DELETE FROM t", Answer::Ok { affected: 3 }),
            ("SELECT 1 WHERE 1=0", Answer::Rows(vec![])),
        ];
        let mut text = String::new();
        cases.iter().for_each(|(sql, answer)| write_case(&mut text, sql, answer));
        let read = parse(&text).unwrap();
        assert_eq!(read.len(), cases.len());
        for (read, (sql, answer)) in read.iter().zip(&cases) {
            assert_eq!((read.sql.as_str(), &read.answer), (*sql, answer));
        }
    }

    #[test]
    fn a_difference_is_a_difference() {
        assert!(same_row("double:0.5\tx", "0.5\tx"));
        assert!(!same_row("double:0.5\tx", "0.6\tx"));
        assert!(!same_row("0.50\tx", "0.5\tx"));
        assert!(!same(&Answer::Rows(vec!["1".into()]), &Answer::Rows(vec![])));
    }
}
