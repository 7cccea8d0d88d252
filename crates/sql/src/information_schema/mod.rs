//! information_schema, the tables of performance_schema, mysql and sys that clients read: tables whose rows are made when a query asks.
//!
//! `definitions.rs` has their columns, `mysql_tables.sql` the definitions that a dump gets; `rows.rs` makes the rows, `histograms.rs` those of COLUMN_STATISTICS, `privileges.rs` those of what is granted, `locks.rs` those about transactions and their locks,
//! `threads.rs` those about connections and metadata locks, `indexes.rs` and `waits.rs` those of our own tables and of the statement digests, `innodb.rs` those of InnoDB's own tables, `performance.rs`
//! what performance_schema is set up for, `statements.rs` statements by kind, `usage.rs` how tables and indexes are used, `io.rs` the summaries of waits, files, sockets and memory, `routines.rs` those of stored routines, `triggers.rs` those of triggers. Tables about what Highkey does not have (caches of full-text indexes, the instruments
//! that `setup_instruments` and the consumers that `setup_consumers` do not have) are there and empty, because tools join them.

mod definitions;
mod histograms;
mod indexes;
mod innodb;
mod io;
mod locks;
mod performance;
mod privileges;
pub mod routines;
mod rows;
mod spatial;
mod statements;
mod threads;
pub mod triggers;
mod usage;
mod waits;

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use highkey_table::Catalog;
use highkey_types::{Collation, ColumnType, MySqlError, TypeKind, Value, Warning};

use crate::plan::{VirtualTable, Wanted};
use crate::session::SessionState;

pub(crate) use locks::{deadlock_text, foreign_key_text, transactions_text};
pub(crate) use performance::truncate;
#[cfg(test)]
pub(crate) use waits::latch_rows;
pub use rows::{auto_increment, changed_at, column_default, column_extra, column_key, create_options, row_format, wall_clock};

static TABLES: LazyLock<HashMap<(String, String), Arc<VirtualTable>>> = LazyLock::new(|| {
    let groups = [("information_schema", definitions::INFORMATION_SCHEMA), ("performance_schema", definitions::PERFORMANCE_SCHEMA), ("mysql", definitions::MYSQL), ("sys", definitions::SYS)];
    let mut tables = HashMap::new();
    for (schema, list) in groups {
        for (name, columns) in list {
            let table = VirtualTable { schema: schema.into(), name: name.to_lowercase().into(), columns: columns.split(';').map(column).collect() };
            tables.insert((schema.to_owned(), name.to_lowercase()), Arc::new(table));
        }
    }
    tables
});

/// Finds a virtual table; names of these schemas and their tables are in any case.
pub fn find(schema: &str, name: &str) -> Option<Arc<VirtualTable>> {
    if !is_virtual_schema(schema) && !schema.eq_ignore_ascii_case("mysql") && !schema.eq_ignore_ascii_case("sys") {
        return None;
    }
    TABLES.get(&(schema.to_lowercase(), name.to_lowercase())).cloned()
}

/// Finds a virtual table, unless a restore has made a table of that name, which stands before it.
pub fn find_shown(catalog: &Catalog, schema: &str, name: &str) -> Option<Arc<VirtualTable>> {
    find(schema, name).filter(|table| !is_hidden(catalog, table))
}

fn is_hidden(catalog: &Catalog, table: &VirtualTable) -> bool {
    catalog.find_table(&table.schema, &table.name).is_some()
}

/// What SHOW CREATE TABLE says of a table of `mysql` or `sys`: the table that takes its rows elsewhere.
pub fn definition(table: &VirtualTable) -> Option<&'static str> {
    if !matches!(&*table.schema, "mysql" | "sys") {
        return None;
    }
    let head = format!("CREATE TABLE `{}` (", table.name);
    include_str!("mysql_tables.sql").trim_end().split("\n\n").find(|statement| statement.starts_with(&head))
}

/// Schemas that hold nothing but virtual tables.
pub fn is_virtual_schema(schema: &str) -> bool {
    schema.eq_ignore_ascii_case("information_schema") || schema.eq_ignore_ascii_case("performance_schema")
}

/// The virtual tables of a schema, by name as MySQL shows it; without those before which a table of the catalog stands.
pub fn tables_of(catalog: &Catalog, schema: &str) -> Vec<Arc<VirtualTable>> {
    let mut tables: Vec<_> = TABLES.values().filter(|t| t.schema.eq_ignore_ascii_case(schema) && !is_hidden(catalog, t)).cloned().collect();
    tables.sort_by(|a, b| a.name.cmp(&b.name));
    tables
}

/// A virtual table's name as MySQL shows it: upper case in information_schema.
pub fn shown_name(table: &VirtualTable) -> String {
    if &*table.schema == "information_schema" { table.name.to_uppercase() } else { table.name.to_string() }
}

/// TABLE_TYPE of a virtual table as in MySQL, where those of mysql and sys are tables.
pub fn table_type(table: &VirtualTable) -> &'static str {
    match &*table.schema {
        "mysql" | "sys" => "BASE TABLE",
        _ => "SYSTEM VIEW",
    }
}

/// The rows of a virtual table, now: at least those about the tables that the query asks about.
pub fn rows(state: &SessionState, table: &VirtualTable, wanted: &Wanted, warnings: &mut Vec<Warning>) -> Result<Vec<Vec<Value>>, MySqlError> {
    rows::rows(state, table, wanted, warnings)
}

/// `NAME type`, as `definitions.rs` writes them.
pub fn column(text: &str) -> (highkey_types::Str, ColumnType, bool) {
    let (name, code) = text.rsplit_once(' ').expect("a column is NAME type");
    let (code, nullable) = match code.strip_suffix('?') {
        Some(code) => (code, true),
        None => (code, false),
    };
    let by_name = |name| Collation::by_name(name).expect("a collation of ours");
    let (utf8, binary) = (by_name("utf8_general_ci"), by_name("utf8_bin"));
    let ty = match code.as_bytes()[0] {
        b's' => ColumnType::varchar(code[1..].parse().expect("a length"), utf8),
        b'S' => ColumnType::with_collation(TypeKind::LongText, utf8),
        b'b' => ColumnType::varchar(code[1..].parse().expect("a length"), binary),
        b'B' => ColumnType::with_collation(TypeKind::LongText, binary),
        b'u' => ColumnType::ubigint(),
        b'i' => ColumnType::bigint(),
        b'n' => ColumnType::new(TypeKind::Int).unsigned(),
        b'I' => ColumnType::new(TypeKind::Int),
        b'd' => ColumnType::new(TypeKind::DateTime(0)),
        b'm' => ColumnType::new(TypeKind::DateTime(6)),
        b't' => ColumnType::new(TypeKind::Time(0)),
        b'p' => ColumnType::decimal(5, 2),
        b'f' => ColumnType::double(),
        b'j' => ColumnType::with_collation(TypeKind::Json, Collation::utf8mb4()),
        b'D' => ColumnType::decimal(20, 6),
        _ => panic!("no type {code}"),
    };
    (name.into(), ty, nullable)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_restore_may_make_every_table_that_a_dump_gets() {
        let names: Vec<_> = include_str!("mysql_tables.sql").lines().filter_map(|line| line.strip_prefix("CREATE TABLE `")?.strip_suffix("` (")).collect();
        assert_eq!((names.len(), names.last()), (27, Some(&"sys_config")));
        for name in names {
            let schema = if name == "sys_config" { "sys" } else { "mysql" };
            assert!(highkey_table::is_server_table(schema, name), "restored.rs of the table crate names {name} too");
        }
    }
}
