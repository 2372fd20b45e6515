//! Looking at processes from outside.

use std::time::Duration;

use greenroom::drivers::SystemClock;
use greenroom_boundary::Clock;
use greenroom_boundary::clock::sleep;

/// How long a killed process may take to be gone; the kernel needs a moment, and this machine may be busy.
const PATIENCE: Duration = Duration::from_secs(10);

/// Waits until that process has ended. One that only waits to be reaped by its parent counts as ended.
pub(crate) async fn gone(pid: i32) -> bool {
    let clock = SystemClock::new();
    let deadline = clock.now().after(PATIENCE);
    while clock.now() < deadline {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The state follows the program's name, which stands in parentheses and may hold anything.
        let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start().chars().next());
        if matches!(state, None | Some(Some('Z' | 'X'))) {
            return true;
        }
        sleep(&clock, Duration::from_millis(5)).await;
    }
    false
}
