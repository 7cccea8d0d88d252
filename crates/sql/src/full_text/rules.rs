//! What a new FULLTEXT index is made with, by the variables of the session and of the server.

use std::sync::Arc;

use highkey_table::{Direction, Isolation, KeyRange, RowBatch, StopwordList, Stopwords, Table, WordParser, WordRules};
use highkey_types::{MySqlError, TypeKind, errors};

use crate::session::SessionState;

/// The name of a stopword table's first column.
const STOPWORD_COLUMN: &str = "value";
/// Memory that the stopwords of a table may take: each index that is made keeps them.
const STOPWORDS_BYTES_MAX: usize = 4 << 20;

impl SessionState {
    /// The rules of an index that is made now. `ngram`: WITH PARSER ngram.
    pub(crate) fn new_word_rules(&self, ngram: bool) -> Result<Arc<WordRules>, MySqlError> {
        let number = |name: &str| u32::try_from(self.instance.global_u64(name)).unwrap_or(u32::MAX);
        let parser = match ngram {
            true => WordParser::Ngram { chars: number("ngram_token_size") },
            false => WordParser::Runs { chars_min: number("innodb_ft_min_token_size"), chars_max: number("innodb_ft_max_token_size") },
        };
        let stopwords = match self.variables.bool("innodb_ft_enable_stopword") {
            true => self.stopwords()?,
            false => Stopwords::None,
        };
        let rules = WordRules { parser, stopwords };
        let usual = WordRules::usual();
        Ok(if rules == *usual { usual } else { Arc::new(rules) })
    }

    /// Those of the session's table, else of the server's. As InnoDB has it, a table that is gone by now means the default ones. Error 1205 while the table
    /// is being changed: what is read must not be dropped meanwhile. Error 1235 for more of them than an index may keep.
    fn stopwords(&self) -> Result<Stopwords, MySqlError> {
        let name = match self.variables.text("innodb_ft_user_stopword_table") {
            user if user.is_empty() => self.instance.global_text("innodb_ft_server_stopword_table"),
            user => user,
        };
        let (table, mut txn) = loop {
            let Some(table) = self.stopword_table(&name) else { return Ok(Stopwords::Default) };
            let mut txn = self.instance.database().begin(Isolation::ReadCommitted);
            // Under LOCK TABLES nobody else changes it if the session has it, and the session's lock is not this transaction's.
            if txn.try_open(&table) || self.locks.has_tables() {
                break (table, txn);
            }
            if table.is_current() {
                return Err(errors::lock_wait_timeout());
            }
        };
        let snapshot = txn.snapshot();
        let mut scan = table.scan_at(&snapshot, 0, &KeyRange::all(), Direction::Forward)?;
        let mut batch = RowBatch::new();
        let (mut words, mut bytes) = (Vec::new(), 0);
        while scan.next_batch(&mut batch)? {
            for row in 0..batch.len() {
                let value = batch.value(row, 0);
                let Some(word) = value.as_str().filter(|word| !word.is_empty()) else { continue };
                bytes += size_of::<String>() + word.len();
                if bytes > STOPWORDS_BYTES_MAX {
                    return Err(errors::not_supported_yet("FULLTEXT indexes with more than 4 MiB of stopwords"));
                }
                words.push(word.to_owned());
            }
        }
        Ok(Stopwords::Listed(StopwordList::new(table.def().columns[0].ty.collation, words)))
    }

    /// The table of stopwords with this name, `schema/table`; None if there is none, or if its first column is not `value`, a VARCHAR.
    pub(crate) fn stopword_table(&self, name: &str) -> Option<Arc<Table>> {
        let (schema, name) = name.split_once('/')?;
        let table = self.instance.database().catalog().table(schema, name).ok()?;
        let first = table.def().columns.first()?;
        let fits = &*first.name == STOPWORD_COLUMN && matches!(first.ty.kind, TypeKind::VarChar(_)) && table.def().partitioning.is_none();
        fits.then_some(table)
    }
}
