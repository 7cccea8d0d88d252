//! ALTER TABLE of single partitions: they come, go, are emptied, cut anew and exchanged; the others keep their trees.

use std::sync::Arc;

use highkey_storage::{Isolation, Txn};
use highkey_types::{MySqlError, errors};

use super::build::{TableBuilder, for_each_row, tree_defs};
use super::table::{new_trees, next_definition, refuse_system_schema};
use super::{DdlContext, TableName, spec};
use crate::catalog::keys;
use crate::database::Database;
use crate::def::{IndexDef, IndexKind, TableDef};
use crate::error;
use crate::partition::Partitioning;
use crate::table::Table;
use crate::transaction::Snapshot;

/// Other partitions for a table.
#[derive(Clone, Debug)]
pub struct RepartitionPlan {
    pub table: TableName,
    /// `TableDef::version` that the plan was made from.
    pub version: u64,
    /// Those of its partitions that have trees are the table's and stay as they are; those without are new.
    pub partitioning: Partitioning,
    /// The rows of partitions that go are put into the new ones; else they go as well, unseen.
    pub keep_rows: bool,
}

impl Database {
    /// Gives a table other partitions. Returns the rows that were copied.
    ///
    /// Errors: 1412 if the definition is no longer the one that the plan was made from (plan again), 1317, 1493, 1495, 1505, 1526 and 1863 for rows that
    /// no new partition takes.
    pub async fn change_partitions(self: &Arc<Self>, cx: &DdlContext, plan: RepartitionPlan) -> Result<u64, MySqlError> {
        refuse_system_schema(&plan.table.0)?;
        let _locks = self.lock_related(cx, vec![plan.table.clone()], &[]).await?;
        let old = self.catalog().table(&plan.table.0, &plan.table.1)?;
        if old.def.version != plan.version {
            return Err(error::definition_changed());
        }
        let mut def = next_definition(&old.def);
        spec::set_partitioning(&mut def, plan.partitioning)?;
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        let snapshot = Snapshot { inner: txn.snapshot(), epoch: self.epoch() };
        let (indexes, name) = (def.indexes.len(), def.name.clone());
        let mut kept = Vec::new();
        let mut is_new = Vec::new();
        for partition in def.partitioning.iter_mut().flat_map(|partitioning| &mut partitioning.partitions) {
            is_new.push(partition.trees.is_empty());
            match partition.trees.first() {
                Some(first) => kept.push(*first),
                None => partition.trees = new_trees(&mut txn, &name, indexes)?,
            }
        }
        let leaving: Vec<&Arc<Table>> = old.partition_tables().iter().filter(|part| !kept.contains(&part.clustered().id)).collect();
        let mut rows = 0;
        if plan.keep_rows {
            let defs = tree_defs(&def);
            let mut builder = TableBuilder::new(&old.engine, &def, &defs, cx)?;
            builder.next_row_id = old.state.row_ids.counter().next();
            for (from, part) in leaving.iter().enumerate() {
                for_each_row(part, &snapshot, cx, |batch, row| {
                    let row = batch.values(row);
                    let to = builder.place(&row)?;
                    if !is_new[to] {
                        let what = format!("from REBUILD/REORGANIZED partition: {from} to non included partition (new definition): {to}");
                        return Err(errors::row_in_wrong_partition(&what));
                    }
                    builder.add_row(&row)
                })?;
            }
            rows = builder.rows();
            let next = builder.next_row_id;
            builder.finish(&mut txn, cx)?;
            self.write_counter(&mut txn, keys::row_id(def.id), next)?;
            self.finish_repartition(cx, txn, &old, &leaving, def)?;
            old.state.row_ids.reset(next);
        } else {
            // As after TRUNCATE TABLE.
            let is_emptied = kept.is_empty();
            if is_emptied {
                self.write_counter(&mut txn, keys::auto_increment(def.id), 1)?;
            }
            self.finish_repartition(cx, txn, &old, &leaving, def)?;
            if is_emptied {
                old.state.auto_increment.reset(1);
            }
        }
        Ok(rows)
    }

    fn finish_repartition(&self, cx: &DdlContext, mut txn: Txn, old: &Arc<Table>, leaving: &[&Arc<Table>], def: TableDef) -> Result<(), MySqlError> {
        for part in leaving {
            super::drop_trees(&mut txn, &part.def)?;
        }
        self.write_table(&mut txn, &def)?;
        cx.commit(self, txn)?;
        old.state.forget_rows();
        *old.state.statistics.lock() = None;
        self.publish(|catalog, epoch| {
            let table = self.new_table(def, old.state.clone(), epoch);
            self.replace_table(catalog, old, table);
        });
        Ok(())
    }

    /// Exchanges the rows of a partition for those of a table: each gets the other's trees. `validate`: all rows of the table must belong to the partition.
    ///
    /// Errors: 1317, 1505, 1732, 1735, 1736, 1737, 1740.
    pub async fn exchange_partition(
        self: &Arc<Self>,
        cx: &DdlContext,
        table: &TableName,
        partition: &str,
        other: &TableName,
        validate: bool,
    ) -> Result<(), MySqlError> {
        refuse_system_schema(&table.0)?;
        refuse_system_schema(&other.0)?;
        let _locks = self.lock_related(cx, vec![table.clone(), other.clone()], &[]).await?;
        let catalog = self.catalog();
        let (old, other) = (catalog.table(&table.0, &table.1)?, catalog.table(&other.0, &other.1)?);
        let (Some(parts), Some(partitioning)) = (&old.parts, &old.def.partitioning) else {
            return Err(errors::partition_mgmt_on_nonpartitioned());
        };
        if other.is_partitioned() {
            return Err(MySqlError::with_message(1732, format!("Table to exchange with partition is partitioned: '{:.64}'", other.def.name)));
        }
        if !other.def.foreign_keys.is_empty() || other.referencing().next().is_some() {
            return Err(errors::partition_exchange_foreign_key(&other.def.name));
        }
        if !have_same_rows(&old.def, &other.def) {
            return Err(error::different_definitions());
        }
        let at = partitioning.position(partition).ok_or_else(|| error::unknown_partition(partition, &old.def.name))?;
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        if validate {
            let snapshot = Snapshot { inner: txn.snapshot(), epoch: self.epoch() };
            for_each_row(&other, &snapshot, cx, |batch, row| match parts.chooser.partition_of(&batch.values(row)) {
                Ok(found) if found == at => Ok(()),
                _ => Err(error::row_of_other_partition()),
            })?;
        }
        let (mut def, mut other_def) = (next_definition(&old.def), next_definition(&other.def));
        // What either has given out is not given again to rows beside those that came.
        let mut next_row_id = old.state.row_ids.counter().next().max(other.state.row_ids.counter().next());
        let next_auto = old.state.auto_increment.counter().next().max(other.state.auto_increment.counter().next());
        if other.def.indexes[0].kind == IndexKind::RowId {
            next_row_id = self.number_anew(cx, &mut txn, &other, &mut other_def, next_row_id)?;
        }
        for partition in def.partitioning.iter_mut().flat_map(|partitioning| &mut partitioning.partitions[at..=at]) {
            let trees = other_def.indexes.iter_mut().zip(&mut partition.trees);
            trees.for_each(|(index, tree)| std::mem::swap(&mut index.id, tree));
        }
        for def in [&def, &other_def] {
            self.write_counter(&mut txn, keys::row_id(def.id), next_row_id)?;
            self.write_counter(&mut txn, keys::auto_increment(def.id), next_auto)?;
            self.write_table(&mut txn, def)?;
        }
        cx.commit(self, txn)?;
        for state in [&old.state, &other.state] {
            state.row_ids.reset(next_row_id);
            state.auto_increment.reset(next_auto);
            state.forget_rows();
            *state.statistics.lock() = None;
        }
        self.publish(|catalog, epoch| {
            for (old, def) in [(&old, def), (&other, other_def)] {
                let table = self.new_table(def, old.state.clone(), epoch);
                self.replace_table(catalog, old, table);
            }
        });
        Ok(())
    }

    /// Copies a table's rows into new trees, which `def` gets, with hidden row ids from `first` on: rows of other partitions may have those that they had (P1).
    /// Gives the next one.
    fn number_anew(&self, cx: &DdlContext, txn: &mut Txn, table: &Arc<Table>, def: &mut TableDef, first: u64) -> Result<u64, MySqlError> {
        let snapshot = Snapshot { inner: txn.snapshot(), epoch: self.epoch() };
        let trees = new_trees(txn, &table.def.name, def.indexes.len())?;
        def.indexes.iter_mut().zip(trees).for_each(|(index, tree)| index.id = tree);
        let defs = tree_defs(def);
        let mut builder = TableBuilder::new(&table.engine, def, &defs, cx)?;
        builder.next_row_id = first;
        for_each_row(table, &snapshot, cx, |batch, row| builder.add_row(&batch.values(row)))?;
        let next = builder.next_row_id;
        builder.finish(txn, cx)?;
        super::drop_trees(txn, &table.def)?;
        Ok(next)
    }
}

/// Whether rows and entries of the one table are, byte for byte, what the other's would be.
fn have_same_rows(one: &TableDef, other: &TableDef) -> bool {
    let same_index = |(a, b): (&IndexDef, &IndexDef)| a.kind == b.kind && a.parts == b.parts && a.name == b.name && a.words == b.words;
    one.columns.len() == other.columns.len()
        && one.indexes.len() == other.indexes.len()
        && one.columns.iter().zip(&other.columns).all(|(a, b)| a.name == b.name && a.ty == b.ty && a.nullable == b.nullable && a.generated == b.generated)
        && one.indexes.iter().zip(&other.indexes).all(same_index)
}
