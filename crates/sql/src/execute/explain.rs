//! EXPLAIN: the bound plan, how it would be run, and why. EXPLAIN ANALYZE runs it, too (`analyze.rs`).

use std::sync::Arc;
use std::time::Instant;

use highkey_table::{ColumnDef, IndexDef, Table};
use highkey_types::{MySqlError, Value};

use super::explain_json::{Blocks, Json, Object, qualified};
use super::query::table_fields;
use super::{Failure, Outcome, insert, update};
use crate::bind::{self, BoundDelete, BoundSource, BoundUpdate};
use crate::df;
use crate::fast::{FastQuery, JoinStep};
use crate::parse::{self, ast::{ExplainFormat, Statement}};
use crate::plan::{self, BoundQuery, Expr, IndexChoice, Rel, RelKind};
use crate::session::{ResultSink, Session, error, error::err};
use crate::show::Answer;

impl Session {
    pub(crate) async fn explain(&mut self, format: ExplainFormat, analyze: bool, statement: &Statement, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if analyze && format != ExplainFormat::Tree {
            let name = if format == ExplainFormat::Json { "JSON" } else { "TRADITIONAL" };
            return Err(error::not_supported(&format!("EXPLAIN ANALYZE with FORMAT={name}")).into());
        }
        self.state.explaining = true;
        if format == ExplainFormat::Json {
            let block = self.explain_json(statement).await?;
            let mut text = String::new();
            block.write(0, &mut text);
            let answer = Answer::new("EXPLAIN S", vec![vec![Value::text(text)]]);
            return self.send(answer, false, sink).await;
        }
        // What it waits for until its tables are open counts too.
        let began = Instant::now();
        if analyze {
            self.waits.measure_cpu();
        }
        let mut rows = Vec::new();
        let mut tree = Vec::new();
        let mut query_plan = None;
        match statement {
            Statement::Query(query) => {
                let bound = self.bind_query(query).await?;
                let fast = self.compile_fast(&bound)?;
                tree = self.tree_of(&bound, fast.as_ref()).await?;
                match fast.as_ref().and_then(|fast| fast.join_steps()) {
                    Some(steps) => rows.extend(steps.iter().map(step_line)),
                    None => self.tabulate(&bound.rel, "SIMPLE", &mut rows)?,
                }
                if rows.is_empty() {
                    rows.push(line("SIMPLE", "", "", "No tables used"));
                }
                query_plan = Some(bound);
            }
            Statement::Insert(ast) => {
                let bound = bind::bind_insert(ast, &self.state)?;
                self.open_tables(&insert::insert_tables(&bound)).await?;
                let kind = if bound.replace { "REPLACE" } else { "INSERT" };
                rows.push(line(kind, &bound.table.def().name, "ALL", ""));
                tree.push(format!("-> Insert into {}", bound.table.def().name));
                if let BoundSource::Query(query) = &bound.source {
                    tree.extend(self.tree(query).await?.into_iter().map(|l| format!("    {l}")));
                    self.tabulate(&query.rel, "SIMPLE", &mut rows)?;
                }
            }
            Statement::Update(ast) => {
                let bound = bind::bind_update(ast, &self.state)?;
                self.open_tables(&update::update_tables(&bound)).await?;
                match &bound {
                    BoundUpdate::Single(single) => self.explain_write("UPDATE", &single.table, &single.indexes, single.filter.as_ref(), &mut rows, &mut tree)?,
                    BoundUpdate::Multi(multi) => {
                        tree = self.tree(&multi.query).await?;
                        self.tabulate(&multi.query.rel, "UPDATE", &mut rows)?;
                    }
                }
            }
            Statement::Delete(ast) => {
                let bound = bind::bind_delete(ast, &self.state)?;
                match &bound {
                    BoundDelete::Single(single) => self.explain_write("DELETE", &single.table, &single.indexes, single.filter.as_ref(), &mut rows, &mut tree)?,
                    BoundDelete::Multi { query, .. } => {
                        tree = self.tree(query).await?;
                        self.tabulate(&query.rel, "DELETE", &mut rows)?;
                    }
                }
            }
            Statement::LoadData(load) if analyze => tree.push(format!("-> Load into {}", load.table.name)),
            _ => return Err(error::not_supported("EXPLAIN of this statement").into()),
        }
        if analyze {
            Box::pin(self.analyze(statement, query_plan, &mut tree, began, sink)).await?;
        }
        let answer = match format {
            ExplainFormat::Tree => Answer::new("EXPLAIN S", vec![vec![Value::text(tree.join("\n") + "\n")]]),
            _ => Answer::new(
                "id u?;select_type s19;table s64?;partitions s255?;type s10?;possible_keys S?;key s64?;key_len s64?;ref s255?;rows u?;filtered p?;Extra s255?",
                rows,
            ),
        };
        self.send(answer, false, sink).await
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
        let own = std::mem::replace(&mut self.state.database, running.db.map(|db| (*db).into()));
        let explained = self.explain(format, false, &parsed.statement, sink).await;
        self.state.database = own;
        explained
    }

    async fn explain_json(&mut self, statement: &Statement) -> Result<Json, Failure> {
        let mut blocks = Blocks::new();
        let members = match statement {
            Statement::Query(query) => {
                let bound = self.bind_query(query).await?;
                return Ok(self.json_block(&bound.rel, &mut blocks)?);
            }
            Statement::Insert(ast) => {
                let bound = bind::bind_insert(ast, &self.state)?;
                self.open_tables(&insert::insert_tables(&bound)).await?;
                let verb = if bound.replace { "replace" } else { "insert" };
                let mut members = self.json_write(verb, &bound.table.def().name, None, &mut blocks);
                if let BoundSource::Query(query) = &bound.source {
                    members.extend(self.json_insert_from(&query.rel, &mut blocks)?);
                }
                members
            }
            Statement::Update(ast) => match bind::bind_update(ast, &self.state)? {
                BoundUpdate::Single(single) => self.json_change("update", &single.table, &single.alias, &single.indexes, single.filter.as_ref(), &mut blocks)?,
                BoundUpdate::Multi(multi) => return Ok(self.json_block(&multi.query.rel, &mut blocks)?),
            },
            Statement::Delete(ast) => match bind::bind_delete(ast, &self.state)? {
                BoundDelete::Single(single) => self.json_change("delete", &single.table, &single.alias, &single.indexes, single.filter.as_ref(), &mut blocks)?,
                BoundDelete::Multi { query, .. } => return Ok(self.json_block(&query.rel, &mut blocks)?),
            },
            _ => return Err(error::not_supported("EXPLAIN of this statement").into()),
        };
        Ok(Json::Object(vec![("query_block", Json::Object(members))]))
    }

    fn json_change(
        &mut self,
        verb: &'static str,
        table: &Arc<Table>,
        alias: &str,
        choice: &IndexChoice,
        filter: Option<&Expr>,
        blocks: &mut Blocks,
    ) -> Result<Object, MySqlError> {
        let all: Vec<usize> = (0..table.columns().len()).collect();
        let access = self.access_to(table, &all, choice, filter)?;
        let condition = filter.map(|f| plan::describe_expr(f, &qualified(&table_fields(table, alias))));
        Ok(self.json_write(verb, alias, Some((&access, condition)), blocks))
    }

    async fn tree(&mut self, bound: &BoundQuery) -> Result<Vec<String>, Failure> {
        let fast = self.compile_fast(bound)?;
        self.tree_of(bound, fast.as_ref()).await
    }

    /// The lines of a query whose fast path, if it has one, is compiled.
    async fn tree_of(&mut self, bound: &BoundQuery, fast: Option<&FastQuery>) -> Result<Vec<String>, Failure> {
        if let Some(fast) = fast {
            let mut lines = vec!["-> Fast path".to_owned()];
            match fast.describe_join() {
                Some(join) => lines.extend(join.into_iter().map(|l| format!("    {l}"))),
                None => lines.extend(plan::describe_rel(&bound.rel).lines().map(|l| format!("    {l}"))),
            }
            return Ok(lines);
        }
        let cx = self.query_context(&bound.hints);
        Ok(df::explain(bound.clone(), cx).await?)
    }

    fn explain_write(
        &mut self,
        kind: &str,
        table: &Arc<Table>,
        choice: &IndexChoice,
        filter: Option<&Expr>,
        rows: &mut Vec<Vec<Value>>,
        tree: &mut Vec<String>,
    ) -> Result<(), MySqlError> {
        let columns: Vec<usize> = (0..table.columns().len()).collect();
        rows.push(self.access_line(kind, table, &table.def().name.clone(), &columns, choice, filter)?);
        tree.push(format!("-> {kind} {}", table.def().name));
        Ok(())
    }

    /// One line for each base table, in the order of the plan.
    fn tabulate(&mut self, rel: &Rel, kind: &str, rows: &mut Vec<Vec<Value>>) -> Result<(), MySqlError> {
        match &rel.kind {
            RelKind::Filter { input, predicate } => match &input.kind {
                RelKind::Scan { table, alias, columns, indexes, .. } => rows.push(self.access_line(kind, table, alias, columns, indexes, Some(predicate))?),
                _ => self.tabulate(input, kind, rows)?,
            },
            RelKind::Scan { table, alias, columns, indexes, .. } => rows.push(self.access_line(kind, table, alias, columns, indexes, None)?),
            _ => {
                for input in rel.inputs() {
                    self.tabulate(input, kind, rows)?;
                }
            }
        }
        let mut subqueries = Vec::new();
        rel.for_each_root(&mut |root| {
            root.walk(&mut |e| {
                if let plan::ExprKind::Subquery(s) = &e.kind {
                    subqueries.push((s.plan.clone(), s.correlated));
                }
            });
        });
        // `for_each_root` enters the inputs: only the topmost call may list them.
        if kind == "SIMPLE" || kind == "UPDATE" || kind == "DELETE" {
            for (plan, correlated) in subqueries {
                self.tabulate(&plan, if correlated { "DEPENDENT SUBQUERY" } else { "SUBQUERY" }, rows)?;
            }
        }
        Ok(())
    }

    /// How a table is read under a condition.
    pub(super) fn access_to(&mut self, table: &Arc<Table>, columns: &[usize], choice: &IndexChoice, filter: Option<&Expr>) -> Result<Access, MySqlError> {
        let def = table.def().clone();
        let total = table.row_count_estimate()?;
        let possible: Vec<String> = match filter {
            Some(filter) => (0..def.indexes.len())
                .filter(|&i| choice.finds(i) && plan::index_access(filter, &def, columns, i).is_some())
                .map(|i| def.indexes[i].name.to_string())
                .collect(),
            None => Vec::new(),
        };
        let best = filter.and_then(|f| plan::best_access(f, &def, columns, choice));
        let (kind, index, rows) = match &best {
            Some(best) if best.unique && best.ranges.len() == 1 => ("const", Some(best.index), 1),
            Some(best) => {
                let equal = best.ranges.len() == 1 && matches!((&best.ranges[0].lower, &best.ranges[0].upper), (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded));
                (if equal { "ref" } else { "range" }, Some(best.index), (total / 10).max(1))
            }
            None => ("ALL", None, total),
        };
        let unanswered = best.as_ref().map_or(filter, |best| best.residual.as_ref());
        let share = unanswered.map_or(1.0, |filter| plan::selectivity(filter, table, columns, &mut self.state));
        // At least one row is expected.
        let filtered = share.max(1.0 / rows.max(1) as f64).min(1.0);
        let key = index.zip(best.as_ref()).map(|(i, best)| {
            let columns: Vec<&ColumnDef> = def.indexes[i].parts.iter().take(best.matched.max(1)).map(|p| &def.columns[p.column]).collect();
            AccessKey {
                name: def.indexes[i].name.to_string(),
                parts: columns.iter().map(|c| c.name.to_string()).collect(),
                length: key_length(columns.iter().copied()),
            }
        });
        Ok(Access { kind, possible, key, rows, filtered, residual: unanswered.is_some() })
    }

    fn access_line(
        &mut self,
        kind: &str,
        table: &Arc<Table>,
        alias: &str,
        columns: &[usize],
        choice: &IndexChoice,
        filter: Option<&Expr>,
    ) -> Result<Vec<Value>, MySqlError> {
        let access = self.access_to(table, columns, choice, filter)?;
        Ok(Line {
            kind,
            table: alias,
            access: access.kind,
            possible: access.possible.join(","),
            key: access.key.as_ref().map(|key| (key.name.as_str(), key.length)),
            refs: if access.is_equality() { "const".to_owned() } else { String::new() },
            rows: Some((access.rows, (access.filtered * 10_000.0).round() as i128)),
            extra: if access.residual { "Using where".to_owned() } else { String::new() },
        }
        .values())
    }
}

/// How a table is read.
pub(super) struct Access {
    /// const, ref, range or ALL.
    pub kind: &'static str,
    /// Names of the indexes that could find the rows.
    pub possible: Vec<String>,
    pub key: Option<AccessKey>,
    /// Rows that are read, as far as it is known.
    pub rows: u64,
    /// The share of them that the rest of the condition keeps.
    pub filtered: f64,
    /// Part of the condition is not answered by the index.
    pub residual: bool,
}

impl Access {
    pub fn is_equality(&self) -> bool {
        matches!(self.kind, "const" | "ref")
    }
}

/// The index that finds the rows.
pub(super) struct AccessKey {
    pub name: String,
    /// The columns that are used.
    pub parts: Vec<String>,
    /// Bytes of them at most.
    pub length: u64,
}

/// A line of the traditional format; what is empty or not there is NULL.
#[derive(Default)]
struct Line<'a> {
    kind: &'a str,
    table: &'a str,
    access: &'a str,
    possible: String,
    /// Name and bytes that are used of it.
    key: Option<(&'a str, u64)>,
    refs: String,
    /// How many are read, and how many of 10,000 of them are kept.
    rows: Option<(u64, i128)>,
    extra: String,
}

impl Line<'_> {
    fn values(&self) -> Vec<Value> {
        let text = |t: &str| if t.is_empty() { Value::Null } else { Value::text(t) };
        vec![
            Value::UInt(1),
            text(self.kind),
            text(self.table),
            Value::Null,
            text(self.access),
            text(&self.possible),
            self.key.map_or(Value::Null, |(name, _)| text(name)),
            self.key.map_or(Value::Null, |(_, length)| Value::text(length.to_string())),
            text(&self.refs),
            self.rows.map_or(Value::Null, |(rows, _)| Value::UInt(rows)),
            self.rows.map_or(Value::Null, |(_, kept)| Value::Decimal(highkey_types::Decimal::from_i128(kept, 2))),
            text(&self.extra),
        ]
    }
}

/// A line without an access path.
fn line(kind: &str, table: &str, access: &str, extra: &str) -> Vec<Value> {
    Line { kind, table, access, extra: extra.to_owned(), ..Line::default() }.values()
}

/// A table of a join by nested loops.
fn step_line(step: &JoinStep<'_>) -> Vec<Value> {
    let length = |index: &IndexDef, parts| key_length(index.parts.iter().take(parts).map(|p| &step.table.columns[p.column]));
    let extra = [(step.residual, "Using where"), (step.buffered, "Using join buffer")];
    Line {
        kind: "SIMPLE",
        table: step.alias,
        access: step.kind,
        possible: step.key.map_or(String::new(), |(index, _)| index.name.to_string()),
        key: step.key.map(|(index, parts)| (&*index.name, length(index, parts))),
        refs: step.refs.join(","),
        rows: Some((step.rows, 10_000)),
        extra: extra.iter().filter(|(shown, _)| *shown).map(|(_, text)| *text).collect::<Vec<_>>().join("; "),
    }
    .values()
}

/// `key_len`: bytes of a key of these columns.
fn key_length<'a>(columns: impl Iterator<Item = &'a ColumnDef>) -> u64 {
    columns.map(|c| c.ty.max_bytes() + u64::from(c.nullable)).sum()
}
