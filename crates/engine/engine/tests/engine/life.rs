//! Runs of built-in tools from being accepted to their end, through the engine's handle.

use crate::support::{Bench, LONG, new, object, owner, text_of};
use serde_json::{Value, json};
use wharf_domain::{Entry, Outcome, Resolution, RunEntry};
use wharf_engine::HistoryItem;
use wharf_vocab::{Code, Executed, RunStatus, ShardId};

#[tokio::test]
async fn an_ordinary_run_costs_two_commits() {
    let bench = Bench::new().await;
    let run = bench.finish("wharf/echo", json!({"hello": "world"})).await;
    assert_eq!(run.status(), RunStatus::Succeeded);
    let shard = run.key.shard();
    let leases = bench.store.state().acquire(
        &wharf_vocab::NodeId::new("test").expect("valid"),
        &ShardId::all().collect::<Vec<_>>(),
        1,
        bench.handle.now(),
    );
    let lease = leases.iter().find(|lease| lease.shard == shard).expect("held");
    // The world's creation may share the shard.
    let of_world = wharf_vocab::StreamId::World(crate::support::default_world()).shard() == shard;
    assert_eq!(lease.last.0, if of_world { 3 } else { 2 });
}

#[tokio::test]
async fn nothing_is_seen_before_it_is_committed() {
    let bench = Bench::new().await;
    bench.store.hold_commits();
    let mut wanted = new("wharf/echo", json!({}));
    wanted.run_id = Some(wharf_vocab::RunId::new("early").expect("valid"));
    let key = wharf_vocab::RunKey {
        world: wanted.world.clone(),
        run: wanted.run_id.clone().expect("given"),
    };
    let handle = bench.handle.clone();
    let creating = tokio::spawn(async move { handle.runs().create(&owner(), wanted).await });
    while bench.store.commits_held() == 0 {
        tokio::task::yield_now().await;
    }
    assert!(bench.handle.runs().get(&key).await.expect_err("not yet").is(Code::RunNotFound));
    assert!(!creating.is_finished(), "nobody is told before the commit");
    bench.store.release_commits();
    creating.await.expect("no panic").expect("accepted");
    assert_eq!(bench.end_of(&key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn a_count_streams_and_can_be_read_again_from_any_place() {
    let bench = Bench::new().await;
    let run = bench.start("wharf/count", json!({"n": 20, "delay_ms": 1})).await.expect("accepted");
    let live = bench.events(&run.key, 0).await;
    let expected: String = (1..=20).map(|n| format!("{n}\n")).collect();
    assert_eq!(text_of(&live, "stdout"), expected);
    let numbers: Vec<u64> = live.iter().map(|event| event.seq.0).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>(), "no hole, no repeat");
    let ended = live.last().and_then(|event| event.ended.clone()).expect("the end comes last");
    assert!(
        matches!(&ended.outcome, Some(Outcome::Succeeded { outputs }) if outputs["sum"] == 210)
    );
    for after in 0..=numbers.len() as u64 {
        let again = bench.events(&run.key, after).await;
        let items = |events: &[wharf_engine::RunRecord]| {
            events.iter().map(|event| (event.seq, event.item.clone())).collect::<Vec<_>>()
        };
        assert_eq!(items(&again), items(&live[usize::try_from(after).expect("small")..]));
    }
    assert_eq!(bench.handle.run_lists().open_count(), 0, "a finished run leaves memory");
}

#[tokio::test]
async fn a_watcher_that_stands_still_loses_nothing_and_slows_nobody() {
    let bench = Bench::new().await;
    let run =
        bench.start("wharf/count", json!({"n": 5000, "delay_ms": 0})).await.expect("accepted");
    let mut watch =
        bench.handle.run_events().watch(&run.key, wharf_vocab::Seq(0)).await.expect("known");
    watch.next().await.expect("an event").expect("readable");
    bench.end_of(&run.key).await;
    let mut events = Vec::new();
    while let Some(event) = watch.next().await {
        events.push(event.expect("readable"));
    }
    let expected: String = (1..=5000).map(|n| format!("{n}\n")).collect();
    assert_eq!(text_of(&events, "stdout"), expected);
}

#[tokio::test]
async fn a_sleep_can_be_canceled_and_stays_canceled() {
    let bench = Bench::new().await;
    let run = bench.start("wharf/sleep", json!({"ms": 600_000})).await.expect("accepted");
    bench.handle.runs().cancel(&owner(), &run.key, "enough").await.expect("known");
    let run = bench.end_of(&run.key).await;
    assert_eq!(run.status(), RunStatus::Canceled);
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("canceled");
    assert_eq!(error.message, "enough", "the reason is kept");
    let again = bench.handle.runs().cancel(&owner(), &run.key, "again").await.expect("known");
    assert_eq!(again.outcome, run.outcome);
}

#[tokio::test]
async fn a_timeout_ends_the_attempt_and_tells_why() {
    let bench = Bench::new().await;
    let mut wanted = new("wharf/sleep", json!({"ms": 600_000}));
    wanted.timeout_ms = Some(500);
    let accepted =
        bench.handle.runs().create_and_wait(&owner(), wanted, LONG).await.expect("accepted");
    let error = accepted.run.outcome.as_ref().and_then(Outcome::error).expect("failed").clone();
    assert!(error.is(Code::ToolTimeout));
    assert_eq!(error.details["executed"], "maybe");
}

#[tokio::test]
async fn a_retryable_failure_is_tried_again_visibly_and_not_for_ever() {
    let bench = Bench::new().await;
    let run = bench.finish("wharf/fail", json!({"retryable": true, "code": "acme.busy"})).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Failed, 5));
    let events = bench.events(&run.key, 0).await;
    let attempts = events
        .iter()
        .filter(|event| {
            matches!(&event.item, HistoryItem::Entry(Entry::Run(RunEntry::AttemptStarted(_))))
        })
        .count();
    assert_eq!(attempts, 5);
    let once = bench.finish("wharf/fail", json!({})).await;
    assert_eq!((once.status(), once.attempt), (RunStatus::Failed, 1));
}

#[tokio::test]
async fn inputs_that_do_not_fit_are_refused_with_the_place_and_leave_no_run() {
    let bench = Bench::new().await;
    for (tool, inputs, path) in [
        ("wharf/count", json!({"n": "many"}), "/n"),
        ("wharf/count", json!({"n": 0}), "/n"),
        ("wharf/count", json!({}), "/"),
        ("wharf/sleep", json!({"ms": 1, "extra": true}), "/"),
    ] {
        let fault = bench.start(tool, inputs).await.expect_err("does not fit");
        assert!(fault.is(Code::ToolInvalidInput), "{fault}");
        assert_eq!(fault.details["path"], path, "{fault}");
    }
    let fault = bench.start("wharf/nothing", json!({})).await.expect_err("unknown");
    assert!(fault.is(Code::ToolNotFound));
    let query = wharf_engine::RunQuery { limit: 10, ..Default::default() };
    assert_eq!(bench.handle.run_lists().list(query).await.expect("lists").runs, []);
}

#[tokio::test]
async fn a_question_waits_and_its_answer_must_fit() {
    let bench = Bench::new().await;
    let inputs = json!({"question": "How many?", "schema": {"type": "integer", "minimum": 1}});
    let run = bench.start("wharf/ask", inputs).await.expect("accepted");
    bench.until(&run.key, |run| run.status() == RunStatus::Waiting).await;
    let inbox = bench.handle.asks().inbox(None, 10).await.expect("lists");
    let [view] = &inbox[..] else { panic!("{inbox:?}") };
    let id = view.ask.spec.ask_id.clone();
    let answer = |value: Value| Resolution::Answered { value };
    let fault =
        bench.handle.asks().resolve(&owner(), &id, answer(json!(0))).await.expect_err("too small");
    assert!(fault.is(Code::AskAnswerInvalid), "{fault}");
    bench.handle.asks().resolve(&owner(), &id, answer(json!(3))).await.expect("fits");
    let run = bench.end_of(&run.key).await;
    let Some(Outcome::Succeeded { outputs }) = &run.outcome else { panic!("{run:?}") };
    assert_eq!(*outputs, object(json!({"status": "answered", "answer": 3})));
    let fault =
        bench.handle.asks().resolve(&owner(), &id, answer(json!(4))).await.expect_err("decided");
    assert!(fault.is(Code::AskDecided), "{fault}");
    assert_eq!(bench.handle.asks().inbox(None, 10).await.expect("lists"), []);
}

#[tokio::test]
async fn a_finished_run_can_be_removed_and_an_open_one_cannot() {
    let bench = Bench::new().await;
    let open = bench.start("wharf/sleep", json!({"ms": 600_000})).await.expect("accepted");
    let fault = bench.handle.purges().purge(&owner(), &open.key).await.expect_err("open");
    assert!(fault.is(Code::RunStillOpen));
    let over = bench.finish("wharf/echo", json!({"secret": "x"})).await;
    bench.handle.purges().purge(&owner(), &over.key).await.expect("removed");
    assert!(bench.handle.runs().get(&over.key).await.expect_err("gone").is(Code::RunNotFound));
    bench.handle.runs().cancel(&owner(), &open.key, "").await.expect("known");
    bench.end_of(&open.key).await;
}

#[tokio::test]
async fn the_end_that_a_watcher_reads_before_it_is_published_is_the_end() {
    let bench = Bench::new().await;
    let run = bench.start("wharf/sleep", json!({"ms": 20})).await.expect("accepted");
    // The end becomes true in the store while the core believes that it did not.
    bench.store.deny_commits(1);
    let deadline = tokio::time::Instant::now() + LONG;
    loop {
        let stored = wharf_ports::Store::load(&*bench.store, run.key.stream()).await;
        let entries = stored.expect("readable").expect("there").entries;
        if matches!(entries.last(), Some((_, Entry::Run(RunEntry::Ended(_))))) {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "the end was never stored");
        tokio::task::yield_now().await;
    }
    assert!(
        !bench.handle.runs().get(&run.key).await.expect("known").is_over(),
        "not published yet"
    );
    let events = bench.events(&run.key, 0).await;
    let ended = events.last().and_then(|event| event.ended.clone()).expect("the end is last");
    assert!(ended.is_over(), "shown as ended, yet {}", ended.status());
}

#[tokio::test]
async fn whoever_begins_to_read_between_two_attempts_learns_why_there_is_another() {
    let bench = Bench::new().await;
    let run = bench.finish("wharf/fail", json!({"retryable": true, "code": "acme.busy"})).await;
    let all = bench.events(&run.key, 0).await;
    let begins = |event: &&wharf_engine::RunRecord| {
        matches!(&event.item, HistoryItem::Entry(Entry::Run(RunEntry::AttemptStarted(_))))
    };
    let mut retries: Vec<_> = all.iter().filter(begins).map(|event| event.retry.clone()).collect();
    assert_eq!(retries.remove(0), None, "the first attempt follows nothing");
    assert_eq!(retries.len(), 4);
    for retry in retries {
        let retry = retry.expect("it follows a failure");
        assert_eq!((retry.reason.as_str(), retry.executed), ("acme.busy", Executed::Yes));
    }
    for after in 0..all.len() {
        let events = bench.events(&run.key, after as u64).await;
        let retries = |events: &[wharf_engine::RunRecord]| {
            events.iter().map(|event| event.retry.clone()).collect::<Vec<_>>()
        };
        assert_eq!(retries(&events), retries(&all[after..]), "behind {after}");
    }
}
