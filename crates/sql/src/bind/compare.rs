//! In what domain two expressions compare, and literals converted to it once.

use highkey_types::{Charset, MySqlError, TypeKind, Value, cast};

use super::collation;
use super::fold::Folder;
use super::merge::as_bytes;
use crate::plan::{CompareBy, CompareOp, Expr, ExprKind, ExprType};

/// What a type is when compared with another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    Null,
    Int,
    Decimal,
    Real,
    Date,
    DateTime,
    Time,
    Text,
    Json,
}

fn class(ty: &ExprType) -> Class {
    match ty.ty.kind {
        TypeKind::Null => Class::Null,
        TypeKind::Decimal { .. } => Class::Decimal,
        TypeKind::Float | TypeKind::Double => Class::Real,
        TypeKind::Date => Class::Date,
        TypeKind::DateTime(_) | TypeKind::Timestamp(_) => Class::DateTime,
        TypeKind::Time(_) => Class::Time,
        TypeKind::Json => Class::Json,
        _ if ty.ty.is_string() => Class::Text,
        _ => Class::Int,
    }
}

/// The domain for comparing `left` with `right`; literals on either side are converted to it.
pub(super) fn unify(left: &mut Expr, right: &mut Expr, folder: &Folder<'_>, operation: &str) -> Result<CompareBy, MySqlError> {
    match (class(&left.ty), class(&right.ty)) {
        (Class::Json, Class::Json) => Ok(CompareBy::Json),
        (Class::Json, other) if other != Class::Null => {
            json_scalar(right, other, folder);
            Ok(CompareBy::Json)
        }
        (other, Class::Json) if other != Class::Null => {
            json_scalar(left, other, folder);
            Ok(CompareBy::Json)
        }
        classes => unify_classes(classes, left, right, folder, operation),
    }
}

/// The same for IN, BETWEEN and CASE, where MySQL takes JSON for its text, unless the other side is a number.
fn unify_text(left: &mut Expr, right: &mut Expr, folder: &Folder<'_>, operation: &str) -> Result<CompareBy, MySqlError> {
    let text = |class| if class == Class::Json { Class::Text } else { class };
    unify_classes((text(class(&left.ty)), text(class(&right.ty))), left, right, folder, operation)
}

/// What meets JSON becomes JSON. Temporal values and bytes are more than its text can say: they are compared as they are.
fn json_scalar(expr: &mut Expr, class: Class, folder: &Folder<'_>) {
    let beyond = matches!(class, Class::Date | Class::DateTime | Class::Time) || expr.ty.ty.is_binary();
    if !beyond && !matches!(expr.kind, ExprKind::Param(_)) {
        *expr = folder.fold(super::json::as_json(expr.clone()));
    }
}

fn unify_classes(classes: (Class, Class), left: &mut Expr, right: &mut Expr, folder: &Folder<'_>, operation: &str) -> Result<CompareBy, MySqlError> {
    use Class::*;
    let by = match classes {
        (Null, Null) => CompareBy::Dynamic,
        (Null, other) => alone(other, right),
        (other, Null) => alone(other, left),
        (Text, Text) => {
            let (collation, _) = collation::aggregate(&[left, right], folder.collation(), true, operation)?;
            if collation.charset == Charset::Binary {
                *left = as_bytes(left.clone(), folder);
                *right = as_bytes(right.clone(), folder);
            }
            CompareBy::Text(collation)
        }
        (Int, Int) => CompareBy::Int,
        (Int | Decimal, Int | Decimal) => CompareBy::Decimal,
        (Date, Date) => CompareBy::Date,
        (Time, Time) => CompareBy::Time,
        (Date | DateTime | Time, Date | DateTime | Time) => CompareBy::DateTime,
        (Date | DateTime, Text) => temporal_literal(left, right, folder),
        (Text, Date | DateTime) => temporal_literal(right, left, folder),
        (Time, Text) => time_literal(right, folder),
        (Text, Time) => time_literal(left, folder),
        (Int, Text) => integer_literal(left, right),
        (Text, Int) => integer_literal(right, left),
        (Int | Decimal, temporal @ (Date | DateTime | Time)) | (temporal @ (Date | DateTime | Time), Int | Decimal) => {
            let fsp = left.ty.ty.fsp().max(right.ty.ty.fsp());
            let decimal = class(&left.ty) == Decimal || class(&right.ty) == Decimal;
            let _ = temporal;
            if fsp > 0 || decimal { CompareBy::Decimal } else { CompareBy::Int }
        }
        _ => CompareBy::Double,
    };
    if by == CompareBy::Decimal {
        literal_to_decimal(left);
        literal_to_decimal(right);
    }
    Ok(by)
}

fn alone(class: Class, typed: &Expr) -> CompareBy {
    match class {
        Class::Int => CompareBy::Int,
        Class::Decimal => CompareBy::Decimal,
        Class::Real => CompareBy::Double,
        Class::Date => CompareBy::Date,
        Class::DateTime => CompareBy::DateTime,
        Class::Time => CompareBy::Time,
        Class::Text => CompareBy::Text(typed.ty.ty.collation),
        Class::Json => CompareBy::Json,
        Class::Null => CompareBy::Dynamic,
    }
}

/// A date against a string: the string becomes a date once, if it is a literal that is one.
fn temporal_literal(temporal: &Expr, text: &mut Expr, folder: &Folder<'_>) -> CompareBy {
    let is_date = matches!(temporal.ty.ty.kind, TypeKind::Date);
    let ExprKind::Literal(value) = &text.kind else { return CompareBy::DateTime };
    // A literal that is no date: both are compared as strings, which is what MySQL 8.0.12 falls back to.
    let Some(moment) = folder.quietly(|cx| cast::to_datetime(value, cx)) else { return CompareBy::Text(folder.collation()) };
    if is_date && moment.time() == highkey_types::Time::default() {
        *text = Expr::literal(Value::Date(moment.date), ExprType::column(highkey_types::ColumnType::new(TypeKind::Date), false));
        return CompareBy::Date;
    }
    let ty = highkey_types::ColumnType::new(TypeKind::DateTime(6));
    *text = Expr::literal(Value::DateTime(moment), ExprType::column(ty, false));
    CompareBy::DateTime
}

fn time_literal(text: &mut Expr, folder: &Folder<'_>) -> CompareBy {
    if let ExprKind::Literal(value) = &text.kind
        && let Some(time) = folder.quietly(|cx| cast::to_time(value, cx))
    {
        let ty = highkey_types::ColumnType::new(TypeKind::Time(6));
        *text = Expr::literal(Value::Time(time), ExprType::column(ty, false));
    }
    CompareBy::Time
}

/// An integer column against a string: an integer if the string is one, as MySQL stores constants into the column first.
fn integer_literal(number: &Expr, text: &mut Expr) -> CompareBy {
    // ENUM and SET never come here: they are text. YEAR and BIT are integers.
    let column = matches!(number.kind, ExprKind::Column(_) | ExprKind::Outer { .. });
    if let (true, ExprKind::Literal(value)) = (column, &text.kind)
        && let Some(s) = value.as_str()
    {
        if let Ok(n) = s.trim().parse::<i64>() {
            *text = Expr::literal(Value::Int(n), ExprType::bigint(false));
            return CompareBy::Int;
        }
        if let Ok(n) = s.trim().parse::<u64>() {
            *text = Expr::literal(Value::UInt(n), ExprType::ubigint(false));
            return CompareBy::Int;
        }
    }
    CompareBy::Double
}

fn literal_to_decimal(expr: &mut Expr) {
    if let ExprKind::Literal(value) = &expr.kind {
        let decimal = match value {
            Value::Int(n) => highkey_types::Decimal::from(*n),
            Value::UInt(n) => highkey_types::Decimal::from(*n),
            _ => return,
        };
        let (int, _) = expr.ty.decimal_digits();
        *expr = Expr::literal(Value::Decimal(decimal), ExprType::decimal(int, 0, false));
    }
}

/// A YEAR column against a number or string of one or two digits: a year of 1970 to 2069, but for the number 0. (Not in a list: MySQL compares as
/// written there.)
fn year_literals(left: &mut Expr, right: &mut Expr) {
    let is_year = |e: &Expr| matches!(e.kind, ExprKind::Column(_) | ExprKind::Outer { .. }) && matches!(e.ty.ty.kind, TypeKind::Year);
    let literal = match (is_year(left), is_year(right)) {
        (true, false) => right,
        (false, true) => left,
        _ => return,
    };
    let ExprKind::Literal(value) = &literal.kind else { return };
    let year = match value {
        Value::Int(n @ 1..100) => *n,
        Value::Decimal(d) if d.floor() == *d => d.to_i64().filter(|n| (1..100).contains(n)).unwrap_or(-1),
        Value::Text(text) if text.len() <= 2 => text.parse().ok().filter(|n| (0..100).contains(n)).unwrap_or(-1),
        _ => return,
    };
    if year >= 0 {
        *literal = Expr::literal(Value::Int(if year < 70 { 2000 + year } else { 1900 + year }), ExprType::bigint(false));
    }
}

/// How two scalars are compared.
pub(super) type Comparison = fn(CompareOp, Expr, Expr, &Folder<'_>) -> Result<Expr, MySqlError>;

/// `left op right` of two scalars.
pub(super) fn comparison(op: CompareOp, mut left: Expr, mut right: Expr, folder: &Folder<'_>) -> Result<Expr, MySqlError> {
    year_literals(&mut left, &mut right);
    let by = unify(&mut left, &mut right, folder, op.symbol())?;
    Ok(compared(op, by, left, right, folder))
}

/// The same where JSON counts as its text.
pub(super) fn comparison_of_text(op: CompareOp, mut left: Expr, mut right: Expr, folder: &Folder<'_>) -> Result<Expr, MySqlError> {
    year_literals(&mut left, &mut right);
    let by = unify_text(&mut left, &mut right, folder, op.symbol())?;
    Ok(compared(op, by, left, right, folder))
}

fn compared(op: CompareOp, by: CompareBy, left: Expr, right: Expr, folder: &Folder<'_>) -> Expr {
    let nullable = op != CompareOp::NullSafeEq && (left.ty.nullable || right.ty.nullable);
    let kind = ExprKind::Compare { op, by, left: Box::new(left), right: Box::new(right) };
    folder.fold(Expr { kind, ty: ExprType::boolean(nullable) })
}

/// The domain in which a value compares with every member of a list.
pub(super) fn unify_list(expr: &mut Expr, list: &mut [Expr], folder: &Folder<'_>) -> Result<Option<CompareBy>, MySqlError> {
    let mut domain: Option<CompareBy> = None;
    for item in list.iter_mut() {
        if item.ty.is_null_type() && matches!(item.kind, ExprKind::Literal(_)) {
            continue;
        }
        let mut left = expr.clone();
        let by = unify_text(&mut left, item, folder, " IN ")?;
        match domain {
            Some(before) if before != by && !matches!(by, CompareBy::Dynamic) => {
                // Text collations may differ by a COLLATE; anything else compares item by item.
                return Ok(None);
            }
            _ => domain = Some(by),
        }
    }
    if let Some(CompareBy::Text(collation)) = domain
        && collation.charset == Charset::Binary
    {
        *expr = as_bytes(expr.clone(), folder);
    }
    Ok(Some(domain.unwrap_or(CompareBy::Dynamic)))
}
