//! One request, from its arrival to its answer.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures::FutureExt;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wharf_protocol::tool::{Answer, Incoming};
use wharf_vocab::{Code, Executed, Fault};
use wharf_wire::tool_v1::Kind;

use crate::face::Meter;
use crate::transport::{Link, Served};
use crate::{Exposed, Place, Scope};

/// Pieces of progress on their way from a tool to the link; behind them the tool waits.
const PROGRESS_WAITING_MAX: usize = 8;

/// What all requests on a link share.
pub(super) struct Server {
    pub(super) place: Place,
    pub(super) link: Link,
    pub(super) served: Served,
    /// Serving is given up, and whatever is still under way with it.
    pub(super) given_up: CancellationToken,
}

impl Server {
    /// Works on a request and answers it, unless nobody waits for it any more. Returns when
    /// everything that belongs to it has cleaned up.
    pub(super) async fn handle(
        self: Arc<Self>,
        tool: Arc<Exposed>,
        incoming: Incoming,
        stop: CancellationToken,
    ) {
        let scope = self.scope(&incoming);
        let Incoming { id, kind, payload, .. } = incoming;
        let work = AssertUnwindSafe(self.run(&tool, &scope, &id, payload)).catch_unwind();
        let result = tokio::select! {
            biased;
            () = stop.cancelled() => None,
            () = self.given_up.cancelled() => Some(Err(given_up())),
            result = work => Some(result.unwrap_or_else(|_| Err(panicked()))),
        };
        if let Some(result) = result {
            let answer = match tool.wire.answer(result) {
                Answer::Accepted(_) if kind == Kind::Notify => Answer::Acknowledged,
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
    /// What the call costs is told there at once.
    fn scope(self: &Arc<Self>, incoming: &Incoming) -> Scope {
        if !self.link.is_extended() {
            return Scope::below(&self.place.0);
        }
        let (server, id, spent) = (Arc::clone(self), incoming.id.clone(), AtomicU64::new(0));
        let meter = Meter(Box::new(move |micro| {
            let before = spent.fetch_add(micro, Ordering::Relaxed);
            server.served.cost(&id, before.saturating_add(micro));
        }));
        let back = Arc::new(self.link.within(incoming));
        Scope::serving_over(&self.place.0, Arc::new(meter), back)
    }

    /// Runs the tool and passes on what it says on the way.
    async fn run(
        &self,
        tool: &Exposed,
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
        tokio::pin!(call);
        let result = loop {
            tokio::select! {
                biased;
                Some(piece) = pieces.recv() => self.served.progress(id, piece).await,
                result = &mut call => break result,
            }
        };
        while let Ok(piece) = pieces.try_recv() {
            self.served.progress(id, piece).await;
        }
        result
    }
}

/// Nobody here knows the tool.
pub(super) fn unknown(method: &str) -> Answer {
    let message = format!("There is no tool {method:?} here.");
    Answer::Failed(Fault::new(Code::ToolNotFound, message).executed(Executed::No))
}

/// Serving stops, and takes nothing more.
pub(super) fn stopping() -> Answer {
    let message = "Whoever serves the tool is about to stop.";
    Answer::Failed(Fault::new(Code::ToolUnavailable, message).executed(Executed::No))
}

fn given_up() -> Fault {
    let message = "Whoever serves the tool stopped before it had ended.";
    Fault::new(Code::ToolUnavailable, message).executed(Executed::Maybe)
}

fn panicked() -> Fault {
    let message = "The tool failed in a way its author did not foresee.";
    Fault::new(Code::ToolInternal, message).executed(Executed::Maybe)
}
