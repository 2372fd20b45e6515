//! The virtual clock: time that stands still while anything runs and jumps when nothing can.
//!
//! Invariant: between two firings the woken task runs until the whole runtime is idle, so the order in which timers of
//! one instant act is decided here (by creation, or by a seed) and never by threads. Deliberately no real waiting: with
//! no timer and no hold the idle hook is called, as nothing will ever happen again.

mod heap;
mod sleep;

pub use heap::VirtualClock;
