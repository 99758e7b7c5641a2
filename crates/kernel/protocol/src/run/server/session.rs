//! One connection: what it may send and when, and when it must be sent something.

use wharf_wire::run_v1::{
    Ack, Control, Event, EventData, First, Frame, Later, Phase, Refusal, Request, ToolName, Unfit,
    close, code, decode_first, decode_later,
};

use super::Limits;
use crate::Moment;

/// How a request for another tool is answered.
const ANOTHER_TOOL: Unfit = Unfit {
    run_id: String::new(),
    code: code::WRONG_TOOL,
    message: "The request is for another tool than the one that is served here.",
};

/// One connection of a tool server.
#[derive(Debug)]
pub struct Session {
    first_frame_ms: u64,
    keep_alive_ms: u64,
    frame_bytes_max: usize,
    /// The tool that is served, if the server knows its name.
    tool: Option<ToolName>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing came yet.
    Fresh { since_ms: u64 },
    /// A run was named.
    Open { run_id: String, names_tool: bool, acked: bool, sent_ms: u64 },
    /// Nothing counts any more.
    Closed,
}

/// What a frame of the peer means.
#[derive(Debug, Clone, PartialEq)]
pub enum Heard {
    /// Start or attach to this run.
    Request(Request),
    /// Answer with this failure: the request cannot be executed.
    Unfit(Unfit),
    /// Stop the run of this connection.
    Cancel,
    /// Nothing that matters.
    Nothing,
    /// Close the connection.
    Close(Refusal),
}

/// What the time demands.
#[derive(Debug, Clone, PartialEq)]
pub enum Due {
    /// Nothing yet.
    Nothing,
    /// A sign of life.
    KeepAlive(Box<Frame>),
    /// Close the connection.
    Close(Refusal),
}

impl Session {
    /// A connection that was just accepted.
    #[must_use]
    pub fn new(now: Moment, limits: &Limits) -> Self {
        Self {
            first_frame_ms: limits.first_frame_ms,
            keep_alive_ms: limits.keep_alive_ms,
            frame_bytes_max: limits.frame_bytes_max,
            tool: None,
            state: State::Fresh { since_ms: now.ms },
        }
    }

    /// The same connection of a server that knows which tool it serves: a request for another one
    /// is unfit, and who names a tool is told.
    #[must_use]
    pub fn serving(self, tool: Option<ToolName>) -> Self {
        Self { tool, ..self }
    }

    /// The peer sent text.
    pub fn text(&mut self, now: Moment, text: &str) -> Heard {
        match &self.state {
            State::Closed => Heard::Nothing,
            State::Fresh { .. } => match decode_first(text, self.frame_bytes_max) {
                Err(refusal) => self.close(refusal),
                Ok(First::Request(request)) => {
                    let (run_id, named) = (request.control.run_id.clone(), &request.control.tool);
                    let fits = self.serves(named.as_ref());
                    // A refusal says enough.
                    self.open(now, run_id.clone(), fits && named.is_some());
                    match fits {
                        true => Heard::Request(request),
                        false => Heard::Unfit(Unfit { run_id, ..ANOTHER_TOOL }),
                    }
                }
                Ok(First::Unfit(unfit)) => {
                    self.open(now, unfit.run_id.clone(), false);
                    Heard::Unfit(unfit)
                }
            },
            State::Open { run_id, .. } => match decode_later(text, self.frame_bytes_max) {
                Err(refusal) => self.close(refusal),
                Ok(Later::Unknown) => Heard::Nothing,
                Ok(Later::Cancel(cancel)) => match &cancel.control.run_id {
                    Some(named) if named != run_id => {
                        self.close(Refusal::new(close::PROTOCOL, "another run's id"))
                    }
                    _ => Heard::Cancel,
                },
            },
        }
    }

    /// The peer sent bytes.
    pub fn binary(&mut self) -> Heard {
        self.close(Refusal::new(close::UNSUPPORTED, "binary frames are not taken"))
    }

    /// The peer sent a frame over the limit.
    pub fn too_large(&mut self) -> Heard {
        self.close(Refusal::new(close::TOO_LARGE, "the frame is too large"))
    }

    /// The peer sent text that is not UTF-8.
    pub fn garbled(&mut self) -> Heard {
        self.close(Refusal::new(close::INVALID, "not UTF-8"))
    }

    /// The peer broke the rules of WebSockets.
    pub fn broken(&mut self) -> Heard {
        self.close(Refusal::new(close::PROTOCOL, "not a WebSocket frame"))
    }

    /// The acknowledgment of the run, which goes before anything else; only once.
    pub fn ack(&mut self, now: Moment) -> Option<Frame> {
        let State::Open { run_id, names_tool, acked, sent_ms } = &mut self.state else {
            return None;
        };
        if std::mem::replace(acked, true) {
            return None;
        }
        *sent_ms = now.ms;
        let control = Control::of(run_id.as_str());
        // Peers that name no tool may not know the field.
        let tool = self.tool.clone().filter(|_| *names_tool);
        Some(Frame::Ack(Ack { control, tool }))
    }

    /// A frame was sent.
    pub fn sent(&mut self, now: Moment) {
        if let State::Open { sent_ms, .. } = &mut self.state {
            *sent_ms = now.ms;
        }
    }

    /// When [`Self::time`] has to be asked, on the clock that never goes back.
    #[must_use]
    pub fn deadline_ms(&self) -> Option<u64> {
        match &self.state {
            State::Fresh { since_ms } => Some(since_ms.saturating_add(self.first_frame_ms)),
            State::Open { acked: true, sent_ms, .. } => {
                Some(sent_ms.saturating_add(self.keep_alive_ms))
            }
            State::Open { .. } | State::Closed => None,
        }
    }

    /// Time has passed.
    pub fn time(&mut self, now: Moment) -> Due {
        if self.deadline_ms().is_none_or(|deadline_ms| now.ms < deadline_ms) {
            return Due::Nothing;
        }
        match &mut self.state {
            State::Open { run_id, sent_ms, .. } => {
                *sent_ms = now.ms;
                let control = Control::of(run_id.as_str());
                let data = EventData { phase: Phase::Checkpoint, progress: None };
                Due::KeepAlive(Box::new(Frame::Event(Event { control, data })))
            }
            State::Fresh { .. } | State::Closed => {
                self.state = State::Closed;
                Due::Close(Refusal::new(close::POLICY, "no request came in time"))
            }
        }
    }

    fn open(&mut self, now: Moment, run_id: String, names_tool: bool) {
        self.state = State::Open { run_id, names_tool, acked: false, sent_ms: now.ms };
    }

    /// Whether a request that names this tool is meant for the one that is served.
    fn serves(&self, named: Option<&ToolName>) -> bool {
        self.tool.as_ref().zip(named).is_none_or(|(served, named)| served.fits(named))
    }

    fn close(&mut self, refusal: Refusal) -> Heard {
        self.state = State::Closed;
        Heard::Close(refusal)
    }
}
