//! A hook, ready to run: what is called, for which messages, how it is asked.
//!
//! Invariant: everything that decides a hook's place in a chain is in its binding. Deliberately no parsing of keys.

use std::fmt;
use std::time::Duration;

use greenroom_boundary::trace::{HookMode, HookPhase};
use greenroom_boundary::{ServerName, ToolName};
use greenroom_harness::model::glob;

use super::key::HookKeyError;
use super::method;

/// Side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before it is sent.
    Request,
    /// After the answer came.
    Response,
}

impl Side {
    /// What the trace calls it.
    pub fn phase(self) -> HookPhase {
        match self {
            Self::Request => HookPhase::Request,
            Self::Response => HookPhase::Response,
        }
    }
}

/// How a hook is asked and how its answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookForm {
    /// nanobot's: `{accept, mutated, message, reason}` in and out.
    Envelope {
        /// Without `!mutate:`.
        may_mutate: bool,
    },
    /// The message in, the new message out.
    Mutate,
    /// The message in, `{valid, reason?}` out.
    Validate,
}

impl HookForm {
    /// Whether it runs among the mutators, before all validators.
    pub fn is_mutator(self) -> bool {
        matches!(self, Self::Mutate | Self::Envelope { may_mutate: true })
    }
}

/// A hook's `server/tool`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookTarget {
    /// The server.
    pub server: ServerName,
    /// Its tool.
    pub tool: ToolName,
    /// Without `!mutate:`.
    pub may_mutate: bool,
}

impl HookTarget {
    /// Parses `server/tool` or `!mutate:server/tool`.
    pub fn parse(text: &str) -> Result<Self, HookKeyError> {
        let (reference, may_mutate) = match text.strip_prefix("!mutate:") {
            Some(reference) => (reference, false),
            None => (text, true),
        };
        match reference.split_once('/') {
            Some((server, tool)) if !server.is_empty() && !tool.is_empty() && !server.starts_with('!') => {
                Ok(Self { server: ServerName::new(server), tool: ToolName::new(tool), may_mutate })
            }
            _ => Err(HookKeyError::Target { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for HookTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.server, self.tool)
    }
}

/// Which messages a hook looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matcher {
    /// The method, with `*` for any text; `None` is every method.
    pub method: Option<String>,
    /// Tool or prompt name, or resource URI, with `*` for any text and `?` for any character.
    pub name: Option<String>,
    /// On the response side: only answers with (`true`) or without (`false`) an error.
    pub call_on_error: Option<bool>,
}

impl Matcher {
    /// Whether it looks at a message of this method and name.
    pub fn matches(&self, method: &str, name: &str) -> bool {
        self.fits(method, name) && !method::is_fixed(method)
    }

    /// The same for a method whose messages hooks may see.
    pub(super) fn fits(&self, method: &str, name: &str) -> bool {
        let fits = |wanted: &Option<String>, text: &str| wanted.as_deref().is_none_or(|pattern| glob(pattern, text));
        fits(&self.method, method) && fits(&self.name, name)
    }
}

/// A hook, ready to be put into a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookBinding {
    /// Its name in the trace.
    pub id: String,
    /// What is called.
    pub target: HookTarget,
    /// Which messages it looks at.
    pub matcher: Matcher,
    /// Side of the exchange.
    pub side: Side,
    /// How it is asked.
    pub form: HookForm,
    /// Whether its word counts.
    pub mode: HookMode,
    /// Lower runs earlier.
    pub priority: i32,
    /// Position of its declaration; breaks ties.
    pub declared: u32,
    /// Longest run.
    pub timeout: Duration,
    /// Let the message pass if it fails.
    pub fail_open: bool,
}
