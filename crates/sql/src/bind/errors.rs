//! Errors of binding, with MySQL's numbers and words.

use highkey_types::{Collation, MySqlError};

use crate::plan::Coercibility;

fn error(code: u16, message: String) -> MySqlError {
    MySqlError::with_message(code, message)
}

pub(super) fn unknown_column(name: &str, clause: &str) -> MySqlError {
    error(1054, format!("Unknown column '{name}' in '{clause}'"))
}

pub(super) fn ambiguous_column(name: &str, clause: &str) -> MySqlError {
    error(1052, format!("Column '{name}' in {clause} is ambiguous"))
}

pub(super) fn unknown_table(name: &str) -> MySqlError {
    error(1051, format!("Unknown table '{name}'"))
}

pub(super) fn no_database() -> MySqlError {
    error(1046, "No database selected".into())
}

pub(super) fn duplicate_alias(name: &str) -> MySqlError {
    error(1066, format!("Not unique table/alias: '{name}'"))
}

pub(super) fn duplicate_column(name: &str) -> MySqlError {
    error(1060, format!("Duplicate column name '{name}'"))
}

pub(crate) fn blobs_and_no_terminator() -> MySqlError {
    error(1084, "You can't use fixed rowlength with BLOBs; please use 'fields terminated by'".into())
}

pub(super) fn fixed_rows_to_variable() -> MySqlError {
    error(1409, "Can't load value from file with fixed size rows to variable".into())
}

pub(super) fn operand_columns(expected: usize) -> MySqlError {
    error(1241, format!("Operand should contain {expected} column(s)"))
}

pub(super) fn aggregate_over_union(position: usize) -> MySqlError {
    error(3028, format!("Expression #{position} of ORDER BY contains aggregate function and applies to a UNION"))
}

pub(super) fn aggregate_orders_rows(position: usize) -> MySqlError {
    error(3029, format!("Expression #{position} of ORDER BY contains aggregate function and applies to the result of a non-aggregated query"))
}

pub(super) fn invalid_group_use() -> MySqlError {
    error(1111, "Invalid use of group function".into())
}

pub(super) fn wrong_arguments(function: &str) -> MySqlError {
    error(1210, format!("Incorrect arguments to {function}"))
}

pub(super) fn parameter_count(function: &str) -> MySqlError {
    error(1582, format!("Incorrect parameter count in the call to native function '{function}'"))
}

pub(super) fn unknown_function(schema: &str, function: &str) -> MySqlError {
    error(1305, format!("FUNCTION {schema}.{function} does not exist"))
}

pub(super) fn unknown_charset(name: &str) -> MySqlError {
    error(1115, format!("Unknown character set: '{name}'"))
}

pub(super) fn unknown_collation(name: &str) -> MySqlError {
    error(1273, format!("Unknown collation: '{name}'"))
}

pub(super) fn collation_mismatch(collation: &str, charset: &str) -> MySqlError {
    error(1253, format!("COLLATION '{collation}' is not valid for CHARACTER SET '{charset}'"))
}

pub(super) fn column_count() -> MySqlError {
    error(1222, "The used SELECT statements have a different number of columns".into())
}

pub(super) fn not_grouped(position: usize, place: &str, column: &str) -> MySqlError {
    error(
        1055,
        format!(
            "Expression #{position} of {place} is not in GROUP BY clause and contains nonaggregated column '{column}' which is not functionally dependent on columns in GROUP BY clause; this is incompatible with sql_mode=only_full_group_by"
        ),
    )
}

pub(super) fn mixed_without_group(position: usize, column: &str) -> MySqlError {
    error(
        1140,
        format!(
            "In aggregated query without GROUP BY, expression #{position} of SELECT list contains nonaggregated column '{column}'; this is incompatible with sql_mode=only_full_group_by"
        ),
    )
}

pub(super) fn order_not_selected(position: usize, column: &str) -> MySqlError {
    error(
        3065,
        format!(
            "Expression #{position} of ORDER BY clause is not in SELECT list, references column '{column}' which is not in SELECT list; this is incompatible with DISTINCT"
        ),
    )
}

pub(super) fn order_aggregate_not_selected(position: usize) -> MySqlError {
    error(
        3066,
        format!("Expression #{position} of ORDER BY clause is not in SELECT list, contains aggregate function; this is incompatible with DISTINCT"),
    )
}

fn derivation(c: Coercibility) -> &'static str {
    match c {
        Coercibility::Explicit => "EXPLICIT",
        Coercibility::NoCollation => "NONE",
        Coercibility::Implicit => "IMPLICIT",
        Coercibility::SystemConstant => "SYSCONST",
        Coercibility::Coercible => "COERCIBLE",
        Coercibility::Numeric => "NUMERIC",
        Coercibility::Ignorable => "IGNORABLE",
    }
}

/// 1267, 1270 or 1271, by the number of operands.
pub(super) fn illegal_mix(operands: &[(&'static Collation, Coercibility)], operation: &str) -> MySqlError {
    let list = |items: &[(&'static Collation, Coercibility)], joiner: &str| {
        let shown: Vec<_> = items.iter().map(|(c, d)| format!("({},{})", c.name, derivation(*d))).collect();
        shown.join(joiner)
    };
    match operands.len() {
        2 => error(1267, format!("Illegal mix of collations {} for operation '{operation}'", list(operands, " and "))),
        3 => error(1270, format!("Illegal mix of collations {} for operation '{operation}'", list(operands, ", "))),
        _ => error(1271, format!("Illegal mix of collations for operation '{operation}'")),
    }
}
