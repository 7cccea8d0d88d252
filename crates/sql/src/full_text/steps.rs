//! A search as steps, in the order in which InnoDB takes them.

use std::collections::HashMap;

use highkey_table::{WordRules, word_key};
use highkey_types::Collation;

use super::parse::{Clause, Item, Operator};

/// A word that is searched for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SearchedWord {
    /// Its key under the index's collation.
    pub key: Vec<u8>,
    /// The beginning of words.
    pub prefix: bool,
    /// An index may hold it.
    pub indexed: bool,
}

impl SearchedWord {
    fn new(collation: &Collation, rules: &WordRules, word: &str, prefix: bool) -> SearchedWord {
        let key = word_key(collation, word);
        let indexed = if prefix { !collation.key_stem(&key).is_empty() } else { rules.holds(word) };
        SearchedWord { key, prefix, indexed }
    }
}

/// What a row is asked for.
#[derive(Debug)]
pub enum Part {
    /// A word, by its place among the searched ones.
    Word(usize),
    /// Those words together: in this sequence of keys, words that no index holds included but those at its beginning, or all in so many words.
    Phrase { words: Vec<usize>, sequence: Vec<Vec<u8>>, distance: u64 },
    /// Steps of their own.
    Group(Vec<Step>),
}

/// One thing that is done for a row.
#[derive(Debug)]
pub struct Step {
    /// None: the row is found if it has the part.
    pub operator: Option<Operator>,
    pub part: Part,
}

/// The words that a search is for, each once.
#[derive(Debug, Default)]
pub struct SearchedWords {
    pub words: Vec<SearchedWord>,
    /// How often each was written.
    pub times: Vec<u64>,
    places: HashMap<SearchedWord, usize>,
}

impl SearchedWords {
    /// The place of a word.
    fn place(&mut self, word: SearchedWord) -> usize {
        if let Some(place) = self.places.get(&word) {
            self.times[*place] += 1;
            return *place;
        }
        self.places.insert(word.clone(), self.words.len());
        self.words.push(word);
        self.times.push(1);
        self.words.len() - 1
    }

    /// The place of a word by its key, if it was not searched for yet.
    pub fn place_of_new(&mut self, key: Vec<u8>) -> Option<usize> {
        let word = SearchedWord { key, prefix: false, indexed: true };
        if self.places.contains_key(&word) { None } else { Some(self.place(word)) }
    }
}

/// The steps of clauses: see R3 in README.md.
pub fn steps(clauses: &[Clause], collation: &Collation, rules: &WordRules, searched: &mut SearchedWords) -> Vec<Step> {
    let mut first = Vec::new();
    let (mut required, mut excluded) = (Vec::new(), Vec::new());
    for clause in clauses {
        if matches!(clause.item, Item::Group(_)) {
            first.append(&mut required);
            first.append(&mut excluded);
        }
        let parts = parts(&clause.item, collation, rules, searched);
        let in_place = parts.len() != 1;
        let into = match clause.operator {
            Some(Operator::Require) if !in_place => &mut required,
            Some(Operator::Exclude) if !in_place => &mut excluded,
            _ => &mut first,
        };
        into.extend(parts.into_iter().map(|part| Step { operator: clause.operator, part }));
    }
    first.into_iter().chain(required).chain(excluded).collect()
}

/// What an item asks for: several parts if it was written as one word and is several.
fn parts(item: &Item, collation: &Collation, rules: &WordRules, searched: &mut SearchedWords) -> Vec<Part> {
    match item {
        Item::Words { words, prefix } => {
            let last = words.len().saturating_sub(1);
            words.iter().enumerate().map(|(at, word)| Part::Word(searched.place(SearchedWord::new(collation, rules, word, *prefix && at == last)))).collect()
        }
        Item::Phrase { words, distance } => {
            let held = words.iter().filter(|word| rules.holds(word));
            let found: Vec<usize> = held.map(|word| searched.place(SearchedWord::new(collation, rules, word, false))).collect();
            // What stands before the first word that an index holds does not count.
            let sequence: Vec<Vec<u8>> = words.iter().skip_while(|word| !rules.holds(word)).map(|word| word_key(collation, word)).collect();
            if let ([only], true) = (&found[..], *distance > 0 || sequence.len() == 1) {
                return vec![Part::Word(*only)];
            }
            vec![Part::Phrase { words: found, sequence, distance: *distance }]
        }
        Item::Group(clauses) => vec![Part::Group(steps(clauses, collation, rules, searched))],
    }
}
