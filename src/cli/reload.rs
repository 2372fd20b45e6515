//! Keeping a running host up with its config file.
//!
//! Invariant: a config that is not usable changes nothing; what is wrong with it is told on stderr, and the host goes on.
//! Deliberately no half-way: a config counts whole or not at all.

use std::path::{Path, PathBuf};

use tokio::signal::unix::{SignalKind, signal};

use super::world;
use crate::Host;
use crate::config::{HostConfig, ScriptConfig};
use crate::drivers::FileWatch;
use crate::host::Reloaded;
use crate::scripts::ScriptLibrary;

/// Takes the config over anew whenever it, or a script of it, is saved, and at SIGHUP. Never completes.
pub(super) async fn keep_up(host: Host, path: PathBuf) {
    let mut hang_up = match signal(SignalKind::hangup()) {
        Ok(signal) => Some(signal),
        Err(error) => {
            tracing::warn!("SIGHUP is not heard: {error}");
            None
        }
    };
    // Of a config that was not taken over: what is mended may lie in a file that the running one does not know.
    let mut tried = Vec::new();
    loop {
        let core = host.core();
        let imported = imports_of(&core.config);
        let watch = FileWatch::new(files_of(&path, &core.config).into_iter().chain(imported).chain(tried.drain(..)));
        let clock = core.drivers.clock.clone();
        drop(core);
        let saved = async {
            match &watch {
                Ok(watch) => drop(watch.changed(clock.as_ref()).await),
                Err(error) => {
                    tracing::warn!("changes of the config are not seen: {error}; send SIGHUP after an edit");
                    std::future::pending::<()>().await;
                }
            }
        };
        let hung_up = async {
            match &mut hang_up {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = hung_up => {}
            () = saved => {}
        }
        match take_over(&host, &path, &mut tried) {
            Ok(reloaded) => eprintln!("{}: taken over{}", path.display(), summary(&reloaded)),
            Err(error) => eprintln!("{}: not taken over, the host goes on as before: {error:#}", path.display()),
        }
    }
}

fn files_of(path: &Path, config: &HostConfig) -> Vec<PathBuf> {
    let scripts = config.scripts().filter_map(|script| match script {
        ScriptConfig::File(file) => Some(file.clone()),
        ScriptConfig::Inline { .. } => None,
    });
    scripts.chain([path.to_path_buf()]).collect()
}

/// The files that the scripts of a config import, whether the scripts are usable or not.
fn imports_of(config: &HostConfig) -> Vec<PathBuf> {
    let scripts = ScriptLibrary::of(config);
    config.scripts().for_each(|script| drop(scripts.load(script)));
    scripts.files()
}

fn take_over(host: &Host, path: &Path, tried: &mut Vec<PathBuf>) -> anyhow::Result<Reloaded> {
    let config = world::config(path)?;
    let scripts = ScriptLibrary::of(&config);
    for script in config.scripts() {
        let loaded = scripts.load(script);
        *tried = files_of(path, &config).into_iter().chain(scripts.files()).collect();
        loaded.map_err(|error| anyhow::anyhow!("a script of it is not usable: {}", error.report()))?;
    }
    let drivers = world::drivers_anew(&host.core().drivers, &config)?;
    Ok(host.reload(config, drivers))
}

fn summary(reloaded: &Reloaded) -> String {
    let mut said = String::new();
    for (word, names) in [("new", &reloaded.added), ("gone", &reloaded.removed), ("replaced", &reloaded.replaced)] {
        if !names.is_empty() {
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            said.push_str(&format!("; {word}: {}", names.join(", ")));
        }
    }
    said
}
