//! What operatives ask while they serve a call.

use serde_json::{Value, json};

use crate::stage::{Stage, acting, eventually};

#[tokio::test]
async fn k019_a_handler_calls_other_tools_through_the_core() {
    let stage = Stage::start().await;
    let mut page = stage.operative("flight", acting("search")).await;
    let run = stage.run("flight/search", json!({})).await;
    let (of, _) = page.request().await;
    page.ask_within(&of, "c1", "wharf/count", json!({"n": 2, "delay_ms": 0})).await;
    let first = page.hear("progress").await;
    assert_eq!(first["id"], "c1");
    assert_eq!(
        page.response("c1").await,
        json!({"status": "accepted", "content": {"n": 2, "sum": 3}})
    );
    page.ask_within(&of, "c2", "wharf/fail", json!({"code": "acme.no"})).await;
    assert_eq!(page.response("c2").await["fault"]["code"], "acme.no");
    page.ask_within(&of, "c3", "nothing", json!({})).await;
    assert_eq!(page.response("c3").await["fault"]["code"], "tool.not_found");
    page.accept(&of, json!({})).await;
    stage.until(&run, "succeeded").await;
    let child = &stage.runs_of("wharf/count").await[0];
    assert_eq!(child["parent"], format!("default/{run}"), "{child}");
}

#[tokio::test]
async fn k019_a_handler_has_the_rights_of_whoever_started_the_run() {
    let stage = Stage::start().await;
    let mut page = stage.operative("flight", acting("search")).await;
    let rights = json!({"verbs": ["run", "read"], "tools": ["flight/*", "wharf/echo"]});
    let (token, _) = stage.token(rights).await;
    let body = json!({"tool": "flight/search", "inputs": {}});
    assert_eq!(stage.call_as(&token, "POST /v1/runs", &body).await.status, 202);
    let (of, _) = page.request().await;
    page.ask_within(&of, "c1", "wharf/echo", json!({"a": 1})).await;
    assert_eq!(page.response("c1").await["content"], json!({"a": 1}));
    page.ask_within(&of, "c2", "wharf/count", json!({"n": 1})).await;
    assert_eq!(page.response("c2").await, json!({"status": "denied"}));
}

#[tokio::test]
async fn k019_what_is_asked_on_behalf_of_no_call_of_its_own_is_refused() {
    let stage = Stage::start().await;
    let mut one = stage.operative("one", acting("a")).await;
    let mut two = stage.operative("two", acting("a")).await;
    stage.run("one/a", json!({})).await;
    let (of, _) = one.request().await;
    two.ask_within(&of, "c1", "wharf/echo", json!({})).await;
    let refused = two.response("c1").await;
    assert_eq!(refused["fault"]["code"], "permission.denied", "{refused}");
    two.ask("c2", "wharf/echo", json!({})).await;
    assert_eq!(two.response("c2").await["fault"]["code"], "permission.denied");
    one.accept(&of, json!({})).await;
    one.ask_within(&of, "c3", "wharf/echo", json!({})).await;
    assert_eq!(one.response("c3").await["fault"]["code"], "permission.denied", "it is over");
    assert!(stage.runs_of("wharf/echo").await.is_empty());
}

#[tokio::test]
async fn k019_a_handler_asks_people_and_gets_what_they_say() {
    let stage = Stage::start().await;
    let mut page = stage.operative("flight", acting("book")).await;
    let run = stage.run("flight/book", json!({})).await;
    let (of, _) = page.request().await;
    let schema = json!({"type": "object", "properties": {"ok": {"type": "boolean"}}});
    let ask = json!({"message": "Use the cheapest?", "schema": schema, "meta": {"price": 7}});
    let ways = [
        (json!({"value": {"ok": true}}), json!({"status": "accepted", "content": {"ok": true}})),
        (json!({"status": "declined"}), json!({"status": "declined"})),
        (json!({"status": "cancelled"}), json!({"status": "cancelled"})),
        (
            json!({"status": "off_script", "text": "Ask Ada"}),
            json!({"status": "other", "content": "Ask Ada"}),
        ),
    ];
    for (n, (given, told)) in ways.into_iter().enumerate() {
        let id = format!("q{n}");
        page.ask_within(&of, &id, "form", ask.clone()).await;
        let question = stage.question().await;
        assert_eq!(question["title"], "Use the cheapest?");
        assert_eq!(question["run_id"], json!(run));
        assert_eq!(question["schema"], schema);
        assert_eq!(question["detail"], json!({"meta": {"price": 7}}));
        assert_eq!(stage.shown(&run).await["status"], "waiting");
        stage.answer(&question, given).await;
        assert_eq!(page.response(&id).await, told);
    }
    page.accept(&of, json!({})).await;
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn k019_a_question_that_is_taken_back_lets_the_run_go_on() {
    let stage = Stage::start().await;
    let mut page = stage.operative("flight", acting("book")).await;
    let run = stage.run("flight/book", json!({})).await;
    let (of, _) = page.request().await;
    page.ask_within(&of, "q", "confirmation", json!({"message": "Sure?"})).await;
    stage.until(&run, "waiting").await;
    page.say(json!({"type": "cancel", "id": "q"})).await;
    stage.until(&run, "running").await;
    let inbox = stage.call("GET /v1/inbox", &Value::Null).await.body;
    assert_eq!(inbox["items"], json!([]));
}

#[tokio::test]
async fn k019_a_handler_tells_something_and_it_stands_in_the_runs_log() {
    let stage = Stage::start().await;
    let mut page = stage.operative("flight", acting("book")).await;
    let run = stage.run("flight/book", json!({})).await;
    let (of, _) = page.request().await;
    let told = json!({"id": "n", "kind": "notify", "type": "notification",
                      "payload": {"message": "Half way", "level": "warn", "progress": 0.5}});
    page.say(json!({"type": "child", "of": of, "payload": told})).await;
    assert_eq!(page.response("n").await, json!({"ok": true}));
    page.accept(&of, json!({})).await;
    stage.until(&run, "succeeded").await;
    let key = wharf_vocab::RunKey {
        world: wharf_vocab::WorldId::new("default").expect("valid"),
        run: wharf_vocab::RunId::new(&run).expect("valid"),
    };
    let mut watch =
        stage.handle.run_events().watch(&key, wharf_vocab::Seq(0)).await.expect("there");
    let mut log = Vec::new();
    while let Some(event) = watch.next().await {
        if let wharf_engine::HistoryItem::Progress(piece) = event.expect("read").item {
            log.push(serde_json::to_value(piece).expect("JSON"));
        }
    }
    let expected = [
        json!({"p": "log", "level": "warn", "text": "Half way"}),
        json!({"p": "phase", "phase": "Half way", "fraction": 0.5}),
    ];
    assert_eq!(log, expected);
}

#[tokio::test]
async fn k026_what_a_handler_started_ends_with_it_or_when_it_says_so() {
    let stage = Stage::start().await;
    let mut page = stage.operative("flight", acting("book")).await;
    let run = stage.run("flight/book", json!({})).await;
    let (of, _) = page.request().await;
    let all_canceled = async |many: usize| {
        eventually(async || {
            let runs = stage.runs_of("wharf/sleep").await;
            let canceled = runs.iter().filter(|run| run["status"] == "canceled").count();
            (canceled == many).then_some(())
        })
        .await;
    };
    let started = async |many: usize| {
        eventually(async || (stage.runs_of("wharf/sleep").await.len() == many).then_some(())).await;
    };
    page.ask_within(&of, "c1", "wharf/sleep", json!({"ms": 60_000})).await;
    started(1).await;
    page.say(json!({"type": "cancel", "id": "c1"})).await;
    all_canceled(1).await;
    page.ask_within(&of, "c2", "wharf/sleep", json!({"ms": 60_000})).await;
    started(2).await;
    page.accept(&of, json!({})).await;
    stage.until(&run, "succeeded").await;
    all_canceled(2).await;
    stage.run("flight/book", json!({})).await;
    let (of, _) = page.request().await;
    page.ask_within(&of, "c3", "wharf/sleep", json!({"ms": 60_000})).await;
    started(3).await;
    drop(page);
    all_canceled(3).await;
}
