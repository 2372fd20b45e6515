//! `docs/hooks.md`: the reference of `ctx`, made from the table of operations.
//!
//! Invariant: an operation without a text here fails the generation, and so does a text without an operation. What the
//! table knows (path, kind, arguments, callback) is taken from it.

use std::fmt::Write as _;

use greenroom::context::TABLE;
use greenroom_boundary::isolate::{OpDecl, OpKind};

/// A part of the page: prefix of the paths, title, introduction, operations.
type Part = (&'static str, &'static str, &'static str, &'static [(&'static str, &'static str, &'static str)]);

/// The memory operations of one space: name, arguments and result, text.
const MEMORY: &[(&str, &str, &str)] = &[
    ("Get", "(key) → value", "The value of a key, `null` if there is none."),
    ("Set", "(key, value)", "Writes a value: anything that is JSON."),
    ("Del", "(key)", "Removes a key. `*` in it stands for any text."),
    ("Has", "(key) → boolean", "Whether a key exists."),
    ("Keys", "() → string[]", "All keys, sorted."),
    ("Len", "() → number", "How many keys there are."),
    ("Clear", "()", "Removes all keys."),
    (
        "Incr",
        "(key, delta = 1) → number",
        "Adds to a counter and returns it. A missing key counts from 0; a value that is no whole number is an error.",
    ),
    ("Decr", "(key, delta = 1) → number", "Subtracts from a counter and returns it."),
    ("GetDel", "(key) → value", "Reads a key and removes it."),
];

const PARTS: &[Part] = &[
    (
        "",
        "Messages to the client",
        "Messages appear in the client's stream, in the trace as `output` events. A message is a string (a text message) or an \
         object with a string `type`. What the server keeps of a message is what a client that applied every delta shows.",
        &[
            ("Send", "(message, blockId?) → messageId", "A whole message: opened and closed at once."),
            ("SendStream", "(message, blockId?) → messageId", "Opens a message that more follows to."),
            (
                "Append",
                "(messageId, content, path?) → messageId",
                "Appends to a text or a list; everywhere, or at a dotted path below `props`.",
            ),
            ("Replace", "(messageId, content) → messageId", "Replaces the message's `props`; allowed after its end, too."),
            ("Merge", "(messageId, content, path?) → messageId", "Merges objects into `props`; a `null` changes nothing."),
            ("Set", "(messageId, content, path) → messageId", "Sets the value at a path."),
            (
                "End",
                "(messageId, lastText?) → messageId",
                "Closes a message, after a last piece of text if one is given. Closing it again does nothing.",
            ),
            ("EndBlock", "(blockId)", "Closes a block; an unknown one is ignored."),
            ("MessageID", "() → string", "A fresh message id, unique in the whole turn tree."),
            ("BlockID", "() → string", "A fresh block id."),
            ("ThreadID", "() → string", "A fresh thread id."),
        ],
    ),
    (
        "mcp.",
        "`ctx.mcp`: servers and tools",
        "Any server of the host by its name: external ones, script servers, built-in ones and agents. Calls go through the \
         router, so hooks, overrides and limits apply as for anyone.",
        &[
            ("ListTools", "(server) → { tools }", "The tools as the host shows them, overrides applied."),
            (
                "CallTool",
                "(server, tool, arguments = {}) → value",
                "Calls a tool. The value is the structured content; else the content items, text read as JSON where it is JSON, \
                 unwrapped if there is only one. A result with `isError` throws (`ERR_TOOL`), and so does a failed call (its code).",
            ),
        ],
    ),
    (
        "agent.",
        "`ctx.agent`: other agents",
        "The other agent has its own tools, its own hooks and a conversation of its own. Depth and cycles are limited by the policy.",
        &[(
            "Call",
            "(agentId, messages, { connector?, metadata? } = {}) → result",
            "Runs a turn of another agent. Result: `{ agent_id, content, response }`, or `{ agent_id, error, code }` if it failed; \
             it does not throw for a failed turn.",
        )],
    ),
    (
        "llm.",
        "`ctx.llm`: models",
        "The text also goes to the client's stream. A model gets no tools here.",
        &[(
            "Stream",
            "(connector, messages, { temperature?, max_tokens?, onChunk?, … }) → result",
            "Streams a completion. `onChunk` is called with `{ type: \"text\", props: { content }, delta: true }` for each piece; \
             returning `false` or a number other than 0 stops the stream. Result: `{ connector, content, response, stopped }`, or \
             `{ connector, error, code }`. Other options go to the provider as they are.",
        )],
    ),
    (
        "memory.context.",
        "`ctx.memory.context`: one turn tree",
        "Lives for one turn of a person, shared with every agent below it.",
        MEMORY,
    ),
    ("memory.chat.", "`ctx.memory.chat`: one conversation", "Lives as long as the conversation (`chat`), in memory.", MEMORY),
];

const HEAD: &str = "\
# `ctx`: the operations of hook scripts

This page is generated from the table of operations in `src/context/table.rs`; change it there, then run
`UPDATE_DOCS=1 cargo test --test tidy`. How hooks work, with examples and limits, is in [hooks-guide.md](hooks-guide.md).

A function of a script gets `ctx` as its first argument in `Create` and `Next`. Operations of kind *now* answer at once.
Operations of kind *waits* block the script (never the host) until the answer is there; each has a twin with `Async` at the
end of its name that returns a promise. An error is thrown as an `Error` with a stable `code`; a wrong argument is a
`TypeError` with code `ERR_ARGUMENT`. When the call has ended, or after `ctx.Release()`, every operation throws `ERR_RELEASED`.

## Data

| property | what it is |
|---|---|
| `chat_id` | id of the conversation |
| `assistant_id` | the agent whose hook runs |
| `metadata` | the request's metadata; `Create` may add to it |
| `referer` | `api` for a turn from outside, `agent` for delegated work |
| `accept` | `standard` |
| `locale`, `theme`, `route`, `client`, `authorized` | present and empty |

`Date.now()` and `Math.random()` come from the host's clock and entropy: in a scenario they follow from its clock and seed.
`console.log`, `info`, `warn`, `error` and `debug` write `console` events into the trace.
";

fn row(out: &mut String, decl: &OpDecl, signature: &str, text: &str) {
    let kind = match decl.kind {
        OpKind::Inline => "now",
        OpKind::Await => "waits",
    };
    let callback =
        decl.callback.map(|at| format!(" Callback: `{}` in argument {}.", at.property, at.argument + 1)).unwrap_or_default();
    let _ = writeln!(out, "| `ctx.{}{}` | {kind} | {} | {text}{callback} |", decl.path, signature, decl.min_args);
}

/// The page.
pub(crate) fn hooks_reference() -> String {
    let mut out = HEAD.to_owned();
    let mut written = 0;
    for (prefix, title, introduction, operations) in PARTS {
        let _ = write!(
            out,
            "\n## {title}\n\n{introduction}\n\n| operation | kind | fewest arguments | what it does |\n|---|---|---|---|\n"
        );
        for (name, signature, text) in *operations {
            let path = format!("{prefix}{name}");
            let decl = TABLE
                .iter()
                .find(|decl| decl.path == path)
                .unwrap_or_else(|| panic!("ctx.{path} is described but does not exist"));
            row(&mut out, decl, signature, text);
            written += 1;
        }
    }
    let paths = || PARTS.iter().flat_map(|(prefix, _, _, ops)| ops.iter().map(move |(name, _, _)| format!("{prefix}{name}")));
    for decl in &TABLE {
        assert!(paths().any(|path| path == decl.path), "ctx.{} has no text in tests/tidy/reference.rs", decl.path);
    }
    let _ = write!(out, "\n{written} operations.\n");
    out
}
