//! The scripted client: one connection to a host, real wire included.
//!
//! Invariant: what the host asks is answered from the script, once per scripted answer. Deliberately deaf to notifications:
//! the host's trace has what it sends.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::mcp::FrameDuplex;
use greenroom_boundary::{CancellationToken, Clock, RawJson};
use greenroom_wire::{
    IncomingRequest, Peer, PeerHandler, PeerOptions, ProtocolVersion, RequestError, RequestOptions, RpcError, client_handshake,
};
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::ClientScript;
use crate::mcp::{McpAnswer, McpScript, ScriptedMcp};

/// How long the handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// A client that behaves as its script says.
#[derive(Clone)]
pub struct ScriptedClient {
    name: String,
    script: Arc<ClientScript>,
    clock: Arc<dyn Clock>,
    answers: ScriptedMcp,
}

impl fmt::Debug for ScriptedClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedClient({})", self.name)
    }
}

impl ScriptedClient {
    /// A client that waits on `clock`.
    pub fn new(name: &str, script: ClientScript, clock: Arc<dyn Clock>) -> Self {
        let answers = McpScript { calls: script.answers.clone(), ..McpScript::default() };
        let answers = ScriptedMcp::new(answers, clock.clone());
        Self { name: name.to_owned(), script: Arc::new(script), clock, answers }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The scripted answers that were not given as often as foreseen, in words.
    pub fn unused(&self) -> Vec<String> {
        self.answers.unused().into_iter().map(|text| text.replacen("calls[", "answers[", 1)).collect()
    }

    /// Introduces itself to a host at the other end of `duplex`.
    pub async fn connect(&self, duplex: FrameDuplex) -> Result<Peer, String> {
        let options = PeerOptions { clock: self.clock.clone(), name: "the host".to_owned() };
        let peer = Peer::start(duplex, Arc::new(Answers(self.clone())), options);
        let info = json!({ "name": self.name, "version": "1.0.0" });
        let asked = self.script.protocol_version.as_deref().map_or(Ok(ProtocolVersion::LATEST), str::parse);
        let version = asked.map_err(|error| error.to_string())?;
        let capabilities = Value::Object(self.script.capabilities.clone());
        let hello = client_handshake(&peer, &info, &capabilities, version, RequestOptions::within(HANDSHAKE)).await;
        hello.map(|_| peer).map_err(|error| error.to_string())
    }

    /// Asks the host.
    pub async fn call(
        peer: &Peer,
        method: &str,
        params: Option<&Value>,
        cancel: CancellationToken,
    ) -> Result<Value, RequestError> {
        let params = params.and_then(|params| to_raw_value(params).ok());
        let options = RequestOptions { cancel, ..RequestOptions::default() };
        let raw = peer.request(method, params, options).await?;
        Ok(serde_json::from_str(raw.get()).unwrap_or_default())
    }
}

struct Answers(ScriptedClient);

#[async_trait]
impl PeerHandler for Answers {
    async fn request(&self, request: IncomingRequest) -> Result<RawJson, RpcError> {
        let params = request.params.as_deref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let (after, answer) =
            self.0.answers.answer_to(&request.method, &params).map_err(|reason| RpcError::new(RpcError::INTERNAL, reason))?;
        let due = self.0.clock.now().after(after);
        tokio::select! {
            biased;
            () = request.cancel.cancelled() => return Err(RpcError::new(RpcError::CANCELLED, "the host took it back")),
            () = self.0.clock.sleep_until(due) => {}
        }
        match answer {
            McpAnswer::Result(result) => to_raw_value(&result).map_err(|error| RpcError::internal(error.to_string())),
            McpAnswer::Error(error) => {
                let rpc = RpcError::new(error.code, error.message);
                Err(error.data.iter().fold(rpc, |rpc, data| rpc.with_data(data)))
            }
            McpAnswer::Hang(_) => {
                request.cancel.cancelled().await;
                Err(RpcError::new(RpcError::CANCELLED, "the host took it back"))
            }
            McpAnswer::Crash(_) => {
                request.peer.close().await;
                Err(RpcError::new(RpcError::TRANSPORT, "the client hung up"))
            }
        }
    }
}
