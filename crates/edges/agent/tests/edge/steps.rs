//! Agents whose code is durable: their calls are repeated, and find their steps again.

use serde_json::{Value, json};
use wharf_vocab::{Object, RunKey, RunStatus};

use crate::agent::Agent;
use crate::launcher::Launch;
use crate::stage::{Stage, new, owner};
use crate::troupe::{CALLED, CALLER, Part, invoke, result, tool};

const ECHO: &str = "dev.example.other/echo";
const MAY: &[&str] = &["tool:invoke:dev.example.other/*"];
const CAN: &[&str] = &["tools", "invoke", "steps"];

fn durable() -> Part<'static> {
    let mut part = Part { capabilities: CAN, ..Part::new(CALLER, &[]).may(MAY) };
    let mut relay = tool(CALLER, "relay");
    relay["capabilities"] = json!(["durable"]);
    part.tools = vec![relay];
    part
}

/// A durable agent, and one whose tool it may call.
async fn two(stage: &mut Stage) -> (Launch, Agent, Agent) {
    let (launch, caller) = durable().enter(stage).await;
    let (_, called) = Part::new(CALLED, &["echo"]).enter(stage).await;
    (launch, caller, called)
}

/// The agent is gone, and its next launch joins.
async fn again(stage: &mut Stage, launch: &Launch, agent: Agent) -> (Launch, Agent) {
    drop(agent);
    launch.exit(1);
    let launch = stage.launch().await;
    let mut agent = Agent::join_as(&launch, CALLER, CAN).await;
    agent.offer(&durable().tools).await;
    (launch, agent)
}

fn fetch(n: u32) -> Value {
    json!({"step": {"name": "fetch", "n": n}})
}

async fn local(agent: &mut Agent, call: &Value, more: Value) -> Value {
    let mut payload = json!({
        "call_id": call["payload"]["call_id"], "step": {"name": "dice", "n": 1},
    });
    for (key, value) in more.as_object().expect("an object") {
        payload[key] = value.clone();
    }
    let echo = json!({"request_id": call["request_id"]});
    agent.send("agent.step.local", payload, echo).await;
    let answer = agent.receive().await;
    assert_eq!(answer["type"], "core.step.kept", "{answer}");
    assert!(answer["in_reply_to"].is_string(), "{answer}");
    assert_eq!(answer["payload"]["step"], json!({"name": "dice", "n": 1}));
    answer["payload"].clone()
}

async fn started(stage: &Stage) -> RunKey {
    let wanted = new("relay", Object::new());
    stage.handle.runs().create(&owner(), wanted).await.expect("accepted").run.key.clone()
}

#[tokio::test]
async fn r172_r175_f022_f028_a_repeated_call_finds_its_steps_again() {
    let mut stage = Stage::new().await;
    let (launch, mut a, mut b) = two(&mut stage).await;
    let run = started(&stage).await;
    let call = a.call().await;
    invoke(&mut a, "i-1", &call, ECHO, fetch(1)).await;
    let inner = b.call().await;
    assert!(inner["payload"]["idempotency_key"].is_string(), "its provider knows it by a key");
    b.succeed(&inner, json!({"said": 1})).await;
    assert_eq!(result(&mut a).await["output"], json!({"said": 1}));
    invoke(&mut a, "i-2", &call, ECHO, fetch(2)).await;
    let under_way = b.call().await;

    let (_launch, mut a) = again(&mut stage, &launch, a).await;
    let call = a.call().await;
    invoke(&mut a, "j-1", &call, ECHO, fetch(1)).await;
    assert_eq!(result(&mut a).await["output"], json!({"said": 1}), "from the journal");
    invoke(&mut a, "j-2", &call, ECHO, fetch(2)).await;
    b.succeed(&under_way, json!({"said": 2})).await;
    assert_eq!(result(&mut a).await["output"], json!({"said": 2}), "it was not called off");
    a.succeed(&call, json!({"all": 3})).await;
    let run = stage.end_of(&run).await;
    assert_eq!((run.status(), run.attempt), (RunStatus::Succeeded, 2));
}

#[tokio::test]
async fn r174_f023_what_local_code_gave_comes_back() {
    let mut stage = Stage::new().await;
    let (launch, mut a, _b) = two(&mut stage).await;
    started(&stage).await;
    let call = a.call().await;
    let unknown = local(&mut a, &call, json!({})).await;
    assert!(unknown.get("value").is_none() && unknown.get("error").is_none(), "{unknown}");
    assert_eq!(local(&mut a, &call, json!({"value": null})).await["value"], Value::Null);
    let (_launch, mut a) = again(&mut stage, &launch, a).await;
    let call = a.call().await;
    let known = local(&mut a, &call, json!({})).await;
    assert_eq!(known.get("value"), Some(&Value::Null), "null is a value, too");
    let first = local(&mut a, &call, json!({"value": 6})).await;
    assert_eq!(first.get("value"), Some(&Value::Null), "the first one counts");
}

#[tokio::test]
async fn r173_f025_a_step_that_is_another_ends_the_call_and_is_not_executed() {
    let mut stage = Stage::new().await;
    let (launch, mut a, mut b) = two(&mut stage).await;
    let run = started(&stage).await;
    let call = a.call().await;
    invoke(&mut a, "i-1", &call, ECHO, fetch(1)).await;
    let inner = b.call().await;
    b.succeed(&inner, json!({})).await;
    result(&mut a).await;
    let (_launch, mut a) = again(&mut stage, &launch, a).await;
    let call = a.call().await;
    let mut other = fetch(1);
    other["input"] = json!({"n": 2});
    invoke(&mut a, "j-1", &call, ECHO, other).await;
    let end = stage.end_of(&run).await;
    let error = end.outcome.as_ref().and_then(|it| it.error()).expect("it failed");
    assert_eq!(error.code.as_str(), "step.diverged");
    let mut kinds = Vec::new();
    while kinds.len() < 2 {
        let told = a.receive().await;
        if told["type"] == "core.tool.invoke_result" {
            assert_eq!(told["payload"]["status"], "failed", "{told}");
        }
        kinds.push(told["type"].as_str().expect("text").to_owned());
    }
    kinds.sort();
    assert_eq!(kinds, ["core.tool.cancel", "core.tool.invoke_result"]);
}

#[tokio::test]
async fn r172_steps_are_for_durable_tools_and_end_with_their_run() {
    let mut stage = Stage::new().await;
    let mut plain = durable();
    plain.tools = vec![tool(CALLER, "relay")];
    let (_launch, mut a) = plain.enter(&mut stage).await;
    let (_, _b) = Part::new(CALLED, &["echo"]).enter(&mut stage).await;
    started(&stage).await;
    let call = a.call().await;
    invoke(&mut a, "i-1", &call, ECHO, fetch(1)).await;
    assert_eq!(result(&mut a).await["error"]["code"], "permission.denied");
    let refused = local(&mut a, &call, json!({"value": 1})).await;
    assert_eq!(refused["error"]["code"], "permission.denied");

    let mut stage = Stage::new().await;
    let (_launch, mut a, mut b) = two(&mut stage).await;
    started(&stage).await;
    let call = a.call().await;
    invoke(&mut a, "i-1", &call, ECHO, fetch(1)).await;
    b.call().await;
    a.succeed(&call, json!({})).await;
    assert_eq!(b.receive().await["type"], "core.tool.cancel", "nobody would hear of it");
    assert_eq!(result(&mut a).await["status"], "canceled");

    // The agent takes a step back.
    started(&stage).await;
    let call = a.call().await;
    invoke(&mut a, "i-2", &call, ECHO, fetch(1)).await;
    let inner = b.call().await;
    a.send("agent.tool.invoke_cancel", json!({"invoke_id": "i-2"}), json!({})).await;
    let cancel = b.receive().await;
    assert_eq!(cancel["payload"]["call_id"], inner["payload"]["call_id"]);
}
