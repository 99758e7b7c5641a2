//! The body of a request, which can be read on after the request was refused.
//!
//! A peer that is still sending when its connection is closed never learns why. So what is left
//! of a refused body is read and thrown away, up to a limit.

use std::future::Future as _;
use std::io::{self, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep};

/// A body of which pieces must come in time. Clones read from the same body.
#[derive(Clone)]
pub(super) struct SharedBody {
    inner: Arc<Mutex<BodyState>>,
}

struct BodyState {
    incoming: Incoming,
    patience: Duration,
    /// Runs while a piece is waited for.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl SharedBody {
    pub(super) fn new(incoming: Incoming, patience: Duration) -> Self {
        Self { inner: Arc::new(Mutex::new(BodyState { incoming, patience, waiting: None })) }
    }

    /// Reads on until the body ends, or fails, or so many bytes have come, or it takes too long.
    pub(super) async fn drain(self, most: u64) {
        let mut body = self;
        let mut left = most;
        let patience = body.inner.lock().patience;
        let until = Instant::now() + patience;
        loop {
            let frame = std::future::poll_fn(|cx| Pin::new(&mut body).poll_frame(cx));
            let Ok(Some(Ok(frame))) = tokio::time::timeout_at(until, frame).await else { return };
            let bytes = frame.data_ref().map_or(0, |data| data.len() as u64);
            match left.checked_sub(bytes) {
                Some(rest) => left = rest,
                None => return,
            }
        }
    }
}

impl Body for SharedBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        let mut inner = self.inner.lock();
        match Pin::new(&mut inner.incoming).poll_frame(cx) {
            Poll::Ready(frame) => {
                inner.waiting = None;
                let broken = |error| io::Error::new(ErrorKind::ConnectionReset, error);
                Poll::Ready(frame.map(|frame| frame.map_err(broken)))
            }
            Poll::Pending => {
                let patience = inner.patience;
                let waiting = inner.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
                waiting.as_mut().poll(cx).map(|()| {
                    let why = "no byte of the body came for too long";
                    Some(Err(io::Error::new(ErrorKind::TimedOut, why)))
                })
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.inner.lock().incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.lock().incoming.size_hint()
    }
}
