//! The cassette's format: what is read back is what was written, whatever happens to the file.

use std::path::Path;

use greenroom_boundary::Credentials;
use greenroom_boundary::mcp::Frame;
use greenroom_harness::cassette::identity::exchange_key;
use greenroom_harness::cassette::json::Node;
use greenroom_harness::cassette::line::{Chunk, Head, Line, Stim};
use greenroom_harness::cassette::{Cassette, CassetteError, RedactionKey, Redactor, Status, WriteError, Writer, body, chain};
use proptest::prelude::*;
use serde_json::json;
use test_case::test_case;

const SAMPLE: &[u8] = include_bytes!("cassette/v1.0.jsonl");

fn chained(objects: &[&str]) -> Vec<u8> {
    let mut h = chain::START.to_owned();
    let mut out = String::new();
    for object in objects {
        let (line, next) = chain::close_line(&h, object);
        out.push_str(&line);
        h = next;
    }
    out.into_bytes()
}

fn newlines(bytes: &[u8]) -> usize {
    bytes.split(|byte| *byte == b'\n').count() - 1
}

fn head(v: &str) -> Head {
    serde_json::from_value(json!({ "v": v, "canon": "jcs-1", "id": "cas_1", "started": "2026-08-12T14:03:07.120Z", "seed": 1 }))
        .unwrap()
}

/// The number of lines after the head, or why there is nothing.
fn read(bytes: &[u8]) -> Result<(usize, Status, usize), &'static str> {
    match Cassette::parse(bytes) {
        Ok(cassette) => {
            Ok((cassette.lines.len() + usize::from(cassette.seal.is_some()), cassette.status, cassette.quarantined_bytes))
        }
        Err(error) => Err(error.code()),
    }
}

#[test]
fn a_file_of_version_1_0_is_read() {
    let cassette = Cassette::parse(SAMPLE).unwrap();
    assert_eq!((cassette.status, cassette.lines.len(), cassette.quarantined_bytes), (Status::Complete, 14, 0));
    assert_eq!(cassette.head.seed, 4242);
    assert_eq!(cassette.started().map(|at| at.as_millis()), Some(1_786_543_387_120));
    // A blob stands where it was referred to.
    let Line::Open(open) = &cassette.lines[1] else { panic!("not an open") };
    assert!(open.body.get().contains("You are the shop desk. You are") && !open.body.get().contains("$blob"));
}

#[test]
fn a_cut_at_each_byte_leaves_exactly_the_complete_lines() {
    for cut in 0..SAMPLE.len() {
        let whole = newlines(&SAMPLE[..cut]);
        let torn = cut - SAMPLE[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        match read(&SAMPLE[..cut]) {
            // Head and blob are no events.
            Ok((lines, status, quarantined)) => {
                assert_eq!((lines, status, quarantined), (whole.saturating_sub(2), Status::Aborted, torn), "cut at {cut}");
            }
            Err(code) => assert_eq!((code, whole), ("CASSETTE_NO_HEAD", 0), "cut at {cut}"),
        }
    }
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    for at in 0..SAMPLE.len() {
        let mut bytes = SAMPLE.to_vec();
        bytes[at] ^= 1 << (at % 8);
        let line = newlines(&SAMPLE[..at]);
        match read(&bytes) {
            Ok((lines, status, _)) => assert_eq!((lines, status), (line.saturating_sub(2), Status::Aborted), "flip at {at}"),
            Err(code) => assert_eq!((code, line), ("CASSETTE_NO_HEAD", 0), "flip at {at}"),
        }
    }
}

#[test_case("2.0", &[] => Err("CASSETTE_TOO_NEW"); "a newer major is refused")]
#[test_case("0.9", &[] => Err("CASSETTE_TOO_NEW"); "another major is refused")]
#[test_case("1.7", &[] => Ok((2, Status::Aborted, 0)); "a newer minor is read, with its unknown lines")]
#[test_case("1.7", &["causal"] => Ok((2, Status::Aborted, 0)); "a known feature is read")]
#[test_case("1.7", &["wormholes"] => Err("CASSETTE_FEATURE"); "an unknown feature is refused")]
#[test_case("one", &[] => Err("CASSETTE_MALFORMED"); "a version must be a version")]
fn versions(v: &str, features: &[&str]) -> Result<(usize, Status, usize), &'static str> {
    let mut head = head(v);
    head.features = features.iter().map(|feature| (*feature).to_owned()).collect();
    let head = serde_json::to_string(&Line::Head(Box::new(head))).unwrap();
    read(&chained(&[
        &head,
        r#"{"t":"dream","seq":0}"#,
        r#"{"t":"stim","seq":1,"vt":0,"kind":"turn","scope":"t1","body":{},"mood":"new"}"#,
    ]))
}

#[test_case(&format!("{}1{}", "[".repeat(127), "]".repeat(127)) => Ok((1, Status::Aborted, 0)); "128 levels are read")]
#[test_case(&format!("{}1{}", "[".repeat(129), "]".repeat(129)) => Err("CASSETTE_LIMIT"); "deeper nesting is refused")]
#[test_case("\"[[[[\"" => Ok((1, Status::Aborted, 0)); "brackets in strings are no nesting")]
fn depth(body: &str) -> Result<(usize, Status, usize), &'static str> {
    let head = serde_json::to_string(&Line::Head(Box::new(head("1.0")))).unwrap();
    read(&chained(&[&head, &format!(r#"{{"t":"stim","seq":0,"vt":0,"kind":"turn","scope":"t1","body":{body}}}"#)]))
}

#[test_case(&[r#"{"t":"mark","seq":0}"#] => Err("CASSETTE_NO_HEAD"); "no head")]
#[test_case(&[] => Err("CASSETTE_NO_HEAD"); "nothing")]
fn heads(objects: &[&str]) -> Result<(usize, Status, usize), &'static str> {
    read(&chained(objects))
}

fn write(path: &Path, raws: &[String]) -> Writer {
    let mut writer = Writer::create(path).unwrap();
    writer.append(&Line::Head(Box::new(head("1.0")))).unwrap();
    for (seq, raw) in (0u64..).zip(raws) {
        writer.append(&Line::Chunk(Chunk { seq, vt: seq * 10, of: 0, i: seq, raw: raw.clone() })).unwrap();
    }
    writer
}

#[test]
fn a_killed_recorder_leaves_a_partial_that_loads_and_a_claim_that_can_be_taken() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("deep/er/s.cas");
    let writer = write(&path, &["one".to_owned(), "two".to_owned()]);
    assert!(matches!(Writer::create(&path), Err(WriteError::Claimed { pid, .. }) if pid == std::process::id().to_string()));
    assert_eq!(Cassette::load(&path).unwrap().lines.len(), 2, "the partial is loaded while nothing is sealed");
    drop(writer);
    // A claim of a dead process: the file is there, the lock is not.
    std::fs::write(folder.path().join("deep/er/s.cas.claim"), "1").unwrap();
    let writer = write(&path, &["three".to_owned()]);
    assert!(folder.path().join("deep/er/s.cas.partial.old").exists(), "the torn recording is kept");
    assert_eq!(writer.finish().unwrap(), path);
    let mut left: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["s.cas", "s.cas.partial.old"]);
    assert_eq!(Cassette::load(&path).unwrap().lines.len(), 1);
}

#[test]
fn an_event_beyond_the_limit_is_refused_and_the_chain_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.cas");
    let mut writer = write(&path, &["one".to_owned()]);
    let huge = Line::Chunk(Chunk { seq: 1, vt: 0, of: 0, i: 1, raw: "x".repeat(17 << 20) });
    assert!(matches!(writer.append(&huge), Err(WriteError::TooLong { .. })));
    writer
        .append(&Line::Stim(Stim { seq: 2, vt: 0, kind: "turn".into(), scope: "t1".into(), body: body::raw("{}".into()) }))
        .unwrap();
    assert_eq!(read(&writer.written().unwrap()), Ok((2, Status::Aborted, 0)));
    assert!(matches!(Cassette::load(&folder.path().join("absent.cas")), Err(CassetteError::Read { .. })));
}

#[test_case(r#"{"b":1.50,"a":"x","é":[1,{"z":0,"y":null}]}"#, &[] => r#"{"a":"x","b":1.50,"é":[1,{"y":null,"z":0}]}"#; "names are sorted and numbers keep their spelling")]
#[test_case(r#"{"id":7,"params":{"_meta":{"a":1},"x":1}}"#, &[&["id"], &["params", "_meta"]] => r#"{"params":{"x":1}}"#; "paths are left out")]
#[test_case(r#"{"a":"{\"y\":1, \"x\":2}"}"#, &[] => r#"{"a":{"$json":{"x":2,"y":1}}}"#; "json in a string is looked into")]
#[test_case(r#"{"a":"«people:99d31f629c5cf09c» and «x»"}"#, &[] => r#"{"a":"«people» and «x»"}"#; "digests of secrets do not count")]
#[test_case(r#"{"𐀀":1,"ﬀ":2}"#, &[] => r#"{"𐀀":1,"ﬀ":2}"#; "names are ordered by UTF-16 units")]
fn canonical(text: &str, skip: &[&[&str]]) -> String {
    Node::parse(text).unwrap().canonical(skip)
}

#[test]
fn a_key_ignores_what_names_an_exchange_and_nothing_else() {
    let key = |body: &str| exchange_key("mcp.shop", "tools/call", body);
    let one = key(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"refund","arguments":{"order":881}}}"#);
    assert_eq!(one.len(), 32);
    assert_eq!(
        one,
        key(
            r#"{"id":"x","params":{"arguments":{"order":881},"name":"refund","_meta":{"progressToken":1}},"method":"tools/call"}"#
        )
    );
    assert_ne!(
        one,
        key(r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"refund","arguments":{"order":881.0}}}"#)
    );
}

#[test_case(b"{\"jsonrpc\":\"2.0\",\"id\":1e0,\"x\":\"\\u00e9\"}"; "json stands as it is")]
#[test_case(b"{\n  \"id\": 1\n}"; "line breaks")]
#[test_case(b" {\"id\":1} "; "outer space")]
#[test_case(b"not json"; "no json")]
#[test_case(b"{\"$text\":\"trick\"}"; "what looks like a wrapper")]
#[test_case(b"\xff\x00"; "no text")]
#[test_case(b"{\"a\":\"\\ud800\"}"; "a lone surrogate")]
fn a_frame_survives_as_a_body(bytes: &[u8]) {
    let text = body::from_frame(&Frame(bytes.to_vec().into()));
    assert!(!text.contains('\n'));
    assert_eq!(body::to_frame(body::raw(text).get()).0, bytes);
}

fn redactor() -> Redactor {
    let credentials = Credentials::default();
    credentials.register("llm.main/apiKey", "sk-secret-1234567890");
    credentials.register("mcp.shop/password", "pa\"ss\\wörd");
    credentials.register("mcp.shop/pin", "4711");
    Redactor::new(credentials, RedactionKey::new("k"))
}

#[test]
fn secrets_are_replaced_wherever_they_stand() {
    let cases = [
        ("header", r#"{"headers":{"Authorization":"Bearer sk-secret-1234567890"}}"#),
        ("json in a string", r#"{"arguments":"{\"pw\":\"pa\\\"ss\\\\wörd\"}"}"#),
        ("a piece of json that holds no whole secret", r#"{"arguments":"{\"pw\":\"pa\\\"ss\\\\wö"}"#),
        ("a piece of json", r#"{"arguments":"\"pw\":\"pa\\\"ss\\\\wörd\"}"}"#),
        ("a name", r#"{"sk-secret-1234567890":1.50}"#),
        ("a number", r#"{"pin":4711,"order":47110}"#),
        (
            "ids of JSON-RPC are exempt",
            r#"{"jsonrpc":"2.0","id":"a-4711","params":{"_meta":{"progressToken":"4711"},"id":"4711"}}"#,
        ),
        ("bytes", r#"{"stdout_b64":"/3NrLXNlY3JldC0xMjM0NTY3ODkw"}"#),
    ];
    let lines = cases.map(|(name, text)| {
        let redacted = redactor().json(text);
        assert_eq!(redactor().json(&redacted), redacted, "redacting twice changes nothing");
        format!("{name}: {redacted}")
    });
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn equal_secrets_stay_equal_under_one_key_and_differ_under_another() {
    let with = |key: &str| {
        let credentials = Credentials::default();
        credentials.register("llm.main/apiKey", "sk-secret-1234567890");
        Redactor::new(credentials, RedactionKey::new(key)).text("sk-secret-1234567890")
    };
    assert_eq!(with("k"), with("k"));
    assert_ne!(with("k"), with("l"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_is_written_is_read_back_up_to_any_cut(raws in prop::collection::vec(".{0,40}", 0..6), cut in any::<prop::sample::Index>()) {
        let folder = tempfile::tempdir().unwrap();
        let bytes = write(&folder.path().join("s.cas"), &raws).written().unwrap();
        let cut = cut.index(bytes.len() + 1);
        let whole = newlines(&bytes[..cut]);
        match Cassette::parse(&bytes[..cut]) {
            Ok(cassette) => {
                let read: Vec<String> = cassette.lines.iter().map(|line| match line {
                    Line::Chunk(chunk) => chunk.raw.clone(),
                    _ => String::new(),
                }).collect();
                prop_assert_eq!(&read[..], &raws[..whole - 1]);
            }
            Err(_) => prop_assert_eq!(whole, 0),
        }
    }

    #[test]
    fn canonical_text_is_stable_and_order_free(value in json_value()) {
        let once = Node::parse(&value.to_string()).unwrap().canonical(&[]);
        prop_assert_eq!(Node::parse(&serde_json::to_string_pretty(&value).unwrap()).unwrap().canonical(&[]), once);
    }

    #[test]
    fn no_secret_survives_redaction(before in ".{0,12}", after in ".{0,12}", nested in any::<bool>()) {
        let inner = json!({ "x": format!("{before}sk-secret-1234567890{after}") });
        let text = if nested { json!({ "arguments": inner.to_string() }).to_string() } else { inner.to_string() };
        let redacted = redactor().json(&text);
        prop_assert!(!redacted.contains("sk-secret-1234567890"));
        prop_assert_eq!(redactor().json(&redacted), redacted);
    }

    #[test]
    fn the_reader_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Cassette::parse(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let _ = Node::parse(&text);
    }
}

fn json_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|b| json!(b)),
        any::<i64>().prop_map(|n| json!(n)),
        ".{0,8}".prop_map(|s| json!(s))
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map(".{0,6}", inner, 0..4).prop_map(|members| json!(members)),
        ]
    })
}
