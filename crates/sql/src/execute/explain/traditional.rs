//! EXPLAIN's table: a line for each table of each query block.

use highkey_types::{Decimal, Value};

use super::block::{Block, Operation, Query, ShownTable, Union};

/// The columns, as `Answer::new` reads them.
pub(super) const COLUMNS: &str =
    "id u?;select_type s19;table s64?;partitions s255?;type s10?;possible_keys S?;key s64?;key_len s64?;ref s255?;rows u?;filtered p?;Extra s255?";

/// A line; what is empty or not there is NULL.
#[derive(Default)]
struct Line<'a> {
    id: Option<u64>,
    kind: &'a str,
    table: &'a str,
    partitions: String,
    access: &'a str,
    possible: String,
    /// Name, and bytes that are used of it.
    key: Option<(&'a str, u64)>,
    refs: String,
    rows: Option<u64>,
    /// How many of 10,000 rows are kept.
    filtered: Option<i128>,
    extra: String,
}

impl Line<'_> {
    fn values(&self) -> Vec<Value> {
        let text = |t: &str| if t.is_empty() { Value::Null } else { Value::text(t) };
        vec![
            self.id.map_or(Value::Null, Value::UInt),
            text(self.kind),
            text(self.table),
            text(&self.partitions),
            text(self.access),
            text(&self.possible),
            self.key.map_or(Value::Null, |(name, _)| text(name)),
            self.key.map_or(Value::Null, |(_, length)| Value::text(length.to_string())),
            text(&self.refs),
            self.rows.map_or(Value::Null, Value::UInt),
            self.filtered.map_or(Value::Null, |kept| Value::Decimal(Decimal::from_i128(kept, 2))),
            text(&self.extra),
        ]
    }
}

/// The line of the table that INSERT or REPLACE writes.
pub(super) fn written(kind: &str, table: &str) -> Vec<Value> {
    Line { id: Some(1), kind, table, access: "ALL", ..Line::default() }.values()
}

/// The lines of a query. Blocks inside a block come after it, the last first, as MySQL has them.
pub(super) fn query(query: &Query, lines: &mut Vec<Vec<Value>>) {
    match query {
        Query::Select(select) => block(select, lines),
        Query::Union(union) => {
            union.members.iter().for_each(|member| self::query(member, lines));
            if union.has_result() {
                lines.push(result(union));
            }
        }
    }
}

fn result(union: &Union) -> Vec<Value> {
    let kind = format!("{} RESULT", union.operator.to_uppercase());
    let extra = [(union.temporary, "Using temporary"), (union.filesort, "Using filesort")];
    Line { kind: &kind, table: &union.name(), access: "ALL", extra: joined(extra.map(|(shown, text)| shown.then(|| text.to_owned()))), ..Line::default() }.values()
}

pub(super) fn block(block: &Block, lines: &mut Vec<Vec<Value>>) {
    if let Some(message) = block.message {
        lines.push(Line { id: Some(block.id), kind: block.kind, extra: message.to_owned(), ..Line::default() }.values());
    }
    for (at, shown) in block.tables.iter().enumerate() {
        lines.push(table(block, at, shown));
    }
    let derived = block.tables.iter().filter_map(|table| table.derived.as_ref()?.query());
    let mut inner: Vec<&Query> = derived.chain(block.subqueries.iter().map(|inner| &inner.query)).collect();
    inner.sort_by_key(|query| std::cmp::Reverse(query.id()));
    inner.into_iter().for_each(|inner| query(inner, lines));
}

fn table(block: &Block, at: usize, shown: &ShownTable) -> Vec<Value> {
    let access = &shown.access;
    // The whole block's are told of its first table.
    let operations: &[Operation] = if at == 0 { &block.operations } else { &[] };
    let temporary = operations.iter().any(|operation| matches!(operation, Operation::Distinct | Operation::Group { temporary: true }));
    let filesort = operations.iter().any(|operation| match operation {
        Operation::Sort { .. } => true,
        Operation::Window(windows) => windows.iter().any(|window| !window.keys.is_empty()),
        Operation::Distinct | Operation::Group { .. } => false,
    });
    let extra = joined([
        shown.workers.map(|workers| format!("Parallel execute ({workers} workers)")),
        shown.recursive.then(|| "Recursive".to_owned()),
        shown.function.map(|function| format!("Table function: {function}; Using temporary")),
        access.residual.then(|| "Using where".to_owned()),
        access.backward.then(|| "Backward index scan".to_owned()),
        access.covering.then(|| "Using index".to_owned()),
        temporary.then(|| "Using temporary".to_owned()),
        filesort.then(|| "Using filesort".to_owned()),
        shown.buffer.map(|how| format!("Using join buffer ({how})")),
    ]);
    let derived = shown.derived.as_ref().map(|derived| format!("<derived{}>", derived.id()));
    Line {
        id: Some(block.id),
        kind: shown.change.unwrap_or(block.kind),
        table: derived.as_deref().unwrap_or(&shown.name),
        partitions: access.partitions.join(","),
        access: access.kind,
        possible: access.possible.join(","),
        key: access.key.as_ref().map(|key| (key.name.as_str(), key.length)),
        refs: access.key.as_ref().map_or(String::new(), |key| key.refs.join(",")),
        rows: access.rows,
        filtered: access.rows.map(|_| (access.filtered * 10_000.0).round() as i128),
        extra,
    }
    .values()
}

fn joined<const N: usize>(parts: [Option<String>; N]) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}
