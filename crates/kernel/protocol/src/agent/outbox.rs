//! What waits to be written: messages are numbered, stamped and framed here.

use std::collections::VecDeque;
use std::fmt;
use std::marker::PhantomData;

use wharf_wire::agent_v1::{
    self, Actor, AgentError, AgentMessage, CoreError, CoreMessage, Echo, EndMessage, Envelope,
    ErrorObject, FrameError, Header, MessageId, VERSION,
};

use crate::Moment;

/// Why something was not sent. The session is as it was before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The session has not begun or is over.
    #[error("the session is not open")]
    NotLive,
    /// There is no open call, question or invocation of that id.
    #[error("there is nothing open under this id")]
    NotOpen,
    /// The id is in use.
    #[error("the id is in use")]
    InUse,
    /// The message would be larger than the largest frame.
    #[error("the message is larger than a frame may be")]
    TooLarge,
    /// The peer does not read as fast as is written; try again when bytes have been taken.
    #[error("too much waits to be written")]
    Full,
    /// The call's stream has said that it is done.
    #[error("the call's stream is done")]
    StreamDone,
    /// The budget of the call's stream is spent.
    #[error("the call has streamed as much as it may")]
    BudgetSpent,
    /// The other end did not grant the capability.
    #[error("the other end did not grant this capability")]
    NotGranted,
}

impl From<FrameError> for SendError {
    fn from(_: FrameError) -> Self {
        Self::TooLarge
    }
}

/// What the ids of one session's messages begin with. Give each session its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdPrefix(String);

impl IdPrefix {
    const BYTES_MAX: usize = 128;

    /// Takes up to 128 bytes of text without control characters.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        (fits && !text.chars().any(char::is_control)).then_some(Self(text))
    }
}

/// The message that carries nothing but an error.
pub(super) trait ErrorMessage: EndMessage {
    fn error_message() -> Self;
}

impl ErrorMessage for CoreMessage {
    fn error_message() -> Self {
        Self::Error(CoreError {})
    }
}

impl ErrorMessage for AgentMessage {
    fn error_message() -> Self {
        Self::Error(AgentError {})
    }
}

/// What an answer names: the message that it answers, and what comes back with every message of a
/// call.
#[derive(Clone)]
pub(super) struct Origin {
    pub(super) id: MessageId,
    pub(super) echo: Echo,
}

/// A message before it has an id and a time.
pub(super) struct Draft<M> {
    message: M,
    in_reply_to: Option<MessageId>,
    echo: Echo,
    actor: Option<Actor>,
    error: Option<ErrorObject>,
}

impl<M> Draft<M> {
    pub(super) fn new(message: impl Into<M>) -> Self {
        let message = message.into();
        Self { message, in_reply_to: None, echo: Echo::default(), actor: None, error: None }
    }

    pub(super) fn reply_to(mut self, id: &MessageId) -> Self {
        self.in_reply_to = Some(id.clone());
        self
    }

    pub(super) fn answers(self, origin: &Origin) -> Self {
        self.reply_to(&origin.id).echo(&origin.echo)
    }

    pub(super) fn echo(mut self, echo: &Echo) -> Self {
        self.echo = echo.clone();
        self
    }

    pub(super) fn actor(mut self, actor: Option<Actor>) -> Self {
        self.actor = actor;
        self
    }

    pub(super) fn error(mut self, error: ErrorObject) -> Self {
        self.error = Some(error);
        self
    }
}

impl<M: ErrorMessage> Draft<M> {
    /// The answer to a message that could not be taken, if it may be answered at all: an error
    /// is never answered by an error.
    pub(super) fn refusal(header: Option<&Header>, error: ErrorObject) -> Option<Self> {
        let mut draft = Self::new(M::error_message()).error(error);
        if let Some(header) = header {
            if header.is_error {
                return None;
            }
            draft.in_reply_to = header.id.clone();
            draft.echo = header.echo.clone();
        }
        Some(draft)
    }
}

/// The frames that wait to be written.
pub(super) struct Outbox<M> {
    prefix: IdPrefix,
    issued: u64,
    frame_bytes_max: u32,
    frames: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    direction: PhantomData<M>,
}

impl<M: EndMessage> Outbox<M> {
    pub(super) fn new(prefix: IdPrefix, frame_bytes_max: u32) -> Self {
        Self {
            prefix,
            issued: 0,
            frame_bytes_max,
            frames: VecDeque::new(),
            queued_bytes: 0,
            direction: PhantomData,
        }
    }

    pub(super) fn set_frame_bytes_max(&mut self, frame_bytes_max: u32) {
        self.frame_bytes_max = frame_bytes_max;
    }

    pub(super) fn queued_bytes(&self) -> usize {
        self.queued_bytes
    }

    /// Numbers, stamps and frames a message; what is too large is not sent.
    pub(super) fn send(&mut self, now: Moment, draft: Draft<M>) -> Result<MessageId, FrameError> {
        self.issued += 1;
        let id = MessageId::new(format!("{}-{}", self.prefix.0, self.issued))
            .expect("a checked prefix and a number make an id");
        let envelope = Envelope {
            v: VERSION,
            id,
            ts: now.at.into(),
            in_reply_to: draft.in_reply_to,
            echo: draft.echo,
            actor: draft.actor,
            error: draft.error,
            message: draft.message,
        };
        let frame = agent_v1::encode(&envelope, self.frame_bytes_max)?;
        self.queued_bytes += frame.len();
        self.frames.push_back(frame);
        Ok(envelope.id)
    }

    pub(super) fn poll(&mut self) -> Option<Vec<u8>> {
        let frame = self.frames.pop_front()?;
        self.queued_bytes -= frame.len();
        if self.frames.is_empty() {
            // A queue that was once long is given back.
            self.frames.shrink_to(16);
        }
        Some(frame)
    }
}

/// What waits is never shown: it may hold a token.
impl<M> fmt::Debug for Outbox<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outbox")
            .field("issued", &self.issued)
            .field("queued_bytes", &self.queued_bytes)
            .finish_non_exhaustive()
    }
}
