//! Random histories of several sessions, and whether they are what the isolation level allows.
//!
//! Transactions append numbers to lists, add members to groups, and read both. A list tells in which order its numbers were appended, so from what
//! is read follows who depends on whom (Kingsbury and Alvaro, "Elle", 2020):
//!
//! | edge | |
//! |---|---|
//! | `ww` | B appended to a list right behind A |
//! | `wr` | B read what A wrote |
//! | `rw` | A read a list or a group without what B wrote: B came after |
//!
//! Groups are read by predicate (`WHERE grp = ...`), so a member that comes later is a phantom. What must not be:
//!
//! | level | |
//! |---|---|
//! | READ UNCOMMITTED | a circle of `ww` |
//! | READ COMMITTED | besides, reading what was rolled back or later changed by its writer; a circle of `ww` and `wr` |
//! | REPEATABLE READ | besides, a circle with one `rw` that begins at a transaction which only reads |
//! | SERIALIZABLE | any circle |
//!
//! REPEATABLE READ is MySQL's: transactions that write also read past their snapshot, so lost updates and skew are allowed.
//! At every level a transaction sees what it wrote itself.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Args;
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::Result;
use crate::golden::{connect, open};

#[derive(Args)]
pub struct Options {
    /// The server: mysql://user@host:port
    #[arg(long)]
    url: String,
    /// Sessions beside each other
    #[arg(long, default_value_t = 8)]
    sessions: u64,
    /// Transactions of each session, at each level
    #[arg(long, default_value_t = 150)]
    transactions: usize,
    /// The choice of operations; how they meet is up to the server
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const LISTS: u64 = 6;
const GROUPS: u64 = 4;

/// What a transaction did, and what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Op {
    Append { list: u64, value: u64 },
    ReadList { list: u64, values: Vec<u64> },
    Add { group: u64, member: u64 },
    ReadGroup { group: u64, members: BTreeSet<u64> },
}

#[derive(Clone, Debug, Default)]
struct Transaction {
    ops: Vec<Op>,
    committed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Ww,
    Wr,
    Rw,
}

pub async fn run(options: Options) -> Result<()> {
    for level in LEVELS {
        let mut admin = connect(&options.url, "histories").await?;
        admin.query_drop("CREATE TABLE lists (id INT PRIMARY KEY, v TEXT NOT NULL)").await?;
        admin.query_drop("CREATE TABLE members (id INT PRIMARY KEY, grp INT NOT NULL, KEY (grp))").await?;
        let numbers = Arc::new(AtomicU64::new(1));
        let mut sessions = Vec::new();
        for session in 0..options.sessions {
            let mut connection = open(&options.url).await?;
            connection.query_drop("USE histories").await?;
            connection.query_drop(format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await?;
            let (numbers, count) = (numbers.clone(), options.transactions);
            let seed = options.seed.wrapping_mul(1000).wrapping_add(session);
            sessions.push(tokio::spawn(async move { work(connection, StdRng::seed_from_u64(seed), count, &numbers).await }));
        }
        let mut history = Vec::new();
        for session in sessions {
            history.extend(session.await??);
        }
        history.push(read_all(&mut admin).await?);
        let committed = history.iter().filter(|t| t.committed).count();
        let wrong = violations(&history, level);
        println!("{level}: {committed} transactions committed, {} rolled back, {} violations (seed {})", history.len() - committed, wrong.len(), options.seed);
        if let Some(first) = wrong.first() {
            return Err(format!("{level}: {first}").into());
        }
        admin.query_drop("DROP DATABASE histories").await?;
    }
    Ok(())
}

/// One session's transactions.
async fn work(mut connection: Conn, mut rng: StdRng, count: usize, numbers: &AtomicU64) -> Result<Vec<Transaction>> {
    let mut done = Vec::new();
    for _ in 0..count {
        let mut transaction = Transaction::default();
        connection.query_drop("BEGIN").await?;
        let reads_only = rng.random_bool(0.2);
        let mut failed = false;
        for _ in 0..rng.random_range(1..5) {
            match operate(&mut connection, &mut rng, reads_only, numbers).await {
                Ok(op) => transaction.ops.push(op),
                Err(mysql_async::Error::Server(e)) if e.code == 1213 || e.code == 1205 => {
                    failed = true;
                    break;
                }
                Err(e) => return Err(e.into()),
            }
        }
        transaction.committed = !failed && rng.random_bool(0.9);
        connection.query_drop(if transaction.committed { "COMMIT" } else { "ROLLBACK" }).await?;
        done.push(transaction);
    }
    Ok(done)
}

async fn operate(connection: &mut Conn, rng: &mut StdRng, reads_only: bool, numbers: &AtomicU64) -> mysql_async::Result<Op> {
    let (list, group) = (rng.random_range(0..LISTS), rng.random_range(0..GROUPS));
    match rng.random_range(if reads_only { 4 } else { 0 }..8) {
        0 | 1 => {
            let value = numbers.fetch_add(1, Ordering::Relaxed);
            let sql = format!("INSERT INTO lists VALUES ({list}, '{value}') ON DUPLICATE KEY UPDATE v = CONCAT(v, ',{value}')");
            connection.query_drop(sql).await?;
            Ok(Op::Append { list, value })
        }
        2 | 3 => {
            let member = numbers.fetch_add(1, Ordering::Relaxed);
            // Out of order, so that members come into the gaps between others.
            let id = member * 7919 % 1_000_003;
            connection.query_drop(format!("INSERT INTO members VALUES ({id}, {group})")).await?;
            Ok(Op::Add { group, member: id })
        }
        4 | 5 => {
            let text: Option<String> = connection.query_first(format!("SELECT v FROM lists WHERE id = {list}")).await?;
            Ok(Op::ReadList { list, values: numbers_of(&text.unwrap_or_default()) })
        }
        n => {
            // By the index, and by reading all.
            let filter = if n == 6 { format!("grp = {group}") } else { format!("grp + 0 = {group}") };
            let members: Vec<u64> = connection.query(format!("SELECT id FROM members WHERE {filter}")).await?;
            Ok(Op::ReadGroup { group, members: members.into_iter().collect() })
        }
    }
}

fn numbers_of(text: &str) -> Vec<u64> {
    text.split(',').filter_map(|n| n.parse().ok()).collect()
}

/// The end, as a transaction that reads everything.
async fn read_all(connection: &mut Conn) -> Result<Transaction> {
    let mut ops = Vec::new();
    for list in 0..LISTS {
        let text: Option<String> = connection.query_first(format!("SELECT v FROM lists WHERE id = {list}")).await?;
        ops.push(Op::ReadList { list, values: numbers_of(&text.unwrap_or_default()) });
    }
    for group in 0..GROUPS {
        let members: Vec<u64> = connection.query(format!("SELECT id FROM members WHERE grp = {group}")).await?;
        ops.push(Op::ReadGroup { group, members: members.into_iter().collect() });
    }
    Ok(Transaction { ops, committed: true })
}

/// What of a history the level does not allow.
fn violations(history: &[Transaction], level: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let rank = LEVELS.iter().position(|l| *l == level).expect("a level of the list");
    for transaction in history {
        own_writes(transaction, &mut wrong);
    }
    if rank >= 1 {
        dirty_reads(history, &mut wrong);
    }
    let edges = dependencies(history, &mut wrong);
    let circle = |allowed: &dyn Fn(usize, Edge) -> bool| find_circle(&edges, history.len(), allowed);
    let found = match rank {
        0 => circle(&|_, edge| edge == Edge::Ww),
        1 => circle(&|_, edge| edge != Edge::Rw),
        // Of a circle with one `rw`, the rest leads from its end to its beginning.
        2 => circle(&|_, edge| edge != Edge::Rw).or_else(|| skew_of_readers(history, &edges)),
        _ => circle(&|_, _| true),
    };
    wrong.extend(found.map(|circle| describe(history, &edges, &circle)));
    wrong
}

/// A transaction reads its own writes.
fn own_writes(transaction: &Transaction, wrong: &mut Vec<String>) {
    let mut lists: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut groups: BTreeMap<u64, BTreeSet<u64>> = BTreeMap::new();
    for op in &transaction.ops {
        match op {
            Op::Append { list, value } => lists.entry(*list).or_default().push(*value),
            Op::Add { group, member } => groups.entry(*group).or_default().extend([*member]),
            Op::ReadList { list, values } => {
                if lists.get(list).is_some_and(|own| !values.ends_with(own)) {
                    wrong.push(format!("does not see its own appends: {transaction:?}"));
                }
            }
            Op::ReadGroup { group, members } => {
                if groups.get(group).is_some_and(|own| !own.is_subset(members)) {
                    wrong.push(format!("does not see its own members: {transaction:?}"));
                }
            }
        }
    }
}

/// Nobody reads what was rolled back, nor a list between two appends of one transaction.
fn dirty_reads(history: &[Transaction], wrong: &mut Vec<String>) {
    let mut writer = HashMap::new();
    let mut last: HashMap<(usize, u64), u64> = HashMap::new();
    for (n, transaction) in history.iter().enumerate() {
        for op in &transaction.ops {
            match op {
                Op::Append { list, value } => {
                    writer.insert(*value, (n, Some(*list)));
                    last.insert((n, *list), *value);
                }
                Op::Add { member, .. } => writer.extend([(member_key(*member), (n, None))]),
                _ => {}
            }
        }
    }
    for (n, transaction) in history.iter().enumerate() {
        for op in &transaction.ops {
            let read: Vec<u64> = match op {
                Op::ReadList { values, .. } => values.clone(),
                Op::ReadGroup { members, .. } => members.iter().map(|m| member_key(*m)).collect(),
                _ => continue,
            };
            for value in &read {
                match writer.get(value) {
                    Some((by, _)) if *by == n => {}
                    Some((by, _)) if !history[*by].committed => wrong.push(format!("reads {value}, which was rolled back: {transaction:?}")),
                    Some((by, Some(list))) if read.last() == Some(value) && last[&(*by, *list)] != *value => {
                        wrong.push(format!("reads {value}, behind which its writer appended more: {transaction:?}"));
                    }
                    Some(_) => {}
                    // Appended by a transaction that failed in that very statement.
                    None => wrong.push(format!("reads {value}, which nobody wrote: {transaction:?}")),
                }
            }
        }
    }
}

/// Members and list values in one space of numbers.
fn member_key(member: u64) -> u64 {
    member | 1 << 40
}

type Edges = BTreeMap<usize, BTreeSet<(usize, Edge)>>;

/// Who depends on whom among committed transactions.
fn dependencies(history: &[Transaction], wrong: &mut Vec<String>) -> Edges {
    let committed = || history.iter().enumerate().filter(|(_, t)| t.committed);
    let mut appended = HashMap::new();
    let mut added: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
    let mut order: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (n, transaction) in committed() {
        for op in &transaction.ops {
            match op {
                Op::Append { value, .. } => appended.extend([(*value, n)]),
                Op::Add { group, member } => added.entry(*group).or_default().push((*member, n)),
                _ => {}
            }
        }
    }
    // What was rolled back, and read at a level that allows it, orders nobody.
    let lasting = |values: &[u64]| values.iter().copied().filter(|value| appended.contains_key(value)).collect::<Vec<_>>();
    // The longest that was read is the order.
    for op in committed().flat_map(|(_, transaction)| &transaction.ops) {
        if let Op::ReadList { list, values } = op {
            let (values, longest) = (lasting(values), order.entry(*list).or_default());
            if values.len() > longest.len() {
                *longest = values;
            }
        }
    }
    let mut edges = Edges::new();
    let mut add = |from: usize, to: usize, edge: Edge| {
        if from != to {
            edges.entry(from).or_default().insert((to, edge));
        }
    };
    for values in order.values() {
        values.windows(2).for_each(|pair| add(appended[&pair[0]], appended[&pair[1]], Edge::Ww));
    }
    for (n, transaction) in committed() {
        for op in &transaction.ops {
            match op {
                Op::ReadList { list, values } => {
                    let values = lasting(values);
                    let all = order.get(list).map_or(&[][..], Vec::as_slice);
                    if !all.starts_with(&values) {
                        wrong.push(format!("list {list} is {all:?}, but somebody read {values:?}"));
                        continue;
                    }
                    if let Some(last) = values.last() {
                        add(appended[last], n, Edge::Wr);
                    }
                    if let Some(next) = all.get(values.len()) {
                        add(n, appended[next], Edge::Rw);
                    }
                }
                Op::ReadGroup { group, members } => {
                    for (member, by) in added.get(group).into_iter().flatten() {
                        match members.contains(member) {
                            true => add(*by, n, Edge::Wr),
                            false => add(n, *by, Edge::Rw),
                        }
                    }
                }
                _ => {}
            }
        }
    }
    edges
}

/// A circle of allowed edges.
fn find_circle(edges: &Edges, count: usize, allowed: &dyn Fn(usize, Edge) -> bool) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; count];
    for start in 0..count {
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        let next = |n: usize| edges.get(&n).into_iter().flatten().filter(|(_, e)| allowed(n, *e)).map(|(to, _)| *to).collect::<Vec<_>>();
        if marks[start] == Mark::New {
            marks[start] = Mark::Open;
            path.push((start, next(start)));
        }
        while let Some((n, left)) = path.last_mut() {
            let Some(to) = left.pop() else {
                marks[*n] = Mark::Done;
                path.pop();
                continue;
            };
            match marks[to] {
                Mark::Open => {
                    let from = path.iter().position(|(n, _)| *n == to).expect("an open one is on the path");
                    return Some(path[from..].iter().map(|(n, _)| *n).collect());
                }
                Mark::New => {
                    marks[to] = Mark::Open;
                    path.push((to, next(to)));
                }
                Mark::Done => {}
            }
        }
    }
    None
}

/// A transaction that only reads, and misses the work of one that it otherwise depends on.
fn skew_of_readers(history: &[Transaction], edges: &Edges) -> Option<Vec<usize>> {
    let writes = |n: usize| history[n].ops.iter().any(|op| matches!(op, Op::Append { .. } | Op::Add { .. }));
    (0..history.len()).filter(|&n| !writes(n)).find_map(|reader| find_circle(edges, history.len(), &|from, edge| edge != Edge::Rw || from == reader))
}

fn describe(history: &[Transaction], edges: &Edges, circle: &[usize]) -> String {
    let mut text = String::from("a circle:");
    for (n, from) in circle.iter().enumerate() {
        let to = circle[(n + 1) % circle.len()];
        let kinds: Vec<_> = edges[from].iter().filter(|(t, _)| *t == to).map(|(_, e)| e).collect();
        text += &format!("\n  {:?} {kinds:?}", history[*from].ops);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn append(list: u64, value: u64) -> Op {
        Op::Append { list, value }
    }

    fn list(list: u64, values: &[u64]) -> Op {
        Op::ReadList { list, values: values.into() }
    }

    fn group(group: u64, members: &[u64]) -> Op {
        Op::ReadGroup { group, members: members.iter().copied().collect() }
    }

    fn committed(transactions: &[&[Op]]) -> Vec<Transaction> {
        transactions.iter().map(|ops| Transaction { ops: ops.to_vec(), committed: true }).collect()
    }

    /// The levels that do not allow the history.
    fn forbidden(history: &[Transaction]) -> Vec<usize> {
        (0..4).filter(|&n| !violations(history, LEVELS[n]).is_empty()).collect()
    }

    #[test]
    fn a_serial_history_is_allowed() {
        let history = committed(&[&[append(1, 10), list(1, &[10])], &[list(1, &[10]), append(1, 11)], &[list(1, &[10, 11]), group(0, &[])]]);
        assert_eq!(forbidden(&history), [0; 0]);
    }

    #[test]
    fn anomalies_are_forbidden_where_they_are() {
        // Write skew, by items and by a predicate.
        let skew = committed(&[&[list(1, &[]), append(2, 20)], &[list(2, &[]), append(1, 10)], &[list(1, &[10]), list(2, &[20])]]);
        assert_eq!(forbidden(&skew), [3]);
        let phantom = committed(&[&[group(0, &[]), Op::Add { group: 1, member: 5 }], &[group(1, &[]), Op::Add { group: 0, member: 6 }]]);
        assert_eq!(forbidden(&phantom), [3]);
        // Read skew of a transaction that only reads.
        let read_skew = committed(&[&[append(1, 10), append(2, 20)], &[list(1, &[]), list(2, &[20])], &[list(1, &[10]), list(2, &[20])]]);
        assert_eq!(forbidden(&read_skew), [2, 3]);
        // Circular information flow.
        let circular = committed(&[&[append(1, 10), list(2, &[20])], &[append(2, 20), list(1, &[10])]]);
        assert_eq!(forbidden(&circular), [1, 2, 3]);
        // Write cycle.
        let cycle = committed(&[&[append(1, 10), append(2, 21)], &[append(1, 11), append(2, 20)], &[list(1, &[10, 11]), list(2, &[20, 21])]]);
        assert_eq!(forbidden(&cycle), [0, 1, 2, 3]);
    }

    #[test]
    fn dirty_reads_are_forbidden_above_read_uncommitted() {
        let mut aborted = committed(&[&[append(1, 10)], &[list(1, &[10])]]);
        aborted[0].committed = false;
        assert_eq!(forbidden(&aborted), [1, 2, 3]);
        let between = committed(&[&[append(1, 10), append(1, 11)], &[list(1, &[10])]]);
        assert!(forbidden(&between).starts_with(&[1]));
    }

    #[test]
    fn own_writes_are_seen_at_every_level() {
        assert_eq!(forbidden(&committed(&[&[append(1, 10), list(1, &[])]])), [0, 1, 2, 3]);
        assert_eq!(forbidden(&committed(&[&[Op::Add { group: 1, member: 3 }, group(1, &[])]])), [0, 1, 2, 3]);
    }
}
