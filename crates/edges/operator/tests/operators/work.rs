//! From a spawn to its end: prompts, finals, acks, failures, cancels, retries.

use crate::stage::{Stage, eventually, word};
use serde_json::{Value, json};

fn ack(spawn: &Value, more: &Value) -> Value {
    let mut ack = json!({ "type": "spawn_ack", "req_id": spawn["req_id"] });
    for (name, value) in more.as_object().expect("an object") {
        ack[name] = value.clone();
    }
    ack
}

#[tokio::test]
async fn o017_a_spawn_says_all_a_worker_needs_and_no_more() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({ "input": "A secret prompt." })).await;
    let spawn = seat.hear("spawn").await;
    assert!(!spawn.to_string().contains("secret prompt"), "the prompt goes over HTTP");
    assert!(!spawn.as_object().expect("an object").values().any(Value::is_null), "{spawn}");
    assert_eq!((&spawn["agent"], &spawn["attempt"]), (&json!("coder"), &json!(1)));
    assert_eq!(spawn["run_id"], json!(run));
    assert!(spawn["deadline_ms"].as_u64().is_some_and(|ms| ms > 0));
    assert!(word(&spawn, "task_id").starts_with("ST-"));
    let (handle, directive) = (word(&spawn, "worker_handle"), word(&spawn, "directive"));
    assert!(handle.starts_with("wh-") && handle.len() >= 35, "{handle}");
    assert!(directive.contains(handle) && directive.contains(word(&spawn, "task_id")));
    let prompt = stage.prompt(&spawn).await;
    assert_eq!(prompt.status, 200, "{prompt:?}");
    assert_eq!(prompt.body["prompt"], "A secret prompt.");
    assert_eq!(prompt.body["attempt"], 1);
    assert_eq!(prompt.body["task_id"], spawn["task_id"]);
}

#[tokio::test]
async fn o008_a_spawn_names_the_kind_of_worker_that_the_tool_declares() {
    let stage = Stage::start().await;
    let worker = json!({ "variant": "mse-worker-coder", "tools": ["Read", "Grep"] });
    let tools = json!({ "tools": [{ "name": "coder", "worker": worker }, "plain"] });
    let key = stage.seat(json!({ "capability_manifest": tools })).await;
    let mut seat = stage.open(&key).await;
    stage.task(&key.sid, json!({ "agent": "coder" })).await;
    assert_eq!(seat.hear("spawn").await["worker"], worker);
    stage.task(&key.sid, json!({ "agent": "plain" })).await;
    assert_eq!(seat.hear("spawn").await.get("worker"), None);
    let stage = stage.killed().await;
    let mut seat = stage.open(&key).await;
    for _ in 0..2 {
        let spawn = seat.hear("spawn").await;
        let declared = (spawn["agent"] == "coder").then_some(&worker);
        assert_eq!(spawn.get("worker"), declared, "also after a restart: {spawn}");
    }
    let wrong = json!({ "tools": [{ "name": "coder", "worker": 7 }] });
    let refused = stage.call("POST /v1/operators", &json!({ "capability_manifest": wrong })).await;
    assert_eq!(refused.refused(), (400, "request.invalid"));
}

#[tokio::test]
async fn o021_a_prompt_carries_system_context_and_inputs() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let input = json!({ "prompt": "p", "system": "s", "context": { "a": 1 }, "more": [2] });
    stage.task(&key.sid, json!({ "input": input })).await;
    let spawn = seat.hear("spawn").await;
    let body = stage.prompt(&spawn).await.body;
    assert_eq!((&body["prompt"], &body["system"]), (&json!("p"), &json!("s")));
    assert_eq!((&body["context"]["a"], &body["inputs"]["more"]), (&json!(1), &json!([2])));
}

#[tokio::test]
async fn o025_a_final_ends_the_run_and_the_ack_after_it_changes_nothing() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    let ended = stage.until(&run, "succeeded").await;
    assert_eq!(ended["outputs"]["value"], "done", "{ended}");
    seat.say(ack(&spawn, &json!({ "value": {} }))).await;
    seat.is_quiet().await;
    assert_eq!(stage.run(&run).await["outputs"]["value"], "done");
}

#[tokio::test]
async fn o025_an_empty_ack_before_the_final_waits_for_it() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    for empty in [json!({ "value": {} }), json!({}), json!({ "value": null })] {
        let run = stage.task(&key.sid, json!({})).await;
        let spawn = seat.hear("spawn").await;
        seat.say(ack(&spawn, &empty)).await;
        seat.is_quiet().await;
        assert_eq!(stage.run(&run).await["status"], "running");
        assert_eq!(stage.prompt(&spawn).await.status, 200);
        assert_eq!(stage.submit(&spawn, "late").await.status, 204);
        assert_eq!(stage.until(&run, "succeeded").await["outputs"]["value"], "late");
    }
}

#[tokio::test]
async fn o025_a_spawn_that_was_taken_is_not_sent_again() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    seat.say(ack(&spawn, &json!({}))).await;
    seat.is_quiet().await;
    drop(seat);
    let mut seat = stage.open(&key).await;
    seat.is_quiet().await;
    assert_eq!(stage.submit(&spawn, "late").await.status, 204);
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o025_a_value_in_the_ack_is_the_final_when_there_is_no_other() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    for (value, outputs) in [
        (json!({ "n": 1 }), json!({ "n": 1 })),
        (json!("text"), json!({ "value": "text" })),
        (json!([1]), json!({ "value": [1] })),
        (json!(false), json!({ "value": false })),
    ] {
        let run = stage.task(&key.sid, json!({})).await;
        let spawn = seat.hear("spawn").await;
        seat.say(ack(&spawn, &json!({ "value": value }))).await;
        assert_eq!(stage.until(&run, "succeeded").await["outputs"], outputs);
        let late = stage.submit(&spawn, "other").await;
        assert_eq!(late.refused(), (409, "worker.already_final"));
    }
}

#[tokio::test]
async fn o030_what_a_worker_used_up_is_kept_and_its_cost_is_the_runs() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let stats = json!({ "tokens": 12, "cost_micro": 7 });
    seat.say(ack(&spawn, &json!({ "value": { "n": 1 }, "stats": stats }))).await;
    assert_eq!(stage.until(&run, "succeeded").await["cost_micro"], 7);
    let trace = stage.call(&format!("GET /v1/runs/{run}/trace?latest=50"), &json!(null)).await;
    let items = trace.body["items"].as_array().expect("items");
    let kept = items.iter().find(|item| item["event"] == "partial" && item["key"] == "stats");
    assert_eq!(kept.expect("kept")["value"], stats, "{items:?}");
}

/// Ways in which a worker and its operator tell what was used up.
#[derive(Debug, Clone, Copy)]
enum Told {
    AckThenFinal,
    FinalThenAck,
    FinalThenReconnectThenAck,
    FinalThenRestartThenAck,
    RouteThenFinal,
    FinalThenRoute,
    FinalThenRestartThenRoute,
    Result,
    ProgressThenFinal,
}

#[tokio::test]
async fn o030_what_a_worker_cost_counts_in_whatever_order_it_is_told_and_once() {
    use Told::*;
    let all = [
        AckThenFinal,
        FinalThenAck,
        FinalThenReconnectThenAck,
        FinalThenRestartThenAck,
        RouteThenFinal,
        FinalThenRoute,
        FinalThenRestartThenRoute,
        Result,
        ProgressThenFinal,
    ];
    for told in all {
        let mut stage = Stage::start().await;
        let (key, mut seat) = stage.sit().await;
        let run = stage.task(&key.sid, json!({})).await;
        let spawn = seat.hear("spawn").await;
        let handle = word(&spawn, "worker_handle").to_owned();
        let usage = json!({ "input_tokens": 12 });
        let stats = json!({ "model": "large", "usage": usage, "cost_micro": 700 });
        let acked = ack(&spawn, &json!({ "value": {}, "stats": stats }));
        let route = "POST /v1/worker/stats";
        match told {
            AckThenFinal => {
                seat.say(acked.clone()).await;
                seat.is_quiet().await;
            }
            RouteThenFinal => {
                let told = stage.worker(&handle, route, &stats.to_string()).await;
                assert_eq!(told.status, 204, "{told:?}");
            }
            ProgressThenFinal => {
                let body = r#"{"text":"half","cost_micro":700}"#;
                let told = stage.worker(&handle, "POST /v1/worker/progress", body).await;
                assert_eq!(told.status, 204, "{told:?}");
            }
            _ => {}
        }
        if let Result = told {
            let body = json!({ "task_id": spawn["task_id"], "value": 1, "cost_micro": 700 });
            let given = stage.worker(&handle, "POST /v1/worker/result", &body.to_string()).await;
            assert_eq!(given.status, 204, "{given:?}");
        } else {
            assert_eq!(stage.submit(&spawn, "done").await.status, 204, "{told:?}");
        }
        let ended = stage.until(&run, "succeeded").await;
        if let FinalThenRestartThenAck | FinalThenRestartThenRoute = told {
            stage = stage.killed().await;
        }
        for _ in 0..2 {
            match told {
                FinalThenAck => seat.say(acked.clone()).await,
                FinalThenReconnectThenAck | FinalThenRestartThenAck => {
                    seat = stage.open(&key).await;
                    seat.say(acked.clone()).await;
                    seat.is_quiet().await;
                }
                FinalThenRoute | FinalThenRestartThenRoute => {
                    let told = stage.worker(&handle, route, &stats.to_string()).await;
                    assert_eq!(told.status, 204, "{told:?}");
                }
                _ => {}
            }
        }
        let booked = async || {
            let shown = stage.run(&run).await;
            assert!(shown["cost_micro"].as_u64().is_some_and(|cost| cost <= 700), "{told:?}");
            (shown["cost_micro"] == 700).then_some(shown)
        };
        let shown = eventually(booked).await;
        let over = !matches!(told, AckThenFinal | RouteThenFinal | ProgressThenFinal | Result);
        let kept = async || {
            let audit = stage.handle.audit().list(0, 10_000).await.expect("readable");
            let late = audit.iter().filter(|it| it.record.event == "operator.late_usage");
            let tokens: Vec<_> = late.map(|it| it.record.facts["input_tokens"].clone()).collect();
            (tokens.len() >= usize::from(over)).then_some(tokens)
        };
        let tokens = eventually(kept).await;
        assert_eq!(tokens, vec![json!(12); usize::from(over)], "{told:?}: kept once");
        assert_eq!(shown["status"], ended["status"], "{told:?}");
        assert_eq!(shown["ended_at"], ended["ended_at"], "{told:?}");
    }
}

#[tokio::test]
async fn o030_a_worker_that_passes_the_budget_of_its_run_is_stopped() {
    let stage = Stage::start().await;
    let key = stage.seat(json!({ "capability_manifest": { "tools": ["one", "two"] } })).await;
    let mut seat = stage.open(&key).await;
    let routes = [
        ("one", "POST /v1/worker/progress", json!({ "text": "half", "cost_micro": 1_500 })),
        ("two", "POST /v1/worker/stats", json!({ "cost_micro": 1_500 })),
    ];
    for (agent, line, body) in routes {
        let request = json!({
            "tool": format!("{}/{agent}", key.sid), "inputs": { "prompt": "p" }, "budget_micro": 1_000,
        });
        let started = stage.call("POST /v1/runs", &request).await;
        assert_eq!(started.status, 202, "{started:?}");
        let run = word(&started.body, "run_id");
        let spawn = seat.hear("spawn").await;
        let handle = word(&spawn, "worker_handle");
        let told = stage.worker(handle, line, &body.to_string()).await;
        assert_eq!(told.status, 204, "{told:?}");
        let ended = stage.until(run, "failed").await;
        assert_eq!(ended["error"]["code"], "budget.exceeded", "{ended}");
        assert_eq!(ended["cost_micro"], 1_500, "{ended}");
        assert_eq!(seat.hear("cancel").await["req_id"], spawn["req_id"]);
        assert_eq!(stage.submit(&spawn, "late").await.refused(), (410, "worker.run_over"));
    }
}

#[tokio::test]
async fn o028_the_latest_events_of_a_run_can_be_listed() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    let trace = async |latest: u32| {
        let line = format!("GET /v1/runs/{run}/trace?latest={latest}");
        let answer = stage.call(&line, &json!(null)).await;
        let items = answer.body["items"].as_array().expect("items").clone();
        items.into_iter().map(|item| item["event"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(trace(10).await, [json!("queued"), json!("started")]);
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
    assert_eq!(trace(1).await, [json!("finished")]);
}

#[tokio::test]
async fn o025_what_an_operator_says_of_failure_is_kept() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    for (more, text) in [
        (json!({ "error": "no compiler" }), "no compiler"),
        (json!({ "ok": false, "error": "no disk" }), "no disk"),
        (json!({ "ok": false }), "The operator gave no reason."),
    ] {
        let run = stage.task(&key.sid, json!({})).await;
        let spawn = seat.hear("spawn").await;
        seat.say(ack(&spawn, &more)).await;
        let run = stage.until(&run, "failed").await;
        let error = &run["error"];
        assert_eq!((&error["code"], &error["message"]), (&json!("operator.failed"), &json!(text)));
        let late = stage.submit(&spawn, "late").await;
        assert_eq!(late.refused(), (410, "worker.run_over"));
    }
}

#[tokio::test]
async fn o025_a_contradiction_after_the_final_is_recorded_and_the_final_stands() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    seat.say(ack(&spawn, &json!({ "ok": false, "error": "no" }))).await;
    seat.is_quiet().await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["value"], "done");
    let audit = stage.handle.audit().list(0, 10_000).await.expect("readable");
    assert!(audit.iter().any(|sealed| sealed.record.event == "operator.ack_conflict"));
}

#[tokio::test]
async fn o025_a_halt_ends_the_run_without_another_attempt() {
    let stage = Stage::start().await;
    let tools = json!({ "tools": [{ "name": "reader", "side_effects": false }] });
    let key = stage.seat(json!({ "capability_manifest": tools })).await;
    let mut seat = stage.open(&key).await;
    let run = stage.task(&key.sid, json!({ "agent": "reader" })).await;
    let spawn = seat.hear("spawn").await;
    let halt = json!({
        "type": "spawn_halt", "req_id": spawn["req_id"], "reason": "locked", "value": { "a": 1 },
    });
    seat.say(halt).await;
    let run = stage.until(&run, "failed").await;
    let error = &run["error"];
    assert_eq!((&error["code"], &error["message"]), (&json!("operator.halted"), &json!("locked")));
    assert_eq!(error["details"]["value"], json!({ "a": 1 }));
    assert_eq!(run["attempt"], 1, "{run}");
    seat.is_quiet().await;
}

#[tokio::test]
async fn o015_a_senior_is_asked_when_a_worker_failed_and_its_answer_is_the_outcome() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (senior_key, mut senior) = stage.sit().await;
    let operator = json!({ "senior_bridge_id": senior_key.sid });
    let run = stage.task(&key.sid, json!({ "operator": operator, "timeout_secs": 60 })).await;
    let spawn = seat.hear("spawn").await;
    let line = format!("POST /v1/worker/submit?ok=false&task_id={}", word(&spawn, "task_id"));
    let handle = word(&spawn, "worker_handle");
    assert_eq!(stage.worker(handle, &line, r#"{"why":"stuck"}"#).await.status, 204);
    let ask = senior.hear("ask").await;
    assert_eq!(ask["question"]["detail"], json!({ "why": "stuck" }));
    let left = ask["deadline_ms"].as_u64().expect("a deadline");
    assert!(left > 200_000, "a senior's time begins when it is asked, not with the job: {left}");
    assert_eq!(stage.worker(handle, &line, r#"{"why":"stuck"}"#).await.status, 204);
    senior.say(json!({ "type": "answer", "req_id": ask["req_id"], "value": "use 42" })).await;
    let ended = stage.until(&run, "succeeded").await;
    let wanted = json!({ "original": { "why": "stuck" }, "senior_answer": "use 42" });
    assert_eq!(ended["outputs"], wanted);
    assert_eq!(stage.worker(handle, &line, r#"{"why":"stuck"}"#).await.status, 204, "a repeat");
    assert_eq!(stage.submit(&spawn, "other").await.refused(), (409, "worker.already_final"));
}

#[tokio::test]
async fn o026_a_cancel_reaches_the_operator_and_its_worker() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    for taken in [false, true] {
        let run = stage.task(&key.sid, json!({})).await;
        let spawn = seat.hear("spawn").await;
        if taken {
            seat.say(ack(&spawn, &json!({}))).await;
            seat.is_quiet().await;
        }
        let answer = stage.call(&format!("POST /v1/runs/{run}/cancel"), &json!({})).await;
        assert!(answer.status < 300, "{answer:?}");
        let cancel = seat.hear("cancel").await;
        assert_eq!((&cancel["req_id"], &cancel["task_id"]), (&spawn["req_id"], &spawn["task_id"]));
        for answer in [stage.prompt(&spawn).await, stage.submit(&spawn, "late").await] {
            assert_eq!(answer.refused(), (410, "worker.run_over"));
            assert_eq!(answer.body["error"]["details"]["canceled"], true, "{answer:?}");
        }
        stage.until(&run, "canceled").await;
        seat.say(ack(&spawn, &json!({ "value": { "late": true } }))).await;
        assert_eq!(seat.hear("error").await["code"], "operator.request_withdrawn");
    }
}

#[tokio::test]
async fn o026_a_cancel_waits_for_an_operator_that_is_away() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let run = stage.task(&key.sid, json!({})).await;
    let spawn = seat.hear("spawn").await;
    drop(seat);
    stage.call(&format!("POST /v1/runs/{run}/cancel"), &json!({})).await;
    stage.until(&run, "canceled").await;
    let mut seat = stage.open(&key).await;
    assert_eq!(seat.hear("cancel").await["req_id"], spawn["req_id"]);
    seat.is_quiet().await;
}

#[tokio::test]
async fn o027_a_retry_has_new_credentials_and_the_old_ones_are_fenced() {
    let stage = Stage::start().await;
    let tools = json!({ "tools": [{ "name": "reader", "side_effects": false }] });
    let key = stage.seat(json!({ "capability_manifest": tools })).await;
    let mut seat = stage.open(&key).await;
    let run = stage.task(&key.sid, json!({ "agent": "reader" })).await;
    let first = seat.hear("spawn").await;
    seat.say(ack(&first, &json!({ "error": "try again" }))).await;
    let second = seat.hear("spawn").await;
    assert_eq!((&first["attempt"], &second["attempt"]), (&json!(1), &json!(2)));
    for field in ["req_id", "task_id", "worker_handle", "capability_token"] {
        assert_ne!(first[field], second[field], "{field}");
    }
    for credential in ["worker_handle", "capability_token"] {
        let line = format!("GET /v1/worker/prompt?task_id={}", word(&first, "task_id"));
        let stale = stage.worker(word(&first, credential), &line, "").await;
        assert_eq!(stale.refused(), (410, "worker.superseded"));
    }
    assert_eq!(stage.submit(&first, "stale").await.refused(), (410, "worker.superseded"));
    let body = json!({ "task_id": second["task_id"], "value": 1, "attempt": 1 }).to_string();
    let handle = word(&second, "worker_handle");
    let stale = stage.worker(handle, "POST /v1/worker/result", &body).await;
    assert_eq!(stale.refused(), (410, "worker.superseded"));
    assert_eq!(stage.submit(&second, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o007_a_job_that_nobody_finishes_in_time_is_over_for_operator_and_worker() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    for acknowledged in [false, true] {
        let run = stage.task(&key.sid, json!({ "timeout_secs": 1 })).await;
        let spawn = seat.hear("spawn").await;
        if acknowledged {
            seat.say(ack(&spawn, &json!({ "value": {} }))).await;
        }
        assert_eq!(stage.until(&run, "failed").await["error"]["code"], "tool.timeout");
        assert_eq!(seat.hear("cancel").await["req_id"], spawn["req_id"]);
        assert_eq!(stage.submit(&spawn, "late").await.refused(), (410, "worker.run_over"));
    }
}
