//! The agent's end of a connection to a core.
//!
//! One file per concern: the handshake, tools, calls, additions, the end. `receive.rs` decides
//! which of them a frame belongs to. Heartbeats and pongs are sent by the session itself, so an
//! agent is alive as long as its owner keeps the session's deadlines, whatever its tools do.

mod additions;
mod calls;
mod close;
mod config;
mod event;
mod handshake;
mod receive;
mod steps;
mod tools;

use std::collections::VecDeque;
use std::fmt;

use wharf_vocab::Object;
use wharf_wire::agent_v1::{
    AgentMessage, CallId, FrameDecoder, HealthStatus, Heartbeat, MessageId,
};

use crate::agent::outbox::{Draft, Outbox, SendError};
use crate::agent::violation::{Breach, Violation, ViolationWindow};
use crate::{Closed, Incoming, Moment, Outgoing, Session};

use additions::WaitingRequests;
use calls::Calls;
use handshake::AgentEndPhase;
use tools::OfferedTools;

pub use config::{AgentConfig, AgentLimits, IdempotencyOffer};
pub use event::{
    AgentClose, AgentEvent, CallReceived, InvokeEnded, InvokeRequest, KeptValue, ReportResult,
};

/// The agent's end of a connection to a core.
pub struct AgentSession {
    limits: AgentLimits,
    started_ms: u64,
    phase: AgentEndPhase,
    frames: FrameDecoder,
    outbox: Outbox<AgentMessage>,
    events: VecDeque<AgentEvent>,
    tools: OfferedTools,
    calls: Calls,
    waiting: WaitingRequests,
    status: (HealthStatus, Option<Object>),
    /// Set once one side has said goodbye: when the open calls are cut off.
    drain_until_ms: Option<u64>,
    violations: ViolationWindow,
}

impl AgentSession {
    /// A session on a connection that has just been made; the hello waits to be written.
    #[must_use]
    pub fn new(now: Moment, config: AgentConfig) -> Self {
        let limits = config.limits.clone();
        let mut session = Self {
            started_ms: now.ms,
            phase: AgentEndPhase::Greeting {
                deadline_ms: now.ms.saturating_add(limits.welcome_ms),
            },
            frames: FrameDecoder::new(limits.frame_bytes_max),
            outbox: Outbox::new(config.id_prefix.clone(), limits.frame_bytes_max),
            events: VecDeque::new(),
            tools: OfferedTools::default(),
            calls: Calls::new(limits.finished_calls_max),
            waiting: WaitingRequests::default(),
            status: (HealthStatus::Ok, None),
            drain_until_ms: None,
            violations: ViolationWindow::new(limits.violations_per_minute_max),
            limits,
        };
        session.say_hello(now, config);
        session
    }

    /// Says how the agent is; the next heartbeat carries it.
    pub fn set_status(&mut self, status: HealthStatus, details: Option<Object>) {
        self.status = (status, details);
    }

    /// Whether the agent was let in and the session is not over.
    #[must_use]
    pub fn is_live(&self) -> bool {
        matches!(self.phase, AgentEndPhase::Live(_))
    }

    /// The calls that have no result yet.
    pub fn open_calls(&self) -> impl Iterator<Item = &CallId> {
        self.calls.ids()
    }

    /// Bytes that wait to be written.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.outbox.queued_bytes()
    }

    /// Tells the owner something. After the end there is nothing more to tell.
    fn tell(&mut self, event: AgentEvent) {
        if !self.is_closed() {
            self.events.push_back(event);
        }
    }

    fn send(&mut self, now: Moment, draft: Draft<AgentMessage>) -> Result<MessageId, SendError> {
        if !self.is_live() {
            return Err(SendError::NotLive);
        }
        Ok(self.outbox.send(now, draft)?)
    }

    /// Sends what the core provoked; false when it fits no frame. A core that provokes answers
    /// without reading them is left.
    fn reply(&mut self, now: Moment, draft: Draft<AgentMessage>) -> bool {
        if self.outbox.queued_bytes() > self.limits.outbox_bytes_max.saturating_mul(2) {
            self.close(AgentClose::NotReading);
            return true;
        }
        self.outbox.send(now, draft).is_ok()
    }

    fn violation(&mut self, now: Moment, breach: Breach, call_id: Option<CallId>) {
        self.tell(AgentEvent::Violation(Violation { breach, call_id }));
        if !self.is_closed() && self.violations.record(now.ms) {
            self.close(AgentClose::TooManyViolations);
        }
    }

    fn check_heartbeat(&mut self, now: Moment) {
        let AgentEndPhase::Live(peer) = &mut self.phase else {
            return;
        };
        if peer.heartbeat_due_ms > now.ms {
            return;
        }
        peer.heartbeat_due_ms = now.ms.saturating_add(peer.heartbeat_interval_ms);
        let (status, details) = self.status.clone();
        let heartbeat = Heartbeat {
            session_id: peer.session_id.clone(),
            uptime_ms: now.ms.saturating_sub(self.started_ms),
            inflight_calls: self.calls.len() as u64,
            status,
            details,
        };
        self.reply(now, Draft::new(heartbeat));
    }
}

impl Session for AgentSession {
    type Event = AgentEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        if let (Incoming::Bytes(bytes), false) = (incoming, self.is_closed()) {
            self.frames.push(bytes);
            self.read_frames(now);
        }
    }

    fn end(&mut self, _now: Moment, _how: Closed) {
        let inside_frame = self.frames.finish().is_err();
        self.close(AgentClose::Disconnected { inside_frame });
    }

    fn tick(&mut self, now: Moment) {
        if matches!(self.phase, AgentEndPhase::Greeting { deadline_ms } if deadline_ms <= now.ms) {
            self.close(AgentClose::WelcomeTimeout);
        }
        if self.is_live() {
            self.check_calls(now);
            self.check_heartbeat(now);
            self.check_drain(now);
        }
    }

    fn deadline(&self) -> Option<u64> {
        match &self.phase {
            AgentEndPhase::Greeting { deadline_ms } => Some(*deadline_ms),
            AgentEndPhase::Closed => None,
            AgentEndPhase::Live(peer) => {
                [Some(peer.heartbeat_due_ms), self.calls.next_deadline(), self.drain_until_ms]
                    .into_iter()
                    .flatten()
                    .min()
            }
        }
    }

    fn poll_event(&mut self) -> Option<AgentEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.outbox.poll().map(Outgoing::Bytes)
    }

    fn is_closed(&self) -> bool {
        matches!(self.phase, AgentEndPhase::Closed)
    }
}

impl fmt::Debug for AgentSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentSession")
            .field("phase", &self.phase)
            .field("frames", &self.frames)
            .field("outbox", &self.outbox)
            .field("open_calls", &self.calls.len())
            .finish_non_exhaustive()
    }
}
