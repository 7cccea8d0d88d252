//! JSON Schema, draft 4: whether a document is as a schema demands it, and where it is not.

use std::collections::HashMap;

use highkey_types::json::{Json, MAX_DEPTH, Members, compare};
use highkey_types::{Collation, MySqlError, errors};

use super::regexp::compile;

/// The first demand that a document does not meet.
pub(super) struct Failure {
    pub keyword: &'static str,
    /// Where in the schema, and where in the document, as JSON pointers behind `#`.
    pub schema: String,
    pub document: String,
}

enum Stop {
    Failed(Failure),
    Error(MySqlError),
}

type Checked = Result<(), Stop>;

/// What is compared, and where it is.
#[derive(Clone, Copy)]
struct Place<'a> {
    schema: &'a str,
    document: &'a str,
    /// How many schemas it is inside of.
    depth: usize,
    /// It is asked what fails, not only whether something does.
    told: bool,
}

impl Place<'_> {
    fn failed(&self, keyword: &'static str) -> Checked {
        Err(Stop::Failed(Failure { keyword, schema: self.schema.to_owned(), document: self.document.to_owned() }))
    }
}

/// `None`: the document is valid. `pace` is called now and then, and its error ends the check. Error 1235 for a reference to another text, 3157 for schemas that
/// are too many levels deep, as one is that refers to itself alone.
pub(super) fn check(schema: &Json, document: &Json, pace: &mut dyn FnMut() -> Result<(), MySqlError>) -> Result<Option<Failure>, MySqlError> {
    let mut validator = Validator { root: schema, known: HashMap::new(), steps: 0, pace };
    match validator.check(schema, document, Place { schema: "#", document: "#", depth: 0, told: true }) {
        Ok(()) => Ok(None),
        Err(Stop::Failed(failure)) => Ok(Some(failure)),
        Err(Stop::Error(error)) => Err(error),
    }
}

struct Validator<'s> {
    root: &'s Json,
    /// By what is referred to and the part of the document: whether that is valid. References that refer to further ones twice each would else take twice
    /// the time at each level.
    known: HashMap<(*const Json, *const Json), bool>,
    steps: u64,
    pace: &'s mut dyn FnMut() -> Result<(), MySqlError>,
}

impl Validator<'_> {
    fn check(&mut self, schema: &Json, document: &Json, place: Place<'_>) -> Checked {
        if place.depth > MAX_DEPTH {
            return Err(Stop::Error(errors::json_document_too_deep()));
        }
        self.steps += 1;
        if self.steps.is_multiple_of(64) {
            (self.pace)().map_err(Stop::Error)?;
        }
        let Json::Object(schema) = schema else { return Ok(()) };
        if let Some(Json::String(reference)) = schema.get("$ref") {
            let Some(path) = reference.strip_prefix('#') else {
                return Err(Stop::Error(errors::not_supported_yet("references to external JSON schemas")));
            };
            let Some(target) = find(self.root, path) else { return Ok(()) };
            let pair = (std::ptr::from_ref(target), std::ptr::from_ref(document));
            match self.known.get(&pair) {
                Some(true) => return Ok(()),
                Some(false) if !place.told => return place.failed("$ref"),
                _ => {}
            }
            let checked = self.check(target, document, Place { schema: reference, depth: place.depth + 1, ..place });
            if !matches!(checked, Err(Stop::Error(_))) {
                self.known.insert(pair, checked.is_ok());
            }
            return checked;
        }
        if schema.get("type").is_some_and(|names| !has_type(document, names)) {
            return place.failed("type");
        }
        if let Some(Json::Array(values)) = schema.get("enum")
            && !values.iter().any(|value| compare(value, document).is_eq())
        {
            return place.failed("enum");
        }
        self.combined(schema, document, place)?;
        match document {
            Json::Object(members) => self.object(schema, members, document, place),
            Json::Array(elements) => self.array(schema, elements, place),
            Json::String(text) => string(schema, text, place),
            Json::Int(_) | Json::UInt(_) | Json::Double(_) | Json::Decimal(_) => number(schema, document, place),
            Json::Null | Json::Bool(_) => Ok(()),
        }
    }

    /// The schema of `name` inside the one at `place`.
    fn inner(&mut self, schema: &Json, name: &str, document: &Json, place: Place<'_>) -> Checked {
        let at = format!("{}/{name}", place.schema);
        self.check(schema, document, Place { schema: &at, depth: place.depth + 1, ..place })
    }

    /// allOf, anyOf, oneOf and not.
    fn combined(&mut self, schema: &Members, document: &Json, place: Place<'_>) -> Checked {
        let within = Place { told: false, ..place };
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let Some(Json::Array(schemas)) = schema.get(keyword) else { continue };
            let mut valid = 0;
            for (i, schema) in schemas.iter().enumerate() {
                match self.inner(schema, &format!("{keyword}/{i}"), document, within) {
                    Ok(()) => valid += 1,
                    Err(Stop::Failed(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            let holds = match keyword {
                "allOf" => valid == schemas.len(),
                "anyOf" => valid > 0,
                _ => valid == 1,
            };
            if !holds {
                return place.failed(keyword);
            }
        }
        if let Some(schema) = schema.get("not") {
            match self.inner(schema, "not", document, within) {
                Ok(()) => return place.failed("not"),
                Err(Stop::Failed(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn object(&mut self, schema: &Members, members: &Members, document: &Json, place: Place<'_>) -> Checked {
        if let Some(Json::Array(names)) = schema.get("required")
            && !has_all(members, names)
        {
            return place.failed("required");
        }
        bounded(schema, "minProperties", "maxProperties", members.len(), place)?;
        if let Some(Json::Object(dependencies)) = schema.get("dependencies") {
            for (name, demanded) in dependencies.iter().filter(|(name, _)| members.get(name).is_some()) {
                match demanded {
                    Json::Array(names) if !has_all(members, names) => return place.failed("dependencies"),
                    Json::Object(_) => self.inner(demanded, &format!("dependencies/{}", escaped(name)), document, place)?,
                    _ => {}
                }
            }
        }
        for (name, value) in members.iter() {
            let at = format!("{}/{}", place.document, escaped(name));
            let member = Place { document: &at, ..place };
            let mut described = false;
            if let Some(Json::Object(properties)) = schema.get("properties")
                && let Some(demanded) = properties.get(name)
            {
                described = true;
                self.inner(demanded, &format!("properties/{}", escaped(name)), value, member)?;
            }
            if let Some(Json::Object(patterns)) = schema.get("patternProperties") {
                for (pattern, demanded) in patterns.iter().filter(|(pattern, _)| matches(pattern, name)) {
                    described = true;
                    self.inner(demanded, &format!("patternProperties/{}", escaped(pattern)), value, member)?;
                }
            }
            match schema.get("additionalProperties") {
                Some(Json::Bool(false)) if !described => return place.failed("additionalProperties"),
                Some(demanded) if !described => self.inner(demanded, "additionalProperties", value, member)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn array(&mut self, schema: &Members, elements: &[Json], place: Place<'_>) -> Checked {
        bounded(schema, "minItems", "maxItems", elements.len(), place)?;
        if schema.get("uniqueItems") == Some(&Json::Bool(true)) && has_repeated(elements) {
            return place.failed("uniqueItems");
        }
        for (i, element) in elements.iter().enumerate() {
            let at = format!("{}/{i}", place.document);
            let item = Place { document: &at, ..place };
            match schema.get("items") {
                Some(Json::Array(schemas)) if i < schemas.len() => self.inner(&schemas[i], &format!("items/{i}"), element, item)?,
                Some(Json::Array(_)) => match schema.get("additionalItems") {
                    Some(Json::Bool(false)) => return place.failed("additionalItems"),
                    Some(demanded) => self.inner(demanded, "additionalItems", element, item)?,
                    None => {}
                },
                Some(demanded) => self.inner(demanded, "items", element, item)?,
                None => {}
            }
        }
        Ok(())
    }
}

fn string(schema: &Members, text: &str, place: Place<'_>) -> Checked {
    bounded(schema, "minLength", "maxLength", text.chars().count(), place)?;
    match schema.get("pattern") {
        Some(Json::String(pattern)) if !matches(pattern, text) => place.failed("pattern"),
        _ => Ok(()),
    }
}

fn number(schema: &Members, number: &Json, place: Place<'_>) -> Checked {
    let bound = |keyword: &str| schema.get(keyword).filter(|bound| has_type(bound, &Json::String("number".to_owned())));
    let exclusive = |keyword: &str| schema.get(keyword) == Some(&Json::Bool(true));
    if let Some(least) = bound("minimum") {
        let order = compare(number, least);
        if order.is_lt() || (order.is_eq() && exclusive("exclusiveMinimum")) {
            return place.failed("minimum");
        }
    }
    if let Some(most) = bound("maximum") {
        let order = compare(number, most);
        if order.is_gt() || (order.is_eq() && exclusive("exclusiveMaximum")) {
            return place.failed("maximum");
        }
    }
    match schema.get("multipleOf") {
        Some(step) if !is_multiple(number, step) => place.failed("multipleOf"),
        _ => Ok(()),
    }
}

fn is_multiple(number: &Json, step: &Json) -> bool {
    match (number, step) {
        (_, Json::Int(0)) => true,
        (Json::Int(n), Json::Int(step)) => n.checked_rem(*step).unwrap_or(0) == 0,
        _ => match (magnitude(number), magnitude(step)) {
            (Some(n), Some(step)) if step > 0.0 => n - (n / step).floor() * step <= 0.0,
            _ => true,
        },
    }
}

fn magnitude(number: &Json) -> Option<f64> {
    match number {
        Json::Int(n) => Some(n.unsigned_abs() as f64),
        Json::UInt(n) => Some(*n as f64),
        Json::Double(n) => Some(n.abs()),
        Json::Decimal(n) => n.to_string().parse().ok().map(f64::abs),
        _ => None,
    }
}

/// `names`: one name, or an array of them.
fn has_type(document: &Json, names: &Json) -> bool {
    let is = |name: &str| match document {
        Json::Null => name == "null",
        Json::Bool(_) => name == "boolean",
        Json::Int(_) | Json::UInt(_) => name == "integer" || name == "number",
        Json::Double(_) | Json::Decimal(_) => name == "number",
        Json::String(_) => name == "string",
        Json::Array(_) => name == "array",
        Json::Object(_) => name == "object",
    };
    match names {
        Json::String(name) => is(name),
        Json::Array(names) => names.iter().any(|name| matches!(name, Json::String(name) if is(name))),
        _ => true,
    }
}

fn has_all(members: &Members, names: &[Json]) -> bool {
    names.iter().all(|name| !matches!(name, Json::String(name) if members.get(name).is_none()))
}

fn has_repeated(elements: &[Json]) -> bool {
    let mut sorted: Vec<&Json> = elements.iter().collect();
    sorted.sort_by(|a, b| compare(a, b));
    sorted.windows(2).any(|pair| compare(pair[0], pair[1]).is_eq())
}

fn bounded(schema: &Members, least: &'static str, most: &'static str, count: usize, place: Place<'_>) -> Checked {
    let bound = |keyword: &str| match schema.get(keyword) {
        Some(Json::Int(n)) => usize::try_from(*n).ok(),
        _ => None,
    };
    match () {
        () if bound(least).is_some_and(|n| count < n) => place.failed(least),
        () if bound(most).is_some_and(|n| count > n) => place.failed(most),
        () => Ok(()),
    }
}

/// A pattern that is no regular expression demands nothing.
fn matches(pattern: &str, text: &str) -> bool {
    match compile(pattern, "c", Collation::utf8mb4()) {
        Ok(regex) => regex.is_match(text),
        Err(_) => true,
    }
}

/// A name as a part of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// What a JSON pointer leads to.
fn find<'j>(root: &'j Json, pointer: &str) -> Option<&'j Json> {
    pointer.split('/').skip(1).try_fold(root, |value, part| {
        let name = part.replace("~1", "/").replace("~0", "~");
        match value {
            Json::Object(members) => members.get(&name),
            Json::Array(elements) => elements.get(name.parse::<usize>().ok()?),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use highkey_types::json;

    use super::*;

    fn failure(schema: &str, document: &str) -> Option<(&'static str, String, String)> {
        let found = check(&json::parse(schema).unwrap(), &json::parse(document).unwrap(), &mut || Ok(()));
        found.map_err(|e| e.message).unwrap().map(|f| (f.keyword, f.schema, f.document))
    }

    #[test]
    fn every_keyword_holds_and_fails() {
        for (schema, valid, invalid, keyword) in [
            (r#"{"type": "integer"}"#, "1", "1.5", "type"),
            (r#"{"type": ["string", "null"]}"#, "null", "true", "type"),
            (r#"{"enum": [1, "a"]}"#, r#""a""#, "2", "enum"),
            (r#"{"allOf": [{"minimum": 1}, {"maximum": 3}]}"#, "2", "4", "allOf"),
            (r#"{"anyOf": [{"type": "string"}, {"minimum": 5}]}"#, r#""x""#, "4", "anyOf"),
            (r#"{"oneOf": [{"minimum": 1}, {"minimum": 5}]}"#, "2", "6", "oneOf"),
            (r#"{"not": {"type": "null"}}"#, "1", "null", "not"),
            (r#"{"required": ["a", "b"]}"#, r#"{"a": 1, "b": 2}"#, r#"{"a": 1}"#, "required"),
            (r#"{"minProperties": 1}"#, r#"{"a": 1}"#, "{}", "minProperties"),
            (r#"{"maxProperties": 1}"#, r#"{"a": 1}"#, r#"{"a": 1, "b": 1}"#, "maxProperties"),
            (r#"{"dependencies": {"a": ["b"]}}"#, r#"{"b": 1}"#, r#"{"a": 1}"#, "dependencies"),
            (r#"{"patternProperties": {"^a": {}}, "additionalProperties": false}"#, r#"{"ab": 1}"#, r#"{"b": 1}"#, "additionalProperties"),
            (r#"{"minItems": 1}"#, "[1]", "[]", "minItems"),
            (r#"{"maxItems": 1}"#, "[1]", "[1, 2]", "maxItems"),
            (r#"{"uniqueItems": true}"#, "[1, 2]", "[1, 1.0]", "uniqueItems"),
            (r#"{"items": [{}, {}], "additionalItems": false}"#, "[1, 2]", "[1, 2, 3]", "additionalItems"),
            (r#"{"minLength": 2}"#, r#""äö""#, r#""ä""#, "minLength"),
            (r#"{"maxLength": 2}"#, r#""äö""#, r#""äöü""#, "maxLength"),
            (r#"{"pattern": "^a+$"}"#, r#""aa""#, r#""b""#, "pattern"),
            (r#"{"minimum": 1}"#, "1", "0.5", "minimum"),
            (r#"{"minimum": 1, "exclusiveMinimum": true}"#, "2", "1", "minimum"),
            (r#"{"maximum": 1}"#, "1", "1.5", "maximum"),
            (r#"{"maximum": 1, "exclusiveMaximum": true}"#, "0", "1", "maximum"),
            (r#"{"multipleOf": 3}"#, "9", "10", "multipleOf"),
            (r#"{"multipleOf": 0.5}"#, "1.5", "1.25", "multipleOf"),
        ] {
            assert_eq!(failure(schema, valid), None, "{schema} {valid}");
            let found = failure(schema, invalid);
            assert_eq!(found.map(|f| f.0), Some(keyword), "{schema} {invalid}");
        }
    }

    #[test]
    fn places_are_pointers() {
        let schema = r##"{"properties": {"a/b": {"items": {"$ref": "#/definitions/small"}}}, "definitions": {"small": {"maximum": 5}}}"##;
        assert_eq!(failure(schema, r#"{"a/b": [1, 9]}"#), Some(("maximum", "#/definitions/small".to_owned(), "#/a~1b/1".to_owned())));
        assert_eq!(failure(schema, r#"{"a/b": [1, 5]}"#), None);
    }

    #[test]
    fn a_schema_may_not_refer_to_other_texts_nor_to_itself_alone() {
        let refused = |schema: &str| check(&json::parse(schema).unwrap(), &Json::Null, &mut || Ok(())).err().map(|e| e.code);
        assert_eq!(refused(r#"{"$ref": "https://example.com/schema"}"#), Some(1235));
        assert_eq!(refused(r##"{"$ref": "#"}"##), Some(3157));
    }

    /// Forty levels of two references each.
    #[test]
    fn what_is_referred_to_often_is_checked_once() {
        for keyword in ["allOf", "anyOf", "oneOf"] {
            let level = |n: usize| format!(r##""d{n}": {{"{keyword}": [{{"$ref": "#/definitions/d{0}"}}, {{"$ref": "#/definitions/d{0}"}}]}}"##, n + 1);
            let levels: Vec<String> = (0..40).map(level).collect();
            let schema = format!(r##"{{"$ref": "#/definitions/d0", "definitions": {{{}, "d40": {{"minimum": 5}}}}}}"##, levels.join(", "));
            let failed = Some((keyword, "#/definitions/d0".to_owned(), "#".to_owned()));
            // Of oneOf both hold, or neither does.
            let valid = if keyword == "oneOf" { failed.clone() } else { None };
            assert_eq!((failure(&schema, "5"), failure(&schema, "4")), (valid, failed));
            let killed = check(&json::parse(&schema).unwrap(), &Json::Int(5), &mut || Err(errors::query_interrupted()));
            assert_eq!(killed.err().map(|e| e.code), Some(1317));
        }
    }

    #[test]
    fn what_failed_without_a_report_is_told_where_it_is_asked_for() {
        let schema = r##"{"properties": {"a": {"anyOf": [{"$ref": "#/definitions/small"}, {}]}}, "patternProperties": {"a": {"$ref": "#/definitions/small"}},
            "definitions": {"small": {"maximum": 5}}}"##;
        assert_eq!(failure(schema, r#"{"a": 9}"#), Some(("maximum", "#/definitions/small".to_owned(), "#/a".to_owned())));
    }
}
