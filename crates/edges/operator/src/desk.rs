//! One seat: what waits for it, and its current connection.
//!
//! A request waits here until it is over. It is sent when it comes and again on every new
//! connection, so a connection that is lost loses nothing.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use wharf_domain::{Ask, Caller, Notice, Seat};
use wharf_vocab::{AskId, RunKey, Timestamp};
use wharf_wire::operator_v1::CoreMessage;

use crate::request::RequestId;
use crate::task::Task;

/// Notices that are kept for a seat that is away.
const NOTICES_MAX: usize = 1_000;
/// Cancels that are kept for a seat that is away.
const CANCELS_MAX: usize = 1_000;
/// What may wait for the task of one connection before the connection counts as too slow.
pub(crate) const ORDERS_MAX: usize = 1_024;

/// What a connection is told.
pub(crate) enum DeskOrder {
    /// Send this.
    Send(Box<CoreMessage>),
    /// End.
    Close { code: u16, reason: String },
}

/// What waits for a seat.
#[derive(Clone)]
pub(crate) enum SeatItem {
    /// A question or an approval.
    Ask(Arc<Ask>),
    /// An attempt to execute.
    Spawn(Arc<Task>),
}

impl SeatItem {
    /// The run it is about.
    pub(crate) fn run(&self) -> &RunKey {
        match self {
            Self::Ask(ask) => &ask.spec.run,
            Self::Spawn(task) => task.run(),
        }
    }
}

struct SeatRequest {
    order: u64,
    waiting: SeatItem,
    /// Whether it may have been sent before, perhaps by an earlier core.
    sent: bool,
    /// Whether the operator has taken it, so that only its worker is waited for.
    taken: bool,
    /// The connection whose decision is being written down.
    decided_by: Option<u64>,
    parent: Option<String>,
}

impl SeatRequest {
    /// The request as it is sent now.
    fn due(&mut self) -> OutgoingRequest {
        let redelivered = std::mem::replace(&mut self.sent, true);
        OutgoingRequest { waiting: self.waiting.clone(), redelivered, parent: self.parent.clone() }
    }
}

/// One seat.
pub(crate) struct Desk {
    pub(crate) seat: Seat,
    /// The seat as a caller.
    pub(crate) caller: Caller,
    /// Set when the seat was given up and whoever sat there has had the time to hear of it.
    pub(crate) gone: CancellationToken,
    state: Mutex<DeskState>,
}

#[derive(Default)]
struct DeskState {
    requests: HashMap<RequestId, SeatRequest>,
    next: u64,
    /// Notices that no connection has taken, oldest first.
    owed: VecDeque<OwedNotice>,
    /// Cancels that were not sent.
    cancels: VecDeque<CoreMessage>,
    epoch: u64,
    orders: Option<mpsc::Sender<DeskOrder>>,
    last_seen: Option<Timestamp>,
}

/// A notice on its way to the seat.
#[derive(Debug, Clone)]
pub(crate) struct OwedNotice {
    pub(crate) notice: Arc<Notice>,
    /// Whether it may have been sent before, perhaps by an earlier core.
    pub(crate) sent: bool,
}

/// A connection of a seat. What it says counts for as long as it is the current one.
#[derive(Clone)]
pub(crate) struct DeskConnection {
    pub(crate) desk: Arc<Desk>,
    /// Its number; replies with an older one do not count.
    pub(crate) epoch: u64,
}

/// A connection that was just made current.
pub(crate) struct CurrentConnection {
    /// Its number; replies with an older one do not count.
    pub(crate) epoch: u64,
    /// What is said to it.
    pub(crate) orders: mpsc::Receiver<DeskOrder>,
    /// Notices that no connection has taken.
    pub(crate) owed: Vec<OwedNotice>,
    /// Cancels that waited.
    pub(crate) cancels: Vec<CoreMessage>,
}

/// A request as it is to be sent.
#[must_use = "whoever sits there waits for it"]
pub(crate) struct OutgoingRequest {
    pub(crate) waiting: SeatItem,
    pub(crate) redelivered: bool,
    pub(crate) parent: Option<String>,
}

impl Desk {
    pub(crate) fn new(seat: Seat, now: Timestamp) -> Self {
        let state = DeskState { last_seen: Some(now), ..DeskState::default() };
        let caller = Caller::seat(&seat);
        Self { seat, caller, gone: CancellationToken::new(), state: Mutex::new(state) }
    }

    /// Lets a request wait, and sends it as it is written if somebody sits here; one that waits
    /// already is left alone. `sent` says that it may have been sent by an earlier core.
    pub(crate) fn offer(
        &self,
        id: RequestId,
        waiting: SeatItem,
        sent: bool,
        write: impl FnOnce(OutgoingRequest) -> CoreMessage,
    ) {
        if let Some(due) = self.add(id, waiting, sent) {
            self.tell(DeskOrder::Send(Box::new(write(due))));
        }
    }

    fn add(&self, id: RequestId, waiting: SeatItem, sent: bool) -> Option<OutgoingRequest> {
        let mut state = self.state.lock();
        if state.requests.contains_key(&id) {
            return None;
        }
        let outer = state.requests.iter().filter(|(_, it)| it.waiting.run() == waiting.run());
        let parent = outer.max_by_key(|(_, it)| it.order).map(|(id, _)| id.to_string());
        let order = state.next;
        state.next += 1;
        let (taken, decided_by) = (false, None);
        let mut request = SeatRequest { order, waiting, sent, taken, decided_by, parent };
        let due = state.orders.is_some().then(|| request.due());
        state.requests.insert(id, request);
        due
    }

    /// Whether a request waits.
    pub(crate) fn get(&self, id: &RequestId) -> Option<SeatItem> {
        self.state.lock().requests.get(id).map(|request| request.waiting.clone())
    }

    /// The operator took a request whose end is somebody else's to tell: it is not sent again.
    pub(crate) fn taken(&self, id: &RequestId) {
        if let Some(request) = self.state.lock().requests.get_mut(id) {
            request.taken = true;
        }
    }

    /// A connection decides a request, or none does after all; gives it back if it waits.
    pub(crate) fn decides(&self, id: &RequestId, epoch: Option<u64>) -> Option<SeatItem> {
        let mut state = self.state.lock();
        let request = state.requests.get_mut(id)?;
        request.decided_by = epoch;
        Some(request.waiting.clone())
    }

    /// Nobody waits for a request any more. An operator that may have it is told so, now or when
    /// it is back, unless it is the one who decided it.
    pub(crate) fn withdraw(&self, id: &RequestId, task_id: &str, reason: &str) {
        let (request, epoch) = {
            let mut state = self.state.lock();
            let Some(request) = state.requests.remove(id) else { return };
            (request, state.epoch)
        };
        if !request.sent || request.decided_by == Some(epoch) {
            return;
        }
        self.send_or_keep(CoreMessage::Cancel {
            req_id: id.to_string(),
            task_id: task_id.to_owned(),
            reason: reason.to_owned(),
        });
    }

    /// A request is over.
    pub(crate) fn remove(&self, id: &RequestId) -> Option<SeatItem> {
        self.state.lock().requests.remove(id).map(|request| request.waiting)
    }

    /// All that waits, oldest first.
    pub(crate) fn pending(&self) -> Vec<String> {
        let state = self.state.lock();
        let by_order: BTreeMap<u64, &RequestId> =
            state.requests.iter().map(|(id, it)| (it.order, id)).collect();
        by_order.into_values().map(ToString::to_string).collect()
    }

    /// What waits, oldest first, with whether it was taken.
    pub(crate) fn waiting(&self) -> Vec<(RequestId, SeatItem, bool)> {
        let state = self.state.lock();
        let by_order: BTreeMap<u64, _> =
            state.requests.iter().map(|(id, it)| (it.order, (id, it))).collect();
        let item =
            |(id, it): (&RequestId, &SeatRequest)| (id.clone(), it.waiting.clone(), it.taken);
        by_order.into_values().map(item).collect()
    }

    /// Forgets everything that waits.
    pub(crate) fn drain(&self) {
        self.state.lock().requests.clear();
    }

    /// Makes a connection the current one; the one before is told to end.
    pub(crate) fn take(&self, now: Timestamp) -> (CurrentConnection, Vec<OutgoingRequest>) {
        let (sender, orders) = mpsc::channel(ORDERS_MAX);
        let mut state = self.state.lock();
        if let Some(before) = state.orders.replace(sender) {
            let reason = "another connection took the seat".to_owned();
            let code = wharf_wire::operator_v1::close::NORMAL;
            // A connection whose queue is full ends when its queue is dropped.
            let _ = before.try_send(DeskOrder::Close { code, reason });
        }
        state.epoch += 1;
        state.last_seen = Some(now);
        let epoch = state.epoch;
        let cancels = std::mem::take(&mut state.cancels).into();
        let owed = state.owed.iter().cloned().collect();
        state.owed.iter_mut().for_each(|owed| owed.sent = true);
        let mut open: Vec<&mut SeatRequest> =
            state.requests.values_mut().filter(|request| !request.taken).collect();
        open.sort_by_key(|request| request.order);
        let due = open.into_iter().map(SeatRequest::due).collect();
        (CurrentConnection { epoch, orders, owed, cancels }, due)
    }

    /// A connection ended.
    pub(crate) fn leave(&self, epoch: u64, now: Timestamp) {
        let mut state = self.state.lock();
        if state.epoch == epoch {
            state.orders = None;
            state.last_seen = Some(now);
        }
    }

    /// Whether replies of a connection count.
    pub(crate) fn is_current(&self, epoch: u64) -> bool {
        let state = self.state.lock();
        state.epoch == epoch && state.orders.is_some()
    }

    /// Whether somebody sits here.
    pub(crate) fn is_taken(&self) -> bool {
        self.state.lock().orders.is_some()
    }

    /// When somebody last sat here.
    pub(crate) fn last_seen(&self) -> Option<Timestamp> {
        self.state.lock().last_seen
    }

    pub(crate) fn heard(&self, now: Timestamp) {
        self.state.lock().last_seen = Some(now);
    }

    /// Tells the current connection something. One that cannot keep up is dropped: what it has
    /// not got is sent again on the next one.
    pub(crate) fn tell(&self, order: DeskOrder) {
        let mut state = self.state.lock();
        let full = state.orders.as_ref().is_some_and(|orders| orders.try_send(order).is_err());
        if full {
            state.orders = None;
        }
    }

    /// Sends a cancel, or keeps it for later; the oldest go when there are too many.
    fn send_or_keep(&self, cancel: CoreMessage) {
        let mut state = self.state.lock();
        match &state.orders {
            Some(orders) if orders.try_send(DeskOrder::Send(Box::new(cancel.clone()))).is_ok() => {}
            _ => {
                if state.cancels.len() >= CANCELS_MAX {
                    state.cancels.pop_front();
                }
                state.cancels.push_back(cancel);
            }
        }
    }

    /// Owes the seat a notice; `message` is what is sent now, if somebody sits here. Gives back
    /// the oldest one if there are too many.
    pub(crate) fn owe(&self, owed: OwedNotice, message: CoreMessage) -> Option<Arc<Notice>> {
        let mut state = self.state.lock();
        if state.owed.iter().any(|it| it.notice.ask_id == owed.notice.ask_id) {
            return None;
        }
        let sends = |orders: &mpsc::Sender<DeskOrder>| {
            orders.try_send(DeskOrder::Send(Box::new(message))).is_ok()
        };
        let sent = state.orders.as_ref().is_some_and(sends);
        state.owed.push_back(OwedNotice { sent: owed.sent || sent, ..owed });
        match state.owed.len() > NOTICES_MAX {
            true => state.owed.pop_front().map(|owed| owed.notice),
            false => None,
        }
    }

    /// A connection has taken a notice; `false` if it is not owed any more.
    pub(crate) fn paid(&self, ask: &AskId) -> bool {
        let mut state = self.state.lock();
        let before = state.owed.len();
        state.owed.retain(|owed| owed.notice.ask_id != *ask);
        state.owed.len() < before
    }

    /// Takes all notices that are owed.
    pub(crate) fn forgive(&self) -> Vec<Arc<Notice>> {
        std::mem::take(&mut self.state.lock().owed).into_iter().map(|owed| owed.notice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wharf_domain::run::TaskRef;
    use wharf_domain::{NewSeat, SeatInput};
    use wharf_vocab::{Digest, RunId, SeatId, WorldId};

    fn desk() -> Desk {
        let id = SeatId::new("S-1").expect("valid");
        let new = NewSeat {
            desc: String::new(),
            token: Digest::of(&[b"t"]),
            roles: Vec::new(),
            tools: Vec::new(),
            person: false,
        };
        let by = Caller::owner().to_ref();
        let made = Seat::decide(None, &id, &SeatInput::Create(Box::new(new)), &by);
        let (entry, _) = made.expect("may").expect("changes");
        Desk::new(Seat::apply(None, &id, Timestamp(1), &entry).expect("a seat"), Timestamp(1))
    }

    fn owed(n: usize) -> (OwedNotice, CoreMessage) {
        let run = RunKey {
            world: WorldId::new("w").expect("valid"),
            run: RunId::new(format!("r{n}")).expect("valid"),
        };
        let notice = Notice {
            ask_id: AskId::in_shard(run.shard(), &format!("a{n}")),
            seat: SeatId::new("S-1").expect("valid"),
            tool: "acme/work".parse().expect("valid"),
            task: TaskRef::of(&run, Timestamp(1), 1),
            error: None,
            run,
        };
        let message = CoreMessage::Cancel {
            req_id: format!("n{n}"),
            task_id: notice.task.task_id.clone(),
            reason: String::new(),
        };
        (OwedNotice { notice: Arc::new(notice), sent: false }, message)
    }

    #[test]
    fn o014_what_is_kept_for_a_seat_is_bounded_and_the_oldest_go_first() {
        let desk = desk();
        for n in 0..NOTICES_MAX {
            let (owed, message) = owed(n);
            assert!(desk.owe(owed, message).is_none());
        }
        let (again, message) = owed(7);
        assert!(desk.owe(again, message).is_none(), "one that is owed already is owed once");
        let (next, message) = owed(NOTICES_MAX);
        let gone = desk.owe(next, message).expect("the oldest goes");
        assert_eq!(gone.run.run.as_str(), "r0");
        let (taken, due) = desk.take(Timestamp(2));
        assert_eq!((taken.owed.len(), due.len()), (NOTICES_MAX, 0));
        assert!(taken.owed.iter().all(|owed| !owed.sent), "none was sent before");
        let first = taken.owed[0].notice.ask_id.clone();
        assert!(desk.paid(&first) && !desk.paid(&first));
        let (again, _) = desk.take(Timestamp(3));
        assert_eq!(again.owed.len(), NOTICES_MAX - 1);
        assert!(again.owed.iter().all(|owed| owed.sent), "now all were");
        assert_eq!(desk.forgive().len(), NOTICES_MAX - 1);
    }

    fn id(text: &str) -> RequestId {
        RequestId::read(&text.replace("h-", "h-5eask-")).expect("a name")
    }

    fn ask() -> SeatItem {
        let run = RunKey {
            world: WorldId::new("w").expect("valid"),
            run: RunId::new("r").expect("valid"),
        };
        let spec = serde_json::json!({
            "ask_id": AskId::in_shard(run.shard(), "a1"), "kind": "approval", "run": run,
            "tool": "acme/work", "key": "dispatch", "title": "May it?", "audience": "seat:S-1",
            "caller": { "grant": "g-1", "person": false }, "deadline": 9,
        });
        let spec = serde_json::from_value(spec).expect("an ask");
        SeatItem::Ask(Arc::new(Ask::raised(spec, Timestamp(1))))
    }

    #[test]
    fn o005_an_ask_that_is_being_decided_is_sent_to_whoever_takes_the_seat_meanwhile() {
        let desk = desk();
        let (first, _) = desk.take(Timestamp(2));
        assert!(desk.add(id("h-1"), ask(), false).is_some(), "it is sent");
        assert!(desk.decides(&id("h-1"), Some(first.epoch)).is_some());
        let (mut second, due) = desk.take(Timestamp(3));
        assert_eq!(due.len(), 1, "and again, since nothing is decided yet");
        // What the first said could not be kept.
        assert!(desk.decides(&id("h-1"), None).is_some());
        assert_eq!(desk.pending(), [id("h-1").to_string()]);
        // The first tries again and is faster: the second is told, and nobody else.
        assert!(desk.decides(&id("h-1"), Some(first.epoch)).is_some());
        desk.withdraw(&id("h-1"), "ST-1", "decided elsewhere");
        let told = second.orders.try_recv().expect("it is told");
        assert!(
            matches!(told, DeskOrder::Send(message) if matches!(*message, CoreMessage::Cancel { .. }))
        );
        assert!(desk.add(id("h-2"), ask(), false).is_some());
        assert!(desk.decides(&id("h-2"), Some(second.epoch)).is_some());
        desk.withdraw(&id("h-2"), "ST-1", "decided elsewhere");
        assert!(second.orders.try_recv().is_err(), "whoever decided it knows");
    }
}
