//! Counting what runs: the same counts at each level, in the positions of the file.

use std::fmt::Write as _;

use greenroom_boundary::isolate::{HandOff, Isolation};
use greenroom_isolate_v8::V8Options;
use test_case::test_case;

use crate::world::World;

const CLASSIC: &str = "// ü: two bytes, one unit
function f(ctx) {
  let sum = 0;
  for (const n of [1, 2, 3]) { if (n > 2) { sum += n } else { sum -= n } }
  return sum > 100 ? never() : sum;
}
function never() { return 1 }
";
const MODULE: &str = "export function f(ctx) { return helper(ctx.Send('x').id) }
function helper(id) { return id === 1 ? 'one' : 'many' }
function never() { return 1 }
";

/// Each function with its calls, and each stretch of code with its count.
fn counted(code: &str, isolation: Isolation, calls: usize) -> String {
    let mut world = World::with(V8Options { coverage: true, ..V8Options::default() }, HandOff::Strict);
    world.limits.isolation = isolation;
    for _ in 0..calls {
        world.call(code).expect("it returns");
    }
    let coverage = world.engine.coverage();
    assert_eq!(coverage.files.len(), 1);
    let units: Vec<u16> = code.encode_utf16().collect();
    let text = |start: u32, end: u32| String::from_utf16_lossy(&units[start as usize..end as usize]).trim().to_owned();
    let mut told = String::new();
    for (place, function) in coverage.files.values().flat_map(|file| &file.functions) {
        let _ = writeln!(told, "{:?} {}", place.name, function.calls);
        for block in function.stretches().iter().filter(|block| function.blocks.contains(&(block.start, block.end))) {
            let _ = writeln!(told, "  {} {}", block.count, text(block.start, block.end));
        }
    }
    told
}

#[test_case(Isolation::Frozen)]
#[test_case(Isolation::Context)]
#[test_case(Isolation::Isolate)]
fn a_classic_script(isolation: Isolation) {
    let wanted = "\"\" 3\n\"f\" 3\n  3 { sum += n }\n  6 else { sum -= n }\n  0 ? never()\n\"never\" 0\n";
    assert_eq!(counted(CLASSIC, isolation, 3), wanted);
}

#[test_case(Isolation::Frozen)]
#[test_case(Isolation::Context)]
#[test_case(Isolation::Isolate)]
fn a_module(isolation: Isolation) {
    let wanted = "\"\" 2\n\"f\" 2\n\"helper\" 2\n  0 : 'many'\n\"never\" 0\n";
    assert_eq!(counted(MODULE, isolation, 2), wanted);
}

#[test]
fn a_call_that_was_stopped_counts() {
    let mut world = World::with(V8Options { coverage: true, ..V8Options::default() }, HandOff::Strict);
    world.limits.cpu = std::time::Duration::from_millis(30);
    world.call("function f() { for (;;) {} }\nfunction g() {}").expect_err("it is stopped");
    let coverage = world.engine.coverage();
    let file = coverage.files.values().next().expect("it ran");
    let calls: Vec<_> = file.functions.iter().map(|(place, function)| (place.name.as_str(), function.calls)).collect();
    assert_eq!(calls, [("", 1), ("f", 1), ("g", 0)]);
}
