//! The real drivers for scenarios that ask for them.
//!
//! Invariant: graces and limits of real processes are measured in real time, whatever the scenario's clock is.
//! Deliberately no defaults: a scenario names each real peer.

use std::sync::Arc;

use greenroom_boundary::{CliRunner, Clock, Egress, Entropy, Llm, McpConnector};
use greenroom_harness::model::Live;
use greenroom_harness::run::{LiveDrivers, LiveError, LiveWorld};

use crate::drivers::llm::{LlmWorld, OpenAiChat, OpenAiOptions};
use crate::drivers::mcp::RealMcp;
use crate::drivers::sandbox::{ChildEnvironment, ChildKeeper, ConfinedCli};
use crate::drivers::{EgressPolicy, HttpEgress, OsEntropy, SystemClock};

/// Real drivers of this process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RealWorld;

fn real_clock() -> Arc<dyn Clock> {
    Arc::new(SystemClock::new())
}

impl LiveDrivers for RealWorld {
    fn clock(&self) -> Arc<dyn Clock> {
        real_clock()
    }

    fn entropy(&self) -> Arc<dyn Entropy> {
        Arc::new(OsEntropy)
    }

    fn egress(&self, allow: &[String], clock: &Arc<dyn Clock>) -> Result<Arc<dyn Egress>, LiveError> {
        let policy = EgressPolicy::parse(allow.iter().map(String::as_str));
        let policy = policy.map_err(|error| LiveError { code: error.code(), message: error.to_string() })?;
        let egress = HttpEgress::new(policy, clock.clone());
        egress
            .map(|egress| Arc::new(egress) as Arc<dyn Egress>)
            .map_err(|error| LiveError { code: error.code(), message: error.to_string() })
    }

    fn mcp(&self, world: &LiveWorld) -> Arc<dyn McpConnector> {
        let (egress, credentials) = (world.egress.clone(), world.credentials.clone());
        let real = RealMcp::new(real_clock(), egress, credentials, ChildEnvironment::of_this_process());
        Arc::new(real.holding(world.clock.clone()).kept_by(ChildKeeper::this_program()))
    }

    fn llm(&self, name: &str, live: &Live, world: &LiveWorld) -> Result<Arc<dyn Llm>, LiveError> {
        if live.command.is_some() {
            let message = format!("llm.{name}: a model is reached at a `url`, not by a `command`");
            return Err(LiveError { code: "LIVE_LLM", message });
        }
        let options = OpenAiOptions { base_url: live.url.clone(), headers: live.headers.clone(), ..OpenAiOptions::default() };
        let (egress, clock, credentials) = (world.egress.clone(), world.clock.clone(), world.credentials.clone());
        OpenAiChat::new(name, &options, LlmWorld { egress, clock, credentials })
            .map(|model| Arc::new(model) as Arc<dyn Llm>)
            .map_err(|error| LiveError { code: error.code(), message: error.to_string() })
    }

    fn cli(&self, _live: &Live, world: &LiveWorld) -> Arc<dyn CliRunner> {
        let runner = ConfinedCli::new(real_clock(), ChildEnvironment::of_this_process());
        Arc::new(runner.holding(world.clock.clone()).kept_by(ChildKeeper::this_program()))
    }
}
