//! The parser's core: looking at tokens, taking them, names, errors, and the choice of statement.

use std::ops::Range;

use highkey_types::{MySqlError, Str};

use super::ast::{ObjectName, SetVarHint, Span, Statement, UserName};
use super::hints::MalformedHint;
use super::lexer::{LexError, Lexed, Tok, Token, lex, lex_all};
use super::routine::{RoutineState, begins_routine};
use super::{ParseOptions, Parsed};
use crate::stack;

pub(super) type Result<T> = std::result::Result<T, MySqlError>;

/// Nesting of expressions and queries that the parser follows, and levels of the trees that it makes of them: whoever follows a tree takes some stack for
/// each level. MySQL comes to the end of its stack earlier.
const MAX_DEPTH: usize = 1000;
/// The same for what the catalog keeps, which was printed with all its parentheses.
const MAX_STORED_DEPTH: usize = 4 * MAX_DEPTH;

/// A recursive-descent parser over the tokens of one statement.
pub(super) struct Parser<'a> {
    pub sql: &'a str,
    pub options: ParseOptions,
    tokens: Vec<Token>,
    set_vars: Vec<std::result::Result<SetVarHint, MalformedHint>>,
    at: usize,
    pub params: usize,
    depth: usize,
    depth_max: usize,
    /// Levels of the highest expression parsed at this depth.
    pub height: usize,
    /// SELECTs around the current token.
    pub selects: usize,
    /// Query blocks so far.
    pub blocks: u32,
    /// The number of the block behind a WITH.
    pub next_block: Option<u32>,
    /// Tables so far of the FROM that is being parsed.
    pub tables: usize,
    /// Columns are those of one table, whatever is written before their names.
    pub of_one_table: bool,
    /// The routine whose definition is being parsed.
    pub routine: Option<Box<RoutineState>>,
    /// Start of the statement, for line numbers.
    from: usize,
    /// There is something before the end that is no token.
    has_comment: bool,
}

/// Error 1064 for the text from `at` on.
pub(super) fn syntax_error(sql: &str, from: usize, at: usize) -> MySqlError {
    let what = "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use";
    syntax_error_saying(what, sql, from, at)
}

fn syntax_error_saying(what: &str, sql: &str, from: usize, at: usize) -> MySqlError {
    let near: String = sql[at.min(sql.len())..].chars().take(80).collect();
    let line = sql[from..at.min(sql.len())].matches('\n').count() + 1;
    MySqlError::with_message(1064, format!("{what} near '{near}' at line {line}"))
}

/// Error 1235 for something that MySQL has and this server does not.
pub(super) fn unsupported<T>(feature: &str) -> Result<T> {
    Err(highkey_types::errors::not_supported_yet(feature))
}

/// Parses the statement that starts at `from`.
pub(super) fn parse_statement(sql: &str, from: usize, options: ParseOptions) -> Result<Parsed> {
    let (mut parser, end) = Parser::new(sql, from, options)?;
    let set_vars = std::mem::take(&mut parser.set_vars);
    let start = parser.tokens[0].start;
    let statement = parser.statement()?;
    if !parser.at_end() {
        return Err(parser.error());
    }
    let text_end = parser.tokens[parser.at].start;
    // Behind a routine there may be more.
    let end = if parser.at + 1 < parser.tokens.len() { text_end + 1 } else { end };
    parser.tokens.truncate(parser.at + 1);
    let next = (!sql[end..].trim_start().is_empty()).then_some(end);
    let digest = super::digest::text(sql, &parser.tokens);
    let text = start..text_end.max(start);
    let set_vars = set_vars.into_iter().map(|hint| hint.map_err(|malformed| hint_warning(sql, &text, malformed))).collect();
    Ok(Parsed { statement, params: parser.params, text, next, digest, set_vars })
}

/// The SET_VAR hints of a statement inside a routine, which is the `text` of `sql`.
pub(super) fn hints_of(sql: &str, text: Range<usize>, options: &ParseOptions) -> Result<Vec<std::result::Result<SetVarHint, String>>> {
    if !sql[text.clone()].to_ascii_uppercase().contains("SET_VAR") {
        return Ok(Vec::new());
    }
    let Lexed { set_vars, .. } = lex(&sql[..text.end], text.start, options).map_err(|LexError { at }| syntax_error(sql, text.start, at))?;
    Ok(set_vars.into_iter().map(|hint| hint.map_err(|malformed| hint_warning(sql, &text, malformed))).collect())
}

/// The warning 1064 of a hint that cannot be read, in a statement with this `text`.
fn hint_warning(sql: &str, text: &Range<usize>, MalformedHint { at, what }: MalformedHint) -> String {
    let near: String = match &sql[at..text.end] {
        end if end.starts_with("*/") => "*/".to_string(),
        rest => rest.chars().take(80).collect(),
    };
    let line = sql[text.start..at].matches('\n').count() + 1;
    format!("{what} near '{near}' at line {line}")
}

impl<'a> Parser<'a> {
    /// A parser at the start of a statement, and where the statement's text ends.
    pub fn new(sql: &'a str, from: usize, options: ParseOptions) -> Result<(Parser<'a>, usize)> {
        let mut lexed = lex(sql, from, &options).map_err(|LexError { at }| syntax_error(sql, from, at))?;
        let is = |at: usize, keyword: &str| lexed.tokens.get(at).is_some_and(|t| matches!(t.kind, Tok::Word { .. }) && sql[t.start..t.end].eq_ignore_ascii_case(keyword));
        if begins_routine(is) {
            lexed = lex_all(sql, from, &options);
        }
        let Lexed { tokens, set_vars, end } = lexed;
        let start = tokens.first().map_or(from, |t| t.start);
        let has_comment = !sql[from..start].trim().is_empty();
        let parser = Parser {
            sql,
            options,
            tokens,
            set_vars,
            at: 0,
            params: 0,
            depth: 0,
            depth_max: MAX_DEPTH,
            height: 0,
            selects: 0,
            blocks: 0,
            next_block: None,
            tables: 0,
            of_one_table: false,
            routine: None,
            from: start,
            has_comment,
        };
        Ok((parser, end))
    }

    /// A parser of something that the catalog keeps as text.
    pub fn stored(text: &'a str) -> Result<Parser<'a>> {
        let (parser, _) = Parser::new(text, 0, ParseOptions::default())?;
        Ok(Parser { depth_max: MAX_STORED_DEPTH, ..parser })
    }

    pub fn peek(&self) -> &Tok {
        &self.tokens[self.at].kind
    }

    pub fn peek_at(&self, ahead: usize) -> &Tok {
        &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)].kind
    }

    pub fn advance(&mut self) {
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
    }

    pub fn position(&self) -> usize {
        self.at
    }

    pub fn rewind(&mut self, position: usize) {
        self.at = position;
    }

    pub fn at_end(&self) -> bool {
        *self.peek() == Tok::End
    }

    /// Takes the semicolon behind a statement of a routine.
    pub fn semicolon(&mut self) -> Result<()> {
        if self.at_end() && self.at + 1 < self.tokens.len() {
            self.at += 1;
            return Ok(());
        }
        self.fail()
    }

    /// Byte where the current token starts.
    pub fn start(&self) -> usize {
        self.tokens[self.at].start
    }

    /// The tokens since a position as they are written, words in upper case.
    pub fn written_since(&self, position: usize) -> Vec<String> {
        let text = |token: &Token| {
            let text = &self.sql[token.start..token.end];
            if matches!(token.kind, Tok::Word { .. }) { text.to_ascii_uppercase() } else { text.to_owned() }
        };
        self.tokens[position..self.at].iter().map(text).collect()
    }

    /// Byte where the previous token ends.
    pub fn previous_end(&self) -> usize {
        if self.at == 0 { self.start() } else { self.tokens[self.at - 1].end }
    }

    pub fn span_from(&self, start: usize) -> Span {
        Span { start, end: self.previous_end().max(start) }
    }

    /// Error 1064 at the current token.
    pub fn error(&self) -> MySqlError {
        syntax_error(self.sql, self.from, self.start())
    }

    /// The same, with another text than the usual one.
    pub fn error_saying(&self, what: &str) -> MySqlError {
        syntax_error_saying(what, self.sql, self.from, self.start())
    }

    pub fn fail<T>(&self) -> Result<T> {
        Err(self.error())
    }

    /// Runs `f` one level deeper; error 1436 if that is too deep, or what it has parsed too high.
    pub fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth >= self.depth_max {
            return Err(stack::overrun());
        }
        self.depth += 1;
        let result = stack::ensure(|| self.apart(f));
        self.depth -= 1;
        let parsed = result?;
        self.check_height()?;
        Ok(parsed)
    }

    /// Runs `f`, whose expressions stand beside those parsed before at this depth, not above them.
    pub fn apart<T>(&mut self, f: impl FnOnce(&mut Self) -> T) -> T {
        let beside = std::mem::take(&mut self.height);
        let result = f(self);
        self.height = self.height.max(beside);
        result
    }

    /// Error 1436 if an expression has too many levels. Operators in a row make a level each without anything being nested: who takes them in a loop asks
    /// for each.
    pub fn check_height(&self) -> Result<()> {
        if self.height > self.depth_max { Err(stack::overrun()) } else { Ok(()) }
    }

    /// How many parentheses open at the current token; those that nobody will follow are not counted.
    pub fn parentheses(&self) -> usize {
        (0..=self.depth_max).take_while(|ahead| self.is_sym_at(*ahead, "(")).count()
    }

    /// How many tokens ahead the parenthesis closes that opens `ahead`; `None`: it stays open.
    pub fn closing(&self, ahead: usize) -> Option<usize> {
        let (mut depth, mut at) = (0, ahead);
        loop {
            match self.peek_at(at) {
                Tok::Sym("(") => depth += 1,
                Tok::Sym(")") => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                Tok::End => return None,
                _ => {}
            }
            at += 1;
        }
    }

    /// Text of the current token if it is an unquoted word.
    pub fn word(&self) -> Option<&'a str> {
        self.word_at(0)
    }

    pub fn word_at(&self, ahead: usize) -> Option<&'a str> {
        let token = &self.tokens[(self.at + ahead).min(self.tokens.len() - 1)];
        matches!(token.kind, Tok::Word { .. }).then(|| &self.sql[token.start..token.end])
    }

    pub fn is_kw(&self, keyword: &str) -> bool {
        self.word().is_some_and(|w| w.eq_ignore_ascii_case(keyword))
    }

    pub fn is_kw_at(&self, ahead: usize, keyword: &str) -> bool {
        self.word_at(ahead).is_some_and(|w| w.eq_ignore_ascii_case(keyword))
    }

    pub fn is_any_kw(&self, keywords: &[&str]) -> bool {
        self.word().is_some_and(|w| keywords.iter().any(|k| w.eq_ignore_ascii_case(k)))
    }

    /// Takes the keyword if it is next.
    pub fn kw(&mut self, keyword: &str) -> bool {
        let found = self.is_kw(keyword);
        if found {
            self.advance();
        }
        found
    }

    /// Takes all of the keywords if they are next.
    pub fn kws(&mut self, keywords: &[&str]) -> bool {
        let found = keywords.iter().enumerate().all(|(i, k)| self.is_kw_at(i, k));
        if found {
            self.at += keywords.len();
        }
        found
    }

    /// Takes one of the keywords if it is next.
    pub fn any_kw(&mut self, keywords: &[&'static str]) -> Option<&'static str> {
        let word = self.word()?;
        let found = keywords.iter().find(|k| word.eq_ignore_ascii_case(k))?;
        self.advance();
        Some(found)
    }

    pub fn expect_kw(&mut self, keyword: &str) -> Result<()> {
        if self.kw(keyword) { Ok(()) } else { self.fail() }
    }

    pub fn is_sym(&self, symbol: &str) -> bool {
        matches!(self.peek(), Tok::Sym(s) if *s == symbol)
    }

    pub fn is_sym_at(&self, ahead: usize, symbol: &str) -> bool {
        matches!(self.peek_at(ahead), Tok::Sym(s) if *s == symbol)
    }

    pub fn sym(&mut self, symbol: &str) -> bool {
        let found = self.is_sym(symbol);
        if found {
            self.advance();
        }
        found
    }

    pub fn expect_sym(&mut self, symbol: &str) -> Result<()> {
        if self.sym(symbol) { Ok(()) } else { self.fail() }
    }

    /// Whether the current token can be an identifier.
    pub fn is_ident(&self) -> bool {
        matches!(self.peek(), Tok::Word { reserved: false } | Tok::Quoted(_))
    }

    /// An identifier: quoted, or a word that is not reserved.
    pub fn ident(&mut self) -> Result<String> {
        match self.peek() {
            Tok::Quoted(name) => {
                if name.is_empty() {
                    return self.fail();
                }
                let name = identifier(name);
                self.advance();
                Ok(name)
            }
            Tok::Word { reserved: false } => {
                let name = identifier(self.word().unwrap_or_default());
                self.advance();
                Ok(name)
            }
            _ => self.fail(),
        }
    }

    /// After a dot any word is an identifier.
    pub fn ident_after_dot(&mut self) -> Result<String> {
        match (self.peek(), self.word()) {
            (_, Some(word)) => {
                self.advance();
                Ok(identifier(word))
            }
            _ => self.ident(),
        }
    }

    /// `[schema.]name`.
    pub fn object_name(&mut self) -> Result<ObjectName> {
        let first = self.ident()?;
        if self.sym(".") {
            let name = self.ident_after_dot()?;
            return Ok(ObjectName { schema: Some(first), name });
        }
        Ok(ObjectName { schema: None, name: first })
    }

    /// An alias after AS, or without it: an identifier or a string.
    pub fn alias(&mut self, strings: bool) -> Result<Option<String>> {
        let explicit = self.kw("AS");
        match self.peek() {
            Tok::Str { value, .. } if strings => {
                let alias = identifier(value);
                self.advance();
                Ok(Some(alias))
            }
            _ if self.is_ident() => self.ident().map(Some),
            _ if explicit => self.fail(),
            _ => Ok(None),
        }
    }

    /// A string literal, of one piece or of several.
    pub fn text(&mut self) -> Result<Str> {
        let Tok::Str { value, .. } = self.peek() else { return self.fail() };
        let first = value.clone();
        self.advance();
        if !matches!(self.peek(), Tok::Str { .. }) {
            return Ok(first);
        }
        let mut value = first.to_string();
        while let Tok::Str { value: more, .. } = self.peek() {
            value.push_str(more);
            self.advance();
        }
        Ok(value.into())
    }

    /// A string literal that is a name, a path, a comment or the like.
    pub fn string(&mut self) -> Result<String> {
        Ok(self.text()?.to_string())
    }

    /// A string literal or an identifier: names of character sets, engines and the like.
    pub fn name_or_string(&mut self) -> Result<String> {
        match self.peek() {
            Tok::Str { .. } => self.string(),
            Tok::Word { .. } => self.ident_after_dot(),
            _ => self.ident(),
        }
    }

    /// A literal unsigned integer.
    pub fn integer(&mut self) -> Result<u64> {
        match self.peek() {
            Tok::Int(n) => {
                let n = *n;
                self.advance();
                Ok(n)
            }
            _ => self.fail(),
        }
    }

    /// `(n)`, if it is next.
    pub fn parenthesised_integer(&mut self) -> Result<Option<u32>> {
        if !self.sym("(") {
            return Ok(None);
        }
        let n = self.integer()?;
        self.expect_sym(")")?;
        Ok(Some(u32::try_from(n).unwrap_or(u32::MAX)))
    }

    /// `item, item, …`.
    pub fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        let mut items = vec![item(self)?];
        while self.sym(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// `(item, item, …)`.
    pub fn parenthesised_list<T>(&mut self, item: impl FnMut(&mut Self) -> Result<T>) -> Result<Vec<T>> {
        self.expect_sym("(")?;
        let items = self.list(item)?;
        self.expect_sym(")")?;
        Ok(items)
    }

    /// `IF EXISTS`.
    pub fn if_exists(&mut self) -> bool {
        self.kws(&["IF", "EXISTS"])
    }

    /// `IF NOT EXISTS`.
    pub fn if_not_exists(&mut self) -> bool {
        self.kws(&["IF", "NOT", "EXISTS"])
    }

    /// The name of a stored program that is to be made. Error 1458 for an empty one.
    pub fn program_name(&mut self) -> Result<ObjectName> {
        match self.peek() {
            Tok::Quoted(name) if name.is_empty() => Err(highkey_types::errors::sp_wrong_name(name)),
            _ => self.object_name(),
        }
    }

    /// A user: `name[@host]` or CURRENT_USER[()].
    pub fn user_name(&mut self) -> Result<UserName> {
        if self.kw("CURRENT_USER") {
            if self.sym("(") {
                self.expect_sym(")")?;
            }
            return Ok(UserName { current: true, user: String::new(), host: String::new() });
        }
        let user = match self.peek() {
            Tok::Str { .. } => self.string()?,
            _ => self.ident()?,
        };
        let host = match self.peek() {
            Tok::UserVar(host) => {
                let host = host.to_ascii_lowercase();
                self.advance();
                host
            }
            _ => "%".to_string(),
        };
        Ok(UserName { current: false, user, host })
    }

    /// A role: `name[@host]`. Some words that can be users' names cannot be roles'.
    pub fn role_name(&mut self) -> Result<UserName> {
        const NO_ROLES: [&str; 12] =
            ["CURRENT_USER", "EVENT", "EXECUTE", "FILE", "NONE", "PROCESS", "PROXY", "RELOAD", "REPLICATION", "RESTART", "SHUTDOWN", "SUPER"];
        if self.is_any_kw(&NO_ROLES) { self.fail() } else { self.user_name() }
    }

    /// Any statement.
    pub fn statement(&mut self) -> Result<Statement> {
        if self.at_end() {
            // As in MySQL a comment is a statement, and nothing is none.
            return Ok(Statement::Empty { comment: self.has_comment });
        }
        if self.is_sym("(") {
            return Ok(Statement::Query(Box::new(self.query()?)));
        }
        let Some(word) = self.word() else { return self.fail() };
        match word.to_ascii_uppercase().as_str() {
            "SELECT" | "VALUES" | "TABLE" => Ok(Statement::Query(Box::new(self.query()?))),
            "WITH" => self.with_statement(),
            "DO" => {
                self.advance();
                Ok(Statement::Do(self.list(Self::expr)?))
            }
            "INSERT" | "REPLACE" => self.insert(),
            "UPDATE" => self.update(None),
            "DELETE" => self.delete(None),
            "LOAD" => self.load(),
            "CREATE" => self.create(),
            "ALTER" => self.alter(),
            "DROP" => self.drop(),
            "RENAME" => self.rename(),
            "TRUNCATE" => {
                self.advance();
                self.kw("TABLE");
                Ok(Statement::TruncateTable(self.object_name()?))
            }
            "GRANT" => self.grant(),
            "REVOKE" => self.revoke(),
            "BEGIN" | "START" | "COMMIT" | "ROLLBACK" | "SAVEPOINT" | "RELEASE" | "LOCK" | "UNLOCK" | "XA" => self.transaction(),
            "USE" => {
                self.advance();
                Ok(Statement::Use(self.ident()?))
            }
            "SET" => self.set(),
            "PREPARE" | "EXECUTE" | "DEALLOCATE" => self.prepared(),
            "SHOW" => self.show(),
            "DESCRIBE" | "DESC" | "EXPLAIN" => self.describe(),
            "KILL" | "FLUSH" | "SHUTDOWN" | "RESET" | "PURGE" | "CHECK" | "ANALYZE" | "OPTIMIZE" | "REPAIR" | "CHECKSUM" => self.admin(),
            "CALL" => self.call_statement(),
            "HANDLER" => self.handler(),
            "INSTALL" | "UNINSTALL" => self.plugin(),
            "HELP" => unsupported("HELP"),
            "IMPORT" => unsupported("IMPORT TABLE"),
            "CLONE" => unsupported("CLONE"),
            "CHANGE" => {
                self.advance();
                self.change_replication()
            }
            "STOP" if self.is_kw_at(1, "GROUP_REPLICATION") => unsupported("group replication"),
            "STOP" => {
                self.advance();
                self.stop_replica()
            }
            "BINLOG" => self.binlog(),
            "SIGNAL" | "RESIGNAL" => self.signal(),
            "GET" => self.get_diagnostics(),
            "CACHE" => unsupported("key caches"),
            "RESTART" => unsupported("RESTART"),
            _ => self.fail(),
        }
    }
}

/// A name as MySQL keeps it, in the three bytes at most of utf8mb3: characters beyond U+FFFF are question marks.
pub(super) fn identifier(name: &str) -> String {
    name.chars().map(|c| if c > '\u{ffff}' { '?' } else { c }).collect()
}
