//! Faults on completions.
//!
//! Invariant: a completion that no fault strikes passes untouched; waiting ends when the host cancels. Deliberately only
//! errors that the boundary has: a status, a broken connection.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::{Either, select};
use futures::{StreamExt, stream};
use greenroom_boundary::clock::sleep;
use greenroom_boundary::llm::{LlmCapabilities, LlmError, LlmEvent, LlmRequest, LlmStream};
use greenroom_boundary::{BoxFuture, CancellationToken, Clock, Llm, Tracer};

use super::{FaultAction, FaultPhase, FaultPlan, Strike};

const METHOD: &str = "chat";

/// An LLM driver with faults.
#[derive(Clone, Debug)]
pub struct FaultyLlm {
    inner: Arc<dyn Llm>,
    plan: FaultPlan,
    clock: Arc<dyn Clock>,
    tracer: Tracer,
}

impl FaultyLlm {
    /// Strikes what passes to and from `inner`.
    pub fn new(inner: Arc<dyn Llm>, plan: FaultPlan, clock: Arc<dyn Clock>, tracer: Tracer) -> Self {
        Self { inner, plan, clock, tracer }
    }

    async fn struck_request(
        &self,
        strike: Strike,
        request: LlmRequest,
        cancel: &CancellationToken,
    ) -> Result<LlmStream, LlmError> {
        let connector = request.connector.to_string();
        self.plan.fired(&self.tracer, &format!("llm.{connector}"), METHOD, &strike);
        match strike.action {
            FaultAction::Delay(by) => {
                until(cancel, &connector, sleep(&*self.clock, by)).await?;
                self.inner.stream(request, cancel).await
            }
            FaultAction::Hang | FaultAction::Drop => {
                until(cancel, &connector, Box::pin(std::future::pending())).await?;
                Err(LlmError::Cancelled { connector })
            }
            FaultAction::Error { code, message } => Err(status(connector, code, message)),
            FaultAction::Disconnect => Err(broken(connector)),
        }
    }
}

#[async_trait]
impl Llm for FaultyLlm {
    fn capabilities(&self) -> LlmCapabilities {
        self.inner.capabilities()
    }

    async fn stream(&self, request: LlmRequest, cancel: &CancellationToken) -> Result<LlmStream, LlmError> {
        let connector = request.connector.to_string();
        match self.plan.exchange(&format!("llm.{connector}"), METHOD) {
            None => self.inner.stream(request, cancel).await,
            Some(strike) if strike.phase == FaultPhase::Request => self.struck_request(strike, request, cancel).await,
            Some(strike) => {
                let inner = self.inner.stream(request, cancel).await?;
                let struck = Struck {
                    inner,
                    connector,
                    strike: Some(strike),
                    driver: self.clone(),
                    cancel: cancel.clone(),
                    pieces: 0,
                    over: false,
                };
                Ok(Box::pin(stream::unfold(struck, |mut struck| async move { struck.next().await.map(|item| (item, struck)) })))
            }
        }
    }
}

/// A completion whose answer a fault strikes.
struct Struck {
    inner: LlmStream,
    connector: String,
    strike: Option<Strike>,
    driver: FaultyLlm,
    cancel: CancellationToken,
    pieces: usize,
    over: bool,
}

impl Struck {
    async fn next(&mut self) -> Option<Result<LlmEvent, LlmError>> {
        if self.over {
            return None;
        }
        // A connection breaks after the first piece, everything else strikes before it.
        let due = match &self.strike {
            Some(Strike { action: FaultAction::Disconnect, .. }) => self.pieces == 1,
            Some(_) => true,
            None => false,
        };
        if due && let Some(strike) = self.strike.take() {
            self.driver.plan.fired(&self.driver.tracer, &format!("llm.{}", self.connector), METHOD, &strike);
            if let Err(error) = self.suffer(strike.action).await {
                self.over = true;
                return Some(Err(error));
            }
        }
        self.pieces += 1;
        self.inner.next().await
    }

    async fn suffer(&mut self, action: FaultAction) -> Result<(), LlmError> {
        let connector = self.connector.clone();
        match action {
            FaultAction::Delay(by) => until(&self.cancel, &connector, sleep(&*self.driver.clock, by)).await,
            FaultAction::Hang | FaultAction::Drop => until(&self.cancel, &connector, Box::pin(std::future::pending())).await,
            FaultAction::Error { code, message } => Err(status(connector, code, message)),
            FaultAction::Disconnect => Err(broken(connector)),
        }
    }
}

async fn until(cancel: &CancellationToken, connector: &str, waiting: BoxFuture<'static, ()>) -> Result<(), LlmError> {
    match select(Box::pin(cancel.cancelled()), waiting).await {
        Either::Left(_) => Err(LlmError::Cancelled { connector: connector.to_owned() }),
        Either::Right(_) => Ok(()),
    }
}

fn status(connector: String, code: i64, message: String) -> LlmError {
    LlmError::Status { connector, status: u16::try_from(code).unwrap_or(500), message, retry_after_ms: None }
}

fn broken(connector: String) -> LlmError {
    LlmError::Transport { connector, message: "the connection was broken by an injected fault".to_owned() }
}
