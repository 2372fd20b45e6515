//! What an agent may call: ordered rules, the last that matches decides.
//!
//! Invariant: a rule matches a tool by the name that is shown and by its name at the server, so no rename leads around it.
//! What no rule matches is allowed (nanobot). Deliberately nothing about outside clients and hooks: those are no agents.

use greenroom_boundary::{AgentId, ServerName};
use greenroom_harness::model::glob;
use serde_json::{Map, Value};

use crate::router::CallError;

/// The server that nanobot's short names are about.
const SYSTEM: &str = "nanobot.system";

/// nanobot's short names and the tools of `nanobot.system` that each stands for.
const SHORT: [(&str, &[&str]); 11] = [
    ("*", &["*"]),
    ("read", &["read"]),
    ("write", &["write", "edit"]),
    ("edit", &["edit"]),
    ("glob", &["glob"]),
    ("grep", &["grep"]),
    ("todoWrite", &["todoWrite"]),
    ("webFetch", &["webFetch"]),
    ("bash", &["bash"]),
    ("skills", &["listSkills", "getSkill"]),
    ("askUserQuestion", &["askUserQuestion"]),
];

/// A rule that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PermissionError {
    /// Neither `allow` nor `deny`.
    #[error("`{pattern}` must be `allow` or `deny`")]
    Verdict {
        /// The rule's pattern.
        pattern: String,
    },
    /// Neither a short name nor `server/tool`.
    #[error("`{pattern}` is no pattern: write `server/tool` (`*` stands for any text, `{pattern}/*` for a whole server), or one of {short}", short = short_names())]
    Pattern {
        /// What stands there.
        pattern: String,
    },
}

fn short_names() -> String {
    SHORT.map(|(name, _)| name).join(", ")
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// As it is written.
    written: String,
    server: String,
    names: Vec<String>,
    allows: bool,
}

/// The rules of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Permissions {
    agent: AgentId,
    rules: Vec<Rule>,
}

impl Permissions {
    /// Reads the rules of an agent, in the order in which they are written; none if there are none.
    pub fn parse(agent: AgentId, rules: &Map<String, Value>) -> Result<Option<Self>, PermissionError> {
        let read = |(pattern, verdict): (&String, &Value)| {
            let allows = match verdict.as_str() {
                Some("allow") => true,
                Some("deny") => false,
                _ => return Err(PermissionError::Verdict { pattern: pattern.clone() }),
            };
            let short = SHORT.iter().find(|(name, _)| name == pattern);
            let (server, names) = match (short, pattern.split_once('/')) {
                (Some((_, tools)), _) => (SYSTEM, tools.to_vec()),
                (None, Some((server, name))) if !server.is_empty() && !name.is_empty() => (server, vec![name]),
                _ => return Err(PermissionError::Pattern { pattern: pattern.clone() }),
            };
            let names = names.into_iter().map(str::to_owned).collect();
            Ok(Rule { written: pattern.clone(), server: server.to_owned(), names, allows })
        };
        let rules: Vec<Rule> = rules.iter().map(read).collect::<Result<_, _>>()?;
        Ok((!rules.is_empty()).then_some(Self { agent, rules }))
    }

    /// The servers that rules name without a wildcard.
    pub fn servers(&self) -> impl Iterator<Item = &str> {
        self.rules.iter().map(|rule| rule.server.as_str()).filter(|server| !server.contains('*'))
    }

    /// Whether the agent may use what a server calls by these names (shown, upstream); the error names the rule.
    pub fn check(&self, server: &ServerName, names: &[&str]) -> Result<(), CallError> {
        let matches = |rule: &&Rule| {
            glob(&rule.server, server.as_str()) && rule.names.iter().any(|pattern| names.iter().any(|name| glob(pattern, name)))
        };
        match self.rules.iter().rev().find(matches) {
            Some(rule) if !rule.allows => Err(CallError::Denied {
                agent: self.agent.to_string(),
                target: format!("{server}/{}", names.first().unwrap_or(&"")),
                rule: rule.written.clone(),
            }),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(rules: &str, server: &str, names: &[&str]) -> Option<String> {
        let rules = serde_json::from_str(rules).unwrap();
        let permissions = Permissions::parse(AgentId::new("desk"), &rules).unwrap()?;
        match permissions.check(&ServerName::new(server), names) {
            Err(CallError::Denied { rule, .. }) => Some(rule),
            Ok(()) => None,
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn the_last_rule_that_matches_decides() {
        let table: [(&str, &str, &[&str], Option<&str>); 12] = [
            ("{}", "bank", &["pay"], None),
            (r#"{"*": "deny"}"#, "bank", &["pay"], None),
            (r#"{"*": "deny"}"#, "nanobot.system", &["bash"], Some("*")),
            (r#"{"*": "deny", "bash": "allow"}"#, "nanobot.system", &["bash"], None),
            (r#"{"bash": "allow", "*": "deny"}"#, "nanobot.system", &["bash"], Some("*")),
            (r#"{"write": "deny"}"#, "nanobot.system", &["edit"], Some("write")),
            (r#"{"write": "deny"}"#, "other", &["write"], None),
            (r#"{"*/*": "deny"}"#, "bank", &["pay"], Some("*/*")),
            (r#"{"*/*": "deny", "bank/get_*": "allow"}"#, "bank", &["get_rate"], None),
            // A rename leads around no rule, and a rule for the new name counts.
            (r#"{"bank/pay": "deny"}"#, "bank", &["shown", "pay"], Some("bank/pay")),
            (r#"{"*/*": "deny", "bank/shown": "allow"}"#, "bank", &["shown", "pay"], None),
            (r#"{"notes/file:///etc/*": "deny"}"#, "notes", &["file:///etc/passwd"], Some("notes/file:///etc/*")),
        ];
        for (rules, server, names, wanted) in table {
            assert_eq!(denied(rules, server, names).as_deref(), wanted, "{rules} {server} {names:?}");
        }
    }

    #[test]
    fn what_is_no_rule_is_refused() {
        for rules in [r#"{"bank": "deny"}"#, r#"{"bank/": "deny"}"#, r#"{"bash": "maybe"}"#, r#"{"bash": true}"#] {
            assert!(Permissions::parse(AgentId::new("desk"), &serde_json::from_str(rules).unwrap()).is_err(), "{rules}");
        }
    }
}
