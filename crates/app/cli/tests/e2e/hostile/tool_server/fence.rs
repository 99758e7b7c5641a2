//! It reaches for what is not its own.

use serde_json::json;

use crate::agents::has_python;
use crate::hostile::peers::{Stage, tool_server};
use crate::security_page::{Peer, tried};

const READS: &str = r#"
def entry(payload, emit, ctrl):
    try:
        with open(payload["inputs"]["path"]) as file:
            return {"cost_micro": 0, "read": file.read()}
    except OSError as error:
        return {"cost_micro": 0, "refused": type(error).__name__}
"#;

#[test]
fn a_handler_reads_the_owners_token() {
    if !has_python() {
        return;
    }
    let stage = Stage::up();
    let _folder = tool_server(&stage.home, "sec/reads@1", READS, "");
    let path = stage.home.path().join("run/owner.token").display().to_string();
    let input = json!({"path": path}).to_string();
    let run = stage.home.run(&["run", "sec/reads@1", "--input", &input]).code(0).json();
    let refused = run["outputs"]["refused"].as_str().unwrap_or_else(|| panic!("{run}"));
    tried(
        Peer::ToolServer,
        "reads the owner's token",
        "mount namespace: the home is not there",
        refused,
    );
}
