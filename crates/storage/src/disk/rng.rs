//! Randomness, real or seeded.

use parking_lot::Mutex;
use rand::{RngCore, SeedableRng};

/// Where the engine takes random numbers.
pub trait Rng: Send + Sync {
    fn next(&self) -> u64;
    /// A number below `bound` (which is not 0).
    fn below(&self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// The operating system's randomness.
pub struct SystemRng;

impl Rng for SystemRng {
    fn next(&self) -> u64 {
        rand::rng().next_u64()
    }
}

/// The same numbers for the same seed.
pub struct SeededRng(Mutex<rand::rngs::SmallRng>);

impl SeededRng {
    /// The same seed gives the same numbers.
    pub fn new(seed: u64) -> SeededRng {
        SeededRng(Mutex::new(rand::rngs::SmallRng::seed_from_u64(seed)))
    }
}

impl Rng for SeededRng {
    fn next(&self) -> u64 {
        self.0.lock().next_u64()
    }
}
