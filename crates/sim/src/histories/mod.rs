//! Random histories of several sessions, and whether they are what the isolation level allows.
//!
//! Sessions do random transactions, some of which are rolled back, killed, chosen to end a deadlock or tired of waiting for a lock, and tell what they read.
//! Values are written once only and everything that is read tells which versions it is of, so it follows who depends on whom (Kingsbury and Alvaro, "Elle", 2020):
//!
//! | edge | |
//! |---|---|
//! | `ww` | B wrote the version behind A's, or only locked it; or A only locked the version that B replaced |
//! | `wr` | B read A's version |
//! | `rw` | A read a version that B replaced: B came after |
//!
//! There are two kinds of histories, `lists` and `registers`; `graph` judges both. What must not be:
//!
//! | level | |
//! |---|---|
//! | READ UNCOMMITTED | a circle of `ww` |
//! | READ COMMITTED | besides, reading what was rolled back or later changed by its writer; a circle of `ww` and `wr` |
//! | REPEATABLE READ | besides, a circle with one `rw` that leaves a transaction by what it read and comes back by what it read |
//! | SERIALIZABLE | any circle |
//!
//! REPEATABLE READ is MySQL's: what a transaction reads without locks is of one moment, but it writes and locks past its snapshot, so lost updates and skew are allowed.
//! At every level a transaction sees what it wrote itself, two never replace the same version, and what was committed lasts.
//!
//! A commit without an answer may have been one: each transaction that writes leaves its number in a table, which says so in the end.

mod graph;
mod lists;
mod load;
mod registers;

use std::collections::BTreeSet;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::Result;
use crate::golden::connect;
use graph::{End, Operation, Transaction};
use load::Load;

#[derive(Args)]
pub struct Options {
    /// The server: mysql://user@host:port
    #[arg(long)]
    url: String,
    /// What transactions read and write; both kinds if left out
    #[arg(long)]
    kind: Option<Kind>,
    /// Sessions beside each other
    #[arg(long, default_value_t = 8)]
    sessions: u64,
    /// Transactions of each session, at each level, of each kind
    #[arg(long, default_value_t = 150)]
    transactions: usize,
    /// The choice of operations; how they meet is up to the server
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// Lists that are appended to, and groups of members
    Lists,
    /// Rows whose value is replaced, and ranges that rows come into and leave
    Registers,
}

const LEVELS: [&str; 4] = ["READ UNCOMMITTED", "READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

pub async fn run(options: Options) -> Result<()> {
    for level in 0..LEVELS.len() {
        if options.kind != Some(Kind::Registers) {
            judge::<lists::Op>(&options, level, "lists").await?;
        }
        if options.kind != Some(Kind::Lists) {
            judge::<registers::Op>(&options, level, "registers").await?;
        }
    }
    Ok(())
}

/// One history, at the level of that place in the list.
async fn judge<O: Operation>(options: &Options, level: usize, kind: &str) -> Result<()> {
    let mut admin = connect(&options.url, "histories").await?;
    for sql in O::TABLES.iter().copied().chain(["CREATE TABLE ended (id BIGINT PRIMARY KEY)"]) {
        admin.query_drop(sql).await?;
    }
    let load = Arc::new(Load::new(&options.url, LEVELS[level], options.sessions));
    let rng = |number: u64| StdRng::seed_from_u64(options.seed.wrapping_mul(1000).wrapping_add(number));
    let (disturbance, choice) = (load.clone(), rng(options.sessions));
    let disturbance = tokio::spawn(async move { disturbance.disturb(choice).await });
    let mut sessions = Vec::new();
    for seat in 0..options.sessions {
        let (load, choice, count) = (load.clone(), rng(seat), options.transactions);
        sessions.push(tokio::spawn(async move { load.work::<O>(seat as usize, choice, count).await }));
    }
    let mut history: Vec<Transaction<O>> = Vec::new();
    for session in sessions {
        history.extend(session.await??);
    }
    if disturbance.is_finished() {
        disturbance.await??;
    } else {
        disturbance.abort();
    }

    let unknown = history.iter().filter(|t| t.end == End::Unknown).count();
    let mut wrong = finish(&mut admin, &mut history).await?;
    wrong.extend(graph::violations(&history, level));
    wrong.extend(graph::lost(&history));
    let committed = history.iter().filter(|t| t.committed()).count();
    println!(
        "{}, {kind}: {committed} transactions committed, {} rolled back, {unknown} of both without an answer, {} violations (seed {})",
        LEVELS[level],
        history.len() - committed,
        wrong.len(),
        options.seed
    );
    if let Some(first) = wrong.first() {
        return Err(format!("{}, {kind}: {first}", LEVELS[level]).into());
    }
    admin.query_drop("DROP DATABASE histories").await?;
    Ok(())
}

/// Adds to the history a transaction that reads everything, behind all that still end, and settles what has no answer. Gives what contradicts the answers.
async fn finish<O: Operation>(admin: &mut Conn, history: &mut Vec<Transaction<O>>) -> Result<Vec<String>> {
    admin.query_drop("BEGIN").await?;
    let ops = O::read_all(admin).await?;
    let ended: Vec<u64> = admin.query("SELECT id FROM ended FOR SHARE").await?;
    admin.query_drop("COMMIT").await?;
    let wrong = settle(history, &ended.into_iter().collect());
    history.push(Transaction { number: 0, ops, end: End::Committed });
    Ok(wrong)
}

fn settle<O: Operation>(history: &mut [Transaction<O>], ended: &BTreeSet<u64>) -> Vec<String> {
    let mut wrong = Vec::new();
    for transaction in history {
        let lasts = ended.contains(&transaction.number);
        match transaction.end {
            End::Unknown => transaction.end = if lasts { End::Committed } else { End::RolledBack },
            End::Committed if !lasts && transaction.writes() => wrong.push(format!("was committed, and is lost: {transaction:?}")),
            End::RolledBack if lasts => wrong.push(format!("was rolled back, and lasts: {transaction:?}")),
            End::Committed | End::RolledBack => {}
        }
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histories::lists::Op;

    #[test]
    fn commits_without_an_answer_are_settled_by_what_lasts() {
        let transaction = |number, end| Transaction { number, ops: vec![Op::Append { list: 1, value: number }], end };
        let mut history = [transaction(1, End::Unknown), transaction(2, End::Unknown), transaction(3, End::Committed), transaction(4, End::RolledBack)];
        let mut kept = history.clone();
        assert_eq!(settle(&mut kept, &BTreeSet::from([1, 3])), [""; 0]);
        assert_eq!(kept.map(|t| t.end), [End::Committed, End::RolledBack, End::Committed, End::RolledBack]);
        assert_eq!(settle(&mut history, &BTreeSet::from([4])).len(), 2, "one that was acknowledged is lost, one that was rolled back lasts");
    }
}
