//! Text of expressions and plans: EXPLAIN, and the golden tests of the binder.

use std::fmt::Write;

use highkey_types::Value;

use super::{AggregateFunc, Expr, ExprKind, Field, JoinKind, Rel, RelKind, SetOperator, SubqueryKind, WindowFunc};

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
        ExprKind::Cast(inner) => format!("cast({} as {})", describe(inner, fields), expr.ty.ty),
        ExprKind::Subquery(sub) => match &sub.kind {
            SubqueryKind::Scalar => "(subquery)".to_string(),
            SubqueryKind::Exists { negated } => format!("{}exists (subquery)", not(*negated)),
            SubqueryKind::In { exprs, negated, .. } => format!("({}) {}in (subquery)", list(exprs, ","), not(*negated)),
            SubqueryKind::Quantified { op, all, expr, .. } => {
                format!("{} {} {} (subquery)", describe(expr, fields), op.symbol(), if *all { "all" } else { "any" })
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
        other => {
            let mut name = String::new();
            for c in format!("{other:?}").chars() {
                if c.is_uppercase() && !name.is_empty() {
                    name.push('_');
                }
                name.extend(c.to_lowercase());
            }
            name
        }
    }
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
    let input_fields: Vec<Field> = rel.inputs().iter().flat_map(|input| input.fields.clone()).collect();
    let exprs = |items: &[Expr]| items.iter().map(|e| describe(e, &input_fields)).collect::<Vec<_>>().join(", ");
    let keys = |keys: &[super::SortKey]| {
        keys.iter().map(|k| format!("{}{}", describe(&k.expr, &input_fields), if k.desc { " DESC" } else { "" })).collect::<Vec<_>>().join(", ")
    };
    match &rel.kind {
        RelKind::Scan { alias, lock, .. } => format!("Table scan on {alias}{}", if lock.is_some() { " (locking)" } else { "" }),
        RelKind::Virtual { table, .. } => format!("Table scan on {}.{}", table.schema, table.name),
        RelKind::Values { rows } if rows.len() == 1 && rows[0].is_empty() => "Rows fetched before execution".to_string(),
        RelKind::Values { rows } => format!("Values ({} rows)", rows.len()),
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
        RelKind::Aggregate { groups, aggregates, rollup, .. } => {
            let aggregates: Vec<String> = aggregates
                .iter()
                .map(|a| {
                    let distinct = if a.distinct { "distinct " } else { "" };
                    if a.func == AggregateFunc::CountStar { aggregate_name(a.func) } else { format!("{}({distinct}{})", aggregate_name(a.func), exprs(&a.args)) }
                })
                .collect();
            let by = if groups.is_empty() { String::new() } else { format!(" by {}", exprs(groups)) };
            format!("Aggregate: {}{by}{}", aggregates.join(", "), if *rollup { " with rollup" } else { "" })
        }
        RelKind::Window { windows, .. } => {
            let windows: Vec<String> = windows
                .iter()
                .map(|w| {
                    let name = match w.func {
                        WindowFunc::Aggregate(func) => aggregate_name(func),
                        other => format!("{other:?}").to_lowercase(),
                    };
                    format!("{name}({}) over (partition by {} order by {})", exprs(&w.args), exprs(&w.partition_by), keys(&w.order_by))
                })
                .collect();
            format!("Window: {}", windows.join(", "))
        }
        RelKind::Sort { keys: by, .. } => format!("Sort: {}", keys(by)),
        RelKind::Limit { offset, count, .. } => {
            let value = |e: &Option<Expr>| e.as_ref().map_or_else(|| "all".to_string(), |e| describe(e, &[]));
            format!("Limit/Offset: {}/{}", value(count), offset.as_ref().map_or_else(|| "0".to_string(), |e| describe(e, &[])))
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
