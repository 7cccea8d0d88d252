//! One index's statistics and their text.

use std::fmt;

use highkey_table::{LevelReport, PAGE_BYTES};

/// What is printed of one index.
pub struct IndexReport {
    pub schema: String,
    pub table: String,
    pub index: String,
    /// All tables share one page space here, so this is the table's number: constant over rebuilds, never reused.
    pub space_id: u64,
    pub index_id: u64,
    pub root_page: u64,
    /// Distinct keys and leaf pages as the dictionary estimates them.
    pub key_values: u64,
    pub leaf_pages: u64,
    /// Pages that the index owns, in use or not.
    pub size_pages: u64,
    /// Leaves first.
    pub levels: Vec<LevelReport>,
}

impl IndexReport {
    /// By table, the clustered index first, the others by age.
    pub fn order(&self) -> (String, String, bool, u64) {
        let clustered = ["PRIMARY", "GEN_CLUST_INDEX"].contains(&self.index.as_str());
        (self.schema.clone(), self.table.clone(), !clustered, self.index_id)
    }
}

impl fmt::Display for IndexReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "table: {}/{}, index: {}, space id: {}, root page: {}",
            self.schema, self.table, self.index, self.space_id, self.root_page
        )?;
        writeln!(f, "estimated statistics in dictionary:")?;
        writeln!(f, "key vals: {}, leaf pages: {}, size pages: {}", self.key_values, self.leaf_pages, self.size_pages)?;
        writeln!(f, "real statistics:")?;
        for level in self.levels.iter().rev() {
            match level.level {
                0 => write!(f, "leaf pages: recs={}, ", level.records)?,
                n => write!(f, "level {n} pages: ")?,
            }
            pages(f, level.pages, level.data_bytes)?;
        }
        // Values too long for a leaf: xtrabackup's name for them.
        if let Some(leaves) = self.levels.first().filter(|leaves| leaves.overflow_pages > 0) {
            write!(f, "external pages: ")?;
            pages(f, leaves.overflow_pages, leaves.overflow_bytes)?;
        }
        Ok(())
    }
}

/// The percentage is cut, not rounded, as xtrabackup's is.
fn pages(f: &mut fmt::Formatter<'_>, pages: u64, bytes: u64) -> fmt::Result {
    writeln!(f, "pages={pages}, data={bytes} bytes, data/pages={}%", bytes * 100 / (pages.max(1) * PAGE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The figures of source 003.
    fn sbtest_order() -> IndexReport {
        let level = |level, pages, records, data_bytes| LevelReport { level, pages, records, data_bytes, ..LevelReport::default() };
        IndexReport {
            schema: "sbtest".into(),
            table: "sbtest_order".into(),
            index: "PRIMARY".into(),
            space_id: 11,
            index_id: 11,
            root_page: 3,
            key_values: 8_000_079,
            leaf_pages: 109_590,
            size_pages: 109_696,
            levels: vec![level(0, 109_590, 8_000_000, 1_664_000_000), level(1, 92, 109_590, 1_424_670), level(2, 1, 92, 1_196)],
        }
    }

    #[test]
    fn as_xtrabackup_prints_it() {
        let expected = "\
table: sbtest/sbtest_order, index: PRIMARY, space id: 11, root page: 3
estimated statistics in dictionary:
key vals: 8000079, leaf pages: 109590, size pages: 109696
real statistics:
level 2 pages: pages=1, data=1196 bytes, data/pages=7%
level 1 pages: pages=92, data=1424670 bytes, data/pages=94%
leaf pages: recs=8000000, pages=109590, data=1664000000 bytes, data/pages=92%
";
        assert_eq!(sbtest_order().to_string(), expected);
    }

    #[test]
    fn long_values_are_external_pages() {
        let mut report = sbtest_order();
        report.levels.truncate(1);
        report.levels[0].overflow_pages = 10;
        report.levels[0].overflow_bytes = 100_000;
        let text = report.to_string();
        let lines: Vec<&str> = text.lines().skip(3).collect();
        assert_eq!(
            lines,
            [
                "real statistics:",
                "leaf pages: recs=8000000, pages=109590, data=1664000000 bytes, data/pages=92%",
                "external pages: pages=10, data=100000 bytes, data/pages=61%",
            ]
        );
    }

    #[test]
    fn clustered_first_then_by_age() {
        let named = |index: &str, index_id| IndexReport { index: index.into(), index_id, ..sbtest_order() };
        let mut reports = [named("b", 30), named("a", 40), named("GEN_CLUST_INDEX", 50)];
        reports.sort_by_key(IndexReport::order);
        assert_eq!(reports.map(|r| r.index), ["GEN_CLUST_INDEX", "b", "a"]);
    }
}
