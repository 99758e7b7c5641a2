//! A shard that is loaded anew: what its providers work on goes on, and so do the other shards.

use serde_json::json;
use wharf_domain::permission::ToolPattern;
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

#[tokio::test]
async fn s029_a_parent_whose_shard_is_loaded_anew_still_knows_its_children_elsewhere() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let gated = bench.start("wharf/approve-me", json!({})).await.expect("accepted");
    let shard = gated.key.shard();
    let mut inside = names(shard, true);
    let parent = begin(&bench, &peer, inside.next().expect("many"), Durability::Journal).await;
    let mut children = Vec::new();
    for (durability, inside) in
        [(Durability::Journal, false), (Durability::Memory, false), (Durability::Journal, true)]
    {
        let mut wanted = new("acme/work", json!({}));
        let name = names(shard, inside).nth(10 + children.len()).expect("many");
        (wanted.run_id, wanted.durability) = (Some(name), Some(durability));
        let caller = parent.caller(vec![ToolPattern::any()]);
        children.push(parent.invoke(&caller, wanted).await.expect("accepted").run.key.clone());
    }
    lose_sight(&bench, &gated).await;
    assert_eq!(bench.end_of(&gated.key).await.status(), RunStatus::Refused, "it was loaded anew");

    let parent = &parent.dispatch().run;
    bench.handle.runs().cancel(&owner(), parent, "enough").await.expect("known");
    for child in children {
        bench.until(&child, |run| run.cancel.is_some()).await;
    }
}

#[tokio::test]
async fn s030_an_attempt_that_was_never_handed_over_is_made_again_although_it_acts() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let run = RunId::new("r").expect("valid");
    let mut wanted = new("acme/work", json!({}));
    wanted.run_id = Some(run.clone());
    // It is made, its first attempt with it, and the core is told that it is not.
    bench.store.deny_commits(1);
    let fault = bench.handle.runs().create(&owner(), wanted).await.expect_err("denied");
    assert!(fault.is(Code::StoreUnavailable), "{fault}");

    let attempt = peer.next().await;
    assert_eq!(attempt.dispatch().attempt, 2, "the first one was never begun");
    succeed(&attempt, 0).await;
    let run = bench.end_of(&RunKey { world: default_world(), run }).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 2));
    assert!(peer.is_idle().await, "it was handed over once");
}

#[tokio::test]
async fn s030_an_attempt_of_an_earlier_life_of_the_core_may_have_acted() {
    let bench = Bench::new().await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    let started = bench.start("acme/work", json!({})).await.expect("accepted");
    let _under_way = peer.next().await;
    let bench = bench.killed().await;
    let run = bench.end_of(&started.key).await;
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("it is lost");
    assert_eq!(
        (run.status(), error.details["executed"].as_str()),
        (RunStatus::Failed, Some("maybe"))
    );
}
