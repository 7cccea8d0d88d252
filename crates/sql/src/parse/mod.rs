//! The parser: from a statement's text to its syntax tree. See `README.md`.

mod admin;
mod alter;
pub mod ast;
mod call;
mod column;
mod ddl;
mod digest;
mod dml;
mod event;
mod expr;
mod from;
mod handler;
mod hints;
mod json_table;
mod lexer;
mod parser;
mod partition;
pub mod print;
mod query;
mod replica;
mod routine;
mod set;
mod show;
mod types;
mod users;
mod view;
mod words;
mod xa;

use highkey_types::MySqlError;

pub(crate) use words::{is_reserved, keywords};

/// The bits of sql_mode that change how text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ParseOptions {
    /// ANSI_QUOTES: `"x"` is an identifier.
    pub ansi_quotes: bool,
    /// PIPES_AS_CONCAT: `||` is CONCAT.
    pub pipes_as_concat: bool,
    /// NO_BACKSLASH_ESCAPES.
    pub no_backslash_escapes: bool,
    /// HIGH_NOT_PRECEDENCE.
    pub high_not_precedence: bool,
    /// IGNORE_SPACE.
    pub ignore_space: bool,
    /// REAL_AS_FLOAT.
    pub real_as_float: bool,
}

/// One parsed statement.
#[derive(Debug, Clone)]
pub struct Parsed {
    /// The syntax tree.
    pub statement: ast::Statement,
    /// How many `?` it has.
    pub params: usize,
    /// Byte range of its text, without the semicolon.
    pub text: std::ops::Range<usize>,
    /// Where the next statement starts; `None` if only white space follows.
    pub next: Option<usize>,
    /// What the statement is without its values: see `digest.rs`.
    pub digest: Box<str>,
    /// Its SET_VAR hints, in the order of the text. What cannot be read is the message of a warning 1064.
    pub set_vars: Vec<Result<ast::SetVarHint, String>>,
}

/// Parses the statement that starts at byte `from` of `sql`.
pub fn parse(sql: &str, from: usize, options: ParseOptions) -> Result<Parsed, MySqlError> {
    parser::parse_statement(sql, from, options)
}

/// Parses text that must be one statement (prepared statements): anything after it is error 1064.
pub fn parse_single(sql: &str, options: ParseOptions) -> Result<Parsed, MySqlError> {
    let parsed = parser::parse_statement(sql, 0, options)?;
    match parsed.next {
        Some(next) => Err(parser::syntax_error(sql, 0, next + sql[next..].len() - sql[next..].trim_start().len())),
        None => Ok(parsed),
    }
}

/// The digest text of the statement that starts at byte `from` of `sql`, be it a statement or not, and the byte range of its text, without the
/// semicolon; `None` if its tokens cannot be told.
pub fn digest_text(sql: &str, from: usize, options: ParseOptions) -> Option<(Box<str>, std::ops::Range<usize>)> {
    let tokens = lexer::lex(sql, from, &options).ok()?.tokens;
    let end = tokens.last().map_or(sql.len(), |t| t.start);
    let start = tokens.first().map_or(end, |t| t.start);
    Some((digest::text(sql, &tokens), start..end))
}

/// Parses a query that the catalog keeps as text.
pub fn parse_query(text: &str) -> Result<ast::Query, MySqlError> {
    let mut parser = parser::Parser::stored(text)?;
    let query = parser.query()?;
    if parser.at_end() { Ok(query) } else { Err(parser.error()) }
}

/// Names of roles in a list: `mandatory_roles`.
pub fn parse_roles(text: &str) -> Result<Vec<ast::UserName>, MySqlError> {
    let (mut parser, _) = parser::Parser::new(text, 0, ParseOptions::default())?;
    let roles = parser.list(parser::Parser::role_name)?;
    if parser.at_end() { Ok(roles) } else { Err(parser.error()) }
}

/// Parses an expression over a table's columns that the catalog keeps as text.
pub fn parse_expr(text: &str) -> Result<ast::Expr, MySqlError> {
    let mut parser = parser::Parser::stored(text)?;
    parser.of_one_table = true;
    let expr = parser.expr()?;
    if parser.at_end() { Ok(expr) } else { Err(parser.error()) }
}

#[cfg(test)]
mod tests;
