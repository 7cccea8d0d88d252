//! Which partitions of a table a condition leaves.

use std::sync::Arc;

use highkey_table::{IndexDef, IndexKind, IndexPart, Table, WordRules};
use highkey_types::MySqlError;

use super::{Expr, ExprKind, index_access, key_ranges};
use crate::expr::EvalContext;

/// The table without the partitions in which no row satisfies the condition, which is over a row whose field i is table column `columns[i]`: the ranges are
/// those of an index over the columns that decide. The table itself if it has no partitions, or nothing is known of them.
pub fn pruned(table: &Arc<Table>, filter: &Expr, columns: &[usize], cx: &mut dyn EvalContext) -> Result<Arc<Table>, MySqlError> {
    if table.partitioned_by().is_empty() {
        return Ok(table.clone());
    }
    let mut def = (**table.def()).clone();
    let index = def.indexes.len();
    let parts = table.partitioned_by().iter().map(|column| IndexPart::column(*column)).collect();
    def.indexes.push(IndexDef { id: def.indexes[0].id, name: "".into(), kind: IndexKind::Ordinary, parts, invisible: false, generated: false, comment: "".into(), words: WordRules::usual() });
    match index_access(filter, &def, columns, index) {
        Some(found) if found.bounds().all(is_fixed) => Ok(table.with_ranges(&key_ranges(&found, &def, cx)?)),
        _ => Ok(table.clone()),
    }
}

/// The same for all rows, those around the query too.
pub fn is_fixed(expr: &Expr) -> bool {
    let mut fixed = true;
    expr.walk(&mut |e| fixed &= !matches!(e.kind, ExprKind::Column(_) | ExprKind::Outer { .. }));
    fixed
}
