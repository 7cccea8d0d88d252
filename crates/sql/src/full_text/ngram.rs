//! A search IN BOOLEAN MODE of an index of n-grams, as MySQL's parser `ngram` reads it: an operator counts behind a space only, and nothing is an error.

use std::cmp::Ordering;

use highkey_table::{WordRules, is_of_word};
use highkey_types::MySqlError;

use super::parse::{Clause, DEPTH_MAX, Item, Operator, too_deep};

/// The last character that may stand in a word of a search: MySQL knows no kinds of those behind it. In a row's n-grams they may stand.
const LAST: char = '\u{ffff}';

/// The clauses of a search; none at all if its parentheses do not match. `chars`: characters of an n-gram. Error 1064.
pub fn clauses(text: &str, rules: &WordRules, chars: usize) -> Result<Vec<Clause>, MySqlError> {
    let mut clauses = Vec::new();
    // Groups that are open: what stands before each, and its operator.
    let mut open: Vec<(Vec<Clause>, Option<Operator>)> = Vec::new();
    let mut signs = Signs::default();
    let mut before = ' ';
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        if is_searched(c) {
            let (word, after) = rest.split_at(rest.find(|c| !is_searched(c)).unwrap_or(rest.len()));
            let truncated = after.strip_prefix('*');
            rest = truncated.unwrap_or(after);
            clauses.push(Clause { operator: std::mem::take(&mut signs).operator(), item: term(word, truncated.is_some(), rules, chars) });
            before = c;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        match c {
            '"' => {
                let (inside, after) = rest.split_once('"').unwrap_or((rest, ""));
                rest = after;
                before = inside.chars().last().unwrap_or(before);
                clauses.push(Clause { operator: std::mem::take(&mut signs).operator(), item: phrase(inside, rules) });
            }
            '(' if open.len() == DEPTH_MAX => return Err(too_deep()),
            '(' => open.push((std::mem::take(&mut clauses), std::mem::take(&mut signs).operator())),
            ')' => {
                let Some((outer, operator)) = open.pop() else { return Ok(Vec::new()) };
                let group = std::mem::replace(&mut clauses, outer);
                clauses.push(Clause { operator, item: Item::Group(group) });
                signs = Signs::default();
            }
            _ if before == ' ' && signs.add(c) => {}
            _ => {
                before = c;
                signs = Signs::default();
            }
        }
    }
    Ok(if open.is_empty() { clauses } else { Vec::new() })
}

fn is_searched(c: char) -> bool {
    c <= LAST && is_of_word(c)
}

/// A word: shorter than an n-gram it is searched for as it is, a longer one as a phrase of n-grams. Only a shorter one can be the beginning of others.
fn term(word: &str, truncated: bool, rules: &WordRules, chars: usize) -> Item {
    match word.chars().count() {
        count if count < chars => Item::word(word, truncated),
        count if count == chars => Item::word(word, false),
        _ => Item::Phrase { words: rules.words(word).map(str::to_owned).collect(), distance: 0 },
    }
}

/// The n-grams of a phrase's words; of those that are shorter the words.
fn phrase(text: &str, rules: &WordRules) -> Item {
    let mut words = Vec::new();
    for word in text.split(|c| !is_searched(c)).filter(|word| !word.is_empty()) {
        let before = words.len();
        words.extend(rules.words(word).map(str::to_owned));
        if words.len() == before {
            words.push(word.to_owned());
        }
    }
    Item::Phrase { words, distance: 0 }
}

/// The operators before something.
#[derive(Default)]
struct Signs {
    /// `+` or `-`, the last one.
    presence: Option<Operator>,
    /// `>` less `<`.
    rating: i64,
    /// `~`, an odd number of times.
    negated: bool,
}

impl Signs {
    /// False: it is none.
    fn add(&mut self, c: char) -> bool {
        match c {
            ' ' => self.presence = None,
            '+' => self.presence = Some(Operator::Require),
            '-' => self.presence = Some(Operator::Exclude),
            '>' => self.rating += 1,
            '<' => self.rating -= 1,
            '~' => self.negated = !self.negated,
            _ => return false,
        }
        true
    }

    fn operator(self) -> Option<Operator> {
        let rating = match self.rating.cmp(&0) {
            Ordering::Greater => Some(Operator::Raise),
            Ordering::Less => Some(Operator::Lower),
            Ordering::Equal => None,
        };
        self.presence.or(rating).or(self.negated.then_some(Operator::Negate))
    }
}

#[cfg(test)]
mod tests {
    use highkey_table::{Stopwords, WordParser};

    use super::*;

    fn read(text: &str) -> Vec<Clause> {
        clauses(text, &WordRules { parser: WordParser::Ngram { chars: 2 }, stopwords: Stopwords::Default }, 2).unwrap()
    }

    fn plain(item: Item) -> Clause {
        Clause { operator: None, item }
    }

    fn grams(words: &[&str]) -> Item {
        Item::Phrase { words: words.iter().map(|word| (*word).to_owned()).collect(), distance: 0 }
    }

    #[test]
    fn words_are_ngrams_or_phrases_of_them() {
        assert_eq!(read("日本 東京都 京* 京都* x"), [
            plain(Item::word("日本", false)),
            plain(grams(&["東京", "京都"])),
            plain(Item::word("京", true)),
            plain(Item::word("京都", false)),
            plain(Item::word("x", false)),
        ]);
        assert_eq!(read("\"東京都、日本 x\""), [plain(grams(&["東京", "京都", "日本", "x"]))]);
        assert_eq!(read("\"日本"), [plain(grams(&["日本"]))]);
        assert_eq!(read("日本。\u{2000b}"), [plain(Item::word("日本", false))]);
    }

    #[test]
    fn operators_count_behind_a_space() {
        let operators = |text: &str| read(text).into_iter().map(|clause| clause.operator).collect::<Vec<_>>();
        assert_eq!(operators("+ab -cd >ef <gh ~ij kl"), [Some(Operator::Require), Some(Operator::Exclude), Some(Operator::Raise), Some(Operator::Lower), Some(Operator::Negate), None]);
        assert_eq!(operators("ab+cd - ef +-gh +>ij ~~kl"), [None, None, None, Some(Operator::Exclude), Some(Operator::Require), None]);
        assert_eq!(operators("~>ab < cd \"ef \"+gh"), [Some(Operator::Raise), Some(Operator::Lower), None, Some(Operator::Require)]);
        let group = vec![Clause { operator: Some(Operator::Require), item: Item::word("cd", false) }];
        assert_eq!(read("ab -(+cd)"), [plain(Item::word("ab", false)), Clause { operator: Some(Operator::Exclude), item: Item::Group(group) }]);
    }

    #[test]
    fn parentheses_that_do_not_match_find_nothing() {
        for text in ["(ab", "ab)", "ab) (cd", "((ab) cd"] {
            assert!(read(text).is_empty(), "{text}");
        }
        let deep = "(".repeat(DEPTH_MAX + 1);
        assert_eq!(clauses(&deep, &WordRules::default(), 2).unwrap_err().code, 1064);
    }
}
