//! Flows over GraphQL: the same as over REST.

use serde_json::json;

use crate::support::{OWNER, Stage, eventually};

#[tokio::test]
async fn f019_flows_are_added_shown_run_and_told_messages() {
    let stage = Stage::start().await;
    let document = json!({"name": "waits", "description": "Waits for a message.", "steps": [
        {"id": "say", "call": {"tool": "wharf/echo", "inputs": {"text": "hello"}}},
        {"id": "go", "signal": {"name": "go"}}],
        "output": {"said": "${steps.say.outputs.text}", "came": "${steps.go.outputs}"}});
    let check =
        "query ($document: JSON!) { checkFlow(document: $document) { ok findings { place } } }";
    let variables = json!({"document": document});
    let checked = stage.ask_as(OWNER, check, variables.clone()).await;
    assert_eq!(checked.data()["checkFlow"], json!({"ok": true, "findings": []}));
    let add = "mutation ($document: JSON!) { addFlow(document: $document) { version toolId } }";
    let added = stage.ask_as(OWNER, add, variables).await;
    assert_eq!(added.data()["addFlow"], json!({"version": 1, "toolId": "flow/waits@1"}));
    let list = stage.ask("{ flows { edges { node { name document } } } flow(name: \"waits\") { document graph } }").await;
    assert_eq!(
        list.data()["flows"]["edges"][0]["node"],
        json!({"name": "waits", "document": null})
    );
    assert_eq!(list.data()["flow"]["document"], document);

    let make = "mutation ($input: CreateRunInput!) { createRun(input: $input) { runId tool } }";
    let input = json!({"tool": "flow/waits", "inputs": {}, "runId": "w1"});
    let made = stage.ask_as(OWNER, make, json!({ "input": input })).await;
    assert_eq!(made.data()["createRun"]["tool"], "flow/waits@1", "the run shows the version");
    let send = "mutation { signalRun(id: \"w1\", name: \"go\", value: {n: 1}) { runId } }";
    assert_eq!(stage.ask(send).await.data()["signalRun"]["runId"], "w1");
    let show = "{ run(id: \"w1\") { status outputs flow { version costMicro steps status restartedAs } } \
         runSteps(id: \"w1\") { path status try tool } }";
    let shown = eventually(async || {
        let shown = stage.ask(show).await.data().clone();
        (shown["run"]["status"] == "succeeded").then_some(shown)
    })
    .await;
    assert_eq!(shown["run"]["outputs"], json!({"said": "hello", "came": {"n": 1}}));
    let flow =
        json!({"version": 1, "costMicro": "0", "steps": 2, "status": null, "restartedAs": null});
    assert_eq!(shown["run"]["flow"], flow);
    let say = json!({"path": "say", "status": "succeeded", "try": 1, "tool": "wharf/echo"});
    assert_eq!(shown["runSteps"], json!([say]), "of steps that are over only calls are shown");

    let input = json!({"tool": "flow/waits", "inputs": {}, "runId": "w2"});
    stage.ask_as(OWNER, make, json!({ "input": input })).await.data();
    let force = "mutation { cancelRun(id: \"w2\", reason: \"Now.\", force: true) { status } }";
    assert_eq!(stage.ask(force).await.data()["cancelRun"]["status"], "canceled");

    let remove = stage.ask("mutation { removeFlow(name: \"waits\", version: 1) }").await;
    assert_eq!(remove.data()["removeFlow"], "flow/waits@1");
    let gone = stage.ask("{ flow(name: \"waits\") { version } }").await;
    assert_eq!(gone.code(), Some("flow.not_found"));
}
