//! What can happen to a run, and the table of what is legal when.

use serde_json::Value;
use wharf_vocab::{AskId, AskKind, AttemptId, Executed, Fault, GrantId, Micro, Object, Timestamp};

use super::flow::{FlowInput, NewSignal};
use super::steps::StepInput;
use super::{ChildrenAllowed, NoteKey, Run};
use crate::scope::WorldPath;
use crate::{Actor, Audience, Caller, Delivery, Resolution};

/// What can happen to a run that exists.
#[derive(Debug, Clone, PartialEq)]
pub enum RunInput {
    /// The provider's availability changed.
    Provider,
    /// There is room at the provider, and it is this run's turn.
    Turn,
    /// The provider says how an attempt ended.
    AttemptEnded {
        /// The attempt.
        attempt_id: AttemptId,
        /// How it ended.
        report: AttemptReport,
    },
    /// The provider says what an attempt has cost so far, in all; it may come at any time, also
    /// when the attempt or the run is over.
    CostReported {
        /// The attempt.
        attempt_id: AttemptId,
        /// What it has cost.
        cost_micro: Micro,
    },
    /// The attempt notes what it must know if it is taken up again.
    Note {
        /// The attempt.
        attempt_id: AttemptId,
        /// Which of its notes.
        key: NoteKey,
        /// What it says from now on; nothing when absent.
        value: Option<Value>,
    },
    /// The files of an attempt are in their places, or some of them are lost.
    Published {
        /// The attempt.
        attempt_id: AttemptId,
        /// Places of files that the artifact store has lost; then none was put in its place.
        lost: Vec<WorldPath>,
    },
    /// The attempt wrote more than it may.
    OutputTooLarge {
        /// The attempt.
        attempt_id: AttemptId,
    },
    /// The attempt asks something.
    RaiseAsk(NewAsk),
    /// Somebody decides an ask.
    ResolveAsk {
        /// The ask.
        ask_id: AskId,
        /// How.
        resolution: Resolution,
        /// Who.
        by: Caller,
    },
    /// An approval of one of the run's children holds for others, too.
    AllowChildren(ChildrenAllowed),
    /// Somebody wants the run to stop.
    Cancel {
        /// Who.
        by: Actor,
        /// Why.
        reason: String,
    },
    /// A deadline may have passed.
    Tick,
    /// The core was restarted while the run was open.
    Recovered,
    /// Something happened to a step of a flow.
    Flow(FlowInput),
    /// Somebody sends a flow a message.
    Signal(NewSignal),
    /// Something happens to a step of durable code.
    Step(StepInput),
}

/// How an attempt ended, as its provider tells it.
#[derive(Debug, Clone, PartialEq)]
pub struct AttemptReport {
    /// The result.
    pub result: Result<Object, AttemptError>,
    /// What it cost.
    pub cost_micro: Micro,
    /// Files it wrote, and what the core measured.
    pub delivery: Delivery,
}

impl AttemptReport {
    /// An attempt that wrote no files.
    pub fn new(result: Result<Object, AttemptError>, cost_micro: Micro) -> Self {
        Self { result, cost_micro, delivery: Delivery::default() }
    }
}

/// Why an attempt did not succeed.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptError {
    /// It failed.
    Failed(Fault, Executed),
    /// The provider would not do it.
    Refused(Fault),
    /// It stopped because it was told to.
    Canceled(Fault),
}

/// An ask that an attempt raises.
#[derive(Debug, Clone, PartialEq)]
pub struct NewAsk {
    /// The attempt that asks.
    pub attempt_id: AttemptId,
    /// Information or permission.
    pub kind: AskKind,
    /// The asker's own name for it; the same key in one run is the same ask.
    pub key: String,
    /// What is asked, in one line.
    pub title: String,
    /// JSON Schema of the answer.
    pub schema: Option<Value>,
    /// Who may decide.
    pub audience: Audience,
    /// When it expires; the default when absent.
    pub deadline: Option<Timestamp>,
    /// When a seat's time is over and others are asked, too.
    pub escalates: Option<Timestamp>,
    /// What it is about, as far as the title cannot say it.
    pub detail: Option<Value>,
    /// Every grant that stands behind whoever works on the attempt; none of them decides this.
    pub by: Vec<GrantId>,
}

/// Where a run stands, as finely as the rules care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Waits for its provider or for a retry.
    Queued,
    /// Waits for an approval before it may be dispatched.
    Gated,
    /// An attempt is under way.
    Running,
    /// An attempt is under way and has asked something.
    Asking,
    /// An attempt is under way and has been told to stop.
    Canceling,
    /// Its files are being put in their places.
    Publishing,
    /// The steps of a flow are under way.
    Flowing,
    /// A flow was canceled: its steps stop, what they did is undone, and it does what it does at
    /// last.
    Closing,
    /// It is over.
    Over,
}

impl Phase {
    /// Every phase.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Gated,
        Self::Running,
        Self::Asking,
        Self::Canceling,
        Self::Publishing,
        Self::Flowing,
        Self::Closing,
        Self::Over,
    ];
}

/// The kind of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputKind {
    /// [`RunInput::Provider`].
    Provider,
    /// [`RunInput::Turn`].
    Turn,
    /// [`RunInput::AttemptEnded`].
    AttemptEnded,
    /// [`RunInput::CostReported`].
    CostReported,
    /// [`RunInput::Note`].
    Note,
    /// [`RunInput::Published`].
    Published,
    /// [`RunInput::OutputTooLarge`].
    OutputTooLarge,
    /// [`RunInput::RaiseAsk`].
    RaiseAsk,
    /// [`RunInput::ResolveAsk`].
    ResolveAsk,
    /// [`RunInput::AllowChildren`].
    AllowChildren,
    /// [`RunInput::Cancel`].
    Cancel,
    /// [`RunInput::Tick`].
    Tick,
    /// [`RunInput::Recovered`].
    Recovered,
    /// [`RunInput::Flow`].
    Flow,
    /// [`RunInput::Signal`].
    Signal,
    /// [`RunInput::Step`].
    Step,
}

impl InputKind {
    /// Every kind of input.
    pub const ALL: [Self; 16] = [
        Self::Provider,
        Self::Turn,
        Self::AttemptEnded,
        Self::CostReported,
        Self::Note,
        Self::Published,
        Self::OutputTooLarge,
        Self::RaiseAsk,
        Self::ResolveAsk,
        Self::AllowChildren,
        Self::Cancel,
        Self::Tick,
        Self::Recovered,
        Self::Flow,
        Self::Signal,
        Self::Step,
    ];
}

/// What the rules do with an input in a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may change the run.
    Acts,
    /// It comes too late or does not matter: nothing changes, nobody is told off.
    Ignored,
    /// Whoever sent it is told why not.
    Rejected,
}

/// The table of legal pairs. Tests offer every input in every phase and compare.
pub fn legal(phase: Phase, input: InputKind) -> Verdict {
    use InputKind as I;
    use Phase as P;
    use Verdict::{Acts, Ignored, Rejected};
    match (phase, input) {
        // Nothing of a flow is spent but by its steps.
        (P::Flowing | P::Closing, I::CostReported) => Ignored,
        // What was spent was spent, whenever that comes out.
        (_, I::CostReported) => Acts,
        (P::Over, I::RaiseAsk | I::ResolveAsk | I::Signal | I::Step) => Rejected,
        (P::Over, _) => Ignored,
        // A flow has no attempt; what happens to its steps acts as long as any are left.
        (P::Flowing, I::Signal | I::Cancel | I::AllowChildren) => Acts,
        (P::Closing, I::Signal) => Rejected,
        (P::Flowing | P::Closing, I::Flow | I::ResolveAsk | I::Tick | I::Recovered) => Acts,
        (P::Flowing | P::Closing, I::RaiseAsk) => Rejected,
        (P::Flowing | P::Closing, _) => Ignored,
        (_, I::Flow) => Ignored,
        (_, I::Signal) => Rejected,
        // Whoever is about to end does no more steps; else they end also between attempts.
        (P::Publishing | P::Canceling, I::Step) => Rejected,
        (_, I::Step) => Acts,
        // What was begun is gone on with: nothing but its end matters any more.
        (P::Publishing, I::Published | I::Recovered) => Acts,
        (P::Publishing, I::RaiseAsk | I::ResolveAsk) => Rejected,
        (P::Publishing, _) | (_, I::Published) => Ignored,
        (P::Canceling, I::AllowChildren) => Ignored,
        (_, I::AllowChildren) => Acts,

        (P::Queued, I::Turn) => Acts,
        (_, I::Turn) => Ignored,
        (P::Queued, I::Provider | I::Cancel | I::Tick | I::Recovered | I::ResolveAsk) => Acts,
        (P::Gated, I::ResolveAsk | I::Cancel | I::Tick) => Acts,
        (P::Queued | P::Gated, I::RaiseAsk) => Rejected,
        (P::Queued | P::Gated, _) => Ignored,

        (P::Canceling, I::AttemptEnded | I::OutputTooLarge | I::Tick | I::Recovered | I::Note) => {
            Acts
        }
        (P::Canceling, I::RaiseAsk | I::ResolveAsk) => Rejected,
        (P::Canceling, _) => Ignored,

        (P::Running | P::Asking, I::Provider) => Ignored,
        (P::Running, I::ResolveAsk) => Rejected,
        (P::Running | P::Asking, _) => Acts,
    }
}

impl Run {
    /// Where the run stands, as finely as the rules care.
    pub fn phase(&self) -> Phase {
        match (&self.outcome, &self.active) {
            (Some(_), _) => Phase::Over,
            (None, Some(_)) if self.publishing.is_some() => Phase::Publishing,
            (None, Some(_)) if self.cancel.is_some() => Phase::Canceling,
            (None, Some(_)) if self.has_open_ask() => Phase::Asking,
            (None, Some(_)) => Phase::Running,
            (None, None) if !self.is_cleared() => Phase::Gated,
            (None, None) if self.is_flowing() && self.cancel.is_some() => Phase::Closing,
            (None, None) if self.is_flowing() => Phase::Flowing,
            (None, None) => Phase::Queued,
        }
    }
}

impl RunInput {
    /// The input's kind.
    pub fn kind(&self) -> InputKind {
        match self {
            Self::Provider => InputKind::Provider,
            Self::Turn => InputKind::Turn,
            Self::AttemptEnded { .. } => InputKind::AttemptEnded,
            Self::CostReported { .. } => InputKind::CostReported,
            Self::Note { .. } => InputKind::Note,
            Self::Published { .. } => InputKind::Published,
            Self::OutputTooLarge { .. } => InputKind::OutputTooLarge,
            Self::RaiseAsk(_) => InputKind::RaiseAsk,
            Self::ResolveAsk { .. } => InputKind::ResolveAsk,
            Self::AllowChildren(_) => InputKind::AllowChildren,
            Self::Cancel { .. } => InputKind::Cancel,
            Self::Tick => InputKind::Tick,
            Self::Recovered => InputKind::Recovered,
            Self::Flow(_) => InputKind::Flow,
            Self::Signal(_) => InputKind::Signal,
            Self::Step(_) => InputKind::Step,
        }
    }
}
