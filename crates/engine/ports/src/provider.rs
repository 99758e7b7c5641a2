//! Providers: who executes a tool's runs.

use std::sync::Arc;

use wharf_domain::{Resolution, RunSpec};
use wharf_vocab::{AttemptId, CommitNo, Fault, RunKey, ShardId, Timestamp};

/// The name of an effect: the commit it follows from. A provider that sees one twice has been
/// told the same thing twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EffectId {
    /// The shard.
    pub shard: ShardId,
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
    /// What the run is to do.
    pub spec: Arc<RunSpec>,
    /// When the attempt must be over, unless it waits for an ask.
    pub deadline: Option<Timestamp>,
    /// Whether the provider may know the attempt already and should take it up again.
    pub reattach: bool,
}

/// How the engine talks to a provider. No call may block: work is handed over, and what becomes
/// of it is reported through the engine's handle.
pub trait ProviderSink: Send + Sync + 'static {
    /// Hands over an attempt; an error means that it provably never started.
    fn dispatch(&self, dispatch: Dispatch) -> Result<(), Fault>;

    /// Tells the provider to stop an attempt; one it does not know is ignored.
    fn cancel(&self, attempt_id: &AttemptId, reason: &str, grace_ms: u64);

    /// Tells the provider how an ask ended that the attempt raised under `key`.
    fn answer(&self, attempt_id: &AttemptId, key: &str, resolution: &Resolution);
}
