//! What ran of hook scripts, by function, line and block, in the positions of their files.
//!
//! Invariant: the same runs give the same report, in whatever order they came. A line counts if there is code on it: what exists for the
//! type checker alone, comments and lone brackets do not. Deliberately no judgement of scenarios: whatever ran, ran.

mod html;
mod lcov;
mod report;
mod source;
mod text;

pub use html::render_html;
pub use lcov::render_lcov;
pub use report::{BlockRow, FileReport, FunctionRow, LineRow, ScriptReport, Share, Totals};
pub use text::render_text;
