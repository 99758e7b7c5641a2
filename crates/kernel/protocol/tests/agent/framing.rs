//! Frames, as sessions see them.

use serde_json::json;
use wharf_protocol::agent::{
    Breach, CallOutcome, CoreClose, CoreEvent, HandshakeFailure, OversizePolicy, ReportResult,
    SendError,
};
use wharf_protocol::{Closed, Session as _};
use wharf_wire::agent_v1::{Chunk, Malformed, TextChannel};

use super::pair::Pair;
use super::stage::{
    AgentStage, CoreStage, breaches, call_id, closed, core_config, ends, frame, hello, object,
    request, sent, tool, unframe,
};

const MIB: usize = 1024 * 1024;

#[test]
fn r001_everything_that_is_written_reparses_without_remainder() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let outcome = CallOutcome::Succeeded(object(json!({"text": "é世😀"})));
    pair.agent.finish(pair.moment(), &call_id("c-1"), outcome.clone().into()).expect("open");
    pair.pump();
    assert!(unframe(&pair.from_core).len() >= 3);
    assert!(unframe(&pair.from_agent).len() >= 3);
    let ends = ends(&pair.core_events());
    assert_eq!(ends[0].1.outcome, outcome, "r002: text of every width survives");
}

#[test]
fn r003_a_frame_that_is_no_object_ends_the_session() {
    for body in ["[]", "\"x\"", "7", "null", "{}{}", "{} x"] {
        let mut stage = CoreStage::live();
        stage.receive(&frame(body.as_bytes()));
        let events = stage.events();
        assert!(matches!(closed(&events), Some(CoreClose::Violation(Breach::Malformed(_)))));
        assert_eq!(stage.answer()["error"]["code"], "protocol.malformed");
    }
}

#[test]
fn r004_text_that_is_not_clean_ends_the_session_without_its_bytes() {
    for (body, why) in [
        (&b"\xff{}"[..], Malformed::NotUtf8),
        (b"\xef\xbb\xbf{}", Malformed::ByteOrderMark),
        (b"{\"x\":\"\\ud800\"}", Malformed::LoneSurrogate),
    ] {
        let mut stage = CoreStage::live();
        stage.receive(&frame(body));
        let events = stage.events();
        assert_eq!(breaches(&events), [Breach::Malformed(why)]);
        assert_eq!(closed(&events), Some(CoreClose::Violation(Breach::Malformed(why))));
    }
}

#[test]
fn r005_an_empty_frame_is_no_keep_alive() {
    let mut stage = CoreStage::live();
    stage.receive(&[0, 0, 0, 0]);
    assert_eq!(closed(&stage.events()), Some(CoreClose::Violation(Breach::FrameEmpty)));
}

#[test]
fn r006_a_session_does_not_care_how_bytes_are_cut() {
    let hello = json!({"v": 1, "type": "agent.hello", "id": "x-1", "ts": "2026-01-16T12:00:00Z",
        "payload": hello()});
    let register = json!({"v": 1, "type": "agent.tools.register", "id": "x-2",
        "ts": "2026-01-16T12:00:00Z", "payload": {"tools": [tool("say"), tool("wait")]}});
    let beat = json!({"v": 1, "type": "agent.heartbeat", "id": "x-3",
        "ts": "2026-01-16T12:00:00Z", "payload":
        {"session_id": "s-1", "uptime_ms": 1, "inflight_calls": 0, "status": "ok"}});
    let first = frame(hello.to_string().as_bytes());
    let mut rest = frame(register.to_string().as_bytes());
    rest.extend(frame(beat.to_string().as_bytes()));

    let run = |piece: usize| {
        let mut stage = CoreStage::new(core_config());
        first.chunks(piece).for_each(|piece| stage.receive(piece));
        stage.accept(Default::default());
        rest.chunks(piece).for_each(|piece| stage.receive(piece));
        (stage.events(), stage.written())
    };
    let whole = run(usize::MAX);
    assert_eq!(whole.0.len(), 3, "{:?}", whole.0);
    for piece in [1, 2, 3, 5, 100] {
        assert_eq!(run(piece), whole, "pieces of {piece}");
    }
}

#[test]
fn r007_an_end_inside_a_frame_delivers_nothing_and_is_abnormal() {
    for bytes in [&b"\0\0"[..], b"\0\0\0\x20{\"v\":1"] {
        let mut stage = CoreStage::live();
        stage.receive(bytes);
        stage.session.end(stage.moment(), Closed::ended());
        let abnormal = CoreClose::Disconnected { inside_frame: true };
        assert_eq!(stage.events(), [CoreEvent::Closed(abnormal)]);
    }
    let mut stage = CoreStage::live();
    stage.session.end(stage.moment(), Closed::ended());
    assert_eq!(closed(&stage.events()), Some(CoreClose::Disconnected { inside_frame: false }));
}

#[test]
fn r008_the_largest_frame_passes_in_a_session() {
    let mut stage = CoreStage::calling("c-1");
    let text = "x".repeat(4 * MIB);
    let body = |text: &str| {
        json!({"v": 1, "type": "agent.tool.result", "id": "x-9", "ts": "2026-01-16T12:00:00Z",
            "request_id": "r-1",
            "payload": {"call_id": "c-1", "status": "succeeded", "output": {"t": text}}})
        .to_string()
    };
    let room = 4 * MIB - body("").len();
    let largest = body(&text[..room]);
    assert_eq!(largest.len(), 4 * MIB);
    stage.receive(&frame(largest.as_bytes()));
    assert!(matches!(stage.end().1.outcome, CallOutcome::Succeeded(_)));
}

#[test]
fn r010_an_oversize_frame_gives_exactly_one_report_without_content() {
    let mut stage = CoreStage::live();
    stage.receive(&[0xff, 0xff, 0xff, 0xff]);
    stage.receive(b"more and more");
    let breach = Breach::FrameTooLarge { announced: u64::from(u32::MAX), limit: 4_194_304 };
    let events = stage.events();
    assert_eq!(breaches(&events), [breach]);
    assert_eq!(closed(&events), Some(CoreClose::Violation(breach)));
    assert_eq!(stage.answer()["error"]["code"], "protocol.frame_too_large");
}

#[test]
fn r011_by_policy_an_oversize_frame_is_answered_and_the_session_goes_on() {
    let mut config = core_config();
    config.oversize = OversizePolicy::Reject;
    let mut stage = CoreStage::live_with(config);
    stage.receive(&(5 * MIB as u32).to_be_bytes());
    assert_eq!(stage.answer()["error"]["code"], "protocol.frame_too_large");
    for _ in 0..5 {
        stage.receive(&vec![b'x'; MIB]);
    }
    assert_eq!(stage.breaches().len(), 1);
    stage.heartbeat("ok");
    assert!(matches!(stage.events()[..], [CoreEvent::Heartbeat { .. }]));
}

#[test]
fn r012_a_result_that_fits_no_frame_becomes_a_failure() {
    let mut pair = Pair::ready();
    pair.core.call(pair.moment(), request("c-1")).expect("taken");
    pair.pump();
    let huge = CallOutcome::Succeeded(object(json!({"t": "x".repeat(4 * MIB)})));
    let sent = pair.agent.finish(pair.moment(), &call_id("c-1"), huge.into());
    assert_eq!(sent, Ok(ReportResult::TooLarge));
    pair.pump();
    let ends = ends(&pair.core_events());
    assert!(matches!(&ends[..], [(_, end)] if matches!(&end.outcome,
        CallOutcome::Failed(fault) if fault.code.as_str() == "tool.output_too_large")));
}

#[test]
fn r012_an_agent_keeps_to_the_frame_limit_of_the_welcome_in_both_directions() {
    let mut stage = AgentStage::new(super::stage::agent_config());
    let mut small = super::stage::welcome();
    small["max_frame_bytes"] = json!(2_000);
    stage.say("core.welcome", &small);
    assert_eq!(
        stage.session.register(stage.moment(), vec![tool("say"); 50], false),
        Err(SendError::TooLarge)
    );
    stage.session.register(stage.moment(), vec![tool("say")], false).expect("fits");
    stage.say("core.tools.registered", &json!({"registered": ["dev.example.hello/say"]}));
    stage.call("c-1");
    let chunk = Chunk::Text { channel: TextChannel::Log, text: "x".repeat(2_000) };
    let now = stage.moment();
    assert_eq!(stage.session.stream(now, &call_id("c-1"), chunk, false), Err(SendError::TooLarge));
    let all: Vec<u8> = sent(&mut stage.session);
    assert!(unframe(&all).iter().skip(1).all(|message| message.to_string().len() <= 2_000));

    stage.receive(&2_001_u32.to_be_bytes());
    assert!(stage.session.is_closed());
}

#[test]
fn r013_before_the_welcome_a_frame_has_at_most_64_kib() {
    let mut stage = CoreStage::new(core_config());
    stage.receive(&65_537_u32.to_be_bytes());
    let breach = Breach::FrameTooLarge { announced: 65_537, limit: 65_536 };
    let failure = HandshakeFailure::Breach(breach);
    assert_eq!(stage.events(), [CoreEvent::Closed(CoreClose::Handshake(failure))]);
    assert!(stage.written().is_empty());

    let mut stage = CoreStage::new(core_config());
    let mut large = hello();
    large["padding"] = json!("x".repeat(65_000));
    stage.say("agent.hello", &large);
    assert!(matches!(stage.events()[..], [CoreEvent::Hello(_)]));
}

#[test]
fn r016_messages_take_effect_in_the_order_of_their_arrival() {
    let mut stage = CoreStage::live();
    stage.say("agent.tools.register", &json!({"tools": [tool("say")]}));
    stage.say("agent.tools.unregister", &json!({"tool_ids": ["dev.example.hello/say"]}));
    let refused = stage.session.call(stage.moment(), request("c-1")).expect_err("gone");
    assert_eq!(refused.code.as_str(), "tool.not_found");
    let kinds: Vec<_> = stage.written().iter().map(|m| m["type"].clone()).collect();
    assert_eq!(kinds, ["core.tools.registered", "core.tools.unregistered"]);
}

#[test]
fn r017_answers_are_matched_by_id_and_not_by_position() {
    let mut stage = CoreStage::calling("c-1");
    stage.call("c-2");
    stage.say_of_call(
        "agent.tool.result",
        &json!({"call_id": "c-2", "status": "succeeded", "output": {"n": 2}}),
    );
    stage.say_of_call(
        "agent.tool.result",
        &json!({"call_id": "c-1", "status": "succeeded", "output": {"n": 1}}),
    );
    let ends: Vec<_> =
        ends(&stage.events()).into_iter().map(|(id, end)| (id, end.outcome)).collect();
    let succeeded = |n: u64| CallOutcome::Succeeded(object(json!({"n": n})));
    assert_eq!(ends, [("c-2".to_owned(), succeeded(2)), ("c-1".to_owned(), succeeded(1))]);
}
