//! LIKE with a constant pattern.

use highkey_types::Collation;

/// A pattern, with what makes the usual ones fast: literal pieces between `%`, compared byte by byte while text and pattern are ASCII.
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
    parts: Vec<Vec<u8>>,
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

    pub fn matches(&self, text: &str) -> bool {
        match &self.pieces {
            Some(pieces) if is_plain(text.as_bytes()) => pieces.matches(text.as_bytes()),
            _ => self.collation.like(text.as_bytes(), self.pattern.as_bytes(), self.escape),
        }
    }
}

/// Printable ASCII: every collation but the binary ones orders and folds it as ASCII letters do, and none ignores any of it.
fn is_plain(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| (0x20..0x7f).contains(b))
}

fn pieces(pattern: &str, escape: Option<char>, collation: &Collation) -> Option<Pieces> {
    let escaped = escape.is_some_and(|e| pattern.contains(e));
    if escaped || pattern.contains('_') || !is_plain(pattern.as_bytes()) {
        return None;
    }
    let exact = collation.is_binary_order();
    let fold = |part: &str| if exact { part.as_bytes().to_vec() } else { part.to_ascii_lowercase().into_bytes() };
    Some(Pieces { parts: pattern.split('%').map(fold).collect(), exact })
}

impl Pieces {
    fn matches(&self, text: &[u8]) -> bool {
        let (first, rest) = self.parts.split_first().expect("split gives at least one part");
        let Some((last, middle)) = rest.split_last() else {
            return text.len() == first.len() && self.starts(text, first);
        };
        if text.len() < first.len() + last.len() || !self.starts(text, first) || !self.starts(&text[text.len() - last.len()..], last) {
            return false;
        }
        let mut text = &text[first.len()..text.len() - last.len()];
        for part in middle {
            match self.find(text, part) {
                Some(at) => text = &text[at + part.len()..],
                None => return false,
            }
        }
        true
    }

    fn starts(&self, text: &[u8], part: &[u8]) -> bool {
        let head = &text[..part.len().min(text.len())];
        if self.exact { head == part } else { head.eq_ignore_ascii_case(part) }
    }

    fn find(&self, text: &[u8], part: &[u8]) -> Option<usize> {
        if self.exact {
            return memchr::memmem::find(text, part);
        }
        let Some(&first) = part.first() else { return Some(0) };
        let end = (text.len() + 1).checked_sub(part.len())?;
        let mut from = 0;
        while from < end {
            let at = from + memchr::memchr2(first, first.to_ascii_uppercase(), &text[from..end])?;
            if text[at..at + part.len()].eq_ignore_ascii_case(part) {
                return Some(at);
            }
            from = at + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_match_as_like_does() {
        let matches = |pattern: &str, text: &str| pieces(pattern, Some('\\'), Collation::utf8mb4()).expect("plain pattern").matches(text.as_bytes());
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
