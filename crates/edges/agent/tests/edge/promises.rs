//! What the original protocol asks of a core beyond calls: what an agent says of its tools is
//! kept, what a call belongs to is told, keys are trusted as far as they are kept, secrets do not
//! pass, and money that was told counts.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use wharf_agent::AgentRule;
use wharf_domain::grant::{Keyring, NewGrant, Rights};
use wharf_domain::{Level, Outcome, Progress};
use wharf_engine::{HistoryItem, InputCheck, NewRun, Redaction};
use wharf_ports::launcher::RestartPolicy;
use wharf_ports::providers::{Approve, ProviderControl, ProviderState};
use wharf_ports::vault::Secret;
use wharf_ports::vault::Vault as _;
use wharf_vocab::{Code, Mode, RunKey, RunStatus, SecretName, Seq, ToolId};

use crate::agent::{Agent, tool};
use crate::launcher::Launch;
use crate::stage::{Stage, id, new, object, owner};

const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const SECRET: &str = "hunter2-hunter2";

/// Offers this definition and waits until it can be called.
async fn offered(stage: &Stage, agent: &mut Agent, definition: Value) {
    let id = ToolId::new(definition["tool_id"].as_str().expect("text")).expect("valid");
    agent.offer(&[definition]).await;
    stage.until(|view| view.state == ProviderState::Running).await;
    stage.until(|_| stage.handle.providers().tool(&id).is_ok()).await;
}

/// An agent with two tools, of which the first declares a capability.
async fn one_of_two(stage: &mut Stage, (able, capability): (&str, &str), other: &str) -> Agent {
    let launch = stage.started().await;
    let mut agent = Agent::join(&launch, &["tools"]).await;
    let mut definition = tool(able);
    definition["capabilities"] = json!([capability]);
    agent.offer(&[definition, tool(other)]).await;
    stage
        .until(|view| view.provider.tools.len() == 2 && view.state == ProviderState::Running)
        .await;
    agent
}

/// All progress of a run, up to its end.
async fn progress_of(stage: &Stage, key: &RunKey) -> Vec<Progress> {
    stage.end_of(key).await;
    let mut watch = stage.handle.run_events().watch(key, Seq(0)).await.expect("known");
    let mut pieces = Vec::new();
    while let Some(event) = watch.next().await {
        if let HistoryItem::Progress(piece) = event.expect("readable").item {
            pieces.push(piece);
        }
    }
    pieces
}

#[tokio::test]
async fn r068_tags_and_capabilities_of_a_tool_are_kept() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let mut agent = Agent::join(&launch, &["tools"]).await;
    let mut definition = tool("echo");
    definition["capabilities"] = json!(["streaming", "cancellation"]);
    definition["tags"] = json!(["text", "demo", ""]);
    offered(&stage, &mut agent, definition).await;
    let known =
        stage.handle.providers().tool(&ToolId::new("dev.example.hello/echo").expect("valid"));
    let def = known.expect("known").def;
    assert_eq!(def.capabilities, ["streaming", "cancellation"]);
    assert_eq!(def.tags, ["text", "demo"]);
    assert!(!def.mock, "it did not say that it can pretend");
    let stage = stage.restarted().await;
    let known = stage.handle.providers().tool(&def.tool).expect("its place is kept");
    assert_eq!(known.def.tags, def.tags);
}

#[tokio::test]
async fn r085_a_tool_that_can_pretend_is_called_so_and_another_is_not() {
    let mut stage = Stage::new().await;
    let mut agent = one_of_two(&mut stage, ("act", "mock"), "real").await;
    let pretend = |name: &str| NewRun { mode: Mode::Mock, ..new(name, object(json!({}))) };
    let refused =
        stage.handle.runs().create(&owner(), pretend("real")).await.expect_err("real only");
    assert!(refused.is(Code::RunModeUnsupported), "{refused}");
    let run = stage.handle.runs().create(&owner(), pretend("act")).await.expect("accepted").run;
    let call = agent.call().await;
    assert_eq!(call["payload"]["tool_id"], "dev.example.hello/act");
    assert_eq!(call["payload"]["context"]["mode"], "mock");
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

#[tokio::test]
async fn r068_only_a_tool_that_says_so_is_free() {
    let mut stage = Stage::new().await;
    let _agent = one_of_two(&mut stage, ("look", "free"), "buy").await;
    let is_free = |name: &str| {
        let id = ToolId::new(format!("dev.example.hello/{name}")).expect("valid");
        stage.handle.providers().tool(&id).expect("known").def.free
    };
    assert!(is_free("look") && !is_free("buy"));
}

#[tokio::test]
async fn r034_r170_a_call_always_names_what_it_is_part_of_and_its_trace() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    assert_eq!(call["correlation_id"], run.key.run.as_str(), "the run itself");
    assert_eq!(call.get("traceparent"), None);
    agent.succeed(&call, json!({})).await;
    let mut traced = new("echo", object(json!({})));
    traced.traceparent = Some(TRACE.to_owned());
    let run = stage.handle.runs().create(&owner(), traced).await.expect("accepted").run;
    let call = agent.call().await;
    assert_eq!(call["traceparent"], TRACE);
    agent.succeed(&call, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    let mut odd = new("echo", object(json!({})));
    odd.traceparent = Some("not a trace".to_owned());
    stage.handle.runs().create(&owner(), odd).await.expect("accepted");
    assert_eq!(agent.call().await.get("traceparent"), None, "what is no trace is none");
    assert!(!format!("{:?}", stage.handle.audit().list(0, 1_000).await).contains("violation"));
}

#[tokio::test]
async fn r034_r170_a_child_belongs_to_what_its_parent_belongs_to() {
    let mut stage = Stage::new().await;
    stage.write_manifest_with(json!({"permissions": ["tool:invoke:dev.example.hello/*"]}));
    let launch = stage.started().await;
    let mut agent = Agent::join(&launch, &["tools", "invoke"]).await;
    agent.offer(&[tool("parent"), tool("child")]).await;
    stage
        .until(|view| view.provider.tools.len() == 2 && view.state == ProviderState::Running)
        .await;
    let mut traced = new("parent", object(json!({})));
    traced.traceparent = Some(TRACE.to_owned());
    let run = stage.handle.runs().create(&owner(), traced).await.expect("accepted").run;
    let parent = agent.call().await;
    let invoke = json!({
        "invoke_id": "i-1", "tool_id": "dev.example.hello/child", "input": {},
        "parent_call_id": parent["payload"]["call_id"],
    });
    agent.send("agent.tool.invoke", invoke, json!({"request_id": parent["request_id"]})).await;
    let child = agent.call().await;
    assert_eq!(child["correlation_id"], run.key.run.as_str());
    assert_eq!(child["traceparent"], TRACE);
    assert_eq!(child["actor"]["type"], "agent");
}

#[tokio::test]
async fn r038_whoever_is_behind_a_call_has_a_name_for_people() {
    let keys = BTreeMap::from([("k1".to_owned(), [7; 32])]);
    let keyring = Keyring { current: "k1".to_owned(), keys };
    let mut stage = Stage::with_engine(|engine| engine.keyring = keyring, |_| {}).await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    assert_eq!(call["actor"]["display"], "owner");
    let (label, rights) = ("Ada's phone".to_owned(), Rights::all());
    let wanted = NewGrant { label, rights, person: true, budget_micro: None };
    let (_, token) = stage.handle.trust().make_grant(&owner(), wanted).await.expect("made");
    let caller = stage.handle.trust().authenticate(token.expose()).expect("good");
    let wanted = new("echo", object(json!({})));
    stage.handle.runs().create(&caller, wanted).await.expect("accepted");
    assert_eq!(agent.call().await["actor"]["display"], "Ada's phone");
}

#[tokio::test]
async fn r089_inputs_can_be_let_pass_with_a_warning_or_without() {
    for (check, warns) in [(InputCheck::Warn, true), (InputCheck::Off, false)] {
        let rule = AgentRule { input_check: check, ..AgentRule::default() };
        let mut stage = Stage::with_engine(
            |engine| engine.input_checks.by_id = BTreeMap::from([(id(), check)]),
            |options| options.rules = BTreeMap::from([(id(), rule)]),
        )
        .await;
        let launch = stage.started().await;
        let mut agent = Agent::join(&launch, &["tools"]).await;
        let mut strict = tool("strict");
        strict["input_schema"] = json!({"type": "object", "required": ["n"]});
        offered(&stage, &mut agent, strict).await;
        let run = stage.run("strict", json!({"m": 1})).await.expect("let pass");
        let call = agent.call().await;
        assert_eq!(call["payload"]["input"], json!({"m": 1}));
        agent.fail(&call, "tool.invalid_input", false).await;
        let pieces = progress_of(&stage, &run.key).await;
        let warned = pieces.iter().any(|piece| {
            matches!(piece, Progress::Log { level: Level::Warn, text } if text.contains("fit"))
        });
        assert_eq!(warned, warns, "{check:?}: {pieces:?}");
    }
}

#[tokio::test]
async fn r059_r075_fields_that_are_only_shown_refuse_nothing() {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let mut agent = Agent::connect(&launch).await;
    let protocol = json!({"supported_versions": [1], "capabilities": ["tools"]});
    let sdk = json!({"sdk": {"name": "elixir"}, "manifest_hash": null});
    let token = launch.env("OPENSENTIENCE_SESSION_TOKEN");
    agent.hello_with(token, "dev.example.hello", protocol, sdk).await;
    agent.welcomed().await;
    let register = json!({"tools": [tool("echo")], "replace": null});
    agent.send("agent.tools.register", register, json!({})).await;
    let registered = agent.receive().await;
    assert_eq!(registered["payload"]["registered"], json!(["dev.example.hello/echo"]));
}

#[tokio::test]
async fn r093_the_owner_may_allow_fewer_calls_and_smaller_frames() {
    let rule = AgentRule {
        calls_open_max: Some(1),
        frame_bytes_max: Some(70_000),
        ..AgentRule::default()
    };
    let mut stage = Stage::with(|options| options.rule = rule).await;
    let launch = stage.started().await;
    let mut agent = Agent::connect(&launch).await;
    agent.hello(launch.env("OPENSENTIENCE_SESSION_TOKEN"), "dev.example.hello", &["tools"]).await;
    assert_eq!(agent.welcomed().await["payload"]["max_frame_bytes"], 70_000);
    offered(&stage, &mut agent, tool("echo")).await;
    let runs = [
        stage.run("echo", json!({"n": 1})).await.expect("accepted"),
        stage.run("echo", json!({"n": 2})).await.expect("accepted"),
    ];
    let first = agent.call().await;
    assert_eq!(first["payload"]["input"]["n"], 1);
    agent.succeed(&first, json!({})).await;
    stage.end_of(&runs[0].key).await;
    let second = agent.call().await;
    agent.succeed(&second, json!({})).await;
    stage.end_of(&runs[1].key).await;
    agent.raw(&70_001_u32.to_be_bytes()).await;
    while agent.next().await.is_some() {}
    let records = stage.audited("agent.protocol_violation").await;
    assert_eq!(records[0].facts["limit_bytes"], 70_000);
}

#[tokio::test]
async fn r146_one_agent_may_have_a_restart_policy_of_its_own() {
    let restart = Some(RestartPolicy { crashes_max: 1, ..RestartPolicy::default() });
    let rule = AgentRule { restart, ..AgentRule::default() };
    let mut stage = Stage::with(|options| options.rules = BTreeMap::from([(id(), rule)])).await;
    let (_launch, agent) = stage.joined(&["echo"]).await;
    drop(agent);
    let view = stage.until(|view| view.state == ProviderState::Crashed).await;
    assert!(view.reason.is_some_and(|reason| reason.contains("1 times")), "given up at once");
}

#[tokio::test]
async fn r063_an_agent_that_is_started_again_is_told_so() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let edge = stage.edge.clone();
    let restarting = tokio::spawn(async move { edge.control().restart(owner(), id()).await });
    let goodbye = agent.receive().await;
    assert_eq!(goodbye["type"], "core.goodbye");
    assert_eq!(goodbye["payload"]["reason"], "core.restart");
    assert_eq!(goodbye["payload"]["retry_after_ms"], 0);
    drop(agent);
    let next = stage.launch().await;
    let mut agent = Agent::join(&next, &["tools"]).await;
    restarting.await.expect("no panic").expect("restarted");
    let edge = stage.edge.clone();
    let stopping = tokio::spawn(async move { edge.control().stop(owner(), id()).await });
    let goodbye = agent.receive().await;
    assert_eq!(goodbye["payload"]["reason"], "core.stop");
    assert_eq!(goodbye["payload"].get("retry_after_ms"), None, "nobody knows whether and when");
    drop(agent);
    stopping.await.expect("no panic").expect("stopped");
}

/// A stage whose agent acts and keeps keys as promised; its first launch and the agent.
async fn keeping(promise: &Value) -> (Stage, Launch, Agent) {
    let mut stage = Stage::new().await;
    let launch = stage.started().await;
    let mut agent = Agent::join_keeping(&launch, promise.clone()).await;
    let mut definition = tool("act");
    definition["side_effects"] = json!(true);
    offered(&stage, &mut agent, definition).await;
    (stage, launch, agent)
}

async fn keyed(stage: &Stage) -> RunKey {
    let wanted = NewRun { idempotency_key: Some("k".into()), ..new("act", object(json!({}))) };
    stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run.key.clone()
}

#[tokio::test]
async fn r102_a_call_with_a_key_is_made_again_under_the_same_key() {
    for promise in [
        json!({"kept_for": "process"}),
        json!({"kept_for": "process", "kept_for_ms": 600_000, "keys_max": 10}),
    ] {
        let (stage, _launch, mut agent) = keeping(&promise).await;
        let run = keyed(&stage).await;
        let first = agent.call().await;
        agent.fail(&first, "acme.later", true).await;
        let again = agent.call().await;
        assert_eq!(again["payload"]["idempotency_key"], "k");
        assert_eq!(first["payload"]["idempotency_key"], "k");
        assert_eq!(again["request_id"], first["request_id"]);
        assert_ne!(again["payload"]["call_id"], first["payload"]["call_id"]);
        agent.succeed(&again, json!({})).await;
        assert_eq!(stage.end_of(&run).await.status(), RunStatus::Succeeded, "{promise}");
    }
}

#[tokio::test]
async fn r169_a_key_that_is_not_kept_any_more_is_no_reason_to_call_again() {
    let (stage, _launch, mut agent) =
        keeping(&json!({"kept_for": "process", "kept_for_ms": 1})).await;
    let run = keyed(&stage).await;
    let first = agent.call().await;
    agent.fail(&first, "acme.later", true).await;
    let run = stage.end_of(&run).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Failed, 1), "the key is forgotten by then");
}

#[tokio::test]
async fn r169_keys_are_gone_with_the_process_unless_they_are_kept_beyond_it() {
    for (promise, attempts) in [("process", 1), ("24h", 2), ("for good", 1)] {
        let promise = json!({"kept_for": promise});
        let (mut stage, _launch, mut agent) = keeping(&promise).await;
        let run = keyed(&stage).await;
        agent.call().await;
        drop(agent);
        let next = stage.launch().await;
        let mut agent = Agent::join_keeping(&next, promise.clone()).await;
        let mut definition = tool("act");
        definition["side_effects"] = json!(true);
        agent.offer(&[definition]).await;
        if attempts == 2 {
            let again = agent.call().await;
            agent.succeed(&again, json!({})).await;
        }
        let run = stage.end_of(&run).await;
        assert_eq!(run.attempt, attempts, "{promise}");
    }
}

/// A stage whose agent was given a secret, and its agent.
async fn with_secret(redaction: Redaction) -> (Stage, Agent) {
    let mut stage = Stage::with_engine(|engine| engine.redaction = redaction, |_| {}).await;
    let name = SecretName::new("API_KEY").expect("valid");
    stage.vault.set(name, Secret::new(SECRET.as_bytes().to_vec())).await.expect("kept");
    stage.write_manifest_with(json!({"permissions": ["secret:use:API_KEY"]}));
    let launch = stage.started_with(Approve::default()).await;
    let mut agent = Agent::join(&launch, &["tools", "notify"]).await;
    offered(&stage, &mut agent, tool("echo")).await;
    (stage, agent)
}

/// What is kept of a call that shows the secret wherever it can.
async fn leaked(stage: &Stage, agent: &mut Agent) -> String {
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let (half, rest) = SECRET.split_at(7);
    agent.stream(&call, 1, "stdout", json!({"text": format!("the key is {half}")})).await;
    agent.stream(&call, 2, "log", json!({"text": format!("log {SECRET} order 4711-0815")})).await;
    agent.stream(&call, 3, "stdout", json!({"text": format!("{rest}, and that is all")})).await;
    agent.stream(&call, 4, "partial_result", json!({"json": {"k": [SECRET]}})).await;
    agent.stream(&call, 5, "status", json!({"text": SECRET, "fraction": 0.5})).await;
    let notice = json!({"call_id": call["payload"]["call_id"], "level": "info", "text": SECRET});
    agent.send("agent.notice", notice, json!({})).await;
    let payload = json!({
        "call_id": call["payload"]["call_id"], "status": "failed",
        "error": {"code": "acme.refused", "message": format!("{SECRET} is wrong"),
            "details": {"header": format!("Bearer {SECRET}")}},
    });
    let echo = json!({
        "request_id": call["request_id"], "correlation_id": call["correlation_id"],
    });
    agent.send("agent.tool.result", payload, echo).await;
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed").clone();
    let error = serde_json::to_string(&error.details).expect("JSON") + &error.message;
    let pieces = progress_of(stage, &run.key).await;
    let mut text = String::new();
    for piece in &pieces {
        match piece {
            Progress::Text { channel, text: more } if channel == "stdout" => text.push_str(more),
            other => text.push_str(&format!(" {other:?} ")),
        }
    }
    text + &error
}

#[tokio::test]
async fn r115_r031_a_secret_is_cut_out_of_streams_logs_and_errors_before_they_are_kept() {
    let (stage, mut agent) = with_secret(Redaction::default()).await;
    let kept = leaked(&stage, &mut agent).await;
    assert!(!kept.contains(SECRET) && !kept.contains("hunter2"), "{kept}");
    assert!(kept.contains("and that is all") && kept.contains("4711-0815"), "{kept}");
    assert!(kept.matches("[redacted]").count() >= 6, "{kept}");
}

#[tokio::test]
async fn r152_the_owner_may_turn_it_off_and_name_patterns_of_their_own() {
    let patterns = ["\\d{4}-\\d{4}".to_owned()];
    let redaction = Redaction::new(false, &patterns).expect("a pattern");
    let (stage, mut agent) = with_secret(redaction).await;
    let kept = leaked(&stage, &mut agent).await;
    assert!(kept.contains(SECRET), "off is off: {kept}");
    assert!(!kept.contains("4711-0815"), "{kept}");
    let audit = format!("{:?}", stage.handle.audit().list(0, 10_000).await.expect("readable"));
    assert!(!audit.contains(SECRET), "the audit has no payload, on or off");
}

#[tokio::test]
async fn r165_a_cost_that_was_told_counts_however_the_call_ends() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let cost = json!({
        "call_id": call["payload"]["call_id"], "seq": 1, "channel": "status",
        "data": {"text": ""}, "cost_micro": 700,
    });
    let echo = json!({
        "request_id": call["request_id"], "correlation_id": call["correlation_id"],
    });
    agent.send("agent.tool.stream", cost, echo.clone()).await;
    let odd = json!({"call_id": call["payload"]["call_id"], "status": "done"});
    agent.send("agent.tool.result", odd, echo).await;
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(error.is(Code::ToolProtocolViolation), "{error}");
    assert_eq!(run.cost_micro, 700);
}

#[tokio::test]
async fn r165_a_call_that_passes_the_budget_of_its_run_is_stopped() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let wanted = NewRun { budget_micro: Some(500), ..new("echo", object(json!({}))) };
    let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let call = agent.call().await;
    let cost = json!({
        "call_id": call["payload"]["call_id"], "seq": 1, "channel": "status",
        "data": {"text": ""}, "cost_micro": 700,
    });
    let echo = json!({
        "request_id": call["request_id"], "correlation_id": call["correlation_id"],
    });
    agent.send("agent.tool.stream", cost, echo).await;
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed");
    assert!(error.is(Code::BudgetExceeded), "{error}");
    assert_eq!(run.cost_micro, 700);
}

#[tokio::test]
async fn r030_no_debug_field_is_written_and_none_is_kept() {
    let mut stage = Stage::new().await;
    let (_launch, mut agent) = stage.joined(&["echo"]).await;
    let run = stage.run("echo", json!({})).await.expect("accepted");
    let call = agent.call().await;
    let payload = json!({
        "call_id": call["payload"]["call_id"], "status": "failed",
        "error": {"code": "acme.broken", "message": "It broke.",
            "debug": {"trace": "canary-debug"}},
    });
    agent.send("agent.tool.result", payload, json!({"request_id": call["request_id"]})).await;
    let run = stage.end_of(&run.key).await;
    let error = run.outcome.as_ref().and_then(Outcome::error).expect("failed").clone();
    assert_eq!((error.code.as_str(), error.message.as_str()), ("acme.broken", "It broke."));
    assert!(!format!("{error:?}").contains("canary-debug"));
    // What the core answers to a message it cannot take is an error of its own.
    agent.send("agent.heartbeat", json!({"session_id": 7}), json!({"request_id": "r"})).await;
    let answer = agent.receive().await;
    assert_eq!(answer["error"]["code"], "protocol.invalid_envelope");
    assert_eq!(answer["error"].get("debug"), None);
    assert_eq!(call.get("error"), None);
}
