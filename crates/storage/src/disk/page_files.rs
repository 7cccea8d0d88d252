//! Where pages lie: page id -> `pages.NNN`, 1 GiB each.

use super::{Disk, DiskFile};
use crate::error::Result;
use crate::ids::PageId;
use crate::page::PAGE_SIZE;
use crate::sync::{Arc, RwLock};

/// Pages in one file.
pub const SEGMENT_PAGES: u64 = 65536;

/// The page files, opened as they are needed.
pub(crate) struct PageFiles {
    disk: Arc<dyn Disk>,
    open: RwLock<Vec<Option<Arc<dyn DiskFile>>>>,
}

impl PageFiles {
    pub fn new(disk: Arc<dyn Disk>) -> PageFiles {
        PageFiles { disk, open: RwLock::new(Vec::new()) }
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

    /// Grows a segment file to `pages`, durably, or changes nothing.
    pub fn grow(&self, segment: u64, pages: u64) -> Result<()> {
        let fresh = !self.disk.exists(&PageFiles::name(segment))?;
        let file = self.segment(segment, true)?;
        file.allocate(pages * PAGE_SIZE as u64)?;
        file.sync()?;
        if fresh {
            self.disk.sync_dir()?;
        }
        Ok(())
    }
}
