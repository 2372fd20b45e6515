//! TypeScript to JavaScript by blanking: what exists only for the type checker becomes spaces.
//!
//! Invariant: every line of the result has the length of its source line in UTF-16 units and every remaining token its
//! source position, so errors of an engine need no source map. Imports that are used for types alone go as well. What TypeScript would have to generate code for (enums,
//! parameter properties, namespaces with values) is refused with what to write instead. Deliberately no type checking.

mod canvas;
mod eraser;
mod expression;
mod members;
mod position;
mod uses;

use std::sync::Arc;

use oxc_allocator::Allocator;
use oxc_ast::ast::Program;
use oxc_ast_visit::Visit;
use oxc_parser::{Parser, config::TokensParserConfig};
use oxc_span::SourceType;

use canvas::Canvas;
use eraser::Eraser;
pub use expression::{NoExpression, check_expression, is_variable_name};
use uses::Uses;

/// Why a script's source is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}:{column}: {message}")]
pub struct ScriptSyntaxError {
    /// The file as the user knows it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1, in UTF-16 units as script engines count.
    pub column: u32,
    /// What is wrong and, where it can be said, what to do.
    pub message: String,
    /// The source line with a caret below the place.
    pub snippet: String,
}

impl ScriptSyntaxError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "SCRIPT_SYNTAX"
    }

    /// At an offset, in bytes, of a text.
    pub fn at(file: &str, source: &str, offset: usize, message: String) -> Self {
        let place = position::Place::of(source, offset);
        Self { file: file.to_owned(), line: place.line, column: place.column, message, snippet: place.snippet() }
    }
}

/// The line of a source with a caret below a column, from 1, in UTF-16 units; none if there is no such line.
pub fn snippet_at(source: &str, line: u32, column: u32) -> Option<String> {
    let index = usize::try_from(line).ok()?.checked_sub(1)?;
    let (mut start, mut text) = (0, "");
    for (at, each) in source.split('\n').enumerate().take(index + 1) {
        text = each;
        if at < index {
            start += each.len() + 1;
        }
    }
    let units = usize::try_from(column).ok()?.saturating_sub(1);
    let mut before = 0;
    let offset = text.char_indices().find_map(|(at, c)| {
        let here = before >= units;
        before += c.len_utf16();
        here.then_some(at)
    });
    (start <= source.len()).then(|| position::Place::of(source, start + offset.unwrap_or(text.len())).snippet())
}

/// Largest source, in bytes. The parser descends once per level of nesting, and a byte can be a level: the stack that it is
/// given grows with the source, so a source has to end somewhere.
pub(super) const MAX_SOURCE_BYTES: usize = 1 << 20;
/// Stack per byte of source: more than a level takes in a build without optimization.
const STACK_BYTES_PER_SOURCE_BYTE: usize = 4 << 10;
/// Stack for any source.
const STACK_BYTES: usize = 4 << 20;

/// Turns the source of a `.ts` or `.js` file into JavaScript with the same positions.
///
/// JavaScript comes back unchanged; both are checked for syntax. Source nested however deep is parsed or refused: it has a
/// stack of its own, of which only what is used takes memory.
pub fn strip_types(file_name: &str, source: &str) -> Result<Arc<str>, ScriptSyntaxError> {
    whole(file_name, source, || {
        let is_typescript = is_typescript(file_name);
        let source_type = if is_typescript { SourceType::ts() } else { SourceType::unambiguous() };
        let allocator = Allocator::default();
        let program = parse(&allocator, file_name, source, source_type)?;
        if is_typescript { erase(&allocator, file_name, source, &program).map(Arc::from) } else { Ok(Arc::from(source)) }
    })
}

/// Whether a file is TypeScript by its name.
pub(super) fn is_typescript(file_name: &str) -> bool {
    let extension = std::path::Path::new(file_name).extension();
    extension.is_some_and(|ext| ["ts", "mts", "cts"].iter().any(|known| ext.eq_ignore_ascii_case(known)))
}

/// Works on a source that is not too long, on a stack that is deep enough for it.
pub(super) fn whole<T: Send>(
    file_name: &str,
    source: &str,
    work: impl FnOnce() -> Result<T, ScriptSyntaxError> + Send,
) -> Result<T, ScriptSyntaxError> {
    let refuse = |message: String| ScriptSyntaxError::at(file_name, source, 0, message);
    if source.len() > MAX_SOURCE_BYTES {
        return Err(refuse(format!("a script may have {MAX_SOURCE_BYTES} bytes, this has {}; leave code out", source.len())));
    }
    let done = on_deep_stack(source.len(), work);
    done.unwrap_or_else(|| Err(refuse("the parser failed on it, or has no stack; report this with the script".to_owned())))
}

/// Runs a parser on a stack that is deep enough for a source of this length; `None` if it panicked or got no stack.
pub(super) fn on_deep_stack<T: Send>(source_bytes: usize, parse: impl FnOnce() -> T + Send) -> Option<T> {
    std::thread::scope(|scope| {
        let stack_bytes = STACK_BYTES + source_bytes * STACK_BYTES_PER_SOURCE_BYTE;
        let parser = std::thread::Builder::new().name("greenroom-parser".to_owned()).stack_size(stack_bytes);
        parser.spawn_scoped(scope, parse).ok()?.join().ok()
    })
}

/// Parses a source that has no errors.
pub(super) fn parse<'a>(
    allocator: &'a Allocator,
    file_name: &str,
    source: &'a str,
    source_type: SourceType,
) -> Result<Program<'a>, ScriptSyntaxError> {
    let parsed = Parser::new(allocator, source, source_type).parse();
    if let Some(diagnostic) = parsed.diagnostics.errors().next() {
        let offset = diagnostic.labels.first().map_or(source.len(), |label| label.offset() as usize);
        let help = diagnostic.help.as_ref().map(|help| format!(". {help}")).unwrap_or_default();
        return Err(ScriptSyntaxError::at(file_name, source, offset, format!("{}{help}", diagnostic.message)));
    }
    Ok(parsed.program)
}

/// The source without types. `program` is what it parses to.
pub(super) fn erase(
    allocator: &Allocator,
    file_name: &str,
    source: &str,
    program: &Program<'_>,
) -> Result<String, ScriptSyntaxError> {
    // Only a source without errors has all its tokens.
    let parsed = Parser::new(allocator, source, SourceType::ts()).with_config(TokensParserConfig).parse();
    let tokens = parsed.tokens.iter().map(|token| token.span()).collect();
    let mut eraser = Eraser::new(Canvas::new(source, tokens), Uses::of(program));
    eraser.visit_program(program);
    eraser.finish().map_err(|refusal| ScriptSyntaxError::at(file_name, source, refusal.offset as usize, refusal.message))
}

/// Line and column of an offset in bytes.
pub(super) fn place_of(text: &str, offset: usize) -> (u32, u32) {
    let place = position::Place::of(text, offset);
    (place.line, place.column)
}

#[cfg(test)]
mod tests;
