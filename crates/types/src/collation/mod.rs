//! Collations: how text compares, sorts and matches LIKE.
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use crate::Charset;

/// A collation of MySQL; compare by address or id.  Text arguments are UTF-8, except for `binary`.
#[derive(Debug)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule { Bytes }
static BINARY: Collation = Collation { id: 63, name: "binary", charset: Charset::Binary, pad_space: false, is_default: true, rule: Rule::Bytes };
impl Collation {
    pub fn all() -> &'static [Collation] { unimplemented!() }
    pub fn by_name(_name: &str) -> Option<&'static Collation> { unimplemented!() }
    pub fn by_id(_id: u16) -> Option<&'static Collation> { unimplemented!() }
    pub fn default_of(_charset: Charset) -> &'static Collation { unimplemented!() }
    /// The `_bin` collation of a character set.
    pub fn binary_of(_charset: Charset) -> &'static Collation { unimplemented!() }
    /// `binary`.
    pub fn binary() -> &'static Collation { &BINARY }
    /// utf8mb4_0900_ai_ci.
    pub fn utf8mb4() -> &'static Collation { unimplemented!() }
    /// True for `binary` and the `_bin` collations.
    pub fn is_binary_order(&self) -> bool { self.rule == Rule::Bytes }
    pub fn compare(&self, _a: &[u8], _b: &[u8]) -> Ordering { unimplemented!() }
    pub fn eq(&self, _a: &[u8], _b: &[u8]) -> bool { unimplemented!() }
    /// Appends a self-delimiting key (no key is a prefix of another) that orders by memcmp as the texts do under the
    /// collation; equal keys are equal texts.
    pub fn sort_key(&self, _text: &[u8], _out: &mut Vec<u8>) { unimplemented!() }
    /// A hash that is equal for equal texts.
    pub fn hash(&self, _text: &[u8]) -> u64 { unimplemented!() }
    /// WEIGHT_STRING()'s bytes.
    pub fn weight_string(&self, _text: &[u8]) -> Vec<u8> { unimplemented!() }
    /// LIKE; `escape` is `\\` by default, `None` for `ESCAPE ''`.
    pub fn like(&self, _text: &[u8], _pattern: &[u8], _escape: Option<char>) -> bool { unimplemented!() }
    /// UPPER(); binary strings are unchanged.
    pub fn upper(&self, _text: &str) -> String { unimplemented!() }
    pub fn lower(&self, _text: &str) -> String { unimplemented!() }
}
impl PartialEq for Collation { fn eq(&self, other: &Collation) -> bool { self.id == other.id } }
impl Eq for Collation {}
impl Hash for Collation { fn hash<H: Hasher>(&self, state: &mut H) { self.id.hash(state) } }
