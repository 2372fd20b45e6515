//! Running one hook alone: its script, scripted peers, and everything that it did.
//!
//! Invariant: nothing outside the script is real: models, servers and agents are scripted or answer by default, the clock
//! is virtual, randomness is seeded; the same inputs give the same effects. Deliberately no turn around the hook: no model
//! is asked for it and what it returns is checked, not carried out.

mod defaults;
mod effects;
mod inputs;
mod run;
mod stage;
mod text;
mod watched;

pub use effects::{Effects, Failure, MemoryChange, Shown, Step};
pub use inputs::{CtxInput, HookName, Inputs, MessageInput, MocksInput, PayloadInput};
pub use run::{RunError, RunOptions, run};
pub use text::human;
