//! FULLTEXT indexes: what a word is, the entries of a row's words, and who has a word. See README.md, "Full-text indexes".

mod entries;
mod search;
mod words;

pub use search::WordRows;
pub use words::{STOPWORDS, WORD_CHARS_MAX, has_length_of_word, is_indexed_word, word_key, words};
