//! From a type as written to a column's type: defaults of lengths, limits, character set and collation.

use std::sync::Arc;

use highkey_types::{Charset, Collation, ColumnType, MySqlError, Str, TypeKind};

use crate::parse::ast::{DataType, DataTypeKind};
use crate::session::error::{self, err};

/// The default character set and collation that options name, `None` if they name neither.
pub fn collation_of(charset: Option<&str>, collation: Option<&str>) -> Result<Option<&'static Collation>, MySqlError> {
    let charset = match charset {
        Some(name) => Some(Charset::by_name(name).ok_or_else(|| error::unknown_character_set(name))?),
        None => None,
    };
    match (charset, collation) {
        (None, None) => Ok(None),
        (Some(charset), None) => Ok(Some(Collation::default_of(charset))),
        (charset, Some(name)) => {
            let collation = Collation::by_name(name).ok_or_else(|| error::unknown_collation(name))?;
            match charset {
                Some(charset) if charset != collation.charset => Err(error::collation_charset_mismatch(name, charset.name())),
                _ => Ok(Some(collation)),
            }
        }
    }
}

/// The type of column `column`; `default` is the table's collation.
pub fn resolve(ty: &DataType, column: &str, default: &'static Collation) -> Result<ColumnType, MySqlError> {
    let mut collation = collation_of(ty.charset.as_deref(), ty.collation.as_deref())?.unwrap_or(default);
    if ty.binary && ty.collation.is_none() {
        collation = Collation::binary_of(collation.charset);
    }
    let max_chars = |limit: u64| limit / collation.charset.max_bytes() as u64;
    let binary = collation.charset == Charset::Binary;
    let mut width = 0;
    let kind = match &ty.kind {
        DataTypeKind::TinyInt => TypeKind::TinyInt,
        DataTypeKind::Bool => {
            width = 1;
            TypeKind::TinyInt
        }
        DataTypeKind::SmallInt => TypeKind::SmallInt,
        DataTypeKind::MediumInt => TypeKind::MediumInt,
        DataTypeKind::Int => TypeKind::Int,
        DataTypeKind::BigInt | DataTypeKind::Serial => TypeKind::BigInt,
        DataTypeKind::Decimal { precision, scale } => {
            let (p, s) = (precision.unwrap_or(10), scale.unwrap_or(0));
            if s > 30 {
                return Err(err(1425, format!("Too big scale {s} specified for column '{column}'. Maximum is 30.")));
            }
            if p > 65 {
                return Err(err(1426, format!("Too-big precision {p} specified for '{column}'. Maximum is 65.")));
            }
            let p = if p == 0 { 10 } else { p };
            if s > p {
                return Err(error::scale_over_precision(column));
            }
            TypeKind::Decimal { precision: p as u8, scale: s as u8 }
        }
        DataTypeKind::Float { precision: Some(p), scale: None } if *p > 53 => return Err(error::wrong_field_spec(column)),
        DataTypeKind::Float { precision: Some(p), scale: None } if *p > 24 => TypeKind::Double,
        DataTypeKind::Float { .. } => TypeKind::Float,
        DataTypeKind::Double { .. } => TypeKind::Double,
        DataTypeKind::Bit(bits) => match bits.unwrap_or(1) {
            0 => TypeKind::Bit(1),
            n @ 1..=64 => TypeKind::Bit(n as u8),
            _ => return Err(err(1439, format!("Display width out of range for column '{column}' (max = 64)"))),
        },
        DataTypeKind::Char(length) => {
            let n = length.unwrap_or(1);
            if n > 255 {
                return Err(too_long(column, 255));
            }
            if binary { TypeKind::Binary(n) } else { TypeKind::Char(n) }
        }
        DataTypeKind::VarChar(length) => {
            let n = length.unwrap_or(1);
            if u64::from(n) > max_chars(65_535) {
                return Err(too_long(column, max_chars(65_535)));
            }
            if binary { TypeKind::VarBinary(n) } else { TypeKind::VarChar(n) }
        }
        DataTypeKind::Text(None) => text(binary, 65_535),
        DataTypeKind::Text(Some(n)) => text(binary, u64::from(*n) * collation.charset.max_bytes() as u64),
        DataTypeKind::TinyText => text(binary, 255),
        DataTypeKind::MediumText => text(binary, 16_777_215),
        DataTypeKind::LongText => text(binary, u64::from(u32::MAX)),
        DataTypeKind::Binary(length) => {
            let n = length.unwrap_or(1);
            if n > 255 {
                return Err(too_long(column, 255));
            }
            TypeKind::Binary(n)
        }
        DataTypeKind::VarBinary(length) => {
            let n = length.unwrap_or(1);
            if n > 65_535 {
                return Err(too_long(column, 65_535));
            }
            TypeKind::VarBinary(n)
        }
        DataTypeKind::Blob(length) => text(true, length.map_or(65_535, u64::from)),
        DataTypeKind::TinyBlob => TypeKind::TinyBlob,
        DataTypeKind::MediumBlob => TypeKind::MediumBlob,
        DataTypeKind::LongBlob => TypeKind::LongBlob,
        DataTypeKind::Date => TypeKind::Date,
        DataTypeKind::DateTime(n) => TypeKind::DateTime(fsp(*n, column)?),
        DataTypeKind::Timestamp(n) => TypeKind::Timestamp(fsp(*n, column)?),
        DataTypeKind::Time(n) => TypeKind::Time(fsp(*n, column)?),
        DataTypeKind::Year => TypeKind::Year,
        DataTypeKind::Enum(members) => TypeKind::Enum(self::members(members, column, collation, "ENUM", 65_535)?),
        DataTypeKind::Set(members) => TypeKind::Set(self::members(members, column, collation, "SET", 64)?),
        DataTypeKind::Json => TypeKind::Json,
        DataTypeKind::Unsupported(name) => return Err(error::not_supported(name)),
    };
    let mut resolved = ColumnType::new(kind);
    if resolved.is_text() || matches!(resolved.kind, TypeKind::Enum(_) | TypeKind::Set(_)) {
        resolved.collation = collation;
    } else if resolved.kind == TypeKind::Json {
        resolved.collation = Collation::binary_of(Charset::Utf8mb4);
    }
    if resolved.is_number() && !matches!(resolved.kind, TypeKind::Bit(_) | TypeKind::Year) {
        resolved.unsigned = ty.unsigned || ty.zerofill || ty.kind == DataTypeKind::Serial;
        resolved.zerofill = ty.zerofill;
    }
    if ty.zerofill && resolved.is_integer() {
        width = match resolved.kind {
            TypeKind::TinyInt => 3,
            TypeKind::SmallInt => 5,
            TypeKind::MediumInt => 8,
            TypeKind::Int => 10,
            _ => 20,
        };
    }
    resolved.width = width;
    if let DataTypeKind::Float { precision: Some(m), scale: Some(d) } | DataTypeKind::Double { precision: Some(m), scale: Some(d) } = ty.kind {
        if d > 30 {
            return Err(err(1425, format!("Too big scale {d} specified for column '{column}'. Maximum is 30.")));
        }
        if m > 255 {
            return Err(err(1439, format!("Display width out of range for column '{column}' (max = 255)")));
        }
        if d > m {
            return Err(error::scale_over_precision(column));
        }
        resolved.float_digits = Some((m as u8, d as u8));
    }
    Ok(resolved)
}

fn too_long(column: &str, max: u64) -> MySqlError {
    err(1074, format!("Column length too big for column '{column}' (max = {max}); use BLOB or TEXT instead"))
}

fn fsp(digits: u32, column: &str) -> Result<u8, MySqlError> {
    if digits > 6 {
        return Err(err(1426, format!("Too-big precision {digits} specified for '{column}'. Maximum is 6.")));
    }
    Ok(digits as u8)
}

/// The smallest member of the TEXT or BLOB family that holds `bytes`.
fn text(binary: bool, bytes: u64) -> TypeKind {
    match (binary, bytes) {
        (false, 0..=255) => TypeKind::TinyText,
        (false, 256..=65_535) => TypeKind::Text,
        (false, 65_536..=16_777_215) => TypeKind::MediumText,
        (false, _) => TypeKind::LongText,
        (true, 0..=255) => TypeKind::TinyBlob,
        (true, 256..=65_535) => TypeKind::Blob,
        (true, 65_536..=16_777_215) => TypeKind::MediumBlob,
        (true, _) => TypeKind::LongBlob,
    }
}

/// Members without trailing spaces, all different under the column's collation.
fn members(list: &[String], column: &str, collation: &'static Collation, kind: &str, max: usize) -> Result<Arc<[Str]>, MySqlError> {
    if list.len() > max {
        return Err(if kind == "SET" {
            err(1097, format!("Too many strings for column {column} and SET"))
        } else {
            err(3505, format!("Too many enumeration values for column {column}."))
        });
    }
    let trimmed: Vec<Str> = list.iter().map(|m| Str::from(m.trim_end_matches(' '))).collect();
    let mut seen: std::collections::HashMap<u64, Vec<usize>> = std::collections::HashMap::new();
    for (i, member) in trimmed.iter().enumerate() {
        if kind == "SET" && member.contains(',') {
            return Err(err(1367, format!("Illegal set '{member}' value found during parsing")));
        }
        let bucket = seen.entry(collation.hash_text(member.as_bytes())).or_default();
        if bucket.iter().any(|&j| collation.eq(trimmed[j].as_bytes(), member.as_bytes())) {
            return Err(error::duplicated_value_in_type(column, member, kind));
        }
        bucket.push(i);
    }
    Ok(trimmed.into())
}
