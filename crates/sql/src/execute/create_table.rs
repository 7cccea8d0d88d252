//! CREATE TABLE: with a definition, LIKE another, AS SELECT.

use std::sync::Arc;

use highkey_table::{ColumnDef, Default, IndexKind, IndexPart, IndexSpec, OnDuplicate, Table, TableDef, TableSpec, WordParser};
use highkey_types::{ColumnType, MySqlError, TypeKind, errors};

use super::inserter::Inserter;
use super::collation::collation_of;
use super::{Failure, Outcome, partitions, table_spec};
use crate::information_schema;
use crate::parse::ast::{self, LoadDuplicates};
use crate::plan::{BoundQuery, Rel, RelKind};
use crate::session::{Session, SessionState, error, error::err};

/// The column that `sql_generate_invisible_primary_key` adds.
pub(super) const GENERATED_KEY: &str = "my_row_id";

/// The primary key, the first column, is what `sql_generate_invisible_primary_key` makes. One that is visible is the user's own, or has become it.
pub(crate) fn has_generated_key(def: &TableDef) -> bool {
    let Some(key) = def.primary_key() else { return false };
    matches!(&key.parts[..], [part] if part.column == 0) && def.columns[0].invisible && is_generated_key(&def.columns[0])
}

/// The column is what it has made, whether visible or not.
pub(super) fn is_generated_key(column: &ColumnDef) -> bool {
    let numbered = column.auto_increment && !column.nullable && column.ty.kind == TypeKind::BigInt && column.ty.unsigned;
    numbered && table_spec::same_name(&column.name, GENERATED_KEY)
}

impl Session {
    pub(crate) async fn create_table(&mut self, create: &ast::CreateTable) -> Result<Outcome, Failure> {
        if create.temporary {
            if self.replica.is_some() {
                // The source tells what comes into it by statements, which are not replicated.
                return Err(error::not_supported("TEMPORARY TABLE").into());
            }
            self.state.check_tables_allowed()?;
            self.check_transaction_writable()?;
        }
        if create.select.is_some() && !create.temporary {
            self.check_gtid_consistency()?;
        }
        let (schema, name) = self.table_name(&create.name)?;
        let collation = self.schema_collation(&schema)?;
        let is_there = match create.temporary {
            true => self.state.temporary.find(&schema, &name).is_some(),
            false => {
                let catalog = self.state.instance.database().catalog();
                // A restore makes the server's own tables anew, but for those that it makes only if they are not there.
                catalog.has(&schema, &name) || (create.if_not_exists && information_schema::find(&schema, &name).is_some())
            }
        };
        if is_there {
            let error = error::table_exists(&name);
            if !create.if_not_exists {
                return Err(error.into());
            }
            self.state.note(error.code, error.message);
            return Ok(Outcome::ok());
        }
        if let Some(like) = &create.like {
            let (from_schema, from) = self.table_name(like)?;
            if create.temporary && (&from_schema, &from) == (&schema, &name) {
                return Err(errors::nonuniq_table(&name).into());
            }
            self.check_base_table(&from_schema, &from)?;
            let source = self.state.base_table(&from_schema, &from)?;
            table_spec::check_table_name(&name)?;
            let mut spec = TableSpec::like(source.def(), &schema, &name);
            spec.foreign_keys.clear();
            for index in spec.indexes.iter_mut().filter(|index| index.kind == IndexKind::FullText) {
                index.words = self.state.new_word_rules(matches!(index.words.parser, WordParser::Ngram { .. }))?;
            }
            name_checks(&mut spec);
            if create.temporary && spec.partitioning.is_some() {
                return Err(errors::partition_no_temporary().into());
            }
            return self.make_table(spec, create, source.is_temporary()).await;
        }
        self.check_engine(create.options.engine.as_deref(), &name, true)?;
        self.note_table_options(&create.options);
        let query = match &create.select {
            Some(query) => Some(self.bind_query(query).await?),
            None => None,
        };
        if query.is_some() && !create.foreign_keys.is_empty() {
            // As MySQL since 8.0.21: rows would have to be checked before the table is there.
            return Err(error::not_supported("FOREIGN KEY in CREATE TABLE … SELECT").into());
        }
        let default = collation_of(create.options.charset.as_deref(), create.options.collation.as_deref(), self.state.config.utf8mb4)?.unwrap_or(collation);
        let extra = match &query {
            Some(query) => select_columns(&query.rel, default, &self.state)?,
            None => Vec::new(),
        };
        let selected: Vec<String> = extra.iter().map(|c| c.name.to_string()).collect();
        let mut spec = table_spec::table(create, &schema, collation, extra, &mut self.state)?;
        self.primary_key_rules(&mut spec, create.partition_by.is_some())?;
        if let Some(by) = &create.partition_by {
            if create.temporary {
                return Err(errors::partition_no_temporary().into());
            }
            spec.partitioning = Some(partitions::partitioning(by, &spec.columns, &mut self.state)?);
        }
        let Some(query) = query else { return self.make_table(spec, create, false).await };
        self.create_as_select(create, spec, &query, &selected).await
    }

    /// `sql_require_primary_key`, `sql_generate_invisible_primary_key`.
    fn primary_key_rules(&mut self, spec: &mut TableSpec, partitioned: bool) -> Result<(), MySqlError> {
        if spec.indexes.iter().any(|i| i.kind == IndexKind::Primary) {
            return Ok(());
        }
        if self.state.variables.bool("sql_generate_invisible_primary_key") {
            if partitioned {
                return Err(error::not_supported("generating invisible primary key for the partitioned tables"));
            }
            for column in &spec.columns {
                if table_spec::same_name(&column.name, GENERATED_KEY) {
                    return Err(err(4108, "Failed to generate invisible primary key. Column 'my_row_id' already exists."));
                }
                if column.auto_increment {
                    return Err(err(4109, "Failed to generate invisible primary key. Auto-increment column already exists."));
                }
            }
            let mut column = ColumnDef::new(GENERATED_KEY, ColumnType::ubigint()).auto_increment();
            column.invisible = true;
            spec.columns.insert(0, column);
            for index in &mut spec.indexes {
                index.parts.iter_mut().for_each(|p| p.column += 1);
            }
            for key in &mut spec.foreign_keys {
                key.columns.iter_mut().for_each(|column| *column += 1);
            }
            spec.indexes.insert(0, IndexSpec { parts: vec![IndexPart::column(0)], ..IndexSpec::primary(&[0]) });
            return Ok(());
        }
        if self.state.variables.bool("sql_require_primary_key") {
            return Err(error::primary_key_required());
        }
        Ok(())
    }

    /// Makes a table that the session's transaction commits. The binary log is told its definition, not the statement. `None`: it is there already, which
    /// `if_not_exists` allows, and the transaction has ended.
    async fn begin_table(&mut self, spec: TableSpec, if_not_exists: bool) -> Result<Option<Arc<Table>>, Failure> {
        let cx = self.unlogged_ddl_context();
        self.begin_write(false)?;
        let made = match self.txn().create_table(&cx, spec).await {
            Ok(table) => self.txn().log_text(&crate::show::definition(&table)).map(|()| table),
            Err(e) => Err(e),
        };
        match made {
            Ok(table) => Ok(Some(table)),
            Err(e) => {
                self.rollback_current().await?;
                if e.code == 1050 && if_not_exists {
                    self.state.note(e.code, e.message);
                    return Ok(None);
                }
                Err(e.into())
            }
        }
    }

    /// `like_temporary`: the statement names a table that replicas do not have.
    async fn make_table(&mut self, spec: TableSpec, create: &ast::CreateTable, like_temporary: bool) -> Result<Outcome, Failure> {
        if create.temporary {
            self.add_temporary_table(&spec)?;
            return Ok(Outcome::ok());
        }
        let if_not_exists = create.if_not_exists;
        let generated = spec.columns.first().is_some_and(|c| c.invisible && c.auto_increment && &*c.name == GENERATED_KEY);
        if (generated || like_temporary) && self.rows_source().is_some() {
            // A replica that generates no keys must have the column too.
            if self.begin_table(spec, if_not_exists).await?.is_some() {
                self.implicit_commit().await?;
            }
            return Ok(Outcome::ok());
        }
        let cx = self.ddl_context();
        match self.state.instance.database().clone().create_table(&cx, spec).await {
            Ok(_) => Ok(Outcome::ok()),
            Err(e) if e.code == 1050 && if_not_exists => {
                self.state.note(e.code, e.message);
                Ok(Outcome::ok())
            }
            Err(e) => Err(e.into()),
        }
    }

    /// The table is made and filled in one transaction, whose commit shows it to others.
    async fn create_as_select(&mut self, create: &ast::CreateTable, spec: TableSpec, query: &BoundQuery, selected: &[String]) -> Result<Outcome, Failure> {
        let if_not_exists = create.if_not_exists;
        let (ignore, mode) = match create.select_duplicates {
            Some(LoadDuplicates::Ignore) => (true, OnDuplicate::Ignore),
            Some(LoadDuplicates::Replace) => (false, OnDuplicate::Replace),
            _ => (false, OnDuplicate::Error),
        };
        self.state.begin_changes(ignore);
        if create.temporary {
            return self.create_temporary_as_select(&spec, query, selected, ignore, mode).await;
        }
        // In the transaction that has opened the query's tables: their definitions stay as they are until its end.
        let Some(table) = self.begin_table(spec, if_not_exists).await? else { return Ok(Outcome::ok()) };
        match self.fill_table(&table, query, selected, ignore, mode).await {
            Ok(outcome) => {
                self.implicit_commit().await?;
                Ok(outcome)
            }
            Err(e) => {
                self.rollback_current().await?;
                Err(e)
            }
        }
    }

    /// The rows are the session's transaction's; the table stays whatever becomes of that, but not if the statement fails.
    async fn create_temporary_as_select(&mut self, spec: &TableSpec, query: &BoundQuery, selected: &[String], ignore: bool, mode: OnDuplicate) -> Result<Outcome, Failure> {
        // What is prepared may outlive the session, and its tables.
        self.check_outside_xa()?;
        self.begin_write(true)?;
        let table = self.add_temporary_table(spec)?;
        let filled = self.fill_table(&table, query, selected, ignore, mode).await;
        if filled.is_err() {
            self.remove_temporary_table(table);
        }
        filled
    }

    async fn fill_table(&mut self, table: &Arc<Table>, query: &BoundQuery, selected: &[String], ignore: bool, mode: OnDuplicate) -> Result<Outcome, Failure> {
        let columns: Vec<usize> = selected.iter().filter_map(|name| table.def().column(name)).collect();
        let mut inserter = Inserter::new(&mut self.state, table, &columns, ignore, mode)?;
        self.insert_rows_of(&mut inserter, query, &columns).await?;
        self.state.check_strict()?;
        Ok(inserter.outcome(&mut self.state, true))
    }
}

/// LIKE gives all CHECKs names of its own, as those of another table are taken.
fn name_checks(spec: &mut TableSpec) {
    for (i, check) in spec.checks.iter_mut().enumerate() {
        check.name = format!("{}_chk_{}", spec.name, i + 1).into();
    }
}

/// Characters of an INT, and those of which every number is one.
const INT_DIGITS: u8 = 11;
const CERTAIN_DIGITS: u8 = 9;

/// The rows of several queries, maybe sorted and cut.
fn is_union(query: &Rel) -> bool {
    match &query.kind {
        RelKind::SetOperation { .. } => true,
        RelKind::Sort { input, .. } | RelKind::Limit { input, .. } => is_union(input),
        _ => false,
    }
}

/// The columns that CREATE TABLE … SELECT makes of a query's output.
fn select_columns(query: &Rel, default: &'static highkey_types::Collation, state: &SessionState) -> Result<Vec<ColumnDef>, MySqlError> {
    let mut columns: Vec<ColumnDef> = Vec::with_capacity(query.fields.len());
    let exprs = query.selected().map(|(_, exprs)| exprs).unwrap_or_default();
    let united = is_union(query);
    for (i, field) in query.fields.iter().enumerate() {
        let mut ty = field.ty.ty.clone();
        if ty.kind == TypeKind::Null {
            // As MySQL: a bare NULL becomes BINARY(0).
            ty = ColumnType::new(TypeKind::Binary(0));
        }
        if field.org_name.is_empty() {
            // MySQL computes longer strings into a BLOB.
            let kind = match ty.kind {
                TypeKind::VarChar(n @ 513..) if u64::from(n) * ty.charset().max_bytes() as u64 > 65_535 => Some(TypeKind::LongText),
                TypeKind::VarChar(513..) => Some(TypeKind::Text),
                TypeKind::VarBinary(513..) => Some(TypeKind::Blob),
                _ => None,
            };
            if let Some(kind) = kind {
                ty = ColumnType::with_collation(kind, ty.collation);
            }
        }
        if ty.is_text() && ty.charset() == highkey_types::Charset::Binary {
            ty.collation = default;
        }
        if ty.fixed_digits().is_none() {
            ty.float_digits = None;
        }
        // What is computed is an INT as long as its digits are few; a literal, or a derived table's column, has to fit for sure.
        let literal = exprs.get(i).is_some_and(|expr| expr.as_literal().is_some());
        let most = if literal || !field.org_name.is_empty() { CERTAIN_DIGITS } else { INT_DIGITS };
        if !united && ty.kind == TypeKind::BigInt && !ty.zerofill && (1..=most).contains(&ty.width) {
            ty.kind = TypeKind::Int;
        }
        if ty.is_integer() && !ty.zerofill && !(ty.kind == TypeKind::TinyInt && ty.width == 1) {
            ty.width = 0;
        }
        let mut column = ColumnDef::new(&field.name, ty);
        column.nullable = field.ty.nullable;
        let table = state.base_table(&field.schema, &field.org_table).ok();
        match table.as_ref().and_then(|t| t.columns().iter().find(|c| c.name == field.org_name)) {
            Some(source) if !source.auto_increment && !matches!(source.default, Default::Expr(_)) => {
                column.default = source.default.clone();
                column.on_update_now = source.on_update_now;
            }
            // A derived table's column.
            None if !field.org_name.is_empty() && !column.ty.is_temporal() => {}
            _ if !column.nullable && !column.ty.is_blob() => {
                column.default = Default::Literal(super::target::implicit_default(&column.ty));
            }
            _ => {}
        }
        if columns.iter().any(|c| table_spec::same_name(&c.name, &column.name)) {
            return Err(error::dup_fieldname(&column.name));
        }
        columns.push(column);
    }
    Ok(columns)
}
