//! Tools of the catalog.

use async_graphql::SimpleObject;
use serde_json::Value;
use wharf_engine::CatalogTool;
use wharf_wire::rest_v1 as wire;

use super::Durability;
use super::view::View;
use crate::scalars::Int64;

/// A tool.
#[derive(Debug, SimpleObject)]
pub(crate) struct Tool {
    /// `provider/name`.
    tool_id: String,
    /// The part after the slash.
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
    /// Whether it supports mock runs.
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
    fn from(known: &CatalogTool) -> Self {
        let wire::Tool {
            tool_id,
            name,
            description,
            provider,
            input_schema,
            output_schema,
            side_effects,
            requires_directive,
            mock,
            capabilities,
            tags,
            state,
            state_reason,
            // Who steers servers is known to the HTTP edge only.
            server: _,
        } = wharf_views::tool(known);
        Self {
            tool_id: View::view(tool_id),
            name,
            provider: View::view(provider),
            description,
            input_schema,
            output_schema,
            side_effects,
            requires_directive,
            mock,
            capabilities,
            tags,
            max_cost_micro: known.def.max_cost_micro.map(Int64),
            free: known.def.free,
            durability: known.def.durability.into(),
            state: View::view(state),
            state_reason,
        }
    }
}
