//! Reports: pure functions from a suite's results to text.
//!
//! Invariant: the same results give the same text; what comes in is masked already. Deliberately no files here: the
//! caller writes the text where [`ReporterSpec::target`] says.

mod failure;
mod human;
mod json;
mod junit;
mod spec;
mod tap;

pub use failure::render_failure;
pub(crate) use failure::{seconds, shorten};
pub use human::HumanStyle;
pub use spec::{ReporterKind, ReporterSpec, ReporterSpecError};

use crate::run::SuiteResult;

/// Renders a suite's results.
pub fn render(kind: ReporterKind, suite: &SuiteResult, style: HumanStyle) -> String {
    match kind {
        ReporterKind::Human => human::render(suite, style),
        ReporterKind::Json => json::render(suite),
        ReporterKind::Junit => junit::render(suite),
        ReporterKind::Tap => tap::render(suite),
    }
}
