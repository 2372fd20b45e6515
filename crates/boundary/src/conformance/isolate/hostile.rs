//! The corpus of hostile scripts, `crates/boundary/hostile/*.js`: each says in its first line how it must end.
//!
//! Invariant: after each script nothing is alive and an ordinary call works; how an engine or a level ends a script otherwise than the
//! script says is pinned in [`DIFFERENCES`], the one table of it. Deliberately no real time but the limit on computing.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::{EngineUnderTest, TestCtx, WhenSlow};
use crate::isolate::{CallValue, IsolateError, Limits};

/// The pinned differences: engine (and level), script, how it ends there, why.
pub const DIFFERENCES: &[(&str, &str, &str, &str)] = &[
    ("quickjs", "result-symbol", "ok", "QuickJS writes a symbol as undefined"),
    ("v8 frozen", "tamper-setter", "HOOK_THREW", "Object.prototype is frozen: nothing can be defined on it"),
    ("v8 frozen", "tojson-everywhere", "ok", "Object.prototype is frozen: the assignment does nothing"),
];

/// Scripts after which an engine still holds the host's side of the call: engine, script, what is known. To be mended, not to grow.
const LINGERING: &[(&str, &str, &str)] = &[
    ("quickjs", "pending-forever", "a call stopped while it starts operations as promises keeps its link to the host"),
    ("quickjs", "fetch-storm", "the same, with requests for operations; now and then"),
];

/// Every script of the corpus, by name.
fn corpus() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hostile");
    let mut scripts: Vec<_> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.expect("the folder can be read").path())
        .map(|path| {
            let name = path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("a script can be read"))
        })
        .collect();
    scripts.sort();
    scripts
}

/// Small, so that the corpus runs fast.
fn limits(limits: &mut Limits) {
    limits.cpu = Duration::from_millis(150);
    limits.callback_cpu = Duration::from_millis(50);
    limits.heap_bytes = 24 << 20;
    limits.buffer_bytes = 16 << 20;
    limits.value_bytes = 512 << 10;
    limits.output_bytes = 2 << 20;
    limits.pending_ops = 32;
}

fn code_of(outcome: &Result<CallValue, IsolateError>) -> &'static str {
    match outcome {
        Ok(CallValue::Json(text)) if text.get() == "false" => "false",
        Ok(_) => "ok",
        Err(error) => error.code(),
    }
}

/// Runs the corpus and panics with the list of scripts that ended otherwise. `a|b` in a script: either.
pub async fn withstands(engine: &EngineUnderTest) {
    let (mut failed, mut run) = (String::new(), 0);
    let label = engine.label();
    for (name, code) in corpus() {
        let said = code.lines().next().and_then(|line| line.strip_prefix("// expect: "));
        let said = said.unwrap_or_else(|| panic!("{name}.js must begin with `// expect: CODE`"));
        let pinned = DIFFERENCES.iter().find(|(at, script, ..)| *at == label && *script == name);
        let expected = pinned.map_or(said, |(_, _, code, _)| code);
        let ctx = Arc::new(TestCtx::when_slow(WhenSlow::WallPasses));
        let outcome = engine.shot(&code).ctx(&ctx).limits(limits).run().await;
        let got = code_of(&outcome);
        if !expected.split('|').any(|code| code == got) {
            let _ = write!(failed, "\n{name}: expected {expected}, got {got}: {outcome:.300?}");
        }
        engine.still_works().await;
        // A call that was stopped in the middle of a built-in ends before its thread does.
        let may_linger = matches!(outcome, Err(IsolateError::CpuLimit { .. } | IsolateError::HeapLimit { .. }))
            || LINGERING.iter().any(|(at, script, _)| *at == label && *script == name);
        if (Arc::strong_count(&ctx) != 1 && !may_linger) || ctx.slow_under_way() != 0 {
            let _ = write!(failed, "\n{name}: the host's side is still held");
        }
        let counters = engine.engine.counters();
        if counters.active_calls != 0 || counters.live_handles != 0 {
            let _ = write!(failed, "\n{name}: something is still alive: {counters:?}");
        }
        run += 1;
    }
    assert!(run >= 60, "the corpus has only {run} scripts");
    assert!(failed.is_empty(), "{label} does not withstand:{failed}");
}
