//! Reading scenario files: strict YAML or JSON, checked against the published schema, expanded into cases.
//!
//! Invariant: whatever is wrong with a file is said with its line and column, in at most twelve lines; what loads is
//! complete. The steps: text → tree with places ([`Span`]) → matrix and references → schema → types → cross-checks.
//!
//! Deliberately no running, and no reading of the files that a scenario refers to.

mod check;
mod cross;
mod diagnostic;
mod discover;
mod expand;
mod json;
mod node;
mod read;
mod typed;
mod yaml;

pub use diagnostic::{Diagnostic, LoadError, MOST_LINES};
pub use discover::{discover, load_suite};
pub use greenroom_mocks::pattern::nearest;
pub use node::Span;
pub use read::{LoadOptions, ScenarioCase, load_file, load_scenario, load_scenario_with};
pub use typed::typed;
