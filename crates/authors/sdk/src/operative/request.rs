//! One request, from its arrival to its answer.

use std::borrow::Cow;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wharf_protocol::tool::value::Form;
use wharf_protocol::tool::{ToolAnswer, ToolRequest};
use wharf_vocab::{Code, Executed, Fault, Micro, Object};
use wharf_wire::agent_v1::Chunk;
use wharf_wire::tool_v1::{Kind, method};

use crate::builtin::Notice;
use crate::calls::job::panicked;
use crate::calls::progress::passing_on;
use crate::host::{CallRequest, Host, HostHandle};
use crate::transport::{Exchange, Link, LinkServer, Outgoing, Transport};
use crate::{ErasedTool, Place, Scope};

/// Pieces of progress on their way from a tool to the link; behind them the tool waits.
const PROGRESS_WAITING_MAX: usize = 8;

/// What all requests on a link share.
pub(super) struct RequestServer {
    pub(super) place: Place,
    pub(super) link: Link,
    pub(super) served: LinkServer,
    /// Serving is given up, and whatever is still under way with it.
    pub(super) given_up: CancellationToken,
}

impl RequestServer {
    /// Works on a request and answers it, unless nobody waits for it any more. Returns when
    /// everything that belongs to it has cleaned up.
    pub(super) async fn handle(
        self: Arc<Self>,
        tool: Arc<ErasedTool>,
        incoming: ToolRequest,
        stop: CancellationToken,
    ) {
        let scope = self.scope(&incoming);
        let ToolRequest { id, kind, payload, .. } = incoming;
        let work = AssertUnwindSafe(self.run(&tool, &scope, &id, payload)).catch_unwind();
        let result = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            () = self.given_up.cancelled() => Some(Err(given_up())),
            result = work => Some(result.unwrap_or_else(|_| Err(panicked()))),
        };
        if let Some(result) = result {
            let answer = match tool.wire.answer(result) {
                ToolAnswer::Accepted(_) if kind == Kind::Notify => ToolAnswer::Acknowledged,
                answer => answer,
            };
            // A peer that reads nothing more is not waited for, once it has gone.
            tokio::select! {
                () = self.served.answer(&id, &answer) => {}
                () = stop.cancelled() => {}
            }
        }
        scope.close().await;
    }

    /// Where a request is worked on: whatever it cannot do here goes back to a peer of ours.
    fn scope(self: &Arc<Self>, incoming: &ToolRequest) -> Scope {
        if !self.link.is_extended() {
            return Scope::below(&self.place.0);
        }
        let back: Arc<dyn Transport> = Arc::new(self.link.within(incoming));
        let (server, id, spent) = (Arc::clone(self), incoming.id.clone(), AtomicU64::new(0));
        let host = PeerCall { server, id, spent, back: Arc::clone(&back) };
        Scope::serving(&self.place.0, Arc::new(HostHandle(Arc::new(host))), back)
    }

    /// Runs the tool and passes on what it says on the way.
    async fn run(
        &self,
        tool: &ErasedTool,
        scope: &Scope,
        id: &str,
        payload: Value,
    ) -> Result<Value, Fault> {
        let place = crate::Within::place(scope);
        if tool.definition().progress.is_none() {
            return tool.call(place, payload, None).await;
        }
        let (told, mut pieces) = mpsc::channel(PROGRESS_WAITING_MAX);
        let call = tool.call(place, payload, Some(told));
        passing_on(call, &mut pieces, |piece| self.served.progress(id, piece)).await
    }
}

/// One call that a peer of ours made. Files are not among what it can reach.
struct PeerCall {
    server: Arc<RequestServer>,
    id: String,
    spent: AtomicU64,
    back: Arc<dyn Transport>,
}

impl PeerCall {
    fn request(&self, kind: Kind, method: impl Into<Cow<'static, str>>, input: Value) -> Exchange {
        let (method, payload) = (method.into(), input);
        self.back.request(Outgoing { kind, method, payload, heard: true, at: None })
    }

    async fn tell(&self, notice: Notice) -> Result<(), Fault> {
        let payload = serde_json::to_value(notice).unwrap_or_default();
        let told = self.request(Kind::Notify, method::NOTIFICATION, payload).answer.await;
        told.unwrap_or(ToolAnswer::Lost).into_output().map(drop)
    }

    async fn invoke(&self, request: CallRequest) -> Result<Object, Fault> {
        let CallRequest { tool, input, chunks, .. } = request;
        let mut exchange = self.request(Kind::Elicit, tool, Value::Object(input));
        let answer = passing_on(&mut exchange.answer, &mut exchange.progress, |piece| {
            // A reader that is slow or gone misses pieces, and delays nobody.
            let _ = chunks.try_send(Chunk::Partial { json: Form::Any.pack(piece) });
            std::future::ready(())
        });
        let answer = answer.await.unwrap_or(ToolAnswer::Lost);
        answer.into_output().map(|output| Form::Any.pack(output))
    }
}

impl Host for PeerCall {
    /// What the call costs is told at once.
    fn spend(&self, micro: Micro) {
        let before = self.spent.fetch_add(micro, Ordering::Relaxed);
        self.server.served.cost(&self.id, before.saturating_add(micro));
    }

    /// The wire has typed progress and messages; text and statuses are messages.
    fn stream(&self, chunk: Chunk) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(async move {
            match chunk {
                Chunk::Partial { json } => {
                    self.server.served.progress(&self.id, Value::Object(json)).await;
                    Ok(())
                }
                Chunk::Text { text, .. } => self.tell(Notice::new(text)).await,
                Chunk::Status { text, fraction } => {
                    self.tell(Notice { progress: fraction, ..Notice::new(text) }).await
                }
            }
        })
    }

    fn notify(&self, notice: Notice) -> BoxFuture<'_, Result<(), Fault>> {
        Box::pin(self.tell(notice))
    }

    fn call(&self, request: CallRequest) -> BoxFuture<'_, Result<Object, Fault>> {
        Box::pin(self.invoke(request))
    }
}

/// Nobody here knows the tool.
pub(super) fn unknown(method: &str) -> ToolAnswer {
    let message = format!("There is no tool {method:?} here.");
    ToolAnswer::Failed(Fault::new(Code::ToolNotFound, message).executed(Executed::No))
}

/// Serving stops, and takes nothing more.
pub(super) fn stopping() -> ToolAnswer {
    let message = "Whoever serves the tool is about to stop.";
    ToolAnswer::Failed(Fault::new(Code::ToolUnavailable, message).executed(Executed::No))
}

fn given_up() -> Fault {
    let message = "Whoever serves the tool stopped before it had ended.";
    Fault::new(Code::ToolUnavailable, message).executed(Executed::Maybe)
}
