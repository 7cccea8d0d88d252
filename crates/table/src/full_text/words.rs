//! Words of a text, as InnoDB's default parser finds them.

use highkey_types::Collation;

/// Characters of the shortest word that an index holds: the default of `innodb_ft_min_token_size`.
const WORD_CHARS_MIN: usize = 3;
/// Characters of the longest: the default of `innodb_ft_max_token_size`.
pub const WORD_CHARS_MAX: usize = 84;

/// Words that no index holds: InnoDB's default list, in its order.
pub static STOPWORDS: [&str; 36] = [
    "a", "about", "an", "are", "as", "at", "be", "by", "com", "de", "en", "for", "from", "how", "i", "in", "is", "it", "la", "of", "on", "or", "that", "the",
    "this", "to", "was", "what", "when", "where", "who", "will", "with", "und", "the", "www",
];
/// Bytes of the longest of them.
const STOPWORD_BYTES_MAX: usize = 5;

/// The words of a text, in its order: letters, digits and underscores that stand side by side.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

/// An index holds words of its length.
pub fn has_length_of_word(word: &str) -> bool {
    (WORD_CHARS_MIN..=WORD_CHARS_MAX).contains(&word.chars().count())
}

/// An index holds it. Stopwords are told without regard to case, whatever the collation.
pub fn is_indexed_word(word: &str) -> bool {
    let stops = word.len() <= STOPWORD_BYTES_MAX && STOPWORDS.iter().any(|stopword| stopword.eq_ignore_ascii_case(word));
    !stops && has_length_of_word(word)
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

    #[test]
    fn words_are_letters_digits_and_underscores() {
        let found: Vec<&str> = words("it's x_1, 3.14 (naïve)-日本 ").collect();
        assert_eq!(found, ["it", "s", "x_1", "3", "14", "naïve", "日本"]);
    }

    #[test]
    fn short_long_and_stop_words_are_not_held() {
        assert!(is_indexed_word("abc") && is_indexed_word(&"x".repeat(84)) && is_indexed_word("there"));
        assert!(!is_indexed_word("ab") && !is_indexed_word(&"x".repeat(85)) && !is_indexed_word("About") && !is_indexed_word("日本"));
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
