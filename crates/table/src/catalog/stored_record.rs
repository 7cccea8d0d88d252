//! Stored objects (views, routines, triggers, events) as catalog records, and back.

use std::sync::Arc;

use highkey_types::{Charset, IntervalUnit, Str};
use serde::{Deserialize, Serialize};

use super::record::{collation, is_false, json, micros, moment, parse};
use crate::event::{EventDef, EventSchedule, EventStatus};
use crate::routine::{DataAccess, RoutineDef, RoutineKind};
use crate::trigger::{TriggerDef, TriggerEvent, TriggerTime};
use crate::view::{CheckOption, ViewAlgorithm, ViewDef};

#[derive(Serialize, Deserialize)]
struct ViewRecord {
    schema: String,
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    columns: Vec<String>,
    text: String,
    algorithm: ViewAlgorithm,
    check: CheckOption,
    definer: (String, String),
    #[serde(skip_serializing_if = "is_false", default)]
    invoker: bool,
    updatable: bool,
    charset: String,
    collation: u16,
    created_micros: u64,
}

#[derive(Serialize, Deserialize)]
struct RoutineRecord {
    kind: RoutineKind,
    schema: String,
    name: String,
    parameters: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    returns: String,
    body: String,
    data_access: DataAccess,
    #[serde(skip_serializing_if = "is_false", default)]
    deterministic: bool,
    #[serde(skip_serializing_if = "is_false", default)]
    invoker: bool,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    comment: String,
    definer: (String, String),
    sql_mode: u64,
    charset: String,
    collation: u16,
    schema_collation: u16,
    created_micros: u64,
    altered_micros: u64,
}

#[derive(Serialize, Deserialize)]
pub(super) struct TriggerRecord {
    event: TriggerEvent,
    time: TriggerTime,
    routine: RoutineRecord,
}

#[derive(Serialize, Deserialize)]
struct EventRecord {
    schema: String,
    name: String,
    body: String,
    schedule: ScheduleRecord,
    time_zone: String,
    status: EventStatus,
    #[serde(skip_serializing_if = "is_false", default)]
    preserve: bool,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    comment: String,
    definer: (String, String),
    sql_mode: u64,
    charset: String,
    collation: u16,
    schema_collation: u16,
    originator: u32,
    created_micros: u64,
    altered_micros: u64,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    last_executed: Option<i64>,
}

#[derive(Serialize, Deserialize)]
enum ScheduleRecord {
    At(i64),
    /// The unit by its name.
    Every { count: u32, unit: String, starts: i64, ends: Option<i64> },
}

pub(crate) fn encode_view(def: &ViewDef) -> Vec<u8> {
    json(&ViewRecord {
        schema: def.schema.to_string(),
        name: def.name.to_string(),
        columns: def.columns.iter().map(ToString::to_string).collect(),
        text: def.text.to_string(),
        algorithm: def.algorithm,
        check: def.check,
        definer: (def.definer.0.to_string(), def.definer.1.to_string()),
        invoker: def.invoker,
        updatable: def.updatable,
        charset: def.charset.name().to_string(),
        collation: def.collation.id,
        created_micros: micros(def.created_at),
    })
}

pub(crate) fn decode_view(bytes: &[u8]) -> Result<ViewDef, String> {
    let record: ViewRecord = parse(bytes)?;
    Ok(ViewDef {
        charset: charset(&record.charset, "view", &record.schema, &record.name)?,
        schema: record.schema.into(),
        name: record.name.into(),
        columns: record.columns.into_iter().map(Str::from).collect(),
        text: record.text.into(),
        algorithm: record.algorithm,
        check: record.check,
        definer: (record.definer.0.into(), record.definer.1.into()),
        invoker: record.invoker,
        updatable: record.updatable,
        collation: collation(record.collation)?,
        created_at: moment(record.created_micros),
    })
}

pub(super) fn trigger_record(def: &TriggerDef) -> TriggerRecord {
    TriggerRecord { event: def.event, time: def.time, routine: routine_record(&def.routine) }
}

pub(super) fn trigger_def(record: TriggerRecord) -> Result<TriggerDef, String> {
    Ok(TriggerDef { event: record.event, time: record.time, routine: Arc::new(routine_def(record.routine)?) })
}

pub(crate) fn encode_routine(def: &RoutineDef) -> Vec<u8> {
    json(&routine_record(def))
}

fn routine_record(def: &RoutineDef) -> RoutineRecord {
    RoutineRecord {
        kind: def.kind,
        schema: def.schema.to_string(),
        name: def.name.to_string(),
        parameters: def.parameters.to_string(),
        returns: def.returns.to_string(),
        body: def.body.to_string(),
        data_access: def.data_access,
        deterministic: def.deterministic,
        invoker: def.invoker,
        comment: def.comment.to_string(),
        definer: (def.definer.0.to_string(), def.definer.1.to_string()),
        sql_mode: def.sql_mode,
        charset: def.charset.name().to_string(),
        collation: def.collation.id,
        schema_collation: def.schema_collation.id,
        created_micros: micros(def.created_at),
        altered_micros: micros(def.altered_at),
    }
}

pub(crate) fn decode_routine(bytes: &[u8]) -> Result<RoutineDef, String> {
    routine_def(parse(bytes)?)
}

fn routine_def(record: RoutineRecord) -> Result<RoutineDef, String> {
    Ok(RoutineDef {
        kind: record.kind,
        charset: charset(&record.charset, "routine", &record.schema, &record.name)?,
        schema: record.schema.into(),
        name: record.name.into(),
        parameters: record.parameters.into(),
        returns: record.returns.into(),
        body: record.body.into(),
        data_access: record.data_access,
        deterministic: record.deterministic,
        invoker: record.invoker,
        comment: record.comment.into(),
        definer: (record.definer.0.into(), record.definer.1.into()),
        sql_mode: record.sql_mode,
        collation: collation(record.collation)?,
        schema_collation: collation(record.schema_collation)?,
        created_at: moment(record.created_micros),
        altered_at: moment(record.altered_micros),
    })
}

pub(crate) fn encode_event(def: &EventDef) -> Vec<u8> {
    json(&EventRecord {
        schema: def.schema.to_string(),
        name: def.name.to_string(),
        body: def.body.to_string(),
        schedule: match def.schedule {
            EventSchedule::At(at) => ScheduleRecord::At(at),
            EventSchedule::Every { count, unit, starts, ends } => ScheduleRecord::Every { count, unit: unit.name().to_string(), starts, ends },
        },
        time_zone: def.time_zone.to_string(),
        status: def.status,
        preserve: def.preserve,
        comment: def.comment.to_string(),
        definer: (def.definer.0.to_string(), def.definer.1.to_string()),
        sql_mode: def.sql_mode,
        charset: def.charset.name().to_string(),
        collation: def.collation.id,
        schema_collation: def.schema_collation.id,
        originator: def.originator,
        created_micros: micros(def.created_at),
        altered_micros: micros(def.altered_at),
        last_executed: def.last_executed,
    })
}

pub(crate) fn decode_event(bytes: &[u8]) -> Result<EventDef, String> {
    let record: EventRecord = parse(bytes)?;
    let schedule = match record.schedule {
        ScheduleRecord::At(at) => EventSchedule::At(at),
        ScheduleRecord::Every { count, unit, starts, ends } => {
            let unit = IntervalUnit::by_name(&unit).ok_or_else(|| format!("event {}.{} has an unknown interval", record.schema, record.name))?;
            EventSchedule::Every { count, unit, starts, ends }
        }
    };
    Ok(EventDef {
        charset: charset(&record.charset, "event", &record.schema, &record.name)?,
        schema: record.schema.into(),
        name: record.name.into(),
        body: record.body.into(),
        schedule,
        time_zone: record.time_zone.into(),
        status: record.status,
        preserve: record.preserve,
        comment: record.comment.into(),
        definer: (record.definer.0.into(), record.definer.1.into()),
        sql_mode: record.sql_mode,
        collation: collation(record.collation)?,
        schema_collation: collation(record.schema_collation)?,
        originator: record.originator,
        created_at: moment(record.created_micros),
        altered_at: moment(record.altered_micros),
        last_executed: record.last_executed,
    })
}

/// A character set by its name; `what` and the names are for the error.
fn charset(charset: &str, what: &str, schema: &str, name: &str) -> Result<Charset, String> {
    Charset::by_name(charset).ok_or_else(|| format!("{what} {schema}.{name} has an unknown character set"))
}
