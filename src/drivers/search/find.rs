//! The search of a config: each kind asks what the config lists for it.
//!
//! Invariant: files are read on a thread that may wait, and once until one of them changes. Deliberately one index for all
//! collections and one for all tables: their scores can be compared.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use async_trait::async_trait;
use greenroom_boundary::search::{SearchAnswer, SearchError, SearchHit, SearchKind, SearchQuery};
use greenroom_boundary::{CancellationToken, Clock, Egress, Search};

use super::index::Index;
use super::web::{WebSearch, WebSetupError};
use super::{tables, texts};
use crate::config::SearchConfig;

/// Searches what a config lists.
#[derive(Debug)]
pub struct ConfiguredSearch {
    config: SearchConfig,
    web: Option<WebSearch>,
    clock: Arc<dyn Clock>,
    indexed: Arc<[Mutex<Option<Arc<Indexed>>>; 2]>,
}

/// What a file was when it was read.
type Stamp = (PathBuf, u64, Option<SystemTime>);

struct Indexed {
    stamps: Vec<Stamp>,
    hits: Vec<SearchHit>,
    index: Index,
}

impl std::fmt::Debug for Indexed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Indexed({} hits)", self.hits.len())
    }
}

impl ConfiguredSearch {
    /// A search of what `config` lists. The web is reached only where `egress` allows it.
    pub fn new(config: &SearchConfig, egress: Arc<dyn Egress>, clock: Arc<dyn Clock>) -> Result<Self, WebSetupError> {
        let web = config.web.as_ref().map(|web| WebSearch::new(web, egress, clock.clone())).transpose()?;
        Ok(Self { config: config.clone(), web, clock, indexed: Arc::default() })
    }

    fn check(&self, query: &SearchQuery) -> Result<(), SearchError> {
        let none = |key: &str| {
            let message = format!("there is no {key} to search: list one under `search.{key}` in the config");
            Err(SearchError::NoProvider { message })
        };
        let unknown = |what: &str, name: &str, known: Vec<&String>| {
            let known: Vec<&str> = known.into_iter().map(String::as_str).collect();
            let message = format!("there is no {what} {name:?}; there are {}", known.join(", "));
            Err(SearchError::BadQuery { kind: query.kind.name(), message })
        };
        match query.kind {
            SearchKind::Web if self.web.is_none() => none("web"),
            SearchKind::Kb if self.config.kb.is_empty() => none("kb"),
            SearchKind::Db if self.config.db.is_empty() => none("db"),
            SearchKind::Kb => match query.collections.iter().find(|name| !self.config.kb.contains_key(*name)) {
                Some(name) => unknown("collection", name, self.config.kb.keys().collect()),
                None => Ok(()),
            },
            SearchKind::Db => match query.models.iter().find(|name| !self.config.db.contains_key(*name)) {
                Some(name) => unknown("model", name, self.config.db.keys().collect()),
                None => Ok(()),
            },
            SearchKind::Web => Ok(()),
        }
    }
}

#[async_trait]
impl Search for ConfiguredSearch {
    async fn search(&self, query: SearchQuery, cancel: &CancellationToken) -> Result<SearchAnswer, SearchError> {
        if cancel.is_cancelled() {
            return Err(SearchError::Cancelled);
        }
        self.check(&query)?;
        if let (SearchKind::Web, Some(web)) = (query.kind, &self.web) {
            return web.search(&query, cancel).await;
        }
        let _hold = self.clock.hold();
        let (config, indexed, kind) = (self.config.clone(), self.indexed.clone(), query.kind.name());
        let work = tokio::task::spawn_blocking(move || look(&config, &indexed, &query));
        tokio::select! {
            biased;
            () = cancel.cancelled() => Err(SearchError::Cancelled),
            found = work => found.unwrap_or_else(|error| Err(SearchError::Unavailable { kind, message: error.to_string() })),
        }
    }
}

fn look(
    config: &SearchConfig,
    indexed: &[Mutex<Option<Arc<Indexed>>>; 2],
    query: &SearchQuery,
) -> Result<SearchAnswer, SearchError> {
    let kind = query.kind.name();
    let unavailable = |error: io::Error| SearchError::Unavailable { kind, message: error.to_string() };
    let slot = &indexed[usize::from(query.kind == SearchKind::Db)];
    let found = current(config, slot, query.kind).map_err(unavailable)?;
    let named = |hit: &SearchHit| match query.kind {
        SearchKind::Kb => {
            query.collections.is_empty() || hit.collection.as_ref().is_some_and(|name| query.collections.contains(name))
        }
        _ => query.models.is_empty() || hit.model.as_ref().is_some_and(|name| query.models.contains(name)),
    };
    let mut hits = Vec::new();
    for (at, score) in places(&found, query) {
        let hit = &found.hits[at];
        let fits = query.threshold.is_none_or(|least| score.is_none_or(|score| score >= least));
        let holds = tables::holds(hit, &query.wheres).map_err(|message| SearchError::BadQuery { kind, message })?;
        if named(hit) && fits && holds {
            hits.push(SearchHit { score, ..hit.clone() });
        }
    }
    tables::order(&mut hits, &query.orders);
    let total = hits.len() as u64;
    hits.truncate(query.limit);
    for hit in &mut hits {
        tables::select(hit, &query.select);
    }
    Ok(SearchAnswer { hits, total })
}

/// What fits the question. No question at all fits every row of a table.
fn places(found: &Indexed, query: &SearchQuery) -> Vec<(usize, Option<f64>)> {
    if query.kind == SearchKind::Db && query.query.trim().is_empty() {
        return (0..found.hits.len()).map(|at| (at, None)).collect();
    }
    found.index.search(&query.query).into_iter().map(|hit| (hit.at, Some(hit.score))).collect()
}

/// The index as the files are now.
fn current(config: &SearchConfig, slot: &Mutex<Option<Arc<Indexed>>>, kind: SearchKind) -> io::Result<Arc<Indexed>> {
    let stamps = stamps(config, kind)?;
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(indexed) = slot.as_ref().filter(|indexed| indexed.stamps == stamps) {
        return Ok(indexed.clone());
    }
    let hits = read(config, kind)?;
    let texts: Vec<String> =
        hits.iter().map(|hit| format!("{}\n{}", hit.title.as_deref().unwrap_or_default(), hit.content)).collect();
    let indexed = Arc::new(Indexed { stamps, index: Index::of(&texts), hits });
    *slot = Some(indexed.clone());
    Ok(indexed)
}

fn stamps(config: &SearchConfig, kind: SearchKind) -> io::Result<Vec<Stamp>> {
    let mut files = Vec::new();
    if kind == SearchKind::Kb {
        for folder in config.kb.values() {
            files.extend(texts::files(folder).map_err(|error| at(folder, &error))?);
        }
    } else {
        files.extend(config.db.values().map(|(file, _)| file.clone()));
    }
    let stamp = |file: PathBuf| {
        let metadata = std::fs::metadata(&file).map_err(|error| at(&file, &error))?;
        Ok((file, metadata.len(), metadata.modified().ok()))
    };
    files.into_iter().map(stamp).collect()
}

fn read(config: &SearchConfig, kind: SearchKind) -> io::Result<Vec<SearchHit>> {
    let mut hits = Vec::new();
    if kind == SearchKind::Kb {
        for (name, folder) in &config.kb {
            for file in texts::files(folder).map_err(|error| at(folder, &error))? {
                hits.extend(texts::passages(name, folder, &file).map_err(|error| at(&file, &error))?);
            }
        }
    } else {
        for (name, (file, key)) in &config.db {
            hits.extend(tables::rows(name, file, key).map_err(|error| at(file, &error))?);
        }
    }
    Ok(hits)
}

fn at(path: &std::path::Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{} cannot be searched: {error}", path.display()))
}
