//! Columns whose type is another one here than on the source: which conversions `slave_type_conversions` allows, and what becomes of the values.
//! The rules are MySQL's (`rpl_utility.cc`); where it makes garbage of a fraction of a second, the fraction is cut or filled with zeros.

use std::cmp::Ordering;

use highkey_types::{ColumnType, SqlMode, Str, StoreContext, TimeZone, TypeKind, Value};

use super::image::{BINARY_COLLATION, SourceColumn, code, decimal, little_endian, sign_extended, take};

/// `slave_type_conversions`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Conversions {
    lossy: bool,
    non_lossy: bool,
    /// An integer that is converted was unsigned on the source: no event says.
    unsigned: bool,
}

impl Conversions {
    pub fn parse(text: &str) -> Conversions {
        let has = |name: &str| text.split(',').any(|word| word == name);
        Conversions { lossy: has("ALL_LOSSY"), non_lossy: has("ALL_NON_LOSSY"), unsigned: has("ALL_UNSIGNED") && !has("ALL_SIGNED") }
    }

    /// Whether values of a source's column may become a column's of this type.
    pub fn allow(self, theirs: &SourceColumn, ours: &ColumnType) -> bool {
        match theirs.order(ours) {
            Some(Ordering::Less) => self.non_lossy,
            Some(Ordering::Greater) => self.lossy,
            Some(Ordering::Equal) => true,
            None => false,
        }
    }
}

impl SourceColumn {
    /// How this type is to one of ours that its values could be converted to: `Less` if that takes all of them, `Greater` if it may lose something.
    /// None: they are not converted.
    fn order(&self, ty: &ColumnType) -> Option<Ordering> {
        let (low, high) = ((self.meta & 255) as u8, (self.meta >> 8) as u8);
        match (self.code, &ty.kind) {
            (code::TINY | code::SHORT | code::INT24 | code::LONG | code::LONGLONG, _) if ty.is_integer() => Some(self.integer_bytes().cmp(&ty.max_bytes())),
            (code::FLOAT, TypeKind::Double) => Some(Ordering::Less),
            (code::DOUBLE, TypeKind::Float) | (code::FLOAT | code::DOUBLE, TypeKind::Decimal { .. }) | (code::NEWDECIMAL, TypeKind::Float | TypeKind::Double) => {
                Some(Ordering::Greater)
            }
            (code::NEWDECIMAL, TypeKind::Decimal { precision, scale }) => Some((low, high).cmp(&(*precision, *scale))),
            (code::BIT, TypeKind::Bit(bits)) => Some((u16::from(high) * 8 + u16::from(low)).cmp(&u16::from(*bits))),
            (code::ENUM, TypeKind::Enum(_)) | (code::SET, TypeKind::Set(_)) => Some(u64::from(self.meta).cmp(&ty.max_bytes())),
            (code::TIME2, TypeKind::Time(fsp)) | (code::DATETIME2, TypeKind::DateTime(fsp)) | (code::TIMESTAMP2, TypeKind::Timestamp(fsp)) => Some(low.cmp(fsp)),
            (code::VARCHAR | code::VAR_STRING | code::STRING | code::BLOB, _) if (ty.is_text() || ty.is_binary()) && !ty.is_geometry() => self.string_order(ty),
            _ => None,
        }
    }

    fn integer_bytes(&self) -> u64 {
        match self.code {
            code::TINY => 1,
            code::SHORT => 2,
            code::INT24 => 3,
            code::LONG => 4,
            _ => 8,
        }
    }

    /// By the most bytes of a value. Of kinds that differ, one takes the other's values as they are only where that is allowed.
    fn string_order(&self, ty: &ColumnType) -> Option<Ordering> {
        let (bytes, same_kind) = match self.code {
            code::BLOB => (u64::from(u32::MAX >> (32 - 8 * u32::from(self.meta.clamp(1, 4)))), ty.is_blob()),
            code::STRING => (u64::from(self.meta), matches!(ty.kind, TypeKind::Char(_) | TypeKind::Binary(_))),
            _ => (u64::from(self.meta), matches!(ty.kind, TypeKind::VarChar(_) | TypeKind::VarBinary(_))),
        };
        Some(match bytes.cmp(&ty.max_bytes()) {
            Ordering::Equal if !same_kind => Ordering::Less,
            order => order,
        })
    }

    /// As `decode`, for a column that the values are converted to: what it cannot hold is cut, or becomes the nearest that it can. The error says what is
    /// wrong with the image.
    pub(super) fn convert(&self, ty: &ColumnType, conversions: Conversions, bytes: &mut &[u8]) -> Result<Value, String> {
        let value = match (self.code, &ty.kind) {
            (code::TINY | code::SHORT | code::INT24 | code::LONG | code::LONGLONG, _) => {
                let number = take(bytes, self.integer_bytes() as usize)?;
                if conversions.unsigned { Value::UInt(little_endian(number)) } else { Value::Int(sign_extended(number)) }
            }
            (code::ENUM, TypeKind::Enum(members)) => {
                let index = little_endian(take(bytes, usize::from(self.meta.clamp(1, 2)))?);
                return Ok(match members.get((index as usize).wrapping_sub(1)) {
                    Some(member) => Value::Enum(index as u16, member.clone()),
                    None => Value::Enum(0, Str::from("")),
                });
            }
            (code::SET, TypeKind::Set(members)) => {
                let bits = little_endian(take(bytes, usize::from(self.meta.clamp(1, 8)))?);
                let known = if members.len() < 64 { bits & ((1 << members.len()) - 1) } else { bits };
                let chosen: Vec<&str> = members.iter().enumerate().filter(|(i, _)| known >> i & 1 == 1).map(|(_, m)| &**m).collect();
                return Ok(Value::Set(known, chosen.join(",").into()));
            }
            (code::BIT, TypeKind::Bit(bits)) => {
                let most = u64::MAX >> (64 - u32::from(*bits).clamp(1, 64));
                return Ok(match self.decode(ty, bytes)? {
                    Value::UInt(value) => Value::UInt(value.min(most)),
                    other => other,
                });
            }
            (code::STRING, _) if ty.is_binary() && self.collation == Some(BINARY_COLLATION) => {
                let Value::Bytes(mut value) = self.decode(ty, bytes)? else { return Err("its text is no binary string".into()) };
                // Trailing zeros stay out of the image.
                value.resize(usize::from(self.meta), 0);
                Value::Bytes(value)
            }
            _ => self.decode(ty, bytes)?,
        };
        let value = match (value, &ty.kind) {
            // Stored values are in UTC: no time zone is theirs.
            (Value::DateTime(value), TypeKind::DateTime(fsp) | TypeKind::Timestamp(fsp)) => return Ok(Value::DateTime(value.truncate(*fsp))),
            (Value::Time(value), TypeKind::Time(fsp)) => return Ok(Value::Time(value.truncate(*fsp))),
            (Value::Float(value), _) => Value::Double(f64::from(value)),
            (value, _) => value,
        };
        let mut warnings = Vec::new();
        // No TIME is converted to a date: the day does not matter.
        let mut cx = StoreContext {
            strict: false,
            ignore: true,
            mode: SqlMode::default(),
            time_zone: &TimeZone::utc(),
            now_micros: 0,
            row: 1,
            warnings: &mut warnings,
        };
        highkey_types::store(value, ty, "", &mut cx).map_err(|e| e.message)
    }

    /// Passes over one value at the front of `bytes`: of a column that we have not.
    pub(super) fn skip(&self, bytes: &mut &[u8]) -> Result<(), String> {
        let (low, high) = (usize::from(self.meta & 255), usize::from(self.meta >> 8));
        let fraction = low.div_ceil(2);
        let length = match self.code {
            code::TINY | code::YEAR => 1,
            code::SHORT => 2,
            code::INT24 | code::DATE | code::NEWDATE | code::TIME => 3,
            code::LONG | code::FLOAT | code::TIMESTAMP => 4,
            code::LONGLONG | code::DOUBLE | code::DATETIME => 8,
            code::NEWDECIMAL => return decimal(low as u8, high as u8, bytes).map(drop),
            code::BIT => (high * 8 + low).div_ceil(8),
            code::TIME2 => 3 + fraction,
            code::TIMESTAMP2 => 4 + fraction,
            code::DATETIME2 => 5 + fraction,
            code::ENUM => usize::from(self.meta.clamp(1, 2)),
            code::SET => usize::from(self.meta.clamp(1, 8)),
            code::JSON | code::BLOB | code::GEOMETRY => little_endian(take(bytes, usize::from(self.meta.clamp(1, 4)))?) as usize,
            _ => little_endian(take(bytes, if self.meta > 255 { 2 } else { 1 })?) as usize,
        };
        take(bytes, length).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highkey_types::Collation;
    use std::sync::Arc;

    /// What becomes of an image under a setting; `-` where it is refused.
    fn converted(theirs: SourceColumn, ty: &ColumnType, setting: &str, image: &[u8]) -> String {
        let conversions = Conversions::parse(setting);
        if !theirs.fits(ty) && !conversions.allow(&theirs, ty) {
            return "-".into();
        }
        let mut skipped = image;
        theirs.skip(&mut skipped).unwrap();
        assert!(skipped.is_empty(), "{theirs:?} passes over its image");
        let mut rest = image;
        let value = if theirs.fits(ty) { theirs.decode(ty, &mut rest) } else { theirs.convert(ty, conversions, &mut rest) };
        assert!(rest.is_empty());
        let mut text = Vec::new();
        assert!(value.unwrap().to_text(ty, &mut text));
        String::from_utf8_lossy(&text).into_owned()
    }

    const LOSSY: &str = "ALL_LOSSY";
    const NON_LOSSY: &str = "ALL_NON_LOSSY";
    const BOTH: &str = "ALL_LOSSY,ALL_NON_LOSSY";

    /// Recorded from a replica of MySQL 8.0.12.
    #[test]
    fn values_are_converted_as_allowed() {
        use TypeKind::*;
        let plain = ColumnType::new;
        let text = |kind| ColumnType::with_collation(kind, Collation::utf8mb4());
        let column = |code, meta: &[u8]| SourceColumn::new(code, meta).unwrap();
        let (tiny, short, medium, int, big) = (column(1, &[]), column(2, &[]), column(9, &[]), column(3, &[]), column(8, &[]));
        let decimal_10_2 = column(246, &[10, 2]);
        // 1.55 and -99999.99 of a DECIMAL(10,2).
        let (small, large): ([u8; 5], [u8; 5]) = ([0x80, 0, 0, 1, 55], [0x7F, 0xFE, 0x79, 0x60, 0x9C]);
        let members = |n: usize| -> Arc<[Str]> { (0..n).map(|i| Str::from(format!("m{i}"))).collect() };
        let enumeration = |n| plain(Enum(members(n)));
        let set = |n| plain(Set(members(n)));
        let cases: Vec<(SourceColumn, ColumnType, &str, Vec<u8>, &str)> = vec![
            (tiny, plain(SmallInt), "", vec![0x80], "-"),
            (tiny, plain(SmallInt), LOSSY, vec![0x80], "-"),
            (tiny, plain(SmallInt), NON_LOSSY, vec![0x80], "-128"),
            (tiny, plain(SmallInt).unsigned(), NON_LOSSY, vec![0xFF], "0"),
            (tiny, plain(SmallInt).unsigned(), "ALL_NON_LOSSY,ALL_UNSIGNED", vec![0xFF], "255"),
            (tiny, plain(SmallInt), "ALL_NON_LOSSY,ALL_UNSIGNED,ALL_SIGNED", vec![0xFF], "-1"),
            (short, plain(TinyInt), NON_LOSSY, vec![0, 0x80], "-"),
            (short, plain(TinyInt), LOSSY, vec![0, 0x80], "-128"),
            (short, plain(TinyInt), "ALL_LOSSY,ALL_UNSIGNED", vec![0, 0x80], "127"),
            (medium, plain(Int), "ALL_NON_LOSSY,ALL_UNSIGNED", vec![0, 0x80, 0xFF], "16744448"),
            (int, plain(MediumInt), LOSSY, vec![0xFF, 0xFF, 0xFF, 0x7F], "8388607"),
            (int, plain(SmallInt).unsigned(), LOSSY, 70_000_i32.to_le_bytes().to_vec(), "65535"),
            (int, plain(BigInt), NON_LOSSY, 4_000_000_000_u32.to_le_bytes().to_vec(), "-294967296"),
            // The sign makes no other type.
            (int, plain(Int).unsigned(), "", (-5_i32).to_le_bytes().to_vec(), "4294967291"),
            (big, plain(Int).unsigned(), "ALL_LOSSY,ALL_UNSIGNED", vec![0xFF; 8], "4294967295"),
            (int, plain(Double), BOTH, vec![1, 0, 0, 0], "-"),
            (int, ColumnType::decimal(10, 2), BOTH, vec![1, 0, 0, 0], "-"),
            (column(4, &[4]), plain(Double), NON_LOSSY, 1.5_f32.to_le_bytes().to_vec(), "1.5"),
            (column(5, &[8]), plain(Float), LOSSY, 1e300_f64.to_le_bytes().to_vec(), "3.40282e38"),
            (column(5, &[8]), plain(Float), NON_LOSSY, 1.5_f64.to_le_bytes().to_vec(), "-"),
            (column(4, &[4]), ColumnType::decimal(10, 2), LOSSY, 1.555_f32.to_le_bytes().to_vec(), "1.55"),
            (column(5, &[8]), ColumnType::decimal(5, 2), LOSSY, 123_456.0_f64.to_le_bytes().to_vec(), "999.99"),
            (decimal_10_2, plain(Double), NON_LOSSY, small.to_vec(), "-"),
            (decimal_10_2, plain(Double), LOSSY, small.to_vec(), "1.55"),
            (decimal_10_2, ColumnType::decimal(12, 2), NON_LOSSY, small.to_vec(), "1.55"),
            (decimal_10_2, ColumnType::decimal(12, 1), NON_LOSSY, small.to_vec(), "1.6"),
            (decimal_10_2, ColumnType::decimal(10, 4), NON_LOSSY, small.to_vec(), "1.5500"),
            (decimal_10_2, ColumnType::decimal(5, 1), LOSSY, large.to_vec(), "-9999.9"),
            (decimal_10_2, plain(Int), BOTH, small.to_vec(), "-"),
            (column(15, &[40, 0]), text(VarChar(20)), NON_LOSSY, b"\x02ab".to_vec(), "ab"),
            (column(15, &[80, 0]), text(VarChar(10)), NON_LOSSY, b"\x02ab".to_vec(), "-"),
            (column(15, &[80, 0]), text(VarChar(10)), LOSSY, b"\x0Cabcdefghijkl".to_vec(), "abcdefghij"),
            (column(15, &[40, 0]), text(Text), NON_LOSSY, b"\x02ab".to_vec(), "ab"),
            (column(15, &[40, 0]), text(Char(10)), "", b"\x02ab".to_vec(), "-"),
            (column(15, &[40, 0]), text(Char(10)), NON_LOSSY, b"\x02ab".to_vec(), "ab"),
            (column(15, &[40, 0]), plain(VarBinary(40)), "", b"\x02ab".to_vec(), "ab"),
            (column(15, &[40, 0]), plain(Int), BOTH, b"\x015".to_vec(), "-"),
            (column(252, &[2]), text(Char(10)), LOSSY, b"\x0C\0abcdefghijkl".to_vec(), "abcdefghij"),
            (column(252, &[2]), text(LongText), NON_LOSSY, b"\x02\0ab".to_vec(), "ab"),
            (column(252, &[4]), text(Text), LOSSY, b"\x02\0\0\0ab".to_vec(), "ab"),
            (SourceColumn { collation: Some(63), ..column(254, &[254, 4]) }, plain(Binary(8)), NON_LOSSY, b"\x02ab".to_vec(), "ab\0\0\0\0\0\0"),
            (SourceColumn { collation: Some(63), ..column(254, &[254, 4]) }, plain(VarBinary(8)), NON_LOSSY, b"\x02ab".to_vec(), "ab\0\0"),
            (SourceColumn { collation: Some(63), ..column(254, &[254, 8]) }, plain(Binary(4)), LOSSY, b"\x06abcdef".to_vec(), "abcd"),
            (column(16, &[5, 0]), plain(Bit(12)), NON_LOSSY, vec![0x16], "\0\u{16}"),
            (column(16, &[0, 1]), plain(Bit(5)), LOSSY, vec![0xF6], "\u{1F}"),
            (column(16, &[4, 1]), plain(Bit(5)), LOSSY, vec![0xF, 0x6F], "\u{1F}"),
            (column(16, &[0, 1]), plain(Int), BOTH, vec![5], "-"),
            (column(254, &[247, 1]), enumeration(300), "", vec![2], "-"),
            (column(254, &[247, 1]), enumeration(300), NON_LOSSY, vec![2], "m1"),
            (column(254, &[247, 2]), enumeration(3), LOSSY, vec![2, 0], "m1"),
            (column(254, &[247, 2]), enumeration(3), LOSSY, vec![44, 1], ""),
            (column(254, &[247, 1]), text(VarChar(10)), BOTH, vec![2], "-"),
            (column(254, &[248, 1]), set(9), NON_LOSSY, vec![5], "m0,m2"),
            (column(254, &[248, 2]), set(3), LOSSY, vec![1, 1], "m0"),
            // MySQL leaves or makes fractions that nobody wrote.
            (column(18, &[0]), plain(DateTime(3)), NON_LOSSY, vec![0x99, 0xB9, 0x7A, 0x27, 0x80], "2026-03-29 02:30:00.000"),
            (column(18, &[3]), plain(DateTime(0)), LOSSY, vec![0x99, 0xB9, 0x7A, 0x27, 0x80, 0x1A, 0x7C], "2026-03-29 02:30:00"),
            (column(18, &[3]), plain(DateTime(0)), NON_LOSSY, vec![0x99, 0xB9, 0x7A, 0x27, 0x80, 0x1A, 0x7C], "-"),
            (column(18, &[0]), plain(Date), BOTH, vec![0x99, 0xB9, 0x7A, 0x27, 0x80], "-"),
            (column(13, &[]), plain(Int), BOTH, vec![0x7E], "-"),
            (column(252, &[4]), plain(TinyInt), BOTH, b"\0\0\0\0".to_vec(), "-"),
        ];
        for (theirs, ty, setting, image, expected) in cases {
            assert_eq!(converted(theirs, &ty, setting, &image), expected, "{} to {ty} under '{setting}'", theirs.describe());
        }
    }
}
