//! Who decides about whom: seats, those who made them, and what they execute.

use crate::stage::{OWNER, Seat, SeatKey, Stage, eventually, word};
use serde_json::{Value, json};
use wharf_domain::permission::ToolPattern;
use wharf_domain::{Audience, Caller, Rule, When, WorldSettings};
use wharf_vocab::{SeatId, WorldId};

/// Lets a rule of the default world ask for approvals of a tool.
async fn rule(stage: &Stage, tool: &str, audience: Audience, patience_ms: Option<u64>) {
    let tool = ToolPattern::parse(tool).expect("a pattern");
    let rule = Rule { tool, when: When::Always, approve: true, audience, patience_ms };
    let settings = WorldSettings { policy: vec![rule], ..WorldSettings::default() };
    let world = WorldId::new("default").expect("valid");
    stage.handle.worlds().set(&Caller::owner(), world, settings).await.expect("changed");
}

fn of(key: &SeatKey) -> Audience {
    Audience::Seat(SeatId::new(&key.sid).expect("a seat"))
}

/// A token with these verbs, and whatever else.
async fn token(stage: &Stage, verbs: &[&str], more: Value) -> String {
    let mut request = json!({ "verbs": verbs });
    for (name, value) in more.as_object().expect("an object") {
        request[name] = value.clone();
    }
    stage.token(request).await
}

const DESK: [&str; 5] = ["operate", "approve", "answer", "run", "read"];

/// A seat that was made with a token, on which somebody sits.
async fn sit_with(stage: &Stage, token: &str, request: Value) -> (SeatKey, Seat) {
    let made = stage.call_as(token, "POST /v1/operators", &request).await;
    assert_eq!(made.status, 200, "{made:?}");
    let text = |name: &str| word(&made.body, name).to_owned();
    let key = SeatKey { sid: text("sid"), token: text("token") };
    let seat = stage.open(&key).await;
    (key, seat)
}

/// Starts a run with a token.
async fn begin(stage: &Stage, token: &str, request: Value) -> String {
    let answer = stage.call_as(token, "POST /v1/runs", &request).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    word(&answer.body, "run_id").to_owned()
}

fn echo() -> Value {
    json!({ "tool": "wharf/echo", "inputs": { "text": "hi" } })
}

/// Tries to decide the approval that a run waits for.
async fn decide(stage: &Stage, token: &str, run: &str) -> u16 {
    let shown = stage.run(run).await;
    let line = format!("POST /v1/approvals/{}/decide", word(&shown["ask"], "ask_id"));
    stage.call_as(token, &line, &json!({ "decision": "allow" })).await.status
}

/// Starts a job on a seat for somebody else, and takes it.
async fn job(stage: &Stage, key: &SeatKey, seat: &mut Seat) -> (String, Value) {
    let other = token(stage, &["run", "read"], json!({})).await;
    let request = json!({
        "agent": "coder", "operator_sid": key.sid, "detach": true,
        "input": { "prompt": "Do it.", "tools": ["wharf/echo"] },
    });
    let answer = stage.call_as(&other, "POST /v1/tasks", &request).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    (word(&answer.body, "run_id").to_owned(), seat.hear("spawn").await)
}

#[tokio::test]
async fn o016_a_seat_does_not_let_pass_what_its_own_worker_starts() {
    let stage = Stage::start().await;
    rule(&stage, "wharf/echo", Audience::Any, None).await;
    let maker = token(&stage, &DESK, json!({})).await;
    for made_with in [OWNER, &maker] {
        let (key, mut seat) = sit_with(&stage, made_with, json!({})).await;
        let (_, mut sister) = sit_with(&stage, made_with, json!({})).await;
        let (_, spawn) = job(&stage, &key, &mut seat).await;
        let invoke = json!({ "tool": "wharf/echo", "inputs": { "text": "x" }, "wait_ms": 0 });
        let handle = word(&spawn, "worker_handle");
        let child = stage.worker(handle, "POST /v1/worker/invoke", &invoke.to_string()).await;
        assert_eq!(child.status, 202, "{child:?}");
        let child = word(&child.body, "run_id").to_owned();
        assert_eq!(stage.run(&child).await["status"], "waiting");
        seat.is_quiet().await;
        sister.is_quiet().await;
        if made_with != OWNER {
            assert_eq!(decide(&stage, &maker, &child).await, 403, "nor its maker");
        }
        let other = token(&stage, &["approve"], json!({})).await;
        assert_eq!(decide(&stage, &other, &child).await, 204, "somebody else may");
        stage.until(&child, "succeeded").await;
    }
}

#[tokio::test]
async fn o016_whoever_executes_does_not_answer_what_its_own_worker_asks() {
    let stage = Stage::start().await;
    let maker = token(&stage, &DESK, json!({})).await;
    let (key, mut seat) = sit_with(&stage, &maker, json!({})).await;
    let (run, spawn) = job(&stage, &key, &mut seat).await;
    let question = json!({ "question": "May I?", "wait_ms": 0 }).to_string();
    let handle = word(&spawn, "worker_handle");
    let asked = stage.worker(handle, "POST /v1/worker/ask", &question).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    seat.is_quiet().await;
    let shown = stage.until(&run, "waiting").await;
    let line = format!("POST /v1/questions/{}/answer", word(&shown["ask"], "ask_id"));
    let yes = json!({ "value": "yes" });
    assert_eq!(stage.call_as(&maker, &line, &yes).await.refused(), (403, "permission.denied"));
    assert_eq!(stage.call(&line, &yes).await.status, 204, "a person may");
}

#[tokio::test]
async fn o016_whoever_executes_does_not_let_its_own_runs_pass_unless_it_was_chosen() {
    let stage = Stage::start().await;
    let maker = token(&stage, &DESK, json!({})).await;
    let (key, mut seat) = sit_with(&stage, &maker, json!({})).await;
    let other = token(&stage, &["run", "read"], json!({})).await;
    let request =
        json!({ "agent": "coder", "operator_sid": key.sid, "detach": true, "input": "x" });
    rule(&stage, &format!("{}/coder", key.sid), Audience::Any, None).await;
    let first = stage.call_as(&other, "POST /v1/tasks", &request).await;
    seat.is_quiet().await;
    assert_eq!(decide(&stage, &maker, word(&first.body, "run_id")).await, 403);
    rule(&stage, &format!("{}/coder", key.sid), of(&key), None).await;
    stage.call_as(&other, "POST /v1/tasks", &request).await;
    let hook = seat.hear("hook_before").await;
    seat.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
    seat.hear("spawn").await;
}

#[tokio::test]
async fn o007_a_callers_patience_does_not_change_whom_a_rule_asks() {
    let stage = Stage::start().await;
    let (key, mut seat) = sit_with(&stage, OWNER, json!({})).await;
    let (_, mut other) = sit_with(&stage, OWNER, json!({})).await;
    let (_, mut person) = sit_with(&stage, OWNER, json!({ "person": true })).await;
    let approver = token(&stage, &["approve", "read"], json!({})).await;
    let caller = token(&stage, &["run", "read"], json!({})).await;
    rule(&stage, "wharf/echo", of(&key), None).await;
    let mut request = echo();
    request["operator"] = json!({ "deadline_ms": 1 });
    let run = begin(&stage, &caller, request.clone()).await;
    let hook = seat.hear("hook_before").await;
    assert!(hook["deadline_ms"].as_u64().is_some_and(|ms| ms > 60_000), "{hook}");
    assert_eq!(decide(&stage, &approver, &run).await, 403);
    other.is_quiet().await;
    person.is_quiet().await;

    // The rule's own patience: then a person is asked, and nobody else.
    rule(&stage, "wharf/echo", of(&key), Some(1)).await;
    let run = begin(&stage, &caller, request).await;
    eventually(async || {
        let shown = stage.run(&run).await;
        let id = wharf_vocab::AskId::new(word(&shown["ask"], "ask_id")).expect("valid");
        let ask = stage.handle.asks().get(&id).await.expect("there");
        (ask.spec.audience_at(stage.handle.now()) == Audience::Person).then_some(())
    })
    .await;
    assert_eq!(decide(&stage, &approver, &run).await, 403);
    let hook = person.hear("hook_before").await;
    other.is_quiet().await;
    person.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o003_a_rules_seat_that_was_given_up_leaves_its_decisions_to_a_person() {
    let stage = Stage::start().await;
    let (key, _seat) = sit_with(&stage, OWNER, json!({})).await;
    let (_, mut other) = sit_with(&stage, OWNER, json!({})).await;
    let (_, mut person) = sit_with(&stage, OWNER, json!({ "person": true })).await;
    let approver = token(&stage, &["approve", "read"], json!({})).await;
    let caller = token(&stage, &["run", "read"], json!({})).await;
    rule(&stage, "wharf/echo", of(&key), None).await;
    let line = format!("DELETE /v1/operators/{}", key.sid);
    assert_eq!(stage.call(&line, &Value::Null).await.status, 204);
    let run = begin(&stage, &caller, echo()).await;
    let hook = person.hear("hook_before").await;
    assert_eq!(decide(&stage, &approver, &run).await, 403);
    other.is_quiet().await;
    person.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
    stage.until(&run, "succeeded").await;
}

#[tokio::test]
async fn o001_a_seat_is_a_persons_only_if_a_person_says_so() {
    let stage = Stage::start().await;
    let maker = token(&stage, &DESK, json!({})).await;
    let person = json!({ "person": true });
    let refused = stage.call_as(&maker, "POST /v1/operators", &person).await;
    assert_eq!(refused.refused(), (403, "permission.denied"));
    let (key, mut model) = sit_with(&stage, OWNER, json!({})).await;
    let (person_key, mut me) = sit_with(&stage, OWNER, person).await;
    for (key, said) in [(&key, Value::Null), (&person_key, json!(true))] {
        let line = format!("GET /v1/operators/{}", key.sid);
        assert_eq!(stage.call(&line, &Value::Null).await.body["person"], said);
    }
    // What is left to people.
    rule(&stage, "wharf/echo", Audience::Person, None).await;
    let caller = token(&stage, &["run", "read"], json!({})).await;
    let run = begin(&stage, &caller, echo()).await;
    let hook = me.hear("hook_before").await;
    model.is_quiet().await;
    me.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
    stage.until(&run, "succeeded").await;
    // Runs of whoever made the seats.
    rule(&stage, "wharf/echo", Audience::Any, None).await;
    let run = begin(&stage, OWNER, echo()).await;
    let hook = me.hear("hook_before").await;
    model.is_quiet().await;
    me.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
    stage.until(&run, "succeeded").await;
    // A launch of the same person may name it all the same: it is that person's wish.
    let mut request =
        json!({ "agent": "wharf/ask", "input": { "question": "Who?" }, "detach": true });
    request["operator"] = json!({ "spawn_hook_id": key.sid });
    let answer = stage.call("POST /v1/tasks", &request).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    model.hear("hook_before").await;
}

#[tokio::test]
async fn o002_a_seat_ends_with_the_token_that_made_it() {
    for expires in [false, true] {
        let stage = Stage::start().await;
        let more = if expires { json!({ "ttl_ms": 2_000 }) } else { json!({}) };
        let maker = token(&stage, &DESK, more).await;
        let (key, mut seat) = sit_with(&stage, &maker, json!({})).await;
        let (_, mut heir) = sit_with(&stage, OWNER, json!({})).await;
        let (run, spawn) = job(&stage, &key, &mut seat).await;
        let caller = token(&stage, &["run", "read"], json!({})).await;
        let request = json!({ "agent": "wharf/echo", "input": "x", "detach": true,
            "operator": { "spawn_hook_id": key.sid } });
        let gated = stage.call_as(&caller, "POST /v1/tasks", &request).await;
        seat.hear("hook_before").await;
        if !expires {
            let grants = stage.handle.trust().grants();
            let grant = grants.iter().find(|grant| grant.rights.verbs.len() == DESK.len());
            let id = grant.expect("made").id.clone();
            stage.handle.trust().revoke_grant(&Caller::owner(), id).await.expect("revoked");
            assert_eq!(stage.prompt(&spawn).await.status / 100, 4, "a worker's right ends at once");
        }
        assert_eq!(seat.closed().await.0, 1008);
        assert_eq!(stage.prompt(&spawn).await.status / 100, 4);
        let ended = stage.until(&run, "failed").await;
        assert_eq!(ended["error"]["code"], "tool.unavailable", "{ended}");
        assert!(word(&ended["error"], "message").contains("not good any more"), "{ended}");
        let hook = heir.hear("hook_before").await;
        heir.say(json!({ "type": "hook_ack", "req_id": hook["req_id"], "ok": true })).await;
        stage.until(word(&gated.body, "run_id"), "succeeded").await;
        assert!(matches!(stage.connect(&key.sid, &key.token, "").await, Err(401 | 404)));
    }
}

#[tokio::test]
async fn o017_a_seat_gets_nothing_of_worlds_and_tools_its_token_is_not_for() {
    let stage = Stage::start().await;
    for world in ["mine", "theirs"] {
        let world = WorldId::new(world).expect("valid");
        let settings = WorldSettings::default();
        stage.handle.worlds().create(&Caller::owner(), world, settings).await.expect("made");
    }
    let maker = token(&stage, &DESK, json!({ "worlds": ["mine"] })).await;
    let (key, mut seat) = sit_with(&stage, &maker, json!({})).await;
    let task = |world: &str| {
        json!({ "agent": "coder", "operator_sid": key.sid, "input": "x", "detach": true,
            "world": world })
    };
    let refused = stage.call("POST /v1/tasks", &task("theirs")).await;
    let run = word(&refused.body, "run_id");
    let shown = eventually(async || {
        let line = format!("GET /v1/runs/{run}?world=theirs");
        let run = stage.call(&line, &Value::Null).await.body;
        (!run["ended_at"].is_null()).then_some(run)
    })
    .await;
    assert_eq!(shown["error"]["code"], "permission.denied", "{shown}");
    seat.is_quiet().await;
    assert_eq!(stage.call("POST /v1/tasks", &task("mine")).await.status, 202);
    assert_eq!(seat.hear("spawn").await["world"], "mine");

    let narrow = token(&stage, &DESK, json!({ "tools": ["wharf/echo"] })).await;
    let manifest = json!({ "capability_manifest": { "tools": ["coder"] } });
    let refused = stage.call_as(&narrow, "POST /v1/operators", &manifest).await;
    assert_eq!(refused.refused(), (403, "permission.denied"));
    let (key, mut seat) = sit_with(&stage, &narrow, json!({})).await;
    let request = json!({ "agent": "coder", "operator_sid": key.sid, "input": "x" });
    let refused = stage.call("POST /v1/tasks", &request).await;
    assert_eq!(refused.refused(), (403, "permission.denied"));
    rule(&stage, "wharf/*", Audience::Any, None).await;
    let caller = token(&stage, &["run", "read"], json!({})).await;
    let ask = json!({ "tool": "wharf/ask", "inputs": { "question": "Who?" } });
    let run = begin(&stage, &caller, ask).await;
    seat.is_quiet().await;
    assert_eq!(decide(&stage, &narrow, &run).await, 403, "nor does the token itself");
    begin(&stage, &caller, echo()).await;
    assert_eq!(seat.hear("hook_before").await["agent"], "wharf/echo");
}

#[tokio::test]
async fn one_token_cannot_take_all_seats_there_may_be() {
    let stage = Stage::start().await;
    let maker = token(&stage, &["operate"], json!({})).await;
    let make = async || stage.call_as(&maker, "POST /v1/operators", &json!({})).await;
    let mut first = None;
    for _ in 0..wharf_vocab::limits::GRANT_SEATS_MAX {
        let made = make().await;
        assert_eq!(made.status, 200, "{made:?}");
        first.get_or_insert(made);
    }
    assert_eq!(make().await.refused(), (429, "grant.limit"));
    // One that is given up still counts for a while, so nothing is gained by turning them over.
    let sid = word(&first.as_ref().expect("made").body, "sid").to_owned();
    let line = format!("DELETE /v1/operators/{sid}");
    assert_eq!(stage.call_as(&maker, &line, &Value::Null).await.status, 204);
    assert_eq!(make().await.refused(), (429, "grant.limit"));
    let other = token(&stage, &["operate"], json!({})).await;
    assert_eq!(stage.call_as(&other, "POST /v1/operators", &json!({})).await.status, 200);
    assert_eq!(stage.call("POST /v1/operators", &json!({})).await.status, 200, "people may");
}
