//! Column values in row images. [`Packing`] is what a column's type comes to; each value kind has its file.
//!
//! | type | number in the table map | its metadata | the value |
//! |---|---|---|---|
//! | TINYINT..BIGINT | 1, 2, 9, 3, 8 | | 1, 2, 3, 4, 8 bytes, little-endian |
//! | FLOAT, DOUBLE | 4, 5 | size | IEEE, little-endian |
//! | DECIMAL | 246 | precision, scale | packed decimal, big-endian ([`decimal`]) |
//! | YEAR | 13 | | year - 1900, or 0 |
//! | BIT(n) | 16 | n % 8, n / 8 | big-endian |
//! | DATE | 10 | | 3 bytes, little-endian: year, month, day in 15, 4 and 5 bits |
//! | TIME, DATETIME, TIMESTAMP | 19, 18, 17 | fsp | big-endian ([`temporal`]) |
//! | CHAR, BINARY | 254 | 254 ^ bits 8 and 9 of the length, the length's low byte | length, bytes without the padding |
//! | VARCHAR, VARBINARY | 15 | length u16 | length, bytes |
//! | TEXT, BLOB families | 252 | bytes of the length | length, bytes |
//! | ENUM | 254 | 247, size | index, little-endian |
//! | SET | 254 | 248, size | bits, little-endian |
//! | JSON | 245 | 4 | length u32, binary JSON ([`json`]) |
//!
//! Lengths in metadata are bytes in the column's character set. A length before CHAR and VARCHAR bytes is one byte if the column cannot
//! have more than 255 bytes, otherwise two.

mod decimal;
mod json;
mod temporal;

pub use json::json_len;

use highkey_types::{Charset, ColumnType, TypeKind, Value, wire};

/// How a column's values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    Int { bytes: u8 },
    Float,
    Double,
    Decimal { precision: u8, scale: u8 },
    Year,
    Bit { bits: u8 },
    Date,
    Time { fsp: u8 },
    DateTime { fsp: u8 },
    Timestamp { fsp: u8 },
    /// CHAR and BINARY of at most `max_bytes`.
    Fixed { charset: Charset, max_bytes: u16 },
    /// VARCHAR and VARBINARY of at most `max_bytes`.
    Variable { charset: Charset, max_bytes: u16 },
    /// TEXT and BLOB with a length of `length_bytes`.
    Blob { charset: Charset, length_bytes: u8 },
    Enum { bytes: u8 },
    Set { bytes: u8 },
    Json,
    Geometry,
}

impl Packing {
    /// Panics for the type of a bare NULL, which no column has.
    pub(crate) fn of(ty: &ColumnType) -> Packing {
        use TypeKind::*;
        let charset = ty.charset();
        let max_bytes = ty.max_bytes().min(u64::from(u16::MAX)) as u16;
        match ty.kind {
            TinyInt => Packing::Int { bytes: 1 },
            SmallInt => Packing::Int { bytes: 2 },
            MediumInt => Packing::Int { bytes: 3 },
            Int => Packing::Int { bytes: 4 },
            BigInt => Packing::Int { bytes: 8 },
            Decimal { precision, scale } => Packing::Decimal { precision, scale },
            Float => Packing::Float,
            Double => Packing::Double,
            Bit(bits) => Packing::Bit { bits },
            Char(_) => Packing::Fixed { charset, max_bytes },
            Binary(_) => Packing::Fixed { charset: Charset::Binary, max_bytes },
            VarChar(_) => Packing::Variable { charset, max_bytes },
            VarBinary(_) => Packing::Variable { charset: Charset::Binary, max_bytes },
            TinyText | TinyBlob => Packing::Blob { charset, length_bytes: 1 },
            Text | Blob => Packing::Blob { charset, length_bytes: 2 },
            MediumText | MediumBlob => Packing::Blob { charset, length_bytes: 3 },
            LongText | LongBlob => Packing::Blob { charset, length_bytes: 4 },
            Date => Packing::Date,
            DateTime(fsp) => Packing::DateTime { fsp },
            Timestamp(fsp) => Packing::Timestamp { fsp },
            Time(fsp) => Packing::Time { fsp },
            Year => Packing::Year,
            Enum(_) => Packing::Enum { bytes: ty.max_bytes() as u8 },
            Set(_) => Packing::Set { bytes: ty.max_bytes() as u8 },
            Json => Packing::Json,
            Geometry(_) => Packing::Geometry,
            Null => panic!("I1: no column has the type NULL"),
        }
    }

    /// The type's number in a table map event.
    pub(crate) fn event_type(self) -> u8 {
        match self {
            Packing::Int { bytes: 1 } => wire::TINY,
            Packing::Int { bytes: 2 } => wire::SHORT,
            Packing::Int { bytes: 3 } => wire::INT24,
            Packing::Int { bytes: 4 } => wire::LONG,
            Packing::Int { .. } => wire::LONGLONG,
            Packing::Float => wire::FLOAT,
            Packing::Double => wire::DOUBLE,
            Packing::Decimal { .. } => wire::NEWDECIMAL,
            Packing::Year => wire::YEAR,
            Packing::Bit { .. } => wire::BIT,
            Packing::Date => wire::DATE,
            Packing::Time { .. } => wire::TIME2,
            Packing::DateTime { .. } => wire::DATETIME2,
            Packing::Timestamp { .. } => wire::TIMESTAMP2,
            Packing::Fixed { .. } | Packing::Enum { .. } | Packing::Set { .. } => wire::STRING,
            Packing::Variable { .. } => wire::VARCHAR,
            Packing::Blob { .. } => wire::BLOB,
            Packing::Json => wire::JSON,
            Packing::Geometry => wire::GEOMETRY,
        }
    }

    /// Appends the type's metadata of a table map event.
    pub(crate) fn push_metadata(self, out: &mut Vec<u8>) {
        match self {
            Packing::Int { .. } | Packing::Year | Packing::Date => {}
            Packing::Float => out.push(4),
            Packing::Double => out.push(8),
            Packing::Decimal { precision, scale } => out.extend_from_slice(&[precision, scale]),
            Packing::Bit { bits } => out.extend_from_slice(&[bits % 8, bits / 8]),
            Packing::Time { fsp } | Packing::DateTime { fsp } | Packing::Timestamp { fsp } => out.push(fsp),
            Packing::Fixed { max_bytes, .. } => out.extend_from_slice(&[wire::STRING ^ ((max_bytes & 0x300) >> 4) as u8, max_bytes as u8]),
            Packing::Variable { max_bytes, .. } => out.extend_from_slice(&max_bytes.to_le_bytes()),
            Packing::Blob { length_bytes, .. } => out.push(length_bytes),
            Packing::Enum { bytes } => out.extend_from_slice(&[wire::ENUM, bytes]),
            Packing::Set { bytes } => out.extend_from_slice(&[wire::SET, bytes]),
            Packing::Json | Packing::Geometry => out.push(4),
        }
    }

    /// Appends a value that is not NULL. Panics if it is not a stored value of the column's type (I1).
    pub(crate) fn pack(self, value: &Value, out: &mut Vec<u8>) {
        match (self, value) {
            (Packing::Int { bytes }, Value::Int(v)) => push_integer(*v as u64, bytes, out),
            (Packing::Int { bytes }, Value::UInt(v)) => push_integer(*v, bytes, out),
            (Packing::Float, Value::Float(v)) => out.extend_from_slice(&v.to_le_bytes()),
            (Packing::Double, Value::Double(v)) => out.extend_from_slice(&v.to_le_bytes()),
            (Packing::Decimal { precision, scale }, Value::Decimal(v)) => decimal::push(v, precision, scale, out),
            (Packing::Year, Value::UInt(0)) => out.push(0),
            (Packing::Year, Value::UInt(year)) => out.push((year - 1900) as u8),
            (Packing::Bit { bits }, Value::UInt(v)) => out.extend_from_slice(&v.to_be_bytes()[8 - usize::from(bits.div_ceil(8))..]),
            (Packing::Date, Value::Date(v)) => temporal::push_date(v, out),
            (Packing::Time { fsp }, Value::Time(v)) => temporal::push_time(v, fsp, out),
            (Packing::DateTime { fsp }, Value::DateTime(v)) => temporal::push_datetime(v, fsp, out),
            (Packing::Timestamp { fsp }, Value::DateTime(v)) => temporal::push_timestamp(v, fsp, out),
            (Packing::Fixed { charset, max_bytes }, Value::Text(v)) => {
                push_text(v.trim_end_matches(' '), charset, length_bytes(max_bytes), out);
            }
            (Packing::Fixed { max_bytes, .. }, Value::Bytes(v)) => {
                let len = v.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
                push_bytes(&v[..len], length_bytes(max_bytes), out);
            }
            (Packing::Variable { charset, max_bytes }, Value::Text(v)) => push_text(v, charset, length_bytes(max_bytes), out),
            (Packing::Variable { max_bytes, .. }, Value::Bytes(v)) => push_bytes(v, length_bytes(max_bytes), out),
            (Packing::Blob { charset, length_bytes }, Value::Text(v)) => push_text(v, charset, length_bytes, out),
            (Packing::Blob { length_bytes, .. }, Value::Bytes(v)) => push_bytes(v, length_bytes, out),
            (Packing::Enum { bytes }, Value::Enum(index, _)) => push_integer(u64::from(*index), bytes, out),
            (Packing::Set { bytes }, Value::Set(bits, _)) => push_integer(*bits, bytes, out),
            (Packing::Json, Value::Json(text)) => json::push(text, out),
            (Packing::Geometry, Value::Bytes(v)) => push_bytes(v, 4, out),
            _ => panic!("I1: {value:?} is not a value of {self:?}"),
        }
    }

    /// True for the TEXT and BLOB families, which `binlog_row_image=NOBLOB` leaves out. JSON is not among them in MySQL.
    pub(crate) fn is_blob(self) -> bool {
        matches!(self, Packing::Blob { .. })
    }
}

/// Of the length before CHAR and VARCHAR bytes.
pub(crate) fn length_bytes(max_bytes: u16) -> u8 {
    if max_bytes > 255 { 2 } else { 1 }
}

/// The `bytes` low bytes of `v`, little-endian.
fn push_integer(v: u64, bytes: u8, out: &mut Vec<u8>) {
    match bytes {
        1 => out.push(v as u8),
        2 => out.extend_from_slice(&(v as u16).to_le_bytes()),
        3 => out.extend_from_slice(&v.to_le_bytes()[..3]),
        4 => out.extend_from_slice(&(v as u32).to_le_bytes()),
        _ => out.extend_from_slice(&v.to_le_bytes()),
    }
}

fn push_bytes(bytes: &[u8], length_bytes: u8, out: &mut Vec<u8>) {
    push_integer(bytes.len() as u64, length_bytes, out);
    out.extend_from_slice(bytes);
}

/// The length is that of the text in its character set.
fn push_text(text: &str, charset: Charset, length_bytes: u8, out: &mut Vec<u8>) {
    if charset.is_utf8() {
        // A stored value: its column's character set admitted it, and the bytes are the same.
        return push_bytes(text.as_bytes(), length_bytes, out);
    }
    push_integer(charset.encoded_len(text) as u64, length_bytes, out);
    charset.encode_into(text, out);
}
