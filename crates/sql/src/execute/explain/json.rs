//! EXPLAIN FORMAT=JSON: a statement in the shape that MySQL gives it. Costs are of the rows that are read, as FORMAT=TREE has them.

use std::time::Duration;

use super::block::{Block, Derived, Inner, Operation, Place, Query, ShownTable, ShownWindow};
use crate::df::ROW_COST;
use crate::measure::Line;
use crate::stack;

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

fn cost(cost: f64) -> Json {
    Json::text(format!("{cost:.2}"))
}

/// `{"query_block": …}` of a query.
pub(super) fn query_block(query: &Query) -> Json {
    wrapped(query_members(query))
}

/// `{"query_block": …}` of a block that changes rows.
pub(super) fn change_block(block: &Block) -> Json {
    wrapped(block_members(block))
}

/// `{"query_block": …}` of INSERT and REPLACE.
pub(super) fn insert_block(verb: &'static str, table: &str, source: Option<&Query>, values: &[Inner]) -> Json {
    let target = vec![(verb, Json::truth(true)), ("table_name", Json::text(table)), ("access_type", Json::text("ALL"))];
    let mut members = vec![("select_id", Json::number(1)), ("table", Json::Object(target))];
    if let Some(source) = source {
        let mut from = query_members(source);
        from.retain(|(name, _)| *name != "select_id");
        if let Some(at) = from.iter().position(|(name, _)| *name == "cost_info") {
            members.insert(1, from.remove(at));
        }
        members.push(("insert_from", Json::Object(from)));
    }
    members.extend(subqueries(values, Place::Values).map(|list| ("insert_values_subqueries", list)));
    wrapped(members)
}

/// EXPLAIN ANALYZE: the operators and what they have done, in the names of the second version of MySQL's format. Milliseconds and rows are those of one loop, as
/// in FORMAT=TREE. `times`: where the statement's time went.
pub(super) fn analyzed(lines: &[Line], times: &[String]) -> Json {
    let mut operators = operators(lines).into_iter();
    let mut root = operators.next().unwrap_or_default();
    let beside: Vec<Json> = operators.map(Json::Object).collect();
    if !beside.is_empty() {
        root.push(("executed_beside", Json::List(beside)));
    }
    root.push(("time", Json::texts(times.iter().map(|line| line.trim().to_owned()))));
    Json::Object(root)
}

/// The outermost operators of some lines, with those below them.
fn operators(lines: &[Line]) -> Vec<Object> {
    stack::ensure(|| {
        let mut found = Vec::new();
        let mut rest = lines;
        while let Some((first, behind)) = rest.split_first() {
            let end = behind.iter().position(|line| line.depth <= first.depth).unwrap_or(behind.len());
            let (below, next) = behind.split_at(end);
            found.push(operator(first, below));
            rest = next;
        }
        found
    })
}

fn operator(line: &Line, below: &[Line]) -> Object {
    let is_number = |text: &str| text.parse::<f64>().is_ok_and(f64::is_finite);
    let estimate = line.text.rsplit_once("  (cost=").and_then(|(text, estimate)| {
        let (cost, rows) = estimate.strip_suffix(')')?.split_once(" rows=")?;
        // It may be a constant of the statement's that looks so.
        (is_number(cost) && is_number(rows)).then_some((text, cost, rows))
    });
    let mut members = vec![("operation", Json::text(estimate.map_or(&line.text[..], |(text, ..)| text)))];
    if let Some((_, cost, rows)) = estimate {
        members.push(("estimated_total_cost", Json::Plain(cost.to_owned())));
        members.push(("estimated_rows", Json::Plain(rows.to_owned())));
    }
    if let Some(actual) = line.actual() {
        let loops = actual.loops.max(1) as f64;
        let ms = |time: Duration| Json::Plain(format!("{:.3}", time.as_secs_f64() * 1e3 / loops));
        members.push(("actual_rows", Json::number(actual.rows as f64 / loops)));
        members.push(("actual_loops", Json::number(actual.loops)));
        members.push(("actual_first_row_ms", ms(actual.first)));
        members.push(("actual_last_row_ms", ms(actual.all)));
    }
    let inputs: Vec<Json> = operators(below).into_iter().map(Json::Object).collect();
    if !inputs.is_empty() {
        members.push(("inputs", Json::List(inputs)));
    }
    members
}

fn wrapped(members: Object) -> Json {
    Json::Object(vec![("query_block", Json::Object(members))])
}

/// The members of a query block.
fn query_members(query: &Query) -> Object {
    match query {
        Query::Select(block) => block_members(block),
        Query::Union(union) => {
            let members = union.members.iter().map(|member| inner(false, member));
            let mut result = vec![("using_temporary_table", Json::truth(union.has_result()))];
            if union.has_result() {
                result.push(("table_name", Json::text(union.name())));
                result.push(("access_type", Json::text("ALL")));
            }
            result.push(("query_specifications", Json::List(members.collect())));
            vec![("union_result", Json::Object(result))]
        }
    }
}

fn inner(dependent: bool, query: &Query) -> Json {
    Json::Object(vec![("dependent", Json::truth(dependent)), ("cacheable", Json::truth(!dependent)), ("query_block", Json::Object(query_members(query)))])
}

/// The subqueries at a place, if there are any.
fn subqueries(all: &[Inner], place: Place) -> Option<Json> {
    let here: Vec<Json> = all.iter().filter(|subquery| subquery.place == place).map(|subquery| inner(subquery.dependent, &subquery.query)).collect();
    (!here.is_empty()).then_some(Json::List(here))
}

fn block_members(block: &Block) -> Object {
    let mut members = vec![("select_id", Json::number(block.id))];
    if let Some(message) = block.message {
        members.push(("message", Json::text(message)));
    } else {
        let (mut inside, total) = tables(block);
        // MySQL tells the costs of queries alone.
        if !is_change(block) {
            members.push(("cost_info", Json::Object(vec![("query_cost", cost(total))])));
        }
        for operation in block.operations.iter().rev() {
            let (name, mut own) = match operation {
                Operation::Sort { .. } => ("ordering_operation", vec![("using_filesort", Json::truth(true))]),
                Operation::Distinct => ("duplicates_removal", vec![("using_temporary_table", Json::truth(true)), ("using_filesort", Json::truth(false))]),
                Operation::Group { temporary: true } => ("grouping_operation", vec![("using_temporary_table", Json::truth(true)), ("using_filesort", Json::truth(false))]),
                Operation::Group { temporary: false } => ("grouping_operation", vec![("using_filesort", Json::truth(false))]),
                Operation::Window(windows) => ("windowing", vec![("windows", Json::List(windows.iter().map(window).collect()))]),
            };
            own.append(&mut inside);
            inside = vec![(name, Json::Object(own))];
        }
        members.append(&mut inside);
    }
    let places = [
        (Place::SelectList, "select_list_subqueries"),
        (Place::Values, "update_value_subqueries"),
        (Place::GroupBy, "group_by_subqueries"),
        (Place::Having, "having_subqueries"),
        (Place::OrderBy, "order_by_subqueries"),
    ];
    members.extend(places.into_iter().filter_map(|(place, name)| subqueries(&block.subqueries, place).map(|list| (name, list))));
    members
}

fn is_change(block: &Block) -> bool {
    matches!(block.kind, "UPDATE" | "DELETE")
}

fn window(window: &ShownWindow) -> Json {
    let mut members = vec![("name", Json::text("<unnamed window>"))];
    if !window.keys.is_empty() {
        members.push(("using_filesort", Json::truth(true)));
        members.push(("filesort_key", Json::texts(window.keys.iter().cloned())));
    }
    members.push(("functions", Json::texts([window.function.clone()])));
    Json::Object(members)
}

/// The tables of a block, and what reading them costs.
fn tables(block: &Block) -> (Object, f64) {
    let (mut produced, mut total) = (1.0, 0.0);
    let mut shown = Vec::with_capacity(block.tables.len());
    for (at, one) in block.tables.iter().enumerate() {
        let mut members = table(block, one, &mut produced, &mut total);
        if at + 1 == block.tables.len() {
            // What ties tables is known once the last of them is read.
            members.extend(subqueries(&block.subqueries, Place::Where).map(|list| ("attached_subqueries", list)));
        }
        if let Some(derived) = &one.derived {
            let from: Object = match derived {
                Derived::Query(query) => {
                    let dependent = block.kind.starts_with("DEPENDENT");
                    let made = vec![("using_temporary_table", Json::truth(true)), ("dependent", Json::truth(dependent)), ("cacheable", Json::truth(!dependent))];
                    made.into_iter().chain([("query_block", Json::Object(query_members(query)))]).collect()
                }
                Derived::Shared { id, .. } => vec![("sharing_temporary_table_with", Json::Object(vec![("select_id", Json::number(id))]))],
            };
            members.push(("materialized_from_subquery", Json::Object(from)));
        }
        shown.push(("table", Json::Object(members)));
    }
    if shown.len() > 1 {
        shown = vec![("nested_loop", Json::List(shown.into_iter().map(|table| Json::Object(vec![table])).collect()))];
    }
    (shown, total)
}

/// `produced`: rows of the tables before, then with this one. `total`: what reading them costs.
fn table(block: &Block, shown: &ShownTable, produced: &mut f64, total: &mut f64) -> Object {
    let access = &shown.access;
    let mut members = Vec::new();
    match shown.change {
        Some("UPDATE") => members.push(("update", Json::truth(true))),
        Some(_) => members.push(("delete", Json::truth(true))),
        None => {}
    }
    members.push(("table_name", Json::text(&*shown.name)));
    members.push(("access_type", Json::text(access.kind)));
    if !access.possible.is_empty() {
        members.push(("possible_keys", Json::texts(access.possible.iter().cloned())));
    }
    if let Some(key) = &access.key {
        members.push(("key", Json::text(&*key.name)));
        members.push(("used_key_parts", Json::texts(key.parts.iter().cloned())));
        members.push(("key_length", Json::text(key.length.to_string())));
        if !key.refs.is_empty() {
            members.push(("ref", Json::texts(key.refs.iter().cloned())));
        }
    }
    if access.backward {
        members.push(("backward_index_scan", Json::truth(true)));
    }
    if shown.recursive {
        members.push(("recursive", Json::truth(true)));
    }
    if let Some(rows) = access.rows {
        // Rows that are kept are read once.
        let read = rows as f64 * if shown.buffer.is_some() { 1.0 } else { *produced };
        *produced *= rows as f64 * access.filtered;
        let spent = ROW_COST * read;
        *total += spent;
        members.push(("rows_examined_per_scan", Json::number(rows)));
        if !is_change(block) {
            members.push(("rows_produced_per_join", Json::number(produced.round() as u64)));
        }
        members.push(("filtered", Json::text(format!("{:.2}", access.filtered * 100.0))));
        if access.covering {
            members.push(("using_index", Json::truth(true)));
        }
        if let Some(function) = shown.function {
            members.push(("table_function", Json::text(function)));
            members.push(("using_temporary_table", Json::truth(true)));
        }
        if let Some(how) = shown.buffer {
            members.push(("using_join_buffer", Json::text(how)));
        }
        if let Some(workers) = shown.workers {
            members.push(("parallel_workers", Json::number(workers)));
        }
        if !is_change(block) {
            let kept = (ROW_COST * *produced).min(spent);
            members.push(("cost_info", Json::Object(vec![("read_cost", cost(spent - kept)), ("eval_cost", cost(kept)), ("prefix_cost", cost(*total))])));
        }
    }
    if !is_change(block) && !shown.used.is_empty() {
        members.push(("used_columns", Json::texts(shown.used.iter().cloned())));
    }
    members.extend(shown.condition.clone().map(|condition| ("attached_condition", Json::Text(condition))));
    members
}
