//! The `drivers:` section: what stands behind each boundary.
//!
//! Invariant: a boundary has exactly one driver, and only a kind that fits it. What is not listed is denied, but for the
//! clock (virtual), the ids (seeded) and the isolate (the engine of the command line). Deliberately no building of
//! drivers here.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::scripts::{CliScript, ClientScript, EgressScript, IsolateScript, LlmScript, McpScript, SearchScript};
use super::{True, glob};

/// The drivers of a scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DriversSpec {
    /// `clock`.
    pub clock: ClockDriver,
    /// `ids`: ids and random numbers.
    pub ids: IdsDriver,
    /// `egress`.
    pub egress: EgressDriver,
    /// `isolate`: the script engine.
    pub isolate: IsolateDriver,
    /// `llm.NAME`; the keys are names, or globs such as `*`.
    pub llm: BTreeMap<String, LlmDriver>,
    /// `mcp.NAME`.
    pub mcp: BTreeMap<String, McpDriver>,
    /// `cli.NAME`.
    pub cli: BTreeMap<String, CliDriver>,
    /// `search`: on the web, in knowledge bases and in tables; denied if it is not listed.
    pub search: Option<SearchDriver>,
    /// `client.NAME`: outside clients, who speak to the host in steps of `run`.
    pub client: BTreeMap<String, ClientScript>,
}

impl DriversSpec {
    /// The driver of an LLM connector; none means that it is denied.
    pub fn llm(&self, name: &str) -> Option<&LlmDriver> {
        named(&self.llm, name)
    }

    /// The driver of an external server; none means that it is denied.
    pub fn mcp(&self, name: &str) -> Option<&McpDriver> {
        named(&self.mcp, name)
    }

    /// The driver of a CLI runner; none means that it is denied.
    pub fn cli(&self, name: &str) -> Option<&CliDriver> {
        named(&self.cli, name)
    }
}

impl DriversSpec {
    /// The cassettes that it names, relative to the scenario file.
    pub fn cassettes(&self) -> impl Iterator<Item = &str> {
        let llm = self.llm.values().map(LlmDriver::cassette);
        let mcp = self.mcp.values().map(McpDriver::cassette);
        llm.chain(mcp).chain(self.cli.values().map(CliDriver::cassette)).flatten()
    }
}

/// The name itself goes before a glob.
fn named<'d, D>(drivers: &'d BTreeMap<String, D>, name: &str) -> Option<&'d D> {
    drivers.get(name).or_else(|| drivers.iter().find(|(pattern, _)| glob(pattern, name)).map(|(_, driver)| driver))
}

/// Behind the clock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ClockDriver {
    /// Jumps to the next timer when nothing can run.
    Virtual(VirtualClockSpec),
    /// The machine's clock; the trace is not reproducible.
    System(NoOptions),
}

impl Default for ClockDriver {
    fn default() -> Self {
        Self::Virtual(VirtualClockSpec::default())
    }
}

/// The virtual clock.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VirtualClockSpec {
    /// What the wall clock shows at the start, RFC 3339: `2026-08-01T09:00:00Z`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
}

/// A driver without options: `{}`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoOptions {}

/// Behind ids and random numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IdsDriver {
    /// Follow from the scenario's seed.
    Seeded(NoOptions),
    /// The machine's; the trace is not reproducible.
    System(NoOptions),
}

impl Default for IdsDriver {
    fn default() -> Self {
        Self::Seeded(NoOptions {})
    }
}

/// Behind egress.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EgressDriver {
    /// Nothing may be contacted.
    Deny(True),
    /// These hosts may be contacted, `HOST` or `HOST:PORT`, with `*` for any text.
    Allow(Vec<String>),
    /// Nothing may be contacted; the HTTP requests of scripts are answered from this list.
    Script(EgressScript),
}

impl Default for EgressDriver {
    fn default() -> Self {
        Self::Deny(True)
    }
}

/// Behind the script engine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum IsolateDriver {
    /// The engine that the command line chose.
    Builtin(NoOptions),
    /// Scripted functions instead of an engine.
    Script(IsolateScript),
}

impl Default for IsolateDriver {
    fn default() -> Self {
        Self::Builtin(NoOptions {})
    }
}

/// Behind search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchDriver {
    /// Follows a script in the scenario.
    Script(SearchScript),
    /// Refuses every search.
    Deny(True),
}

macro_rules! boundary_driver {
    ($(#[$doc:meta])* $name:ident, $script:ty) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        #[allow(clippy::large_enum_variant, reason = "a scenario has few drivers, and most of them are scripts")]
        pub enum $name {
            /// Follows a script in the scenario.
            Script($script),
            /// Answers from a cassette.
            Replay(Replay),
            /// Answers from a cassette if there is one; `greenroom record` makes it from the live driver.
            Record(Record),
            /// The real thing.
            Live(Live),
            /// Refuses every call.
            Deny(True),
        }

        impl $name {
            /// The cassette that it replays or records, relative to the scenario file.
            pub fn cassette(&self) -> Option<&str> {
                match self {
                    Self::Replay(replay) => Some(&replay.cassette),
                    Self::Record(record) => Some(&record.cassette),
                    Self::Script(_) | Self::Live(_) | Self::Deny(_) => None,
                }
            }
        }
    };
}

boundary_driver!(
    /// Behind an LLM connector.
    LlmDriver,
    LlmScript
);
boundary_driver!(
    /// Behind an external MCP server.
    McpDriver,
    McpScript
);
boundary_driver!(
    /// Behind a CLI runner.
    CliDriver,
    CliScript
);

/// Answers from a cassette.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// The cassette, relative to the scenario file.
    pub cassette: String,
    /// What to do with a call that is not in it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub on_miss: OnMiss,
    /// What to do about recorded calls that nobody made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unused: Unused,
}

/// Records to, or answers from, a cassette.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The cassette, relative to the scenario file.
    pub cassette: String,
    /// What is recorded.
    pub live: Live,
}

/// A real peer: a command, or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, try_from = "LiveParts")]
#[schemars(with = "LiveParts")]
pub struct Live {
    /// The program to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment; nothing else is passed on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The address to connect to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers sent with every request.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

/// A real peer: `command` with `args` and `env`, or `url` with `headers`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Live")]
struct LiveParts {
    /// The program to start.
    #[serde(default)]
    command: Option<String>,
    /// Its arguments.
    #[serde(default)]
    args: Vec<String>,
    /// Its environment; nothing else is passed on.
    #[serde(default)]
    env: BTreeMap<String, String>,
    /// The address to connect to.
    #[serde(default)]
    url: Option<String>,
    /// Headers sent with every request.
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl TryFrom<LiveParts> for Live {
    type Error = &'static str;

    fn try_from(parts: LiveParts) -> Result<Self, Self::Error> {
        let LiveParts { command, args, env, url, headers } = parts;
        match (&command, &url) {
            (Some(_), Some(_)) => Err("`live` takes `command` or `url`, not both"),
            (None, None) => Err("`live` needs `command` (a program to start) or `url` (an address to connect to)"),
            (Some(_), None) if !headers.is_empty() => Err("`headers` goes with `url`, not with `command`"),
            (None, Some(_)) if !args.is_empty() || !env.is_empty() => Err("`args` and `env` go with `command`, not with `url`"),
            _ => Ok(Self { command, args, env, url, headers }),
        }
    }
}

/// What to do with a call that a cassette does not hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnMiss {
    /// The scenario ends as missed, with the nearest recorded call.
    #[default]
    Fail,
}

/// What to do about something that was prepared and never used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unused {
    /// The scenario fails.
    #[default]
    Fail,
    /// The report says so.
    Warn,
    /// Nothing.
    Allow,
}

/// For `skip_serializing_if`.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

const KEYS: &str = "`clock`, `ids`, `egress`, `isolate`, `search`, `llm.NAME`, `mcp.NAME`, `cli.NAME` or `client.NAME`";

impl<'de> Deserialize<'de> for DriversSpec {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Drivers;

        impl<'de> Visitor<'de> for Drivers {
            type Value = DriversSpec;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a driver for each of {KEYS}")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut drivers = DriversSpec::default();
                while let Some(key) = map.next_key::<String>()? {
                    match key.split_once('.') {
                        None if key == "clock" => drivers.clock = map.next_value()?,
                        None if key == "ids" => drivers.ids = map.next_value()?,
                        None if key == "egress" => drivers.egress = map.next_value()?,
                        None if key == "isolate" => drivers.isolate = map.next_value()?,
                        None if key == "search" => drivers.search = Some(map.next_value()?),
                        Some(("llm", name)) => drop(drivers.llm.insert(name.to_owned(), map.next_value()?)),
                        Some(("mcp", name)) => drop(drivers.mcp.insert(name.to_owned(), map.next_value()?)),
                        Some(("cli", name)) => drop(drivers.cli.insert(name.to_owned(), map.next_value()?)),
                        Some(("client", name)) => drop(drivers.client.insert(name.to_owned(), map.next_value()?)),
                        _ => return Err(A::Error::custom(format!("`{key}` is no boundary; write {KEYS}"))),
                    }
                }
                Ok(drivers)
            }
        }

        deserializer.deserialize_map(Drivers)
    }
}

impl Serialize for DriversSpec {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("clock", &self.clock)?;
        map.serialize_entry("ids", &self.ids)?;
        map.serialize_entry("egress", &self.egress)?;
        map.serialize_entry("isolate", &self.isolate)?;
        if let Some(search) = &self.search {
            map.serialize_entry("search", search)?;
        }
        for (name, driver) in &self.llm {
            map.serialize_entry(&format!("llm.{name}"), driver)?;
        }
        for (name, driver) in &self.mcp {
            map.serialize_entry(&format!("mcp.{name}"), driver)?;
        }
        for (name, driver) in &self.cli {
            map.serialize_entry(&format!("cli.{name}"), driver)?;
        }
        for (name, client) in &self.client {
            map.serialize_entry(&format!("client.{name}"), client)?;
        }
        map.end()
    }
}

impl JsonSchema for DriversSpec {
    fn schema_name() -> Cow<'static, str> {
        "Drivers".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "description": "What stands behind each boundary. What is not listed is denied.",
            "properties": {
                "clock": generator.subschema_for::<ClockDriver>(),
                "ids": generator.subschema_for::<IdsDriver>(),
                "egress": generator.subschema_for::<EgressDriver>(),
                "isolate": generator.subschema_for::<IsolateDriver>(),
                "search": generator.subschema_for::<SearchDriver>(),
            },
            "patternProperties": {
                "^llm\\.[A-Za-z0-9_*-]+$": generator.subschema_for::<LlmDriver>(),
                "^mcp\\.[A-Za-z0-9_*-]+$": generator.subschema_for::<McpDriver>(),
                "^cli\\.[A-Za-z0-9_*-]+$": generator.subschema_for::<CliDriver>(),
                "^client\\.[A-Za-z0-9_-]+$": generator.subschema_for::<ClientScript>(),
            },
            "additionalProperties": false,
        })
    }
}
