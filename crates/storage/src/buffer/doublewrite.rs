//! The doublewrite file: copies of the pages about to be written in place, so that a page torn in place is whole here.
//!
//! ```text
//! 0 magic u64 · 8 count u32 · 12 crc32c u32 of the header with this field zero · 16 {page_id u64, page crc u32, 0 u32}*64 · 4096 pages
//! ```

use crate::disk::{Disk, DiskFile, PageFiles, SEGMENT_PAGES};
use crate::error::Result;
use crate::ids::{Lsn, PageId};
use crate::page::{PAGE_SIZE, header};
use crate::sync::{Arc, Mutex};

/// Pages in a batch.
pub(super) const BATCH: usize = 64;
const MAGIC: u64 = 0x3142_4444_4b48; // "HKDDB1"
const HEADER: usize = 4096;
const NAME: &str = "doublewrite";

pub(super) struct Doublewrite {
    file: Arc<dyn DiskFile>,
    buf: Mutex<Vec<u8>>,
    /// The pages of which the file holds copies.
    holds: Mutex<Vec<PageId>>,
}

impl Doublewrite {
    pub fn open(disk: &dyn Disk) -> Result<Doublewrite> {
        let file = disk.open(NAME, true)?;
        let size = (HEADER + BATCH * PAGE_SIZE) as u64;
        // Short also if the disk was full when it was made.
        let short = file.len()? < size;
        file.allocate(size)?;
        if short {
            file.sync()?;
            disk.sync_dir()?;
        }
        let holds = announced(&*file)?.into_iter().map(|(id, _)| id).collect();
        Ok(Doublewrite { file, buf: Mutex::new(Vec::new()), holds: Mutex::new(holds) })
    }

    /// True if the file holds a copy of the page, which must not outlive a newer one in place.
    pub fn holds(&self, id: PageId) -> bool {
        self.holds.lock().contains(&id)
    }

    /// Durably writes copies (sealed, at most `BATCH`).
    pub fn write<'a>(&self, pages: impl Iterator<Item = (PageId, &'a [u8])>) -> Result<()> {
        let (mut buf, mut holds) = (self.buf.lock(), self.holds.lock());
        buf.clear();
        holds.clear();
        buf.resize(HEADER, 0);
        let mut count = 0;
        for (id, bytes) in pages {
            let at = 16 + count * 16;
            holds.push(id);
            buf[at..at + 8].copy_from_slice(&id.0.to_le_bytes());
            buf[at + 8..at + 12].copy_from_slice(&bytes[..4]);
            buf.extend_from_slice(bytes);
            count += 1;
        }
        buf[..8].copy_from_slice(&MAGIC.to_le_bytes());
        buf[8..12].copy_from_slice(&(count as u32).to_le_bytes());
        let crc = crc32c::crc32c(&buf[..HEADER]);
        buf[12..16].copy_from_slice(&crc.to_le_bytes());
        self.file.write_at(0, &buf)?;
        self.file.sync()
    }
}

/// What `restore_torn_pages` found.
#[derive(Clone, Copy, Default)]
pub(crate) struct Restored {
    pub pages: usize,
    /// The newest LSN of any whole copy: the log was durable up to there (I6).
    pub newest: Lsn,
}

/// Removes the file: without doublewrite, its copies would outlive newer pages in place.
pub(crate) fn remove_doublewrite(disk: &dyn Disk) -> Result<()> {
    if disk.exists(NAME)? {
        disk.remove(NAME)?;
        disk.sync_dir()?;
    }
    Ok(())
}

/// The pages that the header announces, with their checksums; none if it is not whole.
fn announced(file: &dyn DiskFile) -> Result<Vec<(PageId, u32)>> {
    let mut head = vec![0; HEADER];
    if file.read_at(0, &mut head)? < HEADER || header::get_u64(&head, 0) != MAGIC {
        return Ok(Vec::new());
    }
    let crc = header::get_u32(&head, 12);
    head[12..16].fill(0);
    let count = header::get_u32(&head, 8) as usize;
    if crc != crc32c::crc32c(&head) || count > BATCH {
        return Ok(Vec::new());
    }
    Ok((0..count).map(|i| 16 + i * 16).map(|at| (PageId(header::get_u64(&head, at)), header::get_u32(&head, at + 8))).collect())
}

/// Writes every whole copy over a page that is not whole in place, or cannot be read there: a power failure may leave the sectors that were being
/// written so. Done before redo.
pub(crate) fn restore_torn_pages(disk: &dyn Disk, files: &PageFiles) -> Result<Restored> {
    let mut restored = Restored::default();
    if !disk.exists(NAME)? {
        return Ok(restored);
    }
    let file = disk.open(NAME, false)?;
    let mut segments = Vec::new();
    let (mut copy, mut in_place) = (vec![0; PAGE_SIZE], vec![0; PAGE_SIZE]);
    for (i, (id, page_crc)) in announced(&*file)?.into_iter().enumerate() {
        let got = file.read_at((HEADER + i * PAGE_SIZE) as u64, &mut copy)?;
        // A copy that is not the one announced is of a batch that never got to its pages.
        if got < PAGE_SIZE || header::get_u32(&copy, 0) != page_crc || header::verify(&copy, id).is_err() {
            continue;
        }
        restored.newest = restored.newest.max(header::lsn(&copy));
        let segment = id.0 / SEGMENT_PAGES;
        // A file that is missing is no broken page.
        files.segment(segment, false)?;
        if files.read(id, &mut in_place).is_err() || header::verify(&in_place, id).is_err() {
            files.write(id, &copy)?;
            segments.push(segment);
            restored.pages += 1;
        }
    }
    segments.dedup();
    for segment in segments {
        files.sync(segment)?;
    }
    Ok(restored)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;
    use crate::disk::{SimConfig, SimDisk};
    use crate::error::Error;

    #[test]
    fn the_name_of_a_file_for_which_there_was_no_space_is_durable_once_there_is() {
        for seed in 0..20 {
            let capacity = (HEADER + BATCH * PAGE_SIZE) as u64;
            let disk = SimDisk::new(SimConfig { seed, capacity, ..SimConfig::default() });
            disk.open("ballast", true).unwrap().allocate(1).unwrap();
            assert!(matches!(Doublewrite::open(&disk), Err(Error::OutOfSpace)));
            disk.remove("ballast").unwrap();
            Doublewrite::open(&disk).unwrap();
            assert!(disk.crash().exists(NAME).unwrap(), "seed {seed}");
        }
    }
}
