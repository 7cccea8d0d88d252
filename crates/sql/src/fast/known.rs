//! Aggregates that indexes know without a row being read for each: how many rows a table has, and the least and the greatest value of a column, which stand
//! at the ends of an index, or of the part of it that equalities and a range cut out. What MySQL calls "Select tables optimized away".

use std::ops::Bound;
use std::sync::Arc;

use highkey_table::{Direction, IndexKind, Isolation, KeyRange, RowBatch, RowUse, Table, TableDef};
use highkey_types::{MySqlError, TypeKind, Value};

use super::compile::sorts_as;
use super::{Stage, TableSource};
use crate::execute::{Failure, to_session};
use crate::expr::EvalContext;
use crate::plan::{self, Aggregate, AggregateFunc, Expr, IndexAccess};
use crate::session::Session;

/// What an aggregate is.
pub(super) enum Answer {
    /// As many as the table has rows: leaves are counted.
    Rows,
    /// The value at an end of an index.
    End(End),
}

/// One end of an index, or of a range of it.
pub(super) struct End {
    index: usize,
    /// `None`: the whole index.
    access: Option<IndexAccess>,
    /// The column whose value is wanted.
    column: usize,
    backward: bool,
    /// The column is the part behind the equal ones, no bound is on it, and it may be NULL.
    skips_nulls: bool,
}

/// What an [`Answer`] has come to.
pub(super) enum Found {
    Rows(u64),
    Value(Value),
}

/// The answers of the aggregates above a table, over those of its rows that satisfy `condition`; `None` unless indexes know all of them.
pub(super) fn answers(source: &TableSource, condition: Option<&Expr>, stages: &[Stage]) -> Option<Vec<Answer>> {
    // Projections of columns between the scan and the aggregate.
    let mut columns = source.columns.clone();
    let mut stages = stages.iter();
    let aggregates = loop {
        match stages.next()? {
            Stage::Project(exprs) => columns = exprs.iter().map(|e| e.as_column().map(|i| columns[i])).collect::<Option<_>>()?,
            Stage::Aggregate(aggregates) => break aggregates,
            _ => return None,
        }
    };
    (!aggregates.is_empty()).then_some(())?;
    aggregates.iter().map(|aggregate| answer(source, condition, aggregate, &columns)).collect()
}

/// `columns`: what the fields of the aggregate's input are.
fn answer(source: &TableSource, condition: Option<&Expr>, aggregate: &Aggregate, columns: &[usize]) -> Option<Answer> {
    let def = source.table.def();
    let maximum = match aggregate.func {
        AggregateFunc::CountStar if condition.is_none() => return Some(Answer::Rows),
        AggregateFunc::Count if condition.is_none() && counts_all(aggregate, columns, def) => return Some(Answer::Rows),
        AggregateFunc::Min => false,
        AggregateFunc::Max => true,
        _ => return None,
    };
    let arg = aggregate.args.first()?;
    let column = columns[arg.as_column()?];
    let ty = &def.columns.get(column)?.ty;
    // ENUM and SET are indexed by number and compared as text.
    if matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) || !sorts_as(arg, ty) {
        return None;
    }
    (0..def.indexes.len()).filter(|&i| source.choice.finds(i)).find_map(|index| end(source, condition, index, column, maximum)).map(Answer::End)
}

/// COUNT of what is never NULL.
fn counts_all(aggregate: &Aggregate, columns: &[usize], def: &TableDef) -> bool {
    let [arg] = &aggregate.args[..] else { return false };
    let never_null = match arg.as_column() {
        Some(field) => def.columns.get(columns[field]).is_some_and(|column| !column.nullable),
        None => arg.as_literal().is_some_and(|value| !value.is_null()),
    };
    never_null && !aggregate.distinct
}

fn end(source: &TableSource, condition: Option<&Expr>, index: usize, column: usize, maximum: bool) -> Option<End> {
    let def = source.table.def();
    let parts = &def.indexes[index].parts;
    if def.indexes[index].kind == IndexKind::FullText || (def.indexes[index].invisible && index != 0) {
        return None;
    }
    // All rows of one range, and no others, satisfy the condition. At most one row is read as fast by its key.
    let exact = |access: &IndexAccess| !access.unique && access.residual.is_none() && access.ranges.len() == 1;
    let access = match condition {
        Some(condition) => Some(plan::index_access(condition, def, &source.columns, index).filter(exact)?),
        None => None,
    };
    let equal = access.as_ref().map_or(0, |access| access.equalities);
    let at = parts.iter().position(|part| part.column == column)?;
    let ty = &def.columns[column].ty;
    // A part that equals something has one value, but texts that are equal may be different.
    if parts[at].prefix.is_some() || at > equal || (at < equal && ty.is_text()) {
        return None;
    }
    let bounded = access.as_ref().is_some_and(|access| access.matched > access.equalities);
    let skips_nulls = at == equal && !bounded && def.columns[column].nullable;
    Some(End { index, access, column, backward: maximum != parts[at].descending, skips_nulls })
}

impl End {
    /// The range at whose end the value is; `None`: nothing satisfies the condition.
    fn range(&self, def: &TableDef, cx: &mut dyn EvalContext) -> Result<Option<KeyRange>, MySqlError> {
        let range = match &self.access {
            Some(access) => plan::key_ranges(access, def, cx)?.pop(),
            None => Some(KeyRange::all()),
        };
        let Some(range) = range else { return Ok(None) };
        if !self.skips_nulls {
            return Ok(Some(range));
        }
        // NULLs stand at the low end and do not count.
        let mut null = match range.lower {
            Bound::Included(prefix) => prefix,
            _ => Vec::new(),
        };
        let rest = if null.is_empty() { Bound::Unbounded } else { Bound::Included(null.clone()) };
        let descending = def.indexes[self.index].parts[null.len()].descending;
        null.push(Value::Null);
        Ok(Some(if descending { KeyRange { lower: rest, upper: Bound::Excluded(null) } } else { KeyRange { lower: Bound::Excluded(null), upper: rest } }))
    }
}

impl Session {
    pub(super) async fn find_answers(&mut self, table: &Arc<Table>, answers: &[Answer]) -> Result<Vec<Found>, Failure> {
        let mut counted = None;
        let mut found = Vec::with_capacity(answers.len());
        for answer in answers {
            found.push(match (answer, counted) {
                (Answer::End(end), _) => Found::Value(self.value_at(table, end)?),
                (Answer::Rows, Some(rows)) => Found::Rows(rows),
                (Answer::Rows, None) => {
                    let rows = self.count_rows(table).await?;
                    counted = Some(rows);
                    Found::Rows(rows)
                }
            });
        }
        Ok(found)
    }

    async fn count_rows(&mut self, table: &Arc<Table>) -> Result<u64, Failure> {
        // Each index has an entry for each row.
        let index = if self.txn().isolation() == Isolation::ReadUncommitted { 0 } else { plan::smallest_index(table) };
        let mut scan = table.scan(self.txn(), index, &KeyRange::all(), Direction::Forward)?;
        let mut rows = 0;
        while let Some(n) = scan.count_batch()? {
            rows += n;
            self.txn().breathe(1).await?;
        }
        self.state.process.add_examined(rows);
        Ok(rows)
    }

    /// NULL if nothing is there.
    fn value_at(&mut self, table: &Arc<Table>, end: &End) -> Result<Value, MySqlError> {
        let Some(range) = end.range(table.def(), &mut self.state)? else { return Ok(Value::Null) };
        let direction = if end.backward { Direction::Backward } else { Direction::Forward };
        self.state.work.begin_range(&range, end.backward);
        table.count_use(Some(end.index), RowUse::Fetch, 1);
        let mut scan = table.scan(self.txn(), end.index, &range, direction)?.of_columns(&[end.column]);
        let mut batch = RowBatch::new();
        if !scan.next_batch(&mut batch)? || batch.is_empty() {
            return Ok(Value::Null);
        }
        let mut value = batch.value(0, end.column);
        if matches!(table.columns()[end.column].ty.kind, TypeKind::Timestamp(_)) {
            to_session(&mut value, &self.state.config.time_zone);
        }
        Ok(value)
    }
}
