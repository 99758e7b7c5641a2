//! One connection: what it may send and when, and when it must be sent something.

use wharf_wire::run_v1::{
    Ack, Control, Event, EventData, First, Frame, Later, Phase, Refusal, Request, Unfit, close,
    decode_first, decode_later,
};

use super::Limits;
use crate::Moment;

/// One connection of a tool server.
#[derive(Debug)]
pub struct Session {
    first_frame_ms: u64,
    keep_alive_ms: u64,
    frame_bytes_max: usize,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Nothing came yet.
    Fresh { since_ms: u64 },
    /// A run was named.
    Open { run_id: String, acked: bool, sent_ms: u64 },
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
    KeepAlive(Frame),
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
            state: State::Fresh { since_ms: now.ms },
        }
    }

    /// The peer sent text.
    pub fn text(&mut self, now: Moment, text: &str) -> Heard {
        match &self.state {
            State::Closed => Heard::Nothing,
            State::Fresh { .. } => match decode_first(text, self.frame_bytes_max) {
                Err(refusal) => self.close(refusal),
                Ok(First::Request(request)) => {
                    self.open(now, &request.control.run_id);
                    Heard::Request(request)
                }
                Ok(First::Unfit(unfit)) => {
                    self.open(now, &unfit.run_id);
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
        let State::Open { run_id, acked, sent_ms } = &mut self.state else { return None };
        if std::mem::replace(acked, true) {
            return None;
        }
        *sent_ms = now.ms;
        let control = Control::of(run_id.as_str());
        Some(Frame::Ack(Ack { control }))
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
                Due::KeepAlive(Frame::Event(Event { control, data }))
            }
            State::Fresh { .. } | State::Closed => {
                self.state = State::Closed;
                Due::Close(Refusal::new(close::POLICY, "no request came in time"))
            }
        }
    }

    fn open(&mut self, now: Moment, run_id: &str) {
        let run_id = run_id.to_owned();
        self.state = State::Open { run_id, acked: false, sent_ms: now.ms };
    }

    fn close(&mut self, refusal: Refusal) -> Heard {
        self.state = State::Closed;
        Heard::Close(refusal)
    }
}
