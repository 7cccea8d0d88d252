//! EXPLAIN FORMAT=JSON: a plan in the shape that MySQL gives it, without its costs, which ours has not.

use highkey_types::MySqlError;

use super::explain::Access;
use crate::plan::{self, Expr, ExprKind, Field, JoinKind, Rel, RelKind, SetOperator, WindowFunc};
use crate::session::Session;

/// A JSON value; members stand in the order in which MySQL writes them.
pub(super) enum Json {
    /// A number or truth value as it is written.
    Plain(String),
    Text(String),
    List(Vec<Json>),
    Object(Object),
}

pub(super) type Object = Vec<(&'static str, Json)>;

impl Json {
    fn number(n: impl ToString) -> Json {
        Json::Plain(n.to_string())
    }

    fn truth(truth: bool) -> Json {
        Json::Plain(truth.to_string())
    }

    fn text(text: impl Into<String>) -> Json {
        Json::Text(text.into())
    }

    fn texts(texts: impl IntoIterator<Item = String>) -> Json {
        Json::List(texts.into_iter().map(Json::Text).collect())
    }

    /// Indented by two spaces a level.
    pub fn write(&self, depth: usize, out: &mut String) {
        let (open, close, items): (char, char, Vec<(Option<&str>, &Json)>) = match self {
            Json::Plain(text) => return out.push_str(text),
            Json::Text(text) => return highkey_types::json::push_quoted(text, out),
            Json::List(items) => ('[', ']', items.iter().map(|item| (None, item)).collect()),
            Json::Object(members) => ('{', '}', members.iter().map(|(name, item)| (Some(*name), item)).collect()),
        };
        out.push(open);
        for (i, (name, item)) in items.into_iter().enumerate() {
            out.push_str(if i > 0 { ",\n" } else { "\n" });
            out.push_str(&"  ".repeat(depth + 1));
            if let Some(name) = name {
                out.push_str(&format!("\"{name}\": "));
            }
            item.write(depth + 1, out);
        }
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
        out.push(close);
    }
}

/// Numbers the query blocks of a statement.
pub(super) struct Blocks(u64);

impl Blocks {
    pub fn new() -> Blocks {
        Blocks(0)
    }
}

impl Session {
    /// `{"query_block": …}` of a query.
    pub(super) fn json_block(&mut self, rel: &Rel, blocks: &mut Blocks) -> Result<Json, MySqlError> {
        let block = self.json_members(rel, blocks)?;
        Ok(Json::Object(vec![("query_block", Json::Object(block))]))
    }

    /// The members of a query block.
    fn json_members(&mut self, rel: &Rel, blocks: &mut Blocks) -> Result<Object, MySqlError> {
        if let RelKind::SetOperation { .. } = &peeled(rel).kind {
            return self.json_union(rel, blocks);
        }
        blocks.0 += 1;
        let mut block = vec![("select_id", Json::number(blocks.0))];
        let all: Vec<usize> = (0..rel.fields.len()).collect();
        let mut selected = Vec::new();
        block.extend(self.json_operations(rel, &all, blocks, &mut selected)?);
        if !selected.is_empty() {
            block.push(("select_list_subqueries", Json::List(selected)));
        }
        Ok(block)
    }

    fn json_union(&mut self, rel: &Rel, blocks: &mut Blocks) -> Result<Object, MySqlError> {
        let union = peeled(rel);
        let mut branches = Vec::new();
        collect_branches(union, &mut branches);
        let first = blocks.0 + 1;
        let mut specifications = Vec::new();
        for branch in &branches {
            let mut members = vec![("dependent", Json::truth(false)), ("cacheable", Json::truth(true))];
            members.push(("query_block", Json::Object(self.json_members(branch, blocks)?)));
            specifications.push(Json::Object(members));
        }
        let numbers: Vec<String> = (first..first + branches.len() as u64).map(|n| n.to_string()).collect();
        let distinct = !matches!(&union.kind, RelKind::SetOperation { op: SetOperator::Union, all: true, .. });
        let mut result = vec![("using_temporary_table", Json::truth(distinct || !std::ptr::eq(union, rel)))];
        if distinct {
            result.push(("table_name", Json::text(format!("<union{}>", numbers.join(",")))));
            result.push(("access_type", Json::text("ALL")));
        }
        result.push(("query_specifications", Json::List(specifications)));
        Ok(vec![("union_result", Json::Object(result))])
    }

    /// The operators of a block, the outermost first, down to its tables. `needed`: the outputs that are used.
    fn json_operations(&mut self, rel: &Rel, needed: &[usize], blocks: &mut Blocks, selected: &mut Vec<Json>) -> Result<Object, MySqlError> {
        match &rel.kind {
            RelKind::Limit { input, .. } => self.json_operations(input, needed, blocks, selected),
            RelKind::Project { input, exprs } => {
                let used: Vec<&Expr> = needed.iter().filter_map(|i| exprs.get(*i)).collect();
                for expr in &used {
                    self.json_subqueries(expr, blocks, selected)?;
                }
                self.json_operations(input, &columns(used), blocks, selected)
            }
            RelKind::Sort { input, keys } => {
                let needed = with(needed, keys.iter().map(|k| &k.expr));
                let mut members = vec![("using_filesort", Json::truth(true))];
                members.extend(self.json_operations(input, &needed, blocks, selected)?);
                Ok(vec![("ordering_operation", Json::Object(members))])
            }
            RelKind::Distinct { input } => {
                let mut members = vec![("using_temporary_table", Json::truth(true)), ("using_filesort", Json::truth(false))];
                let all: Vec<usize> = (0..input.fields.len()).collect();
                members.extend(self.json_operations(input, &all, blocks, selected)?);
                Ok(vec![("duplicates_removal", Json::Object(members))])
            }
            RelKind::Aggregate { input, groups, aggregates, .. } => {
                let read = groups.iter().chain(aggregates.iter().flat_map(|a| a.args.iter().chain(a.order_by.iter().map(|k| &k.expr))));
                let inner = self.json_operations(input, &columns(read.collect()), blocks, selected)?;
                if groups.is_empty() {
                    return Ok(inner);
                }
                let mut members = vec![("using_temporary_table", Json::truth(true)), ("using_filesort", Json::truth(false))];
                members.extend(inner);
                Ok(vec![("grouping_operation", Json::Object(members))])
            }
            RelKind::Window { input, windows } => {
                let width = input.fields.len();
                let mut below: Vec<usize> = needed.iter().copied().filter(|i| *i < width).collect();
                let mut shown = Vec::new();
                for window in windows {
                    let keys = window.partition_by.iter().chain(window.order_by.iter().map(|k| &k.expr));
                    below = with(&below, window.args.iter().chain(keys.clone()));
                    let keys: Vec<String> = keys.map(|e| plan::describe_expr(e, &qualified(&input.fields))).collect();
                    let mut members = vec![("name", Json::text("<unnamed window>"))];
                    if !keys.is_empty() {
                        members.push(("using_filesort", Json::truth(true)));
                        members.push(("filesort_key", Json::texts(keys)));
                    }
                    let function = match window.func {
                        WindowFunc::Aggregate(func) => snake(&format!("{func:?}")).replace("count_star", "count"),
                        other => snake(&format!("{other:?}")),
                    };
                    members.push(("functions", Json::texts([function])));
                    shown.push(Json::Object(members));
                }
                let mut members = vec![("windows", Json::List(shown))];
                members.extend(self.json_operations(input, &below, blocks, selected)?);
                Ok(vec![("windowing", Json::Object(members))])
            }
            RelKind::Values { rows } if rows.len() == 1 && rows[0].is_empty() => Ok(vec![("message", Json::text("No tables used"))]),
            RelKind::Filter { input, predicate } if !is_table(input) && !matches!(input.kind, RelKind::Join { .. }) => {
                // HAVING and the like.
                self.json_subqueries(predicate, blocks, selected)?;
                self.json_operations(input, &with(needed, [predicate]), blocks, selected)
            }
            _ => {
                let mut tables = Vec::new();
                self.json_tables(rel, needed, None, blocks, &mut tables)?;
                Ok(match tables.len() {
                    1 => vec![("table", tables.pop().expect("there is one"))],
                    _ => vec![("nested_loop", Json::List(tables.into_iter().map(|table| Json::Object(vec![("table", table)])).collect()))],
                })
            }
        }
    }

    /// The tables of a join, left to right. `condition`: what filters their rows together.
    fn json_tables(&mut self, rel: &Rel, needed: &[usize], condition: Option<&Expr>, blocks: &mut Blocks, tables: &mut Vec<Json>) -> Result<(), MySqlError> {
        match &rel.kind {
            RelKind::Join { kind, left, right, on } => {
                let needed = with(needed, on.iter().chain(condition));
                let width = left.fields.len();
                let (of_left, of_right): (Vec<usize>, Vec<usize>) = needed.iter().partition(|i| **i < width);
                let outer = *kind == JoinKind::Left;
                let (mut first, mut second, mut together) = (Vec::new(), Vec::new(), Vec::new());
                let of_join = on.iter().flat_map(|e| e.conjuncts()).map(|e| (e, outer, false));
                for (conjunct, only_right, only_left) in of_join.chain(condition.iter().flat_map(|e| e.conjuncts()).map(|e| (e, false, outer))) {
                    let columns = conjunct.columns();
                    if conjunct.has_subquery() || columns.is_empty() {
                        together.push(conjunct.clone());
                    } else if columns.iter().all(|c| *c < width) && !only_right {
                        first.push(conjunct.clone());
                    } else if columns.iter().all(|c| *c >= width) && !only_left {
                        let mut moved = conjunct.clone();
                        moved.map_columns(&mut |c| c - width);
                        second.push(moved);
                    } else {
                        together.push(conjunct.clone());
                    }
                }
                self.json_tables(left, &of_left, Expr::and(first).as_ref(), blocks, tables)?;
                let of_right: Vec<usize> = of_right.iter().map(|i| i - width).collect();
                self.json_tables(right, &of_right, Expr::and(second).as_ref(), blocks, tables)?;
                if let Some(together) = Expr::and(together) {
                    // What ties tables is known once the last of them is read.
                    let mut subqueries = Vec::new();
                    self.json_subqueries(&together, blocks, &mut subqueries)?;
                    if let Some(Json::Object(last)) = tables.last_mut() {
                        attach(last, plan::describe_expr(&together, &qualified(&rel.fields)), subqueries);
                    }
                }
            }
            RelKind::Filter { input, predicate } => {
                let both = Expr::and([predicate.clone()].into_iter().chain(condition.cloned()));
                self.json_tables(input, &with(needed, both.iter()), both.as_ref(), blocks, tables)?;
            }
            // The exchange of a right join, or the columns of a view.
            RelKind::Project { input, exprs }
                if matches!(input.kind, RelKind::Join { .. } | RelKind::Scan { .. } | RelKind::Filter { .. }) && condition.is_none_or(|c| c.clone().over(exprs).is_some()) =>
            {
                let used = columns(needed.iter().filter_map(|i| exprs.get(*i)).collect());
                let condition = condition.and_then(|c| c.clone().over(exprs));
                self.json_tables(input, &with(&used, condition.iter()), condition.as_ref(), blocks, tables)?;
            }
            _ => {
                let table = self.json_table(rel, needed, condition, blocks)?;
                tables.push(Json::Object(table));
            }
        }
        Ok(())
    }

    fn json_table(&mut self, rel: &Rel, needed: &[usize], condition: Option<&Expr>, blocks: &mut Blocks) -> Result<Object, MySqlError> {
        let mut members = match &rel.kind {
            RelKind::Scan { table, alias, columns, indexes, .. } => {
                let access = self.access_to(table, columns, indexes, condition)?;
                let mut members = vec![("table_name", Json::text(&**alias))];
                members.extend(access_members(&access));
                members.push(("rows_produced_per_join", Json::number((access.rows as f64 * access.filtered).round() as u64)));
                members.push(("filtered", Json::text(format!("{:.2}", access.filtered * 100.0))));
                let used = needed.iter().filter_map(|i| rel.fields.get(*i)).map(|f| f.name.to_string());
                members.push(("used_columns", Json::texts(used)));
                members
            }
            RelKind::Virtual { alias, .. } => vec![("table_name", Json::text(&**alias)), ("access_type", Json::text("ALL"))],
            RelKind::Values { rows } => vec![("table_name", Json::text("<values>")), ("access_type", Json::text("ALL")), ("rows_examined_per_scan", Json::number(rows.len()))],
            RelKind::CteScan { name, .. } => vec![("table_name", Json::text(&**name)), ("access_type", Json::text("ALL")), ("recursive", Json::truth(true))],
            _ => {
                let name = rel.fields.first().map_or("<derived>", |f| &f.table);
                let mut members = vec![("table_name", Json::text(name)), ("access_type", Json::text("ALL"))];
                let used = needed.iter().filter_map(|i| rel.fields.get(*i)).map(|f| f.name.to_string());
                members.push(("used_columns", Json::texts(used)));
                let mut inner = vec![("using_temporary_table", Json::truth(true)), ("dependent", Json::truth(rel.is_correlated())), ("cacheable", Json::truth(true))];
                let block = match &rel.kind {
                    RelKind::RecursiveCte { anchor, step, .. } => {
                        let mut parts = Vec::new();
                        for part in [anchor, step] {
                            parts.push(self.json_block(part, blocks)?);
                        }
                        vec![("recursive_union", Json::List(parts))]
                    }
                    _ => self.json_members(rel, blocks)?,
                };
                inner.push(("query_block", Json::Object(block)));
                members.push(("materialized_from_subquery", Json::Object(inner)));
                members
            }
        };
        if let Some(condition) = condition {
            let mut subqueries = Vec::new();
            self.json_subqueries(condition, blocks, &mut subqueries)?;
            attach(&mut members, plan::describe_expr(condition, &qualified(&rel.fields)), subqueries);
        }
        Ok(members)
    }

    /// The subqueries of an expression as blocks.
    fn json_subqueries(&mut self, expr: &Expr, blocks: &mut Blocks, found: &mut Vec<Json>) -> Result<(), MySqlError> {
        let mut subqueries = Vec::new();
        expr.walk(&mut |e| {
            if let ExprKind::Subquery(sub) = &e.kind {
                subqueries.push(sub);
            }
        });
        for sub in subqueries {
            let mut members = vec![("dependent", Json::truth(sub.correlated)), ("cacheable", Json::truth(!sub.correlated))];
            members.push(("query_block", Json::Object(self.json_members(&sub.plan, blocks)?)));
            found.push(Json::Object(members));
        }
        Ok(())
    }

    /// A statement that changes rows of one table: `verb` is insert, update, delete or replace.
    pub(super) fn json_write(&mut self, verb: &'static str, table: &str, access: Option<(&Access, Option<String>)>, blocks: &mut Blocks) -> Object {
        blocks.0 += 1;
        let mut members = vec![(verb, Json::truth(true)), ("table_name", Json::text(table))];
        match access {
            None => members.push(("access_type", Json::text("ALL"))),
            Some((access, condition)) => {
                members.extend(access_members(access));
                members.push(("filtered", Json::text(format!("{:.2}", access.filtered * 100.0))));
                members.extend(condition.map(|condition| ("attached_condition", Json::text(condition))));
            }
        }
        vec![("select_id", Json::number(blocks.0)), ("table", Json::Object(members))]
    }

    /// The rows of INSERT … SELECT.
    pub(super) fn json_insert_from(&mut self, rel: &Rel, blocks: &mut Blocks) -> Result<Object, MySqlError> {
        let before = blocks.0;
        let mut block = self.json_members(rel, blocks)?;
        if blocks.0 > before {
            block.retain(|(name, _)| *name != "select_id");
        }
        Ok(vec![("insert_from", Json::Object(block))])
    }
}

/// A condition and its subqueries at a table, which may have some already.
fn attach(table: &mut Object, condition: String, subqueries: Vec<Json>) {
    match table.iter_mut().find(|(name, _)| *name == "attached_condition") {
        Some((_, Json::Text(before))) => *before = format!("({before} and {condition})"),
        _ => table.push(("attached_condition", Json::Text(condition))),
    }
    if !subqueries.is_empty() {
        match table.iter_mut().find(|(name, _)| *name == "attached_subqueries") {
            Some((_, Json::List(before))) => before.extend(subqueries),
            _ => table.push(("attached_subqueries", Json::List(subqueries))),
        }
    }
}

fn access_members(access: &Access) -> Object {
    let mut members = vec![("access_type", Json::text(access.kind))];
    if !access.possible.is_empty() {
        members.push(("possible_keys", Json::texts(access.possible.iter().cloned())));
    }
    if let Some(key) = &access.key {
        members.push(("key", Json::text(key.name.clone())));
        members.push(("used_key_parts", Json::texts(key.parts.iter().cloned())));
        members.push(("key_length", Json::text(key.length.to_string())));
        if access.is_equality() {
            members.push(("ref", Json::texts(key.parts.iter().map(|_| "const".to_owned()))));
        }
    }
    members.push(("rows_examined_per_scan", Json::number(access.rows)));
    members
}

/// Below what only orders and cuts.
fn peeled(rel: &Rel) -> &Rel {
    match &rel.kind {
        RelKind::Limit { input, .. } | RelKind::Sort { input, .. } => peeled(input),
        _ => rel,
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

fn is_table(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::CteScan { .. } | RelKind::RecursiveCte { .. } | RelKind::SetOperation { .. } => true,
        // A derived table: its columns are named by it.
        RelKind::Project { .. } => true,
        _ => false,
    }
}

fn columns(exprs: Vec<&Expr>) -> Vec<usize> {
    with(&[], exprs)
}

/// `needed` and what the expressions read; ascending, each once.
fn with<'e>(needed: &[usize], exprs: impl IntoIterator<Item = &'e Expr>) -> Vec<usize> {
    let mut all = needed.to_vec();
    all.extend(exprs.into_iter().flat_map(Expr::columns));
    all.sort_unstable();
    all.dedup();
    all
}

/// Fields with their names as MySQL quotes them.
pub(super) fn qualified(fields: &[Field]) -> Vec<Field> {
    let quote = crate::show::quote;
    let named = |f: &Field| {
        let own = !f.schema.is_empty() && f.table == f.org_table;
        let table = if f.table.is_empty() { String::new() } else if own { format!("{}.{}", quote(&f.schema), quote(&f.table)) } else { quote(&f.table) };
        Field { name: quote(&f.name).into(), table: table.into(), ..f.clone() }
    };
    fields.iter().map(named).collect()
}

fn snake(name: &str) -> String {
    let mut text = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !text.is_empty() {
            text.push('_');
        }
        text.extend(c.to_lowercase());
    }
    text
}
