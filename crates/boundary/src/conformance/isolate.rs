//! What every script engine must do, in terms of [`IsolateDriver`] alone.
//!
//! Beyond the trait, the engine itself gives `ctx` a method `Release()`, ends every group path of the table in an object
//! (`ctx.memory.context`), filters its own frames, joins `console` values with one space (objects as JSON), and hangs
//! what a callback threw on the operation's error as `cause`.
//!
//! Invariant: after every case the engine's counters are back at their base. A case that an engine cannot meet is named,
//! with its reason, in [`DIFFERENCES`]; it must then fail, so that a stale entry shows. Deliberately no real time: limits
//! on computing aside, deadlines pass when a case says so.

/// Lists async functions as cases.
macro_rules! case_list {
    ($module:ident: $($case:ident),+ $(,)?) => {
        vec![$($crate::conformance::isolate::Case {
            name: concat!(stringify!($module), "::", stringify!($case)),
            run: |engine| Box::pin($case(engine)),
        }),+]
    };
}

mod ctx;
mod errors;
mod hostile;
mod limits;
mod modules;
mod ops;
mod values;
mod web;
mod web_ctx;

use std::fmt::Write as _;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use serde_json::Value;

use crate::isolate::{
    CallRequest, CallValue, HandOff, IsolateDriver, IsolateError, Isolation, JsException, Limits, PassCtx, Script,
};
use crate::{BoxFuture, CancellationToken, RawJson};

pub use ctx::{TABLE, TestCtx, WhenSlow};
pub use hostile::{DIFFERENCES as HOSTILE_DIFFERENCES, withstands};

/// The pinned differences: engine, case, why.
pub const DIFFERENCES: &[(&str, &str, &str)] = &[
    (
        "quickjs",
        "errors::thrown_null",
        "QuickJS throws null when no memory is left for an error, so a thrown null is reported as exhausted memory",
    ),
    (
        "quickjs process",
        "errors::thrown_null",
        "QuickJS throws null when no memory is left for an error, so a thrown null is reported as exhausted memory",
    ),
    (
        "v8 frozen",
        "values::globals_do_not_survive",
        "the global object is frozen: what a script assigns there is not kept even for the call",
    ),
];

/// An engine made with [`TABLE`], and how it hands over.
#[derive(Clone, Debug)]
pub struct EngineUnderTest {
    /// The engine.
    pub engine: Arc<dyn IsolateDriver>,
    /// How its threads and the runtime take turns.
    pub hand_off: HandOff,
    /// The level that its calls run at.
    pub isolation: Isolation,
}

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// Its name, `errors::cause_chain`.
    pub name: &'static str,
    /// Runs it; it panics if the engine does not conform.
    pub run: fn(EngineUnderTest) -> BoxFuture<'static, ()>,
}

/// All cases, in a fixed order.
pub fn cases() -> Vec<Case> {
    [values::cases(), errors::cases(), ops::cases(), limits::cases(), modules::cases(), web::cases()].concat()
}

/// Runs all cases and panics with the list of those that failed.
pub async fn conforms(engine: EngineUnderTest) {
    let mut failed = String::new();
    for case in cases() {
        if let Err(why) = check(&engine, case).await {
            let _ = write!(failed, "\n{}: {why}", case.name);
        }
    }
    assert!(failed.is_empty(), "{} ({:?}) does not conform:{failed}", engine.engine.name(), engine.hand_off);
}

/// Runs one case; what is pinned in [`DIFFERENCES`] must fail.
pub async fn check(engine: &EngineUnderTest, case: Case) -> Result<(), String> {
    let label = engine.label();
    let pinned = DIFFERENCES.iter().find(|(name, pinned, _)| *name == label && *pinned == case.name);
    let outcome = AssertUnwindSafe((case.run)(engine.clone())).catch_unwind().await;
    let counters = engine.engine.counters();
    if counters.active_calls != 0 || counters.live_handles != 0 {
        return Err(format!("something is still alive: {counters:?}"));
    }
    match (outcome, pinned) {
        (Ok(()), None) | (Err(_), Some(_)) => Ok(()),
        (Ok(()), Some((_, _, why))) => Err(format!("the pinned difference is gone ({why}); take it out of DIFFERENCES")),
        (Err(panic), None) => Err(panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
            .unwrap_or_else(|| "panicked".to_owned())),
    }
}

/// One call: what is called, with what, under which limits.
pub(crate) struct Shot {
    under: EngineUnderTest,
    code: Arc<Script>,
    function: String,
    pass_ctx: PassCtx,
    args: Vec<RawJson>,
    limits: Limits,
    ctx: Arc<TestCtx>,
    cancel: CancellationToken,
}

impl EngineUnderTest {
    /// Its name in the tables of differences: `v8`, `v8 frozen`.
    pub fn label(&self) -> String {
        match self.isolation {
            Isolation::Context => self.engine.name().to_owned(),
            level => format!("{} {}", self.engine.name(), level.name()),
        }
    }

    /// A call of `f` with `ctx` and no other argument, under generous limits.
    pub(crate) fn shot(&self, code: &str) -> Shot {
        Shot {
            under: self.clone(),
            code: Arc::new(Script::new("hook.js", code)),
            function: "f".to_owned(),
            pass_ctx: PassCtx::First,
            args: Vec::new(),
            limits: Limits { cpu: Duration::from_secs(20), isolation: self.isolation, ..Limits::default() },
            ctx: Arc::new(TestCtx::default()),
            cancel: CancellationToken::new(),
        }
    }

    /// What `f(ctx)` returns.
    pub(crate) async fn value(&self, code: &str) -> Value {
        self.shot(code).value().await
    }

    /// What `f(ctx)` throws.
    pub(crate) async fn thrown(&self, code: &str) -> JsException {
        match self.shot(code).run().await {
            Err(IsolateError::Js(exception)) => exception,
            other => panic!("expected an exception, got {other:?} from {code}"),
        }
    }

    /// The names that a script offers.
    pub(crate) async fn functions(&self, code: &str) -> Result<Vec<String>, IsolateError> {
        let script = Arc::new(Script::new("hook.js", code));
        self.engine.functions(&script, &Limits { cpu: Duration::from_millis(50), ..Limits::default() }).await
    }

    /// A call works: the one before did no harm.
    pub(crate) async fn still_works(&self) {
        let value = self.value("function f(ctx) { return [1, 2].map(n => n + ctx.Send('x').id) }").await;
        assert_eq!(value, serde_json::json!([2, 3]), "the next call is not unharmed");
    }
}

impl Shot {
    pub(crate) fn function(mut self, name: &str) -> Self {
        name.clone_into(&mut self.function);
        self
    }

    pub(crate) fn no_ctx(mut self) -> Self {
        self.pass_ctx = PassCtx::No;
        self
    }

    pub(crate) fn ctx_last(mut self) -> Self {
        self.pass_ctx = PassCtx::Last;
        self
    }

    pub(crate) fn args(mut self, texts: &[&str]) -> Self {
        self.args = texts.iter().map(|text| raw(text)).collect();
        self
    }

    pub(crate) fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub(crate) fn cpu_ms(self, ms: u64) -> Self {
        self.limits(|limits| limits.cpu = Duration::from_millis(ms))
    }

    pub(crate) fn ctx(mut self, ctx: &Arc<TestCtx>) -> Self {
        self.ctx = Arc::clone(ctx);
        self
    }

    pub(crate) fn cancel(mut self, token: &CancellationToken) -> Self {
        self.cancel = token.clone();
        self
    }

    pub(crate) async fn run(self) -> Result<CallValue, IsolateError> {
        let request = CallRequest {
            script: self.code,
            function: self.function,
            pass_ctx: self.pass_ctx,
            args: self.args,
            limits: self.limits,
        };
        self.under.engine.call(request, self.ctx, self.under.hand_off, &self.cancel).await
    }

    pub(crate) async fn value(self) -> Value {
        let code = Arc::clone(&self.code);
        match self.run().await {
            Ok(CallValue::Json(json)) => serde_json::from_str(json.get()).expect("the result is JSON"),
            other => panic!("expected a value, got {other:?} from {}", code.code),
        }
    }

    pub(crate) async fn error(self) -> IsolateError {
        let code = Arc::clone(&self.code);
        match self.run().await {
            Err(error) => error,
            Ok(value) => panic!("expected an error, got {value:?} from {}", code.code),
        }
    }
}

/// JSON text as it crosses the bridge.
pub(crate) fn raw(text: &str) -> RawJson {
    serde_json::value::RawValue::from_string(text.to_owned()).expect("JSON in a case")
}
