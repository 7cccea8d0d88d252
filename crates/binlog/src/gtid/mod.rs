//! Global transaction identifiers: a server's UUID, and sets of transactions.

mod set;
#[cfg(test)]
mod tests;
mod uuid;

pub use set::GtidSet;
pub use uuid::Uuid;

/// Why a text or a byte string is not what it should be. The user's mistake in `SET GLOBAL gtid_purged` and in functions (MySQL's 1772),
/// a broken file or packet elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GtidError {
    /// What is wrong, in English.
    pub reason: &'static str,
    /// Offset of the byte where reading stopped.
    pub at: usize,
}

impl std::fmt::Display for GtidError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} at byte {}", self.reason, self.at)
    }
}

impl std::error::Error for GtidError {}
