//! The parent's side: what becomes of the rows that reference one which is deleted or whose key changes. As InnoDB does it: row by row,
//! depth first, each index of the parent after its own change.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use highkey_storage::LockMode;
use highkey_types::{MySqlError, Str, TypeKind, Value, encode_key_part, errors};

use super::check::entries;
use super::{ChildLink, constraint_text};
use crate::commit::Change;
use crate::def::{IndexKind, ReferenceAction, TableId};
use crate::error;
use crate::metadata_lock::MetadataMode;
use crate::row::Row;
use crate::table::{Table, entry_text, granted};
use crate::transaction::Transaction;

/// As many levels of rows, the first one included, may change on account of one, as in InnoDB. More are error 3008.
const DEPTH_MAX: u32 = 15;

/// Why a row cannot be changed.
enum Refused {
    Error(MySqlError),
    /// A cascaded update meets another row in a unique key of the child.
    Duplicate { child: Str, key: Str },
}

impl From<MySqlError> for Refused {
    fn from(error: MySqlError) -> Refused {
        Refused::Error(error)
    }
}

type Done<'a, T> = Pin<Box<dyn Future<Output = Result<T, Refused>> + Send + 'a>>;

/// The changes on whose account a change happens.
struct Chain<'a> {
    above: Option<&'a Chain<'a>>,
    table: TableId,
    updates: bool,
    depth: u32,
}

impl Chain<'_> {
    fn begin(table: &Table, updates: bool) -> Chain<'static> {
        Chain { above: None, table: table.def.id, updates, depth: 0 }
    }

    /// The table is being updated further up: its indexes are in between.
    fn updates(&self, table: TableId) -> bool {
        self.updates && self.table == table || self.above.is_some_and(|above| above.updates(table))
    }
}

/// How a row changes.
struct Update<'a> {
    old: &'a Row,
    stored: &'a [Value],
    new: &'a [Value],
    key: &'a [u8],
    data: &'a [u8],
    /// The foreign key, by its position, whose action this is.
    exempt: Option<usize>,
}

impl Table {
    /// Rows of other tables must be looked at when a row goes or its key changes.
    pub(crate) fn is_referenced(&self, txn: &Transaction) -> bool {
        txn.foreign_key_checks && self.links.as_ref().is_some_and(|links| !links.children.is_empty())
    }

    /// Foreign keys have to do with the table's rows.
    pub(crate) fn is_linked(&self, txn: &Transaction) -> bool {
        txn.foreign_key_checks && self.links.is_some()
    }

    /// `delete` of a table that is referenced. On an error everything is as before.
    pub(crate) async fn delete_referenced(&self, txn: &mut Transaction, old: &Row) -> Result<(), MySqlError> {
        let start = txn.inner().savepoint();
        let counted = txn.counted();
        let values = old.values();
        match self.delete_cascading(txn, old, &values, Chain::begin(self, false)).await {
            Ok(()) if txn.events.is_some() => txn.log_change(self, &Change::Delete(&values)),
            Ok(()) => Ok(()),
            Err(refused) => {
                txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
                txn.count_again(&counted);
                Err(self.error_of(refused, &values))
            }
        }
    }

    /// As `update`, of a table with foreign keys or referenced by some; the new row is another one than the old. On an error everything is
    /// as before.
    pub(crate) async fn update_linked(
        &self,
        txn: &mut Transaction,
        old: &Row,
        new: &[Value],
        key: &[u8],
        data: &[u8],
    ) -> Result<(), MySqlError> {
        let start = txn.inner().savepoint();
        let counted = txn.counted();
        let stored = old.values();
        let update = Update { old, stored: &stored, new, key, data, exempt: None };
        let updated = match self.update_cascading(txn, update, Chain::begin(self, true)).await {
            Ok(None) => return Ok(()),
            Ok(Some(index)) => Err(self.duplicate_entry(index, new)),
            Err(refused) => Err(self.error_of(refused, new)),
        };
        txn.inner().take_back(&start).map_err(|e| self.failed(e))?;
        txn.count_again(&counted);
        updated
    }

    fn error_of(&self, refused: Refused, row: &[Value]) -> MySqlError {
        match refused {
            Refused::Error(error) => error,
            Refused::Duplicate { child, key } => {
                errors::foreign_duplicate_key_with_child_info(&self.def.name, entry_text(&self.def, 0, row), child, key)
            }
        }
    }

    fn delete_cascading<'a>(&'a self, txn: &'a mut Transaction, old: &'a Row, values: &'a [Value], chain: Chain<'a>) -> Done<'a, ()> {
        Box::pin(async move {
            let deleted = granted!(self, txn.inner().delete(self.clustered().id, &old.key));
            assert!(deleted, "delete is given a row that a locking read of this transaction found");
            self.act_on_children(txn, 0, old, values, None, &chain).await?;
            for index in 1..self.indexes.len() {
                if self.indexes[index].is_full_text() {
                    self.delete_words(txn, index, self.indexes[index].words_of_row(&self.layout, &old.data), &old.key).await?;
                    continue;
                }
                let mut scratch = std::mem::take(&mut txn.scratch);
                self.indexes[index].entry_of_row(&self.layout, &old.data, &old.key, &mut scratch.key, &mut scratch.value);
                let outcome = self.delete_entry(txn, index, &scratch.key).await;
                txn.scratch = scratch;
                outcome?;
                self.act_on_children(txn, index, old, values, None, &chain).await?;
            }
            txn.count_rows(&self.state, -1);
            Ok(())
        })
    }

    /// Some: the index in which the new row meets another one.
    fn update_cascading<'a>(&'a self, txn: &'a mut Transaction, update: Update<'a>, chain: Chain<'a>) -> Done<'a, Option<usize>> {
        Box::pin(async move {
            let Update { old, stored, new, key, data, exempt } = update;
            if key == old.key {
                let updated = granted!(self, txn.inner().update(self.clustered().id, key, data));
                assert!(updated, "update is given a row that a locking read of this transaction found");
                self.act_on_children(txn, 0, old, stored, Some(new), &chain).await?;
            } else {
                let deleted = granted!(self, txn.inner().delete(self.clustered().id, &old.key));
                assert!(deleted, "update is given a row that a locking read of this transaction found");
                self.act_on_children(txn, 0, old, stored, Some(new), &chain).await?;
                self.check_parents(txn, new, 0, exempt).await?;
                if !self.insert_entry(txn, 0, key, data).await? {
                    return Ok(Some(0));
                }
            }
            let (mut before, mut after, mut value_before, mut value_after) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
            for index in 1..self.indexes.len() {
                let codec = &self.indexes[index];
                if codec.is_full_text() {
                    self.update_words(txn, index, old, new, key).await?;
                    continue;
                }
                codec.entry_of_row(&self.layout, &old.data, &old.key, &mut before, &mut value_before);
                codec.entry(new, key, &mut after, &mut value_after);
                if before == after {
                    if value_before != value_after && !granted!(self, txn.inner().update(codec.id, &after, &value_after)) {
                        return Err(self.corrupt(index).into());
                    }
                    self.act_on_children(txn, index, old, stored, Some(new), &chain).await?;
                    continue;
                }
                self.delete_entry(txn, index, &before).await?;
                self.act_on_children(txn, index, old, stored, Some(new), &chain).await?;
                self.check_parents(txn, new, index, exempt).await?;
                if !self.insert_entry(txn, index, &after, &value_after).await? {
                    return Ok(Some(index));
                }
            }
            Ok(None)
        })
    }

    /// The foreign keys that reference `index`, whose entry of the row has just gone. `new`: what the row becomes.
    async fn act_on_children(
        &self,
        txn: &mut Transaction,
        index: usize,
        row: &Row,
        old: &[Value],
        new: Option<&[Value]>,
        chain: &Chain<'_>,
    ) -> Result<(), Refused> {
        let Some(links) = &self.links else { return Ok(()) };
        for link in links.children.iter().filter(|link| link.index == index) {
            let stays = |column: &usize| new.is_some_and(|new| new[*column] == old[*column]);
            if link.columns.iter().all(stays) || link.columns.iter().any(|column| old[*column].is_null()) {
                continue;
            }
            let mut prefix = Vec::new();
            for (column, part) in link.columns.iter().zip(&link.parts) {
                encode_key_part(&old[*column], part, &mut prefix);
            }
            // The row that references itself is on its way already.
            let itself = link.own && {
                let mut own = Vec::new();
                self.indexes[link.child_index].encode_row(&self.layout, &row.data, &mut own);
                own.starts_with(&prefix)
            };
            let action = link.action(new.is_none());
            let mode = if action.refuses() { MetadataMode::Read } else { MetadataMode::Write };
            let Some(child) = txn.related(&link.place, mode).await? else { continue };
            if action.refuses() {
                let mut rows = entries(txn, &child, link.child_index, &prefix, LockMode::Shared);
                if itself || rows.next(txn).await?.is_some() {
                    return Err(has_children(&child, link).into());
                }
                continue;
            }
            if itself && new.is_some() {
                return Err(has_children(&child, link).into());
            }
            carry_out(txn, &child, link, &prefix, (old, new), chain).await?;
        }
        Ok(())
    }

    /// A parent's value as a value of a column; None if the column cannot have it.
    fn taken_over(&self, column: usize, value: &Value) -> Option<Value> {
        let def = &self.def.columns[column];
        match (&def.ty.kind, value) {
            (_, Value::Null) => def.nullable.then_some(Value::Null),
            (TypeKind::Char(n) | TypeKind::VarChar(n), Value::Text(text)) => (text.chars().count() <= *n as usize).then(|| value.clone()),
            (TypeKind::Binary(n) | TypeKind::VarBinary(n), Value::Bytes(bytes)) => (bytes.len() <= *n as usize).then(|| value.clone()),
            (TypeKind::Enum(members), Value::Enum(n, _)) => {
                members.get((*n as usize).wrapping_sub(1)).map(|text| Value::Enum(*n, text.clone()))
            }
            (TypeKind::Set(members), Value::Set(bits, _)) => {
                let named: Vec<&str> = (0..members.len()).filter(|at| bits >> at & 1 == 1).map(|at| &*members[at]).collect();
                (named.len() == bits.count_ones() as usize).then(|| Value::Set(*bits, named.join(",").into()))
            }
            _ => Some(value.clone()),
        }
    }
}

/// CASCADE and SET NULL for the children whose index entry starts with `prefix`. `parent`: what the row was, and what it becomes if it is
/// not deleted.
async fn carry_out(
    txn: &mut Transaction,
    child: &Arc<Table>,
    link: &ChildLink,
    prefix: &[u8],
    (old, new): (&[Value], Option<&[Value]>),
    chain: &Chain<'_>,
) -> Result<(), Refused> {
    let action = link.action(new.is_none());
    let deletes = new.is_none() && action == ReferenceAction::Cascade;
    let mut rows = entries(txn, child, link.child_index, prefix, LockMode::Exclusive);
    while let Some(row) = rows.next(txn).await? {
        txn.check_interrupt()?;
        // As in InnoDB: the indexes of a table that is being updated are not to be relied on.
        if !deletes && chain.updates(child.def.id) {
            return Err(has_children(child, link).into());
        }
        if chain.depth + 1 == DEPTH_MAX {
            return Err(error::cascade_too_deep(DEPTH_MAX).into());
        }
        let below = Chain { above: Some(chain), table: child.def.id, updates: !deletes, depth: chain.depth + 1 };
        let stored = row.values();
        if deletes {
            child.delete_cascading(txn, &row, &stored, below).await?;
            continue;
        }
        let mut changed = stored.clone();
        for (at, &column) in link.key.columns.iter().enumerate() {
            let given = match (action, new) {
                (ReferenceAction::Cascade, Some(new)) if new[link.columns[at]] == old[link.columns[at]] => continue,
                (ReferenceAction::Cascade, Some(new)) => &new[link.columns[at]],
                _ => &Value::Null,
            };
            changed[column] = child.taken_over(column, given).ok_or_else(|| has_children(child, link))?;
        }
        if child.def.columns.iter().any(|column| column.generated.is_some()) {
            let generator = txn.generator.clone().ok_or_else(error::no_generator)?;
            generator.generate(child, &mut changed)?;
        }
        let mut data = Vec::with_capacity(row.data.len() + 16);
        child.layout.encode(&changed, &mut data);
        let mut key = Vec::with_capacity(row.key.len());
        match child.clustered().kind {
            IndexKind::RowId => key.extend_from_slice(&row.key),
            _ => {
                child.clustered().encode(&changed, &mut key);
            }
        }
        let exempt = child.def.foreign_keys.iter().position(|key| key.name == link.key.name);
        let update = Update { old: &row, stored: &stored, new: &changed, key: &key, data: &data, exempt };
        if let Some(index) = child.update_cascading(txn, update, below).await? {
            return Err(Refused::Duplicate { child: child.def.name.clone(), key: child.def.indexes[index].name.clone() });
        }
    }
    Ok(())
}

/// Error 1451.
fn has_children(child: &Table, link: &ChildLink) -> MySqlError {
    errors::row_is_referenced_2(constraint_text(&child.def, &link.key))
}
