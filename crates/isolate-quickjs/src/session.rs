//! One call on its thread: load the script, call the function, settle its promise.
//!
//! Invariant: after a kill no job of the script runs any more; the runtime and all it made are dropped before the outcome is
//! told. Deliberately nothing of the host's runtime here.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use greenroom_boundary::RawJson;
use greenroom_boundary::isolate::{CallValue, IsolateError, PassCtx, Script, well_formed_json};
use nix::time::{ClockId, clock_gettime};
use rquickjs::context::EvalOptions;
use rquickjs::{Context, Ctx, Error, Function, Module, Object, Persistent, Runtime, Value};

use crate::exceptions::Reported;
use crate::link::{Kill, Link, ToThread};
use crate::modules::{Linker, PRIVATE};
use crate::natives::{natives, run_callback};
use crate::surface::{DEFAULT, Offer, surface};
use crate::worker::STACK_BYTES;

const BOOTSTRAP: &str = include_str!("bootstrap.js");

/// What is wanted of a script.
pub(crate) enum Wanted {
    /// The names of its functions, as a JSON list.
    Names,
    /// The result of a function.
    Call { function: String, pass_ctx: PassCtx, args: Vec<RawJson> },
}

type Outcome<T> = Result<T, IsolateError>;

/// Runs a script and answers.
pub(crate) fn run(link: &Rc<Link>, script: &Arc<Script>, table: &str, wanted: &Wanted) -> Outcome<CallValue> {
    let limits = link.shared.limits;
    let runtime = Runtime::new().map_err(|error| engine(&error))?;
    runtime.set_memory_limit(limits.heap_bytes);
    runtime.set_max_stack_size(STACK_BYTES / 4);
    let meter = Rc::new(CpuMeter::new(limits.cpu));
    link.metered(&meter);
    let (polled, watched) = (Rc::clone(&meter), Arc::clone(&link.shared));
    runtime.set_interrupt_handler(Some(Box::new(move || {
        if let Some(why) = polled.over() {
            watched.kill(why);
        }
        watched.killed().is_some()
    })));
    let tracker: Rc<RefCell<Option<Persistent<Function<'static>>>>> = Rc::default();
    let track = Rc::clone(&tracker);
    runtime.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
        let function = track.borrow().clone();
        if let Some(function) = function.and_then(|function| function.restore(&ctx).ok()) {
            // The bootstrap's function does not throw; a kill shows elsewhere.
            let _ = function.call::<_, ()>((promise, reason, is_handled));
        }
    })));
    let linker = Linker::install(&runtime, script);
    let context = Context::full(&runtime).map_err(|error| engine(&error))?;
    let result = context.with(|ctx| {
        let session = Session::new(ctx.clone(), Rc::clone(link), Rc::clone(&meter), table, &tracker);
        let result = session.and_then(|session| session.serve(script, &linker, wanted));
        // Nothing that holds a value of the engine may outlive it.
        tracker.borrow_mut().take();
        drop(ctx.catch());
        result
    });
    link.shared.kill_error().map_or(result, Err)
}

/// Time that this thread has computed since a moment.
pub(crate) struct CpuMeter {
    since: Cell<Duration>,
    limit: Duration,
    callback_until: Cell<Option<Duration>>,
}

impl CpuMeter {
    fn new(limit: Duration) -> Self {
        Self { since: Cell::new(thread_cpu()), limit, callback_until: Cell::new(None) }
    }

    fn restart(&self) {
        self.since.set(thread_cpu());
    }

    /// The limit that has passed, if one has.
    pub(crate) fn over(&self) -> Option<Kill> {
        let now = thread_cpu();
        if now.saturating_sub(self.since.get()) > self.limit {
            return Some(Kill::Cpu);
        }
        self.callback_until.get().is_some_and(|until| now > until).then_some(Kill::Callback)
    }

    /// A callback begins, with this much time of its own; gives what to restore at its end. One within another has no more.
    pub(crate) fn callback_begins(&self, limit: Duration) -> Option<Duration> {
        let outer = self.callback_until.get();
        let own = thread_cpu().saturating_add(limit);
        self.callback_until.set(Some(outer.map_or(own, |outer| outer.min(own))));
        outer
    }

    /// The callback has ended.
    pub(crate) fn callback_ends(&self, outer: Option<Duration>) {
        self.callback_until.set(outer);
    }
}

/// What the thread has computed; waiting does not count, nor does the load of the machine.
fn thread_cpu() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map(Duration::from).unwrap_or_default()
}

/// A script whose top level has run.
struct Top<'js> {
    offers: Vec<Offer>,
    /// Of a module.
    namespace: Option<Object<'js>>,
}

struct Session<'js> {
    ctx: Ctx<'js>,
    link: Rc<Link>,
    meter: Rc<CpuMeter>,
    glue: Object<'js>,
}

impl<'js> Session<'js> {
    fn new(
        ctx: Ctx<'js>,
        link: Rc<Link>,
        meter: Rc<CpuMeter>,
        table: &str,
        tracker: &RefCell<Option<Persistent<Function<'static>>>>,
    ) -> Outcome<Self> {
        let make = || -> rquickjs::Result<Object<'js>> {
            let bootstrap: Function<'js> = eval(&ctx, "greenroom:bootstrap", BOOTSTRAP)?;
            let data = link.ops.data();
            let glue: Object<'js> =
                bootstrap.call((natives(&ctx, &link)?, ctx.json_parse(table)?, data.get(), link.ops.absent()))?;
            *tracker.borrow_mut() = Some(Persistent::save(&ctx, glue.get::<_, Function<'js>>("track")?));
            Ok(glue)
        };
        let glue = make().map_err(|error| match error {
            Error::Exception if ctx.catch().is_null() => IsolateError::HeapLimit { limit_bytes: link.shared.limits.heap_bytes },
            Error::Allocation => IsolateError::HeapLimit { limit_bytes: link.shared.limits.heap_bytes },
            error => engine(&error),
        })?;
        meter.restart();
        Ok(Self { ctx, link, meter, glue })
    }

    fn serve(&self, script: &Script, linker: &Linker, wanted: &Wanted) -> Outcome<CallValue> {
        let top = self.load(script, linker)?;
        match wanted {
            Wanted::Names => {
                let names = serde_json::value::to_raw_value(&self.names(&top));
                self.drain()?;
                names.map(CallValue::Json).map_err(|error| IsolateError::Engine { message: error.to_string() })
            }
            Wanted::Call { function: name, pass_ctx, args } => match self.function(&top, name) {
                Some(found) => self.call(found, *pass_ctx, args),
                None => Ok(CallValue::NoSuchFunction),
            },
        }
    }

    /// Runs the top level of the script.
    fn load(&self, script: &Script, linker: &Linker) -> Outcome<Top<'js>> {
        let surface = surface(&script.code);
        if script.links.is_empty() && !surface.awaits {
            linker.seal();
            eval::<Value<'js>>(&self.ctx, &script.name, &surface.code)
                .map_err(|error| self.failure(&error, IsolateError::Load))?;
            return Ok(Top { offers: surface.offers, namespace: None });
        }
        let load = |error: &Error| self.failure(error, IsolateError::Load);
        let declare = |code: String| Module::declare(self.ctx.clone(), &*script.name, code);
        let private = surface.offers.iter().filter(|offer| offer.local != DEFAULT).map(|offer| {
            let local = &offer.local;
            format!("\nexport {{ {local} as \"{PRIVATE}{local}\" }};")
        });
        // The scan only proposes; without its exports the engine says what is wrong with the script itself.
        let declared = declare(private.fold(script.code.to_string(), |code, export| code + &export)).or_else(|_| {
            drop(self.ctx.catch());
            declare(script.code.to_string())
        });
        let declared = declared.map_err(|error| load(&error))?;
        linker.seal();
        let (module, top_level) = declared.eval().map_err(|error| load(&error))?;
        // Whoever waits for it is told here.
        self.glue::<_, ()>("handled", (top_level.clone(),))?;
        self.drain()?;
        match top_level.result::<Value<'js>>() {
            None => return Err(IsolateError::NeverSettles),
            Some(result) => drop(result.map_err(|error| load(&error))?),
        }
        let namespace = module.namespace().map_err(|error| engine(&error))?;
        Ok(Top { offers: surface.offers, namespace: Some(namespace) })
    }

    /// The names of all functions: those of the script in source order, then those that it exports from other modules by name.
    fn names(&self, top: &Top<'js>) -> Vec<String> {
        let mut names: Vec<String> = top.offers.iter().map(|offer| offer.name.clone()).collect();
        let exported = top.namespace.iter().flat_map(|namespace| namespace.keys::<String>().filter_map(Result::ok));
        let mut further: Vec<String> = exported.filter(|name| !name.starts_with(PRIVATE) && !names.contains(name)).collect();
        further.sort();
        names.append(&mut further);
        names.retain(|name| self.function(top, name).is_some());
        names
    }

    fn function(&self, top: &Top<'js>, name: &str) -> Option<Function<'js>> {
        let Some(namespace) = &top.namespace else {
            let offer = top.offers.iter().find(|offer| offer.name == name)?;
            return eval::<Value<'js>>(&self.ctx, "greenroom:bootstrap", &offer.local).ok()?.into_function();
        };
        let own = |key: &str| namespace.contains_key(key).ok().filter(|has| *has).and_then(|_| namespace.get(key).ok());
        let found: Value<'js> = own(name).or_else(|| own(&format!("{PRIVATE}{name}")))?;
        let is_class = self.glue::<_, bool>("isClass", (found.clone(),)).ok()?;
        found.into_function().filter(|_| !is_class)
    }

    fn call(&self, function: Function<'js>, pass_ctx: PassCtx, args: &[RawJson]) -> Outcome<CallValue> {
        let texts: Vec<&str> = args.iter().map(|arg| arg.get()).collect();
        let ctx_at = match pass_ctx {
            PassCtx::No => "",
            PassCtx::First => "first",
            PassCtx::Last => "last",
        };
        self.glue::<_, ()>("enter", (function, ctx_at, texts))?;
        loop {
            self.drain()?;
            if let Some(outcome) = self.glue::<_, Option<Object<'js>>>("outcome", ())? {
                self.judge_rejections()?;
                return self.value(&outcome);
            }
            if !self.link.has_twins() {
                // What nobody caught, in a timer say, is why.
                self.judge_rejections()?;
                return Err(IsolateError::NeverSettles);
            }
            match self.link.next() {
                Some(ToThread::Done { id, result }) => {
                    let reply = self.link.reply(&self.ctx, result).map_err(|error| self.failure(&error, IsolateError::Js))?;
                    self.glue::<_, ()>("deliver", (id as f64, reply))?;
                }
                Some(ToThread::Callback { id, args, reply }) => {
                    let dispatch: Function<'js> = self.glue.get("dispatch").map_err(|error| engine(&error))?;
                    let verdict = run_callback(&self.link, &dispatch, id, &args);
                    drop(reply.send(verdict.map_err(|error| self.failure(&error, IsolateError::Js))?));
                }
                Some(ToThread::Kill) | None => return Err(IsolateError::Cancelled),
            }
        }
    }

    fn value(&self, outcome: &Object<'js>) -> Outcome<CallValue> {
        let read = |key: &str| outcome.get::<_, Option<String>>(key).map_err(|error| self.failure(&error, IsolateError::Js));
        if let Some(message) = read("why")? {
            return Err(IsolateError::NotJson { message });
        }
        let Some(text) = read("text")? else { return Ok(CallValue::Undefined) };
        if text.len() > self.link.shared.limits.value_bytes {
            return Err(IsolateError::ValueLimit { limit_bytes: self.link.shared.limits.value_bytes });
        }
        self.link.count_output(text.len());
        if let Some(killed) = self.link.shared.kill_error() {
            return Err(killed);
        }
        let json = serde_json::value::RawValue::from_string(well_formed_json(text));
        json.map(CallValue::Json).map_err(|error| IsolateError::NotJson { message: error.to_string() })
    }

    /// Runs the script's jobs until none is left or the call is killed.
    fn drain(&self) -> Outcome<()> {
        loop {
            if let Some(why) = self.meter.over() {
                self.link.shared.kill(why);
            }
            if let Some(error) = self.link.shared.kill_error() {
                return Err(error);
            }
            if !self.ctx.execute_pending_job() {
                return Ok(());
            }
        }
    }

    fn judge_rejections(&self) -> Outcome<()> {
        match self.glue::<_, Option<String>>("unhandled", ())? {
            Some(report) => Err(IsolateError::UnhandledRejection(Reported::parse(&report).into())),
            None => Ok(()),
        }
    }

    /// Calls a function of the bootstrap.
    fn glue<A: rquickjs::function::IntoArgs<'js>, R: rquickjs::FromJs<'js>>(&self, name: &str, args: A) -> Outcome<R> {
        let called = self.glue.get::<_, Function<'js>>(name).and_then(|function| function.call::<A, R>(args));
        called.map_err(|error| self.failure(&error, IsolateError::Js))
    }

    /// The caller's error for what went wrong in the engine.
    fn failure(&self, error: &Error, thrown: fn(greenroom_boundary::isolate::JsException) -> IsolateError) -> IsolateError {
        let heap = IsolateError::HeapLimit { limit_bytes: self.link.shared.limits.heap_bytes };
        match error {
            Error::Exception => {}
            Error::Allocation => return heap,
            other => return engine(other),
        }
        let value = self.ctx.catch();
        if let Some(killed) = self.link.shared.kill_error() {
            return killed;
        }
        let described = self.glue.get::<_, Function<'js>>("describe").and_then(|describe| describe.call::<_, String>((value,)));
        let reported = described.map_or_else(|_| Reported::unreadable(), |text| Reported::parse(&text));
        if let Some(killed) = self.link.shared.kill_error() {
            return killed;
        }
        if reported.is_internal {
            return heap;
        }
        thrown(reported.into())
    }
}

/// Runs strict code at global scope under a file name.
pub(crate) fn eval<'js, V: rquickjs::FromJs<'js>>(ctx: &Ctx<'js>, file: &str, code: &str) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.global = true;
    options.strict = true;
    options.filename = Some(file.to_owned());
    ctx.eval_with_options(code, options)
}

fn engine(error: &Error) -> IsolateError {
    IsolateError::Engine { message: format!("QuickJS: {error}; give the script more memory, or report this with it") }
}
