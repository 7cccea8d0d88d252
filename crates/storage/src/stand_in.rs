//! Until btree lands.
#[derive(Clone, Debug, Default)]
pub struct CheckReport {}
