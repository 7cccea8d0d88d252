//! MySQL errors of this layer, and what errors of the storage engine become.

use highkey_storage::{Error, LockError};
use highkey_types::{MySqlError, errors};

fn error(code: u16, message: String) -> MySqlError {
    MySqlError::with_message(code, message)
}

/// An error of the storage engine, met while working on `table`.
pub(crate) fn storage(cause: Error, table: &str) -> MySqlError {
    match cause {
        Error::OutOfSpace | Error::LogFull => error(1114, format!("The table '{table}' is full")),
        Error::TooLarge { what, max, .. } if what.contains("key") => key_too_long(max),
        Error::TooLarge { max, .. } => error(
            1118,
            format!(
                "Row size too large. The maximum row size for the used table type, not counting BLOBs, is {max}. \
                 This includes storage overhead, check the manual. You have to change some columns to TEXT or BLOBs"
            ),
        ),
        // Whoever wrote wrong bytes, nothing read from them may be believed: the storage engine logged it and stops.
        other => error(1030, format!("Got error 168 - '{other}' from storage engine")),
    }
}

pub(crate) fn lock(cause: LockError) -> MySqlError {
    match cause {
        LockError::Timeout => errors::lock_wait_timeout(),
        LockError::Deadlock => errors::lock_deadlock(),
        LockError::Interrupted => errors::query_interrupted(),
    }
}

pub(crate) fn corrupt_index(table: &str, index: &str) -> MySqlError {
    error(1712, format!("Index {index} of table {table} is corrupted"))
}

pub(crate) fn no_wait() -> MySqlError {
    error(3572, "Statement aborted because lock(s) could not be acquired immediately and NOWAIT is set.".into())
}

pub(crate) fn definition_changed() -> MySqlError {
    error(1412, "Table definition has changed, please retry transaction".into())
}

/// 3780.
pub(crate) fn incompatible_columns(own: &str, parent: &str, key: &str) -> MySqlError {
    error(3780, format!("Referencing column '{own}' and referenced column '{parent}' in foreign key constraint '{key}' are incompatible."))
}

pub(crate) fn cascade_too_deep(max: u32) -> MySqlError {
    error(3008, format!("Foreign key cascade delete/update exceeds max depth of {max}."))
}

/// A foreign key's action changes a row whose generated columns nobody can compute.
pub(crate) fn no_generator() -> MySqlError {
    error(1815, "Internal error: a foreign key's action needs generated columns".into())
}

pub(crate) fn no_such_savepoint(name: &str) -> MySqlError {
    error(1305, format!("SAVEPOINT {name} does not exist"))
}

pub(crate) fn schema_exists(name: &str) -> MySqlError {
    error(1007, format!("Can't create database '{name}'; database exists"))
}

pub(crate) fn no_schema_to_drop(name: &str) -> MySqlError {
    error(1008, format!("Can't drop database '{name}'; database doesn't exist"))
}

pub(crate) fn unknown_schema(name: &str) -> MySqlError {
    error(1049, format!("Unknown database '{name}'"))
}

pub(crate) fn cannot_load(schema: &str, table: &str) -> MySqlError {
    error(1728, format!("Cannot load from {schema}.{table}. The table is probably corrupted"))
}

pub(crate) fn system_schema(name: &str) -> MySqlError {
    error(3552, format!("Access to system schema '{name}' is rejected."))
}

pub(crate) fn table_exists(name: &str) -> MySqlError {
    error(1050, format!("Table '{name}' already exists"))
}

/// `kind`: VIEW, BASE TABLE.
pub(crate) fn not_a(schema: &str, name: &str, kind: &str) -> MySqlError {
    error(1347, format!("'{schema}.{name}' is not {kind}"))
}

pub(crate) fn other_schema(from: &str, to: &str) -> MySqlError {
    error(1450, format!("Changing schema from '{from}' to '{to}' is not allowed."))
}

/// FOLLOWS and PRECEDES.
pub(crate) fn no_referenced_trigger(name: &str) -> MySqlError {
    error(3011, format!("Referenced trigger '{name}' for the given action time and event type does not exist."))
}

/// DROP TABLE's message lists all that are missing.
pub(crate) fn unknown_tables(names: &str) -> MySqlError {
    error(1051, format!("Unknown table '{names}'"))
}

pub(crate) fn no_such_table(schema: &str, name: &str) -> MySqlError {
    error(1146, format!("Table '{schema}.{name}' doesn't exist"))
}

pub(crate) fn duplicate_column(name: &str) -> MySqlError {
    error(1060, format!("Duplicate column name '{name}'"))
}

pub(crate) fn duplicate_index(name: &str) -> MySqlError {
    error(1061, format!("Duplicate key name '{name}'"))
}

pub(crate) fn wrong_index_name(name: &str) -> MySqlError {
    error(1280, format!("Incorrect index name '{name}'"))
}

pub(crate) fn duplicate_check(name: &str) -> MySqlError {
    error(3822, format!("Duplicate check constraint name '{name}'."))
}

pub(crate) fn multiple_primary_keys() -> MySqlError {
    error(1068, "Multiple primary key defined".into())
}

pub(crate) fn invisible_primary_key() -> MySqlError {
    error(3522, "A primary key index cannot be invisible".into())
}

pub(crate) fn no_columns() -> MySqlError {
    error(1113, "A table must have at least 1 column".into())
}

pub(crate) fn too_many_columns() -> MySqlError {
    error(1117, "Too many columns".into())
}

pub(crate) fn too_many_indexes(max: usize) -> MySqlError {
    error(1069, format!("Too many keys specified; max {max} keys allowed"))
}

pub(crate) fn too_many_parts(max: usize) -> MySqlError {
    error(1070, format!("Too many key parts specified; max {max} parts allowed"))
}

pub(crate) fn key_too_long(max: usize) -> MySqlError {
    error(1071, format!("Specified key was too long; max key length is {max} bytes"))
}

pub(crate) fn wrong_prefix() -> MySqlError {
    error(
        1089,
        "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the \
         storage engine doesn't support unique prefix keys"
            .into(),
    )
}

pub(crate) fn blob_key_without_length(column: &str) -> MySqlError {
    error(1170, format!("BLOB/TEXT column '{column}' used in key specification without a key length"))
}

pub(crate) fn json_key(column: &str) -> MySqlError {
    error(3152, format!("JSON column '{column}' supports indexing only via generated columns on a specified JSON path."))
}

pub(crate) fn wrong_auto_key() -> MySqlError {
    error(
        1075,
        "Incorrect table definition; there can be only one auto column and it must be defined as a key".into(),
    )
}

pub(crate) fn wrong_auto_column(column: &str) -> MySqlError {
    error(1063, format!("Incorrect column specifier for column '{column}'"))
}

pub(crate) fn cannot_drop(name: &str) -> MySqlError {
    error(1091, format!("Can't DROP '{name}'; check that column/key exists"))
}

pub(crate) fn auto_increment_exhausted() -> MySqlError {
    error(1467, "Failed to read auto-increment value from storage engine".into())
}

pub(crate) fn user_operation(operation: &str, user: &str, host: &str) -> MySqlError {
    error(1396, format!("Operation {operation} failed for '{user}'@'{host}'"))
}

pub(crate) fn name_too_long(name: &str) -> MySqlError {
    error(1059, format!("Identifier name '{name}' is too long"))
}

pub(crate) fn invalid_null() -> MySqlError {
    error(1138, "Invalid use of NULL value".into())
}

pub(crate) fn unknown_partition_column(name: &str) -> MySqlError {
    errors::bad_field_error(name, "partition function")
}

pub(crate) fn no_partition_columns() -> MySqlError {
    MySqlError::with_message(1488, "Field in list of fields for partition function not found in table")
}

pub(crate) fn repeated_list_value() -> MySqlError {
    MySqlError::with_message(1495, "Multiple definition of same constant in list partitioning")
}

/// `value`: as MySQL names it, a number or "from column_list".
pub(crate) fn no_partition(value: &str) -> MySqlError {
    errors::no_partition_for_given_value(value)
}

pub(crate) fn row_outside_partitions() -> MySqlError {
    MySqlError::with_message(1748, "Found a row not matching the given partition set")
}

pub(crate) fn partition_value_out_of_range() -> MySqlError {
    errors::data_out_of_range("BIGINT", "partition function")
}

pub(crate) fn not_partitioned_for_clause() -> MySqlError {
    MySqlError::with_message(1747, "PARTITION () clause on non partitioned table")
}

pub(crate) fn unknown_partition(partition: &str, table: &str) -> MySqlError {
    errors::unknown_partition(partition, table)
}

pub(crate) fn row_of_other_partition() -> MySqlError {
    MySqlError::with_message(1737, "Found a row that does not match the partition")
}

pub(crate) fn different_definitions() -> MySqlError {
    MySqlError::with_message(1736, "Tables have different definitions")
}
