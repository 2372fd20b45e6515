//! The envelope of a frame: which message it is, without touching what it carries.
//!
//! Invariant: members are borrowed slices of the frame, so unknown fields and number spellings survive, and a slice's
//! place in the frame is known (see [`splice`](crate::splice)). A key that occurs twice is refused. Deliberately no look
//! inside `params` and `result`.

use std::borrow::Cow;
use std::fmt;

use greenroom_boundary::mcp::Frame;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::error::text_of;
use crate::{RawJson, RequestId, RpcError, WireError};

/// The members of an object, in order, borrowed from its text; no key occurs twice.
#[derive(Debug)]
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Members<'a> {
    /// Reads the members of a JSON object.
    pub(crate) fn parse(text: &'a str) -> Result<Self, WireError> {
        match text.trim_start_matches([' ', '\t', '\r', '\n']).as_bytes().first() {
            Some(b'{') => {
                let members = serde_json::from_str::<Self>(text).map_err(|error| WireError::json(&error))?;
                members.refuse_duplicates()?;
                Ok(members)
            }
            _ => match serde_json::from_str::<IgnoredAny>(text) {
                Err(error) => Err(WireError::json(&error)),
                Ok(_) if text.trim_start().starts_with('[') => Err(WireError::Batch),
                Ok(_) => Err(WireError::NotAnObject),
            },
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(name, _)| name == key).map(|(_, raw)| *raw)
    }

    fn refuse_duplicates(&self) -> Result<(), WireError> {
        let mut keys: Vec<&str> = self.0.iter().map(|(key, _)| key.as_ref()).collect();
        keys.sort_unstable();
        match keys.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(WireError::DuplicateKey { key: pair[0].to_owned() }),
            None => Ok(()),
        }
    }
}

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct MembersVisitor;

        impl<'de> Visitor<'de> for MembersVisitor {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::with_capacity(6);
                while let Some(key) = map.next_key::<Key<'de>>()? {
                    members.push((key.0, map.next_value()?));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(MembersVisitor)
    }
}

/// A key that is borrowed when it has no escapes (`Cow` alone would always copy here).
struct Key<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);
        Borrowed::deserialize(deserializer).map(|key| Key(key.0))
    }
}

/// A frame's outermost members.
#[derive(Debug)]
pub struct Envelope<'a> {
    pub(crate) text: &'a str,
    /// The `jsonrpc` member.
    pub jsonrpc: Option<&'a RawValue>,
    /// The `id` member, as written.
    pub id: Option<&'a RawValue>,
    /// The `method` member, as written.
    pub method: Option<&'a RawValue>,
    /// The `params` member.
    pub params: Option<&'a RawValue>,
    /// The `result` member.
    pub result: Option<&'a RawValue>,
    /// The `error` member.
    pub error: Option<&'a RawValue>,
}

impl<'a> Envelope<'a> {
    /// Finds the members of `frame`; says nothing yet on whether they make a message.
    pub fn parse(frame: &'a Frame) -> Result<Self, WireError> {
        let text = std::str::from_utf8(&frame.0).map_err(|error| WireError::Json { message: error.to_string() })?;
        let members = Members::parse(text)?;
        Ok(Self {
            text,
            jsonrpc: members.get("jsonrpc"),
            id: members.get("id"),
            method: members.get("method"),
            params: members.get("params"),
            result: members.get("result"),
            error: members.get("error"),
        })
    }

    fn request_id(&self) -> Result<Option<RequestId>, WireError> {
        let bad = |raw: &RawValue| WireError::BadId { id: raw.get().to_owned() };
        self.id.map(|raw| RequestId::from_raw(raw).ok_or_else(|| bad(raw))).transpose()
    }
}

/// What a frame says.
#[derive(Clone, Debug)]
pub enum Message {
    /// Asks for an answer.
    Request {
        /// Its id.
        id: RequestId,
        /// The method.
        method: String,
        /// Its parameters, as written.
        params: Option<RawJson>,
    },
    /// Asks for none.
    Notification {
        /// The method.
        method: String,
        /// Its parameters, as written.
        params: Option<RawJson>,
    },
    /// Answers a request.
    Response {
        /// The request; `None` when the answering side could not tell (then it is an error).
        id: Option<RequestId>,
        /// The answer, as written.
        result: Result<RawJson, RpcError>,
    },
}

impl Message {
    /// Reads the message in `frame`.
    pub fn parse(frame: &Frame) -> Result<Self, WireError> {
        Self::from_envelope(&Envelope::parse(frame)?)
    }

    /// Reads the message in an envelope.
    pub fn from_envelope(envelope: &Envelope<'_>) -> Result<Self, WireError> {
        if envelope.jsonrpc.is_none_or(|raw| raw.get() != "\"2.0\"") {
            return Err(WireError::Version);
        }
        let Some(method) = envelope.method else { return Self::response(envelope) };
        let method = text_of(method).ok_or(WireError::BadMethod)?.into_owned();
        let params = envelope.params.map(ToOwned::to_owned);
        Ok(match envelope.request_id()? {
            Some(id) => Self::Request { id, method, params },
            None => Self::Notification { method, params },
        })
    }

    fn response(envelope: &Envelope<'_>) -> Result<Self, WireError> {
        // Some servers write the unused member of the two as null.
        let present = |raw: Option<&RawValue>| raw.is_some_and(|raw| raw.get() != "null");
        let result = match (envelope.result, envelope.error) {
            (None, None) => return Err(WireError::Shapeless),
            (Some(_), Some(_)) if present(envelope.result) && present(envelope.error) => {
                return Err(WireError::BadResponse { reason: "it has both a result and an error" });
            }
            (_, Some(error)) if present(envelope.error) => Err(RpcError::from_raw(error)),
            (Some(result), _) => Ok(result.to_owned()),
            (None, Some(error)) => Err(RpcError::from_raw(error)),
        };
        let id = match envelope.id {
            Some(raw) if raw.get() == "null" => None,
            _ => envelope.request_id()?,
        };
        if id.is_none() && result.is_ok() {
            return Err(WireError::BadResponse { reason: "it has a result but no id" });
        }
        Ok(Self::Response { id, result })
    }
}
