//! What a peer did wrong, without any of its content, and when it has been too much.

use std::collections::VecDeque;

use wharf_vocab::Code;
use wharf_wire::agent_v1::{CallId, FrameError, Malformed};

/// One thing a peer did wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What it was.
    pub breach: Breach,
    /// The call it was about, if that call is known to this end.
    pub call_id: Option<CallId>,
}

/// A kind of thing a peer can do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Breach {
    /// A frame was no message at all.
    Malformed(Malformed),
    /// A frame was larger than allowed.
    FrameTooLarge {
        /// What its prefix said.
        announced: u64,
        /// What was allowed.
        limit: u32,
    },
    /// A frame was empty.
    FrameEmpty,
    /// A field was missing or wrong.
    Field,
    /// A message had another version than the one agreed on.
    WrongVersion,
    /// A message came from the wrong end.
    WrongDirection,
    /// A message had an unknown type, and this end does not tolerate that.
    UnknownType,
    /// A message came at the wrong moment or without its capability.
    Unexpected,
    /// A message of a call did not return what it has to return.
    Echo,
    /// A stream's number was zero, repeated or went back.
    StreamOrder,
    /// A stream's number left something out.
    StreamGap,
    /// A stream went on after it had said that it was done.
    StreamAfterDone,
    /// A stream went on after the result.
    StreamAfterResult,
    /// A message named a call that this end does not know.
    UnknownCall,
    /// A call had a second result.
    SecondResult,
    /// A result could not be read.
    Result,
    /// A result succeeded and carried an error.
    Contradiction,
    /// A cost was not a whole number of micro-dollars.
    Cost,
    /// A heartbeat named another session.
    HeartbeatSession,
    /// Heartbeats came far too often.
    HeartbeatFlood,
    /// A pong answered no ping.
    Pong,
    /// An id was used for a second thing while the first was open.
    Duplicate,
    /// Notices came too often.
    NoticeFlood,
}

impl Breach {
    /// The code that names it to the peer and in the audit.
    #[must_use]
    pub fn code(self) -> Code {
        match self {
            Self::Malformed(_) | Self::FrameEmpty => Code::ProtocolMalformed,
            Self::FrameTooLarge { .. } => Code::ProtocolFrameTooLarge,
            Self::Field => Code::ProtocolInvalidEnvelope,
            Self::WrongVersion => Code::ProtocolUnsupportedVersion,
            Self::UnknownType => Code::ProtocolUnknownType,
            Self::WrongDirection | Self::Unexpected | Self::Pong => Code::ProtocolUnexpectedMessage,
            Self::NoticeFlood | Self::HeartbeatFlood => Code::ToolRateLimited,
            Self::Duplicate => Code::ToolDuplicateCall,
            Self::Echo
            | Self::StreamOrder
            | Self::StreamGap
            | Self::StreamAfterDone
            | Self::StreamAfterResult
            | Self::UnknownCall
            | Self::SecondResult
            | Self::Result
            | Self::Contradiction
            | Self::Cost
            | Self::HeartbeatSession => Code::ToolProtocolViolation,
        }
    }

    /// A stable word for it, for counters and the audit.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Malformed(_) => "malformed",
            Self::FrameTooLarge { .. } => "frame_too_large",
            Self::FrameEmpty => "frame_empty",
            Self::Field => "field",
            Self::WrongVersion => "wrong_version",
            Self::WrongDirection => "wrong_direction",
            Self::UnknownType => "unknown_type",
            Self::Unexpected => "unexpected",
            Self::Echo => "echo",
            Self::StreamOrder => "stream_order",
            Self::StreamGap => "stream_gap",
            Self::StreamAfterDone => "stream_after_done",
            Self::StreamAfterResult => "stream_after_result",
            Self::UnknownCall => "unknown_call",
            Self::SecondResult => "second_result",
            Self::Result => "result",
            Self::Contradiction => "contradiction",
            Self::Cost => "cost",
            Self::HeartbeatSession => "heartbeat_session",
            Self::HeartbeatFlood => "heartbeat_flood",
            Self::Pong => "pong",
            Self::Duplicate => "duplicate",
            Self::NoticeFlood => "notice_flood",
        }
    }

    /// What the peer is told about it, when it is told.
    pub(super) fn message(self) -> String {
        match self {
            Self::Malformed(_) | Self::FrameEmpty => {
                "The frame does not hold exactly one well-formed JSON object.".to_owned()
            }
            Self::FrameTooLarge { announced, limit } => {
                format!("The frame has {announced} bytes and the limit is {limit}.")
            }
            Self::WrongVersion => {
                "The message has another protocol version than the session.".to_owned()
            }
            Self::UnknownType => "This end does not know the type of the message.".to_owned(),
            Self::Duplicate => "This id is in use; give each request its own.".to_owned(),
            _ => "The message may not come from this side or at this moment.".to_owned(),
        }
    }
}

impl From<FrameError> for Breach {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::TooLarge { announced, limit } => Self::FrameTooLarge { announced, limit },
            FrameError::Empty | FrameError::Truncated => Self::FrameEmpty,
        }
    }
}

/// Counts violations over the last minute.
pub(super) struct ViolationWindow {
    max: usize,
    at_ms: VecDeque<u64>,
}

impl ViolationWindow {
    const WINDOW_MS: u64 = 60_000;

    pub(super) fn new(max: usize) -> Self {
        Self { max: max.max(1), at_ms: VecDeque::new() }
    }

    /// Counts one more; true when it was one too many.
    pub(super) fn record(&mut self, now_ms: u64) -> bool {
        while self.at_ms.front().is_some_and(|at| at.saturating_add(Self::WINDOW_MS) <= now_ms) {
            self.at_ms.pop_front();
        }
        self.at_ms.push_back(now_ms);
        self.at_ms.len() >= self.max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_minute_counts() {
        let mut window = ViolationWindow::new(3);
        assert!(!window.record(0));
        assert!(!window.record(59_999));
        assert!(!window.record(60_000), "the first is a minute old");
        assert!(window.record(60_001));
    }
}
