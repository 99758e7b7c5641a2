//! The messages of a peer, as they are read from its socket.
//!
//! Until a peer has said `connection_init` it may say nothing else but a few pings. Pings are
//! counted, those of the socket and those of the protocol together.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use async_graphql::http::ClientMessage;
use axum::extract::ws::{Message, WebSocket};
use futures::Stream;
use futures::stream::SplitStream;
use serde::de::Error;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use wharf_protocol::Pings;

use super::greeting::{SocketClose, TOO_MANY_PINGS};
use super::pulse::SocketHealth;
use crate::document;
use crate::exec::RequestContext;
use crate::plain_changes::OperationId;

/// Said to a peer that wants something before it has greeted.
const NOT_GREETED: SocketClose = (1011, "The handshake is not completed.");
/// Longest id of an operation.
const OPERATION_ID_BYTES_MAX: usize = 128;
/// Refused operations whose answers may wait before no more are read.
const REFUSED_WAITING_MAX: usize = 32;

/// The messages of a peer. They end with the connection, and with one that cannot be read.
pub(super) struct Messages {
    /// What was read already.
    first: Option<Message>,
    input: SplitStream<WebSocket>,
    pulse: Arc<SocketHealth>,
    /// Room for operations that are not over.
    asked: Arc<Semaphore>,
    begun: Instant,
    pings: Pings,
}

impl Messages {
    pub(super) fn new(
        first: Option<Message>,
        input: SplitStream<WebSocket>,
        pulse: Arc<SocketHealth>,
        asked: Arc<Semaphore>,
    ) -> Self {
        Self { first, input, pulse, asked, begun: Instant::now(), pings: Pings::of_a_stranger() }
    }

    /// Reads a message; `None` if it is the last that is read of this peer.
    fn take(&mut self, bytes: &[u8]) -> Option<serde_json::Result<ClientMessage>> {
        let message = Self::read(bytes);
        let refused = match &message {
            Ok(ClientMessage::ConnectionInit { .. }) => {
                self.pulse.greeted();
                self.pings.greeted();
                None
            }
            Ok(ClientMessage::Ping { .. }) => self.pinged(),
            Ok(_) if !self.pulse.is_greeted() => Some(NOT_GREETED),
            _ => None,
        };
        match refused {
            Some((code, reason)) => {
                self.pulse.end(code, reason);
                None
            }
            None => self.counted(message, bytes.len()),
        }
    }

    /// An operation with the room that it takes until it is over.
    fn counted(
        &self,
        message: serde_json::Result<ClientMessage>,
        bytes: usize,
    ) -> Option<serde_json::Result<ClientMessage>> {
        let Ok(ClientMessage::Start { id, payload }) = message else { return Some(message) };
        match RequestContext::room(&self.asked, bytes) {
            Ok(room) => {
                let payload = payload.data(room).data(OperationId(id.clone()));
                Some(Ok(ClientMessage::Start { id, payload }))
            }
            Err(_) => {
                self.pulse.end(1013, "Too much is asked for at once.");
                None
            }
        }
    }

    /// Counts a ping; says how to end a peer that sends too many.
    fn pinged(&mut self) -> Option<SocketClose> {
        (!self.pings.take(super::since(self.begun))).then_some(TOO_MANY_PINGS)
    }

    fn read(bytes: &[u8]) -> serde_json::Result<ClientMessage> {
        document::check_json(bytes).map_err(|fault| serde_json::Error::custom(fault.message))?;
        let message = ClientMessage::from_bytes(bytes)?;
        match &message {
            ClientMessage::Start { id, .. } if id.len() > OPERATION_ID_BYTES_MAX => {
                Err(serde_json::Error::custom("the id is too long"))
            }
            _ => Ok(message),
        }
    }
}

impl Stream for Messages {
    type Item = serde_json::Result<ClientMessage>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        // Refused operations are answered at once, and then this is asked again. Until then a peer
        // that floods the socket waits.
        while this.pulse.refused.load(Ordering::Relaxed) < REFUSED_WAITING_MAX {
            let message = match this.first.take() {
                Some(message) => message,
                None => match Pin::new(&mut this.input).poll_next(cx) {
                    Poll::Ready(Some(Ok(message))) => message,
                    Poll::Ready(_) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                },
            };
            this.pulse.heard();
            match message {
                Message::Text(text) => return Poll::Ready(this.take(text.as_bytes())),
                Message::Binary(bytes) => return Poll::Ready(this.take(&bytes)),
                Message::Ping(_) => {
                    if let Some((code, reason)) = this.pinged() {
                        this.pulse.end(code, reason);
                        return Poll::Ready(None);
                    }
                }
                Message::Pong(_) => {}
                Message::Close(_) => return Poll::Ready(None),
            }
        }
        Poll::Pending
    }
}
