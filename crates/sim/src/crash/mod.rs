//! Kill -9 under load.
//!
//! Each cycle starts the server on the same data directory, verifies everything the oracle knows, loads it from several
//! connections and kills it at a random moment. The oracle lives in this process, so what it calls acknowledged was acknowledged
//! over the wire:
//! - every client owns keys of two tables; after a restart they hold its last acknowledged transaction, or the one whose
//!   COMMIT was under way, whole;
//! - transfers between shared accounts, with lock waits and deadlocks, keep the sum of all balances;
//! - clients that load, copy, index, alter and optimise tables of up to 60,000 rows find each statement done or not done;
//! - ids of acknowledged auto-increment inserts are there, once, and are never given again;
//! - clients whose transactions have two phases find prepared what they have prepared, and nothing else, over any number of kills, until it is ended;
//! - with a binary log (`-- --log-bin`), its events make exactly the rows that are there;
//! - CHECK TABLE finds nothing, on any table.
//!
//! With `--fail` a system call fails instead of the kill (`failing.rs`).
//!
//! The seed is printed; the same seed gives the same statements (not the same interleaving).

mod branches;
mod bulk;
mod failing;
mod logged;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, OptsBuilder, Row};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::Result;
use branches::Brancher;
use bulk::Filler;
use failing::Failures;
use logged::Logged;

#[derive(Args, Clone)]
pub struct Options {
    /// The server's binary
    #[arg(long)]
    binary: PathBuf,
    /// Data directory; must not exist
    #[arg(long)]
    datadir: PathBuf,
    /// TCP port to use; not one that the system gives to clients: a client that waits for the server would connect to itself
    #[arg(long, default_value_t = 23990)]
    port: u16,
    /// Starts and kills
    #[arg(long, default_value_t = 200)]
    cycles: u32,
    /// Clients with keys of their own; as many again make transfers and auto-increment inserts
    #[arg(long, default_value_t = 6)]
    clients: u64,
    /// No XA COMMIT ... ONE PHASE: a replica that is MariaDB 10.11 cannot apply MySQL's event for it (error 1399)
    #[arg(long)]
    no_one_phase: bool,
    /// Leave the binary log's files for others to read: they are not compared with the rows, and not purged
    #[arg(long)]
    keep_binlog: bool,
    /// Longest time under load before the kill, in ms
    #[arg(long, default_value_t = 600)]
    load_ms_max: u64,
    /// No kill: a system call of the server fails. CALL:ERROR, as fdatasync:EIO or pwrite64:ENOSPC; of several, one in each cycle. By strace, which must be
    /// allowed to attach to other processes
    #[arg(long)]
    fail: Vec<String>,
    /// Seed of statements and kill times
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// SQL run once before everything; may be given several times
    #[arg(long)]
    setup: Vec<String>,
    /// Shell command run before the load of each cycle, with the server up; its failure ends the run
    #[arg(long)]
    before_load: Option<String>,
    /// More options of the server
    #[arg(last = true)]
    server_options: Vec<String>,
}

const ACCOUNTS: u64 = 50;
const BALANCE: i64 = 1000;
const KEYS_PER_CLIENT: u64 = 40;
const TABLES: [&str; 5] = ["left_rows", "right_rows", "accounts", "numbered", "scratch"];

/// Rows of one client: (table, key) to (value, length of the pad).
type Rows = BTreeMap<(usize, u64), (i64, usize)>;

/// What one client knows.
struct Owner {
    id: u64,
    rng: StdRng,
    committed: Rows,
    /// The state if the COMMIT under way when the connection broke did take effect.
    in_doubt: Option<Rows>,
}

/// What is known of the auto-increment table.
#[derive(Default)]
struct Numbered {
    acknowledged: BTreeSet<u64>,
}

pub async fn run(options: Options) -> Result<()> {
    if options.datadir.exists() {
        return Err(format!("{} exists already", options.datadir.display()).into());
    }
    println!("seed {}", options.seed);
    let mut rng = StdRng::seed_from_u64(options.seed);
    let mut owners: Vec<Owner> = (0..options.clients)
        .map(|id| Owner { id, rng: StdRng::seed_from_u64(rng.random()), committed: Rows::new(), in_doubt: None })
        .collect();
    let fails = !options.fail.is_empty();
    let mut fillers: Vec<Filler> = (0..options.clients.div_ceil(3)).map(|id| Filler::new(id, rng.random(), fails)).collect();
    let mut branchers: Vec<Brancher> = (0..options.clients.div_ceil(2)).map(|id| Brancher::new(id, rng.random())).collect();
    let mut numbered = Numbered::default();
    let mut logged = Logged::default();
    let mut failures = Failures::default();
    let (mut transactions, mut outlived, begin) = (0_u64, 0, Instant::now());
    for cycle in 0..options.cycles {
        let mut server = start(&options)?;
        let mut control = connect_when_ready(&options, &mut server).await?;
        if cycle == 0 {
            for sql in &options.setup {
                control.query_drop(sql).await?;
            }
            create(&mut control).await?;
        }
        let told = |e: crate::Error| format!("cycle {cycle}, seed {}: {e}", options.seed);
        undone(&mut control).await.map_err(told)?;
        verify(&mut control, &mut owners, &mut fillers, &mut numbered).await.map_err(told)?;
        logged.verify(&mut control, &options).await.map_err(told)?;
        outlived += branches::verify(&mut control, &mut branchers, false).await.map_err(told)?;
        control.query_drop("SET GLOBAL local_infile = ON").await?;
        if let Some(command) = &options.before_load {
            let status = Command::new("sh").arg("-c").arg(command).status()?;
            if !status.success() {
                return Err(told(format!("{command}: {status}").into()).into());
            }
        }

        let mut clients = tokio::task::JoinSet::new();
        for owner in owners.drain(..) {
            let connection = connect(&options).await?;
            clients.spawn(async move { Done::Owner(own_rows(connection, owner).await) });
        }
        for filler in fillers.drain(..) {
            let connection = connect(&options).await?;
            clients.spawn(async move { Done::Filler(filler.fill(connection).await) });
        }
        for brancher in branchers.drain(..) {
            let options = options.clone();
            clients.spawn(async move { Done::Brancher(brancher.run(options).await) });
        }
        for i in 0..options.clients {
            let connection = connect(&options).await?;
            let seed = rng.random();
            match i % 3 {
                0 => clients.spawn(async move { Done::Numbered(insert_numbered(connection).await) }),
                1 => clients.spawn(async move { Done::Other(change_schema(connection, seed).await) }),
                _ => clients.spawn(async move { Done::Other(transfer(connection, seed).await) }),
            };
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..=options.load_ms_max.max(21)))).await;
        if fails {
            failures.fail_one(&options, &mut server, &mut rng).await.map_err(told)?;
        }
        drop(server);
        while let Some(done) = clients.join_next().await {
            match done? {
                Done::Owner((owner, n)) => {
                    transactions += n;
                    owners.push(owner);
                }
                Done::Filler((filler, n)) => {
                    transactions += n;
                    fillers.push(filler);
                }
                Done::Brancher((brancher, n)) => {
                    transactions += n;
                    branchers.push(brancher);
                }
                Done::Numbered(ids) => {
                    transactions += ids.len() as u64;
                    for id in ids {
                        if !numbered.acknowledged.insert(id) {
                            return Err(format!("cycle {cycle}: id {id} was given twice").into());
                        }
                    }
                }
                Done::Other(n) => transactions += n,
            }
        }
        owners.sort_by_key(|owner| owner.id);
        if cycle % 20 == 19 {
            println!("{} cycles, {transactions} transactions, {:.0} s", cycle + 1, begin.elapsed().as_secs_f64());
        }
    }
    let mut server = start(&options)?;
    let mut control = connect_when_ready(&options, &mut server).await?;
    undone(&mut control).await?;
    verify(&mut control, &mut owners, &mut fillers, &mut numbered).await?;
    logged.verify(&mut control, &options).await?;
    outlived += branches::verify(&mut control, &mut branchers, true).await?;
    drop(control);
    drop(server);
    println!("{} kills, {transactions} acknowledged transactions, {outlived} times one was prepared over a kill, nothing lost, nothing half done", options.cycles);
    if fails {
        println!("{}", failures.describe());
    }
    if logged.changes > 0 {
        println!("{} rows of the binary log made the same tables", logged.changes);
    }
    Ok(())
}

enum Done {
    Owner((Owner, u64)),
    Filler((Filler, u64)),
    Brancher((Brancher, u64)),
    Numbered(Vec<u64>),
    Other(u64),
}

/// A server that ends with who started it, also where that one fails: it would be taken for the next one's.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start(options: &Options) -> Result<Server> {
    let log = std::fs::OpenOptions::new().create(true).append(true).open(options.datadir.with_extension("log"))?;
    let child = Command::new(&options.binary)
        .arg("serve")
        .arg("--datadir")
        .arg(&options.datadir)
        .args(["--port", &options.port.to_string()])
        .args(&options.server_options)
        .stdout(Stdio::null())
        .stderr(log)
        .spawn()
        .map_err(|e| format!("{}: {e}", options.binary.display()))?;
    Ok(Server(child))
}

async fn connect(options: &Options) -> Result<Conn> {
    let opts = OptsBuilder::default().ip_or_hostname("127.0.0.1").tcp_port(options.port).user(Some("root")).prefer_socket(false);
    let mut connection = Conn::new(opts).await?;
    // The database does not exist before the first cycle.
    let _ = connection.query_drop("USE crash").await;
    Ok(connection)
}

async fn connect_when_ready(options: &Options, server: &mut Server) -> Result<Conn> {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        if let Ok(connection) = connect(options).await {
            return Ok(connection);
        }
        if let Some(status) = server.0.try_wait()? {
            return Err(format!("the server did not start: {status}; see {}", options.datadir.with_extension("log").display()).into());
        }
        if Instant::now() > deadline {
            return Err("the server did not become ready in 60 s".into());
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn create(connection: &mut Conn) -> Result<()> {
    connection.query_drop("CREATE DATABASE crash").await?;
    connection.query_drop("USE crash").await?;
    for table in &TABLES[..2] {
        let sql = format!("CREATE TABLE {table} (id BIGINT PRIMARY KEY, v BIGINT NOT NULL, pad LONGTEXT, KEY by_v (v), UNIQUE KEY by_v_id (v, id))");
        connection.query_drop(sql).await?;
    }
    connection.query_drop("CREATE TABLE accounts (id INT PRIMARY KEY, balance BIGINT NOT NULL)").await?;
    let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {BALANCE})")).collect();
    connection.query_drop(format!("INSERT INTO accounts VALUES {}", rows.join(","))).await?;
    connection.query_drop("CREATE TABLE numbered (id BIGINT AUTO_INCREMENT PRIMARY KEY, v INT)").await?;
    connection.query_drop("CREATE TABLE scratch (id INT PRIMARY KEY, v INT)").await?;
    branches::create(connection).await
}

async fn verify(connection: &mut Conn, owners: &mut [Owner], fillers: &mut [Filler], numbered: &mut Numbered) -> Result<()> {
    let mut found: BTreeMap<u64, Rows> = BTreeMap::new();
    for (index, table) in TABLES[..2].iter().enumerate() {
        let rows: Vec<(u64, i64, u64)> = connection.query(format!("SELECT id, v, LENGTH(pad) FROM {table}")).await?;
        for (id, v, length) in rows {
            found.entry(id / KEYS_PER_CLIENT).or_default().insert((index, id), (v, length as usize));
        }
    }
    for owner in owners {
        let rows = found.remove(&owner.id).unwrap_or_default();
        if let Some(in_doubt) = owner.in_doubt.take().filter(|in_doubt| *in_doubt == rows) {
            owner.committed = in_doubt;
        } else if rows != owner.committed {
            return Err(format!("client {}: found {rows:?}, acknowledged {:?}", owner.id, owner.committed).into());
        }
    }
    if let Some((client, rows)) = found.into_iter().next() {
        return Err(format!("rows of nobody: {client}: {rows:?}").into());
    }
    for filler in fillers {
        filler.verify(connection).await?;
    }
    let (count, sum): (u64, i64) = connection.query_first("SELECT COUNT(*), CAST(SUM(balance) AS SIGNED) FROM accounts").await?.ok_or("no row")?;
    if (count, sum) != (ACCOUNTS, ACCOUNTS as i64 * BALANCE) {
        return Err(format!("{count} accounts hold {sum}").into());
    }
    let ids: BTreeSet<u64> = connection.query("SELECT id FROM numbered").await?.into_iter().collect();
    if let Some(lost) = numbered.acknowledged.difference(&ids).next() {
        return Err(format!("the acknowledged row {lost} of numbered is lost").into());
    }
    // A row whose acknowledgement was under way is there from now on.
    numbered.acknowledged = ids;
    let tables: Vec<String> = connection.query("SHOW TABLES").await?;
    for table in tables {
        let rows: Vec<Row> = connection.query(format!("CHECK TABLE {table}")).await?;
        let text: Option<String> = rows.last().and_then(|row| row.get(3));
        if text.as_deref() != Some("OK") {
            return Err(format!("CHECK TABLE {table}: {text:?}").into());
        }
    }
    Ok(())
}

/// Transactions on a client's own keys, until the connection breaks.
async fn own_rows(mut connection: Conn, mut owner: Owner) -> (Owner, u64) {
    let mut acknowledged = 0;
    loop {
        let mut next = owner.committed.clone();
        let mut statements = vec!["BEGIN".to_string()];
        for _ in 0..owner.rng.random_range(1..=6) {
            statements.push(change(&mut owner.rng, owner.id, &mut next));
        }
        let give_up = owner.rng.random_ratio(1, 10);
        for sql in &statements {
            if connection.query_drop(sql).await.is_err() {
                return (owner, acknowledged);
            }
        }
        if give_up {
            if connection.query_drop("ROLLBACK").await.is_err() {
                return (owner, acknowledged);
            }
            continue;
        }
        if connection.query_drop("COMMIT").await.is_err() {
            owner.in_doubt = Some(next);
            return (owner, acknowledged);
        }
        owner.committed = next;
        acknowledged += 1;
    }
}

/// One random statement, applied to `rows` as well.
fn change(rng: &mut StdRng, client: u64, rows: &mut Rows) -> String {
    let table = rng.random_range(0..2);
    let id = client * KEYS_PER_CLIENT + rng.random_range(0..KEYS_PER_CLIENT);
    let v = rng.random_range(-1000..1000);
    // Mostly short, sometimes in overflow pages.
    let length = if rng.random_ratio(1, 20) { rng.random_range(8_000..60_000) } else { rng.random_range(0..300) };
    let name = TABLES[table];
    if rng.random_ratio(1, 4) {
        rows.remove(&(table, id));
        return format!("DELETE FROM {name} WHERE id = {id}");
    }
    let known = rows.insert((table, id), (v, length)).is_some();
    if known && rng.random_bool(0.5) {
        format!("UPDATE {name} SET v = {v}, pad = REPEAT('u', {length}) WHERE id = {id}")
    } else {
        format!("REPLACE INTO {name} VALUES ({id}, {v}, REPEAT('r', {length}))")
    }
}

/// What the crash left unfinished is undone in the background, and in reasonable time. What it left prepared stays.
async fn undone(control: &mut Conn) -> Result<()> {
    let begin = Instant::now();
    let prepared = branches::recovered(control).await?.len() as u64;
    loop {
        let open: Option<(String, u64)> = control.query_first("SHOW GLOBAL STATUS LIKE 'Highkey_open_transactions'").await?;
        match open {
            Some((_, open)) if open == prepared => return Ok(()),
            _ if begin.elapsed() > Duration::from_secs(30) => return Err(format!("{open:?} transactions of before the crash are not undone").into()),
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

async fn transfer(mut connection: Conn, seed: u64) -> u64 {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut acknowledged = 0;
    loop {
        let (from, to) = (rng.random_range(0..ACCOUNTS), rng.random_range(0..ACCOUNTS));
        let amount = rng.random_range(1..100);
        let statements = [
            "BEGIN".to_string(),
            format!("UPDATE accounts SET balance = balance - {amount} WHERE id = {from}"),
            format!("UPDATE accounts SET balance = balance + {amount} WHERE id = {to}"),
            "COMMIT".to_string(),
        ];
        let mut failed = false;
        for sql in &statements {
            match connection.query_drop(sql).await {
                Ok(()) => {}
                // A deadlock has rolled the transaction back; a lock wait timeout only the statement.
                Err(mysql_async::Error::Server(e)) if matches!(e.code, 1213 | 1205) => {
                    failed = true;
                    break;
                }
                Err(_) => return acknowledged,
            }
        }
        if failed {
            if connection.query_drop("ROLLBACK").await.is_err() {
                return acknowledged;
            }
        } else {
            acknowledged += 1;
        }
    }
}

async fn insert_numbered(mut connection: Conn) -> Vec<u64> {
    let mut ids = Vec::new();
    while connection.query_drop("INSERT INTO numbered (v) VALUES (1)").await.is_ok() {
        ids.extend(connection.last_insert_id());
    }
    ids
}

/// DDL that a kill may hit anywhere; CHECK TABLE and SHOW TABLES judge what is left.
async fn change_schema(mut connection: Conn, seed: u64) -> u64 {
    let name = format!("ddl_{seed}");
    let mut statements = 0;
    loop {
        for sql in [
            format!("DROP TABLE IF EXISTS {name}"),
            format!("CREATE TABLE {name} (id INT PRIMARY KEY AUTO_INCREMENT, v INT, t VARCHAR(100))"),
            format!("INSERT INTO {name} (v, t) VALUES (1, 'a'), (2, 'b'), (3, REPEAT('c', 90))"),
            format!("INSERT INTO {name} (v, t) SELECT v, t FROM {name}"),
            format!("CREATE INDEX by_v ON {name} (v)"),
            format!("ALTER TABLE {name} ADD COLUMN w INT DEFAULT 5"),
            format!("TRUNCATE TABLE {name}"),
            format!("DROP INDEX by_v ON {name}"),
            format!("DROP TABLE {name}"),
        ] {
            match connection.query_drop(sql).await {
                Ok(()) => statements += 1,
                Err(mysql_async::Error::Server(_)) => {}
                Err(_) => return statements,
            }
        }
    }
}
