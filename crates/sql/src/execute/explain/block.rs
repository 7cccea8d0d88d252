//! A statement as EXPLAIN shows it: its query blocks, their tables in the order in which they are read, and what is done with the rows.
//!
//! Blocks are those of the bound plan: a derived table that only chooses rows and columns is one with what reads it.

use std::collections::HashMap;

use highkey_types::MySqlError;

use super::access::{Access, Chosen, Scanned};
use super::sources::{Sources, own_row, with};
use crate::df::{Explained, ShownScan};
use crate::fast::{FastQuery, JoinStep, Reading};
use crate::plan::{self, Expr, ExprKind, Field, Rel, RelKind, SetOperator, SortKey};
use crate::session::Session;
use crate::stack;

/// What MySQL expects of a table function.
const ROWS_OF_FUNCTION: u64 = 2;

/// A query or a part of one.
pub(super) enum Query {
    Select(Block),
    Union(Union),
}

/// Blocks whose rows are put together.
pub(super) struct Union {
    pub members: Vec<Query>,
    /// union, intersect or except.
    pub operator: &'static str,
    /// Rows are compared with each other.
    pub temporary: bool,
    pub filesort: bool,
}

/// A query block.
pub(super) struct Block {
    pub id: u64,
    /// `select_type`.
    pub kind: &'static str,
    /// Why it reads no table.
    pub message: Option<&'static str>,
    /// The outermost first.
    pub operations: Vec<Operation>,
    /// In the order in which they are read.
    pub tables: Vec<ShownTable>,
    pub subqueries: Vec<Inner>,
    /// An estimate of the rows that it gives.
    pub rows: f64,
    /// The rows that LIMIT leaves, if it is a constant.
    pub limit: Option<u64>,
}

pub(super) enum Operation {
    /// `keys` as FORMAT=TREE writes them.
    Sort { keys: String },
    Distinct,
    Group { temporary: bool },
    Window(Vec<ShownWindow>),
}

pub(super) struct ShownWindow {
    pub keys: Vec<String>,
    pub function: String,
}

/// A subquery of a block.
pub(super) struct Inner {
    pub place: Place,
    /// It reads the block's rows.
    pub dependent: bool,
    pub query: Query,
}

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Place {
    SelectList,
    Where,
    GroupBy,
    Having,
    OrderBy,
    /// What UPDATE assigns or INSERT inserts.
    Values,
}

/// A table of a block.
pub(super) struct ShownTable {
    /// Its alias.
    pub name: String,
    pub access: Access,
    /// What is asked of its rows, and of those of the tables before.
    pub condition: Option<String>,
    /// The same as FORMAT=TREE writes it.
    pub filter: Option<String>,
    /// Columns that are read.
    pub used: Vec<String>,
    /// What makes its rows, if it is no base table.
    pub derived: Option<Derived>,
    /// The rows of the last round of a recursion.
    pub recursive: bool,
    /// The table function that makes its rows.
    pub function: Option<&'static str>,
    /// How rows are kept for those of the tables before.
    pub buffer: Option<&'static str>,
    /// Threads that share it.
    pub workers: Option<usize>,
    /// UPDATE or DELETE, if it is changed.
    pub change: Option<&'static str>,
}

/// What makes the rows of a table that is no base table.
pub(super) enum Derived {
    Query(Box<Query>),
    /// A common table expression that another table of the statement shows; the number of its first block, and an estimate of its rows.
    Shared { id: u64, rows: f64 },
}

impl Derived {
    /// The query, where it is shown.
    pub fn query(&self) -> Option<&Query> {
        match self {
            Derived::Query(query) => Some(query),
            Derived::Shared { .. } => None,
        }
    }

    /// The number of its first block.
    pub fn id(&self) -> u64 {
        match self {
            Derived::Query(query) => query.id(),
            Derived::Shared { id, .. } => *id,
        }
    }

    fn rows(&self) -> f64 {
        match self {
            Derived::Query(query) => query.rows(),
            Derived::Shared { rows, .. } => *rows,
        }
    }
}

impl Query {
    /// The number of its first block.
    pub fn id(&self) -> u64 {
        match self {
            Query::Select(block) => block.id,
            Query::Union(union) => union.members.first().map_or(0, Query::id),
        }
    }

    /// The number of its last block.
    pub fn last_id(&self) -> u64 {
        match self {
            Query::Select(block) => {
                let derived = block.tables.iter().filter_map(|table| table.derived.as_ref()?.query());
                let inner = derived.chain(block.subqueries.iter().map(|inner| &inner.query));
                inner.map(Query::last_id).fold(block.id, u64::max)
            }
            Query::Union(union) => union.members.iter().map(Query::last_id).max().unwrap_or(0),
        }
    }

    fn rows(&self) -> f64 {
        match self {
            Query::Select(block) => block.rows,
            Query::Union(union) => union.members.iter().map(Query::rows).sum(),
        }
    }
}

impl Union {
    /// Its rows are kept before they go on.
    pub fn has_result(&self) -> bool {
        self.temporary || self.filesort
    }

    /// `<union1,2>`.
    pub fn name(&self) -> String {
        let numbers: Vec<String> = self.members.iter().map(|member| member.id().to_string()).collect();
        format!("<{}{}>", self.operator, numbers.join(","))
    }
}

/// Who runs a query.
#[derive(Clone, Copy)]
pub(super) enum Way<'a> {
    Fast(&'a FastQuery),
    Engine(&'a Explained),
    /// It is not known: what writes finds its rows by itself.
    Unknown,
}

/// Takes plans apart.
pub(super) struct Explainer<'a> {
    session: &'a mut Session,
    way: Way<'a>,
    /// Scans of the plan that are shown already.
    taken: Vec<bool>,
    /// Blocks so far.
    blocks: u64,
    /// The common table expressions shown so far, by their ids: the number of the first block, and an estimate of the rows.
    ctes: HashMap<usize, (u64, f64)>,
    /// The scans of the tables that the statement changes, and how.
    changed: (&'static str, Vec<&'a Rel>),
    /// The block's table is read in the order that is wanted of its rows.
    in_order: bool,
}

impl<'a> Explainer<'a> {
    pub fn new(session: &'a mut Session, way: Way<'a>) -> Explainer<'a> {
        let scans = if let Way::Engine(explained) = way { explained.scans.len() } else { 0 };
        Explainer { session, way, taken: vec![false; scans], blocks: 0, ctes: HashMap::new(), changed: ("", Vec::new()), in_order: false }
    }

    /// The tables of these scans are changed: UPDATE or DELETE.
    pub fn changing(mut self, verb: &'static str, scans: Vec<&'a Rel>) -> Explainer<'a> {
        self.changed = (verb, scans);
        self
    }

    /// The whole statement, if it is a query.
    pub fn statement(mut self, rel: &Rel) -> Result<Query, MySqlError> {
        self.query(rel, "SIMPLE", &[])
    }

    /// `outers`: the rows around, the nearest last.
    fn query(&mut self, rel: &Rel, kind: &'static str, outers: &[Vec<Field>]) -> Result<Query, MySqlError> {
        stack::ensure(|| -> Result<Query, MySqlError> {
            let union = peeled(rel);
            let RelKind::SetOperation { op, .. } = &union.kind else { return Ok(Query::Select(self.select(rel, kind, outers)?)) };
            let (operator, rest) = match op {
                SetOperator::Union if kind == "DEPENDENT SUBQUERY" => ("union", "DEPENDENT UNION"),
                SetOperator::Union => ("union", "UNION"),
                SetOperator::Intersect => ("intersect", "INTERSECT"),
                SetOperator::Except => ("except", "EXCEPT"),
            };
            let first = if kind == "SIMPLE" { "PRIMARY" } else { kind };
            let mut branches = Vec::new();
            collect_branches(union, &mut branches);
            let mut members = Vec::with_capacity(branches.len());
            for (i, branch) in branches.into_iter().enumerate() {
                members.push(self.query(branch, if i == 0 { first } else { rest }, outers)?);
            }
            Ok(Query::Union(Union { members, operator, temporary: compares_rows(union), filesort: is_sorted(rel) }))
        })
    }

    fn select(&mut self, rel: &Rel, kind: &'static str, outers: &[Vec<Field>]) -> Result<Block, MySqlError> {
        self.blocks += 1;
        let id = self.blocks;
        let (operators, from) = parts(rel);
        let visible = rel.fields.len();
        // Numbers are given in the order of the text.
        let mut subqueries = Vec::new();
        for operator in &operators {
            let row = input_row(operator);
            match &operator.kind {
                RelKind::Project { exprs, .. } => self.inner(exprs.iter().take(visible), &row, Place::SelectList, outers, &mut subqueries)?,
                RelKind::Aggregate { aggregates, .. } => {
                    let read = aggregates.iter().flat_map(|a| a.args.iter().chain(a.order_by.iter().map(|k| &k.expr)));
                    self.inner(read, &row, Place::SelectList, outers, &mut subqueries)?;
                }
                RelKind::Window { windows, .. } => {
                    let read = windows.iter().flat_map(|w| w.args.iter().chain(&w.partition_by).chain(w.order_by.iter().map(|k| &k.expr)));
                    self.inner(read, &row, Place::SelectList, outers, &mut subqueries)?;
                }
                _ => {}
            }
        }
        let mut sources = Sources::of(from);
        if let Some(Rel { kind: RelKind::Project { exprs, .. }, fields }) = operators.last() {
            sources.name_outputs(exprs, fields);
        }
        let mut derived = Vec::with_capacity(sources.leaves.len());
        for leaf in &sources.leaves {
            let rows: Vec<Vec<Field>> = outers.iter().cloned().chain(leaf.made_for.map(<[Field]>::to_vec)).collect();
            derived.push(self.derived(leaf.rel, if leaf.made_for.is_some() { "DEPENDENT DERIVED" } else { "DERIVED" }, &rows)?);
        }
        for (expr, row) in &sources.asked {
            self.inner(std::iter::once(*expr), row, Place::Where, outers, &mut subqueries)?;
        }
        for operator in &operators {
            let row = input_row(operator);
            match &operator.kind {
                RelKind::Aggregate { groups, .. } => self.inner(groups.iter(), &row, Place::GroupBy, outers, &mut subqueries)?,
                RelKind::Filter { predicate, .. } => self.inner(std::iter::once(predicate), &row, Place::Having, outers, &mut subqueries)?,
                RelKind::Project { exprs, .. } => self.inner(exprs.iter().skip(visible), &row, Place::OrderBy, outers, &mut subqueries)?,
                RelKind::Sort { keys, .. } => self.inner(keys.iter().map(|k| &k.expr), &row, Place::OrderBy, outers, &mut subqueries)?,
                _ => {}
            }
        }
        let way = self.way;
        let limit = operators.iter().find_map(|operator| match &operator.kind {
            RelKind::Limit { count: Some(count), .. } => count.as_literal().and_then(|n| n.as_i64()),
            _ => None,
        });
        let is_never = |operator: &&Rel| matches!(&operator.kind, RelKind::Filter { predicate, .. } if predicate.is_never());
        let mut message = match way {
            _ if limit == Some(0) => Some("Zero limit"),
            _ if sources.is_never() => Some("Impossible WHERE"),
            _ if operators.iter().any(is_never) => Some("Impossible HAVING"),
            _ if sources.leaves.is_empty() => Some("No tables used"),
            Way::Fast(fast) if matches!(fast.reading(), Reading::Counted) => Some("Select tables optimized away"),
            _ => None,
        };
        let sorts = !matches!(way, Way::Fast(fast) if !fast.sorts());
        let has = |of: fn(&RelKind) -> bool| operators.iter().any(|operator| of(&operator.kind));
        self.in_order = !sorts && has(|kind| matches!(kind, RelKind::Sort { .. })) && !has(|kind| matches!(kind, RelKind::Aggregate { .. }));
        let mut tables = Vec::new();
        if message.is_none() {
            tables = self.tables(&sources, derived, &needed(&operators, visible), outers)?;
            if !sources.leaves.iter().any(|leaf| leaf.outer) && tables.iter().any(|table| table.access.is_empty) {
                message = Some("Impossible WHERE");
                tables.clear();
            }
        }
        let is_subquery = matches!(kind, "SUBQUERY" | "DEPENDENT SUBQUERY");
        let groups_come_sorted = !is_subquery && matches!(way, Way::Engine(explained) if !explained.collects_groups);
        let operations = operators.iter().filter_map(|operator| match &operator.kind {
            RelKind::Sort { input, keys } => sorts.then(|| Operation::Sort { keys: plan::describe_keys(keys, &input.fields) }),
            RelKind::Distinct { .. } => Some(Operation::Distinct),
            RelKind::Aggregate { groups, .. } => (!groups.is_empty()).then_some(Operation::Group { temporary: !groups_come_sorted }),
            RelKind::Window { input, windows } => Some(Operation::Window(windows.iter().map(|w| shown_window(w, &input.fields)).collect())),
            _ => None,
        });
        let operations: Vec<Operation> = operations.collect();
        // It is read no further than LIMIT goes.
        if let (true, Some(limit), [table]) = (self.in_order && operations.is_empty(), limit, &mut tables[..])
            && table.access.kind == "index"
            && !table.access.residual
        {
            let offset = operators.iter().find_map(|operator| match &operator.kind {
                RelKind::Limit { offset: Some(offset), .. } => offset.as_literal().and_then(|n| n.as_i64()),
                _ => None,
            });
            let most = u64::try_from(limit.saturating_add(offset.unwrap_or(0))).unwrap_or(u64::MAX);
            table.access.rows = table.access.rows.map(|rows| rows.min(most));
        }
        let one_row = operators.iter().any(|operator| matches!(&operator.kind, RelKind::Aggregate { groups, .. } if groups.is_empty()));
        let mut rows: f64 = tables.iter().map(|table| table.access.rows.unwrap_or(1) as f64 * table.access.filtered).product();
        if one_row {
            rows = 1.0;
        }
        if let Some(limit) = limit {
            rows = rows.min(limit as f64);
        }
        let alone = subqueries.is_empty() && tables.iter().all(|table| table.derived.is_none());
        let kind = if kind == "SIMPLE" && !alone { "PRIMARY" } else { kind };
        let limit = limit.and_then(|n| u64::try_from(n).ok());
        Ok(Block { id, kind, message, operations, tables, subqueries, rows, limit })
    }

    /// Adds the subqueries of expressions over `row`.
    fn inner<'e>(
        &mut self,
        exprs: impl Iterator<Item = &'e Expr>,
        row: &[Field],
        place: Place,
        outers: &[Vec<Field>],
        found: &mut Vec<Inner>,
    ) -> Result<(), MySqlError> {
        let mut subqueries = Vec::new();
        exprs.for_each(|expr| {
            expr.walk(&mut |e| {
                if let ExprKind::Subquery(subquery) = &e.kind {
                    subqueries.push(subquery);
                }
            });
        });
        for subquery in subqueries {
            let mut rows = outers.to_vec();
            rows.push(row.to_vec());
            let kind = if subquery.correlated { "DEPENDENT SUBQUERY" } else { "SUBQUERY" };
            let query = self.query(&subquery.plan, kind, &rows)?;
            found.push(Inner { place, dependent: subquery.correlated, query });
        }
        Ok(())
    }

    /// What makes the rows of a table of FROM, if it is no base table. `kind`: what its query block is called.
    fn derived(&mut self, rel: &Rel, kind: &'static str, outers: &[Vec<Field>]) -> Result<Option<Derived>, MySqlError> {
        if let RelKind::MaterializedCte { id, plan, .. } = &rel.kind {
            if let Some(&(id, rows)) = self.ctes.get(id) {
                return Ok(Some(Derived::Shared { id, rows }));
            }
            let derived = self.derived(plan, kind, outers)?;
            self.ctes.extend(derived.iter().map(|derived| (*id, (derived.id(), derived.rows()))));
            return Ok(derived);
        }
        let query = match &rel.kind {
            RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::CteScan { .. } | RelKind::JsonTable { .. } => return Ok(None),
            RelKind::RecursiveCte { anchor, step, distinct, .. } => {
                let members = vec![self.query(anchor, kind, outers)?, self.query(step, "UNION", outers)?];
                Query::Union(Union { members, operator: "union", temporary: *distinct, filesort: false })
            }
            _ => self.query(rel, kind, outers)?,
        };
        Ok(Some(Derived::Query(Box::new(query))))
    }

    /// The tables of a block, as they are read. `needed`: outputs of FROM that are used.
    fn tables(&mut self, sources: &Sources<'_>, mut derived: Vec<Option<Derived>>, needed: &[usize], outers: &[Vec<Field>]) -> Result<Vec<ShownTable>, MySqlError> {
        let reading = match self.way {
            Way::Fast(fast) => Some(fast.reading()),
            _ => None,
        };
        let steps: &[JoinStep<'_>] = if let Some(Reading::Join(steps)) = &reading { steps } else { &[] };
        let scans: Vec<Option<(usize, ShownScan)>> = sources.leaves.iter().map(|leaf| self.take_scan(leaf.rel)).collect();
        let mut order: Vec<usize> = (0..sources.leaves.len()).collect();
        if !steps.is_empty() {
            order.sort_by_key(|i| steps.iter().position(|step| step.first_field == sources.leaves[*i].fields().start));
        } else if scans.iter().all(Option::is_some) {
            order.sort_by_key(|i| scans[*i].as_ref().map(|(at, _)| *at));
        }
        let used = sources.used(needed);
        let shown_fields = qualified(&sources.fields);
        let mut tables = Vec::with_capacity(order.len());
        let mut decided = vec![false; sources.conditions.len()];
        let mut read = vec![false; sources.leaves.len()];
        for (at, i) in order.into_iter().enumerate() {
            let leaf = &sources.leaves[i];
            read[i] = true;
            let mut here = Vec::new();
            for (condition, known) in sources.conditions.iter().zip(&mut decided) {
                if !*known && sources.is_decided(condition, i, &read) {
                    *known = true;
                    here.push(&condition.expr);
                }
            }
            let derived = derived[i].take();
            let scan = scans[i].as_ref().map(|(_, scan)| scan);
            let step = steps.iter().find(|step| step.first_field == leaf.fields().start);
            let access = match &leaf.rel.kind {
                RelKind::Scan { table, indexes, columns, .. } => {
                    let chosen = match (&reading, step, scan) {
                        (_, Some(step), _) => Chosen::Step(step),
                        (_, _, Some(scan)) => Chosen::Scan(scan),
                        (Some(Reading::Table { index, access, backward, covering }), ..) => {
                            Chosen::Single { index: *index, access: *access, backward: *backward, ordered: self.in_order, covering: *covering }
                        }
                        _ => Chosen::Best,
                    };
                    let columns = own_row(leaf, columns, sources.fields.len());
                    let conditions = sources.about(leaf, i);
                    let scanned = Scanned { table, choice: indexes, columns: &columns, conditions: &conditions, decided: &here, fields: &sources.fields, outers };
                    self.session.access_to(&scanned, chosen)?
                }
                RelKind::Virtual { .. } | RelKind::CteScan { .. } => Access::all(None, &here),
                RelKind::JsonTable { .. } => Access::all(Some(ROWS_OF_FUNCTION), &here),
                _ => {
                    let rows = derived.as_ref().map(|derived| derived.rows().round().max(1.0) as u64);
                    Access::all(rows, &here)
                }
            };
            let buffer = match (self.way, step) {
                (_, Some(step)) => step.buffered.then_some("Block Nested Loop"),
                (Way::Engine(_), None) if at > 0 && access.kind != "const" && leaf.made_for.is_none() => Some("hash join"),
                _ => None,
            };
            let workers = match (self.way, scan) {
                (Way::Engine(explained), Some(scan)) if scan.divided && explained.workers > 1 => Some(explained.workers),
                _ => None,
            };
            let change = self.changed.1.iter().any(|scan| std::ptr::eq(*scan, leaf.rel)).then_some(self.changed.0);
            let condition = Expr::and(here.into_iter().cloned());
            tables.push(ShownTable {
                name: leaf.alias().to_owned(),
                access,
                condition: condition.as_ref().map(|all| plan::describe_expr(all, &shown_fields)),
                filter: condition.as_ref().map(|all| plan::describe_expr(all, &sources.fields)),
                used: leaf.fields().filter(|field| used[*field]).map(|field| sources.fields[field].name.to_string()).collect(),
                derived,
                recursive: matches!(leaf.rel.kind, RelKind::CteScan { .. }),
                function: matches!(leaf.rel.kind, RelKind::JsonTable { .. }).then_some("json_table"),
                buffer,
                workers,
                change,
            });
        }
        Ok(tables)
    }

    /// The scan of a base table in the plan, and its position there.
    fn take_scan(&mut self, rel: &Rel) -> Option<(usize, ShownScan)> {
        let (Way::Engine(explained), RelKind::Scan { table, alias, .. }) = (self.way, &rel.kind) else { return None };
        let is_it = |scan: &ShownScan| scan.table == table.id() && *scan.alias == **alias;
        let at = explained.scans.iter().enumerate().position(|(i, scan)| !self.taken[i] && is_it(scan))?;
        self.taken[at] = true;
        Some((at, explained.scans[at].clone()))
    }

    /// A statement that finds the rows of one table by itself, to change them. `verb`: UPDATE or DELETE.
    pub fn change(
        mut self,
        verb: &'static str,
        scan: &Rel,
        filter: Option<&Expr>,
        values: &[&Expr],
        order_by: &[SortKey],
        limit: Option<&Expr>,
    ) -> Result<Block, MySqlError> {
        self.blocks = 1;
        let filtered = filter.map(|filter| scan.clone().filter(filter.clone()));
        let sources = Sources::of(filtered.as_ref().unwrap_or(scan));
        let mut subqueries = Vec::new();
        let row = &scan.fields;
        let sorted: Vec<&Expr> = order_by.iter().map(|key| &key.expr).collect();
        for (exprs, place) in [(values, Place::Values), (&filter.into_iter().collect::<Vec<_>>()[..], Place::Where), (&sorted[..], Place::OrderBy)] {
            self.inner(exprs.iter().copied(), row, place, &[], &mut subqueries)?;
        }
        let limit = limit.and_then(Expr::as_literal).and_then(|n| n.as_i64()).and_then(|n| u64::try_from(n).ok());
        let never = sources.is_never() || limit == Some(0);
        let mut message = never.then_some("Impossible WHERE");
        let mut tables = Vec::new();
        if message.is_none() {
            let all: Vec<usize> = (0..scan.fields.len()).collect();
            tables = self.tables(&sources, vec![None], &all, &[])?;
            tables.iter_mut().for_each(|table| table.change = Some(verb));
            if tables.iter().any(|table| table.access.is_empty) {
                message = Some("Impossible WHERE");
                tables.clear();
            }
        }
        let operations = if order_by.is_empty() { Vec::new() } else { vec![Operation::Sort { keys: plan::describe_keys(order_by, row) }] };
        Ok(Block { id: 1, kind: verb, message, operations, tables, subqueries, rows: 0.0, limit })
    }

    /// The subqueries of the values that INSERT inserts, behind so many blocks.
    pub fn values(mut self, values: &[&Expr], row: &[Field], blocks: u64) -> Result<Vec<Inner>, MySqlError> {
        self.blocks = blocks;
        let mut subqueries = Vec::new();
        self.inner(values.iter().copied(), row, Place::Values, &[], &mut subqueries)?;
        Ok(subqueries)
    }
}

/// The operators of a query block, the outermost first, and what they stand on: FROM and WHERE.
fn parts(rel: &Rel) -> (Vec<&Rel>, &Rel) {
    let mut operators = Vec::new();
    let (mut at, mut rank) = (rel, 0);
    loop {
        // They stand on each other in this order: one that comes once more is a derived table's.
        let (next, input) = match &at.kind {
            RelKind::Limit { input, .. } => (1, input),
            RelKind::Sort { input, .. } => (2, input),
            RelKind::Distinct { input } => (3, input),
            RelKind::Window { input, .. } => (4, input),
            RelKind::Filter { input, .. } if matches!(input.kind, RelKind::Aggregate { .. }) => (5, input),
            RelKind::Aggregate { input, .. } => (6, input),
            // The select list; above it, a choice of its columns.
            RelKind::Project { input, .. } if rank < 4 => (rank, input),
            _ => return (operators, at),
        };
        if next <= rank && !matches!(at.kind, RelKind::Project { .. }) {
            return (operators, at);
        }
        operators.push(at);
        at = input;
        rank = next;
    }
}

/// The row that an operator's expressions are over.
fn input_row(operator: &Rel) -> Vec<Field> {
    operator.inputs().into_iter().flat_map(|input| input.fields.clone()).collect()
}

/// The outputs of what `operators` stand on that are used for their first `visible` outputs.
fn needed(operators: &[&Rel], visible: usize) -> Vec<usize> {
    let mut needed: Vec<usize> = (0..visible).collect();
    for operator in operators {
        needed = match &operator.kind {
            RelKind::Project { exprs, .. } => with(&[], needed.iter().filter_map(|i| exprs.get(*i))),
            RelKind::Sort { keys, .. } => with(&needed, keys.iter().map(|k| &k.expr)),
            RelKind::Distinct { input } => (0..input.fields.len()).collect(),
            RelKind::Filter { predicate, .. } => with(&needed, [predicate]),
            RelKind::Aggregate { groups, aggregates, .. } => {
                let args = aggregates.iter().flat_map(|a| a.args.iter().chain(a.order_by.iter().map(|k| &k.expr)));
                with(&[], groups.iter().chain(args))
            }
            RelKind::Window { input, windows } => {
                let below: Vec<usize> = needed.iter().copied().filter(|i| *i < input.fields.len()).collect();
                let read = windows.iter().flat_map(|w| w.args.iter().chain(&w.partition_by).chain(w.order_by.iter().map(|k| &k.expr)));
                with(&below, read)
            }
            _ => needed,
        };
    }
    needed
}

fn shown_window(window: &plan::WindowExpr, row: &[Field]) -> ShownWindow {
    let keys = window.partition_by.iter().chain(window.order_by.iter().map(|k| &k.expr));
    ShownWindow { keys: keys.map(|e| plan::describe_expr(e, &qualified(row))).collect(), function: plan::window_name(window.func) }
}

/// Below what only orders and cuts.
fn peeled(rel: &Rel) -> &Rel {
    match &rel.kind {
        RelKind::Limit { input, .. } | RelKind::Sort { input, .. } => peeled(input),
        _ => rel,
    }
}

fn is_sorted(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Limit { input, .. } => is_sorted(input),
        RelKind::Sort { .. } => true,
        _ => false,
    }
}

fn collect_branches<'r>(rel: &'r Rel, branches: &mut Vec<&'r Rel>) {
    match &rel.kind {
        RelKind::SetOperation { inputs, .. } => inputs.iter().for_each(|input| collect_branches(input, branches)),
        // Branches are brought to common types.
        RelKind::Project { input, .. } if matches!(input.kind, RelKind::SetOperation { .. }) => collect_branches(input, branches),
        _ => branches.push(rel),
    }
}

/// Some of the set operations put together must know which rows there are already.
fn compares_rows(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::SetOperation { op, all, inputs } => !*all || *op != SetOperator::Union || inputs.iter().any(compares_rows),
        RelKind::Project { input, .. } if matches!(input.kind, RelKind::SetOperation { .. }) => compares_rows(input),
        _ => false,
    }
}

/// Fields with their names as MySQL quotes them.
fn qualified(fields: &[Field]) -> Vec<Field> {
    let quote = crate::show::quote;
    let named = |f: &Field| {
        let own = !f.schema.is_empty() && f.table == f.org_table;
        let table = if f.table.is_empty() { String::new() } else if own { format!("{}.{}", quote(&f.schema), quote(&f.table)) } else { quote(&f.table) };
        Field { name: quote(&f.name).into(), table: table.into(), ..f.clone() }
    };
    fields.iter().map(named).collect()
}
