//! The search of a config: the conformance suite's real arms, and what is each source's own.
//!
//! Invariant: knowledge bases and tables are files of a folder of the test; the web is a server of the test.

use std::sync::Arc;

use async_trait::async_trait;
use greenroom::config::{HostConfig, Variables, load_text};
use greenroom::drivers::search::ConfiguredSearch;
use greenroom::drivers::{EgressPolicy, SystemClock};
use greenroom_boundary::conformance::search::{SearchStage, TEXTS, all};
use greenroom_boundary::search::{Order, SearchAnswer, SearchError, SearchKind, SearchQuery, TimeRange, Where};
use greenroom_boundary::{CancellationToken, Egress, Search};
use serde_json::{Value, json};
use wiremock::matchers::{header, method, path, query_param};
use wiremock::{Mock, MockServer, ResponseTemplate};

fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn config(folder: &tempfile::TempDir, text: &str) -> HostConfig {
    load_text("scenario:test", text, folder.path(), &Variables::default()).unwrap()
}

fn driver(config: &HostConfig, allowed: &[&str]) -> Arc<dyn Search> {
    let egress: Arc<dyn Egress> = Arc::new(EgressPolicy::parse(allowed.iter().copied()).unwrap());
    Arc::new(ConfiguredSearch::new(&config.search, egress, Arc::new(SystemClock::new())).unwrap())
}

async fn ask(search: &dyn Search, query: SearchQuery) -> Result<SearchAnswer, SearchError> {
    search.search(query, &CancellationToken::new()).await
}

const KB: &str = "search: { kb: { texts: texts } }";
const DB: &str = "search: { db: { boats: { file: boats.jsonl, key: number } } }";
const BOATS: &str = "{\"number\": 1, \"name\": \"Ada\", \"seats\": 12, \"harbour\": \"North\"}\n\
                     {\"number\": 2, \"name\": \"Bea\", \"seats\": 40, \"harbour\": \"South\"}\n\n\
                     {\"number\": 3, \"name\": \"Cleo\", \"seats\": 30, \"harbour\": \"North\"}\n";

/// Texts as files, as rows of a table or behind a server.
struct Stage {
    kind: SearchKind,
    folder: tempfile::TempDir,
    server: MockServer,
}

impl Stage {
    async fn new(kind: SearchKind) -> Self {
        let texts: Vec<(String, String)> = TEXTS
            .iter()
            .map(|text| (format!("texts/{}.md", text.title), format!("# {}\n\n{}", text.title, text.content)))
            .collect();
        let rows: Vec<String> =
            TEXTS.iter().map(|text| json!({"title": text.title, "content": text.content}).to_string()).collect();
        let rows = rows.join("\n");
        let mut files: Vec<(&str, &str)> = texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        files.push(("rows.jsonl", &rows));
        let (folder, server) = (folder(&files), MockServer::start().await);
        for word in ["harbour", "ferry", "volcano"] {
            let found: Vec<Value> = TEXTS
                .iter()
                .filter(|text| text.content.contains(word))
                .map(|text| json!({"title": text.title, "content": text.content, "url": "https://example.org"}))
                .collect();
            let answer = ResponseTemplate::new(200).set_body_json(json!({"results": found}));
            Mock::given(path("/search")).and(query_param("q", word)).respond_with(answer).mount(&server).await;
        }
        Self { kind, folder, server }
    }

    fn config(&self, lost: bool) -> HostConfig {
        let place = if lost { "none" } else { "" };
        let url = self.server.uri();
        config(
            &self.folder,
            &format!(
                "search:\n  web: {{ url: '{url}/{place}search?q={{query}}&n={{limit}}' }}\n  kb: {{ texts: '{place}texts' }}\n  \
                 db: {{ rows: {{ file: '{place}rows.jsonl' }} }}\n"
            ),
        )
    }
}

#[async_trait]
impl SearchStage for Stage {
    fn kind(&self) -> SearchKind {
        self.kind
    }

    async fn knowing(&self) -> Arc<dyn Search> {
        driver(&self.config(false), &["127.0.0.1"])
    }

    async fn lost(&self) -> Arc<dyn Search> {
        driver(&self.config(true), &["127.0.0.1"])
    }
}

macro_rules! conforms {
    ($name:ident, $kind:expr) => {
        #[tokio::test(flavor = "multi_thread")]
        async fn $name() {
            all(|| tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(Stage::new($kind)))).await;
        }
    };
}

conforms!(knowledge_bases_conform, SearchKind::Kb);
conforms!(tables_conform, SearchKind::Db);
conforms!(the_web_conforms, SearchKind::Web);

#[tokio::test]
async fn passages_are_cut_at_headings_and_follow_their_files() {
    let text = "Before any heading.\n\n# Ferries\n\nThe ferry sails daily.\n\nIt carries parcels.\n\n## Fares\n\nA parcel costs two euros.\n";
    let folder = folder(&[("texts/deep/a.md", text), ("texts/b.txt", "Nothing of the kind."), ("texts/c.bin", "parcel")]);
    let search = driver(&config(&folder, KB), &[]);
    let found = ask(&*search, SearchQuery::new(SearchKind::Kb, "parcels")).await.unwrap();
    let titles: Vec<_> = found.hits.iter().map(|hit| hit.title.as_deref().unwrap()).collect();
    assert_eq!((titles.len(), found.total), (2, 2), "{found:?}");
    assert!(titles.contains(&"Ferries") && titles.contains(&"Fares"), "{titles:?}");
    assert!(found.hits.iter().all(|hit| hit.document_id.as_deref() == Some("deep/a.md")));
    assert_eq!(found.hits[0].collection.as_deref(), Some("texts"));
    let strict = SearchQuery { threshold: Some(0.99), ..SearchQuery::new(SearchKind::Kb, "parcels") };
    assert_eq!(ask(&*search, strict).await.unwrap().total, 0);
    std::fs::write(folder.path().join("texts/b.txt"), "A lost parcel, and more words.").unwrap();
    assert_eq!(ask(&*search, SearchQuery::new(SearchKind::Kb, "parcels")).await.unwrap().total, 3, "the file has changed");
}

#[tokio::test]
async fn tables_take_conditions_orders_and_columns() {
    let folder = folder(&[("boats.jsonl", BOATS)]);
    let search = driver(&config(&folder, DB), &[]);
    let names = async |query: SearchQuery| -> Vec<Value> {
        let found = ask(&*search, query).await.unwrap();
        found.hits.into_iter().map(|hit| hit.data.unwrap()["name"].clone()).collect()
    };
    let condition = |column: &str, op: &str, value: Value| Where { column: column.to_owned(), op: op.to_owned(), value };
    let every = || SearchQuery::new(SearchKind::Db, "");
    let large = SearchQuery {
        wheres: vec![condition("seats", ">=", json!(30))],
        orders: vec![Order { column: "seats".to_owned(), desc: true }],
        ..every()
    };
    assert_eq!(names(large).await, ["Bea", "Cleo"]);
    assert_eq!(names(SearchQuery { wheres: vec![condition("name", "like", json!("%e%"))], ..every() }).await, ["Bea", "Cleo"]);
    assert_eq!(names(SearchQuery { wheres: vec![condition("number", "in", json!([1, 3]))], ..every() }).await, ["Ada", "Cleo"]);
    assert_eq!(names(SearchQuery::new(SearchKind::Db, "south")).await, ["Bea"]);
    let one = ask(&*search, SearchQuery { select: vec!["name".to_owned()], limit: 1, ..every() }).await.unwrap();
    assert_eq!((one.hits[0].content.as_str(), one.total), ("name: Ada", 3));
    assert_eq!(one.hits[0].record_id, Some(json!(1)));
    let wrong = ask(&*search, SearchQuery { wheres: vec![condition("number", "~", json!(1))], ..every() }).await.unwrap_err();
    assert_eq!(wrong.code(), "SEARCH_BAD_QUERY");
    assert!(wrong.to_string().contains("use =, !=, <"), "{wrong}");
}

#[tokio::test]
async fn what_is_not_listed_is_told() {
    let folder = folder(&[("texts/a.md", "x"), ("boats.jsonl", BOATS)]);
    let search = driver(&config(&folder, KB), &[]);
    let code = async |query: SearchQuery| ask(&*search, query).await.unwrap_err().code();
    assert_eq!(code(SearchQuery::new(SearchKind::Web, "x")).await, "SEARCH_NO_PROVIDER");
    assert_eq!(code(SearchQuery::new(SearchKind::Db, "x")).await, "SEARCH_NO_PROVIDER");
    let other = SearchQuery { collections: vec!["other".to_owned()], ..SearchQuery::new(SearchKind::Kb, "x") };
    assert_eq!(code(other).await, "SEARCH_BAD_QUERY");
}

#[tokio::test]
async fn the_web_is_asked_as_the_config_says_and_only_where_egress_allows() {
    let (folder, server) = (folder(&[]), MockServer::start().await);
    let page =
        json!({"web": {"hits": [{"name": "Tides", "href": "https://example.org/t", "text": {"short": "High at six."}}]}});
    Mock::given(method("GET"))
        .and(path("/q"))
        .and(header("x-key", "k"))
        .and(query_param("text", "high & low (site:a.org OR site:b.org)"))
        .and(query_param("n", "3"))
        .and(query_param("age", "week"))
        .respond_with(ResponseTemplate::new(200).set_body_json(page))
        .mount(&server)
        .await;
    let text = format!(
        "search:\n  web:\n    url: '{}/q?text={{query}}&n={{limit}}&age={{time_range}}'\n    headers: {{ x-key: k }}\n    \
         results: /web/hits\n    title: /name\n    link: /href\n    content: /text/short\n",
        server.uri()
    );
    let config = config(&folder, &text);
    let query = SearchQuery {
        limit: 3,
        sites: vec!["a.org".to_owned(), "b.org".to_owned()],
        time_range: Some(TimeRange::Week),
        ..SearchQuery::new(SearchKind::Web, "high & low")
    };
    let found = ask(&*driver(&config, &["127.0.0.1"]), query.clone()).await.unwrap();
    let hit = &found.hits[0];
    assert_eq!((hit.title.as_deref(), hit.content.as_str()), (Some("Tides"), "High at six."));
    assert_eq!(hit.url.as_deref(), Some("https://example.org/t"));
    let denied = ask(&*driver(&config, &["example.org:443"]), query).await.unwrap_err();
    assert_eq!(denied.code(), "SEARCH_DENIED");
    assert_eq!(server.received_requests().await.unwrap().len(), 1, "egress is asked before anything is sent");
}
