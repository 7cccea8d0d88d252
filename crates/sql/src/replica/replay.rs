//! BINLOG statements: events of a binary log in base64, as `mysqlbinlog` and `mariadb-binlog` print them. What the events mean is the replica's
//! (`event.rs`, `rows.rs`); here is how they come, and that they are the session's own changes.

use highkey_binlog::event::{check_crc32, split};
use highkey_binlog::{EventType, Header};
use highkey_types::{MySqlError, Value, errors};

use super::event::{DUMMY_TABLE, Event, TableMaps, kind};
use super::rows::{MappedTables, RowsChange};
use crate::execute::{Failure, Outcome};
use crate::functions::from_base64;
use crate::parse::ast::BinlogText;
use crate::session::{Session, error};

/// What the session's BINLOG statements have told so far.
#[derive(Default)]
pub(crate) struct Replay {
    format: Option<Format>,
    maps: TableMaps,
    tables: MappedTables,
}

/// Of the last format description.
#[derive(Clone, Copy)]
struct Format {
    /// Events end in a CRC32.
    checksum: bool,
}

/// Servers before MySQL 5.6.1 and MariaDB 5.3 name no checksum algorithm in their format description. They are not read here.
const ALGORITHM_AND_CHECKSUM_LEN: usize = 5;

impl Replay {
    /// The events of a statement, checked. A format description holds for what comes after it, in this statement and later ones.
    /// Errors: 1575 for what are no events, 1609 without a format description, 1730 for events that are not about rows.
    fn read(&mut self, bytes: &[u8]) -> Result<Vec<Event>, MySqlError> {
        let mut events = Vec::new();
        let mut length = 0;
        for bytes in split(bytes) {
            length += bytes.len();
            let header = Header::parse(bytes).ok_or_else(errors::base64_decode_error)?;
            if header.event_type == EventType::FORMAT_DESCRIPTION {
                self.format = Some(read_format(bytes)?);
                continue;
            }
            let name = EventType::name(header.event_type);
            let wanted = matches!(header.event_type, kind::TABLE_MAP | EventType::ROWS_QUERY | kind::PARTIAL_UPDATE_ROWS)
                || matches!(header.event_type, kind::WRITE_ROWS..=kind::DELETE_ROWS | kind::WRITE_ROWS_V1..=kind::DELETE_ROWS_V1)
                || kind::MARIADB_COMPRESSED.contains(&header.event_type);
            if !wanted {
                return Err(error::err(1730, format!("Only Format_description_log_event and row events are allowed in BINLOG statements (but {name} was provided)")));
            }
            let format = self.format.ok_or_else(|| {
                error::err(1609, format!("The BINLOG statement of type `{name}` was not preceded by a format description BINLOG statement."))
            })?;
            let event = match (format.checksum, check_crc32(bytes)) {
                (false, _) => bytes,
                (true, Some((event, true))) => event,
                (true, _) => return Err(error::err(1594, format!("Relay log read failure: the {name} event that ends at {} has a wrong checksum", header.log_pos))),
            };
            let body = event.get(Header::LEN..).ok_or_else(errors::base64_decode_error)?.to_vec();
            let Header { timestamp, server_id, log_pos, .. } = header;
            events.push(Event { timestamp, kind: header.event_type, server_id, log_pos, body });
        }
        if length == bytes.len() { Ok(events) } else { Err(errors::base64_decode_error()) }
    }
}

/// Errors 1575 and 1594.
fn read_format(bytes: &[u8]) -> Result<Format, MySqlError> {
    let (event, right) = check_crc32(bytes).filter(|(event, _)| event.len() > Header::LEN + ALGORITHM_AND_CHECKSUM_LEN).ok_or_else(errors::base64_decode_error)?;
    match event.last() {
        Some(0) => Ok(Format { checksum: false }),
        Some(1) if right => Ok(Format { checksum: true }),
        Some(1) => Err(error::err(1594, "Relay log read failure: the format description has a wrong checksum")),
        _ => Err(error::err(1594, "Relay log read failure: the format description names a checksum algorithm that is not known")),
    }
}

/// Whether a BINLOG statement begins with a format description, which changes nothing.
pub(crate) fn begins_with_format(text: &BinlogText) -> bool {
    let BinlogText::Literal(text) = text else { return false };
    let first: String = text.chars().filter(|c| !c.is_ascii_whitespace()).take(8).collect();
    from_base64(first.as_bytes(), true).is_some_and(|bytes| bytes.get(4) == Some(&EventType::FORMAT_DESCRIPTION))
}

impl Session {
    /// BINLOG. Errors: 1575, 1609, 1730, 1235 for events that are not read here, and those of row events (`Applier::rows`).
    pub(crate) async fn binlog(&mut self, text: &BinlogText) -> Result<Outcome, Failure> {
        let text = self.take_binlog_text(text)?;
        if text.is_empty() {
            return Err(error::err(1149, "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version for the right syntax to use").into());
        }
        let bytes = from_base64(text.as_bytes(), true).ok_or_else(errors::base64_decode_error)?;
        drop(text);
        let mut replay = self.replay.take().unwrap_or_default();
        let applied = match replay.read(&bytes) {
            Ok(events) => self.apply_events(&mut replay, &events).await,
            Err(e) => Err(e),
        };
        // A later statement brings its own.
        replay.maps = TableMaps::default();
        self.replay = Some(replay);
        applied?;
        Ok(Outcome::ok())
    }

    /// MariaDB's programs cut a long statement into user variables, which are NULL afterwards.
    fn take_binlog_text(&mut self, text: &BinlogText) -> Result<String, MySqlError> {
        let names = match text {
            BinlogText::Literal(text) => return Ok(text.clone()),
            BinlogText::Variables(names) => names,
        };
        let mut whole = String::new();
        for name in names {
            match self.state.user_vars.get_mut(name.to_lowercase().as_str()).map(|(value, _)| std::mem::replace(value, Value::Null)) {
                Some(Value::Text(part)) => whole.push_str(&part),
                Some(Value::Bytes(part)) => whole.push_str(std::str::from_utf8(&part).map_err(|_| errors::base64_decode_error())?),
                _ => return Err(error::wrong_type_for_var(name)),
            }
        }
        Ok(whole)
    }

    async fn apply_events(&mut self, replay: &mut Replay, events: &[Event]) -> Result<(), MySqlError> {
        let damaged = |what: String| error::err(1594, format!("Relay log read failure: {what}"));
        if events.iter().any(|event| !matches!(event.kind, kind::TABLE_MAP | EventType::ROWS_QUERY)) {
            self.state.check_tables_allowed()?;
            self.check_transaction_writable()?;
            self.begin_change(false).await?;
            self.begin_write(false)?;
        }
        for event in events {
            match event.kind {
                kind::TABLE_MAP => {
                    let (id, table) = event.table_map().map_err(damaged)?;
                    replay.maps.add(id, table);
                    continue;
                }
                EventType::ROWS_QUERY => continue,
                kind::PARTIAL_UPDATE_ROWS => return Err(error::not_supported("parts of JSON documents (binlog_row_value_options = PARTIAL_JSON)")),
                kind if kind::MARIADB_COMPRESSED.contains(&kind) => return Err(error::not_supported("compressed events (log_bin_compress)")),
                _ => {}
            }
            let rows = event.rows().map_err(damaged)?;
            if rows.table_id == DUMMY_TABLE {
                continue;
            }
            let table = replay.maps.get(rows.table_id).cloned();
            let table = table.ok_or_else(|| damaged(format!("rows of table number {} come before its table map", rows.table_id)))?;
            if self.state.locks.has_tables() {
                self.state.locks.check_table(&table.schema, &table.table, true)?;
            }
            let change =
                RowsChange { kind: rows.kind, table: &table, before: rows.before, after: rows.after, images: rows.images, no_foreign_key_checks: rows.no_foreign_key_checks };
            self.apply_rows(&mut replay.tables, &change, event.timestamp).await?;
            self.state.process.check()?;
        }
        Ok(())
    }
}
