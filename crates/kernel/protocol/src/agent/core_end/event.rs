//! What a core's session tells its owner, and what its owner tells it.

use wharf_vocab::{Code, Fault, Micro, Object, StepName};
use wharf_wire::agent_v1::{
    Actor, AgentNotice, CallContext, CallId, Caller, Chunk, Echo, HealthStatus, IdempotencyPromise,
    InvokeId, MessageId, QuestionAsk, QuestionId, Sdk, SessionToken, StepLocal, ToolDefinition,
};

use crate::agent::outcome::CallEnd;
use crate::agent::violation::{Breach, Violation};

/// What a core's session tells its owner.
#[derive(Debug, Clone, PartialEq)]
pub enum CoreEvent {
    /// An agent said hello. Nothing else it sends is looked at before the owner has called
    /// `accept` or `refuse`.
    Hello(Box<HelloReceived>),
    /// Tools were registered; the agent has been told.
    ToolsRegistered {
        /// Definitions that are new or changed.
        added: Vec<ToolDefinition>,
        /// Ids that are no longer offered.
        removed: Vec<String>,
        /// Ids that were not taken, with the reason.
        rejected: Vec<(String, Fault)>,
    },
    /// Tools were removed; the agent has been told.
    ToolsUnregistered {
        /// Their ids.
        removed: Vec<String>,
    },
    /// A call gave a piece of output.
    Chunk {
        /// The call.
        call_id: CallId,
        /// The place of the piece.
        seq: u64,
        /// The first and the last place that are missing before it.
        gap: Option<(u64, u64)>,
        /// The piece.
        chunk: Chunk,
    },
    /// A call has cost this much so far, as the agent says. It may also come for a call that the
    /// session has given up on.
    Cost {
        /// The call.
        call_id: CallId,
        /// What it has cost so far.
        so_far_micro: Micro,
    },
    /// A call is over. Every call that was sent ends with exactly one of these.
    CallEnded {
        /// The call.
        call_id: CallId,
        /// How.
        end: Box<CallEnd>,
    },
    /// A result came for a call that the session had given up on.
    LateResult {
        /// The call.
        call_id: CallId,
        /// What it cost, as the agent says.
        cost_micro: Micro,
    },
    /// The agent received a cancel.
    CancelAcknowledged {
        /// The call.
        call_id: CallId,
        /// Whether it will try.
        accepted: bool,
    },
    /// A valid heartbeat came.
    Heartbeat {
        /// How long the agent has been up.
        uptime_ms: u64,
        /// How many calls it works on, as it says.
        inflight_calls: u64,
        /// How it feels.
        status: HealthStatus,
        /// Figures of its own.
        details: Object,
    },
    /// Heartbeats have been missing for so long that the agent counts as unhealthy.
    HeartbeatMissed {
        /// How long it has been silent.
        silent_ms: u64,
    },
    /// A ping has not been answered in time.
    PingLost,
    /// A ping was answered.
    Pong {
        /// The ping.
        ping_id: MessageId,
        /// How long it took.
        elapsed_ms: u64,
    },
    /// The agent's health is another than before.
    HealthChanged(Health),
    /// The agent wants to call a tool; answer with `invoke_chunk` and `invoke_result`.
    Invoke(Box<InvokeReceived>),
    /// The agent no longer wants the answer of a call it made; it still gets a result.
    InvokeCanceled {
        /// The agent's id for the call.
        invoke_id: InvokeId,
    },
    /// The agent asks a question; answer with `answer`. The call's timeout stands still.
    Question(Box<QuestionAsk>),
    /// The call that asked is over; nobody waits for the answer any more.
    QuestionWithdrawn {
        /// The agent's id for the question.
        ask_id: QuestionId,
    },
    /// The agent asks for a value of a call's local code, or keeps one; answer with `step_kept`.
    StepLocal(Box<StepLocal>),
    /// The agent tells something.
    Notice(AgentNotice),
    /// The agent reports that something it was sent was wrong.
    PeerError {
        /// The message it complains about.
        in_reply_to: Option<MessageId>,
        /// What was wrong.
        fault: Fault,
    },
    /// The agent wants to end; it gets no new calls.
    Goodbye {
        /// Why, as it says.
        reason: String,
    },
    /// The agent did something wrong.
    Violation(Violation),
    /// The session is over. This is the last event.
    Closed(CoreClose),
}

/// What an agent said in its hello.
#[derive(Debug, Clone, PartialEq)]
pub struct HelloReceived {
    /// The token; never empty.
    pub token: SessionToken,
    /// The id it claims.
    pub agent_id: String,
    /// Its version.
    pub agent_version: String,
    /// Whether the version is a semantic one; if not, that is worth a warning.
    pub agent_version_is_semver: bool,
    /// The hash of its manifest.
    pub manifest_hash: Option<String>,
    /// All capabilities it declared.
    pub capabilities: Vec<String>,
    /// Which additions it declared.
    pub additions: Additions,
    /// With the capability `idempotency`: how far its memory of keys goes.
    pub idempotency: Option<IdempotencyPromise>,
    /// What it was built with; for display only.
    pub sdk: Option<Sdk>,
}

/// Parts of the protocol beyond version 1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Additions {
    /// The agent may call tools through the core.
    pub invoke: bool,
    /// The agent may ask questions.
    pub ask: bool,
    /// The agent may send notices.
    pub notify: bool,
    /// The calls that the agent makes may be steps of durable code, and it may keep values.
    pub steps: bool,
}

impl Additions {
    /// All of them.
    pub const ALL: Self = Self { invoke: true, ask: true, notify: true, steps: true };

    pub(in crate::agent) fn declared(capabilities: &[String]) -> Self {
        let has = |name: &str| capabilities.iter().any(|capability| capability == name);
        Self { invoke: has("invoke"), ask: has("ask"), notify: has("notify"), steps: has("steps") }
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self {
            invoke: self.invoke && other.invoke,
            ask: self.ask && other.ask,
            notify: self.notify && other.notify,
            steps: self.steps && other.steps,
        }
    }

    pub(super) fn names(self) -> Vec<String> {
        let all = [
            ("invoke", self.invoke),
            ("ask", self.ask),
            ("notify", self.notify),
            ("steps", self.steps),
        ];
        all.into_iter().filter(|(_, granted)| *granted).map(|(name, _)| name.to_owned()).collect()
    }
}

/// Why an owner does not let an agent in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdmissionRefusal {
    /// Token, launch, agent id, user or process are not right. The agent is not told which.
    Unauthorized,
    /// The agent is connected already.
    Conflict,
    /// The manifest is another than the approved one.
    ManifestDrift,
}

/// How well an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Well.
    Healthy,
    /// It says that it is not well, and still gets calls.
    Degraded,
    /// It gets no calls.
    Unhealthy,
}

/// A call that the owner wants to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRequest {
    /// A fresh id.
    pub call_id: CallId,
    /// A tool that the session has registered.
    pub tool_id: String,
    /// Its arguments.
    pub input: Object,
    /// The logical request; the same for all attempts of a run.
    pub request_id: String,
    /// The session, workflow or mission behind it.
    pub correlation_id: Option<String>,
    /// What immediately caused it, such as a directive.
    pub causation_id: Option<String>,
    /// The trace it belongs to.
    pub traceparent: Option<String>,
    /// Who is behind it.
    pub actor: Option<Actor>,
    /// Who calls.
    pub caller: Option<Caller>,
    /// What surrounds it; free of secrets.
    pub context: Option<CallContext>,
    /// How long it may take; the session ends it then.
    pub timeout_ms: Option<u64>,
    /// The key under which it is executed once.
    pub idempotency_key: Option<String>,
    /// The largest output, when the tool has a limit of its own.
    pub output_bytes_max: Option<u64>,
    /// Bytes it may stream, when that is less than the session's limit.
    pub stream_bytes_max: Option<u64>,
}

impl CallRequest {
    /// A call with the least it needs.
    #[must_use]
    pub fn new(call_id: CallId, tool_id: impl Into<String>, request_id: impl Into<String>) -> Self {
        Self {
            call_id,
            tool_id: tool_id.into(),
            input: Object::new(),
            request_id: request_id.into(),
            correlation_id: None,
            causation_id: None,
            traceparent: None,
            actor: None,
            caller: None,
            context: None,
            timeout_ms: None,
            idempotency_key: None,
            output_bytes_max: None,
            stream_bytes_max: None,
        }
    }
}

/// How a call is to be canceled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CancelCall {
    /// Why, free of secrets.
    pub reason: Option<String>,
    /// How long the agent may take; the session's default when absent.
    pub deadline_ms: Option<u64>,
}

/// A call that an agent wants to make.
#[derive(Debug, Clone, PartialEq)]
pub struct InvokeReceived {
    /// The agent's id for it.
    pub invoke_id: InvokeId,
    /// The open call on whose behalf it calls.
    pub parent_call_id: CallId,
    /// The tool.
    pub tool_id: String,
    /// The arguments.
    pub input: Object,
    /// How long it may take.
    pub timeout_ms: Option<u64>,
    /// The key under which it is executed once.
    pub idempotency_key: Option<String>,
    /// Which step of its call's durable code it is, if it is one.
    pub step: Option<StepName>,
    /// What it belongs to, as the agent says.
    pub echo: Echo,
}

/// Why a session is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoreClose {
    /// It never began.
    Handshake(HandshakeFailure),
    /// The owner said goodbye, and all calls are over.
    Goodbye,
    /// The agent said goodbye, and all calls are over.
    AgentGoodbye,
    /// The connection ended.
    Disconnected {
        /// Whether it ended inside a frame.
        inside_frame: bool,
    },
    /// The agent did something that cannot be tolerated.
    Violation(Breach),
    /// The agent did too much wrong within a minute.
    TooManyViolations,
    /// Heartbeats have been missing for too long: the process is to be killed.
    HeartbeatsLost,
    /// The agent does not read what it is sent.
    NotReading,
}

/// Why a session never began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeFailure {
    /// The first message was something else.
    NotHello,
    /// The first frame was no message, too large, or of the wrong version.
    Breach(Breach),
    /// A field of the hello is missing or wrong.
    InvalidHello,
    /// No hello was complete in time.
    Timeout,
    /// The hello had no token.
    NoToken,
    /// No version in common.
    Version,
    /// The owner said no.
    Refused(AdmissionRefusal),
    /// Far too much came before the owner had decided.
    Flood,
}

impl HandshakeFailure {
    /// The code that names it.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::NotHello | Self::Flood => Code::ProtocolUnexpectedMessage,
            Self::Breach(breach) => breach.code(),
            Self::InvalidHello => Code::ProtocolInvalidEnvelope,
            Self::Timeout => Code::ProtocolHandshakeTimeout,
            Self::Version => Code::ProtocolUnsupportedVersion,
            Self::Refused(AdmissionRefusal::Conflict) => Code::ProtocolSessionConflict,
            Self::NoToken
            | Self::Refused(AdmissionRefusal::Unauthorized | AdmissionRefusal::ManifestDrift) => {
                Code::ProtocolUnauthorized
            }
        }
    }
}
