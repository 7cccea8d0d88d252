//! The sessions of a history, and who disturbs them.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Error};
use rand::Rng;
use rand::rngs::StdRng;

use super::graph::{End, Operation, Transaction};
use crate::Result;
use crate::golden::open;

/// What the sessions of a history share.
pub struct Load {
    url: String,
    level: &'static str,
    /// The next that nobody has written yet.
    numbers: AtomicU64,
    seats: Vec<Seat>,
}

/// A session's connection, by the server's number of it: a killed one is replaced.
#[derive(Default)]
struct Seat {
    connection: AtomicU32,
    killed: AtomicU32,
}

/// What an error has ended.
#[derive(PartialEq, Eq)]
enum Ended {
    Statement,
    Transaction,
    Connection,
}

impl Load {
    pub fn new(url: &str, level: &'static str, sessions: u64) -> Load {
        Load { url: url.into(), level, numbers: AtomicU64::new(1), seats: (0..sessions).map(|_| Seat::default()).collect() }
    }

    /// Kills statements and connections, until it is stopped.
    pub async fn disturb(&self, mut rng: StdRng) -> Result<()> {
        let mut connection = open(&self.url).await?;
        loop {
            tokio::time::sleep(Duration::from_millis(rng.random_range(5..60))).await;
            let seat = &self.seats[rng.random_range(0..self.seats.len())];
            let id = seat.connection.load(Ordering::SeqCst);
            let what = if rng.random_bool(0.7) {
                "QUERY"
            } else {
                seat.killed.store(id, Ordering::SeqCst);
                "CONNECTION"
            };
            match connection.query_drop(format!("KILL {what} {id}")).await {
                // Not connected yet, or not any more.
                Err(Error::Server(e)) if e.code == 1094 => {}
                other => other?,
            }
        }
    }

    /// One session's transactions.
    pub async fn work<O: Operation>(&self, seat: usize, mut rng: StdRng, count: usize) -> Result<Vec<Transaction<O>>> {
        let mut connection = self.connect(seat).await?;
        let mut done = Vec::new();
        while done.len() < count {
            let (transaction, intact) = self.transact(&mut connection, seat, &mut rng).await?;
            done.push(transaction);
            if !intact {
                connection = self.connect(seat).await?;
            }
        }
        Ok(done)
    }

    async fn connect(&self, seat: usize) -> Result<Conn> {
        let mut connection = open(&self.url).await?;
        let prepare = [
            String::from("USE histories"),
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {}", self.level),
            "SET SESSION innodb_lock_wait_timeout = 1, SESSION group_concat_max_len = 1048576".into(),
        ];
        for sql in prepare {
            connection.query_drop(sql).await?;
        }
        self.seats[seat].connection.store(connection.id(), Ordering::SeqCst);
        Ok(connection)
    }

    /// A transaction, and whether its connection can go on.
    async fn transact<O: Operation>(&self, connection: &mut Conn, seat: usize, rng: &mut StdRng) -> Result<(Transaction<O>, bool)> {
        let mut transaction = Transaction { number: self.numbers.fetch_add(1, Ordering::Relaxed), ops: Vec::new(), end: End::RolledBack };
        if let Err(e) = connection.query_drop("BEGIN").await {
            let ended = self.ended(e, connection, seat)?;
            return Ok((transaction, ended != Ended::Connection));
        }
        let reads_only = rng.random_bool(0.2);
        let mut goes_on = true;
        for _ in 0..rng.random_range(1..5) {
            goes_on = self.attempt(connection, seat, rng, reads_only, &mut transaction.ops).await?;
            if !goes_on {
                break;
            }
            if rng.random_bool(0.001) {
                // Longer than others wait for its locks.
                tokio::time::sleep(Duration::from_millis(1100)).await;
            }
        }
        if goes_on && rng.random_bool(0.9) && self.leave_number(connection, seat, &transaction).await? {
            transaction.end = End::Committed;
            if let Err(e) = connection.query_drop("COMMIT").await {
                self.ended(e, connection, seat)?;
                transaction.end = End::Unknown;
                return Ok((transaction, false));
            }
            return Ok((transaction, true));
        }
        let intact = match connection.query_drop("ROLLBACK").await {
            Ok(()) => true,
            Err(e) => {
                self.ended(e, connection, seat)?;
                false
            }
        };
        Ok((transaction, intact))
    }

    /// An operation, or none if its statement ended early. False if the transaction cannot go on.
    async fn attempt<O: Operation>(&self, connection: &mut Conn, seat: usize, rng: &mut StdRng, reads_only: bool, ops: &mut Vec<O>) -> Result<bool> {
        let before = ops.len();
        if let Err(e) = connection.query_drop("SAVEPOINT operation").await {
            return Ok(self.ended(e, connection, seat)? == Ended::Statement);
        }
        let Err(e) = O::operate(connection, rng, reads_only, &self.numbers, ops).await else {
            return Ok(true);
        };
        ops.truncate(before);
        if self.ended(e, connection, seat)? != Ended::Statement {
            return Ok(false);
        }
        // An operation is several statements, of which the first may be done.
        match connection.query_drop("ROLLBACK TO SAVEPOINT operation").await {
            Ok(()) => Ok(true),
            Err(e) => self.ended(e, connection, seat).map(|_| false),
        }
    }

    /// So that it is known in the end whether the transaction was committed, though nobody said so. False if it cannot go on.
    async fn leave_number<O: Operation>(&self, connection: &mut Conn, seat: usize, transaction: &Transaction<O>) -> Result<bool> {
        if !transaction.writes() {
            return Ok(true);
        }
        match connection.query_drop(format!("INSERT INTO ended VALUES ({})", transaction.number)).await {
            Ok(()) => Ok(true),
            Err(e) => self.ended(e, connection, seat).map(|_| false),
        }
    }

    /// What ended, if it may: a connection only if it was killed.
    fn ended(&self, error: Error, connection: &Conn, seat: usize) -> Result<Ended> {
        let killed = self.seats[seat].killed.load(Ordering::SeqCst) == connection.id();
        match &error {
            Error::Server(e) if e.code == 1205 || e.code == 1317 => Ok(Ended::Statement),
            Error::Server(e) if e.code == 1213 => Ok(Ended::Transaction),
            // What an idle one is told.
            Error::Server(e) if e.code == 1053 && killed => Ok(Ended::Connection),
            error if error.is_fatal() && killed => Ok(Ended::Connection),
            _ => Err(error.into()),
        }
    }
}
