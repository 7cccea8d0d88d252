//! Statements of the text protocol that come again with other values (`SELECT c FROM t WHERE id = 7`) or word for word (`COMMIT`): parsed and
//! bound once, like prepared ones.
//!
//! A text is cut into its numbers and strings and the pieces between them. A statement that was made of one text serves every other text with the
//! same pieces and the same kinds of values between them. Literals that are compared with a column or put into one have become its parameters;
//! those elsewhere (`LIMIT 10`, `k + 1`, part of a comment) decide what the statement is and have to be the same.
//!
//! The other text would be parsed to the same statement: left of a parameter both are the same, so the lexer comes to it in the same state. There
//! it takes a whole literal of one kind in both (a run of digits; a string without escapes), as the first text's tokens show and as the same piece
//! goes on behind it. And the parser does not look at the values of such literals.

use std::collections::HashMap;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

use highkey_types::{Charset, Collation, Decimal, Str, Value};
use memchr::memchr2;
use smallvec::SmallVec;

use super::PreparedStatement;
use crate::parse::ast::{BinaryOp, Expr, ExprKind, InsertSource, Literal, QueryBody, Statement, UnaryOp};
use crate::parse::{ParseOptions, Parsed};

/// Longer texts rarely come again.
const LENGTH_MAX: usize = 4096;
/// With more, the time goes into the values anyway.
const CUTS_MAX: usize = 64;
/// When there are more, all are forgotten.
const PATTERNS_MAX: usize = 128;
/// Patterns that differ only in literals that are no parameters: beyond this the oldest goes.
const VARIANTS_MAX: usize = 4;
const SEEN: usize = 256;
/// Digits of an integer that surely fits, and of a number with a point.
const INTEGER_DIGITS: usize = 18;
const DECIMAL_DIGITS: usize = 30;

/// `highkey_statement_patterns`: which statements of the text protocol are kept for others with the same pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementPatterns {
    Off,
    /// Those that come for the second time.
    Auto,
    /// All that can be, from the first time on.
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LiteralKind {
    Integer,
    Decimal,
    Text,
}

/// Where a text has a number or a string, quotes included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cut {
    start: usize,
    end: usize,
    kind: LiteralKind,
}

/// A text and where it is cut.
pub struct CutText<'t> {
    text: &'t str,
    cuts: SmallVec<[Cut; 8]>,
}

impl<'t> CutText<'t> {
    /// `None` for texts that no pattern is made of.
    pub fn new(text: &'t str) -> Option<CutText<'t>> {
        if text.len() > LENGTH_MAX {
            return None;
        }
        let bytes = text.as_bytes();
        let mut cuts = SmallVec::new();
        let (mut at, mut in_word) = (0, false);
        while let Some(&byte) = bytes.get(at) {
            let digits = |from: usize| from + bytes[from..].iter().take_while(|b| b.is_ascii_digit()).count();
            if byte.is_ascii_digit() && !in_word {
                let start = at;
                at = digits(at);
                let mut kind = LiteralKind::Integer;
                if bytes.get(at) == Some(&b'.') && digits(at + 1) > at + 1 {
                    at = digits(at + 1);
                    kind = LiteralKind::Decimal;
                }
                cuts.push(Cut { start, end: at, kind });
                // `1e5`, `5a`.
                in_word = true;
            } else if byte == b'\'' {
                let end = at + 1 + memchr2(b'\'', b'\\', &bytes[at + 1..])?;
                if bytes[end] == b'\\' || bytes.get(end + 1) == Some(&b'\'') {
                    return None;
                }
                cuts.push(Cut { start: at, end: end + 1, kind: LiteralKind::Text });
                (at, in_word) = (end + 1, false);
            } else {
                in_word = byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80;
                at += 1;
                continue;
            }
            if cuts.len() > CUTS_MAX {
                return None;
            }
        }
        Some(CutText { text, cuts })
    }

    /// The pieces between the cuts, the one behind the last included.
    fn pieces(&self) -> impl Iterator<Item = &'t [u8]> + '_ {
        let ends = self.cuts.iter().map(|cut| cut.start).chain([self.text.len()]);
        let starts = [0].into_iter().chain(self.cuts.iter().map(|cut| cut.end));
        starts.zip(ends).map(|(start, end)| &self.text.as_bytes()[start..end])
    }

    fn hash(&self, hasher: &ahash::RandomState) -> u64 {
        let mut state = hasher.build_hasher();
        self.pieces().for_each(|piece| piece.hash(&mut state));
        self.cuts.iter().for_each(|cut| cut.kind.hash(&mut state));
        state.finish()
    }

    fn literal(&self, cut: Cut) -> &'t str {
        &self.text[cut.start..cut.end]
    }

    /// The value of a parameter here; `None` if it is one that the parser makes something else of.
    fn value(&self, cut: Cut, negative: bool, collation: &Collation) -> Option<Value> {
        let text = self.literal(cut);
        Some(match cut.kind {
            LiteralKind::Integer if text.len() <= INTEGER_DIGITS => {
                let n: i64 = text.parse().ok()?;
                Value::Int(if negative { -n } else { n })
            }
            LiteralKind::Decimal if text.len() <= DECIMAL_DIGITS => {
                let decimal: Decimal = text.parse().ok()?;
                Value::Decimal(if negative { decimal.neg() } else { decimal })
            }
            LiteralKind::Integer | LiteralKind::Decimal => return None,
            LiteralKind::Text => {
                let inner = &text[1..text.len() - 1];
                if collation.charset == Charset::Binary { Value::Bytes(inner.as_bytes().to_vec()) } else { Value::Text(Str::from(inner)) }
            }
        })
    }
}

/// What a literal is to its statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Slot {
    Fixed,
    Param { index: usize, negative: bool },
}

/// A kept statement. Its text is one of those that it serves.
struct Pattern {
    statement: Arc<PreparedStatement>,
    cuts: SmallVec<[Cut; 8]>,
    slots: SmallVec<[Slot; 8]>,
}

impl Pattern {
    fn new(cut: &CutText<'_>, mut parsed: Parsed) -> Pattern {
        let mut slots: SmallVec<[Slot; 8]> = smallvec::smallvec![Slot::Fixed; cut.cuts.len()];
        let mut params = 0;
        for_each_value(&mut parsed.statement, &mut |expr| {
            let (literal, negative) = match &expr.kind {
                ExprKind::Unary { op: UnaryOp::Minus, expr } => (&**expr, true),
                _ => (&*expr, false),
            };
            let kind = match &literal.kind {
                ExprKind::Literal(Literal::Int(_)) => LiteralKind::Integer,
                ExprKind::Literal(Literal::Decimal(_)) => LiteralKind::Decimal,
                ExprKind::Literal(Literal::String { introducer: None, .. }) if !negative => LiteralKind::Text,
                _ => return,
            };
            let at = cut.cuts.iter().position(|c| (c.start, c.end, c.kind) == (literal.span.start, literal.span.end, kind));
            let Some(at) = at.filter(|at| cut.value(cut.cuts[*at], negative, Collation::utf8mb4()).is_some()) else { return };
            slots[at] = Slot::Param { index: params, negative };
            expr.kind = ExprKind::Param(params);
            params += 1;
        });
        parsed.params = params;
        let statement = Arc::new(PreparedStatement { from_text: true, ..PreparedStatement::new(cut.text.into(), parsed) });
        Pattern { statement, cuts: cut.cuts.clone(), slots }
    }

    fn text(&self) -> CutText<'_> {
        CutText { text: &self.statement.text, cuts: self.cuts.clone() }
    }

    /// The literals that are no parameters.
    fn fixed<'a>(&'a self, cut: &'a CutText<'_>) -> impl Iterator<Item = &'a str> {
        self.slots.iter().zip(&cut.cuts).filter(|(slot, _)| **slot == Slot::Fixed).map(|(_, at)| cut.literal(*at))
    }

    /// Fills in the parameters of a text that the statement serves; false for any other.
    fn serves(&self, cut: &CutText<'_>, collation: &Collation, params: &mut Vec<Value>) -> bool {
        let own = self.text();
        let same = own.cuts.len() == cut.cuts.len()
            && own.cuts.iter().zip(&cut.cuts).all(|(a, b)| a.kind == b.kind)
            && own.pieces().eq(cut.pieces())
            && self.fixed(&own).eq(self.fixed(cut));
        if !same {
            return false;
        }
        params.clear();
        params.resize(self.statement.params, Value::Null);
        self.slots.iter().zip(&cut.cuts).all(|(slot, at)| match slot {
            Slot::Fixed => true,
            Slot::Param { index, negative } => cut.value(*at, *negative, collation).map(|value| params[*index] = value).is_some(),
        })
    }
}

/// The patterns of one session.
pub struct Patterns {
    hasher: ahash::RandomState,
    /// Hashes of what came once, by their low bits.
    seen: Box<[u64; SEEN]>,
    kept: HashMap<u64, Vec<Pattern>, ahash::RandomState>,
    count: usize,
    options: ParseOptions,
}

impl Default for Patterns {
    fn default() -> Self {
        Patterns { hasher: ahash::RandomState::new(), seen: Box::new([0; SEEN]), kept: HashMap::default(), count: 0, options: ParseOptions::default() }
    }
}

impl Patterns {
    /// The statement that serves this text under the same rules of reading, and with the text's values in `params`. Strings are values of
    /// `collation`.
    pub fn find(&self, cut: &CutText<'_>, options: ParseOptions, collation: &Collation, params: &mut Vec<Value>) -> Option<Arc<PreparedStatement>> {
        if self.options != options || self.count == 0 {
            return None;
        }
        let variants = self.kept.get(&cut.hash(&self.hasher))?;
        variants.iter().find(|pattern| pattern.serves(cut, collation, params)).map(|pattern| pattern.statement.clone())
    }

    /// Keeps a text's statement for others; unless `at_once`, only if one like it came before.
    pub fn note(&mut self, cut: &CutText<'_>, options: ParseOptions, parsed: Parsed, at_once: bool) {
        let serves = matches!(
            parsed.statement,
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Begin { .. } | Statement::Commit { .. } | Statement::Rollback { .. }
        );
        if !serves {
            return;
        }
        if self.options != options {
            self.clear();
            self.options = options;
        }
        let hash = cut.hash(&self.hasher);
        if !at_once && !self.seen(hash, 0) {
            return;
        }
        let pattern = Pattern::new(cut, parsed);
        if !at_once && pattern.slots.contains(&Slot::Fixed) {
            let mut state = self.hasher.build_hasher();
            hash.hash(&mut state);
            pattern.fixed(cut).for_each(|literal| literal.hash(&mut state));
            if !self.seen(state.finish(), 1) {
                return;
            }
        }
        if self.count >= PATTERNS_MAX {
            self.clear();
        }
        let variants = self.kept.entry(hash).or_default();
        if variants.len() >= VARIANTS_MAX {
            variants.remove(0);
            self.count -= 1;
        }
        variants.push(pattern);
        self.count += 1;
    }

    fn clear(&mut self) {
        self.kept.clear();
        self.count = 0;
    }

    /// Whether it was seen before; now it has been. A text without its fixed literals and with them have a `half` each: in the same place neither would be
    /// known for ever.
    fn seen(&mut self, hash: u64, half: usize) -> bool {
        let slot = &mut self.seen[half * (SEEN / 2) + hash as usize % (SEEN / 2)];
        std::mem::replace(slot, hash) == hash
    }
}

/// Calls `f` with what a statement compares its columns with or puts into them: where a parameter means what a literal does.
fn for_each_value(statement: &mut Statement, f: &mut dyn FnMut(&mut Expr)) {
    match statement {
        Statement::Query(query) => {
            if let QueryBody::Select(select) = &mut query.body {
                select.filter.iter_mut().for_each(|filter| compared(filter, f));
            }
        }
        Statement::Insert(insert) => {
            if let InsertSource::Values(rows) = &mut insert.source {
                rows.iter_mut().flatten().for_each(&mut *f);
            }
            insert.on_duplicate.iter_mut().for_each(|assignment| f(&mut assignment.value));
        }
        Statement::Update(update) => {
            update.assignments.iter_mut().for_each(|assignment| f(&mut assignment.value));
            update.filter.iter_mut().for_each(|filter| compared(filter, f));
        }
        Statement::Delete(delete) => delete.filter.iter_mut().for_each(|filter| compared(filter, f)),
        _ => {}
    }
}

fn compared(condition: &mut Expr, f: &mut dyn FnMut(&mut Expr)) {
    let is_column = |e: &Expr| matches!(e.kind, ExprKind::Column(_));
    match &mut condition.kind {
        ExprKind::Binary { op: BinaryOp::And | BinaryOp::Or, left, right } => {
            compared(left, f);
            compared(right, f);
        }
        ExprKind::Unary { op: UnaryOp::Not, expr } => compared(expr, f),
        ExprKind::Binary { op: BinaryOp::Eq | BinaryOp::NullSafeEq | BinaryOp::Ne | BinaryOp::Lt | BinaryOp::Le | BinaryOp::Gt | BinaryOp::Ge, left, right } => {
            if is_column(left) {
                f(right);
            } else if is_column(right) {
                f(left);
            }
        }
        ExprKind::Between { expr, low, high, .. } if is_column(expr) => {
            f(low);
            f(high);
        }
        ExprKind::InList { expr, list, .. } if is_column(expr) => list.iter_mut().for_each(f),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse;

    fn keep(patterns: &mut Patterns, text: &str) {
        let cut = CutText::new(text).expect("can be cut");
        patterns.note(&cut, ParseOptions::default(), parse::parse(text, 0, ParseOptions::default()).unwrap(), true);
    }

    /// The values with which a kept statement serves `text`.
    fn find(patterns: &Patterns, text: &str) -> Option<Vec<Value>> {
        let mut params = Vec::new();
        patterns.find(&CutText::new(text)?, ParseOptions::default(), Collation::utf8mb4(), &mut params).map(|_| params)
    }

    #[track_caller]
    fn assert_serves(first: &str, other: &str, values: Option<&[Value]>) {
        let mut patterns = Patterns::default();
        keep(&mut patterns, first);
        assert_eq!(find(&patterns, other).as_deref(), values, "{first} for {other}");
    }

    #[test]
    fn values_are_parameters() {
        let select = "SELECT c FROM t WHERE id=7";
        assert_serves(select, "SELECT c FROM t WHERE id=123456", Some(&[Value::Int(123_456)]));
        assert_serves("SELECT c FROM t WHERE 7 < id", "SELECT c FROM t WHERE 8 < id", Some(&[Value::Int(8)]));
        assert_serves("SELECT c FROM t WHERE id= -7", "SELECT c FROM t WHERE id= -8", Some(&[Value::Int(-8)]));
        assert_serves(
            "INSERT INTO t VALUES (1,'a',2.5,NULL)",
            "INSERT INTO t VALUES (30,'ß? \"x\" -- 1',0.125,NULL)",
            Some(&[Value::Int(30), Value::text("ß? \"x\" -- 1"), Value::Decimal("0.125".parse().unwrap())]),
        );
        // SET stands before WHERE, and the values of a row before those of ON DUPLICATE KEY UPDATE.
        assert_serves("UPDATE t SET a = 1 WHERE id IN (2, 3)", "UPDATE t SET a = 4 WHERE id IN (5, 6)", Some(&[Value::Int(4), Value::Int(5), Value::Int(6)]));
        assert_serves("DELETE FROM t WHERE a BETWEEN 1 AND 2 OR NOT b = 'x'", "DELETE FROM t WHERE a BETWEEN 3 AND 4 OR NOT b = ''", Some(&[Value::Int(3), Value::Int(4), Value::text("")]));
        assert_serves("COMMIT", "COMMIT", Some(&[]));
    }

    #[test]
    fn other_pieces_are_another_statement() {
        let select = "SELECT c FROM t WHERE id=7";
        for other in [
            "SELECT c FROM t WHERE id=7 ",
            "SELECT c FROM t WHERE ik=7",
            "select c FROM t WHERE id=7",
            "SELECT c FROM t WHERE id='7'",
            "SELECT c FROM t WHERE id=7.0",
            "SELECT c FROM t WHERE id=7e1",
            "SELECT c FROM t WHERE id=0x7",
            "SELECT c FROM t WHERE id=7 7",
            "SELECT c FROM t WHERE id=9223372036854775807",
            "SELECT c FROM t WHERE id=-7",
            "SELECT c FROM t WHERE id=?",
            "SELECT c FROM t WHERE id=7;SELECT 1",
        ] {
            assert_serves(select, other, None);
        }
        let string = "SELECT c FROM t WHERE a='x' AND b='y'";
        assert_serves(string, "SELECT c FROM t WHERE a='x\\' AND b='y'", None);
        assert_serves(string, "SELECT c FROM t WHERE a='x' 'z' AND b='y'", None);
        assert_serves(string, "SELECT c FROM t WHERE a='x''z' AND b='y'", None);
        assert_serves(string, "SELECT c FROM t WHERE a='x AND b='y'", None);
    }

    #[test]
    fn literals_elsewhere_have_to_be_the_same() {
        for (first, same, other) in [
            ("SELECT c FROM t WHERE id=1 LIMIT 10", "SELECT c FROM t WHERE id=2 LIMIT 10", "SELECT c FROM t WHERE id=2 LIMIT 11"),
            ("SELECT 1 FROM t WHERE id=1", "SELECT 1 FROM t WHERE id=2", "SELECT 2 FROM t WHERE id=1"),
            ("UPDATE t SET k=k+1 WHERE id=1", "UPDATE t SET k=k+1 WHERE id=2", "UPDATE t SET k=k+2 WHERE id=2"),
            ("SELECT a FROM t WHERE b='x' /* 5 */", "SELECT a FROM t WHERE b='y' /* 5 */", "SELECT a FROM t WHERE b='y' /* 6 */"),
            ("SELECT a FROM t WHERE b=_latin1'x' AND c=1", "SELECT a FROM t WHERE b=_latin1'x' AND c=2", "SELECT a FROM t WHERE b=_latin1'y' AND c=1"),
            ("SELECT a FROM t WHERE b=N'x' AND c=1", "SELECT a FROM t WHERE b=N'x' AND c=2", "SELECT a FROM t WHERE b=N'y' AND c=1"),
            ("SELECT a FROM t WHERE b=x'10' AND c=1", "SELECT a FROM t WHERE b=x'10' AND c=2", "SELECT a FROM t WHERE b=x'11' AND c=1"),
            ("SELECT a FROM t WHERE b=DATE '2020-01-01' AND c=1", "SELECT a FROM t WHERE b=DATE '2020-01-01' AND c=2", "SELECT a FROM t WHERE b=DATE '2020-01-02' AND c=1"),
            ("SELECT a FROM t WHERE b LIKE 'x' AND c=1", "SELECT a FROM t WHERE b LIKE 'x' AND c=2", "SELECT a FROM t WHERE b LIKE 'y' AND c=1"),
            ("SELECT a FROM t WHERE b='x' 'z' AND c=1", "SELECT a FROM t WHERE b='x' 'z' AND c=2", "SELECT a FROM t WHERE b='y' 'z' AND c=1"),
            ("SELECT a FROM t1 WHERE b=1e5 AND c=1", "SELECT a FROM t1 WHERE b=1e5 AND c=2", "SELECT a FROM t1 WHERE b=2e5 AND c=1"),
            ("SELECT a FROM t WHERE b=.5 AND c=1", "SELECT a FROM t WHERE b=.5 AND c=2", "SELECT a FROM t WHERE b=.6 AND c=1"),
            ("SELECT a FROM t WHERE \"it's 5's\"='x' AND c=1", "SELECT a FROM t WHERE \"it's 5's\"='x' AND c=2", "SELECT a FROM t WHERE \"it's 6's\"='x' AND c=1"),
        ] {
            let mut patterns = Patterns::default();
            keep(&mut patterns, first);
            assert!(find(&patterns, same).is_some(), "{first} for {same}");
            assert_eq!(find(&patterns, other), None, "{first} for {other}");
            keep(&mut patterns, other);
            assert!(find(&patterns, same).is_some() && find(&patterns, other).is_some(), "{first} beside {other}");
        }
    }

    #[test]
    fn what_comes_again_is_kept() {
        let mut patterns = Patterns::default();
        let note = |patterns: &mut Patterns, text: &str| {
            let cut = CutText::new(text).unwrap();
            patterns.note(&cut, ParseOptions::default(), parse::parse(text, 0, ParseOptions::default()).unwrap(), false);
            find(patterns, text).is_some()
        };
        assert!(!note(&mut patterns, "SELECT a FROM t WHERE b = 1"));
        assert!(note(&mut patterns, "SELECT a FROM t WHERE b = 2"));
        // The limit is no parameter: the same has to come again.
        assert!(!note(&mut patterns, "SELECT a FROM t WHERE b = 1 LIMIT 1"));
        assert!(!note(&mut patterns, "SELECT a FROM t WHERE b = 1 LIMIT 2"));
        assert!(note(&mut patterns, "SELECT a FROM t WHERE b = 3 LIMIT 2"));
        for limit in 10..20 {
            note(&mut patterns, &format!("SELECT a FROM t WHERE b = 1 LIMIT {limit}"));
            assert!(note(&mut patterns, &format!("SELECT a FROM t WHERE b = 2 LIMIT {limit}")));
        }
        assert_eq!(patterns.count, 1 + VARIANTS_MAX);
        for table in 0..2 * PATTERNS_MAX {
            note(&mut patterns, &format!("SELECT a FROM u{table}"));
            assert!(note(&mut patterns, &format!("SELECT a FROM u{table}")));
        }
        assert!(patterns.count <= PATTERNS_MAX && patterns.kept.values().map(Vec::len).sum::<usize>() == patterns.count);
        // Other rules of reading: nothing is known.
        let ansi = ParseOptions { ansi_quotes: true, ..ParseOptions::default() };
        assert!(patterns.find(&CutText::new("SELECT a FROM u1").unwrap(), ansi, Collation::utf8mb4(), &mut Vec::new()).is_none());
    }
}
