//! Where debuggers of hook scripts attach: the list of targets, and a WebSocket for each.
//!
//! Invariant: who attaches can run code in the scripts' place, so a web page must not: the `Host` is an address or `localhost`, an
//! `Origin` of the web is on this machine, and a target's name cannot be guessed. Deliberately no protocol: V8 speaks it.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Json;
use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use greenroom_boundary::{CancellationToken, Entropy};
use greenroom_isolate_v8::{AttachError, DebugSession, InspectorHub};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Version of the DevTools protocol.
const PROTOCOL: &str = "1.3";

/// A listening place for debuggers, ready to be run.
#[derive(Debug)]
pub struct InspectFront {
    listener: TcpListener,
    address: SocketAddr,
    desk: Arc<Desk>,
}

#[derive(Debug)]
struct Desk {
    hub: Arc<InspectorHub>,
    /// Before the number of each target.
    token: String,
}

impl InspectFront {
    /// Listens at `address`; port 0 takes a free one.
    #[expect(clippy::disallowed_methods, reason = "this is an HTTP front")]
    pub async fn bind(address: &str, hub: Arc<InspectorHub>, entropy: &dyn Entropy) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, desk: Arc::new(Desk { hub, token: entropy.id("") }) })
    }

    /// Where debuggers find it.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves debuggers until `stop`.
    pub async fn run(self, stop: CancellationToken) -> std::io::Result<()> {
        let router = Router::new()
            .route("/json", get(list))
            .route("/json/list", get(list))
            .route("/json/version", get(version))
            .route("/{target}", get(attach))
            .with_state(self.desk);
        // Debuggers do not end by themselves, and nothing of theirs needs an ending.
        tokio::select! {
            biased;
            () = stop.cancelled() => Ok(()),
            served = axum::serve(self.listener, router).into_future() => served,
        }
    }
}

/// Refuses web pages of other sites, DNS rebinding included. Gives the host that was asked for.
fn checked(headers: &HeaderMap) -> Result<&str, (StatusCode, &'static str)> {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let host = text(header::HOST).unwrap_or_default();
    let is_web = |origin: &str| origin == "null" || origin.starts_with("http://") || origin.starts_with("https://");
    let is_near = |origin: &str| origin.split_once("://").is_some_and(|(_, host)| is_loopback(host));
    let refuse = |why: &'static str| Err((StatusCode::FORBIDDEN, why));
    if !is_address(host) {
        return refuse("the Host must be an IP address or localhost\n");
    }
    if text(header::ORIGIN).is_some_and(|origin| is_web(origin) && !is_near(origin)) {
        return refuse("pages of other sites may not attach\n");
    }
    Ok(host)
}

/// The name in `name:port`, `[address]:port`, or either without a port.
fn name_of(host: &str) -> &str {
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

fn is_address(host: &str) -> bool {
    let name = name_of(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

fn is_loopback(host: &str) -> bool {
    let name = name_of(host);
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

async fn version(headers: HeaderMap) -> Result<Json<Value>, Response> {
    checked(&headers).map_err(IntoResponse::into_response)?;
    Ok(Json(json!({ "Browser": concat!("greenroom/", env!("CARGO_PKG_VERSION")), "Protocol-Version": PROTOCOL })))
}

async fn list(State(desk): State<Arc<Desk>>, headers: HeaderMap) -> Result<Json<Value>, Response> {
    let host = checked(&headers).map_err(IntoResponse::into_response)?;
    let target = |number: u64| {
        let id = format!("{}-{number}", desk.token);
        json!({
            "description": "a thread that runs hook scripts",
            "devtoolsFrontendUrl": format!("devtools://devtools/bundled/js_app.html?experiments=true&v8only=true&ws={host}/{id}"),
            "id": id,
            "title": format!("greenroom hooks, thread {}", number + 1),
            "type": "node",
            "url": "file://",
            "webSocketDebuggerUrl": format!("ws://{host}/{id}"),
        })
    };
    Ok(Json(desk.hub.targets().into_iter().map(target).collect()))
}

async fn attach(
    State(desk): State<Arc<Desk>>,
    Path(target): Path<String>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Result<Response, Response> {
    checked(&headers).map_err(IntoResponse::into_response)?;
    let number = target.strip_prefix(&desk.token).and_then(|rest| rest.strip_prefix('-')).and_then(|rest| rest.parse().ok());
    let session = number.ok_or(AttachError::NoTarget).and_then(|number| desk.hub.attach(number));
    match session {
        Ok(session) => Ok(upgrade.on_upgrade(|socket| relay(socket, session))),
        Err(AttachError::NoTarget) => Err((StatusCode::NOT_FOUND, "there is no such target; see /json/list\n").into_response()),
        Err(AttachError::Busy) => Err((StatusCode::CONFLICT, "another debugger is attached to it\n").into_response()),
    }
}

/// Carries messages until either side ends; then the session ends, and a script that was paused goes on.
async fn relay(mut socket: WebSocket, mut session: DebugSession) {
    let sender = session.sender();
    loop {
        tokio::select! {
            biased;
            message = session.recv() => match message {
                Some(text) => {
                    if socket.send(Message::Text(text.into())).await.is_err() {
                        return;
                    }
                }
                None => return,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => sender.send(text.to_string()),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn only_this_machine_and_debuggers_are_let_in() {
        let table = [
            ("127.0.0.1:9229", None, true),
            ("localhost:9229", None, true),
            ("[::1]:9229", Some("devtools://devtools"), true),
            ("10.0.0.7", Some("http://localhost:3000"), true),
            ("rebound.example:9229", None, false),
            ("localhost.evil.example", None, false),
            ("", None, false),
            ("127.0.0.1:9229", Some("https://evil.example"), false),
            ("127.0.0.1:9229", Some("null"), false),
        ];
        for (host, origin, is_let_in) in table {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, HeaderValue::from_static(host));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, HeaderValue::from_static(origin));
            }
            assert_eq!(checked(&headers).is_ok(), is_let_in, "{host} {origin:?}");
        }
    }
}
