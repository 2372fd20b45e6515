//! Servers of the embedding program: registered with the host, reached like any other.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use greenroom::Host;
use greenroom::config::{Variables, load_text};
use greenroom::host::NativeFactory;
use greenroom::router::{CallContext, CallError, Output, Server, ServerRequest};
use greenroom_boundary::ServerName;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::trace::HookVerdict;
use serde_json::{Value, json};

use crate::support::{Set, Stage};

const CONFIG: &str = "
mcpServers:
  shop:
    command: never-started
    hooks: {tools/call?direction=request: guard/check}
    toolOverrides: {buy: {name: purchase}}
  guard: {command: never-started}
";

/// Counts its calls, and answers each with `answer`.
struct Counting {
    calls: Arc<AtomicUsize>,
    answer: Value,
}

#[async_trait]
impl Server for Counting {
    fn boundary(&self) -> String {
        "server.native".to_owned()
    }

    async fn request(&self, _: &CallContext, request: ServerRequest) -> Result<Output, CallError> {
        (request.sent)();
        self.calls.fetch_add(1, Ordering::SeqCst);
        let mut answer = self.answer.clone();
        answer["asked"] = request.params["name"].clone();
        Ok(answer.into())
    }
}

fn native(name: &str, answer: Value) -> ((ServerName, NativeFactory), Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let make = move || Arc::new(Counting { calls: counted.clone(), answer: answer.clone() }) as Arc<dyn Server>;
    ((ServerName::new(name), Arc::new(make)), calls)
}

/// The shop and its guard; the guard gives `verdict`. Beside the stage: calls of the shop, calls of the guard.
fn shop(verdict: Value) -> (Stage, Arc<AtomicUsize>, Arc<AtomicUsize>) {
    let (shop, bought) = native("shop", json!({"content": []}));
    let (guard, checked) = native("guard", json!({"content": [], "structuredContent": verdict}));
    let mut stage = Set::new("mcpServers: {}").build();
    let config = load_text("native.yaml", CONFIG, Path::new("."), &Variables::default()).unwrap_or_else(|e| panic!("{e}"));
    let drivers = stage.host.core().drivers.clone();
    stage.host = Host::start_with(config, drivers, HandOff::Strict, [shop, guard]);
    (stage, bought, checked)
}

#[test]
fn hooks_and_overrides_count_for_native_servers() {
    let (stage, bought, checked) = shop(json!({"accept": true}));
    let output = stage.call("shop", "purchase", json!({})).unwrap();
    assert_eq!(output.value["asked"], "buy");
    assert_eq!(stage.verdicts(), [("guard/check".to_owned(), HookVerdict::Unchanged)]);
    assert_eq!(stage.call("shop", "buy", json!({})).unwrap_err().code(), "CALL_UNKNOWN_TOOL");
    assert_eq!((bought.load(Ordering::SeqCst), checked.load(Ordering::SeqCst)), (1, 1));
}

#[test]
fn a_native_hook_may_refuse() {
    let (stage, bought, checked) = shop(json!({"accept": false, "reason": "no"}));
    assert_eq!(stage.call("shop", "purchase", json!({})).unwrap_err().code(), "HOOK_REJECTED");
    assert_eq!((bought.load(Ordering::SeqCst), checked.load(Ordering::SeqCst)), (0, 1));
}

#[test]
fn native_servers_stay_when_the_config_is_replaced() {
    let (stage, bought, checked) = shop(json!({"accept": true}));
    let config = load_text("native.yaml", "{}", Path::new("."), &Variables::default()).unwrap_or_else(|e| panic!("{e}"));
    let drivers = stage.host.core().drivers.clone();
    stage.run(async { stage.host.reload(config, drivers) });
    assert_eq!(stage.call("shop", "buy", json!({})).unwrap().value["asked"], "buy");
    assert_eq!((bought.load(Ordering::SeqCst), checked.load(Ordering::SeqCst)), (1, 0));
}
