//! Removing what is over.

use wharf_vocab::Seq;

use super::Subject;
use super::desk::{Desk, append_progress, claim, key, record, text};
use wharf_ports::{Refusal, RunQuery};

/// Nothing of it is left but its audit, and its names can be taken again.
pub async fn a_purged_stream_is_gone_with_its_claims(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (run, other) = (key("r"), key("other"));
    for (run, name) in [(&run, "mine"), (&other, "yours")] {
        let mut batch = desk.creates(run);
        batch.claims.push(claim("s", name, run.run.as_str()));
        batch.audit.push(record("tool.call_requested"));
        desk.put(batch).await;
        let mut batch = desk.batch(run.shard());
        batch.appends.push(append_progress(run, 2, vec![text("a")]));
        desk.put(batch).await;
        desk.put(desk.ends(run, 3)).await;
    }
    let gone = vec![run.stream(), key("none").stream()];
    assert_eq!(desk.store().purge(gone.clone()).await.expect("works"), 1);
    assert_eq!(desk.store().purge(gone).await.expect("works"), 0, "it is gone already");
    assert_eq!(desk.seq(&run).await, None);
    assert_eq!(desk.store().history(run.stream(), Seq(0), 9).await.expect("readable"), []);
    let page = desk.store().runs(RunQuery { limit: 9, ..RunQuery::default() }).await;
    assert_eq!(page.expect("readable").runs.len(), 1);
    assert_eq!(desk.store().audit(0, 9).await.expect("readable").len(), 2);
    assert_eq!(desk.seq(&other).await, Some(4), "its neighbour is untouched");
    assert_eq!(desk.store().history(other.stream(), Seq(0), 9).await.expect("works").len(), 4);

    let mut batch = desk.creates(&key("third"));
    batch.claims.push(claim("s", "yours", "third"));
    assert!(matches!(desk.refused(batch).await, Refusal::Claimed(_)));
    let mut batch = desk.creates(&run);
    batch.claims.push(claim("s", "mine", "again"));
    desk.put(batch).await;
    assert_eq!(desk.seq(&run).await, Some(2), "made anew");
    let history = desk.store().history(run.stream(), Seq(0), 9).await.expect("readable");
    assert_eq!(history.len(), 2, "without what it held before");
}

/// What is still going on stays.
pub async fn an_open_stream_is_not_purged(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let stream = || vec![run.stream()];
    assert_eq!(desk.store().purge(stream()).await.expect("works"), 0, "there is none");
    desk.put(desk.creates(&run)).await;
    assert_eq!(desk.store().purge(stream()).await.expect("works"), 0);
    desk.put(desk.ends(&run, 2)).await;
    assert_eq!(desk.seq(&run).await, Some(3));
    assert_eq!(desk.store().purge(stream()).await.expect("works"), 1);
}

/// What was removed leaves room; giving it back takes nothing of what is there.
pub async fn room_that_nothing_uses_can_be_given_back(subject: Subject) {
    let desk = Desk::open(subject).await;
    let (run, other) = (key("large"), key("other"));
    desk.put(desk.creates(&run)).await;
    desk.put(desk.creates(&other)).await;
    for n in 0..40 {
        let mut batch = desk.batch(run.shard());
        batch.appends.push(append_progress(&run, 2 + n, vec![text(&"x".repeat(50_000))]));
        desk.put(batch).await;
    }
    desk.put(desk.ends(&run, 42)).await;
    let full = desk.store().size().await.expect("known");
    assert_eq!(desk.store().purge(vec![run.stream()]).await.expect("works"), 1);
    let empty = desk.store().size().await.expect("known");
    assert_eq!(empty.bytes, full.bytes);
    let mut left = desk.store().shrink(100_000).await.expect("works");
    for _ in 0..100 {
        if left == 0 {
            break;
        }
        let before = left;
        left = desk.store().shrink(100_000).await.expect("works");
        assert!(left < before, "{left} {before}");
    }
    assert_eq!(left, 0);
    let after = desk.store().size().await.expect("known");
    assert_eq!(after.bytes, empty.bytes - empty.free_bytes, "{empty:?} {after:?}");
    assert_eq!(after.free_bytes, 0);
    assert_eq!(desk.store().history(other.stream(), Seq(0), 9).await.expect("works").len(), 2);
}
