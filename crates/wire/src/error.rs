//! Errors of the wire: frames that are no message, and JSON-RPC errors that travel in messages.
//!
//! Invariant: codes are stable; nothing decides anything by an error's text. Deliberately no transport errors, which are
//! [`McpError`](greenroom_boundary::mcp::McpError).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::RawJson;

/// A JSON-RPC error, as it travels.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    /// The error's number.
    pub code: i64,
    /// One sentence.
    pub message: String,
    /// Anything more, as it was written.
    pub data: Option<RawJson>,
    /// Members that JSON-RPC does not know, as they were written.
    further: Vec<(String, RawJson)>,
}

impl Serialize for RpcError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", &self.code)?;
        map.serialize_entry("message", &self.message)?;
        if let Some(data) = &self.data {
            map.serialize_entry("data", data)?;
        }
        for (key, value) in &self.further {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for RpcError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = RpcError;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with `code` and `message`")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<RpcError, A::Error> {
                let (mut code, mut message, mut data) = (None, None, None);
                let mut further: Vec<(String, RawJson)> = Vec::new();
                while let Some(key) = members.next_key::<String>()? {
                    match key.as_str() {
                        "code" if code.is_none() => code = Some(members.next_value()?),
                        "message" if message.is_none() => message = Some(members.next_value()?),
                        "data" if data.is_none() => data = members.next_value::<Option<RawJson>>()?,
                        // Readers differ on which of two counts.
                        "code" | "message" | "data" => return Err(A::Error::custom(format!("{key} occurs twice"))),
                        _ => further.push((key, members.next_value()?)),
                    }
                }
                let code = code.ok_or_else(|| A::Error::missing_field("code"))?;
                let message = message.ok_or_else(|| A::Error::missing_field("message"))?;
                Ok(RpcError { code, message, data, further })
            }
        }
        deserializer.deserialize_map(Members)
    }
}

impl RpcError {
    /// The text is not JSON.
    pub const PARSE: i64 = -32700;
    /// The JSON is not a valid request.
    pub const INVALID_REQUEST: i64 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// The method's parameters are wrong.
    pub const INVALID_PARAMS: i64 = -32602;
    /// Something broke inside.
    pub const INTERNAL: i64 = -32603;
    /// The request was cancelled.
    pub const CANCELLED: i64 = -32800;
    /// The transport lost the answer: an HTTP error status, a stream that ended early.
    pub const TRANSPORT: i64 = -32000;
    /// No answer within the limit.
    pub const TIMEOUT: i64 = -32001;
    /// No such resource (revisions up to 2025-11-25).
    pub const RESOURCE_NOT_FOUND: i64 = -32002;

    /// An error without data.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None, further: Vec::new() }
    }

    /// The answer to a method that nobody serves.
    pub fn method_not_found(method: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("method not found: {method}"))
    }

    /// The answer to wrong parameters.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    /// The answer when something broke inside; give no internals to outsiders.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }

    /// The same error with `data`; left out if it cannot be written as JSON.
    #[must_use]
    pub fn with_data(mut self, data: &impl Serialize) -> Self {
        self.data = serde_json::value::to_raw_value(data).ok();
        self
    }

    /// Reads the `error` member of a response. One that is no JSON-RPC error still fails the call: it becomes an internal
    /// error that carries what came as its data.
    pub fn from_raw(raw: &RawValue) -> Self {
        serde_json::from_str(raw.get()).unwrap_or_else(|_| Self {
            code: Self::INTERNAL,
            message: "the peer answered with an error that has no code and message".to_owned(),
            data: Some(raw.to_owned()),
            further: Vec::new(),
        })
    }
}

impl PartialEq for RpcError {
    fn eq(&self, other: &Self) -> bool {
        fn text(raw: &RawJson) -> &str {
            raw.get()
        }
        let further = |error: &Self| -> Vec<(String, String)> {
            error.further.iter().map(|(key, raw)| (key.clone(), raw.get().to_owned())).collect()
        };
        self.code == other.code
            && self.message == other.message
            && self.data.as_ref().map(text) == other.data.as_ref().map(text)
            && further(self) == further(other)
    }
}

/// Why a frame is not a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Not JSON text.
    #[error("not JSON: {message}")]
    Json {
        /// Where and what.
        message: String,
    },
    /// JSON, but neither an object nor an array.
    #[error("a message must be a JSON object")]
    NotAnObject,
    /// An array of messages; no revision from 2025-06-18 on has them.
    #[error("batches are not accepted; send one message at a time")]
    Batch,
    /// A key of the envelope, of `params` or of `_meta` occurs twice, and readers differ on which one counts.
    #[error("key {key:?} occurs twice")]
    DuplicateKey {
        /// The key.
        key: String,
    },
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("jsonrpc must be \"2.0\"")]
    Version,
    /// A request's id is `null`, has a fraction, is out of range, or is neither a number nor a string.
    #[error("id {id} is not a string or a whole number")]
    BadId {
        /// The id as written.
        id: String,
    },
    /// `method` is not a string.
    #[error("method must be a string")]
    BadMethod,
    /// Neither request, notification nor response.
    #[error("the message has neither a method, nor a result, nor an error")]
    Shapeless,
    /// A response with a result and an error, or a result that belongs to no id.
    #[error("the response is not usable: {reason}")]
    BadResponse {
        /// What is wrong.
        reason: &'static str,
    },
    /// `params`, or its `_meta`, must be an object for this.
    #[error("{what} must be an object")]
    BadParams {
        /// `params` or `params._meta`.
        what: &'static str,
    },
    /// A request's id is still in use.
    #[error("id {id} is already in use by a request that has no answer yet")]
    IdInUse {
        /// The id as written.
        id: String,
    },
}

impl WireError {
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        Self::Json { message: error.to_string() }
    }

    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Json { .. } => "WIRE_JSON",
            Self::NotAnObject => "WIRE_NOT_AN_OBJECT",
            Self::Batch => "WIRE_BATCH",
            Self::DuplicateKey { .. } => "WIRE_DUPLICATE_KEY",
            Self::Version => "WIRE_VERSION",
            Self::BadId { .. } => "WIRE_BAD_ID",
            Self::BadMethod => "WIRE_BAD_METHOD",
            Self::Shapeless => "WIRE_SHAPELESS",
            Self::BadResponse { .. } => "WIRE_BAD_RESPONSE",
            Self::BadParams { .. } => "WIRE_BAD_PARAMS",
            Self::IdInUse { .. } => "WIRE_ID_IN_USE",
        }
    }

    /// The JSON-RPC error that answers such a frame.
    pub fn to_rpc(&self) -> RpcError {
        let code = match self {
            Self::Json { .. } => RpcError::PARSE,
            Self::BadParams { .. } => RpcError::INVALID_PARAMS,
            _ => RpcError::INVALID_REQUEST,
        };
        RpcError::new(code, self.to_string())
    }
}

/// The text of a JSON string, decoded; `None` if it is none.
pub(crate) fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}
