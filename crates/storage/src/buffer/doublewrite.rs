//! The doublewrite file: copies of the pages about to be written in place, so that a page torn in place is whole here.
//!
//! ```text
//! 0 magic u64 · 8 count u32 · 12 crc32c u32 of the header with this field zero · 16 {page_id u64, page crc u32, 0 u32}*64 · 4096 pages
//! ```

use crate::disk::{Disk, DiskFile, PageFiles};
use crate::error::Result;
use crate::ids::PageId;
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
}

impl Doublewrite {
    pub fn open(disk: &dyn Disk) -> Result<Doublewrite> {
        let fresh = !disk.exists(NAME)?;
        let file = disk.open(NAME, true)?;
        file.allocate((HEADER + BATCH * PAGE_SIZE) as u64)?;
        if fresh {
            file.sync()?;
            disk.sync_dir()?;
        }
        Ok(Doublewrite { file, buf: Mutex::new(Vec::new()) })
    }

    /// Durably writes copies (sealed, at most `BATCH`).
    pub fn write<'a>(&self, pages: impl Iterator<Item = (PageId, &'a [u8])>) -> Result<()> {
        let mut buf = self.buf.lock();
        buf.clear();
        buf.resize(HEADER, 0);
        let mut count = 0;
        for (id, bytes) in pages {
            let at = 16 + count * 16;
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

/// Writes every whole copy over a page that is not whole in place. Returns how many; done before redo.
pub(crate) fn restore_torn_pages(disk: &dyn Disk, files: &PageFiles) -> Result<usize> {
    if !disk.exists(NAME)? {
        return Ok(0);
    }
    let file = disk.open(NAME, false)?;
    let mut head = vec![0; HEADER];
    if file.read_at(0, &mut head)? < HEADER || header::get_u64(&head, 0) != MAGIC {
        return Ok(0);
    }
    let crc = header::get_u32(&head, 12);
    head[12..16].fill(0);
    let count = header::get_u32(&head, 8) as usize;
    if crc != crc32c::crc32c(&head) || count > BATCH {
        return Ok(0);
    }
    let mut restored = 0;
    let mut segments = Vec::new();
    let (mut copy, mut in_place) = (vec![0; PAGE_SIZE], vec![0; PAGE_SIZE]);
    for i in 0..count {
        let id = PageId(header::get_u64(&head, 16 + i * 16));
        let page_crc = header::get_u32(&head, 24 + i * 16);
        let got = file.read_at((HEADER + i * PAGE_SIZE) as u64, &mut copy)?;
        // A copy that is not the one announced is of a batch that never got to its pages.
        if got < PAGE_SIZE || header::get_u32(&copy, 0) != page_crc || header::verify(&copy, id).is_err() {
            continue;
        }
        files.read(id, &mut in_place)?;
        if header::verify(&in_place, id).is_err() {
            files.write(id, &copy)?;
            segments.push(id.0 / crate::disk::SEGMENT_PAGES);
            restored += 1;
        }
    }
    segments.dedup();
    for segment in segments {
        files.sync(segment)?;
    }
    Ok(restored)
}
