//! Loading: modules, positions, names; and the world that a script finds.

use std::sync::Arc;

use greenroom_boundary::isolate::{IsolateDriver, IsolateError, Limits};
use serde_json::json;
use test_case::test_case;

use crate::world::{World, script};

fn functions(world: &World, code: &str) -> Result<Vec<String>, IsolateError> {
    world.runtime.block_on(world.engine.functions(&script(code), &Limits::default()))
}

#[test_case("function b() {}\nvar a = () => 1\nlet c = 1\nclass D {}\n", &["b", "a"]; "a classic script")]
#[test_case("export const b = () => 1\nexport { x as a }\nfunction x() { function inner() {} }\n// a comment at the end", &["b", "a", "x"]; "a module with private functions")]
#[test_case("export default { Create() {} }\nexport function Next() {}", &["Next"]; "a default that is no function")]
#[test_case("export class K {}\nexport const n = 1, f = function () {}, s = 'function no() {}'", &["f"]; "exports that are no functions")]
#[test_case("const t = await Promise.resolve(2)\nexport function f() { return t }", &["f"]; "top-level await")]
#[test_case("function über() {}\nexport function $_() {}", &["über", "$_"]; "unusual names")]
fn lists_functions_in_source_order(code: &str, expected: &[&str]) {
    let world = World::new();
    assert_eq!(functions(&world, code), Ok(expected.iter().map(|name| (*name).to_owned()).collect()));
}

#[test]
fn imports_are_refused_with_their_place() {
    let world = World::new();
    let error = functions(&world, "export function f() {}\n  import { x } from './other'\n").expect_err("imports are refused");
    let IsolateError::Load(exception) = error else { panic!("not a load error: {error:?}") };
    assert_eq!(exception.code.as_deref(), Some("ERR_IMPORT"));
    assert_eq!((exception.frames[0].line, exception.frames[0].file.as_str()), (2, "agents/hook.ts"));
}

#[test_case("export function f() {\n  return 1 +\n}\n", 3; "in a module")]
#[test_case("function f() {\n  let a; let a\n}", 2; "in a classic script")]
#[test_case("export function f() {}\nexport function f() {}\n", 2; "a double export")]
fn syntax_errors_have_their_place(code: &str, line: u32) {
    let world = World::new();
    let error = functions(&world, code).expect_err("it does not parse");
    let IsolateError::Load(exception) = error else { panic!("not a load error: {error:?}") };
    assert_eq!((exception.class.as_str(), exception.frames[0].line), ("SyntaxError", line), "{exception:?}");
}

#[test]
fn module_errors_have_the_positions_of_the_source() {
    let world = World::new();
    let thrown = world.thrown("export async function f(ctx) {\n  await ctx.mcp.CallToolAsync('s', 1)\n  return helper()\n}\nfunction helper() {\n    throw new RangeError('here')\n}\n");
    let frames: Vec<_> = thrown.frames.iter().map(|frame| (frame.function.as_str(), frame.line, frame.column)).collect();
    assert_eq!(frames, [("helper", 6, 11), ("f", 3, 10)]);
}

#[test]
fn time_place_and_language_do_not_depend_on_the_machine() {
    let world = World::new();
    let code = "function f() { return [
          new Date().toISOString(), typeof Date(), new Date(2020, 0, 1).toISOString(), new Date().constructor === Date,
          new (class extends Date {})().getTime(), Date.length, Date.name,
          new Intl.DateTimeFormat().resolvedOptions().timeZone, new Intl.DateTimeFormat('de').format(), (1234.5).toLocaleString(),
          new Intl.NumberFormat('de').format(1234.5), 'ä'.localeCompare('z'), /\\p{L}/u.test('é') ] }";
    assert_eq!(
        world.value(code),
        json!([
            "2023-11-14T22:13:20.123Z",
            "string",
            "2020-01-01T00:00:00.000Z",
            true,
            1_700_000_000_123_i64,
            7,
            "Date",
            "UTC",
            "14.11.2023",
            "1,234.5",
            "1.234,5",
            -1,
            true
        ])
    );
}

#[test]
fn plans_are_kept_by_content() {
    let world = World::new();
    let code = "export function f() { return hidden() }\nfunction hidden() { return 1 }";
    for _ in 0..3 {
        assert_eq!(world.value(code), json!(1));
    }
    assert_eq!(world.value("export function f() { return 2 }"), json!(2));
    assert_eq!(Arc::strong_count(&script(code)), 1);
}
