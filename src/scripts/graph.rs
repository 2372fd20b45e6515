//! A script with all modules that it imports.
//!
//! Invariant: the whole graph is read before anything runs, each file once, and every name that is imported exists; an engine
//! finds nothing to complain about. Deliberately nothing is bundled: each file stays a module of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use greenroom_boundary::isolate::{LinkTarget, Links, Module, Script};

use super::full;
use super::library::read;
use super::prepare::{FileKind, Prepared, TypeScriptMode, prepare};
use super::problem::{ImportProblem, ScriptError};
use super::record::{Export, Offset, Wanted};
use super::resolve::Resolver;

/// Most modules of a script.
const MOST_MODULES: usize = 512;
/// Most text of all modules of a script, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// A file of the graph.
pub(super) struct Node {
    /// As the user knows it.
    pub(super) name: String,
    /// Its real path; a helper has none.
    pub(super) file: Option<PathBuf>,
    pub(super) prepared: Arc<Prepared>,
    /// What its requests mean, in their order.
    pub(super) links: Vec<usize>,
}

/// The files of a script; the first is the script itself.
pub(super) struct Graph {
    pub(super) nodes: Vec<Node>,
}

/// Where a script lies.
pub(super) struct Place {
    /// The script, by its real path.
    pub(super) file: PathBuf,
    /// The folder that imports may reach, by its real path.
    pub(super) root: PathBuf,
    /// The same folder as the user knows it.
    pub(super) shown_root: PathBuf,
}

/// Reads the graph of a script. Every file that was looked at is added to `files`.
pub(super) fn read_graph(
    name: &str,
    entry: Arc<Prepared>,
    place: &Place,
    mode: TypeScriptMode,
    files: &mut BTreeSet<PathBuf>,
) -> Result<Graph, ScriptError> {
    let resolver = Resolver::new(place.root.clone());
    let first = Node { name: name.to_owned(), file: Some(place.file.clone()), prepared: entry, links: Vec::new() };
    let mut reader =
        Reader { place, mode, resolver, known: BTreeMap::from([(place.file.clone(), 0)]), nodes: vec![first], bytes: 0 };
    let mut read = Ok(());
    let mut at = 0;
    while at < reader.nodes.len() && read.is_ok() {
        read = reader.links_of(at, files);
        at += 1;
    }
    files.extend(reader.known.keys().cloned());
    files.extend(reader.resolver.read());
    read?;
    let graph = Graph { nodes: reader.nodes };
    graph.check_names()?;
    Ok(graph)
}

struct Reader<'a> {
    place: &'a Place,
    mode: TypeScriptMode,
    resolver: Resolver,
    known: BTreeMap<PathBuf, usize>,
    nodes: Vec<Node>,
    bytes: usize,
}

impl Reader<'_> {
    fn links_of(&mut self, at: usize, files: &mut BTreeSet<PathBuf>) -> Result<(), ScriptError> {
        let (prepared, name) = (self.nodes[at].prepared.clone(), self.nodes[at].name.clone());
        let error = |problem: ImportProblem, offset: Offset, message: String| ScriptError::Import {
            problem,
            place: prepared.error(&name, offset, message),
        };
        let is_vendored = self.nodes[at].file.as_ref().is_none_or(|file| is_vendored(&self.place.root, file));
        if let Some(offset) = prepared.record.dynamic.filter(|_| !is_vendored) {
            let message = "`import()` loads at run time, and a script is read whole before it runs. Write `import … from` at the top of the file";
            return Err(error(ImportProblem::Dynamic, offset, message.to_owned()));
        }
        for request in &prepared.record.requests {
            if let Some((attribute, offset)) = &request.attribute {
                let message =
                    format!("the import attribute `{attribute}` means nothing here; `type: \"json\"` is the only one");
                return Err(error(ImportProblem::Kind, *offset, message));
            }
            let target = self.target(at, &request.specifier, files);
            let target = target.map_err(|refused| match refused {
                Refused::Here(problem, message) => error(problem, request.at, message),
                Refused::There(error) => error,
            })?;
            self.nodes[at].links.push(target);
        }
        Ok(())
    }

    fn target(&mut self, from: usize, specifier: &str, files: &mut BTreeSet<PathBuf>) -> Result<usize, Refused> {
        let folder = match (&self.nodes[from].file, full::helper(specifier)) {
            (_, Some((name, code))) if self.mode == TypeScriptMode::Full => return self.helper(name, code),
            (Some(file), _) => file.parent().map(Path::to_path_buf).unwrap_or_default(),
            (None, _) => PathBuf::new(),
        };
        let found = self.resolver.resolve(&folder, specifier).map_err(|refused| {
            // A file that appears is a reason to look again.
            let aimed = folder.join(specifier);
            if aimed.parent().is_some_and(Path::is_dir) {
                files.extend(["", ".ts", ".js"].map(|end| PathBuf::from(format!("{}{end}", aimed.display()))));
            }
            Refused::Here(refused.problem, refused.message)
        })?;
        if let Some(known) = self.known.get(&found) {
            return Ok(*known);
        }
        files.insert(found.clone());
        self.add(&found, specifier)
    }

    fn add(&mut self, file: &Path, specifier: &str) -> Result<usize, Refused> {
        let here = |problem: ImportProblem, message: String| Refused::Here(problem, message);
        let name = self.shown(file);
        let is_cjs = file.extension().is_some_and(|ext| ext == "cjs" || ext == "cts");
        let kind = FileKind::of(file);
        let Some(kind) = kind else {
            let (problem, message) = if is_cjs {
                (ImportProblem::CommonJs, commonjs(specifier, &name))
            } else {
                (ImportProblem::Kind, format!("{name} cannot be imported: scripts import .ts, .mts, .js, .mjs and .json"))
            };
            return Err(here(problem, message));
        };
        if self.nodes.len() > MOST_MODULES {
            let message =
                format!("the script has more than {MOST_MODULES} modules. Leave some out, or bundle them into one file");
            return Err(here(ImportProblem::TooMuch, message));
        }
        let text = read(file).map_err(|error| here(ImportProblem::Read, format!("{name} cannot be read: {error}")))?;
        self.bytes += text.len();
        if self.bytes > MOST_BYTES {
            let message = format!("the modules of the script have more than {MOST_BYTES} bytes together. Leave some out");
            return Err(here(ImportProblem::TooMuch, message));
        }
        let prepared = prepare(&name, &text, kind, true, self.mode).map_err(|error| Refused::There(error.into()))?;
        if !prepared.record.is_module && prepared.record.commonjs.is_some() {
            return Err(here(ImportProblem::CommonJs, commonjs(specifier, &name)));
        }
        Ok(self.push(Node { name, file: Some(file.to_path_buf()), prepared, links: Vec::new() }))
    }

    fn helper(&mut self, name: String, code: &str) -> Result<usize, Refused> {
        if let Some(known) = self.nodes.iter().position(|node| node.name == name) {
            return Ok(known);
        }
        let prepared =
            prepare(&name, code, FileKind::JavaScript, true, self.mode).map_err(|error| Refused::There(error.into()))?;
        Ok(self.push(Node { name, file: None, prepared, links: Vec::new() }))
    }

    fn push(&mut self, node: Node) -> usize {
        if let Some(file) = &node.file {
            self.known.insert(file.clone(), self.nodes.len());
        }
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// A file as the user knows it.
    fn shown(&self, file: &Path) -> String {
        let below = file.strip_prefix(&self.place.root).unwrap_or(file);
        self.place.shown_root.join(below).display().to_string()
    }
}

enum Refused {
    /// Told where the import stands.
    Here(ImportProblem, String),
    /// Told in the file that it means.
    There(ScriptError),
}

fn is_vendored(root: &Path, file: &Path) -> bool {
    file.strip_prefix(root).is_ok_and(|below| below.components().any(|part| part.as_os_str() == "node_modules"))
}

fn commonjs(specifier: &str, name: &str) -> String {
    format!(
        "{specifier:?} is CommonJS ({name} uses `require` or `module.exports`), and scripts are ES modules. Use a version with an ES \
         module build, or bundle it into one: `npx esbuild {specifier} --bundle --format=esm --outfile=vendor.mjs`"
    )
}

/// What an exported name comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Meaning {
    /// Something of a file, by its name there.
    Own(usize, String),
    /// A whole module.
    Module(usize),
    /// Several files export it.
    Ambiguous,
    Missing,
}

impl Graph {
    fn check_names(&self) -> Result<(), ScriptError> {
        for (index, node) in self.nodes.iter().enumerate() {
            let indirect = node.prepared.record.exports.values().filter_map(|export| match export {
                Export::Other(wanted) => Some(wanted),
                Export::Own(_) => None,
            });
            for wanted in node.prepared.record.wanted.iter().chain(indirect) {
                self.check(index, wanted)?;
            }
        }
        Ok(())
    }

    fn check(&self, of: usize, wanted: &Wanted) -> Result<(), ScriptError> {
        let Some(name) = &wanted.name else { return Ok(()) };
        let node = &self.nodes[of];
        let target = &self.nodes[node.links[wanted.request]];
        let meaning = self.meaning(node.links[wanted.request], name, &mut BTreeSet::new());
        let names = || self.names(node.links[wanted.request], &mut BTreeSet::new());
        let message = match meaning {
            Meaning::Own(..) | Meaning::Module(_) => return Ok(()),
            Meaning::Ambiguous => {
                format!("{} exports {name:?} from more than one module; import it from the one that is meant", target.name)
            }
            Meaning::Missing if target.prepared.types.contains(name) => {
                format!(
                    "{name:?} is only a type in {}. Write `import type {{ {name} }}` or `export type {{ {name} }}`",
                    target.name
                )
            }
            Meaning::Missing => {
                let names = names();
                let near = greenroom_harness::load::nearest(name, names.iter().map(String::as_str));
                let hint = match (near, names.is_empty()) {
                    (Some(near), _) => format!("did you mean {near:?}?"),
                    (None, true) => "it exports nothing".to_owned(),
                    (None, false) => {
                        let some: Vec<&str> = names.iter().take(8).map(String::as_str).collect();
                        format!("it exports {}{}", some.join(", "), if names.len() > 8 { ", …" } else { "" })
                    }
                };
                format!("{} has no export {name:?}; {hint}", target.name)
            }
        };
        Err(ScriptError::Import {
            problem: ImportProblem::NoExport,
            place: node.prepared.error(&node.name, wanted.at, message),
        })
    }

    /// What a name that a file exports comes to.
    pub(super) fn meaning(&self, of: usize, name: &str, seen: &mut BTreeSet<(usize, String)>) -> Meaning {
        let Some(node) = self.nodes.get(of) else { return Meaning::Missing };
        if !seen.insert((of, name.to_owned())) {
            return Meaning::Missing;
        }
        match node.prepared.record.exports.get(name) {
            Some(Export::Own(local)) => return Meaning::Own(of, local.clone()),
            Some(Export::Other(Wanted { request, name: None, .. })) => return Meaning::Module(node.links[*request]),
            Some(Export::Other(Wanted { request, name: Some(name), .. })) => {
                return self.meaning(node.links[*request], name, seen);
            }
            None if name == "default" => return Meaning::Missing,
            None => {}
        }
        let mut found = Meaning::Missing;
        for star in &node.prepared.record.stars {
            match (self.meaning(node.links[*star], name, seen), &found) {
                (Meaning::Missing, _) => {}
                (Meaning::Ambiguous, _) => return Meaning::Ambiguous,
                (meaning, Meaning::Missing) => found = meaning,
                (meaning, known) if meaning != *known => return Meaning::Ambiguous,
                _ => {}
            }
        }
        found
    }

    /// All names that a file exports.
    pub(super) fn names(&self, of: usize, seen: &mut BTreeSet<usize>) -> BTreeSet<String> {
        let Some(node) = self.nodes.get(of).filter(|_| seen.insert(of)) else { return BTreeSet::new() };
        let mut names: BTreeSet<String> = node.prepared.record.exports.keys().cloned().collect();
        for star in &node.prepared.record.stars {
            names.extend(self.names(node.links[*star], seen).into_iter().filter(|name| name != "default"));
        }
        names
    }

    /// The script, its code followed by `more`.
    pub(super) fn script(&self, more: &str) -> Script {
        let target = |index: &usize| index.checked_sub(1).map_or(LinkTarget::Script, LinkTarget::Module);
        let links = |node: &Node| -> Links {
            let texts = node.prepared.record.requests.iter().map(|request| request.specifier.clone());
            texts.zip(node.links.iter().map(target)).collect()
        };
        let module = |node: &Node| Module {
            name: node.name.clone(),
            code: node.prepared.code.clone(),
            links: links(node),
            places: node.prepared.places.clone(),
        };
        let Some((first, others)) = self.nodes.split_first() else { return Script::default() };
        let code =
            if more.is_empty() { first.prepared.code.clone() } else { Arc::from(format!("{}{more}", first.prepared.code)) };
        Script {
            name: first.name.clone(),
            code,
            links: links(first),
            modules: others.iter().map(module).collect(),
            places: first.prepared.places.clone(),
        }
    }
}
