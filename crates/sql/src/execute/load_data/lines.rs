//! Lines and fields of MySQL's text format: read one after the other (`LineParser`), and told apart without being read (`FieldScan`).

use std::ops::Range;

use highkey_types::Charset;

use crate::parse::ast::FileFormat;
use crate::session::decode::escaped;

/// A field of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum FieldText {
    #[default]
    Null,
    Text(Vec<u8>),
}

/// Cuts a stream of bytes into lines of fields.
pub(super) struct LineParser {
    format: FileFormat,
    /// Of the file: what looks like a terminator or an escape within a character is none, but in a fixed format.
    charset: Charset,
    /// Bytes of each field of a fixed format.
    widths: Vec<usize>,
    skip: u64,
    buffer: Vec<u8>,
    at: usize,
    /// Bytes behind `at` that are worth another try.
    wanted: usize,
    /// So many always are: more are not waited for.
    longest: usize,
    /// The last line found ends with the file, without a terminator.
    unterminated: bool,
}

/// How a try to parse a line ended.
enum Parse {
    /// The line ends here; whether by a terminator.
    Line(usize, bool),
    /// More bytes are needed.
    Incomplete,
}

impl LineParser {
    pub fn new(format: FileFormat, charset: Charset, skip: u64) -> LineParser {
        LineParser { format, charset, widths: Vec::new(), skip, buffer: Vec::new(), at: 0, wanted: 0, longest: usize::MAX, unterminated: false }
    }

    /// For a fixed format (`FileFormat::is_fixed`) with fields of so many bytes.
    pub fn fixed(format: FileFormat, charset: Charset, widths: Vec<usize>, skip: u64) -> LineParser {
        LineParser { widths, ..LineParser::new(format, charset, skip) }
    }

    /// For a caller that waits for no more than so many bytes of a line.
    pub fn with_longest(self, longest: usize) -> LineParser {
        LineParser { longest, ..self }
    }

    pub fn feed(&mut self, chunk: &[u8]) {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// Bytes of the line that has not ended yet.
    pub fn waiting(&self) -> usize {
        self.buffer.len() - self.at
    }

    /// Leaves out what the line found last holds beyond `count` fields, if it ends with the file: MySQL looks for more of a line only as far as its
    /// terminator.
    pub fn cut_unterminated(&self, fields: &mut Vec<FieldText>, count: usize) {
        if self.unterminated {
            fields.truncate(count);
        }
    }

    /// The next line's fields. False: there is none yet, or, with `last`, none any more.
    pub fn next_line(&mut self, last: bool, fields: &mut Vec<FieldText>) -> bool {
        if !last && self.waiting() < self.wanted {
            return false;
        }
        let found = self.try_line(last, fields);
        // A line is read from its start each time: a long one after twice as many bytes have come, not with each of its pieces.
        self.wanted = if found { 0 } else { (2 * self.waiting()).min(self.longest) };
        found
    }

    fn try_line(&mut self, last: bool, fields: &mut Vec<FieldText>) -> bool {
        loop {
            if self.at >= self.buffer.len() {
                return false;
            }
            if self.skip > 0 && !self.format.line_terminator.is_empty() {
                match end_of_line(&self.buffer, self.at, &self.format, self.charset) {
                    Ok(end) => self.at = end,
                    Err(_) if last => self.at = self.buffer.len(),
                    Err(_) => return false,
                }
                self.skip -= 1;
                continue;
            }
            let mut start = self.at;
            if !self.format.line_prefix.is_empty() {
                match find(&self.buffer[start..], &self.format.line_prefix) {
                    Some(found) => {
                        // The prefix must stand in this line: lines without it are skipped whole.
                        self.at = self.last_line_start(start, start + found);
                        start += found + self.format.line_prefix.len();
                    }
                    None => {
                        let end = self.buffer.len();
                        self.at = if last { end } else { self.last_line_start(start, end) };
                        return false;
                    }
                }
            }
            let parsed = if self.format.is_fixed() { self.parse_fixed(start, last, fields) } else { self.parse(start, last, fields) };
            match parsed {
                Parse::Line(next, terminated) => (self.at, self.unterminated) = (next, !terminated),
                Parse::Incomplete => return false,
            }
            if self.skip == 0 {
                return true;
            }
            // Lines that nothing terminates are skipped by their size.
            self.skip -= 1;
        }
    }

    /// Where the line begins that `to` is in, or `from` if that is the same line.
    fn last_line_start(&self, from: usize, to: usize) -> usize {
        let terminator = &self.format.line_terminator;
        if terminator.is_empty() {
            return from;
        }
        memchr::memmem::rfind(&self.buffer[from..to], terminator).map_or(from, |at| from + at + terminator.len())
    }

    /// A line of fixed fields. What a line holds too much up to its terminator is one field more.
    fn parse_fixed(&self, start: usize, last: bool, fields: &mut Vec<FieldText>) -> Parse {
        fields.clear();
        let bytes = &self.buffer;
        let escape = self.format.escaped_by.first().copied();
        let size: usize = self.widths.iter().sum();
        let terminated = !self.format.line_terminator.is_empty();
        let mut text = Vec::new();
        let mut at = start;
        let mut excess = false;
        loop {
            let full = text.len() == size;
            if full && !terminated {
                break;
            }
            let Some(&b) = bytes.get(at) else {
                if !last {
                    return Parse::Incomplete;
                }
                excess = false;
                break;
            };
            if Some(b) == escape {
                let next = bytes.get(at + 1).copied();
                if next.is_none() && !last {
                    return Parse::Incomplete;
                }
                excess |= full;
                if !full {
                    text.push(next.map_or(b, escaped));
                }
                at += 1 + usize::from(next.is_some());
                continue;
            }
            match stands_at(&self.format.line_terminator, &bytes[at..], last) {
                None => return Parse::Incomplete,
                Some(true) => {
                    at += self.format.line_terminator.len();
                    break;
                }
                Some(false) => {
                    excess |= full;
                    if !full {
                        text.push(b);
                    }
                    at += 1;
                }
            }
        }
        let mut rest = text.as_slice();
        for width in &self.widths {
            if rest.is_empty() {
                break;
            }
            let (field, behind) = rest.split_at(rest.len().min(*width));
            fields.push(FieldText::Text(field.to_vec()));
            rest = behind;
        }
        if excess {
            fields.push(FieldText::Text(b"...".to_vec()));
        }
        Parse::Line(at, true)
    }

    fn parse(&self, start: usize, last: bool, fields: &mut Vec<FieldText>) -> Parse {
        fields.clear();
        let bytes = &self.buffer;
        let format = &self.format;
        let escape = format.escaped_by.first().copied();
        let quote = format.enclosed_by.first().copied();
        let mut at = start;
        let mut terminated = false;
        loop {
            let mut text = Vec::new();
            // An escaped N is among its characters.
            let mut escaped_n = false;
            let enclosed = quote.is_some() && bytes.get(at).copied() == quote;
            if enclosed {
                at += 1;
            }
            let line_done = loop {
                let Some(&b) = bytes.get(at) else {
                    if !last {
                        return Parse::Incomplete;
                    }
                    // A quote that nothing closes belongs to the text.
                    if enclosed && let Some(quote) = quote {
                        text.insert(0, quote);
                    }
                    break true;
                };
                if Some(b) == escape && (!enclosed || Some(b) != quote) {
                    let Some(&next) = bytes.get(at + 1) else {
                        if !last {
                            return Parse::Incomplete;
                        }
                        text.push(b);
                        at += 1;
                        continue;
                    };
                    escaped_n |= next == b'N';
                    text.push(escaped(next));
                    at += 2;
                    continue;
                }
                if enclosed {
                    if Some(b) == quote {
                        match bytes.get(at + 1) {
                            None if !last => return Parse::Incomplete,
                            Some(&next) if Some(next) == quote => {
                                text.push(b);
                                at += 2;
                                continue;
                            }
                            _ => {}
                        }
                        // The quote ends the field only where a terminator follows.
                        match ends_at(format, bytes, at + 1, last) {
                            None => return Parse::Incomplete,
                            Some(true) => {
                                let (line, length) = terminator_at(format, bytes, at + 1);
                                at += 1 + length;
                                terminated = line && length > 0;
                                break line;
                            }
                            Some(false) => {
                                text.push(b);
                                at += 1;
                                continue;
                            }
                        }
                    }
                    let Some(length) = self.char_len(at, last) else { return Parse::Incomplete };
                    text.extend_from_slice(&bytes[at..at + length]);
                    at += length;
                    continue;
                }
                match self.starts_terminator(b) {
                    false => {
                        let Some(length) = self.char_len(at, last) else { return Parse::Incomplete };
                        text.extend_from_slice(&bytes[at..at + length]);
                        at += length;
                    }
                    true => match ends_at(format, bytes, at, last) {
                        None => return Parse::Incomplete,
                        Some(false) => {
                            text.push(b);
                            at += 1;
                        }
                        Some(true) => {
                            let (line, length) = terminator_at(format, bytes, at);
                            at += length;
                            terminated = line && length > 0;
                            break line;
                        }
                    },
                }
            };
            // \N alone is NULL, enclosed or not. Unenclosed, the word NULL is NULL where fields are enclosed.
            let alone = escaped_n && text.len() == 1;
            let word_null = !enclosed && quote.is_some() && text == b"NULL";
            fields.push(if alone || word_null { FieldText::Null } else { FieldText::Text(text) });
            if line_done {
                return Parse::Line(at, terminated);
            }
        }
    }

    /// Bytes of the character at `at`, of which none but the first means anything. `None`: not known yet.
    fn char_len(&self, at: usize, last: bool) -> Option<usize> {
        let rest = &self.buffer[at..];
        if !self.charset.hides_ascii(rest[0]) {
            return Some(1);
        }
        (last || rest.len() >= self.charset.max_bytes()).then(|| self.charset.char_len(rest))
    }

    fn starts_terminator(&self, b: u8) -> bool {
        self.format.field_terminator.first() == Some(&b) || self.format.line_terminator.first() == Some(&b)
    }
}

/// Whether the terminator stands at the beginning of `rest`. `None`: not known yet.
fn stands_at(terminator: &[u8], rest: &[u8], last: bool) -> Option<bool> {
    if terminator.is_empty() {
        return Some(false);
    }
    if rest.len() < terminator.len() && terminator.starts_with(rest) && !last {
        return None;
    }
    Some(rest.starts_with(terminator))
}

/// Whether a field ends at `at`: a terminator is there, or the end of the file. `None`: not known yet, or not which of the terminators it is.
fn ends_at(format: &FileFormat, bytes: &[u8], at: usize, last: bool) -> Option<bool> {
    if at >= bytes.len() {
        return last.then_some(true);
    }
    let line = stands_at(&format.line_terminator, &bytes[at..], last)?;
    let field = stands_at(&format.field_terminator, &bytes[at..], last)?;
    Some(line || field)
}

/// (it ends the line, its length) of the terminator at `at`, where `ends_at` has found one; at the end of the file the line ends with nothing.
fn terminator_at(format: &FileFormat, bytes: &[u8], at: usize) -> (bool, usize) {
    if at >= bytes.len() {
        return (true, 0);
    }
    let rest = &bytes[at..];
    let (field, line) = (&format.field_terminator, &format.line_terminator);
    // The longer one wins where one begins with the other.
    let line_first = line.len() >= field.len();
    let starts = |t: &[u8]| !t.is_empty() && rest.starts_with(t);
    match (starts(line), starts(field)) {
        (true, true) if line_first => (true, line.len()),
        (_, true) if !starts(line) || !line_first => (false, field.len()),
        _ => (true, line.len()),
    }
}

/// What a `FieldScan` has found a field to be.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ScannedText {
    Null,
    /// The bytes that stand here, as they are.
    Verbatim(Range<usize>),
    /// Something in it is escaped or doubled: a `LineParser` has to read the line.
    Escaped,
}

/// A field that a `FieldScan` has come to the end of.
pub(super) struct ScannedField {
    pub text: ScannedText,
    /// It is the last of its line.
    pub ends_line: bool,
    /// A terminator ends it, not the end of the file.
    pub terminated: bool,
}

/// Finds where fields and lines end, by the rules of `LineParser`, and looks at no byte twice. For formats without a prefix that are not fixed, whose lines have a terminator, and
/// character sets none of whose characters has ASCII within.
pub(super) struct FieldScan {
    format: FileFormat,
    escape: Option<u8>,
    quote: Option<u8>,
    /// What a field that is not enclosed may be interrupted by.
    stops: [u8; 3],
    /// What lies before is known.
    at: usize,
    field: Option<OpenField>,
}

/// The field that a scan is in.
#[derive(Clone, Copy)]
struct OpenField {
    /// Where its text begins.
    start: usize,
    enclosed: bool,
    verbatim: bool,
}

impl FieldScan {
    pub fn new(format: &FileFormat) -> FieldScan {
        let (escape, quote) = (format.escaped_by.first().copied(), format.enclosed_by.first().copied());
        let line = format.line_terminator[0];
        let field = format.field_terminator.first().copied().unwrap_or(line);
        FieldScan { format: format.clone(), escape, quote, stops: [escape.unwrap_or(line), field, line], at: 0, field: None }
    }

    /// Where the next field begins, if it is not in one.
    pub fn at(&self) -> usize {
        self.at
    }

    /// The first end of a line that is not before `least`, or the last one there is. None: no line ends in these bytes. The next call is for what is behind it, and more.
    pub fn line_end(&mut self, bytes: &[u8], least: usize) -> Option<usize> {
        let mut end = 0;
        while end < least
            && let Some(field) = self.next(bytes, false)
        {
            if field.ends_line {
                end = self.at;
            }
        }
        self.at -= end;
        if let Some(field) = &mut self.field {
            field.start -= end;
        }
        (end > 0).then_some(end)
    }

    /// The next field. None: it does not end in these bytes; with `last`, of the file, every field does.
    pub fn next(&mut self, bytes: &[u8], last: bool) -> Option<ScannedField> {
        let mut field = match self.field {
            Some(field) => field,
            None => self.open(bytes, last)?,
        };
        let ended = self.find_end(&mut field, bytes, last);
        self.field = if ended.is_some() { None } else { Some(field) };
        ended
    }

    fn open(&mut self, bytes: &[u8], last: bool) -> Option<OpenField> {
        let first = bytes.get(self.at).copied();
        if first.is_none() && !last {
            return None;
        }
        let enclosed = first.is_some() && first == self.quote;
        self.at += usize::from(enclosed);
        Some(OpenField { start: self.at, enclosed, verbatim: true })
    }

    fn find_end(&mut self, field: &mut OpenField, bytes: &[u8], last: bool) -> Option<ScannedField> {
        loop {
            let rest = &bytes[self.at..];
            let found = match self.quote.filter(|_| field.enclosed) {
                Some(quote) => memchr::memchr2(quote, self.escape.unwrap_or(quote), rest),
                None => memchr::memchr3(self.stops[0], self.stops[1], self.stops[2], rest),
            };
            let Some(found) = found else {
                self.at = bytes.len();
                // A quote that nothing closes belongs to the text.
                let start = field.start - usize::from(field.enclosed);
                return last.then(|| ScannedField { text: self.text(field, bytes, start..bytes.len()), ends_line: true, terminated: false });
            };
            self.at += found;
            let byte = Some(bytes[self.at]);
            if byte == self.escape && !(field.enclosed && byte == self.quote) {
                if self.at + 1 == bytes.len() && !last {
                    return None;
                }
                field.verbatim = false;
                self.at = bytes.len().min(self.at + 2);
                continue;
            }
            let end = self.at;
            if field.enclosed {
                let next = bytes.get(end + 1).copied();
                if next.is_none() && !last {
                    return None;
                }
                if next == self.quote {
                    field.verbatim = false;
                    self.at += 2;
                    continue;
                }
            }
            // A quote ends the field only where a terminator follows.
            let behind = end + usize::from(field.enclosed);
            if !ends_at(&self.format, bytes, behind, last)? {
                self.at += 1;
                continue;
            }
            let (ends_line, length) = terminator_at(&self.format, bytes, behind);
            self.at = behind + length;
            return Some(ScannedField { text: self.text(field, bytes, field.start..end), ends_line, terminated: length > 0 });
        }
    }

    /// As the end of `LineParser::parse` has it.
    fn text(&self, field: &OpenField, bytes: &[u8], range: Range<usize>) -> ScannedText {
        let text = &bytes[range.clone()];
        if !field.verbatim {
            // Two bytes that are not as they stand: of an escape, or of a quote that is doubled.
            let escaped_n = self.escape != self.quote && text.len() == 2 && Some(text[0]) == self.escape && text[1] == b'N';
            return if escaped_n { ScannedText::Null } else { ScannedText::Escaped };
        }
        let word_null = !field.enclosed && self.quote.is_some() && text == b"NULL";
        if word_null { ScannedText::Null } else { ScannedText::Verbatim(range) }
    }
}

/// Where a line that IGNORE leaves out ends, behind its terminator: only escapes are understood in it. `from`: no byte before it is of interest, and it
/// is the first of a character. Err: not in these bytes, and from where on to look when more have come.
pub(super) fn end_of_line(bytes: &[u8], from: usize, format: &FileFormat, charset: Charset) -> Result<usize, usize> {
    let terminator = &format.line_terminator;
    let escape = format.escaped_by.first().copied();
    let first = terminator[0];
    let mut at = from;
    loop {
        let Some(found) = memchr::memchr2(escape.unwrap_or(first), first, &bytes[at..]) else {
            return Err(if charset.hides_ascii(u8::MAX) { at } else { bytes.len() });
        };
        let found = at + found;
        // A character that began before it may have it within.
        while let Some(hiding) = bytes[at.min(found)..found].iter().position(|byte| charset.hides_ascii(*byte)) {
            at += hiding;
            at += charset.char_len(&bytes[at..]);
        }
        if at > found {
            continue;
        }
        at = found;
        if Some(bytes[at]) == escape {
            if at + 2 > bytes.len() {
                return Err(at);
            }
            at += 2;
        } else if bytes[at..].starts_with(terminator) {
            return Ok(at + terminator.len());
        } else if terminator.starts_with(&bytes[at..]) {
            return Err(at);
        } else {
            at += 1;
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    if needle.is_empty() {
        return Some(0);
    }
    memchr::memmem::find(haystack, needle)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(format: FileFormat, skip: u64, text: &[u8]) -> Vec<Vec<Option<String>>> {
        lines_of(LineParser::new(format, Charset::Utf8mb4, skip), text)
    }

    fn lines_of(mut parser: LineParser, text: &[u8]) -> Vec<Vec<Option<String>>> {
        // Byte by byte, so that every cut is met.
        let mut lines = Vec::new();
        let mut fields = Vec::new();
        for i in 0..=text.len() {
            let last = i == text.len();
            if !last {
                parser.feed(&text[i..=i]);
            }
            while parser.next_line(last, &mut fields) {
                lines.push(
                    fields
                        .iter()
                        .map(|f| match f {
                            FieldText::Null => None,
                            FieldText::Text(t) => Some(String::from_utf8_lossy(t).into_owned()),
                        })
                        .collect(),
                );
            }
        }
        lines
    }

    fn row(fields: &[Option<&str>]) -> Vec<Option<String>> {
        fields.iter().map(|f| f.map(str::to_owned)).collect()
    }

    #[test]
    fn the_default_format() {
        let lines = parse(FileFormat::default(), 0, b"1\ta\\tb\t\\N\n2\t\\\\\tN\\\n3");
        assert_eq!(lines, [row(&[Some("1"), Some("a\tb"), None]), row(&[Some("2"), Some("\\"), Some("N\n3")])]);
    }

    #[test]
    fn quoted_fields() {
        let format = FileFormat { field_terminator: b",".to_vec(), enclosed_by: b"\"".to_vec(), line_terminator: b"\r\n".to_vec(), ..FileFormat::default() };
        let lines = parse(format, 1, b"h1,h2\r\n\"a,b\",\"c\"\"d\"\r\nNULL,x\"y\r\n\"multi\r\nline\",\"\"\r\n");
        assert_eq!(
            lines,
            [row(&[Some("a,b"), Some("c\"d")]), row(&[None, Some("x\"y")]), row(&[Some("multi\r\nline"), Some("")])]
        );
    }

    /// As MySQL 8.0.12 reads them.
    #[test]
    fn a_quote_that_nothing_closes_is_text() {
        let format = FileFormat { field_terminator: b",".to_vec(), enclosed_by: b"\"".to_vec(), ..FileFormat::default() };
        assert_eq!(parse(format.clone(), 0, b"1,\"ab\"\n2,\"cd\n"), [row(&[Some("1"), Some("ab")]), row(&[Some("2"), Some("\"cd\n")])]);
        assert_eq!(parse(format, 0, b"2,\"cd"), [row(&[Some("2"), Some("\"cd")])]);
    }

    #[test]
    fn a_line_is_looked_for_before_it_is_too_long() {
        let mut parser = LineParser::new(FileFormat::default(), Charset::Utf8mb4, 0).with_longest(100);
        let mut fields = Vec::new();
        parser.feed(&[b'a'; 60]);
        assert!(!parser.next_line(false, &mut fields));
        parser.feed(b"b\n");
        // Not with each piece.
        assert!(!parser.next_line(false, &mut fields));
        parser.feed(&[b'c'; 50]);
        assert!(parser.next_line(false, &mut fields));
        assert_eq!(fields, [FieldText::Text([&[b'a'; 60][..], b"b"].concat())]);
        assert_eq!(parser.waiting(), 50);
    }

    #[test]
    fn lines_without_the_prefix_are_skipped() {
        let format = FileFormat { field_terminator: b"|".to_vec(), line_prefix: b"xxx".to_vec(), ..FileFormat::default() };
        let lines = parse(format, 0, b"xxx1|2\nnothing\nsomething xxx3|4|\n");
        assert_eq!(lines, [row(&[Some("1"), Some("2")]), row(&[Some("3"), Some("4"), Some("")])]);
    }

    /// As MySQL 8.0.12 reads them.
    #[test]
    fn ignored_lines_have_escapes_and_no_quotes() {
        let format = FileFormat { field_terminator: b",".to_vec(), enclosed_by: b"\"".to_vec(), ..FileFormat::default() };
        assert_eq!(parse(format.clone(), 1, b"h1\\\nh2\n1,a\n"), [row(&[Some("1"), Some("a")])]);
        assert_eq!(parse(format.clone(), 1, b"\"h\n1\n"), [row(&[Some("1")])]);
        assert_eq!(parse(format.clone(), 1, b"h\\"), Vec::<Vec<Option<String>>>::new());
        let format = FileFormat { line_terminator: b"\r\n".to_vec(), ..format };
        assert_eq!(parse(format, 1, b"h\\\r\n1,a\r\n2,b"), [row(&[Some("2"), Some("b")])]);
    }

    /// As MySQL 8.0.12 reads them.
    #[test]
    fn an_escaped_n_alone_is_null() {
        let format = FileFormat { field_terminator: b",".to_vec(), enclosed_by: b"\"".to_vec(), ..FileFormat::default() };
        assert_eq!(parse(format, 0, b"\"\\N\",\\N\\N,\\N,N\n"), [row(&[None, Some("NN"), None, Some("N")])]);
    }

    /// The second byte of 表 is a backslash in cp932, of another character the terminator.
    #[test]
    fn second_bytes_mean_nothing() {
        let format = FileFormat { field_terminator: b"|".to_vec(), ..FileFormat::default() };
        for size in 1..8 {
            let mut parser = LineParser::new(format.clone(), Charset::Cp932, 1);
            let (mut fields, mut lines) = (Vec::new(), Vec::new());
            for chunk in b"h\x95\x5C\n1\x95\x5C|\x83\x7C\\|a\n\x95\n".chunks(size).chain([&b""[..]]) {
                parser.feed(chunk);
                while parser.next_line(chunk.is_empty(), &mut fields) {
                    lines.push(std::mem::take(&mut fields));
                }
            }
            let text = |bytes: &[u8]| FieldText::Text(bytes.to_vec());
            assert_eq!(lines, [vec![text(b"1\x95\x5C"), text(b"\x83\x7C|a")], vec![text(b"\x95")]], "{size}");
        }
    }

    #[test]
    fn fields_too_many_are_none_at_the_end_of_the_file() {
        let mut parser = LineParser::new(FileFormat { field_terminator: b",".to_vec(), ..FileFormat::default() }, Charset::Utf8mb4, 0);
        parser.feed(b"1,2,3\n1,2,3");
        let mut fields = Vec::new();
        for count in [3, 2] {
            assert!(parser.next_line(true, &mut fields));
            parser.cut_unterminated(&mut fields, 2);
            assert_eq!(fields.len(), count);
        }
    }

    #[test]
    fn a_last_line_needs_no_terminator() {
        let format = FileFormat { field_terminator: b"|".to_vec(), ..FileFormat::default() };
        assert_eq!(parse(format, 0, b"1|a\n2|b"), [row(&[Some("1"), Some("a")]), row(&[Some("2"), Some("b")])]);
    }
    /// As MySQL 8.0.12 reads them.
    #[test]
    fn fixed_fields() {
        let format = |line: &str| FileFormat { field_terminator: Vec::new(), line_terminator: line.into(), ..FileFormat::default() };
        let read = |line, skip, text: &[u8]| lines_of(LineParser::fixed(format(line), Charset::Utf8mb4, vec![3, 2], skip), text);
        assert_eq!(
            read("\n", 0, b"1  ab\n2\n3  a\\tmore\n\n4  \\N5\n5  ab"),
            [
                row(&[Some("1  "), Some("ab")]),
                row(&[Some("2")]),
                row(&[Some("3  "), Some("a\t"), Some("...")]),
                row(&[]),
                row(&[Some("4  "), Some("N5")]),
                row(&[Some("5  "), Some("ab")]),
            ]
        );
        assert_eq!(read("", 1, b"1  ab2  cd3"), [row(&[Some("2  "), Some("cd")]), row(&[Some("3")])]);
        assert_eq!(read("\r\n", 1, b"head\r\n1\r ab\r\n"), [row(&[Some("1\r "), Some("ab")])]);
    }
}
