//! The messages of a peer, as they are read from its socket.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use async_graphql::http::ClientMessage;
use axum::extract::ws::{Message, WebSocket};
use futures::Stream;
use futures::stream::SplitStream;
use serde::de::Error;

use super::pulse::Pulse;
use crate::document;

/// Longest id of an operation.
const OPERATION_ID_BYTES_MAX: usize = 128;
/// Refused operations whose answers may wait before no more are read.
const REFUSED_WAITING_MAX: usize = 32;

/// The messages of a peer. They end with the connection, and with one that cannot be read.
pub(super) struct Messages {
    /// What was read already.
    first: Option<Message>,
    input: SplitStream<WebSocket>,
    pulse: Arc<Pulse>,
}

impl Messages {
    pub(super) fn new(
        first: Option<Message>,
        input: SplitStream<WebSocket>,
        pulse: Arc<Pulse>,
    ) -> Self {
        Self { first, input, pulse }
    }

    fn read(&self, bytes: &[u8]) -> serde_json::Result<ClientMessage> {
        document::check_json(bytes).map_err(|fault| serde_json::Error::custom(fault.message))?;
        let message = ClientMessage::from_bytes(bytes)?;
        match &message {
            ClientMessage::ConnectionInit { .. } => self.pulse.greeted(),
            ClientMessage::Start { id, .. } if id.len() > OPERATION_ID_BYTES_MAX => {
                return Err(serde_json::Error::custom("the id is too long"));
            }
            _ => {}
        }
        Ok(message)
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
                Message::Text(text) => return Poll::Ready(Some(this.read(text.as_bytes()))),
                Message::Binary(bytes) => return Poll::Ready(Some(this.read(&bytes))),
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return Poll::Ready(None),
            }
        }
        Poll::Pending
    }
}
