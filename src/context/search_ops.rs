//! `ctx.search`: the web, knowledge bases, tables.
//!
//! Invariant: a search never throws for what a provider does: the failure is in the result's `error` and `code`. Citation ids
//! are unique in the turn tree and given in the order of requests and hits. Deliberately no ranking across requests: `rerank`
//! only keeps the best of one.

use std::sync::Arc;

use greenroom_boundary::clock::MonoNanos;
use greenroom_boundary::isolate::OpError;
use greenroom_boundary::search::{DEFAULT_LIMIT, MAX_LIMIT, Order, SearchAnswer, SearchError, SearchKind, SearchQuery, Where};
use greenroom_boundary::trace::{EventKind, Outcome};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::arguments::{Arguments, whole};
use super::batch::{self, Combinator, Ended, Request};
use super::mcp_ops::batch_requests;
use super::verbs::SearchVerb;
use crate::host::HostCore;
use crate::router::{CallContext, OpenExchange};

/// How much a hit that a hook looked for counts against those of a person (1) and of the host's own search (0.6).
const WEIGHT: f64 = 0.8;

pub(super) async fn run(core: &Arc<HostCore>, cx: &CallContext, verb: SearchVerb, args: &Arguments) -> Result<Value, OpError> {
    let how = match verb {
        SearchVerb::Web => return single(core, cx, SearchKind::Web, args).await,
        SearchVerb::Kb => return single(core, cx, SearchKind::Kb, args).await,
        SearchVerb::Db => return single(core, cx, SearchKind::Db, args).await,
        SearchVerb::All => Combinator::All,
        SearchVerb::Any => Combinator::Any,
        SearchVerb::Race => Combinator::Race,
    };
    let mut requests = Vec::new();
    for (index, request) in batch_requests(args)?.iter().enumerate() {
        let at = format!("requests[{index}].");
        let kind = kind(args, args.key_text(request, &at, "type")?, &at)?;
        let query = query(args, kind, args.key_text(request, &at, "query")?, request, &at)?;
        let cancel = cx.cancel.child_token();
        let (core, mut cx) = (core.clone(), cx.clone());
        cx.cancel = cancel.clone();
        let head = head(&query);
        let work = Box::pin(async move { search(&core, &cx, query, how == Combinator::Any).await });
        requests.push(Request { head, cancel, work });
    }
    let Value::Array(entries) = batch::run(how, requests).await? else { return Ok(Value::Null) };
    let whole = |entry| if let Value::Object(entry) = entry { finished(cx, entry) } else { entry };
    Ok(entries.into_iter().map(whole).collect())
}

async fn single(core: &Arc<HostCore>, cx: &CallContext, kind: SearchKind, args: &Arguments) -> Result<Value, OpError> {
    let query = query(args, kind, args.text(0, "query")?, &args.object(1, "options")?, "options.")?;
    let head = head(&query);
    let mut cx = cx.clone();
    cx.cancel = cx.cancel.child_token();
    let _drop_guard = cx.cancel.clone().drop_guard();
    let ended = search(core, &cx, query, false).await;
    batch::entry(head, ended).map(|entry| finished(&cx, entry))
}

fn head(query: &SearchQuery) -> Map<String, Value> {
    let fields = [("type", json!(query.kind)), ("query", json!(query.query)), ("source", json!("hook"))];
    fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// The one shape of results: what a failure lacks is there and empty, and every hit has its citation id.
fn finished(cx: &CallContext, mut entry: Map<String, Value>) -> Value {
    for (key, empty) in [("items", json!([])), ("total", json!(0)), ("duration_ms", json!(0))] {
        entry.entry(key).or_insert(empty);
    }
    for item in entry.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten() {
        item["citation_id"] = json!(cx.tree.citation_id());
    }
    Value::Object(entry)
}

fn kind(args: &Arguments, name: &str, at: &str) -> Result<SearchKind, OpError> {
    let known = [SearchKind::Web, SearchKind::Kb, SearchKind::Db];
    let found = known.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| args.wrong(&format!("{at}type"), "`web`, `kb` or `db`", &json!(name)))
}

fn query(
    args: &Arguments,
    kind: SearchKind,
    text: &str,
    options: &Map<String, Value>,
    at: &str,
) -> Result<SearchQuery, OpError> {
    let given = Given { args, options, at };
    let limit = given.count("limit")?.unwrap_or(DEFAULT_LIMIT);
    let top = args.object_of(options.get("rerank").unwrap_or(&Value::Null), &format!("{at}rerank"))?;
    let top = Given { args, options: &top, at: &format!("{at}rerank.") }.count("top_n")?;
    Ok(SearchQuery {
        kind,
        query: text.to_owned(),
        limit: top.map_or(limit, |top| top.min(limit)).min(MAX_LIMIT),
        sites: given.read("sites", "an array of strings")?,
        time_range: given.read("time_range", "`day`, `week`, `month` or `year`")?,
        collections: given.read("collections", "an array of strings")?,
        threshold: given.read("threshold", "a number")?,
        models: given.read("models", "an array of strings")?,
        select: given.read("select", "an array of strings")?,
        wheres: given.read::<Vec<Where>>("wheres", "an array of { column, op?, value }")?,
        orders: given.read::<Vec<Order>>("orders", "an array of { column, desc? }")?,
    })
}

/// The options of a search.
struct Given<'a> {
    args: &'a Arguments,
    options: &'a Map<String, Value>,
    at: &'a str,
}

impl Given<'_> {
    fn read<T: DeserializeOwned + Default>(&self, key: &str, wanted: &str) -> Result<T, OpError> {
        match self.options.get(key) {
            None | Some(Value::Null) => Ok(T::default()),
            Some(value) => {
                serde_json::from_value(value.clone()).map_err(|_| self.args.wrong(&format!("{}{key}", self.at), wanted, value))
            }
        }
    }

    fn count(&self, key: &str) -> Result<Option<usize>, OpError> {
        match self.options.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match whole(value).and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0) {
                Some(count) => Ok(Some(count)),
                None => Err(self.args.wrong(&format!("{}{key}", self.at), "a whole number from 1", value)),
            },
        }
    }
}

/// Asks, and traces the exchange. With `wants_hits` an empty answer is a failure.
async fn search(core: &Arc<HostCore>, cx: &CallContext, query: SearchQuery, wants_hits: bool) -> Ended {
    let (tracer, clock) = (&core.drivers.tracer, &core.drivers.clock);
    let (span, kind, began) = (tracer.span(), query.kind, clock.now());
    let boundary = format!("search.{}", kind.name());
    if tracer.enabled() {
        let event = EventKind::Request {
            span,
            parent: cx.parent,
            boundary: boundary.clone(),
            method: "search".to_owned(),
            tool_call: None,
            body: json!(query),
        };
        tracer.emit(&cx.scope, cx.agent.as_ref(), event);
    }
    let open = OpenExchange {
        tracer: tracer.clone(),
        scope: cx.scope.clone(),
        agent: cx.agent.clone(),
        span,
        boundary,
        method: "search".to_owned(),
        left: Arc::new(true.into()),
    };
    let result = tokio::select! {
        biased;
        result = core.drivers.search.search(query, &cx.cancel) => result,
        () = cx.cancel.cancelled() => Err(SearchError::Cancelled),
    };
    match result {
        Ok(answer) => {
            open.close(Outcome::Ok, || json!(answer), None);
            ended(answer, kind, millis(clock.now(), began), wants_hits)
        }
        Err(error) => {
            let (code, message) = (error.code().to_owned(), core.drivers.credentials.mask(&error.to_string()));
            let outcome = if error == SearchError::Cancelled { Outcome::Cancelled } else { Outcome::Error };
            open.close(outcome, || json!({"error": {"code": code, "message": message}}), None);
            Ended::Failed { code, message }
        }
    }
}

fn millis(now: MonoNanos, began: MonoNanos) -> u64 {
    u64::try_from(now.since(began).as_millis()).unwrap_or(u64::MAX)
}

fn ended(answer: SearchAnswer, kind: SearchKind, duration_ms: u64, wants_hits: bool) -> Ended {
    if wants_hits && answer.hits.is_empty() {
        return Ended::Failed { code: "SEARCH_EMPTY".to_owned(), message: "nothing was found".to_owned() };
    }
    let item = |hit| {
        // The citation id is first for readers, and given last.
        let mut item = json!({"citation_id": "", "source": "hook", "weight": WEIGHT, "type": kind});
        if let (Value::Object(item), Ok(Value::Object(hit))) = (&mut item, serde_json::to_value(hit)) {
            item.extend(hit);
        }
        item
    };
    let items: Vec<Value> = answer.hits.into_iter().map(item).collect();
    let fields = [("items", json!(items)), ("total", json!(answer.total)), ("duration_ms", json!(duration_ms))];
    Ended::Well(fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}
