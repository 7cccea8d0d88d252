//! Keys that order as their values, rows that come back: properties over every type.

use std::cmp::Ordering;

use proptest::prelude::*;

use crate::*;

fn members() -> std::sync::Arc<[Str]> {
    ["red".into(), "green".into(), "blue".into()].into()
}

/// Types with a strategy for their stored values.
fn column() -> impl Strategy<Value = (ColumnType, BoxedStrategy<Value>)> {
    use TypeKind::*;
    let datetime = |fsp: u8| {
        let unit = 10i64.pow(6 - u32::from(fsp));
        (719_528i64..2_932_896, 0..86_400_000_000i64)
            .prop_map(move |(days, micros)| {
                let micros = micros / unit * unit;
                Value::DateTime(crate::DateTime::from_micros((days - 719_528) * 86_400_000_000 + micros).unwrap())
            })
            .boxed()
    };
    let text = |collation: &str| {
        let collation = Collation::by_name(collation).unwrap();
        let ascii = collation.charset != Charset::Utf8mb4;
        let strategy = if ascii { "[a-cA-C \t]{0,6}".boxed() } else { "[a-cA-C \t\u{0}éß中😀]{0,6}".boxed() };
        (ColumnType::varchar(20, collation), strategy.prop_map(Value::from).boxed())
    };
    let int = |kind: TypeKind, unsigned: bool| {
        let ty = ColumnType { unsigned, ..ColumnType::new(kind) };
        let (low, high) = ty.integer_range().unwrap();
        let strategy = if unsigned {
            (0..=high).prop_map(Value::UInt).boxed()
        } else {
            (low..=high as i64).prop_map(Value::Int).boxed()
        };
        (ty, strategy)
    };
    let columns: Vec<(ColumnType, BoxedStrategy<Value>)> = vec![
        int(TinyInt, false),
        int(SmallInt, true),
        int(MediumInt, false),
        int(MediumInt, true),
        int(Int, false),
        int(BigInt, false),
        int(BigInt, true),
        (ColumnType::new(Bit(13)), (0u64..1 << 13).prop_map(Value::UInt).boxed()),
        (ColumnType::new(Year), prop_oneof![Just(0u64), 1901u64..=2155].prop_map(Value::UInt).boxed()),
        (ColumnType::decimal(9, 2), (-999_999_999i128..=999_999_999).prop_map(|n| Value::Decimal(crate::Decimal::from_i128(n, 2))).boxed()),
        (ColumnType::decimal(38, 10), (-(10i128.pow(37))..10i128.pow(37)).prop_map(|n| Value::Decimal(crate::Decimal::from_i128(n, 10))).boxed()),
        (
            ColumnType::decimal(65, 30),
            (any::<i128>(), -(10i128.pow(18))..10i128.pow(18))
                .prop_map(|(n, m)| Value::Decimal(crate::Decimal::new(I256::from(n) * I256::from(m), 30)))
                .boxed(),
        ),
        (ColumnType::new(Float), (-1e30f32..1e30).prop_map(Value::Float).boxed()),
        (ColumnType::double(), (-1e300f64..1e300).prop_map(Value::Double).boxed()),
        (
            ColumnType::new(Date),
            (0u16..=9999, 0u8..=12, 0u8..=31).prop_map(|(y, m, d)| Value::Date(crate::Date::new(y, m, d))).boxed(),
        ),
        (ColumnType::new(DateTime(0)), datetime(0)),
        (ColumnType::new(DateTime(3)), datetime(3)),
        (ColumnType::new(DateTime(6)), datetime(6)),
        (
            ColumnType::new(Timestamp(6)),
            (1_000_000i64..2_147_483_647_999_999).prop_map(|n| Value::DateTime(crate::DateTime::from_micros(n).unwrap())).boxed(),
        ),
        (ColumnType::new(Time(6)), (-3_020_399_000_000i64..=3_020_399_000_000).prop_map(|micros| Value::Time(crate::Time { micros })).boxed()),
        (ColumnType::new(Time(0)), (-3_020_399i64..=3_020_399).prop_map(|s| Value::Time(crate::Time { micros: s * 1_000_000 })).boxed()),
        (
            ColumnType::new(Enum(members())),
            (0u16..=3).prop_map(|i| Value::Enum(i, if i == 0 { "".into() } else { members()[usize::from(i) - 1].clone() })).boxed(),
        ),
        (ColumnType::new(Set(members())), (0u64..8).prop_map(|bits| Value::Set(bits, super::scalar::set_text(bits, &members()))).boxed()),
        (ColumnType::new(VarBinary(20)), proptest::collection::vec(0u8..4, 0..6).prop_map(Value::Bytes).boxed()),
        (ColumnType::new(Blob), proptest::collection::vec(any::<u8>(), 0..6).prop_map(Value::Bytes).boxed()),
        text("utf8mb4_0900_ai_ci"),
        text("utf8mb4_general_ci"),
        text("utf8mb4_bin"),
        text("latin1_swedish_ci"),
        text("utf8mb4_0900_bin"),
    ];
    proptest::sample::select(columns)
}

fn order(a: &Value, b: &Value, ty: &ColumnType) -> Ordering {
    match (a, b) {
        (Value::Null, Value::Null) => Ordering::Equal,
        (Value::Null, _) => Ordering::Less,
        (_, Value::Null) => Ordering::Greater,
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::UInt(a), Value::UInt(b)) => a.cmp(b),
        (Value::Decimal(a), Value::Decimal(b)) => a.cmp(b),
        (Value::Float(a), Value::Float(b)) => a.partial_cmp(b).unwrap(),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b).unwrap(),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::DateTime(a), Value::DateTime(b)) => a.cmp(b),
        (Value::Time(a), Value::Time(b)) => a.cmp(b),
        (Value::Enum(a, _), Value::Enum(b, _)) => a.cmp(b),
        (Value::Set(a, _), Value::Set(b, _)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => ty.collation.compare(a.as_bytes(), b.as_bytes()),
        (Value::Bytes(a), Value::Bytes(b)) => a.cmp(b),
        _ => unreachable!(),
    }
}

/// Two values of one type, either possibly NULL.
fn two() -> impl Strategy<Value = (ColumnType, Value, Value)> {
    column().prop_flat_map(|(ty, values)| {
        let nullable = prop_oneof![1 => Just(Value::Null), 9 => values];
        (Just(ty), nullable.clone(), nullable)
    })
}

proptest! {
    #[test]
    fn composite_keys_order_as_their_values(first in two(), second in two(), directions in any::<[bool; 2]>()) {
        let part = |ty: &ColumnType, descending| KeyPart { ty: ty.clone(), descending, prefix: None, nullable: true };
        let parts = [part(&first.0, directions[0]), part(&second.0, directions[1])];
        let key = |a: &Value, b: &Value| {
            let mut out = Vec::new();
            encode_key(&[a.clone(), b.clone()], &parts, &mut out);
            out
        };
        let direct = |order: Ordering, descending| if descending { order.reverse() } else { order };
        let expected = direct(order(&first.1, &first.2, &first.0), directions[0])
            .then(direct(order(&second.1, &second.2, &second.0), directions[1]));
        let whole = key(&first.1, &second.1);
        let length = key_part_len(&parts[0], &whole);
        let mut alone = Vec::new();
        encode_key_part(&first.1, &parts[0], &mut alone);
        prop_assert_eq!(&whole[..length], &alone, "{:?}", first);
        prop_assert_eq!(length + key_part_len(&parts[1], &whole[length..]), whole.len(), "{:?}", second);
        prop_assert_eq!(key_part_len(&parts[1], &whole[length..whole.len() - 1]), whole.len() - 1 - length);
        prop_assert_eq!(key(&first.1, &second.1).cmp(&key(&first.2, &second.2)), expected, "{:?} {:?}", first, second);
    }

    #[test]
    fn keys_of_rows(columns in proptest::collection::vec(two(), 1..12), descending: bool, prefix in proptest::option::of(0u32..8)) {
        let types: Vec<ColumnType> = columns.iter().map(|(ty, ..)| ty.clone()).collect();
        let values: Vec<Value> = columns.iter().map(|(_, value, _)| value.clone()).collect();
        let layout = RowLayout::new(&types);
        let mut row = Vec::new();
        layout.encode(&values, &mut row);
        for (col, value) in values.iter().enumerate() {
            for nullable in [true, value.is_null()] {
                let part = KeyPart { ty: types[col].clone(), descending, prefix, nullable };
                let (mut of_value, mut of_row) = (vec![0xEE], vec![0xEE]);
                encode_key_part(value, &part, &mut of_value);
                prop_assert_eq!(encode_key_part_of_row(&layout, &row, col, &part, &mut of_row), value.is_null());
                prop_assert_eq!(of_row, of_value, "{:?} as {:?}", value, part);
            }
        }
    }

    #[test]
    fn columns_of_keys(columns in proptest::collection::vec((two(), any::<bool>(), any::<bool>()), 1..12)) {
        let types: Vec<ColumnType> = columns.iter().map(|((ty, ..), ..)| ty.clone()).collect();
        let values: Vec<Value> = columns.iter().map(|((_, value, _), ..)| value.clone()).collect();
        let layout = std::sync::Arc::new(RowLayout::new(&types));
        let parts: Vec<KeyPart> = columns
            .iter()
            .map(|((ty, value, _), descending, nullable)| KeyPart { descending: *descending, nullable: *nullable || value.is_null(), ..KeyPart::new(ty.clone()) })
            .collect();
        let mut key = Vec::new();
        encode_key(&values, &parts, &mut key);
        key.push(0xEE);
        let mut row = RowOfKeys::new(&layout);
        // Twice: nothing is left of the row before.
        for wanted in [true, false] {
            row.begin();
            let mut rest = &key[..];
            let mut expected = vec![Value::Null; values.len()];
            for (col, part) in parts.iter().enumerate() {
                if follows_from_key(part) && (wanted || col % 2 == 0) {
                    rest = row.take(col, part, rest).unwrap();
                    expected[col] = values[col].clone();
                } else {
                    rest = RowOfKeys::skip(part, rest);
                }
            }
            prop_assert_eq!(rest, &[0xEE][..]);
            let (mut found, mut direct) = (Vec::new(), Vec::new());
            row.finish(&mut found);
            layout.encode(&expected, &mut direct);
            prop_assert_eq!(found, direct);
        }
        // Of a part that is cut short there is no value.
        let last = parts.len() - 1;
        let mut alone = Vec::new();
        encode_key_part(&values[last], &parts[last], &mut alone);
        row.begin();
        prop_assert_eq!(row.take(last, &parts[last], &alone[..alone.len() - 1]), None);
    }

    #[test]
    fn rows_round_trip(columns in proptest::collection::vec(two(), 0..12)) {
        let types: Vec<ColumnType> = columns.iter().map(|(ty, ..)| ty.clone()).collect();
        let values: Vec<Value> = columns.iter().map(|(_, value, _)| value.clone()).collect();
        let layout = RowLayout::new(&types);
        let mut row = vec![0xEE]; // encode appends
        layout.encode(&values, &mut row);
        let row = &row[1..];
        prop_assert_eq!(layout.values(row), values.clone());
        for (col, value) in values.iter().enumerate() {
            prop_assert_eq!(layout.is_null(row, col), value.is_null());
            match value {
                Value::Int(v) => prop_assert_eq!(layout.int(row, col), Some(*v)),
                Value::UInt(v) => prop_assert_eq!(layout.uint(row, col), Some(*v)),
                Value::Decimal(v) => prop_assert_eq!(layout.decimal(row, col), Some(v.unscaled())),
                Value::Double(v) => prop_assert_eq!(layout.double(row, col), Some(*v)),
                Value::Date(v) => prop_assert_eq!(layout.date(row, col), Some(*v)),
                Value::DateTime(v) => prop_assert_eq!(layout.datetime(row, col), Some(*v)),
                Value::Time(v) => prop_assert_eq!(layout.time(row, col), Some(*v)),
                Value::Text(v) => prop_assert_eq!(layout.bytes(row, col), Some(v.as_bytes())),
                Value::Bytes(v) => prop_assert_eq!(layout.bytes(row, col), Some(&v[..])),
                _ => {}
            }
        }
    }
}

#[test]
fn wide_rows() {
    let types = [ColumnType::bigint(), ColumnType::new(TypeKind::LongBlob), ColumnType::new(TypeKind::LongBlob)];
    let layout = RowLayout::new(&types);
    let values = vec![Value::Int(-5), Value::Bytes(vec![7; 70_000]), Value::Bytes(vec![8; 3])];
    let mut row = Vec::new();
    layout.encode(&values, &mut row);
    assert_eq!(row[0], 4);
    assert_eq!(layout.values(&row), values);
}

#[test]
fn key_sizes_and_prefixes() {
    let encoded = |value: Value, part: KeyPart| {
        let mut out = Vec::new();
        encode_key_part(&value, &part, &mut out);
        out
    };
    assert_eq!(encoded(Value::Int(1), KeyPart::new(ColumnType::new(TypeKind::Int))), [0x80, 0, 0, 1]);
    assert_eq!(encoded(Value::Decimal("1.00".parse().unwrap()), KeyPart::new(ColumnType::decimal(9, 2))).len(), 4);
    let text = ColumnType::varchar(10, Collation::utf8mb4());
    let prefix = KeyPart { prefix: Some(2), ..KeyPart::new(text) };
    assert_eq!(encoded("éÀx".into(), prefix.clone()), encoded("EA".into(), prefix));
    let blob = KeyPart { prefix: Some(2), ..KeyPart::new(ColumnType::new(TypeKind::Blob)) };
    assert_eq!(encoded(Value::Bytes(vec![1, 9, 9]), blob), [1, 2, 9, 0]);
    let zero = KeyPart::new(ColumnType::double());
    assert_eq!(encoded(Value::Double(-0.0), zero.clone()), encoded(Value::Double(0.0), zero));
}

#[test]
#[should_panic(expected = "I1")]
fn null_in_a_not_null_part() {
    encode_key_part(&Value::Null, &KeyPart::new(ColumnType::bigint()), &mut Vec::new());
}

#[test]
fn a_fixed_column_is_given_a_value() {
    use TypeKind::{BigInt, Int, MediumInt, SmallInt, TinyInt};
    for (kind, unsigned) in [TinyInt, SmallInt, MediumInt, Int, BigInt].into_iter().flat_map(|k| [(k.clone(), false), (k, true)]) {
        let mut ty = ColumnType::new(kind);
        ty.unsigned = unsigned;
        let (low, high) = ty.integer_range().unwrap();
        let values = if unsigned { vec![Value::UInt(0), Value::UInt(high)] } else { vec![Value::Int(low), Value::Int(1), Value::Int(high as i64)] };
        let layout = RowLayout::new(&[ColumnType::new(Int), ty]);
        for value in values {
            let (mut row, mut expected) = (Vec::new(), Vec::new());
            layout.encode(&[Value::Int(7), Value::Null], &mut row);
            layout.set_fixed(&mut row, 1, &value);
            layout.encode(&[Value::Int(7), value], &mut expected);
            assert_eq!(row, expected);
        }
    }
}
