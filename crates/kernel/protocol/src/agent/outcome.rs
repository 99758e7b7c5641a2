//! How a call ends, as both ends speak of it.

use wharf_vocab::{Fault, Micro, Object};
use wharf_wire::agent_v1::Rfc3339;

/// How a call ended.
#[derive(Debug, Clone, PartialEq)]
pub enum CallOutcome {
    /// Well, with an output; empty when the tool gave none.
    Succeeded(Object),
    /// With an error.
    Failed(Fault),
    /// By a cancel.
    Canceled(Fault),
}

/// The single end of a call, as the core learns of it.
#[derive(Debug, Clone, PartialEq)]
pub struct CallEnd {
    /// How it ended.
    pub outcome: CallOutcome,
    /// What it cost, as the agent says.
    pub cost_micro: Micro,
    /// When work on it began, as the agent says.
    pub started_at: Option<Rfc3339>,
    /// When work on it ended, as the agent says.
    pub finished_at: Option<Rfc3339>,
    /// Other figures of the agent's.
    pub metrics: Object,
    /// Whether the agent was told to stop and did not, so that it may still be at work.
    pub unresponsive: bool,
}

impl From<CallOutcome> for CallEnd {
    fn from(outcome: CallOutcome) -> Self {
        Self {
            outcome,
            cost_micro: 0,
            started_at: None,
            finished_at: None,
            metrics: Object::new(),
            unresponsive: false,
        }
    }
}

/// The single end of a call, as an agent reports it. Times are added by the session.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport {
    /// How it ended.
    pub outcome: CallOutcome,
    /// What it cost.
    pub cost_micro: Option<Micro>,
    /// Other figures, free of secrets.
    pub metrics: Object,
}

impl From<CallOutcome> for CallReport {
    fn from(outcome: CallOutcome) -> Self {
        Self { outcome, cost_micro: None, metrics: Object::new() }
    }
}
