//! Which columns of FROM the groups of a query determine: what ONLY_FULL_GROUP_BY lets be selected beside them.

use highkey_table::{IndexKind, Table};

use super::binder::Binder;
use crate::plan::{Coercibility, CompareOp, Expr, ExprKind, JoinKind, Rel, RelKind};

/// A value that each row of FROM has: a column of a table, or what a derived table or a view computes.
type Value = usize;

/// A key with columns that may be NULL determines the others only where it is not.
struct NullableKey {
    key: Vec<Value>,
    nullable: Vec<Value>,
    row: Vec<Value>,
}

/// Where the rows are made that are being looked at.
#[derive(Clone, Default)]
struct Place {
    /// On the inner side of an outer join: a row may be one of NULLs.
    inner: bool,
    /// What decides whether it is.
    decided_by: Vec<Value>,
}

impl Place {
    fn after(&self, values: &[Value]) -> Vec<Value> {
        self.decided_by.iter().chain(values).copied().collect()
    }
}

/// What is known of the values of FROM's rows.
struct Dependences<'a, 'b> {
    binder: &'a Binder<'b>,
    values: usize,
    /// Rows that have the same first values have the same second ones.
    rules: Vec<(Vec<Value>, Vec<Value>)>,
    nullable_keys: Vec<NullableKey>,
    /// Never NULL in rows that there are.
    present: Vec<Value>,
}

impl Binder<'_> {
    /// Columns of FROM that the group expressions determine: through keys, equalities, constants and what is computed of others.
    pub fn determined(&self, groups: &[Expr], from: &Rel, filter: Option<&Expr>, rollup: bool) -> Vec<usize> {
        if rollup {
            // A row of totals has NULL for its group, and all rows' other columns.
            return Vec::new();
        }
        let mut dependences = Dependences { binder: self, values: 0, rules: Vec::new(), nullable_keys: Vec::new(), present: Vec::new() };
        let columns = dependences.rel(from, &Place::default());
        if let Some(filter) = filter {
            dependences.condition(filter, &columns, &Place::default());
        }
        // Under COLLATE a group has more than one value of its column.
        let plain = groups.iter().filter(|group| group.ty.coercibility != Coercibility::Explicit);
        let known = plain.filter_map(Expr::as_column).filter_map(|column| columns.get(column).copied()).collect();
        let known = dependences.closure(known);
        (0..columns.len()).filter(|&column| known[columns[column]]).collect()
    }
}

impl Dependences<'_, '_> {
    /// All that `start` determines, by value.
    fn closure(mut self, start: Vec<Value>) -> Vec<bool> {
        let present = std::mem::take(&mut self.present);
        for key in std::mem::take(&mut self.nullable_keys) {
            if key.nullable.iter().all(|value| present.contains(value)) {
                self.rules.push((key.key, key.row));
            }
        }
        let mut known = vec![false; self.values];
        start.into_iter().for_each(|value| known[value] = true);
        loop {
            let mut grown = false;
            for (from, to) in &self.rules {
                if from.iter().all(|&value| known[value]) {
                    for &value in to {
                        grown |= !known[value];
                        known[value] = true;
                    }
                }
            }
            if !grown {
                return known;
            }
        }
    }

    fn fresh(&mut self, count: usize) -> Vec<Value> {
        self.values += count;
        (self.values - count..self.values).collect()
    }

    /// The values of an operator's rows, by column.
    fn rel(&mut self, rel: &Rel, place: &Place) -> Vec<Value> {
        crate::stack::ensure(|| self.rel_in(rel, place))
    }

    fn rel_in(&mut self, rel: &Rel, place: &Place) -> Vec<Value> {
        match &rel.kind {
            RelKind::Scan { table, columns, .. } => {
                let row = self.fresh(columns.len());
                self.table(table, columns, &row, place);
                row
            }
            RelKind::Filter { input, predicate } => {
                let row = self.rel(input, place);
                self.condition(predicate, &row, place);
                row
            }
            RelKind::Project { input, exprs } => {
                let row = self.rel(input, place);
                exprs.iter().map(|expr| self.computed(expr, &row, place)).collect()
            }
            RelKind::Join { kind, left, right, on } => {
                let mut row = self.rel(left, place);
                let outer = *kind == JoinKind::Left;
                let mut inner = place.clone();
                if outer {
                    inner.inner = true;
                    let reads = on.as_ref().map(Expr::columns).unwrap_or_default();
                    inner.decided_by.extend(reads.into_iter().filter_map(|column| row.get(column).copied()));
                }
                let width = row.len();
                row.extend(self.rel(right, &inner));
                match on {
                    Some(on) if outer => self.outer_condition(on, &row, width, &inner),
                    Some(on) => self.condition(on, &row, place),
                    None => {}
                }
                row
            }
            RelKind::Aggregate { input, groups, aggregates, rollup: false } => {
                let below = self.rel(input, place);
                let mut row: Vec<Value> = groups.iter().map(|group| self.computed(group, &below, place)).collect();
                let key = row.clone();
                row.extend(self.fresh(aggregates.len()));
                // (MySQL does not look for it on the inner side of an outer join.)
                if !place.inner {
                    self.rules.push((key, row.clone()));
                }
                row
            }
            RelKind::Values { rows } => {
                let row = self.fresh(rel.fields.len());
                if rows.len() == 1 {
                    self.rules.push((place.decided_by.clone(), row.clone()));
                }
                row
            }
            RelKind::Apply { input, .. } | RelKind::Window { input, .. } => {
                let mut row = self.rel(input, place);
                row.extend(self.fresh(rel.fields.len() - row.len()));
                row
            }
            RelKind::Sort { input, .. } | RelKind::Limit { input, .. } | RelKind::Distinct { input } => self.rel(input, place),
            RelKind::MaterializedCte { plan, .. } => self.rel(plan, place),
            _ => self.fresh(rel.fields.len()),
        }
    }

    /// What an expression over a row computes.
    fn computed(&mut self, expr: &Expr, row: &[Value], place: &Place) -> Value {
        match expr.as_column() {
            Some(column) if expr.ty.coercibility != Coercibility::Explicit => return row[column],
            _ => {}
        }
        let value = self.fresh(1);
        if expr.is_repeatable() {
            let read: Vec<Value> = expr.columns().into_iter().map(|column| row[column]).collect();
            self.rules.push((place.after(&read), value.clone()));
        }
        value[0]
    }

    /// Keys and generated columns of a table. `columns`: which of its columns `row` has.
    fn table(&mut self, table: &Table, columns: &[usize], row: &[Value], place: &Place) {
        let def = table.def();
        let value = |column: usize| columns.iter().position(|c| *c == column).map(|at| row[at]);
        for index in def.indexes.iter().filter(|index| matches!(index.kind, IndexKind::Primary | IndexKind::Unique)) {
            if index.parts.iter().any(|part| part.prefix.is_some()) {
                continue;
            }
            let Some(key) = index.parts.iter().map(|part| value(part.column)).collect::<Option<Vec<Value>>>() else { continue };
            let nullable = index.parts.iter().filter(|part| def.columns[part.column].nullable).filter_map(|part| value(part.column)).collect();
            self.nullable_keys.push(NullableKey { key, nullable, row: row.to_vec() });
        }
        for (at, column) in def.columns.iter().enumerate() {
            let (Some(generated), Some(to)) = (&column.generated, value(at)) else { continue };
            let bound = crate::parse::parse_expr(&generated.expr).and_then(|expr| super::bind_table_expr(&expr, def, column.ty.is_number(), self.binder.cx));
            let read = bound.ok().and_then(|expr| expr.columns().into_iter().map(value).collect::<Option<Vec<Value>>>());
            if let Some(read) = read {
                self.rules.push((place.after(&read), vec![to]));
            }
        }
    }

    /// What a condition says that all rows satisfy.
    fn condition(&mut self, condition: &Expr, row: &[Value], place: &Place) {
        for part in condition.conjuncts() {
            self.present.extend(present_columns(part).into_iter().map(|column| row[column]));
            match equality(part) {
                Some((left, Some(right))) => {
                    self.rules.push((vec![row[left]], vec![row[right]]));
                    self.rules.push((vec![row[right]], vec![row[left]]));
                }
                Some((column, None)) => self.rules.push((place.decided_by.clone(), vec![row[column]])),
                None => {}
            }
        }
    }

    /// ON of an outer join, whose inner side has the columns from `width` on: what it says of them.
    fn outer_condition(&mut self, on: &Expr, row: &[Value], width: usize, inner: &Place) {
        for part in on.conjuncts() {
            self.present.extend(present_columns(part).into_iter().filter(|column| *column >= width).map(|column| row[column]));
            match equality(part) {
                Some((left, Some(right))) if left >= width && right >= width => {
                    self.rules.push((vec![row[left]], vec![row[right]]));
                    self.rules.push((vec![row[right]], vec![row[left]]));
                }
                Some((left, Some(right))) if left >= width || right >= width => {
                    self.rules.push((inner.after(&[row[left.min(right)]]), vec![row[left.max(right)]]));
                }
                Some((column, None)) if column >= width => self.rules.push((inner.decided_by.clone(), vec![row[column]])),
                _ => {}
            }
        }
    }
}

/// Two columns that a condition says are equal, or a column that it says is a constant.
fn equality(condition: &Expr) -> Option<(usize, Option<usize>)> {
    match &condition.kind {
        ExprKind::Compare { op: CompareOp::Eq, left, right, .. } => match (left.as_column(), right.as_column()) {
            (Some(left), Some(right)) => Some((left, Some(right))),
            (Some(column), None) if right.is_known() => Some((column, None)),
            (None, Some(column)) if left.is_known() => Some((column, None)),
            _ => None,
        },
        // To MySQL that is `=`.
        ExprKind::In { expr, list, negated: false, .. } if list.len() == 1 && list[0].is_known() => expr.as_column().map(|column| (column, None)),
        _ => None,
    }
}

/// The columns that are not NULL where a condition is true.
fn present_columns(condition: &Expr) -> Vec<usize> {
    match &condition.kind {
        ExprKind::Compare { op: CompareOp::NullSafeEq, .. } => Vec::new(),
        ExprKind::Compare { left, right, .. } => left.as_column().into_iter().chain(right.as_column()).collect(),
        ExprKind::IsNull { expr, negated: true } => expr.as_column().into_iter().collect(),
        ExprKind::Not(inner) => match &inner.kind {
            ExprKind::IsNull { expr, negated: false } => expr.as_column().into_iter().collect(),
            _ => Vec::new(),
        },
        ExprKind::In { expr, negated: false, .. } | ExprKind::Like { expr, negated: false, .. } => expr.as_column().into_iter().collect(),
        _ => Vec::new(),
    }
}
