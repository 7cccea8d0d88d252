//! Joins in the order that optimizer hints ask for.

use std::collections::HashSet;

use super::hints::JoinHints;
use crate::plan::{Expr, JoinKind, Rel, RelKind};

/// The rows of FROM that `filter`, what WHERE asks, leaves. Joins are in an order that the hints ask for, all of them STRAIGHT_JOINs; the fields stay where they are.
/// The joins are as FROM has them if there is nothing to order. A hint that cannot be followed beside those before it is left out.
pub(super) fn ordered(from: Rel, filter: Option<Expr>, hints: &JoinHints) -> Rel {
    if hints.sequences.is_empty() || !matches!(from.kind, RelKind::Join { kind: JoinKind::Inner, .. }) {
        return filtered(from, filter);
    }
    let mut joined = Joined::default();
    let fields = from.fields.clone();
    joined.add(from);
    let Joined { tables, conditions } = joined;
    let mut before = vec![HashSet::new(); tables.len()];
    for sequence in &hints.sequences {
        let position = |alias: &String| tables.iter().position(|(_, table)| table.fields.iter().any(|field| *field.table == **alias));
        let Some(places) = sequence.aliases.iter().map(position).collect::<Option<Vec<usize>>>() else { continue };
        let mut more = before.clone();
        // One of several tables of a LEFT JOIN, which stay together.
        places.windows(2).filter(|pair| pair[0] != pair[1]).for_each(|pair| {
            more[pair[1]].insert(pair[0]);
        });
        for other in (0..tables.len()).filter(|other| !places.contains(other)) {
            if sequence.first {
                places.iter().for_each(|place| {
                    more[other].insert(*place);
                });
            }
            if sequence.last {
                places.iter().for_each(|place| {
                    more[*place].insert(other);
                });
            }
        }
        if placed(&more, |_, _| false).is_some() {
            before = more;
        }
    }
    let range = |table: usize| tables[table].0..tables[table].0 + tables[table].1.fields.len();
    let table_of = |column: usize| (0..tables.len()).find(|table| range(*table).contains(&column));
    let all_conditions = conditions.iter().chain(filter.iter().flat_map(Expr::conjuncts));
    let asked: Vec<Vec<usize>> = all_conditions.map(|c| c.columns().into_iter().filter_map(table_of).collect()).collect();
    // Those that conditions tie to what is there come first.
    let ties = |table: usize, there: &[usize]| asked.iter().any(|of| of.contains(&table) && of.iter().any(|other| there.contains(other)));
    let order = placed(&before, ties).expect("what cannot be followed is left out");
    let mut at = 0;
    let mut moved = vec![0; fields.len()];
    for &table in &order {
        for column in range(table) {
            moved[column] = at;
            at += 1;
        }
    }
    let mut conditions: Vec<Option<Expr>> = conditions
        .into_iter()
        .map(|mut condition| {
            condition.map_columns(&mut |column| moved[column]);
            Some(condition)
        })
        .collect();
    let mut rels: Vec<Option<Rel>> = tables.into_iter().map(|(_, rel)| Some(rel)).collect();
    let mut joined: Option<Rel> = None;
    for table in order {
        let Some(right) = rels[table].take() else { continue };
        let Some(left) = joined.take() else {
            joined = Some(right);
            continue;
        };
        let all: Vec<_> = left.fields.iter().chain(&right.fields).cloned().collect();
        let decided = |c: &&mut Option<Expr>| c.as_ref().is_some_and(|c| c.columns().iter().all(|column| *column < all.len()));
        let on = Expr::and(conditions.iter_mut().filter(decided).filter_map(Option::take));
        joined = Some(Rel { kind: RelKind::Join { kind: JoinKind::Straight, left: Box::new(left), right: Box::new(right), on }, fields: all });
    }
    let exprs = fields.iter().zip(&moved).map(|(field, column)| Expr::column(*column, field.ty.clone())).collect();
    let filter = filter.map(|mut filter| {
        filter.map_columns(&mut |column| moved[column]);
        filter
    });
    // Next to the joins: whoever locks their rows looks there for what is asked of them.
    filtered(joined.expect("a join has tables"), filter).project(exprs, fields)
}

fn filtered(rel: Rel, filter: Option<Expr>) -> Rel {
    match filter {
        Some(filter) => rel.filter_early(filter),
        None => rel,
    }
}

/// The tables of inner joins, each with the first of its fields in the row, and the conditions over the row.
#[derive(Default)]
struct Joined {
    tables: Vec<(usize, Rel)>,
    conditions: Vec<Expr>,
}

impl Joined {
    fn width(&self) -> usize {
        self.tables.last().map_or(0, |(at, rel)| at + rel.fields.len())
    }

    fn add(&mut self, rel: Rel) {
        match rel.kind {
            RelKind::Join { kind: JoinKind::Inner, left, right, on } => {
                let first = self.width();
                self.add(*left);
                self.add(*right);
                for condition in on.iter().flat_map(|on| on.conjuncts()) {
                    let mut condition = condition.clone();
                    condition.map_columns(&mut |column| first + column);
                    self.conditions.push(condition);
                }
            }
            _ => self.tables.push((self.width(), rel)),
        }
    }
}

/// An order in which each table comes behind those of `before`; `ties` says which table is read next where several may be, then the first is. None if there is none.
fn placed(before: &[HashSet<usize>], ties: impl Fn(usize, &[usize]) -> bool) -> Option<Vec<usize>> {
    let mut order: Vec<usize> = Vec::with_capacity(before.len());
    while order.len() < before.len() {
        let free = |table: &usize| !order.contains(table) && before[*table].iter().all(|needed| order.contains(needed));
        let next = (0..before.len()).filter(free).find(|table| ties(*table, &order)).or_else(|| (0..before.len()).find(free))?;
        order.push(next);
    }
    Some(order)
}
