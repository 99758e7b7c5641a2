//! `wharf tool serve` alone: a handler, a program, and whether they keep the protocol.

use serde_json::{Value, json};

use super::{Served, text, write};
use crate::agents::has_python;
use crate::support::TestHome;

/// Answers at once, or when it is called off.
const HANDLER: &str = r#"
def entry(payload, emit, ctrl):
    text = payload["inputs"].get("text", "hello")
    if payload["inputs"].get("slow"):
        ctrl.wait(120)
    for end in range(1, len(text) + 1):
        emit({"kind": "Response", "control": {"final": False}, "outputs": {"text": text[:end]}})
    return {"text": text, "cost_micro": 3}
"#;

#[test]
fn t001_t022_a_served_handler_keeps_the_protocol() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "handler.py", HANDLER);
    write(folder.path(), "tokens", "a-token-of-the-test\n");
    let (file, tokens) = (folder.path().join("handler.py"), folder.path().join("tokens"));
    let served = Served::start(&home, &["--handler", text(&file), "--token-file", text(&tokens)]);
    let url = format!("http://{}", served.address);
    let slow = json!({"slow": true}).to_string();
    let options = ["--token-file", text(&tokens), "--slow-inputs", &slow, "--json"];
    let report = home.run(&[&["conformance", "run-protocol", &url], &options[..]].concat()).code(0);
    assert!(!report.stdout.contains("\"failed\""), "{report:#?}");
    assert!(report.stdout.contains("T19") && report.stdout.contains("T22"), "{report:#?}");
    assert_eq!(served.stop(), Some(0), "it ends in order");
}

#[test]
fn t042_a_served_handler_is_called_through_a_core() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let _core = home.up();
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "handler.py", HANDLER);
    let file = folder.path().join("handler.py");
    let served = Served::start(&home, &["--handler", text(&file)]);
    served.add_to(&home, "test/spell@1", "max_cost_micro = 10");
    let ended = home.run(&["run", "test/spell@1", "text=wharf"]).code(0);
    assert_eq!(ended.json()["outputs"]["text"], "wharf");
    assert_eq!(ended.json()["cost_micro"], 3);
    assert!(ended.stderr.contains("wharf"), "{ended:#?}");
    // When it is gone, that is what is said.
    drop(served);
    let failed = home.run(&["run", "test/spell@1", "text=x", "--max-attempts", "1"]);
    assert!(failed.code.is_some_and(|code| code != 0), "{failed:#?}");
}

#[test]
fn t015_a_program_is_served_and_sees_only_the_variables_that_are_named() {
    let home = TestHome::new();
    let _core = home.up();
    let folder = tempfile::tempdir().expect("a folder");
    let program = "read -r start <&3\necho \"${NAMED:-none} ${KEPT:-none}\"\n\
                   echo '{\"kind\":\"done\",\"result\":{\"answer\":42},\"cost\":7}' >&3\n";
    write(folder.path(), "answer.sh", program);
    let command = format!("sh '{}'", text(&folder.path().join("answer.sh")));
    let served = Served::start_in(
        &home,
        &["--exec", &command, "--env", "NAMED"],
        &[("NAMED", "this-is-named"), ("KEPT", "this-is-kept")],
    );
    served.add_to(&home, "test/answer@1", "max_cost_micro = 10");
    let ended = home.run(&["run", "test/answer@1"]).code(0);
    let run: Value = ended.json();
    assert_eq!((&run["outputs"]["answer"], &run["cost_micro"]), (&json!(42), &json!(7)));
    assert!(ended.stderr.contains("this-is-named none"), "{ended:#?}");
    assert_eq!(served.stop(), Some(0));
}

#[test]
fn what_cannot_be_served_is_said_at_once() {
    let home = TestHome::new();
    let nothing = home.run(&["tool", "serve", "--listen", "127.0.0.1:0"]).code(2);
    assert!(nothing.stderr.contains("--handler"), "{nothing:#?}");
    let listen = ["tool", "serve", "--listen", "127.0.0.1:0"];
    let gone = home.run(&[&listen[..], &["--exec", "./nowhere-to-be-found"]].concat());
    assert!(gone.code.is_some_and(|code| code != 0), "{gone:#?}");
    assert!(gone.stderr.contains("nowhere-to-be-found"), "{gone:#?}");
    let open = ["tool", "serve", "--listen", "0.0.0.0:0", "--exec", "sh"];
    let open = home.run(&open).code(2);
    assert!(open.stderr.contains("token"), "{open:#?}");
}
