//! Range scans: consistent ones in batches, also from other threads, and locking ones row by row.

use std::collections::{BTreeSet, VecDeque};
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

use highkey_storage::{Bounds, Direction, IndexId, LeafRows, LeafRun, Locked, LockMode, LockWaitPolicy, MORSEL_LEAVES, Op, Scan};
use highkey_types::{MySqlError, Value, key_part_len};

use crate::covering::Covering;
use crate::index::{self, IndexCodec, successor};
use crate::partition::{PartsLocking, PartsScan};
use crate::row::{Row, RowBatch};
use crate::table::{Table, granted};
use crate::transaction::{Snapshot, Transaction};

/// Bytes of rows after which a batch over a secondary index is given out.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// Rows of the first batch over a secondary index; each batch may be twice the one before. Most such scans want few rows.
pub(crate) const FIRST_BATCH_ROWS: usize = 16;

/// A range of an index, in index order (for a descending part the larger value is the lower bound).
///
/// A bound may name fewer values than the index has parts: it then stands for all keys that start with them.
/// On a part with a prefix length the range may give more rows than asked for, never fewer: check the condition again.
/// NULLs come first: `a < 5` has the lower bound `Excluded([NULL])`.
/// Of a table without primary key the clustered index has row ids: one is named by its bytes, the clustered key.
#[derive(Clone, Debug)]
pub struct KeyRange {
    pub lower: Bound<Vec<Value>>,
    pub upper: Bound<Vec<Value>>,
}

impl KeyRange {
    pub fn all() -> KeyRange {
        KeyRange { lower: Bound::Unbounded, upper: Bound::Unbounded }
    }

    /// All keys that start with `values`.
    pub fn prefix(values: &[Value]) -> KeyRange {
        KeyRange { lower: Bound::Included(values.to_vec()), upper: Bound::Included(values.to_vec()) }
    }

    /// The key that only the last row of the range can have, if its upper bound is a whole unique key.
    fn last_key(&self, codec: &IndexCodec) -> Option<Vec<u8>> {
        let Bound::Included(values) = &self.upper else { return None };
        let whole = codec.is_unique() && values.len() == codec.parts.len() && !values.iter().any(Value::is_null);
        if !whole || codec.parts.iter().any(|part| part.prefix.is_some()) {
            return None;
        }
        let mut key = Vec::new();
        codec.encode_prefix(values, &mut key);
        Some(key)
    }

    pub(crate) fn bounds(&self, codec: &IndexCodec) -> Bounds {
        // A truncated value cannot exclude the others that share its prefix.
        let truncated = |values: &[Value]| {
            values.iter().zip(&codec.parts).any(|(_, part)| part.prefix.is_some())
        };
        let encode = |values: &[Value]| {
            let mut key = Vec::new();
            codec.encode_prefix(values, &mut key);
            key
        };
        let lower = match &self.lower {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(values) if !truncated(values) => match successor(&encode(values)) {
                Some(key) => Bound::Included(key),
                // Nothing is above it: an empty range.
                None => return Bounds::new(Bound::Excluded(Vec::new()), Bound::Excluded(Vec::new())),
            },
            Bound::Included(values) | Bound::Excluded(values) => Bound::Included(encode(values)),
        };
        let upper = match &self.upper {
            Bound::Unbounded => Bound::Unbounded,
            Bound::Excluded(values) if !truncated(values) => Bound::Excluded(encode(values)),
            Bound::Included(values) | Bound::Excluded(values) => {
                successor(&encode(values)).map_or(Bound::Unbounded, Bound::Excluded)
            }
        };
        Bounds::new(lower, upper)
    }
}

/// A piece of an index range that one task scans; see `Table::partitions`.
#[derive(Clone, Debug)]
pub struct ScanPartition(Bounds);

/// The pieces of an index range.
#[derive(Clone, Debug)]
pub struct ScanPartitions {
    pub parts: Vec<ScanPartition>,
    /// All rows of the range with the same value in the index's first column are in one piece.
    pub whole_groups: bool,
}

impl Table {
    /// Scans a range of an index under the transaction's snapshot. It also sees the transaction's own later writes:
    /// a statement that changes what it reads collects the rows first. Error 1412.
    pub fn scan(
        self: &Arc<Self>,
        txn: &mut Transaction,
        index: usize,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<TableScan, MySqlError> {
        let snapshot = txn.snapshot();
        self.scan_at(&snapshot, index, range, direction)
    }

    /// Scans a range of an index under a snapshot, on any thread. Error 1412.
    pub fn scan_at(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        index: usize,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<TableScan, MySqlError> {
        let bounds = range.bounds(&self.indexes[index]);
        match &self.parts {
            Some(parts) => self.scan_parts(parts.with_range(self, index, range), snapshot, index, &bounds, direction),
            None => self.scan_bounds(snapshot, index, bounds, direction),
        }
    }

    /// Scans one partition.
    pub fn scan_partition(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        index: usize,
        partition: &ScanPartition,
        direction: Direction,
    ) -> Result<TableScan, MySqlError> {
        self.scan_bounds(snapshot, index, partition.0.clone(), direction)
    }

    /// Cuts a range into pieces that together are the range, in index order: some thousand rows each, whoever asks; or, if even a `small` range shall
    /// be cut, leaf by leaf.
    pub fn partitions(&self, index: usize, range: &KeyRange, small: bool) -> Result<ScanPartitions, MySqlError> {
        if let Some(parts) = &self.parts {
            return self.pieces_of_parts(parts.with_range(self, index, range), index, range, small);
        }
        let codec = &self.indexes[index];
        let bounds = range.bounds(codec);
        let first = codec.parts.first();
        let group = |cut: &[u8]| first.map_or(cut.len(), |first| key_part_len(first, cut));
        let morsels = self.engine.morsels(codec.id, &bounds, if small { 1 } else { MORSEL_LEAVES }, group).map_err(|e| self.failed(e))?;
        Ok(ScanPartitions { parts: morsels.parts.into_iter().map(ScanPartition).collect(), whole_groups: morsels.whole_groups && first.is_some() })
    }

    pub(crate) fn scan_bounds(
        self: &Arc<Self>,
        snapshot: &Snapshot,
        index: usize,
        bounds: Bounds,
        direction: Direction,
    ) -> Result<TableScan, MySqlError> {
        self.check_view(snapshot.epoch)?;
        match &self.parts {
            Some(parts) => self.scan_parts(parts.selected().cloned().collect(), snapshot, index, &bounds, direction),
            None => Ok(TableScan::Tree(self.scan_tree(snapshot, index, bounds, direction))),
        }
    }

    fn scan_tree(self: &Arc<Self>, snapshot: &Snapshot, index: usize, bounds: Bounds, direction: Direction) -> TreeScan {
        let asked = (index != 0).then(|| bounds.clone());
        let scan = snapshot.inner.scan(self.indexes[index].id, bounds, direction);
        TreeScan {
            table: self.clone(),
            snapshot: snapshot.clone(),
            index,
            direction,
            scan,
            entries: LeafRows::new(),
            position: 0,
            rows_max: FIRST_BATCH_ROWS,
            row: Vec::new(),
            covering: None,
            bounds: asked,
            ahead: VecDeque::new(),
            replaced: BTreeSet::new(),
        }
    }

    /// Scans the same range of some partitions. Error 1412.
    fn scan_parts(
        self: &Arc<Self>,
        parts: Vec<Arc<Table>>,
        snapshot: &Snapshot,
        index: usize,
        bounds: &Bounds,
        direction: Direction,
    ) -> Result<TableScan, MySqlError> {
        self.check_view(snapshot.epoch)?;
        let mut scans: Vec<TreeScan> = parts.iter().map(|part| part.scan_tree(snapshot, index, bounds.clone(), direction)).collect();
        Ok(match (scans.len(), scans.pop()) {
            (1, Some(only)) => TableScan::Tree(only),
            (_, last) => {
                scans.extend(last);
                TableScan::Parts(PartsScan::new(self.clone(), index, direction, scans))
            }
        })
    }

    /// As `partitions`: the range is cut wherever it is cut in one of the trees, so that a piece has about as many rows of all of them together.
    fn pieces_of_parts(&self, parts: Vec<Arc<Table>>, index: usize, range: &KeyRange, small: bool) -> Result<ScanPartitions, MySqlError> {
        let mut whole_groups = true;
        let mut cuts: Vec<Vec<u8>> = Vec::new();
        for part in &parts {
            let pieces = part.partitions(index, range, small)?;
            whole_groups &= pieces.whole_groups;
            cuts.extend(pieces.parts.into_iter().skip(1).filter_map(|piece| match piece.0.lower {
                Bound::Included(key) => Some(key),
                _ => None,
            }));
        }
        cuts.sort_unstable();
        cuts.dedup();
        let bounds = range.bounds(&self.indexes[index]);
        let mut lower = bounds.lower;
        let mut pieces = Vec::with_capacity(cuts.len() + 1);
        for cut in cuts {
            pieces.push(ScanPartition(Bounds::new(std::mem::replace(&mut lower, Bound::Included(cut.clone())), Bound::Excluded(cut))));
        }
        pieces.push(ScanPartition(Bounds::new(lower, bounds.upper)));
        Ok(ScanPartitions { parts: pieces, whole_groups: whole_groups && !self.indexes[index].parts.is_empty() })
    }

    /// Locks a range of the clustered index as it is: until the transaction ends nobody else inserts into it, or changes a row of it or locks one
    /// exclusively. What others have changed and not committed is waited for. A `fresh_snapshot` taken then shows what was locked.
    /// Errors: 1205, 1213, 1317.
    pub async fn share_range(&self, txn: &mut Transaction, range: &KeyRange) -> Result<(), MySqlError> {
        match &self.parts {
            Some(parts) => {
                for part in parts.with_range(self, 0, range) {
                    part.share_tree_range(txn, range).await?;
                }
                Ok(())
            }
            None => self.share_tree_range(txn, range).await,
        }
    }

    async fn share_tree_range(&self, txn: &mut Transaction, range: &KeyRange) -> Result<(), MySqlError> {
        let mut locking = txn.inner().share_range(self.clustered().id, range.bounds(self.clustered()));
        granted!(self, locking.lock(txn.inner()));
        Ok(())
    }

    /// Scans a range of an index for rows to lock: latest committed versions, each locked before it is given. At REPEATABLE READ and SERIALIZABLE the
    /// gaps between them are locked too, as far as the scan gets.
    pub fn scan_locking(
        self: &Arc<Self>,
        txn: &mut Transaction,
        index: usize,
        range: &KeyRange,
        direction: Direction,
        mode: LockMode,
        policy: LockWaitPolicy,
    ) -> LockingScan {
        let codec = &self.indexes[index];
        let (bounds, last) = (range.bounds(codec), range.last_key(codec));
        let Some(parts) = &self.parts else {
            return LockingScan::Tree(self.scan_locking_bounds(txn, index, bounds, last, direction, mode, policy));
        };
        let parts = parts.with_range(self, index, range);
        let mut scans: Vec<TreeLocking> =
            parts.iter().map(|part| part.scan_locking_bounds(txn, index, bounds.clone(), last.clone(), direction, mode, policy)).collect();
        match (scans.len(), scans.pop()) {
            (1, Some(only)) => LockingScan::Tree(only),
            (_, last) => {
                scans.extend(last);
                LockingScan::Parts(PartsLocking::new(self.clone(), index, direction, scans))
            }
        }
    }

    /// The same between encoded keys, of a table that has its own trees; `last` as in `Txn::scan_latest`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn scan_locking_bounds(
        self: &Arc<Self>,
        txn: &mut Transaction,
        index: usize,
        bounds: Bounds,
        last: Option<Vec<u8>>,
        direction: Direction,
        mode: LockMode,
        policy: LockWaitPolicy,
    ) -> TreeLocking {
        let scan = txn.inner().scan_latest(self.indexes[index].id, bounds, direction, mode, last);
        TreeLocking {
            table: self.clone(),
            index,
            scan,
            entries: LeafRows::new(),
            position: 0,
            end: 0,
            mode,
            policy,
            entry_key: Vec::new(),
            entry_value: Vec::new(),
        }
    }
}

impl Table {
    /// Whether a row has this entry in a secondary index. What READ UNCOMMITTED reads changes between the entry and its row.
    pub(crate) fn has_entry(&self, index: usize, row: &[u8], clustered: &[u8], entry: &[u8]) -> bool {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        self.indexes[index].entry_of_row(&self.layout, row, clustered, &mut key, &mut value);
        key == entry
    }
}

/// A consistent scan. Send: it may move to another thread between batches.
// One for each scan: that of one tree is not worth a box.
#[allow(clippy::large_enum_variant)]
pub enum TableScan {
    Tree(TreeScan),
    Parts(PartsScan),
}

impl TableScan {
    /// Replaces the batch by the next rows, at least one. False at the end.
    pub fn next_batch(&mut self, batch: &mut RowBatch) -> Result<bool, MySqlError> {
        match self {
            TableScan::Tree(scan) => scan.next_batch(batch),
            TableScan::Parts(scan) => scan.next_batch(batch),
        }
    }

    /// No other columns of the rows will be asked for than these: if the entries of a secondary index have them, the rows are made of the entries, with NULL for
    /// all other columns (`Table::covers`). To be said before the first batch. The clustered key is there in any case: numbers of no column are passed over.
    pub fn of_columns(mut self, columns: &[usize]) -> TableScan {
        match &mut self {
            TableScan::Tree(scan) => scan.of_columns(columns),
            TableScan::Parts(scan) => scan.of_columns(columns),
        }
        self
    }

    /// Goes to the next leaf counting its rows without reading them: COUNT(*).
    pub fn count_batch(&mut self) -> Result<Option<u64>, MySqlError> {
        match self {
            TableScan::Tree(scan) => scan.count_batch(),
            TableScan::Parts(scan) => scan.count_batch(),
        }
    }

    /// Begins to note which leaves the rows come from, for `take_run`. For forward scans of the clustered index of one tree; others never have a run.
    /// `parts`: of the first and the last leaf it may be a part, because other scans have the same bounds.
    pub fn start_run(&mut self, parts: bool) {
        if let TableScan::Tree(scan) = self {
            scan.scan.start_run(parts);
        }
    }

    /// The leaves read since `start_run`; `None` unless all their rows are for every snapshot, now and later, until the leaves change.
    pub fn take_run(&mut self) -> Option<LeafRun> {
        match self {
            TableScan::Tree(scan) => scan.scan.take_run().filter(|_| scan.index == 0),
            TableScan::Parts(_) => None,
        }
    }

    /// True if the leaves of the run are as they were: the rows read from them then are those to be read now.
    pub fn is_unchanged(&mut self, run: &LeafRun) -> Result<bool, MySqlError> {
        match self {
            TableScan::Tree(scan) => scan.scan.is_unchanged(run).map_err(|e| scan.table.failed(e)),
            TableScan::Parts(_) => Ok(false),
        }
    }

    /// The key at which a forward scan of the clustered index goes on; `None` at its end, and of partitions.
    pub fn position(&self) -> Option<&[u8]> {
        match self {
            TableScan::Tree(scan) => scan.scan.position(),
            TableScan::Parts(_) => None,
        }
    }

    /// The key at which a forward scan of the clustered index ends; `None` is the end of the index.
    pub fn upper(&self) -> Option<&[u8]> {
        match self {
            TableScan::Tree(scan) => scan.scan.upper(),
            TableScan::Parts(_) => None,
        }
    }

    /// A forward scan of the clustered index of one tree goes on at `key`; `None` ends it.
    pub fn skip_to(&mut self, key: Option<&[u8]>) {
        if let TableScan::Tree(scan) = self {
            scan.scan.skip_to(key);
        }
    }

    pub fn table(&self) -> &Arc<Table> {
        match self {
            TableScan::Tree(scan) => &scan.table,
            TableScan::Parts(scan) => &scan.table,
        }
    }
}

/// A consistent scan of one tree, and the rows that its entries lead to.
pub struct TreeScan {
    table: Arc<Table>,
    snapshot: Snapshot,
    index: usize,
    direction: Direction,
    scan: Scan,
    /// The present leaf of a secondary index.
    entries: LeafRows,
    position: usize,
    rows_max: usize,
    row: Vec<u8>,
    /// The rows are made of the entries.
    covering: Option<Covering>,
    /// Those of a scan of a secondary index, until it begins.
    bounds: Option<Bounds>,
    /// Clustered keys of rows whose entries the snapshot does not see right (E5), and the entries that they have for it, in the order of the scan.
    replaced: BTreeSet<Vec<u8>>,
    ahead: VecDeque<(Vec<u8>, Vec<u8>)>,
}

impl TreeScan {
    /// As `TableScan::of_columns`.
    pub(crate) fn of_columns(&mut self, columns: &[usize]) {
        // E3: what is not committed may be an entry without its row, or with another one's.
        if !self.snapshot.inner.is_uncommitted() {
            self.covering = Covering::new(&self.table, self.index, columns);
        }
    }

    /// As `TableScan::next_batch`.
    pub(crate) fn next_batch(&mut self, batch: &mut RowBatch) -> Result<bool, MySqlError> {
        if self.index == 0 {
            batch.set_layout(&self.table.layout);
            return self.scan.next_leaf(&mut batch.leaf).map_err(|e| self.table.failed(e));
        }
        if let Some(bounds) = self.bounds.take() {
            self.find_replaced(&bounds)?;
        }
        let table = &self.table;
        batch.start_gathering(&table.layout);
        while batch.rows.len() < self.rows_max && batch.bytes.len() < BATCH_BYTES {
            if self.position == self.entries.len() {
                // A batch is of one leaf, unless READ UNCOMMITTED has passed over all of it.
                if !batch.rows.is_empty() {
                    break;
                }
                self.position = 0;
                if !self.scan.next_leaf(&mut self.entries).map_err(|e| table.failed(e))? && self.ahead.is_empty() {
                    return Ok(false);
                }
            }
            let next = (self.position < self.entries.len()).then(|| (self.entries.key(self.position), self.entries.value(self.position)));
            let is_first = |(key, _): &(Vec<u8>, Vec<u8>)| {
                next.is_none_or(|(other, _)| if self.direction == Direction::Forward { key.as_slice() < other } else { key.as_slice() > other })
            };
            let own = if self.ahead.front().is_some_and(is_first) { self.ahead.pop_front() } else { None };
            let (key, value) = match (&own, next) {
                (Some((key, value)), _) => (key.as_slice(), value.as_slice()),
                (None, Some(next)) => next,
                (None, None) => continue,
            };
            let clustered = index::clustered_key(key, value).ok_or_else(|| table.corrupt(self.index))?;
            if own.is_none() {
                self.position += 1;
                if !self.replaced.is_empty() && self.replaced.contains(clustered) {
                    continue;
                }
            }
            if let Some(covering) = &mut self.covering
                && covering.restore(table, key, clustered, &mut self.row)
            {
                batch.gather(clustered, &self.row);
                continue;
            }
            let id = table.clustered().id;
            if !self.snapshot.inner.get(id, clustered, &mut self.row).map_err(|e| table.failed(e))? {
                if self.snapshot.inner.is_uncommitted() {
                    continue;
                }
                return Err(table.corrupt(self.index));
            }
            if self.snapshot.inner.is_uncommitted() && !table.has_entry(self.index, &self.row, clustered, key) {
                continue;
            }
            batch.gather(clustered, &self.row);
        }
        self.rows_max = self.rows_max.saturating_mul(2);
        Ok(true)
    }

    /// Rows whose entries do not tell what the snapshot sees of them are found by what it sees (E5).
    fn find_replaced(&mut self, bounds: &Bounds) -> Result<(), MySqlError> {
        let table = &self.table;
        let clustered = table.clustered().id;
        self.replaced = self.snapshot.inner.replaced_unseen(clustered);
        let mut ahead = Vec::new();
        for row in &self.replaced {
            if !self.snapshot.inner.get(clustered, row, &mut self.row).map_err(|e| table.failed(e))? {
                continue;
            }
            let (mut key, mut value) = (Vec::new(), Vec::new());
            table.indexes[self.index].entry_of_row(&table.layout, &self.row, row, &mut key, &mut value);
            if (bounds.lower.as_ref(), bounds.upper.as_ref()).contains(&key) {
                ahead.push((key, value));
            }
        }
        ahead.sort_unstable();
        if self.direction == Direction::Backward {
            ahead.reverse();
        }
        self.ahead = ahead.into();
        Ok(())
    }

    /// As `TableScan::count_batch`.
    pub(crate) fn count_batch(&mut self) -> Result<Option<u64>, MySqlError> {
        if let Some(bounds) = self.bounds.take() {
            self.find_replaced(&bounds)?;
        }
        if self.index != 0 && (self.snapshot.inner.is_uncommitted() || !self.replaced.is_empty()) {
            let mut batch = RowBatch::new();
            return Ok(self.next_batch(&mut batch)?.then(|| batch.len() as u64));
        }
        self.scan.count_leaf().map_err(|e| self.table.failed(e))
    }
}

/// A row of a locking scan that is read before it is locked; see `LockingScan::next_semi_consistent`.
pub enum SemiConsistent {
    Locked(Row),
    /// Somebody else has it: its last committed version.
    Committed(Row),
}

/// A locking scan.
#[allow(clippy::large_enum_variant)]
pub enum LockingScan {
    Tree(TreeLocking),
    Parts(PartsLocking),
}

impl LockingScan {
    /// The same scan for whoever does not ask for the order of the index: partitions are read one after the other, and no row is locked ahead, so that
    /// `Table::unlock` can give back each row that is not wanted.
    pub fn in_any_order(mut self) -> LockingScan {
        if let LockingScan::Parts(scan) = &mut self {
            scan.give_up_order();
        }
        self
    }

    /// The next row, locked. None at the end. `txn` is the transaction that the scan was made with.
    /// Errors: 1205, 1213, 1317, 3572.
    pub async fn next(&mut self, txn: &mut Transaction) -> Result<Option<Row>, MySqlError> {
        match self {
            LockingScan::Tree(scan) => scan.next(txn).await,
            LockingScan::Parts(scan) => Ok(scan.next(txn, false).await?.map(|found| match found {
                SemiConsistent::Locked(row) | SemiConsistent::Committed(row) => row,
            })),
        }
    }

    /// As `next`, for an UPDATE below REPEATABLE READ. A row of the clustered index that somebody else has locked is not waited for but given as it was last
    /// committed: whoever wants it then calls `Table::lock_found`. One that somebody has inserted and not committed is passed over. Rows found by
    /// another index are waited for, as in MySQL.
    pub async fn next_semi_consistent(&mut self, txn: &mut Transaction) -> Result<Option<SemiConsistent>, MySqlError> {
        match self {
            LockingScan::Tree(scan) => scan.next_semi_consistent(txn).await,
            LockingScan::Parts(scan) => scan.next(txn, true).await,
        }
    }

    /// The row that `next_semi_consistent` has just given as it was last committed: locked, once nobody else has it. None if it is gone.
    pub async fn wait_for(&mut self, txn: &mut Transaction, row: &Row) -> Result<Option<Row>, MySqlError> {
        match self {
            LockingScan::Tree(scan) => scan.wait_for(txn, row).await,
            LockingScan::Parts(scan) => scan.wait_for(txn, row).await,
        }
    }

    /// Up to `max` rows at once, for statements that must not see their own changes.
    pub async fn collect(&mut self, txn: &mut Transaction, max: usize) -> Result<Vec<Row>, MySqlError> {
        let mut rows = Vec::new();
        while rows.len() < max {
            match self.next(txn).await? {
                Some(row) => rows.push(row),
                None => break,
            }
        }
        Ok(rows)
    }
}

/// A locking scan of one tree, and of the rows that its entries lead to.
pub struct TreeLocking {
    table: Arc<Table>,
    index: usize,
    scan: Scan,
    entries: LeafRows,
    /// Of `entries`, those before `end` are to be looked at.
    position: usize,
    end: usize,
    mode: LockMode,
    policy: LockWaitPolicy,
    entry_key: Vec<u8>,
    entry_value: Vec<u8>,
}

impl Drop for TreeLocking {
    fn drop(&mut self) {
        self.scan.stop(&self.entries, self.position);
    }
}

impl TreeLocking {
    /// As `LockingScan::next`.
    pub(crate) async fn next(&mut self, txn: &mut Transaction) -> Result<Option<Row>, MySqlError> {
        let table = self.table.clone();
        let clustered_id = table.clustered().id;
        while self.advance()? {
            txn.breathe(1).await?;
            let at = self.position - 1;
            if self.index == 0 {
                let key = self.entries.key(at).to_vec();
                match self.lock(txn, &table, clustered_id, &key).await? {
                    Locked::Yes(Some(data)) => {
                        return Ok(Some(Row { layout: table.layout.clone(), key, data }));
                    }
                    Locked::Yes(None) => continue,
                    Locked::WouldBlock => {
                        crate::table::would_block::<Row>(self.policy)?;
                        continue;
                    }
                }
            }
            if let Some(row) = self.follow(txn, &table, at).await? {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }

    /// As `LockingScan::next_semi_consistent`.
    pub(crate) async fn next_semi_consistent(&mut self, txn: &mut Transaction) -> Result<Option<SemiConsistent>, MySqlError> {
        if self.index != 0 {
            return Ok(self.next(txn).await?.map(SemiConsistent::Locked));
        }
        let table = self.table.clone();
        let id = table.clustered().id;
        while self.advance()? {
            txn.breathe(1).await?;
            let key = self.entries.key(self.position - 1).to_vec();
            let (data, is_locked) = match granted!(table, txn.inner().lock(id, &key, self.mode, LockWaitPolicy::NoWait)) {
                Locked::Yes(Some(data)) => (data, true),
                Locked::Yes(None) => continue,
                Locked::WouldBlock => {
                    let mut data = Vec::new();
                    if !txn.inner().get_latest(id, &key, &mut data).map_err(|e| table.failed(e))? {
                        continue;
                    }
                    (data, false)
                }
            };
            let row = Row { layout: table.layout.clone(), key, data };
            return Ok(Some(if is_locked { SemiConsistent::Locked(row) } else { SemiConsistent::Committed(row) }));
        }
        Ok(None)
    }

    /// Goes to the next entry. False at the end.
    fn advance(&mut self) -> Result<bool, MySqlError> {
        if self.position == self.end {
            self.position = 0;
            let more = self.scan.next_leaf(&mut self.entries).map_err(|e| self.table.failed(e))?;
            self.end = self.entries.len();
            if !more {
                return Ok(false);
            }
        }
        self.position += 1;
        Ok(true)
    }

    /// As `LockingScan::wait_for`.
    pub(crate) async fn wait_for(&mut self, txn: &mut Transaction, row: &Row) -> Result<Option<Row>, MySqlError> {
        let table = self.table.clone();
        match self.lock(txn, &table, table.clustered().id, row.key()).await? {
            Locked::Yes(data) => Ok(data.map(|data| Row { layout: table.layout.clone(), key: row.key().to_vec(), data })),
            Locked::WouldBlock => crate::table::would_block(self.policy),
        }
    }

    /// Locks what the present entry leads to. Before it waits, the scan gives back what lies behind this entry, and reads it again afterwards: who is
    /// waited for may go on inserting there, or move rows there, as under InnoDB.
    async fn lock(&mut self, txn: &mut Transaction, table: &Table, index: IndexId, key: &[u8]) -> Result<Locked, MySqlError> {
        loop {
            match txn.inner().lock(index, key, self.mode, self.policy).map_err(|e| table.failed(e))? {
                Op::Done(outcome) => return Ok(outcome),
                Op::Wait(wait) => {
                    self.scan.stop(&self.entries, self.position);
                    self.end = self.position;
                    self.scan.resume_after(self.entries.key(self.position - 1));
                    wait.await.map_err(crate::error::lock)?;
                }
            }
        }
    }

    /// Locks the row behind an entry of a secondary index; None if the row no longer has that entry.
    async fn follow(&mut self, txn: &mut Transaction, table: &Table, at: usize) -> Result<Option<Row>, MySqlError> {
        let key = &self.entries.key(at).to_vec()[..];
        let codec = &table.indexes[self.index];
        let mut value = self.entries.value(at).to_vec();
        if value.is_empty() {
            // An uncommitted entry with no committed version: wait for its owner to see what becomes of it.
            match self.lock(txn, table, codec.id, key).await? {
                Locked::Yes(Some(latest)) => value = latest,
                Locked::Yes(None) => return Ok(None),
                Locked::WouldBlock => return crate::table::would_block(self.policy),
            }
        }
        let clustered = index::clustered_key(key, &value).ok_or_else(|| table.corrupt(self.index))?.to_vec();
        let row = match self.lock(txn, table, table.clustered().id, &clustered).await? {
            Locked::Yes(Some(data)) => Row { layout: table.layout.clone(), key: clustered, data },
            Locked::Yes(None) => return Ok(None),
            Locked::WouldBlock => return crate::table::would_block(self.policy),
        };
        codec.entry_of_row(&table.layout, &row.data, &row.key, &mut self.entry_key, &mut self.entry_value);
        Ok((self.entry_key == key).then_some(row))
    }
}
