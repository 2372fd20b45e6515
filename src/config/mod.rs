//! `greenroom.yaml`: nanobot's keys, checked before anything runs.
//!
//! Invariant: a config that loads is complete: every reference resolves, every placeholder is expanded or disables its
//! server with a reason. Deliberately no hot reload yet.

mod audit;
mod expand;
mod hooks;
mod load;
mod model;
mod names;
mod policy;
mod resolve;
mod search;
mod template;

/// Reads a duration as scenarios write it, `250ms`.
pub(crate) fn parse_duration(text: &str) -> Result<std::time::Duration, greenroom_mocks::duration::DurationError> {
    text.parse::<greenroom_harness::model::Duration>().map(greenroom_harness::model::Duration::to_std)
}

/// Reads how long something may take: more than nothing.
pub(crate) fn parse_deadline(text: &str) -> Result<std::time::Duration, String> {
    match parse_duration(text) {
        Ok(std::time::Duration::ZERO) => Err(format!("{text} is no time at all, so nothing would ever be in time; write more")),
        Ok(deadline) => Ok(deadline),
        Err(error) => Err(error.to_string()),
    }
}

pub use audit::{Weakness, weaknesses};
pub use expand::{ExpandError, Variables};
pub use hooks::{AgentHooks, AuditConfig, AuditTarget, HostHooks};
pub use load::{ConfigError, config_schema, load_file, load_text, load_value};
pub use model::*;
pub use policy::{DelegationPolicy, HostPolicy, QuestionPolicy, RetryPolicy};
pub use resolve::{
    AgentConfig, AgentSelection, HookDeclaration, HostConfig, InstructionSource, PublishTexts, ScriptConfig, ServerConfig,
    ServerKind,
};
pub use search::{SearchConfig, SearchSettings, TableSettings, WebConfig, WebSettings};
pub use template::{Template, TemplateError, TemplatePart};
