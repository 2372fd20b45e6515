//! The wire's behaviour, seen from outside.

#![expect(clippy::unwrap_used, reason = "a test says what it expects, and fails where it is wrong")]

mod envelope;
mod handshake;
mod http_client;
mod http_server;
mod peer_calls;
mod peer_order;
mod peer_requests;
mod splice;
mod sse;
mod stdio;
mod support;
