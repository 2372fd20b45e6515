//! `search`: where `ctx.search` finds things.
//!
//! Invariant: paths are relative to the config; what is not listed is not searched. Deliberately no reading of what is to be
//! found.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::load::ConfigError;
use super::resolve::Resolver;

/// Where `ctx.search` finds things.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct SearchSettings {
    /// A provider for the web; without it `ctx.search.Web` says that there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub web: Option<WebSettings>,
    /// Knowledge bases: each a folder of texts (`.md`, `.txt`), relative to the config.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kb: BTreeMap<String, String>,
    /// Tables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub db: BTreeMap<String, TableSettings>,
}

/// A provider for the web: an address that answers a GET with JSON.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct WebSettings {
    /// The address, with `{query}` and, if it takes them, `{limit}` and `{time_range}`.
    pub url: String,
    /// Headers for it.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Where the list of results is in the answer: a JSON pointer (default `/results`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<String>,
    /// Where the title is in a result (default `/title`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where the address is in a result (default `/url`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Where the text is in a result (default `/content`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
}

/// A table: a file of rows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
pub struct TableSettings {
    /// The file, relative to the config: `.json` holds an array of objects, any other one object a line.
    pub file: String,
    /// The column that names a row (default `id`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// Where `ctx.search` finds things, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SearchConfig {
    /// A provider for the web.
    pub web: Option<WebConfig>,
    /// Knowledge bases: folders of texts.
    pub kb: BTreeMap<String, PathBuf>,
    /// Tables: files of rows, and the column that names a row.
    pub db: BTreeMap<String, (PathBuf, String)>,
}

/// A provider for the web, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebConfig {
    /// The address, with its placeholders.
    pub url: String,
    /// Headers for it.
    pub headers: BTreeMap<String, String>,
    /// Where the list of results is in the answer.
    pub results: String,
    /// Where the title is in a result.
    pub title: String,
    /// Where the address is in a result.
    pub link: String,
    /// Where the text is in a result.
    pub content: String,
}

impl Resolver<'_> {
    /// `search`.
    pub(super) fn search(&mut self, settings: &SearchSettings) -> Result<SearchConfig, ConfigError> {
        let web = settings.web.as_ref().map(|web| self.web_search(web)).transpose()?;
        let path = |at: &str, text: &str| {
            let text = self.variables.expand(text).map_err(|error| self.invalid(at, error.to_string()))?;
            if text.is_empty() {
                return Err(self.invalid(at, "a path must be given"));
            }
            Ok(self.base.join(text))
        };
        let mut config = SearchConfig { web, ..SearchConfig::default() };
        for (name, folder) in &settings.kb {
            config.kb.insert(name.clone(), path(&format!("search.kb.{name}"), folder)?);
        }
        for (name, table) in &settings.db {
            let file = path(&format!("search.db.{name}.file"), &table.file)?;
            config.db.insert(name.clone(), (file, table.key.clone().unwrap_or_else(|| "id".to_owned())));
        }
        Ok(config)
    }

    fn web_search(&mut self, web: &WebSettings) -> Result<WebConfig, ConfigError> {
        let url = self.variables.expand(&web.url).map_err(|error| self.invalid("search.web.url", error.to_string()))?;
        if !url.contains("{query}") {
            return Err(self.invalid("search.web.url", "it must say where the question goes: write `{query}` there"));
        }
        let mut headers = BTreeMap::new();
        for (name, value) in &web.headers {
            let at = format!("search.web.headers.{name}");
            let value = self.variables.expand(value).map_err(|error| self.invalid(&at, error.to_string()))?;
            self.secrets.insert(format!("search/{name}"), value.clone());
            headers.insert(name.clone(), value);
        }
        let pointer = |key: &str, given: Option<&String>, default: &str| match given {
            Some(text) if !text.is_empty() && !text.starts_with('/') => {
                Err(self.invalid(&format!("search.web.{key}"), "a JSON pointer starts with `/`"))
            }
            given => Ok(given.map_or(default, String::as_str).to_owned()),
        };
        Ok(WebConfig {
            results: pointer("results", web.results.as_ref(), "/results")?,
            title: pointer("title", web.title.as_ref(), "/title")?,
            link: pointer("link", web.link.as_ref(), "/url")?,
            content: pointer("content", web.content.as_ref(), "/content")?,
            url,
            headers,
        })
    }
}
