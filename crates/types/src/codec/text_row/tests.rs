//! The text row encoder against `store` and `RowLayout`, which say what is right.

use std::sync::Arc;

use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

use crate::*;

fn collation(name: &str) -> &'static Collation {
    Collation::by_name(name).unwrap()
}

fn text_type(kind: TypeKind, name: &str) -> ColumnType {
    ColumnType::with_collation(kind, collation(name))
}

/// Types that have plain values.
fn types() -> Vec<ColumnType> {
    use TypeKind::*;
    let names = |names: &[&str]| -> Arc<[Str]> { names.iter().map(|name| Str::from(*name)).collect() };
    let mut types = Vec::new();
    for kind in [TinyInt, SmallInt, MediumInt, Int, BigInt, Float, Double] {
        types.push(ColumnType::new(kind.clone()));
        types.push(ColumnType::new(kind).unsigned());
    }
    for (precision, scale) in [(1, 0), (2, 2), (9, 2), (10, 0), (15, 2), (18, 18), (19, 4), (38, 10), (39, 0), (65, 30)] {
        types.push(ColumnType::decimal(precision, scale));
        types.push(ColumnType::decimal(precision, scale).unsigned());
    }
    for bits in [1, 8, 13, 64] {
        types.push(ColumnType::new(Bit(bits)));
    }
    types.extend([Year, Date].map(ColumnType::new));
    for fsp in [0, 1, 3, 6] {
        types.push(ColumnType::new(DateTime(fsp)));
        types.push(ColumnType::new(Time(fsp)));
    }
    for name in ["utf8mb4_0900_ai_ci", "utf8_general_ci", "latin1_swedish_ci", "ascii_bin", "utf8mb4_bin"] {
        types.extend([Char(0), Char(3), VarChar(3), VarChar(20), TinyText, Text, LongText].map(|kind| text_type(kind, name)));
        // The second `RED` of a case-insensitive column is the first.
        types.push(text_type(Enum(names(&["red", "green", "été", "RED", "", "3"])), name));
        types.push(text_type(Set(names(&["red", "green", "été", "RED", "3"])), name));
    }
    types.extend([Binary(0), Binary(3), VarBinary(3), VarBinary(20), TinyBlob, Blob, LongBlob].map(ColumnType::new));
    types
}

/// Texts near the limits of some type.
const TEXTS: &[&str] = &[
    "", " ", "0", "-0", "+0", "00", "1", "-1", "+1", "7", "127", "128", "-128", "-129", "255", "256", "32767", "-32768", "65535", "65536", "8388607",
    "-8388608", "16777215", "2147483647", "-2147483648", "2147483648", "4294967295", "4294967296", "9223372036854775807", "-9223372036854775808",
    "9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "99999999999999999999", "100000000000000000000",
    "0000000000000000000005", "1.5", "-1.5", "0.01", "-.01", ".5", "5.", ".", "-", "+", "1.", "1e3", "1E-2", "1e", "-1e400", "1e400", "3.5e38", "0.005",
    "9999999.99", "99999999.99", "9999999999999.99", "-9999999999999.99", "10000000000000.00", "123.450", "0.123456789012345678", "1.000000000000000000",
    "12345678901234567890", "9999999999999999999999999999.9999999999", "99999999999999999999999999999999999999", "100000000000000000000000000000000000000",
    "-99999999.123456789012345678901234567890", "1234567890123456789.5", "3.4028234e38", "0.1", "-0.0", "nan", "inf", "1 ", " 1", "1x", "0x10", "1_0",
    "1901", "1900", "2155", "2156", "0000", "1999", "99", "70", "2024-02-29", "2023-02-29", "1998-12-01", "1998-12-31", "1998-13-01", "1998-11-31",
    "1998-00-10", "1998-10-00", "0000-00-00", "0001-01-01", "0000-01-01", "9999-12-31", "19981201", "98-12-01", "1998/12/01", "1998-1-2", "1998-12-01 ",
    "1998-12-01 00:00:00", "1998-12-01 23:59:59", "1998-12-01 24:00:00", "1998-12-01 10:60:00", "1998-12-01T10:11:12", "1998-12-01 10:11:12.5",
    "1998-12-01 10:11:12.123", "1998-12-01 10:11:12.123456", "1998-12-01 10:11:12.1234567", "1998-12-01 10:11:12.", "9999-12-31 23:59:59.999999",
    "1998-12-01 10:11:12+01:00", "0000-00-00 00:00:00", "1998-12-01 10:11", "10:11:12", "-10:11:12", "838:59:59", "-838:59:59", "838:59:59.1", "839:00:00",
    "1:2:3", "100:00:00.5", "-00:00:00.1", "10:11:12.123456", "10:11:12.1234567", "10:60:00", "101112", "10:11", "1 10:11:12", "9a:00:00", "red", "RED",
    "green", "été", "Green", "red ", "red,green", "green,red", "red,blue", "red,", ",", "été,red", "ab", "abc", "abc ", "abc     ", "abcd", "   ", "a b ",
    "éàü", "éàüx", "éàü ", "中文字", "中文字符", "😀", "a😀b", "€", "Ω", "a\0b", "line\nbreak", "tab\t", "\u{a0}", "\u{81}", "/:", "12:3/:00", "20/8-01-01",
];

/// Those that a file may have.
fn charsets() -> Vec<Charset> {
    Charset::ALL.into_iter().filter(|charset| charset.min_bytes() == 1).collect()
}

/// A text, perhaps damaged, in the file's character set or none.
fn random_text(rng: &mut StdRng) -> Vec<u8> {
    let mut text = match rng.random_range(0..6) {
        0 => format!("{}{}", ["", "-", "+"].choose(rng).unwrap(), rng.random::<u64>() >> rng.random_range(0..64)).into_bytes(),
        1 => {
            let fraction = "0123456789012345678901234567890123456789";
            let whole = rng.random::<u128>() >> rng.random_range(0..128);
            let sign = ["", "-"].choose(rng).unwrap();
            format!("{sign}{whole}.{}", &fraction[..rng.random_range(0..35)]).into_bytes()
        }
        2 => format!("{:04}-{:02}-{:02}", rng.random_range(0..10_000), rng.random_range(0..14), rng.random_range(0..33)).into_bytes(),
        3 => {
            let (days, micros) = (rng.random_range(0..1_000_000i64), rng.random_range(0..86_400_000_000i64));
            let moment = DateTime::from_micros(days * 86_400_000_000 + micros).unwrap();
            let digits = rng.random_range(0..=6);
            if rng.random() { moment.format(digits).into_bytes() } else { moment.time().format(digits).into_bytes() }
        }
        _ => TEXTS.choose(rng).unwrap().as_bytes().to_vec(),
    };
    if rng.random_range(0..6) == 0 {
        text = Charset::Latin1.encode(&String::from_utf8_lossy(&text)).into_owned();
    }
    for _ in 0..[0, 0, 0, 1, 2][rng.random_range(0..5)] {
        let byte = if rng.random() { rng.random() } else { *b"0159 -+.:,eEx".choose(rng).unwrap() };
        let at = rng.random_range(0..=text.len());
        match rng.random_range(0..3) {
            0 => text.insert(at, byte),
            1 if at < text.len() => text[at] = byte,
            _ => text.truncate(at),
        }
    }
    if rng.random_range(0..200) == 0 {
        text = text.repeat(rng.random_range(1..20_000));
    }
    text
}

/// The value that LOAD DATA assigns for a field.
fn assigned(text: &[u8], ty: &ColumnType, charset: Charset) -> Value {
    if ty.is_binary() || matches!(ty.kind, TypeKind::Bit(_)) || (charset == Charset::Binary && ty.is_text()) {
        return Value::Bytes(text.to_vec());
    }
    match charset.decode(text) {
        Ok(text) => Value::text(&*text),
        Err(_) => Value::Bytes(text.to_vec()),
    }
}

/// What strict mode stores; `None` if it is an error or comes with a warning.
fn stored(text: Option<&[u8]>, ty: &ColumnType, charset: Charset) -> Option<Value> {
    let Some(text) = text else { return Some(Value::Null) };
    let mut warnings = Vec::new();
    let mut cx = StoreContext {
        strict: true,
        ignore: false,
        mode: SqlMode { no_zero_date: true, no_zero_in_date: true, error_for_division_by_zero: true, ..SqlMode::default() },
        time_zone: &TimeZone::parse("+00:00").unwrap(),
        now_micros: 0,
        row: 1,
        warnings: &mut warnings,
    };
    let value = store(assigned(text, ty, charset), ty, "c", &mut cx).ok()?;
    warnings.is_empty().then_some(value)
}

/// The encoder's row for fields that all go to columns in order; `None` if it declines them.
fn encoded(types: &[ColumnType], fields: &[Option<&[u8]>], charset: Charset) -> Option<Vec<u8>> {
    let columns: Vec<usize> = (0..types.len()).collect();
    let encoder = TextRowEncoder::new(types, &vec![true; types.len()], &columns, &vec![None; types.len()], charset).unwrap();
    let mut out = Vec::new();
    encoder.encode(fields, &mut out).then_some(out)
}

#[test]
fn what_is_encoded_is_what_is_stored() {
    let types = types();
    for seed in 0..8 {
        let mut rng = StdRng::seed_from_u64(seed);
        let mut accepted = 0;
        for _ in 0..2_000 {
            let charset = *charsets().choose(&mut rng).unwrap();
            let ty = types.choose(&mut rng).unwrap();
            let text = random_text(&mut rng);
            let Some(row) = encoded(std::slice::from_ref(ty), &[Some(&text)], charset) else { continue };
            let shown = String::from_utf8_lossy(&text);
            let value = stored(Some(&text), ty, charset);
            let value = value.unwrap_or_else(|| panic!("seed {seed}: {shown:?} is not plain for {ty} from {charset:?}"));
            let mut expected = Vec::new();
            RowLayout::new(std::slice::from_ref(ty)).encode(&[value], &mut expected);
            assert_eq!(row, expected, "seed {seed}: {shown:?} as {ty} from {charset:?}");
            accepted += 1;
        }
        assert!(accepted > 200, "seed {seed}: {accepted} accepted");
    }
}

/// Every listed text in every type and character set.
#[test]
fn listed_texts() {
    for ty in types() {
        for charset in charsets() {
            for text in TEXTS.iter().map(|text| text.as_bytes()).chain([&[0xE9][..], &[0x80, 0x81], &[0xFF, 0xFE]]) {
                let Some(row) = encoded(std::slice::from_ref(&ty), &[Some(text)], charset) else { continue };
                let value = stored(Some(text), &ty, charset).unwrap_or_else(|| panic!("{text:?} is not plain for {ty} from {charset:?}"));
                let mut expected = Vec::new();
                RowLayout::new(std::slice::from_ref(&ty)).encode(&[value], &mut expected);
                assert_eq!(row, expected, "{:?} as {ty} from {charset:?}", String::from_utf8_lossy(text));
            }
        }
    }
}

/// Tables of several columns: fields in any order, constants and NULLs between them, one buffer for all rows.
#[test]
fn tables() {
    let all = types();
    for seed in 0..300 {
        let mut rng = StdRng::seed_from_u64(seed);
        let charset = *charsets().choose(&mut rng).unwrap();
        let types: Vec<ColumnType> = (0..rng.random_range(1..20)).map(|_| all.choose(&mut rng).unwrap().clone()).collect();
        let nullable: Vec<bool> = types.iter().map(|_| rng.random_range(0..3) > 0).collect();
        let (mut columns, mut others) = (Vec::new(), Vec::new());
        for (column, ty) in types.iter().enumerate() {
            let constant = stored(Some(&random_text(&mut rng)), ty, charset).or(nullable[column].then_some(Value::Null));
            let constant = constant.filter(|_| rng.random_range(0..3) == 0);
            if constant.is_none() {
                columns.insert(rng.random_range(0..=columns.len()), column);
            }
            others.push(constant);
        }
        let encoder = TextRowEncoder::new(&types, &nullable, &columns, &others, charset).unwrap();
        let mut out = vec![0xEE; 3];
        for _ in 0..20 {
            let texts: Vec<Option<Vec<u8>>> = columns.iter().map(|column| plain_text(&types[*column], charset, &mut rng)).collect();
            let fields: Vec<Option<&[u8]>> = texts.iter().map(Option::as_deref).collect();
            let before = out.clone();
            if !encoder.encode(&fields, &mut out) {
                assert_eq!(out, before, "seed {seed}");
                continue;
            }
            let mut values: Vec<Value> = others.iter().map(|other| other.clone().unwrap_or_default()).collect();
            for (field, column) in fields.iter().zip(&columns) {
                assert!(field.is_some() || nullable[*column], "seed {seed}: NULL in a NOT NULL column");
                values[*column] = stored(*field, &types[*column], charset).unwrap();
            }
            let mut expected = before;
            RowLayout::new(&types).encode(&values, &mut expected);
            assert_eq!(out, expected, "seed {seed}");
        }
    }
}

/// Mostly a text that the encoder takes for the type.
fn plain_text(ty: &ColumnType, charset: Charset, rng: &mut StdRng) -> Option<Vec<u8>> {
    if rng.random_range(0..20) == 0 {
        return None;
    }
    let mut text = random_text(rng);
    for _ in 0..100 {
        if encoded(std::slice::from_ref(ty), &[Some(&text)], charset).is_some() {
            break;
        }
        text = random_text(rng);
    }
    Some(text)
}

#[test]
fn plain_values_are_accepted() {
    use TypeKind::*;
    let text = |kind: TypeKind| text_type(kind, "utf8mb4_0900_ai_ci");
    let cases: Vec<(ColumnType, &[&str])> = vec![
        (ColumnType::new(TinyInt), &["0", "-128", "127", "+5", "007"]),
        (ColumnType::new(SmallInt), &["-32768", "32767"]),
        (ColumnType::new(MediumInt).unsigned(), &["0", "16777215"]),
        (ColumnType::new(Int), &["-2147483648", "2147483647"]),
        (ColumnType::bigint(), &["-9223372036854775808", "9223372036854775807"]),
        (ColumnType::ubigint(), &["18446744073709551615"]),
        (ColumnType::decimal(15, 2), &["17", "24386.67", "-0.04", "0.1", "9999999999999.99", "000.00"]),
        (ColumnType::decimal(9, 0), &["999999999"]),
        (ColumnType::decimal(38, 10), &["-9999999999999999999999999999.9999999999"]),
        (ColumnType::decimal(65, 30), &["12345678.5", "-1"]),
        (ColumnType::decimal(5, 5), &["0.12345", ".5"]),
        (ColumnType::new(Float), &["1.5", "-3", "1e-7", "3.4e38"]),
        (ColumnType::double(), &["3.141592653589793", "-0", "1e300"]),
        (ColumnType::new(Bit(8)), &["A"]),
        (ColumnType::new(Year), &["1901", "1998", "2155"]),
        (ColumnType::new(Date), &["1996-03-13", "2024-02-29", "0001-01-01", "9999-12-31"]),
        (ColumnType::new(DateTime(0)), &["1996-03-13 23:59:59", "1996-03-13"]),
        (ColumnType::new(DateTime(3)), &["1996-03-13 23:59:59", "1996-03-13 23:59:59.1", "1996-03-13 23:59:59.999"]),
        (ColumnType::new(Time(6)), &["-838:59:59", "10:11:12.123456", "00:00:00"]),
        (text(Char(5)), &["", "abc", "abc  ", "abcde         ", "éàü中文"]),
        (text(VarChar(5)), &["", "abc  ", "éàü中😀"]),
        (text(Text), &["a longer text, with any characters: éàü中😀"]),
        (text(Enum(["a".into(), "b".into()].into())), &["b"]),
        (text(Set(["a".into(), "b".into()].into())), &["", "a", "b,a"]),
        (text_type(VarChar(3), "latin1_swedish_ci"), &["été"]),
        (text_type(Char(3), "utf8_general_ci"), &["中文"]),
        (ColumnType::new(Binary(4)), &["", "abcd"]),
        (ColumnType::new(VarBinary(4)), &["é", "abcd"]),
        (ColumnType::new(Blob), &["anything"]),
    ];
    for (ty, texts) in cases {
        for text in texts {
            assert!(encoded(std::slice::from_ref(&ty), &[Some(text.as_bytes())], Charset::Utf8mb4).is_some(), "{text:?} as {ty}");
        }
    }
    // From a latin1 file: é is one byte there and two in the row.
    let row = encoded(&[text(VarChar(2))], &[Some(&[0xE9, 0x80])], Charset::Latin1).unwrap();
    assert_eq!(RowLayout::new(&[text(VarChar(2))]).value(&row, 0), Value::from("é€"));
}

/// Data that two bytes of offset do not reach.
#[test]
fn wide_rows_of_text() {
    let types = [ColumnType::bigint(), ColumnType::new(TypeKind::LongBlob), text_type(TypeKind::LongText, "utf8mb4_bin")];
    for length in [65_530, 65_531, 65_532, 65_533, 200_000] {
        let long = vec![b'x'; length];
        let row = encoded(&types, &[Some(b"-5"), Some(&long), Some(b"tail")], Charset::Utf8mb4).unwrap();
        let mut expected = Vec::new();
        RowLayout::new(&types).encode(&[Value::Int(-5), Value::Bytes(long), "tail".into()], &mut expected);
        assert_eq!(row, expected);
    }
}

#[test]
fn columns_without_an_encoder() {
    let types = [ColumnType::bigint(), ColumnType::new(TypeKind::Json)];
    let new = |nullable: [bool; 2], columns: &[usize], others: [Option<Value>; 2]| {
        TextRowEncoder::new(&types, &nullable, columns, &others, Charset::Utf8mb4)
    };
    let null = Some(Value::Null);
    assert!(new([true; 2], &[0], [None, null.clone()]).is_some());
    assert!(new([true; 2], &[0, 1], [None, None]).is_none(), "JSON is normalised");
    assert!(new([true, false], &[0], [None, null.clone()]).is_none(), "NULL in a NOT NULL column");
    assert!(new([true; 2], &[0], [None, None]).is_none(), "no value for a column");
    assert!(new([true; 2], &[0, 0], [None, null.clone()]).is_none(), "two fields for a column");
    assert!(new([true; 2], &[2], [null.clone(), null.clone()]).is_none(), "no such column");
    let encoder = new([true; 2], &[0], [None, null]).unwrap();
    assert!(!encoder.encode(&[], &mut Vec::new()));
    assert!(!encoder.encode(&[Some(b"1"), None], &mut Vec::new()));
    let timestamp = [ColumnType::new(TypeKind::Timestamp(0))];
    assert!(TextRowEncoder::new(&timestamp, &[true], &[0], &[None], Charset::Utf8mb4).is_none(), "TIMESTAMP needs the session's zone");
}
