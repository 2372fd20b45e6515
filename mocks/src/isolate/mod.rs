//! A script engine without scripts: native functions and scripted outcomes in place of hooks.
//!
//! Invariant: a call that nothing foresees is `HOOK_ENGINE` with what to do; every call is recorded with its outcome.
//! Deliberately no JavaScript: the code of a [`Script`](greenroom_boundary::isolate::Script) is never looked at.

mod call;
mod engine;
mod script;

pub use call::{MockCall, RecordedCall};
pub use engine::MockIsolate;
pub use script::{IsolateScript, IsolateStep, ScriptedThrow};

#[cfg(test)]
mod tests;
