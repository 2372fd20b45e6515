//! Several calls at once, and calls that wait for each other.

use std::sync::Arc;

use futures::future::join_all;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::conformance::isolate::{TestCtx, WhenSlow};
use greenroom_boundary::isolate::{HandOff, IsolateDriver, IsolateError};
use greenroom_isolate_v8::V8Options;
use serde_json::json;

use crate::world::{World, json};

#[test]
fn four_calls_wait_at_the_same_time() {
    let world = World::with(V8Options::default(), HandOff::Concurrent);
    let (never, cancel) = (CancellationToken::new(), CancellationToken::new());
    let ctxs: Vec<_> = (0..4).map(|_| Arc::new(TestCtx::default())).collect();
    let calls = ctxs.iter().map(|ctx| {
        world.engine.call(world.request("function f(ctx) { ctx.slow() }"), ctx.clone(), HandOff::Concurrent, &cancel)
    });
    let outcomes = world.runtime.block_on(async {
        let watcher = async {
            while !ctxs.iter().all(|ctx| ctx.slow_under_way() == 1) {
                tokio::task::yield_now().await;
            }
            assert_eq!(world.engine.counters().live_handles, 4);
            // A fifth works although four wait.
            let free = world.engine.call(
                world.request("function f(ctx) { return ctx.mcp.CallTool('s', 5) }"),
                Arc::new(TestCtx::default()),
                HandOff::Concurrent,
                &never,
            );
            assert_eq!(json(free.await), json!({ "called": ["s", 5] }));
            cancel.cancel();
        };
        futures::join!(join_all(calls), watcher).0
    });
    assert!(outcomes.iter().all(|outcome| matches!(outcome, Err(IsolateError::Cancelled))), "{outcomes:?}");
    world.is_unharmed();
}

#[test]
fn many_calls_share_few_threads() {
    let world = World::with(V8Options { most_threads: 2, spare_contexts: 1, ..V8Options::default() }, HandOff::Concurrent);
    let never = CancellationToken::new();
    let code = "async function f(ctx) { let n = 0; for (let i = 0; i < 3; i++) n += (await ctx.mcp.CallToolAsync('s', i)).called[1]; return n }";
    let calls =
        (0..24).map(|_| world.engine.call(world.request(code), Arc::new(TestCtx::default()), HandOff::Concurrent, &never));
    for outcome in world.runtime.block_on(join_all(calls)) {
        assert_eq!(json(outcome), json!(3));
    }
    world.is_unharmed();
}

#[test]
fn a_call_that_waits_for_a_thread_can_be_cancelled() {
    let world = World::with(V8Options { most_threads: 1, spare_contexts: 1, ..V8Options::default() }, HandOff::Concurrent);
    let (first, second) = (CancellationToken::new(), CancellationToken::new());
    let ctx = Arc::new(TestCtx::when_slow(WhenSlow::Cancel(second.clone())));
    let waiting = world.engine.call(world.request("function f(ctx) { ctx.slow() }"), ctx, HandOff::Concurrent, &first);
    let queued =
        world.engine.call(world.request("function f() {}"), Arc::new(TestCtx::default()), HandOff::Concurrent, &second);
    let outcomes = world.runtime.block_on(async {
        let queued = async {
            let outcome = queued.await;
            first.cancel();
            outcome
        };
        futures::join!(waiting, queued)
    });
    assert!(matches!(outcomes, (Err(IsolateError::Cancelled), Err(IsolateError::Cancelled))), "{outcomes:?}");
    world.is_unharmed();
}

#[test]
fn callbacks_nest() {
    let world = World::new();
    let code = "function f(ctx) {
          const seen = []
          ctx.llm.Stream('a', [], { onChunk(outer) {
            ctx.llm.Stream('b', [], { onChunk(inner) {
              seen.push(outer.text + inner.text + ctx.mcp.CallTool('s', seen.length).called[1])
              return inner.text === 'b' ? false : undefined
            } })
          } })
          return seen
        }";
    assert_eq!(world.value(code), json!(["aa0", "ab1", "ba2", "bb3", "ca4", "cb5"]));
    world.is_unharmed();
}

/// The same script gives the same, in the same order, in both hand-off modes and every time.
#[test]
fn both_hand_off_modes_produce_the_same() {
    let code = "async function f(ctx) {
          const seen = []
          const stream = n => ctx.llm.StreamAsync(n, [], { onChunk: (c, i) => { seen.push(n + i); ctx.Send(n + i) } })
          await Promise.all([stream('a'), stream('b'), ctx.mcp.CallToolAsync('s', 1).then(() => seen.push('tool')), stream('c')])
          return seen
        }";
    let mut all = Vec::new();
    for hand_off in [HandOff::Strict, HandOff::Concurrent, HandOff::Strict] {
        let world = World::with(V8Options::default(), hand_off);
        for _ in 0..5 {
            let ctx = Arc::new(TestCtx::default());
            let value = json(world.call_with(world.request(code), ctx.clone()));
            all.push((value, ctx.log()));
        }
    }
    assert_eq!(all[0].0.as_array().map(Vec::len), Some(10));
    assert!(all.iter().all(|run| *run == all[0]), "{all:#?}");
}

#[test]
fn works_on_a_runtime_with_many_threads() {
    let world = World::with(V8Options::default(), HandOff::Concurrent);
    let engine = Arc::new(world.engine);
    let request = CallSeed { limits: world.limits };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().expect("a runtime");
    runtime.block_on(async {
        let tasks = (0..8).map(|n| {
            let (engine, request) = (Arc::clone(&engine), request.make(n));
            tokio::spawn(async move {
                let never = CancellationToken::new();
                engine.call(request, Arc::new(TestCtx::default()), HandOff::Concurrent, &never).await
            })
        });
        for (n, outcome) in join_all(tasks).await.into_iter().enumerate() {
            assert_eq!(json(outcome.expect("the task ends")), json!({ "called": ["s", n] }));
        }
    });
}

/// Makes requests away from the world.
struct CallSeed {
    limits: greenroom_boundary::isolate::Limits,
}

impl CallSeed {
    fn make(&self, n: usize) -> greenroom_boundary::isolate::CallRequest {
        greenroom_boundary::isolate::CallRequest {
            script: crate::world::script(&format!("function f(ctx) {{ return ctx.mcp.CallTool('s', {n}) }}")),
            function: "f".to_owned(),
            pass_ctx: greenroom_boundary::isolate::PassCtx::First,
            args: Vec::new(),
            limits: self.limits,
        }
    }
}
