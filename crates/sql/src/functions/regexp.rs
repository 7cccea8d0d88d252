//! Regular expressions. Patterns are compiled once and kept by the thread.

use std::cell::RefCell;
use std::num::NonZeroUsize;

use highkey_types::{Collation, MySqlError, Value, errors};
use regex::{Regex, RegexBuilder};

use super::FuncId;
use super::call::{Result, Types};
use super::search::common;
use crate::expr::EvalContext;
use crate::expr::convert::{to_i64, to_text};

/// MySQL's error for what the regex crate says of a pattern: the pattern, a mark under the place, and in the last line why.
fn syntax_error(text: &str) -> MySqlError {
    let why = text.lines().last().unwrap_or_default();
    let is = |known: &str| why.contains(known);
    match () {
        () if is("unclosed group") || is("unopened group") => errors::regexp_mismatched_paren(),
        () if is("unclosed character class") => errors::regexp_missing_close_bracket(),
        () if is("invalid character class range") => errors::regexp_invalid_range(),
        () if is("invalid repetition count range") => errors::regexp_max_lt_min(),
        () if is("escape sequence") => errors::regexp_bad_escape_sequence(),
        () if is("not supported") => errors::regexp_unimplemented(),
        () if is("repetition operator missing expression") => {
            let place = text.lines().nth(2).and_then(|line| line.find('^')).map_or(1, |at| at.saturating_sub(3));
            errors::regexp_rule_syntax(1, place)
        }
        () => errors::regexp_bad_interval(),
    }
}

/// Patterns that a thread keeps.
const CACHED: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");

thread_local! {
    static COMPILED: RefCell<Vec<((String, String), Regex)>> = const { RefCell::new(Vec::new()) };
}

/// `c`, `i`, `m`, `n`, `u` of match_type over what the collation says about case.
pub(super) fn compile(pattern: &str, match_type: &str, collation: &Collation) -> Result<Regex> {
    if pattern.is_empty() {
        return Err(MySqlError::with_message(3685, "Illegal argument to a regular expression."));
    }
    let mut insensitive = !collation.is_binary_order() && !collation.name.ends_with("_cs");
    let (mut multi_line, mut dot_newline) = (false, false);
    for flag in match_type.chars() {
        match flag {
            'c' => insensitive = false,
            'i' => insensitive = true,
            'm' => multi_line = true,
            'n' => dot_newline = true,
            'u' => {}
            _ => return Err(MySqlError::with_message(1210, "Incorrect arguments to regexp_like")),
        }
    }
    let key = (pattern.to_string(), format!("{insensitive}{multi_line}{dot_newline}"));
    COMPILED.with_borrow_mut(|cache| {
        if let Some(position) = cache.iter().position(|(k, _)| *k == key) {
            return Ok(cache[position].1.clone());
        }
        let built = RegexBuilder::new(&translate(pattern)).case_insensitive(insensitive).multi_line(multi_line).dot_matches_new_line(dot_newline).size_limit(16 << 20).build();
        let regex = built.map_err(|e| match e {
            regex::Error::CompiledTooBig(_) => MySqlError::with_message(3699, "Timeout exceeded in regular expression match."),
            regex::Error::Syntax(text) => syntax_error(&text),
            _ => errors::regexp_internal_error(),
        })?;
        if cache.len() >= CACHED.get() {
            cache.remove(0);
        }
        cache.push((key, regex.clone()));
        Ok(regex)
    })
}

/// The old word boundaries `[[:<:]]` and `[[:>:]]` in today's syntax.
fn translate(pattern: &str) -> String {
    pattern.replace("[[:<:]]", "\\b").replace("[[:>:]]", "\\b")
}

pub(super) fn function(func: FuncId, args: &[Value], types: &Types<'_>, cx: &mut dyn EvalContext) -> Result<Value> {
    let collation = common(types);
    let text = to_text(&args[0]).unwrap_or_default();
    let pattern = to_text(&args[1]).unwrap_or_default();
    let match_type = |i: usize| args.get(i).and_then(to_text).unwrap_or_default();
    let mut number = |i: usize, default: i64| match args.get(i) {
        Some(value) => to_i64(value, cx).unwrap_or(default),
        None => default,
    };
    match func {
        FuncId::RegexpLike => {
            let regex = compile(&pattern, &match_type(2), collation)?;
            Ok(Value::bool(regex.is_match(&text)))
        }
        FuncId::RegexpInstr => {
            let (position, occurrence, after) = (number(2, 1), number(3, 1), number(4, 0));
            let regex = compile(&pattern, &match_type(5), collation)?;
            let start = offset(&text, position)?;
            let found = regex.find_iter(&text[start..]).nth(occurrence.max(1) as usize - 1);
            Ok(Value::Int(found.map_or(0, |m| {
                let at = start + if after == 1 { m.end() } else { m.start() };
                text[..at].chars().count() as i64 + 1
            })))
        }
        FuncId::RegexpSubstr => {
            let (position, occurrence) = (number(2, 1), number(3, 1));
            let regex = compile(&pattern, &match_type(4), collation)?;
            let start = offset(&text, position)?;
            let found = regex.find_iter(&text[start..]).nth(occurrence.max(1) as usize - 1);
            Ok(found.map_or(Value::Null, |m| Value::from(m.as_str())))
        }
        _ => {
            let replacement = to_text(&args[2]).unwrap_or_default();
            let (position, occurrence) = (number(3, 1), number(4, 0));
            let regex = compile(&pattern, &match_type(5), collation)?;
            let start = offset(&text, position)?;
            let mut out = String::from(&text[..start]);
            let rest = &text[start..];
            let mut at = 0;
            for (i, found) in regex.captures_iter(rest).enumerate() {
                if occurrence > 0 && i as i64 + 1 != occurrence {
                    continue;
                }
                let Some(whole) = found.get(0) else { continue };
                out.push_str(&rest[at..whole.start()]);
                expand(&replacement, &found, &mut out);
                at = whole.end();
            }
            out.push_str(&rest[at..]);
            Ok(Value::from(out))
        }
    }
}

/// `$n` and backslashes of a replacement, as ICU reads them.
fn expand(replacement: &str, captures: &regex::Captures<'_>, out: &mut String) {
    let mut chars = replacement.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next()),
            '$' => {
                let mut group = 0;
                let mut any = false;
                while let Some(digit) = chars.peek().and_then(|c| c.to_digit(10)) {
                    group = group * 10 + digit as usize;
                    any = true;
                    chars.next();
                }
                if any {
                    out.push_str(captures.get(group).map_or("", |m| m.as_str()));
                } else {
                    out.push('$');
                }
            }
            _ => out.push(c),
        }
    }
}

/// The byte of the 1-based character `position`.
fn offset(text: &str, position: i64) -> Result<usize> {
    let bad = || MySqlError::with_message(3686, "Index out of bounds in regular expression search.");
    let position = usize::try_from(position).ok().filter(|p| *p >= 1).ok_or_else(bad)?;
    match text.char_indices().nth(position - 1) {
        Some((at, _)) => Ok(at),
        None if position == text.chars().count() + 1 => Ok(text.len()),
        None => Err(bad()),
    }
}
