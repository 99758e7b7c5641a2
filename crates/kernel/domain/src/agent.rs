//! Agents: providers that the core launches. What stands here is their place in the journal.

use serde::{Deserialize, Serialize};
use wharf_vocab::{AgentId, Digest};

/// Where an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentState {
    /// Known, not allowed to start.
    Added,
    /// Allowed to start.
    Approved,
    /// Wanted, so it is started again after a restart of the core.
    Wanted,
    /// Not wanted.
    Stopped,
}

/// What is written about an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum AgentEntry {
    /// It was added.
    Added {
        /// Hash of its manifest.
        manifest: Digest,
    },
    /// The owner allowed it to start.
    Approved {
        /// Hash of the manifest the approval is for.
        manifest: Digest,
    },
    /// It is to run.
    Wanted,
    /// It is not to run.
    Stopped,
}

/// An agent as its journal tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// Hash of its manifest.
    pub manifest: Digest,
    /// Where it stands.
    pub state: AgentState,
}

impl Agent {
    /// The agent after an entry; `None` if the entry cannot follow.
    #[must_use]
    pub fn apply(agent: Option<Self>, id: &AgentId, entry: &AgentEntry) -> Option<Self> {
        match (agent, entry) {
            (_, AgentEntry::Added { manifest }) => {
                Some(Self { id: id.clone(), manifest: manifest.clone(), state: AgentState::Added })
            }
            (Some(agent), AgentEntry::Approved { manifest }) if agent.manifest == *manifest => {
                Some(Self { state: AgentState::Approved, ..agent })
            }
            (Some(agent), AgentEntry::Wanted) if agent.state != AgentState::Added => {
                Some(Self { state: AgentState::Wanted, ..agent })
            }
            (Some(agent), AgentEntry::Stopped) if agent.state == AgentState::Wanted => {
                Some(Self { state: AgentState::Stopped, ..agent })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_is_wanted_only_once_the_manifest_it_has_is_approved() {
        let id = AgentId::new("a").expect("valid");
        let (one, two) = (Digest::of(&[b"1"]), Digest::of(&[b"2"]));
        let added = Agent::apply(None, &id, &AgentEntry::Added { manifest: one.clone() });
        assert_eq!(Agent::apply(added.clone(), &id, &AgentEntry::Wanted), None);
        let other = AgentEntry::Approved { manifest: two };
        assert_eq!(Agent::apply(added.clone(), &id, &other), None);
        let approved = Agent::apply(added, &id, &AgentEntry::Approved { manifest: one });
        let wanted = Agent::apply(approved, &id, &AgentEntry::Wanted).expect("allowed");
        assert_eq!(wanted.state, AgentState::Wanted);
    }
}
