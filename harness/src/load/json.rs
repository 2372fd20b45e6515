//! JSON files: the twin of YAML.
//!
//! Invariant: serde_json decides what is JSON; the walk here only finds the places, over text that is known to be good.

use std::collections::BTreeMap;

use serde_json::Value;

use super::node::{Entry, Kind, Node, Problem, Span};

/// Reads a JSON file.
pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    serde_json::from_str::<serde::de::IgnoredAny>(text).map_err(|error| {
        let at = |number: usize| u32::try_from(number).unwrap_or(u32::MAX).max(1);
        let span = Span { line: at(error.line()), column: at(error.column()), width: 1 };
        Problem::new(span, format!("this is no JSON: {error}"))
    })?;
    Walk { rest: text, line: 1, column: 1 }.value()
}

struct Walk<'t> {
    rest: &'t str,
    line: u32,
    column: u32,
}

impl<'t> Walk<'t> {
    fn take(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.rest = rest;
        for c in taken.chars() {
            if c == '\n' {
                self.line += 1;
                self.column = 1;
            } else {
                self.column += 1;
            }
        }
        taken
    }

    fn space(&mut self) {
        let bytes = self.rest.len() - self.rest.trim_start().len();
        self.take(bytes);
    }

    /// Steps over a character if it is next, with the space before it.
    fn is_next(&mut self, c: char) -> bool {
        self.space();
        let next = self.rest.starts_with(c);
        if next {
            self.take(c.len_utf8());
        }
        next
    }

    fn span(&self, width: usize) -> Span {
        Span { line: self.line, column: self.column, width: u32::try_from(width).unwrap_or(1).max(1) }
    }

    fn value(&mut self) -> Result<Node, Problem> {
        self.space();
        let span = self.span(1);
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(span),
            Some(b'[') => self.array(span),
            _ => self.scalar().map(|(value, span)| Node { span, kind: Kind::Scalar(value) }),
        }
    }

    fn array(&mut self, span: Span) -> Result<Node, Problem> {
        self.take(1);
        let mut items = Vec::new();
        while !self.is_next(']') {
            items.push(self.value()?);
            self.is_next(',');
        }
        Ok(Node { span, kind: Kind::Sequence(items) })
    }

    fn object(&mut self, span: Span) -> Result<Node, Problem> {
        self.take(1);
        let mut entries = Vec::new();
        let mut first: BTreeMap<String, u32> = BTreeMap::new();
        while !self.is_next('}') {
            let (key, key_span) = self.scalar()?;
            let key = key.as_str().unwrap_or_default().to_owned();
            if let Some(line) = first.insert(key.clone(), key_span.line) {
                return Err(Problem::new(key_span, format!("the key `{key}` is given twice"))
                    .help(format!("the first one is in line {line}")));
            }
            self.is_next(':');
            let value = self.value()?;
            entries.push(Entry { key, key_span, value });
            self.is_next(',');
        }
        Ok(Node { span, kind: Kind::Mapping(entries) })
    }

    fn scalar(&mut self) -> Result<(Value, Span), Problem> {
        let bytes = if self.rest.starts_with('"') {
            string_bytes(self.rest)
        } else {
            self.rest.find(|c: char| c.is_whitespace() || ",]}:".contains(c)).unwrap_or(self.rest.len())
        };
        let span = self.span(self.rest[..bytes].chars().count());
        let text = self.take(bytes);
        serde_json::from_str(text)
            .map(|value| (value, span))
            .map_err(|error| Problem::new(span, format!("this is no JSON: {error}")))
    }
}

/// Length of the string literal that a text starts with.
fn string_bytes(text: &str) -> usize {
    let mut escaped = false;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return index + 1,
            _ => {}
        }
    }
    text.len()
}
