//! Transactions append numbers to lists, add members to groups, and read both.
//!
//! A list tells in which order its numbers were appended. Groups are read by predicate (`WHERE grp = ...`), so a member that comes later is a phantom.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};

use mysql_async::Conn;
use mysql_async::prelude::Queryable;
use rand::Rng;
use rand::rngs::StdRng;

use super::graph::{Operation, Orders, Read, Written};

const LISTS: u64 = 6;
const GROUPS: u64 = 4;

/// What a transaction did, and what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    Append { list: u64, value: u64 },
    ReadList { list: u64, values: Vec<u64> },
    Add { group: u64, member: u64 },
    ReadGroup { group: u64, members: BTreeSet<u64> },
}

/// The versions of a list are the numbers in it, that of a member is the member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    List(u64),
    Member { group: u64, member: u64 },
}

impl Operation for Op {
    type Item = Item;

    const TABLES: &'static [&'static str] = &[
        "CREATE TABLE lists (id INT PRIMARY KEY, v TEXT NOT NULL)",
        "CREATE TABLE members (id INT PRIMARY KEY, grp INT NOT NULL, KEY (grp))",
    ];

    async fn operate(connection: &mut Conn, rng: &mut StdRng, reads_only: bool, numbers: &AtomicU64, ops: &mut Vec<Op>) -> mysql_async::Result<()> {
        let (list, group) = (rng.random_range(0..LISTS), rng.random_range(0..GROUPS));
        ops.push(match rng.random_range(if reads_only { 4 } else { 0 }..8) {
            0 | 1 => {
                let value = numbers.fetch_add(1, Ordering::Relaxed);
                let sql = format!("INSERT INTO lists VALUES ({list}, '{value}') ON DUPLICATE KEY UPDATE v = CONCAT(v, ',{value}')");
                connection.query_drop(sql).await?;
                Op::Append { list, value }
            }
            2 | 3 => {
                let member = numbers.fetch_add(1, Ordering::Relaxed);
                // Out of order, so that members come into the gaps between others.
                let id = member * 7919 % 1_000_003;
                connection.query_drop(format!("INSERT INTO members VALUES ({id}, {group})")).await?;
                Op::Add { group, member: id }
            }
            4 | 5 => {
                let text: Option<String> = connection.query_first(format!("SELECT v FROM lists WHERE id = {list}")).await?;
                Op::ReadList { list, values: numbers_of(&text.unwrap_or_default()) }
            }
            n => {
                // By the index, and by reading all.
                let filter = if n == 6 { format!("grp = {group}") } else { format!("grp + 0 = {group}") };
                let members: Vec<u64> = connection.query(format!("SELECT id FROM members WHERE {filter}")).await?;
                Op::ReadGroup { group, members: members.into_iter().collect() }
            }
        });
        Ok(())
    }

    async fn read_all(connection: &mut Conn) -> mysql_async::Result<Vec<Op>> {
        let mut ops = Vec::new();
        for list in 0..LISTS {
            let text: Option<String> = connection.query_first(format!("SELECT v FROM lists WHERE id = {list} FOR SHARE")).await?;
            ops.push(Op::ReadList { list, values: numbers_of(&text.unwrap_or_default()) });
        }
        for group in 0..GROUPS {
            let members: Vec<u64> = connection.query(format!("SELECT id FROM members WHERE grp = {group} FOR SHARE")).await?;
            ops.push(Op::ReadGroup { group, members: members.into_iter().collect() });
        }
        Ok(ops)
    }

    fn writes(&self) -> Vec<(Item, u64)> {
        match *self {
            Op::Append { list, value } => vec![(Item::List(list), value)],
            Op::Add { group, member } => vec![(Item::Member { group, member }, member)],
            Op::ReadList { .. } | Op::ReadGroup { .. } => Vec::new(),
        }
    }

    fn reads(&self, written: &Written<Item>) -> Vec<Read<Item>> {
        match self {
            Op::Append { .. } | Op::Add { .. } => Vec::new(),
            Op::ReadList { list, values } => vec![Read { item: Item::List(*list), versions: values.clone(), locks: false }],
            Op::ReadGroup { group, members } => {
                let all = Item::Member { group: *group, member: 0 }..=Item::Member { group: *group, member: u64::MAX };
                let missing = written.range(all).map(|(item, _)| *item).filter(|item| !matches!(item, Item::Member { member, .. } if members.contains(member)));
                let there = members.iter().map(|&member| Read { item: Item::Member { group: *group, member }, versions: vec![member], locks: false });
                there.chain(missing.map(|item| Read { item, versions: Vec::new(), locks: false })).collect()
            }
        }
    }

    fn orders(committed: &[&Op], wrong: &mut Vec<String>) -> Orders<Item> {
        let appended: BTreeSet<(Item, u64)> = committed.iter().flat_map(|op| op.writes()).collect();
        // What was rolled back, and read at a level that allows it, orders nobody.
        let mut read: Vec<(u64, Vec<u64>)> = Vec::new();
        for op in committed {
            if let Op::ReadList { list, values } = op {
                read.push((*list, values.iter().copied().filter(|value| appended.contains(&(Item::List(*list), *value))).collect()));
            }
        }
        let mut orders: Orders<Item> = BTreeMap::new();
        // The longest that was read is the order.
        for (list, values) in &read {
            let longest = orders.entry(Item::List(*list)).or_default();
            if values.len() > longest.len() {
                longest.clone_from(values);
            }
        }
        for (list, values) in &read {
            let all = &orders[&Item::List(*list)];
            if !all.starts_with(values) {
                wrong.push(format!("list {list} is {all:?}, but somebody read {values:?}"));
            }
        }
        for op in committed {
            if let Op::Add { group, member } = **op {
                orders.insert(Item::Member { group, member }, vec![member]);
            }
        }
        orders
    }
}

fn numbers_of(text: &str) -> Vec<u64> {
    text.split(',').filter_map(|n| n.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histories::graph::tests::{aborting, committed, forbidden};
    use crate::histories::graph::{lost, violations};

    fn append(list: u64, value: u64) -> Op {
        Op::Append { list, value }
    }

    fn list(list: u64, values: &[u64]) -> Op {
        Op::ReadList { list, values: values.into() }
    }

    fn group(group: u64, members: &[u64]) -> Op {
        Op::ReadGroup { group, members: members.iter().copied().collect() }
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
        // Lost update.
        let update = committed(&[&[list(1, &[]), append(1, 11)], &[append(1, 10)], &[list(1, &[10, 11])]]);
        assert_eq!(forbidden(&update), [3]);
        // Read skew, of a transaction that only reads and of one that writes too.
        let read_skew = committed(&[&[append(1, 10), append(2, 20)], &[list(1, &[]), list(2, &[20])], &[list(1, &[10]), list(2, &[20])]]);
        assert_eq!(forbidden(&read_skew), [2, 3]);
        let writer = committed(&[&[append(1, 10), append(2, 20)], &[list(1, &[]), append(3, 30), list(2, &[20])], &[list(1, &[10]), list(2, &[20])]]);
        assert_eq!(forbidden(&writer), [2, 3]);
        // A group that is not the same when it is read again.
        let again = committed(&[&[group(0, &[]), group(0, &[5])], &[Op::Add { group: 0, member: 5 }]]);
        assert_eq!(forbidden(&again), [2, 3]);
        // Circular information flow.
        let circular = committed(&[&[append(1, 10), list(2, &[20])], &[append(2, 20), list(1, &[10])]]);
        assert_eq!(forbidden(&circular), [1, 2, 3]);
        // Write cycle.
        let cycle = committed(&[&[append(1, 10), append(2, 21)], &[append(1, 11), append(2, 20)], &[list(1, &[10, 11]), list(2, &[20, 21])]]);
        assert_eq!(forbidden(&cycle), [0, 1, 2, 3]);
    }

    #[test]
    fn dirty_reads_are_forbidden_above_read_uncommitted() {
        assert_eq!(forbidden(&aborting(&[&[append(1, 10)], &[list(1, &[10])]])), [1, 2, 3]);
        let between = committed(&[&[append(1, 10), append(1, 11)], &[list(1, &[10])]]);
        assert!(forbidden(&between).starts_with(&[1]));
        assert!(forbidden(&committed(&[&[list(1, &[10])]])).starts_with(&[1]), "nobody wrote it");
    }

    #[test]
    fn own_writes_are_seen_at_every_level() {
        assert_eq!(forbidden(&committed(&[&[append(1, 10), list(1, &[])]])), [0, 1, 2, 3]);
        assert_eq!(forbidden(&committed(&[&[Op::Add { group: 1, member: 3 }, group(1, &[])]])), [0, 1, 2, 3]);
    }

    #[test]
    fn a_list_that_changes_behind_its_beginning_is_forbidden() {
        let history = committed(&[&[append(1, 10)], &[append(1, 11)], &[list(1, &[10, 11])], &[list(1, &[11])]]);
        assert!(!violations(&history, 0).is_empty());
    }

    #[test]
    fn what_was_committed_is_there_in_the_end() {
        let writes: &[Op] = &[append(1, 10), Op::Add { group: 0, member: 5 }];
        assert_eq!(lost(&committed(&[writes, &[list(1, &[10]), group(0, &[5])]])), [""; 0]);
        assert_eq!(lost(&committed(&[writes, &[list(1, &[]), group(0, &[5])]])).len(), 1);
        assert_eq!(lost(&committed(&[writes, &[list(1, &[10]), group(0, &[])]])).len(), 1);
        // Read once, but not in the end.
        assert_eq!(lost(&committed(&[writes, &[list(1, &[10])], &[list(1, &[]), group(0, &[5])]])).len(), 1);
    }
}
