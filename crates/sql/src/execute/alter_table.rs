//! ALTER TABLE: the actions make a new specification, every row is converted to it, the catalog changes at once.

mod converter;

use std::sync::Arc;

use highkey_table::{
    AlterPlan, CheckDef, ColumnDef, DdlContext, Default, ForeignKeyDef, IndexKind, IndexPart, IndexSpec, RowConversion, Table, TableDef, TableSpec, rename_checks,
};
use highkey_types::{Charset, ColumnType, MySqlError, Str, TypeKind, Value, errors};

use self::converter::Converter;
use super::ddl::{blocking_ddl, done, others};
use super::table_spec::{DefinitionChecks, ExprPlace, same_name};
use super::collation::collation_of;
use super::create_table::{GENERATED_KEY, has_generated_key, is_generated_key};
use super::{Failure, Outcome, partitions, table_spec};
use crate::bind::members;
use crate::parse::{self, ast};
use crate::parse::ast::{AlterAction, ColumnPosition};
use crate::session::{ResultSink, Session, SessionState, error, error::err};

/// As MySQL says it.
const KEY_WITHOUT_ANOTHER: &str = "existing primary key drop without adding a new primary key. In @@sql_generate_invisible_primary_key=ON mode table should \
     have a primary key. Please add a new primary key to be able to drop existing primary key.";

impl Session {
    pub(crate) async fn alter_table(&mut self, alter: &ast::AlterTable, sink: &mut dyn ResultSink) -> Result<Outcome, Failure> {
        if let Some(action) = alter.actions.iter().find_map(|action| if let AlterAction::Partitions(action) = action { Some(action) } else { None }) {
            return self.alter_partitions(alter, action, sink).await;
        }
        let (schema, name) = self.table_name(&alter.name)?;
        if let Some(table) = self.state.temporary.find(&schema, &name).cloned() {
            return self.alter_temporary(&table, alter).await;
        }
        self.check_base_table(&schema, &name)?;
        let database = self.state.instance.database().clone();
        if let Some(engine) = only_rebuilds(alter) {
            let table = database.catalog().table(&schema, &name)?;
            self.check_engine(engine, &name, false)?;
            self.compact(&table).await?;
            self.log_maintenance().await?;
            return Ok(done(0, &self.state));
        }
        loop {
            let table = database.catalog().table(&schema, &name)?;
            let copies = copies_rows(table.def(), alter, self.state.config.foreign_key_checks);
            let Some(mut plan) = self.plan_alter(&table, alter)? else { return Ok(done(0, &self.state)) };
            plan.in_place = !copies && !numbers_rows(&plan) && has_known_key(table.def(), &plan, self.state.strict());
            let cx = DdlContext { others: others(alter.lock.as_deref()), ..self.ddl_context() };
            let (from, to) = ((schema.clone(), table.def().name.clone()), (plan.spec.schema.clone(), plan.spec.name.clone()));
            let logged = self.replica.is_none() && self.rows_source().is_some();
            let mut converter = Converter::new(&self.state, table.def(), &plan, logged)?;
            let altered = blocking_ddl(database.alter_table(&cx, plan, &mut |row| converter.convert(row))).await;
            converter.finish(&mut self.state);
            if altered.is_ok() && from != to && self.state.locks.has_tables() {
                self.state.locks.rename_table(&from, to, self.state.config.metadata_timeout, &self.state.process.flag()).await?;
            }
            match altered {
                // MySQL counts rows only where it must copy the table, and does the rest in place.
                Ok(rows) => return Ok(done(if copies { rows } else { 0 }, &self.state)),
                // Somebody else's DDL came between planning and locking.
                Err(e) if e.code == 1412 => self.state.process.check()?,
                Err(e) => return Err(e.into()),
            }
        }
    }

    async fn alter_temporary(&mut self, table: &Arc<Table>, alter: &ast::AlterTable) -> Result<Outcome, Failure> {
        let Some(plan) = self.plan_alter(table, alter)? else { return Ok(done(0, &self.state)) };
        let (def, spec) = (table.def(), &plan.spec);
        if (&def.schema, &def.name) != (&spec.schema, &spec.name) && self.state.temporary.find(&spec.schema, &spec.name).is_some() {
            return Err(error::table_exists(&spec.name).into());
        }
        let mut converter = Converter::new(&self.state, def, &plan, false)?;
        let altered = self.change_temporary(table, &plan, &mut |row| converter.convert(row)).await;
        converter.finish(&mut self.state);
        Ok(done(altered?, &self.state))
    }

    /// Carries out the change of a temporary table; how many rows it has.
    pub(super) async fn change_temporary(&mut self, table: &Arc<Table>, plan: &AlterPlan, convert: RowConversion<'_>) -> Result<u64, MySqlError> {
        let cx = self.unlogged_ddl_context();
        let database = self.state.instance.database().clone();
        let (changed, rows) = blocking_ddl(async move { database.alter_temporary_table(&cx, table, plan, convert) }).await?;
        self.replace_temporary_table(changed);
        Ok(rows)
    }

    /// The plan of an ALTER TABLE; `None` if it changes nothing.
    ///
    /// As MySQL reads it, by kind and not as written: what goes, what old columns become, what is added and moved, indexes, the rest. So names of
    /// old columns and indexes mean the old ones throughout, and each is named once.
    fn plan_alter(&mut self, table: &Table, alter: &ast::AlterTable) -> Result<Option<AlterPlan>, MySqlError> {
        let mut draft = Draft::of(table.def());
        let mut changed = false;
        for action in &alter.actions {
            changed |= self.drop_or_convert(&mut draft, action)?;
        }
        for (n, action) in alter.actions.iter().enumerate() {
            changed |= self.redefine(&mut draft, n, action)?;
        }
        let mut missing = None;
        for action in &alter.actions {
            changed |= self.amend(&mut draft, action, &mut missing)?;
        }
        for (n, action) in alter.actions.iter().enumerate() {
            changed |= self.place(&mut draft, n, action)?;
        }
        draft.put_generated_key_first(table.def());
        if let Some(column) = missing {
            return Err(error::bad_field(column, &draft.spec.name));
        }
        if draft.columns.is_empty() {
            return Err(error::cant_remove_all_fields());
        }
        if let Some(error) = draft.cannot_drop.take() {
            return Err(error);
        }
        for action in &alter.actions {
            changed |= draft.amend_index(action)?;
        }
        for action in &alter.actions {
            changed |= self.add(&mut draft, action)?;
        }
        if !changed {
            return Ok(None);
        }
        self.check_primary_key(table.def(), &draft, alter)?;
        let mut plan = AlterPlan::of(table);
        draft.finish(&mut plan, &mut self.state)?;
        Ok(Some(plan))
    }

    /// What MySQL 8.0.30 does not allow with primary keys. Errors 1235, 4110, 4111.
    fn check_primary_key(&self, def: &TableDef, draft: &Draft, alter: &ast::AlterTable) -> Result<(), MySqlError> {
        if def.partitioning.is_some() || def.primary_key().is_none() {
            return Ok(());
        }
        let remains = draft.indexes.iter().any(|i| i.spec.kind == IndexKind::Primary && i.remains(&draft.columns));
        let comes = || draft.new_keys.iter().any(|key| key.kind == ast::IndexKind::Primary);
        if !remains && !comes() && self.state.variables.bool("sql_generate_invisible_primary_key") {
            return Err(error::not_supported(KEY_WITHOUT_ANOTHER));
        }
        if !has_generated_key(def) {
            return Ok(());
        }
        if draft.partition_by.is_some() {
            return Err(error::not_supported("partitioning table with generated invisible primary key"));
        }
        let is_key = |name: &str| same_name(name, GENERATED_KEY);
        if alter.actions.iter().any(|action| matches!(action, AlterAction::DropColumn(name) if is_key(name))) {
            return Ok(());
        }
        let drops_key = |action: &AlterAction| match action {
            AlterAction::DropPrimaryKey => true,
            AlterAction::DropIndex(name) | AlterAction::DropConstraint(name) => name.eq_ignore_ascii_case("primary"),
            _ => false,
        };
        if alter.actions.iter().any(drops_key) {
            return Err(err(4111, "Please drop primary key column to be able to drop generated invisible primary key."));
        }
        let sets_default = alter.actions.iter().any(|action| matches!(action, AlterAction::SetDefault { column, .. } if is_key(column)));
        let first = &draft.columns[0];
        if sets_default || first.from != Some(0) || !is_generated_key(&first.def) {
            return Err(err(4110, "Altering generated invisible primary key column 'my_row_id' is not allowed."));
        }
        Ok(())
    }

    /// What goes, and what holds for the columns that come: what they say themselves comes after it.
    fn drop_or_convert(&mut self, draft: &mut Draft, action: &AlterAction) -> Result<bool, MySqlError> {
        match action {
            AlterAction::DropColumn(name) => match draft.old_column(name) {
                Some(at) => {
                    draft.columns.remove(at);
                    draft.names_changed = true;
                    draft.convert = true;
                }
                None => draft.cannot_drop(name),
            },
            AlterAction::DropIndex(name) if name.eq_ignore_ascii_case("primary") => draft.drop_primary(),
            AlterAction::DropIndex(name) => {
                let before = draft.indexes.len();
                draft.indexes.retain(|i| !i.is_called(name));
                if draft.indexes.len() == before {
                    draft.cannot_drop(name);
                }
            }
            AlterAction::DropPrimaryKey => draft.drop_primary(),
            AlterAction::DropForeignKey(name) if draft.drop_foreign_key(name) => {}
            AlterAction::DropForeignKey(name) => draft.cannot_drop(name),
            AlterAction::DropCheck(name) if draft.drop_check(name) => {}
            AlterAction::DropCheck(name) => return Err(error::check_missing(name)),
            AlterAction::DropConstraint(name) => draft.drop_constraint(name)?,
            AlterAction::Options(options) => {
                self.check_engine(options.engine.as_deref(), &draft.spec.name.clone(), false)?;
                self.note_table_options(options);
                table_spec::apply_options(&mut draft.spec, options)?;
                if let Some(collation) = collation_of(options.charset.as_deref(), options.collation.as_deref(), self.state.config.utf8mb4)? {
                    draft.spec.collation = collation;
                }
            }
            AlterAction::ConvertCharset { charset, collation } => {
                let default = self.schema_collation(&draft.spec.schema)?;
                let collation = collation_of(charset.as_deref(), collation.as_deref(), self.state.config.utf8mb4)?.unwrap_or(default);
                draft.spec.collation = collation;
                for column in &mut draft.columns {
                    if column.def.ty.is_text() || matches!(column.def.ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) {
                        if collation.charset.max_bytes() > column.def.ty.collation.charset.max_bytes() {
                            column.def.ty.kind = longer_text(&column.def.ty.kind);
                        }
                        column.def.ty.collation = collation;
                        column.def.ty.kind = match &column.def.ty.kind {
                            TypeKind::Enum(names) => TypeKind::Enum(members(names, &column.def.name, names.len(), collation, "ENUM")?),
                            TypeKind::Set(names) => TypeKind::Set(members(names, &column.def.name, names.len(), collation, "SET")?),
                            kind => kind.clone(),
                        };
                        if collation.charset == Charset::Binary {
                            column.def.ty = binary_twin(&column.def.ty);
                        }
                    }
                }
                draft.convert = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// MODIFY and CHANGE of the action at `n`, where the column stands.
    fn redefine(&mut self, draft: &mut Draft, n: usize, action: &AlterAction) -> Result<bool, MySqlError> {
        let AlterAction::ChangeColumn { old, def: ast, .. } = action else { return Ok(false) };
        // `place` finds that there is none.
        let Some(at) = draft.untouched_column(old) else { return Ok(true) };
        let resolved = table_spec::column(ast, draft.spec.collation, &mut self.state)?;
        if let Some(kind) = resolved.key {
            draft.new_keys.push(table_spec::column_key(kind, &ast.name));
        }
        draft.new_checks.extend(resolved.checks);
        draft.names_changed |= !same_name(old, &ast.name);
        let before = &draft.columns[at].def;
        let same = before.ty == resolved.def.ty && before.generated == resolved.def.generated && (resolved.def.nullable || !before.nullable);
        let stored = |column: &ColumnDef| column.generated.as_ref().is_some_and(|g| g.stored);
        if before.generated.is_some() != resolved.def.generated.is_some() && !stored(before) && !stored(&resolved.def) {
            return Err(err(3106, "'Changing the STORED status' is not supported for generated columns."));
        }
        draft.convert |= !same;
        draft.shorten_prefixes(old, &resolved.def.ty);
        let entry = &mut draft.columns[at];
        entry.def = resolved.def;
        entry.ast = Some((**ast).clone());
        entry.action = Some(n);
        entry.touched = true;
        Ok(true)
    }

    /// What changes a column and does not define it anew. `missing`: the first one that is not there, or was named before.
    fn amend<'a>(&mut self, draft: &mut Draft, action: &'a AlterAction, missing: &mut Option<&'a str>) -> Result<bool, MySqlError> {
        let (AlterAction::RenameColumn { old: column, .. } | AlterAction::SetDefault { column, .. } | AlterAction::SetVisible { column, .. }) = action else {
            return Ok(false);
        };
        if let AlterAction::RenameColumn { new, .. } = action {
            table_spec::check_column_name(new)?;
        }
        let Some(at) = draft.untouched_column(column) else {
            missing.get_or_insert(column);
            return Ok(true);
        };
        draft.columns[at].touched = true;
        let def = &mut draft.columns[at].def;
        match action {
            AlterAction::RenameColumn { old, new } => {
                def.name = new.as_str().into();
                draft.names_changed |= !same_name(old, new);
            }
            AlterAction::SetDefault { .. } if def.generated.is_some() => return Err(err(1221, "Incorrect usage of DEFAULT and generated column")),
            AlterAction::SetDefault { default: Some(default), .. } => def.default = table_spec::resolve_default(default, def, &mut self.state)?,
            AlterAction::SetDefault { default: None, .. } => def.default = if def.nullable { Default::Dropped } else { Default::None },
            AlterAction::SetVisible { visible, .. } => def.invisible = !visible,
            _ => {}
        }
        Ok(true)
    }

    /// Columns that come, and those that move. AFTER names a column as it is called from now on.
    fn place(&mut self, draft: &mut Draft, n: usize, action: &AlterAction) -> Result<bool, MySqlError> {
        match action {
            AlterAction::AddColumn(ast, position) => {
                let resolved = table_spec::column(ast, draft.spec.collation, &mut self.state)?;
                let at = draft.position(position)?;
                let entry = Entry { def: resolved.def, old: None, from: None, ast: Some((**ast).clone()), action: None, touched: false };
                draft.columns.insert(at, entry);
                if let Some(kind) = resolved.key {
                    draft.new_keys.push(table_spec::column_key(kind, &ast.name));
                }
                draft.new_checks.extend(resolved.checks);
                draft.convert = true;
            }
            AlterAction::ChangeColumn { old, position, .. } => {
                let at = draft.columns.iter().position(|c| c.action == Some(n)).ok_or_else(|| error::bad_field(old, &draft.spec.name))?;
                if let Some(position) = position {
                    let entry = draft.columns.remove(at);
                    let at = draft.position(position)?;
                    draft.columns.insert(at, entry);
                }
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Keys and checks that come, and what concerns the whole table.
    fn add(&mut self, draft: &mut Draft, action: &AlterAction) -> Result<bool, MySqlError> {
        match action {
            AlterAction::AddIndex(index) => draft.new_keys.push(index.clone()),
            AlterAction::AddCheck(check) => {
                draft.new_checks.push(check.clone());
                draft.convert |= check.enforced;
            }
            AlterAction::AddForeignKey(key) => draft.new_foreign_keys.push(key.clone()),
            AlterAction::AlterCheck { name, enforced } => {
                let check = draft.spec.checks.iter_mut().find(|c| same_name(&c.name, name)).ok_or_else(|| error::check_missing(name))?;
                draft.convert |= *enforced && !check.enforced;
                check.enforced = *enforced;
            }
            AlterAction::RenameTable(to) => {
                table_spec::check_table_name(&to.name)?;
                let (schema, name) = self.table_name(to)?;
                draft.spec.schema = schema;
                draft.spec.name = name;
            }
            AlterAction::OrderBy(columns) => {
                for column in columns {
                    draft.find(column).ok_or_else(|| err(1054, format!("Unknown column '{column}' in 'order clause'")))?;
                }
                let why = if draft.indexes.iter().any(|i| i.spec.kind == IndexKind::Primary) {
                    "ORDER BY ignored as there is a user-defined clustered index in the table"
                } else {
                    "ORDER BY ignored: rows of a table without primary key stay in the order of their insertion"
                };
                self.state.push_warning(error::warning(1105, format!("{why} '{}'", draft.spec.name)));
                draft.convert = true;
            }
            AlterAction::Force => draft.convert = true,
            AlterAction::PartitionBy(by) => draft.partition_by = Some((**by).clone()),
            AlterAction::RemovePartitioning => {
                if draft.spec.partitioning.take().is_none() {
                    return Err(errors::partition_mgmt_on_nonpartitioned());
                }
            }
            AlterAction::EnableKeys => {
                self.state.note(1031, format!("Table storage engine for '{}' doesn't have this option", draft.spec.name));
                return Ok(false);
            }
            AlterAction::AddColumn(..)
            | AlterAction::DropColumn(_)
            | AlterAction::ChangeColumn { .. }
            | AlterAction::RenameColumn { .. }
            | AlterAction::SetDefault { .. }
            | AlterAction::SetVisible { .. }
            | AlterAction::DropIndex(_)
            | AlterAction::DropPrimaryKey
            | AlterAction::DropForeignKey(_)
            | AlterAction::DropCheck(_)
            | AlterAction::DropConstraint(_)
            | AlterAction::RenameIndex { .. }
            | AlterAction::AlterIndexVisible { .. }
            | AlterAction::Options(_)
            | AlterAction::ConvertCharset { .. }
            | AlterAction::Partitions(_) => return Ok(false),
        }
        Ok(true)
    }
}

/// The engine that is named, if the statement asks for nothing but a rebuilt table: FORCE and ENGINE, not by copying.
fn only_rebuilds(alter: &ast::AlterTable) -> Option<Option<&str>> {
    if alter.actions.is_empty() || alter.algorithm.as_deref() == Some("COPY") {
        return None;
    }
    let mut engine = None;
    for action in &alter.actions {
        match action {
            AlterAction::Force => {}
            AlterAction::Options(options) if *options == (ast::TableOptions { engine: options.engine.clone(), ..std::default::Default::default() }) => {
                engine = options.engine.as_deref().or(engine);
            }
            _ => return None,
        }
    }
    Some(engine)
}

/// Whether MySQL 8.0 runs it with ALGORITHM=COPY: types change, a stored generated column comes or goes with a virtual one, or a primary key goes and
/// none comes, or rows are checked against a new foreign key, or several FULLTEXT indexes would be built anew.
fn copies_rows(def: &TableDef, alter: &ast::AlterTable, foreign_key_checks: bool) -> bool {
    if alter.algorithm.as_deref() == Some("COPY") {
        return true;
    }
    let drops_generated = |stored: bool| {
        let dropped = |name: &str| def.columns.iter().any(|c| same_name(&c.name, name) && c.generated.as_ref().is_some_and(|g| g.stored == stored));
        alter.actions.iter().any(|action| matches!(action, AlterAction::DropColumn(name) if dropped(name)))
    };
    if drops_generated(true) && drops_generated(false) {
        return true;
    }
    let adds_key = alter.actions.iter().any(|action| match action {
        AlterAction::AddIndex(index) => index.kind == ast::IndexKind::Primary,
        AlterAction::AddColumn(column, _) | AlterAction::ChangeColumn { def: column, .. } => column.primary,
        _ => false,
    });
    let builds_several = def.indexes.iter().filter(|index| index.kind == IndexKind::FullText).count() > 1;
    alter.actions.iter().any(|action| match action {
        AlterAction::AddForeignKey(_) => foreign_key_checks,
        AlterAction::ChangeColumn { .. } | AlterAction::ConvertCharset { .. } | AlterAction::OrderBy(_) | AlterAction::PartitionBy(_) | AlterAction::RemovePartitioning => true,
        AlterAction::DropPrimaryKey => !adds_key,
        AlterAction::DropIndex(name) => name.eq_ignore_ascii_case("primary") && !adds_key,
        AlterAction::AddColumn(column, _) => builds_several || column.generated.as_ref().is_some_and(|g| g.stored),
        AlterAction::DropColumn(_) => builds_several,
        _ => false,
    })
}

/// Whether an added column gets numbers in the rows' order.
fn numbers_rows(plan: &AlterPlan) -> bool {
    plan.spec.columns.iter().zip(&plan.columns).any(|(column, from)| column.auto_increment && from.is_none())
}

/// Whether the primary key, if there is one, is of columns that were there before, with the values that they had: where the mode is not strict, NULL becomes
/// another value in a new key, with a warning for each row.
fn has_known_key(old: &TableDef, plan: &AlterPlan, strict: bool) -> bool {
    let primary = plan.spec.indexes.iter().find(|index| index.kind == IndexKind::Primary);
    let is_known = |part: &IndexPart| plan.columns[part.column].is_some_and(|from| strict || !old.columns[from].nullable);
    primary.is_none_or(|index| index.parts.iter().all(is_known))
}

/// The text type that holds as many characters as this one when each may take more bytes.
fn longer_text(kind: &TypeKind) -> TypeKind {
    match kind {
        TypeKind::TinyText => TypeKind::Text,
        TypeKind::Text => TypeKind::MediumText,
        TypeKind::MediumText => TypeKind::LongText,
        other => other.clone(),
    }
}

/// What a text type is under the binary character set.
fn binary_twin(ty: &ColumnType) -> ColumnType {
    ColumnType::new(match ty.kind {
        TypeKind::Char(n) => TypeKind::Binary(n),
        TypeKind::VarChar(n) => TypeKind::VarBinary(n),
        TypeKind::TinyText => TypeKind::TinyBlob,
        TypeKind::Text => TypeKind::Blob,
        TypeKind::MediumText => TypeKind::MediumBlob,
        TypeKind::LongText => TypeKind::LongBlob,
        _ => return ty.clone(),
    })
}

/// A column being altered.
struct Entry {
    def: ColumnDef,
    /// What the old column that it continues is called; keys name their columns so.
    old: Option<Str>,
    /// The old column that it continues.
    from: Option<usize>,
    /// As written by this statement.
    ast: Option<ast::ColumnDef>,
    /// The MODIFY or CHANGE that wrote it.
    action: Option<usize>,
    /// Some action named it: the next one does not find it.
    touched: bool,
}

impl Entry {
    /// Whether a key of the old table means this column. A new one takes the place of an old one of its name that goes.
    fn is_known_as(&self, name: &str) -> bool {
        same_name(self.old.as_deref().unwrap_or(&self.def.name), name)
    }
}

/// An index whose parts name their columns, so that columns can come, go and move.
struct DraftIndex {
    spec: IndexSpec,
    parts: Vec<(Str, IndexPart)>,
    /// Some action named it: the next one does not find it.
    touched: bool,
}

impl DraftIndex {
    /// A primary key has no name here.
    fn is_called(&self, name: &str) -> bool {
        self.spec.kind != IndexKind::Primary && self.spec.name.as_deref().is_some_and(|n| same_name(n, name))
    }

    /// Not all of its columns go.
    fn remains(&self, columns: &[Entry]) -> bool {
        self.parts.iter().any(|(name, _)| columns.iter().any(|c| c.is_known_as(name)))
    }
}

/// The definition between the first action and the last.
struct Draft {
    spec: TableSpec,
    columns: Vec<Entry>,
    indexes: Vec<DraftIndex>,
    /// Foreign keys, with their columns' names.
    foreign_keys: Vec<(ForeignKeyDef, Vec<Str>)>,
    new_keys: Vec<ast::IndexDef>,
    new_foreign_keys: Vec<ast::ForeignKeyDef>,
    new_checks: Vec<ast::CheckDef>,
    partition_by: Option<ast::PartitionBy>,
    /// The columns by which the table is partitioned.
    partitioned_by: Vec<Str>,
    /// Rows must be looked at.
    convert: bool,
    /// Columns went or got other names: stored expressions are checked again.
    names_changed: bool,
    /// Error 1091 for the first thing to drop that is not there.
    cannot_drop: Option<MySqlError>,
}

impl Draft {
    fn of(def: &TableDef) -> Draft {
        let mut spec = TableSpec::like(def, &def.schema, &def.name);
        let entry = |(i, def): (usize, ColumnDef)| Entry { old: Some(def.name.clone()), def, from: Some(i), ast: None, action: None, touched: false };
        let columns = std::mem::take(&mut spec.columns).into_iter().enumerate().map(entry).collect();
        let indexes = std::mem::take(&mut spec.indexes)
            .into_iter()
            .map(|spec| DraftIndex { parts: spec.parts.iter().map(|p| (def.columns[p.column].name.clone(), *p)).collect(), spec, touched: false })
            .collect();
        let foreign_keys = std::mem::take(&mut spec.foreign_keys)
            .into_iter()
            .map(|key| (key.clone(), key.columns.iter().map(|c| def.columns[*c].name.clone()).collect()))
            .collect();
        Draft {
            spec,
            columns,
            indexes,
            foreign_keys,
            new_keys: Vec::new(),
            new_foreign_keys: Vec::new(),
            new_checks: Vec::new(),
            partition_by: None,
            partitioned_by: def.partitioning.as_ref().map_or_else(Vec::new, |partitioning| partitioning.columns(def)),
            convert: false,
            names_changed: false,
            cannot_drop: None,
        }
    }

    /// Other errors come before it.
    fn cannot_drop(&mut self, name: &str) {
        self.cannot_drop.get_or_insert_with(|| error::cant_drop_field_or_key(name));
    }

    /// False: there is none of that name.
    fn drop_foreign_key(&mut self, name: &str) -> bool {
        let at = self.foreign_keys.iter().position(|(key, _)| same_name(&key.name, name));
        at.map(|at| self.foreign_keys.remove(at)).is_some()
    }

    /// False: there is none of that name.
    fn drop_check(&mut self, name: &str) -> bool {
        let at = self.spec.checks.iter().position(|check| same_name(&check.name, name));
        at.map(|at| self.spec.checks.remove(at)).is_some()
    }

    /// DROP CONSTRAINT: whatever has the name, if only one has. Errors 3939 and 3940.
    fn drop_constraint(&mut self, name: &str) -> Result<(), MySqlError> {
        let unique = |i: &DraftIndex| i.spec.kind == IndexKind::Unique && i.spec.name.as_deref().is_some_and(|n| same_name(n, name));
        let primary = name.eq_ignore_ascii_case("primary") && self.indexes.iter().any(|i| i.spec.kind == IndexKind::Primary);
        let kinds = [
            primary || self.indexes.iter().any(unique),
            self.foreign_keys.iter().any(|(key, _)| same_name(&key.name, name)),
            self.spec.checks.iter().any(|check| same_name(&check.name, name)),
        ];
        match kinds {
            [true, false, false] if primary => {
                self.drop_primary();
                Ok(())
            }
            [true, false, false] => {
                self.indexes.retain(|i| !unique(i));
                Ok(())
            }
            [false, true, false] | [false, false, true] => {
                let _dropped = self.drop_foreign_key(name) || self.drop_check(name);
                Ok(())
            }
            [false, false, false] => Err(errors::constraint_not_found(name)),
            _ => Err(err(3939, format!("Table has multiple constraints with the name '{name}'. Please use constraint specific 'DROP' clause."))),
        }
    }

    /// Columns that come FIRST come behind it; where it is told to go itself is refused later.
    fn put_generated_key_first(&mut self, def: &TableDef) {
        if !has_generated_key(def) {
            return;
        }
        let Some(at) = self.columns.iter().position(|c| c.from == Some(0)) else { return };
        if at > 0 && self.columns[..at].iter().all(|c| c.from.is_none()) {
            let key = self.columns.remove(at);
            self.columns.insert(0, key);
        }
    }

    fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| same_name(&c.def.name, name))
    }

    /// The column that continues the old one of that name.
    fn old_column(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| c.old.as_deref().is_some_and(|old| same_name(old, name)))
    }

    fn untouched_column(&self, name: &str) -> Option<usize> {
        self.old_column(name).filter(|at| !self.columns[*at].touched)
    }

    /// RENAME INDEX and ALTER INDEX. Error 1176.
    fn amend_index(&mut self, action: &AlterAction) -> Result<bool, MySqlError> {
        let (AlterAction::RenameIndex { old: name, .. } | AlterAction::AlterIndexVisible { name, .. }) = action else { return Ok(false) };
        if let AlterAction::RenameIndex { new, .. } = action {
            table_spec::check_length(new)?;
        }
        let columns = &self.columns;
        let index = self.indexes.iter_mut().find(|i| !i.touched && i.is_called(name) && i.remains(columns));
        let index = index.ok_or_else(|| errors::key_does_not_exits(name, &self.spec.name))?;
        index.touched = true;
        match action {
            AlterAction::RenameIndex { new, .. } => index.spec.name = Some(new.as_str().into()),
            AlterAction::AlterIndexVisible { visible, .. } => index.spec.invisible = !visible,
            _ => {}
        }
        Ok(true)
    }

    /// A key prefix that is no shorter than its column's new length becomes the whole column, and so does one of a type that has none.
    fn shorten_prefixes(&mut self, column: &str, ty: &ColumnType) {
        let length = match ty.kind {
            TypeKind::Char(n) | TypeKind::VarChar(n) | TypeKind::Binary(n) | TypeKind::VarBinary(n) => n,
            _ if ty.is_blob() => return,
            _ => 0,
        };
        for (_, part) in self.indexes.iter_mut().flat_map(|i| &mut i.parts).filter(|(name, _)| same_name(name, column)) {
            part.prefix = part.prefix.filter(|prefix| *prefix < length);
        }
    }

    fn drop_primary(&mut self) {
        let before = self.indexes.len();
        self.indexes.retain(|i| i.spec.kind != IndexKind::Primary);
        if self.indexes.len() == before {
            self.cannot_drop("PRIMARY");
        }
    }

    /// Where a column goes.
    fn position(&self, position: &ColumnPosition) -> Result<usize, MySqlError> {
        match position {
            ColumnPosition::First => Ok(0),
            ColumnPosition::Last => Ok(self.columns.len()),
            ColumnPosition::After(name) => self.find(name).map(|at| at + 1).ok_or_else(|| error::bad_field(name, &self.spec.name)),
        }
    }

    fn finish(self, plan: &mut AlterPlan, cx: &mut SessionState) -> Result<(), MySqlError> {
        let mut spec = self.spec;
        plan.columns = self.columns.iter().map(|c| c.from).collect();
        plan.redefined = (0..self.columns.len()).filter(|&i| self.columns[i].from.is_some() && self.columns[i].ast.is_some()).collect();
        // Stored expressions that read a name which means another column now would read that one.
        let is_reused = |c: &Entry| {
            let old = |name: &str| c.old.as_deref().is_some_and(|old| same_name(old, name));
            plan.spec.columns.iter().any(|before| same_name(&before.name, &c.def.name)) && !old(&c.def.name)
        };
        let reused: Vec<bool> = self.columns.iter().map(is_reused).collect();
        let kept: Vec<bool> = self.columns.iter().map(|c| c.ast.is_none()).collect();
        if spec.name != plan.name {
            rename_checks(&mut spec.checks, &plan.name, &spec.name);
        }
        let kept_checks = spec.checks.len();
        for (mut key, names) in self.foreign_keys {
            key.columns.clear();
            for name in names {
                let column = self.columns.iter().position(|c| c.from.is_some() && c.is_known_as(&name));
                key.columns.push(column.ok_or_else(|| errors::fk_column_cannot_drop(&name, &key.name))?);
            }
            spec.foreign_keys.push(key);
        }
        let mut indexes = Vec::new();
        for index in self.indexes {
            let column = |name: &str| self.columns.iter().position(|c| c.is_known_as(name));
            let part = |(name, part): &(Str, IndexPart)| column(name).map(|column| IndexPart { column, ..*part });
            let parts: Vec<IndexPart> = index.parts.iter().filter_map(part).collect();
            if !parts.is_empty() {
                indexes.push(IndexSpec { parts, ..index.spec });
            }
        }
        let mut explicit_null = Vec::new();
        let mut written = Vec::new();
        let defined: Vec<bool> = self.columns.iter().map(|entry| entry.ast.is_some()).collect();
        for entry in self.columns {
            if let Some(ast) = entry.ast {
                if ast.nullable == Some(true) {
                    explicit_null.push(ast.name.clone());
                }
                written.push(ast);
            }
            table_spec::push_column(&mut spec.columns, entry.def)?;
        }
        table_spec::implicit_timestamps(&mut spec.columns, &defined, cx)?;
        for index in indexes {
            if index.kind == IndexKind::Primary {
                for part in &index.parts {
                    let column = &mut spec.columns[part.column];
                    if explicit_null.iter().any(|name| same_name(name, &column.name)) || matches!(column.default, Default::Literal(Value::Null)) {
                        return Err(error::primary_cant_have_null());
                    }
                    column.nullable = false;
                }
            }
            table_spec::push_index(&mut spec, index)?;
        }
        if self.new_keys.iter().filter(|key| key.kind == ast::IndexKind::FullText).count() > 1 {
            return Err(errors::innodb_ft_limit());
        }
        for key in &self.new_keys {
            let resolved = table_spec::index(key, &mut spec.columns, &explicit_null, cx)?;
            table_spec::add_index(&mut spec, resolved, cx)?;
        }
        if let Some(by) = &self.partition_by {
            spec.partitioning = Some(partitions::partitioning(by, &spec.columns, cx)?);
        } else if let Some(partitioning) = &spec.partitioning {
            partitions::check_columns(partitioning, &self.partitioned_by, &plan.spec.columns, &spec.columns)?;
        }
        for key in &self.new_foreign_keys {
            plan.added_keys.push(table_spec::add_foreign_key(&mut spec, key, true, cx)?);
        }
        for check in &self.new_checks {
            table_spec::add_check(&mut spec, check, cx)?;
        }
        for ast in &written {
            if let Some(ast::ColumnDefault::Expr(text)) = &ast.default {
                cx.check_expr(text, &spec.columns, ExprPlace::Default(&ast.name))?;
            }
            if let Some(generated) = &ast.generated {
                cx.check_expr(&generated.expr, &spec.columns, ExprPlace::Generated(&ast.name))?;
            }
        }
        if self.names_changed {
            let mut columns = spec.columns.clone();
            columns.iter_mut().zip(&reused).filter(|(_, reused)| **reused).for_each(|(column, _)| column.name = "".into());
            check_kept_exprs(&spec.checks[..kept_checks], &columns, &kept, cx)?;
        }
        table_spec::check_actions(&spec, cx)?;
        table_spec::finish(&spec)?;
        plan.convert_rows = self.convert;
        plan.spec = spec;
        Ok(())
    }
}

/// Stored expressions must still find their columns: the checks, and those of the columns that are `kept` as they were.
fn check_kept_exprs(checks: &[CheckDef], columns: &[ColumnDef], kept: &[bool], cx: &mut SessionState) -> Result<(), MySqlError> {
    let text = |expr: &str| -> Result<ast::ExprText, MySqlError> { Ok(ast::ExprText { expr: parse::parse_expr(expr)?, text: expr.to_owned() }) };
    for check in checks {
        cx.check_expr(&text(&check.expr)?, columns, ExprPlace::Check(&check.name)).map_err(|_| err(3959, format!("Check constraint '{}' uses column which is dropped or renamed by this statement.", check.name)))?;
    }
    for (column, _) in columns.iter().zip(kept).filter(|(_, kept)| **kept) {
        if let Some(generated) = &column.generated {
            cx.check_expr(&text(&generated.expr)?, columns, ExprPlace::Generated(&column.name)).map_err(depended_on)?;
        }
        if let Default::Expr(expr) = &column.default {
            cx.check_expr(&text(expr)?, columns, ExprPlace::Default(&column.name))?;
        }
    }
    Ok(())
}

/// An expression that does not find its column any more, told of that column.
fn depended_on(e: MySqlError) -> MySqlError {
    let column = e.message.split('\'').nth(1).filter(|_| e.code == 1054).map(str::to_owned);
    column.map_or(e, errors::dependent_by_generated_column)
}
