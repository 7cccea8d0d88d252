//! How far the binary log's files are durable, as the catalog has it: after a crash they are cut there and written again from the log.

use highkey_binlog::GtidSet;
use highkey_storage::{Engine, Error, Isolation, Result};
use serde::{Deserialize, Serialize};

use crate::catalog::keys;
use crate::high_water::put;

/// A point up to which the files and the database's log say the same.
#[derive(Clone, Debug, Serialize, Deserialize, PartialEq)]
pub(crate) struct State {
    /// The number of the newest file; the files before it are complete. 0: there is none.
    pub file: u64,
    /// Bytes of it that are durable; 0: it is to be made anew.
    pub position: u64,
    /// Every commit before this is in the files, none behind it is. `None`: the binary log was off when the server ran last.
    pub lsn: Option<u64>,
    /// Transactions of the newest file.
    pub sequence: u64,
    /// GTIDs of everything that was ever in the files, as text.
    pub executed: String,
    /// The newest file ends in a Stop event.
    pub stopped: bool,
    /// The next number of this server's own GTIDs.
    pub next_gno: u64,
    /// All files are to be removed, and `file` is to be the first: RESET was under way.
    pub reset: bool,
    /// GTIDs that were declared as executed and purged, as text.
    #[serde(default)]
    pub declared: String,
    /// Numbers of this server's own GTIDs that sessions owned.
    #[serde(default)]
    pub taken: Vec<u64>,
}

impl State {
    /// Of a database that has never had a binary log.
    pub fn first() -> State {
        State { file: 0, position: 0, lsn: None, sequence: 0, executed: String::new(), stopped: false, next_gno: 1, reset: false, declared: String::new(), taken: Vec::new() }
    }

    pub fn read(engine: &Engine) -> Result<Option<State>> {
        let mut value = Vec::new();
        // Not of a snapshot: it may be written aside of commits that nobody sees yet.
        if !engine.begin(Isolation::ReadCommitted).get_latest(engine.root_index(), &keys::binlog(), &mut value)? {
            return Ok(None);
        }
        let state = serde_json::from_slice(&value).map_err(|e| Error::corrupt_file(format!("the binary log's state does not decode: {e}")));
        state.map(Some)
    }

    /// Durable when it returns, whatever the flush level.
    pub fn write(&self, engine: &Engine) -> Result<()> {
        let mut txn = engine.begin(Isolation::ReadCommitted);
        let record = serde_json::to_vec(self).expect("a state has string keys only");
        put(&mut txn, engine.root_index(), &keys::binlog(), &record).map_err(|e| match e.code {
            // A table, that is the disk or the log, is full: this can pass.
            1114 => Error::OutOfSpace,
            _ => Error::Unusable(e.message),
        })?;
        // It must not wait for replicas: what they get is written by whoever calls this.
        txn.commit_aside()?.wait_aside()?;
        engine.flush_log()
    }

}

/// A GTID set of a state.
pub(crate) fn gtids(text: &str) -> Result<GtidSet> {
    text.parse().map_err(|e| Error::corrupt_file(format!("the binary log's state has a broken GTID set: {e}")))
}
