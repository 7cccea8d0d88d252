//! Transactions in two phases.

use highkey_table::Xid;

/// Where the text of a BINLOG statement is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BinlogText {
    Literal(String),
    /// One or two user variables, without the sign, whose values are behind each other.
    Variables(Vec<String>),
}

/// An XA statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum XaStatement {
    /// XA START or BEGIN.
    Start { xid: Xid, how: XaStart },
    /// XA END. `suspend`: SUSPEND [FOR MIGRATE] was said.
    End { xid: Xid, suspend: bool },
    Prepare(Xid),
    Commit { xid: Xid, one_phase: bool },
    Rollback(Xid),
    /// XA RECOVER [CONVERT XID].
    Recover { convert: bool },
}

/// What XA START is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum XaStart {
    New,
    Join,
    Resume,
}
