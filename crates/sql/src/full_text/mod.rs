//! MATCH … AGAINST. See `README.md`.

mod ngram;
mod parse;
mod rank;
mod rules;
mod steps;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use highkey_table::{Direction, KeyRange, RowBatch, RowUse, Snapshot, Table, WordRules, word_key};
use highkey_types::{Collation, ColumnType, MySqlError, TypeKind, Value, errors};
use parking_lot::Mutex;

use crate::expr::eval;
use crate::parse::ast::MatchMode;
use crate::plan::{CompareOp, Expr, ExprKind, ExprType, unresolved};
use crate::session::{Session, blocking};
use parse::Operator;
use steps::{Part, SearchedWord, SearchedWords, Step};

/// idf of a word that all rows have, whose logarithm would be 0: `fts_query_calculate_idf` of InnoDB.
const RATIO_OF_ALL: f64 = 1.0001;
/// Rows that are looked up by their keys; of more the table is scanned.
const FOUND_ROWS_MAX: usize = 1 << 16;
/// Entries of the index that a search keeps; of words that have more it knows only how many.
const ENTRIES_MAX: usize = 1 << 20;

/// One MATCH … AGAINST of a statement: what is searched for, and, once the statement's tables are open, what the index says of it.
pub struct Search {
    table: Arc<Table>,
    /// The FULLTEXT index, by its position in `TableDef::indexes`.
    index: usize,
    mode: MatchMode,
    /// A constant.
    query: Expr,
    /// It stands in a condition: the rows that match may be asked for.
    is_condition: bool,
    settled: Mutex<Option<Arc<Settled>>>,
}

/// What a search is in one execution of the statement.
struct Settled {
    steps: Vec<Step>,
    searched: Vec<SearchedWord>,
    /// idf of each searched word.
    weights: Vec<f64>,
    /// The primary keys, or row ids, of rows among which are all that match, ascending; None: not asked for, or too many.
    rows: Option<Vec<Vec<Expr>>>,
}

impl fmt::Debug for Search {
    /// What is searched for, not what was found.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Search({:?}, {}, {:?}, {:?})", self.table, self.index, self.mode, self.query)
    }
}

impl Search {
    pub fn new(table: Arc<Table>, index: usize, mode: MatchMode, query: Expr, is_condition: bool) -> Search {
        Search { table, index, mode, query, is_condition, settled: Mutex::new(None) }
    }

    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The name of the index.
    pub fn index_name(&self) -> &str {
        &self.table.def().indexes[self.index].name
    }

    pub fn mode(&self) -> MatchMode {
        self.mode
    }

    pub fn query(&self) -> &Expr {
        &self.query
    }

    /// It searches the same index for the same.
    pub fn is_same(&self, other: &Search) -> bool {
        let same_place = self.table.id() == other.table.id() && self.index == other.index && self.mode == other.mode;
        same_place && format!("{:?}", self.query) == format!("{:?}", other.query)
    }

    /// The rank of a row whose columns have these values, in the order of the index.
    pub fn rank(&self, values: &[Value]) -> Result<f64, MySqlError> {
        let settled = self.settled.lock().clone().ok_or_else(|| unresolved("a full-text search that nobody has settled"))?;
        Ok(f64::from(rank::rank(values, self.collation(), self.rules(), &settled.steps, &settled.searched, &settled.weights)))
    }

    /// The primary keys, or the row id, as literals, of rows among which are all that match.
    pub fn found_rows(&self) -> Option<Vec<Vec<Expr>>> {
        self.settled.lock().as_ref()?.rows.clone()
    }

    /// Rows are looked up by what it has found.
    pub fn finds_rows(&self) -> bool {
        self.settled.lock().as_ref().is_some_and(|settled| settled.rows.is_some())
    }

    /// Positions of the index's columns in the table.
    pub fn columns(&self) -> impl Iterator<Item = usize> {
        self.table.def().indexes[self.index].parts.iter().map(|part| part.column)
    }

    fn collation(&self) -> &'static Collation {
        let def = self.table.def();
        def.columns[def.indexes[self.index].parts[0].column].ty.collation
    }

    /// What the index was made with.
    fn rules(&self) -> &WordRules {
        &self.table.def().indexes[self.index].words
    }

    /// Asks the index. Errors: 1064, 1317 once `stop` says yes, 1412.
    fn settle(&self, text: &str, snapshot: &Snapshot, stop: &dyn Fn() -> bool) -> Result<(), MySqlError> {
        let collation = self.collation();
        let clauses = parse::parse(text, self.mode == MatchMode::Boolean, self.rules())?;
        let mut searched = SearchedWords::default();
        let mut steps = steps::steps(&clauses, collation, self.rules(), &mut searched);
        let mut holders = Holders::default();
        holders.add(self, &searched.words, snapshot, stop)?;
        if self.mode == MatchMode::QueryExpansion {
            for key in self.words_of_matches(&steps, &searched.words, &holders, snapshot, stop)? {
                let place = searched.place_of_new(key);
                steps.extend(place.map(|place| Step { operator: None, part: Part::Word(place) }));
            }
            holders.add(self, &searched.words, snapshot, stop)?;
        }
        let weights = holders.weights(&searched, self.table.row_count_estimate()?);
        let rows = match candidates(&steps, &holders.rows).filter(|_| self.is_condition) {
            Some(found) => self.keys(&found, snapshot, stop)?,
            None => None,
        };
        *self.settled.lock() = Some(Arc::new(Settled { steps, searched: searched.words, weights, rows }));
        Ok(())
    }

    /// WITH QUERY EXPANSION: the keys of all words of the rows that match, each once, ascending.
    fn words_of_matches(&self, steps: &[Step], searched: &[SearchedWord], holders: &Holders, snapshot: &Snapshot, stop: &dyn Fn() -> bool) -> Result<BTreeSet<Vec<u8>>, MySqlError> {
        let (collation, rules) = (self.collation(), self.rules());
        let weights = vec![1.0; searched.len()];
        let mut keys = BTreeSet::new();
        let mut take = |value_of: &dyn Fn(usize) -> Value| {
            let values: Vec<Value> = self.columns().map(value_of).collect();
            if rank::rank(&values, collation, rules, steps, searched, &weights) != 0.0 {
                let texts = values.iter().filter_map(Value::as_str);
                keys.extend(texts.flat_map(|text| rules.words(text)).filter(|word| rules.holds(word)).map(|word| word_key(collation, word)));
            }
            if stop() { Err(errors::query_interrupted()) } else { Ok(()) }
        };
        match candidates(steps, &holders.rows) {
            Some(found) => {
                for clustered in found {
                    if let Some(row) = self.table.row_at(snapshot, &clustered)? {
                        take(&|column| row.value(column))?;
                    }
                }
            }
            None => {
                let mut scan = self.table.scan_at(snapshot, 0, &KeyRange::all(), Direction::Forward)?;
                let mut batch = RowBatch::new();
                while scan.next_batch(&mut batch)? {
                    for row in 0..batch.len() {
                        take(&|column| batch.value(row, column))?;
                    }
                }
            }
        }
        Ok(keys)
    }

    /// The primary keys of rows with these clustered keys, or their row ids, as literals. None for a primary key whose values are not told by literals, and for too many rows.
    fn keys(&self, found: &BTreeSet<Vec<u8>>, snapshot: &Snapshot, stop: &dyn Fn() -> bool) -> Result<Option<Vec<Vec<Expr>>>, MySqlError> {
        let def = self.table.def();
        let Some(key) = def.primary_key() else {
            let id = |clustered: &Vec<u8>| vec![Expr::literal(Value::Bytes(clustered.clone()), ExprType::text(clustered.len() as u32, Collation::binary(), false))];
            return Ok((found.len() <= FOUND_ROWS_MAX).then(|| found.iter().map(id).collect()));
        };
        let told = key.parts.iter().all(|part| part.prefix.is_none() && is_told(&def.columns[part.column].ty));
        if !told || found.len() > FOUND_ROWS_MAX {
            return Ok(None);
        }
        let mut rows = Vec::with_capacity(found.len());
        for clustered in found {
            if stop() {
                return Err(errors::query_interrupted());
            }
            let Some(row) = self.table.row_at(snapshot, clustered)? else { continue };
            let literal = |column: usize| Expr::literal(row.value(column), ExprType::column(def.columns[column].ty.clone(), false));
            rows.push(key.parts.iter().map(|part| literal(part.column)).collect());
        }
        Ok(Some(rows))
    }
}

/// A literal of the type finds the row that has the value, whatever the session's settings.
fn is_told(ty: &ColumnType) -> bool {
    ty.is_integer() || ty.is_text() || ty.is_binary() || matches!(ty.kind, TypeKind::Decimal { .. } | TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Year)
}

/// Who has the searched words.
#[derive(Default)]
struct Holders {
    /// Of each word the clustered keys of the rows that have it; None if those are too many to be kept.
    rows: Vec<Option<BTreeSet<Vec<u8>>>>,
    /// Of each word the entries of the index; more than rows for the beginning of several words.
    entries: Vec<u64>,
    /// Entries that are kept.
    kept: usize,
}

impl Holders {
    /// Those of the words behind the ones that are known.
    fn add(&mut self, search: &Search, searched: &[SearchedWord], snapshot: &Snapshot, stop: &dyn Fn() -> bool) -> Result<(), MySqlError> {
        for word in &searched[self.rows.len()..] {
            if !word.indexed {
                self.entries.push(0);
                self.rows.push(Some(BTreeSet::new()));
                continue;
            }
            let found = search.table.rows_with_word(snapshot, search.index, &word.key, word.prefix, ENTRIES_MAX - self.kept, stop)?;
            // A word that no row has was looked up too.
            search.table.count_use(Some(search.index), RowUse::Fetch, found.entries.max(1));
            self.entries.push(found.entries);
            self.kept += found.keys.as_ref().map_or(0, Vec::len);
            self.rows.push(found.keys.map(|keys| keys.into_iter().collect()));
        }
        Ok(())
    }

    /// idf of each word in a table of about so many rows; R2 of README.md.
    fn weights(&self, searched: &SearchedWords, rows: u64) -> Vec<f64> {
        // Rows that this transaction has not committed are not counted there.
        let most = self.rows.iter().flatten().map(|holders| holders.len() as u64).max().unwrap_or(0);
        let rows = rows.max(most);
        let weight = |(entries, times): (&u64, &u64)| match entries * times {
            0 => 0.0,
            counted if counted == rows => RATIO_OF_ALL.log10(),
            counted => (rows as f64 / counted as f64).log10(),
        };
        self.entries.iter().zip(&searched.times).map(weight).collect()
    }
}

/// Clustered keys among which are those of all rows that match, by the words alone; None: any row may match.
fn candidates(steps: &[Step], holders: &[Option<BTreeSet<Vec<u8>>>]) -> Option<BTreeSet<Vec<u8>>> {
    let mut found = Some(BTreeSet::new());
    let mut required = false;
    for step in steps {
        if matches!(step.operator, Some(Operator::Exclude | Operator::Negate)) {
            continue;
        }
        let part = match &step.part {
            Part::Word(word) => holders[*word].clone(),
            Part::Phrase { words, .. } if words.is_empty() => Some(BTreeSet::new()),
            Part::Phrase { words, .. } => words.iter().fold(None, |both, word| in_both(both, holders[*word].as_ref())),
            Part::Group(steps) => candidates(steps, holders),
        };
        found = match (found, part) {
            (_, part) if step.operator == Some(Operator::Require) && !required => part,
            (found, part) if step.operator == Some(Operator::Require) => in_both(found, part.as_ref()),
            (Some(mut found), Some(part)) => {
                found.extend(part);
                Some(found)
            }
            _ => None,
        };
        required |= step.operator == Some(Operator::Require);
    }
    found
}

/// The keys that are in two sets; None is the set of all.
fn in_both(a: Option<BTreeSet<Vec<u8>>>, b: Option<&BTreeSet<Vec<u8>>>) -> Option<BTreeSet<Vec<u8>>> {
    match (a, b) {
        (Some(mut a), Some(b)) => {
            a.retain(|key| b.contains(key));
            Some(a)
        }
        (a, b) => a.or_else(|| b.cloned()),
    }
}

/// The search by which a condition is true for matching rows only: MATCH itself, or its rank above a constant that is not negative.
pub fn search_of_condition(condition: &Expr) -> Option<(&Arc<Search>, &[Expr])> {
    match &condition.kind {
        ExprKind::Match { search, columns } => Some((search, columns.as_slice())),
        ExprKind::Compare { op: CompareOp::Gt, left, right, .. } => {
            let ExprKind::Match { search, columns } = &left.kind else { return None };
            let least = match right.as_literal()? {
                Value::Int(n) => *n as f64,
                Value::UInt(n) => *n as f64,
                Value::Double(n) => *n,
                Value::Decimal(n) => if n.is_negative() { -1.0 } else { 0.0 },
                _ => return None,
            };
            (least >= 0.0).then_some((search, columns.as_slice()))
        }
        _ => None,
    }
}

impl Session {
    /// Settles the searches of a statement whose tables are open. `latest`: the statement changes rows or locks those of the table, so that what is committed by now counts.
    /// Errors: 1064 for a search that is no search, 1317, 1412, 3024.
    pub(crate) fn settle_searches(&mut self, searches: &[Arc<Search>], latest: &dyn Fn(&Table) -> bool) -> Result<(), MySqlError> {
        let process = self.state.process.clone();
        let stop = || process.check().is_err();
        for search in searches {
            let text = eval(&search.query, &[], &mut self.state)?;
            let text = highkey_types::cast::to_str(&text);
            let snapshot = if latest(search.table()) { self.txn().fresh_snapshot() } else { self.txn().snapshot() };
            let settled = blocking(|| search.settle(text.as_deref().unwrap_or_default(), &snapshot, &stop));
            process.check()?;
            settled?;
        }
        Ok(())
    }
}
