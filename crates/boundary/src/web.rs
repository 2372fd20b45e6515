//! The web platform in scripts: the globals that both engines install beside `ctx`, and the operations behind them.
//!
//! Invariant: a global is installed only if the engine's table has every operation that it needs, and its code is compiled when a
//! script first asks for it, so that a context costs nothing for what it does not use. The operations' paths begin with `$`: they are
//! not on `ctx`. Deliberately no streams, no workers, no storage; what differs from the standards is in docs/hooks.md.

use serde_json::{Value, json};
use url::{Url, quirks};

use crate::RawJson;
use crate::isolate::{OpArgs, OpDecl, OpError, OpKind};

/// Milliseconds on the host's monotonic clock.
pub const NOW: &str = "$now";
/// `$entropy(bytes)`: that many random bytes, as hexadecimal digits.
pub const ENTROPY: &str = "$entropy";
/// `$url(address, base?, field?, value?)`: the parts of an address, after a change of one if a field is given; `null` if it is none.
pub const URL: &str = "$url";
/// `$sleep(ms)`: waits.
pub const SLEEP: &str = "$sleep";
/// `$fetch(request)`: one HTTP exchange.
pub const FETCH: &str = "$fetch";

const fn inline(path: &'static str, min_args: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Inline, min_args, callback: None }
}

const fn awaiting(path: &'static str, min_args: usize) -> OpDecl {
    OpDecl { path, kind: OpKind::Await, min_args, callback: None }
}

/// The operations, to be put into an engine's table.
pub const DECLS: [OpDecl; 5] = [inline(NOW, 0), inline(ENTROPY, 1), inline(URL, 1), awaiting(SLEEP, 1), awaiting(FETCH, 1)];

/// Whether an operation stands behind a global and not on `ctx`.
pub fn is_web(path: &str) -> bool {
    path.starts_with('$')
}

/// Some globals and their code: `(function (web) { return { …globals, …what other parts use } })`. `web` is
/// `{ ask(op, …args), start(op, …args), cancel(promise), turn(), use(part), made(part) }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WebPart {
    /// Its name, for `use`.
    pub name: &'static str,
    /// The globals among what it returns.
    pub globals: &'static [&'static str],
    /// The operations that it cannot do without.
    pub needs: &'static [&'static str],
    /// Its code.
    pub source: &'static str,
}

/// All parts.
pub const PARTS: &[WebPart] = &[
    WebPart {
        name: "timers",
        globals: &["setTimeout", "clearTimeout", "setInterval", "clearInterval", "queueMicrotask", "performance"],
        needs: &[NOW, SLEEP],
        source: include_str!("../web/timers.js"),
    },
    WebPart {
        name: "events",
        globals: &["DOMException", "Event", "EventTarget", "AbortController", "AbortSignal"],
        needs: &[NOW, SLEEP],
        source: include_str!("../web/events.js"),
    },
    WebPart {
        name: "text",
        globals: &["TextEncoder", "TextDecoder", "btoa", "atob"],
        needs: &[NOW, SLEEP],
        source: include_str!("../web/text.js"),
    },
    WebPart { name: "crypto", globals: &["crypto"], needs: &[ENTROPY], source: include_str!("../web/crypto.js") },
    WebPart { name: "url", globals: &["URL", "URLSearchParams"], needs: &[URL], source: include_str!("../web/url.js") },
    WebPart { name: "clone", globals: &["structuredClone"], needs: &[NOW, SLEEP], source: include_str!("../web/clone.js") },
    WebPart {
        name: "fetch",
        globals: &["fetch", "Headers", "Response"],
        needs: &[NOW, SLEEP, FETCH],
        source: include_str!("../web/fetch.js"),
    },
];

/// The parts whose operations a table has.
pub fn parts_of(table: &[OpDecl]) -> impl Iterator<Item = &'static WebPart> {
    let has = |path: &&str| table.iter().any(|decl| decl.path == *path);
    PARTS.iter().filter(move |part| part.needs.iter().all(has))
}

/// Longest address that is read.
const URL_LIMIT_BYTES: usize = 1 << 20;

/// Answers [`URL`].
pub fn url(args: &OpArgs) -> Result<Option<RawJson>, OpError> {
    let text = |at: usize| args.get(at).map_or(Ok(None), |arg| serde_json::from_str::<Option<String>>(arg.get()));
    let read = |at: usize| text(at).map_err(|_| OpError::bad_argument("URL: an address is text"));
    let (Some(address), base, field, value) = (read(0)?, read(1)?, read(2)?, read(3)?) else {
        return Err(OpError::bad_argument("URL: an address is needed"));
    };
    let bytes = address.len() + base.as_ref().map_or(0, String::len) + value.as_ref().map_or(0, String::len);
    if bytes > URL_LIMIT_BYTES {
        let message = format!("URL: an address may have {URL_LIMIT_BYTES} bytes, not {bytes}");
        return Err(OpError { code: "ERR_INVALID_URL".to_owned(), message, class: "RangeError" });
    }
    let parsed = match base {
        Some(base) => Url::parse(&base).and_then(|base| base.join(&address)),
        None => Url::parse(&address),
    };
    let changed = parsed.ok().and_then(|mut url| match (field, value) {
        (Some(field), Some(value)) => set(&mut url, &field, &value).map(|()| url),
        _ => Some(url),
    });
    let parts = changed.map_or(Value::Null, |url| parts(&url));
    serde_json::value::to_raw_value(&parts).map(Some).map_err(|error| OpError::new("ERR_ENCODE", error.to_string()))
}

/// Sets one part as the standard says; `None` if the text does not fit.
fn set(url: &mut Url, field: &str, value: &str) -> Option<()> {
    match field {
        "protocol" => quirks::set_protocol(url, value).ok(),
        "username" => quirks::set_username(url, value).ok(),
        "password" => quirks::set_password(url, value).ok(),
        "host" => quirks::set_host(url, value).ok(),
        "hostname" => quirks::set_hostname(url, value).ok(),
        "port" => quirks::set_port(url, value).ok(),
        "pathname" => {
            quirks::set_pathname(url, value);
            Some(())
        }
        "search" => {
            quirks::set_search(url, value);
            Some(())
        }
        "hash" => {
            quirks::set_hash(url, value);
            Some(())
        }
        _ => None,
    }
}

fn parts(url: &Url) -> Value {
    json!({
        "href": quirks::href(url),
        "origin": quirks::origin(url),
        "protocol": quirks::protocol(url),
        "username": quirks::username(url),
        "password": quirks::password(url),
        "host": quirks::host(url),
        "hostname": quirks::hostname(url),
        "port": quirks::port(url),
        "pathname": quirks::pathname(url),
        "search": quirks::search(url),
        "hash": quirks::hash(url),
    })
}

/// The answer of an operation while a script is only loaded, to learn what it offers: time stands, chance is zero, and nothing waits to
/// an end. `None` if the operation is none of the web's.
pub fn while_loading(path: &str, args: &OpArgs) -> Option<Result<Option<RawJson>, OpError>> {
    let raw = |value: Value| serde_json::value::to_raw_value(&value).ok();
    match path {
        NOW => Some(Ok(raw(json!(0)))),
        URL => Some(url(args)),
        ENTROPY => {
            let bytes: usize = args.first().and_then(|arg| serde_json::from_str(arg.get()).ok()).unwrap_or(0);
            Some(Ok(raw(json!("00".repeat(bytes.min(1 << 16))))))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isolate::OpArgs;

    fn asked(args: &[Value]) -> Value {
        let args: OpArgs = args.iter().map(|arg| serde_json::value::to_raw_value(arg).expect("JSON")).collect();
        let answer = url(&args).expect("an answer").expect("a value");
        serde_json::from_str(answer.get()).expect("JSON")
    }

    #[test]
    fn addresses_are_read_and_changed() {
        let parts = asked(&[json!("../b?x=1#h"), json!("https://user:pw@EXAMPLE.com:443/a/c")]);
        assert_eq!(
            (&parts["href"], &parts["origin"], &parts["port"], &parts["search"]),
            (&json!("https://user:pw@example.com/b?x=1#h"), &json!("https://example.com"), &json!(""), &json!("?x=1"))
        );
        assert_eq!(asked(&[json!("not an address")]), Value::Null);
        assert_eq!(asked(&[json!("http://a/"), Value::Null, json!("port"), json!("8080")])["href"], json!("http://a:8080/"));
        assert_eq!(asked(&[json!("http://a/"), Value::Null, json!("port"), json!("x")]), Value::Null);
    }

    #[test]
    fn a_table_without_operations_has_no_globals() {
        assert_eq!(parts_of(&[]).count(), 0);
        assert_eq!(parts_of(&DECLS).count(), PARTS.len());
        let some: Vec<_> = parts_of(&DECLS[..3]).map(|part| part.name).collect();
        assert_eq!(some, ["crypto", "url"]);
    }
}
