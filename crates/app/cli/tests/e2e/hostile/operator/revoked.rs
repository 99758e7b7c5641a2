//! It goes on when its token is gone, or where its token is not good.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::hostile::peers::{Seat, Stage};
use crate::security_page::{Peer, tried};
use crate::support::Api;

/// How soon a seat must have ended, with some room for a machine that has much to do.
const SOON: Duration = Duration::from_secs(30);

/// Lets a seat of this token take a job, waits for its end, and tries to go on.
fn goes_on(stage: &Stage, desk: &str, revoke: impl FnOnce()) -> String {
    let mut seat = Seat::take(&stage.core, &Api::with_token(&stage.core, desk));
    let task = json!({"agent": "coder", "operator_sid": seat.sid, "input": "x", "detach": true});
    let (status, run) = stage.api.ask("POST", "/v1/tasks", &task);
    assert_eq!(status, 202, "{run}");
    let spawn = seat.socket.hear("spawn");
    revoke();
    let began = Instant::now();
    assert_eq!(seat.socket.closed(), Some(1008));
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
    let handle = spawn["worker_handle"].as_str().expect("a right");
    let worker = Api::with_token(&stage.core, handle);
    let line = format!("/v1/worker/prompt?task_id={}", spawn["task_id"].as_str().expect("text"));
    let (status, _) = worker.bytes(&line);
    assert!(matches!(status, 401 | 410), "{status}");
    let ended = stage.api.end_of("default", run["run_id"].as_str().expect("an id"));
    assert_eq!(ended["error"]["code"], "tool.unavailable", "{ended}");
    "closed with 1008; its run ends with tool.unavailable".to_owned()
}

#[test]
fn an_operator_goes_on_when_its_token_was_revoked() {
    let stage = Stage::up();
    let desk = stage.token(&["--verb", "operate,answer,approve", "--label", "desk"]);
    let tokens = stage.api.get("/v1/tokens");
    let items = tokens["items"].as_array().expect("a list");
    let id = items.iter().find(|token| token["label"] == "desk").expect("it is there");
    let path = format!("/v1/tokens/{}", id["token_id"].as_str().expect("an id"));
    let came = goes_on(&stage, &desk, || {
        let (status, answer) = stage.api.ask("DELETE", &path, &json!({}));
        assert!(status < 300, "{answer}");
    });
    tried(
        Peer::Operator,
        "goes on when its token was revoked",
        "makers of seats are looked at each second",
        &came,
    );
}

#[test]
fn an_operator_goes_on_when_its_token_has_expired() {
    let stage = Stage::up();
    let request = json!({"verbs": ["operate", "answer", "approve"], "ttl_ms": 8_000});
    let (status, made) = stage.api.ask("POST", "/v1/tokens", &request);
    assert_eq!(status, 201, "{made}");
    let came = goes_on(&stage, made["token"].as_str().expect("a token"), || {});
    tried(
        Peer::Operator,
        "goes on when its token has expired",
        "makers of seats are looked at each second",
        &came,
    );
}

#[test]
fn an_operator_executes_for_a_world_that_its_token_is_not_for() {
    let stage = Stage::up();
    for world in ["mine", "theirs"] {
        stage.home.run(&["worlds", "create", world]).code(0);
    }
    let desk = stage.caller(&["--verb", "operate,answer,approve", "--world", "mine"]);
    let seat = Seat::take(&stage.core, &desk);
    let task = json!({"agent": "coder", "operator_sid": seat.sid, "input": "x", "detach": true,
        "world": "theirs"});
    let (status, run) = stage.api.ask("POST", "/v1/tasks", &task);
    assert_eq!(status, 202, "{run}");
    let ended = stage.api.end_of("theirs", run["run_id"].as_str().expect("an id"));
    let code = ended["error"]["code"].as_str().expect("a code");
    assert_eq!((code, &ended["error"]["details"]["executed"]), ("permission.denied", &json!("no")));
    tried(
        Peer::Operator,
        "executes for a world that its token is not for",
        "a seat's maker is checked for each attempt",
        code,
    );
}
