//! Servers that come as packages.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;
use wharf_ports::providers::{ProviderControl as _, ProviderState};
use wharf_vocab::Code;

use crate::stage::{Stage, id, owner, tool};

/// What stands for the machine's npm: it knows where packages are, and has one of them.
const NPM: &str = r#"#!/bin/sh
case "$*" in
  "config list --json") echo '{"registry": "http://127.0.0.1:9/"}' ;;
  *missing@*) echo "npm error code E404" >&2; echo "npm error not here" >&2; exit 1 ;;
  *install*)
    mkdir -p node_modules/.bin
    printf '#!/bin/sh\nexec python3 server.py "$@"\n' > node_modules/.bin/acme
    chmod +x node_modules/.bin/acme
    echo "added 1 package" ;;
  *) exit 2 ;;
esac
"#;

async fn stage() -> Stage {
    let tools = tempfile::tempdir().expect("a folder").keep();
    for (name, text) in [("npm", NPM), ("node", "#!/bin/sh\n")] {
        std::fs::write(tools.join(name), text).expect("written");
        let mode = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(tools.join(name), mode).expect("set");
    }
    let stage = Stage::with(|options| options.search = vec![tools]).await;
    stage.state(&json!({"tools": [tool("echo")]}));
    stage
}

fn manifest(stage: &Stage, package: &str) {
    let state = stage.dir.path().join("state.json").display().to_string();
    let command = format!(r#"command = ["acme", "legacy", "{state}"]"#);
    let text = format!("name = \"srv\"\nnpm = \"{package}\"\n{command}\n");
    stage.write("wharf.mcp.toml", &text);
}

fn installs(stage: &Stage) -> usize {
    stage.launcher.log().matches("added 1 package").count()
}

#[tokio::test]
async fn m047_a_package_is_installed_once_with_one_way_out_and_pinned() {
    let stage = stage().await;
    manifest(&stage, "acme@1.2.3");
    stage.add().await.expect("added");
    assert_eq!(installs(&stage), 0, "adding runs nothing");
    stage.approve().await.expect("approved");
    stage.settled().await;
    assert_eq!((installs(&stage), stage.doors.opened()), (1, vec![vec!["127.0.0.1:9".to_owned()]]));
    assert_eq!(stage.call("echo", json!({})).await["name"], "echo");
    let specs = stage.launcher.specs();
    assert!(specs[0].args.contains(&"--ignore-scripts".to_owned()), "{:?}", specs[0].args);
    assert!(specs[0].fence.egress.is_some() && specs[1].fence.egress.is_none());

    stage.edge.restart(owner(), id()).await.expect("restarted");
    stage.call("echo", json!({})).await;
    stage.approve().await.expect("approved again");
    assert_eq!(installs(&stage), 1, "once");

    let program = stage.folder().join("node_modules/.bin/acme");
    std::fs::write(&program, "#!/bin/sh\ntouch /tmp/pwned\n").expect("written");
    stage.edge.restart(owner(), id()).await.expect("told");
    let fault = stage.fault("echo", json!({})).await;
    assert!(fault.is(Code::ToolUnavailable) || fault.is(Code::AgentDrifted), "{fault}");
    let view = stage.until(|view| view.state == ProviderState::Drifted).await;
    let reason = view.reason.unwrap_or_default();
    assert!(reason.contains("not the ones that were installed"), "{reason}");
    stage.approve().await.expect("approved anew");
    assert_eq!(installs(&stage), 2, "it is installed again");
    assert_eq!(stage.call("echo", json!({})).await["name"], "echo");
}

#[tokio::test]
async fn m047_a_package_that_is_not_there_is_said_and_nothing_is_left() {
    let stage = stage().await;
    manifest(&stage, "missing@1.2.3");
    stage.add().await.expect("added");
    let fault = stage.approve().await.expect_err("not there");
    let message = "The package missing@1.2.3 cannot be installed: code E404; not here.";
    assert_eq!(fault.message, message);
    assert!(!stage.folder().join("node_modules").exists());
    let view = stage.edge.show(&id()).expect("known");
    assert!(view.provider.approval.is_none());
}

#[tokio::test]
async fn m047_a_machine_without_npm_says_so() {
    let stage = Stage::with(|options| options.search.clear()).await;
    manifest(&stage, "acme@1.2.3");
    stage.add().await.expect("added");
    let fault = stage.approve().await.expect_err("no tools");
    assert!(fault.message.contains("there is no node on this machine"), "{fault}");
}
