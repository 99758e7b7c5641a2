//! Tasks as peers of operators know them, and what a restart leaves of them.

use crate::stage::{Stage, eventually, word};
use serde_json::{Value, json};
use wharf_domain::Caller;
use wharf_engine::NewFlow;

#[tokio::test]
async fn o028_a_task_is_answered_with_its_result() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let request = json!({ "agent": "coder", "operator_sid": key.sid, "input": "Do it." });
    let working = async {
        let spawn = seat.hear("spawn").await;
        assert_eq!(stage.submit(&spawn, "done").await.status, 204);
        spawn
    };
    let (answer, spawn) = tokio::join!(stage.call("POST /v1/tasks", &request), working);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.body["result"], json!({ "value": "done" }));
    assert!(word(&answer.body, "task_id").starts_with("T-"));
    assert!(word(&answer.body, "run_id").starts_with("R-"));
    assert_eq!(spawn["run_id"], answer.body["run_id"]);
}

#[tokio::test]
async fn o028_a_detached_task_is_answered_at_once_and_seen_as_a_run() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let request = json!({
        "blueprint": "coder", "operator_sid": key.sid, "init_ctx": { "prompt": "x", "n": 1 },
        "detach": true, "run_id": "mine", "ttl_secs": 60,
    });
    let answer = stage.call("POST /v1/tasks", &request).await;
    assert_eq!((answer.status, &answer.body["status"]), (202, &json!("running")));
    assert_eq!(answer.body["run_id"], "mine", "ids of the caller stay as they are");
    let spawn = seat.hear("spawn").await;
    assert_eq!(stage.prompt(&spawn).await.body["inputs"]["n"], 1);
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until("mine", "succeeded").await;
}

#[tokio::test]
async fn o028_a_task_that_goes_wrong_says_so_with_a_code() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let request = json!({ "agent": "coder", "operator_sid": key.sid });
    let failing = async {
        let spawn = seat.hear("spawn").await;
        seat.say(json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "error": "no" })).await;
    };
    let (answer, ()) = tokio::join!(stage.call("POST /v1/tasks", &request), failing);
    assert_eq!(answer.refused(), (502, "operator.failed"));
    assert!(word(&answer.body["error"]["details"], "run_id").starts_with("R-"));
    let late = json!({ "agent": "coder", "operator_sid": key.sid, "timeout_secs": 1 });
    let answer = stage.call("POST /v1/tasks", &late).await;
    assert_eq!(answer.refused(), (504, "tool.timeout"));
    let reader = stage.token(json!({ "verbs": ["read"] })).await;
    let other = json!({ "agent": "other", "operator_sid": key.sid });
    let denied = stage.call_as(&reader, "POST /v1/tasks", &other).await;
    assert_eq!(denied.refused(), (403, "permission.denied"));
    let tools = stage.call("GET /v1/tools?limit=100", &Value::Null).await;
    assert!(tools.text.contains("/coder") && !tools.text.contains("/other"), "{tools:?}");
}

/// A body of the real client, as it was recorded.
fn recorded(name: &str) -> Value {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../kernel/wire/testdata/operator_v1");
    let text = std::fs::read_to_string(format!("{folder}/upstream/{name}.json")).expect("there");
    serde_json::from_str(&text).expect("JSON")
}

#[tokio::test]
async fn o028_every_refusal_of_a_task_has_its_status_and_code() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let first = json!({ "agent": "wharf/echo", "input": { "text": "a" }, "run_id": "taken" });
    assert_eq!(stage.call("POST /v1/tasks", &first).await.status, 200);
    let on_seat = |more: Value| {
        let mut request = json!({ "agent": "coder", "operator_sid": key.sid });
        for (name, value) in more.as_object().expect("an object") {
            request[name] = value.clone();
        }
        request
    };
    for (request, refused) in [
        (json!({}), (422, "request.invalid")),
        (on_seat(json!({ "agent": "a b" })), (422, "request.invalid")),
        (on_seat(json!({ "agent": 7 })), (422, "request.invalid")),
        (on_seat(json!({ "run_id": "no good" })), (422, "request.invalid")),
        (on_seat(json!({ "durability": "rock" })), (422, "request.invalid")),
        (on_seat(json!({ "operator": { "spawn_hook_id": "x y" } })), (422, "request.invalid")),
        (json!({ "blueprint": { "kind": "id" } }), (422, "request.invalid")),
        (json!({ "blueprint": ["bb"] }), (422, "request.invalid")),
        (recorded("launch.inline"), (422, "request.invalid")),
        (json!({ "agent": "wharf/sleep", "input": { "ms": "x" } }), (422, "tool.invalid_input")),
        (json!({ "agent": "no/such" }), (404, "tool.not_found")),
        (on_seat(json!({ "operator_sid": "S-nothing" })), (404, "seat.not_found")),
        (
            json!({ "agent": "wharf/echo", "input": { "text": "b" }, "run_id": "taken" }),
            (409, "run.conflict"),
        ),
        (on_seat(json!({ "timeout_secs": 1 })), (504, "tool.timeout")),
    ] {
        let answer = stage.call("POST /v1/tasks", &request).await;
        assert_eq!(answer.refused(), refused, "{request}");
        assert!(!word(&answer.body["error"], "message").is_empty(), "{request}");
    }
    let broken = stage.send(crate::stage::OWNER, "POST /v1/tasks", "application/json", b"{oops");
    assert_eq!(broken.await.refused(), (400, "request.invalid"), "not even JSON");
    seat.hear("spawn").await;
    seat.hear("cancel").await;
    let leaving = async {
        seat.hear("spawn").await;
        let line = format!("DELETE /v1/operators/{}", key.sid);
        assert_eq!(stage.call(&line, &Value::Null).await.status, 204);
    };
    let request = on_seat(json!({}));
    let (answer, ()) = tokio::join!(stage.call("POST /v1/tasks", &request), leaving);
    assert_eq!(answer.refused(), (503, "tool.unavailable"));
}

#[tokio::test]
async fn o028_the_bodies_of_the_real_client_join_and_launch() {
    let stage = Stage::start().await;
    let key = stage.seat(recorded("join")).await;
    let mut seat = stage.open(&key).await;
    for name in ["launch", "launch.detached"] {
        let mut request = recorded(name);
        request["operator_sid"] = json!(key.sid);
        request["operator"] = Value::Null;
        request["detach"] = json!(true);
        let answer = stage.call("POST /v1/tasks", &request).await;
        assert_eq!((answer.status, &answer.body["status"]), (202, &json!("running")), "{name}");
        let spawn = seat.hear("spawn").await;
        assert_eq!(spawn["agent"], "bb");
        let handle = word(&spawn, "worker_handle");
        // Its worker reports before it submits, and names no task.
        let stats = recorded("stats").to_string();
        let told = stage.worker(handle, "POST /v1/worker/stats", &stats).await;
        assert_eq!(told.status, 204, "{told:?}");
        let degraded = recorded("degradation").to_string();
        let told = stage.worker(handle, "POST /v1/worker/degradation", &degraded).await;
        assert_eq!(told.status, 204, "{told:?}");
        assert_eq!(stage.worker(handle, "POST /v1/worker/submit", "done").await.status, 204);
        seat.say(json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "value": {} })).await;
        seat.is_quiet().await;
        let run = word(&answer.body, "run_id");
        stage.until(run, "succeeded").await;
        let trace = stage.call(&format!("GET /v1/runs/{run}/trace?latest=50"), &Value::Null).await;
        let events = trace.body["items"].as_array().expect("items").clone();
        let stats = events.iter().find(|event| event["key"] == "stats").expect("kept");
        assert_eq!(stats["value"]["usage"]["input_tokens"], 1200);
        let text = trace.text;
        assert!(
            text.contains("WebFetch failed: timed out; instead: used the cached page"),
            "{text}"
        );
    }
    let seen = stage.call_as(&key.token, "GET /v1/operators", &Value::Null).await;
    assert_eq!(seen.body["operators"][0]["sid"], json!(key.sid), "{seen:?}");
    let leave = format!("DELETE /v1/operators/{}", key.sid);
    assert_eq!(stage.call_as(&key.token, &leave, &Value::Null).await.status, 204);
}

#[tokio::test]
async fn o005_a_restart_between_spawn_and_submit_loses_nothing() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let stage = stage.killed().await;
    let early = async || (stage.prompt(&spawn).await.status == 200).then_some(());
    eventually(early).await;
    let mut seat = stage.open(&key).await;
    let again = seat.hear("spawn").await;
    assert_eq!(again["redelivered"], true, "{again}");
    for same in ["req_id", "task_id", "worker_handle", "attempt", "run_id"] {
        assert_eq!(again[same], spawn[same], "{same}");
    }
    let line = format!("GET /v1/worker/prompt?task_id={}", word(&spawn, "task_id"));
    let token = word(&spawn, "capability_token");
    assert_eq!(stage.worker(token, &line, "").await.body["prompt"], "Do it.");
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    let stage = stage.killed().await;
    let ended = stage.run(&run).await;
    assert_eq!(
        (&ended["status"], &ended["outputs"]["value"]),
        (&json!("succeeded"), &json!("done"))
    );
    let mut seat = stage.open(&key).await;
    seat.is_quiet().await;
}

#[tokio::test]
async fn o005_asks_and_gates_are_sent_again_after_a_restart() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let gate = json!({ "operator": { "spawn_hook_id": key.sid } });
    let run = stage.task(&key.sid, gate).await;
    let hook = seat.hear("hook_before").await;
    let stage = stage.killed().await;
    let mut seat = stage.open(&key).await;
    let again = seat.hear("hook_before").await;
    assert_eq!((&again["req_id"], &again["redelivered"]), (&hook["req_id"], &json!(true)));
    seat.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
    let spawn = seat.hear("spawn").await;
    assert_eq!(spawn.get("redelivered"), None::<&Value>, "{spawn}");
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o015_a_senior_who_was_asked_before_a_restart_still_decides() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (senior_key, mut senior) = stage.sit().await;
    let run =
        stage.task(&key.sid, json!({ "operator": { "senior_bridge_id": senior_key.sid } })).await;
    let spawn = seat.hear("spawn").await;
    let line = format!("POST /v1/worker/submit?ok=false&task_id={}", word(&spawn, "task_id"));
    let handle = word(&spawn, "worker_handle");
    assert_eq!(stage.worker(handle, &line, "stuck").await.status, 204);
    let ask = senior.hear("ask").await;
    let stage = stage.killed().await;
    let (mut seat, mut senior) = (stage.open(&key).await, stage.open(&senior_key).await);
    let again = senior.hear("ask").await;
    assert_eq!(again["req_id"], ask["req_id"]);
    assert_eq!(stage.worker(handle, &line, "stuck").await.status, 204, "an equal repeat");
    assert_eq!(stage.submit(&spawn, "other").await.refused(), (409, "worker.already_final"));
    senior.say(json!({ "type": "answer", "req_id": ask["req_id"], "value": 42 })).await;
    let ended = stage.until(&run, "succeeded").await;
    assert_eq!(ended["outputs"], json!({ "original": "stuck", "senior_answer": 42 }));
    seat.is_quiet().await;
}

#[tokio::test]
async fn o020_a_worker_of_before_a_restart_learns_that_its_run_is_over() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
    let stage = stage.killed().await;
    let line = format!("GET /v1/worker/prompt?task_id={}", word(&spawn, "task_id"));
    for credential in ["worker_handle", "capability_token"] {
        for line in [line.as_str(), "GET /v1/worker/prompt"] {
            let answer = stage.worker(word(&spawn, credential), line, "").await;
            assert_eq!(answer.refused(), (410, "worker.run_over"), "{credential} {line}");
        }
    }
    let other = "GET /v1/worker/prompt?task_id=ST-other";
    let answer = stage.worker(word(&spawn, "worker_handle"), other, "").await;
    assert_eq!(answer.refused(), (403, "permission.denied"));
    let forged = stage.worker("wh-0123456789", "GET /v1/worker/prompt", "").await;
    assert_eq!(forged.refused(), (401, "auth.invalid"));
}

#[tokio::test]
async fn o022_after_a_restart_an_equal_final_is_no_error_and_another_one_is() {
    let stage = Stage::start().await;
    let tools = json!({ "tools": [{ "name": "reader", "side_effects": false }] });
    let key = stage.seat(json!({ "capability_manifest": tools })).await;
    let mut seat = stage.open(&key).await;
    let run = stage.task(&key.sid, json!({ "agent": "reader" })).await;
    let first = seat.hear("spawn").await;
    let failed = "POST /v1/worker/submit?ok=false";
    let (one, body) = (word(&first, "worker_handle"), r#"{"why":"stuck"}"#);
    assert_eq!(stage.worker(one, failed, body).await.status, 204);
    let second = seat.hear("spawn").await;
    assert_eq!(stage.submit(&second, r#"{"n":1}"#).await.status, 204);
    stage.until(&run, "succeeded").await;
    let mut stage = stage.killed().await;
    // The worker knows nothing but its handle, and has not heard what became of its result.
    let two = word(&second, "worker_handle");
    for _ in 0..2 {
        let submit = "POST /v1/worker/submit";
        assert_eq!(stage.worker(two, submit, r#"{"n":1}"#).await.status, 204);
        let other = stage.worker(two, submit, r#"{"n":2}"#).await;
        assert_eq!(other.refused(), (409, "worker.already_final"));
        assert_eq!(stage.worker(one, failed, body).await.status, 204, "of the first attempt");
        let token = word(&second, "capability_token");
        assert_eq!(stage.worker(token, submit, r#"{"n":1}"#).await.status, 204);
        stage = stage.killed().await;
    }
    assert_eq!(stage.run(&run).await["outputs"], json!({ "n": 1 }));
}

#[tokio::test]
async fn o019_a_handle_alone_leads_to_its_task_also_after_a_restart() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let handle = word(&spawn, "worker_handle").to_owned();
    let rest = handle.strip_prefix("wh-").expect("its prefix");
    assert!(rest.len() >= 32 && rest.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{handle}");
    let (_, other) = {
        let run = stage.task(&key.sid, json!({})).await;
        (run, seat.hear("spawn").await)
    };
    assert_ne!(other["worker_handle"], spawn["worker_handle"]);
    let stage = stage.killed().await;
    let prompted = async || {
        let answer = stage.worker(&handle, "GET /v1/worker/prompt", "").await;
        // Until the task is taken up again the worker is asked to try again, and nothing else.
        assert!(matches!(answer.status, 200 | 503), "{answer:?}");
        (answer.status == 200).then_some(answer)
    };
    let prompt = eventually(prompted).await;
    assert_eq!(prompt.body["task_id"], spawn["task_id"]);
    let mut seat = stage.open(&key).await;
    let again = [seat.hear("spawn").await, seat.hear("spawn").await];
    let same = again.iter().find(|it| it["worker_handle"] == json!(handle)).expect("sent again");
    assert_eq!((&same["task_id"], &same["attempt"]), (&spawn["task_id"], &json!(1)));
    assert_eq!(stage.worker(&handle, "POST /v1/worker/submit", "done").await.status, 204);
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["value"], "done");
}

/// A document that gives back what it was given.
fn document(text: &str) -> Value {
    json!({ "name": "shout", "description": "Gives back what it was given.",
        "steps": [{ "id": "say", "call": { "tool": "wharf/echo",
            "inputs": { "text": text } } }],
        "output": { "said": "${steps.say.outputs.text}" } })
}

#[tokio::test]
async fn o029_a_task_is_a_flow_by_its_name_or_by_its_document() {
    let stage = Stage::start().await;
    let flows = stage.handle.flows();
    let new = NewFlow { document: document("Hello ${inputs.who}"), pin: false };
    flows.add(&Caller::owner(), new).await.expect("added");
    for blueprint in [
        json!("shout"),
        json!("flow/shout"),
        json!("flow/shout@1"),
        json!({ "kind": "id", "id": "shout" }),
    ] {
        let task = json!({ "blueprint": blueprint, "input": { "who": "Ada" } });
        let answer = stage.call("POST /v1/tasks", &task).await;
        assert_eq!(answer.status, 200, "{blueprint} {answer:?}");
        assert_eq!(answer.body["result"]["said"], "Hello Ada", "{blueprint}");
    }
    let task = json!({ "blueprint": document("Bye ${inputs.who}"), "input": { "who": "Ada" } });
    let answer = stage.call("POST /v1/tasks", &task).await;
    assert_eq!((answer.status, &answer.body["result"]["said"]), (200, &json!("Bye Ada")));
    assert_eq!(flows.list().len(), 1, "a document that comes with a task is not listed");
    let tools = stage.call("GET /v1/tools?limit=100", &Value::Null).await;
    assert!(tools.text.contains("flow/shout@1") && !tools.text.contains("inline-"), "{tools:?}");
}

#[tokio::test]
async fn o029_a_document_that_is_not_right_is_refused_with_its_places() {
    let stage = Stage::start().await;
    let wrong = document("${steps.nobody.outputs}");
    let answer = stage.call("POST /v1/tasks", &json!({ "blueprint": wrong })).await;
    assert_eq!(answer.refused(), (422, "flow.invalid"));
    let findings = &answer.body["error"]["details"]["findings"];
    assert_eq!(findings[0]["place"], "steps[0].inputs.text", "{answer:?}");
    let unknown = stage.call("POST /v1/tasks", &json!({ "blueprint": "nothing" })).await;
    assert_eq!(unknown.refused(), (404, "tool.not_found"));
}
