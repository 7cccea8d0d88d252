//! Snapshots.

use super::rows::{Bounds, Direction};
use super::scan::Scan;
use crate::{IndexId, Result};

/// A consistent view: what was committed when it was taken, and its own transaction's writes. Clones share it; while one lives,
/// the versions it needs are kept.
#[derive(Clone)]
pub struct Snapshot {}

impl Snapshot {
    /// Reads one row into `out` (cleared first). False when there is none.
    pub fn get(&self, _index: IndexId, _key: &[u8], _out: &mut Vec<u8>) -> Result<bool> {
        unimplemented!()
    }

    pub fn scan(&self, _index: IndexId, _bounds: Bounds, _direction: Direction) -> Scan {
        unimplemented!()
    }
}
