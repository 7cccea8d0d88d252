//! What a statement does to come to its rows, as MySQL counts it (`Handler_read_%`, `Select_%`, `Sort_%`, `Created_tmp_%`). Plain numbers of the session: the statement's
//! end adds them to its status and to its digest.

use std::ops::Bound;

use highkey_table::KeyRange;

use super::status::{Status, StatusCounter};

/// How a query comes to the rows of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a whole unique key: one row at most.
    Key,
    /// By one value of an index.
    Value,
    /// By ranges of an index, or several values.
    Ranges,
    /// All rows, in the order of an index.
    Index,
    /// All rows.
    Table,
}

macro_rules! work {
    ($($(#[$doc:meta])* $field:ident => $counter:ident,)*) => {
        /// One statement's work, or the sum of several.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Work {
            $($(#[$doc])* pub $field: u64,)*
            /// Statements with a table of which no index was used. No status variable.
            pub no_index_used: u64,
        }

        impl Work {
            pub fn add(&mut self, other: &Work) {
                $(self.$field += other.$field;)*
                self.no_index_used += other.no_index_used;
            }

            /// Adds all to the counters of a connection.
            pub fn count_in(&self, status: &Status) {
                $(if self.$field > 0 {
                    status.add(StatusCounter::$counter, self.$field);
                })*
            }
        }
    };
}

work! {
    /// Scans that began at the low end of an index.
    read_first => HandlerReadFirst,
    /// Lookups in an index; the beginning of a scan is one.
    read_key => HandlerReadKey,
    /// Scans that began at the high end of an index.
    read_last => HandlerReadLast,
    /// Steps forward in an index.
    read_next => HandlerReadNext,
    /// Steps backward in an index.
    read_prev => HandlerReadPrev,
    /// Rows that were come back to after they had been found.
    read_rnd => HandlerReadRnd,
    /// Steps in a scan of a table.
    read_rnd_next => HandlerReadRndNext,
    /// Joined tables of which all rows were read.
    select_full_join => SelectFullJoin,
    /// Joined tables of which ranges were read.
    select_full_range_join => SelectFullRangeJoin,
    /// Queries that read ranges of their first table.
    select_range => SelectRange,
    /// Queries that read all of their first table.
    select_scan => SelectScan,
    /// Files that sorts have written.
    sort_merge_passes => SortMergePasses,
    /// Sorts of rows that ranges have given.
    sort_range => SortRange,
    /// Rows that sorts have given.
    sort_rows => SortRows,
    /// Other sorts.
    sort_scan => SortScan,
    /// Groupings and DISTINCTs that keep their rows.
    created_tmp_tables => CreatedTmpTables,
    /// Those of them that had to write files.
    created_tmp_disk_tables => CreatedTmpDiskTables,
    /// Files that queries have written for themselves.
    created_tmp_files => CreatedTmpFiles,
}

impl Work {
    /// From CREATED_TMP_DISK_TABLES to NO_GOOD_INDEX_USED, as the tables about statements have it. An index is chosen once, for all rows: nothing is checked for
    /// each, and none is used for want of a good one.
    pub fn columns(&self) -> [u64; 13] {
        [
            self.created_tmp_disk_tables,
            self.created_tmp_tables,
            self.select_full_join,
            self.select_full_range_join,
            self.select_range,
            0,
            self.select_scan,
            self.sort_merge_passes,
            self.sort_range,
            self.sort_rows,
            self.sort_scan,
            self.no_index_used,
            0,
        ]
    }

    /// A range of an index is looked up at the end where reading begins.
    pub fn begin_range(&mut self, range: &KeyRange, backward: bool) {
        self.read_key += 1;
        match backward {
            false if matches!(range.lower, Bound::Unbounded) => self.read_first += 1,
            true if matches!(range.upper, Bound::Unbounded) => self.read_last += 1,
            _ => {}
        }
    }

    /// So many rows of a range of an index have been read. `ended`: it was seen that there are no more.
    pub fn read_range(&mut self, range: &KeyRange, backward: bool, rows: u64, ended: bool) {
        self.begin_range(range, backward);
        // The lookup has given the first; what finds no more is a step too.
        let steps = if ended { rows } else { rows.saturating_sub(1) };
        if backward {
            self.read_prev += steps;
        } else {
            self.read_next += steps;
        }
    }

    /// So many rows of a table have been read from its beginning. `ended`: it was seen that there are no more.
    pub fn read_table(&mut self, rows: u64, ended: bool) {
        self.read_first += 1;
        self.read_key += 1;
        self.read_rnd_next += rows + u64::from(ended);
    }

    /// A query reads tables in this order.
    pub fn select(&mut self, tables: impl IntoIterator<Item = Reach>) {
        let mut first = true;
        for reach in tables {
            match (reach, first) {
                // What one key gives is there before the query begins.
                (Reach::Key, true) => continue,
                (Reach::Key | Reach::Value, _) => {}
                (Reach::Ranges, true) => self.select_range += 1,
                (Reach::Ranges, false) => self.select_full_range_join += 1,
                (Reach::Index | Reach::Table, true) => self.select_scan += 1,
                (Reach::Index | Reach::Table, false) => self.select_full_join += 1,
            }
            if reach == Reach::Table {
                self.no_index_used = 1;
            }
            first = false;
        }
    }

    /// A sort has given so many rows. `of_ranges`: ranges of an index have given them to it.
    pub fn sort(&mut self, of_ranges: bool, rows: u64) {
        self.sort_rows += rows;
        if of_ranges {
            self.sort_range += 1;
        } else {
            self.sort_scan += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highkey_types::Value;

    fn above(n: i64) -> KeyRange {
        KeyRange { lower: Bound::Excluded(vec![Value::Int(n)]), upper: Bound::Unbounded }
    }

    #[test]
    fn ranges_are_counted_from_the_end_where_they_begin() {
        let mut work = Work::default();
        work.read_range(&above(15), false, 5, true);
        assert_eq!(work, Work { read_key: 1, read_next: 5, ..Work::default() });
        work = Work::default();
        work.read_range(&above(15), true, 5, true);
        assert_eq!(work, Work { read_key: 1, read_last: 1, read_prev: 5, ..Work::default() });
        work = Work::default();
        work.read_range(&KeyRange::all(), false, 3, false);
        assert_eq!(work, Work { read_key: 1, read_first: 1, read_next: 2, ..Work::default() });
        work = Work::default();
        work.read_range(&above(15), false, 0, true);
        assert_eq!(work, Work { read_key: 1, ..Work::default() });
    }

    #[test]
    fn the_first_table_is_the_first_that_no_key_gives() {
        let mut work = Work::default();
        work.select([Reach::Key, Reach::Table, Reach::Index, Reach::Value, Reach::Ranges, Reach::Key]);
        assert_eq!(work, Work { select_scan: 1, select_full_join: 1, select_full_range_join: 1, no_index_used: 1, ..Work::default() });
        work = Work::default();
        work.select([Reach::Value, Reach::Table]);
        assert_eq!(work, Work { select_full_join: 1, no_index_used: 1, ..Work::default() });
        work = Work::default();
        work.select([Reach::Index]);
        assert_eq!(work, Work { select_scan: 1, ..Work::default() });
    }

    #[test]
    fn a_statement_counts_in_its_connection() {
        let (mut work, status) = (Work::default(), Status::default());
        work.read_table(20, true);
        work.sort(false, 20);
        work.count_in(&status);
        work.count_in(&status);
        let counted = [StatusCounter::HandlerReadFirst, StatusCounter::HandlerReadRndNext, StatusCounter::SortRows, StatusCounter::SortScan];
        assert_eq!(counted.map(|counter| status.get(counter)), [2, 42, 40, 2]);
    }
}
