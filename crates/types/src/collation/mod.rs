//! Collations: how text compares, sorts, hashes and matches LIKE.  Weights are MySQL's, recorded from it
//! (`tools/record_collations.py`, `tools/record_multi_byte.py`); see README.md for the sort key's bytes.

mod codes;
mod like;
mod list;
mod unicode;

use std::cell::RefCell;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::LazyLock;

use crate::Charset;
use crate::charset::{MultiByte, SingleByte};
use codes::{CodeWeights, WeightBytes};
use list::{ALL, BINARY, UTF8MB4_0900_AI_CI};
use unicode::{UnicodeWeights, Units};

/// A collation of MySQL.  Text arguments are UTF-8, except for `binary`, where they are any bytes.
pub struct Collation {
    pub id: u16,
    pub name: &'static str,
    pub charset: Charset,
    /// PAD SPACE: trailing spaces do not count.
    pub pad_space: bool,
    /// The default of its character set.
    pub is_default: bool,
    rule: Rule,
}

/// What a collation makes of the case of ASCII letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsciiCase {
    Sensitive,
    Insensitive,
}

#[derive(Clone, Copy)]
enum Rule {
    /// `binary`: the bytes.
    Bytes,
    /// `utf8*_bin`: code points, which UTF-8 orders as bytes.
    CodePoints,
    /// One weight for each byte of a character set of single bytes.
    SingleByte(&'static [u8; 256]),
    /// Bytes for each character of a character set of several bytes that is none of Unicode's.
    Codes(&'static LazyLock<CodeWeights>),
    Unicode(&'static LazyLock<UnicodeWeights>),
    /// All primary weights, then all of the next level, and so on.
    Levels(&'static [&'static LazyLock<UnicodeWeights>]),
}

thread_local! {
    /// The sort key that `hash_text` digests.
    static HASH_KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Collation {
    /// Every collation, by name.
    pub fn all() -> &'static [Collation] {
        &ALL
    }

    /// By name, any case, `utf8mb3_` meaning `utf8_`.
    pub fn by_name(name: &str) -> Option<&'static Collation> {
        let lower = name.to_ascii_lowercase();
        let name = lower.strip_prefix("utf8mb3_").map_or(lower.clone(), |rest| format!("utf8_{rest}"));
        ALL.iter().find(|collation| collation.name == name)
    }

    /// By the number of the wire protocol.
    pub fn by_id(id: u16) -> Option<&'static Collation> {
        ALL.iter().find(|collation| collation.id == id)
    }

    pub fn default_of(charset: Charset) -> &'static Collation {
        match charset {
            Charset::Utf8mb4 => UTF8MB4_0900_AI_CI,
            _ => ALL.iter().find(|collation| collation.charset == charset && collation.is_default).expect("every character set has a default collation"),
        }
    }

    /// As `default_of`, where the default of utf8mb4 is `utf8mb4` (`default_collation_for_utf8mb4`).
    pub fn default_among(charset: Charset, utf8mb4: &'static Collation) -> &'static Collation {
        if charset == Charset::Utf8mb4 { utf8mb4 } else { Collation::default_of(charset) }
    }

    /// The `_bin` collation of a character set.
    pub fn binary_of(charset: Charset) -> &'static Collation {
        let is_bin = |collation: &&Collation| collation.charset == charset && collation.is_binary_order() && (collation.pad_space || charset == Charset::Binary);
        ALL.iter().find(is_bin).expect("every character set has a collation of its codes")
    }

    /// `binary`.
    pub fn binary() -> &'static Collation {
        BINARY
    }

    /// `utf8mb4_0900_ai_ci`.
    pub fn utf8mb4() -> &'static Collation {
        UTF8MB4_0900_AI_CI
    }

    /// True for `binary` and the `_bin` collations.
    pub fn is_binary_order(&self) -> bool {
        matches!(self.rule, Rule::Bytes | Rule::CodePoints) || self.name.ends_with("_bin")
    }

    /// How it tells printable ASCII characters apart: as bytes, as bytes but for the case of letters, or in a way of its own (`None`).
    pub fn ascii_case(&self) -> Option<AsciiCase> {
        let keys: Vec<Vec<u8>> = (b' '..=b'~').map(|byte| self.single_key(byte)).collect();
        let distinct = keys.iter().collect::<std::collections::HashSet<_>>().len();
        let folds = (b'a'..=b'z').all(|byte| self.single_key(byte) == self.single_key(byte.to_ascii_uppercase()));
        match keys.len() - distinct {
            0 => Some(AsciiCase::Sensitive),
            26 if folds => Some(AsciiCase::Insensitive),
            _ => None,
        }
    }

    fn single_key(&self, byte: u8) -> Vec<u8> {
        let mut key = Vec::new();
        self.sort_key(&[byte], &mut key);
        key
    }

    /// Three-way comparison under the collation.
    pub fn compare(&self, a: &[u8], b: &[u8]) -> Ordering {
        let (a, b) = match self.rule {
            Rule::SingleByte(_) | Rule::Codes(_) | Rule::Unicode(_) | Rule::Levels(_) => without_common_prefix(a, b),
            _ => (a, b),
        };
        match self.rule {
            Rule::Bytes => a.cmp(b),
            Rule::CodePoints if !self.pad_space => a.cmp(b),
            Rule::CodePoints => {
                let common = a.len().min(b.len());
                match a[..common].cmp(&b[..common]) {
                    Ordering::Equal if a.len() > common => against_spaces(&a[common..], |byte| byte),
                    Ordering::Equal => against_spaces(&b[common..], |byte| byte).reverse(),
                    unequal => unequal,
                }
            }
            Rule::SingleByte(weights) => {
                compare_padded(self.single_byte_weights(weights, a), self.single_byte_weights(weights, b), weights[0x20])
            }
            Rule::Codes(weights) => compare_padded(self.code_weights(weights, a), self.code_weights(weights, b), weights.ascii(b' ')),
            Rule::Unicode(weights) => compare_unicode(weights, a, b),
            Rule::Levels(levels) => levels.iter().map(|weights| compare_unicode(weights, a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal),
        }
    }

    /// Equality under the collation.
    pub fn eq(&self, a: &[u8], b: &[u8]) -> bool {
        a == b || !matches!(self.rule, Rule::Bytes) && self.compare(a, b) == Ordering::Equal
    }

    /// Appends a self-delimiting key (no key is a prefix of another) that orders by memcmp as the texts do under the
    /// collation; equal keys are equal texts.
    pub fn sort_key(&self, text: &[u8], out: &mut Vec<u8>) {
        match self.rule {
            Rule::Bytes => binary_key(text, out),
            Rule::CodePoints if !self.pad_space => binary_key(text, out),
            Rule::CodePoints => padded_key(text.iter().copied(), b' ', out),
            Rule::SingleByte(weights) => padded_key(self.single_byte_weights(weights, text), weights[0x20], out),
            Rule::Codes(weights) => padded_key(self.code_weights(weights, text), weights.ascii(b' '), out),
            Rule::Unicode(weights) => unicode_key(weights, text, out),
            Rule::Levels(levels) => levels.iter().for_each(|weights| unicode_key(weights, text, out)),
        }
    }

    /// Bytes of the sort key that `key` begins with.
    pub fn sort_key_len(&self, key: &[u8]) -> usize {
        let plain = |byte: u8| (byte == 0, if byte == 1 { 2 } else { 1 });
        match self.rule {
            Rule::Bytes => key_len(key, plain),
            Rule::CodePoints if !self.pad_space => key_len(key, plain),
            Rule::CodePoints => padded_key_len(key, b' '),
            Rule::SingleByte(weights) => padded_key_len(key, weights[0x20]),
            Rule::Codes(weights) => padded_key_len(key, weights.ascii(b' ')),
            Rule::Unicode(weights) => unicode_key_len(weights, key),
            Rule::Levels(levels) => levels.iter().fold(0, |at, weights| at + unicode_key_len(weights, &key[at..])),
        }
    }

    /// True if texts that are equal under the collation are equal to the byte, and the sort key has them.
    pub fn key_has_text(&self) -> bool {
        match self.rule {
            Rule::Bytes => true,
            // Under PAD SPACE trailing spaces are not in the key.
            Rule::CodePoints => !self.pad_space,
            Rule::SingleByte(_) | Rule::Codes(_) | Rule::Unicode(_) | Rule::Levels(_) => false,
        }
    }

    /// Appends the text of the sort key that `key` begins with, if the key has it: how many bytes the sort key is. `flip`: what every byte of the key is
    /// exclusive-ored with.
    pub fn push_text_of_key(&self, key: &[u8], flip: u8, out: &mut Vec<u8>) -> Option<usize> {
        if !self.key_has_text() {
            return None;
        }
        let mut at = 0;
        loop {
            let byte = key.get(at)? ^ flip;
            at += 1;
            match byte {
                0 => return Some(at),
                1 => {
                    out.push((key.get(at)? ^ flip).checked_sub(1)?);
                    at += 1;
                }
                byte => out.push(byte),
            }
        }
    }

    /// False if the beginnings of two texts may come in another order than the texts: an accent at the start counts less than a letter behind it.
    pub fn orders_prefixes(&self) -> bool {
        !matches!(self.rule, Rule::Levels(_))
    }

    /// What the sort keys of all texts that begin with a text begin with: that text's `key` without its end, of several levels the first one's.
    pub fn key_stem<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        let first = match self.rule {
            Rule::Levels([weights, ..]) => unicode_key_len(weights, key),
            _ => key.len(),
        };
        &key[..first.saturating_sub(1)]
    }

    /// Whether a text begins with another on each level, by their sort keys. Behind the first there may be other bytes.
    pub fn key_begins_with(&self, key: &[u8], beginning: &[u8]) -> bool {
        let Rule::Levels(levels) = self.rule else { return key.starts_with(self.key_stem(beginning)) };
        let (mut key, mut beginning) = (key, beginning);
        levels.iter().all(|weights| {
            let (level, others) = key.split_at(unicode_key_len(weights, key));
            let (wanted, rest) = beginning.split_at(unicode_key_len(weights, beginning));
            (key, beginning) = (others, rest);
            level.starts_with(&wanted[..wanted.len().saturating_sub(1)])
        })
    }

    /// A hash that is equal for equal texts.
    pub fn hash_text(&self, text: &[u8]) -> u64 {
        if let Rule::Bytes = self.rule {
            return hash_bytes(text);
        }
        HASH_KEY.with_borrow_mut(|key| {
            key.clear();
            self.sort_key(text, key);
            hash_bytes(key)
        })
    }

    /// WEIGHT_STRING()'s bytes.
    pub fn weight_string(&self, text: &[u8]) -> Vec<u8> {
        match self.rule {
            Rule::Bytes => text.to_vec(),
            Rule::CodePoints => {
                let unused = if matches!(self.charset, Charset::Utf8mb3 | Charset::Ucs2) { 2 } else { 1 };
                chars(text).flat_map(|c| c.to_be_bytes().into_iter().skip(unused)).collect()
            }
            Rule::SingleByte(weights) => self.single_byte_weights(weights, text).collect(),
            Rule::Codes(weights) => weights.weight_string(self.table(), text),
            Rule::Unicode(weights) => unicode_weight_string(weights, text),
            Rule::Levels(levels) => levels.iter().map(|weights| unicode_weight_string(weights, text)).collect::<Vec<_>>().join(&[0, 0][..]),
        }
    }

    /// LIKE; `escape` is `\` unless the query says otherwise, `None` for `ESCAPE ''`.
    pub fn like(&self, text: &[u8], pattern: &[u8], escape: Option<char>) -> bool {
        let escape_byte = match escape {
            Some(escape) if escape.is_ascii() => Some(escape as u8),
            Some(_) => return like::matches(self, text, pattern, escape),
            None => None,
        };
        match self.rule {
            Rule::Bytes => like::matches_ascii(text, pattern, escape_byte, |byte| byte),
            _ if !text.is_ascii() || !pattern.is_ascii() => like::matches(self, text, pattern, escape),
            Rule::CodePoints => like::matches_ascii(text, pattern, escape_byte, |byte| byte),
            Rule::SingleByte(weights) => like::matches_ascii(text, pattern, escape_byte, |byte| weights[usize::from(byte)]),
            Rule::Codes(weights) => like::matches_ascii(text, pattern, escape_byte, |byte| weights.ascii(byte)),
            Rule::Unicode(weights) => {
                let ascii = weights.ascii();
                like::matches_ascii(text, pattern, escape_byte, |byte| ascii[usize::from(byte & 0x7F)])
            }
            Rule::Levels(_) => like::matches(self, text, pattern, escape),
        }
    }

    /// The byte range of the first occurrence of `needle` in `text` under the collation, as LOCATE finds it: in UTF-8, MySQL compares as many bytes as the
    /// needle has, so a letter is found in one of its variants only if that has as many.
    pub fn find(&self, text: &[u8], needle: &[u8]) -> Option<std::ops::Range<usize>> {
        let mut start = 0;
        loop {
            let length = match self.rule {
                Rule::Unicode(_) | Rule::Levels(_) => self.equal_prefix(&text[start..], needle),
                _ => self.matched_prefix(&text[start..], needle),
            };
            if let Some(length) = length {
                return Some(start..start + length);
            }
            if start >= text.len() {
                return None;
            }
            start += self.char_len(&text[start..]);
        }
    }

    /// The needle's length, if as many bytes at the start of `text` are whole characters and equal to it.
    fn equal_prefix(&self, text: &[u8], needle: &[u8]) -> Option<usize> {
        let part = text.get(..needle.len())?;
        let whole = text.get(needle.len()).is_none_or(|next| next & 0xC0 != 0x80);
        let spaces = |text: &[u8]| text.iter().rev().take_while(|byte| **byte == b' ').count();
        (whole && spaces(part) == spaces(needle) && self.compare(part, needle) == Ordering::Equal).then_some(needle.len())
    }

    /// Bytes at the start of `text` that equal `needle`, character by character.
    fn matched_prefix(&self, text: &[u8], needle: &[u8]) -> Option<usize> {
        let (mut at, mut i) = (0, 0);
        while i < needle.len() {
            if at >= text.len() {
                return None;
            }
            let (n, m) = (self.char_len(&text[at..]), self.char_len(&needle[i..]));
            if !self.same_char(&text[at..at + n], &needle[i..i + m]) {
                return None;
            }
            at += n;
            i += m;
        }
        Some(at)
    }

    /// Bytes of the first character: one under `binary`.
    fn char_len(&self, text: &[u8]) -> usize {
        match self.rule {
            Rule::Bytes => 1,
            _ => utf8_len(text[0]).min(text.len()),
        }
    }

    /// True if two characters, given as bytes, are the same letter to the collation.
    fn same_char(&self, a: &[u8], b: &[u8]) -> bool {
        if a == b {
            return true;
        }
        match self.rule {
            Rule::Bytes | Rule::CodePoints => false,
            Rule::SingleByte(weights) => match (self.single_bytes(a).next(), self.single_bytes(b).next()) {
                (Some(a), Some(b)) => weights[usize::from(a)] == weights[usize::from(b)],
                _ => false,
            },
            Rule::Codes(weights) => {
                let weight = |text: &[u8]| weights.weight(self.table(), char::from_u32(decode(text).0).unwrap_or('?'));
                weight(a) == weight(b)
            }
            Rule::Unicode(weights) => {
                if let ([a], [b]) = (a, b)
                    && a.is_ascii()
                    && b.is_ascii()
                {
                    return weights.ascii()[usize::from(*a)] == weights.ascii()[usize::from(*b)];
                }
                have_same_weights(weights, a, b)
            }
            Rule::Levels(levels) => levels.iter().all(|weights| have_same_weights(weights, a, b)),
        }
    }

    /// The bytes of UTF-8 text in the collation's character set of single bytes; `?` for what it lacks.
    fn single_bytes<'a>(&self, text: &'a [u8]) -> SingleBytes<'a> {
        SingleBytes { table: self.charset.single_byte().expect("a collation with a weight for each byte has such a character set"), rest: text }
    }

    fn single_byte_weights<'a>(&self, weights: &'static [u8; 256], text: &'a [u8]) -> impl Iterator<Item = u8> + use<'a> {
        self.single_bytes(text).map(|c| weights[usize::from(c)])
    }

    fn code_weights<'a>(&self, weights: &'a CodeWeights, text: &'a [u8]) -> WeightBytes<'a> {
        weights.bytes(self.table(), text)
    }

    /// The character set's table.
    fn table(&self) -> &'static MultiByte {
        self.charset.multi_byte().expect("a collation with bytes for each character has such a character set")
    }

    /// UPPER(): character by character, so a character whose upper case is several stays (`ß`).  Text of the `binary`
    /// collation is unchanged.
    pub fn upper(&self, text: &str) -> String {
        if let Some(table) = self.charset.multi_byte().filter(|_| !text.is_ascii()) {
            return text.chars().map(|c| table.upper(c)).collect();
        }
        match self.charset.single_byte() {
            Some(table) if table.has_ascii_cases && text.is_ascii() => text.to_ascii_uppercase(),
            Some(table) => text.chars().map(|c| table.upper(c)).collect(),
            None if self.is_turkish() && text.contains('i') => self.upper(&text.replace('i', "İ")),
            None => self.map_case(text, str::to_ascii_uppercase, |c| {
                let mut upper = c.to_uppercase();
                (upper.len() == 1).then(|| upper.next()).flatten()
            }),
        }
    }

    /// LOWER(), as [`upper`](Collation::upper).
    pub fn lower(&self, text: &str) -> String {
        if let Some(table) = self.charset.multi_byte().filter(|_| !text.is_ascii()) {
            return text.chars().map(|c| table.lower(c)).collect();
        }
        match self.charset.single_byte() {
            Some(table) if table.has_ascii_cases && text.is_ascii() => text.to_ascii_lowercase(),
            Some(table) => text.chars().map(|c| table.lower(c)).collect(),
            None if self.is_turkish() && text.contains('I') => self.lower(&text.replace('I', "ı")),
            None => self.map_case(text, str::to_ascii_lowercase, |c| c.to_lowercase().next()),
        }
    }

    /// i and I are the cases of two letters, which have a dot or none.
    fn is_turkish(&self) -> bool {
        self.charset.is_unicode() && self.name.ends_with("_turkish_ci")
    }

    fn map_case(&self, text: &str, ascii: fn(&str) -> String, one: fn(char) -> Option<char>) -> String {
        if self.charset == Charset::Binary {
            return text.to_owned();
        }
        if text.is_ascii() {
            return ascii(text);
        }
        text.chars().map(|c| one(c).filter(|mapped| self.charset.can_encode(*mapped)).unwrap_or(c)).collect()
    }
}

/// Both texts behind what they share.  Weights do not depend on their neighbours, so what is shared decides nothing; the
/// cut is made between characters.
fn without_common_prefix<'t>(a: &'t [u8], b: &'t [u8]) -> (&'t [u8], &'t [u8]) {
    let word = |text: &[u8], at: usize| u64::from_ne_bytes(text[at..at + 8].try_into().unwrap_or_default());
    let common = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= common && word(a, at) == word(b, at) {
        at += 8;
    }
    while at < common && a[at] == b[at] {
        at += 1;
    }
    let is_inside = |text: &[u8], at: usize| text.get(at).is_some_and(|byte| byte & 0xC0 == 0x80);
    while at > 0 && (is_inside(a, at) || is_inside(b, at)) {
        at -= 1;
    }
    (&a[at..], &b[at..])
}

/// The rest of a longer text against the spaces that PAD SPACE supplies.
fn against_spaces(rest: &[u8], weight: impl Fn(u8) -> u8) -> Ordering {
    rest.iter().map(|byte| weight(*byte).cmp(&weight(b' '))).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Weights of one byte under PAD SPACE.
fn compare_padded(mut a: impl Iterator<Item = u8>, mut b: impl Iterator<Item = u8>, space: u8) -> Ordering {
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (Some(v), Some(w)) => v.cmp(&w),
            (Some(v), None) => v.cmp(&space),
            (None, Some(w)) => space.cmp(&w),
        };
        if order.is_ne() {
            return order;
        }
    }
}

fn compare_unicode(weights: &UnicodeWeights, a: &[u8], b: &[u8]) -> Ordering {
    let ascii = weights.ascii();
    let mut at = 0;
    let common = a.len().min(b.len());
    while at < common {
        let (x, y) = (a[at], b[at]);
        if (x | y) & 0x80 != 0 {
            break;
        }
        let (x, y) = (ascii[usize::from(x)], ascii[usize::from(y)]);
        if x == 0 || y == 0 {
            break;
        }
        if x != y {
            return x.cmp(&y);
        }
        at += 1;
    }
    if at == a.len() && at == b.len() {
        return Ordering::Equal;
    }
    let (mut x, mut y) = (WeightsOf::new(weights, &a[at..]), WeightsOf::new(weights, &b[at..]));
    loop {
        match (x.next(), y.next()) {
            (Some(v), Some(w)) if v == w => {}
            (Some(v), Some(w)) => return v.cmp(&w),
            (None, None) => return Ordering::Equal,
            (Some(v), None) => {
                let Some(space) = weights.space() else { return Ordering::Greater };
                return std::iter::once(v).chain(x).map(|v| v.cmp(&space)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal);
            }
            (None, Some(w)) => {
                let Some(space) = weights.space() else { return Ordering::Less };
                return std::iter::once(w).chain(y).map(|w| space.cmp(&w)).find(|o| o.is_ne()).unwrap_or(Ordering::Equal);
            }
        }
    }
}

/// Bytes with 0 and 1 escaped as 01 01 and 01 02, then 0.
fn binary_key(text: &[u8], out: &mut Vec<u8>) {
    out.reserve(text.len() + 1);
    let mut rest = text;
    while let Some(at) = rest.iter().position(|byte| *byte <= 1) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(&[1, rest[at] + 1]);
        rest = &rest[at + 1..];
    }
    out.extend_from_slice(rest);
    out.push(0);
}

/// Bytes of the key that `key` begins with. `code`: whether a byte is the key's end, and how long a code is that begins with it.
fn key_len(key: &[u8], code: impl Fn(u8) -> (bool, usize)) -> usize {
    let mut at = 0;
    while let Some(&byte) = key.get(at) {
        let (end, length) = code(byte);
        at += length;
        if end {
            break;
        }
    }
    at.min(key.len())
}

fn padded_key_len(key: &[u8], space: u8) -> usize {
    key_len(key, |byte| (byte == space + 1, if byte == 0xFF { 2 } else { 1 }))
}

fn unicode_key_len(weights: &UnicodeWeights, key: &[u8]) -> usize {
    key_len(key, |byte| (byte == weights.padding().end, if weights.is_long_code(byte) { 3 } else { 1 }))
}

/// The key of weights of one byte under PAD SPACE. `space`, the weight of a space, is less than 0xFD. The end is one more; a space before something
/// smaller is the weight itself, before something larger two more.
fn padded_key(weights: impl Iterator<Item = u8>, space: u8, out: &mut Vec<u8>) {
    let end = space + 1;
    let mut spaces = 0;
    for weight in weights {
        if weight == space {
            spaces += 1;
            continue;
        }
        if spaces > 0 {
            out.resize(out.len() + spaces, if weight < space { end - 1 } else { end + 1 });
            spaces = 0;
        }
        match weight {
            _ if weight < space => out.push(weight),
            ..0xFD => out.push(weight + 2),
            _ => out.extend_from_slice(&[0xFF, weight]),
        }
    }
    out.push(end);
}

fn unicode_weight_string(weights: &UnicodeWeights, text: &[u8]) -> Vec<u8> {
    WeightsOf::new(weights, text).flat_map(u16::to_be_bytes).collect()
}

/// True if the first characters of two texts have the same weights.
fn have_same_weights(weights: &UnicodeWeights, a: &[u8], b: &[u8]) -> bool {
    weights.weights(decode(a).0).as_slice() == weights.weights(decode(b).0).as_slice()
}

fn unicode_key(weights: &UnicodeWeights, text: &[u8], out: &mut Vec<u8>) {
    let ascii = weights.ascii();
    let padding = weights.padding();
    out.reserve(text.len() + 1);
    let mut spaces = 0;
    let mut at = 0;
    while at < text.len() {
        let byte = text[at];
        if byte < 0x80 {
            at += 1;
            let code = ascii[usize::from(byte)];
            if padding.is_padded && code == padding.end {
                spaces += 1;
            } else if code != 0 {
                flush_spaces(&mut spaces, code, padding.end, out);
                out.push(code);
            }
            continue;
        }
        let (c, length) = decode(&text[at..]);
        at += length;
        for unit in weights.weights(c).as_slice() {
            if Some(*unit) == weights.space() {
                spaces += 1;
                continue;
            }
            if spaces > 0 {
                let code = if *unit < weights.space().unwrap_or(0) { 0 } else { u8::MAX };
                flush_spaces(&mut spaces, code, padding.end, out);
            }
            weights.push_code(*unit, out);
        }
    }
    out.push(padding.end);
}

/// Writes the spaces that turned out not to be trailing, before `code`.
fn flush_spaces(spaces: &mut usize, code: u8, end: u8, out: &mut Vec<u8>) {
    if *spaces > 0 {
        out.resize(out.len() + *spaces, if code < end { end - 1 } else { end + 1 });
        *spaces = 0;
    }
}

/// Multiply-and-rotate over eight bytes at a time.
fn hash_bytes(bytes: &[u8]) -> u64 {
    const K: u64 = 0x517C_C1B7_2722_0A95;
    let mut hash = bytes.len() as u64;
    let mut chunks = bytes.chunks_exact(8);
    for chunk in &mut chunks {
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(chunk.try_into().unwrap_or_default())).wrapping_mul(K);
    }
    for byte in chunks.remainder() {
        hash = (hash.rotate_left(5) ^ u64::from(*byte)).wrapping_mul(K);
    }
    hash ^ hash >> 32
}

fn utf8_len(lead: u8) -> usize {
    match lead {
        0xC0..0xE0 => 2,
        0xE0..0xF0 => 3,
        0xF0.. => 4,
        _ => 1,
    }
}

/// The first code point of UTF-8 text and its length; a malformed byte is U+FFFD.
fn decode(text: &[u8]) -> (u32, usize) {
    let lead = text[0];
    let length = utf8_len(lead);
    if length == 1 {
        return (if lead < 0x80 { u32::from(lead) } else { 0xFFFD }, 1);
    }
    if text.len() < length {
        return (0xFFFD, 1);
    }
    let lead_bits = u32::from(lead) & (0x7F >> length);
    let c = text[1..length].iter().fold(lead_bits, |c, byte| c << 6 | u32::from(byte & 0x3F));
    if c > 0x10_FFFF { (0xFFFD, 1) } else { (c, length) }
}

fn chars(text: &[u8]) -> impl Iterator<Item = u32> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (c, length) = decode(rest);
        rest = &rest[length..];
        Some(c)
    })
}

struct SingleBytes<'a> {
    table: &'static SingleByte,
    rest: &'a [u8],
}

impl Iterator for SingleBytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let lead = *self.rest.first()?;
        if lead < 0x80 {
            self.rest = &self.rest[1..];
            return Some(lead);
        }
        let (c, length) = decode(self.rest);
        self.rest = &self.rest[length..];
        Some(char::from_u32(c).and_then(|c| self.table.byte_of(c)).unwrap_or(b'?'))
    }
}

/// The weights of a text, one by one.
struct WeightsOf<'a> {
    weights: &'a UnicodeWeights,
    rest: &'a [u8],
    current: Units,
    next: u8,
}

impl<'a> WeightsOf<'a> {
    fn new(weights: &'a UnicodeWeights, text: &'a [u8]) -> WeightsOf<'a> {
        WeightsOf { weights, rest: text, current: Units { units: [0; 8], len: 0 }, next: 0 }
    }
}

impl Iterator for WeightsOf<'_> {
    type Item = u16;

    fn next(&mut self) -> Option<u16> {
        while self.next >= self.current.len {
            if self.rest.is_empty() {
                return None;
            }
            let (c, length) = decode(self.rest);
            self.rest = &self.rest[length..];
            self.current = self.weights.weights(c);
            self.next = 0;
        }
        self.next += 1;
        Some(self.current.units[usize::from(self.next - 1)])
    }
}

/// By identity.
impl PartialEq for Collation {
    fn eq(&self, other: &Collation) -> bool {
        self.id == other.id
    }
}

impl Eq for Collation {}

impl Hash for Collation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl fmt::Debug for Collation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

#[cfg(test)]
mod tests;
