//! Measures the bridge next to bare V8, in one run: `cargo run --release -p greenroom-isolate-v8 --example measure`.
//! With names of groups (`floors`, `hooks`, `operations`, `kills`) only those.
//!
//! Invariant: a hook is timed as the host sees it, thread hop included, on a ready engine; floors are timed in the same process.
//! Machines have fast and slow phases: compare numbers of one run only. Deliberately no statistics beyond min, p50 and p99.
#![expect(clippy::disallowed_methods, reason = "a measuring program reads the clock, and paces what it measures")]
#![expect(clippy::print_stdout, reason = "its result")]

mod support;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use greenroom_boundary::isolate::{IsolateError, Isolation};
use greenroom_isolate_v8::{V8Options, initialise_v8};
use support::{World, limits, raw, script};

/// 60 functions and a `Create` that copies two messages, as hooks are.
fn hook() -> String {
    let mut code = String::new();
    for n in 0..60 {
        code.push_str(&format!("function helper{n}(a, b) {{ return a > b ? a - b : {n} + b }}\n"));
    }
    code + "function Create(ctx, messages) { return { messages: messages.map(m => ({ ...m })), metadata: { chat: ctx.chat_id } } }
        function Noop(ctx, times) { for (let i = 0; i < times; i++) ctx.MessageID() }
        function Send(ctx, times) { for (let i = 0; i < times; i++) ctx.Send('hello') }
        function Append(ctx, times) { for (let i = 0; i < times; i++) ctx.Append('msg_1', 'thirty-two bytes of streamed text') }
        function Chunks(ctx, times) { ctx.llm.Stream(times, [], { onChunk() {} }) }
        function Spin() { for (;;) {} }\n"
}

const MESSAGES: &str = r#"[{"role":"system","content":"You are brief."},{"role":"user","content":"hello"}]"#;

fn row(name: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let at = |part: f64| us(times[((times.len() - 1) as f64 * part) as usize]);
    println!(
        "{name:<42} min {:>9.3}  p10 {:>9.3}  p50 {:>9.3}  p99 {:>9.3} µs  ({})",
        at(0.0),
        at(0.1),
        at(0.5),
        at(0.99),
        times.len()
    );
}

fn timed(work: impl FnOnce()) -> Duration {
    let started = Instant::now();
    work();
    started.elapsed()
}

fn floors() {
    std::thread::spawn(|| {
        let mut isolate = v8::Isolate::new(v8::Isolate::create_params());
        v8::scope!(let scope, &mut isolate);
        let mut times = Vec::new();
        for _ in 0..60 {
            v8::scope!(let scope, scope);
            times.push(timed(|| {
                v8::Context::new(scope, v8::ContextOptions::default());
            }));
        }
        row("floor: Context::new", times);
        let context = v8::Context::new(scope, v8::ContextOptions::default());
        let scope = &mut v8::ContextScope::new(scope, context);
        let function = v8::Function::new(
            scope,
            |_: &mut v8::PinScope<'_, '_>, _: v8::FunctionCallbackArguments<'_>, mut rv: v8::ReturnValue<'_, v8::Value>| {
                rv.set_undefined()
            },
        )
        .expect("a function");
        let key = v8::String::new(scope, "noop").expect("a string");
        context.global(scope).set(scope, key.into(), function.into());
        let code = v8::String::new(scope, "(times) => { for (let i = 0; i < times; i++) noop() }").expect("a string");
        let function = v8::Script::compile(scope, code, None).and_then(|script| script.run(scope)).expect("a value");
        let function = v8::Local::<v8::Function>::try_from(function).expect("a function");
        let mut times = Vec::new();
        for _ in 0..30 {
            let count = v8::Integer::new(scope, 100_000);
            let undefined = v8::undefined(scope).into();
            let spent = timed(|| {
                function.call(scope, undefined, &[count.into()]);
            });
            times.push(spent / 100_000);
        }
        row("floor: call of a bare host function", times);
        let code = v8::String::new(scope, &hook()).expect("a string");
        let script = v8::Script::compile(scope, code, None).expect("it compiles").get_unbound_script(scope);
        let ready: Vec<_> = (0..40).map(|_| v8::Context::new(scope, v8::ContextOptions::default())).collect();
        let mut times = Vec::new();
        for context in ready {
            let scope = &mut v8::ContextScope::new(scope, context);
            times.push(timed(|| {
                script.bind_to_current_context(scope).run(scope).expect("it runs");
                let create = function_of(scope, context, "Create");
                bare_call(scope, create);
            }));
        }
        row("floor: bind, run, call on a ready context", times);
    })
    .join()
    .expect("the floor is measured");
}

/// Messages to a thread and back, as any engine with threads of its own needs.
fn hops(name: &str, rounds: usize, pause: Option<Duration>, thread: fn(Receiver<()>, Sender<()>)) {
    let ((there, inbox), (answer, back)) = (channel(), channel());
    let thread = std::thread::spawn(move || thread(inbox, answer));
    let mut times = Vec::with_capacity(rounds);
    for round in 0..rounds + 100 {
        pause.into_iter().for_each(std::thread::sleep);
        let time = timed(|| {
            there.send(()).expect("the thread is there");
            back.recv().expect("it answers");
        });
        // What is done for the first time is no floor.
        times.extend((round >= 100).then_some(time));
    }
    drop(there);
    thread.join().expect("it ends");
    row(name, times);
}

/// A thread that does nothing.
fn nothing(inbox: Receiver<()>, answer: Sender<()>) {
    inbox.iter().for_each(|()| answer.send(()).expect("somebody waits"));
}

/// A thread that calls a function of a script in one warm context, with JSON in and out, and nothing around it.
fn bare_calls(inbox: Receiver<()>, answer: Sender<()>) {
    let mut isolate = v8::Isolate::new(v8::Isolate::create_params());
    v8::scope!(let scope, &mut isolate);
    let context = v8::Context::new(scope, v8::ContextOptions::default());
    let scope = &mut v8::ContextScope::new(scope, context);
    let code = v8::String::new(scope, &hook()).expect("a string");
    v8::Script::compile(scope, code, None).expect("it compiles").run(scope).expect("it runs");
    let create = function_of(scope, context, "Create");
    for () in inbox {
        v8::scope!(let scope, scope);
        bare_call(scope, create);
        answer.send(()).expect("somebody waits");
    }
}

fn function_of<'s>(
    scope: &mut v8::PinScope<'s, '_>,
    context: v8::Local<'s, v8::Context>,
    name: &str,
) -> v8::Local<'s, v8::Function> {
    let key = v8::String::new(scope, name).expect("a string");
    let value = context.global(scope).get(scope, key.into()).expect("a value");
    v8::Local::<v8::Function>::try_from(value).expect("a function")
}

fn bare_call<'s>(scope: &mut v8::PinScope<'s, '_>, function: v8::Local<'s, v8::Function>) {
    let text = v8::String::new(scope, MESSAGES).expect("a string");
    let messages = v8::json::parse(scope, text).expect("JSON");
    let ctx = v8::Object::new(scope);
    let undefined = v8::undefined(scope).into();
    let value = function.call(scope, undefined, &[ctx.into(), messages]).expect("a value");
    v8::json::stringify(scope, value).expect("JSON").to_rust_string_lossy(scope);
}

fn hooks(world: &World, name: &str, isolation: Isolation, rounds: usize, paced: Option<Duration>) {
    let script = script(&hook());
    let call = || drop(world.call(&script, "Create", vec![raw(MESSAGES)], limits(isolation)).expect("a value"));
    (0..100.min(rounds)).for_each(|_| call());
    let mut times = Vec::with_capacity(rounds);
    for _ in 0..rounds {
        if let Some(pause) = paced {
            // As between the messages of people: nothing is left to tidy up, and the threads have gone to sleep.
            world.rest(|_| true).expect("the engine comes to rest");
            std::thread::sleep(pause);
        }
        times.push(timed(call));
    }
    let total: Duration = times.iter().sum();
    row(name, times);
    if paced.is_none() {
        println!("{:<42} {:.0} hooks/s one after the other", "", rounds as f64 / total.as_secs_f64());
    }
}

fn inside(world: &World, name: &str, function: &str, isolation: Isolation, times: u32) {
    let script = script(&hook());
    let one = |_| {
        timed(|| drop(world.call(&script, function, vec![raw(&times.to_string())], limits(isolation)).expect("a value")))
            / times
    };
    row(name, (0..20).map(one).collect());
}

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let wants = |group: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == group);
    initialise_v8();
    if wants("floors") {
        floors();
        let paced = Some(Duration::from_micros(300));
        hops("floor: to a thread and back", 20_000, None, nothing);
        hops("floor: to a thread and back, paced", 1000, paced, nothing);
        hops("floor: a bare warm call on a thread", 20_000, None, bare_calls);
        hops("floor: a bare warm call on a thread, paced", 1000, paced, bare_calls);
    }
    let world = World::new(V8Options::default());
    if wants("hooks") {
        all_hooks(&world);
    }
    if wants("operations") {
        for isolation in [Isolation::Context, Isolation::Frozen] {
            let level = isolation.name();
            inside(&world, &format!("host no-op ({level})"), "Noop", isolation, 200_000);
            inside(&world, &format!("Send(str) ({level})"), "Send", isolation, 50_000);
            inside(&world, &format!("Append ({level})"), "Append", isolation, 50_000);
            inside(&world, &format!("onChunk, other thread ({level})"), "Chunks", isolation, 2000);
        }
    }
    if wants("kills") {
        kills(&world);
    }
    println!("{:?}", world.engine.census());
}

fn all_hooks(world: &World) {
    hooks(world, "context, paced", Isolation::Context, 600, Some(Duration::from_micros(300)));
    hooks(world, "context, one after the other", Isolation::Context, 3000, None);
    hooks(world, "frozen, one after the other", Isolation::Frozen, 20_000, None);
    hooks(world, "frozen, paced", Isolation::Frozen, 1000, Some(Duration::from_micros(300)));
    hooks(world, "isolate", Isolation::Isolate, 60, None);
    let fresh = World::new(V8Options { spare_contexts: 0, ..V8Options::default() });
    hooks(&fresh, "fresh, no spare", Isolation::Context, 600, None);
}

fn kills(world: &World) {
    let spin = script(&hook());
    let limit = Duration::from_millis(20);
    let kills = (0..30).map(|_| {
        let mut limits = limits(Isolation::Context);
        limits.cpu = limit;
        timed(|| assert!(matches!(world.call(&spin, "Spin", Vec::new(), limits), Err(IsolateError::CpuLimit { .. }))))
            .saturating_sub(limit)
    });
    row("kill, beyond its 20 ms (wall, busy machine)", kills.collect());
}
