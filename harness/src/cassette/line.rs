//! The lines of a cassette as types.
//!
//! Invariant: field order is that of the structs (`t`, `seq`, `vt` first), so the same event is always the same bytes.
//! Unknown fields are ignored, unknown line types kept as [`Line::Other`]: a newer minor version can be read.

use std::collections::BTreeMap;

use greenroom_boundary::RawJson;
use greenroom_boundary::llm::Usage;
use greenroom_boundary::trace::{Direction, HookMode, HookPhase, HookVerdict, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Format version that is written.
pub const VERSION: &str = "1.0";
/// The canonical form over which keys are taken.
pub const CANON: &str = "jcs-1";

/// The first line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// `MAJOR.MINOR`.
    pub v: String,
    /// Canonical form of keys.
    pub canon: String,
    /// Id of the recording.
    pub id: String,
    /// Wall-clock start, RFC 3339.
    pub started: String,
    /// Seed of ids and random numbers.
    pub seed: u64,
    /// MCP revision that the host spoke.
    #[serde(default)]
    pub spec: String,
    /// Features that a reader must understand.
    #[serde(default)]
    pub features: Vec<String>,
    /// The host that was recorded.
    #[serde(default)]
    pub host: HostInfo,
    /// The lanes, as far as they were known at the start.
    #[serde(default)]
    pub lanes: BTreeMap<String, LaneInfo>,
    /// How secrets were replaced.
    #[serde(default)]
    pub redaction: RedactionInfo,
    /// How requests are matched.
    #[serde(default, rename = "match")]
    pub matching: MatchInfo,
}

/// The host that was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostInfo {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its version.
    #[serde(default)]
    pub version: String,
    /// Digest of its config.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub config: String,
}

/// What stood behind a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LaneInfo {
    /// `openai-chat`, `stdio`, `scripted`, …
    #[serde(default)]
    pub kind: String,
    /// Everything else (`model`, `server`, …).
    #[serde(flatten)]
    pub more: BTreeMap<String, Value>,
}

/// How secrets were replaced.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RedactionInfo {
    /// `registry`: values of the credential registry.
    #[serde(default)]
    pub profile: String,
    /// Digest of the rules.
    #[serde(default)]
    pub rules: String,
    /// Which key made the digests; the key itself is never in the file.
    #[serde(default)]
    pub key_id: String,
}

/// How requests are matched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatchInfo {
    /// Digest of the rules.
    #[serde(default)]
    pub rules: String,
}

/// Something from outside: a turn, a cancellation.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stim {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// `turn`, `cancel`.
    pub kind: String,
    /// Root of the scopes that it causes: the stimulus' id.
    pub scope: String,
    /// What it carries.
    pub body: RawJson,
}

/// The host answered a stimulus.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StimEnd {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// The stimulus.
    pub of: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<RawJson>,
}

/// The host starts an exchange.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Open {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// `llm.NAME`, `mcp.NAME`, `cli.NAME`.
    pub lane: String,
    /// `chat`, `tools/call`, `connect`, `run`.
    pub op: String,
    /// Who asked.
    #[serde(default)]
    pub scope: String,
    /// Identity of the request.
    pub key: String,
    /// Counts equal keys within the scope, from 1.
    pub occ: u64,
    /// The connection of the lane, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conn: u64,
    /// The request.
    pub body: RawJson,
}

/// A piece of a streamed answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Chunk {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// The exchange.
    pub of: u64,
    /// Counts the pieces of the exchange, from 0.
    pub i: u64,
    /// The piece.
    #[serde(default)]
    pub raw: String,
}

/// A one-way message, or a request that a server makes of the host, or its answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Note {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// The lane.
    pub lane: String,
    /// Which way.
    pub dir: Direction,
    /// The exchange that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// The last event of its connection before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anchor: Option<u64>,
    /// The connection of the lane, from 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub conn: u64,
    /// The message.
    pub body: RawJson,
}

/// An exchange ends.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Close {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// The exchange.
    pub of: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The answer, or the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<RawJson>,
    /// Token counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// A hook decided.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Hook {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// The exchange, where the recorder knows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<u64>,
    /// The exchange's span in the trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<u64>,
    /// Its id.
    pub hook: String,
    /// Which side.
    pub phase: HookPhase,
    /// Whether its word counts.
    pub mode: HookMode,
    /// What it decided.
    pub verdict: HookVerdict,
    /// What it changed: RFC 6902.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<RawJson>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A nondeterministic value that was given to the host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Input {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// Where it comes from: `id`, `random`, `wall`, …
    pub src: String,
    /// Who got it.
    #[serde(default)]
    pub scope: String,
    /// Counts the values of the source, from 1.
    pub n: u64,
    /// The value.
    pub value: RawJson,
}

/// The last line.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Seal {
    /// Position in the recording.
    pub seq: u64,
    /// Nanoseconds since the start.
    pub vt: u64,
    /// `complete`.
    pub status: String,
    /// How many events come before it.
    pub n: u64,
    /// How many exchanges were opened.
    pub exchanges: u64,
    /// What the last sweep for secrets found.
    pub residual: Residual,
}

/// What the last sweep for secrets found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Residual {
    /// Digest of the rules.
    pub rules: String,
    /// How many; a sealed file has 0.
    pub hits: u64,
}

/// Text that other lines refer to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Blob {
    /// Digest of the text.
    pub sha256: String,
    /// Its length in bytes.
    pub n: u64,
    /// The text.
    #[serde(default)]
    pub data: String,
}

/// A line.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum Line {
    /// First line.
    Head(Box<Head>),
    /// A stimulus.
    Stim(Stim),
    /// The answer to a stimulus.
    StimEnd(StimEnd),
    /// An exchange starts.
    Open(Open),
    /// A piece of an answer.
    Chunk(Chunk),
    /// A one-way message.
    Note(Note),
    /// An exchange ends.
    Close(Close),
    /// A hook decided.
    Hook(Hook),
    /// A value given to the host.
    In(Input),
    /// Last line.
    Seal(Seal),
    /// Text that other lines refer to.
    Blob(Blob),
    /// A line that this version does not use (`mark`, `sched`, `fault`, or newer).
    #[serde(skip)]
    Other,
}

impl Line {
    /// Parses a line whose digest was checked.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct Tag {
            t: String,
        }
        let tag: Tag = serde_json::from_str(text)?;
        Ok(match tag.t.as_str() {
            "head" => Self::Head(serde_json::from_str(text)?),
            "stim" => Self::Stim(serde_json::from_str(text)?),
            "stim_end" => Self::StimEnd(serde_json::from_str(text)?),
            "open" => Self::Open(serde_json::from_str(text)?),
            "chunk" => Self::Chunk(serde_json::from_str(text)?),
            "note" => Self::Note(serde_json::from_str(text)?),
            "close" => Self::Close(serde_json::from_str(text)?),
            "hook" => Self::Hook(serde_json::from_str(text)?),
            "in" => Self::In(serde_json::from_str(text)?),
            "seal" => Self::Seal(serde_json::from_str(text)?),
            "blob" => Self::Blob(serde_json::from_str(text)?),
            _ => Self::Other,
        })
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(value: &u64) -> bool {
    *value == 0
}
