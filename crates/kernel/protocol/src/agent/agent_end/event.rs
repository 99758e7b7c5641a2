//! What an agent's session tells its owner, and what its owner tells it.

use serde_json::Value;
use wharf_vocab::{Fault, Object, StepName};
use wharf_wire::agent_v1::{
    Actor, CallContext, CallId, Caller, Chunk, CoreGoodbye, Echo, InvokeId, MessageId,
    QuestionAnswer, Server, SessionId,
};

use crate::agent::core_end::Additions;
use crate::agent::outcome::CallOutcome;
use crate::agent::violation::{Breach, Violation};

/// What an agent's session tells its owner.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEvent {
    /// The core let the agent in. Now is the time to register tools.
    Welcomed {
        /// The session.
        session_id: SessionId,
        /// The core.
        server: Server,
        /// The additions that may be used.
        granted: Additions,
    },
    /// The core answered a registration.
    Registered {
        /// The registration.
        in_reply_to: Option<MessageId>,
        /// The ids that were taken.
        registered: Vec<String>,
        /// The others, each with the reason.
        rejected: Vec<(String, Fault)>,
    },
    /// The core removed tools.
    Unregistered {
        /// Their ids.
        removed: Vec<String>,
    },
    /// Execute a tool; end it with `finish`.
    Call(Box<CallReceived>),
    /// Stop executing a tool; end it with `finish` all the same.
    Cancel {
        /// The call.
        call_id: CallId,
        /// Why.
        reason: Option<String>,
        /// How long it may take to stop.
        deadline_ms: Option<u64>,
    },
    /// A call took longer than the agent allows; it has been answered, stop working on it.
    TimedOut {
        /// The call.
        call_id: CallId,
    },
    /// A call that the agent made gave a piece of output.
    InvokeChunk {
        /// The agent's id for the call.
        invoke_id: InvokeId,
        /// The place of the piece.
        seq: u64,
        /// The piece.
        chunk: Chunk,
    },
    /// A call that the agent made is over.
    InvokeEnded(Box<InvokeEnded>),
    /// A question was answered.
    Answered(Box<QuestionAnswer>),
    /// What became of a value of a call's local code.
    StepKept(Box<KeptValue>),
    /// The core wants to end: finish or stop what is under way.
    Goodbye(CoreGoodbye),
    /// The core reports that something it was sent was wrong.
    PeerError {
        /// The message it complains about.
        in_reply_to: Option<MessageId>,
        /// What was wrong.
        fault: Fault,
    },
    /// The core did something wrong.
    Violation(Violation),
    /// The session is over. This is the last event; stop all work and exit.
    Closed(AgentClose),
}

/// A call to execute.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReceived {
    /// The call's id.
    pub call_id: CallId,
    /// The tool, one that was registered.
    pub tool_id: String,
    /// Its arguments.
    pub input: Object,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// The key under which it is executed once.
    pub idempotency_key: Option<String>,
    /// Who calls: for display, never for authorisation.
    pub caller: Option<Caller>,
    /// Who is behind it: for display, never for authorisation.
    pub actor: Option<Actor>,
    /// What surrounds it.
    pub context: Option<CallContext>,
    /// What it belongs to; the session returns it on every message of the call.
    pub echo: Echo,
}

/// How a call that the agent made ended.
#[derive(Debug, Clone, PartialEq)]
pub struct InvokeEnded {
    /// The agent's id for the call.
    pub invoke_id: InvokeId,
    /// How it ended.
    pub outcome: CallOutcome,
}

/// What became of a value of a call's local code.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptValue {
    /// The call.
    pub call_id: CallId,
    /// The name.
    pub step: StepName,
    /// The value that counts, nothing if none is kept yet, or why none can be.
    pub value: Result<Option<Value>, Fault>,
}

/// A call that the agent wants to make through the core.
#[derive(Debug, Clone, PartialEq)]
pub struct InvokeRequest {
    /// A fresh id.
    pub invoke_id: InvokeId,
    /// The open call on whose behalf it is made.
    pub parent_call_id: CallId,
    /// The tool.
    pub tool_id: String,
    /// Its arguments.
    pub input: Object,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// The key under which it is executed once.
    pub idempotency_key: Option<String>,
    /// Which step of the call's durable code it is, if it is one.
    pub step: Option<StepName>,
}

/// What became of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportResult {
    /// It was sent.
    Sent,
    /// It fits no frame; the call failed with `tool.output_too_large` instead.
    TooLarge,
}

/// Why a session is over.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentClose {
    /// The core did not let the agent in. Trying again with the same token is pointless.
    Refused(Fault),
    /// The first message was no usable welcome.
    BadWelcome,
    /// No welcome came in time.
    WelcomeTimeout,
    /// One side said goodbye, and every call has been answered.
    Goodbye,
    /// The connection ended.
    Disconnected {
        /// Whether it ended inside a frame.
        inside_frame: bool,
    },
    /// The core did something that cannot be tolerated.
    Violation(Breach),
    /// The core did too much wrong within a minute.
    TooManyViolations,
    /// The core does not read what it is sent.
    NotReading,
}

impl AgentClose {
    /// Whether the process should end with success.
    #[must_use]
    pub fn is_orderly(&self) -> bool {
        matches!(self, Self::Goodbye | Self::Disconnected { inside_frame: false })
    }
}
