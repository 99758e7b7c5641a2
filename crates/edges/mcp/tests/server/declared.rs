//! `initialize` and `server/discover` (M9, M12).

use serde_json::{Value, json};
use wharf_domain::ToolDef;
use wharf_domain::provider::McpOrigin;
use wharf_engine::in_process::{InProcess, LocalCx, ToolOutput};
use wharf_vocab::{Object, ToolId};

use crate::client::{OF_06, OF_11, OF_26};
use crate::stage::Stage;

#[tokio::test]
async fn m009_a_handshake_agrees_to_what_is_known() {
    let stage = Stage::start().await;
    for (asked, agreed) in [
        (OF_06, OF_06),
        (OF_11, OF_11),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        (OF_26, OF_11),
        ("1999-01-01", OF_11),
        ("latest", OF_11),
    ] {
        let answer = stage.client().initialize(asked).await;
        let session = answer.header("mcp-session-id").expect("a session").to_owned();
        assert!(session.len() <= 512 && session.bytes().all(|b| b.is_ascii_graphic()));
        let result = answer.result().await;
        assert_eq!(result["protocolVersion"], agreed, "{asked}");
        // Older ones are served by the rules of 2025-06-18.
        let tasks = result["capabilities"].get("tasks");
        assert_eq!(tasks.is_some(), agreed == OF_11, "{result}");
    }
}

#[tokio::test]
async fn m012_what_is_declared() {
    let stage = Stage::start().await;
    let mut told: Vec<Value> = Vec::new();
    for revision in [OF_06, OF_11] {
        let result = stage.client().initialize(revision).await.result().await;
        assert_eq!(result["serverInfo"]["name"], "wharf");
        assert!(result.get("resultType").is_none());
        told.push(result);
    }
    let client = stage.client().speaking(OF_26).await;
    let result = client.request(1, "server/discover", json!({})).await.result().await;
    assert_eq!(result["supportedVersions"], json!([OF_26]));
    assert_eq!(
        (&result["resultType"], &result["cacheScope"]),
        (&json!("complete"), &json!("private"))
    );
    assert!(result["ttlMs"].is_u64());
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "wharf");
    assert!(result["capabilities"]["extensions"]["io.modelcontextprotocol/tasks"].is_object());
    told.push(result);
    for result in told {
        let capabilities = &result["capabilities"];
        for list in ["tools", "prompts", "resources"] {
            assert_eq!(capabilities[list]["listChanged"], true, "{result}");
        }
        assert_eq!(capabilities["resources"]["subscribe"], true);
        assert!(capabilities["completions"].is_object() && capabilities["logging"].is_object());
        let instructions = result["instructions"].as_str().expect("instructions");
        assert!(instructions.len() <= 2048 && !instructions.contains("wharf_wait"));
    }
    // A legacy client has no `server/discover`, and a modern one no `initialize`.
    let legacy = stage.client().speaking(OF_11).await;
    legacy.request(2, "server/discover", json!({})).await.refused(200, -32601).await;
}

#[tokio::test]
async fn m012_a_servers_instructions_are_told_at_its_own_door_only() {
    let stage = Stage::start().await;
    let pinned = |text: &str| {
        let origin = McpOrigin { pinned: Some(text.into()), ..McpOrigin::default() };
        let id = ToolId::new("srv/instructions").expect("an id");
        ToolDef {
            hidden: true,
            mcp: Some(Box::new(origin)),
            ..ToolDef::new(id, "", json!({"type": "object"}))
        }
    };
    let nothing = async |outputs: Object, _: LocalCx| Ok(ToolOutput { outputs, cost_micro: 0 });
    let server = InProcess::new("srv").expect("an id");
    let long = format!("Ask me kindly. {}", "ä".repeat(3_000));
    server.object_tool(pinned(&long), nothing).register(&stage.handle).await.expect("registers");
    for revision in [OF_06, OF_11] {
        let own = stage.client().at("/mcp/srv").initialize(revision).await.result().await;
        let told = own["instructions"].as_str().expect("text");
        assert!(told.starts_with("Ask me kindly.") && told.len() <= 2048);
        let all = stage.client().initialize(revision).await.result().await;
        assert!(!all["instructions"].as_str().expect("text").contains("kindly"));
    }
    let client = stage.client().at("/mcp/srv").speaking(OF_26).await;
    let own = client.request(1, "server/discover", json!({})).await.result().await;
    assert!(own["instructions"].as_str().expect("text").starts_with("Ask me kindly."));
    // It is no tool.
    let page = client.request(2, "tools/list", json!({})).await.result().await;
    assert_eq!(page["tools"], json!([]));
    client.call(3, "instructions", json!({})).await.refused(200, -32602).await;
}
