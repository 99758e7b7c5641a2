//! What is written about a flow while it goes on, besides its asks.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{Fault, Micro, Object, RunId, Timestamp, ToolId};

use super::FlowFolded;
use crate::Actor;

/// One entry about a flow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FlowRunEntry {
    /// Its first steps begin.
    Began(FlowBegan),
    /// A call is about to be made: its run has a name from now on.
    StepStarted(StepStarted),
    /// A call is over, or was not let in.
    StepFinished(StepFinished),
    /// An expression was evaluated.
    Evaluated(Evaluated),
    /// The time of a step has come.
    Woke(Woke),
    /// Somebody sent a message.
    Signaled(Signaled),
    /// It may go on no longer.
    Expired(FlowExpired),
    /// Where it stands; what happened to its steps before need not be read to go on.
    Folded(FlowFolded),
}

/// The first steps of a flow begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowBegan {}

/// A call is about to be made. What it is asked for and how its tool is defined stands in its own
/// stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepStarted {
    /// The place of the step in the flow, with the numbers of items and rounds.
    pub path: String,
    /// Which try it is, from 1.
    #[serde(rename = "try")]
    pub number: u32,
    /// The run that does it.
    pub child: RunId,
    /// The tool, as the document names it.
    pub tool: ToolId,
}

/// A call is over, or was not let in.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepFinished {
    /// The place of the step in the flow.
    pub path: String,
    /// Which try it was.
    #[serde(rename = "try")]
    pub number: u32,
    /// How it ended.
    pub end: StepEnd,
    /// What it cost.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cost_micro: Micro,
    /// Whether a run was made.
    #[serde(default = "yes", skip_serializing_if = "Clone::clone")]
    pub run: bool,
    /// When it is tried again, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum StepEnd {
    /// It gave something.
    Succeeded {
        /// What it gave.
        outputs: Object,
    },
    /// It did not.
    Failed {
        /// Why.
        error: Fault,
    },
    /// It was not let in, or somebody said no.
    Refused {
        /// Why.
        error: Fault,
    },
    /// It was called off.
    Canceled {
        /// By whom or why.
        error: Fault,
    },
}

/// An expression was evaluated, or several that belong together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Evaluated {
    /// The place of the step in the flow.
    pub path: String,
    /// Which of its expressions, from 0.
    #[serde(default, skip_serializing_if = "is_zero_u32")]
    pub turn: u32,
    /// What came out.
    #[serde(default)]
    pub value: Value,
    /// Why nothing came out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}

/// The time of a step has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Woke {
    /// The place of the step in the flow.
    pub path: String,
}

/// Somebody sent a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Signaled {
    /// Its name.
    pub name: String,
    /// What it says.
    #[serde(default)]
    pub value: Value,
    /// The sender's own key for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Who sent it.
    pub by: Actor,
}

/// A flow may go on no longer: its time is over, or it did as many steps as it may.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FlowExpired {
    /// Why, if it is not its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Fault>,
}

impl StepEnd {
    /// The error, unless it succeeded.
    pub fn error(&self) -> Option<&Fault> {
        match self {
            Self::Succeeded { .. } => None,
            Self::Failed { error } | Self::Refused { error } | Self::Canceled { error } => {
                Some(error)
            }
        }
    }

    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Succeeded { .. } => "succeeded",
            Self::Failed { .. } => "failed",
            Self::Refused { .. } => "refused",
            Self::Canceled { .. } => "canceled",
        }
    }
}

impl FlowRunEntry {
    /// The entry without values.
    #[must_use]
    pub(crate) fn withheld(self, without_words: impl Fn(&Fault) -> Fault) -> Self {
        match self {
            Self::StepFinished(finished) => {
                let end = match finished.end {
                    StepEnd::Succeeded { .. } => StepEnd::Succeeded { outputs: Object::new() },
                    StepEnd::Failed { error } => StepEnd::Failed { error: without_words(&error) },
                    StepEnd::Refused { error } => StepEnd::Refused { error: without_words(&error) },
                    StepEnd::Canceled { error } => {
                        StepEnd::Canceled { error: without_words(&error) }
                    }
                };
                Self::StepFinished(StepFinished { end, ..finished })
            }
            Self::Evaluated(evaluated) => {
                let error = evaluated.error.as_ref().map(without_words);
                Self::Evaluated(Evaluated { value: Value::Null, error, ..evaluated })
            }
            Self::Signaled(signaled) => Self::Signaled(Signaled { value: Value::Null, ..signaled }),
            Self::Folded(folded) => Self::Folded(folded.withheld()),
            other => other,
        }
    }
}

fn is_zero(cost: &Micro) -> bool {
    *cost == 0
}

fn is_zero_u32(turn: &u32) -> bool {
    *turn == 0
}

fn yes() -> bool {
    true
}
