//! What any search must do.
//!
//! Invariant: the suite asks for words that stand in one text alone or in none. Deliberately nothing about how texts are
//! ranked against each other: that is each provider's own.

use std::sync::Arc;

use async_trait::async_trait;

use crate::search::{SearchError, SearchKind, SearchQuery};
use crate::{CancellationToken, Search};

/// A text that can be found.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Its title.
    pub title: &'static str,
    /// What it says.
    pub content: &'static str,
}

/// The texts of the suite. `harbour` stands in the first alone, `ferry` in the first two, `volcano` in none.
pub const TEXTS: [Text; 3] = [
    Text { title: "Timetable", content: "The ferry leaves the harbour at noon." },
    Text { title: "Tickets", content: "A ferry ticket costs four euros." },
    Text { title: "Rooms", content: "The inn has nine rooms." },
];

/// A provider with its data.
#[async_trait]
pub trait SearchStage: Send + Sync {
    /// Where it searches.
    fn kind(&self) -> SearchKind;

    /// A provider that knows [`TEXTS`].
    async fn knowing(&self) -> Arc<dyn Search>;

    /// A provider that cannot answer.
    async fn lost(&self) -> Arc<dyn Search>;
}

/// Runs the whole suite; `fresh` makes a stage.
pub async fn all<S: SearchStage>(fresh: impl Fn() -> S) {
    what_fits_is_found(&fresh()).await;
    the_limit_holds(&fresh()).await;
    nothing_found_is_no_error(&fresh()).await;
    a_provider_that_is_lost_says_so(&fresh()).await;
    a_cancelled_search_ends(&fresh()).await;
}

async fn titles(stage: &impl SearchStage, query: &str, limit: usize) -> Vec<String> {
    let query = SearchQuery { limit, ..SearchQuery::new(stage.kind(), query) };
    let found = stage.knowing().await.search(query, &CancellationToken::new()).await.expect("an answer");
    assert!(found.total >= found.hits.len() as u64, "{found:?}");
    assert!(found.hits.iter().all(|hit| hit.score.is_none_or(|score| (0.0..=1.0).contains(&score))), "{found:?}");
    found.hits.into_iter().filter_map(|hit| hit.title).collect()
}

/// The text with the word is there, and it says what it says.
pub async fn what_fits_is_found(stage: &impl SearchStage) {
    let query = SearchQuery::new(stage.kind(), "harbour");
    let found = stage.knowing().await.search(query, &CancellationToken::new()).await.expect("an answer");
    let [hit] = found.hits.as_slice() else { panic!("one hit, not {found:?}") };
    assert_eq!((hit.title.as_deref(), found.total), (Some(TEXTS[0].title), 1));
    assert!(hit.content.contains(TEXTS[0].content), "{hit:?}");
}

/// No more hits than asked for; the same ones each time.
pub async fn the_limit_holds(stage: &impl SearchStage) {
    let both = titles(stage, "ferry", 10).await;
    assert_eq!(both.len(), 2);
    assert_eq!(titles(stage, "ferry", 1).await, both[..1]);
    assert_eq!(titles(stage, "ferry", 10).await, both, "the same question, the same answer");
}

/// An answer without hits.
pub async fn nothing_found_is_no_error(stage: &impl SearchStage) {
    assert_eq!(titles(stage, "volcano", 10).await, Vec::<String>::new());
}

/// A failure is an error, never an empty answer.
pub async fn a_provider_that_is_lost_says_so(stage: &impl SearchStage) {
    let query = SearchQuery::new(stage.kind(), "harbour");
    let error = stage.lost().await.search(query, &CancellationToken::new()).await.expect_err("an error");
    assert_eq!(error.code(), "SEARCH_UNAVAILABLE", "{error}");
    assert!(error.to_string().contains(stage.kind().name()), "{error}");
}

/// Nobody waits for a search that was given up.
pub async fn a_cancelled_search_ends(stage: &impl SearchStage) {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = stage.knowing().await.search(SearchQuery::new(stage.kind(), "harbour"), &cancel).await;
    assert_eq!(result, Err(SearchError::Cancelled));
}
