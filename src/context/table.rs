//! The one table of `ctx` operations: engines bind it, the dispatcher runs it.
//!
//! Invariant: an [`OpIndex`] is a position in [`TABLE`], whose order is part of no contract. Deliberately only data; names,
//! types and texts of arguments stand beside it in `signatures`.

use greenroom_boundary::isolate::{CallbackAt, OpDecl, OpIndex, OpKind};
use greenroom_boundary::web;

use super::verbs::{
    AgentVerb, ComputerVerb, FacadeVerb, LlmVerb, McpVerb, MemorySpace, MemoryVerb, Op, OutputVerb, SearchVerb, TraceVerb,
    WebVerb, WorkspaceVerb,
};

type Row = (Op, OpDecl);

const fn inline(path: &'static str, min_args: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Inline, min_args, callback: None }
}

const fn awaiting(path: &'static str, min_args: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Await, min_args, callback: None }
}

/// An awaiting operation whose options, at this argument, may hold `onChunk`.
const fn chunked(path: &'static str, min_args: usize, argument: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Await, min_args, callback: Some(CallbackAt { argument, property: "onChunk" }) }
}

const OUTPUT: &[Row] = &[
    (Op::Output(OutputVerb::Send), inline("Send", 1)),
    (Op::Output(OutputVerb::SendStream), inline("SendStream", 1)),
    (Op::Output(OutputVerb::Append), inline("Append", 2)),
    (Op::Output(OutputVerb::Replace), inline("Replace", 2)),
    (Op::Output(OutputVerb::Merge), inline("Merge", 2)),
    (Op::Output(OutputVerb::Set), inline("Set", 3)),
    (Op::Output(OutputVerb::End), inline("End", 1)),
    (Op::Output(OutputVerb::EndBlock), inline("EndBlock", 1)),
    (Op::Output(OutputVerb::MessageId), inline("MessageID", 0)),
    (Op::Output(OutputVerb::BlockId), inline("BlockID", 0)),
    (Op::Output(OutputVerb::ThreadId), inline("ThreadID", 0)),
];

const FACADE: &[Row] = &[
    (Op::Facade(FacadeVerb::Call), awaiting("call", 1)),
    (Op::Facade(FacadeVerb::Prompt), awaiting("prompt", 1)),
    (Op::Facade(FacadeVerb::ServerCall), awaiting("servers.*.call", 2)),
    (Op::Facade(FacadeVerb::Instructions), awaiting("servers.*.instructions", 1)),
];

const WORK: &[Row] = &[
    (Op::Mcp(McpVerb::ListTools), awaiting("mcp.ListTools", 1)),
    (Op::Mcp(McpVerb::CallTool), awaiting("mcp.CallTool", 2)),
    (Op::Mcp(McpVerb::CallTools), awaiting("mcp.CallTools", 2)),
    (Op::Mcp(McpVerb::CallToolsParallel), awaiting("mcp.CallToolsParallel", 2)),
    (Op::Mcp(McpVerb::ListResources), awaiting("mcp.ListResources", 1)),
    (Op::Mcp(McpVerb::ReadResource), awaiting("mcp.ReadResource", 2)),
    (Op::Mcp(McpVerb::ListPrompts), awaiting("mcp.ListPrompts", 1)),
    (Op::Mcp(McpVerb::GetPrompt), awaiting("mcp.GetPrompt", 2)),
    (Op::Mcp(McpVerb::All), awaiting("mcp.All", 1)),
    (Op::Mcp(McpVerb::Any), awaiting("mcp.Any", 1)),
    (Op::Mcp(McpVerb::Race), awaiting("mcp.Race", 1)),
    (Op::Agent(AgentVerb::Call), chunked("agent.Call", 2, 2)),
    (Op::Agent(AgentVerb::All), chunked("agent.All", 1, 1)),
    (Op::Agent(AgentVerb::Any), chunked("agent.Any", 1, 1)),
    (Op::Agent(AgentVerb::Race), chunked("agent.Race", 1, 1)),
    (Op::Llm(LlmVerb::Stream), chunked("llm.Stream", 2, 2)),
    (Op::Llm(LlmVerb::All), chunked("llm.All", 1, 1)),
    (Op::Llm(LlmVerb::Any), chunked("llm.Any", 1, 1)),
    (Op::Llm(LlmVerb::Race), chunked("llm.Race", 1, 1)),
];

const TRACE: &[Row] = &[
    (Op::Trace(TraceVerb::Add), inline("trace.Add", 1)),
    (Op::Trace(TraceVerb::Parallel), inline("trace.Parallel", 1)),
    (Op::Trace(TraceVerb::Info), inline("trace.Info", 1)),
    (Op::Trace(TraceVerb::Debug), inline("trace.Debug", 1)),
    (Op::Trace(TraceVerb::Warn), inline("trace.Warn", 1)),
    (Op::Trace(TraceVerb::Error), inline("trace.Error", 1)),
    (Op::Trace(TraceVerb::SetOutput), inline("trace.SetOutput", 1)),
    (Op::Trace(TraceVerb::SetMetadata), inline("trace.SetMetadata", 2)),
    (Op::Trace(TraceVerb::Complete), inline("trace.Complete", 0)),
    (Op::Trace(TraceVerb::Fail), inline("trace.Fail", 1)),
    (Op::Trace(TraceVerb::MarkComplete), inline("trace.MarkComplete", 0)),
    (Op::Trace(TraceVerb::IsComplete), inline("trace.IsComplete", 0)),
    (Op::Trace(TraceVerb::CreateSpace), inline("trace.CreateSpace", 0)),
    (Op::Trace(TraceVerb::SpaceSet), inline("trace.SpaceSet", 3)),
    (Op::Trace(TraceVerb::SpaceGet), inline("trace.SpaceGet", 2)),
    (Op::Trace(TraceVerb::SpaceHas), inline("trace.SpaceHas", 2)),
    (Op::Trace(TraceVerb::SpaceDelete), inline("trace.SpaceDelete", 2)),
    (Op::Trace(TraceVerb::SpaceClear), inline("trace.SpaceClear", 1)),
    (Op::Trace(TraceVerb::SpaceKeys), inline("trace.SpaceKeys", 1)),
];

const SEARCH: &[Row] = &[
    (Op::Search(SearchVerb::Web), awaiting("search.Web", 1)),
    (Op::Search(SearchVerb::Kb), awaiting("search.KB", 1)),
    (Op::Search(SearchVerb::Db), awaiting("search.DB", 1)),
    (Op::Search(SearchVerb::All), awaiting("search.All", 1)),
    (Op::Search(SearchVerb::Any), awaiting("search.Any", 1)),
    (Op::Search(SearchVerb::Race), awaiting("search.Race", 1)),
];

const PLACE: &[Row] = &[
    (Op::Computer(ComputerVerb::Exec), awaiting("computer.Exec", 1)),
    (Op::Computer(ComputerVerb::Vnc), inline("computer.VNC", 0)),
    (Op::Computer(ComputerVerb::Proxy), inline("computer.Proxy", 1)),
    (Op::Computer(ComputerVerb::Info), inline("computer.Info", 0)),
    (Op::Workspace(WorkspaceVerb::ReadFile), inline("workspace.ReadFile", 1)),
    (Op::Workspace(WorkspaceVerb::WriteFile), inline("workspace.WriteFile", 2)),
    (Op::Workspace(WorkspaceVerb::ReadDir), inline("workspace.ReadDir", 0)),
    (Op::Workspace(WorkspaceVerb::MkdirAll), inline("workspace.MkdirAll", 1)),
    (Op::Workspace(WorkspaceVerb::Remove), inline("workspace.Remove", 1)),
    (Op::Workspace(WorkspaceVerb::RemoveAll), inline("workspace.RemoveAll", 1)),
    (Op::Workspace(WorkspaceVerb::Rename), inline("workspace.Rename", 2)),
    (Op::Workspace(WorkspaceVerb::Copy), inline("workspace.Copy", 2)),
    (Op::Workspace(WorkspaceVerb::Stat), inline("workspace.Stat", 1)),
    (Op::Workspace(WorkspaceVerb::Exists), inline("workspace.Exists", 1)),
];

macro_rules! memory {
    ($space:ident, $name:literal: $($verb:ident $min:literal),* $(,)?) => {
        &[$((
            Op::Memory(MemorySpace::$space, MemoryVerb::$verb),
            inline(concat!("memory.", $name, ".", stringify!($verb)), $min),
        )),*]
    };
}

macro_rules! memory_space {
    ($space:ident, $name:literal) => {
        memory!($space, $name:
            Get 1, Set 2, Del 1, Has 1, Keys 0, Len 0, Clear 0, Incr 1, Decr 1, GetDel 1, GetSet 2,
            Push 2, Pop 1, Pull 2, PullAll 2, AddToSet 2,
            ArrayLen 1, ArrayGet 2, ArraySet 3, ArraySlice 2, ArrayPage 3, ArrayAll 1)
    };
}

/// Behind the web's globals.
const WEB: &[Row] = &[
    (Op::Web(WebVerb::Now), web::DECLS[0]),
    (Op::Web(WebVerb::Entropy), web::DECLS[1]),
    (Op::Web(WebVerb::Url), web::DECLS[2]),
    (Op::Web(WebVerb::Sleep), web::DECLS[3]),
    (Op::Web(WebVerb::Fetch), web::DECLS[4]),
];

const GROUPS: &[&[Row]] = &[
    OUTPUT,
    FACADE,
    WORK,
    memory_space!(Context, "context"),
    memory_space!(Chat, "chat"),
    memory_space!(User, "user"),
    memory_space!(Team, "team"),
    TRACE,
    SEARCH,
    PLACE,
    WEB,
];

const LENGTH: usize = {
    let (mut length, mut group) = (0, 0);
    while group < GROUPS.len() {
        length += GROUPS[group].len();
        group += 1;
    }
    length
};

const OPS: [Row; LENGTH] = {
    let mut ops = [OUTPUT[0]; LENGTH];
    let (mut at, mut group) = (0, 0);
    while group < GROUPS.len() {
        let mut row = 0;
        while row < GROUPS[group].len() {
            ops[at] = GROUPS[group][row];
            at += 1;
            row += 1;
        }
        group += 1;
    }
    ops
};

/// What engines bind.
pub static TABLE: [OpDecl; LENGTH] = {
    let mut table = [OPS[0].1; LENGTH];
    let mut index = 0;
    while index < LENGTH {
        table[index] = OPS[index].1;
        index += 1;
    }
    table
};

static ROWS: [Row; LENGTH] = OPS;

/// The operation and its declaration at a position of the table.
pub fn op_at(index: OpIndex) -> Option<(Op, &'static OpDecl)> {
    Some((ROWS.get(index.0)?.0, &TABLE[index.0]))
}
