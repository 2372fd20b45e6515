//! New frames.
//!
//! Invariant: member order is fixed (`jsonrpc`, `id`, `method`, `params` | `result` | `error`), and raw parts go in as they
//! are. Deliberately no check of what goes in.

use greenroom_boundary::mcp::Frame;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::{RequestId, RpcError};

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn with_params(mut text: String, params: Option<&RawValue>) -> Frame {
    if let Some(params) = params {
        text.push_str(",\"params\":");
        text.push_str(params.get());
    }
    text.push('}');
    Frame::from(text)
}

/// A request.
pub fn request_frame(id: &RequestId, method: &str, params: Option<&RawValue>) -> Frame {
    with_params(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":{}", quoted(method)), params)
}

/// A notification.
pub fn notification_frame(method: &str, params: Option<&RawValue>) -> Frame {
    with_params(format!("{{\"jsonrpc\":\"2.0\",\"method\":{}", quoted(method)), params)
}

/// A successful answer.
pub fn response_frame(id: &RequestId, result: &RawValue) -> Frame {
    Frame::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{}}}", result.get()))
}

/// An error answer; `None` when the request's id is not known.
pub fn error_frame(id: Option<&RequestId>, error: &RpcError) -> Frame {
    let id = id.map_or_else(|| "null".to_owned(), RequestId::to_json);
    let data = error.data.as_ref().map_or_else(String::new, |data| format!(",\"data\":{}", data.get()));
    let (code, message) = (error.code, quoted(&error.message));
    Frame::from(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":{code},\"message\":{message}{data}}}}}"))
}
