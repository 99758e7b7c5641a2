//! Events of one session: those that nobody has read yet, and some that were read.
//!
//! A reader that comes back goes on where it was. One that begins anew sees what is kept, but no
//! request that was answered: it must not be executed twice.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::watch;

/// Events that may be unread before no more are taken.
const UNREAD_MAX: u64 = 256;
/// Events that are kept after they were read.
const KEPT_MAX: usize = 1_024;
/// Bytes of events that are kept after they were read.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Bytes that are handed to a reader at once, if there is more than one event.
const AT_ONCE_BYTES: usize = 64 * 1024;

/// Where the frames of a session go.
#[derive(Debug)]
pub(super) struct Outlet {
    state: Mutex<State>,
    /// Rises with each change that readers want to know.
    news: watch::Sender<u64>,
    /// The connection's task, which wants to know about readers.
    task: AtomicWaker,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Kept>,
    bytes: usize,
    /// The number of the last event.
    last: u64,
    /// The highest number that any reader has been given.
    read: u64,
    /// The highest number that is not kept any more.
    gone: u64,
    readers: usize,
    /// Requests that were sent and not answered yet, with the numbers of their events.
    open: HashMap<String, u64>,
    /// Requests among the events, by their numbers.
    requests: HashSet<u64>,
    ended: bool,
}

#[derive(Debug)]
struct Kept {
    number: u64,
    text: Arc<str>,
}

/// A reader's place.
#[derive(Debug)]
pub(super) struct Cursor {
    outlet: Arc<Outlet>,
    after: u64,
    /// Requests that a reader need not see.
    over: HashSet<u64>,
    news: watch::Receiver<u64>,
}

/// What a reader gets next.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Events as text.
    Text(String),
    /// Nothing yet.
    Nothing,
    /// Nothing ever.
    End,
}

impl Outlet {
    pub(super) fn new() -> Self {
        let (news, _) = watch::channel(0);
        Self { state: Mutex::default(), news, task: AtomicWaker::new() }
    }

    /// Whether another frame is taken.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.task.register(cx.waker());
        let state = self.state.lock();
        if state.last - state.read < UNREAD_MAX { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Whether everything was given to a reader.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.task.register(cx.waker());
        let state = self.state.lock();
        if state.read == state.last { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Adds a frame. `request` is the id of the request that it is.
    pub(super) fn push(&self, frame: &str, request: Option<String>) {
        let mut state = self.state.lock();
        state.last += 1;
        let number = state.last;
        state.bytes += frame.len();
        state.events.push_back(Kept { number, text: frame.into() });
        if let Some(id) = request {
            state.requests.insert(number);
            state.open.insert(id, number);
        }
        state.forget();
        drop(state);
        self.news.send_modify(|news| *news += 1);
    }

    /// A request was answered, or nobody waits for it any more.
    pub(super) fn over(&self, id: &str) {
        self.state.lock().open.remove(id);
    }

    /// There will be no more events.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.news.send_modify(|news| *news += 1);
    }

    pub(super) fn readers(&self) -> usize {
        self.state.lock().readers
    }

    /// Lets the connection's task know when readers come and go.
    pub(super) fn watch_readers(&self, cx: &Context<'_>) {
        self.task.register(cx.waker());
    }

    /// A reader behind a number, or one that begins anew. `None` if something is missing between.
    pub(super) fn read(self: &Arc<Self>, after: Option<u64>) -> Option<Cursor> {
        let news = self.news.subscribe();
        let mut state = self.state.lock();
        if after.is_some_and(|after| after < state.gone || after > state.last) {
            return None;
        }
        let over = match after {
            Some(_) => HashSet::new(),
            None => {
                let open: HashSet<u64> = state.open.values().copied().collect();
                state.requests.difference(&open).copied().collect()
            }
        };
        state.readers += 1;
        drop(state);
        self.task.wake();
        Some(Cursor { outlet: Arc::clone(self), after: after.unwrap_or(0), over, news })
    }
}

impl State {
    /// Lets events go that were read and are too many to be kept.
    fn forget(&mut self) {
        while self.events.len() > KEPT_MAX || self.bytes > KEPT_BYTES_MAX {
            let Some(kept) = self.events.pop_front_if(|kept| kept.number <= self.read) else {
                return;
            };
            self.bytes -= kept.text.len();
            self.gone = kept.number;
            self.requests.remove(&kept.number);
        }
    }
}

impl Cursor {
    /// What there is to read now.
    pub(super) fn take(&mut self) -> Next {
        let mut state = self.outlet.state.lock();
        if self.after < state.gone && self.after > 0 {
            // It was too slow; whatever it missed cannot be made up for.
            return Next::End;
        }
        let mut text = String::new();
        let behind = state.events.partition_point(|kept| kept.number <= self.after);
        for kept in state.events.range(behind..) {
            if !text.is_empty() && text.len() + kept.text.len() > AT_ONCE_BYTES {
                break;
            }
            self.after = kept.number;
            if !self.over.remove(&kept.number) {
                text.push_str(&format!("id: {}\ndata: {}\n\n", kept.number, kept.text));
            }
        }
        if self.after > state.read {
            state.read = self.after;
            self.outlet.task.wake();
        }
        match text.is_empty() {
            false => Next::Text(text),
            true if state.ended => Next::End,
            true => Next::Nothing,
        }
    }

    /// Waits for something new.
    pub(super) async fn changed(&mut self) {
        // The outlet lives as long as its readers, so this does not fail.
        let _ = self.news.changed().await;
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.outlet.state.lock().readers -= 1;
        self.outlet.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cursor: &mut Cursor) -> String {
        match cursor.take() {
            Next::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn k029_several_readers_read_everything_each_at_its_own_pace() {
        let outlet = Arc::new(Outlet::new());
        let mut first = outlet.read(None).expect("a reader");
        outlet.push("a", None);
        assert_eq!(text(&mut first), "id: 1\ndata: a\n\n");
        let mut second = outlet.read(None).expect("a reader");
        outlet.push("b", None);
        assert_eq!(text(&mut first), "id: 2\ndata: b\n\n");
        assert_eq!(text(&mut second), "id: 1\ndata: a\n\nid: 2\ndata: b\n\n");
        assert_eq!((first.take(), second.take()), (Next::Nothing, Next::Nothing));
        outlet.end();
        assert_eq!(first.take(), Next::End);
        drop((first, second));
        assert_eq!(outlet.readers(), 0);
    }

    #[test]
    fn k029_a_reader_that_comes_back_misses_nothing_and_sees_nothing_twice() {
        let outlet = Arc::new(Outlet::new());
        for n in 0..10 {
            outlet.push(&n.to_string(), None);
        }
        let mut back = outlet.read(Some(8)).expect("kept");
        assert_eq!(text(&mut back), "id: 9\ndata: 8\n\nid: 10\ndata: 9\n\n");
        assert!(outlet.read(Some(11)).is_none(), "there is no such event");
    }

    #[test]
    fn k029_a_late_joiner_sees_only_requests_that_are_open() {
        let outlet = Arc::new(Outlet::new());
        outlet.push("over", Some("r1".to_owned()));
        outlet.push("open", Some("r2".to_owned()));
        outlet.over("r1");
        let mut late = outlet.read(None).expect("a reader");
        assert_eq!(text(&mut late), "id: 2\ndata: open\n\n");
        let mut back = outlet.read(Some(0)).expect("a reader");
        assert!(text(&mut back).contains("over"), "it asked for all of it");
    }

    #[test]
    fn k030_what_is_kept_is_bounded_and_nothing_unread_is_dropped() {
        let outlet = Arc::new(Outlet::new());
        let mut reader = outlet.read(None).expect("a reader");
        for n in 0..3_000 {
            outlet.push(&n.to_string(), None);
            if n % 100 == 0 {
                text(&mut reader);
            }
        }
        assert!(outlet.state.lock().events.len() <= KEPT_MAX);
        assert!(outlet.read(Some(5)).is_none(), "that is not kept any more");
        assert!(text(&mut reader).contains("data: 2999\n"));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        (0..UNREAD_MAX).for_each(|_| outlet.push("x", None));
        assert!(outlet.poll_ready(&mut cx).is_pending());
        text(&mut reader);
        assert!(outlet.poll_ready(&mut cx).is_ready());
    }
}
