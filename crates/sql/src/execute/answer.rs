//! Results on their way to a sink.

use std::io;

use async_trait::async_trait;
use highkey_table::{ColumnDef, Default};
use highkey_types::{Charset, Collation, MySqlError, Value, column_flags};

use super::target::implicit_default;
use super::{Failure, Outcome, view};
use crate::bind::{BindContext, TableSource};
use crate::plan::{ExprType, Field};
use crate::session::{Column, ColumnFlags, ResultSink, Session, SessionState};
use crate::show::{Answer, BinlogEvents};

/// Columns as the client is told about them.
pub fn columns(state: &SessionState, fields: &[Field]) -> Vec<Column> {
    fields.iter().map(|f| column(state, f)).collect()
}

fn column(state: &SessionState, field: &Field) -> Column {
    let ty = &field.ty.ty;
    let mut flags = field.flags | ty.column_flags();
    if !field.ty.nullable {
        flags |= ColumnFlags::NOT_NULL;
    }
    if field.org_name.is_empty() && (ty.is_number() || ty.is_temporal()) {
        // What is computed is of the binary character set, and says so.
        flags |= column_flags::BINARY;
    }
    let text = (ty.is_text() || matches!(ty.kind, highkey_types::TypeKind::Enum(_) | highkey_types::TypeKind::Set(_) | highkey_types::TypeKind::Json)) && ty.charset() != Charset::Binary;
    let collation = match (text, state.config.charset_results) {
        (true, Some(charset)) => Collation::default_of(charset),
        (true, None) => ty.collation,
        (false, _) => Collation::binary(),
    };
    Column {
        schema: field.schema.to_string(),
        table: field.table.to_string(),
        org_table: field.org_table.to_string(),
        name: field.name.to_string(),
        org_name: field.org_name.to_string(),
        ty: ty.clone(),
        flags: ColumnFlags(flags),
        collation,
    }
}

/// The columns of a table or view of the current schema as they are defined; none of a table whose rows the session makes.
pub fn defined_columns(state: &SessionState, name: &str) -> Result<Vec<ColumnDef>, MySqlError> {
    let schema = state.current_schema().unwrap_or_default();
    if let Some(table) = state.temporary_table(&schema, name) {
        return Ok(table.columns().to_vec());
    }
    match state.table(&schema, name)? {
        TableSource::Base(table) => Ok(table.columns().to_vec()),
        TableSource::View(view) => view::columns(state, &view),
        TableSource::Virtual(_) => Ok(Vec::new()),
    }
}

/// What a column is in a row that is filled with constants alone: what is computed (CURRENT_TIMESTAMP, too) leaves NULL, or zero or nothing in a column that
/// takes no NULL.
pub fn empty_value(column: &Column, def: Option<&ColumnDef>) -> Value {
    match def.map(|def| &def.default) {
        Some(Default::Literal(value)) => value.clone(),
        _ if column.flags.has(ColumnFlags::NOT_NULL) => implicit_default(&column.ty),
        _ => Value::Null,
    }
}

impl Session {
    /// Sends a result set made in memory. `found`: it is what FOUND_ROWS() counts.
    pub(crate) async fn send(&mut self, answer: Answer, found: bool, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        sink.columns(&columns(&self.state, &answer.fields));
        for row in &answer.rows {
            sink.row(row);
            if sink.wants_flush() {
                sink.flush().await?;
            }
        }
        Ok(Outcome::Rows { count: answer.rows.len() as u64, found })
    }

    /// A file may be long: what is in memory is a piece of it.
    pub(crate) async fn send_binlog_events(
        &mut self,
        answer: Answer,
        mut events: Option<BinlogEvents>,
        found: bool,
        sink: &mut dyn ResultSink,
    ) -> Result<Outcome, Failure> {
        let (mut rows, mut count) = (answer.rows, 0);
        let mut begun = false;
        loop {
            if let Some(events) = &mut events {
                let state = &self.state;
                rows = state.instance.database().engine().blocking(|| events.next_rows(state))?;
            }
            if !begun {
                sink.columns(&columns(&self.state, &answer.fields));
                begun = true;
            }
            for row in &rows {
                sink.row(row);
                if sink.wants_flush() {
                    sink.flush().await?;
                }
            }
            count += rows.len() as u64;
            if events.as_ref().is_none_or(BinlogEvents::is_done) {
                return Ok(Outcome::Rows { count, found });
            }
        }
    }
}

/// A sink that keeps nothing but the first error.
#[derive(Default)]
pub struct DiscardingSink {
    pub error: Option<MySqlError>,
}

impl ResultSink for DiscardingSink {
    fn columns(&mut self, _columns: &[Column]) {}
    fn row(&mut self, _row: &[Value]) {}
    fn error(&mut self, error: &MySqlError) {
        self.error.get_or_insert_with(|| error.clone());
    }
}

/// The first rows of a query, which ends with the last of them.
pub(crate) struct FirstRows {
    most: usize,
    pub types: Vec<ExprType>,
    pub rows: Vec<Vec<Value>>,
}

impl FirstRows {
    pub fn new(most: usize) -> FirstRows {
        FirstRows { most, types: Vec::new(), rows: Vec::new() }
    }

    /// What became of the query: that it was ended is no failure.
    pub fn ended<T>(&self, ran: Result<T, Failure>) -> Result<(), Failure> {
        match ran {
            Err(Failure::Io(_)) if self.wants_flush() => Ok(()),
            ran => ran.map(|_| ()),
        }
    }
}

#[async_trait]
impl ResultSink for FirstRows {
    fn columns(&mut self, columns: &[Column]) {
        self.types = columns.iter().map(|column| ExprType::column(column.ty.clone(), true)).collect();
    }

    fn row(&mut self, row: &[Value]) {
        if self.rows.len() < self.most {
            self.rows.push(row.to_vec());
        }
    }

    fn wants_flush(&self) -> bool {
        self.rows.len() >= self.most
    }

    /// Whoever sends the rows ends when they cannot be sent.
    async fn flush(&mut self) -> io::Result<()> {
        Err(io::Error::other("there are rows enough"))
    }
}

/// Sends the rows that a LIMIT leaves of all, and counts these.
pub(crate) struct CountedRows<'a> {
    sink: &'a mut dyn ResultSink,
    offset: u64,
    count: u64,
    pub all: u64,
    pub sent: u64,
}

impl<'a> CountedRows<'a> {
    pub fn new(sink: &'a mut dyn ResultSink, offset: u64, count: u64) -> CountedRows<'a> {
        CountedRows { sink, offset, count, all: 0, sent: 0 }
    }
}

#[async_trait]
impl ResultSink for CountedRows<'_> {
    fn columns(&mut self, columns: &[Column]) {
        self.sink.columns(columns);
    }

    fn row(&mut self, row: &[Value]) {
        self.all += 1;
        if self.all > self.offset && self.sent < self.count {
            self.sent += 1;
            self.sink.row(row);
        }
    }

    fn wants_flush(&self) -> bool {
        self.sink.wants_flush()
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.sink.flush().await
    }
}
