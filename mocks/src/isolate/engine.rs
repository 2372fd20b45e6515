//! The mock engine itself.
//!
//! Invariant: a native function wins over scripted outcomes; limits and cancellation hold for both, on the host's clock.
//! Deliberately no threads, so both ways to hand over are the same.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures::future::BoxFuture;
use greenroom_boundary::isolate::{
    CallRequest, CallValue, ContextOps, HandOff, IsolateCounters, IsolateDriver, IsolateError, Limits, OpDecl, Script,
};
use greenroom_boundary::{CancellationToken, RawJson};

use super::call::{MockCall, RecordedCall};
use super::script::{IsolateScript, IsolateStep};

type NativeFunction = Arc<dyn Fn(MockCall) -> BoxFuture<'static, Result<CallValue, IsolateError>> + Send + Sync>;

/// A script engine whose functions are native or scripted.
#[derive(Default)]
pub struct MockIsolate {
    table: &'static [OpDecl],
    functions: Vec<(String, String, NativeFunction)>,
    script: IsolateScript,
    used: Mutex<BTreeMap<String, u32>>,
    calls: Mutex<Vec<RecordedCall>>,
    active: AtomicUsize,
    finished: AtomicU64,
}

impl MockIsolate {
    /// An engine without functions, for a host with these operations.
    pub fn new(table: &'static [OpDecl]) -> Self {
        Self { table, ..Self::default() }
    }

    /// An engine with scripted outcomes alone.
    pub fn scripted(script: IsolateScript) -> Self {
        Self { script, ..Self::default() }
    }

    /// Adds scripted outcomes.
    pub fn with_script(mut self, script: IsolateScript) -> Self {
        self.script.0.extend(script.0);
        self
    }

    /// Adds a native function; it replaces one of the same name.
    pub fn register<F>(mut self, script: &str, function: &str, native: F) -> Self
    where
        F: Fn(MockCall) -> BoxFuture<'static, Result<CallValue, IsolateError>> + Send + Sync + 'static,
    {
        self.functions.retain(|(s, f, _)| (s.as_str(), f.as_str()) != (script, function));
        self.functions.push((script.to_owned(), function.to_owned(), Arc::new(native)));
        self
    }

    /// The calls so far, in order.
    pub fn calls(&self) -> Vec<RecordedCall> {
        lock(&self.calls).clone()
    }

    /// Scripted outcomes that no call has used, for a report.
    pub fn unused(&self) -> Vec<String> {
        let used = lock(&self.used);
        let mut unused = Vec::new();
        for (key, steps) in &self.script.0 {
            let mut taken = used.get(key).copied().unwrap_or(0);
            for (index, step) in steps.iter().enumerate() {
                let wanted = times(step);
                let came = taken.min(wanted);
                taken -= came;
                if came < wanted {
                    unused.push(format!("{key}[{index}] came {came} of {wanted} times"));
                }
            }
        }
        unused
    }

    fn offered(&self, script: &str) -> Vec<String> {
        let mut names: Vec<String> = self.functions.iter().filter(|(s, _, _)| s == script).map(|(_, f, _)| f.clone()).collect();
        for key in self.script.0.keys() {
            if let Some((s, f)) = key.rsplit_once('#')
                && s == script
                && !names.iter().any(|name| name == f)
            {
                names.push(f.to_owned());
            }
        }
        names
    }

    fn native(&self, request: &CallRequest) -> Option<NativeFunction> {
        let found = self.functions.iter().find(|(s, f, _)| *s == request.script.name && *f == request.function);
        found.map(|(_, _, native)| Arc::clone(native))
    }

    fn next_step(&self, key: &str) -> Result<Option<IsolateStep>, IsolateError> {
        let Some(steps) = self.script.0.get(key) else { return Ok(None) };
        let mut used = lock(&self.used);
        let used = used.entry(key.to_owned()).or_default();
        let mut before = 0;
        for step in steps {
            before += times(step);
            if *used < before {
                *used += 1;
                return Ok(Some(step.clone()));
            }
        }
        Err(engine(format!("all {before} scripted calls of {key} are used up; add a step, or `repeat: N` to one")))
    }

    async fn run(&self, request: CallRequest, ctx: Arc<dyn ContextOps>) -> Result<CallValue, IsolateError> {
        let limits = request.limits;
        if let Some(native) = self.native(&request) {
            return native(MockCall { args: request.args, ctx, table: self.table }).await;
        }
        let key = format!("{}#{}", request.script.name, request.function);
        let Some(step) = self.next_step(&key)? else {
            return self.missing(&request.script.name, &key);
        };
        if let Some(thrown) = &step.throws {
            return Err(IsolateError::Js(thrown.exception()));
        }
        if step.timeout {
            return std::future::pending().await;
        }
        if step.heap {
            return Err(IsolateError::HeapLimit { limit_bytes: limits.heap_bytes });
        }
        let Some(value) = step.returns else { return Ok(CallValue::Undefined) };
        let json: RawJson =
            serde_json::value::to_raw_value(&value).map_err(|error| IsolateError::NotJson { message: error.to_string() })?;
        if json.get().len() > limits.value_bytes {
            return Err(IsolateError::ValueLimit { limit_bytes: limits.value_bytes });
        }
        Ok(CallValue::Json(json))
    }

    /// A script with other functions lacks this one; a script with none was forgotten.
    fn missing(&self, script: &str, key: &str) -> Result<CallValue, IsolateError> {
        if self.offered(script).is_empty() {
            return Err(engine(format!(
                "the mock engine knows no function of {script}; script `{key}` under `drivers.isolate`, register it, or use a \
                 real engine"
            )));
        }
        Ok(CallValue::NoSuchFunction)
    }

    fn record(&self, request: &CallRequest) -> Recording<'_> {
        let mut calls = lock(&self.calls);
        calls.push(RecordedCall {
            script: request.script.name.clone(),
            function: request.function.clone(),
            args: request.args.iter().map(|arg| arg.get().to_owned()).collect(),
            outcome: None,
        });
        self.active.fetch_add(1, Ordering::SeqCst);
        Recording { isolate: self, index: calls.len() - 1 }
    }
}

/// Counts a call for as long as its future lives.
struct Recording<'i> {
    isolate: &'i MockIsolate,
    index: usize,
}

impl Recording<'_> {
    fn outcome(&self, result: &Result<CallValue, IsolateError>) {
        let text = match result {
            Ok(CallValue::NoSuchFunction) => "no such function".to_owned(),
            Ok(CallValue::Undefined) => "undefined".to_owned(),
            Ok(CallValue::Json(json)) => json.get().to_owned(),
            Err(error) => error.code().to_owned(),
        };
        if let Some(call) = lock(&self.isolate.calls).get_mut(self.index) {
            call.outcome = Some(text);
        }
    }
}

impl Drop for Recording<'_> {
    fn drop(&mut self) {
        self.isolate.active.fetch_sub(1, Ordering::SeqCst);
        self.isolate.finished.fetch_add(1, Ordering::SeqCst);
    }
}

#[async_trait]
impl IsolateDriver for MockIsolate {
    fn name(&self) -> &'static str {
        "mock"
    }

    async fn functions(&self, script: &Arc<Script>, _: &Limits) -> Result<Vec<String>, IsolateError> {
        Ok(self.offered(&script.name))
    }

    async fn call(
        &self,
        request: CallRequest,
        ctx: Arc<dyn ContextOps>,
        _: HandOff,
        cancel: &CancellationToken,
    ) -> Result<CallValue, IsolateError> {
        let recording = self.record(&request);
        let wall = request.limits.wall;
        let deadline = ctx.wall_deadline(wall);
        let result = tokio::select! {
            biased;
            () = cancel.cancelled() => Err(IsolateError::Cancelled),
            result = self.run(request, ctx) => result,
            () = deadline => Err(IsolateError::WallLimit { limit_ms: u64::try_from(wall.as_millis()).unwrap_or(u64::MAX) }),
        };
        recording.outcome(&result);
        result
    }

    fn counters(&self) -> IsolateCounters {
        IsolateCounters {
            active_calls: self.active.load(Ordering::SeqCst),
            live_handles: 0,
            finished_calls: self.finished.load(Ordering::SeqCst),
        }
    }
}

impl fmt::Debug for MockIsolate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let native: Vec<String> = self.functions.iter().map(|(script, function, _)| format!("{script}#{function}")).collect();
        f.debug_struct("MockIsolate").field("native", &native).field("script", &self.script).finish_non_exhaustive()
    }
}

fn times(step: &IsolateStep) -> u32 {
    step.repeat.map_or(1, u32::from)
}

fn engine(message: String) -> IsolateError {
    IsolateError::Engine { message }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
