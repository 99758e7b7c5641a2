//! One connection: what it may send and when, and when it must be sent something.

use std::collections::VecDeque;

use wharf_wire::run_v1::{
    Ack, Control, EventData, EventMessage, FirstFrame, Frame, LaterFrame, Phase, Refusal,
    RunRequest, SteppedMessage, ToolName, UnfitRequest, close, code, decode_first, decode_later,
};

use super::{Limits, Profile, answer};
use crate::{Closed, Incoming, Moment, Outgoing, Pings, Session};

/// How a request for another tool is answered.
const ANOTHER_TOOL: UnfitRequest = UnfitRequest {
    run_id: String::new(),
    code: code::WRONG_TOOL,
    message: "The request is for another tool than the one that is served here.",
};

/// One connection of a tool server.
#[derive(Debug)]
pub struct RunServer {
    first_frame_ms: u64,
    keep_alive_ms: u64,
    frame_bytes_max: usize,
    profile: Profile,
    /// The tool that is served, if the server knows its name.
    tool: Option<ToolName>,
    state: RunServerState,
    pings: Pings,
    events: VecDeque<ServerEvent>,
    outgoing: VecDeque<Outgoing>,
}

#[derive(Debug)]
enum RunServerState {
    /// Nothing came yet.
    Fresh { since_ms: u64 },
    /// A run was named.
    Open { run_id: String, names_tool: bool, acked: bool, sent_ms: u64 },
    /// Nothing counts any more.
    Closed,
}

/// What the peer wants.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// Start or attach to this run.
    Request {
        /// The request.
        request: Box<RunRequest>,
        /// How many bytes it had.
        bytes: usize,
    },
    /// The request cannot be executed; [`RunServer::answer`] says so.
    Unfit(UnfitRequest),
    /// Stop the run of this connection.
    Cancel,
    /// What became of a step that the run's code asked for.
    Stepped(Box<SteppedMessage>),
}

impl RunServer {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(now: Moment, limits: &Limits, profile: Profile) -> Self {
        Self {
            first_frame_ms: limits.first_frame_ms,
            keep_alive_ms: limits.keep_alive_ms,
            frame_bytes_max: limits.frame_bytes_max,
            profile,
            tool: None,
            state: RunServerState::Fresh { since_ms: now.ms },
            pings: Pings::of_a_stranger(),
            events: VecDeque::new(),
            outgoing: VecDeque::new(),
        }
    }

    /// The same connection of a server that knows which tool it serves: a request for another one
    /// is unfit, and who names a tool is told.
    #[must_use]
    pub fn serving(self, tool: Option<ToolName>) -> Self {
        Self { tool, ..self }
    }

    /// Acknowledges the run, which goes before anything else; only once.
    pub fn ack(&mut self, now: Moment) {
        let RunServerState::Open { run_id, names_tool, acked, sent_ms } = &mut self.state else {
            return;
        };
        if std::mem::replace(acked, true) {
            return;
        }
        *sent_ms = now.ms;
        let control = Control::of(run_id.as_str());
        // Peers that name no tool may not know the field.
        let tool = self.tool.clone().filter(|_| *names_tool);
        let ack = Frame::Ack(Ack { control, tool });
        self.outgoing.push_back(Outgoing::Text(self.profile.encode(&ack)));
    }

    /// Answers a request that no run came of, and closes the connection.
    pub fn answer(&mut self, now: Moment, unfit: &UnfitRequest) {
        self.ack(now);
        self.outgoing.push_back(Outgoing::Text(answer(self.profile, unfit)));
        self.close(Refusal::new(close::NORMAL, "the run is over"));
    }

    /// Sends what the run said.
    pub fn say(&mut self, now: Moment, texts: Vec<String>) {
        if let RunServerState::Open { sent_ms, .. } = &mut self.state {
            *sent_ms = now.ms;
            self.outgoing.extend(texts.into_iter().map(Outgoing::Text));
        }
    }

    /// Whether all that was said has been sent, so that more can be.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.outgoing.is_empty()
    }

    /// Closes the connection; what was said before is still sent.
    pub fn close(&mut self, refusal: Refusal) {
        if !self.is_closed() {
            self.state = RunServerState::Closed;
            self.outgoing.push_back(Outgoing::close(refusal.code, refusal.reason));
        }
    }

    /// Closes the connection of a reader that is too slow, who gets nothing more.
    pub fn cut(&mut self) {
        self.outgoing.clear();
        self.close(Refusal::new(close::TRY_AGAIN, "the reader is too slow"));
    }

    fn text(&mut self, now: Moment, text: &str) {
        match &self.state {
            RunServerState::Closed => {}
            RunServerState::Fresh { .. } => match decode_first(text, self.frame_bytes_max) {
                Err(refusal) => self.close(refusal),
                Ok(FirstFrame::Request(request)) => {
                    let (run_id, named) = (request.control.run_id.clone(), &request.control.tool);
                    let fits = self.serves(named.as_ref());
                    // A refusal says enough.
                    self.open(now, run_id.clone(), fits && named.is_some());
                    self.events.push_back(match fits {
                        true => ServerEvent::Request { request, bytes: text.len() },
                        false => ServerEvent::Unfit(UnfitRequest { run_id, ..ANOTHER_TOOL }),
                    });
                }
                Ok(FirstFrame::Unfit(unfit)) => {
                    self.open(now, unfit.run_id.clone(), false);
                    self.events.push_back(ServerEvent::Unfit(unfit));
                }
            },
            RunServerState::Open { run_id, .. } => match decode_later(text, self.frame_bytes_max) {
                Err(refusal) => self.close(refusal),
                Ok(LaterFrame::Unknown) => {}
                Ok(LaterFrame::Cancel(cancel)) => match &cancel.control.run_id {
                    Some(named) if named != run_id => {
                        self.close(Refusal::new(close::PROTOCOL, "another run's id"));
                    }
                    _ => self.events.push_back(ServerEvent::Cancel),
                },
                Ok(LaterFrame::Stepped(stepped)) => match &stepped.control.run_id {
                    Some(named) if named != run_id => {
                        self.close(Refusal::new(close::PROTOCOL, "another run's id"));
                    }
                    _ => self.events.push_back(ServerEvent::Stepped(stepped)),
                },
            },
        }
    }

    fn open(&mut self, now: Moment, run_id: String, names_tool: bool) {
        self.pings.greeted();
        self.state = RunServerState::Open { run_id, names_tool, acked: false, sent_ms: now.ms };
    }

    /// Whether a request that names this tool is meant for the one that is served.
    fn serves(&self, named: Option<&ToolName>) -> bool {
        self.tool.as_ref().zip(named).is_none_or(|(served, named)| served.fits(named))
    }
}

impl Session for RunServer {
    type Event = ServerEvent;

    fn receive(&mut self, now: Moment, incoming: Incoming<'_>) {
        let (code, why) = match incoming {
            Incoming::Text(text) => return self.text(now, text),
            Incoming::Ping if !self.pings.take(now.ms) => (close::POLICY, Pings::TOO_MANY),
            Incoming::Ping | Incoming::Pong => return,
            Incoming::Bytes(_) => (close::UNSUPPORTED, "binary frames are not taken"),
            Incoming::TooLarge => (close::TOO_LARGE, "the frame is too large"),
            Incoming::NotText => (close::INVALID, "not UTF-8"),
            Incoming::NotAFrame => (close::PROTOCOL, "not a WebSocket frame"),
        };
        self.close(Refusal::new(code, why));
    }

    fn end(&mut self, _now: Moment, how: Closed) {
        match how {
            // It may read again when it is told why.
            Closed::NotReading => self.cut(),
            _ => {
                self.state = RunServerState::Closed;
                self.outgoing.clear();
            }
        }
    }

    fn tick(&mut self, now: Moment) {
        if self.deadline().is_none_or(|deadline_ms| now.ms < deadline_ms) {
            return;
        }
        match &mut self.state {
            RunServerState::Open { run_id, sent_ms, .. } => {
                *sent_ms = now.ms;
                // What waits is a sign of life itself.
                if self.outgoing.is_empty() {
                    let control = Control::of(run_id.as_str());
                    let data = EventData::new(Phase::Checkpoint, None);
                    let text = self.profile.encode(&Frame::Event(EventMessage { control, data }));
                    self.outgoing.push_back(Outgoing::Text(text));
                }
            }
            RunServerState::Fresh { .. } | RunServerState::Closed => {
                self.close(Refusal::new(close::POLICY, "no request came in time"));
            }
        }
    }

    fn deadline(&self) -> Option<u64> {
        match &self.state {
            RunServerState::Fresh { since_ms } => {
                Some(since_ms.saturating_add(self.first_frame_ms))
            }
            RunServerState::Open { acked: true, sent_ms, .. } => {
                Some(sent_ms.saturating_add(self.keep_alive_ms))
            }
            RunServerState::Open { .. } | RunServerState::Closed => None,
        }
    }

    fn poll_event(&mut self) -> Option<ServerEvent> {
        self.events.pop_front()
    }

    fn poll_send(&mut self) -> Option<Outgoing> {
        self.outgoing.pop_front()
    }

    fn is_closed(&self) -> bool {
        matches!(self.state, RunServerState::Closed)
    }
}
