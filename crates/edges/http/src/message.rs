//! A message of a WebSocket that has begun to arrive.
//!
//! The library that reads it keeps it until it is whole. What is there of it is counted in the same
//! memory as bodies, and while there is none left, nothing more is read.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::PollSemaphore;
use wharf_protocol::FrameMeter;
use wharf_vocab::limits::SOCKET_READ_BYTES;

/// A message that has begun to arrive.
#[derive(Debug)]
pub(crate) struct IncomingMessage {
    meter: FrameMeter,
    /// Memory, in KiB.
    room: PollSemaphore,
    /// What of it is taken.
    taken: Option<OwnedSemaphorePermit>,
    /// How long a message may take.
    patience: Duration,
    /// When the message must be whole; none between messages.
    pub(crate) until: Option<Instant>,
}

impl IncomingMessage {
    pub(crate) fn new(room: Arc<Semaphore>, patience: Duration) -> Self {
        let room = PollSemaphore::new(room);
        Self { meter: FrameMeter::default(), room, taken: None, patience, until: None }
    }

    /// Something of it has arrived.
    pub(crate) fn arrived(&mut self, bytes: &[u8]) {
        self.meter.feed(bytes);
        if self.meter.held() == 0 {
            (self.taken, self.until) = (None, None);
        } else if self.until.is_none() {
            self.until = Some(Instant::now() + self.patience);
        }
    }

    /// Waits until there is room for what has arrived. What is read at once needs none.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            let held = usize::try_from(self.meter.held()).unwrap_or(usize::MAX);
            if held <= SOCKET_READ_BYTES {
                return Poll::Ready(());
            }
            let taken = self.taken.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
            let missing = held.div_ceil(1024).saturating_sub(taken);
            let Some(missing) = u32::try_from(missing).ok().filter(|missing| *missing > 0) else {
                return Poll::Ready(());
            };
            let Some(more) = ready!(self.room.poll_acquire_many(cx, missing)) else {
                return Poll::Ready(());
            };
            match &mut self.taken {
                Some(taken) => taken.merge(more),
                None => self.taken = Some(more),
            }
        }
    }
}
