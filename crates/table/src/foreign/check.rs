//! The child's side: a row that comes, or whose foreign key changes, must have a parent, which stays until the transaction ends.

use std::borrow::Borrow;
use std::sync::Arc;

use highkey_storage::{BatchRows, Bounds, Direction, LockMode, LockWaitPolicy, Locked};
use highkey_types::{MySqlError, Value, encode_key_part, errors};

use super::{ParentKey, ParentLink, constraint_text};
use crate::bulk::Run;
use crate::def::ForeignKeyDef;
use crate::index::successor;
use crate::metadata_lock::MetadataMode;
use crate::scan::TreeLocking;
use crate::table::{Table, granted};
use crate::transaction::Transaction;

impl Table {
    /// The rows that come must have parents.
    pub(crate) fn checks_parents(&self, txn: &Transaction) -> bool {
        txn.foreign_key_checks && self.links.as_ref().is_some_and(|links| !links.parents.is_empty())
    }

    /// Rows may have their parents among those that come with them: then the order in which they come decides.
    pub(crate) fn references_itself(&self) -> bool {
        self.parent_links().iter().any(|link| link.parent.as_ref().is_some_and(|parent| parent.own))
    }

    fn parent_links(&self) -> &[ParentLink] {
        self.links.as_ref().map_or(&[], |links| &links.parents)
    }

    /// Before the row's entry goes into `index`. `exempt`: a foreign key, by its position, whose own action makes the row. Error 1452, and
    /// those of locks.
    pub(crate) async fn check_parents(
        &self,
        txn: &mut Transaction,
        row: &[Value],
        index: usize,
        exempt: Option<usize>,
    ) -> Result<(), MySqlError> {
        for link in self.parent_links().iter().filter(|link| link.index == index && Some(link.key) != exempt) {
            let mut wanted = std::mem::take(&mut txn.parent_key);
            wanted.clear();
            let found = match self.wanted_parent(link, |column| &row[column], &mut wanted) {
                Wanted::Nothing => Ok(true),
                Wanted::Impossible => Ok(false),
                Wanted::Key(parent) => find_parent(txn, parent, &wanted).await,
            };
            txn.parent_key = wanted;
            if !found? {
                return Err(self.no_parent(link));
            }
        }
        Ok(())
    }

    /// Whether all rows have parents that are there already.
    pub(crate) async fn have_parents(&self, txn: &mut Transaction, rows: &[Vec<Value>]) -> Result<bool, MySqlError> {
        self.all_have_parents(txn, rows.len(), |row, column| &rows[row][column]).await
    }

    /// As `have_parents`, of encoded rows.
    pub(crate) async fn run_has_parents(&self, txn: &mut Transaction, run: &Run) -> Result<bool, MySqlError> {
        self.all_have_parents(txn, run.len(), |row, column| self.layout.value(run.value(row), column)).await
    }

    async fn all_have_parents<V: Borrow<Value>>(
        &self,
        txn: &mut Transaction,
        rows: usize,
        value: impl Fn(usize, usize) -> V,
    ) -> Result<bool, MySqlError> {
        let (mut wanted, mut before) = (Vec::new(), Vec::new());
        for link in self.parent_links() {
            before.clear();
            for row in 0..rows {
                wanted.clear();
                match self.wanted_parent(link, |column| value(row, column), &mut wanted) {
                    Wanted::Nothing => continue,
                    Wanted::Impossible => return Ok(false),
                    // Rows of one parent often come one after the other.
                    Wanted::Key(_) if wanted == before => continue,
                    Wanted::Key(parent) => {
                        if !find_parent(txn, parent, &wanted).await? {
                            return Ok(false);
                        }
                    }
                }
                std::mem::swap(&mut wanted, &mut before);
            }
        }
        Ok(true)
    }

    fn wanted_parent<'a, V: Borrow<Value>>(&self, link: &'a ParentLink, value: impl Fn(usize) -> V, out: &mut Vec<u8>) -> Wanted<'a> {
        let columns = &self.def.foreign_keys[link.key].columns;
        if columns.iter().any(|column| value(*column).borrow().is_null()) {
            return Wanted::Nothing;
        }
        let Some(parent) = &link.parent else { return Wanted::Impossible };
        for (column, part) in columns.iter().zip(&parent.parts) {
            encode_key_part(value(*column).borrow(), part, out);
        }
        Wanted::Key(parent)
    }

    fn no_parent(&self, link: &ParentLink) -> MySqlError {
        self.no_parent_of(&self.def.foreign_keys[link.key])
    }

    /// Error 1452.
    pub(crate) fn no_parent_of(&self, key: &ForeignKeyDef) -> MySqlError {
        errors::no_referenced_row_2(constraint_text(&self.def, key))
    }
}

/// Which parent a row needs.
enum Wanted<'a> {
    /// None: a column is NULL.
    Nothing,
    /// One that cannot be there.
    Impossible,
    /// The one with the key.
    Key(&'a ParentKey),
}

/// Locks the parent row, or the first of several, against being deleted or changed. False: there is none.
async fn find_parent(txn: &mut Transaction, parent: &ParentKey, wanted: &[u8]) -> Result<bool, MySqlError> {
    let Some(table) = txn.related(&parent.place, MetadataMode::Read).await? else { return Ok(false) };
    if parent.whole && parent.index == 0 {
        let locked = granted!(table, txn.inner().lock(table.clustered().id, wanted, LockMode::Shared, LockWaitPolicy::Wait));
        return Ok(matches!(locked, Locked::Yes(Some(_))));
    }
    if parent.whole {
        return Ok(table.lock_key(txn, parent.index, wanted, LockMode::Shared, LockWaitPolicy::Wait).await?.is_some());
    }
    let mut rows = entries(txn, &table, parent.index, wanted, LockMode::Shared);
    Ok(rows.next(txn).await?.is_some())
}

/// The rows whose key in an index starts with `prefix`, to be locked.
pub(super) fn entries(txn: &mut Transaction, table: &Arc<Table>, index: usize, prefix: &[u8], mode: LockMode) -> TreeLocking {
    table.scan_locking_bounds(txn, index, starting_with(prefix), None, Direction::Forward, mode, LockWaitPolicy::Wait)
}

/// All keys that start with `prefix`.
fn starting_with(prefix: &[u8]) -> Bounds {
    use std::ops::Bound;
    Bounds::new(Bound::Included(prefix.to_vec()), successor(prefix).map_or(Bound::Unbounded, Bound::Excluded))
}

/// Whether an index has an entry that starts with the bytes. For DDL, which has the table to itself: nothing is waited for.
pub(super) fn key_exists(txn: &mut highkey_storage::Txn, index: highkey_storage::IndexId, wanted: &[u8]) -> highkey_storage::Result<bool> {
    let mut scan = txn.scan_latest(index, starting_with(wanted), Direction::Forward, LockMode::Shared, None);
    let mut leaf = highkey_storage::LeafRows::new();
    while scan.next_leaf(&mut leaf)? {
        if (0..leaf.len()).any(|at| !leaf.value(at).is_empty()) {
            return Ok(true);
        }
    }
    Ok(false)
}
