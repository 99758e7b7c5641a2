//! Which tools an agent offers.

use serde_json::{Value, json};
use wharf_protocol::agent::{Additions, CallOutcome, CoreEvent, CoreSession};
use wharf_protocol::{Closed, Incoming, Moment, Session as _};
use wharf_vocab::Code;

use super::pair::Pair;
use super::stage::{
    CoreStage, call_id, core_config, ends, frame, hello, moment, object, request, sent, tool,
    unframe,
};

fn say() -> Value {
    serde_json::to_value(tool("say")).expect("JSON")
}

fn with(field: &str, value: Value) -> Value {
    let mut tool = say();
    tool[field] = value;
    tool
}

/// Registers tools; returns what was taken and the code of each rejection.
#[track_caller]
fn register(stage: &mut CoreStage, tools: &Value) -> (Vec<String>, Vec<(String, String)>) {
    register_payload(stage, &json!({"tools": tools}))
}

#[track_caller]
fn register_payload(
    stage: &mut CoreStage,
    payload: &Value,
) -> (Vec<String>, Vec<(String, String)>) {
    let id = stage.say("agent.tools.register", payload);
    let answer = stage.answer();
    assert_eq!(answer["type"], "core.tools.registered");
    assert_eq!(answer["in_reply_to"], *id);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let taken = answer["payload"]["registered"].as_array().expect("a list");
    let rejected = answer["payload"]["rejected"].as_array().cloned().unwrap_or_default();
    (
        taken.iter().map(text).collect(),
        rejected
            .iter()
            .map(|tool| (text(&tool["tool_id"]), text(&tool["error"]["code"])))
            .collect(),
    )
}

#[test]
fn r068_a_tool_needs_no_more_than_four_fields() {
    let mut pair = Pair::ready();
    pair.agent.register(pair.moment(), vec![tool("more")], false).expect("live");
    pair.pump();
    let sent = unframe(&pair.from_agent).pop().expect("the registration");
    let mut fields: Vec<&String> =
        sent["payload"]["tools"][0].as_object().expect("an object").keys().collect();
    fields.sort();
    assert_eq!(fields, ["description", "input_schema", "name", "tool_id"]);
    assert!(pair.core.tools().any(|id| id == "dev.example.hello/more"));
}

#[test]
fn r069_each_registration_has_one_answer_and_only_what_it_names_can_be_called() {
    let mut stage = CoreStage::live();
    let refused = stage.session.call(stage.moment(), request("c-1")).expect_err("too early");
    assert_eq!(refused.code.as_str(), "tool.not_found");
    assert!(stage.written().is_empty(), "nothing was sent");
    let (taken, rejected) = register(&mut stage, &json!([say()]));
    assert_eq!(taken, ["dev.example.hello/say"]);
    assert!(rejected.is_empty());
    stage.call("c-1");
    let events = stage.events();
    assert!(matches!(&events[..], [CoreEvent::ToolsRegistered { added, removed, rejected }]
        if added.len() == 1 && removed.is_empty() && rejected.is_empty()));
}

#[test]
fn r070_a_bad_id_is_rejected_by_itself() {
    let mut stage = CoreStage::live();
    let tools = json!([
        with("tool_id", json!("say")),
        with("tool_id", json!("dev.example.hello/")),
        with("tool_id", json!("dev.other/say")),
        {"tool_id": "dev.example.hello/x", "name": 7},
        "nonsense",
        say(),
    ]);
    let (taken, rejected) = register(&mut stage, &tools);
    assert_eq!(taken, ["dev.example.hello/say"]);
    let codes: Vec<&str> = rejected.iter().map(|(_, code)| code.as_str()).collect();
    let invalid = "tool.schema_invalid";
    assert_eq!(codes, [invalid, invalid, "permission.denied", invalid, invalid]);
    assert_eq!(rejected[2].0, "dev.other/say");
}

#[test]
fn r071_id_and_name_agree_and_keep_to_their_alphabet() {
    let named = |name: &str| {
        let mut tool = with("name", json!(name));
        tool["tool_id"] = json!(format!("dev.example.hello/{name}"));
        tool
    };
    for name in ["a", "A.b-c_9", &"n".repeat(128)] {
        let (taken, _) = register(&mut CoreStage::live(), &json!([named(name)]));
        assert_eq!(taken.len(), 1, "{name}");
    }
    for name in ["", "a b", "a/b", "ä", "a@1", &"n".repeat(129)] {
        let (taken, rejected) = register(&mut CoreStage::live(), &json!([named(name)]));
        assert!(taken.is_empty(), "{name}");
        assert_eq!(rejected[0].1, "tool.schema_invalid", "{name}");
    }
    let (taken, _) = register(&mut CoreStage::live(), &json!([with("name", json!("other"))]));
    assert!(taken.is_empty());
}

#[test]
fn r072_a_schema_that_is_none_is_rejected() {
    for schema in [json!(null), json!([]), json!("object"), json!(true)] {
        let tool = with("input_schema", schema);
        let (_, rejected) = register(&mut CoreStage::live(), &json!([tool]));
        assert_eq!(rejected[0].1, "tool.schema_invalid");
    }
    let tool = with("output_schema", json!([]));
    let (_, rejected) = register(&mut CoreStage::live(), &json!([tool]));
    assert_eq!(rejected[0].1, "tool.schema_invalid");
}

#[test]
fn r072_the_owner_says_whether_a_schema_is_valid() {
    let now: Moment = moment(0);
    let not_strict = |schema: &Value| match schema["type"].as_str() {
        Some("nonsense") => Err(Code::ToolSchemaInvalid),
        Some("dear") => Err(Code::ToolSchemaTooLarge),
        _ => Ok(()),
    };
    let mut session = CoreSession::new(now, core_config(), not_strict);
    let message = |kind: &str, id: &str, payload: Value| {
        let text = json!({"v": 1, "type": kind, "id": id, "ts": "2026-01-16T12:00:00Z",
            "payload": payload});
        frame(text.to_string().as_bytes())
    };
    session.receive(now, Incoming::Bytes(&message("agent.hello", "x-1", hello())));
    session.accept(now, Additions::default()).expect("a hello waits");
    let bad = with("input_schema", json!({"type": "nonsense"}));
    let dear = with("output_schema", json!({"type": "dear"}));
    session.receive(
        now,
        Incoming::Bytes(&message("agent.tools.register", "x-2", json!({"tools": [bad, dear]}))),
    );
    let written: Vec<u8> = sent(&mut session);
    let answer = unframe(&written).pop().expect("an answer");
    let rejected = &answer["payload"]["rejected"];
    assert_eq!(rejected[0]["error"]["code"], "tool.schema_invalid");
    assert_eq!(rejected[1]["error"]["code"], "tool.schema_too_large");
}

#[test]
fn size_and_references_are_limited_in_a_session() {
    for (schema, code) in [
        (json!({"description": "x".repeat(70_000)}), "tool.schema_too_large"),
        (json!({"$ref": "https://example.dev/s"}), "tool.schema_invalid"),
        (json!({"$ref": "file:///etc/passwd"}), "tool.schema_invalid"),
    ] {
        let tool = with("input_schema", schema);
        let (_, rejected) = register(&mut CoreStage::live(), &json!([tool]));
        assert_eq!(rejected[0].1, code);
    }
}

#[test]
fn r075_a_second_definition_is_a_conflict() {
    let mut stage = CoreStage::live();
    let (taken, rejected) = register(&mut stage, &json!([say(), say()]));
    assert_eq!(taken.len(), 1);
    assert_eq!(rejected[0].1, "tool.conflict", "twice in one message");
    let other = with("description", json!("Something else."));
    let (taken, rejected) = register(&mut stage, &json!([other]));
    assert!(taken.is_empty());
    assert_eq!(rejected[0].1, "tool.conflict", "later and different");
    stage.call("c-1");
}

#[test]
fn r076_the_same_definition_again_and_none_at_all_are_fine() {
    let mut stage = CoreStage::live();
    register(&mut stage, &json!([say()]));
    let (taken, rejected) = register(&mut stage, &json!([say()]));
    assert_eq!(taken, ["dev.example.hello/say"]);
    assert!(rejected.is_empty());
    let (taken, rejected) = register(&mut stage, &json!([]));
    assert!(taken.is_empty() && rejected.is_empty());
    stage.call("c-1");
}

#[test]
fn r077_replacing_drops_what_is_not_named_and_lets_calls_finish() {
    let mut stage = CoreStage::calling("c-1");
    let wait = with("description", json!("Waits better."));
    let mut wait = wait;
    wait["tool_id"] = json!("dev.example.hello/wait");
    wait["name"] = json!("wait");
    let payload = json!({"tools": [wait], "replace": true});
    let (taken, rejected) = register_payload(&mut stage, &payload);
    assert_eq!(taken, ["dev.example.hello/wait"]);
    assert!(rejected.is_empty());
    let events = stage.events();
    assert!(
        matches!(&events[..], [CoreEvent::ToolsRegistered { added, removed, .. }]
        if added.len() == 1 && *removed == ["dev.example.hello/say"]),
        "{events:?}"
    );
    let refused = stage.session.call(stage.moment(), request("c-2")).expect_err("dropped");
    assert_eq!(refused.code.as_str(), "tool.not_found");
    stage.succeed("c-1");
    assert_eq!(ends(&stage.events()).len(), 1);
    register_payload(&mut stage, &payload);
    let events = stage.events();
    assert!(
        matches!(&events[..], [CoreEvent::ToolsRegistered { added, removed, .. }]
        if added.is_empty() && removed.is_empty()),
        "the same again is no news"
    );
}

#[test]
fn r078_what_is_beyond_the_limit_is_rejected() {
    let mut stage = CoreStage::live();
    let tools: Vec<Value> =
        (0..1_030).map(|n| serde_json::to_value(tool(&format!("t{n}"))).expect("JSON")).collect();
    let (taken, rejected) = register(&mut stage, &json!(tools));
    assert_eq!(taken.len(), 1_024);
    assert_eq!(rejected.len(), 6);
    assert!(rejected.iter().all(|(_, code)| code == "tool.limit"));
}

#[test]
fn r078_a_flood_of_nonsense_gets_one_answer_of_bounded_size() {
    let mut stage = CoreStage::live();
    let nonsense = vec![json!({}); 100_000];
    let id = stage.say("agent.tools.register", &json!({"tools": nonsense}));
    let answer = stage.answer();
    assert_eq!(answer["in_reply_to"], *id);
    assert_eq!(answer["error"]["code"], "tool.limit");
    assert!(answer.to_string().len() < 1_000_000);
}

#[test]
fn r079_a_rejection_does_not_echo_the_schema() {
    let mut stage = CoreStage::live();
    let schema = json!({"$ref": "canary://x", "description": "canary"});
    stage.say("agent.tools.register", &json!({"tools": [with("input_schema", schema)]}));
    let answer = stage.answer();
    let rejected = &answer["payload"]["rejected"][0];
    assert_eq!(rejected["tool_id"], "dev.example.hello/say");
    assert!(rejected["error"]["message"].is_string());
    assert!(!answer.to_string().contains("canary"));
}

#[test]
fn r081_unregistering_removes_own_tools_and_ignores_the_rest() {
    let mut stage = CoreStage::ready();
    let ids = json!({"tool_ids": ["dev.example.hello/say", "dev.other/x", "nonsense"]});
    let id = stage.say("agent.tools.unregister", &ids);
    let answer = stage.answer();
    assert_eq!(answer["in_reply_to"], *id);
    assert_eq!(answer["payload"], json!({"unregistered": ["dev.example.hello/say"]}));
    let removed = vec!["dev.example.hello/say".to_owned()];
    assert_eq!(stage.events(), [CoreEvent::ToolsUnregistered { removed }]);
    assert_eq!(stage.session.tools().collect::<Vec<_>>(), ["dev.example.hello/wait"]);
}

#[test]
fn r082_the_end_of_a_session_takes_its_tools_away() {
    let mut stage = CoreStage::ready();
    stage.session.end(stage.moment(), Closed::ended());
    assert_eq!(stage.session.tools().count(), 0);
    let refused = stage.session.call(stage.moment(), request("c-1")).expect_err("gone");
    assert_eq!(refused.code.as_str(), "tool.unavailable");
}

#[test]
fn r090_an_agent_refuses_tools_that_it_does_not_offer() {
    let mut pair = Pair::ready();
    pair.agent.unregister(pair.moment(), &["dev.example.hello/say".to_owned()]).expect("live");
    // The call crosses the message that takes the tool back.
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let ends = ends(&pair.core_events());
    assert!(matches!(&ends[..], [(_, end)] if matches!(&end.outcome,
        CallOutcome::Failed(fault) if fault.code.as_str() == "tool.not_found")));
    assert_eq!(pair.agent.open_calls().count(), 0);

    pair.agent.register(pair.moment(), vec![tool("wait")], true).expect("live");
    pair.pump();
    let mut wait = request("c-2");
    wait.tool_id = "dev.example.hello/wait".to_owned();
    pair.core.call(pair.moment(), wait).expect("taken");
    pair.pump();
    let outcome = CallOutcome::Succeeded(object(json!({})));
    pair.agent.finish(pair.moment(), &call_id("c-2"), outcome.into()).expect("open");
}
