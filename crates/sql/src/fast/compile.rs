//! Which plans the fast path takes, and the shape it runs them in.

use highkey_types::{ColumnType, KeyPart, TypeKind};

use highkey_table::{IndexKind, TableDef};

use super::join::{Estimator, JoinSource};
use super::{FastQuery, Source, Stage, TableSource};
use crate::bind::ROW_KEY;
use crate::functions::FuncId;
use crate::parse::ast::LockWait;
use crate::plan::{self, Aggregate, AggregateFunc, BoundQuery, Expr, ExprKind, IndexAccess, IndexChoice, JoinGraph, Rel, RelKind, SortKey};
use crate::session::Executor;

/// Rows of the source that a blocking stage may hold.
const BUDGET: u64 = 20_000;
/// A table of at most this many rows is read whole without an index.
pub(super) const SMALL_TABLE: u64 = 2_000;
/// LIMIT of at most this many rows without an index: reading stops early.
const SMALL_LIMIT: u64 = 10_000;
/// A join whose sort an index could give is read in that index's order, if it would read more rows than this without.
const MANY_TO_SORT: f64 = 1_000.0;
/// Rows that a join may read at least, and the share of its tables' rows that it may read besides: looking a row up costs as much as
/// scanning some dozens.
const JOIN_BUDGET: u64 = 2_000;
const JOIN_BUDGET_SHARE: u64 = 64;

impl FastQuery {
    /// It would lock all rows of a table in share mode, one by one. DataFusion's way locks them as one range, and reads them in parallel.
    pub fn shares_whole_table(&self) -> bool {
        let Source::Table(source) = &self.source else { return false };
        let shares = source.lock.is_some_and(|lock| !lock.exclusive && lock.wait == LockWait::Wait);
        shares && source.access.is_none() && !self.stages.iter().any(|stage| matches!(stage, Stage::Limit { .. }))
    }

    /// It gives the rows of a whole table that has more of them than a blocking stage may hold: not for whoever keeps them all in memory.
    pub fn reads_large_table(&self) -> bool {
        let Source::Table(source) = &self.source else { return false };
        let whole = source.lock.is_none() && source.access.is_none() && !self.stages.iter().any(|stage| matches!(stage, Stage::Limit { .. }));
        whole && source.table.row_count_estimate().is_ok_and(|rows| rows > BUDGET)
    }

    /// `None`: DataFusion's. `estimate` tells what accesses by constants would read.
    pub(crate) fn compile(bound: &BoundQuery, executor: Executor, estimate: Estimator<'_>) -> Option<FastQuery> {
        if executor == Executor::DataFusion || bound.calc_found_rows || bound.into.as_ref().is_some_and(|i| !matches!(i, plan::IntoTarget::Variables(_))) {
            return None;
        }
        let mut stages = Vec::new();
        let mut rel = &bound.rel;
        let mut is_empty = false;
        let source = loop {
            match &rel.kind {
                // No row is asked for.
                RelKind::Filter { predicate, .. } if predicate.is_never() => {
                    is_empty = true;
                    break Source::Rows(Vec::new());
                }
                _ if is_join(rel) => break Source::Rows(Vec::new()),
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
                RelKind::Aggregate { input, groups, aggregates, rollup: false } => {
                    aggregates.iter().try_for_each(aggregates_here)?;
                    groups.iter().try_for_each(runs_here)?;
                    stages.push(if groups.is_empty() {
                        Stage::Aggregate(aggregates.clone())
                    } else {
                        (groups.iter().chain(aggregates.iter().flat_map(|a| &a.args)).all(Expr::is_repeatable)).then_some(())?;
                        let keys = groups.iter().map(group_key).collect::<Option<_>>()?;
                        Stage::Group { groups: groups.clone(), keys, aggregates: aggregates.clone() }
                    });
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
        let mut query = FastQuery { source, stages, budget: BUDGET };
        let faster = if is_empty { true } else if is_join(rel) { query.join(rel, estimate)? } else { query.shape()? };
        query.cover();
        if forced {
            query.budget = u64::MAX;
        }
        (faster || forced).then_some(query)
    }

    /// Makes `rel` the source, a join; false if the fast path would be the slower one.
    fn join(&mut self, rel: &Rel, estimate: Estimator<'_>) -> Option<bool> {
        let graph = JoinGraph::of(rel)?;
        self.stages.iter().all(|stage| stage.all(Expr::is_repeatable)).then_some(())?;
        graph.conditions.iter().chain(graph.tables.iter().filter_map(|t| t.on.as_ref()).flatten()).try_for_each(runs_here)?;
        let needed = over_tables(&mut self.stages, &graph.outputs);
        let mut source = JoinSource::compile(&graph, &needed, &mut *estimate)?;
        let rows: u64 = source.tables().map(|t| t.row_count_estimate().unwrap_or(0)).sum();
        self.budget = (JOIN_BUDGET + rows / JOIN_BUDGET_SHARE).min(BUDGET);
        let own = |field: usize, key: &Expr| graph.tables.iter().any(|t| t.fields().contains(&field) && sorts_as(key, &t.scan.fields[field - t.at].ty.ty));
        if let Some((at, keys)) = self.sort_keys((0..graph.width()).map(Some).collect(), own) {
            let limited = self.is_limited(at + 1);
            let ordered = source.follow(&keys, limited)
                || limited && source.reads > MANY_TO_SORT && JoinSource::compile_ordered(&graph, &needed, &keys, limited, estimate).is_some_and(|ordered| {
                    source = ordered;
                    true
                });
            if ordered {
                self.stages.remove(at);
            }
        }
        let stops_early = self.is_limited(0) && !self.stages.iter().any(Stage::blocks);
        let faster = stops_early || source.reads * 2.0 <= self.budget as f64;
        self.source = Source::Join(source);
        Some(faster)
    }

    /// A small LIMIT comes at `from` or after.
    fn is_limited(&self, from: usize) -> bool {
        self.stages[from..].iter().any(|s| matches!(s, Stage::Limit { count: Some(count), .. } if small_limit(count)))
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
        if source.lock.is_some() {
            return Some(true);
        }
        let small = source.table.row_count_estimate().is_ok_and(|rows| rows <= SMALL_TABLE);
        // Too many rows to hold, and DataFusion starts anew: what changes something may not be there then.
        let untraced = source.residual.iter().all(is_untraced) && self.stages.iter().all(|stage| stage.all(is_untraced));
        if !untraced && self.stages.iter().any(Stage::blocks) {
            self.budget = u64::MAX;
            return Some(small || source.access.as_ref().is_some_and(|access| access.unique));
        }
        if source.access.is_some() {
            return Some(true);
        }
        let blocks = self.stages.iter().any(Stage::blocks) || self.stages.iter().any(|s| matches!(s, Stage::Distinct(_)));
        if !blocks {
            if self.is_limited(0) || source.residual.is_none() {
                return Some(true);
            }
        }
        Some(small)
    }

    /// Leaves the rows alone where the entries of an index have all that is asked of them. What is locked is a row.
    fn cover(&mut self) {
        let fields = self.fields_read();
        match &mut self.source {
            Source::Table(source) if source.lock.is_none() && source.index != 0 => {
                let columns: Vec<usize> = fields.into_iter().map(|field| source.columns[field]).collect();
                source.covered = source.table.covers(source.index, &columns).then_some(columns);
            }
            Source::Join(join) => join.cover(),
            _ => {}
        }
    }

    /// The fields of the table's rows that something reads.
    fn fields_read(&self) -> Vec<usize> {
        let Source::Table(source) = &self.source else { return Vec::new() };
        let mut read: Vec<usize> = source.residual.iter().flat_map(Expr::columns).collect();
        for stage in &self.stages {
            match stage {
                Stage::Filter(predicate) => read.extend(predicate.columns()),
                Stage::Sort(keys) => read.extend(keys.iter().flat_map(|key| key.expr.columns())),
                Stage::Limit { .. } => {}
                Stage::Project(exprs) => read.extend(exprs.iter().flat_map(Expr::columns)),
                Stage::Aggregate(aggregates) => read.extend(aggregates.iter().flat_map(|a| &a.args).flat_map(Expr::columns)),
                Stage::Group { groups, aggregates, .. } => read.extend(groups.iter().chain(aggregates.iter().flat_map(|a| &a.args)).flat_map(Expr::columns)),
                // It compares whole rows.
                Stage::Distinct(_) => break,
            }
            if matches!(stage, Stage::Project(_) | Stage::Aggregate(_) | Stage::Group { .. }) {
                return read;
            }
        }
        (0..source.columns.len()).collect()
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
        let arg = aggregate.args.first()?;
        let column = columns[arg.as_column()?];
        let ty = &source.table.columns().get(column)?.ty;
        // ENUM and SET are indexed by number and compared as text.
        if matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) || !sorts_as(arg, ty) {
            return None;
        }
        let of_values = |i: &usize| source.choice.finds(*i) && source.table.indexes()[*i].kind != IndexKind::FullText;
        let index = (0..source.table.indexes().len()).filter(of_values).find(|&i| source.table.indexes()[i].parts.first().is_some_and(|p| p.column == column && p.prefix.is_none()))?;
        let descending = source.table.indexes()[index].parts[0].descending;
        Some(Source::Extreme { table: source.table.clone(), index, column, backward: maximum != descending })
    }

    /// A sort whose order the index has already is none.
    fn drop_sort(&mut self) {
        let Source::Table(source) = &self.source else { return };
        let own = |column: usize, key: &Expr| source.table.columns().get(column).is_none_or(|c| sorts_as(key, &c.ty));
        let Some((at, keys)) = self.sort_keys(source.columns.iter().map(|c| Some(*c)).collect(), own) else { return };
        let limited = self.is_limited(at + 1);
        let Source::Table(source) = &mut self.source else { return };
        if let Some((index, backward)) = ordered_index(source.table.def(), &source.choice, source.access.as_ref(), &keys, limited) {
            source.index = index;
            source.backward = backward;
            source.ordered = true;
            self.stages.remove(at);
        }
    }

    /// The position and the keys of the sort that the source's rows come to first, if its keys are nothing but fields of the source: (what
    /// `fields` has for it, descending). `own`: such a field and a key of it are in the same order.
    fn sort_keys(&self, mut fields: Vec<Option<usize>>, own: impl Fn(usize, &Expr) -> bool) -> Option<(usize, Vec<(usize, bool)>)> {
        for (at, stage) in self.stages.iter().enumerate() {
            match stage {
                Stage::Filter(_) => {}
                Stage::Project(exprs) => fields = exprs.iter().map(|e| e.as_column().and_then(|i| fields[i])).collect(),
                Stage::Sort(keys) => return sort_columns(keys, &fields, own).map(|keys| (at, keys)),
                _ => return None,
            }
        }
        None
    }
}

/// A join, filtered and its columns picked.
pub(super) fn is_join(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Join { .. } => true,
        RelKind::Filter { input, .. } => is_join(input),
        RelKind::Project { input, exprs } => exprs.iter().all(|e| e.as_column().is_some()) && is_join(input),
        _ => false,
    }
}

/// Lets stages over `outputs` read what the outputs are made of instead; the fields that they read.
fn over_tables(stages: &mut Vec<Stage>, outputs: &[Expr]) -> Vec<usize> {
    let mut read = Vec::new();
    let mut rebase = |e: &mut Expr| {
        *e = e.clone().over(outputs).expect("there are no subqueries");
        read.extend(e.columns());
    };
    let mut project_at = Some(stages.len());
    for (at, stage) in stages.iter_mut().enumerate() {
        match stage {
            Stage::Filter(predicate) => rebase(predicate),
            Stage::Sort(keys) => keys.iter_mut().for_each(|key| rebase(&mut key.expr)),
            Stage::Limit { .. } => continue,
            Stage::Distinct(_) => {
                project_at = Some(at);
                break;
            }
            Stage::Project(exprs) => exprs.iter_mut().for_each(&mut rebase),
            Stage::Aggregate(aggregates) => aggregates.iter_mut().flat_map(|a| &mut a.args).for_each(&mut rebase),
            Stage::Group { groups, aggregates, .. } => groups.iter_mut().chain(aggregates.iter_mut().flat_map(|a| &mut a.args)).for_each(&mut rebase),
        }
        if matches!(stage, Stage::Project(_) | Stage::Aggregate(_) | Stage::Group { .. }) {
            project_at = None;
            break;
        }
    }
    if let Some(at) = project_at {
        read.extend(outputs.iter().flat_map(Expr::columns));
        stages.insert(at, Stage::Project(outputs.to_vec()));
    }
    read
}

impl Stage {
    /// All its expressions pass the test.
    fn all(&self, mut test: impl FnMut(&Expr) -> bool) -> bool {
        match self {
            Stage::Filter(e) => test(e),
            Stage::Project(exprs) => exprs.iter().all(test),
            Stage::Sort(keys) => keys.iter().all(|key| test(&key.expr)),
            Stage::Limit { .. } | Stage::Distinct(_) => true,
            Stage::Aggregate(aggregates) => aggregates.iter().flat_map(|a| &a.args).all(test),
            Stage::Group { groups, aggregates, .. } => groups.iter().chain(aggregates.iter().flat_map(|a| &a.args)).all(test),
        }
    }
}

/// Nobody sees how often it was evaluated. Of what is random only RAND() without a seed is so.
fn is_untraced(expr: &Expr) -> bool {
    let mut untraced = true;
    expr.walk(&mut |e| untraced &= !e.is_volatile_itself() || matches!(&e.kind, ExprKind::Call { func: FuncId::Rand, args } if args.is_empty()));
    untraced
}

/// The accumulators know it.
fn aggregates_here(aggregate: &Aggregate) -> Option<()> {
    use AggregateFunc::{AnyValue, Avg, Count, CountStar, Max, Min, Sum};
    let known = matches!(aggregate.func, CountStar | Count | Sum | Avg | Min | Max | AnyValue);
    let keyed = !aggregate.distinct || aggregate.args.iter().all(|e| group_key(e).is_some());
    if !known || !keyed || (aggregate.args.len() > 1 && !aggregate.distinct) {
        return None;
    }
    aggregate.args.iter().try_for_each(runs_here)
}

/// How values of an expression are told apart; None where their key would not do.
fn group_key(expr: &Expr) -> Option<KeyPart> {
    let ty = &expr.ty.ty;
    let mut told = !matches!(ty.kind, TypeKind::Json | TypeKind::Null) && !expr.has_hidden_digits();
    // A variable may have a value of another type by now.
    expr.walk(&mut |e| told &= !matches!(e.kind, ExprKind::UserVar(_) | ExprKind::AssignUserVar { .. }));
    told.then(|| KeyPart { ty: ty.clone(), descending: false, prefix: None, nullable: true })
}

/// Sort keys as (table column, descending), if they are nothing but columns.
fn sort_columns(keys: &[SortKey], columns: &[Option<usize>], own: impl Fn(usize, &Expr) -> bool) -> Option<Vec<(usize, bool)>> {
    keys.iter().map(|k| k.expr.as_column().and_then(|i| columns[i]).filter(|c| own(*c, &k.expr)).map(|c| (c, k.desc))).collect()
}

/// Whether `key`, which is a column of that type, is in the column's order: under COLLATE a text has another one.
fn sorts_as(key: &Expr, column: &ColumnType) -> bool {
    !column.is_text() || key.ty.ty.collation.id == column.collation.id
}

/// The index (and direction) that reads in the order of `keys`: the one of the access, or any, if only few rows are wanted of all.
pub(super) fn ordered_index(def: &TableDef, choice: &IndexChoice, access: Option<&IndexAccess>, keys: &[(usize, bool)], limited: bool) -> Option<(usize, bool)> {
    let fits = |index: usize, skip: usize| -> Option<bool> {
        if !choice.orders(index) || def.indexes[index].kind == IndexKind::FullText {
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
    match access {
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
    let timestamps = (0..columns.len()).filter(|&i| columns[i] != ROW_KEY && matches!(table.columns()[columns[i]].ty.kind, TypeKind::Timestamp(_))).collect();
    TableSource { table: table.clone(), columns: columns.clone(), timestamps, access: None, index: 0, choice: indexes.clone(), backward: false, ordered: false, residual: None, lock: *lock, covered: None }
}

/// The evaluator can do it by itself: no subquery, no enclosing row.
fn runs_here(expr: &Expr) -> Option<()> {
    let mut fits = true;
    expr.walk(&mut |e| fits &= !e.runs_query_itself() && !matches!(e.kind, ExprKind::Outer { .. } | ExprKind::AggregateRef(_) | ExprKind::WindowRef(_)));
    fits.then_some(())
}
