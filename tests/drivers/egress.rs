//! The egress policy: what rules allow, and what only a rule that names it allows; the requests of scripts that go out through it.

use std::sync::Arc;

use greenroom::drivers::{EgressPolicy, EgressRule, HttpEgress, SystemClock};
use greenroom_boundary::Egress;
use greenroom_boundary::conformance;
use greenroom_boundary::egress::{Destination, HttpRequest};
use greenroom_mocks::VirtualClock;
use greenroom_mocks::egress::ScriptedEgress;
use serde_json::json;
use test_case::test_case;
use wiremock::matchers::{body_string, headers, method, path};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn to(host: &str, port: u16) -> Destination {
    Destination { host: host.to_owned(), port, purpose: "llm.main".to_owned() }
}

#[test]
fn the_policy_refuses_as_a_driver_should() {
    conformance::egress::all(&EgressPolicy::parse(["*"]).unwrap(), &to("127.0.0.1", 8080));
    conformance::egress::all(&EgressPolicy::default(), &to("api.example.com", 443));
}

#[test]
fn what_makes_requests_refuses_as_a_driver_should() {
    conformance::egress::all(&over_http(&["*"]), &to("127.0.0.1", 8080));
    let clock = Arc::new(VirtualClock::new(greenroom_boundary::clock::UnixNanos(0), 0));
    let script = serde_json::from_value(json!([{ "when": { "url": "https://api.example.com/" } }])).unwrap();
    conformance::egress::all(&ScriptedEgress::new(script, clock), &to("other.example.com", 443));
}

fn over_http(rules: &[&str]) -> HttpEgress {
    HttpEgress::new(EgressPolicy::parse(rules.iter().copied()).unwrap(), Arc::new(SystemClock::new())).unwrap()
}

fn get(server: &MockServer, at: &str) -> HttpRequest {
    HttpRequest {
        method: "GET".to_owned(),
        url: format!("{}{at}", server.uri()),
        headers: vec![("x-two".to_owned(), "a".to_owned()), ("x-two".to_owned(), "b".to_owned())],
        body: "hello".into(),
        destination: to("127.0.0.1", server.address().port()),
        body_limit_bytes: 1_000,
    }
}

#[tokio::test]
async fn an_exchange_is_whole_and_follows_nothing() {
    let server = MockServer::start().await;
    let asked = Mock::given(method("GET")).and(path("/a")).and(headers("x-two", vec!["a", "b"])).and(body_string("hello"));
    let answer = ResponseTemplate::new(302)
        .insert_header("location", "/b")
        .append_header("set-cookie", "a=1")
        .append_header("set-cookie", "b=2");
    asked.respond_with(answer.set_body_bytes([0, 255])).expect(1).mount(&server).await;
    let answer = over_http(&["127.0.0.1"]).fetch(get(&server, "/a")).await.unwrap();
    let cookies: Vec<&str> =
        answer.headers.iter().filter(|(name, _)| name == "set-cookie").map(|(_, value)| value.as_str()).collect();
    assert_eq!(
        (answer.status, answer.status_text.as_str(), &*answer.body, cookies),
        (302, "Found", &[0, 255][..], vec!["a=1", "b=2"])
    );
}

#[tokio::test]
async fn a_request_that_fails_says_how() {
    let server = MockServer::start().await;
    Mock::given(path("/long")).respond_with(ResponseTemplate::new(200).set_body_bytes(vec![0; 1_001])).mount(&server).await;
    let egress = over_http(&["127.0.0.1"]);
    let code = async |request| egress.fetch(request).await.map_err(|error| error.code());
    assert_eq!(code(get(&server, "/long")).await, Err("FETCH_BODY_LIMIT"));
    assert_eq!(code(HttpRequest { method: "a b".to_owned(), ..get(&server, "/") }).await, Err("FETCH_REQUEST"));
    // Nobody listens on the port of a service that has died out.
    let nobody = HttpRequest { url: "http://127.0.0.1:1/".to_owned(), destination: to("127.0.0.1", 1), ..get(&server, "/") };
    assert_eq!(code(nobody).await, Err("FETCH_UNREACHABLE"));
    assert_eq!(server.received_requests().await.map(|all| all.len()), Some(1));
}

#[tokio::test]
async fn a_refused_request_reaches_nobody() {
    let server = MockServer::start().await;
    let answer = over_http(&["*"]).fetch(get(&server, "/")).await;
    assert_eq!(answer.map_err(|error| error.code()), Err("EGRESS_DENIED"));
    assert_eq!(server.received_requests().await.map(|all| all.len()), Some(0));
}

#[test_case(&["api.example.com"], "api.example.com", 443; "a name on any port")]
#[test_case(&["API.Example.com."], "api.example.com", 443; "a name in any spelling")]
#[test_case(&["x.example", "api.example.com:443"], "api.example.com", 443; "a name and its port")]
#[test_case(&["*.example.com"], "eu.api.example.com", 443; "below a name")]
#[test_case(&["*"], "api.example.com", 443; "every public name")]
#[test_case(&["*"], "93.184.215.14", 443; "every public address")]
#[test_case(&["*"], "2606:2800:21f::1", 443; "every public v6 address")]
#[test_case(&["localhost"], "localhost", 8080; "loopback by name")]
#[test_case(&["127.0.0.1:8080"], "127.0.0.1", 8080; "loopback by address")]
#[test_case(&["[::1]:8080"], "::1", 8080; "v6 loopback with port")]
#[test_case(&["::1"], "[::1]", 8080; "v6 loopback without port")]
#[test_case(&["127.0.0.1"], "::ffff:127.0.0.1", 8080; "v4 loopback in v6 spelling")]
fn allowed(rules: &[&str], host: &str, port: u16) {
    EgressPolicy::parse(rules.iter().copied()).unwrap().check(&to(host, port)).unwrap();
}

#[test_case(&[], "api.example.com"; "no rule")]
#[test_case(&["api.example.com:80"], "api.example.com"; "another port")]
#[test_case(&["example.com"], "api.example.com"; "below a plain name")]
#[test_case(&["*.example.com"], "example.com"; "the name itself")]
#[test_case(&["*.example.com"], "badexample.com"; "a name with the same end")]
#[test_case(&["*"], "localhost"; "loopback by name")]
#[test_case(&["*"], "printer"; "a bare name")]
#[test_case(&["*"], "metadata.google.internal"; "cloud metadata by name")]
#[test_case(&["*.internal"], "metadata.google.internal"; "no wildcard reaches local names")]
#[test_case(&["*"], "127.9.9.9"; "loopback")]
#[test_case(&["*"], "10.0.0.1"; "private 10")]
#[test_case(&["*"], "172.31.0.1"; "private 172")]
#[test_case(&["*"], "192.168.1.1"; "private 192")]
#[test_case(&["*"], "169.254.169.254"; "cloud metadata")]
#[test_case(&["*"], "100.64.0.1"; "carrier grade nat")]
#[test_case(&["*"], "0.0.0.0"; "unspecified")]
#[test_case(&["*"], "::1"; "v6 loopback")]
#[test_case(&["*"], "fd00::1"; "v6 private")]
#[test_case(&["*"], "fe80::1"; "v6 link local")]
#[test_case(&["*"], "::ffff:10.0.0.1"; "v4 in v6")]
#[test_case(&["*"], "64:ff9b::a00:1"; "v4 behind nat64")]
#[test_case(&["*"], "2002:7f00:1::"; "v4 in 6to4")]
#[test_case(&["*"], "0x7f000001"; "hexadecimal")]
#[test_case(&["*"], "2130706433"; "decimal")]
#[test_case(&["*"], "127.1"; "short form")]
fn refused(rules: &[&str], host: &str) {
    let denied = EgressPolicy::parse(rules.iter().copied()).unwrap().check(&to(host, 443)).unwrap_err();
    assert_eq!(denied.code(), "EGRESS_DENIED");
}

#[test]
fn a_refusal_names_the_rule_that_would_allow_it() {
    let policy = EgressPolicy::default();
    for host in ["api.example.com", "10.0.0.1", "::1"] {
        let reason = policy.check(&to(host, 443)).unwrap_err().reason;
        let rule = reason.split('`').nth(1).unwrap();
        EgressPolicy::parse([rule]).unwrap().check(&to(host, 443)).unwrap();
    }
}

#[test_case("https://api.example.com"; "an address of a page")]
#[test_case("api.example.com:port"; "a port that is no number")]
#[test_case("api.example.com:70000"; "a port that is too large")]
#[test_case("*.*.com"; "a star inside")]
#[test_case("api..com"; "an empty label")]
#[test_case("[::1]x"; "something after brackets")]
#[test_case(""; "nothing")]
fn no_rule(text: &str) {
    let error = text.parse::<EgressRule>().unwrap_err();
    assert_eq!(error.code(), "EGRESS_RULE");
    assert!(error.to_string().contains("write `api.example.com`"));
}
