//! Turns what the engine shows into what peers read.

mod agents;
mod changes;
mod files;
mod servers;
mod trust;

use serde_json::Value;
use wharf_domain::run::{AskRaised, AttemptStarted};
use wharf_domain::scope::ReadObject;
use wharf_domain::{Availability, Entry, Progress, Run, RunEntry, RunSummary, ToolDef};
use wharf_engine::launcher::{LogLine, LogSource};
use wharf_engine::{CatalogTool, HistoryItem, RunEvent, SealedRecord, WorldView};
use wharf_vocab::{
    AskKind, DateTime, Executed, Micro, Object, RunId, RunKey, Timestamp, ToolState,
};
use wharf_wire::rest_v1 as wire;

pub(crate) use agents::{agent, found_agents};
pub(crate) use changes::tool_diff;
pub(crate) use files::{collected, file, trace, upload, upload_part, usage};
pub(crate) use servers::{served_tool, tool_server};
pub(crate) use trust::{secret, token};

/// A run that was accepted.
pub(crate) fn accepted(run: &Run) -> wire::RunAccepted {
    wire::RunAccepted { run_id: run.key.run.clone(), status: run.status() }
}

/// A run with all there is to see of it.
pub(crate) fn run(run: &Run) -> wire::Run {
    let outputs = match &run.outcome {
        Some(wharf_domain::Outcome::Succeeded { outputs }) => outputs.clone(),
        _ => Object::new(),
    };
    wire::Run {
        outputs: Some(outputs),
        inputs: Some(Object::clone(&run.spec.inputs)),
        artifacts: Some(files::of_run(run)),
        continues: run.spec.continues.clone(),
        receipt: files::receipt(run),
        cost_micro: run.cost_so_far(),
        would_cost_micro: (!run.spec.is_paid()).then_some(run.would_cost_micro),
        hold_micro: Some(run.spec.hold_micro),
        held_micro: Some(held(run)),
        ask: run.open_asks().next().map(|raised| ask(&raised.ask)),
        waiting_for: waiting_for(run),
        ..summary(&run.summary())
    }
}

/// What a run waits for while it is queued.
fn waiting_for(run: &Run) -> Option<wire::WaitingFor> {
    let wait = run.waits_for()?;
    Some(wire::WaitingFor {
        kind: wait.kind,
        message: wait.message,
        since: wait.since.map(DateTime),
        until: DateTime(wait.until),
    })
}

/// What is set aside for the attempt under way.
fn held(run: &Run) -> Micro {
    let active = run.active.as_ref().filter(|attempt| attempt.hold.is_some());
    active.map_or(0, |attempt| {
        let held = attempt.hold.as_ref().map_or(0, |held| held.amount_micro);
        held.max(attempt.reported_micro)
    })
}

/// A run as lists show it, without inputs, outputs, files and asks.
pub(crate) fn summary(run: &RunSummary) -> wire::Run {
    wire::Run {
        run_id: run.key.run.clone(),
        tool: run.tool.clone(),
        world: run.key.world.clone(),
        mode: run.mode,
        durability: run.durability,
        status: run.status,
        attempt: run.attempt,
        cost_micro: run.cost_micro,
        would_cost_micro: None,
        hold_micro: None,
        held_micro: None,
        created_at: DateTime(run.created_at),
        started_at: run.started_at.map(DateTime),
        ended_at: run.ended_at.map(DateTime),
        outputs: None,
        inputs: None,
        artifacts: None,
        continues: None,
        receipt: None,
        error: run.error.as_ref().map(wharf_web::answer::error),
        ask: None,
        waiting_for: None,
        correlation_id: run.correlation_id.clone(),
        parent: run.parent.as_ref().map(RunKey::to_string),
    }
}

/// An ask.
pub(crate) fn ask(ask: &wharf_domain::Ask) -> wire::Ask {
    let spec = &ask.spec;
    wire::Ask {
        ask_id: spec.ask_id.clone(),
        kind: spec.kind,
        run_id: spec.run.run.clone(),
        tool: spec.tool.clone(),
        world: spec.run.world.clone(),
        title: spec.title.clone(),
        detail: spec.detail.clone(),
        schema: spec.schema.clone(),
        args_digest: spec.args_digest.as_ref().map(ToString::to_string),
        tool_hash: spec.tool_hash.as_ref().map(ToString::to_string),
        files: spec.files.iter().map(ask_file).collect(),
        caller: Some(spec.caller.grant.clone()),
        audience: spec.audience.to_string(),
        deadline: DateTime(spec.deadline),
        created_at: DateTime(ask.created_at),
    }
}

fn ask_file((name, file): (&String, &ReadObject)) -> wire::AskFile {
    wire::AskFile {
        name: name.clone(),
        path: file.path.to_string(),
        bytes: file.bytes,
        b3: file.b3.as_ref().map(ToString::to_string),
        media_type: file.media_type.clone(),
    }
}

/// A tool of the catalog.
pub(crate) fn tool(tool: &CatalogTool) -> wire::Tool {
    let (state, reason) = match &tool.availability {
        // A tool that may not be called is not better off for being up.
        _ if tool.quarantine.is_some() => (ToolState::Quarantined, tool.quarantine.clone()),
        Availability::Up => (ToolState::Available, None),
        Availability::Coming => (ToolState::Starting, None),
        Availability::Unhealthy => {
            (ToolState::Unavailable, Some("its provider is not healthy".to_owned()))
        }
        Availability::Down { reason } => (ToolState::Unavailable, Some(reason.clone())),
    };
    wire::Tool { state, state_reason: reason, ..tool_of(&tool.def) }
}

/// A tool that nobody can be asked for yet.
fn tool_of(def: &ToolDef) -> wire::Tool {
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
        capabilities: def.capabilities.clone(),
        tags: def.tags.clone(),
        state: ToolState::Unavailable,
        state_reason: None,
        server: None,
    }
}

/// A line of an agent's log.
pub(crate) fn log_line(line: &LogLine) -> wire::AgentLogLine {
    let source = match line.source {
        LogSource::Stdout => wharf_vocab::LogSource::Stdout,
        LogSource::Stderr => wharf_vocab::LogSource::Stderr,
        LogSource::Launcher => wharf_vocab::LogSource::Launcher,
    };
    wire::AgentLogLine { at: DateTime(line.at), source, text: line.text.as_ref().to_owned() }
}

/// A world and its account.
pub(crate) fn world(view: &WorldView) -> wire::World {
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
pub(crate) fn audit(sealed: &SealedRecord) -> wire::AuditRecord {
    let record = &sealed.record;
    wire::AuditRecord {
        id: sealed.id,
        shard: sealed.shard.0,
        n: sealed.n,
        at: DateTime(sealed.at),
        event: record.event.clone(),
        severity: record.severity,
        actor: record.actor.clone(),
        subject: record.subject.clone(),
        facts: record.facts.clone(),
    }
}

/// Tells the events of one run in order. Entries that say nothing to a reader have no event, so
/// that the numbers of events may have holes.
#[derive(Debug)]
pub(crate) struct Teller {
    run_id: RunId,
    /// Why the attempt before the next one failed.
    failure: Option<(String, Executed)>,
}

impl Teller {
    /// A teller of this run, as it stands when the telling begins.
    pub(crate) fn new(run: &Run) -> Self {
        let failure = run.last_failure.as_ref();
        Self {
            run_id: run.key.run.clone(),
            failure: failure.map(|(fault, executed)| (fault.code.as_str().to_owned(), *executed)),
        }
    }

    /// The event of what has happened, if readers are told of it.
    pub(crate) fn tell(&mut self, event: RunEvent) -> Option<wire::Event> {
        let mark = Mark { seq: event.seq.0, at: DateTime(event.at), run_id: self.run_id.clone() };
        match event.item {
            HistoryItem::Progress(piece) => Some(progress(mark, piece)),
            HistoryItem::Entry(Entry::Run(entry)) => match entry {
                RunEntry::Created(_) => Some(wire::Event::Queued(mark.simple(0))),
                RunEntry::RoomAwaited(awaited) => {
                    let reason = Some(awaited.reason);
                    Some(wire::Event::Queued(wire::MarkEvent { reason, ..mark.simple(0) }))
                }
                RunEntry::AttemptStarted(started) => Some(self.attempt(mark, &started)),
                RunEntry::AttemptFailed(failed) => {
                    let code = failed.error.code.as_str().to_owned();
                    self.failure = Some((code, failed.executed));
                    None
                }
                RunEntry::AskRaised(raised) => Some(raised_ask(&mark, event.at, raised)),
                RunEntry::AskResolved(resolved) => Some(wire::Event::Decided(wire::DecidedEvent {
                    seq: mark.seq,
                    run_id: mark.run_id,
                    at: mark.at,
                    ask_id: resolved.ask_id,
                    decision: resolved.resolution.outcome(),
                    by: resolved.by,
                })),
                RunEntry::Ended(_) => event.ended.map(|ended| {
                    let finished =
                        wire::FinishedEvent { seq: mark.seq, at: mark.at, run: run(&ended) };
                    wire::Event::Finished(Box::new(finished))
                }),
                RunEntry::ProviderAwaited(_)
                | RunEntry::CostReported(_)
                | RunEntry::Publishing(_)
                | RunEntry::CancelRequested(_)
                | RunEntry::ChildrenAllowed(_) => None,
            },
            HistoryItem::Entry(_) => None,
        }
    }

    fn attempt(&self, mark: Mark, started: &AttemptStarted) -> wire::Event {
        if started.attempt <= 1 {
            return wire::Event::Started(mark.simple(started.attempt));
        }
        let (reason, executed) =
            self.failure.clone().unwrap_or_else(|| ("tool.failed".to_owned(), Executed::Maybe));
        wire::Event::Attempt(wire::AttemptEvent {
            seq: mark.seq,
            run_id: mark.run_id,
            at: mark.at,
            attempt: started.attempt,
            reason,
            executed,
        })
    }
}

/// What every event has.
struct Mark {
    seq: u64,
    run_id: RunId,
    at: DateTime,
}

impl Mark {
    fn simple(self, attempt: u32) -> wire::MarkEvent {
        let Self { seq, run_id, at } = self;
        wire::MarkEvent { seq, run_id, at, attempt, reason: None }
    }
}

fn raised_ask(mark: &Mark, at: Timestamp, raised: AskRaised) -> wire::Event {
    let raised = wharf_domain::Ask::raised(*raised.ask, at);
    let event = wire::AskEvent { seq: mark.seq, at: mark.at, ask: ask(&raised) };
    match raised.spec.kind {
        AskKind::Question => wire::Event::Question(event),
        AskKind::Approval => wire::Event::Approval(event),
    }
}

fn progress(mark: Mark, piece: Progress) -> wire::Event {
    let Mark { seq, run_id, at } = mark;
    match piece {
        Progress::Text { channel, text } => {
            wire::Event::Text(wire::TextEvent { seq, run_id, at, channel, text })
        }
        Progress::Log { level, text } => {
            wire::Event::Log(wire::LogEvent { seq, run_id, at, level, text })
        }
        Progress::Partial { key, value } => {
            let value: Value = value;
            wire::Event::Partial(wire::PartialEvent { seq, run_id, at, key, value })
        }
        Progress::Phase { phase, fraction } => {
            wire::Event::Progress(wire::ProgressEvent { seq, run_id, at, phase, fraction })
        }
        Progress::Gap { from, to } => {
            wire::Event::Gap(wire::GapEvent { seq, run_id, at, from, to })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let down = Availability::Down { reason: "exit code 1".to_owned() };
        assert_eq!(shown(down), expect(ToolState::Unavailable, Some("exit code 1")));
        let changed = shown_as(Availability::Up, Some("its definition changed"));
        assert_eq!(changed, expect(ToolState::Quarantined, Some("its definition changed")));
    }
}
