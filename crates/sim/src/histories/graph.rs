//! Who depends on whom in a history, and the circles in it.
//!
//! What is written are versions of items. In which order an item's versions came is known from what was read, each kind of history in its way.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

use mysql_async::Conn;
use rand::rngs::StdRng;

/// The versions of each item that were committed, the first first.
pub type Orders<I> = BTreeMap<I, Vec<u64>>;

/// The versions of each item, and which transaction wrote it.
pub type Written<I> = BTreeMap<I, BTreeMap<u64, usize>>;

/// What a transaction does in one step, and what it was told.
pub trait Operation: Clone + Debug + Send + Sync + 'static {
    type Item: Copy + Debug + Ord;

    /// What makes the tables.
    const TABLES: &'static [&'static str];

    /// Does a random operation and adds it to `ops`, with the reading that belongs to it. Values are of `numbers`.
    fn operate(
        connection: &mut Conn,
        rng: &mut StdRng,
        reads_only: bool,
        numbers: &AtomicU64,
        ops: &mut Vec<Self>,
    ) -> impl Future<Output = mysql_async::Result<()>> + Send;

    /// Reads every item, when all that hold locks have ended.
    fn read_all(connection: &mut Conn) -> impl Future<Output = mysql_async::Result<Vec<Self>>> + Send;

    /// The versions that it wrote: each is written only once.
    fn writes(&self) -> Vec<(Self::Item, u64)>;

    /// What it read, where of the items that were `written` it is known of which version.
    fn reads(&self, written: &Written<Self::Item>) -> Vec<Read<Self::Item>>;

    /// The order of what the operations of all that committed have written. What contradicts it is `wrong` at every level.
    fn orders(committed: &[&Self], wrong: &mut Vec<String>) -> Orders<Self::Item>;

    /// What of the answer cannot be, whoever else writes, at this level.
    fn mistake(&self, _level: usize) -> Option<String> {
        None
    }
}

/// Of an item, the last of these versions, which came behind the others; none if it was read as it was before the first.
pub struct Read<I> {
    pub item: I,
    pub versions: Vec<u64>,
    /// It keeps others from writing until the end, and reads what is committed.
    pub locks: bool,
}

#[derive(Clone, Debug)]
pub struct Transaction<O> {
    /// None other has it.
    pub number: u64,
    pub ops: Vec<O>,
    pub end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Committed,
    RolledBack,
    /// It was to be committed, and there was no answer.
    Unknown,
}

impl<O: Operation> Transaction<O> {
    pub fn committed(&self) -> bool {
        self.end == End::Committed
    }

    pub fn writes(&self) -> bool {
        self.ops.iter().any(|op| !op.writes().is_empty())
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Edge {
    Ww,
    Wr,
    Rw,
}

type Edges = BTreeMap<usize, BTreeSet<(usize, Edge)>>;

/// What of a history the level does not allow.
pub fn violations<O: Operation>(history: &[Transaction<O>], level: usize) -> Vec<String> {
    let mut wrong: Vec<String> = history.iter().flat_map(|t| &t.ops).filter_map(|op| op.mistake(level)).collect();
    let all = written(history, |_| true);
    for transaction in history {
        own_writes(transaction, &all, &mut wrong);
    }
    dirty_reads(history, &all, level, &mut wrong);
    let edges = dependencies(history, &mut wrong);
    let count = history.len();
    let circle = |allowed: &dyn Fn(usize, usize, Edge) -> bool| find_circle(&edges, 0..count, count, allowed);
    let found = match level {
        0 => circle(&|_, _, edge| edge == Edge::Ww),
        1 => circle(&|_, _, edge| edge != Edge::Rw),
        2 => circle(&|_, _, edge| edge != Edge::Rw).or_else(|| torn_snapshot(&edges, count)),
        _ => circle(&|_, _, _| true),
    };
    wrong.extend(found.map(|circle| describe(history, &edges, &circle)));
    wrong
}

/// What the last transaction, that reads everything when all others have ended, does not find of what was committed.
pub fn lost<O: Operation>(history: &[Transaction<O>]) -> Vec<String> {
    let mut wrong = Vec::new();
    let orders = O::orders(&committed_ops(history), &mut wrong);
    let committed = written(history, Transaction::committed);
    for (item, versions) in &committed {
        for (version, by) in versions {
            if !orders.get(item).is_some_and(|order| order.contains(version)) {
                wrong.push(format!("nothing is behind {version} of {item:?}, which was committed: {:?}", history[*by]));
            }
        }
    }
    for read in history.last().into_iter().flat_map(|last| &last.ops).flat_map(|op| op.reads(&committed)) {
        let newest = orders.get(&read.item).and_then(|order| order.last());
        if read.versions.last() != newest {
            wrong.push(format!("{:?} is {:?} in the end, not {newest:?}", read.item, read.versions.last()));
        }
    }
    wrong
}

fn committed_ops<O: Operation>(history: &[Transaction<O>]) -> Vec<&O> {
    history.iter().filter(|t| t.committed()).flat_map(|t| &t.ops).collect()
}

fn written<O: Operation>(history: &[Transaction<O>], of: impl Fn(&Transaction<O>) -> bool) -> Written<O::Item> {
    let mut written: Written<O::Item> = BTreeMap::new();
    for (n, transaction) in history.iter().enumerate() {
        if !of(transaction) {
            continue;
        }
        for (item, version) in transaction.ops.iter().flat_map(O::writes) {
            written.entry(item).or_default().insert(version, n);
        }
    }
    written
}

/// A transaction reads its own writes.
fn own_writes<O: Operation>(transaction: &Transaction<O>, written: &Written<O::Item>, wrong: &mut Vec<String>) {
    let mut own: BTreeMap<O::Item, u64> = BTreeMap::new();
    for op in &transaction.ops {
        for read in op.reads(written) {
            if own.get(&read.item).is_some_and(|version| read.versions.last() != Some(version)) {
                wrong.push(format!("does not see what it wrote to {:?}: {transaction:?}", read.item));
            }
        }
        own.extend(op.writes());
    }
}

/// Nobody reads what was rolled back, nor what its writer replaced; READ UNCOMMITTED does, where it takes no lock.
fn dirty_reads<O: Operation>(history: &[Transaction<O>], written: &Written<O::Item>, level: usize, wrong: &mut Vec<String>) {
    let mut last: BTreeMap<(usize, O::Item), u64> = BTreeMap::new();
    for (n, transaction) in history.iter().enumerate() {
        last.extend(transaction.ops.iter().flat_map(O::writes).map(|(item, version)| ((n, item), version)));
    }
    for (n, transaction) in history.iter().enumerate() {
        let reads = transaction.ops.iter().flat_map(|op| op.reads(written));
        for read in reads.filter(|read| level >= 1 || read.locks) {
            for version in &read.versions {
                match written.get(&read.item).and_then(|versions| versions.get(version)) {
                    Some(by) if *by == n => {}
                    Some(by) if !history[*by].committed() => wrong.push(format!("reads {version}, which was rolled back: {transaction:?}")),
                    Some(by) if read.versions.last() == Some(version) && last[&(*by, read.item)] != *version => {
                        wrong.push(format!("reads {version}, behind which its writer wrote more: {transaction:?}"));
                    }
                    Some(_) => {}
                    // Written by a statement that failed, or that was taken back.
                    None => wrong.push(format!("reads {version}, which nobody wrote: {transaction:?}")),
                }
            }
        }
    }
}

/// Who depends on whom among committed transactions.
fn dependencies<O: Operation>(history: &[Transaction<O>], wrong: &mut Vec<String>) -> Edges {
    let orders = O::orders(&committed_ops(history), wrong);
    let written = written(history, Transaction::committed);
    let writer = |item: &O::Item, version: u64| written[item][&version];
    let mut edges = Edges::new();
    let mut add = |from: usize, to: usize, edge: Edge| {
        if from != to {
            edges.entry(from).or_default().insert((to, edge));
        }
    };
    for (item, order) in &orders {
        order.windows(2).for_each(|pair| add(writer(item, pair[0]), writer(item, pair[1]), Edge::Ww));
    }
    for (n, transaction) in history.iter().enumerate().filter(|(_, t)| t.committed()) {
        for read in transaction.ops.iter().flat_map(|op| op.reads(&written)) {
            let order = orders.get(&read.item).map_or(&[][..], Vec::as_slice);
            // What was rolled back, and read at a level that allows it, orders nobody.
            let at = read.versions.iter().rev().find_map(|version| order.iter().position(|v| v == version));
            let (before, behind) = if read.locks { (Edge::Ww, Edge::Ww) } else { (Edge::Wr, Edge::Rw) };
            let next = match at {
                Some(at) => {
                    add(writer(&read.item, order[at]), n, before);
                    order.get(at + 1)
                }
                None if read.versions.is_empty() => order.first(),
                None => None,
            };
            if let Some(version) = next {
                add(n, writer(&read.item, *version), behind);
            }
        }
    }
    edges
}

/// A circle of allowed edges (from, to, kind) that can be reached from one of the starts.
fn find_circle(edges: &Edges, starts: Range<usize>, count: usize, allowed: &dyn Fn(usize, usize, Edge) -> bool) -> Option<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let mut marks = vec![Mark::New; count];
    for start in starts {
        let mut path: Vec<(usize, Vec<usize>)> = Vec::new();
        let next = |n: usize| edges.get(&n).into_iter().flatten().filter(|(to, e)| allowed(n, *to, *e)).map(|(to, _)| *to).collect::<Vec<_>>();
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

/// A transaction that misses, in what it reads without locks, the work of one that the rest of what it so reads depends on. There are no circles without `rw`.
fn torn_snapshot(edges: &Edges, count: usize) -> Option<Vec<usize>> {
    (0..count).find_map(|reader| {
        let allowed = |from: usize, to: usize, edge: Edge| match edge {
            Edge::Rw => from == reader,
            Edge::Wr => from != reader,
            Edge::Ww => from != reader && to != reader,
        };
        find_circle(edges, reader..reader + 1, count, &allowed)
    })
}

fn describe<O: Operation>(history: &[Transaction<O>], edges: &Edges, circle: &[usize]) -> String {
    let mut text = String::from("a circle:");
    for (n, from) in circle.iter().enumerate() {
        let to = circle[(n + 1) % circle.len()];
        let kinds: Vec<_> = edges[from].iter().filter(|(t, _)| *t == to).map(|(_, e)| e).collect();
        text += &format!("\n  {:?} {kinds:?}", history[*from].ops);
    }
    text
}

/// How the tests of both kinds make histories by hand.
#[cfg(test)]
pub mod tests {
    use super::*;

    pub fn committed<O: Operation>(transactions: &[&[O]]) -> Vec<Transaction<O>> {
        let made = |(n, ops): (usize, &&[O])| Transaction { number: n as u64, ops: ops.to_vec(), end: End::Committed };
        transactions.iter().enumerate().map(made).collect()
    }

    /// The first is rolled back.
    pub fn aborting<O: Operation>(transactions: &[&[O]]) -> Vec<Transaction<O>> {
        let mut history = committed(transactions);
        history[0].end = End::RolledBack;
        history
    }

    /// The levels that do not allow the history.
    pub fn forbidden<O: Operation>(history: &[Transaction<O>]) -> Vec<usize> {
        (0..4).filter(|&n| !violations(history, n).is_empty()).collect()
    }
}
