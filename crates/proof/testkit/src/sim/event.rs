//! What travels in the simulated world.

use std::collections::VecDeque;
use std::sync::Arc;

use wharf_domain::run::flow::FlowWork;
use wharf_domain::{Availability, Move, Resolution, Run};
use wharf_engine::link::Frame;
use wharf_engine::shard::{Input, LateCost};
use wharf_ports::{Batch, CommitError, Dispatch};
use wharf_vocab::{AttemptId, CommitNo, Epoch, RunKey, ShardId, StreamId};

use super::bus::Message;
use super::node::{Origin, Renewed};

/// Something that is to happen. What concerns a core names the life it was meant for: a core
/// that was started again knows nothing of it.
#[derive(Debug, Clone)]
pub(super) enum Event {
    /// Something arrives at a core.
    ToNode { node: usize, life: u32, parcel: Parcel },
    /// A core looks at its deadlines.
    Wake { node: usize, life: u32 },
    /// A core prolongs its leases and looks for free ones.
    Leases { node: usize, life: u32 },
    /// The store prolongs a core's leases, which were asked for at a moment of its own time.
    Renew { node: usize, life: u32, asked: u64 },
    /// A core learns what became of that.
    Renewed { node: usize, life: u32, asked: u64, found: Option<Box<Renewed>> },
    /// A frame arrives at a core.
    Frame { from: usize, to: usize, frame: Box<Frame<Message>> },
    /// A core sends again what another one has not confirmed.
    Resend { node: usize, life: u32, to: usize },
    /// A core waits no longer for the answer of another one.
    CallTimeout { node: usize, life: u32, call: u64 },
    /// A place looks after the attempts that it has.
    LookAfter { node: usize, life: u32 },
    /// A core looks whether shards can be handed over.
    Leave { node: usize, life: u32 },
    /// A core that leaves looks whether it can go.
    Drain { node: usize, life: u32 },
    /// A core takes leases and loads shards.
    Load { node: usize, life: u32, shards: Vec<ShardId> },
    /// Batches arrive at the store.
    AtStore { node: usize, life: u32, group: Vec<Arc<Batch>> },
    /// A core learns what became of its batches.
    Settled { node: usize, life: u32, group: Vec<Settled> },
    /// A core does something at the store.
    Chore { node: usize, life: u32, chore: Chore },
    /// Something arrives at a provider.
    ToProvider { provider: usize, from: usize, order: Order },
    /// A provider goes on with an attempt.
    Work { provider: usize, attempt: AttemptId },
    /// A provider can be reached again.
    LinkUp { provider: usize, node: usize },
    /// A core is started.
    Start { node: usize },
    /// The store works well again.
    StoreHeals,
    /// People look through the inbox, once everything is to come to rest.
    Inbox,
}

/// What arrives at a core.
#[derive(Debug, Clone)]
pub(super) enum Parcel {
    /// An input for a shard, and the call it answers.
    Input { shard: ShardId, input: Box<Input>, call: Option<u64> },
    /// An input that has waited because nobody was known to step its shard.
    Parked { shard: ShardId, input: Box<Input>, origin: Origin, tries: u8 },
    /// A provider's availability; an older one than is known is dropped.
    Provider { provider: usize, version: u64, availability: Availability },
}

/// What became of a batch.
#[derive(Debug, Clone)]
pub(super) struct Settled {
    pub(super) shard: ShardId,
    pub(super) epoch: Epoch,
    pub(super) no: CommitNo,
    pub(super) result: Result<(), CommitError>,
}

/// What a core looks up or does at the store, in its own time; a core that dies forgets it.
#[derive(Debug, Clone)]
pub(super) enum Chore {
    /// Whether a parent that is over was called off.
    AskAfterParent { parent: RunKey, child: RunKey },
    /// Whether a run was made.
    LookUp(RunKey, Epoch),
    /// A run that is over, whose cost came late.
    FindEnded(RunKey, Box<LateCost>),
    /// What the store holds of a world, an agent, a grant or a seat.
    LookUpRecord(StreamId, Epoch),
    /// What a flow wants.
    Flow(Arc<Run>, Box<FlowWork>),
    /// The files of an attempt that are yet to be put in their places, one after the other.
    PutInPlace { run: RunKey, attempt_id: AttemptId, moves: VecDeque<Move> },
}

/// What a core tells a provider.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// Take an attempt; the number is that of the process it is meant for.
    Dispatch(Box<Dispatch>, u64),
    /// Stop an attempt.
    Cancel(AttemptId),
    /// An ask of the attempt has ended.
    Answer(AttemptId, String, Resolution),
}

impl Event {
    /// The core it concerns, if it concerns one, and the life it was meant for.
    pub(super) fn addressee(&self) -> Option<(usize, u32)> {
        match self {
            Self::ToNode { node, life, .. }
            | Self::Wake { node, life }
            | Self::Leases { node, life }
            | Self::Load { node, life, .. }
            | Self::Settled { node, life, .. }
            | Self::Renewed { node, life, .. }
            | Self::Resend { node, life, .. }
            | Self::CallTimeout { node, life, .. }
            | Self::LookAfter { node, life }
            | Self::Leave { node, life }
            | Self::Drain { node, life }
            | Self::Chore { node, life, .. } => Some((*node, *life)),
            Self::AtStore { .. }
            | Self::Renew { .. }
            | Self::Frame { .. }
            | Self::ToProvider { .. }
            | Self::Work { .. }
            | Self::LinkUp { .. }
            | Self::Start { .. }
            | Self::StoreHeals
            | Self::Inbox => None,
        }
    }
}
