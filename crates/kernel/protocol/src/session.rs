//! The shape that every session has, and what passes between it and whoever moves its bytes.

use std::fmt;

use wharf_vocab::Timestamp;

/// One connection without its I/O: it is pushed frames and moments, and polled for events, frames
/// and the next deadline. `wharf-socket` runs it on a real connection.
pub trait Session {
    /// What it tells its owner.
    type Event;

    /// Takes what arrived. After the end nothing counts any more.
    fn receive(&mut self, now: Moment, incoming: Incoming<'_>);

    /// The connection is gone: nothing more will arrive.
    fn end(&mut self, now: Moment, how: Closed);

    /// Does what is due. Early and late calls do no harm.
    fn tick(&mut self, now: Moment);

    /// When `tick` is due, in the milliseconds of [`Moment`].
    fn deadline(&self) -> Option<u64>;

    /// The next thing the owner should know.
    fn poll_event(&mut self) -> Option<Self::Event>;

    /// The next thing to send. After a close the connection is of no use any more.
    fn poll_send(&mut self) -> Option<Outgoing>;

    /// Whether the connection is of no use any more, but for what still waits to be sent.
    fn is_closed(&self) -> bool;

    /// Whether the owner should go on reading.
    fn wants_input(&self) -> bool {
        !self.is_closed()
    }
}

/// A moment on two clocks. Deadlines use the first, which only ever goes forward; the second is
/// written into messages and never decides anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Milliseconds on a clock that never goes back, from any origin.
    pub ms: u64,
    /// What the calendar says.
    pub at: Timestamp,
}

impl Moment {
    /// A moment.
    #[must_use]
    pub fn new(ms: u64, at: Timestamp) -> Self {
        Self { ms, at }
    }
}

/// What came from a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incoming<'a> {
    /// A text frame.
    Text(&'a str),
    /// A binary frame, or a piece of a stream of bytes.
    Bytes(&'a [u8]),
    /// A question for a sign of life, which the connection has answered.
    Ping,
    /// A sign of life without content.
    Pong,
    /// A frame that is larger than the connection takes. Nothing can follow it.
    TooLarge,
    /// A text frame that is not UTF-8. Nothing can follow it.
    NotText,
    /// Bytes that are no frame. Nothing can follow them.
    NotAFrame,
}

/// What is to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outgoing {
    /// A text frame.
    Text(String),
    /// Bytes of a stream, a whole frame.
    Bytes(Vec<u8>),
    /// A ping.
    Ping,
    /// The last frame.
    Close {
        /// The code.
        code: u16,
        /// Why, in a few words.
        reason: String,
    },
}

impl Outgoing {
    pub(crate) fn close(code: u16, reason: &str) -> Self {
        Self::Close { code, reason: reason.to_owned() }
    }
}

/// How a connection ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The peer closed it and said why.
    With {
        /// The code.
        code: u16,
        /// The peer's words.
        reason: String,
    },
    /// It broke.
    Broken(String),
    /// The peer does not read what it is sent.
    NotReading,
    /// The peer did not answer the first message.
    NoAck,
    /// The peer gave no sign of life.
    Silent,
    /// The peer sent too many pings.
    Pings,
    /// The peer broke the rules too often.
    Violations,
    /// Whoever owns the session closed it.
    ByOwner,
}

impl Closed {
    /// The peer ended the connection without a word.
    #[must_use]
    pub fn ended() -> Self {
        Self::Broken("it ended".to_owned())
    }
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::With { code, reason } if reason.is_empty() => {
                write!(f, "it closed the connection with code {code} and without a result")
            }
            Self::With { code, reason } => {
                write!(f, "it closed the connection with code {code} ({reason})")
            }
            Self::Broken(how) => write!(f, "the connection broke ({how})"),
            Self::NotReading => f.write_str("the connection broke (it takes nothing more)"),
            Self::NoAck => f.write_str("it did not acknowledge the request in time"),
            Self::Silent => f.write_str("it gave no sign of life any more"),
            Self::Pings => f.write_str("it sends too many pings"),
            Self::Violations => f.write_str("it broke the protocol too often"),
            Self::ByOwner => f.write_str("it was not needed any more"),
        }
    }
}
