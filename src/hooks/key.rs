//! The grammar of hook declarations: `method[?param=value&…]` to `server/tool` or `!mutate:server/tool`.
//!
//! Invariant: what parses can match; a misspelt parameter is an error, not a hook that never runs. Deliberately no
//! regular expressions: `*` and `?` are enough to read at a glance.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use greenroom_boundary::trace::HookMode;
use greenroom_boundary::{ServerName, ToolName};

use greenroom_harness::model::glob;

use crate::config::parse_duration;

/// Longest run of a hook that does not say otherwise.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// The methods whose messages pass through hooks.
const HOOKED: [&str; 9] = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "initialize",
    "notifications/initialized",
];

/// Side of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Side {
    /// Before it is sent.
    Request,
    /// After the answer came.
    Response,
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

/// What the object form of a hook says besides its target; it wins over the key's parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HookOptions {
    /// Lower runs earlier.
    pub priority: Option<i32>,
    /// Longest run.
    pub timeout: Option<Duration>,
    /// Let the message pass if it fails.
    pub fail_open: Option<bool>,
    /// Whether its word counts.
    pub mode: Option<HookMode>,
}

/// A parsed `method[?param=value&…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookKey {
    matcher: Matcher,
    sides: Vec<Side>,
    priority: i32,
    timeout: Duration,
    fail_open: bool,
    mode: HookMode,
}

impl HookKey {
    /// Parses a key. Without `direction` the hook looks at both sides.
    pub fn parse(text: &str) -> Result<Self, HookKeyError> {
        let (method, query) = text.split_once('?').unwrap_or((text, ""));
        if method.is_empty() {
            return Err(HookKeyError::NoMethod { text: text.to_owned() });
        }
        if !HOOKED.iter().any(|hooked| glob(method, hooked)) {
            return Err(HookKeyError::Method { method: method.to_owned() });
        }
        let mut key = Self {
            matcher: Matcher { method: (method != "*").then(|| method.to_owned()), name: None, call_on_error: None },
            sides: vec![Side::Request, Side::Response],
            priority: 0,
            timeout: DEFAULT_TIMEOUT,
            fail_open: false,
            mode: HookMode::Enforce,
        };
        let mut seen = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (param, value) = pair.split_once('=').unwrap_or((pair, ""));
            if seen.insert(param, value).is_some() {
                return Err(HookKeyError::Repeated { param: param.to_owned() });
            }
            key.set(param, value)?;
        }
        Ok(key)
    }

    fn set(&mut self, param: &str, value: &str) -> Result<(), HookKeyError> {
        let wrong = || HookKeyError::Value { param: param.to_owned(), value: value.to_owned() };
        let flag = || value.parse::<bool>().map_err(|_| wrong());
        match param {
            "name" => self.matcher.name = Some(value.to_owned()),
            "direction" => {
                self.sides = match value {
                    "request" => vec![Side::Request],
                    "response" => vec![Side::Response],
                    _ => return Err(wrong()),
                }
            }
            "callOnError" => self.matcher.call_on_error = Some(flag()?),
            "priority" => self.priority = value.parse().map_err(|_| wrong())?,
            "timeout" => self.timeout = parse_duration(value).map_err(|_| wrong())?,
            "failOpen" => self.fail_open = flag()?,
            "mode" => {
                self.mode = match value {
                    "enforce" => HookMode::Enforce,
                    "audit" => HookMode::Audit,
                    _ => return Err(wrong()),
                }
            }
            _ => {
                let known = ["name", "direction", "callOnError", "priority", "timeout", "failOpen", "mode"];
                return Err(HookKeyError::Param { param: param.to_owned(), known: known.join(", ") });
            }
        }
        Ok(())
    }

    /// The bindings of one target under this key, one per side.
    pub fn bindings(&self, target: &HookTarget, options: HookOptions, declared: u32) -> Vec<HookBinding> {
        self.sides
            .iter()
            .map(|side| HookBinding {
                id: target.to_string(),
                target: target.clone(),
                matcher: self.matcher.clone(),
                side: *side,
                form: HookForm::Envelope { may_mutate: target.may_mutate },
                mode: options.mode.unwrap_or(self.mode),
                priority: options.priority.unwrap_or(self.priority),
                declared,
                timeout: options.timeout.unwrap_or(self.timeout),
                fail_open: options.fail_open.unwrap_or(self.fail_open),
            })
            .collect()
    }
}

/// A hook declaration that does not parse.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HookKeyError {
    /// No method.
    #[error("{text:?} names no method; write `tools/call`, `tools/call?direction=request` or `*`")]
    NoMethod {
        /// The key.
        text: String,
    },
    /// A method whose messages no hook sees.
    #[error(
        "hooks do not see {method:?}; they see tools/call, prompts/get, resources/read, the lists and the handshake, or `*` for all of them"
    )]
    Method {
        /// The method.
        method: String,
    },
    /// An unknown parameter.
    #[error("unknown parameter {param:?}; known are {known}")]
    Param {
        /// The parameter.
        param: String,
        /// The known ones.
        known: String,
    },
    /// A parameter given twice.
    #[error("parameter {param:?} is given twice")]
    Repeated {
        /// The parameter.
        param: String,
    },
    /// A value that the parameter does not take.
    #[error("parameter {param} cannot be {value:?}")]
    Value {
        /// The parameter.
        param: String,
        /// The value.
        value: String,
    },
    /// Not a target.
    #[error("{text:?} is not a hook target; write `server/tool` or `!mutate:server/tool`")]
    Target {
        /// The text.
        text: String,
    },
}

impl HookKeyError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "HOOK_KEY"
    }
}
