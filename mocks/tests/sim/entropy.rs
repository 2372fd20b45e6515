//! Seeded entropy: repeatable, and independent by label.

use greenroom_boundary::Entropy;
use greenroom_mocks::SeededEntropy;

fn draw(entropy: &SeededEntropy) -> Vec<u64> {
    (0..4).map(|_| entropy.next_u64()).collect()
}

#[test]
fn a_seed_is_a_stream() {
    assert_eq!(draw(&SeededEntropy::new(9)), draw(&SeededEntropy::new(9)));
    assert_ne!(draw(&SeededEntropy::new(9)), draw(&SeededEntropy::new(10)));
}

#[test]
fn a_sub_stream_depends_on_seed_and_label_alone() {
    let (fresh, used) = (SeededEntropy::new(9), SeededEntropy::new(9));
    draw(&used);
    assert_eq!(draw(&fresh.derive("a")), draw(&used.derive("a")));
    assert_ne!(draw(&fresh.derive("a")), draw(&fresh.derive("b")));
    assert_ne!(draw(&fresh.derive("a")), draw(&SeededEntropy::new(10).derive("a")));
}

#[test]
fn ids_stay_the_same_across_versions() {
    assert_eq!(SeededEntropy::new(20_260_801).id("t_"), "t_de5fd43afdee376e");
}
