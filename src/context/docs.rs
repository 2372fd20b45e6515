//! `docs/hooks.md`: the reference of `ctx`.
//!
//! Invariant: what the table knows (path, kind, arguments, callback) is taken from it, the rest from the signatures.
//! Deliberately no prose about how to write hooks: that is docs/hooks-guide.md.

use std::fmt::Write as _;

use greenroom_boundary::isolate::OpKind;
use greenroom_boundary::web::is_web;

use super::globals::{GLOBALS, Global};
use super::signatures::{PARTS, Part, Signature};
use super::table::TABLE;

const HEAD: &str = "\
# `ctx`: the operations of hook scripts

This page is generated from the table of operations in `src/context/table.rs` and the signatures beside it; change those, then
run `UPDATE_DOCS=1 cargo test --test tidy`. `greenroom types > greenroom.d.ts` writes the same as TypeScript declarations. How
hooks work, with examples and limits, is in [hooks-guide.md](hooks-guide.md).

A function of a script gets `ctx` as its first argument in `Create` and `Next`, and as its second one, after the tool's
arguments, in a script server. Operations of kind *now* answer at once.
Operations of kind *waits* block the script (never the host) until the answer is there; each has a twin with `Async` at the
end of its name that returns a promise. An error is thrown as an `Error` with a stable `code`; a wrong argument is a
`TypeError` with code `ERR_ARGUMENT` that names the operation, the argument and the type it should have. `null` and
`undefined` mean that an optional argument is absent. When the call has ended, or after `ctx.Release()`, every operation throws
`ERR_RELEASED`.

Values cross as JSON, in both directions: functions and `undefined` in objects vanish, `NaN` is `null`, a `Date` is its text, a
`Map` is `{}`; a BigInt, a symbol and a cycle are TypeErrors. A key `__proto__` is data.

## Data

| property | what it is |
|---|---|
| `chat_id` | id of the conversation |
| `assistant_id` | the agent whose hook runs |
| `metadata` | the request's metadata; `Create` may add to it |
| `authorized` | whom the turn is for: the object `authorized` of the turn's metadata, `{}` if there is none |
| `referer` | `api` for a turn from outside, `agent` for delegated work |
| `accept` | `standard` |
| `locale`, `theme`, `route`, `client` | present and empty |

`Date.now()` and `Math.random()` come from the host's clock and entropy: in a scenario they follow from its clock and seed.
`console.log`, `info`, `warn`, `error` and `debug` write `console` events into the trace; `trace` is `debug`, `dir`, `table` and
`group` are `log`, and `assert` writes an `error` if it must. `count` and `time` do nothing. Local time is UTC.

## Modules

A script in a file may import other files and JSON below the folder of the config, and ES modules of packages in `node_modules` there. All
of it is read when the config is loaded; `import()` is refused. Paths, packages, limits and errors are in
[hooks-guide.md](hooks-guide.md#modules).

## Batches: `All`, `Any`, `Race`

They are the same for `ctx.mcp`, `ctx.agent`, `ctx.llm` and `ctx.search`. The result is an array with one entry per request, in the order of
the requests, whatever order they ended in. An entry begins with whom it asked (`mcp` and `tool`, `agent_id`, `connector`, `type` and `query`); a
success has the fields of a single call, a failure has `error` (text) and `code`. Nothing is thrown for a failed request, and
an empty list gives an empty array. A request of the wrong shape is a TypeError that names its place, and nothing is started
then; at most 256 requests.

* `All` waits for every request.
* `Any` returns with the first success, `Race` with the first to end, well or not. Its entry has `winner: true`. Every other
  request still under way is cancelled (an external server is told with `notifications/cancelled`) and its entry has `code:
  \"CANCELLED\"`. If `Any` has no success, every entry is a failure and none has `winner`.
* A tie goes to the earlier request. On a virtual clock the same requests always have the same winner.
* `onChunk(name, index, message)` of `ctx.llm` and `ctx.agent` hears every stream, one call at a time. Returning `false` or a
  number other than 0 stops that one stream; throwing ends the batch and throws `ERR_CALLBACK`.
";

const WEB_HEAD: &str = "
## Globals of the web

Both engines have these, at every level of isolation; each is made when a script first uses it. An exception in a timer, in a
microtask or in a listener has nobody who could catch it: the hook ends with `HOOK_UNHANDLED_REJECTION`.

| globals | what they do | what differs from the standards |
|---|---|---|
";

const TAIL: &str = "\
## Where this differs from Yao

| topic | Yao | here |
|---|---|---|
| imports | bundled into the script; `@yao` and `@gou` dropped | modules of their own with their own places; an import used for types alone is dropped, whoever it is of |
| npm packages | none | ES modules in `node_modules` below the config's folder |
| enums, decorators, parameter properties | accepted | refused with what to write instead, unless `policy.typescript: full` |
| async hooks | a promise is taken for an empty answer | awaited |
| `payload.error` | always empty, `Next` is not called after a failure | filled, `Next` is called |
| `isError` of a tool | ignored: the text looks like a value | `CallTool` throws, batches count it as a failure |
| `Any`, `Race` | wait for every request, or leave losers running; four shapes of results | return early, cancel losers, one shape |
| requests of a wrong shape | skipped, so that places shift | a TypeError |
| `onChunk` in batches | its answer is ignored | stops its stream |
| `Merge`, `Set` with bare values | documented, but thrown | accepted |
| path `props.content` | documented, but without effect | means `content` |
| a delta's type | a text appended to a `data` message turns it into text | the message keeps its type; `Replace` may change it |
| deltas on unknown or ended messages | sent, the stored text differs from what clients show | an error; stored is what clients show |
| message ids in parallel agents | start again at `M1` | unique in the turn tree |
| time to live | milliseconds, documented as seconds | milliseconds; the same defaults: user and team none, chat 24 hours, context 30 minutes |
| counters | cut to 32 bits | exact to 2^53 - 1, else an error |
| lists of `ctx.memory`, `GetSet` | documented, missing | present |
| `ctx.trace` nodes and spaces | objects with methods | named by id: `Info(message, nodeId)`, `SpaceSet(spaceId, …)` |
| timers, `fetch`, `crypto`, `URL`, `TextEncoder`, `structuredClone`, signals | absent; `atob` and `btoa` present | present, see above |
| `wheres`, `orders` of `ctx.search.DB` | documented, ignored | honoured |
| results of `ctx.search.KB` | with graph nodes | no graph |
| `ctx.computer.id`, `VNC`, `Proxy` | a box with a screen and ports | no id; `VNC` and `Proxy` throw `ERR_UNSUPPORTED` |
| `ctx.workspace.ReadFile` of what is no text | damaged text | an error |
| `ctx.workspace.Exists` of what cannot be looked at | `true` | an error |
| `ListSamples`, `GetSample`, `GenerateImage` | present | not yet |
";

/// The page.
pub fn hooks_reference() -> String {
    let mut out = HEAD.to_owned();
    for part in PARTS {
        let _ = write!(
            out,
            "\n## {}\n\n{}\n\n| operation | kind | fewest arguments | what it does |\n|---|---|---|---|\n",
            part.title, part.introduction
        );
        for operation in part.operations {
            row(&mut out, part, operation);
        }
    }
    out.push_str(WEB_HEAD);
    for Global { names, text, differs } in GLOBALS {
        let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let _ = writeln!(out, "| {} | {text} | {differs} |", names.join(", "));
    }
    let operations = TABLE.iter().filter(|decl| !is_web(decl.path)).count();
    let _ = write!(out, "\n{operations} operations.\n\n{TAIL}");
    out
}

fn row(out: &mut String, part: &Part, operation: &Signature) {
    let Signature { name, parameters, returns, text } = operation;
    let path = format!("{}{name}", part.prefix);
    let Some(decl) = TABLE.iter().find(|decl| decl.path == path) else { return };
    let kind = match decl.kind {
        OpKind::Inline => "now",
        OpKind::Await => "waits",
    };
    let shown = path.replace('*', "NAME");
    // What stands for the name is no argument.
    let fewest = decl.min_args - usize::from(path.contains('*'));
    let is_property = path.contains('*') && fewest == 0;
    let arguments = if is_property { String::new() } else { format!("({parameters})") };
    let signature = format!("ctx.{shown}{arguments}: {returns}").replace('|', "\\|");
    let _ = writeln!(out, "| `{signature}` | {kind} | {fewest} | {text} |");
}
