//! Statistics of a stopped data directory.

use std::path::Path;
use std::sync::Arc;

use highkey_sql::Settings;
use highkey_table::{BinlogOptions, Database, Isolation, Table};

use super::report::IndexReport;
use crate::listen::engine_options;

/// Opens the directory as the server would, reads, and closes it cleanly. Opening after a crash recovers first; nothing else changes: what the binary log's files
/// lack after the crash the server's next start writes.
pub fn read(datadir: &Path, wanted: &dyn Fn(&str, &str) -> bool) -> Result<Vec<IndexReport>, String> {
    let shown = datadir.display();
    if !datadir.is_dir() {
        return Err(format!("{shown} is not a directory"));
    }
    if !Database::exists(datadir).map_err(|e| format!("cannot open {shown}: {e}"))? {
        return Err(format!("{shown} is not a data directory of Highkey"));
    }
    let binlog = BinlogOptions { untouched: true, ..BinlogOptions::default() };
    let database = Database::open_with(datadir, engine_options(&Settings::default()), binlog).map_err(|e| format!("cannot open {shown}: {e}"))?;
    let mut reports = Vec::new();
    for table in database.catalog().all_tables() {
        if wanted(&table.def().schema, &table.def().name) {
            table_reports(&database, &table, &mut reports)?;
        }
    }
    database.shutdown().map_err(|e| format!("cannot close {shown}: {e}"))?;
    Ok(reports)
}

fn table_reports(database: &Arc<Database>, table: &Arc<Table>, reports: &mut Vec<IndexReport>) -> Result<(), String> {
    let def = table.def();
    let fail = |e: highkey_types::MySqlError| format!("{}.{}: {}", def.schema, def.name, e.message);
    let mut txn = database.begin(Isolation::ReadCommitted);
    let statistics = table.statistics_unkept(&mut txn).map_err(fail)?;
    for (name, stored) in table.stored_tables() {
        for (i, index) in stored.def().indexes.iter().enumerate() {
            let summary = stored.index_summary(&statistics, i).map_err(fail)?;
            reports.push(IndexReport {
                schema: def.schema.to_string(),
                table: name.clone(),
                index: index.name.to_string(),
                space_id: def.id.0,
                index_id: index.id.0.into(),
                root_page: summary.root_page,
                key_values: summary.key_values,
                leaf_pages: summary.leaf_pages,
                size_pages: summary.size_pages,
                levels: stored.index_levels(i, &|| false).map_err(fail)?,
            });
        }
    }
    Ok(())
}
