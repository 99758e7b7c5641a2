//! What is written about a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use wharf_vocab::{
    AccountId, AskId, AttemptId, Digest, Executed, Fault, GrantId, HoldId, Micro, Object, Place,
    RunKey, Timestamp, ToolId,
};

use super::flow::FlowRunEntry;
use super::steps::StepEntry;
use super::{KeptDigests, RunSpec};
use crate::{Actor, Artifact, AskSpec, Metered, Move, Outcome, Resolution, Via};

/// One entry of a run's stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum RunEntry {
    /// It was accepted.
    Created(Created),
    /// It waits for its provider.
    ProviderAwaited(ProviderAwaited),
    /// It waits for room at its provider.
    RoomAwaited(RoomAwaited),
    /// An attempt began.
    AttemptStarted(AttemptStarted),
    /// An attempt has cost so much so far, or turned out to have cost more when it was over.
    CostReported(CostReported),
    /// An attempt noted what it must know if it is taken up again.
    AttemptNoted(AttemptNoted),
    /// An attempt failed and another will follow.
    AttemptFailed(AttemptFailed),
    /// An ask was raised.
    AskRaised(AskRaised),
    /// An ask ended.
    AskResolved(AskResolved),
    /// An approval of one of its children holds for others, too.
    ChildrenAllowed(ChildrenAllowed),
    /// Somebody wants it to stop.
    CancelRequested(CancelRequested),
    /// It has done what it should, and its files are being put in their places.
    Publishing(Box<Publishing>),
    /// It is over.
    Ended(Ended),
    /// Something happened to the steps of a flow.
    Flow(Box<FlowRunEntry>),
    /// Something happened to the steps of durable code.
    Step(Box<StepEntry>),
}

/// A run was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Created {
    /// Its world and id.
    pub key: RunKey,
    /// What it is to do.
    pub spec: Arc<RunSpec>,
}

/// A run waits for its provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProviderAwaited {
    /// How long at most.
    pub until: Timestamp,
}

/// A run waits for room at its provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomAwaited {
    /// How long at most.
    pub until: Timestamp,
    /// When it may be offered again at the earliest.
    pub from: Timestamp,
    /// The attempt that was not taken; it counts as never begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt_id: Option<AttemptId>,
    /// Why there is no room, as people read it.
    pub reason: String,
}

/// An attempt began.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptStarted {
    /// Its number, from 1.
    pub attempt: u32,
    /// Its id.
    pub attempt_id: AttemptId,
    /// What was set aside for it, in the same commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Held>,
    /// Where it is handed to its provider; older versions did not write that down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
}

/// Money was set aside for an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The hold.
    pub hold: HoldId,
    /// Where it was taken.
    pub account: AccountId,
    /// How much.
    pub amount_micro: Micro,
}

impl Held {
    /// What is held for an attempt; a hold has the name of its attempt.
    pub(crate) fn of(attempt: &AttemptId, account: AccountId, amount_micro: Micro) -> Option<Self> {
        let hold = HoldId::new(attempt.as_str()).ok()?;
        Some(Self { hold, account, amount_micro })
    }
}

/// An attempt has cost so much in all. Of one that is over it is a correction of what was booked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CostReported {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// What it has cost in all.
    pub cost_micro: Micro,
    /// What the provider said, when that was more than is taken from one report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said_micro: Option<Micro>,
    /// Whether it is the last account of an attempt that had ended without one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
}

/// What an attempt notes for whoever takes it up again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteKey {
    /// What the provider calls the work, so that it can be asked about it.
    Task,
    /// What the provider wants back when what it asked for is there.
    State,
}

/// An attempt noted what it must know if it is taken up again. It goes with the attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptNoted {
    /// The attempt.
    pub attempt_id: AttemptId,
    /// Which of its notes.
    pub key: NoteKey,
    /// What it says now; nothing any more when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// An attempt failed and another will follow.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptFailed {
    /// Why.
    pub error: Fault,
    /// Whether it acted on the world.
    pub executed: Executed,
    /// What it cost.
    pub cost_micro: Micro,
    /// When the next one may begin.
    pub retry_at: Timestamp,
    /// The approval the next one runs under, when it asked for one that was given before.
    pub approval: Option<AskId>,
    /// What the core measured.
    #[serde(default, skip_serializing_if = "Metered::is_empty")]
    pub metered: Metered,
    /// What tells a repeat of the result from another one.
    pub given: Option<Digest>,
    /// Whether its provider never gave a last account of what it cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// An ask was raised.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskRaised {
    /// The ask.
    pub ask: Box<AskSpec>,
    /// Whether the run may not be dispatched before it is allowed.
    #[serde(default)]
    pub gate: bool,
}

/// An ask ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AskResolved {
    /// The ask.
    pub ask_id: AskId,
    /// How.
    pub resolution: Resolution,
    /// By whom.
    pub by: Actor,
    /// By which way in, where that says something about who it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<Via>,
}

/// An approval of a child run holds for later ones of the same tool and caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChildrenAllowed {
    /// The tool.
    pub tool: ToolId,
    /// Hash of the definition that was shown.
    pub tool_hash: Digest,
    /// The grant that starts the children.
    pub caller: GrantId,
    /// The approval.
    pub ask_id: AskId,
    /// Who gave it.
    pub by: Actor,
}

/// Somebody wants the run to stop while an attempt is under way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CancelRequested {
    /// Who.
    pub by: Actor,
    /// Why.
    pub reason: String,
    /// When the core stops waiting for the provider.
    pub deadline: Timestamp,
}

/// An attempt has succeeded, and its files are being put in their places. From here on the run
/// succeeds, unless the artifact store has lost a file: what was begun is gone on with, also after
/// a restart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Publishing {
    /// What it gave.
    pub outputs: Object,
    /// What it cost.
    pub cost_micro: Micro,
    /// The files it wrote, by their places.
    pub artifacts: Vec<Artifact>,
    /// What is to be put where.
    pub moves: Vec<Move>,
    /// What the core measured.
    #[serde(default)]
    pub metered: Metered,
    /// What tells a repeat of the result from another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Digest>,
}

/// The run is over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    pub outcome: Outcome,
    /// What the last attempt cost.
    pub cost_micro: Micro,
    /// The files it wrote.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub artifacts: Vec<Artifact>,
    /// What the core measured of the last attempt.
    #[serde(default, skip_serializing_if = "Metered::is_empty")]
    pub metered: Metered,
    /// What tells a repeat of the result from another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given: Option<Digest>,
    /// Whether the provider never gave a last account of what the last attempt cost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// What is known of what the run gave, where that itself is not written down.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kept: Option<Box<KeptDigests>>,
}

impl Ended {
    /// The end of a run that wrote no files.
    pub fn new(outcome: Outcome, cost_micro: Micro) -> Self {
        Self {
            outcome,
            cost_micro,
            artifacts: Vec::new(),
            metered: Metered::default(),
            given: None,
            incomplete: false,
            kept: None,
        }
    }
}
