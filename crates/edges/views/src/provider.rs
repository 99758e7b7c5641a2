//! Providers of every kind in one shape, and when their processes were started.

use std::collections::BTreeMap;

use wharf_domain::ProviderKind;
use wharf_domain::provider::{McpServing, ProviderType};
use wharf_domain::{Availability, Provider};
use wharf_engine::{AuditQuery, CatalogTool, Handle, SealedRecord};
use wharf_ports::providers::{ProviderState, ProviderView, UsagePoint};
use wharf_vocab::{DateTime, Fault, ProviderId, SeatId, SeriesRange, ToolId};
use wharf_wire::rest_v1 as wire;

use crate::agent::agent;

/// Starts of a process that are shown.
const LAUNCHES_MAX: usize = 100;

/// A provider that the core launches or that is added to it, and how it fares.
#[must_use]
pub fn provider(view: &ProviderView) -> wire::Provider {
    let shown = agent(view);
    let manifest = &view.provider.manifest;
    let url = manifest.mcp().and_then(|details| match &details.how {
        McpServing::Url { url, .. } => Some(url.clone()),
        McpServing::Command => None,
    });
    let hidden = |id: &ToolId| view.provider.tools.iter().any(|def| def.hidden && def.tool == *id);
    wire::Provider {
        provider_id: shown.agent_id.to_string(),
        kind: manifest.kind.of().as_str().to_owned(),
        state: shown.state,
        reason: shown.reason,
        name: shown.name,
        version: Some(shown.version).filter(|version| !version.is_empty()),
        description: Some(shown.description).filter(|text| !text.is_empty()),
        enabled: Some(view.provider.wanted),
        added_at: Some(shown.added_at),
        pid: shown.pid,
        launch_id: shown.launch_id,
        instances: shown.instances,
        last_heartbeat: shown.last_heartbeat,
        health: shown.health,
        sandbox: Some(shown.sandbox),
        sandbox_wanted: shown.sandbox_wanted,
        sandbox_notes: shown.sandbox_notes,
        isolation: shown.isolation,
        permissions: shown.permissions,
        permissions_approved: shown.permissions_approved,
        wishes: shown.wishes,
        limits: shown.limits,
        limits_kept: shown.limits_kept,
        manifest_hash: Some(shown.manifest_hash),
        drift: shown.drift,
        tools: shown.tools.into_iter().filter(|id| !hidden(id)).collect(),
        quarantined: shown.quarantined,
        folder: Some(shown.folder),
        command: if url.is_none() { shown.command } else { Vec::new() },
        url,
        source: shown.source,
    }
}

/// All providers there are: those that somebody steers, and those that are only known by their
/// tools, by id.
#[must_use]
pub fn all_providers(handle: &Handle, steered: &[ProviderView]) -> Vec<wire::Provider> {
    let mut all: BTreeMap<String, wire::Provider> = BTreeMap::new();
    for view in steered {
        all.insert(view.provider.id.to_string(), provider(view));
    }
    let known = handle.providers().list();
    let mut tools: BTreeMap<ProviderId, Vec<CatalogTool>> = BTreeMap::new();
    for tool in handle.providers().tools().into_iter().filter(|tool| !tool.def.hidden) {
        tools.entry(tool.def.tool.provider()).or_default().push(tool);
    }
    let operatives = known.iter().filter(|it| matches!(it.manifest.kind, ProviderKind::Operative));
    for it in operatives {
        tools.entry(it.id.clone()).or_default();
    }
    for (id, tools) in tools {
        let known = known.iter().find(|it| it.id == id);
        all.entry(id.to_string()).or_insert_with(|| by_tools(&id, known, &tools));
    }
    all.into_values().collect()
}

/// A provider that is known by its tools only.
fn by_tools(id: &ProviderId, known: Option<&Provider>, tools: &[CatalogTool]) -> wire::Provider {
    let kind = match known {
        Some(known) => known.manifest.kind.of().as_str(),
        None if SeatId::new(id.as_str()).is_ok_and(|_| id.as_str().starts_with("S-")) => "operator",
        None => "builtin",
    };
    let is = |wanted: fn(&Availability) -> bool| tools.iter().any(|it| wanted(&it.availability));
    let state = match () {
        () if is(|it| matches!(it, Availability::Up)) => ProviderState::Running,
        () if is(|it| matches!(it, Availability::Coming)) => ProviderState::Starting,
        () if is(|it| matches!(it, Availability::Unhealthy)) => ProviderState::Unhealthy,
        () => ProviderState::Stopped,
    };
    let reason = tools.iter().find_map(|it| match &it.availability {
        Availability::Away { reason } | Availability::Down { reason, .. }
            if state == ProviderState::Stopped =>
        {
            Some(reason.clone())
        }
        _ => None,
    });
    let quarantined = tools.iter().filter(|it| it.quarantine.is_some());
    wire::Provider {
        provider_id: id.to_string(),
        kind: kind.to_owned(),
        state,
        reason,
        name: id.to_string(),
        version: None,
        description: None,
        enabled: None,
        added_at: known.map(|known| DateTime(known.added_at)),
        pid: None,
        launch_id: None,
        instances: 0,
        last_heartbeat: None,
        health: None,
        sandbox: None,
        sandbox_wanted: None,
        sandbox_notes: Vec::new(),
        isolation: None,
        permissions: Vec::new(),
        permissions_approved: None,
        wishes: Vec::new(),
        limits: wire::AgentLimits::default(),
        limits_kept: BTreeMap::new(),
        manifest_hash: None,
        drift: Vec::new(),
        tools: tools.iter().map(|it| it.def.tool.clone()).collect(),
        quarantined: quarantined.map(|it| it.def.tool.clone()).collect(),
        folder: None,
        command: Vec::new(),
        url: None,
        source: None,
    }
}

/// What a provider's processes used lately.
#[must_use]
pub(crate) fn provider_usage(range: SeriesRange, points: &[UsagePoint]) -> wire::ProviderUsage {
    let point = |it: &UsagePoint| wire::ProviderUsagePoint {
        at: DateTime(it.at),
        memory_bytes: it.memory_bytes,
        cpu_ms: it.cpu_ms,
        processes: it.processes.into(),
    };
    wire::ProviderUsage {
        range: range.as_str().to_owned(),
        step_ms: range.step_ms(),
        points: points.iter().map(point).collect(),
    }
}

/// The latest starts of a provider's process, newest first, as the audit tells them.
pub(crate) async fn launches(
    handle: &Handle,
    view: &Provider,
) -> Result<Vec<wire::ProviderLaunch>, Fault> {
    let kind: ProviderType = view.manifest.kind.of();
    let query = AuditQuery {
        event: Some(format!("{}.run_*", kind.as_str())),
        subject: Some(format!("{}:{}", kind.as_str(), view.id)),
        newest_first: true,
        // A start, an end and a crash each.
        limit: 3 * LAUNCHES_MAX,
        ..AuditQuery::default()
    };
    let mut records = handle.audit().find(query).await?.records;
    records.reverse();
    let mut launches: Vec<(String, wire::ProviderLaunch)> = Vec::new();
    for record in &records {
        follow(&mut launches, record);
    }
    let newest = launches.into_iter().rev().map(|(_, launch)| launch);
    Ok(newest.take(LAUNCHES_MAX).collect())
}

fn follow(launches: &mut Vec<(String, wire::ProviderLaunch)>, sealed: &SealedRecord) {
    let facts = &sealed.record.facts;
    let id = facts.get("launch_id").and_then(|id| id.as_str()).unwrap_or_default();
    let event = sealed.record.event.as_str();
    let at = DateTime(sealed.at);
    match event.rsplit('.').next().unwrap_or_default() {
        "run_started" => {
            let pid = facts.get("pid").and_then(serde_json::Value::as_u64);
            let launch = wire::ProviderLaunch {
                started_at: at,
                ended_at: None,
                crashed: false,
                reason: None,
                pid,
            };
            launches.push((id.to_owned(), launch));
        }
        "run_stopped" => {
            if let Some((_, launch)) = launches.iter_mut().rev().find(|(known, _)| known == id) {
                launch.ended_at = Some(at);
            }
        }
        // It is written after the end that it speaks of.
        "run_crashed" => {
            let ended = launches.iter_mut().filter(|(_, launch)| launch.ended_at.is_some());
            if let Some((_, launch)) = ended.max_by_key(|(_, launch)| launch.ended_at) {
                launch.crashed = true;
                let why = facts.get("reason").and_then(|why| why.as_str());
                launch.reason = why.map(str::to_owned);
            }
        }
        _ => {}
    }
}
