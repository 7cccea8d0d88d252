//! Definitions of schemas and tables as catalog records (JSON), and back. A record that does not decode is corruption: the open fails.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use highkey_storage::IndexId;
use highkey_types::{Collation, ColumnType, GeometryType, RowLayout, Shape, Str, TypeKind, Value};
use serde::{Deserialize, Serialize};

use super::stored_record::{TriggerRecord, trigger_def, trigger_record};
use crate::def::{
    CheckDef, ColumnDef, Default, ForeignKeyDef, Generated, IndexDef, IndexKind, IndexPart, ReferenceAction, SchemaDef, TableDef, TableId, UserDef,
};
use super::partition::{self, PartitioningRecord};
use crate::full_text::{StopwordList, Stopwords, WordParser, WordRules};
use crate::partition::Chooser;

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
    #[serde(skip_serializing_if = "is_false", default)]
    explicit_collation: bool,
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

pub(super) fn is_false(flag: &bool) -> bool {
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
    /// The number of the kind and the SRID.
    Geometry(u8, Option<u32>),
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
    /// None: the usual ones.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    words: Option<WordsRecord>,
}

/// What a FULLTEXT index was made with.
#[derive(Serialize, Deserialize)]
struct WordsRecord {
    parser: ParserRecord,
    stopwords: StopwordsRecord,
}

#[derive(Serialize, Deserialize)]
enum ParserRecord {
    Runs { chars_min: u32, chars_max: u32 },
    Ngram { chars: u32 },
}

#[derive(Serialize, Deserialize)]
enum StopwordsRecord {
    None,
    Default,
    Listed { collation: u16, words: Vec<String> },
}

#[derive(Serialize, Deserialize)]
enum IndexKindRecord {
    RowId,
    Primary,
    Unique,
    Ordinary,
    FullText,
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
    let indexes: Vec<_> = record.indexes.into_iter().map(index_def).collect::<Result<_, _>>()?;
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

pub(crate) fn encode_user(def: &UserDef) -> Vec<u8> {
    json(def)
}

/// Microseconds since 1970.
pub(super) fn micros(moment: SystemTime) -> u64 {
    moment.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_micros() as u64)
}

pub(super) fn moment(micros: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_micros(micros)
}

pub(super) fn json(record: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(record).expect("catalog records have string keys only")
}

pub(super) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    serde_json::from_slice(bytes).map_err(|e| format!("a record does not decode: {e}"))
}

pub(super) fn collation(id: u16) -> Result<&'static Collation, String> {
    Collation::by_id(id).ok_or_else(|| format!("collation {id} is not known"))
}

fn column_record(def: &ColumnDef) -> ColumnRecord {
    ColumnRecord {
        name: def.name.to_string(),
        ty: type_record(&def.ty),
        nullable: def.nullable,
        invisible: def.invisible,
        explicit_collation: def.explicit_collation,
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
        explicit_collation: record.explicit_collation,
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
        K::Geometry(ty) => R::Geometry(ty.shape.code(), ty.srid),
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
        R::Geometry(code, srid) => {
            let shape = Shape::of_code(u32::from(code)).ok_or_else(|| format!("a column of geometries of the unknown kind {code}"))?;
            K::Geometry(GeometryType { shape, srid })
        }
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
            IndexKind::FullText => IndexKindRecord::FullText,
        },
        parts: def
            .parts
            .iter()
            .map(|p| PartRecord { column: p.column, prefix: p.prefix, descending: p.descending })
            .collect(),
        invisible: def.invisible,
        generated: def.generated,
        comment: def.comment.to_string(),
        words: (def.words != WordRules::usual()).then(|| words_record(&def.words)),
    }
}

fn words_record(rules: &WordRules) -> WordsRecord {
    WordsRecord {
        parser: match rules.parser {
            WordParser::Runs { chars_min, chars_max } => ParserRecord::Runs { chars_min, chars_max },
            WordParser::Ngram { chars } => ParserRecord::Ngram { chars },
        },
        stopwords: match &rules.stopwords {
            Stopwords::None => StopwordsRecord::None,
            Stopwords::Default => StopwordsRecord::Default,
            Stopwords::Listed(list) => StopwordsRecord::Listed { collation: list.collation().id, words: list.words().to_vec() },
        },
    }
}

fn word_rules(record: Option<WordsRecord>) -> Result<Arc<WordRules>, String> {
    let Some(record) = record else { return Ok(WordRules::usual()) };
    let parser = match record.parser {
        ParserRecord::Runs { chars_min, chars_max } => WordParser::Runs { chars_min, chars_max },
        ParserRecord::Ngram { chars } => WordParser::Ngram { chars },
    };
    let stopwords = match record.stopwords {
        StopwordsRecord::None => Stopwords::None,
        StopwordsRecord::Default => Stopwords::Default,
        StopwordsRecord::Listed { collation: id, words } => Stopwords::Listed(StopwordList::new(collation(id)?, words)),
    };
    Ok(Arc::new(WordRules { parser, stopwords }))
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

fn index_def(record: IndexRecord) -> Result<IndexDef, String> {
    Ok(IndexDef {
        id: IndexId(record.id),
        name: record.name.into(),
        kind: match record.kind {
            IndexKindRecord::RowId => IndexKind::RowId,
            IndexKindRecord::Primary => IndexKind::Primary,
            IndexKindRecord::Unique => IndexKind::Unique,
            IndexKindRecord::Ordinary => IndexKind::Ordinary,
            IndexKindRecord::FullText => IndexKind::FullText,
        },
        parts: record
            .parts
            .into_iter()
            .map(|p| IndexPart { column: p.column, prefix: p.prefix, descending: p.descending })
            .collect(),
        invisible: record.invisible,
        generated: record.generated,
        comment: record.comment.into(),
        words: word_rules(record.words)?,
    })
}
