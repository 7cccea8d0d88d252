//! Rows that wait for somebody: those of an open cursor, which as in MySQL are all computed when it is opened, and those that a statement has found before it does
//! something with them. More than a few wait in a file without a name, which goes with them.

use std::fmt;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use async_trait::async_trait;
use highkey_types::{Date, DateTime, Decimal, I256, MySqlError, Str, Time, Value};

use crate::df::{QueryEngine, TempSpace};
use crate::session::{Column, ResultSink, blocking, error};

/// Bytes of rows that wait in memory.
const KEPT_BYTES: usize = 1 << 20;
/// Bytes that are read of the file at once.
const READ_BYTES: usize = 64 << 10;

/// Takes the rows of a query.
pub struct CursorRows {
    /// Of the file.
    space: TempSpace,
    file: Option<File>,
    /// Rows that are not in the file.
    bytes: Vec<u8>,
    rows: usize,
    columns: usize,
}

impl CursorRows {
    /// The file is one of the temporary files of `engine`.
    pub fn new(engine: Arc<QueryEngine>) -> CursorRows {
        CursorRows { space: TempSpace::new(engine), file: None, bytes: Vec::new(), rows: 0, columns: 0 }
    }

    fn write(&mut self) -> io::Result<()> {
        self.space.grow(self.bytes.len() as u64)?;
        let mut file = match self.file.take() {
            Some(file) => file,
            None => tempfile::tempfile_in(self.space.dir())?,
        };
        blocking(|| file.write_all(&self.bytes))?;
        self.file = Some(file);
        self.bytes.clear();
        Ok(())
    }

    /// All of them.
    pub fn finish(mut self) -> io::Result<Arc<KeptRows>> {
        if self.file.is_some() {
            self.write()?;
            self.bytes = Vec::new();
        }
        Ok(Arc::new(KeptRows { file: self.file, bytes: self.bytes, rows: self.rows, columns: self.columns, _space: self.space }))
    }

    /// The cursor, before its first row.
    pub fn open(self) -> io::Result<OpenCursor> {
        Ok(self.finish()?.read())
    }
}

/// Rows that may be read again and again.
pub struct KeptRows {
    file: Option<File>,
    /// Those that are in no file: all, or none.
    bytes: Vec<u8>,
    rows: usize,
    columns: usize,
    _space: TempSpace,
}

impl KeptRows {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.rows
    }

    /// There was more than is kept in memory.
    pub fn is_in_file(&self) -> bool {
        self.file.is_some()
    }

    /// A reader before the first row.
    pub fn read(self: &Arc<Self>) -> OpenCursor {
        let place = Place { rows: self.clone(), at: 0 };
        // What is in memory need not be copied twice.
        let ahead = if self.file.is_some() { READ_BYTES } else { 0 };
        OpenCursor { source: BufReader::with_capacity(ahead, place), left: self.rows, columns: self.columns }
    }
}

impl fmt::Debug for KeptRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} rows", self.rows)
    }
}

/// A place in the bytes of rows.
struct Place {
    rows: Arc<KeptRows>,
    at: u64,
}

impl Read for Place {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = match &self.rows.file {
            Some(file) => file.read_at(out, self.at)?,
            None => {
                let mut rest = self.rows.bytes.get(self.at as usize..).unwrap_or_default();
                rest.read(out)?
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

/// What the client is told of a file that could not be written or read.
pub fn file_error(e: &io::Error) -> MySqlError {
    match e.kind() {
        io::ErrorKind::StorageFull => error::err(1114, "The table '#highkey_tmp' is full"),
        _ => error::err(1030, format!("Got error {} - '{e}' from storage engine", e.raw_os_error().unwrap_or(0))),
    }
}

#[async_trait]
impl ResultSink for CursorRows {
    fn columns(&mut self, columns: &[Column]) {
        self.columns = columns.len();
    }

    fn row(&mut self, row: &[Value]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 8]);
        row.iter().for_each(|value| encode(value, &mut self.bytes));
        let length = (self.bytes.len() - start - 8) as u64;
        self.bytes[start..start + 8].copy_from_slice(&length.to_le_bytes());
        self.rows += 1;
    }

    fn wants_flush(&self) -> bool {
        self.bytes.len() >= KEPT_BYTES
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.write()
    }
}

/// Rows that are fetched one after the other.
pub struct OpenCursor {
    source: BufReader<Place>,
    /// Rows to come.
    left: usize,
    columns: usize,
}

impl OpenCursor {
    /// How many columns each row has.
    pub fn columns(&self) -> usize {
        self.columns
    }

    pub fn is_exhausted(&self) -> bool {
        self.left == 0
    }

    /// The next row; `None` behind the last.
    pub fn next_row(&mut self) -> io::Result<Option<Vec<Value>>> {
        if self.left == 0 {
            return Ok(None);
        }
        self.left -= 1;
        let mut length = [0; 8];
        self.source.read_exact(&mut length)?;
        let mut bytes = vec![0; u64::from_le_bytes(length) as usize];
        self.source.read_exact(&mut bytes)?;
        let mut encoded = Encoded(&bytes);
        let mut row = Vec::new();
        while !encoded.0.is_empty() {
            row.push(encoded.value().ok_or(io::ErrorKind::InvalidData)?);
        }
        Ok(Some(row))
    }
}

/// A value behind a byte that says of which kind it is.
fn encode(value: &Value, out: &mut Vec<u8>) {
    let bytes = |kind: u8, bytes: &[u8], out: &mut Vec<u8>| {
        out.push(kind);
        out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        out.extend_from_slice(bytes);
    };
    let fixed = |kind: u8, bytes: &[u8], out: &mut Vec<u8>| {
        out.push(kind);
        out.extend_from_slice(bytes);
    };
    match value {
        Value::Null => out.push(0),
        Value::Int(n) => fixed(1, &n.to_le_bytes(), out),
        Value::UInt(n) => fixed(2, &n.to_le_bytes(), out),
        Value::Float(n) => fixed(3, &n.to_le_bytes(), out),
        Value::Double(n) => fixed(4, &n.to_le_bytes(), out),
        Value::Decimal(n) => {
            fixed(5, &[n.scale()], out);
            out.extend_from_slice(&n.unscaled().to_le_bytes());
        }
        Value::Text(text) => bytes(6, text.as_bytes(), out),
        Value::Bytes(some) => bytes(7, some, out),
        Value::Date(date) => {
            out.push(8);
            encode_date(date, out);
        }
        Value::DateTime(time) => {
            out.push(9);
            encode_date(&time.date, out);
            out.extend_from_slice(&[time.hour, time.minute, time.second]);
            out.extend_from_slice(&time.micros.to_le_bytes());
        }
        Value::Time(time) => fixed(10, &time.micros.to_le_bytes(), out),
        Value::Enum(index, text) => {
            fixed(11, &index.to_le_bytes(), out);
            bytes(6, text.as_bytes(), out);
        }
        Value::Set(bits, text) => {
            fixed(12, &bits.to_le_bytes(), out);
            bytes(6, text.as_bytes(), out);
        }
        Value::Json(text) => bytes(13, text.as_bytes(), out),
    }
}

fn encode_date(date: &Date, out: &mut Vec<u8>) {
    out.extend_from_slice(&date.year.to_le_bytes());
    out.extend_from_slice(&[date.month, date.day]);
}

/// Encoded values, one after the other.
struct Encoded<'a>(&'a [u8]);

impl Encoded<'_> {
    /// `None`: the bytes are no value.
    fn value(&mut self) -> Option<Value> {
        let [kind] = self.fixed()?;
        Some(match kind {
            0 => Value::Null,
            1 => Value::Int(i64::from_le_bytes(self.fixed()?)),
            2 => Value::UInt(u64::from_le_bytes(self.fixed()?)),
            3 => Value::Float(f32::from_le_bytes(self.fixed()?)),
            4 => Value::Double(f64::from_le_bytes(self.fixed()?)),
            5 => {
                let [scale] = self.fixed()?;
                Value::Decimal(Decimal::new(I256::from_le_bytes(self.fixed()?), scale))
            }
            6 => Value::Text(self.text()?),
            7 => Value::Bytes(self.bytes()?.to_vec()),
            8 => Value::Date(self.date()?),
            9 => {
                let date = self.date()?;
                let [hour, minute, second] = self.fixed()?;
                Value::DateTime(DateTime { date, hour, minute, second, micros: u32::from_le_bytes(self.fixed()?) })
            }
            10 => Value::Time(Time { micros: i64::from_le_bytes(self.fixed()?) }),
            11 => {
                let index = u16::from_le_bytes(self.fixed()?);
                let [6] = self.fixed()? else { return None };
                Value::Enum(index, self.text()?)
            }
            12 => {
                let bits = u64::from_le_bytes(self.fixed()?);
                let [6] = self.fixed()? else { return None };
                Value::Set(bits, self.text()?)
            }
            13 => Value::Json(self.text()?),
            _ => return None,
        })
    }

    fn fixed<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn bytes(&mut self) -> Option<&[u8]> {
        let length = u64::from_le_bytes(self.fixed()?);
        let (bytes, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(bytes)
    }

    fn text(&mut self) -> Option<Str> {
        std::str::from_utf8(self.bytes()?).ok().map(Str::from)
    }

    fn date(&mut self) -> Option<Date> {
        let year = u16::from_le_bytes(self.fixed()?);
        let [month, day] = self.fixed()?;
        Some(Date { year, month, day })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::df::EngineOptions;

    /// Its files are in `dir`, and have so many bytes at most.
    fn engine(dir: &Path, temp_bytes: u64) -> Arc<QueryEngine> {
        QueryEngine::new(EngineOptions { threads: 1, memory_bytes: 16 << 20, temp_bytes, column_cache_bytes: 0, spill_dir: dir.to_owned() }).unwrap()
    }

    #[tokio::test]
    async fn rows_come_back_from_memory_and_from_a_file() {
        let date = Date { year: 2024, month: 2, day: 29 };
        let row = vec![
            Value::Null,
            Value::Int(i64::MIN),
            Value::UInt(u64::MAX),
            Value::Float(-1.5),
            Value::Double(1e300),
            Value::Decimal(Decimal::new(I256::from(-12345), 30)),
            Value::text("text \u{1f600}"),
            Value::Bytes(vec![0; 300]),
            Value::Date(date),
            Value::DateTime(DateTime { date: Date::default(), hour: 23, minute: 59, second: 58, micros: 999_999 }),
            Value::Time(Time::MIN),
            Value::Enum(2, "b".into()),
            Value::Set(5, "a,c".into()),
            Value::Json("[1, 2]".into()),
        ];
        let dir = tempfile::tempdir().unwrap();
        let files = engine(&dir.path().join("large"), 1 << 30);
        for count in [0, 3, 20_000] {
            let mut rows = CursorRows::new(files.clone());
            for _ in 0..count {
                rows.row(&row);
                if rows.wants_flush() {
                    rows.flush().await.unwrap();
                }
            }
            assert_eq!(rows.file.is_some(), count > 1000);
            assert!(rows.bytes.len() < 2 * KEPT_BYTES, "the rest is in the file");
            let kept = rows.finish().unwrap();
            assert_eq!((kept.count(), files.temp_bytes() > 1 << 20), (count, count > 1000));
            let (mut cursor, mut other) = (kept.read(), kept.read());
            drop(kept);
            for _ in 0..count {
                assert_eq!(cursor.next_row().unwrap().as_ref(), Some(&row));
                assert_eq!(other.next_row().unwrap().as_ref(), Some(&row));
            }
            assert!(cursor.is_exhausted() && cursor.next_row().unwrap().is_none());
            drop((cursor, other));
            assert_eq!(files.temp_bytes(), 0, "the file is gone");
        }
        // All of them together have the space.
        let files = engine(&dir.path().join("small"), 10_000);
        let mut all = Vec::new();
        let failed = loop {
            let mut rows = CursorRows::new(files.clone());
            (0..3).for_each(|_| rows.row(&row));
            let written = rows.flush().await;
            match written {
                Ok(()) => all.push(rows),
                Err(e) => break e,
            }
        };
        assert_eq!(file_error(&failed).code, 1114);
        assert!(all.len() > 2);
        drop(all);
        assert_eq!(files.temp_bytes(), 0);
    }
}
