//! Questions, messages and completions of principals.

use serde_json::{Value, json};
use wharf_engine::in_process::InProcess;
use wharf_vocab::{Fault, Object};

use crate::stage::{Stage, eventually};

#[tokio::test]
async fn k019_a_principals_question_is_asked_of_people() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    let schema = json!({"type": "object", "properties": {"date": {"type": "string"}},
                        "required": ["date"]});
    let ways = [
        (
            json!({"value": {"date": "1 May"}}),
            json!({"status": "accepted", "content": {"date": "1 May"}}),
        ),
        (json!({"status": "declined"}), json!({"status": "declined"})),
        (json!({"status": "cancelled"}), json!({"status": "cancelled"})),
        (
            json!({"status": "off_script", "text": "soon"}),
            json!({"status": "other", "content": "soon"}),
        ),
    ];
    for (n, (given, told)) in ways.into_iter().enumerate() {
        let id = n.to_string();
        peer.ask(&id, "form", json!({"message": "When?", "schema": schema})).await;
        let question = stage.question().await;
        assert_eq!((&question["title"], &question["schema"]), (&json!("When?"), &schema));
        stage.answer(&question, given).await;
        assert_eq!(peer.response(&id).await, told);
    }
    // A type of its own is a question when it says what is asked.
    peer.ask("own", "seat-choice", json!({"message": "Aisle?"})).await;
    let question = stage.question().await;
    assert_eq!(question["detail"], json!({"type": "seat-choice"}));
    stage.answer(&question, json!({"value": "yes"})).await;
    assert_eq!(peer.response("own").await, json!({"status": "accepted", "content": "yes"}));
}

#[tokio::test]
async fn k024_a_question_with_a_schema_that_is_none_takes_any_answer() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    let opaque = json!({"type": "zod", "shape": {"_def": 1}});
    peer.ask("1", "form", json!({"message": "When?", "schema": opaque})).await;
    let question = stage.question().await;
    assert_eq!(question["detail"]["schema"], opaque);
    stage.answer(&question, json!({"value": [1]})).await;
    assert_eq!(peer.response("1").await, json!({"status": "accepted", "content": [1]}));
}

#[tokio::test]
async fn k026_a_question_ends_with_whoever_asked_it() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    peer.ask("1", "confirmation", json!({"message": "Sure?"})).await;
    let question = stage.question().await;
    assert_eq!(question["schema"], json!({"type": "boolean"}));
    drop(peer);
    eventually(async || {
        let inbox = stage.call("GET /v1/inbox", &Value::Null).await.body;
        (inbox["items"] == json!([])).then_some(())
    })
    .await;
}

#[tokio::test]
async fn k019_a_message_is_kept_as_a_run_and_acknowledged() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    let notify = |id: &str, payload: Value| {
        let request =
            json!({"id": id, "kind": "notify", "type": "notification", "payload": payload});
        json!({"type": "request", "payload": request})
    };
    peer.say(notify("1", json!({"message": "Landed", "level": "warning", "progress": 1}))).await;
    let frame = peer.hear("response").await;
    assert_eq!(frame["response"], json!({"ok": true}));
    let run = stage.runs_of("wharf/notify").await[0]["run_id"].as_str().expect("id").to_owned();
    let inputs = stage.shown(&run).await["inputs"].clone();
    assert_eq!(inputs, json!({"message": "Landed", "level": "warn", "progress": 1.0}));
    peer.say(notify("2", json!({"level": "info"}))).await;
    assert_eq!(peer.response("2").await["fault"]["code"], "tool.invalid_input");
}

/// A model that says what it was given.
async fn model(stage: &Stage) {
    let said = |inputs: Object, cx: wharf_engine::in_process::LocalCx| async move {
        cx.text("response", "Hel").await?;
        cx.text("response", "lo").await?;
        let given = Value::Object(inputs).to_string();
        let output = json!({"response": given, "finish_reason": "stop", "model": "m1",
                            "prompt_tokens": 3, "completion_tokens": 4, "tokens": 7});
        Ok::<_, Fault>((output.as_object().cloned().unwrap_or_default(), 250))
    };
    let provider = InProcess::new("models").expect("valid");
    let harmless = |def: &mut wharf_domain::ToolDef| def.mock = true;
    let provider = provider.tool("complete", "Completes.", harmless, said).expect("valid");
    provider.register(&stage.handle).await.expect("registers");
}

#[tokio::test]
async fn k019_a_completion_is_a_run_of_the_model_tool_and_its_cost_counts() {
    let stage = Stage::start().await;
    let mut peer = stage.principal().await;
    peer.ask("none", "sample", json!({"prompt": "Hi"})).await;
    let missing = peer.response("none").await;
    assert_eq!(missing["fault"]["code"], "tool.unavailable", "{missing}");
    assert!(missing["content"].as_str().is_some_and(|text| text.contains("models/complete")));
    model(&stage).await;
    peer.ask("1", "sample", json!({"prompt": "Hi", "maxTokens": 5, "stop": "."})).await;
    let first = peer.hear("progress").await;
    assert_eq!(first["data"]["channel"], "response", "{first}");
    let answer = peer.response("1").await;
    let given: Value =
        serde_json::from_str(answer["content"]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(given, json!({"prompt": "Hi", "max_tokens": 5, "stop": ["."]}));
    assert_eq!(answer["content"]["finishReason"], "stop");
    assert_eq!(answer["content"]["model"], "m1");
    let usage = json!({"promptTokens": 3, "completionTokens": 4, "totalTokens": 7});
    assert_eq!(answer["content"]["usage"], usage);
    let messages = json!([{"role": "user", "content": "Hi"}]);
    peer.ask("2", "sample", json!({"prompt": messages, "temperature": 0.5, "model": "m2"})).await;
    let answer = peer.response("2").await;
    let given: Value =
        serde_json::from_str(answer["content"]["text"].as_str().expect("text")).expect("JSON");
    assert_eq!(given, json!({"messages": messages, "temperature": 0.5, "model": "m2"}));
    let costs = stage.call("GET /v1/costs?world=default", &Value::Null).await.body;
    assert!(costs.to_string().contains("500"), "two completions: {costs}");
    peer.ask("3", "sample", json!({"maxTokens": 5})).await;
    assert_eq!(peer.response("3").await["fault"]["code"], "tool.invalid_input");
}

#[tokio::test]
async fn k019_a_completion_that_only_pretends_lets_the_model_pretend() {
    let stage = Stage::start().await;
    model(&stage).await;
    let body = json!({"tool": "wharf/sample", "inputs": {"prompt": "Hi"}, "mode": "mock"});
    let started = stage.call("POST /v1/runs", &body).await;
    let run = started.body["run_id"].as_str().expect("an id").to_owned();
    stage.until(&run, "succeeded").await;
    let child = &stage.runs_of("models/complete").await[0];
    assert_eq!(
        (&child["mode"], &child["parent"]),
        (&json!("mock"), &json!(format!("default/{run}")))
    );
}

#[tokio::test]
async fn k019_what_is_said_may_look_like_an_address() {
    let stage = Stage::start().await;
    model(&stage).await;
    let mut peer = stage.principal().await;
    peer.ask("1", "sample", json!({"prompt": "world://nowhere/at-all"})).await;
    let answer = peer.response("1").await;
    assert_eq!(answer["status"], "accepted", "{answer}");
    let notify = json!({"id": "2", "kind": "notify", "type": "notification",
                        "payload": {"message": "world://nowhere/at-all"}});
    peer.say(notify).await;
    assert_eq!(peer.response("2").await, json!({"ok": true}));
    peer.ask("3", "form", json!({"message": "world://nowhere/at-all"})).await;
    assert_eq!(stage.question().await["title"], "world://nowhere/at-all");
}
