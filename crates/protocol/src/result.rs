//! Answers: OK, EOF, ERR, column definitions, and rows of the text and the binary protocol.

use bytes::BufMut;
use highkey_types::{Charset, ColumnType, MySqlError, TypeKind, Value};
use mysql_common::constants::{CapabilityFlags, StatusFlags};
use mysql_common::io::BufMutExt;

/// Appends a length-encoded integer.
pub fn put_lenenc_int(out: &mut Vec<u8>, n: u64) {
    out.put_lenenc_int(n);
}

/// Appends a length-encoded string.
pub fn put_lenenc_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    out.put_lenenc_str(bytes);
}

/// One column of a result set.
#[derive(Clone, Debug)]
pub struct ColumnDefinition<'a> {
    pub schema: &'a str,
    pub table: &'a str,
    pub org_table: &'a str,
    pub name: &'a str,
    pub org_name: &'a str,
    /// Collation id: of the connection's results for text, 63 for everything else.
    pub collation: u16,
    /// Maximum length of the value in bytes.
    pub length: u32,
    /// MYSQL_TYPE_*.
    pub wire_type: u8,
    /// NOT_NULL_FLAG, PRI_KEY_FLAG, ….
    pub flags: u16,
    pub decimals: u8,
}

/// Appends a column definition (protocol 4.1).
pub fn encode_column(out: &mut Vec<u8>, column: &ColumnDefinition<'_>) {
    for text in ["def", column.schema, column.table, column.org_table, column.name, column.org_name] {
        out.put_lenenc_str(text.as_bytes());
    }
    out.push(0x0C);
    out.put_u16_le(column.collation);
    out.put_u32_le(column.length);
    out.push(column.wire_type);
    out.put_u16_le(column.flags);
    out.push(column.decimals);
    out.put_u16_le(0);
}

/// What an OK packet says.
#[derive(Clone, Debug)]
pub struct OkInfo<'a> {
    pub affected_rows: u64,
    pub last_insert_id: u64,
    pub status: StatusFlags,
    pub warnings: u16,
    pub info: &'a str,
}

/// Appends an OK packet.
pub fn encode_ok(out: &mut Vec<u8>, ok: &OkInfo<'_>) {
    ok_with_header(out, 0x00, ok);
}

/// Appends the OK packet that ends a result set where CLIENT_DEPRECATE_EOF was agreed.
pub fn encode_ok_eof(out: &mut Vec<u8>, ok: &OkInfo<'_>) {
    ok_with_header(out, 0xFE, ok);
}

fn ok_with_header(out: &mut Vec<u8>, header: u8, ok: &OkInfo<'_>) {
    out.push(header);
    out.put_lenenc_int(ok.affected_rows);
    out.put_lenenc_int(ok.last_insert_id);
    out.put_u16_le(ok.status.bits());
    out.put_u16_le(ok.warnings);
    if !ok.info.is_empty() {
        out.put_lenenc_str(ok.info.as_bytes());
    }
}

/// Appends an EOF packet.
pub fn encode_eof(out: &mut Vec<u8>, status: StatusFlags, warnings: u16) {
    out.push(0xFE);
    out.put_u16_le(warnings);
    out.put_u16_le(status.bits());
}

/// Appends an ERR packet; before the client's capabilities are known it has no SQLSTATE.
pub fn encode_error(out: &mut Vec<u8>, error: &MySqlError, capabilities: CapabilityFlags) {
    out.push(0xFF);
    out.put_u16_le(error.code);
    if capabilities.contains(CapabilityFlags::CLIENT_PROTOCOL_41) {
        out.push(b'#');
        out.extend_from_slice(error.sqlstate.as_bytes());
    }
    // MYSQL_ERRMSG_SIZE is 512 bytes; cut at a character.
    let mut end = error.message.len().min(511);
    while !error.message.is_char_boundary(end) {
        end -= 1;
    }
    out.extend_from_slice(&error.message.as_bytes()[..end]);
}

/// Appends MariaDB's progress report, an error packet of the reserved number 0xFFFF that only its clients know. `stage` counts from 1 to
/// `stages`; `thousandths` of a percent of the stage are done, at most 100 000.
pub fn encode_progress(out: &mut Vec<u8>, stage: u8, stages: u8, thousandths: u32, text: &str) {
    const STRINGS: u8 = 1;
    out.extend_from_slice(&[0xFF, 0xFF, 0xFF, STRINGS, stage, stages]);
    out.extend_from_slice(&thousandths.min(100_000).to_le_bytes()[..3]);
    out.put_lenenc_str(text.as_bytes());
}

/// Appends the request for a client's file.
pub fn encode_local_infile(out: &mut Vec<u8>, name: &str) {
    out.push(0xFB);
    out.extend_from_slice(name.as_bytes());
}

/// Appends the head of the answer to COM_STMT_PREPARE.
pub fn encode_prepare_ok(out: &mut Vec<u8>, statement: u32, columns: u16, parameters: u16, warnings: u16) {
    out.push(0);
    out.put_u32_le(statement);
    out.put_u16_le(columns);
    out.put_u16_le(parameters);
    out.push(0);
    out.put_u16_le(warnings);
}

/// Appends a row of the text protocol. `charsets`: of each column, in which its text is sent.
pub fn encode_text_row(out: &mut Vec<u8>, values: &[Value], types: &[ColumnType], charsets: &[Charset]) {
    let mut scratch = Vec::new();
    for ((value, ty), charset) in values.iter().zip(types).zip(charsets) {
        match value {
            Value::Null => out.push(0xFB),
            Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) | Value::Json(text) => {
                put_text(out, text, *charset);
            }
            Value::Bytes(bytes) => out.put_lenenc_str(bytes),
            _ => {
                scratch.clear();
                value.to_text(ty, &mut scratch);
                out.put_lenenc_str(&scratch);
            }
        }
    }
}

fn put_text(out: &mut Vec<u8>, text: &str, charset: Charset) {
    match charset {
        Charset::Utf8mb4 | Charset::Utf8mb3 | Charset::Binary => out.put_lenenc_str(text.as_bytes()),
        _ => out.put_lenenc_str(&charset.encode(text)),
    }
}

/// Appends a row of the binary protocol; see [`encode_text_row`] for `charsets`.
pub fn encode_binary_row(out: &mut Vec<u8>, values: &[Value], types: &[ColumnType], charsets: &[Charset]) {
    out.push(0);
    // The bitmap of a row starts at bit 2.
    let bitmap = out.len();
    out.resize(bitmap + (values.len() + 9) / 8, 0);
    let mut scratch = Vec::new();
    for (i, ((value, ty), charset)) in values.iter().zip(types).zip(charsets).enumerate() {
        if matches!(value, Value::Null) {
            out[bitmap + (i + 2) / 8] |= 1 << ((i + 2) % 8);
            continue;
        }
        match (&ty.kind, value) {
            (TypeKind::TinyInt, _) => out.push(integer(value) as u8),
            (TypeKind::SmallInt | TypeKind::Year, _) => out.put_u16_le(integer(value) as u16),
            (TypeKind::Int | TypeKind::MediumInt, _) => out.put_u32_le(integer(value) as u32),
            (TypeKind::BigInt, _) => out.put_u64_le(integer(value)),
            (TypeKind::Float, Value::Float(f)) => out.put_f32_le(*f),
            (TypeKind::Float, Value::Double(f)) => out.put_f32_le(*f as f32),
            (TypeKind::Double, Value::Double(f)) => out.put_f64_le(*f),
            (TypeKind::Double, Value::Float(f)) => out.put_f64_le(f64::from(*f)),
            (_, Value::Date(date)) => {
                out.push(if date.is_zero() { 0 } else { 4 });
                if !date.is_zero() {
                    put_date(out, date.year, date.month, date.day);
                }
            }
            (_, Value::DateTime(at)) => {
                let (date, micros) = (at.date, at.micros);
                let clock = (at.hour, at.minute, at.second);
                let length = if micros != 0 { 11 } else if clock != (0, 0, 0) { 7 } else if !date.is_zero() { 4 } else { 0 };
                out.push(length);
                if length >= 4 {
                    put_date(out, date.year, date.month, date.day);
                }
                if length >= 7 {
                    out.extend_from_slice(&[clock.0, clock.1, clock.2]);
                }
                if length == 11 {
                    out.put_u32_le(micros);
                }
            }
            (_, Value::Time(time)) => put_time(out, time.micros),
            (_, Value::Text(text) | Value::Enum(_, text) | Value::Set(_, text) | Value::Json(text)) => {
                put_text(out, text, *charset);
            }
            (_, Value::Bytes(bytes)) => out.put_lenenc_str(bytes),
            _ => {
                scratch.clear();
                value.to_text(ty, &mut scratch);
                out.put_lenenc_str(&scratch);
            }
        }
    }
}

fn integer(value: &Value) -> u64 {
    match value {
        Value::Int(n) => *n as u64,
        Value::UInt(n) => *n,
        // The executor types its results, so anything else is an integer in another coat.
        other => other.as_i64().unwrap_or(0) as u64,
    }
}

fn put_date(out: &mut Vec<u8>, year: u16, month: u8, day: u8) {
    out.put_u16_le(year);
    out.push(month);
    out.push(day);
}

fn put_time(out: &mut Vec<u8>, micros: i64) {
    let total = micros.unsigned_abs();
    let (seconds, fraction) = (total / 1_000_000, (total % 1_000_000) as u32);
    let length = if fraction != 0 { 12 } else if total != 0 { 8 } else { 0 };
    out.push(length);
    if length == 0 {
        return;
    }
    out.push(u8::from(micros < 0));
    out.put_u32_le((seconds / 86_400) as u32);
    out.extend_from_slice(&[(seconds / 3600 % 24) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8]);
    if length == 12 {
        out.put_u32_le(fraction);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_column_of_a_row_has_its_own_character_set() {
        let row = [Value::text("é"), Value::text("漢é"), Value::Bytes(vec![0xC3, 0xA9])];
        let types = [ColumnType::new(TypeKind::VarChar(20)), ColumnType::new(TypeKind::VarChar(20)), ColumnType::new(TypeKind::Blob)];
        let charsets = [Charset::Latin1, Charset::Utf8mb4, Charset::Binary];
        let mut cells = vec![1, 0xE9, 5];
        cells.extend_from_slice("漢é".as_bytes());
        cells.extend_from_slice(&[2, 0xC3, 0xA9]);
        let mut text = Vec::new();
        encode_text_row(&mut text, &row, &types, &charsets);
        assert_eq!(text, cells);
        let mut binary = Vec::new();
        encode_binary_row(&mut binary, &row, &types, &charsets);
        assert_eq!(binary, [&[0, 0][..], &cells[..]].concat());
    }
}
