//! What is shown of events: information_schema.EVENTS, SHOW EVENTS, SHOW CREATE EVENT.

use std::sync::Arc;

use highkey_table::{EventDef, EventSchedule, Privileges};
use highkey_types::{DateTime, MySqlError, Value, errors};

use super::define::definition;
use super::schedule::wall_clock;
use crate::information_schema;
use crate::parse::ast::ObjectName;
use crate::session::SessionState;
use crate::show::Answer;
use crate::variables::SqlModes;

fn t(text: impl AsRef<str>) -> Value {
    Value::Text(text.as_ref().into())
}

/// Those of schemas whose events the account may change, by schema and name.
fn seen(state: &SessionState) -> Vec<Arc<EventDef>> {
    let catalog = state.instance.database().catalog();
    let may = |def: &EventDef| state.access().is_none_or(|access| access.schema(&def.schema).has(Privileges::EVENT));
    catalog.all_events().filter(|def| may(def)).cloned().collect()
}

/// EXECUTE_AT, INTERVAL_VALUE, INTERVAL_FIELD, STARTS and ENDS. As by MySQL 8.0.12 the value is a number, of the unit's last part.
fn schedule_cells(def: &EventDef) -> [Value; 5] {
    let shown = |moment| Value::DateTime(wall_clock(def, moment));
    match def.schedule {
        EventSchedule::At(at) => [shown(at), Value::Null, Value::Null, Value::Null, Value::Null],
        EventSchedule::Every { count, unit, starts, ends } => [Value::Null, t(count.to_string()), t(unit.name()), shown(starts), ends.map_or(Value::Null, shown)],
    }
}

fn kind(def: &EventDef) -> Value {
    t(if matches!(def.schedule, EventSchedule::At(_)) { "ONE TIME" } else { "RECURRING" })
}

fn definer(def: &EventDef) -> Value {
    t(format!("{}@{}", def.definer.0, def.definer.1))
}

fn charset_cells(def: &EventDef) -> [Value; 3] {
    [t(def.charset.name()), t(def.collation.name), t(def.schema_collation.name)]
}

/// Of information_schema.EVENTS.
pub fn rows(state: &SessionState) -> Vec<Vec<Value>> {
    let row = |def: Arc<EventDef>| {
        let [execute_at, value, field, starts, ends] = schedule_cells(&def);
        let last_executed = def.last_executed.and_then(|at| DateTime::from_micros(at * 1_000_000)).map_or(Value::Null, Value::DateTime);
        let mut row = vec![t("def"), t(&def.schema), t(&def.name), definer(&def), t(&def.time_zone), t("SQL"), t(&def.body), kind(&def)];
        row.extend([execute_at, value, field, t(SqlModes(def.sql_mode).to_string()), starts, ends, t(def.status.name())]);
        row.extend([
            t(if def.preserve { "PRESERVE" } else { "NOT PRESERVE" }),
            Value::DateTime(information_schema::wall_clock(state, def.created_at)),
            Value::DateTime(information_schema::wall_clock(state, def.altered_at)),
            last_executed,
            t(&def.comment),
            Value::UInt(def.originator.into()),
        ]);
        row.extend(charset_cells(&def));
        row
    };
    seen(state).into_iter().map(row).collect()
}

/// Of SHOW EVENTS.
pub fn status(state: &SessionState, schema: &str) -> Vec<Vec<Value>> {
    let row = |def: Arc<EventDef>| {
        let [execute_at, value, field, starts, ends] = schedule_cells(&def);
        let mut row = vec![t(&def.schema), t(&def.name), definer(&def), t(&def.time_zone), kind(&def), execute_at, value, field, starts, ends];
        row.extend([t(def.status.name()), Value::UInt(def.originator.into())]);
        row.extend(charset_cells(&def));
        row
    };
    seen(state).into_iter().filter(|def| &*def.schema == schema).map(row).collect()
}

/// SHOW CREATE EVENT. Error 1539.
pub fn create_event(state: &SessionState, name: &ObjectName) -> Result<Answer, MySqlError> {
    let schema = state.schema_of(name.schema.as_deref())?;
    let found = state.instance.database().catalog().event(&schema, &name.name);
    let def = found.ok_or_else(|| errors::event_does_not_exist(&name.name))?;
    let mut row = vec![t(&def.name), t(SqlModes(def.sql_mode).to_string()), t(&def.time_zone), t(definition(&def))];
    row.extend(charset_cells(&def));
    Ok(Answer::new("Event s64;sql_mode s520;time_zone s64;Create Event S;character_set_client s32;collation_connection s32;Database Collation s32", vec![row]))
}
