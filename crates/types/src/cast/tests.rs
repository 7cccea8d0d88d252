//! Casts and comparisons that MySQL was asked for (`testdata`).

use super::*;
use crate::{Collation, compare};

/// A `kind:payload` value of the recorded files.
pub(crate) fn value(text: &str) -> Value {
    let (kind, payload) = text.split_once(':').unwrap();
    let datetime = |text: &str| parse_datetime(text, DateRules::default()).unwrap().value;
    match kind {
        "int" => Value::Int(payload.parse().unwrap()),
        "uint" => Value::UInt(payload.parse().unwrap()),
        "dec" => Value::Decimal(payload.parse().unwrap()),
        "dbl" => Value::Double(payload.parse().unwrap()),
        "text" => Value::from(payload),
        "bytes" => Value::Bytes(unhex(payload)),
        "date" => Value::Date(datetime(payload).date),
        "dt" => Value::DateTime(datetime(payload)),
        _ => Value::Time(parse_time(payload).unwrap().value),
    }
}

pub(crate) fn unhex(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn with_context<T>(run: impl FnOnce(&mut CastContext) -> T) -> (T, Vec<Warning>) {
    let mut warnings = Vec::new();
    let zone = TimeZone::utc();
    let result = run(&mut CastContext {
        warnings: &mut warnings,
        mode: SqlMode::default(),
        today: Date::new(2018, 1, 2),
        time_zone: &zone,
    });
    (result, warnings)
}

/// Answers recorded from MySQL 8.0.12.
#[test]
fn casts_are_mysqls() {
    let mut wrong = Vec::new();
    for line in include_str!("../../testdata/cast.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (target, source, recorded) = (fields[0], fields[1], fields[2]);
        if recorded.starts_with("E ") {
            continue;
        }
        // Not an answer about casts: bytes that are no text, and a literal's own number of fractional digits.
        if target == "char" && source == "bytes:ff" || matches!(target, "char" | "binary") && source == "time:-10:11:12.567" {
            continue;
        }
        // MySQL takes an unsigned number as a signed one here.
        if source == "uint:18446744073709551615" && (target.starts_with("time") || target.starts_with("date")) {
            continue;
        }
        let input = value(source);
        let (result, warnings) = with_context(|cx| match target {
            "signed" => to_i64(&input, cx).map(|v| v.to_string()),
            "unsigned" => to_u64(&input, cx).map(|v| v.to_string()),
            "double" => to_f64(&input, cx).map(crate::double_to_string),
            "decimal(30,5)" => to_decimal(&input, cx).map(|v| {
                let limit = Decimal::max(30, 5);
                let v = v.rescale(5).unwrap_or(limit);
                v.clamp(limit.neg(), limit).to_string()
            }),
            "date" => to_date(&input, cx).map(|v| v.to_string()),
            "datetime(6)" => to_datetime(&input, cx).map(|v| v.format(6)),
            "time(6)" => to_time(&input, cx).map(|v| v.format(6)),
            "char" => to_str(&input).map(|v| v.to_string()),
            _ => to_bytes(&input).map(|v| String::from_utf8_lossy(&v).into_owned()),
        });
        let expected = (recorded != "NULL").then(|| String::from_utf8_lossy(&unhex(recorded)).into_owned());
        let noted: Vec<String> = warnings.iter().map(|w| format!("{} {} {}", w.level.name(), w.code, w.message)).collect();
        // The server cannot print four-byte characters, and warns about DOUBLE and DECIMAL only outside of constants.
        let comparable = !source.contains('😀') && target != "double" && target != "decimal(30,5)" && target != "char";
        if result != expected || comparable && noted.join(" | ") != fields[3] {
            wrong.push(format!("{target} {source}: {result:?} {noted:?}, MySQL {expected:?} {:?}", fields[3]));
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}

/// Answers recorded from MySQL 8.0.12.
#[test]
fn comparisons_are_mysqls() {
    let mut wrong = Vec::new();
    for line in include_str!("../../testdata/compare.tsv").lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let (a, b) = (value(fields[0]), value(fields[1]));
        let kinds = |x: &str, y: &str| {
            let is = |a: &str, b: &str| fields[0].starts_with(a) && fields[1].starts_with(b);
            is(x, y) || is(y, x)
        };
        // The recorded texts have an explicit collation, which wins over binary; and between two literals MySQL skips
        // the conversion to the temporal type that it does for a column and a literal.
        if kinds("bytes:", "text:") || kinds("time:", "text:2018") || kinds("int:20180102", "dt:2018-01-02 00") {
            continue;
        }
        let (order, _) = with_context(|cx| compare(&a, &b, Collation::utf8mb4(), cx));
        let answer = order.map_or("NULL".to_owned(), |order| (order as i8).to_string());
        if answer != fields[2] {
            wrong.push(format!("{} ? {}: {answer}, MySQL {}", fields[0], fields[1], fields[2]));
        }
    }
    assert!(wrong.is_empty(), "{} differences\n{}", wrong.len(), wrong.join("\n"));
}
