//! A parsed file as a tree in which every part knows its place.
//!
//! Invariant: the tree holds JSON values only, so YAML and JSON files of the same content give the same tree but for the
//! places. Deliberately no types of the scenario model.

use serde_json::{Map, Value};

/// A stretch of one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// Length in characters; what reaches beyond the line is not counted.
    pub width: u32,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub(crate) span: Span,
    pub(crate) kind: Kind,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// Null, a boolean, a number or a text.
    Scalar(Value),
    Sequence(Vec<Node>),
    Mapping(Vec<Entry>),
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_span: Span,
    pub(crate) value: Node,
}

/// A place that something is wrong with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) span: Span,
    pub(crate) message: String,
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(span: Span, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None }
    }

    pub(crate) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    pub(crate) fn maybe_help(mut self, help: Option<String>) -> Self {
        self.help = help.or(self.help);
        self
    }
}

impl Node {
    /// The tree of a value that stands at one place.
    pub(crate) fn of_value(value: &Value, span: Span) -> Self {
        let kind = match value {
            Value::Array(items) => Kind::Sequence(items.iter().map(|item| Self::of_value(item, span)).collect()),
            Value::Object(object) => Kind::Mapping(
                object
                    .iter()
                    .map(|(key, value)| Entry { key: key.clone(), key_span: span, value: Self::of_value(value, span) })
                    .collect(),
            ),
            scalar => Kind::Scalar(scalar.clone()),
        };
        Self { span, kind }
    }

    /// The value, without places.
    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Scalar(value) => value.clone(),
            Kind::Sequence(items) => items.iter().map(Self::to_value).collect(),
            Kind::Mapping(entries) => {
                entries.iter().map(|entry| (entry.key.clone(), entry.value.to_value())).collect::<Map<String, Value>>().into()
            }
        }
    }

    /// The entry of a mapping.
    pub(crate) fn entry(&self, key: &str) -> Option<&Entry> {
        match &self.kind {
            Kind::Mapping(entries) => entries.iter().find(|entry| entry.key == key),
            _ => None,
        }
    }

    /// The child with this key or index.
    pub(crate) fn child(&self, part: &str) -> Option<&Self> {
        match &self.kind {
            Kind::Mapping(_) => self.entry(part).map(|entry| &entry.value),
            Kind::Sequence(items) => items.get(part.parse::<usize>().ok()?),
            Kind::Scalar(_) => None,
        }
    }

    /// The deepest part on the way along these keys and indices that exists.
    pub(crate) fn nearest<'p>(&self, parts: impl IntoIterator<Item = &'p str>) -> &Self {
        let mut node = self;
        for part in parts {
            match node.child(part) {
                Some(child) => node = child,
                None => break,
            }
        }
        node
    }

    /// What it is, for messages: "text `abc`", "a list".
    pub(crate) fn describe(&self) -> String {
        match &self.kind {
            Kind::Scalar(Value::Null) => "nothing".to_owned(),
            Kind::Scalar(Value::String(text)) => format!("the text `{}`", shorten(text)),
            Kind::Scalar(Value::Number(number)) => format!("the number {number}"),
            Kind::Scalar(value) => format!("`{value}`"),
            Kind::Sequence(_) => "a list".to_owned(),
            Kind::Mapping(_) => "a mapping".to_owned(),
        }
    }
}

/// A text cut to what a message bears.
pub(crate) fn shorten(text: &str) -> String {
    const MOST_CHARS: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    let cut: String = line.chars().take(MOST_CHARS).collect();
    if cut.len() == text.len() { cut } else { format!("{cut}…") }
}

/// Splits a JSON pointer.
pub(crate) fn pointer_parts(pointer: &str) -> Vec<String> {
    pointer.split('/').skip(1).map(|part| part.replace("~1", "/").replace("~0", "~")).collect()
}
