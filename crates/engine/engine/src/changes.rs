//! What changed, told thinly: which thing, and how it stands. Readers look it up where they want to
//! know more.
//!
//! Changes are gathered and told in frames, at most four a second, each thing once with its newest
//! state; one frame is shared by all readers. There is no history: a reader that begins or falls
//! behind is told to look at everything again.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use wharf_domain::{Ask, Availability, Caller, Run};
use wharf_ports::{Batch, Body};
use wharf_vocab::{ChangeKind, ProviderId, Seq, Timestamp, ToolId, Verb, WorldId};

use crate::shard::AnyRecord;

/// How far apart frames are, at least.
const FRAME: Duration = Duration::from_millis(250);
/// Things that one frame may name; when more changed, everything is to be looked at again.
const ITEMS_MAX: usize = 4_096;
/// Frames that may wait for one reader.
const FRAMES_MAX: usize = 16;

/// Something that changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What it is.
    pub kind: ChangeKind,
    /// Its world, if it has one.
    pub world: Option<WorldId>,
    /// Its id.
    pub id: String,
    /// Grows with every change of the same thing.
    pub seq: u64,
    /// How it stands now.
    pub status: &'static str,
    /// The tool that it is about, if it is a run or an ask: not everybody may know of it.
    pub tool: Option<ToolId>,
}

impl Change {
    /// Whether a caller may know of it: it lies in their worlds, and they may use its tool. Of
    /// tokens only those know who administer all of them.
    pub fn is_known_to(&self, caller: &Caller) -> bool {
        let rights = &caller.rights;
        let world = self.world.as_ref().is_none_or(|world| rights.in_world(world));
        let tool = self.tool.as_ref().is_none_or(|tool| rights.check_tool(tool).is_ok());
        let admin = || rights.check_verb(Verb::Admin).is_ok() && rights.worlds.is_none();
        world && tool && (self.kind != ChangeKind::Token || admin())
    }
}

/// What changed since the frame before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ChangeFrame {
    /// Whether something may have been missed.
    pub reset: bool,
    /// What changed, each thing once.
    pub items: Vec<Change>,
}

/// A reader of what changes.
#[derive(Debug)]
pub struct ChangeFeed {
    frames: broadcast::Receiver<Arc<ChangeFrame>>,
    begun: bool,
}

impl ChangeFeed {
    /// What changes next; the first frame says that everything is to be looked at. `None` once the
    /// engine has ended.
    pub async fn next(&mut self) -> Option<Arc<ChangeFrame>> {
        let reset = || Some(Arc::new(ChangeFrame { reset: true, items: Vec::new() }));
        if !self.begun {
            self.begun = true;
            return reset();
        }
        match self.frames.recv().await {
            Ok(frame) => Some(frame),
            Err(broadcast::error::RecvError::Lagged(_)) => {
                // What waits now is older than what will be looked at.
                self.frames = self.frames.resubscribe();
                reset()
            }
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}

/// Gathers changes and tells them.
#[derive(Debug)]
pub(crate) struct Changes {
    pending: Mutex<Pending>,
    wake: Arc<Notify>,
    frames: broadcast::Sender<Arc<ChangeFrame>>,
    /// The number of the last change of a thing that has no numbers of its own.
    last: AtomicU64,
}

#[derive(Debug, Default)]
struct Pending {
    items: HashMap<(ChangeKind, Option<WorldId>, String), Change>,
    overflown: bool,
}

impl Changes {
    pub(crate) fn new() -> Self {
        let frames = broadcast::channel(FRAMES_MAX).0;
        let wake = Arc::new(Notify::new());
        Self { pending: Mutex::default(), wake, frames, last: AtomicU64::new(0) }
    }

    /// Tells frames as long as there is somebody who gathers changes.
    pub(crate) fn tell(self: &Arc<Self>) -> impl Future<Output = ()> + use<> {
        let (changes, wake) = (Arc::downgrade(self), Arc::clone(&self.wake));
        async move {
            loop {
                wake.notified().await;
                let Some(()) = Weak::upgrade(&changes).map(|changes| changes.send()) else {
                    return;
                };
                tokio::time::sleep(FRAME).await;
            }
        }
    }

    fn send(&self) {
        let Pending { items, overflown } = std::mem::take(&mut *self.pending.lock());
        let frame = match overflown {
            true => ChangeFrame { reset: true, items: Vec::new() },
            false => ChangeFrame { reset: false, items: items.into_values().collect() },
        };
        if frame.reset || !frame.items.is_empty() {
            // Readers may all have left meanwhile.
            let _ = self.frames.send(Arc::new(frame));
        }
    }

    pub(crate) fn feed(&self) -> ChangeFeed {
        ChangeFeed { frames: self.frames.subscribe(), begun: false }
    }

    fn is_heard(&self) -> bool {
        self.frames.receiver_count() > 0
    }

    fn note(&self, change: Change) {
        let mut pending = self.pending.lock();
        if pending.items.len() >= ITEMS_MAX {
            pending.overflown = true;
            pending.items.clear();
        }
        if !pending.overflown {
            let key = (change.kind, change.world.clone(), change.id.clone());
            pending.items.insert(key, change);
        }
        drop(pending);
        self.wake.notify_one();
    }

    /// Everything is to be looked at again.
    pub(crate) fn reset(&self) {
        if self.is_heard() {
            self.pending.lock().overflown = true;
            self.wake.notify_one();
        }
    }

    /// A batch of a run was committed. What it only reports on its way is told to those who watch it.
    pub(crate) fn run(&self, batch: &Batch, run: &Run) {
        if !self.is_heard() {
            return;
        }
        let Some(seq) = last_entry(batch, run) else { return };
        self.note(Change {
            kind: ChangeKind::Run,
            world: Some(run.key.world.clone()),
            id: run.key.run.to_string(),
            seq: seq.0,
            status: run.status().as_str(),
            tool: Some(run.spec.tool.clone()),
        });
    }

    /// An ask was raised or ended.
    pub(crate) fn ask(&self, ask: &Ask) {
        if !self.is_heard() {
            return;
        }
        let (seq, status) = if ask.is_open() { (1, "open") } else { (2, "decided") };
        self.note(Change {
            kind: ChangeKind::Ask,
            world: Some(ask.spec.run.world.clone()),
            id: ask.spec.ask_id.to_string(),
            seq,
            status,
            tool: Some(ask.spec.tool.clone()),
        });
    }

    /// A world, a provider or a token was changed.
    pub(crate) fn record(&self, record: &AnyRecord, now: Timestamp) {
        if !self.is_heard() {
            return;
        }
        let (kind, world, id, status) = match record {
            AnyRecord::World(world) => {
                let status = if world.removed { "removed" } else { "present" };
                (ChangeKind::World, Some(world.id.clone()), world.id.to_string(), status)
            }
            AnyRecord::Provider(provider) => {
                let status = if provider.removed { "removed" } else { "changed" };
                (ChangeKind::Provider, None, provider.id.to_string(), status)
            }
            AnyRecord::Grant(grant) => {
                let status = if grant.revoked_at.is_some() { "revoked" } else { "active" };
                (ChangeKind::Token, None, grant.id.to_string(), status)
            }
            AnyRecord::Seat(_)
            | AnyRecord::Flow(_)
            | AnyRecord::Schedule(_)
            | AnyRecord::Receiver(_)
            | AnyRecord::Trigger(_) => return,
        };
        let seq = self.next(now);
        self.note(Change { kind, world, id, seq, status, tool: None });
    }

    /// A provider can take attempts, or cannot.
    pub(crate) fn provider(&self, id: &ProviderId, availability: &Availability, now: Timestamp) {
        if !self.is_heard() {
            return;
        }
        let status = match availability {
            Availability::Up => "ready",
            Availability::Coming => "starting",
            Availability::Away { .. } => "away",
            Availability::Unhealthy => "unhealthy",
            Availability::Down { .. } => "down",
        };
        let (kind, seq) = (ChangeKind::Provider, self.next(now));
        self.note(Change { kind, world: None, id: id.to_string(), seq, status, tool: None });
    }

    /// A number that is larger than all before, also than those of the core's earlier lives.
    fn next(&self, now: Timestamp) -> u64 {
        let next = |last: u64| Some(now.0.max(last + 1));
        let before = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        now.0.max(before.unwrap_or_default() + 1)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.wake.notify_one();
    }
}

/// The number of the last entry that a batch wrote to a run's stream, if it wrote one.
fn last_entry(batch: &Batch, run: &Run) -> Option<Seq> {
    let stream = run.key.stream();
    let own = batch.appends.iter().filter(|append| append.stream == stream);
    let mut entries = own.filter_map(|append| match &append.body {
        Body::Entries(entries) => Some(Seq(append.expected.0 + entries.len() as u64)),
        Body::Progress(_) => None,
    });
    entries.next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(id: &str, seq: u64) -> Change {
        let id = id.to_owned();
        Change { kind: ChangeKind::Provider, world: None, id, seq, status: "ready", tool: None }
    }

    #[tokio::test(start_paused = true)]
    async fn c005_changes_are_told_in_frames_each_thing_once() {
        let changes = Arc::new(Changes::new());
        tokio::spawn(changes.tell());
        let mut feed = changes.feed();
        assert!(feed.next().await.expect("a frame").reset, "it begins with a reset");
        let began = tokio::time::Instant::now();
        for seq in 1..=100 {
            changes.note(change("a", seq));
        }
        changes.note(change("b", 1));
        let first = feed.next().await.expect("a frame");
        assert!(!first.reset);
        assert_eq!(first.items.len(), 2);
        assert!(first.items.contains(&change("a", 100)));
        changes.note(change("a", 101));
        assert_eq!(feed.next().await.expect("a frame").items, [change("a", 101)]);
        assert!(began.elapsed() >= FRAME, "no more than four a second");
        drop(changes);
        assert!(feed.next().await.is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn c005_who_falls_behind_or_misses_too_much_looks_again() {
        let changes = Arc::new(Changes::new());
        tokio::spawn(changes.tell());
        let (mut feed, mut slow) = (changes.feed(), changes.feed());
        feed.next().await.expect("a reset");
        slow.next().await.expect("a reset");
        for n in 0..=ITEMS_MAX {
            changes.note(change(&format!("{n}"), 1));
        }
        let frame = feed.next().await.expect("a frame");
        assert!(frame.reset && frame.items.is_empty());
        for seq in 0..=FRAMES_MAX as u64 {
            changes.note(change("a", seq));
            assert_eq!(feed.next().await.expect("a frame").items, [change("a", seq)]);
        }
        assert!(slow.next().await.expect("a frame").reset);
        changes.note(change("b", 1));
        assert_eq!(slow.next().await.expect("a frame").items, [change("b", 1)]);
    }

    #[test]
    fn c005_a_narrow_token_learns_nothing_of_what_it_is_not_for() {
        use wharf_domain::{Caller, Rights};
        let of = |kind, world: Option<&str>, tool: Option<&str>| Change {
            kind,
            world: world.map(|world| WorldId::new(world).expect("valid")),
            tool: tool.map(|tool| ToolId::new(tool).expect("valid")),
            ..change("x", 1)
        };
        let patterns = vec![wharf_domain::permission::ToolPattern::parse("llm/*").expect("valid")];
        let narrow = Rights {
            worlds: Some([WorldId::new("a").expect("valid")].into()),
            tools: vec![patterns],
            ..Rights::all()
        };
        let narrow = Caller::token("g-1", narrow);
        let seen = |change: &Change| change.is_known_to(&narrow);
        assert!(seen(&of(ChangeKind::Run, Some("a"), Some("llm/chat"))));
        assert!(!seen(&of(ChangeKind::Run, Some("b"), Some("llm/chat"))));
        assert!(!seen(&of(ChangeKind::Ask, Some("a"), Some("mail/send"))));
        assert!(!seen(&of(ChangeKind::World, Some("b"), None)));
        assert!(!seen(&of(ChangeKind::Token, None, None)));
        assert!(of(ChangeKind::Token, None, None).is_known_to(&Caller::owner()));
    }

    #[test]
    fn c005_numbers_grow_also_when_the_clock_stands() {
        let changes = Changes::new();
        let numbers = [5, 5, 4, 9].map(|now| changes.next(Timestamp(now)));
        assert_eq!(numbers, [5, 6, 7, 9]);
    }
}
