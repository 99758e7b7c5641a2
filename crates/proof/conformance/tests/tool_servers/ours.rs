//! Wharf's own tool server keeps every requirement, whatever executes the runs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::task::JoinHandle;
use wharf_conformance::Report;
use wharf_conformance::run::{Options, check};
use wharf_toolserver::server::{self, Listen, Server};
use wharf_toolserver::transfer::Policy;
use wharf_toolserver::worker::{PythonHandler, WorkerSettings};
use wharf_toolserver::{Call, Done, Handler, Report as Said, Reporter};

use crate::{object, skipped};

/// Types a text word by word, in this process.
#[derive(Debug)]
struct Typewriter;

impl Handler for Typewriter {
    fn run(&self, call: Call, report: Reporter) -> futures::future::BoxFuture<'static, Done> {
        Box::pin(async move {
            let text = call.inputs.get("text").and_then(|text| text.as_str()).unwrap_or("Hello");
            let delay = call.inputs.get("delay_ms").and_then(|ms| ms.as_u64()).unwrap_or(5);
            let mut typed = String::new();
            for word in text.split_inclusive(' ') {
                tokio::select! {
                    () = tokio::time::sleep(Duration::from_millis(delay)) => {}
                    () = call.cancel.cancelled() => break,
                }
                typed.push_str(word);
                report.say(Said::Partial(object(&json!({ "text": typed })))).await;
            }
            let outputs = object(&json!({ "text": typed }));
            Done { result: Ok(outputs), cost: Some(json!(12)) }
        })
    }

    fn digest(&self) -> String {
        "typewriter".to_owned()
    }
}

/// A server in a task, ended with the test.
struct Running {
    url: String,
    task: JoinHandle<()>,
    _place: tempfile::TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(handler: Arc<dyn Handler>) -> Running {
    let place = tempfile::tempdir().expect("a folder");
    let folder = |name: &str| {
        let folder = place.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        folder
    };
    let token = place.path().join("token");
    std::fs::write(&token, "a-token\n").expect("a file");
    let files = Policy {
        artifacts: Some(folder("artifacts")),
        scratch: folder("scratch"),
        ..Policy::default()
    };
    let options = server::Options {
        listen: Listen::Tcp("127.0.0.1:0".to_owned()),
        token_file: Some(token),
        files,
        ..server::Options::default()
    };
    let server = Server::bind(options).await.expect("a port");
    let url = format!("http://{}", server.address());
    handler.prepare().await.expect("a handler that gets ready");
    let task = tokio::spawn(server.serve_prepared(handler, std::future::pending()));
    Running { url, task, _place: place }
}

async fn checked(server: &Running) -> Report {
    let options = Options {
        token: Some("a-token".to_owned()),
        inputs: object(&json!({ "text": "Hello world" })),
        slow_inputs: Some(object(&json!({ "text": "a b", "delay_ms": 60_000 }))),
        slack: Duration::from_secs(2),
        ..Options::new(&server.url)
    };
    check(options).await.expect("the server answers")
}

#[tokio::test]
async fn a_handler_in_rust_keeps_every_requirement() {
    let server = serve(Arc::new(Typewriter)).await;
    let report = checked(&server).await;
    assert!(report.passed(), "{report}");
    assert_eq!(skipped(&report), [3, 13], "{report}");
}

#[tokio::test]
async fn a_handler_in_python_keeps_every_requirement() {
    if wharf_skips::lacks("python3") {
        return;
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/typewriter.py");
    let handler = PythonHandler::new(file, "python3", false, WorkerSettings::default());
    let server = serve(Arc::new(handler.expect("a handler"))).await;
    let report = checked(&server).await;
    assert!(report.passed(), "{report}");
    assert_eq!(skipped(&report), [3, 13], "{report}");
}
