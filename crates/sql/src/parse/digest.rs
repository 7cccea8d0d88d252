//! The digest text of a statement: its tokens with `?` for values, by which statements that differ in their values only are one.
//!
//! As MySQL writes it: words that are MySQL's in upper case, names in backquotes, lists of values as `...`, rows of values as `(...)`, several such
//! rows as `(...) /* , ... */`. The text is for people and for grouping; it is not promised to be MySQL's letter by letter.

use super::lexer::{Tok, Token};

/// Longest digest text, in bytes; what comes later in a statement does not tell it from another one (`performance_schema_max_digest_length`).
pub const LENGTH_MAX: usize = 1024;

/// Words that are no reserved ones and yet hardly ever names.
const WORDS: &[&str] = &[
    "AUTO_INCREMENT", "BEGIN", "CHAIN", "COMMIT", "COMMITTED", "CONSISTENT", "DUPLICATE", "ENGINE", "GLOBAL", "ISOLATION", "LOCAL", "LOCKED", "NAMES", "NOWAIT",
    "OFFSET", "PERSIST", "PROCESSLIST", "REPEATABLE", "ROLLBACK", "ROLLUP", "SAVEPOINT", "SERIALIZABLE", "SESSION", "SHARE", "SKIP", "SNAPSHOT", "START",
    "TRANSACTION", "TRUNCATE", "UNCOMMITTED", "VARIABLES", "WARNINGS",
];

/// Reserved words that are values: a sign behind them is an operator.
const OPERANDS: &[&str] = &[
    "CURRENT_DATE", "CURRENT_TIME", "CURRENT_TIMESTAMP", "FALSE", "LOCALTIME", "LOCALTIMESTAMP", "TRUE", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP",
];

/// Functions that MySQL's grammar knows; with a parenthesis behind them they are no names.
const FUNCTIONS: &[&str] = &[
    "AVG", "BIT_AND", "BIT_OR", "BIT_XOR", "CAST", "COUNT", "CURDATE", "CURTIME", "DATE_ADD", "DATE_SUB", "EXTRACT", "GROUP_CONCAT", "MAX", "MIN", "NOW",
    "POSITION", "STD", "STDDEV", "STDDEV_POP", "STDDEV_SAMP", "SUBSTR", "SUBSTRING", "SUM", "SYSDATE", "TRIM", "VARIANCE", "VAR_POP", "VAR_SAMP",
];

/// The digest text of the statement with these tokens.
pub(super) fn text(sql: &str, tokens: &[Token]) -> Box<str> {
    let length = tokens.last().map_or(0, |t| t.end.saturating_sub(tokens[0].start));
    let mut digest = Digest { sql, tokens, out: String::with_capacity((length + length / 2).min(LENGTH_MAX + 64)), operand: false };
    digest.write();
    digest.out.into_boxed_str()
}

struct Digest<'a> {
    sql: &'a str,
    tokens: &'a [Token],
    out: String,
    /// The last token ends an operand: a sign behind it is an operator.
    operand: bool,
}

impl Digest<'_> {
    fn kind(&self, at: usize) -> &Tok {
        self.tokens.get(at).map_or(&Tok::End, |t| &t.kind)
    }

    fn word(&self, at: usize) -> Option<&str> {
        let token = self.tokens.get(at)?;
        matches!(token.kind, Tok::Word { .. }).then(|| &self.sql[token.start..token.end])
    }

    fn is_word(&self, at: usize, word: &str) -> bool {
        self.word(at).is_some_and(|w| w.eq_ignore_ascii_case(word))
    }

    /// Of symbols that no other one begins with.
    fn is_sym(&self, at: usize, symbol: u8) -> bool {
        matches!(self.tokens.get(at), Some(Token { kind: Tok::Sym(s), .. }) if s.as_bytes()[0] == symbol)
    }

    /// The place behind the value that begins at `at`, if there is one.
    fn value(&self, at: usize, after_operand: bool) -> Option<usize> {
        match self.kind(at) {
            Tok::Str { .. } => {
                // Strings side by side are one.
                let mut end = at + 1;
                while matches!(self.kind(end), Tok::Str { .. }) {
                    end += 1;
                }
                Some(end)
            }
            Tok::Int(_) | Tok::Decimal | Tok::Float | Tok::Hex(_) | Tok::Bit(_) | Tok::Param => Some(at + 1),
            Tok::Sym("-" | "+") if !after_operand && matches!(self.kind(at + 1), Tok::Int(_) | Tok::Decimal | Tok::Float | Tok::Param) => Some(at + 2),
            Tok::Word { reserved: true } if self.tokens[at].end - self.tokens[at].start == 4 && self.is_word(at, "NULL") && !(at > 0 && (self.is_word(at - 1, "IS") || self.is_word(at - 1, "NOT"))) => Some(at + 1),
            // A character set in front of a string: `_utf8mb4'a'`.
            Tok::Word { reserved: false } if matches!(self.kind(at + 1), Tok::Str { .. } | Tok::Hex(_) | Tok::Bit(_)) && self.word(at).is_some_and(|w| w.starts_with('_')) => Some(at + 2),
            _ => None,
        }
    }

    /// The place behind `(value, …)` at `at`, and whether there are several values in it.
    fn row(&self, at: usize) -> Option<(usize, bool)> {
        if !self.is_sym(at, b'(') {
            return None;
        }
        let (end, several) = self.values(at + 1)?;
        self.is_sym(end, b')').then_some((end + 1, several))
    }

    fn values(&self, at: usize) -> Option<(usize, bool)> {
        let mut end = self.value(at, false)?;
        let mut several = false;
        while self.is_sym(end, b',') {
            let Some(next) = self.value(end + 1, false) else { break };
            (end, several) = (next, true);
        }
        Some((end, several))
    }

    fn push(&mut self, text: &str) {
        if self.out.as_bytes().last().is_some_and(|last| *last != b'@') {
            self.out.push(' ');
        }
        self.out.push_str(text);
    }

    fn write(&mut self) {
        let mut at = 0;
        while !matches!(self.kind(at), Tok::End) {
            if self.out.len() >= LENGTH_MAX {
                self.out.push_str(" ...");
                return;
            }
            at = self.next(at);
            if self.out.len() > 2 * LENGTH_MAX {
                // A name or a hint may be as long as a packet.
                self.out.truncate(self.out.floor_char_boundary(LENGTH_MAX));
                self.out.shrink_to_fit();
                self.out.push_str(" ...");
                return;
            }
        }
    }

    /// Writes what is at `at`; the place behind it.
    fn next(&mut self, at: usize) -> usize {
        if let Some((mut end, several)) = self.row(at) {
            let list = at > 0 && self.is_word(at - 1, "IN");
            self.push(if several || list { "(...)" } else { "(?)" });
            if self.is_sym(end, b',') && self.row(end + 1).is_some() {
                while self.is_sym(end, b',')
                    && let Some((next, _)) = self.row(end + 1)
                {
                    end = next;
                }
                self.out.push_str(" /* , ... */");
            }
            self.operand = true;
            return end;
        }
        // `a - 1`: the sign is not of the value.
        let values = if self.operand { self.value(at, true).map(|end| (end, false)) } else { self.values(at) };
        if let Some((end, several)) = values {
            self.push("?");
            if several {
                self.out.push_str(", ...");
            }
            self.operand = true;
            return end;
        }
        let token = &self.tokens[at];
        let (start, end) = (token.start, token.end);
        match &token.kind {
            Tok::Word { reserved } => {
                let upper = *reserved || self.is_keyword(at);
                let word = &self.sql[start..end];
                if upper {
                    self.push("");
                    let from = self.out.len();
                    self.out.push_str(word);
                    self.out[from..].make_ascii_uppercase();
                } else {
                    self.name(word);
                }
                // The verb is no operand: `DO -1`. That a name may be a word of MySQL's makes no difference.
                self.operand = if *reserved { self.ends_operand(at) } else { at > 0 };
            }
            Tok::Quoted(name) => {
                let name = name.as_str();
                self.name(name);
                self.operand = true;
            }
            Tok::UserVar(name) => {
                self.push("@");
                self.name(name);
                self.operand = true;
            }
            Tok::AtAt => {
                self.push("@@");
                self.operand = false;
            }
            Tok::Sym(symbol) => {
                self.push(if *symbol == "<>" { "!=" } else { symbol });
                self.operand = *symbol == ")";
            }
            _ => {
                self.push(&self.sql[start..end]);
                self.operand = false;
            }
        }
        at + 1
    }

    fn name(&mut self, name: &str) {
        self.push("`");
        self.out.push_str(name);
        self.out.push('`');
    }

    /// Of a reserved word.
    fn ends_operand(&self, at: usize) -> bool {
        matches!(self.kind(at + 1), Tok::Sym("-" | "+")) && OPERANDS.iter().any(|word| self.is_word(at, word))
    }

    /// Of a word that is not reserved.
    fn is_keyword(&self, at: usize) -> bool {
        if at == 0 {
            return true;
        }
        if self.is_sym(at - 1, b'.') || self.is_sym(at + 1, b'.') {
            return false;
        }
        let list = if self.is_sym(at + 1, b'(') { FUNCTIONS } else { WORDS };
        // By length first: most words are names, and short.
        self.word(at).is_some_and(|word| word.len() > 2 && list.iter().any(|known| known.len() == word.len() && known.eq_ignore_ascii_case(word)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parse::{ParseOptions, digest_text};

    #[track_caller]
    fn assert_digest(sql: &str, expected: &str) {
        assert_eq!(&*digest_text(sql, 0, ParseOptions::default()).expect("can be read").0, expected);
    }

    #[test]
    fn values_are_left_out() {
        assert_digest("select * from mytable where cola = 10 and colb = 'x';", "SELECT * FROM `mytable` WHERE `cola` = ? AND `colb` = ?");
        assert_digest("SELECT a-1, a -1, -1, (-2.5), 1e3, x'00', 0b1, N'n', _utf8mb4'y', 'a' 'b', ?", "SELECT `a` - ? , `a` - ?, ... , (?) , ?, ...");
        assert_digest("SELECT NULL, a IS NULL, b IS NOT NULL", "SELECT ? , `a` IS NULL , `b` IS NOT NULL");
        assert_digest("SELECT 1 /* note */ -- end\n FROM dual # more", "SELECT ? FROM DUAL");
        assert_digest("SELECT @@Version_comment LIMIT 1", "SELECT @@`Version_comment` LIMIT ?");
        assert_digest("SET @a = 5, @@session.sql_mode = ''", "SET @`a` = ? , @@`session` . `sql_mode` = ?");
    }

    #[test]
    fn signs_behind_operands_are_operators() {
        assert_digest("SELECT share + 1", "SELECT SHARE + ?");
        assert_digest("SELECT share - 1", "SELECT SHARE - ?");
        assert_digest("SELECT CURRENT_DATE -1, TRUE +1, CASE a WHEN 1 THEN 2 END -1", "SELECT CURRENT_DATE - ? , TRUE + ? , CASE `a` WHEN ? THEN ? `END` - ?");
        assert_digest("SELECT DISTINCT -1 FROM t WHERE a BETWEEN -1 AND +2", "SELECT DISTINCT ? FROM `t` WHERE `a` BETWEEN ? AND ?");
        assert_digest("DO -1", "DO ?");
    }

    #[test]
    fn lists_of_values_are_one_whatever_their_length() {
        for list in ["(1)", "(1, 2)", "(1,2,'three')"] {
            assert_digest(&format!("DELETE FROM t WHERE a IN {list}"), "DELETE FROM `t` WHERE `a` IN (...)");
        }
        assert_digest("INSERT INTO t (a, b) VALUES (1, 'x')", "INSERT INTO `t` ( `a` , `b` ) VALUES (...)");
        for rows in ["(1,2),(3,4)", "(1,2), (3,4), (NULL, -4)"] {
            assert_digest(&format!("INSERT INTO t VALUES {rows}"), "INSERT INTO `t` VALUES (...) /* , ... */");
        }
        assert_digest("INSERT INTO t VALUES (1), (2)", "INSERT INTO `t` VALUES (?) /* , ... */");
        assert_digest("INSERT INTO t VALUES (1, NOW())", "INSERT INTO `t` VALUES ( ? , NOW ( ) )");
        assert_digest("SELECT a FROM t WHERE (a, b) IN ((1, 2), (3, 4))", "SELECT `a` FROM `t` WHERE ( `a` , `b` ) IN ( (...) /* , ... */ )");
    }

    #[test]
    fn words_and_names() {
        assert_digest("select count(*), Sum(k), abs(-k) from `S`.T as x", "SELECT COUNT ( * ) , SUM ( `k` ) , `abs` ( - `k` ) FROM `S` . `T` AS `x`");
        assert_digest("commit", "COMMIT");
        assert_digest("start transaction", "START TRANSACTION");
        assert_digest("SELECT offset, t.start FROM t LIMIT 5 OFFSET 10", "SELECT OFFSET , `t` . `start` FROM `t` LIMIT ? OFFSET ?");
        assert_digest("SELECT a FROM t WHERE a <> 1 AND b != 2", "SELECT `a` FROM `t` WHERE `a` != ? AND `b` != ?");
        assert_digest("SELECT /*+ PQ(4) */ a FROM t", "SELECT /*+ PQ(4) */ `a` FROM `t`");
    }

    #[test]
    fn what_is_long_is_cut() {
        let long = |tail: &str| format!("SELECT {}{tail}", "col_umn, ".repeat(200));
        let text = |sql: &str| digest_text(sql, 0, ParseOptions::default()).unwrap().0;
        let cut = text(&long("a"));
        assert!(cut.len() <= LENGTH_MAX + 64 && cut.ends_with(" ..."), "{cut}");
        assert_eq!(cut, text(&long("b")));
        // One name, of characters of two bytes.
        let cut = text(&format!("SELECT x`{}`", "ä".repeat(500_000)));
        assert!(cut.len() <= LENGTH_MAX + 4 && cut.ends_with("ä ..."), "{cut}");
        assert!(digest_text("SELECT 'open", 0, ParseOptions::default()).is_none());
    }
}
