use serde_json::json;
use wharf_vocab::{Code, Fault, Timestamp};
use wharf_wire::operator_v1::{CoreMessage, OperatorMessage, Pending};

use super::*;
use crate::{Closed, Incoming, Moment, Outgoing, Session as _};

fn at(ms: u64) -> Moment {
    Moment::new(ms, Timestamp(0))
}

fn ask(req_id: &str) -> CoreMessage {
    CoreMessage::Ask {
        req_id: req_id.to_owned(),
        parent_req_id: None,
        task_id: "ST-1".to_owned(),
        question: json!("Which?"),
        pending: Pending::default(),
    }
}

fn hook(req_id: &str) -> CoreMessage {
    CoreMessage::HookBefore {
        req_id: req_id.to_owned(),
        parent_req_id: None,
        task_id: "ST-1".to_owned(),
        agent: "coder".to_owned(),
        attempt: 1,
        pending: Pending::default(),
    }
}

fn session() -> SeatSession {
    SeatSession::new(SeatLimits::default(), at(0))
}

/// What was sent, as JSON; pings and closes by their names.
fn sent(session: &mut SeatSession) -> Vec<serde_json::Value> {
    let mut sent = Vec::new();
    while let Some(next) = session.poll_send() {
        sent.push(match next {
            Outgoing::Text(text) => serde_json::from_str(&text).expect("JSON"),
            Outgoing::Ping => json!("ping"),
            Outgoing::Bytes(_) => panic!("an operator is sent text"),
            Outgoing::Close { code, .. } => json!({ "close": code }),
        });
    }
    sent
}

/// The next reply.
fn next_reply(session: &mut SeatSession) -> Option<OperatorMessage> {
    std::iter::from_fn(|| session.poll_event()).find_map(|event| match event {
        SeatEvent::Reply(reply) => Some(reply),
        SeatEvent::NoticeTaken(_) => None,
    })
}

/// The next notice that the operator has.
fn next_notice(session: &mut SeatSession) -> Option<String> {
    match session.poll_event()? {
        SeatEvent::NoticeTaken(notice) => Some(notice),
        SeatEvent::Reply(reply) => panic!("{reply:?}"),
    }
}

/// The example files of the wire.
fn examples(folder: &str) -> Vec<(String, serde_json::Value)> {
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/testdata/operator_v1");
    let mut found: Vec<_> = std::fs::read_dir(format!("{base}/{folder}"))
        .expect("the folder is there")
        .map(|entry| {
            let path = entry.expect("readable").path();
            let text = std::fs::read_to_string(&path).expect("readable");
            (path.display().to_string(), serde_json::from_str(&text).expect("JSON"))
        })
        .collect();
    found.sort_by(|a, b| a.0.cmp(&b.0));
    found
}

#[test]
fn o008_every_message_is_sent_as_its_example_and_without_null() {
    for folder in ["core", "seed/core"] {
        for (name, example) in examples(folder) {
            let message: CoreMessage = serde_json::from_value(example.clone()).expect("reads");
            let mut session = session();
            session.send(&message);
            let frames = sent(&mut session);
            assert_eq!(frames[0], example, "{name}");
            let null = |value: &serde_json::Value| value.is_null();
            assert!(!frames[0].as_object().expect("an object").values().any(null), "{name}");
            let pinged = matches!(message, CoreMessage::HookAfter { .. });
            assert_eq!(frames.len(), 1 + usize::from(pinged), "{name}");
        }
    }
}

#[test]
fn o009_every_reply_is_taken_by_the_request_it_answers_and_by_no_other() {
    let asked = |kind: &str| {
        let (_, example) = examples("seed/core")
            .into_iter()
            .find(|(_, example)| example["type"] == kind)
            .expect("an example");
        serde_json::from_value::<CoreMessage>(example).expect("reads")
    };
    let requests = [asked("ask"), asked("hook_before"), asked("spawn")];
    let answers = |reply: &str| match reply {
        "answer" => 0,
        "hook_ack" => 1,
        _ => 2,
    };
    for folder in ["operator", "seed/operator"] {
        for (name, mut reply) in examples(folder) {
            let right = answers(reply["type"].as_str().expect("a type"));
            for (place, request) in requests.iter().enumerate() {
                let mut session = session();
                session.send(request);
                sent(&mut session);
                reply["req_id"] = json!(request.req_id().expect("named"));
                session.receive(at(1), Incoming::Text(&reply.to_string()));
                let taken = next_reply(&mut session);
                assert_eq!(taken.is_some(), place == right, "{name} to {request:?}");
                if let Some(taken) = taken {
                    let read: OperatorMessage =
                        serde_json::from_value(reply.clone()).expect("reads");
                    assert_eq!(taken, read, "{name}");
                }
            }
        }
    }
}

#[test]
fn o014_a_notice_is_taken_once_the_operator_gives_a_sign_of_life_after_it() {
    let notice = |n: u32| CoreMessage::HookAfter {
        req_id: format!("n{n}"),
        parent_req_id: None,
        task_id: "ST-1".to_owned(),
        agent: "coder".to_owned(),
        attempt: n,
        result: json!({}),
        run_id: None,
        redelivered: false,
    };
    let signs: [Incoming<'_>; 3] = [Incoming::Pong, Incoming::Text("oops"), Incoming::Bytes(b"x")];
    for sign in signs {
        let mut session = session();
        session.send(&notice(1));
        session.receive(at(1), sign);
        assert_eq!(next_notice(&mut session), None, "it has not been sent yet");
        assert_eq!(sent(&mut session)[1], json!("ping"), "a sign of life is asked for");
        session.send(&notice(2));
        assert_eq!(next_notice(&mut session), None, "nothing has come back");
        session.receive(at(2), sign);
        assert_eq!(next_notice(&mut session).as_deref(), Some("n1"));
        assert_eq!(next_notice(&mut session), None, "the second has not been sent yet");
    }
}

#[test]
fn o030_what_is_said_of_a_spawn_on_a_later_connection_reaches_its_owner() {
    let mut session = session();
    let ack = r#"{"type":"spawn_ack","req_id":"sp-1","stats":{"cost_micro":7}}"#;
    session.receive(at(1), Incoming::Text(ack));
    assert_eq!(
        next_reply(&mut session).map(|reply| reply.req_id().to_owned()).as_deref(),
        Some("sp-1")
    );
    assert_eq!(sent(&mut session), Vec::<serde_json::Value>::new());
    for n in 0..21 {
        session.unknown(at(n), "sp-1");
    }
    assert_eq!(session.closed(), Some(&Closed::Violations), "whoever guesses is turned away");
}

#[test]
fn o012_what_cannot_be_used_is_told_and_consumes_nothing() {
    for (frame, code) in [
        ("nonsense", "protocol.malformed"),
        ("[]", "protocol.invalid_envelope"),
        (r#"{"type":"dance"}"#, "protocol.unknown_type"),
        (r#"{"type":"answer","req_id":"q1"}"#, "protocol.invalid_envelope"),
        (r#"{"type":"answer","req_id":"q9","value":1}"#, "operator.request_unknown"),
        (r#"{"type":"hook_ack","req_id":"q1","ok":true}"#, "operator.reply_mismatch"),
        (r#"{"type":"spawn_ack","req_id":"q1"}"#, "operator.reply_mismatch"),
    ] {
        let mut session = session();
        session.send(&ask("q1"));
        sent(&mut session);
        session.receive(at(1), Incoming::Text(frame));
        let told = sent(&mut session);
        assert_eq!(told[0]["type"], "error", "{frame}");
        assert_eq!(told[0]["code"], code, "{frame}");
        assert_eq!(next_reply(&mut session), None, "{frame}");
        session.receive(at(2), Incoming::Text(r#"{"type":"answer","req_id":"q1","value":1}"#));
        assert!(next_reply(&mut session).is_some(), "{frame}");
    }
    let mut session = session();
    session.receive(at(1), Incoming::Bytes(b"x"));
    assert_eq!(sent(&mut session)[0]["code"], "protocol.malformed");
}

#[test]
fn o012_more_than_twenty_violations_a_minute_end_the_connection() {
    let mut session = session();
    for n in 0..20 {
        session.receive(at(n), Incoming::Text("x"));
    }
    assert_eq!(session.closed(), None);
    session.receive(at(59_999), Incoming::Text("x"));
    assert_eq!(session.closed(), Some(&Closed::Violations));
    assert_eq!(sent(&mut session).last(), Some(&json!({ "close": 1008 })));
    let mut session = self::session();
    for n in 0..100 {
        session.receive(at(n * 4_000), Incoming::Text("x"));
    }
    assert_eq!(session.closed(), None, "fifteen a minute are borne");
}

#[test]
fn o005_an_equal_reply_is_ignored_and_another_one_is_told() {
    let mut session = session();
    session.send(&hook("h1"));
    sent(&mut session);
    let yes = r#"{"type":"hook_ack","req_id":"h1","ok":true}"#;
    session.receive(at(1), Incoming::Text(yes));
    assert!(next_reply(&mut session).is_some());
    session.taken("h1");
    session.receive(at(2), Incoming::Text(yes));
    assert_eq!((next_reply(&mut session), sent(&mut session)), (None, vec![]));
    session.receive(at(3), Incoming::Text(r#"{"type":"hook_ack","req_id":"h1","ok":false}"#));
    assert_eq!(next_reply(&mut session), None);
    assert_eq!(sent(&mut session)[0]["code"], "operator.already_answered");
}

#[test]
fn o012_a_reply_that_is_refused_leaves_the_request_open() {
    let mut session = session();
    session.send(&ask("q1"));
    sent(&mut session);
    session.receive(at(1), Incoming::Text(r#"{"type":"answer","req_id":"q1","value":1}"#));
    assert!(next_reply(&mut session).is_some());
    session.refused("q1", &Fault::new(Code::AskAnswerInvalid, "It is not text."));
    assert_eq!(sent(&mut session)[0]["code"], "ask.answer_invalid");
    session.receive(at(2), Incoming::Text(r#"{"type":"answer","req_id":"q1","value":"a"}"#));
    assert!(next_reply(&mut session).is_some());
}

#[test]
fn o016_a_request_that_others_answered_is_withdrawn_and_a_late_reply_is_no_fault() {
    let mut session = session();
    session.send(&ask("q1"));
    session.withdraw("q1", "ST-1", "answered elsewhere");
    session.withdraw("q1", "ST-1", "answered elsewhere");
    let frames = sent(&mut session);
    assert_eq!(frames.len(), 2);
    assert_eq!(frames[1]["type"], "cancel");
    for n in 0..50 {
        let late = format!(r#"{{"type":"answer","req_id":"q1","value":{n}}}"#);
        session.receive(at(n), Incoming::Text(&late));
    }
    assert_eq!(session.closed(), None);
    assert_eq!(next_reply(&mut session), None);
}

#[test]
fn o026_an_operator_that_took_a_request_is_told_once_to_stop_what_came_of_it() {
    let mut first = session();
    first.send(&hook("h1"));
    first.receive(at(1), Incoming::Text(r#"{"type":"hook_ack","req_id":"h1","ok":true}"#));
    assert!(next_reply(&mut first).is_some());
    first.taken("h1");
    first.withdraw("h1", "ST-1", "canceled");
    first.withdraw("h1", "ST-1", "canceled");
    let frames = sent(&mut first);
    assert_eq!((frames.len(), &frames[1]["type"]), (2, &serde_json::json!("cancel")));

    let mut later = session();
    later.withdraw("h1", "ST-1", "taken on an earlier connection");
    assert_eq!(sent(&mut later)[0]["reason"], "taken on an earlier connection");
}

#[test]
fn o006_it_pings_and_counts_silence_as_being_away() {
    let mut session = session();
    assert_eq!(session.deadline(), Some(30_000));
    session.tick(at(30_000));
    assert_eq!(sent(&mut session), [json!("ping")]);
    session.receive(at(31_000), Incoming::Pong);
    session.tick(at(60_000));
    session.tick(at(120_999));
    assert_eq!(session.closed(), None);
    session.tick(at(121_000));
    assert_eq!(session.closed(), Some(&Closed::Silent));
    assert_eq!(session.deadline(), None);
}

#[test]
fn o012_an_operator_that_does_not_read_is_dropped() {
    let limits = SeatLimits { queue_bytes_max: 1_000, ..SeatLimits::default() };
    let mut session = SeatSession::new(limits, at(0));
    for n in 0..100 {
        session.send(&ask(&format!("q{n}")));
    }
    assert_eq!(session.closed(), Some(&Closed::NotReading));
    assert_eq!(sent(&mut session), [json!({ "close": 1013 })]);
}

#[test]
fn o005_a_request_is_sent_once_on_a_connection() {
    let mut session = session();
    session.send(&ask("q1"));
    session.send(&ask("q1"));
    assert_eq!(sent(&mut session).len(), 1);
}

#[test]
fn what_is_remembered_is_bounded() {
    let limits = SeatLimits { replies_kept_max: 10, ..SeatLimits::default() };
    let mut session = SeatSession::new(limits, at(0));
    for n in 0..1_000 {
        session.send(&ask(&format!("q{n}")));
        let reply = format!(r#"{{"type":"answer","req_id":"q{n}","value":1}}"#);
        session.receive(at(n), Incoming::Text(&reply));
        next_reply(&mut session);
        session.taken(&format!("q{n}"));
        sent(&mut session);
    }
    assert!(session.remembered() <= 10);
}
