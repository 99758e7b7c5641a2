//! All changes that clients may be told of, on one feed.
//!
//! One task compares the catalog with what it was and passes on what happens to files and what
//! servers say. It tells who is concerned by nothing but what changed; each reader decides what of
//! it its client may know.

use std::collections::BTreeMap;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use tokio::sync::broadcast::{self, error::RecvError};
use wharf_domain::Availability;
use wharf_engine::{CatalogChanges, FileFeed, FileNews, Handle};
use wharf_vocab::{Digest, ToolId};

use crate::names::{PROMPT, PROMPTS_GET, RESOURCES_LIST, RESOURCES_READ, TEMPLATE};
use crate::news::UpstreamNews;
use crate::server::files::FileUri;
use crate::server::shared::ServerShared;

/// Changes that may wait for one reader.
const CHANGES_MAX: usize = 1_024;
/// How long the catalog is left alone after a change, so that what comes at once is read once.
const CATALOG_REST: Duration = Duration::from_millis(100);

/// A list that clients read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ListKind {
    /// `tools/list`
    Tools,
    /// `prompts/list`
    Prompts,
    /// `resources/list` and `resources/templates/list`
    Resources,
}

impl ListKind {
    /// All of them.
    pub(crate) const ALL: [Self; 3] = [Self::Tools, Self::Prompts, Self::Resources];

    /// The list in which a tool of the catalog is seen, if it is in one.
    fn of(id: &ToolId, hidden: bool) -> Option<Self> {
        if !hidden {
            return Some(Self::Tools);
        }
        match id.name() {
            PROMPTS_GET => Some(Self::Prompts),
            RESOURCES_READ | RESOURCES_LIST => Some(Self::Resources),
            name if name.starts_with(PROMPT) => Some(Self::Prompts),
            name if name.starts_with(TEMPLATE) => Some(Self::Resources),
            _ => None,
        }
    }
}

/// Something changed.
#[derive(Debug, Clone)]
pub(crate) enum Change {
    /// These came to the catalog, left it, or are not what they were.
    Catalog(Arc<[(ToolId, ListKind)]>),
    /// A file was written or removed.
    File(FileUri),
    /// A server said so.
    Upstream(UpstreamNews),
    /// Nobody knows what changed.
    Missed,
}

/// How often each list has changed, for whomever.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ListCounts(pub(crate) [u64; 3]);

/// The feed.
#[derive(Debug)]
pub(crate) struct ChangeFeed {
    changes: broadcast::Sender<(ListCounts, Change)>,
    counts: [AtomicU64; 3],
    begun: AtomicBool,
}

impl Default for ChangeFeed {
    fn default() -> Self {
        Self {
            changes: broadcast::channel(CHANGES_MAX).0,
            counts: [const { AtomicU64::new(0) }; 3],
            begun: AtomicBool::new(false),
        }
    }
}

impl ChangeFeed {
    /// What changes from now on. The first reader sets the feed going.
    pub(crate) fn read(shared: &Arc<ServerShared>) -> ChangeReader {
        let feed = &shared.changes.feed;
        let changes = feed.changes.subscribe();
        let reader = ChangeReader { shared: Arc::clone(shared), changes };
        if !feed.begun.swap(true, Ordering::SeqCst) {
            let pump = FeedPump::new(&shared.handle, shared);
            let stop = shared.stop.clone();
            shared.tasks.spawn(async move {
                tokio::select! {
                    () = stop.cancelled() => {}
                    () = pump.run() => {}
                }
            });
        }
        reader
    }

    /// How often each list has changed so far.
    pub(crate) fn counts(&self) -> ListCounts {
        ListCounts(self.counts.each_ref().map(|count| count.load(Ordering::SeqCst)))
    }

    fn tell(&self, change: Change) {
        for kind in ListKind::ALL.into_iter().filter(|kind| change.is_about(*kind)) {
            self.counts[kind as usize].fetch_add(1, Ordering::SeqCst);
        }
        // Nobody may be there to be told.
        let _ = self.changes.send((self.counts(), change));
    }
}

impl Change {
    /// Whether a list may be another one for somebody.
    fn is_about(&self, kind: ListKind) -> bool {
        match self {
            Self::Catalog(changed) => changed.iter().any(|(_, of)| *of == kind),
            Self::File(_) | Self::Upstream(UpstreamNews::ResourcesChanged { .. }) => {
                kind == ListKind::Resources
            }
            Self::Upstream(UpstreamNews::PromptsChanged { .. }) => kind == ListKind::Prompts,
            Self::Upstream(UpstreamNews::ResourceUpdated { .. }) => false,
            Self::Missed => true,
        }
    }
}

impl ListCounts {
    /// Lists that changed between two moments.
    pub(crate) fn other_than(self, then: Self) -> Vec<ListKind> {
        let changed = |kind: &ListKind| self.0[*kind as usize] != then.0[*kind as usize];
        ListKind::ALL.into_iter().filter(changed).collect()
    }
}

/// A reader of the feed.
pub(crate) struct ChangeReader {
    shared: Arc<ServerShared>,
    changes: broadcast::Receiver<(ListCounts, Change)>,
}

impl ChangeReader {
    /// What changes next, and how often each list has changed then; `None` once nothing can change
    /// any more.
    pub(crate) async fn next(&mut self) -> Option<(ListCounts, Change)> {
        match self.changes.recv().await {
            Ok(change) => Some(change),
            Err(RecvError::Lagged(_)) => Some((self.shared.changes.feed.counts(), Change::Missed)),
            Err(RecvError::Closed) => None,
        }
    }
}

/// What tells one state of a tool in the catalog from another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ToolState {
    list: Option<ListKind>,
    hash: Digest,
    availability: Discriminant<Availability>,
    is_quarantined: bool,
}

type CatalogStates = BTreeMap<ToolId, ToolState>;

fn states(handle: &Handle) -> CatalogStates {
    let tools = handle.providers().tools().into_iter();
    let states = tools.map(|tool| {
        let state = ToolState {
            list: ListKind::of(&tool.def.tool, tool.def.hidden),
            hash: tool.hash,
            availability: discriminant(&tool.availability),
            is_quarantined: tool.quarantine.is_some(),
        };
        (tool.def.tool.clone(), state)
    });
    states.collect()
}

/// Those that are in one of two catalogs only, or not the same in both.
fn changed(before: &CatalogStates, after: &CatalogStates) -> Vec<(ToolId, ListKind)> {
    let gone = before.iter().filter(|(id, _)| !after.contains_key(id));
    let new = after.iter().filter(|(id, state)| before.get(id) != Some(state));
    let changed = gone.chain(new).filter_map(|(id, state)| Some((id.clone(), state.list?)));
    changed.collect()
}

/// What keeps the feed going.
struct FeedPump {
    shared: Arc<ServerShared>,
    known: CatalogStates,
    catalog: CatalogChanges,
    files: FileFeed,
    upstream: broadcast::Receiver<UpstreamNews>,
}

impl FeedPump {
    fn new(handle: &Handle, shared: &Arc<ServerShared>) -> Self {
        // Listening begins before the catalog is read, so that nothing falls between.
        let catalog = handle.providers().changes();
        let (files, upstream) = (handle.files().news(), shared.news.listen());
        Self { shared: Arc::clone(shared), known: states(handle), catalog, files, upstream }
    }

    async fn run(mut self) {
        while let Some(change) = self.next().await {
            self.shared.changes.feed.tell(change);
        }
    }

    async fn next(&mut self) -> Option<Change> {
        loop {
            tokio::select! {
                changed = self.catalog.next() => {
                    changed?;
                    tokio::time::sleep(CATALOG_REST).await;
                    if let Some(change) = self.compare() {
                        return Some(change);
                    }
                }
                news = self.files.next() => return Some(match news? {
                    FileNews::Changed { world, path } => Change::File(FileUri { world, path }),
                    FileNews::Missed => Change::Missed,
                }),
                news = self.upstream.recv() => match news {
                    Ok(news) => return Some(Change::Upstream(news)),
                    Err(RecvError::Lagged(_)) => return Some(Change::Missed),
                    Err(RecvError::Closed) => return None,
                },
            }
        }
    }

    fn compare(&mut self) -> Option<Change> {
        self.catalog.seen();
        let now = states(&self.shared.handle);
        let changed = changed(&self.known, &now);
        self.known = now;
        (!changed.is_empty()).then(|| Change::Catalog(changed.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(id: &str, hidden: bool, hash: &str) -> (ToolId, ToolState) {
        let id = ToolId::new(id).expect("an id");
        let state = ToolState {
            list: ListKind::of(&id, hidden),
            hash: Digest::of(&[hash.as_bytes()]),
            availability: discriminant(&Availability::Up),
            is_quarantined: false,
        };
        (id, state)
    }

    #[test]
    fn m018_what_comes_goes_or_changes_concerns_its_list() {
        let before: CatalogStates = [
            state("a/kept", false, "1"),
            state("a/gone", false, "1"),
            state("a/other", false, "1"),
            state("a/prompt.greet", true, "1"),
        ]
        .into();
        let mut after: CatalogStates = [
            state("a/kept", false, "1"),
            state("a/new", false, "1"),
            state("a/other", false, "2"),
            state("a/prompt.greet", true, "1"),
            state("a/template.t", true, "1"),
            state("a/completion.complete", true, "1"),
        ]
        .into();
        let names = |changed: Vec<(ToolId, ListKind)>| -> BTreeMap<String, ListKind> {
            changed.into_iter().map(|(id, kind)| (id.name().to_owned(), kind)).collect()
        };
        let expected = [
            ("gone".to_owned(), ListKind::Tools),
            ("new".to_owned(), ListKind::Tools),
            ("other".to_owned(), ListKind::Tools),
            ("template.t".to_owned(), ListKind::Resources),
        ];
        assert_eq!(names(changed(&before, &after)), expected.into());
        assert!(changed(&after, &after).is_empty());

        let same = after.clone();
        for state in after.values_mut() {
            state.is_quarantined = state.list == Some(ListKind::Prompts);
        }
        let quarantined = [("prompt.greet".to_owned(), ListKind::Prompts)];
        assert_eq!(names(changed(&same, &after)), quarantined.into());
        after.retain(|id, _| id.name() != "prompt.greet");
        let plain = state("b/prompt.greet", false, "1");
        assert_eq!(plain.1.list, Some(ListKind::Tools), "only hidden tools stand for prompts");
    }
}
