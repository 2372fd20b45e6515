//! The script of a search: what a scenario file holds under `search: { script: … }`.
//!
//! Invariant: an unknown key is an error, and every answer has results or an error. Deliberately no computed answers.

use greenroom_boundary::search::SearchHit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::duration::Duration;
use crate::pattern::Pattern;

/// The foreseen searches. A search takes the first one that matches and is not used up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct SearchScript(pub Vec<ScriptedAnswer>);

/// One foreseen search, and its answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptedAnswer {
    /// What the search must look like: `{ type, query, limit, sites?, collections?, models?, … }`. All match if it is left
    /// out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<Pattern>,
    /// How many searches it answers; the script is not consumed before that many came. 1 if not said.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1))]
    pub repeat: u32,
    /// When the answer comes.
    #[serde(default)]
    pub after: Duration,
    /// What is found, best first: `{ title?, content, url?, document_id?, collection?, model?, record_id?, data?, score?,
    /// metadata? }`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub results: Vec<SearchHit>,
    /// How many there are in all; as many as given if not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// The provider fails, with this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde fixes the signature")]
fn is_one(count: &u32) -> bool {
    *count == 1
}
