//! Events of one session that readers have not read yet, and some that they have.
//!
//! A reader that comes back goes on where it was, as long as that is kept. What is kept is bounded;
//! progress goes first, and whoever misses something is told.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::sync::watch;

use crate::shares::Share;

/// Events that are handed to a reader at once.
const AT_ONCE_MAX: usize = 64;
/// From here on no further event is handed to a reader at once; each has a copy until it is sent.
const AT_ONCE_BYTES: usize = 256 * 1024;
/// Readers of one session.
const READERS_MAX: usize = 16;

/// Where the frames of a session go.
#[derive(Debug)]
pub(crate) struct Outlet {
    state: Mutex<State>,
    /// The number of the last event; closed when there will be no more.
    last: watch::Sender<u64>,
    readers: AtomicUsize,
    room: Room,
    /// What all sessions of the same token keep.
    share: Arc<Share>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    /// Events.
    pub(crate) events_max: usize,
    /// Their bytes.
    pub(crate) bytes_max: usize,
    /// Bytes of all sessions of the same token.
    pub(crate) share_bytes_max: usize,
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

/// Why nothing can be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Too many read already.
    TooMany,
    /// The number is one of another session, which had the same name and has ended.
    Gone,
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

#[cfg(test)]
impl Room {
    /// Room for so many events with so many bytes.
    pub(crate) fn of(events_max: usize, bytes_max: usize) -> Self {
        Self { events_max, bytes_max, share_bytes_max: usize::MAX }
    }
}

impl Outlet {
    pub(crate) fn new(room: Room, share: Arc<Share>) -> Self {
        let (last, _) = watch::channel(0);
        let (state, readers) = (Mutex::default(), AtomicUsize::new(0));
        Self { state, last, readers, room, share }
    }

    /// Adds a frame.
    pub(crate) fn push(&self, frame: &str) {
        let last = {
            let mut state = self.state.lock();
            state.last += 1;
            let is_progress = frame.starts_with(r#"{"type":"progress""#);
            let kept = Kept { id: state.last, text: frame.into(), is_progress };
            let more = kept.text.len();
            state.bytes += more;
            let mut all = self.share.bytes.fetch_add(more, Ordering::SeqCst) + more;
            state.events.push_back(kept);
            while state.events.len() > self.room.events_max
                || state.bytes > self.room.bytes_max
                || all > self.room.share_bytes_max
            {
                let Some(less) = state.shed() else { break };
                all = self.share.bytes.fetch_sub(less, Ordering::SeqCst) - less;
            }
            state.last
        };
        self.last.send_replace(last);
    }

    /// There will be no more events.
    pub(crate) fn end(&self) {
        let last = {
            let mut state = self.state.lock();
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
    pub(crate) fn read(
        self: &Arc<Self>,
        after: Option<u64>,
        open: &HashSet<String>,
    ) -> Result<Cursor, Unread> {
        if self.readers.fetch_add(1, Ordering::SeqCst) >= READERS_MAX {
            self.readers.fetch_sub(1, Ordering::SeqCst);
            return Err(Unread::TooMany);
        }
        let news = self.last.subscribe();
        let state = self.state.lock();
        if after.is_some_and(|after| after > state.last) {
            self.readers.fetch_sub(1, Ordering::SeqCst);
            return Err(Unread::Gone);
        }
        let over = match after {
            Some(_) => HashSet::new(),
            None => {
                state.events.iter().filter(|kept| is_over(kept, open)).map(|it| it.id).collect()
            }
        };
        let told = if after.is_some() { 0 } else { state.gone };
        let after = after.unwrap_or(0);
        Ok(Cursor { outlet: Arc::clone(self), after, told, over, news })
    }
}

impl State {
    /// Lets one event go, and says how long it was: the oldest that is progress, else the oldest.
    fn shed(&mut self) -> Option<usize> {
        let place = self.events.iter().position(|kept| kept.is_progress).unwrap_or(0);
        let kept = self.events.remove(place)?;
        self.bytes -= kept.text.len();
        self.gone = self.gone.max(kept.id);
        Some(kept.text.len())
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
        let state = self.outlet.state.lock();
        let mut text = String::new();
        if state.gone > self.after.max(self.told) {
            let (from, to) = (self.after + 1, state.gone);
            text.push_str(&format!("data: {{\"type\":\"gap\",\"from\":{from},\"to\":{to}}}\n\n"));
            self.told = to;
        }
        let behind = state.events.partition_point(|kept| kept.id <= self.after);
        let mut more = false;
        for (n, kept) in state.events.range(behind..).enumerate() {
            if n >= AT_ONCE_MAX || text.len() >= AT_ONCE_BYTES {
                more = true;
                break;
            }
            self.after = kept.id;
            if !self.over.remove(&kept.id) {
                text.push_str(&format!("id: {}\ndata: {}\n\n", kept.id, kept.text));
            }
        }
        if !more {
            // What is behind the last one that is kept has gone, and that was told.
            self.after = state.last;
        }
        match text.is_empty() {
            false => Next::Text(text),
            true if more => Next::Text(String::new()),
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

impl Drop for Outlet {
    fn drop(&mut self) {
        let bytes = self.state.get_mut().bytes;
        self.share.bytes.fetch_sub(bytes, Ordering::SeqCst);
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

    fn outlet(room: Room) -> Arc<Outlet> {
        Arc::new(Outlet::new(room, Arc::default()))
    }

    fn read(outlet: &Arc<Outlet>, after: Option<u64>) -> Cursor {
        outlet.read(after, &HashSet::new()).expect("there is room")
    }

    fn text(cursor: &mut Cursor) -> String {
        match cursor.take() {
            Next::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn k029_a_reader_goes_on_where_it_was_and_others_do_not_notice() {
        let outlet = outlet(Room::of(10, 1_000));
        outlet.push("a");
        outlet.push("b");
        let mut first = read(&outlet, Some(1));
        assert_eq!(text(&mut first), "id: 2\ndata: b\n\n");
        assert_eq!(first.take(), Next::Nothing);
        let mut late = read(&outlet, None);
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
        let outlet = outlet(Room::of(3, 1_000));
        let progress = r#"{"type":"progress","id":"1","data":1}"#;
        let mut slow = read(&outlet, Some(0));
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
    fn k029_what_went_before_anybody_could_read_it_is_not_waited_for() {
        let outlet = outlet(Room::of(2, 1_000));
        let mut reader = read(&outlet, Some(0));
        outlet.push("answer one");
        outlet.push("answer two");
        outlet.push(r#"{"type":"progress","id":"1","data":1}"#);
        let told = text(&mut reader);
        assert!(told.contains(r#""from":1,"to":3"#) && told.contains("answer two"), "{told}");
        assert_eq!(reader.take(), Next::Nothing);
        outlet.push("answer three");
        assert_eq!(text(&mut reader), "id: 4\ndata: answer three\n\n");
    }

    #[test]
    fn k029_a_number_of_another_session_is_none_of_this_one() {
        let outlet = outlet(Room::of(10, 1_000));
        outlet.push("a");
        assert_eq!(outlet.read(Some(50), &HashSet::new()).err(), Some(Unread::Gone));
        assert_eq!(outlet.readers(), 0);
        assert_eq!(read(&outlet, Some(1)).take(), Next::Nothing);
    }

    #[test]
    fn k029_a_late_joiner_sees_only_requests_that_are_open() {
        let outlet = outlet(Room::of(10, 1_000));
        let request =
            |id: &str| format!(r#"{{"id":"{id}","kind":"elicit","type":"t","payload":1}}"#);
        outlet.push(&request("over"));
        outlet.push(&request("open"));
        let open = HashSet::from(["open".to_owned()]);
        let mut late = outlet.read(None, &open).expect("there is room");
        let seen = text(&mut late);
        assert!(seen.contains(r#""id":"open""#) && !seen.contains(r#""id":"over""#), "{seen}");
        let mut back = outlet.read(Some(0), &open).expect("there is room");
        assert!(text(&mut back).contains(r#""id":"over""#), "it asked for all of it");
    }

    #[test]
    fn k030_what_readers_make_the_core_keep_is_bounded() {
        let big = "x".repeat(200 * 1024);
        let outlet = outlet(Room::of(10, usize::MAX));
        (0..4).for_each(|_| outlet.push(&big));
        let mut slow = read(&outlet, None);
        let piece = text(&mut slow);
        assert!(piece.len() < 500 * 1024, "not all of it is copied: {}", piece.len());
        assert_eq!(
            piece.len() + text(&mut slow).len(),
            4 * (big.len() + "id: 1\ndata: \n\n".len())
        );
        assert_eq!(slow.take(), Next::Nothing);
        let many: Vec<Cursor> = (1..READERS_MAX).map(|_| read(&outlet, None)).collect();
        assert_eq!(outlet.read(None, &HashSet::new()).err(), Some(Unread::TooMany));
        drop(many);
        assert!(outlet.read(None, &HashSet::new()).is_ok());
    }

    #[test]
    fn k030_sessions_of_one_token_keep_a_share_together() {
        let share = Arc::new(Share::default());
        let room = Room { share_bytes_max: 10, ..Room::of(10, 1_000) };
        let (one, two) = (Outlet::new(room, Arc::clone(&share)), Outlet::new(room, share.clone()));
        one.push("12345678");
        two.push("1234");
        assert_eq!(share.bytes.load(Ordering::SeqCst), 8, "the second lets go of its own");
        one.push("123456");
        assert_eq!(share.bytes.load(Ordering::SeqCst), 6);
        drop((one, two));
        assert_eq!(share.bytes.load(Ordering::SeqCst), 0);
    }
}
