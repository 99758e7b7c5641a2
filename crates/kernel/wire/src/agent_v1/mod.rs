//! The agent protocol, version 1: frames, the envelope and every message of both directions.
//!
//! A message travels as one JSON object behind a 4-byte big-endian length. [`FrameDecoder`] cuts
//! bytes into frames, [`decode`] makes a typed [`Envelope`] of a frame, [`encode`] makes a frame
//! of an envelope. What a core sends is a [`CoreMessage`], what an agent sends an
//! [`AgentMessage`].
//!
//! Reading is strict about form and generous about content: a key that stands twice, a byte-order
//! mark or an integer written as `1.0` is refused, while fields that nobody knows are ignored and
//! `null` in an optional field means that it is absent. Nothing that is refused is ever quoted,
//! so that a token cannot leak through an error. Which message may come when is decided by the
//! sessions of the protocol crate, not here.

mod decode;
mod direction;
mod encode;
mod envelope;
mod frame;
mod id;
mod messages;
mod read;
pub(crate) mod scan;
mod time;

pub use decode::{DecodeError, Header, Malformed, Rejected, decode};
pub use direction::{AgentMessage, CoreMessage, EndMessage};
pub use encode::encode;
pub use envelope::{Actor, Echo, Envelope, ErrorObject, PartyKind};
pub use frame::{FrameDecoder, FrameError};
pub use id::{CallId, InvokeId, MessageId, QuestionId, SessionId, WireIdError};
pub use messages::*;
pub use time::{Rfc3339, Rfc3339Error};

/// The version this module speaks.
pub const VERSION: i64 = 1;

/// The numbers that belong to the wire itself. Limits of a session stand beside the session.
pub mod limits {
    /// Largest frame unless the welcome says otherwise.
    pub const FRAME_BYTES_MAX: u32 = 4 * 1024 * 1024;
    /// Largest frame from an agent that has not been welcomed yet.
    pub const HELLO_FRAME_BYTES_MAX: u32 = 64 * 1024;
    /// Deepest nesting of a message, the envelope included.
    pub const NESTING_MAX: usize = 127;
    /// Longest id of a message, call, invocation, question or session.
    pub const WIRE_ID_BYTES_MAX: usize = 256;
}
