//! What a child process inherits: next to nothing.
//!
//! Invariant: only the three variables below are ever passed on; everything else is named by the config.

use std::collections::BTreeMap;

/// Variables that a child needs to find programs and its user's files.
const INHERITED: [&str; 3] = ["PATH", "HOME", "USER"];

/// The few variables that children get besides what their config says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChildEnvironment(BTreeMap<String, String>);

impl ChildEnvironment {
    /// `PATH`, `HOME` and `USER` of this process.
    #[expect(clippy::disallowed_methods, reason = "this is where children's environment comes from")]
    pub fn of_this_process() -> Self {
        Self(INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect())
    }

    /// The search path for programs.
    pub fn path(&self) -> Option<&str> {
        self.0.get("PATH").map(String::as_str)
    }

    /// These variables, with `own` laid over them.
    pub fn with(&self, own: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = self.0.clone();
        all.extend(own.iter().map(|(name, value)| (name.clone(), value.clone())));
        all
    }
}
