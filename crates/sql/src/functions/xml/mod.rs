//! EXTRACTVALUE and UPDATEXML: a fragment of XML ([`document`]), an XPath expression ([`parse`]) and what it comes to ([`evaluate`]).
//!
//! Both are MySQL's dialects: its parser of XML checks little, and its XPath lacks axes, functions and node types that the standard has. Every rule here that
//! looks odd is what MySQL 8.0.12 was seen to do. `$@variable` and the variables of stored programs are refused.

mod document;
mod evaluate;
mod parse;

use std::borrow::Cow;

use highkey_types::{MySqlError, Value};

use self::document::{Document, NodeKind};
use self::evaluate::Evaluation;
use super::FuncId;
use super::call::{Result, Types};
use super::string::{encoded, too_long};
use crate::expr::convert::{to_text, warn};
use crate::expr::{EvalContext, Turn};

/// EXTRACTVALUE(xml, xpath) and UPDATEXML(xml, xpath, replacement).
pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    // An expression that is wrong is an error whatever the other arguments are.
    let Some(path) = characters(args, 1, types) else { return Ok(Value::Null) };
    let path = parse::parse(&path)?;
    let (Some(xml), false) = (characters(args, 0, types), args.iter().any(Value::is_null)) else { return Ok(Value::Null) };
    let document = match Document::parse(&xml) {
        Ok(document) => document,
        Err(wrong) => {
            warn(cx, 1525, format!("Incorrect XML value: '{wrong}'"));
            return Ok(Value::Null);
        }
    };
    let mut evaluation = Evaluation { document: &document, collation: types.result.ty.collation, turn: Turn::begin(), cx };
    if func == FuncId::ExtractValue {
        let value = evaluation.value(&path, None)?;
        return Ok(to_text(&value).map_or(Value::Null, |text| string(text.into_owned(), types)));
    }
    if !path.is_nodes() {
        return Ok(Value::Null);
    }
    let found = evaluation.nodes(&path, None)?;
    let replaced = match found[..] {
        [hit] => Some(&document.nodes[hit.node]).filter(|node| node.kind != NodeKind::Text),
        _ => None,
    };
    let Some(node) = replaced else { return Ok(string(xml.to_string(), types)) };
    let new = characters(args, 2, types).unwrap_or_default();
    // The closing tag is taken for as long as it has no blanks.
    let end = (node.end..=xml.len()).find(|end| xml.is_char_boundary(*end)).unwrap_or(xml.len());
    if node.start + new.len() + (xml.len() - end) > evaluation.cx.max_allowed_packet() {
        return Ok(too_long(func, evaluation.cx));
    }
    Ok(string(format!("{}{new}{}", &xml[..node.start], &xml[end..]), types))
}

/// The characters of an argument: bytes where the result is a binary string.
fn characters<'a>(args: &'a [Value], i: usize, types: &Types<'_>) -> Option<Cow<'a, str>> {
    if !types.result.ty.is_binary() || args[i].is_null() {
        return to_text(&args[i]);
    }
    Some(encoded(&args[i], types.arg(i)).iter().map(|byte| char::from(*byte)).collect())
}

/// What [`characters`] read.
fn string(text: String, types: &Types<'_>) -> Value {
    if types.result.ty.is_binary() { Value::Bytes(text.chars().map(|c| c as u8).collect()) } else { Value::from(text) }
}

/// Error 1105 for the expression's rest, of which 32 bytes are shown.
fn wrong(what: &str, rest: &str) -> MySqlError {
    let end = (0..=rest.len().min(32)).rev().find(|end| rest.is_char_boundary(*end)).unwrap_or(0);
    highkey_types::errors::unknown_error(format!("{what}: '{}'", &rest[..end]))
}

#[cfg(test)]
mod tests;
