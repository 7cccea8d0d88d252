//! Column types: names, wire numbers, lengths and flags.

use std::fmt;
use std::sync::Arc;

use crate::{Charset, Collation, GeometryType, Shape, Str};

/// MYSQL_TYPE_* numbers of the wire protocol.
pub mod wire {
    pub const DECIMAL: u8 = 0;
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const NULL: u8 = 6;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const TINY_BLOB: u8 = 249;
    pub const MEDIUM_BLOB: u8 = 250;
    pub const LONG_BLOB: u8 = 251;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// Flags of a column definition packet.
pub mod column_flags {
    pub const NOT_NULL: u16 = 1;
    pub const PRI_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    pub const ON_UPDATE_NOW: u16 = 8192;
    pub const NUM: u16 = 32768;
}

/// What a column holds.  Lengths of CHAR and VARCHAR are characters, of BINARY and VARBINARY bytes; the numbers of
/// DATETIME, TIMESTAMP and TIME are fractional digits, 0 to 6.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal { precision: u8, scale: u8 },
    Float,
    Double,
    Bit(u8),
    Char(u32),
    VarChar(u32),
    TinyText,
    Text,
    MediumText,
    LongText,
    Binary(u32),
    VarBinary(u32),
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Date,
    DateTime(u8),
    Timestamp(u8),
    Time(u8),
    Year,
    Enum(Arc<[Str]>),
    Set(Arc<[Str]>),
    Json,
    /// GEOMETRY and its kinds.
    Geometry(GeometryType),
    /// The type of a bare NULL; no column has it.
    Null,
}

/// A column's or an expression's type.  `collation` is `binary` for everything that is not text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ColumnType {
    pub kind: TypeKind,
    pub unsigned: bool,
    pub zerofill: bool,
    pub collation: &'static Collation,
    /// The width in `int(5) zerofill` and `tinyint(1)`; 0 when none was given or it does not show.
    pub width: u8,
    /// `FLOAT(M,D)` and `DOUBLE(M,D)`: total and fractional digits. D is [`ALL_DIGITS`] of a FLOAT that shows those of a double.
    pub float_digits: Option<(u8, u8)>,
}

/// Digits behind the point of a float that shows as many as it has, as the wire counts them. No column is declared with so many.
pub const ALL_DIGITS: u8 = 31;

impl ColumnType {
    /// A type with no attributes and the binary collation.
    pub fn new(kind: TypeKind) -> ColumnType {
        ColumnType { kind, unsigned: false, zerofill: false, collation: Collation::binary(), width: 0, float_digits: None }
    }

    /// A text type under `collation`.
    pub fn with_collation(kind: TypeKind, collation: &'static Collation) -> ColumnType {
        ColumnType { collation, ..ColumnType::new(kind) }
    }

    /// `BIGINT`.
    pub fn bigint() -> ColumnType {
        ColumnType::new(TypeKind::BigInt)
    }

    /// `BIGINT UNSIGNED`.
    pub fn ubigint() -> ColumnType {
        ColumnType { unsigned: true, ..ColumnType::new(TypeKind::BigInt) }
    }

    /// `DOUBLE`.
    pub fn double() -> ColumnType {
        ColumnType::new(TypeKind::Double)
    }

    /// `DECIMAL(precision, scale)`.
    pub fn decimal(precision: u8, scale: u8) -> ColumnType {
        ColumnType::new(TypeKind::Decimal { precision, scale })
    }

    /// `VARCHAR(length)` under `collation`.
    pub fn varchar(length: u32, collation: &'static Collation) -> ColumnType {
        ColumnType::with_collation(TypeKind::VarChar(length), collation)
    }

    /// This type UNSIGNED.
    pub fn unsigned(mut self) -> ColumnType {
        self.unsigned = true;
        self
    }

    pub fn charset(&self) -> Charset {
        self.collation.charset
    }

    /// TINYINT to BIGINT.
    pub fn is_integer(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, TinyInt | SmallInt | MediumInt | Int | BigInt)
    }

    /// Integers, DECIMAL, FLOAT, DOUBLE, YEAR and BIT.
    pub fn is_number(&self) -> bool {
        use TypeKind::*;
        self.is_integer() || matches!(self.kind, Decimal { .. } | Float | Double | Year | Bit(_))
    }

    /// FLOAT and DOUBLE.
    pub fn is_real(&self) -> bool {
        matches!(self.kind, TypeKind::Float | TypeKind::Double)
    }

    /// The digits behind the point that a FLOAT or DOUBLE always shows; `None` if it shows as many as it has.
    pub fn fixed_digits(&self) -> Option<u8> {
        self.float_digits.filter(|(_, digits)| self.is_real() && *digits < ALL_DIGITS).map(|(_, digits)| digits)
    }

    /// DATE, DATETIME, TIMESTAMP and TIME.
    pub fn is_temporal(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Date | DateTime(_) | Timestamp(_) | Time(_))
    }

    /// CHAR, VARCHAR and the TEXT types, whose values are `Value::Text`.
    pub fn is_text(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Char(_) | VarChar(_) | TinyText | Text | MediumText | LongText)
    }

    /// BINARY, VARBINARY, the BLOB types and geometries, whose values are `Value::Bytes`.
    pub fn is_binary(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, Binary(_) | VarBinary(_) | TinyBlob | Blob | MediumBlob | LongBlob | Geometry(_))
    }

    /// GEOMETRY and its kinds.
    pub fn is_geometry(&self) -> bool {
        matches!(self.kind, TypeKind::Geometry(_))
    }

    /// The kind of a geometry type.
    pub fn shape(&self) -> Option<Shape> {
        if let TypeKind::Geometry(ty) = &self.kind { Some(ty.shape) } else { None }
    }

    /// Everything that compares as a string: text, binary, ENUM, SET and JSON.
    pub fn is_string(&self) -> bool {
        self.is_text() || self.is_binary() || matches!(self.kind, TypeKind::Enum(_) | TypeKind::Set(_) | TypeKind::Json)
    }

    /// The TEXT and BLOB families, JSON and geometries: no default literal, a prefix is needed in an index.
    pub fn is_blob(&self) -> bool {
        use TypeKind::*;
        matches!(self.kind, TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob | Json | Geometry(_))
    }

    /// Fractional seconds digits of a temporal type; 0 for the others.
    pub fn fsp(&self) -> u8 {
        match self.kind {
            TypeKind::DateTime(fsp) | TypeKind::Timestamp(fsp) | TypeKind::Time(fsp) => fsp,
            _ => 0,
        }
    }

    /// The smallest and largest value of an integer type (also YEAR's and BIT's), for range checks.
    pub fn integer_range(&self) -> Option<(i64, u64)> {
        use TypeKind::*;
        let bits = match self.kind {
            TinyInt => 8,
            SmallInt => 16,
            MediumInt => 24,
            Int => 32,
            BigInt => 64,
            Bit(n) => return Some((0, if n >= 64 { u64::MAX } else { (1 << n) - 1 })),
            Year => return Some((0, 2155)),
            _ => return None,
        };
        if self.unsigned {
            Some((0, if bits == 64 { u64::MAX } else { (1 << bits) - 1 }))
        } else {
            Some((if bits == 64 { i64::MIN } else { -(1 << (bits - 1)) }, (1 << (bits - 1)) - 1))
        }
    }

    /// The MYSQL_TYPE_* that a result set column of this type announces.
    pub fn wire_type(&self) -> u8 {
        use TypeKind::*;
        match self.kind {
            TinyInt => wire::TINY,
            SmallInt => wire::SHORT,
            MediumInt => wire::INT24,
            Int => wire::LONG,
            BigInt => wire::LONGLONG,
            Decimal { .. } => wire::NEWDECIMAL,
            Float => wire::FLOAT,
            Double => wire::DOUBLE,
            Bit(_) => wire::BIT,
            Char(_) | Binary(_) | Enum(_) | Set(_) => wire::STRING,
            VarChar(_) | VarBinary(_) => wire::VAR_STRING,
            TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob => wire::BLOB,
            Date => wire::DATE,
            DateTime(_) => wire::DATETIME,
            Timestamp(_) => wire::TIMESTAMP,
            Time(_) => wire::TIME,
            Year => wire::YEAR,
            Json => wire::JSON,
            Geometry(_) => wire::GEOMETRY,
            Null => wire::NULL,
        }
    }

    /// `column_length` of the column definition packet: the most bytes that the text form can have.
    pub fn display_length(&self) -> u32 {
        use TypeKind::*;
        let wide = |chars: u32| chars.saturating_mul(self.charset().max_bytes() as u32);
        let fsp = |n: u8| if n == 0 { 0 } else { u32::from(n) + 1 };
        if self.width > 0 && self.is_integer() {
            return u32::from(self.width);
        }
        match &self.kind {
            TinyInt => if self.unsigned { 3 } else { 4 },
            SmallInt => if self.unsigned { 5 } else { 6 },
            MediumInt => if self.unsigned { 8 } else { 9 },
            Int => if self.unsigned { 10 } else { 11 },
            BigInt => 20,
            Decimal { precision, scale } => {
                u32::from(*precision) + u32::from(*scale > 0) + u32::from(!self.unsigned)
            }
            Float => self.float_digits.map_or(12, |(m, _)| u32::from(m)),
            Double => self.float_digits.map_or(22, |(m, _)| u32::from(m)),
            Bit(n) => u32::from(*n),
            Char(n) | VarChar(n) => wide(*n),
            Binary(n) | VarBinary(n) => *n,
            TinyBlob | TinyText => 255,
            Blob | Text => 65_535,
            MediumBlob | MediumText => 16_777_215,
            LongBlob | LongText | Json | Geometry(_) => u32::MAX,
            Date => 10,
            DateTime(n) | Timestamp(n) => 19 + fsp(*n),
            Time(n) => 10 + fsp(*n),
            Year => 4,
            Enum(members) => wide(members.iter().map(|m| m.chars().count() as u32).max().unwrap_or(0)),
            Set(members) => {
                let chars: u32 = members.iter().map(|m| m.chars().count() as u32).sum();
                wide(chars + (members.len() as u32).saturating_sub(1))
            }
            Null => 0,
        }
    }

    /// Bytes of the column in a file of fixed fields (LOAD DATA with fields neither terminated nor enclosed). A long type takes what is left
    /// of a line, at most 256 bytes.
    pub fn fixed_width(&self) -> u32 {
        if self.is_blob() { 256 } else { self.display_length() }
    }

    /// `decimals` of the column definition packet: 31 for a float without a fixed number of digits.
    pub fn decimals(&self) -> u8 {
        use TypeKind::*;
        match self.kind {
            Decimal { scale, .. } => scale,
            Float | Double => self.float_digits.map_or(ALL_DIGITS, |(_, d)| d),
            DateTime(n) | Timestamp(n) | Time(n) => n,
            _ => 0,
        }
    }

    /// The most bytes that a stored value can have in the column's own character set.
    pub fn max_bytes(&self) -> u64 {
        use TypeKind::*;
        let wide = |chars: u32| u64::from(chars) * self.charset().max_bytes() as u64;
        match &self.kind {
            TinyInt | Year => 1,
            SmallInt => 2,
            MediumInt | Date => 3,
            Int | Float => 4,
            BigInt | Double => 8,
            Decimal { precision, scale } => decimal_bytes(precision - scale) + decimal_bytes(*scale),
            Bit(n) => u64::from(n.div_ceil(8)),
            Char(n) | VarChar(n) => wide(*n),
            Binary(n) | VarBinary(n) => u64::from(*n),
            TinyBlob | TinyText => 255,
            Blob | Text => 65_535,
            MediumBlob | MediumText => 16_777_215,
            LongBlob | LongText | Json | Geometry(_) => u64::from(u32::MAX),
            DateTime(n) => 5 + u64::from(n.div_ceil(2)),
            Timestamp(n) => 4 + u64::from(n.div_ceil(2)),
            Time(n) => 3 + u64::from(n.div_ceil(2)),
            Enum(members) => if members.len() < 256 { 1 } else { 2 },
            Set(members) => match members.len().div_ceil(8) {
                bytes @ 0..=4 => bytes.max(1) as u64,
                _ => 8,
            },
            Null => 0,
        }
    }

    /// The most characters of a CHAR, VARCHAR, BINARY or VARBINARY; bytes of a TEXT or BLOB.
    pub fn max_length(&self) -> Option<u64> {
        use TypeKind::*;
        match self.kind {
            Char(n) | VarChar(n) | Binary(n) | VarBinary(n) => Some(u64::from(n)),
            TinyText | Text | MediumText | LongText | TinyBlob | Blob | MediumBlob | LongBlob => Some(self.max_bytes()),
            _ => None,
        }
    }

    /// The flags that follow from the type alone; keys, NOT NULL and AUTO_INCREMENT are added by the caller.
    pub fn column_flags(&self) -> u16 {
        use column_flags as f;
        let mut flags = 0;
        if self.unsigned {
            flags |= f::UNSIGNED;
        }
        if self.zerofill {
            flags |= f::ZEROFILL | f::UNSIGNED;
        }
        match self.kind {
            TypeKind::Enum(_) => flags |= f::ENUM,
            TypeKind::Set(_) => flags |= f::SET,
            TypeKind::Bit(_) => flags |= f::UNSIGNED,
            TypeKind::Year => flags |= f::UNSIGNED | f::ZEROFILL,
            TypeKind::Timestamp(_) => flags |= f::BINARY,
            TypeKind::Null => flags |= f::BINARY,
            _ => {}
        }
        if self.is_blob() {
            flags |= f::BLOB;
        }
        if (self.is_string() && self.collation.is_binary_order()) || (self.is_temporal()) {
            flags |= f::BINARY;
        }
        flags
    }

    /// DATA_TYPE of information_schema.columns: the bare name.
    pub fn type_name(&self) -> &'static str {
        use TypeKind::*;
        match self.kind {
            TinyInt => "tinyint",
            SmallInt => "smallint",
            MediumInt => "mediumint",
            Int => "int",
            BigInt => "bigint",
            Decimal { .. } => "decimal",
            Float => "float",
            Double => "double",
            Bit(_) => "bit",
            Char(_) => "char",
            VarChar(_) => "varchar",
            TinyText => "tinytext",
            Text => "text",
            MediumText => "mediumtext",
            LongText => "longtext",
            Binary(_) => "binary",
            VarBinary(_) => "varbinary",
            TinyBlob => "tinyblob",
            Blob => "blob",
            MediumBlob => "mediumblob",
            LongBlob => "longblob",
            Date => "date",
            DateTime(_) => "datetime",
            Timestamp(_) => "timestamp",
            Time(_) => "time",
            Year => "year",
            Enum(_) => "enum",
            Set(_) => "set",
            Json => "json",
            Geometry(ty) => ty.shape.type_name(),
            Null => "null",
        }
    }
}

/// Bytes of `digits` decimal digits in MySQL's packed decimal: four per nine digits.
fn decimal_bytes(digits: u8) -> u64 {
    const LEFTOVER: [u64; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];
    u64::from(digits / 9) * 4 + LEFTOVER[usize::from(digits % 9)]
}

/// `Type` of SHOW COLUMNS and COLUMN_TYPE, as MySQL 8.0.19 and later print it: integers without a display width,
/// except `tinyint(1)` and ZEROFILL.
impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use TypeKind::*;
        f.write_str(self.type_name())?;
        match &self.kind {
            TinyInt | SmallInt | MediumInt | Int | BigInt => {
                if self.zerofill {
                    let width = if self.width > 0 { u32::from(self.width) } else { self.display_length() };
                    write!(f, "({width})")?;
                } else if matches!(self.kind, TinyInt) && self.width == 1 && !self.unsigned {
                    f.write_str("(1)")?;
                }
            }
            Decimal { precision, scale } => write!(f, "({precision},{scale})")?,
            Float | Double => {
                if let Some((m, d)) = self.float_digits.filter(|_| self.fixed_digits().is_some()) {
                    write!(f, "({m},{d})")?;
                }
            }
            Bit(n) => write!(f, "({n})")?,
            Char(n) | VarChar(n) | Binary(n) | VarBinary(n) => write!(f, "({n})")?,
            DateTime(n) | Timestamp(n) | Time(n) if *n > 0 => write!(f, "({n})")?,
            Enum(members) | Set(members) => {
                for (i, member) in members.iter().enumerate() {
                    write!(f, "{}{}", if i == 0 { '(' } else { ',' }, crate::format::string_literal(member))?;
                }
                f.write_str(")")?;
            }
            _ => {}
        }
        if self.is_number() && !matches!(self.kind, Year | Bit(_)) {
            if self.unsigned || self.zerofill {
                f.write_str(" unsigned")?;
            }
            if self.zerofill {
                f.write_str(" zerofill")?;
            }
        }
        Ok(())
    }
}
