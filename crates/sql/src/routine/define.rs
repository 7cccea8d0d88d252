//! CREATE, ALTER and DROP PROCEDURE, and what is shown of routines.

use std::time::SystemTime;

use highkey_table::{DataAccess, Privileges, RoutineDef, RoutineKind};
use highkey_types::{ColumnType, MySqlError, Str, errors, string_literal};

use super::variable_types;
use crate::execute::{Failure, Outcome};
use crate::information_schema;
use crate::parse::ast::{Characteristics, CreateRoutine, ObjectName, ParameterMode};
use crate::parse::print::quote;
use crate::session::{Session, SessionState, error};
use crate::variables::SqlModes;

impl Session {
    /// CREATE PROCEDURE.
    pub(crate) async fn create_routine(&mut self, create: &CreateRoutine) -> Result<Outcome, Failure> {
        let schema = self.routine_schema(&create.name)?;
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
        let definer = match &create.definer {
            Some(user) if !user.current => (Str::from(user.user.as_str()), Str::from(user.host.as_str())),
            _ => (self.state.client.account_user.as_str().into(), self.state.client.account_host.as_str().into()),
        };
        if catalog.user(&definer.0, &definer.1).is_none() {
            self.state.note(1449, format!("The user specified as a definer ('{}'@'{}') does not exist", definer.0, definer.1));
        }
        let now = SystemTime::now();
        let mut def = RoutineDef {
            kind: create.kind,
            schema,
            name: name.as_str().into(),
            parameters: create.parameters.as_str().into(),
            body: create.body.as_str().into(),
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
        };
        change(&mut def, &create.characteristics);
        variable_types(&create.program.variables, &def)?;
        let shown = if create.name.schema.is_some() { format!("{}.{}", quote(&def.schema), quote(&def.name)) } else { quote(&def.name) };
        let cx = self.ddl_context_logging(statement(&def, &shown).into());
        let client = &self.state.client;
        let creator = match self.state.access() {
            Some(access) if self.state.instance.globals().bool("automatic_sp_privileges") && !access.routine(&def.schema, &def.name).has(Privileges::OF_ROUTINE) => {
                Some((client.account_user.as_str(), client.account_host.as_str()))
            }
            _ => None,
        };
        database.create_routine(&cx, def, creator).await?;
        Ok(Outcome::ok())
    }

    /// ALTER PROCEDURE.
    pub(crate) async fn alter_routine(&mut self, name: &ObjectName, characteristics: &Characteristics) -> Result<Outcome, Failure> {
        let schema = self.routine_schema(name)?;
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        let altered = |def: &mut RoutineDef| {
            change(def, characteristics);
            def.altered_at = SystemTime::now();
        };
        database.alter_routine(&cx, (RoutineKind::Procedure, &schema, &name.name), altered).await?;
        Ok(Outcome::ok())
    }

    /// DROP PROCEDURE.
    pub(crate) async fn drop_routine(&mut self, if_exists: bool, name: &ObjectName) -> Result<Outcome, Failure> {
        let schema = self.routine_schema(name)?;
        let cx = self.ddl_context();
        let database = self.state.instance.database().clone();
        match database.drop_routine(&cx, (RoutineKind::Procedure, &schema, &name.name)).await {
            Ok(()) => Ok(Outcome::ok()),
            Err(e) if e.code == 1305 && if_exists => {
                self.state.note(e.code, e.message);
                Ok(Outcome::ok())
            }
            Err(e) => Err(e.into()),
        }
    }

    /// The schema that a routine's name means. Errors 1044 and 1046.
    fn routine_schema(&self, name: &ObjectName) -> Result<Str, MySqlError> {
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
fn statement(def: &RoutineDef, name: &str) -> String {
    let mut text = format!("CREATE DEFINER={}@{} {} {name}({})\n", quote(&def.definer.0), quote(&def.definer.1), def.kind.name(), def.parameters);
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
    text + &def.body
}

/// The statement that would make the routine, for SHOW CREATE PROCEDURE.
pub fn definition(def: &RoutineDef) -> String {
    statement(def, &quote(&def.name))
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
    shows_body(state, def) || state.access().is_none_or(|access| access.routine(&def.schema, &def.name).has_any(wanted))
}

/// The account is shown the body too: it is the definer, or may read everything.
pub fn shows_body(state: &SessionState, def: &RoutineDef) -> bool {
    let client = &state.client;
    let own = (&*def.definer.0, &*def.definer.1) == (client.account_user.as_str(), client.account_host.as_str());
    own || state.access().is_none_or(|access| access.global().has(Privileges::SELECT))
}
