//! What a hook did, for a person at a terminal.
//!
//! Invariant: everything that the data says is here in some form; long values are cut, and say so. Deliberately no colours.

use std::fmt::Write as _;

use serde_json::Value;

use super::effects::{Effects, Failure, MemoryChange, Shown, Step};

/// Longest value in one line, in characters.
const SHOWN_CHARS: usize = 160;

/// The effects as text. `verbose` cuts nothing.
pub fn human(effects: &Effects, verbose: bool) -> String {
    let limit = if verbose { usize::MAX } else { SHOWN_CHARS };
    let mut out = String::new();
    let _ = writeln!(out, "{} of {} (engine {}, seed {})", effects.hook, effects.script, effects.engine, effects.seed);
    section(&mut out, "steps", effects.steps.iter().enumerate().map(|(index, each)| step(index + 1, each, limit)));
    section(&mut out, "messages, as a client shows them", effects.messages.iter().map(|each| message(each, limit)));
    section(&mut out, "events", effects.events.iter().map(|event| cut(&event.to_string(), limit)));
    section(&mut out, "memory", effects.memory.iter().map(|change| memory(change, limit)));
    if !effects.by_default.is_empty() {
        let _ = writeln!(out, "\nanswered by default (--mocks FILE scripts them): {}", effects.by_default.join(", "));
    }
    section(&mut out, "scripted answers that nobody asked for", effects.unused.iter().cloned());
    match (&effects.failure, &effects.returned) {
        (Some(why), returned) => {
            if let Some(value) = returned {
                let _ = writeln!(out, "\nreturned\n  {}", indented(value));
            }
            out.push_str(&failure(why));
        }
        (None, Some(value)) => {
            let _ = writeln!(out, "\nreturned\n  {}", indented(value));
        }
        (None, None) => out.push_str("\nreturned nothing\n"),
    }
    let _ = write!(out, "\ntook {} ({} on the virtual clock)", real(effects.wall_us), virtually(effects.virtual_ms));
    out
}

fn section(out: &mut String, title: &str, lines: impl Iterator<Item = String>) {
    for (index, line) in lines.enumerate() {
        if index == 0 {
            let _ = writeln!(out, "\n{title}");
        }
        let _ = writeln!(out, "  {line}");
    }
}

fn step(number: usize, step: &Step, limit: usize) -> String {
    let args: Vec<String> = step.args.iter().map(|arg| cut(&arg.to_string(), limit)).collect();
    let times = format!("{number:>3}  {:>9}  {:>8}", format!("+{}", virtually(step.at_ms)), real(step.wall_us));
    let mut line = format!("{times}  {}({})", step.op, args.join(", "));
    if let Some(value) = &step.result {
        let _ = write!(line, " -> {}", cut(&value.to_string(), limit));
    }
    if let Some((code, message)) = &step.error {
        let _ = write!(line, " threw [{code}] {}", cut(message, limit));
    }
    if step.virtual_ms > 0.0 {
        let _ = write!(line, ", waited {}", virtually(step.virtual_ms));
    }
    if step.callbacks > 0 {
        let _ = write!(line, ", {} callbacks", step.callbacks);
    }
    if !step.ended {
        line.push_str(", never ended");
    }
    line
}

fn message(message: &Shown, limit: usize) -> String {
    let block = message.block.as_ref().map(|block| format!(" in {block}")).unwrap_or_default();
    let open = if message.ended { "" } else { ", never closed" };
    let props = match (&message.props["content"], message.props.as_object().map_or(0, serde_json::Map::len)) {
        (Value::String(text), 1) => cut(&format!("{text:?}"), limit),
        _ => cut(&message.props.to_string(), limit),
    };
    format!("{} {}{block}{open}  {props}", message.id, message.kind)
}

fn memory(change: &MemoryChange, limit: usize) -> String {
    let value = |value: &Option<Value>| value.as_ref().map_or("nothing".to_owned(), |value| cut(&value.to_string(), limit));
    let ttl = change.ttl_ms.map(|ms| format!(" for {ms} ms")).unwrap_or_default();
    format!("{}.{}: {} -> {}{ttl}", change.space, change.key, value(&change.before), value(&change.after))
}

/// The failure with its place, as compilers tell it.
fn failure(failure: &Failure) -> String {
    let mut out = String::new();
    let place = failure.frames.first().map(|at| format!("{}:{}:{}: ", at.file, at.line, at.column)).unwrap_or_default();
    let _ = writeln!(out, "\nfailed [{}]\n{place}{}", failure.code, failure.message);
    if let Some(snippet) = &failure.snippet {
        let _ = writeln!(out, "{snippet}");
    }
    for frame in failure.frames.iter().skip(1) {
        let name = if frame.function.is_empty() { "(top level)" } else { &frame.function };
        let _ = writeln!(out, "  called from {name} ({}:{}:{})", frame.file, frame.line, frame.column);
    }
    out
}

fn indented(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default().replace('\n', "\n  ")
}

fn cut(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((at, _)) => format!("{}… ({} bytes)", &text[..at], text.len()),
        None => text.to_owned(),
    }
}

fn virtually(ms: f64) -> String {
    if ms >= 1e3 { format!("{:.3} s", ms / 1e3) } else { format!("{ms} ms") }
}

fn real(us: u64) -> String {
    if us >= 1000 { format!("{}.{} ms", us / 1000, us % 1000 / 100) } else { format!("{us} µs") }
}
