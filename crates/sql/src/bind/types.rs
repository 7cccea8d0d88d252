//! Written types to column types.

use highkey_types::{Charset, Collation, ColumnType, GeometryType, MySqlError, Str, TypeKind, geometry};

use super::binder::Result;
use super::{collation, errors};
use crate::parse::ast::{CastType, DataType, DataTypeKind};
use crate::plan::{Coercibility, Expr, ExprType};

/// The column type that a written type means in a table with the default collation `default`. `utf8mb4`: what that character set alone means.
pub fn resolve_type(ty: &DataType, default: &'static Collation, utf8mb4: &'static Collation, column: &str) -> Result<ColumnType> {
    use DataTypeKind as K;
    let text = text_collation(ty, default, utf8mb4)?;
    let kind = match &ty.kind {
        K::TinyInt | K::Bool => TypeKind::TinyInt,
        K::SmallInt => TypeKind::SmallInt,
        K::MediumInt => TypeKind::MediumInt,
        K::Int => TypeKind::Int,
        K::BigInt | K::Serial => TypeKind::BigInt,
        K::Decimal { precision, scale } => decimal(*precision, *scale, column)?,
        K::Float { precision, scale } => match (precision, scale) {
            (Some(p), None) if *p > 53 => return Err(bad_specifier(column)),
            (Some(p), None) if *p > 24 => TypeKind::Double,
            _ => TypeKind::Float,
        },
        K::Double { .. } => TypeKind::Double,
        K::Bit(n) => match n.unwrap_or(1) {
            0 => TypeKind::Bit(1),
            n if n > 64 => return Err(MySqlError::with_message(1439, format!("Display width out of range for column '{column}' (max = 64)"))),
            n => TypeKind::Bit(n as u8),
        },
        K::Char(n) => match n.unwrap_or(1) {
            n if n > 255 => return Err(too_big(column, 255)),
            n => sized(text, TypeKind::Char(n), TypeKind::Binary(n)),
        },
        K::VarChar(n) => {
            let Some(n) = *n else { return Err(MySqlError::with_message(1064, format!("VARCHAR needs a length for column '{column}'"))) };
            let most = 65_535 / text.charset.max_bytes() as u32;
            if n > most {
                return Err(too_big(column, most));
            }
            sized(text, TypeKind::VarChar(n), TypeKind::VarBinary(n))
        }
        K::Binary(n) => match n.unwrap_or(1) {
            n if n > 255 => return Err(too_big(column, 255)),
            n => TypeKind::Binary(n),
        },
        K::VarBinary(n) => match *n {
            Some(n) if n > 65_535 => return Err(too_big(column, 65_535)),
            Some(n) => TypeKind::VarBinary(n),
            None => return Err(MySqlError::with_message(1064, format!("VARBINARY needs a length for column '{column}'"))),
        },
        K::Text(n) => blob(n.map(|n| u64::from(n) * text.charset.max_bytes() as u64), text.charset == Charset::Binary),
        K::TinyText => sized(text, TypeKind::TinyText, TypeKind::TinyBlob),
        K::MediumText => sized(text, TypeKind::MediumText, TypeKind::MediumBlob),
        K::LongText => sized(text, TypeKind::LongText, TypeKind::LongBlob),
        K::Blob(n) => blob(n.map(u64::from), true),
        K::TinyBlob => TypeKind::TinyBlob,
        K::MediumBlob => TypeKind::MediumBlob,
        K::LongBlob => TypeKind::LongBlob,
        K::Date => TypeKind::Date,
        K::DateTime(n) => TypeKind::DateTime(fsp(*n, column)?),
        K::Timestamp(n) => TypeKind::Timestamp(fsp(*n, column)?),
        K::Time(n) => TypeKind::Time(fsp(*n, column)?),
        K::Year => TypeKind::Year,
        K::Enum(members) => TypeKind::Enum(self::members(members, column, 65_535, text, "ENUM")?),
        K::Set(members) => TypeKind::Set(self::members(members, column, 64, text, "SET")?),
        K::Json => TypeKind::Json,
        K::Geometry(shape) => TypeKind::Geometry(GeometryType { shape: *shape, srid: srid(ty)? }),
        K::Unsupported(name) => return Err(highkey_types::errors::not_supported_yet(name)),
    };
    if ty.srid.is_some() && !matches!(kind, TypeKind::Geometry(_)) {
        return Err(highkey_types::errors::wrong_usage("SRID", "non-geometry column"));
    }
    let mut result = ColumnType::new(kind);
    if result.is_text() || matches!(result.kind, TypeKind::Enum(_) | TypeKind::Set(_)) {
        result.collation = text;
    }
    if ty.width.is_some_and(|width| width > 255) {
        return Err(MySqlError::with_message(1439, format!("Display width out of range for column '{column}' (max = 255)")));
    }
    let numeric = result.is_integer() || result.is_real() || matches!(result.kind, TypeKind::Decimal { .. });
    result.unsigned = numeric && (ty.unsigned || ty.zerofill || ty.kind == K::Serial);
    result.zerofill = numeric && ty.zerofill;
    result.width = match (&ty.kind, ty.zerofill) {
        (K::Bool, _) if !ty.unsigned => 1,
        (_, true) if result.is_integer() => match ty.width.unwrap_or(0) {
            0 => result.display_length() as u8,
            width => width as u8,
        },
        _ => 0,
    };
    if let K::Float { precision: Some(m), scale: Some(d) } | K::Double { precision: Some(m), scale: Some(d) } = ty.kind {
        if m > 255 {
            return Err(MySqlError::with_message(1439, format!("Display width out of range for column '{column}' (max = 255)")));
        }
        if d > 30 {
            return Err(MySqlError::with_message(1425, format!("Too big scale {d} specified for column '{column}'. Maximum is 30.")));
        }
        if d > m {
            return Err(MySqlError::with_message(1427, format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}').")));
        }
        result.float_digits = Some((m as u8, d as u8));
    }
    Ok(result)
}

/// The SRID of a column of geometries: of a system that is known.
fn srid(ty: &DataType) -> Result<Option<u32>> {
    let Some(written) = ty.srid else { return Ok(None) };
    let srid = u32::try_from(written).map_err(|_| highkey_types::errors::data_out_of_range("SRID", "SRID"))?;
    if geometry::srs::find(srid).is_none() {
        return Err(highkey_types::errors::srs_not_found(srid));
    }
    Ok(Some(srid))
}

/// The collation of a text column: its own, its character set's default, or the table's.
fn text_collation(ty: &DataType, default: &'static Collation, utf8mb4: &'static Collation) -> Result<&'static Collation> {
    let charset = ty.charset.as_deref().map(collation::charset_by_name).transpose()?;
    let collation = match (&ty.collation, charset) {
        (Some(name), charset) => {
            let collation = collation::by_name(name)?;
            if let Some(charset) = charset
                && charset != collation.charset
            {
                return Err(errors::collation_mismatch(collation.name, charset.name()));
            }
            collation
        }
        (None, Some(charset)) => Collation::default_among(charset, utf8mb4),
        (None, None) => default,
    };
    Ok(if ty.binary { Collation::binary_of(collation.charset) } else { collation })
}

fn sized(collation: &Collation, text: TypeKind, binary: TypeKind) -> TypeKind {
    if collation.charset == Charset::Binary { binary } else { text }
}

fn blob(bytes: Option<u64>, binary: bool) -> TypeKind {
    match (bytes.unwrap_or(65_535), binary) {
        (0..=255, true) => TypeKind::TinyBlob,
        (0..=255, false) => TypeKind::TinyText,
        (256..=65_535, true) => TypeKind::Blob,
        (256..=65_535, false) => TypeKind::Text,
        (65_536..=16_777_215, true) => TypeKind::MediumBlob,
        (65_536..=16_777_215, false) => TypeKind::MediumText,
        (_, true) => TypeKind::LongBlob,
        (_, false) => TypeKind::LongText,
    }
}

fn decimal(precision: Option<u32>, scale: Option<u32>, column: &str) -> Result<TypeKind> {
    let (precision, scale) = (precision.unwrap_or(10), scale.unwrap_or(0));
    if scale > 30 {
        return Err(MySqlError::with_message(1425, format!("Too big scale {scale} specified for column '{column}'. Maximum is 30.")));
    }
    if precision > 65 {
        return Err(MySqlError::with_message(1426, format!("Too-big precision {precision} specified for '{column}'. Maximum is 65.")));
    }
    let precision = if precision == 0 { 10 } else { precision };
    if scale > precision {
        return Err(MySqlError::with_message(1427, format!("For float(M,D), double(M,D) or decimal(M,D), M must be >= D (column '{column}').")));
    }
    Ok(TypeKind::Decimal { precision: precision as u8, scale: scale as u8 })
}

fn fsp(n: u32, column: &str) -> Result<u8> {
    if n > 6 {
        return Err(MySqlError::with_message(1426, format!("Too-big precision {n} specified for '{column}'. Maximum is 6.")));
    }
    Ok(n as u8)
}

/// The members of an ENUM or SET in the column's collation.
pub(crate) fn members<S: AsRef<str>>(names: &[S], column: &str, most: usize, collation: &'static Collation, kind: &str) -> Result<std::sync::Arc<[Str]>> {
    if names.len() > most {
        return Err(MySqlError::with_message(1097, format!("Too many strings for column {column} and SET")));
    }
    let held = |c: char| if collation.charset.can_encode(c) { c } else { '?' };
    // Trailing spaces do not count in members.
    let names: Vec<Str> = names.iter().map(|n| Str::from(n.as_ref().trim_end_matches(' ').chars().map(held).collect::<String>())).collect();
    for (i, name) in names.iter().enumerate() {
        if kind == "SET" && name.contains(',') {
            return Err(MySqlError::with_message(1367, format!("Illegal set '{name}' value found during parsing")));
        }
        if names[..i].iter().any(|other| collation.eq(other.as_bytes(), name.as_bytes())) {
            return Err(MySqlError::with_message(1291, format!("Column '{column}' has duplicated value '{name}' in {kind}")));
        }
    }
    Ok(names.into())
}

fn too_big(column: &str, most: u32) -> MySqlError {
    MySqlError::with_message(1074, format!("Column length too big for column '{column}' (max = {most}); use BLOB or TEXT instead"))
}

fn bad_specifier(column: &str) -> MySqlError {
    MySqlError::with_message(1063, format!("Incorrect column specifier for column '{column}'"))
}

/// The type of CAST(expr AS ty).
pub(super) fn cast_type(ty: &CastType, expr: &Expr, connection: &'static Collation) -> Result<ExprType> {
    let bytes = |length: u32| ExprType::text(length, Collation::binary(), true).with_coercibility(Coercibility::Implicit);
    Ok(match ty {
        CastType::Signed => ExprType::bigint(true),
        CastType::Unsigned => ExprType::ubigint(true),
        CastType::Binary(None) => bytes(byte_length(expr)),
        CastType::Binary(Some(n)) => bytes(*n),
        // MySQL takes a geometry's bytes as they are for text, which they need not be.
        CastType::Char { length: None, charset: None } if expr.ty.ty.is_geometry() => bytes(byte_length(expr)),
        CastType::Char { length, charset } => {
            let collation = match charset {
                Some(name) => Collation::default_of(collation::charset_by_name(name)?),
                None => connection,
            };
            ExprType::text(length.unwrap_or_else(|| expr.ty.char_length()), collation, true).with_coercibility(Coercibility::Implicit)
        }
        CastType::Date => ExprType::column(ColumnType::new(TypeKind::Date), true),
        CastType::DateTime(fsp) => ExprType::column(ColumnType::new(TypeKind::DateTime(*fsp)), true),
        CastType::Time(fsp) => ExprType::column(ColumnType::new(TypeKind::Time(*fsp)), true),
        CastType::Year => ExprType::column(ColumnType::new(TypeKind::Year), true),
        CastType::Decimal { precision, scale } => match decimal(*precision, *scale, "CAST")? {
            TypeKind::Decimal { precision, scale } => ExprType::decimal(precision.into(), scale.into(), true),
            _ => ExprType::decimal(10, 0, true),
        },
        CastType::Float => ExprType::column(ColumnType::new(TypeKind::Float), true),
        CastType::Double => ExprType::double(true),
        CastType::Json => ExprType::column(ColumnType::new(TypeKind::Json), true),
    })
}

fn byte_length(expr: &Expr) -> u32 {
    let wide = if expr.ty.ty.is_text() { expr.ty.ty.charset().max_bytes() as u32 } else { 1 };
    expr.ty.char_length().saturating_mul(wide)
}
