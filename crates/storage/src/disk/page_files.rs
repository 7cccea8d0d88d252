//! Where pages lie: page id -> `pages.NNN`, 1 GiB each.

use super::{Disk, DiskFile};
use crate::error::{Error, Result};
use crate::ids::PageId;
use crate::page::PAGE_SIZE;
use crate::sync::{Arc, AtomicU64, Ordering, RwLock};

/// Pages in one file.
pub const SEGMENT_PAGES: u64 = 65536;

/// The page files, opened as they are needed.
pub(crate) struct PageFiles {
    disk: Arc<dyn Disk>,
    open: RwLock<Vec<Option<Arc<dyn DiskFile>>>>,
    /// The names of the files before this one are durable, as far as this life has seen to it.
    named: AtomicU64,
}

impl PageFiles {
    pub fn new(disk: Arc<dyn Disk>) -> PageFiles {
        PageFiles { disk, open: RwLock::new(Vec::new()), named: AtomicU64::new(0) }
    }

    pub fn name(segment: u64) -> String {
        format!("pages.{segment:03}")
    }

    /// The file of a segment, made if `create`.
    pub fn segment(&self, segment: u64, create: bool) -> Result<Arc<dyn DiskFile>> {
        if let Some(Some(file)) = self.open.read().get(segment as usize) {
            return Ok(file.clone());
        }
        let mut open = self.open.write();
        if open.len() <= segment as usize {
            open.resize_with(segment as usize + 1, || None);
        }
        if let Some(file) = &open[segment as usize] {
            return Ok(file.clone());
        }
        let file = self.disk.open(&PageFiles::name(segment), create)?;
        open[segment as usize] = Some(file.clone());
        Ok(file)
    }

    /// Reads a page; what lies beyond the end of the file is zero.
    pub fn read(&self, id: PageId, out: &mut [u8]) -> Result<()> {
        let file = self.segment(id.0 / SEGMENT_PAGES, false)?;
        let n = file.read_at((id.0 % SEGMENT_PAGES) * PAGE_SIZE as u64, out)?;
        out[n..].fill(0);
        Ok(())
    }

    /// Writes consecutive pages of one segment.
    pub fn write(&self, first: PageId, data: &[u8]) -> Result<()> {
        self.segment(first.0 / SEGMENT_PAGES, true)?.write_at((first.0 % SEGMENT_PAGES) * PAGE_SIZE as u64, data)
    }

    /// Consecutive pages of one segment will be read soon.
    pub fn will_read(&self, first: PageId, pages: u64) {
        if let Ok(file) = self.segment(first.0 / SEGMENT_PAGES, false) {
            file.will_read((first.0 % SEGMENT_PAGES) * PAGE_SIZE as u64, pages * PAGE_SIZE as u64);
        }
    }

    /// Lets the disk begin with consecutive pages of one segment that were written.
    pub fn begin_sync(&self, first: PageId, pages: u64) {
        if let Ok(file) = self.segment(first.0 / SEGMENT_PAGES, false) {
            file.begin_sync((first.0 % SEGMENT_PAGES) * PAGE_SIZE as u64, pages * PAGE_SIZE as u64);
        }
    }

    pub fn sync(&self, segment: u64) -> Result<()> {
        self.segment(segment, true)?.sync()
    }

    /// How many of the files are open.
    pub fn open_count(&self) -> usize {
        self.open.read().iter().flatten().count()
    }

    /// How many segments there are on disk: 0..n, contiguous.
    pub fn count(&self) -> Result<u64> {
        let names = self.disk.list()?;
        Ok((0..).take_while(|s| names.binary_search(&PageFiles::name(*s)).is_ok()).count() as u64)
    }

    /// Pages a segment file has room for.
    pub fn len(&self, segment: u64) -> Result<u64> {
        Ok(self.segment(segment, false)?.len()? / PAGE_SIZE as u64)
    }

    /// Grows a segment file to `pages`, durably, or changes nothing. `failed`: what becomes of an error of the sync, which may be of pages that others
    /// have written to the file, and who will not be told again.
    pub fn grow(&self, segment: u64, pages: u64, failed: impl FnOnce(Error) -> Error) -> Result<()> {
        let file = self.segment(segment, true)?;
        file.allocate(pages * PAGE_SIZE as u64)?;
        self.sync_grown(segment, &*file).map_err(failed)
    }

    fn sync_grown(&self, segment: u64, file: &dyn DiskFile) -> Result<()> {
        file.sync()?;
        // Also of a file that was there: whoever has made it may have failed, or have been killed, before its name was durable.
        if self.named.load(Ordering::SeqCst) <= segment {
            self.disk.sync_dir()?;
            self.named.fetch_max(segment + 1, Ordering::SeqCst);
        }
        Ok(())
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::disk::{SimConfig, SimDisk};

    #[test]
    fn the_name_of_a_file_that_a_full_disk_kept_from_growing_is_durable_once_it_grows() {
        for seed in 0..20 {
            let disk = SimDisk::new(SimConfig { seed, capacity: 10 * PAGE_SIZE as u64, ..SimConfig::default() });
            let files = PageFiles::new(Arc::new(disk.clone()));
            assert!(matches!(files.grow(0, 20, |e| e), Err(Error::OutOfSpace)));
            files.grow(0, 4, |e| e).unwrap();
            assert!(disk.crash().exists(&PageFiles::name(0)).unwrap(), "seed {seed}");
            // The same of one that was killed before it had made the name durable.
            let disk = SimDisk::new(SimConfig { seed, ..SimConfig::default() });
            disk.open(&PageFiles::name(0), true).unwrap().allocate(4 * PAGE_SIZE as u64).unwrap();
            PageFiles::new(Arc::new(disk.clone())).grow(0, 8, |e| e).unwrap();
            assert!(disk.crash().exists(&PageFiles::name(0)).unwrap(), "seed {seed}");
        }
    }
}
