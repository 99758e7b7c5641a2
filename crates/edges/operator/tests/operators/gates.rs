//! Seats that gate runs and answer questions.

use crate::stage::{Seat, SeatKey, Stage, eventually, word};
use serde_json::{Value, json};
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Caller, Rule, When, WorldSettings};
use wharf_vocab::{SeatId, WorldId};

fn gated(key: &SeatKey) -> Value {
    json!({ "operator": { "spawn_hook_id": key.sid } })
}

async fn hook_ack(seat: &mut Seat, hook: &Value, more: Value) {
    let mut ack = json!({ "type": "hook_ack", "req_id": hook["req_id"] });
    for (name, value) in more.as_object().expect("an object") {
        ack[name] = value.clone();
    }
    seat.say(ack).await;
}

/// Lets a rule of the world name a seat.
async fn rule(stage: &Stage, tool: &str, key: &SeatKey) {
    let rule = Rule {
        tool: ToolPattern::parse(tool).expect("a pattern"),
        when: When::Always,
        approve: true,
        audience: Audience::Seat(SeatId::new(&key.sid).expect("a seat")),
        patience_ms: None,
    };
    let settings = WorldSettings { policy: vec![rule], ..WorldSettings::default() };
    let world = WorldId::new("default").expect("valid");
    stage.handle.worlds().set(&Caller::owner(), world, settings).await.expect("changed");
}

async fn begin(stage: &Stage, tool: &str, inputs: Value) -> String {
    let request = json!({ "tool": tool, "inputs": inputs });
    let answer = stage.call("POST /v1/runs", &request).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    word(&answer.body, "run_id").to_owned()
}

#[tokio::test]
async fn o013_a_launch_names_the_seat_that_lets_it_pass() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (gate_key, mut gate) = stage.sit().await;
    let run = stage.task(&key.sid, gated(&gate_key)).await;
    let hook = gate.hear("hook_before").await;
    assert_eq!(hook["attempt"], 1, "{hook}");
    assert_eq!(hook["agent"], "coder", "as the task named it");
    assert!(hook["deadline_ms"].as_u64().is_some_and(|ms| ms <= 300_000), "{hook}");
    assert_eq!(hook["run_id"], json!(run));
    seat.is_quiet().await;
    hook_ack(&mut gate, &hook, json!({ "ok": true })).await;
    let spawn = seat.hear("spawn").await;
    assert_eq!(spawn["task_id"], hook["task_id"], "the task whose spawn was gated");
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
    let after = gate.hear("hook_after").await;
    assert_eq!(after["result"], json!({ "value": "done" }));
    for field in ["agent", "task_id", "attempt", "run_id"] {
        assert_eq!(after[field], hook[field], "{field}");
    }
}

/// A tool whose attempts are made again, on a seat of its own.
async fn reader(stage: &Stage) -> (SeatKey, Seat) {
    let tools = json!({ "tools": [{ "name": "reader", "side_effects": false }] });
    let key = stage.seat(json!({ "capability_manifest": tools })).await;
    let seat = stage.open(&key).await;
    (key, seat)
}

#[tokio::test]
async fn o013_each_attempt_passes_the_gate_and_one_that_does_not_is_the_last() {
    let stage = Stage::start().await;
    let (key, mut seat) = reader(&stage).await;
    let (gate_key, mut gate) = stage.sit().await;
    let mut request = gated(&gate_key);
    request["agent"] = json!("reader");
    let run = stage.task(&key.sid, request).await;
    for attempt in 1..=2 {
        let hook = gate.hear("hook_before").await;
        assert_eq!(hook["attempt"], attempt, "{hook}");
        seat.is_quiet().await;
        if attempt == 2 {
            hook_ack(&mut gate, &hook, json!({ "ok": false, "reason": "once is enough" })).await;
            break;
        }
        hook_ack(&mut gate, &hook, json!({ "ok": true })).await;
        let spawn = seat.hear("spawn").await;
        seat.say(json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "error": "no" })).await;
        let after = gate.hear("hook_after").await;
        assert_eq!(after["result"]["error"]["code"], "operator.failed");
        assert_eq!(after["attempt"], attempt);
    }
    let ended = stage.until(&run, "refused").await;
    assert!(word(&ended["error"], "message").contains("once is enough"), "{ended}");
    assert_eq!(ended["attempt"], 1, "the second attempt never began");
    seat.is_quiet().await;
    gate.is_quiet().await;
}

#[tokio::test]
async fn o013_what_a_person_decides_for_a_seat_counts_for_the_run() {
    let stage = Stage::start().await;
    let (key, mut seat) = reader(&stage).await;
    let (gate_key, mut gate) = stage.sit().await;
    let mut request = gated(&gate_key);
    request["agent"] = json!("reader");
    let run = stage.task(&key.sid, request).await;
    let hook = gate.hear("hook_before").await;
    let id = word(&hook, "req_id").trim_start_matches("h-");
    let line = format!("POST /v1/approvals/{id}/decide");
    assert_eq!(stage.call(&line, &json!({ "decision": "allow" })).await.status, 204);
    gate.hear("cancel").await;
    let spawn = seat.hear("spawn").await;
    seat.say(json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "error": "no" })).await;
    gate.hear("hook_after").await;
    let second = seat.hear("spawn").await;
    assert_eq!(second["attempt"], 2, "nobody is asked again");
    assert_eq!(stage.submit(&second, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
    gate.is_quiet().await;
}

#[tokio::test]
async fn o014_a_notice_is_kept_across_restarts_until_a_connection_has_it() {
    let stage = Stage::start().await;
    let (key, mut seat) = reader(&stage).await;
    let (gate_key, mut gate) = stage.sit().await;
    let mut request = gated(&gate_key);
    request["agent"] = json!("reader");
    let run = stage.task(&key.sid, request).await;
    let mut tasks = Vec::new();
    for attempt in 1..=2 {
        let hook = gate.hear("hook_before").await;
        hook_ack(&mut gate, &hook, json!({ "ok": true })).await;
        let spawn = seat.hear("spawn").await;
        tasks.push(spawn["task_id"].clone());
        if attempt == 1 {
            let no = json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "error": "no" });
            seat.say(no).await;
            let after = gate.hear("hook_after").await;
            assert_eq!(after.get("redelivered"), None, "{after}");
            continue;
        }
        drop(gate);
        assert_eq!(stage.submit(&spawn, "done").await.status, 204);
        break;
    }
    stage.until(&run, "succeeded").await;
    let mut stage = stage.killed().await;
    for _ in 0..2 {
        // Nobody comes back before the core is killed once more.
        stage = stage.killed().await;
    }
    let mut gate = stage.open(&gate_key).await;
    let after = gate.hear("hook_after").await;
    let mut last = after.clone();
    if after["attempt"] == 1 {
        // The first one came at the same moment as the connection was lost.
        last = gate.hear("hook_after").await;
    }
    assert_eq!((&last["task_id"], &last["attempt"]), (&tasks[1], &json!(2)));
    assert_eq!(last["result"], json!({ "value": "done" }));
    assert_eq!(last["redelivered"], true, "{last}");
    gate.is_quiet().await;
    let taken =
        async || stage.handle.asks().notices().await.expect("readable").is_empty().then_some(());
    eventually(taken).await;
    let stage = stage.killed().await;
    let mut gate = stage.open(&gate_key).await;
    gate.is_quiet().await;
}

#[tokio::test]
async fn o014_a_result_that_fits_no_frame_is_named_and_nothing_else_is_held_up() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (gate_key, mut gate) = stage.sit().await;
    stage.task(&key.sid, gated(&gate_key)).await;
    let hook = gate.hear("hook_before").await;
    hook_ack(&mut gate, &hook, json!({ "ok": true })).await;
    let spawn = seat.hear("spawn").await;
    assert_eq!(stage.submit(&spawn, &"x".repeat(1_500_000)).await.status, 204);
    let after = gate.hear("hook_after").await;
    assert!(after["result"]["omitted"]["bytes"].as_u64().is_some_and(|n| n > 1_500_000));
    gate.is_quiet().await;
}

#[tokio::test]
async fn o013_a_seat_that_says_no_refuses_the_run_and_nothing_is_spawned() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    for (more, reason) in [
        (json!({ "ok": false, "reason": "not today" }), "not today"),
        (json!({ "ok": false }), "rejected by operator"),
        (json!({ "ok": false, "reason": "" }), "rejected by operator"),
    ] {
        let run = stage.task(&key.sid, gated(&key)).await;
        let hook = seat.hear("hook_before").await;
        hook_ack(&mut seat, &hook, more).await;
        let run = stage.until(&run, "refused").await;
        assert!(word(&run["error"], "message").contains(reason), "{run}");
        assert_eq!(run["error"]["code"], "ask.denied");
        seat.is_quiet().await;
    }
}

#[tokio::test]
async fn o013_a_rule_of_the_world_gates_every_provider() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    rule(&stage, "wharf/echo", &key).await;
    let run = begin(&stage, "wharf/echo", json!({ "text": "hi" })).await;
    let hook = seat.hear("hook_before").await;
    assert_eq!(hook["agent"], "wharf/echo");
    assert_eq!(stage.run(&run).await["status"], "waiting");
    hook_ack(&mut seat, &hook, json!({ "ok": true })).await;
    stage.until(&run, "succeeded").await;
    let after = seat.hear("hook_after").await;
    assert_eq!(after["result"]["text"], "hi");

    let run = begin(&stage, "wharf/echo", json!({ "text": "hi" })).await;
    let hook = seat.hear("hook_before").await;
    hook_ack(&mut seat, &hook, json!({ "ok": false })).await;
    stage.until(&run, "refused").await;
    seat.is_quiet().await;
}

#[tokio::test]
async fn o014_a_notice_waits_for_a_seat_that_is_away_and_tells_of_failure() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (gate_key, mut gate) = stage.sit().await;
    let run = stage.task(&key.sid, gated(&gate_key)).await;
    let hook = gate.hear("hook_before").await;
    hook_ack(&mut gate, &hook, json!({ "ok": true })).await;
    let spawn = seat.hear("spawn").await;
    drop(gate);
    let away = async || {
        let shown = stage.call(&format!("GET /v1/operators/{}", gate_key.sid), &Value::Null).await;
        (shown.body["connected"] == false).then_some(())
    };
    eventually(away).await;
    let failed = json!({ "type": "spawn_ack", "req_id": spawn["req_id"], "error": "no" });
    seat.say(failed).await;
    stage.until(&run, "failed").await;
    let mut gate = stage.open(&gate_key).await;
    let after = gate.hear("hook_after").await;
    assert_eq!(after["result"]["error"]["code"], "operator.failed");
}

#[tokio::test]
async fn o016_the_first_valid_answer_wins_and_the_others_get_a_cancel() {
    let stage = Stage::start().await;
    let (_one_key, mut one) = stage.sit().await;
    let (_two_key, mut two) = stage.sit().await;
    let schema = json!({ "type": "integer" });
    let inputs = json!({ "question": "How many?", "schema": schema });
    let run = begin(&stage, "wharf/ask", inputs.clone()).await;
    let (ask, same) = (one.hear("ask").await, two.hear("ask").await);
    assert_eq!(ask["req_id"], same["req_id"]);
    assert_eq!(
        (&ask["question"]["title"], &ask["question"]["schema"]),
        (&json!("How many?"), &schema)
    );
    let answer =
        |value: Value| json!({ "type": "answer", "req_id": ask["req_id"], "value": value });
    one.say(answer(json!("three"))).await;
    let error = one.hear("error").await;
    assert_eq!((&error["code"], &error["req_id"]), (&json!("ask.answer_invalid"), &ask["req_id"]));
    one.say(answer(json!(3))).await;
    let cancel = two.hear("cancel").await;
    assert_eq!(cancel["req_id"], ask["req_id"]);
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["answer"], 3);
    two.say(answer(json!(4))).await;
    assert_eq!(two.hear("error").await["code"], "operator.request_withdrawn");
    one.is_quiet().await;

    let run = begin(&stage, "wharf/ask", inputs).await;
    let ask = one.hear("ask").await;
    two.hear("ask").await;
    let id = word(&ask, "req_id").trim_start_matches("q-");
    let line = format!("POST /v1/questions/{id}/answer");
    assert_eq!(stage.call(&line, &json!({ "value": 5 })).await.status, 204);
    assert_eq!(one.hear("cancel").await["req_id"], ask["req_id"]);
    two.hear("cancel").await;
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["answer"], 5);
}

#[tokio::test]
async fn o016_a_token_cannot_let_its_own_run_pass_through_a_seat_it_made() {
    let stage = Stage::start().await;
    let token = stage.token(json!({ "verbs": ["operate", "approve", "answer", "run", "read"] }));
    let token = token.await;
    let made = stage.call_as(&token, "POST /v1/operators", &json!({})).await;
    assert_eq!(made.status, 200, "{made:?}");
    let (sid, own) = (word(&made.body, "sid").to_owned(), word(&made.body, "token").to_owned());
    let key = SeatKey { sid, token: own };
    let mut seat = stage.open(&key).await;
    rule(&stage, "wharf/echo", &key).await;
    let request = json!({ "tool": "wharf/echo", "inputs": { "text": "hi" } });
    let run = stage.call_as(&token, "POST /v1/runs", &request).await;
    assert_eq!(run.status, 202, "{run:?}");
    seat.is_quiet().await;
    let run = word(&run.body, "run_id");
    let shown = stage.run(run).await;
    assert_eq!(shown["status"], "waiting");
    let line = format!("POST /v1/approvals/{}/decide", word(&shown["ask"], "ask_id"));
    let allow = json!({ "decision": "allow" });
    for credential in [&token, &key.token] {
        let refused = stage.call_as(credential, &line, &allow).await;
        assert!(matches!(refused.status, 401 | 403), "{refused:?}");
    }
    assert_eq!(stage.run(run).await["status"], "waiting");
    assert_eq!(stage.call(&line, &allow).await.status, 204, "a person may");
    stage.until(run, "succeeded").await;
}

#[tokio::test]
async fn o013_an_unknown_seat_is_told_when_the_task_is_launched() {
    let stage = Stage::start().await;
    let (key, _seat) = stage.sit().await;
    let request = json!({
        "agent": "coder", "operator_sid": key.sid, "operator": { "spawn_hook_id": "S-nothing" },
    });
    let answer = stage.call("POST /v1/tasks", &request).await;
    assert_eq!(answer.refused(), (404, "seat.not_found"));
    let request = json!({ "agent": "coder", "operator_sid": "S-nothing" });
    let answer = stage.call("POST /v1/tasks", &request).await;
    assert_eq!(answer.refused(), (404, "seat.not_found"));
}

#[tokio::test]
async fn o007_a_seat_that_does_not_answer_in_time_is_not_waited_for_alone() {
    let stage = Stage::start().await;
    let (key, mut seat) = stage.sit().await;
    let (gate_key, mut gate) = stage.sit().await;
    let hooks = json!({ "spawn_hook_id": gate_key.sid, "deadline_ms": 300 });
    let run = stage.task(&key.sid, json!({ "operator": hooks })).await;
    let hook = gate.hear("hook_before").await;
    assert!(hook["deadline_ms"].as_u64().is_some_and(|ms| ms <= 300), "{hook}");
    let escalated = seat.hear("hook_before").await;
    assert_eq!(escalated["req_id"], hook["req_id"]);
    hook_ack(&mut seat, &escalated, json!({ "ok": true })).await;
    assert_eq!(gate.hear("cancel").await["req_id"], hook["req_id"]);
    let spawn = seat.hear("spawn").await;
    assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn a_thousand_seats_are_asked_at_once_and_hundreds_of_jobs_wait_for_one() {
    const SEATS: usize = 1_000;
    const JOBS: usize = 256;
    let stage = Stage::start().await;
    let mut seats = Vec::with_capacity(SEATS);
    for _ in 0..SEATS {
        seats.push(stage.sit().await);
    }
    let run = begin(&stage, "wharf/ask", json!({ "question": "Who is there?" })).await;
    let mut asked = Value::Null;
    for (_, seat) in &mut seats {
        asked = seat.hear("ask").await;
    }
    let answer = json!({ "type": "answer", "req_id": asked["req_id"], "value": "me" });
    seats[SEATS - 1].1.say(answer).await;
    for (_, seat) in &mut seats[..SEATS - 1] {
        assert_eq!(seat.hear("cancel").await["req_id"], asked["req_id"]);
    }
    assert_eq!(stage.until(&run, "succeeded").await["outputs"]["answer"], "me");

    let (key, seat) = &mut seats[0];
    let mut runs = Vec::with_capacity(JOBS);
    for _ in 0..JOBS {
        runs.push(stage.task(&key.sid, json!({})).await);
    }
    for _ in 0..JOBS {
        let spawn = seat.hear("spawn").await;
        assert_eq!(stage.submit(&spawn, "done").await.status, 204);
    }
    for run in &runs {
        stage.until(run, "succeeded").await;
    }
}

#[tokio::test]
async fn o003_what_a_seat_that_is_given_up_was_asked_goes_to_the_others_at_once() {
    let stage = Stage::start().await;
    let (gone, mut first) = stage.sit().await;
    let (_key, mut other) = stage.sit().await;
    let request = json!({ "agent": "wharf/echo", "input": "hello", "detach": true,
        "operator": { "spawn_hook_id": gone.sid } });
    let run = stage.call("POST /v1/tasks", &request).await.body["run_id"].clone();
    let asked = first.hear("hook_before").await;
    other.is_quiet().await;
    let line = format!("DELETE /v1/operators/{}", gone.sid);
    assert_eq!(stage.call(&line, &json!(null)).await.status, 204);
    let again = other.hear("hook_before").await;
    assert_eq!(again["req_id"], asked["req_id"]);
    other.say(json!({ "type": "hook_ack", "req_id": again["req_id"], "ok": true })).await;
    stage.until(run.as_str().expect("an id"), "succeeded").await;
}
