//! It lets large runs wait.

use serde_json::{Value, json};

use crate::hostile::peers::Stage;
use crate::security_page::{Peer, tried};
use crate::support::Api;

const RUNS: usize = 16;
const INPUT_BYTES: usize = 3_900_000;

/// What the core says that open runs take.
fn held_bytes(api: &Api) -> u64 {
    let (status, text) = api.bytes("/metrics");
    assert_eq!(status, 200);
    let text = String::from_utf8(text).expect("text");
    let line = text.lines().find_map(|line| line.strip_prefix("wharf_held_bytes "));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small number")]
    line.map(|number| number.parse::<f64>().expect("a number") as u64).expect("a gauge")
}

#[test]
fn lets_large_runs_wait_for_an_approval() {
    let stage = Stage::up();
    let rules = r#"[{"tool":"wharf/echo","approve":true}]"#;
    stage.home.run(&["worlds", "create", "lab", "--policy", rules]).code(0);
    let caller = stage.caller(&["--verb", "run", "--verb", "read", "--world", "lab"]);
    let text = "x".repeat(INPUT_BYTES);
    let run = json!({"tool": "wharf/echo", "world": "lab", "inputs": {"text": text}});
    let mut last = Value::Null;
    for _ in 0..RUNS {
        last = caller.start(&run)["run_id"].clone();
    }
    let held = held_bytes(&stage.api);
    assert!(held < 200_000, "{held} bytes for {RUNS} runs that wait");
    let Stage { home, core, .. } = stage;
    core.kill();
    let core = home.up();
    let api = Api::of(&core);
    let held = held_bytes(&api);
    assert!((1..200_000).contains(&held), "{held} bytes after a restart");
    // They are not lost: the one that is let pass is given what it was asked for.
    let last = last.as_str().expect("an id");
    let shown = api.get(&format!("/v1/runs/{last}?world=lab"));
    assert_eq!(shown["inputs"]["text"].as_str().map(str::len), Some(INPUT_BYTES));
    let ask = shown["ask"]["ask_id"].as_str().expect("it waits");
    let decide = format!("/v1/approvals/{ask}/decide");
    let (status, answer) = api.ask("POST", &decide, &json!({"decision": "allow"}));
    assert!(status < 300, "{status}: {answer}");
    let ended = api.end_of("lab", last);
    assert_eq!(ended["outputs"]["text"].as_str().map(str::len), Some(INPUT_BYTES));
    tried(
        Peer::Client,
        "lets large runs wait for an approval",
        "inputs of runs that wait are kept in the store only",
        "they wait, and take no memory",
    );
}
