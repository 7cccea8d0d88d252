//! How far the statement is that EXPLAIN FOR CONNECTION explains.

use async_trait::async_trait;
use highkey_types::{MySqlError, Value};

use crate::session::{Column, LocalInfile, OkSummary, ResultSink};

/// Adds lines to the text that a plan's only row is.
pub(super) struct WithProgress<'a> {
    pub sink: &'a mut dyn ResultSink,
    pub progress: Vec<String>,
}

#[async_trait]
impl ResultSink for WithProgress<'_> {
    fn columns(&mut self, columns: &[Column]) {
        self.sink.columns(columns);
    }

    fn row(&mut self, row: &[Value]) {
        match row {
            [Value::Text(plan)] if !self.progress.is_empty() => self.sink.row(&[Value::text(format!("{plan}{}\n", self.progress.join("\n")))]),
            other => self.sink.row(other),
        }
    }

    fn end(&mut self, summary: OkSummary) {
        self.sink.end(summary);
    }

    fn ok(&mut self, summary: OkSummary) {
        self.sink.ok(summary);
    }

    fn error(&mut self, error: &MySqlError) {
        self.sink.error(error);
    }

    fn wants_flush(&self) -> bool {
        self.sink.wants_flush()
    }

    async fn flush(&mut self) -> std::io::Result<()> {
        self.sink.flush().await
    }

    async fn local_infile(&mut self, name: &str) -> Result<Box<dyn LocalInfile + '_>, MySqlError> {
        self.sink.local_infile(name).await
    }
}
