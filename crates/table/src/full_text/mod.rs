//! FULLTEXT indexes: what a word is, the entries of a row's words, and who has a word. See README.md, "Full-text indexes".

mod entries;
mod search;
mod words;

pub(crate) use entries::IndexedWords;
pub use search::WordRows;
pub use words::{STOPWORDS, StopwordList, Stopwords, WordParser, WordRules, Words, is_of_word, word_key};
