//! The script engines of this build.
//!
//! Invariant: V8 is initialised before any thread is started, which [`Engines::initialise`] can only promise if `main`
//! calls it first. Deliberately no choice of engine per script yet.

use std::sync::Arc;
#[cfg(any(feature = "v8", feature = "quickjs"))]
use std::sync::OnceLock;

#[cfg(feature = "v8")]
use anyhow::Context as _;
use clap::ValueEnum;
use greenroom_boundary::IsolateDriver;
use greenroom_boundary::coverage::ScriptCoverage;
use greenroom_boundary::isolate::OpDecl;

use crate::context::TABLE;
#[cfg(any(feature = "v8", feature = "quickjs"))]
use crate::drivers::isolate::ProcessIsolates;
#[cfg(any(feature = "v8", feature = "quickjs"))]
use crate::drivers::sandbox::ChildKeeper;

/// A script engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// V8.
    V8,
    /// QuickJS.
    Quickjs,
    /// Native functions and scripted outcomes only.
    Mock,
}

/// Where debuggers attach.
#[cfg(feature = "v8")]
pub(super) type Hub = Arc<greenroom_isolate_v8::InspectorHub>;
/// There is none in this build.
#[cfg(not(feature = "v8"))]
pub(super) type Hub = std::convert::Infallible;

/// An engine that counts what runs.
pub struct CountingEngine {
    /// The engine.
    pub engine: Arc<dyn IsolateDriver>,
    counted: Box<dyn Fn() -> ScriptCoverage>,
}

impl CountingEngine {
    /// What has run so far, scripts in processes of their own apart.
    pub fn coverage(&self) -> ScriptCoverage {
        (self.counted)()
    }
}

/// The engines of this build, started when first asked for.
pub struct Engines {
    #[cfg(feature = "v8")]
    v8: (greenroom_isolate_v8::V8Initialised, OnceLock<Arc<dyn IsolateDriver>>),
    #[cfg(feature = "quickjs")]
    quickjs: OnceLock<Arc<dyn IsolateDriver>>,
    /// Whether this program can be the child that runs a script.
    has_processes: bool,
}

impl Engines {
    /// Initialises what must be initialised before threads exist. Call it first in `main`.
    pub fn initialise() -> Self {
        Self {
            #[cfg(feature = "v8")]
            v8: (greenroom_isolate_v8::initialise_v8(), OnceLock::new()),
            #[cfg(feature = "quickjs")]
            quickjs: OnceLock::new(),
            has_processes: false,
        }
    }

    /// The same, with the level `process`: for a program whose `main` asks [`serve_if_asked`](crate::drivers::isolate::serve_if_asked).
    pub fn with_processes(self) -> Self {
        Self { has_processes: true, ..self }
    }

    /// An engine of its own for another table.
    ///
    /// # Errors
    ///
    /// When this build has no engine of that name, or it cannot be started.
    pub fn anew(&self, name: &str, table: &'static [OpDecl]) -> Result<Arc<dyn IsolateDriver>, String> {
        match name {
            #[cfg(feature = "v8")]
            "v8" => {
                let options = greenroom_isolate_v8::V8Options { spare_contexts: 0, ..Default::default() };
                match greenroom_isolate_v8::V8Engine::start(self.v8.0, table, options) {
                    Ok(engine) => Ok(Arc::new(engine)),
                    Err(error) => Err(error.to_string()),
                }
            }
            #[cfg(feature = "quickjs")]
            "quickjs" => Ok(Arc::new(greenroom_isolate_quickjs::QuickJs::new(table))),
            _ => Err(format!("this build has no engine {name:?} for {} operations", table.len())),
        }
    }

    /// An engine of its own that counts what runs.
    ///
    /// # Errors
    ///
    /// When it is another engine than V8, this build has none, or it cannot be started.
    pub fn counting(&self, name: Option<EngineName>) -> anyhow::Result<CountingEngine> {
        anyhow::ensure!(
            name.unwrap_or_else(Self::best) == EngineName::V8,
            "only V8 counts what runs of scripts; leave --engine out, in a build with V8"
        );
        self.counting_v8()
    }

    /// An engine of its own that debuggers can attach to.
    pub(super) fn inspectable(&self, name: Option<EngineName>) -> anyhow::Result<(Arc<dyn IsolateDriver>, Hub)> {
        anyhow::ensure!(
            name.unwrap_or_else(Self::best) == EngineName::V8,
            "debuggers attach to V8 only; leave --engine out, in a build with V8"
        );
        self.inspectable_v8()
    }

    #[cfg(feature = "v8")]
    fn inspectable_v8(&self) -> anyhow::Result<(Arc<dyn IsolateDriver>, Hub)> {
        let hub = greenroom_isolate_v8::InspectorHub::new(file_url);
        let options = greenroom_isolate_v8::V8Options::default();
        let started = greenroom_isolate_v8::V8Engine::start_inspectable(self.v8.0, &TABLE, options, hub.clone())
            .context("V8 cannot be started")?;
        Ok((self.whole(Arc::new(started)), hub))
    }

    #[cfg(not(feature = "v8"))]
    #[expect(clippy::unused_self, reason = "the twin of the function with V8")]
    fn inspectable_v8(&self) -> anyhow::Result<(Arc<dyn IsolateDriver>, Hub)> {
        anyhow::bail!("this build has no V8; `./x v8` gets the library, then build again")
    }

    #[cfg(feature = "v8")]
    fn counting_v8(&self) -> anyhow::Result<CountingEngine> {
        let options = greenroom_isolate_v8::V8Options { coverage: true, ..Default::default() };
        let started = greenroom_isolate_v8::V8Engine::start(self.v8.0, &TABLE, options).context("V8 cannot be started")?;
        let started = Arc::new(started);
        Ok(CountingEngine { engine: self.whole(started.clone()), counted: Box::new(move || started.coverage()) })
    }

    #[cfg(not(feature = "v8"))]
    #[expect(clippy::unused_self, reason = "the twin of the function with V8")]
    fn counting_v8(&self) -> anyhow::Result<CountingEngine> {
        anyhow::bail!("this build has no V8; `./x v8` gets the library, then build again")
    }

    #[cfg(any(feature = "v8", feature = "quickjs"))]
    fn whole(&self, engine: Arc<dyn IsolateDriver>) -> Arc<dyn IsolateDriver> {
        match std::env::current_exe() {
            Ok(program) if self.has_processes => {
                Arc::new(ProcessIsolates::new(engine, &TABLE, &program, ChildKeeper::this_program()))
            }
            _ => engine,
        }
    }

    /// The best engine of this build.
    pub fn best() -> EngineName {
        if cfg!(feature = "v8") {
            EngineName::V8
        } else if cfg!(feature = "quickjs") {
            EngineName::Quickjs
        } else {
            EngineName::Mock
        }
    }

    /// The engine called `name`, or the best one.
    pub fn get(&self, name: Option<EngineName>) -> anyhow::Result<Arc<dyn IsolateDriver>> {
        match name.unwrap_or_else(Self::best) {
            EngineName::V8 => self.v8(),
            EngineName::Quickjs => self.quickjs(),
            EngineName::Mock => Ok(Arc::new(greenroom_mocks::isolate::MockIsolate::new(&TABLE))),
        }
    }

    #[cfg(feature = "v8")]
    fn v8(&self) -> anyhow::Result<Arc<dyn IsolateDriver>> {
        let (token, engine) = &self.v8;
        if let Some(engine) = engine.get() {
            return Ok(engine.clone());
        }
        let started = greenroom_isolate_v8::V8Engine::start(*token, &TABLE, greenroom_isolate_v8::V8Options::default())
            .context("V8 cannot be started")?;
        Ok(engine.get_or_init(|| self.whole(Arc::new(started))).clone())
    }

    #[cfg(not(feature = "v8"))]
    #[expect(clippy::unused_self, reason = "the twin of the function with V8")]
    fn v8(&self) -> anyhow::Result<Arc<dyn IsolateDriver>> {
        anyhow::bail!("this build has no V8; `./x v8` gets the library, then build again, or use --engine quickjs")
    }

    #[cfg(feature = "quickjs")]
    #[expect(clippy::unnecessary_wraps, reason = "the twin of the function without QuickJS, which fails")]
    fn quickjs(&self) -> anyhow::Result<Arc<dyn IsolateDriver>> {
        Ok(self.quickjs.get_or_init(|| self.whole(Arc::new(greenroom_isolate_quickjs::QuickJs::new(&TABLE)))).clone())
    }

    #[cfg(not(feature = "quickjs"))]
    #[expect(clippy::unused_self, reason = "the twin of the function with QuickJS")]
    fn quickjs(&self) -> anyhow::Result<Arc<dyn IsolateDriver>> {
        anyhow::bail!("this build has no QuickJS; build it with the feature `quickjs`")
    }
}

/// A script's address as editors know its file; what is no file keeps its name.
#[cfg(feature = "v8")]
fn file_url(name: &str) -> String {
    let file = std::fs::canonicalize(name).ok();
    let url = file.and_then(|file| reqwest::Url::from_file_path(file).ok());
    url.map_or_else(|| name.to_owned(), String::from)
}
