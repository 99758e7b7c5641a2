//! Finds the agent that a typed id, or the beginning or the end of one, means.

use serde_json::Value;
use wharf_vocab::Code;
use wharf_wire::rest_v1::Agent;

use crate::client::Client;
use crate::commands::providers::pick::{Kind, pick};
use crate::failure::Result;
use crate::table;

const AGENTS: Kind = Kind { word: "agent", command: "wharf agents", unknown: Code::AgentNotFound };

/// The agent that `typed` means, as it is understood and as the core sent it.
pub(super) async fn find(client: &Client, typed: &str) -> Result<(Agent, Value)> {
    let (mut items, _) = client.list(&["v1", "agents"], &[], None).await?;
    let agents: Vec<Agent> = table::rows(items.clone())?;
    let ids: Vec<&str> = agents.iter().map(|agent| agent.agent_id.as_str()).collect();
    let at = pick(&ids, typed, AGENTS)?;
    let raw = items.swap_remove(at);
    Ok((table::typed(raw.clone())?, raw))
}

/// The id of the agent that `typed` means.
pub(super) async fn find_id(client: &Client, typed: &str) -> Result<String> {
    Ok(find(client, typed).await?.0.agent_id)
}
