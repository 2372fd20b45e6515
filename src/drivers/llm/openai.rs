//! OpenAI's Chat Completions, and every provider that speaks it.
//!
//! Invariant: one request is one HTTP exchange; what has arrived is delivered before any error. Deliberately no retries.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use async_trait::async_trait;
use futures::StreamExt;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmEvent, LlmRequest, LlmStream};
use greenroom_boundary::{CancellationToken, Llm};

use super::chat_request::chat_request;
use super::chat_stream::{ChatStream, Step, StreamFault};
use super::endpoint::{Endpoint, EventBody, LlmWorld};
use super::setup::LlmSetupError;

/// Where OpenAI itself is.
const OPENAI: &str = "https://api.openai.com/v1";

/// Where and how a provider is reached.
#[derive(Clone, Default)]
pub struct OpenAiOptions {
    /// Address up to and including `/v1`; OpenAI's own if absent.
    pub base_url: Option<String>,
    /// Sent as a bearer token.
    pub api_key: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
    /// The model for requests that name none.
    pub model: String,
}

impl fmt::Debug for OpenAiOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiOptions").field("model", &self.model).finish_non_exhaustive()
    }
}

/// A model behind Chat Completions.
#[derive(Debug)]
pub struct OpenAiChat {
    endpoint: std::sync::Arc<Endpoint>,
    model: String,
}

impl OpenAiChat {
    /// The model of the connector `connector`. Nothing is contacted yet.
    pub fn new(connector: &str, options: &OpenAiOptions, world: LlmWorld) -> Result<Self, LlmSetupError> {
        let base_url = options.base_url.as_deref().unwrap_or(OPENAI);
        let key = options.api_key.as_deref();
        let endpoint = Endpoint::new(connector, base_url, "chat/completions", key, &options.headers, world)?;
        Ok(Self { endpoint: std::sync::Arc::new(endpoint), model: options.model.clone() })
    }
}

#[async_trait]
impl Llm for OpenAiChat {
    fn capabilities(&self) -> LlmCapabilities {
        LlmCapabilities { tools: true, streaming: true }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let body = chat_request(&request, &self.model).to_string().into_bytes();
        let body = self.endpoint.post(body, cancel).await?;
        let answer =
            Answer { endpoint: self.endpoint.clone(), body: Some(body), chat: ChatStream::default(), ready: VecDeque::new() };
        Ok(futures::stream::unfold(answer, |mut answer| async { answer.next().await.map(|event| (event, answer)) }).boxed())
    }
}

struct Answer {
    endpoint: std::sync::Arc<Endpoint>,
    /// Gone once the answer has ended: dropping it closes the connection.
    body: Option<EventBody>,
    chat: ChatStream,
    ready: VecDeque<LlmEvent>,
}

impl Answer {
    async fn next(&mut self) -> Option<Result<LlmEvent, LlmError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let body = self.body.as_mut()?;
            match body.next().await {
                Ok(Some(event)) => {
                    if let Err(error) = self.take(&event.data) {
                        self.body = None;
                        return Some(Err(error));
                    }
                }
                Ok(None) => {
                    self.body = None;
                    let connector = self.endpoint.connector().to_owned();
                    return Some(self.chat.end().ok_or(LlmError::Truncated { connector }));
                }
                Err(error) => {
                    self.body = None;
                    return Some(Err(error));
                }
            }
        }
    }

    fn take(&mut self, data: &str) -> Result<(), LlmError> {
        match self.chat.line(data).map_err(|fault| self.fault(fault))? {
            Step::Events(events) => self.ready.extend(events),
            Step::End(finish) => {
                self.ready.push_back(finish);
                self.body = None;
            }
        }
        Ok(())
    }

    fn fault(&self, fault: StreamFault) -> LlmError {
        let connector = self.endpoint.connector().to_owned();
        match fault {
            StreamFault::Malformed(message) => self.endpoint.malformed(message),
            StreamFault::Provider { status, message } => {
                let message = self.endpoint.speakable(&message);
                match status {
                    Some(status) => LlmError::Status { connector, status, message, retry_after_ms: None },
                    None => LlmError::Transport { connector, message: format!("the provider broke off: {message}") },
                }
            }
        }
    }
}
