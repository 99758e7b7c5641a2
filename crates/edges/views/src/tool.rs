//! Tools, and how their definitions changed.

use wharf_domain::provider::McpOrigin;
use wharf_domain::{Availability, ToolDef};
use wharf_engine::CatalogTool;
use wharf_vocab::{ToolId, ToolState};
use wharf_wire::rest_v1::{self as wire, ToolDefinition, ToolDiff};

/// A tool of the catalog.
#[must_use]
pub fn tool(tool: &CatalogTool) -> wire::Tool {
    let (state, reason) = match &tool.availability {
        // A tool that may not be called is not better off for being up.
        _ if tool.quarantine.is_some() => (ToolState::Quarantined, tool.quarantine.clone()),
        Availability::Up => (ToolState::Available, None),
        Availability::Coming => (ToolState::Starting, None),
        Availability::Unhealthy => {
            (ToolState::Unavailable, Some("its provider is not healthy".to_owned()))
        }
        Availability::Away { reason } | Availability::Down { reason, .. } => {
            (ToolState::Unavailable, Some(reason.clone()))
        }
    };
    wire::Tool { state, state_reason: reason, ..tool_of(&tool.def) }
}

/// Which tools are wanted.
#[derive(Debug, Clone, Default)]
pub struct ToolFilter {
    /// Only with this text in the id, the description or the tags.
    pub q: Option<String>,
    /// Only of this provider.
    pub provider: Option<String>,
    /// Only in this state.
    pub state: Option<ToolState>,
}

impl ToolFilter {
    /// Whether a tool is wanted.
    #[must_use]
    pub fn wants(&self, tool: &wire::Tool) -> bool {
        let q = self.q.as_ref().map(|q| q.to_lowercase());
        let fits = |text: &str| q.as_ref().is_none_or(|q| text.to_lowercase().contains(q));
        self.provider.as_ref().is_none_or(|it| tool.provider.as_str() == it)
            && self.state.is_none_or(|state| tool.state == state)
            && (fits(tool.tool_id.as_str())
                || fits(&tool.description)
                || tool.tags.iter().any(|tag| fits(tag)))
    }
}

/// A tool that nobody can be asked for yet.
pub(crate) fn tool_of(def: &ToolDef) -> wire::Tool {
    wire::Tool {
        tool_id: def.tool.clone(),
        name: def.tool.name().to_owned(),
        description: def.description.clone(),
        provider: def.tool.provider(),
        input_schema: def.input_schema.clone(),
        output_schema: def.output_schema.clone(),
        // What does not say that it is harmless is taken to act.
        side_effects: def.side_effects.unwrap_or(true),
        requires_directive: def.requires_directive,
        mock: def.mock,
        retain: def.retain,
        capabilities: def.capabilities.clone(),
        tags: def.tags.clone(),
        state: ToolState::Unavailable,
        state_reason: None,
        max_cost_micro: def.max_cost_micro,
        free: def.free,
        definition_hash: Some(def.hash().to_string()),
        server: None,
    }
}

/// How a tool's definition changed. It has not if only one of the two is there.
#[must_use]
pub fn tool_diff(id: &ToolId, pinned: Option<&ToolDef>, offered: Option<&ToolDef>) -> ToolDiff {
    let changes = pinned.zip(offered).map_or_else(Vec::new, |(old, new)| changes(old, new));
    let changed = pinned.zip(offered).is_some_and(|(old, new)| old.hash() != new.hash());
    ToolDiff {
        tool_id: id.clone(),
        changed,
        changes,
        pinned: pinned.map(definition),
        offered: offered.map(definition),
    }
}

/// The names of the parts that differ.
fn changes(old: &ToolDef, new: &ToolDef) -> Vec<String> {
    let parts = [
        ("description", old.description != new.description),
        ("input_schema", old.input_schema != new.input_schema),
        ("output_schema", old.output_schema != new.output_schema),
        ("side_effects", old.side_effects != new.side_effects),
        ("requires_directive", old.requires_directive != new.requires_directive),
        ("mock", old.mock != new.mock),
        ("retain", old.retain != new.retain),
        ("idempotency", old.idempotency != new.idempotency),
        ("reattach", old.reattach != new.reattach),
        ("durable", old.durable != new.durable),
        ("timeout_ms", old.timeout_ms != new.timeout_ms),
        ("max_cost_micro", old.max_cost_micro != new.max_cost_micro),
        ("free", old.free != new.free),
        ("durability", old.durability != new.durability),
        ("title", said(old, |mcp| mcp.title.clone()) != said(new, |mcp| mcp.title.clone())),
        (
            "annotations",
            said(old, |mcp| mcp.annotations.clone()) != said(new, |mcp| mcp.annotations.clone()),
        ),
        (
            "execution",
            said(old, |mcp| mcp.execution.clone()) != said(new, |mcp| mcp.execution.clone()),
        ),
        ("pinned", said(old, |mcp| mcp.pinned.clone()) != said(new, |mcp| mcp.pinned.clone())),
    ];
    let differing = parts.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name.to_owned()).collect()
}

/// What an MCP server says of a tool.
fn said<T>(def: &ToolDef, what: impl FnOnce(&McpOrigin) -> Option<T>) -> Option<T> {
    def.mcp.as_deref().and_then(what)
}

/// A tool's definition: all that an approval covers.
pub(crate) fn definition(def: &ToolDef) -> ToolDefinition {
    ToolDefinition {
        hash: def.hash().to_string(),
        description: def.description.clone(),
        input_schema: def.input_schema.clone(),
        output_schema: def.output_schema.clone(),
        side_effects: def.side_effects,
        requires_directive: def.requires_directive,
        mock: def.mock,
        idempotency: def.idempotency,
        timeout_ms: def.timeout_ms,
        max_cost_micro: def.max_cost_micro,
        free: def.free,
        mcp: def.mcp.as_ref().and_then(|mcp| serde_json::to_value(mcp).ok()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn a_tools_state_says_whether_its_provider_can_take_it() {
        let shown_as = |availability, quarantine: Option<&str>| {
            let quarantine = quarantine.map(str::to_owned);
            let id = wharf_vocab::ToolId::new("dev.example.hello/echo").expect("valid");
            let def = std::sync::Arc::new(wharf_domain::ToolDef::new(id, "", Value::Null));
            let hash = wharf_vocab::Digest::of(&[b"def"]);
            let tool = tool(&CatalogTool { def, hash, availability, quarantine });
            (tool.state, tool.state_reason)
        };
        let shown = |availability| shown_as(availability, None);
        let expect = |state, reason: Option<&str>| (state, reason.map(Into::into));
        assert_eq!(shown(Availability::Up), expect(ToolState::Available, None));
        assert_eq!(shown(Availability::Coming), expect(ToolState::Starting, None));
        let unhealthy = expect(ToolState::Unavailable, Some("its provider is not healthy"));
        assert_eq!(shown(Availability::Unhealthy), unhealthy);
        let away = Availability::Away { reason: "nobody is connected".to_owned() };
        assert_eq!(shown(away), expect(ToolState::Unavailable, Some("nobody is connected")));
        let down = Availability::down("exit code 1");
        assert_eq!(shown(down), expect(ToolState::Unavailable, Some("exit code 1")));
        let changed = shown_as(Availability::Up, Some("its definition changed"));
        assert_eq!(changed, expect(ToolState::Quarantined, Some("its definition changed")));
    }
}
