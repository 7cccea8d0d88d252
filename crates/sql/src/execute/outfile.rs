//! SELECT … INTO OUTFILE and INTO DUMPFILE.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use highkey_types::{Charset, ColumnType, MySqlError, TypeKind, Value};

use crate::bind::errors;
use crate::parse::ast::FileFormat;
use crate::plan::Field;
use crate::session::{SessionState, error, error::err, resolve_file};
use crate::variables::SqlModes;

/// A file that rows are written to. It must not exist before.
pub(crate) struct Outfile {
    file: BufWriter<File>,
    path: PathBuf,
    format: FileFormat,
    charset: Option<Charset>,
    types: Vec<ColumnType>,
    /// Bytes of each field of a fixed format.
    widths: Vec<usize>,
    line: Vec<u8>,
    rows: u64,
}

fn io_error(path: &str, e: &std::io::Error) -> MySqlError {
    match e.kind() {
        std::io::ErrorKind::AlreadyExists => error::file_exists(path),
        _ => err(1, format!("Can't create/write to file '{path}' (OS errno {} - {e})", e.raw_os_error().unwrap_or(0))),
    }
}

fn create(state: &SessionState, path: &str) -> Result<(File, PathBuf), MySqlError> {
    let resolved = resolve_file(state, path)?;
    let file = File::create_new(&resolved).map_err(|e| io_error(path, &e))?;
    Ok((file, resolved))
}

/// What a field of a fixed format is filled up to: an integer's declared width only where it is more than its digits need.
fn printed_width(ty: &ColumnType) -> Result<usize, MySqlError> {
    let length = ty.display_length();
    match ty.kind {
        // A field of 4 GiB for every row helps nobody.
        TypeKind::LongBlob | TypeKind::LongText | TypeKind::Json | TypeKind::Geometry(_) => Err(errors::blobs_and_no_terminator()),
        _ if ty.is_blob() => Ok(length as usize * ty.charset().max_bytes()),
        _ => Ok(length.max(ColumnType { width: 0, ..ty.clone() }.display_length()) as usize),
    }
}

impl Outfile {
    pub fn create(state: &SessionState, path: &str, charset: Option<&str>, format: FileFormat, fields: &[Field]) -> Result<Outfile, MySqlError> {
        let charset = match charset {
            Some(name) => Some(Charset::by_name(name).ok_or_else(|| error::unknown_character_set(name))?),
            None => None,
        };
        if let Some(charset) = charset.filter(|charset| charset.min_bytes() > 1) {
            return Err(error::not_supported(&format!("INTO OUTFILE in {}", charset.name())));
        }
        let format = format.in_mode(state.mode(SqlModes::NO_BACKSLASH_ESCAPES));
        let types: Vec<ColumnType> = fields.iter().map(|f| f.ty.ty.clone()).collect();
        let widths = if format.is_fixed() { types.iter().map(printed_width).collect::<Result<_, _>>()? } else { Vec::new() };
        let (file, path) = create(state, path)?;
        Ok(Outfile { file: BufWriter::with_capacity(1 << 18, file), path, format, charset, types, widths, line: Vec::new(), rows: 0 })
    }

    pub fn row(&mut self, row: &[Value]) -> Result<(), MySqlError> {
        let format = &self.format;
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(&format.line_prefix);
        let escape = format.escaped_by.first().copied();
        let mut text = Vec::new();
        for (i, (value, ty)) in row.iter().zip(&self.types).enumerate() {
            if i > 0 {
                line.extend_from_slice(&format.field_terminator);
            }
            text.clear();
            let known = value.to_text(ty, &mut text);
            if !known && self.widths.is_empty() {
                match escape {
                    Some(e) => line.extend_from_slice(&[e, b'N']),
                    None => line.extend_from_slice(b"NULL"),
                }
                continue;
            }
            let stringy = ty.is_string() || ty.is_temporal();
            let enclosed = !format.enclosed_by.is_empty() && (!format.optionally_enclosed || stringy || format.field_terminator.is_empty());
            if let Some(charset) = self.charset
                && !ty.is_binary()
                && charset != Charset::Utf8mb4
            {
                let decoded = String::from_utf8_lossy(&text).into_owned();
                text = charset.encode(&decoded).into_owned();
            }
            if enclosed {
                line.extend_from_slice(&format.enclosed_by);
            }
            // Characters that would end the field or the line, or start an escape, are escaped.
            let ends = |b: u8| {
                if enclosed {
                    Some(b) == format.enclosed_by.first().copied()
                } else {
                    Some(b) == format.field_terminator.first().copied() || Some(b) == format.line_terminator.first().copied()
                }
            };
            // Of a character of several bytes only the first can be one that is escaped.
            let charset = if ty.is_binary() { Charset::Binary } else { self.charset.unwrap_or(Charset::Utf8mb4) };
            let mut inside = 0;
            for (at, &b) in text.iter().enumerate() {
                if at < inside {
                    line.push(b);
                    continue;
                }
                inside = at + charset.char_len(&text[at..]);
                match escape {
                    Some(e) if b == 0 => line.extend_from_slice(&[e, b'0']),
                    Some(e) if b == e || ends(b) || Some(b) == format.line_terminator.first().copied() => line.extend_from_slice(&[e, b]),
                    _ => line.push(b),
                }
            }
            if enclosed {
                line.extend_from_slice(&format.enclosed_by);
            }
            // NULL is all spaces, and escapes do not count.
            let missing = self.widths.get(i).map_or(0, |width| width.saturating_sub(text.len()));
            line.resize(line.len() + missing, b' ');
        }
        line.extend_from_slice(&format.line_terminator);
        self.rows += 1;
        self.file.write_all(line).map_err(|e| io_error(&self.path.to_string_lossy(), &e))
    }

    /// How many rows were written.
    pub fn finish(&mut self) -> Result<u64, MySqlError> {
        self.file.flush().map_err(|e| io_error(&self.path.to_string_lossy(), &e))?;
        Ok(self.rows)
    }

    /// Removes what was written of a failed statement.
    pub fn remove(self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// INTO DUMPFILE: the values of one row, one after the other.
pub(crate) fn dump(state: &SessionState, path: &str, row: &[Value], fields: &[Field]) -> Result<(), MySqlError> {
    let (mut file, _) = create(state, path)?;
    let mut bytes = Vec::new();
    for (value, field) in row.iter().zip(fields) {
        value.to_text(&field.ty.ty, &mut bytes);
    }
    file.write_all(&bytes).map_err(|e| io_error(path, &e))
}
