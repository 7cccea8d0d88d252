//! A tree of joins taken apart: its tables side by side, and what is asked of them together.

use super::{CompareOp, Expr, ExprKind, JoinKind, Rel, RelKind};

/// Joined tables over one row that has the fields of all of them, table after table.
pub struct JoinGraph<'a> {
    /// The tables, as FROM names them.
    pub tables: Vec<JoinedTable<'a>>,
    /// Conditions over the row that every result satisfies.
    pub conditions: Vec<Expr>,
    /// The fields of the relation, over the row.
    pub outputs: Vec<Expr>,
    /// STRAIGHT_JOIN: the tables are read in the order in which they are named.
    pub straight: bool,
}

/// One of the tables.
pub struct JoinedTable<'a> {
    /// A [`RelKind::Scan`].
    pub scan: &'a Rel,
    /// Where its fields begin in the row.
    pub at: usize,
    /// For the right side of a LEFT JOIN, what a row of it must satisfy over the row to be joined; its fields are NULL where none does.
    pub on: Option<Vec<Expr>>,
}

impl JoinedTable<'_> {
    /// Its fields in the row.
    pub fn fields(&self) -> std::ops::Range<usize> {
        self.at..self.at + self.scan.fields.len()
    }
}

impl<'a> JoinGraph<'a> {
    /// Takes joins of base tables apart, with the filters and projections between them. `None` if there is anything else, a LEFT JOIN whose right
    /// side is more than a table, or an expression that must be evaluated exactly once.
    pub fn of(rel: &'a Rel) -> Option<JoinGraph<'a>> {
        let mut graph = JoinGraph { tables: Vec::new(), conditions: Vec::new(), outputs: Vec::new(), straight: false };
        graph.outputs = graph.add(rel)?;
        graph.make_inner();
        Some(graph)
    }

    /// Fields of the row.
    pub fn width(&self) -> usize {
        self.tables.last().map_or(0, |table| table.fields().end)
    }

    /// Adds a relation; its fields over the row.
    fn add(&mut self, rel: &'a Rel) -> Option<Vec<Expr>> {
        match &rel.kind {
            RelKind::Scan { .. } => {
                let at = self.width();
                self.tables.push(JoinedTable { scan: rel, at, on: None });
                Some(rel.fields.iter().enumerate().map(|(i, field)| Expr::column(at + i, field.ty.clone())).collect())
            }
            RelKind::Filter { input, predicate } => {
                let fields = self.add(input)?;
                self.conditions.extend(conjuncts_over(predicate, &fields)?);
                Some(fields)
            }
            RelKind::Project { input, exprs } => {
                let fields = self.add(input)?;
                // What is made of a field has the digits of the field's type.
                exprs.iter().map(|e| over(e, &fields).filter(|e| !e.has_hidden_digits())).collect()
            }
            RelKind::Join { kind: kind @ (JoinKind::Inner | JoinKind::Straight), left, right, on } => {
                self.straight |= *kind == JoinKind::Straight;
                let mut fields = self.add(left)?;
                fields.extend(self.add(right)?);
                if let Some(on) = on {
                    self.conditions.extend(conjuncts_over(on, &fields)?);
                }
                Some(fields)
            }
            RelKind::Join { kind: JoinKind::Left, left, right, on } => {
                let mut fields = self.add(left)?;
                // What the right side asks of its own rows only decides which of them match.
                let (tables, conditions) = (self.tables.len(), std::mem::take(&mut self.conditions));
                let right_fields = self.add(right);
                let mut matches = std::mem::replace(&mut self.conditions, conditions);
                let right_fields = right_fields?;
                // A computed field of a row that is missing would be NULL and not what it computes.
                if self.tables.len() != tables + 1 || self.tables[tables].on.is_some() || right_fields.iter().any(|e| e.as_column().is_none()) {
                    return None;
                }
                fields.extend(right_fields.into_iter().map(|mut e| {
                    e.ty.nullable = true;
                    e
                }));
                if let Some(on) = on {
                    matches.extend(conjuncts_over(on, &fields)?);
                }
                self.tables[tables].on = Some(matches);
                Some(fields)
            }
            _ => None,
        }
    }

    /// A LEFT JOIN whose missing rows no result can have is an inner join.
    fn make_inner(&mut self) {
        loop {
            let JoinGraph { tables, conditions, .. } = self;
            let needed = |table: &JoinedTable<'_>| conditions.iter().any(|c| refuses_null(c, &table.fields()));
            let Some(table) = tables.iter_mut().find(|table| table.on.is_some() && needed(table)) else { return };
            let on = table.on.take().unwrap_or_default();
            conditions.extend(on);
        }
    }
}

/// True if the condition is not true whenever all of `fields` are NULL, as far as its form shows it.
fn refuses_null(condition: &Expr, fields: &std::ops::Range<usize>) -> bool {
    let is_field = |e: &Expr| e.as_column().is_some_and(|i| fields.contains(&i));
    match &condition.kind {
        ExprKind::Compare { op, left, right, .. } => *op != CompareOp::NullSafeEq && (is_field(left) || is_field(right)),
        ExprKind::In { expr, .. } | ExprKind::Like { expr, .. } => is_field(expr),
        ExprKind::IsNull { expr, negated: true } => is_field(expr),
        _ => false,
    }
}

fn conjuncts_over(condition: &Expr, fields: &[Expr]) -> Option<Vec<Expr>> {
    condition.conjuncts().iter().map(|c| over(c, fields)).collect()
}

/// An expression over `fields` as one over what they are made of.
fn over(expr: &Expr, fields: &[Expr]) -> Option<Expr> {
    let mut own = true;
    expr.walk(&mut |e| own &= !matches!(e.kind, ExprKind::Subquery(_) | ExprKind::Outer { .. }));
    if own && expr.is_repeatable() { expr.clone().over(fields) } else { None }
}
