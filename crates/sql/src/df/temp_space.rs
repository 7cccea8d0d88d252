//! Space on disk of rows that wait in files of the session's own, counted with the spill files of queries.

use std::io;
use std::path::Path;
use std::sync::Arc;

use super::engine::QueryEngine;

/// Bytes of a temporary file, given back when it is dropped.
pub(crate) struct TempSpace {
    engine: Arc<QueryEngine>,
    bytes: u64,
}

impl TempSpace {
    /// For a file that is not there yet.
    pub fn new(engine: Arc<QueryEngine>) -> TempSpace {
        TempSpace { engine, bytes: 0 }
    }

    /// Where the file is made.
    pub fn dir(&self) -> &Path {
        self.engine.spill_dir()
    }

    /// Counts bytes that are about to be written. Error `StorageFull` if all files together would have more than `highkey_temp_space_limit`.
    pub fn grow(&mut self, bytes: u64) -> io::Result<()> {
        if !self.engine.take_temp(bytes) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes += bytes;
        Ok(())
    }
}

impl Drop for TempSpace {
    fn drop(&mut self) {
        self.engine.give_temp_back(self.bytes);
    }
}
