//! The core's end of a connection to an agent.
//!
//! One file per concern, each with what the peer may send about it and what the owner may want:
//! handshake, registration, calls, streams, results, health, additions, the end. `receive.rs`
//! decides which of them a frame belongs to.

mod additions;
mod calls;
mod close;
mod config;
mod event;
mod handshake;
mod health;
mod receive;
mod register;
mod result;
mod schema;
mod steps;
mod stream;

use std::collections::VecDeque;
use std::fmt;

use wharf_wire::agent_v1::{CallId, CoreMessage, FrameDecoder, MessageId};

use crate::agent::outbox::{Draft, Outbox, SendError};
use crate::agent::violation::{Breach, Violation, ViolationWindow};
use crate::{Closed, Incoming, Moment, Outgoing, Session};

use additions::OpenRequests;
use calls::Calls;
use close::Drain;
use handshake::CoreEndPhase;
use health::HealthWatch;
use register::ToolRegister;

pub use config::{CoreConfig, CoreLimits, OversizePolicy, SessionRules};
pub use event::{
    Additions, AdmissionRefusal, CallRequest, CancelCall, CoreClose, CoreEvent, HandshakeFailure,
    Health, HelloReceived, InvokeReceived,
};
pub use schema::{AnySchema, SchemaCheck};

/// The core's end of a connection to an agent.
pub struct CoreSession {
    config: CoreConfig,
    schemas: Box<dyn SchemaCheck>,
    phase: CoreEndPhase,
    frames: FrameDecoder,
    outbox: Outbox<CoreMessage>,
    events: VecDeque<CoreEvent>,
    tools: ToolRegister,
    calls: Calls,
    health: HealthWatch,
    open: OpenRequests,
    drain: Option<Drain>,
    violations: ViolationWindow,
}

impl CoreSession {
    /// A session on a connection that has just been accepted.
    #[must_use]
    pub fn new(now: Moment, config: CoreConfig, schemas: impl SchemaCheck + 'static) -> Self {
        let limits = &config.limits;
        Self {
            phase: CoreEndPhase::Hello { deadline_ms: now.ms.saturating_add(limits.handshake_ms) },
            frames: FrameDecoder::new(limits.hello_frame_bytes_max),
            outbox: Outbox::new(config.id_prefix.clone(), limits.frame_bytes_max),
            events: VecDeque::new(),
            tools: ToolRegister::default(),
            calls: Calls::new(limits.tombstones_max),
            health: HealthWatch::new(limits.heartbeat_interval_ms),
            open: OpenRequests::default(),
            drain: None,
            violations: ViolationWindow::new(limits.violations_per_minute_max),
            schemas: Box::new(schemas),
            config,
        }
    }

    /// Whether the session has begun and is not over.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.phase, CoreEndPhase::Live(_))
    }

    /// Whether a new call would be taken, as far as the agent's health and end are concerned.
    #[must_use]
    pub fn takes_calls(&self) -> bool {
        self.is_live() && self.drain.is_none() && self.health() != Health::Unhealthy
    }

    /// The calls that are open.
    pub fn open_calls(&self) -> impl Iterator<Item = &CallId> {
        self.calls.ids()
    }

    /// The ids of the tools that can be called.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.tools.ids()
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.outbox.queued_bytes()
    }

    fn limits(&self) -> &CoreLimits {
        &self.config.limits
    }

    /// Tells the owner something. After the end there is nothing more to tell.
    fn tell(&mut self, event: CoreEvent) {
        if !self.is_closed() {
            self.events.push_back(event);
        }
    }

    fn send(&mut self, now: Moment, draft: Draft<CoreMessage>) -> Result<MessageId, SendError> {
        Ok(self.outbox.send(now, draft)?)
    }

    /// Sends what a peer provoked; false when it fits no frame. A peer that provokes answers
    /// without reading them is cut off, since otherwise it would fill the core's memory.
    fn reply(&mut self, now: Moment, draft: Draft<CoreMessage>) -> bool {
        if self.outbox.queued_bytes() > self.limits().outbox_bytes_max.saturating_mul(2) {
            self.close(CoreClose::NotReading);
            return true;
        }
        self.outbox.send(now, draft).is_ok()
    }

    /// Counts a violation, and ends the session when there were too many.
    fn violation(&mut self, now: Moment, breach: Breach, call_id: Option<CallId>) {
        self.tell(CoreEvent::Violation(Violation { breach, call_id }));
        if !self.is_closed() && self.violations.record(now.ms) {
            self.say_goodbye(now, "protocol.violations");
            self.close(CoreClose::TooManyViolations);
        }
    }
}

impl Session for CoreSession {
    type Event = CoreEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        let Incoming::Bytes(bytes) = incoming else { return };
        if self.is_closed() {
            return;
        }
        self.check_handshake_deadline(now);
        self.frames.push(bytes);
        self.read_frames(now);
    }

    fn end(&mut self, _now: Moment, _how: Closed) {
        let inside_frame = self.frames.finish().is_err();
        self.close(match self.drain {
            Some(Drain { by_agent: true, .. }) if !inside_frame && self.calls.is_empty() => {
                CoreClose::AgentGoodbye
            }
            _ => CoreClose::Disconnected { inside_frame },
        });
    }

    fn tick(&mut self, now: Moment) {
        self.check_handshake_deadline(now);
        if self.is_live() {
            self.check_calls(now);
            self.check_health(now);
            self.ping_when_idle(now);
            self.check_drain(now);
        }
    }

    fn deadline(&self) -> Option<u64> {
        match self.phase {
            CoreEndPhase::Hello { deadline_ms } => Some(deadline_ms),
            CoreEndPhase::Deciding(_) | CoreEndPhase::Closed => None,
            CoreEndPhase::Live(_) => {
                let drain = self.drain.as_ref().and_then(Drain::deadline_ms);
                let ping = self.ping_due_ms();
                [Some(self.health_deadline()), self.calls.next_deadline(), drain, ping]
                    .into_iter()
                    .flatten()
                    .min()
            }
        }
    }

    fn poll_event(&mut self) -> Option<CoreEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.outbox.poll().map(Outgoing::Bytes)
    }

    fn is_closed(&self) -> bool {
        matches!(self.phase, CoreEndPhase::Closed)
    }

    /// False while the owner has a hello to decide on, since nothing that follows is looked at
    /// before, and after the end.
    fn wants_input(&self) -> bool {
        matches!(self.phase, CoreEndPhase::Hello { .. } | CoreEndPhase::Live(_))
    }
}

impl fmt::Debug for CoreSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CoreSession")
            .field("session_id", &self.config.session_id)
            .field("phase", &self.phase)
            .field("frames", &self.frames)
            .field("outbox", &self.outbox)
            .field("open_calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
