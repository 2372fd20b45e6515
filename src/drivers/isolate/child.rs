//! The child: a process that is nothing but one engine behind pipes.
//!
//! Invariant: it takes one message at a time, and after each it says once that the script waits, or what the call gave. It ends
//! when the host's pipe ends, whatever a script does. Deliberately no files, no network, no environment.

use std::fs::File;
use std::future::Future;
use std::io;
use std::os::fd::AsFd as _;
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::task::{Context, Poll, Wake, Waker};

use futures::FutureExt as _;
use futures::stream::{FuturesUnordered, StreamExt as _};
use greenroom_boundary::isolate::{CallRequest, HandOff, IsolateDriver, IsolateError, OpDecl};
use greenroom_boundary::{BoxFuture, CancellationToken};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{dup2_stdout, getpid};

use super::messages::{self, ToChild, ToHost, WireCall};
use super::remote::{Link, RemoteOps};

/// The word that makes the program such a child.
pub(super) const WORD: &str = "_isolate";
/// Its exit code when it was not started by a host.
const NOT_STARTED: u8 = 126;
/// Most files it may have open; it needs its pipes, and V8 one or two at its start.
const MOST_FILES: u64 = 64;

/// Makes an engine by its name, for a table.
pub type MakeEngine<'a> = &'a dyn Fn(&str, &'static [OpDecl]) -> Result<Arc<dyn IsolateDriver>, String>;

/// Serves one host if this process was started for that. Call it in `main` after engines were initialised.
pub fn serve_if_asked(make: MakeEngine<'_>) -> Option<ExitCode> {
    if std::env::args_os().nth(1)? != WORD {
        return None;
    }
    Some(match serve(make) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{WORD} is for the host's own use: {error}");
            ExitCode::from(NOT_STARTED)
        }
    })
}

fn serve(make: MakeEngine<'_>) -> io::Result<()> {
    // A crash must leave no memory image of what a script was told, and no file at all.
    let _ = setrlimit(Resource::RLIMIT_CORE, 0, 0);
    let _ = setrlimit(Resource::RLIMIT_FSIZE, 0, 0);
    let _ = setrlimit(Resource::RLIMIT_NOFILE, MOST_FILES, MOST_FILES);
    let out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // Whoever prints something must not break into the messages.
    dup2_stdout(io::stderr())?;
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(ToChild::Setup { engine, table }) = messages::read(&mut input, usize::MAX)? else {
        return Err(io::Error::other("it expects a setup on its standard input"));
    };
    let table: &'static [OpDecl] = table.into_iter().map(messages::WireOp::keep).collect::<Vec<_>>().leak();
    let engine = make(&engine, table).map_err(io::Error::other)?;
    let (to_script, answers) = mpsc::channel();
    let (to_main, inbox) = mpsc::channel();
    let link = Arc::new(Link::new(out, answers));
    std::thread::Builder::new().name("isolate-pipe".to_owned()).spawn(move || {
        while let Ok(Some(message)) = messages::read::<ToChild>(&mut input, usize::MAX) {
            let _ = match message {
                ToChild::Answer(answer) => to_script.send(answer).map_err(drop),
                other => to_main.send(other).map_err(drop),
            };
        }
        // The host is gone: at once, whatever the script's thread does, and without V8's own way out.
        let _ = kill(getpid(), Signal::SIGKILL);
    })?;
    let mut desk = Desk { engine, table, link, work: FuturesUnordered::new() };
    while let Ok(message) = inbox.recv() {
        desk.take(message);
    }
    Ok(())
}

/// What ends within the child.
enum Done {
    Call(ToHost),
    Callback(ToHost),
}

struct Desk {
    engine: Arc<dyn IsolateDriver>,
    table: &'static [OpDecl],
    link: Arc<Link>,
    work: FuturesUnordered<BoxFuture<'static, Done>>,
}

impl Desk {
    fn take(&mut self, message: ToChild) {
        match message {
            ToChild::Call(call) => self.work.push(self.call(*call)),
            ToChild::Functions { script, limits } => {
                let engine = Arc::clone(&self.engine);
                self.work.push(Box::pin(async move {
                    Done::Call(ToHost::Names(engine.functions(&Arc::new(script), &limits).await))
                }));
            }
            ToChild::Settled { id, outcome } => self.link.settled(id, outcome),
            ToChild::Callback { id, ask, args } => {
                let callback = self.link.callback(id);
                self.work.push(Box::pin(async move {
                    let verdict = match callback {
                        Some(callback) => callback.call(args).await,
                        None => greenroom_boundary::isolate::CallbackVerdict::Stop,
                    };
                    Done::Callback(ToHost::Verdict { ask, verdict })
                }));
            }
            ToChild::Setup { .. } | ToChild::Answer(_) => return,
        }
        self.run_until_stalled();
    }

    fn call(&self, mut call: WireCall) -> BoxFuture<'static, Done> {
        let engine = Arc::clone(&self.engine);
        let script = call.take_script();
        let WireCall { function, pass_ctx, args, limits, data, absent, .. } = call;
        let ops = Arc::new(RemoteOps::new(Arc::clone(&self.link), data, &absent, self.table));
        let request = CallRequest { script, function, pass_ctx, args, limits };
        Box::pin(async move {
            let never = CancellationToken::new();
            let call = std::panic::AssertUnwindSafe(engine.call(request, ops, HandOff::Strict, &never));
            let result = call
                .catch_unwind()
                .await
                .unwrap_or_else(|_| Err(IsolateError::Engine { message: "the engine panicked in its process".to_owned() }));
            Done::Call(ToHost::Returned(result))
        })
    }

    /// Strict hand-off makes this exact: while the script computes, the poll of its call does not return.
    fn run_until_stalled(&mut self) {
        let flag = Arc::new(Flag(AtomicBool::new(true)));
        let waker = Waker::from(Arc::clone(&flag));
        let mut cx = Context::from_waker(&waker);
        while flag.0.swap(false, Ordering::AcqRel) {
            while let Poll::Ready(Some(done)) = Pin::new(&mut self.work.next()).poll(&mut cx) {
                match done {
                    Done::Callback(verdict) => self.link.send(&verdict),
                    Done::Call(answer) => {
                        self.link.clear();
                        self.work.clear();
                        self.link.send(&answer);
                        return;
                    }
                }
            }
        }
        self.link.send(&ToHost::Parked);
    }
}

/// Notes that something can go on.
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Release);
    }
}
