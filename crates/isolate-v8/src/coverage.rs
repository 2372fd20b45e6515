//! Counting which code of scripts runs: V8's precise coverage, asked for over its inspector.
//!
//! Invariant: counts are taken on the isolate's thread after each call, before the host hears of its end, and go to the script of that
//! call alone. An engine that counts keeps no context in which a script ran ahead, so that each run is some call's.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};

use greenroom_boundary::coverage::{CountedRange, FunctionPlace, ScriptCoverage};
use greenroom_boundary::isolate::Script;
use serde::Deserialize;
use v8::inspector::{Channel, ChannelImpl, StringBuffer, StringView, V8Inspector, V8InspectorClient};
use v8::inspector::{V8InspectorClientImpl, V8InspectorClientTrustLevel, V8InspectorSession};

/// The one group of contexts.
const GROUP: i32 = 1;

/// What all isolates of an engine counted.
pub(crate) type Counted = Mutex<ScriptCoverage>;

/// Counts in one isolate; dropped before it.
pub(crate) struct Counting {
    session: V8InspectorSession,
    _inspector: V8Inspector,
    answers: Rc<RefCell<Vec<String>>>,
    next_id: Cell<u32>,
}

struct Answers(Rc<RefCell<Vec<String>>>);

impl ChannelImpl for Answers {
    fn send_response(&self, _call_id: i32, message: v8::UniquePtr<StringBuffer>) {
        if let Some(message) = message.as_ref() {
            self.0.borrow_mut().push(message.string().to_string());
        }
    }

    fn send_notification(&self, _message: v8::UniquePtr<StringBuffer>) {}

    fn flush_protocol_notifications(&self) {}
}

struct Nobody;

impl V8InspectorClientImpl for Nobody {}

#[derive(Deserialize)]
struct Answer {
    result: Taken,
}

#[derive(Deserialize)]
struct Taken {
    #[serde(default)]
    result: Vec<TakenScript>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TakenScript {
    script_id: String,
    url: String,
    functions: Vec<TakenFunction>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TakenFunction {
    function_name: String,
    ranges: Vec<TakenRange>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TakenRange {
    start_offset: u32,
    end_offset: u32,
    count: u64,
}

impl Counting {
    /// Starts counting.
    pub(crate) fn start(isolate: &mut v8::Isolate) -> Self {
        let inspector = V8Inspector::create(isolate, V8InspectorClient::new(Box::new(Nobody)));
        let answers = Rc::new(RefCell::new(Vec::new()));
        let channel = Channel::new(Box::new(Answers(Rc::clone(&answers))));
        let session = inspector.connect(GROUP, channel, StringView::empty(), V8InspectorClientTrustLevel::FullyTrusted);
        let this = Self { session, _inspector: inspector, answers, next_id: Cell::new(1) };
        this.ask("Profiler.enable", "{}");
        this.ask("Profiler.startPreciseCoverage", r#"{"callCount":true,"detailed":true}"#);
        this
    }

    fn ask(&self, method: &str, params: &str) -> Option<String> {
        let id = self.next_id.replace(self.next_id.get() + 1);
        let message = format!(r#"{{"id":{id},"method":"{method}","params":{params}}}"#);
        self.session.dispatch_protocol_message(StringView::from(message.as_bytes()));
        self.answers.borrow_mut().pop()
    }

    /// Adds what ran of this script since the last time. `prefixes`: what stands before the file's own code in a script, by its id.
    pub(crate) fn take(&self, script: &Script, prefixes: &BTreeMap<String, u32>, counted: &Counted) {
        let answer = self.ask("Profiler.takePreciseCoverage", "{}");
        let Some(Ok(answer)) = answer.map(|text| serde_json::from_str::<Answer>(&text)) else {
            tracing::warn!("V8 did not say what ran");
            return;
        };
        let mut counted = counted.lock().unwrap_or_else(PoisonError::into_inner);
        for taken in answer.result.result {
            let has_run = taken.functions.iter().any(|function| function.ranges.iter().any(|range| range.count > 0));
            let Some(code) = script.code_of_file(&taken.url).filter(|_| has_run) else { continue };
            let prefix = prefixes.get(&taken.script_id).copied().unwrap_or(0);
            let end = u32::try_from(code.encode_utf16().count()).unwrap_or(u32::MAX);
            let file = counted.files.entry((taken.url, code)).or_default();
            for function in taken.functions {
                // What the engine added before and after the code is left out.
                let own = |offset: u32| offset.saturating_sub(prefix).min(end);
                let ranges: Vec<CountedRange> = function
                    .ranges
                    .iter()
                    .map(|range| CountedRange {
                        start: own(range.start_offset),
                        end: own(range.end_offset),
                        count: range.count,
                    })
                    .filter(|range| range.start < range.end)
                    .collect();
                let Some(whole) = ranges.first() else { continue };
                let place = FunctionPlace { start: whole.start, end: whole.end, name: function.function_name };
                file.functions.entry(place).or_default().add(&ranges);
            }
        }
    }
}
