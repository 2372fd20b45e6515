//! Behaviour of the V8 engine: the shared conformance suite, and what only V8 promises.

mod conformance;
mod coverage;
mod hostile;
mod leaks;
mod levels;
mod parallel;
mod scripts;
mod world;
