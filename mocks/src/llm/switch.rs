//! One model out of many, by connector.
//!
//! Invariant: a connector that is not listed is refused, never answered by another. Deliberately no fallback chains.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmRequest, LlmStream};
use greenroom_boundary::{CancellationToken, Llm};

/// Sends each request to the model of its connector.
#[derive(Clone, Debug, Default)]
pub struct LlmSwitch {
    models: BTreeMap<String, Arc<dyn Llm>>,
}

impl LlmSwitch {
    /// A switch between `models`, by connector name (`main`, without `llm.`).
    pub fn new(models: BTreeMap<String, Arc<dyn Llm>>) -> Self {
        Self { models }
    }
}

#[async_trait]
impl Llm for LlmSwitch {
    /// What all of them can do.
    fn capabilities(&self) -> LlmCapabilities {
        let all = |has: fn(LlmCapabilities) -> bool| self.models.values().all(|model| has(model.capabilities()));
        LlmCapabilities { tools: all(|can| can.tools), streaming: all(|can| can.streaming) }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        match self.models.get(request.connector.as_str()) {
            Some(model) => model.stream(request, cancel).await,
            None => Err(unlisted(request.connector.as_str(), self.models.keys())),
        }
    }
}

/// Refuses every request.
#[derive(Clone, Copy, Default)]
pub struct DenyLlm;

impl fmt::Debug for DenyLlm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DenyLlm")
    }
}

#[async_trait]
impl Llm for DenyLlm {
    fn capabilities(&self) -> LlmCapabilities {
        LlmCapabilities { tools: true, streaming: true }
    }

    async fn stream(&self, request: LlmRequest, _cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        Err(unlisted(request.connector.as_str(), std::iter::empty::<&String>()))
    }
}

fn unlisted<'a>(connector: &str, listed: impl Iterator<Item = &'a String>) -> LlmError {
    let listed: Vec<String> = listed.map(|name| format!("llm.{name}")).collect();
    let listed = if listed.is_empty() { "no connector".to_owned() } else { listed.join(", ") };
    LlmError::Unavailable {
        connector: connector.to_owned(),
        message: format!(
            "llm.{connector} is not listed here, so it is denied (listed: {listed}); add `llm.{connector}` to `drivers`"
        ),
    }
}
