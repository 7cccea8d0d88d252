//! Paths into JSON values: `$.key[0]."other key"[last-1][1 to 3].*[*]**.x`.

use super::{Json, Parser};

/// A path expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    legs: Vec<Leg>,
}

#[derive(Clone, Debug, PartialEq)]
enum Leg {
    Key(String),
    Cell(Index),
    /// From the first to the second, both included.
    Range(Index, Index),
    AnyKey,
    AnyCell,
    /// `**`: the value and everything within.
    Within,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Index {
    n: u32,
    /// Counted backwards from the last element.
    from_last: bool,
}

/// Where an index points in an array.
enum Spot {
    Before,
    At(usize),
    After,
}

impl Index {
    fn within(self, len: usize) -> Spot {
        let n = self.n as usize;
        match self.from_last {
            true if n < len => Spot::At(len - 1 - n),
            true => Spot::Before,
            false if n < len => Spot::At(n),
            false => Spot::After,
        }
    }
}

/// A step of the way to a value within a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'j> {
    Key(&'j str),
    Cell(usize),
}

impl Path {
    /// `$`: the document.
    pub fn root() -> Path {
        Path { legs: Vec::new() }
    }

    /// The document and everything within it.
    pub fn everything() -> Path {
        Path { legs: vec![Leg::Within] }
    }

    /// Reads a path. `Err` is the byte that MySQL names in error 3143.
    pub fn parse(text: &str) -> Result<Path, usize> {
        let mut reader = Reader { text, at: 0 };
        reader.space();
        match reader.next() {
            None => return Err(reader.at),
            Some(b'$') => {}
            Some(_) => return Err(reader.at),
        }
        let mut legs = Vec::new();
        loop {
            reader.space();
            match reader.peek() {
                None => return Ok(Path { legs }),
                Some(b'.') => legs.push(reader.member()?),
                Some(b'[') => legs.push(reader.cell()?),
                Some(b'*') => legs.push(reader.within()?),
                Some(_) => return Err(reader.at),
            }
        }
    }

    /// It is `$` alone.
    pub fn is_root(&self) -> bool {
        self.legs.is_empty()
    }

    /// It has `*`, `**` or a range, so that it may lead to several values.
    pub fn is_multiple(&self) -> bool {
        self.legs.iter().any(|leg| matches!(leg, Leg::AnyKey | Leg::AnyCell | Leg::Range(..) | Leg::Within))
    }

    /// It ends in an index.
    pub fn is_cell(&self) -> bool {
        matches!(self.legs.last(), Some(Leg::Cell(_)))
    }

    /// The values that it leads to, each once, in MySQL's order: a value before what is within it.
    pub fn select<'j>(&self, document: &'j Json) -> Vec<&'j Json> {
        let mut found: Vec<&Json> = Vec::new();
        self.visit(document, &mut |value, _| found.push(value));
        found
    }

    /// Calls `visit` with every value of [`Path::select`] and the way to it.
    pub fn visit<'j>(&self, document: &'j Json, visit: &mut dyn FnMut(&'j Json, &[Step<'j>])) {
        let mut trail = Vec::new();
        // Only `**` comes to a value on several ways.
        if self.legs.contains(&Leg::Within) {
            let mut met: std::collections::HashSet<*const Json> = std::collections::HashSet::new();
            walk(document, &self.legs, &mut trail, &mut |value, trail| {
                if met.insert(std::ptr::from_ref(value)) {
                    visit(value, trail);
                }
            });
        } else {
            walk(document, &self.legs, &mut trail, visit);
        }
    }

    /// The one value that a path without wildcards leads to, and the way to it.
    pub fn find<'j>(&self, document: &'j Json) -> Option<(&'j Json, Vec<Step<'j>>)> {
        let mut found = None;
        self.visit(document, &mut |value, trail| found = Some((value, trail.to_vec())));
        found
    }

    /// The value that a path without wildcards leads to, to be changed.
    pub(super) fn find_mut<'j>(&self, document: &'j mut Json) -> Option<&'j mut Json> {
        self.legs.iter().try_fold(document, |value, leg| match (leg, value) {
            (Leg::Key(key), Json::Object(members)) => members.get_mut(key),
            (Leg::Cell(index), Json::Array(values)) => match index.within(values.len()) {
                Spot::At(at) => values.get_mut(at),
                _ => None,
            },
            (Leg::Cell(index), value) if !matches!(value, Json::Array(_)) => matches!(index.within(1), Spot::At(_)).then_some(value),
            _ => None,
        })
    }

    /// The path without its last leg, and what that leg names.
    pub(super) fn parent(&self) -> Option<(Path, Last<'_>)> {
        let (last, legs) = self.legs.split_last()?;
        let last = match last {
            Leg::Key(key) => Last::Key(key),
            Leg::Cell(index) => Last::Cell { n: index.n as usize, from_last: index.from_last },
            _ => return None,
        };
        Some((Path { legs: legs.to_vec() }, last))
    }
}

/// The last leg of a path.
pub(super) enum Last<'p> {
    Key(&'p str),
    Cell { n: usize, from_last: bool },
}

fn walk<'j>(value: &'j Json, legs: &[Leg], trail: &mut Vec<Step<'j>>, visit: &mut dyn FnMut(&'j Json, &[Step<'j>])) {
    let Some((leg, rest)) = legs.split_first() else { return visit(value, trail) };
    let mut down = |step: Step<'j>, value: &'j Json, legs: &[Leg]| {
        trail.push(step);
        walk(value, legs, trail, visit);
        trail.pop();
    };
    match (leg, value) {
        (Leg::Key(key), Json::Object(members)) => {
            if let Some((key, member)) = members.entry(key) {
                down(Step::Key(key), member, rest);
            }
        }
        (Leg::AnyKey, Json::Object(members)) => members.iter().for_each(|(key, member)| down(Step::Key(key), member, rest)),
        (Leg::AnyCell, Json::Array(values)) => values.iter().enumerate().for_each(|(i, value)| down(Step::Cell(i), value, rest)),
        (Leg::Cell(index), Json::Array(values)) => {
            if let Spot::At(at) = index.within(values.len()) {
                down(Step::Cell(at), &values[at], rest);
            }
        }
        (Leg::Range(from, to), Json::Array(values)) => {
            if let Some((from, to)) = bounds(*from, *to, values.len()) {
                (from..=to).for_each(|at| down(Step::Cell(at), &values[at], rest));
            }
        }
        // A value that is no array is the only element of one.
        (Leg::Cell(index), _) => {
            if let Spot::At(_) = index.within(1) {
                walk(value, rest, trail, visit);
            }
        }
        (Leg::Range(from, to), _) => {
            if bounds(*from, *to, 1).is_some() {
                walk(value, rest, trail, visit);
            }
        }
        (Leg::Within, _) => {
            walk(value, rest, trail, visit);
            let mut down = |step: Step<'j>, value: &'j Json| {
                trail.push(step);
                walk(value, legs, trail, visit);
                trail.pop();
            };
            match value {
                Json::Object(members) => members.iter().for_each(|(key, member)| down(Step::Key(key), member)),
                Json::Array(values) => values.iter().enumerate().for_each(|(i, value)| down(Step::Cell(i), value)),
                _ => {}
            }
        }
        _ => {}
    }
}

/// The first and the last position of a range in an array of `len` elements, if there is any.
fn bounds(from: Index, to: Index, len: usize) -> Option<(usize, usize)> {
    let from = match from.within(len) {
        Spot::Before => 0,
        Spot::At(at) => at,
        Spot::After => return None,
    };
    let to = match to.within(len) {
        Spot::Before => return None,
        Spot::At(at) => at,
        Spot::After => len.checked_sub(1)?,
    };
    (from <= to && to < len).then_some((from, to))
}

/// The way to a value as a path expression.
pub fn path_text(trail: &[Step<'_>]) -> String {
    let mut out = String::from("$");
    for step in trail {
        match step {
            Step::Cell(at) => out.push_str(&format!("[{at}]")),
            Step::Key(key) if is_identifier(key) => {
                out.push('.');
                out.push_str(key);
            }
            Step::Key(key) => {
                out.push('.');
                super::push_quoted(key, &mut out);
            }
        }
    }
    out
}

/// A name that needs no quotes: ECMAScript's identifiers.
fn is_identifier(name: &str) -> bool {
    let starts = |c: char| c.is_alphabetic() || matches!(c, '$' | '_');
    let mut chars = name.chars();
    chars.next().is_some_and(starts) && chars.all(|c| starts(c) || c.is_numeric() || matches!(c, '\u{200C}' | '\u{200D}' | '\u{203F}' | '\u{2040}'))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

type Read<T> = Result<T, usize>;

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    fn space(&mut self) -> bool {
        let start = self.at;
        while self.peek().is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
        self.at > start
    }

    /// `**`, with something behind it that is no third star.
    fn within(&mut self) -> Read<Leg> {
        self.at += 1;
        if self.next() != Some(b'*') {
            return Err(self.at);
        }
        self.space();
        match self.peek() {
            None | Some(b'*') => Err(self.at),
            Some(_) => Ok(Leg::Within),
        }
    }

    /// `.key`, `."key"` or `.*`.
    fn member(&mut self) -> Read<Leg> {
        self.at += 1;
        self.space();
        let rest = &self.text.as_bytes()[self.at..];
        match rest.first() {
            Some(b'*') => {
                self.at += 1;
                Ok(Leg::AnyKey)
            }
            Some(b'"') => {
                // To the next quote that is not escaped.
                let mut end = 1;
                while end < rest.len() && rest[end] != b'"' {
                    end += if rest[end] == b'\\' { 2 } else { 1 };
                }
                if end >= rest.len() {
                    return Err(self.text.len());
                }
                let quoted = &self.text[self.at..self.at + end + 1];
                self.at += end + 1;
                Ok(Leg::Key(unquote(quoted).ok_or(self.at)?))
            }
            _ => {
                let end = rest.iter().position(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'.' | b'[' | b'*')).unwrap_or(rest.len());
                let name = &self.text[self.at..self.at + end];
                self.at += end;
                let key = unquote(&format!("\"{name}\"")).ok_or(self.at)?;
                if is_identifier(&key) { Ok(Leg::Key(key)) } else { Err(self.at) }
            }
        }
    }

    /// `[*]`, `[index]` or `[index to index]`.
    fn cell(&mut self) -> Read<Leg> {
        self.at += 1;
        self.space();
        let leg = if self.peek() == Some(b'*') {
            self.at += 1;
            Leg::AnyCell
        } else {
            let from = self.index()?;
            let spaced = self.space();
            let rest = &self.text.as_bytes()[self.at..];
            if spaced && rest.starts_with(b"to") && rest.get(2).is_some_and(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
                self.at += 2;
                self.space();
                let to = self.index()?;
                let backwards = match (from.from_last, to.from_last) {
                    (false, false) => from.n > to.n,
                    (true, true) => from.n < to.n,
                    _ => false,
                };
                if backwards {
                    return Err(self.at);
                }
                Leg::Range(from, to)
            } else {
                Leg::Cell(from)
            }
        };
        self.space();
        if self.next() != Some(b']') {
            return Err(self.at);
        }
        Ok(leg)
    }

    /// `n`, `last` or `last - n`.
    fn index(&mut self) -> Read<Index> {
        if self.text[self.at..].starts_with("last") {
            self.at += 4;
            let end = self.at;
            self.space();
            if self.peek() != Some(b'-') {
                self.at = end;
                return Ok(Index { n: 0, from_last: true });
            }
            self.at += 1;
            self.space();
            return Ok(Index { n: self.number()?, from_last: true });
        }
        Ok(Index { n: self.number()?, from_last: false })
    }

    fn number(&mut self) -> Read<u32> {
        let digits = self.text.as_bytes()[self.at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let number = self.text[self.at..self.at + digits].parse().map_err(|_| self.at)?;
        self.at += digits;
        Ok(number)
    }
}

/// The text of a JSON string literal.
fn unquote(literal: &str) -> Option<String> {
    let mut parser = Parser { text: literal.as_bytes(), at: 0, normal: false };
    let text = parser.string().ok()?;
    (parser.at == literal.len()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{parse, to_text};

    /// All recorded from MySQL 8.0.12.
    #[test]
    fn places_of_errors() {
        let places = [
            ("", 0), ("   ", 3), ("a", 1), ("$x", 1), ("$.", 2), ("$.a.", 4), ("$.a b", 4), ("$.a-b", 5), ("$.1z", 4), ("$.\"a", 4), ("$.\"a\"x", 5),
            ("$.\"\\x\"", 6), ("$.a\"b\"", 6), ("$.[", 2), ("$..a", 2), ("$[", 2), ("$[]", 2), ("$[1", 3), ("$[a]", 2), ("$[-1]", 2), ("$[LAST]", 2),
            ("$[lastx]", 7), ("$[last+1]", 7), ("$[last-]", 7), ("$[4294967296]", 2), ("$[last-4294967296]", 7), ("$[3 to 1]", 8),
            ("$[last to last-1]", 16), ("$[1to 2]", 4), ("$[1 to2]", 5), ("$[1 to ]", 7), ("$[1 to", 5), ("$[1 tx 2]", 5), ("$[1 to 2", 8),
            ("$[last-1to last]", 9), ("$[*", 3), ("$[*x]", 4), ("$*", 2), ("$*a", 3), ("$**", 3), ("$***.a", 3), ("$.a**", 5), ("$.é[x", 5),
        ];
        for (path, at) in places {
            assert_eq!(Path::parse(path), Err(at), "{path}");
        }
        for path in ["$", " $ . a ", "$  .a", "$[ 1 ]", "$[ last - 0 ]", "$[ * ]", "$. *", "$[ 0   to   1 ]", "$** .a", "$[4294967295]", "$._y", "$.$x", "$.\"\""] {
            assert!(Path::parse(path).is_ok(), "{path}");
        }
    }

    #[test]
    fn selections() {
        let select = |document: &str, path: &str| {
            let document = parse(document).unwrap();
            let path = Path::parse(path).unwrap();
            path.select(&document).into_iter().map(to_text).collect::<Vec<_>>().join(" ")
        };
        for (document, path, found) in [
            ("[1,2,3,4,5]", "$[last]", "5"),
            ("[1,2,3,4,5]", "$[last-2 to last]", "3 4 5"),
            ("[1,2,3,4,5]", "$[3 to 100]", "4 5"),
            ("[1,2,3,4,5]", "$[last-10 to 1]", "1 2"),
            ("[1,2,3,4,5]", "$[last-10]", ""),
            ("5", "$[last]", "5"),
            ("5", "$[0 to 3]", "5"),
            ("5", "$[1 to 3]", ""),
            ("5", "$[*]", ""),
            ("[]", "$[last]", ""),
            ("[]", "$[0 to 3]", ""),
            (r#"{"a":1}"#, "$[last].a", "1"),
            (r#"{"a":{"b":1,"c":{"b":2}},"b":3}"#, "$**.b", "3 1 2"),
            ("[[1,2],[3]]", "$**[0]", "[1, 2] 1 2 3"),
            (r#"{"a":{"a":1}}"#, "$**.a**.a", "1"),
            ("[[[1]]]", "$**[*]", "[[1]] [1] 1"),
            (r#"{"a\"b":3}"#, r#"$."a\"b""#, "3"),
        ] {
            assert_eq!(select(document, path), found, "{path} of {document}");
        }
    }

    #[test]
    fn ways_as_text() {
        let document = parse(r#"{"a b": [{"c\"d": 1, "é": 2, "1a": 3, "": 4}]}"#).unwrap();
        let mut ways = Vec::new();
        Path::parse("$**.*").unwrap().visit(&document, &mut |_, trail| ways.push(path_text(trail)));
        assert_eq!(ways, [r#"$."a b""#, r#"$."a b"[0]."""#, r#"$."a b"[0]."1a""#, r#"$."a b"[0].é"#, r#"$."a b"[0]."c\"d""#]);
    }
}
