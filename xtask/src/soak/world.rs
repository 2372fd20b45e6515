//! The hosts of the router's soak: real ones, with real drivers for child processes and HTTP.
//!
//! Invariant: nothing but this machine is reached. Deliberately no model: the router is what is soaked.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use greenroom::config::{Variables, load_text};
use greenroom::drivers::mcp::RealMcp;
use greenroom::drivers::sandbox::{ChildEnvironment, ChildKeeper, ConfinedCli};
use greenroom::drivers::{OsEntropy, SystemClock};
use greenroom::host::Host;
use greenroom_boundary::egress::DenyAll;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::trace::NoTrace;
use greenroom_boundary::{Credentials, Drivers, IsolateDriver, ServerName, Tracer};
use greenroom_mocks::llm::DenyLlm;
use greenroom_mocks::mcp::{McpScript, McpSwitch, ScriptedMcp};
use serde_json::json;

use super::plan::HostKind;
use crate::child;

/// Deadline of a call: short, as some never get an answer.
pub(crate) const TOOL_TIMEOUT: Duration = Duration::from_millis(300);

/// Starts the host of a kind.
pub(crate) fn host(kind: HostKind, engine: &Arc<dyn IsolateDriver>) -> anyhow::Result<Host> {
    let text = config(kind)?.to_string();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let config = load_text("soak.json", &text, &folder, &Variables::default())?;
    Ok(Host::start(config, drivers(engine)?, HandOff::Concurrent))
}

fn config(kind: HostKind) -> anyhow::Result<serde_json::Value> {
    let program = std::env::current_exe().context("the path of this program")?;
    let guarded = json!({"tools/call?direction=request&name=invoice": ["desk/known"]});
    let published = match kind {
        HostKind::Plain => ["nanobot.meta", "shop"],
        HostKind::Script => ["desk", "shop"],
        HostKind::Child => ["nanobot.meta", "child"],
    };
    Ok(json!({
        "mcpServers": {
            "nanobot.meta": {},
            "desk": {"script": "soak.ts"},
            "shop": {"command": "only-in-memory", "hooks": guarded},
            "child": {"command": program, "args": [child::WORD]},
        },
        "publish": {"mcpServers": published},
        "policy": {"tool_timeout": format!("{}ms", TOOL_TIMEOUT.as_millis())},
    }))
}

/// The external server that lives in memory. Its connection is opened for each session, as a process would be.
fn shop() -> anyhow::Result<McpScript> {
    let tools: Vec<_> =
        ["price", "invoice", "stuck", "fragile"].iter().map(|name| json!({"name": name, "inputSchema": {}})).collect();
    let call =
        |tool: &str, key: &str, answer: serde_json::Value| json!({"when": {"tool": tool}, "repeat": u32::MAX, key: answer});
    let calls = [
        call("price", "result", json!({"structuredContent": {"cents": 4200}})),
        call("invoice", "result", json!({"structuredContent": {"cents": 4200}})),
        call("stuck", "hang", json!(true)),
        call("fragile", "crash", json!(true)),
    ];
    serde_json::from_value(json!({"tools": tools, "calls": calls})).context("the soak's script")
}

fn drivers(engine: &Arc<dyn IsolateDriver>) -> anyhow::Result<Drivers> {
    let clock = Arc::new(SystemClock::new());
    let (egress, credentials, environment) = (Arc::new(DenyAll), Credentials::default(), ChildEnvironment::of_this_process());
    let keeper = ChildKeeper::this_program();
    let real = RealMcp::new(clock.clone(), egress.clone(), credentials.clone(), environment.clone()).kept_by(keeper.clone());
    let in_memory: Arc<dyn greenroom_boundary::McpConnector> = Arc::new(ScriptedMcp::new(shop()?, clock.clone()));
    let servers = [(ServerName::new("shop"), in_memory)].into_iter().collect();
    Ok(Drivers {
        llm: Arc::new(DenyLlm),
        search: Arc::new(greenroom_boundary::search::DenySearch),
        workspaces: Arc::new(greenroom::drivers::FolderWorkspaces),
        audit: Arc::new(greenroom_boundary::audit::DenyAudit),
        mcp: Arc::new(McpSwitch::new(servers).otherwise(Arc::new(real))),
        cli: Arc::new(ConfinedCli::new(clock.clone(), environment).kept_by(keeper)),
        isolate: engine.clone(),
        tracer: Tracer::new(clock.clone(), Arc::new(NoTrace)),
        clock,
        entropy: Arc::new(OsEntropy),
        egress,
        credentials,
    })
}
