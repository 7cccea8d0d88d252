//! Events of another server's binary log: the parts of their bodies that say what is to be done. Bodies are never trusted: whatever does not
//! decode is an error, never a panic.

use std::sync::Arc;

use highkey_binlog::rows::rows_flags;
use highkey_binlog::transaction::flags2;

use super::{RowsKind, SourceColumn, SourceTable, StatementContext};

/// Numbers of the events that mean something here. MariaDB's own start at 160.
pub mod kind {
    pub const QUERY: u8 = 2;
    pub const ROTATE: u8 = 4;
    pub const INTVAR: u8 = 5;
    pub const APPEND_BLOCK: u8 = 9;
    pub const RAND: u8 = 13;
    pub const USER_VAR: u8 = 14;
    pub const FORMAT_DESCRIPTION: u8 = 15;
    pub const XID: u8 = 16;
    pub const BEGIN_LOAD_QUERY: u8 = 17;
    pub const EXECUTE_LOAD_QUERY: u8 = 18;
    pub const TABLE_MAP: u8 = 19;
    pub const WRITE_ROWS_V1: u8 = 23;
    pub const UPDATE_ROWS_V1: u8 = 24;
    pub const DELETE_ROWS_V1: u8 = 25;
    pub const INCIDENT: u8 = 26;
    pub const HEARTBEAT: u8 = 27;
    pub const WRITE_ROWS: u8 = 30;
    pub const UPDATE_ROWS: u8 = 31;
    pub const DELETE_ROWS: u8 = 32;
    pub const GTID: u8 = 33;
    pub const ANONYMOUS_GTID: u8 = 34;
    pub const XA_PREPARE: u8 = 38;
    pub const PARTIAL_UPDATE_ROWS: u8 = 39;
    pub const HEARTBEAT_V2: u8 = 41;
    pub const GTID_TAGGED: u8 = 42;
    pub const MARIADB_GTID: u8 = 162;
    pub const MARIADB_START_ENCRYPTION: u8 = 164;
    pub const MARIADB_COMPRESSED: std::ops::RangeInclusive<u8> = 165..=171;
}

/// One event, its checksum verified and taken off.
#[derive(Clone, Debug)]
pub struct Event {
    /// Seconds since 1970 of the statement's start on the source.
    pub timestamp: u32,
    pub kind: u8,
    pub server_id: u32,
    /// Where it ends in its file, modulo 4 GiB; 0 for events that are in no file.
    pub log_pos: u32,
    pub body: Vec<u8>,
}

/// Reads a body from its front. An error says that it is too short.
pub struct BodyReader<'a>(pub &'a [u8]);

impl<'a> BodyReader<'a> {
    pub fn bytes(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("the event is too short")?;
        self.0 = rest;
        Ok(taken)
    }

    /// A little-endian number of `n` bytes.
    pub fn number(&mut self, n: usize) -> Result<u64, String> {
        Ok(self.bytes(n)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    /// MySQL's number of variable length.
    pub fn length(&mut self) -> Result<usize, String> {
        let n = match self.number(1)? {
            252 => self.number(2)?,
            253 => self.number(3)?,
            254 => self.number(8)?,
            n if n < 251 => n,
            n => return Err(format!("the event has a length that starts with {n}")),
        };
        usize::try_from(n).map_err(|e| e.to_string())
    }

    fn text(&mut self, n: usize) -> Result<String, String> {
        Ok(String::from_utf8_lossy(self.bytes(n)?).into_owned())
    }
}

/// A QUERY_EVENT.
pub struct Query<'a> {
    pub schema: String,
    /// In the client's character set.
    pub sql: &'a [u8],
    /// The error that the statement ended with on the source; 0 for none.
    pub error_code: u16,
    pub context: StatementContext,
}

impl Query<'_> {
    /// BEGIN, COMMIT, ROLLBACK; savepoints are other statements.
    pub fn is(&self, word: &str) -> bool {
        self.sql.eq_ignore_ascii_case(word.as_bytes())
    }

    /// XA START, which begins a transaction as BEGIN does.
    pub fn begins_branch(&self) -> bool {
        self.sql.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"XA START "))
    }

    /// The text for messages.
    pub fn shown(&self) -> String {
        String::from_utf8_lossy(self.sql).into_owned()
    }
}

/// A row event before its table is known.
pub struct Rows<'a> {
    pub kind: RowsKind,
    pub table_id: u64,
    pub before: &'a [u8],
    pub after: &'a [u8],
    pub images: &'a [u8],
    pub no_foreign_key_checks: bool,
}

/// The row event that declares that table maps can be forgotten.
pub const DUMMY_TABLE: u64 = 0xFF_FFFF;

impl Event {
    /// ROTATE: the next file, and where its first event starts.
    pub fn rotate(&self) -> Result<(String, u64), String> {
        let mut body = BodyReader(&self.body);
        let offset = body.number(8)?;
        Ok((body.text(body.0.len())?, offset))
    }

    pub fn query(&self) -> Result<Query<'_>, String> {
        let mut body = BodyReader(&self.body);
        body.bytes(8)?;
        let schema_len = body.number(1)? as usize;
        let error_code = body.number(2)? as u16;
        let variables = body.number(2)? as usize;
        let variables = BodyReader(body.bytes(variables)?);
        let schema = body.text(schema_len)?;
        body.bytes(1)?;
        let mut context = StatementContext { schema: schema.clone(), ..StatementContext::default() };
        let micros = status_variables(variables, &mut context).unwrap_or(0);
        context.timestamp_micros = i64::from(self.timestamp) * 1_000_000 + i64::from(micros);
        Ok(Query { schema, sql: body.0, error_code, context })
    }

    /// INTVAR: true for INSERT_ID, false for LAST_INSERT_ID, and the value.
    pub fn integer_variable(&self) -> Result<(bool, u64), String> {
        let mut body = BodyReader(&self.body);
        Ok((body.number(1)? == 2, body.number(8)?))
    }

    /// TABLE_MAP: the table's number in this log, and the table.
    pub fn table_map(&self) -> Result<(u64, SourceTable), String> {
        let mut body = BodyReader(&self.body);
        let id = body.number(6)?;
        body.bytes(2)?;
        let name = |body: &mut BodyReader<'_>| {
            let length = body.number(1)? as usize;
            let name = body.text(length)?;
            body.bytes(1)?;
            Ok::<_, String>(name)
        };
        let (schema, table) = (name(&mut body)?, name(&mut body)?);
        let count = body.length()?;
        let codes = body.bytes(count)?;
        let metadata = body.length()?;
        let mut metadata = BodyReader(body.bytes(metadata)?);
        body.bytes(count.div_ceil(8))?;
        let mut columns = Vec::with_capacity(count);
        for (i, code) in codes.iter().enumerate() {
            let unknown = || format!("column {i} of table '{schema}.{table}' has the type {code}, which is not known here");
            let bytes = metadata.bytes(SourceColumn::metadata_len(*code).ok_or_else(unknown)?)?;
            columns.push(SourceColumn::new(*code, bytes).ok_or_else(unknown)?);
        }
        optional_metadata(body, &mut columns)?;
        Ok((id, SourceTable { schema, table, columns }))
    }

    /// A row event of version 1 or 2.
    pub fn rows(&self) -> Result<Rows<'_>, String> {
        let (rows_kind, extra) = match self.kind {
            kind::WRITE_ROWS => (RowsKind::Write, true),
            kind::UPDATE_ROWS => (RowsKind::Update, true),
            kind::DELETE_ROWS => (RowsKind::Delete, true),
            kind::WRITE_ROWS_V1 => (RowsKind::Write, false),
            kind::UPDATE_ROWS_V1 => (RowsKind::Update, false),
            kind::DELETE_ROWS_V1 => (RowsKind::Delete, false),
            other => return Err(format!("an event of type {other} has no rows")),
        };
        let mut body = BodyReader(&self.body);
        let table_id = body.number(6)?;
        let no_foreign_key_checks = body.number(2)? as u16 & rows_flags::NO_FOREIGN_KEY_CHECKS != 0;
        if extra {
            // The length counts itself.
            let length = (body.number(2)? as usize).checked_sub(2).ok_or("the event has a wrong length")?;
            body.bytes(length)?;
        }
        let bitmap = body.length()?.div_ceil(8);
        let first = body.bytes(bitmap)?;
        let (before, after): (&[u8], &[u8]) = match rows_kind {
            RowsKind::Write => (&[], first),
            RowsKind::Delete => (first, &[]),
            RowsKind::Update => (first, body.bytes(bitmap)?),
        };
        Ok(Rows { kind: rows_kind, table_id, before, after, images: body.0, no_foreign_key_checks })
    }
}

/// Reads the status variables of a QUERY_EVENT as far as they are known, and gives the microseconds of its time. They come in the order of their codes;
/// those of a newer version are last.
fn status_variables(mut variables: BodyReader<'_>, context: &mut StatementContext) -> Result<u32, String> {
    /// MariaDB's flag of `explicit_defaults_for_timestamp`.
    const MARIADB_EXPLICIT_DEFAULTS: u32 = 1 << 24;
    let (mut micros, mut flags) = (0, 0);
    while let Ok(code) = variables.number(1) {
        match code {
            0 => {
                flags = variables.number(4)? as u32;
                context.no_foreign_key_checks = flags & flags2::NO_FOREIGN_KEY_CHECKS != 0;
            }
            10 => drop(variables.bytes(4)?),
            1 => context.sql_mode = Some(variables.number(8)?),
            2 => {
                let length = variables.number(1)? as usize;
                variables.bytes(length + 1)?;
            }
            3 => context.auto_increment = Some((variables.number(2)? as u16, variables.number(2)? as u16)),
            4 => context.charsets = Some((variables.number(2)? as u16, variables.number(2)? as u16, variables.number(2)? as u16)),
            5 => {
                let length = variables.number(1)? as usize;
                context.time_zone = Some(variables.text(length)?).filter(|zone| !zone.is_empty());
            }
            6 => {
                let length = variables.number(1)? as usize;
                variables.bytes(length)?;
            }
            // What collation_database is changes no statement that is logged as its text.
            7 | 8 => drop(variables.bytes(2)?),
            18 => context.utf8mb4_collation = Some(variables.number(2)? as u16),
            9 | 17 => drop(variables.bytes(8)?),
            // MariaDB's, of definitions.
            129 => {
                variables.bytes(8)?;
                context.explicit_defaults_for_timestamp = Some(flags & MARIADB_EXPLICIT_DEFAULTS != 0);
            }
            11 => {
                for _ in 0..2 {
                    let length = variables.number(1)? as usize;
                    variables.bytes(length)?;
                }
            }
            12 => {
                // 254: more databases than are named.
                let count = variables.number(1)?;
                for _ in 0..if count == 254 { 0 } else { count } {
                    while variables.number(1)? != 0 {}
                }
            }
            // MySQL's and MariaDB's.
            13 | 128 => micros = variables.number(3)? as u32,
            16 => context.explicit_defaults_for_timestamp = Some(variables.number(1)? != 0),
            19 | 20 => drop(variables.bytes(1)?),
            _ => break,
        }
    }
    Ok(micros)
}

/// The collations of a table map's columns, where a source of 8.0 tells them: one for all with exceptions by number, or one of each, both counting
/// character columns only.
fn optional_metadata(mut body: BodyReader<'_>, columns: &mut [SourceColumn]) -> Result<(), String> {
    const DEFAULT_CHARSET: u64 = 2;
    const COLUMN_CHARSET: u64 = 3;
    let characters: Vec<usize> = (0..columns.len()).filter(|&i| columns[i].is_character()).collect();
    while !body.0.is_empty() {
        let field = body.number(1)?;
        let length = body.length()?;
        let mut value = BodyReader(body.bytes(length)?);
        match field {
            DEFAULT_CHARSET => {
                let all = value.length()? as u16;
                characters.iter().for_each(|&column| columns[column].collation = Some(all));
                while !value.0.is_empty() {
                    let (number, collation) = (value.length()?, value.length()? as u16);
                    let column = *characters.get(number).ok_or("the table map names a column that there is not")?;
                    columns[column].collation = Some(collation);
                }
            }
            COLUMN_CHARSET => {
                for &column in &characters {
                    columns[column].collation = Some(value.length()? as u16);
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The table maps in force.
#[derive(Default)]
pub struct TableMaps(std::collections::HashMap<u64, Arc<SourceTable>>);

impl TableMaps {
    /// Keeps a table map. An equal one stays the one that it was, so that what was prepared for it holds. Rows come right after the maps of their tables,
    /// so that old ones may go at any time but between those: a source numbers a table anew with each of its definitions.
    pub fn add(&mut self, id: u64, table: SourceTable) {
        match self.0.get(&id) {
            Some(known) if **known == table => {}
            _ => drop(self.0.insert(id, Arc::new(table))),
        }
    }

    pub fn get(&self, id: u64) -> Option<&Arc<SourceTable>> {
        self.0.get(&id)
    }

    /// Between two transactions: forgets the maps if there are many.
    pub fn trim(&mut self) {
        const KEPT_MAX: usize = 1000;
        if self.0.len() > KEPT_MAX {
            self.0.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: u8, body: &str) -> Event {
        let digits: Vec<u8> = body.chars().filter_map(|c| c.to_digit(16)).map(|d| d as u8).collect();
        Event { timestamp: 1_700_000_000, kind, server_id: 9, log_pos: 500, body: digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect() }
    }

    /// Bodies that MySQL 8.0.12 wrote.
    const MYSQL_CREATE: &str = "07000000000000000100002a000000000000010000000000000000060373746404ff00ff00ff000c01670011050000000000000012ff0067004352454154452044415441424153452067";
    const MYSQL_TABLE: &str = "5500000000000100016700027430000104010401010100";
    const MYSQL_ROWS: &str = "5500000000000100020001ff000000c03f";
    /// And MariaDB 10.11.
    const MARIADB_CREATE: &str = "04000000d16eae05010000230000000000010100002054000000000603737464042100210008008105000000000000006700637265617465207461626c652074286120696e742c20622076617263686172283130292063686172616374657220736574206c6174696e3129";
    const MARIADB_TABLE: &str = "120000000000010001670001740002030f020a0003";
    const MARIADB_ROWS: &str = "12000000000001000203fc010000000178";

    #[test]
    fn statements_come_with_their_circumstances() {
        let created = event(kind::QUERY, MYSQL_CREATE);
        let query = created.query().unwrap();
        assert_eq!((query.shown().as_str(), query.error_code), ("CREATE DATABASE g", 0));
        let charsets = Some((255, 255, 255));
        assert_eq!(query.context, StatementContext { schema: "g".into(), sql_mode: Some(0), charsets, timestamp_micros: 1_700_000_000_000_000, utf8mb4_collation: Some(255), ..StatementContext::default() });
        let created = event(kind::QUERY, MARIADB_CREATE);
        let query = created.query().unwrap();
        assert_eq!(query.shown(), "create table t(a int, b varchar(10) character set latin1)");
        assert_eq!((query.context.sql_mode, query.context.charsets, query.schema.as_str()), (Some(1_411_383_296), Some((33, 33, 8)), "g"));
        assert_eq!((query.context.explicit_defaults_for_timestamp, query.context.utf8mb4_collation), (Some(true), None));
    }

    #[test]
    fn rows_come_with_their_table() {
        let (id, table) = event(kind::TABLE_MAP, MYSQL_TABLE).table_map().unwrap();
        assert_eq!((id, table.schema.as_str(), table.table.as_str(), table.columns[0].describe().as_str()), (0x55, "g", "t0", "float"));
        let written = event(kind::WRITE_ROWS, MYSQL_ROWS);
        let rows = written.rows().unwrap();
        assert_eq!((rows.kind, rows.table_id, rows.before.len(), rows.after, rows.images.len()), (RowsKind::Write, 0x55, 0, &[0xFF][..], 5));
        let (id, table) = event(kind::TABLE_MAP, MARIADB_TABLE).table_map().unwrap();
        assert_eq!((id, table.columns.iter().map(SourceColumn::describe).collect::<Vec<_>>()), (0x12, vec!["int".to_string(), "varchar(10)".into()]));
        let written = event(kind::WRITE_ROWS_V1, MARIADB_ROWS);
        assert_eq!(written.rows().unwrap().images, [0xFC, 1, 0, 0, 0, 1, b'x']);
        // Collations: one for all with an exception, then one of each. The second column is no text.
        let columns = "5500000000000100016700027430 00 03 0f 03 fe 04 5000 fe28 07";
        for (metadata, collations) in [("02 05 fcff00 01 08", [Some(255), None, Some(8)]), ("03 04 08 fcff00", [Some(8), None, Some(255)]), ("01 01 00", [None; 3])] {
            let (_, table) = event(kind::TABLE_MAP, &format!("{columns}{metadata}")).table_map().unwrap();
            assert_eq!(table.columns.iter().map(|c| c.collation).collect::<Vec<_>>(), collations, "{metadata}");
        }
    }

    #[test]
    fn a_body_that_is_cut_off_is_an_error() {
        for (kind, body) in [(kind::QUERY, MYSQL_CREATE), (kind::TABLE_MAP, MYSQL_TABLE), (kind::WRITE_ROWS, MYSQL_ROWS), (kind::TABLE_MAP, MARIADB_TABLE), (kind::WRITE_ROWS_V1, MARIADB_ROWS)] {
            let whole = event(kind, body);
            let read = |event: &Event| match event.kind {
                kind::QUERY => event.query().map(drop),
                kind::TABLE_MAP => event.table_map().map(drop),
                _ => event.rows().map(drop),
            };
            assert_eq!(read(&whole), Ok(()));
            for end in 0..10 {
                let cut = Event { body: whole.body[..end].to_vec(), ..whole.clone() };
                assert!(read(&cut).is_err(), "{end} bytes of an event of type {kind}");
            }
        }
        assert!(event(kind::ROTATE, "04000000").rotate().is_err());
    }
}
