//! Providers as a config names them.

use std::collections::BTreeMap;

use greenroom::drivers::llm::{LlmProviders, ProviderSettings};
use greenroom_boundary::conformance::llm::request;
use greenroom_boundary::{CancellationToken, Llm};
use test_case::test_case;

use crate::llm::world;

fn settings(dialect: &str, base_url: &str) -> ProviderSettings {
    ProviderSettings {
        dialect: dialect.to_owned(),
        api_key: Some("sk-very-secret".to_owned()),
        base_url: Some(base_url.to_owned()),
        headers: BTreeMap::new(),
    }
}

#[test_case("OpenAIChatCompletions", "ftp://api.example.com", "LLM_BASE_URL"; "not http")]
#[test_case("OpenAIChatCompletions", "api.example.com/v1", "LLM_BASE_URL"; "no scheme")]
#[test_case("OpenAIChatCompletions", "https://user:sk-very-secret@api.example.com", "LLM_BASE_URL"; "key in the address")]
#[test_case("AnthropicMessages", "https://api.example.com/v1", "LLM_DIALECT"; "known dialect")]
#[test_case("OpenAI", "https://api.example.com/v1", "LLM_DIALECT"; "unknown dialect")]
#[test_case("", "https://api.example.com/v1", "LLM_DIALECT"; "no dialect")]
fn unusable_settings_are_refused(dialect: &str, base_url: &str, code: &str) {
    let providers = BTreeMap::from([("main".to_owned(), settings(dialect, base_url))]);
    let error = LlmProviders::new(&providers, &world()).unwrap_err();
    assert_eq!(error.code(), code);
    assert!(error.to_string().starts_with("llmProviders.main"), "{error}");
}

#[test]
fn a_key_that_http_cannot_carry_is_refused_without_being_shown() {
    let bad = ProviderSettings {
        api_key: Some("sk-very-secret\n".to_owned()),
        ..settings("OpenAIChatCompletions", "https://api.example.com/v1")
    };
    let error = LlmProviders::new(&BTreeMap::from([("main".to_owned(), bad)]), &world()).unwrap_err();
    assert_eq!(error.code(), "LLM_HEADER");
    assert!(!error.to_string().contains("secret"));
}

#[tokio::test]
async fn a_connector_that_no_provider_is_called_by_is_unavailable() {
    let good = settings("OpenAIChatCompletions", "https://api.example.com/v1");
    let providers = LlmProviders::new(&BTreeMap::from([("other".to_owned(), good)]), &world()).unwrap();
    let error = providers.stream(request(), &CancellationToken::new()).await.err().unwrap();
    assert_eq!(error.code(), "LLM_UNAVAILABLE");
    assert_eq!(error.to_string(), "no LLM provider is called `main` (there are: other); add it under `llmProviders`");
    assert!(!format!("{providers:?}").contains("secret"));
}
