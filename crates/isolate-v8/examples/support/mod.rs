//! What the measuring programs share.
//!
//! Invariant: a map, no code. Deliberately no other engine.

mod world;

pub(crate) use world::{World, limits, raw, script};
