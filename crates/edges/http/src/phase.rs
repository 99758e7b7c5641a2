//! What a connection is doing, shared between its socket and its requests.
//!
//! The socket must know whether a request is under way (then silence is the answer's business)
//! or not (then silence has a limit), whether another protocol has taken the connection over (then
//! silence is that one's business), and whether a body was left unread when it closes.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::body::HttpBody;
use hyper::body::{Frame, SizeHint};
use tokio_util::sync::CancellationToken;

/// What a connection is doing.
#[derive(Debug, Default)]
pub(crate) struct ConnectionPhase {
    busy: AtomicBool,
    unread: AtomicBool,
    upgraded: AtomicBool,
    gone: CancellationToken,
    requests: AtomicU64,
}

impl ConnectionPhase {
    /// A request has begun.
    pub(crate) fn begin(&self) {
        self.unread.store(false, Ordering::Relaxed);
        self.busy.store(true, Ordering::Relaxed);
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Its answer has been handed over.
    fn end(&self) {
        self.busy.store(false, Ordering::Relaxed);
    }

    /// Whether a request is under way.
    pub(crate) fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// How many requests have begun.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Another protocol takes the connection over once the answer has been sent.
    pub(crate) fn upgrade(&self) {
        self.upgraded.store(true, Ordering::Relaxed);
    }

    /// Whether another protocol has taken the connection over.
    pub(crate) fn is_upgraded(&self) -> bool {
        self.upgraded.load(Ordering::Relaxed)
    }

    /// The socket was closed.
    pub(crate) fn end_of_socket(&self) {
        self.gone.cancel();
    }

    /// Waits until the socket was closed, whoever has it.
    pub(crate) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Whether the last request's body was not read to its end.
    pub(crate) fn has_unread(&self) -> bool {
        self.unread.load(Ordering::Relaxed)
    }
}

/// A body that tells the phase how it ended.
#[derive(Debug)]
pub(crate) struct TrackedBody<B: HttpBody> {
    body: B,
    phase: Arc<ConnectionPhase>,
    side: BodySide,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BodySide {
    /// The peer's: if it is dropped early, something is left on the socket.
    Request,
    /// Ours: when it is dropped, the request is over.
    Answer,
}

impl<B: HttpBody> TrackedBody<B> {
    pub(crate) fn request(body: B, phase: Arc<ConnectionPhase>) -> Self {
        Self { body, phase, side: BodySide::Request }
    }

    pub(crate) fn answer(body: B, phase: Arc<ConnectionPhase>) -> Self {
        Self { body, phase, side: BodySide::Answer }
    }
}

impl<B: HttpBody> Drop for TrackedBody<B> {
    fn drop(&mut self) {
        match self.side {
            BodySide::Request if !self.body.is_end_stream() => {
                self.phase.unread.store(true, Ordering::Relaxed);
            }
            BodySide::Request => {}
            BodySide::Answer => self.phase.end(),
        }
    }
}

impl<B: HttpBody + Unpin> HttpBody for TrackedBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
