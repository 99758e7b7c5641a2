//! The example servers keep every requirement.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use wharf_conformance::run::{Options, check};

use crate::{object, skipped};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/tools")
}

/// A server as a process, ended with the test.
struct Served {
    child: Child,
    url: String,
}

impl Served {
    /// Starts a server that says where it listens in its first line.
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the server starts");
        let mut line = String::new();
        let out = child.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("its first line");
        let url = line.trim().rsplit(' ').next().unwrap_or_default().to_owned();
        Self { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[tokio::test]
async fn the_server_in_plain_node_keeps_every_requirement() {
    if wharf_skips::lacks("node") {
        return;
    }
    let place = tempfile::tempdir().expect("a folder");
    let token = place.path().join("token");
    std::fs::write(&token, "a-token\n").expect("a file");
    let mut node = Command::new("node");
    node.arg(examples().join("node/text/typewriter/1/server.mjs")).arg("--token-file").arg(&token);
    let server = Served::start(node.env("TOOL_ARTIFACTS", place.path()));
    let options = Options {
        token: Some("a-token".to_owned()),
        slow_inputs: Some(object(&json!({ "text": "a b", "delay_ms": 60_000 }))),
        slow: false,
        slack: Duration::from_secs(2),
        ..Options::new(&server.url)
    };
    let report = check(options).await.expect("the server answers");
    assert!(report.passed(), "{report}");
    // These take longer than a test should.
    assert_eq!(skipped(&report), [3, 13], "{report}");
}
