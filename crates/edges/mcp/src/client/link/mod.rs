//! The ways to a server: messages in and out, whatever carries them.
//!
//! A link is two bounded queues. Whoever drives the session holds the [`UpstreamLink`]; a task that
//! moves bytes holds the [`LinkEnd`]. Nothing here knows what messages mean, but for the id of the
//! request that each stream of HTTP belongs to. When either end is dropped the other one ends.

pub(crate) mod address;
pub(crate) mod dial;
pub(crate) mod http;
pub(crate) mod old_sse;
pub(crate) mod rights;
pub(crate) mod stdio;

use tokio::sync::mpsc;
use wharf_vocab::Fault;
use wharf_wire::mcp_v1::headers::McpMirror;
use wharf_wire::mcp_v1::{McpError, McpId, McpMessage, McpRevision};

/// Orders that may wait for the task that carries them out.
const ORDERS_MAX: usize = 64;
/// News that may wait for whoever drives the session.
const NEWS_MAX: usize = 64;

/// What is wanted of a link.
#[derive(Debug)]
pub(crate) enum LinkOrder {
    /// Carry a message.
    Send(Box<LinkSend>),
    /// Nobody waits for the answer to this request any more. Over HTTP its stream is closed; for
    /// a legacy server a notification that says so is sent besides.
    Forget(McpId),
    /// This was agreed on; requests over HTTP name it from now on.
    Agreed(McpRevision),
}

/// A message on its way out.
#[derive(Debug)]
pub(crate) struct LinkSend {
    /// The message.
    pub(crate) message: McpMessage,
    /// Arguments that are repeated in headers over HTTP, if it calls a tool of a modern server.
    pub(crate) mirrors: Vec<McpMirror>,
}

/// What comes of a link.
#[derive(Debug)]
pub(crate) enum LinkNews {
    /// A piece of a stream of lines.
    Bytes(Vec<u8>),
    /// A whole message.
    Message {
        /// The request whose stream carried it; none on a stream of its own.
        of: Option<McpId>,
        /// The message.
        text: String,
    },
    /// The POST of a request was answered with a status that says no, and perhaps with an error of
    /// the protocol.
    Refused {
        /// The request.
        id: McpId,
        /// The status.
        status: u16,
        /// The error.
        error: Option<McpError>,
    },
    /// A request cannot be made for a reason that is not the protocol's: no way there, no right to
    /// it. It did not run.
    Failed {
        /// The request.
        id: McpId,
        /// Why.
        fault: Fault,
    },
    /// The stream of a request ended without an answer and cannot be resumed. It may have run.
    Lost {
        /// The request.
        id: McpId,
    },
    /// The server does not know the session any more. The request did not run.
    SessionGone {
        /// The request.
        id: McpId,
    },
    /// The way is gone, and why, as the end of a sentence that begins with the server.
    Ended(String),
}

/// A way to a server, as whoever drives the session holds it.
#[derive(Debug)]
pub(crate) struct UpstreamLink {
    /// What is wanted. Dropping it closes the way out, while what is still on its way in arrives.
    pub(crate) orders: mpsc::Sender<LinkOrder>,
    /// What comes. After [`LinkNews::Ended`] nothing does.
    pub(crate) news: mpsc::Receiver<LinkNews>,
}

/// A way to a server, as whoever moves its bytes holds it.
#[derive(Debug)]
pub(crate) struct LinkEnd {
    /// What is wanted.
    pub(crate) orders: mpsc::Receiver<LinkOrder>,
    /// What comes.
    pub(crate) news: mpsc::Sender<LinkNews>,
}

impl UpstreamLink {
    /// Both ends of a way.
    pub(crate) fn new() -> (Self, LinkEnd) {
        let (orders, ordered) = mpsc::channel(ORDERS_MAX);
        let (news, told) = mpsc::channel(NEWS_MAX);
        (Self { orders, news: told }, LinkEnd { orders: ordered, news })
    }
}
