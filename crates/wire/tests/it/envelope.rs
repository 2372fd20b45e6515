//! Which frames are which messages.

use greenroom_wire::{Message, RequestId, RpcError, error_frame, notification_frame, request_frame, response_frame};
use test_case::test_case;

use crate::support::{frame, raw};

fn shape(text: &str) -> String {
    let raw = |raw: &Option<greenroom_wire::RawJson>| raw.as_ref().map_or("-".to_owned(), |raw| raw.get().to_owned());
    match Message::parse(&frame(text)) {
        Ok(Message::Request { id, method, params }) => format!("request {id} {method} {}", raw(&params)),
        Ok(Message::Notification { method, params }) => format!("notification {method} {}", raw(&params)),
        Ok(Message::Response { id, result }) => {
            let id = id.map_or("-".to_owned(), |id| id.to_json());
            match result {
                Ok(result) => format!("result {id} {}", result.get()),
                Err(error) => format!("error {id} {} {} {}", error.code, error.message, raw(&error.data)),
            }
        }
        Err(error) => format!("{} {}", error.code(), error.to_rpc().code),
    }
}

#[test_case(r#"{"jsonrpc":"2.0","id":1,"method":"a"}"# => "request 1 a -"; "number id")]
#[test_case(r#"{"jsonrpc":"2.0","id":"1","method":"a"}"# => r#"request "1" a -"#; "text id")]
#[test_case(r#"{"jsonrpc":"2.0","id":0,"method":"a","params":{"n":1.0e2,"z":9007199254740993}}"# => r#"request 0 a {"n":1.0e2,"z":9007199254740993}"#; "number spellings stay")]
#[test_case(r#" {"params" : null , "method":"a\n", "jsonrpc":"2.0","x":{"x":1}} "# => "notification a\n null"; "unknown members and spaces")]
#[test_case(r#"{"jsonrpc":"2.0","\u0069d":3,"method":"a"}"# => "request 3 a -"; "escaped key")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":{"a":1}}"# => r#"result 1 {"a":1}"#; "result")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":null}"# => "result 1 null"; "null result")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":{},"error":null}"# => "result 1 {}"; "null error beside a result")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":-1,"message":"m","data":[1.50]}}"# => "error 1 -1 m [1.50]"; "null result beside an error")]
#[test_case(r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"m"}}"# => "error - -32700 m -"; "error without id")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"error":"odd"}"# => r#"error 1 -32603 the peer answered with an error that has no code and message "odd""#; "error of no form")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":"\ud800"}"# => r#"result 1 "\ud800""#; "lone surrogate")]
#[test_case(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"# => "WIRE_BAD_ID -32600"; "null id")]
#[test_case(r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"# => "WIRE_BAD_ID -32600"; "fraction")]
#[test_case(r#"{"jsonrpc":"2.0","id":1.0,"method":"a"}"# => "WIRE_BAD_ID -32600"; "whole fraction")]
#[test_case(r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"a"}"# => "WIRE_BAD_ID -32600"; "id out of range")]
#[test_case(r#"{"jsonrpc":"2.0","id":[1],"method":"a"}"# => "WIRE_BAD_ID -32600"; "id of another type")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"a"}"# => "WIRE_DUPLICATE_KEY -32600"; "id twice")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"method":"a","x":1,"x":1}"# => "WIRE_DUPLICATE_KEY -32600"; "unknown key twice")]
#[test_case(r#"{"id":1,"method":"a"}"# => "WIRE_VERSION -32600"; "no version")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"method":7}"# => "WIRE_BAD_METHOD -32600"; "method no string")]
#[test_case(r#"{"jsonrpc":"2.0","id":1}"# => "WIRE_SHAPELESS -32600"; "nothing said")]
#[test_case(r#"{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}"# => "WIRE_BAD_RESPONSE -32600"; "result and error")]
#[test_case(r#"{"jsonrpc":"2.0","result":1}"# => "WIRE_BAD_RESPONSE -32600"; "result without id")]
#[test_case(r#"[{"jsonrpc":"2.0","method":"a"}]"# => "WIRE_BATCH -32600"; "batch")]
#[test_case("7" => "WIRE_NOT_AN_OBJECT -32600"; "number alone")]
#[test_case("Server listening on stdio" => "WIRE_JSON -32700"; "banner")]
#[test_case(r#"{"jsonrpc":"2.0""# => "WIRE_JSON -32700"; "cut")]
#[test_case(r#"{"jsonrpc":"2.0","method":"a"} {}"# => "WIRE_JSON -32700"; "two in one")]
fn frames_are_read(text: &str) -> String {
    shape(text)
}

#[test]
fn invalid_utf8_is_no_message() {
    let frame = greenroom_wire::Frame(b"{\"jsonrpc\":\"2.0\",\"method\":\"\xff\"}".as_slice().into());
    assert_eq!(Message::parse(&frame).unwrap_err().code(), "WIRE_JSON");
}

#[test]
fn deep_nesting_is_carried_without_looking_inside() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#);
    assert_eq!(shape(&text), format!("result 1 {deep}"));
}

#[test]
fn new_frames_have_fixed_text() {
    let params = raw(r#"{"a": 1.0}"#);
    let frames = [
        request_frame(&RequestId::Number(7), "tools/call", Some(&params)),
        request_frame(&RequestId::from("q\"1"), "ping", None),
        notification_frame("notifications/x", Some(&params)),
        response_frame(&RequestId::from("q"), &params),
        error_frame(Some(&RequestId::Number(-1)), &RpcError::new(-5, "no \"x\"").with_data(&[1, 2])),
        error_frame(None, &RpcError::new(RpcError::PARSE, "bad")),
    ];
    let text = frames.iter().map(|frame| frame.to_text()).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(text, @r#"
    {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a": 1.0}}
    {"jsonrpc":"2.0","id":"q\"1","method":"ping"}
    {"jsonrpc":"2.0","method":"notifications/x","params":{"a": 1.0}}
    {"jsonrpc":"2.0","id":"q","result":{"a": 1.0}}
    {"jsonrpc":"2.0","id":-1,"error":{"code":-5,"message":"no \"x\"","data":[1,2]}}
    {"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad"}}
    "#);
}

/// Servers of other hosts write more than JSON-RPC knows; whoever passes the error on keeps it.
#[test]
fn an_error_keeps_its_unknown_members() {
    let text = r#"{"code":-32042,"message":"no","data":{"n":1.00},"cause":{"big":9007199254740993},"_meta":{"x/y":1}}"#;
    let error = RpcError::from_raw(&raw(text));
    assert_eq!(serde_json::to_string(&error).unwrap(), text);
    let value = serde_json::to_value(&error).unwrap();
    assert_eq!(value["cause"]["big"].to_string(), "9007199254740993");
    let back: RpcError = serde_json::from_value(value).unwrap();
    assert_eq!(back.code, -32042);
    assert!(serde_json::to_string(&back).unwrap().contains(r#""_meta":{"x/y":1}"#));
}

#[test]
fn an_error_whose_code_occurs_twice_is_not_read_either_way() {
    let error = RpcError::from_raw(&raw(r#"{"code":1,"code":2,"message":"no"}"#));
    assert_eq!(error.code, RpcError::INTERNAL);
}
