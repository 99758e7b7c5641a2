//! `wharf conformance` as a script meets it: one JSON object and an exit code.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn wharf(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
    command.args(args).output().expect("the program starts")
}

#[test]
fn an_agent_that_breaks_the_protocol_ends_with_one() {
    let checked = wharf(&["conformance", "agent-protocol", "--json", "--", "true"]);
    assert_eq!(checked.status.code(), Some(1));
    let report: serde_json::Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_eq!(report["passed"], false);
    assert_eq!(report["counts"]["fail"], 1);
    let rows = report["requirements"].as_array().expect("rows");
    let hello = rows.iter().find(|row| row["requirement"] == "R40").expect("a row for the hello");
    assert_eq!(hello["result"], "fail");
    assert!(hello["why"].as_str().is_some_and(|why| why.contains("did not connect")), "{hello}");

    let shown = wharf(&["conformance", "agent-protocol", "--", "true"]);
    assert_eq!(shown.status.code(), Some(1));
    let table = String::from_utf8(shown.stdout).expect("text");
    assert!(table.contains("R40   fail            the first message is a complete hello ("));
}

#[test]
fn what_cannot_be_started_is_a_matter_of_usage() {
    for args in [
        &["conformance", "agent-protocol", "--", "./no-such-agent"][..],
        &["conformance", "agent-protocol", "--dir", "no/such/folder", "--", "true"],
        &["conformance", "agent-protocol"],
        &["conformance", "run-protocol"],
        &["conformance", "run-protocol", "ftp://127.0.0.1"],
        &["conformance", "run-protocol", "http://127.0.0.1:1"],
        &["conformance", "run-protocol", "http://127.0.0.1:1", "--inputs", "[]"],
        &["conformance", "run-protocol", "http://127.0.0.1:1", "--token-file", "no/such/file"],
    ] {
        let refused = wharf(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(!refused.stderr.is_empty() && refused.stdout.is_empty(), "{args:?}");
    }
}

/// A tool server as a process, ended with the test.
struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_tool_server_that_keeps_the_protocol_ends_with_zero() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../examples/tools/node/text/typewriter/1");
    let started =
        Command::new("node").arg(folder.join("server.mjs")).stdout(Stdio::piped()).spawn();
    let Ok(child) = started else {
        return wharf_skips::skip("node is not installed, so no tool server could be checked");
    };
    let mut server = Served(child);
    let mut line = String::new();
    let out = server.0.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("its first line");
    let url = line.trim().rsplit(' ').next().expect("an address");

    let inputs = r#"{"text":"one two"}"#;
    let checked = wharf(&["conformance", "run-protocol", url, "--json", "--inputs", inputs]);
    let report: serde_json::Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_eq!(checked.status.code(), Some(0), "{report:#}");
    assert_eq!(report["protocol"], "run-protocol");
    assert_eq!(report["counts"]["fail"], 0);

    let seed = wharf(&["conformance", "run-protocol", url, "--profile", "seed"]);
    assert_eq!(seed.status.code(), Some(0));
    let table = String::from_utf8(seed.stdout).expect("text");
    assert!(table.contains("T10   pass            one final Response, then the close code 1000 ("));
    assert!(!table.contains("[addition]"), "{table}");
}
