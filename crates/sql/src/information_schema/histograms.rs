//! COLUMN_STATISTICS: histograms as MySQL writes them in JSON.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use highkey_table::{ColumnDef, Histogram, Table};
use highkey_types::{ColumnType, DateTime, TypeKind, Value, json};

use crate::functions::to_base64;
use crate::session::SessionState;

pub(super) fn rows(_: &SessionState, table: &Arc<Table>, rows: &mut Vec<Vec<Value>>) {
    let def = table.def();
    let mut found: Vec<_> = def.columns.iter().enumerate().filter_map(|(i, column)| Some((column, table.histogram(i)?))).collect();
    found.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    for (column, histogram) in found {
        let json = Value::Json(document(column, &histogram).into());
        rows.push(vec![Value::text(&*def.schema), Value::text(&*def.name), Value::text(&*column.name), json]);
    }
}

/// In MySQL's normal form: members by length, then by bytes.
fn document(column: &ColumnDef, histogram: &Histogram) -> String {
    let number = |n: f64| json::to_text(&json::Json::Double(n));
    let buckets: Vec<String> = histogram
        .buckets()
        .iter()
        .map(|b| match histogram.is_singleton() {
            true => format!("[{}, {}]", scalar(&b.lower), number(b.cumulative)),
            false => format!("[{}, {}, {}, {}]", scalar(&b.lower), scalar(&b.upper), number(b.cumulative), b.distinct),
        })
        .collect();
    let micros = histogram.updated().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as i64);
    format!(
        "{{\"buckets\": [{}], \"data-type\": \"{}\", \"null-values\": {}, \"collation-id\": {}, \"last-updated\": \"{}\", \"sampling-rate\": {}, \"histogram-type\": \"{}\", \"number-of-buckets-specified\": {}}}",
        buckets.join(", "),
        data_type(&column.ty),
        number(histogram.null_fraction()),
        collation_id(&column.ty),
        DateTime::from_micros(micros).unwrap_or_default().format(6),
        number(histogram.sampling_rate()),
        if histogram.is_singleton() { "singleton" } else { "equi-height" },
        histogram.buckets_wanted(),
    )
}

fn data_type(ty: &ColumnType) -> &'static str {
    match &ty.kind {
        TypeKind::Year | TypeKind::Bit(_) => "int",
        _ if ty.is_integer() => if ty.unsigned { "uint" } else { "int" },
        TypeKind::Decimal { .. } => "decimal",
        TypeKind::Float | TypeKind::Double => "double",
        TypeKind::Date => "date",
        TypeKind::Time(_) => "time",
        TypeKind::DateTime(_) | TypeKind::Timestamp(_) => "datetime",
        TypeKind::Enum(_) => "enum",
        TypeKind::Set(_) => "set",
        _ => "string",
    }
}

/// Numbers and moments are latin1 to MySQL.
fn collation_id(ty: &ColumnType) -> u16 {
    const LATIN1_SWEDISH_CI: u16 = 8;
    const BINARY: u16 = 63;
    match &ty.kind {
        TypeKind::Bit(_) => BINARY,
        _ if ty.is_number() || ty.is_temporal() || ty.kind == TypeKind::Year => LATIN1_SWEDISH_CI,
        _ => ty.collation.id,
    }
}

fn scalar(value: &Value) -> String {
    let quoted = |text: &str| {
        let mut out = String::new();
        json::push_quoted(text, &mut out);
        out
    };
    match value {
        Value::Float(n) => json::to_text(&json::Json::Double(f64::from(*n))),
        Value::Double(n) => json::to_text(&json::Json::Double(*n)),
        Value::Enum(index, _) => index.to_string(),
        Value::Set(bits, _) => bits.to_string(),
        // MYSQL_TYPE_STRING: the bytes are in the column's character set.
        Value::Text(text) => quoted(&format!("base64:type254:{}", to_base64(text.as_bytes()))),
        Value::Bytes(bytes) => quoted(&format!("base64:type254:{}", to_base64(bytes))),
        Value::DateTime(moment) => quoted(&moment.format(6)),
        Value::Time(time) => quoted(&time.format(6)),
        Value::Date(date) => quoted(&date.to_string()),
        other => highkey_types::display_text(other).unwrap_or_default(),
    }
}
