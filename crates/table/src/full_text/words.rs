//! Words of a text, as InnoDB's default parser and its parser `ngram` find them, and which of them an index holds.

use std::collections::HashSet;
use std::sync::{Arc, LazyLock};

use highkey_types::Collation;

/// Characters of the shortest word that an index holds: the default of `innodb_ft_min_token_size`.
const WORD_CHARS_MIN: u32 = 3;
/// Characters of the longest: the default of `innodb_ft_max_token_size`.
const WORD_CHARS_MAX: u32 = 84;

/// Words that no index holds: InnoDB's default list, in its order.
pub static STOPWORDS: [&str; 36] = [
    "a", "about", "an", "are", "as", "at", "be", "by", "com", "de", "en", "for", "from", "how", "i", "in", "is", "it", "la", "of", "on", "or", "that", "the",
    "this", "to", "was", "what", "when", "where", "who", "will", "with", "und", "the", "www",
];
/// Bytes of the longest of them.
const STOPWORD_BYTES_MAX: usize = 5;

/// What an index of words was made with: rows that come later, and searches, are split alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordRules {
    pub parser: WordParser,
    pub stopwords: Stopwords,
}

/// What a word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordParser {
    /// What stands between other characters than letters, digits and underscores. An index holds words of so many characters.
    Runs { chars_min: u32, chars_max: u32 },
    /// `ngram`: so many characters side by side; of ASCII only letters, digits and underscores are.
    Ngram { chars: u32 },
}

/// Words that the index does not hold, nor n-grams that have one in them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stopwords {
    None,
    /// InnoDB's own, without regard to ASCII case.
    Default,
    Listed(StopwordList),
}

/// Stopwords of a table, as they were when the index was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StopwordList {
    /// Of the table's column: words that are equal under it are.
    collation: &'static Collation,
    words: Vec<String>,
    keys: HashSet<Vec<u8>>,
}

impl StopwordList {
    pub fn new(collation: &'static Collation, words: Vec<String>) -> StopwordList {
        let keys = words.iter().map(|word| word_key(collation, word)).collect();
        StopwordList { collation, words, keys }
    }

    pub fn collation(&self) -> &'static Collation {
        self.collation
    }

    pub fn words(&self) -> &[String] {
        &self.words
    }
}

impl Default for WordRules {
    /// InnoDB's defaults.
    fn default() -> WordRules {
        WordRules { parser: WordParser::Runs { chars_min: WORD_CHARS_MIN, chars_max: WORD_CHARS_MAX }, stopwords: Stopwords::Default }
    }
}

impl WordRules {
    /// InnoDB's defaults, which indexes have that do not say otherwise.
    pub fn usual() -> Arc<WordRules> {
        static USUAL: LazyLock<Arc<WordRules>> = LazyLock::new(Arc::default);
        USUAL.clone()
    }

    /// The words of a text, in its order.
    pub fn words<'t>(&self, text: &'t str) -> Words<'t> {
        match self.parser {
            WordParser::Runs { .. } => Words { rest: text, chars: None },
            WordParser::Ngram { chars } => Words { rest: text, chars: Some(chars.max(1) as usize) },
        }
    }

    /// An index holds words of its length.
    pub fn has_length(&self, word: &str) -> bool {
        match self.parser {
            WordParser::Runs { chars_min, chars_max } => (chars_min as usize..=chars_max as usize).contains(&word.chars().count()),
            WordParser::Ngram { .. } => true,
        }
    }

    /// An index holds no longer words.
    pub fn is_too_long(&self, word: &str) -> bool {
        matches!(self.parser, WordParser::Runs { chars_max, .. } if word.chars().count() > chars_max as usize)
    }

    /// An index holds it, if a row has it.
    pub fn holds(&self, word: &str) -> bool {
        match self.parser {
            WordParser::Runs { .. } => !self.stopwords.has(word) && self.has_length(word),
            WordParser::Ngram { .. } => !self.stopwords.are_in(word),
        }
    }
}

impl Stopwords {
    fn has(&self, word: &str) -> bool {
        match self {
            Stopwords::None => false,
            Stopwords::Default => word.len() <= STOPWORD_BYTES_MAX && STOPWORDS.iter().any(|stopword| stopword.eq_ignore_ascii_case(word)),
            // As InnoDB: what has been made lower case is compared, whatever the case of the list.
            Stopwords::Listed(list) => list.keys.contains(&word_key(list.collation, &word.to_lowercase())),
        }
    }

    /// Some characters of it that stand side by side are one.
    fn are_in(&self, word: &str) -> bool {
        if matches!(self, Stopwords::None) || matches!(self, Stopwords::Default) && !word.bytes().any(|byte| byte.is_ascii_alphabetic()) {
            return false;
        }
        let ends = |start: usize| word[start..].char_indices().map(move |(at, c)| start + at + c.len_utf8());
        word.char_indices().any(|(start, _)| ends(start).any(|end| self.has(&word[start..end])))
    }
}

/// Words are made of it.
pub fn is_of_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// N-grams are made of it.
fn is_of_ngram(c: char) -> bool {
    !c.is_ascii() || is_of_word(c)
}

/// The words of a text.
#[derive(Clone, Debug)]
pub struct Words<'t> {
    rest: &'t str,
    /// Of n-grams.
    chars: Option<usize>,
}

impl<'t> Iterator for Words<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        match self.chars {
            None => {
                let start = self.rest.find(is_of_word)?;
                let text = &self.rest[start..];
                let (word, rest) = text.split_at(text.find(|c| !is_of_word(c)).unwrap_or(text.len()));
                self.rest = rest;
                Some(word)
            }
            Some(chars) => loop {
                let start = self.rest.find(is_of_ngram)?;
                let text = &self.rest[start..];
                let mut end = 0;
                let mut taken = 0;
                for c in text.chars().take(chars).take_while(|c| is_of_ngram(*c)) {
                    end += c.len_utf8();
                    taken += 1;
                }
                if taken == chars {
                    // The next one begins with the second character.
                    self.rest = text.char_indices().nth(1).map_or("", |(at, _)| &text[at..]);
                    return Some(&text[..end]);
                }
                self.rest = &text[end..];
            },
        }
    }
}

/// What the word is in an index under the collation: words that are equal under it have the same key, and no key is the beginning of another. As in InnoDB
/// only the `_bin` collations tell cases apart, not those that end in `_cs`.
pub fn word_key(collation: &Collation, word: &str) -> Vec<u8> {
    let mut key = Vec::with_capacity(2 * word.len() + 2);
    if collation.name.ends_with("_cs") {
        collation.sort_key(collation.lower(word).as_bytes(), &mut key);
    } else {
        collation.sort_key(word.as_bytes(), &mut key);
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ngram(chars: u32, stopwords: Stopwords) -> WordRules {
        WordRules { parser: WordParser::Ngram { chars }, stopwords }
    }

    #[test]
    fn words_are_letters_digits_and_underscores() {
        let found: Vec<&str> = WordRules::default().words("it's x_1, 3.14 (naïve)-日本 ").collect();
        assert_eq!(found, ["it", "s", "x_1", "3", "14", "naïve", "日本"]);
    }

    #[test]
    fn short_long_and_stop_words_are_not_held() {
        let rules = WordRules::default();
        assert!(rules.holds("abc") && rules.holds(&"x".repeat(84)) && rules.holds("there"));
        assert!(!rules.holds("ab") && !rules.holds(&"x".repeat(85)) && !rules.holds("About") && !rules.holds("日本"));
        let rules = WordRules { parser: WordParser::Runs { chars_min: 2, chars_max: 4 }, stopwords: Stopwords::None };
        assert!(rules.holds("日本") && rules.holds("the") && !rules.holds("a") && !rules.holds("About"));
        assert!(rules.is_too_long("about") && !rules.is_too_long("a"));
    }

    // As INNODB_FT_INDEX_CACHE of MySQL 8.0.12 shows them.
    #[test]
    fn ngrams_end_at_ascii_punctuation_only() {
        let grams = |chars: u32, text: &str| ngram(chars, Stopwords::None).words(text).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(grams(2, "中文 全文,检索。数据"), ["中文", "全文", "检索", "索。", "。数", "数据"]);
        assert_eq!(grams(2, "a_b 'q' \"zz\" x--yz\n日"), ["a_", "_b", "zz", "yz"]);
        assert_eq!(grams(3, "東京都は"), ["東京都", "京都は"]);
        assert_eq!(grams(1, "q 日"), ["q", "日"]);
        assert!(grams(3, "ab 日本").is_empty());
    }

    #[test]
    fn an_ngram_with_a_stopword_in_it_is_not_held() {
        let rules = ngram(2, Stopwords::Default);
        assert!(rules.holds("bc") && rules.holds("検索") && rules.holds("_b"));
        assert!(!rules.holds("a_") && !rules.holds("XI") && !rules.holds("de") && !rules.holds("On"));
        assert!(!ngram(3, Stopwords::Default).holds("bed"));
        let list = StopwordList::new(Collation::utf8mb4(), vec!["東".into(), "Äx".into()]);
        let rules = ngram(2, Stopwords::Listed(list.clone()));
        assert!(rules.holds("京都") && rules.holds("de") && !rules.holds("東京") && !rules.holds("ax"));
        let rules = WordRules { stopwords: Stopwords::Listed(list), ..WordRules::default() };
        assert!(rules.holds("the") && rules.holds("東京都"));
        let exact = StopwordList::new(Collation::by_name("utf8mb4_bin").unwrap(), vec!["blue".into(), "Green".into()]);
        let rules = WordRules { stopwords: Stopwords::Listed(exact), ..WordRules::default() };
        assert!(!rules.holds("blue") && !rules.holds("BLUE") && rules.holds("green") && rules.holds("Green"));
    }

    #[test]
    fn no_word_is_the_beginning_of_another_in_keys() {
        let collation = Collation::utf8mb4();
        assert_eq!(word_key(collation, "Résumé"), word_key(collation, "resume"));
        assert!(!word_key(collation, "databases").starts_with(&word_key(collation, "database")));
    }

    #[test]
    fn case_counts_in_bin_collations_only() {
        let keys = |name: &str| ["Data", "data"].map(|word| word_key(Collation::by_name(name).unwrap(), word));
        for name in ["utf8mb4_0900_as_cs", "latin1_general_cs", "utf8mb4_0900_ai_ci"] {
            let [upper, lower] = keys(name);
            assert_eq!(upper, lower, "{name}");
        }
        let [upper, lower] = keys("utf8mb4_bin");
        assert_ne!(upper, lower);
    }

    #[test]
    fn beginnings_are_told_on_each_level() {
        for (name, accents) in [("utf8mb4_0900_ai_ci", false), ("utf8mb4_0900_as_ci", true), ("utf8mb4_0900_as_cs", true), ("utf8mb4_bin", true)] {
            let collation = Collation::by_name(name).unwrap();
            let begins = |word: &str, beginning: &str| {
                let (key, beginning) = (word_key(collation, word), word_key(collation, beginning));
                let behind = [&key[..], &[0x80, 0, 0, 1]].concat();
                let begins = collation.key_begins_with(&behind, &beginning);
                assert!(!begins || behind.starts_with(collation.key_stem(&beginning)));
                begins
            };
            assert!(begins("database", "data") && begins("data", "data") && begins("dátabase", "dát"), "{name}");
            assert!(!begins("dat", "data") && !begins("zebra", "data"), "{name}");
            assert_eq!(begins("dátabase", "data"), !accents, "{name}");
        }
    }
}
