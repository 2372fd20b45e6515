//! The grammar of hook declarations: `method[?param=value&…]` to `server/tool` or `!mutate:server/tool`.
//!
//! Invariant: what parses can match; a misspelt parameter is an error, not a hook that never runs. Deliberately no
//! regular expressions: `*` and `?` are enough to read at a glance.

use std::collections::BTreeMap;
use std::time::Duration;

use greenroom_boundary::trace::{HookMode, HookPhase};
use greenroom_harness::model::glob;

use super::binding::{HookBinding, HookForm, HookTarget, Matcher, Side};
use super::method;
use crate::config::parse_deadline;

/// Longest run of a hook that does not say otherwise.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// What every key may say.
const ANY: [&str; 4] = ["priority", "timeout", "failOpen", "mode"];
/// What else a key of messages may say.
const MESSAGE: [&str; 4] = ["name", "direction", "callOnError", "method"];

/// How a hook is asked, as the object form says it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookType {
    /// `{accept, mutated, message, reason}` in and out.
    #[default]
    Envelope,
    /// The value in, the new value out.
    Mutate,
    /// The value in, `{valid, reason?}` out.
    Validate,
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
    /// How it is asked.
    pub form: HookType,
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

/// A key among the hooks of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostHookKey {
    /// `session`.
    Session(HookKey),
    /// `request` or `response`: messages of outside clients.
    Message(HookKey),
}

/// A key among the hooks of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentHookKey {
    /// `config`, `request` or `response` of its turns.
    Turn(HookPhase, HookKey),
    /// Messages to the agent as a server.
    Message(HookKey),
}

/// A name as a key writes it: `%26` is the `&` that would end it, `%25` is `%`.
fn unescaped(name: &str) -> String {
    let mut parts = name.split("%25").map(|part| part.replace("%26", "&"));
    let first = parts.next().unwrap_or_default();
    parts.fold(first, |name, part| name + "%" + &part)
}

impl HookKey {
    /// Parses a key of messages. Without `direction` the hook looks at both sides.
    pub fn parse(text: &str) -> Result<Self, HookKeyError> {
        let (method, query) = split(text);
        if method.is_empty() {
            return Err(HookKeyError::NoMethod { text: text.to_owned() });
        }
        method::check(method)?;
        let mut key = Self::over(&[Side::Request, Side::Response]);
        key.matcher.method = (method != "*").then(|| method.to_owned());
        key.read(query, &[&MESSAGE[..], &ANY[..]].concat())?;
        if key.matcher.method.as_deref().is_some_and(method::is_notice) {
            match key.sides.as_slice() {
                [Side::Response] => return Err(HookKeyError::NoAnswer { method: method.to_owned() }),
                _ => key.sides = vec![Side::Request],
            }
        }
        Ok(key)
    }

    /// Parses a key of the host's own hooks: `session`, `request` or `response`.
    pub fn parse_host(text: &str) -> Result<HostHookKey, HookKeyError> {
        let (name, query) = split(text);
        let (side, more): (Side, &[&str]) = match name {
            "session" => (Side::Request, &[]),
            "request" => (Side::Request, &["name", "method"]),
            "response" => (Side::Response, &["name", "method", "callOnError"]),
            _ => return Err(HookKeyError::Host { name: name.to_owned() }),
        };
        let mut key = Self::over(&[side]);
        key.read(query, &[more, &ANY[..]].concat())?;
        Ok(if name == "session" { HostHookKey::Session(key) } else { HostHookKey::Message(key) })
    }

    /// Parses a key of an agent's hooks: `config`, `request`, `response` of its turns, or one of messages.
    pub fn parse_agent(text: &str) -> Result<AgentHookKey, HookKeyError> {
        let (name, query) = split(text);
        let (phase, side) = match name {
            "config" => (HookPhase::Config, Side::Request),
            "request" => (HookPhase::Request, Side::Request),
            "response" => (HookPhase::Response, Side::Response),
            _ => return Self::parse(text).map(AgentHookKey::Message),
        };
        let mut key = Self::over(&[side]);
        key.read(query, &ANY)?;
        Ok(AgentHookKey::Turn(phase, key))
    }

    fn over(sides: &[Side]) -> Self {
        Self {
            matcher: Matcher::default(),
            sides: sides.to_vec(),
            priority: 0,
            timeout: DEFAULT_TIMEOUT,
            fail_open: false,
            mode: HookMode::Enforce,
        }
    }

    fn read(&mut self, query: &str, known: &[&str]) -> Result<(), HookKeyError> {
        let mut seen = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (param, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&param) {
                return Err(HookKeyError::Param { param: param.to_owned(), known: known.join(", ") });
            }
            if seen.insert(param, value).is_some() {
                return Err(HookKeyError::Repeated { param: param.to_owned() });
            }
            self.set(param, value)?;
        }
        Ok(())
    }

    fn set(&mut self, param: &str, value: &str) -> Result<(), HookKeyError> {
        let wrong = || HookKeyError::Value { param: param.to_owned(), value: value.to_owned() };
        let flag = || value.parse::<bool>().map_err(|_| wrong());
        match param {
            "name" => self.matcher.name = Some(unescaped(value)),
            "method" => self.narrow(value)?,
            "direction" => {
                self.sides = match value {
                    "request" => vec![Side::Request],
                    "response" => vec![Side::Response],
                    _ => return Err(wrong()),
                }
            }
            "callOnError" => self.matcher.call_on_error = Some(flag()?),
            "priority" => self.priority = value.parse().map_err(|_| wrong())?,
            "timeout" => self.timeout = parse_deadline(value).map_err(|_| wrong())?,
            "failOpen" => self.fail_open = flag()?,
            _ => {
                self.mode = match value {
                    "enforce" => HookMode::Enforce,
                    "audit" => HookMode::Audit,
                    _ => return Err(wrong()),
                }
            }
        }
        Ok(())
    }

    /// `method=…` (nanobot: for keys that name none) must lie within what the key names.
    fn narrow(&mut self, method: &str) -> Result<(), HookKeyError> {
        method::check(method)?;
        match &self.matcher.method {
            Some(pattern) if !glob(pattern, method) => {
                Err(HookKeyError::Apart { key: pattern.clone(), method: method.to_owned() })
            }
            _ => {
                self.matcher.method = (method != "*").then(|| method.to_owned());
                Ok(())
            }
        }
    }

    /// The bindings of one target under this key, one per side.
    pub fn bindings(&self, target: &HookTarget, options: HookOptions, declared: u32) -> Vec<HookBinding> {
        let form = match options.form {
            HookType::Envelope => HookForm::Envelope { may_mutate: target.may_mutate },
            HookType::Mutate => HookForm::Mutate,
            HookType::Validate => HookForm::Validate,
        };
        self.sides
            .iter()
            .map(|side| HookBinding {
                id: target.to_string(),
                target: target.clone(),
                matcher: self.matcher.clone(),
                side: *side,
                form,
                mode: options.mode.unwrap_or(self.mode),
                priority: options.priority.unwrap_or(self.priority),
                declared,
                timeout: options.timeout.unwrap_or(self.timeout),
                fail_open: options.fail_open.unwrap_or(self.fail_open),
            })
            .collect()
    }
}

fn split(text: &str) -> (&str, &str) {
    text.split_once('?').unwrap_or((text, ""))
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
    /// A method that MCP does not have.
    #[error("no revision of MCP has a method {method:?}{hint}")]
    Method {
        /// The method.
        method: String,
        /// `; did you mean …?`, or empty.
        hint: String,
    },
    /// A method whose messages no hook sees.
    #[error("hooks do not see {method:?}: {reason}")]
    Fixed {
        /// The method.
        method: String,
        /// Why.
        reason: String,
    },
    /// The answer of a notification.
    #[error("{method:?} has no answer; write direction=request or leave it out")]
    NoAnswer {
        /// The method.
        method: String,
    },
    /// `method=` outside of what the key names.
    #[error("{key:?} never fits method={method:?}; write the method as the key")]
    Apart {
        /// What the key names.
        key: String,
        /// The parameter.
        method: String,
    },
    /// Not a hook of the host.
    #[error(
        "the host has the hooks `session`, `request` and `response`, not {name:?}; for one method write \
         `request?method=tools/call`"
    )]
    Host {
        /// The name.
        name: String,
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
    /// `!mutate:` on a hook that does nothing else.
    #[error("`!mutate:` forbids what `type: mutate` is for; leave one of them out at {text:?}")]
    Form {
        /// The target.
        text: String,
    },
}

impl HookKeyError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "HOOK_KEY"
    }
}
