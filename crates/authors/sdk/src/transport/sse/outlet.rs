//! Events of one session: those that nobody has read yet, and some that were read.
//!
//! A reader that comes back goes on where it was. One that begins anew sees what is kept, but no
//! request that was answered: it must not be executed twice.

use std::collections::HashSet;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use tokio::sync::watch;
use wharf_protocol::tool::{EventLog, NextEvents, ReaderPlace};

/// Events that may be unread before no more are taken.
const UNREAD_MAX: u64 = 256;
/// Events that are kept after they were read.
const KEPT_MAX: usize = 1_024;
/// Bytes of events that are kept after they were read.
const KEPT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// From here on no further event is handed to a reader at once.
const AT_ONCE_BYTES: usize = 64 * 1024;

/// Where the frames of a session go.
#[derive(Debug)]
pub(super) struct Outlet {
    state: Mutex<SseOutletState>,
    /// Rises with each change that readers want to know.
    news: watch::Sender<u64>,
    /// The connection's task, which wants to know about readers.
    task: AtomicWaker,
}

#[derive(Debug, Default)]
struct SseOutletState {
    log: EventLog,
    /// The highest number that any reader has been given.
    read: u64,
    readers: usize,
    /// Requests that were sent and not answered yet.
    open: HashSet<String>,
}

/// A reader of a session.
#[derive(Debug)]
pub(super) struct Cursor {
    outlet: Arc<Outlet>,
    place: ReaderPlace,
    news: watch::Receiver<u64>,
}

impl Outlet {
    pub(super) fn new() -> Self {
        let (news, _) = watch::channel(0);
        Self { state: Mutex::default(), news, task: AtomicWaker::new() }
    }

    /// Whether another frame is taken.
    pub(super) fn poll_ready(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(cx, |unread| unread < UNREAD_MAX)
    }

    /// Whether everything was given to a reader.
    pub(super) fn poll_read(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll(cx, |unread| unread == 0)
    }

    fn poll(&self, cx: &mut Context<'_>, is_enough: impl Fn(u64) -> bool) -> Poll<()> {
        self.task.register(cx.waker());
        let state = self.state.lock();
        if is_enough(state.log.last() - state.read) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Adds a frame. `request` is the id of the request that it is.
    pub(super) fn push(&self, frame: &str, request: Option<String>) {
        let mut state = self.state.lock();
        state.log.push(frame);
        state.open.extend(request);
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
        self.state.lock().log.end();
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
        let place = state.log.place(after, |id| state.open.contains(id))?;
        if state.log.misses(&place) {
            return None;
        }
        state.readers += 1;
        drop(state);
        self.task.wake();
        Some(Cursor { outlet: Arc::clone(self), place, news })
    }
}

impl SseOutletState {
    /// Lets events go that were read and are too many to be kept.
    fn forget(&mut self) {
        let is_full = |(events, bytes)| events > KEPT_MAX || bytes > KEPT_BYTES_MAX;
        while is_full(self.log.size()) && self.log.oldest().is_some_and(|it| it <= self.read) {
            self.log.shed_oldest();
        }
    }
}

impl Cursor {
    /// What there is to read now.
    pub(super) fn take(&mut self) -> NextEvents {
        let mut state = self.outlet.state.lock();
        if state.log.misses(&self.place) {
            // It was too slow; whatever it missed cannot be made up for.
            return NextEvents::End;
        }
        let next = state.log.take(&mut self.place, usize::MAX, AT_ONCE_BYTES);
        if self.place.after() > state.read {
            state.read = self.place.after();
            self.outlet.task.wake();
        }
        next
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
            NextEvents::Text(text) => text,
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
        assert_eq!((first.take(), second.take()), (NextEvents::Nothing, NextEvents::Nothing));
        outlet.end();
        assert_eq!(first.take(), NextEvents::End);
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
        for id in ["r1", "r2"] {
            outlet.push(&format!(r#"{{"id":"{id}","kind":"elicit"}}"#), Some(id.to_owned()));
        }
        outlet.over("r1");
        let mut late = outlet.read(None).expect("a reader");
        assert_eq!(text(&mut late), "id: 2\ndata: {\"id\":\"r2\",\"kind\":\"elicit\"}\n\n");
        let mut back = outlet.read(Some(0)).expect("a reader");
        assert!(text(&mut back).contains("r1"), "it asked for all of it");
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
        assert!(outlet.state.lock().log.size().0 <= KEPT_MAX);
        assert!(outlet.read(Some(5)).is_none(), "that is not kept any more");
        assert!(text(&mut reader).contains("data: 2999\n"));
        let mut cx = Context::from_waker(std::task::Waker::noop());
        (0..UNREAD_MAX).for_each(|_| outlet.push("x", None));
        assert!(outlet.poll_ready(&mut cx).is_pending());
        text(&mut reader);
        assert!(outlet.poll_ready(&mut cx).is_ready());
    }
}
