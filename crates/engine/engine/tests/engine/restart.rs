//! What is left after a kill -9: the store as it was, and a new engine on it.

use crate::peer::{Peer, tool};
use crate::support::{Bench, new, owner};
use serde_json::json;
use wharf_domain::{Availability, Outcome, Resolution, ToolDef};
use wharf_engine::{Attempt, Dispatch, ProviderSink};
use wharf_memory::MemoryStore;
use wharf_ports::StoreErrorKind;
use wharf_vocab::{AttemptId, Code, Durability, Fault, ProviderId, RunStatus};

#[tokio::test]
async fn an_attempt_lost_with_the_core_is_made_again() {
    let bench = Bench::new().await;
    let run = bench.start("wharf/count", json!({"n": 30, "delay_ms": 5})).await.expect("accepted");
    let bench = bench.killed().await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 2));
}

#[tokio::test]
async fn a_question_keeps_its_id_and_its_answer_across_restarts() {
    let bench = Bench::new().await;
    let run = bench.start("wharf/ask", json!({})).await.expect("accepted");
    bench.until(&run.key, |run| run.status() == RunStatus::Waiting).await;
    let id = bench.handle.asks().inbox(None, 10).await.expect("lists")[0].ask.spec.ask_id.clone();

    let bench = bench.killed().await;
    let answer = Resolution::Answered { value: json!("green") };
    bench.handle.asks().resolve(&owner(), &id, answer).await.expect("still open");
    let bench = bench.killed().await;
    let run = bench.end_of(&run.key).await;
    let Some(Outcome::Succeeded { outputs }) = &run.outcome else { panic!("{run:?}") };
    assert_eq!(outputs["answer"], "green");
}

#[tokio::test]
async fn an_approval_stays_open_across_restarts_and_is_decided_once() {
    let bench = Bench::new().await;
    let allowed = bench.start("wharf/approve-me", json!({})).await.expect("accepted");
    let denied = bench.start("wharf/approve-me", json!({"purpose": "x"})).await.expect("accepted");
    assert_eq!((allowed.status(), allowed.attempt), (RunStatus::Waiting, 0));

    let bench = bench.killed().await;
    for (run, resolution, status) in [
        (&allowed, Resolution::ALLOW, RunStatus::Succeeded),
        (&denied, Resolution::Deny { reason: "no".into() }, RunStatus::Refused),
    ] {
        let id = run.asks[0].ask.spec.ask_id.clone();
        bench.handle.asks().resolve(&owner(), &id, resolution.clone()).await.expect("open");
        assert_eq!(bench.end_of(&run.key).await.status(), status);
        let fault =
            bench.handle.asks().resolve(&owner(), &id, resolution).await.expect_err("decided");
        assert!(fault.is(Code::AskDecided), "{fault}");
    }
}

#[tokio::test]
async fn a_run_in_memory_works_and_is_gone_after_a_restart_and_its_money_is_free() {
    let bench = Bench::new().await;
    let settings = wharf_domain::WorldSettings::budget(Some(100), 100);
    bench
        .handle
        .worlds()
        .set(&owner(), crate::support::default_world(), settings)
        .await
        .expect("changed");
    let mut wanted = new("wharf/sleep", json!({"ms": 600_000}));
    wanted.durability = Some(Durability::Memory);
    let run = bench.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let world = bench.handle.worlds().get(&crate::support::default_world()).await.expect("known");
    assert_eq!(world.account.held, 100);

    let bench = bench.killed().await;
    assert!(bench.handle.runs().get(&run.key).await.expect_err("gone").is(Code::RunNotFound));
    let deadline = tokio::time::Instant::now() + crate::support::LONG;
    while bench
        .handle
        .worlds()
        .get(&crate::support::default_world())
        .await
        .expect("known")
        .account
        .held
        > 0
    {
        assert!(tokio::time::Instant::now() < deadline, "money is held for a run that is gone");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_full_store_refuses_new_runs_and_keeps_what_was_accepted() {
    let bench = Bench::new().await;
    let run = bench.start("wharf/sleep", json!({"ms": 30})).await.expect("accepted");
    bench.store.fail_commits(3, StoreErrorKind::Full);
    let fault = bench.start("wharf/echo", json!({})).await.expect_err("full");
    assert!(fault.is(Code::StoreFull) && fault.retryable, "{fault}");
    let run = bench.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Succeeded);
    let ends = bench.events(&run.key, 0).await.iter().filter(|event| event.ended.is_some()).count();
    assert_eq!(ends, 1);
    assert_eq!(bench.finish("wharf/echo", json!({})).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn what_another_core_holds_is_said_to_be_busy_instead_of_never_answered() {
    let bench = Bench::new().await;
    let clock = std::sync::Arc::new(wharf_ports::SystemClock);
    let state = bench.store.state();
    let store = std::sync::Arc::new(MemoryStore::with_state(state, clock.clone()));
    let node = wharf_vocab::NodeId::new("another").expect("valid");
    let options = wharf_engine::EngineOptions::new(node, store, clock, 2);
    let second = wharf_engine::Handle::start(options).await.expect("starts without a lease");
    wharf_builtin::register(&second).await.expect("registers");
    let world = crate::support::default_world();
    let settings = wharf_domain::WorldSettings::default();
    let owner = owner();
    let asked = second.worlds().create(&owner, world, settings);
    let fault = tokio::time::timeout(crate::support::LONG, asked).await.expect("answered");
    assert!(fault.expect_err("not here").is(Code::CoreBusy));
}

/// A provider that is not there when it is asked for the first time.
struct Late(std::sync::atomic::AtomicUsize, tokio::sync::mpsc::UnboundedSender<Dispatch>);

impl ProviderSink for Late {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        if self.0.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 {
            return Err(Fault::new(Code::ToolUnavailable, "It has just gone."));
        }
        // A test that is over sees no more of it.
        let _ = self.1.send(dispatch);
        Ok(())
    }

    fn cancel(&self, _: &AttemptId, _: &str, _: u64) {}

    fn answer(&self, _: &AttemptId, _: &str, _: &Resolution) {}
}

/// The provider of an attempt that goes on after a restart may go in the very moment in which it is
/// asked for it. The attempt waits for it, as it does for one that has not come yet.
#[tokio::test]
async fn an_attempt_to_be_taken_up_again_waits_for_a_provider_that_has_just_gone() {
    let bench = Bench::new().await;
    let lasting = || vec![ToolDef { reattach: true, ..tool("acme/work") }];
    let peer = Peer::join(&bench.handle, "acme", lasting()).await;
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    let begun = peer.next().await.dispatch().attempt_id.clone();
    let bench = bench.killed().await;
    let (sender, mut dispatched) = tokio::sync::mpsc::unbounded_channel();
    let sink = std::sync::Arc::new(Late(0.into(), sender));
    let id = ProviderId::new("acme").expect("valid");
    let providers = bench.handle.providers();
    providers.register(id.clone(), lasting(), sink).await.expect("registers");
    providers.set_availability(id, Availability::Up).await.expect("up");
    let again = tokio::time::timeout(crate::support::LONG, dispatched.recv()).await;
    let again = again.expect("in time").expect("the engine is there");
    assert!(again.reattach && again.attempt_id == begun);
    let attempt = Attempt::new(bench.handle.clone(), again);
    attempt.succeeded(wharf_vocab::Object::new(), 0).await.expect("told");
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
}
