//! Evaluation of an expression for one row.

use std::borrow::Cow;
use std::cmp::Ordering;

use highkey_types::{MySqlError, TypeKind, Value};

use super::{EvalContext, Turn};
use super::cast::cast_typed;
use super::compare::{compare_values, order};
use super::convert::{quiet_f64, to_bytes, truth};
use crate::functions::{self, FuncId, Types};
use crate::plan::{CompareBy, CompareOp, Expr, ExprKind, unresolved};
use crate::session::blocking;
use crate::stack;

type Result<T> = std::result::Result<T, MySqlError>;

/// The value of `expr` for `row`.
pub fn eval(expr: &Expr, row: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    Ok(functions::rounded(evaluate(expr, row, cx)?, &expr.ty))
}

/// The value with all the digits that a division gave: only a result for others is rounded to its type.
/// `1/3*3` is 1.0000 in MySQL because the product sees 0.333333333.
fn evaluate(expr: &Expr, row: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    match &expr.kind {
        // Nothing is below them.
        ExprKind::Column(_) | ExprKind::Literal(_) | ExprKind::Param(_) => evaluate_here(expr, row, cx),
        _ => stack::ensure(|| evaluate_here(expr, row, cx)),
    }
}

fn evaluate_here(expr: &Expr, row: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    match &expr.kind {
        ExprKind::Column(index) => row.get(*index).cloned().ok_or_else(|| unresolved("column beyond the row")),
        ExprKind::Literal(value) => Ok(value.clone()),
        ExprKind::Param(index) => cx.param(*index),
        ExprKind::Outer { depth, index } => cx.outer(*depth, *index),
        ExprKind::UserVar(name) => Ok(cx.user_var(name)),
        ExprKind::SystemVar { scope, name } => cx.system_var(*scope, name),
        ExprKind::AssignUserVar { name, value: assigned } => {
            let value = evaluate(assigned, row, cx)?;
            cx.set_user_var(name, value.clone(), assigned.ty.collation())?;
            Ok(value)
        }
        ExprKind::Call { func, args } => call_expr(expr, *func, args, row, cx),
        ExprKind::Stored { function, name, args } => {
            let mut values = Vec::with_capacity(args.len());
            for arg in args {
                values.push(eval(arg, row, cx)?);
            }
            function.call(name, values, cx)
        }
        ExprKind::Match { search, columns } => {
            let mut values = Vec::with_capacity(columns.len());
            for column in columns {
                values.push(eval(column, row, cx)?);
            }
            Ok(Value::Double(search.rank(&values)?))
        }
        ExprKind::Compare { op, by, left, right } => {
            let left = compared(left, *by, row, cx)?;
            let right = compared(right, *by, row, cx)?;
            Ok(boolean(compare_values(*op, *by, &left, &right, cx)))
        }
        ExprKind::And(parts) => {
            let mut unknown = false;
            for part in parts {
                match condition(part, row, cx)? {
                    Some(false) => return Ok(Value::Int(0)),
                    Some(true) => {}
                    None => unknown = true,
                }
            }
            Ok(boolean((!unknown).then_some(true)))
        }
        ExprKind::Or(parts) => {
            let mut unknown = false;
            for part in parts {
                match condition(part, row, cx)? {
                    Some(true) => return Ok(Value::Int(1)),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            Ok(boolean((!unknown).then_some(false)))
        }
        ExprKind::Not(inner) => Ok(boolean(condition(inner, row, cx)?.map(|t| !t))),
        ExprKind::IsNull { expr, negated } => {
            let null = operand(expr, row, cx)?.is_null();
            Ok(Value::bool(null != *negated))
        }
        ExprKind::IsTruth { expr, value, negated } => {
            let is = condition(expr, row, cx)? == Some(*value);
            Ok(Value::bool(is != *negated))
        }
        ExprKind::In { expr, list, by, negated, sorted } => {
            let value = compared(expr, *by, row, cx)?;
            if value.is_null() {
                return Ok(Value::Null);
            }
            if *sorted {
                return Ok(is_in_sorted(&value, list, *by, cx).map_or(Value::Null, |found| Value::bool(found != *negated)));
            }
            let mut unknown = false;
            for item in list {
                let item = compared(item, *by, row, cx)?;
                match compare_values(CompareOp::Eq, *by, &value, &item, cx) {
                    Some(true) => return Ok(Value::bool(!negated)),
                    Some(false) => {}
                    None => unknown = true,
                }
            }
            Ok(if unknown { Value::Null } else { Value::bool(*negated) })
        }
        ExprKind::Like { expr, pattern, escape, collation, negated } => {
            let text = operand(expr, row, cx)?;
            let pattern = operand(pattern, row, cx)?;
            let (Some(text), Some(pattern)) = (to_bytes(&text), to_bytes(&pattern)) else { return Ok(Value::Null) };
            Ok(Value::bool(collation.like(&text, &pattern, *escape) != *negated))
        }
        ExprKind::Case { branches, otherwise } => {
            for (when, then) in branches {
                if condition(when, row, cx)? == Some(true) {
                    return evaluate(then, row, cx);
                }
            }
            otherwise.as_ref().map_or(Ok(Value::Null), |e| evaluate(e, row, cx))
        }
        ExprKind::Cast(inner) => {
            let mut value = evaluate(inner, row, cx)?;
            if expr.ty.ty.kind == TypeKind::Double {
                value = numbered(inner, value, cx);
            }
            cast_typed(value, Some(&inner.ty.ty), &expr.ty.ty, cx)
        }
        ExprKind::Once { id, value, body } => {
            let value = evaluate(value, row, cx)?;
            cx.kept().ok_or_else(|| unresolved("kept value"))?.push((*id, value));
            let result = evaluate(body, row, cx);
            if let Some(kept) = cx.kept() {
                kept.pop();
            }
            result
        }
        ExprKind::Kept(id) => {
            let kept = cx.kept().and_then(|kept| kept.iter().rfind(|(kept, _)| kept == id).map(|(_, value)| value.clone()));
            kept.ok_or_else(|| unresolved("kept value"))
        }
        ExprKind::Subquery(subquery) => cx.subquery(subquery, row),
        ExprKind::AggregateRef(_) => Err(unresolved("aggregate")),
        ExprKind::WindowRef(_) => Err(unresolved("window function")),
    }
}

/// Whether the condition `expr` is true for `row` (neither false nor NULL). As in MySQL, no operand is asked behind the one that decides it, which may be a
/// NULL: it might warn.
pub fn eval_condition(expr: &Expr, row: &[Value], cx: &mut dyn EvalContext) -> Result<bool> {
    has_truth(expr, true, row, cx)
}

/// Whether the truth of `expr` is `wanted`, and not NULL.
fn has_truth(expr: &Expr, wanted: bool, row: &[Value], cx: &mut dyn EvalContext) -> Result<bool> {
    match &expr.kind {
        ExprKind::Not(inner) => stack::ensure(|| has_truth(inner, !wanted, row, cx)),
        ExprKind::And(parts) | ExprKind::Or(parts) => stack::ensure(|| -> Result<bool> {
            // All of them must have it, or one.
            let all = matches!(expr.kind, ExprKind::And(_)) == wanted;
            for part in parts {
                if has_truth(part, wanted, row, cx)? != all {
                    return Ok(!all);
                }
            }
            Ok(all)
        }),
        _ => Ok(condition(expr, row, cx)? == Some(wanted)),
    }
}

fn boolean(truth: Option<bool>) -> Value {
    truth.map_or(Value::Null, Value::bool)
}

/// A value without copying what the row or the plan holds already.
fn operand<'a>(expr: &'a Expr, row: &'a [Value], cx: &mut dyn EvalContext) -> Result<Cow<'a, Value>> {
    match &expr.kind {
        ExprKind::Column(index) => row.get(*index).map(Cow::Borrowed).ok_or_else(|| unresolved("column beyond the row")),
        ExprKind::Literal(value) => Ok(Cow::Borrowed(value)),
        _ => evaluate(expr, row, cx).map(Cow::Owned),
    }
}

fn condition(expr: &Expr, row: &[Value], cx: &mut dyn EvalContext) -> Result<Option<bool>> {
    let value = operand(expr, row, cx)?;
    match is_quiet(expr, &value) {
        true => Ok(quiet_f64(&value, cx).map(|number| number != 0.0)),
        false => Ok(truth(&value, cx)),
    }
}

/// Whether a value is in a list of literals that ascend, a NULL last.
fn is_in_sorted(value: &Value, list: &[Expr], by: CompareBy, cx: &mut dyn EvalContext) -> Option<bool> {
    let has_null = list.last().and_then(Expr::as_literal).is_some_and(Value::is_null);
    let items = &list[..list.len() - usize::from(has_null)];
    let (mut low, mut high) = (0, items.len());
    while low < high {
        let middle = low.midpoint(high);
        // A value that compares with none of them.
        match order(by, value, items[middle].as_literal()?, cx)? {
            Ordering::Equal => return Some(true),
            Ordering::Less => high = middle,
            Ordering::Greater => low = middle + 1,
        }
    }
    (!has_null).then_some(false)
}

/// An operand of a comparison.
fn compared<'a>(expr: &'a Expr, by: CompareBy, row: &'a [Value], cx: &mut dyn EvalContext) -> Result<Cow<'a, Value>> {
    let value = operand(expr, row, cx)?;
    Ok(match by {
        CompareBy::Int | CompareBy::Decimal | CompareBy::Double if is_quiet(expr, &value) => Cow::Owned(numbered(expr, value.into_owned(), cx)),
        _ => value,
    })
}

/// The value of `expr` where a number is wanted, as one if it is a text that becomes one without a warning.
fn numbered(expr: &Expr, value: Value, cx: &dyn EvalContext) -> Value {
    if is_quiet(expr, &value) { quiet_f64(&value, cx).map_or(Value::Null, Value::Double) } else { value }
}

/// MySQL takes a text for a number without a word where a string function, a variable, a parameter or a column of type TEXT or BLOB gives it; what other
/// columns, literals, CASE and ELT give is warned of.
fn is_quiet(expr: &Expr, value: &Value) -> bool {
    matches!(value, Value::Text(_) | Value::Bytes(_))
        && match &expr.kind {
            ExprKind::Call { func: FuncId::Elt, .. } => false,
            ExprKind::Call { func: FuncId::Coalesce, .. } => true,
            ExprKind::Call { func: FuncId::Greatest | FuncId::Least, args } => args.iter().all(|arg| arg.ty.ty.is_text()),
            ExprKind::Call { func, .. } => func.reads_text(),
            ExprKind::UserVar(_) | ExprKind::Param(_) => true,
            // A subquery that has run is a literal.
            ExprKind::Column(_) | ExprKind::Outer { .. } | ExprKind::Subquery(_) | ExprKind::Literal(_) => expr.ty.ty.is_blob(),
            _ => false,
        }
}

fn call_expr(expr: &Expr, func: FuncId, args: &[Expr], row: &[Value], cx: &mut dyn EvalContext) -> Result<Value> {
    match func {
        FuncId::Coalesce => {
            for arg in args {
                let value = evaluate(arg, row, cx)?;
                if !value.is_null() {
                    return Ok(value);
                }
            }
            return Ok(Value::Null);
        }
        FuncId::Elt => {
            // Only the chosen argument is evaluated.
            let index = operand(&args[0], row, cx)?;
            return match super::convert::to_i64(&index, cx) {
                Some(n) if n >= 1 && (n as usize) < args.len() => {
                    let chosen = eval(&args[n as usize], row, cx)?;
                    Ok(super::convert::to_str(&chosen).map_or(Value::Null, Value::Text))
                }
                _ => Ok(Value::Null),
            };
        }
        FuncId::Rand => {
            let constant = args.first().is_none_or(Expr::is_constant);
            let site = constant.then(|| std::ptr::from_ref(expr) as usize);
            let seed = args.first().map(|a| eval(a, row, cx)).transpose()?;
            return Ok(Value::Double(functions::rand(seed.as_ref(), site, cx)));
        }
        FuncId::Benchmark => {
            let count = eval(&args[0], row, cx)?;
            let Some(count) = super::convert::to_i64(&count, cx).filter(|n| *n >= 0) else { return Ok(Value::Null) };
            let mut turn = Turn::begin();
            for done in 0..count {
                eval(&args[1], row, cx)?;
                if done % 64 == 0 {
                    turn.pass(cx)?;
                }
            }
            return Ok(Value::Int(0));
        }
        _ => {}
    }
    // Arithmetic and rounding see every digit; text and everything else sees what is printed.
    let exact = func.is_arithmetic();
    let numbers = exact && !matches!(func, FuncId::Coalesce | FuncId::IntDiv);
    let mut values: smallvec::SmallVec<[Value; 4]> = smallvec::SmallVec::with_capacity(args.len());
    for arg in args {
        let value = if exact { evaluate(arg, row, cx)? } else { eval(arg, row, cx)? };
        values.push(if numbers { numbered(arg, value, cx) } else { value });
    }
    let types = Types::exprs(args, &expr.ty);
    if values.iter().any(is_long) {
        // Others do not wait for it.
        return blocking(|| functions::call(func, &values, &types, cx));
    }
    functions::call(func, &values, &types, cx)
}

/// A function of it may take a good part of a second.
fn is_long(value: &Value) -> bool {
    const BYTES: usize = 1 << 20;
    match value {
        Value::Text(text) | Value::Json(text) => text.len() >= BYTES,
        Value::Bytes(bytes) => bytes.len() >= BYTES,
        _ => false,
    }
}
