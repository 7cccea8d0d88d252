//! LIKE with a constant pattern.

use highkey_types::{AsciiCase, Collation};
use memchr::memmem::Finder;

/// A pattern, with what makes the usual ones fast: literal pieces between `%`, looked for as bytes while text and pattern are ASCII.
#[derive(Debug)]
pub(super) struct LikePattern {
    pattern: String,
    escape: Option<char>,
    collation: &'static Collation,
    pieces: Option<Pieces>,
}

#[derive(Debug)]
struct Pieces {
    /// Text between `%`, folded to lower case unless `exact`; the first and the last are anchored.
    parts: Vec<Finder<'static>>,
    exact: bool,
}

impl PartialEq for LikePattern {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern && self.escape == other.escape && self.collation == other.collation
    }
}

impl Eq for LikePattern {}

impl std::hash::Hash for LikePattern {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.pattern.hash(state);
        self.collation.hash(state);
    }
}

impl LikePattern {
    pub fn new(pattern: &str, escape: Option<char>, collation: &'static Collation) -> LikePattern {
        LikePattern { pieces: pieces(pattern, escape, collation), pattern: pattern.to_string(), escape, collation }
    }

    pub fn pattern(&self) -> &str {
        &self.pattern
    }

    /// `folded` is room for the text in lower case.
    pub fn matches(&self, text: &str, folded: &mut Vec<u8>) -> bool {
        match &self.pieces {
            Some(pieces) if is_plain(text.as_bytes()) => pieces.matches(text.as_bytes(), folded),
            _ => self.collation.like(text.as_bytes(), self.pattern.as_bytes(), self.escape),
        }
    }
}

/// Printable ASCII, none of which any collation ignores.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |plain, b| plain & (0x20..0x7f).contains(b))
}

fn pieces(pattern: &str, escape: Option<char>, collation: &Collation) -> Option<Pieces> {
    let escaped = escape.is_some_and(|e| pattern.contains(e));
    if escaped || pattern.contains('_') || !is_plain(pattern.as_bytes()) {
        return None;
    }
    let exact = collation.ascii_case()? == AsciiCase::Sensitive;
    let fold = |part: &str| if exact { part.as_bytes().to_vec() } else { part.to_ascii_lowercase().into_bytes() };
    Some(Pieces { parts: pattern.split('%').map(|part| Finder::new(&fold(part)).into_owned()).collect(), exact })
}

impl Pieces {
    fn matches(&self, text: &[u8], folded: &mut Vec<u8>) -> bool {
        let text = if self.exact {
            text
        } else {
            folded.clear();
            folded.extend(text.iter().map(u8::to_ascii_lowercase));
            folded
        };
        let (first, rest) = self.parts.split_first().expect("split gives at least one part");
        let Some((last, middle)) = rest.split_last() else { return text == first.needle() };
        // Comparing nothing is not free: memcmp may look at where an empty needle would be, and fault there.
        let text = if first.needle().is_empty() { Some(text) } else { text.strip_prefix(first.needle()) };
        let text = text.and_then(|text| if last.needle().is_empty() { Some(text) } else { text.strip_suffix(last.needle()) });
        let Some(mut text) = text else { return false };
        for part in middle {
            match part.find(text) {
                Some(at) => text = &text[at + part.needle().len()..],
                None => return false,
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_match_as_like_does() {
        let matches = |pattern: &str, text: &str| pieces(pattern, Some('\\'), Collation::utf8mb4()).expect("plain pattern").matches(text.as_bytes(), &mut Vec::new());
        assert!(matches("%Special%requests%", "a sPecial case of REQUESTS here"));
        assert!(!matches("%special%requests%", "requests special"));
        assert!(matches("PROMO%", "promo x") && !matches("PROMO%", "a promo"));
        assert!(matches("%BRASS", "large brass") && !matches("%BRASS", "brassy"));
        assert!(matches("abc", "ABC") && !matches("abc", "abcd"));
        assert!(matches("a%a", "aa") && !matches("a%a", "a"));
        assert!(matches("%", "") && matches("%%", "x"));
        assert!(pieces("a_c", Some('\\'), Collation::utf8mb4()).is_none());
    }
}
