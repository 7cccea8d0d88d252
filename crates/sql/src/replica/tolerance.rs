//! Which errors an applier passes over: `slave_exec_mode`, `slave_skip_errors`.

use highkey_table::StatementSavepoint;
use highkey_types::MySqlError;

use crate::session::Session;

/// What `ddl_exist_errors` stands for: things that are there already, or not there any more.
const DDL_EXIST_ERRORS: [u16; 10] = [1007, 1008, 1050, 1051, 1054, 1060, 1061, 1068, 1091, 1146];

/// What an applier does about changes that fail here and did not on the source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Tolerance {
    /// `slave_exec_mode=IDEMPOTENT`: an inserted row takes the place of those in its way; a row that is not there, or whose change meets another one or a
    /// foreign key, stays as it is.
    pub idempotent: bool,
    pub skipped: SkippedErrors,
}

impl Tolerance {
    /// Nothing is passed over.
    pub fn is_strict(&self) -> bool {
        !self.idempotent && self.skipped == SkippedErrors::default()
    }

    /// Whether a row's change that ends in this error is passed over.
    pub fn passes(&self, code: u16) -> bool {
        self.idempotent && matches!(code, 1032 | 1062 | 1451 | 1452) || self.skipped.has(code)
    }

    /// Before one row's change: what it returns to if it fails and may.
    pub fn mark(&self, session: &mut Session) -> Option<StatementSavepoint> {
        (!self.is_strict()).then(|| session.txn().statement_savepoint())
    }

    /// After it: one that has failed and may is as if it had not been tried.
    pub fn settle(&self, session: &mut Session, before: Option<StatementSavepoint>, done: Result<(), MySqlError>) -> Result<(), MySqlError> {
        match (done, before) {
            (Err(e), Some(before)) if self.passes(e.code) => session.txn().rollback_to_statement(&before),
            (done, _) => done,
        }
    }
}

/// The errors of `slave_skip_errors`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SkippedErrors {
    All,
    These(Vec<u16>),
}

impl Default for SkippedErrors {
    fn default() -> SkippedErrors {
        SkippedErrors::These(Vec::new())
    }
}

impl SkippedErrors {
    /// `OFF`, `all`, or numbers and `ddl_exist_errors` with commas. As in MySQL, what is no number is left out.
    pub fn parse(text: &str) -> SkippedErrors {
        let mut codes = Vec::new();
        for word in text.split(',').map(str::trim) {
            if word.eq_ignore_ascii_case("all") {
                return SkippedErrors::All;
            }
            if word.eq_ignore_ascii_case("ddl_exist_errors") {
                codes.extend(DDL_EXIST_ERRORS);
            }
            codes.extend(word.parse::<u16>());
        }
        SkippedErrors::These(codes)
    }

    /// Never: locks, which are tried again, KILL, and a log that cannot be read.
    pub fn has(&self, code: u16) -> bool {
        let all = match self {
            SkippedErrors::All => true,
            SkippedErrors::These(codes) => codes.contains(&code),
        };
        all && !matches!(code, 1205 | 1213 | 1317 | 1594)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_errors() {
        let has = |text: &str| [1032, 1050, 1062, 1213].map(|code| SkippedErrors::parse(text).has(code));
        assert_eq!(has("OFF"), [false; 4]);
        assert_eq!(has("1062, 1032"), [true, false, true, false]);
        assert_eq!(has("ddl_exist_errors,1062"), [false, true, true, false]);
        assert_eq!(has("ALL"), [true, true, true, false]);
        assert!(Tolerance::default().is_strict() && !Tolerance { idempotent: true, ..Tolerance::default() }.passes(1050));
    }
}
