//! JSON text as a tree that knows where each value stands in the text.
//!
//! Invariant: numbers keep their spelling, objects their order and their duplicate keys, so that an edit changes the edited
//! bytes alone. Deliberately no conversion into typed values: serde does that.

use std::cmp::Ordering;
use std::ops::Range;

/// Deepest nesting that is accepted.
pub const MAX_DEPTH: usize = 128;

/// Text that is not JSON, or nested too deeply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not usable JSON at byte {at}: {what}")]
pub struct JsonError {
    /// Where.
    pub at: usize,
    /// What is wrong.
    pub what: &'static str,
}

/// A value and its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its bytes in the text.
    pub span: Range<usize>,
    /// The value.
    pub value: Value,
}

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `null`, `true`, `false` or a number, as spelt.
    Atom(String),
    /// A string, decoded.
    Text(String),
    /// An array.
    Array(Vec<Node>),
    /// An object.
    Object(Vec<Member>),
}

/// A member of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The bytes of the name, quotes included.
    pub name_span: Range<usize>,
    /// The name, decoded.
    pub name: String,
    /// The value.
    pub node: Node,
}

impl Node {
    /// Parses a whole text.
    pub fn parse(text: &str) -> Result<Self, JsonError> {
        let mut parser = Parser { text, at: 0 };
        parser.space();
        let node = parser.value(0)?;
        parser.space();
        if parser.at == text.len() { Ok(node) } else { Err(parser.error("text after the value")) }
    }

    /// The value of a member of an object; of duplicates the last one.
    pub fn get(&self, name: &str) -> Option<&Self> {
        match &self.value {
            Value::Object(members) => members.iter().rev().find(|member| member.name == name).map(|member| &member.node),
            _ => None,
        }
    }

    /// The value that a chain of member names leads to.
    pub fn at(&self, path: &[&str]) -> Option<&Self> {
        path.iter().try_fold(self, |node, name| node.get(name))
    }

    /// The decoded string.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Canonical text: members sorted by name, no space, numbers as spelt. Members that a path in `skip` leads to are left out.
    pub fn canonical(&self, skip: &[&[&str]]) -> String {
        let mut out = String::new();
        self.write_canonical(skip, &mut out);
        out
    }

    fn write_canonical(&self, skip: &[&[&str]], out: &mut String) {
        match &self.value {
            Value::Atom(spelling) => out.push_str(spelling),
            Value::Text(text) => match embedded(text) {
                Some(inner) => {
                    out.push_str("{\"$json\":");
                    inner.write_canonical(&[], out);
                    out.push('}');
                }
                None => out.push_str(&quote(&super::redact::without_digests(text))),
            },
            Value::Array(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write_canonical(&[], out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                let mut sorted: Vec<&Member> =
                    members.iter().filter(|member| !skip.iter().any(|path| *path == [member.name.as_str()])).collect();
                sorted.sort_by(|a, b| utf16_order(&a.name, &b.name));
                out.push('{');
                for (index, member) in sorted.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    out.push_str(&quote(&super::redact::without_digests(&member.name)));
                    out.push(':');
                    let below: Vec<&[&str]> =
                        skip.iter().filter(|path| path.len() > 1 && path[0] == member.name).map(|path| &path[1..]).collect();
                    member.node.write_canonical(&below, out);
                }
                out.push('}');
            }
        }
    }
}

/// The JSON object or array that a string holds.
pub fn embedded(text: &str) -> Option<Node> {
    text.trim_start().starts_with(['{', '[']).then(|| Node::parse(text).ok()).flatten()
}

/// A string as a JSON literal.
pub fn quote(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

/// The text with the bytes of each span replaced. The spans must not overlap.
pub fn splice(text: &str, mut edits: Vec<(Range<usize>, String)>) -> String {
    edits.sort_by_key(|(span, _)| span.start);
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for (span, replacement) in edits {
        out.push_str(&text[from..span.start]);
        out.push_str(&replacement);
        from = span.end;
    }
    out.push_str(&text[from..]);
    out
}

/// RFC 8785 sorts names by their UTF-16 code units.
fn utf16_order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl Parser<'_> {
    fn error(&self, what: &'static str) -> JsonError {
        JsonError { at: self.at, what }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn expect(&mut self, byte: u8, what: &'static str) -> Result<(), JsonError> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.error(what))
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, JsonError> {
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => self.object(depth + 1)?,
            Some(b'[') => self.array(depth + 1)?,
            Some(b'"') => Value::Text(self.string()?),
            Some(_) => self.atom()?,
            None => return Err(self.error("a value is missing")),
        };
        Ok(Node { span: start..self.at, value })
    }

    fn object(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.enter(depth)?;
        let mut members = Vec::new();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(members));
        }
        loop {
            self.space();
            let start = self.at;
            let name = self.string()?;
            let name_span = start..self.at;
            self.space();
            self.expect(b':', "a colon is missing")?;
            self.space();
            members.push(Member { name_span, name, node: self.value(depth)? });
            self.space();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect(b'}', "a closing brace is missing")?;
            return Ok(Value::Object(members));
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, JsonError> {
        self.enter(depth)?;
        let mut items = Vec::new();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.space();
            items.push(self.value(depth)?);
            self.space();
            if self.peek() == Some(b',') {
                self.at += 1;
                continue;
            }
            self.expect(b']', "a closing bracket is missing")?;
            return Ok(Value::Array(items));
        }
    }

    fn enter(&mut self, depth: usize) -> Result<(), JsonError> {
        if depth > MAX_DEPTH {
            return Err(self.error("nested deeper than 128 levels"));
        }
        self.at += 1;
        self.space();
        Ok(())
    }

    fn string(&mut self) -> Result<String, JsonError> {
        let start = self.at;
        self.expect(b'"', "a string is missing")?;
        let mut escaped = false;
        loop {
            match self.peek() {
                None => return Err(self.error("the string has no end")),
                Some(b'\\') => {
                    escaped = true;
                    self.at += 2;
                }
                Some(b'"') => break,
                Some(0..=0x1f) => return Err(self.error("a control character in a string")),
                Some(_) => self.at += 1,
            }
        }
        let inner = &self.text[start + 1..self.at];
        self.at += 1;
        if !escaped {
            return Ok(inner.to_owned());
        }
        let literal = &self.text[start..self.at];
        if let Ok(text) = serde_json::from_str(literal) {
            return Ok(text);
        }
        // A lone surrogate is JSON, but no text: its spelling stands for it. Anything else is no JSON.
        serde_json::from_str::<Ignored>(literal).map(|_| inner.to_owned()).map_err(|_| self.error("a bad escape"))
    }

    fn atom(&mut self) -> Result<Value, JsonError> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9' | b'a'..=b'z' | b'E' | b'+' | b'-' | b'.')) {
            self.at += 1;
        }
        let spelling = &self.text[start..self.at];
        match serde_json::from_str::<Ignored>(spelling) {
            Ok(_) => Ok(Value::Atom(spelling.to_owned())),
            Err(_) => Err(JsonError { at: start, what: "not a JSON value" }),
        }
    }
}

/// Checks a literal without keeping it.
type Ignored = serde::de::IgnoredAny;
