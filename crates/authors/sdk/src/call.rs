//! A call that can be awaited, listened to, and dropped.

use std::fmt;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::task::AtomicWaker;
use wharf_vocab::{Code, Executed, Fault};

use crate::chain::Chain;
use crate::cx::CallState;
use crate::progress::Queue;
use crate::scope::{Inner, Place};
use crate::tool::Target;
use crate::{Cx, Data};

type Work<O> = BoxFuture<'static, Result<O, Fault>>;
type Start<O, P> = Box<dyn FnOnce(Option<Arc<Queue<P>>>) -> Work<O> + Send>;

/// A call of a tool. Awaiting it gives the output; [`progress`](Call::progress) gives what comes
/// on the way; dropping it calls it off.
///
/// Nothing happens before one of the first two.
#[must_use = "nothing is called before the call is awaited or its progress is read"]
pub struct Call<O, P> {
    state: State<O, P>,
    place: Place,
    queue: Option<Arc<Queue<P>>>,
}

enum State<O, P> {
    Waiting(Start<O, P>),
    Running { cell: Arc<Cell<O>>, id: u64 },
    Done(Result<O, Fault>),
    Taken,
}

impl<O: Data, P: Data> Call<O, P> {
    pub(crate) fn new<I: Data>(place: Place, target: Target<I, O, P>, input: I) -> Self {
        let inner = Arc::clone(&place.0);
        let start: Start<O, P> = Box::new(move |queue| {
            let tool = target.name;
            let chain = inner.chain(target);
            let state = Arc::new(CallState::new(tool, inner));
            let ending = Ending(Arc::clone(&state));
            let work = Chain::run(&chain, 0, input, Cx { state, queue });
            Box::pin(async move {
                let _ending = ending;
                work.await
            })
        });
        Self { state: State::Waiting(start), place, queue: None }
    }
}

impl<O: 'static, P> Call<O, P> {
    /// The next piece of progress; `None` once the tool has ended. Then await the call.
    pub async fn progress(&mut self) -> Option<P> {
        poll_fn(|cx| self.poll_progress(cx)).await
    }

    fn poll_progress(&mut self, cx: &mut Context<'_>) -> Poll<Option<P>> {
        if matches!(self.state, State::Waiting(_)) {
            self.queue = Some(Arc::new(Queue::new()));
        }
        let Some(queue) = self.queue.clone() else { return Poll::Ready(None) };
        if let Poll::Ready(piece) = queue.poll_pop(cx) {
            return Poll::Ready(Some(piece));
        }
        let over = self.drive(cx);
        match queue.poll_pop(cx) {
            Poll::Ready(piece) => Poll::Ready(Some(piece)),
            Poll::Pending if over => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Lets the tool go on; `true` once it has ended.
    fn drive(&mut self, cx: &mut Context<'_>) -> bool {
        if let State::Waiting(_) = self.state
            && let State::Waiting(start) = std::mem::replace(&mut self.state, State::Taken)
        {
            self.start(start);
        }
        let State::Running { cell, id } = &self.state else { return true };
        let Poll::Ready(result) = cell.poll(cx) else { return false };
        self.place.0.over(*id);
        self.state = State::Done(result);
        true
    }

    fn start(&mut self, start: Start<O, P>) {
        if self.place.0.is_closed() {
            self.state = State::Done(Err(closed()));
            return;
        }
        let queue = self.queue.clone();
        // What a layer does before its first await is part of the call, panics included.
        let work = catch_unwind(AssertUnwindSafe(|| start(queue)));
        let Ok(work) = work else {
            self.state = State::Done(Err(panicked()));
            return;
        };
        let cell = Arc::new(Cell::new(work));
        match self.place.0.under_way(&cell) {
            Some(id) => self.state = State::Running { cell, id },
            None => self.state = State::Done(Err(closed())),
        }
    }
}

impl<O: 'static, P> Future for Call<O, P> {
    type Output = Result<O, Fault>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if let Some(queue) = this.queue.take() {
            // Whoever awaits does not listen any more.
            queue.ignore();
        }
        if !this.drive(cx) {
            return Poll::Pending;
        }
        match std::mem::replace(&mut this.state, State::Taken) {
            State::Done(result) => Poll::Ready(result),
            _ => panic!("a call was awaited after it had given its result"),
        }
    }
}

impl<O, P> Unpin for Call<O, P> {}

impl<O, P> Drop for Call<O, P> {
    fn drop(&mut self) {
        if let State::Running { cell, id } = &self.state {
            self.place.0.over(*id);
            cell.halt();
        }
    }
}

impl<O, P> fmt::Debug for Call<O, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").finish_non_exhaustive()
    }
}

/// Runs what was to be done at the end of a call when the call is over.
struct Ending(Arc<CallState>);

impl Drop for Ending {
    fn drop(&mut self) {
        self.0.ended();
    }
}

/// What a scope can stop when it is closed, wherever the call is held.
pub(crate) trait Halt: Send + Sync {
    /// Drops the work. Whoever awaits it is told.
    fn halt(&self);
}

/// The work of a call. It is polled where the call is awaited and can be dropped from elsewhere.
struct Cell<O> {
    work: Mutex<Option<Work<O>>>,
    halted: AtomicBool,
    waker: AtomicWaker,
}

impl<O> Cell<O> {
    fn new(work: Work<O>) -> Self {
        let halted = AtomicBool::new(false);
        Self { work: Mutex::new(Some(work)), halted, waker: AtomicWaker::new() }
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<O, Fault>> {
        self.waker.register(cx.waker());
        let mut slot = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        if self.halted.load(Ordering::Acquire) {
            slot.take();
            return Poll::Ready(Err(closed()));
        }
        let Some(work) = slot.as_mut() else { return Poll::Ready(Err(closed())) };
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        let polled = polled.unwrap_or_else(|_| Poll::Ready(Err(panicked())));
        if polled.is_ready() {
            slot.take();
        } else if self.halted.load(Ordering::Acquire) {
            slot.take();
            return Poll::Ready(Err(closed()));
        }
        polled
    }
}

impl<O> Halt for Cell<O> {
    fn halt(&self) {
        self.halted.store(true, Ordering::Release);
        match self.work.try_lock() {
            Ok(mut slot) => drop(slot.take()),
            Err(TryLockError::Poisoned(poisoned)) => drop(poisoned.into_inner().take()),
            // Whoever polls it right now sees the mark and drops it.
            Err(TryLockError::WouldBlock) => {}
        }
        self.waker.wake();
    }
}

impl Inner {
    /// Remembers a call that is under way; `None` if the scope is closed.
    fn under_way<O: 'static>(&self, cell: &Arc<Cell<O>>) -> Option<u64> {
        self.add_call(Arc::clone(cell) as Arc<dyn Halt>)
    }
}

pub(crate) fn closed() -> Fault {
    Fault::new(Code::ToolCanceled, "The call was called off because its scope was closed.")
}

fn panicked() -> Fault {
    let message = "The tool failed in a way its author did not foresee.";
    Fault::new(Code::ToolInternal, message).executed(Executed::Maybe)
}
