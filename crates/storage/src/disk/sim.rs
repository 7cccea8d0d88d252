//! A disk in memory that fails as disks do.

/// How a simulated disk behaves; all of it follows from the seed.
#[derive(Clone, Debug, Default)]
pub struct SimConfig {
    pub seed: u64,
}

/// A simulated disk.
pub struct SimDisk {}
