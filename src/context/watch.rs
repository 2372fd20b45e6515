//! Looking on while a hook uses `ctx`.
//!
//! Invariant: looking on changes no answer. Deliberately no recording here: whoever looks on decides what to keep.

use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{Callback, CallbackVerdict, OpDecl, OpError};
use serde_json::{Map, Value};

use super::verbs::Op;

/// One use of an operation, as its watcher counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UseIndex(pub usize);

/// Looks on while a hook uses `ctx`.
pub trait ContextWatch: Send + Sync {
    /// May change the plain data of `ctx` before the script gets it.
    fn data(&self, data: &mut Map<String, Value>);

    /// An operation begins.
    fn began(&self, op: Op, decl: &OpDecl, args: &[RawJson]) -> UseIndex;

    /// Its callback was called.
    fn called_back(&self, at: UseIndex);

    /// It ended. One that is cancelled never does.
    fn ended(&self, at: UseIndex, result: Result<&Value, &OpError>);

    /// A line of `console`.
    fn console(&self, level: &str, text: &str);
}

/// A callback that is counted.
pub(super) struct WatchedCallback {
    pub(super) inner: Arc<dyn Callback>,
    pub(super) watch: Arc<dyn ContextWatch>,
    pub(super) at: UseIndex,
}

#[async_trait]
impl Callback for WatchedCallback {
    async fn call(&self, args: Vec<RawJson>) -> CallbackVerdict {
        self.watch.called_back(self.at);
        self.inner.call(args).await
    }
}
