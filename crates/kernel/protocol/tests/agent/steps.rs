//! Steps of durable code: calls that are one, and values that are kept.

use serde_json::{Value, json};
use wharf_protocol::agent::{
    Additions, AgentEvent, Breach, CallOutcome, CallRequest, CoreEvent, InvokeRequest, KeptValue,
    SendError,
};
use wharf_vocab::{Code, Fault, StepName};
use wharf_wire::agent_v1::InvokeId;

use super::pair::Pair;
use super::stage::{CoreStage, breaches, call_id, core_config, hello, object, request};

fn step(n: u32) -> StepName {
    StepName::new("fetch", n).expect("valid")
}

fn invoke(id: &str, step: Option<StepName>) -> InvokeRequest {
    InvokeRequest {
        invoke_id: InvokeId::new(id).expect("valid"),
        parent_call_id: call_id("c-1"),
        tool_id: "wharf/echo".to_owned(),
        input: object(json!({"text": "hi"})),
        timeout_ms: None,
        idempotency_key: None,
        step,
    }
}

/// Both ends with one open call.
fn working(call: CallRequest) -> Pair {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), call).expect("taken");
    pair.pump();
    pair.agent_events();
    pair
}

fn kept(events: &[AgentEvent]) -> KeptValue {
    match events {
        [AgentEvent::StepKept(kept)] => (**kept).clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn r171_a_call_says_which_step_it_is() {
    let mut pair = working(request("c-1"));
    pair.agent.invoke(pair.moment(), invoke("i-1", Some(step(2)))).expect("granted");
    pair.agent.invoke(pair.moment(), invoke("i-2", None)).expect("granted");
    pair.pump();
    let steps: Vec<_> = pair
        .core_events()
        .into_iter()
        .map(|event| match event {
            CoreEvent::Invoke(received) => received.step,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(steps, [Some(step(2)), None]);
}

#[test]
fn r171_without_the_capability_a_step_is_unexpected() {
    let mut plain = CoreStage::new(core_config());
    plain.say("agent.hello", &hello());
    plain.accept(Additions { steps: false, ..Additions::ALL });
    let payload = json!({"invoke_id": "i-1", "tool_id": "wharf/echo", "input": {},
        "parent_call_id": "c-1", "step": {"name": "fetch", "n": 1}});
    plain.say("agent.tool.invoke", &payload);
    let local = json!({"call_id": "c-1", "step": {"name": "dice", "n": 1}});
    plain.say("agent.step.local", &local);
    assert_eq!(breaches(&plain.events()), [Breach::Unexpected, Breach::Unexpected]);
}

#[test]
fn r171_a_name_that_is_none_is_a_wrong_field() {
    for name in [json!({"name": "", "n": 1}), json!({"name": "a", "n": 0}), json!("a")] {
        let mut stage = CoreStage::ready();
        let payload = json!({"invoke_id": "i-1", "tool_id": "wharf/echo", "input": {},
            "parent_call_id": "c-1", "step": name});
        stage.say("agent.tool.invoke", &payload);
        assert_eq!(breaches(&stage.events()), [Breach::Field], "{name}");
    }
}

#[test]
fn r172_the_time_of_a_call_stands_still_while_it_waits_for_a_step() {
    let mut pair = working(CallRequest { timeout_ms: Some(10_000), ..request("c-1") });
    pair.agent.invoke(pair.moment(), invoke("i-1", Some(step(1)))).expect("granted");
    pair.pump();
    pair.core_events();
    pair.pass(20_000);
    let ended = |events: &[CoreEvent]| {
        events.iter().any(|event| matches!(event, CoreEvent::CallEnded { .. }))
    };
    assert!(!ended(&pair.core_events()), "it stands still");
    let id = InvokeId::new("i-1").expect("valid");
    let outcome = CallOutcome::Succeeded(object(json!({})));
    pair.core.invoke_result(pair.moment(), &id, outcome).expect("open");
    pair.pass(9_000);
    assert!(!ended(&pair.core_events()), "it goes on from where it stood");
    pair.pass(2_000);
    assert!(ended(&pair.core_events()), "it is over");
}

#[test]
fn r174_a_value_is_asked_for_kept_and_answered_each_once() {
    let mut pair = working(request("c-1"));
    let (now, call) = (pair.moment(), call_id("c-1"));
    let told =
        |value: Option<Value>| KeptValue { call_id: call.clone(), step: step(1), value: Ok(value) };
    for (given, answer) in
        [(None, None), (Some(json!(4)), Some(json!(4))), (None, Some(Value::Null))]
    {
        pair.agent.keep(now, &call, &step(1), given.clone()).expect("granted");
        let twice = pair.agent.keep(now, &call, &step(1), given.clone());
        assert_eq!(twice, Err(SendError::InUse));
        pair.pump();
        let events = pair.core_events();
        let [CoreEvent::StepLocal(local)] = &events[..] else { panic!("{events:?}") };
        assert_eq!((&local.call_id, &local.step, &local.value), (&call, &step(1), &given));
        pair.core.step_kept(now, &call, &step(1), Ok(answer.clone())).expect("open");
        let again = pair.core.step_kept(now, &call, &step(1), Ok(None));
        assert_eq!(again, Err(SendError::NotOpen));
        pair.pump();
        assert_eq!(kept(&pair.agent_events()), told(answer));
    }
    let fault = Fault::new(Code::ToolLimit, "That is too much.");
    pair.agent.keep(now, &call, &step(2), None).expect("granted");
    pair.pump();
    pair.core.step_kept(now, &call, &step(2), Err(fault.clone())).expect("open");
    pair.pump();
    assert_eq!(kept(&pair.agent_events()).value.expect_err("refused").code, fault.code);
    assert_eq!(pair.agent.keep(now, &call_id("c-9"), &step(1), None), Err(SendError::NotOpen));
}

#[test]
fn r174_values_of_calls_that_are_over_are_not_kept() {
    let mut stage = CoreStage::ready();
    stage.say("agent.step.local", &json!({"call_id": "c-9", "step": {"name": "a", "n": 1}}));
    assert_eq!(stage.events(), [], "nobody is asked");
    let answer = stage.answer();
    assert_eq!(answer["type"], "core.step.kept");
    assert_eq!(answer["payload"]["error"]["code"], "permission.denied");
}
