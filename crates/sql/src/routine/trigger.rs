//! Triggers: their definitions, and how they run with a row.
//!
//! NEW.column and OLD.column are variables of the body (`Program::row_columns`), of the column's type. They are filled before it runs, and what a BEFORE trigger
//! has made of those of NEW goes into the row.

use std::sync::Arc;

use futures::future::BoxFuture;
use highkey_table::{Privileges, RoutineKind, Table, TableDef, TriggerDef, TriggerEvent, TriggerPlace, TriggerTime};
use highkey_types::{ColumnType, MySqlError, TypeKind, Value, errors};

use super::call::Level;
use super::run::Frame;
use super::{Loaded, variable_types};
use crate::execute::{DiscardingSink, Failure, Outcome, Target, refused_inside, to_session};
use crate::parse;
use crate::parse::ast::{CreateTrigger, Instruction, ObjectName, Program, Statement, Step};
use crate::parse::print::quote;
use crate::session::{Session, error, parse_options};
use crate::variables::SqlModes;

/// The triggers of a table by one of its definitions, ready to run.
pub(crate) struct TableTriggers {
    def: Arc<TableDef>,
    triggers: Vec<Ready>,
}

/// A trigger; why it cannot run, if it names a column that is no more.
struct Ready {
    event: TriggerEvent,
    time: TriggerTime,
    body: Result<Body, MySqlError>,
}

struct Body {
    loaded: Loaded,
    columns: Vec<BoundColumn>,
}

/// A column of the row, and the variable that stands for it.
struct BoundColumn {
    variable: usize,
    column: usize,
    new: bool,
    assignable: bool,
    /// What the definer has to be allowed to do with it.
    wanted: Privileges,
}

impl TableTriggers {
    fn new(def: &Arc<TableDef>) -> TableTriggers {
        let ready = |trigger: &TriggerDef| Ready { event: trigger.event, time: trigger.time, body: Body::new(trigger, def) };
        TableTriggers { def: def.clone(), triggers: def.triggers.iter().map(ready).collect() }
    }

    /// Whether a change of a row runs any.
    pub fn has(&self, event: TriggerEvent) -> bool {
        self.def.has_triggers(event)
    }

    /// Whether any looks at a row before it is changed.
    pub fn has_before(&self, event: TriggerEvent) -> bool {
        self.def.triggers_for(event, TriggerTime::Before).next().is_some()
    }
}

impl Body {
    /// Error 1054 for columns that the table does not have.
    fn new(trigger: &TriggerDef, table: &TableDef) -> Result<Body, MySqlError> {
        let def = trigger.routine.clone();
        let head = format!("CREATE TRIGGER {} {} {} ON {} FOR EACH ROW", quote(&def.name), trigger.time.name(), trigger.event.name(), quote(&table.name));
        let program = match parse::parse_single(&format!("{head}\n{}", def.body), parse_options(SqlModes(def.sql_mode)))?.statement {
            Statement::CreateTrigger(create) => create.program,
            _ => return Err(MySqlError::with_message(1457, format!("Failed to load routine {}.{}. The routine in the catalog is not readable", def.schema, def.name))),
        };
        let columns = bound_columns(&program, table)?;
        let mut loaded = Loaded::new(def, program)?;
        for bound in &columns {
            loaded.types[bound.variable] = Some(table.columns[bound.column].ty.clone());
        }
        Ok(Body { loaded, columns })
    }
}

/// Where the columns that a body names are. Error 1054.
fn bound_columns(program: &Program, table: &TableDef) -> Result<Vec<BoundColumn>, MySqlError> {
    let bound = program.row_columns.iter().map(|named| {
        let column = table.column(&named.column).ok_or_else(|| errors::bad_field_error(&named.column, if named.new { "NEW" } else { "OLD" }))?;
        let read = if named.read { Privileges::SELECT } else { Privileges::NONE };
        let wanted = if named.assigned { read.and(Privileges::UPDATE) } else { read };
        Ok(BoundColumn { variable: named.variable, column, new: named.new, assignable: named.assignable, wanted })
    });
    bound.collect()
}

/// What a body may not hold, since it runs inside of a statement. Errors 1336, 1415, 1422, 1445.
pub(crate) fn check_body(program: &Program) -> Result<(), MySqlError> {
    let refused = |step: &Step| match &step.instruction {
        Instruction::Run(run) => refused_inside(&run.statement, "trigger"),
        _ => None,
    };
    program.steps.iter().find_map(refused).map_or(Ok(()), Err)
}

/// The statement that would make the trigger, for SHOW CREATE TRIGGER.
pub fn definition(table: &TableDef, trigger: &TriggerDef) -> String {
    statement(trigger, &quote(&trigger.routine.name), &quote(&table.name), "")
}

fn statement(trigger: &TriggerDef, name: &str, table: &str, place: &str) -> String {
    let def = &trigger.routine;
    let definer = format!("{}@{}", quote(&def.definer.0), quote(&def.definer.1));
    format!("CREATE DEFINER={definer} TRIGGER {name} {} {} ON {table} FOR EACH ROW {place}{}", trigger.time.name(), trigger.event.name(), def.body)
}

/// A zero of the column's type: what a number that is not given yet looks like.
fn no_number(ty: &ColumnType) -> Value {
    match ty.kind {
        TypeKind::Float => Value::Float(0.0),
        TypeKind::Double => Value::Double(0.0),
        _ if ty.unsigned => Value::UInt(0),
        _ => Value::Int(0),
    }
}

impl Session {
    /// The triggers of a table; `None` if it has none.
    pub(crate) fn table_triggers(&mut self, table: &Table) -> Option<Arc<TableTriggers>> {
        let def = table.def();
        if def.triggers.is_empty() {
            return None;
        }
        if let Some(known) = self.routines.triggers.get(&table.id())
            && Arc::ptr_eq(&known.def, def)
        {
            return Some(known.clone());
        }
        let ready = Arc::new(TableTriggers::new(def));
        if self.routines.triggers.len() as u64 >= self.state.instance.global_u64("stored_program_cache") {
            self.routines.triggers.clear();
        }
        self.routines.triggers.insert(table.id(), ready.clone());
        Some(ready)
    }

    /// Runs what `target` has for the event and the time with a row. `old` is the row as it is or was, if the event has one; `new` what is to become of it, or has,
    /// in stored form: BEFORE triggers may change it.
    pub(crate) fn run_triggers<'a>(
        &'a mut self,
        target: &'a Target,
        (event, time): (TriggerEvent, TriggerTime),
        old: &'a [Value],
        new: &'a mut [Value],
    ) -> BoxFuture<'a, Result<(), Failure>> {
        Box::pin(Level(Box::pin(self.run_each_trigger(target, event, time, old, new))))
    }

    async fn run_each_trigger(&mut self, target: &Target, event: TriggerEvent, time: TriggerTime, old: &[Value], new: &mut [Value]) -> Result<(), Failure> {
        let Some(triggers) = target.triggers.clone() else { return Ok(()) };
        for trigger in triggers.triggers.iter().filter(|trigger| trigger.event == event && trigger.time == time) {
            let body = trigger.body.as_ref().map_err(Clone::clone)?;
            let mut frame = Frame::new(&body.loaded);
            let zone = self.state.config.time_zone.clone();
            for bound in &body.columns {
                let def = &target.columns()[bound.column];
                let mut value = if bound.new { new[bound.column].clone() } else { old[bound.column].clone() };
                if target.timestamps.contains(&bound.column) {
                    to_session(&mut value, &zone);
                }
                if def.auto_increment && value.is_null() {
                    value = no_number(&def.ty);
                }
                frame.values[bound.variable] = value;
            }
            let before = frame.values.clone();
            self.run_body(body, &mut frame, &triggers.def).await?;
            for bound in body.columns.iter().filter(|bound| bound.assignable) {
                let value = &mut frame.values[bound.variable];
                // What the body has left as it was need not be what it looked like: a number that is still to come, a moment that is there twice.
                if *value == before[bound.variable] {
                    continue;
                }
                let value = std::mem::take(value);
                new[bound.column] = match target.timestamps.contains(&bound.column) {
                    true => target.store(&mut self.state, bound.column, value, false, 1)?,
                    false => value,
                };
            }
        }
        Ok(())
    }

    async fn run_body(&mut self, body: &Body, frame: &mut Frame, table: &TableDef) -> Result<(), Failure> {
        let outer = self.begin_nested();
        let depth = self.routines.running.len();
        let ran = match self.enter_trigger(body, table) {
            Ok(()) => self.run_steps(&body.loaded, frame, &mut DiscardingSink::default()).await,
            Err(e) => Err(e.into()),
        };
        self.leave_routines(depth);
        self.end_nested(outer, ran.is_err());
        ran
    }

    /// Errors 1142, if its definer may have no triggers on the table, 1143 of columns that the body names, and 1449.
    fn enter_trigger(&mut self, body: &Body, table: &TableDef) -> Result<(), MySqlError> {
        self.check_depth()?;
        self.enter_routine(&body.loaded.def)?;
        let Some(access) = self.state.access() else { return Ok(()) };
        access.check_table(Privileges::TRIGGER, &table.schema, &table.name)?;
        body.columns.iter().try_for_each(|bound| access.check_column(bound.wanted, &table.schema, &table.name, &table.columns[bound.column].name))
    }

    /// CREATE TRIGGER.
    pub(crate) async fn create_trigger(&mut self, create: &CreateTrigger) -> Result<Outcome, Failure> {
        let (schema, table) = self.table_name(&create.table)?;
        let name = &create.name.name;
        if schema.eq_ignore_ascii_case("mysql") {
            return Err(errors::no_triggers_on_system_schema().into());
        }
        // Where the name itself may not be is said first.
        if self.table_name(&create.name)?.0 != schema {
            return Err(errors::trg_in_wrong_schema().into());
        }
        if name.is_empty() || name.ends_with(' ') {
            return Err(errors::sp_wrong_name(name).into());
        }
        if name.chars().count() > 64 {
            return Err(error::too_long_ident(name).into());
        }
        if self.state.is_temporary(&create.table) {
            return Err(errors::trg_on_view_or_temp_table(&table).into());
        }
        let database = self.state.instance.database().clone();
        let catalog = database.catalog();
        let schema_collation = catalog.schema(&schema).map(|schema| schema.collation).ok_or_else(|| error::bad_db(&schema))?;
        if let Some(base) = catalog.find_table(&schema, &table) {
            bound_columns(&create.program, base.def())?;
        }
        if create.if_not_exists && catalog.trigger(&schema, name).is_some() {
            let there = errors::trg_already_exists();
            self.state.note(there.code, there.message);
            return Ok(Outcome::ok());
        }
        let definer = self.definer_of_new(create.definer.as_ref());
        let routine = self.new_routine(RoutineKind::Trigger, schema, name, &create.body, definer, schema_collation);
        variable_types(&create.program.variables, &routine)?;
        let trigger = TriggerDef { event: create.event, time: create.time, routine: Arc::new(routine) };
        let place = match &create.place {
            TriggerPlace::Last => String::new(),
            TriggerPlace::Behind(other) => format!("FOLLOWS {} ", quote(other)),
            TriggerPlace::Before(other) => format!("PRECEDES {} ", quote(other)),
        };
        let cx = self.ddl_context_logging(statement(&trigger, &qualified(&create.name), &qualified(&create.table), &place).into());
        database.create_trigger(&cx, &table, trigger, &create.place).await?;
        Ok(Outcome::ok())
    }

    /// DROP TRIGGER.
    pub(crate) async fn drop_trigger(&mut self, if_exists: bool, name: &ObjectName) -> Result<Outcome, Failure> {
        let (schema, trigger) = self.table_name(name)?;
        let database = self.state.instance.database().clone();
        let known = database.catalog().schema(&schema).map(|_| ()).ok_or_else(|| error::bad_db(&schema));
        let cx = self.ddl_context();
        let dropped = match known {
            Ok(()) => database.drop_trigger(&cx, &schema, &trigger).await,
            Err(unknown) => Err(unknown),
        };
        match dropped {
            Err(e) if if_exists && matches!(e.code, 1049 | 1360) => {
                database.log_needless_drop(&cx)?;
                self.state.note(e.code, e.message);
                Ok(Outcome::ok())
            }
            dropped => dropped.map(|()| Outcome::ok()).map_err(Failure::Sql),
        }
    }
}

/// A name as it was written, quoted.
fn qualified(name: &ObjectName) -> String {
    match &name.schema {
        Some(schema) => format!("{}.{}", quote(schema), quote(&name.name)),
        None => quote(&name.name),
    }
}
