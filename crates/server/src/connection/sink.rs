//! Results as packets.

use std::io;

use async_trait::async_trait;
use bytes::Bytes;
use highkey_protocol::{
    CapabilityFlags, ColumnDefinition, OkInfo, PacketWriter, StatusFlags, encode_binary_row, encode_column, encode_eof, encode_error,
    encode_local_infile, encode_ok, encode_ok_eof, encode_text_row, put_lenenc_int,
};
use highkey_sql::{Column, LocalInfile, OkSummary, ResultSink, Session};
use highkey_types::{ALL_DIGITS, Charset, ColumnType, MySqlError, TypeKind, Value, errors};

use super::packet_error;
use super::progress::{Reporter, Reports};
use super::wire::{FLUSH_BYTES, Wire};

/// Writes one command's results to the connection, in the text or the binary protocol.
pub struct PacketSink<'a> {
    wire: &'a mut Wire,
    progress: Progress,
    capabilities: CapabilityFlags,
    binary: bool,
    /// Only the columns are sent; rows are fetched later.
    cursor: bool,
    /// Of the end of the columns that come next.
    announced: StatusFlags,
    types: Vec<ColumnType>,
    /// In which each column's text is sent.
    charsets: Vec<Charset>,
}

impl<'a> PacketSink<'a> {
    pub fn new(wire: &'a mut Wire, capabilities: CapabilityFlags, binary: bool) -> Self {
        let announced = StatusFlags::SERVER_STATUS_AUTOCOMMIT;
        Self { wire, progress: Progress::default(), capabilities, binary, cursor: false, announced, types: Vec::new(), charsets: Vec::new() }
    }

    /// Reports progress until the answer begins, to a client that knows what that is.
    pub fn reporting(mut self, session: &Session) -> Self {
        if self.capabilities.contains(CapabilityFlags::CLIENT_PROGRESS_OBSOLETE) {
            self.progress.reporter = Reporter::of(session);
            self.progress.begin(self.wire);
        }
        self
    }

    /// For an execution that opens a cursor: the end of the columns is the end of the answer.
    pub fn opening_cursor(mut self, cursor: bool) -> Self {
        self.cursor = cursor;
        self
    }

    /// For COM_STMT_FETCH: rows of the columns that the execution announced.
    pub fn fetching(mut self, format: RowFormat) -> Self {
        (self.types, self.charsets) = (format.types, format.charsets);
        self
    }

    /// How rows of the announced columns are written.
    pub fn into_format(mut self) -> RowFormat {
        RowFormat { types: std::mem::take(&mut self.types), charsets: std::mem::take(&mut self.charsets) }
    }

    fn deprecate_eof(&self) -> bool {
        self.capabilities.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF)
    }

    /// Where the answer is written; its first packet ends the reports.
    fn writer(&mut self) -> &mut PacketWriter {
        self.progress.end(self.wire);
        &mut self.wire.writer
    }
}

impl Drop for PacketSink<'_> {
    /// A command may end without an answer of its own.
    fn drop(&mut self) {
        self.progress.end(self.wire);
    }
}

/// The progress reports of a command.
#[derive(Default)]
struct Progress {
    reporter: Option<Reporter>,
    running: Option<Reports>,
}

impl Progress {
    fn begin(&mut self, wire: &Wire) {
        self.running = self.reporter.as_ref().map(|reporter| reporter.begin(wire));
    }

    fn end(&mut self, wire: &mut Wire) {
        if let Some(running) = self.running.take() {
            wire.writer.set_sequence(running.end());
        }
    }
}

/// How the rows of a result set are written: kept while a cursor is open.
#[derive(Clone, Default)]
pub struct RowFormat {
    types: Vec<ColumnType>,
    charsets: Vec<Charset>,
}

/// In which a column's text is sent: what its definition says, or as the column stores it where that says bytes.
fn charset_of(column: &Column) -> Charset {
    match column.collation.charset {
        Charset::Binary => column.ty.charset(),
        charset => charset,
    }
}

/// What the client is told about a column.
pub fn column_definition(column: &Column) -> ColumnDefinition<'_> {
    ColumnDefinition {
        schema: &column.schema,
        table: &column.table,
        org_table: &column.org_table,
        name: &column.name,
        org_name: &column.org_name,
        collation: column.collation.id,
        length: announced_length(column),
        wire_type: column.ty.wire_type(),
        flags: column.flags.0,
        // A computed string has no point to count from.
        decimals: if column.org_name.is_empty() && (column.ty.is_text() || (column.ty.is_binary() && !column.ty.is_geometry())) { ALL_DIGITS } else { column.ty.decimals() },
    }
}

/// The definition of a column with a value of it behind, as COM_FIELD_LIST is answered.
pub fn put_column_and_value(out: &mut Vec<u8>, column: &Column, value: &Value) {
    encode_column(out, &column_definition(column));
    encode_text_row(out, std::slice::from_ref(value), std::slice::from_ref(&column.ty), &[charset_of(column)]);
}

/// Bytes of the longest value. Of a short text those are counted in the character set that the client is told.
fn announced_length(column: &Column) -> u32 {
    let (ty, length) = (&column.ty, column.ty.display_length());
    let recoded = (ty.is_text() && !ty.is_blob()) || matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_));
    let (own, told) = (ty.charset(), column.collation.charset);
    if !recoded || own == told || own == Charset::Binary || told == Charset::Binary {
        return length;
    }
    (length / own.max_bytes() as u32).saturating_mul(told.max_bytes() as u32)
}

fn ok_info(summary: &OkSummary) -> OkInfo<'_> {
    OkInfo {
        affected_rows: summary.affected_rows,
        last_insert_id: summary.last_insert_id,
        status: StatusFlags::from_bits_retain(summary.status.0),
        warnings: summary.warnings,
        info: &summary.info,
    }
}

#[async_trait]
impl ResultSink for PacketSink<'_> {
    fn columns(&mut self, columns: &[Column]) {
        self.types = columns.iter().map(|c| c.ty.clone()).collect();
        self.charsets = columns.iter().map(charset_of).collect();
        self.writer().packet(|out| put_lenenc_int(out, columns.len() as u64));
        for column in columns {
            self.writer().packet(|out| encode_column(out, &column_definition(column)));
        }
        let announced = std::mem::replace(&mut self.announced, StatusFlags::SERVER_STATUS_AUTOCOMMIT);
        if !self.deprecate_eof() && !self.cursor {
            // The status that counts comes with the end, but for OUT parameters.
            self.writer().packet(|out| encode_eof(out, announced, 0));
        }
    }

    fn announce(&mut self, status: highkey_sql::StatusFlags) {
        self.announced = StatusFlags::from_bits_retain(status.0);
    }

    fn row(&mut self, row: &[Value]) {
        let (types, charsets, binary) = (&self.types, &self.charsets, self.binary);
        // Behind the columns, which ended the reports.
        self.wire.writer.packet(|out| {
            if binary { encode_binary_row(out, row, types, charsets) } else { encode_text_row(out, row, types, charsets) }
        });
    }

    fn end(&mut self, summary: OkSummary) {
        let deprecate = self.deprecate_eof();
        self.writer().packet(|out| {
            if deprecate {
                encode_ok_eof(out, &ok_info(&summary));
            } else {
                encode_eof(out, StatusFlags::from_bits_retain(summary.status.0), summary.warnings);
            }
        });
    }

    fn ok(&mut self, summary: OkSummary) {
        self.writer().packet(|out| encode_ok(out, &ok_info(&summary)));
    }

    fn error(&mut self, error: &MySqlError) {
        let capabilities = self.capabilities;
        self.writer().packet(|out| encode_error(out, error, capabilities));
    }

    fn wants_flush(&self) -> bool {
        self.wire.writer.len() >= FLUSH_BYTES
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.wire.flush().await
    }

    async fn local_infile(&mut self, name: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        self.writer().packet(|out| encode_local_infile(out, name));
        self.wire.flush().await.map_err(|_| errors::net_error_on_write())?;
        self.wire.reader.set_sequence(self.wire.writer.sequence());
        Ok(Box::new(ClientFile { wire: self.wire, progress: &mut self.progress, ended: false }))
    }
}

/// The packets of a client's file, up to the empty one.
struct ClientFile<'a> {
    wire: &'a mut Wire,
    progress: &'a mut Progress,
    ended: bool,
}

#[async_trait]
impl LocalInfile for ClientFile<'_> {
    async fn next_chunk(&mut self) -> Result<Option<Bytes>, MySqlError> {
        if self.ended {
            return Ok(None);
        }
        let packet = match self.wire.receive().await {
            Ok(Some(Ok(packet))) => packet,
            Ok(Some(Err(e))) => return Err(packet_error(&e)),
            Ok(None) | Err(_) => return Err(errors::net_read_error()),
        };
        self.wire.writer.set_sequence(self.wire.reader.sequence());
        self.ended = packet.is_empty();
        if self.ended {
            // While it sent, the client listened to nothing.
            self.progress.begin(self.wire);
        }
        Ok(if self.ended { None } else { Some(packet.into()) })
    }
}

#[cfg(test)]
mod tests {
    use highkey_sql::ColumnFlags;
    use highkey_types::{Collation, TypeKind};

    use super::*;

    /// `character_set_results` is NULL, binary and one of its own. Answers of MySQL 8.0.12.
    #[test]
    fn text_is_sent_as_the_column_stores_it_unless_results_have_a_character_set() {
        let latin1 = Collation::by_name("latin1_swedish_ci").unwrap();
        let sent = |stored: &'static Collation, announced: &'static Collation| {
            let ty = ColumnType { collation: stored, ..ColumnType::new(TypeKind::VarChar(20)) };
            let none = String::new;
            charset_of(&Column { schema: none(), table: none(), org_table: none(), name: none(), org_name: none(), ty, flags: ColumnFlags(0), collation: announced })
        };
        assert_eq!(sent(latin1, latin1), Charset::Latin1);
        assert_eq!(sent(latin1, Collation::binary()), Charset::Latin1);
        assert_eq!(sent(Collation::utf8mb4(), Collation::binary()), Charset::Utf8mb4);
        assert_eq!(sent(latin1, Collation::utf8mb4()), Charset::Utf8mb4);
        assert_eq!(sent(Collation::utf8mb4(), latin1), Charset::Latin1);
    }
}
