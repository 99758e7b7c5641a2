//! Agents that call tools through the core.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use wharf_domain::{Availability, Outcome, Progress, Resolution, ToolDef};
use wharf_engine::{Attempt, Dispatch, Handle, ProviderSink};
use wharf_ports::providers::{Approve, ProviderControl as _};
use wharf_vocab::{AttemptId, Fault, Object, ProviderId, RunStatus, ToolId};

use crate::agent::{Agent, LONG};
use crate::stage::{Stage, new, object, owner};
use crate::troupe::{CALLED, CALLER, Part, invoke, result};

const ECHO: &str = "dev.example.other/echo";
const MAY: &[&str] = &["tool:invoke:dev.example.other/*"];

/// Two agents, the first of which may call the second.
async fn two(stage: &mut Stage) -> (Agent, Agent) {
    let (_, caller) = Part::new(CALLER, &["relay"]).may(MAY).enter(stage).await;
    let (_, called) = Part::new(CALLED, &["echo"]).enter(stage).await;
    (caller, called)
}

#[tokio::test]
async fn r159_r160_a_call_of_an_agent_is_a_child_of_the_run_it_works_on() {
    let mut stage = Stage::new().await;
    let (mut a, mut b) = two(&mut stage).await;
    let mut wanted = new("relay", Object::new());
    wanted.correlation_id = Some("chat:7".into());
    let run = stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run;
    let outer = a.call().await;
    let more = json!({"timeout_ms": 4_321});
    invoke(&mut a, "i-1", &outer, ECHO, more).await;
    let inner = b.call().await;
    assert_eq!(inner["causation_id"], run.key.run.as_str());
    assert_eq!(inner["correlation_id"], "chat:7");
    assert_eq!(inner["actor"]["type"], "agent");
    assert_eq!(inner["payload"]["timeout_ms"], 4_321);
    b.stream(&inner, 1, "stdout", json!({"text": "one"})).await;
    let piece = a.receive().await;
    assert_eq!(piece["type"], "core.tool.invoke_stream", "before the child ends: {piece}");
    assert_eq!(piece["request_id"], outer["request_id"]);
    let expected = json!({
        "invoke_id": "i-1", "seq": 1, "channel": "stdout", "data": {"text": "one"},
    });
    assert_eq!(piece["payload"], expected);
    b.stream(&inner, 2, "status", json!({"text": "half", "fraction": 0.5})).await;
    let piece = a.receive().await;
    assert_eq!(piece["payload"]["data"], json!({"text": "half", "fraction": 0.5}));
    b.succeed(&inner, json!({"said": "hi"})).await;
    let ended = a.receive().await;
    assert_eq!(ended["payload"]["status"], "succeeded", "{ended}");
    assert_eq!(ended["payload"]["output"], json!({"said": "hi"}));
    assert!(ended["in_reply_to"].is_string());
    a.succeed(&outer, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
    let child = inner["request_id"].as_str().expect("text");
    let child = wharf_vocab::RunKey {
        world: run.key.world.clone(),
        run: wharf_vocab::RunId::new(child).expect("valid"),
    };
    let child = stage.handle.runs().get(&child).await.expect("known");
    assert_eq!(child.spec.parent.as_ref(), Some(&run.key));
    assert_eq!(child.spec.depth, 1);
}

#[tokio::test]
async fn r159_a_child_that_fails_or_is_refused_is_told_with_its_error() {
    let mut stage = Stage::new().await;
    let (mut a, mut b) = two(&mut stage).await;
    stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    invoke(&mut a, "i-1", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    b.fail(&inner, "acme.no_stock", false).await;
    let ended = result(&mut a).await;
    assert_eq!(
        (&ended["status"], &ended["error"]["code"]),
        (&json!("failed"), &json!("acme.no_stock"))
    );
    for (tool, code) in
        [("dev.example.other/none", "tool.not_found"), ("no tool at all", "tool.not_found")]
    {
        invoke(&mut a, "i-2", &outer, tool, json!({})).await;
        let ended = result(&mut a).await;
        assert_eq!((&ended["status"], &ended["error"]["code"]), (&json!("failed"), &json!(code)));
    }
}

#[tokio::test]
async fn r160_without_the_capability_a_call_is_unexpected_and_without_a_parent_denied() {
    let mut stage = Stage::new().await;
    let mut plain = Part::new(CALLER, &["relay"]).may(MAY);
    plain.capabilities = &["tools"];
    let (_launch, mut a) = plain.enter(&mut stage).await;
    stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    invoke(&mut a, "i-1", &outer, ECHO, json!({})).await;
    let error = a.receive().await;
    assert_eq!(error["type"], "core.error");
    assert_eq!(error["error"]["code"], "protocol.unexpected_message");

    let mut stage = Stage::new().await;
    let (mut a, _b) = two(&mut stage).await;
    invoke(&mut a, "i-1", &json!({}), ECHO, json!({"parent_call_id": "nobodys"})).await;
    assert_eq!(result(&mut a).await["error"]["code"], "permission.denied");
    let run = stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    a.succeed(&outer, json!({})).await;
    stage.end_of(&run.key).await;
    invoke(&mut a, "i-2", &outer, ECHO, json!({})).await;
    assert_eq!(result(&mut a).await["error"]["code"], "permission.denied", "the call is over");
}

#[tokio::test]
async fn r083_r084_an_agent_calls_only_what_its_owner_allows_at_that_moment() {
    let mut stage = Stage::new().await;
    let may = &["tool:invoke:dev.example.other/echo", "tool:invoke:dev.example.other/say"];
    let (_, mut a) = Part::new(CALLER, &["relay"]).may(may).enter(&mut stage).await;
    let (_, mut b) = Part::new(CALLED, &["echo", "say", "format"]).enter(&mut stage).await;
    stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    invoke(&mut a, "i-1", &outer, "dev.example.other/format", json!({})).await;
    let ended = result(&mut a).await;
    assert_eq!(ended["error"]["code"], "permission.denied", "never allowed");
    let denied = stage.audited("security.denied").await;
    assert_eq!(denied[0].facts["tool"], "dev.example.other/format", "{denied:?}");
    assert_eq!(denied[0].facts["permission"], "tool:invoke:dev.example.other/format");
    assert!(!format!("{denied:?}").contains("canary"), "{denied:?}");

    invoke(&mut a, "i-2", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    assert_eq!(inner["payload"]["tool_id"], ECHO, "nothing was sent of what was denied");
    b.succeed(&inner, json!({})).await;
    assert_eq!(result(&mut a).await["status"], "succeeded");

    // The owner takes one of them back while the agent runs.
    let permissions = Some(vec!["tool:invoke:dev.example.other/say".to_owned()]);
    let approve = Approve { permissions, ..Approve::default() };
    let id = ProviderId::new(CALLER).expect("valid");
    stage.edge.control().approve(owner(), id, approve).await.expect("approved");
    invoke(&mut a, "i-3", &outer, ECHO, json!({})).await;
    assert_eq!(result(&mut a).await["error"]["code"], "permission.denied", "not any more");
    invoke(&mut a, "i-4", &outer, "dev.example.other/say", json!({})).await;
    let inner = b.call().await;
    b.succeed(&inner, json!({})).await;
    assert_eq!(result(&mut a).await["status"], "succeeded", "still allowed");
}

#[tokio::test]
async fn r160_children_are_nested_eight_deep_and_no_deeper() {
    let mut stage = Stage::new().await;
    let may = &["tool:invoke:dev.example.hello/relay"];
    let (_, mut a) = Part::new(CALLER, &["relay"]).may(may).enter(&mut stage).await;
    stage.run("relay", json!({})).await.expect("accepted");
    let mut call = a.call().await;
    for depth in 1..=8 {
        invoke(&mut a, &format!("i-{depth}"), &call, "dev.example.hello/relay", json!({})).await;
        call = a.call().await;
    }
    invoke(&mut a, "i-9", &call, "dev.example.hello/relay", json!({})).await;
    assert_eq!(result(&mut a).await["error"]["code"], "tool.depth_exceeded");
}

#[tokio::test]
async fn r159_children_end_when_nobody_wants_them_any_more() {
    let mut stage = Stage::new().await;
    let (mut a, mut b) = two(&mut stage).await;
    let canceled = async |b: &mut Agent, inner: &Value| {
        let cancel = b.receive().await;
        assert_eq!(cancel["type"], "core.tool.cancel", "{cancel}");
        assert_eq!(cancel["payload"]["call_id"], inner["payload"]["call_id"]);
        let payload = json!({
            "call_id": inner["payload"]["call_id"], "status": "canceled",
            "error": {"code": "tool.canceled", "message": "stopped"},
        });
        let echo = json!({
            "request_id": inner["request_id"], "causation_id": inner["causation_id"],
        });
        b.send("agent.tool.result", payload, echo).await;
    };
    // The agent takes its call back.
    stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    invoke(&mut a, "i-1", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    a.send("agent.tool.invoke_cancel", json!({"invoke_id": "i-1"}), json!({})).await;
    canceled(&mut b, &inner).await;
    assert_eq!(result(&mut a).await["status"], "canceled");
    // Its call ends before the child does.
    invoke(&mut a, "i-2", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    a.succeed(&outer, json!({})).await;
    canceled(&mut b, &inner).await;
    assert_eq!(result(&mut a).await["status"], "canceled");
    // Its run is canceled.
    let run = stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    invoke(&mut a, "i-3", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    stage.handle.runs().cancel(&owner(), &run.key, "enough").await.expect("known");
    canceled(&mut b, &inner).await;
    // Its connection ends.
    stage.run("relay", json!({})).await.expect("accepted");
    let outer = loop {
        let message = a.receive().await;
        if message["type"] == "core.tool.call" {
            break message;
        }
    };
    invoke(&mut a, "i-4", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    drop(a);
    canceled(&mut b, &inner).await;
}

#[tokio::test]
async fn r159_the_same_key_within_a_run_is_the_same_child() {
    let mut stage = Stage::new().await;
    let (mut a, mut b) = two(&mut stage).await;
    stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    let key = json!({"idempotency_key": "k-1"});
    invoke(&mut a, "i-1", &outer, ECHO, key.clone()).await;
    let inner = b.call().await;
    b.succeed(&inner, json!({"n": 1})).await;
    assert_eq!(result(&mut a).await["output"], json!({"n": 1}));
    invoke(&mut a, "i-2", &outer, ECHO, key).await;
    assert_eq!(result(&mut a).await["output"], json!({"n": 1}), "and nothing was called");
    invoke(&mut a, "i-3", &outer, ECHO, json!({"idempotency_key": "k-2"})).await;
    let second = b.call().await;
    assert_ne!(second["request_id"], inner["request_id"]);
}

#[tokio::test]
async fn r161_a_question_of_a_child_is_answered_from_the_one_inbox() {
    let mut stage = Stage::new().await;
    let (mut a, mut b) = two(&mut stage).await;
    let run = stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    invoke(&mut a, "i-1", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    let question = json!({
        "ask_id": "q1", "call_id": inner["payload"]["call_id"],
        "title": "Window or aisle?", "schema": {"enum": ["window", "aisle"]},
    });
    let echo = json!({"request_id": inner["request_id"], "causation_id": inner["causation_id"]});
    b.send("agent.question.ask", question, echo).await;
    let deadline = Instant::now() + LONG;
    let ask = loop {
        if let Some(view) = stage.handle.asks().inbox(None, 10).await.expect("lists").pop() {
            break view.ask;
        }
        assert!(Instant::now() < deadline, "no question came");
        tokio::task::yield_now().await;
    };
    assert_eq!(ask.spec.title, "Window or aisle?");
    let answer = Resolution::Answered { value: json!("aisle") };
    stage.handle.asks().resolve(&owner(), &ask.spec.ask_id, answer).await.expect("open");
    let answered = b.receive().await;
    assert_eq!(answered["payload"]["value"], "aisle", "{answered}");
    b.succeed(&inner, json!({"seat": "aisle"})).await;
    assert_eq!(result(&mut a).await["output"], json!({"seat": "aisle"}));
    a.succeed(&outer, json!({})).await;
    assert_eq!(stage.end_of(&run.key).await.status(), RunStatus::Succeeded);
}

/// A provider inside the core whose tool writes a lot and succeeds.
struct Talkative(Handle);

const LINES: usize = 2_000;

impl ProviderSink for Talkative {
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault> {
        let attempt = Attempt::new(self.0.clone(), dispatch);
        tokio::spawn(async move {
            for _ in 0..LINES {
                // Phases are not joined as adjacent text is.
                let phase = Progress::Phase { phase: "x".repeat(1_000), fraction: None };
                attempt.progress(vec![phase]).await.expect("the engine runs");
            }
            attempt.succeeded(Object::new(), 0).await.expect("the engine runs");
        });
        Ok(())
    }

    fn cancel(&self, _attempt_id: &AttemptId, _reason: &str, _grace_ms: u64) {}

    fn answer(&self, _attempt_id: &AttemptId, _key: &str, _resolution: &Resolution) {}
}

async fn with_talkative(stage: &Stage) {
    let provider = ProviderId::new("talk").expect("valid");
    let tool = ToolId::new("talk/much").expect("valid");
    let def = ToolDef::new(tool, "talks", json!({"type": "object"}));
    let sink = Arc::new(Talkative(stage.handle.clone()));
    stage.handle.providers().register(provider.clone(), vec![def], sink).await.expect("registered");
    stage.handle.providers().set_availability(provider, Availability::Up).await.expect("known");
}

#[tokio::test]
async fn r115_r116_an_agent_that_reads_slowly_delays_nobody_and_gets_bounded_output() {
    let mut stage = Stage::with(|options| options.limits.stream_bytes_max = 300_000).await;
    with_talkative(&stage).await;
    let may = &["tool:invoke:talk/much"];
    let (_, mut a) = Part::new(CALLER, &["relay"]).may(may).enter(&mut stage).await;
    stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    for n in 0..3 {
        invoke(&mut a, &format!("i-{n}"), &outer, "talk/much", json!({})).await;
    }
    // Nothing is read meanwhile, and all children end.
    let deadline = Instant::now() + LONG;
    loop {
        let query = wharf_engine::RunQuery {
            tool: Some(ToolId::new("talk/much").expect("valid")),
            statuses: vec![RunStatus::Succeeded],
            limit: 10,
            ..wharf_engine::RunQuery::default()
        };
        if stage.handle.run_lists().list(query).await.expect("lists").runs.len() == 3 {
            break;
        }
        assert!(Instant::now() < deadline, "a slow reader holds up its children");
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let (mut ended, mut cut, mut bytes) = (0, 0, 0);
    while ended < 3 {
        let message = a.receive().await;
        match message["type"].as_str() {
            Some("core.tool.invoke_result") => ended += 1,
            Some("core.tool.invoke_stream") => {
                let text = message["payload"]["data"]["text"].as_str().expect("text");
                cut += usize::from(text.starts_with("The output was cut"));
                bytes += text.len();
            }
            _ => panic!("{message}"),
        }
    }
    assert_eq!(cut, 3, "each says that it was cut");
    assert!((800_000..1_000_000).contains(&bytes), "{bytes}");
    a.succeed(&outer, json!({})).await;
}

#[tokio::test]
async fn r160_what_children_cost_counts_for_the_whole_tree() {
    let mut stage = Stage::new().await;
    let (mut a, mut b) = two(&mut stage).await;
    let run = stage.run("relay", json!({})).await.expect("accepted");
    let outer = a.call().await;
    invoke(&mut a, "i-1", &outer, ECHO, json!({})).await;
    let inner = b.call().await;
    let payload = json!({
        "call_id": inner["payload"]["call_id"], "status": "succeeded", "output": {},
        "metrics": {"cost_micro": 5},
    });
    let echo = json!({"request_id": inner["request_id"], "causation_id": inner["causation_id"]});
    b.send("agent.tool.result", payload, echo).await;
    assert_eq!(result(&mut a).await["status"], "succeeded");
    a.succeed(&outer, json!({})).await;
    let run = stage.end_of(&run.key).await;
    assert_eq!(run.outcome, Some(Outcome::Succeeded { outputs: object(json!({})) }));
    let child = inner["request_id"].as_str().expect("text");
    let key = wharf_vocab::RunKey {
        world: run.key.world.clone(),
        run: wharf_vocab::RunId::new(child).expect("valid"),
    };
    let child = stage.handle.runs().get(&key).await.expect("known");
    assert_eq!(child.cost_micro, 5);
    assert_eq!(child.spec.account, run.spec.account, "both are paid from one account");
}
