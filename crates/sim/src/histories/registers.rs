//! Transactions replace the values of rows, one or several at once, let rows into ranges and take them out, and read both.
//!
//! A row keeps the value that its own replaced, and who replaces one knows which: so the order of a row's values is known, read or not.
//! Ranges are read as counts and sums, with the list of what was counted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::Rng;
use rand::rngs::StdRng;

use super::graph::{Operation, Orders, Read, Written};

const REGISTERS: u64 = 8;
/// Of the numbers that members can have.
const MEMBERS: u64 = 1_000_003;

/// What a transaction did, and what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// Each with the value that this one replaced.
    Write { value: u64, replaced: Vec<(u64, u64)> },
    ReadRows { from: u64, to: u64, rows: Vec<Row>, locks: bool },
    Insert { member: u64 },
    Remove { member: u64 },
    ReadRange { from: u64, to: u64, count: u64, sum: u64, members: BTreeSet<u64> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Row {
    register: u64,
    /// 0 before the first.
    value: u64,
    replaced: u64,
}

/// The versions of a register are its values; those of a member that it is there, and that it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    Register(u64),
    Member(u64),
}

const THERE: u64 = 1;
const GONE: u64 = 2;

impl Operation for Op {
    type Item = Item;

    const TABLES: &'static [&'static str] = &[
        "CREATE TABLE registers (k INT PRIMARY KEY, v BIGINT NOT NULL, replaced BIGINT NOT NULL, KEY (v))",
        "INSERT INTO registers VALUES (0, 0, 0), (1, 0, 0), (2, 0, 0), (3, 0, 0), (4, 0, 0), (5, 0, 0), (6, 0, 0), (7, 0, 0)",
        "CREATE TABLE members (id INT PRIMARY KEY)",
    ];

    async fn operate(connection: &mut Conn, rng: &mut StdRng, reads_only: bool, numbers: &AtomicU64, ops: &mut Vec<Op>) -> mysql_async::Result<()> {
        let from = rng.random_range(0..REGISTERS);
        let to = if rng.random_bool(0.7) { from } else { REGISTERS.min(from + 3) - 1 };
        let place = if from == to { format!("k = {from}") } else { format!("k BETWEEN {from} AND {to}") };
        let lowest = rng.random_range(0..MEMBERS);
        let highest = lowest + MEMBERS / 4;
        match rng.random_range(if reads_only { 6 } else { 0 }..11) {
            0 | 1 => {
                // The row says afterwards what was replaced.
                let value = numbers.fetch_add(1, Ordering::Relaxed);
                let sql = if from == to && rng.random_bool(0.3) {
                    format!("INSERT INTO registers VALUES ({from}, {value}, 0) ON DUPLICATE KEY UPDATE replaced = v, v = {value}")
                } else {
                    format!("UPDATE registers SET replaced = v, v = {value} WHERE {place}")
                };
                connection.query_drop(sql).await?;
                let rows = rows(connection, &place).await?;
                ops.push(Op::Write { value, replaced: rows.iter().map(|row| (row.register, row.replaced)).collect() });
                ops.push(Op::ReadRows { from, to, rows, locks: false });
            }
            2 | 3 => {
                // It is known before what will be replaced.
                let lock = if rng.random_bool(0.8) { "FOR UPDATE" } else { "FOR SHARE" };
                let rows = rows(connection, &format!("{place} {lock}")).await?;
                let replaced = rows.iter().map(|row| (row.register, row.value)).collect();
                ops.push(Op::ReadRows { from, to, rows, locks: true });
                if rng.random_bool(0.8) {
                    let value = numbers.fetch_add(1, Ordering::Relaxed);
                    connection.query_drop(format!("UPDATE registers SET replaced = v, v = {value} WHERE {place}")).await?;
                    ops.push(Op::Write { value, replaced });
                }
            }
            4 => {
                // Out of order, so that members come into the gaps between others.
                let member = numbers.fetch_add(1, Ordering::Relaxed) * 7919 % MEMBERS;
                connection.query_drop(format!("INSERT INTO members VALUES ({member})")).await?;
                ops.push(Op::Insert { member });
            }
            5 => {
                let found = format!("SELECT id FROM members WHERE id BETWEEN {lowest} AND {highest} ORDER BY id LIMIT 1 FOR UPDATE");
                let found: Option<u64> = connection.query_first(found).await?;
                if let Some(member) = found {
                    connection.query_drop(format!("DELETE FROM members WHERE id = {member}")).await?;
                    ops.push(Op::Remove { member });
                }
            }
            6 | 7 => {
                let rows = rows(connection, &place).await?;
                ops.push(Op::ReadRows { from, to, rows, locks: false });
            }
            8 => {
                // By an index whose entries move.
                let all = "SELECT k, v, replaced FROM registers FORCE INDEX (v) WHERE v >= 0";
                ops.push(Op::ReadRows { from: 0, to: REGISTERS - 1, rows: rows_of(connection, all).await?, locks: false });
            }
            _ => {
                let sql = format!("SELECT COUNT(*), SUM(id), GROUP_CONCAT(id) FROM members WHERE id BETWEEN {lowest} AND {highest}");
                let (count, sum, text): (u64, Option<u64>, Option<String>) = connection.query_first(sql).await?.expect("an aggregate has a row");
                let members = text.unwrap_or_default().split(',').filter_map(|n| n.parse().ok()).collect();
                ops.push(Op::ReadRange { from: lowest, to: highest, count, sum: sum.unwrap_or_default(), members });
            }
        }
        Ok(())
    }

    async fn read_all(connection: &mut Conn) -> mysql_async::Result<Vec<Op>> {
        let rows = rows(connection, "k >= 0 FOR SHARE").await?;
        let members: Vec<u64> = connection.query("SELECT id FROM members FOR SHARE").await?;
        let (count, sum) = (members.len() as u64, members.iter().sum());
        let range = Op::ReadRange { from: 0, to: MEMBERS, count, sum, members: members.into_iter().collect() };
        Ok(vec![Op::ReadRows { from: 0, to: REGISTERS - 1, rows, locks: true }, range])
    }

    fn writes(&self) -> Vec<(Item, u64)> {
        match self {
            Op::Write { value, replaced } => replaced.iter().map(|(register, _)| (Item::Register(*register), *value)).collect(),
            Op::Insert { member } => vec![(Item::Member(*member), THERE)],
            Op::Remove { member } => vec![(Item::Member(*member), GONE)],
            Op::ReadRows { .. } | Op::ReadRange { .. } => Vec::new(),
        }
    }

    fn reads(&self, written: &Written<Item>) -> Vec<Read<Item>> {
        match self {
            Op::Write { .. } | Op::Insert { .. } | Op::Remove { .. } => Vec::new(),
            Op::ReadRows { rows, locks, .. } => {
                let version = |row: &Row| if row.value == 0 { Vec::new() } else { vec![row.value] };
                rows.iter().map(|row| Read { item: Item::Register(row.register), versions: version(row), locks: *locks }).collect()
            }
            Op::ReadRange { from, to, members, .. } => {
                let there = members.iter().map(|&member| Read { item: Item::Member(member), versions: vec![THERE], locks: false });
                // One that somebody took out may be missing for that, or because it was not there yet.
                let taken = |(item, versions): (&Item, &BTreeMap<u64, usize>)| (!versions.contains_key(&GONE)).then_some(*item);
                let never_taken = written.range(Item::Member(*from)..=Item::Member(*to)).filter_map(taken);
                let missing = never_taken.filter(|item| !matches!(item, Item::Member(member) if members.contains(member)));
                there.chain(missing.map(|item| Read { item, versions: Vec::new(), locks: false })).collect()
            }
        }
    }

    fn orders(committed: &[&Op], wrong: &mut Vec<String>) -> Orders<Item> {
        // Of each register, which value replaced which.
        let mut next: BTreeMap<u64, BTreeMap<u64, u64>> = BTreeMap::new();
        let mut replaced_by: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        let mut orders: Orders<Item> = BTreeMap::new();
        for op in committed {
            match op {
                Op::Write { value, replaced } => {
                    for &(register, before) in replaced {
                        replaced_by.insert((register, *value), before);
                        if let Some(other) = next.entry(register).or_default().insert(before, *value) {
                            wrong.push(format!("register {register}: both {other} and {value} replaced {before}"));
                        }
                    }
                }
                Op::Insert { member } => orders.entry(Item::Member(*member)).or_default().insert(0, THERE),
                Op::Remove { member } => orders.entry(Item::Member(*member)).or_default().push(GONE),
                Op::ReadRows { .. } | Op::ReadRange { .. } => {}
            }
        }
        for (member, order) in &orders {
            if !matches!(order.as_slice(), [THERE] | [THERE, GONE]) {
                wrong.push(format!("{member:?} came ({THERE}) and went ({GONE}) as {order:?}"));
            }
        }
        for (register, mut next) in next {
            let order = orders.entry(Item::Register(register)).or_default();
            while let Some(value) = next.remove(order.last().unwrap_or(&0)) {
                order.push(value);
            }
            if !next.is_empty() {
                wrong.push(format!("register {register} is {order:?}, but somebody replaced {next:?}"));
            }
        }
        for op in committed {
            if let Op::ReadRows { rows, .. } = op {
                let other = |row: &&Row| replaced_by.get(&(row.register, row.value)).is_some_and(|before| *before != row.replaced);
                wrong.extend(rows.iter().filter(other).map(|row| format!("{row:?}: its writer had seen another value there")));
            }
        }
        orders
    }

    fn mistake(&self, level: usize) -> Option<String> {
        let wrong = match self {
            // READ UNCOMMITTED may meet an entry of the index twice, or never.
            Op::ReadRows { from, to, rows, .. } => level >= 1 && !rows.iter().map(|row| row.register).eq(*from..=*to),
            Op::ReadRange { count, sum, members, .. } => *count != members.len() as u64 || *sum != members.iter().sum::<u64>(),
            Op::Write { .. } | Op::Insert { .. } | Op::Remove { .. } => false,
        };
        wrong.then(|| format!("does not hold each row once: {self:?}"))
    }
}

/// The rows at a place: a condition, and a lock.
async fn rows(connection: &mut Conn, place: &str) -> mysql_async::Result<Vec<Row>> {
    rows_of(connection, &format!("SELECT k, v, replaced FROM registers WHERE {place}")).await
}

/// By register.
async fn rows_of(connection: &mut Conn, sql: &str) -> mysql_async::Result<Vec<Row>> {
    let mut rows: Vec<Row> = connection.query_map(sql, |(register, value, replaced)| Row { register, value, replaced }).await?;
    rows.sort_unstable();
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histories::graph::tests::{aborting, committed, forbidden};
    use crate::histories::graph::{lost, violations};

    fn write(register: u64, value: u64, replaced: u64) -> Op {
        Op::Write { value, replaced: vec![(register, replaced)] }
    }

    fn row(register: u64, value: u64, replaced: u64) -> Op {
        Op::ReadRows { from: register, to: register, rows: vec![Row { register, value, replaced }], locks: false }
    }

    fn locked(register: u64, value: u64, replaced: u64) -> Op {
        Op::ReadRows { from: register, to: register, rows: vec![Row { register, value, replaced }], locks: true }
    }

    fn range(members: &[u64]) -> Op {
        let members: BTreeSet<u64> = members.iter().copied().collect();
        Op::ReadRange { from: 0, to: 100, count: members.len() as u64, sum: members.iter().sum(), members }
    }

    #[test]
    fn a_serial_history_is_allowed() {
        let both = Op::Write { value: 12, replaced: vec![(1, 11), (2, 0)] };
        let history = committed(&[
            &[row(1, 0, 0), write(1, 10, 0), row(1, 10, 0), Op::Insert { member: 5 }, range(&[5])],
            &[locked(1, 10, 0), write(1, 11, 10), range(&[5]), Op::Remove { member: 5 }, range(&[])],
            &[both, row(1, 12, 11), row(2, 12, 0)],
            &[row(1, 12, 11), row(2, 12, 0), range(&[])],
        ]);
        assert_eq!(forbidden(&history), [0; 0]);
        assert_eq!(lost(&history), [""; 0]);
    }

    #[test]
    fn write_cycles_are_forbidden_at_every_level() {
        // G0.
        let cycle = committed(&[&[write(1, 10, 0), write(2, 20, 21)], &[write(1, 11, 10), write(2, 21, 0)]]);
        assert_eq!(forbidden(&cycle), [0, 1, 2, 3]);
        // By locks alone: each has locked what the other then wrote.
        let locks = committed(&[&[locked(1, 0, 0), write(2, 20, 0)], &[locked(2, 0, 0), write(1, 10, 0)]]);
        assert_eq!(forbidden(&locks), [0, 1, 2, 3]);
    }

    #[test]
    fn nobody_replaces_what_another_replaced() {
        let twice = committed(&[&[write(1, 10, 0)], &[write(1, 11, 0)]]);
        assert_eq!(forbidden(&twice), [0, 1, 2, 3]);
        // What was rolled back, what another goes on to replace, and other than it had locked.
        assert_eq!(forbidden(&aborting(&[&[write(1, 10, 0)], &[write(1, 11, 10)]])), [0, 1, 2, 3]);
        assert_eq!(forbidden(&committed(&[&[write(1, 10, 0), write(1, 11, 10)], &[write(1, 12, 10)]])), [0, 1, 2, 3]);
        assert_eq!(forbidden(&committed(&[&[write(1, 10, 0)], &[write(1, 11, 10)], &[row(1, 11, 7)]])), [0, 1, 2, 3]);
    }

    #[test]
    fn what_is_not_there_is_not_taken_out() {
        let removal: &[Op] = &[Op::Remove { member: 5 }];
        assert_eq!(forbidden(&committed(&[&[Op::Insert { member: 5 }], removal, removal])), [0, 1, 2, 3]);
        assert_eq!(forbidden(&aborting(&[&[Op::Insert { member: 5 }], removal])), [0, 1, 2, 3]);
    }

    #[test]
    fn dirty_reads_are_forbidden_above_read_uncommitted() {
        // G1a and G1b.
        assert_eq!(forbidden(&aborting(&[&[write(1, 10, 0)], &[row(1, 10, 0)]])), [1, 2, 3]);
        assert_eq!(forbidden(&aborting(&[&[Op::Insert { member: 5 }], &[range(&[5])]])), [1, 2, 3]);
        let between = committed(&[&[write(1, 10, 0), write(1, 11, 10)], &[row(1, 10, 0)]]);
        assert!(forbidden(&between).starts_with(&[1]));
        let gone = committed(&[&[Op::Insert { member: 5 }, Op::Remove { member: 5 }], &[range(&[5])]]);
        assert!(forbidden(&gone).starts_with(&[1]));
        // What locks reads what is committed, at READ UNCOMMITTED too.
        assert_eq!(forbidden(&aborting(&[&[write(1, 10, 0)], &[locked(1, 10, 0)]])), [0, 1, 2, 3]);
    }

    #[test]
    fn circles_of_reads_are_forbidden_where_they_are() {
        // G1c.
        let circular = committed(&[&[write(1, 10, 0), row(2, 20, 0)], &[write(2, 20, 0), row(1, 10, 0)]]);
        assert_eq!(forbidden(&circular), [1, 2, 3]);
        // G-single: of a transaction that only reads, of one that writes elsewhere, and of a range.
        let reader = committed(&[&[write(1, 10, 0), write(2, 20, 0)], &[row(1, 0, 0), row(2, 20, 0)]]);
        assert_eq!(forbidden(&reader), [2, 3]);
        let writer = committed(&[&[write(1, 10, 0), write(2, 20, 0)], &[row(1, 0, 0), write(3, 30, 0), row(2, 20, 0)]]);
        assert_eq!(forbidden(&writer), [2, 3]);
        let range_again = committed(&[&[Op::Insert { member: 5 }], &[range(&[]), range(&[5])]]);
        assert_eq!(forbidden(&range_again), [2, 3]);
        let removed = committed(&[&[Op::Insert { member: 5 }], &[Op::Remove { member: 5 }, write(1, 10, 0)], &[row(1, 10, 0), range(&[5])]]);
        assert_eq!(forbidden(&removed), [2, 3]);
        // Through a third.
        let third = committed(&[&[write(1, 10, 0)], &[locked(1, 10, 0), write(2, 20, 0)], &[row(2, 20, 0), row(1, 0, 0)]]);
        assert_eq!(forbidden(&third), [2, 3]);
    }

    #[test]
    fn repeatable_read_is_no_snapshot_isolation() {
        // Lost update, also of what a transaction locks past its snapshot, and write skew by items and by a range.
        let update = committed(&[&[row(1, 0, 0), write(1, 11, 10)], &[write(1, 10, 0)]]);
        assert_eq!(forbidden(&update), [3]);
        let past = committed(&[&[row(1, 0, 0), locked(1, 10, 0), write(1, 11, 10)], &[write(1, 10, 0)]]);
        assert_eq!(forbidden(&past), [3]);
        let skew = committed(&[&[row(1, 0, 0), write(2, 20, 0)], &[row(2, 0, 0), write(1, 10, 0)]]);
        assert_eq!(forbidden(&skew), [3]);
        let phantom = committed(&[&[range(&[]), Op::Insert { member: 5 }], &[range(&[]), Op::Insert { member: 6 }]]);
        assert_eq!(forbidden(&phantom), [3]);
    }

    #[test]
    fn own_writes_are_seen_at_every_level() {
        for ops in [[write(1, 10, 0), row(1, 0, 0)], [Op::Insert { member: 5 }, range(&[])]] {
            assert_eq!(forbidden(&committed(&[&ops])), [0, 1, 2, 3]);
        }
        assert!(!violations(&committed(&[&[Op::Insert { member: 5 }], &[Op::Remove { member: 5 }, range(&[5])]]), 0).is_empty());
    }

    #[test]
    fn each_row_is_read_once() {
        let twice = Op::ReadRows { from: 1, to: 1, rows: vec![Row { register: 1, value: 0, replaced: 0 }; 2], locks: false };
        assert_eq!(forbidden(&committed(&[&[twice]])), [1, 2, 3]);
        let never = Op::ReadRows { from: 1, to: 2, rows: vec![Row { register: 1, value: 0, replaced: 0 }], locks: false };
        assert_eq!(forbidden(&committed(&[&[never]])), [1, 2, 3]);
        let miscounted = Op::ReadRange { from: 0, to: 9, count: 2, sum: 5, members: BTreeSet::from([5]) };
        assert_eq!(forbidden(&committed(&[&[Op::Insert { member: 5 }], &[miscounted]])), [0, 1, 2, 3]);
    }

    #[test]
    fn what_was_committed_is_there_in_the_end() {
        let writes: &[Op] = &[write(1, 10, 0), Op::Insert { member: 5 }, Op::Insert { member: 6 }];
        let removal: &[Op] = &[Op::Remove { member: 6 }];
        let end = |value: u64, members: &[u64]| lost(&committed(&[writes, removal, &[row(1, value, 0), range(members)]])).len();
        assert_eq!(end(10, &[5]), 0);
        assert_eq!(end(0, &[5]), 1);
        assert_eq!(end(10, &[]), 1);
        assert_eq!(end(10, &[5, 6]), 1);
    }
}
