//! The web's globals in scripts, as the reference describes them.
//!
//! Invariant: every global that engines install stands here once, and in `web.d.ts`; a test holds them together. Deliberately only
//! data: what they do is in `greenroom_boundary::web`.

/// Some globals that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Global {
    /// Their names.
    pub names: &'static [&'static str],
    /// What they do.
    pub text: &'static str,
    /// What differs from the standards; may be empty.
    pub differs: &'static str,
}

const fn global(names: &'static [&'static str], text: &'static str, differs: &'static str) -> Global {
    Global { names, text, differs }
}

/// All of them, in the order of the reference.
pub const GLOBALS: &[Global] = &[
    global(
        &["setTimeout", "clearTimeout", "setInterval", "clearInterval"],
        "Timers by the host's clock, virtual in a scenario: equal times fire in the order they were set. A timer that is set is an \
         operation under way: a promise that waits for it is awaited, and it counts towards the limit on pending operations.",
        "The callback must be a function. A timer left over at the end of the hook does nothing. No nested timer is slowed down; an \
         interval is at least 1 ms. A wait beyond 2^31 - 1 ms is cut to it. While a call that waits blocks the script, no timer fires.",
    ),
    global(&["queueMicrotask"], "Runs a function after what runs now.", ""),
    global(
        &["performance"],
        "`performance.now()`: milliseconds on the host's monotonic clock.",
        "Only `now`. It is not cut to coarse steps.",
    ),
    global(
        &["AbortController", "AbortSignal"],
        "`abort`, `timeout`, `any`, `throwIfAborted`, `aborted`, `reason`, `onabort`. `fetch` takes a `signal`; what is aborted is dropped \
         by the host, and is no operation under way any more.",
        "Operations of `ctx` take no signal; they end with their answer or with the hook.",
    ),
    global(
        &["Event", "EventTarget", "DOMException"],
        "As far as signals need them.",
        "No bubbling, no capture. `DOMException` has no constants.",
    ),
    global(
        &["crypto"],
        "`crypto.randomUUID()` and `crypto.getRandomValues(array)`, from the host's entropy: seeded in a scenario, like `Math.random()`.",
        "No `crypto.subtle`.",
    ),
    global(
        &["TextEncoder", "TextDecoder"],
        "UTF-8, with `fatal`, `ignoreBOM`, `stream` and `encodeInto`.",
        "Other encodings are a RangeError.",
    ),
    global(&["btoa", "atob"], "Base64 of text whose characters are bytes.", ""),
    global(
        &["URL", "URLSearchParams"],
        "Addresses by the WHATWG standard; `searchParams` and `search` agree. `URL.canParse` and `URL.parse` too.",
        "An address may have 1 MiB. No object URLs. The error has the code `ERR_INVALID_URL`.",
    ),
    global(
        &["structuredClone"],
        "A deep copy of plain data, `Map`, `Set`, `Date`, `RegExp`, errors with their causes, buffers and their views; cycles keep their \
         shape. Anything else is a `DataCloneError`.",
        "Nothing can be transferred. A proxy is copied as what it shows.",
    ),
    global(
        &["fetch", "Headers", "Response"],
        "HTTP through the host's egress: denied unless `egress.allow` of the config names the host (`drivers.egress` in a scenario). \
         Takes `method`, `headers`, `body`, `redirect` and `signal`; the answer has `ok`, `status`, `statusText`, `url`, `redirected`, \
         `headers`, `text()`, `json()`, `bytes()`, `arrayBuffer()` and `clone()`. Each hop is an exchange `fetch` at the boundary `egress` \
         of the trace.",
        "A body is text, bytes, `URLSearchParams` or plain data, which is sent as JSON. The answer comes whole, with a body of at most 4 MiB. \
         No streams, no cookies, no cache, no `Request`, no CORS. With `redirect: \"manual\"` the redirect is the answer. Failures are \
         TypeErrors with a code: `EGRESS_DENIED`, `FETCH_URL`, `FETCH_REQUEST`, `FETCH_REDIRECT`, `FETCH_UNREACHABLE`, `FETCH_BODY_LIMIT`, \
         `FETCH_NO_CLIENT`. Not recorded in cassettes: in a replay it is denied.",
    ),
];
