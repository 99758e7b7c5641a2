//! What an agent declares of itself.

use serde::{Deserialize, Serialize};
use wharf_vocab::Isolation;

use super::{ProviderLimits, ToolServer};

/// What an agent declares of itself, as far as the core acts on it or shows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Its name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it is for.
    pub description: String,
    /// How it is started.
    pub entrypoint: Entrypoint,
    /// What it asks for.
    pub permissions: Vec<String>,
    /// What it says it can do.
    pub capabilities: Vec<String>,
    /// The limits it keeps to.
    #[serde(default)]
    pub limits: ProviderLimits,
    /// Which runs share a process, when it says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub isolation: Option<Isolation>,
    /// Whether it takes its connection as an inherited descriptor instead of a path and a token.
    #[serde(default)]
    pub inherits_connection: bool,
    /// Where its source comes from, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// What makes it a tool server; an agent has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Box<ToolServer>>,
    /// Whether it is an operative: it connects by itself, under a name that its token grants.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub operative: bool,
}

impl Manifest {
    /// Whether it is an agent, and neither a tool server nor an operative.
    #[must_use]
    pub fn is_agent(&self) -> bool {
        self.server.is_none() && !self.operative
    }
}

/// How an agent is started: a program and its arguments, never a shell.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entrypoint {
    /// The program: a path below the agent's folder when it has a slash, else looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
}
