//! Scripts that import modules.
//!
//! Invariant: an import means what the script's links say, and the modules of a call are its own. Deliberately no files.

use std::sync::Arc;

use serde_json::json;

use super::{Case, EngineUnderTest, Shot};
use crate::isolate::{IsolateError, JsException, LinkTarget, Links, Module, Places, Script};

pub(super) fn cases() -> Vec<Case> {
    case_list![modules:
        names_cross, a_module_is_one, modules_are_fresh, cycles_are_live, it_may_import_itself, what_a_cycle_throws,
        frames_name_their_file, import_at_run_time, a_meaning_is_needed, top_level_await, a_top_level_that_loops,
        what_is_offered, private_functions, places_of_generated_code, many_modules,
    ]
}

/// A script of files that import each other as `./name`; the first is the script itself.
fn linked(files: &[(&str, &str)]) -> Script {
    let links = |code: &str| -> Links {
        let named = files.iter().enumerate().filter(|(_, (name, _))| code.contains(&format!("'./{name}'")));
        named
            .map(|(index, (name, _))| {
                let target = index.checked_sub(1).map_or(LinkTarget::Script, LinkTarget::Module);
                (format!("./{name}"), target)
            })
            .collect()
    };
    let module = |(name, code): &(&str, &str)| Module {
        name: (*name).to_owned(),
        code: Arc::from(*code),
        links: links(code),
        places: None,
    };
    let (name, code) = files[0];
    Script { links: links(code), modules: files[1..].iter().map(module).collect(), ..Script::new(name, code) }
}

impl EngineUnderTest {
    fn shot_of(&self, script: Script) -> Shot {
        Shot { code: Arc::new(script), ..self.shot("") }
    }

    async fn load_error(&self, script: Script) -> JsException {
        match self.shot_of(script).error().await {
            IsolateError::Load(exception) => exception,
            other => panic!("expected a script that does not load, got {other:?}"),
        }
    }
}

async fn names_cross(engine: EngineUnderTest) {
    let script = linked(&[
        (
            "a.js",
            "import seven, { six as half, eight } from './b.js'\nimport * as all from './b.js'\nimport './c.js'\n\
             export { deep } from './c.js'\nexport * from './c.js'\nexport function f() { return [seven(), half, eight, Object.keys(all), globalThis.c] }",
        ),
        ("b.js", "export default () => 7\nexport const six = 6; export { deep as eight } from './c.js'"),
        ("c.js", "export const deep = 8; export function g() { return 'g' }; try { globalThis.c = 1 } catch {}"),
    ]);
    let value = engine.shot_of(script.clone()).value().await;
    assert_eq!(value[0], json!(7));
    assert_eq!((&value[1], &value[2]), (&json!(6), &json!(8)));
    assert_eq!(value[3], json!(["default", "eight", "six"]));
    assert_eq!(engine.shot_of(script).function("g").value().await, json!("g"));
}

async fn a_module_is_one(engine: EngineUnderTest) {
    let script = linked(&[
        ("a.js", "import { add } from './b.js'\nimport { seen } from './c.js'\nexport function f() { add(); return seen() }"),
        ("b.js", "import { list } from './d.js'\nexport const add = () => list.push(1)"),
        ("c.js", "import { list } from './d.js'\nexport const seen = () => list"),
        ("d.js", "export const list = []"),
    ]);
    assert_eq!(engine.shot_of(script).value().await, json!([1]));
}

async fn modules_are_fresh(engine: EngineUnderTest) {
    let script = linked(&[
        ("a.js", "import { next } from './b.js'\nlet own = 0; export const f = () => [next(), own++]"),
        ("b.js", "let n = 0; export const next = () => n++"),
    ]);
    for _ in 0..4 {
        assert_eq!(engine.shot_of(script.clone()).value().await, json!([0, 0]));
    }
}

async fn cycles_are_live(engine: EngineUnderTest) {
    let script = linked(&[
        ("a.js", "import { even } from './b.js'\nexport let n = 0; export function f() { n = 5; return [even(4), even(7)] }"),
        (
            "b.js",
            "import { odd } from './c.js'\nimport { n } from './a.js'\nexport const even = (x) => x === 0 ? n : odd(x - 1)",
        ),
        ("c.js", "import { even } from './b.js'\nexport const odd = (x) => x === 0 ? 'odd' : even(x - 1)"),
    ]);
    assert_eq!(engine.shot_of(script).value().await, json!([5, "odd"]));
}

async fn it_may_import_itself(engine: EngineUnderTest) {
    let script = linked(&[(
        "a.js",
        "import { f as me, g as h } from './a.js'\nexport const g = 3; export function f() { return [me === f, h] }",
    )]);
    assert_eq!(engine.shot_of(script).value().await, json!([true, 3]));
}

async fn what_a_cycle_throws(engine: EngineUnderTest) {
    let script = linked(&[
        ("a.js", "import { b } from './b.js'\nexport const a = 1; export function f() { return b }"),
        ("b.js", "import { a } from './a.js'\nexport const b = a + 1"),
    ]);
    for _ in 0..2 {
        let thrown = engine.load_error(script.clone()).await;
        assert_eq!(thrown.class, "ReferenceError", "{thrown:?}");
        assert_eq!(thrown.frames.first().map(|frame| (frame.file.as_str(), frame.line)), Some(("b.js", 2)), "{thrown:?}");
    }
    engine.still_works().await;
}

async fn frames_name_their_file(engine: EngineUnderTest) {
    let script = linked(&[
        ("a.js", "import { b } from './b.js'\nexport function f() { return b() }"),
        ("b.js", "\nexport function b() { throw new TypeError('no') }"),
    ]);
    let IsolateError::Js(thrown) = engine.shot_of(script).error().await else { panic!("it throws") };
    let places: Vec<_> = thrown.frames.iter().map(|frame| (frame.file.as_str(), frame.line, frame.column)).collect();
    let lines: Vec<_> = places.iter().map(|(file, line, _)| (*file, *line)).collect();
    assert_eq!(lines, [("b.js", 2), ("a.js", 2)], "{places:?}");
}

async fn import_at_run_time(engine: EngineUnderTest) {
    for code in [
        "import { b } from './b.js'\nexport async function f() { return [b, await import('./b.js')] }",
        "export async function f() { return await import('./b.js') }",
        "async function f() { return await import('node:fs') }",
    ] {
        let mut script = linked(&[("a.js", code), ("b.js", "export const b = 1")]);
        if !code.starts_with("import") {
            script = Script::new("a.js", code);
        }
        let IsolateError::Js(thrown) = engine.shot_of(script).error().await else { panic!("it throws") };
        assert_eq!((thrown.class.as_str(), thrown.code.as_deref()), ("TypeError", Some("ERR_IMPORT")), "{thrown:?}");
    }
    engine.still_works().await;
}

async fn a_meaning_is_needed(engine: EngineUnderTest) {
    let mut script = linked(&[("a.js", "import './b.js'\nexport function f() {}"), ("b.js", "import 'fs'")]);
    let thrown = engine.load_error(script.clone()).await;
    assert_eq!(thrown.code.as_deref(), Some("ERR_IMPORT"), "{thrown:?}");
    script.links.clear();
    assert!(matches!(engine.shot_of(script).error().await, IsolateError::Load(_)));
    engine.still_works().await;
}

async fn top_level_await(engine: EngineUnderTest) {
    let settles = [
        ("a.js", "import { late } from './b.js'\nexport const f = () => late"),
        ("b.js", "export const late = await Promise.resolve(4).then((n) => n + 1)"),
    ];
    assert_eq!(engine.shot_of(linked(&settles)).value().await, json!(5));
    let alone = Script::new("a.js", "const late = await 6; export const f = () => late");
    assert_eq!(engine.shot_of(alone).value().await, json!(6));
    let never = [settles[0], ("b.js", "export const late = await new Promise(() => {})")];
    assert_eq!(engine.shot_of(linked(&never)).error().await, IsolateError::NeverSettles);
    let rejects = [settles[0], ("b.js", "export const late = await Promise.reject(new RangeError('no'))")];
    let thrown = engine.load_error(linked(&rejects)).await;
    assert_eq!((thrown.class.as_str(), thrown.message.as_str()), ("RangeError", "no"));
    engine.still_works().await;
}

async fn a_top_level_that_loops(engine: EngineUnderTest) {
    let script = linked(&[("a.js", "import './b.js'\nexport function f() {}"), ("b.js", "for (;;) {}")]);
    assert_eq!(engine.shot_of(script).cpu_ms(50).error().await, IsolateError::CpuLimit { limit_ms: 50 });
    engine.still_works().await;
}

async fn what_is_offered(engine: EngineUnderTest) {
    let script = linked(&[
        (
            "a.js",
            "export * from './b.js'\nexport { z, a as y } from './b.js'\nexport function own() {}\nfunction hidden() {}\nexport const n = 1\n\
             export class K {}\nexport default function () {}",
        ),
        ("b.js", "export function z() {}\nexport function a() {}\nexport class C {}\nexport const m = 2"),
    ]);
    let names = engine.engine.functions(&Arc::new(script), &crate::isolate::Limits::default()).await;
    assert_eq!(names.expect("it loads"), ["own", "hidden", "default", "a", "y", "z"]);
}

async fn private_functions(engine: EngineUnderTest) {
    let script = linked(&[
        ("a.js", "import { b } from './b.js'\nfunction f() { return b }"),
        ("b.js", "export const b = 1; function hidden() {}"),
    ]);
    assert_eq!(engine.shot_of(script.clone()).value().await, json!(1));
    let missing = engine.shot_of(script).function("hidden").run().await;
    assert!(matches!(missing, Ok(crate::isolate::CallValue::NoSuchFunction)), "{missing:?}");
}

async fn places_of_generated_code(engine: EngineUnderTest) {
    let mut script = linked(&[
        ("a.ts", "import { b } from './b.ts'\nexport function f() { return b() }"),
        ("b.ts", "export function b() { null.x }"),
    ]);
    script.places = Some(Arc::new(Places::new(vec![((2, 1), (20, 3))])));
    let mut module = script.modules[0].clone();
    module.places = Some(Arc::new(Places::new(vec![((1, 1), (9, 9))])));
    script.modules = Arc::from([module]);
    let IsolateError::Js(thrown) = engine.shot_of(script).error().await else { panic!("it throws") };
    let places: Vec<_> = thrown.frames.iter().map(|frame| (frame.file.as_str(), frame.line, frame.column)).collect();
    assert_eq!(places[..2], [("b.ts", 9, 9), ("a.ts", 20, 3)]);
}

/// A long chain of modules is linked; engines descend once per module.
async fn many_modules(engine: EngineUnderTest) {
    const COUNT: usize = 100;
    let names: Vec<String> = (0..=COUNT).map(|index| format!("m{index}.js")).collect();
    let code = |index: usize| match index {
        COUNT => "export const n = 0".to_owned(),
        _ => {
            format!("import {{ n as inner }} from './m{}.js'\nexport const n = inner + 1\nexport const f = () => n", index + 1)
        }
    };
    let codes: Vec<String> = (0..=COUNT).map(code).collect();
    let files: Vec<(&str, &str)> = names.iter().map(String::as_str).zip(codes.iter().map(String::as_str)).collect();
    assert_eq!(engine.shot_of(linked(&files)).value().await, json!(COUNT));
}
