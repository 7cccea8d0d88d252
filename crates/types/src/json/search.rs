//! What functions ask of documents.

use super::{Json, compare, push_quoted};

/// JSON_CONTAINS: `candidate` is contained in `target`. An array is if each element is in some element, an object if each member is in the
/// one of its name, anything else if it is equal to the target or contained in an element of it.
pub fn contains(target: &Json, candidate: &Json) -> bool {
    match (target, candidate) {
        (Json::Object(t), Json::Object(c)) => c.iter().all(|(key, value)| t.get(key).is_some_and(|target| contains(target, value))),
        (Json::Array(t), Json::Array(c)) => c.iter().all(|value| t.iter().any(|target| contains(target, value))),
        (Json::Array(t), c) => t.iter().any(|target| contains(target, c)),
        (t, c) => compare(t, c).is_eq(),
    }
}

/// JSON_OVERLAPS: two arrays have an element in common, two objects a member; what is no array is compared as the only element of one.
pub fn overlaps(left: &Json, right: &Json) -> bool {
    let equal = |a: &Json, b: &Json| compare(a, b).is_eq();
    match (left, right) {
        (Json::Object(l), Json::Object(r)) => l.iter().any(|(key, value)| r.get(key).is_some_and(|other| equal(value, other))),
        (Json::Array(l), Json::Array(r)) => l.iter().any(|value| r.iter().any(|other| equal(value, other))),
        (Json::Array(values), other) | (other, Json::Array(values)) => values.iter().any(|value| equal(value, other)),
        _ => equal(left, right),
    }
}

/// JSON_DEPTH: 1 for a scalar and an empty array or object.
pub fn depth(value: &Json) -> usize {
    1 + match value {
        Json::Array(values) => values.iter().map(depth).max().unwrap_or(0),
        Json::Object(members) => members.iter().map(|(_, member)| depth(member)).max().unwrap_or(0),
        _ => 0,
    }
}

/// JSON_PRETTY: an element or a member a line.
pub fn pretty(value: &Json) -> String {
    let mut out = String::new();
    push_pretty(value, 0, &mut out);
    out
}

fn push_pretty(value: &Json, depth: usize, out: &mut String) {
    let line = |out: &mut String, first: bool| {
        out.push_str(if first { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
    };
    let end = |out: &mut String, bracket: char| {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
        out.push(bracket);
    };
    match value {
        Json::Array(values) if !values.is_empty() => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                line(out, i == 0);
                push_pretty(value, depth + 1, out);
            }
            end(out, ']');
        }
        Json::Object(members) if !members.is_empty() => {
            out.push('{');
            for (i, (key, value)) in members.iter().enumerate() {
                line(out, i == 0);
                push_quoted(key, out);
                out.push_str(": ");
                push_pretty(value, depth + 1, out);
            }
            end(out, '}');
        }
        scalar => super::push(scalar, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::parse;

    #[test]
    fn containment_and_overlap() {
        let both = |a: &str, b: &str| {
            let (a, b) = (parse(a).unwrap(), parse(b).unwrap());
            (contains(&a, &b), overlaps(&a, &b))
        };
        for (a, b, expected) in [
            ("[1, [2, 3]]", "[3]", (true, false)),
            ("[1, [2, 3]]", "3", (true, false)),
            ("[1, 2]", "2.0", (true, true)),
            ("1", "[1]", (false, true)),
            ("[]", "[]", (true, false)),
            (r#"{"a": {"b": 1}}"#, r#"{"a": {}}"#, (true, false)),
            (r#"{"a": 1, "b": 2}"#, r#"{"a": 1, "c": 2}"#, (false, true)),
            (r#"[{"a": 1}]"#, r#"{"a": 1}"#, (true, true)),
            ("true", "1", (false, false)),
        ] {
            assert_eq!(both(a, b), expected, "{a} and {b}");
        }
    }

    #[test]
    fn depth_and_pretty() {
        for (text, levels) in [("1", 1), ("[]", 1), ("[[], {}]", 2), (r#"[10, {"a": [20]}]"#, 4)] {
            assert_eq!(depth(&parse(text).unwrap()), levels, "{text}");
        }
        assert_eq!(pretty(&parse(r#"{"a": [], "b": [1, {"x": null}]}"#).unwrap()), "{\n  \"a\": [],\n  \"b\": [\n    1,\n    {\n      \"x\": null\n    }\n  ]\n}");
    }
}
