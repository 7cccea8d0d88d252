//! What functions change in documents.

use super::path::Last;
use super::{Json, Members, Path, Step};

/// What is done with a value at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// JSON_SET: put in the place of what is there, or added.
    Set,
    /// JSON_INSERT: added where nothing is.
    Insert,
    /// JSON_REPLACE: put in the place of what is there.
    Replace,
    /// JSON_ARRAY_APPEND: added to the end of the array that is there; what is no array becomes one.
    Append,
    /// JSON_ARRAY_INSERT: added before the element that the path names.
    InsertCell,
}

/// Makes a change at a path, which must have no wildcards; where the path leads nowhere the document stays as it is.
pub fn change(document: &mut Json, path: &Path, value: Json, change: Change) {
    if change == Change::InsertCell {
        return insert_cell(document, path, value);
    }
    let Some(found) = path.find_mut(document) else {
        if matches!(change, Change::Set | Change::Insert) {
            add(document, path, value);
        }
        return;
    };
    match change {
        Change::Set | Change::Replace => *found = value,
        Change::Append => elements(found).push(value),
        Change::Insert | Change::InsertCell => {}
    }
}

/// The elements of an array; what is no array becomes the only element of one.
fn elements(value: &mut Json) -> &mut Vec<Json> {
    if !matches!(value, Json::Array(_)) {
        *value = Json::Array(vec![std::mem::replace(value, Json::Null)]);
    }
    let Json::Array(values) = value else { unreachable!("it is one now") };
    values
}

/// Adds a member or an element where there is none: an element at the end, or at the start if the index counts from the end.
fn add(document: &mut Json, path: &Path, value: Json) {
    let Some((parent, last)) = path.parent() else { return };
    match (parent.find_mut(document), last) {
        (Some(Json::Object(members)), Last::Key(key)) => members.insert(key.to_owned(), value),
        (Some(found), Last::Cell { from_last, .. }) => {
            let values = elements(found);
            values.insert(if from_last { 0 } else { values.len() }, value);
        }
        _ => {}
    }
}

fn insert_cell(document: &mut Json, path: &Path, value: Json) {
    let Some((parent, Last::Cell { n, from_last })) = path.parent() else { return };
    if let Some(Json::Array(values)) = parent.find_mut(document) {
        let at = if from_last { values.len().saturating_sub(n + 1) } else { n.min(values.len()) };
        values.insert(at, value);
    }
}

/// JSON_REMOVE: takes out what a path without wildcards leads to, but never the whole document.
pub fn remove(document: &mut Json, path: &Path) {
    let Some((_, trail)) = path.find(document) else { return };
    let Some((last, way)) = trail.split_last() else { return };
    // The way is of the document that is about to change.
    let owned = |step: &Step<'_>| match step {
        Step::Key(key) => (Some((*key).to_owned()), 0),
        Step::Cell(at) => (None, *at),
    };
    let (last, way): (_, Vec<_>) = (owned(last), way.iter().map(owned).collect());
    let parent = way.iter().try_fold(document, |value, step| match (step, value) {
        ((Some(key), _), Json::Object(members)) => members.get_mut(key),
        ((None, at), Json::Array(values)) => values.get_mut(*at),
        _ => None,
    });
    match (parent, last) {
        (Some(Json::Object(members)), (Some(key), _)) => {
            members.remove(&key);
        }
        (Some(Json::Array(values)), (None, at)) => {
            values.remove(at);
        }
        _ => {}
    }
}

/// JSON_MERGE_PRESERVE of two documents: objects are united, members of the same name merged; everything else becomes one array.
pub fn merge_preserve(left: Json, right: Json) -> Json {
    match (left, right) {
        (Json::Object(mut members), Json::Object(others)) => {
            for (key, value) in others.0 {
                let merged = match members.remove(&key) {
                    Some(before) => merge_preserve(before, value),
                    None => value,
                };
                members.insert(key, merged);
            }
            Json::Object(members)
        }
        (mut left, mut right) => {
            let mut values = std::mem::take(elements(&mut left));
            values.append(elements(&mut right));
            Json::Array(values)
        }
    }
}

/// JSON_MERGE_PATCH of two documents, by RFC 7396: a null takes a member out.
pub fn merge_patch(target: Json, patch: Json) -> Json {
    let Json::Object(changes) = patch else { return patch };
    let mut members = match target {
        Json::Object(members) => members,
        _ => Members::default(),
    };
    for (key, value) in changes.0 {
        let before = members.remove(&key);
        if value != Json::Null {
            members.insert(key, merge_patch(before.unwrap_or(Json::Null), value));
        }
    }
    Json::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{parse, to_text};

    fn changed(document: &str, path: &str, how: Change) -> String {
        let mut document = parse(document).unwrap();
        change(&mut document, &Path::parse(path).unwrap(), Json::Int(9), how);
        to_text(&document)
    }

    /// All recorded from MySQL 8.0.12.
    #[test]
    fn changes() {
        use Change::*;
        for (document, path, how, result) in [
            ("[1, 2]", "$[5]", Set, "[1, 2, 9]"),
            ("[1, 2]", "$[1]", Set, "[1, 9]"),
            ("[1, 2]", "$[1]", Insert, "[1, 2]"),
            ("[1, 2]", "$[2]", Replace, "[1, 2]"),
            ("1", "$[1]", Set, "[1, 9]"),
            ("1", "$[0]", Set, "9"),
            (r#"{"a": 1}"#, "$[0]", Set, "9"),
            (r#"{"a": 1}"#, "$[1]", Set, r#"[{"a": 1}, 9]"#),
            (r#"{"a": 1}"#, "$.a[1]", Set, r#"{"a": [1, 9]}"#),
            (r#"{"a": 1}"#, "$.b.c", Set, r#"{"a": 1}"#),
            (r#"{"a": 1}"#, "$.a.b", Set, r#"{"a": 1}"#),
            ("[1]", "$.a", Set, "[1]"),
            ("1", "$", Set, "9"),
            ("1", "$", Insert, "1"),
            ("[1, 2, 3]", "$[last-3]", Insert, "[9, 1, 2, 3]"),
            ("1", "$[last-1]", Insert, "[9, 1]"),
            ("[]", "$[last]", Insert, "[9]"),
            ("[[]]", "$[0][0][0]", Set, "[[]]"),
            (r#"["a", "b"]"#, "$[0]", Append, r#"[["a", 9], "b"]"#),
            (r#"{"a": 1}"#, "$", Append, r#"[{"a": 1}, 9]"#),
            (r#"{"a": 1}"#, "$.b", Append, r#"{"a": 1}"#),
            ("[1, 2, 3]", "$[last]", InsertCell, "[1, 2, 9, 3]"),
            ("[1, 2, 3]", "$[last-5]", InsertCell, "[9, 1, 2, 3]"),
            ("[1, 2, 3]", "$[100]", InsertCell, "[1, 2, 3, 9]"),
            ("1", "$[0]", InsertCell, "1"),
        ] {
            assert_eq!(changed(document, path, how), result, "{how:?} {path} of {document}");
        }
    }

    #[test]
    fn removals() {
        for (document, path, result) in [
            (r#"{"a": 1, "b": [1, 2]}"#, "$.b[1]", r#"{"a": 1, "b": [1]}"#),
            (r#"{"a": 1}"#, "$.a[0]", "{}"),
            (r#"{"a": {"b": 1}}"#, "$.a[0].b", r#"{"a": {}}"#),
            (r#"{"a": 1}"#, "$[0]", r#"{"a": 1}"#),
            (r#"{"a": 1}"#, "$.x", r#"{"a": 1}"#),
            ("[1, 2, 3]", "$[last]", "[1, 2]"),
        ] {
            let mut value = parse(document).unwrap();
            remove(&mut value, &Path::parse(path).unwrap());
            assert_eq!(to_text(&value), result, "{path} of {document}");
        }
    }

    #[test]
    fn merges() {
        let merged = |a: &str, b: &str, merge: fn(Json, Json) -> Json| to_text(&merge(parse(a).unwrap(), parse(b).unwrap()));
        for (a, b, preserved, patched) in [
            ("[1, 2]", "[true]", "[1, 2, true]", "[true]"),
            ("1", r#"{"a": null, "b": 1}"#, r#"[1, {"a": null, "b": 1}]"#, r#"{"b": 1}"#),
            (r#"{"a": {"x": 1}}"#, r#"{"a": {"x": null, "y": 2}}"#, r#"{"a": {"x": [1, null], "y": 2}}"#, r#"{"a": {"y": 2}}"#),
            (r#"{"a": [1]}"#, r#"{"a": {"b": 1}}"#, r#"{"a": [1, {"b": 1}]}"#, r#"{"a": {"b": 1}}"#),
        ] {
            assert_eq!(merged(a, b, merge_preserve), preserved);
            assert_eq!(merged(a, b, merge_patch), patched);
        }
    }
}
