//! One type for several expressions: the branches of CASE and COALESCE, the sides of UNION.

use highkey_types::{ALL_DIGITS, Collation, ColumnType, GeometryType, MySqlError, Shape, TypeKind};

use super::collation;
use super::fold::Folder;
use crate::functions::FuncId;
use crate::plan::{Coercibility, Expr, ExprKind, ExprType};

/// What takes the values, of which MySQL has one type each for a FLOAT, a BIT and small integers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Rule {
    /// IF, CASE and NULLIF: a FLOAT is a double, a BIT stays one.
    Branches,
    /// COALESCE, GREATEST and the like: a FLOAT is a double, a BIT its number.
    Values,
    /// IFNULL: a FLOAT shows what a double shows, and is kept as the FLOAT that it is.
    IfNull,
    /// The columns of queries: a FLOAT beside what it holds stays one.
    Union,
}

/// Classes of type, as far as merging needs them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Class {
    Integer,
    Decimal,
    Real,
    Date,
    Time,
    DateTime,
    Text,
    Binary,
    Json,
    Geometry,
}

fn class(ty: &ColumnType) -> Class {
    match ty.kind {
        TypeKind::Decimal { .. } => Class::Decimal,
        TypeKind::Float | TypeKind::Double => Class::Real,
        TypeKind::Date => Class::Date,
        TypeKind::Time(_) => Class::Time,
        TypeKind::DateTime(_) | TypeKind::Timestamp(_) => Class::DateTime,
        TypeKind::Json => Class::Json,
        TypeKind::Geometry(_) => Class::Geometry,
        _ if ty.is_binary() => Class::Binary,
        _ if ty.is_string() => Class::Text,
        _ => Class::Integer,
    }
}

/// The type that holds the values of all of `exprs`; nullable if any is (the caller may know better).
pub(super) fn merge(exprs: &[&Expr], rule: Rule, connection: &'static Collation, operation: &str) -> Result<ExprType, MySqlError> {
    let nullable = exprs.iter().any(|e| e.ty.nullable);
    let typed: Vec<&Expr> = exprs.iter().copied().filter(|e| !e.ty.is_null_type()).collect();
    let Some(first) = typed.first() else { return Ok(ExprType::null()) };
    if typed.iter().all(|e| e.ty.ty == first.ty.ty && e.ty.coercibility == first.ty.coercibility) && is_kept(&first.ty, rule) {
        return Ok(ExprType { nullable, truth: false, ..first.ty.clone() });
    }
    let classes: Vec<Class> = typed.iter().map(|e| class(&e.ty.ty)).collect();
    let all = |allowed: &[Class]| classes.iter().all(|c| allowed.contains(c));
    let fsp = typed.iter().map(|e| e.ty.ty.fsp()).max().unwrap_or(0);
    let ty = if all(&[Class::Integer]) {
        merge_integers(&typed, rule)
    } else if all(&[Class::Integer, Class::Decimal]) {
        let digits = typed.iter().map(|e| e.ty.decimal_digits());
        let (int, scale) = digits.fold((0, 0), |a, b| (a.0.max(b.0), a.1.max(b.1)));
        return Ok(ExprType::decimal(int + scale, scale, nullable));
    } else if all(&[Class::Integer, Class::Decimal, Class::Real]) {
        merge_reals(&typed, rule)
    } else if all(&[Class::Date]) {
        ColumnType::new(TypeKind::Date)
    } else if all(&[Class::Time]) {
        ColumnType::new(TypeKind::Time(fsp))
    } else if all(&[Class::Date, Class::Time, Class::DateTime]) {
        let timestamps = typed.iter().all(|e| matches!(e.ty.ty.kind, TypeKind::Timestamp(_)));
        ColumnType::new(if timestamps { TypeKind::Timestamp(fsp) } else { TypeKind::DateTime(fsp) })
    } else if all(&[Class::Json]) {
        ColumnType::new(TypeKind::Json)
    } else if all(&[Class::Geometry]) {
        // Of one kind if they all are, of any SRID.
        let shapes: Vec<Option<Shape>> = typed.iter().map(|e| e.ty.ty.shape()).collect();
        let shape = shapes[0].filter(|_| shapes.iter().all(|shape| *shape == shapes[0])).unwrap_or(Shape::Geometry);
        return Ok(ExprType::column(ColumnType::new(TypeKind::Geometry(GeometryType::new(shape))), nullable));
    } else {
        let (collation, coercibility) = collation::aggregate(&typed, connection, false, operation)?;
        let length = typed.iter().map(|e| e.ty.char_length()).max().unwrap_or(0);
        let binary = classes.contains(&Class::Binary) || classes.contains(&Class::Geometry) || typed.iter().any(|e| matches!(e.ty.ty.kind, TypeKind::Bit(_)));
        let collation = if binary { Collation::binary() } else { collation };
        let mut text = ExprType::text(length, collation, nullable).with_coercibility(coercibility.min(Coercibility::Coercible));
        // What a TEXT or BLOB meets in a function is as long as can be.
        text.ty.kind = match text.ty.kind {
            TypeKind::MediumText if rule != Rule::Union => TypeKind::LongText,
            TypeKind::MediumBlob if rule != Rule::Union => TypeKind::LongBlob,
            kind => kind,
        };
        return Ok(text);
    };
    Ok(ExprType { ty, nullable, coercibility: Coercibility::Numeric, truth: false })
}

/// Several values of the same type have that type.
fn is_kept(ty: &ExprType, rule: Rule) -> bool {
    match ty.ty.kind {
        TypeKind::Bit(_) => matches!(rule, Rule::Branches | Rule::Union),
        TypeKind::Float => rule == Rule::Union && ty.ty.float_digits.is_none(),
        TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt => matches!(rule, Rule::IfNull | Rule::Union),
        _ => !has_members(ty),
    }
}

/// Digits behind the point that a number shows: [`ALL_DIGITS`] if they are as many as it has.
fn shown_digits(ty: &ColumnType) -> u8 {
    match ty.kind {
        TypeKind::Decimal { scale, .. } => scale,
        TypeKind::Float | TypeKind::Double => ty.fixed_digits().unwrap_or(ALL_DIGITS),
        _ => 0,
    }
}

/// Numbers with a FLOAT or DOUBLE among them.
fn merge_reals(typed: &[&Expr], rule: Rule) -> ColumnType {
    let float = merges_to_float(typed);
    let digits = typed.iter().map(|e| shown_digits(&e.ty.ty)).max().unwrap_or(ALL_DIGITS);
    let length = typed.iter().map(|e| e.ty.ty.display_length()).max().unwrap_or(0);
    let whole = typed.iter().map(|e| e.ty.ty.display_length().saturating_sub(u32::from(shown_digits(&e.ty.ty)))).max().unwrap_or(0);
    let fitting = whole + u32::from(digits);
    let doubles = typed.iter().any(|e| e.ty.ty.kind == TypeKind::Double);
    let total = match rule {
        Rule::Union => fitting,
        Rule::IfNull if !doubles => length,
        Rule::Branches | Rule::Values if float => fitting,
        _ => DOUBLE_LENGTH,
    };
    let kept = float && matches!(rule, Rule::IfNull | Rule::Union);
    let mut ty = ColumnType::new(if kept { TypeKind::Float } else { TypeKind::Double });
    ty.float_digits = match digits {
        ALL_DIGITS => (kept && rule == Rule::IfNull).then_some((length.min(DOUBLE_LENGTH) as u8, ALL_DIGITS)),
        digits => Some((total.clamp(u32::from(digits), DOUBLE_LENGTH.max(u32::from(digits))) as u8, digits)),
    };
    ty
}

/// Characters of a double.
const DOUBLE_LENGTH: u32 = 22;

/// Whether MySQL makes a FLOAT of them, one after the other: a FLOAT takes in the integers that it holds exactly and, unless they stand before it, BIGINTs.
fn merges_to_float(typed: &[&Expr]) -> bool {
    let (mut float, mut small) = (false, true);
    for expr in typed {
        match expr.ty.ty.kind {
            TypeKind::Float if float || small => float = true,
            TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt | TypeKind::Year => {}
            TypeKind::BigInt if float => {}
            _ if float => return false,
            TypeKind::Float | TypeKind::Double => return false,
            _ => small = false,
        }
    }
    float
}

fn rank(kind: &TypeKind) -> u8 {
    match kind {
        TypeKind::TinyInt => 0,
        TypeKind::SmallInt | TypeKind::Year => 1,
        TypeKind::MediumInt => 2,
        TypeKind::Int => 3,
        _ => 4,
    }
}

fn merge_integers(typed: &[&Expr], rule: Rule) -> ColumnType {
    if typed.iter().all(|e| matches!(e.ty.ty.kind, TypeKind::Year)) {
        return ColumnType::new(TypeKind::Year);
    }
    if let TypeKind::Bit(_) = typed[0].ty.ty.kind
        && typed.iter().all(|e| matches!(e.ty.ty.kind, TypeKind::Bit(_)))
    {
        let bits = typed.iter().map(|e| if let TypeKind::Bit(n) = e.ty.ty.kind { n } else { 0 }).max().unwrap_or(1);
        return match rule {
            Rule::Branches | Rule::Union => ColumnType::new(TypeKind::Bit(bits)),
            Rule::Values | Rule::IfNull => ColumnType { width: bits.min(20), ..ColumnType::ubigint() },
        };
    }
    let unsigned = |e: &Expr| e.ty.ty.unsigned || matches!(e.ty.ty.kind, TypeKind::Bit(_) | TypeKind::Year);
    let any_unsigned = typed.iter().any(|e| unsigned(e));
    let all_unsigned = typed.iter().all(|e| unsigned(e));
    let mut top = typed.iter().map(|e| rank(&e.ty.ty.kind)).max().unwrap_or(4);
    if any_unsigned && !all_unsigned {
        let top_unsigned = typed.iter().filter(|e| unsigned(e)).map(|e| rank(&e.ty.ty.kind)).max().unwrap_or(4);
        if top_unsigned == 4 {
            let digits = typed.iter().map(|e| e.ty.decimal_digits().0).max().unwrap_or(20);
            return ExprType::decimal(digits, 0, false).ty;
        }
        top = top.max(top_unsigned + 1);
    }
    let kind = match top {
        0 => TypeKind::TinyInt,
        1 => TypeKind::SmallInt,
        2 => TypeKind::MediumInt,
        3 => TypeKind::Int,
        _ => TypeKind::BigInt,
    };
    // What computes small integers makes an INT of them.
    let small = matches!(kind, TypeKind::TinyInt | TypeKind::SmallInt | TypeKind::MediumInt) && matches!(rule, Rule::Branches | Rule::Values);
    let mut ty = ColumnType::new(if small { TypeKind::Int } else { kind });
    ty.unsigned = all_unsigned;
    let width = |e: &&Expr| if ty.kind == TypeKind::TinyInt { e.ty.ty.width } else { e.ty.integer_length() as u8 };
    // What computes has as many characters as the longest of them; IFNULL is kept as the BIGINT that it is, however few it has.
    let known = match rule {
        Rule::Branches | Rule::Values => small || typed.iter().all(|e| !e.ty.ty.zerofill),
        Rule::IfNull if ty.kind == TypeKind::BigInt => false,
        _ => typed.iter().all(|e| e.ty.ty.width > 0 && !e.ty.ty.zerofill),
    };
    ty.width = typed.iter().map(width).max().filter(|_| known).unwrap_or(0);
    ty
}

/// True for ENUM and SET, whose values are members by number and text by name.
pub(super) fn has_members(ty: &ExprType) -> bool {
    matches!(ty.ty.kind, TypeKind::Enum(_) | TypeKind::Set(_))
}

/// What is computed of an ENUM or SET is text; anything else is as it is.
pub(super) fn members_as_text(expr: Expr) -> Expr {
    if !has_members(&expr.ty) {
        return expr;
    }
    let text = ExprType::text(expr.ty.char_length(), expr.ty.ty.collation, true).with_coercibility(expr.ty.coercibility);
    coerce(expr, &text)
}

/// Whether a value of type `from` is, as it stands, a value of type `to`.
fn same_form(from: &ColumnType, to: &ColumnType) -> bool {
    let integer = |t: &ColumnType| t.is_integer();
    match (&from.kind, &to.kind) {
        // In columns, decimals of more than 38 digits have another form.
        (TypeKind::Decimal { precision: p, scale: a }, TypeKind::Decimal { precision: q, scale: b }) => a == b && (*p > 38) == (*q > 38),
        (TypeKind::DateTime(a) | TypeKind::Timestamp(a), TypeKind::DateTime(b) | TypeKind::Timestamp(b)) => a <= b,
        (TypeKind::Time(a), TypeKind::Time(b)) => a <= b,
        (a, b) if a == b => from.unsigned == to.unsigned || !integer(from),
        _ if integer(from) && integer(to) => from.unsigned == to.unsigned,
        _ if from.is_text() && to.is_text() => true,
        _ if from.is_binary() && to.is_binary() => true,
        _ => false,
    }
}

/// `expr` as a value of type `to`: itself, a converted literal, or a cast.
pub(super) fn coerce(expr: Expr, to: &ExprType) -> Expr {
    let nullable = expr.ty.nullable;
    if to.is_null_type() || same_form(&expr.ty.ty, &to.ty) {
        return Expr { ty: to.clone().with_nullable(nullable), ..expr };
    }
    if expr.ty.is_null_type() && matches!(expr.kind, ExprKind::Literal(_)) {
        return Expr { ty: to.clone().with_nullable(true), ..expr };
    }
    Expr { kind: ExprKind::Cast(Box::new(expr)), ty: to.clone().with_nullable(nullable) }
}

/// Its values are numbers, too, and not by how their text begins.
fn has_number(ty: &ColumnType) -> bool {
    ty.is_number() || ty.is_temporal() || matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_))
}

/// A branch of IF or CASE: one that casts a number, a date or a member to a string itself is cast twice, so that [`chosen_number`] leaves it the string that it is.
pub(super) fn as_written(branch: Expr) -> Expr {
    if !branch.ty.ty.is_string() || !matches!(&branch.kind, ExprKind::Cast(inner) if has_number(&inner.ty.ty)) {
        return branch;
    }
    let ty = branch.ty.clone();
    Expr { kind: ExprKind::Cast(Box::new(branch)), ty }
}

/// IF or CASE of strings and others where a number is wanted: of what is no string its own number, and not the one that its text begins with. The same of
/// GREATEST and LEAST of dates and others.
pub(super) fn chosen_number(mut expr: Expr) -> Expr {
    if let ExprKind::Call { func: FuncId::ShownMoment, args } = &mut expr.kind {
        return coerce(args.swap_remove(0), &ExprType::double(true));
    }
    let ExprKind::Case { branches, otherwise } = &mut expr.kind else { return expr };
    let is_other = |value: &Expr| matches!(&value.kind, ExprKind::Cast(inner) if has_number(&inner.ty.ty));
    if !expr.ty.ty.is_string() || !branches.iter().map(|(_, then)| then).chain(otherwise.as_deref()).any(is_other) {
        return expr;
    }
    let ty = ExprType::double(expr.ty.nullable);
    for value in branches.iter_mut().map(|(_, then)| then).chain(otherwise.as_deref_mut()) {
        let Expr { kind, ty: own } = std::mem::replace(value, Expr::null());
        let chosen = match kind {
            ExprKind::Cast(inner) if has_number(&inner.ty.ty) => *inner,
            kind => Expr { kind, ty: own },
        };
        *value = coerce(chosen, &ty);
    }
    expr.ty = ty;
    expr
}

/// `expr` as a column of type `to` keeps it: of a YEAR, a BIT or a number with ZEROFILL a column of strings takes the digits, not what they show, of a FLOAT or a
/// DOUBLE with a fixed number of digits those of the double.
pub(super) fn coerce_stored(expr: Expr, to: &ExprType) -> Expr {
    let from = &expr.ty.ty;
    let shows_more = matches!(from.kind, TypeKind::Year | TypeKind::Bit(_)) || (from.zerofill && from.is_integer());
    let expr = match to.ty.is_string() {
        true if shows_more => bare_number(expr),
        true if from.is_real() => coerce(expr, &ExprType::double(true)),
        _ => expr,
    };
    coerce(expr, to)
}

/// A YEAR, a BIT or an unsigned integer as the number that it is, which shows nothing but its digits.
pub(super) fn bare_number(expr: Expr) -> Expr {
    let ty = ExprType::ubigint(expr.ty.nullable).with_coercibility(expr.ty.coercibility);
    coerce(expr, &ty)
}

/// Its values are held as UTF-8, and are other bytes in their own character set.
pub(super) fn is_recoded(ty: &ColumnType) -> bool {
    let text = ty.is_text() || matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_));
    text && ty.charset().is_recoded()
}

/// What a binary string takes of `expr`: the bytes of a text in its own character set, anything else as it is.
pub(super) fn as_bytes(expr: Expr, folder: &Folder<'_>) -> Expr {
    if !is_recoded(&expr.ty.ty) {
        return expr;
    }
    let ty = ExprType::text(expr.ty.char_length(), Collation::binary(), expr.ty.nullable).with_coercibility(expr.ty.coercibility);
    folder.fold(Expr { kind: ExprKind::Cast(Box::new(expr)), ty })
}
