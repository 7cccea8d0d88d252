//! Rows: fixed columns at constant offsets, variable columns behind an array of end offsets.

use super::scalar;
use crate::{ColumnType, Date, DateTime, Decimal, I256, SqlMode, Str, Time, TypeKind, Value};

/// Where each column of a table's rows lies.
#[derive(Clone, Debug)]
pub struct RowLayout {
    types: Vec<ColumnType>,
    pub(super) slots: Vec<Slot>,
    /// First byte after the fixed columns: the offset array.
    pub(super) fixed_end: usize,
    pub(super) variable_count: usize,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Slot {
    /// Byte offset and width.
    Fixed(usize, usize),
    /// Position among the variable columns.
    Variable(usize),
}

/// The first byte of a row: bytes of one end offset.
pub(super) const NARROW: u8 = 2;
pub(super) const WIDE: u8 = 4;

impl RowLayout {
    pub fn new(types: &[ColumnType]) -> RowLayout {
        let mut at = 1 + types.len().div_ceil(8);
        let mut variable_count = 0;
        let mut slots = Vec::with_capacity(types.len());
        for ty in types {
            match fixed_width(ty) {
                Some(width) => {
                    slots.push(Slot::Fixed(at, width));
                    at += width;
                }
                None => {
                    slots.push(Slot::Variable(variable_count));
                    variable_count += 1;
                }
            }
        }
        RowLayout { types: types.to_vec(), slots, fixed_end: at, variable_count }
    }

    pub fn types(&self) -> &[ColumnType] {
        &self.types
    }

    /// Appends the row.  Panics if a value is not a stored value of its column's type (I1).
    pub fn encode(&self, values: &[Value], out: &mut Vec<u8>) {
        assert_eq!(values.len(), self.types.len(), "one value per column");
        let start = out.len();
        out.resize(start + self.fixed_end, 0);
        let mut variable_bytes = 0;
        for (col, value) in values.iter().enumerate() {
            if value.is_null() {
                out[start + 1 + col / 8] |= 1 << (col % 8);
                continue;
            }
            match self.slots[col] {
                Slot::Fixed(at, width) => encode_fixed(value, &self.types[col], &mut out[start + at..start + at + width]),
                Slot::Variable(_) => variable_bytes += scalar::bytes(value, &self.types[col]).len(),
            }
        }
        let width = if variable_bytes <= usize::from(u16::MAX) { NARROW } else { WIDE };
        out[start] = width;
        if self.variable_count == 0 {
            return;
        }
        out.reserve(self.variable_count * usize::from(width) + variable_bytes);
        let mut end = 0;
        for (col, value) in values.iter().enumerate() {
            if let Slot::Variable(_) = self.slots[col] {
                if !value.is_null() {
                    end += scalar::bytes(value, &self.types[col]).len();
                }
                out.extend_from_slice(&(end as u32).to_le_bytes()[..usize::from(width)]);
            }
        }
        for (col, value) in values.iter().enumerate() {
            if matches!(self.slots[col], Slot::Variable(_)) && !value.is_null() {
                out.extend_from_slice(scalar::bytes(value, &self.types[col]));
            }
        }
    }

    pub fn is_null(&self, row: &[u8], col: usize) -> bool {
        row[1 + col / 8] >> (col % 8) & 1 == 1
    }

    /// One column's value.
    pub fn value(&self, row: &[u8], col: usize) -> Value {
        if self.is_null(row, col) {
            return Value::Null;
        }
        let ty = &self.types[col];
        match self.slots[col] {
            Slot::Fixed(at, width) => decode_fixed(&row[at..at + width], ty),
            Slot::Variable(index) => {
                let bytes = self.variable(row, index);
                if ty.is_binary() {
                    Value::Bytes(bytes.to_vec())
                } else if ty.kind == TypeKind::Json {
                    Value::Json(text(bytes))
                } else {
                    Value::Text(text(bytes))
                }
            }
        }
    }

    /// All columns' values.
    pub fn values(&self, row: &[u8]) -> Vec<Value> {
        (0..self.types.len()).map(|col| self.value(row, col)).collect()
    }

    /// Gives a fixed column of an encoded row a stored value of its type, not NULL.  Panics for a variable one.
    pub fn set_fixed(&self, row: &mut [u8], col: usize, value: &Value) {
        let Slot::Fixed(at, width) = self.slots[col] else { panic!("column {col} is not of fixed width") };
        encode_fixed(value, &self.types[col], &mut row[at..at + width]);
        row[1 + col / 8] &= !(1 << (col % 8));
    }

    /// A signed integer column (an unsigned one's bits); `None` is NULL.
    pub fn int(&self, row: &[u8], col: usize) -> Option<i64> {
        let (number, width) = self.number(row, col)?;
        Some(if self.types[col].unsigned || !self.types[col].is_integer() { number as i64 } else { scalar::signed(number, width) })
    }

    /// Unsigned integers, BIT, YEAR, ENUM's index and SET's bits; `None` is NULL.
    pub fn uint(&self, row: &[u8], col: usize) -> Option<u64> {
        let (number, width) = self.number(row, col)?;
        let ty = &self.types[col];
        Some(match ty.kind {
            TypeKind::Year if number > 0 => number + 1900,
            _ if ty.is_integer() && !ty.unsigned => scalar::signed(number, width) as u64,
            _ => number,
        })
    }

    /// FLOAT and DOUBLE; `None` is NULL.
    pub fn double(&self, row: &[u8], col: usize) -> Option<f64> {
        let bytes = self.fixed(row, col)?;
        Some(match bytes.len() {
            4 => f64::from(f32::from_le_bytes(array(bytes))),
            _ => f64::from_le_bytes(array(bytes)),
        })
    }

    /// The unscaled number of a DECIMAL; `None` is NULL.
    pub fn decimal(&self, row: &[u8], col: usize) -> Option<I256> {
        Some(unscaled_of(self.fixed(row, col)?))
    }

    /// The unscaled number of a DECIMAL of at most 38 digits; `None` is NULL.
    pub fn decimal_i128(&self, row: &[u8], col: usize) -> Option<i128> {
        let bytes = self.fixed(row, col)?;
        Some(match bytes.len() {
            4 => i128::from(i32::from_le_bytes(array(bytes))),
            8 => i128::from(i64::from_le_bytes(array(bytes))),
            16 => i128::from_le_bytes(array(bytes)),
            _ => unscaled_of(bytes).as_i128(),
        })
    }

    /// DATE; `None` is NULL.
    pub fn date(&self, row: &[u8], col: usize) -> Option<Date> {
        Some(scalar::date_of(self.number(row, col)?.0))
    }

    /// DATETIME, and TIMESTAMP in UTC; `None` is NULL.
    pub fn datetime(&self, row: &[u8], col: usize) -> Option<DateTime> {
        let (number, _) = self.number(row, col)?;
        Some(match self.types[col].kind {
            TypeKind::Timestamp(fsp) => scalar::timestamp_of(number, fsp),
            _ => scalar::datetime_of(number, self.types[col].fsp()),
        })
    }

    /// `SqlMode::admits` of a column's value.
    pub fn is_admitted(&self, row: &[u8], col: usize, mode: &SqlMode) -> bool {
        match self.types[col].kind {
            TypeKind::Date => self.date(row, col).is_none_or(|date| mode.admits(&Value::Date(date))),
            TypeKind::DateTime(_) => self.datetime(row, col).is_none_or(|moment| mode.admits(&Value::DateTime(moment))),
            // Any other moment is a date of the calendar.
            TypeKind::Timestamp(_) => !mode.no_zero_date || self.number(row, col).is_none_or(|(number, _)| number != 0),
            _ => true,
        }
    }

    /// TIME; `None` is NULL.
    pub fn time(&self, row: &[u8], col: usize) -> Option<Time> {
        let (number, width) = self.number(row, col)?;
        Some(scalar::time_of(number, self.types[col].fsp(), width))
    }

    /// The stored bytes of a text (UTF-8), binary or JSON column; `None` is NULL.
    pub fn bytes<'r>(&self, row: &'r [u8], col: usize) -> Option<&'r [u8]> {
        match self.slots[col] {
            Slot::Variable(index) if !self.is_null(row, col) => Some(self.variable(row, index)),
            _ => None,
        }
    }

    /// The stored bytes of a fixed column.
    pub(super) fn fixed<'r>(&self, row: &'r [u8], col: usize) -> Option<&'r [u8]> {
        match self.slots[col] {
            Slot::Fixed(at, width) if !self.is_null(row, col) => Some(&row[at..at + width]),
            _ => None,
        }
    }

    /// The number of a column that is one, and its width.
    fn number(&self, row: &[u8], col: usize) -> Option<(u64, usize)> {
        let bytes = self.fixed(row, col)?;
        Some((little_endian(bytes), bytes.len()))
    }

    fn variable<'r>(&self, row: &'r [u8], index: usize) -> &'r [u8] {
        let width = usize::from(row[0]);
        let offset = |index: usize| {
            let at = self.fixed_end + index * width;
            little_endian(&row[at..at + width]) as usize
        };
        let data = self.fixed_end + self.variable_count * width;
        let start = if index == 0 { 0 } else { offset(index - 1) };
        &row[data + start..data + offset(index)]
    }
}

/// Bytes of a fixed column; `None` for a variable one.
fn fixed_width(ty: &ColumnType) -> Option<usize> {
    scalar::width(ty).or(match ty.kind {
        TypeKind::Float => Some(4),
        TypeKind::Double => Some(8),
        TypeKind::Null => Some(0),
        TypeKind::Decimal { precision, .. } => Some(match precision {
            0..=9 => 4,
            10..=18 => 8,
            19..=38 => 16,
            _ => 32,
        }),
        _ => None,
    })
}

fn encode_fixed(value: &Value, ty: &ColumnType, out: &mut [u8]) {
    match ty.kind {
        TypeKind::Float => out.copy_from_slice(&(scalar::double(value, ty) as f32).to_le_bytes()),
        TypeKind::Double => out.copy_from_slice(&scalar::double(value, ty).to_le_bytes()),
        TypeKind::Decimal { scale, .. } => {
            let width = out.len();
            out.copy_from_slice(&scalar::unscaled(value, ty, scale).to_le_bytes()[..width]);
        }
        TypeKind::Null => {}
        _ => {
            let width = out.len();
            out.copy_from_slice(&scalar::to_number(value, ty, width).to_le_bytes()[..width]);
        }
    }
}

fn decode_fixed(bytes: &[u8], ty: &ColumnType) -> Value {
    match ty.kind {
        TypeKind::Float => Value::Float(f32::from_le_bytes(array(bytes))),
        TypeKind::Double => Value::Double(f64::from_le_bytes(array(bytes))),
        TypeKind::Decimal { scale, .. } => Value::Decimal(Decimal::new(unscaled_of(bytes), scale)),
        TypeKind::Null => Value::Null,
        _ => scalar::from_number(little_endian(bytes), ty, bytes.len()),
    }
}

fn unscaled_of(bytes: &[u8]) -> I256 {
    match bytes.len() {
        4 => I256::from(i32::from_le_bytes(array(bytes))),
        8 => I256::from(i64::from_le_bytes(array(bytes))),
        16 => I256::from(i128::from_le_bytes(array(bytes))),
        _ => I256::from_le_bytes(array(bytes)),
    }
}

/// A number of up to eight bytes.
fn little_endian(bytes: &[u8]) -> u64 {
    match bytes.len() {
        1 => u64::from(bytes[0]),
        2 => u64::from(u16::from_le_bytes(array(bytes))),
        4 => u64::from(u32::from_le_bytes(array(bytes))),
        8 => u64::from_le_bytes(array(bytes)),
        n => {
            let mut all = [0; 8];
            all[..n].copy_from_slice(bytes);
            u64::from_le_bytes(all)
        }
    }
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut all = [0; N];
    all.copy_from_slice(bytes);
    all
}

/// Stored text is UTF-8 by I1; bytes that a fault made something else become replacement characters.
fn text(bytes: &[u8]) -> Str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes).into(),
    }
}
