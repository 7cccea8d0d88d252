//! ALTER TABLE, CREATE INDEX and DROP INDEX: in the catalog alone where the rows' bytes stay, else by copying.

use std::ops::Bound;
use std::sync::Arc;

use highkey_storage::{Direction, Isolation, Txn};
use highkey_types::{ColumnType, MySqlError, Str, TypeKind, Value, errors};

use super::build::{TableBuilder, TreeBuilder, for_each_row, tree_defs};
use super::online::{Meanwhile, NewIndexes, NewTable, others_write};
use super::table::{drop_trees, make_trees};
use super::{DdlContext, checks, spec};
use crate::catalog::keys;
use crate::database::Database;
use crate::def::{IndexDef, IndexKind, IndexSpec, TableDef, TableSpec, same_name};
use crate::error;
use crate::foreign::define;
use crate::metadata_lock::MetadataMode;
use crate::partition::Partitioning;
use crate::row::RowBatch;
use crate::restored::{refuse_system_table, refuse_unless_restored};
use crate::scan::KeyRange;
use crate::table::{Table, TableState};
use crate::transaction::{HeldLocks, Snapshot};

/// Turns a row of the old definition into one of the new definition: conversions, defaults of added columns, generated
/// columns, CHECK. Its error ends the statement and nothing has changed.
pub type RowConversion<'a> = &'a mut (dyn FnMut(Vec<Value>) -> Result<Vec<Value>, MySqlError> + Send);

/// What others may do with a table while rows are copied and indexes built, as LOCK= asks for it. Before and after that, for a moment, they may do nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Others {
    /// Write where only indexes are built, read where rows are copied.
    #[default]
    AsFarAsPossible,
    /// NONE: write, or the statement is refused.
    Write,
    /// SHARED.
    Read,
    /// EXCLUSIVE.
    Nothing,
}

impl Others {
    /// The lock for the meantime. Error 1846.
    fn mode(self, copies: bool) -> Result<MetadataMode, MySqlError> {
        Ok(match self {
            Others::AsFarAsPossible | Others::Write if !copies => MetadataMode::Upgradable,
            Others::Write => {
                return Err(errors::alter_operation_not_supported_reason("LOCK=NONE", "COPY algorithm requires a lock", "LOCK=SHARED"));
            }
            Others::AsFarAsPossible | Others::Read => MetadataMode::ReadOnly,
            Others::Nothing => MetadataMode::Exclusive,
        })
    }
}

/// What an ALTER TABLE makes of a table.
#[derive(Clone, Debug)]
pub struct AlterPlan {
    pub schema: Str,
    pub name: Str,
    /// `TableDef::version` that the plan was made from.
    pub version: u64,
    /// The new definition; a different name in it renames the table.
    pub spec: TableSpec,
    /// For each new column the old column that it continues; None: it is added.
    pub columns: Vec<Option<usize>>,
    /// New columns that are defined anew (MODIFY, CHANGE), be it as they were: they lose their histograms, as in MySQL.
    pub redefined: Vec<usize>,
    /// Names of the foreign keys of `spec` that are not the table's yet.
    pub added_keys: Vec<Str>,
    /// Every row must pass the conversion, even if its bytes could stay: a new CHECK, a changed generated column.
    pub convert_rows: bool,
    /// Rows that are copied may be written meanwhile: what becomes of a row depends on nothing but the row, and says nothing to the client. A new primary key
    /// is of values that were there before. A table that loses its key can be read only all the same.
    pub in_place: bool,
}

impl AlterPlan {
    /// The plan that changes nothing yet.
    pub fn of(table: &Table) -> AlterPlan {
        let def = table.def();
        AlterPlan {
            schema: def.schema.clone(),
            name: def.name.clone(),
            version: def.version,
            spec: TableSpec::like(def, &def.schema, &def.name),
            columns: (0..def.columns.len()).map(Some).collect(),
            redefined: Vec::new(),
            added_keys: Vec::new(),
            convert_rows: false,
            in_place: false,
        }
    }
}

impl Database {
    /// Carries out an ALTER TABLE. `convert` is called for every row if the table is copied, else not at all.
    /// Returns the rows that were copied, or looked at for a new foreign key.
    ///
    /// Errors: 1412 if the definition is no longer the one that the plan was made from (plan again), 1050, 1049, 1062,
    /// 1138, 1317, 1452, 1553, 1829, 1832, 1833, those of `create_table` and of `convert`.
    pub async fn alter_table(
        self: &Arc<Self>,
        cx: &DdlContext,
        plan: AlterPlan,
        convert: RowConversion<'_>,
    ) -> Result<u64, MySqlError> {
        refuse_unless_restored(&self.catalog(), &plan.schema, &plan.name)?;
        refuse_system_table(&plan.spec.schema, &plan.spec.name)?;
        let from = (plan.schema.clone(), plan.name.clone());
        let to = (plan.spec.schema.clone(), plan.spec.name.clone());
        // As it is now; asked again when nobody else can change it.
        if from != to && self.catalog().has(&to.0, &to.1) {
            return Err(error::table_exists(&to.1));
        }
        let added: Vec<_> = plan.spec.foreign_keys.iter().filter(|key| plan.added_keys.contains(&key.name)).cloned().collect();
        let mut locks = self.lock_related(cx, vec![from.clone(), to.clone()], &added).await?;
        let catalog = self.catalog();
        let old = catalog.table(&from.0, &from.1)?;
        if old.def.version != plan.version {
            return Err(error::definition_changed());
        }
        if catalog.schema(&to.0).is_none() {
            return Err(error::unknown_schema(&to.0));
        }
        if from != to && catalog.has(&to.0, &to.1) {
            return Err(error::table_exists(&to.1));
        }
        if from.0 != to.0 && !old.def.triggers.is_empty() {
            return Err(errors::trg_in_wrong_schema());
        }
        let mut def = spec::define(&plan.spec)?;
        def.id = old.def.id;
        def.version = old.def.version + 1;
        def.triggers = old.def.triggers.clone();
        let altered = define::check_altered(&catalog, cx, &old, &plan, &mut def)?;
        checks::check_names(&catalog, &def, Some(old.def()), &[])?;
        define::check_partitioned(&catalog, &def)?;
        let copy = plan.convert_rows || !keeps_rows(&old.def, &def, &plan.columns);
        if !copy {
            def.created_at = old.def.created_at;
        }
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        let snapshot = Snapshot { inner: txn.snapshot(), epoch: self.epoch() };
        // Rows that a new foreign key is asked of, and tables that change with this one, stay what they are until the end.
        let alone = !altered.added.is_empty() || !altered.children.is_empty();
        // Rows that lose their key get hidden numbers in the copy's order: nobody could say which is whose later.
        let loses_key = old.def.indexes[0].kind != IndexKind::RowId && def.indexes[0].kind == IndexKind::RowId;
        let meanwhile = if alone { MetadataMode::Exclusive } else { cx.others.mode(copy && (!plan.in_place || loses_key))? };
        let change = if copy {
            self.replace_rows(cx, &mut txn, &old, &snapshot, &mut def, convert, (&mut locks, meanwhile)).await?
        } else {
            self.change_indexes(cx, &mut txn, &old, &snapshot, &mut def, (&mut locks, meanwhile)).await?
        };
        let mut rows = change.rows;
        if cx.foreign_key_checks {
            for key in def.foreign_keys.iter().filter(|key| altered.added.contains(&key.name)) {
                rows = define::check_rows(&catalog, cx, &mut txn, &def, key)?;
            }
        }
        let at_last = Snapshot { inner: txn.fresh_snapshot(), epoch: snapshot.epoch };
        let next_auto = next_auto_increment(&old, &def, &plan, &at_last, &change)?;
        if let Some(next) = next_auto {
            self.write_counter(&mut txn, keys::auto_increment(def.id), next)?;
        }
        if let Some(next) = change.next_row_id {
            self.write_counter(&mut txn, keys::row_id(def.id), next)?;
        }
        self.write_table(&mut txn, &def)?;
        altered.children.iter().try_for_each(|(_, child)| self.write_table(&mut txn, child))?;
        let lost = old.histograms_lost(&def, &plan.columns, &plan.redefined);
        self.remove_histograms(&mut txn, def.id, &lost)?;
        cx.commit(self, txn)?;
        old.state.histograms.lock().retain(|column, _| !lost.contains(column));
        change.note(&old.state, next_auto);
        self.publish(|catalog, epoch| {
            let epoch = if change.new_trees { epoch } else { old.trees_epoch };
            let table = self.new_table(def, old.state.clone(), epoch);
            self.replace_table(catalog, &old, table);
            self.replace_definitions(catalog, altered.children);
        });
        Ok(rows)
    }

    /// ALTER TABLE of a temporary table, which no transaction uses: what it is from now on, and how many rows it has. As MySQL, it copies it always.
    ///
    /// Errors: 1049, 1062, 1138, 1215, 1317, those of `create_temporary_table` and of `convert`.
    pub fn alter_temporary_table(
        &self,
        cx: &DdlContext,
        old: &Arc<Table>,
        plan: &AlterPlan,
        convert: RowConversion<'_>,
    ) -> Result<(Arc<Table>, u64), MySqlError> {
        self.check_temporary(&plan.spec)?;
        let mut def = spec::define(&plan.spec)?;
        def.id = old.def.id;
        def.version = old.def.version + 1;
        let mut txn = self.engine().begin(Isolation::ReadCommitted);
        let snapshot = Snapshot { inner: txn.snapshot(), epoch: self.epoch() };
        let change = self.copy_rows(cx, &mut txn, old, &snapshot, &mut def, convert, MetadataMode::Exclusive)?;
        drop_trees(&mut txn, &old.def)?;
        let next_auto = next_auto_increment(old, &def, plan, &snapshot, &change)?;
        self.forget_temporary_trees(&mut txn, &old.def)?;
        self.note_temporary_trees(&mut txn, &def)?;
        cx.commit_unlogged(txn)?;
        change.note(&old.state, next_auto);
        old.retire();
        Ok((self.temporary_table(def, old.state.clone()), change.rows))
    }

    /// CREATE INDEX. Errors: those of `alter_table`.
    pub async fn create_index(
        self: &Arc<Self>,
        cx: &DdlContext,
        schema: &str,
        table: &str,
        index: IndexSpec,
    ) -> Result<(), MySqlError> {
        loop {
            let mut plan = AlterPlan::of(&*self.catalog().table(schema, table)?);
            plan.spec.indexes.push(index.clone());
            match self.alter_in_place(cx, plan).await {
                Err(error) if error.code == 1412 => continue,
                done => return done,
            }
        }
    }

    /// DROP INDEX; `PRIMARY` drops the primary key. Errors: 1091 and those of `alter_table`.
    pub async fn drop_index(
        self: &Arc<Self>,
        cx: &DdlContext,
        schema: &str,
        table: &str,
        index: &str,
    ) -> Result<(), MySqlError> {
        loop {
            let mut plan = AlterPlan::of(&*self.catalog().table(schema, table)?);
            let named = |i: &IndexSpec| i.name.as_ref().is_some_and(|n| same_name(n, index));
            let at = plan.spec.indexes.iter().position(named).ok_or_else(|| error::cannot_drop(index))?;
            plan.spec.indexes.remove(at);
            match self.alter_in_place(cx, plan).await {
                Err(error) if error.code == 1412 => continue,
                done => return done,
            }
        }
    }

    /// An ALTER TABLE that changes no column: rows that are copied stay what they are.
    async fn alter_in_place(self: &Arc<Self>, cx: &DdlContext, plan: AlterPlan) -> Result<(), MySqlError> {
        self.alter_table(cx, plan, &mut |row| Ok(row)).await.map(|_| ())
    }

    /// New trees for everything, filled with the converted rows. `locks` are exclusive, and of this mode while rows are copied.
    #[allow(clippy::too_many_arguments)]
    async fn replace_rows(
        &self,
        cx: &DdlContext,
        txn: &mut Txn,
        old: &Arc<Table>,
        snapshot: &Snapshot,
        def: &mut TableDef,
        convert: RowConversion<'_>,
        (locks, meanwhile): (&mut HeldLocks, MetadataMode),
    ) -> Result<Change, MySqlError> {
        let others = Meanwhile::begin(cx, txn, old.own_trees(), snapshot, (locks, meanwhile));
        let change = self.copy_rows(cx, txn, old, snapshot, def, &mut *convert, meanwhile)?;
        let defs = tree_defs(def);
        others.end(cx, txn, &mut NewTable::new(old, def, &defs, convert)?).await?;
        drop_trees(txn, &old.def)?;
        Ok(change)
    }

    /// New trees for everything, filled with the converted rows, while the table's lock is of this mode.
    #[allow(clippy::too_many_arguments)]
    fn copy_rows(
        &self,
        cx: &DdlContext,
        txn: &mut Txn,
        old: &Arc<Table>,
        snapshot: &Snapshot,
        def: &mut TableDef,
        convert: RowConversion<'_>,
        meanwhile: MetadataMode,
    ) -> Result<Change, MySqlError> {
        make_trees(txn, def)?;
        let defs = tree_defs(def);
        let shared = others_write(meanwhile);
        // Rows that others change meanwhile are found again by their hidden numbers.
        let keeps_ids = shared && [&old.def, &*def].iter().all(|def| def.indexes[0].kind == IndexKind::RowId);
        let mut builder = TableBuilder::new(&old.engine, def, &defs, cx)?;
        for_each_row(old, snapshot, cx, |batch, row| {
            if keeps_ids {
                builder.next_row_id = u64::from_be_bytes(batch.key(row).try_into().expect("a hidden number has eight bytes"));
            }
            let row = convert(batch.values(row))?;
            builder.add_row(&row)
        })?;
        let change = Change {
            rows: builder.rows(),
            new_trees: true,
            next_row_id: (!keeps_ids).then_some(builder.next_row_id),
            // Others who write count their rows, and take numbers.
            auto_max: (!shared).then(|| builder.auto_max()),
        };
        builder.finish(txn, cx)?;
        Ok(change)
    }

    /// Keeps the rows where they are; makes and drops secondary indexes. `locks` are exclusive, and of this mode while indexes are built.
    async fn change_indexes(
        &self,
        cx: &DdlContext,
        txn: &mut Txn,
        old: &Arc<Table>,
        snapshot: &Snapshot,
        def: &mut TableDef,
        (locks, meanwhile): (&mut HeldLocks, MetadataMode),
    ) -> Result<Change, MySqlError> {
        let tables = old.own_trees();
        let mut bare = TableDef { partitioning: None, ..def.clone() };
        bare.indexes.iter_mut().for_each(|index| index.id = spec::NO_TREE);
        let mut defs = vec![bare; tables.len()];
        let mut made = Vec::with_capacity(tables.len());
        for (table, new) in tables.iter().zip(&mut defs) {
            made.push(make_indexes(txn, &table.def, new)?);
        }
        let new_trees = made.iter().any(|made| !made.is_empty());
        if new_trees {
            let others = Meanwhile::begin(cx, txn, tables, snapshot, (locks, meanwhile));
            for ((table, new), made) in tables.iter().zip(&defs).zip(&made) {
                let mut builder = TreeBuilder::new(&old.engine, new, made.clone(), cx);
                builder.add_table(table, snapshot, cx)?;
                builder.finish(txn, cx)?;
            }
            others.end(cx, txn, &mut NewIndexes::new(&defs, &made)).await?;
        }
        for (table, new) in tables.iter().zip(&defs) {
            for index in table.def.indexes.iter().filter(|index| !new.indexes.iter().any(|kept| kept.id == index.id)) {
                txn.drop_index(index.id).map_err(|e| error::storage(e, &def.name))?;
            }
        }
        let mut trees = defs.into_iter().map(|new| new.indexes.iter().map(|index| index.id).collect::<Vec<_>>());
        if old.def.partitioning.is_none() {
            def.indexes.iter_mut().zip(trees.next().into_iter().flatten()).for_each(|(index, id)| index.id = id);
        } else {
            let partitions = def.partitioning.iter_mut().flat_map(|partitioning| &mut partitioning.partitions);
            partitions.zip(trees).for_each(|(partition, trees)| partition.trees = trees);
        }
        Ok(Change { rows: 0, new_trees, next_row_id: None, auto_max: None })
    }
}

/// Gives the definition of a table that has its own trees those that stay, and makes empty ones for the other indexes: which those are.
fn make_indexes(txn: &mut Txn, old: &TableDef, def: &mut TableDef) -> Result<Vec<usize>, MySqlError> {
    let made = keep_trees(old, def);
    for &index in &made {
        def.indexes[index].id = txn.create_index().map_err(|e| error::storage(e, &def.name))?;
    }
    Ok(made)
}

struct Change {
    rows: u64,
    new_trees: bool,
    next_row_id: Option<u64>,
    /// The largest value in the AUTO_INCREMENT column, if the rows were copied.
    auto_max: Option<u64>,
}

impl Change {
    /// It is committed: what belongs to the table over all its definitions follows. `next_auto`: the counter's next value, if that is another one.
    fn note(&self, state: &TableState, next_auto: Option<u64>) {
        if let Some(next) = next_auto {
            state.auto_increment.reset(next);
        }
        if let Some(next) = self.next_row_id {
            state.row_ids.reset(next);
        }
        if self.auto_max.is_some() {
            state.set_rows(self.rows);
        }
        *state.statistics.lock() = None;
    }
}

/// Gives indexes that are the same in both definitions their trees; returns the positions of those that need new ones.
fn keep_trees(old: &TableDef, new: &mut TableDef) -> Vec<usize> {
    let mut free: Vec<&IndexDef> = old.indexes.iter().collect();
    let (columns, indexes) = (&new.columns, &mut new.indexes);
    let same_keys = |o: &IndexDef, n: &IndexDef| {
        o.kind == n.kind
            && o.parts == n.parts
            && o.words == n.words
            && n.parts.iter().all(|p| {
                let (was, is) = (&old.columns[p.column], &columns[p.column]);
                was.nullable == is.nullable && same_bytes(&was.ty, &is.ty)
            })
    };
    // Same name first: of two equal indexes each keeps its own tree.
    for by_name in [true, false] {
        for index in indexes.iter_mut().filter(|i| i.id == spec::NO_TREE) {
            let found = free.iter().position(|o| same_keys(o, index) && (!by_name || same_name(&o.name, &index.name)));
            if let Some(at) = found {
                index.id = free.swap_remove(at).id;
            }
        }
    }
    (0..indexes.len()).filter(|&i| indexes[i].id == spec::NO_TREE).collect()
}

/// Whether every row of the old definition is, byte for byte and under the same key, a row of the new one.
fn keeps_rows(old: &TableDef, new: &TableDef, columns: &[Option<usize>]) -> bool {
    columns.len() == old.columns.len()
        && columns.iter().enumerate().all(|(new, old)| *old == Some(new))
        && old.columns.iter().zip(&new.columns).all(|(was, is)| {
            same_bytes(&was.ty, &is.ty) && (is.nullable || !was.nullable) && was.generated == is.generated
        })
        && old.indexes[0].kind == new.indexes[0].kind
        && old.indexes[0].parts == new.indexes[0].parts
        && same_partitions(old, new)
}

/// Whether every row is in the same partition by both definitions: they say the same of columns whose values are the same.
fn same_partitions(old: &TableDef, new: &TableDef) -> bool {
    let decided_by = |def: &TableDef| def.partitioning.as_ref().map(|partitioning| (partitioning.clone(), partitioning.columns(def)));
    match (decided_by(old), decided_by(new)) {
        (None, None) => true,
        (Some((was, was_by)), Some((is, is_by))) => {
            let names = |p: &Partitioning| p.partitions.iter().map(|part| (part.name.clone(), part.values.clone())).collect::<Vec<_>>();
            was.method == is.method && was_by == is_by && names(&was) == names(&is)
        }
        _ => false,
    }
}

/// Whether the bytes of a value, in rows and in keys, are the same in both types and mean the same.
pub(crate) fn same_bytes(old: &ColumnType, new: &ColumnType) -> bool {
    use TypeKind::{Enum, Set, VarBinary, VarChar};
    if old.unsigned != new.unsigned || old.collation != new.collation || old.float_digits != new.float_digits {
        return false;
    }
    match (&old.kind, &new.kind) {
        (VarChar(was), VarChar(is)) | (VarBinary(was), VarBinary(is)) => was <= is,
        (Enum(was), Enum(is)) | (Set(was), Set(is)) => is.starts_with(was),
        (was, is) => was == is,
    }
}

/// The counter's next value where the ALTER changes it: never below what the rows have.
fn next_auto_increment(
    old: &Arc<Table>,
    new: &TableDef,
    plan: &AlterPlan,
    snapshot: &Snapshot,
    change: &Change,
) -> Result<Option<u64>, MySqlError> {
    let Some(column) = new.auto_increment_column() else { return Ok(None) };
    let continues = old.auto_increment_column().is_some() && plan.columns[column] == old.auto_increment_column();
    if plan.spec.auto_increment.is_none() && continues && change.auto_max.is_none() {
        return Ok(None);
    }
    let present = match change.auto_max {
        Some(max) => max,
        None => plan.columns[column].map_or(Ok(0), |column| largest_value(old, column, snapshot))?,
    };
    let floor = present.saturating_add(1);
    Ok(Some(match plan.spec.auto_increment {
        Some(wanted) => wanted.max(floor),
        None if continues => old.next_auto_increment().unwrap_or(1).max(floor),
        None => floor,
    }))
}

/// The largest positive value of a column, from an index that starts with it if there is one, else from all rows.
fn largest_value(table: &Arc<Table>, column: usize, snapshot: &Snapshot) -> Result<u64, MySqlError> {
    let positive = |value: Value| match value {
        Value::Int(v) => u64::try_from(v).unwrap_or(0),
        Value::UInt(v) => v,
        Value::Float(v) => v.max(0.0) as u64,
        Value::Double(v) => v.max(0.0) as u64,
        _ => 0,
    };
    let first_part = |i: &IndexDef| i.kind != IndexKind::RowId && i.parts[0].column == column;
    let index = table.def.indexes.iter().position(first_part);
    let direction = match index {
        Some(index) if !table.def.indexes[index].parts[0].descending => Direction::Backward,
        _ => Direction::Forward,
    };
    let range = KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded };
    let mut scan = table.scan_at(snapshot, index.unwrap_or(0), &range, direction)?;
    let mut batch = RowBatch::new();
    let mut largest = 0;
    while scan.next_batch(&mut batch)? {
        for row in 0..batch.len() {
            largest = largest.max(positive(batch.value(row, column)));
            if index.is_some() {
                return Ok(largest);
            }
        }
    }
    Ok(largest)
}
