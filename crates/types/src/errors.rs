//! MySQL's errors.
use std::fmt;

/// An error as the client sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MySqlError { pub code: u16, pub sqlstate: &'static str, pub message: String }
/// The level column of SHOW WARNINGS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level { Note, Warning, Error }
/// One row of SHOW WARNINGS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Warning { pub level: Level, pub code: u16, pub message: String }
impl Level { pub fn name(self) -> &'static str { match self { Level::Note => "Note", Level::Warning => "Warning", Level::Error => "Error" } } }
impl MySqlError {
    /// Any code of the table with a ready message; HY000 if the code is not in it.
    pub fn with_message(code: u16, message: impl Into<String>) -> MySqlError { MySqlError { code, sqlstate: "HY000", message: message.into() } }
    pub fn into_warning(self, level: Level) -> Warning { Warning { level, code: self.code, message: self.message } }
}
impl fmt::Display for MySqlError { fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { write!(f, "ERROR {} ({}): {}", self.code, self.sqlstate, self.message) } }
impl std::error::Error for MySqlError {}
pub fn dup_entry(value: &str, key: &str) -> MySqlError { MySqlError { code: 1062, sqlstate: "23000", message: format!("Duplicate entry '{value}' for key '{key}'") } }
pub fn not_supported_yet(feature: &str) -> MySqlError { MySqlError { code: 1235, sqlstate: "42000", message: format!("This version of MySQL doesn't yet support '{feature}'") } }
pub fn lock_wait_timeout() -> MySqlError { MySqlError { code: 1205, sqlstate: "HY000", message: "Lock wait timeout exceeded; try restarting transaction".into() } }
pub fn lock_deadlock() -> MySqlError { MySqlError { code: 1213, sqlstate: "40001", message: "Deadlock found when trying to get lock; try restarting transaction".into() } }
pub fn query_interrupted() -> MySqlError { MySqlError { code: 1317, sqlstate: "70100", message: "Query execution was interrupted".into() } }
