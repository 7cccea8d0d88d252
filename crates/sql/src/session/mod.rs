//! Sessions: one per connection.

mod accounts;
mod instance;
mod process;
mod sink;
mod status;

use std::sync::Arc;
use std::time::Duration;

use highkey_types::{Charset, MySqlError, Value};

pub use instance::{Account, Instance};
pub use process::ProcessEntry;
pub use sink::{Column, ColumnFlags, LocalInfile, OkSummary, ResultSink, StatusFlags};
pub use status::{Status, StatusCounter};

/// The client capabilities that change what statements do.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClientFlags {
    /// CLIENT_FOUND_ROWS: affected rows of UPDATE count matched rows.
    pub found_rows: bool,
    /// CLIENT_INTERACTIVE: `interactive_timeout` instead of `wait_timeout`.
    pub interactive: bool,
    /// CLIENT_MULTI_STATEMENTS; COM_SET_OPTION changes it.
    pub multi_statements: bool,
    /// CLIENT_LOCAL_FILES.
    pub local_files: bool,
}

/// Who connected, after authentication.
#[derive(Clone, Debug)]
pub struct ClientInfo {
    pub connection_id: u64,
    /// The name the client gave: USER() is `user@client_host`.
    pub user: String,
    /// Host name or address without the port.
    pub client_host: String,
    /// Shown by SHOW PROCESSLIST: `127.0.0.1:40312`, `localhost`.
    pub client_address: String,
    /// CURRENT_USER(): the account that matched.
    pub account_user: String,
    pub account_host: String,
    pub flags: ClientFlags,
    /// The collation id of the handshake response.
    pub collation: u16,
}

/// What COM_STMT_PREPARE answers.
#[derive(Clone, Debug)]
pub struct PreparedInfo {
    pub id: u32,
    pub params: usize,
    /// Empty for statements without a result set.
    pub columns: Vec<Column>,
    pub warnings: u16,
}

/// One connection's session. All methods need `&mut self`: a session does one thing at a time. Its futures are `Send`.
pub struct Session {
    instance: Arc<Instance>,
    client: ClientInfo,
    process: Arc<ProcessEntry>,
}

impl Session {
    /// Registers the connection in the process list; dropping the session removes it and rolls back its transaction.
    pub fn new(_instance: Arc<Instance>, _client: ClientInfo) -> Session {
        unimplemented!()
    }

    /// COM_QUERY: runs one statement, or several if the client may send several, and answers each into `sink`. Errors go
    /// into the sink; `Err` is only a broken connection.
    pub async fn execute(&mut self, _sql: &[u8], _sink: &mut dyn ResultSink) -> std::io::Result<()> {
        unimplemented!()
    }

    /// COM_STMT_PREPARE.
    pub async fn prepare(&mut self, _sql: &[u8]) -> Result<PreparedInfo, MySqlError> {
        unimplemented!()
    }

    /// COM_STMT_EXECUTE. With `cursor`, a result set is kept for `fetch` and only `columns` and `end` (CURSOR_EXISTS) are sent.
    pub async fn execute_prepared(&mut self, _id: u32, _params: &[Value], _cursor: bool, _sink: &mut dyn ResultSink) -> std::io::Result<()> {
        unimplemented!()
    }

    /// COM_STMT_FETCH: `row`s and `end`, with LAST_ROW_SENT when the cursor is exhausted.
    pub async fn fetch(&mut self, _id: u32, _rows: usize, _sink: &mut dyn ResultSink) -> std::io::Result<()> {
        unimplemented!()
    }

    /// COM_STMT_CLOSE; unknown ids are ignored.
    pub fn close_prepared(&mut self, _id: u32) {
        unimplemented!()
    }

    /// COM_STMT_RESET: closes the cursor. (Long data is the server's.)
    pub fn reset_prepared(&mut self, _id: u32) -> Result<(), MySqlError> {
        unimplemented!()
    }

    /// Number of parameters of a prepared statement, for decoding COM_STMT_EXECUTE.
    pub fn prepared_params(&self, _id: u32) -> Option<usize> {
        unimplemented!()
    }

    /// COM_FIELD_LIST: the columns of a table.
    pub async fn field_list(&mut self, _table: &str) -> Result<Vec<Column>, MySqlError> {
        unimplemented!()
    }

    /// COM_INIT_DB and the database of the handshake.
    pub fn init_db(&mut self, _database: &str) -> Result<(), MySqlError> {
        unimplemented!()
    }

    /// COM_RESET_CONNECTION: rolls back, forgets variables, prepared statements and locks; keeps user and database.
    pub async fn reset(&mut self) -> Result<(), MySqlError> {
        unimplemented!()
    }

    /// COM_CHANGE_USER after authentication: `reset` with another identity (the connection id stays).
    pub async fn change_user(&mut self, _client: ClientInfo) -> Result<(), MySqlError> {
        unimplemented!()
    }

    /// Runs `init_connect` for accounts that are not root.
    pub async fn run_init_connect(&mut self) -> Result<(), MySqlError> {
        unimplemented!()
    }

    /// Rolls back an open transaction; the last call before dropping a session.
    pub async fn close(&mut self) {
        unimplemented!()
    }

    /// The status word outside a statement (COM_PING's OK, the handshake).
    pub fn status_flags(&self) -> StatusFlags {
        unimplemented!()
    }

    pub fn set_multi_statements(&mut self, on: bool) {
        self.client.flags.multi_statements = on;
    }

    pub fn client(&self) -> &ClientInfo {
        &self.client
    }

    pub fn database(&self) -> Option<&str> {
        unimplemented!()
    }

    pub fn process(&self) -> &Arc<ProcessEntry> {
        &self.process
    }

    pub fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// How the client encodes statement text and text parameters (`character_set_client`).
    pub fn client_charset(&self) -> Charset {
        unimplemented!()
    }

    /// How long the server waits for the next command (`wait_timeout` or `interactive_timeout`).
    pub fn idle_timeout(&self) -> Duration {
        unimplemented!()
    }

    pub fn net_read_timeout(&self) -> Duration {
        unimplemented!()
    }

    pub fn net_write_timeout(&self) -> Duration {
        unimplemented!()
    }

    /// The session's `max_allowed_packet`.
    pub fn max_allowed_packet(&self) -> u64 {
        unimplemented!()
    }

    /// For the process list and counters around commands that the server answers itself (COM_PING, COM_STATISTICS).
    pub fn note_command(&self) {
        self.instance.count(StatusCounter::Questions, 1);
    }
}
