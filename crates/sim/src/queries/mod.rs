//! Random queries over random tables, each run in every way that the server has; all must answer the same.
//!
//! The ways: as the server chooses, serially, in parallel whatever the cost, prepared, by the fast path where it can, by DataFusion
//! alone, by the plan that DataFusion has kept of the execution before, and on the same rows without secondary indexes; and against a real MySQL, if one is given, for what it knows. Rows are compared as a multiset unless ORDER BY leaves no choice:
//! what is planned at another time, or in another way, may read them in another order. Only those in parallel must come as those of one thread do, whether something asks for an order or not.
//! A seed makes the same tables and queries again. A query that fails is made smaller as long as it fails, and printed with what to run.
//! Several sets of tables are tried at once, each in a database of its own. How many statements ran in parallel is counted: a run in which
//! few did has shown nothing.

mod expr;
mod schema;
mod select;
mod shrink;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use mysql_async::consts::ColumnType;
use mysql_async::prelude::Queryable;
use mysql_async::{Column, Conn, Opts, OptsBuilder, Row, Value};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::sync::Mutex;

use self::expr::Gen;
use self::schema::Table;
use self::select::Query;
use crate::{Result, golden};

#[derive(Args)]
pub struct Options {
    /// Highkey: mysql://root@127.0.0.1:3306
    #[arg(long)]
    url: String,
    /// A MySQL 8.0 to compare with as well
    #[arg(long)]
    mysql: Option<String>,
    /// The first seed; each set of tables has the next one [default: random]
    #[arg(long)]
    seed: Option<u64>,
    /// Sets of tables
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    schemas: u64,
    /// Seconds after which no new set of tables is begun
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Queries of all sets after which no new set of tables is begun
    #[arg(long, default_value_t = u64::MAX, hide_default_value = true)]
    total: u64,
    /// Sets of tables tried at a time
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Queries over each set of tables
    #[arg(long, default_value_t = 40)]
    queries: u64,
    /// Only this query of each set
    #[arg(long)]
    only: Option<u64>,
    /// Differences after which to stop
    #[arg(long, default_value_t = 10)]
    failures: u64,
    /// Queries of a hundred that are compared with MySQL, if there is one
    #[arg(long, default_value_t = 50)]
    mysql_share: u64,
    /// Folder for a script with tables and query of each difference
    #[arg(long)]
    save: Option<PathBuf>,
    /// Print every query and what it answers in short
    #[arg(long)]
    verbose: bool,
}

/// A query that takes longer on a server is not compared. Milliseconds.
const LIMIT_MS: u32 = 10_000;
/// MySQL's "maximum statement execution time exceeded".
const TIMED_OUT: u16 = 3024;
/// Of a hundred queries, those that ran on several threads in the way that wants them to, at least.
const PARALLEL_SHARE: u64 = 20;

/// A way to run a query.
struct Way {
    name: &'static str,
    settings: &'static [&'static str],
    /// Prepared, and executed so often: the last answer counts. 0: sent as text.
    executions: usize,
    /// Its rows come as on one thread (`SERIAL`).
    as_serial: bool,
}

/// The way of one thread.
const SERIAL: &str = "serial";

const PARALLEL: &[&str] = &["SET SESSION force_parallel_execute = ON", "SET SESSION parallel_cost_threshold = 0", "SET SESSION parallel_default_dop = 3"];

const WAYS: [Way; 8] = [
    Way { name: "default", settings: &[], executions: 0, as_serial: false },
    Way { name: SERIAL, settings: &["SET SESSION force_parallel_execute = OFF"], executions: 0, as_serial: false },
    Way { name: "parallel", settings: PARALLEL, executions: 0, as_serial: true },
    Way { name: "prepared", settings: &[], executions: 1, as_serial: false },
    Way { name: "fast", settings: &["SET SESSION highkey_executor = fast"], executions: 0, as_serial: false },
    Way { name: "datafusion", settings: &["SET SESSION highkey_executor = datafusion"], executions: 0, as_serial: false },
    // By the plan that the first execution has left.
    Way { name: "again", settings: &["SET SESSION highkey_executor = datafusion"], executions: 2, as_serial: false },
    Way { name: "parallel again", settings: PARALLEL, executions: 2, as_serial: true },
];

/// On tables without secondary indexes: what an index finds is what a scan does.
const UNINDEXED: Way = Way { name: "unindexed", settings: &[], executions: 0, as_serial: false };

/// A connection of one way.
struct Runner {
    name: &'static str,
    executions: usize,
    as_serial: bool,
    connection: Conn,
}

/// What a query answers.
#[derive(Clone, Debug, PartialEq)]
enum Outcome {
    Rows(Vec<String>),
    Error { code: u16, message: String },
}

impl Outcome {
    fn short(&self) -> String {
        match self {
            Outcome::Rows(rows) => format!("{} rows", rows.len()),
            Outcome::Error { code, message } => format!("error {code}: {message}"),
        }
    }

    fn is_timeout(&self) -> bool {
        matches!(self, Outcome::Error { code: TIMED_OUT, .. })
    }

    /// The first difference, for people.
    fn difference(&self, other: &Outcome, total: bool) -> Option<String> {
        match (self, other) {
            (Outcome::Error { code: a, .. }, Outcome::Error { code: b, .. }) if a == b => None,
            (Outcome::Rows(mine), Outcome::Rows(theirs)) => {
                let (mut mine, mut theirs) = (mine.clone(), theirs.clone());
                if !total {
                    mine.sort_unstable();
                    theirs.sort_unstable();
                }
                let at = (0..mine.len().max(theirs.len())).find(|&at| mine.get(at) != theirs.get(at))?;
                let row = |rows: &[String]| rows.get(at).map_or("nothing".to_string(), |row| format!("[{row}]"));
                Some(format!(
                    "{} and {} rows; row {at}{}: {} and {}",
                    mine.len(),
                    theirs.len(),
                    if total { "" } else { " sorted" },
                    row(&mine),
                    row(&theirs)
                ))
            }
            _ => Some(format!("{} and {}", self.short(), other.short())),
        }
    }
}

impl Runner {
    async fn new(url: &str, database: &str, way: &Way) -> Result<Runner> {
        let mut connection = connect(url).await?;
        connection.query_drop(format!("USE {database}")).await?;
        for setting in way.settings {
            connection.query_drop(*setting).await.map_err(|e| format!("{setting}: {e}"))?;
        }
        let mut runner = Runner { name: way.name, executions: way.executions, as_serial: way.as_serial, connection };
        runner.limit(LIMIT_MS).await?;
        Ok(runner)
    }

    /// How long a query may take, in milliseconds.
    async fn limit(&mut self, ms: u32) -> Result<()> {
        Ok(self.connection.query_drop(format!("SET max_execution_time = {ms}")).await?)
    }

    async fn ask(&mut self, sql: &str) -> Result<Outcome> {
        let asked = if self.executions > 0 {
            match self.connection.prep(sql).await {
                Ok(statement) => {
                    let mut answer = rows(self.connection.exec_iter(&statement, ()).await).await;
                    for _ in 1..self.executions {
                        answer = rows(self.connection.exec_iter(&statement, ()).await).await;
                    }
                    self.connection.close(statement).await?;
                    answer
                }
                Err(e) => Err(e),
            }
        } else {
            rows(self.connection.query_iter(sql).await).await
        };
        match asked {
            Ok(rows) => Ok(Outcome::Rows(rows)),
            Err(mysql_async::Error::Server(e)) => Ok(Outcome::Error { code: e.code, message: e.message }),
            Err(e) => Err(format!("{}: {e}, in: {sql}", self.name).into()),
        }
    }
}

async fn rows<P: mysql_async::prelude::Protocol>(
    result: mysql_async::Result<mysql_async::QueryResult<'_, '_, P>>,
) -> mysql_async::Result<Vec<String>> {
    let mut result = result?;
    let columns = result.columns().unwrap_or_default();
    let rows: Vec<Row> = result.collect().await?;
    result.drop_result().await?;
    Ok(rows
        .into_iter()
        .map(|row| row.unwrap().iter().zip(columns.iter()).map(|(v, c)| cell(v, c)).collect::<Vec<_>>().join("\t"))
        .collect())
}

/// A cell as text, the same by both protocols: doubles, which are text in one and bits in the other, are parsed.
fn cell(value: &Value, column: &Column) -> String {
    let double = |text: &[u8]| std::str::from_utf8(text).ok().and_then(|t| t.parse::<f64>().ok());
    match (column.column_type(), value) {
        (ColumnType::MYSQL_TYPE_FLOAT | ColumnType::MYSQL_TYPE_DOUBLE, Value::Bytes(text)) => {
            double(text).map_or("not a number".into(), |d| format!("{d:?}"))
        }
        (_, Value::Float(f)) => format!("{:?}", f64::from(*f)),
        (_, Value::Double(d)) => format!("{d:?}"),
        _ => golden::cell(value, column),
    }
}

/// With settings that both servers have.
async fn connect(url: &str) -> Result<Conn> {
    let opts = OptsBuilder::from_opts(Opts::from_url(url)?).prefer_socket(false);
    let mut connection = Conn::new(opts).await.map_err(|e| format!("{url}: {e}"))?;
    for sql in ["SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci", "SET time_zone = '+00:00'"] {
        connection.query_drop(sql).await.map_err(|e| format!("{sql}: {e}"))?;
    }
    Ok(connection)
}

async fn set_up(url: &str, database: &str, tables: &[Table], indexed: bool) -> Result<()> {
    let mut connection = connect(url).await?;
    let fresh = [format!("DROP DATABASE IF EXISTS {database}"), format!("CREATE DATABASE {database}"), format!("USE {database}")];
    for sql in fresh.iter().chain(tables.iter().flat_map(|t| t.setup(indexed))) {
        connection.query_drop(sql).await.map_err(|e| format!("{url}: {e}, in: {}", sql.chars().take(2000).collect::<String>()))?;
    }
    Ok(())
}

/// Errors that no query of ours deserves: syntax, an internal error, a feature that is missing.
const NEVER: [u16; 3] = [1064, 1105, 1235];

/// What a run has come to.
#[derive(Default)]
struct Counts {
    queries: AtomicU64,
    failures: AtomicU64,
    /// With rows, and without.
    answered: AtomicU64,
    empty: AtomicU64,
    /// That all ways agree on.
    errors: AtomicU64,
    too_long: AtomicU64,
    /// Compared with MySQL.
    with_mysql: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// The server's counters of parallel execution.
async fn parallel_counters(url: &str) -> Result<BTreeMap<String, u64>> {
    let rows: Vec<(String, u64)> = connect(url).await?.query("SHOW GLOBAL STATUS LIKE 'PQ\\_%'").await?;
    Ok(rows.into_iter().collect())
}

pub async fn run(options: Options) -> Result<()> {
    let first = options.seed.unwrap_or_else(|| u64::from(rand::random::<u32>()));
    println!("queries: seed {first}");
    let before = parallel_counters(&options.url).await?;
    let (start, counts, next, telling) = (Instant::now(), Counts::default(), AtomicU64::new(0), Mutex::new(()));
    let job = |number: usize| {
        let (options, counts, next, telling) = (&options, &counts, &next, &telling);
        async move {
            loop {
                let over = counts.failures.load(Ordering::Relaxed) >= options.failures || counts.queries.load(Ordering::Relaxed) >= options.total;
                let set = next.fetch_add(1, Ordering::Relaxed);
                if over || set >= options.schemas || start.elapsed() >= Duration::from_secs(options.seconds) {
                    return Ok::<(), crate::Error>(());
                }
                schema(options, &format!("highkey_queries_{number}"), first + set, counts, telling).await?;
            }
        }
    };
    futures::future::try_join_all((0..options.jobs.max(1)).map(job)).await?;
    let Counts { queries, failures, answered, empty, errors, too_long, with_mysql } = counts;
    let (queries, failures) = (queries.into_inner(), failures.into_inner());
    println!(
        "queries: {queries} queries in {} s, {} with rows, {} without, {} errors, {} took too long, {} compared with MySQL; {failures} differ",
        start.elapsed().as_secs(),
        answered.into_inner(),
        empty.into_inner(),
        errors.into_inner(),
        too_long.into_inner(),
        with_mysql.into_inner(),
    );
    let after = parallel_counters(&options.url).await?;
    let more = |name: &str| after.get(name).copied().unwrap_or(0).saturating_sub(before.get(name).copied().unwrap_or(0));
    let serial: Vec<String> =
        after.keys().filter(|name| name.starts_with("PQ_serial_")).map(|name| format!("{name} {}", more(name))).collect();
    let parallel = more("PQ_stmt_executed");
    println!("queries: {parallel} statements in parallel; {}", serial.join(", "));
    if failures > 0 {
        return Err(format!("{failures} queries differ").into());
    }
    if options.only.is_none() && parallel * 100 < queries * PARALLEL_SHARE {
        return Err(format!("only {parallel} statements ran in parallel for {queries} queries").into());
    }
    Ok(())
}

/// One set of tables and its queries.
async fn schema(options: &Options, database: &str, seed: u64, counts: &Counts, telling: &Mutex<()>) -> Result<()> {
    let tables = schema::tables(seed);
    set_up(&options.url, database, &tables, true).await?;
    let mut runners = Vec::new();
    for way in &WAYS {
        runners.push(Runner::new(&options.url, database, way).await?);
    }
    let unindexed = format!("{database}_unindexed");
    set_up(&options.url, &unindexed, &tables, false).await?;
    runners.push(Runner::new(&options.url, &unindexed, &UNINDEXED).await?);
    let mut mysql = None;
    if let Some(url) = &options.mysql {
        set_up(url, database, &tables, true).await?;
        mysql = Some(Runner::new(url, database, &Way { name: "MySQL", settings: &[], executions: 0, as_serial: false }).await?);
    }
    for number in options.only.map_or(0..options.queries, |only| only..only + 1) {
        if counts.failures.load(Ordering::Relaxed) >= options.failures {
            break;
        }
        let mut rng = StdRng::seed_from_u64(seed << 20 | number);
        // What MySQL 8.0.12 lacks is not tried on it; the other queries may have it.
        let old = mysql.is_some() && number * 37 % 100 < options.mysql_share;
        let query = Gen::new(&mut rng, &tables, old).query();
        // MySQL 8.0.12 loses rows of windows over large tables that have TEXT columns.
        let rows = tables.iter().map(|t| t.rows).max().unwrap_or(0);
        let with_mysql = mysql.as_mut().filter(|_| old && !(rows > 10_000 && query.sql().contains(" OVER (")));
        counts.with_mysql.fetch_add(u64::from(with_mysql.is_some()), Ordering::Relaxed);
        let found = compare(&mut runners, with_mysql, &query.sql(), Order::of(&query)).await?;
        count(&counts.queries);
        count(match &found.first {
            outcome if outcome.is_timeout() => &counts.too_long,
            Outcome::Rows(rows) if rows.is_empty() => &counts.empty,
            Outcome::Rows(_) => &counts.answered,
            Outcome::Error { .. } => &counts.errors,
        });
        if options.verbose {
            println!("{seed}/{number}: {}\n    {}", query.sql(), found.first.short());
        }
        if let Some(difference) = found.difference {
            count(&counts.failures);
            let smaller = shrink::shrink(query.clone(), difference.error, &mut runners, mysql.as_mut().filter(|_| old)).await?;
            let _telling = telling.lock().await;
            tell(options, seed, number, &tables, &query, &difference.text, smaller.as_ref())?;
        }
    }
    Ok(())
}

/// What is known of the order of a query's rows.
#[derive(Clone, Copy)]
struct Order {
    /// ORDER BY leaves no choice.
    total: bool,
    /// It is the same on any number of threads.
    known: bool,
}

impl Order {
    fn of(query: &Query) -> Order {
        Order { total: query.total, known: query.has_order() }
    }
}

struct Found {
    first: Outcome,
    difference: Option<Difference>,
}

/// What went wrong.
struct Difference {
    /// The error's code where one way ended in an error; a smaller query must show the same.
    error: Option<u16>,
    text: String,
}

impl Difference {
    fn new(outcomes: [&Outcome; 2], text: String) -> Option<Difference> {
        let error = outcomes.iter().find_map(|o| if let Outcome::Error { code, .. } = o { Some(*code) } else { None });
        Some(Difference { error, text })
    }
}

/// The way, of those before, that has answered something else, and what differs: the first of them, or for the order of rows that a way has as on one thread, that one.
fn differs<'a>(before: &'a [(&'static str, Outcome)], as_serial: bool, outcome: &Outcome, order: Order) -> Option<(&'static str, &'a Outcome, String)> {
    let (first, reference) = before.first()?;
    if let Some(difference) = reference.difference(outcome, order.total) {
        return Some((*first, reference, difference));
    }
    let (serial, other) = before.iter().find(|(name, other)| as_serial && order.known && *name == SERIAL && !other.is_timeout())?;
    Some((*serial, other, other.difference(outcome, true)?))
}

/// Runs a query in all ways. What takes too long somewhere is not compared; errors of MySQL are its own.
async fn compare(runners: &mut [Runner], mysql: Option<&mut Runner>, sql: &str, order: Order) -> Result<Found> {
    let mut outcomes: Vec<(&'static str, Outcome)> = Vec::new();
    for runner in runners.iter_mut() {
        let outcome = runner.ask(sql).await?;
        let timeout = outcome.is_timeout();
        if let Some((name, other, difference)) = differs(&outcomes, runner.as_serial, &outcome, order).filter(|_| !timeout) {
            let difference = Difference::new([other, &outcome], format!("{name} and {}: {difference}", runner.name));
            return Ok(Found { difference, first: outcomes[0].1.clone() });
        }
        outcomes.push((runner.name, outcome));
        if timeout && outcomes.len() == 1 {
            break;
        }
    }
    let (_, first) = outcomes.into_iter().next().ok_or("no way to run a query")?;
    if let Outcome::Error { code, message } = &first
        && NEVER.contains(code)
    {
        return Ok(Found { difference: Difference::new([&first, &first], format!("error {code}: {message}")), first });
    }
    if let Some(mysql) = mysql.filter(|_| !first.is_timeout()) {
        let outcome = mysql.ask(sql).await?;
        if let (Outcome::Rows(_), Some(difference)) = (&outcome, first.difference(&outcome, order.total)) {
            return Ok(Found { difference: Difference::new([&first, &outcome], format!("Highkey and MySQL: {difference}")), first });
        }
    }
    Ok(Found { first, difference: None })
}

fn tell(
    options: &Options,
    seed: u64,
    number: u64,
    tables: &[Table],
    query: &Query,
    difference: &str,
    smaller: Option<&(String, String)>,
) -> Result<()> {
    println!("DIFFERENT: --seed {seed} --only {number}: {difference}\n  {}", query.sql());
    if let Some((sql, difference)) = smaller {
        println!("  smaller: {sql}\n    {difference}");
    }
    if let Some(folder) = &options.save {
        std::fs::create_dir_all(folder)?;
        let used = tables.iter().flat_map(|t| t.setup(true));
        let mut script = String::from("SET NAMES utf8mb4 COLLATE utf8mb4_0900_ai_ci;\nSET time_zone = '+00:00';\n");
        used.chain([&query.sql()]).chain(smaller.map(|s| &s.0)).for_each(|sql| script += &format!("{sql};\n"));
        std::fs::write(folder.join(format!("{seed}-{number}.sql")), script)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_makes_the_same_again_and_all_parentheses_close() {
        let make = |seed| {
            let tables = schema::tables(seed);
            let mut rng = StdRng::seed_from_u64(seed);
            let query = |_| Gen::new(&mut rng, &tables, seed % 2 == 0).query().sql();
            let mut all: Vec<String> = tables.iter().flat_map(|t| t.setup(true).cloned()).collect();
            all.extend((0..50).map(query));
            all
        };
        for seed in 0..8 {
            let (all, again) = (make(seed), make(seed));
            assert_eq!(all, again);
            for sql in all {
                assert_eq!(sql.matches('(').count(), sql.matches(')').count(), "{sql}");
            }
        }
    }

    #[test]
    fn rows_are_a_multiset_unless_ordered() {
        let rows = |rows: &[&str]| Outcome::Rows(rows.iter().map(|r| r.to_string()).collect());
        let error = |code| Outcome::Error { code, message: "no".into() };
        assert_eq!(rows(&["1", "2"]).difference(&rows(&["2", "1"]), false), None);
        assert!(rows(&["1", "2"]).difference(&rows(&["2", "1"]), true).is_some());
        assert!(rows(&["1", "2"]).difference(&rows(&["1", "2", "2"]), false).is_some());
        assert_eq!(error(1690).difference(&error(1690), true), None);
        assert!(error(1690).difference(&error(1064), false).is_some());
        assert!(error(1690).difference(&rows(&[]), false).is_some());
    }

    #[test]
    fn rows_in_another_order_differ_where_it_is_said_or_as_on_one_thread() {
        let rows = |rows: &[&str]| Outcome::Rows(rows.iter().map(|r| r.to_string()).collect());
        let before = [("default", rows(&["1", "2"])), (SERIAL, rows(&["2", "1"]))];
        let (none, total) = (Order { total: false, known: true }, Order { total: true, known: true });
        let from = |as_serial, order| differs(&before, as_serial, &rows(&["1", "2"]), order).map(|(name, ..)| name);
        assert_eq!((from(false, none), from(true, none)), (None, Some(SERIAL)));
        assert_eq!(from(true, Order { known: false, ..none }), None);
        assert_eq!(differs(&before, false, &rows(&["2", "1"]), total).map(|(name, ..)| name), Some("default"));
        assert_eq!(differs(&before, false, &rows(&["1", "3"]), none).map(|(name, ..)| name), Some("default"));
    }
}
