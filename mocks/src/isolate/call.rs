//! What a native function of the mock engine is given, and what is kept of a call.
//!
//! Invariant: `ctx` is reached by the paths of the table alone, as from a script. Deliberately no handles to release.

use std::fmt;
use std::sync::Arc;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{Callback, ContextOps, OpArgs, OpDecl, OpError, OpIndex, OpKind};

/// One call of a native function.
#[derive(Clone)]
pub struct MockCall {
    /// The arguments, without `ctx`.
    pub args: Vec<RawJson>,
    /// The host's side of `ctx`.
    pub ctx: Arc<dyn ContextOps>,
    /// The operations of `ctx`.
    pub table: &'static [OpDecl],
}

impl MockCall {
    /// Runs the operation at a path of `ctx`, `memory.context.Get`, and waits for it.
    pub async fn op(&self, path: &str, args: OpArgs) -> Result<Option<RawJson>, OpError> {
        self.op_with_callback(path, args, None).await
    }

    /// The same with a callback.
    pub async fn op_with_callback(
        &self,
        path: &str,
        args: OpArgs,
        callback: Option<Arc<dyn Callback>>,
    ) -> Result<Option<RawJson>, OpError> {
        let Some((index, decl)) = self.table.iter().enumerate().find(|(_, decl)| decl.path == path) else {
            return Err(OpError::bad_argument(format!("ctx.{path} is not a function")));
        };
        let lacks = |group: &&str| path.strip_prefix(*group).is_some_and(|rest| rest.starts_with('.'));
        if self.ctx.absent().iter().any(lacks) {
            return Err(OpError::bad_argument(format!("ctx.{path} is not a function")));
        }
        if args.len() < decl.min_args {
            let (min, given) = (decl.min_args, args.len());
            return Err(OpError::bad_argument(format!("ctx.{path} needs {min} arguments, {given} given")));
        }
        match decl.kind {
            OpKind::Inline => self.ctx.inline(OpIndex(index), args),
            OpKind::Await => self.ctx.start(OpIndex(index), args, callback).await,
        }
    }
}

impl fmt::Debug for MockCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockCall").field("args", &self.args).finish_non_exhaustive()
    }
}

/// A call that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedCall {
    /// The script's name.
    pub script: String,
    /// The function's name.
    pub function: String,
    /// JSON text of the arguments, without `ctx`.
    pub args: Vec<String>,
    /// JSON text of the result, `undefined`, `no such function`, or the error's code; `None` while it runs or when it was
    /// dropped.
    pub outcome: Option<String>,
}
