//! Assignments that MySQL was asked for (`testdata`).

use std::sync::Arc;

use super::*;
use crate::cast::tests::{unhex, value};
use crate::{Collation, Str};

fn members(text: &str) -> Arc<[Str]> {
    text.split(',').map(|member| member.trim_matches('\'').into()).collect()
}

/// The column types of the recorded file.
fn column_type(text: &str) -> ColumnType {
    use TypeKind::*;
    let utf8mb4 = Collation::utf8mb4();
    let (name, rest) = text.split_at(text.find(['(', ' ']).unwrap_or(text.len()));
    let arguments = rest.strip_prefix('(').and_then(|rest| rest.split_once(')')).map_or("", |(arguments, _)| arguments);
    let numbers: Vec<u8> = arguments.split(',').filter_map(|n| n.parse().ok()).collect();
    let number = |at: usize| numbers.get(at).copied().unwrap_or(0);
    let kind = match name {
        "tinyint" => TinyInt,
        "smallint" => SmallInt,
        "mediumint" => MediumInt,
        "int" => Int,
        "bigint" => BigInt,
        "decimal" => Decimal { precision: number(0), scale: number(1) },
        "float" => Float,
        "double" => Double,
        "bit" => Bit(number(0)),
        "year" => Year,
        "date" => Date,
        "datetime" => DateTime(number(0)),
        "timestamp" => Timestamp(number(0)),
        "time" => Time(number(0)),
        "char" => Char(number(0).into()),
        "varchar" => VarChar(number(0).into()),
        "tinytext" => TinyText,
        "binary" => Binary(number(0).into()),
        "varbinary" => VarBinary(number(0).into()),
        "blob" => Blob,
        "enum" => Enum(members(arguments)),
        "set" => Set(members(arguments)),
        _ => Json,
    };
    let mut ty = ColumnType::new(kind);
    if ty.is_text() || matches!(ty.kind, Enum(_) | Set(_)) {
        ty.collation = if text.contains("latin1") { Collation::by_name("latin1_swedish_ci").unwrap() } else { utf8mb4 };
    }
    ty.unsigned = text.contains("unsigned");
    ty.zerofill = text.contains("zerofill");
    if ty.zerofill {
        ty.width = number(0);
    }
    if ty.is_real() && numbers.len() == 2 {
        ty.float_digits = Some((numbers[0], numbers[1]));
    }
    ty
}

/// The moment of the recorded answers, 2018-01-02 03:00:00, as `tools/record_conversions.py` sets it.
const RECORDED_MICROS: i64 = 1_514_862_000_000_000;

/// True for the answers that depend on MySQL's internals rather than on the assignment.
fn is_exempt(ty: &str, mode: &str, source: &str) -> bool {
    let is = |kinds: &[&str]| kinds.iter().any(|kind| source.starts_with(kind));
    // The server cannot print four-byte characters in messages.
    source.contains('😀')
        // str_to_time refuses an exponent without saying so, and takes a blank as midnight.
        || ty.starts_with("time") && matches!(source, "text:1e2" | "text:1e400" | "text: " | "text:")
        // A fraction of a second in the zero date, and a negative number in too short a text.
        || ty == "timestamp(6)" && is(&["dec:0.5", "dbl:0.5", "dbl:1e-5", "dbl:0.1"])
        || ty.ends_with("(3)") && source == "dbl:-0.4e0"
        // A literal keeps its own number of fractional digits.
        || is(&["time:-10:11:12.567", "dt:2018-01-02 03:04:05.678901", "dt:2018-01-02 23:59:59.999999"])
        || mode.is_empty()
}

/// Answers recorded from MySQL 8.0.12: every type, mode and value.
#[test]
fn assignments_are_mysqls() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in include_str!("../../testdata/store.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (name, mode, source, recorded) = (fields[0], fields[1], fields[2], fields[3]);
        if is_exempt(name, mode, source) {
            continue;
        }
        let ty = column_type(name);
        let zone = TimeZone::utc();
        let mut warnings = Vec::new();
        let strict = mode != "lax";
        let mut cx = StoreContext {
            strict,
            ignore: mode == "ignore",
            mode: SqlMode { no_zero_date: strict, no_zero_in_date: strict, ..SqlMode::default() },
            time_zone: &zone,
            now_micros: RECORDED_MICROS,
            row: 1,
            warnings: &mut warnings,
        };
        let answer = match store(value(source), &ty, "c", &mut cx) {
            Ok(Value::UInt(v)) if matches!(ty.kind, TypeKind::Bit(_)) => format!("{v:X}"),
            Ok(v) => {
                let mut text = Vec::new();
                v.to_text(&ty, &mut text);
                text.iter().map(|byte| format!("{byte:02X}")).collect()
            }
            Err(error) => {
                warnings.clear();
                format!("E {} {}", error.code, error.message)
            }
        };
        let mut noted: Vec<String> = warnings.iter().map(|w| format!("{} {} {}", w.level.name(), w.code, w.message)).collect();
        let mut expected: Vec<&str> = fields[4].split(" | ").filter(|w| !w.is_empty()).collect();
        noted.dedup();
        expected.dedup();
        let recorded = recorded.replace("column 't.c'", "column 'c'");
        if answer != recorded || noted != expected {
            let readable = |hex: &str| if hex.starts_with("E ") { hex.to_owned() } else { String::from_utf8_lossy(&unhex(hex)).into_owned() };
            wrong.push(format!("{name} {mode} {source}: {} {noted:?}, MySQL {} {expected:?}", readable(&answer), readable(&recorded)));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} differences of {count}\n{}", wrong.len(), wrong.join("\n"));
}

/// Recorded from MySQL 8.0.12.
#[test]
fn json_becomes_the_number_that_it_is() {
    let zone = TimeZone::utc();
    let mut warnings = Vec::new();
    let mut stored = |json: &str, ty: ColumnType, strict: bool| {
        let mut cx = StoreContext { strict, ignore: false, mode: SqlMode::default(), time_zone: &zone, now_micros: 0, row: 1, warnings: &mut warnings };
        store(Value::Json(json.into()), &ty, "c", &mut cx).map_err(|e| e.code)
    };
    let int = || ColumnType::new(TypeKind::Int);
    assert_eq!(stored("true", int(), true), Ok(Value::Int(1)));
    assert_eq!(stored("\"10\"", int(), true), Ok(Value::Int(10)));
    assert_eq!(stored("1.5", int(), true), Ok(Value::Int(2)));
    assert_eq!(stored("18446744073709551615", ColumnType::ubigint(), true), Ok(Value::UInt(u64::MAX)));
    assert_eq!(stored("false", ColumnType::double(), true), Ok(Value::Double(0.0)));
    assert_eq!(stored("\"10\"", ColumnType::double(), true), Ok(Value::Double(10.0)));
    assert_eq!(stored("true", ColumnType::decimal(5, 1), true), Ok(Value::Decimal("1.0".parse().unwrap())));
    for nothing in ["\"abc\"", "null", "[1]", "{}"] {
        assert_eq!(stored(nothing, int(), true), Err(3156), "{nothing}");
        assert_eq!(stored(nothing, int(), false), Ok(Value::Int(0)), "{nothing}");
    }
}

/// What only parameters and modes can bring. Answers of MySQL 8.0.12, but for NaN as an integer, which it stores as the least.
#[test]
fn what_no_column_can_have_is_refused() {
    let zone = TimeZone::utc();
    let store_in = |value: &Value, ty: ColumnType, strict: bool, mode: SqlMode| {
        let mut warnings = Vec::new();
        let mut cx = StoreContext { strict, ignore: false, mode, time_zone: &zone, now_micros: 0, row: 1, warnings: &mut warnings };
        let stored = store(value.clone(), &ty, "c", &mut cx).map_err(|e| e.code);
        (stored, warnings.iter().map(|w| w.code).collect::<Vec<u16>>())
    };
    let usual = SqlMode { no_zero_date: true, no_zero_in_date: true, ..SqlMode::default() };
    for nan in [Value::Double(f64::NAN), Value::Float(f32::NAN)] {
        for kind in [TypeKind::Double, TypeKind::Float, TypeKind::BigInt, TypeKind::Year] {
            assert_eq!(store_in(&nan, ColumnType::new(kind.clone()), true, usual).0, Err(1264), "{kind:?}");
        }
        assert_eq!(store_in(&nan, ColumnType::decimal(5, 1), true, usual).0, Err(1264));
        assert_eq!(store_in(&nan, ColumnType::new(TypeKind::Double), false, usual), (Ok(Value::Null), vec![1264]));
        assert_eq!(store_in(&nan, ColumnType::new(TypeKind::BigInt), false, usual), (Ok(Value::Int(0)), vec![1264]));
        assert_eq!(store_in(&nan, ColumnType::decimal(5, 1), false, usual), (Ok(Value::Decimal("0.0".parse().unwrap())), vec![1264]));
    }
    let date = crate::Date { year: 2021, month: 2, day: 30 };
    let invalid = SqlMode { allow_invalid_dates: true, ..usual };
    for (value, kind) in [(Value::Date(date), TypeKind::Date), (Value::DateTime(DateTime::from(date)), TypeKind::DateTime(0))] {
        let ty = || ColumnType::new(kind.clone());
        assert_eq!(store_in(&value, ty(), true, usual).0, Err(1292), "{kind:?}");
        assert_eq!(store_in(&value, ty(), false, usual).1, [1264], "{kind:?}");
        assert_eq!(store_in(&value, ty(), true, invalid), (Ok(value.clone()), vec![]), "{kind:?}");
        // A copy of what is there already.
        assert_eq!(store_in(&value, ty(), true, SqlMode::default()), (Ok(value.clone()), vec![]), "{kind:?}");
        assert!(!usual.admits(&value) && invalid.admits(&value) && SqlMode::default().admits(&value), "{kind:?}");
    }
}
