//! Statements of the text protocol that come again word for word (`COMMIT`, `SELECT @@version_comment LIMIT 1`, an application's constant
//! statements): parsed and bound once, like prepared ones.

use std::collections::HashMap;
use std::sync::Arc;

use super::PreparedStatement;
use crate::parse::{ParseOptions, Parsed, ast::Statement};

/// Longer texts rarely come again.
const LENGTH_MAX: usize = 2048;
/// When there are more, all are forgotten.
const STATEMENTS_MAX: usize = 128;
const SEEN: usize = 256;

/// The repeated statements of one session.
pub struct RepeatedStatements {
    hasher: ahash::RandomState,
    /// Hashes of texts that came once, by their low bits: only what comes twice is kept.
    seen: Box<[u64; SEEN]>,
    kept: HashMap<Arc<str>, Arc<PreparedStatement>, ahash::RandomState>,
    options: ParseOptions,
}

impl Default for RepeatedStatements {
    fn default() -> Self {
        RepeatedStatements { hasher: ahash::RandomState::new(), seen: Box::new([0; SEEN]), kept: HashMap::default(), options: ParseOptions::default() }
    }
}

impl RepeatedStatements {
    /// The statement, if it has come before under the same rules of reading.
    pub fn find(&self, text: &str, options: ParseOptions) -> Option<Arc<PreparedStatement>> {
        if self.options != options || text.len() > LENGTH_MAX {
            return None;
        }
        self.kept.get(text).cloned()
    }

    /// Notes a text that was parsed; keeps it when it comes for the second time.
    pub fn note(&mut self, text: &Arc<str>, options: ParseOptions, parsed: &Parsed) {
        let repeats = matches!(
            parsed.statement,
            Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_) | Statement::Begin { .. } | Statement::Commit { .. } | Statement::Rollback { .. }
        );
        if !repeats || text.len() > LENGTH_MAX {
            return;
        }
        if self.options != options {
            self.kept.clear();
            self.options = options;
        }
        let hash = self.hasher.hash_one(&**text);
        let slot = &mut self.seen[hash as usize % SEEN];
        if *slot != hash {
            *slot = hash;
            return;
        }
        if self.kept.len() >= STATEMENTS_MAX {
            self.kept.clear();
        }
        self.kept.insert(text.clone(), Arc::new(PreparedStatement::new(text.clone(), parsed.clone())));
    }
}
