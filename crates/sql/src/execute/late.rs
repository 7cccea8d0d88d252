//! Outputs of a DML statement's query that are computed here, row by row. In strict mode those that may warn, where the query would compute them for rows that
//! nobody wants: those that LIMIT drops, and matches of a row that was updated already. And the values of a multi-table UPDATE that read what it has assigned.

use highkey_table::Table;
use highkey_types::{MySqlError, Value};

use super::subqueries::lift_subqueries;
use crate::bind::{UpdateTarget, root};
use crate::expr::{self, EvalContext, Warns};
use crate::plan::{Expr, Field, Rel, RelKind};
use crate::session::SessionState;

/// The outputs of a query as expressions over the rows that it gives.
pub(crate) struct Late {
    outputs: Vec<Expr>,
    /// Some read what an UPDATE has assigned: it is to be put into the query's rows.
    reads_assigned: bool,
}

impl Late {
    /// Takes the outputs that may warn out of a query that ends with LIMIT, if it does not sort by them.
    pub fn after_limit(rel: &mut Rel, state: &SessionState) -> Option<Late> {
        if !state.warnings_are_errors() {
            return None;
        }
        let mut columns: Vec<usize> = (0..rel.fields.len()).collect();
        let mut at: &Rel = rel;
        while let RelKind::Project { input, exprs } = &at.kind {
            columns = columns.iter().map(|&i| exprs[i].as_column()).collect::<Option<_>>()?;
            at = input;
        }
        let RelKind::Limit { input, offset, count } = &at.kind else { return None };
        let (projection, keys) = match &input.kind {
            RelKind::Sort { input, keys } => (input, keys.clone()),
            _ => (input, Vec::new()),
        };
        let RelKind::Project { input, exprs } = &projection.kind else { return None };
        let mut warns = Warns::new(state);
        let sorted: Vec<usize> = keys.iter().flat_map(|key| key.expr.columns()).collect();
        let is_late = |i: usize, expr: &Expr| columns.contains(&i) && !sorted.contains(&i) && can_wait(expr) && warns.value(expr);
        let (exprs, fields, outputs) = in_two_steps(exprs, &projection.fields, input, &[], is_late)?;
        let outputs = columns.iter().map(|&i| outputs[i].clone()).collect();
        *rel = input.as_ref().clone().project(exprs, fields).sort(keys).limit(offset.clone(), count.clone());
        Some(Late { outputs, reads_assigned: false })
    }

    /// Takes those of the assigned values out of the query of a multi-table UPDATE that read what is assigned before them, and those that may warn. The other
    /// outputs stay where they are. As in MySQL, where the optimizer reads the first of the targets first: its assignments see those before them, and those of
    /// the other targets see its row as it has become, but not each other. They do not if its rows move, or if the table is read under another name too.
    pub fn of_update(rel: &mut Rel, targets: &[UpdateTarget], state: &SessionState) -> Option<Late> {
        let RelKind::Project { input, exprs } = &mut rel.kind else { return None };
        let input: &Rel = input;
        let first = targets.first()?;
        let key = first.table.def().primary_key();
        let assigns = |column: &usize| first.assignments.iter().any(|(assigned, _)| assigned == column);
        let moves = key.is_some_and(|key| key.parts.iter().any(|part| assigns(&part.column))) || first.table.partitioned_by().iter().any(assigns);
        let shows = !moves && scans_of(input, &first.table) == 1;
        let columns: Vec<usize> = first.row.clone().filter_map(|output| exprs[output].as_column()).collect();
        let (mut changed, mut reading, mut assigned) = (Vec::new(), Vec::new(), Vec::new());
        for (n, target) in targets.iter().enumerate() {
            for (column, output) in &target.assignments {
                if let Some(output) = *output {
                    exprs[output].map_columns(&mut |column| place_in(&columns, input, column));
                    assigned.push(output);
                    if exprs[output].columns().iter().any(|column| changed.contains(column)) {
                        reading.push(output);
                    }
                }
                if n == 0 && shows {
                    changed.push(columns[*column]);
                }
            }
            if n == 0 && shows {
                let follows = first.table.def().columns.iter().zip(&columns).filter(|(def, _)| def.generated.is_some() || def.on_update_now);
                changed.extend(follows.map(|(_, column)| *column));
            }
        }
        let strict = state.warnings_are_errors();
        let mut warns = Warns::new(state);
        let is_late = |i: usize, expr: &Expr| reading.contains(&i) || strict && assigned.contains(&i) && can_wait(expr) && warns.value(expr);
        let (first_step, fields, outputs) = in_two_steps(exprs, &rel.fields, input, &changed, is_late)?;
        *exprs = first_step;
        rel.fields = fields;
        Some(Late { outputs, reads_assigned: !reading.is_empty() })
    }

    /// What is assigned to the first of the targets is to be put into the query's rows.
    pub fn reads_assigned(&self) -> bool {
        self.reads_assigned
    }

    /// An output as an expression over a row of the query.
    pub fn output(&self, output: usize) -> &Expr {
        &self.outputs[output]
    }

    /// An output of a row of the query.
    pub fn value(&self, output: usize, row: &[Value], state: &mut SessionState) -> Result<Value, MySqlError> {
        let value = expr::eval(&self.outputs[output], row, state)?;
        state.check_strict()?;
        Ok(value)
    }

    /// All of them.
    pub fn row(&self, row: &[Value], state: &mut SessionState) -> Result<Vec<Value>, MySqlError> {
        (0..self.outputs.len()).map(|output| self.value(output, row, state)).collect()
    }
}

/// Computed later it is the same.
fn can_wait(expr: &Expr) -> bool {
    expr.is_steady() && !expr.has_subquery()
}

/// How often a table is read.
fn scans_of(rel: &Rel, table: &Table) -> usize {
    let own = matches!(&rel.kind, RelKind::Scan { table: scanned, .. } if scanned.id() == table.id());
    usize::from(own) + rel.inputs().into_iter().map(|input| scans_of(input, table)).sum::<usize>()
}

/// The one of `columns` of `input` that is the same column of the same table as `column`, which a view may show once more; `column` if none is.
fn place_in(columns: &[usize], input: &Rel, column: usize) -> usize {
    let Some((scan, of_table)) = root(input, column) else { return column };
    let same = |other: usize| root(input, other).is_some_and(|(other, of_other)| std::ptr::eq(other, scan) && of_other == of_table);
    columns.iter().copied().find(|&other| same(other)).unwrap_or(column)
}

/// A projection in two: what is computed of `input` first, its fields, and all outputs as expressions over that. An output that is not late keeps its place.
/// Subqueries of late outputs are late if they read a column that is `changed` meanwhile. `None` if no output is late.
fn in_two_steps(
    exprs: &[Expr],
    fields: &[Field],
    input: &Rel,
    changed: &[usize],
    mut is_late: impl FnMut(usize, &Expr) -> bool,
) -> Option<(Vec<Expr>, Vec<Field>, Vec<Expr>)> {
    let (mut first, mut first_fields) = (exprs.to_vec(), fields.to_vec());
    let mut outputs: Vec<Expr> = fields.iter().enumerate().map(|(i, field)| Expr::column(i, field.ty.clone())).collect();
    let width = input.fields.len();
    let mut any = false;
    for (i, expr) in exprs.iter().enumerate() {
        if !is_late(i, expr) {
            continue;
        }
        any = true;
        first[i] = Expr::int(0);
        first_fields[i] = Field::computed("", first[i].ty.clone());
        let mut late = expr.clone();
        // Outputs stand behind the columns of the input until all are mapped.
        lift_subqueries(&mut late, changed, width, &mut first, 0);
        first_fields.extend(first[first_fields.len()..].iter().map(|e| Field::computed("", e.ty.clone())));
        late.map_columns(&mut |column| match first.iter().position(|e| e.as_column() == Some(column)) {
            _ if column >= width => column - width,
            Some(place) => place,
            None => {
                first.push(Expr::column(column, input.fields[column].ty.clone()));
                first_fields.push(input.fields[column].clone());
                first.len() - 1
            }
        });
        outputs[i] = late;
    }
    any.then_some((first, first_fields, outputs))
}
