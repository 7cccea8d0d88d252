//! Data definition: schemas, DROP, RENAME, TRUNCATE, indexes. CREATE and ALTER TABLE have files of their own.

use std::future::Future;
use std::sync::Arc;

use highkey_table::{AlterPlan, ColumnDef, DdlContext, IndexKind, Others, SchemaDef, Table, TableName, WordRules};
use highkey_types::{Collation, MySqlError, SqlMode, Str, TypeKind, Value, errors};

use super::table_spec::{DefinitionChecks, ExprPlace};
use super::collation::collation_of;
use super::{Failure, Outcome, table_spec};
use crate::bind;
use crate::expr;
use crate::functions::FuncId;
use crate::information_schema;
use crate::parse::{
    self,
    ast::{self, DatabaseOptions, ObjectName},
    print,
};
use crate::session::{Config, Session, SessionState, error, error::err};
use crate::show;
use crate::variables::{SqlModes, is_engine_of_mysql, is_our_engine};

impl Session {
    /// Schema and name of a table as the catalog knows them.
    pub(crate) fn table_name(&self, name: &ObjectName) -> Result<TableName, MySqlError> {
        let schema = self.state.schema_of(name.schema.as_deref())?;
        if information_schema::is_virtual_schema(&schema) {
            return Err(err(1044, format!("Access denied for user '{}'@'{}' to database '{}'", self.state.client.account_user, self.state.client.account_host, schema)));
        }
        Ok((schema, name.name.as_str().into()))
    }

    /// The default collation of a new table's schema.
    pub(crate) fn schema_collation(&self, schema: &str) -> Result<&'static Collation, MySqlError> {
        self.state.instance.database().catalog().schema(schema).map(|s| s.collation).ok_or_else(|| error::bad_db(schema))
    }

    pub(crate) async fn create_database(&mut self, if_not_exists: bool, name: &str, options: &DatabaseOptions) -> Result<Outcome, Failure> {
        if name.is_empty() || name.ends_with(' ') {
            return Err(error::wrong_db_name(name).into());
        }
        table_spec::check_length(name)?;
        let default = Collation::by_name(&self.state.variables.text("collation_server")).unwrap_or_else(Collation::utf8mb4);
        let collation = collation_of(options.charset.as_deref(), options.collation.as_deref(), self.state.config.utf8mb4)?.unwrap_or(default);
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        match database.create_schema(&cx, SchemaDef { name: name.into(), collation }).await {
            Ok(()) => Ok(Outcome::affected(1)),
            Err(e) if e.code == 1007 && if_not_exists => {
                self.state.note(e.code, e.message);
                Ok(Outcome::affected(1))
            }
            Err(e) => Err(e.into()),
        }
    }

    pub(crate) async fn alter_database(&mut self, name: Option<&str>, options: &DatabaseOptions) -> Result<Outcome, Failure> {
        let name = self.state.schema_of(name)?;
        let current = self.schema_collation(&name)?;
        let collation = collation_of(options.charset.as_deref(), options.collation.as_deref(), self.state.config.utf8mb4)?.unwrap_or(current);
        let cx = self.ddl_context();
        self.state.instance.database().clone().alter_schema(&cx, SchemaDef { name: name.clone(), collation }).await?;
        if self.state.database.as_ref() == Some(&name) {
            self.use_database(&name)?;
        }
        Ok(Outcome::affected(1))
    }

    pub(crate) async fn drop_database(&mut self, if_exists: bool, name: &str) -> Result<Outcome, Failure> {
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        let ids: Vec<_> = database.catalog().tables(name).iter().map(|t| t.id()).collect();
        match database.drop_schema(&cx, name).await {
            Ok(tables) => {
                ids.into_iter().for_each(|id| self.state.instance.exprs().forget(id));
                if self.state.database.as_deref() == Some(name) {
                    self.state.database = None;
                    self.state.process.set_db(None);
                }
                Ok(Outcome::affected(tables))
            }
            Err(e) if e.code == 1008 && if_exists => {
                self.state.note(e.code, e.message);
                Ok(Outcome::ok())
            }
            Err(e) => Err(e.into()),
        }
    }

    pub(crate) async fn drop_table(&mut self, drop: &ast::DropTable) -> Result<Outcome, Failure> {
        if drop.temporary && self.replica.is_some() {
            // A source that logs rows tells that a session's temporary tables went with it, and never that they came.
            return Ok(Outcome::ok());
        }
        if drop.temporary {
            return self.drop_temporary(drop);
        }
        let mut names = Vec::new();
        for name in &drop.names {
            let name = self.table_name(name)?;
            if names.contains(&name) {
                return Err(err(1066, format!("Not unique table/alias: '{}'", name.1)).into());
            }
            names.push(name);
        }
        if drop.view {
            return self.drop_view(&names, drop.if_exists).await;
        }
        let mut own = Vec::new();
        names.retain(|(schema, name)| match self.state.temporary.find(schema, name) {
            Some(table) => {
                own.push(table.clone());
                false
            }
            None => true,
        });
        if !names.is_empty() {
            self.drop_base_tables(&names, drop.if_exists, own.is_empty()).await?;
        }
        own.into_iter().for_each(|table| self.remove_temporary_table(table));
        Ok(Outcome::ok())
    }

    /// `whole`: these are all that the statement names.
    async fn drop_base_tables(&mut self, names: &[TableName], if_exists: bool, whole: bool) -> Result<(), MySqlError> {
        let cx = match whole {
            true => self.ddl_context(),
            // Replicas know nothing of temporary tables.
            false => self.ddl_context_logging(drop_statement(names, if_exists).into()),
        };
        let database = self.state.instance.database().clone();
        let ids: Vec<_> = names.iter().filter_map(|(s, n)| database.catalog().find_table(s, n).map(|t| t.id())).collect();
        let missing = database.drop_tables(&cx, names, if_exists).await?;
        if self.state.locks.has_tables() {
            names.iter().for_each(|(schema, name)| self.state.locks.forget_table(schema, name));
        }
        ids.into_iter().for_each(|id| self.state.instance.exprs().forget(id));
        for (schema, name) in missing {
            self.state.note(1051, format!("Unknown table '{schema}.{name}'"));
        }
        Ok(())
    }

    /// DROP TEMPORARY TABLE: all or none, without ending the transaction.
    fn drop_temporary(&mut self, drop: &ast::DropTable) -> Result<Outcome, Failure> {
        self.state.check_tables_allowed()?;
        self.check_transaction_writable()?;
        let mut own: Vec<Arc<Table>> = Vec::new();
        let mut missing = Vec::new();
        for name in &drop.names {
            let (schema, name) = self.table_name(name)?;
            match self.state.temporary.find(&schema, &name) {
                Some(table) if own.iter().any(|other| other.id() == table.id()) => return Err(errors::nonuniq_table(&name).into()),
                Some(table) => own.push(table.clone()),
                None => missing.push(format!("{schema}.{name}")),
            }
        }
        if !missing.is_empty() && !drop.if_exists {
            return Err(err(1051, format!("Unknown table '{}'", missing.join(","))).into());
        }
        own.iter().try_for_each(|table| self.routines.check_droppable(table))?;
        own.into_iter().for_each(|table| self.remove_temporary_table(table));
        for name in missing {
            self.state.note(1051, format!("Unknown table '{name}'"));
        }
        Ok(Outcome::ok())
    }

    pub(crate) async fn rename_table(&mut self, renames: &[(ObjectName, ObjectName)]) -> Result<Outcome, Failure> {
        let mut list = Vec::new();
        for (from, to) in renames {
            table_spec::check_table_name(&to.name)?;
            list.push((self.table_name(from)?, self.table_name(to)?));
        }
        let cx = self.ddl_context();
        self.state.instance.database().clone().rename_tables(&cx, &list).await?;
        Ok(Outcome::ok())
    }

    pub(crate) async fn truncate_table(&mut self, name: &ObjectName) -> Result<Outcome, Failure> {
        let schema = self.state.schema_of(name.schema.as_deref())?;
        if schema.eq_ignore_ascii_case("performance_schema") && information_schema::truncate(&self.state, &name.name) {
            return Ok(Outcome::ok());
        }
        let (schema, name) = self.table_name(name)?;
        if let Some(table) = self.state.temporary.find(&schema, &name).cloned() {
            let cx = self.unlogged_ddl_context();
            let emptied = self.state.instance.database().truncate_temporary_table(&cx, &table)?;
            self.replace_temporary_table(emptied);
            return Ok(Outcome::ok());
        }
        let cx = self.ddl_context();
        self.state.instance.database().clone().truncate_table(&cx, &schema, &name).await?;
        Ok(Outcome::ok())
    }

    pub(crate) async fn create_index(&mut self, create: &ast::CreateIndex) -> Result<Outcome, Failure> {
        let (schema, name) = self.table_name(&create.table)?;
        self.check_base_table(&schema, &name)?;
        let table = self.state.base_table(&schema, &name)?;
        let mut columns = table.def().columns.clone();
        let index = table_spec::index(&create.index, &mut columns, &[], &mut self.state)?;
        if index.kind == IndexKind::Primary {
            return Err(error::wrong_name_for_index("PRIMARY").into());
        }
        if let Some(name) = &index.name
            && table.def().index(name).is_some()
        {
            return Err(error::dup_keyname(name).into());
        }
        let repeats = table.def().indexes.iter().any(|other| !other.generated && other.kind == index.kind && other.parts == index.parts);
        if repeats && let Some(index_name) = &index.name {
            self.state.push_ignored(errors::dup_index(index_name, &schema, &name));
        }
        if table.is_temporary() {
            let mut plan = AlterPlan::of(&table);
            plan.spec.indexes.push(index);
            return Ok(done(self.change_temporary(&table, &plan, &mut |row| Ok(row)).await?, &self.state));
        }
        let cx = DdlContext { others: others(create.lock.as_deref()), ..self.ddl_context() };
        let database = self.state.instance.database().clone();
        blocking_ddl(database.create_index(&cx, &schema, &name, index)).await?;
        Ok(done(0, &self.state))
    }

    pub(crate) async fn drop_index(&mut self, index: &str, table: &ObjectName) -> Result<Outcome, Failure> {
        let (schema, name) = self.table_name(table)?;
        self.check_base_table(&schema, &name)?;
        let database = self.state.instance.database().clone();
        let current = self.state.base_table(&schema, &name)?;
        let known = if index.eq_ignore_ascii_case("primary") { current.def().primary_key().is_some() } else { current.def().index(index).is_some() };
        if !known {
            return Err(error::cant_drop_field_or_key(index).into());
        }
        if current.is_temporary() {
            let mut plan = AlterPlan::of(&current);
            plan.spec.indexes.retain(|spec| !spec.name.as_ref().is_some_and(|name| table_spec::same_name(name, index)));
            return Ok(done(self.change_temporary(&current, &plan, &mut |row| Ok(row)).await?, &self.state));
        }
        let cx = self.ddl_context();
        blocking_ddl(database.drop_index(&cx, &schema, &name, index)).await?;
        Ok(done(0, &self.state))
    }

    /// ENGINE as written: ours under either name, or in place of one that every MySQL has (docs/decisions/0008). Another is an error, or a warning without
    /// NO_ENGINE_SUBSTITUTION. `creates`: the table is not there yet.
    pub(crate) fn check_engine(&mut self, engine: Option<&str>, table: &str, creates: bool) -> Result<(), MySqlError> {
        let Some(engine) = engine.filter(|engine| !is_our_engine(engine)) else { return Ok(()) };
        let substituted = is_engine_of_mysql(engine);
        if !substituted {
            let unknown = error::unknown_engine(engine);
            // A replica takes tables of any engine.
            if self.replica.is_none() && self.state.mode(SqlModes::NO_ENGINE_SUBSTITUTION) {
                return Err(unknown);
            }
            self.state.push_ignored(unknown);
        }
        // What MySQL does not know leaves a table that is there where it is.
        if substituted || creates {
            self.state.push_warning(error::warning(1266, format!("Using storage engine InnoDB for table '{table}'")));
        }
        Ok(())
    }

    /// Table options that are accepted and mean nothing here.
    pub(crate) fn note_table_options(&mut self, options: &ast::TableOptions) {
        for (name, value) in &options.other {
            self.state.note(1478, format!("Table storage engine 'InnoDB' does not support the create option '{name}={value}'"));
        }
    }
}

/// DROP TABLE of these alone.
fn drop_statement(names: &[TableName], if_exists: bool) -> String {
    let names: Vec<String> = names.iter().map(|(schema, name)| format!("{}.{}", show::quote(schema), show::quote(name))).collect();
    format!("DROP TABLE {}{} /* generated by server */", if if_exists { "IF EXISTS " } else { "" }, names.join(","))
}

/// What LOCK= lets others do.
pub(super) fn others(lock: Option<&str>) -> Others {
    match lock {
        Some("NONE") => Others::Write,
        Some("SHARED") => Others::Read,
        Some("EXCLUSIVE") => Others::Nothing,
        _ => Others::AsFarAsPossible,
    }
}

/// The OK of DDL that builds or copies: "Records: n  Duplicates: 0  Warnings: n".
pub(crate) fn done(records: u64, state: &SessionState) -> Outcome {
    Outcome::Done { affected: records, last_insert_id: 0, info: format!("Records: {records}  Duplicates: 0  Warnings: {}", state.diagnostics.count()) }
}

/// Runs DDL that reads or writes whole tables: its work is on the calling thread, from which the other sessions move away.
pub(crate) async fn blocking_ddl<T>(work: impl Future<Output = T>) -> T {
    match tokio::runtime::Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == tokio::runtime::RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(move || highkey_table::block_on(work))
        }
        _ => work.await,
    }
}

/// A value of a definition as its column holds it. Any loss but the rounding of a number is an error.
pub(super) fn store_exactly(state: &SessionState, value: Value, column: &ColumnDef) -> Result<Value, MySqlError> {
    stored_under(state.config.sql_mode, true, state, value, column)
}

fn stored_under(mode: SqlMode, strict: bool, state: &SessionState, value: Value, column: &ColumnDef) -> Result<Value, MySqlError> {
    let mut warnings = Vec::new();
    let mut cx = highkey_types::StoreContext {
        strict,
        ignore: false,
        mode,
        time_zone: &state.config.time_zone,
        now_micros: state.now_micros,
        row: 1,
        warnings: &mut warnings,
    };
    highkey_types::store(value, &column.ty, &column.name, &mut cx)
}

impl DefinitionChecks for SessionState {
    fn default_literal(&mut self, literal: &ast::Expr, column: &ColumnDef) -> Result<Value, MySqlError> {
        let invalid = || error::invalid_default(&column.name);
        let bound = bind::bind_default(literal, &column.ty, self)?;
        let value = expr::eval(&bound, &[], self)?;
        // A row takes this for a time.
        if matches!(column.ty.kind, TypeKind::Time(_)) && value.as_str().is_some_and(|text| matches!(text.trim(), "" | "-")) {
            return Err(invalid());
        }
        match store_exactly(self, value.clone(), column) {
            // What is only warned of as a row's value is so here.
            Err(_) if !self.config.strict && matches!(column.ty.kind, TypeKind::Date | TypeKind::DateTime(_) | TypeKind::Timestamp(_)) => {
                let mode = SqlMode { no_zero_date: false, no_zero_in_date: false, ..self.config.sql_mode };
                stored_under(mode, true, self, value.clone(), column).map_err(|_| invalid())?;
                let stored = stored_under(self.config.sql_mode, false, self, value, column).map_err(|_| invalid())?;
                self.push_ignored(errors::warn_data_out_of_range(&column.name, 1));
                Ok(stored)
            }
            stored => stored.map_err(|_| invalid()),
        }
    }

    fn word_rules(&mut self, ngram: bool) -> Result<Arc<WordRules>, MySqlError> {
        self.new_word_rules(ngram)
    }

    fn add_warning(&mut self, warning: MySqlError) {
        self.push_ignored(warning);
    }

    fn settings(&self) -> &Config {
        &self.config
    }

    fn stored_text(&self, text: &ast::ExprText) -> String {
        // What cannot be printed is refused when it is checked.
        print::stored(&text.expr, self.config.collation_connection.charset).unwrap_or_else(|_| text.text.clone())
    }

    fn check_expr(&mut self, text: &ast::ExprText, columns: &[ColumnDef], place: ExprPlace<'_>) -> Result<(), MySqlError> {
        let def = scratch_def(columns);
        let clause = match place {
            ExprPlace::Default(_) => "default value expression",
            ExprPlace::Generated(_) => "generated column function",
            ExprPlace::Check(_) => "check constraint",
        };
        // What is kept is what will be read again, so that has to be right.
        let kept = print::stored(&text.expr, self.config.collation_connection.charset);
        let read = kept.as_deref().ok().map(parse::parse_expr);
        let expr = match &read {
            Some(Ok(read)) => read,
            _ => &text.expr,
        };
        let bound = match bind::bind_table_expr(expr, &def, true, self) {
            Ok(bound) => bound,
            Err(e) if e.code == 1054 => return Err(respell(e, clause, place)),
            // What no table can keep, a subquery most often, is wrong whatever it means.
            Err(_) if !matches!(read, Some(Ok(_))) => return Err(disallowed(place)),
            Err(e) => return Err(e),
        };
        let mut wrong = kept.is_err() || bound.has_subquery();
        bound.walk(&mut |e| {
            wrong |= matches!(e.kind, crate::plan::ExprKind::Stored { .. } | crate::plan::ExprKind::UserVar(_) | crate::plan::ExprKind::SystemVar { .. } | crate::plan::ExprKind::AssignUserVar { .. } | crate::plan::ExprKind::Param(_));
            if let crate::plan::ExprKind::Call { func, .. } = &e.kind
                && !func.is_deterministic()
                // Which of their modes it is, the session says; MySQL takes them all the same.
                && !matches!(func, FuncId::AesDecrypt | FuncId::AesEncrypt)
                && !matches!(place, ExprPlace::Default(_))
            {
                wrong = true;
            }
        });
        if wrong {
            return Err(disallowed(place));
        }
        if let Some(Err(unreadable)) = read {
            return Err(unreadable);
        }
        let auto = |i: &usize| columns.get(*i).is_some_and(|c| c.auto_increment);
        match place {
            ExprPlace::Generated(c) if bound.columns().iter().any(auto) => Err(err(3109, format!("Generated column '{c}' cannot refer to auto-increment column."))),
            ExprPlace::Generated(c) => {
                let own = columns.iter().position(|x| table_spec::same_name(&x.name, c)).unwrap_or(usize::MAX);
                let later = bound.columns().into_iter().any(|i| i >= own && columns.get(i).is_some_and(|x| x.generated.is_some()));
                if later { Err(err(3107, "Generated column can refer only to generated columns defined prior to it.")) } else { Ok(()) }
            }
            ExprPlace::Check(c) if bound.columns().iter().any(auto) => Err(err(3818, format!("Check constraint '{c}' cannot refer to an auto-increment column."))),
            _ => Ok(()),
        }
    }

    fn columns_of(&mut self, expr: &str, columns: &[ColumnDef]) -> Result<Vec<usize>, MySqlError> {
        let bound = bind::bind_table_expr(&parse::parse_expr(expr)?, &scratch_def(columns), true, self)?;
        Ok(bound.columns().into_iter().collect())
    }
}

fn disallowed(place: ExprPlace<'_>) -> MySqlError {
    match place {
        ExprPlace::Default(c) => err(3770, format!("Default value expression of column '{c}' contains a disallowed function.")),
        ExprPlace::Generated(c) => err(3102, format!("Expression of generated column '{c}' contains a disallowed function.")),
        ExprPlace::Check(c) => err(3814, format!("An expression of a check constraint '{c}' contains disallowed function.")),
    }
}

/// "Unknown column 'x' in 'check constraint c expression'" and the like.
fn respell(e: MySqlError, clause: &str, place: ExprPlace<'_>) -> MySqlError {
    let name = e.message.split('\'').nth(1).unwrap_or("").to_owned();
    match place {
        ExprPlace::Check(c) => err(3820, format!("Check constraint '{c}' refers to non-existing column '{name}'.")),
        _ => error::bad_field(&name, clause),
    }
}

/// A definition that is columns only, for binding expressions over them.
fn scratch_def(columns: &[ColumnDef]) -> highkey_table::TableDef {
    highkey_table::TableDef {
        id: highkey_table::TableId(0),
        version: 0,
        schema: Str::from(""),
        name: Str::from(""),
        columns: columns.to_vec(),
        indexes: Vec::new(),
        checks: Vec::new(),
        foreign_keys: Vec::new(),
        triggers: Vec::new(),
        collation: Collation::utf8mb4(),
        comment: Str::from(""),
        row_format: None,
        partitioning: None,
        created_at: std::time::SystemTime::UNIX_EPOCH,
    }
}
