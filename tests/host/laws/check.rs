//! Runs a law on an engine, and says how to see a failure again.
//!
//! Invariant: the printed seed and number of cases reproduce the failure. Deliberately no file of old failures: what was found
//! becomes a scenario under `scenarios/regress/`.

use std::fmt::Debug;
use std::sync::Arc;

use proptest::prelude::Rng as _;
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngSeed, TestCaseError, TestError, TestRunner};

use super::plan::World;
use super::plan_text::{declared_beside, policy_js, yaml};
use super::world::Isolate;

/// Where a law is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    Mock,
    #[cfg(feature = "v8")]
    V8,
}

impl Engine {
    fn start(self) -> Isolate {
        match self {
            Self::Mock => None,
            #[cfg(feature = "v8")]
            Self::V8 => {
                let token = greenroom_isolate_v8::initialise_v8();
                let options = greenroom_isolate_v8::V8Options::default();
                let engine = greenroom_isolate_v8::V8Engine::start(token, &greenroom::context::TABLE, options).unwrap();
                Some(Arc::new(engine))
            }
        }
    }

    /// A real engine costs more per case, so it gets a quarter of them.
    fn cases(self, cases: u32) -> u32 {
        match self {
            Self::Mock => cases,
            #[cfg(feature = "v8")]
            Self::V8 => cases.div_ceil(4),
        }
    }
}

/// What a failing case prints, to be pasted.
pub(super) trait Paste: Debug + Clone {
    fn paste(&self) -> String {
        format!("{self:#?}")
    }
}

impl Paste for World {
    fn paste(&self) -> String {
        let beside = declared_beside(self);
        format!("# greenroom.yaml\n{}# beside it: {beside:?}\n// policy.js\n{}// {self:?}", yaml(self), policy_js(self))
    }
}

impl<T: Paste, U: Debug + Clone> Paste for (T, U) {
    fn paste(&self) -> String {
        format!("{}\n// and {:?}", self.0.paste(), self.1)
    }
}

/// Holds the law against cases of the strategy.
pub(super) fn law<S>(on: Engine, strategy: S, check: impl Fn(&Isolate, &S::Value) -> Result<(), TestCaseError>)
where
    S: Strategy,
    S::Value: Paste,
{
    let engine = on.start();
    let mut config = Config { failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let cases = config.cases;
    config.cases = on.cases(cases);
    let seed = match config.rng_seed {
        RngSeed::Fixed(seed) => seed,
        RngSeed::Random => TestRunner::new(config.clone()).rng().next_u64(),
    };
    config.rng_seed = RngSeed::Fixed(seed);
    let outcome = TestRunner::new(config).run(&strategy, |case| check(&engine, &case));
    let name = std::thread::current().name().unwrap_or("law_").to_owned();
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, case)) => panic!(
            "{reason}\n--- the smallest case\n{}\n--- see it again\nPROPTEST_RNG_SEED={seed} PROPTEST_CASES={cases} cargo nextest run -p greenroom --test host -E 'test(={name})'\n",
            case.paste()
        ),
        Err(TestError::Abort(reason)) => panic!("no case was judged: {reason}"),
    }
}
