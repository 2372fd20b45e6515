//! Scripts in processes of their own: the same suite as in the host, and what ends a process.
//!
//! Invariant: every process that a test sees is looked for afterwards by its number.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use greenroom::drivers::isolate::ProcessIsolates;
use greenroom::drivers::sandbox::ChildKeeper;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::conformance::isolate::{EngineUnderTest, TABLE, TestCtx, WhenSlow, conforms, withstands};
use greenroom_boundary::isolate::{
    CallRequest, CallValue, HandOff, IsolateDriver, IsolateError, Isolation, Limits, PassCtx, Script,
};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use test_case::test_case;

use crate::processes::gone;

#[derive(Clone, Copy)]
enum Name {
    V8,
    QuickJs,
}

fn engine(name: Name) -> Arc<ProcessIsolates> {
    let inner: Arc<dyn IsolateDriver> = match name {
        Name::V8 => {
            let options = greenroom_isolate_v8::V8Options::default();
            Arc::new(greenroom_isolate_v8::V8Engine::start(greenroom_isolate_v8::initialise_v8(), TABLE, options).unwrap())
        }
        Name::QuickJs => Arc::new(greenroom_isolate_quickjs::QuickJs::new(TABLE)),
    };
    let program = Path::new(env!("CARGO_BIN_EXE_greenroom"));
    Arc::new(ProcessIsolates::new(inner, TABLE, program, ChildKeeper::program(program)))
}

fn block_on(future: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(future);
}

fn under_test(name: Name, hand_off: HandOff) -> EngineUnderTest {
    EngineUnderTest { engine: engine(name), hand_off, isolation: Isolation::Process }
}

#[test_case(Name::V8, HandOff::Strict; "v8, strict")]
#[test_case(Name::V8, HandOff::Concurrent; "v8, concurrent")]
#[test_case(Name::QuickJs, HandOff::Strict; "quickjs, strict")]
fn suite(name: Name, hand_off: HandOff) {
    block_on(conforms(under_test(name, hand_off)));
}

#[test_case(HandOff::Strict; "strict")]
#[test_case(HandOff::Concurrent; "concurrent")]
fn corpus(hand_off: HandOff) {
    block_on(async { withstands(&under_test(Name::V8, hand_off)).await });
}

struct World {
    engine: Arc<ProcessIsolates>,
    hand_off: HandOff,
    cpu: Duration,
}

impl World {
    fn new(hand_off: HandOff) -> Self {
        Self { engine: engine(Name::V8), hand_off, cpu: Duration::from_secs(20) }
    }

    async fn call(&self, code: &str) -> Result<CallValue, IsolateError> {
        self.call_with(code, Arc::new(TestCtx::default())).await
    }

    async fn call_with(&self, code: &str, ctx: Arc<TestCtx>) -> Result<CallValue, IsolateError> {
        let limits = Limits { isolation: Isolation::Process, cpu: self.cpu, ..Limits::default() };
        let script = Arc::new(Script::new("hook.js", code));
        let request = CallRequest { script, function: "f".to_owned(), pass_ctx: PassCtx::First, args: Vec::new(), limits };
        self.engine.call(request, ctx, self.hand_off, &CancellationToken::new()).await
    }

    async fn is_unharmed(&self) {
        let value = self.call("function f(ctx) { return ctx.Send('x').id }").await;
        assert!(matches!(&value, Ok(CallValue::Json(id)) if id.get() == "1"), "{value:?}");
        let counters = self.engine.counters();
        assert_eq!((counters.active_calls, counters.live_handles), (0, 0));
    }
}

/// What V8 cannot unwind from ends the process, and the call with it; the host and the next call go on.
#[test_case("return 'x'.repeat(2 ** 29 - 25).split('').length", HandOff::Strict; "a string in pieces, strict")]
#[test_case("return 'x'.repeat(2 ** 29 - 25).split('').length", HandOff::Concurrent; "a string in pieces, concurrent")]
fn the_end_of_an_engine_ends_one_call(body: &str, hand_off: HandOff) {
    let world = World::new(hand_off);
    block_on(async {
        let error = world.call(&format!("function f(ctx) {{ {body} }}")).await.expect_err("V8 gives up");
        assert!(matches!(error, IsolateError::Died { .. }), "{error:?}");
        assert_eq!(error.code(), "HOOK_DIED");
        world.is_unharmed().await;
    });
}

/// The process that runs a script: the child of a keeper that is a child of this process.
fn children() -> Vec<Pid> {
    let of = |parent: String| {
        let listed = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
        listed.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let keepers = threads.flat_map(|thread| {
        let listed = std::fs::read_to_string(thread.unwrap().path().join("children")).unwrap_or_default();
        listed.split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    });
    keepers.flat_map(of).map(|pid| Pid::from_raw(pid.parse().unwrap())).collect()
}

#[test_case("function f(ctx) { return ctx.slow() }"; "while it waits for the host")]
#[test_case("async function f(ctx) { await ctx.slowAsync() }"; "while it waits for a promise")]
fn a_process_that_is_killed_ends_one_call(code: &str) {
    let world = World::new(HandOff::Concurrent);
    block_on(async {
        let ctx = Arc::new(TestCtx::when_slow(WhenSlow::Nothing));
        let mut call = Box::pin(world.call_with(code, ctx.clone()));
        let mut killed = false;
        let error = std::future::poll_fn(|cx| {
            let polled = call.as_mut().poll(cx);
            if polled.is_pending() && ctx.slow_under_way() == 1 && !killed {
                killed = true;
                for child in children() {
                    kill(child, Signal::SIGKILL).unwrap();
                }
            }
            polled
        });
        let error = error.await.expect_err("its process is gone");
        assert_eq!(error, IsolateError::Died { message: "it was ended by signal SIGKILL".to_owned() });
        drop(call);
        assert_eq!(Arc::strong_count(&ctx), 1);
        world.is_unharmed().await;
    });
}

/// A built-in that never looks whether it should stop is stopped with its process.
#[test_case(HandOff::Strict)]
#[test_case(HandOff::Concurrent)]
fn nothing_of_a_stopped_call_goes_on(hand_off: HandOff) {
    let mut world = World::new(hand_off);
    world.cpu = Duration::from_millis(50);
    block_on(async {
        let ctx = Arc::new(TestCtx::default());
        let code = "function f(ctx) {
            if (!ctx.memory.context.Get('again')) return ctx.memory.context.Set('again', 1);
            return 'a'.repeat(300000).lastIndexOf('a'.repeat(30000) + 'b');
        }";
        world.call_with(code, ctx.clone()).await.expect("the first call is short");
        let own = children();
        assert_eq!(own.len(), 1);
        let error = world.call_with(code, ctx.clone()).await.expect_err("it is stopped");
        assert_eq!(error, IsolateError::CpuLimit { limit_ms: 50 });
        assert!(gone(own[0].as_raw()).await, "it goes on");
        world.is_unharmed().await;
    });
}

#[test]
fn a_script_keeps_its_process_and_another_gets_its_own() {
    let world = World::new(HandOff::Strict);
    block_on(async {
        world.is_unharmed().await;
        let first = children();
        world.is_unharmed().await;
        assert_eq!(children(), first);
        let other = world.call("function f() { return 'another script' }").await;
        assert!(matches!(other, Ok(CallValue::Json(_))), "{other:?}");
        let both = children();
        assert!(both.len() == first.len() + 1 && first.iter().all(|child| both.contains(child)), "{first:?} {both:?}");
        drop(world);
        for child in both {
            assert!(gone(child.as_raw()).await, "{child} outlives its engine");
        }
    });
}

#[test]
fn a_call_that_is_dropped_takes_its_process_with_it() {
    let world = World::new(HandOff::Concurrent);
    block_on(async {
        let ctx = Arc::new(TestCtx::when_slow(WhenSlow::Nothing));
        let mut call = Box::pin(world.call_with("function f(ctx) { return ctx.slow() }", ctx.clone()));
        std::future::poll_fn(|cx| {
            assert!(call.as_mut().poll(cx).is_pending());
            if ctx.slow_under_way() == 1 { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
        let running = children();
        assert_eq!(running.len(), 1);
        drop(call);
        assert_eq!((Arc::strong_count(&ctx), ctx.slow_under_way()), (1, 0));
        assert!(gone(running[0].as_raw()).await);
        world.is_unharmed().await;
    });
}
