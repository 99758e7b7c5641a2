//! A shard that is loaded anew: what its providers work on goes on, and so do the other shards.

use serde_json::json;
use wharf_domain::{Resolution, Run};
use wharf_engine::Attempt;
use wharf_vocab::{Code, Durability, RunId, RunKey, RunStatus, ShardId};

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, default_world, new, owner, text_of};

/// Names of runs that fall into this shard, or into any other.
fn names(shard: ShardId, inside: bool) -> impl Iterator<Item = RunId> {
    let named = (0..).map(|n: u32| RunId::new(format!("r{n}")).expect("valid"));
    named.filter(move |run| {
        let key = RunKey { world: default_world(), run: run.clone() };
        (key.shard() == shard) == inside
    })
}

/// Lets a shard find out that its memory is wrong: an approval of a run in it is decided, and the
/// store denies it.
async fn lose_sight(bench: &Bench, gated: &Run) {
    let id = gated.asks[0].ask.spec.ask_id.clone();
    bench.store.deny_commits(1);
    let no = Resolution::Deny { reason: "no".into() };
    let fault = bench.handle.asks().resolve(&owner(), &id, no).await.expect_err("denied");
    assert!(fault.is(Code::StoreUnavailable), "{fault}");
}

async fn begin(bench: &Bench, peer: &Peer, run: RunId, durability: Durability) -> Attempt {
    let mut wanted = new("acme/work", json!({}));
    (wanted.run_id, wanted.durability) = (Some(run), Some(durability));
    bench.handle.runs().create(&owner(), wanted).await.expect("accepted");
    peer.next().await
}

#[tokio::test]
async fn what_providers_work_on_goes_on_when_its_shard_is_loaded_anew() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let gated = bench.start("wharf/approve-me", json!({})).await.expect("accepted");
    let mut inside = names(gated.key.shard(), true);
    let mut next = || inside.next().expect("there are many");
    let stored = begin(&bench, &peer, next(), Durability::Journal).await;
    let memory = begin(&bench, &peer, next(), Durability::Memory).await;
    lose_sight(&bench, &gated).await;
    assert_eq!(bench.end_of(&gated.key).await.status(), RunStatus::Refused, "it was loaded anew");

    for attempt in [&stored, &memory] {
        let key = &attempt.dispatch().run;
        let piece = wharf_domain::Progress::Text { channel: "stdout".into(), text: "hi".into() };
        attempt.progress(vec![piece]).await.expect("taken");
        succeed(attempt, 7).await;
        let run = bench.end_of(key).await;
        assert_eq!((run.status(), run.attempt, run.cost_micro), (RunStatus::Succeeded, 1, 7));
        assert_eq!(text_of(&bench.events(key, 0).await, "stdout"), "hi");
    }
}

#[tokio::test]
async fn what_is_said_while_a_shard_is_loaded_is_not_lost_and_nobody_else_waits() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let gated = bench.start("wharf/approve-me", json!({})).await.expect("accepted");
    let mut inside = names(gated.key.shard(), true);
    let mut next = || inside.next().expect("there are many");
    let attempt = begin(&bench, &peer, next(), Durability::Journal).await;
    bench.store.hold_leases();
    lose_sight(&bench, &gated).await;
    bench.store.until_leases_held().await;

    succeed(&attempt, 0).await;
    let mut other = new("wharf/echo", json!({"text": "meanwhile"}));
    other.run_id = names(gated.key.shard(), false).next();
    let made = bench.handle.runs().create_and_wait(&owner(), other, crate::support::LONG).await;
    assert_eq!(made.expect("accepted").run.status(), RunStatus::Succeeded, "others go on");
    let handle = bench.handle.clone();
    let mut waiting = new("wharf/echo", json!({"text": "here"}));
    waiting.run_id = Some(next());
    let here = tokio::spawn(async move {
        handle.runs().create_and_wait(&owner(), waiting, crate::support::LONG).await
    });

    bench.store.release_leases();
    let run = bench.end_of(&attempt.dispatch().run).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    let made = here.await.expect("no panic").expect("accepted");
    assert_eq!(made.run.status(), RunStatus::Succeeded, "whoever came meanwhile is served");
}
