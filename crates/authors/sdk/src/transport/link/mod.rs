//! One connection to a peer.

mod shared;
mod task;

use std::collections::HashMap;
use std::sync::Arc;

use wharf_protocol::tool::{ToolAnswer, ToolRequest};
use wharf_wire::tool_v1::{Offer, OfferedTool};

use super::{Error, Exchange, Kind, Options, Outgoing, Transport};
use crate::Tool;
pub(crate) use shared::LinkServer;
use shared::LinkState;
use task::Task;
pub(crate) use task::{Frames, LinkBroken};

/// One connection to a peer. Cheap to clone; the connection is closed when it is closed, when the
/// last clone is dropped, or when the peer goes.
///
/// Tools are called over it when it is the [`Transport`] of a scope, and served on it by
/// [`operative::serve`](crate::operative::serve). Both may happen at once.
///
/// ```
/// use wharf_sdk::transport::memory;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (here, there) = memory::pair();
/// here.close().await;
/// there.closed().await;
/// assert!(there.is_closed());
/// # }
/// ```
#[derive(Clone)]
pub struct Link {
    owner: Arc<LinkOwner>,
    /// Whether the peer is a core, which knows tools by their ids.
    is_core: bool,
    /// The request that is served here on whose behalf calls are made, if there is one.
    of: Option<String>,
}

/// Whoever keeps a connection open.
struct LinkOwner(Arc<LinkState>);

impl Drop for LinkOwner {
    fn drop(&mut self) {
        self.0.begin_close();
    }
}

/// What waits on a connection, and what was ignored or dropped on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Calls that were made and wait for an answer.
    pub calls_waiting: usize,
    /// Requests of the peer that were not answered yet.
    pub served: usize,
    /// Frames that wait to be sent.
    pub frames_waiting: usize,
    /// Pieces of progress that were dropped because whoever listens was too slow.
    pub progress_dropped: u64,
    /// Progress, responses and cancels about calls that nobody knows.
    pub unknown_ids: u64,
    /// Responses to calls that were answered before.
    pub duplicate_responses: u64,
    /// Frames that could not be read.
    pub unreadable: u64,
    /// Messages of a type that nobody knows.
    pub unknown_types: u64,
}

impl Link {
    /// Begins a connection. `marked` says whether the peer is known to read the additions to the
    /// protocol, `bare` whether requests go without their envelope.
    pub(crate) fn new(frames: impl Frames, marked: bool, bare: bool, options: &Options) -> Self {
        let shared = Arc::new(LinkState::new(marked, bare, options));
        tokio::spawn(Task::new(frames, Arc::clone(&shared), options));
        Self { owner: Arc::new(LinkOwner(shared)), is_core: false, of: None }
    }

    /// The same link, whose peer is a core: a definition that says [which tool of the
    /// core](crate::Tool::at) it is goes by that id.
    #[must_use]
    pub fn of_core(mut self) -> Self {
        self.is_core = true;
        self
    }

    fn shared(&self) -> &Arc<LinkState> {
        &self.owner.0
    }

    /// Waits until the connection has ended, whoever ended it.
    pub async fn closed(&self) {
        self.shared().closed.cancelled().await;
    }

    /// Whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.shared().closed.is_cancelled()
    }

    /// Ends the connection: what is being served is answered as given up, everything that waits
    /// is sent, calls that wait for an answer are lost.
    pub async fn close(&self) {
        self.shared().begin_close();
        self.closed().await;
    }

    /// What waits on the connection, and what was ignored or dropped on it.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.shared().counters()
    }

    /// Whether the peer knows the additions to the protocol, as every Wharf peer does.
    #[must_use]
    pub fn is_extended(&self) -> bool {
        self.shared().marked
    }

    /// The tools that the peer has offered last.
    #[must_use]
    pub fn offered(&self) -> Vec<OfferedTool> {
        self.shared().state.lock().offered.clone()
    }

    /// Offers tools to the peer, and no others; gives the ids under which it knows them.
    pub async fn offer(&self, tools: Vec<OfferedTool>) -> Result<Vec<String>, Error> {
        match self.shared().offer(tools).await {
            Some(Offer::Tools(ids)) => Ok(ids),
            Some(Offer::Error { code, message }) => Err(Error::Offer { code, message }),
            None => Err(Error::Lost),
        }
    }

    /// The same link, over which a tool goes by another name; see [`Named`].
    #[must_use]
    pub fn named<I, O, P, S>(
        &self,
        tool: &Tool<I, O, P, S>,
        name: impl Into<String>,
    ) -> Named<Self> {
        Named::new(self.clone()).named(tool, name)
    }

    /// Says that somebody serves this link, until the result is dropped.
    pub(crate) fn serving(&self) -> LinkServer {
        LinkServer::new(Arc::clone(self.shared()))
    }

    /// Makes calls on behalf of a request that is served here.
    pub(crate) fn within(&self, request: &ToolRequest) -> Self {
        Self { of: Some(request.id.clone()), ..self.clone() }
    }
}

impl Transport for Link {
    fn request(&self, mut request: Outgoing) -> Exchange {
        if let Some(at) = request.at.take().filter(|_| self.is_core) {
            request.method = at.id().to_owned().into();
        }
        LinkState::call(self.shared(), request, self.of.as_deref())
    }
}

debug_only!(Link: is_core);

/// A transport over which some tools go by other names, as a tool that a core knows by its id.
///
/// ```
/// use wharf_sdk::transport::{Named, memory};
/// use wharf_sdk::{Scope, Tool};
///
/// const GET_LOCATION: Tool<(), String> = Tool::new("get-location", "Where the user is.");
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let (link, _peer) = memory::pair();
/// let core = Named::new(link).named(&GET_LOCATION, "browser/get-location");
/// let scope = Scope::root().with_transport(core);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Named<T> {
    transport: T,
    names: HashMap<&'static str, String>,
}

impl<T: Transport> Named<T> {
    /// The same transport, with no other names yet.
    pub fn new(transport: T) -> Self {
        Self { transport, names: HashMap::new() }
    }

    /// Lets a tool go by another name.
    #[must_use]
    pub fn named<I, O, P, S>(mut self, tool: &Tool<I, O, P, S>, name: impl Into<String>) -> Self {
        self.names.insert(tool.name(), name.into());
        self
    }
}

impl<T: Transport> Transport for Named<T> {
    fn request(&self, mut request: Outgoing) -> Exchange {
        if request.kind == Kind::Elicit
            && let Some(name) = self.names.get(request.method.as_ref())
        {
            request.method = name.clone().into();
        }
        self.transport.request(request)
    }
}

/// The answer to what cannot be done on a connection that has ended or is about to.
fn going() -> ToolAnswer {
    let message = "The connection is being closed, so the call was given up.";
    ToolAnswer::Failed(wharf_vocab::Fault::new(wharf_vocab::Code::ToolUnavailable, message))
}
