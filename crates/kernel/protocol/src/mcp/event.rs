//! What sessions tell their owners.

use wharf_vocab::Object;
use wharf_wire::mcp_v1::{
    McpClientCapabilities, McpError, McpId, McpImplementation, McpLogLevel, McpNotification,
    McpOpen, McpProgress, McpRequest, McpResultType, McpRevision, McpServerCapabilities,
};

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum McpAnswer {
    /// With a result of a kind that the request may have.
    Result {
        /// The kind.
        kind: McpResultType,
        /// The result.
        result: Object,
    },
    /// With an error.
    Error(McpError),
    /// With an answer that cannot be used, for this reason.
    Violation(&'static str),
    /// HTTP refused it with this status and nothing that is an error of the protocol.
    Refused(u16),
    /// It took too long; the peer was told that nobody waits.
    TimedOut,
    /// It was called off, here or there.
    Canceled,
    /// The connection ended.
    Lost,
}

/// Why a call was not made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum McpCallError {
    /// The handshake is not done.
    #[error("the server is not ready")]
    NotReady,
    /// Too many calls wait for an answer.
    #[error("too many calls wait for an answer on this connection")]
    Full,
    /// A call with this id waits already.
    #[error("a call with this id waits for an answer already")]
    Duplicate,
    /// The message is too large.
    #[error("the message is too large for this connection")]
    TooLarge,
    /// The peer's revision has no such request.
    #[error("the agreed revision has no such request")]
    NotSpoken,
    /// The connection has ended.
    #[error("the connection has ended")]
    Ended,
}

/// How a call is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct McpCallOptions {
    /// How long an answer may take.
    pub timeout_ms: Option<u64>,
    /// Whether progress is wanted.
    pub progress: bool,
}

/// Why nobody waits for a request any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpCancel {
    /// The peer says so, and perhaps why.
    Peer(Option<String>),
    /// The connection ended.
    Disconnected,
}

/// What was ignored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct McpCounters {
    /// Answers and progress for calls that are over.
    pub late: u64,
    /// Answers, progress and cancels for what never was.
    pub unknown_ids: u64,
    /// Lines that are no message.
    pub strays: u64,
    /// Everything that breaks the protocol.
    pub violations: u64,
}

/// Why a connection to a server could not be opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum McpOpenError {
    /// It ended while it was asked which era it speaks: a legacy server on a new process.
    #[error("the server ended when it was asked for its era")]
    EndedOnProbe,
    /// It ended during the handshake.
    #[error("the server ended during the handshake")]
    Ended,
    /// It did not answer the handshake in time.
    #[error("the server did not answer the handshake in time")]
    Silent,
    /// It refused the handshake.
    #[error("the server refused the handshake with error {}", .0.code)]
    Refused(McpError),
    /// HTTP refused the handshake; with 400, 404 or 405 it may be a server of 2024-11-05.
    #[error("the server refused the handshake with status {0}")]
    HttpRefused(u16),
    /// It speaks no version that is known.
    #[error("the server speaks no known version")]
    Version,
    /// Its answer cannot be read.
    #[error("the server's answer to the handshake cannot be read")]
    Unreadable,
}

/// A server that is ready.
#[derive(Debug, Clone, PartialEq)]
pub struct McpPeer {
    /// What is spoken.
    pub revision: McpRevision,
    /// What it can do.
    pub capabilities: McpOpen<McpServerCapabilities>,
    /// Who it is, if it says so.
    pub info: Option<McpOpen<McpImplementation>>,
    /// How it is to be used, for models.
    pub instructions: Option<String>,
}

/// What happened at the client's end.
#[derive(Debug, Clone, PartialEq)]
pub enum McpClientEvent {
    /// Calls can be made.
    Ready(Box<McpPeer>),
    /// Calls can never be made.
    Failed(McpOpenError),
    /// A call ended.
    Answered {
        /// The call.
        id: McpId,
        /// How.
        answer: McpAnswer,
    },
    /// A call goes on; each tells more than the one before.
    Progress {
        /// The call.
        id: McpId,
        /// How far it is.
        progress: Box<McpProgress>,
    },
    /// The server asks something.
    Asked {
        /// Names it.
        id: McpId,
        /// What it asks.
        request: Box<McpRequest>,
    },
    /// The server does not want to know any more.
    AskCanceled {
        /// What it asked.
        id: McpId,
        /// Why.
        cancel: McpCancel,
    },
    /// The server tells something.
    Told {
        /// The `subscriptions/listen` it belongs to.
        listen: Option<McpId>,
        /// What it tells.
        notification: Box<McpNotification>,
    },
    /// A line that is no message, shortened.
    Stray(String),
    /// The server gave no sign of life for too long.
    Unhealthy,
}

/// Who makes a request.
#[derive(Debug, Clone, PartialEq)]
pub struct McpCaller {
    /// What is spoken.
    pub revision: McpRevision,
    /// What the client can do.
    pub capabilities: McpOpen<McpClientCapabilities>,
    /// Who it is, if it says so.
    pub info: Option<McpOpen<McpImplementation>>,
    /// Whether it wants progress.
    pub progress: bool,
    /// From which level on it wants logs.
    pub log_level: Option<McpLogLevel>,
}

/// What happened at the server's end.
#[derive(Debug, Clone, PartialEq)]
pub enum McpServerEvent {
    /// The client asks something. `initialize` is answered like everything else.
    Request {
        /// Names it.
        id: McpId,
        /// What it asks.
        request: Box<McpRequest>,
        /// Who asks.
        caller: Box<McpCaller>,
    },
    /// Nobody waits for a request any more; at [`super::McpDoor::Resumed`] also for one that came
    /// over another connection of the client.
    Canceled {
        /// The request.
        id: McpId,
        /// Why.
        cancel: McpCancel,
    },
    /// The client tells something.
    Told(Box<McpNotification>),
    /// Something that the client was asked ended; at [`super::McpDoor::Resumed`] also what it was
    /// asked over another connection, perhaps by another core.
    Answered {
        /// What it was asked.
        id: McpId,
        /// How.
        answer: McpAnswer,
    },
    /// The client is on its way to an answer.
    Progress {
        /// What it was asked.
        id: McpId,
        /// How far it is.
        progress: Box<McpProgress>,
    },
}
