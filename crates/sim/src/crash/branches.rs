//! Clients whose transactions have two phases: what was prepared and acknowledged is prepared after a kill, until somebody ends it; what was not is
//! there whole or not at all; and an end that was under way has happened or has not.

use std::collections::{BTreeMap, BTreeSet};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::rngs::StdRng;
use rand::seq::IteratorRandom;
use rand::{Rng, SeedableRng};

use super::{Options, connect};
use crate::Result;

const KEYS: u64 = 60;
/// Prepared by one client at most: the rest of its keys stays free.
const PREPARED_MAX: usize = 6;

/// Key to (value, length of the pad).
type Rows = BTreeMap<u64, (i64, usize)>;
/// Keys and what becomes of them; none: the row goes.
type Changes = BTreeMap<u64, Option<(i64, usize)>>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// XA PREPARE was not acknowledged.
    Preparing,
    Prepared,
    /// XA COMMIT or XA ROLLBACK was not acknowledged.
    Ending { commit: bool },
}

#[derive(Debug)]
struct Branch {
    changes: Changes,
    stage: Stage,
}

/// What one client knows.
pub(super) struct Brancher {
    id: u64,
    rng: StdRng,
    committed: Rows,
    /// What a commit in one phase, or a plain one, changes that was not acknowledged.
    in_doubt: Option<Changes>,
    /// By name.
    branches: BTreeMap<String, Branch>,
    /// Branches so far: no name comes twice.
    count: u64,
}

pub(super) async fn create(connection: &mut Conn) -> Result<()> {
    let sql = "CREATE TABLE branch_rows (id BIGINT PRIMARY KEY, v BIGINT NOT NULL, pad LONGTEXT, KEY by_v (v))";
    Ok(connection.query_drop(sql).await?)
}

/// The names of what is prepared.
pub(super) async fn recovered(connection: &mut Conn) -> Result<BTreeSet<String>> {
    let rows: Vec<(i64, i64, i64, String)> = connection.query("XA RECOVER").await?;
    Ok(rows.into_iter().map(|(_, _, _, name)| name).collect())
}

/// Checks what a kill has left against what all clients know, and ends some of what is prepared, or all. Returns how many were prepared.
pub(super) async fn verify(connection: &mut Conn, clients: &mut [Brancher], finish: bool) -> Result<u64> {
    let mut prepared = recovered(connection).await?;
    let outlived = prepared.len() as u64;
    for client in clients.iter_mut() {
        client.settle(&mut prepared)?;
    }
    if let Some(name) = prepared.first() {
        return Err(format!("{name} is prepared, and nobody did that").into());
    }
    compare(connection, clients).await?;
    for client in clients.iter_mut() {
        let names: Vec<String> = client.branches.keys().cloned().collect();
        for name in names {
            client.assert_locked(connection, &name).await?;
            if finish || client.rng.random_ratio(1, 4) {
                let commit = client.rng.random_bool(0.5);
                client.end(connection, &name, commit).await?;
            }
        }
    }
    compare(connection, clients).await?;
    Ok(outlived)
}

/// What is found is what was acknowledged. A plain commit in doubt is decided by it.
async fn compare(connection: &mut Conn, clients: &mut [Brancher]) -> Result<()> {
    let rows: Vec<(u64, i64, usize)> = connection.query("SELECT id, v, LENGTH(pad) FROM branch_rows").await?;
    let mut found: BTreeMap<u64, Rows> = BTreeMap::new();
    for (id, v, length) in rows {
        found.entry(id / KEYS).or_default().insert(id, (v, length));
    }
    for client in clients {
        let rows = found.remove(&client.id).unwrap_or_default();
        let in_doubt = client.in_doubt.take();
        if rows != client.committed && let Some(changes) = &in_doubt {
            apply(&mut client.committed, changes);
        }
        if rows != client.committed {
            let (committed, branches) = (&client.committed, &client.branches);
            return Err(format!("client {} in two phases: found {rows:?}, acknowledged {committed:?}, in doubt {branches:?}", client.id).into());
        }
    }
    match found.pop_first() {
        Some(rows) => Err(format!("rows of nobody: {rows:?}").into()),
        None => Ok(()),
    }
}

fn apply(rows: &mut Rows, changes: &Changes) {
    for (key, row) in changes {
        match row {
            Some(row) => drop(rows.insert(*key, *row)),
            None => drop(rows.remove(key)),
        }
    }
}

impl Brancher {
    pub fn new(id: u64, seed: u64) -> Brancher {
        Brancher { id, rng: StdRng::seed_from_u64(seed), committed: Rows::new(), in_doubt: None, branches: BTreeMap::new(), count: 0 }
    }

    /// After a kill: what was in doubt is decided by which names are prepared. Takes its own out of them.
    fn settle(&mut self, prepared: &mut BTreeSet<String>) -> Result<()> {
        for (name, mut branch) in std::mem::take(&mut self.branches) {
            match (branch.stage, prepared.remove(&name)) {
                (_, true) => {
                    branch.stage = Stage::Prepared;
                    self.branches.insert(name, branch);
                }
                (Stage::Prepared, false) => return Err(format!("the acknowledged XA PREPARE of {name} is lost").into()),
                (Stage::Ending { commit: true }, false) => apply(&mut self.committed, &branch.changes),
                (Stage::Preparing | Stage::Ending { commit: false }, false) => {}
            }
        }
        Ok(())
    }

    /// Whoever wants its rows has to wait.
    async fn assert_locked(&self, connection: &mut Conn, name: &str) -> Result<()> {
        let key = self.branches[name].changes.keys().next().expect("a branch changes something");
        match connection.query_drop(format!("SELECT v FROM branch_rows WHERE id = {key} FOR UPDATE NOWAIT")).await {
            Err(mysql_async::Error::Server(e)) if e.code == 3572 => Ok(()),
            other => Err(format!("row {key} of the prepared {name} is not locked: {other:?}").into()),
        }
    }

    async fn end(&mut self, connection: &mut Conn, name: &str, commit: bool) -> Result<()> {
        let branch = self.branches.get_mut(name).expect("a branch of this client");
        branch.stage = Stage::Ending { commit };
        let verb = if commit { "COMMIT" } else { "ROLLBACK" };
        // The session that prepared it may not be quite gone.
        let mut tries = 0;
        while let Err(e) = connection.query_drop(format!("XA {verb} '{name}'")).await {
            let unknown = matches!(&e, mysql_async::Error::Server(e) if e.code == 1397);
            tries += 1;
            if !unknown || tries > 1000 {
                return Err(format!("XA {verb} '{name}': {e}").into());
            }
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        let branch = self.branches.remove(name).expect("looked up above");
        if commit {
            apply(&mut self.committed, &branch.changes);
        }
        Ok(())
    }

    /// Changes of some keys that are in no branch, and their statements.
    fn work(&mut self) -> (Vec<String>, Changes) {
        let busy: BTreeSet<u64> = self.branches.values().flat_map(|branch| branch.changes.keys().copied()).collect();
        let free = (self.id * KEYS..(self.id + 1) * KEYS).filter(|key| !busy.contains(key));
        let count = self.rng.random_range(1..=5);
        let (mut statements, mut changes) = (Vec::new(), Changes::new());
        for key in free.choose_multiple(&mut self.rng, count) {
            let v = self.rng.random_range(-1000..1000);
            // Mostly short, sometimes in overflow pages.
            let length = if self.rng.random_ratio(1, 8) { self.rng.random_range(8_000..60_000) } else { self.rng.random_range(0..300) };
            if self.committed.contains_key(&key) && self.rng.random_ratio(1, 3) {
                statements.push(format!("DELETE FROM branch_rows WHERE id = {key}"));
                changes.insert(key, None);
            } else {
                if self.rng.random_ratio(1, 4) {
                    statements.push(format!("REPLACE INTO branch_rows VALUES ({key}, 1, REPEAT('f', {}))", length / 2));
                }
                statements.push(format!("REPLACE INTO branch_rows VALUES ({key}, {v}, REPEAT('r', {length}))"));
                changes.insert(key, Some((v, length)));
            }
        }
        (statements, changes)
    }

    /// Works until the connection breaks. Returns how many steps were acknowledged.
    pub async fn run(mut self, options: Options) -> (Brancher, u64) {
        let mut acknowledged = 0;
        // The kill ends it.
        let _ = self.steps(&options, &mut acknowledged).await;
        (self, acknowledged)
    }

    async fn steps(&mut self, options: &Options, acknowledged: &mut u64) -> Result<()> {
        let mut connection = connect(options).await?;
        loop {
            let left = self.branches.keys().choose(&mut self.rng).cloned();
            match (self.rng.random_range(0..10), left) {
                (0..4, Some(name)) => {
                    let commit = self.rng.random_ratio(2, 3);
                    self.end(&mut connection, &name, commit).await?;
                }
                (0..6, _) => self.at_once(&mut connection, options.no_one_phase).await?,
                _ if self.branches.len() < PREPARED_MAX => {
                    let name = self.prepare(&mut connection).await?;
                    if self.rng.random_bool(0.5) {
                        let commit = self.rng.random_ratio(2, 3);
                        self.end(&mut connection, &name, commit).await?;
                    } else {
                        // A session that has prepared something can do nothing else before its end.
                        connection = connect(options).await?;
                    }
                }
                _ => continue,
            }
            *acknowledged += 1;
        }
    }

    fn name(&mut self) -> String {
        self.count += 1;
        format!("b{}_{}", self.id, self.count)
    }

    async fn prepare(&mut self, connection: &mut Conn) -> Result<String> {
        let (statements, changes) = self.work();
        let name = self.name();
        connection.query_drop(format!("XA START '{name}'")).await?;
        for sql in &statements {
            connection.query_drop(sql).await?;
        }
        connection.query_drop(format!("XA END '{name}'")).await?;
        self.branches.insert(name.clone(), Branch { changes, stage: Stage::Preparing });
        connection.query_drop(format!("XA PREPARE '{name}'")).await?;
        self.branches.get_mut(&name).expect("inserted above").stage = Stage::Prepared;
        Ok(name)
    }

    /// A transaction that is committed at once, as one that could have two phases or not.
    async fn at_once(&mut self, connection: &mut Conn, plain: bool) -> Result<()> {
        let (statements, changes) = self.work();
        let name = self.name();
        let brackets = match !plain && self.rng.random_bool(0.5) {
            true => [format!("XA START '{name}'"), format!("XA END '{name}'"), format!("XA COMMIT '{name}' ONE PHASE")],
            false => ["BEGIN".into(), "DO 1".into(), "COMMIT".into()],
        };
        connection.query_drop(&brackets[0]).await?;
        for sql in statements.iter().chain(&brackets[1..2]) {
            connection.query_drop(sql).await?;
        }
        self.in_doubt = Some(changes);
        connection.query_drop(&brackets[2]).await?;
        apply(&mut self.committed, &self.in_doubt.take().expect("set above"));
        Ok(())
    }
}
