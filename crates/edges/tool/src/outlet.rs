//! Events of one session that readers have not read yet, and some that they have.
//!
//! A reader that comes back goes on where it was, as long as that is kept. What is kept is bounded;
//! progress goes first, and whoever misses something is told.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::watch;
use wharf_protocol::tool::{EventLog, NextEvents, ReaderPlace};

use crate::shares::Share;

/// Events that are handed to a reader at once.
const AT_ONCE_MAX: usize = 64;
/// From here on no further event is handed to a reader at once; each has a copy until it is sent.
const AT_ONCE_BYTES: usize = 256 * 1024;
/// Readers of one session.
const READERS_MAX: usize = 16;

/// Where the frames of a session go.
pub(crate) struct Outlet {
    log: Mutex<EventLog>,
    /// The number of the last event.
    last: watch::Sender<u64>,
    readers: AtomicUsize,
    room: OutletLimits,
    /// What all sessions of the same token keep.
    share: Arc<Share>,
}

/// How much is kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OutletLimits {
    pub(crate) events_max: usize,
    pub(crate) bytes_max: usize,
    /// Bytes of all sessions of the same token.
    pub(crate) share_bytes_max: usize,
}

/// A reader of a session.
pub(crate) struct Cursor {
    outlet: Arc<Outlet>,
    place: ReaderPlace,
    news: watch::Receiver<u64>,
}

/// Why nothing can be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ReadRefusal {
    /// Too many read already.
    TooMany,
    /// The number is one of another session, which had the same name and has ended.
    Gone,
}

#[cfg(test)]
impl OutletLimits {
    /// Room for so many events with so many bytes.
    pub(crate) fn of(events_max: usize, bytes_max: usize) -> Self {
        Self { events_max, bytes_max, share_bytes_max: usize::MAX }
    }
}

impl Outlet {
    pub(crate) fn new(room: OutletLimits, share: Arc<Share>) -> Self {
        let (last, _) = watch::channel(0);
        Self { log: Mutex::default(), last, readers: AtomicUsize::new(0), room, share }
    }

    /// Adds a frame.
    pub(crate) fn push(&self, frame: &str) {
        let last = {
            let mut log = self.log.lock();
            let last = log.push(frame);
            let mut all = self.share.bytes.fetch_add(frame.len(), Ordering::SeqCst) + frame.len();
            while self.is_full(log.size(), all) {
                let Some(less) = log.shed_progress() else { break };
                all = self.share.bytes.fetch_sub(less, Ordering::SeqCst) - less;
            }
            last
        };
        self.last.send_replace(last);
    }

    fn is_full(&self, (events, bytes): (usize, usize), all: usize) -> bool {
        let room = &self.room;
        events > room.events_max || bytes > room.bytes_max || all > room.share_bytes_max
    }

    /// There will be no more events.
    pub(crate) fn end(&self) {
        self.log.lock().end();
        self.last.send_modify(|_| {});
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
    ) -> Result<Cursor, ReadRefusal> {
        let place = match self.readers.fetch_add(1, Ordering::SeqCst) < READERS_MAX {
            true => self.log.lock().place(after, |id| open.contains(id)).ok_or(ReadRefusal::Gone),
            false => Err(ReadRefusal::TooMany),
        };
        let place = place.inspect_err(|_| {
            self.readers.fetch_sub(1, Ordering::SeqCst);
        })?;
        Ok(Cursor { outlet: Arc::clone(self), place, news: self.last.subscribe() })
    }
}

impl Cursor {
    /// What there is to read now.
    pub(crate) fn take(&mut self) -> NextEvents {
        self.outlet.log.lock().take(&mut self.place, AT_ONCE_MAX, AT_ONCE_BYTES)
    }

    /// Waits for something new.
    pub(crate) async fn changed(&mut self) {
        // The outlet lives as long as its readers, so this does not fail.
        let _ = self.news.changed().await;
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        let (_, bytes) = self.log.get_mut().size();
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

    fn outlet(room: OutletLimits) -> Arc<Outlet> {
        Arc::new(Outlet::new(room, Arc::default()))
    }

    fn read(outlet: &Arc<Outlet>, after: Option<u64>) -> Cursor {
        outlet.read(after, &HashSet::new()).expect("there is room")
    }

    fn text(cursor: &mut Cursor) -> String {
        match cursor.take() {
            NextEvents::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn k029_a_reader_goes_on_where_it_was_and_others_do_not_notice() {
        let outlet = outlet(OutletLimits::of(10, 1_000));
        outlet.push("a");
        outlet.push("b");
        let mut first = read(&outlet, Some(1));
        assert_eq!(text(&mut first), "id: 2\ndata: b\n\n");
        assert_eq!(first.take(), NextEvents::Nothing);
        let mut late = read(&outlet, None);
        outlet.push("c");
        assert_eq!(text(&mut first), "id: 3\ndata: c\n\n");
        assert_eq!(text(&mut late), "id: 1\ndata: a\n\nid: 2\ndata: b\n\nid: 3\ndata: c\n\n");
        outlet.end();
        assert_eq!(late.take(), NextEvents::End);
        assert_eq!(outlet.readers(), 2);
        drop((first, late));
        assert_eq!(outlet.readers(), 0);
    }

    #[test]
    fn k029_progress_goes_first_and_whoever_misses_something_is_told() {
        let outlet = outlet(OutletLimits::of(3, 1_000));
        let progress = r#"{"type":"progress","id":"1","data":1}"#;
        let mut slow = read(&outlet, Some(0));
        outlet.push("answer one");
        outlet.push(progress);
        outlet.push("answer two");
        outlet.push("answer three");
        let told = text(&mut slow);
        assert!(told.starts_with("data: {\"type\":\"gap\",\"from\":1,\"to\":2}\n\n"), "{told}");
        assert!(told.contains("answer one") && told.contains("answer three"), "{told}");
        assert_eq!(slow.take(), NextEvents::Nothing);
        outlet.push("answer four");
        assert_eq!(text(&mut slow), "id: 5\ndata: answer four\n\n");
    }

    #[test]
    fn k029_what_went_before_anybody_could_read_it_is_not_waited_for() {
        let outlet = outlet(OutletLimits::of(2, 1_000));
        let mut reader = read(&outlet, Some(0));
        outlet.push("answer one");
        outlet.push("answer two");
        outlet.push(r#"{"type":"progress","id":"1","data":1}"#);
        let told = text(&mut reader);
        assert!(told.contains(r#""from":1,"to":3"#) && told.contains("answer two"), "{told}");
        assert_eq!(reader.take(), NextEvents::Nothing);
        outlet.push("answer three");
        assert_eq!(text(&mut reader), "id: 4\ndata: answer three\n\n");
    }

    #[test]
    fn k029_a_number_of_another_session_is_none_of_this_one() {
        let outlet = outlet(OutletLimits::of(10, 1_000));
        outlet.push("a");
        assert_eq!(outlet.read(Some(50), &HashSet::new()).err(), Some(ReadRefusal::Gone));
        assert_eq!(outlet.readers(), 0);
        assert_eq!(read(&outlet, Some(1)).take(), NextEvents::Nothing);
    }

    #[test]
    fn k029_a_late_joiner_sees_only_requests_that_are_open() {
        let outlet = outlet(OutletLimits::of(10, 1_000));
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
        let outlet = outlet(OutletLimits::of(10, usize::MAX));
        (0..4).for_each(|_| outlet.push(&big));
        let mut slow = read(&outlet, None);
        let piece = text(&mut slow);
        assert!(piece.len() < 500 * 1024, "not all of it is copied: {}", piece.len());
        assert_eq!(
            piece.len() + text(&mut slow).len(),
            4 * (big.len() + "id: 1\ndata: \n\n".len())
        );
        assert_eq!(slow.take(), NextEvents::Nothing);
        let many: Vec<Cursor> = (1..READERS_MAX).map(|_| read(&outlet, None)).collect();
        assert_eq!(outlet.read(None, &HashSet::new()).err(), Some(ReadRefusal::TooMany));
        drop(many);
        assert!(outlet.read(None, &HashSet::new()).is_ok());
    }

    #[test]
    fn k030_sessions_of_one_token_keep_a_share_together() {
        let share = Arc::new(Share::default());
        let room = OutletLimits { share_bytes_max: 10, ..OutletLimits::of(10, 1_000) };
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
