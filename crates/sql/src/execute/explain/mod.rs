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

use super::progress::WithProgress;
use super::query::table_fields;
use super::{Failure, Outcome, delete_tables, insert, update};
use crate::bind::{self, BoundDelete, BoundInsert, BoundSource, BoundUpdate, RowValue, UpdateTarget};
use crate::df;
use crate::fast::FastQuery;
use crate::measure::{Actual, Figures, Line, Profile};
use crate::parse::{self, ast::{ExplainFormat, Statement}};
use crate::plan::{BoundQuery, Expr, IndexChoice, Rel, RelKind};
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
    pub(crate) async fn explain(&mut self, format: ExplainFormat, analyze: bool, statement: &Statement, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if analyze && format != ExplainFormat::Tree {
            let name = if format == ExplainFormat::Json { "JSON" } else { "TRADITIONAL" };
            return Err(error::not_supported(&format!("EXPLAIN ANALYZE with FORMAT={name}")).into());
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
                        let sorted: Vec<&Expr> = single.order_by.iter().map(|key| &key.expr).collect();
                        let block = Explainer::new(self, Way::Unknown).change("UPDATE", &scan, single.filter.as_ref(), &values, &sorted, single.limit.as_ref())?;
                        tree = tree::change(&block, &single.table.def().name, told.as_ref());
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
                        let sorted: Vec<&Expr> = single.order_by.iter().map(|key| &key.expr).collect();
                        let block = Explainer::new(self, Way::Unknown).change("DELETE", &scan, single.filter.as_ref(), &[], &sorted, single.limit.as_ref())?;
                        tree = tree::change(&block, &single.table.def().name, told.as_ref());
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
        let mut times = Vec::new();
        if let Some(profile) = profile {
            self.profile = Some(profile.clone());
            let analyzed = Box::pin(self.analyze(statement, query_plan, began, sink)).await;
            self.profile = None;
            let (root, lines) = analyzed?;
            tree = measured(tree, &shown, &profile, root);
            times = lines;
        }
        let answer = match format {
            ExplainFormat::Tree => {
                let text = tree.iter().map(ToString::to_string).chain(times).map(|line| line + "\n").collect::<String>();
                Answer::new("EXPLAIN S", vec![vec![Value::text(text)]])
            }
            ExplainFormat::Json => {
                let mut text = String::new();
                shown.json().write(0, &mut text);
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

    /// What a connection runs now, planned once more: bound to its database, under the settings of this session.
    pub(crate) async fn explain_connection(&mut self, format: ExplainFormat, id: u64, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let process = self.state.instance.processes().get(id).ok_or_else(|| err(1094, format!("Unknown thread id: {id}")))?;
        let running = process.snapshot();
        let refused = || err(3012, "EXPLAIN FOR CONNECTION command is supported only for SELECT/UPDATE/INSERT/DELETE/REPLACE");
        let text = running.info.ok_or_else(refused)?;
        let parsed = parse::parse(&text, 0, self.state.config.parse).map_err(|_| refused())?;
        if !matches!(parsed.statement, Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)) {
            return Err(refused().into());
        }
        self.begin_set_vars(&parsed.set_vars);
        let own = std::mem::replace(&mut self.state.database, running.db.map(|db| (*db).into()));
        let progress = if format == ExplainFormat::Tree { process.queries().describe() } else { Vec::new() };
        let mut sink = WithProgress { sink, progress };
        let explained = self.explain(format, false, &parsed.statement, &mut sink).await;
        self.state.database = own;
        explained
    }

    /// A query whose tables are open, and its lines in FORMAT=TREE. `changed`: what a statement does to tables of it.
    async fn shown_query(&mut self, bound: &BoundQuery, changed: Option<(&'static str, &[UpdateTarget])>) -> Result<(Query, Vec<Line>), Failure> {
        let (verb, targets) = changed.unwrap_or_default();
        let scans: Vec<&Rel> = targets.iter().filter_map(|target| Some(bind::root(&bound.rel, target.row.start)?.0)).collect();
        // What is changed by several tables' rows is found by DataFusion.
        let fast = if changed.is_none() { self.compile_fast(bound)? } else { None };
        if let Some(fast) = &fast {
            let shown = Explainer::new(self, Way::Fast(fast)).statement(&bound.rel)?;
            let lines = tree::fast(fast, &bound.rel, &shown);
            return Ok((shown, lines.into_iter().map(|line| line.line(&[])).collect()));
        }
        let cx = self.query_context(&bound.hints);
        let explained = df::explain(bound.clone(), cx).await?;
        let shown = Explainer::new(self, Way::Engine(&explained)).changing(verb, scans).statement(&bound.rel)?;
        Ok((shown, explained.lines))
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
                let (source, lines) = self.shown_query(query, None).await?;
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

/// All columns of a table that a statement changes.
fn scan_of(table: &Arc<Table>, alias: &str, indexes: &IndexChoice) -> Rel {
    let fields = table_fields(table, alias);
    let columns = (0..fields.len()).collect();
    Rel { kind: RelKind::Scan { table: table.clone(), alias: alias.into(), columns, indexes: indexes.clone(), lock: None }, fields }
}
