//! WebSockets as connections.

use std::pin::Pin;

use futures::future::poll_fn;
use futures::stream::{SplitSink, SplitStream};
use futures::{FutureExt as _, SinkExt as _, StreamExt as _};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::error::CapacityError;
use wharf_protocol::{Closed, Incoming, Outgoing};

use crate::{Sink, Source, SourceEvent};

/// Bytes that a close frame has room for beside its code.
const REASON_BYTES_MAX: usize = 120;
/// What a close frame without a code stands for.
const NO_CODE: u16 = 1005;

/// A message of a library for WebSockets.
pub trait WebSocketMessage: Send + Sized {
    /// What it means; `None` if it means nothing.
    fn received(&self) -> Option<SourceEvent<'_>>;

    /// What is to be sent as a message.
    fn sent(outgoing: Outgoing) -> Self;
}

/// An error of such a library.
pub trait WebSocketError: Send {
    /// What it means for a connection.
    fn received(&self) -> SourceEvent<'static>;
}

/// The half of a WebSocket that is read.
#[derive(Debug)]
pub struct FrameSource<T, M> {
    half: SplitStream<T>,
    message: Option<M>,
}

/// The half of a WebSocket that is written.
#[derive(Debug)]
pub struct FrameSink<T, M>(SplitSink<T, M>);

/// Both halves of a WebSocket.
pub fn split_frames<T, M, E>(socket: T) -> (FrameSource<T, M>, FrameSink<T, M>)
where
    T: futures::Stream<Item = Result<M, E>> + futures::Sink<M, Error = E>,
{
    let (sink, half) = socket.split();
    (FrameSource { half, message: None }, FrameSink(sink))
}

impl<T, M, E> Source for FrameSource<T, M>
where
    T: futures::Stream<Item = Result<M, E>> + Send + Unpin,
    M: WebSocketMessage,
    E: WebSocketError,
{
    async fn next(&mut self) -> SourceEvent<'_> {
        loop {
            match self.half.next().await {
                Some(Ok(message)) if message.received().is_some() => {
                    let received = self.message.insert(message).received();
                    return received.unwrap_or(SourceEvent::Frame(Incoming::Pong));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return error.received(),
                None => return SourceEvent::End(Closed::ended()),
            }
        }
    }
}

impl<T, M, E> Sink for FrameSink<T, M>
where
    T: futures::Sink<M, Error = E> + Send + Unpin,
    M: WebSocketMessage,
    E: WebSocketError,
{
    fn is_ready(&mut self) -> Result<bool, Closed> {
        let ready = poll_fn(|cx| futures::Sink::poll_ready(Pin::new(&mut self.0), cx));
        match ready.now_or_never() {
            Some(ready) => ready.map(|()| true).map_err(|error| broken(&error)),
            None => Ok(false),
        }
    }

    fn start(&mut self, frame: Outgoing) -> Result<(), Closed> {
        self.0.start_send_unpin(M::sent(frame)).map_err(|error| broken(&error))
    }

    async fn flush(&mut self) -> Result<(), Closed> {
        self.0.flush().await.map_err(|error| broken(&error))
    }
}

fn broken(error: &impl WebSocketError) -> Closed {
    match error.received() {
        SourceEvent::End(closed) => closed,
        SourceEvent::Frame(_) | SourceEvent::Last(_) => Closed::Broken("it failed".to_owned()),
    }
}

/// The message of a library, by its module: all of them have the same variants, but for frames that
/// are none of ours.
macro_rules! websocket_message {
    ($library:path $(, $nothing:pat)?) => {
        const _: () = {
            use $library::{CloseFrame, Message};

            impl WebSocketMessage for Message {
                fn received(&self) -> Option<SourceEvent<'_>> {
                    Some(match self {
                        Self::Text(text) => SourceEvent::Frame(Incoming::Text(text.as_str())),
                        Self::Binary(bytes) => SourceEvent::Frame(Incoming::Bytes(bytes)),
                        Self::Ping(_) => SourceEvent::Frame(Incoming::Ping),
                        Self::Pong(_) => SourceEvent::Frame(Incoming::Pong),
                        Self::Close(None) => closed(NO_CODE, ""),
                        Self::Close(Some(frame)) => closed(frame.code, frame.reason.as_str()),
                        $($nothing => return None,)?
                    })
                }

                fn sent(outgoing: Outgoing) -> Self {
                    match outgoing {
                        Outgoing::Text(text) => Self::Text(text.into()),
                        Outgoing::Bytes(bytes) => Self::Binary(bytes.into()),
                        Outgoing::Ping => Self::Ping(Default::default()),
                        Outgoing::Close { code, reason } => {
                            let reason = short(reason).into();
                            Self::Close(Some(CloseFrame { code: code.into(), reason }))
                        }
                    }
                }
            }
        };
    };
}

websocket_message!(tokio_tungstenite::tungstenite::protocol, Self::Frame(_));
#[cfg(feature = "axum")]
websocket_message!(axum::extract::ws);

impl WebSocketError for tungstenite::Error {
    fn received(&self) -> SourceEvent<'static> {
        let how = match self {
            Self::Capacity(CapacityError::MessageTooLong { .. }) => {
                return SourceEvent::Last(Incoming::TooLarge);
            }
            Self::Utf8(_) => return SourceEvent::Last(Incoming::NotText),
            Self::Protocol(tungstenite::error::ProtocolError::ResetWithoutClosingHandshake) => {
                "it ended".to_owned()
            }
            Self::Protocol(_) => return SourceEvent::Last(Incoming::NotAFrame),
            Self::WriteBufferFull(_) => return SourceEvent::End(Closed::NotReading),
            Self::Io(error) => error.kind().to_string(),
            Self::ConnectionClosed | Self::AlreadyClosed => "it ended".to_owned(),
            _ => "it failed".to_owned(),
        };
        SourceEvent::End(Closed::Broken(how))
    }
}

fn closed(code: impl Into<u16>, reason: &str) -> SourceEvent<'static> {
    SourceEvent::End(Closed::With { code: code.into(), reason: reason.to_owned() })
}

/// A close frame has little room.
fn short(mut reason: String) -> String {
    reason.truncate(reason.floor_char_boundary(REASON_BYTES_MAX));
    reason
}

#[cfg(feature = "axum")]
impl WebSocketError for axum::Error {
    fn received(&self) -> SourceEvent<'static> {
        match std::error::Error::source(self).and_then(|it| it.downcast_ref()) {
            Some(error) => tungstenite::Error::received(error),
            None => SourceEvent::End(Closed::Broken("it failed".to_owned())),
        }
    }
}
