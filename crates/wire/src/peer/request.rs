//! Requests to the other side: their options and how they end.
//!
//! Invariant: a request ends exactly once. Progress moves the idle deadline and never the cap; progress that does not grow
//! moves nothing. Deliberately no retries.

use std::fmt;
use std::time::Duration;

use greenroom_boundary::CancellationToken;
use greenroom_boundary::mcp::{Frame, McpError};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{ProgressToken, RawJson, RequestId, RpcError, WireError};

/// Progress of a request under way.
#[derive(Clone, Debug)]
pub struct Progress {
    /// How far, in units of the sender's choice; it grows with every message.
    pub progress: f64,
    /// Where it ends, if known.
    pub total: Option<f64>,
    /// What is going on.
    pub message: Option<String>,
    /// The notification's params, as written (see [`splice::progress_params`](crate::splice::progress_params)).
    pub params: RawJson,
}

/// The parts of a progress notification that the connection looks at.
pub(crate) struct ProgressNote {
    pub(crate) token: ProgressToken,
    pub(crate) progress: Progress,
}

impl ProgressNote {
    pub(crate) fn parse(params: Option<&RawValue>) -> Option<Self> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Params {
            progress_token: ProgressToken,
            progress: f64,
            #[serde(default)]
            total: Option<f64>,
            #[serde(default)]
            message: Option<String>,
        }
        let raw = params?;
        let Params { progress_token, progress, total, message } = serde_json::from_str(raw.get()).ok()?;
        Some(Self { token: progress_token, progress: Progress { progress, total, message, params: raw.to_owned() } })
    }
}

/// Called with each step of progress, on the reader; it must not block.
pub type OnProgress = Box<dyn Fn(Progress) + Send + Sync>;
/// Called once the connection takes the frame, right before it is sent.
pub type OnSend = Box<dyn FnOnce(&RequestId, &Frame) + Send>;

/// Called when the answer comes in, before the next frame is read: whoever writes down the order of a connection's events needs
/// it at that moment, not when the caller wakes.
pub type OnAnswer = Box<dyn FnOnce(&Result<RawJson, RequestError>) + Send>;

/// How a request is made.
#[derive(Default)]
pub struct RequestOptions {
    /// How long to wait for an answer, or for the next step of progress.
    pub timeout: Option<Duration>,
    /// How long to wait in all.
    pub cap: Option<Duration>,
    /// Who hears of progress.
    pub progress: Option<OnProgress>,
    /// Gives the request up.
    pub cancel: CancellationToken,
    /// Hears of the frame before it is sent.
    pub on_send: Option<OnSend>,
    /// Hears of the answer, or of the end of the connection; not of a request that the caller gave up.
    pub on_answer: Option<OnAnswer>,
    /// Puts a token of our own (the request's id) into the params. Needed if progress is to be heard or to move the
    /// deadline. Otherwise a token that is already in the params is used, if there is one.
    pub attach_progress_token: bool,
}

impl RequestOptions {
    /// Waits at most `timeout`, progress or not, and asks for no progress.
    pub fn within(timeout: Duration) -> Self {
        Self { timeout: Some(timeout), ..Self::default() }
    }
}

impl fmt::Debug for RequestOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestOptions")
            .field("timeout", &self.timeout)
            .field("cap", &self.cap)
            .field("attach_progress_token", &self.attach_progress_token)
            .finish_non_exhaustive()
    }
}

/// How a request failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RequestError {
    /// The other side answered with an error.
    #[error(transparent)]
    Rpc(RpcError),
    /// No answer, and no progress, in time. The other side was told.
    #[error("no answer in time")]
    Timeout,
    /// The caller gave it up. The other side was told.
    #[error("the request was cancelled")]
    Cancelled,
    /// The connection ended, or did not take the frame.
    #[error(transparent)]
    Closed(McpError),
    /// The answer was beyond the size limit; the connection goes on.
    #[error(transparent)]
    TooLarge(McpError),
    /// What came under the request's id is no answer: it has a result and an error, or is no JSON-RPC 2.0.
    #[error("the answer is not usable: {0}")]
    BadAnswer(WireError),
    /// The params cannot carry a progress token.
    #[error(transparent)]
    Params(WireError),
}

impl RequestError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Rpc(_) => "RPC_ERROR",
            Self::Timeout => "REQUEST_TIMEOUT",
            Self::Cancelled => "REQUEST_CANCELLED",
            Self::Closed(error) | Self::TooLarge(error) => error.code(),
            Self::BadAnswer(error) | Self::Params(error) => error.code(),
        }
    }

    /// The JSON-RPC error that passes this failure on.
    pub fn to_rpc(&self) -> RpcError {
        let code = match self {
            Self::Rpc(error) => return error.clone(),
            Self::Timeout => RpcError::TIMEOUT,
            Self::Cancelled => RpcError::CANCELLED,
            Self::Closed(_) | Self::TooLarge(_) => RpcError::TRANSPORT,
            Self::BadAnswer(_) => RpcError::INTERNAL,
            Self::Params(_) => RpcError::INVALID_PARAMS,
        };
        RpcError::new(code, self.to_string())
    }
}
