//! Tools of the catalog.

use serde_json::Value;
use wharf_domain::ToolDef;
use wharf_engine::CatalogTool;

use super::Durability;
use super::view::{View as _, view};
use crate::scalars::Int64;

view! {
    /// A tool.
    Tool of Tool {
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
        /// What is kept of the values of its runs once they have ended.
        retain: super::Retain,
        /// What its provider says that it can do, such as `streaming`.
        capabilities: Vec<String>,
        /// Groups for display.
        tags: Vec<String>,
        /// `available`, `starting`, `unavailable` or `quarantined`.
        state: String,
        /// Why it is not available.
        state_reason: Option<String>,
        /// The most an attempt costs in micro-dollars, as far as its author knows.
        max_cost_micro: Option<Int64>,
        /// Whether it is declared free.
        free: bool,
        /// Hash of its whole definition.
        definition_hash: Option<String>,
    // Who steers servers is known to the HTTP edge only.
    } without { server } with def: &ToolDef {
        /// Whether runs are written down unless the caller says otherwise.
        durability: Durability = def.durability.into(),
    }
}

impl From<&CatalogTool> for Tool {
    fn from(known: &CatalogTool) -> Self {
        Self::view((wharf_views::tool(known), &*known.def))
    }
}
