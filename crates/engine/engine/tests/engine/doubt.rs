//! A store that makes a commit and says that it failed: nothing is lost, nothing is left lying.

use crate::support::{Bench, LONG, new, owner};
use serde_json::json;
use wharf_domain::Resolution;
use wharf_vocab::{Code, Durability, RunId, RunKey, RunStatus, Seq};

#[tokio::test]
async fn a_run_that_was_made_and_denied_is_found_and_goes_on() {
    let bench = Bench::new().await;
    bench.store.deny_commits(1);
    let mut wanted = new("wharf/echo", json!({"text": "x"}));
    wanted.run_id = Some(RunId::new("denied").expect("valid"));
    let fault = bench.handle.runs().create(&owner(), wanted.clone()).await.expect_err("denied");
    assert!(fault.is(Code::StoreUnavailable), "{fault}");
    let key = RunKey { world: wanted.world.clone(), run: RunId::new("denied").expect("valid") };
    assert_eq!(bench.end_of(&key).await.status(), RunStatus::Succeeded);
    let again = bench.handle.runs().create(&owner(), wanted).await.expect("the same run");
    assert!(again.repeated && again.run.is_over());
}

#[tokio::test]
async fn a_decision_that_was_made_and_denied_is_shown_to_readers_and_watchers() {
    let bench = Bench::new().await;
    let run = bench.start("wharf/approve-me", json!({})).await.expect("accepted");
    let mut watch = bench.handle.run_events().watch(&run.key, Seq(2)).await.expect("known");
    let id = run.asks[0].ask.spec.ask_id.clone();
    bench.store.deny_commits(1);
    let no = Resolution::Deny { reason: "no".into() };
    let fault = bench.handle.asks().resolve(&owner(), &id, no.clone()).await.expect_err("denied");
    assert!(fault.is(Code::StoreUnavailable), "{fault}");

    let mut end = None;
    while let Some(event) = tokio::time::timeout(LONG, watch.next()).await.expect("in time") {
        end = event.expect("readable").ended.or(end);
    }
    assert_eq!(end.expect("the end is shown").status(), RunStatus::Refused);
    let shown = bench.handle.runs().get(&run.key).await.expect("known");
    assert_eq!(shown.status(), RunStatus::Refused);
    let fault = bench.handle.asks().resolve(&owner(), &id, no).await.expect_err("decided");
    assert!(fault.is(Code::AskDecided), "{fault}");
}

#[tokio::test]
async fn money_that_was_held_and_denied_for_a_run_in_memory_is_given_back() {
    let bench = Bench::new().await;
    let world = crate::support::default_world();
    let settings = wharf_domain::WorldSettings::budget(Some(100), 100);
    bench.handle.worlds().set(&owner(), world.clone(), settings).await.expect("changed");
    let mut wanted = new("wharf/sleep", json!({"ms": 600_000}));
    wanted.durability = Some(Durability::Memory);
    bench.store.deny_commits(1);
    bench.handle.runs().create(&owner(), wanted).await.expect_err("denied");
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.handle.worlds().get(&world).await.expect("known").account.held > 0 {
        assert!(tokio::time::Instant::now() < deadline, "money is held for nobody");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn worlds_and_agents_are_as_the_store_has_them_after_a_change_that_was_denied() {
    let bench = Bench::new().await;
    let world = crate::support::default_world();
    let settings = |limit| wharf_domain::WorldSettings::budget(Some(limit), 1);
    bench.store.deny_commits(1);
    let denied = bench.handle.worlds().set(&owner(), world.clone(), settings(100)).await;
    assert!(denied.expect_err("denied").is(Code::StoreUnavailable));
    let deadline = tokio::time::Instant::now() + LONG;
    while bench.handle.worlds().get(&world).await.expect("known").world.settings.limit_micro
        != Some(100)
    {
        assert!(tokio::time::Instant::now() < deadline, "the world is shown as it was");
        tokio::task::yield_now().await;
    }
    let changed = bench.handle.worlds().set(&owner(), world.clone(), settings(200)).await;
    assert_eq!(changed.expect("it goes on from there").world.settings.limit_micro, Some(200));

    let id = wharf_vocab::ProviderId::new("dev.example.helper").expect("valid");
    bench.store.deny_commits(1);
    let denied = bench.handle.providers().change(&owner(), &id, crate::closed::add()).await;
    assert!(denied.expect_err("denied").is(Code::StoreUnavailable));
    while bench.handle.providers().get(&id).is_err() {
        assert!(tokio::time::Instant::now() < deadline, "the agent is not known");
        tokio::task::yield_now().await;
    }
    let want = wharf_domain::ProviderInput::Stop { reason: None };
    bench.handle.providers().change(&owner(), &id, want).await.expect("it goes on from there");
}
