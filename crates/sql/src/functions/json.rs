//! JSON: making, quoting, and reading by path. Texts are in MySQL's normalised form.

use highkey_types::json::{self, Json};
use highkey_types::{MySqlError, Str, Value};

use super::FuncId;
use super::call::{Result, Types};
use crate::expr::convert::to_text;
use crate::expr::{EvalContext, invalid_json};

/// The JSON value that an SQL value becomes: numbers as they are, everything else as a string.
pub(crate) fn json_of(value: &Value) -> Json {
    let string = |text: String| Json::String(text);
    match value {
        Value::Null => Json::Null,
        Value::Json(text) => of_json(text),
        Value::Int(v) => Json::Int(*v),
        Value::UInt(v) => i64::try_from(*v).map_or(Json::UInt(*v), Json::Int),
        Value::Decimal(v) => Json::Decimal(*v),
        Value::Double(v) => Json::Double(*v),
        Value::Float(_) => Json::Double(to_text(value).and_then(|text| text.parse().ok()).unwrap_or_default()),
        // Temporal values show all six digits.
        Value::DateTime(moment) => string(moment.format(6)),
        Value::Time(time) => string(time.format(6)),
        Value::Bytes(bytes) => string(format!("base64:type253:{}", super::encode::hex(bytes))),
        other => string(to_text(other).unwrap_or_default().into_owned()),
    }
}

/// JSON of the server's is well-formed; anything else counts as a string.
fn of_json(text: &str) -> Json {
    json::parse_normal(text).unwrap_or_else(|_| Json::String(text.to_owned()))
}

fn parse(value: &Value, function: &str) -> Result<Json> {
    match value {
        Value::Json(text) => Ok(of_json(text)),
        _ => json::parse(&to_text(value).unwrap_or_default()).map_err(|reason| invalid_json(reason, function)),
    }
}

fn print(json: &Json) -> Value {
    Value::Json(Str::from(json::to_text(json)))
}

/// A step of a path.
enum Step {
    Key(String),
    Index(usize),
    AnyKey,
    AnyIndex,
    /// `**`
    Descend,
}

fn path(text: &str) -> Result<Vec<Step>> {
    let bad = |at: usize| MySqlError::with_message(3143, format!("Invalid JSON path expression. The error is around character position {at}."));
    let mut steps = Vec::new();
    let mut rest = text.trim().strip_prefix('$').ok_or_else(|| bad(1))?;
    while !rest.trim_start().is_empty() {
        rest = rest.trim_start();
        let at = text.len() - rest.len() + 1;
        if let Some(after) = rest.strip_prefix("**") {
            steps.push(Step::Descend);
            rest = after;
        } else if let Some(after) = rest.strip_prefix('.') {
            let after = after.trim_start();
            if let Some(after) = after.strip_prefix('*') {
                steps.push(Step::AnyKey);
                rest = after;
            } else if after.starts_with('"') {
                let mut stream = serde_json::Deserializer::from_str(after).into_iter::<String>();
                let key = stream.next().and_then(|k| k.ok()).ok_or_else(|| bad(at))?;
                rest = &after[stream.byte_offset()..];
                steps.push(Step::Key(key));
            } else {
                let end = after.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(after.len());
                if end == 0 {
                    return Err(bad(at));
                }
                steps.push(Step::Key(after[..end].to_string()));
                rest = &after[end..];
            }
        } else if let Some(after) = rest.strip_prefix('[') {
            let end = after.find(']').ok_or_else(|| bad(at))?;
            let inner = after[..end].trim();
            steps.push(if inner == "*" { Step::AnyIndex } else { Step::Index(inner.parse().map_err(|_| bad(at))?) });
            rest = &after[end + 1..];
        } else {
            return Err(bad(at));
        }
    }
    Ok(steps)
}

fn walk<'j>(json: &'j Json, steps: &[Step], found: &mut Vec<&'j Json>) {
    let Some((step, rest)) = steps.split_first() else {
        found.push(json);
        return;
    };
    match (step, json) {
        (Step::Key(key), Json::Object(members)) => {
            if let Some(member) = members.get(key) {
                walk(member, rest, found);
            }
        }
        (Step::Index(n), Json::Array(items)) => {
            if let Some(item) = items.get(*n) {
                walk(item, rest, found);
            }
        }
        // A scalar is an array of itself.
        (Step::Index(0), _) => walk(json, rest, found),
        (Step::AnyKey, Json::Object(members)) => members.iter().for_each(|(_, m)| walk(m, rest, found)),
        (Step::AnyIndex, Json::Array(items)) => items.iter().for_each(|i| walk(i, rest, found)),
        (Step::Descend, _) => {
            walk(json, rest, found);
            match json {
                Json::Object(members) => members.iter().for_each(|(_, m)| walk(m, steps, found)),
                Json::Array(items) => items.iter().for_each(|i| walk(i, steps, found)),
                _ => {}
            }
        }
        _ => {}
    }
}

/// `candidate` is contained in `target` by JSON_CONTAINS' rules.
fn contains(target: &Json, candidate: &Json) -> bool {
    match (target, candidate) {
        (Json::Object(t), Json::Object(c)) => c.iter().all(|(k, v)| t.get(k).is_some_and(|tv| contains(tv, v))),
        (Json::Array(t), Json::Array(c)) => c.iter().all(|v| t.iter().any(|tv| contains(tv, v))),
        (Json::Array(t), c) => t.iter().any(|tv| contains(tv, c)),
        (t, c) => json::compare(t, c).is_eq(),
    }
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

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, _cx: &mut dyn EvalContext) -> Result<Value> {
    let name = func.name().to_lowercase();
    Ok(match func {
        FuncId::JsonValid => match &args[0] {
            Value::Json(_) => Value::Int(1),
            Value::Text(text) => Value::bool(json::parse(text).is_ok()),
            _ => Value::Int(0),
        },
        FuncId::JsonQuote => {
            let mut quoted = String::new();
            json::push_quoted(&to_text(&args[0]).unwrap_or_default(), &mut quoted);
            if types.result.ty.kind == highkey_types::TypeKind::Json { Value::Json(Str::from(quoted)) } else { Value::from(quoted) }
        }
        FuncId::JsonUnquote => {
            let text = to_text(&args[0]).unwrap_or_default();
            match (&args[0], text.starts_with('"') && text.ends_with('"') && text.len() > 1) {
                (_, true) => match json::parse(&text) {
                    Ok(Json::String(inner)) => Value::from(inner),
                    Ok(_) => Value::from(text.into_owned()),
                    Err(reason) => return Err(invalid_json(reason, &name)),
                },
                _ => Value::from(text.into_owned()),
            }
        }
        FuncId::JsonExtract => {
            let json = parse(&args[0], &name)?;
            let mut found = Vec::new();
            let mut several = args.len() > 2;
            for arg in &args[1..] {
                let steps = path(&to_text(arg).unwrap_or_default())?;
                several |= steps.iter().any(|s| matches!(s, Step::AnyKey | Step::AnyIndex | Step::Descend));
                walk(&json, &steps, &mut found);
            }
            match (found.as_slice(), several) {
                ([], _) => Value::Null,
                ([one], false) => print(one),
                (all, _) => print(&Json::Array(all.iter().map(|j| (*j).clone()).collect())),
            }
        }
        FuncId::JsonArray => print(&Json::Array(args.iter().map(json_of).collect())),
        FuncId::JsonObject => {
            if args.len() % 2 == 1 {
                return Err(MySqlError::with_message(1582, "Incorrect parameter count in the call to native function 'json_object'"));
            }
            let mut members = Vec::new();
            for pair in args.chunks(2) {
                let Some(key) = to_text(&pair[0]) else {
                    return Err(MySqlError::with_message(3158, "JSON documents may not contain NULL member names."));
                };
                members.push((key.into_owned(), json_of(&pair[1])));
            }
            print(&Json::Object(members.into_iter().collect()))
        }
        FuncId::JsonLength | FuncId::JsonKeys => {
            let json = parse(&args[0], &name)?;
            let mut found = Vec::new();
            match args.get(1) {
                Some(at) => walk(&json, &path(&to_text(at).unwrap_or_default())?, &mut found),
                None => found.push(&json),
            }
            match (found.first(), func) {
                (None, _) => Value::Null,
                (Some(Json::Array(items)), FuncId::JsonLength) => Value::Int(items.len() as i64),
                (Some(Json::Object(members)), FuncId::JsonLength) => Value::Int(members.len() as i64),
                (Some(_), FuncId::JsonLength) => Value::Int(1),
                (Some(Json::Object(members)), _) => print(&Json::Array(members.iter().map(|(key, _)| Json::String(key.to_owned())).collect())),
                _ => Value::Null,
            }
        }
        FuncId::JsonType => Value::from(kind(&parse(&args[0], &name)?)),
        _ => {
            let (target, candidate) = (parse(&args[0], &name)?, parse(&args[1], &name)?);
            match args.get(2) {
                None => Value::bool(contains(&target, &candidate)),
                Some(at) => {
                    let mut found = Vec::new();
                    walk(&target, &path(&to_text(at).unwrap_or_default())?, &mut found);
                    found.first().map_or(Value::Null, |part| Value::bool(contains(part, &candidate)))
                }
            }
        }
    })
}
