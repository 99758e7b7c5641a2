//! More than one scripted agent on a stage, with permissions and limits of their own.

use serde_json::{Value, json};
use tokio::time::Instant;
use wharf_ports::providers::{Approve, ProviderControl as _, ProviderState};
use wharf_vocab::ProviderId;

use crate::agent::{Agent, LONG};
use crate::launcher::Launch;
use crate::stage::{Stage, owner};

/// The agent that calls others.
pub(crate) const CALLER: &str = "dev.example.hello";
/// The agent that is called.
pub(crate) const CALLED: &str = "dev.example.other";

/// An agent as a test wants it.
pub(crate) struct Part<'a> {
    pub(crate) id: &'a str,
    pub(crate) permissions: &'a [&'a str],
    pub(crate) capabilities: &'a [&'a str],
    pub(crate) tools: Vec<Value>,
    pub(crate) limits: Value,
    pub(crate) approve: Approve,
}

impl<'a> Part<'a> {
    pub(crate) fn new(id: &'a str, tools: &[&str]) -> Self {
        Self {
            id,
            permissions: &[],
            capabilities: &["tools", "invoke", "ask"],
            tools: tools.iter().map(|name| tool(id, name)).collect(),
            limits: Value::Null,
            approve: Approve::default(),
        }
    }

    pub(crate) fn may(self, permissions: &'a [&'a str]) -> Self {
        Self { permissions, ..self }
    }

    /// Adds, approves and starts the agent, which joins and offers its tools.
    pub(crate) async fn enter(self, stage: &mut Stage) -> (Launch, Agent) {
        let folder = stage.dir.path().join(self.id);
        std::fs::create_dir_all(&folder).expect("made");
        let mut manifest = json!({
            "id": self.id, "version": "0.1.0", "permissions": self.permissions,
            "entrypoint": {"type": "command", "value": "./agent"},
        });
        if !self.limits.is_null() {
            manifest["execution_limits"] = self.limits;
        }
        std::fs::write(folder.join("opensentience.agent.json"), manifest.to_string())
            .expect("writes");
        // What the entrypoint names is part of what is approved.
        std::fs::write(folder.join("agent"), "#!/bin/sh\n").expect("writes");
        let id = ProviderId::new(self.id).expect("valid");
        stage.edge.control().add(owner(), folder).await.expect("added");
        stage.edge.control().approve(owner(), id.clone(), self.approve).await.expect("approved");
        stage.edge.control().start(owner(), id.clone()).await.expect("started");
        let launch = stage.launch().await;
        let mut agent = Agent::join_as(&launch, self.id, self.capabilities).await;
        agent.offer(&self.tools).await;
        let deadline = Instant::now() + LONG;
        while stage.edge.control().show(&id).expect("known").state != ProviderState::Running {
            assert!(Instant::now() < deadline, "{id} never ran");
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        (launch, agent)
    }
}

/// A tool of an agent that takes any object.
pub(crate) fn tool(agent: &str, name: &str) -> Value {
    json!({
        "tool_id": format!("{agent}/{name}"), "name": name,
        "description": "a tool", "input_schema": {"type": "object"},
    })
}

/// Asks the core to call a tool on behalf of a call.
pub(crate) async fn invoke(agent: &mut Agent, id: &str, call: &Value, tool: &str, more: Value) {
    let mut payload = json!({
        "invoke_id": id, "tool_id": tool, "input": {"secret": "canary-input"},
        "parent_call_id": call["payload"]["call_id"],
    });
    for (key, value) in more.as_object().expect("an object") {
        payload[key] = value.clone();
    }
    agent.send("agent.tool.invoke", payload, json!({"request_id": call["request_id"]})).await;
}

/// The result of a call that an agent made; pieces of output before it are passed over.
pub(crate) async fn result(agent: &mut Agent) -> Value {
    loop {
        let message = agent.receive().await;
        if message["type"] == "core.tool.invoke_stream" {
            continue;
        }
        assert_eq!(message["type"], "core.tool.invoke_result", "{message}");
        return message["payload"].clone();
    }
}
