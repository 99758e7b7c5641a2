//! Attempts as calls: matched, streamed, canceled, retried, written down without payloads.

use serde_json::{Value, json};
use wharf_domain::{Entry, Outcome, Progress, Resolution, RunEntry};
use wharf_engine::HistoryItem;
use wharf_vocab::{Code, RunStatus, Seq};

use crate::agent::{Agent, LONG, tool};
use crate::stage::{Stage, new, object, owner};

#[tokio::test]
async fn r033_r034_r038_r085_a_call_says_who_asks_and_what_for() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let mut wanted = new("echo", object(json!({"a": 1})));
    wanted.correlation_id = Some("chat:7".into());
    wanted.timeout_ms = Some(5_000);
    wanted.idempotency_key = Some("k1".into());
    let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let call = agent.call().await;
    assert_eq!(call["request_id"], run.key.run.as_str());
    assert_eq!(call["correlation_id"], "chat:7");
    assert_eq!(call["actor"]["type"], "human");
    assert_eq!(call["payload"]["input"], json!({"a": 1}));
    assert_eq!(call["payload"]["timeout_ms"], 5_000);
    assert_eq!(call["payload"]["idempotency_key"], "k1");
    assert_eq!(call["payload"]["context"]["mode"], "real");
    agent.succeed(&call, json!({"b": 2})).await;
    let run = stage.end_of(&run.key).await;
    let expected = Outcome::Succeeded { outputs: object(json!({"b": 2})) };
    assert_eq!(run.outcome, Some(expected));
}

#[tokio::test]
async fn r017_answers_in_reverse_order_are_matched_by_id() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let mut runs = Vec::new();
    let mut calls = Vec::new();
    for n in 0..5 {
        runs.push(stage.run("echo", json!({"n": n})).await.expect("accepted"));
        calls.push(agent.call().await);
    }
    for call in calls.iter().rev() {
        agent.succeed(call, json!({"n": call["payload"]["input"]["n"]})).await;
    }
    for (n, run) in runs.iter().enumerate() {
        let run = stage.end_of(&run.key).await;
        assert!(matches!(&run.outcome, Some(Outcome::Succeeded { outputs }) if outputs["n"] == n));
    }
}

#[tokio::test]
async fn r089_inputs_that_do_not_fit_never_reach_the_agent() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let mut agent = Agent::join(&launch, &["tools"]).await;
    let mut strict = tool("strict");
    strict["input_schema"] = json!({"type": "object", "required": ["n"]});
    agent.offer(&[strict]).await;
    stage.until(|view| !view.provider.tools.is_empty()).await;
    let deadline = tokio::time::Instant::now() + LONG;
    let fault = loop {
        let fault = stage.run("strict", json!({})).await.expect_err("does not fit");
        if !fault.is(Code::ToolNotFound) {
            break fault;
        }
        assert!(tokio::time::Instant::now() < deadline, "the tool never came");
    };
    assert!(fault.is(Code::ToolInvalidInput), "{fault}");
    let run = stage.run("strict", json!({"n": 1})).await.expect("accepted");
    let call = agent.call().await;
    assert_eq!(call["payload"]["input"], json!({"n": 1}), "only the good one came");
    agent.succeed(&call, json!({})).await;
    stage.end_of(&run.key).await;
}

#[tokio::test]
async fn r167_chunks_are_shown_as_they_come_in_order_with_their_gaps() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["count"]).await;
    let run = stage.run("count", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let mut watch = stage.handle.run_events().watch(&run.key, Seq(2)).await.expect("known");
    let mut shown = async || {
        let next = tokio::time::timeout(LONG, watch.next()).await.expect("comes");
        next.expect("an event").expect("readable").item
    };
    agent.stream(&call, 1, "stdout", json!({"text": "one"})).await;
    let one = Progress::Text { channel: "stdout".into(), text: "one".into() };
    assert_eq!(shown().await, HistoryItem::Progress(one), "before the run ends");
    agent.stream(&call, 3, "status", json!({"text": "half", "fraction": 0.5})).await;
    assert_eq!(shown().await, HistoryItem::Progress(Progress::Gap { from: 2, to: 2 }));
    let half = Progress::Phase { phase: "half".into(), fraction: Some(0.5) };
    assert_eq!(shown().await, HistoryItem::Progress(half));
    agent.succeed(&call, json!({})).await;
    assert!(matches!(shown().await, HistoryItem::Entry(Entry::Run(RunEntry::Ended(_)))));
}

#[tokio::test]
async fn r116_a_stalled_reader_stops_neither_reading_nor_other_calls() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["count"]).await;
    let run = stage.run("count", json!({})).await.expect("accepted");
    let stalled = stage.handle.run_events().watch(&run.key, Seq(0)).await.expect("known");
    let call = agent.call().await;
    for seq in 1..=2_000 {
        agent.stream(&call, seq, "stdout", json!({"text": "x"})).await;
    }
    agent.heartbeat("ok").await;
    let other = stage.run("count", json!({})).await.expect("accepted");
    let second = agent.call().await;
    agent.succeed(&second, json!({})).await;
    assert_eq!(stage.end_of(&other.key).await.status(), RunStatus::Succeeded);
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    drop(stalled);
}

#[tokio::test]
async fn r018_both_ends_may_write_large_frames_at_once() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["big"]).await;
    let large = "x".repeat(3 * 1024 * 1024);
    let first = stage.run("big", json!({"text": large})).await.expect("accepted");
    let call = agent.call().await;
    // The second call fills the socket while the agent writes a large frame of its own.
    let second = stage.run("big", json!({"text": large})).await.expect("accepted");
    agent.succeed(&call, json!({"text": large})).await;
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    for run in [first, second] {
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
}

#[tokio::test]
async fn r102_r104_a_lost_call_is_made_again_only_when_that_is_safe() {
    for (side_effects, attempts) in [(json!(false), 2), (json!(true), 1), (Value::Null, 1)] {
        let mut stage = Stage::new().await;
        let launch = stage.started().await;
        let mut agent = Agent::join(&launch, &["tools"]).await;
        let mut definition = tool("act");
        if !side_effects.is_null() {
            definition["side_effects"] = side_effects.clone();
        }
        agent.offer(std::slice::from_ref(&definition)).await;
        stage.until(|view| view.state == wharf_ports::providers::ProviderState::Running).await;
        let run = stage.run("act", json!({})).await.expect("accepted");
        let first = agent.call().await;
        drop(agent);
        let next = stage.launch().await;
        let mut agent = Agent::join(&next, &["tools"]).await;
        agent.offer(&[definition]).await;
        if attempts == 2 {
            let again = agent.call().await;
            assert_ne!(again["payload"]["call_id"], first["payload"]["call_id"]);
            assert_eq!(again["request_id"], first["request_id"]);
            agent.succeed(&again, json!({})).await;
        }
        let run = stage.end_of(&run.key).await;
        assert_eq!(run.attempt, attempts, "{side_effects}");
        if attempts == 1 {
            let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
            assert!(error.is(Code::ToolAgentLost), "{error}");
            assert_eq!(error.details["executed"], "maybe");
        }
    }
}

#[tokio::test]
async fn r129_r135_a_cancel_reaches_the_agent_and_is_decided_at_its_deadline() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["sleep"]).await;
    let other = stage.run("sleep", json!({})).await.expect("accepted");
    let others_call = agent.call().await;
    let run = stage.run("sleep", json!({})).await.expect("accepted");
    let call = agent.call().await;
    stage.handle.runs().cancel(&owner(), &run.key, "enough").await.expect("known");
    let cancel = agent.receive().await;
    assert_eq!(cancel["type"], "core.tool.cancel");
    assert_eq!(cancel["payload"]["call_id"], call["payload"]["call_id"]);
    assert_eq!(cancel["payload"]["reason"], "enough");
    assert!(cancel["payload"]["deadline_ms"].as_u64().expect("a number") > 0);
    // The agent ignores it; at the deadline the run is canceled, and a late result is absorbed.
    let ended = stage.end_of(&run.key).await;
    assert_eq!(ended.status(), RunStatus::Canceled);
    // Nobody knows what it still does, so it is replaced once its other calls have ended.
    let goodbye = agent.receive().await;
    assert_eq!(goodbye["payload"]["reason"], "core.replaced", "{goodbye}");
    agent.succeed(&call, json!({"late": true})).await;
    agent.succeed(&others_call, json!({})).await;
    assert_eq!(stage.end_of(&other.key).await.status(), RunStatus::Succeeded);
    assert_eq!(stage.handle.runs().get(&run.key).await.expect("known").outcome, ended.outcome);
}

#[tokio::test]
async fn r097_a_timeout_cancels_and_drops_the_late_result() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["sleep"]).await;
    let mut wanted = new("sleep", object(json!({})));
    wanted.timeout_ms = Some(1_000);
    let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let call = agent.call().await;
    let cancel = agent.receive().await;
    assert_eq!(cancel["type"], "core.tool.cancel");
    let ended = stage.end_of(&run.key).await;
    let error = ended.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(error.is(Code::ToolTimeout), "{error}");
    agent.succeed(&call, json!({"late": true})).await;
    let other = stage.run("sleep", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    stage.end_of(&other.key).await;
    assert_eq!(stage.handle.runs().get(&run.key).await.expect("known").outcome, ended.outcome);
}

#[tokio::test]
async fn r128_r151_every_call_is_audited_and_nothing_of_its_payload_is() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({"in": "canary-in"})).await.expect("accepted");
    let call = agent.call().await;
    agent.stream(&call, 1, "stdout", json!({"text": "canary-stream"})).await;
    agent.succeed(&call, json!({"out": "canary-out"})).await;
    stage.end_of(&run.key).await;
    let routed = stage.audited("tool.call_routed").await;
    let completed = stage.audited("tool.call_completed").await;
    let call_id = call["payload"]["call_id"].as_str().expect("text");
    assert_eq!(routed[0].facts["attempt_id"], call_id);
    assert_eq!(completed[0].facts["attempt_id"], call_id);
    assert_eq!(completed[0].facts["status"], "succeeded");
    assert!(completed[0].facts.contains_key("duration_ms"));
    let all = format!("{:?}", stage.handle.audit().list(0, 10_000).await.expect("readable"));
    assert!(!all.contains("canary"), "{all}");
}

#[tokio::test]
async fn r119_a_result_for_a_call_that_was_never_made_changes_nothing() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let mut stolen = call.clone();
    stolen["payload"]["call_id"] = json!("somebody-elses-call");
    agent.succeed(&stolen, json!({"stolen": true})).await;
    stage.audited("agent.protocol_violation").await;
    assert!(!stage.handle.runs().get(&run.key).await.expect("known").is_over());
    agent.succeed(&call, json!({"mine": true})).await;
    let run = stage.end_of(&run.key).await;
    assert!(
        matches!(&run.outcome, Some(Outcome::Succeeded { outputs }) if outputs["mine"] == true)
    );
}

#[tokio::test]
async fn r161_a_question_of_an_agent_waits_in_the_inbox_and_is_answered_once() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let mut agent = Agent::join(&launch, &["tools", "ask"]).await;
    agent.offer(&[tool("book")]).await;
    stage.until(|view| view.state == wharf_ports::providers::ProviderState::Running).await;
    let run = stage.run("book", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let question = json!({
        "ask_id": "q1", "call_id": call["payload"]["call_id"],
        "title": "Window or aisle?", "schema": {"enum": ["window", "aisle"]},
    });
    agent.send("agent.question.ask", question, json!({"request_id": call["request_id"]})).await;
    let deadline = tokio::time::Instant::now() + LONG;
    let ask = loop {
        if let Some(view) = stage.handle.asks().inbox(None, 10).await.expect("lists").pop() {
            break view.ask;
        }
        assert!(tokio::time::Instant::now() < deadline, "no question came");
        tokio::task::yield_now().await;
    };
    assert_eq!(
        stage.handle.runs().get(&run.key).await.expect("known").status(),
        RunStatus::Waiting
    );
    let answer = Resolution::Answered { value: json!("aisle") };
    stage.handle.asks().resolve(&owner(), &ask.spec.ask_id, answer).await.expect("open");
    let answered = agent.receive().await;
    assert_eq!(answered["type"], "core.question.answer");
    assert_eq!(answered["payload"]["status"], "answered");
    assert_eq!(answered["payload"]["value"], "aisle");
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r096_the_smallest_of_all_timeouts_is_sent() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    const DAY_MS: u64 = 24 * 60 * 60 * 1000;
    for (asked, sent) in [(None, 60_000), (Some(1_500), 1_500), (Some(10 * DAY_MS), DAY_MS)] {
        let mut wanted = new("echo", object(json!({})));
        wanted.timeout_ms = asked;
        let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
        let call = agent.call().await;
        assert_eq!(call["payload"]["timeout_ms"], sent);
        agent.succeed(&call, json!({})).await;
        stage.end_of(&run.key).await;
    }
}

#[tokio::test]
async fn r136_nobody_cancels_a_call_from_the_agents_side() {
    let mut stage = Stage::new().await;
    let (launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let mut stranger = Agent::connect(&launch).await;
    let cancel = json!({"call_id": call["payload"]["call_id"]});
    stranger.send("core.tool.cancel", cancel, json!({})).await;
    while stranger.next().await.is_some() {}
    assert!(!stage.handle.runs().get(&run.key).await.expect("known").is_over());
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r152_what_is_displayed_is_not_what_is_audited() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.stream(&call, 1, "stdout", json!({"text": "canary-shown"})).await;
    agent.succeed(&call, json!({})).await;
    let mut watch = stage.handle.run_events().watch(&run.key, Seq(0)).await.expect("known");
    let mut shown = String::new();
    while let Some(event) = watch.next().await {
        shown.push_str(&format!("{:?}", event.expect("readable").item));
    }
    assert!(shown.contains("canary-shown"), "{shown}");
    let audit = format!("{:?}", stage.handle.audit().list(0, 10_000).await.expect("readable"));
    assert!(!audit.contains("canary-shown"));
}

#[tokio::test]
async fn r166_nothing_of_the_callers_surroundings_is_passed_unless_it_is_allowed() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let context = call["payload"]["context"].as_object().expect("an object");
    let keys: Vec<&str> = context.keys().map(String::as_str).collect();
    assert_eq!(keys, ["inputs_dir", "mode", "outputs_dir"], "{context:?}");
    agent.succeed(&call, json!({})).await;
    stage.end_of(&run.key).await;
}
