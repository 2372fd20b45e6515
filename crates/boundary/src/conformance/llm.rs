//! What any model driver must do.
//!
//! Invariant: a [`LlmStage`] says in neutral terms what "the provider" will answer; the suite checks what the driver makes
//! of it. Deliberately no dialect: how an answer looks on a wire is the stage's business.

use std::sync::Arc;

use async_trait::async_trait;
use futures::StreamExt;

use crate::llm::{ChatMessage, FunctionCall, LlmError, LlmEvent, LlmRequest, LlmStream, Role, ToolCall, ToolSpec, Usage};
use crate::{CancellationToken, ConnectorName, Llm};

/// The connector that every request of the suite names.
pub const CONNECTOR: &str = "main";

/// What the provider answers to one request.
#[derive(Clone, Debug)]
pub enum Answer {
    /// A whole answer.
    Complete {
        /// Text, to be sent in pieces.
        text: String,
        /// Tool calls, as (name, arguments' JSON text).
        calls: Vec<(String, String)>,
        /// Token counts.
        usage: Option<Usage>,
        /// Why it ends.
        finish: String,
    },
    /// An HTTP error.
    Error {
        /// Status code.
        status: u16,
        /// Message.
        message: String,
        /// `Retry-After` in seconds.
        retry_after_s: Option<u64>,
    },
    /// Text, and then the connection breaks without an end mark.
    Cut {
        /// The text before it.
        text: String,
    },
    /// A word, and then nothing for an hour.
    Stalls {
        /// The word; at most four characters with the space after it.
        word: String,
    },
}

/// Sets a driver up against a provider that behaves as told.
#[async_trait]
pub trait LlmStage: Send + Sync {
    /// A driver whose next request gets `answer`.
    async fn model(&self, answer: Answer) -> Arc<dyn Llm>;
}

/// Runs the whole suite.
pub async fn all(stage: &dyn LlmStage) {
    pieces_of_text_join_to_the_text(stage).await;
    parallel_tool_calls_keep_index_id_name_and_arguments(stage).await;
    usage_and_finish_come_last(stage).await;
    the_finish_reason_is_passed_on(stage).await;
    an_error_status_carries_retry_after(stage).await;
    a_cut_stream_is_an_error_after_what_came(stage).await;
    a_cancelled_token_stops_the_call_before_it_starts(stage).await;
    cancelling_ends_a_stream_half_way(stage).await;
}

/// A request with a word of the user and one tool.
pub fn request() -> LlmRequest {
    LlmRequest {
        connector: ConnectorName::from(CONNECTOR),
        model: String::new(),
        messages: vec![ChatMessage::text(Role::User, "Hello")],
        tools: vec![ToolSpec {
            name: "clock__now".to_owned(),
            description: Some("Tells the time.".to_owned()),
            parameters: serde_json::json!({ "type": "object" }),
        }],
        tool_choice: None,
        temperature: None,
        max_tokens: None,
        params: serde_json::Map::new(),
        agent: None,
    }
}

/// A whole answer of text.
pub fn text_answer(text: &str) -> Answer {
    Answer::Complete { text: text.to_owned(), calls: Vec::new(), usage: None, finish: "stop".to_owned() }
}

/// A stream put together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Assembled {
    /// All text.
    pub text: String,
    /// All reasoning.
    pub reasoning: String,
    /// Tool calls by index.
    pub calls: Vec<ToolCall>,
    /// The last token counts.
    pub usage: Option<Usage>,
    /// Why it ended.
    pub finish: Option<String>,
    /// What broke it off.
    pub error: Option<LlmError>,
}

/// Reads a stream to its end, and checks that nothing follows the end.
pub async fn assemble(mut stream: LlmStream) -> Assembled {
    let mut all = Assembled::default();
    while let Some(item) = stream.next().await {
        assert!(all.finish.is_none() && all.error.is_none(), "nothing may follow the end, but {item:?} did");
        match item {
            Ok(LlmEvent::Text { delta }) => all.text += &delta,
            Ok(LlmEvent::Reasoning { delta }) => all.reasoning += &delta,
            Ok(LlmEvent::ToolCall { index, id, name, arguments }) => {
                if index == all.calls.len() {
                    let function = FunctionCall { name: name.expect("a name"), arguments };
                    all.calls.push(ToolCall { id: id.expect("an id"), kind: "function".to_owned(), function });
                } else {
                    all.calls[index].function.arguments += &arguments;
                }
            }
            Ok(LlmEvent::Usage(usage)) => all.usage = Some(usage),
            Ok(LlmEvent::Finish { reason }) => all.finish = Some(reason),
            Err(error) => all.error = Some(error),
        }
    }
    all
}

async fn ask(stage: &dyn LlmStage, answer: Answer) -> Assembled {
    let model = stage.model(answer).await;
    let stream = model.stream(request(), &CancellationToken::new()).await.expect("a stream");
    assemble(stream).await
}

/// Text in pieces is the text, whatever is in it.
pub async fn pieces_of_text_join_to_the_text(stage: &dyn LlmStage) {
    let text = "Grüße, 世界 🌍!\n\n\"data: [DONE]\"\\ \u{2028}end";
    let got = ask(stage, text_answer(text)).await;
    assert_eq!((got.text.as_str(), got.error), (text, None));
    assert_eq!(ask(stage, text_answer("")).await.text, "");
}

/// Calls come by index, in order, each with its own id, and their arguments byte for byte.
pub async fn parallel_tool_calls_keep_index_id_name_and_arguments(stage: &dyn LlmStage) {
    let spelled = [("clock__now", r#"{"zone":"Europe/Oslo","n":1.0}"#), ("clock__set", "{"), ("clock__now", "{}")];
    let calls = spelled.iter().map(|(name, arguments)| ((*name).to_owned(), (*arguments).to_owned())).collect();
    let answer = Answer::Complete { text: "Two.".to_owned(), calls, usage: None, finish: "tool_calls".to_owned() };
    let got = ask(stage, answer).await;
    let heard: Vec<_> = got.calls.iter().map(|call| (call.function.name.as_str(), call.function.arguments.as_str())).collect();
    assert_eq!((got.text.as_str(), heard), ("Two.", spelled.to_vec()));
    let ids: std::collections::BTreeSet<_> = got.calls.iter().map(|call| &call.id).collect();
    assert_eq!(ids.len(), spelled.len(), "each call has its own id");
    assert_eq!(got.finish.as_deref(), Some("tool_calls"));
}

/// Token counts come before the end, and the end is the last.
pub async fn usage_and_finish_come_last(stage: &dyn LlmStage) {
    let usage = Usage { input_tokens: 212, output_tokens: 41 };
    let answer = Answer::Complete { text: "Hi.".to_owned(), calls: Vec::new(), usage: Some(usage), finish: "stop".to_owned() };
    let got = ask(stage, answer).await;
    assert_eq!((got.usage, got.finish.as_deref(), got.error), (Some(usage), Some("stop"), None));
}

/// The reason is the provider's.
pub async fn the_finish_reason_is_passed_on(stage: &dyn LlmStage) {
    for reason in ["stop", "length", "content_filter"] {
        let answer = Answer::Complete { text: "Hi.".to_owned(), calls: Vec::new(), usage: None, finish: reason.to_owned() };
        assert_eq!(ask(stage, answer).await.finish.as_deref(), Some(reason));
    }
}

/// An HTTP error says its status, its message and when to come back.
pub async fn an_error_status_carries_retry_after(stage: &dyn LlmStage) {
    for (status, retry_after_s) in [(429, Some(3)), (500, None), (401, None)] {
        let model = stage.model(Answer::Error { status, message: "not now".to_owned(), retry_after_s }).await;
        let error = match model.stream(request(), &CancellationToken::new()).await {
            Err(error) => error,
            Ok(stream) => assemble(stream).await.error.expect("an error"),
        };
        let LlmError::Status { status: got, message, retry_after_ms, .. } = &error else { panic!("{error:?}") };
        assert_eq!((*got, *retry_after_ms), (status, retry_after_s.map(|s| s * 1000)));
        assert!(message.contains("not now"), "{message}");
    }
}

/// What came before the cut is delivered, then the cut is an error.
pub async fn a_cut_stream_is_an_error_after_what_came(stage: &dyn LlmStage) {
    let got = ask(stage, Answer::Cut { text: "Half an ans".to_owned() }).await;
    assert_eq!((got.text.as_str(), got.finish), ("Half an ans", None));
    assert_eq!(got.error.map(|error| error.code()), Some("LLM_TRUNCATED"));
}

/// A token that is already cancelled stops the call.
pub async fn a_cancelled_token_stops_the_call_before_it_starts(stage: &dyn LlmStage) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let model = stage.model(text_answer("Hi.")).await;
    let error = match model.stream(request(), &cancel).await {
        Err(error) => Some(error),
        Ok(stream) => assemble(stream).await.error,
    };
    assert_eq!(error.map(|error| error.code()), Some("LLM_CANCELLED"));
}

/// Cancelling while the provider is silent ends the stream.
pub async fn cancelling_ends_a_stream_half_way(stage: &dyn LlmStage) {
    let cancel = CancellationToken::new();
    let model = stage.model(Answer::Stalls { word: "One".to_owned() }).await;
    let mut stream = model.stream(request(), &cancel).await.expect("a stream");
    let first = stream.next().await.expect("a piece").expect("text");
    assert!(matches!(&first, LlmEvent::Text { delta } if delta.trim() == "One"), "{first:?}");
    cancel.cancel();
    let rest = assemble(stream).await;
    assert_eq!(rest.error.map(|error| error.code()), Some("LLM_CANCELLED"));
    assert_eq!(rest.finish, None);
}
