//! Providers: who executes a tool's runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use wharf_domain::run::NoteKey;
use wharf_domain::trace::TraceHeaders;
use wharf_domain::{Resolution, RunSpec};
use wharf_vocab::{
    AskId, AttemptId, CommitNo, Epoch, Fault, Micro, Object, RunKey, ShardId, Timestamp, ToolId,
};

use crate::lifeline::Lifeline;

/// The name of an effect: the commit it follows from. A provider that sees one twice has been
/// told the same thing twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EffectId {
    /// The shard.
    pub shard: ShardId,
    /// In whose time: a shard that has passed on to another core begins another epoch.
    pub epoch: Epoch,
    /// The commit.
    pub commit: CommitNo,
}

/// An attempt that is handed to a provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Dispatch {
    /// What it follows from.
    pub effect: EffectId,
    /// The run.
    pub run: RunKey,
    /// The attempt's id.
    pub attempt_id: AttemptId,
    /// The attempt's number, from 1.
    pub attempt: u32,
    /// When the run was accepted.
    pub accepted: Timestamp,
    /// What the run is to do.
    pub spec: Arc<RunSpec>,
    /// The approval the attempt runs under, if it needed one.
    pub approval: Option<AskId>,
    /// When the attempt must be over, unless it waits for an ask.
    pub deadline: Option<Timestamp>,
    /// Whether the provider may know the attempt already and should take it up again.
    pub reattach: bool,
    /// What the attempt has noted for whoever takes it up again.
    pub notes: BTreeMap<NoteKey, Value>,
    /// What goes along with it, so that the provider can join the trace of the run.
    pub trace: TraceHeaders,
    /// Lives as long as somebody works on the attempt. When the last one lets go of it without
    /// having told an end, the attempt ends at once.
    pub lifeline: Lifeline,
}

impl Dispatch {
    /// The key under which a provider must not act twice, whatever the number of attempts: the
    /// caller's own, else the run's id wherever acting twice would matter. Keys of child runs are
    /// unique within their parent only, so their providers know them by the run's id.
    pub fn idempotency_key(&self) -> Option<&str> {
        let spec = &self.spec;
        match (&spec.idempotency_key, &spec.parent) {
            (Some(key), None) => Some(key),
            // The key of a step stands for it in the whole Wharf, whichever try it is.
            (Some(key), Some(_)) if spec.step.is_some() => Some(key),
            (None, _) if spec.side_effect_free && self.approval.is_none() => None,
            _ => Some(self.run.run.as_str()),
        }
    }
}

/// A run that waits for room at its provider.
#[derive(Debug, Clone, Copy)]
pub struct RoomFor<'a> {
    /// The run.
    pub run: &'a RunKey,
    /// What it is to do.
    pub spec: &'a RunSpec,
    /// How many others were told that it is their turn and have not been handed over yet.
    pub called: usize,
}

/// A call that somebody wants to make, for a provider that can tell what it costs at most.
#[derive(Debug, Clone, Copy)]
pub struct QuoteFor<'a> {
    /// The tool.
    pub tool: &'a ToolId,
    /// The inputs; those that are files stand as references.
    pub inputs: &'a Object,
    /// How many bytes those files have together.
    pub file_bytes: u64,
}

/// How the engine talks to a provider. No call may block: work is handed over, and what becomes
/// of it is reported through the engine's handle.
pub trait ProviderSink: Send + Sync + 'static {
    /// Hands over an attempt; an error means that it provably never started. `tool.busy` means
    /// *not now*: the engine keeps the run in line and hands it over once there is room.
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault>;

    /// Whether an attempt of this run, which waits in line, would be taken now. A sink that
    /// cannot tell says yes, and `tool.busy` when it is handed over too early.
    fn has_room(&self, _wanted: &RoomFor<'_>) -> bool {
        true
    }

    /// The most that an attempt with these inputs costs, where the provider can tell: then that is
    /// held for it, and not what other calls of the tool have cost.
    fn quote(&self, _wanted: &QuoteFor<'_>) -> Option<Micro> {
        None
    }

    /// Tells the provider to stop an attempt; one it does not know is ignored.
    fn cancel(&self, attempt_id: &AttemptId, reason: &str, grace_ms: u64);

    /// Tells the provider how an ask ended that the attempt raised under `key`.
    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution);
}
