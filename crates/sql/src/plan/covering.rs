//! Indexes whose entries are read in place of a table's rows.

use highkey_table::{IndexKind, Table};

use super::IndexChoice;

/// Pages of a table from which on it is worth a look at its indexes: 1 MiB.
const LEAST_PAGES: u64 = 64;

/// The table has so many times the pages of the index: what is read of an index is decoded each time, and stays in memory less often than rows that others
/// read, too.
const FEWER: u64 = 2;

/// The index with the fewest pages, for whoever counts rows: each but the FULLTEXT ones has an entry for each row.
pub fn smallest_index(table: &Table) -> usize {
    let counts = |index: &usize| {
        let def = &table.indexes()[*index];
        *index == 0 || def.kind != IndexKind::FullText && !def.invisible
    };
    (0..table.indexes().len()).filter(counts).min_by_key(|index| table.index_pages(*index).unwrap_or(u64::MAX)).unwrap_or(0)
}

/// The secondary index that has these columns of all rows in far fewer pages than the table.
pub fn smaller_index(table: &Table, columns: &[usize], choice: &IndexChoice) -> Option<usize> {
    let all = table.index_pages(0).ok().filter(|pages| *pages >= LEAST_PAGES)?;
    let covers = |index: &usize| choice.finds(*index) && !table.indexes()[*index].invisible && table.covers(*index, columns);
    let sized = |index: usize| Some((table.index_pages(index).ok()?, index));
    let (pages, index) = (1..table.indexes().len()).filter(covers).filter_map(sized).min()?;
    (pages * FEWER <= all).then_some(index)
}
