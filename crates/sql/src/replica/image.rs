//! Values of a row image: from the bytes that a source writes to the values that a column of ours holds.
//!
//! The layouts are those of MySQL's `Field::pack` and of `log_event.h`; integers are little-endian, the "2" temporal types and DECIMAL big-endian.

use highkey_types::{Charset, ColumnType, Date, DateTime, Decimal, I256, Str, Time, TypeKind, Value};

use super::applier::charset_of;
use super::jsonb;

/// Type codes of a TABLE_MAP_EVENT.
pub(super) mod code {
    pub const TINY: u8 = 1;
    pub const SHORT: u8 = 2;
    pub const LONG: u8 = 3;
    pub const FLOAT: u8 = 4;
    pub const DOUBLE: u8 = 5;
    pub const TIMESTAMP: u8 = 7;
    pub const LONGLONG: u8 = 8;
    pub const INT24: u8 = 9;
    pub const DATE: u8 = 10;
    pub const TIME: u8 = 11;
    pub const DATETIME: u8 = 12;
    pub const YEAR: u8 = 13;
    pub const NEWDATE: u8 = 14;
    pub const VARCHAR: u8 = 15;
    pub const BIT: u8 = 16;
    pub const TIMESTAMP2: u8 = 17;
    pub const DATETIME2: u8 = 18;
    pub const TIME2: u8 = 19;
    pub const JSON: u8 = 245;
    pub const NEWDECIMAL: u8 = 246;
    pub const ENUM: u8 = 247;
    pub const SET: u8 = 248;
    pub const BLOB: u8 = 252;
    pub const VAR_STRING: u8 = 253;
    pub const STRING: u8 = 254;
    pub const GEOMETRY: u8 = 255;
}

/// A column as the source's table map tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceColumn {
    /// The type code; ENUM and SET have their own, where the event says STRING.
    pub code: u8,
    /// Two bytes of metadata, the first of the event in the low byte; for STRING, ENUM and SET the length in bytes.
    pub meta: u16,
    /// The collation of a text column, where the source says it (MySQL 8.0).
    pub collation: Option<u16>,
}

impl SourceColumn {
    /// From a table map's type code and the bytes of metadata that this type has (none, one or two). None: no type that row events have.
    pub fn new(code: u8, meta: &[u8]) -> Option<SourceColumn> {
        let (low, high) = (meta.first().copied().unwrap_or(0), meta.get(1).copied().unwrap_or(0));
        let (code, meta) = match code {
            // The real type, and in two of its bits those of a length above 255, inverted.
            code::STRING if low & 0x30 != 0x30 && low != 0 => (low | 0x30, u16::from(high) | (u16::from(low & 0x30) ^ 0x30) << 4),
            code::STRING if low == code::ENUM || low == code::SET => (low, u16::from(high)),
            code::STRING => (code, u16::from(high)),
            _ => (code, u16::from_le_bytes([low, high])),
        };
        SourceColumn::metadata_len(code)?;
        Some(SourceColumn { code, meta, collation: None })
    }

    /// How many bytes of metadata a type code has in a table map; None: not a type of row events.
    pub fn metadata_len(code: u8) -> Option<usize> {
        Some(match code {
            code::TINY | code::SHORT | code::LONG | code::TIMESTAMP | code::LONGLONG | code::INT24 => 0,
            code::DATE | code::TIME | code::DATETIME | code::YEAR | code::NEWDATE => 0,
            code::FLOAT | code::DOUBLE | code::TIMESTAMP2 | code::DATETIME2 | code::TIME2 | code::JSON | code::BLOB | code::GEOMETRY => 1,
            code::VARCHAR | code::BIT | code::NEWDECIMAL | code::ENUM | code::SET | code::VAR_STRING | code::STRING => 2,
            _ => return None,
        })
    }

    /// True of the types whose collation the optional metadata of a table map names.
    pub fn is_character(&self) -> bool {
        matches!(self.code, code::VARCHAR | code::VAR_STRING | code::STRING | code::BLOB)
    }

    /// The type in words, as MySQL's error 1677 has it.
    pub fn describe(&self) -> String {
        let (low, high) = (self.meta & 255, self.meta >> 8);
        match self.code {
            code::TINY => "tinyint".into(),
            code::SHORT => "smallint".into(),
            code::INT24 => "mediumint".into(),
            code::LONG => "int".into(),
            code::LONGLONG => "bigint".into(),
            code::FLOAT => "float".into(),
            code::DOUBLE => "double".into(),
            code::DATE | code::NEWDATE => "date".into(),
            code::TIME | code::TIME2 => "time".into(),
            code::DATETIME | code::DATETIME2 => "datetime".into(),
            code::TIMESTAMP | code::TIMESTAMP2 => "timestamp".into(),
            code::YEAR => "year".into(),
            code::JSON => "json".into(),
            code::GEOMETRY => "geometry".into(),
            code::BIT => format!("bit({})", high * 8 + low),
            code::NEWDECIMAL => format!("decimal({low},{high})"),
            code::ENUM => "enum".into(),
            code::SET => "set".into(),
            code::BLOB => ["tinyblob", "blob", "mediumblob", "longblob"][usize::from(low.clamp(1, 4)) - 1].into(),
            code::STRING => format!("char({})", self.meta),
            _ => format!("varchar({})", self.meta),
        }
    }

    /// Whether a column of ours takes this column's values as they are: the same type and size. Text may be of
    /// another character set that we know if the characters are as many; JSON may come as text (MariaDB).
    pub fn fits(&self, ty: &ColumnType) -> bool {
        let (low, high) = ((self.meta & 255) as u8, (self.meta >> 8) as u8);
        match &ty.kind {
            TypeKind::TinyInt => self.code == code::TINY,
            TypeKind::SmallInt => self.code == code::SHORT,
            TypeKind::MediumInt => self.code == code::INT24,
            TypeKind::Int => self.code == code::LONG,
            TypeKind::BigInt => self.code == code::LONGLONG,
            TypeKind::Float => self.code == code::FLOAT,
            TypeKind::Double => self.code == code::DOUBLE,
            TypeKind::Decimal { precision, scale } => self.code == code::NEWDECIMAL && (low, high) == (*precision, *scale),
            TypeKind::Bit(bits) => self.code == code::BIT && u16::from(high) * 8 + u16::from(low) == u16::from(*bits),
            TypeKind::Year => self.code == code::YEAR,
            TypeKind::Date => matches!(self.code, code::DATE | code::NEWDATE),
            TypeKind::Time(fsp) => self.temporal(code::TIME, code::TIME2, *fsp),
            TypeKind::DateTime(fsp) => self.temporal(code::DATETIME, code::DATETIME2, *fsp),
            TypeKind::Timestamp(fsp) => self.temporal(code::TIMESTAMP, code::TIMESTAMP2, *fsp),
            TypeKind::Enum(members) => self.code == code::ENUM && self.meta == if members.len() > 255 { 2 } else { 1 },
            TypeKind::Set(members) => {
                let bytes = members.len().div_ceil(8);
                self.code == code::SET && usize::from(self.meta) == if bytes > 4 { 8 } else { bytes }
            }
            TypeKind::Json => matches!(self.code, code::JSON | code::BLOB),
            TypeKind::Geometry(_) => self.code == code::GEOMETRY,
            TypeKind::Char(n) => self.code == code::STRING && self.characters(ty) == Some(*n),
            TypeKind::Binary(n) => self.code == code::STRING && u32::from(self.meta) == *n,
            TypeKind::VarChar(n) => matches!(self.code, code::VARCHAR | code::VAR_STRING) && self.characters(ty) == Some(*n),
            TypeKind::VarBinary(n) => matches!(self.code, code::VARCHAR | code::VAR_STRING) && u32::from(self.meta) == *n,
            TypeKind::TinyText | TypeKind::TinyBlob => self.code == code::BLOB && low == 1,
            TypeKind::Text | TypeKind::Blob => self.code == code::BLOB && low == 2,
            TypeKind::MediumText | TypeKind::MediumBlob => self.code == code::BLOB && low == 3,
            TypeKind::LongText | TypeKind::LongBlob => self.code == code::BLOB && low == 4,
            TypeKind::Null => false,
        }
    }

    /// The type of before 5.6 without a fraction, or the present one with the same.
    fn temporal(&self, old: u8, new: u8, fsp: u8) -> bool {
        self.code == old && fsp == 0 || self.code == new && self.meta == u16::from(fsp)
    }

    /// The length in characters of the source's character set.
    fn characters(&self, ty: &ColumnType) -> Option<u32> {
        let bytes = u32::try_from(self.charset(ty)?.max_bytes()).ok()?;
        u32::from(self.meta).is_multiple_of(bytes).then(|| u32::from(self.meta) / bytes)
    }

    /// The source's character set: as it says, or the column's own. None: one that we do not have.
    fn charset(&self, ty: &ColumnType) -> Option<Charset> {
        match self.collation {
            // Before 8.0 sources say nothing; binary is what MariaDB says of JSON's text.
            None | Some(BINARY_COLLATION) => Some(ty.charset()),
            Some(id) => charset_of(id),
        }
    }

    /// Takes one value from the front of `bytes` and converts it for a column that [`fits`](SourceColumn::fits). The error says what is wrong with it.
    pub fn decode(&self, ty: &ColumnType, bytes: &mut &[u8]) -> Result<Value, String> {
        Ok(match self.code {
            code::TINY => integer(ty, take(bytes, 1)?),
            code::SHORT => integer(ty, take(bytes, 2)?),
            code::INT24 => integer(ty, take(bytes, 3)?),
            code::LONG => integer(ty, take(bytes, 4)?),
            code::LONGLONG => integer(ty, take(bytes, 8)?),
            code::FLOAT => Value::Float(Some(f32::from_le_bytes(array(take(bytes, 4)?))).filter(|n| n.is_finite()).ok_or("it is no number")?),
            code::DOUBLE => Value::Double(Some(f64::from_le_bytes(array(take(bytes, 8)?))).filter(|n| n.is_finite()).ok_or("it is no number")?),
            code::NEWDECIMAL => decimal(self.meta as u8, (self.meta >> 8) as u8, bytes)?,
            code::YEAR => match take(bytes, 1)?[0] {
                0 => Value::UInt(0),
                year => Value::UInt(1900 + u64::from(year)),
            },
            code::BIT => {
                let bits = usize::from(self.meta >> 8) * 8 + usize::from(self.meta & 255);
                let (value, most) = (big_endian(take(bytes, bits.div_ceil(8))?), u64::MAX.checked_shr(64u32.saturating_sub(bits as u32)).unwrap_or(0));
                // More than the column has: MySQL makes it the most of a byte, and cuts several.
                Value::UInt(if value > most && bits < 8 { most } else { value & most })
            }
            code::DATE | code::NEWDATE => {
                let packed = little_endian(take(bytes, 3)?);
                Value::Date(Date::new((packed >> 9) as u16, (packed >> 5 & 15) as u8, (packed & 31) as u8))
            }
            code::TIME => {
                let n = sign_extended(take(bytes, 3)?);
                let hms = n.unsigned_abs() as u32;
                Value::Time(Time::from_hms(n < 0, hms / 10_000, hms / 100 % 100, hms % 100, 0))
            }
            code::TIME2 => Value::Time(time2(self.meta as u8, bytes)?),
            code::DATETIME => {
                let n = little_endian(take(bytes, 8)?);
                let (date, time) = (n / 1_000_000, n % 1_000_000);
                let date = Date::new((date / 10_000) as u16, (date / 100 % 100) as u8, (date % 100) as u8);
                Value::DateTime(DateTime::new(date, (time / 10_000) as u8, (time / 100 % 100) as u8, (time % 100) as u8, 0))
            }
            code::DATETIME2 => Value::DateTime(datetime2(self.meta as u8, bytes)?),
            code::TIMESTAMP => timestamp(little_endian(take(bytes, 4)?), 0)?,
            code::TIMESTAMP2 => {
                let seconds = big_endian(take(bytes, 4)?);
                timestamp(seconds, fraction(self.meta as u8, bytes)?)?
            }
            code::ENUM => {
                let index = little_endian(take(bytes, usize::from(self.meta.clamp(1, 2)))?) as u16;
                let TypeKind::Enum(members) = &ty.kind else { return Err("the column is no ENUM".into()) };
                let text = match index {
                    0 => Str::from(""),
                    _ => members.get(usize::from(index) - 1).cloned().ok_or_else(|| format!("an ENUM of {} members has none of number {index}", members.len()))?,
                };
                Value::Enum(index, text)
            }
            code::SET => {
                let bits = little_endian(take(bytes, usize::from(self.meta.clamp(1, 8)))?);
                let TypeKind::Set(members) = &ty.kind else { return Err("the column is no SET".into()) };
                if members.len() < 64 && bits >> members.len() != 0 {
                    return Err(format!("a SET of {} members has not the bits {bits:#x}", members.len()));
                }
                let chosen: Vec<&str> = members.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, m)| &**m).collect();
                Value::Set(bits, chosen.join(",").into())
            }
            code::JSON => {
                let length = little_endian(take(bytes, usize::from(self.meta.clamp(1, 4)))?) as usize;
                Value::Json(jsonb::text(take(bytes, length)?)?.into())
            }
            code::BLOB | code::GEOMETRY => {
                let length = little_endian(take(bytes, usize::from(self.meta.clamp(1, 4)))?) as usize;
                self.string(ty, take(bytes, length)?)?
            }
            // STRING, VARCHAR and VAR_STRING: the length has two bytes if the longest value needs them.
            _ => {
                let length = little_endian(take(bytes, if self.meta > 255 { 2 } else { 1 })?) as usize;
                self.string(ty, take(bytes, length)?)?
            }
        })
    }

    fn string(&self, ty: &ColumnType, bytes: &[u8]) -> Result<Value, String> {
        if let TypeKind::Binary(n) = ty.kind {
            // Trailing zeros stay out of the image.
            let mut padded = bytes.to_vec();
            padded.resize(n as usize, 0);
            return Ok(Value::Bytes(padded));
        }
        if ty.is_binary() {
            return Ok(Value::Bytes(bytes.to_vec()));
        }
        let charset = self.charset(ty).ok_or("its character set is not known here")?;
        let text = charset.decode(bytes).map_err(|at| format!("byte {at} of its text is not {}", charset.name()))?;
        if let TypeKind::Json = ty.kind {
            return highkey_types::json::normalise(&text).map(Value::Json).map_err(|(why, at)| format!("its text is no JSON at byte {at}: {why}"));
        }
        if charset != ty.charset()
            && let Some(at) = ty.charset().first_invalid(&text)
        {
            return Err(format!("the character at byte {at} of its text is not in {}", ty.charset().name()));
        }
        Ok(Value::Text(text.as_ref().into()))
    }
}

/// The collation `binary`.
pub(super) const BINARY_COLLATION: u16 = 63;

/// The next `n` bytes.
pub(super) fn take<'a>(bytes: &mut &'a [u8], n: usize) -> Result<&'a [u8], String> {
    let (taken, rest) = bytes.split_at_checked(n).ok_or("the row image ends inside of it")?;
    *bytes = rest;
    Ok(taken)
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    bytes.try_into().expect("as many bytes were taken")
}

pub(super) fn little_endian(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b))
}

fn big_endian(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |n, b| n << 8 | u64::from(*b))
}

pub(super) fn sign_extended(bytes: &[u8]) -> i64 {
    let unused = 64 - 8 * bytes.len() as u32;
    ((little_endian(bytes) << unused) as i64) >> unused
}

/// The image does not say whether it is signed: the column does, as on any replica.
fn integer(ty: &ColumnType, bytes: &[u8]) -> Value {
    if ty.unsigned { Value::UInt(little_endian(bytes)) } else { Value::Int(sign_extended(bytes)) }
}

/// Bytes that so many decimal digits of a DECIMAL take when they are less than nine.
const DIGIT_BYTES: [usize; 10] = [0, 1, 1, 2, 2, 3, 3, 4, 4, 4];

/// DECIMAL: groups of nine digits in four bytes, the odd ones first and last; the sign is the inverted top bit, of a negative number all bits are inverted.
pub(super) fn decimal(precision: u8, scale: u8, bytes: &mut &[u8]) -> Result<Value, String> {
    let (precision, scale) = (usize::from(precision), usize::from(scale));
    if precision == 0 || precision > 65 || scale > precision.min(30) {
        return Err(format!("there is no DECIMAL({precision},{scale})"));
    }
    let integral = precision - scale;
    let digits = |n: usize| [(n / 9) * 4, DIGIT_BYTES[n % 9]].iter().sum::<usize>();
    let mut image = take(bytes, digits(integral) + digits(scale))?.to_vec();
    let negative = image[0] & 0x80 == 0;
    image[0] ^= 0x80;
    if negative {
        image.iter_mut().for_each(|b| *b = !*b);
    }
    let groups = [integral % 9].into_iter().chain(std::iter::repeat_n(9, integral / 9 + scale / 9)).chain([scale % 9]);
    let mut rest = &image[..];
    let mut unscaled = I256::from(0);
    for group in groups.filter(|digits| *digits > 0) {
        let (now, after) = rest.split_at(if group == 9 { 4 } else { DIGIT_BYTES[group] });
        rest = after;
        let value = big_endian(now);
        if value >= 10u64.pow(group as u32) {
            return Err("its digits are no DECIMAL".into());
        }
        unscaled = unscaled * I256::from(10u64.pow(group as u32)) + I256::from(value);
    }
    Ok(Value::Decimal(Decimal::new(if negative { -unscaled } else { unscaled }, scale as u8)))
}

/// The fraction of a "2" type, in microseconds.
fn fraction(fsp: u8, bytes: &mut &[u8]) -> Result<u32, String> {
    Ok(match fsp {
        0 => 0,
        1 | 2 => big_endian(take(bytes, 1)?) as u32 * 10_000,
        3 | 4 => big_endian(take(bytes, 2)?) as u32 * 100,
        _ => big_endian(take(bytes, 3)?) as u32,
    })
}

/// Seconds since 1970; the zero timestamp is 0.
fn timestamp(seconds: u64, micros: u32) -> Result<Value, String> {
    if seconds == 0 && micros == 0 {
        return Ok(Value::DateTime(DateTime::default()));
    }
    let moment = DateTime::from_micros(seconds as i64 * 1_000_000 + i64::from(micros));
    moment.map(Value::DateTime).ok_or_else(|| "its seconds are beyond any date".into())
}

/// DATETIME: five bytes with the sign bit set, year * 13 + month in 17 bits, then day, hour, minute, second; then the fraction.
fn datetime2(fsp: u8, bytes: &mut &[u8]) -> Result<DateTime, String> {
    let whole = big_endian(take(bytes, 5)?);
    let micros = fraction(fsp, bytes)?;
    let whole = whole.checked_sub(0x80_0000_0000).ok_or("its date is negative")?;
    Ok(from_packed(whole, micros))
}

/// A packed DATETIME without its sign.
pub(super) fn from_packed(whole: u64, micros: u32) -> DateTime {
    let (ymd, hms) = (whole >> 17, whole & 0x1_FFFF);
    let (year_month, day) = (ymd >> 5, ymd & 31);
    let date = Date::new((year_month / 13) as u16, (year_month % 13) as u8, day as u8);
    DateTime::new(date, (hms >> 12) as u8, (hms >> 6 & 63) as u8, (hms & 63) as u8, micros)
}

/// TIME: a sign bit, hour, minute, second and fraction as one number; of a negative time the whole number is negated, fraction included.
fn time2(fsp: u8, bytes: &mut &[u8]) -> Result<Time, String> {
    let (whole, fraction_bytes, unit) = match fsp {
        0 => (big_endian(take(bytes, 3)?), 0, 0),
        1 | 2 => (big_endian(take(bytes, 4)?), 1, 10_000),
        3 | 4 => (big_endian(take(bytes, 5)?), 2, 100),
        _ => (big_endian(take(bytes, 6)?), 3, 1),
    };
    let bits = 24 + 8 * fraction_bytes;
    let signed = whole as i64 - (1i64 << (bits - 1));
    let magnitude = signed.unsigned_abs();
    let hms = magnitude >> (8 * fraction_bytes);
    let micros = (magnitude & ((1 << (8 * fraction_bytes)) - 1)) * unit;
    Ok(packed_time(signed < 0, hms, micros as u32))
}

/// A packed TIME's whole part.
pub(super) fn packed_time(negative: bool, hms: u64, micros: u32) -> Time {
    Time::from_hms(negative, (hms >> 12 & 0x3FF) as u32, (hms >> 6 & 63) as u32, (hms & 63) as u32, micros)
}
