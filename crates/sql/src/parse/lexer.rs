//! From text to tokens: comments, quotes, escapes, numbers, variables and hints as MySQL's lexer takes them.

use std::ops::Range;

use highkey_types::Str;

use super::ParseOptions;
use super::ast::{OptimizerHint, SetVarHint};
use super::hints::{MalformedHint, parse_hints};
use super::words::is_reserved;

/// Executable comments up to this version are code.
const VERSION: u32 = 80_033;

/// One token with its place in the text.
#[derive(Debug, Clone)]
pub(super) struct Token {
    pub kind: Tok,
    pub start: usize,
    pub end: usize,
}

/// Kinds of token.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Tok {
    /// An unquoted word: keyword or identifier; its text is the token's.
    Word { reserved: bool },
    /// A quoted identifier.
    Quoted(String),
    /// A string; `national` for N'…'.
    Str { value: Str, national: bool },
    /// A string that is not UTF-8 after unescaping cannot occur: the text is UTF-8 and escapes are ASCII.
    Int(u64),
    Decimal,
    Float,
    Hex(Vec<u8>),
    Bit(Vec<u8>),
    /// `@name`.
    UserVar(String),
    /// `@@`.
    AtAt,
    Param,
    Sym(&'static str),
    Hint(Vec<OptimizerHint>),
    /// `;` or the end of the text.
    End,
    /// What is no token, where the text has been read beyond a statement.
    Invalid,
}

/// Where lexing failed.
#[derive(Debug)]
pub(super) struct LexError {
    pub at: usize,
}

pub(super) struct Lexed {
    pub tokens: Vec<Token>,
    /// Of all hint comments, in the order of the text.
    pub set_vars: Vec<Result<SetVarHint, MalformedHint>>,
    /// Byte after the statement's semicolon, or the end of the text.
    pub end: usize,
}

/// Tokens of the statement that starts at `from`, ended by an [`Tok::End`].
pub(super) fn lex(sql: &str, from: usize, options: &ParseOptions) -> Result<Lexed, LexError> {
    let mut lexer = Lexer::new(sql, from, options);
    lexer.run()?;
    Ok(Lexed { tokens: lexer.tokens, set_vars: lexer.set_vars, end: lexer.at })
}

/// All tokens of the text from `from` on: a statement that holds others, and what may follow it. Each semicolon is an [`Tok::End`], and hints are left out.
pub(super) fn lex_all(sql: &str, from: usize, options: &ParseOptions) -> Lexed {
    let mut lexer = Lexer { all: true, ..Lexer::new(sql, from, options) };
    if let Err(LexError { at }) = lexer.run() {
        lexer.tokens.push(Token { kind: Tok::Invalid, start: at, end: at });
        // Who looks ahead looks for an end.
        lexer.tokens.push(Token { kind: Tok::End, start: sql.len(), end: sql.len() });
    }
    Lexed { tokens: lexer.tokens, set_vars: Vec::new(), end: sql.len() }
}

/// A piece of a text as MySQL keeps it: without what makes a comment a part of the statement, and without what another version would run.
pub(super) fn without_versions(sql: &str, piece: Range<usize>, options: &ParseOptions) -> String {
    let mut lexer = Lexer { all: true, ..Lexer::new(&sql[..piece.end], piece.start, options) };
    // The piece may end inside such a comment.
    let _ = lexer.run();
    let mut text = String::with_capacity(piece.len());
    let mut at = piece.start;
    for marker in lexer.markers {
        text.push_str(&sql[at..marker.start]);
        at = marker.end;
    }
    text + &sql[at..piece.end]
}

struct Lexer<'a> {
    sql: &'a str,
    bytes: &'a [u8],
    at: usize,
    options: &'a ParseOptions,
    tokens: Vec<Token>,
    set_vars: Vec<Result<SetVarHint, MalformedHint>>,
    /// Inside `/*! … */`.
    executable: bool,
    /// `/*!` with its version, the `*/` behind, and comments for other versions.
    markers: Vec<Range<usize>>,
    /// Semicolons do not end it.
    all: bool,
}

const SYMBOLS: &[&str] = &[
    "<=>", "->>", "<=", ">=", "<>", "!=", "<<", ">>", ":=", "&&", "||", "->", "+", "-", "*", "/", "%", "=", "<", ">", "!", "~", "&", "|", "^", ".",
    ":", "{", "}",
];

fn is_ident_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_' || b == b'$' || b >= 0x80
}

impl<'a> Lexer<'a> {
    fn new(sql: &'a str, from: usize, options: &'a ParseOptions) -> Lexer<'a> {
        Lexer { sql, bytes: sql.as_bytes(), at: from, options, tokens: Vec::new(), set_vars: Vec::new(), executable: false, markers: Vec::new(), all: false }
    }

    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn push(&mut self, kind: Tok, start: usize) {
        self.tokens.push(Token { kind, start, end: self.at });
    }

    fn symbol(&mut self, symbol: &'static str, start: usize) {
        self.at += symbol.len();
        self.push(Tok::Sym(symbol), start);
    }

    fn run(&mut self) -> Result<(), LexError> {
        loop {
            self.skip_blanks()?;
            let start = self.at;
            if start >= self.bytes.len() {
                if self.executable {
                    return Err(LexError { at: start });
                }
                self.push(Tok::End, start);
                return Ok(());
            }
            if self.executable && self.bytes[start..].starts_with(b"*/") {
                self.executable = false;
                self.at += 2;
                self.markers.push(start..self.at);
                continue;
            }
            let b = self.bytes[start];
            match b {
                b';' => {
                    self.push(Tok::End, start);
                    self.tokens.last_mut().expect("just pushed").end = start;
                    self.at += 1;
                    if !self.all {
                        return Ok(());
                    }
                }
                b'\'' => self.string(b'\'', false, start)?,
                b'"' if self.options.ansi_quotes => self.quoted_ident(b'"', start)?,
                b'"' => self.string(b'"', false, start)?,
                b'`' => self.quoted_ident(b'`', start)?,
                b'@' => self.variable(start)?,
                b'?' => {
                    self.at += 1;
                    self.push(Tok::Param, start);
                }
                b'.' if self.peek(1).is_ascii_digit() && !self.after_name() => self.number(start),
                b'0'..=b'9' => self.number_or_word(start)?,
                b'n' | b'N' if self.peek(1) == b'\'' => {
                    self.at += 1;
                    self.string(b'\'', true, start)?;
                }
                b'x' | b'X' if self.peek(1) == b'\'' => self.quoted_digits(start, true)?,
                b'b' | b'B' if self.peek(1) == b'\'' => self.quoted_digits(start, false)?,
                _ if is_ident_byte(b) => self.word(start),
                // What stands between the values of a long INSERT.
                b',' => self.symbol(",", start),
                b'(' => self.symbol("(", start),
                b')' => self.symbol(")", start),
                _ => match SYMBOLS.iter().find(|s| self.bytes[start..].starts_with(s.as_bytes())) {
                    Some(symbol) => self.symbol(symbol, start),
                    None if b == 0 => self.at += 1,
                    None => return Err(LexError { at: start }),
                },
            }
        }
    }

    /// The last token can be followed by `.name`: a qualified name, not a number.
    fn after_name(&self) -> bool {
        self.tokens.last().is_some_and(|t| t.end == self.at && matches!(t.kind, Tok::Word { .. } | Tok::Quoted(_)))
    }

    fn after_dot(&self) -> bool {
        self.tokens.last().is_some_and(|t| t.end == self.at && t.kind == Tok::Sym("."))
    }

    fn skip_blanks(&mut self) -> Result<(), LexError> {
        loop {
            match self.peek(0) {
                b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'#' => self.skip_line(),
                b'-' if self.peek(1) == b'-' && (self.at + 2 >= self.bytes.len() || self.peek(2) <= b' ') => self.skip_line(),
                b'/' if self.peek(1) == b'*' => self.comment()?,
                _ => return Ok(()),
            }
        }
    }

    fn skip_line(&mut self) {
        self.at = memchr::memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |n| self.at + n + 1);
    }

    fn comment(&mut self) -> Result<(), LexError> {
        let start = self.at;
        if self.peek(2) == b'!' {
            let mut digits = 0;
            while digits < 6 && self.peek(3 + digits).is_ascii_digit() {
                digits += 1;
            }
            let version: u32 = self.sql[start + 3..start + 3 + digits].parse().unwrap_or(0);
            // Five digits, or six as newer servers write them.
            let digits = if digits == 6 && version / 10 > VERSION { 5 } else { digits };
            let version = if digits >= 5 { self.sql[start + 3..start + 3 + digits].parse().unwrap_or(0) } else { 0 };
            if version <= VERSION && !self.executable {
                self.at += 3 + if digits >= 5 { digits } else { 0 };
                self.executable = true;
                self.markers.push(start..self.at);
                return Ok(());
            }
        }
        let end = memchr::memmem::find(&self.bytes[start + 2..], b"*/").ok_or(LexError { at: start })?;
        let inner = start + 2..start + 2 + end;
        self.at = inner.end + 2;
        if self.bytes[inner.start] == b'!' {
            self.markers.push(start..self.at);
        }
        if self.bytes[inner.clone()].starts_with(b"+") && self.hint_is_expected() {
            let parsed = parse_hints(self.sql, inner.start + 1..inner.end);
            self.set_vars.extend(parsed.set_vars);
            self.push(Tok::Hint(parsed.hints), start);
        }
        Ok(())
    }

    /// Hints count only right after the statement's verb.
    fn hint_is_expected(&self) -> bool {
        let Some(Token { kind: Tok::Word { .. }, start, end }) = self.tokens.last() else { return false };
        ["SELECT", "INSERT", "REPLACE", "UPDATE", "DELETE"].iter().any(|verb| self.sql[*start..*end].eq_ignore_ascii_case(verb))
    }

    fn string(&mut self, quote: u8, national: bool, start: usize) -> Result<(), LexError> {
        self.at += 1;
        // What comes before the next piece, if there are several.
        let mut value = String::new();
        let value: Str = loop {
            let rest = &self.bytes[self.at..];
            let stop = if self.options.no_backslash_escapes { memchr::memchr(quote, rest) } else { memchr::memchr2(quote, b'\\', rest) };
            let stop = self.at + stop.ok_or(LexError { at: start })?;
            let piece = &self.sql[self.at..stop];
            self.at = stop + 1;
            if self.bytes[stop] == quote && self.peek(0) != quote {
                if value.is_empty() {
                    break piece.into();
                }
                value.push_str(piece);
                break value.into();
            }
            value.push_str(piece);
            if self.bytes[stop] == quote {
                value.push(quote as char);
                self.at += 1;
                continue;
            }
            let escaped = self.sql[self.at..].chars().next().ok_or(LexError { at: start })?;
            self.at += escaped.len_utf8();
            match escaped {
                '0' => value.push('\0'),
                'b' => value.push('\u{8}'),
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                'Z' => value.push('\u{1a}'),
                // Kept for LIKE: the pattern sees the backslash.
                '%' | '_' => value.extend(['\\', escaped]),
                other => value.push(other),
            }
        };
        self.push(Tok::Str { value, national }, start);
        Ok(())
    }

    fn quoted_name(&mut self, quote: u8, start: usize) -> Result<String, LexError> {
        self.at += 1;
        let mut name = String::new();
        loop {
            let stop = memchr::memchr(quote, &self.bytes[self.at..]).ok_or(LexError { at: start })? + self.at;
            name.push_str(&self.sql[self.at..stop]);
            self.at = stop + 1;
            if self.peek(0) != quote {
                return Ok(name);
            }
            name.push(quote as char);
            self.at += 1;
        }
    }

    fn quoted_ident(&mut self, quote: u8, start: usize) -> Result<(), LexError> {
        let name = self.quoted_name(quote, start)?;
        self.push(Tok::Quoted(name), start);
        Ok(())
    }

    fn variable(&mut self, start: usize) -> Result<(), LexError> {
        self.at += 1;
        match self.peek(0) {
            b'@' => {
                self.at += 1;
                self.push(Tok::AtAt, start);
            }
            quote @ (b'\'' | b'"' | b'`') => {
                let name = self.quoted_name(quote, start)?;
                self.push(Tok::UserVar(name), start);
            }
            _ => {
                let from = self.at;
                while is_ident_byte(self.peek(0)) || self.peek(0) == b'.' {
                    self.at += 1;
                }
                let name = self.sql[from..self.at].to_string();
                self.push(Tok::UserVar(name), start);
            }
        }
        Ok(())
    }

    fn word(&mut self, start: usize) {
        while is_ident_byte(self.peek(0)) && self.at < self.bytes.len() {
            self.at += 1;
        }
        let reserved = !self.tokens.last().is_some_and(|t| t.kind == Tok::Sym(".") && t.end == start) && is_reserved(&self.sql[start..self.at]);
        self.push(Tok::Word { reserved }, start);
    }

    fn number_or_word(&mut self, start: usize) -> Result<(), LexError> {
        if self.after_dot() {
            self.word(start);
            return Ok(());
        }
        if self.peek(0) == b'0' && matches!(self.peek(1), b'x' | b'b') {
            let hex = self.peek(1) == b'x';
            let mut end = start + 2;
            while self.bytes.get(end).is_some_and(|b| if hex { b.is_ascii_hexdigit() } else { matches!(b, b'0' | b'1') }) {
                end += 1;
            }
            if end > start + 2 && !self.bytes.get(end).is_some_and(|b| is_ident_byte(*b)) {
                let digits = &self.sql[start + 2..end];
                self.at = end;
                self.push(if hex { Tok::Hex(hex_bytes(digits)) } else { Tok::Bit(bit_bytes(digits)) }, start);
                return Ok(());
            }
        }
        let mut end = start;
        while self.bytes.get(end).is_some_and(u8::is_ascii_digit) {
            end += 1;
        }
        let next = self.bytes.get(end).copied().unwrap_or(0);
        let exponent = matches!(next, b'e' | b'E') && {
            let sign = usize::from(matches!(self.bytes.get(end + 1), Some(b'+' | b'-')));
            self.bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit)
        };
        if is_ident_byte(next) && !exponent {
            self.word(start);
        } else {
            self.number(start);
        }
        Ok(())
    }

    fn number(&mut self, start: usize) {
        let mut point = false;
        let mut float = false;
        while self.peek(0).is_ascii_digit() {
            self.at += 1;
        }
        if self.peek(0) == b'.' {
            point = true;
            self.at += 1;
            while self.peek(0).is_ascii_digit() {
                self.at += 1;
            }
        }
        if matches!(self.peek(0), b'e' | b'E') {
            let sign = usize::from(matches!(self.peek(1), b'+' | b'-'));
            if self.peek(1 + sign).is_ascii_digit() {
                float = true;
                self.at += 1 + sign;
                while self.peek(0).is_ascii_digit() {
                    self.at += 1;
                }
            }
        }
        let kind = match self.sql[start..self.at].parse::<u64>() {
            _ if float => Tok::Float,
            Ok(n) if !point => Tok::Int(n),
            _ => Tok::Decimal,
        };
        self.push(kind, start);
    }

    fn quoted_digits(&mut self, start: usize, hex: bool) -> Result<(), LexError> {
        let from = start + 2;
        let end = from + memchr::memchr(b'\'', &self.bytes[from..]).ok_or(LexError { at: start })?;
        let digits = &self.sql[from..end];
        let good = if hex { digits.len().is_multiple_of(2) && digits.bytes().all(|b| b.is_ascii_hexdigit()) } else { digits.bytes().all(|b| matches!(b, b'0' | b'1')) };
        if !good {
            return Err(LexError { at: start });
        }
        self.at = end + 1;
        self.push(if hex { Tok::Hex(hex_bytes(digits)) } else { Tok::Bit(bit_bytes(digits)) }, start);
        Ok(())
    }
}

fn hex_bytes(digits: &str) -> Vec<u8> {
    let nibble = |b: u8| (b as char).to_digit(16).unwrap_or(0) as u8;
    let mut padded = digits.as_bytes().to_vec();
    if padded.len() % 2 == 1 {
        padded.insert(0, b'0');
    }
    padded.chunks(2).map(|pair| nibble(pair[0]) << 4 | nibble(pair[1])).collect()
}

fn bit_bytes(digits: &str) -> Vec<u8> {
    let mut bytes = vec![0u8; digits.len().div_ceil(8)];
    for (i, b) in digits.bytes().rev().enumerate() {
        if b == b'1' {
            let at = bytes.len() - 1 - i / 8;
            bytes[at] |= 1 << (i % 8);
        }
    }
    bytes
}
