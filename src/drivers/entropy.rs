//! The operating system's entropy.
//!
//! Invariant: every number is fresh from the system's generator, fit for ids that must not be guessed. Deliberately no
//! generator of our own.

use std::fmt;

use greenroom_boundary::Entropy;

/// Random bits from the operating system.
#[derive(Clone, Copy, Default)]
pub struct OsEntropy;

impl fmt::Debug for OsEntropy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OsEntropy")
    }
}

impl Entropy for OsEntropy {
    /// # Panics
    ///
    /// If the system has no entropy to give: going on with guessable ids would be worse.
    #[expect(clippy::disallowed_methods, reason = "this is the driver that randomness comes from")]
    fn next_u64(&self) -> u64 {
        let mut bits = [0; 8];
        getrandom::fill(&mut bits).expect("the operating system has no entropy to give");
        u64::from_ne_bytes(bits)
    }
}
