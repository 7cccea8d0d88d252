//! Text of expressions and plans: EXPLAIN, and the golden tests of the binder.

use std::fmt::Write;

use highkey_table::TableDef;
use highkey_types::Value;

use super::{Aggregate, AggregateFunc, Expr, ExprKind, Field, IndexAccess, JoinKind, Rel, RelKind, SetOperator, SortKey, SubqueryKind, WindowExpr, WindowFunc};
use crate::stack;

/// An expression in SQL-like text; columns are named by `fields`.
pub fn describe(expr: &Expr, fields: &[Field]) -> String {
    let list = |items: &[Expr], joiner: &str| items.iter().map(|e| describe(e, fields)).collect::<Vec<_>>().join(joiner);
    match &expr.kind {
        ExprKind::Column(index) => fields.get(*index).map_or_else(|| format!("#{index}"), column_name),
        ExprKind::Outer { depth, index } => format!("outer({depth}, {index})"),
        ExprKind::Literal(value) => literal(value),
        ExprKind::Param(_) => "?".to_string(),
        ExprKind::UserVar(name) => format!("@{name}"),
        ExprKind::AssignUserVar { name, value } => format!("(@{name} := {})", describe(value, fields)),
        ExprKind::SystemVar { name, .. } => format!("@@{name}"),
        ExprKind::Call { func, args } => {
            let symbol = func.name().chars().all(|c| !c.is_alphanumeric()) || matches!(func.name(), "DIV" | "XOR");
            match (symbol, args.as_slice()) {
                (true, [left, right]) => format!("({} {} {})", describe(left, fields), func.name(), describe(right, fields)),
                (true, [operand]) => format!("{}{}", func.name(), describe(operand, fields)),
                _ => format!("{}({})", func.name().to_lowercase(), list(args, ",")),
            }
        }
        ExprKind::Stored { function, args, .. } => format!("{}({})", function.name(), list(args, ",")),
        ExprKind::Match { search, columns } => {
            format!("(match {} against ({}{}))", list(columns, ","), describe(search.query(), fields), search.mode().suffix())
        }
        ExprKind::Compare { op, left, right, .. } => format!("({} {} {})", describe(left, fields), op.symbol(), describe(right, fields)),
        ExprKind::And(parts) => format!("({})", list(parts, " and ")),
        ExprKind::Or(parts) => format!("({})", list(parts, " or ")),
        ExprKind::Not(inner) => format!("(not {})", describe(inner, fields)),
        ExprKind::IsNull { expr, negated } => format!("({} is {}null)", describe(expr, fields), not(*negated)),
        ExprKind::IsTruth { expr, value, negated } => format!("({} is {}{value})", describe(expr, fields), not(*negated)),
        ExprKind::In { expr, list: items, negated, .. } => format!("({} {}in ({}))", describe(expr, fields), not(*negated), list(items, ",")),
        ExprKind::Like { expr, pattern, negated, .. } => format!("({} {}like {})", describe(expr, fields), not(*negated), describe(pattern, fields)),
        ExprKind::Case { branches, otherwise } => {
            let mut text = String::from("case");
            for (when, then) in branches {
                // Writing to a String cannot fail.
                let _ = write!(text, " when {} then {}", describe(when, fields), describe(then, fields));
            }
            if let Some(otherwise) = otherwise {
                let _ = write!(text, " else {}", describe(otherwise, fields));
            }
            text + " end"
        }
        ExprKind::Once { id, value, body } => describe(&body.with_kept(*id, value), fields),
        ExprKind::Kept(id) => format!("kept({id})"),
        ExprKind::Cast(inner) => format!("cast({} as {})", describe(inner, fields), expr.ty.ty),
        ExprKind::Subquery(sub) => match &sub.kind {
            SubqueryKind::Scalar | SubqueryKind::Rows => "(subquery)".to_string(),
            SubqueryKind::Exists { negated } => format!("{}exists(subquery)", not(*negated)),
            SubqueryKind::In { exprs, negated, .. } => {
                let row = if let [one] = &exprs[..] { describe(one, fields) } else { format!("({})", list(exprs, ",")) };
                format!("({row} {}in (subquery))", not(*negated))
            }
            SubqueryKind::Quantified { op, all, expr, .. } => {
                format!("({} {} {}(subquery))", describe(expr, fields), op.symbol(), if *all { "all" } else { "any" })
            }
        },
        ExprKind::AggregateRef(index) => format!("aggregate({index})"),
        ExprKind::WindowRef(index) => format!("window({index})"),
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "not " } else { "" }
}

fn column_name(field: &Field) -> String {
    if field.table.is_empty() { field.name.to_string() } else { format!("{}.{}", field.table, field.name) }
}

fn literal(value: &Value) -> String {
    match value {
        Value::Null => "NULL".to_string(),
        Value::Text(text) => format!("'{}'", text.replace('\'', "''")),
        Value::Bytes(bytes) => {
            let digits: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
            format!("0x{digits}")
        }
        Value::Date(_) | Value::DateTime(_) | Value::Time(_) => format!("'{}'", highkey_types::display_text(value).unwrap_or_default()),
        other => highkey_types::display_text(other).unwrap_or_default(),
    }
}

fn aggregate_name(func: AggregateFunc) -> String {
    match func {
        AggregateFunc::CountStar => "count(*)".to_string(),
        other => snake(&format!("{other:?}")),
    }
}

/// The name of a window function.
pub fn window_name(func: WindowFunc) -> String {
    match func {
        WindowFunc::Aggregate(AggregateFunc::CountStar) => "count".to_string(),
        WindowFunc::Aggregate(func) => snake(&format!("{func:?}")),
        other => snake(&format!("{other:?}")),
    }
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

/// What the parts of an index are equal to, as FORMAT=TREE writes it: ` (a=t.b, b=5)`. Empty if the index is read by several ranges.
pub fn describe_lookup(found: &IndexAccess, table: &TableDef, fields: &[Field]) -> String {
    let [range] = &found.ranges[..] else { return String::new() };
    let parts = table.indexes[found.index].parts.iter().zip(&range.prefix);
    let equal: Vec<String> = parts.map(|(part, value)| format!("{}={}", table.columns[part.column].name, describe(value, fields))).collect();
    if equal.is_empty() { String::new() } else { format!(" ({})", equal.join(", ")) }
}

/// The fields of a relation; one without a name is called what it is made of.
fn named(rel: &Rel) -> Vec<Field> {
    if rel.fields.iter().all(|field| !field.name.is_empty()) {
        return rel.fields.clone();
    }
    let texts: Vec<String> = stack::ensure(|| match &rel.kind {
        RelKind::Project { input, exprs } => {
            let below = named(input);
            exprs.iter().map(|e| describe(e, &below)).collect()
        }
        RelKind::Aggregate { input, groups, aggregates, .. } => {
            let below = named(input);
            groups.iter().map(|e| describe(e, &below)).chain(aggregates.iter().map(|a| aggregate_text(a, &below))).collect()
        }
        RelKind::Window { input, windows } => {
            let below = named(input);
            below.iter().map(column_name).chain(windows.iter().map(|w| window_text(w, &below))).collect()
        }
        RelKind::Filter { input, .. } | RelKind::Sort { input, .. } | RelKind::Limit { input, .. } | RelKind::Distinct { input } => {
            named(input).iter().map(column_name).collect()
        }
        _ => Vec::new(),
    });
    let mut fields = rel.fields.clone();
    for (field, text) in fields.iter_mut().zip(texts) {
        if field.name.is_empty() {
            field.name = text.into();
        }
    }
    fields
}

fn aggregate_text(aggregate: &Aggregate, fields: &[Field]) -> String {
    let name = aggregate_name(aggregate.func);
    if aggregate.func == AggregateFunc::CountStar {
        return name;
    }
    let args: Vec<String> = aggregate.args.iter().map(|e| describe(e, fields)).collect();
    format!("{name}({}{})", if aggregate.distinct { "distinct " } else { "" }, args.join(", "))
}

fn window_text(window: &WindowExpr, fields: &[Field]) -> String {
    let list = |exprs: &[Expr]| exprs.iter().map(|e| describe(e, fields)).collect::<Vec<_>>().join(", ");
    let mut over = Vec::new();
    if !window.partition_by.is_empty() {
        over.push(format!("PARTITION BY {}", list(&window.partition_by)));
    }
    if !window.order_by.is_empty() {
        over.push(format!("ORDER BY {}", describe_keys(&window.order_by, fields)));
    }
    format!("{}({}) OVER ({})", window_name(window.func), list(&window.args), over.join(" "))
}

/// What rows are ordered by.
pub fn describe_keys(keys: &[SortKey], fields: &[Field]) -> String {
    keys.iter().map(|k| format!("{}{}", describe(&k.expr, fields), if k.desc { " DESC" } else { "" })).collect::<Vec<_>>().join(", ")
}

/// A plan as an indented tree.
#[cfg(test)]
pub fn describe_rel(rel: &Rel) -> String {
    let mut text = String::new();
    tree(rel, 0, &mut text);
    text
}

#[cfg(test)]
fn tree(rel: &Rel, depth: usize, text: &mut String) {
    let _ = writeln!(text, "{:indent$}-> {}", "", describe_operator(rel), indent = depth * 4);
    for input in rel.inputs() {
        tree(input, depth + 1, text);
    }
}

/// An operator of a plan, without what it stands on.
pub fn describe_operator(rel: &Rel) -> String {
    let input_fields: Vec<Field> = rel.inputs().into_iter().flat_map(named).collect();
    let exprs = |items: &[Expr]| items.iter().map(|e| describe(e, &input_fields)).collect::<Vec<_>>().join(", ");
    match &rel.kind {
        RelKind::Scan { alias, lock, .. } => format!("Table scan on {alias}{}", if lock.is_some() { " (locking)" } else { "" }),
        RelKind::Virtual { table, .. } => format!("Table scan on {}.{}", table.schema, table.name),
        RelKind::Values { rows } if rows.len() == 1 && rows[0].is_empty() => "Rows fetched before execution".to_string(),
        RelKind::Values { rows } => format!("Values ({} rows)", rows.len()),
        RelKind::Kept { rows } => format!("Rows read before ({} rows)", rows.count()),
        RelKind::Filter { predicate, .. } => format!("Filter: {}", describe(predicate, &input_fields)),
        RelKind::Project { exprs: items, .. } => format!("Project: {}", exprs(items)),
        RelKind::Join { kind, on, .. } => {
            let name = match kind {
                JoinKind::Left => "Left join",
                JoinKind::Inner => "Inner join",
                JoinKind::Straight => "Straight join",
            };
            on.as_ref().map_or_else(|| name.to_string(), |on| format!("{name}: {}", describe(on, &rel.fields)))
        }
        RelKind::Apply { outer, .. } => format!("{} lateral join", if *outer { "Left" } else { "Inner" }),
        RelKind::JsonTable { document, .. } => format!("JSON_TABLE of {}", describe(document, &[])),
        RelKind::Aggregate { groups, aggregates, rollup, .. } => {
            let aggregates: Vec<String> = aggregates.iter().map(|a| aggregate_text(a, &input_fields)).collect();
            let by = if groups.is_empty() { String::new() } else { format!(" by {}", exprs(groups)) };
            format!("Aggregate: {}{by}{}", aggregates.join(", "), if *rollup { " with rollup" } else { "" })
        }
        RelKind::Window { windows, .. } => {
            let windows: Vec<String> = windows.iter().map(|w| window_text(w, &input_fields)).collect();
            format!("Window aggregate: {}", windows.join(", "))
        }
        RelKind::Sort { keys: by, .. } => format!("Sort: {}", describe_keys(by, &input_fields)),
        RelKind::Limit { offset, count, .. } => {
            let value = |e: &Option<Expr>| e.as_ref().map_or_else(|| "all".to_string(), |e| describe(e, &[]));
            match offset {
                None => format!("Limit: {} row(s)", value(count)),
                Some(_) => format!("Limit/Offset: {}/{} row(s)", value(count), value(offset)),
            }
        }
        RelKind::Distinct { .. } => "Distinct".to_string(),
        RelKind::SetOperation { op, all, .. } => {
            let name = match op {
                SetOperator::Union => "Union",
                SetOperator::Intersect => "Intersect",
                SetOperator::Except => "Except",
            };
            format!("{name}{}", if *all { " all" } else { "" })
        }
        RelKind::RecursiveCte { id, distinct, .. } => format!("Recursive cte {id}{}", if *distinct { " (distinct)" } else { "" }),
        RelKind::CteScan { name, .. } => format!("Scan new records on {name}"),
        RelKind::MaterializedCte { name, .. } => format!("Materialize CTE {name} if needed"),
    }
}
