//! Building indexes, and whole tables, while others write the old ones: the rows of a snapshot first, then, round by round, what has changed since. See
//! README.md, "DDL".

use std::sync::Arc;

use highkey_storage::{ChangedKeys, IndexId, Op, SortedRows, Stage, Txn, Watch, WatchBudget};
use highkey_types::{MySqlError, RowLayout, Str, errors};

use super::DdlContext;
use super::alter::RowConversion;
use super::build::invalid_null;
use crate::def::{IndexKind, TableDef};
use crate::error;
use crate::index::{IndexCodec, clustered_key};
use crate::metadata_lock::MetadataMode;
use crate::partition::Chooser;
use crate::table::{Table, duplicate_entry};
use crate::transaction::{HeldLocks, Snapshot};

/// Bytes of notes that are few enough to be dealt with while nobody else uses the table.
const FEW: usize = 64 << 10;
/// Rounds that leave more than half of what there was, before others are kept away for the rest: they write as fast as this catches up.
const VAIN_ROUNDS: usize = 3;
/// Bytes of entries that are collected before they go into their trees.
const ENTRY_BYTES: usize = 4 << 20;
/// Rows between two looks at KILL.
const LOOK_ROWS: usize = 1024;

/// An entry of a tree: key and value.
type Entry = (Vec<u8>, Vec<u8>);

/// Which half of the changes is carried out: all that goes, before anything comes, because what comes may have the unique key of what goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Goes,
    Comes,
}

/// A row that two snapshots show differently.
pub(super) struct ChangedRow<'a> {
    /// Which of the watched tables it is of.
    part: usize,
    key: &'a [u8],
    old: Option<&'a [u8]>,
    new: Option<&'a [u8]>,
}

/// What is made of the watched rows.
pub(super) trait Target {
    /// Collects what goes or comes with a row.
    fn collect(&mut self, txn: &mut Txn, half: Half, row: &ChangedRow<'_>) -> Result<(), MySqlError>;
    /// Bytes that are collected.
    fn collected(&self) -> usize;
    /// Lets go or come what is collected. `now`: what the rows are now.
    fn apply(&mut self, txn: &mut Txn, half: Half, now: &Snapshot) -> Result<(), MySqlError>;
    /// What error 1799 names.
    fn name(&self) -> Str;
}

/// New trees are made of tables that others may use meanwhile, as far as a lock of `mode` lets them.
pub(super) struct Meanwhile<'a> {
    locks: &'a mut HeldLocks,
    mode: MetadataMode,
    /// What they change, where they may.
    changes: Option<CatchUp>,
}

impl<'a> Meanwhile<'a> {
    /// Others may use these tables, which have their own trees, from now on: `locks` were exclusive since before the snapshot.
    pub(super) fn begin(cx: &DdlContext, txn: &Txn, tables: &[Arc<Table>], seen: &Snapshot, (locks, mode): (&'a mut HeldLocks, MetadataMode)) -> Meanwhile<'a> {
        let changes = others_write(mode).then(|| CatchUp::begin(cx, txn, tables, seen));
        locks.weaken(mode);
        Meanwhile { locks, mode, changes }
    }

    /// The new trees show what the snapshot did: they catch up with what others have changed since, and nobody else uses the tables from then on.
    /// Errors: 1062, 1205, 1213, 1317, 1799 and the target's.
    pub(super) async fn end(mut self, cx: &DdlContext, txn: &mut Txn, target: &mut (impl Target + Send)) -> Result<(), MySqlError> {
        if let Some(changes) = &mut self.changes {
            changes.follow(cx, txn, target)?;
        }
        self.locks.strengthen(cx, self.mode).await?;
        match &mut self.changes {
            Some(changes) => changes.round(cx, txn, target),
            None => Ok(()),
        }
    }
}

/// Whether a lock of this mode lets others write.
pub(super) fn others_write(mode: MetadataMode) -> bool {
    mode == MetadataMode::Upgradable
}

/// How far new trees have come with what others change.
struct CatchUp {
    tables: Vec<(Arc<Table>, Watch)>,
    /// What the new trees show.
    seen: Snapshot,
}

impl CatchUp {
    /// From now on others' changes of these tables, which have their own trees, are noted. Nobody has changed anything since the snapshot, and nobody can while
    /// this is called.
    fn begin(cx: &DdlContext, txn: &Txn, tables: &[Arc<Table>], seen: &Snapshot) -> CatchUp {
        let budget = WatchBudget::new(cx.online_log);
        let watched = |table: &Arc<Table>| (table.clone(), txn.watch(table.clustered().id, &budget));
        CatchUp { tables: tables.iter().map(watched).collect(), seen: seen.clone() }
    }

    /// Bytes of notes. Error 1799.
    fn waiting(&self, target: &dyn Target) -> Result<usize, MySqlError> {
        let waiting: Option<usize> = self.tables.iter().map(|(_, watch)| watch.waiting()).sum();
        waiting.ok_or_else(|| errors::innodb_online_log_too_big(&target.name()))
    }

    /// Enters what has changed until little is left, or others are as fast. Errors: 1062, 1317, 1799 and the target's.
    fn follow(&mut self, cx: &DdlContext, txn: &mut Txn, target: &mut dyn Target) -> Result<(), MySqlError> {
        let mut vain = 0;
        while vain < VAIN_ROUNDS {
            let waiting = self.waiting(target)?;
            if waiting <= FEW {
                break;
            }
            self.round(cx, txn, target)?;
            vain += usize::from(self.waiting(target)? > waiting / 2);
        }
        Ok(())
    }

    /// Enters what has changed: everything, if nobody uses the table. Errors: 1062, 1317, 1799 and the target's.
    fn round(&mut self, cx: &DdlContext, txn: &mut Txn, target: &mut dyn Target) -> Result<(), MySqlError> {
        // The snapshot comes before the notes: see `Watch`.
        let now = Snapshot { inner: txn.fresh_snapshot(), epoch: self.seen.epoch };
        let changed: Option<Vec<ChangedKeys>> = self.tables.iter().map(|(_, watch)| watch.changed(&now.inner)).collect();
        let changed = changed.ok_or_else(|| errors::innodb_online_log_too_big(&target.name()))?;
        let rows: usize = changed.iter().map(ChangedKeys::len).sum();
        cx.progress.enter(Stage::ApplyingChanges, 2 * rows as u64);
        let (mut was, mut is) = (Vec::new(), Vec::new());
        for half in [Half::Goes, Half::Comes] {
            for (part, ((table, _), keys)) in self.tables.iter().zip(&changed).enumerate() {
                let tree = table.clustered().id;
                for (at, key) in keys.iter().enumerate() {
                    if at % LOOK_ROWS == 0 {
                        cx.check_interrupt()?;
                        cx.progress.add(LOOK_ROWS.min(keys.len() - at) as u64);
                    }
                    let old = self.seen.inner.get(tree, key, &mut was).map_err(|e| table.failed(e))?.then_some(&was[..]);
                    let new = now.inner.get(tree, key, &mut is).map_err(|e| table.failed(e))?.then_some(&is[..]);
                    if old != new {
                        target.collect(txn, half, &ChangedRow { part, key, old, new })?;
                    }
                    if target.collected() >= ENTRY_BYTES {
                        target.apply(txn, half, &now)?;
                    }
                }
            }
            target.apply(txn, half, &now)?;
        }
        self.seen = now;
        Ok(())
    }
}

/// A table, or a partition, that gets trees.
struct Part<'a> {
    /// The definition that has them.
    def: &'a TableDef,
    codecs: Vec<IndexCodec>,
    /// By index: entries that are collected.
    collected: Vec<Vec<Entry>>,
}

impl<'a> Part<'a> {
    fn new(def: &'a TableDef) -> Part<'a> {
        let codecs: Vec<_> = (0..def.indexes.len()).map(|i| IndexCodec::new(def, i)).collect();
        Part { def, collected: vec![Vec::new(); codecs.len()], codecs }
    }

    fn failed(&self, error: highkey_storage::Error) -> MySqlError {
        error::storage(error, &self.def.name)
    }

    fn corrupt(&self, index: usize) -> MySqlError {
        error::corrupt_index(&self.def.name, &self.def.indexes[index].name)
    }

    /// The entries of a row in a secondary index, ascending.
    fn entries(&self, layout: &RowLayout, index: usize, row: Option<&[u8]>, clustered: &[u8]) -> Vec<Entry> {
        let mut entries = Vec::new();
        let (mut key, mut value) = (Vec::new(), Vec::new());
        if let Some(row) = row {
            self.codecs[index].for_each_entry_of_row(layout, row, clustered, &mut key, &mut value, |key, value| {
                entries.push((key.to_vec(), value.to_vec()));
            });
        }
        entries.sort_unstable();
        entries
    }

    /// Adds an entry to those that are collected; how many bytes it has.
    fn collect(&mut self, index: usize, entry: Entry) -> usize {
        let bytes = entry.0.len() + entry.1.len();
        self.collected[index].push(entry);
        bytes
    }

    /// Lets go or come what is collected, the clustered tree first. `row_of`: finds the row of a clustered key, for error 1062.
    fn apply(&mut self, txn: &mut Txn, half: Half, layout: &RowLayout, row_of: &RowOf<'_>) -> Result<(), MySqlError> {
        for index in 0..self.codecs.len() {
            let mut entries = std::mem::take(&mut self.collected[index]);
            entries.sort_unstable();
            match half {
                Half::Goes => self.remove(txn, index, &entries)?,
                Half::Comes => self.insert(txn, index, &entries, layout, row_of)?,
            }
        }
        Ok(())
    }

    fn remove(&self, txn: &mut Txn, index: usize, entries: &[Entry]) -> Result<(), MySqlError> {
        for (key, _) in entries {
            loop {
                match txn.delete(self.codecs[index].id, key).map_err(|e| self.failed(e))? {
                    Op::Done(true) => break,
                    Op::Done(false) => return Err(self.corrupt(index)),
                    Op::Wait(wait) => wait.wait().map_err(error::lock)?,
                }
            }
        }
        Ok(())
    }

    fn insert(&self, txn: &mut Txn, index: usize, entries: &[Entry], layout: &RowLayout, row_of: &RowOf<'_>) -> Result<(), MySqlError> {
        let duplicate = |txn: &mut Txn, (key, value): &Entry| {
            let row = match index {
                0 => value.clone(),
                _ => {
                    let clustered = clustered_key(key, value).ok_or_else(|| self.corrupt(index))?;
                    row_of(txn, self.codecs[0].id, clustered)?.ok_or_else(|| self.corrupt(index))?
                }
            };
            Ok::<_, MySqlError>(duplicate_entry(self.def, index, &layout.values(&row)))
        };
        if let Some(twice) = entries.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            return Err(duplicate(txn, &twice[1])?);
        }
        let mut rows = SortedRows::new();
        entries.iter().for_each(|(key, value)| rows.push(key, value));
        let mut done = 0;
        while done < entries.len() {
            match txn.insert_batch(self.codecs[index].id, &rows, done).map_err(|e| self.failed(e))? {
                Op::Done(outcome) => {
                    done += outcome.inserted;
                    if outcome.duplicate {
                        return Err(duplicate(txn, &entries[done])?);
                    }
                }
                Op::Wait(wait) => wait.wait().map_err(error::lock)?,
            }
        }
        Ok(())
    }
}

/// Finds the row of a key in a clustered tree.
type RowOf<'a> = dyn Fn(&mut Txn, IndexId, &[u8]) -> Result<Option<Vec<u8>>, MySqlError> + 'a;

/// New indexes of tables whose rows stay where they are.
pub(super) struct NewIndexes<'a> {
    layout: RowLayout,
    parts: Vec<Part<'a>>,
    /// Of each part: which indexes are new.
    made: &'a [Vec<usize>],
    bytes: usize,
}

impl<'a> NewIndexes<'a> {
    /// `defs`: of the tables in their order, the definition that has the indexes.
    pub(super) fn new(defs: &'a [TableDef], made: &'a [Vec<usize>]) -> NewIndexes<'a> {
        NewIndexes { layout: layout_of(&defs[0]), parts: defs.iter().map(Part::new).collect(), made, bytes: 0 }
    }
}

impl Target for NewIndexes<'_> {
    fn collect(&mut self, _: &mut Txn, half: Half, row: &ChangedRow<'_>) -> Result<(), MySqlError> {
        let part = &mut self.parts[row.part];
        for &index in &self.made[row.part] {
            let [old, new] = [row.old, row.new].map(|bytes| part.entries(&self.layout, index, bytes, row.key));
            let (wanted, others) = if half == Half::Goes { (old, new) } else { (new, old) };
            for entry in wanted {
                if others.binary_search(&entry).is_err() {
                    self.bytes += part.collect(index, entry);
                }
            }
        }
        Ok(())
    }

    fn collected(&self) -> usize {
        self.bytes
    }

    fn apply(&mut self, txn: &mut Txn, half: Half, now: &Snapshot) -> Result<(), MySqlError> {
        self.bytes = 0;
        let name = self.parts[0].def.name.clone();
        let row_of = |_: &mut Txn, tree: IndexId, key: &[u8]| {
            let mut row = Vec::new();
            let found = now.inner.get(tree, key, &mut row).map_err(|e| error::storage(e, &name))?;
            Ok(found.then_some(row))
        };
        for part in &mut self.parts {
            part.apply(txn, half, &self.layout, &row_of)?;
        }
        Ok(())
    }

    fn name(&self) -> Str {
        let named = self.parts.iter().zip(self.made).find_map(|(part, made)| made.first().map(|index| part.def.indexes[*index].name.clone()));
        named.unwrap_or_default()
    }
}

/// A table that takes the place of another one, whose rows are converted.
pub(super) struct NewTable<'a, 'c> {
    /// How the rows of the watched tables are encoded.
    from: Arc<RowLayout>,
    layout: RowLayout,
    convert: RowConversion<'c>,
    chooser: Option<Chooser>,
    parts: Vec<Part<'a>>,
    bytes: usize,
}

impl<'a, 'c> NewTable<'a, 'c> {
    /// `defs`: what `tree_defs` says of `def`.
    pub(super) fn new(old: &Table, def: &TableDef, defs: &'a [TableDef], convert: RowConversion<'c>) -> Result<NewTable<'a, 'c>, MySqlError> {
        let chooser = def.partitioning.as_ref().map(|partitioning| Chooser::new(def, partitioning)).transpose()?;
        let parts = defs.iter().map(Part::new).collect();
        Ok(NewTable { from: old.layout.clone(), layout: layout_of(def), convert, chooser, parts, bytes: 0 })
    }

    /// Where a row is in the new table, and what it is there: partition, clustered key and bytes. Errors: 1138, 1526, 1690 and those of the conversion.
    fn place(&mut self, key: &[u8], row: &[u8]) -> Result<(usize, Vec<u8>, Vec<u8>), MySqlError> {
        let values = (self.convert)(self.from.values(row))?;
        let at = self.chooser.as_ref().map_or(Ok(0), |chooser| chooser.partition_of(&values))?;
        let part = &self.parts[at];
        invalid_null(part.def, &values)?;
        let (mut clustered, mut bytes) = (Vec::new(), Vec::new());
        match part.codecs[0].kind {
            // Rows keep their numbers.
            IndexKind::RowId => clustered.extend_from_slice(key),
            _ => {
                part.codecs[0].encode(&values, &mut clustered);
            }
        }
        self.layout.encode(&values, &mut bytes);
        Ok((at, clustered, bytes))
    }
}

impl Target for NewTable<'_, '_> {
    fn collect(&mut self, txn: &mut Txn, half: Half, row: &ChangedRow<'_>) -> Result<(), MySqlError> {
        let Some(bytes) = (if half == Half::Goes { row.old } else { row.new }) else { return Ok(()) };
        let (at, clustered, mut bytes) = self.place(row.key, bytes)?;
        let part = &mut self.parts[at];
        // What came once goes as it is there: a default may be another one now.
        if half == Half::Goes && !txn.get_latest(part.codecs[0].id, &clustered, &mut bytes).map_err(|e| part.failed(e))? {
            return Err(part.corrupt(0));
        }
        for index in 1..part.codecs.len() {
            for entry in part.entries(&self.layout, index, Some(&bytes), &clustered) {
                self.bytes += part.collect(index, entry);
            }
        }
        self.bytes += part.collect(0, (clustered, bytes));
        Ok(())
    }

    fn collected(&self) -> usize {
        self.bytes
    }

    fn apply(&mut self, txn: &mut Txn, half: Half, _: &Snapshot) -> Result<(), MySqlError> {
        self.bytes = 0;
        let name = self.parts[0].def.name.clone();
        let row_of = |txn: &mut Txn, tree: IndexId, key: &[u8]| {
            let mut row = Vec::new();
            let found = txn.get_latest(tree, key, &mut row).map_err(|e| error::storage(e, &name))?;
            Ok(found.then_some(row))
        };
        self.parts.iter_mut().try_for_each(|part| part.apply(txn, half, &self.layout, &row_of))
    }

    fn name(&self) -> Str {
        self.parts[0].def.indexes[0].name.clone()
    }
}

fn layout_of(def: &TableDef) -> RowLayout {
    let types: Vec<_> = def.columns.iter().map(|c| c.ty.clone()).collect();
    RowLayout::new(&types)
}

#[cfg(test)]
mod tests {
    use highkey_storage::{Direction, Isolation, SimConfig, SimDisk, SystemClock};
    use highkey_types::{Collation, ColumnType, TypeKind, Value};

    use super::*;
    use super::super::build::TreeBuilder;
    use crate::block_on;
    use crate::commit::BinlogOptions;
    use crate::database::Database;
    use crate::def::{ColumnDef, IndexKind, IndexSpec, SchemaDef, TableSpec};
    use crate::insert::OnDuplicate;
    use crate::transaction::Transaction;
    use crate::{LockMode, LockWaitPolicy};

    /// A table of `id`, `u` and `words` with ten rows, and what new indexes are made of: of `u` a unique one, of `words` one of words.
    struct Scene {
        db: Arc<Database>,
        table: Arc<Table>,
        def: TableDef,
        txn: Txn,
        snapshot: Snapshot,
    }

    const MADE: [usize; 2] = [1, 2];

    fn row(id: i64, u: i64, words: &str) -> Vec<Value> {
        vec![Value::Int(id), Value::Int(u), Value::text(words)]
    }

    impl Scene {
        fn new() -> Scene {
            let options = highkey_storage::Options { buffer_pool_bytes: 16 << 20, abort_on_fatal: false, ..Default::default() };
            let disk = Arc::new(SimDisk::new(SimConfig::default()));
            let db = Database::open_on(disk, options, Arc::new(SystemClock::new()), BinlogOptions::default()).unwrap();
            let collation = Collation::utf8mb4();
            let cx = DdlContext::default();
            block_on(db.create_schema(&cx, SchemaDef { name: "s".into(), collation })).unwrap();
            let text = ColumnType::with_collation(TypeKind::VarChar(100), collation);
            let columns = vec![
                ColumnDef::new("id", ColumnType::new(TypeKind::Int)).not_null(),
                ColumnDef::new("u", ColumnType::new(TypeKind::Int)),
                ColumnDef::new("words", text),
            ];
            let mut spec = TableSpec::new("s", "t", columns, vec![IndexSpec::primary(&[0])]);
            let table = block_on(db.create_table(&cx, spec.clone())).unwrap();
            let mut define = |txn: &mut Txn| {
                spec.indexes.push(IndexSpec::unique("u", &[1]));
                spec.indexes.push(IndexSpec::new(IndexKind::FullText, Some("words"), &[2]));
                let mut def = crate::ddl::define(&spec).unwrap();
                def.indexes[0].id = table.def.indexes[0].id;
                MADE.iter().for_each(|index| def.indexes[*index].id = txn.create_index().unwrap());
                def
            };
            let mut txn = db.engine().begin(Isolation::ReadCommitted);
            let def = define(&mut txn);
            let rows: Vec<_> = (0..10).map(|id| row(id, id, &format!("word{id} all"))).collect();
            let mut writer = begin(&db, &table);
            block_on(table.insert(&mut writer, &rows, OnDuplicate::Error)).unwrap();
            block_on(writer.commit()).unwrap();
            let snapshot = Snapshot { inner: txn.snapshot(), epoch: db.epoch() };
            Scene { db, table, def, txn, snapshot }
        }

        /// What the new indexes show of the snapshot is entered, and others' changes are noted from now on.
        fn begin(&mut self, cx: &DdlContext) -> CatchUp {
            let changes = CatchUp::begin(cx, &self.txn, std::slice::from_ref(&self.table), &self.snapshot);
            let mut builder = TreeBuilder::new(self.db.engine(), &self.def, MADE.to_vec(), cx);
            builder.add_table(&self.table, &self.snapshot, cx).unwrap();
            builder.finish(&mut self.txn, cx).unwrap();
            changes
        }

        fn round(&mut self, cx: &DdlContext, changes: &mut CatchUp) -> Result<(), MySqlError> {
            let (defs, made) = ([self.def.clone()], [MADE.to_vec()]);
            changes.round(cx, &mut self.txn, &mut NewIndexes::new(&defs, &made))
        }

        /// The new indexes have an entry for each row and word, and no other.
        fn check(&mut self) {
            let (part, layout) = (Part::new(&self.def), layout_of(&self.def));
            let now = self.txn.fresh_snapshot();
            let read = |tree| {
                let mut scan = now.scan(tree, highkey_storage::Bounds::all(), Direction::Forward);
                let (mut leaf, mut found) = (highkey_storage::LeafRows::new(), Vec::new());
                while scan.next_leaf(&mut leaf).unwrap() {
                    found.extend((0..leaf.len()).map(|row| (leaf.key(row).to_vec(), leaf.value(row).to_vec())));
                }
                found
            };
            let rows = read(self.table.clustered().id);
            for index in MADE {
                let mut expected: Vec<Entry> = rows.iter().flat_map(|(key, row)| part.entries(&layout, index, Some(row), key)).collect();
                expected.sort();
                assert!(read(self.def.indexes[index].id) == expected, "index {index}");
            }
        }

        fn writer(&self) -> Transaction {
            begin(&self.db, &self.table)
        }

        fn insert(&self, writer: &mut Transaction, row: Vec<Value>) {
            block_on(self.table.insert(writer, &[row], OnDuplicate::Error)).unwrap();
        }

        /// Deletes the row, or replaces it.
        fn change(&self, writer: &mut Transaction, id: i64, new: Option<Vec<Value>>) {
            let old = block_on(self.table.lock_get(writer, 0, &[Value::Int(id)], LockMode::Exclusive, LockWaitPolicy::Wait)).unwrap().unwrap();
            match new {
                Some(new) => drop(block_on(self.table.update(writer, &old, &new)).unwrap()),
                None => drop(block_on(self.table.delete(writer, &old)).unwrap()),
            }
        }
    }

    fn begin(db: &Arc<Database>, table: &Arc<Table>) -> Transaction {
        let mut txn = db.begin(Isolation::ReadCommitted);
        assert!(block_on(txn.open_to_write(table)).unwrap());
        txn
    }

    fn commit(txn: Transaction) {
        block_on(txn.commit()).unwrap();
    }

    #[test]
    fn every_change_is_followed_whenever_it_commits() {
        let mut scene = Scene::new();
        let cx = DdlContext::default();
        let mut changes = scene.begin(&cx);
        scene.check();
        // One is committed before the first round, one between two rounds, one behind the second, one never; one row has two writers one after the other.
        let (mut first, mut second, mut third, mut never) = (scene.writer(), scene.writer(), scene.writer(), scene.writer());
        scene.insert(&mut first, row(20, 20, "new all"));
        scene.change(&mut first, 1, Some(row(1, 101, "word1 changed")));
        scene.change(&mut first, 2, None);
        scene.insert(&mut second, row(21, 21, "second"));
        scene.change(&mut second, 3, None);
        scene.change(&mut third, 4, Some(row(4, 4, "other words")));
        scene.change(&mut never, 5, None);
        scene.insert(&mut never, row(22, 22, "never"));
        commit(first);
        scene.change(&mut third, 20, Some(row(20, 20, "newer")));
        scene.round(&cx, &mut changes).unwrap();
        scene.check();
        commit(second);
        scene.round(&cx, &mut changes).unwrap();
        scene.check();
        // What came is gone again, with another row under its unique key.
        let mut last = scene.writer();
        scene.change(&mut last, 21, None);
        scene.insert(&mut last, row(23, 21, "second"));
        commit(third);
        commit(last);
        block_on(never.rollback()).unwrap();
        scene.round(&cx, &mut changes).unwrap();
        scene.check();
        let left: Vec<_> = changes.tables.iter().map(|(_, watch)| watch.waiting()).collect();
        assert_eq!(left, [Some(0)], "all are over");
    }

    #[test]
    fn keys_that_go_round_among_rows_are_no_duplicates() {
        let mut scene = Scene::new();
        let cx = DdlContext::default();
        let mut changes = scene.begin(&cx);
        let mut writer = scene.writer();
        for id in 0..10 {
            scene.change(&mut writer, id, Some(row(id, (id + 1) % 10, "round")));
        }
        commit(writer);
        scene.round(&cx, &mut changes).unwrap();
        scene.check();
    }

    #[test]
    fn a_duplicate_that_comes_meanwhile_is_found() {
        for (id, u) in [(30, 7), (31, 40)] {
            let mut scene = Scene::new();
            let cx = DdlContext::default();
            let mut changes = scene.begin(&cx);
            let mut writer = scene.writer();
            scene.insert(&mut writer, row(id, u, ""));
            scene.insert(&mut writer, row(32, 40, ""));
            commit(writer);
            let error = scene.round(&cx, &mut changes).unwrap_err();
            assert_eq!((error.code, &*error.message), (1062, &*format!("Duplicate entry '{u}' for key 'u'")));
        }
    }

    #[test]
    fn more_changes_than_there_is_room_for_end_it() {
        let mut scene = Scene::new();
        let cx = DdlContext { online_log: 100, ..DdlContext::default() };
        let mut changes = scene.begin(&cx);
        let mut writer = scene.writer();
        scene.change(&mut writer, 1, None);
        commit(writer);
        scene.round(&cx, &mut changes).unwrap();
        scene.check();
        let mut writer = scene.writer();
        (2..10).for_each(|id| scene.change(&mut writer, id, None));
        commit(writer);
        let error = scene.round(&cx, &mut changes).unwrap_err();
        assert_eq!(error.code, 1799);
        assert!(error.message.starts_with("Creating index 'u' required more than 'innodb_online_alter_log_max_size'"), "{}", error.message);
    }

    #[test]
    fn an_empty_table_that_is_watched_is_not_loaded_behind_its_back() {
        let mut scene = Scene::new();
        let mut writer = scene.writer();
        (0..10).for_each(|id| scene.change(&mut writer, id, None));
        commit(writer);
        let cx = DdlContext::default();
        scene.txn.begin_statement();
        scene.snapshot = Snapshot { inner: scene.txn.snapshot(), epoch: scene.db.epoch() };
        let mut changes = scene.begin(&cx);
        let mut writer = scene.writer();
        assert!(writer.inner().load(scene.table.clustered().id).unwrap().is_none());
        scene.insert(&mut writer, row(1, 1, "one"));
        commit(writer);
        scene.round(&cx, &mut changes).unwrap();
        scene.check();
    }
}
