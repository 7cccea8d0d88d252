//! EXPLAIN: the bound statement, how it would be run, and why. EXPLAIN ANALYZE runs it, too (`super::analyze`).
//!
//! `block` takes a plan apart into query blocks, `sources` their FROM, `access` says how a table is read; `traditional`, `json` and `tree` write that.

mod access;
mod block;
mod json;
mod sources;
mod traditional;
mod tree;

use std::sync::Arc;
use std::time::Instant;

use highkey_table::Table;
use highkey_types::{MySqlError, Value};

use super::query::table_fields;
use super::subqueries::{has_correlated, query_of};
use super::{Failure, Outcome, delete_tables, insert, update};
use crate::bind::{self, BoundDelete, BoundInsert, BoundSource, BoundUpdate, RowValue, UpdateTarget};
use crate::df;
use crate::fast::FastQuery;
use crate::measure::{Actual, Figures, Line, Profile};
use crate::parse::{self, ast::{ExplainFormat, Statement}};
use crate::plan::{BoundQuery, Expr, ExprKind, Field, IndexChoice, Rel, RelKind, SortKey};
use crate::session::{ResultSink, Session, error, error::err};
use crate::show::Answer;

use block::{Block, Explainer, Inner, Query, Way};
use tree::FastLine;

/// A statement as EXPLAIN shows it.
enum Shown {
    Query(Query),
    /// UPDATE or DELETE of joined tables.
    Joined(Query),
    /// UPDATE or DELETE of one table.
    Change(Block),
    Insert { verb: &'static str, table: String, source: Option<Query>, values: Vec<Inner> },
    /// LOAD DATA.
    Load,
}

impl Session {
    /// `progress`: lines behind those of FORMAT=TREE.
    pub(crate) async fn explain(
        &mut self,
        format: ExplainFormat,
        analyze: bool,
        statement: &Statement,
        progress: Vec<String>,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, Failure> {
        if analyze && format == ExplainFormat::Traditional {
            return Err(error::not_supported("EXPLAIN ANALYZE with FORMAT=TRADITIONAL").into());
        }
        self.state.explaining = true;
        // What it waits for until its tables are open counts too.
        let began = Instant::now();
        if analyze {
            self.waits.measure_cpu();
        }
        let profile = analyze.then(Profile::default);
        let told = profile.as_ref().map(Profile::changing);
        let mut tree = Vec::new();
        let mut query_plan = None;
        let shown = match statement {
            Statement::Query(query) => {
                let bound = self.bind_query(query).await?;
                let (shown, lines) = self.shown_query(&bound, None).await?;
                tree = lines;
                query_plan = Some(bound);
                Shown::Query(shown)
            }
            Statement::Insert(ast) => {
                let bound = bind::bind_insert(ast, &self.state)?;
                self.open_tables(&insert::insert_tables(&bound)).await?;
                self.shown_insert(&bound, &mut tree).await?
            }
            Statement::Update(ast) => {
                let bound = bind::bind_update(ast, &self.state)?;
                self.open_tables(&update::update_tables(&bound)).await?;
                match &bound {
                    BoundUpdate::Single(single) => {
                        let scan = scan_of(&single.table, &single.alias, &single.indexes);
                        let values: Vec<&Expr> = single.assignments.iter().filter_map(|(_, value)| value.expr()).collect();
                        let block = Explainer::new(self, Way::Unknown).change("UPDATE", &scan, single.filter.as_ref(), &values, &single.order_by, single.limit.as_ref())?;
                        tree = tree::change(&block, &single.table.def().name, told.as_ref());
                        if !analyze {
                            let rows = rows_of(scan, single.filter.as_ref(), &single.order_by, single.limit.as_ref());
                            self.show_subqueries(&mut tree, rows, &values).await?;
                        }
                        Shown::Change(block)
                    }
                    BoundUpdate::Multi(multi) => {
                        let (shown, lines) = self.shown_query(&multi.query, Some(("UPDATE", multi.targets.as_slice()))).await?;
                        tree = joined("UPDATE", &multi.targets, lines);
                        Shown::Joined(shown)
                    }
                }
            }
            Statement::Delete(ast) => {
                let bound = bind::bind_delete(ast, &self.state)?;
                self.open_tables(&delete_tables(&bound)).await?;
                match &bound {
                    BoundDelete::Single(single) => {
                        let scan = scan_of(&single.table, &single.alias, &single.indexes);
                        let block = Explainer::new(self, Way::Unknown).change("DELETE", &scan, single.filter.as_ref(), &[], &single.order_by, single.limit.as_ref())?;
                        tree = tree::change(&block, &single.table.def().name, told.as_ref());
                        if !analyze {
                            let rows = rows_of(scan, single.filter.as_ref(), &single.order_by, single.limit.as_ref());
                            self.show_subqueries(&mut tree, rows, &[]).await?;
                        }
                        Shown::Change(block)
                    }
                    BoundDelete::Multi { targets, query, .. } => {
                        let (shown, lines) = self.shown_query(query, Some(("DELETE", targets.as_slice()))).await?;
                        tree = joined("DELETE", targets, lines);
                        Shown::Joined(shown)
                    }
                }
            }
            Statement::LoadData(load) if analyze => {
                tree.push(Line::new(0, format!("Load into {}", load.table.name)));
                Shown::Load
            }
            _ => return Err(error::not_supported("EXPLAIN of this statement").into()),
        };
        let mut behind = progress;
        if let Some(profile) = profile {
            self.profile = Some(profile.clone());
            let analyzed = Box::pin(self.analyze(statement, query_plan, began, sink)).await;
            self.profile = None;
            let (root, lines) = analyzed?;
            tree = measured(tree, &shown, &profile, root);
            behind = lines;
        }
        let answer = match format {
            ExplainFormat::Tree => {
                let text = tree.iter().map(ToString::to_string).chain(behind).map(|line| line + "\n").collect::<String>();
                Answer::new("EXPLAIN S", vec![vec![Value::text(text)]])
            }
            ExplainFormat::Json => {
                let mut text = String::new();
                let json = if analyze { json::analyzed(&tree, &behind) } else { shown.json() };
                json.write(0, &mut text);
                Answer::new("EXPLAIN S", vec![vec![Value::text(text)]])
            }
            ExplainFormat::Traditional => Answer::new(traditional::COLUMNS, shown.lines()),
        };
        self.send(answer, false, sink).await
    }

    /// The note behind EXPLAIN of a query: what its names mean. One that has no such form has no note.
    pub(crate) fn note_explained(&mut self, statement: &Statement) {
        if let Statement::Query(query) = statement
            && let Ok(text) = bind::explained(query, &self.state)
        {
            self.state.note(1003, text);
        }
    }

    /// What a connection runs now, planned once more: bound to its database and the values of its parameters, on as many threads as it asks for, otherwise under the
    /// settings of this session.
    pub(crate) async fn explain_connection(&mut self, format: ExplainFormat, id: u64, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let process = self.state.instance.processes().get(id).ok_or_else(|| err(1094, format!("Unknown thread id: {id}")))?;
        let running = process.snapshot();
        let refused = || err(3012, "EXPLAIN FOR CONNECTION command is supported only for SELECT/UPDATE/INSERT/DELETE/REPLACE");
        let (text, params) = process.running().ok_or_else(refused)?;
        let parsed = parse::parse(&text, 0, self.state.config.parse).map_err(|_| refused())?;
        if !matches!(parsed.statement, Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)) {
            return Err(refused().into());
        }
        self.begin_set_vars(&parsed.set_vars);
        let own = std::mem::replace(&mut self.state.database, running.db.map(|db| (*db).into()));
        let settings = process.queries().settings().unwrap_or_else(|| self.state.config.parallel.clone());
        let own_settings = std::mem::replace(&mut self.state.config.parallel, settings);
        let own_params = (self.state.bind_params, std::mem::take(&mut self.state.params));
        if let Some(params) = params {
            (self.state.bind_params, self.state.params) = (true, params);
        }
        let progress = if format == ExplainFormat::Tree { process.queries().describe() } else { Vec::new() };
        let explained = self.explain(format, false, &parsed.statement, progress, sink).await;
        self.state.database = own;
        self.state.config.parallel = own_settings;
        (self.state.bind_params, self.state.params) = own_params;
        explained
    }

    /// A query whose tables are open, and its lines in FORMAT=TREE. `changed`: what a statement does to tables of it.
    async fn shown_query(&mut self, bound: &BoundQuery, changed: Option<(&'static str, &[UpdateTarget])>) -> Result<(Query, Vec<Line>), Failure> {
        // What is changed by several tables' rows is found by DataFusion.
        let fast = if changed.is_none() { self.compile_fast(bound)? } else { None };
        self.shown_way(bound, fast, changed).await
    }

    /// The same of a query that `fast` runs, if there is one.
    async fn shown_way(&mut self, bound: &BoundQuery, fast: Option<FastQuery>, changed: Option<(&'static str, &[UpdateTarget])>) -> Result<(Query, Vec<Line>), Failure> {
        let (verb, targets) = changed.unwrap_or_default();
        let scans: Vec<&Rel> = targets.iter().filter_map(|target| Some(bind::root(&bound.rel, target.row.start)?.0)).collect();
        if let Some(fast) = &fast
            && !self.will_leave(fast)?
        {
            let shown = Explainer::new(self, Way::Fast(fast)).statement(&bound.rel)?;
            let lines = tree::fast(fast, &bound.rel, &shown);
            return Ok((shown, lines.into_iter().map(|line| line.line(&[])).collect()));
        }
        let cx = self.query_context(&bound.hints);
        let explained = df::explain(bound.clone(), cx).await?;
        let shown = Explainer::new(self, Way::Engine(&explained)).changing(verb, scans).statement(&bound.rel)?;
        Ok((shown, explained.lines))
    }

    /// Adds the subqueries of UPDATE or DELETE of one table to its lines. Where one depends on the row, DataFusion finds the `rows` and computes it for the `values`
    /// that are assigned; the others run before.
    async fn show_subqueries(&mut self, tree: &mut Vec<Line>, rows: Rel, values: &[&Expr]) -> Result<(), Failure> {
        let mut plans = Vec::new();
        let mut correlated = false;
        let mut look = |expr: &Expr| {
            correlated |= has_correlated(expr);
            expr.walk(&mut |e| {
                if let ExprKind::Subquery(subquery) = &e.kind {
                    plans.push(subquery.plan.clone());
                }
            });
        };
        values.iter().for_each(|&value| look(value));
        rows.for_each_root(&mut look);
        if correlated {
            let (mut exprs, mut fields) = (Vec::new(), rows.fields.clone());
            exprs.extend(fields.iter().enumerate().map(|(i, field)| Expr::column(i, field.ty.clone())));
            for value in values.iter().filter(|value| has_correlated(value)) {
                exprs.push((*value).clone());
                fields.push(Field::computed("value", value.ty.clone()));
            }
            let no_targets: &[UpdateTarget] = &[];
            let (_, lines) = self.shown_query(&query_of(rows.project(exprs, fields)), Some(("", no_targets))).await?;
            tree.truncate(1);
            tree.extend(lines.into_iter().map(|line| line.inside(1)));
            return Ok(());
        }
        for plan in plans {
            let (_, mut lines) = self.shown_query(&query_of(plan), None).await?;
            if let Some(first) = lines.first_mut() {
                first.text.insert_str(0, "Subquery: ");
            }
            tree.extend(lines);
        }
        Ok(())
    }

    /// The lines of a query that the fast path is about to run.
    pub(super) fn fast_lines(&mut self, fast: &FastQuery, bound: &BoundQuery) -> Result<Vec<FastLine>, MySqlError> {
        // Whoever runs it warns.
        let diagnostics = self.state.diagnostics.clone();
        let shown = Explainer::new(self, Way::Fast(fast)).statement(&bound.rel);
        self.state.diagnostics = diagnostics;
        Ok(tree::fast(fast, &bound.rel, &shown?))
    }

    async fn shown_insert(&mut self, bound: &BoundInsert, tree: &mut Vec<Line>) -> Result<Shown, Failure> {
        let verb = if bound.replace { "REPLACE" } else { "INSERT" };
        let table = bound.table.def().name.to_string();
        tree.push(Line::new(0, format!("{} into {table}", if bound.replace { "Replace" } else { "Insert" })));
        let mut values: Vec<&Expr> = bound.on_duplicate.iter().filter_map(|(_, value)| value.expr()).collect();
        let source = match &bound.source {
            BoundSource::Query(query) => {
                let mut fast = self.compile_fast(query)?;
                if let Some(found) = &fast
                    && self.reads_many(found)?
                {
                    fast = None;
                }
                let (source, lines) = self.shown_way(query, fast, None).await?;
                tree.extend(lines.into_iter().map(|line| line.inside(1)));
                Some(source)
            }
            BoundSource::Rows(rows) => {
                values.extend(rows.iter().flatten().filter_map(RowValue::expr));
                None
            }
        };
        let values = Explainer::new(self, Way::Unknown).values(&values, &table_fields(&bound.table, &table), source.as_ref().map_or(1, Query::last_id))?;
        Ok(Shown::Insert { verb, table, source, values })
    }
}

/// The lines of a change to some of the tables that a query joins.
fn joined(verb: &str, targets: &[UpdateTarget], lines: Vec<Line>) -> Vec<Line> {
    let names: Vec<String> = targets.iter().map(|target| target.table.def().name.to_string()).collect();
    let root = Line::new(0, format!("{verb} {}", names.join(", ")));
    std::iter::once(root).chain(lines.into_iter().map(|line| line.inside(1))).collect()
}

/// The tree of what has run, which need not be what was expected to.
fn measured(mut tree: Vec<Line>, shown: &Shown, profile: &Profile, root: Actual) -> Vec<Line> {
    let (ran, beside) = profile.take();
    match shown {
        _ if ran.is_empty() => {}
        Shown::Query(_) => tree = ran,
        // Below what is done with the rows.
        _ => {
            tree.truncate(1);
            tree.extend(ran.into_iter().map(|line| line.inside(1)));
        }
    }
    if let Some(first) = tree.first_mut() {
        first.figures = Figures::Known(root);
    }
    tree.extend(beside);
    tree
}

impl Shown {
    fn lines(&self) -> Vec<Vec<Value>> {
        let mut lines = Vec::new();
        match self {
            Shown::Query(query) | Shown::Joined(query) => traditional::query(query, &mut lines),
            Shown::Change(block) => traditional::block(block, &mut lines),
            Shown::Insert { verb, table, source, values } => {
                lines.push(traditional::written(verb, table));
                if let Some(source) = source {
                    traditional::query(source, &mut lines);
                }
                values.iter().rev().for_each(|inner| traditional::query(&inner.query, &mut lines));
            }
            Shown::Load => {}
        }
        lines
    }

    fn json(&self) -> json::Json {
        match self {
            Shown::Query(query) | Shown::Joined(query) => json::query_block(query),
            Shown::Change(block) => json::change_block(block),
            Shown::Insert { verb, table, source, values } => {
                let verb = if *verb == "REPLACE" { "replace" } else { "insert" };
                json::insert_block(verb, table, source.as_ref(), values)
            }
            Shown::Load => json::Json::Object(Vec::new()),
        }
    }
}

/// The rows that a statement changes, in its order.
fn rows_of(scan: Rel, filter: Option<&Expr>, order_by: &[SortKey], limit: Option<&Expr>) -> Rel {
    let rows = match filter {
        Some(filter) => scan.filter(filter.clone()),
        None => scan,
    };
    rows.sort(order_by.to_vec()).limit(None, limit.cloned())
}

/// All columns of a table that a statement changes.
fn scan_of(table: &Arc<Table>, alias: &str, indexes: &IndexChoice) -> Rel {
    let fields = table_fields(table, alias);
    let columns = (0..fields.len()).collect();
    Rel { kind: RelKind::Scan { table: table.clone(), alias: alias.into(), columns, indexes: indexes.clone(), lock: None }, fields }
}
