//! What the measuring programs share: a host that answers at once, and short ways to call.
//!
//! Invariant: the host allocates nothing that grows. Deliberately no other engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use greenroom_boundary::isolate::{
    CallRequest, CallValue, Callback, CallbackAt, ContextOps, HandOff, IsolateDriver, IsolateError, Isolation, Limits, OpArgs,
    OpDecl, OpError, OpIndex, OpKind, Script,
};
use greenroom_boundary::{BoxFuture, CancellationToken, RawJson, web};
use greenroom_isolate_v8::{V8Census, V8Engine, V8Options, initialise_v8};
use serde_json::value::RawValue;

const fn inline(path: &'static str, min_args: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Inline, min_args, callback: None }
}

/// A table of the size of the real one.
pub(crate) const TABLE: &[OpDecl] = &[
    inline("Send", 1),
    inline("Append", 2),
    inline("Replace", 2),
    inline("MessageID", 0),
    inline("BlockID", 0),
    inline("memory.chat.Get", 1),
    inline("memory.chat.Set", 2),
    inline("memory.context.Get", 1),
    inline("memory.context.Set", 2),
    inline("trace.Add", 2),
    OpDecl { path: "mcp.CallTool", kind: OpKind::Await, min_args: 2, callback: None },
    OpDecl { path: "agent.Call", kind: OpKind::Await, min_args: 2, callback: None },
    OpDecl {
        path: "llm.Stream",
        kind: OpKind::Await,
        min_args: 2,
        callback: Some(CallbackAt { argument: 2, property: "onChunk" }),
    },
    OpDecl { path: "slow", kind: OpKind::Await, min_args: 0, callback: None },
    web::DECLS[0],
    web::DECLS[1],
    web::DECLS[2],
    web::DECLS[3],
    web::DECLS[4],
];

/// The host.
pub(crate) struct Host;

pub(crate) fn raw(text: &str) -> RawJson {
    RawValue::from_string(text.to_owned()).expect("JSON")
}

impl ContextOps for Host {
    fn data(&self) -> RawJson {
        raw(r#"{"chat_id":"c","assistant_id":"a","locale":"","theme":"","referer":"api","metadata":{},"authorized":null}"#)
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> Result<Option<RawJson>, OpError> {
        std::hint::black_box(args);
        Ok((TABLE[op.0].path == "Send").then(|| raw("\"msg_1\"")))
    }

    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        callback: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        let (path, times) = (TABLE[op.0].path, args.first().and_then(|text| text.get().parse::<u32>().ok()).unwrap_or(0));
        Box::pin(async move {
            if path == "slow" {
                std::future::pending::<()>().await;
            }
            if let Some(callback) = callback {
                for _ in 0..times {
                    callback.call(vec![raw("\"chunk\"")]).await;
                }
            }
            Ok(None)
        })
    }

    fn console(&self, _level: &str, _text: &str) {}

    fn now_ms(&self) -> f64 {
        0.0
    }

    fn random(&self) -> f64 {
        0.5
    }

    fn wall_deadline(&self, _wall: Duration) -> BoxFuture<'static, ()> {
        Box::pin(std::future::pending())
    }
}

/// How long tidying up may take before something is wrong: a collection of a full heap is a hundred times shorter.
const REST: Duration = Duration::from_secs(5);

/// An engine and a runtime for it.
pub(crate) struct World {
    pub(crate) engine: V8Engine,
    runtime: tokio::runtime::Runtime,
}

impl World {
    pub(crate) fn new(options: V8Options) -> Self {
        let engine = V8Engine::start(initialise_v8(), TABLE, options).expect("V8 starts");
        Self { engine, runtime: tokio::runtime::Builder::new_current_thread().build().expect("a runtime") }
    }

    /// Waits until the engine has tidied up and `at_rest` holds; the census of then, or the one that [`REST`] ended with.
    #[expect(clippy::disallowed_methods, reason = "threads of V8 tidy up in real time, and nothing tells when they are done")]
    pub(crate) fn rest(&self, at_rest: impl Fn(&V8Census) -> bool) -> Result<V8Census, V8Census> {
        let started = Instant::now();
        loop {
            let census = self.engine.census();
            if census.are_ready && at_rest(&census) {
                return Ok(census);
            }
            if started.elapsed() > REST {
                return Err(census);
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }

    pub(crate) fn call(
        &self,
        script: &Arc<Script>,
        function: &str,
        args: Vec<RawJson>,
        limits: Limits,
    ) -> Result<CallValue, IsolateError> {
        let request = CallRequest {
            script: Arc::clone(script),
            function: function.to_owned(),
            pass_ctx: greenroom_boundary::isolate::PassCtx::First,
            args,
            limits,
        };
        let never = CancellationToken::new();
        self.runtime.block_on(self.engine.call(request, Arc::new(Host), HandOff::Strict, &never))
    }
}

pub(crate) fn script(code: &str) -> Arc<Script> {
    Arc::new(Script::new("hook.js", code))
}

pub(crate) fn limits(isolation: Isolation) -> Limits {
    Limits { isolation, cpu: Duration::from_secs(20), callback_cpu: Duration::from_secs(20), ..Limits::default() }
}
