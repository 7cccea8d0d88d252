//! What CHECKSUM TABLE sums up: rows as MySQL's server has them in memory. Their values are packed as in row images, but for strings.
//!
//! A row is the bits of its NULLs, then its columns. The first bit is 1 and of no column unless the format of rows is dynamic, which one column of variable
//! length makes it; bits behind the last are 1, and all of the last byte if there are none. CHAR and BINARY are padded, VARCHAR, TEXT and BLOB have no
//! lengths, JSON is text. In the place of a NULL are the bytes of the column's default, or of zero.

use highkey_types::{Charset, ColumnType, Decimal, Value};

use crate::row::{Packing, length_bytes};

/// How rows of a table are summed up.
pub struct RecordSum {
    columns: Vec<RecordColumn>,
    dynamic: bool,
    nullable_count: usize,
}

struct RecordColumn {
    ty: ColumnType,
    packing: Packing,
    nullable: bool,
    /// In the place of NULL.
    null: Vec<u8>,
}

impl RecordSum {
    /// Of each column the type, whether it may be NULL, and its default if that is a value. `dynamic`: the table has ROW_FORMAT=DYNAMIC.
    pub fn new<'a>(columns: impl IntoIterator<Item = (&'a ColumnType, bool, Option<&'a Value>)>, dynamic: bool) -> RecordSum {
        let column = |(ty, nullable, default): (&ColumnType, bool, Option<&Value>)| {
            let packing = Packing::of(ty);
            let mut null = Vec::new();
            match default.filter(|default| !default.is_null()) {
                Some(default) => push(packing, ty, default, &mut null),
                None => push_zero(packing, &mut null),
            }
            RecordColumn { ty: ty.clone(), packing, nullable, null }
        };
        let columns: Vec<RecordColumn> = columns.into_iter().map(column).collect();
        let varies = |column: &RecordColumn| matches!(column.packing, Packing::Variable { .. } | Packing::Blob { .. } | Packing::Json | Packing::Geometry);
        let dynamic = dynamic || columns.iter().any(varies);
        RecordSum { nullable_count: columns.iter().filter(|column| column.nullable).count(), columns, dynamic }
    }

    /// The sum of a row, given a value for each column; those of all rows are added up modulo 2^32. What is in `buffer` is lost. Panics if a value is not a
    /// stored value of its column's type.
    pub fn of(&self, values: &[Value], buffer: &mut Vec<u8>) -> u32 {
        assert_eq!(values.len(), self.columns.len(), "I2: a value for each column");
        let mut bit = usize::from(!self.dynamic);
        let bits = bit + self.nullable_count;
        buffer.clear();
        buffer.resize(bits.div_ceil(8), 0);
        if !self.dynamic {
            buffer[0] = 1;
        }
        for (_, value) in self.columns.iter().zip(values).filter(|(column, _)| column.nullable) {
            if value.is_null() {
                buffer[bit / 8] |= 1 << (bit % 8);
            }
            bit += 1;
        }
        if let Some(last) = buffer.last_mut() {
            *last |= 0xff << (bits % 8);
        }
        for (column, value) in self.columns.iter().zip(values) {
            match value {
                Value::Null => buffer.extend_from_slice(&column.null),
                value => push(column.packing, &column.ty, value, buffer),
            }
        }
        crc32fast::hash(buffer)
    }
}

/// With what CHAR and BINARY are padded.
fn fill(charset: Charset) -> u8 {
    if charset == Charset::Binary { 0 } else { b' ' }
}

fn push(packing: Packing, ty: &ColumnType, value: &Value, out: &mut Vec<u8>) {
    let start = out.len();
    match packing {
        Packing::Json => {
            value.to_text(ty, out);
        }
        Packing::Fixed { charset, max_bytes } => {
            push_without_length(packing, value, length_bytes(max_bytes), out);
            out.resize(start + usize::from(max_bytes), fill(charset));
        }
        Packing::Variable { max_bytes, .. } => push_without_length(packing, value, length_bytes(max_bytes), out),
        Packing::Blob { length_bytes, .. } => push_without_length(packing, value, length_bytes, out),
        Packing::Geometry => push_without_length(packing, value, 4, out),
        _ => packing.pack(value, out),
    }
}

fn push_without_length(packing: Packing, value: &Value, length_bytes: u8, out: &mut Vec<u8>) {
    let start = out.len();
    packing.pack(value, out);
    out.drain(start..start + usize::from(length_bytes));
}

fn push_zero(packing: Packing, out: &mut Vec<u8>) {
    let start = out.len();
    let mut zeros = |count: usize| out.resize(start + count, 0);
    match packing {
        Packing::Int { bytes } | Packing::Enum { bytes } | Packing::Set { bytes } => zeros(usize::from(bytes)),
        Packing::Float => zeros(4),
        Packing::Double => zeros(8),
        Packing::Year => zeros(1),
        Packing::Date => zeros(3),
        Packing::Bit { bits } => zeros(usize::from(bits.div_ceil(8))),
        Packing::Timestamp { fsp } => zeros(4 + usize::from(fsp.div_ceil(2))),
        Packing::Time { fsp } => {
            zeros(3 + usize::from(fsp.div_ceil(2)));
            out[start] = 0x80;
        }
        Packing::DateTime { fsp } => {
            zeros(5 + usize::from(fsp.div_ceil(2)));
            out[start] = 0x80;
        }
        Packing::Decimal { scale, .. } => packing.pack(&Value::Decimal(Decimal::from_i128(0, scale)), out),
        Packing::Fixed { charset, max_bytes } => out.resize(start + usize::from(max_bytes), fill(charset)),
        Packing::Variable { .. } | Packing::Blob { .. } | Packing::Geometry => {}
        Packing::Json => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use highkey_types::TypeKind;

    use super::*;

    /// What MySQL 8.0.12 says of tables of one row; more is in `tests/golden/checksum.sql`.
    #[test]
    fn sums_are_mysqls() {
        let int = ColumnType::new(TypeKind::Int);
        let mut buffer = vec![7];
        assert_eq!(RecordSum::new([(&int, false, None)], false).of(&[Value::Int(5)], &mut buffer), 999_866_531);
        // The bytes, by which the others were found.
        let mut bytes = |columns: &[(&ColumnType, bool, Option<&Value>)], dynamic: bool, values: &[Value]| {
            RecordSum::new(columns.iter().copied(), dynamic).of(values, &mut buffer);
            buffer.clone()
        };
        assert_eq!(bytes(&[(&int, true, None)], false, &[Value::Int(5)]), [0xfd, 5, 0, 0, 0]);
        assert_eq!(bytes(&[(&int, false, None)], true, &[Value::Int(5)]), [5, 0, 0, 0]);
        assert_eq!(bytes(&[(&int, true, Some(&Value::Int(7)))], false, &[Value::Null]), [0xff, 7, 0, 0, 0]);
        let seven = [(&int, true, None); 7];
        let ones: Vec<Value> = (0..7).map(|_| Value::Int(1)).collect();
        assert_eq!(bytes(&seven, false, &ones)[0], 0xff);
    }
}
