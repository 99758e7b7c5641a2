//! A core that has not heard from its store for long: it does nothing under leases that may have
//! passed to somebody else, and goes on when it has heard again.

use std::sync::Arc;

use serde_json::json;
use wharf_ports::ManualClock;
use wharf_vocab::limits::{LEASE_MS, LEASE_RETRY_MS, LEASE_SAFE_MS};
use wharf_vocab::{Code, NodeId, RunStatus, Timestamp};

use crate::peer::{Peer, succeed, tool};
use crate::support::Bench;

/// A core whose store others can reach, too, with a provider.
pub(crate) async fn shared() -> (Bench, Arc<ManualClock>, Peer) {
    let clock = Arc::new(ManualClock::at(Timestamp(1_800_000_000_000)));
    let bench = Bench::at(&clock).await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    bench.store.share();
    renewed(&bench, &clock, LEASE_MS / 3).await;
    (bench, clock, peer)
}

/// Lets time pass after which the core wants to prolong its leases, and waits until it has.
pub(crate) async fn renewed(bench: &Bench, clock: &ManualClock, ms: u64) {
    let (store, handle) = (Arc::clone(&bench.store), bench.handle.clone());
    let asked = tokio::spawn(async move { store.until_renewal().await });
    tokio::task::yield_now().await;
    clock.advance_ms(ms + 1);
    // A clock that is moved by hand wakes nobody.
    let nobody = wharf_vocab::ProviderId::new("nobody").expect("valid");
    let _ = handle.providers().set_availability(nobody, wharf_domain::Availability::Up).await;
    asked.await.expect("asked");
}

#[tokio::test]
async fn s025_a_core_that_cannot_prolong_its_leases_does_nothing_and_goes_on_when_it_can() {
    let (bench, clock, peer) = shared().await;
    let begun = bench.start("acme/work", json!({})).await.expect("accepted");
    let attempt = peer.next().await;
    bench.store.fail_renewals(true);
    renewed(&bench, &clock, LEASE_MS / 3).await;
    // It still may, for a while.
    bench.start("acme/work", json!({})).await.expect("accepted");
    peer.next().await;

    clock.advance_ms(LEASE_SAFE_MS - LEASE_MS / 3);
    for _ in 0..2 {
        let fault = bench.start("acme/work", json!({})).await.expect_err("not now");
        assert!(fault.is(Code::CoreBusy) && fault.retryable, "{fault}");
    }
    let ended = tokio::spawn(async move {
        succeed(&attempt, 3).await;
        attempt
    });
    assert!(peer.is_idle().await, "nothing begins");
    let run = bench.handle.runs().get(&begun.key).await.expect("known");
    assert_eq!(run.status(), RunStatus::Running, "nor does anything end");

    bench.store.fail_renewals(false);
    renewed(&bench, &clock, LEASE_RETRY_MS).await;
    ended.await.expect("told");
    let run = bench.end_of(&begun.key).await;
    assert_eq!((run.status(), run.cost_micro), (RunStatus::Succeeded, 3), "nothing was lost");
    bench.start("acme/work", json!({})).await.expect("accepted");
    peer.next().await;
}

#[tokio::test]
async fn s025_what_a_renewal_tells_is_heard_and_a_shard_that_passed_on_is_given_up() {
    let (bench, clock, peer) = shared().await;
    let begun = bench.start("acme/work", json!({})).await.expect("accepted");
    let _attempt = peer.next().await;
    let shard = begun.key.shard();
    // Another core takes the shard, as it may when the lease is over.
    clock.advance_ms(LEASE_MS + 1);
    let other = NodeId::new("other").expect("valid");
    assert_eq!(bench.store.take_leases(&other, &[shard], LEASE_MS).len(), 1);
    renewed(&bench, &clock, 0).await;
    let cancel = bench.handle.runs().cancel(&crate::support::owner(), &begun.key, "enough").await;
    let fault = cancel.expect_err("it is somebody else's");
    assert!(fault.is(Code::CoreBusy), "{fault}");
}
