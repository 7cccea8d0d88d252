//! The logged operations of a tree page: their payloads and the one `apply` by which both the running tree and redo change a page.

use super::edit::{Builder, Frame, LeafInput, NodeMut};
use super::layout::*;
use super::node::{Node, Trend};
use super::read::{Checked, Corrupt};
use std::cell::RefCell;

pub(crate) const FORMAT: u8 = 0x40;
pub(crate) const INSERT: u8 = 0x41;
pub(crate) const REPLACE: u8 = 0x42;
pub(crate) const REMOVE: u8 = 0x44;
pub(crate) const INSERT_CHILD: u8 = 0x45;
pub(crate) const RESHAPE: u8 = 0x46;
pub(crate) const SET_FLAGS: u8 = 0x47;

/// Applies one operation. On an error the page must not be used: redo stops, and the running tree never gets one.
pub(crate) fn apply(op: u8, page: &mut [u8], payload: &[u8]) -> Checked<()> {
    if page.len() != PAGE_SIZE {
        return Err(Corrupt("page size"));
    }
    if op != FORMAT && page[TYPE] != PAGE_TYPE_TREE {
        return Err(Corrupt("tree operation on another kind of page"));
    }
    let mut read = Payload(payload);
    match op {
        FORMAT => format(&mut read, page),
        INSERT => {
            let (index, count) = (read.u16()?, read.u16()?);
            if page[LEVEL] != 0 {
                return Err(Corrupt("leaf operation on an inner page"));
            }
            let bytes = read.0.len().checked_sub(count as usize * 2).ok_or(Corrupt("insert payload"))?;
            let mut left = count;
            let records = std::iter::from_fn(move || {
                left = left.checked_sub(1)?;
                Some(read.leaf_record())
            });
            NodeMut(page).insert_run(index as usize, count as usize, bytes, records)
        }
        REPLACE => {
            let (index, meta) = (read.u16()?, read.u64()?);
            NodeMut(page).replace(index as usize, meta, read.0)
        }
        REMOVE => NodeMut(page).remove(read.u16()? as usize),
        INSERT_CHILD => {
            let (index, child) = (read.u16()?, read.u64()?);
            NodeMut(page).insert_child(index as usize, read.0, child)
        }
        RESHAPE => reshape(&mut read, page),
        SET_FLAGS => {
            NodeMut(page).set_flags(read.u16()?);
            Ok(())
        }
        _ => Err(Corrupt("unknown tree operation")),
    }
}

/// The rest of a payload.
struct Payload<'a>(&'a [u8]);

impl<'a> Payload<'a> {
    fn take(&mut self, len: usize) -> Checked<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(len).ok_or(Corrupt("payload too short"))?;
        self.0 = rest;
        Ok(head)
    }
    fn u8(&mut self) -> Checked<u8> {
        Ok(self.take(1)?[0])
    }
    fn u16(&mut self) -> Checked<u16> {
        let bytes = self.take(2)?;
        Ok(u16::from_le_bytes([bytes[0], bytes[1]]))
    }
    fn u32(&mut self) -> Checked<u32> {
        Ok(self.u16()? as u32 | (self.u16()? as u32) << 16)
    }
    fn u64(&mut self) -> Checked<u64> {
        Ok(self.u32()? as u64 | (self.u32()? as u64) << 32)
    }
    fn bytes(&mut self) -> Checked<&'a [u8]> {
        let len = self.u16()?;
        self.take(len as usize)
    }
    fn optional(&mut self) -> Checked<Option<&'a [u8]>> {
        match self.u16()? {
            u16::MAX => Ok(None),
            len => self.take(len as usize).map(Some),
        }
    }
    fn trend(&mut self) -> Checked<Trend> {
        Ok(Trend { last_slot: self.u16()?, run: self.u8()?, top: self.u8()?, bottom: self.u8()? })
    }
    fn leaf_record(&mut self) -> Checked<LeafInput<'a>> {
        let suffix = self.bytes()?;
        let meta = self.u64()?;
        let value = self.bytes()?;
        Ok(LeafInput { suffix, meta, value })
    }
    /// Pushes a record list: `prefix, count, (suffix, body)*`.
    fn push_list(&mut self, builder: &mut Builder) -> Checked<()> {
        let prefix = self.bytes()?;
        for _ in 0..self.u16()? {
            let suffix = self.bytes()?;
            let body = self.bytes()?;
            builder.push(prefix, suffix, body)?;
        }
        Ok(())
    }
}

fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() < u16::MAX as usize);
    out.extend_from_slice(&(bytes.len() as u16).to_le_bytes());
    out.extend_from_slice(bytes);
}

fn put_optional(out: &mut Vec<u8>, bytes: Option<&[u8]>) {
    match bytes {
        Some(bytes) => put_bytes(out, bytes),
        None => out.extend_from_slice(&u16::MAX.to_le_bytes()),
    }
}

fn put_trend(out: &mut Vec<u8>, trend: Trend) {
    out.extend_from_slice(&trend.last_slot.to_le_bytes());
    out.extend_from_slice(&[trend.run, trend.top, trend.bottom]);
}

/// Records `from..to` of `node` as a record list; an inner page's first child goes with its full key, the low fence.
fn put_list(out: &mut Vec<u8>, node: Node, from: usize, to: usize) -> Checked<()> {
    let prefix = node.prefix()?;
    put_bytes(out, prefix);
    out.extend_from_slice(&((to - from) as u16).to_le_bytes());
    for i in from..to {
        let suffix = if i == 0 && !node.is_leaf() { &node.low()?[prefix.len()..] } else { node.suffix(i)? };
        put_bytes(out, suffix);
        let slot = node.slot(i);
        let size = node.record_size(i)?;
        put_bytes(out, node.bytes(slot.at + slot.key_len, size - slot.key_len)?);
    }
    Ok(())
}

/// A list of no records.
pub(crate) const NO_RECORDS: [u8; 4] = [0; 4];

/// Where the records of a formatted or reshaped page come from.
#[derive(Clone, Copy)]
pub(crate) enum Records<'a> {
    None,
    /// Slots `from..to` of a page.
    Of(Node<'a>, usize, usize),
    /// Children with their full keys, for an inner page.
    Children(&'a [(&'a [u8], u64)]),
}

fn put_records(out: &mut Vec<u8>, records: Records) -> Checked<()> {
    match records {
        Records::None => out.extend_from_slice(&NO_RECORDS),
        Records::Of(node, from, to) => put_list(out, node, from, to)?,
        Records::Children(children) => {
            put_bytes(out, &[]);
            out.extend_from_slice(&(children.len() as u16).to_le_bytes());
            for (key, child) in children {
                put_bytes(out, key);
                put_bytes(out, &child.to_le_bytes());
            }
        }
    }
    Ok(())
}

/// FORMAT: a whole new page with the records of up to two others.
pub(crate) fn format_payload(out: &mut Vec<u8>, frame: &Frame, records: Records, more: Records) -> Checked<()> {
    out.clear();
    out.extend_from_slice(&frame.page_id.to_le_bytes());
    out.extend_from_slice(&frame.index_id.to_le_bytes());
    out.push(frame.level);
    out.extend_from_slice(&frame.flags.to_le_bytes());
    out.extend_from_slice(&frame.right_link.to_le_bytes());
    put_trend(out, frame.trend);
    put_bytes(out, frame.low);
    put_optional(out, frame.high);
    put_records(out, records)?;
    put_records(out, more)
}

fn format(read: &mut Payload, page: &mut [u8]) -> Checked<()> {
    let frame = Frame {
        page_id: read.u64()?,
        index_id: read.u32()?,
        level: read.u8()?,
        flags: read.u16()?,
        right_link: read.u64()?,
        trend: read.trend()?,
        low: read.bytes()?,
        high: read.optional()?,
        max_txn: 0,
    };
    let mut builder = Builder::new(page, &frame)?;
    read.push_list(&mut builder)?;
    read.push_list(&mut builder)?;
    builder.finish()
}

/// RESHAPE: new fences and link; keeps slots `keep` and puts other pages' records before and after them.
pub(crate) struct Reshape<'a> {
    pub keep: std::ops::Range<usize>,
    pub flags: u16,
    pub right_link: u64,
    pub low: &'a [u8],
    pub high: Option<&'a [u8]>,
    pub before: Records<'a>,
    pub after: Records<'a>,
    pub trend: Trend,
}

pub(crate) fn reshape_payload(out: &mut Vec<u8>, reshape: &Reshape) -> Checked<()> {
    out.clear();
    out.extend_from_slice(&(reshape.keep.start as u16).to_le_bytes());
    out.extend_from_slice(&(reshape.keep.end as u16).to_le_bytes());
    out.extend_from_slice(&reshape.flags.to_le_bytes());
    out.extend_from_slice(&reshape.right_link.to_le_bytes());
    put_trend(out, reshape.trend);
    put_bytes(out, reshape.low);
    put_optional(out, reshape.high);
    put_records(out, reshape.before)?;
    put_records(out, reshape.after)
}

fn reshape(read: &mut Payload, page: &mut [u8]) -> Checked<()> {
    let (from, to) = (read.u16()? as usize, read.u16()? as usize);
    let (flags, right_link, trend) = (read.u16()?, read.u64()?, read.trend()?);
    let (low, high) = (read.bytes()?, read.optional()?);
    let node = Node(page);
    if from > to || to > node.len() {
        return Err(Corrupt("reshape slots"));
    }
    let frame = Frame {
        page_id: node.page_id(),
        index_id: node.index_id(),
        level: node.level(),
        flags,
        right_link,
        low,
        high,
        max_txn: node.max_txn(),
        trend,
    };
    SCRATCH.with_borrow_mut(|scratch| {
        let mut builder = Builder::new(&mut scratch[..], &frame)?;
        read.push_list(&mut builder)?;
        builder.push_kept(Node(page), from..to)?;
        read.push_list(&mut builder)?;
        builder.finish()?;
        page[TYPE..LSN].copy_from_slice(&scratch[TYPE..LSN]);
        page[PAGE_ID..].copy_from_slice(&scratch[PAGE_ID..]);
        Ok(())
    })
}

thread_local! {
    /// Where a page is built before it takes the place of another. Not cleared between: a builder leaves nothing of what was there.
    static SCRATCH: RefCell<Box<[u8; PAGE_SIZE]>> = RefCell::new(Box::new([0; PAGE_SIZE]));
}

/// INSERT: starts a run of records at `index`; `push_leaf` adds each, `count` is the number that follow.
pub(crate) fn insert_payload(out: &mut Vec<u8>, index: usize, count: usize) {
    out.clear();
    out.extend_from_slice(&(index as u16).to_le_bytes());
    out.extend_from_slice(&(count as u16).to_le_bytes());
}

/// One record of an INSERT: `key_len, suffix, meta, value_len, value`.
pub(crate) fn push_leaf(out: &mut Vec<u8>, suffix: &[u8], meta: u64, value: &[u8]) {
    put_bytes(out, suffix);
    out.extend_from_slice(&meta.to_le_bytes());
    put_bytes(out, value);
}

pub(crate) fn replace_payload(out: &mut Vec<u8>, index: usize, meta: u64, value: &[u8]) {
    meta_payload(out, index, meta);
    out.extend_from_slice(value);
}

pub(crate) fn meta_payload(out: &mut Vec<u8>, index: usize, meta: u64) {
    out.clear();
    out.extend_from_slice(&(index as u16).to_le_bytes());
    out.extend_from_slice(&meta.to_le_bytes());
}

pub(crate) fn remove_payload(out: &mut Vec<u8>, index: usize) {
    out.clear();
    out.extend_from_slice(&(index as u16).to_le_bytes());
}

pub(crate) fn child_payload(out: &mut Vec<u8>, index: usize, suffix: &[u8], child: u64) {
    out.clear();
    out.extend_from_slice(&(index as u16).to_le_bytes());
    out.extend_from_slice(&child.to_le_bytes());
    out.extend_from_slice(suffix);
}

pub(crate) fn flags_payload(out: &mut Vec<u8>, flags: u16) {
    out.clear();
    out.extend_from_slice(&flags.to_le_bytes());
}
