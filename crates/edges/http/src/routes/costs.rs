//! What runs have cost.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use wharf_domain::Caller;
use wharf_engine::{CostBy, CostKey, CostRequest, CostRow, Costs};
use wharf_vocab::Verb;
use wharf_wire::rest_v1::{self as wire, ErrorBody};

use crate::answer::{self, Answer};
use crate::app::App;
use crate::params::Params;
use crate::{access, moment};

/// Sums up what the runs within the token's reach have cost.
///
/// A run counts once, on the day it was accepted and with what its own attempts were settled for
/// so far; its children count for themselves.
#[utoipa::path(
    get, path = "/v1/costs", tag = "worlds",
    operation_id = "list_costs",
    params(
        ("by" = Option<String>, Query,
            description = "What makes a row: `tool`, `world`, `agent` or `day`; `tool` when absent."),
        ("since" = Option<String>, Query,
            description = "Only runs accepted then or later: an RFC 3339 time, or how long ago, such as `7d` or `24h`."),
        ("until" = Option<String>, Query,
            description = "Only runs accepted before then, written like `since`."),
        ("world" = Option<String>, Query,
            description = "Only runs of this world; of all worlds within reach when absent."),
    ),
    responses(
        (status = 200, description = "The sums.", body = wire::Costs),
        (status = 404, description = "There is no such world.", body = ErrorBody),
        (status = "default", description = "Any other error.", body = ErrorBody),
    )
)]
pub(super) async fn list(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    params: Params,
) -> Answer {
    let world = params.world()?;
    if let Some(world) = &world {
        access::world(&caller, Verb::Read, world)?;
    }
    let by = params.parsed("by", "`tool`, `world`, `agent` or `day`", |text| match text {
        "tool" => Ok(CostBy::Tool),
        "world" => Ok(CostBy::World),
        "agent" => Ok(CostBy::Agent),
        "day" => Ok(CostBy::Day),
        _ => Err(()),
    })?;
    let (since, until) = moment::span(&params, app.handle.now())?;
    let request = CostRequest { world, since, until, by: by.unwrap_or_default() };
    let costs = app.handle.costs(&caller, request).await?;
    Ok(answer::json(StatusCode::OK, &to_wire(&costs)))
}

fn to_wire(costs: &Costs) -> wire::Costs {
    wire::Costs {
        items: costs.rows.iter().map(item).collect(),
        total_micro: costs.total.cost_micro,
        saturated: costs.total.saturated,
        next_cursor: None,
    }
}

fn item(row: &CostRow) -> wire::CostItem {
    let key = match &row.key {
        CostKey::Tool(tool) => tool.to_string(),
        CostKey::World(world) => world.to_string(),
        CostKey::Agent(provider) => provider.to_string(),
        CostKey::Day(at) => wharf_vocab::DateTime(*at).to_string().chars().take(10).collect(),
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
        let shown = serde_json::to_value(to_wire(&Costs { rows, total: sum })).expect("JSON");
        let item = |key| {
            serde_json::json!({"key": key, "runs": 2, "failed": 1, "cost_micro": u64::MAX,
                "wall_ms": 3, "saturated": true})
        };
        let expect = serde_json::json!({"items": [item("a/b"), item("2025-11-15")],
            "total_micro": u64::MAX, "saturated": true, "next_cursor": null});
        assert_eq!(shown, expect);
    }
}
