//! UPDATE and DELETE of one and of several tables.

use std::sync::Arc;

use highkey_table::{Privileges, Table};
use highkey_types::{MySqlError, Str};

use super::binder::{Binder, Result};
use super::dml::{AssignedValue, BoundDelete, BoundUpdate, MultiUpdate, ROW_KEY, SingleDelete, SingleUpdate, UpdateTarget, needs_row_key};
use super::errors;
use super::from::{index_choice, no_partitions, table_fields, with_partitions};
use super::view::{Conditions, Target, leaf, not_updatable, not_updatable_column, root};
use super::scope::{Clause, FromScope, Scope, same_name, same_table};
use crate::parse::ast::{self, LockWait, ObjectName, TableRef};
use crate::plan::{BoundQuery, Expr, ExprType, Field, Hints, Rel, RelKind, SortKey};

/// WHERE, ORDER BY and LIMIT of a statement over one table.
struct Restriction {
    filter: Option<Expr>,
    order_by: Vec<SortKey>,
    limit: Option<Expr>,
}

impl Binder<'_> {
    /// The one table that a statement changes, by its name or a view's; `wanted` is what that takes. None for a view of several tables.
    fn change_target(&mut self, name: &ObjectName, alias: &str, partitions: &[String], wanted: Privileges) -> Result<Option<Target>> {
        self.check_change(wanted, name)?;
        self.check_locked(name, alias, false)?;
        if let Some(view) = self.named_view(name)? {
            if !partitions.is_empty() {
                return Err(no_partitions());
            }
            let exposed = self.exposed_view(&view, alias)?;
            let exposed = exposed.filter(|exposed| has_base_table(&exposed.rel)).ok_or_else(|| not_updatable(alias, self.operation))?;
            self.check_through(wanted, alias)?;
            return self.single_target(&exposed, view.def(), self.operation);
        }
        let table = with_partitions(self.target_table(name)?, partitions)?;
        let fields = table_fields(table.def(), alias);
        let exprs = fields.iter().enumerate().map(|(i, f)| Expr::column(i, f.ty.clone())).collect();
        Ok(Some(Target { table, scope: FromScope::of(fields), exprs, filter: None, check: None, view: None }))
    }

    pub fn update(&mut self, update: &ast::Update) -> Result<BoundUpdate> {
        self.operation = "UPDATE";
        let mut hints = super::hints::hints(&update.hints, false);
        if let ([TableRef::Table { name, alias, partitions, index_hints }], None) = (update.tables.as_slice(), &update.with) {
            let alias: Str = Str::from(alias.as_deref().unwrap_or(&name.name));
            let Some(target) = self.change_target(name, &alias, partitions, Privileges::UPDATE)? else {
                all_rows(update)?;
                return self.multi_update(update, hints).map(|u| BoundUpdate::Multi(Box::new(u)));
            };
            let table = target.table.clone();
            let mut indexes = index_choice(&table, index_hints)?;
            self.changing = Some((table.clone(), alias.clone()));
            let def = table.def().clone();
            let scope = Scope { clause: Some(Clause::Values), ..Scope::new(target.scope.clone()) };
            let ((assignments, restriction), _) = self.within(scope, |binder| {
                let mut assignments = Vec::new();
                for assignment in &update.assignments {
                    let position = binder.scope().find(&assignment.column)?;
                    let position = position.ok_or_else(|| errors::unknown_column(&assignment.column.to_string(), "field list"))?;
                    let column = target.column(position)?;
                    binder.check_field(Privileges::UPDATE, &target.scope.fields[position])?;
                    let value = match binder.assigned(&assignment.value, &def, column)? {
                        AssignedValue::Expr(expr) => AssignedValue::Expr(target.over_table(expr)?),
                        AssignedValue::Default => AssignedValue::Default,
                    };
                    assignments.push((column, value));
                }
                Ok((assignments, binder.restriction(&target, update.filter.as_ref(), &update.order_by, update.limit.as_ref())?))
            })?;
            let Restriction { filter, order_by, limit } = restriction;
            self.check_locked(name, &alias, true)?;
            self.hints_of_change(&update.hints, &table, &alias, &mut indexes, &mut hints);
            let (check, views) = (target.check, self.views.clone());
            return Ok(BoundUpdate::Single(Box::new(SingleUpdate { table, alias, ignore: update.ignore, assignments, filter, order_by, limit, indexes, check, views, hints })));
        }
        if !matches!(update.tables.as_slice(), [TableRef::Table { .. }]) {
            all_rows(update)?;
        }
        self.with_ctes(update.with.as_ref(), |binder| binder.multi_update(update, hints)).map(|u| BoundUpdate::Multi(Box::new(u)))
    }

    fn restriction(&mut self, target: &Target, filter: Option<&ast::Expr>, order_by: &[ast::OrderItem], limit: Option<&ast::Limit>) -> Result<Restriction> {
        self.scope().clause = Some(Clause::Where);
        let filter = filter.map(|f| self.where_condition(f).and_then(|f| target.over_table(f))).transpose()?;
        let filter = Expr::and(target.filter.iter().cloned().chain(filter));
        self.scope().clause = Some(Clause::Order);
        let mut order_by = self.sort_keys(order_by)?;
        self.check_keys_of_rows()?;
        for key in &mut order_by {
            key.expr = target.over_table(key.expr.clone())?;
        }
        let limit = limit.map(|l| self.limit_value(&l.count)).transpose()?;
        Ok(Restriction { filter, order_by, limit })
    }

    /// ORDER BY of a statement that changes rows knows neither groups nor windows.
    fn check_keys_of_rows(&mut self) -> Result<()> {
        if let Some(window) = self.scope().windows.first() {
            return Err(highkey_types::errors::window_invalid_window_func_use(crate::plan::window_name(window.func)));
        }
        if self.scope().aggregates.is_empty() { Ok(()) } else { Err(errors::invalid_group_use()) }
    }

    /// The rows of FROM that a statement is about, in their order where it is about one table.
    fn chosen_rows(&mut self, from: Rel, filter: Option<&ast::Expr>, order_by: &[ast::OrderItem], limit: Option<&ast::Limit>) -> Result<Rel> {
        self.scope().clause = Some(Clause::Where);
        let filter = filter.map(|f| self.where_condition(f)).transpose()?;
        self.scope().clause = Some(Clause::Order);
        let keys = self.sort_keys(order_by)?;
        self.check_keys_of_rows()?;
        let limit = limit.map(|l| self.limit_value(&l.count)).transpose()?;
        let rows = match filter {
            Some(filter) => from.filter_early(filter),
            None => from,
        };
        Ok(rows.sort(keys).limit(None, limit))
    }

    fn with_ctes<T>(&mut self, with: Option<&ast::With>, f: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let visible = self.ctes.len();
        let result = self.define_ctes(with).and_then(|()| f(self));
        self.ctes.truncate(visible);
        result
    }

    fn multi_update(&mut self, update: &ast::Update, hints: Hints) -> Result<MultiUpdate> {
        let locks = shared_locks();
        self.exposing = true;
        self.readable = Privileges::SELECT.and(Privileges::UPDATE);
        let from = self.from_clause(&update.tables, &locks);
        self.readable = Privileges::SELECT;
        self.exposing = false;
        let (from, names) = from?;
        if self.exposed.iter().any(Conditions::has_check) {
            return Err(highkey_types::errors::not_supported_yet("changes of several tables through a view WITH CHECK OPTION"));
        }
        let bases = base_tables(&from);
        let scope = Scope { clause: Some(Clause::Values), ..Scope::new(names) };
        let ((assignments, rows), _) = self.within(scope, |binder| {
            let mut assignments: Vec<(usize, usize, AssignedValue)> = Vec::new();
            for assignment in &update.assignments {
                let position = match binder.scope().find(&assignment.column)? {
                    Some(position) => position,
                    None => return Err(errors::unknown_column(&assignment.column.to_string(), "field list")),
                };
                let Some((base, column)) = place(&from, &bases, position) else {
                    let field = &binder.scope().from.fields[position];
                    let of_view = bases.iter().any(|b| b.alias == field.table);
                    let is_computed = leaf(&from, position).is_none();
                    return Err(if of_view && is_computed { not_updatable_column(&field.name) } else { not_updatable(&field.table, "UPDATE") });
                };
                let several = assignments.iter().any(|(b, ..)| *b != base && bases[*b].alias == bases[base].alias);
                if several {
                    return Err(one_base_only(&bases[base]));
                }
                binder.check_field(Privileges::UPDATE, &binder.scopes[binder.scopes.len() - 1].from.fields[position])?;
                let value = binder.assigned(&assignment.value, bases[base].table.def(), column)?;
                assignments.push((base, column, value));
            }
            let rows = binder.chosen_rows(from, update.filter.as_ref(), &update.order_by, update.limit.as_ref())?;
            Ok((assignments, rows))
        })?;
        let mut from = rows;
        let chosen: Vec<usize> = (0..bases.len()).filter(|b| assignments.iter().any(|(base, ..)| base == b)).collect();
        for base in &chosen {
            self.check_through(Privileges::UPDATE, &bases[*base].alias)?;
        }
        let (mut exprs, mut fields, mut targets) = self.target_rows(&mut from, &bases, &chosen)?;
        for (base, column, value) in assignments {
            let target = chosen.iter().position(|c| *c == base).expect("chosen above");
            let output = match value {
                AssignedValue::Expr(expr) => {
                    fields.push(Field::computed("", expr.ty.clone()));
                    exprs.push(expr);
                    Some(exprs.len() - 1)
                }
                AssignedValue::Default => None,
            };
            targets[target].assignments.push((column, output));
        }
        refuse_moved_twins(&bases, &chosen, &targets)?;
        let query = self.dml_query(from.project(exprs, fields), hints);
        Ok(MultiUpdate { targets, query, ignore: update.ignore })
    }

    /// Outputs that identify and hold the rows of the chosen tables.
    fn target_rows(&mut self, from: &mut Rel, bases: &[BaseTable], chosen: &[usize]) -> Result<(Vec<Expr>, Vec<Field>, Vec<UpdateTarget>)> {
        let (mut exprs, mut fields, mut targets) = (Vec::new(), Vec::new(), Vec::new());
        for b in chosen {
            let base = &bases[*b];
            self.cx.check_locked_as(&base.name.0, &base.name.1, &base.alias, true)?;
            let start = exprs.len();
            for position in base.range() {
                exprs.push(Expr::column(position, from.fields[position].ty.clone()));
                fields.push(from.fields[position].clone());
            }
            if needs_row_key(base.table.def()) {
                // Views over one table scan it under one alias.
                let twins = bases.iter().filter(|b| b.scanned_as == base.scanned_as && Arc::ptr_eq(&b.table, &base.table)).count();
                let at = if twins > 1 { None } else { expose_row_key(from, base) };
                match at {
                    Some(at) => {
                        exprs.push(Expr::column(at, ExprType::row_key(true)));
                        fields.push(Field::computed("DB_ROW_KEY", ExprType::row_key(true)));
                    }
                    // The session's time has to do, which is of one moment but for an hour a year.
                    None if base.table.def().primary_key().is_some() => {}
                    None => return Err(highkey_types::errors::not_supported_yet("multi-table changes of tables without primary key here")),
                }
            }
            targets.push(UpdateTarget { table: base.table.clone(), row: start..exprs.len(), assignments: Vec::new() });
        }
        Ok((exprs, fields, targets))
    }

    fn dml_query(&mut self, mut rel: Rel, hints: Hints) -> BoundQuery {
        if self.next_cte > 0 {
            rel.inline_lone_ctes();
        }
        BoundQuery { rel, hints, into: None, views: self.views.clone(), locking: true, calc_found_rows: false, ordered: false }
    }

    pub fn delete(&mut self, delete: &ast::Delete) -> Result<BoundDelete> {
        self.operation = "DELETE";
        let mut hints = super::hints::hints(&delete.hints, false);
        if let ([TableRef::Table { name, alias, partitions, index_hints }], true, None) = (delete.tables.as_slice(), delete.targets.is_empty(), &delete.with) {
            let alias: Str = Str::from(alias.as_deref().unwrap_or(&name.name));
            let Some(target) = self.change_target(name, &alias, partitions, Privileges::DELETE)? else { return Err(delete_from_join(name, self.cx.current_schema())) };
            let table = target.table.clone();
            let mut indexes = index_choice(&table, index_hints)?;
            self.changing = Some((table.clone(), alias.clone()));
            let scope = Scope::new(target.scope.clone());
            let (restriction, _) =
                self.within(scope, |binder| binder.restriction(&target, delete.filter.as_ref(), &delete.order_by, delete.limit.as_ref()))?;
            self.check_locked(name, &alias, true)?;
            self.hints_of_change(&delete.hints, &table, &alias, &mut indexes, &mut hints);
            let views = self.views.clone();
            let Restriction { filter, order_by, limit } = restriction;
            return Ok(BoundDelete::Single(Box::new(SingleDelete { table, alias, ignore: delete.ignore, filter, order_by, limit, indexes, views, hints })));
        }
        self.with_ctes(delete.with.as_ref(), |binder| binder.multi_delete(delete, hints))
    }

    fn multi_delete(&mut self, delete: &ast::Delete, hints: Hints) -> Result<BoundDelete> {
        let locks = shared_locks();
        let mut tables = delete.tables.clone();
        // The one table that is changed is no common table expression.
        if delete.targets.is_empty()
            && let [TableRef::Table { name, .. }] = tables.as_mut_slice()
            && name.schema.is_none()
        {
            name.schema = self.cx.current_schema().map(|schema| schema.to_string());
        }
        self.exposing = true;
        let from = self.from_clause(&tables, &locks);
        self.exposing = false;
        let (from, names) = from?;
        let (bases, computed) = (base_tables(&from), computed_tables(&from));
        if let ([TableRef::Table { name, .. }], true, true) = (tables.as_slice(), delete.targets.is_empty(), bases.is_empty()) {
            return Err(not_updatable(&name.name, "DELETE"));
        }
        let (mut from, _) = self.within(Scope::new(names), |binder| binder.chosen_rows(from, delete.filter.as_ref(), &delete.order_by, delete.limit.as_ref()))?;
        let mut chosen = Vec::new();
        if delete.targets.is_empty() {
            chosen = (0..bases.len()).collect();
        }
        for (i, target) in delete.targets.iter().enumerate() {
            let is_same = |other: &ObjectName| same_table(&other.name, &target.name) && other.schema.as_deref().zip(target.schema.as_deref()).is_none_or(|(a, b)| same_name(a, b));
            if delete.targets[..i].iter().any(is_same) {
                return Err(errors::duplicate_alias(&target.name));
            }
            let mut named = bases.iter().enumerate().filter(|(_, b)| b.is_named(target)).map(|(i, _)| i);
            let Some(base) = named.next() else {
                if from.fields.iter().any(|f| same_table(&f.table, &target.name)) {
                    return Err(not_updatable(&target.name, "DELETE"));
                }
                return Err(MySqlError::with_message(1109, format!("Unknown table '{}' in MULTI DELETE", target.name)));
            };
            if named.next().is_some() || computed.iter().any(|name| same_table(name, &bases[base].alias)) {
                return Err(delete_from_join(target, self.cx.current_schema()));
            }
            if !chosen.contains(&base) {
                chosen.push(base);
            }
        }
        for base in &chosen {
            self.check_target(Privileges::DELETE, &bases[*base].alias, &bases[*base].table)?;
        }
        let (exprs, fields, targets) = self.target_rows(&mut from, &bases, &chosen)?;
        let query = self.dml_query(from.project(exprs, fields), hints);
        Ok(BoundDelete::Multi { targets, query: Box::new(query), ignore: delete.ignore })
    }
}

/// A base table of a join and where its columns stand.
struct BaseTable {
    table: Arc<Table>,
    /// Of the table, or of the view that it stands in.
    alias: Str,
    /// The table's own alias.
    scanned_as: Str,
    /// Schema and name of the table or view.
    name: (Str, Str),
    offset: usize,
    width: usize,
}

impl BaseTable {
    fn range(&self) -> std::ops::Range<usize> {
        self.offset..self.offset + self.width
    }

    fn is_named(&self, name: &ObjectName) -> bool {
        let schema = name.schema.as_ref().is_none_or(|s| same_name(s, &self.name.0));
        schema && (same_table(&self.alias, &name.name) || (name.schema.is_some() && same_table(&self.name.1, &name.name)))
    }
}

/// What is only read; those that are changed are locked exclusively (`lock_targets`).
fn shared_locks() -> Vec<ast::LockClause> {
    vec![ast::LockClause { exclusive: false, of: Vec::new(), wait: LockWait::Wait }]
}

/// Some of its rows are rows of a table, which may be changed.
pub(super) fn has_base_table(rel: &Rel) -> bool {
    !base_tables(rel).is_empty()
}

fn base_tables(from: &Rel) -> Vec<BaseTable> {
    let mut joined = Vec::new();
    collect_joined(from, 0, &mut joined);
    let base = |(offset, rel): (usize, &Rel)| {
        let RelKind::Scan { table, alias, .. } = &rel.kind else { return None };
        // Tables of a view are shown as the view.
        let field = &from.fields[offset];
        let name = if field.name.is_empty() { field.table.clone() } else { field.org_table.clone() };
        let (scanned_as, alias) = (alias.clone(), field.table.clone());
        Some(BaseTable { table: table.clone(), alias, scanned_as, name: (field.schema.clone(), name), offset, width: rel.fields.len() })
    };
    joined.into_iter().filter_map(base).collect()
}

/// The names under which FROM joins what is computed: derived tables, and views or parts of views that are made once.
pub(super) fn computed_tables(from: &Rel) -> Vec<Str> {
    let mut joined = Vec::new();
    collect_joined(from, 0, &mut joined);
    let computed = joined.into_iter().filter(|(_, rel)| !matches!(rel.kind, RelKind::Scan { .. }));
    computed.filter_map(|(offset, _)| Some(from.fields.get(offset)?.table.clone())).collect()
}

/// The base table and its column that an output of FROM is, be it under a view's name.
fn place(from: &Rel, bases: &[BaseTable], position: usize) -> Option<(usize, usize)> {
    let (scan, column) = root(from, position)?;
    let base = bases.iter().position(|b| root(from, b.offset).is_some_and(|(own, _)| std::ptr::eq(own, scan)))?;
    Some((base, column))
}

/// Error 1221 where ORDER BY or LIMIT chooses rows of several tables.
fn all_rows(update: &ast::Update) -> Result<()> {
    let clause = match (update.order_by.is_empty(), &update.limit) {
        (true, None) => return Ok(()),
        (true, Some(_)) => "LIMIT",
        (false, _) => "ORDER BY",
    };
    Err(highkey_types::errors::wrong_usage("UPDATE", clause))
}

fn one_base_only(base: &BaseTable) -> MySqlError {
    MySqlError::with_message(1393, format!("Can not modify more than one base table through a join view '{}.{}'", base.name.0, base.name.1))
}

fn delete_from_join(name: &ObjectName, schema: Option<Str>) -> MySqlError {
    let schema = name.schema.clone().or(schema.map(|s| s.to_string())).unwrap_or_default();
    MySqlError::with_message(1395, format!("Can not delete from join view '{schema}.{}'", name.name))
}

/// What FROM joins, each with the place of its first column: tables, and what is computed.
fn collect_joined<'a>(rel: &'a Rel, offset: usize, found: &mut Vec<(usize, &'a Rel)>) {
    match &rel.kind {
        RelKind::Join { left, right, .. } => {
            collect_joined(left, offset, found);
            collect_joined(right, offset + left.fields.len(), found);
        }
        RelKind::Apply { input, .. } => {
            collect_joined(input, offset, found);
            found.push((offset + input.fields.len(), rel));
        }
        RelKind::Filter { input, .. } => collect_joined(input, offset, found),
        // The exchange of a right join: left and right stand the other way round below.
        RelKind::Project { input, exprs } => {
            let mut inner = Vec::new();
            collect_joined(input, 0, &mut inner);
            let outer = |at: usize| exprs.iter().position(|e| e.as_column() == Some(at));
            found.extend(inner.into_iter().filter_map(|(at, joined)| Some((offset + outer(at)?, joined))));
            found.sort_by_key(|(at, _)| *at);
        }
        _ => found.push((offset, rel)),
    }
}

/// Makes the base table's scan give the rows' keys too, and everything above pass them on as its last column.
/// Gives its position in the output.
fn expose_row_key(rel: &mut Rel, base: &BaseTable) -> Option<usize> {
    let field = Field::computed("DB_ROW_KEY", ExprType::row_key(true));
    match &mut rel.kind {
        RelKind::Scan { table, alias, columns, .. } => {
            if *alias != base.scanned_as || !Arc::ptr_eq(table, &base.table) || columns.contains(&ROW_KEY) {
                return None;
            }
            columns.push(ROW_KEY);
            rel.fields.push(field);
            Some(rel.fields.len() - 1)
        }
        RelKind::Filter { input, .. } | RelKind::Sort { input, .. } | RelKind::Limit { input, .. } => {
            let position = expose_row_key(input, base)?;
            rel.fields = input.fields.clone();
            Some(position)
        }
        RelKind::Join { left, right, on, .. } => {
            let before = left.fields.len();
            if expose_row_key(left, base).is_some() {
                // The right side's columns moved by one: a projection puts the key last.
                if let Some(on) = on {
                    on.map_columns(&mut |i| if i >= before { i + 1 } else { i });
                }
                return Some(put_last(rel, before, field));
            }
            expose_row_key(right, base)?;
            rel.fields.push(field);
            Some(rel.fields.len() - 1)
        }
        RelKind::Apply { input, .. } => {
            let before = input.fields.len();
            expose_row_key(input, base)?;
            Some(put_last(rel, before, field))
        }
        RelKind::Project { input, exprs } => {
            let position = expose_row_key(input, base)?;
            exprs.push(Expr::column(position, ExprType::row_key(true)));
            rel.fields.push(field);
            Some(rel.fields.len() - 1)
        }
        _ => None,
    }
}

/// Puts a projection on a join, whose column `at` is new, that has this column last, and gives its position there.
fn put_last(rel: &mut Rel, at: usize, field: Field) -> usize {
    rel.fields.insert(at, field);
    let last = rel.fields.len() - 1;
    let order: Vec<usize> = (0..at).chain(at + 1..=last).chain([at]).collect();
    let exprs = order.iter().map(|i| Expr::column(*i, rel.fields[*i].ty.clone())).collect();
    let fields: Vec<Field> = order.iter().map(|i| rel.fields[*i].clone()).collect();
    let join = std::mem::replace(rel, Rel::dual());
    *rel = join.project(exprs, fields);
    last
}

/// Error 1706: a table is changed under two names, and its rows move under one of them.
fn refuse_moved_twins(bases: &[BaseTable], chosen: &[usize], targets: &[UpdateTarget]) -> Result<()> {
    let moves = |target: &UpdateTarget| {
        let assigns = |column: &usize| target.assignments.iter().any(|(assigned, _)| assigned == column);
        let key = target.table.def().primary_key();
        key.is_some_and(|key| key.parts.iter().any(|part| assigns(&part.column))) || target.table.partitioned_by().iter().any(assigns)
    };
    for (n, one) in targets.iter().enumerate() {
        for (m, other) in targets.iter().enumerate().skip(n + 1) {
            if one.table.id() == other.table.id() && (moves(one) || moves(other)) {
                return Err(highkey_types::errors::multi_update_key_conflict(&bases[chosen[n]].alias, &bases[chosen[m]].alias));
            }
        }
    }
    Ok(())
}
