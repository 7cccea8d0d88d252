//! USE, KILL, FLUSH, LOCK TABLES, DO.

use highkey_table::TableName;
use highkey_types::{Level, MySqlError, Str, Value, errors};

use super::{BoundTables, Failure, Outcome};
use crate::bind;
use crate::expr;
use crate::information_schema;
use crate::parse::ast::{AlterAction, Expr, ExprKind, Flush, FunctionCall, ObjectName, PartitionAction, Statement, StoredProgram, TableLock};
use crate::session::{Interruption, LockedName, Session, StatusCounter, error};
use crate::show;
use crate::sys;

impl Session {
    pub(crate) fn use_database(&mut self, name: &str) -> Result<(), MySqlError> {
        if let Some(access) = self.state.access()
            && !access.sees_schema(name)
        {
            return Err(access.schema_denied(name));
        }
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
        if process.snapshot().user != self.state.client.user
            && let Some(access) = self.state.access()
            && !access.has_dynamic_or_super("CONNECTION_ADMIN")
        {
            return Err(errors::kill_denied_error(id).into());
        }
        process.interrupt(if query_only { Interruption::Query } else { Interruption::Connection });
        if id == self.state.client.connection_id {
            return Err(highkey_types::errors::query_interrupted().into());
        }
        Ok(Outcome::ok())
    }

    pub(crate) async fn flush(&mut self, items: &[Flush]) -> Result<Outcome, Failure> {
        for item in items {
            if matches!(item, Flush::Tables { .. }) {
                self.state.count(StatusCounter::FlushCommands, 1);
                self.handlers.rewind();
            }
            match item {
                Flush::Privileges => self.flush_privileges().await?,
                Flush::Status => self.state.instance.flush_status(&self.state.process),
                Flush::Logs(kind) => {
                    if kind.as_deref().is_none_or(|kind| kind == "BINARY")
                        && let Some(binlog) = self.state.instance.database().binlog()
                    {
                        binlog.rotate()?;
                    }
                }
                Flush::Tables { for_export: true, .. } => return Err(error::not_supported("FLUSH TABLES FOR EXPORT").into()),
                Flush::Tables { read_lock: true, .. } if self.state.locks.has_tables() => return Err(errors::lock_or_active_transaction().into()),
                Flush::Tables { names, read_lock: true, .. } if names.is_empty() => {
                    self.state.process.set_state("Waiting for global read lock");
                    self.state.locks.take_read_lock(self.state.config.metadata_timeout, &self.state.process.flag()).await?;
                }
                Flush::Tables { names, read_lock: true, .. } => {
                    let locks: Vec<TableLock> = names.iter().map(|n| TableLock { name: n.clone(), alias: None, write: false, low_priority: false }).collect();
                    self.lock_tables(&locks).await?;
                }
                Flush::Tables { names, .. } if self.state.locks.has_tables() => {
                    if names.is_empty() {
                        self.state.locks.check_all_for_write()?;
                    }
                    self.check_locked(names, true)?;
                }
                Flush::Tables { .. } => {}
                Flush::Other(_) => self.state.note(1105, "FLUSH of this kind has nothing to flush in Highkey"),
            }
        }
        Ok(Outcome::ok())
    }

    /// There is one copy of the accounts: only tables that a restore has made have something to read.
    async fn flush_privileges(&mut self) -> Result<(), MySqlError> {
        if !self.state.instance.database().has_restored_privileges() {
            return Ok(());
        }
        // What it does then is what statements about accounts do.
        if self.state.locks.has_tables() {
            return Err(errors::table_not_locked("user"));
        }
        self.check_server_writable()?;
        self.begin_definition_change().await?;
        let cx = self.ddl_context_logging("FLUSH PRIVILEGES".into());
        let dropped = self.state.instance.database().clone().load_privileges(&cx).await?;
        dropped.into_iter().for_each(|id| self.state.instance.exprs().forget(id));
        Ok(())
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

    pub(crate) async fn lock_tables(&mut self, tables: &[TableLock]) -> Result<Outcome, Failure> {
        for _ in tables.iter().filter(|lock| lock.low_priority) {
            self.state.push_warning(errors::warn_deprecated_syntax("LOW_PRIORITY WRITE", "WRITE").into_warning(Level::Warning));
        }
        self.state.locks.unlock_tables();
        let mut wanted: Vec<(TableName, bool)> = Vec::new();
        let mut named = Vec::new();
        for lock in tables {
            let (schema, name) = self.table_name(&lock.name)?;
            if self.state.temporary.find(&schema, &name).is_some() {
                continue;
            }
            let alias = lock.alias.as_deref().map_or_else(|| name.clone(), Str::from);
            named.push(LockedName { table: (schema.clone(), name.clone()), alias, write: lock.write });
            let catalog = self.state.instance.database().catalog();
            let mut names: Vec<TableName> = Vec::new();
            match sys::find_view(&catalog, &schema, &name) {
                // What a view reads is locked like the view, but for what nobody changes.
                Some(view) => {
                    let (rel, views) = bind::bind_view_columns(&view, &self.state)?;
                    names.extend(views.iter().filter(|view| !view.is_built_in()).map(|view| (view.def().schema.clone(), view.def().name.clone())));
                    names.extend(BoundTables::of(&rel).tables.iter().map(|(table, _)| (table.def().schema.clone(), table.def().name.clone())));
                }
                None if information_schema::find_shown(&catalog, &schema, &name).is_some() => {}
                None => {
                    catalog.table(&schema, &name)?;
                    names.push((schema, name));
                }
            }
            for key in names {
                match wanted.iter_mut().find(|(k, _)| *k == key) {
                    Some((_, write)) => *write |= lock.write,
                    None => wanted.push((key, lock.write)),
                }
            }
        }
        let (locks, process) = (&self.state.locks, &self.state.process);
        process.set_state("Waiting for table metadata lock");
        locks.lock_tables(&wanted, self.state.config.metadata_timeout, &process.flag()).await?;
        // One may have been dropped while it was waited for.
        let catalog = self.state.instance.database().catalog();
        if let Some(e) = wanted.iter().filter(|((schema, name), _)| !catalog.has(schema, name)).find_map(|((schema, name), _)| catalog.table(schema, name).err()) {
            locks.unlock_tables();
            return Err(e.into());
        }
        self.state.locked_names = named;
        Ok(Outcome::ok())
    }

    /// LOCK INSTANCE FOR BACKUP.
    pub(crate) async fn lock_instance(&mut self) -> Result<Outcome, Failure> {
        let (locks, process) = (&self.state.locks, &self.state.process);
        process.set_state("Waiting for backup lock");
        locks.lock_instance(self.state.config.metadata_timeout, &process.flag()).await?;
        Ok(Outcome::ok())
    }

    /// UNLOCK TABLES. What was done under LOCK TABLES is committed.
    pub(crate) async fn unlock(&mut self) -> Result<Outcome, Failure> {
        if self.state.locks.has_tables() {
            self.implicit_commit().await?;
        }
        self.unlock_tables();
        Ok(Outcome::ok())
    }

    /// Gives up LOCK TABLES and the global read lock.
    pub(crate) fn unlock_tables(&self) {
        self.state.locks.unlock_tables();
        self.state.locks.release_read_lock();
    }

    /// Under LOCK TABLES: errors 1100 and 1099 for tables that it does not have, or not so. Of the server's own tables and of temporary ones it has all.
    pub(crate) fn check_locked<'n>(&self, names: impl IntoIterator<Item = &'n ObjectName>, write: bool) -> Result<(), MySqlError> {
        if !self.state.locks.has_tables() {
            return Ok(());
        }
        for name in names {
            let schema = self.state.schema_of(name.schema.as_deref())?;
            if !information_schema::is_virtual_schema(&schema) && self.state.temporary.find(&schema, &name.name).is_none() {
                self.state.locks.check_table(&schema, &name.name, write)?;
            }
        }
        Ok(())
    }

    /// What DDL and statements about accounts may do under LOCK TABLES: change tables that it has for writing. Errors 1099, 1100, 1192.
    pub(crate) fn check_definition(&self, statement: &Statement) -> Result<(), MySqlError> {
        use Statement::*;
        if !self.state.locks.has_tables() {
            return Ok(());
        }
        match statement {
            CreateTable(create) => self.check_locked([&create.name], true),
            DropTable(drop) => self.check_locked(&drop.names, true),
            AlterTable(alter) => {
                let exchanged = alter.actions.iter().filter_map(|action| match action {
                    AlterAction::Partitions(PartitionAction::Exchange { table, .. }) => Some(table),
                    _ => None,
                });
                self.check_locked(std::iter::once(&alter.name).chain(exchanged), true)
            }
            TruncateTable(name) => self.check_locked([name], true),
            CreateIndex(create) => self.check_locked([&create.table], true),
            DropIndex { table, .. } => self.check_locked([table], true),
            CreateTrigger(create) => self.check_locked([&create.table], true),
            DropProgram { kind: StoredProgram::Trigger, name, .. } => {
                let schema = self.state.schema_of(name.schema.as_deref())?;
                match self.state.instance.database().catalog().trigger(&schema, &name.name) {
                    Some((table, _)) => self.state.locks.check_table(&schema, &table.def().name, true),
                    None => Ok(()),
                }
            }
            CreateUser { .. } | AlterUser { .. } | DropUser { .. } | RenameUser(_) | SetPassword { .. } | Grant(_) | Revoke(_) | CreateRole { .. } | DropRole { .. } | SetDefaultRole { .. } => {
                Err(errors::table_not_locked("user"))
            }
            _ => Err(errors::lock_or_active_transaction()),
        }
    }

    /// DO: evaluates for its effects.
    pub(crate) async fn do_exprs(&mut self, exprs: &[Expr]) -> Result<Outcome, Failure> {
        for ast in exprs {
            self.constant(ast).await?;
        }
        Ok(Outcome::ok())
    }
}
