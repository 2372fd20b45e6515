//! How cases are run.
//!
//! Invariant: nothing here changes what a scenario means, only how it is run and what is kept. Deliberately no selection.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::IsolateDriver;

use super::LiveDrivers;
use crate::snapshot::SnapshotMode;

/// How cases are run. Cheap to clone.
#[derive(Clone)]
pub struct RunOptions {
    /// Runs every case under this seed instead of its own.
    pub seed: Option<u64>,
    /// The script engine of scenarios that do not script it.
    pub engine: Arc<dyn IsolateDriver>,
    /// The real drivers, for scenarios that ask for them; without, such a scenario is an error.
    pub live: Option<Arc<dyn LiveDrivers>>,
    /// Drivers of kind `record` make their cassette anew from the live driver.
    pub record: bool,
    /// What may be written about snapshots.
    pub snapshots: SnapshotMode,
    /// Runs each case twice and compares the traces.
    pub check_determinism: bool,
    /// Longest real time of a case, if shorter than the scenario's own limit.
    pub wall: Option<Duration>,
    /// The command that runs a case again, up to the file: `greenroom test`.
    pub rerun: String,
}

impl RunOptions {
    /// Runs with this engine, under the scenarios' own seeds, offline, writing nothing.
    pub fn new(engine: Arc<dyn IsolateDriver>) -> Self {
        Self {
            seed: None,
            engine,
            live: None,
            record: false,
            snapshots: SnapshotMode::Check,
            check_determinism: false,
            wall: None,
            rerun: "greenroom test".to_owned(),
        }
    }
}

impl fmt::Debug for RunOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RunOptions(seed: {:?}, engine: {}, live: {})", self.seed, self.engine.name(), self.live.is_some())
    }
}
