//! The scripted server: a connector that answers from an [`McpScript`].
//!
//! Invariant: all connections share one script, so a call that was answered once stays used up after a restart of the
//! server. Deliberately no state beyond the counts of answered calls.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use greenroom_boundary::mcp::{FrameDuplex, McpError, McpTarget};
use greenroom_boundary::{CancellationToken, Clock, McpConnector};
use serde_json::Value;

use super::pipe::pipe;
use super::script::{McpAnswer, McpCall, McpScript, McpWhen};
use super::session;

/// A server that behaves as its script says.
#[derive(Clone)]
pub struct ScriptedMcp(Arc<Shared>);

pub(super) struct Shared {
    pub(super) script: McpScript,
    pub(super) clock: Arc<dyn Clock>,
    used: Mutex<Vec<u32>>,
}

impl fmt::Debug for ScriptedMcp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ScriptedMcp({} calls)", self.0.script.calls.len())
    }
}

impl ScriptedMcp {
    /// A server that waits on `clock`.
    pub fn new(script: McpScript, clock: Arc<dyn Clock>) -> Self {
        let used = Mutex::new(vec![0; script.calls.len()]);
        Self(Arc::new(Shared { script, clock, used }))
    }

    /// The scripted calls that did not come as often as foreseen, in words; empty if the script is fully consumed.
    pub fn unused(&self) -> Vec<String> {
        let used = self.0.used.lock().unwrap_or_else(PoisonError::into_inner);
        let calls = self.0.script.calls.iter().zip(used.iter()).enumerate();
        calls
            .filter(|(_, (call, used))| **used < call.repeat)
            .map(|(index, (call, used))| {
                format!("calls[{index}] ({}) came {used} of {} times", describe(&call.when), call.repeat)
            })
            .collect()
    }

    /// Takes the answer to a request: when it comes, and what it is. Else the reason why none fits.
    pub fn answer_to(&self, method: &str, params: &Value) -> Result<(std::time::Duration, McpAnswer), String> {
        self.0.take(method, params).map(|call| (call.after.to_std(), call.answer.clone()))
    }
}

#[async_trait]
impl McpConnector for ScriptedMcp {
    async fn open(&self, target: &McpTarget, cancel: &CancellationToken) -> Result<FrameDuplex, McpError> {
        let server = target.server.to_string();
        if cancel.is_cancelled() {
            return Err(McpError::Cancelled { server });
        }
        let (host_end, server_end) = pipe(&server);
        tokio::spawn(session::serve(self.0.clone(), server, server_end));
        Ok(host_end)
    }
}

impl Shared {
    /// Takes the first call that matches and is not used up; else says in words why none does.
    pub(super) fn take(&self, method: &str, params: &Value) -> Result<&McpCall, String> {
        let mut used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        let mut reasons = Vec::new();
        for (index, call) in self.script.calls.iter().enumerate() {
            match mismatch(&call.when, method, params) {
                Some(reason) => reasons.push(format!("calls[{index}]: {reason}")),
                None if used[index] >= call.repeat => reasons.push(format!("calls[{index}] is used up")),
                None => {
                    used[index] += 1;
                    return Ok(call);
                }
            }
        }
        let what = match params.get("name").or_else(|| params.get("uri")).and_then(Value::as_str) {
            Some(name) => format!("{method} of {name}"),
            None => method.to_owned(),
        };
        if reasons.is_empty() {
            reasons.push("the script has no calls".to_owned());
        }
        Err(format!("unscripted call: {what}; {}", reasons.join("; ")))
    }
}

/// Why a request is not what a scripted call waits for.
fn mismatch(when: &McpWhen, method: &str, params: &Value) -> Option<String> {
    let kinds =
        [(&when.tool, "tools/call", "name"), (&when.prompt, "prompts/get", "name"), (&when.resource, "resources/read", "uri")];
    for (pattern, wanted, key) in kinds {
        let Some(pattern) = pattern else { continue };
        if method != wanted {
            return Some(format!("waits for {wanted}"));
        }
        if let Err(mismatch) = pattern.matches(params.get(key)) {
            return Some(format!("{key}: {mismatch}"));
        }
    }
    let method = Value::from(method);
    let rest = [
        (&when.method, Some(&method), "method"),
        (&when.arguments, params.get("arguments"), "arguments"),
        (&when.params, Some(params), "params"),
    ];
    rest.into_iter().find_map(|(pattern, value, what)| {
        let mismatch = pattern.as_ref()?.matches(value).err()?;
        Some(format!("{what}: {mismatch}"))
    })
}

fn describe(when: &McpWhen) -> String {
    // A `when` holds nothing that JSON cannot spell.
    serde_json::to_string(when).unwrap_or_default()
}
