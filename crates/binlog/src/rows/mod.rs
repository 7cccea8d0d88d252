//! WRITE_ROWS, UPDATE_ROWS and DELETE_ROWS events (version 2).
//!
//! ```text
//! table_id 6 bytes, flags u16, length of extra data u16 = 2, count of columns lenenc,
//! columns of the (before) image, UPDATE: columns of the after image, rows
//! ```

mod image;

#[cfg(test)]
mod tests;

pub use image::RowImage;

use std::ops::Deref;

use highkey_types::Value;

use crate::event::{EventType, Header, Stamp, close, open, push_lenenc};
use crate::table_map::{TableMap, push_table_id};
use crate::Bitmap;

/// What happened to the rows of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsKind {
    Write,
    Update,
    Delete,
}

/// Flags of rows events.
pub mod rows_flags {
    /// The last event of its statement.
    pub const STATEMENT_END: u16 = 1;
    /// `@@foreign_key_checks` was off.
    pub const NO_FOREIGN_KEY_CHECKS: u16 = 2;
    /// `@@unique_checks` was off.
    pub const RELAXED_UNIQUE_CHECKS: u16 = 4;
}

/// Where the flags stand in a raw or sealed rows event.
const FLAGS_AT: usize = Header::LEN + 6;

/// `@@binlog_row_event_max_size`: events end before they are longer, unless one row is.
pub const ROW_EVENT_MAX_SIZE: usize = 8192;

/// Writes the rows of one statement in one table, as events of about [`ROW_EVENT_MAX_SIZE`] bytes at the end of a buffer. The caller writes
/// the table map before, and nothing else into the buffer meanwhile. `T` is a reference to the table, or an `Arc` of it.
#[derive(Clone, Debug)]
pub struct RowsWriter<T> {
    table: T,
    kind: RowsKind,
    stamp: Stamp,
    flags: u16,
    before: Bitmap,
    after: Bitmap,
    /// The bytes of an event before its rows.
    head: Vec<u8>,
    /// Where the event being written starts in the buffer.
    open: Option<usize>,
    /// The last event that was begun.
    last: Option<usize>,
}

impl<T: Deref<Target = TableMap>> RowsWriter<T> {
    /// `before` says which columns the image of the old row has (UPDATE, DELETE), `after` which the new one (INSERT, UPDATE). `flags` are
    /// [`rows_flags`] without the end of the statement.
    pub fn begin(kind: RowsKind, stamp: Stamp, flags: u16, table: T, before: &Bitmap, after: &Bitmap) -> RowsWriter<T> {
        let mut writer = RowsWriter {
            table,
            kind,
            stamp,
            flags,
            before: before.clone(),
            after: after.clone(),
            head: Vec::new(),
            open: None,
            last: None,
        };
        writer.build_head();
        writer
    }

    fn build_head(&mut self) {
        self.head.clear();
        let event_type = match self.kind {
            RowsKind::Write => EventType::WRITE_ROWS,
            RowsKind::Update => EventType::UPDATE_ROWS,
            RowsKind::Delete => EventType::DELETE_ROWS,
        };
        let head = &mut self.head;
        open(head, self.stamp, event_type, 0);
        push_table_id(self.table.table_id(), head);
        head.extend_from_slice(&self.flags.to_le_bytes());
        head.extend_from_slice(&2u16.to_le_bytes());
        push_lenenc(head, self.table.column_count() as u64);
        if self.kind != RowsKind::Write {
            head.extend_from_slice(self.before.as_bytes());
        }
        if self.kind != RowsKind::Delete {
            head.extend_from_slice(self.after.as_bytes());
        }
    }

    /// The columns of the images from here on; ends the event if they are others than before (a MINIMAL update that changes other columns).
    pub fn set_columns(&mut self, before: &Bitmap, after: &Bitmap, out: &mut [u8]) {
        if self.before == *before && self.after == *after {
            return;
        }
        self.close(out);
        self.before.clone_from(before);
        self.after.clone_from(after);
        self.build_head();
    }

    /// Appends an inserted or a deleted row: all columns' values. Panics in an UPDATE, and as [`TableMap::row_image`] does.
    pub fn push(&mut self, row: &[Value], out: &mut Vec<u8>) {
        assert!(self.kind != RowsKind::Update, "an update has two images");
        let at = self.begin_row(out);
        self.table.row_image(if self.kind == RowsKind::Write { &self.after } else { &self.before }, row, out);
        self.end_row(at, out);
    }

    /// Appends an updated row: all columns' values before and after. Panics unless in an UPDATE, and as [`TableMap::row_image`] does.
    pub fn push_update(&mut self, old: &[Value], new: &[Value], out: &mut Vec<u8>) {
        assert!(self.kind == RowsKind::Update, "only an update has two images");
        let at = self.begin_row(out);
        self.table.row_image(&self.before, old, out);
        self.table.row_image(&self.after, new, out);
        self.end_row(at, out);
    }

    /// Where the row starts.
    fn begin_row(&mut self, out: &mut Vec<u8>) -> usize {
        if self.open.is_none() {
            self.open = Some(out.len());
            self.last = self.open;
            out.extend_from_slice(&self.head);
        }
        out.len()
    }

    /// A row that makes its event too long moves into an event of its own, unless it is the first.
    fn end_row(&mut self, row: usize, out: &mut Vec<u8>) {
        let Some(start) = self.open else { return };
        if out.len() - start <= ROW_EVENT_MAX_SIZE || row == start + self.head.len() {
            return;
        }
        close(&mut out[..row], start);
        let end = out.len();
        out.resize(end + self.head.len(), 0);
        out.copy_within(row..end, row + self.head.len());
        out[row..row + self.head.len()].copy_from_slice(&self.head);
        self.open = Some(row);
        self.last = self.open;
    }

    fn close(&mut self, out: &mut [u8]) {
        if let Some(start) = self.open.take() {
            close(out, start);
        }
    }

    /// Ends the event; the next row begins another one. The answer is as `finish`'s, after which the buffer may move.
    pub fn pause(&mut self, out: &mut [u8]) -> Option<usize> {
        self.close(out);
        self.last.take()
    }

    /// Ends the last event. `statement_end`: no other rows events follow in this statement ([`set_statement_end`] can say so
    /// later). The answer is where the last event starts in the buffer; `None` if there was no row.
    pub fn finish(mut self, statement_end: bool, out: &mut [u8]) -> Option<usize> {
        self.close(out);
        if let (true, Some(last)) = (statement_end, self.last) {
            set_statement_end(&mut out[last..]);
        }
        self.last
    }
}

/// Marks the raw rows event at the start of `raw` as the last one of its statement.
pub fn set_statement_end(raw: &mut [u8]) {
    debug_assert!(matches!(raw[4], EventType::WRITE_ROWS | EventType::UPDATE_ROWS | EventType::DELETE_ROWS));
    raw[FLAGS_AT] |= rows_flags::STATEMENT_END as u8;
}
