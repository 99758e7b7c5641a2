//! What survives a restart, in order or not.

use serde_json::{Value, json};
use wharf_server::Core;

use crate::support::{PATIENCE, Place, ask, begin, eventually, get, run, until};

#[tokio::test]
async fn token_runs_and_keys_survive() {
    let place = Place::new();
    let core = place.start().await;
    let token = core.owner_token().to_owned();
    let body = json!({"tool": "wharf/count", "inputs": {"n": 3, "delay_ms": 0},
        "idempotency_key": "once"});
    let (_, first) = ask(&core, "POST", "/v1/runs?wait=20s", &body).await;
    let first: Value = serde_json::from_str(&first).expect("JSON");
    let path = format!("/v1/runs/{}", first["run_id"].as_str().expect("an id"));
    let (_, events) = ask(&core, "GET", &format!("{path}/events"), &Value::Null).await;
    core.stop().await.expect("stops");

    let core = place.start().await;
    assert_eq!(core.owner_token(), token);
    assert_eq!(get(&core, &path).await, first);
    let (_, again) = ask(&core, "GET", &format!("{path}/events"), &Value::Null).await;
    assert_eq!(told(&again), told(&events));
    let (status, again) = ask(&core, "POST", "/v1/runs?wait=20s", &body).await;
    assert_eq!((status, serde_json::from_str::<Value>(&again).expect("JSON")), (200, first));
    let other = json!({"tool": "wharf/echo", "idempotency_key": "once"});
    let (status, refused) = ask(&core, "POST", "/v1/runs", &other).await;
    assert!(status == 409 && refused.contains("run.conflict"), "{refused}");
    core.stop().await.expect("stops");
}

/// The lines of an event stream without the sizes of its chunks.
fn told(stream: &str) -> Vec<&str> {
    let field = |line: &&str| ["id: ", "event: ", "data: "].iter().any(|at| line.starts_with(at));
    stream.lines().filter(field).collect()
}

#[test]
fn a_question_stays_open_across_a_restart() {
    for end in [End::Orderly, End::Crash] {
        let place = Place::new();
        let (asking, question) = life(&place, end, async |core| {
            let asking = begin(core, "wharf/ask", json!({"question": "Which color?"})).await;
            let question = ask_of(core, &asking).await;
            (asking, question)
        });
        life(&place, End::Orderly, async |core| {
            assert_eq!(ask_of(core, &asking).await, question);
            let id = question["ask_id"].as_str().expect("an id");
            let path = format!("/v1/questions/{id}/answer");
            let (status, text) = ask(core, "POST", &path, &json!({"value": "blue"})).await;
            assert_eq!(status, 204, "{text}");
            let shown = until(core, &asking, "succeeded").await;
            assert_eq!(shown["outputs"]["answer"], "blue");
        });
    }
}

#[test]
fn an_approval_stays_open_across_a_restart() {
    let place = Place::new();
    let (waiting, approval) = life(&place, End::Crash, async |core| {
        let waiting = begin(core, "wharf/approve-me", json!({})).await;
        let approval = ask_of(core, &waiting).await;
        (waiting, approval)
    });
    life(&place, End::Orderly, async |core| {
        let path = format!("/v1/approvals/{}/decide", approval["ask_id"].as_str().expect("an id"));
        let (status, text) = ask(core, "POST", &path, &json!({"decision": "allow"})).await;
        assert_eq!(status, 204, "{text}");
        until(core, &waiting, "succeeded").await;
        let (status, _) = ask(core, "POST", &path, &json!({"decision": "allow"})).await;
        assert_eq!(status, 409);
    });
}

#[test]
fn a_run_under_way_goes_on_after_a_restart() {
    let place = Place::new();
    let running = life(&place, End::Crash, async |core| {
        let running = begin(core, "wharf/sleep", json!({"ms": 1_000})).await;
        until(core, &running, "running").await;
        running
    });
    life(&place, End::Orderly, async |core| {
        let shown = until(core, &running, "succeeded").await;
        assert_eq!(shown["attempt"], 2, "the attempt that was lost was repeated: {shown}");
    });
}

#[test]
fn many_runs_survive_a_crash() {
    let place = Place::new();
    let ids = life(&place, End::Crash, async |core| {
        let mut ids = Vec::new();
        for n in 0..50 {
            ids.push(begin(core, "wharf/count", json!({"n": 3, "delay_ms": n % 7})).await);
        }
        ids
    });
    life(&place, End::Orderly, async |core| {
        for id in &ids {
            let shown = until(core, id, "succeeded").await;
            assert_eq!(shown["outputs"], json!({"n": 3, "sum": 6}));
        }
        let page = get(core, "/v1/runs?limit=200").await;
        assert_eq!(page["items"].as_array().map(Vec::len), Some(ids.len()));
        assert_eq!(run(core, "wharf/echo", json!({})).await["status"], "succeeded");
    });
}

#[tokio::test]
async fn a_run_that_ends_in_time_is_told_before_the_core_stops() {
    let place = Place::new();
    let mut options = place.options();
    options.grace = std::time::Duration::from_secs(20);
    let core = Core::start(options).await.expect("starts");
    let running = begin(&core, "wharf/sleep", json!({"ms": 500})).await;
    until(&core, &running, "running").await;
    let handle = core.handle().clone();
    let addr = core.http_addr();
    let head = format!(
        "GET /v1/runs/{running}/events HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {}\r\n\r\n",
        core.owner_token()
    );
    let mut stream = tokio::net::TcpStream::connect(addr).await.expect("connects");
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    stream.write_all(head.as_bytes()).await.expect("sends");
    let mut begun = [0; 12];
    stream.read_exact(&mut begun).await.expect("an answer");
    assert_eq!(&begun, b"HTTP/1.1 200");
    core.stop().await.expect("stops");
    let mut rest = String::new();
    stream.read_to_string(&mut rest).await.expect("a whole answer");
    assert!(rest.contains("event: finished"), "{rest}");
    assert!(handle.is_stopping());
}

async fn ask_of(core: &Core, run: &str) -> Value {
    eventually(async || {
        let page = get(core, "/v1/inbox").await;
        page["items"].as_array()?.iter().find(|ask| ask["run_id"] == run).cloned()
    })
    .await
}

/// How a core ends.
#[derive(Clone, Copy)]
enum End {
    Orderly,
    /// Every task stops where it stands, as far as one process can do that.
    Crash,
}

/// One life of a core on a runtime of its own.
fn life<T>(place: &Place, end: End, during: impl AsyncFnOnce(&Core) -> T) -> T {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let seen = runtime.block_on(async {
        let core = place.start().await;
        let seen = during(&core).await;
        match end {
            End::Orderly => core.stop().await.expect("stops"),
            End::Crash => drop(core),
        }
        seen
    });
    runtime.shutdown_timeout(PATIENCE);
    seen
}
