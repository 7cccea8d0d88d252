//! The rank of one row, by its text.

use std::collections::BTreeMap;

use highkey_table::{WordRules, word_key};
use highkey_types::{Collation, Value};

use super::parse::Operator;
use super::steps::{Part, SearchedWord, Step};

/// What the operators `>`, `<` and `~` add, and how much they may add to together.
const ADJUSTMENT: f32 = 1.0;

/// The words of a row.
struct Document<'c> {
    collation: &'c Collation,
    /// Those that an index holds, by key: how often they are there.
    counts: BTreeMap<Vec<u8>, u32>,
    /// All words of each column, in their order; only if a phrase asks for it.
    columns: Vec<Vec<Vec<u8>>>,
}

impl<'c> Document<'c> {
    fn new(values: &[Value], collation: &'c Collation, rules: &WordRules, in_order: bool) -> Document<'c> {
        let mut document = Document { collation, counts: BTreeMap::new(), columns: Vec::new() };
        for text in values.iter().filter_map(Value::as_str) {
            let mut column = Vec::new();
            for word in rules.words(text) {
                let indexed = rules.holds(word);
                if !(indexed || in_order) {
                    continue;
                }
                let key = word_key(collation, word);
                if in_order {
                    column.push(key.clone());
                }
                if indexed {
                    *document.counts.entry(key).or_default() += 1;
                }
            }
            document.columns.push(column);
        }
        document
    }

    /// How often the word is there; of the beginning of words the first that begins so.
    fn count(&self, word: &SearchedWord) -> u32 {
        if !word.indexed {
            return 0;
        }
        if !word.prefix {
            return self.counts.get(&word.key).copied().unwrap_or(0);
        }
        let stem = self.collation.key_stem(&word.key);
        let mut alike = self.counts.range(stem.to_vec()..).take_while(|(key, _)| key.starts_with(stem));
        alike.find(|(key, _)| self.collation.key_begins_with(key, &word.key)).map_or(0, |(_, count)| *count)
    }

    fn has_sequence(&self, sequence: &[Vec<u8>]) -> bool {
        self.columns.iter().any(|column| column.windows(sequence.len()).any(|window| window == sequence))
    }

    /// All the words stand in some `distance` words side by side, whatever the columns.
    fn has_together(&self, words: &[&SearchedWord], distance: u64) -> bool {
        let width = usize::try_from(distance).unwrap_or(usize::MAX);
        let mut last: Vec<Option<usize>> = vec![None; words.len()];
        self.columns.iter().flatten().enumerate().any(|(at, key)| {
            for (last, _) in last.iter_mut().zip(words).filter(|(_, word)| word.key == *key) {
                *last = Some(at);
            }
            last.iter().all(|place| place.is_some_and(|place| at - place < width))
        })
    }
}

/// Where the steps have got to with a row.
#[derive(Default)]
struct Standing {
    found: bool,
    /// A `+` was there.
    required: bool,
    /// What the operators have given.
    adjusted: f32,
    /// Places of the words that were met, each once, in this order.
    met: Vec<usize>,
}

impl Standing {
    fn enter(&mut self, adjusted: f32) {
        if !self.found {
            self.found = true;
            self.adjusted = adjusted;
            self.met.clear();
        }
    }

    fn adjust(&mut self, by: f32) {
        self.adjusted = (self.adjusted + by).clamp(-ADJUSTMENT, ADJUSTMENT);
    }

    /// A step whose part the row has or not; what the part itself gives, and its words.
    fn take(&mut self, operator: Option<Operator>, has: bool, given: f32, words: &[usize]) {
        match operator {
            None if has => self.enter(given),
            Some(Operator::Require) => {
                let stays = has && (self.found || !self.required);
                if stays && self.found {
                    self.adjusted += given;
                } else if stays {
                    self.enter(given);
                } else {
                    self.found = false;
                }
                self.required = true;
            }
            Some(Operator::Exclude) if has => self.found = false,
            Some(Operator::Negate) if has && self.found => self.adjust(-ADJUSTMENT),
            Some(Operator::Raise) if has => {
                self.enter(given);
                self.adjust(ADJUSTMENT);
            }
            Some(Operator::Lower) if has => {
                self.enter(given);
                self.adjust(-ADJUSTMENT);
            }
            _ => {}
        }
        if has && self.found {
            for word in words {
                if !self.met.contains(word) {
                    self.met.push(*word);
                }
            }
        }
    }
}

/// The rank of a row whose columns of the index have these values; 0 if it does not match. `weights`: idf of each searched word.
pub fn rank(values: &[Value], collation: &Collation, rules: &WordRules, steps: &[Step], searched: &[SearchedWord], weights: &[f64]) -> f32 {
    let document = Document::new(values, collation, rules, has_phrase(steps));
    let standing = walk(steps, &document, searched);
    if !standing.found {
        return 0.0;
    }
    standing.met.iter().fold(standing.adjusted, |rank, &word| {
        let weight = f64::from(document.count(&searched[word])) * weights[word];
        rank + (weight * weights[word]) as f32
    })
}

fn has_phrase(steps: &[Step]) -> bool {
    steps.iter().any(|step| match &step.part {
        Part::Word(_) => false,
        Part::Phrase { .. } => true,
        Part::Group(steps) => has_phrase(steps),
    })
}

fn walk(steps: &[Step], document: &Document<'_>, searched: &[SearchedWord]) -> Standing {
    let mut standing = Standing::default();
    for step in steps {
        match &step.part {
            Part::Word(word) => standing.take(step.operator, document.count(&searched[*word]) > 0, 0.0, &[*word]),
            Part::Phrase { words, sequence, distance } => {
                let has = match (words.len(), *distance) {
                    (0, _) => false,
                    (_, 0) => document.has_sequence(sequence),
                    (_, distance) => document.has_together(&words.iter().map(|word| &searched[*word]).collect::<Vec<_>>(), distance),
                };
                standing.take(step.operator, has, 0.0, words);
            }
            Part::Group(steps) => {
                let inner = walk(steps, document, searched);
                standing.take(step.operator, inner.found, inner.adjusted, &inner.met);
            }
        }
    }
    standing
}
