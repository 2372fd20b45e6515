//! The streamed answer in the dialect of Chat Completions.
//!
//! Invariant: indices of tool calls count from 0 in order of appearance, whatever the provider counts; id and name come
//! once, in a call's first piece; the finish is the last event. Deliberately only the first choice.

use greenroom_boundary::llm::{LlmEvent, Usage};
use serde::Deserialize;
use serde_json::Value;

/// What one `data:` line means.
#[derive(Debug)]
pub(super) enum Step {
    /// More of the answer, maybe nothing.
    Events(Vec<LlmEvent>),
    /// The end mark, with the finish.
    End(LlmEvent),
}

/// What is wrong with a line.
#[derive(Debug)]
pub(super) enum StreamFault {
    Malformed(String),
    /// The provider reports an error in the middle of its answer.
    Provider {
        status: Option<u16>,
        message: String,
    },
}

/// Puts the lines of one answer together.
#[derive(Debug, Default)]
pub(super) struct ChatStream {
    calls: Vec<ProviderCall>,
    finish: Option<String>,
}

#[derive(Debug)]
struct ProviderCall {
    index: Option<u64>,
    id: String,
}

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Option<ProviderUsage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    #[serde(default)]
    refusal: Option<String>,
    /// What DeepSeek and those after it call it.
    #[serde(default)]
    reasoning_content: Option<String>,
    /// What OpenRouter and newer vLLM call it; some send both, with the same text.
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u64>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    arguments: Option<String>,
}

#[derive(Deserialize)]
struct ProviderUsage {
    #[serde(default)]
    prompt_tokens: u64,
    #[serde(default)]
    completion_tokens: u64,
}

impl ChatStream {
    /// Takes one `data:` value.
    pub(super) fn line(&mut self, data: &str) -> Result<Step, StreamFault> {
        if data.trim() == "[DONE]" {
            let missing = || StreamFault::Malformed("the stream is done, but no `finish_reason` came".to_owned());
            return self.end().map(Step::End).ok_or_else(missing);
        }
        let chunk: Chunk = serde_json::from_str(data).map_err(|error| StreamFault::Malformed(error.to_string()))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(provider_fault(&error));
        }
        let mut events = Vec::new();
        for choice in chunk.choices.into_iter().filter(|choice| choice.index == 0) {
            self.delta(choice.delta.unwrap_or_default(), &mut events)?;
            self.finish = choice.finish_reason.or(self.finish.take());
        }
        if let Some(usage) = chunk.usage {
            let usage = Usage { input_tokens: usage.prompt_tokens, output_tokens: usage.completion_tokens };
            events.push(LlmEvent::Usage(usage));
        }
        Ok(Step::Events(events))
    }

    /// The finish, if the provider has named one: what a body that ends without its end mark amounts to.
    pub(super) fn end(&mut self) -> Option<LlmEvent> {
        self.finish.take().map(|reason| LlmEvent::Finish { reason })
    }

    fn delta(&mut self, delta: Delta, events: &mut Vec<LlmEvent>) -> Result<(), StreamFault> {
        let said = |text: Option<String>| text.filter(|text| !text.is_empty());
        events
            .extend(said(delta.reasoning_content).or_else(|| said(delta.reasoning)).map(|delta| LlmEvent::Reasoning { delta }));
        events.extend(said(delta.content).map(|delta| LlmEvent::Text { delta }));
        events.extend(said(delta.refusal).map(|delta| LlmEvent::Text { delta }));
        for call in delta.tool_calls.unwrap_or_default() {
            events.push(self.call(call)?);
        }
        Ok(())
    }

    fn call(&mut self, piece: CallDelta) -> Result<LlmEvent, StreamFault> {
        let function = piece.function.unwrap_or_default();
        let arguments = function.arguments.unwrap_or_default();
        let id = piece.id.filter(|id| !id.is_empty());
        if let Some(index) = self.known_call(piece.index, id.as_deref()) {
            return Ok(LlmEvent::ToolCall { index, id: None, name: None, arguments });
        }
        let index = self.calls.len();
        let lacks = |what: &str| StreamFault::Malformed(format!("tool call {index} starts without {what}"));
        let id = id.ok_or_else(|| lacks("an id"))?;
        let name = function.name.filter(|name| !name.is_empty()).ok_or_else(|| lacks("a name"))?;
        self.calls.push(ProviderCall { index: piece.index, id: id.clone() });
        Ok(LlmEvent::ToolCall { index, id: Some(id), name: Some(name), arguments })
    }

    /// The call that a piece goes on with. Some providers leave indices out, and repeat the id or mean the last call.
    fn known_call(&self, index: Option<u64>, id: Option<&str>) -> Option<usize> {
        match (index, id) {
            (Some(_), _) => self.calls.iter().position(|call| call.index == index),
            (None, Some(id)) => self.calls.iter().position(|call| call.id == id),
            (None, None) => self.calls.len().checked_sub(1),
        }
    }
}

fn provider_fault(error: &Value) -> StreamFault {
    let code = error.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
    let message = error.get("message").unwrap_or(error);
    StreamFault::Provider {
        status: code.filter(|code| (400..600).contains(code)),
        message: message.as_str().map_or_else(|| message.to_string(), str::to_owned),
    }
}
