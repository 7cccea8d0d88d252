//! The tables and rows of `testdata/tables.txt`, as events.

use highkey_binlog::{Bitmap, Column, PrimaryKeyPart, RowImage, RowMetadata, RowsKind, RowsWriter, Stamp, TableMap};
use highkey_types::{Collation, ColumnType, SqlMode, StoreContext, Str, TimeZone, TypeKind, Value, store};

pub struct Table {
    pub name: String,
    pub columns: Vec<TableColumn>,
    pub changes: Vec<Change>,
}

pub struct TableColumn {
    pub name: String,
    /// As CREATE TABLE has it, with the collation.
    pub definition: String,
    pub ty: ColumnType,
    pub nullable: bool,
    pub primary_key: Option<PrimaryKeyPart>,
}

/// What one statement did to one row.
pub struct Change {
    pub image: RowImage,
    pub old: Option<Vec<Value>>,
    pub new: Option<Vec<Value>>,
}

impl Table {
    pub fn map(&self, table_id: u64, schema: &str, metadata: RowMetadata) -> TableMap {
        let columns: Vec<_> = self.columns.iter().map(TableColumn::for_events).collect();
        TableMap::new(table_id, schema, &self.name, &columns, metadata)
    }

    /// CREATE TABLE.
    pub fn definition(&self) -> String {
        let mut parts: Vec<_> = self.columns.iter().map(|column| format!("`{}` {}", column.name, column.definition)).collect();
        let mut key: Vec<_> = self.columns.iter().filter_map(|column| Some((column.primary_key?, &column.name))).collect();
        key.sort_by_key(|(part, _)| part.position);
        if !key.is_empty() {
            let part = |(part, name): &(PrimaryKeyPart, &String)| match part.prefix {
                0 => name.to_string(),
                prefix => format!("{name}({prefix})"),
            };
            parts.push(format!("primary key({})", key.iter().map(part).collect::<Vec<_>>().join(",")));
        }
        format!("create table {} ({})", self.name, parts.join(", "))
    }
}

impl TableColumn {
    fn for_events(&self) -> Column<'_> {
        Column { name: &self.name, ty: &self.ty, nullable: self.nullable, primary_key: self.primary_key, visible: true }
    }
}

impl Change {
    /// Appends the rows event of this change alone.
    pub fn write(&self, stamp: Stamp, table: &TableMap, out: &mut Vec<u8>) {
        let before = self.image.before(table);
        let mut after = Bitmap::none(table.column_count());
        let kind = match (&self.old, &self.new) {
            (None, Some(_)) => {
                after = self.image.inserted(table);
                RowsKind::Write
            }
            (Some(old), Some(new)) => {
                self.image.after(table, old, new, &mut after);
                RowsKind::Update
            }
            _ => RowsKind::Delete,
        };
        let mut writer = RowsWriter::begin(kind, stamp, 0, table, &before, &after);
        match (&self.old, &self.new) {
            (Some(old), Some(new)) => writer.push_update(old, new, out),
            (Some(row), None) | (None, Some(row)) => writer.push(row, out),
            (None, None) => unreachable!("a change has a row"),
        }
        writer.finish(true, out);
    }
}

/// All of them, in the file's order.
pub fn tables() -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    let (mut image, mut last) = (RowImage::Full, None);
    for line in include_str!("../../testdata/tables.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once('\t').unwrap_or((line, ""));
        let fields: Vec<&str> = rest.split('\t').collect();
        if word == "table" {
            tables.push(Table { name: rest.to_owned(), columns: Vec::new(), changes: Vec::new() });
            (image, last) = (RowImage::Full, None);
            continue;
        }
        let table = tables.last_mut().expect("a table first");
        let values = || -> Vec<Value> { fields.iter().zip(&table.columns).map(|(field, column)| value(field, &column.ty)).collect() };
        match word {
            "column" => table.columns.push(column(&fields)),
            "key" => key(table, rest),
            "image" => {
                image = match rest {
                    "FULL" => RowImage::Full,
                    "MINIMAL" => RowImage::Minimal,
                    "NOBLOB" => RowImage::NoBlob,
                    _ => panic!("{line}"),
                }
            }
            "row" => {
                assert_eq!(fields.len(), table.columns.len(), "{line}");
                last = Some(values());
                table.changes.push(Change { image, old: None, new: last.clone() });
            }
            "update" => {
                let new = Some(values());
                table.changes.push(Change { image, old: last.take(), new: new.clone() });
                last = new;
            }
            "delete" => table.changes.push(Change { image, old: last.take(), new: None }),
            _ => panic!("{line}"),
        }
    }
    tables
}

fn key(table: &mut Table, text: &str) {
    for (position, part) in text.split(',').enumerate() {
        let (name, prefix) = part.trim_end_matches(')').split_once('(').unwrap_or((part, "0"));
        let column = table.columns.iter_mut().find(|column| column.name == name).unwrap();
        column.primary_key = Some(PrimaryKeyPart { position: position as u16, prefix: prefix.parse().unwrap() });
        column.nullable = false;
    }
}

fn column(fields: &[&str]) -> TableColumn {
    let nullable = !fields[1].ends_with(" not null");
    let null = if nullable { " null" } else { "" };
    let collate = fields.get(2).map_or(String::new(), |collation| format!(" collate {collation}"));
    TableColumn {
        name: fields[0].to_owned(),
        definition: format!("{}{null}{collate}", fields[1]),
        ty: column_type(fields[1].trim_end_matches(" not null"), fields.get(2).copied()),
        nullable,
        primary_key: None,
    }
}

fn column_type(text: &str, collation: Option<&str>) -> ColumnType {
    let (base, attributes) = text.rsplit_once(')').map_or_else(|| text.split_once(' ').unwrap_or((text, "")), |(base, rest)| (base, rest));
    let (name, arguments) = base.split_once('(').unwrap_or((base, ""));
    let numbers: Vec<u32> = arguments.split(',').filter_map(|n| n.parse().ok()).collect();
    let n = numbers.first().copied().unwrap_or(0);
    let members = || -> std::sync::Arc<[Str]> { arguments.split(',').map(|member| Str::from(member.trim_matches('\''))).collect() };
    let kind = match name {
        "tinyint" => TypeKind::TinyInt,
        "smallint" => TypeKind::SmallInt,
        "mediumint" => TypeKind::MediumInt,
        "int" => TypeKind::Int,
        "bigint" => TypeKind::BigInt,
        "decimal" => TypeKind::Decimal { precision: n as u8, scale: numbers[1] as u8 },
        "float" => TypeKind::Float,
        "double" => TypeKind::Double,
        "bit" => TypeKind::Bit(n as u8),
        "char" => TypeKind::Char(n),
        "varchar" => TypeKind::VarChar(n),
        "tinytext" => TypeKind::TinyText,
        "text" => TypeKind::Text,
        "mediumtext" => TypeKind::MediumText,
        "longtext" => TypeKind::LongText,
        "binary" => TypeKind::Binary(n),
        "varbinary" => TypeKind::VarBinary(n),
        "tinyblob" => TypeKind::TinyBlob,
        "blob" => TypeKind::Blob,
        "mediumblob" => TypeKind::MediumBlob,
        "longblob" => TypeKind::LongBlob,
        "date" => TypeKind::Date,
        "datetime" => TypeKind::DateTime(n as u8),
        "timestamp" => TypeKind::Timestamp(n as u8),
        "time" => TypeKind::Time(n as u8),
        "year" => TypeKind::Year,
        "enum" => TypeKind::Enum(members()),
        "set" => TypeKind::Set(members()),
        "json" => TypeKind::Json,
        _ => panic!("{text}"),
    };
    let is_real = matches!(kind, TypeKind::Float | TypeKind::Double);
    let mut ty = ColumnType::new(kind);
    if let Some(collation) = collation {
        ty.collation = Collation::by_name(collation).unwrap();
    }
    ty.unsigned = attributes.contains("unsigned");
    ty.zerofill = attributes.contains("zerofill");
    if is_real && numbers.len() == 2 {
        ty.float_digits = Some((numbers[0] as u8, numbers[1] as u8));
    }
    ty
}

/// A literal as the column stores it.
fn value(literal: &str, ty: &ColumnType) -> Value {
    let value = literal_value(literal);
    let zone = TimeZone::utc();
    let mode = SqlMode { allow_invalid_dates: true, ..SqlMode::default() };
    let mut context =
        StoreContext { strict: true, ignore: false, mode, time_zone: &zone, now_micros: 0, row: 1, warnings: &mut Vec::new() };
    store(value, ty, "c", &mut context).unwrap_or_else(|error| panic!("{literal} as {ty}: {error:?}"))
}

fn literal_value(literal: &str) -> Value {
    if literal == "NULL" {
        return Value::Null;
    }
    if let Some(hex) = literal.strip_prefix("x'").and_then(|rest| rest.strip_suffix('\'')) {
        return Value::Bytes((0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect());
    }
    if let Some(text) = literal.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\'')) {
        return Value::text(text.replace("\\\\", "\\"));
    }
    let Some((name, arguments)) = literal.trim_end_matches(')').split_once('(') else {
        return if literal.contains(['.', 'e']) { Value::text(literal) } else { integer(literal) };
    };
    let n = |text: &str| text.parse::<usize>().unwrap();
    Value::text(match name {
        "repeat" => {
            let (text, count) = arguments.rsplit_once(',').unwrap();
            text.trim_matches('\'').repeat(n(count))
        }
        "json_string" => format!("\"{}\"", "s".repeat(n(arguments))),
        "json_array" => format!("[{}]", vec!["100000"; n(arguments)].join(",")),
        "json_object" => format!("{{{}}}", (0..n(arguments)).map(|i| format!("\"k{i}\":\"{i}\"")).collect::<Vec<_>>().join(",")),
        "json_nested" => format!("[{{\"t\":\"{}\"}}]", "t".repeat(n(arguments))),
        "json_small_in_large" => format!("[\"{}\",{{\"a\":70000}}]", "t".repeat(n(arguments))),
        _ => panic!("{literal}"),
    })
}

/// Longer numbers are decimals.
fn integer(literal: &str) -> Value {
    let signed = literal.parse().map(Value::Int).ok();
    signed.or_else(|| literal.parse().map(Value::UInt).ok()).unwrap_or_else(|| Value::Decimal(literal.parse().unwrap()))
}
