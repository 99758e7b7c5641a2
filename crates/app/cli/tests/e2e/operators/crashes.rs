//! The core is killed at every point of an exchange with an operator; the job ends once, all the
//! same.

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use super::driver::detached;
use crate::support::{Api, Core, LONG, TestHome, wait_for};

/// Where the core is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Point {
    Gated,
    Passed,
    Spawned,
    Acknowledged,
    Prompted,
    Asked,
    Submitted,
    Over,
}

const POINTS: [Point; 8] = [
    Point::Gated,
    Point::Passed,
    Point::Spawned,
    Point::Acknowledged,
    Point::Prompted,
    Point::Asked,
    Point::Submitted,
    Point::Over,
];

/// A core that may be killed, and a seat there.
struct Scene {
    home: TestHome,
    core: Option<Core>,
    sid: String,
    token: String,
    socket: Option<WebSocketStream<TcpStream>>,
    runtime: Runtime,
    deadly: Point,
}

impl Scene {
    fn new(deadly: Point) -> Self {
        let home = TestHome::new();
        let core = home.up();
        // A person, who also answers what its own worker asks.
        let seat = json!({"desc": "crashes", "person": true});
        let made = Api::of(&core).ask("POST", "/v1/operators", &seat);
        assert_eq!(made.0, 200, "{made:?}");
        let (sid, token) = (word(&made.1, "sid").to_owned(), word(&made.1, "token").to_owned());
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut scene = Self { home, core: Some(core), sid, token, socket: None, runtime, deadly };
        scene.sit();
        scene
    }

    fn core(&self) -> &Core {
        self.core.as_ref().expect("up")
    }

    fn sit(&mut self) {
        let url = self.core().url();
        let host = url.trim_start_matches("http://");
        let address = format!("ws://{host}/v1/operators/{}/ws", self.sid);
        let mut request = address.into_client_request().expect("a request");
        let bearer = format!("Bearer {}", self.token).parse().expect("a value");
        request.headers_mut().insert("authorization", bearer);
        self.socket = Some(self.runtime.block_on(async {
            let stream = TcpStream::connect(host).await.expect("connects");
            tokio_tungstenite::client_async(request, stream).await.expect("the seat opens").0
        }));
    }

    /// Kills the core if this is where it is to die, and comes back to the seat.
    fn at(&mut self, point: Point) -> bool {
        if point != self.deadly {
            return false;
        }
        self.core.take().expect("up").kill();
        self.core = Some(self.home.up());
        self.sit();
        true
    }

    fn hear(&mut self, kind: &str) -> Value {
        let socket = self.socket.as_mut().expect("open");
        self.runtime.block_on(async {
            loop {
                let next = tokio::time::timeout(LONG, socket.next()).await;
                let next = next.unwrap_or_else(|_| panic!("waiting for {kind}")).expect("open");
                let Message::Text(text) = next.expect("a message") else { continue };
                let message: Value = serde_json::from_str(&text).expect("JSON");
                assert_ne!(message["type"], "error", "{message}");
                if message["type"] == kind {
                    return message;
                }
            }
        })
    }

    fn say(&mut self, message: &Value) {
        let socket = self.socket.as_mut().expect("open");
        let sent = socket.send(Message::text(message.to_string()));
        self.runtime.block_on(sent).expect("sent");
    }

    /// What a worker sends; a core that has just come back may ask it to come again.
    fn work(&self, spawn: &Value, line: &str, body: &str) -> (u16, Value) {
        let (method, path) = line.split_once(' ').expect("a line");
        let url = format!("{}{path}", self.core().url());
        wait_for("an answer to the worker", || {
            let method = method.parse().expect("a method");
            let request = reqwest::Client::new().request(method, &url);
            let request = request.bearer_auth(word(spawn, "worker_handle")).body(body.to_owned());
            self.runtime.block_on(async {
                let answer = request.send().await.expect("an answer");
                let status = answer.status().as_u16();
                let text = answer.text().await.expect("a body");
                let body = serde_json::from_str(&text).unwrap_or_default();
                (!matches!(status, 401 | 503)).then_some((status, body))
            })
        })
    }
}

#[test]
fn o005_a_core_that_is_killed_at_any_point_of_the_exchange_loses_and_doubles_nothing() {
    for point in POINTS {
        exchange(point);
    }
}

/// Plays one job from the gate to its end.
fn exchange(deadly: Point) {
    let mut scene = Scene::new(deadly);
    let task = json!({"agent": "coder", "input": "do it", "operator_sid": scene.sid,
        "operator": {"spawn_hook_id": scene.sid}});
    let run = detached(&Api::of(scene.core()), task);
    let mut gate = scene.hear("hook_before");
    if scene.at(Point::Gated) {
        let again = scene.hear("hook_before");
        assert_eq!((&again["req_id"], &again["redelivered"]), (&gate["req_id"], &json!(true)));
        gate = again;
    }
    scene.say(&json!({"type": "hook_ack", "req_id": gate["req_id"], "ok": true}));
    let mut spawn = scene.hear("spawn");
    for point in [Point::Passed, Point::Spawned] {
        if scene.at(point) {
            let again = scene.hear("spawn");
            assert_eq!(again["req_id"], spawn["req_id"], "{deadly:?}");
            assert_eq!(again["worker_handle"], spawn["worker_handle"], "{deadly:?}");
            spawn = again;
        }
    }
    scene.say(&json!({"type": "spawn_ack", "req_id": spawn["req_id"], "value": {}}));
    scene.at(Point::Acknowledged);
    let prompt = format!("GET /v1/worker/prompt?task_id={}", word(&spawn, "task_id"));
    let (status, prompted) = scene.work(&spawn, &prompt, "");
    assert_eq!((status, &prompted["prompt"]), (200, &json!("do it")), "{deadly:?} {prompted}");
    scene.at(Point::Prompted);
    let question = r#"{"question":"Which way?","key":"way","wait_ms":1}"#;
    let (status, _) = scene.work(&spawn, "POST /v1/worker/ask", question);
    assert_eq!(status, 202, "{deadly:?}");
    let mut ask = scene.hear("ask");
    if scene.at(Point::Asked) {
        ask = scene.hear("ask");
    }
    scene.say(&json!({"type": "answer", "req_id": ask["req_id"], "value": "left"}));
    let question = question.replace("\"wait_ms\":1", "\"wait_ms\":30000");
    let (status, answer) = scene.work(&spawn, "POST /v1/worker/ask", &question);
    assert_eq!((status, &answer["value"]), (200, &json!("left")), "{deadly:?} {answer}");
    let submit = format!("POST /v1/worker/submit?task_id={}", word(&spawn, "task_id"));
    let (status, told) = scene.work(&spawn, &submit, "done");
    assert_eq!(status, 204, "{deadly:?} {told}");
    scene.at(Point::Submitted);
    let ended = Api::of(scene.core()).end_of("default", &run);
    assert_eq!((&ended["status"], &ended["attempt"]), (&json!("succeeded"), &json!(1)), "{ended}");
    scene.at(Point::Over);
    let after = scene.hear("hook_after");
    assert_eq!(after["result"], json!({"value": "done"}), "{deadly:?} {after}");
    for frame in [&gate, &spawn] {
        assert_eq!((&frame["task_id"], &frame["agent"]), (&after["task_id"], &json!("coder")));
    }
    let trace = Api::of(scene.core()).get(&format!("/v1/runs/{run}/trace"));
    let count = |name: &str| {
        let items = trace["items"].as_array().expect("items");
        items.iter().filter(|item| item["event"] == name).count()
    };
    assert_eq!((count("finished"), count("started"), count("attempt")), (1, 1, 0), "{trace}");
    assert_eq!((count("question"), count("approval")), (1, 1), "{deadly:?} {trace}");
    scene.core.take().expect("up").stop().code(0);
}

fn word<'a>(message: &'a Value, name: &str) -> &'a str {
    message[name].as_str().expect("text")
}
