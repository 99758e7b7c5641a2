//! Progress of one call, on its way to whoever listens.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Pieces that may wait for whoever listens; beyond it the tool waits.
pub(crate) const WAITING_MAX: usize = 64;

/// A bounded queue between a tool and whoever listens to it.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    state: Mutex<State<P>>,
}

#[derive(Debug)]
struct State<P> {
    pieces: VecDeque<P>,
    /// Tools that wait for room.
    senders: Vec<Waker>,
    reader: Option<Waker>,
    /// Nobody listens any more.
    deaf: bool,
}

impl<P> Queue<P> {
    pub(crate) fn new() -> Self {
        let state =
            State { pieces: VecDeque::new(), senders: Vec::new(), reader: None, deaf: false };
        Self { state: Mutex::new(state) }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a piece in, when there is room; one that nobody will hear is dropped.
    pub(crate) fn poll_push(&self, piece: &mut Option<P>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.lock();
        if state.deaf {
            piece.take();
            return Poll::Ready(());
        }
        if state.pieces.len() >= WAITING_MAX {
            state.senders.push(cx.waker().clone());
            return Poll::Pending;
        }
        state.pieces.extend(piece.take());
        let reader = state.reader.take();
        drop(state);
        if let Some(reader) = reader {
            reader.wake();
        }
        Poll::Ready(())
    }

    /// The next piece, if there is one; else whoever reads is woken by it.
    pub(crate) fn poll_pop(&self, cx: &mut Context<'_>) -> Poll<P> {
        let mut state = self.lock();
        let Some(piece) = state.pieces.pop_front() else {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        Poll::Ready(piece)
    }

    /// Nobody listens any more; what waits is dropped and tools go on.
    pub(crate) fn ignore(&self) {
        let mut state = self.lock();
        state.deaf = true;
        state.pieces.clear();
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn is_heard(&self) -> bool {
        !self.lock().deaf
    }
}
