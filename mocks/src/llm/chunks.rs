//! An answer as timed pieces.
//!
//! Invariant: joined, the pieces are the text; the time of a piece depends on the tokens before its end, not on where
//! the text is cut. Deliberately no waiting here.

use std::time::Duration;

use greenroom_boundary::Entropy;
use greenroom_boundary::llm::{LlmEvent, Usage};

use super::script::{Chunking, LlmReply, StreamShape};

/// Characters that count as one token.
const TOKEN_CHARS: usize = 4;
/// Longest seeded piece in characters.
const LONGEST_PIECE_CHARS: u64 = 12;

/// A piece and when it comes, counted from the request.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct TimedEvent {
    pub(super) after: Duration,
    pub(super) event: LlmEvent,
}

/// All pieces of `reply` but its end, and when that comes. `call_ids` are the ids of its tool calls, in order.
pub(super) fn timed_events(reply: &LlmReply, call_ids: &[String], entropy: &dyn Entropy) -> (Vec<TimedEvent>, Duration) {
    let shape = reply.stream.clone().unwrap_or_default();
    let mut line = Timeline { shape: &shape, entropy, chars: 0, events: Vec::new() };
    if let Some(reasoning) = &reply.reasoning {
        line.pieces(reasoning, |delta, _| LlmEvent::Reasoning { delta });
    }
    if let Some(text) = &reply.text {
        line.pieces(text, |delta, _| LlmEvent::Text { delta });
    }
    for (index, (call, id)) in reply.tool_calls.iter().zip(call_ids).enumerate() {
        line.pieces(&call.arguments_text(), |arguments, first| LlmEvent::ToolCall {
            index,
            id: first.then(|| id.clone()),
            name: first.then(|| call.name.clone()),
            arguments,
        });
    }
    if let Some(usage) = reply.usage {
        line.push(LlmEvent::Usage(Usage { input_tokens: usage.input, output_tokens: usage.output }));
    }
    let end = line.time();
    (line.events, end)
}

struct Timeline<'a> {
    shape: &'a StreamShape,
    entropy: &'a dyn Entropy,
    chars: usize,
    events: Vec<TimedEvent>,
}

impl Timeline<'_> {
    /// Cuts `text`; an empty one is one empty piece.
    fn pieces(&mut self, text: &str, event: impl Fn(String, bool) -> LlmEvent) {
        let pieces = cut(text, self.shape.chunking, self.entropy);
        for (n, piece) in pieces.into_iter().enumerate() {
            self.chars += piece.chars().count();
            self.push(event(piece, n == 0));
        }
    }

    fn push(&mut self, event: LlmEvent) {
        let after = self.time();
        self.events.push(TimedEvent { after, event });
    }

    /// When the last token so far is there.
    fn time(&self) -> Duration {
        let first = self.shape.ttft.unwrap_or_default().to_std();
        let Some(rate) = self.shape.tokens_per_s else { return first };
        let tokens_after_first = self.chars.div_ceil(TOKEN_CHARS).saturating_sub(1);
        let generating = Duration::try_from_secs_f64(tokens_after_first as f64 / rate.per_s()).unwrap_or(Duration::MAX);
        first.saturating_add(generating)
    }
}

fn cut(text: &str, chunking: Chunking, entropy: &dyn Entropy) -> Vec<String> {
    let pieces: Vec<String> = match chunking {
        Chunking::Whole => vec![text.to_owned()],
        Chunking::Words => text.split_inclusive(char::is_whitespace).map(str::to_owned).collect(),
        Chunking::Seeded => {
            let mut rest = text.chars();
            std::iter::from_fn(|| {
                let length = 1 + entropy.next_u64() % LONGEST_PIECE_CHARS;
                let piece: String = rest.by_ref().take(length as usize).collect();
                (!piece.is_empty()).then_some(piece)
            })
            .collect()
        }
    };
    if pieces.is_empty() { vec![String::new()] } else { pieces }
}
