//! Optimizer hints: `/*+ NAME(arg arg, …) NAME … */`.

use std::ops::Range;

use super::ast::{OptimizerHint, SetVarHint, SetVarValue};

/// What the hint comments of a statement say.
#[derive(Debug, Default)]
pub(super) struct HintComment {
    /// All but SET_VAR.
    pub hints: Vec<OptimizerHint>,
    /// SET_VAR as far as it can be read: nothing behind one that cannot is read, as in MySQL.
    pub set_vars: Vec<Result<SetVarHint, MalformedHint>>,
}

/// Where a hint cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MalformedHint {
    /// Byte of the text.
    pub at: usize,
    /// The beginning of the warning.
    pub what: &'static str,
}

const SYNTAX: &str = "Optimizer hint syntax error";
const SIZE: &str = "A size parameter was incorrectly specified, either number or on the form 10M";

/// The hints of the hint comment whose text is `comment` of `sql`. What is not a word stands alone as an argument, so that binding can judge it.
pub(super) fn parse_hints(sql: &str, comment: Range<usize>) -> HintComment {
    let end = comment.end;
    let mut parsed = HintComment::default();
    let mut inside = false;
    let mut rest = &sql[comment];
    loop {
        rest = rest.trim_start();
        let Some(first) = rest.chars().next() else { return parsed };
        if first == '(' || first == ')' || first == ',' {
            inside = first != ')' && (inside || first == '(');
            rest = &rest[1..];
            continue;
        }
        let (word, length) = if matches!(first, '\'' | '"' | '`') {
            match rest[1..].find(first) {
                Some(end) => (rest[1..=end].to_string(), end + 2),
                None => (rest[1..].to_string(), rest.len()),
            }
        } else if first == '=' {
            ("=".to_string(), 1)
        } else {
            let end = rest.find(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ',' | '=')).unwrap_or(rest.len());
            (rest[..end].to_string(), end)
        };
        rest = &rest[length..];
        if !inside && word.eq_ignore_ascii_case("SET_VAR") {
            match set_var(&mut rest) {
                Ok(hint) => parsed.set_vars.push(Ok(hint)),
                Err(what) => {
                    parsed.set_vars.push(Err(MalformedHint { at: end - rest.len(), what }));
                    return parsed;
                }
            }
            continue;
        }
        match parsed.hints.last_mut() {
            Some(hint) if inside => hint.args.push(word),
            _ => parsed.hints.push(OptimizerHint { name: word.to_ascii_uppercase(), args: Vec::new() }),
        }
    }
}

/// `(name = value)`. If it is something else, `rest` begins with what should not be there.
fn set_var(rest: &mut &str) -> Result<SetVarHint, &'static str> {
    symbol(rest, '(')?;
    *rest = rest.trim_start();
    let name = if rest.starts_with('`') { quoted(rest, '`')? } else { word(rest)?.to_string() };
    symbol(rest, '=')?;
    *rest = rest.trim_start();
    let value = match rest.chars().next() {
        Some(quote @ ('\'' | '"' | '`')) => SetVarValue::Text(quoted(rest, quote)?),
        _ => plain_value(rest)?,
    };
    symbol(rest, ')')?;
    Ok(SetVarHint { name, value })
}

fn symbol(rest: &mut &str, symbol: char) -> Result<(), &'static str> {
    *rest = rest.trim_start();
    *rest = rest.strip_prefix(symbol).ok_or(SYNTAX)?;
    Ok(())
}

/// Letters and digits.
fn word<'a>(rest: &mut &'a str) -> Result<&'a str, &'static str> {
    let end = rest.find(|c: char| c.is_ascii() && !c.is_ascii_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    if end == 0 {
        return Err(SYNTAX);
    }
    let (word, behind) = rest.split_at(end);
    *rest = behind;
    Ok(word)
}

/// What stands between quotes; two of them are one.
fn quoted(rest: &mut &str, quote: char) -> Result<String, &'static str> {
    let mut text = String::new();
    let mut at = 1;
    loop {
        let end = at + rest[at..].find(quote).ok_or(SYNTAX)?;
        text.push_str(&rest[at..end]);
        at = end + 1;
        if !rest[at..].starts_with(quote) {
            *rest = &rest[at..];
            return Ok(text);
        }
        text.push(quote);
        at += 1;
    }
}

/// A number, perhaps of K, M or G; a word.
fn plain_value(rest: &mut &str) -> Result<SetVarValue, &'static str> {
    let start = *rest;
    let word = word(rest)?;
    let (digits, unit): (&str, u64) = match word.as_bytes()[word.len() - 1] {
        b'K' => (&word[..word.len() - 1], 1 << 10),
        b'M' => (&word[..word.len() - 1], 1 << 20),
        b'G' => (&word[..word.len() - 1], 1 << 30),
        _ => (word, 1),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Ok(SetVarValue::Text(word.to_string()));
    }
    match digits.parse::<u64>().ok().and_then(|n| n.checked_mul(unit)) {
        Some(n) => Ok(SetVarValue::Number(n)),
        None => {
            *rest = start;
            Err(SIZE)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> HintComment {
        parse_hints(text, 0..text.len())
    }

    #[test]
    fn names_and_arguments() {
        let hints = of(" PQ(t1 8) NO_PQ MRR(a = b) ").hints;
        assert_eq!(hints.len(), 3);
        assert_eq!(hints[0].args, ["t1", "8"]);
        assert_eq!(hints[2].args, ["a", "=", "b"]);
        assert_eq!(of("QB_NAME('é' \"x").hints[0].args, ["é", "x"]);
    }

    #[test]
    fn variables() {
        let parsed = of(" set_var(a=16M) NO_PQ SET_VAR ( `b` = 'it''s' )SET_VAR(c=16k) SET_VAR(d = 7) SET_VAR(e=\"\")");
        assert_eq!(parsed.hints.len(), 1);
        let set: Vec<_> = parsed.set_vars.into_iter().map(|hint| hint.map(|h| (h.name, h.value)).unwrap()).collect();
        let text = |text: &str| SetVarValue::Text(text.to_string());
        let expected = [("a", SetVarValue::Number(16 << 20)), ("b", text("it's")), ("c", text("16k")), ("d", SetVarValue::Number(7)), ("e", text(""))];
        assert_eq!(set, expected.map(|(name, value)| (name.to_string(), value)));
    }

    #[test]
    fn nothing_is_read_behind_what_cannot_be() {
        for (text, at, what) in [
            ("SET_VAR(a=-1) SET_VAR(b=1)", 10, SYNTAX),
            ("SET_VAR(a=1.5)", 11, SYNTAX),
            ("SET_VAR(a)", 9, SYNTAX),
            ("SET_VAR(@x=5) NO_PQ", 8, SYNTAX),
            ("SET_VAR(a='x)", 10, SYNTAX),
            ("SET_VAR(a=99999999999999999999)", 10, SIZE),
            ("SET_VAR(a ", 10, SYNTAX),
        ] {
            let parsed = of(text);
            assert_eq!(parsed.set_vars, [Err(MalformedHint { at, what })], "{text}");
            assert!(parsed.hints.is_empty(), "{text}");
        }
    }
}
