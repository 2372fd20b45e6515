//! The search boundary: find something on the web, in knowledge bases, in tables.
//!
//! Invariant: hits come best first, at most [`SearchQuery::limit`] of them; the same question to the same data has the same
//! answer. Deliberately no citation ids and no ranking across sources: those are the host's.

use std::fmt;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::CancellationToken;

/// Hits of a query that does not say how many it wants.
pub const DEFAULT_LIMIT: usize = 10;

/// Most hits of one query.
pub const MAX_LIMIT: usize = 100;

/// Where to search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SearchKind {
    /// On the web.
    Web,
    /// In knowledge bases.
    Kb,
    /// In tables.
    Db,
}

impl SearchKind {
    /// Its name: `web`, `kb` or `db`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Web => "web",
            Self::Kb => "kb",
            Self::Db => "db",
        }
    }
}

/// How old a page may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TimeRange {
    /// A day.
    Day,
    /// A week.
    Week,
    /// A month.
    Month,
    /// A year.
    Year,
}

impl TimeRange {
    /// Its name: `day`, `week`, `month` or `year`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
            Self::Year => "year",
        }
    }
}

/// A condition on a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Where {
    /// The column.
    #[serde(alias = "field")]
    pub column: String,
    /// How it is compared: `=`, `!=`, `<`, `<=`, `>`, `>=`, `in` or `like` (with `%` for any text).
    #[serde(default = "equals")]
    pub op: String,
    /// With what.
    pub value: Value,
}

fn equals() -> String {
    "=".to_owned()
}

/// An order of rows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Order {
    /// The column.
    #[serde(alias = "field")]
    pub column: String,
    /// Largest first.
    #[serde(default)]
    pub desc: bool,
}

/// A question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchQuery {
    /// Where to search.
    #[serde(rename = "type")]
    pub kind: SearchKind,
    /// What for.
    pub query: String,
    /// How many hits at most.
    pub limit: usize,
    /// Web: only these sites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<String>,
    /// Web: only pages as young as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_range: Option<TimeRange>,
    /// Knowledge bases: only these; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub collections: Vec<String>,
    /// Knowledge bases: only hits with at least this score, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// Tables: only these; all if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// Tables: only these columns are given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub select: Vec<String>,
    /// Tables: only rows for which all of these hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub wheres: Vec<Where>,
    /// Tables: in this order, instead of the best first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orders: Vec<Order>,
}

impl SearchQuery {
    /// A plain question.
    pub fn new(kind: SearchKind, query: impl Into<String>) -> Self {
        Self {
            kind,
            query: query.into(),
            limit: DEFAULT_LIMIT,
            sites: Vec::new(),
            time_range: None,
            collections: Vec::new(),
            threshold: None,
            models: Vec::new(),
            select: Vec::new(),
            wheres: Vec::new(),
            orders: Vec::new(),
        }
    }
}

/// Something found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchHit {
    /// How well it fits, from 0 to 1, if the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Its title.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its text.
    #[serde(default)]
    pub content: String,
    /// Web: its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Knowledge bases: the document.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub document_id: Option<String>,
    /// Knowledge bases: the collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub collection: Option<String>,
    /// Tables: the table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Tables: the row's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_id: Option<Value>,
    /// Tables: the row.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<Map<String, Value>>,
    /// What else is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchAnswer {
    /// The best hits, best first.
    pub hits: Vec<SearchHit>,
    /// How many there are in all, as far as the provider knows.
    pub total: u64,
}

/// A search that gave nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SearchError {
    /// Nobody is there to ask.
    #[error("{message}")]
    NoProvider {
        /// What to do about it.
        message: String,
    },
    /// The policy forbids it.
    #[error("search.{kind}: {message}")]
    Denied {
        /// Where.
        kind: &'static str,
        /// Who said so, and what to do about it.
        message: String,
    },
    /// The question is not one.
    #[error("search.{kind}: {message}")]
    BadQuery {
        /// Where.
        kind: &'static str,
        /// What is wrong.
        message: String,
    },
    /// The provider failed.
    #[error("search.{kind}: {message}")]
    Unavailable {
        /// Where.
        kind: &'static str,
        /// What happened.
        message: String,
    },
    /// The caller gave up.
    #[error("the search was cancelled")]
    Cancelled,
}

impl SearchError {
    /// Stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoProvider { .. } => "SEARCH_NO_PROVIDER",
            Self::Denied { .. } => "SEARCH_DENIED",
            Self::BadQuery { .. } => "SEARCH_BAD_QUERY",
            Self::Unavailable { .. } => "SEARCH_UNAVAILABLE",
            Self::Cancelled => "SEARCH_CANCELLED",
        }
    }
}

/// Finds things.
#[async_trait]
pub trait Search: fmt::Debug + Send + Sync {
    /// Answers a question.
    async fn search(&self, query: SearchQuery, cancel: &CancellationToken) -> Result<SearchAnswer, SearchError>;
}

/// Finds nothing anywhere: what stands where a run lists no search.
#[derive(Clone, Copy, Debug, Default)]
pub struct DenySearch;

#[async_trait]
impl Search for DenySearch {
    async fn search(&self, query: SearchQuery, _cancel: &CancellationToken) -> Result<SearchAnswer, SearchError> {
        let kind = query.kind.name();
        Err(SearchError::Denied { kind, message: "it is not listed here: list `search` under `drivers`".to_owned() })
    }
}
