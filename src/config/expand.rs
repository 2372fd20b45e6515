//! Placeholders: `${NAME}`, `${env:NAME}`, `${NAME:-default}`, `$${` for a literal `${`.
//!
//! Invariant: nothing unexpanded leaves the host, values are not expanded twice, and third-party text is never evaluated.
//! Deliberately no JavaScript: expressions stand only in the texts of `template`.

use std::collections::BTreeMap;

/// The variables that placeholders may name, with the values of the process's environment.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// From (name, value) pairs.
    pub fn new(pairs: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(pairs.into_iter().collect())
    }

    /// Adds or replaces one.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The names that placeholders of `text` use.
    pub fn names(text: &str) -> impl Iterator<Item = &str> {
        text.split("${").skip(1).filter_map(|rest| {
            let expression = rest.split_once('}')?.0;
            let name = expression.split_once(":-").map_or(expression, |(name, _)| name);
            Some(name.strip_prefix("env:").unwrap_or(name).trim())
        })
    }

    /// Replaces every placeholder of `text`.
    pub fn expand(&self, text: &str) -> Result<String, ExpandError> {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            if rest[..at].ends_with('$') {
                out.push_str(&rest[..at - 1]);
                out.push_str("${");
                rest = &rest[at + 2..];
                continue;
            }
            out.push_str(&rest[..at]);
            let inner = &rest[at + 2..];
            let Some(end) = inner.find('}') else {
                return Err(ExpandError::Unclosed { text: text.to_owned() });
            };
            out.push_str(self.value_of(&inner[..end])?);
            rest = &inner[end + 1..];
        }
        out.push_str(rest);
        Ok(out)
    }

    pub(super) fn value_of<'a>(&'a self, expression: &'a str) -> Result<&'a str, ExpandError> {
        let (name, default) = match expression.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (expression, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name).trim();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(ExpandError::NotAName { expression: expression.to_owned() });
        }
        match (self.get(name), default) {
            (Some(value), _) if !(value.is_empty() && default.is_some()) => Ok(value),
            (_, Some(default)) => Ok(default),
            _ => Err(ExpandError::Unset { name: name.to_owned() }),
        }
    }
}

/// A placeholder that cannot be expanded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExpandError {
    /// The variable has no value.
    #[error("variable {name} is not set; set it in the environment or write ${{{name}:-default}}")]
    Unset {
        /// Its name.
        name: String,
    },
    /// `${` without `}`.
    #[error("`${{` without `}}` in {text:?}; write `$${{` for a literal `${{`")]
    Unclosed {
        /// The whole text.
        text: String,
    },
    /// Not `${NAME}`, `${env:NAME}` or `${NAME:-default}`.
    #[error(
        "`${{{expression}}}` is not a variable name; accepted are ${{NAME}}, ${{env:NAME}} and ${{NAME:-default}}; expressions may stand only in instructions, texts of `publish`, prompt templates and their arguments"
    )]
    NotAName {
        /// What stands between the braces.
        expression: String,
    },
}

impl ExpandError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unset { .. } => "CONFIG_VARIABLE_UNSET",
            Self::Unclosed { .. } | Self::NotAName { .. } => "CONFIG_PLACEHOLDER",
        }
    }
}
