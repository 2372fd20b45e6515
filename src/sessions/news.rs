//! What a server tells, on its way to the client of the session.
//!
//! Invariant: the client hears what concerns it, once, in order, and past the hooks of that server: log messages of the
//! level that it asked for, changes of the resources that it subscribed to, changes of lists that it can see. Deliberately
//! nothing is kept for a client that has not introduced itself.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use greenroom_boundary::clock::sleep;
use greenroom_boundary::trace::EventKind;
use greenroom_boundary::{RawJson, Scope, ServerName};
use greenroom_wire::has_doubled_keys;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use super::{LogLevel, RootSession};
use crate::front::publishes;
use crate::hooks::Message;
use crate::host::HostCore;
use crate::router::{RawParams, changed, readable};

/// How long changes of a list are gathered before the client is told of them.
const BURST: Duration = Duration::from_millis(50);

/// How many notifications of a server may wait for a slow hook.
const MOST_WAITING: usize = 1024;

/// The lists that a client can be told of.
const LISTS: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];

type Item = (Arc<HostCore>, String, Option<RawJson>);

/// The news of one connection to a server.
pub(crate) struct News {
    server: ServerName,
    root: Arc<RootSession>,
    /// What waits for hooks, and how much of it.
    queue: OnceLock<UnboundedSender<Item>>,
    waiting: Arc<AtomicUsize>,
    /// What was dropped because too much waited, and has not been told of.
    dropped: Arc<AtomicUsize>,
}

impl News {
    /// The news of `server` to the client of `root`.
    pub(crate) fn new(server: ServerName, root: Arc<RootSession>) -> Self {
        Self { server, root, queue: OnceLock::new(), waiting: Arc::default(), dropped: Arc::default() }
    }

    /// Passes a notification on, at once if no hook looks at it. Does not block.
    pub(crate) fn told(&self, core: &Arc<HostCore>, method: &str, params: Option<&RawValue>) {
        if self.root.client().is_none() {
            return;
        }
        if !self.concerns(core, method, params) {
            return;
        }
        if self.waiting.load(Ordering::SeqCst) == 0 && !core.router.looks_at(&self.server, method) {
            return deliver(core, &self.server, &self.root, method, params);
        }
        if self.waiting.load(Ordering::SeqCst) >= MOST_WAITING {
            self.dropped.fetch_add(1, Ordering::SeqCst);
            return;
        }
        self.waiting.fetch_add(1, Ordering::SeqCst);
        let queue = self.queue.get_or_init(|| self.hooked());
        let _ = queue.send((core.clone(), method.to_owned(), params.map(RawValue::to_owned)));
    }

    /// Whether the client wants to hear of it.
    fn concerns(&self, core: &HostCore, method: &str, params: Option<&RawValue>) -> bool {
        if LISTS.contains(&method) {
            return publishes(core, &self.server, method);
        }
        // Field by field: a number that nobody can hold must not hide the others.
        let field = |name: &str| {
            let fields = RawParams::read(&params?.to_owned())?;
            fields
                .into_fields()
                .filter(|(key, _)| key == name)
                .last()
                .and_then(|(_, raw)| readable(&raw))
                .map(|(value, _)| value)
        };
        match method {
            "notifications/message" => match (self.root.log_level(), field("level")) {
                (Some(least), Some(level)) => serde_json::from_value::<LogLevel>(level).map_or(true, |level| level >= least),
                _ => true,
            },
            "notifications/resources/updated" => {
                field("uri").and_then(|uri| Some(self.root.is_subscribed(&self.server, uri.as_str()?))).unwrap_or_default()
            }
            // These speak of requests on the server's own connection.
            "notifications/progress" | "notifications/cancelled" | "notifications/initialized" => false,
            method => method.starts_with("notifications/"),
        }
    }

    /// A task that takes what waits past the hooks, one after the other.
    fn hooked(&self) -> UnboundedSender<Item> {
        let (queue, mut items) = unbounded_channel::<Item>();
        let (server, root, waiting) = (self.server.clone(), self.root.clone(), self.waiting.clone());
        let dropped = self.dropped.clone();
        tokio::spawn(async move {
            while let Some((core, method, params)) = items.recv().await {
                tokio::select! {
                    biased;
                    () = root.ended.cancelled() => break,
                    () = past_hooks(&core, &server, &root, &method, params.as_deref()) => {}
                }
                if waiting.fetch_sub(1, Ordering::SeqCst) == 1 {
                    tell_dropped(&core, &server, dropped.swap(0, Ordering::SeqCst));
                }
            }
        });
        queue
    }
}

/// Says how much was dropped, now that the hooks have caught up.
fn tell_dropped(core: &HostCore, server: &ServerName, dropped: usize) {
    if dropped == 0 {
        return;
    }
    let (boundary, body) = (format!("mcp.{server}"), json!({"dropped": dropped, "limit": MOST_WAITING}));
    let event = EventKind::Warning { boundary, method: "notifications_flooded".to_owned(), body };
    core.drivers.tracer.emit(&Scope::new(server.as_str()), None, event);
}

async fn past_hooks(
    core: &Arc<HostCore>,
    server: &ServerName,
    root: &Arc<RootSession>,
    method: &str,
    params: Option<&RawValue>,
) {
    let withheld = |code: &str, message: &str| {
        let body = json!({"notification": method, "code": code, "message": message});
        let event = EventKind::Warning { boundary: format!("mcp.{server}"), method: "notification_withheld".to_owned(), body };
        core.drivers.tracer.emit(&Scope::new(server.as_str()), None, event);
    };
    let value = match params.map(|raw| readable(&raw.to_owned())) {
        None => Value::Null,
        Some(Some((value, _))) => value,
        Some(None) => return withheld("CALL_UNREADABLE", "its parameters cannot be read by hooks"),
    };
    match core.router.news(root, server, Message::request(method.to_owned(), value.clone())).await {
        Ok(message) if message.params == value && !params.is_some_and(has_doubled_keys) => {
            deliver(core, server, root, method, params);
        }
        Ok(message) => deliver(core, server, root, method, changed(params, &value, &message.params).as_deref()),
        Err(failure) => withheld(&failure.code, &failure.message),
    }
}

fn deliver(core: &Arc<HostCore>, server: &ServerName, root: &Arc<RootSession>, method: &str, params: Option<&RawValue>) {
    if let Some(list) = LISTS.into_iter().find(|list| *list == method) {
        return list_changed(core, root, list);
    }
    let Some(client) = root.client() else { return };
    let params = params.map(RawValue::to_owned);
    let params = if method == "notifications/message" { params.map(|raw| with_server(server, raw)) } else { params };
    client.notify(method, params);
}

/// A log message whose data says which server it comes from (nanobot).
fn with_server(server: &ServerName, params: RawJson) -> RawJson {
    let Some(fields) = RawParams::read(&params) else { return params };
    let mut told = Map::new();
    let mut text = String::from("{");
    let mut put = |key: &str, value: &str| {
        let comma = if text.len() > 1 { "," } else { "" };
        text.push_str(&format!("{comma}{}:{value}", json!(key)));
    };
    for (key, raw) in fields.into_fields() {
        if key == "data" {
            put(&key, &format!("{{\"server\":{},\"data\":{}}}", json!(server), raw.get()));
            told.insert(key, Value::Null);
        } else {
            put(&key, raw.get());
        }
    }
    if told.is_empty() {
        put("data", &json!({"server": server}).to_string());
    }
    text.push('}');
    RawValue::from_string(text).unwrap_or(params)
}

/// Tells the client of a session that a list has changed; changes that follow at once are told with it.
fn list_changed(core: &Arc<HostCore>, root: &Arc<RootSession>, method: &'static str) {
    if root.client().is_none() || !root.note_change(method) {
        return;
    }
    let (clock, root) = (core.drivers.clock.clone(), root.clone());
    tokio::spawn(async move {
        tokio::select! {
            biased;
            () = root.ended.cancelled() => {}
            () = sleep(clock.as_ref(), BURST) => {}
        }
        root.change_told(method);
        if let Some(client) = root.client().filter(|_| !root.ended.is_cancelled()) {
            client.notify(method, None);
        }
    });
}
