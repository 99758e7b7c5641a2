//! Which era a server turns out to speak.

use serde_json::{Value, json};
use wharf_ports::providers::{ProviderControl as _, ProviderState};

use crate::stage::{Stage, id, owner, tool};

async fn stage(mood: &str, more: &str) -> Stage {
    let stage = Stage::new().await;
    stage.state(&json!({"tools": [tool("seen")]}));
    stage.ready(mood, more).await
}

/// The methods that the server was asked for so far, by this process.
async fn asked(stage: &Stage) -> Vec<String> {
    let seen = stage.call("seen", json!({})).await;
    let methods = seen.as_array().into_iter().flatten();
    methods.filter_map(|one| one[0].as_str().map(str::to_owned)).collect()
}

#[tokio::test]
async fn m050_a_server_is_asked_for_its_era_first_and_for_nothing_else() {
    let stage = stage("modern", "").await;
    assert_eq!(asked(&stage).await[..2], ["server/discover", "tools/list"]);
    let stage = self::stage("legacy", "").await;
    assert_eq!(asked(&stage).await[..3], ["server/discover", "initialize", "tools/list"]);
}

#[tokio::test]
async fn m050_silence_and_an_exit_mean_a_handshake() {
    let silent = stage("silent", "").await;
    assert_eq!(asked(&silent).await[..2], ["server/discover", "initialize"]);
    assert_eq!(silent.marks("began"), 1, "the same process");
    let leaves = stage("leaves", "").await;
    assert_eq!(asked(&leaves).await[0], "initialize");
    assert_eq!(leaves.marks("began"), 2, "another process");
}

#[tokio::test]
async fn m050_an_era_is_remembered_with_its_manifest() {
    let stage = stage("legacy", "").await;
    stage.edge.restart(owner(), id()).await.expect("restarted");
    assert_eq!(asked(&stage).await[0], "initialize", "it is known");
    stage.edge.stop(owner(), id()).await.expect("stopped");
    stage.manifest("modern", "description = \"another\"");
    stage.add().await.expect("added");
    stage.approve().await.expect("approved");
    stage.settled().await;
    assert_eq!(asked(&stage).await[0], "server/discover", "another manifest is another matter");
}

#[tokio::test]
async fn m050_a_manifest_can_say_the_era() {
    let legacy = stage("legacy", "era = \"legacy\"").await;
    assert_eq!(asked(&legacy).await[0], "initialize");
    let modern = stage("modern", "era = \"modern\"").await;
    assert_eq!(asked(&modern).await[0], "server/discover");
}

#[tokio::test]
async fn m051_every_legacy_version_is_spoken_and_no_other() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let stage = stage(&format!("legacy:{version}"), "").await;
        assert_eq!(stage.call("seen", json!({})).await[0][0], "server/discover", "{version}");
    }
    let stage = Stage::new().await;
    stage.manifest("legacy:1999-01-01", "");
    stage.add().await.expect("added");
    stage.approve().await.expect("approved");
    let crashed = stage.until(|view| view.state == ProviderState::Crashed).await;
    let reason = crashed.reason.unwrap_or_default();
    assert!(reason.contains("no known version"), "{reason}");
    assert_eq!(stage.launcher.alive(), 0);
}

#[tokio::test]
async fn m051_what_the_agreed_revision_does_not_know_is_ignored() {
    // It declares tasks, which came later.
    let stage = Stage::new().await;
    let mut seen = tool("seen");
    seen["execution"] = json!({"taskSupport": "required"});
    stage.state(&json!({ "tools": [seen] }));
    let stage = stage.ready("legacy:2025-06-18", "").await;
    let seen = stage.call("seen", json!({})).await;
    let last = seen.as_array().and_then(|all| all.last()).expect("the call");
    assert_eq!((&last[0], &last[1]["task"]), (&json!("tools/call"), &Value::Null));
}
