//! The command phase: what a client asks.

use highkey_types::{Date, DateTime, Decimal, Time, Value};
use mysql_common::constants::ColumnType as Wire;

/// One request of a client.
#[derive(Debug, PartialEq, Eq)]
pub enum Command<'a> {
    Quit,
    InitDb(&'a [u8]),
    Query(&'a [u8]),
    FieldList(&'a [u8]),
    Statistics,
    ProcessInfo,
    ProcessKill(u32),
    Debug,
    Ping,
    ChangeUser(&'a [u8]),
    ResetConnection,
    SetOption(u16),
    StmtPrepare(&'a [u8]),
    StmtExecute(&'a [u8]),
    StmtSendLongData { statement: u32, parameter: u16, data: &'a [u8] },
    StmtClose(u32),
    StmtReset(u32),
    StmtFetch { statement: u32, rows: u32 },
    RegisterReplica(ReplicaRegistration<'a>),
    BinlogDump(DumpRequest<'a>),
    /// A known command this server does not serve, or an unknown byte (error 1047).
    Unsupported(u8),
}

/// What a replica says of itself (COM_REGISTER_SLAVE).
#[derive(Debug, PartialEq, Eq)]
pub struct ReplicaRegistration<'a> {
    pub server_id: u32,
    pub host: &'a [u8],
    pub port: u16,
}

/// From where a replica wants the binary log (COM_BINLOG_DUMP and COM_BINLOG_DUMP_GTID).
#[derive(Debug, PartialEq, Eq)]
pub struct DumpRequest<'a> {
    pub server_id: u32,
    /// The stream ends at the end of the binary log instead of waiting there.
    pub non_blocking: bool,
    /// Empty: the first file.
    pub file: &'a [u8],
    pub position: u64,
    /// The encoded GTID set that the replica has, if it is to be asked rather than the position.
    pub gtids: Option<&'a [u8]>,
}

/// A flag of a dump.
const DUMP_NON_BLOCK: u16 = 1;

fn registration(mut rest: &[u8]) -> Option<ReplicaRegistration<'_>> {
    let server_id = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let mut text = || -> Option<&[u8]> {
        let len = take(&mut rest, 1)?[0];
        take(&mut rest, usize::from(len))
    };
    let (host, _user, _password) = (text()?, text()?, text()?);
    let port = u16::from_le_bytes(take(&mut rest, 2)?.try_into().ok()?);
    Some(ReplicaRegistration { server_id, host, port })
}

fn dump(mut rest: &[u8]) -> Option<DumpRequest<'_>> {
    let position = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let flags = u16::from_le_bytes(take(&mut rest, 2)?.try_into().ok()?);
    let server_id = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    Some(DumpRequest { server_id, non_blocking: flags & DUMP_NON_BLOCK != 0, file: rest, position: position.into(), gtids: None })
}

fn dump_gtid(mut rest: &[u8]) -> Option<DumpRequest<'_>> {
    let flags = u16::from_le_bytes(take(&mut rest, 2)?.try_into().ok()?);
    let server_id = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let len = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let file = take(&mut rest, len as usize)?;
    let position = u64::from_le_bytes(take(&mut rest, 8)?.try_into().ok()?);
    // As MySQL, whatever the flags say: not every client sets the one for it.
    let len = u32::from_le_bytes(take(&mut rest, 4)?.try_into().ok()?);
    let gtids = Some(take(&mut rest, len as usize)?);
    Some(DumpRequest { server_id, non_blocking: flags & DUMP_NON_BLOCK != 0, file, position, gtids })
}

/// Splits a request; `None` if it is malformed (error 1047 or 1835).
pub fn parse_command(payload: &[u8]) -> Option<Command<'_>> {
    let (&code, rest) = payload.split_first()?;
    let u32_at = |at: usize| -> Option<u32> { Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?)) };
    let u16_at = |at: usize| -> Option<u16> { Some(u16::from_le_bytes(rest.get(at..at + 2)?.try_into().ok()?)) };
    Some(match code {
        0x01 => Command::Quit,
        0x02 => Command::InitDb(rest),
        0x03 => Command::Query(rest),
        0x04 => Command::FieldList(rest),
        0x09 => Command::Statistics,
        0x0A => Command::ProcessInfo,
        0x0C => Command::ProcessKill(u32_at(0)?),
        0x0D => Command::Debug,
        0x0E => Command::Ping,
        0x11 => Command::ChangeUser(rest),
        0x12 => Command::BinlogDump(dump(rest)?),
        0x15 => Command::RegisterReplica(registration(rest)?),
        0x1E => Command::BinlogDump(dump_gtid(rest)?),
        0x16 => Command::StmtPrepare(rest),
        0x17 => Command::StmtExecute(rest),
        0x18 => Command::StmtSendLongData { statement: u32_at(0)?, parameter: u16_at(4)?, data: &rest[6..] },
        0x19 => Command::StmtClose(u32_at(0)?),
        0x1A => Command::StmtReset(u32_at(0)?),
        0x1B => Command::SetOption(u16_at(0)?),
        0x1C => Command::StmtFetch { statement: u32_at(0)?, rows: u32_at(4)? },
        0x1F => Command::ResetConnection,
        other => Command::Unsupported(other),
    })
}

/// Type of a statement parameter as the client bound it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParameterType {
    /// MYSQL_TYPE_*.
    pub code: u8,
    pub unsigned: bool,
}

/// A parsed COM_STMT_EXECUTE.
#[derive(Debug)]
pub struct ExecuteRequest {
    /// CURSOR_TYPE_*; 0 is none, 1 read only.
    pub cursor: u8,
    pub parameters: Vec<Value>,
}

/// Id of the statement of a COM_STMT_EXECUTE, by which the caller finds what [`parse_execute`] needs.
pub fn execute_statement_id(payload: &[u8]) -> Option<u32> {
    Some(u32::from_le_bytes(payload.get(..4)?.try_into().ok()?))
}

/// Parses a COM_STMT_EXECUTE of a statement with `count` parameters; `None` if it is malformed (error 1835).
///
/// `types` keeps the bound types between executions, as a client sends them only when they change. `long_data`
/// holds what COM_STMT_SEND_LONG_DATA sent. `text` turns the connection's character set into UTF-8.
pub fn parse_execute(
    payload: &[u8],
    count: usize,
    types: &mut Vec<ParameterType>,
    long_data: &[(u16, Vec<u8>)],
    text: impl Fn(&[u8]) -> Value,
) -> Option<ExecuteRequest> {
    let cursor = *payload.get(4)?;
    let mut rest = payload.get(9..)?;
    if count == 0 {
        return Some(ExecuteRequest { cursor, parameters: Vec::new() });
    }
    let nulls = take(&mut rest, count.div_ceil(8))?;
    if take(&mut rest, 1)?[0] == 1 {
        let declared = take(&mut rest, 2 * count)?;
        *types = declared.chunks(2).map(|t| ParameterType { code: t[0], unsigned: t[1] & 0x80 != 0 }).collect();
    }
    if types.len() != count {
        return None;
    }
    let mut parameters = Vec::with_capacity(count);
    for (i, ty) in types.iter().enumerate() {
        let value = if let Some((_, data)) = long_data.iter().find(|(at, _)| usize::from(*at) == i) {
            string_value(ty.code, data, &text)?
        } else if nulls[i / 8] & (1 << (i % 8)) != 0 {
            Value::Null
        } else {
            parameter(*ty, &mut rest, &text)?
        };
        parameters.push(value);
    }
    Some(ExecuteRequest { cursor, parameters })
}

fn parameter(ty: ParameterType, rest: &mut &[u8], text: &impl Fn(&[u8]) -> Value) -> Option<Value> {
    let integer = |signed: i64, unsigned: u64| if ty.unsigned { Value::UInt(unsigned) } else { Value::Int(signed) };
    Some(match Wire::try_from(ty.code).ok()? {
        Wire::MYSQL_TYPE_NULL => Value::Null,
        Wire::MYSQL_TYPE_TINY => {
            let b = take(rest, 1)?[0];
            integer(i64::from(b as i8), u64::from(b))
        }
        Wire::MYSQL_TYPE_SHORT | Wire::MYSQL_TYPE_YEAR => {
            let n = u16::from_le_bytes(take(rest, 2)?.try_into().ok()?);
            integer(i64::from(n as i16), u64::from(n))
        }
        Wire::MYSQL_TYPE_LONG | Wire::MYSQL_TYPE_INT24 => {
            let n = u32::from_le_bytes(take(rest, 4)?.try_into().ok()?);
            integer(i64::from(n as i32), u64::from(n))
        }
        Wire::MYSQL_TYPE_LONGLONG => {
            let n = u64::from_le_bytes(take(rest, 8)?.try_into().ok()?);
            integer(n as i64, n)
        }
        Wire::MYSQL_TYPE_FLOAT => Value::Float(f32::from_le_bytes(take(rest, 4)?.try_into().ok()?)),
        Wire::MYSQL_TYPE_DOUBLE => Value::Double(f64::from_le_bytes(take(rest, 8)?.try_into().ok()?)),
        Wire::MYSQL_TYPE_DATE | Wire::MYSQL_TYPE_DATETIME | Wire::MYSQL_TYPE_TIMESTAMP => temporal(ty.code, rest, text)?,
        Wire::MYSQL_TYPE_TIME => time(rest)?,
        _ => {
            let length = take_lenenc(rest)?;
            string_value(ty.code, take(rest, usize::try_from(length).ok()?)?, text)?
        }
    })
}

fn string_value(code: u8, data: &[u8], text: &impl Fn(&[u8]) -> Value) -> Option<Value> {
    Some(match Wire::try_from(code).ok()? {
        Wire::MYSQL_TYPE_DECIMAL | Wire::MYSQL_TYPE_NEWDECIMAL => {
            match std::str::from_utf8(data).ok().and_then(|s| s.trim().parse::<Decimal>().ok()) {
                Some(decimal) => Value::Decimal(decimal),
                None => text(data),
            }
        }
        Wire::MYSQL_TYPE_TINY_BLOB
        | Wire::MYSQL_TYPE_MEDIUM_BLOB
        | Wire::MYSQL_TYPE_LONG_BLOB
        | Wire::MYSQL_TYPE_BLOB
        | Wire::MYSQL_TYPE_BIT
        | Wire::MYSQL_TYPE_GEOMETRY => Value::Bytes(data.to_vec()),
        _ => text(data),
    })
}

/// What is no date is text, which every conversion judges by the mode: an impossible day as it is written, fields out of their range nothing at all, as in MySQL.
fn temporal(code: u8, rest: &mut &[u8], text: &impl Fn(&[u8]) -> Value) -> Option<Value> {
    let length = usize::from(take(rest, 1)?[0]);
    let bytes = take(rest, length)?;
    if !matches!(length, 0 | 4 | 7 | 11) {
        return None;
    }
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let date = Date { year: u16::from_le_bytes([at(0), at(1)]), month: at(2), day: at(3) };
    let moment = DateTime { date, hour: at(4), minute: at(5), second: at(6), micros: u32::from_le_bytes([at(7), at(8), at(9), at(10)]) };
    let in_range = date.year <= 9999 && date.month <= 12 && date.day <= 31;
    if !in_range || moment.hour > 23 || moment.minute > 59 || moment.second > 59 || moment.micros > 999_999 {
        return Some(text(b""));
    }
    let is_day = date.is_valid() || date.has_zero_part();
    Some(match code == Wire::MYSQL_TYPE_DATE as u8 && length <= 4 {
        true if is_day => Value::Date(date),
        true => text(date.to_string().as_bytes()),
        false if is_day => Value::DateTime(moment),
        false => text(moment.format(6).as_bytes()),
    })
}

/// Hours count modulo 2^32, as in MySQL; beyond what a TIME can be it is the greatest, with other fields out of their range nothing.
fn time(rest: &mut &[u8]) -> Option<Value> {
    let length = usize::from(take(rest, 1)?[0]);
    let bytes = take(rest, length)?;
    if !matches!(length, 0 | 8 | 12) {
        return None;
    }
    let at = |i: usize| bytes.get(i).copied().unwrap_or(0);
    let hours = u32::from_le_bytes([at(1), at(2), at(3), at(4)]).wrapping_mul(24).wrapping_add(u32::from(at(5)));
    let (minutes, seconds) = if hours > 838 { (59, 59) } else { (u32::from(at(6)), u32::from(at(7))) };
    let micros = u32::from_le_bytes([at(8), at(9), at(10), at(11)]);
    if minutes > 59 || seconds > 59 || micros > 999_999 {
        return Some(Value::Time(Time::default()));
    }
    Some(Value::Time(Time::from_hms(at(0) != 0, hours.min(838), minutes, seconds, micros).clamped()))
}

fn take<'a>(rest: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (head, tail) = rest.split_at_checked(n)?;
    *rest = tail;
    Some(head)
}

fn take_lenenc(rest: &mut &[u8]) -> Option<u64> {
    let width = match take(rest, 1)?[0] {
        n @ 0..=250 => return Some(u64::from(n)),
        0xFC => 2,
        0xFD => 3,
        0xFE => 8,
        _ => return None,
    };
    let mut bytes = [0; 8];
    bytes[..width].copy_from_slice(take(rest, width)?);
    Some(u64::from_le_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{Rng, SeedableRng};

    fn text(data: &[u8]) -> Value {
        Value::Text(String::from_utf8_lossy(data).as_ref().into())
    }

    #[test]
    fn parameters_of_all_kinds() {
        let mut p = vec![1, 0, 0, 0, 0, 1, 0, 0, 0, 0b0000_0010, 1];
        for (code, flag) in [(8u8, 0x80u8), (3, 0), (12, 0), (11, 0), (246, 0), (253, 0), (252, 0)] {
            p.extend_from_slice(&[code, flag]);
        }
        p.extend_from_slice(&u64::MAX.to_le_bytes());
        p.extend_from_slice(&[7, 0xE8, 0x07, 2, 29, 23, 59, 58]);
        p.extend_from_slice(&[12, 1, 1, 0, 0, 0, 2, 3, 4, 5, 0, 0, 0]);
        p.extend_from_slice(&[4, b'1', b'.', b'5', b'0']);
        p.extend_from_slice(&[2, b'h', b'i']);
        p.extend_from_slice(&[1, 0xFF]);
        let mut types = Vec::new();
        let got = parse_execute(&p, 7, &mut types, &[], text).unwrap().parameters;
        let want = vec![
            Value::UInt(u64::MAX),
            Value::Null,
            Value::DateTime(DateTime { date: Date { year: 2024, month: 2, day: 29 }, hour: 23, minute: 59, second: 58, micros: 0 }),
            Value::Time(Time { micros: -(((26 * 60 + 3) * 60 + 4) * 1_000_000 + 5) }),
            Value::Decimal("1.50".parse().unwrap()),
            text(b"hi"),
            Value::Bytes(vec![0xFF]),
        ];
        assert_eq!(format!("{got:?}"), format!("{want:?}"));
        for cut in 0..p.len() {
            assert!(parse_execute(&p[..cut], 7, &mut Vec::new(), &[], text).is_none(), "cut at {cut}");
        }
    }

    /// Answers of MySQL 8.0.12.
    #[test]
    fn parameters_out_of_their_range() {
        let parameter_of = |code: u8, bytes: &[u8]| {
            let mut rest = bytes;
            parameter(ParameterType { code, unsigned: false }, &mut rest, &text).unwrap()
        };
        let datetime = |year: u16, fields: [u8; 5], micros: u32| {
            let mut bytes = vec![11];
            bytes.extend_from_slice(&year.to_le_bytes());
            bytes.extend_from_slice(&fields);
            bytes.extend_from_slice(&micros.to_le_bytes());
            parameter_of(12, &bytes)
        };
        assert_eq!(datetime(2020, [2, 31, 1, 2, 3], 4), text(b"2020-02-31 01:02:03.000004"));
        assert_eq!(parameter_of(10, &[4, 0xE5, 0x07, 2, 30]), text(b"2021-02-30"));
        let nothing = [(65535, [1, 1, 1, 1, 1], 1), (2020, [13, 1, 0, 0, 0], 0), (2020, [1, 255, 0, 0, 0], 0), (2020, [1, 1, 99, 0, 0], 0)];
        for (year, fields, micros) in nothing.into_iter().chain([(2020, [1, 1, 1, 99, 1], 0), (2020, [1, 1, 1, 1, 99], 0), (2020, [1, 1, 1, 1, 1], 4_000_000_000)]) {
            assert_eq!(datetime(year, fields, micros), text(b""), "{year} {fields:?} {micros}");
        }
        assert_eq!(datetime(2020, [0, 31, 0, 0, 0], 0), Value::DateTime(DateTime::from(Date { year: 2020, month: 0, day: 31 })));
        let time = |negative: u8, days: u32, fields: [u8; 3], micros: u32| {
            let mut bytes = vec![12, negative];
            bytes.extend_from_slice(&days.to_le_bytes());
            bytes.extend_from_slice(&fields);
            bytes.extend_from_slice(&micros.to_le_bytes());
            parameter_of(11, &bytes)
        };
        assert_eq!(time(0, u32::MAX, [0, 0, 0], 0), Value::Time(Time::MAX));
        assert_eq!(time(1, 100, [0, 0, 0], 0), Value::Time(Time::MIN));
        assert_eq!(time(1, u32::MAX, [255, 255, 255], u32::MAX), Value::Time(Time::default()));
        assert_eq!(time(0, 0, [255, 255, 255], 4_000_000_000), Value::Time(Time::default()));
        assert_eq!(time(0, 0, [255, 59, 58], 7), Value::Time(Time::from_hms(false, 255, 59, 58, 7)));
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut rng = rand::rngs::StdRng::seed_from_u64(1);
        for _ in 0..200_000 {
            let bytes: Vec<u8> = (0..rng.random_range(0..40)).map(|_| rng.random()).collect();
            let _ = parse_command(&bytes);
            let _ = parse_execute(&bytes, rng.random_range(0..4), &mut Vec::new(), &[], text);
            let _ = crate::parse_client_hello(&bytes);
        }
    }

    #[test]
    fn a_dump_by_gtids_has_them_whatever_its_flags_say() {
        for flags in [0u16, 1, 4] {
            let mut packet = vec![0x1E];
            packet.extend_from_slice(&flags.to_le_bytes());
            packet.extend_from_slice(&7u32.to_le_bytes());
            packet.extend_from_slice(&3u32.to_le_bytes());
            packet.extend_from_slice(b"b.1");
            packet.extend_from_slice(&4u64.to_le_bytes());
            packet.extend_from_slice(&2u32.to_le_bytes());
            packet.extend_from_slice(b"gs");
            let expected = DumpRequest { server_id: 7, non_blocking: flags == 1, file: b"b.1", position: 4, gtids: Some(b"gs") };
            assert_eq!(parse_command(&packet), Some(Command::BinlogDump(expected)), "{flags}");
            for end in 20..packet.len() {
                assert_eq!(parse_command(&packet[..end]), None, "{end} bytes");
            }
        }
    }
}
