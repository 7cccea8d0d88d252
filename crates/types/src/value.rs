//! A cell's value inside the server.

use std::sync::Arc;

use crate::{Date, DateTime, Decimal, Time};

/// Text inside the server: always UTF-8, whatever the column's character set is.
pub type Str = Arc<str>;

/// One SQL value.  Which variant a column holds follows from its [`TypeKind`](crate::TypeKind):
///
/// | column | variant |
/// |---|---|
/// | TINYINT..BIGINT, YEAR | `Int`, or `UInt` if UNSIGNED (YEAR is `UInt`) |
/// | BIT | `UInt` |
/// | DECIMAL | `Decimal` with the column's scale |
/// | FLOAT, DOUBLE | `Float`, `Double` |
/// | CHAR, VARCHAR, TEXT | `Text` |
/// | BINARY, VARBINARY, BLOB | `Bytes` |
/// | DATE | `Date` |
/// | DATETIME, TIMESTAMP | `DateTime` (TIMESTAMP: in UTC in rows and keys, in the session's zone in expressions) |
/// | TIME | `Time` |
/// | ENUM, SET | index or bits, with the text |
/// | JSON | normalised text |
/// | GEOMETRY and its kinds | `Bytes`: the SRID and WKB, see [`geometry`](crate::geometry) |
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Value {
    #[default]
    Null,
    Int(i64),
    UInt(u64),
    Float(f32),
    Double(f64),
    Decimal(Decimal),
    Text(Str),
    Bytes(Vec<u8>),
    Date(Date),
    DateTime(DateTime),
    Time(Time),
    /// The member's 1-based index (0 is the error value '') and its text.
    Enum(u16, Str),
    /// The members' bits and their comma-separated text.
    Set(u64, Str),
    Json(Str),
}

impl Value {
    /// Text from anything that is text.
    pub fn text(text: impl Into<Str>) -> Value {
        Value::Text(text.into())
    }

    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// A MySQL boolean: 1 or 0.
    pub fn bool(truth: bool) -> Value {
        Value::Int(i64::from(truth))
    }

    /// The text of a value that is text already (TEXT, ENUM, SET, JSON), without conversion.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(s) | Value::Json(s) | Value::Enum(_, s) | Value::Set(_, s) => Some(s),
            _ => None,
        }
    }

    /// The integer of a value that is an integer already and fits `i64`, without conversion.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(i) => Some(*i),
            Value::UInt(u) => i64::try_from(*u).ok(),
            _ => None,
        }
    }

    /// True for the numeric variants (ENUM and SET are not: they behave as text first).
    pub fn is_number(&self) -> bool {
        matches!(self, Value::Int(_) | Value::UInt(_) | Value::Float(_) | Value::Double(_) | Value::Decimal(_))
    }

    /// True for DATE, DATETIME and TIME.
    pub fn is_temporal(&self) -> bool {
        matches!(self, Value::Date(_) | Value::DateTime(_) | Value::Time(_))
    }
}

impl From<i64> for Value {
    fn from(v: i64) -> Value {
        Value::Int(v)
    }
}

impl From<u64> for Value {
    fn from(v: u64) -> Value {
        Value::UInt(v)
    }
}

impl From<f64> for Value {
    fn from(v: f64) -> Value {
        Value::Double(v)
    }
}

impl From<Decimal> for Value {
    fn from(v: Decimal) -> Value {
        Value::Decimal(v)
    }
}

impl From<&str> for Value {
    fn from(v: &str) -> Value {
        Value::Text(v.into())
    }
}

impl From<String> for Value {
    fn from(v: String) -> Value {
        Value::Text(v.into())
    }
}

impl From<Str> for Value {
    fn from(v: Str) -> Value {
        Value::Text(v)
    }
}

impl From<Vec<u8>> for Value {
    fn from(v: Vec<u8>) -> Value {
        Value::Bytes(v)
    }
}
