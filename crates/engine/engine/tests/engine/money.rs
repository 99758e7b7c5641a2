//! Budgets while runs are going: held before it is spent, settled once, never below nothing.

use std::sync::Arc;

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, default_world, new, owner};
use serde_json::json;
use wharf_domain::{Account, WorldSettings};
use wharf_engine::{Attempt, NewRun};
use wharf_vocab::limits::COST_REPORT_MICRO_MIN;
use wharf_vocab::{Code, Executed, Fault, Micro, RunStatus};

async fn with_budget(limit: Micro, hold: Micro) -> (Bench, Peer) {
    let bench = Bench::new().await;
    set(&bench, Some(limit), hold).await;
    let peer = Peer::join(&bench.handle, "acme", vec![tool("acme/work")]).await;
    (bench, peer)
}

async fn set(bench: &Bench, limit: Option<Micro>, hold: Micro) {
    let settings = WorldSettings::budget(limit, hold);
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("set");
}

async fn account(bench: &Bench) -> Account {
    bench.handle.worlds().get(&default_world()).await.expect("there").account
}

#[tokio::test]
async fn t041_a_budget_lowered_under_way_lets_runs_end_and_refuses_the_next() {
    let (bench, peer) = with_budget(100, 40).await;
    let first = bench.start("acme/work", json!({})).await.expect("held");
    let second = bench.start("acme/work", json!({})).await.expect("held");
    let fault = bench.start("acme/work", json!({})).await.expect_err("20 are left");
    assert!(fault.is(Code::BudgetExceeded), "{fault}");
    assert_eq!(fault.details["missing_micro"], 20);

    set(&bench, Some(50), 40).await;
    let now = account(&bench).await;
    assert_eq!((now.held, now.spent, now.available()), (80, 0, Some(0)), "never below nothing");
    let fault = bench.start("acme/work", json!({})).await.expect_err("nothing is left");
    assert_eq!(fault.details["missing_micro"], 70, "what is held beyond the limit is missing, too");

    // Both go on and are booked, the second with more than was held for it.
    succeed(&peer.next().await, 30).await;
    bench.end_of(&first.key).await;
    succeed(&peer.next().await, 60).await;
    bench.end_of(&second.key).await;
    let now = account(&bench).await;
    assert_eq!((now.held, now.spent, now.available()), (0, 90, Some(0)));
    let record = bench.audited(|record| record.facts.get("over_hold") == Some(&json!(true))).await;
    assert_eq!(
        (&record.facts["cost_micro"], &record.facts["held_micro"]),
        (&json!(60), &json!(40))
    );

    // It has cost 60 once, so that much is held from now on.
    set(&bench, Some(150), 40).await;
    bench.start("acme/work", json!({})).await.expect("exactly what is left");
    let fault = bench.start("acme/work", json!({})).await.expect_err("and no more");
    assert_eq!(fault.details["missing_micro"], 60);
    set(&bench, None, 40).await;
    bench.start("acme/work", json!({})).await.expect("no limit any more");
}

#[tokio::test]
async fn t041_an_end_that_is_told_twice_is_paid_once() {
    let (bench, peer) = with_budget(100, 40).await;
    let run = bench.start("acme/work", json!({})).await.expect("held");
    let attempt = peer.next().await;
    succeed(&attempt, 10).await;
    succeed(&attempt, 10).await;
    let late = Attempt::new(bench.handle.clone(), attempt.dispatch().clone());
    let failed = Fault::new(Code::ToolFailed, "No.");
    late.failed(failed, Executed::Yes).await.expect("told");
    assert_eq!(bench.end_of(&run.key).await.cost_micro, 10);
    // Once another run is through, all that came before it has been looked at.
    let other = bench.start("acme/work", json!({})).await.expect("held");
    succeed(&peer.next().await, 0).await;
    bench.end_of(&other.key).await;
    let now = account(&bench).await;
    assert_eq!((now.held, now.spent), (0, 10));
    let bench = bench.killed().await;
    assert_eq!((account(&bench).await.held, account(&bench).await.spent), (0, 10));
}

#[tokio::test]
async fn t041_what_a_failed_run_cost_is_booked_and_the_rest_is_free() {
    let (bench, peer) = with_budget(100, 40).await;
    let run = bench.start("acme/work", json!({})).await.expect("held");
    let attempt = peer.next().await;
    assert_eq!(account(&bench).await.held, 40);
    let result = Err(wharf_domain::run::AttemptError::Failed(
        Fault::new(Code::ToolFailed, "No."),
        Executed::Yes,
    ));
    attempt.ended(wharf_engine::AttemptEnd::new(result, 7)).await.expect("told");
    assert_eq!(bench.end_of(&run.key).await.status(), RunStatus::Failed);
    let now = account(&bench).await;
    assert_eq!((now.held, now.spent, now.available()), (0, 7, Some(93)));
}

#[tokio::test]
async fn t041_of_many_runs_at_once_exactly_as_many_begin_as_there_is_money_for() {
    let (bench, peer) = with_budget(30, 10).await;
    let bench = Arc::new(bench);
    let tries = (0..64).map(|_| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.start("acme/work", json!({})).await.is_ok() })
    });
    let mut begun = 0;
    for one in tries.collect::<Vec<_>>() {
        begun += usize::from(one.await.expect("ran"));
    }
    assert_eq!((begun, account(&bench).await.held), (3, 30));
    for _ in 0..3 {
        peer.next().await;
    }
    assert!(peer.is_idle().await);
}

#[tokio::test]
async fn t041_huge_costs_are_cut_down_and_never_wrap() {
    let (bench, peer) = with_budget(100, 1).await;
    let mut spent = 0;
    // A lie is not learned from, so the next one is believed no further.
    for most in [COST_REPORT_MICRO_MIN; 2] {
        let wanted = NewRun { budget_micro: None, ..new("acme/work", json!({})) };
        let run = bench.handle.runs().create(&owner(), wanted).await.expect("held").run;
        succeed(&peer.next().await, Micro::MAX).await;
        let run = bench.end_of(&run.key).await;
        assert_eq!((run.cost_micro, run.capped), (most, true));
        spent += most;
        let now = account(&bench).await;
        assert_eq!((now.held, now.spent, now.available().unwrap_or(0)), (0, spent, 0));
        let told = bench.audited(|record| record.event == "run.cost_capped").await;
        assert_eq!(told.facts["said_micro"], Micro::MAX);
        set(&bench, None, 1).await;
    }
}
