//! What any source of entropy must do.
//!
//! Invariant: only what holds for a seeded source too. Deliberately no statistics beyond gross failure.

use std::collections::BTreeSet;

use crate::Entropy;

const DRAWS: usize = 512;

/// Runs the whole suite.
pub fn all(entropy: &dyn Entropy) {
    numbers_differ(entropy);
    every_bit_moves(entropy);
    fractions_lie_between_zero_and_one(entropy);
    ids_are_unique_and_keep_their_prefix(entropy);
}

/// Draws do not repeat.
pub fn numbers_differ(entropy: &dyn Entropy) {
    let drawn: BTreeSet<u64> = (0..DRAWS).map(|_| entropy.next_u64()).collect();
    assert_eq!(drawn.len(), DRAWS);
}

/// Each of the 64 bits is sometimes 0 and sometimes 1.
pub fn every_bit_moves(entropy: &dyn Entropy) {
    let (ones, zeros) = (0..DRAWS).map(|_| entropy.next_u64()).fold((0, 0), |(ones, zeros), n| (ones | n, zeros | !n));
    assert_eq!((ones, zeros), (u64::MAX, u64::MAX));
}

/// `unit_f64` stays in `[0, 1)` and uses both halves of it.
pub fn fractions_lie_between_zero_and_one(entropy: &dyn Entropy) {
    let drawn: Vec<f64> = (0..DRAWS).map(|_| entropy.unit_f64()).collect();
    assert!(drawn.iter().all(|x| (0.0..1.0).contains(x)));
    assert!(drawn.iter().any(|x| *x < 0.5) && drawn.iter().any(|x| *x >= 0.5));
}

/// Ids start with their prefix, differ, and hold nothing that needs quoting.
pub fn ids_are_unique_and_keep_their_prefix(entropy: &dyn Entropy) {
    let ids: BTreeSet<String> = (0..DRAWS).map(|_| entropy.id("call_")).collect();
    assert_eq!(ids.len(), DRAWS);
    for id in &ids {
        let rest = id.strip_prefix("call_").expect("the prefix");
        assert!(rest.len() >= 8 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    }
}
