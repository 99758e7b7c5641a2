//! Tools of an agent as tool servers: progress, cost, and everything that can go wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use wharf_sdk::toolserver::{Listen, ToolServer};
use wharf_sdk::{Cx, Fault, JsonSchema, Scope, Tool};
use wharf_wire::run_v1::SUBPROTOCOL;

#[derive(Serialize, Deserialize, JsonSchema)]
struct Confirm {
    ok: bool,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct Small {
    #[schemars(range(max = 3))]
    n: u32,
}

const COUNT: Tool<u32, Vec<u32>, u32> = Tool::new("count", "Counts.");
const ASK: Tool<(), ()> = Tool::new("ask", "Asks.");
const COMPLETE: Tool<(), ()> = Tool::new("complete", "Has a model complete.");
const PANIC: Tool<(), ()> = Tool::new("panic", "Panics.");
const LARGE: Tool<(), Small> = Tool::new("large", "Gives too much.");
const HANG: Tool<(), ()> = Tool::new("hang", "Never ends.");
const NOBODY: Tool<(), ()> = Tool::new("nobody", "Nobody does this.");

async fn count(to: u32, cx: Cx<u32>) -> Result<Vec<u32>, Fault> {
    for n in 1..=to {
        cx.progress(n).await;
        cx.cost(10);
    }
    cx.notify("counted").await?;
    Ok((1..=to).collect())
}

fn root() -> (Scope, Arc<AtomicUsize>) {
    let (root, cleaned) = (Scope::root(), Arc::new(AtomicUsize::new(0)));
    root.provide(&COUNT, count).expect("free");
    let ask = |(), cx: Cx| async move { cx.ask::<Confirm>("Well?").await.map(drop) };
    root.provide(&ASK, ask).expect("free");
    let complete = |(), cx: Cx| async move { cx.sample("Once").await.map(drop) };
    root.provide(&COMPLETE, complete).expect("free");
    let panic = |(), _cx: Cx| async move { panic!("a panic with a canary in it") };
    root.provide(&PANIC, panic).expect("free");
    root.provide(&LARGE, |(), _cx: Cx| async move { Ok(Small { n: 4 }) }).expect("free");
    let counted = Arc::clone(&cleaned);
    let hang = move |(), cx: Cx| {
        let counted = Arc::clone(&counted);
        async move {
            cx.at_end(async move {
                counted.fetch_add(1, Ordering::SeqCst);
            });
            cx.notify("hanging").await?;
            std::future::pending().await
        }
    };
    root.provide(&HANG, hang).expect("free");
    (root, cleaned)
}

/// A server on a socket of its own, until it is dropped.
struct Served {
    folder: TempDir,
    runs: AtomicUsize,
    _stop: oneshot::Sender<()>,
}

impl Served {
    async fn of<I, O, P>(root: &Scope, tool: &Tool<I, O, P>) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let server = ToolServer::of("test/tool@1", root, tool);
        let listen = Listen::Unix(folder.path().join("s"));
        let ((ready, is_ready), (stop, stopped)) = (oneshot::channel(), oneshot::channel::<()>());
        tokio::spawn(async move {
            let told = move |_: &Listen| ready.send(()).expect("somebody waits");
            let stopped = async move {
                // The sender is only ever dropped.
                let _ = stopped.await;
            };
            server.serve(listen, told, stopped).await.expect("served");
        });
        is_ready.await.expect("it listens");
        Self { folder, runs: AtomicUsize::new(0), _stop: stop }
    }

    async fn begin(&self, run_id: &str, inputs: Value) -> WebSocketStream<UnixStream> {
        let stream = UnixStream::connect(self.folder.path().join("s")).await.expect("connected");
        let mut request = "ws://localhost/run".into_client_request().expect("a request");
        let subprotocol = SUBPROTOCOL.parse().expect("a header");
        request.headers_mut().insert("Sec-WebSocket-Protocol", subprotocol);
        let (mut socket, _) =
            tokio_tungstenite::client_async(request, stream).await.expect("let in");
        let control = json!({"run_id": run_id, "mode": "real"});
        let request = json!({"kind": "Request", "control": control, "inputs": inputs});
        socket.send(Message::text(request.to_string())).await.expect("sent");
        socket
    }

    /// Everything that is said of a run, the final response last.
    async fn run(&self, inputs: Value) -> Vec<Value> {
        let number = self.runs.fetch_add(1, Ordering::SeqCst);
        let mut socket = self.begin(&format!("r{number}"), inputs).await;
        let mut frames = Vec::new();
        while frames.last().is_none_or(|frame: &Value| frame["control"]["final"] != true) {
            frames.push(next(&mut socket).await);
        }
        frames
    }

    /// The error of a run.
    async fn fault(&self, inputs: Value) -> Value {
        let last = self.run(inputs).await.pop().expect("a response");
        assert_eq!(last["control"]["status"], "error", "{last}");
        last["error"].clone()
    }
}

async fn next(socket: &mut WebSocketStream<UnixStream>) -> Value {
    loop {
        let frame = tokio::time::timeout(Duration::from_secs(30), socket.next()).await;
        if let Message::Text(text) = frame.expect("in time").expect("a frame").expect("whole") {
            return serde_json::from_str(&text).expect("JSON");
        }
    }
}

#[tokio::test]
async fn k020_progress_cost_and_messages_come_in_order_before_the_response() {
    let (root, _) = root();
    let served = Served::of(&root, &COUNT).await;
    let frames = served.run(json!({"value": 3})).await;
    let pieces: Vec<_> = frames
        .iter()
        .filter(|frame| frame["control"]["final"] != true)
        .filter_map(|frame| frame["outputs"].get("progress"))
        .collect();
    assert_eq!(pieces, [&json!(1), &json!(2), &json!(3)], "{frames:?}");
    assert!(frames.iter().any(|frame| frame["kind"] == "Log"), "{frames:?}");
    let last = frames.last().expect("a response");
    assert_eq!(last["outputs"], json!({"value": [1, 2, 3]}));
    assert_eq!(last["control"]["cost_micro"], 30);
    let fault = served.fault(json!({"value": "three"})).await;
    assert_eq!(fault["code"], "ERR_INPUTS", "{fault}");
}

#[tokio::test]
async fn k019_what_needs_the_core_fails_and_says_why() {
    let (root, _) = root();
    for tool in [&ASK, &COMPLETE] {
        let fault = Served::of(&root, tool).await.fault(json!({})).await;
        assert_eq!(fault["code"], "tool.unavailable", "{fault}");
        let message = fault["message"].as_str().expect("text");
        assert!(message.contains("has no way back to the core"), "{message}");
    }
}

#[tokio::test]
async fn k004_k005_a_panic_and_an_unfit_output_fail_their_run_and_no_other() {
    let (root, _) = root();
    let served = Served::of(&root, &PANIC).await;
    for _ in 0..2 {
        let fault = served.fault(json!({})).await;
        assert_eq!(fault["code"], "tool.internal", "{fault}");
        assert!(!fault.to_string().contains("canary"), "{fault}");
    }
    let fault = Served::of(&root, &LARGE).await.fault(json!({})).await;
    assert_eq!(fault["code"], "tool.invalid_output", "{fault}");
    assert!(fault["message"].as_str().expect("text").contains("/n"), "{fault}");
}

#[tokio::test]
async fn k012_k026_a_canceled_run_drops_its_call_which_cleans_up() {
    let (root, cleaned) = root();
    let served = Served::of(&root, &HANG).await;
    let mut socket = served.begin("r1", json!({})).await;
    while next(&mut socket).await["kind"] != "Log" {}
    let cancel = json!({"kind": "Cancel", "control": {"run_id": "r1"}});
    socket.send(Message::text(cancel.to_string())).await.expect("sent");
    let last = loop {
        let frame = next(&mut socket).await;
        if frame["control"]["final"] == true {
            break frame;
        }
    };
    assert_ne!(last["control"]["status"], "success", "{last}");
    assert_eq!(cleaned.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn k002_what_nobody_provided_cannot_be_served() {
    let (root, _) = root();
    let server = ToolServer::of("test/tool@1", &root, &NOBODY);
    let folder = tempfile::tempdir().expect("a folder");
    let listen = Listen::Unix(folder.path().join("s"));
    let error = server.serve(listen, |_| {}, std::future::pending()).await.expect_err("no tool");
    assert!(error.to_string().contains("nobody provided the tool \"nobody\""), "{error}");
}
