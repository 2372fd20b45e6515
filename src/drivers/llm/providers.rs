//! All providers of a config as one model.
//!
//! Invariant: a request goes to the provider of its connector or fails; none stands in for another. Deliberately no
//! look-up of environment variables: values come expanded.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmRequest, LlmStream};
use greenroom_boundary::{CancellationToken, Llm};

use super::endpoint::LlmWorld;
use super::openai::{OpenAiChat, OpenAiOptions};
use super::setup::LlmSetupError;

/// Dialects that configs may name but this version does not speak.
const KNOWN_DIALECTS: [&str; 4] = ["AnthropicMessages", "OpenAIResponses", "OpenResponses", "BifrostRequest"];

/// One entry of `llmProviders`.
#[derive(Clone, Default)]
pub struct ProviderSettings {
    /// `OpenAIChatCompletions`.
    pub dialect: String,
    /// The key.
    pub api_key: Option<String>,
    /// Address up to and including `/v1`.
    pub base_url: Option<String>,
    /// Further headers.
    pub headers: BTreeMap<String, String>,
}

impl fmt::Debug for ProviderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProviderSettings").field("dialect", &self.dialect).finish_non_exhaustive()
    }
}

/// The providers of a config, by connector.
#[derive(Debug)]
pub struct LlmProviders {
    models: BTreeMap<String, Arc<dyn Llm>>,
}

impl LlmProviders {
    /// Sets all providers up. Nothing is contacted yet.
    pub fn new(providers: &BTreeMap<String, ProviderSettings>, world: &LlmWorld) -> Result<Self, LlmSetupError> {
        let models = providers.iter().map(|(name, settings)| Ok((name.clone(), model(name, settings, world)?)));
        Ok(Self { models: models.collect::<Result<_, _>>()? })
    }
}

fn model(connector: &str, settings: &ProviderSettings, world: &LlmWorld) -> Result<Arc<dyn Llm>, LlmSetupError> {
    let refuse = |said: String| Err(LlmSetupError::Dialect { connector: connector.to_owned(), said });
    match settings.dialect.as_str() {
        "OpenAIChatCompletions" => {
            let options = OpenAiOptions {
                base_url: settings.base_url.clone(),
                api_key: settings.api_key.clone(),
                headers: settings.headers.clone(),
                model: String::new(),
            };
            Ok(Arc::new(OpenAiChat::new(connector, &options, world.clone())?))
        }
        "" => refuse("not given, which means `OpenAIResponses`, and that is not implemented yet".to_owned()),
        known if KNOWN_DIALECTS.contains(&known) => refuse(format!("`{known}` is not implemented yet")),
        unknown => refuse(format!("`{unknown}` is unknown")),
    }
}

#[async_trait]
impl Llm for LlmProviders {
    /// What all of them can do.
    fn capabilities(&self) -> LlmCapabilities {
        let all = |has: fn(LlmCapabilities) -> bool| self.models.values().all(|model| has(model.capabilities()));
        LlmCapabilities { tools: all(|can| can.tools), streaming: all(|can| can.streaming) }
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        if let Some(model) = self.models.get(request.connector.as_str()) {
            return model.stream(request, cancel).await;
        }
        let connector = request.connector.to_string();
        let listed: Vec<&str> = self.models.keys().map(String::as_str).collect();
        let listed = if listed.is_empty() { "none".to_owned() } else { listed.join(", ") };
        let message = format!("no LLM provider is called `{connector}` (there are: {listed}); add it under `llmProviders`");
        Err(LlmError::Unavailable { connector, message })
    }
}
