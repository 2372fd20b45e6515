//! The table of operations that the suite is run with, and the host's side of it.
//!
//! Invariant: every answer is fixed. Time passes only while nothing but timers is under way; the wall deadline passes with it, or when an
//! operation says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use serde_json::{Value, json};

use super::raw;
use super::web_ctx::{self, WebTime};
use crate::isolate::{Callback, CallbackAt, CallbackVerdict, ContextOps, OpArgs, OpDecl, OpError, OpIndex, OpKind};
use crate::{BoxFuture, CancellationToken, RawJson, web};

/// The operations. An engine under test is made with this table.
pub const TABLE: &[OpDecl] = &[
    OpDecl { path: "Send", kind: OpKind::Inline, min_args: 1, callback: None },
    OpDecl { path: "Append", kind: OpKind::Inline, min_args: 2, callback: None },
    OpDecl { path: "mcp.CallTool", kind: OpKind::Await, min_args: 2, callback: None },
    OpDecl {
        path: "llm.Stream",
        kind: OpKind::Await,
        min_args: 2,
        callback: Some(CallbackAt { argument: 2, property: "onChunk" }),
    },
    OpDecl { path: "memory.context.Get", kind: OpKind::Inline, min_args: 1, callback: None },
    OpDecl { path: "memory.context.Set", kind: OpKind::Inline, min_args: 2, callback: None },
    OpDecl { path: "fail", kind: OpKind::Await, min_args: 0, callback: None },
    OpDecl { path: "failNow", kind: OpKind::Inline, min_args: 0, callback: None },
    // Of a group that no call of the suite has.
    OpDecl { path: "memory.user.Get", kind: OpKind::Inline, min_args: 1, callback: None },
    OpDecl { path: "peers.*.ask", kind: OpKind::Await, min_args: 2, callback: None },
    OpDecl { path: "peers.*.title", kind: OpKind::Await, min_args: 1, callback: None },
    OpDecl { path: "slow", kind: OpKind::Await, min_args: 0, callback: None },
    web::DECLS[0],
    web::DECLS[1],
    web::DECLS[2],
    web::DECLS[3],
    web::DECLS[4],
];

/// What happens once `slow` is under way.
#[derive(Clone, Debug, Default)]
pub enum WhenSlow {
    /// Nothing.
    #[default]
    Nothing,
    /// The wall deadline passes.
    WallPasses,
    /// This is cancelled.
    Cancel(CancellationToken),
}

/// The host's side of `ctx` during one call of the suite.
#[derive(Debug, Default)]
pub struct TestCtx {
    log: Mutex<Vec<String>>,
    memory: Mutex<BTreeMap<String, RawJson>>,
    draws: AtomicU32,
    wall: CancellationToken,
    slow: Arc<AtomicUsize>,
    when_slow: WhenSlow,
    time: Arc<WebTime>,
}

impl TestCtx {
    /// A context where something happens once `slow` is under way.
    pub fn when_slow(when_slow: WhenSlow) -> Self {
        Self { when_slow, ..Self::default() }
    }

    /// What was done, in order: `Send "x"`, `console.log a`, …
    pub fn log(&self) -> Vec<String> {
        lock(&self.log).clone()
    }

    /// How many `slow` operations are under way.
    pub fn slow_under_way(&self) -> usize {
        self.slow.load(Ordering::SeqCst)
    }

    fn note(&self, line: String) {
        lock(&self.log).push(line);
    }

    fn describe(op: OpIndex, args: &OpArgs) -> String {
        let args: Vec<&str> = args.iter().map(|arg| arg.get()).collect();
        format!("{} {}", TABLE[op.0].path, args.join(" "))
    }
}

impl ContextOps for TestCtx {
    fn data(&self) -> RawJson {
        raw(r#"{"chat_id":"chat-1","metadata":{"depth":{"n":[1,2]}},"locale":"en-gb","empty":null}"#)
    }

    fn absent(&self) -> Vec<&'static str> {
        vec!["memory.user", "memory.cont", "no.such.group"]
    }

    fn inline(&self, op: OpIndex, args: OpArgs) -> Result<Option<RawJson>, OpError> {
        if let Some(answer) = self.time.ask(TABLE[op.0].path, &args) {
            return answer;
        }
        self.note(Self::describe(op, &args));
        match TABLE[op.0].path {
            "Send" => Ok(Some(raw(r#"{"id":1}"#))),
            "Append" => Ok(None),
            "memory.context.Get" => Ok(lock(&self.memory).get(args[0].get()).cloned()),
            "memory.context.Set" => {
                lock(&self.memory).insert(args[0].get().to_owned(), args[1].clone());
                Ok(None)
            }
            "failNow" => Err(OpError::new("ERR_NOW", "it failed at once")),
            other => panic!("{other} is not inline"),
        }
    }

    fn start(
        &self,
        op: OpIndex,
        args: OpArgs,
        callback: Option<Arc<dyn Callback>>,
    ) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
        if TABLE[op.0].path == web::SLEEP {
            return WebTime::sleep(&self.time, &args);
        }
        self.note(Self::describe(op, &args));
        match TABLE[op.0].path {
            web::FETCH => Box::pin(web_ctx::fetch(UnderWay::new(&self.slow), args)),
            "mcp.CallTool" | "peers.*.ask" | "peers.*.title" => Box::pin(async move {
                yield_once().await;
                let called: Vec<Value> = args.iter().map(|arg| serde_json::from_str(arg.get()).expect("JSON")).collect();
                Ok(Some(raw(&json!({ "called": called }).to_string())))
            }),
            "llm.Stream" => Box::pin(stream(callback)),
            "fail" => Box::pin(async {
                yield_once().await;
                Err(OpError { code: "ERR_TEST".to_owned(), message: "it failed".to_owned(), class: "RangeError" })
            }),
            "slow" => Box::pin(slow(UnderWay::new(&self.slow), self.when_slow.clone(), self.wall.clone())),
            other => panic!("{other} is inline"),
        }
    }

    fn console(&self, level: &str, text: &str) {
        self.note(format!("console.{level} {text}"));
    }

    fn now_ms(&self) -> f64 {
        1_700_000_000_123.0 + self.time.now_ms()
    }

    fn random(&self) -> f64 {
        f64::from(self.draws.fetch_add(1, Ordering::SeqCst) + 1) / 8.0
    }

    fn wall_deadline(&self, after: Duration) -> BoxFuture<'static, ()> {
        let wall = self.wall.clone();
        self.time.end_at(after, &wall);
        Box::pin(async move { wall.cancelled().await })
    }
}

/// Three chunks to the callback, until it stops.
async fn stream(callback: Option<Arc<dyn Callback>>) -> Result<Option<RawJson>, OpError> {
    let mut sent = 0;
    let mut stopped = false;
    if let Some(callback) = callback {
        for chunk in ["a", "b", "c"] {
            yield_once().await;
            sent += 1;
            match callback.call(vec![raw(&json!({ "text": chunk }).to_string()), raw(&sent.to_string())]).await {
                CallbackVerdict::Continue => {}
                CallbackVerdict::Stop => stopped = true,
                CallbackVerdict::Threw(exception) => {
                    return Err(OpError::new("ERR_CALLBACK", format!("onChunk threw {}", exception.message)));
                }
            }
            if stopped {
                break;
            }
        }
    }
    Ok(Some(raw(&json!({ "chunks": sent, "stopped": stopped }).to_string())))
}

async fn slow(under_way: UnderWay, when: WhenSlow, wall: CancellationToken) -> Result<Option<RawJson>, OpError> {
    let _under_way = under_way;
    yield_once().await;
    match when {
        WhenSlow::Nothing => {}
        WhenSlow::WallPasses => wall.cancel(),
        WhenSlow::Cancel(token) => token.cancel(),
    }
    futures::future::pending().await
}

/// Counts an operation for as long as its future lives.
pub(super) struct UnderWay(Arc<AtomicUsize>);

impl UnderWay {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::SeqCst);
        Self(Arc::clone(count))
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Is pending once, so that an operation is not ready at its first poll.
pub(super) async fn yield_once() {
    let mut yielded = false;
    futures::future::poll_fn(|cx| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
