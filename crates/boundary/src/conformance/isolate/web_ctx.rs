//! The host's side of the web's globals in the suite: time that passes by itself, chance that counts, and a fixed far end.
//!
//! Invariant: the earliest timer ends first, and none before everything else had its turn. Deliberately no real time and no network.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use super::ctx::{UnderWay, yield_once};
use super::raw;
use crate::isolate::{OpArgs, OpError};
use crate::{BoxFuture, CancellationToken, RawJson, web};

type Answer = Result<Option<RawJson>, OpError>;

/// How often everything else is given a turn before a timer ends.
const TURNS: usize = 6;

#[derive(Debug, Default)]
struct State {
    now_us: u64,
    last: u64,
    due: BTreeSet<(u64, u64)>,
    end: Option<(u64, CancellationToken)>,
    drawn: u8,
}

/// The time and the chance of one call.
#[derive(Debug, Default)]
pub(super) struct WebTime(Mutex<State>);

impl WebTime {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now_ms(&self) -> f64 {
        self.lock().now_us as f64 / 1_000.0
    }

    /// The call's time is over then.
    pub(super) fn end_at(&self, after: Duration, wall: &CancellationToken) {
        let mut state = self.lock();
        let at = state.now_us.saturating_add(u64::try_from(after.as_micros()).unwrap_or(u64::MAX));
        if state.end.as_ref().is_none_or(|(end, _)| at < *end) {
            state.end = Some((at, wall.clone()));
        }
    }

    /// What an operation answers at once; `None` if it is none of the web's.
    pub(super) fn ask(&self, path: &str, args: &OpArgs) -> Option<Answer> {
        match path {
            web::NOW => Some(Ok(Some(raw(&json!(self.now_ms()).to_string())))),
            web::URL => Some(web::url(args)),
            web::ENTROPY => {
                let bytes: usize = serde_json::from_str(args[0].get()).expect("a number of bytes");
                let mut state = self.lock();
                let mut digits = String::new();
                for _ in 0..bytes {
                    state.drawn = state.drawn.wrapping_add(1);
                    let _ = write!(digits, "{:02x}", state.drawn);
                }
                Some(Ok(Some(raw(&json!(digits).to_string()))))
            }
            _ => None,
        }
    }

    /// Waits.
    pub(super) fn sleep(time: &Arc<Self>, args: &OpArgs) -> BoxFuture<'static, Answer> {
        let ms: f64 = serde_json::from_str(args[0].get()).expect("milliseconds");
        let sleeper = {
            let mut state = time.lock();
            state.last += 1;
            let key = (state.now_us + (ms * 1_000.0).round() as u64, state.last);
            state.due.insert(key);
            Sleeper { time: Arc::clone(time), key }
        };
        Box::pin(async move {
            loop {
                for _ in 0..TURNS {
                    yield_once().await;
                }
                if sleeper.may_end() {
                    return Ok(None);
                }
            }
        })
    }
}

/// A timer; forgotten when it is dropped.
struct Sleeper {
    time: Arc<WebTime>,
    key: (u64, u64),
}

impl Sleeper {
    fn may_end(&self) -> bool {
        let mut state = self.time.lock();
        if state.due.first() != Some(&self.key) {
            return false;
        }
        match &state.end {
            Some((end, wall)) if *end <= self.key.0 => {
                wall.cancel();
                false
            }
            _ => {
                state.now_us = state.now_us.max(self.key.0);
                true
            }
        }
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        self.time.lock().due.remove(&self.key);
    }
}

/// The far end: `denied.example` may not be reached, `slow.example` never answers, `bytes.example` answers in bytes, and any other says
/// what it was asked.
pub(super) async fn fetch(under_way: UnderWay, args: OpArgs) -> Answer {
    let _under_way = under_way;
    yield_once().await;
    let request: Value = serde_json::from_str(args[0].get()).expect("JSON");
    let url = request["url"].as_str().unwrap_or_default().to_owned();
    if url.contains("denied.example") {
        let message = "the script may not contact denied.example:443".to_owned();
        return Err(OpError { code: "EGRESS_DENIED".to_owned(), message, class: "TypeError" });
    }
    if url.contains("slow.example") {
        futures::future::pending::<()>().await;
    }
    let headers = json!([["content-type", "application/json"], ["x-two", "a"], ["x-two", "b"]]);
    let mut answer = json!({"url": url, "status": 200, "statusText": "OK", "headers": headers, "redirected": false});
    if url.contains("bytes.example") {
        answer["base64"] = json!("AP/+gA==");
    } else {
        answer["text"] = json!(request.to_string());
    }
    Ok(Some(raw(&answer.to_string())))
}
