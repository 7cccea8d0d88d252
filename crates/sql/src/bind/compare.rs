//! In what domain two expressions compare, and literals converted to it once.

use highkey_types::{Charset, Collation, ColumnType, MySqlError, TypeKind, Value, cast};

use super::collation;
use super::fold::Folder;
use super::merge::as_bytes;
use super::scope::is_column;
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
            } else if collation.charset == Charset::Latin1 {
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

/// A TIME against a string: a column with a time of day against a constant that is one compares as times, as MySQL stores constants into the column first;
/// all else as strings.
fn time_and_text(time: &mut Expr, text: &mut Expr, folder: &Folder<'_>) -> CompareBy {
    if is_column(time) {
        match &text.kind {
            ExprKind::Literal(value) => {
                if let Some(stored) = folder.quietly(|cx| cast::to_time(value, cx)) {
                    *text = Expr::literal(Value::Time(stored), ExprType::column(ColumnType::new(TypeKind::Time(6)), false));
                    return CompareBy::Time;
                }
            }
            ExprKind::UserVar(_) => return CompareBy::Time,
            _ if text.is_constant() => return CompareBy::Time,
            _ => {}
        }
    }
    let collation = text.ty.ty.collation;
    let ty = ExprType::text(time.ty.char_length(), collation, time.ty.nullable).with_coercibility(time.ty.coercibility);
    *time = folder.fold(Expr { kind: ExprKind::Cast(Box::new(time.clone())), ty });
    CompareBy::Text(collation)
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

/// The year that a YEAR column makes of a number, or of the number that a string begins with.
fn year(value: &Value) -> Option<i64> {
    use highkey_types::Decimal;
    let (number, text) = match value {
        Value::Int(n) => (Decimal::from(*n), None),
        Value::Decimal(n) => (*n, None),
        Value::Double(n) => (Decimal::from_f64(*n)?, None),
        Value::Text(text) => {
            let parsed = Decimal::parse_prefix(text.as_bytes());
            if parsed.length == 0 || parsed.overflow {
                return None;
            }
            (parsed.value, Some(text))
        }
        _ => return None,
    };
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
    if stores(left, right) {
        if let Some(stored) = stored_constant(left, right, folder) {
            *right = stored;
        }
    } else if stores(right, left)
        && let Some(stored) = stored_constant(right, left, folder)
    {
        *left = stored;
    }
}

/// The constants of a list, stored into the column before it: for dates all or none of a list of numbers, for years each of a list of strings.
fn store_constants(column: &Expr, list: &mut [Expr], folder: &Folder<'_>) {
    match &column.ty.ty.kind {
        TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_) if list.iter().all(|item| item.ty.ty.is_number()) => {
            let stored: Option<Vec<Expr>> = list.iter().map(|item| stored_constant(column, item, folder)).collect();
            if let Some(stored) = stored {
                list.clone_from_slice(&stored);
            }
        }
        TypeKind::Year if list.iter().all(|item| matches!(class(&item.ty), Class::Text | Class::Null)) => {
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
    store_constant(&mut left, &mut right, folder);
    let by = unify(&mut left, &mut right, folder, op.symbol())?;
    Ok(compared(op, by, left, right, folder))
}

/// The same in CASE and in lists: JSON counts as its text, and constants as they are written.
pub(super) fn comparison_of_text(op: CompareOp, mut left: Expr, mut right: Expr, folder: &Folder<'_>) -> Result<Expr, MySqlError> {
    let by = unify_text(&mut left, &mut right, folder, op.symbol())?;
    Ok(compared(op, by, left, right, folder))
}

fn compared(op: CompareOp, by: CompareBy, left: Expr, right: Expr, folder: &Folder<'_>) -> Expr {
    let nullable = op != CompareOp::NullSafeEq && (left.ty.nullable || right.ty.nullable);
    let kind = ExprKind::Compare { op, by, left: Box::new(left), right: Box::new(right) };
    folder.fold(Expr { kind, ty: ExprType::boolean(nullable) })
}

/// `expr >= low` and `expr <= high`, or `expr < low` and `expr > high` for NOT BETWEEN; `exprs` is the one expression, bound for either. MySQL has one
/// domain for all three: strings beside a number are numbers, and beside a date dates. So '50' BETWEEN 9 AND 'a' is 50 between 9 and 0.
pub(super) fn between(negated: bool, exprs: [Expr; 2], bounds: [Expr; 2], folder: &Folder<'_>) -> Result<[Expr; 2], MySqlError> {
    let classes = [class(&exprs[0].ty), class(&bounds[0].ty), class(&bounds[1].ty)];
    let numbers = classes.iter().any(|class| matches!(class, Class::Int | Class::Decimal | Class::Real));
    let dates = classes.iter().any(|class| matches!(class, Class::Date | Class::DateTime));
    let strings = classes.contains(&Class::Text) && !classes.contains(&Class::Json);
    // An integer column takes strings that are integers (`integer_literal`), TIME each for itself, a YEAR and what has a date what they can store.
    let [stored_low, stored_high] = bounds.each_ref().map(|bound| stored_constant(&exprs[0], bound, folder));
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

    let side = |op: CompareOp, mut left: Expr, mut right: Expr| -> Result<Expr, MySqlError> {
        let by = if strings && numbers && !fit {
            CompareBy::Double
        } else if strings && dates && !numbers {
            let to_date = class(&left.ty) == Class::Date || class(&right.ty) == Class::Date;
            text_to_moment(&mut left, to_date, folder);
            text_to_moment(&mut right, to_date, folder);
            if class(&left.ty) == Class::Date && class(&right.ty) == Class::Date { CompareBy::Date } else { CompareBy::DateTime }
        } else {
            unify_text(&mut left, &mut right, folder, "between")?
        };
        Ok(compared(op, by, left, right, folder))
    };
    let (low_op, high_op) = if negated { (CompareOp::Lt, CompareOp::Gt) } else { (CompareOp::Ge, CompareOp::Le) };
    let [first, second] = exprs;
    Ok([side(low_op, first, low)?, side(high_op, second, high)?])
}

/// A literal binary string that is compared as text of a column's latin1 collation: its bytes are characters of that.
fn bytes_as_text(expr: &mut Expr, collation: &'static Collation) {
    if let ExprKind::Literal(Value::Bytes(bytes)) = &expr.kind {
        let text = collation.charset.decode_lossy(bytes);
        let ty = ExprType::text(text.chars().count() as u32, collation, false).with_coercibility(expr.ty.coercibility);
        *expr = Expr::literal(Value::Text(text.as_ref().into()), ty);
    }
}

/// A literal string as a moment, or as a date if it is one and that is what it is compared with. One that is neither is the zero date.
fn text_to_moment(expr: &mut Expr, to_date: bool, folder: &Folder<'_>) {
    let ExprKind::Literal(value) = &expr.kind else { return };
    if class(&expr.ty) != Class::Text {
        return;
    }
    let moment = folder.quietly(|cx| cast::to_datetime(value, cx)).unwrap_or_default();
    *expr = if to_date && moment.time() == highkey_types::Time::default() {
        Expr::literal(Value::Date(moment.date), ExprType::column(ColumnType::new(TypeKind::Date), false))
    } else {
        Expr::literal(Value::DateTime(moment), ExprType::column(ColumnType::new(TypeKind::DateTime(6)), false))
    };
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

/// The domain in which a value compares with every member of a list.
pub(super) fn unify_list(expr: &mut Expr, list: &mut [Expr], folder: &Folder<'_>) -> Result<Option<CompareBy>, MySqlError> {
    store_constants(expr, list, folder);
    if matches!(class(&expr.ty), Class::Int | Class::Decimal | Class::Real) && are_texts(list) {
        return Ok(Some(CompareBy::Double));
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
    if let Some(CompareBy::Text(collation)) = domain
        && collation.charset == Charset::Binary
    {
        *expr = as_bytes(expr.clone(), folder);
    }
    Ok(Some(domain.unwrap_or(CompareBy::Dynamic)))
}
