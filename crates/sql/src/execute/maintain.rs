//! CHECK, ANALYZE, OPTIMIZE, REPAIR and CHECKSUM TABLE.

use std::sync::Arc;

use highkey_binlog::RecordSum;
use highkey_table::{Default as ColumnDefault, Direction, KeyRange, RowBatch, Table};
use highkey_types::{Level, MySqlError, Value, errors};

use super::ddl::blocking_ddl;
use super::{Failure, Outcome};
use crate::parse::ast::{Maintenance, ObjectName};
use crate::session::{ResultSink, Session};
use crate::show::Answer;
use crate::sys;

impl Session {
    /// Tells the binary log, as MySQL does, of what has been done for a table and changes no definition.
    pub(crate) async fn log_maintenance(&mut self) -> Result<(), MySqlError> {
        // A server that only reads has no transactions of its own.
        if self.state.locks.has_read_lock() || self.check_server_writable().is_err() {
            return Ok(());
        }
        let cx = self.ddl_context();
        if cx.log.is_none() {
            return Ok(());
        }
        // The work is done; nobody waits for the commit gate with what a backup waits for.
        self.end_change();
        self.begin_commit().await?;
        let told = self.state.instance.database().log_needless_drop(&cx);
        self.end_change();
        told
    }

    pub(crate) async fn maintain(&mut self, operation: Maintenance, tables: &[ObjectName], options: &[String], sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        let mut rows = Vec::new();
        for name in tables {
            let (schema, table) = self.table_name(name)?;
            let shown = format!("{schema}.{table}");
            // OPTIMIZE is a change of the table, CHECKSUM takes what it may not read for missing.
            let changes = operation == Maintenance::Optimize;
            let allowed = match self.check_locked([name], changes) {
                Ok(()) if changes && self.state.locks.has_read_lock() && !self.state.is_temporary(name) => Err(errors::cant_update_with_readlock()),
                allowed => allowed,
            };
            let found = allowed.and_then(|()| self.state.base_table(&schema, &table));
            if operation == Maintenance::Checksum {
                let checksum = match found {
                    // What a table would have to keep beside its rows, and none does.
                    Ok(_) if options.iter().any(|option| option == "QUICK") => Value::Null,
                    Ok(table) => self.checksum(&table).await?,
                    Err(e) => {
                        self.state.push_warning(e.into_warning(Level::Error));
                        Value::Null
                    }
                };
                rows.push(vec![Value::text(shown), checksum]);
                continue;
            }
            let op = match operation {
                Maintenance::Check => "check",
                Maintenance::Analyze => "analyze",
                Maintenance::Optimize => "optimize",
                _ => "repair",
            };
            let mut line = |kind: &str, text: &str| rows.push(vec![Value::text(shown.as_str()), Value::text(op), Value::text(kind), Value::text(text)]);
            let temporary = self.state.temporary.find(&schema, &table).is_some();
            if let Some(view) = sys::find_view(&self.state.instance.database().catalog(), &schema, &table).filter(|_| !temporary) {
                match (operation, super::view::columns(&self.state, &view)) {
                    (Maintenance::Check, Ok(_)) => line("status", "OK"),
                    (Maintenance::Check, Err(e)) => {
                        line("Error", &e.message);
                        line("error", "Corrupt");
                    }
                    _ => {
                        line("Error", &errors::wrong_object(&schema, &table, "BASE TABLE").message);
                        line("status", "Operation failed");
                    }
                }
                continue;
            }
            let table = match found {
                Ok(table) => table,
                Err(e) => {
                    line("Error", &e.message);
                    line("status", "Operation failed");
                    continue;
                }
            };
            match operation {
                Maintenance::Check => {
                    let said = |option: &str| options.iter().any(|o| o == option);
                    let quick = said("QUICK");
                    let checked = self.with_own_view(&table, |table, txn| table.check(txn, quick)).await;
                    self.state.process.check()?;
                    let report = checked?;
                    if said("EXTENDED") && !report.pages_judged {
                        line("note", "Others were writing: whose the pages are was not looked at");
                    }
                    report.errors.iter().for_each(|e| line("error", e));
                    line(if report.is_ok() { "status" } else { "error" }, if report.is_ok() { "OK" } else { "Corrupt" });
                }
                Maintenance::Analyze => {
                    self.with_own_view(&table, |table, txn| table.analyze(txn)).await?;
                    line("status", "OK");
                }
                Maintenance::Optimize => {
                    if let Err(e) = self.begin_definition().await {
                        self.state.process.check()?;
                        line("Error", &e.message);
                        line("status", "Operation failed");
                        continue;
                    }
                    line("note", "Table does not support optimize, doing recreate + analyze instead");
                    match self.compact(&table).await {
                        Ok(()) => line("status", "OK"),
                        Err(e) => {
                            self.state.process.check()?;
                            line("error", &e.message);
                            line("status", "Operation failed");
                        }
                    }
                }
                _ => line("note", "The storage engine for the table doesn't support repair"),
            }
        }
        let columns = if operation == Maintenance::Checksum { "Table s128;Checksum u?" } else { "Table s128;Op s10;Msg_type s10;Msg_text S" };
        self.send(Answer::new(columns, rows), false, sink).await
    }

    /// What InnoDB makes of OPTIMIZE, ALTER … FORCE and ALTER … ENGINE: dense indexes and new statistics. Others use the table meanwhile.
    pub(super) async fn compact(&mut self, table: &Arc<Table>) -> Result<(), MySqlError> {
        self.with_own_view(table, |table, txn| table.compact(txn)).await?;
        self.with_own_view(table, |table, txn| table.analyze(txn)).await?;
        Ok(())
    }

    /// Runs something under a transaction of its own that holds the table.
    pub(super) async fn with_own_view<T>(&mut self, table: &Arc<Table>, f: impl FnOnce(&Arc<Table>, &mut highkey_table::Transaction) -> Result<T, MySqlError>) -> Result<T, MySqlError> {
        let mut txn = self.state.instance.database().begin_in(highkey_table::Isolation::RepeatableRead, &self.state.locks);
        txn.set_interrupt(self.state.process.flag());
        txn.set_progress(self.state.process.progress());
        txn.set_metadata_lock_timeout(self.state.config.metadata_timeout);
        let def = table.def();
        let table = match table.is_temporary() {
            true => table.clone(),
            false => txn.table(&def.schema, &def.name).await?,
        };
        let outcome = blocking_ddl(async { f(&table, &mut txn) }).await;
        txn.rollback().await?;
        outcome
    }

    /// MySQL's sum over all rows, in whatever order: the same as of an equal table there.
    async fn checksum(&mut self, table: &Arc<Table>) -> Result<Value, MySqlError> {
        let process = self.state.process.clone();
        self.with_own_view(table, |table, txn| {
            let mut scan = table.scan(txn, 0, &KeyRange::all(), Direction::Forward)?;
            let mut batch = RowBatch::new();
            let def = table.def();
            let columns = def.columns.iter().map(|column| match &column.default {
                ColumnDefault::Literal(value) => (&column.ty, column.nullable, Some(value)),
                _ => (&column.ty, column.nullable, None),
            });
            let dynamic = def.row_format.as_deref().is_some_and(|format| format.eq_ignore_ascii_case("dynamic"));
            let (rows, mut buffer) = (RecordSum::new(columns, dynamic), Vec::new());
            let mut sum: u32 = 0;
            while scan.next_batch(&mut batch)? {
                process.check()?;
                for i in 0..batch.len() {
                    sum = sum.wrapping_add(rows.of(&batch.values(i), &mut buffer));
                }
            }
            Ok(Value::UInt(u64::from(sum)))
        })
        .await
    }
}
