//! Which file an import means.
//!
//! Invariant: nothing outside of the script's root is read, or returned; links that lead out of it are refused. Deliberately no
//! network and no modules of Node. Packages are found as Node finds them (`oxc_resolver`), in `node_modules` below the root.

use std::collections::BTreeSet;
use std::io;
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use oxc_resolver::{FileMetadata, FileSystem, ResolveError, ResolveOptions, ResolverGeneric};

use super::problem::ImportProblem;

/// Modules of Node that people import without `node:`.
const NODE_MODULES: &[&str] = &[
    "assert",
    "buffer",
    "child_process",
    "crypto",
    "dns",
    "events",
    "fs",
    "fs/promises",
    "http",
    "https",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "querystring",
    "readline",
    "stream",
    "timers",
    "timers/promises",
    "tls",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "worker_threads",
    "zlib",
];

/// Finds files below a root.
pub(super) struct Resolver {
    root: PathBuf,
    read: Arc<Mutex<BTreeSet<PathBuf>>>,
    inner: ResolverGeneric<Jail>,
}

/// Why an import means no file.
pub(super) struct Refusal {
    pub(super) problem: ImportProblem,
    pub(super) message: String,
}

impl Resolver {
    /// A resolver below a root, which is a real path.
    pub(super) fn new(root: PathBuf) -> Self {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<String>>();
        let options = ResolveOptions {
            condition_names: owned(&["import", "module", "default"]),
            extensions: owned(&[".ts", ".mts", ".js", ".mjs", ".json"]),
            extension_alias: vec![(".js".to_owned(), owned(&[".js", ".ts"])), (".mjs".to_owned(), owned(&[".mjs", ".mts"]))],
            main_fields: owned(&["module", "main"]),
            symlinks: true,
            ..ResolveOptions::default()
        };
        let read = Arc::<Mutex<BTreeSet<PathBuf>>>::default();
        let jail = Jail { root: root.clone(), read: read.clone() };
        Self { root, read, inner: ResolverGeneric::new_with_file_system(jail, options) }
    }

    /// The descriptions of packages that were read.
    pub(super) fn read(&self) -> Vec<PathBuf> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// The file that a module in `folder` means.
    pub(super) fn resolve(&self, folder: &Path, specifier: &str) -> Result<PathBuf, Refusal> {
        let refuse = |problem: ImportProblem, message: String| Err(Refusal { problem, message });
        if let Some(name) = specifier.strip_prefix("node:") {
            return refuse(ImportProblem::BuiltIn, built_in(name));
        }
        if let Some((scheme, _)) = specifier.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) {
            return refuse(ImportProblem::Network, address(specifier, scheme));
        }
        let is_relative = specifier.starts_with("./") || specifier.starts_with("../") || matches!(specifier, "." | "..");
        let aimed = if is_relative { normal(&folder.join(specifier)) } else { PathBuf::new() };
        if specifier.starts_with('/') || is_relative && !aimed.starts_with(&self.root) {
            let message = format!(
                "{specifier:?} leads out of the script's root, the folder of the config. Put the file below it and import it with \
                 a path that starts with `./` or `../`"
            );
            return refuse(ImportProblem::Outside, message);
        }
        match self.inner.resolve(folder, specifier) {
            Ok(found) if found.path().starts_with(&self.root) => Ok(found.into_path_buf()),
            Ok(_) => {
                let message = format!("{specifier:?} is a link that leads out of the script's root. Put a copy in its place");
                refuse(ImportProblem::Outside, message)
            }
            Err(error) if is_relative => Self::no_file(specifier, &aimed, &error),
            Err(error) => self.no_package(folder, specifier, &error),
        }
    }

    fn no_file(specifier: &str, aimed: &Path, error: &ResolveError) -> Result<PathBuf, Refusal> {
        if std::fs::symlink_metadata(aimed).is_ok_and(|it| it.is_symlink()) {
            let message =
                format!("{specifier:?} is a link that leads nowhere, or out of the script's root. Put a copy in its place");
            return Err(Refusal { problem: ImportProblem::Outside, message });
        }
        let near = aimed.parent().and_then(|folder| nearest(folder, aimed));
        let hint = match near {
            Some(name) => format!("; there is {name:?} in that folder"),
            None => String::new(),
        };
        let why = unreadable(error).map(|why| format!(": {why}")).unwrap_or_default();
        let message = format!(
            "{specifier:?} is no file that can be imported{why}{hint}. Tried as it is and with .ts, .mts, .js, .mjs, .json"
        );
        Err(Refusal { problem: ImportProblem::NotFound, message })
    }

    fn no_package(&self, folder: &Path, specifier: &str, error: &ResolveError) -> Result<PathBuf, Refusal> {
        if NODE_MODULES.contains(&specifier) {
            return Err(Refusal { problem: ImportProblem::BuiltIn, message: built_in(specifier) });
        }
        let name = package_name(specifier);
        let is_there = folder
            .ancestors()
            .take_while(|at| at.starts_with(&self.root))
            .any(|at| at.join("node_modules").join(name).is_dir());
        let message = match error {
            ResolveError::PackagePathNotExported { subpath, .. } => {
                format!(
                    "the package {name:?} does not export {subpath:?} to ES modules; its package.json says under `exports` what it does"
                )
            }
            _ if specifier.starts_with('#') => {
                format!("{specifier:?} is not among the `imports` of the package's package.json")
            }
            _ if is_there => {
                let why = unreadable(error).unwrap_or_else(|| "its package.json names no file that is there".to_owned());
                format!("the package {name:?} cannot be used: {why}. Install it again")
            }
            _ => format!(
                "no package {name:?} in `node_modules` below the script's root. Install it there (`npm install {name}` in the folder \
                 of the config), or begin the path of a file with `./`"
            ),
        };
        Err(Refusal { problem: ImportProblem::NotFound, message })
    }
}

fn built_in(name: &str) -> String {
    format!(
        "{name:?} is a module of Node, and scripts do not run in Node: what a script may do is on `ctx`. Leave the import out"
    )
}

fn address(specifier: &str, scheme: &str) -> String {
    let what = match scheme {
        "http" | "https" => "is loaded from the network, and scripts load nothing from there",
        "file" => "is an address of a file",
        _ => "is an address",
    };
    format!("{specifier:?} {what}. Save the module below the script's root and import it with a path that starts with `./`")
}

fn is_scheme(text: &str) -> bool {
    text.len() > 1
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
}

/// `name` or `@scope/name` of `name/path`.
fn package_name(specifier: &str) -> &str {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    specifier.match_indices('/').nth(parts - 1).map_or(specifier, |(at, _)| &specifier[..at])
}

/// What is wrong with a package.json, without paths of this machine.
fn unreadable(error: &ResolveError) -> Option<String> {
    match error {
        ResolveError::Json(error) => {
            Some(format!("its package.json is no JSON (line {}, column {})", error.line, error.column))
        }
        ResolveError::InvalidPackageTarget(target, ..) => {
            Some(format!("its package.json exports {target:?}, which is no path within it"))
        }
        ResolveError::InvalidPackageConfig(_) => Some("the `exports` of its package.json mix paths and conditions".to_owned()),
        _ => None,
    }
}

/// The path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut whole = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(whole.pop()),
            other => whole.push(other),
        }
    }
    whole
}

/// The file of a folder whose name is nearest to what was meant.
fn nearest(folder: &Path, aimed: &Path) -> Option<String> {
    let wanted = aimed.file_name()?.to_str()?;
    let mut names: Vec<String> =
        std::fs::read_dir(folder).ok()?.take(1_000).filter_map(|it| it.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    // Without an end, the name is meant whatever the end is.
    let shown = |name: &'_ str| -> String {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        if wanted.contains('.') { name.to_owned() } else { stem.to_owned() }
    };
    let compared: Vec<String> = names.iter().map(|name| shown(name)).collect();
    let near = greenroom_harness::load::nearest(wanted, compared.iter().map(String::as_str))?;
    let index = compared.iter().position(|name| name == near)?;
    names.get(index).cloned()
}

/// The file system below the root; the rest does not exist.
struct Jail {
    root: PathBuf,
    read: Arc<Mutex<BTreeSet<PathBuf>>>,
}

impl Jail {
    /// The real path, if it lies below the root.
    fn real(&self, path: &Path) -> io::Result<PathBuf> {
        if !normal(path).starts_with(&self.root) {
            return Err(io::ErrorKind::NotFound.into());
        }
        let real = std::fs::canonicalize(path)?;
        if real.starts_with(&self.root) { Ok(real) } else { Err(io::ErrorKind::NotFound.into()) }
    }
}

impl FileSystem for Jail {
    fn new() -> Self {
        Self { root: PathBuf::new(), read: Arc::default() }
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let real = self.real(path)?;
        self.read.lock().unwrap_or_else(PoisonError::into_inner).insert(real.clone());
        std::fs::read(real)
    }

    fn read_to_string(&self, path: &Path) -> io::Result<String> {
        String::from_utf8(self.read(path)?).map_err(|_| io::ErrorKind::InvalidData.into())
    }

    fn metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        let found = std::fs::metadata(self.real(path)?)?;
        Ok(FileMetadata::new(found.is_file(), found.is_dir(), false))
    }

    fn symlink_metadata(&self, path: &Path) -> io::Result<FileMetadata> {
        self.real(path)?;
        let found = std::fs::symlink_metadata(path)?;
        Ok(FileMetadata::new(found.is_file(), found.is_dir(), found.is_symlink()))
    }

    fn read_link(&self, path: &Path) -> Result<PathBuf, ResolveError> {
        self.real(path)?;
        Ok(std::fs::read_link(path)?)
    }

    fn canonicalize(&self, path: &Path) -> io::Result<PathBuf> {
        self.real(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_packages() {
        for (specifier, name) in [("a", "a"), ("a/b/c", "a"), ("@a/b", "@a/b"), ("@a/b/c", "@a/b")] {
            assert_eq!(package_name(specifier), name);
        }
        assert!(is_scheme("https") && is_scheme("git+ssh") && !is_scheme("c") && !is_scheme("./a"));
    }
}
