//! A provider that a test plays itself: it sees each attempt and says how it ends.

use std::sync::Arc;

use serde_json::json;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use wharf_domain::run::AttemptError;
use wharf_domain::{Availability, Resolution, ToolDef};
use wharf_engine::{Attempt, AttemptEnd, Dispatch, Handle, ProviderSink};
use wharf_vocab::{AttemptId, Executed, Fault, Object, ProviderId, ToolId};

use crate::support::LONG;

/// A provider that a test plays itself.
pub(crate) struct Peer {
    pub(crate) handle: Handle,
    pub(crate) id: ProviderId,
    dispatched: Mutex<UnboundedReceiver<Dispatch>>,
    /// Kept so that attempts are under way until the test says otherwise.
    taken: Mutex<Vec<Dispatch>>,
}

struct Sink(UnboundedSender<Dispatch>);

impl ProviderSink for Sink {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        // A test that is over sees no more of it.
        let _ = self.0.send(dispatch);
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

/// A provider that takes attempts and does nothing at all.
#[derive(Default)]
pub(crate) struct Idle(std::sync::Mutex<Vec<Dispatch>>);

impl ProviderSink for Idle {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        self.0.lock().expect("whole").push(dispatch);
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

impl Peer {
    /// Registers a provider with these tools and says that it is up.
    pub(crate) async fn join(handle: &Handle, id: &str, tools: Vec<ToolDef>) -> Self {
        let id = ProviderId::new(id).expect("valid");
        let (sender, dispatched) = unbounded_channel();
        let sink = Arc::new(Sink(sender));
        handle.providers().register(id.clone(), tools, sink).await.expect("registers");
        handle.providers().set_availability(id.clone(), Availability::Up).await.expect("up");
        Self {
            handle: handle.clone(),
            id,
            dispatched: Mutex::new(dispatched),
            taken: Mutex::default(),
        }
    }

    /// The next attempt that is handed over.
    pub(crate) async fn next(&self) -> Attempt {
        let mut dispatched = self.dispatched.lock().await;
        let next = tokio::time::timeout(LONG, dispatched.recv()).await.expect("in time");
        let next = next.expect("the engine is there");
        self.taken.lock().await.push(next.clone());
        Attempt::new(self.handle.clone(), next)
    }

    /// Whether nothing has been handed over so far.
    pub(crate) async fn is_idle(&self) -> bool {
        self.dispatched.lock().await.try_recv().is_err()
    }
}

/// A tool that acts, with any inputs.
pub(crate) fn tool(id: &str) -> ToolDef {
    ToolDef::new(ToolId::new(id).expect("valid"), "Does something.", json!({"type": "object"}))
}

/// A tool that acts once somebody has approved it.
pub(crate) fn guarded(id: &str) -> ToolDef {
    ToolDef { requires_directive: true, ..tool(id) }
}

pub(crate) async fn succeed(attempt: &Attempt, cost_micro: u64) {
    attempt.succeeded(Object::new(), cost_micro).await.expect("told");
}

pub(crate) async fn fail(attempt: &Attempt, fault: Fault) {
    let result = Err(AttemptError::Failed(fault, Executed::No));
    attempt.ended(AttemptEnd::new(result, 0)).await.expect("told");
}
