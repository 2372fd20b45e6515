//! The table of ratios, from what criterion wrote.
//!
//! Invariant: every number is of this run; ratios are those of the least times, as a busy machine only adds. Deliberately no verdict
//! by exit code.

use std::path::PathBuf;

use serde_json::{Value, json};

/// What is compared: a name, the measured one, the one beside it, and what is aimed at.
struct Row {
    what: &'static str,
    ours: &'static str,
    other: Option<&'static str>,
    aim: &'static str,
    /// Whether the aim is met, from the least times in nanoseconds.
    met: fn(f64, f64) -> Option<bool>,
}

const ROWS: [Row; 13] = [
    Row {
        what: "in-process call, beside rmcp over a duplex",
        ours: "in_process_call/greenroom",
        other: Some("in_process_call/rmcp_duplex"),
        aim: "20 times faster",
        met: |ours, other| Some(other >= 20.0 * ours),
    },
    Row {
        what: "the same through a whole gateway over a pipe in memory",
        ours: "in_process_call/greenroom_whole_gateway",
        other: Some("in_process_call/rmcp_duplex"),
        aim: "",
        met: |_, _| None,
    },
    Row {
        what: "in-process call, beside FastMCP in memory",
        ours: "in_process_call/greenroom",
        other: Some("in_process_call/fastmcp_in_memory"),
        aim: "",
        met: |_, _| None,
    },
    Row {
        what: "stdio call through the router, beside a direct one",
        ours: "stdio_call/through_the_router",
        other: Some("stdio_call/direct"),
        aim: "at most 1.15 times",
        met: |ours, other| Some(ours <= 1.15 * other),
    },
    Row {
        what: "gateway in the client's process, beside a direct call",
        ours: "stdio_call/gateway_in_process",
        other: Some("stdio_call/direct"),
        aim: "at most 1.15 times",
        met: |ours, other| Some(ours <= 1.15 * other),
    },
    Row {
        what: "gateway in a process of its own, beside a direct call",
        ours: "stdio_call/gateway_process",
        other: Some("stdio_call/direct"),
        aim: "",
        met: |_, _| None,
    },
    Row {
        what: "gateway in a process of its own, beside `cat | child | cat`",
        ours: "stdio_call/gateway_process",
        other: Some("stdio_call/copying_process"),
        aim: "",
        met: |_, _| None,
    },
    Row {
        what: "direct stdio call, beside rmcp's client",
        ours: "stdio_call/direct",
        other: Some("stdio_call/rmcp_client"),
        aim: "",
        met: |_, _| None,
    },
    Row {
        what: "8 native hooks that consent, beside none",
        ours: "native_hooks/8",
        other: Some("native_hooks/0"),
        aim: "at most 10 µs more",
        met: |ours, other| Some(ours - other <= 10_000.0),
    },
    Row { what: "8 script hooks on V8, beside one", ours: "v8_hooks/8", other: Some("v8_hooks/1"), aim: "", met: |_, _| None },
    Row {
        what: "8 script hooks on QuickJS, beside one",
        ours: "quickjs_hooks/8",
        other: Some("quickjs_hooks/1"),
        aim: "",
        met: |_, _| None,
    },
    Row {
        what: "8 script hooks on V8, beside QuickJS",
        ours: "v8_hooks/8",
        other: Some("quickjs_hooks/8"),
        aim: "",
        met: |_, _| None,
    },
    Row {
        what: "a chain case on the mock (8 hooks, mixed outcomes)",
        ours: "chain_cases/mock",
        other: None,
        aim: "20,000 cases a second",
        met: |ours, _| Some(1e9 / ours >= 20_000.0),
    },
];

/// Prints the table, or JSON if `GREENROOM_BENCH_JSON` is set (`./x bench --peers --json`).
#[expect(clippy::disallowed_methods, reason = "a bench has no other way to be asked for JSON")]
pub(crate) fn print() {
    let rows: Vec<Value> = ROWS.iter().filter_map(row).collect();
    if std::env::var_os("GREENROOM_BENCH_JSON").is_some() {
        println!("{}", json!({"rows": rows}));
        return;
    }
    println!("\n{:<60} {:>10} {:>10} {:>12} {:>10} {:>8}  aim", "", "least", "p50", "beside least", "p50", "ratio");
    for row in &rows {
        let text = |key: &str| row[key].as_f64().map_or_else(String::new, time);
        let ratio = row["ratio"].as_f64().map_or_else(String::new, |ratio| format!("{ratio:.2}"));
        let met = row["met"].as_bool().map_or("", |met| if met { " (met)" } else { " (missed)" });
        let (what, aim) = (row["what"].as_str().unwrap_or_default(), row["aim"].as_str().unwrap_or_default());
        let (least, p50) = (text("least_ns"), text("p50_ns"));
        let (beside, beside_p50) = (text("beside_least_ns"), text("beside_p50_ns"));
        println!("{what:<60} {least:>10} {p50:>10} {beside:>12} {beside_p50:>10} {ratio:>8}  {aim}{met}");
    }
}

fn row(row: &Row) -> Option<Value> {
    let ours = Measured::of(row.ours)?;
    let other = match row.other {
        Some(name) => Some(Measured::of(name)?),
        None => None,
    };
    let beside = other.as_ref().map(|other| other.least_ns);
    Some(json!({
        "what": row.what,
        "least_ns": ours.least_ns,
        "p50_ns": ours.p50_ns,
        "beside_least_ns": beside,
        "beside_p50_ns": other.as_ref().map(|other| other.p50_ns),
        "ratio": beside.map(|beside| beside / ours.least_ns),
        "aim": row.aim,
        "met": (row.met)(ours.least_ns, beside.unwrap_or_default()),
    }))
}

/// Times of one iteration over the samples of a benchmark.
struct Measured {
    least_ns: f64,
    p50_ns: f64,
}

impl Measured {
    fn of(name: &str) -> Option<Self> {
        let target = PathBuf::from(env!("CARGO_BIN_EXE_greenroom")).parent()?.parent()?.join("criterion");
        let text = std::fs::read_to_string(target.join(name).join("new/sample.json")).ok()?;
        let sample: Value = serde_json::from_str(&text).ok()?;
        let numbers = |key: &str| Some(sample[key].as_array()?.iter().filter_map(Value::as_f64).collect::<Vec<f64>>());
        let mut each: Vec<f64> = numbers("times")?.iter().zip(numbers("iters")?).map(|(time, iters)| time / iters).collect();
        each.sort_by(f64::total_cmp);
        Some(Self { least_ns: *each.first()?, p50_ns: *each.get(each.len() / 2)? })
    }
}

fn time(nanos: f64) -> String {
    match nanos {
        n if n < 1e3 => format!("{n:.0} ns"),
        n if n < 1e6 => format!("{:.2} µs", n / 1e3),
        n => format!("{:.2} ms", n / 1e6),
    }
}
