//! What is written about the steps of durable code.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wharf_vocab::{Digest, Fault, RunId, RunStatus, StepName, ToolId};

/// One entry about the steps of durable code.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum StepEntry {
    /// A call was asked for: its run has a name from now on.
    Asked(StepAsked),
    /// A call is over, or was not let in.
    Answered(StepAnswered),
    /// What local code gave is kept.
    Kept(LocalKept),
}

/// A call was asked for. What it is asked for stands in its own stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepAsked {
    /// The step.
    pub step: StepName,
    /// The run that does it.
    pub child: RunId,
    /// The tool.
    pub tool: ToolId,
    /// Digest of the arguments.
    pub arguments: Digest,
}

/// A call is over, or was not let in. What it gave stands in its own stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepAnswered {
    /// The step.
    pub step: StepName,
    /// How it ended.
    pub status: RunStatus,
    /// Why no run was made, if none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Fault>,
}

/// What local code gave is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LocalKept {
    /// The step.
    pub step: StepName,
    /// What it gave.
    #[serde(default)]
    pub value: Value,
}

impl StepEntry {
    /// The entry without values.
    #[must_use]
    pub(crate) fn withheld(self, without_words: impl Fn(&Fault) -> Fault) -> Self {
        match self {
            Self::Answered(answered) => {
                let refused = answered.refused.as_ref().map(without_words);
                Self::Answered(StepAnswered { refused, ..answered })
            }
            Self::Kept(kept) => Self::Kept(LocalKept { value: Value::Null, ..kept }),
            asked @ Self::Asked(_) => asked,
        }
    }
}
