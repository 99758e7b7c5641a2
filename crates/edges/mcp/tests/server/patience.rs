//! Clients that cannot wait (M28).

use serde_json::{Value, json};

use crate::client::{ALL, Client, OF_06, OF_26};
use crate::stage::{Stage, eventually};

async fn tools(client: &Client) -> Vec<Value> {
    let page = client.request(1, "tools/list", json!({})).await.result().await;
    page["tools"].as_array().expect("tools").clone()
}

fn offers(tools: &[Value], name: &str) -> bool {
    tools.iter().any(|tool| tool["name"] == name)
}

#[tokio::test]
async fn m028_an_impatient_client_gets_the_run_and_asks_for_it_again() {
    let stage = Stage::start().await;
    for revision in ALL {
        let plain = stage.client().speaking(revision).await;
        assert!(!offers(&tools(&plain).await, "wharf_wait"), "off unless asked");
        plain.call(1, "wharf_wait", json!({"run_id": "x"})).await.refused(200, -32602).await;

        let client = stage.client().at("/mcp?patience=200ms").speaking(revision).await;
        let known = tools(&client).await;
        assert!(offers(&known, "wharf_wait") && offers(&known, "wharf_cancel"));
        let result = client.call(2, "test__steps", json!({"of": 1})).await.result().await;
        assert_eq!(result["isError"], true, "{revision}");
        let meta = &result["_meta"]["dev.wharf/run"];
        let id = meta["run_id"].as_str().expect("an id").to_owned();
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.contains(&id) && text.contains("wharf_wait"), "{text}");
        assert!(result.get("structuredContent").is_none());
        // It goes on, and waiting is impatient, too.
        let again = client.call(3, "wharf_wait", json!({"run_id": id})).await.result().await;
        assert_eq!(again["isError"], true);
        assert!(!stage.run(&id).await.is_over() && stage.run(&id).await.cancel.is_none());
        stage.step(2);
        let done = eventually(async || {
            let done = client.call(4, "wharf_wait", json!({"run_id": id})).await.result().await;
            done.get("structuredContent").cloned()
        });
        assert_eq!(done.await, json!({"steps": 1}));
    }
}

#[tokio::test]
async fn m028_a_run_is_called_off_by_its_own_client_only() {
    let stage = Stage::start().await;
    let other = stage.token(json!({"verbs": ["read", "run"]})).await;
    for revision in ALL {
        let client = stage.client().at("/mcp?patience=150ms").speaking(revision).await;
        let result = client.call(1, "test__steps", json!({"of": 1})).await.result().await;
        let id = result["_meta"]["dev.wharf/run"]["run_id"].clone();
        let stranger = client.clone().bearing(&other).speaking(revision).await;
        for (client, arguments) in [
            (&stranger, json!({"run_id": id})),
            (&client, json!({"run_id": "nobodys"})),
            (&client, json!({"run_id": "no/id"})),
            (&client, json!({})),
            (&client, json!({"run_id": id, "more": 1})),
        ] {
            for tool in ["wharf_wait", "wharf_cancel"] {
                let response = client.call(2, tool, arguments.clone()).await.response().await;
                match revision == OF_06 {
                    true => assert_eq!(response["error"]["code"], -32602, "{response}"),
                    false => assert_eq!(response["result"]["isError"], true, "{response}"),
                }
            }
        }
        let text = id.as_str().expect("an id");
        assert!(stage.run(text).await.cancel.is_none());
        client.call(3, "wharf_cancel", json!({"run_id": id})).await.result().await;
        let done = eventually(async || {
            let done = client.call(4, "wharf_wait", json!({"run_id": id})).await.result().await;
            (done["_meta"]["dev.wharf/run"]["status"] == "canceled").then_some(done)
        });
        assert_eq!(done.await["isError"], true);
    }
}

#[tokio::test]
async fn m028_patience_can_be_set_for_all_and_ends_no_call_of_a_client_with_tasks() {
    let set = |options: &mut wharf_mcp::McpEdgeOptions| {
        options.server.patience = Some(std::time::Duration::from_millis(150));
        options.server.task_after = std::time::Duration::from_millis(300);
    };
    let stage = Stage::with(set).await;
    let client = stage.client().speaking(OF_26).await;
    assert!(offers(&tools(&client).await, "wharf_wait"));
    let result = client.call(1, "test__steps", json!({"of": 0})).await.result().await;
    assert_eq!(result["isError"], true);
    let able = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let client = stage.client().able(able).speaking(OF_26).await;
    stage.step(1);
    let result = client.call(2, "wharf__sleep", json!({"ms": 200})).await.result().await;
    assert_eq!(result["structuredContent"], json!({"slept_ms": 200}));
}
