//! The task that owns a connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::shared::LinkState;
use crate::transport::Options;

/// Frames that are taken before what waits is sent, and before others have their turn.
const TAKEN_MAX: usize = 32;

/// The connection is of no more use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LinkBroken;

/// Frames of text in and out. One task owns them and polls both directions.
pub(crate) trait Frames: Send + Unpin + 'static {
    /// A frame as it was received.
    type Text: AsRef<str>;

    /// The next frame; `None` once there are no more.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Self::Text>>;

    /// Whether there is room for another frame.
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>>;

    /// Takes a frame after [`poll_ready`](Self::poll_ready) said that there is room.
    fn send(&mut self, frame: String) -> Result<(), LinkBroken>;

    /// Sees to it that frames leave; ready when all have.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), LinkBroken>>;

    /// Bids farewell, and says whether what the peer still sends is to be read: leaving with
    /// something unread could cost the peer what it has not read. It may be called again.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<bool>;
}

/// The task that owns a connection: it reads, sends what waits, and bids farewell.
pub(super) struct Task<F> {
    frames: F,
    shared: Arc<LinkState>,
    /// Frames were taken over that may not have left yet.
    flushing: bool,
    /// Nothing can be sent any more; what the peer said before can still be read.
    mute: bool,
    /// Everything was sent, and the farewell has begun.
    leaving: bool,
    /// When a farewell has taken too long.
    farewell: Option<Pin<Box<Sleep>>>,
    farewell_max: Duration,
    /// When requests that nobody serves are refused.
    unserved: Option<Pin<Box<Sleep>>>,
    unserved_max: Duration,
}

impl<F: Frames> Task<F> {
    pub(super) fn new(frames: F, shared: Arc<LinkState>, options: &Options) -> Self {
        let (farewell_max, unserved_max) = (options.connect_max, options.unserved_max);
        let (farewell, unserved) = (None, None);
        Self {
            frames,
            shared,
            flushing: false,
            mute: false,
            leaving: false,
            farewell,
            farewell_max,
            unserved,
            unserved_max,
        }
    }

    /// Goes on until nothing more can be done now; ready when the connection is over.
    fn step(&mut self, cx: &mut Context<'_>) -> Poll<LinkBroken> {
        let Ok(more) = self.read(cx) else { return Poll::Ready(LinkBroken) };
        self.look_after_unserved(cx);
        if !self.mute && !self.leaving && self.write(cx).is_err() {
            self.mute = true;
            self.shared.begin_close();
        }
        if self.shared.state.lock().closing && self.poll_farewell(cx).is_ready() {
            return Poll::Ready(LinkBroken);
        }
        if more {
            // Others have their turn first.
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Reads frames; `true` if there may be more.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, LinkBroken> {
        for _ in 0..TAKEN_MAX {
            match self.frames.poll_next(cx) {
                Poll::Ready(Some(text)) if self.shared.receive(text.as_ref()) => {}
                // It has gone, or sends without ever reading.
                Poll::Ready(_) => return Err(LinkBroken),
                Poll::Pending => return Ok(false),
            }
        }
        Ok(true)
    }

    fn write(&mut self, cx: &mut Context<'_>) -> Result<(), LinkBroken> {
        while let Poll::Ready(ready) = self.frames.poll_ready(cx) {
            ready?;
            let Some(frame) = self.shared.next_frame() else { break };
            self.frames.send(frame)?;
            self.flushing = true;
        }
        if self.flushing
            && let Poll::Ready(flushed) = self.frames.poll_flush(cx)
        {
            flushed?;
            self.flushing = false;
        }
        Ok(())
    }

    fn look_after_unserved(&mut self, cx: &mut Context<'_>) {
        if !self.shared.is_unserved() {
            self.unserved = None;
            return;
        }
        let wait = self.unserved_max;
        let timer = self.unserved.get_or_insert_with(|| Box::pin(sleep(wait)));
        if timer.as_mut().poll(cx).is_ready() {
            self.shared.refuse_unserved();
            self.unserved = None;
        }
    }

    /// Sends what still waits, then bids farewell; neither takes for ever.
    fn poll_farewell(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let wait = self.farewell_max;
        let timer = self.farewell.get_or_insert_with(|| Box::pin(sleep(wait)));
        let late = timer.as_mut().poll(cx).is_ready() || timer.deadline() <= Instant::now();
        if !late {
            let unsent = self.flushing || self.shared.counters().frames_waiting > 0;
            if self.mute || (unsent && !self.leaving) {
                return Poll::Pending;
            }
            self.leaving = true;
            if ready!(self.frames.poll_close(cx)) {
                while ready!(self.frames.poll_next(cx)).is_some() {}
            }
        }
        Poll::Ready(())
    }
}

impl<F: Frames> Future for Task<F> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        this.shared.task.register(cx.waker());
        let Poll::Ready(LinkBroken) = this.step(cx) else { return Poll::Pending };
        this.shared.end();
        Poll::Ready(())
    }
}

impl<F> Drop for Task<F> {
    fn drop(&mut self) {
        // The runtime may stop before the connection does.
        self.shared.end();
    }
}
