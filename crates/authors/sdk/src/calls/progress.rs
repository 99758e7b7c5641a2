//! Progress of one call, on its way to whoever listens.

use std::collections::VecDeque;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use parking_lot::Mutex;
use tokio::sync::mpsc;

/// Pieces that may wait for whoever listens; beyond it the tool waits.
pub(crate) const WAITING_MAX: usize = 64;

/// A bounded queue between a tool and whoever listens to it.
#[derive(Debug)]
pub(crate) struct Queue<P> {
    state: Mutex<ProgressState<P>>,
}

#[derive(Debug)]
struct ProgressState<P> {
    pieces: VecDeque<P>,
    /// Tools that wait for room.
    senders: Vec<Waker>,
    reader: Option<Waker>,
    /// What comes from now on is heard by nobody.
    deaf: bool,
}

impl<P> Queue<P> {
    pub(crate) fn new() -> Self {
        let state = ProgressState {
            pieces: VecDeque::new(),
            senders: Vec::new(),
            reader: None,
            deaf: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// Takes a piece in, when there is room; one that nobody will hear is dropped.
    pub(crate) fn poll_push(&self, piece: &mut Option<P>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state.lock();
        if state.deaf {
            return Poll::Ready(());
        }
        if state.pieces.len() >= WAITING_MAX {
            if !state.senders.iter().any(|sender| sender.will_wake(cx.waker())) {
                state.senders.push(cx.waker().clone());
            }
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
        let mut state = self.state.lock();
        let Some(piece) = state.pieces.pop_front() else {
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
        Poll::Ready(piece)
    }

    /// The tool has ended: what it said can still be read, and whoever of it still says something
    /// is not kept waiting.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock();
        state.deaf = true;
        let senders = std::mem::take(&mut state.senders);
        drop(state);
        senders.into_iter().for_each(Waker::wake);
    }

    /// Nobody listens any more; what waits is dropped and tools go on.
    pub(crate) fn ignore(&self) {
        self.close();
        let pieces = std::mem::take(&mut self.state.lock().pieces);
        drop(pieces);
    }

    pub(crate) fn is_heard(&self) -> bool {
        !self.state.lock().deaf
    }
}

/// Waits for work, and passes on everything that it says before it ends.
pub(crate) async fn passing_on<T, V, Fut: Future<Output = ()>>(
    work: impl Future<Output = T>,
    pieces: &mut mpsc::Receiver<V>,
    mut pass: impl FnMut(V) -> Fut,
) -> T {
    let mut work = pin!(work);
    let done = loop {
        tokio::select! {
            biased;
            // What was said comes before the end also when both are there.
            Some(piece) = pieces.recv() => pass(piece).await,
            done = &mut work => break done,
        }
    };
    while let Ok(piece) = pieces.try_recv() {
        pass(piece).await;
    }
    done
}
