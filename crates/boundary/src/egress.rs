//! The egress boundary: may this address be contacted? And the HTTP exchanges of scripts, which go out through it.
//!
//! Invariant: every outgoing connection of a real driver asks first. Deliberately no name resolution here.

use std::fmt;

use bytes::Bytes;

use crate::BoxFuture;

/// Where a connection would go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Destination {
    /// Host name or address as configured, lower case, without brackets.
    pub host: String,
    /// Port number.
    pub port: u16,
    /// Who asks, for the trace and the error: `llm.main`, `mcp.shop`.
    pub purpose: String,
}

/// A destination that the policy forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{purpose} may not contact {host}:{port}: {reason}")]
pub struct EgressDenied {
    /// Host that was asked for.
    pub host: String,
    /// Port that was asked for.
    pub port: u16,
    /// Who asked.
    pub purpose: String,
    /// Which rule said no, and how to allow it.
    pub reason: String,
}

impl EgressDenied {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "EGRESS_DENIED"
    }
}

/// The policy on outgoing connections.
pub trait Egress: Send + Sync + fmt::Debug {
    /// Allows or refuses the destination; never waits.
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied>;

    /// Makes one HTTP exchange for a script, if [`Egress::check`] allows it. Dropping the future ends it. A policy alone makes none.
    fn fetch(&self, request: HttpRequest) -> BoxFuture<'static, Result<HttpAnswer, HttpError>> {
        let answer = self.check(&request.destination).map_err(HttpError::from).and(Err(HttpError::NoClient));
        Box::pin(std::future::ready(answer))
    }
}

/// Refuses everything: the default of every scenario.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenyAll;

impl Egress for DenyAll {
    fn check(&self, destination: &Destination) -> Result<(), EgressDenied> {
        Err(EgressDenied {
            host: destination.host.clone(),
            port: destination.port,
            purpose: destination.purpose.clone(),
            reason: "egress is denied here".to_owned(),
        })
    }
}

/// One HTTP request of a script. Redirects are not followed here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// Where it goes; the same as [`HttpRequest::destination`].
    pub url: String,
    /// Headers, names in lower case; a name may come several times.
    pub headers: Vec<(String, String)>,
    /// The body; empty if there is none.
    pub body: Bytes,
    /// What egress is asked about.
    pub destination: Destination,
    /// Largest body of an answer.
    pub body_limit_bytes: usize,
}

/// The answer to an [`HttpRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpAnswer {
    /// Status.
    pub status: u16,
    /// Its text; may be empty.
    pub status_text: String,
    /// Headers, names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body, whole.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HttpError {
    /// The policy says no.
    #[error(transparent)]
    Denied(#[from] EgressDenied),
    /// Nothing in this world makes requests.
    #[error("there is nothing here that makes HTTP requests for scripts")]
    NoClient,
    /// The request cannot be sent as it is.
    #[error("the request cannot be sent: {message}")]
    Unsendable {
        /// Why.
        message: String,
    },
    /// No connection, or it broke off.
    #[error("{host}:{port} did not answer: {message}")]
    Unreachable {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What happened.
        message: String,
    },
    /// The answer's body is too long.
    #[error("the answer is longer than {limit_bytes} bytes")]
    BodyLimit {
        /// The limit.
        limit_bytes: usize,
    },
}

impl HttpError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(denied) => denied.code(),
            Self::NoClient => "FETCH_NO_CLIENT",
            Self::Unsendable { .. } => "FETCH_REQUEST",
            Self::Unreachable { .. } => "FETCH_UNREACHABLE",
            Self::BodyLimit { .. } => "FETCH_BODY_LIMIT",
        }
    }
}
