//! The functions of a script as tools.
//!
//! Invariant: what a script exports are its tools; a script that exports nothing offers all its functions. A function that
//! takes its arguments one by one is called through a line behind the end of the script, so that places stay. Deliberately no
//! types of other files than the one that a function stands in.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::OnceLock;

use greenroom_boundary::script::ADDED;
use serde_json::Value;

use super::graph::{Graph, Meaning, Node};
use super::prepare::Prepared;
use super::record::{Export, Wanted};
use super::signature::Signature;

/// Before the name of what calls a function with its arguments one by one.
const CALLER: &str = "$greenroom$";
/// Most problems of one call that are told.
const MOST_PROBLEMS: usize = 8;

/// The tools of a script.
#[derive(Debug, Default)]
pub struct ToolSet {
    /// The names that are tools if they are functions; none: all functions are.
    exported: Option<BTreeSet<String>>,
    tools: BTreeMap<String, Tool>,
}

#[derive(Debug)]
struct Tool {
    signature: Signature,
    /// Of its schema; made when it is first called.
    validator: OnceLock<Option<jsonschema::Validator>>,
}

impl ToolSet {
    /// Whether a function is a tool.
    pub fn offers(&self, name: &str) -> bool {
        !name.starts_with(CALLER) && self.exported.as_ref().is_none_or(|names| names.contains(name))
    }

    /// What a tool takes.
    pub fn signature(&self, name: &str) -> Option<&Signature> {
        self.tools.get(name).map(|tool| &tool.signature)
    }

    /// What is wrong with the arguments of a call; nothing if they fit.
    pub fn problems(&self, name: &str, arguments: &Value) -> Vec<String> {
        let Some(tool) = self.tools.get(name) else { return Vec::new() };
        let make = || tool.signature.schema.as_ref().and_then(|schema| jsonschema::validator_for(schema).ok());
        let Some(validator) = tool.validator.get_or_init(make) else { return Vec::new() };
        let told = validator.iter_errors(arguments).take(MOST_PROBLEMS).map(|error| {
            let at = error.instance_path().to_string();
            if at.is_empty() { error.to_string() } else { format!("{}: {error}", at.trim_start_matches('/').replace('/', ".")) }
        });
        told.collect()
    }

    /// The function to call for a tool.
    pub fn function(&self, name: &str) -> String {
        let by_name = self.signature(name).is_some_and(|tool| tool.by_name.is_some());
        if by_name { format!("{CALLER}{name}") } else { name.to_owned() }
    }
}

impl Graph {
    /// The graph of a script without imports.
    pub(super) fn of_one(name: &str, prepared: std::sync::Arc<Prepared>) -> Self {
        Self { nodes: vec![Node { name: name.to_owned(), file: None, prepared, links: Vec::new() }] }
    }
}

/// The tools of a script, and code to put behind its end.
pub(super) fn tool_set(graph: &Graph) -> (ToolSet, String) {
    let mut set = ToolSet::default();
    let mut code = String::new();
    let Some(entry) = graph.nodes.first() else { return (set, code) };
    let record = &entry.prepared.record;
    let exported = graph.names(0, &mut BTreeSet::new());
    let all = if exported.is_empty() { entry.prepared.functions.keys().cloned().collect() } else { exported.clone() };
    for name in &all {
        let (signature, target) = if exported.is_empty() {
            (entry.prepared.functions.get(name), Some(name.clone()))
        } else {
            let Meaning::Own(node, local) = graph.meaning(0, name, &mut BTreeSet::new()) else { continue };
            let signature = graph.nodes.get(node).and_then(|node| node.prepared.functions.get(&local));
            (signature, Some(local).filter(|_| node == 0))
        };
        let Some(mut signature) = signature.cloned() else { continue };
        if let Some(names) = signature.by_name.clone() {
            let target = target.or_else(|| import_again(graph, name, &mut code));
            match target.filter(|target| is_name(target) && is_name(name)) {
                Some(target) => caller(name, &target, &names, &mut code),
                None => signature = Signature { description: signature.description, ..Signature::default() },
            }
        }
        set.tools.insert(name.clone(), Tool { signature, validator: OnceLock::new() });
    }
    if !code.is_empty() {
        code.insert_str(0, ADDED);
    }
    set.exported = record.is_module.then_some(exported).filter(|names| !names.is_empty());
    (set, code)
}

/// `default` and the like are no names that code can use.
fn is_name(name: &str) -> bool {
    name != "default" && super::is_variable_name(name)
}

/// A function that takes the tool's arguments and `ctx`. A name that JavaScript gives every object is still missing when it is.
fn caller(name: &str, target: &str, arguments: &[String], code: &mut String) {
    let list: Vec<String> = arguments.iter().map(|argument| format!("given.{argument}")).collect();
    let _ = write!(
        code,
        "\nfunction {CALLER}{name}(all, ctx) {{ const given = {{ __proto__: null, ...all }}; return {target}({}, ctx); }}",
        list.join(", ")
    );
}

/// Imports a function that the script only exports again; its name here.
fn import_again(graph: &Graph, name: &str, code: &mut String) -> Option<String> {
    let entry = graph.nodes.first()?;
    let record = &entry.prepared.record;
    let (request, imported) = match record.exports.get(name) {
        Some(Export::Other(Wanted { request, name: Some(imported), .. })) => (*request, imported.clone()),
        Some(_) => return None,
        None => {
            let has = |star: &&usize| {
                let meaning = graph.meaning(entry.links[**star], name, &mut BTreeSet::new());
                matches!(meaning, Meaning::Own(..))
            };
            (*record.stars.iter().find(has)?, name.to_owned())
        }
    };
    let specifier = &record.requests.get(request)?.specifier;
    let local = format!("{CALLER}{name}$of");
    if !is_name(&imported) && imported != "default" {
        return None;
    }
    let _ = write!(code, "\nimport {{ {imported} as {local} }} from {};", serde_json::Value::from(specifier.as_str()));
    Some(local)
}
