//! EXPLAIN: the bound plan, how it would be run, and why. EXPLAIN ANALYZE runs it, too (`analyze.rs`).

use std::sync::Arc;
use std::time::Instant;

use highkey_table::Table;
use highkey_types::{MySqlError, Value};

use super::{Failure, Outcome, insert, update};
use crate::bind::{self, BoundDelete, BoundSource, BoundUpdate};
use crate::df;
use crate::parse::ast::{ExplainFormat, Statement};
use crate::plan::{self, BoundQuery, Expr, IndexChoice, Rel, RelKind};
use crate::session::{ResultSink, Session, error};
use crate::show::Answer;

impl Session {
    pub(crate) async fn explain(&mut self, format: ExplainFormat, analyze: bool, statement: &Statement, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if format == ExplainFormat::Json {
            return Err(error::not_supported("EXPLAIN FORMAT=JSON").into());
        }
        if analyze && format != ExplainFormat::Tree {
            return Err(error::not_supported("EXPLAIN ANALYZE with FORMAT=TRADITIONAL").into());
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
                tree = self.tree(&bound).await?;
                self.tabulate(&bound.rel, "SIMPLE", &mut rows)?;
                if rows.is_empty() {
                    rows.push(line("SIMPLE", "", None, "No tables used"));
                }
                query_plan = Some(bound);
            }
            Statement::Insert(ast) => {
                let bound = bind::bind_insert(ast, &self.state)?;
                self.open_tables(&insert::insert_tables(&bound)).await?;
                let kind = if bound.replace { "REPLACE" } else { "INSERT" };
                rows.push(line(kind, &bound.table.def().name, Some("ALL"), ""));
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
        self.send(answer, sink).await
    }

    async fn tree(&mut self, bound: &BoundQuery) -> Result<Vec<String>, Failure> {
        if let Some(fast) = self.compile_fast(bound)? {
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

    fn access_line(
        &mut self,
        kind: &str,
        table: &Arc<Table>,
        alias: &str,
        columns: &[usize],
        choice: &IndexChoice,
        filter: Option<&Expr>,
    ) -> Result<Vec<Value>, MySqlError> {
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
        let (access, key, rows, residual) = match &best {
            Some(best) if best.unique && best.ranges.len() == 1 => ("const", Some(best.index), 1, best.residual.is_some()),
            Some(best) => {
                let equal = best.ranges.len() == 1 && matches!((&best.ranges[0].lower, &best.ranges[0].upper), (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded));
                (if equal { "ref" } else { "range" }, Some(best.index), (total / 10).max(1), best.residual.is_some())
            }
            None => ("ALL", None, total, filter.is_some()),
        };
        let unanswered = best.as_ref().map_or(filter, |best| best.residual.as_ref());
        let share = unanswered.map_or(1.0, |filter| plan::selectivity(filter, table, columns, &mut self.state));
        // At least one row is expected.
        let filtered = share.max(1.0 / rows.max(1) as f64).min(1.0);
        let key_length = key.zip(best.as_ref()).map(|(i, best)| {
            def.indexes[i].parts.iter().take(best.matched.max(1)).map(|p| def.columns[p.column].ty.max_bytes() + u64::from(def.columns[p.column].nullable)).sum::<u64>()
        });
        Ok(vec![
            Value::UInt(1),
            Value::text(kind),
            Value::text(alias),
            Value::Null,
            Value::text(access),
            if possible.is_empty() { Value::Null } else { Value::text(possible.join(",")) },
            key.map_or(Value::Null, |i| Value::text(&*def.indexes[i].name)),
            key_length.map_or(Value::Null, |n| Value::text(n.to_string())),
            if access == "const" || access == "ref" { Value::text("const") } else { Value::Null },
            Value::UInt(rows),
            Value::Decimal(highkey_types::Decimal::from_i128((filtered * 10_000.0).round() as i128, 2)),
            if residual { Value::text("Using where") } else { Value::Null },
        ])
    }
}

/// A line without an access path.
fn line(kind: &str, table: &str, access: Option<&str>, extra: &str) -> Vec<Value> {
    let text = |t: &str| if t.is_empty() { Value::Null } else { Value::text(t) };
    vec![
        Value::UInt(1),
        Value::text(kind),
        text(table),
        Value::Null,
        access.map_or(Value::Null, Value::text),
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        Value::Null,
        text(extra),
    ]
}
