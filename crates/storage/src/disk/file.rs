//! The operating system's files: pread, pwrite, fdatasync, fallocate.

use super::usage::{FileCounts, Io, Usages};
use super::{Disk, DiskFile, DiskUsage};
use crate::error::{Error, Result};
use crate::sync::Arc;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A directory of the file system.
pub struct FileDisk {
    dir: PathBuf,
    usages: Usages,
}

impl FileDisk {
    /// Uses `dir`, making it if it does not exist.
    pub fn open(dir: impl AsRef<Path>) -> Result<FileDisk> {
        let dir = dir.as_ref().to_path_buf();
        std::fs::create_dir_all(&dir).map_err(|e| Error::io(format!("cannot create {}", dir.display()), e))?;
        Ok(FileDisk { dir, usages: Usages::new() })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

impl Disk for FileDisk {
    fn open(&self, name: &str, create: bool) -> Result<Arc<dyn DiskFile>> {
        let path = self.path(name);
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(create)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io(format!("cannot open {}", path.display()), e))?;
        let counts = self.usages.of(name);
        counts.opened();
        Ok(Arc::new(OsFile { file, path, counts }))
    }

    fn list(&self) -> Result<Vec<String>> {
        let fail = |e| Error::io(format!("cannot list {}", self.dir.display()), e);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(&self.dir).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            if entry.file_type().map_err(fail)?.is_file()
                && let Ok(name) = entry.file_name().into_string()
            {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        let path = self.path(name);
        path.try_exists().map_err(|e| Error::io(format!("cannot look for {}", path.display()), e))
    }

    fn rename(&self, from: &str, to: &str) -> Result<()> {
        std::fs::rename(self.path(from), self.path(to)).map_err(|e| Error::io(format!("cannot rename {from} to {to}"), e))?;
        self.usages.rename(from, to);
        Ok(())
    }

    fn remove(&self, name: &str) -> Result<()> {
        std::fs::remove_file(self.path(name)).map_err(|e| Error::io(format!("cannot remove {name}"), e))?;
        self.usages.remove(name);
        Ok(())
    }

    fn sync_dir(&self) -> Result<()> {
        File::open(&self.dir)
            .and_then(|d| d.sync_all())
            .map_err(|e| Error::io(format!("cannot sync {}", self.dir.display()), e))
    }

    fn lock(&self) -> Result<Box<dyn Send + Sync>> {
        let path = self.path("lock");
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|e| Error::io(format!("cannot open {}", path.display()), e))?;
        match rustix::fs::flock(&file, rustix::fs::FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Box::new(file)),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Error::InUse(format!("data directory {}", self.dir.display()))),
            Err(e) => Err(Error::io(format!("cannot lock {}", path.display()), e.into())),
        }
    }

    fn directory(&self) -> Option<&Path> {
        Some(&self.dir)
    }

    fn usage(&self) -> DiskUsage {
        self.usages.all()
    }

    fn clear_usage(&self) {
        self.usages.clear();
    }
}

struct OsFile {
    file: File,
    path: PathBuf,
    counts: Arc<FileCounts>,
}

impl Drop for OsFile {
    fn drop(&mut self) {
        self.counts.closed();
    }
}

impl OsFile {
    fn error(&self, what: &str, error: std::io::Error) -> Error {
        Error::io(format!("cannot {what} {}", self.path.display()), error)
    }
}

impl DiskFile for OsFile {
    fn read_at(&self, offset: u64, out: &mut [u8]) -> Result<usize> {
        let began = Instant::now();
        let mut done = 0;
        while done < out.len() {
            match self.file.read_at(&mut out[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.error("read", e)),
            }
        }
        self.counts.note(Io::Read, done, began);
        Ok(done)
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let began = Instant::now();
        self.file.write_all_at(data, offset).map_err(|e| self.error("write", e))?;
        self.counts.note(Io::Write, data.len(), began);
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        let began = Instant::now();
        self.file.sync_data().map_err(|e| self.error("sync", e))?;
        self.counts.note(Io::Sync, 0, began);
        Ok(())
    }

    fn allocate(&self, len: u64) -> Result<()> {
        let old = self.len()?;
        if len <= old {
            return Ok(());
        }
        loop {
            match rustix::fs::fallocate(&self.file, rustix::fs::FallocateFlags::empty(), old, len - old) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::OPNOTSUPP) => return self.allocate_by_writing(old, len),
                Err(e) => {
                    // A partly done fallocate leaves a longer file; a shorter one is the state before.
                    let _ = self.file.set_len(old);
                    return Err(self.error("extend", e.into()));
                }
            }
        }
    }

    fn uncache(&self) {
        let _ = rustix::fs::fadvise(&self.file, 0, None, rustix::fs::Advice::DontNeed);
    }

    fn will_read(&self, offset: u64, len: u64) {
        let _ = rustix::fs::fadvise(&self.file, offset, std::num::NonZeroU64::new(len), rustix::fs::Advice::WillNeed);
    }

    fn begin_sync(&self, offset: u64, len: u64) {
        #[cfg(target_os = "linux")]
        {
            use std::os::fd::AsRawFd;
            // SAFETY: the descriptor is this file's and open.
            unsafe { libc::sync_file_range(self.file.as_raw_fd(), offset as i64, len as i64, libc::SYNC_FILE_RANGE_WRITE) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = (offset, len);
    }

    fn len(&self) -> Result<u64> {
        self.file.metadata().map(|m| m.len()).map_err(|e| self.error("stat", e))
    }

    fn truncate(&self, len: u64) -> Result<()> {
        self.file.set_len(len).map_err(|e| self.error("truncate", e))
    }
}

impl OsFile {
    /// For file systems without fallocate: zeros reserve the blocks.
    fn allocate_by_writing(&self, old: u64, len: u64) -> Result<()> {
        let zeros = vec![0u8; 1 << 20];
        let mut at = old;
        while at < len {
            let n = zeros.len().min((len - at) as usize);
            if let Err(e) = self.file.write_all_at(&zeros[..n], at) {
                let _ = self.file.set_len(old);
                return Err(self.error("extend", e));
            }
            at += n as u64;
        }
        Ok(())
    }
}
