//! Values too long for a leaf: immutable runs of overflow pages. See README.md.

pub(crate) mod redo;

use crate::buffer::{Access, BufferPool, Writer};
use crate::error::{Error, Result};
use crate::ids::{IndexId, Lsn, PageId};
use crate::page::header::{self, HEADER_SIZE, PAGE_SIZE, PageType};
use crate::space::{PageRun, Space};

/// Bytes of a value in one page.
const DATA_MAX: usize = PAGE_SIZE - HEADER_SIZE;
/// Pages of one run at most: what one log record carries, 256 KiB.
const RUN_PAGES_MAX: u32 = 16;
/// Longest value: MySQL's LONGBLOB.
const VALUE_MAX: u64 = u32::MAX as u64;

// Header fields of an overflow page; README.md has the byte table.
const DATA_LEN: usize = header::SLOT_COUNT;
const NEXT: usize = header::RIGHT_LINK;
const NEXT_RUN: usize = 64;
const RUN_PAGES: usize = 72;

/// Where a long value is: what a record flagged OVERFLOW has as its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OverflowRef {
    pub first: PageId,
    /// Bytes.
    pub length: u64,
}

impl OverflowRef {
    /// Bytes of the reference in a record.
    pub const SIZE: usize = 16;

    pub fn encode(self) -> [u8; Self::SIZE] {
        let mut out = [0; Self::SIZE];
        out[..8].copy_from_slice(&self.first.0.to_le_bytes());
        out[8..].copy_from_slice(&self.length.to_le_bytes());
        out
    }
    /// `None` if the bytes are not a reference.
    pub fn decode(bytes: &[u8]) -> Option<OverflowRef> {
        let bytes: &[u8; Self::SIZE] = bytes.try_into().ok()?;
        let (first, length) = (header::get_u64(bytes, 0), header::get_u64(bytes, 8));
        (first != 0 && length <= VALUE_MAX).then_some(OverflowRef { first: PageId(first), length })
    }
}

/// Pages that a value of `length` bytes takes.
pub fn pages_of(length: u64) -> u64 {
    length.div_ceil(DATA_MAX as u64).max(1)
}

/// What a page of a value holds.
struct Content<'v> {
    id: PageId,
    next: PageId,
    /// Of the first page of a run.
    run_pages: u32,
    next_run: PageId,
    data: &'v [u8],
}

/// What the pages of a run hold. `before`: pages of the value before it; `next`: the first page of the run behind it.
fn contents(value: &[u8], run: PageRun, before: usize, next: PageId) -> impl Iterator<Item = Content<'_>> {
    let last = run.first.0 + u64::from(run.pages) - 1;
    (run.first.0..=last).enumerate().map(move |(i, id)| {
        let from = (before + i) * DATA_MAX;
        let data = &value[from.min(value.len())..(from + DATA_MAX).min(value.len())];
        let link = if id == last { next } else { PageId(id + 1) };
        let (run_pages, next_run) = if i == 0 { (run.pages, next) } else { (0, PageId::NONE) };
        Content { id: PageId(id), next: link, run_pages, next_run, data }
    })
}

/// Pages that a value takes; an error if there are no values as long as it.
fn check_length(value: &[u8]) -> Result<usize> {
    if value.len() as u64 > VALUE_MAX {
        return Err(Error::TooLarge { what: "value", size: value.len(), max: VALUE_MAX as usize });
    }
    Ok(pages_of(value.len() as u64) as usize)
}

/// Writes a value, one log record a run, and moves the writer's `prev_lsn` on. Each record's undo bytes are what `undo` adds for its
/// run, so that rollback and crash undo free exactly the runs that were written. The caller puts the reference into a record after.
pub fn write(
    pool: &BufferPool,
    space: &Space,
    index: IndexId,
    value: &[u8],
    writer: &mut Writer,
    mut undo: impl FnMut(PageRun, &mut Vec<u8>),
) -> Result<OverflowRef> {
    let mut pages = check_length(value)?;
    let mut next = PageId::NONE;
    let (mut payload, mut undo_bytes) = (Vec::with_capacity(PAGE_SIZE), Vec::new());
    // From the tail, so that every run is written once with its link and a crash leaves no run that leads nowhere.
    while pages > 0 {
        let mut scope = pool.scope(*writer)?;
        let run = space.allocate_run(&mut scope, index, (pages as u32).min(RUN_PAGES_MAX))?;
        let count = run.pages as usize;
        if count == 0 || count > pages {
            return Err(Error::corrupt(run.first, "an allocated run of the wrong size"));
        }
        pages -= count;
        // All of them before the first is written: there may be no frame for the next.
        let fixed: Result<Vec<_>> = (0..run.pages as u64).map(|i| pool.fix_new(PageId(run.first.0 + i))).collect();
        for (mut page, content) in fixed?.into_iter().zip(contents(value, run, pages, next)) {
            redo::write_payload(&mut payload, index, &content);
            scope.apply(&mut page, redo::WRITE, &payload)?;
            scope.keep(page);
        }
        undo_bytes.clear();
        undo(run, &mut undo_bytes);
        scope.add_undo(&undo_bytes);
        let lsn = scope.commit()?;
        match writer {
            Writer::Txn { prev_lsn, .. } | Writer::Clr { prev_lsn, .. } => *prev_lsn = lsn,
            _ => {}
        }
        next = run.first;
    }
    Ok(OverflowRef { first: next, length: value.len() as u64 })
}

/// Writes a value into pages that the caller has taken; nothing is logged, so they must be on disk before a record refers to them. `take` gives
/// pages that lie beside each other, so many or fewer, and the LSN of the record that allocated them.
pub fn write_unlogged(pool: &BufferPool, index: IndexId, value: &[u8], mut take: impl FnMut(u32) -> Result<(PageRun, Lsn)>) -> Result<OverflowRef> {
    let mut pages = check_length(value)?;
    let mut next = PageId::NONE;
    // From the tail, as with a log record for each run: every page is made once, with its link.
    while pages > 0 {
        let (run, lsn) = take(pages.min(RUN_PAGES_MAX as usize) as u32)?;
        pages -= run.pages as usize;
        for content in contents(value, run, pages, next) {
            let mut page = pool.fix_new(content.id)?;
            redo::fill(page.bytes_mut(), index, &content);
            pool.mark_unlogged(&mut page, lsn);
        }
        next = run.first;
    }
    Ok(OverflowRef { first: next, length: value.len() as u64 })
}

/// Appends the value to `out`.
pub fn read(pool: &BufferPool, reference: OverflowRef, out: &mut Vec<u8>) -> Result<()> {
    let start = out.len();
    let mut id = reference.first;
    while !id.is_none() {
        let page = pool.fix_shared_as(id, Access::Scan)?;
        check_page(&page, id)?;
        let len = header::get_u16(&page, DATA_LEN) as usize;
        let data = page.get(HEADER_SIZE..HEADER_SIZE + len).ok_or_else(|| Error::corrupt(id, "overflow data length"))?;
        out.extend_from_slice(data);
        if (out.len() - start) as u64 > reference.length {
            break;
        }
        id = PageId(header::get_u64(&page, NEXT));
    }
    if (out.len() - start) as u64 != reference.length {
        return Err(Error::corrupt(reference.first, "overflow value is not as long as its reference says"));
    }
    Ok(())
}

/// The runs of a value, first to last.
pub fn runs(pool: &BufferPool, reference: OverflowRef) -> Result<Vec<PageRun>> {
    let mut runs = Vec::new();
    let mut id = reference.first;
    let most = reference.length as usize / DATA_MAX + 2;
    while !id.is_none() {
        let page = pool.fix_shared_as(id, Access::Scan)?;
        check_page(&page, id)?;
        let pages = header::get_u32(&page, RUN_PAGES);
        if pages == 0 || runs.len() > most {
            return Err(Error::corrupt(id, "not the first page of an overflow run"));
        }
        runs.push(PageRun { first: id, pages });
        id = PageId(header::get_u64(&page, NEXT_RUN));
    }
    Ok(runs)
}

/// Frees one run: what undoing one record of [`write`] does.
pub fn free_run(pool: &BufferPool, space: &Space, run: PageRun, writer: Writer) -> Result<Lsn> {
    let mut scope = pool.scope(writer)?;
    space.free_run(&mut scope, run)?;
    scope.commit()
}

fn check_page(page: &[u8], id: PageId) -> Result<()> {
    if header::page_type(page) != PageType::Overflow as u8 {
        return Err(Error::corrupt(id, "not an overflow page"));
    }
    Ok(())
}
