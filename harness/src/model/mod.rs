//! The scenario model: typed, with a published JSON Schema.

mod host_spec;
pub use host_spec::*;
