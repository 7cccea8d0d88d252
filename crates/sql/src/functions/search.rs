//! Functions that compare or search under a collation.

use std::cmp::Ordering;

use highkey_types::{TypeKind, Value};

use super::FuncId;
use super::call::{Result, Types};
use super::string::string;
use crate::expr::convert::{to_bytes, to_i64};
use crate::expr::{EvalContext, order};
use crate::plan::{CompareBy, ExprType};

/// The domain of values that have one type already.
fn domain(ty: &ExprType) -> CompareBy {
    match ty.ty.kind {
        TypeKind::Decimal { .. } => CompareBy::Decimal,
        TypeKind::Float | TypeKind::Double => CompareBy::Double,
        TypeKind::Date => CompareBy::Date,
        TypeKind::DateTime(_) | TypeKind::Timestamp(_) => CompareBy::DateTime,
        TypeKind::Time(_) => CompareBy::Time,
        TypeKind::Null => CompareBy::Dynamic,
        _ if ty.ty.is_string() => CompareBy::Text(ty.ty.collation),
        _ => CompareBy::Int,
    }
}

/// GREATEST, LEAST, FIELD, INTERVAL, STRCMP.
pub(super) fn compare(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    match func {
        FuncId::Greatest | FuncId::Least => {
            let by = domain(types.result);
            let wanted = if func == FuncId::Greatest { Ordering::Greater } else { Ordering::Less };
            // Of doubles that are equal, 0 and -0, MySQL's GREATEST gives the last and LEAST the first.
            let last = func == FuncId::Greatest && matches!(by, CompareBy::Double);
            let mut best = &args[0];
            for arg in &args[1..] {
                let order = order(by, arg, best, cx);
                if order == Some(wanted) || last && order == Some(Ordering::Equal) {
                    best = arg;
                }
            }
            Ok(best.clone())
        }
        FuncId::Field => {
            if args[0].is_null() {
                return Ok(Value::Int(0));
            }
            let by = domain(types.arg(0));
            let found = args[1..].iter().position(|a| !a.is_null() && order(by, &args[0], a, cx) == Some(Ordering::Equal));
            Ok(Value::Int(found.map_or(0, |i| i as i64 + 1)))
        }
        FuncId::Interval => {
            if args[0].is_null() {
                return Ok(Value::Int(-1));
            }
            let by = domain(types.arg(0));
            let below = args[1..].iter().take_while(|a| a.is_null() || order(by, a, &args[0], cx) != Some(Ordering::Greater)).count();
            Ok(Value::Int(below as i64))
        }
        FuncId::IsNullFunc => Ok(Value::bool(args[0].is_null())),
        _ => {
            let collation = common(types);
            let (a, b) = (to_bytes(&args[0]).unwrap_or_default(), to_bytes(&args[1]).unwrap_or_default());
            Ok(Value::Int(match collation.compare(&a, &b) {
                Ordering::Less => -1,
                Ordering::Equal => 0,
                Ordering::Greater => 1,
            }))
        }
    }
}

/// The text of a moment, or the other text if it is the zero date.
pub(super) fn shown_moment(args: &[Value], types: &Types<'_>) -> Value {
    let is_zero = match &args[0] {
        Value::Date(date) => date.is_zero(),
        Value::DateTime(moment) => moment.is_zero(),
        _ => false,
    };
    if is_zero {
        return args[1].clone();
    }
    let mut text = Vec::new();
    args[0].to_text(&types.arg(0).ty, &mut text);
    string(text, types)
}

/// The collation that the first two arguments have together: the binder made sure that there is one.
pub(super) fn common(types: &Types<'_>) -> &'static highkey_types::Collation {
    let (a, b) = (types.arg(0), types.arg(1));
    let text = |t: &ExprType| t.ty.is_string();
    match (text(a), text(b)) {
        (true, true) if a.ty.is_binary() || b.ty.is_binary() => highkey_types::Collation::binary(),
        (true, true) if b.coercibility < a.coercibility => b.ty.collation,
        (true, true) if a.coercibility == b.coercibility && b.ty.collation.is_binary_order() => b.ty.collation,
        (false, true) => b.ty.collation,
        (true, _) => a.ty.collation,
        _ => highkey_types::Collation::utf8mb4(),
    }
}

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let collation = common(types);
    Ok(match func {
        FuncId::Instr => locate(&to_bytes(&args[0]).unwrap_or_default(), &to_bytes(&args[1]).unwrap_or_default(), 1, collation),
        FuncId::Locate => {
            let start = match args.get(2) {
                Some(n) => to_i64(n, cx).unwrap_or(0),
                None => 1,
            };
            locate(&to_bytes(&args[1]).unwrap_or_default(), &to_bytes(&args[0]).unwrap_or_default(), start, collation)
        }
        FuncId::FindInSet => {
            let (needle, list) = (to_bytes(&args[0]).unwrap_or_default(), to_bytes(&args[1]).unwrap_or_default());
            if list.is_empty() || needle.contains(&b',') {
                return Ok(Value::Int(0));
            }
            // No collation pads here.
            let spaces = trailing_spaces(&needle);
            let found = list.split(|b| *b == b',').position(|item| trailing_spaces(item) == spaces && collation.eq(item, &needle));
            Value::Int(found.map_or(0, |i| i as i64 + 1))
        }
        FuncId::Replace => {
            // REPLACE is case-sensitive whatever the collation.
            let (text, from, to) = (to_bytes(&args[0]).unwrap_or_default(), to_bytes(&args[1]).unwrap_or_default(), to_bytes(&args[2]).unwrap_or_default());
            if from.is_empty() {
                return Ok(string(text.into_owned(), types));
            }
            let mut out = Vec::with_capacity(text.len());
            let mut at = 0;
            for found in memchr::memmem::find_iter(&text, &*from) {
                out.extend_from_slice(&text[at..found]);
                out.extend_from_slice(&to);
                at = found + from.len();
                if out.len() > cx.max_allowed_packet() {
                    return Ok(super::string::too_long(func, cx));
                }
            }
            out.extend_from_slice(&text[at..]);
            string(out, types)
        }
        _ => {
            let (text, delimiter) = (to_bytes(&args[0]).unwrap_or_default(), to_bytes(&args[1]).unwrap_or_default());
            let count = to_i64(&args[2], cx).unwrap_or(0);
            if delimiter.is_empty() || count == 0 || text.is_empty() {
                return Ok(string(Vec::new(), types));
            }
            let found: Vec<usize> = memchr::memmem::find_iter(&text, &*delimiter).collect();
            let part = if count > 0 {
                found.get(count as usize - 1).map_or(&text[..], |end| &text[..*end])
            } else {
                // From the right the matches are counted from the right.
                let matches: Vec<usize> = memchr::memmem::rfind_iter(&text, &*delimiter).collect();
                matches.get(count.unsigned_abs() as usize - 1).map_or(&text[..], |start| &text[start + delimiter.len()..])
            };
            string(part.to_vec(), types)
        }
    })
}

/// 1-based position in characters, 0 if not found.
fn locate(text: &[u8], needle: &[u8], start: i64, collation: &'static highkey_types::Collation) -> Value {
    let utf8 = std::str::from_utf8(text).ok().filter(|_| collation.charset != highkey_types::Charset::Binary);
    let length = utf8.map_or(text.len(), |t| t.chars().count()) as i64;
    if start < 1 || start > length + 1 {
        return Value::Int(0);
    }
    let skip = utf8.map_or(start as usize - 1, |t| t.char_indices().nth(start as usize - 1).map_or(t.len(), |(at, _)| at));
    if needle.is_empty() {
        return Value::Int(start);
    }
    match collation.find(&text[skip..], needle) {
        None => Value::Int(0),
        Some(range) => {
            let before = skip + range.start;
            Value::Int(utf8.map_or(before, |t| t[..before].chars().count()) as i64 + 1)
        }
    }
}

fn trailing_spaces(text: &[u8]) -> usize {
    text.iter().rev().take_while(|byte| **byte == b' ').count()
}
