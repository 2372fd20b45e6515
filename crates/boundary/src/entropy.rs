//! The entropy boundary: random bits and fresh ids.
//!
//! Invariant: every id and random number of a host comes from here, so that a seeded driver makes a run repeatable.
//! Deliberately not a general random-distribution library.

use std::fmt;

/// Randomness, as a driver gives it.
pub trait Entropy: Send + Sync + fmt::Debug {
    /// The next 64 random bits.
    fn next_u64(&self) -> u64;

    /// A fresh id that starts with `prefix`, unique within the driver's life and hard to guess on a real driver.
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:016x}{:016x}", self.next_u64(), self.next_u64())
    }

    /// A number in `[0, 1)` with 53 random bits, JavaScript's `Math.random()`.
    fn unit_f64(&self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
