//! Resources of several servers as one list: which server a client means by an address.
//!
//! Invariant: a server that lists an address goes before one whose template fits it, and that before all others; what the
//! owner says is what the client hears. Deliberately no rewriting of addresses.

use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{RawJson, ServerName};
use greenroom_wire::RpcError;
use serde_json::{Value, json};

use super::handler::{Front, encode};
use crate::router::{CallContext, CallError};
use crate::sessions::Owners;

/// The list of resources.
const RESOURCES: &str = "resources/list";

impl Front {
    pub(super) async fn list_resources(&self, key: &str) -> Result<RawJson, RpcError> {
        let cx = self.context();
        let mut items = Vec::new();
        let servers = self.resource_servers();
        let mut lists = self.core.router.list_each(&cx, &servers, &self.call.method).await;
        for server in &servers {
            match lists.remove(server) {
                None => {}
                Some(Ok(found)) => items.extend(self.own(&cx, server, found)),
                Some(Err(error)) => {
                    let reason = self.core.drivers.credentials.mask(&error.to_string());
                    tracing::warn!(server = %server, code = error.code(), "server left out of the list: {reason}");
                }
            }
        }
        encode(&json!({key: items}))
    }

    /// The resources that no other server has been shown to have; the others are warned of.
    fn own(&self, cx: &CallContext, server: &ServerName, found: Vec<Value>) -> Vec<Value> {
        let (list, key) = match self.call.method.as_ref() {
            RESOURCES => (RESOURCES, "uri"),
            _ => return found,
        };
        let (shown, mut owners) = (&cx.root.shown, Owners::new());
        let known = shown.owners(&self.core, list);
        let mut is_own = |item: &Value| {
            let Some(uri) = item.get(key).and_then(Value::as_str) else { return true };
            let owner = known.get(uri).map(|(owner, _)| owner).filter(|owner| *owner != server);
            if let Some(owner) = owner {
                let body = json!({"uri": uri, "takenBy": owner});
                let event = EventKind::Warning { boundary: format!("mcp.{server}"), method: "uri_taken".to_owned(), body };
                self.core.drivers.tracer.emit(&cx.scope, None, event);
                return false;
            }
            owners.insert(uri.to_owned(), (server.clone(), uri.to_owned()));
            true
        };
        let items = found.into_iter().filter(|item| is_own(item)).collect();
        shown.note(&self.core, list, owners);
        items
    }

    pub(super) async fn read_resource(&self) -> Result<RawJson, RpcError> {
        let uri = self.uri()?;
        let cx = self.context();
        let owners = self.owners(&cx, uri).await?;
        let is_owned = !owners.is_empty();
        let asked = if is_owned { owners } else { self.resource_servers() };
        let mut failure: Option<CallError> = None;
        for server in asked {
            match self.core.router.read_resource(&cx, &server, self.call.params.clone(), self.call.raw.clone()).await {
                Ok(output) => return output.raw.map_or_else(|| encode(&output.value), Ok),
                Err(error) => {
                    let is_news = failure.as_ref().is_none_or(|known| is_unknown(known) && !is_unknown(&error));
                    if is_news {
                        failure = Some(error);
                    }
                }
            }
        }
        Err(match failure {
            Some(error) if is_owned || !is_unknown(&error) => self.rpc(&error),
            _ => unknown(uri),
        })
    }

    /// Subscribes to a resource, or no longer.
    pub(super) async fn subscribe(&self, wanted: bool) -> Result<RawJson, RpcError> {
        let uri = self.uri()?;
        let cx = self.context();
        let owners = self.owners(&cx, uri).await?;
        let only = self.resource_servers();
        let server = match (owners.into_iter().next(), only.as_slice()) {
            (Some(owner), _) => owner,
            (None, [only]) => only.clone(),
            _ => return Err(unknown(uri)),
        };
        // The notice may come before the answer, so the wish is noted first.
        if wanted {
            self.call.root.subscribe(server.clone(), uri.to_owned());
        } else {
            self.call.root.unsubscribe(&server, uri);
        }
        let asked =
            self.core.router.request(&cx, &server, &self.call.method, self.call.params.clone(), self.call.raw.clone()).await;
        match asked {
            Ok(output) => output.raw.map_or_else(|| encode(&output.value), Ok),
            Err(error) => {
                self.call.root.unsubscribe(&server, uri);
                Err(self.rpc(&error))
            }
        }
    }

    fn uri(&self) -> Result<&str, RpcError> {
        self.call.params["uri"].as_str().ok_or_else(|| RpcError::invalid_params("`uri` is missing or no string"))
    }

    /// The servers that have an address: the one that lists it, else those with a template that fits.
    pub(super) async fn owners(&self, cx: &CallContext, uri: &str) -> Result<Vec<ServerName>, RpcError> {
        let shown = &cx.root.shown;
        if let Some((owner, _)) = shown.owner(&self.core, RESOURCES, uri) {
            return Ok(vec![owner]);
        }
        let servers = self.resource_servers();
        let lists = self.core.router.list_each(cx, &servers, RESOURCES).await;
        let mut before: Option<&CallError> = None;
        for server in &servers {
            let listed = match lists.get(server) {
                Some(Ok(listed)) => listed,
                Some(Err(error)) => {
                    before.get_or_insert(error);
                    continue;
                }
                None => continue,
            };
            if listed.iter().any(|item| item.get("uri").and_then(Value::as_str) == Some(uri)) {
                // A server before this one may have it, too: better none than the wrong one.
                if let Some(error) = before {
                    return Err(self.rpc(error));
                }
                shown.note(&self.core, RESOURCES, [(uri.to_owned(), (server.clone(), uri.to_owned()))]);
                return Ok(vec![server.clone()]);
            }
        }
        let mut owners = Vec::new();
        let lists = self.core.router.list_each(cx, &servers, "resources/templates/list").await;
        for server in servers {
            let Some(Ok(listed)) = lists.get(&server) else { continue };
            let mut templates = listed.iter().filter_map(|item| item.get("uriTemplate")?.as_str());
            if templates.any(|template| template == uri || fits(template, uri)) {
                owners.push(server);
            }
        }
        Ok(owners)
    }
}

/// Whether a server has said that it does not know the address.
fn is_unknown(error: &CallError) -> bool {
    matches!(error, CallError::Rpc { error, .. } if
        [RpcError::RESOURCE_NOT_FOUND, RpcError::INVALID_PARAMS, RpcError::METHOD_NOT_FOUND].contains(&error.code))
}

fn unknown(uri: &str) -> RpcError {
    RpcError::new(RpcError::RESOURCE_NOT_FOUND, format!("no published server has the resource {uri}"))
}

/// Whether an address can come from a template (RFC 6570): a plain `{name}` stands for text without `/`, `{+name}` and the
/// other forms for any text.
fn fits(template: &str, uri: &str) -> bool {
    let mut pattern = String::from("(?s)^");
    let mut rest = template;
    while let Some((literal, expression)) = rest.split_once('{') {
        let Some((expression, after)) = expression.split_once('}') else { return false };
        pattern.push_str(&regex::escape(literal));
        let is_plain = expression.starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '%');
        pattern.push_str(if is_plain { "[^/]*" } else { ".*" });
        rest = after;
    }
    pattern.push_str(&regex::escape(rest));
    pattern.push('$');
    // A template too large to be compiled fits nothing.
    regex::Regex::new(&pattern).is_ok_and(|pattern| pattern.is_match(uri))
}

#[cfg(test)]
mod tests {
    use test_case::test_case;

    use super::fits;

    #[test_case("file:///{name}", "file:///a", true; "plain")]
    #[test_case("file:///{name}", "file:///a/b", false; "plain stops at a slash")]
    #[test_case("file:///{+path}", "file:///a/b", true; "reserved does not")]
    #[test_case("db://{table}/{id}", "db://users/7", true; "two")]
    #[test_case("db://{table}/{id}", "db://users", false; "one is missing")]
    #[test_case("db://x{?q,r}", "db://x?q=1&r=2", true; "query")]
    #[test_case("db://x", "db://x", true; "no expression")]
    #[test_case("db://{a", "db://b", false; "broken")]
    #[test_case("x:{+a}{+b}{+c}{+d}{+e}{+f}{+g}{+h}{+i}Z", &format!("x:{}", "a".repeat(80)), false; "many")]
    fn templates_fit(template: &str, uri: &str, expected: bool) {
        assert_eq!(fits(template, uri), expected);
    }
}
