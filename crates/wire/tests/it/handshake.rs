//! The handshake and protocol revisions.

use greenroom_wire::{ClientHello, HandshakeError, ProtocolVersion, RequestOptions, client_handshake, negotiate, server_hello};
use serde_json::json;
use test_case::test_case;

use crate::support::{Bench, Notes, raw};

#[test_case("2025-03-26" => ProtocolVersion::V2025_03_26)]
#[test_case("2025-06-18" => ProtocolVersion::V2025_06_18)]
#[test_case("2025-11-25" => ProtocolVersion::V2025_11_25)]
#[test_case("2024-11-05" => ProtocolVersion::V2025_11_25; "too old")]
#[test_case("2099-01-01" => ProtocolVersion::V2025_11_25; "too new")]
fn a_server_answers_with(requested: &str) -> ProtocolVersion {
    negotiate(requested)
}

async fn shake(answer: &str) -> (Result<greenroom_wire::ServerHello, HandshakeError>, Bench, String) {
    let mut bench = Bench::new(Notes::new());
    let peer = bench.peer.clone();
    let shaking = tokio::spawn(async move {
        let info = json!({"name": "greenroom", "version": "0"});
        client_handshake(&peer, &info, &json!({}), ProtocolVersion::LATEST, RequestOptions::default()).await
    });
    let asked = bench.hear().await;
    bench.say(&format!(r#"{{"jsonrpc":"2.0","id":1,{answer}}}"#)).await;
    (shaking.await.unwrap(), bench, asked)
}

#[tokio::test]
async fn the_client_introduces_itself() {
    let answer = r#""result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","debug":true},"instructions":"be kind"}"#;
    let (hello, mut bench, asked) = shake(answer).await;
    let hello = hello.unwrap();
    assert_eq!(hello.version, ProtocolVersion::V2025_06_18);
    assert_eq!(hello.capabilities.get(), r#"{"tools":{}}"#);
    assert_eq!(hello.server_info.unwrap().get(), r#"{"name":"s","debug":true}"#);
    assert_eq!(hello.instructions.as_deref(), Some("be kind"));
    assert_eq!(
        asked,
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"greenroom","version":"0"}}}"#
    );
    assert_eq!(bench.hear().await, r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
}

#[test_case(r#""result":{"protocolVersion":"1999-01-01","capabilities":{}}"# => "HANDSHAKE_VERSION"; "foreign revision")]
#[test_case(r#""result":{"protocolVersion":"2025-11-25"}"# => "HANDSHAKE_MALFORMED"; "no capabilities")]
#[test_case(r#""error":{"code":-32602,"message":"no"}"# => "RPC_ERROR"; "refused")]
#[tokio::test]
async fn a_handshake_fails(answer: &str) -> &'static str {
    shake(answer).await.0.unwrap_err().code()
}

#[test]
fn the_server_reads_and_answers() {
    let params = raw(r#"{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c"},"x":1}"#);
    let hello = ClientHello::parse(Some(&params)).unwrap();
    assert_eq!((hello.requested_version.as_str(), hello.capabilities.get()), ("2025-06-18", r#"{"roots":{}}"#));
    assert_eq!(ClientHello::parse(None).unwrap_err().code(), "HANDSHAKE_MALFORMED");
    let version = negotiate(&hello.requested_version);
    let answer = server_hello(version, &json!({"name": "s"}), &json!({"tools": {}}), None).unwrap();
    let text = r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s"}}"#;
    assert_eq!(answer.get(), text);
}
