//! How much an agent may be asked, whoever set the limit.

use serde_json::json;
use wharf_domain::Outcome;
use wharf_domain::provider::{ProviderLimits, Rate};
use wharf_ports::providers::Approve;
use wharf_vocab::{Code, Fault, RunStatus};

use crate::stage::{Stage, owner};
use crate::troupe::{CALLER, Part};

fn approve(limits: ProviderLimits) -> Approve {
    Approve { limits, ..Approve::default() }
}

async fn failed(stage: &Stage, key: &wharf_vocab::RunKey) -> Fault {
    let run = stage.end_of(key).await;
    run.outcome.as_ref().and_then(Outcome::error).expect("it failed").clone()
}

#[tokio::test]
async fn r093_calls_beyond_what_the_agent_takes_wait_for_a_place() {
    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["echo"]);
    part.limits = json!({"max_concurrent_calls": 2});
    let (_, mut agent) = part.enter(&mut stage).await;
    let mut runs = Vec::new();
    for n in 0..4 {
        runs.push(stage.run("echo", json!({"n": n})).await.expect("accepted"));
    }
    let (first, second) = (agent.call().await, agent.call().await);
    // A call that waits for a place is canceled without the agent's knowing of it.
    stage.handle.runs().cancel(&owner(), &runs[3].key, "enough").await.expect("known");
    assert_eq!(stage.end_of(&runs[3].key).await.status(), RunStatus::Canceled);
    agent.succeed(&first, json!({})).await;
    let third = agent.call().await;
    assert_eq!(third["payload"]["input"]["n"], 2);
    agent.succeed(&second, json!({})).await;
    agent.succeed(&third, json!({})).await;
    for run in &runs[..3] {
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
}

#[tokio::test]
async fn r093_no_call_fails_because_the_agent_has_no_place_for_it() {
    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["echo"]);
    part.approve = approve(ProviderLimits { calls_max: Some(1), ..ProviderLimits::default() });
    let (_, mut agent) = part.enter(&mut stage).await;
    // All at once: the agent answers no ping meanwhile.
    let many = (0..513).map(|_| stage.run("echo", json!({})));
    let mut runs = futures::future::try_join_all(many).await.expect("accepted");
    runs.push(stage.run("echo", json!({})).await.expect("accepted"));
    let last = stage.until_run(&runs[513].key, |run| run.awaits_room().is_some()).await;
    assert_eq!((last.status(), last.attempt), (RunStatus::Queued, 0));
    for _ in &runs {
        let call = agent.call().await;
        agent.succeed(&call, json!({})).await;
    }
    for run in &runs {
        let run = stage.end_of(&run.key).await;
        assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
    }
}

#[tokio::test]
async fn r094_an_agent_that_is_busy_is_asked_again_and_that_is_no_try() {
    let mut stage = Stage::new().await;
    let (_, mut agent) = Part::new(CALLER, &["echo"]).enter(&mut stage).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    for _ in 0..3 {
        let call = agent.call().await;
        agent.fail(&call, "tool.busy", true).await;
    }
    let call = agent.call().await;
    agent.succeed(&call, json!({})).await;
    let run = stage.end_of(&run.key).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 1));
}

#[tokio::test]
async fn an_agent_that_is_called_too_often_is_not_called_and_the_caller_knows_when_it_may() {
    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["echo"]);
    let rate = Some(Rate { count: 2, per_ms: 3_600_000 });
    part.approve = approve(ProviderLimits { rate, ..ProviderLimits::default() });
    let (_, mut agent) = part.enter(&mut stage).await;
    for _ in 0..2 {
        let run = stage.run("echo", json!({})).await.expect("accepted");
        let call = agent.call().await;
        agent.succeed(&call, json!({})).await;
        assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    }
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let fault = failed(&stage, &run.key).await;
    assert!(fault.is(Code::ToolRateLimited), "{fault}");
    assert!(fault.retryable);
    assert_eq!(fault.details["executed"], "no");
    let wait_ms = fault.details["retry_after_ms"].as_u64().expect("a number");
    assert!((1_000_000..=1_800_000).contains(&wait_ms), "{wait_ms}");
    agent.send("agent.goodbye", json!({"reason": "bye"}), json!({})).await;
    while let Some(message) = agent.next().await {
        assert_ne!(message["type"], "core.tool.call", "nothing was sent");
    }
}

#[tokio::test]
async fn r096_the_shortest_of_all_limits_on_a_call_holds() {
    let ms = |call_ms| ProviderLimits { call_ms: Some(call_ms), ..ProviderLimits::default() };
    for (manifest, terms, options, sent) in [
        ("2s", ms(3_000), ms(4_000), 2_000),
        ("4s", ms(2_500), ms(3_000), 2_500),
        ("4s", ProviderLimits::default(), ms(1_500), 1_500),
        ("90s", ProviderLimits::default(), ProviderLimits::default(), 60_000),
    ] {
        let mut stage = Stage::with(|edge| edge.hosting.limits = options).await;
        let mut part = Part::new(CALLER, &["echo"]);
        part.limits = json!({"max_tool_call_duration": manifest});
        part.approve = approve(terms);
        let (_, mut agent) = part.enter(&mut stage).await;
        stage.run("echo", json!({})).await.expect("accepted");
        assert_eq!(agent.call().await["payload"]["timeout_ms"], sent);
    }
}

#[tokio::test]
async fn r095_r114_r125_sizes_are_limited_in_both_directions() {
    let mut stage = Stage::new().await;
    let mut part = Part::new(CALLER, &["echo"]);
    part.approve = approve(ProviderLimits {
        input_bytes: Some(100),
        output_bytes: Some(100),
        stream_bytes: Some(100),
        ..ProviderLimits::default()
    });
    let (_, mut agent) = part.enter(&mut stage).await;
    let large = json!({"text": "x".repeat(101)});

    let run = stage.run("echo", large.clone()).await.expect("accepted");
    let fault = failed(&stage, &run.key).await;
    assert!(fault.is(Code::ToolInputTooLarge), "{fault}");
    assert_eq!(fault.details["executed"], "no");

    let run = stage.run("echo", json!({"n": 1})).await.expect("accepted");
    let call = agent.call().await;
    assert_eq!(call["payload"]["input"], json!({"n": 1}), "the large one was not sent");
    agent.succeed(&call, large.clone()).await;
    let fault = failed(&stage, &run.key).await;
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");

    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.stream(&call, 1, "stdout", large).await;
    let fault = failed(&stage, &run.key).await;
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
    assert_eq!(agent.receive().await["type"], "core.tool.cancel");

    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    agent.succeed(&call, json!({"n": 2})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded, "others go on");
}
