//! The text of a script: its lines, and which of its places are code.
//!
//! Invariant: places are UTF-16 units, as engines count. Deliberately no types: what runs has none.

use std::sync::Arc;

use oxc_allocator::Allocator;
use oxc_parser::Parser;
use oxc_span::SourceType;

/// A script's code in UTF-16 units.
#[derive(Debug)]
pub(super) struct Source {
    /// Where each line begins.
    starts: Vec<u32>,
    /// Whether there is code at a place, and no blank, comment or bracket.
    is_code: Vec<bool>,
}

impl Source {
    pub(super) fn of(code: &Arc<str>) -> Self {
        let mut is_code = Vec::with_capacity(code.len());
        let mut starts = vec![0];
        let mut units_of_byte = Vec::with_capacity(code.len() + 1);
        for (byte, character) in code.char_indices() {
            units_of_byte.resize(byte + 1, is_code.len());
            is_code.extend(std::iter::repeat_n(
                !character.is_whitespace() && !"{}()[];,".contains(character),
                character.len_utf16(),
            ));
            if character == '\n' {
                starts.push(is_code.len() as u32);
            }
        }
        units_of_byte.resize(code.len() + 1, is_code.len());
        for (start, end) in comments(code) {
            let (start, end) = (units_of_byte.get(start).copied(), units_of_byte.get(end).copied());
            if let (Some(start), Some(end)) = (start, end)
                && let Some(comment) = is_code.get_mut(start..end)
            {
                comment.fill(false);
            }
        }
        Self { starts, is_code }
    }

    /// How many units there are.
    pub(super) fn units(&self) -> u32 {
        self.is_code.len() as u32
    }

    /// Line and column of a place, from 1.
    pub(super) fn place(&self, at: u32) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        (line as u32, at - self.starts[line - 1] + 1)
    }

    /// Each line with the places of its code.
    pub(super) fn lines(&self) -> impl Iterator<Item = (u32, impl Iterator<Item = usize>)> {
        let ends = self.starts.iter().skip(1).copied().chain([self.units()]);
        self.starts.iter().zip(ends).enumerate().map(|(index, (start, end))| {
            let places = (*start as usize..end as usize).filter(|at| self.is_code[*at]);
            (index as u32 + 1, places)
        })
    }

    /// The first place of code in a stretch.
    pub(super) fn first_code(&self, start: u32, end: u32) -> Option<u32> {
        (start..end).find(|at| self.is_code.get(*at as usize) == Some(&true))
    }
}

/// The comments, in bytes. Code that ran parses.
fn comments(code: &str) -> Vec<(usize, usize)> {
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, code, SourceType::unambiguous()).parse();
    parsed.program.comments.iter().map(|comment| (comment.span.start as usize, comment.span.end as usize)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_brackets_are_no_code() {
        let code: Arc<str> = "// 'ü'\nfunction f() { /* a\n b */ return '// no';\n}\n\nf(`/*`)\n".into();
        let source = Source::of(&code);
        let lines: Vec<u32> = source.lines().filter_map(|(line, mut code)| code.next().map(|_| line)).collect();
        assert_eq!(lines, [2, 3, 6]);
        assert_eq!((source.place(0), source.place(7), source.place(source.units())), ((1, 1), (2, 1), (7, 1)));
    }
}
