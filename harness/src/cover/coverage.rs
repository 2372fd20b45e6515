//! The tally: reachable cells and edges of all hosts, and who covered them.
//!
//! Invariant: the order in which scenarios are added changes nothing in the report. A cell is reachable if one declared
//! hook of its kind can get there. Deliberately no judgement of scenarios: the caller leaves out those that failed.

use std::collections::{BTreeMap, BTreeSet};

use greenroom_boundary::trace::TraceEvent;

use super::model::{Cell, DeclaredHook, HookDepth, HookKindKey, HookOutcome};
use super::observe::observe;

/// A hook of one scenario; the cases of its matrix count together.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct HookRef {
    pub(super) scenario: String,
    pub(super) hook: String,
    pub(super) boundary: String,
    pub(super) kind: HookKindKey,
}

/// After this came of a hook of one kind, a hook of another kind was next or later in the chain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Edge {
    pub(super) from: HookKindKey,
    pub(super) outcome: HookOutcome,
    pub(super) to: HookKindKey,
}

/// What became of the later hook.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Follow {
    pub(super) ran: u64,
    pub(super) skipped: u64,
}

/// One hook's own cells.
#[derive(Clone, Debug, Default)]
pub(super) struct OwnCells {
    pub(super) reachable: BTreeSet<(HookDepth, HookOutcome)>,
    pub(super) seen: BTreeSet<(HookDepth, HookOutcome)>,
}

/// Coverage of hook paths by a suite.
#[derive(Clone, Debug, Default)]
pub struct HookCoverage {
    pub(super) reachable: BTreeSet<Cell>,
    /// Runs by scenario.
    pub(super) hits: BTreeMap<Cell, BTreeMap<String, u64>>,
    pub(super) kinds: BTreeSet<HookKindKey>,
    pub(super) cannot: BTreeMap<(HookKindKey, HookOutcome), BTreeSet<String>>,
    pub(super) not_deeper: BTreeMap<HookKindKey, BTreeSet<String>>,
    pub(super) edges_reachable: BTreeSet<Edge>,
    pub(super) edges: BTreeMap<Edge, Follow>,
    pub(super) hooks: BTreeMap<HookRef, OwnCells>,
    pub(super) undeclared: BTreeMap<String, u64>,
    pub(super) scenarios: BTreeSet<String>,
}

impl HookCoverage {
    /// Adds a case: what its host declares, and its trace.
    pub fn add(&mut self, scenario: &str, declared: &[DeclaredHook], events: &[TraceEvent]) {
        self.scenarios.insert(scenario.to_owned());
        self.declare(scenario, declared);
        let observed = observe(declared, events);
        for (what, count) in observed.undeclared {
            *self.undeclared.entry(format!("{scenario}: {what}")).or_default() += count;
        }
        for chain in &observed.chains {
            for (place, seen) in chain.iter().enumerate() {
                let hook = &declared[seen.hook];
                let cell = Cell { kind: hook.kind(), depth: seen.depth, outcome: seen.outcome };
                *self.hits.entry(cell).or_default().entry(scenario.to_owned()).or_default() += 1;
                self.hooks.entry(reference(scenario, hook)).or_default().seen.insert((seen.depth, seen.outcome));
                for later in &chain[place + 1..] {
                    let edge = Edge { from: hook.kind(), outcome: seen.outcome, to: declared[later.hook].kind() };
                    let follow = self.edges.entry(edge).or_default();
                    match later.outcome {
                        HookOutcome::Skipped => follow.skipped += 1,
                        _ => follow.ran += 1,
                    }
                }
            }
        }
    }

    fn declare(&mut self, scenario: &str, declared: &[DeclaredHook]) {
        for hook in declared {
            let kind = hook.kind();
            self.kinds.insert(kind.clone());
            for (outcome, reason) in &hook.cannot {
                self.cannot.entry((kind.clone(), *outcome)).or_default().insert(reason.clone());
            }
            if !hook.not_deeper.is_empty() {
                self.not_deeper.entry(kind.clone()).or_default().insert(hook.not_deeper.clone());
            }
            let own = self.hooks.entry(reference(scenario, hook)).or_default();
            for depth in &hook.depths {
                own.reachable.extend(hook.outcomes().map(|outcome| (*depth, outcome)));
                let cells = hook.outcomes().map(|outcome| Cell { kind: kind.clone(), depth: *depth, outcome });
                self.reachable.extend(cells);
            }
            for earlier in hook.after.iter().filter_map(|place| declared.get(*place)) {
                self.declare_edges(earlier, hook);
            }
        }
    }

    fn declare_edges(&mut self, earlier: &DeclaredHook, later: &DeclaredHook) {
        if earlier.depths.is_disjoint(&later.depths) {
            return;
        }
        for outcome in earlier.outcomes().filter(|outcome| !(earlier.ends_silently && outcome.is_failure())) {
            self.edges_reachable.insert(Edge { from: earlier.kind(), outcome, to: later.kind() });
        }
    }
}

fn reference(scenario: &str, hook: &DeclaredHook) -> HookRef {
    HookRef { scenario: scenario.to_owned(), hook: hook.id.clone(), boundary: hook.boundary.clone(), kind: hook.kind() }
}
