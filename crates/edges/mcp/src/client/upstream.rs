//! A server that is ready, for whoever makes calls of it.
//!
//! An [`Upstream`] is a bounded queue of orders to the task that owns session and link. Each call
//! has events of its own and exactly one end. A call whose [`UpstreamCall`] is dropped is called
//! off. When the connection is gone every call ends as lost, and no other can be made.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use wharf_protocol::mcp::{McpAnswer, McpCallError, McpPeer};
use wharf_vocab::{Code, Executed, Fault, Object};
use wharf_wire::mcp_v1::headers::McpMirror;
use wharf_wire::mcp_v1::{McpEra, McpError, McpId, McpLog, McpProgress, McpRequest, McpTaskOf11};

/// Orders that may wait for the task that owns the session.
const ORDERS_MAX: usize = 128;
/// Events of one call that may wait for whoever made it. Of progress and logs those that find no
/// room are left out.
const EVENTS_MAX: usize = 256;

/// A server that is ready. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Upstream {
    /// What was agreed on.
    pub(crate) peer: Arc<McpPeer>,
    orders: mpsc::Sender<UpstreamOrder>,
    unwanted: Arc<UnwantedCalls>,
    next_key: Arc<AtomicU64>,
    state: watch::Receiver<UpstreamState>,
    closing: CancellationToken,
}

/// Names a call between its maker and the task that owns the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct CallKey(u64);

/// How a call is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct CallOptions {
    /// How long an answer may take; as long as it takes when absent.
    pub(crate) timeout: Option<Duration>,
    /// Whether progress is wanted.
    pub(crate) progress: bool,
    /// Whether the server may ask something meanwhile: what it asks while such a call is open
    /// belongs to that call.
    pub(crate) takes_asks: bool,
    /// Arguments that are repeated in headers over HTTP.
    pub(crate) mirrors: Vec<McpMirror>,
    /// The task of 2025-11-25 that it is about: what the server asks for that task belongs to it.
    pub(crate) task: Option<String>,
}

/// What happens while a call is under way.
#[derive(Debug)]
pub(crate) enum CallEvent {
    /// It goes on.
    Progress(Box<McpProgress>),
    /// The server has something to say about it.
    Log(Box<McpLog>),
    /// The server asks something. It is answered by [`Upstream::answer`].
    Asked {
        /// Names it.
        id: McpId,
        /// What it asks.
        request: Box<McpRequest>,
    },
    /// The server does not want to know any more.
    AskCanceled(McpId),
    /// A task of 2025-11-25 changed.
    TaskOf11(Box<McpTaskOf11>),
    /// It is over. Nothing follows.
    Ended(CallEnd),
}

/// How a call ended.
#[derive(Debug)]
pub(crate) enum CallEnd {
    /// With an answer, or without one because of the server or of whoever made it.
    Answered(McpAnswer),
    /// It was not made, or HTTP has said that it did not run.
    Unsent(Fault),
    /// The connection ended after it was on its way.
    Lost,
}

/// What is known of a connection at any moment.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct UpstreamState {
    /// How it fares.
    pub(crate) phase: UpstreamPhase,
    /// How often the server said that its tools, prompts or templates changed.
    pub(crate) lists_changed: u64,
}

/// How a connection fares.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) enum UpstreamPhase {
    /// It is there.
    #[default]
    Well,
    /// The server gave no sign of life for too long.
    Unhealthy,
    /// It is gone, and why, as the end of a sentence that begins with the server.
    Ended(String),
}

/// What is wanted of the task that owns the session.
pub(crate) enum UpstreamOrder {
    /// Make a call.
    Call(Box<CallOrder>),
    /// Call a call off.
    Cancel {
        /// Which.
        key: CallKey,
        /// Why, as the server is told.
        reason: String,
    },
    /// Answer what the server asked.
    Answer {
        /// What it asked.
        id: McpId,
        /// The answer.
        answer: Result<Object, McpError>,
    },
}

/// A call that is to be made.
pub(crate) struct CallOrder {
    pub(crate) key: CallKey,
    pub(crate) request: McpRequest,
    pub(crate) options: CallOptions,
    pub(crate) tell: CallSender,
}

/// Where a call's events go.
pub(crate) struct CallSender {
    events: mpsc::Sender<CallEvent>,
    end: oneshot::Sender<CallEnd>,
}

impl CallSender {
    /// Tells an event; `false` if there is no room for it, or nobody is there.
    pub(crate) fn event(&self, event: CallEvent) -> bool {
        self.events.try_send(event).is_ok()
    }

    /// Tells the end.
    pub(crate) fn end(self, end: CallEnd) {
        // Whoever made it may have left.
        let _ = self.end.send(end);
    }
}

/// Calls that nobody waits for any more. There are never more than are open.
#[derive(Debug, Default)]
pub(crate) struct UnwantedCalls {
    keys: Mutex<Vec<CallKey>>,
    wake: Notify,
}

impl UnwantedCalls {
    /// Waits until there are some, and takes them.
    pub(crate) async fn take(&self) -> Vec<CallKey> {
        loop {
            let keys = std::mem::take(&mut *self.keys.lock());
            if !keys.is_empty() {
                return keys;
            }
            self.wake.notified().await;
        }
    }

    fn add(&self, key: CallKey) {
        self.keys.lock().push(key);
        self.wake.notify_one();
    }
}

/// The ends that the task that owns the session holds.
pub(crate) struct UpstreamEnd {
    pub(crate) orders: mpsc::Receiver<UpstreamOrder>,
    pub(crate) unwanted: Arc<UnwantedCalls>,
    pub(crate) state: watch::Sender<UpstreamState>,
    pub(crate) closing: CancellationToken,
}

/// An upstream before it is known who is there.
pub(crate) struct UpstreamParts {
    orders: mpsc::Sender<UpstreamOrder>,
    unwanted: Arc<UnwantedCalls>,
    state: watch::Receiver<UpstreamState>,
    closing: CancellationToken,
}

impl UpstreamParts {
    /// Both ends.
    pub(crate) fn new() -> (Self, UpstreamEnd) {
        let (orders, ordered) = mpsc::channel(ORDERS_MAX);
        let (state, seen) = watch::channel(UpstreamState::default());
        let unwanted = Arc::<UnwantedCalls>::default();
        let closing = CancellationToken::new();
        let end = UpstreamEnd {
            orders: ordered,
            unwanted: Arc::clone(&unwanted),
            state,
            closing: closing.clone(),
        };
        (Self { orders, unwanted, state: seen, closing }, end)
    }

    /// The upstream, once this peer is ready.
    pub(crate) fn ready(self, peer: McpPeer) -> Upstream {
        Upstream {
            peer: Arc::new(peer),
            orders: self.orders,
            unwanted: self.unwanted,
            next_key: Arc::default(),
            state: self.state,
            closing: self.closing,
        }
    }
}

impl Upstream {
    /// The era that is spoken.
    pub(crate) fn era(&self) -> McpEra {
        self.peer.revision.era()
    }

    /// How the connection fares from now on.
    pub(crate) fn state(&self) -> watch::Receiver<UpstreamState> {
        self.state.clone()
    }

    /// Ends the connection. A process sees the end of its input; calls that are open are lost.
    pub(crate) fn close(&self) {
        self.closing.cancel();
    }

    /// Makes a call. An error means that it was not made.
    pub(crate) async fn call(
        &self,
        request: McpRequest,
        options: CallOptions,
    ) -> Result<UpstreamCall, Fault> {
        let key = CallKey(self.next_key.fetch_add(1, Ordering::Relaxed));
        let (events, told) = mpsc::channel(EVENTS_MAX);
        let (end, ended) = oneshot::channel();
        let tell = CallSender { events, end };
        let order = CallOrder { key, request, options, tell };
        self.order(UpstreamOrder::Call(Box::new(order))).await?;
        Ok(UpstreamCall { upstream: self.clone(), key, events: told, end: Some(ended) })
    }

    /// Makes a call of which only the end matters.
    pub(crate) async fn ask(&self, request: McpRequest, timeout: Duration) -> CallEnd {
        let options = CallOptions { timeout: Some(timeout), ..CallOptions::default() };
        match self.call(request, options).await {
            Ok(call) => call.ended().await,
            Err(fault) => CallEnd::Unsent(fault),
        }
    }

    /// Answers what the server asked.
    pub(crate) async fn answer(&self, id: McpId, answer: Result<Object, McpError>) {
        // A server that is gone wants no answer.
        let _ = self.order(UpstreamOrder::Answer { id, answer }).await;
    }

    async fn order(&self, order: UpstreamOrder) -> Result<(), Fault> {
        self.orders.send(order).await.map_err(|_| self.gone())
    }

    /// That nothing can be asked of the server any more.
    fn gone(&self) -> Fault {
        let why = match &self.state.borrow().phase {
            UpstreamPhase::Ended(why) => format!("The MCP server {why}."),
            UpstreamPhase::Well | UpstreamPhase::Unhealthy => "The MCP server is gone.".to_owned(),
        };
        Fault::new(Code::ToolAgentLost, why).executed(Executed::No)
    }
}

/// Why a call could not be made, as whoever wanted it is told.
pub(crate) fn unsent(error: McpCallError) -> Fault {
    let code = match error {
        McpCallError::Full => Code::ToolBusy,
        McpCallError::TooLarge => Code::ToolInputTooLarge,
        McpCallError::NotSpoken => Code::ToolUnavailable,
        McpCallError::NotReady | McpCallError::Duplicate | McpCallError::Ended => {
            Code::ToolAgentLost
        }
    };
    Fault::new(code, format!("The MCP server was not asked: {error}.")).executed(Executed::No)
}

/// A call under way. Dropping it calls it off.
pub(crate) struct UpstreamCall {
    upstream: Upstream,
    key: CallKey,
    events: mpsc::Receiver<CallEvent>,
    /// Taken when the end has come.
    end: Option<oneshot::Receiver<CallEnd>>,
}

impl UpstreamCall {
    /// The next event; after [`CallEvent::Ended`] there is none, and this never returns. Nothing is
    /// lost if this is dropped while it waits.
    pub(crate) async fn next(&mut self) -> CallEvent {
        // All that came before the end is told before it: whoever tells the end lets go of the
        // events first.
        if let Some(event) = self.events.recv().await {
            return event;
        }
        let Some(end) = self.end.as_mut() else { return std::future::pending().await };
        let end = end.await.unwrap_or(CallEnd::Lost);
        self.end = None;
        CallEvent::Ended(end)
    }

    /// Waits for the end and passes over all else.
    pub(crate) async fn ended(mut self) -> CallEnd {
        loop {
            if let CallEvent::Ended(end) = self.next().await {
                return end;
            }
        }
    }

    /// Calls it off, for this reason. Its end is not waited for.
    pub(crate) async fn cancel(mut self, reason: &str) {
        let reason = reason.to_owned();
        let told = self.upstream.order(UpstreamOrder::Cancel { key: self.key, reason }).await;
        if told.is_ok() {
            // Nothing more has to be said when it is dropped.
            self.end = None;
        }
    }
}

impl Drop for UpstreamCall {
    fn drop(&mut self) {
        if self.end.is_some() {
            self.upstream.unwanted.add(self.key);
        }
    }
}
