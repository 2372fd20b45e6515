//! Texts with `${…}` in which code may stand: instructions, `publish` texts, prompt templates and their arguments.
//!
//! Invariant: only what the config itself says is code. Variables are put in when the config is read, results when the text
//! is needed, both as data: nothing is expanded twice. Deliberately nothing is run here.

use std::fmt::Write as _;

use super::{ExpandError, ScriptConfig, Variables};
use crate::scripts::{ScriptSyntaxError, check_expression, is_variable_name};

/// Names that expressions find.
const GLOBALS: [&str; 4] = ["servers", "nanobot", "args", "ctx"];

/// Most closing braces at which an expression is tried to end.
const MAX_CANDIDATES: usize = 64;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text as it is.
    Text(String),
    /// An argument of the prompt.
    Argument {
        /// Its name.
        name: String,
        /// What stands for it if it is empty or not given.
        default: Option<String>,
    },
    /// `${nanobot:time}`.
    Time,
    /// Code: its text, and the function of the template's script that holds it.
    Code {
        /// The expression.
        source: String,
        /// The function.
        function: String,
    },
}

/// A text, read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Template {
    /// Where it stands, `agents.desk.instructions`.
    pub at: String,
    /// Its pieces.
    pub parts: Vec<TemplatePart>,
    /// Its code, if it has any.
    pub script: Option<ScriptConfig>,
}

/// A text that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// A placeholder.
    #[error(transparent)]
    Placeholder(#[from] ExpandError),
    /// An expression.
    #[error("{0}\n{snippet}", snippet = .0.snippet)]
    Expression(ScriptSyntaxError),
}

impl Template {
    /// Reads a text. `file` and `at` say where it stands; `arguments` are those of a prompt.
    pub fn parse(file: &str, at: &str, text: &str, variables: &Variables, arguments: &[String]) -> Result<Self, TemplateError> {
        let mut template = Self { at: at.to_owned(), ..Self::default() };
        let mut code = String::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(found) = rest.find("${") {
            if rest[..found].ends_with('$') {
                literal.push_str(&rest[..found - 1]);
                literal.push_str("${");
                rest = &rest[found + 2..];
                continue;
            }
            literal.push_str(&rest[..found]);
            let inner = &rest[found + 2..];
            let (part, length) = placeholder(at, text, inner, variables, arguments)?;
            rest = &inner[length + 1..];
            match part {
                TemplatePart::Text(value) => literal.push_str(&value),
                TemplatePart::Code { source, .. } => {
                    template.text(&mut literal);
                    let function = format!("e{}", template.parts.len());
                    write_function(&mut code, &function, &source, arguments);
                    template.parts.push(TemplatePart::Code { source, function });
                }
                other => {
                    template.text(&mut literal);
                    template.parts.push(other);
                }
            }
        }
        literal.push_str(rest);
        template.text(&mut literal);
        template.script = (!code.is_empty()).then(|| ScriptConfig::Inline { name: format!("{file}#{at}"), code });
        Ok(template)
    }

    fn text(&mut self, literal: &mut String) {
        if !literal.is_empty() {
            self.parts.push(TemplatePart::Text(std::mem::take(literal)));
        }
    }

    /// The text, if nothing in it depends on when it is needed.
    pub fn fixed(&self) -> Option<&str> {
        match self.parts.as_slice() {
            [] => Some(""),
            [TemplatePart::Text(text)] => Some(text),
            _ => None,
        }
    }
}

/// What stands at the start of `inner`, behind `${`, and how long it is without its `}`.
fn placeholder(
    at: &str,
    text: &str,
    inner: &str,
    variables: &Variables,
    arguments: &[String],
) -> Result<(TemplatePart, usize), TemplateError> {
    let end = inner.find('}').ok_or_else(|| ExpandError::Unclosed { text: text.to_owned() })?;
    let name = inner[..end].trim();
    if name == "nanobot:time" {
        return Ok((TemplatePart::Time, end));
    }
    // The declared argument is the nearer meaning: a variable of the machine does not take its place.
    let (bare, default) = name.split_once(":-").map_or((name, None), |(bare, default)| (bare, Some(default.to_owned())));
    if arguments.iter().any(|argument| argument == bare) {
        return Ok((TemplatePart::Argument { name: bare.to_owned(), default }, end));
    }
    match variables.value_of(name) {
        Ok(value) => return Ok((TemplatePart::Text(value.to_owned()), end)),
        Err(ExpandError::NotAName { .. }) => {}
        Err(unset) if GLOBALS.contains(&name) => drop(unset),
        Err(error) => return Err(error.into()),
    }
    let ends = inner.match_indices('}').map(|(end, _)| end).take(MAX_CANDIDATES);
    let Some(end) = ends.into_iter().find(|end| check_expression(&inner[..*end]).is_ok()) else {
        return Err(TemplateError::Expression(no_expression(at, text, inner)));
    };
    Ok((TemplatePart::Code { source: inner[..end].to_owned(), function: String::new() }, end))
}

/// The error of an expression that ends at the brace that matches by count, or nowhere.
fn no_expression(at: &str, text: &str, inner: &str) -> ScriptSyntaxError {
    let mut depth = 0_usize;
    let end = inner.char_indices().find(|(_, c)| {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return true,
            '}' => depth -= 1,
            _ => {}
        }
        false
    });
    let source = &inner[..end.map_or(inner.len(), |(end, _)| end)];
    let (offset, message) = match check_expression(source) {
        Err(error) => (error.offset, error.message),
        Ok(()) => (0, "it does not end".to_owned()),
    };
    let start = text.len() - inner.len().min(text.len());
    // `inner` is the tail of what is left of `text`, so its start is known by its length.
    let message = format!("`${{{source}}}` is neither a variable nor a JavaScript expression: {message}");
    ScriptSyntaxError::at(at, text, start + offset, message)
}

/// The code of one expression: it sees the facade and the prompt's arguments, and gives its value.
fn write_function(code: &mut String, function: &str, source: &str, arguments: &[String]) {
    let names: Vec<&str> = arguments.iter().map(String::as_str).filter(|name| is_variable_name(name)).collect();
    let values: Vec<String> = names.iter().map(|name| format!("args[{name:?}]")).collect();
    let _ = write!(
        code,
        "async function {function}(ctx, args) {{
  const call = (...given) => ctx.call(...given), callAsync = (...given) => ctx.callAsync(...given);
  const prompt = (...given) => ctx.prompt(...given), promptAsync = (...given) => ctx.promptAsync(...given);
  const servers = ctx.servers;
  const nanobot = {{ sessionId: ctx.chat_id, agent: ctx.assistant_id, metadata: ctx.metadata, authorized: ctx.authorized }};
  return await (async ({names}) => (
{source}
))({values});
}}
",
        names = names.join(", "),
        values = values.join(", "),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Vec<TemplatePart>, TemplateError> {
        let variables = Variables::new([("NAME".to_owned(), "${x} value".to_owned())]);
        Template::parse("f", "agents.a.instructions", text, &variables, &["topic".to_owned()]).map(|template| template.parts)
    }

    fn code(source: &str, function: &str) -> TemplatePart {
        TemplatePart::Code { source: source.to_owned(), function: function.to_owned() }
    }

    fn argument(default: Option<&str>) -> TemplatePart {
        TemplatePart::Argument { name: "topic".to_owned(), default: default.map(str::to_owned) }
    }

    fn text(text: &str) -> TemplatePart {
        TemplatePart::Text(text.to_owned())
    }

    #[test]
    fn what_a_text_means() {
        let table = [
            ("plain $ text", vec![text("plain $ text")]),
            ("a $${b} ${NAME}", vec![text("a ${b} ${x} value")]),
            ("${NONE:-d}", vec![text("d")]),
            ("${topic}!", vec![argument(None), text("!")]),
            ("${topic:-t}", vec![argument(Some("t"))]),
            ("${nanobot:time}", vec![TemplatePart::Time]),
            (r#"${call("a/b", {x: {}}).output} end"#, vec![code(r#"call("a/b", {x: {}}).output"#, "e0"), text(" end")]),
            (r#"x${"}" + `${1}`}y"#, vec![text("x"), code(r#""}" + `${1}`"#, "e1"), text("y")]),
            ("${servers}", vec![code("servers", "e0")]),
        ];
        for (given, wanted) in table {
            assert_eq!(parse(given).unwrap(), wanted, "{given}");
        }
    }

    #[test]
    fn what_is_refused() {
        let message = |text: &str| parse(text).unwrap_err().to_string();
        assert!(message("${NONE}").contains("variable NONE is not set"));
        assert!(message("${call(").contains("`${` without `}`"));
        insta::assert_snapshot!(message("first line\nsay ${call('a/b'} now"));
    }
}
