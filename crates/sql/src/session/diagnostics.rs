//! The conditions of a statement: what SHOW WARNINGS lists and the OK packet counts.

use highkey_types::{Level, MySqlError, SqlState, Warning, errors};

use crate::expr::Raised;
use crate::parse::ast::ConditionItem;

/// What SIGNAL has said of a condition, other than its number and its message.
pub type SignalItems = Vec<(ConditionItem, String)>;

/// What is known of a condition besides its row of SHOW WARNINGS.
#[derive(Clone, Debug)]
struct Details {
    /// Which of the conditions.
    at: usize,
    state: SqlState,
    /// `None`: SIGNAL has nothing to do with it.
    items: Option<SignalItems>,
}

/// Conditions of the last statement that was not about them.
#[derive(Clone, Debug, Default)]
pub struct Diagnostics {
    /// At most `max_error_count` of them.
    conditions: Vec<Warning>,
    warnings: u64,
    errors: u64,
    /// Counts of the statement before, for `SELECT @@warning_count`.
    previous: (u64, u64),
    /// Of the conditions whose SQLSTATE is not that of their number, or that SIGNAL has said more of.
    details: Vec<Details>,
    /// What SIGNAL has said of the error that its statement ends with.
    raised: Option<SignalItems>,
}

impl Diagnostics {
    /// A new statement begins.
    pub fn clear(&mut self) {
        self.previous = (self.warnings, self.errors);
        self.conditions.clear();
        self.warnings = 0;
        self.errors = 0;
        self.details.clear();
        self.raised = None;
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
        self.details.clear();
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
        let items = self.raised.take();
        let warning = Warning { level: Level::Error, code: error.code, message: error.message.clone() };
        self.push_signalled(warning, error.sqlstate, items, limit);
    }

    /// A condition that SIGNAL has made.
    pub fn push_signalled(&mut self, warning: Warning, state: SqlState, items: Option<SignalItems>, limit: usize) {
        let at = self.conditions.len();
        let own_state = state != errors::sqlstate(warning.code);
        self.push(warning, limit, true);
        if self.conditions.len() > at && (own_state || items.is_some()) {
            self.details.push(Details { at, state, items });
        }
    }

    /// SIGNAL ends its statement with an error, of which it has said this.
    pub fn set_raised(&mut self, items: SignalItems) {
        self.raised = Some(items);
    }

    /// The last condition is no more.
    pub fn forget_last(&mut self) {
        let Some(last) = self.conditions.pop() else { return };
        self.details.retain(|details| details.at < self.conditions.len());
        self.warnings -= 1;
        self.errors -= u64::from(last.level == Level::Error);
    }

    /// The SQLSTATE of a condition, counted from 0, and what SIGNAL has said of it, if SIGNAL has made it.
    pub fn state_and_items(&self, at: usize) -> Option<(SqlState, Option<&SignalItems>)> {
        let condition = self.conditions.get(at)?;
        Some(match self.details.iter().find(|details| details.at == at) {
            Some(details) => (details.state, details.items.as_ref()),
            None => (errors::sqlstate(condition.code), None),
        })
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
