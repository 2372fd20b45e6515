//! Coverage as data: what every rendering shows.
//!
//! Invariant: rows are sorted, and the numbers of `totals` are those of the rows. `v` changes when a field's meaning does.
//! Deliberately no layout.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::coverage::{Edge, HookCoverage, HookRef, OwnCells};
use super::model::{Cell, HookDepth, HookKindKey, HookOutcome};

/// How much of something is covered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// Seen.
    pub covered: usize,
    /// Can be seen.
    pub reachable: usize,
}

impl Count {
    /// Whether all is covered.
    pub fn is_full(self) -> bool {
        self.covered == self.reachable
    }

    /// In percent, rounded down; 100 if there is nothing to cover.
    pub fn percent(self) -> usize {
        (self.covered * 100).checked_div(self.reachable).unwrap_or(100)
    }
}

/// The sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Cells by kind: what `--strict` asks for.
    pub cells: Count,
    /// Edges by kind.
    pub edges: Count,
    /// Cells of the single hooks.
    pub hook_cells: Count,
}

/// What is known of a cell or edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellState {
    /// Reachable and seen.
    Covered,
    /// Reachable, not seen.
    Uncovered,
    /// Cannot be seen.
    Unreachable,
    /// Seen, though the model calls it unreachable: the model is wrong.
    Unexpected,
}

/// One cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CellRow {
    /// How deep.
    pub depth: HookDepth,
    /// What comes of it.
    pub outcome: HookOutcome,
    /// What is known.
    pub state: CellState,
    /// How many scenarios show it.
    pub scenarios: usize,
    /// How often it was seen.
    pub runs: u64,
}

/// One kind of hooks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KindRow {
    /// The kind in words.
    pub name: String,
    /// The kind.
    #[serde(flatten)]
    pub kind: HookKindKey,
    /// Its cells: depth by depth, in the order of outcomes.
    pub cells: Vec<CellRow>,
}

/// Cells that cannot be seen, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnreachableRow {
    /// The kind in words.
    pub kind: String,
    /// An outcome, or `depth 1`.
    pub cells: String,
    /// Why.
    pub reason: String,
}

/// One edge.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EdgeRow {
    /// Kind of the earlier hook.
    pub from: String,
    /// What came of it.
    pub outcome: HookOutcome,
    /// Kind of the later hook.
    pub to: String,
    /// How often the later hook ran.
    pub ran: u64,
    /// How often it was skipped.
    pub skipped: u64,
    /// What is known.
    pub state: CellState,
}

/// What a scenario gives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ScenarioRow {
    /// Its id.
    pub id: String,
    /// Cells that it covers.
    pub cells: usize,
    /// Cells that only it covers.
    pub unique: usize,
}

/// One hook of one scenario.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookRow {
    /// The scenario.
    pub scenario: String,
    /// The hook.
    pub hook: String,
    /// Whose messages it looks at.
    pub boundary: String,
    /// Its kind in words.
    pub kind: String,
    /// Its cells.
    #[serde(flatten)]
    pub count: Count,
    /// What was not seen: `depth outcome`.
    pub missing: Vec<String>,
}

/// The whole report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookReport {
    /// Version of this shape.
    pub v: u32,
    /// The sums.
    pub totals: Totals,
    /// Cells by kind.
    pub kinds: Vec<KindRow>,
    /// What cannot be seen.
    pub unreachable: Vec<UnreachableRow>,
    /// Order edges.
    pub edges: Vec<EdgeRow>,
    /// The scenarios, the most useful first.
    pub scenarios: Vec<ScenarioRow>,
    /// The single hooks.
    pub hooks: Vec<HookRow>,
    /// Hook events that no declaration explains, and how often.
    pub undeclared: BTreeMap<String, u64>,
}

impl HookReport {
    /// Whether every reachable cell of every kind is covered.
    pub fn is_full(&self) -> bool {
        self.totals.cells.is_full()
    }

    /// The cells in a state, with their kind's name.
    pub fn cells(&self, state: CellState) -> impl Iterator<Item = (&str, &CellRow)> {
        let rows = self.kinds.iter().flat_map(|kind| kind.cells.iter().map(|cell| (kind.name.as_str(), cell)));
        rows.filter(move |(_, cell)| cell.state == state)
    }
}

impl HookCoverage {
    /// The report.
    pub fn report(&self) -> HookReport {
        let kinds: Vec<KindRow> = self.kinds.iter().map(|kind| self.kind_row(kind)).collect();
        let edges = self.edge_rows();
        let hooks = self.hook_rows();
        let covered = self.reachable.iter().filter(|cell| self.hits.contains_key(*cell)).count();
        let totals = Totals {
            cells: Count { covered, reachable: self.reachable.len() },
            edges: Count {
                covered: self.edges_reachable.iter().filter(|edge| self.edges.contains_key(*edge)).count(),
                reachable: self.edges_reachable.len(),
            },
            hook_cells: Count {
                covered: hooks.iter().map(|hook| hook.count.covered).sum(),
                reachable: hooks.iter().map(|hook| hook.count.reachable).sum(),
            },
        };
        let (unreachable, scenarios) = (self.unreachable_rows(), self.scenario_rows());
        HookReport { v: 1, totals, kinds, unreachable, edges, scenarios, hooks, undeclared: self.undeclared.clone() }
    }

    fn kind_row(&self, kind: &HookKindKey) -> KindRow {
        let mut cells = Vec::new();
        for depth in HookDepth::ALL {
            for outcome in HookOutcome::ALL {
                let cell = Cell { kind: kind.clone(), depth, outcome };
                let hits = self.hits.get(&cell);
                let state = state(self.reachable.contains(&cell), hits.is_some());
                let runs = hits.map_or(0, |hits| hits.values().sum());
                cells.push(CellRow { depth, outcome, state, scenarios: hits.map_or(0, BTreeMap::len), runs });
            }
        }
        KindRow { name: kind.to_string(), kind: kind.clone(), cells }
    }

    fn unreachable_rows(&self) -> Vec<UnreachableRow> {
        let mut rows = Vec::new();
        let join = |reasons: &BTreeSet<String>| reasons.iter().cloned().collect::<Vec<_>>().join("; ");
        for kind in &self.kinds {
            let can = |wanted: &dyn Fn(&Cell) -> bool| self.reachable.iter().any(|cell| cell.kind == *kind && wanted(cell));
            for outcome in HookOutcome::ALL {
                let reasons = self.cannot.get(&(kind.clone(), outcome));
                if let Some(reasons) = reasons.filter(|_| !can(&|cell| cell.outcome == outcome)) {
                    let (kind, cells) = (kind.to_string(), outcome.to_string());
                    rows.push(UnreachableRow { kind, cells, reason: join(reasons) });
                }
            }
            for depth in HookDepth::ALL {
                let reasons = self.not_deeper.get(kind);
                if let Some(reasons) = reasons.filter(|_| !can(&|cell| cell.depth == depth)) {
                    let cells = format!("depth {}", depth.as_str());
                    rows.push(UnreachableRow { kind: kind.to_string(), cells, reason: join(reasons) });
                }
            }
        }
        rows
    }

    fn edge_rows(&self) -> Vec<EdgeRow> {
        let all: BTreeSet<_> = self.edges_reachable.iter().chain(self.edges.keys()).collect();
        let row = |edge: &Edge| {
            let follow = self.edges.get(edge).copied();
            let state = state(self.edges_reachable.contains(edge), follow.is_some());
            let follow = follow.unwrap_or_default();
            EdgeRow {
                from: edge.from.to_string(),
                outcome: edge.outcome,
                to: edge.to.to_string(),
                ran: follow.ran,
                skipped: follow.skipped,
                state,
            }
        };
        all.into_iter().map(row).collect()
    }

    fn scenario_rows(&self) -> Vec<ScenarioRow> {
        let mut rows: Vec<ScenarioRow> = self
            .scenarios
            .iter()
            .map(|id| {
                let mine = self.hits.iter().filter(|(cell, hits)| self.reachable.contains(cell) && hits.contains_key(id));
                let (mut cells, mut unique) = (0, 0);
                for (_, hits) in mine {
                    cells += 1;
                    unique += usize::from(hits.len() == 1);
                }
                ScenarioRow { id: id.clone(), cells, unique }
            })
            .collect();
        rows.sort_by(|a, b| (b.unique, b.cells, &a.id).cmp(&(a.unique, a.cells, &b.id)));
        rows
    }

    fn hook_rows(&self) -> Vec<HookRow> {
        let row = |(hook, own): (&HookRef, &OwnCells)| {
            let missing: Vec<String> =
                own.reachable.difference(&own.seen).map(|(depth, outcome)| format!("{} {outcome}", depth.as_str())).collect();
            HookRow {
                scenario: hook.scenario.clone(),
                hook: hook.hook.clone(),
                boundary: hook.boundary.clone(),
                kind: hook.kind.to_string(),
                count: Count { covered: own.reachable.len() - missing.len(), reachable: own.reachable.len() },
                missing,
            }
        };
        self.hooks.iter().map(row).collect()
    }
}

fn state(reachable: bool, seen: bool) -> CellState {
    match (reachable, seen) {
        (true, true) => CellState::Covered,
        (true, false) => CellState::Uncovered,
        (false, true) => CellState::Unexpected,
        (false, false) => CellState::Unreachable,
    }
}
