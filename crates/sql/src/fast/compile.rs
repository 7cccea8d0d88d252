//! Which plans the fast path takes, and the shape it runs them in.

use highkey_table::{IndexKind, TableDef};
use highkey_types::{ColumnType, KeyPart, TypeKind};

use super::join::{Estimator, JoinSource};
use super::known::{Answer, answers};
use super::{FastQuery, Source, Stage, TableSource};
use crate::bind::ROW_KEY;
use crate::functions::FuncId;
use crate::parse::ast::LockWait;
use crate::plan::{self, Aggregate, AggregateFunc, BoundQuery, Expr, ExprKind, IndexAccess, IndexChoice, JoinGraph, PqHint, Rel, RelKind, SortKey};
use crate::session::Executor;

/// Rows of the source that a blocking stage may hold.
pub(super) const BUDGET: u64 = 20_000;
/// A table of at most this many rows is read whole without an index.
pub(super) const SMALL_TABLE: u64 = 2_000;
/// LIMIT of at most this many rows without an index: reading stops early.
const SMALL_LIMIT: u64 = 10_000;
/// A join whose sort an index could give is read in that index's order, if it would read more rows than this without.
const MANY_TO_SORT: f64 = 1_000.0;
/// Rows that are looked up at least, in a join or by a secondary index, and the share of the tables' rows that are besides: looking a row up costs as
/// much as scanning some dozens.
const LOOKUPS: u64 = 2_000;
const LOOKUPS_SHARE: u64 = 64;

/// The rows that are looked up where the tables have so many: more are scanned.
pub(super) fn lookups_max(rows: u64) -> u64 {
    (LOOKUPS + rows / LOOKUPS_SHARE).min(BUDGET)
}

impl FastQuery {
    /// It would lock all rows of a table in share mode, one by one. DataFusion's way locks them as one range, and reads them in parallel.
    pub fn shares_whole_table(&self) -> bool {
        let Source::Table(source) = &self.source else { return false };
        let shares = source.lock.is_some_and(|lock| !lock.exclusive && lock.wait == LockWait::Wait);
        shares && source.access.is_none() && !self.stages.iter().any(|stage| matches!(stage, Stage::Limit { .. }))
    }

    /// It may give more rows than are to be kept in memory, and is the fast path's all the same.
    pub fn may_give_many(&self) -> bool {
        let locks = matches!(&self.source, Source::Table(source) if source.lock.is_some_and(|lock| lock.exclusive));
        locks || self.stages.iter().any(|stage| matches!(stage, Stage::Limit { count, .. } if !count.as_ref().is_some_and(small_limit)))
    }

    /// How many rows the index may have for it; `None`: however many they are. `total`: those of the table.
    pub(super) fn found_max(&self, source: &TableSource, total: u64) -> Option<u64> {
        if !self.may_leave || total <= SMALL_TABLE {
            return None;
        }
        if source.shared {
            return Some(SMALL_TABLE);
        }
        if source.index != 0 && source.covered.is_none() {
            return Some(lookups_max(total));
        }
        // Rows that are only sent are not sent faster by several workers.
        let sends = source.residual.is_none() && !self.stages.iter().any(Stage::holds);
        (!sends).then_some(BUDGET)
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
                    stages.push(Stage::Distinct(row_keys(input)?));
                    rel = input;
                }
                RelKind::Aggregate { input, groups, aggregates, rollup: false } => {
                    aggregates.iter().try_for_each(aggregates_here)?;
                    groups.iter().try_for_each(runs_here)?;
                    let keyed = !groups.is_empty() || aggregates.iter().any(|aggregate| aggregate.distinct);
                    (!keyed || keeps_types(input)).then_some(())?;
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
                RelKind::Scan { .. } => break Source::Table(table_source(rel, &bound.hints.pq)),
                _ => return None,
            }
        };
        stages.reverse();
        let forced = executor == Executor::Fast;
        let wants_workers = matches!(bound.hints.pq, PqHint::On { workers, .. } if workers.is_none_or(|workers| workers > 1));
        let mut query = FastQuery { source, stages, budget: BUDGET, may_leave: false, wants_workers };
        let faster = if is_empty { true } else if is_join(rel) { query.join(rel, estimate)? } else { query.shape()? };
        query.cover();
        if forced {
            query.budget = u64::MAX;
            query.may_leave = false;
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
        self.budget = lookups_max(rows);
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
        let mut condition = None;
        if matches!(self.stages.first(), Some(Stage::Filter(_)))
            && let Stage::Filter(predicate) = self.stages.remove(0)
        {
            condition = Some(predicate);
        }
        let small = source.table.row_count_estimate().is_ok_and(|rows| rows <= SMALL_TABLE);
        if source.lock.is_none()
            && let Some(answers) = answers(source, condition.as_ref(), &self.stages)
            // Workers count faster than one who counts leaves, if they are asked for.
            && (small || !source.shared || !answers.iter().any(|answer| matches!(answer, Answer::Rows)))
        {
            self.source = Source::Known { table: source.table.clone(), answers };
            return Some(true);
        }
        if let Some(predicate) = condition {
            // Nothing that is locked is read from an entry alone.
            let covers = |access: &IndexAccess| access.index == 0 || source.lock.is_some() || covered(source, access.index, access.residual.as_ref(), &self.stages).is_some();
            match plan::preferred_access(&predicate, source.table.def(), &source.columns, &source.choice, covers) {
                Some(access) => {
                    source.index = access.index;
                    source.residual = access.residual.clone();
                    source.access = Some(access);
                }
                None => source.residual = Some(predicate),
            }
        }
        self.drop_sort();
        let Source::Table(source) = &self.source else { return Some(true) };
        if source.lock.is_some() {
            return Some(true);
        }
        let holds = self.stages.iter().any(Stage::holds);
        // Too many rows to hold, and DataFusion starts anew: what changes something may not be there then.
        let untraced = source.residual.iter().all(is_untraced) && self.stages.iter().all(|stage| stage.all(is_untraced));
        if !untraced && holds {
            self.budget = u64::MAX;
            return Some(small || source.access.as_ref().is_some_and(|access| access.unique));
        }
        let stops_early = !holds && self.is_limited(0);
        if let Some(access) = &source.access {
            // A hint that leaves the clustered index out wants the rows to be looked up.
            self.may_leave = untraced && !access.unique && !stops_early && source.choice.finds(0);
            return Some(true);
        }
        if stops_early || (!holds && source.residual.is_none() && (source.ordered || !source.shared)) {
            return Some(true);
        }
        Some(small)
    }

    /// What is read of the rows; they are left alone where the entries of an index have all of that. What is locked is a row.
    fn cover(&mut self) {
        match &mut self.source {
            Source::Table(source) if source.lock.is_none() => {
                source.covered = covered(source, source.index, source.residual.as_ref(), &self.stages);
                source.asked = source.residual.as_ref().map_or_else(Vec::new, Expr::columns);
                source.later = fields_read(source.columns.len(), None, &self.stages);
                source.later.sort_unstable();
                source.later.dedup();
                source.later.retain(|field| !source.asked.contains(field));
            }
            Source::Join(join) => join.cover(),
            _ => {}
        }
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

/// The columns of the table that are read if an index leaves `residual` to be checked, and its entries have all of them.
fn covered(source: &TableSource, index: usize, residual: Option<&Expr>, stages: &[Stage]) -> Option<Vec<usize>> {
    let columns: Vec<usize> = fields_read(source.columns.len(), residual, stages).into_iter().map(|field| source.columns[field]).collect();
    source.table.covers(index, &columns).then_some(columns)
}

/// The fields of the table's rows, so many, that a condition or a stage reads.
fn fields_read(fields: usize, residual: Option<&Expr>, stages: &[Stage]) -> Vec<usize> {
    let mut read: Vec<usize> = residual.iter().flat_map(|e| e.columns()).collect();
    for stage in stages {
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
    (0..fields).collect()
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
    let told = !expr.has_hidden_digits() && has_its_type(expr);
    if told { key_of(&expr.ty.ty) } else { None }
}

/// How the rows of a relation are told apart; None where the keys of their values would not do.
fn row_keys(rel: &Rel) -> Option<Vec<KeyPart>> {
    keeps_types(rel).then_some(())?;
    rel.fields.iter().map(|field| key_of(&field.ty.ty)).collect()
}

/// The values of its rows are of their columns' types, and have no more digits, whatever they are made of below.
fn keeps_types(rel: &Rel) -> bool {
    let keeps = |expr: &Expr| !expr.has_hidden_digits() && has_its_type(expr);
    let own = match &rel.kind {
        RelKind::Project { exprs, .. } => exprs.iter().all(keeps),
        RelKind::Values { rows } => rows.iter().flatten().all(keeps),
        // An aggregate's value has the digits of its type.
        RelKind::Aggregate { groups, aggregates, .. } => groups.iter().all(keeps) && aggregates.iter().flat_map(|a| &a.args).all(has_its_type),
        _ => true,
    };
    own && rel.inputs().into_iter().all(keeps_types)
}

fn key_of(ty: &ColumnType) -> Option<KeyPart> {
    let told = !matches!(ty.kind, TypeKind::Json | TypeKind::Null);
    told.then(|| KeyPart { ty: ty.clone(), descending: false, prefix: None, nullable: true })
}

/// Its values are of its type. A variable may have one of another type by now.
fn has_its_type(expr: &Expr) -> bool {
    let mut typed = true;
    expr.walk(&mut |e| typed &= !matches!(e.kind, ExprKind::UserVar(_) | ExprKind::AssignUserVar { .. }));
    typed
}

/// Sort keys as (table column, descending), if they are nothing but columns.
fn sort_columns(keys: &[SortKey], columns: &[Option<usize>], own: impl Fn(usize, &Expr) -> bool) -> Option<Vec<(usize, bool)>> {
    keys.iter().map(|k| k.expr.as_column().and_then(|i| columns[i]).filter(|c| own(*c, &k.expr)).map(|c| (c, k.desc))).collect()
}

/// Whether `key`, which is a column of that type, is in the column's order: under COLLATE a text has another one.
pub(super) fn sorts_as(key: &Expr, column: &ColumnType) -> bool {
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

fn table_source(rel: &Rel, hint: &PqHint) -> TableSource {
    let RelKind::Scan { table, alias, columns, indexes, lock } = &rel.kind else { unreachable!("the caller matched a scan") };
    let timestamps = (0..columns.len()).filter(|&i| columns[i] != ROW_KEY && matches!(table.columns()[columns[i]].ty.kind, TypeKind::Timestamp(_))).collect();
    TableSource {
        table: table.clone(),
        columns: columns.clone(),
        timestamps,
        access: None,
        index: 0,
        choice: indexes.clone(),
        backward: false,
        ordered: false,
        residual: None,
        lock: *lock,
        asked: Vec::new(),
        later: Vec::new(),
        shared: hint.shares(alias),
        covered: None,
    }
}

/// The evaluator can do it by itself: no subquery, no enclosing row.
fn runs_here(expr: &Expr) -> Option<()> {
    let mut fits = true;
    expr.walk(&mut |e| fits &= !e.runs_query_itself() && !matches!(e.kind, ExprKind::Outer { .. } | ExprKind::AggregateRef(_) | ExprKind::WindowRef(_)));
    fits.then_some(())
}
