//! What stands under `script:` of a driver, by boundary.
//!
//! Invariant: the types are the mocks' own, so that a scenario says exactly what a mock can do.

pub use greenroom_mocks::cli::CliScript;
pub use greenroom_mocks::client::ClientScript;
pub use greenroom_mocks::egress::EgressScript;
pub use greenroom_mocks::isolate::IsolateScript;
pub use greenroom_mocks::llm::LlmScript;
pub use greenroom_mocks::mcp::McpScript;
pub use greenroom_mocks::search::SearchScript;
