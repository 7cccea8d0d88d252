//! Evaluation of an index access: bounds in the column types, ascending and disjoint.

use std::cmp::Ordering;
use std::ops::Bound;

use highkey_table::{IndexDef, IndexKind, KeyRange, TableDef};
use highkey_types::{ColumnType, DateTime, Decimal, KeyPart, MySqlError, Time, TypeKind, Value, encode_key};

use super::{Expr, IndexAccess, KeyRangeExpr};
use crate::expr::convert::{leading_number, to_decimal, to_f64, to_str, to_bytes, to_compared_time};
use crate::expr::{EvalContext, eval, moment};

/// A constant as a value of the column's type, and where that lies relative to the constant.
pub(super) enum Key {
    /// NULL, or nothing that the column could be compared with.
    Null,
    /// The nearest value of the column's type, and how it compares with the constant.
    Near(Value, Ordering),
    /// No value of the column's type is near (a moment that the time zone cannot place): leave the bound open.
    Unknown,
}

/// The ranges with their values in the column types, ascending and disjoint; those that cannot match are left out.
pub fn key_ranges(access: &IndexAccess, table: &TableDef, cx: &mut dyn EvalContext) -> Result<Vec<KeyRange>, MySqlError> {
    key_ranges_for(access, table, &[], cx)
}

/// As [`key_ranges`], where the bounds may read the fields of `row`.
pub fn key_ranges_for(access: &IndexAccess, table: &TableDef, row: &[Value], cx: &mut dyn EvalContext) -> Result<Vec<KeyRange>, MySqlError> {
    let index = &table.indexes[access.index];
    if index.kind == IndexKind::RowId {
        let mut rows = Vec::with_capacity(access.ranges.len());
        for range in &access.ranges {
            rows.push(row_id_range(range, row, cx)?);
        }
        return Ok(rows);
    }
    let mut found = Vec::with_capacity(access.ranges.len());
    for range in &access.ranges {
        if let Some(range) = key_range(range, index, table, row, cx)? {
            found.push(range);
        }
    }
    if found.len() <= 1 {
        return Ok(found);
    }
    Ok(disjoint(found, index, table))
}

/// One row of a table without primary key, by its clustered key. Whoever names such rows names them in ascending order, each once.
fn row_id_range(range: &KeyRangeExpr, row: &[Value], cx: &mut dyn EvalContext) -> Result<KeyRange, MySqlError> {
    let mut key = Vec::with_capacity(range.prefix.len());
    for expr in &range.prefix {
        key.push(eval(expr, row, cx)?);
    }
    Ok(prefix_range(key))
}

fn key_range(range: &KeyRangeExpr, index: &IndexDef, table: &TableDef, row: &[Value], cx: &mut dyn EvalContext) -> Result<Option<KeyRange>, MySqlError> {
    let mut prefix = Vec::with_capacity(range.prefix.len() + 1);
    for (position, expr) in range.prefix.iter().enumerate() {
        let column = &table.columns[index.parts[position].column];
        let value = match eval(expr, row, cx)? {
            Value::Text(text) if column.ty.is_integer() && expr.ty.ty.is_text() => leading_number(&Value::Text(text), cx),
            value => value,
        };
        if let Some((first, last)) = both_moments(expr, &value, &column.ty, cx) {
            let (low, high) = if index.parts[position].descending { (last, first) } else { (first, last) };
            let with = |end: Value| Bound::Included(prefix.iter().cloned().chain([end]).collect());
            return Ok(Some(KeyRange { lower: with(low), upper: with(high) }));
        }
        match key(&value, &column.ty, cx) {
            Key::Null if range.null_matches[position] && value.is_null() && column.nullable => prefix.push(Value::Null),
            Key::Near(value, Ordering::Equal) => prefix.push(value),
            Key::Null | Key::Near(..) => return Ok(None),
            // Everything under the parts so far; the condition is checked again.
            Key::Unknown => return Ok(Some(prefix_range(prefix))),
        }
    }
    let Some(part) = index.parts.get(range.prefix.len()) else { return Ok(Some(prefix_range(prefix))) };
    let column = &table.columns[part.column];
    let Some(lower) = bound(&range.lower, &column.ty, true, row, cx)? else { return Ok(None) };
    let Some(upper) = bound(&range.upper, &column.ty, false, row, cx)? else { return Ok(None) };
    if matches!((&lower, &upper), (Bound::Unbounded, Bound::Unbounded)) && matches!((&range.lower, &range.upper), (Bound::Unbounded, Bound::Unbounded)) {
        return Ok(Some(prefix_range(prefix)));
    }
    // NULLs come first and satisfy no comparison.
    let lower = match lower {
        Bound::Unbounded if column.nullable => Bound::Excluded(Value::Null),
        other => other,
    };
    let (first, last) = if part.descending { (upper, lower) } else { (lower, upper) };
    let with = |bound: Bound<Value>| match bound {
        Bound::Unbounded if prefix.is_empty() => Bound::Unbounded,
        Bound::Unbounded => Bound::Included(prefix.clone()),
        Bound::Included(value) => Bound::Included(prefix.iter().cloned().chain([value]).collect()),
        Bound::Excluded(value) => Bound::Excluded(prefix.iter().cloned().chain([value]).collect()),
    };
    Ok(Some(KeyRange { lower: with(first), upper: with(last) }))
}

fn prefix_range(prefix: Vec<Value>) -> KeyRange {
    if prefix.is_empty() {
        return KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded };
    }
    KeyRange { lower: Bound::Included(prefix.clone()), upper: Bound::Included(prefix) }
}

/// A bound in the column's type; `None` if nothing can satisfy it.
fn bound(bound: &Bound<Expr>, ty: &ColumnType, lower: bool, row: &[Value], cx: &mut dyn EvalContext) -> Result<Option<Bound<Value>>, MySqlError> {
    let (expr, included) = match bound {
        Bound::Unbounded => return Ok(Some(Bound::Unbounded)),
        Bound::Included(expr) => (expr, true),
        Bound::Excluded(expr) => (expr, false),
    };
    let value = eval(expr, row, cx)?;
    if let Some((first, last)) = both_moments(expr, &value, ty, cx) {
        return Ok(Some(Bound::Included(if lower { first } else { last })));
    }
    Ok(Some(match key(&value, ty, cx) {
        Key::Null => return Ok(None),
        Key::Unknown => Bound::Unbounded,
        Key::Near(near, Ordering::Equal) => if included { Bound::Included(near) } else { Bound::Excluded(near) },
        // The constant lies between two values of the type: the near one is on one side of it.
        Key::Near(near, side) => {
            let inside = if lower { side == Ordering::Greater } else { side == Ordering::Less };
            if inside { Bound::Included(near) } else { Bound::Excluded(near) }
        }
    }))
}

/// The keys of both moments at which the wall clock shows the value of a TIMESTAMP, if there are two: comparing TIMESTAMPs is comparing what the clock
/// shows. (A constant stands for the first, as in MySQL, which documents it.)
fn both_moments(expr: &Expr, value: &Value, ty: &ColumnType, cx: &mut dyn EvalContext) -> Option<(Value, Value)> {
    let (TypeKind::Timestamp(_), TypeKind::Timestamp(_), Value::DateTime(local)) = (&expr.ty.ty.kind, &ty.kind, value) else { return None };
    let later = cx.time_zone().shown_again(local);
    let Key::Near(Value::DateTime(first), _) = key(value, ty, cx) else { return None };
    let last = DateTime::from_micros(first.to_micros() + later).filter(|_| later != 0)?;
    Some((Value::DateTime(first), Value::DateTime(last)))
}

pub(super) fn key(value: &Value, ty: &ColumnType, cx: &mut dyn EvalContext) -> Key {
    if value.is_null() {
        return Key::Null;
    }
    match &ty.kind {
        _ if ty.is_integer() || matches!(ty.kind, TypeKind::Year | TypeKind::Bit(_)) => integer_key(value, ty, cx),
        TypeKind::Decimal { precision, scale } => {
            let Some(exact) = to_decimal(value, cx) else { return Key::Null };
            let near = exact.rescale(*scale).filter(|d| d.fits(*precision, *scale)).unwrap_or_else(|| {
                let most = Decimal::max(*precision, *scale);
                if exact.is_negative() { most.neg() } else { most }
            });
            Key::Near(Value::Decimal(near), near.cmp(&exact))
        }
        TypeKind::Double => to_f64(value, cx).map_or(Key::Null, |n| Key::Near(Value::Double(n), Ordering::Equal)),
        TypeKind::Float => {
            let Some(exact) = to_f64(value, cx) else { return Key::Null };
            let near = exact as f32;
            Key::Near(Value::Float(near), f64::from(near).partial_cmp(&exact).unwrap_or(Ordering::Equal))
        }
        TypeKind::Date => {
            let Some(exact) = moment(value, cx) else { return Key::Null };
            Key::Near(Value::Date(exact.date), DateTime::new(exact.date, 0, 0, 0, 0).cmp(&exact))
        }
        TypeKind::DateTime(fsp) => {
            let Some(exact) = moment(value, cx) else { return Key::Null };
            let near = exact.truncate(*fsp);
            Key::Near(Value::DateTime(near), near.cmp(&exact))
        }
        TypeKind::Timestamp(fsp) => {
            // Keys hold UTC.
            let Some(exact) = moment(value, cx) else { return Key::Null };
            let Some(utc) = cx.time_zone().to_utc(&exact) else { return Key::Unknown };
            let near = utc.truncate(*fsp);
            Key::Near(Value::DateTime(near), near.cmp(&utc))
        }
        TypeKind::Time(fsp) => {
            let Some(exact) = to_compared_time(value, cx) else { return Key::Null };
            let near: Time = exact.truncate(*fsp);
            Key::Near(Value::Time(near), near.cmp(&exact))
        }
        TypeKind::Enum(members) => {
            let Some(text) = to_str(value) else { return Key::Null };
            match members.iter().position(|m| ty.collation.eq(m.as_bytes(), text.as_bytes())) {
                Some(at) => Key::Near(Value::Enum(at as u16 + 1, members[at].clone()), Ordering::Equal),
                None if text.is_empty() => Key::Near(Value::Enum(0, text), Ordering::Equal),
                None => Key::Null,
            }
        }
        _ if ty.is_binary() => to_bytes(value).map_or(Key::Null, |b| Key::Near(Value::Bytes(b.into_owned()), Ordering::Equal)),
        _ => to_str(value).map_or(Key::Null, |s| Key::Near(Value::Text(s), Ordering::Equal)),
    }
}

/// The first that a YEAR may be, but for 0.
const FIRST_YEAR: i64 = 1901;

fn integer_key(value: &Value, ty: &ColumnType, cx: &mut dyn EvalContext) -> Key {
    let unsigned = ty.unsigned || matches!(ty.kind, TypeKind::Year | TypeKind::Bit(_));
    let (least, most) = ty.integer_range().map_or((i128::MIN, i128::MAX), |(l, m)| (i128::from(l), i128::from(m)));
    let (whole, side) = match value {
        Value::Int(n) => (i128::from(*n), Ordering::Equal),
        Value::UInt(n) => (i128::from(*n), Ordering::Equal),
        _ => {
            let Some(exact) = to_decimal(value, cx) else { return Key::Null };
            let floor = exact.floor();
            let whole = floor.to_i64().map(i128::from).or_else(|| floor.to_u64().map(i128::from));
            (whole.unwrap_or(if exact.is_negative() { i128::MIN } else { i128::MAX }), floor.cmp(&exact))
        }
    };
    // There is no year between 0 and 1901.
    let near = if matches!(ty.kind, TypeKind::Year) && (1..i128::from(FIRST_YEAR)).contains(&whole) { 0 } else { whole.clamp(least, most) };
    let side = if near == whole { side } else { near.cmp(&whole) };
    Key::Near(if unsigned { Value::UInt(near as u64) } else { Value::Int(near as i64) }, side)
}

/// Sorted by key, overlaps merged, empty ranges dropped.
fn disjoint(ranges: Vec<KeyRange>, index: &IndexDef, table: &TableDef) -> Vec<KeyRange> {
    let parts: Vec<KeyPart> = index
        .parts
        .iter()
        .map(|p| KeyPart { ty: table.columns[p.column].ty.clone(), descending: p.descending, prefix: p.prefix, nullable: table.columns[p.column].nullable })
        .collect();
    let encode = |values: &[Value]| {
        let mut key = Vec::new();
        encode_key(values, &parts[..values.len()], &mut key);
        key
    };
    // A truncated value cannot exclude the others that share its prefix: as `KeyRange::bounds` scans them.
    let truncated = |values: &[Value]| parts.iter().take(values.len()).any(|part| part.prefix.is_some());
    // Half-open intervals of encoded keys; `None` is no upper end.
    let mut intervals: Vec<(Vec<u8>, Option<Vec<u8>>, KeyRange)> = ranges
        .into_iter()
        .filter_map(|range| {
            let low = match &range.lower {
                Bound::Unbounded => Vec::new(),
                Bound::Excluded(values) if !truncated(values) => successor(encode(values))?,
                Bound::Included(values) | Bound::Excluded(values) => encode(values),
            };
            let high = match &range.upper {
                Bound::Unbounded => None,
                Bound::Excluded(values) if !truncated(values) => Some(encode(values)),
                Bound::Included(values) | Bound::Excluded(values) => successor(encode(values)),
            };
            let empty = high.as_ref().is_some_and(|high| low >= *high);
            (!empty).then_some((low, high, range))
        })
        .collect();
    intervals.sort_by(|a, b| a.0.cmp(&b.0));
    let mut merged: Vec<(Option<Vec<u8>>, KeyRange)> = Vec::with_capacity(intervals.len());
    for (low, high, range) in intervals {
        match merged.last_mut() {
            Some((last_high, last)) if last_high.as_ref().is_none_or(|last_high| low < *last_high) => {
                let further = match (&*last_high, &high) {
                    (None, _) => false,
                    (Some(_), None) => true,
                    (Some(a), Some(b)) => b > a,
                };
                if further {
                    last.upper = range.upper;
                    *last_high = high;
                }
            }
            _ => merged.push((high, range)),
        }
    }
    merged.into_iter().map(|(_, range)| range).collect()
}

/// The first key after all that start with `key`; `None` if there is none.
fn successor(mut key: Vec<u8>) -> Option<Vec<u8>> {
    while let Some(last) = key.last_mut() {
        if *last < u8::MAX {
            *last += 1;
            return Some(key);
        }
        key.pop();
    }
    None
}
