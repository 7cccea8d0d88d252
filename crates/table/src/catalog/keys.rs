//! Keys of the catalog tree: a kind byte, then what identifies the record. README.md has the table.

use highkey_storage::IndexId;

use crate::def::TableId;
use crate::routine::RoutineKind;

pub(crate) const META: u8 = b'M';
pub(crate) const SCHEMA: u8 = b'S';
pub(crate) const TABLE: u8 = b'T';
pub(crate) const USER: u8 = b'U';
pub(crate) const AUTO_INCREMENT: u8 = b'A';
pub(crate) const ROW_ID: u8 = b'R';
pub(crate) const STATISTICS: u8 = b'P';
pub(crate) const HISTOGRAM: u8 = b'H';
pub(crate) const REPLICA: u8 = b'C';
pub(crate) const VIEW: u8 = b'V';
pub(crate) const TEMPORARY: u8 = b'E';
pub(crate) const ROUTINE: u8 = b'F';
pub(crate) const EVENT: u8 = b'W';

fn of_table(kind: u8, id: TableId) -> Vec<u8> {
    let mut key = vec![kind];
    key.extend_from_slice(&id.0.to_be_bytes());
    key
}

/// The format of the catalog, written once.
pub(crate) fn format() -> Vec<u8> {
    vec![META, b'f']
}

/// Present after a clean shutdown, removed at open: the statistics records are exact.
pub(crate) fn clean() -> Vec<u8> {
    vec![META, b'c']
}

/// Identifies this server among others (`server_uuid`), written once.
pub(crate) fn server_uuid() -> Vec<u8> {
    vec![META, b'u']
}

/// How far the binary log's files are durable.
pub(crate) fn binlog() -> Vec<u8> {
    vec![META, b'b']
}

pub(crate) fn schema(name: &str) -> Vec<u8> {
    [&[SCHEMA], name.as_bytes()].concat()
}

pub(crate) fn table(id: TableId) -> Vec<u8> {
    of_table(TABLE, id)
}

pub(crate) fn auto_increment(id: TableId) -> Vec<u8> {
    of_table(AUTO_INCREMENT, id)
}

pub(crate) fn row_id(id: TableId) -> Vec<u8> {
    of_table(ROW_ID, id)
}

pub(crate) fn statistics(id: TableId) -> Vec<u8> {
    of_table(STATISTICS, id)
}

pub(crate) fn histogram(id: TableId, column: &str) -> Vec<u8> {
    let mut key = of_table(HISTOGRAM, id);
    key.extend_from_slice(column.as_bytes());
    key
}

/// The table and the column of a histogram's key.
pub(crate) fn histogram_of(key: &[u8]) -> Option<(TableId, &str)> {
    let (table, column) = key.split_at_checked(9)?;
    Some((table_id(table)?, std::str::from_utf8(column).ok()?))
}

pub(crate) fn user(user: &str, host: &str) -> Vec<u8> {
    [&[USER], user.as_bytes(), &[0], host.as_bytes()].concat()
}

/// Schema and name, each without a zero byte.
pub(crate) fn view(schema: &str, name: &str) -> Vec<u8> {
    [&[VIEW], schema.as_bytes(), &[0], name.as_bytes()].concat()
}

/// Schema and the name in lower case, each without a zero byte, and before the name a letter for the kind.
pub(crate) fn routine(schema: &str, kind: RoutineKind, name: &str) -> Vec<u8> {
    let kind = match kind {
        RoutineKind::Procedure => b'P',
        RoutineKind::Function => b'F',
        RoutineKind::Trigger => b'T',
    };
    [&[ROUTINE], schema.as_bytes(), &[0, kind], name.to_lowercase().as_bytes()].concat()
}

/// Schema and the name in lower case, each without a zero byte.
pub(crate) fn event(schema: &str, name: &str) -> Vec<u8> {
    [&[EVENT], schema.as_bytes(), &[0], name.to_lowercase().as_bytes()].concat()
}

pub(crate) fn replica(name: &[u8]) -> Vec<u8> {
    [&[REPLICA], name].concat()
}

/// A tree of a temporary table: a later life of the database drops it.
pub(crate) fn temporary(tree: IndexId) -> Vec<u8> {
    [&[TEMPORARY], &tree.0.to_be_bytes()[..]].concat()
}

/// The tree of such a key.
pub(crate) fn temporary_of(key: &[u8]) -> Option<IndexId> {
    Some(IndexId(u32::from_be_bytes(key.get(1..)?.try_into().ok()?)))
}

/// The table that a record of a per-table kind belongs to.
pub(crate) fn table_id(key: &[u8]) -> Option<TableId> {
    Some(TableId(u64::from_be_bytes(key.get(1..)?.try_into().ok()?)))
}
