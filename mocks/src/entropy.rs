//! Seeded entropy: the same seed gives the same ids and numbers.
//!
//! Invariant: a sub-stream depends on the seed and its label alone, never on how much was drawn elsewhere. Deliberately
//! not secret: the seed stands in the scenario file.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use greenroom_boundary::Entropy;
use rand_chacha::ChaCha12Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use sha2::{Digest, Sha256};

/// A ChaCha stream that a seed determines.
pub struct SeededEntropy {
    key: [u8; 32],
    stream: Mutex<ChaCha12Rng>,
}

impl SeededEntropy {
    /// The stream of `seed`.
    pub fn new(seed: u64) -> Self {
        Self::with_key(&[b"greenroom entropy", &seed.to_le_bytes()[..]])
    }

    /// The sub-stream called `label`, independent of this one and of its other sub-streams.
    pub fn derive(&self, label: &str) -> Self {
        Self::with_key(&[&self.key[..], label.as_bytes()])
    }

    fn with_key(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update(part);
        }
        let key: [u8; 32] = hash.finalize().into();
        Self { key, stream: Mutex::new(ChaCha12Rng::from_seed(key)) }
    }
}

impl fmt::Debug for SeededEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SeededEntropy")
    }
}

impl Entropy for SeededEntropy {
    fn next_u64(&self) -> u64 {
        self.stream.lock().unwrap_or_else(PoisonError::into_inner).next_u64()
    }

    /// Shorter than a real driver's, for readable traces.
    fn id(&self, prefix: &str) -> String {
        format!("{prefix}{:016x}", self.next_u64())
    }
}
