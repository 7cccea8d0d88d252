//! Statistics of a running server, from its information_schema.

use highkey_table::LevelReport;
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, OptsBuilder};

use super::report::IndexReport;

const INDEXES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME, INDEX_NAME, TABLE_ID, INDEX_ID, ROOT_PAGE, KEY_VALUES, LEAF_PAGES, SIZE_PAGES \
    FROM information_schema.HIGHKEY_INDEX_STATISTICS";

/// One table's levels at a time: the server reads no page of a table that is not wanted.
const LEVELS: &str = "SELECT LEVEL, PAGES, RECORDS, DATA_BYTES, USED_BYTES, INCOMPLETE_SPLITS, OVERFLOW_PAGES, OVERFLOW_BYTES, INDEX_ID \
    FROM information_schema.HIGHKEY_INDEX_LEVELS WHERE TABLE_SCHEMA = ? AND TABLE_NAME = ? ORDER BY INDEX_ID, LEVEL";

/// MySQL's numbers for a table that information_schema does not have.
const NO_SUCH_TABLE: [u16; 2] = [1109, 1146];

/// Asks the server at `url`, as root without a password unless the URL says otherwise.
pub fn read(url: &str, wanted: &dyn Fn(&str, &str) -> bool) -> Result<Vec<IndexReport>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(ask(url, wanted))
}

async fn ask(url: &str, wanted: &dyn Fn(&str, &str) -> bool) -> Result<Vec<IndexReport>, String> {
    let opts = Opts::from_url(url).map_err(|e| format!("--url: {e}"))?;
    let user = opts.user().unwrap_or("root").to_string();
    // Through the URL's host and port: a local socket of the same machine may be another server's.
    let opts = OptsBuilder::from_opts(opts).user(Some(user)).prefer_socket(false);
    let mut connection = Conn::new(opts).await.map_err(|e| format!("cannot connect: {e}"))?;
    let indexes: Vec<(String, String, String, u64, u64, u64, u64, u64, u64)> = connection.query(INDEXES).await.map_err(refused)?;
    let mut reports: Vec<IndexReport> = Vec::new();
    for (schema, table, index, space_id, index_id, root_page, key_values, leaf_pages, size_pages) in indexes {
        if wanted(&schema, &table) {
            let levels = Vec::new();
            reports.push(IndexReport { schema, table, index, space_id, index_id, root_page, key_values, leaf_pages, size_pages, levels });
        }
    }
    for indexes in reports.chunk_by_mut(|a, b| (&a.schema, &a.table) == (&b.schema, &b.table)) {
        let name = (indexes[0].schema.clone(), indexes[0].table.clone());
        let levels: Vec<(u8, u64, u64, u64, u64, u64, u64, u64, u64)> = connection.exec(LEVELS, name).await.map_err(refused)?;
        for (level, pages, records, data_bytes, used_bytes, incomplete_splits, overflow_pages, overflow_bytes, index_id) in levels {
            let report = LevelReport { level, pages, records, data_bytes, used_bytes, incomplete_splits, overflow_pages, overflow_bytes };
            if let Some(index) = indexes.iter_mut().find(|index| index.index_id == index_id) {
                index.levels.push(report);
            }
        }
    }
    let _ = connection.disconnect().await;
    reports.retain(|index| {
        let there = !index.levels.is_empty();
        if !there {
            eprintln!("highkey stats: {}.{}: {} was changed or dropped meanwhile", index.schema, index.table, index.index);
        }
        there
    });
    Ok(reports)
}

fn refused(error: mysql_async::Error) -> String {
    match error {
        mysql_async::Error::Server(e) if NO_SUCH_TABLE.contains(&e.code) => "the server is not Highkey: it has no index statistics".into(),
        error => error.to_string(),
    }
}
