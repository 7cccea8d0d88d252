//! What a statement answers into, implemented by the server (packets) and by tests (vectors).

use async_trait::async_trait;
use bytes::Bytes;
use highkey_types::{Collation, ColumnType, MySqlError, Value};

use super::error;

/// A result column as the client is told about it. `ty` gives wire type, length and decimals.
#[derive(Clone, Debug)]
pub struct Column {
    pub schema: String,
    /// The alias in FROM.
    pub table: String,
    pub org_table: String,
    /// The alias in the select list.
    pub name: String,
    pub org_name: String,
    pub ty: ColumnType,
    pub flags: ColumnFlags,
    /// What the definition packet says, and the character set in which text cells are sent: `character_set_results` for text, the type's own if that is NULL,
    /// `binary` for the rest. Text that is `binary` here is sent in its type's own, too.
    pub collation: &'static Collation,
}

/// Flags of a column definition packet, bit for bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColumnFlags(pub u16);

impl ColumnFlags {
    pub const NOT_NULL: u16 = 1;
    pub const PRI_KEY: u16 = 2;
    pub const UNIQUE_KEY: u16 = 4;
    pub const MULTIPLE_KEY: u16 = 8;
    pub const BLOB: u16 = 16;
    pub const UNSIGNED: u16 = 32;
    pub const ZEROFILL: u16 = 64;
    pub const BINARY: u16 = 128;
    pub const ENUM: u16 = 256;
    pub const AUTO_INCREMENT: u16 = 512;
    pub const TIMESTAMP: u16 = 1024;
    pub const SET: u16 = 2048;
    pub const NO_DEFAULT_VALUE: u16 = 4096;
    pub const ON_UPDATE_NOW: u16 = 8192;
    pub const NUM: u16 = 32768;

    pub fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }
}

/// The status word of OK and EOF packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusFlags(pub u16);

impl StatusFlags {
    pub const IN_TRANS: u16 = 1;
    pub const AUTOCOMMIT: u16 = 2;
    pub const MORE_RESULTS_EXISTS: u16 = 8;
    pub const CURSOR_EXISTS: u16 = 64;
    pub const LAST_ROW_SENT: u16 = 128;
    pub const NO_BACKSLASH_ESCAPES: u16 = 512;
    /// The row of the result set is the values of OUT parameters.
    pub const PS_OUT_PARAMS: u16 = 4096;
    pub const IN_TRANS_READONLY: u16 = 8192;
    pub const SESSION_STATE_CHANGED: u16 = 16384;

    pub fn has(self, bit: u16) -> bool {
        self.0 & bit != 0
    }
}

/// The end of a statement: the contents of an OK packet (or of the EOF after rows).
#[derive(Clone, Debug, Default)]
pub struct OkSummary {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub warnings: u16,
    /// "Records: 2  Duplicates: 0  Warnings: 0" and the like; empty for most.
    pub info: String,
    pub status: StatusFlags,
    /// Set when USE changed the current database, for CLIENT_SESSION_TRACK.
    pub schema_changed: Option<String>,
}

/// Where a statement's results go. Per result set: `columns`, `row`*, `end`; per statement without rows: `ok`; a
/// failed statement: `error`, which may also come after `columns` and rows. With several statements in one text there are
/// several of these, all but the last with MORE_RESULTS_EXISTS.
///
/// A sink that takes nothing but rows leaves the rest as it is: unheard, and without a client that could have files.
///
/// The synchronous calls only buffer. The session calls `flush` when `wants_flush` says that the buffer is full, so a slow
/// client holds back the statement and not the memory; an error from it ends the statement.
#[async_trait]
pub trait ResultSink: Send {
    fn columns(&mut self, columns: &[Column]);
    fn row(&mut self, row: &[Value]);
    /// The status that goes with the columns that come next, to clients that get one there: by default that of autocommit.
    fn announce(&mut self, _status: StatusFlags) {}
    /// End of the rows of a result set.
    fn end(&mut self, _summary: OkSummary) {}
    /// End of a statement without a result set.
    fn ok(&mut self, _summary: OkSummary) {}
    /// The statement has failed.
    fn error(&mut self, _error: &MySqlError) {}

    fn wants_flush(&self) -> bool {
        false
    }
    async fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    /// Asks the client for a file (LOAD DATA LOCAL). The reader must be read to its end, also when the load fails; the session does. Error 1148 where
    /// there is no client.
    async fn local_infile(&mut self, _name: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        Err(error::not_allowed_command())
    }
}

/// A file that the client is sending.
#[async_trait]
pub trait LocalInfile: Send {
    /// The next piece of the file, `None` at its end.
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, MySqlError>;
}
