//! Runs, and the asks they wait for.

use wharf_domain::run::ValueDigest;
use wharf_domain::scope::{InputBinding, ReadObject};
use wharf_domain::{Resolution, Run, RunSummary, Transfer};
use wharf_vocab::{DateTime, Direction, Micro, Object, RunKey};
use wharf_wire::rest_v1 as wire;

use crate::file::artifact;

/// A run that was accepted.
#[must_use]
pub fn accepted(run: &Run) -> wire::RunAccepted {
    wire::RunAccepted { run_id: run.key.run.clone(), status: run.status() }
}

/// A run with all there is to see of it.
#[must_use]
pub fn run(run: &Run) -> wire::Run {
    let outputs = match &run.outcome {
        Some(wharf_domain::Outcome::Succeeded { outputs }) => outputs.clone(),
        _ => Object::new(),
    };
    wire::Run {
        outputs: Some(outputs),
        inputs: Some(Object::clone(&run.spec.inputs)),
        artifacts: Some(files(run)),
        transfers: Some(transfers(run)),
        kept: kept(run),
        continues: run.spec.continues.clone(),
        receipt: receipt(run),
        cost_micro: run.cost_so_far(),
        would_cost_micro: (!run.spec.is_paid()).then_some(run.would_cost_micro),
        hold_micro: Some(run.spec.hold_micro),
        held_micro: Some(held(run)),
        timeout_ms: Some(run.spec.timeout_ms),
        budget_micro: run.spec.budget_micro,
        ask: run.open_asks().next().map(|raised| ask(&raised.ask)),
        waiting_for: waiting_for(run),
        flow: crate::flow::run_flow(run),
        ..summary(&run.summary())
    }
}

/// What is kept of the values of a run, if that is not all.
pub(crate) fn kept(run: &Run) -> Option<wire::KeptValues> {
    let digest = |it: &ValueDigest| wire::ValueDigest { b3: it.b3.to_string(), bytes: it.bytes };
    let known = run.kept.as_ref();
    run.spec.is_withheld().then(|| wire::KeptValues {
        retain: run.spec.retain,
        inputs: run.spec.inputs_kept.as_ref().map(digest),
        outputs: known.and_then(|known| known.outputs.as_ref()).map(digest),
        error: known.and_then(|known| known.error.as_ref()).map(digest),
    })
}

/// What a run waits for while it is queued or an ask is open.
pub(crate) fn waiting_for(run: &Run) -> Option<wire::WaitingFor> {
    let wait = run.waits_for()?;
    Some(wire::WaitingFor {
        kind: wait.kind,
        message: wait.message,
        since: wait.since.map(DateTime),
        until: DateTime(wait.until),
        ask_id: run.open_asks().next().map(|raised| raised.ask.spec.ask_id.clone()),
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
#[must_use]
pub fn summary(run: &RunSummary) -> wire::Run {
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
        timeout_ms: None,
        budget_micro: None,
        created_at: DateTime(run.created_at),
        started_at: run.started_at.map(DateTime),
        ended_at: run.ended_at.map(DateTime),
        outputs: None,
        inputs: None,
        artifacts: None,
        continues: None,
        receipt: None,
        error: run.error.as_ref().map(wire::ErrorInfo::from),
        ask: None,
        waiting_for: None,
        correlation_id: run.correlation_id.clone(),
        parent: run.parent.as_ref().map(RunKey::to_string),
        caller: run.caller.clone(),
        phase: None,
        fraction: None,
        over_hold: run.over_hold,
        attempts: None,
        transfers: None,
        kept: None,
        flow: None,
    }
}

/// An ask.
#[must_use]
pub fn ask(ask: &wharf_domain::Ask) -> wire::Ask {
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
        decision: ask.resolved.as_ref().map(|(resolution, _)| resolution.outcome()),
        decided_by: ask.resolved.as_ref().map(|(_, by)| by.to_string()),
        decided_at: ask.resolved_at.map(DateTime),
        reason: ask.resolved.as_ref().and_then(|(resolution, _)| match resolution {
            Resolution::Deny { reason: text } | Resolution::OffScript { text } => {
                Some(text.clone()).filter(|text| !text.is_empty())
            }
            _ => None,
        }),
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

/// Files that a run reads and has written.
fn files(run: &Run) -> Vec<wire::Artifact> {
    let reads = run.spec.bindings.reads.iter().filter_map(|(key, bound)| match bound {
        InputBinding::Object(object) => Some(wire::Artifact {
            world: run.key.world.clone(),
            path: object.path.to_string(),
            bytes: object.bytes,
            b3: object.b3.as_ref().map(ToString::to_string),
            media_type: object.media_type.clone(),
            run_id: Some(run.key.run.clone()),
            key: Some(key.clone()),
            direction: Direction::In,
            at: None,
            gone_at: None,
        }),
        InputBinding::Uri => None,
    });
    reads.chain(run.artifacts.iter().map(artifact)).collect()
}

/// Files that were handed over for a run.
fn transfers(run: &Run) -> Vec<wire::RunTransfer> {
    let path = |it: &Transfer| match it.direction {
        Direction::In => {
            let mut reads = run.spec.bindings.files();
            reads.find(|(name, _)| **name == it.key).map(|(_, read)| read.path.to_string())
        }
        Direction::Out => {
            let mut wrote = run.artifacts.iter();
            let wrote = wrote.find(|file| file.key.as_ref() == Some(&it.key));
            wrote.map(|file| file.path.to_string())
        }
    };
    let shown = |it: &Transfer| wire::RunTransfer {
        key: it.key.clone(),
        direction: it.direction,
        path: path(it),
        bytes: it.bytes,
        at: DateTime(it.at),
        took_ms: it.took_ms,
    };
    run.metered.transfers.iter().map(shown).collect()
}

/// What the core measured of a run that is over.
fn receipt(run: &Run) -> Option<wire::Receipt> {
    Some(wire::Receipt {
        cost_micro: run.cost_micro,
        wall_ms: run.wall_ms()?,
        cpu_ms: run.metered.cpu_ms,
        bytes_in: run.metered.bytes_in,
        bytes_out: run.metered.bytes_out,
        over_hold: run.is_over_hold(),
        incomplete: run.is_incomplete(),
        capped: run.capped,
    })
}
