//! Durable steps in code: what a run remembers of the steps that its attempts have asked for.
//!
//! A step is a run of its own, known by a computed id. Here stands only that it was asked for, with
//! which tool and arguments, and that it is over; what it gave stands in its own stream, and is
//! the same whenever it is read. So a repeated attempt finds every step again, whatever was lost.

mod entry;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use wharf_vocab::{AttemptId, Digest, Fault, RunId, RunKey, RunStatus, StepName, ToolId};

pub use entry::{LocalKept, StepAnswered, StepAsked, StepEntry};

use super::Run;
use super::flow::{step_id, step_key};
use crate::value_weight;

/// How much of a digest is shown.
const SHOWN_CHARS: usize = 12;

/// What can happen to a step of durable code.
#[derive(Debug, Clone, PartialEq)]
pub enum StepInput {
    /// The attempt asks for a call.
    Ask {
        /// The attempt.
        attempt_id: AttemptId,
        /// The step.
        step: StepName,
        /// The tool.
        tool: ToolId,
        /// Digest of the arguments.
        arguments: Digest,
    },
    /// The call was not let in: no run was made.
    Refused {
        /// The step.
        step: StepName,
        /// Why.
        fault: Fault,
    },
    /// The run of the call is over.
    Ended {
        /// The step.
        step: StepName,
        /// The run.
        child: RunId,
        /// How it ended.
        status: RunStatus,
    },
    /// The attempt wants the value that is kept under this name, and keeps this one if there is
    /// none.
    Keep {
        /// The attempt.
        attempt_id: AttemptId,
        /// The step.
        step: StepName,
        /// What local code gave; absent if it has not run.
        value: Option<Value>,
    },
}

/// The steps of a durable run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepLog {
    steps: BTreeMap<StepName, Arc<StepMark>>,
    /// Calls that are not over.
    open: usize,
    /// What the kept values take.
    values_bytes: u64,
    /// Attempts that have failed since a step was finished.
    failures: u32,
}

/// What is known of one step.
#[derive(Debug, Clone, PartialEq)]
pub enum StepMark {
    /// A call.
    Call(StepCall),
    /// What local code gave.
    Local(Value),
}

/// A call that durable code asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCall {
    /// The run that does it.
    pub child: RunId,
    /// The tool.
    pub tool: ToolId,
    /// Digest of the arguments.
    pub arguments: Digest,
    /// Where it stands.
    pub state: CallState,
}

/// Where a call stands.
#[derive(Debug, Clone, PartialEq)]
pub enum CallState {
    /// It is not over.
    Open,
    /// It is over; its run tells how.
    Over,
    /// No run was made, and this is why.
    Refused(Fault),
}

impl StepLog {
    /// What is known of a step.
    pub fn get(&self, step: &StepName) -> Option<&StepMark> {
        self.steps.get(step).map(|mark| &**mark)
    }

    /// All that are known, by their names.
    pub fn all(&self) -> impl Iterator<Item = (&StepName, &StepMark)> {
        self.steps.iter().map(|(step, mark)| (step, &**mark))
    }

    /// The runs of calls that are not over.
    pub fn open_runs(&self) -> impl Iterator<Item = &RunId> {
        self.steps.values().filter_map(|mark| match &**mark {
            StepMark::Call(StepCall { child, state: CallState::Open, .. }) => Some(child),
            _ => None,
        })
    }

    /// How many steps are known.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether a call is not over.
    pub(super) fn has_open(&self) -> bool {
        self.open > 0
    }

    /// What the kept values take in memory.
    pub fn values_bytes(&self) -> u64 {
        self.values_bytes
    }

    /// How many attempts have failed since a step was finished.
    pub(super) fn failures(&self) -> u32 {
        self.failures
    }

    pub(super) fn attempt_failed(&mut self) {
        self.failures = self.failures.saturating_add(1);
    }

    pub(super) fn apply(&mut self, entry: &StepEntry) {
        match entry {
            StepEntry::Asked(asked) => {
                let StepAsked { step, child, tool, arguments } = asked.clone();
                let call = StepCall { child, tool, arguments, state: CallState::Open };
                self.steps.insert(step, Arc::new(StepMark::Call(call)));
                self.open += 1;
            }
            StepEntry::Answered(answered) => {
                self.failures = 0;
                let Some(mark) = self.steps.get_mut(&answered.step) else { return };
                let StepMark::Call(call) = Arc::make_mut(mark) else { return };
                self.open -= usize::from(call.state == CallState::Open);
                call.state = match &answered.refused {
                    Some(fault) => CallState::Refused(fault.clone()),
                    None => CallState::Over,
                };
            }
            StepEntry::Kept(kept) => {
                self.failures = 0;
                self.values_bytes += value_weight(&kept.value);
                let mark = Arc::new(StepMark::Local(kept.value.clone()));
                self.steps.insert(kept.step.clone(), mark);
            }
        }
    }
}

/// As it is told when the same step is asked for as another one.
impl fmt::Display for StepMark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(StepCall { tool, arguments, .. }) => {
                let digest = arguments.as_str();
                let shown = digest.get(..SHOWN_CHARS).unwrap_or(digest);
                write!(f, "{tool} with the arguments {shown}")
            }
            Self::Local(_) => f.write_str("local code"),
        }
    }
}

impl Run {
    /// The run that does a step of this one.
    pub fn step_run(&self, step: &StepName) -> RunId {
        step_id(&self.key, &step.to_string(), 1)
    }
}

/// The key under which the provider of a step knows it.
pub fn code_step_key(run: &RunKey, step: &StepName) -> String {
    step_key(run, &step.to_string())
}
