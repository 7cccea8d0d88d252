//! Rows of which some columns come from index keys: what a scan of an index reads that needs no row.

use std::sync::Arc;

use super::key::{KeyPart, NULL, decimal_width, key_part_len};
use super::row::{NARROW, RowLayout, Slot, WIDE};
use super::scalar;
use crate::TypeKind;

/// Whether the column of an index part has, in every row, the bytes that follow from its key.
pub fn follows_from_key(part: &KeyPart) -> bool {
    let ty = &part.ty;
    part.prefix.is_none()
        && match &ty.kind {
            TypeKind::Decimal { .. } => true,
            // 0 and -0 have one key.
            TypeKind::Float | TypeKind::Double => false,
            TypeKind::Json | TypeKind::Null | TypeKind::Geometry(_) => false,
            _ => scalar::width(ty).is_some() || (ty.is_text() || ty.is_binary()) && ty.collation.key_has_text(),
        }
}

/// Makes rows of one layout: the columns that are taken from keys, NULL for all others.
#[derive(Clone, Debug)]
pub struct RowOfKeys {
    layout: Arc<RowLayout>,
    /// The head of a row of NULLs, up to the end of the fixed columns.
    blank: Vec<u8>,
    /// That of the present row.
    head: Vec<u8>,
    /// Of each variable column, where it lies in `bytes`.
    variable: Vec<(usize, usize)>,
    bytes: Vec<u8>,
}

impl RowOfKeys {
    pub fn new(layout: &Arc<RowLayout>) -> RowOfKeys {
        let mut blank = vec![0; layout.fixed_end];
        blank[0] = NARROW;
        for col in 0..layout.types().len() {
            blank[1 + col / 8] |= 1 << (col % 8);
        }
        RowOfKeys { layout: layout.clone(), head: blank.clone(), blank, variable: vec![(0, 0); layout.variable_count], bytes: Vec::new() }
    }

    /// Begins a row of NULLs.
    pub fn begin(&mut self) {
        self.head.copy_from_slice(&self.blank);
        self.variable.fill((0, 0));
        self.bytes.clear();
    }

    /// Gives a column, which has none yet, the value of its part, with which `key` begins: what comes behind the part. `None` if there is no such part, or
    /// the value does not follow from it ([`follows_from_key`]); the row is then of no use.
    pub fn take<'k>(&mut self, col: usize, part: &KeyPart, key: &'k [u8]) -> Option<&'k [u8]> {
        let flip: u8 = if part.descending { 0xFF } else { 0 };
        let mut value = key;
        if part.nullable {
            let (first, rest) = key.split_first()?;
            if first ^ flip == NULL {
                return Some(rest);
            }
            value = rest;
        }
        let rest = match self.layout.slots[col] {
            Slot::Fixed(at, width) => {
                let is_decimal = matches!(part.ty.kind, TypeKind::Decimal { .. });
                let in_key = match &part.ty.kind {
                    TypeKind::Decimal { precision, .. } => decimal_width(*precision),
                    _ => scalar::width(&part.ty)?,
                };
                let (number, rest) = value.split_at_checked(in_key)?;
                let out = &mut self.head[at..at + width];
                for (to, from) in out.iter_mut().zip(number.iter().rev()) {
                    *to = from ^ flip;
                }
                if is_decimal {
                    // Two's complement: the key has the sign bit flipped, and the row repeats it above the key's bytes.
                    out[in_key - 1] ^= 0x80;
                    let sign = if out[in_key - 1] & 0x80 == 0 { 0 } else { 0xFF };
                    out[in_key..].fill(sign);
                }
                rest
            }
            Slot::Variable(index) => {
                let start = self.bytes.len();
                let length = part.ty.collation.push_text_of_key(value, flip, &mut self.bytes)?;
                self.variable[index] = (start, self.bytes.len());
                &value[length..]
            }
        };
        self.head[1 + col / 8] &= !(1 << (col % 8));
        Some(rest)
    }

    /// What comes behind a part that nobody asks for.
    pub fn skip<'k>(part: &KeyPart, key: &'k [u8]) -> &'k [u8] {
        &key[key_part_len(part, key)..]
    }

    /// Appends the row: the bytes that [`RowLayout::encode`] makes of its values.
    pub fn finish(&self, out: &mut Vec<u8>) {
        let width = if self.bytes.len() <= usize::from(u16::MAX) { NARROW } else { WIDE };
        let start = out.len();
        out.extend_from_slice(&self.head);
        out[start] = width;
        let mut end = 0;
        for (from, to) in &self.variable {
            end += to - from;
            out.extend_from_slice(&(end as u32).to_le_bytes()[..usize::from(width)]);
        }
        for (from, to) in &self.variable {
            out.extend_from_slice(&self.bytes[*from..*to]);
        }
    }
}
