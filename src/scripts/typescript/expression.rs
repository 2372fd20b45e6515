//! Where an expression of a text ends, and whether it is one.
//!
//! Invariant: an expression is exactly one expression of JavaScript; no text can close the parentheses it is put in.
//! Deliberately nothing is run.

use oxc_allocator::Allocator;
use oxc_ast::ast::{Expression, Statement};
use oxc_parser::Parser;
use oxc_span::{GetSpan, SourceType};

use super::on_deep_stack;

/// What an expression is parsed in; it may use `await`.
const BEFORE: &str = "async () => (\n";
const AFTER: &str = "\n)";

/// Largest expression, in bytes.
const MAX_BYTES: usize = 64 << 10;

/// Why a text is no expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoExpression {
    /// Where, in bytes from the start of the text.
    pub offset: usize,
    /// What is wrong.
    pub message: String,
}

/// Checks that a text is one expression.
pub fn check_expression(text: &str) -> Result<(), NoExpression> {
    if text.len() > MAX_BYTES {
        let message = format!("an expression may have {MAX_BYTES} bytes; put the code into a script server");
        return Err(NoExpression { offset: 0, message });
    }
    let failed = || NoExpression { offset: 0, message: "the parser failed on it".to_owned() };
    on_deep_stack(text.len(), || check_on_this_stack(text)).unwrap_or_else(|| Err(failed()))
}

fn check_on_this_stack(text: &str) -> Result<(), NoExpression> {
    let source = format!("{BEFORE}{text}{AFTER}");
    let allocator = Allocator::default();
    let parsed = Parser::new(&allocator, &source, SourceType::mjs()).parse();
    if let Some(diagnostic) = parsed.diagnostics.errors().next() {
        let offset = diagnostic.labels.first().map_or(source.len(), |label| label.offset() as usize);
        let offset = offset.saturating_sub(BEFORE.len()).min(text.len());
        return Err(NoExpression { offset, message: diagnostic.message.to_string() });
    }
    let whole = match parsed.program.body.as_slice() {
        [Statement::ExpressionStatement(statement)] => match &statement.expression {
            Expression::ArrowFunctionExpression(arrow) => arrow.span().end as usize == source.len(),
            _ => false,
        },
        _ => false,
    };
    if whole && !text.trim().is_empty() {
        return Ok(());
    }
    Err(NoExpression { offset: 0, message: "it is not one expression".to_owned() })
}

/// Whether a name can be that of a variable.
pub fn is_variable_name(name: &str) -> bool {
    let simple = name.chars().all(|c| c == '_' || c == '$' || c.is_ascii_alphanumeric());
    let starts = name.chars().next().is_some_and(|c| !c.is_ascii_digit());
    // Strict code may not bind these two; reserved words are refused by the parser.
    let bindable = !["eval", "arguments"].contains(&name);
    simple && starts && bindable && check_expression(&format!("({name}) => 0")).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_one_expression() {
        for good in ["1", "a ? {b: 1} : '}'", "await call('x/y')", "servers.x.instructions", "{a: 1}", "1 // x", "`${a}`"] {
            assert_eq!(check_expression(good), Ok(()), "{good}");
        }
        for bad in ["", " ", "1), (2", "1) ; (async () => (2", "let x", "{a: 1", "return 1", "1;", "import x from 'y'", "/* "] {
            assert!(check_expression(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_variables() {
        for (name, good) in [("topic", true), ("$a_1", true), ("a-b", false), ("1a", false), ("class", false), ("eval", false)]
        {
            assert_eq!(is_variable_name(name), good, "{name}");
        }
    }
}
