//! The peers: Node's `vm`, a Deno process for each hook, QuickJS without a host.
//!
//! Invariant: each takes the script as text and the arguments as JSON text, and gives the result as JSON text. Nothing here
//! installs them.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

/// One hook call.
pub(crate) struct Hook<'a> {
    pub(crate) script: &'a str,
    pub(crate) ctx: &'a str,
    pub(crate) args: &'a str,
}

fn at(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// A Node that runs as many hooks in fresh contexts as it is told to, timed inside.
pub(crate) struct Node {
    child: Child,
    answers: BufReader<ChildStdout>,
}

impl Node {
    /// Starts it, if there is one.
    #[expect(clippy::disallowed_methods, reason = "a bench starts the peer that it measures")]
    pub(crate) fn start() -> Option<Self> {
        let own = [".tools/node/node_modules/.bin/node", ".tools/node/node_modules/node/bin/node"].map(at);
        let node = own.into_iter().find(|path| path.exists()).unwrap_or_else(|| PathBuf::from("node"));
        let mut command = Command::new(node);
        command.arg(at("tools/isolate-peers/node_loop.mjs")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().ok()?;
        let answers = BufReader::new(child.stdout.take()?);
        Some(Self { child, answers })
    }

    /// How long `times` hooks take.
    pub(crate) fn run(&mut self, hook: &Hook<'_>, times: u64) -> Duration {
        let stdin = self.child.stdin.as_mut().expect("a pipe");
        let order = json!({"script": hook.script, "ctx": hook.ctx, "args": hook.args, "times": times});
        writeln!(stdin, "{order}").expect("Node listens");
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("Node answers");
        Duration::from_nanos(line.trim().parse().expect("nanoseconds"))
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The Deno that `./x bench --peers` installs.
pub(crate) struct Deno(PathBuf);

impl Deno {
    /// Finds it.
    pub(crate) fn find() -> Option<Self> {
        let folder = std::fs::read_dir(at(".tools/isolate-peers/node_modules/@deno")).ok()?;
        folder.filter_map(Result::ok).map(|entry| entry.path().join("deno")).find(|path| path.is_file()).map(Self)
    }

    /// How long `times` processes take, one after the other, from the start of each to its end.
    #[expect(clippy::disallowed_methods, reason = "a bench starts the peer that it measures")]
    pub(crate) fn run(&self, hook: &Hook<'_>, times: u64) -> Duration {
        let order = json!({"script": hook.script, "ctx": hook.ctx, "args": hook.args}).to_string();
        let begun = Instant::now();
        for _ in 0..times {
            let mut command = Command::new(&self.0);
            command.args(["run", "--quiet", "--no-remote"]).arg(at("tools/isolate-peers/deno_once.mjs"));
            let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Deno starts");
            child.stdin.take().expect("a pipe").write_all(order.as_bytes()).expect("Deno listens");
            let output = child.wait_with_output().expect("Deno ends");
            assert!(output.status.success(), "Deno failed");
        }
        begun.elapsed()
    }
}

/// A fresh QuickJS runtime and context, without host and limits.
pub(crate) fn quickjs(hook: &Hook<'_>) -> String {
    let runtime = rquickjs::Runtime::new().expect("a runtime");
    let context = rquickjs::Context::full(&runtime).expect("a context");
    context.with(|js| {
        js.eval::<(), _>(hook.script).expect("the script runs");
        js.globals().set("__ctx", hook.ctx).expect("a global");
        js.globals().set("__args", hook.args).expect("a global");
        let call = "JSON.stringify(Create(JSON.parse(__ctx), ...JSON.parse(__args))) ?? ''";
        js.eval::<String, _>(call).expect("the hook runs")
    })
}
