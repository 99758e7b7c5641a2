//! Whole conversations, byte for byte.
//!
//! `NAME.core.bin` and `NAME.agent.bin` beside the examples of the wire hold everything that each
//! end has written. The bytes are a contract with programs that were built before: when one of
//! these tests fails, the wire has changed.

use std::path::Path;

use serde_json::{Value, json};
use wharf_protocol::Session as _;
use wharf_protocol::agent::{
    Additions, AdmissionRefusal, AgentEvent, CallOutcome, CallReport, CancelCall, InvokeRequest,
};
use wharf_vocab::{Code, Fault, Mode};
use wharf_wire::agent_v1::{
    Actor, AnswerStatus, CallContext, Caller, Chunk, CoreGoodbye, InvokeId, PartyKind,
    QuestionAnswer, QuestionAsk, QuestionId, TextChannel,
};

use super::pair::Pair;
use super::stage::{agent_config, call_id, core_config, object, request, tool, unframe};

#[track_caller]
fn check(name: &str, pair: &Pair) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/testdata/agent_v1");
    for (end, written) in [("core", &pair.from_core), ("agent", &pair.from_agent)] {
        let path = folder.join(format!("{name}.{end}.bin"));
        let golden = std::fs::read(&path).unwrap_or_else(|error| panic!("{name}.{end}: {error}"));
        let (expected, got): (Vec<Value>, Vec<Value>) = (unframe(&golden), unframe(written));
        assert_eq!(got, expected, "{name}.{end}.bin");
        assert!(golden == *written, "{name}.{end}.bin says the same in other bytes");
    }
}

#[test]
fn a_call_with_a_stream() {
    let mut pair = Pair::new(core_config(), agent_config());
    pair.pump();
    pair.core.accept(pair.moment(), Additions::default()).expect("a hello waits");
    pair.pump();
    pair.agent.register(pair.moment(), vec![tool("say")], false).expect("live");
    pair.pump();
    let mut call = request("9b1a2c3d-4e5f-6789-abcd-ef0123456789");
    let id = call.call_id.clone();
    call.input = object(json!({"n": 3, "name": "Grüße, 世界 😀"}));
    call.correlation_id = Some("chat:7".to_owned());
    call.actor = Some(Actor { kind: PartyKind::Human, id: "ada".to_owned(), display: None });
    call.caller = Some(Caller { kind: PartyKind::Human, id: "ada".to_owned() });
    call.context = Some(CallContext { mode: Some(Mode::Real), ..CallContext::default() });
    call.timeout_ms = Some(60_000);
    call.idempotency_key = Some("k-1".to_owned());
    pair.core.call(pair.moment(), call).expect("taken");
    pair.pump();
    pair.pass(1_000);
    let now = pair.moment();
    for chunk in [
        Chunk::Text { channel: TextChannel::Stdout, text: "Hello ".to_owned() },
        Chunk::Status { text: "half way".to_owned(), fraction: Some(0.5) },
        Chunk::Partial { json: object(json!({"text": "Hello"})) },
    ] {
        pair.agent.stream(now, &id, chunk, false).expect("open");
    }
    pair.pump();
    pair.pass(1_000);
    let report = CallReport {
        outcome: CallOutcome::Succeeded(object(json!({"text": "Hello, world"}))),
        cost_micro: Some(300),
        metrics: object(json!({})),
    };
    pair.agent.finish(pair.moment(), &id, report).expect("open");
    pair.pump();
    check("call", &pair);
}

#[test]
fn a_cancel_and_a_goodbye() {
    let mut pair = Pair::new(core_config(), agent_config());
    pair.pump();
    pair.core.accept(pair.moment(), Additions::default()).expect("a hello waits");
    pair.pump();
    pair.agent.register(pair.moment(), vec![tool("say")], false).expect("live");
    pair.pump();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let cancel = CancelCall { reason: Some("enough".to_owned()), deadline_ms: Some(2_000) };
    pair.core.cancel(pair.moment(), &call_id("c-1"), cancel).expect("open");
    pair.pump();
    let fault = Fault::new(Code::ToolCanceled, "The call was canceled.");
    let outcome = CallOutcome::Canceled(fault);
    pair.agent.finish(pair.moment(), &call_id("c-1"), outcome.into()).expect("open");
    pair.core.ping(pair.moment()).expect("live");
    pair.pump();
    pair.pass(10_000);
    let goodbye = CoreGoodbye {
        reason: "core.stopping".to_owned(),
        retry_after_ms: Some(1_000),
        drain_ms: Some(5_000),
    };
    pair.core.goodbye(pair.moment(), goodbye).expect("live");
    pair.pump();
    check("cancel", &pair);
}

#[test]
fn an_agent_that_calls_and_asks() {
    let mut pair = Pair::without_steps();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let now = pair.moment();
    let invoke_id = InvokeId::new("i-1").expect("valid");
    let invoke = InvokeRequest {
        invoke_id: invoke_id.clone(),
        parent_call_id: call_id("c-1"),
        tool_id: "wharf/echo".to_owned(),
        input: object(json!({"text": "hi"})),
        timeout_ms: None,
        idempotency_key: None,
        step: None,
    };
    pair.agent.invoke(now, invoke).expect("granted");
    pair.pump();
    let chunk = Chunk::Text { channel: TextChannel::Log, text: "echoing".to_owned() };
    pair.core.invoke_chunk(now, &invoke_id, chunk).expect("open");
    let output = CallOutcome::Succeeded(object(json!({"text": "hi"})));
    pair.core.invoke_result(now, &invoke_id, output).expect("open");
    pair.pump();
    let ask_id = QuestionId::new("q-1").expect("valid");
    let question = QuestionAsk {
        ask_id: ask_id.clone(),
        call_id: call_id("c-1"),
        title: "Which colour?".to_owned(),
        schema: json!({"type": "object"}),
        deadline_ms: Some(60_000),
    };
    pair.agent.ask(now, question).expect("granted");
    pair.pump();
    let value = Some(json!({"colour": "blue"}));
    let answer = QuestionAnswer { ask_id, status: AnswerStatus::Answered, value, text: None };
    pair.core.answer(now, answer).expect("open");
    pair.pump();
    assert!(pair.agent_events().iter().any(|event| matches!(event, AgentEvent::Answered(_))));
    pair.agent.goodbye(now, "done", 0).expect("live");
    pair.pump();
    check("additions", &pair);
}

#[test]
fn a_refused_agent() {
    let mut pair = Pair::new(core_config(), agent_config());
    pair.pump();
    pair.core.refuse(pair.moment(), AdmissionRefusal::Unauthorized).expect("a hello waits");
    pair.pump();
    assert!(pair.core.is_closed() && pair.agent.is_closed());
    check("refused", &pair);
}
