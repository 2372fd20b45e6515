//! An engine over the suite's table, and short ways to call it.

use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::conformance::isolate::{TABLE, TestCtx};
use greenroom_boundary::isolate::{
    CallRequest, CallValue, ContextOps, HandOff, IsolateDriver, IsolateError, JsException, Limits, PassCtx, Script,
};
use greenroom_boundary::{CancellationToken, RawJson};
use greenroom_isolate_v8::{V8Engine, V8Options, initialise_v8};
use serde_json::Value;

/// An engine and a runtime for it.
pub(crate) struct World {
    pub(crate) engine: V8Engine,
    pub(crate) runtime: tokio::runtime::Runtime,
    pub(crate) hand_off: HandOff,
    pub(crate) limits: Limits,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(V8Options::default(), HandOff::Strict)
    }

    pub(crate) fn with(options: V8Options, hand_off: HandOff) -> Self {
        // Before the runtime: only then is every later thread made after V8's start.
        let init = initialise_v8();
        let engine = V8Engine::start(init, TABLE, options).expect("the engine starts");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let limits = Limits { cpu: Duration::from_secs(20), ..Limits::default() };
        Self { engine, runtime, hand_off, limits }
    }

    pub(crate) fn request(&self, code: &str) -> CallRequest {
        CallRequest {
            script: script(code),
            function: "f".to_owned(),
            pass_ctx: PassCtx::First,
            args: Vec::new(),
            limits: self.limits,
        }
    }

    pub(crate) fn call(&self, code: &str) -> Result<CallValue, IsolateError> {
        self.call_with(self.request(code), Arc::new(TestCtx::default()))
    }

    pub(crate) fn call_with(&self, request: CallRequest, ctx: Arc<dyn ContextOps>) -> Result<CallValue, IsolateError> {
        let never = CancellationToken::new();
        self.runtime.block_on(self.engine.call(request, ctx, self.hand_off, &never))
    }

    pub(crate) fn value(&self, code: &str) -> Value {
        json(self.call(code))
    }

    pub(crate) fn thrown(&self, code: &str) -> JsException {
        match self.call(code) {
            Err(IsolateError::Js(exception)) => exception,
            other => panic!("expected an exception, got {other:?}"),
        }
    }

    /// Nothing is alive, no thread still runs what was stopped, and the next call works.
    pub(crate) fn is_unharmed(&self) {
        assert_eq!(self.engine.census().given_up_threads, 0, "a stopped script still runs");
        self.goes_on();
    }

    /// The next call works, whatever a thread that was given up still does.
    pub(crate) fn goes_on(&self) {
        assert_eq!(self.value("function f(ctx) { return ctx.Send('x').id + [1].length }"), 2);
        let counters = self.engine.counters();
        assert_eq!((counters.active_calls, counters.live_handles), (0, 0));
    }
}

pub(crate) fn script(code: &str) -> Arc<Script> {
    Arc::new(Script::new("agents/hook.ts", code))
}

pub(crate) fn json(outcome: Result<CallValue, IsolateError>) -> Value {
    match outcome {
        Ok(CallValue::Json(text)) => serde_json::from_str(text.get()).expect("a result is JSON"),
        other => panic!("expected a value, got {other:?}"),
    }
}

pub(crate) fn raw(text: &str) -> RawJson {
    RawJson::from(serde_json::value::RawValue::from_string(text.to_owned()).expect("JSON in a test"))
}
