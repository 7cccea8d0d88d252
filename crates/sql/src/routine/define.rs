//! CREATE, ALTER and DROP of routines, and what is shown of them.

use std::time::SystemTime;

use highkey_table::{DataAccess, Privileges, RoutineDef, RoutineKind};
use highkey_types::{Collation, ColumnType, MySqlError, Str, TypeKind, errors, string_literal};

use super::{returned_type, variable_types};
use crate::bind;
use crate::execute::{Failure, Outcome};
use crate::information_schema;
use crate::parse::ast::{Characteristics, CreateRoutine, Instruction, ObjectName, ParameterMode, UserName};
use crate::parse::print::quote;
use crate::session::{Session, SessionState, error};
use crate::variables::SqlModes;

impl Session {
    /// CREATE PROCEDURE and CREATE FUNCTION. Errors 1304, 1320, 1418, 1419 and 1458.
    pub(crate) async fn create_routine(&mut self, create: &CreateRoutine) -> Result<Outcome, Failure> {
        let schema = self.program_schema(&create.name)?;
        let name = &create.name.name;
        if name.is_empty() || name.ends_with(' ') {
            return Err(errors::sp_wrong_name(name).into());
        }
        if name.chars().count() > 64 {
            return Err(error::too_long_ident(name).into());
        }
        let database = self.state.instance.database().clone();
        let catalog = database.catalog();
        let schema_collation = catalog.schema(&schema).map(|schema| schema.collation).ok_or_else(|| error::bad_db(&schema))?;
        if create.if_not_exists && catalog.routine(&schema, create.kind, name).is_some() {
            let there = errors::sp_already_exists(create.kind.name(), name);
            self.state.note(there.code, there.message);
            return Ok(Outcome::ok());
        }
        let definer = self.definer_of_new(create.definer.as_ref());
        let mut def = self.new_routine(create.kind, schema, name, &create.body, definer, schema_collation);
        def.parameters = create.parameters.as_str().into();
        def.returns = create.returns.as_str().into();
        change(&mut def, &create.characteristics);
        if create.kind == RoutineKind::Function {
            self.check_function(create, &def)?;
        }
        variable_types(&create.program.variables, &def)?;
        let shown = if create.name.schema.is_some() { format!("{}.{}", quote(&def.schema), quote(&def.name)) } else { quote(&def.name) };
        let cx = self.ddl_context_logging(statement(&def, &shown)?.into());
        let client = &self.state.client;
        let creator = match self.state.access() {
            Some(access) if self.state.instance.globals().bool("automatic_sp_privileges") && !access.routine(def.kind, &def.schema, &def.name).has(Privileges::OF_ROUTINE) => {
                Some((client.account_user.as_str(), client.account_host.as_str()))
            }
            _ => None,
        };
        database.create_routine(&cx, def, creator).await?;
        Ok(Outcome::ok())
    }

    /// What is asked of functions only. Errors 1320, 1418 and 1419, and note 1585.
    fn check_function(&mut self, create: &CreateRoutine, def: &RoutineDef) -> Result<(), MySqlError> {
        if !create.program.steps.iter().any(|step| matches!(step.instruction, Instruction::Return(_))) {
            return Err(errors::sp_noreturn(format!("{}.{}", def.schema, def.name)));
        }
        returned_type(&create.program, def)?;
        // What comes from a source has been checked there.
        let logged = self.replica.is_none() && self.state.instance.database().binlog().is_some() && !self.state.instance.globals().bool("log_bin_trust_function_creators");
        if logged {
            if !def.deterministic && !matches!(def.data_access, DataAccess::NoSql | DataAccess::ReadsSqlData) {
                return Err(errors::binlog_unsafe_routine());
            }
            if self.state.access().is_some_and(|access| !access.global().has(Privileges::SUPER)) {
                return Err(errors::binlog_create_routine_need_super());
            }
        }
        if bind::is_native_function(&def.name) {
            self.state.note(1585, format!("This function '{}' has the same name as a native function", def.name));
        }
        Ok(())
    }

    /// Who a statement says that defines a stored program: the session's account unless it says another.
    pub(crate) fn definer_of(&self, said: Option<&UserName>) -> (Str, Str) {
        match said {
            Some(user) if !user.current => (user.user.as_str().into(), user.host.as_str().into()),
            _ => (self.state.client.account_user.as_str().into(), self.state.client.account_host.as_str().into()),
        }
    }

    /// The same of one that is to be made, with note 1449 where there is no such account.
    pub(crate) fn definer_of_new(&mut self, said: Option<&UserName>) -> (Str, Str) {
        let definer = self.definer_of(said);
        if self.state.instance.database().catalog().user(&definer.0, &definer.1).is_none() {
            let missing = errors::no_such_user(&definer.0, &definer.1);
            self.state.note(missing.code, missing.message);
        }
        definer
    }

    /// A routine under the session's modes and character sets that says nothing of itself.
    pub(super) fn new_routine(&self, kind: RoutineKind, schema: Str, name: &str, body: &str, definer: (Str, Str), schema_collation: &'static Collation) -> RoutineDef {
        let now = SystemTime::now();
        RoutineDef {
            kind,
            schema,
            name: name.into(),
            parameters: "".into(),
            returns: "".into(),
            body: body.into(),
            data_access: DataAccess::ContainsSql,
            deterministic: false,
            invoker: false,
            comment: "".into(),
            definer,
            sql_mode: self.state.config.modes.0,
            charset: self.state.config.charset_client,
            collation: self.state.config.collation_connection,
            schema_collation,
            created_at: now,
            altered_at: now,
        }
    }

    /// ALTER PROCEDURE and ALTER FUNCTION.
    pub(crate) async fn alter_routine(&mut self, kind: RoutineKind, name: &ObjectName, characteristics: &Characteristics) -> Result<Outcome, Failure> {
        let schema = self.program_schema(name)?;
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        let altered = |def: &mut RoutineDef| {
            change(def, characteristics);
            def.altered_at = SystemTime::now();
        };
        database.alter_routine(&cx, (kind, &schema, &name.name), altered).await?;
        Ok(Outcome::ok())
    }

    /// DROP PROCEDURE and DROP FUNCTION.
    pub(crate) async fn drop_routine(&mut self, kind: RoutineKind, if_exists: bool, name: &ObjectName) -> Result<Outcome, Failure> {
        let schema = self.program_schema(name)?;
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        if database.catalog().routine(&schema, kind, &name.name).is_some() {
            self.check_server_writable()?;
        }
        match database.drop_routine(&cx, (kind, &schema, &name.name)).await {
            Ok(()) => Ok(Outcome::ok()),
            Err(e) if e.code == 1305 && if_exists => {
                database.log_needless_drop(&cx)?;
                self.state.note(e.code, e.message);
                Ok(Outcome::ok())
            }
            Err(e) => Err(e.into()),
        }
    }

    /// The schema that the name of a routine or an event means. Errors 1044 and 1046.
    pub(crate) fn program_schema(&self, name: &ObjectName) -> Result<Str, MySqlError> {
        let schema = self.state.schema_of(name.schema.as_deref())?;
        if information_schema::is_virtual_schema(&schema) {
            let client = &self.state.client;
            return Err(errors::dbaccess_denied_error(&client.account_user, &client.account_host, &schema));
        }
        Ok(schema)
    }
}

fn change(def: &mut RoutineDef, said: &Characteristics) {
    def.data_access = said.data_access.unwrap_or(def.data_access);
    def.deterministic = said.deterministic.unwrap_or(def.deterministic);
    def.invoker = said.invoker.unwrap_or(def.invoker);
    if let Some(comment) = &said.comment {
        def.comment = comment.as_str().into();
    }
}

/// The statement that makes the routine under the name as it is given.
fn statement(def: &RoutineDef, name: &str) -> Result<String, MySqlError> {
    let returns = match returns(def)? {
        Some(ty) if ty.is_text() || matches!(ty.kind, TypeKind::Enum(_) | TypeKind::Set(_)) => {
            let collation = ty.collation;
            let collate = if collation.is_default { String::new() } else { format!(" COLLATE {}", collation.name) };
            format!(" RETURNS {ty} CHARSET {}{collate}", collation.charset.name())
        }
        Some(ty) => format!(" RETURNS {ty}"),
        None => String::new(),
    };
    let (user, host) = (quote(&def.definer.0), quote(&def.definer.1));
    let mut text = format!("CREATE DEFINER={user}@{host} {} {name}({}){returns}\n", def.kind.name(), def.parameters);
    if def.data_access != DataAccess::ContainsSql {
        text += &format!("    {}\n", def.data_access.name());
    }
    if def.deterministic {
        text += "    DETERMINISTIC\n";
    }
    if def.invoker {
        text += "    SQL SECURITY INVOKER\n";
    }
    if !def.comment.is_empty() {
        // With quotes doubled, as it is read under any sql_mode.
        let comment = if SqlModes(def.sql_mode).has(SqlModes::NO_BACKSLASH_ESCAPES) { format!("'{}'", def.comment.replace('\'', "''")) } else { string_literal(&def.comment) };
        text += &format!("    COMMENT {comment}\n");
    }
    Ok(text + &def.body)
}

/// The statement that would make the routine, for SHOW CREATE.
pub fn definition(def: &RoutineDef) -> Result<String, MySqlError> {
    statement(def, &quote(&def.name))
}

/// What it returns, if it is a function.
pub fn returns(def: &RoutineDef) -> Result<Option<ColumnType>, MySqlError> {
    if def.kind == RoutineKind::Procedure {
        return Ok(None);
    }
    returned_type(&super::program(def)?, def).map(Some)
}

/// Its parameters with their types.
pub fn parameters(def: &RoutineDef) -> Result<Vec<(ParameterMode, String, ColumnType)>, MySqlError> {
    let program = super::program(def)?;
    let types = variable_types(&program.variables, def)?;
    let named = program.parameters.iter().zip(program.variables).zip(types);
    Ok(named.filter_map(|((mode, variable), ty)| Some((*mode, variable.name, ty?))).collect())
}

/// The routine is listed: the account may do something with it.
pub fn is_seen(state: &SessionState, def: &RoutineDef) -> bool {
    let wanted = Privileges::OF_ROUTINE.and(Privileges::CREATE_ROUTINE);
    shows_body(state, def) || state.access().is_none_or(|access| access.routine(def.kind, &def.schema, &def.name).has_any(wanted))
}

/// The account is shown the body too: it is the definer, or may read everything.
pub fn shows_body(state: &SessionState, def: &RoutineDef) -> bool {
    let client = &state.client;
    let own = (&*def.definer.0, &*def.definer.1) == (client.account_user.as_str(), client.account_host.as_str());
    own || state.access().is_none_or(|access| access.global().has(Privileges::SELECT))
}
