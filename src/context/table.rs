//! The one table of `ctx` operations: engines bind it, the dispatcher runs it.
//!
//! Invariant: an [`OpIndex`] is a position in [`TABLE`], whose order is part of no contract. Deliberately only data.

use greenroom_boundary::isolate::{CallbackAt, OpDecl, OpIndex, OpKind};

/// An operation on the client's stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputVerb {
    /// A whole message.
    Send,
    /// Opens a message.
    SendStream,
    /// Appends to a message.
    Append,
    /// Replaces a message's props.
    Replace,
    /// Merges into a message's props.
    Merge,
    /// Sets a part of a message's props.
    Set,
    /// Closes a message.
    End,
    /// Closes a block.
    EndBlock,
    /// A fresh message id.
    MessageId,
    /// A fresh block id.
    BlockId,
    /// A fresh thread id.
    ThreadId,
}

/// Which key-value space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemorySpace {
    /// One turn tree.
    Context,
    /// One conversation.
    Chat,
}

/// An operation on a key-value space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryVerb {
    /// Reads a value.
    Get,
    /// Writes a value.
    Set,
    /// Removes a key; `*` is a wildcard.
    Del,
    /// Whether a key exists.
    Has,
    /// All keys.
    Keys,
    /// How many keys.
    Len,
    /// Removes all keys.
    Clear,
    /// Adds to a counter.
    Incr,
    /// Subtracts from a counter.
    Decr,
    /// Reads and removes.
    GetDel,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// On the client's stream.
    Output(OutputVerb),
    /// On a key-value space.
    Memory(MemorySpace, MemoryVerb),
    /// Lists a server's tools.
    ListTools,
    /// Calls a tool.
    CallTool,
    /// Calls an agent.
    CallAgent,
    /// Streams a completion.
    StreamLlm,
}

const fn inline(path: &'static str, min_args: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Inline, min_args, callback: None }
}

const fn awaiting(path: &'static str, min_args: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Await, min_args, callback: None }
}

const OPS: [(Op, OpDecl); 35] = {
    use MemorySpace::{Chat, Context};
    use MemoryVerb::{Clear, Decr, Del, Get, GetDel, Has, Incr, Keys, Len};
    use Op::{CallAgent, CallTool, ListTools, Memory, Output, StreamLlm};
    use OutputVerb::{Append, BlockId, End, EndBlock, Merge, MessageId, Replace, Send, SendStream, ThreadId};
    let stream = OpDecl {
        path: "llm.Stream",
        kind: OpKind::Await,
        min_args: 2,
        callback: Some(CallbackAt { argument: 2, property: "onChunk" }),
    };
    [
        (Output(Send), inline("Send", 1)),
        (Output(SendStream), inline("SendStream", 1)),
        (Output(Append), inline("Append", 2)),
        (Output(Replace), inline("Replace", 2)),
        (Output(Merge), inline("Merge", 2)),
        (Output(OutputVerb::Set), inline("Set", 3)),
        (Output(End), inline("End", 1)),
        (Output(EndBlock), inline("EndBlock", 1)),
        (Output(MessageId), inline("MessageID", 0)),
        (Output(BlockId), inline("BlockID", 0)),
        (Output(ThreadId), inline("ThreadID", 0)),
        (ListTools, awaiting("mcp.ListTools", 1)),
        (CallTool, awaiting("mcp.CallTool", 2)),
        (CallAgent, awaiting("agent.Call", 2)),
        (StreamLlm, stream),
        (Memory(Context, Get), inline("memory.context.Get", 1)),
        (Memory(Context, MemoryVerb::Set), inline("memory.context.Set", 2)),
        (Memory(Context, Del), inline("memory.context.Del", 1)),
        (Memory(Context, Has), inline("memory.context.Has", 1)),
        (Memory(Context, Keys), inline("memory.context.Keys", 0)),
        (Memory(Context, Len), inline("memory.context.Len", 0)),
        (Memory(Context, Clear), inline("memory.context.Clear", 0)),
        (Memory(Context, Incr), inline("memory.context.Incr", 1)),
        (Memory(Context, Decr), inline("memory.context.Decr", 1)),
        (Memory(Context, GetDel), inline("memory.context.GetDel", 1)),
        (Memory(Chat, Get), inline("memory.chat.Get", 1)),
        (Memory(Chat, MemoryVerb::Set), inline("memory.chat.Set", 2)),
        (Memory(Chat, Del), inline("memory.chat.Del", 1)),
        (Memory(Chat, Has), inline("memory.chat.Has", 1)),
        (Memory(Chat, Keys), inline("memory.chat.Keys", 0)),
        (Memory(Chat, Len), inline("memory.chat.Len", 0)),
        (Memory(Chat, Clear), inline("memory.chat.Clear", 0)),
        (Memory(Chat, Incr), inline("memory.chat.Incr", 1)),
        (Memory(Chat, Decr), inline("memory.chat.Decr", 1)),
        (Memory(Chat, GetDel), inline("memory.chat.GetDel", 1)),
    ]
};

/// What engines bind.
pub static TABLE: [OpDecl; OPS.len()] = {
    let mut table = [OPS[0].1; OPS.len()];
    let mut index = 0;
    while index < OPS.len() {
        table[index] = OPS[index].1;
        index += 1;
    }
    table
};

/// The operation and its declaration at a position of the table.
pub fn op_at(index: OpIndex) -> Option<(Op, &'static OpDecl)> {
    Some((OPS.get(index.0)?.0, &TABLE[index.0]))
}
