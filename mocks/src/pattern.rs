//! Patterns: how scenarios say what a value must look like.
//!
//! Invariant: a pattern is data. Any JSON value is a pattern; an object whose only key starts with `$` is an operator
//! from a closed list. Objects match partially, arrays by position and length, numbers by value, everything else exactly.
//! Deliberately no captures, no arithmetic and no code.
//!
//! | operator | matches |
//! |---|---|
//! | `$re: text` | a string in which the regular expression is found |
//! | `$contains: text` | a string with that substring, or an array with that element |
//! | `$contains: pattern` | an array with an element that matches |
//! | `$last: pattern` | an array whose last element matches |
//! | `$len: pattern` | a string, array or object whose length matches |
//! | `$range: { min, max }` | a number in that range, both ends included, either may be left out |
//! | `$any: true` | anything that is present |
//! | `$absent: true` | nothing: the key is not there |
//! | `$not: pattern` | what the pattern does not match, absence included |
//! | `$all: [pattern…]` | what every pattern matches |
//! | `$one_of: [pattern…]` | what at least one pattern matches |
//!
//! A key that really starts with `$` is written with `$$`.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Number, Value};

/// The operators, in the order of the table.
pub const OPERATORS: [&str; 10] = ["$re", "$contains", "$last", "$len", "$range", "$any", "$absent", "$not", "$all", "$one_of"];

/// Longest rendering of a value in a message, in characters.
const SHOWN_CHARS: usize = 120;

/// Why a value does not match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{}: expected {expected}, found {found}", if path.is_empty() { "the value" } else { path })]
pub struct Mismatch {
    /// Where in the value: a JSON pointer, empty for the whole.
    pub path: String,
    /// What the pattern asks for there.
    pub expected: String,
    /// What is there.
    pub found: String,
}

/// A pattern that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// A `$`-key that is no operator.
    #[error("unknown operator `{name}`{}", nearest.map_or_else(|| format!("; a key of that name is written `${name}`"), |near| format!(", did you mean `{near}`?")))]
    UnknownOperator {
        /// Where in the pattern.
        path: String,
        /// What was written.
        name: String,
        /// The operator that was perhaps meant.
        nearest: Option<&'static str>,
    },
    /// An operator beside other keys.
    #[error("`{name}` must be the only key of its object; a key of that name is written `${name}`")]
    NotAlone {
        /// Where in the pattern.
        path: String,
        /// The `$`-key.
        name: String,
    },
    /// An operator's argument is of the wrong kind.
    #[error("`{name}` needs {needs}")]
    Argument {
        /// Where in the pattern: the argument.
        path: String,
        /// The operator.
        name: &'static str,
        /// What it takes.
        needs: &'static str,
    },
    /// A regular expression that cannot be read.
    #[error("`$re` holds no valid regular expression: {reason}")]
    Regex {
        /// Where in the pattern: the argument.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl PatternError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "PATTERN_INVALID"
    }

    /// Where in the pattern: a JSON pointer.
    pub fn path(&self) -> &str {
        match self {
            Self::UnknownOperator { path, .. }
            | Self::NotAlone { path, .. }
            | Self::Argument { path, .. }
            | Self::Regex { path, .. } => path,
        }
    }
}

/// A pattern that has been checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Pattern(Value);

impl Pattern {
    /// Checks and wraps a pattern.
    pub fn new(pattern: Value) -> Result<Self, PatternError> {
        validate(&pattern).map(|()| Self(pattern))
    }

    /// A pattern that matches this value: keys that start with `$` are escaped.
    pub fn literal(value: &Value) -> Self {
        Self(escape(value))
    }

    /// The pattern as it was written.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    /// Holds a value, or its absence, against the pattern.
    pub fn matches(&self, value: Option<&Value>) -> Result<(), Mismatch> {
        matches(&self.0, value)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::new(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl JsonSchema for Pattern {
    fn schema_name() -> Cow<'static, str> {
        "Pattern".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Any JSON value. Objects match partially, arrays exactly. An object with a single `$`-key is an operator: $re, $contains, $last, $len, $range, $any, $absent, $not, $all, $one_of; `$$` escapes a key."
        })
    }
}

/// What an object of a pattern is.
enum Form<'p> {
    Operator(&'p str, &'p Value),
    Literal(&'p Map<String, Value>),
    Mixed(&'p str),
}

fn form(object: &Map<String, Value>) -> Form<'_> {
    match object.iter().find(|(key, _)| is_operator(key)) {
        Some((name, argument)) if object.len() == 1 => Form::Operator(name, argument),
        Some((name, _)) => Form::Mixed(name),
        None => Form::Literal(object),
    }
}

fn is_operator(key: &str) -> bool {
    key.starts_with('$') && !key.starts_with("$$")
}

fn literal_key(key: &str) -> &str {
    if key.starts_with("$$") { &key[1..] } else { key }
}

fn escape(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(escape).collect(),
        Value::Object(object) => object
            .iter()
            .map(|(key, value)| (if key.starts_with('$') { format!("${key}") } else { key.clone() }, escape(value)))
            .collect::<Map<_, _>>()
            .into(),
        scalar => scalar.clone(),
    }
}

/// Checks that every operator in a pattern exists and has a proper argument.
pub fn validate(pattern: &Value) -> Result<(), PatternError> {
    validate_at(pattern, "")
}

fn validate_at(pattern: &Value, path: &str) -> Result<(), PatternError> {
    match pattern {
        Value::Array(items) => validate_items(items, path),
        Value::Object(object) => match form(object) {
            Form::Literal(object) => object.iter().try_for_each(|(key, value)| validate_at(value, &below(path, key))),
            Form::Mixed(name) => Err(PatternError::NotAlone { path: below(path, name), name: name.to_owned() }),
            Form::Operator(name, argument) => validate_operator(name, argument, path),
        },
        _ => Ok(()),
    }
}

fn validate_items(items: &[Value], path: &str) -> Result<(), PatternError> {
    items.iter().enumerate().try_for_each(|(index, item)| validate_at(item, &below(path, &index.to_string())))
}

fn validate_operator(name: &str, argument: &Value, parent: &str) -> Result<(), PatternError> {
    let path = below(parent, name);
    let needs = |name, needs| Err(PatternError::Argument { path: path.clone(), name, needs });
    match name {
        "$re" => match argument.as_str().map(regex::Regex::new) {
            None => needs("$re", "a string: a regular expression"),
            Some(Err(error)) => Err(PatternError::Regex { path, reason: last_line(&error) }),
            Some(Ok(_)) => Ok(()),
        },
        "$any" if *argument != Value::Bool(true) => needs("$any", "`true`"),
        "$absent" if *argument != Value::Bool(true) => needs("$absent", "`true`"),
        "$any" | "$absent" => Ok(()),
        "$range" if Range::read(argument).is_none() => needs("$range", "`{ min: number, max: number }`, or one of the two"),
        "$range" => Ok(()),
        "$contains" | "$last" | "$len" | "$not" => validate_at(argument, &path),
        "$all" | "$one_of" => match (argument.as_array(), name) {
            (Some(items), _) if !items.is_empty() => validate_items(items, &path),
            (_, "$all") => needs("$all", "a list of at least one pattern"),
            _ => needs("$one_of", "a list of at least one pattern"),
        },
        _ => {
            let nearest = nearest(name, OPERATORS);
            Err(PatternError::UnknownOperator { path, name: name.to_owned(), nearest })
        }
    }
}

/// The candidate that is most like a word, if one is like enough to be meant.
pub fn nearest<'c>(word: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let most = word.chars().count().div_ceil(3).clamp(1, 3);
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The regex crate draws a picture above its message; one line is enough here.
fn last_line(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// Holds a value, or its absence, against a pattern. An operator that [`validate`] refuses matches nothing.
pub fn matches(pattern: &Value, value: Option<&Value>) -> Result<(), Mismatch> {
    matches_at(pattern, value, "")
}

fn matches_at(pattern: &Value, value: Option<&Value>, path: &str) -> Result<(), Mismatch> {
    let fail = || Err(mismatch(path, render(pattern), value));
    match (pattern, value) {
        (Value::Object(object), _) => match form(object) {
            Form::Operator(name, argument) => operator(name, argument, value, path),
            Form::Mixed(name) => Err(mismatch(path, format!("nothing, as `{name}` is not alone in its object"), value)),
            Form::Literal(wanted) => match value.and_then(Value::as_object) {
                None => fail(),
                Some(found) => wanted.iter().try_for_each(|(key, pattern)| {
                    let key = literal_key(key);
                    matches_at(pattern, found.get(key), &below(path, key))
                }),
            },
        },
        (Value::Array(wanted), Some(Value::Array(found))) => {
            wanted
                .iter()
                .zip(found)
                .enumerate()
                .try_for_each(|(index, (pattern, value))| matches_at(pattern, Some(value), &below(path, &index.to_string())))?;
            if wanted.len() == found.len() { Ok(()) } else { Err(mismatch(path, format!("{} elements", wanted.len()), value)) }
        }
        (Value::Number(wanted), Some(Value::Number(found))) if same_number(wanted, found) => Ok(()),
        (wanted, Some(found)) if wanted == found => Ok(()),
        _ => fail(),
    }
}

fn operator(name: &str, argument: &Value, value: Option<&Value>, path: &str) -> Result<(), Mismatch> {
    let check = |ok: bool, expected: String| if ok { Ok(()) } else { Err(mismatch(path, expected, value)) };
    match name {
        "$any" => check(value.is_some(), "anything".to_owned()),
        "$absent" => check(value.is_none(), "nothing".to_owned()),
        "$not" => check(matches_at(argument, value, path).is_err(), format!("not {}", render(argument))),
        "$re" => {
            let regex = argument.as_str().and_then(|text| regex::Regex::new(text).ok());
            let found = value.and_then(Value::as_str);
            check(
                regex.zip(found).is_some_and(|(regex, text)| regex.is_match(text)),
                format!("text matching /{}/", argument.as_str().unwrap_or_default()),
            )
        }
        "$contains" => check(contains(argument, value), format!("something containing {}", render(argument))),
        "$last" => match value.and_then(Value::as_array) {
            Some(items) if !items.is_empty() => {
                let last = items.len() - 1;
                matches_at(argument, items.get(last), &below(path, &last.to_string()))
            }
            _ => check(false, format!("a list whose last element is {}", render(argument))),
        },
        "$len" => {
            let length = value.and_then(length_of).map(Value::from);
            let ok = length.is_some_and(|length| matches(argument, Some(&length)).is_ok());
            check(ok, format!("a length of {}", render(argument)))
        }
        "$range" => {
            let range = Range::read(argument);
            let number = value.and_then(Value::as_f64);
            check(
                range.zip(number).is_some_and(|(range, number)| range.holds(number)),
                format!("a number in {}", render(argument)),
            )
        }
        "$all" => match argument.as_array() {
            Some(patterns) => patterns.iter().try_for_each(|pattern| matches_at(pattern, value, path)),
            None => check(false, "nothing, as `$all` has no list".to_owned()),
        },
        "$one_of" => {
            let patterns = argument.as_array().map(Vec::as_slice).unwrap_or_default();
            let ok = patterns.iter().any(|pattern| matches_at(pattern, value, path).is_ok());
            check(ok, format!("one of {}", render(argument)))
        }
        _ => check(false, format!("nothing, as `{name}` is no operator")),
    }
}

fn contains(wanted: &Value, value: Option<&Value>) -> bool {
    match (wanted, value) {
        (Value::String(part), Some(Value::String(text))) => text.contains(part.as_str()),
        (pattern, Some(Value::Array(items))) => items.iter().any(|item| matches(pattern, Some(item)).is_ok()),
        _ => false,
    }
}

fn length_of(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => Some(text.chars().count()),
        Value::Array(items) => Some(items.len()),
        Value::Object(object) => Some(object.len()),
        _ => None,
    }
}

/// The argument of `$range`.
struct Range {
    min: f64,
    max: f64,
}

impl Range {
    fn read(argument: &Value) -> Option<Self> {
        let object = argument.as_object().filter(|object| !object.is_empty())?;
        let mut range = Self { min: f64::NEG_INFINITY, max: f64::INFINITY };
        for (key, bound) in object {
            match key.as_str() {
                "min" => range.min = bound.as_f64()?,
                "max" => range.max = bound.as_f64()?,
                _ => return None,
            }
        }
        Some(range)
    }

    fn holds(&self, number: f64) -> bool {
        self.min <= number && number <= self.max
    }
}

/// Integers are compared exactly; only a fraction brings in floating point.
fn same_number(a: &Number, b: &Number) -> bool {
    a == b
        || match (a.as_i128(), b.as_i128()) {
            (Some(a), Some(b)) => a == b,
            _ => a.as_f64().is_some() && a.as_f64() == b.as_f64(),
        }
}

fn mismatch(path: &str, expected: String, value: Option<&Value>) -> Mismatch {
    Mismatch { path: path.to_owned(), expected, found: value.map_or_else(|| "nothing".to_owned(), render) }
}

fn render(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((cut, _)) => format!("{}…", &text[..cut]),
        None => text,
    }
}

fn below(path: &str, key: &str) -> String {
    format!("{path}/{}", key.replace('~', "~0").replace('/', "~1"))
}
