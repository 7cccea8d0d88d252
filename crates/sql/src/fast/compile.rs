//! Which plans the fast path takes, and the shape it runs them in.

use highkey_types::{KeyPart, TypeKind};

use super::{FastQuery, Source, Stage, TableSource};
use crate::bind::ROW_ID;
use crate::parse::ast::LockWait;
use crate::plan::{self, AggregateFunc, BoundQuery, Expr, ExprKind, Rel, RelKind, SortKey};
use crate::session::Executor;

/// Rows of the source that a blocking stage may hold.
const BUDGET: u64 = 20_000;
/// A table of at most this many rows is read whole without an index.
const SMALL_TABLE: u64 = 2_000;
/// LIMIT of at most this many rows without an index: reading stops early.
const SMALL_LIMIT: u64 = 10_000;

impl FastQuery {
    /// It would lock all rows of a table in share mode, one by one. DataFusion's way locks them as one range, and reads them in parallel.
    pub fn shares_whole_table(&self) -> bool {
        let Source::Table(source) = &self.source else { return false };
        let shares = source.lock.is_some_and(|lock| !lock.exclusive && lock.wait == LockWait::Wait);
        shares && source.access.is_none() && !self.stages.iter().any(|stage| matches!(stage, Stage::Limit { .. }))
    }

    /// `None`: DataFusion's.
    pub fn compile(bound: &BoundQuery, executor: Executor) -> Option<FastQuery> {
        if executor == Executor::DataFusion || bound.calc_found_rows || bound.into.as_ref().is_some_and(|i| !matches!(i, plan::IntoTarget::Variables(_))) {
            return None;
        }
        let mut stages = Vec::new();
        let mut rel = &bound.rel;
        let source = loop {
            match &rel.kind {
                RelKind::Filter { input, predicate } => {
                    runs_here(predicate)?;
                    stages.push(Stage::Filter(predicate.clone()));
                    rel = input;
                }
                RelKind::Project { input, exprs } => {
                    exprs.iter().try_for_each(runs_here)?;
                    stages.push(Stage::Project(exprs.clone()));
                    rel = input;
                }
                RelKind::Sort { input, keys } => {
                    keys.iter().try_for_each(|k| runs_here(&k.expr))?;
                    stages.push(Stage::Sort(keys.clone()));
                    rel = input;
                }
                RelKind::Limit { input, offset, count } => {
                    stages.push(Stage::Limit { offset: offset.clone(), count: count.clone() });
                    rel = input;
                }
                RelKind::Distinct { input } => {
                    stages.push(Stage::Distinct(rel.fields.iter().map(|f| KeyPart { ty: f.ty.ty.clone(), descending: false, prefix: None, nullable: true }).collect()));
                    rel = input;
                }
                RelKind::Aggregate { input, groups, aggregates, rollup: false } if groups.is_empty() => {
                    for aggregate in aggregates {
                        let known = matches!(
                            aggregate.func,
                            AggregateFunc::CountStar | AggregateFunc::Count | AggregateFunc::Sum | AggregateFunc::Avg | AggregateFunc::Min | AggregateFunc::Max
                        );
                        if !known || aggregate.distinct || aggregate.args.len() > 1 {
                            return None;
                        }
                        aggregate.args.iter().try_for_each(runs_here)?;
                    }
                    stages.push(Stage::Aggregate(aggregates.clone()));
                    rel = input;
                }
                RelKind::Values { rows } => {
                    rows.iter().flatten().try_for_each(runs_here)?;
                    break Source::Rows(rows.clone());
                }
                RelKind::Scan { .. } => break Source::Table(table_source(rel)),
                _ => return None,
            }
        };
        stages.reverse();
        let forced = executor == Executor::Fast;
        let mut query = FastQuery { source, stages, budget: if forced { u64::MAX } else { BUDGET } };
        let faster = query.shape()?;
        (faster || forced).then_some(query)
    }

    /// Finds the index; false if the fast path would be the slower one.
    fn shape(&mut self) -> Option<bool> {
        let Source::Table(source) = &mut self.source else { return Some(true) };
        if let Some(Stage::Filter(predicate)) = self.stages.first() {
            match plan::best_access(predicate, source.table.def(), &source.columns, &source.choice) {
                Some(access) => {
                    source.index = access.index;
                    source.residual = access.residual.clone();
                    source.access = Some(access);
                    self.stages.remove(0);
                }
                None => {
                    source.residual = Some(predicate.clone());
                    self.stages.remove(0);
                }
            }
        }
        if source.lock.is_none() && source.access.is_none() && source.residual.is_none() {
            if let Some(found) = self.special() {
                self.source = found;
                return Some(true);
            }
        }
        self.drop_sort();
        let Source::Table(source) = &self.source else { return Some(true) };
        if source.lock.is_some() || source.access.is_some() {
            return Some(true);
        }
        let blocks = self.stages.iter().any(Stage::blocks) || self.stages.iter().any(|s| matches!(s, Stage::Distinct(_)));
        if !blocks {
            let limited = self.stages.iter().any(|s| matches!(s, Stage::Limit { count: Some(count), .. } if small_limit(count)));
            if limited || source.residual.is_none() {
                return Some(true);
            }
        }
        Some(source.table.row_count_estimate().is_ok_and(|rows| rows <= SMALL_TABLE))
    }

    /// COUNT(*) of a table, MIN or MAX of an indexed column.
    fn special(&self) -> Option<Source> {
        let Source::Table(source) = &self.source else { return None };
        // Projections of columns between the scan and the aggregate.
        let mut columns = source.columns.clone();
        let mut stages = self.stages.iter();
        let aggregates = loop {
            match stages.next()? {
                Stage::Project(exprs) => columns = exprs.iter().map(|e| e.as_column().map(|i| columns[i])).collect::<Option<_>>()?,
                Stage::Aggregate(aggregates) => break aggregates,
                _ => return None,
            }
        };
        let [aggregate] = &aggregates[..] else { return None };
        if aggregate.func == AggregateFunc::CountStar {
            return Some(Source::Count(source.table.clone()));
        }
        let maximum = match aggregate.func {
            AggregateFunc::Min => false,
            AggregateFunc::Max => true,
            _ => return None,
        };
        let column = columns[aggregate.args.first()?.as_column()?];
        // ENUM and SET are indexed by number and compared as text.
        if matches!(source.table.columns().get(column)?.ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) {
            return None;
        }
        let index = (0..source.table.indexes().len()).filter(|&i| source.choice.finds(i)).find(|&i| source.table.indexes()[i].parts.first().is_some_and(|p| p.column == column && p.prefix.is_none()))?;
        let descending = source.table.indexes()[index].parts[0].descending;
        Some(Source::Extreme { table: source.table.clone(), index, column, backward: maximum != descending })
    }

    /// A sort whose order the index has already is none.
    fn drop_sort(&mut self) {
        let Source::Table(source) = &mut self.source else { return };
        let mut columns: Vec<Option<usize>> = source.columns.iter().map(|c| Some(*c)).collect();
        let mut at = 0;
        while let Some(stage) = self.stages.get(at) {
            match stage {
                Stage::Filter(_) => {}
                Stage::Project(exprs) => columns = exprs.iter().map(|e| e.as_column().and_then(|i| columns[i])).collect(),
                Stage::Sort(keys) => {
                    let Some(keys) = sort_columns(keys, &columns) else { return };
                    let limited = self.stages[at + 1..].iter().any(|s| matches!(s, Stage::Limit { count: Some(count), .. } if small_limit(count)));
                    if let Some((index, backward)) = ordered_index(source, &keys, limited) {
                        source.index = index;
                        source.backward = backward;
                        self.stages.remove(at);
                    }
                    return;
                }
                _ => return,
            }
            at += 1;
        }
    }
}

/// Sort keys as (table column, descending), if they are nothing but columns.
fn sort_columns(keys: &[SortKey], columns: &[Option<usize>]) -> Option<Vec<(usize, bool)>> {
    keys.iter().map(|k| k.expr.as_column().and_then(|i| columns[i]).map(|c| (c, k.desc))).collect()
}

/// The index (and direction) that reads in the order of `keys`: the one of the access, or any, if only few rows are wanted of all.
fn ordered_index(source: &TableSource, keys: &[(usize, bool)], limited: bool) -> Option<(usize, bool)> {
    let def = source.table.def();
    let fits = |index: usize, skip: usize| -> Option<bool> {
        if !source.choice.orders(index) {
            return None;
        }
        let parts = def.indexes[index].parts.get(skip..)?;
        if keys.len() > parts.len() {
            return None;
        }
        let mut direction = None;
        for (part, (column, desc)) in parts.iter().zip(keys) {
            let backward = part.descending != *desc;
            if part.column != *column || part.prefix.is_some() || direction.is_some_and(|d| d != backward) {
                return None;
            }
            direction = Some(backward);
        }
        direction
    };
    match &source.access {
        Some(access) => {
            // Equal leading parts order nothing if there is one range; several are in the order of the whole key.
            let skip = if access.ranges.len() == 1 { access.ranges[0].prefix.len() } else { 0 };
            fits(access.index, skip).or_else(|| fits(access.index, 0)).map(|backward| (access.index, backward))
        }
        None if limited => (0..def.indexes.len()).filter(|&i| !def.indexes[i].invisible).find_map(|i| fits(i, 0).map(|backward| (i, backward))),
        None => fits(0, 0).map(|backward| (0, backward)),
    }
}

/// A LIMIT known to be small; one in a parameter is taken to be.
fn small_limit(count: &Expr) -> bool {
    match count.as_literal() {
        Some(value) => value.as_i64().is_some_and(|n| n as u64 <= SMALL_LIMIT),
        None => matches!(count.kind, ExprKind::Param(_)) || count.is_constant(),
    }
}

fn table_source(rel: &Rel) -> TableSource {
    let RelKind::Scan { table, columns, indexes, lock, .. } = &rel.kind else { unreachable!("the caller matched a scan") };
    let timestamps = (0..columns.len()).filter(|&i| columns[i] != ROW_ID && matches!(table.columns()[columns[i]].ty.kind, TypeKind::Timestamp(_))).collect();
    TableSource { table: table.clone(), columns: columns.clone(), timestamps, access: None, index: 0, choice: indexes.clone(), backward: false, residual: None, lock: *lock }
}

/// The evaluator can do it by itself: no subquery, no enclosing row.
fn runs_here(expr: &Expr) -> Option<()> {
    let mut fits = true;
    expr.walk(&mut |e| fits &= !matches!(e.kind, ExprKind::Subquery(_) | ExprKind::Outer { .. } | ExprKind::AggregateRef(_) | ExprKind::WindowRef(_)));
    fits.then_some(())
}
