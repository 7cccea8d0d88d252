//! Stored routines. See `README.md`.

mod call;
mod conditions;
mod define;
mod event;
mod function;
mod in_session;
mod run;
mod trigger;

use std::collections::HashMap;
use std::sync::Arc;

use highkey_table::{RoutineDef, RoutineKind, Table, TableId};
use highkey_types::{Collation, ColumnType, MySqlError, Str, Value, errors};

use crate::bind;
use crate::execute::BoundTables;
use crate::parse;
use crate::parse::ast::{Instruction, Program, RoutineStatement, Statement, Variable};
use crate::parse::print::quote;
use crate::plan::ExprType;
use crate::prepared::PreparedStatement;
use crate::session::{Actor, Diagnostics, Session, parse_options};
use crate::sys;
use crate::variables::{SqlModes, VarId, VarValue};

pub(crate) use event::check_event_body;
pub(crate) use call::settings;
pub use define::{definition, is_seen, parameters, returns, shows_body};
pub use function::{Body, Code, StoredFunction};
pub(crate) use in_session::{FunctionCall, FunctionCalls};
pub(crate) use trigger::{TableTriggers, check_body, definition as trigger_definition};

/// What a session knows of stored routines.
#[derive(Default)]
pub(crate) struct Routines {
    /// Those that it has run, by schema and name in lower case.
    loaded: HashMap<(Str, String), Arc<Loaded>>,
    /// Those that are running, outermost first.
    running: Vec<Running>,
    /// The conditions that handlers are running for, in all of them, innermost last.
    handled: Vec<Handled>,
    /// Triggers of the tables that it has changed.
    triggers: HashMap<TableId, Arc<TableTriggers>>,
    /// The tables of the running statement, if it changes one that has triggers, or calls functions that the session runs.
    pub tables: Arc<[TableId]>,
    /// Those of the statements that bodies run inside of, outermost first.
    pub in_use: Vec<Arc<[TableId]>>,
    /// Of the CALL that has ended: values for `?` in the place of OUT and INOUT parameters.
    pub out_parameters: Vec<OutParameter>,
    /// The error that is on its way has been made by SIGNAL, or has undone what it undoes when its step of a routine ended: whatever its number is, it does not
    /// end a transaction (any more).
    pub settled: bool,
}

impl Routines {
    /// What runs is a body inside of a statement.
    pub fn is_nested(&self) -> bool {
        !self.in_use.is_empty()
    }

    /// What errors call the body inside of a statement that runs: a function, if there is one around what runs.
    pub fn nested_kind(&self) -> &'static str {
        if self.running.iter().any(|running| running.kind == Some(RoutineKind::Function)) { "function" } else { "trigger" }
    }

    /// Error 1137 if such a body drops a temporary table of the statements that it runs inside of.
    pub fn check_droppable(&self, table: &Table) -> Result<(), MySqlError> {
        if self.in_use.iter().any(|used| used.contains(&table.id())) {
            return Err(errors::cant_reopen_table(&table.def().name));
        }
        Ok(())
    }

    /// Error 1442 if a statement of such a body changes a table of the statements that it runs inside of.
    pub fn check_unused(&self, tables: &BoundTables) -> Result<(), MySqlError> {
        let is_used = |table: &Table| self.in_use.iter().any(|used| used.contains(&table.id()));
        match tables.tables.iter().find(|(table, write)| *write && is_used(table)) {
            Some((table, _)) => Err(errors::cant_update_used_table_in_sf_or_trg(&table.def().name)),
            None => Ok(()),
        }
    }
}

/// The value of a parameter that goes out through a `?`.
pub(crate) struct OutParameter {
    /// Which `?`, from 0.
    pub index: usize,
    pub name: Str,
    pub value: Value,
    pub ty: ColumnType,
}

/// A condition that a handler runs for.
struct Handled {
    /// Of the statement, the condition being the last of them that counts.
    diagnostics: Diagnostics,
    error: MySqlError,
    is_warning: bool,
}

/// A routine that runs, and what of the session was another before.
struct Running {
    /// `None`: the body of an event.
    kind: Option<RoutineKind>,
    schema: Str,
    name: Str,
    database: Option<Str>,
    /// `Session::own_database`, which statements of the routine have for themselves.
    own_database: Option<Option<Str>>,
    variables: Vec<(VarId, VarValue)>,
    /// As whom the session acted; `None`: the routine runs as its invoker.
    caller: Option<Actor>,
    handled: usize,
}

/// A routine that is ready to run.
struct Loaded {
    def: Arc<RoutineDef>,
    program: Program,
    /// Of the variables; `None` for those that take the type of what they are given.
    types: Vec<Option<ColumnType>>,
    /// By step, where it is a statement.
    statements: Vec<Option<Arc<PreparedStatement>>>,
    cursors: Vec<Arc<PreparedStatement>>,
}

impl Loaded {
    fn new(def: Arc<RoutineDef>, program: Program) -> Result<Loaded, MySqlError> {
        let types = variable_types(&program.variables, &def)?;
        let prepare = |statement: &RoutineStatement| Arc::new(PreparedStatement::of_routine(statement, &def.schema));
        let statements = program.steps.iter().map(|step| match &step.instruction {
            // The session calls by itself.
            Instruction::Run(run) if matches!(run.statement, Statement::Call(_)) => None,
            Instruction::Run(statement) | Instruction::SelectInto { query: statement, .. } => Some(prepare(statement)),
            _ => None,
        });
        let statements = statements.collect();
        let cursors = program.cursors.iter().map(prepare).collect();
        Ok(Loaded { types, statements, cursors, def, program })
    }
}

/// Types of variables. Errors 1115, 1273 and the like, as of columns.
pub(crate) fn variable_types(variables: &[Variable], def: &RoutineDef) -> Result<Vec<Option<ColumnType>>, MySqlError> {
    variables.iter().map(|variable| variable.ty.as_ref().map(|ty| bind::resolve_type(ty, def.schema_collation, Collation::utf8mb4(), &variable.name)).transpose()).collect()
}

/// What a function returns.
pub(crate) fn returned_type(program: &Program, def: &RoutineDef) -> Result<ColumnType, MySqlError> {
    let ty = program.returns.as_ref().ok_or_else(|| errors::sp_noreturn(format!("{}.{}", def.schema, def.name)))?;
    bind::resolve_type(ty, def.schema_collation, Collation::utf8mb4(), &def.name)
}

/// The body of a stored routine.
pub(crate) fn program(def: &RoutineDef) -> Result<Program, MySqlError> {
    let returns = if def.returns.is_empty() { String::new() } else { format!(" RETURNS {}", def.returns) };
    let text = format!("CREATE {} {}({}){returns}\n{}", def.kind.name(), quote(&def.name), def.parameters, def.body);
    match parse::parse_single(&text, parse_options(SqlModes(def.sql_mode)))?.statement {
        Statement::CreateRoutine(create) => Ok(create.program),
        _ => Err(MySqlError::with_message(1457, format!("Failed to load routine {}.{}. The routine in the catalog is not readable", def.schema, def.name))),
    }
}

impl Session {
    /// The routine, ready to run; `None` if there is none.
    fn load_routine(&mut self, kind: RoutineKind, schema: &str, name: &str) -> Result<Option<Arc<Loaded>>, MySqlError> {
        let Some(def) = sys::find_routine(&self.state.instance.database().catalog(), schema, kind, name) else { return Ok(None) };
        self.load_definition(&def).map(Some)
    }

    /// The routine of a definition, ready to run.
    fn load_definition(&mut self, def: &Arc<RoutineDef>) -> Result<Arc<Loaded>, MySqlError> {
        let key = (def.schema.clone(), def.name.to_lowercase());
        if let Some(loaded) = self.routines.loaded.get(&key)
            && Arc::ptr_eq(&loaded.def, def)
        {
            return Ok(loaded.clone());
        }
        let loaded = Arc::new(Loaded::new(def.clone(), program(def)?)?);
        if self.routines.loaded.len() as u64 >= self.state.instance.global_u64("stored_program_cache") {
            self.routines.loaded.clear();
        }
        self.routines.loaded.insert(key, loaded.clone());
        Ok(loaded)
    }

    /// The condition that a handler of the routine that runs is running for; what its callers' handlers run for is not its own.
    fn handled(&self) -> Option<&Handled> {
        let of_callers = self.routines.running.last().map_or(0, |running| running.handled);
        self.routines.handled[of_callers..].last()
    }

    /// Some routine is running.
    pub(crate) fn in_routine(&self) -> bool {
        !self.routines.running.is_empty()
    }
}

/// The type of a variable in an expression.
pub(crate) fn expr_type(ty: &Option<ColumnType>) -> ExprType {
    ty.as_ref().map_or_else(ExprType::null, |ty| ExprType::column(ty.clone(), true))
}
