//! Loading of scenarios: messages, shapes, matrix, twins, discovery, filters, the published schema.

#![expect(clippy::unwrap_used, reason = "a test says what it expects, and fails where it is wrong")]

mod bad;
mod discover;
mod filter;
mod good;
mod schema;
mod twin;
