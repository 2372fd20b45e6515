//! `nanobot.system`: the machine, through the CLI sandbox runner.
//!
//! Invariant: nothing runs outside the runner's confinement. Deliberately only `bash` so far.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use greenroom_boundary::Drivers;
use greenroom_boundary::cli::{CliEvent, CliExit, CliLimits, CommandSpec};
use greenroom_boundary::trace::{EventKind, Outcome};
use serde_json::{Value, json};

use crate::router::{CallContext, CallError, ListMethod, OpenExchange, Output, Server, ServerRequest};

/// Deadline of a command that does not say otherwise.
const DEFAULT_TIMEOUT_MS: u64 = 120_000;

/// The server.
pub struct SystemServer {
    drivers: Drivers,
}

impl SystemServer {
    /// The server of a host.
    pub fn new(drivers: Drivers) -> Self {
        Self { drivers }
    }

    async fn bash(&self, cx: &CallContext, arguments: &Value) -> Result<Value, CallError> {
        let Some(command) = arguments["command"].as_str() else {
            let error = greenroom_wire::RpcError::invalid_params("`command` is missing or no string");
            return Err(CallError::Rpc { server: "nanobot.system".to_owned(), error });
        };
        let wall = Duration::from_millis(arguments["timeout"].as_u64().unwrap_or(DEFAULT_TIMEOUT_MS));
        let spec = CommandSpec {
            argv: vec!["bash".to_owned(), "-c".to_owned(), command.to_owned()],
            env: BTreeMap::new(),
            stdin: String::new(),
            limits: CliLimits { wall, ..CliLimits::default() },
        };
        let tracer = &self.drivers.tracer;
        let span = tracer.span();
        let boundary = "cli.system".to_owned();
        let request = EventKind::Request {
            span,
            parent: cx.parent,
            boundary: boundary.clone(),
            method: "run".to_owned(),
            tool_call: cx.tool_call.clone(),
            body: json!({"argv": spec.argv}),
        };
        tracer.emit(&cx.scope, cx.agent.as_ref(), request);
        let open = OpenExchange {
            tracer: tracer.clone(),
            scope: cx.scope.clone(),
            agent: cx.agent.clone(),
            span,
            boundary,
            method: "run".to_owned(),
            left: Arc::new(AtomicBool::new(true)),
        };
        let (outcome, result) = self.run(cx, spec).await;
        open.close(outcome, || result.clone(), None);
        Ok(result)
    }

    async fn run(&self, cx: &CallContext, spec: CommandSpec) -> (Outcome, Value) {
        let failed = |error: &greenroom_boundary::cli::CliError| {
            let text = format!("{error} ({})", error.code());
            (Outcome::Error, json!({"content": [{"type": "text", "text": text}], "isError": true}))
        };
        let mut stream = match self.drivers.cli.run(spec, &cx.cancel).await {
            Ok(stream) => stream,
            Err(error) => return failed(&error),
        };
        let mut output = Vec::new();
        while let Some(event) = stream.next().await {
            match event {
                Ok(CliEvent::Stdout(bytes) | CliEvent::Stderr(bytes)) => output.extend_from_slice(&bytes),
                Ok(CliEvent::Exit(exit)) => {
                    let text = String::from_utf8_lossy(&output).into_owned();
                    let text = match exit {
                        CliExit::Code(0) => text,
                        CliExit::Code(code) => format!("Exit code {code}\n{text}"),
                        CliExit::Signal(signal) => format!("Ended by signal {signal}\n{text}"),
                    };
                    return (
                        Outcome::Ok,
                        json!({"content": [{"type": "text", "text": text}], "isError": exit != CliExit::Code(0)}),
                    );
                }
                Err(error) => return failed(&error),
            }
        }
        (
            Outcome::Lost,
            json!({"content": [{"type": "text", "text": "the command ended without an exit status"}], "isError": true}),
        )
    }
}

fn bash() -> Value {
    json!({
        "name": "bash",
        "description": "Run a command in a confined shell",
        "inputSchema": {
            "type": "object",
            "properties": {
                "command": {"type": "string", "description": "What to run"},
                "timeout": {"type": "integer", "description": "Longest run in milliseconds"},
            },
            "required": ["command"],
            "additionalProperties": false,
        },
    })
}

#[async_trait]
impl Server for SystemServer {
    fn boundary(&self) -> String {
        "server.nanobot.system".to_owned()
    }

    async fn request(&self, cx: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        if let Some(list) = ListMethod::parse(&request.method) {
            (request.sent)();
            return Ok(list.page(if list == ListMethod::Tools { vec![bash()] } else { Vec::new() }));
        }
        let name = request.params["name"].as_str().unwrap_or_default();
        if request.method != "tools/call" || name != "bash" {
            let hint = "; its only tool is bash".to_owned();
            return Err(CallError::UnknownTool { server: "nanobot.system".to_owned(), tool: name.to_owned(), hint });
        }
        (request.sent)();
        self.bash(cx, &request.params["arguments"]).await.map(Output::from)
    }
}
