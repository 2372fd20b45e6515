//! Filter expressions: `tag(smoke) & !(tag(live) | id(slow/*))`.
//!
//! Invariant: an expression says nothing about order or results, only which cases are meant. `!` binds strongest, then
//! `&`, then `|`. A text in which nothing is misspelt prints as it reads.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use greenroom_mocks::pattern::nearest;

use crate::load::ScenarioCase;
use crate::model::glob;

/// Deepest nesting of an expression.
const MOST_DEPTH: usize = 64;

/// The predicates.
const PREDICATES: [&str; 3] = ["tag", "id", "file"];

/// Which cases are meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Has this tag; `*` stands for any text.
    Tag(String),
    /// Has such an id, with or without its place in the matrix.
    Id(String),
    /// Was read from such a file; the pattern may leave out leading folders.
    File(String),
    /// Not this.
    Not(Box<Filter>),
    /// Both.
    And(Box<Filter>, Box<Filter>),
    /// One or both.
    Or(Box<Filter>, Box<Filter>),
}

/// An expression that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}\n  {expression}\n  {}^", " ".repeat(*column))]
pub struct FilterError {
    /// What is wrong.
    pub message: String,
    /// The expression.
    pub expression: String,
    /// Where, in characters from 0.
    pub column: usize,
}

impl FilterError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "FILTER_INVALID"
    }
}

/// What a filter looks at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'s> {
    /// The scenario's id.
    pub id: &'s str,
    /// The same with its place in the matrix.
    pub case: &'s str,
    /// Its tags.
    pub tags: &'s [&'s str],
    /// Its file.
    pub file: &'s Path,
}

impl Filter {
    /// Whether this case is meant.
    pub fn selects(&self, case: &ScenarioCase) -> bool {
        let tags: Vec<&str> = case.scenario.tags.iter().map(|tag| tag.as_str()).collect();
        self.matches(&Subject { id: case.scenario.id.as_str(), case: &case.id, tags: &tags, file: &case.file })
    }

    /// Whether a case with these properties is meant.
    pub fn matches(&self, subject: &Subject<'_>) -> bool {
        match self {
            Self::Tag(pattern) => subject.tags.iter().any(|tag| glob(pattern, tag)),
            Self::Id(pattern) => glob(pattern, subject.id) || glob(pattern, subject.case),
            Self::File(pattern) => file_matches(pattern, subject.file),
            Self::Not(filter) => !filter.matches(subject),
            Self::And(left, right) => left.matches(subject) && right.matches(subject),
            Self::Or(left, right) => left.matches(subject) || right.matches(subject),
        }
    }
}

fn file_matches(pattern: &str, file: &Path) -> bool {
    let text = file.to_string_lossy().replace('\\', "/");
    let starts = std::iter::once(0).chain(text.match_indices('/').map(|(at, _)| at + 1));
    starts.into_iter().any(|start| glob(pattern, &text[start..]))
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(pattern) => write!(f, "tag({pattern})"),
            Self::Id(pattern) => write!(f, "id({pattern})"),
            Self::File(pattern) => write!(f, "file({pattern})"),
            Self::Not(filter) => match **filter {
                Self::And(..) | Self::Or(..) => write!(f, "!({filter})"),
                _ => write!(f, "!{filter}"),
            },
            Self::And(left, right) => {
                let side = |f: &mut fmt::Formatter<'_>, side: &Self, right: bool| match side {
                    Self::Or(..) => write!(f, "({side})"),
                    Self::And(..) if right => write!(f, "({side})"),
                    _ => write!(f, "{side}"),
                };
                side(f, left, false)?;
                f.write_str(" & ")?;
                side(f, right, true)
            }
            Self::Or(left, right) => match **right {
                Self::Or(..) => write!(f, "{left} | ({right})"),
                _ => write!(f, "{left} | {right}"),
            },
        }
    }
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parser = Parser { chars: text.chars().collect(), at: 0, depth: 0 };
        let parsed = parser.or().and_then(|filter| {
            parser.space();
            match parser.chars.get(parser.at) {
                None => Ok(filter),
                Some(')') => Err(parser.error("this `)` closes nothing")),
                Some(_) => Err(parser.error("`&` or `|` was expected here")),
            }
        });
        parsed.map_err(|(message, column)| FilterError { message, expression: one_line(text), column })
    }
}

/// The caret below must stand under the right character.
fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

type Failure = (String, usize);

struct Parser {
    chars: Vec<char>,
    at: usize,
    depth: usize,
}

impl Parser {
    fn error(&self, message: impl Into<String>) -> Failure {
        (message.into(), self.at)
    }

    fn space(&mut self) {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
    }

    fn is_next(&mut self, c: char) -> bool {
        self.space();
        let next = self.chars.get(self.at) == Some(&c);
        self.at += usize::from(next);
        next
    }

    fn or(&mut self) -> Result<Filter, Failure> {
        let mut left = self.and()?;
        while self.is_next('|') {
            left = Filter::Or(Box::new(left), Box::new(self.and()?));
        }
        Ok(left)
    }

    fn and(&mut self) -> Result<Filter, Failure> {
        let mut left = self.unary()?;
        while self.is_next('&') {
            left = Filter::And(Box::new(left), Box::new(self.unary()?));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Filter, Failure> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return Err(self.error(format!("the expression is nested more than {MOST_DEPTH} deep")));
        }
        let filter = if self.is_next('!') {
            Filter::Not(Box::new(self.unary()?))
        } else if self.is_next('(') {
            let open = self.at - 1;
            let filter = self.or()?;
            if !self.is_next(')') {
                return Err(match self.chars.get(self.at) {
                    None => ("this `(` is never closed".to_owned(), open),
                    Some(_) => self.error("`&`, `|` or `)` was expected here"),
                });
            }
            filter
        } else {
            self.predicate()?
        };
        self.depth -= 1;
        Ok(filter)
    }

    fn predicate(&mut self) -> Result<Filter, Failure> {
        self.space();
        let start = self.at;
        let name = self.while_next(|c| c.is_alphanumeric() || c == '_' || c == '-');
        if name.is_empty() {
            return Err(self.error("`tag(…)`, `id(…)` or `file(…)` was expected here"));
        }
        if !PREDICATES.contains(&name.as_str()) {
            let help = nearest(&name, PREDICATES).map(|near| format!("; did you mean `{near}`?"));
            let help = help.unwrap_or_else(|| "; there are `tag`, `id` and `file`".to_owned());
            return Err((format!("`{name}` is not known{help}"), start));
        }
        if !self.is_next('(') {
            return Err(self.error(format!("`{name}` takes its pattern in parentheses: `{name}(…)`")));
        }
        let open = self.at - 1;
        let pattern = self.while_next(|c| c != '(' && c != ')').trim().to_owned();
        match self.chars.get(self.at) {
            Some(')') => self.at += 1,
            Some(_) => return Err(self.error("a pattern holds no parentheses")),
            None => return Err(("this `(` is never closed".to_owned(), open)),
        }
        if pattern.is_empty() {
            return Err((format!("`{name}` needs a pattern; `*` stands for any text"), open));
        }
        Ok(match name.as_str() {
            "tag" => Filter::Tag(pattern),
            "id" => Filter::Id(pattern),
            _ => Filter::File(pattern),
        })
    }

    fn while_next(&mut self, wanted: impl Fn(char) -> bool) -> String {
        let rest = self.chars[self.at..].iter();
        let text: String = rest.take_while(|c| wanted(**c)).collect();
        self.at += text.chars().count();
        text
    }
}
