//! Places in a source text, for errors.
//!
//! Invariant: any byte offset has a place, also one past the end or inside a character. Deliberately no colours.

/// Longest part of a source line that a snippet shows, in characters.
const SHOWN_CHARS: usize = 120;

/// A place in a source text.
pub(super) struct Place<'s> {
    /// Line, from 1.
    pub(super) line: u32,
    /// Column, from 1, in UTF-16 units.
    pub(super) column: u32,
    text: &'s str,
    before: &'s str,
}

impl<'s> Place<'s> {
    /// The place of a byte offset.
    pub(super) fn of(source: &'s str, offset: usize) -> Self {
        let mut offset = offset.min(source.len());
        while !source.is_char_boundary(offset) {
            offset -= 1;
        }
        let start = source[..offset].rfind('\n').map_or(0, |at| at + 1);
        let end = source[offset..].find('\n').map_or(source.len(), |at| offset + at);
        let before = &source[start..offset];
        Self {
            line: u32::try_from(source[..start].matches('\n').count()).unwrap_or(u32::MAX - 1) + 1,
            column: u32::try_from(before.encode_utf16().count()).unwrap_or(u32::MAX - 1) + 1,
            text: source[start..end].trim_end_matches('\r'),
            before,
        }
    }

    /// The line with a caret below the place.
    pub(super) fn snippet(&self) -> String {
        let caret = self.before.chars().count();
        let first = caret.saturating_sub(SHOWN_CHARS / 2);
        let shown: String = self.text.chars().skip(first).take(SHOWN_CHARS).map(|c| if c == '\t' { ' ' } else { c }).collect();
        let number = self.line.to_string();
        let gutter = " ".repeat(number.len());
        format!("{number} | {shown}\n{gutter} | {}^", " ".repeat(caret - first))
    }
}
