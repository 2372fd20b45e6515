//! The web's globals: timers, events and aborting, text, chance, addresses, copies, fetch.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Case, EngineUnderTest, TestCtx};
use crate::isolate::IsolateError;

pub(super) fn cases() -> Vec<Case> {
    case_list![web:
        globals_are_there, they_can_be_replaced, timers_fire_in_order, timers_pass_time, intervals, cleared_timers,
        timers_left_over, timer_limits, what_a_timer_throws, timers_of_one_call, microtasks, signals, signals_together,
        listeners, encoding, base64, chance, addresses, search_params, copies, copies_refused, fetched, fetch_bodies,
        fetch_fails, fetch_is_aborted, at_top_level,
    ]
}

/// Evaluates expressions, each with what it gives.
async fn table(t: &EngineUnderTest, rows: &[(&str, Value)]) {
    for (code, expected) in rows {
        let value = t.value(&format!("async function f(ctx) {{ return {code} }}")).await;
        assert_eq!(value, *expected, "{code}");
    }
}

async fn globals_are_there(t: EngineUnderTest) {
    let names: Vec<&str> = crate::web::PARTS.iter().flat_map(|part| part.globals).copied().collect();
    let code = format!(
        "function f() {{ return {}.filter(name => globalThis[name] === undefined || globalThis[name] !== globalThis[name] || \
         Object.keys(globalThis).includes(name)) }}",
        json!(names)
    );
    assert_eq!(t.value(&code).await, json!([]));
    table(
        &t,
        &[
            ("[typeof ctx.$fetch, typeof ctx.$now, '$url' in ctx]", json!(["undefined", "undefined", false])),
            (
                "[setTimeout.name, fetch.length, URL.name, `${new URLSearchParams('a=b')}`]",
                json!(["setTimeout", 1, "URL", "a=b"]),
            ),
            (
                "[typeof process, typeof require, typeof WebSocket, typeof WebAssembly]",
                json!(["undefined", "undefined", "undefined", "undefined"]),
            ),
        ],
    )
    .await;
}

async fn they_can_be_replaced(t: EngineUnderTest) {
    let code = "function fetch() { return 'mine' }\nfunction f() { return fetch() }";
    assert_eq!(t.value(code).await, json!("mine"));
    assert_eq!(t.functions(code).await, Ok(vec!["fetch".to_owned(), "f".to_owned()]));
    assert_eq!(t.shot(code).function("fetch").value().await, json!("mine"));
    assert_eq!(t.value("const URL = 7, crypto = 8;\nfunction f() { return URL + crypto }").await, json!(15));
}

async fn timers_fire_in_order(t: EngineUnderTest) {
    let code = "async function f() { const seen = []; const at = ms => new Promise(done => setTimeout(text => { seen.push(text); done() }, ms, ms));
        setTimeout(() => seen.push('first of 20'), 20); setTimeout(() => seen.push('second of 20'), 20);
        await at(5).then(() => setTimeout(() => seen.push('third of 20'), 15));
        setTimeout(() => { seen.push('now'); Promise.resolve().then(() => seen.push('micro')); }); setTimeout(() => seen.push('then'), -1);
        await at(30); return seen }";
    let expected = json!([5, "now", "micro", "then", "first of 20", "second of 20", "third of 20", 30]);
    assert_eq!(t.value(code).await, expected);
}

async fn timers_pass_time(t: EngineUnderTest) {
    let code = "async function f() { const began = performance.now(), date = Date.now();
        await new Promise(done => setTimeout(done, 1500.9)); return [performance.now() - began, Date.now() - date] }";
    let value = t.value(code).await;
    let passed: Vec<f64> = value.as_array().expect("a list").iter().filter_map(Value::as_f64).collect();
    assert_eq!(passed, [1500.0, 1500.0]);
}

async fn intervals(t: EngineUnderTest) {
    let code = "async function f() { let n = 0, id; const times = []; await new Promise(done => { id = setInterval((by) => {
        times.push(Math.round(performance.now())); n += by; if (n === 6) { clearInterval(id); done() } }, 10, 2) });
        await new Promise(done => setTimeout(done, 100)); return [n, times[1] - times[0], times[2] - times[1], times.length] }";
    assert_eq!(t.value(code).await, json!([6, 10, 10, 3]));
}

async fn cleared_timers(t: EngineUnderTest) {
    let code = "async function f() { const seen = []; const a = setTimeout(() => seen.push('a'), 10), b = setTimeout(() => { seen.push('b'); clearTimeout(c) }, 10);
        const c = setTimeout(() => seen.push('c'), 10); clearTimeout(a); clearTimeout(a); clearTimeout(undefined); clearTimeout('x'); clearInterval(99);
        await new Promise(done => setTimeout(done, 20)); return [seen, a, b, c] }";
    assert_eq!(t.value(code).await, json!([["b"], 1, 2, 3]));
}

async fn timers_left_over(t: EngineUnderTest) {
    let ctx = Arc::new(TestCtx::default());
    let code = "function f(ctx) { setTimeout(() => ctx.Send('late'), 5); setInterval(() => ctx.Send('late'), 5); return 1 }";
    assert_eq!(t.shot(code).ctx(&ctx).value().await, json!(1));
    assert_eq!(ctx.log(), Vec::<String>::new());
    t.still_works().await;
    // What only a timer can settle is settled by it; what nothing can settle is not, once the timers are over.
    let waits = "function f() { return new Promise(done => setTimeout(() => done(3), 1000)) }";
    assert_eq!(t.value(waits).await, json!(3));
    let never = "function f() { setTimeout(() => {}, 1000); return new Promise(() => {}) }";
    assert_eq!(t.shot(never).error().await, IsolateError::NeverSettles);
    let cleared = "function f() { return new Promise(done => clearTimeout(setTimeout(done, 1000))) }";
    assert_eq!(t.shot(cleared).error().await, IsolateError::NeverSettles);
}

async fn timer_limits(t: EngineUnderTest) {
    let code = "async function f() { for (let i = 0; i < 9; i++) setTimeout(() => {}, i); }";
    let error = t.shot(code).limits(|limits| limits.pending_ops = 8).error().await;
    assert_eq!(error, IsolateError::PendingLimit { limit: 8 });
    let fits = "async function f() { for (let i = 0; i < 50; i++) clearTimeout(setTimeout(() => {}, i)); return 'fits' }";
    assert_eq!(t.shot(fits).limits(|limits| limits.pending_ops = 8).value().await, json!("fits"));
    let long = "async function f(ctx) { await new Promise(done => setTimeout(done, 60000)); ctx.Send('after') }";
    let error = t.shot(long).limits(|limits| limits.wall = Duration::from_secs(30)).error().await;
    assert_eq!(error, IsolateError::WallLimit { limit_ms: 30_000 });
    t.still_works().await;
}

async fn what_a_timer_throws(t: EngineUnderTest) {
    for code in [
        "function f() { return new Promise(() => setTimeout(() => { throw new RangeError('thrown') }, 1)) }",
        "async function f() { queueMicrotask(() => { throw new RangeError('thrown') }); await null }",
        "async function f() { const c = new AbortController(); c.signal.onabort = () => { throw new RangeError('thrown') }; c.abort() }",
    ] {
        match t.shot(code).error().await {
            IsolateError::UnhandledRejection(exception) => {
                assert_eq!((exception.class.as_str(), exception.message.as_str()), ("RangeError", "thrown"), "{code}");
            }
            other => panic!("{other:?} from {code}"),
        }
        t.still_works().await;
    }
    let error = t.thrown("function f() { setTimeout('ctx.Send(1)', 1) }").await;
    assert_eq!((error.class.as_str(), error.frames.len()), ("TypeError", 1));
}

async fn timers_of_one_call(t: EngineUnderTest) {
    // The same script again and again: at the frozen level its calls share a context.
    for _ in 0..3 {
        let code = "async function f() { const id = setTimeout(() => {}, 50); await new Promise(done => setTimeout(done, 1)); return id }";
        assert_eq!(t.value(code).await, json!(1));
    }
}

async fn microtasks(t: EngineUnderTest) {
    let code = "async function f() { const seen = []; setTimeout(() => seen.push('timer'), 0); queueMicrotask(() => seen.push('micro')); seen.push('sync');
        await new Promise(done => setTimeout(done, 1)); return seen }";
    assert_eq!(t.value(code).await, json!(["sync", "micro", "timer"]));
}

async fn signals(t: EngineUnderTest) {
    table(
        &t,
        &[
            ("[new AbortController().signal.aborted, AbortSignal.abort().aborted, AbortSignal.abort('why').reason]", json!([false, true, "why"])),
            ("(s => [s.reason.name, s.reason.code, s.reason instanceof DOMException, s.reason instanceof Error])(AbortSignal.abort())", json!(["AbortError", 20, true, true])),
            ("(() => { try { AbortSignal.abort().throwIfAborted() } catch (e) { return e.name } })()", json!("AbortError")),
            ("(() => { try { new AbortSignal() } catch (e) { return e.name } })()", json!("TypeError")),
            ("await new Promise(done => { AbortSignal.timeout(20).onabort = (e) => done([e.type, e.target.reason.name, performance.now() >= 20]) })", json!(["abort", "TimeoutError", true])),
        ],
    )
    .await;
    let once = "function f() { const seen = [], c = new AbortController(); c.signal.addEventListener('abort', () => { seen.push(c.signal.reason); c.abort('again') });
        c.abort('first'); c.abort('second'); return [seen, c.signal.reason] }";
    assert_eq!(t.value(once).await, json!([["first"], "first"]));
    let thrown = t.thrown("function f() { AbortSignal.abort().throwIfAborted() }").await;
    assert_eq!((thrown.class.as_str(), thrown.code.as_deref()), ("AbortError", Some("20")));
}

async fn signals_together(t: EngineUnderTest) {
    let code = "function f() { const a = new AbortController(), b = new AbortController(), seen = [];
        const any = AbortSignal.any([a.signal, b.signal]), both = AbortSignal.any([any, AbortSignal.any([])]);
        a.signal.onabort = () => seen.push(['a', any.aborted, both.aborted]); any.onabort = () => seen.push('any'); both.onabort = () => seen.push('both');
        a.abort(7); b.abort(8); return [seen, any.reason, both.reason, AbortSignal.any([b.signal]).reason] }";
    assert_eq!(t.value(code).await, json!([[["a", true, true], "any", "both"], 7, 7, 8]));
}

async fn listeners(t: EngineUnderTest) {
    let code = "function f() { const seen = [], target = new EventTarget(), c = new AbortController(), object = { handleEvent(e) { seen.push([e.type, this === object, e.target === target]) } };
        const add = (text, options) => target.addEventListener('go', () => seen.push(text), options);
        target.addEventListener('go', object); target.addEventListener('go', object); add('once', { once: true }); add('signal', { signal: c.signal });
        target.dispatchEvent(new Event('go')); c.abort(); target.removeEventListener('go', object); add('stop');
        const event = new Event('go', { cancelable: true }); target.addEventListener('go', e => { e.preventDefault(); e.stopImmediatePropagation() }); add('never');
        return [target.dispatchEvent(event), event.defaultPrevented, seen] }";
    assert_eq!(t.value(code).await, json!([false, true, [["go", true, true], "once", "signal", "stop"]]));
}

async fn encoding(t: EngineUnderTest) {
    table(
        &t,
        &[
            ("[...new TextEncoder().encode('aé€😀\\ud800')]", json!([97, 195, 169, 226, 130, 172, 240, 159, 152, 128, 239, 191, 189])),
            ("new TextDecoder().decode(new Uint8Array([97, 195, 169, 226, 130, 172, 240, 159, 152, 128]))", json!("aé€😀")),
            ("new TextDecoder().decode(new Uint8Array([0xef, 0xbb, 0xbf, 104, 0xc3, 0x28, 0xe2, 0x82, 0xff, 0xf4, 0x90]))", json!("h\u{fffd}(\u{fffd}\u{fffd}\u{fffd}\u{fffd}")),
            ("new TextDecoder('utf8', { ignoreBOM: true }).decode(new Uint8Array([0xef, 0xbb, 0xbf, 104]).buffer)", json!("\u{feff}h")),
            ("(() => { const d = new TextDecoder(); return d.decode(new Uint8Array([0xe2, 0x82]), { stream: true }) + '|' + d.decode(new Uint8Array([0xac])) })()", json!("|€")),
            ("(() => { try { new TextDecoder('utf-8', { fatal: true }).decode(new Uint8Array([255])) } catch (e) { return [e.name, e.code] } })()", json!(["TypeError", "ERR_ENCODING"])),
            ("(() => { try { new TextDecoder('latin1') } catch (e) { return e.name } })()", json!("RangeError")),
            ("new TextEncoder().encodeInto('a😀b', new Uint8Array(4))", json!({"read": 1, "written": 1})),
            ("new TextEncoder().encodeInto('é😀b', new Uint8Array(7))", json!({"read": 4, "written": 7})),
            ("new TextDecoder().decode(new TextEncoder().encode('é'.repeat(20000))).length", json!(20_000)),
        ],
    )
    .await;
}

async fn base64(t: EngineUnderTest) {
    table(
        &t,
        &[
            ("[btoa(''), btoa('a'), btoa('ab'), btoa('abc'), btoa('\\xff\\0')]", json!(["", "YQ==", "YWI=", "YWJj", "/wA="])),
            ("[atob(' YW Jj'), atob('YQ'), atob('YQ=='), atob(btoa('x'.repeat(10000))).length]", json!(["abc", "a", "a", 10_000])),
            ("['€', 'YQ=', 'A', '!'].map((text, i) => { try { return i ? atob(text) : btoa(text) } catch (e) { return e.name } })", json!(["InvalidCharacterError", "InvalidCharacterError", "InvalidCharacterError", "InvalidCharacterError"])),
        ],
    )
    .await;
}

async fn chance(t: EngineUnderTest) {
    table(
        &t,
        &[
            ("[...crypto.getRandomValues(new Uint8Array(4))]", json!([1, 2, 3, 4])),
            ("[crypto.randomUUID(), crypto.randomUUID()]", json!(["01020304-0506-4708-890a-0b0c0d0e0f10", "11121314-1516-4718-991a-1b1c1d1e1f20"])),
            ("[...crypto.getRandomValues(new Uint16Array(new ArrayBuffer(8), 2, 2))]", json!([513, 1027])),
            ("[new Float32Array(1), new Uint8Array(65537)].map(array => { try { crypto.getRandomValues(array) } catch (e) { return e.name } })", json!(["TypeMismatchError", "QuotaExceededError"])),
            ("typeof crypto.subtle", json!("undefined")),
        ],
    )
    .await;
}

async fn addresses(t: EngineUnderTest) {
    table(
        &t,
        &[
            ("(u => [u.href, u.origin, u.host, u.port, u.pathname, u.search, u.hash, `${u}`.length])(new URL('../b?q=1#h', 'https://EXAMPLE.com:8443/a/c'))",
             json!(["https://example.com:8443/b?q=1#h", "https://example.com:8443", "example.com:8443", "8443", "/b", "?q=1", "#h", 32])),
            ("(u => { u.pathname = '/x y'; u.port = '443'; u.hash = ''; u.hostname = 'b\u{fc}cher.example'; u.protocol = 'nonsense'; return u.href })(new URL('https://a.example:1/z#h'))", json!("https://xn--bcher-kva.example/x%20y")),
            ("(u => { u.searchParams.append('b', '2 3'); u.searchParams.delete('a'); const s = u.search; u.search = '?c=%E2%82%AC'; return [s, u.searchParams.get('c'), u.href] })(new URL('https://a.example/?a=1'))",
             json!(["?b=2+3", "€", "https://a.example/?c=%E2%82%AC"])),
            ("JSON.stringify({ u: new URL('http://[::1]:80/') })", json!("{\"u\":\"http://[::1]/\"}")),
            ("[URL.canParse('x'), URL.canParse('x', 'http://a'), URL.parse('nope'), URL.parse('http://a').href]", json!([false, true, null, "http://a/"])),
            ("(() => { try { new URL('nope') } catch (e) { return [e.name, e.code] } })()", json!(["TypeError", "ERR_INVALID_URL"])),
            ("(() => { try { new URL('http://a/').href = 'nope' } catch (e) { return e.code } })()", json!("ERR_INVALID_URL")),
        ],
    )
    .await;
}

async fn search_params(t: EngineUnderTest) {
    table(
        &t,
        &[
            ("(p => { p.sort(); return [`${p}`, p.size, p.getAll('a'), p.has('a', '2'), [...p.keys()]] })(new URLSearchParams('?b=3&a=1&a=2'))", json!(["a=1&a=2&b=3", 3, ["1", "2"], true, ["a", "a", "b"]])),
            ("`${new URLSearchParams({ 'a b': \"~!'()*-._\", c: '\u{e9}+&=' })}`", json!("a+b=%7E%21%27%28%29*-._&c=%C3%A9%2B%26%3D")),
            ("(p => { p.set('a', 9); p.append('x', 1); p.delete('b'); return [...p] })(new URLSearchParams([['a', 1], ['b', 2], ['a', 3]]))", json!([["a", "9"], ["x", "1"]])),
            ("[...new URLSearchParams('a=%ff%41&b=%zz&c')]", json!([["a", "\u{fffd}A"], ["b", "%zz"], ["c", ""]])),
        ],
    )
    .await;
}

async fn copies(t: EngineUnderTest) {
    table(
        &t,
        &[
            ("(a => { const b = structuredClone(a); return [b, b !== a, b.list !== a.list, 'u' in b] })({ n: null, list: [1, , 'x'], u: undefined, d: new Date(0) })",
             json!([{"n": null, "list": [1, null, "x"], "d": "1970-01-01T00:00:00.000Z"}, true, true, true])),
            ("(a => { a.self = a; a.map = new Map([[a, new Set([a])]]); const b = structuredClone(a); return [b.self === b, b.map.get(b).has(b)] })({})", json!([true, true])),
            ("(b => [b.name, b.message, b instanceof RangeError, b.cause.message, b.extra === undefined])(structuredClone(Object.assign(new RangeError('m', { cause: new Error('c') }), { extra: 1 })))",
             json!(["RangeError", "m", true, "c", true])),
            ("(v => { const b = structuredClone({ v, buffer: v.buffer }); v[0] = 9; return [[...b.v], b.v.buffer === b.buffer, b.v.constructor.name] })(new Uint16Array([1, 2]))", json!([[1, 2], true, "Uint16Array"])),
            ("(b => [b.source, b.flags, b.lastIndex])(structuredClone(/a+/gi))", json!(["a+", "gi", 0])),
            ("(() => { class A { x = 1; get y() { return 2 } } const b = structuredClone(new A()); return [b, b.constructor === Object] })()", json!([{"x": 1}, true])),
            ("Object.getPrototypeOf(structuredClone(JSON.parse('{\"__proto__\": {\"a\": 1}}'))) === Object.prototype", json!(true)),
            ("(e => [e.name, e.message, e.code])(structuredClone(new DOMException('gone', 'AbortError')))", json!(["AbortError", "gone", 20])),
        ],
    )
    .await;
}

async fn copies_refused(t: EngineUnderTest) {
    for value in [
        "() => 1",
        "{ f() {} }",
        "[Symbol('s')]",
        "new WeakMap()",
        "Promise.resolve()",
        "(function* () {})()",
        "new URL('http://a')",
        "new AbortController()",
        "AbortSignal.abort()",
    ] {
        let code = format!("function f() {{ try {{ structuredClone({value}) }} catch (e) {{ return [e.name, e.code] }} }}");
        assert_eq!(t.value(&code).await, json!(["DataCloneError", 25]), "{value}");
    }
}

async fn fetched(t: EngineUnderTest) {
    let code = "async function f() { const r = await fetch(new URL('https://shop.example/a?b=1'), { headers: { 'X-One': ' 1 ' } });
        const copy = r.clone(), body = await r.json(); let again; try { await r.text() } catch (e) { again = e.name }
        return [r.ok, r.status, r.statusText, r.url, r.redirected, r.headers.get('X-Two'), [...r.headers], r.bodyUsed, again, (await copy.text()).length > 9, body] }";
    let expected = json!([
        true, 200, "OK", "https://shop.example/a?b=1", false, "a, b",
        [["content-type", "application/json"], ["x-two", "a, b"]], true, "TypeError", true,
        {"url": "https://shop.example/a?b=1", "method": "GET", "headers": [["x-one", "1"]], "redirect": "follow"}
    ]);
    assert_eq!(t.value(code).await, expected);
    let bytes = "async function f() { const r = await fetch('https://bytes.example/'); const copy = r.clone(); return [[...new Uint8Array(await r.arrayBuffer())], await copy.text()] }";
    assert_eq!(t.value(bytes).await, json!([[0, 255, 254, 128], "\0\u{fffd}\u{fffd}\u{fffd}"]));
}

async fn fetch_bodies(t: EngineUnderTest) {
    for (body, sent, kind) in [
        ("'é'", json!({"text": "é"}), json!("text/plain;charset=UTF-8")),
        ("new Uint8Array([0, 255])", json!({"base64": "AP8="}), json!(null)),
        ("{ a: [1] }", json!({"text": "{\"a\":[1]}"}), json!("application/json")),
        (
            "new URLSearchParams({ a: 'b c' })",
            json!({"text": "a=b+c"}),
            json!("application/x-www-form-urlencoded;charset=UTF-8"),
        ),
    ] {
        let code = format!(
            "async function f() {{ const r = await (await fetch('http://a/', {{ method: 'post', body: {body} }})).json();
             return [r.method, r.body, r.headers.length > 0 ? r.headers[0][1] : null] }}"
        );
        assert_eq!(t.value(&code).await, json!(["POST", sent, kind]), "{body}");
    }
}

async fn fetch_fails(t: EngineUnderTest) {
    for (call, expected) in [
        ("fetch('https://denied.example/')", json!(["TypeError", "EGRESS_DENIED"])),
        ("fetch('http://a/', { body: 'x' })", json!(["TypeError", null])),
        ("fetch('http://a/', { method: 'a b' })", json!(["TypeError", null])),
        ("fetch('http://a/', { headers: { 'a b': '1' } })", json!(["TypeError", null])),
        ("fetch('http://a/', { headers: { a: 'x\\ny' } })", json!(["TypeError", null])),
        ("fetch('http://a/', { method: 'POST', body: new Map() })", json!(["TypeError", null])),
        ("fetch('http://a/', { signal: {} })", json!(["TypeError", null])),
        ("fetch('http://a/', { redirect: 'x' })", json!(["TypeError", null])),
    ] {
        let code = format!("async function f() {{ try {{ await {call} }} catch (e) {{ return [e.name, e.code ?? null] }} }}");
        assert_eq!(t.value(&code).await, expected, "{call}");
    }
    let thrown = t.thrown("async function f() {\n  await fetch('https://denied.example/') }").await;
    assert_eq!((thrown.class.as_str(), thrown.code.as_deref()), ("TypeError", Some("EGRESS_DENIED")));
}

async fn fetch_is_aborted(t: EngineUnderTest) {
    for (code, expected) in [
        (
            "const c = new AbortController(); setTimeout(() => c.abort('mine'), 5); try { await fetch('http://slow.example/', { signal: c.signal }) } catch (e) { return e }",
            json!("mine"),
        ),
        (
            "try { await fetch('http://slow.example/', { signal: AbortSignal.timeout(50) }) } catch (e) { return [e.name, performance.now() >= 50] }",
            json!(["TimeoutError", true]),
        ),
        ("try { await fetch('http://slow.example/', { signal: AbortSignal.abort(3) }) } catch (e) { return e }", json!(3)),
        (
            "const c = new AbortController(); const r = await fetch('http://a/', { signal: c.signal }); c.abort(); return [r.status, typeof await r.text()]",
            json!([200, "string"]),
        ),
    ] {
        let ctx = Arc::new(TestCtx::default());
        assert_eq!(t.shot(&format!("async function f() {{ {code} }}")).ctx(&ctx).value().await, expected, "{code}");
        assert_eq!(ctx.slow_under_way(), 0, "{code}: the exchange goes on");
    }
    // Once aborted it is no longer under way.
    let many = "async function f() { for (let i = 0; i < 20; i++) { const c = new AbortController(); const p = fetch('http://slow.example/', { signal: c.signal }); c.abort(i); await p.catch(e => e) } return 'all' }";
    assert_eq!(t.shot(many).limits(|limits| limits.pending_ops = 4).value().await, json!("all"));
}

async fn at_top_level(t: EngineUnderTest) {
    let code = "const base = new URL('https://a.example/x'), id = crypto.randomUUID(), coder = new TextEncoder(); setTimeout(() => {}, 10);
        function f() { return [base.host, id.length, coder.encode('é').length] }";
    assert_eq!(t.functions(code).await, Ok(vec!["f".to_owned()]));
    for _ in 0..3 {
        assert_eq!(t.value(code).await, json!(["a.example", 36, 2]));
    }
}
