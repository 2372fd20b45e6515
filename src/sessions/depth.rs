//! How deep hosts that call each other may stand.
//!
//! Invariant: a host whose server is itself, over any number of others, comes to an end. Deliberately no trust in it: a
//! client that passes nothing on has depth 0, and the number of sessions is what limits it.

use greenroom_wire::RpcError;
use serde_json::{Value, json};

use super::RootSession;

/// Key in the `_meta` of `initialize`: how many hosts the session stands behind.
pub(crate) const DEPTH_KEY: &str = "greenroom/depth";

/// The deepest session that is served.
const MAX_DEPTH: u64 = 8;

/// Takes the depth of a client's session from the parameters of its `initialize`.
pub(crate) fn enter_depth(root: &RootSession, params: &Value) -> Result<(), RpcError> {
    let depth = match params.get("_meta").and_then(|meta| meta.get(DEPTH_KEY)) {
        None => 0,
        // What is no number of hosts is no way to start again at the beginning.
        Some(depth) => depth.as_u64().unwrap_or(u64::MAX),
    };
    if depth > MAX_DEPTH {
        let message = format!(
            "this session stands behind more than {MAX_DEPTH} hosts: a server of the config is this host itself, or leads \
             back to it; remove that server, or the hook or agent that calls it"
        );
        let data = json!({"code": "SESSION_DEPTH", "limit": MAX_DEPTH});
        return Err(RpcError::new(RpcError::INVALID_REQUEST, message).with_data(&data));
    }
    root.set_depth(depth);
    Ok(())
}
