//! In strict DML, a query's outputs that may warn are computed here, row by row, where the query would compute them for rows that nobody wants: those that LIMIT
//! drops, and matches of a row that was updated already.

use highkey_types::{MySqlError, Value};

use crate::expr::{self, EvalContext, Warns};
use crate::plan::{Expr, Field, Rel, RelKind};
use crate::session::SessionState;

/// The outputs of a query as expressions over the rows that it gives.
pub(crate) struct Late {
    outputs: Vec<Expr>,
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
        let is_late = |i: usize, expr: &Expr| columns.contains(&i) && !sorted.contains(&i) && warns.value(expr);
        let (exprs, fields, outputs) = in_two_steps(exprs, &projection.fields, input, is_late)?;
        let outputs = columns.iter().map(|&i| outputs[i].clone()).collect();
        *rel = input.as_ref().clone().project(exprs, fields).sort(keys).limit(offset.clone(), count.clone());
        Some(Late { outputs })
    }

    /// Takes those of the outputs `wanted` that may warn out of a projection. The other outputs stay where they are.
    pub fn of_projection(rel: &mut Rel, wanted: &[usize], state: &SessionState) -> Option<Late> {
        if !state.warnings_are_errors() {
            return None;
        }
        let RelKind::Project { input, exprs } = &mut rel.kind else { return None };
        let mut warns = Warns::new(state);
        let is_late = |i: usize, expr: &Expr| wanted.contains(&i) && warns.value(expr);
        let (first, fields, outputs) = in_two_steps(exprs, &rel.fields, input, is_late)?;
        *exprs = first;
        rel.fields = fields;
        Some(Late { outputs })
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

/// A projection in two: what is computed of `input` first, its fields, and all outputs as expressions over that. An output that is not late keeps its place.
/// `None` if none is.
fn in_two_steps(
    exprs: &[Expr],
    fields: &[Field],
    input: &Rel,
    mut is_late: impl FnMut(usize, &Expr) -> bool,
) -> Option<(Vec<Expr>, Vec<Field>, Vec<Expr>)> {
    let (mut first, mut first_fields) = (exprs.to_vec(), fields.to_vec());
    let mut outputs: Vec<Expr> = fields.iter().enumerate().map(|(i, field)| Expr::column(i, field.ty.clone())).collect();
    let mut any = false;
    for (i, expr) in exprs.iter().enumerate() {
        if !expr.is_steady() || expr.has_subquery() || !is_late(i, expr) {
            continue;
        }
        any = true;
        first[i] = Expr::int(0);
        first_fields[i] = Field::computed("", first[i].ty.clone());
        let mut late = expr.clone();
        late.map_columns(&mut |column| match first.iter().position(|e| e.as_column() == Some(column)) {
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
