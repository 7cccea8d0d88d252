//! Definitions as catalog records (JSON), and back. A record that does not decode is corruption: the open fails.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_storage::IndexId;
use highkey_types::{Charset, Collation, ColumnType, IntervalUnit, RowLayout, Str, TypeKind, Value};
use serde::{Deserialize, Serialize};

use crate::def::{
    CheckDef, ColumnDef, Default, ForeignKeyDef, Generated, IndexDef, IndexKind, IndexPart, ReferenceAction, SchemaDef, TableDef, TableId,
};
use super::partition::{self, PartitioningRecord};
use crate::event::{EventDef, EventSchedule, EventStatus};
use crate::partition::Chooser;
use crate::routine::{DataAccess, RoutineDef, RoutineKind};
use crate::trigger::{TriggerDef, TriggerEvent, TriggerTime};
use crate::view::{CheckOption, ViewAlgorithm, ViewDef};

#[derive(Serialize, Deserialize)]
struct SchemaRecord {
    name: String,
    collation: u16,
}

#[derive(Serialize, Deserialize)]
struct TableRecord {
    id: u64,
    version: u64,
    schema: String,
    name: String,
    columns: Vec<ColumnRecord>,
    indexes: Vec<IndexRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    checks: Vec<CheckRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    foreign_keys: Vec<ForeignKeyRecord>,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    triggers: Vec<TriggerRecord>,
    collation: u16,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    comment: String,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    row_format: Option<String>,
    /// Records from before there were partitions do not have it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    partitioning: Option<PartitioningRecord>,
    created_micros: u64,
}

#[derive(Serialize, Deserialize)]
struct ColumnRecord {
    name: String,
    #[serde(rename = "type")]
    ty: TypeRecord,
    nullable: bool,
    #[serde(skip_serializing_if = "is_false", default)]
    invisible: bool,
    #[serde(skip_serializing_if = "DefaultRecord::is_none", default)]
    default: DefaultRecord,
    #[serde(skip_serializing_if = "is_false", default)]
    on_update_now: bool,
    #[serde(skip_serializing_if = "is_false", default)]
    auto_increment: bool,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    generated: Option<(String, bool)>,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    comment: String,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Serialize, Deserialize)]
struct TypeRecord {
    kind: KindRecord,
    #[serde(skip_serializing_if = "is_false", default)]
    unsigned: bool,
    #[serde(skip_serializing_if = "is_false", default)]
    zerofill: bool,
    collation: u16,
    #[serde(skip_serializing_if = "is_zero", default)]
    width: u8,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    float_digits: Option<(u8, u8)>,
}

fn is_zero(number: &u8) -> bool {
    *number == 0
}

#[derive(Serialize, Deserialize)]
enum KindRecord {
    TinyInt,
    SmallInt,
    MediumInt,
    Int,
    BigInt,
    Decimal(u8, u8),
    Float,
    Double,
    Bit(u8),
    Char(u32),
    VarChar(u32),
    TinyText,
    Text,
    MediumText,
    LongText,
    Binary(u32),
    VarBinary(u32),
    TinyBlob,
    Blob,
    MediumBlob,
    LongBlob,
    Date,
    DateTime(u8),
    Timestamp(u8),
    Time(u8),
    Year,
    Enum(Vec<String>),
    Set(Vec<String>),
    Json,
    Null,
}

#[derive(Serialize, Deserialize, Default)]
enum DefaultRecord {
    #[default]
    None,
    Dropped,
    /// The value as a row of this one column, in hexadecimal.
    Literal(String),
    Expr(String),
    CurrentTimestamp(u8),
}

impl DefaultRecord {
    fn is_none(&self) -> bool {
        matches!(self, DefaultRecord::None)
    }
}

#[derive(Serialize, Deserialize)]
struct IndexRecord {
    id: u32,
    name: String,
    kind: IndexKindRecord,
    parts: Vec<PartRecord>,
    #[serde(skip_serializing_if = "is_false", default)]
    invisible: bool,
    #[serde(skip_serializing_if = "is_false", default)]
    generated: bool,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    comment: String,
}

#[derive(Serialize, Deserialize)]
enum IndexKindRecord {
    RowId,
    Primary,
    Unique,
    Ordinary,
}

#[derive(Serialize, Deserialize)]
struct PartRecord {
    column: usize,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    prefix: Option<u32>,
    #[serde(skip_serializing_if = "is_false", default)]
    descending: bool,
}

#[derive(Serialize, Deserialize)]
struct CheckRecord {
    name: String,
    expr: String,
    enforced: bool,
}

#[derive(Serialize, Deserialize)]
struct ForeignKeyRecord {
    name: String,
    columns: Vec<usize>,
    parent_schema: String,
    parent_table: String,
    parent_columns: Vec<String>,
    on_delete: ActionRecord,
    on_update: ActionRecord,
}

#[derive(Serialize, Deserialize)]
struct ViewRecord {
    schema: String,
    name: String,
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    columns: Vec<String>,
    text: String,
    algorithm: AlgorithmRecord,
    check: CheckOptionRecord,
    definer: (String, String),
    #[serde(skip_serializing_if = "is_false", default)]
    invoker: bool,
    updatable: bool,
    charset: String,
    collation: u16,
    created_micros: u64,
}

#[derive(Serialize, Deserialize)]
enum AlgorithmRecord {
    Undefined,
    Merge,
    TempTable,
}

#[derive(Serialize, Deserialize)]
enum CheckOptionRecord {
    None,
    Local,
    Cascaded,
}

#[derive(Serialize, Deserialize)]
struct RoutineRecord {
    kind: RoutineKindRecord,
    schema: String,
    name: String,
    parameters: String,
    #[serde(skip_serializing_if = "String::is_empty", default)]
    returns: String,
    body: String,
    data_access: DataAccessRecord,
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
struct TriggerRecord {
    event: TriggerEventRecord,
    time: TriggerTimeRecord,
    routine: RoutineRecord,
}

#[derive(Serialize, Deserialize)]
enum TriggerEventRecord {
    Insert,
    Update,
    Delete,
}

#[derive(Serialize, Deserialize)]
enum TriggerTimeRecord {
    Before,
    After,
}

#[derive(Serialize, Deserialize)]
enum RoutineKindRecord {
    Procedure,
    Function,
    Trigger,
}

#[derive(Serialize, Deserialize)]
enum DataAccessRecord {
    ContainsSql,
    NoSql,
    ReadsSqlData,
    ModifiesSqlData,
}

#[derive(Serialize, Deserialize)]
struct EventRecord {
    schema: String,
    name: String,
    body: String,
    schedule: ScheduleRecord,
    time_zone: String,
    status: EventStatusRecord,
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

#[derive(Serialize, Deserialize)]
enum EventStatusRecord {
    Enabled,
    Disabled,
    SlavesideDisabled,
}

#[derive(Serialize, Deserialize)]
enum ActionRecord {
    NoAction,
    Restrict,
    Cascade,
    SetNull,
}

pub(crate) fn encode_schema(def: &SchemaDef) -> Vec<u8> {
    json(&SchemaRecord { name: def.name.to_string(), collation: def.collation.id })
}

pub(crate) fn decode_schema(bytes: &[u8]) -> Result<SchemaDef, String> {
    let record: SchemaRecord = parse(bytes)?;
    Ok(SchemaDef { name: record.name.into(), collation: collation(record.collation)? })
}

pub(crate) fn encode_table(def: &TableDef) -> Vec<u8> {
    json(&TableRecord {
        id: def.id.0,
        version: def.version,
        schema: def.schema.to_string(),
        name: def.name.to_string(),
        columns: def.columns.iter().map(column_record).collect(),
        indexes: def.indexes.iter().map(index_record).collect(),
        checks: def
            .checks
            .iter()
            .map(|c| CheckRecord { name: c.name.to_string(), expr: c.expr.clone(), enforced: c.enforced })
            .collect(),
        foreign_keys: def.foreign_keys.iter().map(foreign_key_record).collect(),
        triggers: def.triggers.iter().map(trigger_record).collect(),
        collation: def.collation.id,
        comment: def.comment.to_string(),
        row_format: def.row_format.as_ref().map(ToString::to_string),
        partitioning: def.partitioning.as_ref().map(|partitioning| partition::record(def, partitioning)),
        created_micros: micros(def.created_at),
    })
}

pub(crate) fn decode_table(bytes: &[u8]) -> Result<TableDef, String> {
    let record: TableRecord = parse(bytes)?;
    let columns = record.columns.into_iter().map(column_def).collect::<Result<Vec<_>, _>>()?;
    let indexes: Vec<_> = record.indexes.into_iter().map(index_def).collect();
    if indexes.is_empty() || columns.is_empty() {
        return Err(format!("table {}.{} has no columns or no indexes", record.schema, record.name));
    }
    if indexes.iter().flat_map(|i| &i.parts).any(|p| p.column >= columns.len()) {
        return Err(format!("an index of table {}.{} names a column that does not exist", record.schema, record.name));
    }
    let foreign_keys: Vec<_> = record.foreign_keys.into_iter().map(foreign_key_def).collect();
    let fits = |key: &ForeignKeyDef| {
        key.columns.len() == key.parent_columns.len() && !key.columns.is_empty() && key.columns.iter().all(|c| *c < columns.len())
    };
    if let Some(key) = foreign_keys.iter().find(|key| !fits(key)) {
        return Err(format!("foreign key {} of table {}.{} names columns that do not exist", key.name, record.schema, record.name));
    }
    let name = format!("{}.{}", record.schema, record.name);
    let mut def = TableDef {
        id: TableId(record.id),
        version: record.version,
        schema: record.schema.into(),
        name: record.name.into(),
        columns,
        indexes,
        checks: record
            .checks
            .into_iter()
            .map(|c| CheckDef { name: c.name.into(), expr: c.expr, enforced: c.enforced })
            .collect(),
        foreign_keys,
        triggers: record.triggers.into_iter().map(trigger_def).collect::<Result<_, _>>()?,
        collation: collation(record.collation)?,
        comment: record.comment.into(),
        row_format: record.row_format.map(Into::into),
        partitioning: None,
        created_at: moment(record.created_micros),
    };
    if let Some(record) = record.partitioning {
        let partitioning = partition::partitioning(&def, record).ok_or_else(|| format!("the partitions of table {name} do not decode"))?;
        Chooser::new(&def, &partitioning).map_err(|e| format!("the partitions of table {name}: {}", e.message))?;
        def.partitioning = Some(partitioning);
    }
    Ok(def)
}

pub(crate) fn encode_view(def: &ViewDef) -> Vec<u8> {
    json(&ViewRecord {
        schema: def.schema.to_string(),
        name: def.name.to_string(),
        columns: def.columns.iter().map(ToString::to_string).collect(),
        text: def.text.to_string(),
        algorithm: match def.algorithm {
            ViewAlgorithm::Undefined => AlgorithmRecord::Undefined,
            ViewAlgorithm::Merge => AlgorithmRecord::Merge,
            ViewAlgorithm::TempTable => AlgorithmRecord::TempTable,
        },
        check: match def.check {
            CheckOption::None => CheckOptionRecord::None,
            CheckOption::Local => CheckOptionRecord::Local,
            CheckOption::Cascaded => CheckOptionRecord::Cascaded,
        },
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
        charset: Charset::by_name(&record.charset).ok_or_else(|| format!("view {}.{} has an unknown character set", record.schema, record.name))?,
        schema: record.schema.into(),
        name: record.name.into(),
        columns: record.columns.into_iter().map(Str::from).collect(),
        text: record.text.into(),
        algorithm: match record.algorithm {
            AlgorithmRecord::Undefined => ViewAlgorithm::Undefined,
            AlgorithmRecord::Merge => ViewAlgorithm::Merge,
            AlgorithmRecord::TempTable => ViewAlgorithm::TempTable,
        },
        check: match record.check {
            CheckOptionRecord::None => CheckOption::None,
            CheckOptionRecord::Local => CheckOption::Local,
            CheckOptionRecord::Cascaded => CheckOption::Cascaded,
        },
        definer: (record.definer.0.into(), record.definer.1.into()),
        invoker: record.invoker,
        updatable: record.updatable,
        collation: collation(record.collation)?,
        created_at: moment(record.created_micros),
    })
}

fn trigger_record(def: &TriggerDef) -> TriggerRecord {
    TriggerRecord {
        event: match def.event {
            TriggerEvent::Insert => TriggerEventRecord::Insert,
            TriggerEvent::Update => TriggerEventRecord::Update,
            TriggerEvent::Delete => TriggerEventRecord::Delete,
        },
        time: match def.time {
            TriggerTime::Before => TriggerTimeRecord::Before,
            TriggerTime::After => TriggerTimeRecord::After,
        },
        routine: routine_record(&def.routine),
    }
}

fn trigger_def(record: TriggerRecord) -> Result<TriggerDef, String> {
    Ok(TriggerDef {
        event: match record.event {
            TriggerEventRecord::Insert => TriggerEvent::Insert,
            TriggerEventRecord::Update => TriggerEvent::Update,
            TriggerEventRecord::Delete => TriggerEvent::Delete,
        },
        time: match record.time {
            TriggerTimeRecord::Before => TriggerTime::Before,
            TriggerTimeRecord::After => TriggerTime::After,
        },
        routine: Arc::new(routine_def(record.routine)?),
    })
}

pub(crate) fn encode_routine(def: &RoutineDef) -> Vec<u8> {
    json(&routine_record(def))
}

fn routine_record(def: &RoutineDef) -> RoutineRecord {
    RoutineRecord {
        kind: match def.kind {
            RoutineKind::Procedure => RoutineKindRecord::Procedure,
            RoutineKind::Function => RoutineKindRecord::Function,
            RoutineKind::Trigger => RoutineKindRecord::Trigger,
        },
        schema: def.schema.to_string(),
        name: def.name.to_string(),
        parameters: def.parameters.to_string(),
        returns: def.returns.to_string(),
        body: def.body.to_string(),
        data_access: match def.data_access {
            DataAccess::ContainsSql => DataAccessRecord::ContainsSql,
            DataAccess::NoSql => DataAccessRecord::NoSql,
            DataAccess::ReadsSqlData => DataAccessRecord::ReadsSqlData,
            DataAccess::ModifiesSqlData => DataAccessRecord::ModifiesSqlData,
        },
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
        kind: match record.kind {
            RoutineKindRecord::Procedure => RoutineKind::Procedure,
            RoutineKindRecord::Function => RoutineKind::Function,
            RoutineKindRecord::Trigger => RoutineKind::Trigger,
        },
        charset: Charset::by_name(&record.charset).ok_or_else(|| format!("routine {}.{} has an unknown character set", record.schema, record.name))?,
        schema: record.schema.into(),
        name: record.name.into(),
        parameters: record.parameters.into(),
        returns: record.returns.into(),
        body: record.body.into(),
        data_access: match record.data_access {
            DataAccessRecord::ContainsSql => DataAccess::ContainsSql,
            DataAccessRecord::NoSql => DataAccess::NoSql,
            DataAccessRecord::ReadsSqlData => DataAccess::ReadsSqlData,
            DataAccessRecord::ModifiesSqlData => DataAccess::ModifiesSqlData,
        },
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
        status: match def.status {
            EventStatus::Enabled => EventStatusRecord::Enabled,
            EventStatus::Disabled => EventStatusRecord::Disabled,
            EventStatus::SlavesideDisabled => EventStatusRecord::SlavesideDisabled,
        },
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
        charset: Charset::by_name(&record.charset).ok_or_else(|| format!("event {}.{} has an unknown character set", record.schema, record.name))?,
        schema: record.schema.into(),
        name: record.name.into(),
        body: record.body.into(),
        schedule,
        time_zone: record.time_zone.into(),
        status: match record.status {
            EventStatusRecord::Enabled => EventStatus::Enabled,
            EventStatusRecord::Disabled => EventStatus::Disabled,
            EventStatusRecord::SlavesideDisabled => EventStatus::SlavesideDisabled,
        },
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

/// Microseconds since 1970.
fn micros(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

fn moment(micros: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

fn json(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("catalog records have string keys only")
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("a record does not decode: {e}"))
}

fn collation(id: u16) -> Result<&'static Collation, String> {
    Collation::by_id(id).ok_or_else(|| format!("collation {id} is not known"))
}

fn column_record(def: &ColumnDef) -> ColumnRecord {
    ColumnRecord {
        name: def.name.to_string(),
        ty: type_record(&def.ty),
        nullable: def.nullable,
        invisible: def.invisible,
        default: match &def.default {
            Default::None => DefaultRecord::None,
            Default::Dropped => DefaultRecord::Dropped,
            Default::Literal(value) => DefaultRecord::Literal(value_hex(value, &def.ty)),
            Default::Expr(expr) => DefaultRecord::Expr(expr.clone()),
            Default::CurrentTimestamp(fsp) => DefaultRecord::CurrentTimestamp(*fsp),
        },
        on_update_now: def.on_update_now,
        auto_increment: def.auto_increment,
        generated: def.generated.as_ref().map(|g| (g.expr.clone(), g.stored)),
        comment: def.comment.to_string(),
    }
}

fn column_def(record: ColumnRecord) -> Result<ColumnDef, String> {
    let ty = type_def(record.ty)?;
    let default = match record.default {
        DefaultRecord::None => Default::None,
        DefaultRecord::Dropped => Default::Dropped,
        DefaultRecord::Literal(hex) => Default::Literal(hex_value(&hex, &ty).ok_or("a default value is not hexadecimal")?),
        DefaultRecord::Expr(expr) => Default::Expr(expr),
        DefaultRecord::CurrentTimestamp(fsp) => Default::CurrentTimestamp(fsp),
    };
    Ok(ColumnDef {
        name: record.name.into(),
        ty,
        nullable: record.nullable,
        invisible: record.invisible,
        default,
        on_update_now: record.on_update_now,
        auto_increment: record.auto_increment,
        generated: record.generated.map(|(expr, stored)| Generated { expr, stored }),
        comment: record.comment.into(),
    })
}

/// A value as a row of this one column, in hexadecimal.
pub(crate) fn value_hex(value: &Value, ty: &ColumnType) -> String {
    let mut row = Vec::new();
    RowLayout::new(std::slice::from_ref(ty)).encode(std::slice::from_ref(value), &mut row);
    row.iter().map(|b| format!("{b:02x}")).collect()
}

/// What [`value_hex`] made of a value of the type.
pub(crate) fn hex_value(hex: &str, ty: &ColumnType) -> Option<Value> {
    Some(RowLayout::new(std::slice::from_ref(ty)).value(&unhex(hex)?, 0))
}

fn unhex(hex: &str) -> Option<Vec<u8>> {
    let digit = |b: u8| char::from(b).to_digit(16).map(|d| d as u8);
    if hex.len() % 2 != 0 {
        return None;
    }
    hex.as_bytes().chunks_exact(2).map(|pair| Some(digit(pair[0])? << 4 | digit(pair[1])?)).collect()
}

fn type_record(ty: &ColumnType) -> TypeRecord {
    use KindRecord as R;
    use TypeKind as K;
    let members = |m: &[Str]| m.iter().map(ToString::to_string).collect();
    let kind = match &ty.kind {
        K::TinyInt => R::TinyInt,
        K::SmallInt => R::SmallInt,
        K::MediumInt => R::MediumInt,
        K::Int => R::Int,
        K::BigInt => R::BigInt,
        K::Decimal { precision, scale } => R::Decimal(*precision, *scale),
        K::Float => R::Float,
        K::Double => R::Double,
        K::Bit(n) => R::Bit(*n),
        K::Char(n) => R::Char(*n),
        K::VarChar(n) => R::VarChar(*n),
        K::TinyText => R::TinyText,
        K::Text => R::Text,
        K::MediumText => R::MediumText,
        K::LongText => R::LongText,
        K::Binary(n) => R::Binary(*n),
        K::VarBinary(n) => R::VarBinary(*n),
        K::TinyBlob => R::TinyBlob,
        K::Blob => R::Blob,
        K::MediumBlob => R::MediumBlob,
        K::LongBlob => R::LongBlob,
        K::Date => R::Date,
        K::DateTime(n) => R::DateTime(*n),
        K::Timestamp(n) => R::Timestamp(*n),
        K::Time(n) => R::Time(*n),
        K::Year => R::Year,
        K::Enum(m) => R::Enum(members(m)),
        K::Set(m) => R::Set(members(m)),
        K::Json => R::Json,
        K::Null => R::Null,
    };
    TypeRecord {
        kind,
        unsigned: ty.unsigned,
        zerofill: ty.zerofill,
        collation: ty.collation.id,
        width: ty.width,
        float_digits: ty.float_digits,
    }
}

fn type_def(record: TypeRecord) -> Result<ColumnType, String> {
    use KindRecord as R;
    use TypeKind as K;
    let members = |m: Vec<String>| m.into_iter().map(Str::from).collect();
    let kind = match record.kind {
        R::TinyInt => K::TinyInt,
        R::SmallInt => K::SmallInt,
        R::MediumInt => K::MediumInt,
        R::Int => K::Int,
        R::BigInt => K::BigInt,
        R::Decimal(precision, scale) => K::Decimal { precision, scale },
        R::Float => K::Float,
        R::Double => K::Double,
        R::Bit(n) => K::Bit(n),
        R::Char(n) => K::Char(n),
        R::VarChar(n) => K::VarChar(n),
        R::TinyText => K::TinyText,
        R::Text => K::Text,
        R::MediumText => K::MediumText,
        R::LongText => K::LongText,
        R::Binary(n) => K::Binary(n),
        R::VarBinary(n) => K::VarBinary(n),
        R::TinyBlob => K::TinyBlob,
        R::Blob => K::Blob,
        R::MediumBlob => K::MediumBlob,
        R::LongBlob => K::LongBlob,
        R::Date => K::Date,
        R::DateTime(n) => K::DateTime(n),
        R::Timestamp(n) => K::Timestamp(n),
        R::Time(n) => K::Time(n),
        R::Year => K::Year,
        R::Enum(m) => K::Enum(members(m)),
        R::Set(m) => K::Set(members(m)),
        R::Json => K::Json,
        R::Null => K::Null,
    };
    Ok(ColumnType {
        kind,
        unsigned: record.unsigned,
        zerofill: record.zerofill,
        collation: collation(record.collation)?,
        width: record.width,
        float_digits: record.float_digits,
    })
}

fn index_record(def: &IndexDef) -> IndexRecord {
    IndexRecord {
        id: def.id.0,
        name: def.name.to_string(),
        kind: match def.kind {
            IndexKind::RowId => IndexKindRecord::RowId,
            IndexKind::Primary => IndexKindRecord::Primary,
            IndexKind::Unique => IndexKindRecord::Unique,
            IndexKind::Ordinary => IndexKindRecord::Ordinary,
        },
        parts: def
            .parts
            .iter()
            .map(|p| PartRecord { column: p.column, prefix: p.prefix, descending: p.descending })
            .collect(),
        invisible: def.invisible,
        generated: def.generated,
        comment: def.comment.to_string(),
    }
}

fn foreign_key_record(def: &ForeignKeyDef) -> ForeignKeyRecord {
    ForeignKeyRecord {
        name: def.name.to_string(),
        columns: def.columns.clone(),
        parent_schema: def.parent_schema.to_string(),
        parent_table: def.parent_table.to_string(),
        parent_columns: def.parent_columns.iter().map(ToString::to_string).collect(),
        on_delete: action_record(def.on_delete),
        on_update: action_record(def.on_update),
    }
}

fn foreign_key_def(record: ForeignKeyRecord) -> ForeignKeyDef {
    ForeignKeyDef {
        name: record.name.into(),
        columns: record.columns,
        parent_schema: record.parent_schema.into(),
        parent_table: record.parent_table.into(),
        parent_columns: record.parent_columns.into_iter().map(Str::from).collect(),
        on_delete: action(record.on_delete),
        on_update: action(record.on_update),
    }
}

fn action_record(action: ReferenceAction) -> ActionRecord {
    match action {
        ReferenceAction::NoAction => ActionRecord::NoAction,
        ReferenceAction::Restrict => ActionRecord::Restrict,
        ReferenceAction::Cascade => ActionRecord::Cascade,
        ReferenceAction::SetNull => ActionRecord::SetNull,
    }
}

fn action(record: ActionRecord) -> ReferenceAction {
    match record {
        ActionRecord::NoAction => ReferenceAction::NoAction,
        ActionRecord::Restrict => ReferenceAction::Restrict,
        ActionRecord::Cascade => ReferenceAction::Cascade,
        ActionRecord::SetNull => ReferenceAction::SetNull,
    }
}

fn index_def(record: IndexRecord) -> IndexDef {
    IndexDef {
        id: IndexId(record.id),
        name: record.name.into(),
        kind: match record.kind {
            IndexKindRecord::RowId => IndexKind::RowId,
            IndexKindRecord::Primary => IndexKind::Primary,
            IndexKindRecord::Unique => IndexKind::Unique,
            IndexKindRecord::Ordinary => IndexKind::Ordinary,
        },
        parts: record
            .parts
            .into_iter()
            .map(|p| IndexPart { column: p.column, prefix: p.prefix, descending: p.descending })
            .collect(),
        invisible: record.invisible,
        generated: record.generated,
        comment: record.comment.into(),
    }
}
