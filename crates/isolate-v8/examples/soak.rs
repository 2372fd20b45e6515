//! Ten thousand and more hooks of every level, many of them killed, throwing or trying to leave something behind:
//! `cargo run --release -p greenroom-isolate-v8 --example soak`. Exits with 1 when anything grows.
//! Arguments: the number of hooks, and `frozen`, `context`, `isolate` or `kills` to run that part alone.
//!
//! Invariant: after a warm-up, handles, contexts and threads come back to their base and memory stays flat. Deliberately one process and
//! no network.
#![expect(clippy::print_stdout, reason = "its report")]

mod support;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::isolate::{IsolateDriver, Isolation, Script};
use greenroom_isolate_v8::{V8Census, V8Options};
use support::{World, limits, raw, script};

/// How much the resident memory may grow after the warm-up.
const GROWTH_KIB: u64 = 1024;

const BODIES: [&str; 10] = [
    "function f(ctx, n) { return n + 1 }",
    "let kept = []; function f(ctx, n) { kept.push(ctx); globalThis.kept = kept; return ctx.Send('x') }",
    "async function f(ctx, n) { await ctx.mcp.CallToolAsync('s', n); return n }",
    "function f(ctx) { throw new Error('no', { cause: ctx }) }",
    "function f(ctx) { ctx.llm.Stream(3, [], { onChunk() { throw new Error('stop') } }) }",
    "function f() { return new Promise(() => {}) }",
    "async function f(ctx) { ctx.slowAsync(); ctx.slowAsync(); return 1 }",
    "function f() { Promise.reject(new Error('x')); return 1 }",
    "function f(ctx) { const all = []; for (let i = 0; i < 500; i++) all.push({ i, ctx }); ctx.all = all; ctx.Release(); return 1 }",
    "function f() { return new Uint8Array(100000).length }",
];
const KILLED: [&str; 2] =
    ["function f() { for (;;) {} }", "function f(ctx) { const all = []; for (;;) all.push(new Array(1000).fill(1.5)) }"];

fn status_kib(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    line.chars().filter(char::is_ascii_digit).collect::<String>().parse().unwrap_or(0)
}

fn round(world: &World, scripts: &[Arc<Script>], killed: &[Arc<Script>], hooks: usize, only: Option<&str>) {
    for n in 0..hooks {
        let isolation = match n % 100 {
            0 => Isolation::Isolate,
            n if n % 2 == 0 => Isolation::Frozen,
            _ => Isolation::Context,
        };
        let is_killed = n % 200 == 77;
        if only.is_some_and(|only| only != if is_killed { "kills" } else { isolation.name() }) {
            continue;
        }
        let mut limits = limits(isolation);
        if is_killed {
            limits.cpu = Duration::from_millis(5);
            limits.heap_bytes = 16 << 20;
            drop(world.call(&killed[n / 200 % killed.len()], "f", Vec::new(), limits));
        } else {
            drop(world.call(&scripts[n / 2 % scripts.len()], "f", vec![raw(&n.to_string())], limits));
        }
    }
}

/// What the calls left behind is collected; contexts that are left are in use or spare.
fn is_tidy(census: &V8Census) -> bool {
    census.are_collected && census.native_contexts <= census.kept_contexts + census.threads
}

fn main() -> ExitCode {
    let hooks = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(12_000);
    let only = std::env::args().nth(2);
    let world = World::new(V8Options::default());
    let scripts: Vec<_> = BODIES.iter().map(|code| script(code)).collect();
    let killed: Vec<_> = KILLED.iter().map(|code| script(code)).collect();
    let mut failures = Vec::new();
    let mut base = 0;
    for part in 0..4 {
        round(&world, &scripts, &killed, hooks / 4, only.as_deref());
        let census = world.rest(is_tidy).unwrap_or_else(|census| {
            failures.push(format!("the engine does not come to rest: {census:?}"));
            census
        });
        let (rss, threads) = (status_kib("VmRSS:"), status_kib("Threads:"));
        let counters = world.engine.counters();
        println!("{} hooks: rss {rss} KiB, {threads} threads, {census:?}, {counters:?}", (part + 1) * hooks / 4);
        if census.given_up_threads > 0 {
            failures.push(format!("a stopped script still runs: {census:?}"));
        }
        if (counters.active_calls, counters.live_handles) != (0, 0) {
            failures.push(format!("something is alive: {counters:?}"));
        }
        match part {
            0 => {}
            1 => base = rss,
            _ if rss > base + GROWTH_KIB => failures.push(format!("memory grew from {base} to {rss} KiB")),
            _ => {}
        }
    }
    for failure in &failures {
        println!("FAILED: {failure}");
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
