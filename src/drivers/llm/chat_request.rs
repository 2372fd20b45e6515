//! A request in the dialect of Chat Completions.
//!
//! Invariant: the conversation is sent as it is, without the host's own marks; the caller's parameters cannot turn
//! streaming off. Deliberately no model-specific renaming: `params` can carry what a model wants.

use greenroom_boundary::llm::{LlmRequest, ToolSpec};
use serde_json::{Map, Value, json};

/// Fields of a message that are the host's own; strict providers refuse what they do not know.
const HOST_FIELDS: [&str; 2] = ["is_error", "structured"];

pub(super) fn chat_request(request: &LlmRequest, default_model: &str) -> Value {
    let mut body = request.params.clone();
    let model = if request.model.is_empty() { default_model } else { &request.model };
    body.insert("model".to_owned(), json!(model));
    body.insert("messages".to_owned(), messages(request));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    // A choice without tools is an error at most providers.
    if let Some(choice) = request.tool_choice.as_deref().filter(|_| !request.tools.is_empty()) {
        body.insert("tool_choice".to_owned(), tool_choice(choice));
    }
    if let Some(temperature) = request.temperature {
        body.insert("temperature".to_owned(), json!(temperature));
    }
    // Newer models want `max_completion_tokens`; whoever sets that in `params` means it instead.
    if let Some(max_tokens) = request.max_tokens.filter(|_| !body.contains_key("max_completion_tokens")) {
        body.insert("max_tokens".to_owned(), json!(max_tokens));
    }
    body.insert("stream".to_owned(), json!(true));
    body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    Value::Object(body)
}

fn messages(request: &LlmRequest) -> Value {
    let message = |message: &greenroom_boundary::llm::ChatMessage| {
        let mut message = message.clone();
        message.extra.retain(|field, _| !HOST_FIELDS.contains(&field.as_str()));
        serde_json::to_value(message).unwrap_or_default()
    };
    request.messages.iter().map(message).collect()
}

fn tool(tool: &ToolSpec) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), json!(tool.name));
    if let Some(description) = &tool.description {
        function.insert("description".to_owned(), json!(description));
    }
    function.insert("parameters".to_owned(), tool.parameters.clone());
    json!({ "type": "function", "function": function })
}

fn tool_choice(choice: &str) -> Value {
    match choice {
        "auto" | "none" | "required" => json!(choice),
        name => json!({ "type": "function", "function": { "name": name } }),
    }
}
