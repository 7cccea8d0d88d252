//! The file cut into blocks of whole lines, and blocks made into rows, each in any thread.
//!
//! Only rows of plain values are made here (`TextRowEncoder`); the others are handed back with their fields, to be converted in the session,
//! which alone may warn and knows the modes.

use std::ops::Range;
use std::sync::Arc;

use highkey_table::{EncodedRows, PreparedRows, Table};
use highkey_types::{Charset, TextRowEncoder};

use super::lines::{FieldScan, FieldText, LineParser, ScannedText, end_of_line};
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

/// Whether a file can be cut into blocks at all: else only who reads it field by field knows where its lines end.
pub(super) fn can_cut(format: &FileFormat, charset: Charset) -> bool {
    let one_byte = format.enclosed_by.len() <= 1 && format.escaped_by.len() <= 1;
    one_byte && !format.is_fixed() && format.line_prefix.is_empty() && !format.line_terminator.is_empty() && !charset.hides_ascii(u8::MAX)
}

/// Whether lines of the format can be told apart without reading them from the start of the file: nothing is enclosed or prefixed, no
/// terminator is part of another or has the escape character, and a line's terminator can begin neither within itself (`xx` in `xxx`) nor within a field's.
fn is_plain(format: &FileFormat) -> bool {
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
    /// Bytes of a block.
    block: usize,
    buffer: Vec<u8>,
    /// No terminator that counts begins before this byte of the buffer.
    searched: usize,
    /// Of a format that is not plain: every field before a cut is looked at.
    scan: Option<FieldScan>,
    skip: u64,
}

impl BlockCutter {
    /// For a format that can be cut; the first `skip` lines are left out.
    pub fn new(format: &FileFormat, skip: u64) -> BlockCutter {
        BlockCutter::of_blocks(BLOCK_BYTES, format, skip)
    }

    fn of_blocks(block: usize, format: &FileFormat, skip: u64) -> BlockCutter {
        let scan = (!is_plain(format)).then(|| FieldScan::new(format));
        BlockCutter { format: format.clone(), block, buffer: Vec::new(), searched: 0, scan, skip }
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
        if self.buffer.len() < self.block {
            return None;
        }
        if let Some(scan) = &mut self.scan {
            let end = scan.line_end(&self.buffer, self.block)?;
            return Some(self.take(end));
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
                let block = self.take(at + length);
                self.searched = self.unsearched(0);
                return Some(block);
            }
            end = at;
        }
    }

    /// The first bytes of the buffer.
    fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.buffer.split_off(count);
        std::mem::replace(&mut self.buffer, rest)
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
    // Most rows take less room than their text.
    let mut rows = EncodedRows::with_room(block.len());
    let mut declined = Vec::new();
    let mut parser = LineParser::new(plan.format.clone(), Charset::Utf8mb4, 0);
    let mut texts = Vec::new();
    for_each_line(&plan.format, plan.fields, block, |line, fields| {
        let is_split = fields.is_some();
        if fields.is_some_and(|fields| encode(plan, fields, &mut rows)) {
            return;
        }
        parser.feed(line);
        if parser.next_line(true, &mut texts) {
            parser.cut_unterminated(&mut texts, plan.fields);
            if is_split || !plan.encode_texts(&texts, &mut rows) {
                declined.push(Declined { at: rows.len(), fields: std::mem::take(&mut texts) });
            }
        }
    });
    if declined.is_empty() {
        let greatest = plan.greatest_given(&rows, 0..rows.len());
        Converted::Prepared(rows.len(), plan.table.prepare_rows(rows), greatest)
    } else {
        Converted::Mixed(rows, declined)
    }
}

/// Gives every line of a block with its fields, or without them where something in it is escaped or doubled. Of a line that the file ends in, no more than `count` fields
/// (`LineParser::cut_unterminated`).
fn for_each_line<'a>(format: &FileFormat, count: usize, block: &'a [u8], mut each: impl FnMut(&'a [u8], Option<&mut Vec<Option<&'a [u8]>>>)) {
    let mut fields: Vec<Option<&[u8]>> = Vec::with_capacity(count + 1);
    if !is_plain(format) {
        let mut scan = FieldScan::new(format);
        while scan.at() < block.len() {
            fields.clear();
            let start = scan.at();
            let mut is_split = true;
            while let Some(field) = scan.next(block, true) {
                match field.text {
                    ScannedText::Null => fields.push(None),
                    ScannedText::Verbatim(text) => fields.push(Some(&block[text])),
                    ScannedText::Escaped => is_split = false,
                }
                if field.ends_line {
                    if !field.terminated {
                        fields.truncate(count);
                    }
                    break;
                }
            }
            each(&block[start..scan.at()], is_split.then_some(&mut fields));
        }
        return;
    }
    let terminator = &format.line_terminator;
    let escape = format.escaped_by.first().copied();
    let ends = memchr::memmem::Finder::new(terminator);
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
        let is_split = split(&block[start..end], format, escape, &mut fields);
        if end == block.len() {
            fields.truncate(count);
        }
        start = end + terminator.len();
        each(line, is_split.then_some(&mut fields));
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
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    /// A line's fields, NULL or text.
    type Line = Vec<Option<Vec<u8>>>;

    fn line_of(texts: &[FieldText]) -> Line {
        texts.iter().map(|text| if let FieldText::Text(text) = text { Some(text.clone()) } else { None }).collect()
    }

    /// As one parser reads them from the start of the file, which has it `chunk` bytes at a time.
    fn lines_of_parser(format: &FileFormat, skip: u64, count: usize, text: &[u8], chunk: usize) -> Vec<Line> {
        let mut parser = LineParser::new(format.clone(), Charset::Utf8mb4, skip);
        let (mut lines, mut texts) = (Vec::new(), Vec::new());
        for piece in text.chunks(chunk).chain([&b""[..]]) {
            parser.feed(piece);
            while parser.next_line(piece.is_empty(), &mut texts) {
                parser.cut_unterminated(&mut texts, count);
                lines.push(line_of(&texts));
            }
        }
        lines
    }

    /// As blocks of `block` bytes give them.
    fn lines_of_blocks(format: &FileFormat, skip: u64, count: usize, text: &[u8], chunk: usize, block: usize) -> Vec<Line> {
        let mut cutter = BlockCutter::of_blocks(block, format, skip);
        let mut lines = Vec::new();
        let mut take = |block: Vec<u8>| {
            for_each_line(format, count, &block, |line, fields| match fields {
                Some(fields) => lines.push(fields.iter().map(|field| field.map(<[u8]>::to_vec)).collect()),
                None => {
                    let of_line = lines_of_parser(format, 0, count, line, line.len());
                    assert_eq!(of_line.len(), 1, "a line is one for the parser, too");
                    lines.extend(of_line);
                }
            });
        };
        for piece in text.chunks(chunk) {
            cutter.feed(piece);
            while let Some(block) = cutter.next(false) {
                take(block);
            }
        }
        while let Some(block) = cutter.next(true) {
            take(block);
        }
        lines
    }

    fn format(field: &str, line: &str, enclosed: &str, escaped: &str) -> FileFormat {
        FileFormat {
            field_terminator: field.into(),
            line_terminator: line.into(),
            enclosed_by: enclosed.into(),
            escaped_by: escaped.into(),
            ..FileFormat::default()
        }
    }

    /// Quotes where none belong, doubled, unclosed, escaped; terminators within quotes and within each other; all of it cut anywhere.
    #[test]
    fn blocks_have_the_lines_that_a_parser_reads() {
        let formats = [
            format(",", "\n", "\"", "\\"),
            format(",", "\n", "\"", ""),
            format(",", "\n", "\"", "\""),
            format("\t", "\r\n", "'", "\\"),
            format("||", "\n", "\"", "\\"),
            format(",", ",\n", "\"", "\\"),
            format("\n|", "\n", "\"", "\\"),
            format("", "\n", "\"", "\\"),
            format("\"", "\n", "\"", "\\"),
            format(",", "\"\n", "\"", "\\"),
            format(",", "xx", "", "\\"),
            format(",", "aba", "\"", "N"),
            format("\\", "\n", "", "\\"),
            format(",", ",", "\"", "\\"),
            format("|", "\n", "", "\\"),
        ];
        let seed = 7;
        println!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let mut found = 0;
        for format in formats {
            assert!(can_cut(&format, Charset::Utf8mb4));
            let own = [&format.field_terminator, &format.line_terminator, &format.enclosed_by, &format.escaped_by].map(Vec::as_slice);
            let others: [&[u8]; 8] = [b"a", b"b", b"x", b"N", b"NULL", b"\r", b"\n", b"\""];
            for _ in 0..150 {
                let mut text = Vec::new();
                for _ in 0..random.random_range(1..30) {
                    let piece = if random.random_bool(0.7) { own[random.random_range(0..4)] } else { others[random.random_range(0..8)] };
                    text.extend_from_slice(piece);
                }
                if text.is_empty() {
                    continue;
                }
                let (skip, count) = (u64::from(random.random_bool(0.2)), random.random_range(1..4));
                let expected = lines_of_parser(&format, skip, count, &text, text.len());
                found += expected.len();
                for block in 1..=text.len() + 1 {
                    let chunk = random.random_range(1..=text.len());
                    let case = format!("{format:?} skip {skip} block {block} chunk {chunk}: {:?}", String::from_utf8_lossy(&text));
                    assert_eq!(lines_of_blocks(&format, skip, count, &text, chunk, block), expected, "{case}");
                    assert_eq!(lines_of_parser(&format, skip, count, &text, chunk), expected, "{case}");
                }
            }
        }
        assert!(found > 2_000, "{found} lines");
    }

    #[test]
    fn a_field_is_looked_at_once() {
        let mut cutter = BlockCutter::of_blocks(10, &format(",", "\n", "\"", "\\"), 0);
        cutter.feed(b"1,\"two\nlines");
        assert!(cutter.next(false).is_none());
        assert_eq!(cutter.scan.as_ref().unwrap().at(), 12);
        cutter.feed(b"\"\n2,b\n3,\"c\n");
        assert_eq!(cutter.next(false).unwrap(), b"1,\"two\nlines\"\n");
        // What is left is not enough for a block.
        assert!(cutter.next(false).is_none());
        // A line does not wait for the end of the one behind it.
        cutter.feed(b"\n");
        assert_eq!(cutter.next(false).unwrap(), b"2,b\n");
        assert_eq!((cutter.scan.as_ref().unwrap().at(), cutter.waiting()), (6, 6));
        cutter.feed(b"d\"\nx");
        assert_eq!(cutter.next(false).unwrap(), b"3,\"c\n\nd\"\n");
        assert_eq!(cutter.next(true).unwrap(), b"x");
    }

    #[test]
    fn which_files_can_be_cut() {
        let plain = FileFormat::default();
        assert!(can_cut(&plain, Charset::Utf8mb4) && can_cut(&plain, Charset::Latin1) && !can_cut(&plain, Charset::Gbk));
        assert!(can_cut(&format(",", "\n", "\"", "\\"), Charset::Utf8mb4) && !can_cut(&format(",", "\n", "\"", "\\"), Charset::Sjis));
        assert!(!can_cut(&format("", "\n", "", "\\"), Charset::Utf8mb4) && !can_cut(&format(",", "", "\"", "\\"), Charset::Utf8mb4));
        assert!(!can_cut(&FileFormat { line_prefix: b"x".to_vec(), ..plain }, Charset::Utf8mb4));
    }

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
