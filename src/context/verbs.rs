//! The operations of `ctx` as values.
//!
//! Invariant: every operation is one value; the table gives it its path. Deliberately no behaviour.

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
    /// One person, if the request says who it is.
    User,
    /// One team, if the request says which.
    Team,
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
    /// Writes and gives the old value.
    GetSet,
    /// Adds to the end of a list.
    Push,
    /// Takes from an end of a list.
    Pop,
    /// Removes a value from a list.
    Pull,
    /// Removes several values from a list.
    PullAll,
    /// Adds what is not yet in a list.
    AddToSet,
    /// Length of a list.
    ArrayLen,
    /// One element of a list.
    ArrayGet,
    /// Replaces one element of a list.
    ArraySet,
    /// A part of a list.
    ArraySlice,
    /// A page of a list.
    ArrayPage,
    /// A whole list.
    ArrayAll,
}

/// An operation on servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpVerb {
    /// Lists tools.
    ListTools,
    /// Calls a tool.
    CallTool,
    /// Calls tools one after the other.
    CallTools,
    /// Calls tools at the same time.
    CallToolsParallel,
    /// Lists resources.
    ListResources,
    /// Reads a resource.
    ReadResource,
    /// Lists prompts.
    ListPrompts,
    /// Renders a prompt.
    GetPrompt,
    /// Every result.
    All,
    /// The first success.
    Any,
    /// The first to end.
    Race,
}

/// An operation on other agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentVerb {
    /// One turn.
    Call,
    /// Every result.
    All,
    /// The first success.
    Any,
    /// The first to end.
    Race,
}

/// A call in short form (nanobot's facade).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FacadeVerb {
    /// Calls a tool or an agent by its target.
    Call,
    /// The text of a prompt by its target.
    Prompt,
    /// Calls a tool of a server.
    ServerCall,
    /// What a server says about its use.
    Instructions,
}

/// An operation on models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LlmVerb {
    /// One completion.
    Stream,
    /// Every result.
    All,
    /// The first success.
    Any,
    /// The first to end.
    Race,
}

/// An operation on the trace that clients see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceVerb {
    /// A node.
    Add,
    /// Several nodes beside each other.
    Parallel,
    /// A note.
    Info,
    /// A note for developers.
    Debug,
    /// A warning.
    Warn,
    /// An error.
    Error,
    /// A node's output.
    SetOutput,
    /// A node's metadata.
    SetMetadata,
    /// A node is done.
    Complete,
    /// A node failed.
    Fail,
    /// The whole trace is done.
    MarkComplete,
    /// Whether the whole trace is done.
    IsComplete,
    /// A key-value space shown in the trace.
    CreateSpace,
    /// Writes to a space.
    SpaceSet,
    /// Reads from a space.
    SpaceGet,
    /// Whether a space has a key.
    SpaceHas,
    /// Removes a key of a space.
    SpaceDelete,
    /// Empties a space.
    SpaceClear,
    /// Keys of a space.
    SpaceKeys,
}

/// A search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchVerb {
    /// On the web.
    Web,
    /// In knowledge bases.
    Kb,
    /// In tables.
    Db,
    /// Every result.
    All,
    /// The first success.
    Any,
    /// The first to end.
    Race,
}

/// An operation on the agent's sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ComputerVerb {
    /// Runs a command.
    Exec,
    /// The address of its screen.
    Vnc,
    /// The address of one of its ports.
    Proxy,
    /// What it is.
    Info,
}

/// An operation on the agent's files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkspaceVerb {
    /// A file's text.
    ReadFile,
    /// Writes a file.
    WriteFile,
    /// What is in a folder.
    ReadDir,
    /// Makes folders.
    MkdirAll,
    /// Removes a file or an empty folder.
    Remove,
    /// Removes everything there.
    RemoveAll,
    /// Moves.
    Rename,
    /// Copies.
    Copy,
    /// What is known of a file.
    Stat,
    /// Whether there is one.
    Exists,
}

/// An operation behind the web's globals; none of them is on `ctx`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebVerb {
    /// Monotonic time.
    Now,
    /// Random bytes.
    Entropy,
    /// Reads and changes addresses.
    Url,
    /// Waits.
    Sleep,
    /// An HTTP exchange.
    Fetch,
}

/// An operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// On the client's stream.
    Output(OutputVerb),
    /// On a key-value space.
    Memory(MemorySpace, MemoryVerb),
    /// On servers.
    Mcp(McpVerb),
    /// On other agents.
    Agent(AgentVerb),
    /// In short form.
    Facade(FacadeVerb),
    /// On models.
    Llm(LlmVerb),
    /// On the trace that clients see.
    Trace(TraceVerb),
    /// A search.
    Search(SearchVerb),
    /// On the agent's sandbox.
    Computer(ComputerVerb),
    /// On the agent's files.
    Workspace(WorkspaceVerb),
    /// Behind the web's globals.
    Web(WebVerb),
}
