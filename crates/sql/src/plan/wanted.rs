//! Which tables a query on information_schema asks about.

use highkey_types::Collation;

use super::{CompareBy, CompareOp, Expr, ExprKind, VirtualTable};
use crate::expr::{EvalContext, eval};

/// A name and the collation it is compared by.
type Name = (String, &'static Collation);

/// What `TABLE_SCHEMA = 'd' AND TABLE_NAME = 't'` leaves: rows about other tables need not be made. The conditions are checked again
/// on the rows, so this may keep too much.
#[derive(Debug, Default)]
pub struct Wanted {
    schema: Option<Name>,
    table: Option<Name>,
}

impl Wanted {
    /// From conditions over the virtual table's row.
    pub fn of(table: &VirtualTable, conditions: &[Expr], cx: &mut dyn EvalContext) -> Wanted {
        let mut name = |column: &str| {
            let position = table.columns.iter().position(|(name, ..)| name.eq_ignore_ascii_case(column))?;
            conditions.iter().find_map(|condition| equal_text(condition, position, cx))
        };
        // mysql's statistics call it a database, performance_schema any table an object.
        let schema = name("TABLE_SCHEMA").or_else(|| name("DATABASE_NAME")).or_else(|| name("OBJECT_SCHEMA"));
        Wanted { schema, table: name("TABLE_NAME").or_else(|| name("OBJECT_NAME")) }
    }

    /// A table of this schema may be asked about.
    pub fn schema(&self, name: &str) -> bool {
        matches(&self.schema, name)
    }

    /// A table of this name may be asked about.
    pub fn table(&self, name: &str) -> bool {
        matches(&self.table, name)
    }
}

fn matches(wanted: &Option<Name>, name: &str) -> bool {
    wanted.as_ref().is_none_or(|(wanted, by)| Collation::eq(by, wanted.as_bytes(), name.as_bytes()))
}

/// The text that `condition` demands of a column.
fn equal_text(condition: &Expr, column: usize, cx: &mut dyn EvalContext) -> Option<Name> {
    let ExprKind::Compare { op: CompareOp::Eq, by: CompareBy::Text(collation), left, right } = &condition.kind else { return None };
    let value = match (left.as_column(), right.as_column()) {
        (Some(c), None) if c == column => right,
        (None, Some(c)) if c == column => left,
        _ => return None,
    };
    if !value.is_known() {
        return None;
    }
    // An error is the query's to report when it compares.
    let value = eval(value, &[], cx).ok()?;
    Some((value.as_str()?.to_owned(), collation))
}
