//! A run that a trigger is to start because of what happened inside: written in the batch that
//! records what happened, and owed until the run was asked for.

use serde::{Deserialize, Serialize};
use wharf_vocab::{Timestamp, TriggerId};

use super::Cause;

/// A run that a trigger is to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwedFiring {
    /// The trigger.
    pub trigger: TriggerId,
    /// When it was made; a later one of the same name is another.
    pub made_at: Timestamp,
    /// What happened.
    pub cause: Cause,
    /// How many triggers stand behind it, this one among them.
    pub depth: u32,
}

/// What is written about a firing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum FiringEntry {
    /// It is owed.
    Owed(Box<OwedFiring>),
    /// It is owed no more; the trigger's stream says what came of it.
    Over(FiringEnd),
}

/// A firing is owed no more.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiringEnd {}

impl OwedFiring {
    /// Reads a firing back from its stream; `None` once it is owed no more.
    pub fn replay<'a>(entries: impl IntoIterator<Item = &'a FiringEntry>) -> Option<Self> {
        entries.into_iter().fold(None, |_, entry| match entry {
            FiringEntry::Owed(owed) => Some(Self::clone(owed)),
            FiringEntry::Over(_) => None,
        })
    }
}
