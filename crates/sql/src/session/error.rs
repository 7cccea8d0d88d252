//! The errors that statements raise, worded as MySQL words them. Codes and SQLSTATEs come from `highkey_types::errors`.

use highkey_types::{Level, MySqlError, Warning};

/// Any error by code with its message.
pub fn err(code: u16, message: impl Into<String>) -> MySqlError {
    MySqlError::with_message(code, message)
}

/// A condition of level Warning.
pub fn warning(code: u16, message: impl Into<String>) -> Warning {
    Warning { level: Level::Warning, code, message: message.into() }
}

/// A bug of ours that must not pass for an answer.
pub fn internal(what: &str) -> MySqlError {
    err(1815, format!("Internal error: {what} was left in a bound plan"))
}

macro_rules! errors {
    ($($(#[$doc:meta])* $code:literal $name:ident($($arg:ident),*) $text:literal;)*) => {
        $($(#[$doc])* pub fn $name($($arg: &str),*) -> MySqlError { err($code, format!($text)) })*
    };
}

errors! {
    1046 no_db() "No database selected";
    1049 bad_db(name) "Unknown database '{name}'";
    1050 table_exists(name) "Table '{name}' already exists";
    1054 bad_field(name, place) "Unknown column '{name}' in '{place}'";
    1059 too_long_ident(name) "Identifier name '{name}' is too long";
    1060 dup_fieldname(name) "Duplicate column name '{name}'";
    1061 dup_keyname(name) "Duplicate key name '{name}'";
    1063 wrong_field_spec(name) "Incorrect column specifier for column '{name}'";
    1065 empty_query() "Query was empty";
    1067 invalid_default(name) "Invalid default value for '{name}'";
    1068 multiple_pri_key() "Multiple primary key defined";
    1070 too_many_key_parts() "Too many key parts specified; max 16 parts allowed";
    1071 too_long_key() "Specified key was too long; max key length is 3072 bytes";
    1072 key_column_missing(name) "Key column '{name}' doesn't exist in table";
    1075 wrong_auto_key() "Incorrect table definition; there can be only one auto column and it must be defined as a key";
    1086 file_exists(name) "File '{name}' already exists";
    1089 wrong_sub_key() "Incorrect prefix key; the used key part isn't a string, the used length is longer than the key part, or the storage engine doesn't support unique prefix keys";
    1090 cant_remove_all_fields() "You can't delete all columns with ALTER TABLE; use DROP TABLE instead";
    1091 cant_drop_field_or_key(name) "Can't DROP '{name}'; check that column/key exists";
    1101 blob_cant_have_default(name) "BLOB, TEXT, GEOMETRY or JSON column '{name}' can't have a default value";
    1102 wrong_db_name(name) "Incorrect database name '{name}'";
    1103 wrong_table_name(name) "Incorrect table name '{name}'";
    1113 must_have_columns() "A table must have at least one column";
    1115 unknown_character_set(name) "Unknown character set: '{name}'";
    1117 too_many_fields() "Too many columns";
    1146 no_such_table(name) "Table '{name}' doesn't exist";
    1148 not_allowed_command() "The used command is not allowed with this MySQL version";
    1166 wrong_column_name(name) "Incorrect column name '{name}'";
    1170 blob_key_without_length(name) "BLOB/TEXT column '{name}' used in key specification without a key length";
    1171 primary_cant_have_null() "All parts of a PRIMARY KEY must be NOT NULL; if you need NULL in a key, use UNIQUE instead";
    1172 too_many_rows() "Result consisted of more than one row";
    1193 unknown_system_variable(name) "Unknown system variable '{name}'";
    1210 wrong_arguments(name) "Incorrect arguments to {name}";
    1222 wrong_number_of_columns_in_select() "The used SELECT statements have a different number of columns";
    1228 local_variable(name) "Variable '{name}' is a SESSION variable and can't be used with SET GLOBAL";
    1229 global_variable(name) "Variable '{name}' is a GLOBAL variable and should be set with SET GLOBAL";
    1231 wrong_value_for_var(name, value) "Variable '{name}' can't be set to the value of '{value}'";
    1232 wrong_type_for_var(name) "Incorrect argument type to variable '{name}'";
    1235 not_supported(what) "This version of MySQL doesn't yet support '{what}'";
    1238 read_only_variable(name) "Variable '{name}' is a read only variable";
    1243 unknown_stmt_handler(name, statement) "Unknown prepared statement handler ({name}) given to {statement}";
    1253 collation_charset_mismatch(collation, charset) "COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'";
    1273 unknown_collation(name) "Unknown collation: '{name}'";
    1280 wrong_name_for_index(name) "Incorrect index name '{name}'";
    1286 unknown_engine(name) "Unknown storage engine '{name}'";
    1290 option_prevents(option) "The MySQL server is running with the {option} option so it cannot execute this statement";
    1298 unknown_time_zone(name) "Unknown or incorrect time zone: '{name}'";
    1305 savepoint_missing(name) "SAVEPOINT {name} does not exist";
    1295 unsupported_ps() "This command is not supported in the prepared statement protocol yet";
    1364 no_default_for_field(name) "Field '{name}' doesn't have a default value";
    1396 cannot_user(operation, users) "Operation {operation} failed for {users}";
    1524 plugin_not_loaded(name) "Plugin '{name}' is not loaded";
    1568 transaction_in_progress() "Transaction characteristics can't be changed while a transaction is in progress";
    1792 read_only_transaction() "Cannot execute statement in a READ ONLY transaction.";
    3105 generated_not_allowed(column, table) "The value specified for generated column '{column}' in table '{table}' is not allowed.";
    3024 query_timeout() "Query execution was interrupted, maximum statement execution time exceeded";
    3750 primary_key_required() "Unable to create or change a table without a primary key, when the system variable 'sql_require_primary_key' is set. Add a primary key to the table or unset this variable to avoid this message. Note that tables without a primary key can cause performance problems in row-based replication, so please consult your DBA before changing this setting.";
    3819 check_violated(name) "Check constraint '{name}' is violated.";
    3821 check_missing(name) "Check constraint '{name}' is not found in the table.";
    3822 check_dup_name(name) "Duplicate check constraint name '{name}'.";
    4028 must_have_visible_column() "A table must have at least one visible column.";
}
