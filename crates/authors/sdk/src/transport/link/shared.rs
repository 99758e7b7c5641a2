//! What the handles of a connection and its task share.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use wharf_protocol::tool::{CallError, ToolAnswer, ToolEvent, ToolRequest, ToolSession};
use wharf_protocol::{Closed, Incoming as ReceivedFrame, Moment, Outgoing as Frame, Session as _};
use wharf_vocab::{Code, Executed, Fault, Micro, Timestamp};
use wharf_wire::tool_v1::{Offer, OfferedTool, Request, ToolMessage};

use super::{Counters, going};
use crate::transport::{Exchange, Limits, Options, Outgoing, Spent};

/// Frames that may wait before whoever makes more of them has to wait, too.
const ROOM_FRAMES: usize = 64;
/// The same for their bytes.
const ROOM_BYTES: usize = 1024 * 1024;
/// Bytes that may wait before calls are refused.
const CALLS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A session without signs of life of its own knows no time.
const NOW: Moment = Moment { ms: 0, at: Timestamp(0) };

/// What the handles of a connection and its task share.
pub(super) struct LinkState {
    pub(super) marked: bool,
    pub(super) closed: CancellationToken,
    pub(super) state: Mutex<LinkCalls>,
    /// The connection's task, which sends what waits.
    pub(super) task: AtomicWaker,
    /// Somebody may send again.
    room: Notify,
    /// There is something to be served.
    requests: Notify,
    progress_max: usize,
    limits: Limits,
}

pub(super) struct LinkCalls {
    session: ToolSession,
    number: u64,
    waiters: HashMap<String, CallWaiter>,
    /// Requests that nobody has taken up yet.
    incoming: VecDeque<ToolRequest>,
    /// What stops those that were.
    taken: HashMap<String, CancellationToken>,
    /// How many serve this connection.
    servers: usize,
    offers: VecDeque<oneshot::Sender<Offer>>,
    pub(super) offered: Vec<OfferedTool>,
    progress_dropped: u64,
    /// Whether an orderly end has begun.
    pub(super) closing: bool,
}

/// Whoever waits for the answer to a call.
struct CallWaiter {
    answer: oneshot::Sender<ToolAnswer>,
    /// Absent when nobody listens.
    progress: Option<mpsc::Sender<Value>>,
    cost: Spent,
}

impl LinkState {
    pub(super) fn new(marked: bool, bare: bool, options: &Options) -> Self {
        let state = LinkCalls {
            session: ToolSession::new(marked, bare, options.limits),
            number: 0,
            waiters: HashMap::new(),
            incoming: VecDeque::new(),
            taken: HashMap::new(),
            servers: 0,
            offers: VecDeque::new(),
            offered: Vec::new(),
            progress_dropped: 0,
            closing: false,
        };
        Self {
            marked,
            closed: CancellationToken::new(),
            state: Mutex::new(state),
            task: AtomicWaker::new(),
            room: Notify::new(),
            requests: Notify::new(),
            progress_max: options.progress_max.max(1),
            limits: options.limits,
        }
    }

    /// Makes a call, perhaps on behalf of a request that is served here.
    pub(super) fn call(shared: &Arc<Self>, outgoing: Outgoing, of: Option<&str>) -> Exchange {
        let Outgoing { kind, method, payload, heard, at: _ } = outgoing;
        let (answer, answered) = oneshot::channel();
        let (told, progress) = mpsc::channel(if heard { shared.progress_max } else { 1 });
        let cost = Spent::default();
        let waiter = CallWaiter { answer, progress: heard.then_some(told), cost: cost.clone() };
        let mut state = shared.state.lock();
        state.number += 1;
        let id = state.number.to_string();
        let request = Request { id: id.clone(), kind, method: method.into_owned(), payload };
        let made = match of {
            _ if state.closing => Err(CallError::Ended),
            _ if state.is_overfull(shared.limits.calls_max) => Err(CallError::Full),
            Some(of) => state.session.call_within(of, request),
            None => state.session.call(request),
        };
        if let Err(error) = made {
            return Exchange::answered(refused(error));
        }
        // Nothing is sent while the lock is held, so no answer can come before its waiter is here.
        state.waiters.insert(id.clone(), waiter);
        drop(state);
        shared.task.wake();
        let guard = Guard { shared: Arc::clone(shared), id };
        Exchange { progress, answer: answered, cost, guard: Box::new(guard) }
    }

    /// Nobody waits for a call any more.
    fn call_off(&self, id: &str) {
        let mut state = self.state.lock();
        let waiter = state.waiters.remove(id);
        let told = state.session.cancel(id);
        drop(state);
        drop(waiter);
        if told {
            self.task.wake();
        }
    }

    /// Offers tools and waits for what becomes of it; `None` if the connection ended first.
    pub(super) async fn offer(&self, tools: Vec<OfferedTool>) -> Option<Offer> {
        let (sender, receiver) = oneshot::channel();
        {
            let mut state = self.state.lock();
            if state.closing || self.closed.is_cancelled() {
                return None;
            }
            state.offers.push_back(sender);
            state.session.offer(tools);
        }
        self.task.wake();
        receiver.await.ok()
    }

    /// Begins an orderly end.
    pub(super) fn begin_close(&self) {
        let mut state = self.state.lock();
        if !state.closing {
            state.closing = true;
            state.session.answer_all(&going());
            self.react(&mut state);
        }
        drop(state);
        self.task.wake();
    }

    /// Takes a frame. `false` if the peer sends more than it reads.
    pub(super) fn receive(&self, text: &str) -> bool {
        // Read before the lock is taken: frames can be large.
        let fits = text.len() <= self.limits.frame_bytes_max;
        let read = fits.then(|| ToolMessage::read(text));
        let mut state = self.state.lock();
        match read {
            Some(read) => state.session.receive_read(read),
            None => state.session.receive(NOW, ReceivedFrame::Text(text)),
        }
        self.react(&mut state);
        state.session.frames_waiting() <= 4 * self.limits.calls_max
    }

    /// The next frame to be sent.
    pub(super) fn next_frame(&self) -> Option<String> {
        let mut state = self.state.lock();
        let Frame::Text(frame) = state.session.poll_send()? else { return None };
        if state.has_room() {
            self.room.notify_waiters();
        }
        Some(frame)
    }

    /// The connection has ended.
    pub(super) fn end(&self) {
        let mut state = self.state.lock();
        state.closing = true;
        state.session.end(NOW, Closed::ended());
        self.react(&mut state);
        state.offers.clear();
        state.waiters.clear();
        drop(state);
        self.closed.cancel();
        self.room.notify_waiters();
        self.requests.notify_waiters();
    }

    /// Refuses what nobody serves.
    pub(super) fn refuse_unserved(&self) {
        let mut state = self.state.lock();
        if state.servers == 0 {
            let message = "Nobody serves tools on this connection.";
            let fault = Fault::new(Code::ToolUnavailable, message).executed(Executed::No);
            let answer = ToolAnswer::Failed(fault);
            while let Some(incoming) = state.incoming.pop_front() {
                state.session.answer(&incoming.id, &answer);
            }
        }
    }

    /// Whether something waits to be served, and nobody serves.
    pub(super) fn is_unserved(&self) -> bool {
        let state = self.state.lock();
        state.servers == 0 && !state.incoming.is_empty()
    }

    pub(super) fn counters(&self) -> Counters {
        let state = self.state.lock();
        let seen = state.session.counters();
        Counters {
            calls_waiting: state.session.calls_waiting(),
            served: state.session.served(),
            frames_waiting: state.session.frames_waiting(),
            progress_dropped: state.progress_dropped,
            unknown_ids: seen.unknown_ids,
            duplicate_responses: seen.duplicate_responses,
            unreadable: seen.unreadable,
            unknown_types: seen.unknown_types,
        }
    }

    /// Does what follows from what was received.
    fn react(&self, state: &mut LinkCalls) {
        while let Some(event) = state.session.poll_event() {
            match event {
                ToolEvent::Request(incoming) => {
                    state.incoming.push_back(incoming);
                    self.requests.notify_one();
                }
                ToolEvent::Canceled { id } => state.canceled(&id),
                ToolEvent::Progress { id, data } => state.progress(&id, data),
                // Of a call that is over nobody here keeps books.
                ToolEvent::Cost { id, so_far_micro } => {
                    if let Some(waiter) = state.waiters.get(&id) {
                        waiter.cost.raise(so_far_micro);
                    }
                }
                ToolEvent::Answered { id, answer } => {
                    if let Some(waiter) = state.waiters.remove(&id) {
                        // Whoever does not wait any more does not mind.
                        let _ = waiter.answer.send(answer);
                    }
                }
                ToolEvent::Offer(tools) => {
                    let names = tools.iter().map(|tool| tool.name.clone()).collect();
                    state.offered = tools;
                    state.session.offered(Offer::Tools(names));
                }
                ToolEvent::Offered(offer) => {
                    if let Some(sender) = state.offers.pop_front() {
                        // As above.
                        let _ = sender.send(offer);
                    }
                }
            }
        }
    }
}

impl LinkCalls {
    /// Whether there is room for what can wait.
    fn has_room(&self) -> bool {
        self.session.frames_waiting() < ROOM_FRAMES && self.session.bytes_waiting() < ROOM_BYTES
    }

    /// Whether so much waits that calls are refused.
    fn is_overfull(&self, calls_max: usize) -> bool {
        // A call and its cancel for each that may be open.
        self.session.frames_waiting() >= 2 * calls_max
            || self.session.bytes_waiting() >= CALLS_BYTES_MAX
    }

    fn canceled(&mut self, id: &str) {
        if let Some(stop) = self.taken.remove(id) {
            stop.cancel();
        }
        self.incoming.retain(|incoming| incoming.id != id);
    }

    fn progress(&mut self, id: &str, data: Value) {
        let Some(waiter) = self.waiters.get_mut(id) else { return };
        let Some(progress) = &waiter.progress else { return };
        match progress.try_send(data) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => self.progress_dropped += 1,
            Err(mpsc::error::TrySendError::Closed(_)) => waiter.progress = None,
        }
    }
}

/// Calls a request off when it is dropped; one that is over does not mind.
struct Guard {
    shared: Arc<LinkState>,
    id: String,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.shared.call_off(&self.id);
    }
}

fn refused(error: CallError) -> ToolAnswer {
    let (code, message) = match error {
        CallError::Full | CallError::Duplicate => {
            (Code::ToolBusy, "Too many calls are under way on this connection.")
        }
        CallError::TooLarge => {
            (Code::ToolInvalidInput, "The input is too large for this connection.")
        }
        CallError::Ended => (Code::TransportLost, "The connection has ended."),
    };
    ToolAnswer::Failed(Fault::new(code, message).executed(Executed::No))
}

/// Somebody who serves a connection.
pub(crate) struct LinkServer {
    shared: Arc<LinkState>,
}

impl LinkServer {
    pub(super) fn new(shared: Arc<LinkState>) -> Self {
        shared.state.lock().servers += 1;
        Self { shared }
    }

    /// The next request, and what tells when nobody waits for it any more. `None` once the
    /// connection has ended.
    pub(crate) async fn next(&self) -> Option<(ToolRequest, CancellationToken)> {
        loop {
            let waiting = self.shared.requests.notified();
            tokio::pin!(waiting);
            waiting.as_mut().enable();
            {
                let mut state = self.shared.state.lock();
                if let Some(incoming) = state.incoming.pop_front() {
                    let stop = CancellationToken::new();
                    state.taken.insert(incoming.id.clone(), stop.clone());
                    return Some((incoming, stop));
                }
            }
            if self.shared.closed.is_cancelled() {
                return None;
            }
            waiting.await;
        }
    }

    /// Says something on the way to an answer. It waits while the peer is behind.
    pub(crate) async fn progress(&self, id: &str, data: Value) {
        let mut data = Some(data);
        self.when_room(|state| {
            state.session.progress(id, data.take().unwrap_or_default());
        })
        .await;
    }

    /// Says what a request has cost so far.
    pub(crate) fn cost(&self, id: &str, so_far_micro: Micro) {
        if self.shared.state.lock().session.cost(id, so_far_micro) {
            self.shared.task.wake();
        }
    }

    /// Answers a request. It waits while the peer is behind.
    pub(crate) async fn answer(&self, id: &str, answer: &ToolAnswer) {
        self.when_room(|state| {
            state.taken.remove(id);
            state.session.answer(id, answer);
        })
        .await;
    }

    /// Does something that may be sent, when there is room.
    async fn when_room(&self, mut act: impl FnMut(&mut LinkCalls)) {
        loop {
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            {
                let mut state = self.shared.state.lock();
                if state.has_room() || self.shared.closed.is_cancelled() {
                    act(&mut state);
                    drop(state);
                    self.shared.task.wake();
                    return;
                }
            }
            room.await;
        }
    }

    /// Refuses what nobody has taken up, and everything that comes while this is held.
    pub(crate) fn refuse(&self, answer: &ToolAnswer) {
        let mut state = self.shared.state.lock();
        while let Some(incoming) = state.incoming.pop_front() {
            state.session.answer(&incoming.id, answer);
        }
        drop(state);
        self.shared.task.wake();
    }
}

impl Drop for LinkServer {
    fn drop(&mut self) {
        self.shared.state.lock().servers -= 1;
        // What waits may have to be refused, or be for somebody else who serves.
        self.shared.requests.notify_one();
        self.shared.task.wake();
    }
}
