//! `matrix` and the references `${matrix.NAME}` and `${seed}`.
//!
//! Invariant: references stand in scalars that are parsed already, so no value can change the structure of the file; a
//! reference that is a whole scalar keeps the type of its value. Any other `${…}` is text, as JavaScript uses it too.

use serde_json::Value;

use greenroom_mocks::pattern::nearest;

use super::node::{Entry, Kind, Node, Problem, Span};

/// Keys whose text is code: there only a reference that is the whole text counts.
const CODE_KEYS: [&str; 2] = ["js", "script_inline"];

/// One combination of the matrix.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Values {
    pub(crate) matrix: Vec<(String, Value)>,
    pub(crate) seed: u64,
}

impl Values {
    /// What is put behind the scenario's id: `[spec=2025-11-25]`, or nothing.
    pub(crate) fn suffix(&self) -> String {
        if self.matrix.is_empty() {
            return String::new();
        }
        let parts: Vec<String> = self.matrix.iter().map(|(name, value)| format!("{name}={}", in_text(value))).collect();
        format!("[{}]", parts.join(","))
    }

    fn lookup(&self, name: &str, span: Span) -> Result<Option<Value>, Problem> {
        if name == "seed" {
            return Ok(Some(self.seed.into()));
        }
        let Some(key) = name.strip_prefix("matrix.") else { return Ok(None) };
        match self.matrix.iter().find(|(name, _)| name == key) {
            Some((_, value)) => Ok(Some(value.clone())),
            None => Err(Problem::new(span, format!("`${{{name}}}` names no key of `matrix`")).maybe_help(
                nearest(key, self.matrix.iter().map(|(name, _)| name.as_str()))
                    .map(|near| format!("did you mean `${{matrix.{near}}}`?")),
            )),
        }
    }
}

/// Most cases that one file may make.
const MAX_CASES: usize = 10_000;

/// A matrix of more cases than anyone runs, found before they are made.
pub(crate) fn too_many(root: &Node) -> Option<Problem> {
    let matrix = root.child("matrix")?;
    let Kind::Mapping(entries) = &matrix.kind else { return None };
    let choices = entries.iter().map(|entry| if let Kind::Sequence(choices) = &entry.value.kind { choices.len() } else { 1 });
    let cases = choices.fold(1, usize::saturating_mul);
    let problem = || {
        Problem::new(matrix.span, format!("the matrix makes {cases} cases; a file may make {MAX_CASES}"))
            .help("leave values out, or split the scenario")
    };
    (cases > MAX_CASES).then(problem)
}

/// All combinations, in the order of the file; the last key turns fastest.
pub(crate) fn combinations(root: &Node, seed: u64) -> Vec<Values> {
    let mut all = vec![Values { matrix: Vec::new(), seed }];
    let Some(Kind::Mapping(entries)) = root.child("matrix").map(|matrix| &matrix.kind) else { return all };
    for Entry { key, value, .. } in entries {
        let Kind::Sequence(choices) = &value.kind else { continue };
        all = all
            .iter()
            .flat_map(|values| {
                choices.iter().map(|choice| {
                    let mut values = values.clone();
                    values.matrix.push((key.clone(), choice.to_value()));
                    values
                })
            })
            .collect();
    }
    all
}

/// The tree with its references resolved. The `matrix` section stays as it is.
pub(crate) fn resolve(root: &Node, values: &Values) -> Result<Node, Problem> {
    let Kind::Mapping(entries) = &root.kind else { return Ok(root.clone()) };
    let entries = entries
        .iter()
        .map(|entry| if entry.key == "matrix" { Ok(entry.clone()) } else { resolve_entry(entry, values) })
        .collect::<Result<_, _>>()?;
    Ok(Node { span: root.span, kind: Kind::Mapping(entries) })
}

fn resolve_entry(entry: &Entry, values: &Values) -> Result<Entry, Problem> {
    let code = CODE_KEYS.contains(&entry.key.as_str());
    Ok(Entry { key: entry.key.clone(), key_span: entry.key_span, value: resolve_node(&entry.value, values, code)? })
}

fn resolve_node(node: &Node, values: &Values, code: bool) -> Result<Node, Problem> {
    let kind = match &node.kind {
        Kind::Scalar(Value::String(text)) if text.contains("${") => return resolve_text(text, node, values, code),
        Kind::Scalar(value) => Kind::Scalar(value.clone()),
        Kind::Sequence(items) => {
            Kind::Sequence(items.iter().map(|item| resolve_node(item, values, false)).collect::<Result<_, _>>()?)
        }
        Kind::Mapping(entries) => {
            Kind::Mapping(entries.iter().map(|entry| resolve_entry(entry, values)).collect::<Result<_, _>>()?)
        }
    };
    Ok(Node { span: node.span, kind })
}

fn resolve_text(text: &str, node: &Node, values: &Values, code: bool) -> Result<Node, Problem> {
    if let Some(name) = whole_reference(text) {
        return Ok(match values.lookup(name, node.span)? {
            Some(value) => Node::of_value(&value, node.span),
            None => node.clone(),
        });
    }
    if code {
        return Ok(node.clone());
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        out.push_str(before);
        let reference = after.split_once('}');
        let value = match reference {
            Some((name, _)) => values.lookup(name, node.span)?,
            None => None,
        };
        match (reference, value) {
            (Some((_, after)), Some(value)) => {
                out.push_str(&in_text(&value));
                rest = after;
            }
            _ => {
                out.push_str("${");
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Ok(Node { span: node.span, kind: Kind::Scalar(Value::String(out)) })
}

fn whole_reference(text: &str) -> Option<&str> {
    text.strip_prefix("${")?.strip_suffix('}').filter(|name| !name.contains(['$', '}']))
}

fn in_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
