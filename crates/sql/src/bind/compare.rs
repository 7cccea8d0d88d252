//! In what domain two expressions compare, and literals converted to it once.

use highkey_types::{Charset, Collation, ColumnType, MySqlError, TypeKind, Value, cast, parse_time};

use super::collation;
use super::fold::Folder;
use super::merge::{as_bytes, chosen_number};
use super::scope::is_column;
use crate::plan::{Coercibility, CompareBy, CompareOp, Expr, ExprKind, ExprType};

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

/// The domain in which a value compares with each of what a query selects, which is `literal` if that is the same for each.
pub(super) fn unify_selected(expr: &mut Expr, field: &ExprType, literal: Option<&Expr>, folder: &Folder<'_>, operation: &str) -> Result<CompareBy, MySqlError> {
    // As where they are compared without a query: what is no date is text, and does not find the zero date.
    if let (Class::Date | Class::DateTime, Some(text)) = (class(&expr.ty), literal.filter(|literal| class(&literal.ty) == Class::Text))
        && text.as_literal().is_some_and(|value| folder.moment(value).is_none())
    {
        return Ok(CompareBy::Text(folder.collation()));
    }
    let mut other = Expr::column(usize::MAX, field.clone());
    unify(expr, &mut other, folder, operation)
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
            } else if collation.charset.is_recoded() {
                bytes_as_text(left, collation);
                bytes_as_text(right, collation);
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
        (Time, Text) => time_and_text(left, right, folder),
        (Text, Time) => time_and_text(right, left, folder),
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
    if by == CompareBy::Double {
        for side in [left, right] {
            *side = chosen_number(std::mem::replace(side, Expr::null()));
        }
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
    let is_moment = text.as_literal().is_none_or(|value| folder.moment(value).is_some());
    // A literal that is no date: both are compared as strings, which is what MySQL 8.0.12 falls back to. With COLLATE or a cast it is no literal to MySQL.
    let computed = text.ty.coercibility == Coercibility::Explicit || (text.ty.ty.is_binary() && text.ty.coercibility == Coercibility::Implicit);
    if is_moment || computed { beside_date(temporal, text, is_moment, folder) } else { CompareBy::Text(folder.collation()) }
}

/// The domain of a date and a string that is taken for a moment whatever it is.
fn beside_date(temporal: &Expr, text: &mut Expr, once: bool, folder: &Folder<'_>) -> CompareBy {
    as_moment(text, class(&temporal.ty) == Class::Date, once, folder);
    if class(&text.ty) == Class::Date { CompareBy::Date } else { CompareBy::DateTime }
}

/// A literal string as a moment, or as a date if it is one and that is what it is compared with. One that MySQL warns of stays, to be read when it is compared,
/// unless MySQL reads it `once`: before the statement runs, where strict mode does not hear of it.
fn as_moment(text: &mut Expr, to_date: bool, once: bool, folder: &Folder<'_>) {
    let (Class::Text, ExprKind::Literal(value)) = (class(&text.ty), &text.kind) else { return };
    let (moment, warns) = folder.moment(value).unwrap_or((Default::default(), true));
    if value.is_null() || (warns && !once) {
        return;
    }
    *text = if to_date && moment.time() == highkey_types::Time::default() {
        Expr::literal(Value::Date(moment.date), ExprType::column(ColumnType::new(TypeKind::Date), false))
    } else {
        Expr::literal(Value::DateTime(moment), ExprType::column(ColumnType::new(TypeKind::DateTime(6)), false))
    };
}

/// A TIME against a string: a column with a time of day against a constant that is one compares as times, as MySQL stores constants into the column first;
/// all else as strings.
fn time_and_text(time: &mut Expr, text: &mut Expr, folder: &Folder<'_>) -> CompareBy {
    if is_column(time) {
        if let Some(stored) = stored_time(time, text, folder) {
            *text = stored;
            return CompareBy::Time;
        }
        // What it is, is known when the statement runs.
        let open = !matches!(text.kind, ExprKind::Literal(_) | ExprKind::UserVar(_)) && text.is_constant() && !has_outer(text);
        if open {
            if !matches!(text.kind, ExprKind::Param(_)) {
                *text = Expr { kind: ExprKind::Cast(Box::new(text.clone())), ty: time_type(time) };
            }
            return CompareBy::Time;
        }
    }
    let collation = text.ty.ty.collation;
    as_text(time, collation, folder);
    CompareBy::Text(collation)
}

/// A constant as a TIME column stores it; `None` if it warns of it.
fn stored_time(column: &Expr, constant: &Expr, folder: &Folder<'_>) -> Option<Expr> {
    let fsp = column.ty.ty.fsp();
    let stored = |value: &Value| {
        folder.quietly(|cx| {
            let time = cast::to_time(value, cx)?;
            let time = if cx.mode.time_truncate_fractional { time.truncate(fsp) } else { time.round(fsp) };
            (time == time.clamped()).then_some(time)
        })
    };
    match &constant.kind {
        ExprKind::Literal(value) => stored(value).map(|time| Expr::literal(Value::Time(time), time_type(column).with_nullable(false))),
        // Its value may change before it is looked at.
        ExprKind::UserVar(name) => {
            stored(&folder.user_var(name)?)?;
            Some(Expr { kind: ExprKind::Cast(Box::new(constant.clone())), ty: time_type(column) })
        }
        _ => None,
    }
}

/// The type of what a TIME column is compared with.
fn time_type(column: &Expr) -> ExprType {
    ExprType::column(ColumnType::new(TypeKind::Time(column.ty.ty.fsp())), true)
}

/// It depends on a row of a query around it, which is no constant to MySQL.
fn has_outer(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::Outer { .. }));
    found
}

/// A literal string as a time of day, if it is one and nothing else: what is none equals none.
fn as_time(text: &mut Expr, folder: &Folder<'_>) {
    let (Class::Text, ExprKind::Literal(Value::Text(value))) = (class(&text.ty), &text.kind) else { return };
    let time = parse_time(value).is_ok_and(|time| !time.had_date).then(|| folder.quietly(|cx| cast::to_time(&Value::Text(value.clone()), cx))).flatten();
    if let Some(time) = time {
        *text = Expr::literal(Value::Time(time), ExprType::column(ColumnType::new(TypeKind::Time(6)), false));
    }
}

/// A date or a time as the text that it shows.
fn as_text(temporal: &mut Expr, collation: &'static Collation, folder: &Folder<'_>) {
    let ty = ExprType::text(temporal.ty.char_length(), collation, temporal.ty.nullable).with_coercibility(temporal.ty.coercibility);
    *temporal = folder.fold(Expr { kind: ExprKind::Cast(Box::new(temporal.clone())), ty });
}

/// An integer column against a string: an integer if the string is one, as MySQL stores constants into the column first.
fn integer_literal(number: &Expr, text: &mut Expr) -> CompareBy {
    // ENUM and SET never come here: they are text. YEAR and BIT are integers.
    if let (true, ExprKind::Literal(value)) = (is_column(number), &text.kind)
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

/// A YEAR, or a column with a date, against a constant: what the constant is once it is stored into the column, as MySQL does first, if it can be.
/// (A parameter that is left open stays as it is, and no plan with it is kept: see `prepared`.)
fn stored_constant(column: &Expr, constant: &Expr, folder: &Folder<'_>) -> Option<Expr> {
    if !is_column(column) {
        return None;
    }
    let ty = &column.ty.ty;
    match (&ty.kind, &constant.kind) {
        (TypeKind::Year, ExprKind::Literal(value)) => year(value).map(|year| Expr::literal(Value::Int(year), ExprType::bigint(false))),
        (TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_), ExprKind::Literal(value)) => {
            let moment = stored_moment(value, ty, folder)?;
            let value = if ty.kind == TypeKind::Date { Value::Date(moment.date) } else { Value::DateTime(moment) };
            Some(Expr::literal(value, ExprType::column(stored_type(ty), false)))
        }
        // Its value may change before it is looked at.
        (TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_), ExprKind::UserVar(name)) => {
            stored_moment(&folder.user_var(name)?, ty, folder)?;
            Some(Expr { kind: ExprKind::Cast(Box::new(constant.clone())), ty: ExprType::column(stored_type(ty), true) })
        }
        _ => None,
    }
}

/// The type of what a column with a date is compared with.
fn stored_type(ty: &ColumnType) -> ColumnType {
    ColumnType::new(if ty.kind == TypeKind::Date { TypeKind::Date } else { TypeKind::DateTime(ty.fsp()) })
}

/// A number or a string as a column with a date stores it; a DATE leaves out the time.
fn stored_moment(value: &Value, ty: &ColumnType, folder: &Folder<'_>) -> Option<highkey_types::DateTime> {
    folder.quietly(|cx| {
        let moment = cast::to_datetime(value, cx)?;
        let moment = if cx.mode.time_truncate_fractional { moment.truncate(ty.fsp()) } else { moment.round(ty.fsp())? };
        let out_of_range = matches!(ty.kind, TypeKind::Timestamp(_)) && !moment.is_zero() && cx.time_zone.to_utc(&moment).is_none();
        (!out_of_range).then_some(moment)
    })
}

/// The year that a YEAR column makes of a date, of a number, or of the number that a string begins with.
fn year(value: &Value) -> Option<i64> {
    use highkey_types::Decimal;
    let (number, text) = match value {
        Value::Int(n) => (Decimal::from(*n), None),
        Value::Decimal(n) => (*n, None),
        Value::Double(n) => (Decimal::from_f64(*n)?, None),
        Value::Date(date) => return Some(i64::from(date.year)),
        Value::DateTime(moment) => return Some(i64::from(moment.date.year)),
        Value::Text(text) => {
            let parsed = Decimal::parse_prefix(text.as_bytes());
            if parsed.length == 0 || parsed.overflow {
                return None;
            }
            (parsed.value, Some(text))
        }
        _ => return None,
    };
    // A string may round up to the year 0000.
    if number.is_negative() && text.is_none() {
        return None;
    }
    match number.to_i64()? {
        // '0' and '00' are 2000, the number 0 and '0000' the year 0000.
        0 if text.is_some_and(|text| text.len() != 4) => Some(2000),
        0 => Some(0),
        n @ 1..=69 => Some(2000 + n),
        n @ 70..=99 => Some(1900 + n),
        n @ 1901..=2155 => Some(n),
        _ => None,
    }
}

/// The constant of a comparison, stored into the column on the other side.
fn store_constant(left: &mut Expr, right: &mut Expr, folder: &Folder<'_>) {
    // A string becomes a date of its own kind: it keeps digits of the second that the column does not have.
    let stores = |column: &Expr, constant: &Expr| match &column.ty.ty.kind {
        TypeKind::Year => true,
        TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_) => constant.ty.ty.is_number(),
        _ => false,
    };
    if is_column(left) && stores(left, right) {
        if let Some(stored) = stored_constant(left, right, folder) {
            *right = stored;
        }
    } else if stores(right, left) {
        if let Some(stored) = stored_constant(right, left, folder) {
            *left = stored;
        }
    } else if let Some(stored) = time_of_constant(left, right, folder) {
        *right = stored;
    } else if let Some(stored) = time_of_constant(right, left, folder) {
        *left = stored;
    }
}

/// The time of day that a TIME column takes from a literal number or date; strings are for `time_and_text`.
fn time_of_constant(column: &Expr, constant: &Expr, folder: &Folder<'_>) -> Option<Expr> {
    let takes = matches!(class(&constant.ty), Class::Int | Class::Decimal | Class::Real | Class::Date | Class::DateTime);
    if takes && is_column(column) && class(&column.ty) == Class::Time { stored_time(column, constant, folder) } else { None }
}

/// The constants of a list, stored into the column before it: for dates and times all or none of a list of numbers, for years each of a list of strings or dates.
fn store_constants(column: &Expr, list: &mut [Expr], folder: &Folder<'_>) {
    let classes: Vec<Class> = list.iter().map(|item| class(&item.ty)).collect();
    let all = |wanted: &[Class]| classes.iter().all(|class| wanted.contains(class));
    match &column.ty.ty.kind {
        TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_) if list.iter().all(|item| item.ty.ty.is_number()) => {
            let stored: Option<Vec<Expr>> = list.iter().map(|item| stored_constant(column, item, folder)).collect();
            if let Some(stored) = stored {
                list.clone_from_slice(&stored);
            }
        }
        TypeKind::Time(_) if list.iter().all(|item| item.ty.ty.is_number()) => {
            let stored: Option<Vec<Expr>> = list.iter().map(|item| time_of_constant(column, item, folder)).collect();
            if let Some(stored) = stored {
                list.clone_from_slice(&stored);
            }
        }
        TypeKind::Year if all(&[Class::Text, Class::Null]) || all(&[Class::Date, Class::DateTime]) => {
            for item in list {
                if let Some(stored) = stored_constant(column, item, folder) {
                    *item = stored;
                }
            }
        }
        _ => {}
    }
}

/// How two scalars are compared.
pub(super) type Comparison = fn(CompareOp, Expr, Expr, &Folder<'_>) -> Result<Expr, MySqlError>;

/// `left op right` of two scalars.
pub(super) fn comparison(op: CompareOp, mut left: Expr, mut right: Expr, folder: &Folder<'_>) -> Result<Expr, MySqlError> {
    if (left.ty.ty.is_geometry() || right.ty.ty.is_geometry()) && !matches!(op, CompareOp::Eq | CompareOp::NullSafeEq | CompareOp::Ne) {
        return Err(highkey_types::errors::wrong_arguments(op.symbol()));
    }
    store_constant(&mut left, &mut right, folder);
    let doubtful = op == CompareOp::Eq && (is_doubtful(&left, &right, folder) || is_doubtful(&right, &left, folder));
    let by = if doubtful { CompareBy::DateTime } else { unify(&mut left, &mut right, folder, op.symbol())? };
    Ok(compared(op, by, left, right, folder))
}

/// A column with a date against a literal string that is one with something behind it. MySQL stores what equals a column into it, which strict mode hears of: it
/// is read when it is compared.
fn is_doubtful(column: &Expr, text: &Expr, folder: &Folder<'_>) -> bool {
    let dated = is_column(column) && matches!(class(&column.ty), Class::Date | Class::DateTime) && class(&text.ty) == Class::Text;
    dated && text.as_literal().and_then(|value| folder.moment(value)).is_some_and(|(_, warns)| warns)
}

/// The same in CASE and in lists: JSON counts as its text, constants as they are written, and the left operand says what strings are: moments beside a date, times
/// of day beside a time. Beside a string dates and times are text.
pub(super) fn comparison_of_text(op: CompareOp, mut left: Expr, mut right: Expr, folder: &Folder<'_>) -> Result<Expr, MySqlError> {
    use Class::*;
    let by = match (class(&left.ty), class(&right.ty)) {
        (Date | DateTime, Text) => beside_date(&left, &mut right, false, folder),
        (Time, Text | Date | DateTime) => {
            as_time(&mut right, folder);
            CompareBy::Time
        }
        (Text, Date | DateTime | Time) => {
            as_text(&mut right, left.ty.ty.collation, folder);
            unify_text(&mut left, &mut right, folder, op.symbol())?
        }
        _ => unify_text(&mut left, &mut right, folder, op.symbol())?,
    };
    Ok(compared(op, by, left, right, folder))
}

/// The same of the members of rows in a list: dates on either side make moments of strings.
pub(super) fn comparison_of_members(op: CompareOp, mut left: Expr, mut right: Expr, folder: &Folder<'_>) -> Result<Expr, MySqlError> {
    use Class::*;
    let by = match (class(&left.ty), class(&right.ty)) {
        (Date | DateTime, Text) => beside_date(&left, &mut right, true, folder),
        (Text, Date | DateTime) => beside_date(&right, &mut left, true, folder),
        (Time, Text) | (Text, Time) => return comparison_of_text(op, left, right, folder),
        _ => return comparison(op, left, right, folder),
    };
    Ok(compared(op, by, left, right, folder))
}

/// The same of the members of the only row in a list: no TIME takes a string into itself.
pub(super) fn comparison_of_only_members(op: CompareOp, mut left: Expr, mut right: Expr, folder: &Folder<'_>) -> Result<Expr, MySqlError> {
    match (class(&left.ty), class(&right.ty)) {
        (Class::Time, Class::Text) => as_text(&mut left, right.ty.ty.collation, folder),
        (Class::Text, Class::Time) => as_text(&mut right, left.ty.ty.collation, folder),
        _ => {}
    }
    comparison(op, left, right, folder)
}

fn compared(op: CompareOp, by: CompareBy, left: Expr, right: Expr, folder: &Folder<'_>) -> Expr {
    let nullable = op != CompareOp::NullSafeEq && (left.ty.nullable || right.ty.nullable);
    let kind = ExprKind::Compare { op, by, left: Box::new(left), right: Box::new(right) };
    folder.fold(Expr { kind, ty: ExprType::boolean(nullable) })
}

/// `expr >= low` and `expr <= high`, or `expr < low` and `expr > high` for NOT BETWEEN; `exprs` is the one expression, bound for either. MySQL has one
/// domain for all three: strings beside a number are numbers, and beside a date dates. So '50' BETWEEN 9 AND 'a' is 50 between 9 and 0.
pub(super) fn between(negated: bool, exprs: [Expr; 2], bounds: [Expr; 2], folder: &Folder<'_>) -> Result<[Expr; 2], MySqlError> {
    if exprs.iter().chain(&bounds).any(|expr| expr.ty.ty.is_geometry()) {
        return Err(highkey_types::errors::wrong_arguments("between"));
    }
    let classes = [class(&exprs[0].ty), class(&bounds[0].ty), class(&bounds[1].ty)];
    let numbers = classes.iter().any(|class| matches!(class, Class::Int | Class::Decimal | Class::Real));
    let dates = classes.iter().any(|class| matches!(class, Class::Date | Class::DateTime));
    let strings = classes.contains(&Class::Text) && !classes.contains(&Class::Json);
    // An integer column takes strings that are integers (`integer_literal`), TIME beside a number each for itself, a YEAR and what has a date what they can store.
    let [stored_low, stored_high] = match bounds.each_ref().map(|bound| time_of_constant(&exprs[0], bound, folder)) {
        [Some(low), Some(high)] if numbers => [Some(low), Some(high)],
        _ => bounds.each_ref().map(|bound| stored_constant(&exprs[0], bound, folder)),
    };
    let is_integer = |bound: &Expr| {
        let ExprKind::Literal(value) = &bound.kind else { return false };
        value.as_i64().is_some() || value.as_str().is_some_and(|text| text.trim().parse::<i64>().is_ok())
    };
    let takes = if exprs[0].ty.ty.is_integer() { bounds.iter().all(is_integer) } else { classes[0] == Class::Time };
    let fit = (stored_low.is_some() && stored_high.is_some()) || (is_column(&exprs[0]) && takes);
    let stores = numbers || !dates;
    let [low, high] = bounds;
    let low = if stores { stored_low.unwrap_or(low) } else { low };
    let high = if stores { stored_high.unwrap_or(high) } else { high };
    let times = strings && !numbers && !dates && classes.contains(&Class::Time);
    let ([first, second], [low, high]) = if times { between_times(exprs, [low, high], folder) } else { (exprs, [low, high]) };
    // One collation for the three of them.
    let texts = classes.iter().all(|class| *class == Class::Text);
    let collation = if texts { Some(collation::aggregate(&[&first, &low, &high], folder.collation(), true, "between")?.0) } else { None };
    let ([first, second], [low, high]) = match collation {
        Some(Collation { charset: Charset::Binary, .. }) => ([first, second].map(|expr| as_bytes(expr, folder)), [low, high].map(|bound| as_bytes(bound, folder))),
        _ => ([first, second], [low, high]),
    };
    let collation = collation.filter(|collation| !collation.charset.is_recoded());

    let side = |op: CompareOp, mut left: Expr, mut right: Expr| -> Result<Expr, MySqlError> {
        let by = if let Some(collation) = collation {
            CompareBy::Text(collation)
        } else if strings && numbers && !fit {
            (left, right) = (chosen_number(left), chosen_number(right));
            CompareBy::Double
        } else if strings && dates && !numbers {
            let to_date = class(&left.ty) == Class::Date || class(&right.ty) == Class::Date;
            as_moment(&mut left, to_date, false, folder);
            as_moment(&mut right, to_date, false, folder);
            if class(&left.ty) == Class::Date && class(&right.ty) == Class::Date { CompareBy::Date } else { CompareBy::DateTime }
        } else {
            unify_text(&mut left, &mut right, folder, "between")?
        };
        Ok(compared(op, by, left, right, folder))
    };
    let (low_op, high_op) = if negated { (CompareOp::Lt, CompareOp::Gt) } else { (CompareOp::Ge, CompareOp::Le) };
    Ok([side(low_op, first, low)?, side(high_op, second, high)?])
}

/// The operands of BETWEEN where they are times of day and strings. A column takes literals into itself. If it takes one of the two only, MySQL compares integers,
/// of which what is taken has its bits. All else are strings.
fn between_times(mut exprs: [Expr; 2], mut bounds: [Expr; 2], folder: &Folder<'_>) -> ([Expr; 2], [Expr; 2]) {
    if is_column(&exprs[0]) && class(&exprs[0].ty) == Class::Time {
        // What is known only when the statement runs is compared with each for itself.
        if bounds.iter().any(|bound| !matches!(bound.kind, ExprKind::Literal(_)) && bound.is_known()) {
            return (exprs, bounds);
        }
        match bounds.each_ref().map(|bound| stored_time(&exprs[0], bound, folder)) {
            [Some(low), Some(high)] => return (exprs, [low, high]),
            [None, None] => {}
            [low, high] => {
                let [other_low, other_high] = bounds;
                return (exprs.map(|expr| as_integer(expr, folder)), [time_bits(low, other_low, folder), time_bits(high, other_high, folder)]);
            }
        }
    }
    let collation = exprs.iter().chain(&bounds).find(|e| class(&e.ty) == Class::Text).map_or(folder.collation(), |e| e.ty.ty.collation);
    for expr in exprs.iter_mut().chain(&mut bounds).filter(|e| class(&e.ty) == Class::Time) {
        as_text(expr, collation, folder);
    }
    (exprs, bounds)
}

/// MySQL's integer for a time that a column has taken; of what it has not taken the number that it begins with.
fn time_bits(taken: Option<Expr>, other: Expr, folder: &Folder<'_>) -> Expr {
    let Some(ExprKind::Literal(Value::Time(time))) = taken.map(|expr| expr.kind) else { return as_integer(other, folder) };
    let clock = i64::from(time.hours()) << 12 | i64::from(time.minutes()) << 6 | i64::from(time.seconds());
    let bits = (clock << 24) + i64::from(time.subsec_micros());
    Expr::int(if time.is_negative() { -bits } else { bits })
}

fn as_integer(expr: Expr, folder: &Folder<'_>) -> Expr {
    let ty = ExprType::bigint(expr.ty.nullable);
    folder.fold(Expr { kind: ExprKind::Cast(Box::new(expr)), ty })
}

/// A literal binary string that is compared as text of a column whose character set has bytes of its own: its bytes are characters of that.
fn bytes_as_text(expr: &mut Expr, collation: &'static Collation) {
    if let ExprKind::Literal(Value::Bytes(bytes)) = &expr.kind {
        let text = collation.charset.decode_lossy(bytes);
        let ty = ExprType::text(text.chars().count() as u32, collation, false).with_coercibility(expr.ty.coercibility);
        *expr = Expr::literal(Value::Text(text.as_ref().into()), ty);
    }
}

/// Several literal strings that are not all integers (`integer_literal`): beside a number all of them are doubles.
fn are_texts(list: &[Expr]) -> bool {
    let text = |item: &Expr| match &item.kind {
        ExprKind::Literal(Value::Text(text)) => Some(text.trim().parse::<i64>().is_err() && text.trim().parse::<u64>().is_err()),
        ExprKind::Literal(Value::Null) => Some(false),
        _ => None,
    };
    let kinds: Option<Vec<bool>> = list.iter().map(text).collect();
    list.len() > 1 && kinds.is_some_and(|kinds| kinds.contains(&true))
}

/// The domain of a list in which strings, dates and times meet; `None` if they meet as strings, which they then are, or do not meet. Of one member it is that of `=`.
fn unify_temporal_list(expr: &mut Expr, list: &mut [Expr], folder: &Folder<'_>) -> Option<CompareBy> {
    use Class::*;
    let classes: Vec<Class> = std::iter::once(&*expr).chain(list.iter()).map(|e| class(&e.ty)).collect();
    let strings = classes.iter().all(|class| matches!(class, Null | Date | DateTime | Time | Text));
    if list.len() < 2 || !strings || !classes.contains(&Text) {
        return None;
    }
    if classes.contains(&Date) || classes.contains(&DateTime) {
        return Some(list_of_moments(expr, list, folder));
    }
    if !classes.contains(&Time) {
        return None;
    }
    let collation = std::iter::once(&*expr).chain(list.iter()).find(|e| class(&e.ty) == Text).map_or(folder.collation(), |e| e.ty.ty.collation);
    if classes[0] == Time {
        if !list.iter().all(|item| matches!(item.kind, ExprKind::Literal(_) | ExprKind::UserVar(_))) {
            list.iter_mut().for_each(|item| as_time(item, folder));
            return Some(CompareBy::Time);
        }
        if is_column(expr) {
            let stored: Vec<Option<Expr>> = list.iter().map(|item| stored_time(expr, item, folder)).collect();
            let Some(other) = list.iter().zip(&stored).find(|(_, stored)| stored.is_none()).map(|(item, _)| item.clone()) else {
                list.iter_mut().zip(stored.into_iter().flatten()).for_each(|(item, stored)| *item = stored);
                return Some(CompareBy::Time);
            };
            // MySQL leaves the list one of strings, but those that the column takes are no strings any more: they equal nothing.
            list.iter_mut().zip(&stored).filter(|(_, stored)| stored.is_some()).for_each(|(item, _)| *item = other.clone());
        }
    }
    for expr in std::iter::once(expr).chain(list).filter(|e| class(&e.ty) == Time) {
        as_text(expr, collation, folder);
    }
    None
}

/// A list with a date in it: all strings are moments, or dates if all of them are.
fn list_of_moments(expr: &mut Expr, list: &mut [Expr], folder: &Folder<'_>) -> CompareBy {
    let once = list.iter().all(Expr::is_known);
    let is_date = |e: &Expr| match class(&e.ty) {
        Class::Null | Class::Date => true,
        Class::Text => e.as_literal().is_some_and(|value| {
            let (moment, warns) = folder.moment(value).unwrap_or((Default::default(), !value.is_null()));
            moment.time() == highkey_types::Time::default() && (once || !warns)
        }),
        _ => false,
    };
    let to_date = is_date(expr) && list.iter().all(is_date);
    for operand in std::iter::once(expr).chain(list) {
        as_moment(operand, to_date, once, folder);
    }
    if to_date { CompareBy::Date } else { CompareBy::DateTime }
}

/// The domain in which a value compares with every member of a list.
pub(super) fn unify_list(expr: &mut Expr, list: &mut [Expr], folder: &Folder<'_>) -> Result<Option<CompareBy>, MySqlError> {
    store_constants(expr, list, folder);
    if matches!(class(&expr.ty), Class::Int | Class::Decimal | Class::Real) && are_texts(list) {
        return Ok(Some(CompareBy::Double));
    }
    if let Some(by) = unify_temporal_list(expr, list, folder) {
        return Ok(Some(by));
    }
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
    if domain == Some(CompareBy::Double) {
        *expr = chosen_number(std::mem::replace(expr, Expr::null()));
    }
    if let Some(CompareBy::Text(collation)) = domain
        && collation.charset == Charset::Binary
    {
        *expr = as_bytes(expr.clone(), folder);
    }
    Ok(Some(domain.unwrap_or(CompareBy::Dynamic)))
}
