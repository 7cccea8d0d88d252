//! What indexes hold and what their trees counted: HIGHKEY_INDEX_LEVELS and HIGHKEY_INDEX_STATISTICS.

use std::sync::Arc;

use highkey_table::{Isolation, LevelReport, PAGE_BYTES, Table, Transaction};
use highkey_types::{Decimal, MySqlError, Value, Warning};

use super::rows::{t, u, wanted_tables};
use crate::plan::Wanted;
use crate::session::error::warning;
use crate::session::{Interruption, SessionState, blocking};

pub(super) type Rows = Result<Vec<Vec<Value>>, MySqlError>;

/// One row per index and level, leaves first. Reads all pages of the indexes asked about, a page at a time; KILL ends it.
pub(super) fn levels(state: &SessionState, wanted: &Wanted, warnings: &mut Vec<Warning>) -> Rows {
    let stop = || state.process.interruption() != Interruption::None;
    each_open(state, wanted_tables(state, wanted), warnings, |table, _, rows| {
        for (name, table) in table.stored_tables() {
            let def = table.def();
            for (i, index) in def.indexes.iter().enumerate() {
                let levels = blocking(|| table.index_levels(i, &stop));
                for level in levels.map_err(|e| state.process.check().err().unwrap_or(e))? {
                    let mut row = vec![t(&def.schema), t(&name), t(&index.name), u(index.id.0)];
                    row.extend(level_cells(&level));
                    rows.push(row);
                }
            }
        }
        Ok(())
    })
}

fn level_cells(level: &LevelReport) -> [Value; 9] {
    // Two digits behind the point.
    let fill = level.data_bytes * 10_000 / (level.pages.max(1) * PAGE_BYTES);
    [
        u(level.level),
        u(level.pages),
        u(level.records),
        u(level.data_bytes),
        u(level.used_bytes),
        Value::Decimal(Decimal::from_i128(i128::from(fill), 2)),
        u(level.incomplete_splits),
        u(level.overflow_pages),
        u(level.overflow_bytes),
    ]
}

/// One row per index: estimates, pages and the tree's counters. Reads a few pages of each index.
pub(super) fn statistics(state: &SessionState, wanted: &Wanted, warnings: &mut Vec<Warning>) -> Rows {
    each_open(state, wanted_tables(state, wanted), warnings, |table, txn, rows| {
        state.process.check()?;
        let statistics = table.statistics(txn)?;
        for (name, table) in table.stored_tables() {
            let def = table.def();
            for (i, index) in def.indexes.iter().enumerate() {
                let summary = table.index_summary(&statistics, i)?;
                let mut row = vec![t(&def.schema), t(&name), t(&index.name), u(def.id.0), u(index.id.0), u(summary.root_page)];
                row.extend([summary.key_values, summary.leaf_pages, summary.size_pages, summary.used_pages].map(u));
                row.extend(summary.counters.all().into_iter().map(|(_, count)| u(count)));
                rows.push(row);
            }
        }
        Ok(())
    })
}

/// Calls `f` with each table asked about, held open meanwhile. A table that DDL has is left out with warning 1684, as in MySQL: waiting
/// for it could be waiting for a statement that waits for this session.
pub(super) fn each_open(
    state: &SessionState,
    tables: Vec<Arc<Table>>,
    warnings: &mut Vec<Warning>,
    f: impl Fn(&Arc<Table>, &mut Transaction, &mut Vec<Vec<Value>>) -> Result<(), MySqlError>,
) -> Rows {
    let database = state.instance.database();
    let mut rows = Vec::new();
    for mut table in tables {
        let mut txn = database.begin_in(Isolation::ReadCommitted, &state.locks);
        let (schema, name) = (table.def().schema.clone(), table.def().name.clone());
        loop {
            if txn.try_open(&table) {
                f(&table, &mut txn, &mut rows)?;
                break;
            }
            if table.is_current() {
                let message = format!("Table '{schema}'.'{name}' was skipped since its definition is being modified by concurrent DDL statement");
                warnings.push(warning(1684, message));
                break;
            }
            // Altered or dropped since the catalog was read.
            match database.catalog().find_table(&schema, &name) {
                Some(now) => table = now,
                None => break,
            }
        }
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use highkey_table::TreeCounters;

    #[test]
    fn a_column_for_every_counter_in_order() {
        let table = super::super::find("information_schema", "highkey_index_statistics").unwrap();
        let columns: Vec<String> = table.columns.iter().skip(10).map(|(name, ..)| name.to_lowercase()).collect();
        let counters: Vec<&str> = TreeCounters::default().all().into_iter().map(|(name, _)| name).collect();
        assert_eq!(columns, counters);
    }
}
