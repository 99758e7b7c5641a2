//! Runs.

use std::sync::Arc;

use async_graphql::SimpleObject;
use serde_json::Value;
use wharf_domain::Outcome;
use wharf_engine::Handle;
use wharf_vocab::{Fault, Object, RunKey};

use super::{Artifact, Ask, Durability, Mode, RunStatus};
use crate::scalars::{DateTime, Int64};

/// A run as lists show it.
#[derive(Debug, SimpleObject)]
pub(crate) struct RunSummary {
    /// Its id, unique within its world.
    run_id: String,
    /// The tool.
    tool: String,
    /// The world.
    world: String,
    /// Where it stands.
    status: RunStatus,
    /// Whether it acts or pretends.
    mode: Mode,
    /// Whether it is written down.
    durability: Durability,
    /// How many attempts have begun.
    attempt: u32,
    /// What it has cost, in micro-dollars.
    cost_micro: Int64,
    /// When it was accepted.
    created_at: DateTime,
    /// When its first attempt began.
    started_at: Option<DateTime>,
    /// When it ended.
    ended_at: Option<DateTime>,
    /// Why it did not succeed.
    error: Option<ErrorInfo>,
    /// The caller's own id for what it is part of.
    correlation_id: Option<String>,
    /// The run that started it, as `world/run`.
    parent: Option<String>,
}

/// A run with all there is to see of it.
#[derive(Debug, SimpleObject)]
pub(crate) struct Run {
    #[graphql(flatten)]
    summary: RunSummary,
    /// What it was given, as it was given: files stand as references and never as addresses.
    inputs: Value,
    /// What came of it; files stand as references. Empty until it has succeeded.
    outputs: Value,
    /// The files it wrote.
    #[graphql(complexity = "20 * child_complexity")]
    artifacts: Vec<Artifact>,
    /// The run whose local files it may read.
    continues: Option<String>,
    /// What it would have cost, in micro-dollars, if it only pretended.
    would_cost_micro: Option<Int64>,
    /// What is set aside for each attempt, in micro-dollars.
    hold_micro: Int64,
    /// What is set aside for the attempt under way, in micro-dollars.
    held_micro: Int64,
    /// What the core measured of it; null until it is over.
    receipt: Option<Receipt>,
    /// What it waits for.
    #[graphql(complexity = "5 * child_complexity")]
    asks: Vec<Ask>,
    /// What it waits for while it is queued.
    waiting_for: Option<WaitingFor>,
}

/// What a run waits for while it is queued.
#[derive(Debug, SimpleObject)]
pub(crate) struct WaitingFor {
    /// `room` at its provider, its `provider` itself, or a `retry`.
    kind: String,
    /// Why, for people.
    message: String,
    /// Since when, where that is known.
    since: Option<DateTime>,
    /// When the waiting ends at the latest.
    until: DateTime,
}

/// What the core measured of a run, beside what its provider says that it cost.
#[derive(Debug, SimpleObject)]
pub(crate) struct Receipt {
    /// What the provider reported, in micro-dollars.
    cost_micro: Int64,
    /// How long its attempts and waits took, from the first attempt to the end, in milliseconds.
    wall_ms: Int64,
    /// Processor time in milliseconds, where it is known.
    cpu_ms: Option<Int64>,
    /// Bytes of files that it was given.
    bytes_in: Int64,
    /// Bytes of files that it wrote.
    bytes_out: Int64,
    /// Whether more was reported than was held.
    over_hold: bool,
    /// Whether the provider of an attempt never gave a last account of what it cost.
    incomplete: bool,
    /// Whether a report said more than is taken from one, and was cut down.
    capped: bool,
}

/// An error that is part of what is shown.
#[derive(Debug, SimpleObject)]
#[graphql(name = "Error")]
pub(crate) struct ErrorInfo {
    /// What went wrong, for programs.
    code: String,
    /// What went wrong, for people.
    message: String,
    /// Whether the same request may succeed later.
    retryable: bool,
    /// Facts about it.
    details: Option<Value>,
}

impl From<&Fault> for ErrorInfo {
    fn from(fault: &Fault) -> Self {
        Self {
            code: fault.code.as_str().to_owned(),
            message: fault.message.clone(),
            retryable: fault.retryable,
            details: (!fault.details.is_empty()).then(|| Value::Object(fault.details.clone())),
        }
    }
}

impl From<&wharf_domain::RunSummary> for RunSummary {
    fn from(run: &wharf_domain::RunSummary) -> Self {
        Self {
            run_id: run.key.run.to_string(),
            tool: run.tool.to_string(),
            world: run.key.world.to_string(),
            status: run.status.into(),
            mode: run.mode.into(),
            durability: run.durability.into(),
            attempt: run.attempt,
            cost_micro: Int64(run.cost_micro),
            created_at: DateTime(run.created_at),
            started_at: run.started_at.map(DateTime),
            ended_at: run.ended_at.map(DateTime),
            error: run.error.as_ref().map(ErrorInfo::from),
            correlation_id: run.correlation_id.clone(),
            parent: run.parent.as_ref().map(RunKey::to_string),
        }
    }
}

impl Run {
    /// A run with its inputs, wherever they are kept.
    pub(crate) async fn shown(handle: &Handle, run: Arc<wharf_domain::Run>) -> Result<Self, Fault> {
        Ok(Self::from(&*handle.with_inputs(run).await?))
    }
}

impl From<&wharf_domain::Run> for Run {
    fn from(run: &wharf_domain::Run) -> Self {
        let outputs = match &run.outcome {
            Some(Outcome::Succeeded { outputs }) => outputs.clone(),
            _ => Object::new(),
        };
        let hold = run.active.as_ref().and_then(|attempt| {
            let held = attempt.hold.as_ref()?.amount_micro;
            Some(held.max(attempt.reported_micro))
        });
        let would_cost = (!run.spec.is_paid()).then_some(run.would_cost_micro);
        Self {
            summary: RunSummary {
                cost_micro: Int64(run.cost_so_far()),
                ..RunSummary::from(&run.summary())
            },
            would_cost_micro: would_cost.map(Int64),
            inputs: Value::Object(Object::clone(&run.spec.inputs)),
            outputs: Value::Object(outputs),
            artifacts: run.artifacts.iter().map(Artifact::from).collect(),
            continues: run.spec.continues.as_ref().map(ToString::to_string),
            hold_micro: Int64(run.spec.hold_micro),
            held_micro: Int64(hold.unwrap_or(0)),
            receipt: receipt(run),
            asks: run.open_asks().map(|raised| Ask::from(&raised.ask)).collect(),
            waiting_for: run.waits_for().map(|wait| WaitingFor {
                kind: wait.kind.as_str().to_owned(),
                message: wait.message,
                since: wait.since.map(DateTime),
                until: DateTime(wait.until),
            }),
        }
    }
}

/// What was measured of a run that is over.
fn receipt(run: &wharf_domain::Run) -> Option<Receipt> {
    Some(Receipt {
        cost_micro: Int64(run.cost_micro),
        wall_ms: Int64(run.wall_ms()?),
        cpu_ms: run.metered.cpu_ms.map(Int64),
        bytes_in: Int64(run.metered.bytes_in),
        bytes_out: Int64(run.metered.bytes_out),
        over_hold: run.is_over_hold(),
        incomplete: run.is_incomplete(),
        capped: run.capped,
    })
}
