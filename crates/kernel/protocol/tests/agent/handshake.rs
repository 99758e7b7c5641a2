//! From the first byte to the welcome, at both ends.

use serde_json::{Value, json};
use wharf_protocol::Session as _;
use wharf_protocol::agent::{
    Additions, AdmissionRefusal, AgentClose, AgentEvent, Breach, CoreClose, CoreEvent,
    HandshakeFailure, IdempotencyOffer, OversizePolicy, SendError, SessionRules,
};
use wharf_vocab::Code;
use wharf_wire::agent_v1::{IdempotencyKept, Malformed, Sdk};

use super::stage::{
    AgentStage, CoreStage, agent_config, closed, core_config, frame, hello, moment, request, tool,
    welcome,
};

fn without(mut value: Value, field: &str) -> Value {
    value.as_object_mut().expect("an object").remove(field);
    value
}

/// The core's single answer to a hello, and why the session ended.
fn turned_away(payload: &Value) -> (Value, HandshakeFailure) {
    let mut stage = CoreStage::new(core_config());
    stage.say("agent.hello", payload);
    let answer = stage.answer();
    let events = stage.events();
    let [CoreEvent::Closed(CoreClose::Handshake(failure))] = events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(answer["type"], "core.welcome");
    assert_eq!(answer["payload"], json!({}));
    assert_eq!(answer["error"]["code"], failure.code().as_str());
    (answer, failure)
}

#[test]
fn r040_the_first_frame_of_an_agent_is_its_hello() {
    let mut config = agent_config();
    config.idempotency = Some(IdempotencyOffer::Process { kept_ms: 600_000, keys_max: 9 });
    let hello = AgentStage::new(config).answer();
    assert_eq!(hello["type"], "agent.hello");
    assert_eq!(hello["v"], 1);
    let payload = &hello["payload"];
    assert_eq!(payload["session_token"], "token-1");
    assert_eq!(payload["agent_id"], "dev.example.hello");
    assert_eq!(payload["agent_version"], "0.1.0");
    assert_eq!(payload["protocol"]["supported_versions"], json!([1]));
    let capabilities = json!(["tools", "streaming", "cancellation", "idempotency"]);
    assert_eq!(payload["protocol"]["capabilities"], capabilities);
    let promise = json!({"kept_for": "process", "kept_for_ms": 600_000, "keys_max": 9});
    assert_eq!(payload["protocol"]["idempotency"], promise, "r169");
}

#[test]
fn r041_any_other_first_message_ends_the_connection_in_silence() {
    for (kind, payload) in [
        ("agent.tools.register", json!({"tools": []})),
        ("agent.heartbeat", json!({})),
        ("agent.dance", json!({})),
        ("core.welcome", json!({})),
    ] {
        let mut stage = CoreStage::new(core_config());
        stage.say(kind, &payload);
        let failure = CoreClose::Handshake(HandshakeFailure::NotHello);
        assert_eq!(stage.events(), [CoreEvent::Closed(failure)], "{kind}");
        assert!(stage.written().is_empty(), "{kind}");
    }
    let mut stage = CoreStage::new(core_config());
    stage.receive(&frame(b"nonsense"));
    let failure = HandshakeFailure::Breach(Breach::Malformed(Malformed::NotAnObject));
    assert_eq!(stage.events(), [CoreEvent::Closed(CoreClose::Handshake(failure))]);
}

#[test]
fn r042_a_slow_drip_does_not_extend_the_handshake() {
    let timeout = || CoreEvent::Closed(CoreClose::Handshake(HandshakeFailure::Timeout));
    let mut silent = CoreStage::new(core_config());
    assert_eq!(silent.session.deadline(), Some(10_000));
    silent.pass(9_999);
    assert_eq!(silent.events(), []);
    silent.pass(1);
    assert_eq!(silent.events(), [timeout()]);

    let mut dripping = CoreStage::new(core_config());
    dripping.receive(&60_000_u32.to_be_bytes());
    for _ in 0..99 {
        dripping.pass(100);
        dripping.receive(b" ");
        assert_eq!(dripping.session.deadline(), Some(10_000));
    }
    assert_eq!(dripping.events(), []);
    dripping.now += 100;
    dripping.receive(b" ");
    assert_eq!(dripping.events(), [timeout()], "also without a wake-up");
}

#[test]
fn r043_a_hello_that_is_accepted_gets_one_complete_welcome() {
    let mut stage = CoreStage::new(core_config());
    let mut plain = hello();
    plain["protocol"]["capabilities"] = json!(["tools"]);
    let id = stage.say("agent.hello", &plain);
    assert!(stage.written().is_empty(), "nothing before the owner has decided");
    stage.accept(Additions::ALL);
    let answer = stage.answer();
    assert_eq!(answer["type"], "core.welcome");
    assert_eq!(answer["in_reply_to"], *id);
    assert_eq!(
        answer["payload"],
        json!({
            "accepted_version": 1, "session_id": "s-1", "heartbeat_interval_ms": 10_000,
            "max_frame_bytes": 4_194_304,
            "server": {"core_version": "0.1.0", "instance_id": "node-1"},
        }),
        "a plain agent sees a plain welcome"
    );
    assert_eq!(stage.session.accept(moment(0), Additions::ALL), Err(SendError::NotLive));
}

#[test]
fn r044_what_is_pipelined_behind_a_hello_waits_for_the_decision() {
    let register = json!({"tools": [tool("say")]});
    let mut refused = CoreStage::new(core_config());
    refused.say("agent.hello", &hello());
    refused.say("agent.tools.register", &register);
    assert!(!refused.session.wants_input());
    assert!(matches!(refused.events()[..], [CoreEvent::Hello(_)]));
    refused.session.refuse(moment(0), AdmissionRefusal::Unauthorized).expect("a hello waits");
    assert_eq!(refused.events().len(), 1, "only the end");
    assert_eq!(refused.answer()["type"], "core.welcome");
    assert_eq!(refused.session.tools().count(), 0);

    let mut accepted = CoreStage::new(core_config());
    accepted.say("agent.hello", &hello());
    accepted.say("agent.tools.register", &register);
    accepted.events();
    accepted.accept(Additions::default());
    assert!(matches!(accepted.events()[..], [CoreEvent::ToolsRegistered { .. }]));
}

#[test]
fn r044_who_floods_an_undecided_core_is_cut_off() {
    let mut stage = CoreStage::new(core_config());
    stage.say("agent.hello", &hello());
    for _ in 0..16 {
        stage.receive(&[b'x'; 16 * 1024]);
    }
    let failure = CoreClose::Handshake(HandshakeFailure::Flood);
    assert_eq!(closed(&stage.events()), Some(failure));
}

#[test]
fn r045_every_refused_token_gets_the_same_answer() {
    let mut stage = CoreStage::new(core_config());
    let id = stage.say("agent.hello", &hello());
    stage.session.refuse(moment(0), AdmissionRefusal::Unauthorized).expect("a hello waits");
    let refused = stage.answer();
    assert_eq!(refused["in_reply_to"], *id);
    assert_eq!(refused["error"]["code"], "protocol.unauthorized");
    assert_eq!(refused["error"]["retryable"], false);
    let failure = CoreClose::Handshake(HandshakeFailure::Refused(AdmissionRefusal::Unauthorized));
    assert_eq!(closed(&stage.events()), Some(failure));

    let (missing, _) = turned_away(&without(hello(), "session_token"));
    assert_eq!(missing["error"], refused["error"], "the answer does not say what was wrong");
}

#[test]
fn r046_a_missing_token_is_refused_without_asking_the_owner() {
    for token in [json!(""), json!(null), json!(7), json!({})] {
        let mut payload = hello();
        payload["session_token"] = token;
        assert_eq!(turned_away(&payload).1, HandshakeFailure::NoToken);
    }
    let (answer, failure) = turned_away(&without(hello(), "session_token"));
    assert_eq!(failure, HandshakeFailure::NoToken);
    assert_eq!(answer["error"]["code"], "protocol.unauthorized");
}

#[test]
fn other_refusals_are_told_apart() {
    for (refusal, code) in [
        (AdmissionRefusal::Conflict, "protocol.session_conflict"),
        (AdmissionRefusal::ManifestDrift, "protocol.unauthorized"),
    ] {
        let mut stage = CoreStage::new(core_config());
        stage.say("agent.hello", &hello());
        stage.session.refuse(moment(0), refusal).expect("a hello waits");
        assert_eq!(stage.answer()["error"]["code"], code);
        assert!(stage.session.is_closed());
    }
}

#[test]
fn r056_an_odd_version_is_worth_a_warning_and_a_missing_one_a_refusal() {
    for (version, is_semver) in [("0.1.0", true), ("2026-01", false)] {
        let mut payload = hello();
        payload["agent_version"] = json!(version);
        let mut stage = CoreStage::new(core_config());
        stage.say("agent.hello", &payload);
        let events = stage.events();
        let [CoreEvent::Hello(hello)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(hello.agent_version_is_semver, is_semver);
    }
    let (answer, failure) = turned_away(&without(hello(), "agent_version"));
    assert_eq!(failure, HandshakeFailure::InvalidHello);
    assert!(answer["error"]["message"].as_str().expect("text").contains("agent_version"));
}

#[test]
fn r057_without_a_common_version_there_is_no_session() {
    for versions in [json!([2]), json!([]), json!([0, -1, 99])] {
        let mut payload = hello();
        payload["protocol"]["supported_versions"] = versions;
        assert_eq!(turned_away(&payload).1, HandshakeFailure::Version);
    }
    let mut payload = hello();
    payload["protocol"].as_object_mut().expect("an object").remove("supported_versions");
    assert_eq!(turned_away(&payload).1.code(), Code::ProtocolUnsupportedVersion);
    assert_eq!(turned_away(&without(hello(), "protocol")).1, HandshakeFailure::Version);

    let mut stage = CoreStage::new(core_config());
    stage.say_with("agent.hello", &hello(), &json!({"v": 2}));
    assert_eq!(stage.answer()["error"]["code"], "protocol.unsupported_version");
}

#[test]
fn r058_the_highest_common_version_is_taken() {
    for versions in [json!([1, 2]), json!([2, 1, 0]), json!([1, 1])] {
        let mut payload = hello();
        payload["protocol"]["supported_versions"] = versions;
        let mut stage = CoreStage::new(core_config());
        stage.say("agent.hello", &payload);
        stage.accept(Additions::default());
        assert_eq!(stage.answer()["payload"]["accepted_version"], 1);
    }
}

#[test]
fn r059_unknown_capabilities_and_a_missing_sdk_are_no_problem() {
    let mut payload = hello();
    payload["protocol"]["capabilities"] = json!(["telepathy", "tools", "ask", "idempotency"]);
    payload["protocol"]["idempotency"] = json!({"kept_for": "24h"});
    let mut stage = CoreStage::new(core_config());
    stage.say("agent.hello", &payload);
    let events = stage.events();
    let [CoreEvent::Hello(hello)] = &events[..] else { panic!("{events:?}") };
    assert_eq!(hello.sdk, None);
    assert_eq!(hello.additions, Additions { ask: true, ..Additions::default() });
    let promise = hello.idempotency.expect("promised");
    assert_eq!((promise.kept_for, promise.kept_for_ms), (IdempotencyKept::Day, None), "r169");
    stage.accept(Additions::ALL);
    assert_eq!(stage.answer()["payload"]["capabilities"], json!(["ask"]));
}

#[test]
fn r059_nothing_in_what_is_only_shown_refuses_a_hello() {
    let sdk = |name: &str, version: &str| Some(Sdk { name: name.into(), version: version.into() });
    for (given, shown) in [
        (json!({"name": "elixir"}), sdk("elixir", "")),
        (json!({"version": "1.0.0"}), sdk("", "1.0.0")),
        (json!({"name": 7, "version": ["x"]}), sdk("", "")),
        (json!({}), sdk("", "")),
        (json!("elixir"), None),
        (json!(null), None),
    ] {
        let mut payload = hello();
        payload["sdk"] = given.clone();
        let mut stage = CoreStage::new(core_config());
        stage.say("agent.hello", &payload);
        let events = stage.events();
        let [CoreEvent::Hello(hello)] = &events[..] else { panic!("{given}: {events:?}") };
        assert_eq!(hello.sdk, shown, "{given}");
    }
}

#[test]
fn r011_r149_what_holds_for_one_agent_is_said_before_it_is_let_in() {
    let mut stage = CoreStage::new(core_config());
    stage.say("agent.hello", &hello());
    stage.session.set_rules(SessionRules {
        frame_bytes_max: 1_000,
        calls_open_max: 1,
        oversize: OversizePolicy::Reject,
        close_on_unknown_type: true,
    });
    stage.accept(Additions::ALL);
    stage.events();
    assert_eq!(stage.answer()["payload"]["max_frame_bytes"], 1_000);
    stage.say("agent.tools.register", &json!({"tools": [tool("say")]}));
    stage.events();
    stage.written();
    stage.call("c-1");
    let refused = stage.session.call(stage.moment(), request("c-2")).expect_err("one at a time");
    assert!(refused.is(Code::ToolBusy), "{refused}");
    stage.say("agent.notice", &json!({"level": "info", "text": "x".repeat(1_000)}));
    let large = |breach: &Breach| matches!(breach, Breach::FrameTooLarge { limit: 1_000, .. });
    assert!(stage.breaches().iter().all(large), "answered, and the session goes on");
    assert!(stage.session.is_live());
    stage.say("agent.dance", &json!({}));
    assert!(stage.session.is_closed(), "a strict core takes no unknown type");
}

#[test]
fn r060_a_second_hello_ends_the_session() {
    let mut stage = CoreStage::live();
    stage.say("agent.hello", &hello());
    assert_eq!(stage.answer()["error"]["code"], "protocol.unexpected_message");
    assert_eq!(closed(&stage.events()), Some(CoreClose::Violation(Breach::Unexpected)));
}

#[test]
fn r061_a_welcome_with_an_error_ends_the_agents_session_for_good() {
    for payload in [json!({}), welcome()] {
        let mut stage = AgentStage::new(agent_config());
        let error = json!({"error": {"code": "protocol.unauthorized", "message": "No."}});
        stage.say_with("core.welcome", &payload, &error);
        let events = stage.events();
        let [AgentEvent::Closed(why @ AgentClose::Refused(fault))] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(fault.is(Code::ProtocolUnauthorized));
        assert!(!why.is_orderly(), "the process ends with a failure");
        assert!(!format!("{events:?}").contains("token-1"));
    }
}

#[test]
fn r062_a_welcome_that_cannot_be_lived_with_ends_the_agents_session() {
    for (field, value) in [
        ("accepted_version", json!(2)),
        ("accepted_version", json!(0)),
        ("heartbeat_interval_ms", json!(0)),
        ("max_frame_bytes", json!(0)),
        ("session_id", json!("")),
    ] {
        let mut stage = AgentStage::new(agent_config());
        let mut odd = welcome();
        odd[field] = value;
        stage.say("core.welcome", &odd);
        assert_eq!(stage.events(), [AgentEvent::Closed(AgentClose::BadWelcome)], "{field}");
    }
    let mut stage = AgentStage::new(agent_config());
    stage.say("core.ping", &json!({}));
    assert_eq!(stage.events(), [AgentEvent::Closed(AgentClose::BadWelcome)]);
}

#[test]
fn an_agent_does_not_wait_for_its_welcome_for_ever() {
    let mut stage = AgentStage::new(agent_config());
    stage.pass(9_999);
    assert_eq!(stage.events(), []);
    stage.pass(1);
    assert_eq!(stage.events(), [AgentEvent::Closed(AgentClose::WelcomeTimeout)]);
}
