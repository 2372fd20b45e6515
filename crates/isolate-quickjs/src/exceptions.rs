//! Exceptions as the bootstrap reports them.
//!
//! Invariant: what a script threw keeps its class, message, code, cause and frames; frames come from the engine's call
//! sites, never from the text of `stack`. Deliberately no reading of values here: the bootstrap does it, in the engine.

use greenroom_boundary::isolate::{JsException, StackFrame};
use serde::Deserialize;

/// Most frames that are kept.
const MAX_FRAMES: usize = 10;

/// An exception as reported.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Reported {
    class: String,
    message: String,
    code: Option<String>,
    /// JSON objects, separated by commas.
    frames: String,
    cause: Option<Box<Reported>>,
    /// The engine's own error, which scripts cannot name, or `null`: QuickJS throws them when memory is exhausted.
    #[serde(default, rename = "isInternal")]
    pub(crate) is_internal: bool,
}

impl Reported {
    /// Reads a report.
    pub(crate) fn parse(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_else(|_| Self::unreadable())
    }

    /// For an exception that could not be reported.
    pub(crate) fn unreadable() -> Self {
        Self { class: "Error".to_owned(), message: "an error that cannot be read".to_owned(), ..Self::default() }
    }
}

impl From<Reported> for JsException {
    fn from(reported: Reported) -> Self {
        let mut frames: Vec<StackFrame> = serde_json::from_str(&format!("[{}]", reported.frames)).unwrap_or_default();
        frames.truncate(MAX_FRAMES);
        Self {
            class: reported.class,
            message: reported.message,
            code: reported.code,
            frames,
            cause: reported.cause.map(|cause| Box::new((*cause).into())),
        }
    }
}
