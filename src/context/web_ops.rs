//! The operations behind the web's globals: time, chance, addresses, timers.
//!
//! Invariant: time comes from the host's clock and chance from its entropy, so that both are virtual and seeded in a simulation.
//! What a script fetches is `fetch_ops`.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::isolate::{OpArgs, OpError};
use greenroom_boundary::{BoxFuture, RawJson, clock, web};
use serde_json::{Value, json};

use super::fetch_ops;
use super::verbs::WebVerb;
use crate::host::HostCore;
use crate::router::CallContext;

/// Most random bytes at once.
const MOST_BYTES: usize = 1 << 16;

fn raw(value: &Value) -> Result<Option<RawJson>, OpError> {
    serde_json::value::to_raw_value(value).map(Some).map_err(|error| OpError::new("ERR_ENCODE", error.to_string()))
}

fn number(args: &OpArgs, name: &str) -> Result<f64, OpError> {
    let number = args.first().and_then(|arg| serde_json::from_str::<f64>(arg.get()).ok());
    number.ok_or_else(|| OpError::bad_argument(format!("{name} must be a number")))
}

/// What is answered at once.
pub(super) fn ask(core: &HostCore, verb: WebVerb, args: &OpArgs) -> Result<Option<RawJson>, OpError> {
    match verb {
        WebVerb::Now => raw(&json!(core.drivers.clock.now().0 as f64 / 1e6)),
        WebVerb::Url => web::url(args),
        WebVerb::Entropy => raw(&json!(random_digits(core, (number(args, "bytes")? as usize).min(MOST_BYTES)))),
        WebVerb::Sleep | WebVerb::Fetch => Err(OpError::new("ERR_MUST_WAIT", "it must be awaited")),
    }
}

/// Random bytes as hexadecimal digits.
fn random_digits(core: &HostCore, bytes: usize) -> String {
    let mut digits = String::with_capacity(bytes * 2 + 16);
    while digits.len() < bytes * 2 {
        let _ = write!(digits, "{:016x}", core.drivers.entropy.next_u64());
    }
    digits.truncate(bytes * 2);
    digits
}

/// What waits.
pub(super) fn start(
    core: &Arc<HostCore>,
    cx: &CallContext,
    verb: WebVerb,
    args: OpArgs,
) -> BoxFuture<'static, Result<Option<RawJson>, OpError>> {
    match verb {
        WebVerb::Sleep => {
            let ms = match number(&args, "milliseconds") {
                Ok(ms) => ms,
                Err(error) => return Box::pin(std::future::ready(Err(error))),
            };
            let waits = Duration::try_from_secs_f64((ms / 1e3).max(0.0)).unwrap_or(Duration::MAX);
            // Whole microseconds, as the script counts them.
            let micros = waits.as_nanos().div_ceil(1_000);
            let end =
                clock::sleep(core.drivers.clock.as_ref(), Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)));
            Box::pin(async move {
                end.await;
                Ok(None)
            })
        }
        WebVerb::Fetch => {
            let (core, cx) = (core.clone(), cx.clone());
            Box::pin(async move {
                let request = args.first().map_or("null", |arg| arg.get());
                raw(&fetch_ops::run(&core, &cx, request).await?)
            })
        }
        WebVerb::Now | WebVerb::Entropy | WebVerb::Url => {
            let answer = ask(core, verb, &args);
            Box::pin(std::future::ready(answer))
        }
    }
}
