//! Runs whose values are not kept: what can be seen of them, and that no file has the values.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::agents::has_python;
use crate::support::{TestHome, wait_for};

const CANARY: &str = "c4n4ry-of-a-withheld-run";

const HANDLER: &str = r#"
def entry(payload, emit, ctrl):
    secret = payload["inputs"]["secret"]
    print("printed " + secret, flush=True)
    emit({"kind": "Response", "control": {"final": False}, "outputs": {"given": secret}})
    if payload["inputs"].get("fail"):
        raise ValueError("not good: " + secret)
    return {"given": secret, "cost_micro": 0}
"#;

/// All files below a folder that hold the canary.
fn found(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let kind = entry.file_type().expect("known");
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(bytes) = std::fs::read(&path)
                && bytes.windows(CANARY.len()).any(|part| part == CANARY.as_bytes())
            {
                found.push(path);
            }
        }
    }
    found
}

fn add_tool(home: &TestHome) {
    let folder = home.path().with_file_name("sealed-tool");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("handler.py"), HANDLER).expect("written");
    let manifest = "ref = \"acme/sealed@1\"\ndescription = \"Keeps nothing.\"\n\
                    handler = \"handler.py\"\nretain = \"digest\"\n";
    std::fs::write(folder.join("wharf.tool.toml"), manifest).expect("written");
    let folder = folder.display().to_string();
    home.run(&["tools", "add", &folder, "--approve"]).code(0);
}

#[test]
fn values_that_are_not_kept_are_in_no_file_once_the_run_has_ended() {
    if !has_python() {
        return;
    }
    let home = TestHome::new();
    let core = home.up();
    home.run(&["worlds", "create", "sealed", "--retain", "digest"]).code(0);
    add_tool(&home);
    let secret = format!("secret={CANARY}");

    // While a run is open its inputs are on the disk, but nobody can read them there.
    let open = ["run", "wharf/sleep", "ms=600000", "--world", "sealed", "--run-id", "open"];
    home.run(&[&open[..], &["--detach"]].concat()).code(0);
    let text = format!("text={CANARY}");
    let title = format!("question={CANARY}?");
    home.run(&["run", "wharf/ask", &title, "--world", "sealed", "--run-id", "asked", "--detach"])
        .code(0);
    let asks = || home.run(&["inbox", "--json"]).code(0).json();
    let ask = wait_for("the ask", || Some(asks()[0]["ask_id"].as_str()?.to_owned()));
    home.run(&["answer", &ask, CANARY]).code(0);

    let given = home.run(&["run", "acme/sealed@1", &secret, "--run-id", "good", "--json"]).code(0);
    let given = given.json();
    assert_eq!(given["outputs"]["given"], CANARY, "whoever waits gets it: {given}");
    assert_eq!(given["kept"], json!({"retain": "digest"}), "{given}");
    home.run(&["run", "acme/sealed@1", &secret, "fail=true", "--run-id", "bad"]).code(1);
    home.run(&["run", "wharf/echo", &text, "--world", "sealed", "--run-id", "echo"]).code(0);
    let message = format!("message={CANARY}");
    home.run(&["run", "wharf/fail", &message, "--world", "sealed", "--run-id", "fail"]).code(1);
    // Whoever comes back a little later gets it, too, but nobody can start it again.
    let shown = home.run(&["runs", "show", "good", "--json"]).code(0).json();
    assert_eq!(shown["outputs"]["given"], CANARY, "{shown}");
    let again = home.run(&["runs", "retry", "good"]);
    assert!(again.stderr.contains("run.values_not_kept"), "{again:#?}");
    let ended = |run: &str| {
        let shown = home.run(&["runs", "show", run, "--json"]).code(0).json();
        (shown["status"] != "waiting" && shown["status"] != "running").then_some(())
    };
    wait_for("the asked run to end", || ended("asked"));

    // The log of the database is emptied within ten seconds.
    wait_for("all files to be without the values", || found(&home.path()).is_empty().then_some(()));
    if home.has_a_file() {
        let backup = home.path().with_file_name("backup");
        home.run(&["backup", &backup.display().to_string()]).code(0);
        assert_eq!(found(&backup), Vec::<PathBuf>::new(), "nor has a backup");
    }

    core.kill();
    let core = home.up();
    let shown = |run: &str| home.run(&["runs", "show", run, "--json"]).code(0).json();
    let good = shown("good");
    assert_eq!((&good["status"], &good["outputs"]), (&json!("succeeded"), &json!({})), "{good}");
    let inputs = json!({"secret": CANARY}).to_string();
    let b3 = blake3::hash(inputs.as_bytes()).to_hex().to_string();
    assert_eq!(good["kept"]["inputs"], json!({"b3": b3, "bytes": inputs.len()}), "{good}");
    assert!(good["kept"]["outputs"]["b3"].is_string(), "{good}");
    let bad = shown("bad");
    assert_eq!(bad["error"]["code"], "tool.internal", "{bad}");
    assert!(bad["kept"]["error"]["b3"].is_string() && bad["attempts"][0].is_object(), "{bad}");
    let words = home.run(&["runs", "show", "good"]).code(0);
    assert!(words.stdout.contains("kept as digest"), "{}", words.stdout);
    for run in ["good", "bad", "echo", "fail", "asked"] {
        assert!(!shown(run).to_string().contains(CANARY), "{run}");
    }
    wait_for("the open run to go on", || (shown("open")["status"] == "running").then_some(()));
    let again = home.run(&["runs", "retry", "bad"]);
    assert!(again.stderr.contains("run.values_not_kept"), "{again:#?}");
    assert!(core.stop().code.is_some());
    assert_eq!(found(&home.path()), Vec::<PathBuf>::new());
    home.run(&["audit", "verify"]).code(0);
    assert_eq!(home.run(&["doctor", "--json"]).code, Some(0), "the database is whole");
}

/// A rule of the owner counts for all worlds, and what other runs were given stays.
#[test]
fn a_rule_says_of_which_tools_no_values_are_kept() {
    let home = TestHome::new();
    home.configure("[[retention]]\ntool = \"wharf/echo\"\nretain = \"digest\"\n");
    let core = home.up();
    home.run(&["run", "wharf/echo", "text=gone", "--run-id", "gone"]).code(0);
    home.run(&["run", "wharf/count", "n=1", "--run-id", "kept"]).code(0);
    core.kill();
    let _core = home.up();
    let shown = |run: &str| home.run(&["runs", "show", run, "--json"]).code(0).json();
    assert_eq!((&shown("gone")["inputs"], &shown("gone")["outputs"]), (&json!({}), &json!({})));
    let kept = shown("kept");
    assert_eq!((&kept["inputs"]["n"], &kept["kept"]), (&json!(1), &Value::Null), "{kept}");
}
