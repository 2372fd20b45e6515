//! A refusal, or a hook that failed.
//!
//! Invariant: it names the hook and keeps a stable code; of several the first decides and the rest are attached.
//! Deliberately no way to match on its text.

use greenroom_boundary::trace::HookVerdict;

/// A refusal, or a hook that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HookFailure {
    /// `HOOK_REJECTED`, `HOOK_MALFORMED`, `HOOK_TIMEOUT`, or the code of what failed.
    pub code: String,
    /// Names the hook and says why.
    pub message: String,
    /// What other hooks of the chain said against the same message.
    pub others: Vec<HookFailure>,
}

impl HookFailure {
    /// One hook's failure.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into(), others: Vec::new() }
    }

    /// The first failure, with the rest attached.
    pub(super) fn first_of(failures: Vec<Self>) -> Option<Self> {
        let mut failures = failures.into_iter();
        let mut first = failures.next()?;
        first.others = failures.collect();
        Some(first)
    }

    /// All of it in one text, for those who take no list.
    pub fn whole(&self) -> String {
        let others = self.others.iter().map(|other| format!("; also: {}", other.message));
        std::iter::once(self.message.clone()).chain(others).collect()
    }

    /// What the trace calls it: a limit of the hook's time is a timeout, whoever set it.
    pub fn verdict(&self) -> HookVerdict {
        match self.code.as_str() {
            "HOOK_TIMEOUT" | "HOOK_WALL_LIMIT" | "HOOK_CPU_LIMIT" => HookVerdict::Timeout,
            _ => HookVerdict::Error,
        }
    }
}
