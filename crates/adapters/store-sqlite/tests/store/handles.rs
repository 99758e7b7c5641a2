//! Two handles on one file: the older one is fenced, and neither misses what the other wrote.

use std::sync::Arc;

use crate::support::{Home, desk, key as audit_key};
use wharf_contract::desk::{holds, key, node, opens, record};
use wharf_journal::audit::Anchors;
use wharf_ports::{Batch, Refusal, Store as _};
use wharf_store_sqlite::verify_audit;
use wharf_vocab::limits::LEASE_MS;

#[tokio::test(flavor = "multi_thread")]
async fn the_handle_that_lost_its_lease_is_fenced() {
    let home = Home::new();
    let (first, second) = (home.open(), home.open());
    let desk = desk(&first).await;
    let run = key("r");
    desk.put(desk.creates(&run)).await;
    let shard = run.shard();
    let taken = second.acquire(node("core-b"), vec![shard], LEASE_MS).await.expect("works");
    assert_eq!(taken, [], "the first still holds it");
    home.clock.advance_ms(LEASE_MS + 1);
    let taken = second.acquire(node("core-b"), vec![shard], LEASE_MS).await.expect("works");
    let lease = taken[0];
    // The first handle has the old epoch in mind; it must look again.
    assert_eq!(desk.refused(desk.ends(&run, 2)).await, Refusal::Fenced);
    let batch = Batch { epoch: lease.epoch, no: lease.last.next(), ..desk.ends(&run, 2) };
    assert_eq!(second.commit(vec![Arc::new(batch)]).await, [Ok(())]);
    let back = first.acquire(node("core-a"), vec![shard], LEASE_MS).await.expect("works");
    assert_eq!(back, [], "it is the second's now");
}

#[tokio::test(flavor = "multi_thread")]
async fn each_handle_sees_what_the_other_wrote() {
    let home = Home::new();
    let (first, second) = (home.open(), home.open());
    let desk = desk(&first).await;
    let commit = async |batch: Batch| second.commit(vec![Arc::new(batch)]).await.remove(0);
    // Both write under the same lease, which a fenced core could not, to show that no memory of
    // streams, numbers, chains or accounts outlives a commit of the other.
    desk.put(desk.moves(0, vec![opens("world:w", None, Some(10))])).await;
    for round in 0..5 {
        let (mine, yours) = (key(&format!("mine-{round}")), key(&format!("yours-{round}")));
        let mut batch = desk.creates(&mine);
        batch.audit.push(record("one"));
        desk.put(batch).await;
        let mut batch = Batch { shard: mine.shard(), ..desk.creates(&yours) };
        batch.epoch = desk.batch(mine.shard()).epoch;
        batch.audit.push(record("two"));
        batch.ledger.push(holds(&format!("h-{round}"), "world:w", 1));
        assert_eq!(commit(batch).await, Ok(()));
        assert_eq!(commit(desk.ends(&mine, 2)).await, Ok(()));
        assert!(matches!(desk.refused(desk.ends(&mine, 2)).await, Refusal::Stale { .. }));
        assert!(matches!(desk.refused(desk.creates(&yours)).await, Refusal::Exists { .. }));
        desk.put(desk.moves(1, vec![holds(&format!("i-{round}"), "world:w", 1)])).await;
    }
    let broke = desk.refused(desk.moves(1, vec![holds("last", "world:w", 1)])).await;
    assert!(matches!(broke, Refusal::Funds(_)), "{broke:?}");
    let report = verify_audit(&home.path(), &audit_key(), &Anchors::default()).expect("readable");
    assert!(report.is_whole(), "{:?}", report.findings);
    assert_eq!(report.records, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_commits_of_two_handles_wait_for_each_other() {
    let home = Home::new();
    let (first, second) = (home.open(), home.open());
    let desk = Arc::new(desk(&first).await);
    let mut writers = Vec::new();
    for writer in 0..4 {
        let desk = Arc::clone(&desk);
        let store = if writer % 2 == 0 { first.clone() } else { second.clone() };
        writers.push(tokio::spawn(async move {
            for n in 0..25 {
                let batch = desk.creates(&key(&format!("r-{writer}-{n}")));
                assert_eq!(store.commit(vec![Arc::new(batch)]).await, [Ok(())]);
            }
        }));
    }
    for writer in writers {
        writer.await.expect("every commit is taken");
    }
    let query = wharf_ports::RunQuery { limit: 1_000, ..Default::default() };
    assert_eq!(second.runs(query).await.expect("readable").runs.len(), 100);
}
