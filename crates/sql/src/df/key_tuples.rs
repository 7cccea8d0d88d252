//! The integer keys of a join of several columns, side by side: what an index that begins with those columns is asked for.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::buffer::NullBuffer;
use datafusion::arrow::datatypes::{DataType, Int64Type, UInt64Type};
use datafusion::execution::memory_pool::{MemoryConsumer, MemoryPool, MemoryReservation};

/// Rows of a partition beyond which nothing is known: to sort more would take longer than most lookups save. Rows with the keys of the one before them do
/// not count.
const MOST_REMEMBERED: usize = 1 << 13;
/// So many times more rows than keys wanted are looked through for equal ones: it takes as long as a lookup for each key.
const LOOKED_THROUGH_FOR_EACH: usize = 8;

/// Keys as they come. Unsigned ones are kept by their bits.
#[derive(Debug)]
pub(super) struct RememberedTuples {
    /// Row after row.
    keys: Vec<i64>,
    /// For each column.
    unsigned: Vec<bool>,
    memory: MemoryReservation,
}

enum Values<'a> {
    Signed(&'a [i64]),
    Unsigned(&'a [u64]),
}

impl RememberedTuples {
    pub fn new(columns: usize, pool: &Arc<dyn MemoryPool>) -> RememberedTuples {
        let memory = MemoryConsumer::new("keys of a join").register(pool);
        RememberedTuples { keys: Vec::new(), unsigned: vec![false; columns], memory }
    }

    /// The columns of some rows; a row with a NULL meets nothing. False if these are too many, or no integers.
    pub fn add(&mut self, columns: &[&ArrayRef]) -> bool {
        let mut all = Vec::with_capacity(columns.len());
        for (column, unsigned) in columns.iter().zip(&mut self.unsigned) {
            all.push(match column.data_type() {
                DataType::Int64 => Values::Signed(column.as_primitive::<Int64Type>().values()),
                DataType::UInt64 => {
                    *unsigned = true;
                    Values::Unsigned(column.as_primitive::<UInt64Type>().values())
                }
                _ => return false,
            });
        }
        let nulls = columns.iter().fold(None::<NullBuffer>, |nulls, column| NullBuffer::union(nulls.as_ref(), column.nulls()));
        let width = columns.len();
        for row in 0..columns[0].len() {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                continue;
            }
            let from = self.keys.len();
            self.keys.extend(all.iter().map(|values| match values {
                Values::Signed(values) => values[row],
                Values::Unsigned(values) => values[row] as i64,
            }));
            if from >= width && self.keys[from - width..from] == self.keys[from..] {
                self.keys.truncate(from);
            } else if from / width == MOST_REMEMBERED {
                return false;
            }
        }
        self.memory.try_resize(self.keys.capacity() * size_of::<i64>()).is_ok()
    }
}

/// The keys of all partitions.
#[derive(Debug)]
pub(super) struct KeyTuples {
    parts: Vec<RememberedTuples>,
    unsigned: Vec<bool>,
}

impl KeyTuples {
    pub fn of(parts: Vec<RememberedTuples>) -> KeyTuples {
        let columns = parts.first().map_or(0, |part| part.unsigned.len());
        let unsigned = (0..columns).map(|column| parts.iter().any(|part| part.unsigned[column])).collect();
        KeyTuples { parts, unsigned }
    }

    /// The different keys of some columns, in that order, ascending; None if they are more than `most`, or too many to find out.
    pub fn listed(&self, columns: &[usize], most: usize) -> Option<Vec<Vec<i128>>> {
        let width = self.unsigned.len();
        let rows: usize = self.parts.iter().map(|part| part.keys.len() / width).sum();
        if rows > most.saturating_mul(LOOKED_THROUGH_FOR_EACH) {
            return None;
        }
        let value = |row: &[i64], column: usize| if self.unsigned[column] { i128::from(row[column] as u64) } else { i128::from(row[column]) };
        let rows = self.parts.iter().flat_map(|part| part.keys.chunks_exact(width));
        let mut list: Vec<Vec<i128>> = rows.map(|row| columns.iter().map(|&column| value(row, column)).collect()).collect();
        list.sort_unstable();
        list.dedup();
        (list.len() <= most).then_some(list)
    }
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::array::{Int32Array, Int64Array, UInt64Array};
    use datafusion::execution::memory_pool::{GreedyMemoryPool, UnboundedMemoryPool};

    use super::*;

    fn pool() -> Arc<dyn MemoryPool> {
        Arc::new(UnboundedMemoryPool::default())
    }

    #[test]
    fn different_keys_of_some_columns_are_listed() {
        let a: ArrayRef = Arc::new(Int64Array::from(vec![Some(2), Some(2), Some(-1), None, Some(2)]));
        let b: ArrayRef = Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(u64::MAX), Some(7), Some(8), Some(3)]));
        let (mut one, mut two) = (RememberedTuples::new(2, &pool()), RememberedTuples::new(2, &pool()));
        assert!(one.add(&[&a, &b]));
        assert!(two.add(&[&a.slice(2, 1), &b.slice(2, 1)]));
        let keys = KeyTuples::of(vec![one, two]);
        let greatest = i128::from(u64::MAX);
        assert_eq!(keys.listed(&[0, 1], 3).unwrap(), [vec![-1, 7], vec![2, 3], vec![2, greatest]]);
        assert_eq!(keys.listed(&[1, 0], 3).unwrap(), [vec![3, 2], vec![7, -1], vec![greatest, 2]]);
        assert_eq!(keys.listed(&[0], 2).unwrap(), [[-1], [2]]);
        assert!(keys.listed(&[0], 1).is_none(), "there are two");
        assert_eq!(KeyTuples::of(vec![RememberedTuples::new(2, &pool())]).listed(&[0, 1], 0).unwrap(), Vec::<Vec<i128>>::new());
    }

    #[test]
    fn too_many_are_not_remembered() {
        let same: ArrayRef = Arc::new(Int64Array::from(vec![5; MOST_REMEMBERED + 1]));
        let mut all = RememberedTuples::new(2, &pool());
        assert!(all.add(&[&same, &same]), "they are the keys of the row before");
        let different: ArrayRef = Arc::new(Int64Array::from_iter_values(0..MOST_REMEMBERED as i64 + 1));
        assert!(!RememberedTuples::new(2, &pool()).add(&[&same, &different]));
        let dates: ArrayRef = Arc::new(Int32Array::from(vec![1]));
        assert!(!RememberedTuples::new(1, &pool()).add(&[&dates]));
        let small: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(1000));
        assert!(!RememberedTuples::new(1, &small).add(&[&different.slice(0, 200)]));
    }
}
