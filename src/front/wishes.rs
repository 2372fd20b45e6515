//! Completions, and the level of log messages.
//!
//! Invariant: a completion goes to the server that has the prompt or resource, under its own name for it. Deliberately
//! empty, not an error, where a server completes nothing: the host offers completions for all of its servers.

use greenroom_boundary::{RawJson, ServerName};
use greenroom_wire::RpcError;
use serde_json::{Value, json};

use super::catalogue::PROMPTS;
use super::handler::{Front, encode};
use crate::sessions::LogLevel;

impl Front {
    pub(super) async fn complete(&self) -> Result<RawJson, RpcError> {
        let cx = self.context();
        let mut params = self.call.params.clone();
        let text = |path: &str| self.call.params.pointer(path).and_then(Value::as_str);
        let bad = |message: &str| RpcError::invalid_params(message.to_owned());
        let server: ServerName = match text("/ref/type") {
            Some("ref/prompt") => {
                let name = text("/ref/name").ok_or_else(|| bad("`ref.name` is missing or no string"))?;
                let (server, prompt) = self.owner(&cx, PROMPTS, name).await?;
                params["ref"]["name"] = json!(prompt);
                server
            }
            Some("ref/resource") => {
                let uri = text("/ref/uri").ok_or_else(|| bad("`ref.uri` is missing or no string"))?;
                let owner = self.owners(&cx, uri).await?.into_iter().next();
                owner.ok_or_else(|| bad(&format!("no published server has the resource {uri}")))?
            }
            _ => return Err(bad("`ref.type` must be `ref/prompt` or `ref/resource`")),
        };
        if !self.core.router.offers(&cx.root, &server, "completions") {
            return encode(&json!({"completion": {"values": [], "total": 0, "hasMore": false}}));
        }
        let output = self.core.router.request(&cx, &server, &self.call.method, params, self.call.raw.clone()).await;
        let output = output.map_err(|error| self.rpc(&error))?;
        output.raw.map_or_else(|| encode(&output.value), Ok)
    }

    pub(super) async fn set_log_level(&self) -> Result<RawJson, RpcError> {
        let level = self.call.params.get("level").cloned().unwrap_or_default();
        let Ok(level) = serde_json::from_value::<LogLevel>(level) else {
            return Err(RpcError::invalid_params("`level` is missing or none of the eight levels, `debug` to `emergency`"));
        };
        self.call.root.set_log_level(level);
        self.core.router.set_log_level(&self.context(), &self.call.params).await;
        encode(&json!({}))
    }
}
