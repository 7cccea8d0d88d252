//! The scratch files of spilled versions and of what purge has to do. Their content means nothing to the next open.

use crate::disk::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::sync::{Arc, AtomicU64, Ordering};

const SUFFIX: &str = ".tmp";

/// Makes files that go when they are dropped.
pub(crate) struct Scratch {
    disk: Arc<dyn Disk>,
    /// What their names begin with.
    prefix: &'static str,
    made: AtomicU64,
    bytes: AtomicU64,
}

/// A file that is written from its beginning to its end, then read. Dropping it gives its space back.
pub(crate) struct ScratchFile {
    scratch: Arc<Scratch>,
    file: Arc<dyn DiskFile>,
    name: String,
    /// No other file of this life has it.
    number: u64,
    len: AtomicU64,
}

impl Scratch {
    /// Removes what an earlier life left.
    pub fn new(disk: Arc<dyn Disk>, prefix: &'static str) -> Scratch {
        let old = disk.list().unwrap_or_default();
        for name in old.iter().filter(|name| name.starts_with(prefix) && name.ends_with(SUFFIX)) {
            // A file that cannot be removed only takes space, and is written over.
            if let Err(error) = disk.remove(name) {
                tracing::warn!(%error, "cannot remove an old {name}");
            }
        }
        Scratch { disk, prefix, made: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }

    pub fn create(self: &Arc<Self>) -> Result<ScratchFile> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}-{number}{SUFFIX}", self.prefix);
        let file = self.disk.open(&name, true)?;
        Ok(ScratchFile { scratch: self.clone(), file, name, number, len: AtomicU64::new(0) })
    }

    /// Bytes of all files.
    pub fn len(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl ScratchFile {
    /// Where the bytes are then. One thread at a time.
    pub fn append(&self, bytes: &[u8]) -> Result<u64> {
        let at = self.len();
        self.file.write_at(at, bytes)?;
        self.len.store(at + bytes.len() as u64, Ordering::Relaxed);
        self.scratch.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(at)
    }

    pub fn read(&self, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        if self.file.read_at(offset, &mut bytes)? != len {
            return Err(Error::corrupt_file(format!("{} ends before {}", self.name, offset + len as u64)));
        }
        Ok(bytes)
    }

    pub fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for ScratchFile {
    fn drop(&mut self) {
        self.scratch.bytes.fetch_sub(self.len(), Ordering::Relaxed);
        // The next open tries again.
        if let Err(error) = self.scratch.disk.remove(&self.name) {
            tracing::warn!(%error, "cannot remove {}", self.name);
        }
    }
}
