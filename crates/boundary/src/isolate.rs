//! The isolate boundary: call a function of a script with a bridged `ctx`, under limits.
//!
//! Invariant: when a call ends, whatever way it ended, its handles are dead and nothing of it runs on. A missing function
//! is [`CallValue::NoSuchFunction`], never an error, and never guessed from an error's text. Values cross as JSON text.
//! Deliberately no TypeScript here: a [`Script`] is plain JavaScript.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use crate::script::{LinkTarget, Links, Module, Places, Script};
use crate::{BoxFuture, CancellationToken, RawJson};

/// How far a call is kept apart from the calls before and after it. A call never sees what another one left, at any level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// One context per script is kept and shared by its calls: its globals and all built-in objects are frozen, and the top
    /// level of the script runs anew for each call, so that module-level variables start fresh.
    Frozen,
    /// A context of its own.
    #[default]
    Context,
    /// An engine instance of its own: heap and engine-wide caches are fresh too.
    Isolate,
    /// A process of its own, which survives what ends an engine.
    Process,
}

impl Isolation {
    /// All levels, weakest first.
    pub const ALL: [Self; 4] = [Self::Frozen, Self::Context, Self::Isolate, Self::Process];

    /// Its name in configs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Frozen => "frozen",
            Self::Context => "context",
            Self::Isolate => "isolate",
            Self::Process => "process",
        }
    }
}

/// What one call may use, and how far it is kept apart from others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How far it is kept apart.
    pub isolation: Isolation,
    /// Longest time from call to answer on the host's clock, host calls included.
    pub wall: Duration,
    /// Longest time that the script itself may compute, host calls excluded.
    pub cpu: Duration,
    /// Largest heap, in bytes.
    pub heap_bytes: usize,
    /// Largest sum of its array buffers, in bytes; never more than the heap's limit.
    pub buffer_bytes: usize,
    /// Largest JSON text of one value that crosses the bridge, in bytes.
    pub value_bytes: usize,
    /// Largest sum of all texts that it hands to the host (arguments, console lines, its result), in bytes.
    pub output_bytes: usize,
    /// Most operations under way at once.
    pub pending_ops: usize,
    /// Longest time that one run of a callback may compute.
    pub callback_cpu: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            isolation: Isolation::default(),
            wall: Duration::from_secs(30),
            cpu: Duration::from_millis(500),
            heap_bytes: 64 << 20,
            buffer_bytes: 64 << 20,
            value_bytes: 8 << 20,
            output_bytes: 64 << 20,
            pending_ops: 1024,
            callback_cpu: Duration::from_millis(100),
        }
    }
}

/// How an operation of `ctx` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OpKind {
    /// At once, on the isolate's thread; it never waits.
    Inline,
    /// On the host's runtime, while the isolate waits.
    Await,
}

/// Where an operation finds its callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallbackAt {
    /// Index of the argument that is an object.
    pub argument: usize,
    /// Its property that holds the function, `onChunk`.
    pub property: &'static str,
}

/// One operation of `ctx`, declared once for all engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpDecl {
    /// Dotted path below `ctx`: `Send`, `mcp.CallTool`, `memory.context.Get`. A `*` as the last but one part stands for any
    /// name, which is the operation's first argument: `servers.*.call` is `ctx.servers.shop.call(…)`. Such an operation that
    /// needs nothing but the name is a property, `ctx.servers.shop.instructions`; its twin is a method.
    pub path: &'static str,
    /// How it runs. An [`OpKind::Await`] operation also gets a twin `…Async` that returns a promise.
    pub kind: OpKind,
    /// Fewest arguments; with fewer the engine throws a TypeError that names the operation.
    pub min_args: usize,
    /// Its callback, if it takes one.
    pub callback: Option<CallbackAt>,
}

/// The index of an operation in the table that the engine was made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpIndex(pub usize);

/// An error that an operation throws into the script, as an `Error` with `code`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct OpError {
    /// Stable code, `error.code` in the script.
    pub code: String,
    /// `error.message` in the script.
    pub message: String,
    /// `error.name` in the script: `Error`, `TypeError`, …
    pub class: &'static str,
}

impl OpError {
    /// An ordinary error.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), class: "Error" }
    }

    /// A wrong argument.
    pub fn bad_argument(message: impl Into<String>) -> Self {
        Self { code: "ERR_ARGUMENT".to_owned(), message: message.into(), class: "TypeError" }
    }
}

/// What a script's callback answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CallbackVerdict {
    /// Go on: it returned nothing, `true` or `0`.
    Continue,
    /// Stop: it returned `false` or another number.
    Stop,
    /// It threw; the operation ends with this as its cause.
    Threw(JsException),
}

/// Calls back into the script that started an operation.
#[async_trait]
pub trait Callback: Send + Sync {
    /// Runs the callback with these arguments on the isolate's thread.
    async fn call(&self, args: Vec<RawJson>) -> CallbackVerdict;
}

/// The arguments of an operation: JSON text each, `null` for `undefined`; a callback's property is left out.
pub type OpArgs = Vec<RawJson>;

/// The host's side of `ctx` during one call. The engine never looks behind it.
pub trait ContextOps: Send + Sync {
    /// The plain data of `ctx` (`chat_id`, `metadata`, …): a JSON object, copied onto the script's `ctx`.
    fn data(&self) -> RawJson;

    /// Groups of operations that this call does not have, as paths below `ctx` (`memory.user`): the script finds `undefined`.
    fn absent(&self) -> Vec<&'static str> {
        Vec::new()
    }

    /// Runs an [`OpKind::Inline`] operation. `Ok(None)` is `undefined`.
    fn inline(&self, op: OpIndex, args: OpArgs) -> Result<Option<RawJson>, OpError>;

    /// Starts an [`OpKind::Await`] operation. `Ok(None)` is `undefined`. Dropping the future cancels it.
    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        callback: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>>;

    /// A line from `console`: level `log`, `info`, `warn`, `error` or `debug`, and the text.
    fn console(&self, level: &str, text: &str);

    /// `Date.now()`, in milliseconds since the Unix epoch, from the host's clock.
    fn now_ms(&self) -> f64;

    /// `Math.random()`, from the host's entropy.
    fn random(&self) -> f64;

    /// Completes when the call's wall limit passes on the host's clock.
    fn wall_deadline(&self, wall: Duration) -> BoxFuture<'static, ()>;
}

/// Where a function gets its `ctx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PassCtx {
    /// It gets none.
    No,
    /// Before the other arguments: `Create`, `Next`.
    First,
    /// After the other arguments: functions of script servers.
    Last,
}

/// A request to call one function.
#[derive(Clone)]
pub struct CallRequest {
    /// The script.
    pub script: Arc<Script>,
    /// The function's name.
    pub function: String,
    /// Where `ctx` stands among the arguments.
    pub pass_ctx: PassCtx,
    /// The (other) arguments.
    pub args: Vec<RawJson>,
    /// What it may use.
    pub limits: Limits,
}

impl fmt::Debug for CallRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CallRequest({}#{})", self.script.name, self.function)
    }
}

/// What a call returned.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum CallValue {
    /// The script has no such function.
    NoSuchFunction,
    /// `undefined` (or nothing).
    Undefined,
    /// Anything else, as JSON text; a returned promise has been awaited.
    Json(RawJson),
}

/// One frame of a script's stack.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StackFrame {
    /// Function name; empty at top level.
    pub function: String,
    /// File as in [`Script::name`].
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1.
    pub column: u32,
}

/// An exception that a script threw, kept whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JsException {
    /// Its class, `TypeError`; `Error` for thrown values that are no errors.
    pub class: String,
    /// Its message; for a thrown value its text.
    pub message: String,
    /// Its `code`, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Its stack, innermost first, at most 10 frames, frames of the engine's own code left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<StackFrame>,
    /// Its `cause`, to a depth of 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Box<JsException>>,
}

impl fmt::Display for JsException {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.class, self.message)?;
        if let Some(frame) = self.frames.first() {
            write!(f, " ({}:{}:{})", frame.file, frame.line, frame.column)?;
        }
        Ok(())
    }
}

/// Why a call gave no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum IsolateError {
    /// The script does not parse, or its top level threw.
    #[error("script does not load: {0}")]
    Load(JsException),
    /// The function threw.
    #[error("{0}")]
    Js(JsException),
    /// It took longer than its wall limit.
    #[error("hook ran longer than {limit_ms} ms")]
    WallLimit {
        /// The limit.
        limit_ms: u64,
    },
    /// It computed longer than its CPU limit and was killed.
    #[error("hook computed longer than {limit_ms} ms and was stopped")]
    CpuLimit {
        /// The limit.
        limit_ms: u64,
    },
    /// It used more memory than its limit and was killed.
    #[error("hook used more than {limit_bytes} bytes of memory and was stopped")]
    HeapLimit {
        /// The limit.
        limit_bytes: usize,
    },
    /// A value that crosses the bridge is larger than its limit.
    #[error("a value of the hook is larger than {limit_bytes} bytes")]
    ValueLimit {
        /// The limit.
        limit_bytes: usize,
    },
    /// It handed more text to the host than its limit and was stopped.
    #[error("hook handed more than {limit_bytes} bytes to the host and was stopped")]
    OutputLimit {
        /// The limit.
        limit_bytes: usize,
    },
    /// It had more operations under way than its limit and was stopped.
    #[error("hook had more than {limit} operations under way and was stopped; await some of them first")]
    PendingLimit {
        /// The limit.
        limit: usize,
    },
    /// One of its callbacks computed longer than its limit and was stopped.
    #[error("a callback of the hook computed longer than {limit_ms} ms and was stopped")]
    CallbackLimit {
        /// The limit.
        limit_ms: u64,
    },
    /// The process that it ran in ended, as an engine does that runs out of memory at once.
    #[error("the process of the hook ended: {message}")]
    Died {
        /// How it ended.
        message: String,
    },
    /// The caller cancelled.
    #[error("hook was cancelled")]
    Cancelled,
    /// It returned a promise that nothing will settle.
    #[error("hook returned a promise that never settles")]
    NeverSettles,
    /// A promise was rejected and nobody handled it.
    #[error("unhandled rejection: {0}")]
    UnhandledRejection(JsException),
    /// The result cannot be turned into JSON (a cycle, a BigInt).
    #[error("hook result is not JSON: {message}")]
    NotJson {
        /// Why.
        message: String,
    },
    /// The engine itself failed, or it is not in this build.
    #[error("script engine: {message}")]
    Engine {
        /// What happened and what to do.
        message: String,
    },
}

impl IsolateError {
    /// An engine was asked for [`Isolation::Process`] and has no such level; anything weaker would not be what was asked for.
    pub fn no_process_level(engine: &str) -> Self {
        Self::Engine { message: format!("{engine} has no isolation level `process` in this build; use `isolate`") }
    }

    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Load(_) => "HOOK_LOAD",
            Self::Js(_) => "HOOK_THREW",
            Self::WallLimit { .. } => "HOOK_WALL_LIMIT",
            Self::CpuLimit { .. } => "HOOK_CPU_LIMIT",
            Self::HeapLimit { .. } => "HOOK_HEAP_LIMIT",
            Self::ValueLimit { .. } => "HOOK_VALUE_LIMIT",
            Self::OutputLimit { .. } => "HOOK_OUTPUT_LIMIT",
            Self::PendingLimit { .. } => "HOOK_PENDING_LIMIT",
            Self::CallbackLimit { .. } => "HOOK_CALLBACK_LIMIT",
            Self::Died { .. } => "HOOK_DIED",
            Self::Cancelled => "HOOK_CANCELLED",
            Self::NeverSettles => "HOOK_NEVER_SETTLES",
            Self::UnhandledRejection(_) => "HOOK_UNHANDLED_REJECTION",
            Self::NotJson { .. } => "HOOK_NOT_JSON",
            Self::Engine { .. } => "HOOK_ENGINE",
        }
    }
}

/// How script threads and the host's runtime take turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOff {
    /// The runtime's thread waits while a script computes, so that threads cannot disturb the order: simulation.
    Strict,
    /// The runtime goes on with other work while scripts compute: serving.
    Concurrent,
}

/// What an engine has alive; tests assert that it returns to its base.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IsolateCounters {
    /// Calls under way.
    pub active_calls: usize,
    /// Live `ctx` handles.
    pub live_handles: usize,
    /// Calls finished since the engine started.
    pub finished_calls: u64,
}

/// A script engine. Made with the table of `ctx` operations.
#[async_trait]
pub trait IsolateDriver: Send + Sync + fmt::Debug {
    /// `v8`, `quickjs` or `mock`.
    fn name(&self) -> &'static str;

    /// The names of the functions that the script offers, in source order. Fails if it does not load.
    async fn functions(&self, script: &Arc<Script>, limits: &Limits) -> Result<Vec<String>, IsolateError>;

    /// Calls a function, kept apart from other calls as [`Limits::isolation`] says. An engine that has no such level takes the
    /// next stronger one that it has, or else refuses.
    async fn call(
        &self,
        request: CallRequest,
        ctx: Arc<dyn ContextOps>,
        hand_off: HandOff,
        cancel: &CancellationToken,
    ) -> Result<CallValue, IsolateError>;

    /// What is alive now.
    fn counters(&self) -> IsolateCounters;
}

/// Text of JSON as every reader takes it. A script that cuts a text inside a character leaves half of a surrogate pair; it
/// becomes U+FFFD, as wherever text is encoded. Engines write `\ud…` for such halves and for nothing else.
pub fn well_formed_json(text: String) -> String {
    if !text.contains("\\ud") {
        return text;
    }
    let mut whole = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        let is_half = escape.starts_with("\\ud")
            && escape.as_bytes().get(3).is_some_and(|digit| !digit.is_ascii_digit() || *digit >= b'8');
        let (written, length) = if is_half { ("\\ufffd", 6) } else { (escape.get(..2).unwrap_or(escape), 2) };
        whole.push_str(before);
        whole.push_str(written);
        rest = escape.get(length..).unwrap_or_default();
    }
    whole.push_str(rest);
    whole
}

#[cfg(test)]
mod tests {
    use super::well_formed_json;

    #[test]
    fn halves_of_characters_are_replaced() {
        let table = [
            (r#""plain \n \\ud800 text""#, r#""plain \n \\ud800 text""#),
            (r#"["\ud83d","x\udfff\\"]"#, r#"["\ufffd","x\ufffd\\"]"#),
            (r#""\\\udabc é""#, r#""\\\ufffd é""#),
        ];
        for (text, wanted) in table {
            assert_eq!(well_formed_json(text.to_owned()), wanted);
            assert!(serde_json::from_str::<serde_json::Value>(wanted).is_ok(), "{wanted}");
        }
    }
}
