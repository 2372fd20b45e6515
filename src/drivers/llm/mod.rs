//! Real models: providers over HTTP.
//!
//! Invariant: egress is asked before each connection, redirects are not followed, and no key reaches an error or a debug
//! print. Deliberately no retries, no deadlines and no history: those are the host's.

mod chat_request;
mod chat_stream;
mod endpoint;
mod openai;
mod providers;
mod setup;

pub use endpoint::LlmWorld;
pub use openai::{OpenAiChat, OpenAiOptions};
pub use providers::{LlmProviders, ProviderSettings};
pub use setup::LlmSetupError;
pub(crate) use setup::names_a_secret;
