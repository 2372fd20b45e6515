//! The system's clock and entropy.

use greenroom::drivers::{OsEntropy, SystemClock};
use greenroom_boundary::clock::UnixNanos;
use greenroom_boundary::conformance;

/// 2026-01-01T00:00:00Z.
const NEW_YEAR_2026: UnixNanos = UnixNanos(1_767_225_600_000_000_000);

#[tokio::test]
async fn system_clock() {
    conformance::clock::all(&SystemClock::new(), NEW_YEAR_2026).await;
}

#[test]
fn os_entropy() {
    conformance::entropy::all(&OsEntropy);
}
