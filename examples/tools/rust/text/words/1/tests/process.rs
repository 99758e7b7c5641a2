//! The tool as its own process, over a WebSocket.

use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::process::{Child, Command};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use wharf_wire::run_v1::SUBPROTOCOL;

/// The tool's process and its folder.
struct Tool {
    process: Child,
    folder: TempDir,
}

impl Tool {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let process = Command::new(env!("CARGO_BIN_EXE_words-tool"))
            .arg("--listen")
            .arg(format!("unix:{}", folder.path().join("s").display()))
            .arg("--artifacts")
            .arg(folder.path().join("artifacts"))
            .env_remove("PORT")
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("started");
        Self { process, folder }
    }

    /// Connects once the tool listens.
    async fn connect(&mut self) -> WebSocketStream<UnixStream> {
        let socket = self.folder.path().join("s");
        let stream = loop {
            if let Ok(stream) = UnixStream::connect(&socket).await {
                break stream;
            }
            assert!(self.process.try_wait().expect("asked").is_none(), "it has ended");
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        let mut request = "ws://localhost/run".into_client_request().expect("a request");
        let subprotocol = SUBPROTOCOL.parse().expect("a header");
        request.headers_mut().insert("Sec-WebSocket-Protocol", subprotocol);
        tokio_tungstenite::client_async(request, stream).await.expect("connected").0
    }

    /// Executes a run and gives all that was said, the final response last.
    async fn run(&mut self, request: Value) -> Vec<Value> {
        let mut socket = self.connect().await;
        socket.send(Message::text(request.to_string())).await.expect("sent");
        let mut frames: Vec<Value> = Vec::new();
        while let Some(Ok(message)) = socket.next().await {
            if let Message::Text(text) = message {
                frames.push(serde_json::from_str(&text).expect("JSON"));
            }
            if frames.last().is_some_and(|frame| frame["control"]["final"] == true) {
                break;
            }
        }
        frames
    }

    async fn stop(mut self) -> ExitStatus {
        let id = self.process.id().and_then(|id| i32::try_from(id).ok()).expect("an id");
        let id = rustix::process::Pid::from_raw(id).expect("an id");
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("told to stop");
        self.process.wait().await.expect("ended")
    }
}

fn keep(folder: &Path, path: &str, bytes: &[u8]) {
    let path = folder.join("artifacts").join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("made");
    std::fs::write(path, bytes).expect("written");
}

#[tokio::test]
async fn t015_t021_a_run_goes_from_request_to_response_and_the_server_ends_in_order() {
    let mut tool = Tool::start();
    keep(tool.folder.path(), "r1/in.txt", b"to be or not to be");
    let request = json!({
        "kind": "Request",
        "control": {"run_id": "r1", "mode": "real", "refs": ["text"]},
        "inputs": {"text": "/artifacts/r1/in.txt"},
        "outputs": {"table": "/artifacts/r1/out/table.tsv"},
    });
    let frames = tool.run(request).await;
    let kinds: Vec<&str> = frames.iter().filter_map(|frame| frame["kind"].as_str()).collect();
    assert_eq!(kinds[0], "Ack");
    assert!(kinds.contains(&"Log"), "{kinds:?}");
    let partial =
        |frame: &&Value| frame["outputs"]["words"] == 6 && frame["control"]["final"] != true;
    assert!(frames.iter().any(|frame| partial(&frame)), "{frames:?}");
    let spent = |frame: &Value| frame["kind"] == "Event" && frame["control"]["cost_micro"] == 10;
    assert!(frames.iter().any(spent), "the cost is told before the end: {frames:?}");
    let last = frames.last().expect("a response");
    assert_eq!(last["control"]["status"], "success", "{last}");
    assert_eq!(last["control"]["cost_micro"], 10);
    let outputs = json!({"words": 6, "table": "/artifacts/r1/out/table.tsv"});
    assert_eq!(last["outputs"], outputs);
    let table = tool.folder.path().join("artifacts/r1/out/table.tsv");
    let table = std::fs::read_to_string(table).expect("the table");
    assert_eq!(table, "be\t2\nnot\t1\nor\t1\nto\t2\n");
    assert_eq!(last["control"]["written"]["table"]["bytes"], table.len());
    assert!(tool.stop().await.success());
}

#[tokio::test]
async fn t006_inputs_that_do_not_fit_are_refused_without_being_quoted() {
    let mut tool = Tool::start();
    for (run_id, inputs, code) in [
        ("r1", json!({}), "ERR_INPUTS"),
        ("r2", json!({"text": 4711}), "ERR_INPUTS"),
        ("r3", json!({"text": "/artifacts/r3/canary.txt"}), "ERR_NOT_FOUND"),
        ("r4", json!({"text": "/artifacts/r3/canary.txt"}), "ERR_PATH"),
        ("r5", json!({"text": "https://canary.example/x"}), "ERR_EGRESS"),
    ] {
        let control = json!({"run_id": run_id, "mode": "mock"});
        let request = json!({"kind": "Request", "control": control, "inputs": inputs});
        let frames = tool.run(request).await;
        let last = frames.last().expect("a response");
        assert_eq!(last["error"]["code"], code, "{last}");
        let text = last.to_string();
        assert!(!text.contains("4711") && !text.contains("canary"), "{text}");
    }
    assert!(tool.stop().await.success());
}

#[test]
fn the_schemas_are_shown_when_asked_for() {
    let shown = std::process::Command::new(env!("CARGO_BIN_EXE_words-tool"))
        .arg("--schema")
        .output()
        .expect("started");
    let schemas: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
    assert_eq!(schemas["input"]["properties"]["text"]["type"], "string");
    assert_eq!(schemas["output"]["properties"]["words"]["type"], "integer");
}
