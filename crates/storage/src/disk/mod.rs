//! The files under an engine, as traits with two implementations: the operating system's and a simulated disk that
//! loses, tears and reorders what was not synced. See README.md.

mod clock;
mod file;
mod page_files;
mod rng;
mod sim;
mod usage;

pub use clock::{Clock, SimClock, SystemClock};
pub(crate) use clock::thread_cpu;
pub use file::FileDisk;
pub(crate) use page_files::{PageFiles, SEGMENT_PAGES};
pub use rng::{Rng, SeededRng, SystemRng};
pub use sim::{SimConfig, SimDisk};
pub use usage::{DiskUsage, FileUsage, IoSum};

use std::path::Path;

use crate::error::Result;
use crate::sync::Arc;

/// A directory of files.
pub trait Disk: Send + Sync {
    /// Opens `name` for reading and writing; with `create` it may be made.
    fn open(&self, name: &str, create: bool) -> Result<Arc<dyn DiskFile>>;
    /// The names of the files, sorted.
    fn list(&self) -> Result<Vec<String>>;
    fn exists(&self, name: &str) -> Result<bool>;
    /// Replaces `to` if it exists. Durable after `sync_dir`.
    fn rename(&self, from: &str, to: &str) -> Result<()>;
    fn remove(&self, name: &str) -> Result<()>;
    /// Makes creations, renames and removals durable.
    fn sync_dir(&self) -> Result<()>;
    /// Takes the directory for this process until the returned value is dropped, or fails with `InUse`.
    fn lock(&self) -> Result<Box<dyn Send + Sync>>;
    /// Where those above may make files that go with their handles. `None`: it is none of the operating system's directories.
    fn directory(&self) -> Option<&Path> {
        None
    }
    /// What is read and written of the files, for whoever looks after the server. Nothing is kept of a disk that is none.
    fn usage(&self) -> DiskUsage {
        DiskUsage::default()
    }
    /// `usage` begins anew.
    fn clear_usage(&self) {}
}

/// One open file. Positions and sizes are bytes.
pub trait DiskFile: Send + Sync {
    /// Reads up to `out.len()` bytes; fewer only at the end of the file.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize>;
    /// Writes all of `data`. Not durable before `sync`.
    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()>;
    /// Makes everything written before the call durable. An error is final: what was written may be lost.
    fn sync(&self) -> Result<()>;
    /// Makes the file at least `len` bytes long with its blocks reserved, or fails with `OutOfSpace` changing nothing.
    fn allocate(&self, len: u64) -> Result<()>;
    /// What is on disk of the file need not stay in memory. A hint: it changes no content, and nothing fails.
    fn uncache(&self) {}
    /// These bytes will be read soon. A hint: it waits for nothing, and nothing fails.
    fn will_read(&self, _offset: u64, _len: u64) {}
    /// What was written of these bytes may begin its way to the disk. A hint: it makes nothing durable, waits for nothing, and a failure is
    /// met by the next `sync`.
    fn begin_sync(&self, _offset: u64, _len: u64) {}
    fn len(&self) -> Result<u64>;
    /// Cuts the file.
    fn truncate(&self, len: u64) -> Result<()>;
}
