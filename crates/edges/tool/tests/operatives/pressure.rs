//! Peers that want too much: what they get, and that others do not notice.

use futures::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use wharf_fuzz::flood_pings;
use wharf_vocab::limits::SOCKET_PINGS_MAX;

use crate::reader::Events;
use crate::stage::{Stage, acting, eventually};

#[tokio::test]
async fn k030_progress_beyond_what_a_run_may_have_ends_that_run_only() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let flood = stage.run("browser/a", json!({})).await;
    let (flooding, _) = page.request().await;
    let quiet = stage.run("browser/a", json!({})).await;
    let (other, _) = page.request().await;
    let piece = "x".repeat(1024 * 1024);
    for _ in 0..12 {
        page.say(json!({"type": "progress", "id": flooding, "data": piece})).await;
    }
    let failed = stage.until(&flood, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.output_too_large", "{}", failed["error"]);
    assert_eq!(page.hear("cancel").await["id"], json!(flooding));
    page.accept(&flooding, json!({"late": true})).await;
    page.accept(&other, json!({"n": 1})).await;
    assert_eq!(stage.until(&quiet, "succeeded").await["outputs"], json!({"n": 1}));
    assert_eq!(stage.shown(&flood).await["status"], "failed");
}

#[tokio::test]
async fn k030_requests_that_are_taken_back_at_once_do_not_pile_up() {
    let stage = Stage::with(|options| options.limits.served_max = 4).await;
    let mut peer = stage.principal().await;
    for n in 0..300 {
        peer.ask(&format!("r{n}"), "wharf/sleep", json!({"ms": 600_000})).await;
        peer.say(json!({"type": "cancel", "id": format!("r{n}")})).await;
    }
    // Some were begun and called off, others are told that there is too much; then all is well.
    let mut round = 0;
    loop {
        round += 1;
        let id = format!("e{round}");
        peer.ask(&id, "wharf/echo", json!({"n": 1})).await;
        let answer = loop {
            let frame = peer.next().await.expect("a frame");
            if frame["id"] == json!(id) {
                break frame["response"].clone();
            }
            assert_eq!(frame["response"]["fault"]["code"], "tool.busy", "{frame}");
        };
        if answer["status"] == "accepted" {
            break;
        }
        assert_eq!(answer["fault"]["code"], "tool.busy", "{answer}");
    }
    eventually(async || {
        let runs = stage.runs_of("wharf/sleep").await;
        runs.iter().all(|run| run["status"] == "canceled").then_some(())
    })
    .await;
}

#[tokio::test]
async fn k030_a_handler_has_no_more_open_than_it_may_and_all_of_it_ends_with_its_call() {
    let stage = Stage::with(|options| options.limits.served_max = 4).await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (of, _) = page.request().await;
    for n in 0..10 {
        page.ask_within(&of, &format!("c{n}"), "wharf/sleep", json!({"ms": 600_000})).await;
    }
    for n in 4..10 {
        assert_eq!(page.response(&format!("c{n}")).await["fault"]["code"], "tool.busy");
    }
    for n in 0..200 {
        page.ask_within(&of, &format!("q{n}"), "form", json!({"message": n.to_string()})).await;
        page.response(&format!("q{n}")).await;
    }
    page.accept(&of, json!({})).await;
    stage.until(&run, "succeeded").await;
    eventually(async || {
        let runs = stage.runs_of("wharf/sleep").await;
        assert!(runs.len() <= 4, "{}", runs.len());
        runs.iter().all(|run| run["status"] == "canceled").then_some(())
    })
    .await;
    let inbox = stage.call("GET /v1/inbox", &Value::Null).await.body;
    assert_eq!(inbox["items"], json!([]));
}

#[tokio::test]
async fn k030_questions_that_are_asked_and_taken_back_have_an_end() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let run = stage.run("browser/a", json!({})).await;
    let (of, _) = page.request().await;
    let mut refused = Value::Null;
    for n in 0..3_000 {
        let id = format!("q{n}");
        page.ask_within(&of, &id, "form", json!({"message": n.to_string()})).await;
        page.say(json!({"type": "cancel", "id": id})).await;
        page.ask_within(&of, &format!("e{n}"), "wharf/nothing", json!({})).await;
        let frame = page.next().await.expect("a frame");
        if frame["id"] == json!(id) {
            refused = frame["response"].clone();
            break;
        }
    }
    assert_eq!(refused["status"], "other", "{refused}");
    stage.until(&run, "running").await;
}

#[tokio::test]
async fn k030_offers_that_change_too_often_are_refused_and_the_same_again_is_not() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let (mut last, mut refused) = (acting("a"), json!({}));
    for _ in 0..100 {
        let next = acting(if last == acting("a") { "b" } else { "a" });
        page.say(json!({"type": "offer", "tools": next})).await;
        let offered = page.hear("offered").await;
        if offered["error"].is_object() {
            refused = offered;
            break;
        }
        last = next;
    }
    assert_eq!(refused["error"]["code"], "core.busy", "{refused}");
    page.say(json!({"type": "offer", "tools": last})).await;
    assert!(page.hear("offered").await["tools"].is_array());
    // Another connection does not begin anew.
    let mut page = stage.operative("browser", last).await;
    page.say(json!({"type": "offer", "tools": acting("c")})).await;
    assert_eq!(page.hear("offered").await["error"]["code"], "core.busy");
}

#[tokio::test]
async fn k032_schemas_that_ask_for_too_much_are_answered_soon() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let back = vec![json!({"$ref": "#"}); 1_000];
    let large = json!({"type": "object", "description": "x".repeat(60_000)});
    let many: Vec<Value> =
        (0..20).map(|n| json!({"name": format!("t{n}"), "input": large})).collect();
    let offers = [
        json!([{"name": "a", "input": {"allOf": back}}]),
        json!([{"name": "a", "input": {"anyOf": back}, "output": {"oneOf": back}}]),
        json!([{"name": "a", "input": {"$ref": "#/$defs/a",
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}}]),
        json!([{"name": "a", "input": {"type": "string", "pattern": "(a*)*b{1,1000}{1,1000}"}}]),
        json!([{"name": "a", "input": {"$ref": "http://127.0.0.1:1/schema"}}]),
        json!(many),
    ];
    for tools in offers {
        page.say(json!({"type": "offer", "tools": tools})).await;
        page.hear("offered").await;
    }
    page.say(json!({"type": "offer", "tools": many})).await;
    assert_eq!(page.hear("offered").await["error"]["code"], "request.invalid");
    page.say(json!({"type": "offer", "tools": acting("a")})).await;
    assert!(page.hear("offered").await["tools"].is_array());
}

#[tokio::test]
async fn k027_frames_that_are_too_deep_and_ids_that_are_too_long_harm_nobody() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    let (open, shut) = ("[".repeat(10_000), "]".repeat(10_000));
    for _ in 0..3 {
        let deep =
            format!(r#"{{"id":"1","kind":"elicit","type":"wharf/echo","payload":{open}{shut}}}"#);
        peer.stream.send(Message::Text(deep.into())).await.expect("sends");
        peer.ask(&"i".repeat(100_000), "wharf/echo", json!({})).await;
        peer.say(json!({"type": "cancel", "id": "c".repeat(100_000)})).await;
    }
    peer.ask("2", "wharf/echo", json!({"n": 1})).await;
    assert_eq!(peer.response("2").await["content"], json!({"n": 1}));
}

#[tokio::test]
async fn k029_a_message_may_be_as_large_as_a_frame() {
    let stage = Stage::start().await;
    let query = "role=operative&provider=browser&tools=a";
    let mut page = stage.events(query, "").await;
    page.hear().await;
    let run = stage.run("browser/a", json!({})).await;
    let (_, request) = page.hear().await;
    let content = json!({"text": "x".repeat(3 * 1024 * 1024)});
    let response = json!({"status": "accepted", "content": content});
    let message = json!({"type": "response", "id": request["id"], "response": response});
    assert_eq!(stage.post(query, message).await.status, 202);
    assert_eq!(stage.until(&run, "succeeded").await["outputs"], content);
}

#[tokio::test]
async fn k030_one_token_leaves_places_to_others() {
    let stage = Stage::with(|options| options.peers_each_max = 2).await;
    let (token, _) = stage.token(json!({"verbs": ["run"], "tools": ["*"]})).await;
    let query = |n: u32| format!("role=principal&session=a-session-number-{n}");
    let first = Events::open(stage.addr(), &query(1), &token, "").await;
    let _second = stage.connect("role=principal", &token, "").await.expect("there is room");
    let third = Events::open(stage.addr(), &query(3), &token, "").await;
    assert_eq!(third.status, 503, "{}", third.head);
    let refused = stage.connect("role=principal", &token, "").await.expect_err("full");
    assert_eq!(refused.refused(), (503, "core.busy"));
    // The same session is no further one, and others have their own places.
    assert_eq!(Events::open(stage.addr(), &query(1), &token, "").await.status, 200);
    stage.principal().await;
    let (other, _) = stage.token(json!({"verbs": ["run"], "tools": ["*"]})).await;
    stage.connect("role=principal", &other, "").await.expect("there is room");
    let leaves = format!("POST /v1/tool/sse?{}", query(1));
    drop(first);
    eventually(async || {
        stage.call_as(&token, &leaves, &json!({"type": "closed"})).await;
        let again = stage.connect("role=principal", &token, "").await;
        again.ok().map(drop)
    })
    .await;
}

#[tokio::test]
async fn k032_tools_that_are_offered_no_more_are_not_asked_for() {
    let stage = Stage::start().await;
    let mut page = stage.operative("browser", acting("a")).await;
    let under_way = stage.run("browser/a", json!({})).await;
    let (call, _) = page.request().await;
    page.say(json!({"type": "offer", "tools": acting("b")})).await;
    page.hear("offered").await;
    // What is under way goes on.
    page.accept(&call, json!({"n": 1})).await;
    assert_eq!(stage.until(&under_way, "succeeded").await["outputs"], json!({"n": 1}));
    drop(page);
    stage.away("browser/b").await;
    let waiting = stage.run("browser/b", json!({})).await;
    let mut page = stage.operative("browser", acting("c")).await;
    let failed = stage.until(&waiting, "failed").await;
    assert_eq!(failed["error"]["code"], "tool.not_found", "{failed}");
    let run = stage.run("browser/c", json!({})).await;
    let (call, request) = page.request().await;
    assert_eq!(request["type"], "c");
    page.accept(&call, json!({})).await;
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn a_flood_of_pings_ends_the_connection() {
    let stage = Stage::start().await;
    let (token, _) = stage.token(json!({"verbs": ["run"]})).await;
    let mut caller = stage.connect("role=principal", &token, "").await.expect("connects");
    let mut page = stage.operative("browser", acting("a")).await;
    for peer in [&mut caller, &mut page] {
        let (answered, code) = flood_pings(&mut peer.stream).await;
        assert!(answered <= SOCKET_PINGS_MAX && code == 1008, "{answered} {code}");
    }
}

#[tokio::test]
async fn k030_messages_that_wait_for_their_session_share_a_bounded_memory() {
    let stage = Stage::with(|options| options.posts_bytes_max = 64 * 1024).await;
    let query = "role=principal&session=a-session-of-mine";
    let _events = stage.events(query, "").await;
    let message = |bytes: usize| {
        let payload = json!({"text": "x".repeat(bytes)});
        json!({"id": "r1", "kind": "elicit", "type": "wharf/echo", "payload": payload})
    };
    let large = stage.post(query, message(100_000)).await;
    assert_eq!(large.refused(), (503, "core.busy"));
    assert_eq!(stage.post(query, message(40_000)).await.status, 202);
    assert_eq!(stage.post(query, message(10)).await.status, 202, "what is small needs no room");
}
