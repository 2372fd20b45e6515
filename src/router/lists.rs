//! Lists: every page of every server, as an exchange like any other.
//!
//! Invariant: a list is whole or says that it is not; cursors are opaque and only absence ends a list. One server that is
//! dead or slow costs the others nothing. Deliberately a list that hooks look at is never kept: they see each one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use futures::future::join_all;
use greenroom_boundary::ServerName;
use greenroom_boundary::clock::{MonoNanos, timeout_at};
use greenroom_boundary::trace::EventKind;
use serde_json::{Value, json};

use super::permitted::{named, permitted};
use super::slots::{Instance, Slot};
use super::{CallContext, CallError, Output, Router, ServerRequest, tools};
use crate::hooks::Message;

/// Most pages read of one list, so that a cursor that never ends cannot hold a turn.
const MAX_PAGES: usize = 100;
/// Most items, and most bytes of pages as they came: what models and clients are shown must fit somewhere.
const MAX_ITEMS: usize = 10_000;
const MAX_BYTES: usize = 32 << 20;

/// A method that answers page by page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListMethod {
    /// `tools/list`.
    Tools,
    /// `prompts/list`.
    Prompts,
    /// `resources/list`.
    Resources,
    /// `resources/templates/list`.
    Templates,
}

impl ListMethod {
    /// The list method of that name.
    pub fn parse(method: &str) -> Option<Self> {
        [Self::Tools, Self::Prompts, Self::Resources, Self::Templates].into_iter().find(|list| list.method() == method)
    }

    /// Its name on the wire.
    pub fn method(self) -> &'static str {
        match self {
            Self::Tools => "tools/list",
            Self::Prompts => "prompts/list",
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
        }
    }

    /// The capability of a server that offers it.
    pub fn capability(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Prompts => "prompts",
            Self::Resources | Self::Templates => "resources",
        }
    }

    /// An answer of one page.
    pub fn page(self, items: Vec<Value>) -> Output {
        json!({ self.key(): items }).into()
    }

    /// Where the items are in an answer.
    fn key(self) -> &'static str {
        match self {
            Self::Templates => "resourceTemplates",
            other => other.capability(),
        }
    }

    /// What tells two items apart.
    fn identity(self) -> &'static str {
        match self {
            Self::Tools | Self::Prompts => "name",
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
        }
    }
}

/// What a server says before it is asked for a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// It has no such lists; it is not asked.
    Nothing,
    /// Its answer may be other each time.
    Fresh,
    /// Its answer holds as long as this number stays the same.
    Kept(u64),
}

/// The items read so far, and whether the list is whole.
struct Pages {
    items: Vec<Value>,
    whole: bool,
}

/// Items of a list, each name once.
#[derive(Default)]
struct Items {
    kept: Vec<Value>,
    /// Where each name is among them.
    seen: BTreeMap<String, usize>,
}

impl Items {
    /// Takes the items of a page; says what is wrong with them. Of two with one name the first stays; one without a name cannot be
    /// called.
    fn add(&mut self, list: ListMethod, page: &Value) -> Vec<(&'static str, Value)> {
        let (mut faults, mut again, mut nameless) = (Vec::new(), Vec::new(), 0_usize);
        for item in page.get(list.key()).and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = item.get(list.identity()).and_then(Value::as_str) else {
                nameless += 1;
                continue;
            };
            match self.seen.get(name) {
                None => {
                    self.seen.insert(name.to_owned(), self.kept.len());
                    self.kept.push(item.clone());
                }
                // What comes twice says nothing new.
                Some(at) if self.kept[*at] == *item => {}
                Some(_) => again.push(name.to_owned()),
            }
        }
        let method = list.method();
        if !again.is_empty() {
            faults.push(("listed_twice", json!({"method": method, "names": again})));
        }
        if nameless > 0 {
            faults.push(("listed_without_name", json!({"method": method, "items": nameless, "field": list.identity()})));
        }
        faults
    }
}

impl Router {
    /// The tools of a server as they are shown, overrides applied.
    pub async fn list_tools(&self, cx: &CallContext, server: &ServerName) -> Result<Vec<Value>, CallError> {
        self.list(cx, server, "tools/list").await
    }

    /// A whole list of a server (`tools/list`, `prompts/list`, `resources/list`, `resources/templates/list`).
    pub async fn list(&self, cx: &CallContext, server: &ServerName, method: &str) -> Result<Vec<Value>, CallError> {
        let Some(list) = ListMethod::parse(method) else {
            return Ok(Vec::new());
        };
        let slot = self.slot(server)?;
        let instance = slot.instance(&cx.root)?;
        let items = self.items(cx, server, (slot, &instance), list).await?;
        match list {
            ListMethod::Tools => {
                let shown = tools::shown(&slot.config, items).into_iter();
                let may = |upstream: &str, tool: &Value| permitted(cx, server, &[tool_name(tool), upstream]).is_ok();
                Ok(shown.filter(|(upstream, tool)| may(upstream, tool)).map(|(_, tool)| tool).collect())
            }
            _ => Ok(items.into_iter().filter(|item| permitted(cx, server, &[named(item)]).is_ok()).collect()),
        }
    }

    /// The same list of several servers, side by side; each server is asked once however often it is named.
    pub async fn list_each<'a>(
        &self,
        cx: &CallContext,
        servers: impl IntoIterator<Item = &'a ServerName>,
        method: &str,
    ) -> BTreeMap<ServerName, Result<Vec<Value>, CallError>> {
        let mut seen = BTreeSet::new();
        let distinct: Vec<&ServerName> = servers.into_iter().filter(|server| seen.insert(*server)).collect();
        let lists = join_all(distinct.iter().map(|server| self.list(cx, server, method))).await;
        distinct.into_iter().cloned().zip(lists).collect()
    }

    async fn items(
        &self,
        cx: &CallContext,
        name: &ServerName,
        (slot, instance): (&Slot, &Instance),
        list: ListMethod,
    ) -> Result<Vec<Value>, CallError> {
        let clock = &self.drivers().clock;
        let deadline = clock.now().after(self.policy().list_timeout);
        let offer = match timeout_at(clock.as_ref(), deadline, instance.server.offer(cx, list)).await {
            Ok(offer) => offer?,
            Err(_) => {
                let error = self.too_late(instance, list);
                instance.server.listed(Err(&error));
                return Err(error);
            }
        };
        let generation = match offer {
            Offer::Nothing => return Ok(Vec::new()),
            Offer::Kept(generation) if !self.is_hooked(name, list.method()) => Some(generation),
            Offer::Kept(_) | Offer::Fresh => None,
        };
        if let Some(kept) = generation.and_then(|generation| kept(instance, list, generation)) {
            return Ok(kept);
        }
        let pages = self.pages(cx, name, (slot, instance), list, deadline).await;
        match &pages {
            Ok(_) => instance.server.listed(Ok(())),
            Err(error @ CallError::Timeout { .. }) => instance.server.listed(Err(error)),
            Err(_) => {}
        }
        let pages = pages?;
        if let Some(generation) = generation.filter(|_| pages.whole) {
            let mut lists = instance.lists.lock().unwrap_or_else(PoisonError::into_inner);
            lists.insert(list.method().to_owned(), (generation, pages.items.clone()));
        }
        Ok(pages.items)
    }

    /// Every page of a list. A page that fails ends it: what came before is kept, and the trace says that it is not whole.
    async fn pages(
        &self,
        cx: &CallContext,
        name: &ServerName,
        (slot, instance): (&Slot, &Instance),
        list: ListMethod,
        deadline: MonoNanos,
    ) -> Result<Pages, CallError> {
        let method = list.method();
        let (mut items, mut bytes) = (Items::default(), 0);
        let mut cursors = BTreeSet::new();
        let mut params = json!({});
        for page in 0..MAX_PAGES {
            let result = match self.page(cx, name, (slot, instance), Message::request(method, params), deadline).await {
                Ok(output) => {
                    bytes += output.raw.as_ref().map_or(0, |raw| raw.get().len());
                    output.value
                }
                Err(error) if page > 0 => {
                    self.warn_of_list(cx, instance, "list_incomplete", json!({"method": method, "error": error.to_string()}));
                    return Ok(Pages { items: items.kept, whole: false });
                }
                Err(error) => return Err(error),
            };
            items.add(list, &result).into_iter().for_each(|(code, body)| self.warn_of_list(cx, instance, code, body));
            if items.kept.len() > MAX_ITEMS || bytes > MAX_BYTES {
                let body = json!({"method": method, "items": items.kept.len(), "bytes": bytes});
                items.kept.truncate(MAX_ITEMS);
                self.warn_of_list(cx, instance, "list_too_long", body);
                return Ok(Pages { items: items.kept, whole: true });
            }
            match result.get("nextCursor").filter(|next| !next.is_null()) {
                None => return Ok(Pages { items: items.kept, whole: true }),
                Some(next) if !cursors.insert(next.to_string()) => {
                    self.warn_of_list(cx, instance, "cursor_repeated", json!({"method": method, "cursor": next}));
                    return Ok(Pages { items: items.kept, whole: true });
                }
                Some(next) => params = json!({"cursor": next}),
            }
        }
        self.warn_of_list(cx, instance, "list_too_long", json!({"method": method, "pages": MAX_PAGES}));
        Ok(Pages { items: items.kept, whole: true })
    }

    async fn page(
        &self,
        cx: &CallContext,
        name: &ServerName,
        (slot, instance): (&Slot, &Instance),
        message: Message,
        deadline: MonoNanos,
    ) -> Result<Output, CallError> {
        if !slot.is_external() && !self.is_hooked(name, &message.method) {
            // Nothing leaves the host and nobody looks at it, so there is nothing to trace.
            let request = ServerRequest {
                method: message.method,
                params: message.params.into(),
                raw: None,
                limits: self.limits(cx, slot),
                sent: Box::new(|| {}),
                answered: None,
            };
            return instance.server.request(cx, request).await;
        }
        let mut cx = cx.clone();
        let left = deadline.since(self.drivers().clock.now());
        cx.timeout = Some(cx.timeout.map_or(left, |timeout| timeout.min(left)));
        self.exchange(&cx, name, message, None).await
    }

    fn too_late(&self, instance: &Instance, list: ListMethod) -> CallError {
        let limit_ms = u64::try_from(self.policy().list_timeout.as_millis()).unwrap_or(u64::MAX);
        CallError::Timeout { server: instance.boundary.clone(), method: list.method().to_owned(), limit_ms }
    }

    fn warn_of_list(&self, cx: &CallContext, instance: &Instance, code: &str, body: Value) {
        let event = EventKind::Warning { boundary: instance.boundary.clone(), method: code.to_owned(), body };
        self.drivers().tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    }
}

fn tool_name(tool: &Value) -> &str {
    tool.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn kept(instance: &Instance, list: ListMethod, generation: u64) -> Option<Vec<Value>> {
    let lists = instance.lists.lock().unwrap_or_else(PoisonError::into_inner);
    lists.get(list.method()).filter(|(made_at, _)| *made_at == generation).map(|(_, items)| items.clone())
}
