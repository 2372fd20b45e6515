//! `ctx.computer` and `ctx.workspace`: commands in the sandbox, files of the agent's folder.
//!
//! Invariant: both are there only for an agent whose config says so, and reach nothing but the CLI boundary and the agent's own
//! folder. A command that fails is a value; one that cannot be run throws. Deliberately no screen and no ports: `VNC` and
//! `Proxy` say that there are none.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use greenroom_boundary::cli::{CliError, CliEvent, CliExit, CliLimits, CommandSpec};
use greenroom_boundary::isolate::OpError;
use greenroom_boundary::trace::{EventKind, Outcome};
use greenroom_boundary::workspace::{Workspace, WorkspaceError};
use serde_json::{Value, json};

use super::arguments::Arguments;
use super::verbs::{ComputerVerb, WorkspaceVerb};
use crate::config::AgentConfig;
use crate::host::HostCore;
use crate::router::{CallContext, OpenExchange};

/// The config of the agent that a context acts for.
pub(super) fn agent<'c>(core: &'c HostCore, cx: &CallContext) -> Option<&'c AgentConfig> {
    cx.agent.as_ref().and_then(|agent| core.config.agents.get(agent))
}

fn has_computer(core: &HostCore, cx: &CallContext, args: &Arguments) -> Result<(), OpError> {
    if agent(core, cx).is_some_and(|agent| agent.computer) {
        return Ok(());
    }
    Err(OpError::new("ERR_NO_COMPUTER", format!("{}: this agent has no computer; set `computer: true`", args.what)))
}

/// What of `ctx.computer` does not wait.
pub(super) fn computer(core: &HostCore, cx: &CallContext, verb: ComputerVerb, args: &Arguments) -> Result<Value, OpError> {
    has_computer(core, cx, args)?;
    match verb {
        ComputerVerb::Exec => Err(OpError::new("ERR_MUST_WAIT", format!("{} must be awaited", args.what))),
        ComputerVerb::Vnc | ComputerVerb::Proxy => {
            let message = format!("{}: the sandbox has no screen and no network", args.what);
            Err(OpError::new("ERR_UNSUPPORTED", message))
        }
        ComputerVerb::Info => Ok(json!({
            "kind": "host",
            "node_id": "greenroom",
            "tai_id": "",
            "status": "running",
            // The sandbox does not tell the machine; scripts must not depend on it.
            "system": {"os": "posix", "arch": "", "hostname": "sandbox", "num_cpu": 1, "shell": "sh"},
        })),
    }
}

/// A text is split at blanks (Yao); a list is taken as it is.
fn argv(args: &Arguments) -> Result<Vec<String>, OpError> {
    let wrong = || args.wrong("cmd", "a string or an array of strings that names a program", args.any(0));
    let argv: Vec<String> = match args.any(0) {
        Value::String(text) => text.split_whitespace().map(str::to_owned).collect(),
        Value::Array(items) => {
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect::<Option<_>>().ok_or_else(wrong)?
        }
        _ => return Err(wrong()),
    };
    if argv.is_empty() { Err(wrong()) } else { Ok(argv) }
}

/// `ctx.computer.Exec`.
pub(super) async fn exec(core: &Arc<HostCore>, cx: &CallContext, args: &Arguments) -> Result<Value, OpError> {
    has_computer(core, cx, args)?;
    let argv = argv(args)?;
    let tracer = &core.drivers.tracer;
    let span = tracer.span();
    let program = argv.first().map(String::as_str).unwrap_or_default();
    let boundary = format!("cli.{}", program.rsplit('/').next().unwrap_or_default());
    let event = EventKind::Request {
        span,
        parent: cx.parent,
        boundary: boundary.clone(),
        method: "run".to_owned(),
        tool_call: None,
        body: json!({"argv": argv}),
    };
    tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    let open = OpenExchange {
        tracer: tracer.clone(),
        scope: cx.scope.clone(),
        agent: cx.agent.clone(),
        span,
        boundary,
        method: "run".to_owned(),
        left: Arc::new(true.into()),
    };
    let wall = core.config.policy.tool_timeout.max(Duration::from_millis(1));
    let limits = CliLimits { wall, ..CliLimits::default() };
    let spec = CommandSpec { argv, env: std::collections::BTreeMap::new(), stdin: String::new(), limits };
    let cancel = cx.cancel.child_token();
    let _drop_guard = cancel.clone().drop_guard();
    let result = collect(core, spec, &cancel).await;
    let outcome = match &result {
        Ok(_) => Outcome::Ok,
        Err(CliError::Cancelled { .. }) => Outcome::Cancelled,
        Err(_) => Outcome::Error,
    };
    let body = || match &result {
        Ok(value) => value.clone(),
        Err(error) => json!({"error": {"code": error.code(), "message": error.to_string()}}),
    };
    open.close(outcome, body, None);
    result.map_err(|error| OpError::new(error.code(), format!("ctx.computer.Exec: {error}")))
}

async fn collect(
    core: &HostCore,
    spec: CommandSpec,
    cancel: &greenroom_boundary::CancellationToken,
) -> Result<Value, CliError> {
    let program = spec.argv.first().cloned().unwrap_or_default();
    let mut stream = core.drivers.cli.run(spec, cancel).await?;
    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    while let Some(event) = stream.next().await {
        match event? {
            CliEvent::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            CliEvent::Stderr(bytes) => stderr.extend_from_slice(&bytes),
            CliEvent::Exit(exit) => {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                let code = match exit {
                    CliExit::Code(code) => code,
                    // As shells tell it.
                    CliExit::Signal(signal) => 128 + signal,
                };
                return Ok(json!({"stdout": text(&stdout), "stderr": text(&stderr), "exit_code": code}));
            }
        }
    }
    Err(CliError::Start { program, message: "it ended without an exit status".to_owned() })
}

/// `ctx.workspace`.
pub(super) fn workspace(core: &HostCore, cx: &CallContext, verb: WorkspaceVerb, args: &Arguments) -> Result<Value, OpError> {
    let failed = |error: WorkspaceError| OpError::new(error.code(), format!("{}: {error}", args.what));
    let spec = agent(core, cx).and_then(|agent| agent.workspace.as_ref());
    let (Some(owner), Some(spec)) = (&cx.agent, spec) else {
        let message = format!("{}: this agent has no workspace; set `workspace`", args.what);
        return Err(OpError::new("ERR_NO_WORKSPACE", message));
    };
    let folder = core.drivers.workspaces.open(owner, spec).map_err(failed)?;
    at_path(&*folder, verb, args)?.map_err(failed)
}

type Done = Result<Value, WorkspaceError>;

fn at_path(folder: &dyn Workspace, verb: WorkspaceVerb, args: &Arguments) -> Result<Done, OpError> {
    let nothing = |()| Value::Null;
    let path = match verb {
        WorkspaceVerb::ReadDir => args.optional_text(0, "path")?.unwrap_or("."),
        _ => args.text(0, "path")?,
    };
    Ok(match verb {
        WorkspaceVerb::ReadFile => folder.read(path).and_then(|bytes| {
            let text = String::from_utf8(bytes).map_err(|_| WorkspaceError::wrong(path, "is no UTF-8 text"))?;
            Ok(Value::String(text))
        }),
        WorkspaceVerb::WriteFile => folder.write(path, args.text(1, "content")?.as_bytes()).map(nothing),
        WorkspaceVerb::ReadDir => folder.list(path).map(|entries| json!(entries)),
        WorkspaceVerb::MkdirAll => folder.make_dirs(path).map(nothing),
        WorkspaceVerb::Remove => folder.remove(path).map(nothing),
        WorkspaceVerb::RemoveAll => folder.remove_all(path).map(nothing),
        WorkspaceVerb::Rename => folder.rename(path, args.text(1, "to")?).map(nothing),
        WorkspaceVerb::Copy => folder.copy(path, args.text(1, "to")?).map(nothing),
        WorkspaceVerb::Stat => folder.stat(path).map(|stat| json!(stat)),
        WorkspaceVerb::Exists => match folder.stat(path) {
            Ok(_) => Ok(json!(true)),
            Err(WorkspaceError::NotFound { .. }) => Ok(json!(false)),
            Err(error) => Err(error),
        },
    })
}
