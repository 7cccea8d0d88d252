//! FROM and WHERE of a query block taken apart: tables side by side, and what is asked of them.

use std::ops::Range;

use highkey_types::Str;

use crate::plan::{Expr, Field, JoinKind, Rel, RelKind};

/// Stands for a field of another table, as a table column.
const OTHER_TABLE: usize = usize::MAX - 1;

/// The tables of a block over one row that has the fields of all of them, table after table.
#[derive(Default)]
pub(super) struct Sources<'r> {
    /// As FROM names them.
    pub leaves: Vec<Leaf<'r>>,
    pub fields: Vec<Field>,
    pub conditions: Vec<Condition>,
    /// Expressions of ON and WHERE, and the rows that they are over.
    pub asked: Vec<(&'r Expr, Vec<Field>)>,
    /// The outputs of FROM over the row.
    outputs: Vec<Expr>,
}

/// A table of FROM: a base table, or something that makes rows.
pub(super) struct Leaf<'r> {
    pub rel: &'r Rel,
    /// The alias of a derived table.
    name: Option<Str>,
    /// Where its fields begin in the row.
    at: usize,
    /// It is on the right of a LEFT JOIN.
    pub outer: bool,
    /// It is made for each of these rows of the tables before.
    pub made_for: Option<&'r [Field]>,
}

/// What is asked of the row.
pub(super) struct Condition {
    pub expr: Expr,
    /// It decides which rows of these tables match, those on the right of a LEFT JOIN.
    on: Option<Range<usize>>,
}

impl Leaf<'_> {
    /// Its fields in the row.
    pub fn fields(&self) -> Range<usize> {
        self.at..self.at + self.rel.fields.len()
    }

    /// Its alias.
    pub fn alias(&self) -> &str {
        if let Some(name) = &self.name {
            return name;
        }
        match &self.rel.kind {
            RelKind::Scan { alias, .. } | RelKind::Virtual { alias, .. } => alias,
            RelKind::CteScan { name, .. } => name,
            _ => self.rel.fields.first().map_or("", |field| &field.table),
        }
    }
}

impl<'r> Sources<'r> {
    /// SELECT without FROM, and VALUES, have no tables.
    pub fn of(rel: &'r Rel) -> Sources<'r> {
        let mut sources = Sources::default();
        if matches!(rel.kind, RelKind::Values { .. }) {
            return sources;
        }
        sources.outputs = sources.add(rel, None);
        sources
    }

    /// Adds a relation; its outputs over the row. `on`: it is on the right of a LEFT JOIN, of which these are the tables before it.
    fn add(&mut self, rel: &'r Rel, on: Option<usize>) -> Vec<Expr> {
        match &rel.kind {
            RelKind::Values { rows } if rows.len() == 1 && rows[0].is_empty() => Vec::new(),
            RelKind::Filter { input, predicate } => {
                let outputs = self.add(input, on);
                self.ask(predicate, &outputs, &input.fields, on);
                outputs
            }
            // The exchange of a right join, or what a view or a derived table chooses.
            RelKind::Project { input, exprs } if chooses_rows(input) && !exprs.iter().any(Expr::has_subquery) => {
                let outputs = self.add(input, on);
                self.name(exprs, &outputs, &rel.fields);
                exprs.iter().filter_map(|e| e.clone().over(&outputs)).collect()
            }
            RelKind::Join { kind, left, right, on: matches } => {
                let mut outputs = self.add(left, on);
                let right_on = if *kind == JoinKind::Left { Some(self.leaves.len()) } else { on };
                outputs.extend(self.add(right, right_on));
                if let Some(matches) = matches {
                    self.ask(matches, &outputs, &rel.fields, right_on);
                }
                outputs
            }
            RelKind::Apply { input, outer, .. } => {
                let mut outputs = self.add(input, on);
                let Some(mut made) = rel.made() else { return outputs };
                let width = outputs.len();
                let on = if *outer { Some(self.leaves.len()) } else { on };
                let mut asked: Vec<&Expr> = Vec::new();
                while let RelKind::Filter { input, predicate } = &made.kind {
                    asked.push(predicate);
                    made = input;
                }
                outputs.extend(self.leaf(made, on, Some(&input.fields)));
                let on = on.map(|first| first..self.leaves.len());
                let over = asked.into_iter().flat_map(Expr::conjuncts).filter_map(|c| c.clone().out_of_subquery(width).over(&outputs));
                self.conditions.extend(over.map(|expr| Condition { expr, on: on.clone() }));
                outputs
            }
            _ => self.leaf(rel, on, None),
        }
    }

    fn leaf(&mut self, rel: &'r Rel, on: Option<usize>, made_for: Option<&'r [Field]>) -> Vec<Expr> {
        let at = self.fields.len();
        self.fields.extend(rel.fields.iter().cloned());
        self.leaves.push(Leaf { rel, name: None, at, outer: on.is_some(), made_for });
        rel.fields.iter().enumerate().map(|(i, field)| Expr::column(at + i, field.ty.clone())).collect()
    }

    /// Columns of derived tables have their names where they are chosen: `exprs` over `outputs` are called `fields`.
    fn name(&mut self, exprs: &[Expr], outputs: &[Expr], fields: &[Field]) {
        for (expr, field) in exprs.iter().zip(fields) {
            let Some(at) = expr.as_column().and_then(|i| outputs.get(i)).and_then(Expr::as_column) else { continue };
            let Some(leaf) = self.leaves.iter_mut().find(|leaf| leaf.fields().contains(&at)) else { continue };
            let is_derived = !matches!(leaf.rel.kind, RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::CteScan { .. } | RelKind::JsonTable { .. });
            if is_derived && !field.table.is_empty() {
                leaf.name = Some(field.table.clone());
                self.fields[at] = field.clone();
            }
        }
    }

    /// The select list chooses from the outputs.
    pub fn name_outputs(&mut self, exprs: &[Expr], fields: &[Field]) {
        let outputs = std::mem::take(&mut self.outputs);
        self.name(exprs, &outputs, fields);
        self.outputs = outputs;
    }

    fn ask(&mut self, predicate: &'r Expr, outputs: &[Expr], row: &[Field], on: Option<usize>) {
        self.asked.push((predicate, row.to_vec()));
        let on = on.map(|first| first..self.leaves.len());
        // A condition that always holds is none.
        let asked = predicate.conjuncts().iter().filter(|c| c.as_literal().is_none() || c.is_never());
        let over = asked.filter_map(|c| c.clone().over(outputs));
        self.conditions.extend(over.map(|expr| Condition { expr, on: on.clone() }));
    }

    /// No row satisfies its conditions.
    pub fn is_never(&self) -> bool {
        self.conditions.iter().any(|condition| condition.on.is_none() && condition.expr.is_never())
    }

    /// The condition has all values that it needs once these tables are read, `leaf` the last of them.
    pub fn is_decided(&self, condition: &Condition, leaf: usize, read: &[bool]) -> bool {
        // The rows of a LEFT JOIN's right side are all there when it is asked which of them match.
        let in_turn = condition.on.as_ref().is_none_or(|on| on.contains(&leaf));
        let has_value = |field: &usize| self.leaves.iter().zip(read).any(|(leaf, read)| *read && leaf.fields().contains(field));
        in_turn && condition.expr.columns().iter().all(has_value)
    }

    /// The conditions that an index of a table could be asked for.
    pub fn about(&self, leaf: &Leaf<'_>, position: usize) -> Vec<&Expr> {
        let can = |condition: &&Condition| match &condition.on {
            None => !leaf.outer,
            Some(on) => on.contains(&position),
        };
        let names = |condition: &&Condition| condition.expr.columns().iter().any(|field| leaf.fields().contains(field));
        self.conditions.iter().filter(can).filter(names).map(|condition| &condition.expr).collect()
    }

    /// Which fields of the row are read, if `needed` of the outputs are.
    pub fn used(&self, needed: &[usize]) -> Vec<bool> {
        let mut used = vec![false; self.fields.len()];
        let outputs = needed.iter().filter_map(|output| self.outputs.get(*output));
        let conditions = self.conditions.iter().map(|condition| &condition.expr);
        with(&[], outputs.chain(conditions)).into_iter().for_each(|field| used[field] = true);
        used
    }
}

/// The row of all tables as the conditions on one of them see it. `columns`: the table's, as its scan has them.
pub(super) fn own_row(leaf: &Leaf<'_>, columns: &[usize], width: usize) -> Vec<usize> {
    let mut row = vec![OTHER_TABLE; width];
    row[leaf.fields()].copy_from_slice(columns);
    row
}

/// Its rows are rows of tables.
fn chooses_rows(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::Join { .. } | RelKind::Apply { .. } => true,
        RelKind::Filter { input, .. } | RelKind::Project { input, .. } => chooses_rows(input),
        _ => false,
    }
}

/// `needed` and what the expressions read; ascending, each once.
pub(super) fn with<'e>(needed: &[usize], exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<usize> {
    let mut all = needed.to_vec();
    all.extend(exprs.into_iter().flat_map(Expr::columns));
    all.sort_unstable();
    all.dedup();
    all
}
