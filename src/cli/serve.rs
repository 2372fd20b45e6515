//! `greenroom serve`: the host for outside clients.
//!
//! Invariant: stdout belongs to the protocol on stdio; everything else is said on stderr. Deliberately loopback by default.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::Args;
use greenroom_boundary::CancellationToken;
use greenroom_boundary::isolate::HandOff;
use greenroom_boundary::mcp::FrameDuplex;
use greenroom_boundary::trace::NoTrace;
use greenroom_wire::stdio::{self, StdioOptions};

use super::{EngineName, Engines, reload, world};
use crate::drivers::{OsEntropy, standard_streams};
use crate::http::HttpFront;
use crate::{Host, front};

/// Arguments of `serve`.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  greenroom serve -c greenroom.yaml\n  greenroom serve -c greenroom.yaml --stdio\n  kill -HUP PID    # read the config and the scripts again"
)]
pub(super) struct ServeArgs {
    /// The config.
    #[arg(short, long, default_value = "greenroom.yaml")]
    config: PathBuf,
    /// Address for MCP over HTTP; port 0 takes a free one.
    #[arg(short, long, default_value = "127.0.0.1:8080")]
    listen: String,
    /// Serve one client on stdin and stdout instead.
    #[arg(long, conflicts_with = "listen")]
    stdio: bool,
    /// Web origin that may call, besides loopback (repeatable).
    #[arg(long)]
    allow_origin: Vec<String>,
    /// Keep the config as it was at the start: do not take it over anew when it or a script of it is saved, or at SIGHUP.
    #[arg(long)]
    no_reload: bool,
    /// Script engine.
    #[arg(long, value_enum)]
    engine: Option<EngineName>,
    /// Let a debugger attach to hook scripts, at this address: Chrome's DevTools, VS Code, or any that speaks their protocol.
    #[arg(long, value_name = "ADDRESS", num_args = 0..=1, require_equals = true, default_missing_value = "127.0.0.1:9229")]
    inspect: Option<String>,
}

pub(super) fn run(args: &ServeArgs, engines: &Engines) -> anyhow::Result<ExitCode> {
    let read = reload::stamp(&args.config);
    let config = world::config(&args.config)?;
    let (engine, hub) = match &args.inspect {
        Some(_) => engines.inspectable(args.engine).map(|(engine, hub)| (engine, Some(hub)))?,
        None => (engines.get(args.engine)?, None),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("no runtime")?;
    runtime
        .block_on(async {
            let drivers = world::drivers(&config, engine, Arc::new(OsEntropy), Arc::new(NoTrace))?;
            let stop_inspecting = CancellationToken::new();
            let _stops = stop_inspecting.clone().drop_guard();
            if let (Some(address), Some(hub)) = (&args.inspect, hub) {
                inspect(address, hub, stop_inspecting).await?;
            }
            let host = Host::start(config, drivers, HandOff::Concurrent);
            if !args.no_reload {
                tokio::spawn(reload::keep_up(host.clone(), args.config.clone(), read));
            }
            if args.stdio {
                tokio::select! {
                    biased;
                    () = front::serve(&host, client_streams()) => {}
                    () = interrupted() => {}
                }
            } else {
                let front = HttpFront::bind(&args.listen).await.with_context(|| format!("cannot listen at {}", args.listen))?;
                eprintln!("greenroom serves MCP at {}", front.url());
                front.run(host.clone(), args.allow_origin.clone(), stop_on_interrupt()).await?;
            }
            host.shutdown().await;
            Ok(ExitCode::SUCCESS)
        })
        .inspect(|_| runtime.shutdown_background())
}

/// Lets debuggers attach until `stop`.
#[cfg(feature = "v8")]
async fn inspect(address: &str, hub: super::engines::Hub, stop: CancellationToken) -> anyhow::Result<()> {
    let front = crate::http::InspectFront::bind(address, hub, &OsEntropy).await;
    let front = front.with_context(|| format!("cannot listen at {address} for debuggers"))?;
    eprintln!("greenroom waits for debuggers at {}; open chrome://inspect, or attach from an editor", front.address());
    if !front.address().ip().is_loopback() {
        eprintln!("whoever reaches that address can run code in place of the scripts");
    }
    tokio::spawn(front.run(stop));
    Ok(())
}

#[cfg(not(feature = "v8"))]
async fn inspect(_address: &str, hub: super::engines::Hub, _stop: CancellationToken) -> anyhow::Result<()> {
    match hub {}
}

/// The client on standard input and output.
pub(in crate::cli) fn client_streams() -> FrameDuplex {
    let (input, output) = standard_streams();
    stdio::duplex(input, output, &StdioOptions::new("client"))
}

/// Cancelled at SIGINT or SIGTERM.
pub(super) fn stop_on_interrupt() -> CancellationToken {
    let stop = CancellationToken::new();
    let stopper = stop.clone();
    tokio::spawn(async move {
        interrupted().await;
        stopper.cancel();
    });
    stop
}

/// Completes at SIGINT or SIGTERM.
pub(super) async fn interrupted() {
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => {}
        () = terminated => {}
    }
}
