//! A transaction's binary log events, collected as its rows change.
//!
//! The events stand in a buffer as they will stand in the file, without positions and checksums. What goes beyond a megabyte is logged in
//! parts (`Txn::log_events`), so a transaction's size is not bounded by memory.

use std::sync::Arc;

use highkey_binlog::rows::{rows_flags, set_statement_end};
use highkey_binlog::transaction::{QueryContext, query, rows_query, xid};
use highkey_binlog::{Bitmap, Column, PrimaryKeyPart, RowImage, RowMetadata, RowsKind, RowsWriter, Stamp, TableMap, Xid, event, xa};
use highkey_storage::{Lsn, Result, Txn};
use highkey_types::{MySqlError, Str, Value};

use crate::def::{IndexDef, IndexKind, TableDef};
use crate::error;
use crate::table::Table;

use super::payload::{EventGroup, GtidChoice, Part, Payload};

/// What a transaction of a row or two takes.
const SMALL_BYTES: usize = 1024;
/// Events beyond this are logged before the commit.
const PART_BYTES: usize = 1 << 20;

/// The circumstances of a statement that the binary log tells.
#[derive(Clone, Debug, Default)]
pub struct EventSource {
    pub server_id: u32,
    pub thread_id: u32,
    /// When the statement began, in seconds since 1970; `SET timestamp` counts.
    pub timestamp: u32,
    /// Microseconds of that second, for what is logged as text.
    pub micros: u32,
    /// The session's default schema, or nothing.
    pub schema: Str,
    pub sql_mode: u64,
    /// Bits of `highkey_binlog::transaction::flags2`.
    pub flags2: u32,
    /// Ids of the collations of `character_set_client`, `collation_connection` and `collation_server`.
    pub charset: (u16, u16, u16),
    pub time_zone: Str,
    /// Id of the collation that the character set utf8mb4 alone means; 0: it is not told.
    pub default_collation_for_utf8mb4: u16,
    /// `explicit_defaults_for_timestamp`, where a statement depends on it.
    pub explicit_defaults_for_timestamp: Option<bool>,
    /// Id of `collation_database` where that is not the default schema's; else 0.
    pub charset_database: u16,
    /// The schemas that a statement changes, as far as they are known.
    pub schemas: Vec<Str>,
    pub auto_increment: (u16, u16),
    pub row_image: RowImage,
    pub row_metadata: RowMetadata,
    /// The statement's text, with `binlog_rows_query_log_events`.
    pub statement: Option<Str>,
    pub gtid: GtidChoice,
    /// The binary log is to tell of the GTID alone: what is logged as text becomes an empty transaction.
    pub only_gtid: bool,
    /// When the transaction was committed on the server that it comes from, in microseconds since 1970; `None`: it comes from here.
    pub original_commit_micros: Option<u64>,
    /// The version of that server; `None`: ours.
    pub original_server_version: Option<u32>,
}

impl EventSource {
    fn stamp(&self) -> Stamp {
        Stamp { timestamp: self.timestamp, server_id: self.server_id }
    }

    /// A statement that means something by itself.
    fn query(&self, sql: &str, out: &mut Vec<u8>) {
        let schemas: Vec<&str> = self.schemas.iter().map(|schema| &**schema).collect();
        let context = QueryContext {
            thread_id: self.thread_id,
            flags2: self.flags2,
            sql_mode: self.sql_mode,
            auto_increment: self.auto_increment,
            charset: Some(self.charset),
            time_zone: &self.time_zone,
            charset_database: self.charset_database,
            updated_schemas: &schemas,
            microseconds: (self.micros != 0).then_some(self.micros),
            explicit_defaults_for_timestamp: self.explicit_defaults_for_timestamp,
            default_collation_for_utf8mb4: self.default_collation_for_utf8mb4,
            ..QueryContext::default()
        };
        query(self.stamp(), &context, &self.schema, sql.as_bytes(), out);
    }

    fn begin(&self, out: &mut Vec<u8>) {
        self.bracket(b"BEGIN", out);
    }

    fn bracket(&self, sql: &[u8], out: &mut Vec<u8>) {
        let context =
            QueryContext { thread_id: self.thread_id, flags2: self.flags2, sql_mode: self.sql_mode, suppress_use: true, ..QueryContext::default() };
        query(self.stamp(), &context, self.short_schema(), sql, out);
    }

    /// For what means the same in every schema.
    fn short_schema(&self) -> &str {
        if check_told(&self.schema).is_ok() { &self.schema } else { "" }
    }

    /// A statement about a transaction in two phases, as MySQL writes it: `verb` is START, END, COMMIT or ROLLBACK.
    fn xa(&self, verb: &str, xid: &Xid, out: &mut Vec<u8>) {
        let context = QueryContext {
            thread_id: self.thread_id,
            flags2: self.flags2,
            sql_mode: self.sql_mode,
            charset: Some(self.charset),
            suppress_use: true,
            ..QueryContext::default()
        };
        query(self.stamp(), &context, self.short_schema(), format!("XA {verb} {xid}").as_bytes(), out);
    }

    /// What the commit record of a statement that is logged as its text carries: DDL, account management. `released`: see `Txn::releasing`.
    /// Error 1059: see `check_told`.
    pub fn statement_payload(&self, sql: &str, released: Lsn) -> Result<Vec<u8>, MySqlError> {
        let mut raw = Vec::new();
        if self.only_gtid {
            self.begin(&mut raw);
        } else {
            check_told(&self.schema)?;
            self.query(sql, &mut raw);
        }
        Ok(self.text_payload(raw, released))
    }

    /// What the record carries that ends a prepared transaction; `verb` is COMMIT or ROLLBACK.
    pub(crate) fn xa_payload(&self, verb: &str, xid: &Xid, released: Lsn) -> Vec<u8> {
        let mut raw = Vec::new();
        match self.only_gtid {
            true => self.begin(&mut raw),
            false => self.xa(verb, xid, &mut raw),
        }
        self.text_payload(raw, released)
    }

    /// One event: a statement, or the BEGIN of an empty transaction.
    fn text_payload(&self, mut raw: Vec<u8>, released: Lsn) -> Vec<u8> {
        if self.only_gtid {
            self.bracket(b"COMMIT", &mut raw);
        }
        let group = EventGroup { statement: true, events: 1 + u32::from(self.only_gtid), bytes: raw.len() as u64 };
        let mut out = Vec::new();
        self.payload(released, vec![group], Vec::new()).encode(&mut out);
        out.append(&mut raw);
        out
    }

    fn payload(&self, released: Lsn, groups: Vec<EventGroup>, parts: Vec<Part>) -> Payload {
        let commit_time = super::now().as_micros() as u64;
        let original_commit_time = self.original_commit_micros;
        Payload { released, commit_time, original_commit_time, original_version: self.original_server_version, server_id: self.server_id, gtid: self.gtid, groups, parts }
    }

    fn rows_flags(&self) -> u16 {
        use highkey_binlog::transaction::flags2::{NO_FOREIGN_KEY_CHECKS, RELAXED_UNIQUE_CHECKS};
        let mut flags = 0;
        if self.flags2 & NO_FOREIGN_KEY_CHECKS != 0 {
            flags |= rows_flags::NO_FOREIGN_KEY_CHECKS;
        }
        if self.flags2 & RELAXED_UNIQUE_CHECKS != 0 {
            flags |= rows_flags::RELAXED_UNIQUE_CHECKS;
        }
        flags
    }
}

/// A row's change.
pub(crate) enum Change<'v> {
    Insert(&'v [Value]),
    Update(&'v [Value], &'v [Value]),
    Delete(&'v [Value]),
}

impl Change<'_> {
    fn kind(&self) -> RowsKind {
        match self {
            Change::Insert(_) => RowsKind::Write,
            Change::Update(..) => RowsKind::Update,
            Change::Delete(_) => RowsKind::Delete,
        }
    }
}

/// Rows of one table and kind, as they come.
struct OpenRows {
    table: Arc<TableMap>,
    kind: RowsKind,
    writer: RowsWriter<Arc<TableMap>>,
    /// Which columns an update changed.
    after: Bitmap,
    before: Bitmap,
}

/// A point to return to.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct EventMark {
    parts: usize,
    /// Of the buffer.
    len: usize,
    events: u32,
    logged: u64,
    begun: bool,
    told: bool,
}

/// See the module.
#[derive(Default)]
pub(crate) struct EventCache {
    source: EventSource,
    bytes_max: u64,
    /// The name of a transaction in two phases.
    xid: Option<Arc<Xid>>,
    /// Statements as text that come before the rows as transactions of their own (CREATE TABLE … SELECT).
    groups: Vec<EventGroup>,
    /// A BEGIN has been written.
    begun: bool,
    /// Nothing will follow it.
    empty: bool,
    /// The statement's text has been written.
    told: bool,
    buf: Vec<u8>,
    /// Logged before the commit.
    parts: Vec<Part>,
    /// Bytes in the parts.
    logged: u64,
    /// Events in the parts and in the buffer up to `counted`, those of `groups` left out.
    events: u32,
    counted: usize,
    rows: Option<OpenRows>,
    /// Where the last rows event of the statement begins, once it is ended.
    last_rows: Option<usize>,
}

impl EventCache {
    /// `xid`: of a transaction in two phases.
    pub fn new(xid: Option<Arc<Xid>>) -> EventCache {
        EventCache { xid, ..EventCache::default() }
    }

    /// A statement begins; the one before has ended. `bytes_max`: what all events may take.
    pub fn begin_statement(&mut self, source: EventSource, bytes_max: u64) {
        self.end_statement();
        self.source = source;
        self.bytes_max = bytes_max;
        self.told = false;
    }

    /// Bytes of all events so far.
    pub fn size(&self) -> u64 {
        self.logged + self.buf.len() as u64
    }

    /// They take more than they may.
    pub fn is_too_large(&self) -> bool {
        self.size() > self.bytes_max
    }

    /// Of these, those that are in the log already.
    pub fn logged(&self) -> u64 {
        self.logged
    }

    pub fn source(&self) -> &EventSource {
        &self.source
    }

    /// There is something to tell.
    pub fn tells(&self) -> bool {
        self.begun || !self.groups.is_empty()
    }

    pub fn is_empty_transaction(&self) -> bool {
        self.empty
    }

    /// The transaction is to be told even if it changes nothing: it has a GTID of its own.
    pub fn begin_empty(&mut self) {
        if !self.tells() {
            (self.begun, self.empty) = (true, true);
            self.source.begin(&mut self.buf);
        }
    }

    /// The statement is over: its last rows say so.
    pub fn end_statement(&mut self) {
        self.close_rows();
        if let Some(last) = self.last_rows.take() {
            set_statement_end(&mut self.buf[last..]);
        }
    }

    fn close_rows(&mut self) {
        if let Some(rows) = self.rows.take() {
            self.last_rows = rows.writer.finish(false, &mut self.buf).or(self.last_rows);
        }
    }

    fn count(&mut self) {
        self.events += event::split(&self.buf[self.counted..]).count() as u32;
        self.counted = self.buf.len();
    }

    /// A statement logged as its text, before the rows of the transaction. Error 1059: see `check_told`.
    pub fn add_statement(&mut self, sql: &str) -> Result<(), MySqlError> {
        debug_assert!(!self.begun, "statements as text come first");
        check_told(&self.source.schema)?;
        let start = self.buf.len();
        self.source.query(sql, &mut self.buf);
        self.groups.push(EventGroup { statement: true, events: 1, bytes: (self.buf.len() - start) as u64 });
        self.counted = self.buf.len();
        Ok(())
    }

    /// Notes a row's change that has been made.
    pub fn change(&mut self, inner: &mut Txn, table: &Arc<TableMap>, change: &Change<'_>) -> Result<()> {
        let kind = change.kind();
        let goes_on = self.rows.as_ref().is_some_and(|rows| rows.kind == kind && Arc::ptr_eq(&rows.table, table));
        if !goes_on {
            self.begin_rows(table, kind);
        }
        let rows = self.rows.as_mut().expect("begun");
        match change {
            Change::Insert(row) | Change::Delete(row) => rows.writer.push(row, &mut self.buf),
            Change::Update(old, new) => {
                let image = self.source.row_image;
                if image != RowImage::Full {
                    image.after(table, old, new, &mut rows.after);
                    rows.writer.set_columns(&rows.before, &rows.after, &mut self.buf);
                }
                rows.writer.push_update(old, new, &mut self.buf);
            }
        }
        if self.buf.len() >= PART_BYTES { self.log_part(inner) } else { Ok(()) }
    }

    /// Notes an inserted row that is in the table's encoding.
    pub fn insert_encoded(&mut self, inner: &mut Txn, table: &Table, row: &[u8]) -> Result<(), MySqlError> {
        let map = table.event_map(self.source.row_metadata)?;
        self.change(inner, map, &Change::Insert(&table.layout().values(row))).map_err(|e| table.failed(e))
    }

    fn begin_rows(&mut self, table: &Arc<TableMap>, kind: RowsKind) {
        let mapped = self.rows.as_ref().is_some_and(|rows| Arc::ptr_eq(&rows.table, table));
        let stamp = self.source.stamp();
        if mapped {
            self.close_rows();
        } else {
            // A replica opens the tables of a statement once, at its first rows: another table is another statement to it.
            self.end_statement();
            if !self.begun {
                self.begun = true;
                self.buf.reserve(SMALL_BYTES);
                match &self.xid {
                    None => self.source.begin(&mut self.buf),
                    Some(xid) => self.source.xa("START", xid, &mut self.buf),
                }
            }
            if let Some(text) = self.source.statement.as_ref().filter(|_| !self.told) {
                rows_query(stamp, text.as_bytes(), &mut self.buf);
                self.told = true;
            }
            table.write(stamp, &mut self.buf);
        }
        let image = self.source.row_image;
        let before = image.before(table);
        let after = image.inserted(table);
        let writer = RowsWriter::begin(kind, stamp, self.source.rows_flags(), table.clone(), &before, &after);
        self.rows = Some(OpenRows { table: table.clone(), kind, writer, after, before });
    }

    /// Everything but the last rows event goes into the log: that one may be the statement's last.
    fn log_part(&mut self, inner: &mut Txn) -> Result<()> {
        self.close_rows_for_part();
        let end = self.last_rows.unwrap_or(self.buf.len());
        if end == 0 {
            return Ok(());
        }
        let lsn = inner.log_events(&self.buf[..end])?;
        self.count();
        self.parts.push(Part { lsn, bytes: end as u32 });
        self.logged += end as u64;
        self.buf.drain(..end);
        self.counted = self.buf.len();
        self.last_rows = self.last_rows.map(|last| last - end);
        Ok(())
    }

    /// Ends the event; the next row of the same table and kind begins another one.
    fn close_rows_for_part(&mut self) {
        if let Some(rows) = &mut self.rows {
            self.last_rows = rows.writer.pause(&mut self.buf).or(self.last_rows);
        }
    }

    /// Ends what the statement has told so far.
    pub fn mark(&mut self) -> EventMark {
        self.end_statement();
        self.count();
        EventMark { parts: self.parts.len(), len: self.buf.len(), events: self.events, logged: self.logged, begun: self.begun, told: self.told }
    }

    /// Forgets everything since.
    pub fn return_to(&mut self, mark: &EventMark) {
        self.rows = None;
        self.last_rows = None;
        self.told = mark.told;
        if self.parts.len() == mark.parts {
            self.buf.truncate(mark.len);
            self.logged = mark.logged;
        } else {
            // What stood in the buffer then is the beginning of the first part logged since.
            self.buf.clear();
            let kept = usize::from(mark.len > 0);
            self.parts.truncate(mark.parts + kept);
            if let Some(part) = self.parts.get_mut(mark.parts) {
                part.bytes = mark.len as u32;
            }
            self.logged = mark.logged + mark.len as u64;
        }
        self.events = mark.events;
        self.counted = self.buf.len();
        self.begun = mark.begun;
    }

    /// What the commit record carries, or with `prepare` that which prepares the transaction; nothing if nothing was changed.
    pub fn finish(mut self, txn: u64, released: Lsn, prepare: bool) -> Vec<u8> {
        if !self.tells() {
            return Vec::new();
        }
        self.end_statement();
        let mut groups = std::mem::take(&mut self.groups);
        if self.begun {
            match &self.xid {
                None if self.empty => self.source.bracket(b"COMMIT", &mut self.buf),
                None => xid(self.source.stamp(), txn, &mut self.buf),
                Some(xid) => {
                    self.source.xa("END", xid, &mut self.buf);
                    xa::prepare(self.source.stamp(), xid, !prepare, &mut self.buf);
                }
            }
            self.count();
            let before: u64 = groups.iter().map(|g| g.bytes).sum();
            let bytes = self.logged + self.buf.len() as u64 - before;
            groups.push(EventGroup { statement: false, events: self.events, bytes });
        }
        let mut out = Vec::with_capacity(self.buf.len() + 64);
        self.source.payload(released, groups, self.parts).encode(&mut out);
        out.append(&mut self.buf);
        out
    }
}

/// Error 1059 for a name that has no room in an event. Names have 64 characters of three bytes at most, but those of a database that an earlier version has
/// made may have four.
fn check_told(name: &str) -> Result<(), MySqlError> {
    if name.len() > event::NAME_BYTES_MAX { Err(error::name_too_long(name)) } else { Ok(()) }
}

/// How the binary log describes a table. Error 1059: see `check_told`.
pub(crate) fn table_map(def: &TableDef, metadata: RowMetadata) -> Result<TableMap, MySqlError> {
    check_told(&def.schema)?;
    check_told(&def.name)?;
    // As in MySQL: without a primary key the first unique one that finds a row as surely.
    let finds = |index: &&IndexDef| {
        index.kind == IndexKind::Unique
            && index.parts.iter().all(|part| {
                let column = &def.columns[part.column];
                part.prefix.is_none() && !column.nullable && column.generated.as_ref().is_none_or(|generated| generated.stored)
            })
    };
    let key = def.primary_key().or_else(|| def.indexes.iter().find(finds));
    let columns: Vec<Column<'_>> = def
        .columns
        .iter()
        .enumerate()
        .map(|(i, column)| Column {
            name: &column.name,
            ty: &column.ty,
            nullable: column.nullable,
            primary_key: key.and_then(|key| {
                let position = key.parts.iter().position(|part| part.column == i)?;
                Some(PrimaryKeyPart { position: position as u16, prefix: key.parts[position].prefix.unwrap_or(0) })
            }),
            visible: !column.invisible,
        })
        .collect();
    // The number has 48 bits; a replica forgets it with the statement.
    let id = (def.id.0 << 16 | def.version & 0xFFFF) & 0xFFFF_FFFF_FFFF;
    Ok(TableMap::new(id, &def.schema, &def.name, &columns, metadata))
}
