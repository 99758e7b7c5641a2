//! What is in `deploy/`, checked by the programs it is for and against a real core.

use crate::children::{self, Finish as _, command};
use crate::support::{LONG, TestHome};
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../deploy/prometheus")
}

fn promtool(arguments: &[&str]) -> String {
    let done = command("promtool").args(arguments).current_dir(folder()).finish();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&done.stdout),
        String::from_utf8_lossy(&done.stderr)
    );
    assert!(done.status.success(), "promtool {arguments:?}: {said}");
    said
}

#[test]
fn the_alerts_and_the_configuration_are_what_prometheus_takes() {
    if wharf_skips::lacks("promtool") {
        return;
    }
    assert!(promtool(&["check", "rules", "alerts.yml"]).contains("SUCCESS"));
    assert!(promtool(&["test", "rules", "alerts_test.yml"]).contains("SUCCESS"));
    promtool(&["check", "config", "--syntax-only", "scrape.yml"]);
}

#[test]
fn what_a_core_serves_is_what_prometheus_reads() {
    if wharf_skips::lacks("promtool") {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    home.run(&["run", "wharf/sleep", "ms=1", "cost_micro=5"]).code(0);
    home.run(&["run", "wharf/fail"]).code(1);
    let token = home.run(&["token", "create", "--verb", "metrics"]).code(0).stdout;
    let addr = core.url().trim_start_matches("http://").to_owned();
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: {addr}\r\nauthorization: Bearer {}\r\nconnection: close\r\n\r\n",
        token.trim()
    );
    let mut stream = std::net::TcpStream::connect(&addr).expect("connects");
    stream.set_read_timeout(Some(LONG)).expect("set");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sends");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("reads");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, text) = answer.split_once("\r\n\r\n").expect("a body");
    for line in [
        "wharf_runs_ended_total{tool=\"wharf/fail\",world=\"default\",status=\"failed\"} 1",
        "wharf_run_cost_micro_total{tool=\"wharf/sleep\",world=\"default\"} 5",
        "wharf_world_spent_micro{world=\"default\"} 5",
        "wharf_store_bytes ",
        "process_cpu_seconds_total ",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    let mut check = command("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("promtool starts");
    let mut input = check.stdin.take().expect("piped");
    std::io::Write::write_all(&mut input, text.as_bytes()).expect("it reads");
    drop(input);
    let done = children::ended(check, "promtool check metrics", children::PROGRAM);
    // What does not parse is an error; matters of taste (3) are not.
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(matches!(done.status.code(), Some(0 | 3)), "{said}");
    assert!(!said.contains("error while linting"), "{said}");
}
