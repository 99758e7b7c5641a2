//! Events of one session that readers have not read yet, and some that they have.
//!
//! A reader that comes back goes on where it was, as long as that is kept. What is kept is bounded;
//! progress goes first, and whoever misses something is told.

use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use tokio::sync::watch;

/// Events that are handed to a reader at once.
const AT_ONCE_MAX: usize = 64;

/// Where the frames of a session go.
#[derive(Debug)]
pub(crate) struct Outlet {
    state: Mutex<State>,
    /// The number of the last event; closed when there will be no more.
    last: watch::Sender<u64>,
    readers: AtomicUsize,
    events_max: usize,
    bytes_max: usize,
}

#[derive(Debug, Default)]
struct State {
    events: VecDeque<Kept>,
    bytes: usize,
    last: u64,
    /// The highest number that is kept no more.
    gone: u64,
    ended: bool,
}

#[derive(Debug)]
struct Kept {
    id: u64,
    text: Arc<str>,
    is_progress: bool,
}

/// A reader's place.
#[derive(Debug)]
pub(crate) struct Cursor {
    outlet: Arc<Outlet>,
    after: u64,
    /// Up to here it was told what it missed.
    told: u64,
    /// Requests that are over, which a reader that begins anew need not see.
    over: HashSet<u64>,
    news: watch::Receiver<u64>,
}

/// What a reader gets next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Events as text.
    Text(String),
    /// Nothing yet.
    Nothing,
    /// Nothing ever.
    End,
}

impl Outlet {
    pub(crate) fn new(events_max: usize, bytes_max: usize) -> Self {
        let (last, _) = watch::channel(0);
        let (state, readers) = (Mutex::default(), AtomicUsize::new(0));
        Self { state, last, readers, events_max, bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a frame.
    pub(crate) fn push(&self, frame: &str) {
        let last = {
            let mut state = self.lock();
            state.last += 1;
            let is_progress = frame.starts_with(r#"{"type":"progress""#);
            let kept = Kept { id: state.last, text: frame.into(), is_progress };
            state.bytes += kept.text.len();
            state.events.push_back(kept);
            while state.events.len() > self.events_max || state.bytes > self.bytes_max {
                if !state.shed() {
                    break;
                }
            }
            state.last
        };
        self.last.send_replace(last);
    }

    /// There will be no more events.
    pub(crate) fn end(&self) {
        let last = {
            let mut state = self.lock();
            state.ended = true;
            state.last
        };
        self.last.send_replace(last);
    }

    pub(crate) fn readers(&self) -> usize {
        self.readers.load(Ordering::SeqCst)
    }

    /// A reader behind `after`; one that begins anew sees what is kept, but no request that is not
    /// among those that are `open`.
    pub(crate) fn read(self: &Arc<Self>, after: Option<u64>, open: &HashSet<String>) -> Cursor {
        self.readers.fetch_add(1, Ordering::SeqCst);
        let news = self.last.subscribe();
        let state = self.lock();
        let over = match after {
            Some(_) => HashSet::new(),
            None => {
                state.events.iter().filter(|kept| is_over(kept, open)).map(|it| it.id).collect()
            }
        };
        let told = if after.is_some() { 0 } else { state.gone };
        Cursor { outlet: Arc::clone(self), after: after.unwrap_or(0), told, over, news }
    }
}

impl State {
    /// Lets one event go: the oldest that is progress, else the oldest.
    fn shed(&mut self) -> bool {
        let place = self.events.iter().position(|kept| kept.is_progress).unwrap_or(0);
        let Some(kept) = self.events.remove(place) else { return false };
        self.bytes -= kept.text.len();
        self.gone = self.gone.max(kept.id);
        true
    }
}

/// Whether an event is a request that nobody waits for any more.
fn is_over(kept: &Kept, open: &HashSet<String>) -> bool {
    #[derive(Deserialize)]
    struct Head {
        id: Option<String>,
        kind: Option<String>,
    }
    let head: Option<Head> = serde_json::from_str(&kept.text).ok();
    head.is_some_and(|head| {
        head.kind.is_some() && head.id.is_some_and(|id| !open.contains(id.as_str()))
    })
}

impl Cursor {
    /// What there is to read now.
    pub(crate) fn take(&mut self) -> Next {
        let state = self.outlet.lock();
        let mut text = String::new();
        if state.gone > self.after.max(self.told) {
            let (from, to) = (self.after + 1, state.gone);
            text.push_str(&format!("data: {{\"type\":\"gap\",\"from\":{from},\"to\":{to}}}\n\n"));
            self.told = to;
        }
        let behind = state.events.partition_point(|kept| kept.id <= self.after);
        for kept in state.events.range(behind..).take(AT_ONCE_MAX) {
            self.after = kept.id;
            if !self.over.remove(&kept.id) {
                text.push_str(&format!("id: {}\ndata: {}\n\n", kept.id, kept.text));
            }
        }
        match text.is_empty() {
            false => Next::Text(text),
            true if self.after < state.last && !state.events.is_empty() => {
                Next::Text(String::new())
            }
            true if state.ended => Next::End,
            true => Next::Nothing,
        }
    }

    /// Waits for something new.
    pub(crate) async fn changed(&mut self) {
        if self.news.changed().await.is_err() {
            // The outlet lives as long as its readers, so this does not happen.
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Cursor {
    fn drop(&mut self) {
        self.outlet.readers.fetch_sub(1, Ordering::SeqCst);
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
    fn k029_a_reader_goes_on_where_it_was_and_others_do_not_notice() {
        let outlet = Arc::new(Outlet::new(10, 1_000));
        outlet.push("a");
        outlet.push("b");
        let none = HashSet::new();
        let mut first = outlet.read(Some(1), &none);
        assert_eq!(text(&mut first), "id: 2\ndata: b\n\n");
        assert_eq!(first.take(), Next::Nothing);
        let mut late = outlet.read(None, &none);
        outlet.push("c");
        assert_eq!(text(&mut first), "id: 3\ndata: c\n\n");
        assert_eq!(text(&mut late), "id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n");
        outlet.end();
        assert_eq!(late.take(), Next::End);
        assert_eq!(outlet.readers(), 2);
        drop((first, late));
        assert_eq!(outlet.readers(), 0);
    }

    #[test]
    fn k029_progress_goes_first_and_whoever_misses_something_is_told() {
        let outlet = Arc::new(Outlet::new(3, 1_000));
        let progress = r#"{"type":"progress","id":"1","data":1}"#;
        let mut slow = outlet.read(Some(0), &HashSet::new());
        outlet.push("answer one");
        outlet.push(progress);
        outlet.push("answer two");
        outlet.push("answer three");
        let told = text(&mut slow);
        assert!(told.starts_with("data: {\"type\":\"gap\",\"from\":1,\"to\":2}\n\n"), "{told}");
        assert!(told.contains("answer one") && told.contains("answer three"), "{told}");
        assert_eq!(slow.take(), Next::Nothing);
        outlet.push("answer four");
        assert_eq!(text(&mut slow), "id: 5\ndata: answer four\n\n");
    }

    #[test]
    fn k029_a_late_joiner_sees_only_requests_that_are_open() {
        let outlet = Arc::new(Outlet::new(10, 1_000));
        let request =
            |id: &str| format!(r#"{{"id":"{id}","kind":"elicit","type":"t","payload":1}}"#);
        outlet.push(&request("over"));
        outlet.push(&request("open"));
        let open = HashSet::from(["open".to_owned()]);
        let mut late = outlet.read(None, &open);
        let seen = text(&mut late);
        assert!(seen.contains(r#""id":"open""#) && !seen.contains(r#""id":"over""#), "{seen}");
        let mut back = outlet.read(Some(0), &open);
        assert!(text(&mut back).contains(r#""id":"over""#), "it asked for all of it");
    }
}
