//! Literals and their types.

use highkey_types::{Charset, Collation, ColumnType, Decimal, MySqlError, Str, TypeKind, Value, cast};

use super::binder::{Binder, Result};
use super::collation;
use crate::expr::convert::invalid_bytes;
use crate::parse::ast::Literal;
use crate::plan::{Coercibility, Expr, ExprType};

/// The type of an integer literal: BIGINT as wide as its digits.
fn integer_type(digits: usize, unsigned: bool) -> ExprType {
    let mut ty = ColumnType::bigint();
    ty.unsigned = unsigned;
    ty.width = digits as u8;
    ExprType { ty, nullable: false, coercibility: Coercibility::Numeric, truth: false }
}

/// The type of a value that came from outside: a parameter or a variable.
pub(super) fn type_of(value: &Value, connection: &'static Collation) -> ExprType {
    match value {
        Value::Null => ExprType::null(),
        Value::Int(_) => ExprType::bigint(false),
        Value::UInt(_) => ExprType::ubigint(false),
        Value::Float(_) => ExprType::column(ColumnType::new(TypeKind::Float), false),
        Value::Double(_) => ExprType::double(false),
        Value::Decimal(d) => ExprType::decimal(u32::from(d.precision()), u32::from(d.scale()), false),
        Value::Text(s) | Value::Enum(_, s) | Value::Set(_, s) => ExprType::text(s.chars().count() as u32, connection, false),
        Value::Bytes(b) => ExprType::text(b.len() as u32, Collation::binary(), false),
        Value::Date(_) => ExprType::column(ColumnType::new(TypeKind::Date), false),
        Value::DateTime(d) => ExprType::column(ColumnType::new(TypeKind::DateTime(if d.micros == 0 { 0 } else { 6 })), false),
        Value::Time(t) => ExprType::column(ColumnType::new(TypeKind::Time(if t.micros % 1_000_000 == 0 { 0 } else { 6 })), false),
        Value::Json(_) => ExprType::column(ColumnType::new(TypeKind::Json), false),
    }
}

/// The type under which a statement is bound that is kept for other values of a parameter: strings of like length have one, and decimals of one scale.
pub(crate) fn param_type(value: &Value, connection: &'static Collation) -> ExprType {
    let room = |length: usize| (length.max(256).next_power_of_two()) as u32;
    match value {
        Value::Text(s) => ExprType::text(room(s.len()), connection, false),
        Value::Bytes(b) => ExprType::text(room(b.len()), Collation::binary(), false),
        Value::Decimal(d) => ExprType::decimal(u32::from(Decimal::MAX_PRECISION), u32::from(d.scale()), false),
        _ => type_of(value, connection),
    }
}

/// Digits after the point of a temporal literal's text.
fn fraction_digits(text: &str) -> u8 {
    text.split_once('.').map_or(0, |(_, f)| f.bytes().take_while(u8::is_ascii_digit).count().min(6) as u8)
}

impl Binder<'_> {
    pub fn literal(&self, literal: &Literal) -> Result<Expr> {
        Ok(match literal {
            Literal::Null => Expr::null(),
            Literal::Bool(truth) => Expr::boolean(*truth),
            Literal::Int(n) => {
                let digits = n.checked_ilog10().map_or(1, |log| log as usize + 1);
                let value = integer(*n);
                let unsigned = matches!(value, Value::UInt(_));
                Expr::literal(value, integer_type(digits, unsigned))
            }
            Literal::Decimal(text) => decimal_literal(text)?,
            Literal::Float(text) => {
                let value: f64 = text.parse().unwrap_or(f64::INFINITY);
                if value.is_infinite() {
                    return Err(MySqlError::with_message(1367, format!("Illegal double '{text}' value found during parsing")));
                }
                Expr::literal(Value::Double(value), ExprType::double(false))
            }
            Literal::String { value, introducer } => self.string_literal(value, introducer.as_deref())?,
            Literal::Hex { value, introducer } => match introducer {
                Some(name) => self.introduced(value, collation::charset_by_name(name)?)?,
                None => bytes_literal(value),
            },
            Literal::Bit(value) => bytes_literal(value),
            Literal::Date(text) => {
                let value = Value::Text(Str::from(text.as_str()));
                match self.folder.quietly(|cx| cast::to_datetime(&value, cx)) {
                    Some(moment) if moment.time() == highkey_types::Time::default() => {
                        Expr::literal(Value::Date(moment.date), ExprType::column(ColumnType::new(TypeKind::Date), false))
                    }
                    _ => return Err(bad_temporal("DATE", text)),
                }
            }
            Literal::Timestamp(text) => {
                let value = Value::Text(Str::from(text.as_str()));
                let ty = ColumnType::new(TypeKind::DateTime(fraction_digits(text)));
                match self.folder.quietly(|cx| cast::to_datetime(&value, cx)) {
                    // A date alone is no moment.
                    Some(moment) if text.contains(':') || text.bytes().filter(u8::is_ascii_digit).count() > 8 => {
                        Expr::literal(Value::DateTime(moment), ExprType::column(ty, false))
                    }
                    _ => return Err(bad_temporal("DATETIME", text)),
                }
            }
            Literal::Time(text) => {
                let value = Value::Text(Str::from(text.as_str()));
                let ty = ColumnType::new(TypeKind::Time(fraction_digits(text)));
                match self.folder.quietly(|cx| cast::to_time(&value, cx)) {
                    Some(time) => Expr::literal(Value::Time(time), ExprType::column(ty, false)),
                    None => return Err(bad_temporal("TIME", text)),
                }
            }
        })
    }

    fn string_literal(&self, value: &Str, introducer: Option<&str>) -> Result<Expr> {
        let collation = match introducer.map(collation::charset_by_name).transpose()? {
            // What is behind an introducer has its bytes here, or is a hexadecimal literal by now (`session::decode`).
            Some(charset) if !charset.is_utf8() => return self.introduced(value.as_bytes(), charset),
            Some(charset) => Collation::default_among(charset, self.cx.utf8mb4_collation()),
            None => self.cx.collation(),
        };
        if collation.charset == Charset::Binary {
            return Ok(bytes_literal(value.as_bytes()));
        }
        Ok(text_literal(value.clone(), collation))
    }

    /// Bytes behind an introducer. Error 1300 shows the first that are no text of the character set.
    fn introduced(&self, bytes: &[u8], charset: Charset) -> Result<Expr> {
        if charset == Charset::Binary {
            return Ok(bytes_literal(bytes));
        }
        let text = charset.decode(bytes).map_err(|at| {
            MySqlError::with_message(1300, format!("Invalid {} character string: '{}'", charset.name(), invalid_bytes(bytes, at)))
        })?;
        Ok(text_literal(text.into(), Collation::default_among(charset, self.cx.utf8mb4_collation())))
    }

    /// The value of a literal that stays what it is wherever it is put, but in bytes; `None`: see [`Binder::literal`].
    pub(super) fn plain_literal(&self, literal: &Literal) -> Option<Value> {
        match literal {
            Literal::Null => Some(Value::Null),
            Literal::Int(n) => Some(integer(*n)),
            Literal::String { value, introducer: None } if self.cx.collation().charset != Charset::Binary => Some(Value::Text(value.clone())),
            _ => None,
        }
    }

    /// A hexadecimal or bit literal where a number is wanted.
    pub fn numeric_literal(&self, literal: &Literal) -> Option<Expr> {
        let (Literal::Hex { value, introducer: None } | Literal::Bit(value)) = literal else { return None };
        let significant = value.iter().skip_while(|b| **b == 0).count();
        let number = (significant <= 8).then(|| value.iter().fold(0u64, |n, b| n << 8 | u64::from(*b)));
        Some(Expr::literal(Value::UInt(number.unwrap_or(u64::MAX)), ExprType::ubigint(false)))
    }
}

/// An integer literal: unsigned only where it has to be.
fn integer(n: u64) -> Value {
    i64::try_from(n).map_or(Value::UInt(n), Value::Int)
}

fn text_literal(value: Str, collation: &'static Collation) -> Expr {
    let length = value.chars().count() as u32;
    Expr::literal(Value::Text(value), ExprType::text(length, collation, false))
}

fn bytes_literal(value: &[u8]) -> Expr {
    Expr::literal(Value::Bytes(value.to_vec()), ExprType::text(value.len() as u32, Collation::binary(), false))
}

fn decimal_literal(text: &str) -> Result<Expr> {
    let (int, fraction) = text.split_once('.').unwrap_or((text, ""));
    let int = int.trim_start_matches('0');
    if int.len() + fraction.len() > 65 || fraction.len() > 30 {
        // More than DECIMAL holds: MySQL cuts what is beyond 81 digits; here the nearest double serves.
        let value: f64 = text.parse().unwrap_or(f64::MAX);
        if int.len() > 65 {
            return Ok(Expr::literal(Value::Double(value), ExprType::double(false)));
        }
        let fraction = &fraction[..fraction.len().min(30).min(65 - int.len())];
        return decimal_literal(&format!("{int}.{fraction}"));
    }
    let decimal: Decimal = text.trim_end_matches('.').parse().map_err(|()| MySqlError::with_message(1064, format!("Illegal number '{text}'")))?;
    let digits = int.len().max(1) as u32;
    let scale = fraction.len() as u32;
    Ok(Expr::literal(Value::Decimal(decimal), ExprType::decimal(digits + scale, scale, false)))
}

fn bad_temporal(kind: &str, text: &str) -> MySqlError {
    MySqlError::with_message(1525, format!("Incorrect {kind} value: '{text}'"))
}
