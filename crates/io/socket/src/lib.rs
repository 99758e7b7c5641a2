//! Runs a session on a real connection.
//!
//! A [`Session`](wharf_protocol::Session) holds no socket and no clock; [`pump`] gives it both. It
//! is one loop for every wire: what carries the frames is a [`Source`] and a [`Sink`] (a WebSocket,
//! a stream of bytes, or whatever an edge makes one of), and whoever the connection belongs to is
//! its [`Owner`], with one more source of commands. Edges and authors keep no loop of their own.
//!
//! - Reading never waits for writing: both make progress in one loop, so two peers that write large
//!   frames at once cannot block each other.
//! - Whoever does not read is not waited for longer than the owner's [`Patience`].
//! - What an owner does about a command or an event is done before anything else is read, so a
//!   peer that asks for much is slowed down by itself.

mod bytes;
mod pump;
#[cfg(feature = "ws")]
mod websocket;

pub use bytes::{ByteSink, ByteSource, lend, split_bytes};
pub use pump::{
    Clock, Owner, Patience, PumpEnd, Sink, Source, SourceEvent, hang_up, linger, pump, sleep_until,
};
#[cfg(feature = "ws")]
pub use websocket::{FrameSink, FrameSource, WebSocketError, WebSocketMessage, split_frames};
