//! Frames over a WebSocket.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures::{Sink, Stream};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Bytes, Message, Utf8Bytes};
use wharf_protocol::Pings;

use crate::transport::link::{Frames, LinkBroken};

/// Signs of life that may be missing before the peer is taken for gone.
const SILENT_MAX: u32 = 3;

/// A WebSocket as frames of text.
pub(super) struct Socket<S> {
    socket: WebSocketStream<S>,
    look: Interval,
    /// How often nothing had come when it was looked.
    silent: u32,
    /// A question for a sign of life waits to be sent.
    ping: bool,
    began: Instant,
    /// The pings of the peer.
    pings: Pings,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Socket<S> {
    pub(super) fn new(socket: WebSocketStream<S>, keep_alive: Duration) -> Self {
        let mut look = interval(keep_alive.max(Duration::from_millis(1)));
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        look.reset();
        let (began, pings) = (Instant::now(), Pings::new());
        Self { socket, look, silent: 0, ping: false, began, pings }
    }

    /// Counts a ping of the peer; `false` if it sends too many.
    fn may_ping(&mut self) -> bool {
        let now_ms = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.pings.take(now_ms)
    }

    fn pinned(&mut self) -> Pin<&mut WebSocketStream<S>> {
        Pin::new(&mut self.socket)
    }

    /// Asks a silent peer for a sign of life. `Err` once it has not given one for too long.
    fn poll_life(&mut self, cx: &mut Context<'_>) -> Result<(), LinkBroken> {
        while self.look.poll_tick(cx).is_ready() {
            self.silent += 1;
            self.ping = true;
            if self.silent > SILENT_MAX {
                return Err(LinkBroken);
            }
        }
        if self.ping && self.pinned().poll_ready(cx).is_ready() {
            self.ping = false;
            self.pinned().start_send(Message::Ping(Bytes::new())).map_err(|_| LinkBroken)?;
            // What is left is sent with the next frames, or by the next look.
            let _ = self.pinned().poll_flush(cx);
        }
        Ok(())
    }
}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Frames for Socket<S> {
    type Text = Utf8Bytes;

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Utf8Bytes>> {
        loop {
            let Poll::Ready(message) = self.pinned().poll_next(cx) else { break };
            self.silent = 0;
            match message {
                Some(Ok(Message::Text(text))) => return Poll::Ready(Some(text)),
                // What is no text is no JSON either, and is counted as such.
                Some(Ok(Message::Binary(_))) => {
                    return Poll::Ready(Some(Utf8Bytes::from_static("?")));
                }
                Some(Ok(Message::Ping(_))) if !self.may_ping() => return Poll::Ready(None),
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Poll::Ready(None),
            }
        }
        match self.poll_life(cx) {
            Ok(()) => Poll::Pending,
            Err(LinkBroken) => Poll::Ready(None),
        }
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.pinned().poll_ready(cx).map_err(|_| LinkBroken)
    }

    fn send(&mut self, frame: String) -> Result<(), LinkBroken> {
        self.pinned().start_send(Message::Text(frame.into())).map_err(|_| LinkBroken)
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>> {
        self.pinned().poll_flush(cx).map_err(|_| LinkBroken)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        self.pinned().poll_close(cx).map(|closed| closed.is_ok())
    }
}
