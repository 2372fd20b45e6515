//! What a script throws arrives whole: class, message, code, cause and place.

use serde_json::json;

use super::{Case, EngineUnderTest};
use crate::isolate::IsolateError;

pub(super) fn cases() -> Vec<Case> {
    case_list![errors:
        class_message_code, frames_have_places, cause_chain, thrown_values, thrown_null, custom_class, at_most_ten_frames, deep_causes,
        rejection_is_thrown, syntax_error_place, syntax_error_in_functions, top_level_throw, unhandled_rejection,
        handled_later_is_handled, stack_overflow, hostile_errors, not_a_function_is_a_type_error,
    ]
}

async fn class_message_code(t: EngineUnderTest) {
    let thrown = t.thrown("function f() { const e = new RangeError('too far'); e.code = 'E_FAR'; throw e }").await;
    assert_eq!(
        (thrown.class.as_str(), thrown.message.as_str(), thrown.code.as_deref()),
        ("RangeError", "too far", Some("E_FAR"))
    );
    assert_eq!(thrown.cause, None);
    let thrown = t.thrown("function f() { null.x }").await;
    assert_eq!((thrown.class.as_str(), thrown.code), ("TypeError", None));
}

async fn frames_have_places(t: EngineUnderTest) {
    let code = "function inner() {\n  throw new Error('here')\n}\nfunction f() {\n  return 1 + inner()\n}\n";
    let thrown = t.thrown(code).await;
    let frames: Vec<_> = thrown.frames.iter().map(|it| (it.function.as_str(), it.file.as_str(), it.line)).collect();
    assert_eq!(frames, [("inner", "hook.js", 2), ("f", "hook.js", 5)]);
    assert!(thrown.frames.iter().all(|frame| frame.column >= 3), "{:?}", thrown.frames);
}

async fn cause_chain(t: EngineUnderTest) {
    let code = "function f() { throw new Error('outer', { cause: new TypeError('inner', { cause: 'text' }) }) }";
    let cause = t.thrown(code).await.cause.expect("a cause");
    assert_eq!((cause.class.as_str(), cause.message.as_str()), ("TypeError", "inner"));
    let root = cause.cause.expect("its cause");
    assert_eq!((root.class.as_str(), root.message.as_str()), ("Error", "text"));
}

async fn thrown_values(t: EngineUnderTest) {
    for (code, text) in [("'oops'", "oops"), ("42", "42"), ("undefined", "undefined"), ("true", "true")] {
        let thrown = t.thrown(&format!("function f() {{ throw {code} }}")).await;
        assert_eq!((thrown.class.as_str(), thrown.message.as_str()), ("Error", text), "{code}");
    }
}

async fn thrown_null(t: EngineUnderTest) {
    let thrown = t.thrown("function f() { throw null }").await;
    assert_eq!((thrown.class.as_str(), thrown.message.as_str()), ("Error", "null"));
}

async fn custom_class(t: EngineUnderTest) {
    let code =
        "class Mine extends Error { constructor(m) { super(m); this.name = 'Mine' } }\nfunction f() { throw new Mine('m') }";
    let thrown = t.thrown(code).await;
    assert_eq!((thrown.class.as_str(), thrown.message.as_str()), ("Mine", "m"));
}

async fn at_most_ten_frames(t: EngineUnderTest) {
    let thrown = t
        .thrown("function g(n) { if (n) return g(n - 1) + 1; throw new Error('deep') }\nfunction f() { return g(40) + 1 }")
        .await;
    assert_eq!(thrown.frames.len(), 10);
}

async fn deep_causes(t: EngineUnderTest) {
    let code =
        "function f() { let e = new Error('0'); for (let i = 1; i < 40; i++) e = new Error('' + i, { cause: e }); throw e }";
    let mut thrown = t.thrown(code).await;
    let mut depth = 0;
    while let Some(cause) = thrown.cause.take() {
        thrown = *cause;
        depth += 1;
    }
    assert_eq!(depth, 8);
    t.thrown("function f() { const e = new Error('self'); e.cause = e; throw e }").await;
}

async fn rejection_is_thrown(t: EngineUnderTest) {
    let thrown = t.thrown("async function f() {\n  await null\n  throw new RangeError('late')\n}").await;
    assert_eq!((thrown.class.as_str(), thrown.message.as_str()), ("RangeError", "late"));
    assert_eq!(thrown.frames.first().map(|frame| frame.line), Some(3));
    assert_eq!(t.thrown("function f() { return Promise.reject('why') }").await.message, "why");
}

async fn syntax_error_place(t: EngineUnderTest) {
    let error = t.shot("function f() {\n  return 1 +* 2\n}\n").error().await;
    let IsolateError::Load(exception) = &error else { panic!("a syntax error does not load: {error:?}") };
    assert_eq!(exception.class, "SyntaxError");
    let place = exception.frames.first().expect("a place");
    assert_eq!((place.file.as_str(), place.line), ("hook.js", 2));
    assert!(place.column > 1, "{place:?}");
    t.still_works().await;
}

async fn syntax_error_in_functions(t: EngineUnderTest) {
    assert_eq!(t.functions("function f( {").await.map_err(|error| error.code()), Err("HOOK_LOAD"));
}

async fn top_level_throw(t: EngineUnderTest) {
    let error = t.shot("const a = 1\nthrow new RangeError('at load')\nfunction f() {}").error().await;
    let IsolateError::Load(exception) = &error else { panic!("its top level threw: {error:?}") };
    assert_eq!((exception.class.as_str(), exception.message.as_str()), ("RangeError", "at load"));
    assert_eq!(exception.frames.first().map(|frame| frame.line), Some(2));
}

async fn unhandled_rejection(t: EngineUnderTest) {
    for code in
        ["Promise.reject(new TypeError('lost')); return 1", "(async () => { await null; throw new TypeError('lost') })()"]
    {
        let error = t.shot(&format!("function f() {{ {code} }}")).error().await;
        let IsolateError::UnhandledRejection(exception) = &error else { panic!("nobody handled it: {error:?}") };
        assert_eq!((exception.class.as_str(), exception.message.as_str()), ("TypeError", "lost"));
    }
    t.still_works().await;
}

async fn handled_later_is_handled(t: EngineUnderTest) {
    let code = "async function f() { const p = Promise.reject(new Error('x')); await null; try { await p } catch (e) { return e.message } }";
    assert_eq!(t.value(code).await, json!("x"));
}

async fn stack_overflow(t: EngineUnderTest) {
    let thrown = t.thrown("function f() { return f() + 1 }").await;
    assert_eq!(thrown.class, "RangeError");
    assert_eq!(
        t.value("function g() { return g() + 1 }\nfunction f() { try { g() } catch { return 'caught' } }").await,
        json!("caught")
    );
    t.still_works().await;
}

async fn hostile_errors(t: EngineUnderTest) {
    for code in [
        "throw new Proxy({}, { get() { throw new Error('trap') }, getPrototypeOf() { throw new Error('trap') } })",
        "const e = new Error('m'); Object.defineProperty(e, 'message', { get() { throw 1 } }); throw e",
        "const e = new Error('m'); Object.defineProperty(e, 'stack', { get() { throw 1 } }); throw e",
        "throw { toString() { throw new Error('again') } }",
        "throw Object.create(null)",
        "throw Symbol('s')",
        "const e = new Error('m'); e.name = {}; e.code = {}; e.cause = () => 1; throw e",
    ] {
        t.thrown(&format!("function f() {{ {code} }}")).await;
    }
    t.still_works().await;
}

async fn not_a_function_is_a_type_error(t: EngineUnderTest) {
    let thrown = t.thrown("function f() {\n  const g = 1\n  g()\n}").await;
    assert_eq!((thrown.class.as_str(), thrown.frames.first().map(|frame| frame.line)), ("TypeError", Some(3)));
}
