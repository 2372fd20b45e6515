//! Hook paths: what hosts declare, what the commands `cover` and `hooks explain` say.

#![allow(clippy::unwrap_used, reason = "what a test prepares must hold")]

mod commands;
mod declared;
mod explained;
#[cfg(feature = "v8")]
mod scripts;
