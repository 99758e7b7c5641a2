//! Worlds, what their runs have cost, and the audit.

use wharf_engine::{CostKey, CostReport, CostRow, SealedRecord, WorldView};
use wharf_vocab::DateTime;
use wharf_wire::rest_v1 as wire;

/// A world and its account.
#[must_use]
pub fn world(view: &WorldView) -> wire::World {
    wire::World {
        world: view.world.id.clone(),
        created_at: DateTime(view.world.created_at),
        limit_micro: view.world.settings.limit_micro,
        held_micro: view.account.held,
        spent_micro: view.account.spent,
        over_micro: Some(view.account.over()).filter(|over| *over > 0),
        default_hold_micro: view.world.settings.default_hold_micro,
        unknown_cost: view.world.settings.unknown_cost,
        publish: view.world.settings.publish,
        retention_days: view.world.settings.retention_days,
        retain: view.world.settings.retain,
        run_retention_days: view.world.settings.run_retention_days,
        policy: view.world.settings.policy.iter().map(policy_rule).collect(),
    }
}

/// A rule about approvals.
fn policy_rule(rule: &wharf_domain::Rule) -> wire::PolicyRule {
    wire::PolicyRule {
        tool: rule.tool.to_string(),
        when: rule.when.to_string(),
        approve: rule.approve,
        audience: rule.audience.to_string(),
        patience_ms: rule.patience_ms,
    }
}

/// A record of the audit.
#[must_use]
pub fn audit(sealed: &SealedRecord) -> wire::AuditRecord {
    let record = &sealed.record;
    wire::AuditRecord {
        id: sealed.id,
        shard: sealed.shard.0,
        n: sealed.n,
        at: DateTime(sealed.at),
        event: record.event.to_string(),
        severity: record.severity,
        actor: record.actor.to_string(),
        subject: record.subject.to_string(),
        facts: record.facts.clone(),
    }
}

/// Sums of what runs have cost.
#[must_use]
pub fn costs(costs: &CostReport) -> wire::Costs {
    wire::Costs {
        items: costs.rows.iter().map(cost_item).collect(),
        total_micro: costs.total.cost_micro,
        saturated: costs.total.saturated,
        next_cursor: None,
    }
}

fn cost_item(row: &CostRow) -> wire::CostItem {
    let key = match &row.key {
        CostKey::Tool(tool) => tool.to_string(),
        CostKey::World(world) => world.to_string(),
        CostKey::Agent(provider) => provider.to_string(),
        CostKey::Day(at) => DateTime(*at).to_string().chars().take(10).collect(),
        CostKey::Hour(at) => DateTime(*at).to_string().chars().take(16).chain(['Z']).collect(),
        CostKey::Caller(grant) => grant.as_ref().map_or_else(String::new, ToString::to_string),
    };
    wire::CostItem {
        key,
        runs: row.sum.runs,
        failed: row.sum.failed,
        cost_micro: row.sum.cost_micro,
        wall_ms: row.sum.wall_ms,
        saturated: row.sum.saturated,
    }
}

#[cfg(test)]
mod tests {
    use wharf_engine::CostSum;
    use wharf_vocab::{Timestamp, ToolId};

    use super::*;

    const NOW: Timestamp = Timestamp(1_763_164_800_000);

    #[test]
    fn t041_sums_are_whole_numbers_of_64_bits_and_days_are_dates() {
        let sum = CostSum { runs: 2, failed: 1, cost_micro: u64::MAX, wall_ms: 3, saturated: true };
        let tool = CostKey::Tool(ToolId::new("a/b").expect("valid"));
        let day = CostKey::Day(NOW);
        let rows = [tool, day].map(|key| CostRow { key, sum }).to_vec();
        let shown = serde_json::to_value(costs(&CostReport { rows, total: sum })).expect("JSON");
        let item = |key| {
            serde_json::json!({"key": key, "runs": 2, "failed": 1, "cost_micro": u64::MAX,
                "wall_ms": 3, "saturated": true})
        };
        let expect = serde_json::json!({"items": [item("a/b"), item("2025-11-15")],
            "total_micro": u64::MAX, "saturated": true, "next_cursor": null});
        assert_eq!(shown, expect);
    }
}
