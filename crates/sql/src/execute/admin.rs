//! USE, KILL, FLUSH, LOCK TABLES, DO.

use highkey_types::{MySqlError, Value};

use super::{Failure, Outcome};
use crate::bind;
use crate::expr;
use crate::parse::ast::{Expr, ExprKind, Flush, FunctionCall, ObjectName, TableLock};
use crate::session::{Interruption, Session, error};
use crate::show;

impl Session {
    pub(crate) fn use_database(&mut self, name: &str) -> Result<(), MySqlError> {
        let schema = show::known_schema(&self.state, Some(name))?;
        self.state.process.set_db(Some(&schema));
        let collation = show::schemas(&self.state).iter().find(|(n, _)| *n == schema).map(|(_, c)| *c);
        if let Some(collation) = collation {
            self.set_text_variable("collation_database", collation.name);
            self.set_text_variable("character_set_database", collation.charset.name());
        }
        self.state.database = Some(schema);
        self.schema_changed = true;
        Ok(())
    }

    fn set_text_variable(&mut self, name: &str, value: &str) {
        let id = crate::variables::find(name).expect("a variable of the table");
        let value = crate::variables::VarValue::Text(value.into());
        if *self.state.variables.get(id) != value {
            std::sync::Arc::make_mut(&mut self.state.variables).set(id, value);
        }
    }

    pub(crate) fn kill(&mut self, query_only: bool, id: &Expr) -> Result<Outcome, Failure> {
        let bound = bind::bind_constant(id, &self.state)?;
        let value = expr::eval(&bound, &[], &mut self.state)?;
        let id = self.state.with_cast(|cx| highkey_types::cast::to_u64(&value, cx)).unwrap_or(0);
        let process = self.state.instance.process(id).ok_or_else(|| error::err(1094, format!("Unknown thread id: {id}")))?;
        process.interrupt(if query_only { Interruption::Query } else { Interruption::Connection });
        if id == self.state.client.connection_id {
            return Err(highkey_types::errors::query_interrupted().into());
        }
        Ok(Outcome::ok())
    }

    pub(crate) async fn flush(&mut self, items: &[Flush]) -> Result<Outcome, Failure> {
        for item in items {
            match item {
                // There is one copy of everything that these would read again.
                Flush::Privileges | Flush::Status => {}
                Flush::Logs(kind) => {
                    if kind.as_deref().is_none_or(|kind| kind == "BINARY")
                        && let Some(binlog) = self.state.instance.database().binlog()
                    {
                        binlog.rotate()?;
                    }
                }
                Flush::Tables { read_lock: false, for_export: false, .. } => {}
                Flush::Tables { names, read_lock: true, .. } if !names.is_empty() => {
                    let locks: Vec<TableLock> = names.iter().map(|n| TableLock { name: n.clone(), write: false }).collect();
                    self.lock_tables(&locks).await?;
                }
                Flush::Tables { .. } => return Err(error::not_supported("FLUSH TABLES WITH READ LOCK of all tables").into()),
                Flush::Other(_) => self.state.note(1105, "FLUSH of this kind has nothing to flush in Highkey"),
            }
        }
        Ok(Outcome::ok())
    }

    /// PURGE BINARY LOGS BEFORE.
    pub(crate) async fn purge_binary_logs_before(&mut self, time: &Expr) -> Result<Outcome, Failure> {
        let name = ObjectName { schema: None, name: "UNIX_TIMESTAMP".into() };
        let kind = ExprKind::Function(FunctionCall { name, args: vec![time.clone()] });
        let call = Expr { kind, span: time.span };
        let seconds = match self.constant(&call).await? {
            Value::Int(seconds) => seconds as f64,
            Value::UInt(seconds) => seconds as f64,
            Value::Decimal(seconds) => seconds.to_f64(),
            _ => return Err(error::err(1525, "Incorrect DATETIME value: 'NULL'").into()),
        };
        let time = std::time::UNIX_EPOCH + std::time::Duration::from_secs_f64(seconds.max(0.0));
        self.state.binlog()?.purge_before(time)?;
        Ok(Outcome::ok())
    }

    pub(crate) async fn lock_tables(&mut self, locks: &[TableLock]) -> Result<Outcome, Failure> {
        self.unlock_tables();
        let mut wanted = Vec::new();
        for lock in locks {
            let schema = self.state.schema_of(lock.name.schema.as_deref())?;
            let table = self.state.instance.database().catalog().table(&schema, &lock.name.name)?;
            let key = (table.def().schema.clone(), table.def().name.clone());
            match wanted.iter_mut().find(|(k, _)| *k == key) {
                Some((_, write)) => *write |= lock.write,
                None => wanted.push((key, lock.write)),
            }
        }
        let id = self.state.client.connection_id;
        let locks = self.state.instance.table_locks().clone();
        locks.lock(&wanted, id, &self.state.process, self.state.config.metadata_timeout).await?;
        self.locked_tables = wanted.into_iter().map(|((schema, name), write)| (schema, name, write)).collect();
        Ok(Outcome::ok())
    }

    pub(crate) fn table_locks_held(&self) -> bool {
        !self.locked_tables.is_empty()
    }

    pub(crate) fn unlock_tables(&mut self) {
        if !self.locked_tables.is_empty() {
            self.locked_tables.clear();
            self.state.instance.table_locks().release(self.state.client.connection_id);
        }
    }

    /// Whether LOCK TABLES, ours or others', lets this statement use a table; waits for others.
    pub(crate) async fn admit_table(&mut self, schema: &str, name: &str, write: bool) -> Result<(), MySqlError> {
        if !self.locked_tables.is_empty() {
            return match self.locked_tables.iter().find(|(s, n, _)| **s == *schema && **n == *name) {
                None => Err(error::table_not_locked(name)),
                Some((_, _, false)) if write => Err(error::table_not_locked_for_write(name)),
                Some(_) => Ok(()),
            };
        }
        let locks = self.state.instance.table_locks().clone();
        if locks.any() {
            let id = self.state.client.connection_id;
            locks.admit(&(schema.into(), name.into()), write, id, &self.state.process, self.state.config.metadata_timeout).await?;
        }
        Ok(())
    }

    /// DO: evaluates for its effects.
    pub(crate) async fn do_exprs(&mut self, exprs: &[Expr]) -> Result<Outcome, Failure> {
        for ast in exprs {
            let mut bound = bind::bind_constant(ast, &self.state)?;
            self.resolve_subqueries(&mut bound).await?;
            expr::eval(&bound, &[], &mut self.state)?;
        }
        Ok(Outcome::ok())
    }
}
