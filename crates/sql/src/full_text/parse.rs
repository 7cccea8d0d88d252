//! A search as written.

use highkey_table::{WordParser, WordRules};
use highkey_types::MySqlError;

use super::ngram;

/// Groups inside each other beyond which a search is refused.
pub(super) const DEPTH_MAX: usize = 200;

/// What stands before a word, a phrase or a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Require,
    /// `-`
    Exclude,
    /// `>`
    Raise,
    /// `<`
    Lower,
    /// `~`
    Negate,
}

/// What is searched for.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// What was written as one word; `prefix`: the last is the beginning of words.
    Words { words: Vec<String>, prefix: bool },
    /// Words in their order, or, with a distance, together in so many words; 0: none was given.
    Phrase { words: Vec<String>, distance: u64 },
    /// Clauses in parentheses.
    Group(Vec<Clause>),
}

/// An item with its operator.
#[derive(Clone, Debug, PartialEq)]
pub struct Clause {
    pub operator: Option<Operator>,
    pub item: Item,
}

#[derive(Clone, Debug, PartialEq)]
enum Token<'t> {
    Symbol(char),
    Number(&'t str),
    Term(&'t str),
    /// In double quotes.
    Text(&'t str),
}

/// The clauses of a search in an index that was made with `rules`. `boolean`: IN BOOLEAN MODE, where there are operators. Error 1064.
pub fn parse(text: &str, boolean: bool, rules: &WordRules) -> Result<Vec<Clause>, MySqlError> {
    match rules.parser {
        WordParser::Ngram { chars } if boolean => ngram::clauses(text, rules, chars as usize),
        WordParser::Ngram { .. } => Ok(rules.words(text).map(|word| Clause { operator: None, item: Item::word(word, false) }).collect()),
        WordParser::Runs { .. } => Parser { tokens: tokens(text, boolean), at: 0, depth: 0, rules }.clauses(),
    }
}

impl Item {
    /// One word alone.
    pub(super) fn word(word: &str, prefix: bool) -> Item {
        Item::Words { words: vec![word.to_owned()], prefix }
    }
}

/// Too many groups inside each other.
pub(super) fn too_deep() -> MySqlError {
    MySqlError::with_message(1064, "memory exhausted")
}

/// As InnoDB's two lexers cut a search: for boolean mode, and for the others, where only `*` alone is a symbol.
fn tokens(text: &str, boolean: bool) -> Vec<Token<'_>> {
    let is_symbol = |c: char| "*()+-<>~@".contains(c);
    let ends_term = |c: char| matches!(c, ' ' | '"' | '\n' | '%') || boolean && is_symbol(c);
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if c == '"' {
            let inside = &rest[1..];
            match inside.find(['"', '\n']).filter(|end| inside[*end..].starts_with('"')) {
                Some(end) => {
                    tokens.push(Token::Text(&inside[..end]));
                    rest = &inside[end + 1..];
                }
                None => rest = inside,
            }
        } else if boolean && is_symbol(c) {
            tokens.push(Token::Symbol(c));
            rest = &rest[1..];
        } else {
            let (term, after) = rest.split_at(rest.find(ends_term).unwrap_or(rest.len()));
            rest = after;
            if term.is_empty() {
                rest = &rest[1..];
            } else if term == "*" {
                tokens.push(Token::Symbol('*'));
            } else if boolean && term.bytes().all(|byte| byte.is_ascii_digit()) {
                tokens.push(Token::Number(term));
            } else if !term.trim_matches('\t').is_empty() {
                tokens.push(Token::Term(term));
            }
        }
    }
    tokens
}

struct Parser<'t> {
    tokens: Vec<Token<'t>>,
    at: usize,
    depth: usize,
    rules: &'t WordRules,
}

impl<'t> Parser<'t> {
    fn peek(&self) -> Option<&Token<'t>> {
        self.tokens.get(self.at)
    }

    fn symbol(&mut self, symbol: char) -> bool {
        let is_it = self.peek() == Some(&Token::Symbol(symbol));
        self.at += usize::from(is_it);
        is_it
    }

    /// Error 1064 in the words of InnoDB's parser.
    fn unexpected(&self, expected: &str) -> MySqlError {
        let found = match self.peek() {
            None => "$end".to_owned(),
            Some(Token::Symbol(symbol)) => format!("'{symbol}'"),
            Some(Token::Number(_)) => "FTS_NUMB".to_owned(),
            Some(Token::Term(_)) => "FTS_TERM".to_owned(),
            Some(Token::Text(_)) => "FTS_TEXT".to_owned(),
        };
        let expected = if expected.is_empty() { String::new() } else { format!(", expecting {expected}") };
        MySqlError::with_message(1064, format!("syntax error, unexpected {found}{expected}"))
    }

    /// Clauses up to the end of the search, or of the group.
    fn clauses(&mut self) -> Result<Vec<Clause>, MySqlError> {
        let mut clauses = Vec::new();
        loop {
            match self.peek() {
                None if self.depth > 0 => return Err(self.unexpected("")),
                None => return Ok(clauses),
                Some(Token::Symbol(')')) if self.depth > 0 => return Ok(clauses),
                Some(Token::Symbol(')' | '@')) => return Err(self.unexpected(if self.depth > 0 { "" } else { "$end" })),
                Some(_) => clauses.push(self.clause()?),
            }
        }
    }

    fn clause(&mut self) -> Result<Clause, MySqlError> {
        let operator = match self.peek() {
            Some(Token::Symbol('+')) => Some(Operator::Require),
            Some(Token::Symbol('-')) => Some(Operator::Exclude),
            Some(Token::Symbol('>')) => Some(Operator::Raise),
            Some(Token::Symbol('<')) => Some(Operator::Lower),
            Some(Token::Symbol('~')) => Some(Operator::Negate),
            _ => None,
        };
        self.at += usize::from(operator.is_some());
        let item = match self.peek() {
            Some(Token::Symbol('(')) => {
                self.at += 1;
                self.group()?
            }
            Some(Token::Text(text)) => {
                let words = self.rules.words(text).map(str::to_owned).collect();
                self.at += 1;
                let distance = if self.symbol('@') { self.distance()? } else { 0 };
                Item::Phrase { words, distance }
            }
            Some(Token::Symbol('*')) => {
                while self.symbol('*') {}
                match self.peek() {
                    Some(Token::Term(_) | Token::Number(_)) => self.term(),
                    _ => return Err(self.unexpected("FTS_TERM or FTS_NUMB or '*'")),
                }
            }
            Some(Token::Term(_) | Token::Number(_)) => self.term(),
            _ => return Err(self.unexpected("")),
        };
        Ok(Clause { operator, item })
    }

    fn group(&mut self) -> Result<Item, MySqlError> {
        if self.depth == DEPTH_MAX {
            return Err(too_deep());
        }
        self.depth += 1;
        let clauses = self.clauses()?;
        self.depth -= 1;
        self.at += 1;
        Ok(Item::Group(clauses))
    }

    fn distance(&mut self) -> Result<u64, MySqlError> {
        let Some(Token::Number(digits)) = self.peek() else { return Err(self.unexpected("FTS_NUMB")) };
        let distance = digits.parse().unwrap_or(u64::MAX);
        self.at += 1;
        Ok(distance)
    }

    /// A term: its words, of which those behind the first are no word if an index would not hold words of that length.
    fn term(&mut self) -> Item {
        let text = match self.peek() {
            Some(Token::Term(text) | Token::Number(text)) => *text,
            _ => "",
        };
        self.at += 1;
        let mut found: Vec<String> = Vec::new();
        for word in self.rules.words(text) {
            let counts = if found.is_empty() { !self.rules.is_too_long(word) } else { self.rules.has_length(word) };
            if counts {
                found.push(word.to_owned());
            }
        }
        Item::Words { words: found, prefix: self.symbol('*') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(text: &str, boolean: bool) -> Result<Vec<Clause>, MySqlError> {
        parse(text, boolean, &WordRules::default())
    }

    #[test]
    fn operators_phrases_and_groups() {
        let clauses = parse_words("+mysql -(a* >\"x y\" @3) 12", true).unwrap();
        let group = vec![
            Clause { operator: None, item: Item::word("a", true) },
            Clause { operator: Some(Operator::Raise), item: Item::Phrase { words: vec!["x".into(), "y".into()], distance: 3 } },
        ];
        assert_eq!(
            clauses,
            [
                Clause { operator: Some(Operator::Require), item: Item::word("mysql", false) },
                Clause { operator: Some(Operator::Exclude), item: Item::Group(group) },
                Clause { operator: None, item: Item::word("12", false) },
            ]
        );
    }

    #[test]
    fn natural_language_has_no_operators() {
        let clauses = parse_words("+mysql data* \"b c", false).unwrap();
        let items: Vec<Item> = clauses.into_iter().map(|clause| clause.item).collect();
        assert_eq!(items, ["mysql", "data", "b", "c"].map(|word| Item::word(word, false)));
    }

    // The messages are MySQL 8.0.12's.
    #[test]
    fn errors_are_those_of_innodb() {
        let error = |text: &str| parse_words(text, true).unwrap_err().message;
        assert_eq!(error("(mysql"), "syntax error, unexpected $end");
        assert_eq!(error("mysql)"), "syntax error, unexpected ')', expecting $end");
        assert_eq!(error("*"), "syntax error, unexpected $end, expecting FTS_TERM or FTS_NUMB or '*'");
        assert_eq!(error("+-mysql"), "syntax error, unexpected '-'");
        assert_eq!(error("mysql@"), "syntax error, unexpected '@', expecting $end");
    }
}
