//! Range scans: one leaf's rows are chosen and copied under its latch, long values and spilled versions fetched after it.

use super::ranges::Gaps;
use super::read::{Chosen, Deferred};
use super::rows::{Bounds, Direction, LeafRows};
use super::system::{System, count};
use super::version_run::BlocksRead;
use super::views::Sight;
use crate::btree::{self, BTree, LeafScan, LeafStamp, LeafView, RecordFlags, RecordRef};
use crate::error::Result;
use crate::ids::IndexId;
use crate::sync::Arc;

/// Once the rows of a step have more bytes than this, no more long values are fetched for it.
const LONG_VALUES: usize = 32 << 20;

/// Which rows a scan gives.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wanted {
    /// Those its sight sees.
    Visible,
    /// Those, and every key that another open transaction has changed.
    Candidates,
}

/// A scan over a range of one index, a leaf at a time. It holds no latch between leaves.
pub struct Scan {
    system: Arc<System>,
    sight: Sight,
    wanted: Wanted,
    index: IndexId,
    tree: Option<BTree>,
    at: LeafScan,
    deferred: Vec<Late>,
    blocks: BlocksRead,
    /// The leaves read since `start_run`, if their rows may be kept.
    run: Option<LeafRun>,
    /// Whether a run may begin and end inside a leaf.
    parts: bool,
    gaps: Option<Gaps>,
}

/// A row whose value comes after the latch.
struct Late {
    row: usize,
    value: Deferred,
    /// Its key is wanted also if there is no value.
    stays: bool,
}

/// Leaves that follow each other and whose every record is visible to every snapshot there is and will be, as long as they stay as they are.
#[derive(Debug, Default)]
pub struct LeafRun {
    /// The least key that belongs to the run: on the first leaf.
    pub low: Vec<u8>,
    /// The least key above those that belong to it; `None` at the end of the index.
    pub high: Option<Vec<u8>>,
    leaves: Vec<LeafStamp>,
}

impl LeafRun {
    pub fn is_empty(&self) -> bool {
        self.leaves.is_empty()
    }

    /// Pages of the run.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    /// True if both are of the same leaves in the same state.
    pub fn has_same_leaves(&self, other: &LeafRun) -> bool {
        self.leaves.len() == other.leaves.len() && self.leaves.iter().zip(&other.leaves).all(|(a, b)| a.is_same(b))
    }
}

impl Scan {
    pub(super) fn new(
        system: Arc<System>,
        sight: Sight,
        wanted: Wanted,
        index: IndexId,
        bounds: Bounds,
        direction: Direction,
    ) -> Scan {
        let direction = match direction {
            Direction::Forward => btree::Direction::Forward,
            Direction::Backward => btree::Direction::Backward,
        };
        let at = LeafScan::new(bounds.lower, bounds.upper, direction);
        Scan { system, sight, wanted, index, tree: None, at, deferred: Vec::new(), blocks: BlocksRead::default(), run: None, parts: false, gaps: None }
    }

    /// Locks the gaps that the scan passes over too.
    pub(super) fn locking(mut self, gaps: Gaps) -> Scan {
        self.at.show_every_leaf();
        self.gaps = Some(gaps);
        self
    }

    /// The index's tree, looked up once.
    fn tree(&mut self) -> Result<BTree> {
        Ok(match &self.tree {
            Some(tree) => tree.clone(),
            None => self.tree.insert(self.system.tree(self.index)?).clone(),
        })
    }

    /// Copies the next rows out: those of one leaf that the scan sees, at least one. False at the end.
    pub fn next_leaf(&mut self, out: &mut LeafRows) -> Result<bool> {
        while self.read_leaf(out)? {
            if !out.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Goes to the next leaf that has rows the scan sees: how many. `None` at the end. No row is copied. For scans of what is visible.
    pub fn count_leaf(&mut self) -> Result<Option<u64>> {
        debug_assert!(self.wanted == Wanted::Visible, "candidates are read");
        let tree = self.tree()?;
        let reader = Reader { system: &self.system, sight: &self.sight, wanted: self.wanted, index: self.index };
        let deferred = &mut self.deferred;
        self.run = None;
        loop {
            deferred.clear();
            let mut counted = 0;
            let found = tree.scan_leaf(&mut self.at, |leaf| counted += reader.count_leaf(leaf, deferred))?;
            for Late { value, .. } in deferred.drain(..) {
                counted += u64::from(value.fetch(&self.system, &self.sight, &mut self.blocks)?.is_some());
            }
            count(&self.system.counters.rows_read, counted);
            if counted > 0 || !found {
                return Ok((counted > 0).then_some(counted));
            }
        }
    }

    /// Copies out the rows of the next leaf that the scan sees, perhaps none. False at the end.
    pub fn read_leaf(&mut self, out: &mut LeafRows) -> Result<bool> {
        let tree = self.tree()?;
        let reader = Reader { system: &self.system, sight: &self.sight, wanted: self.wanted, index: self.index };
        let (deferred, gaps, run, parts) = (&mut self.deferred, &mut self.gaps, &mut self.run, self.parts);
        // Left by an error.
        deferred.clear();
        out.clear();
        let backward = self.at.direction() == btree::Direction::Backward;
        if let Some(gaps) = gaps {
            gaps.pass(&tree)?;
        }
        let found = tree.scan_leaf(&mut self.at, |leaf| {
            if let Some(gaps) = gaps {
                gaps.cover(leaf);
            }
            let settled = reader.read_leaf(leaf, backward, out, deferred);
            match run {
                Some(known) if settled && (parts || leaf.is_whole()) && out.len() == leaf.len() => known.add(leaf, parts),
                _ => *run = None,
            }
        })?;
        if let Some(gaps) = gaps {
            gaps.reach_back(&tree)?;
            if !found {
                gaps.pass(&tree)?;
            }
        }
        let mut gone = Vec::new();
        for Late { row, value, stays } in deferred.drain(..) {
            match value.fetch(&self.system, &self.sight, &mut self.blocks)? {
                Some(value) => out.replace_value(row, &value),
                None => {
                    if !stays {
                        gone.push(row);
                    }
                    continue;
                }
            }
            if out.bytes.len() > LONG_VALUES && row + 1 < out.len() {
                // The rest of the leaf is read again.
                out.truncate(row + 1);
                self.at.resume_after(out.key(row));
                self.run = None;
                break;
            }
        }
        out.remove(&gone);
        count(&self.system.counters.rows_read, out.len() as u64);
        Ok(found)
    }

    /// Begins to note the leaves that are read, for `take_run`. Forward scans of what is visible only. `parts`: the first and the last leaf may be
    /// read in part, of a scan whose bounds are those of others too.
    pub fn start_run(&mut self, parts: bool) {
        self.at.show_every_leaf();
        self.parts = parts;
        self.run = Some(LeafRun::default());
    }

    /// The leaves read since `start_run`; `None` if some rows on them are not for every snapshot, or a part of a leaf was read that may not be.
    pub fn take_run(&mut self) -> Option<LeafRun> {
        self.run.take().filter(|run| !run.is_empty())
    }

    /// Where a forward scan goes on; `None` at its end.
    pub fn position(&self) -> Option<&[u8]> {
        self.at.position()
    }

    /// The end of the range; `None` is above every key.
    pub fn upper(&self) -> Option<&[u8]> {
        self.at.upper()
    }

    /// A forward scan goes on at `key`; `None` ends it.
    pub fn skip_to(&mut self, key: Option<&[u8]>) {
        self.at.skip_to(key);
    }

    /// True if the rows of the run are what the scan would read: none of its leaves has changed.
    pub fn is_unchanged(&mut self, run: &LeafRun) -> Result<bool> {
        let tree = self.tree()?;
        for leaf in &run.leaves {
            if !tree.is_unchanged(leaf)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// For a scan of a locking statement that ends inside a leaf: only `read` of `rows`, what `next_leaf` has given last, were looked at.
    /// The gaps behind them are not locked then, and if the scan is to go on it must do so from there (`resume_after`).
    pub fn stop(&mut self, rows: &LeafRows, read: usize) {
        if let Some(gaps) = &mut self.gaps {
            gaps.stop(rows, read);
        }
    }

    /// Goes on behind `key`, in the scan's direction: for callers that stop inside a leaf and come back for the rest later.
    pub fn resume_after(&mut self, key: &[u8]) {
        self.at.resume_after(key);
    }
}

/// What choosing rows needs, apart from the scan's own position.
struct Reader<'a> {
    system: &'a System,
    sight: &'a Sight,
    wanted: Wanted,
    index: IndexId,
}

impl LeafRun {
    fn add(&mut self, leaf: &LeafView, parts: bool) {
        let (low, high) = if parts { leaf.covered() } else { (leaf.low_fence(), leaf.high_key()) };
        if self.leaves.is_empty() {
            self.low = low.to_vec();
        }
        self.high = high.map(<[u8]>::to_vec);
        self.leaves.push(leaf.stamp());
    }
}

impl Reader<'_> {
    /// How many rows of the leaf the sight sees, but for those that are `deferred`: they may have no version for it.
    fn count_leaf(&self, leaf: &LeafView, deferred: &mut Vec<Late>) -> u64 {
        let settled = leaf.max_txn() < self.system.status.low_water().0;
        let mut key = Vec::new();
        let mut rows = 0;
        for n in 0..leaf.len() {
            let record = leaf.record(n);
            if settled && record.flags & RecordFlags::DELETE_MARK == 0 {
                rows += 1;
                continue;
            }
            key.clear();
            leaf.key(n, &mut key);
            match self.system.choose(self.index, &key, record, self.sight) {
                Some(Chosen::Below(below)) => deferred.push(Late { row: 0, value: Deferred::Below(below), stays: false }),
                Some(_) => rows += 1,
                None => self.note_deleted(&key, record),
            }
        }
        rows
    }

    /// True if everything on the page is older than every open transaction and snapshot.
    fn read_leaf(&self, leaf: &LeafView, backward: bool, out: &mut LeafRows, deferred: &mut Vec<Late>) -> bool {
        // Then each record that is not deleted is its row.
        let settled = leaf.max_txn() < self.system.status.low_water().0;
        let mut key = Vec::new();
        for n in 0..leaf.len() {
            let n = if backward { leaf.len() - 1 - n } else { n };
            let record = leaf.record(n);
            if settled && record.flags & (RecordFlags::DELETE_MARK | RecordFlags::OVERFLOW) == 0 {
                out.push(leaf.prefix(), leaf.suffix(n), record.value);
                continue;
            }
            key.clear();
            leaf.key(n, &mut key);
            self.read_record(&key, record, out, deferred);
        }
        settled
    }

    fn read_record(&self, key: &[u8], record: RecordRef, out: &mut LeafRows, deferred: &mut Vec<Late>) {
        let status = &self.system.status;
        let row = out.len();
        // Looked at before the row is chosen: a commit in between is then seen by the one or by the other.
        let in_hand = self.wanted == Wanted::Candidates && self.sight.own() != Some(record.txn) && status.is_open(record.txn);
        match self.system.choose(self.index, key, record, self.sight) {
            Some(Chosen::Inline(value)) => out.push(&[], key, value),
            Some(Chosen::Long(reference)) => {
                out.push(&[], key, &[]);
                deferred.push(Late { row, value: Deferred::Long(reference.to_vec()), stays: true });
            }
            Some(Chosen::Older(version)) => {
                out.push(&[], key, &[]);
                deferred.push(Late { row, value: Deferred::Older(version), stays: true });
            }
            Some(Chosen::Below(below)) => {
                out.push(&[], key, &[]);
                deferred.push(Late { row, value: Deferred::Below(below), stays: in_hand });
            }
            None if in_hand => out.push(&[], key, &[]),
            None => self.note_deleted(key, record),
        }
    }

    /// There is no row for the sight. A deleted one may be left that nobody's history has.
    fn note_deleted(&self, key: &[u8], record: RecordRef) {
        let status = &self.system.status;
        if record.flags & RecordFlags::DELETE_MARK != 0 && status.is_old(record.txn) && !status.is_open(record.txn) {
            // It is from before the last open.
            self.system.history.hint(self.index, key);
        }
    }
}

/// Shows `f` every record of a tree. `f` runs under a latch.
pub(super) fn for_each_record(tree: &BTree, mut f: impl FnMut(&[u8], RecordRef)) -> Result<()> {
    let mut at = LeafScan::new(std::ops::Bound::Unbounded, std::ops::Bound::Unbounded, btree::Direction::Forward);
    let mut key = Vec::new();
    while tree.scan_leaf(&mut at, |leaf| {
        for n in 0..leaf.len() {
            key.clear();
            leaf.key(n, &mut key);
            f(&key, leaf.record(n));
        }
    })? {}
    Ok(())
}
