//! The methods of MCP, over all revisions, and what hooks may do with their messages.
//!
//! Invariant: a key that parses names at least one message that this host passes through hooks. Deliberately no types of
//! parameters: a message is checked where it is used.

use greenroom_harness::model::glob;

use super::key::HookKeyError;

/// What hooks may do with the messages of a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A request: both sides.
    Exchange,
    /// A notification: there is no answer.
    Notice,
    /// Nothing, and why.
    Fixed(&'static str),
}

const UNSENT: &str = "this host does not exchange it yet";

/// 2024-11-05 to 2026-07-28.
const METHODS: [(&str, Kind); 36] = [
    ("initialize", Kind::Exchange),
    ("ping", Kind::Fixed("it carries nothing, and each connection answers it itself")),
    ("tools/list", Kind::Exchange),
    ("tools/call", Kind::Exchange),
    ("prompts/list", Kind::Exchange),
    ("prompts/get", Kind::Exchange),
    ("resources/list", Kind::Exchange),
    ("resources/templates/list", Kind::Exchange),
    ("resources/read", Kind::Exchange),
    ("resources/subscribe", Kind::Exchange),
    ("resources/unsubscribe", Kind::Exchange),
    ("completion/complete", Kind::Exchange),
    ("logging/setLevel", Kind::Exchange),
    ("sampling/createMessage", Kind::Exchange),
    ("elicitation/create", Kind::Exchange),
    ("roots/list", Kind::Exchange),
    ("server/discover", Kind::Fixed(UNSENT)),
    ("subscriptions/listen", Kind::Fixed(UNSENT)),
    ("tasks/get", Kind::Fixed(UNSENT)),
    ("tasks/result", Kind::Fixed(UNSENT)),
    ("tasks/list", Kind::Fixed(UNSENT)),
    ("tasks/cancel", Kind::Fixed(UNSENT)),
    ("tasks/update", Kind::Fixed(UNSENT)),
    ("notifications/initialized", Kind::Fixed("it only ends the handshake: hook `initialize`")),
    ("notifications/cancelled", Kind::Fixed("a cancellation must reach the far end as it is")),
    ("notifications/progress", Kind::Fixed("the host renumbers progress for each caller: hook the answer of the call")),
    ("notifications/message", Kind::Notice),
    ("notifications/resources/updated", Kind::Notice),
    ("notifications/resources/list_changed", Kind::Notice),
    ("notifications/prompts/list_changed", Kind::Notice),
    ("notifications/tools/list_changed", Kind::Notice),
    ("notifications/roots/list_changed", Kind::Notice),
    ("notifications/elicitation/complete", Kind::Notice),
    ("notifications/tasks/status", Kind::Fixed(UNSENT)),
    ("notifications/tasks", Kind::Fixed(UNSENT)),
    ("notifications/subscriptions/acknowledged", Kind::Fixed(UNSENT)),
];

/// Whether hooks never see the messages of a method, whatever a pattern says.
pub(super) fn is_fixed(method: &str) -> bool {
    METHODS.iter().any(|(name, kind)| *name == method && matches!(kind, Kind::Fixed(_)))
}

/// Whether a method has no answer to look at.
pub(super) fn is_notice(method: &str) -> bool {
    method.starts_with("notifications/")
}

/// Refuses a method, or pattern of methods, whose messages no hook ever sees.
pub(super) fn check(pattern: &str) -> Result<(), HookKeyError> {
    let fitting: Vec<&Kind> = METHODS.iter().filter(|(name, _)| glob(pattern, name)).map(|(_, kind)| kind).collect();
    match fitting.iter().find(|kind| !matches!(kind, Kind::Fixed(_))).or(fitting.first()) {
        Some(Kind::Exchange | Kind::Notice) => Ok(()),
        Some(Kind::Fixed(reason)) => Err(HookKeyError::Fixed { method: pattern.to_owned(), reason: (*reason).to_owned() }),
        None => {
            let open = METHODS.iter().filter(|(_, kind)| !matches!(kind, Kind::Fixed(_))).map(|(name, _)| *name);
            let nearest = greenroom_harness::load::nearest(pattern, open);
            let hint = nearest.map(|name| format!("; did you mean {name:?}?")).unwrap_or_default();
            Err(HookKeyError::Method { method: pattern.to_owned(), hint })
        }
    }
}
