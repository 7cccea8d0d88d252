//! How a MySQL type is laid out in Arrow, and the way of a [`Value`] in and out of an array. The table is in README.md.

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, Decimal128Array, Decimal128Builder, Decimal256Array, Decimal256Builder, Float64Array,
    Float64Builder, Int32Array, Int32Builder, Int64Array, Int64Builder, StringViewArray, StringViewBuilder, UInt16Array, UInt16Builder, UInt64Array,
    UInt64Builder,
};
use datafusion::arrow::datatypes::{DataType, i256};
use datafusion::common::ScalarValue;
use highkey_types::cast::{self, CastContext};
use highkey_types::{ColumnType, Date, DateTime, Decimal, I256, SqlMode, Str, Time, TimeZone, TypeKind, Value};

/// The widest precision of `Decimal128`; every DECIMAL up to it has the same Arrow precision, so that only the scale tells types apart.
pub(super) const DECIMAL128_DIGITS: u8 = 38;
pub(super) const DECIMAL256_DIGITS: u8 = 76;

/// The Arrow form of a MySQL type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Repr {
    /// TINYINT to BIGINT, and the type of a bare NULL: `Int64`.
    Int,
    /// The same UNSIGNED, YEAR, BIT: `UInt64`.
    UInt,
    /// DECIMAL of at most 38 digits: `Decimal128(38, scale)`.
    Decimal(u8),
    /// Longer DECIMALs: `Decimal256(76, scale)`.
    WideDecimal(u8),
    /// FLOAT and DOUBLE: `Float64`. A FLOAT's value is exact in it.
    Double,
    /// CHAR, VARCHAR, TEXT: `Utf8View`.
    Text,
    /// JSON: `Utf8View` of the normalised text.
    Json,
    /// BINARY, VARBINARY, BLOB: `BinaryView`.
    Bytes,
    /// DATE: `Int32`, `year << 9 | month << 5 | day`. Zero dates are values like any other, and order is the integers' order.
    Date,
    /// DATETIME and TIMESTAMP (in the session's zone): `Int64`, the date as above, then 5 bits hour, 6 minute, 6 second, 20 microsecond.
    DateTime,
    /// TIME: `Int64` microseconds, signed.
    Time,
    /// ENUM: `UInt16`, the member's index.
    Enum,
    /// SET: `UInt64`, the members' bits.
    Set,
}

impl Repr {
    pub fn of(ty: &ColumnType) -> Repr {
        use TypeKind::*;
        match &ty.kind {
            TinyInt | SmallInt | MediumInt | Int | BigInt => {
                if ty.unsigned { Repr::UInt } else { Repr::Int }
            }
            Null => Repr::Int,
            Year | Bit(_) => Repr::UInt,
            TypeKind::Decimal { precision, scale } => {
                if *precision <= DECIMAL128_DIGITS { Repr::Decimal(*scale) } else { Repr::WideDecimal(*scale) }
            }
            Float | Double => Repr::Double,
            Char(_) | VarChar(_) | TinyText | Text | MediumText | LongText => Repr::Text,
            Binary(_) | VarBinary(_) | TinyBlob | Blob | MediumBlob | LongBlob | Geometry(_) => Repr::Bytes,
            TypeKind::Date => Repr::Date,
            TypeKind::DateTime(_) | Timestamp(_) => Repr::DateTime,
            TypeKind::Time(_) => Repr::Time,
            TypeKind::Enum(_) => Repr::Enum,
            TypeKind::Set(_) => Repr::Set,
            TypeKind::Json => Repr::Json,
        }
    }

    pub fn data_type(self) -> DataType {
        match self {
            Repr::Int | Repr::DateTime | Repr::Time => DataType::Int64,
            Repr::UInt | Repr::Set => DataType::UInt64,
            Repr::Decimal(scale) => DataType::Decimal128(DECIMAL128_DIGITS, scale as i8),
            Repr::WideDecimal(scale) => DataType::Decimal256(DECIMAL256_DIGITS, scale as i8),
            Repr::Double => DataType::Float64,
            Repr::Text | Repr::Json => DataType::Utf8View,
            Repr::Bytes => DataType::BinaryView,
            Repr::Date => DataType::Int32,
            Repr::Enum => DataType::UInt16,
        }
    }
}

/// The Arrow type of a MySQL type.
pub(super) fn data_type(ty: &ColumnType) -> DataType {
    Repr::of(ty).data_type()
}

pub(super) fn pack_date(date: &Date) -> i32 {
    i32::from(date.year) << 9 | i32::from(date.month) << 5 | i32::from(date.day)
}

pub(super) fn unpack_date(packed: i32) -> Date {
    Date { year: (packed >> 9) as u16, month: (packed >> 5 & 15) as u8, day: (packed & 31) as u8 }
}

pub(super) fn pack_datetime(value: &DateTime) -> i64 {
    let clock = i64::from(value.hour) << 12 | i64::from(value.minute) << 6 | i64::from(value.second);
    (i64::from(pack_date(&value.date)) << 17 | clock) << 20 | i64::from(value.micros)
}

pub(super) fn unpack_datetime(packed: i64) -> DateTime {
    let clock = packed >> 20 & 0x1_ffff;
    DateTime {
        date: unpack_date((packed >> 37) as i32),
        hour: (clock >> 12) as u8,
        minute: (clock >> 6 & 63) as u8,
        second: (clock & 63) as u8,
        micros: (packed & 0xf_ffff) as u32,
    }
}

pub(super) fn to_i256(value: I256) -> i256 {
    let (high, low) = value.into_words();
    i256::from_parts(low as u128, high)
}

pub(super) fn from_i256(value: i256) -> I256 {
    let (low, high) = value.to_parts();
    I256::from_words(high, low as i128)
}

/// Values of one MySQL type collected into an array.
pub(super) enum ColumnBuilder {
    Int(Int64Builder),
    UInt(UInt64Builder),
    Decimal(Decimal128Builder, u8),
    WideDecimal(Decimal256Builder, u8),
    Double(Float64Builder),
    Text(StringViewBuilder),
    Bytes(BinaryViewBuilder),
    Date(Int32Builder),
    DateTime(Int64Builder),
    Time(Int64Builder),
    Enum(UInt16Builder, Arc<[Str]>),
    Set(UInt64Builder, Arc<[Str]>),
}

impl ColumnBuilder {
    pub fn new(ty: &ColumnType, capacity: usize) -> ColumnBuilder {
        let members = || match &ty.kind {
            TypeKind::Enum(members) | TypeKind::Set(members) => members.clone(),
            _ => Arc::from([]),
        };
        match Repr::of(ty) {
            Repr::Int => ColumnBuilder::Int(Int64Builder::with_capacity(capacity)),
            Repr::UInt => ColumnBuilder::UInt(UInt64Builder::with_capacity(capacity)),
            Repr::Decimal(scale) => {
                ColumnBuilder::Decimal(Decimal128Builder::with_capacity(capacity).with_data_type(Repr::Decimal(scale).data_type()), scale)
            }
            Repr::WideDecimal(scale) => {
                ColumnBuilder::WideDecimal(Decimal256Builder::with_capacity(capacity).with_data_type(Repr::WideDecimal(scale).data_type()), scale)
            }
            Repr::Double => ColumnBuilder::Double(Float64Builder::with_capacity(capacity)),
            Repr::Text | Repr::Json => ColumnBuilder::Text(StringViewBuilder::with_capacity(capacity)),
            Repr::Bytes => ColumnBuilder::Bytes(BinaryViewBuilder::with_capacity(capacity)),
            Repr::Date => ColumnBuilder::Date(Int32Builder::with_capacity(capacity)),
            Repr::DateTime => ColumnBuilder::DateTime(Int64Builder::with_capacity(capacity)),
            Repr::Time => ColumnBuilder::Time(Int64Builder::with_capacity(capacity)),
            Repr::Enum => ColumnBuilder::Enum(UInt16Builder::with_capacity(capacity), members()),
            Repr::Set => ColumnBuilder::Set(UInt64Builder::with_capacity(capacity), members()),
        }
    }

    /// Appends `value`, converted as needed: the evaluator may answer an `Int` for an expression typed UNSIGNED, say.
    pub fn push(&mut self, value: &Value) {
        if value.is_null() {
            return self.push_null();
        }
        match self {
            ColumnBuilder::Int(b) => b.append_value(match value {
                Value::Int(v) => *v,
                Value::UInt(v) => *v as i64,
                other => convert(|cx| cast::to_i64(other, cx)).unwrap_or(0),
            }),
            ColumnBuilder::UInt(b) => b.append_value(match value {
                Value::UInt(v) => *v,
                Value::Int(v) => *v as u64,
                other => convert(|cx| cast::to_u64(other, cx)).unwrap_or(0),
            }),
            ColumnBuilder::Decimal(b, scale) => b.append_option(decimal_at_scale(value, *scale).and_then(|v| i128::try_from(v).ok())),
            ColumnBuilder::WideDecimal(b, scale) => b.append_option(decimal_at_scale(value, *scale).map(to_i256)),
            ColumnBuilder::Double(b) => b.append_value(match value {
                Value::Double(v) => *v,
                Value::Float(v) => f64::from(*v),
                other => convert(|cx| cast::to_f64(other, cx)).unwrap_or(0.0),
            }),
            ColumnBuilder::Text(b) => match value {
                Value::Text(s) | Value::Json(s) | Value::Enum(_, s) | Value::Set(_, s) => b.append_value(s.as_ref()),
                other => b.append_option(cast::to_str(other)),
            },
            ColumnBuilder::Bytes(b) => match value {
                Value::Bytes(bytes) => b.append_value(bytes),
                Value::Text(s) | Value::Json(s) | Value::Enum(_, s) | Value::Set(_, s) => b.append_value(s.as_bytes()),
                other => b.append_option(cast::to_bytes(other)),
            },
            ColumnBuilder::Date(b) => match value {
                Value::Date(date) => b.append_value(pack_date(date)),
                Value::DateTime(datetime) => b.append_value(pack_date(&datetime.date)),
                other => b.append_option(convert(|cx| cast::to_date(other, cx)).map(|date| pack_date(&date))),
            },
            ColumnBuilder::DateTime(b) => match value {
                Value::DateTime(datetime) => b.append_value(pack_datetime(datetime)),
                Value::Date(date) => b.append_value(i64::from(pack_date(date)) << 37),
                other => b.append_option(convert(|cx| cast::to_datetime(other, cx)).map(|datetime| pack_datetime(&datetime))),
            },
            ColumnBuilder::Time(b) => match value {
                Value::Time(time) => b.append_value(time.micros),
                other => b.append_option(convert(|cx| cast::to_time(other, cx)).map(|time| time.micros)),
            },
            ColumnBuilder::Enum(b, members) => match value {
                Value::Enum(index, _) => b.append_value(*index),
                other => {
                    let text = cast::to_str(other).unwrap_or_default();
                    b.append_value(members.iter().position(|m| **m == *text).map_or(0, |i| i as u16 + 1));
                }
            },
            ColumnBuilder::Set(b, members) => match value {
                Value::Set(bits, _) => b.append_value(*bits),
                other => {
                    let text = cast::to_str(other).unwrap_or_default();
                    let bits = text.split(',').filter_map(|part| members.iter().position(|m| **m == *part)).fold(0, |bits, i| bits | 1 << i);
                    b.append_value(bits);
                }
            },
        }
    }

    pub fn push_null(&mut self) {
        match self {
            ColumnBuilder::Int(b) | ColumnBuilder::DateTime(b) | ColumnBuilder::Time(b) => b.append_null(),
            ColumnBuilder::UInt(b) | ColumnBuilder::Set(b, _) => b.append_null(),
            ColumnBuilder::Decimal(b, _) => b.append_null(),
            ColumnBuilder::WideDecimal(b, _) => b.append_null(),
            ColumnBuilder::Double(b) => b.append_null(),
            ColumnBuilder::Text(b) => b.append_null(),
            ColumnBuilder::Bytes(b) => b.append_null(),
            ColumnBuilder::Date(b) => b.append_null(),
            ColumnBuilder::Enum(b, _) => b.append_null(),
        }
    }

    pub fn finish(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Int(b) | ColumnBuilder::DateTime(b) | ColumnBuilder::Time(b) => Arc::new(b.finish()),
            ColumnBuilder::UInt(b) | ColumnBuilder::Set(b, _) => Arc::new(b.finish()),
            ColumnBuilder::Decimal(b, _) => Arc::new(b.finish()),
            ColumnBuilder::WideDecimal(b, _) => Arc::new(b.finish()),
            ColumnBuilder::Double(b) => Arc::new(b.finish()),
            ColumnBuilder::Text(b) => Arc::new(b.finish()),
            ColumnBuilder::Bytes(b) => Arc::new(b.finish()),
            ColumnBuilder::Date(b) => Arc::new(b.finish()),
            ColumnBuilder::Enum(b, _) => Arc::new(b.finish()),
        }
    }
}

fn decimal_at_scale(value: &Value, scale: u8) -> Option<I256> {
    match value {
        Value::Decimal(d) if d.scale() == scale => Some(d.unscaled()),
        Value::Decimal(d) => d.rescale(scale).map(|d| d.unscaled()),
        other => convert(|cx| cast::to_decimal(other, cx)).and_then(|d| d.rescale(scale)).map(|d| d.unscaled()),
    }
}

/// A conversion that nobody hears the warnings of: the evaluator has given its own already.
fn convert<T>(conversion: impl FnOnce(&mut CastContext) -> T) -> T {
    let zone = TimeZone::utc();
    conversion(&mut CastContext { warnings: &mut Vec::new(), mode: SqlMode::default(), today: Date::default(), time_zone: &zone })
}

/// An array read back as values of a MySQL type.
pub(super) struct ColumnReader<'a> {
    array: &'a dyn Array,
    cells: Cells<'a>,
}

enum Cells<'a> {
    Int(&'a Int64Array),
    UInt(&'a UInt64Array),
    Decimal(&'a Decimal128Array, u8),
    WideDecimal(&'a Decimal256Array, u8),
    Double(&'a Float64Array),
    Float(&'a Float64Array),
    Text(&'a StringViewArray),
    Json(&'a StringViewArray),
    Bytes(&'a BinaryViewArray),
    Date(&'a Int32Array),
    DateTime(&'a Int64Array),
    Time(&'a Int64Array),
    Enum(&'a UInt16Array, &'a [Str]),
    Set(&'a UInt64Array, &'a [Str]),
    /// What DataFusion's optimizer evaluates a condition over, to see whether NULL satisfies it.
    Null,
}

impl<'a> ColumnReader<'a> {
    pub fn new(array: &'a dyn Array, ty: &'a ColumnType) -> ColumnReader<'a> {
        let members: &[Str] = match &ty.kind {
            TypeKind::Enum(members) | TypeKind::Set(members) => members,
            _ => &[],
        };
        let cells = match Repr::of(ty) {
            _ if array.data_type() == &DataType::Null => Cells::Null,
            Repr::Int => Cells::Int(array.as_primitive()),
            Repr::UInt => Cells::UInt(array.as_primitive()),
            Repr::Decimal(scale) => Cells::Decimal(array.as_primitive(), scale),
            Repr::WideDecimal(scale) => Cells::WideDecimal(array.as_primitive(), scale),
            Repr::Double if ty.kind == TypeKind::Float => Cells::Float(array.as_primitive()),
            Repr::Double => Cells::Double(array.as_primitive()),
            Repr::Text => Cells::Text(array.as_string_view()),
            Repr::Json => Cells::Json(array.as_string_view()),
            Repr::Bytes => Cells::Bytes(array.as_binary_view()),
            Repr::Date => Cells::Date(array.as_primitive()),
            Repr::DateTime => Cells::DateTime(array.as_primitive()),
            Repr::Time => Cells::Time(array.as_primitive()),
            Repr::Enum => Cells::Enum(array.as_primitive(), members),
            Repr::Set => Cells::Set(array.as_primitive(), members),
        };
        ColumnReader { array, cells }
    }

    pub fn get(&self, row: usize) -> Value {
        if self.array.is_null(row) {
            return Value::Null;
        }
        match &self.cells {
            Cells::Null => Value::Null,
            Cells::Int(a) => Value::Int(a.value(row)),
            Cells::UInt(a) => Value::UInt(a.value(row)),
            Cells::Decimal(a, scale) => Value::Decimal(Decimal::new(I256::from(a.value(row)), *scale)),
            Cells::WideDecimal(a, scale) => Value::Decimal(Decimal::new(from_i256(a.value(row)), *scale)),
            Cells::Double(a) => Value::Double(a.value(row)),
            Cells::Float(a) => Value::Float(a.value(row) as f32),
            Cells::Text(a) => Value::Text(a.value(row).into()),
            Cells::Json(a) => Value::Json(a.value(row).into()),
            Cells::Bytes(a) => Value::Bytes(a.value(row).to_vec()),
            Cells::Date(a) => Value::Date(unpack_date(a.value(row))),
            Cells::DateTime(a) => Value::DateTime(unpack_datetime(a.value(row))),
            Cells::Time(a) => Value::Time(Time { micros: a.value(row) }),
            Cells::Enum(a, members) => Value::Enum(a.value(row), enum_text(a.value(row), members)),
            Cells::Set(a, members) => Value::Set(a.value(row), set_text(a.value(row), members)),
        }
    }
}

/// The member of an ENUM, counted from 1; 0 is the value of what was none of them.
pub(super) fn enum_text(index: u16, members: &[Str]) -> Str {
    index.checked_sub(1).and_then(|i| members.get(usize::from(i))).cloned().unwrap_or_else(|| "".into())
}

/// The members of a SET whose bits are set.
pub(super) fn set_text(bits: u64, members: &[Str]) -> Str {
    let chosen: Vec<&str> = members.iter().enumerate().filter(|(i, _)| bits >> i & 1 == 1).map(|(_, m)| m.as_ref()).collect();
    chosen.join(",").into()
}

/// One value as DataFusion's scalar.
pub(super) fn scalar(value: &Value, ty: &ColumnType) -> ScalarValue {
    let mut builder = ColumnBuilder::new(ty, 1);
    builder.push(value);
    scalar_at(builder.finish().as_ref(), 0)
}

/// A cell of an array as DataFusion's scalar. The arrays of this module always have one.
pub(super) fn scalar_at(array: &dyn Array, row: usize) -> ScalarValue {
    ScalarValue::try_from_array(array, row).expect("every representation has a scalar form")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(ty: ColumnType, values: Vec<Value>) {
        let mut builder = ColumnBuilder::new(&ty, values.len());
        values.iter().for_each(|v| builder.push(v));
        let array = builder.finish();
        assert_eq!(array.data_type(), &data_type(&ty));
        let reader = ColumnReader::new(array.as_ref(), &ty);
        let back: Vec<Value> = (0..values.len()).map(|i| reader.get(i)).collect();
        assert_eq!(back, values);
    }

    #[test]
    fn every_type_survives() {
        let date = Date { year: 2024, month: 0, day: 31 };
        round_trip(ColumnType::bigint(), vec![Value::Int(i64::MIN), Value::Null, Value::Int(i64::MAX)]);
        round_trip(ColumnType::ubigint(), vec![Value::UInt(u64::MAX), Value::Null]);
        round_trip(ColumnType::decimal(10, 2), vec![Value::Decimal(Decimal::new(I256::from(-12345), 2)), Value::Null]);
        round_trip(ColumnType::decimal(65, 30), vec![Value::Decimal(Decimal::new(I256::from(10).pow(64), 30))]);
        round_trip(ColumnType::new(TypeKind::Float), vec![Value::Float(0.1), Value::Null]);
        round_trip(ColumnType::double(), vec![Value::Double(0.1), Value::Null]);
        round_trip(ColumnType::new(TypeKind::VarBinary(9)), vec![Value::Bytes(vec![0, 255]), Value::Null]);
        round_trip(ColumnType::new(TypeKind::Date), vec![Value::Date(date), Value::Date(Date { year: 0, month: 0, day: 0 }), Value::Null]);
        let datetime = DateTime { date, hour: 23, minute: 59, second: 58, micros: 999_999 };
        round_trip(ColumnType::new(TypeKind::DateTime(6)), vec![Value::DateTime(datetime), Value::Null]);
        round_trip(ColumnType::new(TypeKind::Time(6)), vec![Value::Time(Time { micros: -3_020_399_000_000 }), Value::Null]);
        let members: Arc<[Str]> = Arc::from(["a".into(), "b".into(), "c".into()]);
        round_trip(ColumnType::new(TypeKind::Enum(members.clone())), vec![Value::Enum(2, "b".into()), Value::Enum(0, "".into()), Value::Null]);
        round_trip(ColumnType::new(TypeKind::Set(members)), vec![Value::Set(5, "a,c".into()), Value::Set(0, "".into()), Value::Null]);
    }

    #[test]
    fn packed_temporals_keep_their_order() {
        let at = |year, month, day, hour, micros| DateTime { date: Date { year, month, day }, hour, minute: 0, second: 0, micros };
        let ordered = [at(0, 0, 0, 0, 0), at(1999, 0, 0, 5, 0), at(1999, 12, 31, 23, 999_999), at(2000, 1, 1, 0, 0), at(9999, 12, 31, 0, 1)];
        assert!(ordered.windows(2).all(|w| pack_datetime(&w[0]) < pack_datetime(&w[1])));
        assert!(ordered.windows(2).all(|w| pack_date(&w[0].date) <= pack_date(&w[1].date)));
    }
}
