//! Calls, questions and notices of agents.

use serde_json::{Value, json};
use wharf_protocol::agent::{
    Additions, AgentEvent, Breach, CallOutcome, CoreEvent, InvokeRequest, SendError,
};
use wharf_vocab::{Code, Fault};
use wharf_wire::agent_v1::{
    AnswerStatus, Chunk, InvokeId, NoticeLevel, QuestionAnswer, QuestionAsk, QuestionId,
    TextChannel,
};

use super::pair::Pair;
use super::stage::{
    AgentStage, CoreStage, agent_config, breaches, call_id, core_config, hello, object, request,
    welcome,
};

fn invoke_id(text: &str) -> InvokeId {
    InvokeId::new(text).expect("valid")
}

fn ask_id(text: &str) -> QuestionId {
    QuestionId::new(text).expect("valid")
}

fn invoke(id: &str, parent: &str) -> InvokeRequest {
    InvokeRequest {
        invoke_id: invoke_id(id),
        parent_call_id: call_id(parent),
        tool_id: "wharf/echo".to_owned(),
        input: object(json!({"text": "hi"})),
        timeout_ms: Some(5_000),
        idempotency_key: None,
        step: None,
    }
}

fn question(id: &str, call: &str) -> QuestionAsk {
    QuestionAsk {
        ask_id: ask_id(id),
        call_id: call_id(call),
        title: "Which colour?".to_owned(),
        schema: json!({"type": "object"}),
        deadline_ms: None,
    }
}

fn ask(id: &str, call: &str) -> Value {
    json!({"ask_id": id, "call_id": call, "title": "?", "schema": {}})
}

fn answered(id: &str, value: Value) -> QuestionAnswer {
    let status = AnswerStatus::Answered;
    QuestionAnswer { ask_id: ask_id(id), status, value: Some(value), text: None }
}

/// Both ends with one open call.
fn working() -> Pair {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    pair.agent_events();
    pair
}

#[test]
fn r159_an_agent_calls_a_tool_and_sees_its_progress_and_its_end() {
    let mut pair = working();
    let now = pair.moment();
    pair.agent.invoke(now, invoke("i-1", "c-1")).expect("granted");
    assert_eq!(pair.agent.invoke(now, invoke("i-1", "c-1")), Err(SendError::InUse));
    assert_eq!(pair.agent.invoke(now, invoke("i-2", "c-9")), Err(SendError::NotOpen));
    pair.pump();
    let events = pair.core_events();
    let [CoreEvent::Invoke(received)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(received.parent_call_id, call_id("c-1"));
    assert_eq!(received.tool_id, "wharf/echo");
    assert_eq!(received.echo.request_id.as_deref(), Some("r-1"));

    let id = invoke_id("i-1");
    let chunk = Chunk::Text { channel: TextChannel::Stdout, text: "h".to_owned() };
    for _ in 0..2 {
        pair.core.invoke_chunk(now, &id, chunk.clone()).expect("open");
    }
    let outcome = CallOutcome::Succeeded(object(json!({"text": "hi"})));
    pair.core.invoke_result(now, &id, outcome.clone()).expect("open");
    assert_eq!(pair.core.invoke_result(now, &id, outcome.clone()), Err(SendError::NotOpen));
    assert_eq!(pair.core.invoke_chunk(now, &id, chunk), Err(SendError::NotOpen));
    pair.pump();
    let events = pair.agent_events();
    let seqs: Vec<u64> = events
        .iter()
        .filter_map(|event| match event {
            AgentEvent::InvokeChunk { seq, .. } => Some(*seq),
            _ => None,
        })
        .collect();
    assert_eq!(seqs, [1, 2]);
    assert!(matches!(&events[2], AgentEvent::InvokeEnded(end) if end.outcome == outcome));
}

#[test]
fn r159_an_agent_may_take_its_call_back() {
    let mut pair = working();
    let now = pair.moment();
    pair.agent.invoke(now, invoke("i-1", "c-1")).expect("granted");
    pair.agent.cancel_invoke(now, &invoke_id("i-1")).expect("open");
    assert_eq!(pair.agent.cancel_invoke(now, &invoke_id("i-2")), Err(SendError::NotOpen));
    pair.pump();
    let invoke_id = invoke_id("i-1");
    let canceled = CoreEvent::InvokeCanceled { invoke_id: invoke_id.clone() };
    assert!(pair.core_events().contains(&canceled));
    let fault = Fault::new(Code::ToolCanceled, "The call was canceled.");
    pair.core.invoke_result(now, &invoke_id, CallOutcome::Canceled(fault)).expect("open");
    pair.pump();
    assert!(matches!(&pair.agent_events()[..], [AgentEvent::InvokeEnded(end)]
        if matches!(end.outcome, CallOutcome::Canceled(_))));
}

#[test]
fn r159_an_output_that_fits_no_frame_becomes_a_failure() {
    let mut pair = working();
    pair.agent.invoke(pair.moment(), invoke("i-1", "c-1")).expect("granted");
    pair.pump();
    let huge = CallOutcome::Succeeded(object(json!({"x": "y".repeat(5 * 1024 * 1024)})));
    pair.core.invoke_result(pair.moment(), &invoke_id("i-1"), huge).expect("open");
    pair.pump();
    let events = pair.agent_events();
    let [AgentEvent::InvokeEnded(end)] = &events[..] else { panic!("{events:?}") };
    assert!(matches!(&end.outcome,
        CallOutcome::Failed(fault) if fault.is(Code::ToolOutputTooLarge)));
}

#[test]
fn r160_without_capability_or_parent_there_is_no_call() {
    let payload = json!({"invoke_id": "i-1", "tool_id": "wharf/echo", "input": {},
        "parent_call_id": "c-1"});
    let mut plain = CoreStage::new(core_config());
    plain.say("agent.hello", &hello());
    plain.accept(Additions::default());
    plain.events();
    plain.written();
    let id = plain.say("agent.tool.invoke", &payload);
    let answer = plain.answer();
    assert_eq!(answer["in_reply_to"], *id);
    assert_eq!(answer["error"]["code"], "protocol.unexpected_message");
    assert_eq!(plain.breaches(), [Breach::Unexpected]);
    assert!(plain.session.is_live());

    let mut stage = CoreStage::ready();
    let orphan = json!({"invoke_id": "i-2", "tool_id": "wharf/echo", "input": {}});
    for payload in [&payload, &orphan] {
        stage.say("agent.tool.invoke", payload);
        let answer = stage.answer();
        assert_eq!(answer["type"], "core.tool.invoke_result");
        assert_eq!(answer["payload"]["status"], "failed");
        assert_eq!(answer["payload"]["error"]["code"], "permission.denied");
    }
    assert_eq!(stage.events(), []);
}

#[test]
fn open_calls_of_an_agent_are_limited_and_have_ids_of_their_own() {
    let mut config = core_config();
    config.limits.invokes_open_max = 2;
    let mut stage = CoreStage::ready_with(config);
    stage.call("c-1");
    stage.written();
    let invoke = |id: &str| json!({"invoke_id": id, "tool_id": "wharf/echo", "input": {}, "parent_call_id": "c-1"});
    stage.say("agent.tool.invoke", &invoke("i-1"));
    stage.say("agent.tool.invoke", &invoke("i-1"));
    assert_eq!(stage.answer()["error"]["code"], "tool.duplicate_call");
    stage.say("agent.tool.invoke", &invoke("i-2"));
    stage.say("agent.tool.invoke", &invoke("i-3"));
    assert_eq!(stage.answer()["payload"]["error"]["code"], "tool.busy");
}

#[test]
fn an_agent_whose_call_could_not_be_taken_does_not_wait_for_ever() {
    let mut stage = AgentStage::working("c-1");
    let now = stage.moment();
    stage.session.invoke(now, invoke("i-1", "c-1")).expect("granted");
    stage.session.ask(now, question("q-1", "c-1")).expect("granted");
    for message in stage.written() {
        let more = json!({"in_reply_to": message["id"],
            "error": {"code": "protocol.unexpected_message", "message": "No."}});
        stage.say_with("core.error", &json!({}), &more);
    }
    let events = stage.events();
    assert!(matches!(&events[0], AgentEvent::InvokeEnded(end)
        if matches!(end.outcome, CallOutcome::Failed(_))));
    assert!(matches!(&events[2], AgentEvent::Answered(answer)
        if answer.status == AnswerStatus::Denied));
}

#[test]
fn r161_a_question_has_one_answer() {
    let mut pair = working();
    let now = pair.moment();
    pair.agent.ask(now, question("q-1", "c-1")).expect("granted");
    assert_eq!(pair.agent.ask(now, question("q-1", "c-1")), Err(SendError::InUse));
    pair.pump();
    let events = pair.core_events();
    assert!(matches!(&events[..], [CoreEvent::Question(question)]
        if question.call_id == call_id("c-1") && question.title == "Which colour?"));
    let blue = json!({"colour": "blue"});
    pair.core.answer(now, answered("q-1", blue.clone())).expect("open");
    let again = pair.core.answer(now, answered("q-1", json!(null)));
    assert_eq!(again, Err(SendError::NotOpen));
    pair.pump();
    let events = pair.agent_events();
    assert!(matches!(&events[..], [AgentEvent::Answered(answer)] if answer.value == Some(blue)));
}

#[test]
fn r161_a_call_that_waits_for_an_answer_does_not_run_out_of_time() {
    let mut stage = CoreStage::ready();
    let mut call = request("c-1");
    call.timeout_ms = Some(5_000);
    stage.session.call(stage.moment(), call).expect("taken");
    stage.pass(4_000);
    stage.say_of_call("agent.question.ask", &ask("q-1", "c-1"));
    stage.say_of_call("agent.question.ask", &ask("q-2", "c-1"));
    stage.events();
    for _ in 0..6 {
        stage.pass(10_000);
        stage.heartbeat("ok");
    }
    stage.session.answer(stage.moment(), answered("q-1", json!({}))).expect("open");
    stage.pass(9_000);
    stage.session.answer(stage.moment(), answered("q-2", json!({}))).expect("open");
    stage.events();
    stage.pass(999);
    assert_eq!(stage.events(), []);
    stage.pass(1);
    assert_eq!(stage.failure(), "tool.timeout");
}

#[test]
fn r161_questions_of_a_call_that_is_over_are_withdrawn() {
    let mut stage = CoreStage::calling("c-1");
    let id = stage.say_of_call("agent.question.ask", &ask("q-1", "c-1"));
    stage.events();
    stage.succeed("c-1");
    let events = stage.events();
    assert_eq!(events[0], CoreEvent::QuestionWithdrawn { ask_id: ask_id("q-1") });
    let answer = stage.answer();
    assert_eq!(answer["in_reply_to"], *id);
    assert_eq!(answer["payload"], json!({"ask_id": "q-1", "status": "cancelled"}));

    stage.say_of_call("agent.question.ask", &ask("q-1", "c-1"));
    assert_eq!(stage.answer()["payload"]["status"], "cancelled", "the call is over");
    stage.say_of_call("agent.question.ask", &ask("q-2", "c-9"));
    assert_eq!(stage.answer()["payload"]["status"], "cancelled");
    assert_eq!(stage.breaches(), [Breach::UnknownCall]);
}

#[test]
fn r161_open_questions_are_limited() {
    let mut stage = CoreStage::calling("c-1");
    for n in 0..33 {
        stage.say_of_call("agent.question.ask", &ask(&format!("q-{n}"), "c-1"));
    }
    assert_eq!(stage.events().len(), 32);
    assert_eq!(stage.answer()["payload"], json!({"ask_id": "q-32", "status": "denied"}));
}

#[test]
fn r162_notices_are_passed_on_up_to_a_limit() {
    let mut pair = working();
    let id = call_id("c-1");
    let now = pair.moment();
    pair.agent.notify(now, Some(&id), NoticeLevel::Warn, "mind the gap").expect("granted");
    pair.agent.notify(now, None, NoticeLevel::Info, "hello").expect("granted");
    let unknown = pair.agent.notify(now, Some(&call_id("c-9")), NoticeLevel::Info, "x");
    assert_eq!(unknown, Err(SendError::NotOpen));
    pair.pump();
    let events = pair.core_events();
    assert!(matches!(&events[..], [CoreEvent::Notice(first), CoreEvent::Notice(_)]
        if first.text == "mind the gap" && first.level == NoticeLevel::Warn));

    for _ in 0..200 {
        pair.agent.notify(now, None, NoticeLevel::Info, "again").expect("granted");
    }
    pair.pump();
    let events = pair.core_events();
    assert_eq!(breaches(&events), [Breach::NoticeFlood], "cut short, not cut off");
    assert_eq!(events.len(), 58 + 1);
    pair.now += 60_000;
    pair.agent.notify(pair.moment(), None, NoticeLevel::Info, "later").expect("granted");
    pair.pump();
    assert!(pair.core_events().iter().any(|event| matches!(event, CoreEvent::Notice(_))));
}

#[test]
fn additions_that_were_not_granted_are_not_even_sent() {
    let mut stage = AgentStage::new(agent_config());
    let mut plain = welcome();
    plain.as_object_mut().expect("an object").remove("capabilities");
    stage.say("core.welcome", &plain);
    let now = stage.moment();
    let refused = Err(SendError::NotGranted);
    assert_eq!(stage.session.invoke(now, invoke("i-1", "c-1")), refused);
    assert_eq!(stage.session.ask(now, question("q-1", "c-1")), refused);
    assert_eq!(stage.session.notify(now, None, NoticeLevel::Info, "x"), refused);
}

#[test]
fn answers_that_nobody_waits_for_are_violations_of_the_core() {
    let mut stage = AgentStage::ready();
    stage.say("core.tool.invoke_result", &json!({"invoke_id": "i-9", "status": "succeeded"}));
    stage.say("core.question.answer", &json!({"ask_id": "q-9", "status": "declined"}));
    let events = stage.events();
    assert_eq!(events.len(), 2);
    assert!(events.iter().all(|event| matches!(event, AgentEvent::Violation(violation)
        if violation.breach == Breach::UnknownCall)));
}

#[test]
fn r159_r161_answers_that_come_after_the_call_has_ended_are_no_violation() {
    let mut pair = working();
    let now = pair.moment();
    pair.agent.invoke(now, invoke("i-1", "c-1")).expect("granted");
    pair.agent.ask(now, question("q-1", "c-1")).expect("granted");
    pair.pump();
    let chunk = Chunk::Text { channel: TextChannel::Stdout, text: "late".to_owned() };
    pair.core.invoke_chunk(now, &invoke_id("i-1"), chunk).expect("open");
    let outcome = CallOutcome::Succeeded(object(json!({})));
    pair.agent.finish(now, &call_id("c-1"), outcome.clone().into()).expect("open");
    pair.pump();
    pair.core.invoke_result(now, &invoke_id("i-1"), outcome).expect("open");
    pair.pump();
    let events = pair.agent_events();
    assert!(events.is_empty(), "nobody waits any more: {events:?}");
}

#[test]
fn r114_a_call_may_have_a_smaller_stream_budget_than_the_session() {
    let mut pair = Pair::ready();
    let now = pair.moment();
    let mut small = request("c-1");
    small.stream_bytes_max = Some(10);
    pair.core.call(now, small).expect("taken");
    let mut large = request("c-2");
    large.stream_bytes_max = Some(u64::MAX);
    pair.core.call(now, large).expect("taken");
    pair.pump();
    for id in ["c-1", "c-2"] {
        let chunk = Chunk::Text { channel: TextChannel::Stdout, text: "x".repeat(11) };
        pair.agent.stream(now, &call_id(id), chunk, false).expect("taken");
    }
    pair.pump();
    let events = pair.core_events();
    let ended = events.iter().find_map(|event| match event {
        CoreEvent::CallEnded { call_id, end } => Some((call_id.to_string(), &end.outcome)),
        _ => None,
    });
    let Some((id, CallOutcome::Failed(fault))) = ended else { panic!("{events:?}") };
    assert_eq!(id, "c-1");
    assert!(fault.is(Code::ToolOutputTooLarge), "{fault}");
    assert!(events.iter().any(|event| matches!(event, CoreEvent::Chunk { .. })), "c-2 goes on");
}
