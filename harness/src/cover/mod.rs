//! Hook-path coverage: which of the things that can happen to hooks a suite has seen happen.
//!
//! Invariant: what can happen is read from what hosts declare ([`DeclaredHook`]), what did happen from traces; neither
//! asks the other. Deliberately no running: the command runs scenarios and hands their traces over.

mod coverage;
mod html;
mod model;
mod observe;
mod report;
mod text;

pub use coverage::HookCoverage;
pub use html::render_html;
pub use model::{Cell, DeclaredHook, HookDepth, HookFormName, HookKindKey, HookOutcome};
pub use report::{CellRow, CellState, Count, EdgeRow, HookReport, HookRow, KindRow, ScenarioRow, Totals, UnreachableRow};
pub use text::render_text;
