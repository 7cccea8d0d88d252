//! Range scans.

use super::rows::LeafRows;
use crate::Result;

/// A scan over a range of one index, a leaf at a time. It holds no latch between leaves.
pub struct Scan {}

impl Scan {
    /// Copies the next rows out: the visible ones of one leaf, at least one. False at the end.
    pub fn next_leaf(&mut self, _out: &mut LeafRows) -> Result<bool> {
        unimplemented!()
    }
}
