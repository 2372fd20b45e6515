//! Holds a tree against the JSON Schema of the model.
//!
//! Invariant: the schema is the one that is published, made from the types; so what an editor marks and what the loader
//! refuses are the same, and a new key needs no change here. It knows the part of JSON Schema that those types use.

use std::collections::BTreeMap;

use greenroom_mocks::pattern::{self, PatternError, nearest};
use serde_json::{Map, Value};

use super::node::{Entry, Kind, Node, Problem, pointer_parts, shorten};

/// Most names that a message lists.
const LISTED_NAMES: usize = 16;

/// Everything that is wrong with a tree, in no particular order.
pub(crate) fn check(schema: &Value, root: &Node) -> Vec<Problem> {
    let mut walk = Walk { root: schema, regexes: BTreeMap::new() };
    walk.problems(schema, root, "the scenario").into_iter().map(|(_, problem)| problem).collect()
}

/// A problem with its depth in the tree: the deepest one says best which alternative was meant.
type Deep = (usize, Problem);

struct Walk<'s> {
    root: &'s Value,
    regexes: BTreeMap<&'s str, Option<regex::Regex>>,
}

impl<'s> Walk<'s> {
    /// `place` names the part for messages: "the scenario", "`send`".
    fn problems(&mut self, schema: &'s Value, node: &Node, place: &str) -> Vec<Deep> {
        if is_pattern(schema) {
            return pattern_problem(node);
        }
        match resolve(self.root, schema) {
            Some(schema) => self.problems_in(schema, node, place),
            None => Vec::new(),
        }
    }

    fn problems_in(&mut self, schema: &'s Map<String, Value>, node: &Node, place: &str) -> Vec<Deep> {
        let mut found = Vec::new();
        for branches in ["anyOf", "oneOf"] {
            if let Some(branches) = schema.get(branches).and_then(Value::as_array) {
                found.extend(self.union(branches, node, place));
            }
        }
        for branch in schema.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            found.extend(self.problems(branch, node, place));
        }
        if let Some(problem) = type_problem(schema, node, place).or_else(|| constant_problem(schema, node)) {
            found.push((0, problem));
            return found;
        }
        match &node.kind {
            Kind::Scalar(value) => found.extend(self.scalar(schema, value, node).map(|problem| (0, problem))),
            Kind::Sequence(items) => found.extend(self.sequence(schema, items, node, place)),
            Kind::Mapping(entries) => found.extend(self.mapping(schema, entries, node, place)),
        }
        found
    }

    fn scalar(&mut self, schema: &'s Map<String, Value>, value: &Value, node: &Node) -> Option<Problem> {
        if let (Value::String(text), Some(pattern)) = (value, schema.get("pattern").and_then(Value::as_str))
            && !self.is_match(pattern, text)
        {
            let what = schema.get("description").and_then(Value::as_str).map(str::to_owned);
            let message = format!("`{}` does not have the right form", shorten(text));
            return Some(Problem::new(node.span, message).maybe_help(what));
        }
        let number = value.as_f64()?;
        let bound = |name: &str| schema.get(name).and_then(Value::as_f64);
        if let Some(least) = bound("minimum").filter(|least| number < *least) {
            return Some(Problem::new(node.span, format!("{value} is too small; the least is {least}")));
        }
        bound("maximum")
            .filter(|most| number > *most)
            .map(|most| Problem::new(node.span, format!("{value} is too large; the most is {most}")))
    }

    fn is_match(&mut self, pattern: &'s str, text: &str) -> bool {
        let regex = self.regexes.entry(pattern).or_insert_with(|| regex::Regex::new(pattern).ok());
        regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }

    fn sequence(&mut self, schema: &'s Map<String, Value>, items: &[Node], node: &Node, place: &str) -> Vec<Deep> {
        let mut found = Vec::new();
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0);
        if (items.len() as u64) < least {
            found.push((0, Problem::new(node.span, format!("{place} needs at least {least} {}", entries_word(least)))));
        }
        if let Some(schema) = schema.get("items") {
            let place = format!("an entry of {place}");
            found.extend(items.iter().flat_map(|item| deeper(self.problems(schema, item, &place))));
        }
        found
    }

    fn mapping(&mut self, schema: &'s Map<String, Value>, entries: &[Entry], node: &Node, place: &str) -> Vec<Deep> {
        let mut found = Vec::new();
        let known: Vec<&str> = object(schema.get("properties")).map(|(key, _)| key.as_str()).collect();
        let mut meant: Vec<&str> = Vec::new();
        for entry in entries {
            let property = schema.get("properties").and_then(|properties| properties.get(&entry.key));
            let by_pattern = object(schema.get("patternProperties"))
                .find(|(pattern, _)| self.is_match(pattern, &entry.key))
                .map(|(_, schema)| schema);
            let place = format!("`{}`", entry.key);
            match property.or(by_pattern).or(schema.get("additionalProperties")) {
                Some(Value::Bool(false)) => {
                    let near = nearest(&entry.key, known.iter().copied().filter(|key| !has(entries, key)));
                    meant.extend(near);
                    found.push((0, unknown_key(entry, near, &known, schema)));
                }
                Some(schema) => found.extend(deeper(self.problems(schema, &entry.value, &place))),
                None => {}
            }
        }
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        for key in required.filter(|key| !has(entries, key) && !meant.contains(key)) {
            found.push((0, Problem::new(node.span, format!("{place} needs the key `{key}`"))));
        }
        if found.is_empty() && entries.is_empty() && schema.get("minProperties").is_some() {
            found.push((0, Problem::new(node.span, format!("{place} is empty")).help(list("write one of", &known))));
        }
        found
    }

    /// One of several forms: the one that fits, else the one that fails deepest.
    fn union(&mut self, branches: &'s [Value], node: &Node, place: &str) -> Vec<Deep> {
        let schemas: Vec<&'s Map<String, Value>> = branches.iter().filter_map(|branch| resolve(self.root, branch)).collect();
        if let Some(tagged) = tags(&schemas) {
            return self.tagged(&tagged, node, place);
        }
        let names: Vec<&str> = schemas.iter().flat_map(|schema| constants(schema)).filter_map(Value::as_str).collect();
        let fits = |branch: &Value| resolve(self.root, branch).is_none_or(|schema| type_problem(schema, node, place).is_none());
        let fitting: Vec<&'s Value> = branches.iter().filter(|branch| fits(branch)).collect();
        if let (Kind::Scalar(Value::String(text)), false) = (&node.kind, names.is_empty()) {
            let open = |branch: &&Value| resolve(self.root, branch).is_none_or(|schema| constants(schema).is_empty());
            if !fitting.iter().any(open) && !names.contains(&text.as_str()) {
                return vec![(0, unknown_name(text, &names, node))];
            }
        }
        let depth = |problems: &[Deep]| problems.iter().map(|(depth, _)| *depth).max().unwrap_or(0);
        let mut best: Option<Vec<Deep>> = None;
        for branch in fitting {
            let problems = self.problems(branch, node, place);
            if problems.is_empty() {
                return Vec::new();
            }
            let better = best.as_ref().is_none_or(|best| (depth(&problems), best.len()) > (depth(best), problems.len()));
            if better {
                best = Some(problems);
            }
        }
        best.unwrap_or_else(|| {
            let types: Vec<&str> = schemas.iter().flat_map(|schema| types(schema)).filter(|name| *name != "null").collect();
            vec![(0, wrong_type(&types, node, place))]
        })
    }

    /// A choice that is told by its only key: `{ script: … }` or `{ replay: … }`.
    fn tagged(&mut self, tagged: &[(&'s str, &'s Value)], node: &Node, place: &str) -> Vec<Deep> {
        let names: Vec<&str> = tagged.iter().map(|(name, _)| *name).collect();
        let Kind::Mapping(entries) = &node.kind else {
            let problem = Problem::new(node.span, format!("{place} needs a mapping with one key, not {}", node.describe()));
            return vec![(0, problem.help(list("write one of", &names)))];
        };
        if let Some(entry) = entries.iter().find(|entry| !names.contains(&entry.key.as_str())) {
            let near = nearest(&entry.key, names.iter().copied());
            let help = near.map_or_else(|| list("write one of", &names), |near| format!("did you mean `{near}`?"));
            return vec![(0, Problem::new(entry.key_span, format!("unknown key `{}`", entry.key)).help(help))];
        }
        match entries.as_slice() {
            [entry] => {
                let schema = tagged.iter().find(|(name, _)| *name == entry.key).map(|(_, schema)| *schema);
                let place = format!("`{}`", entry.key);
                schema.map(|schema| deeper(self.problems(schema, &entry.value, &place))).unwrap_or_default()
            }
            [] => vec![(0, Problem::new(node.span, format!("{place} is empty")).help(list("write one of", &names)))],
            [_, second, ..] => {
                vec![(0, Problem::new(second.key_span, format!("{place} takes only one of {}", ticked(&names))))]
            }
        }
    }
}

fn deeper(problems: Vec<Deep>) -> Vec<Deep> {
    problems.into_iter().map(|(depth, problem)| (depth + 1, problem)).collect()
}

fn has(entries: &[Entry], key: &str) -> bool {
    entries.iter().any(|entry| entry.key == key)
}

fn object(schema: Option<&Value>) -> impl Iterator<Item = (&String, &Value)> {
    schema.and_then(Value::as_object).into_iter().flatten()
}

/// Whether a schema asks for a pattern, whose own rules JSON Schema cannot say.
fn is_pattern(schema: &Value) -> bool {
    schema.get("$ref").and_then(Value::as_str) == Some("#/$defs/Pattern")
}

/// Follows a reference.
fn resolve<'s>(root: &'s Value, schema: &'s Value) -> Option<&'s Map<String, Value>> {
    let schema = schema.as_object()?;
    match schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#')) {
        Some(pointer) => resolve(root, root.pointer(pointer)?),
        None => Some(schema),
    }
}

/// The key and the schema of each branch, if every branch is an object with exactly one key.
fn tags<'s>(branches: &[&'s Map<String, Value>]) -> Option<Vec<(&'s str, &'s Value)>> {
    let tag = |branch: &&'s Map<String, Value>| {
        let properties = branch.get("properties")?.as_object()?;
        let required = branch.get("required")?.as_array()?;
        let (name, schema) = properties.iter().next()?;
        let alone =
            properties.len() == 1 && required.len() == 1 && branch.get("additionalProperties") == Some(&Value::Bool(false));
        alone.then_some((name.as_str(), schema))
    };
    if branches.len() < 2 { None } else { branches.iter().map(tag).collect() }
}

fn constants(schema: &Map<String, Value>) -> Vec<&Value> {
    let listed = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    schema.get("const").into_iter().chain(listed).collect()
}

fn constant_problem(schema: &Map<String, Value>, node: &Node) -> Option<Problem> {
    let allowed = constants(schema);
    let Kind::Scalar(value) = &node.kind else { return None };
    if allowed.is_empty() || allowed.contains(&value) {
        return None;
    }
    let names: Vec<&str> = allowed.iter().filter_map(|value| value.as_str()).collect();
    match value.as_str() {
        Some(text) if !names.is_empty() => Some(unknown_name(text, &names, node)),
        _ => {
            let texts: Vec<String> = allowed.iter().map(|value| format!("`{value}`")).collect();
            Some(Problem::new(node.span, format!("only {} makes sense here, not {}", texts.join(" or "), node.describe())))
        }
    }
}

fn unknown_name(text: &str, names: &[&str], node: &Node) -> Problem {
    let help = nearest(text, names.iter().copied())
        .map_or_else(|| list("write one of", names), |near| format!("did you mean `{near}`?"));
    Problem::new(node.span, format!("`{}` is not known here", shorten(text))).help(help)
}

fn unknown_key(entry: &Entry, near: Option<&str>, known: &[&str], schema: &Map<String, Value>) -> Problem {
    let patterned = schema.contains_key("patternProperties");
    let help = match near {
        Some(near) => format!("did you mean `{near}`?"),
        None if patterned => format!("{}, or a name such as `llm.main`, `mcp.shop`, `cli.tools`", list("write one of", known)),
        None => list("the keys here are", known),
    };
    Problem::new(entry.key_span, format!("unknown key `{}`", entry.key)).help(help)
}

fn types(schema: &Map<String, Value>) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => vec![name],
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn type_problem(schema: &Map<String, Value>, node: &Node, place: &str) -> Option<Problem> {
    let wanted = types(schema);
    let fits = |name: &&str| match (*name, &node.kind) {
        ("object", Kind::Mapping(_)) | ("array", Kind::Sequence(_)) => true,
        (name, Kind::Scalar(value)) => match value {
            Value::Null => name == "null",
            Value::Bool(_) => name == "boolean",
            Value::Number(number) => name == "number" || (name == "integer" && !number.is_f64()),
            Value::String(_) => name == "string",
            _ => false,
        },
        _ => false,
    };
    (!wanted.is_empty() && !wanted.iter().any(fits)).then(|| {
        let wanted: Vec<&str> = wanted.into_iter().filter(|name| *name != "null").collect();
        wrong_type(&wanted, node, place)
    })
}

fn wrong_type(wanted: &[&str], node: &Node, place: &str) -> Problem {
    let mut names: Vec<&str> = wanted
        .iter()
        .map(|name| match *name {
            "object" => "a mapping",
            "array" => "a list",
            "string" => "a text",
            "integer" => "a whole number",
            "number" => "a number",
            "boolean" => "`true` or `false`",
            other => other,
        })
        .collect();
    names.dedup();
    let problem = Problem::new(node.span, format!("{place} needs {}, not {}", names.join(" or "), node.describe()));
    match &node.kind {
        Kind::Scalar(value) if wanted == ["string"] && !value.is_null() => problem.help(format!("quote it: \"{value}\"")),
        _ => problem,
    }
}

fn pattern_problem(node: &Node) -> Vec<Deep> {
    let Err(error) = pattern::validate(&node.to_value()) else { return Vec::new() };
    let parts = pointer_parts(error.path());
    let parent = node.nearest(parts.iter().take(parts.len().saturating_sub(1)).map(String::as_str));
    let span = match parts.last().and_then(|key| parent.entry(key)) {
        Some(entry) => entry.key_span,
        None => node.span,
    };
    let help = match error {
        PatternError::UnknownOperator { nearest: None, .. } => Some(list("the operators are", &pattern::OPERATORS)),
        _ => None,
    };
    vec![(parts.len(), Problem::new(span, error.to_string()).maybe_help(help))]
}

fn entries_word(number: u64) -> &'static str {
    if number == 1 { "entry" } else { "entries" }
}

fn ticked(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn list(lead: &str, names: &[&str]) -> String {
    let shown = ticked(&names[..names.len().min(LISTED_NAMES)]);
    let more = names.len().saturating_sub(LISTED_NAMES);
    if more > 0 { format!("{lead} {shown} and {more} more") } else { format!("{lead} {shown}") }
}
