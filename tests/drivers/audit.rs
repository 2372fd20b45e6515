//! The audit sinks: the conformance suite's real arms and its simulated one, and what is each driver's own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom::drivers::audit::{FileAudit, HttpAudit};
use greenroom::drivers::{EgressPolicy, SystemClock};
use greenroom_boundary::audit::AuditError;
use greenroom_boundary::conformance::audit::{AuditStage, all};
use greenroom_boundary::{AuditSink, CancellationToken, RawJson};
use greenroom_mocks::audit::MemoryAudit;
use serde_json::{Value, json};
use test_case::test_case;
use wiremock::matchers::{header, method};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn raw(value: &Value) -> RawJson {
    serde_json::value::to_raw_value(value).unwrap()
}

struct File(tempfile::TempDir);

#[async_trait]
impl AuditStage for File {
    async fn sink(&self) -> Box<dyn AuditSink> {
        Box::new(FileAudit::new(self.0.path().join("audit.jsonl")))
    }

    async fn got(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.0.path().join("audit.jsonl")).unwrap_or_default();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    async fn lost(&self) -> Box<dyn AuditSink> {
        Box::new(FileAudit::new(self.0.path().join("no folder/audit.jsonl")))
    }
}

#[tokio::test]
async fn the_file_sink_conforms() {
    all(|| File(tempfile::tempdir().unwrap())).await;
}

#[derive(Default)]
struct Memory(MemoryAudit);

#[async_trait]
impl AuditStage for Memory {
    async fn sink(&self) -> Box<dyn AuditSink> {
        Box::new(self.0.clone())
    }

    async fn got(&self) -> Vec<Value> {
        self.0.records()
    }

    async fn lost(&self) -> Box<dyn AuditSink> {
        self.0.set_lost(true);
        Box::new(self.0.clone())
    }
}

#[tokio::test]
async fn the_simulated_sink_conforms() {
    all(Memory::default).await;
}

#[derive(Default)]
struct Http(tokio::sync::OnceCell<MockServer>);

impl Http {
    async fn server(&self) -> &MockServer {
        let start = || async {
            let server = MockServer::start().await;
            let mock = Mock::given(method("POST")).and(header("x-key", "k-1")).and(header("content-type", "application/json"));
            mock.respond_with(ResponseTemplate::new(204)).mount(&server).await;
            server
        };
        self.0.get_or_init(start).await
    }
}

fn http(url: &str, rules: &[&str]) -> HttpAudit {
    let headers = BTreeMap::from([("x-key".to_owned(), "k-1".to_owned())]);
    let egress = Arc::new(EgressPolicy::parse(rules.iter().copied()).unwrap());
    HttpAudit::new(url, &headers, egress, Arc::new(SystemClock::new())).unwrap()
}

#[async_trait]
impl AuditStage for Http {
    async fn sink(&self) -> Box<dyn AuditSink> {
        Box::new(http(&self.server().await.uri(), &["127.0.0.1"]))
    }

    async fn got(&self) -> Vec<Value> {
        let requests = self.server().await.received_requests().await.unwrap();
        requests.iter().flat_map(|request| request.body_json::<Vec<Value>>().unwrap()).collect()
    }

    async fn lost(&self) -> Box<dyn AuditSink> {
        Box::new(http("http://127.0.0.1:1/", &["127.0.0.1"]))
    }
}

#[tokio::test]
async fn the_http_sink_conforms() {
    all(Http::default).await;
}

#[test_case(429, Some("7"), true, Some(7); "too many requests")]
#[test_case(503, None, true, None; "away")]
#[test_case(503, Some("tomorrow"), true, None; "a date is not understood")]
#[test_case(400, None, false, None; "refused")]
#[test_case(302, None, false, None; "a redirect is not followed")]
#[tokio::test]
async fn the_status_decides(status: u16, retry_after: Option<&str>, may_retry: bool, seconds: Option<u64>) {
    let server = MockServer::start().await;
    let mut answer = ResponseTemplate::new(status).insert_header("location", "http://127.0.0.1:1/");
    if let Some(text) = retry_after {
        answer = answer.insert_header("retry-after", text);
    }
    Mock::given(method("POST")).respond_with(answer).mount(&server).await;
    let sink = http(&server.uri(), &["127.0.0.1"]);
    match sink.deliver(&[raw(&json!({}))], &CancellationToken::new()).await.unwrap_err() {
        AuditError::Unavailable { retry_after, .. } => {
            assert_eq!((may_retry, retry_after), (true, seconds.map(Duration::from_secs)));
        }
        error => assert!(!may_retry && error.code() == "AUDIT_REFUSED", "{error}"),
    }
}

#[tokio::test]
async fn egress_is_asked_first() {
    let server = MockServer::start().await;
    let error = http(&server.uri(), &[]).deliver(&[raw(&json!({}))], &CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.code(), "AUDIT_REFUSED");
    assert!(server.received_requests().await.unwrap().is_empty());
}
