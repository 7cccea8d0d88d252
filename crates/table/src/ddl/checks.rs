//! Names of CHECKs: each once in a schema, and made of the table's name where none was given.

use highkey_types::MySqlError;

use crate::catalog::Catalog;
use crate::def::{CheckDef, TableDef, TableId, same_name};
use crate::error;

/// CHECKs that are named after a table take its new name, as in MySQL whoever has named them so.
pub fn rename_checks(checks: &mut [CheckDef], old: &str, new: &str) {
    let prefix = format!("{old}_chk_");
    for check in checks {
        if let Some(rest) = check.name.strip_prefix(prefix.as_str()) {
            check.name = format!("{new}_chk_{rest}").into();
        }
    }
}

/// Error 3822 for a CHECK of `def` that has the name of another one, there or in another table of the schema. What a table has had `before` it keeps;
/// tables that are `leaving` their names are asked under the new ones.
pub(crate) fn check_names(catalog: &Catalog, def: &TableDef, before: Option<&TableDef>, leaving: &[TableId]) -> Result<(), MySqlError> {
    if def.checks.is_empty() {
        return Ok(());
    }
    let had = |name: &str| before.is_some_and(|was| was.schema == def.schema && was.checks.iter().any(|check| *check.name == *name));
    let mut others = catalog.tables(&def.schema);
    others.retain(|table| table.def.id != def.id && !leaving.contains(&table.def.id));
    for (at, check) in def.checks.iter().enumerate() {
        let again = def.checks[..at].iter().any(|other| same_name(&other.name, &check.name));
        if again || (!had(&check.name) && others.iter().any(|table| table.def.checks.iter().any(|other| other.name == check.name))) {
            return Err(error::duplicate_check(&check.name));
        }
    }
    Ok(())
}

/// The same among tables that get other names together.
pub(crate) fn check_names_among<'d>(defs: impl Iterator<Item = &'d TableDef> + Clone) -> Result<(), MySqlError> {
    for (at, def) in defs.clone().enumerate() {
        for check in &def.checks {
            let has = |other: &TableDef| other.schema == def.schema && other.checks.iter().any(|taken| taken.name == check.name);
            if defs.clone().take(at).any(has) {
                return Err(error::duplicate_check(&check.name));
            }
        }
    }
    Ok(())
}
