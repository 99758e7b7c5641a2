//! Agents as the journal knows them; how their processes fare is shown by REST.

use async_graphql::SimpleObject;

use crate::scalars::DateTime;

/// An agent.
#[derive(Debug, SimpleObject)]
pub(crate) struct Agent {
    /// Its id.
    agent_id: String,
    /// Its name.
    name: String,
    /// Its version.
    version: String,
    /// What it does.
    description: String,
    /// When it was added.
    added_at: DateTime,
    /// Whether its manifest, as it is now, was approved.
    approved: bool,
    /// Whether it is to run.
    wanted: bool,
    /// Why it was stopped, when it did not end at the owner's wish.
    stop_reason: Option<String>,
    /// The tools it has offered.
    tools: Vec<String>,
}

impl From<&wharf_domain::Provider> for Agent {
    fn from(agent: &wharf_domain::Provider) -> Self {
        let approval = agent.approval.as_ref();
        Self {
            agent_id: agent.id.to_string(),
            name: agent.manifest.name.clone(),
            version: agent.manifest.version.clone(),
            description: agent.manifest.description.clone(),
            added_at: DateTime(agent.added_at),
            approved: approval.is_some_and(|given| given.manifest_hash == agent.manifest_hash),
            wanted: agent.wanted,
            stop_reason: agent.stop_reason.clone(),
            tools: agent.tools.iter().map(|def| def.tool.to_string()).collect(),
        }
    }
}
