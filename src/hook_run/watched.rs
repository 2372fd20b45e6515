//! What a hook asks of `ctx`, written down as it happens.
//!
//! Invariant: steps stand in the order in which they began. Deliberately no answers of its own.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::isolate::{OpDecl, OpError};
use greenroom_boundary::{Clock, RawJson};
use serde_json::{Map, Value, json};

use super::defaults::{Peer, peers};
use super::effects::Step;
use super::inputs::CtxInput;
use crate::context::{ContextWatch, Op, UseIndex};

#[derive(Default)]
struct Seen {
    steps: Vec<(Step, Began)>,
    peers: BTreeSet<Peer>,
}

#[derive(Clone, Copy)]
struct Began {
    at: MonoNanos,
    wall: MonoNanos,
}

/// Writes down what a hook asks.
pub(super) struct Watcher {
    ctx: CtxInput,
    clock: Arc<dyn Clock>,
    wall: Arc<dyn Clock>,
    began: Began,
    seen: Mutex<Seen>,
}

impl Watcher {
    /// Begins now. `wall` measures how long things really take.
    pub(super) fn new(ctx: CtxInput, clock: Arc<dyn Clock>, wall: Arc<dyn Clock>) -> Arc<Self> {
        let began = Began { at: clock.now(), wall: wall.now() };
        Arc::new(Self { ctx, clock, wall, began, seen: Mutex::default() })
    }

    fn now(&self) -> Began {
        Began { at: self.clock.now(), wall: self.wall.now() }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Seen) -> T) -> T {
        work(&mut self.seen.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn begin(&self, op: String, args: Vec<Value>) -> UseIndex {
        let began = self.now();
        let step = Step {
            op,
            args,
            result: None,
            error: None,
            ended: false,
            callbacks: 0,
            at_ms: millis(began.at.since(self.began.at)),
            virtual_ms: 0.0,
            wall_us: 0,
        };
        self.with(|seen| {
            seen.steps.push((step, began));
            UseIndex(seen.steps.len() - 1)
        })
    }

    /// The steps, and how long it took in all, on the virtual clock and really.
    pub(super) fn steps(&self) -> (Vec<Step>, f64, u64) {
        let now = self.now();
        let steps = self.with(|seen| seen.steps.iter().map(|(step, _)| step.clone()).collect());
        (steps, millis(now.at.since(self.began.at)), micros(now.wall.since(self.began.wall)))
    }

    /// Whom it asked.
    pub(super) fn peers(&self) -> BTreeSet<Peer> {
        self.with(|seen| seen.peers.clone())
    }
}

impl ContextWatch for Watcher {
    fn data(&self, data: &mut Map<String, Value>) {
        self.ctx.lay_over(data);
    }

    fn began(&self, op: Op, decl: &OpDecl, args: &[RawJson]) -> UseIndex {
        let args: Vec<Value> = args.iter().map(|arg| serde_json::from_str(arg.get()).unwrap_or_default()).collect();
        let asked = peers(op, &args);
        self.with(|seen| seen.peers.extend(asked));
        self.begin(decl.path.to_owned(), args)
    }

    fn called_back(&self, UseIndex(index): UseIndex) {
        self.with(|seen| seen.steps[index].0.callbacks += 1);
    }

    fn ended(&self, UseIndex(index): UseIndex, result: Result<&Value, &OpError>) {
        let now = self.now();
        self.with(|seen| {
            let (step, began) = &mut seen.steps[index];
            step.ended = true;
            step.virtual_ms = millis(now.at.since(began.at));
            step.wall_us = micros(now.wall.since(began.wall));
            match result {
                Ok(Value::Null) => {}
                Ok(value) => step.result = Some(value.clone()),
                Err(error) => step.error = Some((error.code.clone(), error.message.clone())),
            }
        });
    }

    fn console(&self, level: &str, text: &str) {
        let at = self.begin(format!("console.{level}"), vec![json!(text)]);
        self.ended(at, Ok(&Value::Null));
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
