//! Records of providers that are not agents.

use serde_json::json;
use wharf_domain::provider::{
    Entrypoint, Manifest, ProviderKind, ProviderLimits, Serving, ToolServer,
};
use wharf_domain::{ProviderInput, ToolDef};
use wharf_ports::providers::ProviderControl as _;
use wharf_vocab::{Code, Digest, ProviderId, ToolId};

use crate::stage::{Stage, owner};

const REFERENCE: &str = "example/upper@1";

/// A tool server as another edge would add it.
fn tool_server() -> ProviderInput {
    let tool = ToolId::new(REFERENCE).expect("valid");
    let server = ToolServer {
        how: Serving::Handler { file: "tool.py".into(), cold: false, function: None },
        tool: ToolDef::new(tool, "", json!({"type": "object"})),
        token_secret: None,
        calls_max: None,
        environment: None,
        required_outputs: Vec::new(),
        https_only: false,
        source: Default::default(),
        sandbox: None,
    };
    ProviderInput::Add {
        folder: "/nowhere".into(),
        manifest_hash: Digest::of(&[b"manifest"]),
        manifest: Manifest {
            name: REFERENCE.into(),
            version: "1".into(),
            description: String::new(),
            entrypoint: Entrypoint { program: "tool.py".into(), args: Vec::new() },
            permissions: Vec::new(),
            limits: ProviderLimits::default(),
            isolation: None,
            kind: ProviderKind::ToolServer(Box::new(server)),
        },
    }
}

#[tokio::test]
async fn t042_a_tool_server_is_no_agent_and_is_left_alone() {
    let stage = Stage::new().await;
    let id = ProviderId::new(REFERENCE).expect("valid");
    stage.handle.providers().change(&owner(), &id, tool_server()).await.expect("added");
    // A core that starts with such a record does not take it up either.
    let stage = stage.restarted().await;
    assert!(stage.handle.providers().get(&id).is_ok(), "it is known");
    assert!(stage.edge.control().list().is_empty());
    let approve = stage.edge.control().approve(owner(), id.clone(), Default::default()).await;
    for refused in [
        stage.edge.control().show(&id).map(drop),
        approve.map(drop),
        stage.edge.control().start(owner(), id.clone()).await.map(drop),
        stage.edge.control().stop(owner(), id.clone()).await.map(drop),
        stage.edge.control().restart(owner(), id.clone()).await.map(drop),
        stage.edge.control().revoke(owner(), id.clone()).await.map(drop),
        stage.edge.control().approve_tools(owner(), id.clone(), Vec::new()).await.map(drop),
        stage.edge.control().drift(id.clone()).await.map(drop),
        stage.edge.control().logs(id.clone(), 1).await.map(drop),
        stage.edge.control().remove(owner(), id.clone()).await,
    ] {
        let fault = refused.expect_err("not an agent");
        assert!(fault.is(Code::AgentNotFound), "{fault}");
    }
    assert!(stage.handle.providers().get(&id).expect("still there").approval.is_none());
}
