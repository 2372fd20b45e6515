//! Hooks and the audit stream in a config: from keys and lists to bindings.
//!
//! Invariant: hooks of the host, of agents and of servers take the same list form with the same options. Deliberately no
//! matching here: a binding says what it looks at.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use greenroom_boundary::ServerName;
use greenroom_boundary::trace::{HookMode, HookPhase};
use greenroom_harness::model::HookModeSpec;
use serde_json::{Map, Value};

use super::resolve::Resolver;
use super::{Audit, ConfigError, HookDeclaration, HookList, HookObject, HookTypeSpec, parse_deadline, parse_duration};
use crate::hooks::{
    AgentHookKey, HookBinding, HookKey, HookKeyError, HookOptions, HookTarget, HookType, HostHookKey, in_order,
};

/// An agent's own hooks, each list in running order.
#[derive(Clone, Debug, Default)]
pub struct AgentHooks {
    /// When its config is made for a turn.
    pub config: Vec<HookBinding>,
    /// Before the model is asked.
    pub request: Vec<HookBinding>,
    /// After the model answered.
    pub response: Vec<HookBinding>,
}

impl AgentHooks {
    /// Those of a phase of a turn.
    pub fn of(&self, phase: HookPhase) -> &[HookBinding] {
        match phase {
            HookPhase::Config => &self.config,
            HookPhase::Request => &self.request,
            HookPhase::Response => &self.response,
            HookPhase::Session | HookPhase::Create | HookPhase::Next => &[],
        }
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &HookBinding> {
        self.config.iter().chain(&self.request).chain(&self.response)
    }
}

/// The hooks of the host itself.
#[derive(Clone, Debug, Default)]
pub struct HostHooks {
    /// When a client's session begins, in running order.
    pub session: Vec<HookBinding>,
    /// On messages of outside clients, as declared.
    pub messages: Vec<HookBinding>,
}

/// Where the audit stream goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuditTarget {
    /// One JSON record a line.
    File(PathBuf),
    /// JSON arrays by POST.
    Http {
        /// The address.
        url: String,
        /// Further headers.
        headers: BTreeMap<String, String>,
    },
}

/// The audit stream, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditConfig {
    /// Where it goes.
    pub target: AuditTarget,
    /// Most records that are sent at once.
    pub batch: usize,
    /// Longest wait of a record for others.
    pub flush: Duration,
    /// Most records that wait.
    pub buffer: usize,
    /// Whether records hold bodies.
    pub bodies: bool,
    /// Repetitions of a delivery that failed.
    pub max_retries: u32,
    /// Pause before the first repetition.
    pub backoff: Duration,
}

impl Resolver<'_> {
    /// Hooks on the messages of a server.
    pub(super) fn message_hooks(&self, server: &str, hooks: &Map<String, Value>) -> Result<Vec<HookDeclaration>, ConfigError> {
        let mut declared = Declared::default();
        for (key, value) in hooks {
            let at = format!("mcpServers.{server}.hooks.{key}");
            let key = HookKey::parse(key).map_err(|error| self.invalid(&at, error.to_string()))?;
            self.bind(&at, &key, value, &mut declared)?;
        }
        Ok(declared.on(server))
    }

    /// Hooks of an agent: of its turns, and on messages to it.
    pub(super) fn agent_hooks(
        &self,
        agent: &str,
        hooks: &Map<String, Value>,
    ) -> Result<(AgentHooks, Vec<HookDeclaration>), ConfigError> {
        let mut messages = Declared::default();
        let mut turns: BTreeMap<HookPhase, Declared> = BTreeMap::new();
        for (key, value) in hooks {
            let at = format!("agents.{agent}.hooks.{key}");
            match HookKey::parse_agent(key).map_err(|error| self.invalid(&at, agents_own(key, &error)))? {
                AgentHookKey::Turn(phase, key) => self.bind(&at, &key, value, turns.entry(phase).or_default())?,
                AgentHookKey::Message(key) => self.bind(&at, &key, value, &mut messages)?,
            }
        }
        let mut of = |phase| in_order(turns.remove(&phase).unwrap_or_default().0);
        let own =
            AgentHooks { config: of(HookPhase::Config), request: of(HookPhase::Request), response: of(HookPhase::Response) };
        Ok((own, messages.on(agent)))
    }

    /// Hooks of the host.
    pub(super) fn host_hooks(&self, hooks: &Map<String, Value>) -> Result<HostHooks, ConfigError> {
        let (mut session, mut messages) = (Declared::default(), Declared::default());
        for (key, value) in hooks {
            let at = format!("hooks.{key}");
            match HookKey::parse_host(key).map_err(|error| self.invalid(&at, error.to_string()))? {
                HostHookKey::Session(key) => self.bind(&at, &key, value, &mut session)?,
                HostHookKey::Message(key) => self.bind(&at, &key, value, &mut messages)?,
            }
        }
        Ok(HostHooks { session: in_order(session.0), messages: messages.0 })
    }

    fn bind(&self, at: &str, key: &HookKey, value: &Value, declared: &mut Declared) -> Result<(), ConfigError> {
        for object in self.hook_list(at, value)? {
            let target = HookTarget::parse(&object.target).map_err(|error| self.invalid(at, error.to_string()))?;
            let options = self.hook_options(at, &object)?;
            if options.form == HookType::Mutate && !target.may_mutate {
                return Err(self.invalid(at, HookKeyError::Form { text: object.target }.to_string()));
            }
            let place = u32::try_from(declared.0.len()).unwrap_or(u32::MAX);
            declared.0.extend(key.bindings(&target, options, place));
        }
        Ok(())
    }

    /// The entries of a hook list; an entry that does not fit is told by itself, not as "no variant fits".
    fn hook_list(&self, at: &str, value: &Value) -> Result<Vec<HookObject>, ConfigError> {
        let entries = match value {
            Value::Array(entries) => entries.as_slice(),
            Value::String(_) | Value::Object(_) => std::slice::from_ref(value),
            _ => return Err(self.invalid(at, "give it `server/tool`, an object with `target`, or a list of them")),
        };
        for (place, entry) in entries.iter().enumerate() {
            let at = if value.is_array() { format!("{at}[{place}]") } else { at.to_owned() };
            match entry {
                Value::String(_) => {}
                Value::Object(_) => {
                    serde_json::from_value::<HookObject>(entry.clone())
                        .map_err(|error| self.invalid(&at, error.to_string()))?;
                }
                _ => return Err(self.invalid(&at, "give it `server/tool` or an object with `target`")),
            }
        }
        let list: HookList = serde_json::from_value(value.clone()).map_err(|error| self.invalid(at, error.to_string()))?;
        Ok(list.objects())
    }

    fn hook_options(&self, at: &str, object: &HookObject) -> Result<HookOptions, ConfigError> {
        let timeout = object
            .timeout
            .as_deref()
            .map(|text| parse_deadline(text).map_err(|error| self.invalid(&format!("{at}.timeout"), error)))
            .transpose()?;
        let mode = object.mode.map(|mode| match mode {
            HookModeSpec::Enforce => HookMode::Enforce,
            HookModeSpec::Audit => HookMode::Audit,
        });
        let form = match object.kind {
            None | Some(HookTypeSpec::Envelope) => HookType::Envelope,
            Some(HookTypeSpec::Mutate) => HookType::Mutate,
            Some(HookTypeSpec::Validate) => HookType::Validate,
        };
        Ok(HookOptions { priority: object.priority, timeout, fail_open: object.fail_open, mode, form })
    }

    fn duration(&self, at: &str, text: &str) -> Result<Duration, ConfigError> {
        parse_duration(text).map_err(|error| self.invalid(at, error.to_string()))
    }

    /// The audit stream.
    pub(super) fn audit(&mut self, audit: &Audit) -> Result<AuditConfig, ConfigError> {
        let target = match (&audit.file, &audit.url) {
            (Some(file), None) if !audit.headers.is_empty() => {
                return Err(self.invalid("audit.headers", format!("{file:?} is a file: headers go with `url`")));
            }
            (Some(file), None) => {
                let path = self.variables.expand(file).map_err(|error| self.invalid("audit.file", error.to_string()))?;
                AuditTarget::File(self.base.join(path))
            }
            (None, Some(url)) => {
                let url = self.variables.expand(url).map_err(|error| self.invalid("audit.url", error.to_string()))?;
                let mut headers = BTreeMap::new();
                for (name, value) in &audit.headers {
                    let at = format!("audit.headers.{name}");
                    let value = self.variables.expand(value).map_err(|error| self.invalid(&at, error.to_string()))?;
                    self.secrets.insert(format!("audit/{name}"), value.clone());
                    headers.insert(name.clone(), value);
                }
                AuditTarget::Http { url, headers }
            }
            _ => return Err(self.invalid("audit", "give it exactly one of `file` and `url`")),
        };
        let count = |key: &str, given: Option<u32>, default: usize| match given {
            Some(0) => Err(self.invalid(&format!("audit.{key}"), "it must be at least 1")),
            Some(count) => Ok(count as usize),
            None => Ok(default),
        };
        let duration = |key: &str, given: Option<&String>, default: u64| match given {
            Some(text) => self.duration(&format!("audit.{key}"), text),
            None => Ok(Duration::from_secs(default)),
        };
        let retry = audit.retry.clone().unwrap_or_default();
        Ok(AuditConfig {
            target,
            batch: count("batch", audit.batch, 1000)?,
            flush: duration("flush", audit.flush.as_ref(), 5)?,
            buffer: count("buffer", audit.buffer, 10_000)?,
            bodies: audit.bodies.unwrap_or(true),
            max_retries: retry.max.unwrap_or(5),
            backoff: duration("retry.backoff", retry.backoff.as_ref(), 1)?,
        })
    }
}

/// Bindings in the order of their declaration.
#[derive(Default)]
struct Declared(Vec<HookBinding>);

impl Declared {
    fn on(self, server: &str) -> Vec<HookDeclaration> {
        self.0.into_iter().map(|binding| HookDeclaration { server: ServerName::new(server), binding }).collect()
    }
}

/// A word that is no key may be meant for a turn.
fn agents_own(key: &str, error: &HookKeyError) -> String {
    match error {
        HookKeyError::Method { .. } if !key.contains('/') => {
            format!("an agent has the hooks `config`, `request` and `response`, and those on messages; {error}")
        }
        _ => error.to_string(),
    }
}
