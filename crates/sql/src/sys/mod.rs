//! The schema sys: views and routines that tell people and their tools what performance_schema and information_schema know. See `README.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

use highkey_table::{Catalog, CheckOption, ColumnDef, DataAccess, RoutineDef, RoutineKind, View, ViewAlgorithm, ViewDef};
use highkey_types::{Charset, Collation, MySqlError, SqlMode, Str, TimeZone, Value};
use parking_lot::Mutex;

use crate::bind::{self, BindContext, TableSource};
use crate::execute;
use crate::information_schema;
use crate::parse::ast::{ObjectName, Statement, StoredProgram, VariableScope};
use crate::parse::{self, ParseOptions};
use crate::session::{SessionState, error};
use crate::variables::SqlModes;

pub const SCHEMA: &str = "sys";

/// As MySQL makes them.
const SQL_MODE: &str = "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

/// Routines that MySQL has in the schema and Highkey has not.
const OTHER_ROUTINES: [&str; 19] = [
    "diagnostics", "ps_setup_disable_background_threads", "ps_setup_disable_consumer", "ps_setup_disable_instrument", "ps_setup_disable_thread", "ps_setup_enable_background_threads",
    "ps_setup_enable_consumer", "ps_setup_enable_instrument", "ps_setup_enable_thread", "ps_setup_reload_saved", "ps_setup_reset_to_default", "ps_setup_save", "ps_statement_avg_latency_histogram",
    "ps_thread_stack", "ps_thread_trx_info", "ps_trace_statement_digest", "ps_trace_thread", "ps_truncate_all_tables", "statement_performance_analyzer",
];

/// The triggers of MySQL's `sys_config`.
const TRIGGERS: [&str; 2] = ["sys_config_insert_set_user", "sys_config_update_set_user"];

/// By name.
static VIEWS: LazyLock<BTreeMap<Str, Arc<View>>> = LazyLock::new(|| {
    let views = statements(include_str!("views.sql")).map(|statement| Arc::new(view(statement)));
    views.map(|view| (view.def().name.clone(), view)).collect()
});

/// By kind and name, which is in lower case.
static ROUTINES: LazyLock<BTreeMap<(RoutineKind, Str), Arc<RoutineDef>>> = LazyLock::new(|| {
    let routines = statements(include_str!("routines.sql")).map(|statement| Arc::new(routine(statement)));
    routines.map(|def| ((def.kind, def.name.clone()), def)).collect()
});

/// Of the views that have been asked for theirs, by name.
static COLUMNS: LazyLock<Mutex<BTreeMap<Str, Vec<ColumnDef>>>> = LazyLock::new(Mutex::default);

/// The statements of a script, without their semicolons.
fn statements(script: &'static str) -> impl Iterator<Item = &'static str> {
    script.trim_end().split("\n\n").filter(|statement| !statement.starts_with("--")).map(|statement| statement.trim_end_matches(';'))
}

fn definer() -> (Str, Str) {
    ("mysql.sys".into(), "localhost".into())
}

fn view(statement: &str) -> View {
    let (name, text) = statement.strip_prefix("CREATE VIEW sys.").and_then(|rest| rest.split_once(" AS\n")).expect("a view's definition");
    View::built_in(ViewDef {
        schema: SCHEMA.into(),
        name: name.into(),
        columns: Vec::new(),
        text: text.into(),
        algorithm: ViewAlgorithm::Undefined,
        check: CheckOption::None,
        definer: definer(),
        invoker: true,
        updatable: false,
        charset: Charset::Utf8mb4,
        collation: Collation::utf8mb4(),
        created_at: SystemTime::now(),
    })
}

fn routine(statement: &str) -> RoutineDef {
    let parsed = parse::parse_single(statement, ParseOptions::default()).expect("a statement that can be read");
    let Statement::CreateRoutine(create) = parsed.statement else { unreachable!("the script has nothing but routines") };
    let made = SystemTime::now();
    RoutineDef {
        kind: create.kind,
        schema: SCHEMA.into(),
        name: create.name.name.as_str().into(),
        parameters: create.parameters.as_str().into(),
        returns: create.returns.as_str().into(),
        body: create.body.as_str().into(),
        data_access: create.characteristics.data_access.unwrap_or(DataAccess::ContainsSql),
        deterministic: create.characteristics.deterministic.unwrap_or(false),
        invoker: true,
        comment: create.characteristics.comment.as_deref().unwrap_or_default().into(),
        definer: definer(),
        sql_mode: SqlModes::parse(SQL_MODE).expect("modes that there are").0,
        charset: Charset::Utf8mb4,
        collation: Collation::utf8mb4(),
        schema_collation: Collation::utf8mb4(),
        created_at: made,
        altered_at: made,
    }
}

/// sys.sys_config: what MySQL has in it at first. Whoever wants another value sets the user variable that begins with `sys.`.
pub fn config(state: &SessionState) -> Vec<Vec<Value>> {
    let settings = [
        ("diagnostics.allow_i_s_tables", Some("OFF")),
        ("diagnostics.include_raw", Some("OFF")),
        ("ps_thread_trx_info.max_length", Some("65535")),
        ("statement_performance_analyzer.limit", Some("100")),
        ("statement_performance_analyzer.view", None),
        ("statement_truncate_len", Some("64")),
    ];
    let set_at = information_schema::wall_clock(state, state.instance.started_at());
    let text = |text: &str| Value::Text(text.into());
    settings.into_iter().map(|(name, value)| vec![text(name), value.map_or(Value::Null, text), Value::DateTime(set_at), Value::Null]).collect()
}

/// The view that a name means: one of sys, or one of the catalog's.
pub fn find_view(catalog: &Catalog, schema: &str, name: &str) -> Option<Arc<View>> {
    if schema == SCHEMA { VIEWS.get(name).cloned() } else { catalog.find_view(schema, name) }
}

/// The views of a schema by name.
pub fn views(catalog: &Catalog, schema: &str) -> Vec<Arc<View>> {
    if schema == SCHEMA { VIEWS.values().cloned().collect() } else { catalog.views(schema) }
}

/// The routine of that name in any case: one of sys, or one of the catalog's.
pub fn find_routine(catalog: &Catalog, schema: &str, kind: RoutineKind, name: &str) -> Option<Arc<RoutineDef>> {
    if schema == SCHEMA { ROUTINES.get(&(kind, Str::from(name.to_lowercase()))).cloned() } else { catalog.routine(schema, kind, name) }
}

/// The routines of a schema by kind and name.
pub fn routines(catalog: &Catalog, schema: &str) -> Vec<Arc<RoutineDef>> {
    if schema == SCHEMA { ROUTINES.values().cloned().collect() } else { catalog.routines(schema) }
}

/// A session in which views are bound for their columns, which are the same whoever asks, and however the own session is set.
struct AnySession<'a>(&'a SessionState);

impl BindContext for AnySession<'_> {
    fn table(&self, schema: &str, name: &str) -> Result<TableSource, MySqlError> {
        if let Some(table) = information_schema::find(schema, name) {
            return Ok(TableSource::Virtual(table));
        }
        match VIEWS.get(name).filter(|_| schema == SCHEMA) {
            Some(view) => Ok(TableSource::View(view.clone())),
            None => Err(error::no_such_table(&format!("{schema}.{name}"))),
        }
    }

    fn current_schema(&self) -> Option<Str> {
        None
    }

    fn collation(&self) -> &'static Collation {
        Collation::utf8mb4()
    }

    fn sql_mode(&self) -> SqlMode {
        SqlMode::default()
    }

    fn only_full_group_by(&self) -> bool {
        true
    }

    fn time_zone(&self) -> &TimeZone {
        BindContext::time_zone(self.0)
    }

    fn function(&self, schema: &str, name: &str) -> Option<Arc<RoutineDef>> {
        BindContext::function(self.0, schema, name)
    }

    fn system_var(&self, scope: Option<VariableScope>, name: &str) -> Result<Value, MySqlError> {
        BindContext::system_var(self.0, scope, name)
    }

    fn user_var(&self, _name: &str) -> Option<(Value, &'static Collation)> {
        None
    }
}

/// What a dump says of the views, routines and triggers that MySQL has in the schema: each is dropped if it is there, and made. Its restore leaves them as they are.
pub fn is_restore(state: &SessionState, statement: &Statement) -> bool {
    let of_sys = |name: &ObjectName| state.schema_of(name.schema.as_deref()).is_ok_and(|schema| &*schema == SCHEMA);
    let is_view = |name: &ObjectName| of_sys(name) && VIEWS.contains_key(name.name.as_str());
    let is_routine = |kind: RoutineKind, name: &ObjectName| {
        let lower = name.name.to_lowercase();
        of_sys(name) && (OTHER_ROUTINES.contains(&lower.as_str()) || ROUTINES.contains_key(&(kind, Str::from(lower))))
    };
    match statement {
        Statement::CreateView(view) => !view.alter && !view.replace && is_view(&view.name),
        Statement::DropTable(drop) => drop.if_exists && !drop.temporary && drop.names.iter().all(is_view),
        Statement::CreateRoutine(create) => !create.if_not_exists && is_routine(create.kind, &create.name),
        Statement::DropProgram { kind: StoredProgram::Procedure, if_exists: true, name } => is_routine(RoutineKind::Procedure, name),
        Statement::DropProgram { kind: StoredProgram::Function, if_exists: true, name } => is_routine(RoutineKind::Function, name),
        Statement::CreateTrigger(create) => of_sys(&create.name) && TRIGGERS.contains(&create.name.name.as_str()),
        _ => false,
    }
}

/// The columns of a view of sys, found once: lists of all columns ask for those of all views.
pub fn columns(state: &SessionState, view: &Arc<View>) -> Result<Vec<ColumnDef>, MySqlError> {
    let name = &view.def().name;
    if let Some(columns) = COLUMNS.lock().get(name) {
        return Ok(columns.clone());
    }
    let (rel, _) = bind::bind_view_columns(view, &AnySession(state))?;
    let columns = execute::view::columns_of(&rel);
    COLUMNS.lock().insert(name.clone(), columns.clone());
    Ok(columns)
}
