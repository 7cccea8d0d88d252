//! CREATE, ALTER and DROP VIEW, and what of a view is shown.

use std::sync::Arc;

use highkey_table::{CheckOption, ColumnDef, Default, TableName, View, ViewAlgorithm, ViewDef};
use highkey_types::{MySqlError, Str, Value, errors};

use super::target::implicit_default;
use super::{Failure, Outcome, table_spec};
use crate::bind;
use crate::parse::ast;
use crate::plan::{ExprKind, Rel, RelKind};
use crate::session::{Session, SessionState, error};
use crate::show;
use crate::sys;

impl Session {
    pub(crate) async fn create_view(&mut self, view: &ast::CreateView) -> Result<Outcome, Failure> {
        let (schema, name) = self.table_name(&view.name)?;
        table_spec::check_table_name(&name)?;
        let database = self.state.instance.database().clone();
        if view.alter && !database.catalog().has(&schema, &name) {
            // Also 1049.
            database.catalog().table(&schema, &name)?;
        }
        let kept = database.catalog().find_view(&schema, &name).filter(|_| view.alter).map(|old| with_parts_of(view, old.def()));
        let view = kept.as_ref().unwrap_or(view);
        for column in &view.columns {
            table_spec::check_length(column)?;
        }
        // What it reads may be another thing tomorrow: nothing is locked for that.
        let bound = bind::bind_view(view, &schema, &self.state)?;
        let definer = match &view.definer {
            Some(user) if !user.current => (Str::from(user.user.as_str()), Str::from(user.host.as_str())),
            _ => (self.state.client.account_user.as_str().into(), self.state.client.account_host.as_str().into()),
        };
        if kept.is_some() {
            // Here, of the definer that it gets: another session may have altered it since the statement's privileges were asked for.
            self.state.check_may_define(view.definer.as_ref())?;
        }
        let mut algorithm = view.algorithm;
        if algorithm == ViewAlgorithm::Merge && !bound.mergeable {
            self.state.push_warning(error::warning(1354, "View merge algorithm can't be used here for now (assumed undefined algorithm)"));
            algorithm = ViewAlgorithm::Undefined;
        }
        if database.catalog().user(&definer.0, &definer.1).is_none() {
            self.state.note(1449, format!("The user specified as a definer ('{}'@'{}') does not exist", definer.0, definer.1));
        }
        let def = ViewDef {
            schema,
            name,
            columns: view.columns.iter().map(|c| c.as_str().into()).collect(),
            text: bound.text.into(),
            algorithm,
            check: view.check,
            definer,
            invoker: view.invoker.unwrap_or(false),
            updatable: bound.updatable,
            charset: self.state.config.charset_client,
            collation: self.state.config.collation_connection,
            created_at: std::time::SystemTime::now(),
        };
        let replace = view.replace || view.alter;
        let verb = if replace { "CREATE OR REPLACE" } else { "CREATE" };
        let cx = self.ddl_context_logging(statement(&def, verb, &full_name(&def), &def.text).into());
        database.create_view(&cx, def, replace, view.alter).await?;
        Ok(Outcome::ok())
    }

    pub(crate) async fn drop_view(&mut self, names: &[TableName], if_exists: bool) -> Result<Outcome, Failure> {
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        let missing = database.drop_views(&cx, names, if_exists).await?;
        for (schema, name) in missing {
            self.state.note(1051, format!("Unknown table '{schema}.{name}'"));
        }
        Ok(Outcome::ok())
    }

    /// Error 1347 if the name is a view's.
    pub(crate) fn check_base_table(&self, schema: &str, name: &str) -> Result<(), MySqlError> {
        match sys::find_view(&self.state.instance.database().catalog(), schema, name) {
            Some(_) if self.state.temporary.find(schema, name).is_some() => Ok(()),
            Some(_) => Err(errors::wrong_object(schema, name, "BASE TABLE")),
            None => Ok(()),
        }
    }
}

/// ALTER VIEW of a view: what it does not say of the definer, of SQL SECURITY and of the algorithm stays as it was. UNDEFINED says nothing, as in MySQL.
fn with_parts_of(view: &ast::CreateView, old: &ViewDef) -> ast::CreateView {
    let definer = || ast::UserName { current: false, user: old.definer.0.to_string(), host: old.definer.1.to_string() };
    ast::CreateView {
        algorithm: if view.algorithm == ViewAlgorithm::Undefined { old.algorithm } else { view.algorithm },
        definer: Some(view.definer.clone().unwrap_or_else(definer)),
        invoker: Some(view.invoker.unwrap_or(old.invoker)),
        ..view.clone()
    }
}

fn full_name(def: &ViewDef) -> String {
    format!("{}.{}", show::quote(&def.schema), show::quote(&def.name))
}

/// `verb ALGORITHM=… VIEW name AS text`.
fn statement(def: &ViewDef, verb: &str, name: &str, text: &str) -> String {
    let algorithm = match def.algorithm {
        ViewAlgorithm::Undefined => "UNDEFINED",
        ViewAlgorithm::Merge => "MERGE",
        ViewAlgorithm::TempTable => "TEMPTABLE",
    };
    let quoted: Vec<String> = def.columns.iter().map(|c| show::quote(c)).collect();
    let columns = if quoted.is_empty() { String::new() } else { format!(" ({})", quoted.join(",")) };
    let check = match def.check {
        CheckOption::None => "",
        CheckOption::Local => " WITH LOCAL CHECK OPTION",
        CheckOption::Cascaded => " WITH CASCADED CHECK OPTION",
    };
    format!(
        "{verb} ALGORITHM={algorithm} DEFINER={}@{} SQL SECURITY {} VIEW {name}{columns} AS {text}{check}",
        show::quote(&def.definer.0),
        show::quote(&def.definer.1),
        if def.invoker { "INVOKER" } else { "DEFINER" },
    )
}

/// The statement that would make the view, for SHOW CREATE VIEW: without the schema that is the current one.
pub fn definition(state: &SessionState, view: &View) -> String {
    let def = view.def();
    let current = state.database.as_deref();
    let name = if current == Some(&*def.schema) { show::quote(&def.name) } else { full_name(def) };
    let text = crate::parse::parse_query(&def.text).and_then(|query| crate::parse::print::shortened(&query, current));
    statement(def, "CREATE", &name, &text.unwrap_or_else(|_| def.text.to_string()))
}

/// The columns of a view as SHOW COLUMNS and information_schema show them. Error 1356 if it is no longer valid.
pub fn columns(state: &SessionState, view: &Arc<View>) -> Result<Vec<ColumnDef>, MySqlError> {
    if view.is_built_in() {
        return sys::columns(state, view);
    }
    let (rel, _) = bind::bind_view_columns(view, state)?;
    Ok(columns_of(&rel))
}

/// The columns of a view whose query is bound.
pub fn columns_of(rel: &Rel) -> Vec<ColumnDef> {
    let column = |(i, field): (usize, &crate::plan::Field)| {
        let mut def = ColumnDef::new(&field.name, field.ty.ty.clone());
        def.nullable = field.ty.nullable;
        def.default = match origin(rel, i) {
            Origin::Column(default) => default,
            Origin::United => Default::None,
            Origin::Computed if def.nullable => Default::None,
            Origin::Computed => Default::Literal(implicit_default(&def.ty)),
        };
        def
    };
    rel.fields.iter().enumerate().map(column).collect()
}

enum Origin {
    /// A table's column, with its default.
    Column(Default),
    /// Of a set operation.
    United,
    Computed,
}

/// Where a column of a plan comes from.
fn origin(rel: &Rel, position: usize) -> Origin {
    match &rel.kind {
        RelKind::Scan { table, columns, .. } => match columns.get(position).and_then(|c| table.columns().get(*c)) {
            Some(column) if column.auto_increment => Origin::Column(Default::Literal(Value::Int(0))),
            Some(column) => Origin::Column(column.default.clone()),
            None => Origin::Computed,
        },
        RelKind::Filter { input, .. } | RelKind::Sort { input, .. } | RelKind::Limit { input, .. } | RelKind::Distinct { input } | RelKind::Window { input, .. } => {
            if position < input.fields.len() { origin(input, position) } else { Origin::Computed }
        }
        RelKind::Project { input, exprs } => match &exprs[position].kind {
            ExprKind::Column(i) => origin(input, *i),
            _ => Origin::Computed,
        },
        RelKind::Aggregate { input, groups, .. } => match groups.get(position).map(|g| &g.kind) {
            Some(ExprKind::Column(i)) => origin(input, *i),
            _ => Origin::Computed,
        },
        RelKind::Join { left, right, .. } => {
            let width = left.fields.len();
            if position < width { origin(left, position) } else { origin(right, position - width) }
        }
        RelKind::Apply { input, .. } => match (position.checked_sub(input.fields.len()), rel.made()) {
            (None, _) => origin(input, position),
            (Some(position), Some(made)) => origin(made, position),
            (Some(_), None) => Origin::Computed,
        },
        RelKind::MaterializedCte { plan, .. } => origin(plan, position),
        RelKind::SetOperation { .. } | RelKind::RecursiveCte { .. } | RelKind::CteScan { .. } | RelKind::Virtual { .. } => Origin::United,
        RelKind::Values { .. } | RelKind::Kept { .. } | RelKind::JsonTable { .. } => Origin::Computed,
    }
}
