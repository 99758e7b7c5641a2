//! It lets its own work pass, and answers its own questions.

use std::time::Duration;

use serde_json::{Value, json};

use crate::hostile::peers::{RawSocket, Seat, Stage};
use crate::security_page::{Peer, tried};
use crate::support::{Api, wait_for};

/// A desk's token: all that an operator needs.
const DESK: [&str; 2] = ["--verb", "operate,approve,answer,run,read,serve"];

/// A core whose rule lets runs of `wharf/echo` pass only with an approval, and such a token.
fn gated(audience: &str) -> (Stage, Api) {
    let stage = Stage::up();
    let desk = stage.caller(&DESK);
    set_rule(&stage, audience);
    (stage, desk)
}

fn set_rule(stage: &Stage, audience: &str) {
    let rule = json!([{"tool": "wharf/echo", "approve": true, "audience": audience}]);
    let (status, changed) = stage.api.ask("PATCH", "/v1/worlds/default", &json!({"policy": rule}));
    assert_eq!(status, 200, "{changed}");
}

/// A job that somebody else starts on a seat, taken by its operator.
fn job(stage: &Stage, seat: &mut Seat) -> (String, Api) {
    let other = stage.caller(&["--verb", "run,read"]);
    let task = json!({"agent": "coder", "operator_sid": seat.sid, "detach": true,
        "input": {"prompt": "x", "tools": ["wharf/echo"]}});
    let (status, run) = other.ask("POST", "/v1/tasks", &task);
    assert_eq!(status, 202, "{run}");
    let spawn = seat.socket.hear("spawn");
    let handle = spawn["worker_handle"].as_str().expect("a right");
    let run = run["run_id"].as_str().expect("an id").to_owned();
    (run, Api::with_token(&stage.core, handle))
}

/// What the API says to a decision about the ask that a run waits for.
fn decide(stage: &Stage, by: &Api, run: &str, body: &Value) -> (u16, String) {
    let ask = wait_for("the ask", || {
        let shown = stage.api.get(&format!("/v1/runs/{run}"));
        shown["ask"]["ask_id"].as_str().map(str::to_owned)
    });
    let path = match body.get("decision") {
        Some(_) => format!("/v1/approvals/{ask}/decide"),
        None => format!("/v1/questions/{ask}/answer"),
    };
    let (status, answer) = by.ask("POST", &path, body);
    (status, answer["error"]["code"].as_str().unwrap_or("").to_owned())
}

/// Shows that nothing else was sent to a seat: the next frame is the error for what nobody asked.
fn is_quiet(seat: &mut Seat) {
    seat.socket.say(&json!({"type": "answer", "req_id": "q-nothing", "value": 1}));
    let frame = seat.socket.next();
    assert_eq!(frame["code"], "operator.request_unknown", "{frame}");
}

#[test]
fn an_operator_lets_pass_what_its_own_worker_starts() {
    let (stage, desk) = gated("any");
    // Made by the owner for a program, and by a token.
    for (maker, is_token) in [(&stage.api, false), (&desk, true)] {
        let mut seat = Seat::take(&stage.core, maker);
        let (_, worker) = job(&stage, &mut seat);
        let call = json!({"tool": "wharf/echo", "inputs": {"text": "x"}, "wait_ms": 0});
        let (status, child) = worker.ask("POST", "/v1/worker/invoke", &call);
        assert_eq!(status, 202, "{child}");
        is_quiet(&mut seat);
        let child = child["run_id"].as_str().expect("an id");
        let allow = json!({"decision": "allow"});
        let (status, code) = decide(&stage, &desk, child, &allow);
        if is_token {
            assert_eq!((status, code.as_str()), (403, "permission.denied"));
            tried(
                Peer::Operator,
                "lets pass what its own worker starts",
                "the executing seat and its maker stand in the chain",
                &code,
            );
        } else {
            assert_eq!(status, 204, "somebody else may: {code}");
        }
    }
}

#[test]
fn an_operator_answers_what_its_own_worker_asks() {
    let stage = Stage::up();
    let desk = stage.caller(&DESK);
    let mut seat = Seat::take(&stage.core, &desk);
    let (run, worker) = job(&stage, &mut seat);
    let (status, asked) =
        worker.ask("POST", "/v1/worker/ask", &json!({"question": "May I?", "wait_ms": 0}));
    assert_eq!(status, 202, "{asked}");
    is_quiet(&mut seat);
    let (status, code) = decide(&stage, &desk, &run, &json!({"value": "yes"}));
    assert_eq!((status, code.as_str()), (403, "permission.denied"));
    tried(
        Peer::Operator,
        "answers what its own worker asks",
        "whoever executes stands in the chain of what it asks",
        &code,
    );
}

#[test]
fn an_operative_answers_what_it_asks_itself() {
    let stage = Stage::up();
    let token = stage.token(&DESK);
    let own = Api::with_token(&stage.core, &token);
    let path = "/v1/tool/ws?role=operative&provider=page&tools=act";
    let mut page = RawSocket::open(&stage.core, path, "wharf.tool.v1", &token).expect("let in");
    page.hear("offered");
    let run = stage.api.start(&json!({"tool": "page/act", "inputs": {}}));
    let call = page.hear("request");
    let form = json!({"message": "May I?", "schema": {"type": "object"}});
    page.say(&json!({"type": "child", "of": call["payload"]["id"],
        "payload": {"id": "c1", "kind": "elicit", "type": "form", "payload": form}}));
    let run = run["run_id"].as_str().expect("an id");
    let (status, code) = decide(&stage, &own, run, &json!({"value": {}}));
    assert_eq!((status, code.as_str()), (403, "permission.denied"));
    tried(
        Peer::Operator,
        "answers, as an operative, what it asks itself",
        "whoever executes stands in the chain of what it asks",
        &code,
    );
}

#[test]
fn a_caller_turns_this_seat_into_anybody_by_a_deadline_of_a_millisecond() {
    let (stage, desk) = gated("any");
    let seat = Seat::take(&stage.core, &stage.api);
    set_rule(&stage, &format!("seat:{}", seat.sid));
    let caller = stage.caller(&["--verb", "run,read"]);
    let run = caller.start(&json!({"tool": "wharf/echo", "inputs": {"text": "x"},
        "operator": {"deadline_ms": 1}}));
    std::thread::sleep(Duration::from_millis(20));
    let run = run["run_id"].as_str().expect("an id");
    let allow = json!({"decision": "allow"});
    let (status, code) = decide(&stage, &desk, run, &allow);
    assert_eq!((status, code.as_str()), (403, "permission.denied"));
    // The seat goes: then it is a person's, and still not anybody's.
    let gone = stage.api.ask("DELETE", &format!("/v1/operators/{}", seat.sid), &json!({}));
    assert_eq!(gone.0, 204);
    assert_eq!(decide(&stage, &desk, run, &allow).0, 403);
    assert_eq!(decide(&stage, &stage.api, run, &allow).0, 204, "a person may");
    tried(
        Peer::Operator,
        "turns \"this seat\" into \"anybody\" by a short deadline",
        "a caller's patience is for its own gate",
        &code,
    );
}

#[test]
fn a_program_on_the_owners_seat_decides_what_is_left_to_people() {
    let (stage, desk) = gated("person");
    let mut seat = Seat::take(&stage.core, &stage.api);
    stage.api.start(&json!({"tool": "wharf/echo", "inputs": {"text": "x"}}));
    stage.api.start(&json!({"tool": "wharf/ask", "inputs": {"question": "Mine?"}}));
    is_quiet(&mut seat);
    let (status, refused) = desk.ask("POST", "/v1/operators", &json!({"person": true}));
    assert_eq!(status, 403, "{refused}");
    let code = refused["error"]["code"].as_str().expect("a code");
    tried(
        Peer::Operator,
        "decides what is left to people, on a program's seat",
        "a seat is a person's if a person says so",
        code,
    );
}
