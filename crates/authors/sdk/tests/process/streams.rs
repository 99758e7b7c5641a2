//! What a call says before it ends.

use serde_json::json;
use wharf_protocol::agent::CoreEvent;
use wharf_sdk::{Actor, PartyKind};
use wharf_wire::agent_v1::{AnswerStatus, Chunk, QuestionAnswer, TextChannel};

use crate::tools::joined;

#[test]
fn r107_every_channel_arrives_in_order_with_cost_and_figures() {
    let (mut core, ..) = joined();
    core.call_with("s", "show", &json!({}), |request| {
        request.correlation_id = Some("mission-7".to_owned());
        let (kind, id) = (PartyKind::Human, "ada".to_owned());
        request.actor = Some(Actor { kind, id, display: None });
    });
    let end = core.end("s");
    assert_eq!((end.cost_micro, &end.metrics["tokens"]), (42, &json!(7)));
    assert!(end.started_at.is_some() && end.finished_at.is_some());
    let text = |channel, text: &str| Chunk::Text { channel, text: text.to_owned() };
    let status = |text: &str, fraction| Chunk::Status { text: text.to_owned(), fraction };
    let json = json!({"n": 1}).as_object().expect("an object").clone();
    let expected = [
        text(TextChannel::Stdout, "out"),
        text(TextChannel::Stderr, "err"),
        text(TextChannel::Log, "log"),
        status("half", Some(0.5)),
        status("beyond", Some(1.0)),
        Chunk::Partial { json },
    ];
    assert_eq!(core.chunks("s"), expected);
    let facts = json!({"mode": "Real", "correlation": "mission-7", "actor": "ada"});
    assert_eq!(core.output("s"), facts);
    core.assert_flawless();
}

#[test]
fn r113_a_tool_that_says_too_much_is_cut_and_still_ends_well() {
    let (mut core, ..) = joined();
    core.call("c", "chatter", &json!({"n": 9 * 1024}));
    core.output("c");
    let chunks = core.chunks("c");
    let bytes: u64 = chunks.iter().map(Chunk::output_bytes).sum();
    assert!((7 << 20..=8 << 20).contains(&bytes), "{bytes}");
    assert!(
        matches!(chunks.last(), Some(Chunk::Status { text, .. }) if text.contains("cut")),
        "the cut is marked"
    );
    core.assert_flawless();
}

#[test]
fn r161_a_question_waits_for_its_answer() {
    let (mut core, ..) = joined();
    for (call_id, status, value) in [
        ("yes", AnswerStatus::Answered, Some(json!({"ok": true}))),
        ("denied", AnswerStatus::Denied, None),
        ("unfit", AnswerStatus::Answered, Some(json!({"ok": "canary"}))),
    ] {
        core.call(call_id, "ask", &json!({}));
        let question = core.wait("question", |event| match event {
            CoreEvent::Question(question) => {
                (question.call_id.as_str() == call_id).then(|| question.clone())
            }
            _ => None,
        });
        assert_eq!((question.title.as_str(), question.deadline_ms), ("Go on?", Some(60_000)));
        assert_eq!(question.schema["required"], json!(["ok"]));
        let answer = QuestionAnswer { ask_id: question.ask_id, status, value, text: None };
        core.session.answer(core.now(), answer).expect("it is open");
    }
    assert_eq!(core.output("yes"), json!({"n": 1}));
    assert_eq!(core.failure("denied").message, "true");
    let unfit = core.failure("unfit").message;
    assert!(unfit.contains("ok") && !unfit.contains("canary"), "{unfit}");
    let notices = core.seen.iter().filter(|event| matches!(event, CoreEvent::Notice(_)));
    assert_eq!(notices.count(), 3);
    core.assert_flawless();
}

#[test]
fn r018_both_ends_can_write_large_frames_at_once() {
    let (mut core, ..) = joined();
    // The agent streams more than a socket holds and is not read, while it is sent more than a
    // socket holds: the calls can be written only because it reads all the same.
    core.call("c", "chatter", &json!({"n": 4 * 1024}));
    let padding = "z".repeat(3 << 20);
    for n in 0..4_u32 {
        core.call(&format!("d{n}"), "double", &json!({"n": n, "padding": padding}));
    }
    for n in 0..4_u32 {
        assert_eq!(core.output(&format!("d{n}")), json!({"n": n * 2}));
    }
    core.output("c");
    let bytes: u64 = core.chunks("c").iter().map(Chunk::output_bytes).sum();
    assert_eq!(bytes, 4 << 20);
    core.assert_flawless();
}

#[test]
fn r151_what_a_call_holds_is_not_shown_by_what_a_handler_may_print() {
    let (mut core, ..) = joined();
    core.call_with("i", "debug", &json!({"text": "canary"}), |request| {
        request.idempotency_key = Some("canary".to_owned());
    });
    let shown = core.output("i")["shown"].to_string();
    assert!(shown.contains("Cx") && !shown.contains("canary"), "{shown}");
}

#[test]
fn r165_a_cost_is_told_as_it_is_spent() {
    let (mut core, _shared, _running) = joined();
    core.call("c", "show", &json!({}));
    assert_eq!(core.end("c").cost_micro, 42);
    let told = core.seen.iter().filter_map(|event| match event {
        CoreEvent::Cost { so_far_micro, .. } => Some(*so_far_micro),
        _ => None,
    });
    assert_eq!(told.collect::<Vec<_>>(), [40, 42], "before the result");
    core.assert_flawless();
}
