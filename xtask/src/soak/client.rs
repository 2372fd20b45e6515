//! An outside client: one session from its handshake to its end.
//!
//! Invariant: every call is counted as what it came to; a session that ends has closed its connection. Deliberately
//! strict: an answer that is neither what the plan says nor a foreseen failure fails the soak.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use async_trait::async_trait;
use greenroom::drivers::mcp::RealMcp;
use greenroom::drivers::sandbox::ChildEnvironment;
use greenroom::drivers::{EgressPolicy, SystemClock};
use greenroom::front;
use greenroom::host::Host;
use greenroom_boundary::mcp::{FrameDuplex, McpTarget, ServerAddress};
use greenroom_boundary::{CancellationToken, Clock, Credentials, McpConnector as _, ServerName};
use greenroom_wire::stdio::{self, StdioOptions};
use greenroom_wire::{
    IncomingRequest, Peer, PeerHandler, PeerOptions, ProtocolVersion, RawJson, RequestError, RequestOptions, RpcError,
    client_handshake,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::plan::{Front, HostKind, Plan, Trouble};

/// Far beyond anything that a healthy host needs, on a busy machine too.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes that a pipe in memory holds.
const PIPE_BYTES: usize = 16 * 1024;

/// The hosts, by kind, with their HTTP addresses.
pub(crate) type Hosts = BTreeMap<HostKind, (Host, String)>;

/// What happened so far.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) sessions: AtomicUsize,
    pub(crate) calls: AtomicUsize,
    pub(crate) foreseen_failures: AtomicUsize,
    pub(crate) failed_after_crash: AtomicUsize,
    pub(crate) children: AtomicUsize,
    pub(crate) surprises: Mutex<Vec<String>>,
}

fn one_more(counter: &AtomicUsize) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Plays session `number`.
pub(crate) async fn play(hosts: Arc<Hosts>, counts: Arc<Counts>, number: usize, calls: usize) {
    if let Err(error) = session(&hosts, &counts, number, calls).await {
        let surprise = format!("session {number} {:?}: {error:#}", Plan::of(number));
        counts.surprises.lock().unwrap_or_else(PoisonError::into_inner).push(surprise);
    }
    one_more(&counts.sessions);
}

async fn session(hosts: &Hosts, counts: &Counts, number: usize, calls: usize) -> anyhow::Result<()> {
    let plan = Plan::of(number);
    let (host, url) = hosts.get(&plan.host).context("no such host")?;
    let (duplex, served) = match plan.front {
        Front::Http => (over_http(url).await?, None),
        Front::Memory => {
            let (near, far) = in_memory();
            let host = host.clone();
            (near, Some(tokio::spawn(async move { front::serve(&host, far).await })))
        }
    };
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new());
    let peer = Peer::start(duplex, Arc::new(Silent), PeerOptions { clock, name: "host".to_owned() });
    let info = json!({"name": "soak", "version": "1"});
    client_handshake(&peer, &info, &json!({}), ProtocolVersion::LATEST, RequestOptions::within(PATIENCE)).await?;
    if plan.host == HostKind::Child {
        one_more(&counts.children);
    }
    let said = talk(&peer, plan, counts, calls).await;
    peer.close().await;
    if let Some(served) = served {
        served.await.context("the host's side of the session panicked")?;
    }
    said
}

async fn talk(peer: &Peer, plan: Plan, counts: &Counts, calls: usize) -> anyhow::Result<()> {
    let mut crashed = false;
    for index in 0..calls {
        let (tool, arguments, must_fail) = plan.call(index, calls);
        let request = call(peer, tool, &arguments);
        one_more(&counts.calls);
        if must_fail && plan.trouble == Trouble::Leave {
            // It is on its way, and nobody waits for it.
            tokio::select! {
                biased;
                answer = request => bail!("{tool} was answered: {answer:?}"),
                () = tokio::task::yield_now() => {}
            }
            one_more(&counts.foreseen_failures);
            continue;
        }
        match (request.await, must_fail) {
            (Err(RequestError::Rpc(_)), true) => {
                one_more(&counts.foreseen_failures);
                crashed = plan.trouble == Trouble::Crash;
                if crashed && plan.host == HostKind::Child {
                    one_more(&counts.children);
                }
            }
            (Err(RequestError::Rpc(_)), false) if crashed => one_more(&counts.failed_after_crash),
            (Ok(answer), false) if answer["isError"] != true && answer["structuredContent"].is_object() => {}
            (answer, _) => bail!("call {index}, {tool}: {answer:?}"),
        }
    }
    Ok(())
}

async fn call(peer: &Peer, tool: &str, arguments: &Value) -> Result<Value, RequestError> {
    let params = to_raw_value(&json!({"name": tool, "arguments": arguments})).unwrap_or_default();
    let answer = peer.request("tools/call", Some(params), RequestOptions::within(PATIENCE)).await?;
    Ok(serde_json::from_str(answer.get()).unwrap_or_default())
}

/// Two ends of lines in memory.
fn in_memory() -> (FrameDuplex, FrameDuplex) {
    let (near, far) = tokio::io::duplex(PIPE_BYTES);
    let end = |stream| {
        let (reader, writer) = tokio::io::split::<tokio::io::DuplexStream>(stream);
        stdio::duplex(reader, writer, &StdioOptions::new("peer"))
    };
    (end(near), end(far))
}

async fn over_http(url: &str) -> anyhow::Result<FrameDuplex> {
    let rule = url.trim_start_matches("http://").trim_end_matches(greenroom::http::MCP_PATH);
    let egress = EgressPolicy::parse([rule])?;
    let clock = Arc::new(SystemClock::new());
    let connector = RealMcp::new(clock, Arc::new(egress), Credentials::default(), ChildEnvironment::default());
    let address = ServerAddress::Http { url: url.to_owned(), headers: BTreeMap::new() };
    let target = McpTarget { server: ServerName::new("host"), address };
    Ok(connector.open(&target, &CancellationToken::new()).await?)
}

/// A client that can be asked nothing.
struct Silent;

#[async_trait]
impl PeerHandler for Silent {
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
        Err(RpcError::method_not_found(&request.method))
    }
}
