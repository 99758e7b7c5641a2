//! What is read of streams.

use std::collections::BTreeSet;

use wharf_vocab::{AskId, RunStatus, Seq, ShardId, StreamId, StreamKind};

use super::Subject;
use super::desk::{Desk, append, append_progress, created, ended, key, started, text};
use wharf_ports::HistoryItem::{Entry, Progress};
use wharf_ports::{Append, StreamHead};

/// One run with progress between its entries: 2 entries, 2 pieces, 1 entry, then 1 piece and the
/// end in one commit.
async fn mixed(desk: &Desk) -> wharf_vocab::RunKey {
    let run = key("r");
    desk.put(desk.creates(&run)).await;
    let mut batch = desk.batch(run.shard());
    batch.appends.push(append_progress(&run, 2, vec![text("a"), text("b")]));
    desk.put(batch).await;
    let mut batch = desk.batch(run.shard());
    batch.appends.push(append(&run, 4, vec![started(2)], RunStatus::Running));
    desk.put(batch).await;
    let mut batch = desk.batch(run.shard());
    batch.appends.push(append_progress(&run, 5, vec![text("c")]));
    batch.appends.push(append(&run, 6, vec![ended()], RunStatus::Succeeded));
    desk.put(batch).await;
    run
}

/// Entries and progress share one numbering.
pub async fn history_shows_entries_and_progress_in_order(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = mixed(&desk).await;
    let history = desk.store().history(run.stream(), Seq(0), 100).await.expect("readable");
    let seqs: Vec<_> = history.iter().map(|record| record.seq.0).collect();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6, 7]);
    let moments: Vec<_> = history.iter().map(|record| record.at.0).collect();
    assert_eq!(moments, [1_001, 1_001, 1_002, 1_002, 1_003, 1_004, 1_004]);
    let items: Vec<_> = history.into_iter().map(|record| record.item).collect();
    let expected = [
        Entry(created(&run)),
        Entry(started(1)),
        Progress(text("a")),
        Progress(text("b")),
        Entry(started(2)),
        Progress(text("c")),
        Entry(ended()),
    ];
    assert_eq!(items, expected);
    let nothing = desk.store().history(key("other").stream(), Seq(0), 9).await.expect("readable");
    assert_eq!(nothing, []);
}

/// A page ends between commits, never within one, and the next begins behind it.
pub async fn history_is_read_in_pages_that_split_no_commit(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = mixed(&desk).await;
    let page = async |after, limit| {
        let history = desk.store().history(run.stream(), Seq(after), limit).await;
        history.expect("readable").iter().map(|record| record.seq.0).collect::<Vec<_>>()
    };
    assert_eq!(page(0, 1).await, [1, 2]);
    assert_eq!(page(2, 1).await, [3, 4]);
    assert_eq!(page(2, 3).await, [3, 4, 5]);
    assert_eq!(page(4, 2).await, [5, 6, 7], "the last commit brought two rows");
    assert_eq!(page(5, 1).await, [6, 7]);
    assert_eq!(page(3, 100).await, [4, 5, 6, 7], "behind any number");
    assert_eq!(page(6, 100).await, [7]);
    assert_eq!(page(7, 100).await, [0; 0]);
    assert_eq!(page(u64::MAX / 4, 100).await, [0; 0]);
    assert_eq!(page(0, 0).await, [1, 2], "a page is never empty while there is more");
}

/// Recovery reads entries only, yet knows where the stream ends.
pub async fn loading_leaves_progress_out(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = mixed(&desk).await;
    let stored = desk.store().load(run.stream()).await.expect("readable").expect("there");
    assert_eq!(stored.seq, Seq(7));
    let entries: Vec<_> = stored.entries.into_iter().map(|(at, entry)| (at.0, entry)).collect();
    let expected =
        [(1_001, created(&run)), (1_001, started(1)), (1_003, started(2)), (1_004, ended())];
    assert_eq!(entries, expected);
}

/// Recovery finds what is open in its shards, and nothing else.
pub async fn open_streams_are_loaded_by_kind_and_shard(subject: Subject) {
    let desk = Desk::open(subject).await;
    let runs: Vec<_> = (0..12).map(|n| key(&format!("r-{n}"))).collect();
    desk.accept(&runs).await;
    desk.put(desk.ends(&runs[3], 2)).await;
    let mut batch = desk.batch(runs[4].shard());
    batch.appends.push(append_progress(&runs[4], 2, vec![text("x")]));
    desk.put(batch).await;
    let ask = AskId::in_shard(runs[0].shard(), "q");
    desk.put(desk.asks(&ask)).await;

    let open = async |kind, shards: Vec<ShardId>| {
        let found = desk.store().load_open(kind, shards).await.expect("readable");
        found.into_iter().map(|(id, _)| id).collect::<BTreeSet<_>>()
    };
    let all: Vec<_> = ShardId::all().collect();
    let expected: BTreeSet<_> =
        runs.iter().filter(|run| **run != runs[3]).map(wharf_vocab::RunKey::stream).collect();
    assert_eq!(open(StreamKind::Run, all.clone()).await, expected);
    assert_eq!(open(StreamKind::Ask, all.clone()).await, [StreamId::Ask(ask)].into());
    assert_eq!(open(StreamKind::World, all.clone()).await, BTreeSet::new());
    assert_eq!(open(StreamKind::Run, Vec::new()).await, BTreeSet::new());
    let (half, rest): (Vec<_>, Vec<_>) = all.iter().partition(|shard| shard.0 < 100);
    let (half, rest) = (open(StreamKind::Run, half).await, open(StreamKind::Run, rest).await);
    assert!(half.is_disjoint(&rest));
    assert_eq!(half.union(&rest).cloned().collect::<BTreeSet<_>>(), expected);

    let found = desk.store().load_open(StreamKind::Run, all).await.expect("readable");
    for (id, stored) in found {
        assert_eq!(stored.entries.len(), 2, "without progress");
        assert_eq!(stored.seq.0, if id == runs[4].stream() { 3 } else { 2 });
    }
}

/// Whatever a stream is of: it is made, goes on, is found while it is open, and afterwards among
/// those that are closed, from where it is removed.
pub async fn streams_of_every_kind_are_kept_found_and_removed(subject: Subject) {
    let desk = Desk::open(subject).await;
    let named = |kind: &StreamKind, name: &str| {
        let key = match kind {
            StreamKind::Run => format!("default/{name}"),
            StreamKind::Ask
            | StreamKind::Notice
            | StreamKind::Notification
            | StreamKind::Firing => format!("07{name}"),
            _ => name.to_owned(),
        };
        StreamId::parse(kind.as_str(), &key).expect("a name")
    };
    let entries = desk.creates(&key("r")).appends.remove(0);
    let put = async |stream: &StreamId, expected: u64, open: bool| {
        let mut batch = desk.batch(stream.shard());
        let head = StreamHead::new(open, None);
        let (stream, expected) = (stream.clone(), Seq(expected));
        batch.appends.push(Append { stream, expected, head, ..entries.clone() });
        desk.put(batch).await;
    };
    for kind in StreamKind::ALL {
        let [stays, goes] = ["stays", "goes"].map(|name| named(kind, name));
        put(&stays, 0, true).await;
        put(&goes, 0, true).await;
        put(&goes, 2, false).await;
    }
    let all: Vec<_> = ShardId::all().collect();
    for kind in StreamKind::ALL {
        let [stays, goes] = ["stays", "goes"].map(|name| named(kind, name));
        let open = desk.store().load_open(*kind, all.clone()).await.expect("readable");
        let [(found, stored)] = open.as_slice() else { panic!("{kind:?}: {open:?}") };
        assert_eq!((found, stored.seq, stored.entries.len()), (&stays, Seq(2), 2));
        let whole = desk.store().load(goes.clone()).await.expect("readable");
        assert_eq!(whole.expect("there").seq, Seq(4));
        let closed = desk.store().closed(*kind, 9).await.expect("readable");
        assert_eq!(closed, [goes]);
        assert_eq!(desk.store().purge(closed).await, Ok(1));
        assert_eq!(desk.store().closed(*kind, 9).await, Ok(Vec::new()));
    }
}

/// Whoever takes a parent over finds its children, wherever they are.
pub async fn s029_open_children_are_found_by_the_shards_of_their_parents(subject: Subject) {
    let desk = Desk::open(subject).await;
    let parents = [key("parent-1"), key("parent-2")];
    let children: Vec<_> = (0..6).map(|n| key(&format!("child-{n}"))).collect();
    let of = |at: usize| &parents[at % 2];
    desk.accept(&parents).await;
    for (at, child) in children.iter().enumerate() {
        let mut batch = desk.creates(child);
        for append in &mut batch.appends {
            let run = append.head.run.as_mut().expect("a run");
            run.parent = Some(of(at).clone());
        }
        desk.put(batch).await;
    }
    desk.put(desk.ends(&children[2], 2)).await;

    let found = async |shards: Vec<ShardId>| {
        let found = desk.store().open_children(shards).await.expect("readable");
        found.into_iter().collect::<BTreeSet<_>>()
    };
    let pairs = (0..6).filter(|at| *at != 2).map(|at| (of(at).clone(), children[at].clone()));
    let pairs: BTreeSet<_> = pairs.collect();
    assert_eq!(found(ShardId::all().collect()).await, pairs, "the ended one is not among them");
    let first = parents[0].shard();
    assert_ne!(first, parents[1].shard(), "the parents are in two shards");
    let firsts = pairs.iter().filter(|(parent, _)| *parent == parents[0]).cloned().collect();
    assert_eq!(found(vec![first]).await, firsts);
    assert_eq!(found(Vec::new()).await, BTreeSet::new());
}
