//! Stored routines. See `README.md`.

mod call;
mod conditions;
mod define;
mod run;

use std::collections::HashMap;
use std::sync::Arc;

use highkey_table::{RoutineDef, RoutineKind};
use highkey_types::{ColumnType, MySqlError, Str, Value};

use crate::bind;
use crate::parse;
use crate::parse::ast::{Instruction, Program, RoutineStatement, Statement, Variable};
use crate::parse::print::quote;
use crate::plan::ExprType;
use crate::prepared::PreparedStatement;
use crate::session::{Actor, Diagnostics, Session, parse_options};
use crate::variables::{SqlModes, VarId, VarValue};

pub use define::{definition, is_seen, parameters, shows_body};

/// What a session knows of stored routines.
#[derive(Default)]
pub(crate) struct Routines {
    /// Those that it has run, by schema and name in lower case.
    loaded: HashMap<(Str, String), Arc<Loaded>>,
    /// Those that are running, outermost first.
    running: Vec<Running>,
    /// The conditions that handlers are running for, in all of them, innermost last.
    handled: Vec<Handled>,
    /// Of the CALL that has ended: values for `?` in the place of OUT and INOUT parameters.
    pub out_parameters: Vec<OutParameter>,
    /// The error that is on its way has been made by SIGNAL, or has undone what it undoes when its step of a routine ended: whatever its number is, it does not
    /// end a transaction (any more).
    pub settled: bool,
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
fn variable_types(variables: &[Variable], def: &RoutineDef) -> Result<Vec<Option<ColumnType>>, MySqlError> {
    variables.iter().map(|variable| variable.ty.as_ref().map(|ty| bind::resolve_type(ty, def.schema_collation, &variable.name)).transpose()).collect()
}

/// The body of a stored routine.
fn program(def: &RoutineDef) -> Result<Program, MySqlError> {
    let text = format!("CREATE {} {}({})\n{}", def.kind.name(), quote(&def.name), def.parameters, def.body);
    match parse::parse_single(&text, parse_options(SqlModes(def.sql_mode)))?.statement {
        Statement::CreateRoutine(create) => Ok(create.program),
        _ => Err(MySqlError::with_message(1457, format!("Failed to load routine {}.{}. The routine in the catalog is not readable", def.schema, def.name))),
    }
}

impl Session {
    /// The routine, ready to run; `None` if there is none.
    fn load_routine(&mut self, kind: RoutineKind, schema: &str, name: &str) -> Result<Option<Arc<Loaded>>, MySqlError> {
        let Some(def) = self.state.instance.database().catalog().routine(schema, kind, name) else { return Ok(None) };
        let key = (def.schema.clone(), def.name.to_lowercase());
        if let Some(loaded) = self.routines.loaded.get(&key)
            && Arc::ptr_eq(&loaded.def, &def)
        {
            return Ok(Some(loaded.clone()));
        }
        let loaded = Arc::new(Loaded::new(def.clone(), program(&def)?)?);
        if self.routines.loaded.len() as u64 >= self.state.instance.global_u64("stored_program_cache") {
            self.routines.loaded.clear();
        }
        self.routines.loaded.insert(key, loaded.clone());
        Ok(Some(loaded))
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
fn expr_type(ty: &Option<ColumnType>) -> ExprType {
    ty.as_ref().map_or_else(ExprType::null, |ty| ExprType::column(ty.clone(), true))
}
