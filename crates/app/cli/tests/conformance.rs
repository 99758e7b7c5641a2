//! `wharf conformance` as a script meets it: one JSON object and an exit code.

use std::process::{Command, Output};

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
    ] {
        let refused = wharf(args);
        assert_eq!(refused.status.code(), Some(2), "{args:?}");
        assert!(!refused.stderr.is_empty() && refused.stdout.is_empty(), "{args:?}");
    }
}
