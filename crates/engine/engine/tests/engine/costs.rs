//! What attempts cost, told while they go on, when they are over, and by whoever pays.

use std::sync::Arc;

use crate::peer::{Peer, succeed, tool};
use crate::support::{Bench, default_world, new, owner, text_of};
use serde_json::json;
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Account, Progress, Run, ToolDef, WorldSettings};
use wharf_engine::{Attempt, AttemptRef, CostRequest, NewRun};
use wharf_vocab::{Code, Durability, Fault, Micro, Mode, RunStatus, UnknownCost};

async fn bench(settings: WorldSettings, tools: Vec<ToolDef>) -> (Bench, Peer) {
    let bench = Bench::new().await;
    bench.handle.worlds().set(&owner(), default_world(), settings).await.expect("set");
    let peer = Peer::join(&bench.handle, "acme", tools).await;
    (bench, peer)
}

fn zero(id: &str) -> ToolDef {
    ToolDef { max_cost_micro: Some(0), ..tool(id) }
}

async fn account(bench: &Bench) -> Account {
    bench.handle.worlds().get(&default_world()).await.expect("there").account
}

async fn create(bench: &Bench, wanted: NewRun) -> Result<Arc<Run>, Fault> {
    bench.handle.runs().create(&owner(), wanted).await.map(|accepted| accepted.run)
}

/// Waits until nothing is held any more, and says what was spent.
async fn settled(bench: &Bench) -> Micro {
    let deadline = tokio::time::Instant::now() + crate::support::LONG;
    loop {
        let now = account(bench).await;
        if now.held == 0 {
            return now.spent;
        }
        assert!(tokio::time::Instant::now() < deadline, "{now:?}");
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn t041_64_parallel_calls_of_a_tool_that_declares_0_stay_within_the_limit_once_it_is_known() {
    let (bench, peer) = bench(WorldSettings::budget(Some(1_000), 0), vec![zero("acme/work")]).await;
    let bench = Arc::new(bench);
    let first = bench.start("acme/work", json!({})).await.expect("nothing is known of it");
    succeed(&peer.next().await, 100).await;
    bench.end_of(&first.key).await;
    let tries = (0..64).map(|_| {
        let bench = Arc::clone(&bench);
        tokio::spawn(async move { bench.start("acme/work", json!({})).await })
    });
    let mut begun = Vec::new();
    for one in tries.collect::<Vec<_>>() {
        match one.await.expect("ran") {
            Ok(run) => begun.push(run),
            Err(fault) => assert!(fault.is(Code::BudgetExceeded), "{fault}"),
        }
    }
    assert_eq!((begun.len(), account(&bench).await.held), (9, 900));
    for run in &begun {
        succeed(&peer.next().await, 100).await;
        assert_eq!(run.spec.hold_micro, 100);
    }
    for run in &begun {
        bench.end_of(&run.key).await;
    }
    assert_eq!(settled(&bench).await, 1_000);
    assert!(peer.is_idle().await);
    let fault = bench.start("acme/work", json!({})).await.expect_err("nothing is left");
    assert!(fault.is(Code::BudgetExceeded), "{fault}");
}

#[tokio::test]
async fn t041_what_a_tool_has_cost_is_known_after_a_restart_and_for_that_definition_only() {
    let (bench, peer) = bench(WorldSettings::budget(Some(500), 7), vec![zero("acme/work")]).await;
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    assert_eq!(run.spec.hold_micro, 7, "the world's default is more than 0");
    succeed(&peer.next().await, 90).await;
    bench.end_of(&run.key).await;
    let bench = bench.killed().await;
    let peer = Peer::join(&bench.handle, "acme", vec![zero("acme/work")]).await;
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    assert_eq!(run.spec.hold_micro, 90);
    let other = ToolDef { description: "Does more.".into(), ..zero("acme/work") };
    bench.handle.providers().set_tools(&peer.id, vec![other]).expect("set");
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    assert_eq!(run.spec.hold_micro, 7, "nobody knows what the new one costs");
}

#[tokio::test]
async fn t041_where_nothing_is_left_only_free_tools_begin_and_only_as_long_as_they_are() {
    let free = ToolDef { free: true, ..tool("acme/free") };
    let tools = vec![free, tool("acme/work")];
    let (bench, peer) = bench(WorldSettings::budget(Some(0), 0), tools).await;
    let fault = bench.start("acme/work", json!({})).await.expect_err("it may cost something");
    assert!(fault.is(Code::BudgetExceeded), "{fault}");
    bench.finish("wharf/echo", json!({"text": "built in"})).await;
    let run = bench.start("acme/free", json!({})).await.expect("it costs nothing");
    succeed(&peer.next().await, 5).await;
    assert_eq!(bench.end_of(&run.key).await.cost_micro, 5);
    let told = bench.audited(|record| record.event == "tool.free_but_cost").await;
    assert_eq!(told.facts["cost_micro"], 5);
    let fault = bench.start("acme/free", json!({})).await.expect_err("it is not free");
    assert!(fault.is(Code::BudgetExceeded), "{fault}");
    let now = account(&bench).await;
    assert_eq!((now.spent, now.over()), (5, 5));
}

#[tokio::test]
async fn t041_a_budget_stops_a_run_with_what_it_has_written_and_what_it_has_cost() {
    let tools = vec![tool("acme/work"), tool("acme/brief")];
    let (bench, peer) = bench(WorldSettings::default(), tools).await;
    let cases = [("acme/work", Durability::Journal), ("acme/brief", Durability::Memory)];
    for (tool, durability) in cases {
        let before = account(&bench).await.spent;
        let wanted = NewRun {
            budget_micro: Some(400),
            durability: Some(durability),
            ..new(tool, json!({}))
        };
        let run = create(&bench, wanted).await.expect("accepted");
        let attempt = peer.next().await;
        for line in 1..=12 {
            let (channel, text) = ("stdout".to_owned(), format!("line {line}\n"));
            attempt.progress(vec![Progress::Text { channel, text }]).await.expect("told");
            attempt.report_cost(line * 100).await.expect("told");
            if line <= 4 {
                bench.until(&run.key, |run| run.cost_so_far() == line * 100).await;
            }
        }
        let run = bench.end_of(&run.key).await;
        let error = run.outcome.as_ref().and_then(|outcome| outcome.error()).expect("an error");
        assert_eq!((run.status(), error.code.as_str()), (RunStatus::Failed, "budget.exceeded"));
        assert!(run.is_incomplete() && run.cost_micro >= 500, "{}", run.cost_micro);
        let text = text_of(&bench.events(&run.key, 0).await, "stdout");
        assert!(text.starts_with("line 1\nline 2\nline 3\nline 4\n"), "{text}");
        // What it says after it was stopped is booked as well.
        attempt.report_cost(1_300).await.expect("booked");
        assert_eq!(bench.handle.runs().get(&run.key).await.expect("known").cost_micro, 1_300);
        assert_eq!(settled(&bench).await, before + 1_300);
    }
}

#[tokio::test]
async fn t041_what_a_child_reports_counts_on_its_parents_budget() {
    let tools = vec![tool("acme/boss"), tool("acme/work")];
    let (bench, peer) = bench(WorldSettings::default(), tools).await;
    let wanted = NewRun { budget_micro: Some(100), ..new("acme/boss", json!({})) };
    let parent = create(&bench, wanted).await.expect("accepted");
    let boss = peer.next().await;
    boss.report_cost(60).await.expect("told");
    bench.until(&parent.key, |run| run.cost_so_far() == 60).await;
    let caller = boss.caller(vec![ToolPattern::parse("*").expect("a pattern")]);
    let child = boss.invoke(&caller, new("acme/work", json!({}))).await.expect("40 are left").run;
    let work = peer.next().await;
    work.report_cost(41).await.expect("told");
    let child = bench.end_of(&child.key).await;
    let error = child.outcome.as_ref().and_then(|outcome| outcome.error()).expect("an error");
    assert_eq!(error.code.as_str(), "budget.exceeded");
    assert_eq!(error.details["account"], parent.spec.account.as_str());
    succeed(&boss, 60).await;
    assert_eq!(bench.end_of(&parent.key).await.status(), RunStatus::Succeeded);
    assert_eq!(settled(&bench).await, 101);
}

#[tokio::test]
async fn t041_what_was_reported_survives_a_kill_of_the_core() {
    let (bench, peer) = bench(WorldSettings::budget(Some(100), 10), vec![tool("acme/work")]).await;
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    let memory = NewRun { durability: Some(Durability::Memory), ..new("acme/work", json!({})) };
    let memory = create(&bench, memory).await.expect("accepted");
    for _ in 0..2 {
        let attempt = peer.next().await;
        attempt.report_cost(30).await.expect("told");
        bench.until(&attempt.dispatch().run, |run| run.cost_so_far() == 30).await;
    }
    assert_eq!(account(&bench).await.held, 60);
    let bench = bench.killed().await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.status(), run.cost_micro), (RunStatus::Failed, 30));
    assert!(run.is_incomplete());
    assert!(bench.handle.runs().get(&memory.key).await.is_err(), "nobody knows it any more");
    assert_eq!(settled(&bench).await, 60, "but its cost is booked");
}

#[tokio::test]
async fn t041_what_nobody_knows_is_booked_as_the_world_wants() {
    for (unknown_cost, booked) in [(UnknownCost::Reported, 15), (UnknownCost::Held, 40)] {
        let settings = WorldSettings { unknown_cost, ..WorldSettings::budget(None, 40) };
        let (bench, peer) = bench(settings, vec![tool("acme/work")]).await;
        let wanted = NewRun { timeout_ms: Some(300), ..new("acme/work", json!({})) };
        let run = create(&bench, wanted).await.expect("accepted");
        peer.next().await.report_cost(15).await.expect("told");
        let run = bench.end_of(&run.key).await;
        assert_eq!((run.status(), run.cost_micro), (RunStatus::Failed, booked));
        assert!(run.is_incomplete());
        assert_eq!(settled(&bench).await, booked);
    }
}

async fn ended(bench: &Bench, peer: &Peer, durability: Durability) -> (Arc<Run>, Attempt) {
    let wanted = NewRun { durability: Some(durability), ..new("acme/work", json!({})) };
    let run = create(bench, wanted).await.expect("accepted");
    let attempt = peer.next().await;
    succeed(&attempt, 10).await;
    (bench.end_of(&run.key).await, attempt)
}

#[tokio::test]
async fn t041_a_report_after_the_end_is_a_correction_that_is_booked_once() {
    let (bench, peer) = bench(WorldSettings::default(), vec![tool("acme/work")]).await;
    for durability in [Durability::Journal, Durability::Memory] {
        let before = settled(&bench).await;
        let (run, attempt) = ended(&bench, &peer, durability).await;
        for (said, cost) in [(10, 10), (25, 25), (25, 25), (5, 25), (40, 40)] {
            attempt.report_cost(said).await.expect("taken");
            let now = bench.handle.runs().get(&run.key).await.expect("known");
            assert_eq!((now.status(), now.cost_micro), (RunStatus::Succeeded, cost));
            assert_eq!((now.outcome.as_ref(), now.ended_at), (run.outcome.as_ref(), run.ended_at));
        }
        let many = (0..32).map(|n| {
            let attempt = AttemptRef::clone(&attempt);
            tokio::spawn(async move { attempt.report_cost(41 + n).await })
        });
        for one in many.collect::<Vec<_>>() {
            one.await.expect("ran").expect("taken");
        }
        assert_eq!(bench.handle.runs().get(&run.key).await.expect("known").cost_micro, 72);
        assert_eq!(settled(&bench).await, before + 72);
        bench.handle.purges().purge(&owner(), &run.key).await.expect("removed");
        let fault = attempt.report_cost(100).await.expect_err("there is no such run");
        assert!(fault.is(Code::RunNotFound), "{fault}");
        assert_eq!(settled(&bench).await, before + 72);
    }
    let corrected = bench.audited(|record| record.event == "run.cost_corrected").await;
    assert!(corrected.facts.contains_key("added_micro"));
    assert_eq!(
        bench
            .killed()
            .await
            .handle
            .worlds()
            .costs(&owner(), CostRequest::default())
            .await
            .expect("readable")
            .total
            .cost_micro,
        72,
        "what a removed run cost stays; a run in memory is gone with its core"
    );
}

#[tokio::test]
async fn t041_a_cost_in_memory_is_booked_once_also_when_nobody_knows_whether_it_was() {
    let (bench, peer) = bench(WorldSettings::default(), vec![tool("acme/work")]).await;
    for denied in 1..4 {
        let before = settled(&bench).await;
        let wanted = NewRun { durability: Some(Durability::Memory), ..new("acme/work", json!({})) };
        let run = create(&bench, wanted).await.expect("accepted");
        let attempt = peer.next().await;
        bench.store.deny_commits(denied);
        succeed(&attempt, 10).await;
        assert_eq!(bench.end_of(&run.key).await.cost_micro, 10);
        let deadline = tokio::time::Instant::now() + crate::support::LONG;
        while account(&bench).await.spent < before + 10 {
            assert!(tokio::time::Instant::now() < deadline, "it is booked");
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        assert_eq!(settled(&bench).await, before + 10);
    }
}

#[tokio::test]
async fn t041_a_run_that_pretends_holds_and_books_nothing() {
    let pretends = ToolDef { mock: true, max_cost_micro: Some(50), ..tool("acme/work") };
    let (bench, peer) = bench(WorldSettings::budget(Some(10), 5), vec![pretends]).await;
    let wanted = NewRun { mode: Mode::Mock, ..new("acme/work", json!({})) };
    let run = create(&bench, wanted).await.expect("it costs nothing");
    let attempt = peer.next().await;
    attempt.report_cost(30).await.expect("told");
    assert_eq!(account(&bench).await, Account { limit: Some(10), ..Account::default() });
    succeed(&attempt, 45).await;
    let run = bench.end_of(&run.key).await;
    assert_eq!((run.cost_micro, run.would_cost_micro, run.spec.hold_micro), (0, 45, 0));
    assert_eq!(account(&bench).await.spent, 0);
    let costs =
        bench.handle.worlds().costs(&owner(), CostRequest::default()).await.expect("readable");
    assert_eq!((costs.total.runs, costs.total.cost_micro), (1, 0));
    let fault = bench.start("acme/work", json!({})).await.expect_err("the real one costs 50");
    assert!(fault.is(Code::BudgetExceeded), "{fault}");
}

#[tokio::test]
async fn t041_the_owner_corrects_an_account_by_an_entry_that_is_audited() {
    let (bench, peer) = bench(WorldSettings::budget(Some(100), 10), vec![tool("acme/work")]).await;
    let run = bench.start("acme/work", json!({})).await.expect("accepted");
    succeed(&peer.next().await, 130).await;
    bench.end_of(&run.key).await;
    assert_eq!(account(&bench).await.over(), 30);
    let me = owner();
    let correct = |by: i64, why: &str| {
        bench.handle.worlds().correct(&me, default_world(), by, why.to_owned())
    };
    let world = correct(-90, "given back").await.expect("corrected");
    assert_eq!((world.account.spent, world.account.over()), (40, 0));
    let fault = correct(-41, "too much").await.expect_err("that was not spent");
    assert!(fault.is(Code::RequestInvalid), "{fault}");
    assert!(correct(5, " ").await.expect_err("no reason").is(Code::RequestInvalid));
    let record = bench.audited(|record| record.event == "world.corrected").await;
    assert_eq!(
        (&record.facts["by_micro"], &record.facts["reason"]),
        (&json!(-90), &json!("given back"))
    );
    assert_eq!(bench.handle.runs().get(&run.key).await.expect("known").cost_micro, 130);
    assert_eq!(account(&bench.killed().await).await.spent, 40);
}

#[tokio::test]
async fn a_run_in_memory_asks_the_books_only_where_there_is_a_limit() {
    let wanted = || NewRun { durability: Some(Durability::Memory), ..new("acme/work", json!({})) };
    let (free, peer) = bench(WorldSettings::budget(None, 0), vec![zero("acme/work")]).await;
    free.store.hold_commits();
    let run = create(&free, wanted()).await.expect("accepted");
    succeed(&peer.next().await, 0).await;
    assert_eq!(free.end_of(&run.key).await.status(), RunStatus::Succeeded);
    free.store.release_commits();

    let (limited, peer) = bench(WorldSettings::budget(Some(10), 0), vec![zero("acme/work")]).await;
    limited.store.hold_commits();
    let handle = limited.handle.clone();
    let task = tokio::spawn(async move { handle.runs().create(&owner(), wanted()).await });
    let deadline = tokio::time::Instant::now() + crate::support::LONG;
    while limited.store.commits_held() == 0 {
        assert!(tokio::time::Instant::now() < deadline, "the books are asked");
        tokio::task::yield_now().await;
    }
    assert!(peer.is_idle().await, "nothing begins before the books were asked");
    limited.store.release_commits();
    let run = task.await.expect("ran").expect("accepted").run;
    succeed(&peer.next().await, 0).await;
    limited.end_of(&run.key).await;
}
