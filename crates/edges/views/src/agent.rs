//! Agents, and the lines of their logs.

use std::collections::BTreeMap;

use wharf_domain::permission::Permission;
use wharf_domain::provider::{Approval, ProviderLimits, Wish, WishKind};
use wharf_domain::{Manifest, ProviderKind};
use wharf_ports::launcher::{FenceReport, LogLine, LogSource};
use wharf_ports::providers::{FoundProvider, ProviderHealth, ProviderView, Scan};
use wharf_vocab::{DateTime, Keeping, SandboxLevel};
use wharf_wire::rest_v1 as wire;

/// An agent and how it fares.
#[must_use]
pub fn agent(view: &ProviderView) -> wire::Agent {
    let agent = &view.provider;
    let manifest = &agent.manifest;
    let same = |approval: &&Approval| approval.manifest_hash == agent.manifest_hash;
    let approval = agent.approval.as_ref().filter(same);
    let command = std::iter::once(&manifest.entrypoint.program).chain(&manifest.entrypoint.args);
    let wanted = approval.map(|approval| approval.terms.sandbox);
    let achieved = view.fence.as_ref().map(|fence| fence.level);
    let pinned = approval.map(|approval| {
        approval.files.iter().map(|(path, digest)| (path.clone(), digest.to_string())).collect()
    });
    wire::Agent {
        agent_id: agent.id.clone(),
        state: view.state,
        reason: view.reason.clone(),
        pid: view.pid,
        launch_id: view.launch.clone(),
        last_heartbeat: view.last_heartbeat.map(DateTime),
        health: view.health.as_ref().map(health),
        sandbox: achieved.or(wanted).unwrap_or(SandboxLevel::None),
        tools: agent.tools.iter().map(|def| def.tool.clone()).collect(),
        name: manifest.name.clone(),
        version: manifest.version.clone(),
        description: manifest.description.clone(),
        folder: agent.folder.clone(),
        command: command.cloned().collect(),
        added_at: DateTime(agent.added_at),
        permissions_requested: manifest.permissions.clone(),
        permissions_approved: approval.map(|approval| approval.permissions.clone()),
        permissions: permissions(manifest, approval.map_or(&[], |given| &given.permissions)),
        wishes: view.wishes.iter().map(wish).collect(),
        sandbox_wanted: wanted,
        sandbox_notes: view.fence.as_ref().map_or_else(Vec::new, |fence| fence.notes.clone()),
        isolation: approval.map(|approval| approval.terms.isolation),
        instances: view.instances as u64,
        limits: to_limits(&view.limits),
        limits_kept: view.fence.as_ref().map(limits_kept).unwrap_or_default(),
        manifest_hash: agent.manifest_hash.to_string(),
        pinned_files: pinned.unwrap_or_default(),
        drift: agent.drift.clone(),
        quarantined: agent.quarantined().map(|def| def.tool.clone()).collect(),
        source: match &manifest.kind {
            ProviderKind::Agent(details) => details.source.clone(),
            ProviderKind::ToolServer(_) | ProviderKind::Mcp(_) | ProviderKind::Operative => None,
        },
    }
}

fn health(health: &ProviderHealth) -> wire::AgentHealth {
    wire::AgentHealth {
        status: health.status,
        uptime_ms: health.uptime_ms,
        inflight_calls: health.inflight_calls,
        details: health.details.clone(),
    }
}

/// What a scan found, and how agents fare that are known already.
#[must_use]
pub fn found_agents(scan: &Scan, known: &[ProviderView]) -> wire::FoundAgents {
    let each = |found: &FoundProvider| {
        let read = found.manifest.as_ref().ok();
        let manifest = read.map(|(_, manifest)| manifest);
        let known = read.and_then(|(id, _)| known.iter().find(|view| view.provider.id == *id));
        wire::FoundAgent {
            folder: found.folder.display().to_string(),
            agent_id: read.map(|(id, _)| id.clone()),
            name: manifest.map(|it| it.name.clone()),
            version: manifest.map(|it| it.version.clone()),
            description: manifest.map(|it| it.description.clone()),
            permissions: manifest.map_or_else(Vec::new, |it| permissions(it, &[])),
            state: known.map(|view| view.state),
            error: found.manifest.as_ref().err().map(Into::into),
        }
    };
    let items = scan.found.iter().map(each).collect();
    wire::FoundAgents { items, cut_short: scan.cut_short.clone() }
}

/// What a manifest asks for, and what of it was given.
pub(crate) fn permissions(manifest: &Manifest, given: &[String]) -> Vec<wire::AgentPermission> {
    let each = |asked: &String| {
        let wide = Permission::parse(asked).ok();
        let within = |text: &&String| {
            let narrow = Permission::parse(text).ok();
            wide.as_ref().zip(narrow).is_some_and(|(wide, narrow)| wide.covers(&narrow))
        };
        let approved = given.contains(asked);
        let narrowed = given.iter().filter(|_| !approved).filter(within).cloned().collect();
        wire::AgentPermission {
            permission: asked.clone(),
            meaning: meaning(asked),
            approved,
            narrowed_to: narrowed,
        }
    };
    manifest.permissions.iter().map(each).collect()
}

/// What a manifest asks for beyond what is usual, in words for people.
fn wish(wish: &Wish) -> wire::AgentWish {
    let (what, asked, usual, meaning) = match &wish.what {
        WishKind::Sandbox { asked, usual } => {
            let meaning = match asked {
                SandboxLevel::None => {
                    "Run without a fence: it reads and changes all that you can, this core included"
                }
                SandboxLevel::Basic => {
                    "Run in a basic fence only: it sees your files, your processes and the network"
                }
                SandboxLevel::Standard | SandboxLevel::Strict => {
                    "Run in a looser fence: it shares the system's files with other programs"
                }
            };
            ("sandbox", asked.to_string(), usual.to_string(), meaning.to_owned())
        }
        WishKind::Limit { name, asked, usual } => {
            let meaning = match *name {
                "memory_bytes" => "Use more memory than is usual",
                "disk_bytes" => "Use more disk than is usual",
                "processes" => "Have more processes and threads at once than is usual",
                "open_files" => "Have more open files in each process than is usual",
                "calls_max" => "Take more calls at once than is usual",
                "cpu_ms" => "Use more processor time than is usual",
                "call_ms" => "Take longer for a call than is usual",
                other => other,
            };
            (*name, asked.to_string(), usual.to_string(), meaning.to_owned())
        }
    };
    wire::AgentWish { what: what.to_owned(), asked, usual, meaning, granted: wish.granted }
}

/// What a permission means in words for people.
fn meaning(text: &str) -> String {
    match Permission::parse(text) {
        Ok(permission) => permission.describe(),
        Err(_) => format!("do what it calls {text}, for which this core gives nothing"),
    }
}

/// How limits are kept, in words.
fn limits_kept(fence: &FenceReport) -> BTreeMap<String, Keeping> {
    fence.limits.iter().map(|(name, how)| ((*name).to_owned(), *how)).collect()
}

fn to_limits(limits: &ProviderLimits) -> wire::AgentLimits {
    let usage = &limits.usage;
    wire::AgentLimits {
        calls_max: limits.calls_max,
        rate: limits.rate.map(|rate| wire::Rate { count: rate.count, per_ms: rate.per_ms }),
        call_ms: limits.call_ms,
        input_bytes: limits.input_bytes,
        output_bytes: limits.output_bytes,
        stream_bytes: limits.stream_bytes,
        memory_bytes: usage.memory_bytes,
        cpu_ms: usage.cpu_ms,
        cpu_millicores: usage.cpu_millicores,
        processes: usage.processes,
        open_files: usage.open_files,
        disk_bytes: usage.disk_bytes,
    }
}

/// A line of an agent's log.
#[must_use]
pub fn log_line(line: &LogLine) -> wire::AgentLogLine {
    let source = match line.source {
        LogSource::Stdout => wharf_vocab::LogSource::Stdout,
        LogSource::Stderr => wharf_vocab::LogSource::Stderr,
        LogSource::Launcher => wharf_vocab::LogSource::Launcher,
    };
    wire::AgentLogLine { at: DateTime(line.at), source, text: line.text.as_ref().to_owned() }
}
