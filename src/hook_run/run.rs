//! The run itself: the call of the hook, and what is read off the world afterwards.
//!
//! Invariant: peers without a mock are found by running: a run that asked an unknown one is thrown away and done again with
//! a default for it, which nothing outside can notice. Deliberately no printing.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use greenroom_boundary::isolate::{CallRequest, CallValue, IsolateError, Isolation, JsException, Limits, PassCtx, Script};
use greenroom_boundary::trace::HookPhase;
use greenroom_boundary::{AgentId, CancellationToken, Clock, IsolateDriver, Scope};
use greenroom_boundary::{RawJson, clock::MonoNanos};
use serde_json::Value;

use super::defaults::Peer;
use super::effects::{Effects, Failure, MemoryChange, Shown, Step};
use super::inputs::{HookName, Inputs};
use super::stage::{Plan, Stage};
use super::watched::Watcher;
use crate::agents::{Session, TurnTree, check_returned};
use crate::config::ScriptConfig;
use crate::context::{HookContext, Memory, OutputStream, Person};
use crate::router::CallContext;
use crate::scripts::{ScriptError, ScriptLibrary, snippet_at};
use crate::sessions::{RootId, RootSession};

/// Most times that a run is done again because it asked a peer that no earlier one had asked.
const MAX_RUNS: usize = 32;

/// How a hook is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// The script.
    pub script: PathBuf,
    /// The function.
    pub hook: HookName,
    /// The engine.
    pub engine: Arc<dyn IsolateDriver>,
    /// How far the call is kept apart.
    pub isolation: Isolation,
    /// The seed of what is random.
    pub seed: u64,
    /// Measures how long things really take.
    pub wall: Arc<dyn Clock>,
}

/// A hook that cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The script cannot be used.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// It has no such function.
    #[error("{script} has no function {function}; it has {}", listed(offered))]
    NoSuchFunction {
        /// The script.
        script: String,
        /// The function.
        function: &'static str,
        /// Its functions.
        offered: Vec<String>,
    },
    /// The hook's agent and a server have one name.
    #[error(
        "the agent of the hook and a server are both called {name}; give the agent another name with `assistant_id` in --ctx"
    )]
    NameTaken {
        /// The name.
        name: String,
    },
    /// No runtime.
    #[error("no runtime: {0}")]
    Runtime(#[from] std::io::Error),
    /// A value that is no JSON.
    #[error("an argument cannot be written: {0}")]
    Encode(#[from] serde_json::Error),
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

/// Runs a hook alone and says what it did.
pub fn run(options: &RunOptions, inputs: &Inputs) -> Result<Effects, RunError> {
    let script = ScriptLibrary::below(PathBuf::new()).load(&ScriptConfig::File(options.script.clone()))?;
    let mut by_default = BTreeSet::new();
    for _ in 1..MAX_RUNS {
        let (effects, unknown) = once(options, inputs, &script, &by_default)?;
        if unknown.is_empty() {
            return Ok(effects);
        }
        by_default.extend(unknown);
    }
    Ok(once(options, inputs, &script, &by_default)?.0)
}

fn once(
    options: &RunOptions,
    inputs: &Inputs,
    script: &Arc<Script>,
    by_default: &BTreeSet<Peer>,
) -> Result<(Effects, Vec<Peer>), RunError> {
    let (mocks, ctx, engine) = (&inputs.mocks, &inputs.ctx, &options.engine);
    let agent = agent(options, inputs);
    let plan = Plan { mocks, ctx, agent: &agent, engine, seed: options.seed, by_default };
    if plan.is_ambiguous() {
        return Err(RunError::NameTaken { name: agent });
    }
    let stage = Stage::new(&plan);
    let runtime = stage.clock.runtime()?;
    let done = runtime.block_on(async {
        let done = act(options, inputs, script, &stage, by_default).await;
        stage.host.shutdown().await;
        done
    });
    runtime.shutdown_background();
    done
}

type Told = Arc<Mutex<Vec<Value>>>;

async fn act(
    options: &RunOptions,
    inputs: &Inputs,
    script: &Arc<Script>,
    stage: &Stage,
    by_default: &BTreeSet<Peer>,
) -> Result<(Effects, Vec<Peer>), RunError> {
    let core = stage.host.core();
    let told = Told::default();
    let cx = context(options, inputs, stage, &told);
    let before = memories(&cx, stage.clock.now());
    let watcher = Watcher::new(inputs.ctx.clone(), Arc::new(stage.clock.clone()), options.wall.clone());
    let ctx = Arc::new(HookContext::new(core.clone(), cx.clone()).watched(watcher.clone()));
    let arguments = inputs.arguments(options.hook);
    let args: Result<Vec<RawJson>, _> = arguments.iter().map(serde_json::value::to_raw_value).collect();
    let request = CallRequest {
        script: script.clone(),
        function: options.hook.function().to_owned(),
        pass_ctx: PassCtx::First,
        args: args?,
        limits: Limits { isolation: options.isolation, ..core.config.policy.script_limits },
    };
    let limits = request.limits;
    let result = stage.drivers.isolate.call(request, ctx, core.hand_off, &cx.cancel).await;
    let (steps, virtual_ms, wall_us) = watcher.steps();
    cx.cancel.cancel();
    if let Ok(CallValue::NoSuchFunction) = &result {
        let offered = stage.drivers.isolate.functions(script, &limits).await.unwrap_or_default();
        let function = options.hook.function();
        return Err(RunError::NoSuchFunction { script: script.name.clone(), function, offered });
    }
    let (messages, events) = shown(&cx, &told);
    let (returned, failure) = outcome(options.hook, result);
    let unknown =
        watcher.peers().into_iter().filter(|peer| !by_default.contains(peer) && !peer.is_in(&core.config, inputs)).collect();
    let effects = Effects {
        hook: options.hook.function(),
        script: script.name.clone(),
        engine: stage.drivers.isolate.name(),
        seed: options.seed,
        messages,
        events,
        memory: changes(&before, &memories(&cx, stage.clock.now()), stage.clock.now()),
        returned,
        failure,
        by_default: by_default.iter().map(Peer::told).chain(stage.defaulted_models()).chain(searched(inputs, &steps)).collect(),
        unused: stage.unused(),
        steps,
        virtual_ms,
        wall_us,
    };
    Ok((effects, unknown))
}

/// Whether the default search answered.
fn searched(inputs: &Inputs, steps: &[Step]) -> Option<String> {
    let by_default = inputs.mocks.search.is_none() && steps.iter().any(|step| step.op.starts_with("search."));
    by_default.then(|| "search".to_owned())
}

/// The context of a turn's root, whose messages are heard.
fn context(options: &RunOptions, inputs: &Inputs, stage: &Stage, told: &Told) -> CallContext {
    let core = stage.host.core();
    let mut metadata = inputs.ctx.metadata.clone();
    if let Some(authorized) = &inputs.ctx.authorized {
        metadata.insert("authorized".to_owned(), Value::Object(authorized.clone()));
    }
    let person: Person = core.state.people.of(&mut metadata);
    let heard = told.clone();
    let listener = Arc::new(move |body: &Value| heard.lock().unwrap_or_else(PoisonError::into_inner).push(body.clone()));
    let tree = TurnTree::of(OutputStream::new(stage.drivers.tracer.clone(), Some(listener)), person);
    let root = RootSession::new(RootId::default());
    let session = Session::new(inputs.ctx.chat_id.as_deref().unwrap_or("default"));
    let agent = agent(options, inputs);
    let mut cx = CallContext::new(Scope::new("hook"), root, session, tree, CancellationToken::new());
    cx.metadata = metadata;
    cx.delegation = vec![AgentId::new(&agent)];
    cx.agent = Some(AgentId::new(agent));
    fill(&cx, inputs, stage.clock.now());
    cx
}

/// The agent whose hook it is.
fn agent(options: &RunOptions, inputs: &Inputs) -> String {
    inputs.ctx.assistant_id.clone().unwrap_or_else(|| name_of(&options.script))
}

/// `index` is the name of every script of an assistant's folder; then the folder has the name.
fn name_of(script: &Path) -> String {
    let stem = |path: &Path| path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let own = stem(script).unwrap_or_default();
    let folder = script.parent().and_then(|folder| folder.file_name()).map(|folder| folder.to_string_lossy().into_owned());
    if own == "index" { folder.unwrap_or(own) } else { own }
}

type Spaces = Vec<(&'static str, Memory)>;

fn spaces(cx: &CallContext) -> Spaces {
    let person = &cx.tree.person;
    let known = [("user", &person.user_memory), ("team", &person.team_memory)];
    let own = [("context", cx.tree.context_memory.clone()), ("chat", cx.session.chat_memory.clone())];
    own.into_iter().chain(known.into_iter().filter_map(|(name, memory)| Some((name, memory.clone()?)))).collect()
}

fn fill(cx: &CallContext, inputs: &Inputs, now: MonoNanos) {
    let memory = &inputs.ctx.memory;
    for (name, space) in spaces(cx) {
        let given = match name {
            "context" => &memory.context,
            "chat" => &memory.chat,
            "user" => &memory.user,
            _ => &memory.team,
        };
        for (key, value) in given {
            space.keep(now, key, value.clone());
        }
    }
}

type Held = Vec<(&'static str, std::collections::BTreeMap<String, (Value, Option<MonoNanos>)>)>;

fn memories(cx: &CallContext, now: MonoNanos) -> Held {
    spaces(cx).into_iter().map(|(name, memory)| (name, memory.contents(now))).collect()
}

fn changes(before: &Held, after: &Held, now: MonoNanos) -> Vec<MemoryChange> {
    let mut all = Vec::new();
    for ((space, old), (_, new)) in before.iter().zip(after) {
        let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (was, is) = (old.get(key), new.get(key));
            if was != is {
                let until = is.and_then(|(_, until)| *until);
                all.push(MemoryChange {
                    space,
                    key: key.clone(),
                    before: was.map(|(value, _)| value.clone()),
                    after: is.map(|(value, _)| value.clone()),
                    ttl_ms: until.map(|until| u64::try_from(until.since(now).as_millis()).unwrap_or(u64::MAX)),
                });
            }
        }
    }
    all
}

/// Messages in the order in which they were opened, and events that belong to none.
fn shown(cx: &CallContext, told: &Told) -> (Vec<Shown>, Vec<Value>) {
    const OF_MESSAGES: [&str; 4] = ["message_start", "message_end", "block_start", "block_end"];
    let told = told.lock().unwrap_or_else(PoisonError::into_inner);
    let (mut messages, mut events): (Vec<Shown>, Vec<Value>) = (Vec::new(), Vec::new());
    for body in told.iter() {
        let Some(id) = body["message_id"].as_str() else {
            let own = body["props"]["event"].as_str().is_some_and(|name| OF_MESSAGES.contains(&name));
            if !own {
                events.push(body.clone());
            }
            continue;
        };
        if messages.iter().all(|message| message.id != id)
            && let Some((kind, props, block, ended)) = cx.tree.output.shown(id)
        {
            messages.push(Shown { id: id.to_owned(), kind, props, block, ended });
        }
    }
    (messages, events)
}

fn outcome(hook: HookName, result: Result<CallValue, IsolateError>) -> (Option<Value>, Option<Failure>) {
    let phase = if hook == HookName::Create { HookPhase::Create } else { HookPhase::Next };
    match result {
        Ok(CallValue::NoSuchFunction | CallValue::Undefined) => (None, None),
        Ok(CallValue::Json(raw)) => {
            let failure = check_returned(phase, &raw).err().map(|failure| Failure {
                code: failure.code,
                message: failure.message,
                frames: Vec::new(),
                snippet: None,
            });
            (serde_json::from_str(raw.get()).ok(), failure)
        }
        Err(error) => (None, Some(failed(&error))),
    }
}

fn failed(error: &IsolateError) -> Failure {
    let thrown = match error {
        IsolateError::Load(thrown) | IsolateError::Js(thrown) | IsolateError::UnhandledRejection(thrown) => Some(thrown),
        _ => None,
    };
    let frames = thrown.map(|thrown| thrown.frames.clone()).unwrap_or_default();
    Failure {
        code: error.code().to_owned(),
        message: thrown.map_or_else(|| error.to_string(), told),
        snippet: frames.first().and_then(|frame| {
            let source = std::fs::read_to_string(&frame.file).ok()?;
            snippet_at(&source, frame.line, frame.column)
        }),
        frames,
    }
}

/// An exception with its causes, without its place.
fn told(thrown: &JsException) -> String {
    let own = format!("{}: {}", thrown.class, thrown.message);
    let code = thrown.code.as_ref().map(|code| format!(" [{code}]")).unwrap_or_default();
    let cause = thrown.cause.as_ref().map(|cause| format!("\n  caused by {}", self::told(cause))).unwrap_or_default();
    format!("{own}{code}{cause}")
}
