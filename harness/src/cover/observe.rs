//! From a trace to what came of its hooks, chain by chain.
//!
//! Invariant: a chain is one side of one exchange, in the order of its events; a hook that comes again begins a new one.
//! Deliberately no judgement of what was possible.

use std::collections::BTreeMap;

use greenroom_boundary::SpanId;
use greenroom_boundary::trace::{EventKind, HookPhase, TraceEvent};

use super::model::{DeclaredHook, HookDepth, HookOutcome};

/// One hook of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its place among the declared hooks.
    pub(super) hook: usize,
    pub(super) outcome: HookOutcome,
    pub(super) depth: HookDepth,
}

/// What a trace shows.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    /// The chains, each in running order.
    pub(super) chains: Vec<Vec<Seen>>,
    /// Hook events that no declaration explains: `id phase boundary`, and how often.
    pub(super) undeclared: BTreeMap<String, u64>,
}

/// Reads a trace.
pub(super) fn observe(declared: &[DeclaredHook], events: &[TraceEvent]) -> Observed {
    let mut observed = Observed::default();
    let mut open: BTreeMap<(SpanId, HookPhase), Vec<Seen>> = BTreeMap::new();
    for event in events {
        let EventKind::Hook { hook, of, boundary, method, phase, mode, verdict, code, depth, .. } = &event.kind else {
            continue;
        };
        let meant = |candidate: &(usize, &DeclaredHook)| candidate.1.is_meant(hook, *phase, boundary, *mode);
        let candidates = || declared.iter().enumerate().filter(meant);
        let exact = candidates().find(|(_, known)| known.method.as_deref() == Some(method.as_str()));
        let any = || candidates().find(|(_, known)| known.method.is_none());
        let Some((place, _)) = exact.or_else(any) else {
            *observed.undeclared.entry(format!("{hook} {} {boundary}", super::model::phase_name(*phase))).or_default() += 1;
            continue;
        };
        let seen = Seen { hook: place, outcome: HookOutcome::of(*verdict, code.as_deref()), depth: HookDepth::of(*depth) };
        let chain = open.entry((*of, *phase)).or_default();
        if chain.iter().any(|earlier| earlier.hook == seen.hook) {
            observed.chains.push(std::mem::take(chain));
        }
        chain.push(seen);
    }
    observed.chains.extend(open.into_values());
    observed
}
