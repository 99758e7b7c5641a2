//! One request of a client, with all that decides how it is served, and how it is answered.

use std::sync::Arc;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde_json::Number;
use tokio_util::sync::CancellationToken;
use wharf_domain::Caller;
use wharf_vocab::Object;
use wharf_web::params::SentTrace;
use wharf_wire::mcp_v1::{
    McpClientCapabilities, McpError, McpFilter, McpId, McpLog, McpLogLevel, McpNotification,
    McpOpen, McpRequest, McpRevision,
};

use super::pages::ToolPage;
use super::query::DoorQuery;
use super::session::SessionRef;
use super::shared::ServerShared;
use super::shares::CallPermit;
use crate::faults::McpRefusal;

/// One request of a client, or one of its streams, with all that decides how it is served.
#[derive(Clone)]
pub(crate) struct McpContext {
    pub(crate) shared: Arc<ServerShared>,
    /// Who asks: of the kind `Mcp`, no person, with what the address leaves of the token's rights.
    pub(crate) caller: Caller,
    /// What the address asks for.
    pub(crate) door: DoorQuery,
    /// What is spoken.
    pub(crate) revision: McpRevision,
    /// What the client can do.
    pub(crate) capabilities: McpOpen<McpClientCapabilities>,
    /// The session, of a legacy client.
    pub(crate) session: Option<SessionRef>,
    /// From which level on logs are wanted, if that was said.
    pub(crate) log_level: Option<McpLogLevel>,
    /// The trace that the request belongs to, as its headers say.
    pub(crate) trace: SentTrace,
    /// Ends when the core closes its streams.
    pub(crate) closing: CancellationToken,
}

/// How a request is answered.
pub(crate) enum McpReply {
    /// At once.
    Now(Result<Object, McpRefusal>),
    /// At once, with tools that are written already.
    Tools {
        /// The result, with no tools in it.
        around: Object,
        /// The tools.
        page: Arc<ToolPage>,
    },
    /// On a stream of events, with the answer last. Nobody reads any more when it is dropped.
    Stream(BoxStream<'static, StreamItem>),
}

impl McpReply {
    /// A result at once.
    pub(crate) fn result(result: Object) -> Self {
        Self::Now(Ok(result))
    }

    /// The same, which counts as under way until it is answered.
    pub(super) fn holding(self, permit: CallPermit) -> Self {
        match self {
            now @ (Self::Now(_) | Self::Tools { .. }) => now,
            Self::Stream(items) => Self::Stream(
                items
                    .inspect(move |_| {
                        let _under_way = &permit;
                    })
                    .boxed(),
            ),
        }
    }

    /// A refusal at once.
    pub(crate) fn refused(refusal: impl Into<McpRefusal>) -> Self {
        Self::Now(Err(refusal.into()))
    }
}

/// One event of a stream.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StreamItem {
    /// The event id, with which a legacy client comes back to what follows.
    pub(crate) event: Option<String>,
    /// What is said.
    pub(crate) said: StreamSaid,
}

impl StreamItem {
    /// An event to which nobody comes back.
    pub(crate) fn plain(said: StreamSaid) -> Self {
        Self { event: None, said }
    }

    /// An event with an id.
    pub(crate) fn at(event: String, said: StreamSaid) -> Self {
        Self { event: Some(event), said }
    }
}

/// What is said on a stream. The session of the request makes the message of it, or none if the
/// client does not want to know.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum StreamSaid {
    /// Nothing, with the time after which a client that lost the stream comes back.
    Prime {
        /// That time.
        retry_ms: u32,
    },
    /// How far the request is; only what is more than before is sent.
    Progress {
        /// How far.
        progress: Number,
        /// Of how much.
        total: Option<Number>,
        /// In words.
        message: Option<String>,
    },
    /// A log of the request.
    Log(McpLog),
    /// A question for a legacy client, under this id.
    Ask {
        /// The id of the ask.
        id: McpId,
        /// What is asked.
        request: Box<McpRequest>,
    },
    /// A question that a legacy client need not answer any more.
    TakeBack {
        /// The id of the ask.
        id: McpId,
        /// Why.
        reason: String,
    },
    /// What `subscriptions/listen` will be told.
    Acknowledge(McpFilter),
    /// A notification: on the stream of a session, of a legacy call, or of an acknowledged listen.
    Notify(Box<McpNotification>),
    /// The end.
    Answer(Result<Object, McpError>),
}
