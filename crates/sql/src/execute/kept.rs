//! SELECT of a prepared statement, or of a text that comes again, that is planned with the values of its parameters: what DataFusion runs. It is kept with its
//! plan for other executions with the same values, or with others of which columns are compared with others only.
//!
//! Kept is what another execution would bind and plan the same way: nothing in it depends on more than its text, the values, the session's variables and the
//! definitions of its tables, and planning it has warned of nothing. Constants in its plan, ranges of indexes among them, are of these values.
//!
//! An execution with other values binds the statement. If that gives a query like a kept one (`plan::is_alike`), it differs in what columns are compared with at most:
//! its plan is made for any such values, and serves the executions after it.

use std::pin::pin;
use std::sync::Arc;

use highkey_table::{Histogram, Statistics, Table};
use highkey_types::{MySqlError, TypeKind, Value};
use tokio::sync::OwnedSemaphorePermit;

use super::query::{BoundTables, Destination};
use super::{Failure, Outcome};
use crate::df::PlanSlot;
use crate::parse::ast;
use crate::plan::{self, BoundQuery, ExprKind};
use crate::prepared::{PreparedStatement, Settings};
use crate::session::{ResultSink, Session, StatusCounter};
use crate::variables::Values;

/// Queries that a session keeps: a plan of many joins takes some hundred kilobytes.
const KEPT_MAX: usize = 8;
/// Bytes of the texts among its parameters; with more of them a query is not kept.
const TEXTS_MAX: usize = 1024;
/// Operators of a query that is kept, and how many of them stand on each other: its plan is dropped on a session's stack.
const OPERATORS_MAX: usize = 100;
const LEVELS_MAX: usize = 40;
/// Expressions in it, with those that they are made of: each number of a long list is one, and a range of an index.
const EXPRESSIONS_MAX: usize = 2000;

/// The queries that a session keeps planned, the one that ran last behind the others.
#[derive(Default)]
pub struct KeptQueries(Vec<KeptQuery>);

struct KeptQuery {
    /// `PreparedStatement::number`.
    statement: u64,
    /// Its parameters, written so that only the same values are written the same.
    values: String,
    settings: Settings,
    /// The session's: a SET makes others of them, as these are held here.
    variables: Arc<Values>,
    bound: BoundQuery,
    tables: BoundTables,
    /// Of the tables.
    facts: Vec<TableFacts>,
    slot: Arc<PlanSlot>,
    /// Of `Instance::plan_room`.
    room: OwnedSemaphorePermit,
}

impl KeptQuery {
    /// Its plan was made for tables such as they are now.
    fn facts_hold(&self) -> bool {
        self.tables.tables.iter().zip(&self.facts).all(|((table, _), facts)| facts.hold_for(&TableFacts::of(table)))
    }
}

impl KeptQueries {
    /// A prepared statement is closed.
    pub fn forget(&mut self, statement: u64) {
        self.0.retain(|kept| kept.statement != statement);
    }

    fn take(&mut self, statement: u64, values: &str) -> Option<KeptQuery> {
        let at = self.0.iter().position(|kept| kept.statement == statement && kept.values == values)?;
        Some(self.0.remove(at))
    }

    fn keep(&mut self, query: KeptQuery) {
        if self.0.len() >= KEPT_MAX {
            self.drop_oldest();
        }
        self.0.push(query);
    }

    /// Drops the one that has not run for longest; false if there is none.
    fn drop_oldest(&mut self) -> bool {
        if self.0.is_empty() {
            return false;
        }
        self.0.remove(0);
        true
    }
}

/// What planning looks at of a table beside its definition. Any plan is right with other facts, but it may be slow.
struct TableFacts {
    rows: u64,
    statistics: Option<Arc<Statistics>>,
    /// By column.
    histograms: Vec<Option<Arc<Histogram>>>,
}

/// Rows of which a plan for fewer is as good.
const FEW_ROWS: u64 = 100;

impl TableFacts {
    fn of(table: &Table) -> TableFacts {
        TableFacts {
            rows: table.row_count_estimate().unwrap_or(0),
            statistics: table.cached_statistics(),
            histograms: (0..table.def().columns.len()).map(|column| table.histogram(column)).collect(),
        }
    }

    /// The table has neither doubled nor halved, and nobody has analyzed it.
    fn hold_for(&self, now: &TableFacts) -> bool {
        let at_most_twice = |less: u64, more: u64| more <= less.saturating_mul(2).max(FEW_ROWS);
        at_most_twice(self.rows, now.rows)
            && at_most_twice(now.rows, self.rows)
            && is_same(self.statistics.as_ref(), now.statistics.as_ref())
            && self.histograms.len() == now.histograms.len()
            && self.histograms.iter().zip(&now.histograms).all(|(a, b)| is_same(a.as_ref(), b.as_ref()))
    }
}

fn is_same<T>(a: Option<&Arc<T>>, b: Option<&Arc<T>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => Arc::ptr_eq(a, b),
        (None, None) => true,
        _ => false,
    }
}

impl Session {
    /// Runs the query of a prepared statement with the values in `state.params`, as the literals that they are bound as (`state.bind_params`).
    pub(crate) async fn run_with_values(&mut self, statement: &PreparedStatement, query: &ast::Query, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        self.check_privileges(&statement.parsed.statement)?;
        self.check_xa(&statement.parsed.statement, false)?;
        self.count_statement(&statement.parsed.statement);
        let instance = self.state.instance.clone();
        let admission = self.admission(&instance);
        admission.run(pin!(self.run_kept_query(statement, query, sink))).await
    }

    async fn run_kept_query(&mut self, statement: &PreparedStatement, query: &ast::Query, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let warnings = self.state.diagnostics.count();
        let values = written(&self.state.params);
        let found = values.as_ref().and_then(|values| self.prepared.kept.take(statement.number, values));
        let kept = match found {
            Some(kept) => self.is_current(&kept).await?.then_some(kept),
            None => None,
        };
        let kept = match kept {
            Some(kept) => {
                self.note_hints(&kept.bound.hints);
                kept
            }
            None => {
                let mut bound = self.bind_query(query).await?;
                let fast = self.compile_fast(&bound)?;
                // A hint's variables are the execution's: no other finds the same ones.
                let alike = fast.is_none() && statement.parsed.set_vars.is_empty() && is_planned_alike(&bound);
                let values = values.filter(|_| alike).and_then(|values| Some((values, self.plan_place(statement.number, &mut bound)?)));
                let Some((values, (slot, facts, room))) = values else {
                    return self.run_query(&bound, fast.as_ref(), None, sink).await;
                };
                let tables = BoundTables::of_query(&bound);
                KeptQuery {
                    statement: statement.number,
                    values,
                    settings: Settings::of(self),
                    variables: self.state.variables.clone(),
                    facts,
                    tables,
                    bound,
                    slot,
                    room,
                }
            }
        };
        let _timer = self.execution_timer(&kept.bound);
        let count = self.collect_planned(&kept.bound, Some(kept.slot.clone()), &mut Destination::Sink(sink)).await?;
        let used = kept.slot.was_used();
        self.state.count(StatusCounter::SelectKeptPlan, u64::from(used));
        // A plan that was made just now may have warned of what it was made of.
        if kept.slot.is_full() && (used || self.state.diagnostics.count() == warnings) {
            self.prepared.kept.keep(kept);
        }
        Ok(Outcome::Rows { count, found: true })
    }

    /// Where the plan of a query is to be kept, with what is known of its tables, and the room for it: those of a kept query of the statement that is like it, which
    /// it replaces. `None` if there is no room.
    fn plan_place(&mut self, statement: u64, bound: &mut BoundQuery) -> Option<(Arc<PlanSlot>, Vec<TableFacts>, OwnedSemaphorePermit)> {
        if let Some(mut kept) = self.take_alike(statement, bound) {
            let differ = plan::differing_operands(&mut kept.bound.rel, &mut bound.rel);
            let mut open = kept.slot.open().to_vec();
            if differ.iter().all(|operand| open.contains(operand)) {
                return Some((kept.slot, kept.facts, kept.room));
            }
            open.extend(differ);
            return Some((Arc::new(PlanSlot::opening(open)), facts_of(bound), kept.room));
        }
        Some((Arc::default(), facts_of(bound), self.room_to_keep(bound)?))
    }

    /// A kept query of the statement that is like this one, under the same settings and with tables that are still like what they were. None if another one of the
    /// statement depends on its values.
    fn take_alike(&mut self, statement: u64, bound: &BoundQuery) -> Option<KeptQuery> {
        let (settings, variables) = (Settings::of(self), &self.state.variables);
        let kept = &self.prepared.kept.0;
        if self.state.locks.has_tables() || kept.iter().any(|kept| kept.statement == statement && kept.slot.is_closed()) {
            return None;
        }
        let at = kept.iter().position(|kept| {
            kept.statement == statement
                && kept.settings == settings
                && Arc::ptr_eq(&kept.variables, variables)
                && kept.bound.hints == bound.hints
                && plan::is_alike(&kept.bound.rel, &bound.rel)
                && kept.facts_hold()
        })?;
        Some(self.prepared.kept.0.remove(at))
    }

    /// Room for a query among those that all sessions keep; where there is none, in place of this session's oldest.
    fn room_to_keep(&mut self, bound: &BoundQuery) -> Option<OwnedSemaphorePermit> {
        let (operators, _) = bound.rel.size();
        loop {
            let room = self.state.instance.plan_room().clone().try_acquire_many_owned(operators as u32);
            if room.is_ok() || !self.prepared.kept.drop_oldest() {
                return room.ok();
            }
        }
    }

    /// Opens the tables of a kept query; false if it has to be bound or planned anew.
    async fn is_current(&mut self, kept: &KeptQuery) -> Result<bool, MySqlError> {
        let same = kept.settings == Settings::of(self)
            && Arc::ptr_eq(&kept.variables, &self.state.variables)
            // It may use names that are not locked.
            && !self.state.locks.has_tables();
        Ok(same && self.open_tables(&kept.tables).await? && kept.facts_hold())
    }
}

fn facts_of(bound: &BoundQuery) -> Vec<TableFacts> {
    BoundTables::of_query(bound).tables.iter().map(|(table, _)| TableFacts::of(table)).collect()
}

/// The values, so that only the same ones are written the same: 1.0 is not 1.00, and 0 is not -0. `None` if they are long, or many.
fn written(values: &[Value]) -> Option<String> {
    let bytes = |value: &Value| match value {
        Value::Text(text) | Value::Json(text) => text.len(),
        Value::Bytes(bytes) => bytes.len(),
        _ => 0,
    };
    let few = values.len() <= EXPRESSIONS_MAX && values.iter().map(bytes).sum::<usize>() <= TEXTS_MAX;
    few.then(|| format!("{values:?}"))
}

/// Nothing that the query evaluates depends on the moment or on more of the session than its variables, and it only gives its rows to the client. It is no large query.
fn is_planned_alike(bound: &BoundQuery) -> bool {
    let (operators, levels) = bound.rel.size();
    let small = operators <= OPERATORS_MAX && levels <= LEVELS_MAX;
    let mut alike = small && !bound.locking && bound.into.is_none() && !bound.calc_found_rows;
    let mut expressions = 0;
    bound.rel.for_each_expr(&mut |e, _| {
        expressions += 1;
        alike &= match &e.kind {
            // A function may be another one by then.
            ExprKind::Stored { .. } => false,
            // What it finds depends on the rows.
            ExprKind::Match { .. } => false,
            ExprKind::Param(_) | ExprKind::UserVar(_) | ExprKind::AssignUserVar { .. } | ExprKind::SystemVar { .. } => false,
            ExprKind::Call { func, .. } => func.is_deterministic(),
            _ => true,
        };
        // A time of day beside a date is one of today.
        alike &= !matches!(e.ty.ty.kind, TypeKind::Time(_));
    });
    alike && expressions <= EXPRESSIONS_MAX
}
