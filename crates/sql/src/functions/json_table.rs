//! JSON_TABLE(): the rows that a document makes.

use highkey_types::json::{self, Json};
use highkey_types::{ColumnType, Level, StoreContext, TimeZone, TypeKind, Value, Warning, errors, store};

use super::call::Result;
use super::json::document;
use crate::expr::EvalContext;
use crate::plan::{JsonColumn, JsonOtherwise, JsonRows, JsonSource};

/// ER_INVALID_JSON_VALUE_FOR_CAST: ERROR ON ERROR shows it as it is.
const INVALID_FOR_CAST: u16 = 3156;

/// Takes the rows one by one, each as the values of all columns.
type Give<'g> = dyn FnMut(&[Value], &mut dyn EvalContext) -> Result<()> + 'g;

/// Gives the rows of a document, which NULL has none of. `width`: how many columns the table has. Errors 3141, 3144 and 3146 for what is no document; 3665 and 3666, and
/// those of the conversion, where a column says ERROR. A conversion that fails warns.
pub(crate) fn json_table_rows(rows: &JsonRows, width: usize, value: &Value, cx: &mut dyn EvalContext, give: &mut Give<'_>) -> Result<()> {
    let Some(json) = document(value, 1, "json_table")? else { return Ok(()) };
    let zone = cx.time_zone().clone();
    let mut making = Making { values: vec![Value::Null; width], zone, give };
    making.rows_within(rows, &json, cx).map(|_| ())
}

/// A row being made.
struct Making<'a, 'g> {
    values: Vec<Value>,
    zone: TimeZone,
    give: &'a mut Give<'g>,
}

impl Making<'_, '_> {
    /// Gives the rows of a value; false if there are none. The columns are NULL again afterwards.
    fn rows_within(&mut self, rows: &JsonRows, within: &Json, cx: &mut dyn EvalContext) -> Result<bool> {
        let found = rows.path.select(within);
        for (at, value) in found.iter().enumerate() {
            for column in &rows.columns {
                self.values[column.output] = self.column(column, value, at, cx)?;
            }
            let mut has_nested = false;
            for nested in &rows.nested {
                has_nested |= self.rows_within(nested, value, cx)?;
            }
            if !has_nested {
                (self.give)(&self.values, cx)?;
            }
        }
        for column in &rows.columns {
            self.values[column.output] = Value::Null;
        }
        Ok(!found.is_empty())
    }

    /// What a column has in the row of `value`, the `at`-th from 0.
    fn column(&self, column: &JsonColumn, value: &Json, at: usize, cx: &mut dyn EvalContext) -> Result<Value> {
        match &column.source {
            JsonSource::Ordinality => Ok(Value::UInt(at as u64 + 1)),
            JsonSource::Exists { path, ty } => {
                let exists = Value::bool(!path.select(value).is_empty());
                self.converted(cx, |store_cx| {
                    store_cx.strict = false;
                    store(exists, ty, &column.name, store_cx)
                })
            }
            JsonSource::Path { path, ty, on_empty, on_error } => match path.select(value).as_slice() {
                [] => match on_empty {
                    JsonOtherwise::Null => Ok(Value::Null),
                    JsonOtherwise::Default(value) => Ok(value.clone()),
                    JsonOtherwise::Error => Err(errors::missing_json_table_value(&column.name)),
                },
                [found] => self.stored(column, found, ty, on_error, cx),
                // A JSON column has all of them.
                several => {
                    let all = Json::Array(several.iter().map(|value| (*value).clone()).collect());
                    self.stored(column, &all, ty, on_error, cx)
                }
            },
        }
    }

    fn stored(&self, column: &JsonColumn, value: &Json, ty: &ColumnType, on_error: &JsonOtherwise, cx: &mut dyn EvalContext) -> Result<Value> {
        let error = match self.converted(cx, |store_cx| json_table_value(value, ty, &column.name, store_cx)) {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        // Of what is no scalar nobody is told.
        let is_scalar = !matches!(value, Json::Array(_) | Json::Object(_));
        match on_error {
            JsonOtherwise::Error if !is_scalar || error.code == INVALID_FOR_CAST => return Err(error),
            JsonOtherwise::Error => return Err(errors::jt_value_out_of_range(&column.name)),
            _ if is_scalar => cx.warn(error.into_warning(Level::Warning)),
            _ => {}
        }
        Ok(match on_error {
            JsonOtherwise::Default(value) => value.clone(),
            _ => Value::Null,
        })
    }

    /// Runs a strict conversion, whose notes are the statement's.
    fn converted(&self, cx: &mut dyn EvalContext, convert: impl FnOnce(&mut StoreContext<'_>) -> Result<Value>) -> Result<Value> {
        let mut notes: Vec<Warning> = Vec::new();
        let mut store_cx = StoreContext {
            strict: true,
            ignore: false,
            mode: cx.sql_mode(),
            time_zone: &self.zone,
            now_micros: cx.now_micros(),
            row: 1,
            warnings: &mut notes,
        };
        let value = convert(&mut store_cx)?;
        notes.into_iter().for_each(|note| cx.warn(note));
        Ok(value)
    }
}

/// A value of a document as a column of type `ty` holds it. Error 3666 for an array or an object in a column that is not JSON; 3155 and 3156 for what is no number,
/// else those of an assignment in strict mode.
pub(crate) fn json_table_value(value: &Json, ty: &ColumnType, column: &str, cx: &mut StoreContext<'_>) -> Result<Value> {
    use TypeKind as K;
    if ty.kind == K::Json {
        return Ok(Value::Json(json::to_text(value).into()));
    }
    if matches!(value, Json::Array(_) | Json::Object(_)) {
        return Err(errors::wrong_json_table_value(column));
    }
    let number = |kind: &str| number_of(value, kind, column);
    match &ty.kind {
        K::TinyInt | K::SmallInt | K::MediumInt | K::Int | K::BigInt | K::Year => store(number("INTEGER")?, ty, column, cx),
        K::Bit(_) => store(whole(number("INTEGER")?), ty, column, cx),
        K::Decimal { .. } => store(number("DECIMAL")?, ty, column, cx),
        K::Float | K::Double => store(number("DOUBLE")?, ty, column, cx),
        // In the session's zone, as those that are read from tables.
        K::Timestamp(fsp) => store(text_of(value), &ColumnType::new(K::DateTime(*fsp)), column, cx),
        _ => store(text_of(value), ty, column, cx),
    }
}

/// An integer as such: a column of bits takes texts for bytes, and cuts off fractions.
fn whole(number: Value) -> Value {
    match &number {
        Value::Double(v) if *v < 0.0 => Value::Int(v.round() as i64),
        Value::Double(v) => Value::UInt(v.round() as u64),
        Value::Text(text) => text.parse().map(Value::Int).or_else(|_| text.parse().map(Value::UInt)).unwrap_or(number),
        _ => number,
    }
}

fn text_of(value: &Json) -> Value {
    match value {
        Json::String(text) => Value::from(text.clone()),
        other => Value::from(json::to_text(other)),
    }
}

/// The number that a scalar is; a string has to be one from its first character behind spaces to its last.
fn number_of(value: &Json, kind: &str, column: &str) -> Result<Value> {
    let invalid = || errors::invalid_json_value_for_cast(kind, column, 1);
    let out_of_range = |number: f64| kind == "INTEGER" && (number >= u64::MAX as f64 || number < i64::MIN as f64);
    match value {
        Json::Int(v) => Ok(Value::Int(*v)),
        Json::UInt(v) => Ok(Value::UInt(*v)),
        Json::Bool(truth) => Ok(Value::bool(*truth)),
        Json::Decimal(v) => Ok(Value::Decimal(*v)),
        Json::Double(v) if out_of_range(*v) => Err(errors::numeric_json_value_out_of_range(kind, column, 1)),
        Json::Double(v) => Ok(Value::Double(*v)),
        Json::String(text) => {
            let text = text.trim_start();
            match kind {
                "INTEGER" if text.parse::<i128>().is_ok() => Ok(Value::from(text)),
                "DECIMAL" if real(text.trim_end()).is_some() => Ok(Value::from(text.trim_end())),
                // Nothing is 0, as C's strtod has it.
                "DOUBLE" if text.is_empty() => Ok(Value::Double(0.0)),
                "DOUBLE" => real(text).map(Value::Double).ok_or_else(invalid),
                _ => Err(invalid()),
            }
        }
        Json::Null | Json::Array(_) | Json::Object(_) => Err(invalid()),
    }
}

/// Of digits with a sign, a point and an exponent at most.
fn real(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'+' | b'-' | b'.' | b'e' | b'E'));
    text.parse().ok().filter(|number: &f64| is_plain && number.is_finite())
}
