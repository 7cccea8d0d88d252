//! How tables and their indexes are used: table_io_waits_summary_by_table and _by_index_usage of performance_schema. Rows are counted, times are not taken.

use std::sync::Arc;

use highkey_table::{IndexKind, RowUse, RowUses, Table};
use highkey_types::Value;

use super::rows::{all_wanted_tables, t, u};
use crate::plan::Wanted;
use crate::session::SessionState;

/// One row for each table that is not a session's own.
pub(super) fn by_table(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let row = |table: Arc<Table>| {
        let mut row = names(&table);
        row.extend(figures(sum(&table)));
        row
    };
    all_wanted_tables(state, wanted).into_iter().map(row).collect()
}

/// What was done with a table by all its indexes, and by none.
pub(super) fn sum(table: &Table) -> RowUses {
    let all = (0..table.indexes().len()).map(Some).chain([None]);
    all.filter_map(|index| table.uses(index)).fold(RowUses::default(), |sum, uses| std::array::from_fn(|i| sum[i] + uses[i]))
}

/// One row for each index of these tables, and one without a name for what was done by none, once there was such.
pub(super) fn by_index(state: &SessionState, wanted: &Wanted) -> Vec<Vec<Value>> {
    let mut rows = Vec::new();
    for table in all_wanted_tables(state, wanted) {
        let mut push = |index: Value, uses: RowUses| {
            let mut row = names(&table);
            row.push(index);
            row.extend(figures(uses));
            rows.push(row);
        };
        for (at, index) in table.indexes().iter().enumerate().filter(|(_, index)| index.kind != IndexKind::RowId) {
            push(t(&index.name), table.uses(Some(at)).unwrap_or_default());
        }
        // The hidden row ids are no index that anybody has made.
        let hidden = table.indexes().iter().position(|index| index.kind == IndexKind::RowId).and_then(|at| table.uses(Some(at)));
        let by_none = table.uses(None);
        if by_none.is_some() || hidden.is_some() {
            let (by_none, hidden) = (by_none.unwrap_or_default(), hidden.unwrap_or_default());
            push(Value::Null, std::array::from_fn(|i| by_none[i] + hidden[i]));
        }
    }
    rows
}

/// All tables count from 0 again.
pub(super) fn clear(state: &SessionState) {
    all_wanted_tables(state, &Wanted::default()).iter().for_each(|table| table.clear_uses());
}

fn names(table: &Table) -> Vec<Value> {
    let def = table.def();
    vec![t("TABLE"), t(&def.schema), t(&def.name)]
}

/// Each count with its four times: of all, of reads, of writes, and of each kind.
fn figures(uses: RowUses) -> Vec<Value> {
    let [fetch, insert, update, delete] = [RowUse::Fetch, RowUse::Insert, RowUse::Update, RowUse::Delete].map(|what| uses[what as usize]);
    let write = insert + update + delete;
    [fetch + write, fetch, write, fetch, insert, update, delete].into_iter().flat_map(|count| [u(count), u(0_u64), u(0_u64), u(0_u64), u(0_u64)]).collect()
}
