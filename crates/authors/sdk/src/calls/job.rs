//! Work that is under way in a scope: calls and tasks. It goes on where it is polled, and ends
//! wherever its scope is closed.
//!
//! Invariants:
//! - No lock is held while code of others runs: the work is taken out, polled, and put back.
//! - Whoever drops the work tells its scope, exactly once, after everything that was to be done
//!   at its end has been handed over. So a scope that knows of no work has none.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use wharf_vocab::{Code, Executed, Fault, Micro};

use super::life::ScopeState;
use super::progress::Queue;
use crate::transport::Spent;

/// How deep calls may be nested on one stack. A tool that calls itself without end is told so
/// long before it would take the whole program down.
pub(crate) const DEPTH_MAX: u32 = 64;

pub(crate) type Work<O> = BoxFuture<'static, Result<O, Fault>>;

/// One piece of work, and what all that work on it share.
pub(crate) struct Job<O, P> {
    pub(crate) state: CallState<P>,
    slot: Mutex<Slot<O>>,
}

/// A call as its tool sees it.
pub(crate) struct CallState<P> {
    pub(crate) tool: &'static str,
    pub(crate) place: Arc<ScopeState>,
    /// Its number in its scope, once it is under way.
    number: AtomicUsize,
    ends: Mutex<JobCleanup>,
    /// Where progress goes, if anybody listens; that has to be said before the work begins.
    pub(crate) queue: OnceLock<Queue<P>>,
    /// What the tool says that it has cost here.
    spent: AtomicU64,
    /// What it has cost where it was executed elsewhere, each time that it was.
    elsewhere: Mutex<Vec<Spent>>,
}

struct Slot<O> {
    stage: JobStage,
    work: Option<Work<O>>,
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq)]
enum JobStage {
    /// The work is here, and nobody polls it.
    Idle,
    /// Somebody polls it.
    Polled,
    /// Somebody polls it, and is to drop it then.
    Halted,
    /// The work is gone.
    Over,
}

/// What is to be done at the end.
#[derive(Default)]
struct JobCleanup {
    over: bool,
    work: Vec<BoxFuture<'static, ()>>,
    runtime: Option<Handle>,
}

/// What a scope can stop when it is closed, wherever it is held.
pub(crate) trait Stoppable: Send + Sync {
    /// Drops the work. Whoever awaits it is told.
    fn halt(&self);
    /// Its number in its scope.
    fn number(&self) -> &AtomicUsize;
}

/// A call, whatever it gives.
pub(crate) trait Called<P>: Send + Sync {
    fn state(&self) -> &CallState<P>;
}

impl<O: Send, P: Send + Sync> Called<P> for Job<O, P> {
    fn state(&self) -> &CallState<P> {
        &self.state
    }
}

impl<O, P> Job<O, P> {
    pub(crate) fn new(tool: &'static str, place: Arc<ScopeState>) -> Self {
        let state = CallState {
            tool,
            place,
            number: AtomicUsize::new(usize::MAX),
            ends: Mutex::default(),
            queue: OnceLock::new(),
            spent: AtomicU64::new(0),
            elsewhere: Mutex::default(),
        };
        let slot = Slot { stage: JobStage::Idle, work: None, waker: None };
        Self { state, slot: Mutex::new(slot) }
    }

    /// Drops the work and hands on what was to be done after it.
    fn finish(&self, work: Option<Work<O>>) {
        discard(work);
        let CallState { place, ends, queue, number, .. } = &self.state;
        let ends = {
            let mut ends = ends.lock();
            ends.over = true;
            (std::mem::take(&mut ends.work), ends.runtime.take())
        };
        if !ends.0.is_empty() {
            place.clean_up(ends.0, ends.1);
        }
        if let Some(queue) = queue.get() {
            queue.close();
        }
        place.over(number.load(Ordering::Relaxed));
    }
}

impl<O: Send + 'static, P: Send + Sync + 'static> Job<O, P> {
    /// Gives it its work, which is under way from now on unless the scope is closed.
    pub(crate) fn begin(self: &Arc<Self>, work: Work<O>) {
        self.slot.lock().work = Some(work);
        if !self.state.place.add(Arc::clone(self) as Arc<dyn Stoppable>) {
            self.halt();
        }
    }

    /// Lets the work go on.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Result<O, Fault>> {
        let taken = {
            let mut slot = self.slot.lock();
            let work = slot.work.take();
            if work.is_some() {
                slot.stage = JobStage::Polled;
            }
            work
        };
        let Some(mut work) = taken else { return Poll::Ready(Err(closed())) };
        let polled = match Depth::enter() {
            Some(_depth) => catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)))
                .unwrap_or_else(|_| Poll::Ready(Err(panicked()))),
            None => Poll::Ready(Err(too_deep(self.state.tool))),
        };
        let mut slot = self.slot.lock();
        let halted = slot.stage == JobStage::Halted;
        if polled.is_pending() && !halted {
            slot.work = Some(work);
            slot.stage = JobStage::Idle;
            let known = slot.waker.as_ref().is_some_and(|waker| waker.will_wake(cx.waker()));
            if !known {
                slot.waker = Some(cx.waker().clone());
            }
            return Poll::Pending;
        }
        slot.stage = JobStage::Over;
        drop(slot);
        self.finish(Some(work));
        match polled {
            Poll::Ready(Ok(output)) => Poll::Ready(Ok(output)),
            Poll::Ready(Err(fault)) if !halted => Poll::Ready(Err(fault)),
            _ => Poll::Ready(Err(closed())),
        }
    }
}

impl<O: Send, P: Send + Sync> Stoppable for Job<O, P> {
    fn halt(&self) {
        let (work, waker) = {
            let mut slot = self.slot.lock();
            match slot.stage {
                JobStage::Idle => {}
                JobStage::Polled => {
                    // Whoever polls it sees the mark and drops it.
                    slot.stage = JobStage::Halted;
                    return;
                }
                JobStage::Halted | JobStage::Over => return,
            }
            slot.stage = JobStage::Over;
            (slot.work.take(), slot.waker.take())
        };
        self.finish(work);
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn number(&self) -> &AtomicUsize {
        &self.state.number
    }
}

impl<P> CallState<P> {
    /// What it has cost so far, here and elsewhere.
    pub(crate) fn cost(&self) -> Micro {
        let elsewhere = self.elsewhere.lock();
        let here = self.spent.load(Ordering::Relaxed);
        elsewhere.iter().map(Spent::micro).fold(here, Micro::saturating_add)
    }

    pub(crate) fn at_end(&self, work: BoxFuture<'static, ()>) {
        let runtime = Handle::try_current().ok();
        let mut ends = self.ends.lock();
        if ends.over {
            drop(ends);
            self.place.clean_up(vec![work], runtime);
            return;
        }
        ends.work.push(work);
        ends.runtime = runtime.or(ends.runtime.take());
    }

    /// Adds to what it costs here.
    pub(crate) fn spend(&self, micro: Micro) {
        let more = |spent: Micro| Some(spent.saturating_add(micro));
        // It always gives a number, so that it never fails.
        let _ = self.spent.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
    }

    /// It is executed elsewhere, and costs this there.
    pub(crate) fn spent_elsewhere(&self, cost: Spent) {
        self.elsewhere.lock().push(cost);
    }
}

/// Drops what belongs to others. A panic on the way concerns only itself.
pub(crate) fn discard<T>(of_others: T) {
    // There is nobody to tell.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(of_others)));
}

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// One level of calls on this stack.
struct Depth;

impl Depth {
    fn enter() -> Option<Self> {
        let depth = DEPTH.get();
        (depth < DEPTH_MAX).then(|| {
            DEPTH.set(depth + 1);
            Self
        })
    }
}

impl Drop for Depth {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

fn closed() -> Fault {
    Fault::new(Code::ToolCanceled, "The call was called off because its scope was closed.")
}

pub(crate) fn panicked() -> Fault {
    let message = "The tool failed in a way its author did not foresee.";
    Fault::new(Code::ToolInternal, message).executed(Executed::Maybe)
}

fn too_deep(tool: &str) -> Fault {
    let message = format!(
        "The tool {tool:?} was not called, because more than {DEPTH_MAX} calls would be nested."
    );
    Fault::new(Code::ToolDepthExceeded, message).executed(Executed::No)
}
