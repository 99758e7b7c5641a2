//! It hides what it takes from its limits.

use serde_json::json;

use super::fence::{HOSTILE, Row, running, start, start_anew, stopped};
use crate::security_page::{Audit, Peer, tried_and_audited};
use crate::support::{TestHome, wait_for};

/// What is tried, what the page says of it, and the limit under whose name it is ended.
const BOMBS: [(&str, Row, &str); 6] = [
    (
        "invisible_memory",
        (Peer::Agent, "hides memory in an invisible process", "the launch's limits"),
        "memory",
    ),
    (
        "invisible_disk",
        (Peer::Agent, "hides removed files in an invisible process", "the launch's limits"),
        "disk",
    ),
    (
        "crowded_memory",
        (Peer::Agent, "hides memory behind very many open files", "the launch's limits"),
        "open_files",
    ),
    (
        "crowded_disk",
        (Peer::Agent, "hides removed files behind very many open files", "the launch's limits"),
        "open_files",
    ),
    (
        "mapped_disk",
        (Peer::Agent, "keeps removed files that are only mapped", "the launch's limits"),
        "disk",
    ),
    (
        "page_tables",
        (Peer::Agent, "makes the kernel keep long page tables", "the launch's limits"),
        "memory",
    ),
];

#[test]
fn a_hostile_agent_that_hides_what_it_takes_is_ended_and_named() {
    if !crate::agents::has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    start(&home, "hostile", HOSTILE);
    running(&home, HOSTILE);
    let shown = home.run(&["agents", "show", HOSTILE, "--json"]).code(0).json();
    assert_eq!(shown["limits_kept"]["disk_bytes"], "measured", "{shown}");
    let kept = home.run(&["agents", "show", HOSTILE]).code(0).stdout;
    assert!(kept.contains("by measuring: "), "{kept}");
    let mut audit = Audit::of(&home, HOSTILE);
    for (tool, row, resource) in BOMBS {
        start_anew(&home);
        let began = std::time::Instant::now();
        let run = home.run(&["run", &format!("{HOSTILE}/{tool}")]).code(1).json();
        let took = began.elapsed();
        assert_eq!(run["error"]["code"], "tool.agent_lost", "{run}");
        let lines = wait_for("the end to be named", || {
            let lines = audit.fresh(&home);
            lines.iter().any(|line| line.contains("agent.resource_exceeded")).then_some(lines)
        });
        let expect = json!(resource).to_string();
        let named = format!("\"resource\":{expect}");
        assert!(lines.iter().any(|line| line.contains(&named)), "{tool} {took:?} {lines:?}");
        let came_back = format!("stopped: it went over its limit of {resource}");
        tried_and_audited(row.0, row.1, row.2, &came_back, &lines);
    }
    start_anew(&home);
    let run = home.run(&["run", &format!("{HOSTILE}/secret_memory")]).code(0).json();
    assert_eq!(run["outputs"]["stopped"], true, "{run}");
    let row = (Peer::Agent, "takes memory that nobody can look at", "seccomp: no secret memory");
    stopped(&home, &mut audit, row, run["outputs"]["how"].as_str().unwrap_or(""));
    core.stop().code(0);
}
