//! Locking reads under DataFusion. A scan with FOR UPDATE or FOR SHARE reads and locks the latest committed rows, which no snapshot
//! shows; so it runs first, here, and its rows take the scan's place in the plan.

use std::sync::Arc;

use futures::future::BoxFuture;
use highkey_table::{Direction, KeyRange, LockMode, LockWaitPolicy, Row, Table};
use highkey_types::{MySqlError, Value};

use super::target::to_session;
use crate::bind::ROW_ID;
use crate::expr;
use crate::parse::ast::LockWait;
use crate::plan::{self, Expr, LockSpec, Rel, RelKind};
use crate::session::Session;

pub(crate) fn lock_mode(lock: LockSpec) -> LockMode {
    if lock.exclusive { LockMode::Exclusive } else { LockMode::Shared }
}

pub(crate) fn lock_policy(wait: LockWait) -> LockWaitPolicy {
    match wait {
        LockWait::Wait => LockWaitPolicy::Wait,
        LockWait::NoWait => LockWaitPolicy::NoWait,
        LockWait::SkipLocked => LockWaitPolicy::SkipLocked,
    }
}

/// How rows to lock are found: an index and its ranges, with what is left to check.
pub(crate) struct Access {
    pub index: usize,
    pub ranges: Vec<KeyRange>,
    /// Each range is a whole unique key.
    pub unique: bool,
    pub residual: Option<Expr>,
}

impl Session {
    /// The best index for a condition over a row whose field i is table column `columns[i]`; the whole table if none answers.
    pub(crate) fn access(&mut self, table: &Arc<Table>, columns: &[usize], filter: Option<&Expr>) -> Result<Access, MySqlError> {
        if let Some(filter) = filter
            && let Some(best) = plan::best_access(filter, table.def(), columns)
        {
            let ranges = plan::key_ranges(&best, table.def(), &mut self.state)?;
            return Ok(Access { index: best.index, ranges, unique: best.unique, residual: best.residual });
        }
        Ok(Access { index: 0, ranges: vec![KeyRange::all()], unique: false, residual: filter.cloned() })
    }

    /// Replaces every locking scan of a plan by the rows it locks.
    pub(crate) fn materialise_locked<'a>(&'a mut self, rel: &'a mut Rel) -> BoxFuture<'a, Result<(), MySqlError>> {
        Box::pin(self.materialise(rel))
    }

    async fn materialise(&mut self, rel: &mut Rel) -> Result<(), MySqlError> {
        // The filter directly above a scan says which of its rows are to be locked.
        let filtered = match &rel.kind {
            RelKind::Filter { input, predicate } if is_locking_scan(input) && !predicate.has_subquery() => Some(predicate.clone()),
            _ => None,
        };
        if let Some(predicate) = filtered {
            let RelKind::Filter { input, .. } = &mut rel.kind else { return Ok(()) };
            return self.lock_scan(input, Some(&predicate)).await;
        }
        if is_locking_scan(rel) {
            return self.lock_scan(rel, None).await;
        }
        for input in rel.inputs_mut() {
            self.materialise_locked(input).await?;
        }
        Ok(())
    }

    async fn lock_scan(&mut self, rel: &mut Rel, filter: Option<&Expr>) -> Result<(), MySqlError> {
        let RelKind::Scan { table, columns, lock: Some(lock), .. } = &rel.kind else { return Ok(()) };
        let (table, columns, lock) = (table.clone(), columns.clone(), *lock);
        let rows = self.locked_rows(&table, &columns, filter, lock).await?;
        let fields = &rel.fields;
        let values = rows
            .iter()
            .map(|row| {
                let mut values = self.project(&table, row, &columns);
                values.drain(..).zip(fields).map(|(value, field)| Expr::literal(value, field.ty.clone())).collect()
            })
            .collect();
        rel.kind = RelKind::Values { rows: values };
        Ok(())
    }

    /// The columns of a row that a scan puts out, as expressions see them.
    fn project(&self, table: &Table, row: &Row, columns: &[usize]) -> Vec<Value> {
        columns
            .iter()
            .map(|&c| {
                if c == ROW_ID {
                    return row_id(row.key());
                }
                let mut value = row.value(c);
                if matches!(table.columns()[c].ty.kind, highkey_types::TypeKind::Timestamp(_)) {
                    to_session(&mut value, &self.state.config.time_zone);
                }
                value
            })
            .collect()
    }

    /// Locks the rows that satisfy `filter`, which is over `columns`.
    pub(crate) async fn locked_rows(&mut self, table: &Arc<Table>, columns: &[usize], filter: Option<&Expr>, lock: LockSpec) -> Result<Vec<Row>, MySqlError> {
        let access = self.access(table, columns, filter)?;
        let mut kept = Vec::new();
        for range in &access.ranges {
            let (txn, _) = self.txn_and_state();
            let mut scan = table.scan_locking(txn, access.index, range, Direction::Forward, lock_mode(lock), lock_policy(lock.wait));
            loop {
                let (txn, _) = self.txn_and_state();
                let rows = scan.collect(txn, 1024).await?;
                if rows.is_empty() {
                    break;
                }
                for row in rows {
                    let keep = match &access.residual {
                        None => true,
                        Some(condition) => {
                            let values = self.project(table, &row, columns);
                            expr::eval_condition(condition, &values, &mut self.state)?
                        }
                    };
                    if keep {
                        kept.push(row);
                    }
                }
            }
        }
        Ok(kept)
    }
}

/// The hidden row id of a table without primary key: its clustered key is the number, most significant byte first.
pub(crate) fn row_id(key: &[u8]) -> Value {
    key.try_into().map_or(Value::Null, |bytes| Value::UInt(u64::from_be_bytes(bytes)))
}

fn is_locking_scan(rel: &Rel) -> bool {
    matches!(rel.kind, RelKind::Scan { lock: Some(_), .. })
}
