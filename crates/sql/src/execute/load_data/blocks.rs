//! The file cut into blocks of whole lines, and blocks made into rows, each in any thread.
//!
//! Only rows of plain values are made here (`TextRowEncoder`); the others are handed back with their fields, to be converted in the session,
//! which alone may warn and knows the modes.

use std::ops::Range;
use std::sync::Arc;

use highkey_table::{EncodedRows, PreparedRows, Table};
use highkey_types::{Charset, TextRowEncoder};

use super::lines::{FieldText, LineParser, end_of_line};
use crate::parse::ast::FileFormat;

/// Bytes of a block: about a core's second-level cache.
pub(super) const BLOCK_BYTES: usize = 1 << 20;

/// How blocks become rows of a table.
pub(super) struct BlockPlan {
    pub format: FileFormat,
    pub encoder: TextRowEncoder,
    pub table: Arc<Table>,
    /// Fields of a line.
    pub fields: usize,
    /// The column that must not be 0, which asks for a number.
    pub auto_column: Option<usize>,
}

impl BlockPlan {
    /// Adds a row of fields that a `LineParser` gave. False: it has to be converted in the session.
    pub fn encode_texts(&self, texts: &[FieldText], rows: &mut EncodedRows) -> bool {
        let text = |field| if let &FieldText::Text(ref text) = field { Some(text.as_slice()) } else { None };
        let mut fields: Vec<Option<&[u8]>> = texts.iter().map(text).collect();
        encode(self, &mut fields, rows)
    }

    /// The greatest number that encoded rows bring for the AUTO_INCREMENT column: generated ones come after it.
    pub fn greatest_given(&self, rows: &EncodedRows, which: Range<usize>) -> Option<u64> {
        let (column, layout) = (self.auto_column?, self.table.layout());
        let unsigned = layout.types()[column].unsigned;
        which.filter_map(|i| layout.int(rows.row(i), column)).filter(|n| unsigned || *n > 0).map(|n| n as u64).max()
    }
}

/// What became of a block.
pub(super) enum Converted {
    /// All of it, so many rows, ready for the table; with `BlockPlan::greatest_given` of them.
    Prepared(usize, PreparedRows, Option<u64>),
    /// Rows in order.
    Mixed(EncodedRows, Vec<Declined>),
}

/// A line that the session has to convert.
pub(super) struct Declined {
    /// Encoded rows before it.
    pub at: usize,
    pub fields: Vec<FieldText>,
}

/// Whether lines of the format can be told apart without reading them from the start of the file: nothing is enclosed or prefixed, no
/// terminator is part of another or has the escape character, and a line's terminator can begin neither within itself (`xx` in `xxx`) nor within a field's.
pub(super) fn is_plain(format: &FileFormat) -> bool {
    let (field, line) = (&format.field_terminator, &format.line_terminator);
    let holds = |a: &[u8], b: &[u8]| memchr::memmem::find(a, b).is_some();
    let begins_within = |terminator: &[u8]| (1..terminator.len()).any(|at| line.starts_with(&terminator[at..]));
    format.enclosed_by.is_empty()
        && format.line_prefix.is_empty()
        && !field.is_empty()
        && !line.is_empty()
        && format.escaped_by.len() <= 1
        && !holds(field, line)
        && !holds(line, field)
        && !begins_within(line)
        && !begins_within(field)
        && !format.escaped_by.iter().any(|e| field.contains(e) || line.contains(e))
}

/// Collects bytes and gives them out in whole lines.
pub(super) struct BlockCutter {
    format: FileFormat,
    buffer: Vec<u8>,
    /// No terminator that counts begins before this byte of the buffer.
    searched: usize,
    skip: u64,
}

impl BlockCutter {
    /// For a plain format; the first `skip` lines are left out.
    pub fn new(format: &FileFormat, skip: u64) -> BlockCutter {
        BlockCutter { format: format.clone(), buffer: Vec::new(), searched: 0, skip }
    }

    pub fn feed(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next block; `last`: the file has ended.
    pub fn next(&mut self, last: bool) -> Option<Vec<u8>> {
        if self.skip > 0 {
            self.skip_lines(last);
        }
        if self.skip > 0 {
            return None;
        }
        if last {
            return (!self.buffer.is_empty()).then(|| std::mem::take(&mut self.buffer));
        }
        if self.buffer.len() < BLOCK_BYTES {
            return None;
        }
        let (terminator, escape) = (&self.format.line_terminator, self.format.escaped_by.first().copied());
        let length = terminator.len();
        let (mut end, from) = (self.buffer.len(), self.searched);
        loop {
            let Some(at) = memchr::memmem::rfind(&self.buffer[from..end], terminator).map(|at| from + at) else {
                self.searched = self.unsearched(from);
                return None;
            };
            if !is_escaped(&self.buffer, at, escape) {
                let rest = self.buffer.split_off(at + length);
                let block = std::mem::replace(&mut self.buffer, rest);
                self.searched = self.unsearched(0);
                return Some(block);
            }
            end = at;
        }
    }

    /// There is nothing more to skip where the file has ended.
    fn skip_lines(&mut self, last: bool) {
        let mut start = 0;
        while self.skip > 0 {
            match end_of_line(&self.buffer, start.max(self.searched), &self.format, Charset::Utf8mb4) {
                Ok(end) => start = end,
                Err(_) if last => {
                    (start, self.skip) = (self.buffer.len(), 0);
                    break;
                }
                Err(at) => {
                    self.searched = at;
                    break;
                }
            }
            self.skip -= 1;
        }
        self.buffer.drain(..start);
        self.searched = self.searched.saturating_sub(start);
    }

    /// Where the next search begins if none from `from` on has found anything: a terminator may have begun at the end.
    fn unsearched(&self, from: usize) -> usize {
        (self.buffer.len() + 1).saturating_sub(self.format.line_terminator.len()).max(from)
    }

    /// Bytes of the line that has not ended yet, and of lines before it that are not enough for a block.
    pub fn waiting(&self) -> usize {
        self.buffer.len()
    }
}

/// An odd number of escape characters stands before `at`.
fn is_escaped(bytes: &[u8], at: usize, escape: Option<u8>) -> bool {
    escape.is_some_and(|escape| bytes[..at].iter().rev().take_while(|b| **b == escape).count() % 2 == 1)
}

/// Makes rows of a block.
pub(super) fn convert(plan: &BlockPlan, block: &[u8]) -> Converted {
    let terminator = &plan.format.line_terminator;
    let escape = plan.format.escaped_by.first().copied();
    let ends = memchr::memmem::Finder::new(terminator);
    // Most rows take less room than their text.
    let mut rows = EncodedRows::with_room(block.len());
    let mut declined = Vec::new();
    let mut fields: Vec<Option<&[u8]>> = Vec::with_capacity(plan.fields + 1);
    let mut start = 0;
    while start < block.len() {
        let mut from = start;
        let end = loop {
            match ends.find(&block[from..]) {
                Some(found) if is_escaped(&block[start..], from + found - start, escape) => from += found + 1,
                Some(found) => break from + found,
                None => break block.len(),
            }
        };
        let line = &block[start..(end + terminator.len()).min(block.len())];
        let split_up = split(&block[start..end], &plan.format, escape, &mut fields);
        if end == block.len() {
            // As `LineParser::cut_unterminated`.
            fields.truncate(plan.fields);
        }
        start = end + terminator.len();
        if split_up && encode(plan, &mut fields, &mut rows) {
            continue;
        }
        let mut parser = LineParser::new(plan.format.clone(), Charset::Utf8mb4, 0);
        parser.feed(line);
        let mut texts = Vec::new();
        if parser.next_line(true, &mut texts) {
            parser.cut_unterminated(&mut texts, plan.fields);
            declined.push(Declined { at: rows.len(), fields: texts });
        }
    }
    if declined.is_empty() {
        let greatest = plan.greatest_given(&rows, 0..rows.len());
        Converted::Prepared(rows.len(), plan.table.prepare_rows(rows), greatest)
    } else {
        Converted::Mixed(rows, declined)
    }
}

/// The line's fields. False if one holds an escape that is not `\N`.
fn split<'a>(line: &'a [u8], format: &FileFormat, escape: Option<u8>, fields: &mut Vec<Option<&'a [u8]>>) -> bool {
    fields.clear();
    match format.field_terminator.as_slice() {
        [terminator] => {
            let mut start = 0;
            for end in memchr::memchr_iter(*terminator, line) {
                fields.push(Some(&line[start..end]));
                start = end + 1;
            }
            fields.push(Some(&line[start..]));
        }
        terminator => {
            let mut start = 0;
            for end in memchr::memmem::find_iter(line, terminator) {
                fields.push(Some(&line[start..end]));
                start = end + terminator.len();
            }
            fields.push(Some(&line[start..]));
        }
    }
    let Some(escape) = escape else { return true };
    if memchr::memchr(escape, line).is_none() {
        return true;
    }
    for field in fields.iter_mut() {
        match *field {
            Some([e, b'N']) if *e == escape => *field = None,
            Some(text) if text.contains(&escape) => return false,
            _ => {}
        }
    }
    true
}

fn encode(plan: &BlockPlan, fields: &mut Vec<Option<&[u8]>>, rows: &mut EncodedRows) -> bool {
    // A terminator behind the last field is no further field.
    if fields.len() == plan.fields + 1 && fields.last() == Some(&Some(b"")) {
        fields.pop();
    }
    rows.try_push_with(|out| {
        let start = out.len();
        plan.encoder.encode(fields, out)
            && plan.auto_column.is_none_or(|column| plan.table.layout().int(&out[start..], column).is_some_and(|n| n != 0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_end_with_lines() {
        let format = FileFormat::default();
        let mut text = Vec::new();
        for n in 0..200_000 {
            text.extend_from_slice(if n % 3 == 0 { b"with\\\nescape\t1\n" } else { b"back\\\\\t2\n" });
        }
        let mut cutter = BlockCutter::new(&format, 1);
        let mut all = Vec::new();
        for chunk in text.chunks(100_000) {
            cutter.feed(chunk);
            while let Some(block) = cutter.next(false) {
                assert!(block.ends_with(b"\t1\n") || block.ends_with(b"\t2\n"));
                all.extend(block);
            }
        }
        while let Some(block) = cutter.next(true) {
            all.extend(block);
        }
        // An ignored line ends where no escape stands before.
        assert_eq!(all, &text[b"with\\\nescape\t1\n".len()..]);
    }

    #[test]
    fn more_lines_are_ignored_than_there_are() {
        let mut cutter = BlockCutter::new(&FileFormat::default(), u64::MAX);
        cutter.feed(b"a\nb");
        assert!(cutter.next(false).is_none() && cutter.next(true).is_none());
    }

    /// A file may not have the terminator at all.
    #[test]
    fn bytes_are_searched_once() {
        let format = FileFormat { line_terminator: b"\r\n".to_vec(), ..FileFormat::default() };
        for skip in [0, 2] {
            let mut cutter = BlockCutter::new(&format, skip);
            for n in 1..=50 {
                cutter.feed(&[&vec![b'x'; 99_998][..], b"\n\r"].concat());
                assert!(cutter.next(false).is_none());
                let searched = if skip == 0 && cutter.waiting() < BLOCK_BYTES { 0 } else { n * 100_000 - 1 };
                assert_eq!(cutter.searched, searched);
            }
            // The terminator that began with the last byte.
            cutter.feed(b"\nabc\r\ndef");
            let expected: &[u8] = if skip == 0 { b"\r\nabc\r\n" } else { b"" };
            assert!(cutter.next(false).map_or(expected.is_empty(), |block| block.ends_with(expected)));
            assert_eq!(cutter.next(true).unwrap(), b"def");
        }
    }

    #[test]
    fn fields_are_told_apart_or_left_to_the_parser() {
        let mut fields = Vec::new();
        let mut try_split = |line: &'static [u8]| split(line, &FileFormat::default(), Some(b'\\'), &mut fields).then(|| fields.clone());
        assert_eq!(try_split(b"a\t\t\\N"), Some(vec![Some(&b"a"[..]), Some(b""), None]));
        assert_eq!(try_split(b"a\\\tb"), None);
        assert_eq!(try_split(b"\\Nx"), None);
    }

    #[test]
    fn which_formats_are_plain() {
        let of = |field: &str, line: &str, enclosed: &str| {
            is_plain(&FileFormat {
                field_terminator: field.into(),
                line_terminator: line.into(),
                enclosed_by: enclosed.into(),
                ..FileFormat::default()
            })
        };
        assert!(of("|", "\n", "") && of("::", "\r\n", "") && of("|", "ab\n", ""));
        assert!(!of("|", "xx", "") && !of("|", "aba", "") && !of("ab", "bc", "") && of("bc", "ab", ""));
        assert!(!of(",", "\n", "\"") && !of("|", "|\n", "") && !of("\\", "\n", "") && !of("", "\n", ""));
    }
}
