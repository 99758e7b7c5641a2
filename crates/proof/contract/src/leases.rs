//! Leases: who may write a shard.

use wharf_vocab::{CommitNo, Epoch, ShardId};

use super::Subject;
use super::desk::{Desk, key, node};
use wharf_ports::{Batch, Refusal};

const TTL_MS: u64 = 30_000;

/// Only the newest epoch of a shard may write; one nobody ever had may not either.
pub async fn other_epochs_are_fenced(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    let old = desk.creates(&run);
    for epoch in [Epoch(0), old.epoch.next(), Epoch(u64::MAX / 4)] {
        let batch = Batch { epoch, ..old.clone() };
        assert_eq!(desk.refused(batch).await, Refusal::Fenced);
    }
    let leases = desk.store().acquire(node("core-a"), vec![run.shard()], TTL_MS).await;
    let lease = leases.expect("works")[0];
    assert!(lease.epoch > old.epoch, "a lease taken again has a new epoch");
    assert_eq!(desk.refused(old.clone()).await, Refusal::Fenced);
    let other = ShardId(run.shard().0.wrapping_add(1));
    desk.put(desk.batch(other)).await;
    desk.put(Batch { epoch: lease.epoch, ..old }).await;
}

/// Takeover waits for the end of a lease, unless it is one's own.
pub async fn a_lease_passes_on_only_when_free_expired_or_own(subject: Subject) {
    let store = subject.store.clone();
    let (one, two) = (ShardId(1), ShardId(2));
    let acquire = async |name: &str, shards: &[ShardId]| {
        let leases = store.acquire(node(name), shards.to_vec(), TTL_MS).await.expect("works");
        leases.into_iter().map(|lease| (lease.shard, lease.epoch)).collect::<Vec<_>>()
    };
    assert_eq!(acquire("a", &[one]).await, [(one, Epoch(1))], "free");
    assert_eq!(acquire("b", &[one, two]).await, [(two, Epoch(1))], "one is held by a");
    assert_eq!(acquire("a", &[one]).await, [(one, Epoch(2))], "its own");
    (subject.pass_ms)(TTL_MS - 1_000).await;
    assert_eq!(acquire("b", &[one]).await, [], "not yet over");
    (subject.pass_ms)(1_001).await;
    assert_eq!(acquire("b", &[one, one]).await, [(one, Epoch(3))], "expired");
    assert_eq!(acquire("a", &[one]).await, [], "now it is b's");
}

/// A renewal keeps one's own leases and takes nothing back that has passed on.
pub async fn renewing_keeps_only_what_is_held(subject: Subject) {
    let store = subject.store.clone();
    let (one, two) = (ShardId(1), ShardId(2));
    store.acquire(node("a"), vec![one, two], TTL_MS).await.expect("free");
    (subject.pass_ms)(TTL_MS / 2).await;
    store.renew(node("a"), TTL_MS).await.expect("works");
    (subject.pass_ms)(TTL_MS - 1_000).await;
    let taken = store.acquire(node("b"), vec![one], TTL_MS).await.expect("works");
    assert_eq!(taken, [], "renewed");
    (subject.pass_ms)(1_001).await;
    let taken = store.acquire(node("b"), vec![one], TTL_MS).await.expect("works");
    assert_eq!(taken.len(), 1, "expired");
    store.renew(node("a"), TTL_MS).await.expect("works");
    (subject.pass_ms)(TTL_MS - 1_000).await;
    let taken = store.acquire(node("c"), vec![one, two], TTL_MS).await.expect("works");
    assert_eq!(taken, [], "a's renewal did not touch b's lease");
    (subject.pass_ms)(1_001).await;
    let taken = store.acquire(node("c"), vec![one], TTL_MS).await.expect("works");
    assert_eq!(taken.len(), 1, "nor did it prolong it");
}

/// Being late does no harm as long as nobody else has taken over.
pub async fn an_expired_lease_that_nobody_took_still_writes(subject: Subject) {
    let desk = Desk::open(subject).await;
    let run = key("r");
    desk.put(desk.creates(&run)).await;
    (desk.subject.pass_ms)(10 * TTL_MS).await;
    desk.put(desk.ends(&run, 2)).await;
    desk.store().acquire(node("core-b"), vec![run.shard()], TTL_MS).await.expect("works");
    assert_eq!(desk.refused(desk.creates(&key("r"))).await, Refusal::Fenced);
}

/// Whoever takes a shard over goes on counting where the last one stopped.
pub async fn a_lease_tells_the_last_commit(subject: Subject) {
    let desk = Desk::open(subject).await;
    let shard = ShardId(5);
    let last = async || {
        let leases = desk.store().acquire(node("core-a"), vec![shard], TTL_MS).await;
        leases.expect("works")[0]
    };
    let lease = last().await;
    assert_eq!(lease.last, CommitNo(0));
    let numbered = |no, epoch| Batch { no: CommitNo(no), epoch, ..desk.batch(shard) };
    desk.put(numbered(7, lease.epoch)).await;
    desk.put(numbered(4, lease.epoch)).await;
    desk.refused(numbered(9, lease.epoch.next())).await;
    let lease = last().await;
    assert_eq!(lease.last, CommitNo(7), "neither a late number nor a refused one counts");
}

/// Whoever prolongs its leases learns who holds which shard, and in which epoch.
pub async fn s025_a_renewal_tells_who_holds_which_shard(subject: Subject) {
    let store = subject.store.clone();
    let (one, two) = (ShardId(1), ShardId(2));
    let holders = async |name: &str| {
        let view = store.renew(node(name), TTL_MS).await.expect("works");
        let held = view.owners.into_iter().map(|it| (it.shard, it.node, it.epoch, it.until));
        held.collect::<Vec<_>>()
    };
    assert_eq!(holders("a").await, [], "nobody holds anything");
    store.acquire(node("a"), vec![one, two], TTL_MS).await.expect("free");
    let first = holders("a").await;
    let names: Vec<_> = first.iter().map(|it| (it.0, it.1.clone(), it.2)).collect();
    assert_eq!(names, [(one, node("a"), Epoch(1)), (two, node("a"), Epoch(1))]);
    (subject.pass_ms)(1_000).await;
    let later = holders("a").await;
    assert!(later[0].3.ms_since(first[0].3) >= 1_000, "{later:?} after {first:?}");
    (subject.pass_ms)(TTL_MS + 1).await;
    store.acquire(node("b"), vec![two], TTL_MS).await.expect("expired");
    for name in ["a", "b"] {
        let names: Vec<_> = holders(name).await.into_iter().map(|it| (it.0, it.1, it.2)).collect();
        assert_eq!(names, [(one, node("a"), Epoch(1)), (two, node("b"), Epoch(2))], "to {name}");
    }
}
