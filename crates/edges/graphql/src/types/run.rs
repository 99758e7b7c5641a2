//! Runs.

use std::sync::Arc;

use async_graphql::SimpleObject;
use serde_json::Value;
use wharf_engine::Handle;
use wharf_vocab::{Direction, Fault};

use super::flow::RunFlow;
use super::view::{View, view};
use super::{Artifact, Ask, Durability, Mode, RunStatus};
use crate::scalars::{DateTime, Int64};

view! {
    /// A run as lists show it.
    RunSummary of Run {
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
        /// The token that started it; unknown of runs of older cores.
        caller: Option<String>,
        /// What it is doing, as its provider last said, while it is under way.
        phase: Option<String>,
        /// How much of that is done, 0 to 1.
        fraction: Option<f64>,
        /// Whether it has cost more than was set aside for it.
        over_hold: bool,
        /// What it waits for while it is queued or an ask is open.
        waiting_for: Option<WaitingFor>,
    // Only a run in full has these.
    } without {
        inputs, outputs, artifacts, continues, would_cost_micro, hold_micro, held_micro, timeout_ms,
        budget_micro, receipt, ask, attempts, transfers, kept, flow,
    }
}

/// A run in full.
#[derive(Debug, SimpleObject)]
pub(crate) struct Run {
    #[graphql(flatten)]
    summary: RunSummary,
    /// Its inputs as they were given; files are references, never addresses.
    inputs: Value,
    /// Its outputs; files are references. Empty until it has succeeded.
    outputs: Value,
    /// The files it wrote.
    #[graphql(complexity = "20 * child_complexity")]
    artifacts: Vec<Artifact>,
    /// The run whose local files it may read.
    continues: Option<String>,
    /// What it would have cost, in micro-dollars, had it not been a mock run.
    would_cost_micro: Option<Int64>,
    /// What is set aside for each attempt, in micro-dollars.
    hold_micro: Int64,
    /// What is set aside for the attempt under way, in micro-dollars.
    held_micro: Int64,
    /// How long one attempt may run, in milliseconds.
    timeout_ms: Int64,
    /// The most it and its children may cost, in micro-dollars, if it was started with such a limit.
    budget_micro: Option<Int64>,
    /// What the core measured; null until the run is over.
    receipt: Option<Receipt>,
    /// The open asks it waits for.
    #[graphql(complexity = "5 * child_complexity")]
    asks: Vec<Ask>,
    /// Its attempts, oldest first.
    #[graphql(complexity = "5 * child_complexity")]
    attempts: Vec<RunAttempt>,
    /// Files that the core handed to its provider or took from it, of attempts that have ended.
    #[graphql(complexity = "5 * child_complexity")]
    transfers: Vec<RunTransfer>,
    /// Present when no more than hashes of its values are kept once it has ended.
    kept: Option<KeptValues>,
    /// How far it is, if it is a flow.
    flow: Option<RunFlow>,
}

view! {
    /// What is kept of the values of a run once it has ended.
    KeptValues of KeptValues {
        /// `digest`: no more than hashes.
        retain: super::Retain,
        /// The hash in the place of its inputs; null while they are still known.
        inputs: Option<ValueDigest>,
        /// The hash in the place of its outputs; null while they are still known.
        outputs: Option<ValueDigest>,
        /// The hash in the place of its error's message and details; null while they are known.
        error: Option<ValueDigest>,
    }
}

view! {
    /// The hash of a value that is not kept.
    ValueDigest of ValueDigest {
        /// BLAKE3 of the value as JSON without spaces and with the keys of objects in order.
        b3: String,
        /// The length of that JSON text.
        bytes: Int64,
    }
}

view! {
    /// What a run waits for while it is queued or an ask is open.
    WaitingFor of WaitingFor {
        /// An `ask`, `room` at its provider, its `provider` itself, or a `retry`.
        kind: String,
        /// Why, for people.
        message: String,
        /// Since when, where that is known.
        since: Option<DateTime>,
        /// When the waiting ends at the latest.
        until: DateTime,
        /// The ask, if it waits for one.
        ask_id: Option<String>,
    }
}

view! {
    /// An attempt of a run.
    RunAttempt of RunAttempt {
        /// Its number, from 1.
        attempt: u32,
        /// When it began.
        started_at: DateTime,
        /// When it ended.
        ended_at: Option<DateTime>,
        /// Why it ended, if it did not succeed.
        error: Option<ErrorInfo>,
    }
}

view! {
    /// A file that the core handed to a run's provider, or took from it.
    RunTransfer of RunTransfer {
        /// The name of the run's input or output.
        key: String,
        /// `in` what the provider was given, `out` what it wrote.
        direction: super::Direction,
        /// The file's path within the world, where it is known.
        path: Option<String>,
        /// How many bytes were handed over.
        bytes: Int64,
        /// When that began.
        at: DateTime,
        /// How long it took, in milliseconds.
        took_ms: Int64,
    }
}

view! {
    /// What the core measured of a run, beside what its provider says that it cost.
    Receipt of Receipt {
        /// What the provider reported, in micro-dollars.
        cost_micro: Int64,
        /// How long it took from the first attempt to the end, in milliseconds.
        wall_ms: Int64,
        /// Processor time in milliseconds, where it is known.
        cpu_ms: Option<Int64>,
        /// Bytes of the files it was given.
        bytes_in: Int64,
        /// Bytes of the files it wrote.
        bytes_out: Int64,
        /// Whether more was reported than was set aside.
        over_hold: bool,
        /// Whether the provider of an attempt never sent its final cost.
        incomplete: bool,
        /// Whether a report exceeded the most that one may claim, and was cut down to it.
        capped: bool,
    }
}

view! {
    /// An error that is part of what is shown.
    #[graphql(name = "Error")]
    ErrorInfo of ErrorInfo {
        /// What went wrong, for programs.
        code: String,
        /// What went wrong, for people.
        message: String,
        /// Whether the same request may succeed later.
        retryable: bool,
        /// Facts about it.
        details: Option<Value>,
    }
}

impl Run {
    /// A run with its inputs, wherever they are kept.
    pub(crate) async fn shown(handle: &Handle, run: Arc<wharf_domain::Run>) -> Result<Self, Fault> {
        let asks = run.open_asks().map(|raised| View::view(wharf_views::ask(&raised.ask)));
        let asks = asks.collect();
        Ok(Self::with(wharf_views::run_in_full(handle, run).await?, asks))
    }
}

impl Run {
    /// A run as REST shows it, and all asks it waits for instead of the oldest.
    fn with(mut of: wharf_wire::rest_v1::Run, asks: Vec<Ask>) -> Self {
        let mut written = of.artifacts.take().unwrap_or_default();
        written.retain(|file| file.direction == Direction::Out);
        Self {
            inputs: View::view(of.inputs.take().unwrap_or_default()),
            outputs: View::view(of.outputs.take().unwrap_or_default()),
            artifacts: View::view(written),
            continues: View::view(of.continues.take()),
            would_cost_micro: View::view(of.would_cost_micro),
            hold_micro: Int64(of.hold_micro.unwrap_or_default()),
            held_micro: Int64(of.held_micro.unwrap_or_default()),
            timeout_ms: Int64(of.timeout_ms.unwrap_or_default()),
            budget_micro: View::view(of.budget_micro),
            receipt: View::view(of.receipt.take()),
            asks,
            attempts: View::view(of.attempts.take().unwrap_or_default()),
            transfers: View::view(of.transfers.take().unwrap_or_default()),
            kept: View::view(of.kept.take()),
            flow: View::view(of.flow.take()),
            summary: View::view(of),
        }
    }
}

/// A run as its last event shows it.
impl From<&wharf_domain::Run> for Run {
    fn from(run: &wharf_domain::Run) -> Self {
        let asks = run.open_asks().map(|raised| View::view(wharf_views::ask(&raised.ask)));
        Self::with(wharf_views::run(run), asks.collect())
    }
}
