//! The single end of a run.

use serde::{Deserialize, Serialize};
use wharf_vocab::{Fault, Object, RunStatus};

/// How a run ended. A run has exactly one outcome, and it never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum Outcome {
    /// It did what it should.
    Succeeded {
        /// The outputs.
        outputs: Object,
    },
    /// It did not.
    Failed {
        /// Why.
        error: Fault,
    },
    /// Somebody or some rule said no.
    Refused {
        /// Why.
        error: Fault,
    },
    /// Somebody called it off.
    Canceled {
        /// By whom or why.
        error: Fault,
    },
}

impl Outcome {
    /// The run's last status.
    pub fn status(&self) -> RunStatus {
        match self {
            Self::Succeeded { .. } => RunStatus::Succeeded,
            Self::Failed { .. } => RunStatus::Failed,
            Self::Refused { .. } => RunStatus::Refused,
            Self::Canceled { .. } => RunStatus::Canceled,
        }
    }

    /// The error, unless the run succeeded.
    pub fn error(&self) -> Option<&Fault> {
        match self {
            Self::Succeeded { .. } => None,
            Self::Failed { error } | Self::Refused { error } | Self::Canceled { error } => {
                Some(error)
            }
        }
    }
}
