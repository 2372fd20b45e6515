//! Keeping a running host up with its config file.
//!
//! Invariant: a config that is not usable changes nothing; what is wrong with it is told on stderr, and the host goes on.
//! Deliberately no half-way: a config counts whole or not at all.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use tokio::signal::unix::{SignalKind, signal};

use super::world;
use crate::Host;
use crate::config::{HostConfig, ScriptConfig};
use crate::drivers::FileWatch;
use crate::host::Reloaded;
use crate::scripts::ScriptLibrary;

/// Tells one saving of a file from another.
pub(super) type Stamp = Option<(SystemTime, u64)>;

/// The stamp of a file; taken before it is read, it shows later whether it has been saved since.
pub(super) fn stamp(path: &Path) -> Stamp {
    let metadata = std::fs::metadata(path).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

/// Takes the config over anew whenever it, or a script of it, is saved, and at SIGHUP. Never completes. `read` is the config's
/// stamp from before it was read.
pub(super) async fn keep_up(host: Host, path: PathBuf, read: Stamp) {
    let mut hang_up = match signal(SignalKind::hangup()) {
        Ok(signal) => Some(signal),
        Err(error) => {
            tracing::warn!("SIGHUP is not heard: {error}");
            None
        }
    };
    // Of a config that was not taken over: what is mended may lie in a file that the running one does not know.
    let (mut tried, mut before) = (Vec::new(), None::<FileWatch>);
    loop {
        let core = host.core();
        let imported = imports_of(&core.config);
        let watch = FileWatch::new(files_of(&path, &core.config).into_iter().chain(imported).chain(tried.drain(..)));
        let clock = core.drivers.clock.clone();
        drop(core);
        // What was saved while nobody watched: before the first watch, and while this one was made.
        let missed = match (&watch, before.take()) {
            (Ok(watch), Some(before)) => {
                watch.take_over(&before);
                false
            }
            (_, Some(_)) => false,
            (_, None) => stamp(&path) != read,
        };
        let saved = async {
            if missed {
                return;
            }
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
        before = watch.ok();
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use greenroom_boundary::Clock as _;
    use greenroom_boundary::clock::{sleep, timeout_at};
    use greenroom_boundary::isolate::HandOff;
    use greenroom_boundary::trace::NoTrace;
    use greenroom_mocks::isolate::MockIsolate;

    use super::*;
    use crate::context::TABLE;
    use crate::drivers::{OsEntropy, SystemClock};

    /// A save after the config was read and before anybody watched it.
    #[tokio::test]
    async fn a_save_before_the_watch_begins_is_not_missed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("greenroom.yaml");
        std::fs::write(&path, "publish: {name: first}").unwrap();
        let (read, config) = (stamp(&path), world::config(&path).unwrap());
        let drivers =
            world::drivers(&config, Arc::new(MockIsolate::new(&TABLE)), Arc::new(OsEntropy), Arc::new(NoTrace)).unwrap();
        let host = Host::start(config, drivers, HandOff::Concurrent);
        std::fs::write(&path, "publish: {name: the second}").unwrap();
        let taken = async {
            while host.core().config.publish.name.as_deref() != Some("the second") {
                sleep(&SystemClock::new(), Duration::from_millis(5)).await;
            }
        };
        // Far longer than reading a file takes.
        let clock = SystemClock::new();
        let deadline = clock.now().after(Duration::from_secs(20));
        tokio::select! {
            biased;
            taken = timeout_at(&clock, deadline, Box::pin(taken)) => assert!(taken.is_ok(), "it still has the first one"),
            () = keep_up(host.clone(), path.clone(), read) => {}
        }
    }
}
