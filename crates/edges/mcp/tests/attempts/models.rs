//! What servers ask of models, and the folders they are told of.

use serde_json::{Value, json};
use wharf_domain::run::McpTerms;
use wharf_domain::{Resolution, ToolDef};
use wharf_engine::in_process::{InProcess, ToolOutput};
use wharf_ports::RunQuery;
use wharf_vocab::{Object, ToolId};

use crate::peers::{answer, asked, peer, resolve, start, start_for};
use crate::stage::{Stage, object};

const MAY_SAMPLE: &str = r#"permissions = ["tool:invoke:wharf/sample"]"#;
const CAN: McpTerms = McpTerms {
    form: false,
    url: false,
    sampling: true,
    sampling_tools: false,
    roots: true,
    inbox_off: false,
    task_ttl_ms: None,
};

/// Sets up a model that says what it was asked and costs something.
async fn with_model(stage: &Stage) {
    let tool = ToolId::new("wharf/sample").expect("valid");
    let def = ToolDef::new(tool, "A model.", json!({"type": "object"}));
    let model = InProcess::new("wharf").expect("valid").object_tool(def, |inputs, _| async move {
        let said = Value::Object(inputs)["prompt"][0]["content"].clone();
        let outputs = json!({"text": format!("{}: Paris", said.as_str().unwrap_or_default()),
            "model": "test", "finishReason": "stop"});
        Ok(ToolOutput { outputs: object(outputs), cost_micro: 7 })
    });
    model.register(&stage.handle).await.expect("registered");
}

fn said(words: &str) -> Value {
    json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": words}})
}

#[tokio::test]
async fn m067_a_client_that_can_is_asked_with_the_whole_request() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, MAY_SAMPLE).await;
        with_model(&stage).await;
        let run = start_for(&stage, "sample", json!({}), CAN).await;
        let ask = asked(&stage, &run).await;
        let detail = ask.detail.as_ref().expect("told");
        assert_eq!(detail["mcp"]["method"], "sampling/createMessage");
        let params = &detail["mcp"]["params"];
        assert_eq!(params["messages"][0]["content"]["text"], "The capital of France?");
        assert_eq!(params["maxTokens"], 10);
        answer(&stage, &ask, said("Lyon")).await;
        assert_eq!(stage.said(&run).await, said("Lyon"));
    }
}

#[tokio::test]
async fn m067_the_cores_own_model_is_a_child_run_and_its_cost_counts() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, MAY_SAMPLE).await;
        with_model(&stage).await;
        let run = start(&stage, "sample", json!({})).await;
        let told = stage.said(&run).await;
        assert_eq!(told["content"]["text"], "The capital of France?: Paris");
        assert_eq!((&told["model"], &told["stopReason"]), (&json!("test"), &json!("endTurn")));
        let tool = Some(ToolId::new("wharf/sample").expect("valid"));
        let query = RunQuery { tool, limit: 10, ..RunQuery::default() };
        let children = stage.handle.run_lists().list(query).await.expect("listed").runs;
        let [child] = &children[..] else { panic!("{children:?}") };
        assert_eq!((child.parent.as_ref(), child.cost_micro), (Some(&run.key), 7));
    }
}

#[tokio::test]
async fn m067_without_the_permission_nobody_is_asked() {
    let stage = peer("legacy", "").await;
    with_model(&stage).await;
    assert_eq!(stage.call("sample", json!({})).await["error"]["code"], -1);
}

#[tokio::test]
async fn m067_a_manifest_says_who_is_asked() {
    let stage = peer("legacy", &format!("sampling = \"model\"\n{MAY_SAMPLE}")).await;
    with_model(&stage).await;
    let run = start_for(&stage, "sample", json!({}), CAN).await;
    assert_eq!(stage.said(&run).await["model"], "test");

    let stage = peer("legacy", &format!("sampling = \"caller\"\n{MAY_SAMPLE}")).await;
    with_model(&stage).await;
    assert_eq!(stage.call("sample", json!({})).await["error"]["code"], -1);

    let stage = peer("legacy", &format!("sampling = \"refuse\"\n{MAY_SAMPLE}")).await;
    let run = start_for(&stage, "sample", json!({}), CAN).await;
    assert_eq!(stage.said(&run).await["error"]["code"], -32601);
}

#[tokio::test]
async fn m067_a_client_may_decline() {
    let stage = peer("legacy", "").await;
    let run = start_for(&stage, "sample", json!({}), CAN).await;
    resolve(&stage, &asked(&stage, &run).await, Resolution::Declined).await;
    assert_eq!(stage.said(&run).await["error"]["code"], -1);
}

#[tokio::test]
async fn m068_a_server_is_told_of_the_folders_that_were_approved_for_it() {
    let folders = r#"permissions = ["filesystem:read:/srv/a%b/**", "filesystem:write:/srv/c/**",
        "filesystem:read:/srv/c/**", "filesystem:read:/etc/*.conf"]"#;
    for era in ["legacy", "modern"] {
        let stage = peer(era, folders).await;
        let expected = json!({"roots": [
            {"uri": "file:///srv/a%25b", "name": "a%b"}, {"uri": "file:///srv/c", "name": "c"},
        ]});
        assert_eq!(stage.call("roots", json!({})).await, expected);
        let run = start_for(&stage, "roots", json!({}), CAN).await;
        assert_eq!(stage.said(&run).await, expected, "the caller's are not asked for");
    }
}

#[tokio::test]
async fn m068_a_clients_folders_are_passed_on() {
    for era in ["legacy", "modern"] {
        let stage = peer(era, "roots = \"caller\"").await;
        let run = start_for(&stage, "roots", json!({}), CAN).await;
        let ask = asked(&stage, &run).await;
        assert_eq!(ask.detail.as_ref().expect("told")["mcp"]["method"], "roots/list");
        let folders = json!({"roots": [{"uri": "file:///home/me"}]});
        answer(&stage, &ask, folders.clone()).await;
        assert_eq!(stage.said(&run).await, folders);
        let none: Object = object(json!({"roots": []}));
        assert_eq!(stage.call("roots", json!({})).await, Value::Object(none));
    }
}
