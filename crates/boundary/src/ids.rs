//! Names and ids as types, so that one cannot stand where another is meant.
//!
//! Invariant: comparison is byte-exact; no id is parsed for meaning; a copy shares its text. Deliberately no global registries.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! name {
    ($(#[$doc:meta])* $type:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $type(Arc<str>);

        impl $type {
            /// Wraps the name as it is.
            pub fn new(name: impl AsRef<str>) -> Self {
                Self(name.as_ref().into())
            }

            /// The name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl From<&str> for $type {
            fn from(name: &str) -> Self {
                Self(name.into())
            }
        }
    };
}

name!(
    /// A server as the config names it: external, built-in (`greenroom.meta`) or an agent.
    ServerName
);
name!(
    /// An agent's id in the config. Agents and servers share one name space (nanobot).
    AgentId
);
name!(
    /// An LLM connector: what `model: provider/model` or Yao's `connector` selects.
    ConnectorName
);
name!(
    /// A tool's name as its server spells it.
    ToolName
);
name!(
    /// The causal path of a caller, `t1/desk/billing#1`: identical calls from two delegates never swap in a replay.
    Scope
);

impl Scope {
    /// The path one level below, `parent/segment`.
    #[must_use]
    pub fn child(&self, segment: &str) -> Self {
        if self.0.is_empty() { Self(segment.into()) } else { Self(format!("{}/{segment}", self.0).into()) }
    }
}

/// A span of the trace: one exchange, turn or hook run. Counted from 1 within a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpanId(pub u64);
