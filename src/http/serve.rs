//! Listening, and a session for each client.
//!
//! Invariant: a session ends with its client or with the host. Deliberately no knowledge of MCP beyond the transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use greenroom_boundary::{CancellationToken, Clock, clock};
use greenroom_wire::FrameDuplex;
use greenroom_wire::http::server::{Acceptor, Expiry, KeepAlive, Refusal, ServerOptions, SessionInfo, mcp_router};
use tokio::net::TcpListener;

use crate::front::{self, Arrival};
use crate::host::Host;

/// Path of the MCP endpoint.
pub const MCP_PATH: &str = "/mcp";

/// How long a stream is silent; below the minute after which many proxies close one.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How long the end waits for connections that do not end, such as one with half a request.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// The host, and where it is found.
struct Sessions(Host, String);

#[async_trait]
impl Acceptor for Sessions {
    async fn accept(&self, session: SessionInfo, duplex: FrameDuplex) -> Result<(), Refusal> {
        let host = self.0.clone();
        tracing::debug!(agent = session.headers.get("user-agent"), "new session");
        let arrival = Arrival { name: None, streams: session.streams, address: Some(self.1.clone()) };
        tokio::spawn(async move { front::serve_as(&host, duplex, arrival).await });
        Ok(())
    }
}

/// A listening front, ready to be run.
#[derive(Debug)]
pub struct HttpFront {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpFront {
    /// Listens at `address`; port 0 takes a free one.
    #[expect(clippy::disallowed_methods, reason = "this is the HTTP front")]
    pub async fn bind(address: &str) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where clients find the host.
    pub fn url(&self) -> String {
        format!("http://{}{MCP_PATH}", self.address)
    }

    /// Serves `host` until `stop`; clients that are still sending get a moment to end.
    pub async fn run(self, host: Host, allowed_origins: Vec<String>, stop: CancellationToken) -> std::io::Result<()> {
        let (clock, entropy) = (host.core().drivers.clock.clone(), host.core().drivers.entropy.clone());
        let policy = &host.core().config.policy;
        let expiry = policy.session_idle.map(|after| Expiry { clock: clock.clone(), after });
        let mut options = ServerOptions { max_sessions: policy.max_sessions, expiry, ..ServerOptions::new(entropy) };
        options.allowed_origins = allowed_origins;
        let address = self.url();
        self.accept(Arc::new(Sessions(host, address)), clock, options, stop).await
    }

    /// As [`HttpFront::run`], with whatever takes the sessions.
    pub async fn accept(
        self,
        acceptor: Arc<dyn Acceptor>,
        clock: Arc<dyn Clock>,
        mut options: ServerOptions,
        stop: CancellationToken,
    ) -> std::io::Result<()> {
        options.keep_alive = Some(KeepAlive { clock: clock.clone(), every: KEEP_ALIVE });
        let (router, sessions) = mcp_router(MCP_PATH, acceptor, options);
        let ending = stop.clone();
        let shutdown = async move {
            ending.cancelled().await;
            sessions.shutdown();
        };
        let late = async {
            stop.cancelled().await;
            clock::sleep(clock.as_ref(), SHUTDOWN_GRACE).await;
        };
        tokio::select! {
            biased;
            served = axum::serve(self.listener, router).with_graceful_shutdown(shutdown).into_future() => served,
            () = late => Ok(()),
        }
    }
}
