//! The real search: an index in memory for knowledge bases and tables, a provider over HTTP for the web.
//!
//! Invariant: only what the config lists is searched, and the web only where egress allows it. An index follows its files:
//! it is made anew when one of them has changed. Deliberately no index on disk.

mod find;
mod index;
mod tables;
mod texts;
mod web;

pub use find::ConfiguredSearch;
pub use web::WebSetupError;
