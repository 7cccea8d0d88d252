//! Scans of plans that are kept without some constants: their ranges are made of the constants of each execution.

use datafusion::common::Result;

use super::BaseTable;
use crate::df::context::Shared;
use crate::df::lower::rows_found;
use crate::expr::EvalContext;
use crate::plan::{Expr, index_access, key_ranges, selectivity_by_indexes};

/// What is asked of the rows of a table, with parameters.
#[derive(Debug)]
pub(in crate::df) struct OpenConditions {
    /// Over a row whose field i is table column `columns[i]`.
    conditions: Vec<Expr>,
    columns: Vec<usize>,
    /// About how many rows satisfied them when the plan was made.
    rows: f64,
}

/// A plan for fewer rows serves for so many more, and for this part of them; or for any number up to this one, which are read in less time than a plan is made.
const FAR: f64 = 10.0;
const NEAR_ROWS: f64 = 10_000.0;

impl OpenConditions {
    /// `rows`: how many satisfy them now, or about.
    pub fn new(conditions: Vec<Expr>, columns: Vec<usize>, rows: f64) -> OpenConditions {
        OpenConditions { conditions, columns, rows }
    }

    /// Makes the ranges of `source` those of this execution. False if another plan is the better one, or planning would warn.
    pub fn set_ranges(&self, source: &mut BaseTable) -> Result<bool> {
        let shared = source.owner.shared()?;
        let Some(filter) = self.now(&shared) else { return Ok(false) };
        let mut cx = shared.unheard();
        if is_far(self.rows, rows_of(&filter, source, &self.columns, &mut *cx)) {
            return Ok(false);
        }
        if source.access.rows.is_none() {
            return Ok(true);
        }
        let (table, def) = (&source.table, source.table.def());
        let Some(found) = index_access(&filter, def, &self.columns, source.access.index) else { return Ok(false) };
        let rows = rows_found(&found, &filter, table, &self.columns, &mut *cx);
        // Nobody hears what estimates warn of.
        let mut cx = shared.unheard();
        let Ok(ranges) = key_ranges(&found, def, &mut *cx) else { return Ok(false) };
        let warned = !cx.take_raised().is_empty();
        (source.access.ranges, source.access.rows) = (ranges, Some(rows as u64));
        Ok(!warned)
    }

    /// All of them, with the constants that parameters stand for now.
    fn now(&self, shared: &Shared) -> Option<Expr> {
        Expr::and(self.conditions.iter().map(|condition| shared.parameters.put_into(condition)))
    }
}

/// About how many rows of the table satisfy a condition.
fn rows_of(filter: &Expr, source: &BaseTable, columns: &[usize], cx: &mut dyn EvalContext) -> f64 {
    source.table_rows() as f64 * selectivity_by_indexes(filter, &source.table, columns, cx)
}

/// One of them is many rows, and more than a plan for the other serves for.
fn is_far(a: f64, b: f64) -> bool {
    let (less, more) = if a < b { (a, b) } else { (b, a) };
    more > (less * FAR).max(NEAR_ROWS)
}

#[cfg(test)]
mod tests {
    use super::is_far;

    #[test]
    fn few_rows_are_near_each_other() {
        for (a, b, far) in [(0.0, 10_000.0, false), (0.0, 10_001.0, true), (5000.0, 50_000.0, false), (5000.0, 50_001.0, true), (1e6, 1e7, false), (1e5, 1e7, true)] {
            assert_eq!((is_far(a, b), is_far(b, a)), (far, far), "{a} and {b}");
        }
    }
}
