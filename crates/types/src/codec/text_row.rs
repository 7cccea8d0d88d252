//! Text fields straight to a row's bytes, for bulk loading: without a [`Value`] per field, `store` and its context.
//!
//! Only plain values are encoded: those that every sql_mode stores as they are, without a warning and without asking the
//! session.  The rest is declined and goes the long way, so a form that is missing here costs time and nothing else.
//! What is not declined has the bytes that `store` and `RowLayout::encode` give (I5 of README.md).

mod number;
mod string;

use self::number::NumberForm;
use self::string::StringForm;
use super::row::{NARROW, RowLayout, Slot, WIDE};
use crate::{Charset, ColumnType, Value};

/// Encodes rows straight from text fields.
#[derive(Clone, Debug)]
pub struct TextRowEncoder {
    field_count: usize,
    charset: Charset,
    /// The bytes before the data of a narrow row, with the constants and their NULL bits in place.
    head: Vec<u8>,
    numbers: Vec<NumberColumn>,
    /// In the order of the columns, which is the order of the data.
    strings: Vec<StringColumn>,
}

#[derive(Clone, Debug)]
struct NumberColumn {
    field: Field,
    at: usize,
    width: usize,
    form: NumberForm,
}

/// Where a column's text is, and where its NULL is noted.
#[derive(Clone, Copy, Debug)]
struct Field {
    index: usize,
    nullable: bool,
    null_byte: usize,
    null_bit: u8,
}

#[derive(Clone, Debug)]
enum StringColumn {
    /// A default's bytes; empty for NULL.
    Constant(Vec<u8>),
    Field(Field, StringForm),
}

/// Why a row was not written.
enum Refusal {
    Declined,
    /// More variable data than the offsets of this width reach.
    TooLong,
}

impl TextRowEncoder {
    /// `types` and `nullable` are the table's columns.  Field `i` goes to column `columns[i]`, in the file's character set
    /// `charset`.  `others` has a place per column: the stored value, `Null` included, of each one that no field goes to.
    /// `None`: not for these columns, as one has a type without plain values, no value, or a NULL it must not have.
    pub fn new(types: &[ColumnType], nullable: &[bool], columns: &[usize], others: &[Option<Value>], charset: Charset) -> Option<TextRowEncoder> {
        if nullable.len() != types.len() || others.len() != types.len() || charset.min_bytes() > 1 {
            return None;
        }
        let mut fields = vec![None; types.len()];
        for (index, column) in columns.iter().enumerate() {
            let nullable = *nullable.get(*column)?;
            let field = Field { index, nullable, null_byte: 1 + column / 8, null_bit: 1 << (column % 8) };
            if fields[*column].replace(field).is_some() {
                return None;
            }
        }
        let mut constants = Vec::with_capacity(types.len());
        for (column, other) in others.iter().enumerate() {
            constants.push(match (&fields[column], other) {
                (Some(_), _) => Value::Null,
                (None, Some(Value::Null)) if !nullable[column] => return None,
                (None, other) => other.clone()?,
            });
        }
        let layout = RowLayout::new(types);
        let mut row = Vec::new();
        layout.encode(&constants, &mut row);
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for (column, ty) in types.iter().enumerate() {
            match (layout.slots[column], fields[column]) {
                (Slot::Fixed(..), None) => {}
                (Slot::Fixed(at, width), Some(field)) => numbers.push(NumberColumn { field, at, width, form: NumberForm::of(ty)? }),
                (Slot::Variable(_), None) => strings.push(StringColumn::Constant(layout.bytes(&row, column).unwrap_or_default().to_vec())),
                (Slot::Variable(_), Some(field)) => strings.push(StringColumn::Field(field, StringForm::of(ty)?)),
            }
        }
        row.truncate(layout.fixed_end);
        row.resize(layout.fixed_end + strings.len() * usize::from(NARROW), 0);
        for field in fields.iter().flatten() {
            row[field.null_byte] &= !field.null_bit;
        }
        Some(TextRowEncoder { field_count: columns.len(), charset, head: row, numbers, strings })
    }

    /// Appends the row of `fields`, one per column of `new`, `None` being NULL.  False: declined, and `out` is as before.
    pub fn encode(&self, fields: &[Option<&[u8]>], out: &mut Vec<u8>) -> bool {
        if fields.len() != self.field_count {
            return false;
        }
        let start = out.len();
        let mut written = self.write(fields, NARROW, out);
        if let Err(Refusal::TooLong) = written {
            out.truncate(start);
            written = self.write(fields, WIDE, out);
        }
        if written.is_err() {
            out.truncate(start);
        }
        written.is_ok()
    }

    /// Appends the row with end offsets of `width` bytes, a part of it if refused.
    fn write(&self, fields: &[Option<&[u8]>], width: u8, out: &mut Vec<u8>) -> Result<(), Refusal> {
        let start = out.len();
        out.extend_from_slice(&self.head);
        let row = &mut out[start..];
        row[0] = width;
        for column in &self.numbers {
            match fields[column.field.index] {
                None => column.field.set_null(row)?,
                Some(text) => {
                    let to = &mut row[column.at..column.at + column.width];
                    column.form.write(text, self.charset, to).ok_or(Refusal::Declined)?;
                }
            }
        }
        let width = usize::from(width);
        let ends = out.len() - self.strings.len() * usize::from(NARROW);
        let data = ends + self.strings.len() * width;
        out.resize(data, 0);
        for (i, column) in self.strings.iter().enumerate() {
            match column {
                StringColumn::Constant(bytes) => out.extend_from_slice(bytes),
                StringColumn::Field(field, form) => match fields[field.index] {
                    None => field.set_null(&mut out[start..])?,
                    Some(text) => form.append(text, self.charset, out).ok_or(Refusal::Declined)?,
                },
            }
            let end = out.len() - data;
            if width == usize::from(NARROW) && end > usize::from(u16::MAX) {
                return Err(Refusal::TooLong);
            }
            let at = ends + i * width;
            out[at..at + width].copy_from_slice(&(end as u32).to_le_bytes()[..width]);
        }
        Ok(())
    }
}

impl Field {
    fn set_null(&self, row: &mut [u8]) -> Result<(), Refusal> {
        row[self.null_byte] |= self.null_bit;
        if self.nullable { Ok(()) } else { Err(Refusal::Declined) }
    }
}

#[cfg(test)]
mod tests;
