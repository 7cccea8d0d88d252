//! JSON: MySQL's parser messages, the normal form of its text, its order, paths, and what functions do to documents.
//!
//! A JSON value of the server is kept as text in normal form. Numbers with a fraction come into one in two ways: read from JSON text they are doubles and
//! written as such (`1.5`, `2.0`), made of a DECIMAL they keep its scale (`1.50`). The text tells them apart unless both are written alike.

mod modify;
mod order;
mod path;
mod search;

use std::cmp::Ordering;

use crate::format::double_to_string;
use crate::{Decimal, Str};

pub use modify::{Change, change, merge_patch, merge_preserve, remove};
pub use order::{compare, push_key};
pub use path::{Path, Step, path_text};
pub use search::{contains, depth, overlaps, pretty};

/// Nesting that MySQL allows.
pub const MAX_DEPTH: usize = 100;
/// Why a text of more levels is refused: MySQL has an error of its own for it.
pub const TOO_DEEP: &str = "The JSON document exceeds the maximum depth.";
/// Bytes of a member's name: MySQL's binary form has 16 bits for them.
const MAX_KEY_LEN: usize = 65_535;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Int(i64),
    /// Beyond `Int`.
    UInt(u64),
    /// Finite.
    Double(f64),
    Decimal(Decimal),
    String(String),
    Array(Vec<Json>),
    Object(Members),
}

impl Json {
    /// A text in normal form, as a value of the server is; any other text counts as a string.
    pub fn of_normal(text: &str) -> Json {
        parse_normal(text).unwrap_or_else(|_| Json::String(text.to_owned()))
    }
}

/// The members of an object: keys by length, then by bytes, the last of equal ones kept.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Members(Vec<(String, Json)>);

fn key_order(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.as_bytes().cmp(b.as_bytes()))
}

impl FromIterator<(String, Json)> for Members {
    fn from_iter<I: IntoIterator<Item = (String, Json)>>(members: I) -> Members {
        let mut members: Vec<_> = members.into_iter().collect();
        // Stable, and the last is to come first.
        members.reverse();
        members.sort_by(|(a, _), (b, _)| key_order(a, b));
        members.dedup_by(|(a, _), (b, _)| a == b);
        Members(members)
    }
}

impl Members {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, key: &str) -> Option<&Json> {
        self.position(key).ok().map(|at| &self.0[at].1)
    }

    /// A member under the name that it has in here.
    fn entry(&self, key: &str) -> Option<(&str, &Json)> {
        self.position(key).ok().map(|at| (self.0[at].0.as_str(), &self.0[at].1))
    }

    fn get_mut(&mut self, key: &str) -> Option<&mut Json> {
        self.position(key).ok().map(|at| &mut self.0[at].1)
    }

    /// Adds a member, or gives the one of that name another value.
    fn insert(&mut self, key: String, value: Json) {
        match self.position(&key) {
            Ok(at) => self.0[at].1 = value,
            Err(at) => self.0.insert(at, (key, value)),
        }
    }

    fn remove(&mut self, key: &str) -> Option<Json> {
        self.position(key).ok().map(|at| self.0.remove(at).1)
    }

    fn position(&self, key: &str) -> Result<usize, usize> {
        self.0.binary_search_by(|(k, _)| key_order(k, key))
    }

    /// In their order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value))
    }
}

/// The normal form of JSON text: object keys by length then bytes, the last of equal keys kept, `", "` and `": "`.
/// `Err` is MySQL's reason and byte position for error 3140.
pub fn normalise(text: &str) -> Result<Str, (String, usize)> {
    Ok(to_text(&parse(text)?).into())
}

/// Parses a whole text that comes from outside: numbers with a fraction or an exponent are doubles.
pub fn parse(text: &str) -> Result<Json, (String, usize)> {
    parse_with(text, false)
}

/// Parses a text in normal form, as JSON values of the server have it: a number that is not written as a double is a decimal.
pub fn parse_normal(text: &str) -> Result<Json, (String, usize)> {
    parse_with(text, true)
}

fn parse_with(text: &str, normal: bool) -> Result<Json, (String, usize)> {
    let mut parser = Parser { text: text.as_bytes(), at: 0, normal };
    parser.space();
    if parser.at == text.len() {
        return Err(("The document is empty.".into(), parser.at));
    }
    let value = parser.value(0)?;
    parser.space();
    if parser.at < text.len() {
        return Err(("The document root must not be followed by other values.".into(), parser.at));
    }
    Ok(value)
}

/// MySQL's text form.
pub fn to_text(value: &Json) -> String {
    let mut out = String::new();
    push(value, &mut out);
    out
}

fn push(value: &Json, out: &mut String) {
    match value {
        Json::Null => out.push_str("null"),
        Json::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Json::Int(v) => out.push_str(&v.to_string()),
        Json::UInt(v) => out.push_str(&v.to_string()),
        Json::Double(v) => out.push_str(&double_text(*v)),
        Json::Decimal(v) => out.push_str(&v.to_string()),
        Json::String(text) => push_quoted(text, out),
        Json::Array(values) => {
            out.push('[');
            for (i, value) in values.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push(value, out);
            }
            out.push(']');
        }
        Json::Object(members) => {
            out.push('{');
            for (i, (key, value)) in members.iter().enumerate() {
                if i > 0 {
                    out.push_str(", ");
                }
                push_quoted(key, out);
                out.push_str(": ");
                push(value, out);
            }
            out.push('}');
        }
    }
}

fn double_text(v: f64) -> String {
    let text = double_to_string(v);
    if text.contains(['.', 'e']) { text } else { text + ".0" }
}

/// A JSON string literal.
pub fn push_quoted(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{C}' => out.push_str("\\f"),
            '\0'..='\u{1F}' => out.push_str(&format!("\\u{:04x}", c as u32)),
            _ => out.push(c),
        }
    }
    out.push('"');
}

struct Parser<'t> {
    text: &'t [u8],
    at: usize,
    /// The text is in normal form: see [`parse_normal`].
    normal: bool,
}

type Parsed<T> = Result<T, (String, usize)>;

impl Parser<'_> {
    fn fail<T>(&self, reason: &str) -> Parsed<T> {
        self.fail_at(reason, self.at)
    }

    fn fail_at<T>(&self, reason: &str, at: usize) -> Parsed<T> {
        Err((reason.to_owned(), at))
    }

    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn value(&mut self, depth: usize) -> Parsed<Json> {
        if depth > MAX_DEPTH {
            return self.fail(TOO_DEEP);
        }
        match self.peek() {
            Some(b'n') => self.word("null", Json::Null),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'"') => Ok(Json::String(self.string()?)),
            Some(b'[') => self.array(depth),
            Some(b'{') => self.object(depth),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail("Invalid value."),
        }
    }

    /// A wrong word is reported behind its first letters that are right.
    fn word(&mut self, word: &str, value: Json) -> Parsed<Json> {
        for (i, byte) in word.bytes().enumerate() {
            if self.text.get(self.at + i) != Some(&byte) {
                return self.fail_at("Invalid value.", self.at + i.max(1));
            }
        }
        self.at += word.len();
        Ok(value)
    }

    fn array(&mut self, depth: usize) -> Parsed<Json> {
        self.at += 1;
        let mut values = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::Array(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::Array(values));
                }
                _ => return self.fail("Missing a comma or ']' after an array element."),
            }
            self.space();
        }
    }

    fn object(&mut self, depth: usize) -> Parsed<Json> {
        self.at += 1;
        let mut members = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(Members::default()));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("Missing a name for object member.");
            }
            let start = self.at;
            let key = self.string()?;
            if key.len() > MAX_KEY_LEN {
                return self.fail_at("The JSON object contains a key name that is too long.", start);
            }
            self.space();
            if self.peek() != Some(b':') {
                return self.fail("Missing a colon after a name of object member.");
            }
            self.at += 1;
            self.space();
            let value = self.value(depth + 1)?;
            members.push((key, value));
            self.space();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Object(members.into_iter().collect()));
                }
                _ => return self.fail("Missing a comma or '}' after an object member."),
            }
            self.space();
        }
    }

    fn number(&mut self) -> Parsed<Json> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.fail("Invalid value."),
        }
        let mut real = false;
        if self.peek() == Some(b'.') {
            real = true;
            self.at += 1;
            if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.fail("Miss fraction part in number.");
            }
            self.digits();
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            real = true;
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if !self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                return self.fail("Miss exponent in number.");
            }
            self.digits();
        }
        let text = std::str::from_utf8(&self.text[start..self.at]).unwrap_or_default();
        if !real {
            if let Ok(v) = text.parse::<i64>() {
                return Ok(Json::Int(v));
            }
            if let Ok(v) = text.parse::<u64>() {
                return Ok(Json::UInt(v));
            }
        }
        let double = text.parse::<f64>().ok().filter(|v| v.is_finite());
        if self.normal
            && double.is_none_or(|v| double_text(v) != text)
            && let Ok(decimal) = text.parse::<Decimal>()
        {
            return Ok(Json::Decimal(decimal));
        }
        match double {
            Some(v) => Ok(Json::Double(v)),
            None => self.fail_at("Number too big to be stored in double.", start),
        }
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn string(&mut self) -> Parsed<String> {
        let start = self.at;
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.peek() {
                None => return self.fail_at("Missing a closing quotation mark in string.", start),
                Some(b'"') => {
                    self.at += 1;
                    return Ok(String::from_utf8_lossy(&bytes).into_owned());
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                Some(0..=0x1F) => return self.fail("Invalid encoding in string."),
                Some(byte) => {
                    bytes.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn escape(&mut self) -> Parsed<char> {
        let start = self.at;
        let c = match self.text.get(self.at + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{C}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = self.hex(self.at + 2)?;
                self.at += 6;
                if !(0xD800..0xE000).contains(&first) {
                    return Ok(char::from_u32(first).unwrap_or('\u{FFFD}'));
                }
                if self.text.get(self.at) == Some(&b'\\') && self.text.get(self.at + 1) == Some(&b'u') {
                    let second = self.hex(self.at + 2)?;
                    if first < 0xDC00 && (0xDC00..0xE000).contains(&second) {
                        self.at += 6;
                        let c = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                        return Ok(char::from_u32(c).unwrap_or('\u{FFFD}'));
                    }
                }
                return self.fail_at("The surrogate pair in string is invalid.", start);
            }
            _ => return self.fail_at("Invalid escape character in string.", start),
        };
        self.at += 2;
        Ok(c)
    }

    fn hex(&self, at: usize) -> Parsed<u32> {
        let digits = self.text.get(at..at + 4).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
            Some(v) => Ok(v),
            None => self.fail_at("Incorrect hex digit after \\u escape in string.", at - 2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_form() {
        let normal = |text| normalise(text).unwrap().to_string();
        assert_eq!(normal(r#"{"bb":1,"a":[true,null],"bb":2}"#), r#"{"a": [true, null], "bb": 2}"#);
        assert_eq!(normal("[1.0,1e2,1e20,18446744073709551615,-0.5]"), "[1.0, 100.0, 1e20, 18446744073709551615, -0.5]");
        assert_eq!(normal(r#""\u00e9\ud83d\ude00\/\u0001""#), r#""é😀/\u0001""#);
        assert_eq!(normalise("{bad"), Err(("Missing a name for object member.".into(), 1)));
        assert_eq!(normalise(&"[".repeat(200)).unwrap_err().0, "The JSON document exceeds the maximum depth.");
        let with_key = |len: usize| normalise(&format!("{{\"{}\": 1}}", "k".repeat(len)));
        assert!(with_key(65_535).is_ok());
        assert_eq!(with_key(65_536), Err(("The JSON object contains a key name that is too long.".into(), 1)));
    }

    #[test]
    fn decimals_keep_their_scale() {
        for text in ["1.50", "[0.10, -2.00, 12345678901234567890123.4500, 12345678901234567890123]"] {
            assert_eq!(to_text(&parse_normal(text).unwrap()), text);
        }
        // What is written as a double is one, and text from outside has no decimals.
        for (text, v) in [("1.5", 1.5), ("2.0", 2.0), ("1e20", 1e20), ("-0.1", -0.1)] {
            assert_eq!((parse_normal(text).unwrap(), parse(text).unwrap()), (Json::Double(v), Json::Double(v)));
        }
        assert_eq!(&*normalise("[1.50, 12345678901234567890123]").unwrap(), "[1.5, 1.2345678901234568e22]");
    }

    #[test]
    fn members_are_ordered_and_the_last_of_a_key_counts() {
        let Json::Object(members) = parse(r#"{"bb": 1, "a": 2, "bb": 3, "c": 4, "bb": 5}"#).unwrap() else { panic!("an object") };
        assert_eq!(members.iter().collect::<Vec<_>>(), [("a", &Json::Int(2)), ("c", &Json::Int(4)), ("bb", &Json::Int(5))]);
        assert_eq!((members.get("bb"), members.get("b")), (Some(&Json::Int(5)), None));
    }
}
