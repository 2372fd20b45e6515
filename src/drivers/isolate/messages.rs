//! What host and child say to each other: a length of four bytes, then JSON.
//!
//! Invariant: values of scripts cross as the text that they are; floats cross by their bits. Deliberately no version: both ends are
//! the same program.

use std::io::{self, Read, Write};
use std::sync::Arc;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{
    CallValue, CallbackAt, CallbackVerdict, IsolateError, Limits, OpArgs, OpDecl, OpError, OpIndex, OpKind, PassCtx, Script,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// From the host to its child.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToChild {
    /// First of all: which engine, and the table of operations.
    Setup { engine: String, table: Vec<WireOp> },
    /// Call a function.
    Call(Box<WireCall>),
    /// List the functions of a script.
    Functions { script: Script, limits: Limits },
    /// The answer to what the script's thread waits for.
    Answer(Answer),
    /// An operation ended.
    Settled { id: u64, outcome: Outcome },
    /// An operation calls the script back.
    Callback { id: u64, ask: u64, args: Vec<RawJson> },
}

/// From the child to its host.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToHost {
    /// Run this operation at once; the script's thread waits.
    Inline { op: OpIndex, args: OpArgs },
    /// What time is it? The script's thread waits.
    Now,
    /// Draw a number. The script's thread waits.
    Random,
    /// A line of the console.
    Console { level: String, text: String },
    /// Start this operation.
    Start { id: u64, op: OpIndex, args: OpArgs, callback: bool },
    /// Drop this operation; nobody waits for it any more.
    Cancel { id: u64 },
    /// A callback answered.
    Verdict { ask: u64, verdict: CallbackVerdict },
    /// The script computes no more until a message comes.
    Parked,
    /// The end of a call.
    Returned(Result<CallValue, IsolateError>),
    /// The functions of a script.
    Names(Result<Vec<String>, IsolateError>),
}

/// One call.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireCall {
    pub(super) script: Script,
    pub(super) function: String,
    pub(super) pass_ctx: PassCtx,
    pub(super) args: Vec<RawJson>,
    pub(super) limits: Limits,
    /// The plain data of `ctx`.
    pub(super) data: RawJson,
    /// The groups of `ctx` that this call does not have.
    pub(super) absent: Vec<String>,
}

/// What a script's thread waits for.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    Outcome(Outcome),
    Bits(u64),
}

/// How an operation ended.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    Undefined,
    Value(RawJson),
    Failed { code: String, message: String, class: String },
}

impl From<Result<Option<RawJson>, OpError>> for Outcome {
    fn from(outcome: Result<Option<RawJson>, OpError>) -> Self {
        match outcome {
            Ok(None) => Self::Undefined,
            Ok(Some(value)) => Self::Value(value),
            Err(OpError { code, message, class }) => Self::Failed { code, message, class: class.to_owned() },
        }
    }
}

impl From<Outcome> for Result<Option<RawJson>, OpError> {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Undefined => Ok(None),
            Outcome::Value(value) => Ok(Some(value)),
            Outcome::Failed { code, message, class } => Err(OpError { code, message, class: known_class(&class) }),
        }
    }
}

/// The classes of errors that operations throw.
fn known_class(class: &str) -> &'static str {
    ["TypeError", "RangeError", "SyntaxError", "ReferenceError", "EvalError", "URIError", "AggregateError"]
        .into_iter()
        .find(|known| *known == class)
        .unwrap_or("Error")
}

/// One operation of the table.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct WireOp {
    path: String,
    kind: OpKind,
    min_args: usize,
    callback: Option<(usize, String)>,
}

impl From<&OpDecl> for WireOp {
    fn from(op: &OpDecl) -> Self {
        let callback = op.callback.map(|at| (at.argument, at.property.to_owned()));
        Self { path: op.path.to_owned(), kind: op.kind, min_args: op.min_args, callback }
    }
}

impl WireOp {
    /// The operation, kept for the life of the process, which has one table.
    pub(super) fn keep(self) -> OpDecl {
        let callback = self.callback.map(|(argument, property)| CallbackAt { argument, property: property.leak() });
        OpDecl { path: self.path.leak(), kind: self.kind, min_args: self.min_args, callback }
    }
}

impl WireCall {
    /// The script, shared.
    pub(super) fn take_script(&mut self) -> Arc<Script> {
        Arc::new(std::mem::take(&mut self.script))
    }
}

/// A message as it crosses the pipe.
pub(super) fn frame(message: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message)?;
    let length = u32::try_from(bytes.len() - 4).map_err(io::Error::other)?;
    bytes[..4].copy_from_slice(&length.to_le_bytes());
    Ok(bytes)
}

/// Writes a message.
pub(super) fn write(pipe: &mut impl Write, message: &impl Serialize) -> io::Result<()> {
    pipe.write_all(&frame(message)?)
}

/// Reads a message of at most so many bytes; `None` at the end.
pub(super) fn read<T: DeserializeOwned>(pipe: &mut impl Read, most_bytes: usize) -> io::Result<Option<T>> {
    let mut length = [0; 4];
    match pipe.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > most_bytes {
        return Err(io::Error::other(format!("a message of {length} bytes is longer than any may be")));
    }
    let mut bytes = vec![0; length];
    pipe.read_exact(&mut bytes)?;
    Ok(Some(serde_json::from_slice(&bytes)?))
}
