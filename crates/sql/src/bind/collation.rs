//! Which collation wins when strings meet: MySQL's DTCollation::aggregate.

use highkey_types::{Charset, Collation, MySqlError, Value};

use super::errors;
use crate::plan::{Coercibility, Expr, ExprKind, ExprType};

type Derived = (&'static Collation, Coercibility);

/// Of two character sets of Unicode the one that holds the other to MySQL. Those that are level do not meet.
fn height(charset: Charset) -> u8 {
    match charset {
        Charset::Utf32 => 2,
        Charset::Utf8mb4 => 1,
        _ => 0,
    }
}

/// `left` can hold what `right` holds without loss of meaning.
fn is_superset(left: Derived, left_is_ascii: bool, right: Derived, right_is_ascii: bool) -> bool {
    let stronger = left.1 < right.1;
    let same = left.1 == right.1;
    let (holder, held) = (left.0.charset, right.0.charset);
    let unicode = holder.is_unicode() && (stronger || (same && (!held.is_unicode() || height(holder) > height(held))));
    unicode || (right_is_ascii && (stronger || (same && !left_is_ascii)))
}

fn merge(a: Derived, a_ascii: bool, b: Derived, b_ascii: bool) -> Option<Derived> {
    if a.0.charset != b.0.charset {
        if a.0.charset == Charset::Binary {
            return Some(if a.1 <= b.1 { a } else { b });
        }
        if b.0.charset == Charset::Binary {
            return Some(if b.1 <= a.1 { b } else { a });
        }
        if is_superset(a, a_ascii, b, b_ascii) {
            return Some(a);
        }
        if is_superset(b, b_ascii, a, a_ascii) {
            return Some(b);
        }
        if a.1 < b.1 && b.1 >= Coercibility::SystemConstant {
            return Some(a);
        }
        if b.1 < a.1 && a.1 >= Coercibility::SystemConstant {
            return Some(b);
        }
        return None;
    }
    if a.1 != b.1 {
        return Some(if a.1 < b.1 { a } else { b });
    }
    if a.0.id == b.0.id {
        return Some(a);
    }
    if a.1 == Coercibility::Explicit {
        return None;
    }
    if a.0.is_binary_order() {
        return Some(a);
    }
    if b.0.is_binary_order() {
        return Some(b);
    }
    Some((Collation::binary_of(a.0.charset), Coercibility::NoCollation))
}

fn is_ascii(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Literal(value) => value.as_str().is_none_or(str::is_ascii),
        _ => expr.ty.ty.charset() == Charset::Ascii || expr.ty.coercibility >= Coercibility::Numeric,
    }
}

/// A literal that the character set cannot hold.
pub(super) fn is_lost(expr: &Expr, charset: Charset) -> bool {
    match &expr.kind {
        ExprKind::Literal(Value::Text(text)) if charset != Charset::Binary => !text.is_ascii() && !text.chars().all(|c| charset.can_encode(c)),
        _ => false,
    }
}

/// The collation of the strings among `exprs` together. `connection` is what numbers and NULL alone take.
/// A literal that its character set cannot hold is an error; with `comparing`, no collation at all is one too.
pub(super) fn aggregate(exprs: &[&Expr], connection: &'static Collation, comparing: bool, operation: &str) -> Result<Derived, MySqlError> {
    let mut result: Option<(Derived, bool)> = None;
    let fail = || {
        let operands: Vec<_> = exprs.iter().map(|e| (of(&e.ty, connection).0, of(&e.ty, connection).1)).collect();
        errors::illegal_mix(&operands, operation)
    };
    for expr in exprs {
        if expr.ty.is_null_type() {
            continue;
        }
        let (next, ascii) = (of(&expr.ty, connection), is_ascii(expr));
        result = Some(match result {
            None => (next, ascii),
            Some((before, before_ascii)) => (merge(before, before_ascii, next, ascii).ok_or_else(fail)?, before_ascii && ascii),
        });
    }
    let derived = result.map_or((connection, Coercibility::Ignorable), |(d, _)| d);
    if exprs.iter().any(|expr| is_lost(expr, derived.0.charset)) {
        return Err(fail());
    }
    if comparing && derived.1 == Coercibility::NoCollation {
        return Err(fail());
    }
    Ok(derived)
}

/// Collation and strength of an operand seen as a string.
pub(super) fn of(ty: &ExprType, connection: &'static Collation) -> Derived {
    if ty.ty.is_string() && !ty.is_null_type() {
        if matches!(ty.ty.kind, highkey_types::TypeKind::Json) {
            return (Collation::binary_of(Charset::Utf8mb4), ty.coercibility.min(Coercibility::Implicit));
        }
        (ty.ty.collation, ty.coercibility)
    } else if ty.is_null_type() {
        (connection, Coercibility::Ignorable)
    } else {
        (connection, Coercibility::Numeric)
    }
}

/// The collation that a name means.
pub(super) fn by_name(name: &str) -> Result<&'static Collation, MySqlError> {
    Collation::by_name(name).ok_or_else(|| errors::unknown_collation(name))
}

/// The character set that a name means.
pub(super) fn charset_by_name(name: &str) -> Result<Charset, MySqlError> {
    Charset::by_name(name).ok_or_else(|| errors::unknown_charset(name))
}
