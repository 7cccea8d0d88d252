//! JSON: making, quoting, reading and changing by path. Texts are in MySQL's normalised form.

use highkey_types::json::{self, Change, Json, Path};
use highkey_types::{Charset, Collation, ColumnType, Level, MySqlError, SqlMode, Str, TimeZone, TypeKind, Value, Warning, errors, geometry};

use super::FuncId;
use super::call::{Result, Types};
use super::json_schema;
use crate::expr::{EvalContext, Turn, cast_typed};
use crate::expr::convert::{to_text, truth};

/// The JSON value that an SQL value of type `ty` becomes: numbers as they are, bytes in base64, everything else as a string.
pub(crate) fn json_of(value: &Value, ty: Option<&ColumnType>) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Json(text) => Json::of_normal(text),
        Value::Int(v) => Json::Int(*v),
        Value::UInt(v) => match ty.map(|ty| &ty.kind) {
            Some(TypeKind::Bit(bits)) => opaque(16, &v.to_be_bytes()[8 - usize::from(bits.div_ceil(8))..]),
            _ => i64::try_from(*v).map_or(Json::UInt(*v), Json::Int),
        },
        Value::Decimal(v) => Json::Decimal(*v),
        // JSON has no NaN and nothing infinite, which parameters may be.
        Value::Double(v) => Json::Double(if v.is_finite() { *v } else { 0.0 }),
        Value::Float(v) => Json::Double(if v.is_finite() { f64::from(*v) } else { 0.0 }),
        // Temporal values show all six digits.
        Value::DateTime(moment) => Json::String(moment.format(6)),
        Value::Time(time) => Json::String(time.format(6)),
        Value::Bytes(bytes) if ty.is_some_and(ColumnType::is_geometry) => match geometry::of_stored(bytes) {
            Some((_, geometry)) if geometry.is_finite() => geometry::to_geojson(&geometry, None, false, None),
            _ => opaque(255, bytes),
        },
        Value::Bytes(bytes) => {
            let number = match ty.map(|ty| &ty.kind) {
                Some(TypeKind::TinyBlob) => 249,
                Some(TypeKind::MediumBlob) => 250,
                Some(TypeKind::LongBlob) => 251,
                Some(TypeKind::Blob) => 252,
                Some(TypeKind::Binary(_)) => 254,
                _ => 15,
            };
            opaque(number, bytes)
        }
        other => Json::String(to_text(other).unwrap_or_default().into_owned()),
    }
}

/// Bytes with the number of their column type, as MySQL prints what JSON has no words for.
fn opaque(type_number: u8, bytes: &[u8]) -> Json {
    Json::String(format!("base64:type{type_number}:{}", super::to_base64(bytes)))
}

fn print(json: &Json) -> Value {
    Value::Json(Str::from(json::to_text(json)))
}

/// A document that was put together here, which may have become too deep.
fn made(json: &Json) -> Result<Value> {
    if json::depth(json) > json::MAX_DEPTH + 1 {
        return Err(errors::json_document_too_deep());
    }
    Ok(print(json))
}

fn kind(json: &Json) -> &'static str {
    match json {
        Json::Null => "NULL",
        Json::Bool(_) => "BOOLEAN",
        Json::String(_) => "STRING",
        Json::Array(_) => "ARRAY",
        Json::Object(_) => "OBJECT",
        Json::Int(_) => "INTEGER",
        Json::UInt(_) => "UNSIGNED INTEGER",
        Json::Double(_) => "DOUBLE",
        Json::Decimal(_) => "DECIMAL",
    }
}

/// Error 3141 for an argument (from 1) that is no JSON.
pub(crate) fn invalid_json((reason, position): (String, usize), argument: usize, function: &str) -> MySqlError {
    match reason.as_str() {
        json::TOO_DEEP => errors::json_document_too_deep(),
        _ => errors::invalid_json_text_in_param(argument, function, reason, position),
    }
}

/// An argument (from 1) that is a document: JSON, or text that is parsed; `None` is NULL.
pub(super) fn document(value: &Value, argument: usize, function: &str) -> Result<Option<Json>> {
    match value {
        Value::Null => Ok(None),
        Value::Json(text) => Ok(Some(Json::of_normal(text))),
        Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) => json::parse(text).map(Some).map_err(|reason| invalid_json(reason, argument, function)),
        Value::Bytes(_) => Err(errors::invalid_json_charset("binary")),
        _ => Err(errors::invalid_type_for_json(argument, function)),
    }
}

/// A call's arguments as what JSON functions take them for; `None` is NULL.
struct Arguments<'a> {
    values: &'a [Value],
    types: &'a Types<'a>,
    function: String,
}

impl Arguments<'_> {
    fn len(&self) -> usize {
        self.values.len()
    }

    /// A document: JSON, or text that is parsed.
    fn document(&self, i: usize) -> Result<Option<Json>> {
        document(&self.values[i], i + 1, &self.function)
    }

    fn path(&self, i: usize) -> Result<Option<Path>> {
        let Some(text) = to_text(&self.values[i]) else { return Ok(None) };
        Path::parse(&text).map(Some).map_err(errors::invalid_json_path)
    }

    /// A path that leads to one value at most.
    fn single_path(&self, i: usize) -> Result<Option<Path>> {
        match self.path(i)? {
            Some(path) if path.is_multiple() => Err(errors::invalid_json_path_wildcard()),
            path => Ok(path),
        }
    }

    /// A value inside a document.
    fn value(&self, i: usize) -> Json {
        json_of(&self.values[i], Some(&self.types.arg(i).ty))
    }

    /// 'one' or 'all': true for all.
    fn all(&self, i: usize) -> Result<Option<bool>> {
        let Some(word) = to_text(&self.values[i]) else { return Ok(None) };
        match word.to_ascii_lowercase().as_str() {
            "all" => Ok(Some(true)),
            "one" => Ok(Some(false)),
            _ => Err(errors::json_bad_one_or_all_arg(&self.function)),
        }
    }

    /// The document, or the part of it that the path in argument `at` leads to, if there is one.
    fn part<'j>(&self, document: &'j Json, at: usize) -> Result<Option<&'j Json>> {
        if at >= self.len() {
            return Ok(Some(document));
        }
        Ok(self.single_path(at)?.and_then(|path| path.find(document).map(|(value, _)| value)))
    }
}

pub(super) fn function(func: FuncId, values: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let args = Arguments { values, types, function: func.name().to_ascii_lowercase() };
    Ok(answer(func, &args, cx)?.unwrap_or_default())
}

fn answer(func: FuncId, args: &Arguments<'_>, cx: &mut dyn EvalContext) -> Result<Option<Value>> {
    use FuncId as F;
    // What is made of values.
    match func {
        F::JsonArray => return made(&Json::Array((0..args.len()).map(|i| args.value(i)).collect())).map(Some),
        F::JsonObject => return object(args).map(Some),
        F::JsonOf => return Ok((!args.values[0].is_null()).then(|| print(&args.value(0)))),
        F::JsonTruth => return Ok(truth(&args.values[0], cx).map(|truth| print(&Json::Bool(truth)))),
        F::JsonValid => {
            return Ok(match &args.values[0] {
                Value::Null => None,
                Value::Json(_) => Some(Value::Int(1)),
                Value::Text(text) => match json::parse(text) {
                    Err((reason, _)) if reason == json::TOO_DEEP => return Err(errors::json_document_too_deep()),
                    parsed => Some(Value::bool(parsed.is_ok())),
                },
                _ => Some(Value::Int(0)),
            });
        }
        F::JsonQuote => return quote(args),
        F::JsonUnquote => return unquote(args),
        F::JsonValue => return value(args, cx),
        F::JsonSchemaValid | F::JsonSchemaValidationReport => return schema(func, args, cx),
        F::JsonMergePatch => return merge_patch(args),
        F::JsonMerge | F::JsonMergePreserve => return merge_preserve(args),
        F::JsonMemberOf => {
            // The array is what is read from a text, the value is not.
            if args.values[1].is_null() {
                return Ok(None);
            }
            let Some(array) = args.document(0)? else { return Ok(None) };
            let value = args.value(1);
            let equal = |element: &Json| json::compare(element, &value).is_eq();
            return Ok(Some(Value::bool(match &array {
                Json::Array(elements) => elements.iter().any(equal),
                scalar => equal(scalar),
            })));
        }
        _ => {}
    }
    let Some(document) = args.document(0)? else { return Ok(None) };
    Ok(match func {
        F::JsonExtract => return extract(&document, args),
        F::JsonSearch => return search(&document, args),
        F::JsonContainsPath => return contains_path(&document, args),
        F::JsonSet => return changed(document, args, Change::Set),
        F::JsonInsert => return changed(document, args, Change::Insert),
        F::JsonReplace => return changed(document, args, Change::Replace),
        F::JsonArrayAppend => return changed(document, args, Change::Append),
        F::JsonArrayInsert => return changed(document, args, Change::InsertCell),
        F::JsonRemove => return removed(document, args),
        F::JsonContains => {
            let Some(candidate) = args.document(1)? else { return Ok(None) };
            args.part(&document, 2)?.map(|part| Value::bool(json::contains(part, &candidate)))
        }
        F::JsonOverlaps => args.document(1)?.map(|other| Value::bool(json::overlaps(&document, &other))),
        F::JsonLength => args.part(&document, 1)?.map(|part| match part {
            Json::Array(elements) => Value::Int(elements.len() as i64),
            Json::Object(members) => Value::Int(members.len() as i64),
            _ => Value::Int(1),
        }),
        F::JsonKeys => match args.part(&document, 1)? {
            Some(Json::Object(members)) => Some(print(&Json::Array(members.iter().map(|(key, _)| Json::String(key.to_owned())).collect()))),
            _ => None,
        },
        F::JsonDepth => Some(Value::Int(json::depth(&document) as i64)),
        F::JsonPretty => Some(Value::from(json::pretty(&document))),
        F::JsonStorageSize => Some(Value::Int(highkey_binlog::json_len(&document) as i64)),
        // Documents are written as a whole: none has room left.
        F::JsonStorageFree => Some(Value::Int(0)),
        F::JsonType => Some(Value::from(kind(&document))),
        _ => unreachable!("{} is no JSON function", func.name()),
    })
}

/// JSON_SCHEMA_VALID(schema, document), and the report that tells what is wrong.
fn schema(func: FuncId, args: &Arguments<'_>, cx: &mut dyn EvalContext) -> Result<Option<Value>> {
    let Some(schema) = args.document(0)? else { return Ok(None) };
    if !matches!(schema, Json::Object(_)) {
        return Err(errors::invalid_json_type(1, &args.function, "object"));
    }
    let Some(document) = args.document(1)? else { return Ok(None) };
    let mut turn = Turn::begin();
    let failure = json_schema::check(&schema, &document, &mut || turn.pass(cx))?;
    if func == FuncId::JsonSchemaValid {
        return Ok(Some(Value::bool(failure.is_none())));
    }
    let mut report = vec![("valid".to_owned(), Json::Bool(failure.is_none()))];
    if let Some(failure) = failure {
        let json_schema::Failure { keyword, schema, document } = failure;
        let reason = format!("The JSON document location '{document}' failed requirement '{keyword}' at JSON Schema location '{schema}'");
        let told = [("reason", reason), ("schema-location", schema), ("document-location", document), ("schema-failed-keyword", keyword.to_owned())];
        report.extend(told.map(|(name, text)| (name.to_owned(), Json::String(text))));
    }
    Ok(Some(print(&Json::Object(report.into_iter().collect()))))
}

/// What JSON_VALUE does where there is no value, as its arguments say it.
pub(crate) const JSON_VALUE_NULL: i64 = 0;
pub(crate) const JSON_VALUE_ERROR: i64 = 1;
pub(crate) const JSON_VALUE_DEFAULT: i64 = 2;

/// JSON_VALUE: errors of the document and of the path are errors whatever is to be done otherwise.
fn value(args: &Arguments<'_>, cx: &mut dyn EvalContext) -> Result<Option<Value>> {
    let Some(document) = args.document(0)? else { return Ok(None) };
    let Some(path) = args.path(1)? else { return Ok(None) };
    let otherwise = |at: usize, error: MySqlError| match args.values[at] {
        Value::Int(JSON_VALUE_ERROR) => Err(error),
        Value::Int(JSON_VALUE_DEFAULT) => Ok(Some(args.values[at + 1].clone())),
        _ => Ok(None),
    };
    let to_json = args.types.result.ty.kind == TypeKind::Json;
    match path.select(&document).as_slice() {
        [] => otherwise(2, errors::missing_json_value(&args.function)),
        [Json::Null] if !to_json => Ok(None),
        [found] => match returned(found, args, cx) {
            Ok(value) => Ok(Some(value)),
            Err(error) => otherwise(4, error),
        },
        _ => otherwise(4, errors::multiple_json_values(&args.function)),
    }
}

/// A value of a document as the type that JSON_VALUE returns. A conversion that fails warns, unless it is to be an error.
fn returned(json: &Json, args: &Arguments<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let ty = &args.types.result.ty;
    if ty.kind == TypeKind::Json {
        return Ok(print(json));
    }
    if ty.is_text() {
        let text = match json {
            Json::String(text) => text.clone(),
            Json::Array(_) | Json::Object(_) => return Err(errors::invalid_json_value_for_cast("CHAR", &args.function, 1)),
            number => json::to_text(number),
        };
        return match () {
            () if text.chars().count() > args.types.result.char_length() as usize => Err(errors::data_too_long(&args.function, 1)),
            () if ty.charset().first_invalid(&text).is_some() => Err(errors::invalid_json_value_for_cast("CHAR", &args.function, 1)),
            () => Ok(Value::from(text)),
        };
    }
    let mut listening = Listening { cx: &mut *cx, first: None };
    let value = cast_typed(print(json), Some(&ColumnType::new(TypeKind::Json)), ty, &mut listening)?;
    let Some(warning) = listening.first else { return Ok(value) };
    let message = warning.message.replace(" from column json ", &format!(" from column {} ", args.function));
    let error = MySqlError::with_message(warning.code, message);
    if !matches!(args.values[4], Value::Int(JSON_VALUE_ERROR)) {
        cx.warn(error.clone().into_warning(Level::Warning));
    }
    Err(error)
}

/// The surroundings of a conversion whose warnings are errors.
struct Listening<'a> {
    cx: &'a mut dyn EvalContext,
    first: Option<Warning>,
}

impl EvalContext for Listening<'_> {
    fn sql_mode(&self) -> SqlMode {
        self.cx.sql_mode()
    }

    fn time_zone(&self) -> &TimeZone {
        self.cx.time_zone()
    }

    fn now_micros(&self) -> i64 {
        self.cx.now_micros()
    }

    fn warn(&mut self, warning: Warning) {
        self.first.get_or_insert(warning);
    }

    fn random_state(&mut self, site: usize) -> &mut Option<(u32, u32)> {
        self.cx.random_state(site)
    }
}

fn object(args: &Arguments<'_>) -> Result<Value> {
    let mut members = Vec::new();
    for i in (0..args.len()).step_by(2) {
        let Some(key) = to_text(&args.values[i]) else { return Err(errors::json_document_null_key()) };
        members.push((key.into_owned(), args.value(i + 1)));
    }
    made(&Json::Object(members.into_iter().collect()))
}

/// Only text is quoted and unquoted.
fn quote(args: &Arguments<'_>) -> Result<Option<Value>> {
    let text = match &args.values[0] {
        Value::Null => return Ok(None),
        Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) => text,
        _ => return Err(errors::incorrect_type(1, &args.function)),
    };
    let mut quoted = String::new();
    json::push_quoted(text, &mut quoted);
    Ok(Some(Value::from(quoted)))
}

fn unquote(args: &Arguments<'_>) -> Result<Option<Value>> {
    let text = match &args.values[0] {
        Value::Null => return Ok(None),
        Value::Json(text) | Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) => text,
        Value::Bytes(_) => return Err(errors::invalid_json_charset("binary")),
        _ => return Err(errors::incorrect_type(1, &args.function)),
    };
    if text.len() < 2 || !text.starts_with('"') || !text.ends_with('"') {
        return Ok(Some(Value::Text(text.clone())));
    }
    match json::parse(text) {
        Ok(Json::String(inner)) => Ok(Some(Value::from(inner))),
        Ok(_) => Ok(Some(Value::Text(text.clone()))),
        Err(reason) => Err(invalid_json(reason, 1, &args.function)),
    }
}

fn extract(document: &Json, args: &Arguments<'_>) -> Result<Option<Value>> {
    let mut found = Vec::new();
    let mut several = args.len() > 2;
    for i in 1..args.len() {
        let Some(path) = args.path(i)? else { return Ok(None) };
        several |= path.is_multiple();
        found.extend(path.select(document));
    }
    Ok(match found.as_slice() {
        [] => None,
        [one] if !several => Some(print(one)),
        all => Some(print(&Json::Array(all.iter().map(|value| (*value).clone()).collect()))),
    })
}

/// The paths are looked at one after the other, as far as the answer needs them.
fn contains_path(document: &Json, args: &Arguments<'_>) -> Result<Option<Value>> {
    let Some(all) = args.all(1)? else { return Ok(None) };
    for i in 2..args.len() {
        let Some(path) = args.path(i)? else { return Ok(None) };
        if path.select(document).is_empty() == all {
            return Ok(Some(Value::bool(!all)));
        }
    }
    Ok(Some(Value::bool(all)))
}

/// JSON_SEARCH(document, 'one' | 'all', pattern [, escape [, path …]]): the ways to the strings that are like the pattern.
fn search(document: &Json, args: &Arguments<'_>) -> Result<Option<Value>> {
    let Some(all) = args.all(1)? else { return Ok(None) };
    let Some(pattern) = to_text(&args.values[2]) else { return Ok(None) };
    let mut escape = Some('\\');
    if let Some(text) = args.values.get(3).and_then(to_text)
        && !text.is_empty()
    {
        let mut chars = text.chars();
        escape = chars.next();
        if chars.next().is_some() {
            return Err(errors::wrong_arguments("ESCAPE"));
        }
    }
    let mut starts = Vec::new();
    for i in 4..args.len() {
        let Some(path) = args.path(i)? else { return Ok(None) };
        starts.push(path);
    }
    if starts.is_empty() {
        starts.push(Path::root());
    }
    let collation = Collation::binary_of(Charset::Utf8mb4);
    let everything = Path::everything();
    let mut found: Vec<String> = Vec::new();
    for start in &starts {
        start.visit(document, &mut |value, way| {
            everything.visit(value, &mut |value, rest| {
                if let Json::String(text) = value
                    && collation.like(text.as_bytes(), pattern.as_bytes(), escape)
                {
                    let way = json::path_text(&[way, rest].concat());
                    if !found.contains(&way) {
                        found.push(way);
                    }
                }
            });
        });
    }
    if !all {
        found.truncate(1);
    }
    Ok(match found.len() {
        0 => None,
        1 => Some(print(&Json::String(found.swap_remove(0)))),
        _ => Some(print(&Json::Array(found.into_iter().map(Json::String).collect()))),
    })
}

/// (document, path, value, path, value …): one change after the other.
fn changed(mut document: Json, args: &Arguments<'_>, change: Change) -> Result<Option<Value>> {
    for i in (1..args.len()).step_by(2) {
        let Some(path) = args.single_path(i)? else { return Ok(None) };
        if change == Change::InsertCell && !path.is_cell() {
            return Err(errors::invalid_json_path_array_cell());
        }
        json::change(&mut document, &path, args.value(i + 1), change);
    }
    made(&document).map(Some)
}

fn removed(mut document: Json, args: &Arguments<'_>) -> Result<Option<Value>> {
    for i in 1..args.len() {
        let Some(path) = args.single_path(i)? else { return Ok(None) };
        if path.is_root() {
            return Err(errors::json_vacuous_path());
        }
        json::remove(&mut document, &path);
    }
    Ok(Some(print(&document)))
}

fn merge_preserve(args: &Arguments<'_>) -> Result<Option<Value>> {
    let mut merged: Option<Json> = None;
    for i in 0..args.len() {
        let Some(next) = args.document(i)? else { return Ok(None) };
        merged = Some(match merged {
            None => next,
            Some(before) => json::merge_preserve(before, next),
        });
    }
    merged.as_ref().map(made).transpose()
}

/// NULL is unknown until a patch that is no object makes everything before it irrelevant.
fn merge_patch(args: &Arguments<'_>) -> Result<Option<Value>> {
    let mut merged = args.document(0)?;
    for i in 1..args.len() {
        merged = match (merged, args.document(i)?) {
            (_, None) | (None, Some(Json::Object(_))) => None,
            (None, Some(patch)) => Some(patch),
            (Some(target), Some(patch)) => Some(json::merge_patch(target, patch)),
        };
    }
    merged.as_ref().map(made).transpose()
}
