//! What the table cannot say: names and types of arguments, results, and a sentence about each operation.
//!
//! Invariant: every operation of the table has a signature and every signature an operation; a test holds them together. The
//! reference and the TypeScript declarations are both made from here. Deliberately only data.

/// One operation.
#[derive(Clone, Copy, Debug)]
pub struct Signature {
    /// Its name below the part's prefix.
    pub name: &'static str,
    /// Its parameters, as TypeScript.
    pub parameters: &'static str,
    /// Its result, as TypeScript.
    pub returns: &'static str,
    /// What it does.
    pub text: &'static str,
}

/// A part of `ctx`.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// The paths' prefix, dot included.
    pub prefix: &'static str,
    /// The TypeScript interface.
    pub interface: &'static str,
    /// A heading.
    pub title: &'static str,
    /// What holds for all its operations.
    pub introduction: &'static str,
    /// The operations.
    pub operations: &'static [Signature],
}

const fn sig(name: &'static str, parameters: &'static str, returns: &'static str, text: &'static str) -> Signature {
    Signature { name, parameters, returns, text }
}

const OUTPUT: &[Signature] = &[
    sig(
        "Send",
        "message: string | OutMessage, blockId?: string",
        "string",
        "A whole message, opened and closed at once. Returns its id; `\"\"` for a message of type `event`.",
    ),
    sig(
        "SendStream",
        "message: string | OutMessage, blockId?: string",
        "string",
        "Opens a message that more follows to; close it with `End`.",
    ),
    sig(
        "Append",
        "messageId: string, content: string | OutMessage | unknown[], path?: string",
        "string",
        "Appends to a text or a list; everywhere, or at a dotted path below `props`.",
    ),
    sig(
        "Replace",
        "messageId: string, message: string | OutMessage",
        "string",
        "Replaces the message's `props`; allowed after its end, too.",
    ),
    sig(
        "Merge",
        "messageId: string, data: OutMessage | unknown, path?: string",
        "string",
        "Merges objects into `props`, or into the object at a path; a `null` changes nothing. A bare object means `props`.",
    ),
    sig(
        "Set",
        "messageId: string, data: OutMessage | unknown, path: string",
        "string",
        "Sets the value at a path. Anything that is no message is the value itself.",
    ),
    sig(
        "End",
        "messageId: string, finalContent?: string",
        "string",
        "Closes a message, after a last piece of text if one is given. Closing it again does nothing.",
    ),
    sig("EndBlock", "blockId: string", "void", "Closes a block; an unknown one is ignored."),
    sig("MessageID", "", "string", "A fresh message id, unique in the whole turn tree."),
    sig("BlockID", "", "string", "A fresh block id."),
    sig("ThreadID", "", "string", "A fresh thread id."),
];

const CALLS: &[Signature] = &[
    sig(
        "call",
        "target: string, arguments?: object | string",
        "CallOutcome",
        "Calls the tool `server/tool`; an agent by its name or as `chat-with-NAME`, for which a string is its prompt. A result with `isError` is returned, not thrown; a call that fails is thrown.",
    ),
    sig(
        "prompt",
        "target: string, arguments?: Record<string, string>",
        "string",
        "The text of the prompt `server/prompt`, or of a prompt of the config by its name. It must be exactly one text message, else `ERR_PROMPT`.",
    ),
];

const SERVER: &[Signature] = &[
    sig("call", "tool: string, arguments?: object", "CallOutcome", "Calls a tool of this server, as `ctx.call` does."),
    sig(
        "instructions",
        "",
        "string",
        "What the server says about its use (`instructions` of the handshake); `\"\"` if it says nothing. It is data: nothing in it is expanded or run.",
    ),
];

const MCP: &[Signature] = &[
    sig(
        "ListTools",
        "server: string, cursor?: null",
        "{ tools: Tool[] }",
        "The tools as the host shows them, overrides applied. The list is whole: every page has been read.",
    ),
    sig(
        "CallTool",
        "server: string, tool: string, arguments?: object",
        "any",
        "Calls a tool. The value is the structured content; else the content items, text read as JSON where it is JSON, unwrapped if there is only one. A result with `isError` throws (`ERR_TOOL`), and so does a failed call (its code).",
    ),
    sig(
        "CallTools",
        "server: string, calls: ToolRequest[]",
        "any[]",
        "Calls tools one after the other. The first failure is thrown; what follows it is not called.",
    ),
    sig(
        "CallToolsParallel",
        "server: string, calls: ToolRequest[]",
        "any[]",
        "Calls tools at the same time; values in the order of the calls. Every call ends before the first failure, in that order, is thrown.",
    ),
    sig("ListResources", "server: string, cursor?: null", "{ resources: Resource[] }", "The resources, all of them."),
    sig("ReadResource", "server: string, uri: string", "{ contents: ResourceContent[] }", "Reads a resource."),
    sig("ListPrompts", "server: string, cursor?: null", "{ prompts: Prompt[] }", "The prompts, all of them."),
    sig(
        "GetPrompt",
        "server: string, name: string, arguments?: Record<string, string>",
        "{ description?: string; messages: PromptMessage[] }",
        "Renders a prompt.",
    ),
    sig("All", "requests: McpRequest[]", "McpResult[]", "Calls every tool at the same time. Never throws for a failed one."),
    sig(
        "Any",
        "requests: McpRequest[]",
        "McpResult[]",
        "The first success wins and the others are cancelled. A result with `isError` is a failure.",
    ),
    sig("Race", "requests: McpRequest[]", "McpResult[]", "The first to end wins, well or not; the others are cancelled."),
];

const AGENT: &[Signature] = &[
    sig(
        "Call",
        "agentId: string, messages: ChatMessage[], options?: AgentOptions & { onChunk?: (message: OutMessage) => unknown }",
        "AgentResult",
        "Runs a turn of another agent. It does not throw for a failed turn. `onChunk` hears the turn's text, what its own delegates say included; returning `false` or a number other than 0 stops the turn (`code: \"STOPPED\"`).",
    ),
    sig("All", "requests: AgentRequest[], options?: BatchOptions", "AgentResult[]", "Runs every turn at the same time."),
    sig(
        "Any",
        "requests: AgentRequest[], options?: BatchOptions",
        "AgentResult[]",
        "The first success wins and the other turns are cancelled, with the work below them.",
    ),
    sig(
        "Race",
        "requests: AgentRequest[], options?: BatchOptions",
        "AgentResult[]",
        "The first to end wins, well or not; the others are cancelled.",
    ),
];

const LLM: &[Signature] = &[
    sig(
        "Stream",
        "connector: string, messages: ChatMessage[], options?: LlmOptions & { onChunk?: (message: OutMessage) => unknown }",
        "LlmResult",
        "Streams a completion. `onChunk` is called with `{ type: \"text\", props: { content }, delta: true }` for each piece; returning `false` or a number other than 0 stops the stream, which is a success with `stopped: true`. Other options go to the provider as they are.",
    ),
    sig("All", "requests: LlmRequest[], options?: BatchOptions", "LlmResult[]", "Asks every model at the same time."),
    sig(
        "Any",
        "requests: LlmRequest[], options?: BatchOptions",
        "LlmResult[]",
        "The first success wins and the other streams are cancelled.",
    ),
    sig(
        "Race",
        "requests: LlmRequest[], options?: BatchOptions",
        "LlmResult[]",
        "The first to end wins, well or not; the others are cancelled.",
    ),
];

const MEMORY: &[Signature] = &[
    sig("Get", "key: string", "any", "The value of a key, `null` if there is none or its time is over."),
    sig(
        "Set",
        "key: string, value: unknown, ttlMs?: number",
        "void",
        "Writes a value: anything that is JSON. `ttlMs` is in milliseconds; without it, or at 0 and less, the value stays.",
    ),
    sig("Del", "key: string", "void", "Removes a key. `*` in it stands for any text."),
    sig("Has", "key: string", "boolean", "Whether a key exists."),
    sig("Keys", "", "string[]", "All keys, sorted."),
    sig("Len", "", "number", "How many keys there are."),
    sig("Clear", "", "void", "Removes all keys."),
    sig(
        "Incr",
        "key: string, delta?: number",
        "number",
        "Adds to a counter (1 if not said) and returns it. A missing key counts from 0; a value that is no whole number is a TypeError; beyond 2^53 - 1 is `ERR_COUNTER_RANGE`. The time to live stays.",
    ),
    sig("Decr", "key: string, delta?: number", "number", "Subtracts from a counter and returns it."),
    sig("GetDel", "key: string", "any", "Reads a key and removes it."),
    sig("GetSet", "key: string, value: unknown", "any", "Writes a value and returns the one before it. The new value stays."),
    sig(
        "Push",
        "key: string, values: unknown | unknown[]",
        "number",
        "Adds to the end of a list: the elements of an array, anything else as it is. Returns the new length. A missing key is an empty list; a value that is no list is a TypeError; so for every list operation.",
    ),
    sig(
        "Pop",
        "key: string, position?: 1 | -1",
        "any",
        "Takes the last element (`1`, or nothing) or the first one (`-1`); `null` if there is none.",
    ),
    sig("Pull", "key: string, value: unknown", "number", "Removes every element that equals the value. Returns how many."),
    sig(
        "PullAll",
        "key: string, values: unknown[]",
        "number",
        "Removes every element that equals one of the values. Returns how many.",
    ),
    sig(
        "AddToSet",
        "key: string, values: unknown | unknown[]",
        "number",
        "Adds what is not in the list yet. Returns how many were added.",
    ),
    sig("ArrayLen", "key: string", "number", "Length of a list."),
    sig("ArrayGet", "key: string, index: number", "any", "One element, `null` if there is none; below 0 counts from the end."),
    sig(
        "ArraySet",
        "key: string, index: number, value: unknown",
        "void",
        "Replaces one element; `ERR_INDEX` if there is none.",
    ),
    sig("ArraySlice", "key: string, skip: number, limit?: number", "any[]", "A part of a list."),
    sig("ArrayPage", "key: string, page: number, pageSize: number", "any[]", "A page of a list; the first page is 1."),
    sig("ArrayAll", "key: string", "any[]", "The whole list."),
];

const TRACE: &[Signature] = &[
    sig(
        "Add",
        "input: unknown, option?: TraceOption, parentId?: string",
        "{ id: string }",
        "A node, which is the current one from now on.",
    ),
    sig(
        "Parallel",
        "items: { input: unknown; option?: TraceOption }[], parentId?: string",
        "{ id: string }[]",
        "Several nodes beside each other; the last one is the current one.",
    ),
    sig("Info", "message: string, nodeId?: string", "void", "A note at a node; without one, at the current node."),
    sig("Debug", "message: string, nodeId?: string", "void", "A note for developers."),
    sig("Warn", "message: string, nodeId?: string", "void", "A warning."),
    sig("Error", "message: string, nodeId?: string", "void", "An error; the node goes on."),
    sig("SetOutput", "output: unknown, nodeId?: string", "void", "What a node gave so far."),
    sig("SetMetadata", "key: string, value: unknown, nodeId?: string", "void", "A fact about a node."),
    sig(
        "Complete",
        "output?: unknown, nodeId?: string",
        "void",
        "A node is done. Once more, or after `Fail`, is `ERR_NODE_CLOSED`.",
    ),
    sig("Fail", "message: string, nodeId?: string", "void", "A node failed."),
    sig("MarkComplete", "", "void", "The whole trace is done; again does nothing."),
    sig("IsComplete", "", "boolean", "Whether the whole trace is done."),
    sig("CreateSpace", "option?: TraceOption", "{ id: string }", "A key-value space that the trace shows."),
    sig("SpaceSet", "spaceId: string, key: string, value: unknown", "void", "Writes to a space."),
    sig("SpaceGet", "spaceId: string, key: string", "any", "Reads from a space, `null` if there is nothing."),
    sig("SpaceHas", "spaceId: string, key: string", "boolean", "Whether a space has a key."),
    sig("SpaceDelete", "spaceId: string, key: string", "void", "Removes a key of a space."),
    sig("SpaceClear", "spaceId: string", "void", "Empties a space."),
    sig("SpaceKeys", "spaceId: string", "string[]", "Keys of a space, sorted."),
];

const fn memory(prefix: &'static str, title: &'static str, introduction: &'static str) -> Part {
    Part { prefix, interface: "MemorySpace", title, introduction, operations: MEMORY }
}

const SEARCH: &[Signature] = &[
    sig(
        "Web",
        "query: string, options?: WebSearchOptions",
        "SearchResult",
        "Searches the web, with the provider of the config (`search.web`).",
    ),
    sig(
        "KB",
        "query: string, options?: KbSearchOptions",
        "SearchResult",
        "Searches knowledge bases (`search.kb`): passages of texts, best first.",
    ),
    sig(
        "DB",
        "query: string, options?: DbSearchOptions",
        "SearchResult",
        "Searches tables (`search.db`): rows for which every condition of `wheres` holds, best first or as `orders` says. An empty query means every row.",
    ),
    sig("All", "requests: SearchRequest[]", "SearchResult[]", "Searches everywhere at the same time."),
    sig(
        "Any",
        "requests: SearchRequest[]",
        "SearchResult[]",
        "The first that finds something wins and the others are cancelled.",
    ),
    sig("Race", "requests: SearchRequest[]", "SearchResult[]", "The first to end wins, well or not; the others are cancelled."),
];

const COMPUTER: &[Signature] = &[
    sig(
        "Exec",
        "cmd: string | string[]",
        "{ stdout: string; stderr: string; exit_code: number }",
        "Runs a command in the sandbox, without a shell; a string is split at blanks. A command that fails is a value; one that cannot be run, runs longer than `policy.tool_timeout` or says too much throws (`CLI_…`).",
    ),
    sig("VNC", "", "string", "Throws `ERR_UNSUPPORTED`: the sandbox has no screen."),
    sig("Proxy", "port: number, path?: string", "string", "Throws `ERR_UNSUPPORTED`: the sandbox has no network."),
    sig("Info", "", "ComputerInfo", "What the sandbox is. It says the same on every machine."),
];

const WORKSPACE: &[Signature] = &[
    sig("ReadFile", "path: string", "string", "A file's text; one that is no UTF-8 is an error."),
    sig("WriteFile", "path: string, content: string", "void", "Writes a whole file; its folder must exist."),
    sig("ReadDir", "path?: string", "{ name: string; is_dir: boolean; size: number }[]", "What is in a folder, by name."),
    sig("MkdirAll", "path: string", "void", "Makes a folder and those above it."),
    sig("Remove", "path: string", "void", "Removes a file or an empty folder."),
    sig("RemoveAll", "path: string", "void", "Removes a file or a whole folder; nothing there is no error."),
    sig("Rename", "path: string, to: string", "void", "Moves a file or folder."),
    sig("Copy", "path: string, to: string", "void", "Copies a file."),
    sig("Stat", "path: string", "FileStat", "What is known of a file or folder; `mtime` in milliseconds."),
    sig("Exists", "path: string", "boolean", "Whether there is one. A path that leads outside is an error, not `false`."),
];

/// Everything, in the order of the reference.
pub const PARTS: &[Part] = &[
    Part {
        prefix: "",
        interface: "Ctx",
        title: "Messages to the client",
        introduction: "Messages appear in the client's stream, in the trace as `output` events. A message is a string (a text \
             message) or an object with a string `type`. Paths are relative to `props`; a leading `props.` may be written. What \
             the server keeps of a message is what a client that applied every delta shows. An unknown id, a message that has \
             ended and a path that leads nowhere are errors, and nothing is sent then.",
        operations: OUTPUT,
    },
    Part {
        prefix: "",
        interface: "Ctx",
        title: "Calls in short",
        introduction: "nanobot's facade. Calls go through the router like those of `ctx.mcp`. A result is `{ content, isError, \
             structuredContent, output }`: `output` is the structured content; else the only text, read as JSON if it is an \
             object and the tool declares no output schema; else the first text. In `${…}` expressions of the config `call`, \
             `prompt` and `servers` are global, with their `Async` twins.",
        operations: CALLS,
    },
    Part {
        prefix: "servers.*.",
        interface: "CtxServer",
        title: "`ctx.servers.NAME`: one server in short",
        introduction: "Any server or agent by its name, `ctx.servers[\"my-server\"]`; whether there is one shows when it is used.",
        operations: SERVER,
    },
    Part {
        prefix: "mcp.",
        interface: "CtxMcp",
        title: "`ctx.mcp`: servers and tools",
        introduction: "Any server of the host by its name: external ones, script servers, built-in ones and agents. Calls go \
             through the router, so hooks, overrides and limits apply as for anyone.",
        operations: MCP,
    },
    Part {
        prefix: "agent.",
        interface: "CtxAgent",
        title: "`ctx.agent`: other agents",
        introduction: "The other agent has its own tools, its own hooks and a conversation of its own. Depth and cycles are \
             limited by the policy. A result is `{ agent_id, content, response }`, or `{ agent_id, error, code }`.",
        operations: AGENT,
    },
    Part {
        prefix: "llm.",
        interface: "CtxLlm",
        title: "`ctx.llm`: models",
        introduction: "The text also goes to the client's stream. A model gets no tools here. A result is `{ connector, content, \
             response, stopped }`, or `{ connector, error, code }`.",
        operations: LLM,
    },
    memory(
        "memory.context.",
        "`ctx.memory.context`: one turn tree",
        "Lives for one turn of a person, shared with every agent below it; a value is gone after 30 minutes if its `Set` says nothing else.",
    ),
    memory(
        "memory.chat.",
        "`ctx.memory.chat`: one conversation",
        "Lives as long as the conversation (`chat`), in memory; a value is gone after 24 hours if its `Set` says nothing else.",
    ),
    memory(
        "memory.user.",
        "`ctx.memory.user`: one person",
        "Shared by all conversations of the person whom the turn's metadata names in `authorized.user_id`; without that \
         `ctx.memory.user` is `undefined`. In memory.",
    ),
    memory(
        "memory.team.",
        "`ctx.memory.team`: one team",
        "Shared by all conversations of the team that the turn's metadata names in `authorized.team_id`; without that \
         `ctx.memory.team` is `undefined`. In memory.",
    ),
    Part {
        prefix: "trace.",
        interface: "CtxTrace",
        title: "`ctx.trace`: steps that a client may show",
        introduction: "Each change is one message of type `trace` on the client's stream, with `action`, `node` and what changed. \
             Nodes and spaces are named by id; they have no methods of their own.",
        operations: TRACE,
    },
    Part {
        prefix: "search.",
        interface: "CtxSearch",
        title: "`ctx.search`: the web, knowledge bases, tables",
        introduction: "Where it searches is up to the config; what is not listed there is not searched, the web included. A result is \
             `{ type, query, source, items, total, duration_ms }`, with `error` and `code` if it failed; nothing is thrown for a \
             failed search. Each item has a `citation_id` (`ref_001`) that is unique in the turn tree. `limit` is 10 if it is left \
             out, at most 100; `rerank.top_n` keeps the best so many. Batches are those of the others; an empty answer is no \
             success for `Any`.",
        operations: SEARCH,
    },
    Part {
        prefix: "computer.",
        interface: "CtxComputer",
        title: "`ctx.computer`: the agent's sandbox",
        introduction: "Present only if the agent's config says `computer: true`. Each command runs in a fresh folder that is gone \
             afterwards, without network, and ends with the turn.",
        operations: COMPUTER,
    },
    Part {
        prefix: "workspace.",
        interface: "CtxWorkspace",
        title: "`ctx.workspace`: the agent's files",
        introduction: "Present only if the agent's config names a folder (`workspace`). Paths are relative to it, also with a leading \
             `/`; none leads outside, neither by `..` nor by a link (`WORKSPACE_OUTSIDE`, or `WORKSPACE_IO` for a link). In a \
             scenario the files are in memory.",
        operations: WORKSPACE,
    },
];
