//! The outside clients of a case: their connections, and what they get.
//!
//! Invariant: a client introduces itself before its first step does anything, and each has one connection at a time.
//! Deliberately no knowledge of steps.

use std::collections::BTreeMap;
use std::sync::Arc;

use greenroom_boundary::CancellationToken;
use greenroom_boundary::trace::Outcome;
use greenroom_mocks::client::ScriptedClient;
use greenroom_wire::{Peer, RequestError, RpcError, pipe};
use serde_json::Value;
use serde_json::value::to_raw_value;
use tokio::task::JoinHandle;

use crate::host::{HostError, HostUnderTest, TurnError, TurnReply};
use crate::model::{Call, Tell};

struct Line {
    peer: Peer,
    served: JoinHandle<Result<(), HostError>>,
}

/// The clients of a case.
pub(super) struct Clients {
    all: BTreeMap<String, ScriptedClient>,
    lines: BTreeMap<String, Line>,
}

impl Clients {
    pub(super) fn new(clients: Vec<ScriptedClient>) -> Self {
        let all = clients.into_iter().map(|client| (client.name().to_owned(), client)).collect();
        Self { all, lines: BTreeMap::new() }
    }

    /// The connection of a client, opened if it has none.
    async fn line(&mut self, host: &Arc<dyn HostUnderTest>, name: &str) -> Result<Peer, String> {
        if let Some(line) = self.lines.get(name).filter(|line| !line.peer.is_closed()) {
            return Ok(line.peer.clone());
        }
        let client = self.all.get(name).cloned().ok_or_else(|| format!("no client is called {name}"))?;
        let (ours, theirs) = pipe(name);
        let (host, own_name) = (host.clone(), name.to_owned());
        let mut served = tokio::spawn(async move { host.serve(&own_name, theirs).await });
        let connected = client.connect(ours).await;
        match connected {
            Ok(peer) => {
                let sent = peer.notify("notifications/initialized", None).await;
                sent.map_err(|error| error.to_string())?;
                self.lines.insert(name.to_owned(), Line { peer: peer.clone(), served });
                Ok(peer)
            }
            Err(error) => match (&mut served).await {
                Ok(Err(refused)) => Err(format!("{} ({})", refused.message, refused.code)),
                _ => Err(error),
            },
        }
    }

    /// A request on its way: its answer, as turns have one.
    pub(super) async fn call(
        &mut self,
        host: &Arc<dyn HostUnderTest>,
        call: &Call,
        cancel: CancellationToken,
    ) -> Result<JoinHandle<TurnReply>, String> {
        let peer = self.line(host, &call.client).await?;
        let (method, params) = (call.method.clone(), call.params.clone().map(Value::Object));
        Ok(tokio::spawn(async move { reply(ScriptedClient::call(&peer, &method, params.as_ref(), cancel).await) }))
    }

    pub(super) async fn tell(&mut self, host: &Arc<dyn HostUnderTest>, tell: &Tell) -> Result<(), String> {
        let peer = self.line(host, &tell.client).await?;
        let params = tell.params.as_ref().and_then(|params| to_raw_value(params).ok());
        peer.notify(&tell.method, params).await.map_err(|error| error.to_string())
    }

    /// Ends the connection of a client, and waits until the host has noticed.
    pub(super) async fn hang_up(&mut self, name: &str) {
        if let Some(line) = self.lines.remove(name) {
            line.peer.close().await;
            // How the host's side ended is told by its trace.
            let _ = line.served.await;
        }
    }

    pub(super) async fn hang_up_all(&mut self) {
        let names: Vec<String> = self.lines.keys().cloned().collect();
        for name in names {
            self.hang_up(&name).await;
        }
    }
}

fn reply(result: Result<Value, RequestError>) -> TurnReply {
    let failed = |outcome: Outcome, code: String, message: String, data: Value| TurnReply {
        outcome,
        text: String::new(),
        data,
        error: Some(TurnError { code, message }),
    };
    match result {
        Ok(value) => {
            let items = value.get("content").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
            let texts: Vec<&str> = items.iter().filter_map(|item| item.get("text")?.as_str()).collect();
            TurnReply { outcome: Outcome::Ok, text: texts.join("\n"), data: value, error: None }
        }
        Err(RequestError::Rpc(error)) => {
            let outcome = if error.code == RpcError::CANCELLED { Outcome::Cancelled } else { Outcome::Error };
            let data = error.data.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
            failed(outcome, error.code.to_string(), error.message, data)
        }
        Err(error @ RequestError::Cancelled) => {
            failed(Outcome::Cancelled, error.code().to_owned(), error.to_string(), Value::Null)
        }
        Err(error) => failed(Outcome::Lost, error.code().to_owned(), error.to_string(), Value::Null),
    }
}
