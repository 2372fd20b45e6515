//! Holds a request against the turns of a script.
//!
//! Invariant: a turn matches only if each field that it names does; the nearest turn is the one with the most fields
//! that match, the earlier one of two. Deliberately no scoring inside a field.

use std::collections::BTreeMap;

use greenroom_boundary::llm::{ChatMessage, LlmRequest, Role};
use serde_json::{Value, json};

use super::script::{LlmWhen, ToolResultWhen};
use crate::pattern::{Mismatch, Pattern};

/// What turns look at, made once per request.
pub(super) struct RequestView {
    messages: Value,
    tools: Value,
    tool_results: Vec<ToolResult>,
    assistant: Option<Value>,
    connector: Value,
}

struct ToolResult {
    of: String,
    text: String,
    structured: Option<Value>,
    is_error: bool,
}

/// How far a turn is from a request.
pub(super) struct Distance {
    pub(super) matching_fields: usize,
    /// The first field that differs: its name and how.
    pub(super) first_difference: Option<(&'static str, Mismatch)>,
}

impl RequestView {
    /// `aliases` says which scripted call an id belongs to.
    pub(super) fn new(request: &LlmRequest, aliases: &BTreeMap<String, String>) -> Self {
        let trailing = request.messages.iter().rposition(|message| message.role != Role::Tool).map_or(0, |last| last + 1);
        Self {
            messages: serde_json::to_value(&request.messages).unwrap_or_default(),
            tools: serde_json::to_value(&request.tools).unwrap_or_default(),
            tool_results: request.messages[trailing..].iter().map(|message| ToolResult::new(message, aliases)).collect(),
            assistant: request.agent.clone().map(Value::String),
            connector: Value::String(request.connector.to_string()),
        }
    }

    pub(super) fn distance(&self, when: &LlmWhen) -> Distance {
        let field = |pattern: &Option<Pattern>, value: Option<&Value>| pattern.as_ref().map(|wanted| wanted.matches(value));
        let fields = [
            ("connector", field(&when.connector, Some(&self.connector))),
            ("assistant", field(&when.assistant, self.assistant.as_ref())),
            ("tool_results", when.tool_results.as_ref().map(|wanted| self.match_results(wanted))),
            ("messages", field(&when.messages, Some(&self.messages))),
            ("tools", field(&when.tools, Some(&self.tools))),
        ];
        let mut distance = Distance { matching_fields: 0, first_difference: None };
        for (name, outcome) in fields {
            match outcome {
                Some(Ok(())) => distance.matching_fields += 1,
                Some(Err(mismatch)) if distance.first_difference.is_none() => {
                    distance.first_difference = Some((name, mismatch));
                }
                _ => {}
            }
        }
        distance
    }

    fn match_results(&self, wanted: &[ToolResultWhen]) -> Result<(), Mismatch> {
        let order = |names: Vec<&str>| format!("results of [{}]", names.join(", "));
        let expected: Vec<&str> = wanted.iter().map(|result| result.of.as_str()).collect();
        let found: Vec<&str> = self.tool_results.iter().map(|result| result.of.as_str()).collect();
        if expected != found {
            return Err(Mismatch { path: String::new(), expected: order(expected), found: order(found) });
        }
        for (index, (wanted, found)) in wanted.iter().zip(&self.tool_results).enumerate() {
            found
                .check(wanted)
                .map_err(|(field, mismatch)| Mismatch { path: format!("/{index}/{field}{}", mismatch.path), ..mismatch })?;
        }
        Ok(())
    }
}

impl ToolResult {
    fn new(message: &ChatMessage, aliases: &BTreeMap<String, String>) -> Self {
        let id = message.tool_call_id.clone().unwrap_or_default();
        let text = message.plain_text();
        Self {
            of: aliases.get(&id).cloned().unwrap_or(id),
            // Lines behind structured content say what was done to it.
            structured: serde_json::from_str(&text).ok().or_else(|| serde_json::from_str(text.lines().next()?).ok()),
            text,
            is_error: message.extra.get("is_error").and_then(Value::as_bool).unwrap_or(false),
        }
    }

    fn check(&self, wanted: &ToolResultWhen) -> Result<(), (&'static str, Mismatch)> {
        if let Some(is_error) = wanted.is_error {
            let pattern = Pattern::literal(&json!(is_error));
            pattern.matches(Some(&json!(self.is_error))).map_err(|mismatch| ("is_error", mismatch))?;
        }
        if let Some(text) = &wanted.text {
            text.matches(Some(&json!(self.text))).map_err(|mismatch| ("text", mismatch))?;
        }
        if let Some(structured) = &wanted.structured {
            structured.matches(self.structured.as_ref()).map_err(|mismatch| {
                let found =
                    if self.structured.is_none() { format!("text that is no JSON: {:?}", self.text) } else { mismatch.found };
                ("structured", Mismatch { found, ..mismatch })
            })?;
        }
        Ok(())
    }
}
