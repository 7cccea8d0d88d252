//! Optimizer hints: `/*+ NAME(arg, arg …) NAME … */`.

use std::ops::Range;

use super::ast::{HintTable, OptimizerHint, SetVarHint, SetVarValue};

/// What the hint comments of a statement say.
#[derive(Debug, Default)]
pub(super) struct HintComment {
    /// All but SET_VAR, as far as they can be read.
    pub hints: Vec<OptimizerHint>,
    /// SET_VAR, and where the comment cannot be read: nothing behind that is, as in MySQL.
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

/// What stands between the parentheses of a hint.
enum Form {
    /// `(1000)`.
    Number,
    /// `(name)`.
    Name,
    /// `([@block])`.
    Block,
    /// `([@block] [table, table@block …])`.
    Tables,
    /// `([@block] table[@block] [index, …])`.
    Indexes,
    /// `([@block] [strategy, …])`. `needed`: there must be one.
    Strategies { known: &'static [&'static str], needed: bool },
    /// Nothing at all, or words of any kind: those of GreatSQL.
    Words,
}

/// MySQL 8.0's hints, and PQ and NO_PQ.
fn form(name: &str) -> Option<Form> {
    Some(match name {
        "MAX_EXECUTION_TIME" => Form::Number,
        "QB_NAME" | "RESOURCE_GROUP" => Form::Name,
        "JOIN_FIXED_ORDER" => Form::Block,
        "JOIN_ORDER" | "JOIN_PREFIX" | "JOIN_SUFFIX" | "BKA" | "NO_BKA" | "BNL" | "NO_BNL" | "HASH_JOIN" | "NO_HASH_JOIN" | "MERGE" | "NO_MERGE"
        | "DERIVED_CONDITION_PUSHDOWN" | "NO_DERIVED_CONDITION_PUSHDOWN" => Form::Tables,
        "MRR" | "NO_MRR" | "NO_ICP" | "NO_RANGE_OPTIMIZATION" | "INDEX_MERGE" | "NO_INDEX_MERGE" | "SKIP_SCAN" | "NO_SKIP_SCAN" | "INDEX" | "NO_INDEX"
        | "JOIN_INDEX" | "NO_JOIN_INDEX" | "GROUP_INDEX" | "NO_GROUP_INDEX" | "ORDER_INDEX" | "NO_ORDER_INDEX" => Form::Indexes,
        "SEMIJOIN" | "NO_SEMIJOIN" => Form::Strategies { known: &["FIRSTMATCH", "LOOSESCAN", "DUPSWEEDOUT", "MATERIALIZATION"], needed: false },
        "SUBQUERY" => Form::Strategies { known: &["MATERIALIZATION", "INTOEXISTS"], needed: true },
        "PQ" | "NO_PQ" => Form::Words,
        _ => return None,
    })
}

/// The hints of the hint comment whose text is `comment` of `sql`.
pub(super) fn parse_hints(sql: &str, comment: Range<usize>) -> HintComment {
    let end = comment.end;
    let mut parsed = HintComment::default();
    let mut rest = &sql[comment];
    loop {
        rest = rest.trim_start();
        let is_empty = parsed.hints.is_empty() && parsed.set_vars.is_empty();
        if rest.is_empty() && !is_empty {
            return parsed;
        }
        if let Err(what) = hint(&mut rest, &mut parsed) {
            parsed.set_vars.push(Err(MalformedHint { at: end - rest.len(), what }));
            return parsed;
        }
    }
}

/// One hint. If it is something else, `rest` begins with what should not be there; so it is below.
fn hint(rest: &mut &str, parsed: &mut HintComment) -> Result<(), &'static str> {
    let start = *rest;
    let name = word(rest)?.to_ascii_uppercase();
    if name == "SET_VAR" {
        parsed.set_vars.push(Ok(set_var(rest)?));
        return Ok(());
    }
    let Some(form) = form(&name) else {
        *rest = start;
        return Err(SYNTAX);
    };
    let mut hint = OptimizerHint { name, ..OptimizerHint::default() };
    if matches!(form, Form::Words) {
        if rest.trim_start().starts_with('(') {
            symbol(rest, '(')?;
            hint.args = any_words(rest);
            symbol(rest, ')')?;
        }
        parsed.hints.push(hint);
        return Ok(());
    }
    symbol(rest, '(')?;
    *rest = rest.trim_start();
    if !matches!(form, Form::Number | Form::Name) {
        hint.block = block(rest)?;
        *rest = rest.trim_start();
    }
    match form {
        Form::Number => {
            let start = *rest;
            let number = word(rest)?;
            if number.parse::<u64>().is_err() {
                *rest = start;
                return Err(SYNTAX);
            }
            hint.args.push(number.to_string());
        }
        Form::Name => hint.args.push(identifier(rest)?),
        Form::Tables if !rest.starts_with(')') => loop {
            let table = table(rest, &hint)?;
            hint.tables.push(table);
            if !comma(rest) {
                break;
            }
        },
        Form::Indexes => {
            let table = table(rest, &hint)?;
            hint.tables.push(table);
            if !rest.trim_start().starts_with([')', ',']) {
                loop {
                    hint.args.push(identifier(rest)?);
                    if !comma(rest) {
                        break;
                    }
                }
            }
        }
        Form::Strategies { known, needed } if needed || !rest.starts_with(')') => loop {
            *rest = rest.trim_start();
            let start = *rest;
            let strategy = word(rest)?.to_ascii_uppercase();
            if !known.contains(&&*strategy) {
                *rest = start;
                return Err(SYNTAX);
            }
            hint.args.push(strategy);
            if !comma(rest) {
                break;
            }
        },
        Form::Block | Form::Tables | Form::Strategies { .. } | Form::Words => {}
    }
    symbol(rest, ')')?;
    parsed.hints.push(hint);
    Ok(())
}

/// `@name`, if it is there.
fn block(rest: &mut &str) -> Result<Option<String>, &'static str> {
    match rest.strip_prefix('@') {
        Some(name) => {
            *rest = name;
            identifier(rest).map(Some)
        }
        None => Ok(None),
    }
}

/// A table, with its query block unless the hint has named one.
fn table(rest: &mut &str, hint: &OptimizerHint) -> Result<HintTable, &'static str> {
    let name = identifier(rest)?;
    let block = if hint.block.is_none() { block(rest)? } else { None };
    Ok(HintTable { name, block })
}

fn identifier(rest: &mut &str) -> Result<String, &'static str> {
    *rest = rest.trim_start();
    if rest.starts_with('`') { quoted(rest, '`') } else { word(rest).map(str::to_string) }
}

fn comma(rest: &mut &str) -> bool {
    *rest = rest.trim_start();
    match rest.strip_prefix(',') {
        Some(behind) => {
            *rest = behind;
            true
        }
        None => false,
    }
}

/// What stands before a closing parenthesis: binding judges it.
fn any_words(rest: &mut &str) -> Vec<String> {
    let end = rest.find(')').unwrap_or(rest.len());
    let (words, behind) = rest.split_at(end);
    *rest = behind;
    let plain = |word: &str| word.trim_matches(['`', '"', '\'']).to_string();
    words.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty()).map(plain).collect()
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
        let parsed = of(" pq(t1 8) NO_PQ MRR(@q `a b` k1, k2) join_order(x@p , y) SEMIJOIN(firstmatch,LOOSESCAN) NO_BNL() QB_NAME(é) MAX_EXECUTION_TIME(5) PQ(-1)");
        assert!(parsed.set_vars.is_empty(), "{:?}", parsed.set_vars);
        let [pq, no_pq, mrr, order, semijoin, bnl, name, time, bad] = &parsed.hints[..] else { panic!("{:?}", parsed.hints) };
        assert_eq!((&pq.name[..], &pq.args[..]), ("PQ", &["t1".to_string(), "8".to_string()][..]));
        assert_eq!(no_pq.name, "NO_PQ");
        assert_eq!((mrr.block.as_deref(), &mrr.tables[0].name[..], &mrr.args[..]), (Some("q"), "a b", &["k1".to_string(), "k2".to_string()][..]));
        assert_eq!((order.tables[0].block.as_deref(), &order.tables[1].name[..]), (Some("p"), "y"));
        assert_eq!(semijoin.args, ["FIRSTMATCH", "LOOSESCAN"]);
        assert!(bnl.tables.is_empty() && bnl.block.is_none());
        assert_eq!((&name.args[..], &time.args[..], &bad.args[..]), (&["é".to_string()][..], &["5".to_string()][..], &["-1".to_string()][..]));
    }

    /// As MySQL 8.0.12 says it of its own hints.
    #[test]
    fn what_is_no_hint_ends_the_comment() {
        for (text, at, read) in [
            ("", 0, 0),
            ("FOO(t1) NO_ICP(t1)", 0, 0),
            ("BKA(t1) NO_ICP", 14, 1),
            ("NO_ICP(t1 ", 10, 0),
            ("NO_ICP t1)", 7, 0),
            ("NO_ICP(t1,)", 9, 0),
            ("NO_ICP(\"t1\")", 7, 0),
            ("NO_ICP(t1@`q`,t2)", 13, 0),
            ("MRR()", 4, 0),
            ("QB_NAME(q) QB_NAME()", 19, 1),
            ("SEMIJOIN(FOO)", 9, 0),
            ("SUBQUERY()", 9, 0),
            ("JOIN_FIXED_ORDER(t1)", 17, 0),
            ("JOIN_ORDER(t1 t2)", 14, 0),
            ("MAX_EXECUTION_TIME(x)", 19, 0),
            ("MAX_EXECUTION_TIME()", 19, 0),
        ] {
            let parsed = of(text);
            assert_eq!(parsed.set_vars, [Err(MalformedHint { at, what: SYNTAX })], "{text}");
            assert_eq!(parsed.hints.len(), read, "{text}");
        }
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
