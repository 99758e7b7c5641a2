//! Events of a session over server-sent events, kept for readers that come back.
//!
//! It keeps no connection and no clock: frames go in, and each reader takes them out as text at its
//! own pace. How much is kept is for its owner to say, who lets events go one by one.

use std::collections::{BTreeSet, VecDeque};

use serde::Deserialize;

/// Numbered events: those that nobody has read yet, and some that were read.
#[derive(Debug, Default)]
pub struct EventLog {
    events: VecDeque<KeptEvent>,
    bytes: usize,
    last: u64,
    /// The highest number that is kept no more.
    gone: u64,
    ended: bool,
}

#[derive(Debug)]
struct KeptEvent {
    number: u64,
    text: Box<str>,
    is_progress: bool,
}

/// A reader's place.
#[derive(Debug)]
pub struct ReaderPlace {
    after: u64,
    /// Up to here it was told what it missed.
    told: u64,
    /// Requests that are over, which a reader that begins anew need not see: none must be executed
    /// twice.
    over: BTreeSet<u64>,
}

/// What a reader gets next.
#[derive(Debug, PartialEq, Eq)]
pub enum NextEvents {
    /// Events as text; there may be more.
    Text(String),
    /// Nothing yet.
    Nothing,
    /// Nothing ever.
    End,
}

impl EventLog {
    /// Adds an event, and says its number.
    pub fn push(&mut self, frame: &str) -> u64 {
        self.last += 1;
        let is_progress = frame.starts_with(r#"{"type":"progress""#);
        self.bytes += frame.len();
        self.events.push_back(KeptEvent { number: self.last, text: frame.into(), is_progress });
        self.last
    }

    /// There will be no more events.
    pub fn end(&mut self) {
        self.ended = true;
    }

    /// Lets the oldest event go that is progress, or else the oldest, and says how long it was.
    pub fn shed_progress(&mut self) -> Option<usize> {
        self.shed(self.events.iter().position(|kept| kept.is_progress).unwrap_or(0))
    }

    /// Lets the oldest event go.
    pub fn shed_oldest(&mut self) {
        self.shed(0);
    }

    fn shed(&mut self, at: usize) -> Option<usize> {
        let kept = self.events.remove(at)?;
        self.bytes -= kept.text.len();
        self.gone = self.gone.max(kept.number);
        Some(kept.text.len())
    }

    /// The number of the last event.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.last
    }

    /// The number of the oldest event that is kept.
    #[must_use]
    pub fn oldest(&self) -> Option<u64> {
        self.events.front().map(|kept| kept.number)
    }

    /// How many events are kept, and how many bytes they have.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.events.len(), self.bytes)
    }

    /// The place of a reader behind a number, or of one that begins anew: it sees what is kept, but
    /// no request that is not open. Nothing if there is no event of that number.
    pub fn place(&self, after: Option<u64>, is_open: impl Fn(&str) -> bool) -> Option<ReaderPlace> {
        let Some(after) = after else {
            let over = self.events.iter().filter(|kept| is_over(&kept.text, &is_open));
            let over = over.map(|kept| kept.number).collect();
            return Some(ReaderPlace { after: 0, told: self.gone, over });
        };
        (after <= self.last).then(|| ReaderPlace { after, told: 0, over: BTreeSet::new() })
    }

    /// Whether something that a reader has not read is kept no more.
    #[must_use]
    pub fn misses(&self, place: &ReaderPlace) -> bool {
        self.gone > place.after.max(place.told)
    }

    /// What a reader gets next, about so many events and bytes at once. Whoever misses something is
    /// told.
    pub fn take(&self, place: &mut ReaderPlace, events_max: usize, bytes_max: usize) -> NextEvents {
        let mut text = String::new();
        if self.misses(place) {
            let (from, to) = (place.after + 1, self.gone);
            text.push_str(&format!("data: {{\"type\":\"gap\",\"from\":{from},\"to\":{to}}}\n\n"));
            place.told = to;
        }
        let behind = self.events.partition_point(|kept| kept.number <= place.after);
        for (n, kept) in self.events.range(behind..).enumerate() {
            if n >= events_max || text.len() >= bytes_max {
                return NextEvents::Text(text);
            }
            place.after = kept.number;
            if !place.over.remove(&kept.number) {
                text.push_str(&format!("id: {}\ndata: {}\n\n", kept.number, kept.text));
            }
        }
        // What is behind the last one that is kept has gone, and that was told.
        place.after = self.last;
        match text.is_empty() {
            false => NextEvents::Text(text),
            true if self.ended => NextEvents::End,
            true => NextEvents::Nothing,
        }
    }
}

impl ReaderPlace {
    /// The number of the last event that was read.
    #[must_use]
    pub fn after(&self) -> u64 {
        self.after
    }
}

/// Whether an event is a request that nobody waits for any more.
fn is_over(text: &str, is_open: impl Fn(&str) -> bool) -> bool {
    #[derive(Deserialize)]
    struct FrameHead {
        id: Option<String>,
        kind: Option<String>,
    }
    let head: Option<FrameHead> = serde_json::from_str(text).ok();
    head.is_some_and(|head| head.kind.is_some() && head.id.is_some_and(|id| !is_open(&id)))
}
