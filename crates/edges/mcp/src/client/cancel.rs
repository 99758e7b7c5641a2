//! Ending a call that is under way.
//!
//! The server is told in the way that its era has. Silence is correct conduct then, so what it
//! does about it is not waited for: the attempt ends at once. Its room is given back after the
//! grace only, and a server that others use and that does not even answer a ping by then is
//! replaced. A process that belongs to one run alone is killed with the room.

use std::time::Duration;

use tokio::sync::watch;
use wharf_domain::run::AttemptError;
use wharf_hosting::Permit;
use wharf_vocab::{Code, Executed, Fault, Isolation};
use wharf_wire::mcp_v1::{McpEra, McpRequest};

use super::upstream::{CallEnd, Upstream};
use wharf_protocol::mcp::McpAnswer;

/// How long a server may take to show that it is there.
const PROOF: Duration = Duration::from_secs(5);

/// That an attempt is to stop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StopOrder {
    /// Why, as people read it.
    pub(crate) reason: String,
    /// How long it may take.
    pub(crate) grace: Duration,
    /// Whether nobody canceled it: whoever spoke with its server has left.
    pub(crate) is_left: bool,
}

impl StopOrder {
    /// Somebody canceled the attempt.
    pub(crate) fn canceled(reason: String, grace: Duration) -> Self {
        Self { reason, grace, is_left: false }
    }

    /// Whoever spoke with its server has left, and nothing that it waits for will come.
    pub(crate) fn left() -> Self {
        let reason = "The server is not talked to any more.".to_owned();
        Self { reason, grace: Duration::ZERO, is_left: true }
    }
}

/// Tells one attempt to stop, from anywhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct StopSignal(watch::Sender<Option<StopOrder>>);

impl StopSignal {
    /// The attempt is to stop. Saying it again changes nothing.
    pub(crate) fn now(&self, order: StopOrder) {
        self.0.send_if_modified(|wanted| {
            let first = wanted.is_none();
            wanted.get_or_insert(order);
            first
        });
    }

    pub(crate) fn is_wanted(&self) -> bool {
        self.0.borrow().is_some()
    }

    /// Waits until the attempt is to stop.
    pub(crate) async fn wanted(&self) -> StopOrder {
        let mut receiver = self.0.subscribe();
        match receiver.wait_for(Option::is_some).await.map(|wanted| wanted.clone()) {
            Ok(Some(order)) => order,
            // This value holds a sender, so it never comes to this.
            _ => std::future::pending().await,
        }
    }
}

/// How an attempt ends that was called off after it was sent.
pub(crate) fn canceled() -> AttemptError {
    let fault = Fault::new(Code::ToolCanceled, "The call was canceled.");
    AttemptError::Canceled(fault.executed(Executed::Maybe))
}

/// Gives the room of a canceled call back once the server had its grace, and says if it is past
/// hearing.
pub(crate) async fn aftermath(
    upstream: &Upstream,
    mut permit: Permit,
    grace: Duration,
    isolation: Isolation,
) {
    tokio::time::sleep(grace).await;
    // A process of one run alone is killed, whatever it would say.
    if isolation != Isolation::Run && !is_there(upstream).await {
        permit.unresponsive();
    }
}

/// Whether a server shows that it is there.
async fn is_there(upstream: &Upstream) -> bool {
    let request = match upstream.era() {
        McpEra::Legacy => McpRequest::Ping(Box::default()),
        McpEra::Modern => McpRequest::Discover(Box::default()),
    };
    match upstream.ask(request, PROOF).await {
        CallEnd::Answered(answer) => answer != McpAnswer::TimedOut,
        // It is gone, which others see as well, or nobody could ask.
        CallEnd::Unsent(_) | CallEnd::Lost => true,
    }
}
