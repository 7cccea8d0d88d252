//! FROM: tables, derived tables, common table expressions and joins.

use std::sync::Arc;

use highkey_table::{IndexKind, Privileges, Table, TableDef, View};
use highkey_types::{MySqlError, Str, TypeKind, column_flags};

use super::binder::{Binder, Result};
use super::compare::comparison;
use super::scope::{Beside, Clause, FromScope, Scope, same_name, same_table};
use super::{TableSource, errors};
use crate::parse::ast::{self, IndexHintKind, JoinCondition, ObjectName, TableRef};
use crate::plan::{CompareOp, Expr, ExprType, Field, IndexChoice, JoinKind, LockSpec, Rel, RelKind};

/// Flags of a column in result sets: its keys and attributes.
fn flags(def: &TableDef, column: usize) -> u16 {
    let mut flags = 0;
    for index in &def.indexes {
        let Some(position) = index.parts.iter().position(|p| p.column == column) else { continue };
        flags |= match index.kind {
            IndexKind::Primary => column_flags::PRI_KEY,
            IndexKind::Unique if position == 0 && index.parts.len() == 1 => column_flags::UNIQUE_KEY,
            IndexKind::Unique | IndexKind::Ordinary | IndexKind::FullText if position == 0 => column_flags::MULTIPLE_KEY,
            _ => 0,
        };
    }
    let column = &def.columns[column];
    if !column.nullable {
        flags |= column_flags::NOT_NULL;
    }
    if column.auto_increment {
        flags |= column_flags::AUTO_INCREMENT;
    }
    if column.on_update_now {
        flags |= column_flags::ON_UPDATE_NOW;
    }
    if column.lacks_default() {
        flags |= column_flags::NO_DEFAULT_VALUE;
    }
    flags
}

/// The fields of a base table under an alias.
pub(crate) fn table_fields(def: &TableDef, alias: &str) -> Vec<Field> {
    let alias: Str = Str::from(alias);
    def.columns
        .iter()
        .enumerate()
        .map(|(i, column)| Field {
            name: column.name.clone(),
            table: alias.clone(),
            schema: def.schema.clone(),
            org_table: def.name.clone(),
            org_name: column.name.clone(),
            ty: ExprType::column(column.ty.clone(), column.nullable),
            flags: flags(def, i),
            invisible: column.invisible,
        })
        .collect()
}

impl Binder<'_> {
    /// FROM as one relation; without tables it is a row of no columns.
    pub fn from_clause(&mut self, tables: &[TableRef], locks: &[ast::LockClause]) -> Result<(Rel, FromScope)> {
        let mut joined: Option<(Rel, FromScope)> = None;
        for table in tables {
            joined = Some(match joined {
                None => self.table_ref(table, locks)?,
                Some(left) => self.join_with(ast::JoinKind::Inner, left, table, &JoinCondition::None, locks)?,
            });
        }
        let (rel, scope) = joined.unwrap_or_else(|| (Rel::dual(), FromScope::default()));
        check_aliases(&rel)?;
        Ok((rel, scope))
    }

    fn table_ref(&mut self, table: &TableRef, locks: &[ast::LockClause]) -> Result<(Rel, FromScope)> {
        match table {
            TableRef::Table { name, alias, partitions, index_hints } => {
                let shown = alias.as_deref().unwrap_or(&name.name);
                self.check_read(name, shown, locks)?;
                let view = if self.exposing { self.named_view(name)? } else { None };
                if view.is_some() && !partitions.is_empty() {
                    return Err(no_partitions());
                }
                if let Some(view) = &view
                    && let Some(exposed) = self.exposed_ref(view, shown)?
                {
                    return Ok(exposed);
                }
                let mut rel = self.named_table(name, alias.as_deref(), partitions, index_hints, locks)?;
                let mut scope = FromScope::of(rel.fields.clone());
                scope.star.retain(|i| !rel.fields[*i].invisible);
                if view.is_some() {
                    // As a derived table's: a view that cannot be exposed, however plainly it reads a table.
                    rel = self.made_once(shown, rel);
                }
                Ok((rel, scope))
            }
            TableRef::Derived { lateral, query, alias, columns } => {
                // A derived table is computed before anything changes.
                let changing = self.changing.take();
                let rel = if *lateral { self.lateral(None, |binder| binder.query_expression(query)) } else { self.query_expression(query) };
                self.changing = changing;
                self.merges = true;
                let mut rel = rel?;
                keep_floats(&mut rel);
                rename(&mut rel, alias, columns)?;
                // Its rows are no table's to a statement that changes rows; and what assigns variables does so once, whoever reads what it gives.
                let apart = self.exposing || (!*lateral && rel.assigns_variables() && !rel.reads_recursion_around());
                if apart && !rel.is_correlated() {
                    rel = self.made_once(alias, rel);
                }
                let scope = FromScope::of(rel.fields.clone());
                Ok((rel, scope))
            }
            TableRef::Join { kind, left, right, condition } => {
                let left = self.table_ref(left, locks)?;
                self.join_with(*kind, left, right, condition, locks)
            }
            TableRef::JsonTable(table) => {
                let rel = self.json_table(table)?;
                let scope = FromScope::of(rel.fields.clone());
                Ok((rel, scope))
            }
            TableRef::List(tables) => {
                let (rel, scope) = self.from_clause(tables, locks)?;
                Ok((rel, scope))
            }
        }
    }

    /// The view that a name means, if it means one.
    pub fn named_view(&self, name: &ObjectName) -> Result<Option<Arc<View>>> {
        if name.schema.is_none() && self.ctes.iter().any(|c| same_name(&c.name, &name.name)) {
            return Ok(None);
        }
        Ok(match self.table_source(name)? {
            TableSource::View(view) => Some(view),
            _ => None,
        })
    }

    fn named_table(
        &mut self,
        name: &ObjectName,
        alias: Option<&str>,
        partitions: &[String],
        hints: &[ast::IndexHint],
        locks: &[ast::LockClause],
    ) -> Result<Rel> {
        if name.schema.is_none()
            && let Some(cte) = self.ctes.iter().rev().find(|c| same_name(&c.name, &name.name))
        {
            if !partitions.is_empty() {
                return Err(no_partitions());
            }
            let mut rel = cte.rel.clone();
            let deeper = self.scopes.len() - cte.level;
            self.count_copy(&rel)?;
            if deeper > 0 {
                rel.shift_outer(deeper as isize);
            }
            let alias: Str = Str::from(alias.unwrap_or(&name.name));
            for field in &mut rel.fields {
                field.table = alias.clone();
                field.schema = Str::from("");
            }
            if self.exposing && !matches!(rel.kind, RelKind::MaterializedCte { .. }) {
                rel = self.made_once(&alias, rel);
            }
            return Ok(rel);
        }
        let alias: Str = Str::from(alias.unwrap_or(&name.name));
        self.check_locked(name, &alias, false)?;
        match self.table_source(name)? {
            TableSource::View(_) | TableSource::Virtual(_) if !partitions.is_empty() => Err(no_partitions()),
            TableSource::Base(table) => {
                self.check_not_changing(&table, &alias)?;
                let table = with_partitions(table, partitions)?;
                let fields = table_fields(table.def(), &alias);
                let indexes = index_choice(&table, hints)?;
                let columns = (0..fields.len()).collect();
                let lock = locks.iter().find(|l| l.of.is_empty() || l.of.iter().any(|t| same_table(t, &alias)));
                let lock = lock.map(|l| LockSpec { exclusive: l.exclusive, wait: l.wait });
                self.locking |= lock.is_some();
                Ok(Rel { kind: RelKind::Scan { table, alias, columns, indexes, lock }, fields })
            }
            TableSource::View(view) => {
                let def = view.def();
                if self.defining && self.expanding.first().is_some_and(|(schema, name)| *schema == def.schema && *name == def.name) {
                    return Err(MySqlError::with_message(1146, format!("Table '{}.{}' doesn't exist", def.schema, def.name)));
                }
                if let Some(index) = hints.iter().flat_map(|h| &h.indexes).next() {
                    return Err(MySqlError::with_message(1176, format!("Key '{index}' doesn't exist in table '{alias}'")));
                }
                self.view_rel(&view, &alias, locks)
            }
            TableSource::Virtual(table) => {
                let fields = table
                    .columns
                    .iter()
                    .map(|(name, ty, nullable)| Field {
                        name: name.clone(),
                        table: alias.clone(),
                        schema: table.schema.clone(),
                        org_table: table.name.clone(),
                        org_name: name.clone(),
                        ty: ExprType::column(ty.clone(), *nullable),
                        flags: if *nullable { 0 } else { column_flags::NOT_NULL },
                        invisible: false,
                    })
                    .collect();
                Ok(Rel { kind: RelKind::Virtual { table, alias }, fields })
            }
        }
    }

    /// A subquery may not read the table that the statement changes. `alias`: its name in the subquery.
    fn check_not_changing(&self, table: &Table, alias: &str) -> Result<()> {
        match &self.changing {
            Some((target, _)) if target.id() != table.id() => Ok(()),
            Some(_) if self.inserting && !same_table(alias, &table.def().name) => Ok(()),
            Some((_, name)) if self.inserting && !same_table(name, &table.def().name) => Err(super::view::prevented(name, "INSERT", name)),
            Some((_, name)) => Err(highkey_types::errors::update_table_used(name)),
            None => Ok(()),
        }
    }

    /// Under LOCK TABLES the statement's own names have to be locked ones. What a view reads is locked with it.
    pub fn check_locked(&self, name: &ObjectName, alias: &str, write: bool) -> Result<()> {
        match name.schema.as_deref().map(Str::from).or_else(|| self.cx.current_schema()) {
            Some(schema) if self.expanding.is_empty() => self.cx.check_locked_as(&schema, &name.name, alias, write),
            _ => Ok(()),
        }
    }

    /// The table that a name means, with the current schema filled in. Error 1352 for a temporary one in a view that is made.
    pub fn table_source(&self, name: &ObjectName) -> Result<TableSource> {
        let schema = self.schema_named(name)?;
        if self.defining && self.is_temporary(&schema, &name.name) {
            return Err(highkey_types::errors::view_select_tmptable(&name.name));
        }
        self.source_of(&schema, &name.name)
    }

    /// What a name with its schema means.
    pub fn source_of(&self, schema: &str, name: &str) -> Result<TableSource> {
        match self.cx.temporary_table(schema, name) {
            Some(table) => Ok(TableSource::Base(table)),
            None => self.cx.table(schema, name),
        }
    }

    /// The base table that a statement changes.
    pub fn target_table(&self, name: &ObjectName) -> Result<Arc<Table>> {
        match self.table_source(name)? {
            TableSource::Base(table) => Ok(table),
            TableSource::View(view) => Err(super::view::not_updatable(&view.def().name, &self.operation)),
            TableSource::Virtual(table) => Err(MySqlError::with_message(
                1044,
                format!("Access denied for user '{}'@'%' to database '{}'", "", table.schema),
            )),
        }
    }

    /// `left` joined with a table that may read it: then the table is made anew for each row of `left`.
    fn join_with(&mut self, kind: ast::JoinKind, left: (Rel, FromScope), right: &TableRef, condition: &JoinCondition, locks: &[ast::LockClause]) -> Result<(Rel, FromScope)> {
        if !right.is_lateral() {
            let right = self.table_ref(right, locks)?;
            return self.join(kind, left, right, condition);
        }
        // It is bound as a subquery of `left`'s row would be.
        let beside = Some(Beside { from: self.from_depth, open: false });
        let (mut made, _) = self.within(Scope { beside, ..Scope::new(left.1.clone()) }, |binder| binder.table_ref(right, locks))?;
        if !made.0.reads_enclosing_row() {
            made.0.shift_outer(-1);
            return self.join(kind, left, made, condition);
        }
        if kind == ast::JoinKind::Right {
            return Err(needs_left_rows(right));
        }
        let (joined, scope) = self.join(kind, left, made, condition)?;
        let RelKind::Join { kind, left, right, on } = joined.kind else { unreachable!("only a RIGHT JOIN is more than a join") };
        let made = match on {
            Some(on) => (*right).filter(on.in_subquery(left.fields.len())),
            None => *right,
        };
        Ok(((*left).apply(made, kind == JoinKind::Left, joined.fields), scope))
    }

    /// Binds something that sees the columns of the tables before it in FROM. `clause`: what errors about these call it.
    pub fn lateral<T>(&mut self, clause: Option<Clause>, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let depth = self.from_depth;
        let open = |binder: &mut Self, open: bool| {
            for scope in binder.scopes.iter_mut().skip(depth) {
                if let Some(beside) = &mut scope.beside {
                    beside.open = open;
                    scope.clause = clause;
                }
            }
        };
        open(self, true);
        let bound = bind(self);
        open(self, false);
        bound
    }

    fn join(&mut self, kind: ast::JoinKind, left: (Rel, FromScope), right: (Rel, FromScope), condition: &JoinCondition) -> Result<(Rel, FromScope)> {
        let (left_rel, left_scope) = left;
        let (right_rel, right_scope) = right;
        let width = left_rel.fields.len();
        let mut fields = left_rel.fields.clone();
        fields.extend(right_rel.fields.iter().cloned());
        // The outer side's missing rows are NULL.
        let nullable = match kind {
            ast::JoinKind::Left => width..fields.len(),
            ast::JoinKind::Right => 0..width,
            _ => 0..0,
        };
        let mut outer_fields = fields.clone();
        for field in &mut outer_fields[nullable] {
            field.ty.nullable = true;
            field.flags &= !column_flags::NOT_NULL;
        }
        let mut scope = FromScope {
            fields: outer_fields.clone(),
            star: left_scope.star.iter().copied().chain(right_scope.star.iter().map(|i| i + width)).collect(),
            hidden: left_scope.hidden.iter().copied().chain(right_scope.hidden.iter().map(|i| i + width)).collect(),
        };
        let on = match condition {
            JoinCondition::None => None,
            JoinCondition::On(expr) => {
                let inner = Scope { clause: Some(Clause::On), ..Scope::new(FromScope { fields: fields.clone(), ..scope.clone() }) };
                let (on, _) = self.within(inner, |binder| binder.whole_condition(expr))?;
                Some(on)
            }
            JoinCondition::Using { columns, at } => {
                let pairs = columns.iter().map(|n| shared_column(n, &left_scope, &right_scope)).collect::<Result<Vec<_>>>()?;
                self.note_shared(*at, &pairs, &left_scope, &right_scope);
                self.join_shared(&pairs, kind, width, &fields, &mut scope)?
            }
            JoinCondition::Natural { at } => {
                let mut pairs = Vec::new();
                for l in &left_scope.star {
                    let name = &left_scope.fields[*l].name;
                    if right_scope.star.iter().any(|r| same_name(&right_scope.fields[*r].name, name)) {
                        pairs.push(shared_column(name, &left_scope, &right_scope)?);
                    }
                }
                self.note_shared(*at, &pairs, &left_scope, &right_scope);
                self.join_shared(&pairs, kind, width, &fields, &mut scope)?
            }
        };
        let rel = match kind {
            ast::JoinKind::Right => {
                // A LEFT JOIN B with the sides exchanged, then put back in order.
                let right_width = right_rel.fields.len();
                let on = on.map(|mut on| {
                    on.map_columns(&mut |i| if i < width { i + right_width } else { i - width });
                    on
                });
                let mut swapped = outer_fields[width..].to_vec();
                swapped.extend_from_slice(&outer_fields[..width]);
                let join = Rel { kind: RelKind::Join { kind: JoinKind::Left, left: Box::new(right_rel), right: Box::new(left_rel), on }, fields: swapped };
                let exprs = (0..width + right_width)
                    .map(|i| Expr::column(if i < width { i + right_width } else { i - width }, outer_fields[i].ty.clone()))
                    .collect();
                join.project(exprs, outer_fields)
            }
            _ => {
                let kind = match kind {
                    ast::JoinKind::Left => JoinKind::Left,
                    ast::JoinKind::Straight => JoinKind::Straight,
                    _ => JoinKind::Inner,
                };
                Rel { kind: RelKind::Join { kind, left: Box::new(left_rel), right: Box::new(right_rel), on }, fields: outer_fields }
            }
        };
        Ok((rel, scope))
    }

    fn note_shared(&mut self, at: usize, pairs: &[(usize, usize)], left: &FromScope, right: &FromScope) {
        if self.names.is_some() {
            let resolved = pairs.iter().map(|(l, r)| (self.resolved(&left.fields[*l]), self.resolved(&right.fields[*r]))).collect();
            if let Some(names) = &mut self.names {
                names.shared.insert(at, resolved);
            }
        }
    }

    /// The condition of USING and NATURAL. In `*` the shared columns come first and once, then the rest of the side that they are of, then that of the other;
    /// of a RIGHT JOIN that side is the right one.
    fn join_shared(&mut self, pairs: &[(usize, usize)], kind: ast::JoinKind, width: usize, fields: &[Field], scope: &mut FromScope) -> Result<Option<Expr>> {
        let mut parts = Vec::new();
        let mut shown = Vec::new();
        for (l, r) in pairs {
            let r = r + width;
            self.check_field(Privileges::SELECT, &fields[*l])?;
            self.check_field(Privileges::SELECT, &fields[r])?;
            let left = Expr::column(*l, fields[*l].ty.clone());
            let right = Expr::column(r, fields[r].ty.clone());
            parts.push(comparison(CompareOp::Eq, left, right, &self.folder)?);
            let (of_first, other) = if kind == ast::JoinKind::Right { (r, *l) } else { (*l, r) };
            shown.push(of_first);
            scope.hidden.push(other);
            scope.star.retain(|i| *i != other);
        }
        if kind == ast::JoinKind::Right {
            scope.star.sort_by_key(|i| *i < width);
        }
        scope.star.sort_by_key(|i| !shown.contains(i));
        Ok(Expr::and(parts))
    }
}

/// A column that both sides of USING have: error 1054 or 1052 otherwise.
fn shared_column(name: &str, left: &FromScope, right: &FromScope) -> Result<(usize, usize)> {
    let find = |scope: &FromScope| -> Result<usize> {
        let mut found = scope.fields.iter().enumerate().filter(|(i, f)| same_name(&f.name, name) && !scope.hidden.contains(i)).map(|(i, _)| i);
        let first = found.next().ok_or_else(|| errors::unknown_column(name, "from clause"))?;
        if found.next().is_some() { Err(errors::ambiguous_column(name, "from clause")) } else { Ok(first) }
    };
    Ok((find(left)?, find(right)?))
}

/// Names a derived table's fields.
pub(super) fn rename(rel: &mut Rel, alias: &str, columns: &[String]) -> Result<()> {
    if !columns.is_empty() && columns.len() != rel.fields.len() {
        return Err(MySqlError::with_message(1353, "In definition of view, derived table or common table expression, SELECT list and column names list have different column counts"));
    }
    let alias: Str = Str::from(alias);
    for (i, field) in rel.fields.iter_mut().enumerate() {
        if let Some(name) = columns.get(i) {
            field.name = Str::from(name.as_str());
        }
        field.table = alias.clone();
        field.schema = Str::from("");
        field.org_name = field.name.clone();
        field.org_table = alias.clone();
        field.invisible = false;
    }
    for (i, field) in rel.fields.iter().enumerate() {
        if rel.fields[..i].iter().any(|f| same_name(&f.name, &field.name)) {
            return Err(errors::duplicate_column(&field.name));
        }
    }
    Ok(())
}

/// What index hints leave to choose from. Error 1176 for an index that is not there.
pub(super) fn index_choice(table: &Table, hints: &[ast::IndexHint]) -> Result<IndexChoice> {
    let mut choice = IndexChoice::default();
    let all: Vec<usize> = (0..table.def().indexes.len()).collect();
    // USE and FORCE name what may be used, IGNORE takes away from that.
    let ordered = hints.iter().filter(|h| h.kind != IndexHintKind::Ignore).chain(hints.iter().filter(|h| h.kind == IndexHintKind::Ignore));
    for hint in ordered {
        let mut named = Vec::new();
        for name in &hint.indexes {
            let position = table.def().indexes.iter().position(|i| i.name.eq_ignore_ascii_case(name));
            named.push(position.ok_or_else(|| MySqlError::with_message(1176, format!("Key '{name}' doesn't exist in table '{}'", table.def().name)))?);
        }
        let purpose = hint.purpose.as_deref();
        for allowed in [
            matches!(purpose, None | Some("JOIN")).then_some(&mut choice.rows),
            matches!(purpose, None | Some("ORDER BY" | "GROUP BY")).then_some(&mut choice.order),
        ]
        .into_iter()
        .flatten()
        {
            match hint.kind {
                IndexHintKind::Ignore => allowed.get_or_insert_with(|| all.clone()).retain(|i| !named.contains(i)),
                IndexHintKind::Use | IndexHintKind::Force => allowed.get_or_insert_with(Vec::new).extend_from_slice(&named),
            }
        }
    }
    let has = |kind: IndexHintKind| hints.iter().any(|hint| hint.kind == kind);
    if has(IndexHintKind::Use) && has(IndexHintKind::Force) {
        return Err(MySqlError::with_message(1221, "Incorrect usage of USE INDEX and FORCE INDEX"));
    }
    Ok(choice)
}

/// Error 3668: a RIGHT JOIN has the rows of the right side first, which would be made for those of the left one.
fn needs_left_rows(table: &TableRef) -> MySqlError {
    fn reader(table: &TableRef) -> Option<&TableRef> {
        match table {
            TableRef::Join { left, right, .. } => reader(left).or_else(|| reader(right)),
            TableRef::List(tables) => tables.iter().find_map(reader),
            _ => table.is_lateral().then_some(table),
        }
    }
    match reader(table) {
        Some(TableRef::Derived { alias, .. }) => MySqlError::with_message(3668, format!("INNER or LEFT JOIN must be used for LATERAL references made by '{alias}'")),
        Some(TableRef::JsonTable(table)) => highkey_types::errors::tf_forbidden_join_type(&table.alias),
        _ => highkey_types::errors::tf_forbidden_join_type(""),
    }
}

/// Error 1066 for two tables of one name.
fn check_aliases(rel: &Rel) -> Result<()> {
    let mut seen: Vec<(Str, Str)> = Vec::new();
    collect_aliases(rel, &mut seen)
}

fn collect_aliases(rel: &Rel, seen: &mut Vec<(Str, Str)>) -> Result<()> {
    let key = match &rel.kind {
        RelKind::Join { left, right, .. } => {
            collect_aliases(left, seen)?;
            return collect_aliases(right, seen);
        }
        RelKind::Apply { input, .. } => {
            collect_aliases(input, seen)?;
            let Some(mut made) = rel.made() else { return Ok(()) };
            // ON of several tables that are made for a row.
            while let RelKind::Filter { input, .. } = &made.kind {
                made = input;
            }
            return collect_aliases(made, seen);
        }
        // The exchange of a right join.
        RelKind::Project { input, .. } if matches!(&input.kind, RelKind::Join { kind: JoinKind::Left, .. }) && several_tables(rel) => {
            return collect_aliases(input, seen);
        }
        _ => match rel.fields.first() {
            Some(field) => (field.schema.clone(), field.table.clone()),
            None => return Ok(()),
        },
    };
    if seen.iter().any(|(schema, table)| same_table(table, &key.1) && (same_table(schema, &key.0) || key.0.is_empty() || schema.is_empty())) {
        return Err(errors::duplicate_alias(&key.1));
    }
    seen.push(key);
    Ok(())
}

fn several_tables(rel: &Rel) -> bool {
    rel.fields.windows(2).any(|pair| pair[0].table != pair[1].table)
}

/// The table as a statement sees it that names partitions, if it does. Errors 1735, 1747.
pub(super) fn with_partitions(table: Arc<Table>, partitions: &[String]) -> Result<Arc<Table>> {
    if partitions.is_empty() { Ok(table) } else { table.with_partitions(partitions) }
}

/// Only base tables have partitions.
pub(super) fn no_partitions() -> MySqlError {
    MySqlError::with_message(1747, "PARTITION () clause on non partitioned table")
}

/// The least and the greatest FLOAT of a derived table are kept in FLOATs, which show no more than those do.
fn keep_floats(rel: &mut Rel) {
    let Some((input, exprs)) = rel.selected() else { return };
    if !matches!(input.kind, RelKind::Aggregate { .. }) {
        return;
    }
    let kept: Vec<bool> = exprs.iter().map(|expr| expr.as_column().is_some()).collect();
    for (field, kept) in rel.fields.iter_mut().zip(kept) {
        let ty = &mut field.ty.ty;
        if kept && ty.kind == TypeKind::Float && ty.fixed_digits().is_none() {
            ty.float_digits = None;
        }
    }
}
