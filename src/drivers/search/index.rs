//! Full-text ranking: BM25 over texts in memory.
//!
//! Invariant: hits of equal score stand in the order of the texts. Deliberately English stemming for every language: words that
//! it does not know stay as they are.

use bm25::{DefaultTokenizer, Embedder, EmbedderBuilder, Language, Scorer};

/// A text that can be found, by its place in a list.
pub(super) struct Index {
    embedder: Embedder,
    scorer: Scorer<usize>,
}

/// A place in the list of texts, and how well it fits, from 0 to 1.
pub(super) struct Hit {
    pub(super) at: usize,
    pub(super) score: f64,
}

impl Index {
    pub(super) fn of(texts: &[String]) -> Self {
        let corpus: Vec<&str> = texts.iter().map(String::as_str).collect();
        // Words such as "no" and "not" are kept: in short texts they are what is asked for.
        let tokenizer = DefaultTokenizer::builder()
            .language_mode(Language::English)
            .normalization(true)
            .stemming(true)
            .stopwords(false)
            .build();
        let embedder = EmbedderBuilder::with_tokenizer_and_fit_to_corpus(tokenizer, &corpus).build();
        let mut scorer = Scorer::new();
        for (at, text) in corpus.iter().enumerate() {
            scorer.upsert(&at, embedder.embed(text));
        }
        Self { embedder, scorer }
    }

    /// What fits, best first.
    pub(super) fn search(&self, query: &str) -> Vec<Hit> {
        let mut hits: Vec<Hit> = self
            .scorer
            .matches(&self.embedder.embed(query))
            .into_iter()
            .filter(|found| found.score > 0.0)
            .map(|found| Hit { at: found.id, score: bounded(f64::from(found.score)) })
            .collect();
        hits.sort_by(|one, other| other.score.total_cmp(&one.score).then(one.at.cmp(&other.at)));
        hits
    }
}

/// BM25 has no upper end; this keeps the order, and a threshold has a meaning. Four digits, so that it reads well.
fn bounded(score: f64) -> f64 {
    (score / (score + 1.0) * 1e4).round() / 1e4
}
