//! Results on their way to a sink.

use highkey_types::{Charset, Collation, MySqlError, Value, column_flags};

use super::{Failure, Outcome};
use crate::plan::Field;
use crate::session::{Column, ColumnFlags, ResultSink, Session, SessionState};
use crate::show::Answer;

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
