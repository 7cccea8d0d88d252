//! LOAD DATA [LOCAL] INFILE: a streaming parser of MySQL's text format, batches of rows into the table.

use std::io::Read;

use bytes::Bytes;
use highkey_table::OnDuplicate;
use highkey_types::{Charset, MySqlError, Str, Value};

use super::insert::{BATCH_ROWS, Inserter};
use super::query::BoundTables;
use super::{Failure, Outcome};
use crate::bind::{self, AssignedValue, BoundLoad, BoundLoadTarget};
use crate::expr;
use crate::parse::ast::{self, FileFormat, LoadDuplicates};
use crate::session::{LocalInfile, ResultSink, Session, StatusCounter, error, error::err, resolve_file};

/// Where the file's bytes come from.
enum Source<'a> {
    File(std::fs::File),
    Client(Box<dyn LocalInfile + 'a>),
}

impl Source<'_> {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, MySqlError> {
        match self {
            Source::File(file) => {
                let mut chunk = vec![0; 1 << 18];
                let n = file.read(&mut chunk).map_err(|e| err(2, format!("File read error: {e}")))?;
                chunk.truncate(n);
                Ok((n > 0).then(|| Bytes::from(chunk)))
            }
            Source::Client(reader) => reader.next_chunk().await,
        }
    }

    /// A client goes on sending after an error: the rest is read and dropped.
    async fn drain(&mut self) {
        if let Source::Client(reader) = self {
            while let Ok(Some(_)) = reader.next_chunk().await {}
        }
    }
}

impl Session {
    pub(crate) async fn load_data(&mut self, ast: &ast::LoadData, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if ast.local && (!self.state.instance.globals().bool("local_infile") || !self.state.client.flags.local_files) {
            return Err(err(3948, "Loading local data is disabled; this must be enabled on both the client and server sides").into());
        }
        loop {
            let bound = bind::bind_load(ast, &self.state)?;
            let mut tables = BoundTables::one(&bound.table);
            bound.assignments.iter().filter_map(|(_, v)| v.expr()).for_each(|e| tables.collect_expr(e));
            if self.open_tables(&tables).await? {
                return self.run_load(bound, sink).await;
            }
        }
    }

    async fn run_load(&mut self, mut bound: BoundLoad, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        self.begin_write()?;
        let mut assignments = std::mem::take(&mut bound.assignments);
        if self.resolve_all(assignments.iter_mut().filter_map(|(_, v)| v.expr_mut()).collect()).await? {
            return Err(error::not_supported("correlated subqueries in LOAD DATA SET").into());
        }
        bound.assignments = assignments;
        let charset = match &bound.charset {
            Some(name) => Charset::by_name(name).ok_or_else(|| error::unknown_character_set(name))?,
            None => Charset::by_name(&self.state.variables.text("character_set_database")).unwrap_or(Charset::Utf8mb4),
        };
        let mut source = if bound.local {
            Source::Client(sink.local_infile(&bound.path).await?)
        } else {
            let path = resolve_file(&self.state, &bound.path)?;
            let file = std::fs::File::open(&path).map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => err(13, format!("Can't get stat of '{}' (OS errno 2 - No such file or directory)", path.display())),
                _ => err(29, format!("File '{}' not found (OS errno {} - {e})", path.display(), e.raw_os_error().unwrap_or(0))),
            })?;
            Source::File(file)
        };
        let loaded = self.load_rows(&bound, charset, &mut source).await;
        if loaded.is_err() {
            source.drain().await;
        }
        loaded
    }

    async fn load_rows(&mut self, bound: &BoundLoad, charset: Charset, source: &mut Source<'_>) -> Result<Outcome, Failure> {
        // A local file that cannot be refused half way is loaded as if IGNORE had been said, as in MySQL.
        let ignore = bound.duplicates == LoadDuplicates::Ignore || (bound.local && bound.duplicates != LoadDuplicates::Replace);
        let mode = match bound.duplicates {
            LoadDuplicates::Replace => OnDuplicate::Replace,
            _ if ignore => OnDuplicate::Ignore,
            _ => OnDuplicate::Error,
        };
        self.state.strict_dml = self.state.strict() && !ignore;
        let mut columns: Vec<usize> = bound.targets.iter().filter_map(|t| if let BoundLoadTarget::Column(c) = t { Some(*c) } else { None }).collect();
        for (column, _) in &bound.assignments {
            if !columns.contains(column) {
                columns.push(*column);
            }
        }
        let mut inserter = Inserter::new(&mut self.state, &bound.table, &columns, ignore, mode)?;
        for (column, value) in &bound.assignments {
            inserter.target.check_generated(*column, value)?;
        }
        let mut parser = LineParser::new(bound.format.clone(), bound.ignore_lines);
        let mut batch = Vec::with_capacity(BATCH_ROWS);
        let mut fields = Vec::new();
        loop {
            let chunk = source.next_chunk().await?;
            let last = chunk.is_none();
            if let Some(chunk) = chunk {
                parser.feed(&chunk);
            }
            while parser.next_line(last, &mut fields) {
                if let Some(row) = self.load_row(bound, charset, &mut inserter, &mut fields)? {
                    batch.push(row);
                }
                if batch.len() >= BATCH_ROWS {
                    self.write_rows(&mut inserter, &mut batch, false).await?;
                }
            }
            if last {
                break;
            }
            tokio::task::yield_now().await;
        }
        self.write_rows(&mut inserter, &mut batch, false).await?;
        self.state.instance.count(StatusCounter::InnodbRowsInserted, inserter.inserted);
        let warnings = self.state.diagnostics.count();
        let (records, skipped) = (inserter.row, inserter.ignored);
        let outcome = inserter.outcome(&mut self.state, true);
        Ok(match outcome {
            Outcome::Done { affected, last_insert_id, .. } => {
                let info = format!("Records: {records}  Deleted: {}  Skipped: {skipped}  Warnings: {warnings}", inserter.replaced);
                Outcome::Done { affected, last_insert_id, info }
            }
            other => other,
        })
    }

    /// One line's fields as a row; `None` if it is left out.
    fn load_row(&mut self, bound: &BoundLoad, charset: Charset, inserter: &mut Inserter, fields: &mut Vec<FieldText>) -> Result<Option<Vec<Value>>, MySqlError> {
        let mut row = Vec::new();
        inserter.start_row(&mut row);
        let ignore = inserter.ignore;
        let number = inserter.row;
        let strict = self.state.strict() && !ignore;
        let lenient = !strict;
        for (i, target) in bound.targets.iter().enumerate() {
            let field = fields.get_mut(i).map(std::mem::take);
            match target {
                BoundLoadTarget::Variable(name) => {
                    let value = match field {
                        Some(FieldText::Text(bytes)) => Value::Text(Str::from(&*charset.decode_lossy(&bytes))),
                        _ => Value::Null,
                    };
                    self.state.user_vars.insert(name.clone(), value);
                }
                BoundLoadTarget::Column(column) => {
                    let column = *column;
                    let def = &inserter.target.columns()[column];
                    let value = match field {
                        None => {
                            let error = err(1261, format!("Row {number} doesn't contain data for all columns"));
                            if strict {
                                return Err(error);
                            }
                            self.state.push_ignored(error);
                            row[column] = inserter.target.default(&mut self.state, column, &row, true, number)?;
                            continue;
                        }
                        Some(FieldText::Null) if !def.nullable && !def.auto_increment => {
                            let error = err(1263, format!("Column set to default value; NULL supplied to NOT NULL column '{}' at row {number}", def.name));
                            if strict {
                                return Err(error);
                            }
                            self.state.push_ignored(error);
                            row[column] = super::target::implicit_default(&def.ty);
                            continue;
                        }
                        Some(FieldText::Null) => Value::Null,
                        Some(FieldText::Text(bytes)) if def.ty.is_binary() || matches!(def.ty.kind, highkey_types::TypeKind::Bit(_)) => Value::Bytes(bytes),
                        Some(FieldText::Text(bytes)) => match charset.decode(&bytes) {
                            Ok(text) => Value::Text(Str::from(&*text)),
                            Err(_) => Value::Bytes(bytes),
                        },
                    };
                    inserter.assign(&mut self.state, &mut row, column, value)?;
                }
            }
        }
        if fields.len() > bound.targets.len() {
            let error = err(1262, format!("Row {number} was truncated; it contained more data than there were input columns"));
            if strict {
                return Err(error);
            }
            self.state.push_ignored(error);
        }
        for (column, value) in &bound.assignments {
            row[*column] = match value {
                AssignedValue::Default => inserter.target.default(&mut self.state, *column, &row, ignore, number)?,
                AssignedValue::Expr(expr) => {
                    let seen = inserter.target.session_row(&row, &self.state.config.time_zone);
                    let value = expr::eval(expr, &seen, &mut self.state)?;
                    inserter.target.store(&mut self.state, *column, value, ignore, number)?
                }
            };
        }
        Ok(inserter.finish_row(&mut self.state, &mut row, lenient)?.then_some(row))
    }
}

/// A field of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum FieldText {
    #[default]
    Null,
    Text(Vec<u8>),
}

/// Cuts a stream of bytes into lines of fields.
struct LineParser {
    format: FileFormat,
    skip: u64,
    buffer: Vec<u8>,
    at: usize,
}

/// How a try to parse a line ended.
enum Parse {
    /// The line ends here.
    Line(usize),
    /// More bytes are needed.
    Incomplete,
}

impl LineParser {
    fn new(format: FileFormat, skip: u64) -> LineParser {
        LineParser { format, skip, buffer: Vec::new(), at: 0 }
    }

    fn feed(&mut self, chunk: &[u8]) {
        if self.at > 0 {
            self.buffer.drain(..self.at);
            self.at = 0;
        }
        self.buffer.extend_from_slice(chunk);
    }

    /// The next line's fields. False: there is none yet, or, with `last`, none any more.
    fn next_line(&mut self, last: bool, fields: &mut Vec<FieldText>) -> bool {
        loop {
            if self.at >= self.buffer.len() {
                return false;
            }
            if self.skip > 0 {
                match find(&self.buffer[self.at..], &self.format.line_terminator) {
                    Some(end) => self.at += end + self.format.line_terminator.len(),
                    None if last => self.at = self.buffer.len(),
                    None => return false,
                }
                self.skip -= 1;
                continue;
            }
            let mut start = self.at;
            if !self.format.line_prefix.is_empty() {
                match find(&self.buffer[start..], &self.format.line_prefix) {
                    Some(found) => {
                        // The prefix must stand in this line: lines without it are skipped whole.
                        let line_end = find(&self.buffer[start..], &self.format.line_terminator);
                        if line_end.is_some_and(|end| end < found) {
                            self.at += line_end.unwrap_or(0) + self.format.line_terminator.len();
                            continue;
                        }
                        start += found + self.format.line_prefix.len();
                    }
                    None if last => {
                        self.at = self.buffer.len();
                        return false;
                    }
                    None => return false,
                }
            }
            match self.parse(start, last, fields) {
                Parse::Line(next) => {
                    self.at = next;
                    return true;
                }
                Parse::Incomplete => return false,
            }
        }
    }

    fn parse(&self, start: usize, last: bool, fields: &mut Vec<FieldText>) -> Parse {
        fields.clear();
        let bytes = &self.buffer;
        let format = &self.format;
        let escape = format.escaped_by.first().copied();
        let quote = format.enclosed_by.first().copied();
        // Terminated by nothing and enclosed by nothing: fixed-size rows, which MySQL cuts by display width. Here the whole line is one field.
        let mut at = start;
        loop {
            let mut text = Vec::new();
            let mut null = false;
            let enclosed = quote.is_some() && bytes.get(at).copied() == quote;
            if enclosed {
                at += 1;
            }
            let first = at;
            let line_done = loop {
                let Some(&b) = bytes.get(at) else {
                    if !last {
                        return Parse::Incomplete;
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
                    // \N alone is NULL.
                    if next == b'N' && at == first && !enclosed && self.ends_at(at + 2, last).unwrap_or(true) {
                        if self.ends_at(at + 2, last).is_none() {
                            return Parse::Incomplete;
                        }
                        null = true;
                        at += 2;
                        continue;
                    }
                    text.push(match next {
                        b'0' => 0,
                        b'b' => 8,
                        b'n' => b'\n',
                        b'r' => b'\r',
                        b't' => b'\t',
                        b'Z' => 26,
                        other => other,
                    });
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
                        match self.ends_at(at + 1, last) {
                            None => return Parse::Incomplete,
                            Some(true) => {
                                at += 1;
                                match self.terminator_at(at, last) {
                                    None => return Parse::Incomplete,
                                    Some((line, length)) => {
                                        at += length;
                                        break line;
                                    }
                                }
                            }
                            Some(false) => {
                                text.push(b);
                                at += 1;
                                continue;
                            }
                        }
                    }
                    text.push(b);
                    at += 1;
                    continue;
                }
                match self.starts_terminator(b) {
                    false => {
                        text.push(b);
                        at += 1;
                    }
                    true => match self.ends_at(at, last) {
                        None => return Parse::Incomplete,
                        Some(false) => {
                            text.push(b);
                            at += 1;
                        }
                        Some(true) => match self.terminator_at(at, last) {
                            None => return Parse::Incomplete,
                            Some((line, length)) => {
                                at += length;
                                break line;
                            }
                        },
                    },
                }
            };
            // Without escapes, and unenclosed, the word NULL is NULL where fields are enclosed.
            let word_null = !enclosed && quote.is_some() && text == b"NULL";
            fields.push(if null || word_null { FieldText::Null } else { FieldText::Text(text) });
            if line_done {
                return Parse::Line(at);
            }
        }
    }

    fn starts_terminator(&self, b: u8) -> bool {
        self.format.field_terminator.first() == Some(&b) || self.format.line_terminator.first() == Some(&b)
    }

    /// Whether a field ends at `at`: a terminator is there, or the end of the file. `None`: not known yet.
    fn ends_at(&self, at: usize, last: bool) -> Option<bool> {
        if at >= self.buffer.len() {
            return last.then_some(true);
        }
        let rest = &self.buffer[at..];
        let is = |terminator: &[u8]| -> Option<bool> {
            if terminator.is_empty() {
                return Some(false);
            }
            if rest.len() < terminator.len() && terminator.starts_with(rest) && !last {
                return None;
            }
            Some(rest.starts_with(terminator))
        };
        let line = is(&self.format.line_terminator);
        let field = is(&self.format.field_terminator);
        match (line, field) {
            (Some(true), _) | (_, Some(true)) => Some(true),
            (None, _) | (_, None) => None,
            _ => Some(false),
        }
    }

    /// (it ends the line, its length) of the terminator at `at`; at the end of the file the line ends with nothing.
    fn terminator_at(&self, at: usize, last: bool) -> Option<(bool, usize)> {
        if at >= self.buffer.len() {
            return last.then_some((true, 0));
        }
        let rest = &self.buffer[at..];
        let (field, line) = (&self.format.field_terminator, &self.format.line_terminator);
        // The longer one wins where one begins with the other.
        let line_first = line.len() >= field.len();
        let starts = |t: &[u8]| !t.is_empty() && rest.starts_with(t);
        match (starts(line), starts(field)) {
            (true, true) if line_first => Some((true, line.len())),
            (_, true) if !starts(line) || !line_first => Some((false, field.len())),
            _ => Some((true, line.len())),
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
        // Byte by byte, so that every cut is met.
        let mut parser = LineParser::new(format, skip);
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

    #[test]
    fn lines_without_the_prefix_are_skipped() {
        let format = FileFormat { field_terminator: b"|".to_vec(), line_prefix: b"xxx".to_vec(), ..FileFormat::default() };
        let lines = parse(format, 0, b"xxx1|2\nnothing\nsomething xxx3|4|\n");
        assert_eq!(lines, [row(&[Some("1"), Some("2")]), row(&[Some("3"), Some("4"), Some("")])]);
    }

    #[test]
    fn a_last_line_needs_no_terminator() {
        let format = FileFormat { field_terminator: b"|".to_vec(), ..FileFormat::default() };
        assert_eq!(parse(format, 0, b"1|a\n2|b"), [row(&[Some("1"), Some("a")]), row(&[Some("2"), Some("b")])]);
    }
}
