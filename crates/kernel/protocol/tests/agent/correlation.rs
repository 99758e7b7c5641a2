//! What belongs together stays together.

use serde_json::{Value, json};
use wharf_protocol::agent::{AgentEvent, Breach, CallOutcome};
use wharf_wire::agent_v1::{
    Actor, AnswerStatus, CallContext, Caller, Chunk, NoticeLevel, PartyKind, QuestionAnswer,
    TextChannel,
};

use super::pair::Pair;
use super::stage::{AgentStage, CoreStage, call_id, object, request, unframe};

const ECHO: [&str; 4] = ["request_id", "correlation_id", "causation_id", "traceparent"];

fn echo() -> Value {
    json!({"request_id": "r-9", "correlation_id": "chat:7", "causation_id": "directive:3",
        "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"})
}

#[test]
fn r033_every_call_names_its_request() {
    let mut stage = CoreStage::ready();
    stage.call("c-1");
    assert_eq!(stage.answer()["request_id"], "r-1");
}

#[test]
fn r034_what_a_call_belongs_to_is_told_when_it_is_known() {
    let mut stage = CoreStage::ready();
    let mut of_session = request("c-1");
    of_session.correlation_id = Some("chat:7".to_owned());
    stage.session.call(stage.moment(), of_session).expect("taken");
    assert_eq!(stage.answer()["correlation_id"], "chat:7");
    stage.call("c-2");
    assert!(stage.answer().get("correlation_id").is_none());
}

#[test]
fn r035_every_message_of_a_call_returns_its_ids_unchanged() {
    for sent in [echo(), json!({"request_id": "r-9"}), json!({})] {
        let mut stage = AgentStage::ready();
        let call = json!({"call_id": "c-1", "tool_id": "dev.example.hello/say", "input": {}});
        stage.say_with("core.tool.call", &call, &sent);
        let (now, id) = (stage.moment(), call_id("c-1"));
        let chunk = Chunk::Text { channel: TextChannel::Log, text: "x".to_owned() };
        stage.session.stream(now, &id, chunk, false).expect("open");
        stage.session.notify(now, Some(&id), NoticeLevel::Info, "x").expect("granted");
        stage.say_with("core.tool.cancel", &json!({"call_id": "c-1"}), &sent);
        let outcome = CallOutcome::Succeeded(object(json!({})));
        stage.session.finish(now, &id, outcome.into()).expect("open");
        let written = stage.written();
        assert_eq!(written.len(), 4, "stream, notice, acknowledgement, result");
        for message in written {
            for field in ECHO {
                assert_eq!(message.get(field), sent.get(field), "{}: {field}", message["type"]);
            }
        }
    }
}

#[test]
fn r036_a_broken_echo_is_reported_once_per_call_and_the_result_still_counts() {
    for wrong in [
        json!({}),
        json!({"request_id": "r-2"}),
        json!({"request_id": "r-1", "correlation_id": "made-up"}),
        json!({"request_id": "r-1", "traceparent": "made-up"}),
    ] {
        let mut stage = CoreStage::calling("c-1");
        let chunk = json!({"call_id": "c-1", "seq": 1, "channel": "log", "data": {"text": "x"}});
        stage.say_with("agent.tool.stream", &chunk, &wrong);
        assert_eq!(stage.breaches(), [Breach::Echo], "{wrong}");
        let result = json!({"call_id": "c-1", "status": "succeeded", "output": {}});
        stage.say_with("agent.tool.result", &result, &wrong);
        assert!(matches!(stage.end().1.outcome, CallOutcome::Succeeded(_)));
    }
    let mut stage = CoreStage::calling("c-1");
    stage.succeed("c-1");
    assert_eq!(stage.breaches(), []);
}

#[test]
fn r037_direct_replies_name_what_they_answer() {
    let mut stage = CoreStage::ready();
    for (kind, payload) in [
        ("agent.tools.register", json!({"tools": []})),
        ("agent.tools.unregister", json!({"tool_ids": []})),
        ("agent.heartbeat", json!({})),
    ] {
        let id = stage.say(kind, &payload);
        assert_eq!(stage.answer()["in_reply_to"], *id, "{kind}");
    }
    let mut agent = AgentStage::ready();
    let ping = agent.say("core.ping", &json!({}));
    assert_eq!(agent.answer()["in_reply_to"], *ping);
    let call = agent.call("c-1");
    let outcome = CallOutcome::Succeeded(object(json!({})));
    agent.session.finish(agent.moment(), &call_id("c-1"), outcome.into()).expect("open");
    assert_eq!(agent.answer()["in_reply_to"], *call);
}

#[test]
fn r038_who_is_behind_a_call_is_told() {
    let mut pair = Pair::ready();
    let mut call = request("c-1");
    let actor =
        Actor { kind: PartyKind::Human, id: "ada".to_owned(), display: Some("Ada".to_owned()) };
    call.actor = Some(actor.clone());
    call.caller = Some(Caller { kind: PartyKind::Agent, id: "dev.other".to_owned() });
    pair.core.call(pair.moment(), call).expect("taken");
    pair.pump();
    let events = pair.agent_events();
    let [AgentEvent::Call(call)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(call.actor, Some(actor));
    let sent = unframe(&pair.from_core).pop().expect("the call");
    assert_eq!(sent["actor"], json!({"type": "human", "id": "ada", "display": "Ada"}));
    assert_eq!(sent["payload"]["caller"], json!({"type": "agent", "id": "dev.other"}));
}

#[test]
fn r039_who_is_behind_a_call_changes_nothing_about_it() {
    let mut outcomes = Vec::new();
    for kind in ["human", "agent", "system"] {
        let mut stage = AgentStage::ready();
        let actor = json!({"actor": {"type": kind, "id": "x"}});
        let known = json!({"call_id": "c-1", "tool_id": "dev.example.hello/say", "input": {},
            "caller": {"type": kind, "id": "x"}});
        let unknown = json!({"call_id": "c-2", "tool_id": "dev.example.hello/other", "input": {},
            "caller": {"type": kind, "id": "x"}});
        stage.say_with("core.tool.call", &known, &actor);
        stage.say_with("core.tool.call", &unknown, &actor);
        let taken = stage.events().len();
        outcomes.push((taken, stage.answer()["payload"]["error"]["code"].clone()));
    }
    assert_eq!(outcomes, vec![(1, json!("tool.not_found")); 3]);
}

#[test]
fn context_is_passed_on_as_the_owner_gave_it() {
    let mut pair = Pair::ready();
    let mut call = request("c-1");
    let context = CallContext {
        project_root: Some("/srv/p".to_owned()),
        resource_paths: Some(vec!["a.md".to_owned()]),
        ui: Some(object(json!({"panel": "chat"}))),
        ..CallContext::default()
    };
    call.context = Some(context.clone());
    pair.core.call(pair.moment(), call).expect("taken");
    pair.core.call(pair.moment(), request("c-2")).expect("taken");
    pair.pump();
    let contexts: Vec<_> = pair
        .agent_events()
        .into_iter()
        .map(|event| match event {
            AgentEvent::Call(call) => call.context,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(contexts, [Some(context), None]);
}

#[test]
fn r170_a_trace_is_returned_like_a_request_and_may_be_left_out() {
    let mut stage = CoreStage::ready();
    let mut call = request("c-1");
    call.traceparent = Some("00-a-b-01".to_owned());
    stage.session.call(stage.moment(), call).expect("taken");
    assert_eq!(stage.answer()["traceparent"], "00-a-b-01");
    stage.succeed("c-1");
    assert_eq!(stage.breaches(), [], "a plain peer does not know it");
}

#[test]
fn answers_to_additions_return_the_ids_of_their_question() {
    let mut stage = CoreStage::calling("c-1");
    let ask = json!({"ask_id": "q-1", "call_id": "c-1", "title": "?", "schema": {}});
    let id = stage.say_with("agent.question.ask", &ask, &echo());
    stage.events();
    let ask_id = wharf_wire::agent_v1::QuestionId::new("q-1").expect("valid");
    let status = AnswerStatus::Declined;
    let answer = QuestionAnswer { ask_id, status, value: None, text: None };
    stage.session.answer(stage.moment(), answer).expect("open");
    let written = stage.answer();
    assert_eq!(written["in_reply_to"], *id);
    for field in ECHO {
        assert_eq!(written[field], echo()[field], "{field}");
    }
}
