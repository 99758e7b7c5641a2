//! Changes of tools as peers read of them.

use wharf_domain::ToolDef;
use wharf_vocab::ToolId;
use wharf_wire::rest_v1::{ToolDefinition, ToolDiff};

/// How a tool's definition changed. It has not if only one of the two is there.
pub(crate) fn tool_diff(
    id: &ToolId,
    pinned: Option<&ToolDef>,
    offered: Option<&ToolDef>,
) -> ToolDiff {
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
        ("idempotency", old.idempotency != new.idempotency),
        ("reattach", old.reattach != new.reattach),
        ("timeout_ms", old.timeout_ms != new.timeout_ms),
        ("max_cost_micro", old.max_cost_micro != new.max_cost_micro),
        ("free", old.free != new.free),
        ("durability", old.durability != new.durability),
    ];
    let differing = parts.into_iter().filter(|(_, differs)| *differs);
    differing.map(|(name, _)| name.to_owned()).collect()
}

fn definition(def: &ToolDef) -> ToolDefinition {
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
    }
}
