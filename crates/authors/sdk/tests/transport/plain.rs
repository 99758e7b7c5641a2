//! Peers that know the plain protocol only, and peers that are careless with it.

use serde_json::{Value, json};
use wharf_sdk::builtin::{Answer, ELICIT, NOTIFY, Notice, Prompt, SAMPLE, Said};
use wharf_sdk::{Code, Cx, Scope, builtin, operative};

use crate::carrier::{options, soon, until};
use crate::peer::Peer;
use crate::tools::*;

fn text(text: &str) -> Text {
    Text { text: text.to_owned() }
}

fn request(id: &str, tool: &str, payload: impl Into<Value>) -> Value {
    let payload = payload.into();
    let inner = json!({"id": id, "kind": "elicit", "type": tool, "payload": payload});
    json!({"type": "request", "payload": inner})
}

#[tokio::test]
async fn k023_a_strict_peer_understands_every_call() {
    let (mut peer, link) = Peer::listening(options()).await;
    assert!(!link.is_extended());
    let scope = Scope::root().with_transport(link);
    let mut call = Box::pin(COUNT.call(&scope, 2));
    let script = async {
        let asked = peer.hear_strictly().await;
        assert_eq!(
            (&asked["payload"]["kind"], &asked["payload"]["type"]),
            (&json!("elicit"), &json!("count"))
        );
        let id = asked["payload"]["id"].clone();
        peer.say(json!({"type": "progress", "id": id, "data": 1})).await;
        let answer = json!({"status": "accepted", "content": 2});
        peer.say(json!({"type": "response", "id": id, "response": answer})).await;
    };
    let heard = async {
        assert_eq!(call.progress().await, Some(1));
        call.await
    };
    let ((), answer) = soon(futures::future::join(script, heard)).await;
    assert_eq!(answer, Ok(2));

    let calls = async {
        let asked = builtin::ask::<Text>(&scope, "well?").await;
        let notice = Notice { message: "so".to_owned(), ..Notice::default() };
        let told = NOTIFY.call(&scope, notice).await;
        let prompt = Prompt { prompt: Said::Text("x".to_owned()), ..Prompt::default() };
        (asked, told, SAMPLE.call(&scope, prompt).await)
    };
    let script = async {
        for (kind, method, answer) in [
            ("elicit", "form", json!({"status": "other", "content": "perhaps"})),
            ("notify", "notification", json!({"ok": true})),
            ("elicit", "sample", json!({"status": "accepted", "content": {"text": "y"}})),
        ] {
            let asked = peer.hear_strictly().await;
            assert_eq!(
                (&asked["payload"]["kind"], &asked["payload"]["type"]),
                (&json!(kind), &json!(method))
            );
            let id = asked["payload"]["id"].clone();
            peer.say(json!({"type": "response", "id": id, "response": answer})).await;
        }
    };
    let ((asked, told, sampled), ()) = soon(futures::future::join(calls, script)).await;
    assert_eq!(asked, Ok(Answer::OffScript("perhaps".to_owned())));
    assert_eq!((told, sampled.expect("said").text.as_str()), (Ok(()), "y"));
}

#[tokio::test]
async fn k023_on_a_plain_call_each_status_has_its_meaning() {
    let (mut peer, link) = Peer::listening(options()).await;
    let scope = Scope::root().with_transport(link);
    for (answer, code) in [
        (json!({"status": "declined"}), Code::ToolDeclined),
        (json!({"status": "denied"}), Code::PermissionDenied),
        (json!({"status": "cancelled"}), Code::ToolCanceled),
        (json!({"status": "other", "content": "no idea"}), Code::ToolFailed),
    ] {
        let script = async {
            let id = peer.hear_strictly().await["payload"]["id"].clone();
            peer.say(json!({"type": "response", "id": id, "response": answer})).await;
        };
        let call = ECHO.call(&scope, text("x"));
        let (answer, ()) = soon(futures::future::join(call, script)).await;
        assert!(answer.as_ref().is_err_and(|fault| fault.is(code)), "{answer:?}");
    }
}

#[tokio::test]
async fn k028_a_strict_peer_is_told_of_failures_in_the_plain_form() {
    let (scope, ..) = served();
    let (mut peer, link) = Peer::connecting(None, options()).await;
    let _serving = operative::serve(&scope, &link);
    for (tool, payload) in [
        ("fail", json!("It is so.")),
        ("unknown", json!(null)),
        ("panic", json!(null)),
        ("small", json!({"n": 11})),
        ("small", json!({"n": 5})),
    ] {
        peer.say(request("r", tool, payload)).await;
        let answer = peer.hear_strictly().await;
        assert_eq!(answer["id"], "r");
        assert_eq!(answer["response"]["status"], "other", "{tool}: {answer}");
        assert!(!answer["response"]["content"].as_str().expect("text").is_empty());
    }
}

#[tokio::test]
async fn k028_the_marker_goes_to_peers_that_asked_for_it_only() {
    let (scope, ..) = served();
    for (subprotocol, marked) in
        [(None, false), (Some("wharf.v1"), false), (Some("wharf.tool.v1"), true)]
    {
        let (mut peer, link) = Peer::connecting(subprotocol, options()).await;
        assert_eq!(link.is_extended(), marked);
        let _serving = operative::serve(&scope, &link);
        peer.say(request("r", "fail", json!("It is so."))).await;
        let answer = peer.hear().await;
        assert_eq!(answer["response"]["content"], "It is so.");
        let code = answer["response"].get("fault").map(|fault| fault["code"].clone());
        assert_eq!(code, marked.then(|| json!("budget.exceeded")));
    }
}

#[tokio::test]
async fn k028_a_plain_end_never_writes_the_marker() {
    let (scope, ..) = served();
    let plain = wharf_sdk::transport::Options { plain: true, ..options() };
    let (mut peer, link) = Peer::connecting(None, plain).await;
    assert!(!link.is_extended());
    let _serving = operative::serve(&scope, &link);
    peer.say(request("r", "fail", json!("x"))).await;
    peer.hear_strictly().await;
}

#[tokio::test]
async fn k024_requests_come_in_an_envelope_or_bare_and_may_lack_what_is_empty() {
    let (scope, ..) = served();
    let (mut peer, link) = Peer::connecting(None, options()).await;
    let _serving = operative::serve(&scope, &link);
    let payload = json!({"text": "x"});
    for frame in [
        json!({"id": "r", "kind": "elicit", "type": "echo", "payload": payload}),
        json!({"id": "r", "kind": "elicit", "type": "echo", "payload": payload, "more": [1]}),
        json!({"type": "request", "more": 1, "payload":
            {"id": "r", "kind": "elicit", "type": "echo", "payload": payload, "more": {}}}),
    ] {
        peer.say(frame).await;
        let answer = peer.hear_strictly().await;
        assert_eq!(answer["response"]["content"], payload);
    }
    peer.say(json!({"id": "r", "kind": "elicit", "type": "panic"})).await;
    assert_eq!(peer.hear_strictly().await["response"]["status"], "other");
}

#[tokio::test]
async fn k024_answers_may_lack_content_and_progress_may_lack_data() {
    let (mut peer, link) = Peer::listening(options()).await;
    let scope = Scope::root().with_transport(link.clone());
    const NOTHING: wharf_sdk::Tool<(), (), ()> = wharf_sdk::Tool::new("nothing", "");
    let script = async {
        let id = peer.hear().await["payload"]["id"].clone();
        peer.say(json!({"type": "weather", "id": id, "sunny": true})).await;
        peer.say(json!({"type": "progress", "id": id})).await;
        let answer = json!({"status": "accepted", "note": "unknown keys"});
        peer.say(json!({"type": "response", "id": id, "response": answer, "more": 1})).await;
    };
    let (answer, ()) = soon(futures::future::join(NOTHING.call(&scope, ()), script)).await;
    assert_eq!(answer, Ok(()));
    assert_eq!(link.counters().unknown_types, 1);
}

#[tokio::test]
async fn k024_a_schema_that_is_none_is_passed_on_as_it_is() {
    let scope = Scope::root();
    let elicit = |question: builtin::Question, _cx: Cx| async move {
        Ok(Answer::Accepted(json!({"schema": question.schema, "word": question.word})))
    };
    scope.provide(&ELICIT, elicit).expect("provided");
    let (mut peer, link) = Peer::connecting(None, options()).await;
    let _serving = operative::serve(&scope, &link);
    let payload = json!({"message": "m", "schema": "zod: {a: b}", "meta": {"x": 1}});
    peer.say(request("r", "confirmation", payload)).await;
    let answer = peer.hear_strictly().await;
    let content = json!({"schema": "zod: {a: b}", "word": "confirmation"});
    assert_eq!(answer["response"], json!({"status": "accepted", "content": content}));
}

#[tokio::test]
async fn k027_a_frame_that_cannot_be_read_is_counted_and_answered_when_it_has_an_id() {
    let (scope, ..) = served();
    let (mut peer, link) = Peer::connecting(None, options()).await;
    let _serving = operative::serve(&scope, &link);
    for text in ["", "{", "[]", "7", r#"{"no":"type"}"#, r#"{"type":"request"}"#] {
        peer.say_text(text).await;
    }
    peer.say_bytes(b"\xff\x00").await;
    peer.say(json!({"id": "r1", "kind": "sing", "type": "echo"})).await;
    let answer = peer.hear_strictly().await;
    assert_eq!((&answer["id"], &answer["response"]["status"]), (&json!("r1"), &json!("other")));
    assert_eq!(link.counters().unreadable, 8);
    peer.say(request("r2", "echo", json!({"text": "alive"}))).await;
    assert_eq!(peer.hear_strictly().await["response"]["status"], "accepted");
}

#[tokio::test]
async fn k027_an_answer_that_cannot_be_read_ends_its_call() {
    let (mut peer, link) = Peer::listening(options()).await;
    let scope = Scope::root().with_transport(link);
    let script = async {
        let id = peer.hear().await["payload"]["id"].clone();
        let answer = json!({"status": "postponed"});
        peer.say(json!({"type": "response", "id": id, "response": answer})).await;
    };
    let (answer, ()) = soon(futures::future::join(ECHO.call(&scope, text("x")), script)).await;
    let fault = answer.expect_err("nobody knows the status");
    assert!(fault.is(Code::ToolProtocolViolation), "{fault:?}");
}

#[tokio::test]
async fn k025_unknown_ids_and_second_answers_are_ignored_and_counted() {
    let (mut peer, link) = Peer::listening(options()).await;
    let scope = Scope::root().with_transport(link.clone());
    let script = async {
        let id = peer.hear().await["payload"]["id"].clone();
        let accepted = |said: &str| json!({"status": "accepted", "content": {"text": said}});
        for (id, said) in [(json!("nobody's"), "x"), (id.clone(), "first"), (id, "second")] {
            peer.say(json!({"type": "response", "id": id, "response": accepted(said)})).await;
        }
        peer.say(json!({"type": "progress", "id": "nobody's", "data": 1})).await;
        peer.say(json!({"type": "cancel", "id": "nobody's"})).await;
    };
    let (answer, ()) = soon(futures::future::join(ECHO.call(&scope, text("x")), script)).await;
    assert_eq!(answer, Ok(text("first")));
    until("all is counted", || {
        let counters = link.counters();
        (counters.unknown_ids, counters.duplicate_responses) == (3, 1)
    })
    .await;
    assert!(!link.is_closed());
}

#[tokio::test]
async fn k025_a_second_request_of_one_id_does_not_disturb_the_first() {
    let (scope, seen, gate) = served();
    let (mut peer, link) = Peer::connecting(None, options()).await;
    let _serving = operative::serve(&scope, &link);
    peer.say(request("r", "gate", json!(1))).await;
    until("it is under way", || seen.begun() == 1).await;
    peer.say(request("r", "echo", json!({"text": "x"}))).await;
    until("it is counted", || link.counters().unknown_ids == 1).await;
    gate.add_permits(1);
    assert_eq!(peer.hear_strictly().await["response"]["content"], 1);
}

#[tokio::test]
async fn k026_a_strict_peer_is_told_of_cancels_and_a_late_one_is_harmless() {
    let (mut peer, link) = Peer::listening(options()).await;
    let scope = Scope::root().with_transport(link.clone());
    let call = tokio::spawn(ECHO.call(&scope, text("x")));
    let id = peer.hear_strictly().await["payload"]["id"].clone();
    call.abort();
    assert_eq!(peer.hear_strictly().await, json!({"type": "cancel", "id": id}));
    // The answer had been on its way.
    let answer = json!({"status": "accepted", "content": {"text": "x"}});
    peer.say(json!({"type": "response", "id": id, "response": answer})).await;
    until("it is counted", || link.counters().duplicate_responses == 1).await;
    assert_eq!(link.counters().calls_waiting, 0);
}

#[tokio::test]
async fn k003_a_plain_peer_is_never_asked_on_behalf_of_its_own_request() {
    const OUTER: wharf_sdk::Tool<(), String> = wharf_sdk::Tool::new("outer", "");
    // What the tool needs goes to the transport of its scope instead.
    let (elsewhere, ..) = served();
    let (near, far) = wharf_sdk::transport::memory::pair();
    let _there = operative::serve(&elsewhere, &far);
    let scope = Scope::root().with_transport(near);
    let outer = |(), cx: Cx| async move { Ok(ECHO.call(&cx, text("from afar")).await?.text) };
    scope.provide(&OUTER, outer).expect("provided");
    let (mut peer, link) = Peer::connecting(None, options()).await;
    let _serving = operative::serve(&scope, &link);
    peer.say(request("r", "outer", json!(null))).await;
    assert_eq!(peer.hear_strictly().await["response"]["content"], "from afar");
}

#[tokio::test]
async fn k026_a_peer_that_vanishes_at_any_point_fails_the_calls_that_wait() {
    for point in 0..4 {
        let (mut peer, link) = Peer::listening(options()).await;
        let scope = Scope::root().with_transport(link.clone());
        let calls: Vec<_> = (0..3).map(|_| tokio::spawn(COUNT.call(&scope, 5))).collect();
        let script = async {
            for _ in 0..point {
                let id = peer.hear().await["payload"]["id"].clone();
                peer.say(json!({"type": "progress", "id": id, "data": 1})).await;
            }
            // Its socket goes without a farewell.
            drop(peer);
        };
        soon(script).await;
        for call in calls {
            let fault = soon(call).await.expect("ended").expect_err("lost");
            assert!(fault.is(Code::TransportLost), "{point}: {fault:?}");
        }
        soon(link.closed()).await;
        assert_eq!(link.counters().calls_waiting, 0);
    }
}

#[tokio::test]
async fn k036_a_plain_peer_is_told_nothing_of_costs() {
    let (mut peer, link) = Peer::listening(options()).await;
    let scope = Scope::root();
    scope
        .provide(&COUNT, |n, cx: Cx<u32>| async move {
            cx.cost(25);
            Ok(n)
        })
        .expect("provided");
    let _serving = operative::serve(&scope, &link);
    peer.say(request("1", "count", 3)).await;
    let answer = json!({"status": "accepted", "content": 3});
    let expected = json!({"type": "response", "id": "1", "response": answer});
    assert_eq!(soon(peer.hear_strictly()).await, expected);
}
