//! What a flow does: its steps as its run's entries tell them, and what is next.
//!
//! Nothing here evaluates an expression or looks anything up. What came out of an expression, how
//! a call ended and that a time has come are entries; everything else follows from them, live and
//! on replay alike. A call is known by its computed id, so that it is found again whatever was
//! lost, and what is wanted outside is a view of the state: whoever lost it asks once more.

mod cite;
mod entry;
mod fold;
mod frame;
mod input;
mod long_list;
mod machine;
mod results;
mod stage;
mod value;
mod wants;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use wharf_vocab::limits::{FLOW_LAST_STEPS_MAX, FLOW_RUN_STEPS_MAX, FLOW_STATE_BYTES_MAX};
use wharf_vocab::{
    Digest, Fault, Micro, Object, RunId, RunKey, ShardId, StepName, Timestamp, ToolId,
};

pub use cite::{Citation, CitedCall, CitedResult};
pub use entry::{
    Evaluated, FlowBegan, FlowExpired, FlowRunEntry, Signaled, StepEnd, StepFinished, StepStarted,
    Woke,
};
pub use fold::FlowFolded;
pub use input::{
    ChildEnd, Evaluable, Evaluation, FlowInput, FlowScope, FlowWork, NewSignal, Restart, StepCall,
};
pub(super) use machine::NO_ASK_TURN;
pub use results::{StepResult, StepValue};
pub(super) use stage::OUTPUT;
pub use stage::RESTART;
pub(super) use wants::{AskWant, ChildWant, Want, WantKey};

use crate::flow::{Document, UsedResults};
use fold::FlowSize;
use long_list::LongList;
use machine::Shared;
use results::Results;
use stage::Stage;

/// What every id of a call's run begins with.
pub const STEP_PREFIX: &str = "st-";
/// How much of a digest stands in an id.
const ID_CHARS: usize = 40;

/// The document that a run goes by, as it was when the run was accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Which version it is.
    pub version: u32,
    /// The document.
    pub document: Arc<Document>,
    /// The definitions that its tools must have, if it goes only with these.
    #[serde(default, skip_serializing_if = "pins_are_none")]
    pub pins: Arc<BTreeMap<ToolId, Digest>>,
    /// The run of the same flow that began anew with this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<RunId>,
    /// What it takes over from another run, if it begins with a later step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cites: Option<Arc<Citation>>,
}

fn pins_are_none(pins: &Arc<BTreeMap<ToolId, Digest>>) -> bool {
    pins.is_empty()
}

/// What the place of what undoes a call ends with.
const UNDO: &str = "~undo";

/// Whether a place is that of what undoes a call.
pub(super) fn is_undo(path: &str) -> bool {
    path.ends_with(UNDO)
}

/// Which step of a flow, or of durable code, a run is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepRef {
    /// The place of the step in the flow.
    pub path: String,
    /// Which try it is, from 1.
    #[serde(rename = "try")]
    pub number: u32,
    /// Its name, if code asked for it and no document did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<StepName>,
}

/// The id of the run of a call. It follows from where the call stands, and it falls into the
/// flow's own shard: both are stepped by one core, in one order.
pub fn step_id(flow: &RunKey, path: &str, number: u32) -> RunId {
    let stem = &step_digest(flow, path, number).as_str()[..ID_CHARS].to_owned();
    let shard = flow.shard();
    let named = |n: u32| RunId::new(format!("{STEP_PREFIX}{stem}-{n:x}"));
    let falls_into = |run: &RunId| in_shard(flow, run) == shard;
    (0..u32::MAX)
        .find_map(|n| named(n).ok().filter(falls_into))
        .expect("one of so many names falls into the shard")
}

fn in_shard(flow: &RunKey, run: &RunId) -> ShardId {
    RunKey { world: flow.world.clone(), run: run.clone() }.shard()
}

fn step_digest(flow: &RunKey, path: &str, number: u32) -> Digest {
    let (world, run) = (flow.world.as_str().as_bytes(), flow.run.as_str().as_bytes());
    Digest::of(&[b"wharf.step.1", world, run, path.as_bytes(), &number.to_be_bytes()])
}

/// The id of the run that a flow begins anew as.
pub fn restart_id(flow: &RunKey) -> RunId {
    step_id(flow, RESTART, 1)
}

/// The key that all tries of a call have in common.
pub fn step_key(flow: &RunKey, path: &str) -> String {
    step_digest(flow, path, 0).as_str().to_owned()
}

/// A flow that goes on, or has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowState {
    stage: Stage,
    shared: Shared,
    /// Whether somebody called it off.
    canceled: bool,
    /// Why it is to end although nothing failed: its time is over.
    doom: Option<Fault>,
    /// Once it is to stop: until when what it does at last may take.
    stop_until: Option<Timestamp>,
    /// Whether what it does at last is cut short, too.
    cut: bool,
    /// How many steps it had done when what it does at last began.
    last_from: u32,
    /// Which results are kept, if others than those that the document uses.
    keeps: Option<Arc<UsedResults>>,
    /// How large it is, and how much was written since it was folded.
    size: FlowSize,
}

/// How a flow ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(in crate::run) enum FlowEnd {
    Succeeded(Object),
    Failed(Fault),
    Canceled,
}

impl Default for FlowState {
    fn default() -> Self {
        let (stage, shared) = (Stage::Waiting, Shared::default());
        let (canceled, doom, stop_until) = (false, None, None);
        let (cut, last_from, keeps, size) = (false, 0, None, FlowSize::default());
        Self { stage, shared, canceled, doom, stop_until, cut, last_from, keeps, size }
    }
}

impl FlowState {
    /// Whether it waits for anything outside: an evaluation, or a call.
    pub fn waits_outside(&self, spec: &FlowSpec) -> bool {
        self.wants(spec).iter().any(|want| want.key().is_some())
    }

    /// Whether a call is under way in this try, and goes on.
    pub fn wants_step(&self, spec: &FlowSpec, step: &StepRef) -> bool {
        self.wants(spec).iter().any(|want| match want {
            Want::Child(it) => !it.canceling && it.number == step.number && it.path == step.path,
            _ => false,
        })
    }

    /// What its calls that are over have cost together.
    pub fn cost_micro(&self) -> Micro {
        self.shared.cost_micro
    }

    /// Its variables.
    pub fn vars(&self) -> &Object {
        &self.shared.vars
    }

    /// How many messages wait to be taken.
    pub fn signals_waiting(&self) -> usize {
        self.shared.signals.len()
    }

    /// How many steps were done or begun that count towards what a run may do: calls, evaluations
    /// and waits that are over.
    pub fn steps_done(&self) -> u32 {
        self.shared.steps
    }

    /// How many calls were started.
    pub fn steps_started(&self) -> u32 {
        self.shared.started
    }

    /// How many messages have come.
    pub(super) fn signals_come(&self) -> usize {
        self.shared.signals_come
    }

    /// Whether a message with this key has come.
    pub(super) fn knows_signal(&self, key: &str) -> bool {
        self.shared.signal_keys.contains(&machine::key_digest(key))
    }

    /// What is written down when it wants to do more and may not.
    pub(super) fn at_limit(&self) -> Option<FlowRunEntry> {
        let steps = u64::from(self.shared.steps);
        if !self.canceled && self.doom.is_none() {
            let many = (steps >= FLOW_RUN_STEPS_MAX).then(value::too_many_steps);
            let large = || (self.weight() > FLOW_STATE_BYTES_MAX).then(value::too_large);
            let error = many.or_else(large)?;
            return Some(FlowRunEntry::Expired(FlowExpired { error: Some(error) }));
        }
        let late = steps.saturating_sub(u64::from(self.last_from));
        let path = stage::cut_path(&self.stage).to_owned();
        (late >= FLOW_LAST_STEPS_MAX && !self.cut).then_some(FlowRunEntry::Woke(Woke { path }))
    }

    /// What it is to begin anew with, if nothing else is left to do.
    pub fn restarts_with(&self) -> Option<&Arc<Object>> {
        match &self.stage {
            Stage::Restart(inputs) => Some(inputs),
            _ => None,
        }
    }

    /// Whether its time is over.
    pub(super) fn is_doomed(&self) -> bool {
        self.doom.is_some()
    }

    /// Whether its steps have begun.
    pub fn has_begun(&self) -> bool {
        !matches!(self.stage, Stage::Waiting)
    }

    /// Whether nothing of it is left to do.
    pub fn has_ended(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// How it ended, if nothing of it is left to do.
    pub(super) fn end(&self) -> Option<FlowEnd> {
        match &self.stage {
            Stage::Over(end) => Some(match &self.shared.undo_failed {
                Some(fault) => FlowEnd::Failed(fault.clone()),
                None => end.clone(),
            }),
            _ => None,
        }
    }
}

/// What can be told of a step that is under way.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveStep {
    /// Its place in the flow.
    pub path: String,
    /// Since when.
    pub since: Timestamp,
    /// Which try it is, if it is a call.
    pub number: Option<u32>,
    /// The run that does it, if it is a call that was started.
    pub child: Option<RunId>,
    /// Until when it waits at most, where that is known.
    pub until: Option<Timestamp>,
    /// Whether it is to stop.
    pub canceling: bool,
}
