//! Scans of several partitions: rows in the order of the index, merged from scans of each partition's tree.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::sync::Arc;

use highkey_storage::Direction;
use highkey_types::MySqlError;

use crate::row::{Row, RowBatch};
use crate::scan::{BATCH_BYTES, FIRST_BATCH_ROWS, SemiConsistent, TreeLocking, TreeScan};
use crate::table::Table;
use crate::transaction::Transaction;

/// Where a scan of a partition stands: the key of its next row.
struct Place {
    key: Vec<u8>,
    input: usize,
    direction: Direction,
}

impl Ord for Place {
    /// The greatest comes first out of a heap.
    fn cmp(&self, other: &Place) -> Ordering {
        let keys = match self.direction {
            Direction::Forward => other.key.cmp(&self.key),
            Direction::Backward => self.key.cmp(&other.key),
        };
        keys.then(other.input.cmp(&self.input))
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Place) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Place) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Place {}

/// The key of a row in the index that is scanned.
fn key_of(table: &Table, index: usize, clustered: &[u8], row: &[u8]) -> Vec<u8> {
    if index == 0 {
        return clustered.to_vec();
    }
    let (mut key, mut value) = (Vec::new(), Vec::new());
    table.indexes[index].entry_of_row(&table.layout, row, clustered, &mut key, &mut value);
    key
}

/// A consistent scan of several partitions.
pub struct PartsScan {
    pub(crate) table: Arc<Table>,
    index: usize,
    direction: Direction,
    inputs: Vec<Input>,
    /// Of inputs that have begun and have a row.
    places: BinaryHeap<Place>,
    begun: bool,
    /// The input whose rows are counted.
    present: usize,
    rows_max: usize,
}

struct Input {
    scan: TreeScan,
    batch: RowBatch,
    position: usize,
}

impl PartsScan {
    pub(crate) fn new(table: Arc<Table>, index: usize, direction: Direction, scans: Vec<TreeScan>) -> PartsScan {
        let inputs = scans.into_iter().map(|scan| Input { scan, batch: RowBatch::new(), position: 0 }).collect();
        PartsScan { table, index, direction, inputs, places: BinaryHeap::new(), begun: false, present: 0, rows_max: FIRST_BATCH_ROWS }
    }

    /// As `TableScan::of_columns`; rows are put in order by the columns of the index too.
    pub(crate) fn of_columns(&mut self, columns: &[usize]) {
        let all = [columns, &self.table.indexes[self.index].columns[..]].concat();
        self.inputs.iter_mut().for_each(|input| input.scan.of_columns(&all));
    }

    pub(crate) fn next_batch(&mut self, batch: &mut RowBatch) -> Result<bool, MySqlError> {
        if !self.begun {
            self.begun = true;
            for at in 0..self.inputs.len() {
                if let Some(place) = self.place(at)? {
                    self.places.push(place);
                }
            }
        }
        batch.start_gathering(&self.table.layout);
        while batch.rows.len() < self.rows_max && batch.bytes.len() < BATCH_BYTES {
            let Some(first) = self.places.pop() else { break };
            let input = &mut self.inputs[first.input];
            batch.gather(input.batch.key(input.position), input.batch.row(input.position));
            input.position += 1;
            if let Some(place) = self.place(first.input)? {
                self.places.push(place);
            }
        }
        self.rows_max = self.rows_max.saturating_mul(2);
        Ok(!batch.is_empty())
    }

    /// Where an input stands; `None` at its end.
    fn place(&mut self, at: usize) -> Result<Option<Place>, MySqlError> {
        let input = &mut self.inputs[at];
        while input.position == input.batch.len() {
            input.position = 0;
            if !input.scan.next_batch(&mut input.batch)? {
                input.batch = RowBatch::new();
                return Ok(None);
            }
        }
        let key = key_of(&self.table, self.index, input.batch.key(input.position), input.batch.row(input.position));
        Ok(Some(Place { key, input: at, direction: self.direction }))
    }

    pub(crate) fn count_batch(&mut self) -> Result<Option<u64>, MySqlError> {
        while let Some(input) = self.inputs.get_mut(self.present) {
            if let Some(rows) = input.scan.count_batch()? {
                return Ok(Some(rows));
            }
            self.present += 1;
        }
        Ok(None)
    }
}

/// A locking scan of several partitions. To keep the order of an index it locks a row ahead in each of them, as MySQL does; without order it reads one
/// after the other.
pub struct PartsLocking {
    table: Arc<Table>,
    index: usize,
    direction: Direction,
    inputs: Vec<LockingInput>,
    places: BinaryHeap<Place>,
    /// Inputs of which no place is known: those that have not begun, and the one whose row was given last.
    unknown: Vec<usize>,
    /// Where the last row came from.
    last: usize,
    ordered: bool,
}

struct LockingInput {
    scan: TreeLocking,
    row: Option<SemiConsistent>,
}

impl PartsLocking {
    pub(crate) fn new(table: Arc<Table>, index: usize, direction: Direction, scans: Vec<TreeLocking>) -> PartsLocking {
        let inputs: Vec<LockingInput> = scans.into_iter().map(|scan| LockingInput { scan, row: None }).collect();
        // Taken from the end.
        let unknown = (0..inputs.len()).rev().collect();
        // Nobody asks for the order of hidden row ids.
        let ordered = !table.indexes[index].parts.is_empty();
        PartsLocking { table, index, direction, inputs, places: BinaryHeap::new(), unknown, last: 0, ordered }
    }

    /// Before the first row is asked for.
    pub(crate) fn give_up_order(&mut self) {
        self.ordered = false;
    }

    /// The next row; `semi`: as `TreeLocking::next_semi_consistent`.
    pub(crate) async fn next(&mut self, txn: &mut Transaction, semi: bool) -> Result<Option<SemiConsistent>, MySqlError> {
        while let Some(at) = self.unknown.pop() {
            let input = &mut self.inputs[at];
            let found = if semi { input.scan.next_semi_consistent(txn).await? } else { input.scan.next(txn).await?.map(SemiConsistent::Locked) };
            let Some(found) = found else { continue };
            if !self.ordered {
                self.unknown.push(at);
                self.last = at;
                return Ok(Some(found));
            }
            let (SemiConsistent::Locked(row) | SemiConsistent::Committed(row)) = &found;
            let key = key_of(&self.table, self.index, row.key(), row.data());
            self.places.push(Place { key, input: at, direction: self.direction });
            self.inputs[at].row = Some(found);
        }
        let Some(first) = self.places.pop() else { return Ok(None) };
        self.last = first.input;
        self.unknown.push(first.input);
        Ok(self.inputs[first.input].row.take())
    }

    pub(crate) async fn wait_for(&mut self, txn: &mut Transaction, row: &Row) -> Result<Option<Row>, MySqlError> {
        self.inputs[self.last].scan.wait_for(txn, row).await
    }
}
