//! A query's result on its way to the session.

use std::sync::Arc;

use datafusion::arrow::array::RecordBatch;
use datafusion::common::Result;
use highkey_types::{ColumnType, MySqlError, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::engine::QueryEngine;
use super::error::to_mysql;
use super::repr::ColumnReader;
use crate::plan::Field;

/// Batches that may wait for the client; the query stops while they do.
pub(super) const BATCHES_AHEAD: usize = 4;

/// Rows of a running query. Dropping it ends the query.
pub struct RowStream {
    fields: Arc<[Field]>,
    batches: mpsc::Receiver<Result<RecordBatch>>,
    task: JoinHandle<()>,
    /// The threads live as long as a query runs on them.
    _engine: Arc<QueryEngine>,
}

impl RowStream {
    pub(super) fn new(fields: Arc<[Field]>, batches: mpsc::Receiver<Result<RecordBatch>>, task: JoinHandle<()>, engine: Arc<QueryEngine>) -> RowStream {
        RowStream { fields, batches, task, _engine: engine }
    }

    /// The next rows; `None` at the end. After an error there is nothing more.
    pub async fn next(&mut self) -> Result<Option<Rows>, MySqlError> {
        loop {
            match self.batches.recv().await {
                None => return Ok(None),
                Some(Ok(batch)) if batch.num_rows() == 0 => continue,
                Some(Ok(batch)) => return Ok(Some(Rows { batch, fields: self.fields.clone() })),
                Some(Err(error)) => return Err(to_mysql(&error)),
            }
        }
    }
}

impl Drop for RowStream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Some rows of a result.
pub struct Rows {
    batch: RecordBatch,
    fields: Arc<[Field]>,
}

impl Rows {
    #[cfg(test)]
    pub(super) fn new(batch: RecordBatch, fields: Arc<[Field]>) -> Rows {
        Rows { batch, fields }
    }

    pub fn len(&self) -> usize {
        self.batch.num_rows()
    }

    /// Bytes of memory that they take, about: rows of several batches may share some.
    pub fn bytes(&self) -> usize {
        self.batch.get_array_memory_size()
    }

    /// Calls `row` with each row's values, in the result's types. Stops at the first error.
    pub fn for_each<E>(&self, row: impl FnMut(&[Value]) -> Result<(), E>) -> Result<(), E> {
        self.for_each_from(0, row)
    }

    /// As `for_each`, without the first rows.
    pub fn for_each_from<E>(&self, first: usize, mut row: impl FnMut(&[Value]) -> Result<(), E>) -> Result<(), E> {
        let types: Vec<&ColumnType> = self.fields.iter().map(|f| &f.ty.ty).collect();
        let readers: Vec<ColumnReader> = self.batch.columns().iter().zip(&types).map(|(array, ty)| ColumnReader::new(array.as_ref(), ty)).collect();
        let mut values = vec![Value::Null; readers.len()];
        for i in first..self.batch.num_rows() {
            for (value, reader) in values.iter_mut().zip(&readers) {
                *value = reader.get(i);
            }
            row(&values)?;
        }
        Ok(())
    }

    pub fn to_vec(&self) -> Vec<Vec<Value>> {
        let mut rows = Vec::with_capacity(self.len());
        let Ok(()) = self.for_each(|row| {
            rows.push(row.to_vec());
            Ok::<(), std::convert::Infallible>(())
        });
        rows
    }
}
