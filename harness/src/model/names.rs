//! Small checked values of a scenario: its id, its tags, boundary names, the word `true`.
//!
//! Invariant: a value that exists is well formed, and its JSON Schema says the same as its constructor.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A text that does not have the form that its place asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no {what}: {form}")]
pub struct NameError {
    what: &'static str,
    form: &'static str,
    text: String,
}

impl NameError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        "NAME_INVALID"
    }
}

macro_rules! checked_text {
    ($(#[$doc:meta])* $name:ident, $what:literal, $pattern:literal, $form:literal, $check:expr) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Checks and wraps a text.
            pub fn new(text: impl Into<String>) -> Result<Self, NameError> {
                let text = text.into();
                let check: fn(&str) -> bool = $check;
                if check(&text) { Ok(Self(text)) } else { Err(NameError { what: $what, form: $form, text }) }
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::new(String::deserialize(deserializer)?).map_err(D::Error::custom)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $form })
            }
        }
    };
}

fn starts_and_goes_on(text: &str, more: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(plain) && text.chars().all(|c| plain(c) || more.contains(c))
}

/// Whether a text is a boundary name, `*` included.
fn is_boundary(text: &str) -> bool {
    match text.split_once('.') {
        None => matches!(text, "clock" | "isolate" | "egress" | "hook" | "host" | "*"),
        Some((kind, name)) => {
            matches!(kind, "llm" | "mcp" | "cli" | "agent" | "server" | "client" | "search")
                && !name.is_empty()
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.*-".contains(c))
        }
    }
}

checked_text!(
    /// The id of a scenario: `hooks/metric-only`.
    ScenarioId,
    "scenario id",
    "^[a-z0-9][a-z0-9/_.-]*$",
    "Lower-case letters, digits and `/ _ . -`, such as `hooks/metric-only`.",
    |text| starts_and_goes_on(text, "/_.-")
);

checked_text!(
    /// A tag of a scenario: `smoke`.
    Tag,
    "tag",
    "^[a-z0-9][a-z0-9:_-]*$",
    "Lower-case letters, digits and `: _ -`, such as `smoke`.",
    |text| starts_and_goes_on(text, ":_-")
);

checked_text!(
    /// A boundary, or several: `mcp.weather`, `llm.*`, `host`.
    BoundaryGlob,
    "boundary",
    "^(clock|isolate|egress|hook|host|\\*|(llm|mcp|cli|agent|server|client|search)\\.[A-Za-z0-9_.*-]+)$",
    "`llm.NAME`, `mcp.NAME`, `cli.NAME`, `agent.NAME`, `server.NAME`, `client.NAME`, `search.web`, `hook`, `isolate`, `egress`, `clock` or `host`; `*` stands for any part of a name.",
    is_boundary
);

impl BoundaryGlob {
    /// Whether it means this boundary.
    pub fn matches(&self, boundary: &str) -> bool {
        glob(&self.0, boundary)
    }
}

/// Whether a text has the form of a pattern in which `*` stands for any text and `?` for any one character.
pub fn glob(pattern: &str, text: &str) -> bool {
    let (mut wanted, mut given) = (pattern.chars(), text.chars());
    // Behind the last star, and how far the text was when it was met: the place to try again from.
    let mut star = None;
    while let Some(char) = given.clone().next() {
        match wanted.clone().next() {
            Some('*') => {
                wanted.next();
                star = Some((wanted.clone(), given.clone()));
            }
            Some(c) if c == '?' || c == char => {
                wanted.next();
                given.next();
            }
            _ => match &mut star {
                Some((behind, from)) => {
                    from.next();
                    (wanted, given) = (behind.clone(), from.clone());
                }
                None => return false,
            },
        }
    }
    wanted.all(|c| c == '*')
}

/// The word `true`, where nothing else makes sense: `deny: true`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct True;

impl Serialize for True {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(true)
    }
}

impl<'de> Deserialize<'de> for True {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if bool::deserialize(deserializer)? { Ok(Self) } else { Err(D::Error::custom("only `true` makes sense here")) }
    }
}

impl JsonSchema for True {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "True".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": true })
    }
}

/// The version of the scenario format: 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Format1;

impl Serialize for Format1 {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(1)
    }
}

impl<'de> Deserialize<'de> for Format1 {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u64::deserialize(deserializer)? {
            1 => Ok(Self),
            other => Err(D::Error::custom(format!("format {other} is not known here; this version reads format 1"))),
        }
    }
}

impl JsonSchema for Format1 {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Format1".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "const": 1, "description": "Version of the scenario format." })
    }
}
