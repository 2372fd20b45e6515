//! JSDoc comments: the text, and `@param {type} name - text`.
//!
//! Invariant: a type is read by the parser of TypeScript; what it does not know is open. Deliberately no other tags.

use oxc_allocator::Allocator;
use oxc_ast::ast::{Declaration, Statement};
use oxc_parser::Parser;
use oxc_span::SourceType;
use serde_json::{Map, Value, json};

use super::types::{Shape, Types, describe};

/// Longest type that is read, in bytes.
const MAX_TYPE_BYTES: usize = 2_000;

/// A comment.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Doc {
    /// What stands before the tags.
    pub(super) text: Option<String>,
    pub(super) params: Vec<DocParam>,
}

/// A `@param`.
#[derive(Debug, PartialEq)]
pub(super) struct DocParam {
    /// The name, or `name.member`.
    pub(super) path: String,
    type_text: Option<String>,
    pub(super) text: Option<String>,
    pub(super) is_optional: bool,
}

impl Doc {
    /// Reads a comment, its stars included.
    pub(super) fn parse(comment: &str) -> Self {
        let inner = comment.strip_prefix("/**").unwrap_or(comment);
        let inner = inner.strip_suffix("*/").unwrap_or(inner);
        let lines = inner.lines().map(|line| {
            let line = line.trim();
            line.strip_prefix('*').map_or(line, |rest| rest.strip_prefix(' ').unwrap_or(rest)).trim_end()
        });
        let mut text = String::new();
        let mut tags: Vec<String> = Vec::new();
        for line in lines {
            if line.trim_start().starts_with('@') {
                tags.push(line.trim_start().to_owned());
            } else if let Some(tag) = tags.last_mut() {
                tag.push('\n');
                tag.push_str(line.trim());
            } else {
                text.push_str(line);
                text.push('\n');
            }
        }
        let mut doc = Self { text: Some(text.trim().to_owned()).filter(|text| !text.is_empty()), params: Vec::new() };
        for tag in &tags {
            let (word, rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            match word {
                "@param" | "@arg" | "@argument" => doc.params.extend(DocParam::parse(rest)),
                "@description" | "@desc" if doc.text.is_none() => doc.text = Some(rest.trim().to_owned()),
                _ => {}
            }
        }
        doc
    }

    /// What is said of a parameter: by its name, or by its place if it has none.
    pub(super) fn param(&self, name: Option<&str>, index: usize) -> Option<&DocParam> {
        match name {
            Some(name) => self.params.iter().find(|it| it.path == name),
            None => self.params.iter().filter(|it| !it.path.contains('.')).nth(index),
        }
    }

    /// The members that are told of a parameter, as a schema.
    pub(super) fn object(&self, name: Option<&str>) -> Option<Value> {
        let (mut properties, mut required) = (Map::new(), Vec::new());
        for (member, param) in self.members(name?) {
            let mut schema = param.shape().map_or_else(|| json!({}), |shape| shape.schema);
            describe(&mut schema, param.text.as_deref());
            if !param.is_optional {
                required.push(Value::from(member));
            }
            properties.insert(member.to_owned(), schema);
        }
        if properties.is_empty() {
            return None;
        }
        let mut schema = json!({"type": "object", "properties": properties});
        if !required.is_empty() {
            schema["required"] = required.into();
        }
        Some(schema)
    }

    /// A schema with what is told of its members; one without members gets those that are told.
    pub(super) fn describe_members(&self, name: Option<&str>, mut schema: Value) -> Value {
        let Some(name) = name else { return schema };
        if let Some(properties) = schema.get_mut("properties") {
            for (member, param) in self.members(name) {
                if let Some(property) = properties.get_mut(member) {
                    describe(property, param.text.as_deref());
                }
            }
            return schema;
        }
        if schema == json!({"type": "object"}) { self.object(Some(name)).unwrap_or(schema) } else { schema }
    }

    fn members<'d>(&'d self, name: &str) -> impl Iterator<Item = (&'d str, &'d DocParam)> {
        self.params.iter().filter_map(move |param| {
            let member = param.path.strip_prefix(name)?.strip_prefix('.')?;
            (!member.contains('.')).then_some((member, param))
        })
    }
}

impl DocParam {
    /// `{type} name - text`, `{type} [name=default] text`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let (type_text, rest) = match text.strip_prefix('{') {
            Some(inner) => {
                let end = closing(inner)?;
                (Some(inner[..end].trim().to_owned()), inner[end + 1..].trim_start())
            }
            None => (None, text),
        };
        let (mut path, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let mut rest = rest;
        let is_bracketed = path.starts_with('[');
        if is_bracketed {
            let whole = &text[text.len() - path.len() - rest.len() - usize::from(!rest.is_empty())..];
            let end = whole.find(']')?;
            path = whole[1..end].split('=').next().unwrap_or_default().trim();
            rest = &whole[end + 1..];
        }
        let said = rest.trim().strip_prefix('-').unwrap_or(rest.trim()).trim();
        if path.is_empty() {
            return None;
        }
        let is_optional = is_bracketed || type_text.as_ref().is_some_and(|text| text.ends_with('='));
        Some(Self {
            path: path.to_owned(),
            type_text,
            text: Some(said.to_owned()).filter(|said| !said.is_empty()),
            is_optional,
        })
    }

    /// Its type, if it is understood.
    pub(super) fn shape(&self) -> Option<Shape> {
        let written = self.type_text.as_deref()?.trim_end_matches('=').trim();
        let (written, may_be_null) = match written.strip_prefix('?') {
            Some(inner) => (inner, true),
            None => (written.trim_start_matches('!'), false),
        };
        let spelt = match written {
            "String" | "Number" | "Boolean" | "Object" | "Array" => written.to_lowercase(),
            other => other.to_owned(),
        };
        let spelt = if spelt == "array" { "any[]".to_owned() } else { spelt };
        let source = format!("type T = ({spelt}){};", if may_be_null { " | null" } else { "" });
        if source.len() > MAX_TYPE_BYTES {
            return None;
        }
        let allocator = Allocator::default();
        let parsed = Parser::new(&allocator, &source, SourceType::ts()).parse();
        if parsed.diagnostics.errors().next().is_some() {
            return None;
        }
        let types = Types::of(&parsed.program);
        match parsed.program.body.first().and_then(Statement::as_declaration) {
            Some(Declaration::TSTypeAliasDeclaration(it)) => types.shape(&it.type_annotation),
            _ => None,
        }
    }
}

/// Where the brace closes that was open before the text.
fn closing(text: &str) -> Option<usize> {
    let mut open = 1;
    text.char_indices().find_map(|(at, c)| {
        open += i32::from(c == '{') - i32::from(c == '}');
        (open == 0).then_some(at)
    })
}
