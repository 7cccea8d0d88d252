//! Views: what their names stand for in a query, what may be written through them, and the text that a new one is kept as.

use std::sync::Arc;

use highkey_table::{CheckOption, Privileges, Table, TableId, View, ViewAlgorithm, ViewDef};
use highkey_types::{Collation, MySqlError, SqlMode, Str};

use super::binder::{Binder, Result};
use super::context::ask_around;
use super::from::rename;
use super::privileges::Below;
use super::scope::{Clause, FromScope, Scope, same_name};
use super::{BindContext, TableSource, ViewCheck};
use crate::parse::ast::{self, QueryBody};
use crate::parse::print::{self, ResolvedColumn, ResolvedNames};
use crate::plan::{Expr, ExprKind, ExprType, Field, JoinKind, LockSpec, Rel, RelKind};
use crate::privileges::Access;

/// The surroundings of a view's own query: the session's, but what its names and literals mean is the view's.
struct ViewContext<'a> {
    cx: &'a dyn BindContext,
    view: &'a ViewDef,
    /// What the view's definer may do; `None`: everything.
    definer: Option<Arc<Access>>,
}

impl BindContext for ViewContext<'_> {
    ask_around!();

    fn current_schema(&self) -> Option<Str> {
        Some(self.view.schema.clone())
    }

    fn collation(&self) -> &'static Collation {
        self.view.collation
    }

    fn sql_mode(&self) -> SqlMode {
        self.cx.sql_mode()
    }

    fn only_full_group_by(&self) -> bool {
        self.cx.only_full_group_by()
    }

    fn strict(&self) -> bool {
        self.cx.strict()
    }

    fn access(&self) -> Option<&Access> {
        if self.view.invoker { self.cx.access() } else { self.definer.as_deref() }
    }

    fn explainer(&self) -> Option<&Access> {
        self.cx.explainer()
    }
}

/// A view that is made: its query as text, and what can be done with it.
pub struct BoundView {
    /// The query, every name qualified.
    pub text: String,
    /// Its rows are rows of tables.
    pub mergeable: bool,
    /// Rows can be changed through it.
    pub updatable: bool,
}

/// A view whose rows are rows of its base tables: its columns stand behind all of theirs.
pub(super) struct Exposed {
    pub rel: Rel,
    /// The columns of the tables below have no names here.
    pub scope: FromScope,
    /// The conditions of the view and of those below, over `rel`'s row; only of a view over one table.
    conditions: Conditions,
    /// See `Below`.
    granted: Vec<(Str, Privileges)>,
}

/// Conditions of a view over one table.
#[derive(Default, Clone)]
pub(super) struct Conditions {
    /// Of the view and all below.
    all: Option<Expr>,
    /// What CHECK OPTION asks of rows that are written.
    check: Option<Expr>,
}

impl Conditions {
    pub fn has_check(&self) -> bool {
        self.check.is_some()
    }
}

/// The table that a statement changes through a view, or itself.
pub(super) struct Target {
    pub table: Arc<Table>,
    /// What statements over one table are bound over: the view's columns, or the table's.
    pub scope: FromScope,
    /// What each column of the scope is, over the table's row.
    pub exprs: Vec<Expr>,
    /// Which rows the view has.
    pub filter: Option<Expr>,
    pub check: Option<Arc<ViewCheck>>,
    /// The name of the view.
    pub view: Option<Str>,
}

impl Target {
    /// A bound expression over the scope, over the table's row.
    pub fn over_table(&self, expr: Expr) -> Result<Expr> {
        if self.view.is_none() {
            return Ok(expr);
        }
        expr.over(&self.exprs).ok_or_else(|| highkey_types::errors::not_supported_yet("a subquery over a computed column of a view in this statement"))
    }

    /// The table's column that a position of the scope is, or 1348.
    pub fn column(&self, position: usize) -> Result<usize> {
        self.exprs[position].as_column().ok_or_else(|| not_updatable_column(&self.scope.fields[position].name))
    }
}

pub(super) fn not_updatable_column(name: &str) -> MySqlError {
    MySqlError::with_message(1348, format!("Column '{name}' is not updatable"))
}

pub(super) fn not_updatable(view: &str, statement: &str) -> MySqlError {
    MySqlError::with_message(1288, format!("The target table {view} of the {statement} is not updatable"))
}

/// A view that reads the table that the statement changes. `alias` is its name, `target` the changed table's or view's.
pub(super) fn prevented(alias: &str, operation: &str, target: &str) -> MySqlError {
    MySqlError::with_message(1443, format!("The definition of table '{alias}' prevents operation {operation} on table '{target}'."))
}

pub(super) fn invalid_view(view: &ViewDef) -> MySqlError {
    MySqlError::with_message(
        1356,
        format!("View '{}.{}' references invalid table(s) or column(s) or function(s) or definer/invoker of view lack rights to use them", view.schema, view.name),
    )
}

/// Errors of a view's own query that mean that the view is no longer what it was, or that its definer may no longer what it does.
const LOST: &[u16] = &[1046, 1049, 1051, 1054, 1064, 1109, 1142, 1143, 1146, 1305, 1356, 1370];

impl Binder<'_> {
    /// Binds a view's own query by `f`.
    fn in_view<T>(&mut self, view: &Arc<View>, f: impl FnOnce(&mut Binder<'_>, &ast::Query) -> Result<T>) -> Result<T> {
        let def = view.def();
        let name = (def.schema.clone(), def.name.clone());
        if self.expanding.contains(&name) {
            return Err(MySqlError::with_message(1462, format!("`{}`.`{}` contains view recursion", def.schema, def.name)));
        }
        if !def.invoker && !self.cx.has_account(&def.definer.0, &def.definer.1) {
            return Err(MySqlError::with_message(1449, format!("The user specified as a definer ('{}'@'{}') does not exist", def.definer.0, def.definer.1)));
        }
        self.check_explained(def)?;
        let query = crate::parse::parse_query(&def.text).map_err(|_| invalid_view(def))?;
        let definer = if def.invoker { None } else { self.cx.access_of(&def.definer.0, &def.definer.1) };
        let cx = ViewContext { cx: self.cx, view: def, definer };
        let mut inner = Binder::new(&cx);
        inner.next_cte = self.next_cte;
        inner.expanding = self.expanding.clone();
        inner.expanding.push(name);
        inner.calling.clone_from(&self.calling);
        inner.called = self.called.clone();
        inner.bodies = self.bodies.clone();
        let bound = crate::stack::ensure(|| f(&mut inner, &query));
        self.next_cte = inner.next_cte;
        self.granted_below = inner.granted;
        self.views.push(view.clone());
        self.views.append(&mut inner.views);
        bound.map_err(|e| if LOST.contains(&e.code) { invalid_view(def) } else { e })
    }

    /// What a view's name stands for in a query.
    pub fn view_rel(&mut self, view: &Arc<View>, alias: &str, locks: &[ast::LockClause]) -> Result<Rel> {
        let def = view.def();
        let mut rel = self.in_view(view, |binder, query| {
            let mut rel = binder.query_expression(query)?;
            rename(&mut rel, alias, &column_names(def))?;
            Ok(rel)
        })?;
        self.count_copy(&rel)?;
        for field in &mut rel.fields {
            field.schema = def.schema.clone();
            field.org_table = def.name.clone();
        }
        if let Some((table, name)) = &self.changing
            && def.algorithm != ViewAlgorithm::TempTable
            && reads_rows(&rel)
            && (def.algorithm == ViewAlgorithm::Merge || !has_dependent_column(&rel))
            && reads_table(&rel, table.id())
        {
            return Err(match self.inserting {
                true if super::scope::same_table(name, &def.name) => highkey_types::errors::update_table_used(name),
                true => prevented(alias, "INSERT", name),
                false => prevented(alias, self.operation, &table.def().name),
            });
        }
        let lock = locks.iter().find(|l| l.of.is_empty() || l.of.iter().any(|t| super::scope::same_table(t, alias)));
        if let Some(lock) = lock {
            lock_scans(&mut rel, LockSpec { exclusive: lock.exclusive, wait: lock.wait });
            self.locking = true;
        }
        self.merges = true;
        Ok(rel)
    }

    /// The column of a base table that a view's column is, if it is one.
    pub fn base_column(&mut self, view: &Arc<View>, name: &str) -> Result<Option<(Arc<Table>, usize)>> {
        let def = view.def();
        let rel = self.in_view(view, |binder, query| {
            let mut rel = binder.query_expression(query)?;
            rename(&mut rel, &def.name, &column_names(def))?;
            Ok(rel)
        })?;
        self.count_copy(&rel)?;
        let column = rel.fields.iter().position(|field| same_name(&field.name, name)).and_then(|position| root(&rel, position));
        Ok(column.and_then(|(scan, position)| match &scan.kind {
            RelKind::Scan { table, .. } => Some((table.clone(), position)),
            _ => None,
        }))
    }

    /// The column of a base table that a name means which is a view's, in a statement that changes rows through views.
    pub fn viewed_column(&mut self, name: &ast::ColumnRef) -> Result<Option<(Arc<Table>, usize)>> {
        if self.views.is_empty() {
            return Ok(None);
        }
        let scope = self.scope();
        let Ok(Some(index)) = scope.find(name) else { return Ok(None) };
        let field = scope.from.fields[index].clone();
        if field.schema.is_empty() {
            return Ok(None);
        }
        match self.source_of(&field.schema, &field.org_table)? {
            TableSource::View(view) => self.base_column(&view, &field.org_name),
            _ => Ok(None),
        }
    }

    /// A view with the columns of its base tables; None if its rows are not theirs.
    pub fn exposed_view(&mut self, view: &Arc<View>, alias: &str) -> Result<Option<Exposed>> {
        let def = view.def();
        if def.algorithm != ViewAlgorithm::TempTable
            && let Some(exposed) = self.in_view(view, |binder, query| binder.exposed_query(query, def, alias))?
        {
            let granted = self.granted_below;
            // Those of a view inside a view are among what the outer one reads.
            self.granted = self.granted.within(granted);
            self.below.push(Below { alias: Str::from(alias), view: view.clone(), granted, columns: exposed.granted.clone() });
            return Ok(Some(exposed));
        }
        // It may be no view at all any more.
        self.view_rel(view, alias, &[])?;
        Ok(None)
    }

    fn exposed_query(&mut self, query: &ast::Query, def: &ViewDef, alias: &str) -> Result<Option<Exposed>> {
        let QueryBody::Select(select) = &query.body else { return Ok(None) };
        let plain = !select.distinct && select.group_by.is_empty() && select.having.is_none() && select.windows.is_empty() && query.limit.is_none();
        if !plain || select.from.is_empty() {
            return Ok(None);
        }
        self.define_ctes(query.with.as_ref())?;
        self.exposing = true;
        let from = self.from_clause(&select.from, &[]);
        self.exposing = false;
        let (rel, names) = from?;
        let single = matches!(select.from.as_slice(), [ast::TableRef::Table { .. }]);
        let below = self.exposed.pop().filter(|_| single).unwrap_or_default();
        self.exposed.clear();
        let width = rel.fields.len();
        let (bound, scope) = self.within(Scope::new(names), |binder| {
            binder.scope().clause = Some(Clause::Where);
            let filter = select.filter.as_ref().map(|f| binder.whole_condition(f)).transpose()?;
            let (items, fields) = binder.select_items(select, &rel)?;
            Ok((filter, items, fields))
        })?;
        let (filter, items, fields) = bound;
        let dependent = def.algorithm != ViewAlgorithm::Merge && items.iter().any(depends_on_row);
        if !scope.aggregates.is_empty() || !scope.windows.is_empty() || dependent || has_outer_join(&rel) {
            return Ok(None);
        }
        let mut named = Rel { kind: RelKind::Values { rows: Vec::new() }, fields };
        rename(&mut named, alias, &column_names(def))?;
        let all = Expr::and(below.all.iter().chain(&filter).cloned());
        let check = match def.check {
            CheckOption::None => below.check.clone(),
            CheckOption::Local => Expr::and(below.check.iter().chain(&filter).cloned()),
            CheckOption::Cascaded => all.clone(),
        };
        if check.is_some() && !single {
            return Err(highkey_types::errors::not_supported_yet("changes through a view of several tables WITH CHECK OPTION"));
        }
        let mut exprs: Vec<Expr> = rel.fields.iter().enumerate().map(|(i, f)| Expr::column(i, f.ty.clone())).collect();
        let mut fields: Vec<Field> = rel.fields.iter().map(|f| Field { name: Str::from(""), ..f.clone() }).collect();
        let mut granted = Vec::new();
        for (field, item) in named.fields.into_iter().zip(items) {
            granted.push((field.name.clone(), item.as_column().map_or(Privileges::NONE, |at| self.granted_on(&rel.fields[at]))));
            fields.push(Field { ty: item.ty.clone(), org_table: def.name.clone(), ..field });
            exprs.push(item);
        }
        for field in &mut fields {
            field.table = Str::from(alias);
            field.schema = def.schema.clone();
        }
        let rel = match filter {
            Some(filter) => rel.filter(filter),
            None => rel,
        };
        let star = (width..fields.len()).collect();
        let scope = FromScope { fields: fields.clone(), star, hidden: Vec::new() };
        Ok(Some(Exposed { rel: rel.project(exprs, fields), scope, conditions: Conditions { all, check }, granted }))
    }

    /// For FROM of a statement that changes rows: a view by its base tables, if that is possible.
    pub fn exposed_ref(&mut self, view: &Arc<View>, alias: &str) -> Result<Option<(Rel, FromScope)>> {
        Ok(self.exposed_view(view, alias)?.map(|exposed| {
            self.exposed.push(exposed.conditions);
            (exposed.rel, exposed.scope)
        }))
    }

    /// The one table behind an exposed view; None for a join.
    pub fn single_target(&mut self, exposed: &Exposed, view: &ViewDef, statement: &str) -> Result<Option<Target>> {
        let Some((scan, exprs, filter)) = flatten(exposed.rel.clone()) else { return Ok(None) };
        let RelKind::Scan { table, .. } = &scan.kind else { return Ok(None) };
        let reads_itself = |e: &Expr| {
            let mut found = false;
            e.walk(&mut |e| {
                if let ExprKind::Subquery(sub) = &e.kind {
                    found |= reads_table(&sub.plan, table.id());
                }
            });
            found
        };
        if filter.as_ref().is_some_and(reads_itself) || (statement == "DELETE" && exprs.iter().any(reads_itself)) {
            return Err(not_updatable(&view.name, statement));
        }
        let check = match exposed.conditions.check.clone() {
            None => None,
            Some(check) => {
                let condition = check.over(&exprs).filter(|c| !c.has_subquery());
                let condition = condition.ok_or_else(|| highkey_types::errors::not_supported_yet("subqueries in a view WITH CHECK OPTION that is written"))?;
                Some(Arc::new(ViewCheck { view: format!("{}.{}", view.schema, view.name).into(), condition }))
            }
        };
        Ok(Some(Target { table: table.clone(), scope: exposed.scope.clone(), exprs, filter, check, view: Some(view.name.clone()) }))
    }

    /// CREATE VIEW: the query bound, and written down with what its names mean.
    pub fn new_view(&mut self, view: &ast::CreateView, schema: &Str) -> Result<BoundView> {
        let name = (schema.clone(), Str::from(view.name.name.as_str()));
        self.expanding.push(name);
        self.defining = true;
        self.names = Some(Box::new(ResolvedNames {
            schema: self.cx.current_schema(),
            charset: self.cx.collation().charset.name(),
            ..ResolvedNames::default()
        }));
        let mut rel = self.query_expression(&view.query)?;
        let names = self.names.take().expect("set above");
        let text = print::resolved(&view.query, &names)?;
        let columns = print::column_names(&view.query, &names)?;
        let columns = if view.columns.is_empty() { columns } else { view.columns.clone() };
        let selected = rel.fields.clone();
        rename(&mut rel, &view.name.name, &columns)?;
        // HAVING is a condition like another in the plan.
        let has_having = matches!(&view.query.body, QueryBody::Select(select) if select.having.is_some());
        let mergeable = reads_rows(&rel) && !has_having;
        let direct = mergeable && view.algorithm != ViewAlgorithm::TempTable;
        if !direct && view.check != CheckOption::None {
            return Err(MySqlError::with_message(1368, format!("CHECK OPTION on non-updatable view '{}.{}'", schema, view.name.name)));
        }
        let updatable = direct && !has_outer_join(&rel) && selected.iter().enumerate().any(|(i, field)| self.is_updatable(&rel, i, field));
        Ok(BoundView { text, mergeable, updatable })
    }

    /// A column of a view's query is a base table's, of no view that is not updatable, and no subquery reads the only table.
    fn is_updatable(&self, rel: &Rel, position: usize, field: &Field) -> bool {
        let of_copy = self.views.iter().any(|v| v.def().schema == field.schema && v.def().name == field.org_table && !v.def().updatable);
        let table = root(rel, position).and_then(|(scan, _)| if let RelKind::Scan { table, .. } = &scan.kind { Some(table.id()) } else { None });
        !of_copy && table.is_some_and(|table| joins(rel) || !subquery_reads(rel, table))
    }

    /// The query as EXPLAIN's note shows it. Error 1351 for variables and parameters, which have no such form.
    pub fn explained(&mut self, query: &ast::Query) -> Result<String> {
        self.names = Some(Box::new(ResolvedNames {
            schema: self.cx.current_schema(),
            all_schemas: true,
            charset: self.cx.collation().charset.name(),
            ..ResolvedNames::default()
        }));
        self.query_expression(query)?;
        let mut names = self.names.take().expect("set above");
        names.hints = super::hint_warnings::printed(&mut self.hinted);
        print::explained(query, &names)
    }

    /// Notes what a column reference has been found to be, if that is wanted.
    pub fn note_column(&mut self, at: usize, expr: &Expr) {
        if self.names.is_none() {
            return;
        }
        let field = match expr.kind {
            ExprKind::Column(index) => self.scopes.last().and_then(|scope| scope.from.fields.get(index)),
            ExprKind::Outer { depth, index } => self.scopes.iter().rev().nth(depth).and_then(|scope| scope.from.fields.get(index)),
            _ => None,
        };
        if let Some(column) = field.map(|f| self.resolved(f))
            && let Some(names) = &mut self.names
        {
            names.columns.insert(at, column);
        }
    }

    /// A field of FROM as it is written.
    pub fn resolved(&self, field: &Field) -> ResolvedColumn {
        let of_view = self.views.iter().any(|v| v.def().schema == field.schema && v.def().name == field.org_table);
        let any_name = self.names.as_ref().is_some_and(|names| names.all_schemas);
        let own_name = !field.schema.is_empty() && (any_name || field.table == field.org_table) && !of_view;
        let table = (!field.table.is_empty()).then(|| field.table.clone());
        ResolvedColumn { schema: own_name.then(|| field.schema.clone()), table, column: field.name.clone() }
    }
}

fn column_names(def: &ViewDef) -> Vec<String> {
    def.columns.iter().map(ToString::to_string).collect()
}

/// Its rows are rows of tables: nothing grouped, cut, made distinct or united.
fn reads_rows(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Scan { .. } | RelKind::Virtual { .. } | RelKind::Join { .. } | RelKind::Apply { .. } => true,
        RelKind::Project { input, .. } | RelKind::Filter { input, .. } | RelKind::Sort { input, .. } => reads_rows(input),
        _ => false,
    }
}

/// A subquery in it has another result for each row: MySQL merges no view with such a column, unless it is told to.
fn depends_on_row(expr: &Expr) -> bool {
    let mut found = false;
    expr.walk(&mut |e| found |= matches!(e.kind, ExprKind::Subquery(_)) && !e.columns().is_empty());
    found
}

fn has_dependent_column(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Project { input, exprs } => exprs.iter().any(depends_on_row) || has_dependent_column(input),
        RelKind::Filter { input, .. } | RelKind::Sort { input, .. } => has_dependent_column(input),
        _ => false,
    }
}

fn joins(rel: &Rel) -> bool {
    match &rel.kind {
        RelKind::Join { .. } | RelKind::Apply { .. } => true,
        RelKind::Project { input, .. } | RelKind::Filter { input, .. } | RelKind::Sort { input, .. } => joins(input),
        _ => false,
    }
}

/// FROM has an outer join: nothing is changed through it. Those of views that are joined count for themselves.
fn has_outer_join(rel: &Rel) -> bool {
    fn is_outer(rel: &Rel) -> bool {
        match &rel.kind {
            RelKind::Join { kind, left, right, .. } => *kind == JoinKind::Left || is_outer(left) || is_outer(right),
            RelKind::Apply { input, outer, .. } => *outer || is_outer(input) || rel.made().is_some_and(is_outer),
            RelKind::Filter { input, .. } => is_outer(input),
            _ => false,
        }
    }
    match &rel.kind {
        RelKind::Join { .. } | RelKind::Apply { .. } => is_outer(rel),
        RelKind::Project { input, .. } | RelKind::Filter { input, .. } | RelKind::Sort { input, .. } => has_outer_join(input),
        _ => false,
    }
}

fn subquery_reads(rel: &Rel, table: TableId) -> bool {
    let mut found = false;
    rel.for_each_root(&mut |root| {
        root.walk(&mut |e| {
            if let ExprKind::Subquery(sub) = &e.kind {
                found |= reads_table(&sub.plan, table);
            }
        });
    });
    found
}

fn reads_table(rel: &Rel, id: TableId) -> bool {
    let mut found = false;
    rel.for_each_operator(&mut |rel| found |= matches!(&rel.kind, RelKind::Scan { table, .. } if table.id() == id));
    found
}

fn lock_scans(rel: &mut Rel, spec: LockSpec) {
    if let RelKind::Scan { lock, .. } = &mut rel.kind {
        *lock = Some(spec);
    }
    rel.inputs_mut().into_iter().for_each(|input| lock_scans(input, spec));
}

/// The scan that an output comes from as it is, and the table's column.
pub(crate) fn root(rel: &Rel, position: usize) -> Option<(&Rel, usize)> {
    let (leaf, position) = leaf(rel, position)?;
    match &leaf.kind {
        RelKind::Scan { columns, .. } => Some((leaf, *columns.get(position)?)),
        _ => None,
    }
}

/// What an output comes from as it is, below projections, conditions and joins, and its output there. None: it is computed.
pub(super) fn leaf(rel: &Rel, position: usize) -> Option<(&Rel, usize)> {
    match &rel.kind {
        RelKind::Filter { input, .. } | RelKind::Sort { input, .. } | RelKind::Limit { input, .. } => leaf(input, position),
        RelKind::Project { input, exprs } => leaf(input, exprs[position].as_column()?),
        RelKind::Join { left, right, .. } => {
            let width = left.fields.len();
            if position < width { leaf(left, position) } else { leaf(right, position - width) }
        }
        RelKind::Apply { input, .. } if position < input.fields.len() => leaf(input, position),
        _ => Some((rel, position)),
    }
}

/// The columns, over the row of the only scan, and the condition over it.
fn flatten(rel: Rel) -> Option<(Rel, Vec<Expr>, Option<Expr>)> {
    match rel.kind {
        RelKind::Scan { .. } => {
            let exprs = rel.fields.iter().enumerate().map(|(i, f)| Expr::column(i, ExprType::clone(&f.ty))).collect();
            Some((rel, exprs, None))
        }
        RelKind::Filter { input, predicate } => {
            let (scan, exprs, filter) = flatten(*input)?;
            let predicate = predicate.over(&exprs)?;
            Some((scan, exprs, Expr::and(filter.into_iter().chain([predicate]))))
        }
        RelKind::Project { input, exprs: outputs } => {
            let (scan, exprs, filter) = flatten(*input)?;
            let exprs = outputs.into_iter().map(|e| e.over(&exprs)).collect::<Option<Vec<_>>>()?;
            Some((scan, exprs, filter))
        }
        _ => None,
    }
}
