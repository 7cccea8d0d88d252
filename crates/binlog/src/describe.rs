//! What SHOW BINLOG EVENTS says about an event.

use std::borrow::Cow;

use crate::event::{EventType, Header, header_flags};
use crate::rows::rows_flags;
use crate::{GtidSet, Uuid, xa};

/// `Event_type` and `Info` of SHOW BINLOG EVENTS for an event without its checksum. `None`: the event is too short for what it says it
/// holds. Types that this server never writes have no info.
pub fn describe(raw: &[u8]) -> Option<(&'static str, String)> {
    let header = Header::parse(raw)?;
    let mut body = Body(&raw[Header::LEN..]);
    let info = match header.event_type {
        EventType::FORMAT_DESCRIPTION => {
            let binlog_version = body.u16()?;
            let version = body.take(50)?;
            let version = version.split(|byte| *byte == 0).next().unwrap_or_default();
            format!("Server ver: {}, Binlog ver: {binlog_version}", text(version))
        }
        EventType::PREVIOUS_GTIDS => GtidSet::decode(body.0).ok()?.to_string(),
        EventType::GTID => {
            body.take(1)?;
            let sid = Uuid(body.take(16)?.try_into().ok()?);
            format!("SET @@SESSION.GTID_NEXT= '{sid}:{}'", body.u64()?)
        }
        EventType::ANONYMOUS_GTID => "SET @@SESSION.GTID_NEXT= 'ANONYMOUS'".to_owned(),
        EventType::QUERY => query(&header, body)?,
        EventType::ROWS_QUERY => {
            body.take(1)?;
            format!("# {}", text(body.0))
        }
        EventType::TABLE_MAP => {
            let table_id = body.table_id()?;
            body.take(2)?;
            let (schema, table) = (body.name()?, body.name()?);
            format!("table_id: {table_id} ({schema}.{table})")
        }
        EventType::WRITE_ROWS | EventType::UPDATE_ROWS | EventType::DELETE_ROWS => {
            let table_id = body.table_id()?;
            let last = body.u16()? & rows_flags::STATEMENT_END != 0;
            format!("table_id: {table_id}{}", if last { " flags: STMT_END_F" } else { "" })
        }
        EventType::XID => format!("COMMIT /* xid={} */", body.u64()?),
        EventType::XA_PREPARE => match xa::decode_prepare(body.0)? {
            (xid, false) => format!("XA PREPARE {xid}"),
            (xid, true) => format!("XA COMMIT {xid} ONE PHASE"),
        },
        EventType::ROTATE => {
            let position = body.u64()?;
            format!("{};pos={position}", text(body.0))
        }
        _ => String::new(),
    };
    Some((EventType::name(header.event_type), info))
}

/// The statement, and the schema it ran in.
fn query(header: &Header, mut body: Body<'_>) -> Option<String> {
    body.take(8)?;
    let schema_len = body.take(1)?[0];
    body.take(2)?;
    let variables_len = body.u16()?;
    body.take(usize::from(variables_len))?;
    let schema = text(body.take(usize::from(schema_len))?);
    body.take(1)?;
    let sql = text(body.0);
    if header.flags & header_flags::SUPPRESS_USE != 0 || schema.is_empty() {
        return Some(sql.into_owned());
    }
    Some(format!("use `{}`; {sql}", schema.replace('`', "``")))
}

fn text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// What is left of an event's body.
struct Body<'e>(&'e [u8]);

impl<'e> Body<'e> {
    fn take(&mut self, len: usize) -> Option<&'e [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn u16(&mut self) -> Option<u16> {
        Some(u16::from_le_bytes(self.take(2)?.try_into().ok()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    /// 48 bits.
    fn table_id(&mut self) -> Option<u64> {
        let mut id = [0; 8];
        id[..6].copy_from_slice(self.take(6)?);
        Some(u64::from_le_bytes(id))
    }

    /// A name of at most 250 bytes with its length before it and a zero behind it.
    fn name(&mut self) -> Option<Cow<'e, str>> {
        let len = self.take(1)?[0];
        let name = self.take(usize::from(len))?;
        self.take(1)?;
        Some(text(name))
    }
}
