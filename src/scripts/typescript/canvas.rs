//! The source text while parts of it are blanked.
//!
//! Invariant: rendering keeps every line break and the UTF-16 length of every line, whatever was blanked or put.
//! Deliberately no knowledge of TypeScript.

use std::collections::BTreeMap;

use oxc_span::Span;

/// A source text with blanked ranges and single characters put over others.
pub(super) struct Canvas<'s> {
    source: &'s str,
    tokens: Vec<Span>,
    blank: Vec<bool>,
    puts: BTreeMap<u32, char>,
}

impl<'s> Canvas<'s> {
    /// An untouched canvas. The tokens are in source order.
    pub(super) fn new(source: &'s str, tokens: Vec<Span>) -> Self {
        Self { source, tokens, blank: vec![false; source.len()], puts: BTreeMap::new() }
    }

    /// Blanks a range.
    pub(super) fn blank(&mut self, span: Span) {
        if let Some(range) = self.blank.get_mut(span.start as usize..span.end as usize) {
            range.fill(true);
        }
    }

    /// Shows a character in place of the one at this offset.
    pub(super) fn put(&mut self, offset: u32, shown: char) {
        self.puts.insert(offset, shown);
    }

    /// The source text of a range.
    pub(super) fn text(&self, span: Span) -> &'s str {
        self.source.get(span.start as usize..span.end as usize).unwrap_or_default()
    }

    /// Whether a range contains a line break.
    pub(super) fn breaks_line(&self, start: u32, end: u32) -> bool {
        self.text(Span::new(start, end)).contains(is_line_break)
    }

    /// The tokens that start within a range.
    pub(super) fn tokens_in(&self, start: u32, end: u32) -> Vec<Span> {
        let from = self.tokens.partition_point(|token| token.start < start);
        self.tokens[from..].iter().take_while(|token| token.start < end).copied().collect()
    }

    /// The first token at or after this offset.
    pub(super) fn next_token(&self, offset: u32) -> Option<Span> {
        self.tokens.get(self.tokens.partition_point(|token| token.start < offset)).copied()
    }

    /// The last token that ends at or before this offset.
    pub(super) fn previous_token(&self, offset: u32) -> Option<Span> {
        let count = self.tokens.partition_point(|token| token.end <= offset);
        count.checked_sub(1).and_then(|index| self.tokens.get(index)).copied()
    }

    /// The text of the first token at or after this offset that is still shown.
    pub(super) fn next_shown(&self, offset: u32) -> Option<String> {
        let from = self.tokens.partition_point(|token| token.start < offset);
        self.tokens[from..].iter().find_map(|token| {
            if let Some(shown) = self.puts.range(token.start..token.end.max(token.start + 1)).next() {
                return Some(shown.1.to_string());
            }
            let blanked = self.blank.get(token.start as usize).copied().unwrap_or(false);
            (!blanked).then(|| self.text(*token).to_owned())
        })
    }

    /// The text as it is now.
    pub(super) fn render(&self) -> String {
        let mut out = String::with_capacity(self.source.len());
        for (offset, shown) in self.source.char_indices() {
            if is_line_break(shown) {
                out.push(shown);
            } else if let Some(put) = self.puts.get(&(offset as u32)) {
                out.push(*put);
                out.extend(std::iter::repeat_n(' ', shown.len_utf16() - put.len_utf16()));
            } else if !self.blank[offset] || shown == '\t' {
                out.push(shown);
            } else {
                out.extend(std::iter::repeat_n(' ', shown.len_utf16()));
            }
        }
        out
    }
}

/// The line terminators of JavaScript.
fn is_line_break(c: char) -> bool {
    matches!(c, '\n' | '\r' | '\u{2028}' | '\u{2029}')
}
