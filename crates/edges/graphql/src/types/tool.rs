//! Tools of the catalog.

use async_graphql::SimpleObject;
use serde_json::Value;
use wharf_domain::Availability;
use wharf_engine::CatalogTool;

use super::Durability;
use crate::scalars::Int64;

/// A tool.
#[derive(Debug, SimpleObject)]
pub(crate) struct Tool {
    /// `provider/name`.
    tool_id: String,
    /// The part behind the slash.
    name: String,
    /// Who executes it.
    provider: String,
    /// What it does, for people and models.
    description: String,
    /// JSON Schema of the inputs.
    input_schema: Value,
    /// JSON Schema of the outputs.
    output_schema: Option<Value>,
    /// Whether it acts on the world.
    side_effects: bool,
    /// Whether each run needs an approval.
    requires_directive: bool,
    /// Whether it can pretend.
    mock: bool,
    /// What its provider says that it can do, such as `streaming`.
    capabilities: Vec<String>,
    /// Groups for display.
    tags: Vec<String>,
    /// The most an attempt costs in micro-dollars, as far as its author knows.
    max_cost_micro: Option<Int64>,
    /// Whether it is declared free.
    free: bool,
    /// Whether runs are written down unless the caller says otherwise.
    durability: Durability,
    /// `available`, `starting`, `unavailable` or `quarantined`.
    state: String,
    /// Why it is not available.
    state_reason: Option<String>,
}

impl From<&CatalogTool> for Tool {
    fn from(tool: &CatalogTool) -> Self {
        let def = &tool.def;
        let (state, state_reason) = match &tool.availability {
            // A tool that may not be called is not better off for being up.
            _ if tool.quarantine.is_some() => ("quarantined", tool.quarantine.clone()),
            Availability::Up => ("available", None),
            Availability::Coming => ("starting", None),
            Availability::Unhealthy => {
                ("unavailable", Some("its provider is not healthy".to_owned()))
            }
            Availability::Down { reason } => ("unavailable", Some(reason.clone())),
        };
        Self {
            tool_id: def.tool.to_string(),
            name: def.tool.name().to_owned(),
            provider: def.tool.provider().to_string(),
            description: def.description.clone(),
            input_schema: def.input_schema.clone(),
            output_schema: def.output_schema.clone(),
            // What does not say that it is harmless is taken to act.
            side_effects: def.side_effects.unwrap_or(true),
            requires_directive: def.requires_directive,
            mock: def.mock,
            capabilities: def.capabilities.clone(),
            tags: def.tags.clone(),
            max_cost_micro: def.max_cost_micro.map(Int64),
            free: def.free,
            durability: def.durability.into(),
            state: state.to_owned(),
            state_reason,
        }
    }
}
