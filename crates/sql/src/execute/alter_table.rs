//! ALTER TABLE: the actions make a new specification, every row is converted to it, the catalog changes at once.

use std::sync::Arc;

use highkey_table::{AlterPlan, ColumnDef, Default, ForeignKeyDef, IndexKind, IndexSpec, Table, TableDef, TableSpec};
use highkey_types::{Charset, ColumnType, MySqlError, TypeKind, Value, errors};

use super::ddl::{blocking_ddl, done};
use super::table_spec::{DefinitionChecks, ExprPlace, same_name};
use super::target::{RowRules, implicit_default, to_session};
use super::collation::collation_of;
use super::{Failure, Outcome, table_spec};
use crate::bind;
use crate::parse::{self, ast};
use crate::parse::ast::{AlterAction, ColumnPosition};
use crate::plan::{Expr, ExprKind};
use crate::session::{Session, SessionState, error, error::err};
use crate::variables::SqlModes;

impl Session {
    pub(crate) async fn alter_table(&mut self, alter: &ast::AlterTable) -> Result<Outcome, Failure> {
        let (schema, name) = self.table_name(&alter.name)?;
        self.check_base_table(&schema, &name)?;
        let database = self.state.instance.database().clone();
        if let Some(engine) = only_rebuilds(alter) {
            let table = database.catalog().table(&schema, &name)?;
            self.check_engine(engine, &name)?;
            self.compact(&table).await?;
            return Ok(done(0));
        }
        loop {
            let table = database.catalog().table(&schema, &name)?;
            let copies = copies_rows(table.def(), alter, self.state.config.foreign_key_checks);
            let Some(plan) = self.plan_alter(&table, alter)? else { return Ok(done(0)) };
            let cx = self.ddl_context();
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
                Ok(rows) => return Ok(done(if copies { rows } else { 0 })),
                // Somebody else's DDL came between planning and locking.
                Err(e) if e.code == 1412 => self.state.process.check()?,
                Err(e) => return Err(e.into()),
            }
        }
    }

    /// The plan of an ALTER TABLE; `None` if it changes nothing.
    fn plan_alter(&mut self, table: &Table, alter: &ast::AlterTable) -> Result<Option<AlterPlan>, MySqlError> {
        let def = table.def();
        let mut draft = Draft::of(def);
        let mut changed = false;
        for action in &alter.actions {
            changed |= self.apply(&mut draft, action)?;
        }
        if !changed {
            return Ok(None);
        }
        let mut plan = AlterPlan::of(table);
        draft.finish(&mut plan, &mut self.state)?;
        Ok(Some(plan))
    }

    fn apply(&mut self, draft: &mut Draft, action: &AlterAction) -> Result<bool, MySqlError> {
        match action {
            AlterAction::AddColumn(ast, position) => {
                let resolved = table_spec::column(ast, draft.spec.collation, &mut self.state)?;
                if draft.find(&ast.name).is_some() {
                    return Err(error::dup_fieldname(&ast.name));
                }
                let at = draft.place(position, None)?;
                draft.columns.insert(at, Entry { def: resolved.def, from: None, ast: Some((**ast).clone()) });
                if let Some(kind) = resolved.key {
                    draft.new_keys.push(table_spec::column_key(kind, &ast.name));
                }
                draft.new_checks.extend(resolved.checks);
                draft.convert = true;
            }
            AlterAction::DropColumn(name) => {
                let at = draft.find(name).ok_or_else(|| error::cant_drop_field_or_key(name))?;
                if draft.columns.len() == 1 {
                    return Err(error::cant_remove_all_fields());
                }
                draft.columns.remove(at);
                for index in &mut draft.indexes {
                    index.parts.retain(|(column, _)| !same_name(column, name));
                }
                draft.indexes.retain(|i| !i.parts.is_empty());
                draft.names_changed = true;
                draft.convert = true;
            }
            AlterAction::ChangeColumn { old, def: ast, position } => {
                let at = draft.find(old).ok_or_else(|| error::bad_field(old, &draft.spec.name))?;
                if !same_name(old, &ast.name) && draft.find(&ast.name).is_some() {
                    return Err(error::dup_fieldname(&ast.name));
                }
                let mut resolved = table_spec::column(ast, draft.spec.collation, &mut self.state)?;
                if draft.in_primary_key(old) {
                    if ast.nullable == Some(true) {
                        return Err(error::primary_cant_have_null());
                    }
                    resolved.def.nullable = false;
                }
                if let Some(kind) = resolved.key
                    && !(kind == IndexKind::Primary && draft.in_primary_key(old))
                {
                    draft.new_keys.push(table_spec::column_key(kind, &ast.name));
                }
                draft.new_checks.extend(resolved.checks);
                draft.rename(old, &ast.name);
                let from = draft.columns[at].from;
                let same = draft.columns[at].def.ty == resolved.def.ty
                    && draft.columns[at].def.generated == resolved.def.generated
                    && (resolved.def.nullable || !draft.columns[at].def.nullable);
                if resolved.def.generated.as_ref().map(|g| g.stored) != draft.columns[at].def.generated.as_ref().map(|g| g.stored)
                    && draft.columns[at].def.generated.is_some() != resolved.def.generated.is_some()
                    && !(resolved.def.generated.as_ref().is_some_and(|g| g.stored) || draft.columns[at].def.generated.as_ref().is_some_and(|g| g.stored))
                {
                    return Err(err(3106, "'Changing the STORED status' is not supported for generated columns."));
                }
                draft.convert |= !same;
                draft.shorten_prefixes(&ast.name, &resolved.def.ty);
                let entry = Entry { def: resolved.def, from, ast: Some((**ast).clone()) };
                match position {
                    None => draft.columns[at] = entry,
                    Some(position) => {
                        draft.columns.remove(at);
                        let at = draft.place(position, Some(&ast.name))?;
                        draft.columns.insert(at, entry);
                    }
                }
            }
            AlterAction::RenameColumn { old, new } => {
                table_spec::check_column_name(new)?;
                let at = draft.find(old).ok_or_else(|| error::bad_field(old, &draft.spec.name))?;
                if !same_name(old, new) && draft.find(new).is_some() {
                    return Err(error::dup_fieldname(new));
                }
                draft.rename(old, new);
                draft.columns[at].def.name = new.as_str().into();
            }
            AlterAction::SetDefault { column, default } => {
                let at = draft.find(column).ok_or_else(|| error::bad_field(column, &draft.spec.name))?;
                let def = &draft.columns[at].def;
                if def.generated.is_some() {
                    return Err(err(1221, "Incorrect usage of DEFAULT and generated column"));
                }
                let default = match default {
                    Some(default) => table_spec::resolve_default(default, def, &mut self.state)?,
                    None => Default::None,
                };
                draft.columns[at].def.default = default;
            }
            AlterAction::SetVisible { column, visible } => {
                let at = draft.find(column).ok_or_else(|| error::bad_field(column, &draft.spec.name))?;
                draft.columns[at].def.invisible = !visible;
            }
            AlterAction::AddIndex(index) => draft.new_keys.push(index.clone()),
            AlterAction::AddCheck(check) => {
                draft.new_checks.push(check.clone());
                draft.convert |= check.enforced;
            }
            AlterAction::AddForeignKey(key) => draft.new_foreign_keys.push(key.clone()),
            AlterAction::DropIndex(name) if name.eq_ignore_ascii_case("primary") => draft.drop_primary()?,
            AlterAction::DropIndex(name) => {
                let before = draft.indexes.len();
                draft.indexes.retain(|i| !i.spec.name.as_deref().is_some_and(|n| same_name(n, name)) || i.spec.kind == IndexKind::Primary);
                if draft.indexes.len() == before {
                    return Err(error::cant_drop_field_or_key(name));
                }
            }
            AlterAction::DropPrimaryKey => draft.drop_primary()?,
            AlterAction::DropForeignKey(name) if draft.drop_foreign_key(name) => {}
            AlterAction::DropForeignKey(name) => return Err(error::cant_drop_field_or_key(name)),
            AlterAction::DropCheck(name) if draft.drop_check(name) => {}
            AlterAction::DropCheck(name) => return Err(error::check_missing(name)),
            AlterAction::DropConstraint(name) => draft.drop_constraint(name)?,
            AlterAction::AlterCheck { name, enforced } => {
                let check = draft.spec.checks.iter_mut().find(|c| same_name(&c.name, name)).ok_or_else(|| error::check_missing(name))?;
                draft.convert |= *enforced && !check.enforced;
                check.enforced = *enforced;
            }
            AlterAction::RenameIndex { old, new } => {
                table_spec::check_length(new)?;
                if !same_name(old, new) && draft.indexes.iter().any(|i| i.spec.name.as_deref().is_some_and(|n| same_name(n, new))) {
                    return Err(error::dup_keyname(new));
                }
                let index = draft.index_mut(old).ok_or_else(|| err(1176, format!("Key '{old}' doesn't exist in table")))?;
                index.spec.name = Some(new.as_str().into());
            }
            AlterAction::AlterIndexVisible { name, visible } => {
                let table = draft.spec.name.clone();
                let index = draft.index_mut(name).ok_or_else(|| err(1176, format!("Key '{name}' doesn't exist in table '{table}'")))?;
                index.spec.invisible = !visible;
            }
            AlterAction::RenameTable(to) => {
                table_spec::check_table_name(&to.name)?;
                let (schema, name) = self.table_name(to)?;
                draft.spec.schema = schema;
                draft.spec.name = name;
            }
            AlterAction::Options(options) => {
                self.check_engine(options.engine.as_deref(), &draft.spec.name.clone())?;
                self.note_table_options(options);
                table_spec::apply_options(&mut draft.spec, options)?;
                if let Some(collation) = collation_of(options.charset.as_deref(), options.collation.as_deref())? {
                    draft.spec.collation = collation;
                }
            }
            AlterAction::ConvertCharset { charset, collation } => {
                let default = self.schema_collation(&draft.spec.schema)?;
                let collation = collation_of(charset.as_deref(), collation.as_deref())?.unwrap_or(default);
                draft.spec.collation = collation;
                for column in &mut draft.columns {
                    if column.def.ty.is_text() || matches!(column.def.ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) {
                        if collation.charset.max_bytes() > column.def.ty.collation.charset.max_bytes() {
                            column.def.ty.kind = longer_text(&column.def.ty.kind);
                        }
                        column.def.ty.collation = collation;
                        if collation.charset == Charset::Binary {
                            column.def.ty = binary_twin(&column.def.ty);
                        }
                    }
                }
                draft.convert = true;
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
            AlterAction::EnableKeys => {
                self.state.note(1031, format!("Table storage engine for '{}' doesn't have this option", draft.spec.name));
                return Ok(false);
            }
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
/// none comes, or rows are checked against a new foreign key.
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
    let adds_key = alter.actions.iter().any(|action| matches!(action, AlterAction::AddIndex(index) if index.kind == ast::IndexKind::Primary));
    alter.actions.iter().any(|action| match action {
        AlterAction::AddForeignKey(_) => foreign_key_checks,
        AlterAction::ChangeColumn { .. } | AlterAction::ConvertCharset { .. } | AlterAction::OrderBy(_) => true,
        AlterAction::DropPrimaryKey => !adds_key,
        AlterAction::AddColumn(column, _) => column.generated.as_ref().is_some_and(|g| g.stored),
        _ => false,
    })
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
    /// The old column that it continues.
    from: Option<usize>,
    /// As written by this statement.
    ast: Option<ast::ColumnDef>,
}

/// An index whose parts name their columns, so that columns can come, go and move.
struct DraftIndex {
    spec: IndexSpec,
    parts: Vec<(String, highkey_table::IndexPart)>,
}

/// The definition between the first action and the last.
struct Draft {
    spec: TableSpec,
    columns: Vec<Entry>,
    indexes: Vec<DraftIndex>,
    /// Foreign keys, with their columns' names.
    foreign_keys: Vec<(ForeignKeyDef, Vec<String>)>,
    new_keys: Vec<ast::IndexDef>,
    new_foreign_keys: Vec<ast::ForeignKeyDef>,
    new_checks: Vec<ast::CheckDef>,
    /// Rows must be looked at.
    convert: bool,
    /// Columns went or got other names: stored expressions are checked again.
    names_changed: bool,
}

impl Draft {
    fn of(def: &TableDef) -> Draft {
        let mut spec = TableSpec::like(def, &def.schema, &def.name);
        let columns = std::mem::take(&mut spec.columns).into_iter().enumerate().map(|(i, def)| Entry { def, from: Some(i), ast: None }).collect();
        let indexes = std::mem::take(&mut spec.indexes)
            .into_iter()
            .map(|spec| DraftIndex { parts: spec.parts.iter().map(|p| (def.columns[p.column].name.to_string(), *p)).collect(), spec })
            .collect();
        let foreign_keys = std::mem::take(&mut spec.foreign_keys)
            .into_iter()
            .map(|key| (key.clone(), key.columns.iter().map(|c| def.columns[*c].name.to_string()).collect()))
            .collect();
        Draft {
            spec,
            columns,
            indexes,
            foreign_keys,
            new_keys: Vec::new(),
            new_foreign_keys: Vec::new(),
            new_checks: Vec::new(),
            convert: false,
            names_changed: false,
        }
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
            [true, false, false] if primary => self.drop_primary(),
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

    fn find(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|c| same_name(&c.def.name, name))
    }

    fn index_mut(&mut self, name: &str) -> Option<&mut DraftIndex> {
        self.indexes.iter_mut().find(|i| i.spec.kind != IndexKind::Primary && i.spec.name.as_deref().is_some_and(|n| same_name(n, name)))
    }

    fn in_primary_key(&self, column: &str) -> bool {
        self.indexes.iter().any(|i| i.spec.kind == IndexKind::Primary && i.parts.iter().any(|(c, _)| same_name(c, column)))
    }

    /// A key prefix that is no shorter than its column's new length becomes the whole column.
    fn shorten_prefixes(&mut self, column: &str, ty: &ColumnType) {
        let length = match ty.kind {
            TypeKind::Char(n) | TypeKind::VarChar(n) | TypeKind::Binary(n) | TypeKind::VarBinary(n) => n,
            _ => return,
        };
        for (_, part) in self.indexes.iter_mut().flat_map(|i| &mut i.parts).filter(|(name, _)| same_name(name, column)) {
            part.prefix = part.prefix.filter(|prefix| *prefix < length);
        }
    }

    fn drop_primary(&mut self) -> Result<(), MySqlError> {
        let before = self.indexes.len();
        self.indexes.retain(|i| i.spec.kind != IndexKind::Primary);
        if self.indexes.len() == before { Err(error::cant_drop_field_or_key("PRIMARY")) } else { Ok(()) }
    }

    /// Where a column goes. `own` is its name, to which AFTER may not refer.
    fn place(&self, position: &ColumnPosition, own: Option<&str>) -> Result<usize, MySqlError> {
        match position {
            ColumnPosition::First => Ok(0),
            ColumnPosition::Last => Ok(self.columns.len()),
            ColumnPosition::After(name) if own.is_some_and(|o| same_name(o, name)) => Err(error::bad_field(name, &self.spec.name)),
            ColumnPosition::After(name) => self.find(name).map(|at| at + 1).ok_or_else(|| error::bad_field(name, &self.spec.name)),
        }
    }

    fn rename(&mut self, old: &str, new: &str) {
        if old == new {
            return;
        }
        for (column, _) in self.indexes.iter_mut().flat_map(|i| &mut i.parts) {
            if same_name(column, old) {
                *column = new.to_owned();
            }
        }
        for column in self.foreign_keys.iter_mut().flat_map(|(_, columns)| columns) {
            if same_name(column, old) {
                *column = new.to_owned();
            }
        }
        self.names_changed |= !same_name(old, new);
    }

    fn finish(self, plan: &mut AlterPlan, cx: &mut SessionState) -> Result<(), MySqlError> {
        let mut spec = self.spec;
        plan.columns = self.columns.iter().map(|c| c.from).collect();
        plan.redefined = (0..self.columns.len()).filter(|&i| self.columns[i].from.is_some() && self.columns[i].ast.is_some()).collect();
        let mut explicit_null = Vec::new();
        let mut written = Vec::new();
        for entry in self.columns {
            if let Some(ast) = entry.ast {
                if ast.nullable == Some(true) {
                    explicit_null.push(ast.name.clone());
                }
                written.push(ast);
            }
            spec.columns.push(entry.def);
        }
        for (mut key, names) in self.foreign_keys {
            key.columns.clear();
            for name in names {
                let column = spec.columns.iter().position(|c| same_name(&c.name, &name));
                key.columns.push(column.ok_or_else(|| errors::fk_column_cannot_drop(&name, &key.name))?);
            }
            spec.foreign_keys.push(key);
        }
        for index in self.indexes {
            let mut resolved = index.spec;
            resolved.parts.clear();
            for (name, part) in index.parts {
                let column = spec.columns.iter().position(|c| same_name(&c.name, &name)).ok_or_else(|| error::key_column_missing(&name))?;
                resolved.parts.push(highkey_table::IndexPart { column, ..part });
            }
            table_spec::push_index(&mut spec, resolved)?;
        }
        for key in &self.new_keys {
            let resolved = table_spec::index(key, &mut spec.columns, &explicit_null)?;
            table_spec::push_index(&mut spec, resolved)?;
        }
        for key in &self.new_foreign_keys {
            plan.added_keys.push(table_spec::add_foreign_key(&mut spec, key, true)?);
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
            check_kept_exprs(&spec, cx)?;
        }
        table_spec::check_actions(&spec, cx)?;
        table_spec::finish(&spec)?;
        plan.convert_rows = self.convert;
        plan.spec = spec;
        Ok(())
    }
}

/// Stored expressions must still find their columns.
fn check_kept_exprs(spec: &TableSpec, cx: &mut SessionState) -> Result<(), MySqlError> {
    let text = |expr: &str| -> Result<ast::ExprText, MySqlError> { Ok(ast::ExprText { expr: parse::parse_expr(expr)?, text: expr.to_owned() }) };
    for check in &spec.checks {
        cx.check_expr(&text(&check.expr)?, &spec.columns, ExprPlace::Check(&check.name)).map_err(|_| err(3959, format!("Check constraint '{}' uses column which is dropped or renamed by this statement.", check.name)))?;
    }
    for column in &spec.columns {
        if let Some(generated) = &column.generated {
            cx.check_expr(&text(&generated.expr)?, &spec.columns, ExprPlace::Generated(&column.name))
                .map_err(|_| err(3108, format!("Column has a generated column dependency ('{}').", column.name)))?;
        }
        if let Default::Expr(expr) = &column.default {
            cx.check_expr(&text(expr)?, &spec.columns, ExprPlace::Default(&column.name))?;
        }
    }
    Ok(())
}

fn differs_on_replicas(expr: &Expr) -> bool {
    let mut differs = false;
    expr.walk(&mut |e| differs |= matches!(e.kind, ExprKind::Call { func, .. } if func.differs_on_replicas()));
    differs
}

fn is_short_string(kind: &TypeKind) -> bool {
    matches!(kind, TypeKind::Char(_) | TypeKind::VarChar(_) | TypeKind::Binary(_) | TypeKind::VarBinary(_))
}

/// Turns rows of the old definition into rows of the new one.
struct Converter {
    state: SessionState,
    rules: RowRules,
    old: Vec<ColumnDef>,
    from: Vec<Option<usize>>,
    strict: bool,
    row: u64,
    /// The next value of an AUTO_INCREMENT column that the statement adds.
    next_auto: u64,
    /// Added columns that may be filled otherwise by replicas, which run the statement: no row may need them.
    unsafe_columns: Vec<usize>,
}

impl Converter {
    /// `logged`: the statement's text goes to replicas.
    fn new(state: &SessionState, old: &TableDef, plan: &AlterPlan, logged: bool) -> Result<Converter, MySqlError> {
        let def = TableDef {
            columns: plan.spec.columns.clone(),
            checks: plan.spec.checks.clone(),
            foreign_keys: Vec::new(),
            indexes: Vec::new(),
            name: plan.spec.name.clone(),
            collation: plan.spec.collation,
            ..old.clone()
        };
        let exprs = Arc::new(bind::bind_table_exprs(&def, state)?);
        let is_unsafe = |column: &usize| plan.columns[*column].is_none() && exprs.defaults[*column].as_ref().is_some_and(differs_on_replicas);
        let unsafe_columns = (0..def.columns.len()).filter(|column| logged && is_unsafe(column)).collect();
        Ok(Converter {
            state: state.clone(),
            rules: RowRules::new(Arc::new(def), Some(exprs)),
            old: old.columns.clone(),
            from: plan.columns.clone(),
            strict: state.strict(),
            row: 0,
            next_auto: 1,
            unsafe_columns,
        })
    }

    fn convert(&mut self, old: Vec<Value>) -> Result<Vec<Value>, MySqlError> {
        self.row += 1;
        let zone = self.state.config.time_zone.clone();
        let width = self.rules.columns().len();
        let mut new = vec![Value::Null; width];
        for column in 0..width {
            let ty = &self.rules.columns()[column].ty;
            if let Some(from) = self.from[column] {
                let before = &self.old[from].ty;
                let mut value = old[from].clone();
                if before != ty {
                    if matches!(before.kind, TypeKind::Timestamp(_)) {
                        to_session(&mut value, &zone);
                    }
                    // A member keeps its text, whatever its number becomes.
                    if let Value::Enum(_, text) | Value::Set(_, text) = &value {
                        value = Value::Text(text.clone());
                    }
                    // A binary string takes a text's bytes.
                    if ty.is_binary()
                        && let Value::Text(text) = &value
                    {
                        value = Value::Bytes(before.charset().encode(text).into_owned());
                    }
                    let shortens = is_short_string(&before.kind) && is_short_string(&ty.kind);
                    value = self.rules.store(&mut self.state, column, value, false, self.row).map_err(|e| match e.code {
                        // MySQL copies such strings without converting them, and says so when it cuts one.
                        1406 if shortens => err(1265, format!("Data truncated for column '{}' at row {}", self.rules.columns()[column].name, self.row)),
                        _ => e,
                    })?;
                }
                new[column] = value;
            }
        }
        for column in 0..width {
            if self.from[column].is_none() && self.rules.columns()[column].generated.is_none() {
                new[column] = self.added(column, &new)?;
            }
        }
        self.rules.generate(&mut self.state, &mut new, false, self.row)?;
        for column in 0..width {
            let def = &self.rules.columns()[column];
            if new[column].is_null() && !def.nullable {
                if def.auto_increment {
                    new[column] = self.next_number(column);
                    continue;
                }
                // MySQL converts values only of another type; otherwise it checks them in place.
                let in_place = self.from[column].is_some_and(|from| self.old[from].ty == def.ty);
                let truncated = format!("Data truncated for column '{}' at row {}", def.name, self.row);
                match (self.strict, in_place) {
                    (true, true) => return Err(err(1138, "Invalid use of NULL value")),
                    (true, false) => return Err(err(1265, truncated)),
                    _ => {}
                }
                new[column] = implicit_default(&def.ty);
                self.state.push_warning(error::warning(1265, truncated));
            }
        }
        self.rules.check_constraints(&mut self.state, &new, false)?;
        Ok(new)
    }

    /// The value of an added column.
    fn added(&mut self, column: usize, row: &[Value]) -> Result<Value, MySqlError> {
        let def = &self.rules.columns()[column];
        if def.auto_increment {
            return Ok(self.next_number(column));
        }
        if self.unsafe_columns.contains(&column) {
            return Err(err(1674, "Statement is unsafe because it uses a system function that may return a different value on the replica."));
        }
        match &def.default {
            Default::None if def.nullable => Ok(Value::Null),
            Default::None => {
                let value = implicit_default(&def.ty);
                let kind = match def.ty.kind {
                    TypeKind::Date => "date",
                    TypeKind::DateTime(_) | TypeKind::Timestamp(_) => "datetime",
                    _ => return Ok(value),
                };
                if self.strict && self.state.mode(SqlModes::NO_ZERO_DATE) {
                    let shown = highkey_types::cast::to_str(&value).unwrap_or_default();
                    return Err(err(1292, format!("Incorrect {kind} value: '{shown}' for column '{}' at row {}", def.name, self.row)));
                }
                Ok(value)
            }
            _ => self.rules.default(&mut self.state, column, row, false, self.row),
        }
    }

    fn next_number(&mut self, column: usize) -> Value {
        let n = self.next_auto;
        self.next_auto += 1;
        let ty = &self.rules.columns()[column].ty;
        match ty.kind {
            TypeKind::Float => Value::Float(n as f32),
            TypeKind::Double => Value::Double(n as f64),
            _ if ty.unsigned => Value::UInt(n),
            _ => Value::Int(n as i64),
        }
    }

    fn finish(self, state: &mut SessionState) {
        state.absorb(&self.state);
    }
}
