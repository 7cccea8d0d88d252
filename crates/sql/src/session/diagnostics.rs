//! The conditions of a statement: what SHOW WARNINGS lists and the OK packet counts.

use highkey_types::{Level, MySqlError, Warning};

use crate::expr::Raised;

/// Conditions of the last statement that was not about them.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// At most `max_error_count` of them.
    conditions: Vec<Warning>,
    warnings: u64,
    errors: u64,
    /// Counts of the statement before, for `SELECT @@warning_count`.
    previous: (u64, u64),
}

impl Diagnostics {
    /// A new statement begins.
    pub fn clear(&mut self) {
        self.previous = (self.warnings, self.errors);
        self.conditions.clear();
        self.warnings = 0;
        self.errors = 0;
    }

    /// `limit` is `max_error_count`; notes come only with `sql_notes`.
    pub fn push(&mut self, warning: Warning, limit: usize, notes: bool) {
        if warning.level == Level::Note && !notes {
            return;
        }
        self.warnings += 1;
        if warning.level == Level::Error {
            self.errors += 1;
        }
        if self.conditions.len() < limit {
            self.conditions.push(warning);
        }
    }

    /// Takes all conditions out.
    pub fn take(&mut self) -> Raised {
        let first = std::mem::take(&mut self.conditions);
        Raised { first, all: std::mem::take(&mut self.warnings), errors: std::mem::take(&mut self.errors), strict: None }
    }

    /// Adds conditions that were taken from others with the same limit.
    pub fn add(&mut self, raised: Raised, limit: usize) {
        self.warnings += raised.all;
        self.errors += raised.errors;
        let room = limit.saturating_sub(self.conditions.len());
        self.conditions.extend(raised.first.into_iter().take(room));
    }

    pub fn push_error(&mut self, error: &MySqlError, limit: usize) {
        self.push(Warning { level: Level::Error, code: error.code, message: error.message.clone() }, limit, true);
    }

    pub fn conditions(&self) -> &[Warning] {
        &self.conditions
    }

    /// All conditions, also those beyond the limit.
    pub fn count(&self) -> u64 {
        self.warnings
    }

    pub fn error_count(&self) -> u64 {
        self.errors
    }

    /// (`@@warning_count`, `@@error_count`) as the running statement sees them.
    pub fn previous_counts(&self) -> (u64, u64) {
        self.previous
    }

    /// The count in an OK packet.
    pub fn packet_count(&self) -> u16 {
        self.conditions.len().min(usize::from(u16::MAX)) as u16
    }
}
