//! What a request must be before its body counts.
//!
//! Invariant: every refusal has its status and a JSON-RPC error body. Deliberately no state in here.

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::http::{EVENT_STREAM, JSON, VERSION_HEADER};
use crate::{ProtocolVersion, RequestId, RpcError, error_frame};

/// A response that refuses, boxed to keep results small.
pub(super) struct Refused(pub(super) Box<Response>);

/// A response of `status` with a body of `content_type`.
pub(super) fn respond(status: StatusCode, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, axum::http::HeaderValue::from_static(content_type));
    response
}

/// A refusal with a JSON-RPC error in its body.
pub(super) fn refuse(status: StatusCode, error: &RpcError) -> Refused {
    refuse_request(status, None, error)
}

/// The same as the answer of a request, if it is known which.
pub(super) fn refuse_request(status: StatusCode, id: Option<&RequestId>, error: &RpcError) -> Refused {
    Refused(Box::new(respond(status, JSON, Body::from(error_frame(id, error).0))))
}

fn transport(status: StatusCode, message: &str) -> Refused {
    refuse(status, &RpcError::new(RpcError::TRANSPORT, message))
}

pub(super) fn bad_request(message: &str) -> Refused {
    transport(StatusCode::BAD_REQUEST, message)
}

pub(super) fn unknown_session() -> Refused {
    transport(StatusCode::NOT_FOUND, "no such session; it may have ended: initialize again without a session id")
}

/// The text of a header; empty if it is missing or not plain text.
pub(super) fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Refuses pages of other sites (DNS rebinding included): an origin is on this machine or in the list.
pub(super) fn origin(headers: &HeaderMap, allowed: &[String]) -> Result<(), Refused> {
    let Some(origin) = headers.get(ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    if is_loopback(origin) || allowed.iter().any(|known| known.eq_ignore_ascii_case(origin)) {
        return Ok(());
    }
    Err(transport(StatusCode::FORBIDDEN, "this origin may not call; add it to the allowed origins"))
}

fn is_loopback(origin: &str) -> bool {
    let Some(authority) = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://")) else { return false };
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => rest.split_once(']').unwrap_or((rest, "?")),
        None => authority.find(':').map_or((authority, ""), |at| authority.split_at(at)),
    };
    let port_is_fine = port.is_empty() || port.strip_prefix(':').is_some_and(|port| port.parse::<u16>().is_ok());
    port_is_fine && matches!(host, "localhost" | "127.0.0.1" | "::1")
}

/// An absent revision header is fine: older clients send none.
pub(super) fn version(headers: &HeaderMap) -> Result<(), Refused> {
    match headers.get(VERSION_HEADER) {
        None => Ok(()),
        Some(value) => {
            let text = value.to_str().unwrap_or_default();
            text.parse::<ProtocolVersion>().map(drop).map_err(|error| bad_request(&error.to_string()))
        }
    }
}

/// `Accept` must name all of `needed`; a missing header accepts everything.
pub(super) fn accepts(headers: &HeaderMap, needed: &[&str]) -> Result<(), Refused> {
    let ranges: Vec<String> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(|range| range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
        .collect();
    let accepted = |kind: &str| {
        let group = format!("{}/*", kind.split('/').next().unwrap_or_default());
        ranges.iter().any(|range| range == "*/*" || *range == group || range == kind)
    };
    if ranges.is_empty() || needed.iter().all(|kind| accepted(kind)) {
        return Ok(());
    }
    Err(transport(StatusCode::NOT_ACCEPTABLE, &format!("the Accept header must allow {}", needed.join(" and "))))
}

/// A POST's own headers.
pub(super) fn post(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = header(headers, CONTENT_TYPE.as_str());
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case(JSON) {
        return Err(transport(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the Content-Type must be application/json"));
    }
    accepts(headers, &[JSON, EVENT_STREAM])
}

/// A GET's own headers.
pub(super) fn get(headers: &HeaderMap) -> Result<(), Refused> {
    accepts(headers, &[EVENT_STREAM])
}
