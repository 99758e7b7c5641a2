//! What all connections and runs of a server share.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use wharf_protocol::run::server::{
    Book, Credential, Ending, NextFrames, OpenResult, Overflow, RunNo, RunReport, WatcherNo,
};
use wharf_socket::Clock;
use wharf_vocab::Micro;
use wharf_wire::run_v1::{Refusal, RunRequest, SteppedMessage, UnfitRequest};

use super::execution::execute;
use super::metered::UNFINISHED_KIB_MAX;
use super::{Options, Profile};
use crate::Handler;
use crate::steps::RunSteps;
use crate::transfer::FileTransfer;

/// What all connections and runs of a server share.
pub(super) struct Hub {
    pub(super) options: Options,
    pub(super) clock: Clock,
    pub(super) handler: Arc<dyn Handler>,
    pub(super) transfer: FileTransfer,
    pub(super) slots: Arc<Semaphore>,
    pub(super) runs: TaskTracker,
    /// Places for connections that watch runs.
    pub(super) connections: Arc<Semaphore>,
    /// Memory for messages that are not whole, in KiB.
    pub(super) unfinished: Arc<Semaphore>,
    is_draining: AtomicBool,
    state: Mutex<RunHubState>,
}

struct RunHubState {
    book: Book,
    /// Runs that are not over.
    live: BTreeMap<RunNo, Arc<LiveRun>>,
    /// How a reader is told that it is too slow.
    cuts: BTreeMap<WatcherNo, CancellationToken>,
    /// How large the requests of live runs are together.
    request_bytes: usize,
}

impl RunHubState {
    /// Tells readers that they are too slow.
    fn cut(&self, slow: &[WatcherNo]) {
        for cut in slow.iter().filter_map(|watcher| self.cuts.get(watcher)) {
            cut.cancel();
        }
    }
}

/// A run that is waited for or executed.
pub(super) struct LiveRun {
    /// Set when it is to stop.
    pub(super) cancel: CancellationToken,
    /// Why it is to stop, in a sentence.
    why: OnceLock<&'static str>,
    /// How large its request is.
    request_bytes: usize,
    /// Told whenever it says something.
    said: Arc<Notify>,
    /// The steps of its code.
    pub(super) steps: RunSteps,
}

impl LiveRun {
    fn new(run: &str, request_bytes: usize) -> Self {
        let said = Arc::new(Notify::new());
        let steps = RunSteps::new(run, Arc::clone(&said));
        Self { cancel: CancellationToken::new(), why: OnceLock::new(), request_bytes, said, steps }
    }

    fn stop(&self, why: &'static str) {
        let _ = self.why.set(why);
        self.cancel.cancel();
    }

    /// Why it is to stop.
    pub(super) fn why(&self) -> &'static str {
        self.why.get().copied().unwrap_or("The run was canceled.")
    }
}

/// A connection's place at a run.
pub(super) struct RunSubscription {
    hub: Arc<Hub>,
    run: RunNo,
    watcher: WatcherNo,
    /// Told whenever the run says something.
    pub(super) said: Arc<Notify>,
    /// Set when the reader is too slow.
    pub(super) cut: CancellationToken,
    /// The steps of the run's code, as far as the run goes on.
    steps: Option<RunSteps>,
    /// The last step that was asked for here.
    asked: AtomicU64,
}

impl RunSubscription {
    /// What comes next. Steps that the run's code asks for come when all else has been said.
    pub(super) fn next(&self) -> NextFrames {
        let next = self.hub.state.lock().book.next(self.watcher);
        let (NextFrames::Wait, Some(steps)) = (&next, &self.steps) else { return next };
        let (texts, last) = steps.behind(self.asked.load(Ordering::Relaxed));
        self.asked.store(last, Ordering::Relaxed);
        if texts.is_empty() { next } else { NextFrames::Frames(texts) }
    }

    /// What became of a step.
    pub(super) fn stepped(&self, stepped: SteppedMessage) {
        if let Some(steps) = &self.steps {
            steps.answer(stepped);
        }
    }

    /// Stops the run.
    pub(super) fn cancel(&self) {
        self.hub.cancel(self.run, "The run was canceled.");
    }
}

impl Drop for RunSubscription {
    fn drop(&mut self) {
        let now = self.hub.clock.now();
        let mut state = self.hub.state.lock();
        state.book.leave(now, self.watcher);
        state.cuts.remove(&self.watcher);
    }
}

/// What came of a request.
pub(super) enum JoinResult {
    Seat(RunSubscription),
    Unfit(UnfitRequest),
    Refused(Refusal),
}

impl Hub {
    pub(super) fn new(options: Options, handler: Arc<dyn Handler>, transfer: FileTransfer) -> Self {
        let book = Book::new(options.limits.clone(), options.profile);
        let state =
            RunHubState { book, live: BTreeMap::new(), cuts: BTreeMap::new(), request_bytes: 0 };
        Self {
            clock: Clock::start(),
            handler,
            transfer,
            slots: Arc::new(Semaphore::new(options.concurrency.max(1))),
            runs: TaskTracker::new(),
            connections: Arc::new(Semaphore::new(options.connections_max)),
            unfinished: Arc::new(Semaphore::new(UNFINISHED_KIB_MAX)),
            is_draining: AtomicBool::new(false),
            state: Mutex::new(state),
            options,
        }
    }

    pub(super) fn profile(&self) -> Profile {
        self.options.profile
    }

    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Takes no further runs.
    pub(super) fn drain(&self) {
        // Under the lock, so that no run is taken behind it.
        let _state = self.state.lock();
        self.is_draining.store(true, Ordering::Release);
        self.runs.close();
    }

    /// Starts a run or attaches to it. The request had so many bytes.
    pub(super) fn join(
        self: &Arc<Self>,
        credential: Credential,
        request: RunRequest,
        request_bytes: usize,
    ) -> JoinResult {
        let mut state = self.state.lock();
        let full = self.full(&state, request_bytes);
        let (run, watcher) = match state.book.open(credential, &request, full) {
            OpenResult::Unfit(unfit) => return JoinResult::Unfit(unfit),
            OpenResult::Refused(refusal) => return JoinResult::Refused(refusal),
            OpenResult::Attached { run, watcher } => (run, watcher),
            OpenResult::Started { run, watcher, superseded } => {
                for older in superseded {
                    if let Some(live) = state.live.get(&older) {
                        live.stop("A newer attempt took over.");
                    }
                }
                let live = Arc::new(LiveRun::new(&request.control.run_id, request_bytes));
                state.request_bytes += request_bytes;
                state.live.insert(run, Arc::clone(&live));
                self.runs.spawn(execute(Arc::clone(self), run, live, request));
                (run, watcher)
            }
        };
        let cut = CancellationToken::new();
        state.cuts.insert(watcher, cut.clone());
        let live = state.live.get(&run);
        let said = live.map(|live| Arc::clone(&live.said)).unwrap_or_default();
        let steps = live.map(|live| live.steps.clone());
        let (hub, asked) = (Arc::clone(self), AtomicU64::new(0));
        JoinResult::Seat(RunSubscription { hub, run, watcher, said, cut, steps, asked })
    }

    /// Why no further run is taken, if so.
    fn full(&self, state: &RunHubState, request_bytes: usize) -> Option<&'static str> {
        let room = self.options.concurrency.max(1) + self.options.queue;
        let bytes = state.request_bytes.saturating_add(request_bytes);
        if self.is_draining() {
            return Some("The server is shutting down.");
        }
        // A request alone is taken however large it is; a frame has its own limit.
        let is_large = bytes > self.options.requests_bytes_max && state.request_bytes > 0;
        let is_full = state.book.open_runs() >= room || is_large;
        is_full.then_some("Too many runs wait already; try again later.")
    }

    /// A run says something.
    pub(super) fn say(&self, run: RunNo, said: RunReport) -> Result<(), Overflow> {
        let mut state = self.state.lock();
        let slow = state.book.say(self.clock.now(), run, said)?;
        state.cut(&slow);
        let live = state.live.get(&run).cloned();
        drop(state);
        if let Some(live) = live {
            live.said.notify_waiters();
        }
        Ok(())
    }

    /// Keeps what a run has cost so far; its end will tell.
    pub(super) fn note_cost(&self, run: RunNo, cost_micro: Micro) {
        self.state.lock().book.note_cost(run, cost_micro);
    }

    /// A run is over.
    pub(super) fn finish(&self, run: RunNo, ending: Ending) {
        let mut state = self.state.lock();
        state.book.finish(self.clock.now(), run, ending);
        let live = state.live.remove(&run);
        let request_bytes = live.as_ref().map_or(0, |live| live.request_bytes);
        state.request_bytes = state.request_bytes.saturating_sub(request_bytes);
        drop(state);
        if let Some(live) = live {
            live.said.notify_waiters();
        }
    }

    fn cancel(&self, run: RunNo, why: &'static str) {
        let mut state = self.state.lock();
        if state.book.cancel(run)
            && let Some(live) = state.live.get(&run)
        {
            live.stop(why);
        }
    }

    /// Cancels every run that is not over.
    pub(super) fn cancel_all(&self, why: &'static str) {
        let open = self.state.lock().book.open_run_nos();
        for run in open {
            self.cancel(run, why);
        }
    }

    /// Lets time pass in the book.
    pub(super) fn tick(&self) {
        let mut state = self.state.lock();
        let alone = state.book.time(self.clock.now());
        for run in alone {
            if let Some(live) = state.live.get(&run) {
                live.stop("Nobody came back for the run.");
            }
        }
    }
}
