//! The handshake of the revisions up to 2025-11-25.
//!
//! Invariant: everything that the other side said stays available as it was written. Deliberately apart from [`Peer`]: a
//! revision without handshake is another module beside this one.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::version::UnsupportedVersion;
use crate::{McpError, Peer, ProtocolVersion, RawJson, RequestError, RequestOptions};

/// What a server said of itself.
#[derive(Clone, Debug)]
pub struct ServerHello {
    /// The whole result of `initialize`, as written.
    pub raw: RawJson,
    /// The revision that is spoken from now on.
    pub version: ProtocolVersion,
    /// `capabilities`, as written.
    pub capabilities: RawJson,
    /// `serverInfo`, as written.
    pub server_info: Option<RawJson>,
    /// `instructions`.
    pub instructions: Option<String>,
}

/// What a client said of itself.
#[derive(Clone, Debug)]
pub struct ClientHello {
    /// The revision it asked for, perhaps one that is not spoken here.
    pub requested_version: String,
    /// `capabilities`, as written.
    pub capabilities: RawJson,
    /// `clientInfo`, as written.
    pub client_info: Option<RawJson>,
}

/// Why the handshake failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum HandshakeError {
    /// The request itself failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The server speaks none of our revisions.
    #[error(transparent)]
    Version(#[from] UnsupportedVersion),
    /// What came is not what a handshake says.
    #[error("the handshake is not usable: {message}")]
    Malformed {
        /// What is wrong.
        message: String,
    },
    /// The connection did not take `notifications/initialized`.
    #[error(transparent)]
    Lost(McpError),
}

impl HandshakeError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Request(error) => error.code(),
            Self::Version(_) => "HANDSHAKE_VERSION",
            Self::Malformed { .. } => "HANDSHAKE_MALFORMED",
            Self::Lost(error) => error.code(),
        }
    }
}

fn malformed(error: &serde_json::Error) -> HandshakeError {
    HandshakeError::Malformed { message: error.to_string() }
}

/// Introduces a client: `initialize`, then `notifications/initialized`.
pub async fn client_handshake(
    peer: &Peer,
    client_info: &impl Serialize,
    capabilities: &impl Serialize,
    version: ProtocolVersion,
    options: RequestOptions,
) -> Result<ServerHello, HandshakeError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Params<'a, C, I> {
        protocol_version: &'a str,
        capabilities: &'a C,
        client_info: &'a I,
    }
    let params = Params { protocol_version: version.as_str(), capabilities, client_info };
    let params = serde_json::value::to_raw_value(&params).map_err(|error| malformed(&error))?;
    let raw = peer.request("initialize", Some(params), options).await?;
    let hello = ServerHello::parse(raw)?;
    peer.notify("notifications/initialized", None).await.map_err(HandshakeError::Lost)?;
    Ok(hello)
}

impl ServerHello {
    /// Reads the result of `initialize`.
    pub fn parse(raw: RawJson) -> Result<Self, HandshakeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello {
            protocol_version: String,
            capabilities: RawJson,
            #[serde(default)]
            server_info: Option<RawJson>,
            #[serde(default)]
            instructions: Option<String>,
        }
        let hello: Hello = serde_json::from_str(raw.get()).map_err(|error| malformed(&error))?;
        let Hello { protocol_version, capabilities, server_info, instructions } = hello;
        Ok(Self { version: protocol_version.parse()?, raw, capabilities, server_info, instructions })
    }
}

impl ClientHello {
    /// Reads the params of `initialize`.
    pub fn parse(params: Option<&RawValue>) -> Result<Self, HandshakeError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Hello {
            protocol_version: String,
            capabilities: RawJson,
            #[serde(default)]
            client_info: Option<RawJson>,
        }
        let params = params.map_or("null", RawValue::get);
        let hello: Hello = serde_json::from_str(params).map_err(|error| malformed(&error))?;
        let Hello { protocol_version: requested_version, capabilities, client_info } = hello;
        Ok(Self { requested_version, capabilities, client_info })
    }
}

/// The result of `initialize` that a server gives.
pub fn server_hello(
    version: ProtocolVersion,
    server_info: &impl Serialize,
    capabilities: &impl Serialize,
    instructions: Option<&str>,
) -> Result<RawJson, HandshakeError> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Hello<'a, C, I> {
        protocol_version: &'a str,
        capabilities: &'a C,
        server_info: &'a I,
        #[serde(skip_serializing_if = "Option::is_none")]
        instructions: Option<&'a str>,
    }
    let hello = Hello { protocol_version: version.as_str(), capabilities, server_info, instructions };
    serde_json::value::to_raw_value(&hello).map_err(|error| malformed(&error))
}
